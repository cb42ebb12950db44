/* test_functional.c — tn_functional_call and tn_functional_begin: values and gradients with other tensors in place of
 * parameters, in checkpoints, nested, in two threads, after errors, for second derivatives, and mistakes. */
#include "tenon.h"
#include "tests/common/check_main.h"

#include <pthread.h>

enum { WEIGHTS = 4 };

typedef struct {
    tn_module  base;
    tn_linear *up, *down;
    int        how; /* 0: plain, 1: tn_checkpoint, 2: tn_recomputable */
} net;

static tn_tensor *segment(tn_tensor *const *in, int n, void *user)
{
    net *m = user;
    return (void)n, tn_call(m->down, tn_tanh(tn_call(m->up, in[0])));
}

static tn_tensor *net_forward(net *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *y = m->how == 1   ? tn_checkpoint(segment, m, 1, &x)
                   : m->how == 2 ? tn_recomputable(segment, m, 1, &x)
                                 : segment(&x, 1, m);
    return tn_leave(f, y);
}
TN_FORWARD(net);

static net *net_new(tn_tensor *w[WEIGHTS])
{
    int  n = 0;
    net *m = tn_module_new(net);
    if (!m) return NULL;
    m->up = tn_child(m, "up", tn_linear_new(.in = 3, .out = 4));
    m->down = tn_child(m, "down", tn_linear_new(.in = 4, .out = 2));
    m = tn_built(m);
    ck_assert(m && tn_module_to(m, TN_F64) == TN_OK);
    for (tn_each p = tn_parameters(m); tn_next(&p);) w[n++] = p.tensor;
    ck_assert_int_eq(n, WEIGHTS);
    return m;
}

static tn_tensor *numbers(tn_shape s, int k)
{
    return tn_sin(tn_add_scalar(tn_mul_scalar(tn_to(tn_reshape(tn_arange(tn_shape_numel(s)), s), TN_F64), 1.7), k));
}
static void others(tn_tensor *const w[WEIGHTS], tn_tensor *by[WEIGHTS], int k)
{
    for (int i = 0; i < WEIGHTS; i++) by[i] = numbers(tn_shape_of(w[i]), k + i);
}
static void same(const tn_tensor *a, const tn_tensor *b)
{
    ck_assert_msg(a && b && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)), "%s", tn_error_message());
    for (int64_t i = 0; i < tn_numel(a); i++) ck_assert_double_eq(tn_get(a, i), tn_get(b, i));
}

TEST(values)
{
    tn_tensor *w[WEIGHTS], *by[WEIGHTS], *x = numbers(TN_SHAPE(5, 3), 9);
    net       *m = net_new(w);
    others(w, by, 1);
    tn_tensor *own = tn_call(m, x), *y = tn_functional_call(m, x, WEIGHTS, w, by), *few;
    tn_tensor *want = tn_linear(tn_tanh(tn_linear(x, by[0], by[1])), by[2], by[3]);
    same(y, want);
    same(tn_call(m, x), own); /* restored */
    few = tn_functional_call(m, x, 1, w + 2, by + 2);
    same(few, tn_linear(tn_tanh(tn_call(m->up, x)), by[2], w[3]));
    same(tn_functional_call(m, x, 0, NULL, NULL), own);
    same(tn_functional_call(m, x, WEIGHTS, w, w), own);
    tn_free(m);
}

/* The loss as a function of tensors from which the weights are computed: in[i] are of their shapes. */
static tn_tensor *loss_of(tn_tensor *const *in, int n, void *user)
{
    net       *m = user;
    tn_tensor *w[WEIGHTS], *by[WEIGHTS];
    int        k = 0;
    for (tn_each p = tn_parameters(m); tn_next(&p);) w[k++] = p.tensor;
    for (int i = 0; i < WEIGHTS; i++) by[i] = i < n ? tn_mul_scalar(tn_square(in[i]), 0.5) : w[i];
    return tn_sum(tn_square(tn_functional_call(m, numbers(TN_SHAPE(5, 3), 9), WEIGHTS, w, by)));
}

