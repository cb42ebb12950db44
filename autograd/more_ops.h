/* more_ops.h — ops that fewer programs need than those of ops.h; the same rules apply. Part of autograd.h: include
 * that. */
#ifndef TENON_AUTOGRAD_MORE_OPS_H
#define TENON_AUTOGRAD_MORE_OPS_H

#include "ops.h"

TN_C_BEGIN_

/* ---- functions of one element ------------------------------------------------------------------------------------ */

TN_API tn_tensor *tn_tan(tn_tensor *x);
TN_API tn_tensor *tn_asin(tn_tensor *x);
TN_API tn_tensor *tn_acos(tn_tensor *x);
TN_API tn_tensor *tn_atan(tn_tensor *x);
TN_API tn_tensor *tn_sinh(tn_tensor *x);
TN_API tn_tensor *tn_cosh(tn_tensor *x);
TN_API tn_tensor *tn_log2(tn_tensor *x);
TN_API tn_tensor *tn_log10(tn_tensor *x);
TN_API tn_tensor *tn_isinf(tn_tensor *x); /* bool */
/* x, and weight · x below 0; weight [1], or [C] for x [N, C, …]. */
TN_API tn_tensor *tn_prelu(tn_tensor *x, tn_tensor *weight);

/* ---- of two tensors, and along a dim ----------------------------------------------------------------------------- */

TN_API tn_tensor *tn_atan2(tn_tensor *a, tn_tensor *b);        /* the angle of the point (b, a), from -π to π */
TN_API tn_tensor *tn_logaddexp(tn_tensor *a, tn_tensor *b);    /* log(exp(a) + exp(b)), without overflow */
TN_API tn_tensor *tn_floor_divide(tn_tensor *a, tn_tensor *b); /* ⌊a / b⌋, in the dtype; its gradient is 0 */
TN_API tn_tensor *tn_cumprod(tn_tensor *x, int dim);           /* integers and bool multiply as i64 */
/* v · g / ‖v‖, with a norm for each index of dim; g has v's shape with size 1 in the other dims. */
TN_API tn_tensor *tn_weight_norm(tn_tensor *v, tn_tensor *g, int dim);

/* ---- by index: the results do not depend on the number of threads ------------------------------------------------ */

/* How elements that arrive at one place are combined, in the order of the index. */
typedef enum {
    TN_SCATTER_SET, /* the last one stays */
    TN_SCATTER_SUM,
    TN_SCATTER_PROD,
    TN_SCATTER_AMIN, /* NaN wins; equal elements share the gradient */
    TN_SCATTER_AMAX
} tn_scatter_mode;
/* x with src[.., i, ..] at [.., index[.., i, ..], ..] along dim. The gradients are those of the elements that stay. */
TN_API tn_tensor *tn_scatter(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src);
TN_API tn_tensor *tn_scatter_reduce(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src, tn_scatter_mode how);
/* x[index[0], …, index[n-1]] = values, or += and so forth: the n indices, one for each of the first dims of x, are
 * broadcast to each other; values broadcasts to their shape followed by x's other dims. */
TN_API tn_tensor *tn_index_put(tn_tensor *x, int n, tn_tensor *const *index, tn_tensor *values, tn_scatter_mode how);
/* Sums, products, minima or maxima of consecutive slices of dim 0: lengths[i] slices make slice i of the result. An
 * empty segment is 0, 1, ∞ or -∞. */
TN_API tn_tensor *tn_segment_reduce(tn_tensor *x, tn_tensor *lengths, tn_scatter_mode how);
TN_API tn_tensor *tn_argsort_run(tn_sort_args a); /* the indices of tn_sort */
#define tn_argsort(...) TN_CALL_(tn_argsort_run(TN_ARGS2_(tn_sort_args, TN_NO_DEFAULTS_, x, dim, __VA_ARGS__, TN_END_)))

typedef struct {
    tn_tensor *values;  /* [n], ascending */
    tn_tensor *inverse; /* of x's shape: x's elements as indices of values */
    tn_tensor *counts;  /* [n] */
} tn_uniques;
TN_API tn_uniques tn_unique(tn_tensor *x); /* the different values of x; NaN is different from NaN */
/* The number of times that 0, 1, 2 … occur in x [n], or the sums of their weights [n] (NULL: 1 each). At least
 * minlength results. */
TN_API tn_tensor *tn_bincount(tn_tensor *x, tn_tensor *weights, int64_t minlength);
/* n indices sampled from each row of p [C] or [N, C] with probabilities in proportion to p, as i64 [n] or [N, n];
 * without replacement no index twice. Draws from the current generator. */
TN_API tn_tensor *tn_multinomial(tn_tensor *p, int64_t n, bool replacement);

/* ---- convolution, pooling, sizes of images ----------------------------------------------------------------------- */

/* Transposed convolutions: the gradient of a convolution by its input. The result has (L - 1) · stride - 2 · padding +
 * dilation · (K - 1) + output_padding + 1 elements along a dim of L. output_padding is less than stride. */
