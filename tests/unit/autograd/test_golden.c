/* test_golden.c — the ops compared with PyTorch 2.15, whose results are in tests/golden/ops.safetensors, written by
 * tests/golden/ops.py. That script lists the inputs of each case; this file lists the calls. Both compute the inputs by
 * the same formula. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

/* The same call as in ops.py, on inputs x[0], x[1], … */
#define CASES(G)                                                                                                       \
    G(add, tn_add(x[0], x[1]))                                                                                         \
    G(add_broadcast, tn_add(x[0], x[1]))                                                                               \
    G(add_scalar_tensor, tn_add(x[0], x[1]))                                                                           \
    G(sub, tn_sub(x[0], x[1]))                                                                                         \
    G(sub_broadcast, tn_sub(x[0], x[1]))                                                                               \
    G(sub_scalar_tensor, tn_sub(x[0], x[1]))                                                                           \
    G(mul, tn_mul(x[0], x[1]))                                                                                         \
    G(mul_broadcast, tn_mul(x[0], x[1]))                                                                               \
    G(mul_scalar_tensor, tn_mul(x[0], x[1]))                                                                           \
    G(maximum, tn_maximum(x[0], x[1]))                                                                                 \
    G(maximum_broadcast, tn_maximum(x[0], x[1]))                                                                       \
    G(maximum_scalar_tensor, tn_maximum(x[0], x[1]))                                                                   \
    G(minimum, tn_minimum(x[0], x[1]))                                                                                 \
    G(minimum_broadcast, tn_minimum(x[0], x[1]))                                                                       \
    G(minimum_scalar_tensor, tn_minimum(x[0], x[1]))                                                                   \
    G(div, tn_div(x[0], x[1]))                                                                                         \
    G(div_broadcast, tn_div(x[0], x[1]))                                                                               \
    G(pow, tn_pow(x[0], x[1]))                                                                                         \
    G(pow_broadcast, tn_pow(x[0], x[1]))                                                                               \
    G(remainder, tn_remainder(x[0], x[1]))                                                                             \
    G(remainder_negative, tn_remainder(x[0], x[1]))                                                                    \
    G(add_scalar, tn_add_scalar(x[0], 0.7))                                                                            \
    G(mul_scalar, tn_mul_scalar(x[0], -1.3))                                                                           \
    G(div_scalar, tn_div_scalar(x[0], 3))                                                                              \
    G(rsub_scalar, tn_rsub_scalar(x[0], 1))                                                                            \
    G(pow_scalar_2, tn_pow_scalar(x[0], 2))                                                                            \
    G(pow_scalar_half, tn_pow_scalar(x[0], 0.5))                                                                       \
    G(pow_scalar_minus_3, tn_pow_scalar(x[0], -3))                                                                     \
    G(pow_scalar_0, tn_pow_scalar(x[0], 0))                                                                            \
    G(neg, tn_neg(x[0]))                                                                                               \
    G(abs, tn_abs(x[0]))                                                                                               \
    G(sign, tn_sign(x[0]))                                                                                             \
    G(exp, tn_exp(x[0]))                                                                                               \
    G(expm1, tn_expm1(x[0]))                                                                                           \
    G(log, tn_log(x[0]))                                                                                               \
    G(log1p, tn_log1p(x[0]))                                                                                           \
    G(sqrt, tn_sqrt(x[0]))                                                                                             \
    G(rsqrt, tn_rsqrt(x[0]))                                                                                           \
    G(square, tn_square(x[0]))                                                                                         \
    G(reciprocal, tn_reciprocal(x[0]))                                                                                 \
    G(sin, tn_sin(x[0]))                                                                                               \
    G(cos, tn_cos(x[0]))                                                                                               \
    G(tanh, tn_tanh(x[0]))                                                                                             \
    G(erf, tn_erf(x[0]))                                                                                               \
    G(floor, tn_floor(x[0]))                                                                                           \
    G(ceil, tn_ceil(x[0]))                                                                                             \
    G(round, tn_round(x[0]))                                                                                           \
    G(sigmoid, tn_sigmoid(x[0]))                                                                                       \
    G(logsigmoid, tn_logsigmoid(x[0]))                                                                                 \
    G(relu, tn_relu(x[0]))                                                                                             \
    G(gelu, tn_gelu(x[0]))                                                                                             \
    G(silu, tn_silu(x[0]))                                                                                             \
    G(clamp, tn_clamp(x[0], -1.1, 0.6))                                                                                \
    G(leaky_relu, tn_leaky_relu(x[0], 0.07))                                                                           \
    G(elu, tn_elu(x[0], 1.7))                                                                                          \
    G(gelu_tanh, tn_gelu_tanh(x[0]))                                                                                   \
    G(softplus, tn_softplus(x[0], 1.5))                                                                                \
    G(softplus_linear, tn_softplus(x[0], 1))                                                                           \
    G(glu, tn_glu(x[0], -1))                                                                                           \
    G(glu_0, tn_glu(x[0], 0))                                                                                          \
    G(eq, tn_eq(x[0], x[1]))                                                                                           \
    G(ne, tn_ne(x[0], x[1]))                                                                                           \
    G(lt, tn_lt(x[0], x[1]))                                                                                           \
    G(le, tn_le(x[0], x[1]))                                                                                           \
    G(gt, tn_gt(x[0], x[1]))                                                                                           \
    G(ge, tn_ge(x[0], x[1]))                                                                                           \
    G(logical_and, tn_logical_and(x[0], x[1]))                                                                         \
    G(logical_or, tn_logical_or(x[0], x[1]))                                                                           \
    G(logical_xor, tn_logical_xor(x[0], x[1]))                                                                         \
    G(logical_not, tn_logical_not(x[0]))                                                                               \
    G(where, tn_where(x[0], x[1], x[2]))                                                                               \
    G(where_broadcast, tn_where(x[0], x[1], x[2]))                                                                     \
    G(masked_fill, tn_masked_fill(x[0], x[1], -7.5))                                                                   \
    G(masked_select, tn_masked_select(x[0], x[1]))                                                                     \
    G(isfinite, tn_isfinite(tn_log(x[0])))                                                                             \
    G(isnan, tn_isnan(tn_log(x[0])))                                                                                   \
    G(allclose_no, tn_scalar_of(TN_BOOL, tn_allclose(x[0], x[1], 1e-3, 1e-3)))                                         \
    G(allclose_yes, tn_scalar_of(TN_BOOL, tn_allclose(x[0], tn_add_scalar(x[0], 1e-4), 1e-3, 1e-3)))                   \
    G(sum, tn_sum(x[0]))                                                                                               \
    G(sum_1, tn_sum(x[0], .dims = TN_DIMS(1)))                                                                         \
    G(sum_02_keep, tn_sum(x[0], .dims = TN_DIMS(0, 2), .keepdim = true))                                               \
    G(mean, tn_mean(x[0]))                                                                                             \
    G(mean_1, tn_mean(x[0], .dims = TN_DIMS(1)))                                                                       \
    G(mean_02_keep, tn_mean(x[0], .dims = TN_DIMS(0, 2), .keepdim = true))                                             \
    G(prod, tn_prod(x[0]))                                                                                             \
    G(prod_1, tn_prod(x[0], .dims = TN_DIMS(1)))                                                                       \
    G(prod_0_keep, tn_prod(x[0], .dims = TN_DIMS(0), .keepdim = true))                                                 \
    G(var, tn_var(x[0]))                                                                                               \
    G(var_1_biased, tn_var(x[0], .dims = TN_DIMS(1), .biased = true))                                                  \
    G(std, tn_std(x[0]))                                                                                               \
    G(std_02_keep, tn_std(x[0], .dims = TN_DIMS(0, 2), .keepdim = true))                                               \
    G(amax, tn_amax(x[0]))                                                                                             \
    G(amax_1, tn_amax(x[0], .dims = TN_DIMS(1)))                                                                       \
    G(amin_02, tn_amin(x[0], .dims = TN_DIMS(0, 2)))                                                                   \
    G(norm, tn_norm(x[0]))                                                                                             \
    G(norm_1, tn_norm(x[0], .dims = TN_DIMS(1), .p = 1))                                                               \
    G(norm_3, tn_norm(x[0], .dims = TN_DIMS(0, 2), .p = 3))                                                            \
    G(norm_inf, tn_norm(x[0], .dims = TN_DIMS(2), .p = INFINITY))                                                      \
    G(norm_0, tn_norm(x[0], .dims = TN_DIMS(1), .p = 0))                                                               \
    G(logsumexp_1, tn_logsumexp(x[0], .dims = TN_DIMS(1)))                                                             \
    G(logsumexp_02_keep, tn_logsumexp(x[0], .dims = TN_DIMS(0, 2), .keepdim = true))                                   \
    G(any_1, tn_any(x[0], .dims = TN_DIMS(1)))                                                                         \
    G(all_1, tn_all(x[0], .dims = TN_DIMS(1)))                                                                         \
    G(max_1, tn_max(x[0], 1, false).values)                                                                            \
    G(max_1_indices, tn_max(x[0], 1, false).indices)                                                                   \
    G(min_0_keep, tn_min(x[0], 0, true).values)                                                                        \
    G(argmax, tn_argmax(x[0], TN_ALL, false))                                                                          \
    G(argmax_2, tn_argmax(x[0], 2, false))                                                                             \
    G(argmin_0_keep, tn_argmin(x[0], 0, true))                                                                         \
    G(cumsum_0, tn_cumsum(x[0], 0))                                                                                    \
    G(cumsum_1, tn_cumsum(x[0], 1))                                                                                    \
    G(softmax, tn_softmax(x[0], -1))                                                                                   \
    G(softmax_1, tn_softmax(x[0], 1))                                                                                  \
    G(softmax_large, tn_softmax(x[0], 0))                                                                              \
    G(log_softmax, tn_log_softmax(x[0], -1))                                                                           \
    G(log_softmax_1, tn_log_softmax(x[0], 1))                                                                          \
    G(log_softmax_large, tn_log_softmax(x[0], 0))                                                                      \
    G(matmul, tn_matmul(x[0], x[1]))                                                                                   \
    G(matmul_batched, tn_matmul(x[0], x[1]))                                                                           \
    G(matmul_broadcast, tn_matmul(x[0], x[1]))                                                                         \
    G(matmul_shared, tn_matmul(x[0], x[1]))                                                                            \
    G(matmul_vector_left, tn_matmul(x[0], x[1]))                                                                       \
    G(matmul_vector_right, tn_matmul(x[0], x[1]))                                                                      \
    G(matmul_dot, tn_matmul(x[0], x[1]))                                                                               \
    G(linear, tn_linear(x[0], x[1], x[2]))                                                                             \
    G(linear_no_bias, tn_linear(x[0], x[1], NULL))                                                                     \
    G(linear_vector, tn_linear(x[0], x[1], x[2]))                                                                      \
    G(outer, tn_outer(x[0], x[1]))                                                                                     \
    G(einsum_ij_jk, tn_einsum("ij,jk->ik", x[0], x[1]))                                                                \
    G(einsum_transpose, tn_einsum("ij->ji", x[0]))                                                                     \
    G(einsum_trace, tn_einsum("ii->", x[0]))                                                                           \
    G(einsum_diagonal, tn_einsum("ii->i", x[0]))                                                                       \
    G(einsum_batched, tn_einsum("bij,bjk->bik", x[0], x[1]))                                                           \
    G(einsum_heads, tn_einsum("bhtd,bhsd->bhts", x[0], x[1]))                                                          \
    G(einsum_outer, tn_einsum("i,j->ij", x[0], x[1]))                                                                  \
    G(einsum_ellipsis, tn_einsum("...ij,...jk->...ik", x[0], x[1]))                                                    \
    G(einsum_implicit, tn_einsum("ij,jk", x[0], x[1]))                                                                 \
    G(einsum_three, tn_einsum("ij,jk,kl->il", x[0], x[1], x[2]))                                                       \
    G(einsum_sum, tn_einsum("ijk->j", x[0]))                                                                           \
    G(einsum_bilinear, tn_einsum("bi,oij,bj->bo", x[0], x[1], x[2]))                                                   \
    G(reshape, tn_reshape(x[0], TN_SHAPE(4, -1)))                                                                      \
    G(flatten, tn_flatten(x[0], 1, 2))                                                                                 \
    G(permute, tn_permute(x[0], TN_DIMS(2, 0, 1)))                                                                     \
    G(transpose, tn_transpose(x[0], 0, -1))                                                                            \
    G(slice, tn_slice(x[0], 1, 1, 6, 2))                                                                               \
    G(slice_negative, tn_slice(x[0], 0, -4, -1, 1))                                                                    \
    G(narrow, tn_narrow(x[0], 1, 2, 3))                                                                                \
    G(select, tn_select(x[0], 1, -2))                                                                                  \
    G(expand, tn_expand(x[0], TN_SHAPE(2, 3, 4)))                                                                      \
    G(squeeze, tn_squeeze(x[0], 1))                                                                                    \
    G(unsqueeze, tn_unsqueeze(x[0], -1))                                                                               \
    G(diagonal, tn_diagonal(x[0], 1, 0, 2))                                                                            \
    G(diagonal_below, tn_diagonal(x[0], -1, 0, 1))                                                                     \
    G(unfold, tn_unfold(x[0], 1, 3, 2))                                                                                \
    G(view, tn_view(x[0], TN_SHAPE(4, -1)))                                                                            \
    G(clone, tn_clone(x[0]))                                                                                           \
    G(contiguous, tn_contiguous(tn_transpose(x[0], 0, 1)))                                                             \
    G(copy, tn_copy_(tn_zeros_of(tn_dtype_of(x[0]), TN_SHAPE(2, 3)), x[0]))                                            \
    G(to, tn_to(tn_to(x[0], TN_F64), tn_dtype_of(x[0])))                                                               \
    G(cat_1, tn_cat(1, x[0], x[1], x[2]))                                                                              \
    G(stack_1, tn_stack(1, x[0], x[1]))                                                                                \
    G(split_second, part(tn_split(x[0], 3, 1, 8, y), y, 1))                                                            \
    G(chunk_last, part(tn_chunk(x[0], 3, 0, 8, y), y, 2))                                                              \
    G(pad, tn_pad(x[0], TN_SHAPE(0, 1), TN_SHAPE(3, 2), 0.5))                                                          \
    G(pad_negative, tn_pad(x[0], TN_SHAPE(0, -1), TN_SHAPE(0, 1), 0))                                                  \
    G(tril, tn_tril(x[0], -1))                                                                                         \
    G(triu, tn_triu(x[0], 1))                                                                                          \
    G(roll, tn_roll(x[0], 2, 1))                                                                                       \
    G(roll_back, tn_roll(x[0], -7, 0))                                                                                 \
    G(flip, tn_flip(x[0], TN_DIMS(0, 2)))                                                                              \
    G(repeat, tn_repeat(x[0], TN_SHAPE(2, 1, 3)))                                                                      \
    G(repeat_interleave, tn_repeat_interleave(x[0], 3, 1))                                                             \
    G(gather_1, tn_gather(x[0], 1, x[1]))                                                                              \
    G(gather_0, tn_gather(x[0], 0, x[1]))                                                                              \
    G(scatter_add, tn_scatter_add(x[0], 1, x[1], x[2]))                                                                \
    G(index_select, tn_index_select(x[0], 1, x[1]))                                                                    \
    G(index_add, tn_index_add(x[0], 0, x[1], x[2]))                                                                    \
    G(take_along, tn_take_along(x[0], x[1], 1))                                                                        \
    G(embedding, tn_embedding(x[0], x[1], -1, false))                                                                  \
    G(embedding_padding, tn_embedding(x[0], x[1], 2, false))                                                           \
    G(one_hot, tn_one_hot(x[0], 5))                                                                                    \
    G(sort, tn_sort(x[0], 1).values)                                                                                   \
    G(sort_descending_indices, tn_sort(x[0], 0, .descending = true).indices)                                           \
    G(topk, tn_topk(x[0], 3, 1).values)                                                                                \
    G(topk_smallest_indices, tn_topk(x[0], 2, 1, .smallest = true).indices)                                            \
    G(nonzero, tn_nonzero(x[0]))                                                                                       \
    G(tan, tn_tan(x[0]))                                                                                               \
    G(tan_strided, tn_tan(stepped(x[0])))                                                                              \
    G(asin, tn_asin(x[0]))                                                                                             \
    G(asin_strided, tn_asin(stepped(x[0])))                                                                            \
    G(acos, tn_acos(x[0]))                                                                                             \
    G(acos_strided, tn_acos(stepped(x[0])))                                                                            \
    G(atan, tn_atan(x[0]))                                                                                             \
    G(atan_strided, tn_atan(stepped(x[0])))                                                                            \
    G(sinh, tn_sinh(x[0]))                                                                                             \
    G(sinh_strided, tn_sinh(stepped(x[0])))                                                                            \
    G(cosh, tn_cosh(x[0]))                                                                                             \
    G(cosh_strided, tn_cosh(stepped(x[0])))                                                                            \
    G(log2, tn_log2(x[0]))                                                                                             \
    G(log2_strided, tn_log2(stepped(x[0])))                                                                            \
    G(log10, tn_log10(x[0]))                                                                                           \
    G(log10_strided, tn_log10(stepped(x[0])))                                                                          \
    G(isinf, tn_isinf(tn_log(tn_sub(x[0], tn_abs(x[0])))))                                                             \
    G(prelu, tn_prelu(x[0], x[1]))                                                                                     \
    G(prelu_one, tn_prelu(tn_transpose(x[0], 0, 1), x[1]))                                                             \
    G(atan2, tn_atan2(x[0], x[1]))                                                                                     \
    G(atan2_broadcast, tn_atan2(x[0], x[1]))                                                                           \
    G(atan2_strided, tn_atan2(tn_transpose(x[0], 0, 1), tn_slice(x[1], 0, 0, 9, 2)))                                   \
    G(logaddexp, tn_logaddexp(x[0], x[1]))                                                                             \
    G(logaddexp_broadcast, tn_logaddexp(x[0], x[1]))                                                                   \
    G(logaddexp_strided, tn_logaddexp(tn_transpose(x[0], 0, 1), tn_slice(x[1], 0, 0, 9, 2)))                           \
    G(floor_divide, tn_floor_divide(x[0], x[1]))                                                                       \
    G(floor_divide_real, tn_floor_divide(x[0], x[1]))                                                                  \
    G(cumprod_0, tn_cumprod(x[0], 0))                                                                                  \
    G(cumprod_1, tn_cumprod(tn_transpose(x[0], 0, 2), 1))                                                              \
    G(cumprod_zeros, tn_cumprod(tn_relu(x[0]), 1))                                                                     \
    G(weight_norm, tn_weight_norm(x[0], x[1], 0))                                                                      \
    G(weight_norm_last, tn_weight_norm(x[0], x[1], 1))                                                                 \
    G(scatter, tn_scatter(x[0], 1, indices(TN_SHAPE(2, 3), (int64_t[]){1, 4, 0, 2, 1, 3}), x[1]))                      \
    G(scatter_0, tn_scatter(tn_transpose(x[0], 0, 1), 0, indices(TN_SHAPE(1, 3), (int64_t[]){4, 0, 2}),                \
                            tn_narrow(tn_transpose(x[1], 0, 1), 0, 0, 1)))                                             \
    G(scatter_reduce_sum, tn_scatter_reduce(x[0], 1, x[1], x[2], TN_SCATTER_SUM))                                      \
    G(scatter_reduce_prod, tn_scatter_reduce(x[0], 1, x[1], x[2], TN_SCATTER_PROD))                                    \
    G(scatter_reduce_amin, tn_scatter_reduce(x[0], 1, x[1], x[2], TN_SCATTER_AMIN))                                    \
    G(scatter_reduce_amax, tn_scatter_reduce(x[0], 1, x[1], x[2], TN_SCATTER_AMAX))                                    \
    G(index_put, tn_index_put(x[0], 2,                                                                                 \
                              (tn_tensor *[]){indices(TN_SHAPE(3), (int64_t[]){2, 0, 1}),                              \
                                              indices(TN_SHAPE(3), (int64_t[]){1, 3, 0})},                             \
                              x[1], TN_SCATTER_SET))                                                                   \
    G(index_put_sum, tn_index_put(x[0], 2, x + 1, x[3], TN_SCATTER_SUM))                                               \
    G(segment_reduce_sum, tn_segment_reduce(x[0], indices(TN_SHAPE(3), (int64_t[]){2, 3, 1}), TN_SCATTER_SUM))         \
    G(segment_reduce_prod, tn_segment_reduce(x[0], indices(TN_SHAPE(3), (int64_t[]){2, 3, 1}), TN_SCATTER_PROD))       \
    G(segment_reduce_min, tn_segment_reduce(x[0], indices(TN_SHAPE(3), (int64_t[]){2, 3, 1}), TN_SCATTER_AMIN))        \
    G(segment_reduce_max, tn_segment_reduce(x[0], indices(TN_SHAPE(3), (int64_t[]){2, 3, 1}), TN_SCATTER_AMAX))        \
    G(segment_reduce_empty, tn_segment_reduce(x[0], indices(TN_SHAPE(3), (int64_t[]){2, 0, 3}), TN_SCATTER_SUM))       \
    G(argsort, tn_argsort(x[0], 0))                                                                                    \
    G(unique, tn_unique(x[0]).values)                                                                                  \
    G(unique_inverse, tn_unique(tn_transpose(x[0], 0, 1)).inverse)                                                     \
    G(unique_counts, tn_unique(x[0]).counts)                                                                           \
    G(bincount, tn_bincount(x[0], NULL, 0))                                                                            \
    G(bincount_weights, tn_bincount(x[0], x[1], 9))                                                                    \
    G(conv_transpose1d, tn_conv_transpose1d(x[0], x[1], x[2]))                                                         \
    G(conv_transpose1d_options, tn_conv_transpose1d(x[0], x[1], NULL, .stride = 3, .padding = 2, .output_padding = 1,  \
                                                    .dilation = 2, .groups = 2))                                       \
    G(conv_transpose2d, tn_conv_transpose2d(x[0], x[1], x[2]))                                                         \
    G(conv_transpose2d_options,                                                                                        \
      tn_conv_transpose2d(tn_transpose(x[0], 2, 3), x[1], x[2], .stride = 2, .stride_w = 3, .padding = 1,              \
                          .padding_w = 0, .output_padding = 1, .output_padding_w = 2, .dilation = 1, .dilation_w = 2,  \
                          .groups = 2))                                                                                \
    G(adaptive_avg_pool1d, tn_adaptive_avg_pool1d(x[0], 3))                                                            \
    G(adaptive_avg_pool1d_more, tn_adaptive_avg_pool1d(tn_transpose(x[0], 0, 2), 5))                                   \
    G(adaptive_avg_pool2d, tn_adaptive_avg_pool2d(x[0], 3, 2))                                                         \
    G(adaptive_avg_pool2d_more, tn_adaptive_avg_pool2d(tn_slice(x[0], 1, 0, 3, 2), 5, 3))                              \
    G(adaptive_max_pool1d, tn_adaptive_max_pool1d(x[0], 3))                                                            \
    G(adaptive_max_pool1d_more, tn_adaptive_max_pool1d(tn_transpose(x[0], 0, 2), 5))                                   \
    G(adaptive_max_pool2d, tn_adaptive_max_pool2d(x[0], 3, 2))                                                         \
    G(adaptive_max_pool2d_more, tn_adaptive_max_pool2d(tn_slice(x[0], 1, 0, 3, 2), 5, 3))                              \
    G(interpolate_nearest, tn_interpolate(x[0], TN_SHAPE(7), TN_NEAREST, false))                                       \
    G(interpolate_nearest_2d, tn_interpolate(x[0], TN_SHAPE(3, 11), TN_NEAREST, false))                                \
    G(interpolate_linear, tn_interpolate(x[0], TN_SHAPE(7), TN_LINEAR, false))                                         \
    G(interpolate_bilinear, tn_interpolate(tn_transpose(x[0], 2, 3), TN_SHAPE(11, 3), TN_LINEAR, false))               \
    G(interpolate_bilinear_corners, tn_interpolate(x[0], TN_SHAPE(3, 9), TN_LINEAR, true))                             \
    G(smooth_l1_loss, tn_smooth_l1_loss(x[0], x[1], 0.7, TN_MEAN))                                                     \
    G(smooth_l1_loss_0, tn_smooth_l1_loss(x[0], x[1], 0, TN_SUM))                                                      \
    G(bce_loss, tn_bce_loss(x[0], x[1], NULL, TN_MEAN))                                                                \
    G(bce_loss_weight, tn_bce_loss(x[0], x[1], x[2], TN_SUM))                                                          \
    G(bce_loss_ends, tn_bce_loss(tn_clamp(x[0], 0, 1), x[1], NULL, TN_NONE))                                           \
    G(hinge_embedding_loss, tn_hinge_embedding_loss(x[0], tn_sign(x[1]), 1.3, TN_MEAN))                                \
    G(triplet_margin_loss, tn_triplet_margin_loss(x[0], x[1], x[2], 0.9, TN_MEAN))                                     \
    G(triplet_margin_loss_none, tn_triplet_margin_loss(x[0], x[1], x[2], 1, TN_NONE))                                  \
    G(info_nce_loss, tn_info_nce_loss(x[0], x[1], 0.3, TN_MEAN))                                                       \
    G(layer_norm, tn_layer_norm(x[0], x[1], x[2], 1e-5))                                                               \
    G(layer_norm_plain, tn_layer_norm(x[0], NULL, NULL, 1e-5))                                                         \
    G(layer_norm_two_dims, tn_layer_norm(x[0], x[1], x[2], 1e-5))                                                      \
    G(layer_norm_far, tn_layer_norm(x[0], x[1], NULL, 1e-12))                                                          \
    G(rms_norm, tn_rms_norm(x[0], x[1], 1e-6))                                                                         \
    G(dropout_none, tn_dropout(x[0], 0))                                                                               \
    G(dropout_all, tn_dropout(x[0], 1))                                                                                \
    G(conv1d, tn_conv1d(x[0], x[1], x[2]))                                                                             \
    G(conv1d_options, tn_conv1d(x[0], x[1], NULL, .stride = 2, .padding = 2, .dilation = 2))                           \
    G(conv1d_groups, tn_conv1d(x[0], x[1], x[2], .padding = 1, .groups = 2))                                           \
    G(conv2d, tn_conv2d(x[0], x[1], x[2]))                                                                             \
    G(conv2d_options, tn_conv2d(x[0], x[1], x[2], .stride = 2, .stride_w = 1, .padding = 1, .padding_w = 2,            \
                                .dilation = 1, .dilation_w = 2))                                                       \
    G(conv2d_depthwise, tn_conv2d(x[0], x[1], NULL, .padding = 1, .groups = 3))                                        \
    G(max_pool1d, tn_max_pool1d(x[0], .size = 3, .stride = 2, .padding = 1))                                           \
    G(max_pool2d, tn_max_pool2d(x[0], .size = 2, .size_w = 3, .stride = 2, .stride_w = 1, .padding = 1, .dilation = 1, \
                                .dilation_w = 2))                                                                      \
    G(avg_pool1d, tn_avg_pool1d(x[0], .size = 3, .stride = 2, .padding = 1))                                           \
    G(avg_pool2d, tn_avg_pool2d(x[0], .size = 2, .size_w = 3, .stride = 2, .stride_w = 1, .padding = 1))               \
    G(avg_pool2d_real,                                                                                                 \
      tn_avg_pool2d(x[0], .size = 2, .size_w = 3, .stride = 2, .stride_w = 1, .padding = 1, .ignore_padding = true))   \
    G(cross_entropy, tn_cross_entropy(x[0], x[1]))                                                                     \
    G(cross_entropy_sum, tn_cross_entropy(x[0], x[1], .reduction = TN_SUM))                                            \
    G(cross_entropy_none, tn_cross_entropy(x[0], x[1], .reduction = TN_NONE))                                          \
    G(cross_entropy_ignore, tn_cross_entropy(x[0], x[1], .ignore_index = 2))                                           \
    G(cross_entropy_weight, tn_cross_entropy(x[0], x[1], .weight = x[2]))                                              \
    G(cross_entropy_smooth, tn_cross_entropy(x[0], x[1], .label_smoothing = 0.1))                                      \
    G(cross_entropy_smooth_weight_ignore,                                                                              \
      tn_cross_entropy(x[0], x[1], .weight = x[2], .ignore_index = 1, .label_smoothing = 0.2))                         \
    G(cross_entropy_probabilities, tn_cross_entropy(x[0], x[1]))                                                       \
    G(cross_entropy_probabilities_smooth, tn_cross_entropy(x[0], x[1], .weight = x[2], .label_smoothing = 0.1))        \
    G(cross_entropy_class_dim, tn_cross_entropy(x[0], x[1], .class_dim = 1))                                           \
    G(cross_entropy_last_dim, tn_cross_entropy(x[0], x[1]))                                                            \
    G(nll_loss, tn_nll_loss(tn_log_softmax(x[0], 1), x[1]))                                                            \
    G(nll_loss_weight, tn_nll_loss(x[0], x[1], .weight = x[2], .ignore_index = 0))                                     \
    G(mse_loss_mean, tn_mse_loss(x[0], x[1]))                                                                          \
    G(mse_loss_sum, tn_mse_loss(x[0], x[1], .reduction = TN_SUM))                                                      \
    G(mse_loss_none, tn_mse_loss(x[0], x[1], .reduction = TN_NONE))                                                    \
    G(l1_loss, tn_l1_loss(x[0], x[1]))                                                                                 \
    G(huber_loss, tn_huber_loss(x[0], x[1], .delta = 0.7))                                                             \
    G(kl_div, tn_kl_div(tn_log_softmax(x[0], 1), x[1], .reduction = TN_SUM))                                           \
    G(kl_div_log_batchmean, tn_kl_div(x[0], x[1], .log_target = true, .batchmean = true))                              \
    G(bce_with_logits, tn_bce_with_logits(x[0], x[1]))                                                                 \
    G(bce_with_logits_weights,                                                                                         \
      tn_bce_with_logits(x[0], x[1], .reduction = TN_SUM, .weight = x[2], .pos_weight = x[3]))                         \
    G(cosine_similarity, tn_cosine_similarity(x[0], x[1], 1, 0))                                                       \
    G(attention, tn_attention(x[0], x[1], x[2]))                                                                       \
    G(attention_scale, tn_attention(x[0], x[1], x[2], .scale = 0.3))                                                   \
    G(attention_causal, tn_attention(x[0], x[1], x[2], .causal = true))                                                \
    G(attention_blocked,                                                                                               \
      tn_attention(x[0], x[1], x[2], .attn_mask = tn_cat(1, x[3], tn_zeros_of(TN_BOOL, TN_SHAPE(3, 1)))))              \
    G(attention_additive, tn_attention(x[0], x[1], x[2], .attn_mask = x[3]))

