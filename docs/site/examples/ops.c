/* ops.c — examples of the ops: arithmetic, functions of one element, comparison, reductions, products. */
#include "show.h"

EXAMPLE(add)
{
    tn_tensor *a = tn_arange_of(TN_F32, 0, 3, 1);            /* [3] */
    tn_tensor *b = tn_reshape(tn_arange(2), TN_SHAPE(2, 1)); /* i64 [2, 1] */
    tn_print(stdout, tn_add(a, tn_mul_scalar(b, 10)));       /* f32 [2, 3] */
}

EXAMPLE(arithmetic)
{
    tn_tensor *a = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){6, 7, -8});
    tn_tensor *b = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){2, -2, 5});
    tn_print(stdout, tn_sub(a, b));
    tn_print(stdout, tn_mul(a, b));
    tn_print(stdout, tn_div(a, b));
    tn_print(stdout, tn_remainder(a, b));
    tn_print(stdout, tn_pow(a, b));
}

EXAMPLE(larger_and_smaller)
{
    tn_tensor *a = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){1, 5, NAN});
    tn_tensor *b = tn_full(TN_SHAPE(3), 3);
    tn_print(stdout, tn_maximum(a, b));
    tn_print(stdout, tn_minimum(a, b));
}

EXAMPLE(plain_numbers)
{
    tn_tensor *x = tn_arange_of(TN_F32, 1, 4, 1);
    tn_print(stdout, tn_add_scalar(x, 0.5));
    tn_print(stdout, tn_mul_scalar(x, 2));
    tn_print(stdout, tn_div_scalar(x, 4));
    tn_print(stdout, tn_rsub_scalar(x, 1)); /* 1 - x */
    tn_print(stdout, tn_pow_scalar(x, 2));
}

EXAMPLE(in_place)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 3, 1), *one = tn_ones(TN_SHAPE(3));
    tn_add_(x, one);
    tn_mul_(x, x);
    tn_sub_(x, one);
    tn_div_(x, tn_full(TN_SHAPE(3), 2));
    tn_print(stdout, x);
    tn_add_scalar_(tn_mul_scalar_(tn_div_scalar_(x, 2), 3), 1);
    tn_print(stdout, x);
}

EXAMPLE(functions_in_place)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(4), (float[]){-1, 0, 1, 4});
    tn_print(stdout, tn_sqrt_(tn_relu_(tn_clone(x))));
    tn_print(stdout, tn_clamp_(tn_neg_(tn_clone(x)), -1, 1));
    tn_print(stdout, tn_exp_(tn_clone(x)));
    tn_print(stdout, tn_tanh_(tn_sigmoid_(tn_clone(x))));
}

EXAMPLE(sign_and_rounding)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(4), (float[]){-1.5F, -0.2F, 0.5F, 2.5F});
    tn_print(stdout, tn_neg(x));
    tn_print(stdout, tn_abs(x));
    tn_print(stdout, tn_sign(x));
    tn_print(stdout, tn_floor(x));
    tn_print(stdout, tn_ceil(x));
    tn_print(stdout, tn_round(x));
}

EXAMPLE(exponentials)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){0, 1, 2});
    tn_print(stdout, tn_exp(x));
    tn_print(stdout, tn_expm1(x));
    tn_print(stdout, tn_log(tn_exp(x)));
    tn_print(stdout, tn_log1p(x));
}

EXAMPLE(roots_and_powers)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){1, 4, 9});
    tn_print(stdout, tn_sqrt(x));
    tn_print(stdout, tn_rsqrt(x));
    tn_print(stdout, tn_square(x));
    tn_print(stdout, tn_reciprocal(x));
}

EXAMPLE(trigonometry)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){0, 0.5F, 1});
    tn_print(stdout, tn_sin(x));
    tn_print(stdout, tn_cos(x));
    tn_print(stdout, tn_tanh(x));
    tn_print(stdout, tn_erf(x));
}

EXAMPLE(gelu)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){-1, 0, 2});
    tn_print(stdout, tn_gelu(x));
    tn_print(stdout, tn_gelu_tanh(x));
}

EXAMPLE(relu)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){-1, 0, 2});
    tn_print(stdout, tn_relu(x));
    tn_print(stdout, tn_leaky_relu(x, 0.01));
    tn_print(stdout, tn_elu(x, 1));
}

EXAMPLE(smooth_activations)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){-1, 0, 2});
    tn_print(stdout, tn_sigmoid(x));
    tn_print(stdout, tn_logsigmoid(x));
    tn_print(stdout, tn_silu(x));
    tn_print(stdout, tn_mish(x));
    tn_print(stdout, tn_softplus(x, 1));
}

