#define _GNU_SOURCE /* sched_setaffinity */
/* test_tape.c — unusual uses of the tape: checkpoints that get one tensor twice or return an input, hooks that call
 * backward, write or drop, custom ops filled in wrongly, writes that the tape does not record. Each ends in the correct
 * gradient or in an error that names the change to make, never in a wrong value. */
#include "autograd/autograd.h"
#include "autograd/tape/tape.h"
#include "core/core.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

static tn_tensor *leaf(double v) { return tn_requires_grad(tn_scalar_of(TN_F64, v)); }
static tn_tensor *vector(int n, double from) { return tn_requires_grad(tn_arange_of(TN_F64, from, from + n, 1)); }
#define CLOSE(x, y) ck_assert_double_eq_tol(x, y, 1e-12)

/* ---- gradient checkpointing ------------------------------------------------------------------------------------ */

static tn_tensor *product(tn_tensor *const *in, int n, void *w)
{
    return n == 2 ? tn_mul(in[0], in[1]) : tn_mul(in[0], w);
}
static tn_tensor *as_it_is(tn_tensor *const *in, int n, void *user) { return (void)n, user ? user : in[0]; }
static tn_tensor *doubled(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user, tn_square(tn_mul_scalar_(in[0], 2));
}
static tn_tensor *draws_and_fails(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_add(tn_dropout(in[0], 0.5), tn_ones(TN_SHAPE(7)));
}

TEST(one_tensor_twice)
{
    tn_tensor *x = leaf(3), *h = tn_mul_scalar(x, 1);
    ck_assert_int_eq(tn_backward(tn_checkpoint(product, NULL, 2, (tn_tensor *[]){x, x})), TN_OK);
    ck_assert_double_eq(tn_item(tn_grad(x)), 6);
    ck_assert_int_eq(tn_backward(tn_checkpoint(product, NULL, 2, (tn_tensor *[]){h, h})), TN_OK);
    ck_assert_double_eq(tn_item(tn_grad(x)), 12);
}

/* The input's node is older than the segment and belongs to the outer backward: m = h² comes later. */
TEST(given_back_as_it_is)
{
    tn_tensor *x = leaf(0.5), *h = tn_exp(x), *m = tn_mul(h, h), *c = tn_checkpoint(as_it_is, NULL, 1, &h);
    ck_assert_int_eq(tn_backward(tn_add(m, c)), TN_OK);
    CLOSE(tn_item(tn_grad(x)), 2 * exp(1) + exp(0.5));
    tn_zero_grad(x);
    ck_assert_int_eq(tn_backward(tn_mul(tn_checkpoint(as_it_is, NULL, 1, &x), x)), TN_OK);
    ck_assert_double_eq(tn_item(tn_grad(x)), 1);
    h = tn_exp(x);
    tn_backward(tn_checkpoint(as_it_is, h, 1, &x));
    ck_error(
        TN_ESTATE,
        "tn_checkpoint: the segment uses a result of exp that was recorded outside and is not among its inputs; pass "
        "it as an input");
}

TEST(an_input_that_leads_nowhere)
{
    tn_tensor *x = leaf(1), *w = leaf(2), *h = tn_exp(x), *g;
    ck_assert_int_eq(tn_grad_of(tn_checkpoint(product, w, 1, &h), 1, &w, &g), TN_OK); /* x is not a target */
    CLOSE(tn_item(g), exp(1));
    h = tn_exp(x);
    g = tn_grad_wrt(tn_checkpoint(product, w, 1, &h), w, true); /* but the gradient depends on it */
    g = tn_grad_wrt(g, x, false);
    CLOSE(tn_item(g), exp(1));
}

TEST(a_segment_that_writes_over_its_input)
{
    tn_tensor *x = vector(3, 1), *h = tn_mul_scalar(x, 1);
    tn_backward(tn_sum(tn_checkpoint(doubled, NULL, 1, &h)));
    ck_error(
        TN_ESTATE,
        "backward: mul_scalar_ changed in place the tensor saved by checkpoint (input 0); use mul_scalar, or move it "
        "before "
        "the checkpoint");
}

static void        drawing(tn_ctx *c) { c->out[0] = draws_and_fails(c->in, 1, NULL); }
static bool        like_input(tn_ctx *c) { return tn_infer_like(c, 0, 0); }
static const tn_op drawer = {
    .size = sizeof(tn_op), .name = "drawer", .inputs = 1, .infer = like_input, .compose = drawing};