static tn_tensor *stepped(tn_tensor *x) /* x.transpose(0, 2)[1:, ::2] of [3, 5, 7] */
{
    return tn_slice(tn_slice(tn_transpose(x, 0, 2), 0, 1, 7, 1), 1, 0, 5, 2);
}
static tn_tensor *indices(tn_shape s, const int64_t *v) { return tn_from_data(TN_I64, s, v); }
static tn_tensor *part(int count, tn_tensor **parts, int i) { return i < count ? parts[i] : NULL; }

#define G(name, ...)                             \
    static tn_tensor *call_##name(tn_tensor **x) \
    {                                            \
        tn_tensor *y[8] = {NULL};                \
        (void)y;                                 \
        return (__VA_ARGS__);                    \
    }
CASES(G)
#undef G
#define G(name, ...) {#name, call_##name},
static const struct {
    const char *name;
    tn_tensor *(*call)(tn_tensor **x);
} cases[] = {CASES(G)};
#undef G
enum { COUNT = sizeof cases / sizeof *cases, INPUTS = 4 };

static tn_safetensors *golden;
static void            open_golden(void)
{
    golden = tn_safetensors_open(tn_test_data("golden/ops.safetensors"));
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
}
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);

/* ---- the inputs -------------------------------------------------------------------------------------------------- */