TEST(gradients)
{
    tn_tensor *w[WEIGHTS], *in[WEIGHTS], *g[3][WEIGHTS], *h[3];
    net       *m = net_new(w);
    tn_budget *b = tn_budget_new((size_t)1 << 30);
    others(w, in, 1);
    for (int i = 0; i < WEIGHTS; i++) in[i] = tn_requires_grad(in[i]);
    for (m->how = 0; m->how < 3; m->how++) { /* plain, and recomputed in the backward */
        tn_status s = tn_gradcheck(loss_of, .count = WEIGHTS, .inputs = in, .user = m, .name = "net", .second = true);
        ck_assert_msg(s == TN_OK, "%d: %s", m->how, tn_error_message());
        if (m->how == 2) ck_assert_int_eq(tn_budget_begin(b, 0), TN_OK);
        tn_grad_of(loss_of(in, WEIGHTS, m), WEIGHTS, in, g[m->how]);
        if (m->how == 2) ck_assert(!tn_budget_again(b) && tn_budget_last(b).recomputed == 1);
        h[m->how] = tn_hvp(loss_of, in[0], numbers(tn_shape_of(in[0]), 5), m);
        for (int i = 0; i < WEIGHTS; i++) same(g[m->how][i], g[0][i]);
        for (int64_t i = 0; i < tn_numel(h[0]); i++) /* the sums of a second derivative have another order */
            ck_assert_double_le(fabs(tn_get(h[m->how], i) - tn_get(h[0], i)), 1e-14);
    }
    for (int i = 0; i < WEIGHTS; i++) ck_assert_ptr_null(tn_grad(w[i]));
    m->how = 1; /* a leaf in place of a weight collects, as the weight would */
    ck_assert_int_eq(tn_backward(tn_sum(tn_functional_call(m, numbers(TN_SHAPE(5, 3), 9), 1, w + 3, in + 3))), TN_OK);
    ck_assert(tn_grad(w[0]) && tn_grad(w[2]) && !tn_grad(w[3]) && tn_get(tn_grad(in[3]), 1) == 5);
    tn_tensor *j = tn_jacobian(loss_of, in[0], m), *one = tn_grad_wrt(loss_of(in, 1, m), in[0], false);
    same(j, one);
    tn_budget_free(b);
    tn_free(m);
}

/* The loss after a step of gradient descent on another loss, from the start values in[]: MAML. */
static tn_tensor *after_a_step(tn_tensor *const *in, int n, void *user)
{
    net       *m = user;
    tn_tensor *w[WEIGHTS], *fast[WEIGHTS], *g[WEIGHTS], *x = numbers(TN_SHAPE(5, 3), 9);
    int        k = 0;
    for (tn_each p = tn_parameters(m); tn_next(&p);) w[k] = p.tensor, fast[k] = in[k], k++;
    tn_tensor *loss = tn_mse_loss(tn_functional_call(m, x, n, w, fast), numbers(TN_SHAPE(5, 2), 3));
    tn_grad_of(loss, n, fast, g, .create_graph = true);
    for (int i = 0; i < n; i++) fast[i] = tn_sub(fast[i], tn_mul_scalar(g[i], 0.3));
    return tn_mse_loss(tn_functional_call(m, tn_neg(x), n, w, fast), numbers(TN_SHAPE(5, 2), 4));
}

