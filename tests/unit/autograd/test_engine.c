#define _POSIX_C_SOURCE 200809L
/* test_engine.c — the tape and its engine: collected gradients, failures, their messages, and that nothing leaks. */
#include "autograd/autograd.h"
#include "core/core.h"
#include "tests/common/check_main.h"

#include <pthread.h>

static tn_tensor *leaf(double v) { return tn_requires_grad(tn_scalar_of(TN_F64, v)); }
static tn_tensor *vector(int n, double from)
{
    tn_tensor *t = tn_arange_of(TN_F64, from, from + n, 1);
    return tn_requires_grad(t);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

TEST(product_rule)
{
    tn_tensor *x = leaf(3), *y = leaf(4), *z = tn_add(tn_mul(x, y), tn_mul(x, x));
    ck_assert_int_eq(tn_backward(z), TN_OK);
    ck_assert_double_eq(tn_item(tn_grad(x)), 4 + 6);
    ck_assert_double_eq(tn_item(tn_grad(y)), 3);
    ck_assert_ptr_null(tn_grad(z));
}

TEST(gradients_add_up)
{
    tn_tensor *x = leaf(2);
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(tn_backward(tn_mul(x, x)), TN_OK);
        ck_assert_double_eq(tn_item(tn_grad(x)), 4 * i);
    }
    tn_zero_grad(x);
    ck_assert_ptr_null(tn_grad(x));
}

TEST(seeds_and_roots)
{
    tn_tensor *x = vector(3, 1), *seed = tn_arange_of(TN_F64, 10, 13, 1);
    ck_assert_int_eq(tn_backward(tn_mul(x, x), .seed = seed), TN_OK);
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tn_get(tn_grad(x), i), 2 * (1 + i) * (10 + i));
    tn_zero_grad(x);
    tn_tensor *roots[2] = {tn_sum(x), tn_sum(tn_mul(x, x))};
    ck_assert_int_eq(tn_backward(NULL, .count = 2, .roots = roots, .seeds = (tn_tensor *[]){NULL, NULL}), TN_OK);
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tn_get(tn_grad(x), i), 1 + 2 * (1 + i));
    tn_zero_grad(x); /* a leaf can be a root */
    ck_assert_int_eq(tn_backward(x, .seed = seed), TN_OK);
    ck_assert_double_eq(tn_get(tn_grad(x), 2), 12);
    ck_assert(!tn_shares_memory(tn_grad(x), seed));
}

/* add passes one gradient to both: the leaves must not share its memory */
TEST(leaves_own_their_gradients)
{
    tn_tensor *a = vector(3, 1), *b = vector(3, 2);
    tn_backward(tn_sum(tn_add(a, b)));
    ck_assert(tn_is_contiguous(tn_grad(a)) && tn_is_contiguous(tn_grad(b)));
    ck_assert(!tn_shares_memory(tn_grad(a), tn_grad(b)));
    tn_fill(tn_grad(a), 7);
    ck_assert_double_eq(tn_get(tn_grad(b), 0), 1);
}

TEST(diamond)
{
    tn_tensor *x = leaf(1.5), *a = tn_exp(x), *b = tn_mul(a, a), *c = tn_mul(a, b), *d = tn_add(b, c);
    tn_backward(d); /* e^2x + e^3x */
    ck_assert_double_eq_tol(tn_item(tn_grad(x)), 2 * exp(3) + 3 * exp(4.5), 1e-10);
}

TEST(grad_of_chosen)
{
    tn_tensor *x = leaf(3), *w = leaf(5), *h = tn_mul(x, w), *y = tn_mul(h, h), *g[4];
    ck_assert_int_eq(tn_grad_of(y, 4, ((tn_tensor *[]){x, h, w, x}), g), TN_OK);
    ck_assert_double_eq(tn_item(g[0]), 2 * 15 * 5);
    ck_assert_double_eq(tn_item(g[1]), 2 * 15);
    ck_assert_double_eq(tn_item(g[2]), 2 * 15 * 3);
    ck_assert_double_eq(tn_item(g[3]), 2 * 15 * 5);
    ck_assert_ptr_null(tn_grad(x));
    ck_assert_ptr_null(tn_grad(w));
    tn_tensor *other = leaf(1);
    y = tn_mul(x, x);
    ck_assert_int_eq(tn_grad_of(y, 2, ((tn_tensor *[]){other, x}), g), TN_OK);
    ck_assert_ptr_null(g[0]);
    ck_assert_double_eq(tn_item(g[1]), 6);
    g[0] = tn_grad_wrt(x, x, false); /* the gradient of x by itself */
    ck_assert_double_eq(tn_item(g[0]), 1);
}