static double value(int64_t seed, int64_t slot, int64_t i, double low, double high)
{
    double u = (double)((i * 7919 + slot * 104729 + seed * 1299709 + 17) % 10007) / 10007.0;
    return low + (high - low) * u;
}

/* "r 2,3,4 -2.0 2.0": kind, shape, range */
static tn_tensor *input(const char *text, int64_t seed, int64_t slot, tn_dtype real)
{
    char   kind, dims[64];
    double low, high;
    ck_assert_int_eq(sscanf(text, " %c %63s %lf %lf", &kind, dims, &low, &high), 4);
    tn_shape s = {.n = 0, .d = {0}};
    for (char *d = dims; *d && *d != '-';) {
        s.d[s.n++] = strtol(d, &d, 10);
        if (*d == ',') d++;
    }
    tn_tensor    *t = tn_zeros_of(kind == 'i' ? TN_I64 : kind == 'm' ? TN_BOOL : real, s);
    const int64_t n = tn_numel(t), row = s.n ? s.d[s.n - 1] : 1;
    double        sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = value(seed, slot, i, low, high);
        if (kind == 'p' && i % row == 0) {
            sum = 0;
            for (int64_t k = 0; k < row; k++) sum += value(seed, slot, i + k, low, high);
        }
        tn_set(t, i, kind == 'i' ? floor(v) : kind == 'm' ? v < 0.5 : kind == 'p' ? v / sum : v);
    }
    return kind == 'r' || kind == 'p' ? tn_requires_grad(t) : t;
}