static tn_tensor *half_wrong(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user, tn_mul(tn_detach(in[0]), in[0]);
}

TEST(what_fails_has_drawn_nothing)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(5)));
    ck_refused(tn_checkpoint(draws_and_fails, NULL, 1, &x), TN_ESHAPE,
               "add: shapes [5] and [7] do not broadcast: dim -1 is 5 in one and 7 in the other");
    ck_assert_ptr_null(tn_apply(&drawer, x));
    tn_clear_error();
    ck_assert_int_eq(tn_gradcheck(half_wrong, .input = x), TN_ENUMERIC);
    tn_clear_error();
    tn_scope s = tn_no_grad_begin();
    ck_assert_ptr_null(tn_checkpoint(draws_and_fails, NULL, 1, &x));
    tn_scope_end(s);
    tn_clear_error();
    ck_assert_uint_eq(tn_current_generator()->position, 0);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------ */

static tn_tensor *root, *target;
static tn_tensor *again(tn_tensor *g, void *user)
{
    return (void)g, (void)user, tn_backward(root, .retain = true), NULL;
}
static tn_tensor *again_for(tn_tensor *g, void *user)
{
    return (void)user, tn_grad_of(root, 1, &target, &g, .retain = true), NULL;
}
static tn_tensor *draw_it(tn_tensor *g, void *to) { return (void)g, tn_tape_dot(to, root), NULL; }

/* The nodes of a tape hold the marks of the pass that reads it. */
TEST(a_tape_is_read_once_at_a_time)
{
    const tn_grad_hook hooks[] = {again, again_for, draw_it};
    const char *const  text[] = {
         "tn_backward: add is on a tape that is being read; inside a backward only other tapes can be read",
         "tn_grad_of: add is on a tape that is being read; inside a backward only other tapes can be read",
         "tn_tape_dot: a backward is running; call this before or after it"};
    char  drawn[64] = "";
    FILE *to = fmemopen(drawn, sizeof drawn, "w");
    for (int i = 0; i < 3; i++) {
        tn_tensor *x = leaf(0.5), *h = tn_exp(x), *a = tn_mul(h, h);
        root = tn_add(tn_exp(a), h), target = x;
        tn_on_grad(a, hooks[i], to);
        tn_backward(root, .retain = true);
        ck_error(TN_ESTATE, text[i]);
        ck_assert_ptr_null(tn_grad(x));
    }
    fclose(to);
    ck_assert_str_eq(drawn, "");
}

static tn_tensor *other(tn_tensor *g, void *tape)
{
    tn_tensor *y = *(tn_tensor **)tape;
    *(tn_tensor **)tape = NULL; /* only once: the other tape ends in the same leaf */
    if (y) tn_backward(y);
    return (void)g, NULL;
}

TEST(a_hook_may_read_another_tape)
{
    tn_tensor *x = leaf(2), *one = tn_mul(x, x), *two = tn_mul(x, x), *h = tn_exp(x), *y = tn_mul(x, h);
    tn_on_grad(x, other, &one);
    tn_on_grad(h, other, &two);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    CLOSE(tn_item(tn_grad(x)), 3 * exp(2) + 4 + 4);
}

static tn_tensor *dropper(tn_tensor *g, void *kept) { return (void)g, tn_drop(kept), NULL; }

TEST(a_hook_may_drop_the_root)
{
    tn_tensor *x = leaf(2);
    tn_scope   s = tn_scope_begin();
    tn_tensor *h = tn_exp(x), *y = tn_keep(tn_mul(h, h));
    tn_on_grad(h, dropper, y);
    tn_scope_end(s);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    CLOSE(tn_item(tn_grad(x)), 2 * exp(4));
}

static tn_tensor *twice(tn_tensor *g, void *calls) { return ++*(int *)calls, tn_mul_scalar(g, 2); }