TEST(third_derivative)
{
    tn_tensor *x = leaf(0.7),
              *y = tn_mul(tn_exp(x), tn_mul(x, x)); /* x²eˣ: ' (x²+2x)eˣ  '' (x²+4x+2)eˣ  ''' (x²+6x+6)eˣ */
    tn_tensor *d1 = tn_grad_wrt(y, x, true), *d2 = tn_grad_wrt(d1, x, true), *d3 = tn_grad_wrt(d2, x, false);
    ck_assert_double_eq_tol(tn_item(d1), (0.49 + 1.4) * exp(0.7), 1e-12);
    ck_assert_double_eq_tol(tn_item(d2), (0.49 + 2.8 + 2) * exp(0.7), 1e-12);
    ck_assert_double_eq_tol(tn_item(d3), (0.49 + 4.2 + 6) * exp(0.7), 1e-12);
}

/* A gradient penalty: the gradient is part of the loss, and the leaves collect. */
TEST(penalty)
{
    tn_tensor *x = leaf(2), *w = leaf(3), *y = tn_mul(w, tn_mul(x, x));
    tn_tensor *g = tn_grad_wrt(y, x, true);             /* 2wx */
    ck_assert_int_eq(tn_backward(tn_mul(g, g)), TN_OK); /* 4w²x² */
    ck_assert_double_eq(tn_item(tn_grad(w)), 8 * 3 * 4);
    ck_assert_double_eq(tn_item(tn_grad(x)), 8 * 9 * 2);
}

TEST(no_grad_and_detach)
{
    tn_tensor *x = leaf(2), *y;
    tn_scope   s = tn_no_grad_begin();
    ck_assert(!tn_grad_enabled());
    y = tn_scope_return(s, tn_mul(x, x));
    ck_assert(tn_grad_enabled());
    ck_assert(!tn_needs_grad(y));
    tn_tensor *d = tn_detach(tn_mul(x, x)), *z = tn_mul(d, x);
    ck_assert(tn_shares_memory(d, tn_detach(d)));
    tn_backward(z);
    ck_assert_double_eq(tn_item(tn_grad(x)), 4);
}

TEST(retained_gradients)
{
    tn_tensor *x = leaf(2), *h = tn_mul(x, x), *y = tn_mul(h, h);
    ck_assert_int_eq(tn_retain_grad(h), TN_OK);
    tn_backward(y);
    ck_assert_double_eq(tn_item(tn_grad(h)), 8);
    ck_assert_ptr_null(tn_grad(y));
    tn_zero_grad(h);
    ck_assert_ptr_null(tn_grad(h));
    x = leaf(2), h = tn_mul(x, x), y = tn_mul(h, h);
    tn_retain_grad(h);
    tn_backward(y, .retain = true), tn_backward(y); /* the second adds, as for a leaf */
    ck_assert_double_eq(tn_item(tn_grad(h)), 16);
    ck_assert_double_eq(tn_item(tn_grad(x)), 64);
}

static tn_tensor *halve(tn_tensor *g, void *calls) { return ++*(int *)calls, tn_mul_scalar(g, 0.5); }
static tn_tensor *look(tn_tensor *g, void *seen) { return *(double *)seen = tn_item(g), NULL; }
static tn_tensor *wrong(tn_tensor *g, void *user) { return (void)g, (void)user, tn_zeros(TN_SHAPE(2, 2)); }

