/* 05_custom_op.c — lesson 5: a custom op, defined by the same struct as the library's ops: shape rule, kernels,
 * derivative, a check of the derivative, and a use of the op. The op is swish with a learned slope: y = x σ(βx).
 * Explained line by line in docs/guide/05_custom_op.md.
 * Build: cc -O2 05_custom_op.c -o 05_custom_op $(pkg-config --cflags --libs tenon) -lm */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

/* ---- the kernels: plain loops over n numbers --------------------------------------------------------------------- */

static void forward_f32(int64_t n, void *const *y, const void *const *x, const void *args)
{
    const float *in = x[0], *beta = x[1];
    float       *out = y[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) out[i] = in[i] / (1 + expf(-beta[i] * in[i]));
}
static void forward_f64(int64_t n, void *const *y, const void *const *x, const void *args)
{
    const double *in = x[0], *beta = x[1];
    double       *out = y[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) out[i] = in[i] / (1 + exp(-beta[i] * in[i]));
}

/* ---- the op ------------------------------------------------------------------------------------------------------ */

static bool swish_infer(tn_ctx *c)
{
    if (tn_ndim(c->in[1]) != 0) return tn_infer_fail(c, TN_ESHAPE, "beta must be one number, a 0-d tensor");
    return tn_infer_like(c, 0, 0);
}

static void swish_forward(tn_ctx *c) { tn_op_map(forward_f32, forward_f64, 1, c->out, 2, c->in, NULL); }

/* With p = σ(βx):  dy/dx = p + βx p (1 - p),  dy/dβ = x² p (1 - p). */
static void swish_backward(tn_back *b)
{
    tn_tensor *x = b->in[0], *beta = b->in[1];
    tn_tensor *p = tn_sigmoid(tn_mul(x, beta));
    tn_tensor *slope = tn_mul(p, tn_rsub_scalar(p, 1));
    if (b->need[0]) b->gx[0] = tn_mul(b->gy[0], tn_add(p, tn_mul(tn_mul(x, beta), slope)));
    if (b->need[1]) b->gx[1] = tn_mul(b->gy[0], tn_mul(tn_square(x), slope));
}

static void swish_wrong(tn_back *b) /* forgets a term */
{
    swish_backward(b);
    if (b->need[0]) b->gx[0] = tn_mul(b->gy[0], tn_sigmoid(tn_mul(b->in[0], b->in[1])));
}

static const tn_op swish = {
    .size = sizeof(tn_op),
    .name = "swish",
    .inputs = 2,
    .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
    .infer = swish_infer,
    .forward = swish_forward,
    .backward_ops = swish_backward,
};

/* ---- is it right? ------------------------------------------------------------------------------------------------ */

static tn_tensor *apply(tn_tensor *const *in, int n, void *op) { return tn_op_apply(op, NULL, n, in); }

static void check(const tn_op *op)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *in[2] = {tn_requires_grad(tn_linspace_of(TN_F64, -2, 2, 5)), tn_requires_grad(tn_scalar(1.5))};
    if (tn_gradcheck(apply, .count = 2, .inputs = in, .user = (void *)op, .name = "swish", .second = true) == TN_OK)
        printf("first and second derivatives are right\n");
    else printf("%s\n", tn_error_message());
    tn_clear_error();
    tn_scope_end(s);
}

/* ---- in use ------------------------------------------------------------------------------------------------------ */

static void learn_beta(void)
{
    tn_scope   all = tn_scope_begin();
    tn_tensor *beta = tn_requires_grad(tn_scalar_of(TN_F32, 1));
    for (int step = 0; step <= 300; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = tn_normal(TN_SHAPE(64), 0, 2);
        tn_tensor *target = tn_mul(x, tn_sigmoid(tn_mul_scalar(x, 3))); /* swish with beta 3 */
        tn_backward(tn_mse_loss(tn_apply(&swish, x, beta), target));
        if (step % 100 == 0) printf("step %3d  beta %.4f\n", step, tn_item(beta));
        tn_scope update = tn_no_grad_begin();
        tn_sub_(beta, tn_mul_scalar(tn_grad(beta), 2));
        tn_zero_grad(beta);
        tn_scope_end(update);
        tn_scope_end(s);
    }
    tn_scope_end(all);
}

int main(void)
{
    tn_op wrong = swish;
    wrong.backward_ops = swish_wrong;
    check(&swish);
    check(&wrong);

    tn_apply(&swish, tn_ones(TN_SHAPE(3)), tn_ones(TN_SHAPE(3)));
    printf("%s\n\n", tn_error_message());
    tn_clear_error();

    tn_seed(5);
    learn_beta();
    return tn_error() != TN_OK;
}
