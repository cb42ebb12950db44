/* registry.h — the list of the library's ops, in the order of the public headers; an op that only the library calls
 * follows the op that calls it. A test fails if an op is missing or out of order (tests/project/rooms.sh). */
#ifndef TENON_AUTOGRAD_ROOMS_REGISTRY_H
#define TENON_AUTOGRAD_ROOMS_REGISTRY_H

#include "autograd/rooms/samples.h"

/* clang-format off */
#define TN__OPS(OP)                                                                                                   \
    /* arithmetic */                                                                                                  \
    OP(add) OP(sub) OP(mul) OP(div) OP(pow) OP(maximum) OP(minimum) OP(remainder) OP(add_scalar) OP(mul_scalar)       \
    OP(div_scalar) OP(rsub_scalar) OP(pow_scalar)                                                                     \
    /* functions of one element */                                                                                    \
    OP(neg) OP(abs) OP(sign) OP(exp) OP(expm1) OP(log) OP(log1p) OP(sqrt) OP(rsqrt) OP(square) OP(reciprocal) OP(sin) \
    OP(cos) OP(tanh) OP(erf) OP(floor) OP(ceil) OP(round) OP(fake_quantize) OP(int8_rows) OP(int8_rows_unpack)        \
    OP(clamp) OP(sigmoid) OP(logsigmoid) OP(relu) OP(leaky_relu) OP(elu) OP(gelu) OP(gelu_tanh) OP(silu) OP(mish)     \
    OP(softplus) OP(glu)                                                                                              \
    /* comparison and choice */                                                                                       \
    OP(eq) OP(ne) OP(lt) OP(le) OP(gt) OP(ge) OP(logical_and) OP(logical_or) OP(logical_xor) OP(logical_not)          \
    OP(isfinite) OP(isnan) OP(allclose) OP(where) OP(masked_fill) OP(masked_select) OP(masked_spread)                 \
    /* reductions */                                                                                                  \
    OP(sum) OP(mean) OP(prod) OP(var) OP(std) OP(amax) OP(amin) OP(norm) OP(norm_inf) OP(logsumexp) OP(any) OP(all)   \
    OP(max) OP(min) OP(argmax) OP(argmin) OP(cumsum) OP(softmax) OP(log_softmax)                                      \
    /* products */                                                                                                    \
    OP(matmul) OP(linear) OP(linear_q8) OP(outer) OP(einsum)                                                          \
    /* views */                                                                                                       \
    OP(view) OP(reshape) OP(flatten) OP(permute) OP(transpose) OP(slice) OP(narrow) OP(select) OP(expand) OP(squeeze) \
    OP(unsqueeze) OP(diagonal) OP(unfold) OP(region) OP(contiguous) OP(clone) OP(to) OP(copy)                         \
    /* joining, cutting, moving */                                                                                    \
    OP(cat) OP(stack) OP(pad) OP(tril) OP(triu) OP(roll) OP(flip) OP(repeat) OP(repeat_interleave)                    \
    /* by index */                                                                                                    \
    OP(gather) OP(scatter_add) OP(index_select) OP(index_add) OP(index_copy) OP(take_along) OP(embedding)             \
    OP(embedding_q8) OP(one_hot) OP(nonzero) OP(sort) OP(topk)                                                        \
    /* normalisation, dropout */                                                                                      \
    OP(layer_norm) OP(rms_norm) OP(dropout)                                                                           \
    /* convolution and pooling */                                                                                     \
    OP(conv1d) OP(conv2d) OP(conv2d_input_grad) OP(conv2d_weight_grad) OP(max_pool1d) OP(max_pool2d) OP(avg_pool1d)   \
    OP(avg_pool2d) OP(avg_pool2d_grad)                                                                                \
    /* losses */                                                                                                      \
    OP(cross_entropy) OP(nll_loss) OP(mse_loss) OP(l1_loss) OP(huber_loss) OP(kl_div) OP(bce_with_logits)             \
    OP(cosine_similarity)                                                                                             \
    /* attention */                                                                                                   \
    OP(attention) OP(attention_and_weights) OP(attention_at) OP(attention_scores) OP(attention_weights)               \
    OP(select_matmul)                                                                                                 \
    /* more_ops.h */                                                                                                  \
    OP(tan) OP(asin) OP(acos) OP(atan) OP(sinh) OP(cosh) OP(log2) OP(log10) OP(isinf) OP(prelu) OP(atan2)             \
    OP(logaddexp) OP(floor_divide) OP(cumprod) OP(weight_norm) OP(scatter) OP(index_put) OP(segment_reduce)           \
    OP(bincount) OP(conv_transpose1d) OP(conv_transpose2d) OP(adaptive_avg_pool1d) OP(adaptive_avg_pool2d)            \
    OP(adaptive_max_pool1d) OP(adaptive_max_pool2d) OP(interpolate) OP(resize) OP(bce_loss) OP(hinge_embedding_loss)  \
    OP(triplet_margin_loss) OP(info_nce_loss)                                                                         \
    /* fused.h */                                                                                                     \
    OP(linear_gelu) OP(linear_relu) OP(linear_add) OP(add_dropout_norm) OP(linear_cross_entropy)                      \
    /* rope.h */                                                                                                      \
    OP(rope)                                                                                                          \
    /* steps.h */                                                                                                     \
    OP(rnn) OP(lstm) OP(lstm_proj) OP(gru)                                                                            \
    /* experts.h */                                                                                                   \
    OP(route) OP(grouped_linear)                                                                                      \
    /* for views of memory that an in-place op has changed */                                                         \
    OP(strided) OP(strided_add) OP(strided_clear) OP(overwrite)
/* clang-format on */

#define OP(name)                            \
    extern const tn_op       tn__op_##name; \
    extern const tn__samples tn__samples_##name;
TN__OPS(OP)
#undef OP

#endif