TEST(hooks)
{
    int        calls = 0;
    double     seen = 0;
    tn_tensor *x = leaf(2), *h = tn_mul(x, x), *y = tn_mul(h, h);
    tn_on_grad(h, halve, &calls);
    tn_on_grad(x, look, &seen);
    tn_backward(y); /* dy/dh = 8, halved; dh/dx = 4 */
    ck_assert_int_eq(calls, 1);
    ck_assert_double_eq(seen, 16);
    ck_assert_double_eq(tn_item(tn_grad(x)), 16);
    tn_tensor *z = tn_mul(x, x);
    tn_on_grad(z, wrong, NULL);
    tn_backward(tn_mul(z, z));
    ck_error(TN_ESHAPE, "mul: a hook returned f32 [2, 2] for a gradient that is f64 []");
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

TEST(needs_a_scalar)
{
    tn_backward(tn_mul(vector(3, 0), vector(3, 1)));
    ck_error(TN_ESHAPE,
             "tn_backward: the root has shape [3], so it needs a seed of that shape; or reduce it first with tn_sum or "
             "tn_mean");
    tn_backward(tn_mul(leaf(1), leaf(2)), .seed = tn_ones_of(TN_F64, TN_SHAPE(2)));
    ck_error(TN_ESHAPE, "tn_backward: the seed is f64 [2], the root f64 []; they must agree");
    tn_backward(tn_ones(TN_SHAPE(1)));
    ck_error(
        TN_ESTATE,
        "tn_backward: the root depends on no tensor that requires grad; mark one with tn_requires_grad, and compute "
        "the root outside tn_no_grad_begin()");
    tn_backward(NULL);
    ck_error(TN_EINVAL, "tn_backward: the root is NULL");
    tn_requires_grad(tn_arange(3));
    ck_error(TN_EDTYPE, "tn_requires_grad: only floating tensors have gradients, this one is i64");
}

TEST(spent_tapes)
{
    tn_tensor *x = leaf(2), *y = tn_mul(x, x);
    tn_backward(y, .retain = true);
    tn_backward(y);
    ck_assert_double_eq(tn_item(tn_grad(x)), 8);
    tn_backward(y);
    ck_error(TN_ESTATE,
             "tn_backward: the tape of mul was already read and freed; set .retain = true, or run the forward again");
}

TEST(changed_in_place)
{
    tn_tensor *x = vector(3, 1), *a = tn_exp(x), *y = tn_mul(a, a);
    tn_relu_(a);
    tn_backward(tn_sum(y));
    ck_error(TN_ESTATE,
             "backward: relu_ changed in place the tensor saved by mul (input 0); use relu, or move it before the mul");
    a = tn_exp(x);
    y = tn_mul(a, x);
    tn_scope s = tn_no_grad_begin();
    tn_set(a, 0, 5);
    tn_scope_end(s);
    tn_backward(tn_sum(y));
    ck_error(
        TN_ESTATE,
        "backward: tn_set changed in place the tensor saved by mul (input 0); change it before the mul, or after the "
        "backward");
    ck_assert_ptr_null(tn_grad(x));
    tn_add_(x, tn_ones_like(x));
    ck_error(TN_ESTATE, "add_: this tensor collects gradients and cannot be overwritten on the tape; change it between "
                        "tn_no_grad_begin() and tn_scope_end()");
    tn_set_name(x, "w");
    tn_add_(x, tn_ones_like(x));
    ck_error(
        TN_ESTATE,
        "add_: 'w' collects gradients and cannot be overwritten on the tape; change it between tn_no_grad_begin() and "
        "tn_scope_end()");
}

TEST(in_place_is_recorded)
{
    tn_tensor *x = vector(3, 1), *y = tn_mul_scalar(x, 2);
    ck_assert_ptr_eq(tn_mul_(y, x), y); /* 2x² */
    ck_assert_ptr_eq(tn_exp_(y), y);    /* exp(2x²) */
    tn_backward(tn_sum(y));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(tn_get(tn_grad(x), i), 4 * (1 + i) * exp(2 * (1 + i) * (1 + i)), 1e-6);
}

/* y = x · w saves x; then y is added to x: without care the node would own itself and never be freed */
TEST(in_place_makes_no_cycle)
{
    tn_tensor *x = tn_exp(vector(3, 0)), *y = tn_exp(x);
    tn_add_(x, y);
    ck_assert_int_eq(tn_error(), TN_OK);
}

TEST(old_views)
{
    tn_tensor *w = vector(3, 1), *x = tn_zeros_of(TN_F64, TN_SHAPE(3)), *view = tn_reshape(x, TN_SHAPE(3, 1));
    tn_add_(x, w); /* now x and all other views of its memory are on the tape */
    tn_backward(tn_sum(tn_exp(view)));
    ck_assert_double_eq_tol(tn_get(tn_grad(w), 1), exp(2), 1e-12);
}

/* ---- custom ops -------------------------------------------------------------------------------------------------- */

static void cube_f64(int64_t n, void *const *y, const void *const *x, const void *args)
{
    (void)args;
    for (int64_t i = 0; i < n; i++) ((double *)y[0])[i] = pow(((const double *)x[0])[i], 3);
}
static void cube_f32(int64_t n, void *const *y, const void *const *x, const void *args)
{
    (void)args;
    for (int64_t i = 0; i < n; i++) ((float *)y[0])[i] = powf(((const float *)x[0])[i], 3);
}
static bool like_input(tn_ctx *c) { return tn_infer_like(c, 0, 0); }
static void cube_forward(tn_ctx *c) { tn_op_map(cube_f32, cube_f64, 1, c->out, 1, c->in, NULL); }
static void cube_backward(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_mul_scalar(tn_mul(b->in[0], b->in[0]), 3)); }