/* Compares within tol times the largest golden element; exactly for integers. */
static void compare(const char *name, const char *what, const tn_tensor *got, double tol)
{
    char key[160];
    snprintf(key, sizeof key, "%s/%s", name, what);
    tn_tensor *want = tn_safetensors_get(golden, key);
    ck_assert_msg(want != NULL, "%s: %s", key, tn_error_message());
    ck_assert_msg(got != NULL, "%s: nothing was computed", key);
    ck_assert_msg(tn_shape_equal(tn_shape_of(got), tn_shape_of(want)), "%s: another shape", key);
    double largest = 0;
    for (int64_t i = 0; i < tn_numel(want); i++) largest = fmax(largest, fabs(tn_get(want, i)));
    for (int64_t i = 0; i < tn_numel(want); i++) {
        double w = tn_get(want, i), g = tn_get(got, i);
        ck_assert_msg(fabs(w - g) <= tol * largest, "%s [%lld]: PyTorch has %.10g, we have %.10g (relative %.2g)", key,
                      (long long)i, w, g, fabs(w - g) / largest);
    }
}

TEST_EACH(ops, COUNT)
{
    const char *name = cases[_i].name, *spec = tn_safetensors_metadata(golden, name);
    ck_assert_msg(spec != NULL, "%s is not in ops.safetensors; run tests/golden/ops.py", name);
    char         *after;
    const int64_t seed = strtol(spec, &after, 10);
    const double  wide = strtod(after, &after); /* the case's tolerance for f32; 0: the default */
    for (int f64 = 1; f64 >= 0; f64--) {
        tn_scope    s = tn_scope_begin();
        tn_tensor  *x[INPUTS] = {NULL}, *y;
        const char *text = after;
        int         n = 0;
        while ((text = strchr(text, '|'))) {
            ck_assert_int_lt(n, INPUTS);
            x[n] = input(++text, seed, n, f64 ? TN_F64 : TN_F32);
            n++;
        }
        y = cases[_i].call(x);
        ck_assert_msg(y != NULL, "%s: %s", name, tn_error_message());
        const double tol = f64 ? 1e-12 : wide > 0 ? wide : 2e-6;
        if (!tn_dtype_is_float(tn_dtype_of(y))) {
            compare(name, "y", y, 0);
        } else {
            compare(name, f64 ? "f64/y" : "f32/y", y, tol);
            if (tn_needs_grad(y)) {
                tn_tensor *seed_grad = tn_zeros_of(tn_dtype_of(y), tn_shape_of(y));
                for (int64_t i = 0; i < tn_numel(y); i++) tn_set(seed_grad, i, value(seed, 99, i, -1, 1));
                ck_assert_msg(tn_backward(y, .seed = seed_grad) == TN_OK, "%s: %s", name, tn_error_message());
                for (int k = 0; k < n; k++) {
                    char what[32];
                    snprintf(what, sizeof what, "%s/g%d", f64 ? "f64" : "f32", k);
                    char key[160];
                    snprintf(key, sizeof key, "%s/%s", name, what);
                    if (tn_safetensors_find(golden, key) < 0) continue;
                    tn_tensor *g = tn_grad(x[k]);
                    compare(name, what, g ? g : tn_zeros_like(x[k]), tol);
                }
            }
        }
        tn_scope_end(s);
    }
}

/* Each case of the file is called here. */
TEST(nothing_is_left_out)
{
    int missing = 0;
    for (int64_t i = 0; i < tn_safetensors_metadata_count(golden); i++) {
        const char *key = tn_safetensors_metadata_at(golden, i, NULL);
        bool        found = !strcmp(key, "format") || !strcmp(key, "made by");
        for (int k = 0; k < COUNT && !found; k++) found = !strcmp(key, cases[k].name);
        if (!found) printf("no call for golden case %s\n", key), missing++;
    }
    ck_assert_int_eq(missing, 0);
}