TEST(hooks_of_leaves_see_both_kinds_of_backward)
{
    int        calls = 0;
    tn_tensor *x = leaf(3), *g[2];
    tn_on_grad(x, twice, &calls);
    ck_assert_int_eq(tn_grad_of(tn_mul(x, x), 2, ((tn_tensor *[]){x, x}), g), TN_OK);
    ck_assert_double_eq(tn_item(g[0]), 12);
    ck_assert_double_eq(tn_item(g[1]), 12);
    ck_assert_int_eq(calls, 1);
    g[0] = tn_grad_wrt(tn_checkpoint(product, NULL, 2, (tn_tensor *[]){x, x}), x, false);
    ck_assert_double_eq(tn_item(g[0]), 12);
    ck_assert_int_eq(calls, 2);
}

TEST(retained_gradients_are_nobody_elses)
{
    tn_tensor *x = vector(2, 1), *a = tn_exp(x), *b = tn_exp(x), *y = tn_add(a, b),
              *seed = tn_ones_of(TN_F64, TN_SHAPE(2));
    tn_retain_grad(a), tn_retain_grad(b), tn_retain_grad(y);
    ck_assert_int_eq(tn_backward(y, .seed = seed), TN_OK);
    tn_fill(seed, 7), tn_fill(tn_grad(a), 8), tn_fill(tn_grad(b), 9);
    ck_assert_double_eq(tn_get(tn_grad(y), 0), 1);
    ck_assert_double_eq(tn_get(tn_grad(a), 0), 8);
}

static tn_tensor *refuses(tn_tensor *g, void *user) { return (void)g, (void)user, tn_raise(TN_EINVAL, "no"), NULL; }

/* A backward that fails changes no gradient, not even a retained one. */
TEST(a_failed_backward_keeps_nothing)
{
    tn_tensor *x = vector(2, 1), *a = tn_exp(x), *y = tn_sum(tn_mul_scalar(a, 3));
    tn_retain_grad(a);
    tn_on_grad(x, refuses, NULL);
    ck_assert_int_eq(tn_backward(y, .retain = true), TN_EINVAL);
    tn_clear_error();
    ck_assert_ptr_null(tn_grad(a));
    ck_assert_ptr_null(tn_grad(x));
}

/* tn_adopt on a leaf that already has a gradient: with another dtype it continues to collect in the new dtype; with
 * another shape the backward raises before anything is attached, and its advice works. */
TEST(adopted_beside_a_gradient)
{
    tn_tensor *x = vector(2, 1), *y = vector(2, 1);
    tn_backward(tn_sum(tn_add(y, x)));
    tn_adopt(x, tn_ones(TN_SHAPE(2)));
    ck_assert_int_eq(tn_backward(tn_add(tn_sum(y), tn_sum(x))), TN_OK);
    ck_assert_double_eq(tn_get(tn_grad(x), 1), 2);
    ck_assert_int_eq(tn_dtype_of(tn_grad(x)), TN_F32);
    tn_adopt(x, tn_ones(TN_SHAPE(3)));
    tn_backward(tn_add(tn_sum(y), tn_sum(x)));
    ck_error(TN_ESTATE,
             "backward: a leaf is [3] now, and its old gradient is [2]: tn_adopt replaced its tensor; tn_zero_grad it "
             "first");
    ck_assert_double_eq(tn_get(tn_grad(y), 1), 2);
    tn_zero_grad(x);
    ck_assert_int_eq(tn_backward(tn_add(tn_sum(y), tn_sum(x))), TN_OK);
    ck_assert_double_eq(tn_get(tn_grad(x), 2), 1);
    tn_tensor *l = tn_add(tn_sum(y), tn_sum(x));
    tn_adopt(x, tn_ones(TN_SHAPE(2)));
    tn_zero_grad(x);
    tn_backward(l);
    ck_error(
        TN_ESTATE,
        "backward: a leaf is [2] now, and its gradient is [3]: tn_adopt replaced its tensor; adopt before the forward "
        "pass or after the backward");
}

/* ---- changes that the tape would not notice -------------------------------------------------------------------- */

TEST(a_view_of_a_leaf_is_the_leaf)
{
    tn_tensor *w = vector(6, -3), *v = tn_transpose(tn_view(w, TN_SHAPE(2, 3)), 0, 1),
              *copy = tn_reshape(v, TN_SHAPE(6));
    ck_refused(
        tn_relu_(v), TN_ESTATE,
        "relu_: the target is a view, and its base collects gradients and cannot be overwritten on the tape; change "
        "it between tn_no_grad_begin() and tn_scope_end()");
    ck_assert_double_eq(tn_get(w, 0), -3);
    ck_assert_ptr_eq(tn_relu_(copy), copy); /* does not share memory */
    tn_scope s = tn_no_grad_begin();
    ck_assert_ptr_eq(tn_relu_(v), v);
    tn_scope_end(s);
    ck_assert_double_eq(tn_get(w, 0), 0);
}