static const tn_op cube = {.size = sizeof(tn_op),
                           .name = "cube",
                           .inputs = 1,
                           .saves = TN_SAVE_IN(0),
                           .infer = like_input,
                           .forward = cube_forward,
                           .backward_ops = cube_backward};
static const tn_op one_way = {
    .size = sizeof(tn_op), .name = "one_way", .inputs = 1, .infer = like_input, .forward = cube_forward};
static const tn_op first_only = {.size = sizeof(tn_op),
                                 .name = "first_only",
                                 .inputs = 1,
                                 .saves = TN_SAVE_IN(0),
                                 .infer = like_input,
                                 .forward = cube_forward,
                                 .backward = cube_backward};
static const tn_op other_version = {
    .size = sizeof(tn_op) + 8, .name = "newer", .inputs = 1, .infer = like_input, .forward = cube_forward};

TEST(user_ops)
{
    tn_tensor *x = vector(4, -1);
    tn_backward(tn_sum(tn_apply(&cube, x)));
    ck_assert_double_eq(tn_get(tn_grad(x), 3), 12);
    tn_apply(&one_way, x);
    ck_error(TN_EUNSUPPORTED,
             "one_way: has no backward, so it cannot be recorded; give the op one, or call it on tn_detach(x) or after "
             "tn_no_grad_begin()");
    ck_assert_ptr_nonnull(tn_apply(&one_way, tn_detach(x)));
    ck_refused(tn_grad_wrt(tn_sum(tn_apply(&first_only, x)), x, true), TN_EUNSUPPORTED,
               "first_only: has no backward made of ops, so its gradient cannot be differentiated; give the op a "
               ".backward_ops");
    tn_apply(&other_version, x);
    ck_error_code(TN_EUNSUPPORTED);
    tn_apply(&cube, NULL);
    ck_error(TN_EINVAL, "cube: input 0 is NULL");
    tn_apply(&cube, x, x);
    ck_error(TN_EINVAL, "cube: takes 1 inputs, got 2");
}

/* y = x₀: the gradients of inputs 0 and 2 are the same tensor */
static void thrice_forward(tn_ctx *c) { tn_copy_from(c->out[0], c->in[0]); }
static void thrice_backward(tn_back *b)
{
    b->gx[0] = b->gx[2] = tn_mul_scalar(b->gy[0], 2);
    b->gx[1] = tn_mul_scalar(b->gy[0], 5);
}
static const tn_op thrice = {.size = sizeof(tn_op),
                             .name = "thrice",
                             .inputs = 3,
                             .infer = like_input,
                             .forward = thrice_forward,
                             .backward = thrice_backward};
static tn_tensor  *hold(tn_tensor *g, void *held) { return *(tn_tensor **)held = tn_keep(g), NULL; }

/* A gradient that no other code holds is passed on and overwritten, one that is held is not. */
TEST(gradients_move)
{
    tn_tensor *x = vector(3, 1), *y = vector(3, 2), *seed = tn_ones_of(TN_F64, TN_SHAPE(3)), *held = NULL;
    tn_backward(tn_apply(&thrice, x, x, y), .seed = seed);
    ck_assert_double_eq(tn_get(tn_grad(x), 1), 7);
    ck_assert_double_eq(tn_get(tn_grad(y), 1), 2);
    x = vector(3, 1);
    tn_tensor *a = tn_mul_scalar(x, 2), *b = tn_mul_scalar(a, 3), *c = tn_mul_scalar(b, 5);
    tn_on_grad(b, hold, &held), tn_retain_grad(a);
    tn_backward(tn_neg(tn_relu(c)), .seed = seed);
    ck_assert_double_eq(tn_get(seed, 1), 1);
    ck_assert_double_eq(tn_get(held, 1), -5);
    ck_assert_double_eq(tn_get(tn_grad(a), 1), -15);
    ck_assert_double_eq(tn_get(tn_grad(x), 1), -30);
    tn_drop(held);
    x = vector(3, 1), y = vector(3, 2);
    a = tn_add(tn_mul_scalar(x, 2), tn_mul_scalar(y, 3)); /* one gradient for both */
    tn_backward(tn_mul_scalar(a, 7), .seed = seed);
    ck_assert_double_eq(tn_get(tn_grad(x), 1), 14);
    ck_assert_double_eq(tn_get(tn_grad(y), 1), 21);
}