TEST(a_step_is_differentiated)
{
    tn_tensor *w[WEIGHTS], *in[WEIGHTS], *g[WEIGHTS];
    net       *m = net_new(w);
    others(w, in, 1);
    for (int i = 0; i < WEIGHTS; i++) in[i] = tn_requires_grad(in[i]);
    for (m->how = 0; m->how < 2; m->how++) { /* compared with differences; the loss itself takes gradients */
        tn_grad_of(after_a_step(in, WEIGHTS, m), WEIGHTS, in, g);
        for (int i = 0; i < WEIGHTS; i++)
            for (int64_t k = 0; k < tn_numel(in[i]); k++) {
                const double x = tn_get(in[i], k), h = 1e-4;
                double       y[2];
                for (int side = 0; side < 2; side++) {
                    const tn_scope s = tn_no_grad_begin();
                    tn_set(in[i], k, side ? x - h : x + h);
                    tn_scope_end(s);
                    y[side] = tn_item(after_a_step(in, WEIGHTS, m));
                }
                const tn_scope s = tn_no_grad_begin();
                tn_set(in[i], k, x);
                tn_scope_end(s);
                ck_assert_msg(fabs((y[0] - y[1]) / (2 * h) - tn_get(g[i], k)) < 1e-7, "%d: %g is not %g", m->how,
                              (y[0] - y[1]) / (2 * h), tn_get(g[i], k));
            }
    }
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < WEIGHTS; i++) tn_copy_from(w[i], in[i]);
    tn_scope_end(s);
    m->how = 0;
    tn_grad_of(after_a_step(in, WEIGHTS, m), WEIGHTS, in, g);
    ck_assert_int_eq(tn_backward(after_a_step(w, WEIGHTS, m)), TN_OK); /* from the weights themselves */
    for (int i = 0; i < WEIGHTS; i++) same(tn_grad(w[i]), g[i]);
    tn_free(m);
}

TEST(nested)
{
    tn_tensor *w[WEIGHTS], *a[WEIGHTS], *b[WEIGHTS], *x = numbers(TN_SHAPE(5, 3), 9);
    net       *m = net_new(w);
    others(w, a, 1), others(w, b, 20);
    const tn_scope s = tn_functional_begin(WEIGHTS, w, a);
    same(tn_functional_call(m, x, 2, w, b), tn_linear(tn_tanh(tn_linear(x, b[0], b[1])), a[2], a[3]));
    same(tn_functional_call(m, x, 2, w, w), tn_linear(tn_tanh(tn_linear(x, a[0], a[1])), a[2], a[3]));
    same(tn_add(w[1], w[1]), tn_add(a[1], a[1])); /* any op */
    ck_assert_double_ne(tn_get(w[1], 0), tn_get(a[1], 0));
    m->how = 1;
    same(tn_functional_call(m, x, 2, w, b), tn_linear(tn_tanh(tn_linear(x, b[0], b[1])), a[2], a[3]));
    tn_scope_end(s);
    same(tn_call(m, x), tn_linear(tn_tanh(tn_linear(x, w[0], w[1])), w[2], w[3]));
    tn_free(m);
}

/* A tape recorded before is read with its own tensors while others replace them. */
TEST(backward_inside)
{
    tn_tensor *w[WEIGHTS], *by[WEIGHTS], *x = numbers(TN_SHAPE(5, 3), 9), *want, *got;
    net       *m = net_new(w);
    others(w, by, 1);
    for (m->how = 0; m->how < 2; m->how++) {
        want = tn_grad_wrt(tn_sum(tn_square(tn_call(m, x))), w[0], true);
        tn_tensor     *loss = tn_sum(tn_square(tn_call(m, x)));
        const tn_scope s = tn_functional_begin(WEIGHTS, w, by);
        got = tn_scope_return(s, tn_grad_wrt(loss, w[0], true));
        same(got, want);
    }
    tn_free(m);
}

TEST(buffers)
{
    tn_batch_norm *m = tn_batch_norm1d_new(.features = 3);
    tn_tensor     *x = tn_uniform(TN_SHAPE(8, 3), 1, 2), *mean = tn_find_tensor(m, "running_mean"), *other;
    other = tn_zeros(TN_SHAPE(3));
    ck_assert_ptr_nonnull(tn_functional_call(m, x, 1, &mean, &other));
    for (int i = 0; i < 3; i++) ck_assert(tn_get(mean, i) == 0 && tn_get(other, i) > 0.09);
    tn_free(m);
}