TEST(writers_respect_the_tape)
{
    tn_tensor *x = vector(2, 1), *h = tn_mul_scalar(x, 2);
    ck_fails(
        tn_fill(h, 0), TN_ESTATE,
        "tn_fill: this tensor is the result of a recorded op, and the tape would miss the change; use tn_copy_, or "
        "change it inside "
        "tn_no_grad_begin() and tn_scope_end()");
    ck_assert_ptr_null(tn_data_mut(h));
    tn_clear_error();
    ck_assert_double_eq(tn_get(h, 0), 2);
    tn_copy_(h, tn_scalar(0));
    ck_assert_int_eq(tn_backward(tn_sum(h)), TN_OK);
    ck_assert_ptr_null(tn_grad(x)); /* no gradient reaches it */
}

TEST(anomaly_and_in_place)
{
    tn_detect_anomaly(true);
    tn_tensor *x = vector(2, 1), *h = tn_mul_scalar(x, -1);
    ck_refused(tn_sqrt_(h), TN_ENUMERIC, "sqrt: the result has the first NaN, at [0] (step 0)");
    ck_assert_double_eq(tn_get(h, 0), -1); /* unchanged, with the same node */
    tn_detect_anomaly(false);
    tn_backward(tn_sum(h));
    ck_assert_double_eq(tn_get(tn_grad(x), 0), -1);
}

/* A view computes nothing, and its memory may not have been written yet: the op that computes with it is named. */
TEST(anomaly_and_views)
{
    tn_tensor *x = tn_full(TN_SHAPE(4), NAN);
    tn_detect_anomaly(true);
    ck_assert_int_eq(tn_fill(tn_narrow(x, 0, 0, 2), 1), TN_OK);
    ck_assert_int_eq(tn_fill(tn_reshape(tn_narrow(x, 0, 2, 2), TN_SHAPE(2, 1)), 2), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(x)), 6);
    ck_refused(tn_neg(tn_narrow(tn_full(TN_SHAPE(4), NAN), 0, 0, 2)), TN_ENUMERIC,
               "neg: the result has the first NaN, at [0] (step 0)");
    tn_detect_anomaly(false);
}

TEST(anomaly_in_a_sum_of_gradients)
{
    tn_tensor *x = leaf(1), *y = leaf(1), *most = tn_scalar(1.5e308);
    tn_detect_anomaly(true);
    tn_backward(tn_add(x, y), .seed = most);
    tn_backward(tn_add(tn_mul_scalar(y, 0), x), .seed = most);
    ck_error(TN_ENUMERIC, "backward: the sum of a leaf's gradients has the first Inf, at [] (step 1)");
    tn_detect_anomaly(false);
    ck_assert_double_eq(tn_item(tn_grad(x)), 1.5e308);
    ck_assert_double_eq(tn_item(tn_grad(y)), 1.5e308);
}

/* ---- custom ops ------------------------------------------------------------------------------------------------- */

static void copies(tn_ctx *c) { (void)!tn_copy_from(c->out[0], c->in[0]); }
static void exp_by_hand(tn_ctx *c)
{
    const double *x = tn_data(c->in[0]);
    double       *y = tn_data_mut(c->out[0]);
    for (int64_t i = 0; y && i < tn_numel(c->in[0]); i++) y[i] = exp(x[i]);
}
static void exp_of_ops(tn_ctx *c) { (void)!tn_copy_from(c->out[0], tn_exp(c->in[0])); }
static void exp_back(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], b->out[0]); }
static void no_back(tn_back *b) { (void)b; }
static bool says_nothing(tn_ctx *c) { return (void)c, true; }
static bool like_the_second(tn_ctx *c) { return tn_infer_like(c, 0, 1); }
static bool any_results(tn_ctx *c)
{
    for (int i = 0; i < c->nout; i++) tn_infer_like(c, i, 0);
    return true;
}
static bool no_copy(void *to, const void *from) { return (void)to, (void)from, false; }
static void kernel(int64_t n, void *const *y, const void *const *x, const void *args)
{
    (void)args;
    memcpy(y[0], x[0], (size_t)n * sizeof(float));
}
static void maps(tn_ctx *c) { tn_op_map(kernel, NULL, 1, c->out, c->nin, c->in, NULL); }