/* ---- gradient checkpointing -------------------------------------------------------------------------------------- */

static tn_tensor *segment(tn_tensor *const *in, int n, void *user)
{
    (void)n;
    tn_tensor *noise = tn_uniform_of(TN_F64, tn_shape_of(in[0]), 0.5, 1.5); /* simulates dropout */
    return tn_exp(tn_mul(tn_mul(in[0], noise), tn_mul(in[1], (tn_tensor *)user)));
}

TEST(checkpoint)
{
    tn_tensor *x0 = vector(3, 0), *w = vector(3, 0.25), *b = vector(3, 0.1), *want[3], *got[3];
    for (int pass = 0; pass < 2; pass++) {
        tn_seed(4);
        tn_tensor *x = tn_mul_scalar(x0, 0.5), *in[2] = {x, b};
        tn_tensor *y = pass ? tn_checkpoint(segment, w, 2, in) : segment(in, 2, w);
        tn_tensor *after = tn_uniform_of(TN_F64, TN_SHAPE(3), 0, 1);
        ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, after))), TN_OK);
        tn_tensor **to = pass ? got : want;
        to[0] = tn_clone(tn_grad(x0)), to[1] = tn_clone(tn_grad(w)), to[2] = tn_clone(tn_grad(b));
        tn_zero_grad(x0), tn_zero_grad(w), tn_zero_grad(b);
    }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) ck_assert_double_eq(tn_get(want[k], i), tn_get(got[k], i));
    /* gradients of gradients go through it */
    tn_tensor *d[2];
    for (int pass = 0; pass < 2; pass++) {
        tn_seed(4);
        tn_tensor *in[2] = {x0, b}, *y = tn_sum(pass ? tn_checkpoint(segment, w, 2, in) : segment(in, 2, w));
        d[pass] = tn_grad_wrt(tn_sum(tn_grad_wrt(y, x0, true)), x0, false);
        ck_assert_msg(d[pass] != NULL, "%s", tn_error_message());
    }
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tn_get(d[0], i), tn_get(d[1], i));
}

static tn_tensor *captures(tn_tensor *const *in, int n, void *user) { return (void)n, tn_mul(in[0], user); }
static tn_tensor *matmul_with(tn_tensor *const *in, int n, void *user) { return (void)n, tn_matmul(in[0], user); }
static tn_tensor *product_of(tn_tensor *const *in, int n, void *user)
{
    (void)n;
    return tn_checkpoint(captures, user, 1, in); /* a segment inside a segment: both use the weight */
}
static void write_over(tn_tensor *w)
{
    tn_scope s = tn_no_grad_begin();
    tn_mul_scalar_(w, 3);
    tn_scope_end(s);
}

TEST(checkpoint_of_a_weight_that_changes)
{
    const tn_segment segments[2] = {captures, product_of};
    for (int i = 0; i < 2; i++) {
        tn_tensor *x = vector(3, 0), *w = vector(3, 0.25);
        tn_tensor *y = tn_sum(tn_checkpoint(segments[i], w, 1, &x));
        write_over(w); /* 3 w is not a derivative of x w */
        ck_assert_int_ne(tn_backward(y), TN_OK);
        ck_error(TN_ESTATE,
                 "backward: mul_scalar_ changed a leaf, which the function of tn_checkpoint used and will use again; "
                 "change it before the tn_checkpoint, or after the backward");
        ck_assert(!tn_grad(x) && !tn_grad(w));
        y = tn_sum(tn_checkpoint(segments[i], w, 1, &x));
        ck_assert_int_eq(tn_backward(y), TN_OK);
        for (int k = 0; k < 3; k++) ck_assert_double_eq(tn_get(tn_grad(x), k), tn_get(w, k));
    }
    /* under autocast the op takes a copy of the weight, the same one in both uses */
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2, 3))), *w = tn_requires_grad(tn_ones(TN_SHAPE(3, 2)));
    tn_scope   s = tn_autocast_begin(true);
    tn_matmul(x, w);
    tn_tensor *y = tn_scope_return(s, tn_sum(tn_checkpoint(matmul_with, w, 1, &x)));
    write_over(w);
    ck_assert_int_ne(tn_backward(y), TN_OK);
    ck_error_has(TN_ESTATE, "backward: mul_scalar_ changed a leaf, which the function of tn_checkpoint used");
}