typedef struct {
    net       *m;
    tn_tensor *w[WEIGHTS];
    int        k;
    bool       good;
} job;

static void *work(void *user)
{
    job *j = user;
    for (int i = 0; i < 50 && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *by[WEIGHTS], *x = numbers(TN_SHAPE(5, 3), j->k);
        others(j->w, by, j->k);
        tn_tensor *y = tn_functional_call(j->m, x, WEIGHTS, j->w, by);
        tn_tensor *want = tn_linear(tn_tanh(tn_linear(x, by[0], by[1])), by[2], by[3]);
        j->good = j->good && tn_allclose(y, want, 0, 0);
        tn_scope_end(s);
    }
    j->good = j->good && tn_error() == TN_OK;
    return NULL;
}

TEST(threads)
{
    job       a = {.k = 1, .good = true}, b;
    pthread_t t;
    a.m = net_new(a.w), b = a, b.k = 7;
    ck_assert_int_eq(pthread_create(&t, NULL, work, &a), 0);
    work(&b);
    pthread_join(t, NULL);
    ck_assert(a.good && b.good);
    tn_free(a.m);
}

static tn_tensor *half_of(int64_t block, int half, tn_tensor *x, tn_tensor **memo, const void *user)
{
    return (void)block, (void)half, (void)memo, (void)user, tn_sin(x);
}

TEST(mistakes)
{
    tn_tensor *w[WEIGHTS], *by[WEIGHTS], *x = numbers(TN_SHAPE(5, 3), 9), *none = NULL, *y[2];
    net       *m = net_new(w);
    others(w, by, 1);
    tn_tensor *own = tn_call(m, x), *two[2] = {by[1], by[1]}, *chain[2] = {w[1], by[1]};
    ck_refused(tn_functional_call(m, numbers(TN_SHAPE(5, 4), 0), WEIGHTS, w, by), TN_ESHAPE,
               "up: linear: x [5, 4] does not fit weight [4, 3] ([out, in]): its last dim must be 3");
    same(tn_call(m, x), own); /* the error restored the weights */
    ck_refused(tn_functional_call(m, x, 1, w, NULL), TN_EINVAL,
               "tn_functional_begin: needs two arrays of n tensors, of and by; n is 1");
    ck_refused(tn_functional_call(m, x, 1, w, &none), TN_EINVAL, "tn_functional_begin: by[0] is NULL");
    ck_refused(tn_functional_call(m, x, 1, &none, by), TN_EINVAL, "tn_functional_begin: of[0] is NULL");
    ck_refused(tn_functional_call(m, x, 2, w, by + 1), TN_ESHAPE,
               "tn_functional_begin: by[0] is f64 [4], but must be f64 [4, 3] like the tensor that it replaces");
    ck_refused(tn_functional_call(m, x, 1, &own, &own), TN_EINVAL,
               "tn_functional_begin: of[0] is the result of an op; expected a parameter or a buffer");
    ck_refused(tn_functional_call(m, x, 2, chain, two), TN_EINVAL,
               "tn_functional_begin: of[1] itself replaces a tensor; pass a tn_clone");
    net *nothing = NULL;
    ck_refused(tn_functional_call(nothing, x, 0, NULL, NULL), TN_EINVAL,
               "tn_functional_call: the module is NULL: it is an absent child, or its constructor failed and the error "
               "was cleared");
    const tn_scope s = tn_functional_begin(1, w, by);
    ck_assert_int_eq(tn_reversible(half_of, NULL, 0, 1, (tn_tensor *[]){x, x}, y), TN_EUNSUPPORTED);
    tn_scope_end(s);
    ck_error(TN_EUNSUPPORTED, "tn_reversible: cannot be recorded while tn_functional_begin replaces tensors; its "
                              "backward would compute with the original ones");
    same(tn_call(m, x), own);
    tn_free(m);
}