#define OP(id, ...) static const tn_op id = {.size = sizeof(tn_op), .name = #id, __VA_ARGS__}
OP(by_hand, .inputs = 1, .saves = TN_SAVE_OUT(0), .infer = like_input, .forward = exp_by_hand, .backward_ops = exp_back,
   .inplace = true);
OP(of_ops, .inputs = 1, .saves = TN_SAVE_OUT(0), .infer = like_input, .forward = exp_of_ops, .backward_ops = exp_back);
OP(no_args, .inputs = 1, .infer = like_input, .forward = copies, .backward_ops = no_back, .args_size = 8,
   .args_copy = no_copy);
OP(no_shape, .inputs = 1, .infer = says_nothing, .forward = copies);
OP(wrong_like, .inputs = 1, .infer = like_the_second, .forward = copies);
OP(any_number, .inputs = TN_ANY, .outputs = TN_ANY, .infer = any_results, .forward = copies);
OP(mapped, .inputs = TN_ANY, .infer = like_input, .forward = maps);
OP(optional, .inputs = 1, .optional = 1, .infer = says_nothing, .forward = copies, .inplace = true);
OP(composed, .inputs = 1, .infer = like_input, .compose = drawing, .inplace = true);
static const tn_op sizeless = {.name = "sizeless"};
OP(empty, .inputs = 1);

/* A forward may write through tn_data_mut or call ops; neither counts as an unrecorded change. */
TEST(user_forwards)
{
    tn_tensor *x = vector(3, 0), *h = tn_mul_scalar(x, 2);
    ck_assert_int_eq(tn_backward(tn_sum(tn_apply(&by_hand, x))), TN_OK);
    CLOSE(tn_get(tn_grad(x), 2), exp(2));
    ck_assert_ptr_eq(tn_op_apply_(&by_hand, NULL, 1, &h), h);
    tn_zero_grad(x);
    ck_assert_int_eq(tn_backward(tn_sum(h)), TN_OK);
    CLOSE(tn_get(tn_grad(x), 2), 2 * exp(4));
    tn_zero_grad(x);
    ck_assert_int_eq(tn_backward(tn_sum(tn_apply(&of_ops, x))), TN_OK);
    CLOSE(tn_get(tn_grad(x), 2), exp(2));
    CLOSE(tn_get(tn_grad_wrt(tn_sum(tn_grad_wrt(tn_sum(tn_apply(&by_hand, x)), x, true)), x, false), 1), exp(1));
}

TEST(user_ops_filled_in_wrongly)
{
    tn_tensor *x = vector(3, 0), *none = NULL, *f = tn_ones(TN_SHAPE(3)), *out[300];
    double     args = 0;
    ck_refused(tn_apply_args(&no_args, &args, x), TN_ENOMEM, "no_args: its args could not be copied");
    ck_refused(tn_apply(&no_shape, x), TN_EINVAL, "no_shape: its infer left result 0 without a shape");
    ck_refused(tn_apply(&wrong_like, x), TN_EINVAL,
               "wrong_like: its infer makes result 0 of 1 like input 1 of 1, which does not exist");
    ck_fails(tn_op_call(&any_number, 1, &f, 300, out, NULL), TN_EINVAL,
             "any_number: 300 results were requested; an op has 1 to 255");
    ck_assert_int_eq(tn_op_call(&any_number, 1, &f, 0, out, NULL), TN_EINVAL);
    tn_clear_error();
    ck_fails(tn_op_call(&any_number, 1, &f, 1, NULL, NULL), TN_EINVAL, "any_number: the list of results, out, is NULL");
    ck_refused(tn_op_apply(&any_number, NULL, 2, NULL), TN_EINVAL, "any_number: the list of 2 inputs is NULL");
    ck_assert_ptr_null(tn_op_apply(&any_number, NULL, -1, &x));
    tn_clear_error();
    ck_refused(tn_op_apply_(&optional, NULL, 1, &none), TN_EINVAL, "optional_: the target is NULL");
    ck_refused(tn_op_apply_(&composed, NULL, 1, &f), TN_EINVAL, "composed: has no in-place form");
    ck_refused(tn_apply(&sizeless, f), TN_EINVAL, "sizeless: the op's field .size is 0; set .size = sizeof(tn_op)");
    ck_refused(tn_apply(&empty, f), TN_EINVAL, "empty: the op has no .infer or no .forward");
    ck_fails(tn_op_call(NULL, 0, NULL, 0, NULL, NULL), TN_EINVAL, "tn_op_call: the op is NULL or has no name");
}