TEST(checkpoint_mistakes)
{
    tn_tensor *x = vector(3, 0), *hidden = tn_exp(x);
    tn_backward(tn_sum(tn_checkpoint(captures, hidden, 1, &x)));
    ck_error(
        TN_ESTATE,
        "tn_checkpoint: the segment uses a result of exp that was recorded outside and is not among its inputs; pass "
        "it as an input");
    ck_assert_ptr_null(tn_grad(x));
    ck_refused(tn_checkpoint(NULL, NULL, 1, &x), TN_EINVAL, "tn_checkpoint: needs a function and an array of inputs");
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static tn_tensor *refuse(tn_tensor *g, void *user)
{
    return (void)g, (void)user, tn_raise(TN_EINVAL, "the hook says no"), NULL;
}

TEST(failed_backward)
{
    tn_tensor *x = vector(3, 1), *w = vector(3, 2);
    tn_seed(9);
    tn_tensor *first[2];
    for (int attempt = 0; attempt < 2; attempt++) {
        tn_tensor *h = tn_mul(x, w);                                        /* the tape starts here ... */
        tn_tensor *y = tn_mul(h, tn_uniform_of(TN_F64, TN_SHAPE(3), 0, 1)); /* ... and this draw comes later */
        first[attempt] = tn_clone(tn_detach(y));
        if (attempt == 0) {
            tn_on_grad(h, refuse, NULL);
            ck_assert_int_eq(tn_backward(tn_sum(y)), TN_EINVAL);
            ck_assert_ptr_null(tn_grad(x));
            ck_assert_ptr_null(tn_grad(w));
            tn_clear_error();
            tn_backward(tn_sum(y));
            ck_assert_int_eq(tn_error(), TN_ESTATE); /* consumed */
            tn_clear_error();
        } else {
            ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
        }
    }
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tn_get(first[0], i), tn_get(first[1], i));
    /* a generator that was seeded again is not restored */
    tn_tensor *y = tn_sum(tn_mul(x, w));
    tn_on_grad(x, refuse, NULL);
    tn_seed(42);
    tn_random_double(tn_current_generator());
    ck_assert_int_eq(tn_backward(y), TN_EINVAL);
    ck_assert_uint_eq(tn_current_generator()->seed, 42);
    ck_assert_uint_eq(tn_current_generator()->position, 1);
    tn_clear_error();
}

TEST(standing_error_stops_all)
{
    tn_tensor *x = leaf(2), *y = tn_mul(x, x);
    tn_raise(TN_EINVAL, "mine");
    ck_assert_ptr_null(tn_mul(x, x));
    ck_assert_int_eq(tn_backward(y), TN_EINVAL);
    ck_assert_ptr_null(tn_grad(x));
    ck_assert_str_eq(tn_error_message(), "mine (2 later calls skipped)");
    tn_clear_error();
    ck_assert_int_eq(tn_backward(y), TN_OK);
}

TEST(anomaly)
{
    tn_detect_anomaly(true);
    tn_tensor *x = tn_requires_grad(tn_full_of(TN_F64, TN_SHAPE(2, 2), 1));
    tn_backward(tn_sum(tn_log(x)));
    tn_zero_grad(x);
    tn_set_at(tn_detach(x), TN_SHAPE(1, 0), 0);
    tn_path_push("encoder"), tn_path_push("norm");
    tn_log(x);
    tn_path_pop(), tn_path_pop();
    ck_error(TN_ENUMERIC, "encoder.norm: log: the result has the first Inf, at [1, 0] (step 1)");
    tn_path_push("decoder");
    tn_tensor *y = tn_sqrt(x);
    tn_path_pop();
    tn_backward(tn_sum(y));
    ck_error(TN_ENUMERIC, "decoder: backward of sqrt: the gradient of input 0 has the first Inf, at [1, 0] (step 1)");
    ck_assert_ptr_null(tn_grad(x));
    tn_detect_anomaly(false);
    ck_assert_ptr_nonnull(tn_log(x));
}