EXAMPLE(glu)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 4, 1); /* [4]: halves [0, 1] and [2, 3] */
    tn_print(stdout, tn_glu(x, 0));               /* [2] */
}

EXAMPLE(clamp) { tn_print(stdout, tn_clamp(tn_arange_of(TN_F32, -3, 4, 2), -1, 2)); }

EXAMPLE(rows_in_8_bits)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(1, 3), (float[]){0.1F, -0.5F, 1.27F});
    tn_tensor *rows = tn_int8_rows(x); /* u8 [1, 3 + TN_INT8_ROW_SCALE] */
    printf("%d bytes\n", (int)tn_size(rows, 1));
    tn_print(stdout, tn_int8_rows_unpack(rows));
    tn_print(stdout, tn_fake_quantize(x));
    tn_print(stdout, tn_fake_quantize_weight(x));
}

EXAMPLE(comparison)
{
    tn_tensor *a = tn_arange(3), *b = tn_from_data(TN_I64, TN_SHAPE(3), (int64_t[]){2, 1, 0});
    tn_print(stdout, tn_eq(a, b));
    tn_print(stdout, tn_ne(a, b));
    tn_print(stdout, tn_lt(a, b));
    tn_print(stdout, tn_le(a, b));
    tn_print(stdout, tn_gt(a, b));
    tn_print(stdout, tn_ge(a, b));
}

EXAMPLE(logic)
{
    tn_tensor *a = tn_from_data(TN_BOOL, TN_SHAPE(4), (bool[]){0, 0, 1, 1});
    tn_tensor *b = tn_from_data(TN_BOOL, TN_SHAPE(4), (bool[]){0, 1, 0, 1});
    tn_print(stdout, tn_logical_and(a, b));
    tn_print(stdout, tn_logical_or(a, b));
    tn_print(stdout, tn_logical_xor(a, b));
    tn_print(stdout, tn_logical_not(a));
}

EXAMPLE(finite)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){1, INFINITY, NAN});
    tn_print(stdout, tn_isfinite(x));
    tn_print(stdout, tn_isnan(x));
}

EXAMPLE(allclose)
{
    tn_tensor *a = tn_ones(TN_SHAPE(3)), *b = tn_add_scalar(a, 1e-6);
    printf("%d %d\n", tn_allclose(a, b, 1e-5, 1e-8), tn_allclose(a, b, 0, 0));
}

EXAMPLE(where)
{
    tn_tensor *x = tn_arange_of(TN_F32, -2, 3, 1);
    tn_tensor *positive = tn_gt(x, tn_zeros_like(x));
    tn_print(stdout, tn_where(positive, x, tn_scalar(-1)));
    tn_print(stdout, tn_masked_fill(x, positive, 9));
    tn_print(stdout, tn_masked_select(x, positive));
    tn_print(stdout, tn_masked_fill_(x, positive, 0));
}

EXAMPLE(sum)
{
    tn_tensor *x = tn_reshape(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(2, 3));
    printf("%g\n", tn_item(tn_sum(x)));
    tn_print(stdout, tn_sum(x, .dims = TN_DIMS(0)));
    tn_print(stdout, tn_sum(x, .dims = TN_DIMS(-1), .keepdim = true)); /* [2, 1] */
}

EXAMPLE(reductions)
{
    tn_tensor *x = tn_reshape(tn_arange_of(TN_F32, 1, 7, 1), TN_SHAPE(2, 3));
    tn_print(stdout, tn_mean(x, .dims = TN_DIMS(1)));
    tn_print(stdout, tn_prod(x, .dims = TN_DIMS(1)));
    tn_print(stdout, tn_amax(x, .dims = TN_DIMS(1)));
    tn_print(stdout, tn_amin(x, .dims = TN_DIMS(1)));
    tn_print(stdout, tn_logsumexp(x, .dims = TN_DIMS(1)));
}

EXAMPLE(variance)
{
    tn_tensor *x = tn_arange_of(TN_F64, 0, 5, 1);
    printf("var %g, biased %g, std %.4f\n", tn_item(tn_var(x)), tn_item(tn_var(x, .biased = true)), tn_item(tn_std(x)));
}

EXAMPLE(norm)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(2), (float[]){3, -4});
    printf("%g %g %g\n", tn_item(tn_norm(x)), tn_item(tn_norm(x, .p = 1)), tn_item(tn_norm(x, .p = INFINITY)));
}

EXAMPLE(any_and_all)
{
    tn_tensor *x = tn_from_data(TN_BOOL, TN_SHAPE(2, 2), (bool[]){true, true, false, true});
    tn_print(stdout, tn_any(x, .dims = TN_DIMS(1)));
    tn_print(stdout, tn_all(x, .dims = TN_DIMS(1)));
}