TEST(op_map_checks_its_operands)
{
    tn_tensor *f = tn_ones(TN_SHAPE(3)), *many[13];
    for (int i = 0; i < 13; i++) many[i] = f;
    ck_assert_double_eq(tn_get(tn_apply(&mapped, f, tn_ones(TN_SHAPE(1))), 2), 1);
    tn_apply(&mapped, tn_ones_of(TN_I64, TN_SHAPE(3)));
    ck_error(TN_EDTYPE, "tn_op_map: no kernel for integers alone; reject it in the op's infer");
    tn_apply(&mapped, tn_ones_of(TN_F64, TN_SHAPE(3)));
    ck_error(TN_EDTYPE, "tn_op_map: no kernel for f64; reject it in the op's infer");
    tn_apply(&mapped, f, tn_ones(TN_SHAPE(2)));
    ck_error(TN_ESHAPE, "tn_op_map: input 1 is [2] and does not fit result 0, [3]");
    tn_op_apply(&mapped, NULL, 12, many);
    ck_error(TN_EINVAL, "tn_op_map: takes 1 or more results and 12 operands in all, got 1 results and 12 inputs");
    tn_op_map(kernel, kernel, 1, NULL, 0, NULL, NULL);
    ck_error(
        TN_EINVAL,
        "tn_op_map: takes 1 or more results and 12 operands in all, got 1 results and 0 inputs, and a list is NULL");
    tn_op_map(kernel, kernel, 1, (tn_tensor *[]){NULL}, 0, NULL, NULL);
    ck_error(TN_EINVAL, "tn_op_map: result 0 is NULL and does not fit result 0, NULL");
}

/* ---- memory and threads ----------------------------------------------------------------------------------------- */

/* If any allocation fails, including the growth of the stack of scopes, gradients are delivered once. */
BARE_TEST(handing_over)
{
    enum { MANY = 70 }; /* more than the initial capacity of the stack */
    bool reached = true;
    for (int64_t n = 0; reached; n++) {
        tn_faulty_memory_begin();
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = leaf(2), *y = tn_mul(x, x), *g[MANY], *wrt[MANY];
        for (int i = 0; i < MANY; i++) wrt[i] = i == 1 ? y : x;
        tn_fail_memory(n, false);
        tn_grad_of(y, MANY, wrt, g);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        ck_assert_int_eq(tn_error(), reached ? TN_ENOMEM : TN_OK);
        for (int i = 0; i < MANY; i++) ck_assert(reached ? !g[i] : tn_item(g[i]) == (i == 1 ? 1 : 4));
        tn_clear_error();
        tn_scope_end(s);
        tn_faulty_memory_end();
    }
}

static pthread_key_t late;
static void          drop_late(void *t) { tn_drop(t); }
static void         *leaves_one(void *unused)
{
    (void)unused;
    tn_scope s = tn_scope_begin();
    pthread_setspecific(late, tn_keep(tn_zeros(TN_SHAPE(3))));
    tn_scope_end(s);
    tn_ones(TN_SHAPE(100)), tn_no_grad_begin(), tn_scope_begin(); /* and scopes that are never ended */
    return NULL;
}

/* A destructor of the user's thread data may run after Tenon's. */
BARE_TEST(threads_end_in_any_order)
{
    tn_faulty_memory_begin();
    tn_set_cache_limit(SIZE_MAX);
    tn_drop(tn_keep(tn_scalar(0))); /* creates Tenon's key first */
    ck_assert_int_eq(pthread_key_create(&late, drop_late), 0);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        ck_assert_int_eq(pthread_create(&t, NULL, leaves_one, NULL), 0);
        pthread_join(t, NULL);
    }
    pthread_key_delete(late);
    tn_scope_end((tn_scope){.mark = 0});
    tn_faulty_memory_end(); /* fails if a block is not freed */
}