typedef struct tn_conv_transpose1d_args {
    int            zero_;
    tn_tensor     *x, *weight, *bias; /* [N, C, L], [C, O/groups, K], [O] or NULL */
    int64_t stride TN_IS(1), padding, output_padding, dilation TN_IS(1), groups TN_IS(1);
    int            end_;
} TN_KEYWORDS_ONLY tn_conv_transpose1d_args;
#define TN_CONV_TRANSPOSE1D_ARGS_DEFAULTS .stride = 1, .dilation = 1, .groups = 1
typedef struct tn_conv_transpose2d_args {
    int            zero_;
    tn_tensor     *x, *weight, *bias; /* [N, C, H, W], [C, O/groups, KH, KW], [O] or NULL */
    int64_t stride TN_IS(1), stride_w TN_IS(-1), padding, padding_w TN_IS(-1); /* as in tn_conv2d */
    int64_t output_padding, output_padding_w TN_IS(-1), dilation TN_IS(1), dilation_w TN_IS(-1), groups TN_IS(1);
    int end_;
} TN_KEYWORDS_ONLY tn_conv_transpose2d_args;
#define TN_CONV_TRANSPOSE2D_ARGS_DEFAULTS \
    .stride = 1, .stride_w = -1, .padding_w = -1, .output_padding_w = -1, .dilation = 1, .dilation_w = -1, .groups = 1
TN_API tn_tensor *tn_conv_transpose1d_run(tn_conv_transpose1d_args a);
TN_API tn_tensor *tn_conv_transpose2d_run(tn_conv_transpose2d_args a);
#if TN_KEYWORDS_
#define tn_conv_transpose1d(...)                                                                                       \
    TN_CALL_(tn_conv_transpose1d_run(TN_ARGS3_(tn_conv_transpose1d_args, TN_CONV_TRANSPOSE1D_ARGS_DEFAULTS, x, weight, \
                                               bias, __VA_ARGS__, TN_END_)))
#define tn_conv_transpose2d(...)                                                                                       \
    TN_CALL_(tn_conv_transpose2d_run(TN_ARGS3_(tn_conv_transpose2d_args, TN_CONV_TRANSPOSE2D_ARGS_DEFAULTS, x, weight, \
                                               bias, __VA_ARGS__, TN_END_)))
#endif

/* Means or maxima of `out` windows along each dim, which cover x [N, C, L] or [N, C, H, W]: window i of n on L elements
 * is ⌊i L / n⌋ … ⌈(i + 1) L / n⌉ - 1. */
TN_API tn_tensor *tn_adaptive_avg_pool1d(tn_tensor *x, int64_t out);
TN_API tn_tensor *tn_adaptive_avg_pool2d(tn_tensor *x, int64_t out_h, int64_t out_w);
TN_API tn_tensor *tn_adaptive_max_pool1d(tn_tensor *x, int64_t out);
TN_API tn_tensor *tn_adaptive_max_pool2d(tn_tensor *x, int64_t out_h, int64_t out_w);

/* x [N, C, …] with the other dims resized. TN_LINEAR is linear, bilinear or trilinear by the number of dims;
 * align_corners (only TN_LINEAR): the first and last elements stay where they are. */
typedef enum { TN_NEAREST, TN_LINEAR } tn_interpolation;
TN_API tn_tensor *tn_interpolate(tn_tensor *x, tn_shape size, tn_interpolation mode, bool align_corners);

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Huber loss divided by beta; beta 0: l1_loss. PyTorch's default for beta is 1. */
TN_API tn_tensor *tn_smooth_l1_loss(tn_tensor *input, tn_tensor *target, double beta, tn_reduction reduction);
/* Binary cross-entropy of probabilities; logarithms are at least -100. weight broadcasts, or is NULL. */
TN_API tn_tensor *tn_bce_loss(tn_tensor *input, tn_tensor *target, tn_tensor *weight, tn_reduction reduction);
/* x where the target is 1, max(0, margin - x) where it is -1. */
TN_API tn_tensor *tn_hinge_embedding_loss(tn_tensor *x, tn_tensor *target, double margin, tn_reduction reduction);
/* max(0, margin + ‖anchor - positive‖ - ‖anchor - negative‖) for rows [..., D]; 1e-6 is added to the differences. */
TN_API tn_tensor *tn_triplet_margin_loss(tn_tensor *anchor, tn_tensor *positive, tn_tensor *negative, double margin,
                                         tn_reduction reduction);
/* InfoNCE (van den Oord and others, 2018): row i of query [N, D] has to find row i of keys [M, D], M ≥ N, among all
 * keys: the cross-entropy of cosine similarities divided by the temperature. */
TN_API tn_tensor *tn_info_nce_loss(tn_tensor *query, tn_tensor *keys, double temperature, tn_reduction reduction);

TN_C_END_
#endif