EXAMPLE(max)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(2, 3), (float[]){1, 7, 3, 9, 2, 9});
    tn_pair    m = tn_max(x, 1, false), least = tn_min(x, 1, false);
    tn_print(stdout, m.values);
    tn_print(stdout, m.indices);
    tn_print(stdout, least.values);
    tn_print(stdout, tn_argmax(x, TN_ALL, false)); /* index in the flattened tensor */
    tn_print(stdout, tn_argmin(x, 1, true));       /* [2, 1] */
}

EXAMPLE(cumsum) { tn_print(stdout, tn_cumsum(tn_ones(TN_SHAPE(2, 3)), 1)); }

EXAMPLE(softmax)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){0, 1, 2});
    tn_print(stdout, tn_softmax(x, -1));
    tn_print(stdout, tn_log_softmax(x, -1));
}

EXAMPLE(matmul)
{
    tn_tensor *a = tn_reshape(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(2, 3));
    tn_print(stdout, tn_matmul(a, tn_transpose(a, 0, 1))); /* [2, 3] x [3, 2] */
}

EXAMPLE(linear)
{
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2)), *bias = tn_full(TN_SHAPE(3), 0.5);
    tn_tensor *weight = tn_reshape(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(3, 2)); /* [out, in] */
    tn_print(stdout, tn_linear(x, weight, bias));
    tn_print(stdout, tn_linear_relu(x, weight, bias));
    tn_print(stdout, tn_linear_gelu(x, weight, bias));
    tn_print(stdout, tn_linear_gelu_tanh(x, weight, bias));
    tn_print(stdout, tn_linear_add(x, weight, tn_ones(TN_SHAPE(1, 3))));
}

EXAMPLE(outer) { tn_print(stdout, tn_outer(tn_arange_of(TN_F32, 1, 3, 1), tn_arange_of(TN_F32, 1, 4, 1))); }

EXAMPLE(einsum)
{
    tn_tensor *a = tn_ones(TN_SHAPE(2, 3)), *b = tn_full(TN_SHAPE(3, 2), 2);
    tn_print(stdout, tn_einsum("ij,jk->ik", a, b));
    tn_print(stdout, tn_einsum("ij->j", a));
}

EXAMPLE(cross_entropy)
{
    tn_tensor *logits = tn_from_data(TN_F32, TN_SHAPE(2, 3), (float[]){2, 1, 0, 0, 1, 2});
    tn_tensor *target = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){0, -100}); /* -100 is ignored */
    int64_t    counted;
    printf("%.4f\n", tn_item(tn_cross_entropy(logits, target, .counted = &counted)));
    printf("%d counted\n", (int)counted);
    printf("%.4f\n", tn_item(tn_cross_entropy(logits, target, .label_smoothing = 0.1)));
    printf("%.4f\n", tn_item(tn_nll_loss(tn_log_softmax(logits, -1), target)));
}

EXAMPLE(losses)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){0.2F, 0.9F, 3});
    tn_tensor *y = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){0, 1, 1});
    printf("mse %.4f\n", tn_item(tn_mse_loss(x, y)));
    printf("l1 %.4f\n", tn_item(tn_l1_loss(x, y, .reduction = TN_SUM)));
    printf("huber %.4f\n", tn_item(tn_huber_loss(x, y, .delta = 1)));
    printf("bce %.4f\n", tn_item(tn_bce_with_logits(x, y)));
    tn_print(stdout, tn_mse_loss(x, y, .reduction = TN_NONE));
}

EXAMPLE(kl_div)
{
    tn_tensor *q = tn_log_softmax(tn_from_data(TN_F32, TN_SHAPE(1, 3), (float[]){1, 2, 3}), -1);
    tn_tensor *p = tn_softmax(tn_zeros(TN_SHAPE(1, 3)), -1);
    printf("%.4f\n", tn_item(tn_kl_div(q, p, .batchmean = true)));
}

EXAMPLE(cosine_similarity)
{
    tn_tensor *a = tn_from_data(TN_F32, TN_SHAPE(2, 2), (float[]){1, 0, 1, 1});
    tn_tensor *b = tn_from_data(TN_F32, TN_SHAPE(2, 2), (float[]){2, 0, 0, 1});
    tn_print(stdout, tn_cosine_similarity(a, b, 1, 1e-8));
}

EXAMPLE(custom_op_table)
{
    for (int i = 0; i < 3; i++) {
        const tn_op *op = tn_op_at(i);
        printf("%s: %d inputs, %s\n", op->name, op->inputs, op->inplace ? "also in place" : "not in place");
    }
    printf("more than 100 ops: %d\n", tn_op_count() > 100);
}