/* Each thread numbers its passes from 1, so another thread's node may have the number of the pass that reaches it. */
static void *reads_on(void *y)
{
    tn_tensor *x = leaf(1);
    while (tn__tape.runs + 1 < tn__node_of(y)->run) tn_backward(x);
    tn_backward(tn_mul(x, y));
    ck_error(TN_ESTATE,
             "tn_backward: square was recorded by another thread; a tape belongs to the thread that recorded it");
    return NULL;
}

TEST(a_tape_of_another_thread)
{
    tn_tensor *x = leaf(2), *y = tn_square(x);
    pthread_t  t;
    ck_assert_int_eq(tn_backward(y, .retain = true), TN_OK);
    ck_assert_int_eq(pthread_create(&t, NULL, reads_on, y), 0);
    pthread_join(t, NULL);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    ck_assert_double_eq(tn_item(tn_grad(x)), 8);
}

static void *meddles(void *y)
{
    int calls = 0;
    tn_on_grad(y, twice, &calls);
    ck_error(TN_ESTATE,
             "tn_on_grad: mul was recorded by another thread; a tape belongs to the thread that recorded it");
    return NULL;
}

TEST(hooks_belong_to_the_tapes_thread)
{
    tn_tensor *x = leaf(2), *y = tn_mul(x, x);
    pthread_t  t;
    ck_assert_int_eq(pthread_create(&t, NULL, meddles, y), 0);
    pthread_join(t, NULL);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    ck_assert_double_eq(tn_item(tn_grad(x)), 4);
}

#ifdef __linux__
/* A quota or an affinity that changes while the program runs is found by later ops: here the affinity. */
TEST(limits_are_read_again)
{
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    const int before = tn_threads();
    if (before < 2) {
        fprintf(stderr, "skipped: one core\n");
        return;
    }
    CPU_ZERO(&one);
    for (size_t cpu = 0; !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    for (int i = 0; i < 2; i++) {
        const int want = i ? before : 1;
        ck_assert_int_eq(sched_setaffinity(0, sizeof all, i ? &all : &one), 0);
        nanosleep(&(struct timespec){1, 100000000}, NULL);
        ck_assert_int_eq(tn_threads(), i ? 1 : before); /* not within an op: only ops change it */
        const tn_scope s = tn_scope_begin();
        for (int k = 0; k < 1000; k++) tn_add_scalar(tn_zeros(TN_SHAPE(1)), 1);
        tn_scope_end(s);
        ck_assert_int_eq(tn_threads(), want);
    }
    tn_set_threads(3); /* set by the user: not a default */
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    for (int k = 0; k < 1000; k++) tn_add_scalar(tn_zeros(TN_SHAPE(1)), 1);
    ck_assert_int_eq(tn_threads(), 3);
    tn_set_threads(0);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
#endif

/* ---- gradients by hand ------------------------------------------------------------------------------------------- */

static tn_tensor *no_hook(tn_tensor *g, void *user)
{
    (void)user;
    ck_abort_msg("a hook was called");
    return g;
}

BARE_TEST(gradients_that_are_set)
{
    tn_tensor *w = tn_requires_grad(tn_ones(TN_SHAPE(2, 3))), *g = tn_full_of(TN_F64, TN_SHAPE(3, 2), 4);
    tn_on_grad(w, no_hook, NULL);
    ck_assert_int_eq(tn_set_grad(w, tn_transpose(g, 0, 1)), TN_OK);
    tn_set(g, 0, 5.0); /* it was copied */
    ck_assert(tn_dtype_of(tn_grad(w)) == TN_F32 && tn_get(tn_grad(w), 0) == 4);
    ck_assert_int_eq(tn_set_grad(w, tn_mul_scalar(tn_grad(w), 0.5)), TN_OK);
    ck_assert(tn_get(tn_grad(w), 5) == 2);
    tn_set_grad(w, g);
    ck_error(TN_ESHAPE, "tn_set_grad: the gradient is [3, 2], but must be [2, 3], like the leaf");
    tn_set_grad(g, g);
    ck_error(TN_ESTATE, "tn_set_grad: this tensor is not a leaf (tn_requires_grad)");
    tn_set_grad(w, NULL);
    ck_error(TN_EINVAL, "tn_set_grad: the gradient is NULL");
    ck_assert(tn_get(tn_grad(w), 5) == 2);
}