TEST(dot)
{
    tn_tensor *x = tn_set_name(leaf(2), "the \"weight\""), *y = tn_exp(tn_mul(x, x));
    char      *text = NULL;
    size_t     n = 0;
    FILE      *f = open_memstream(&text, &n);
    ck_assert_int_eq(tn_tape_dot(f, y), TN_OK);
    fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "digraph tape {"));
    ck_assert_ptr_nonnull(strstr(text, "label=\"exp\""));
    ck_assert_ptr_nonnull(strstr(text, "label=\"mul\""));
    ck_assert_ptr_nonnull(strstr(text, "the \\\"weight\\\""));
    free(text);
}

/* ---- size and threads -------------------------------------------------------------------------------------------- */

static void *million(void *status)
{
    const int  n = tn_test_slow() ? 20000 : 1000000;
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = leaf(1), *y = x;
    for (int i = 0; i < n; i++) {
        tn_scope inner = tn_scope_begin();
        y = tn_scope_return(inner, tn_add_scalar(y, 1));
    }
    bool good = tn_backward(y) == TN_OK && tn_item(tn_grad(x)) == 1 && tn_item(y) == n + 1;
    y = x; /* and one that is freed unread */
    for (int i = 0; i < n / 2; i++) y = tn_mul(y, x);
    tn_scope_end(s);
    *(bool *)status = good && tn_error() == TN_OK;
    return NULL;
}

TEST(a_million_ops_in_a_small_stack)
{
    pthread_attr_t attr;
    pthread_t      t;
    bool           good = false;
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
    ck_assert_int_eq(pthread_create(&t, &attr, million, &good), 0);
    pthread_join(t, NULL);
    pthread_attr_destroy(&attr);
    ck_assert(good);
}

static void *foreign(void *y)
{
    tn_status s = tn_backward((tn_tensor *)y);
    ck_assert_int_eq(s, TN_ESTATE);
    ck_assert_str_eq(tn_error_message(),
                     "tn_backward: mul was recorded by another thread; a tape belongs to the thread that recorded it");
    return NULL;
}
static void *drop(void *y) { return tn_drop(y), NULL; }

TEST(tapes_belong_to_threads)
{
    tn_tensor *x = leaf(2), *y = tn_mul(x, x);
    pthread_t  t;
    pthread_create(&t, NULL, foreign, y);
    pthread_join(t, NULL);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    tn_scope   s = tn_scope_begin();
    tn_tensor *z = tn_keep(tn_mul(tn_mul(x, x), x));
    tn_scope_end(s);
    pthread_create(&t, NULL, drop, z); /* but any thread may free it */
    pthread_join(t, NULL);
}

static void *worker(void *w)
{
    for (int step = 0; step < 50; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = vector(64, step), *g = tn_grad_wrt(tn_sum(tn_mul(tn_mul(x, x), w)), w, false);
        for (int i = 0; i < 64; i++) ck_assert_double_eq(tn_get(g, i), (double)((step + i) * (step + i)));
        tn_scope_end(s);
    }
    return NULL;
}

TEST(shared_parameters)
{
    tn_tensor *w = vector(64, 0);
    pthread_t  t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, worker, w);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    ck_assert_ptr_null(tn_grad(w));
}

/* From the second step on, a step with the same shapes does not call the allocator. */
TEST(steps_without_malloc)
{
    tn_tensor *w = tn_requires_grad(tn_ones(TN_SHAPE(40, 50)));
    uint64_t   calls = 0;
    for (int step = 0; step < 5; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = tn_ones(TN_SHAPE(30, 40));
        tn_backward(tn_sum(tn_exp(tn_mul_scalar(tn_matmul(x, w), 0.01))));
        tn_zero_grad(w);
        tn_scope_end(s);
        if (step == 1) calls = tn_memory_now().mallocs;
    }
    ck_assert_int_eq(tn_error(), TN_OK);
    if (TN_TEST_CACHE) ck_assert_uint_eq(tn_memory_now().mallocs, calls);
}
