/* ops.h — all ops that can be on the tape. Each has its own file (room): autograd/ops/<name>.c.
 *
 * All accept any strides, broadcast two shapes as NumPy does, and return a new tensor (or NULL, see tn_error) that
 * belongs to the open scope. Two tensors of different dtypes are promoted to the wider one (bool < u8 < i32 < i64 <
 * bf16 < f32 < f64; a 0-d tensor does not widen one that has dims, within the floating or within the integer dtypes).
 * A function whose name ends in "_" writes its result over the first argument and returns it.
 *
 * Options are passed by name: tn_sum(x, .dims = TN_DIMS(1), .keepdim = true), tn_conv1d(x, w, b, .stride = 2).
 * Negative dims count from the end. C++ before C++20 fills the struct and calls the function tn_sum_run. */
#ifndef TENON_AUTOGRAD_OPS_H
#define TENON_AUTOGRAD_OPS_H

#include "../core/core.h"
#include "op.h"

TN_C_BEGIN_

typedef struct {
    tn_tensor *values, *indices;
} tn_pair;

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

TN_API tn_tensor *tn_add(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_sub(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_mul(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_div(tn_tensor *a, tn_tensor *b); /* integers are divided as f32 */
TN_API tn_tensor *tn_pow(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_maximum(tn_tensor *a, tn_tensor *b); /* NaN wins; at equal values each gets half the gradient */
TN_API tn_tensor *tn_minimum(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_remainder(tn_tensor *a, tn_tensor *b); /* a - b·floor(a / b): has the sign of b */
TN_API tn_tensor *tn_add_(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_sub_(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_mul_(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_div_(tn_tensor *a, tn_tensor *b);

/* With a plain number, which never widens x's dtype. */
TN_API tn_tensor *tn_add_scalar(tn_tensor *x, double k);
TN_API tn_tensor *tn_mul_scalar(tn_tensor *x, double k);
TN_API tn_tensor *tn_div_scalar(tn_tensor *x, double k);
TN_API tn_tensor *tn_rsub_scalar(tn_tensor *x, double k); /* k - x */
TN_API tn_tensor *tn_pow_scalar(tn_tensor *x, double k);
TN_API tn_tensor *tn_add_scalar_(tn_tensor *x, double k);
TN_API tn_tensor *tn_mul_scalar_(tn_tensor *x, double k);
TN_API tn_tensor *tn_div_scalar_(tn_tensor *x, double k);

/* ---- functions of one element ------------------------------------------------------------------------------------ */

TN_API tn_tensor *tn_neg(tn_tensor *x);
TN_API tn_tensor *tn_abs(tn_tensor *x);
TN_API tn_tensor *tn_sign(tn_tensor *x);
TN_API tn_tensor *tn_exp(tn_tensor *x);
TN_API tn_tensor *tn_expm1(tn_tensor *x);
TN_API tn_tensor *tn_log(tn_tensor *x);
TN_API tn_tensor *tn_log1p(tn_tensor *x);
TN_API tn_tensor *tn_sqrt(tn_tensor *x);
TN_API tn_tensor *tn_rsqrt(tn_tensor *x);
TN_API tn_tensor *tn_square(tn_tensor *x);
TN_API tn_tensor *tn_reciprocal(tn_tensor *x);
TN_API tn_tensor *tn_sin(tn_tensor *x);
TN_API tn_tensor *tn_cos(tn_tensor *x);
TN_API tn_tensor *tn_tanh(tn_tensor *x);
TN_API tn_tensor *tn_erf(tn_tensor *x);
TN_API tn_tensor *tn_floor(tn_tensor *x);
TN_API tn_tensor *tn_ceil(tn_tensor *x);
TN_API tn_tensor *tn_round(tn_tensor *x); /* to nearest, ties to even */
/* Each row of the last dim rounded as products in int8 round their input, or their weights [out, in]. The
 * gradient is that of the identity: a model that is trained through them loses less when it is quantised. */
TN_API tn_tensor *tn_fake_quantize(tn_tensor *x);
TN_API tn_tensor *tn_fake_quantize_weight(tn_tensor *weight);
/* Each row of the last dim rounded to 8 bits, without a gradient: f32 or bf16 [..., n] to u8 [..., n + 4], each row's n
 * signed bytes and then its scale in f32, max |x| / 127; and back. tn_attention(.int8 = true) reads such rows. */
enum { TN_INT8_ROW_SCALE = 4 }; /* bytes of a scale */
TN_API tn_tensor *tn_int8_rows(tn_tensor *x);
TN_API tn_tensor *tn_int8_rows_unpack(tn_tensor *rows);
TN_API tn_tensor *tn_clamp(tn_tensor *x, double low, double high);
TN_API tn_tensor *tn_sigmoid(tn_tensor *x);
TN_API tn_tensor *tn_logsigmoid(tn_tensor *x);
TN_API tn_tensor *tn_relu(tn_tensor *x);
TN_API tn_tensor *tn_leaky_relu(tn_tensor *x, double slope);
TN_API tn_tensor *tn_elu(tn_tensor *x, double alpha);
TN_API tn_tensor *tn_gelu(tn_tensor *x);      /* x·Φ(x), exact */
TN_API tn_tensor *tn_gelu_tanh(tn_tensor *x); /* the approximation with tanh */
TN_API tn_tensor *tn_silu(tn_tensor *x);
TN_API tn_tensor *tn_mish(tn_tensor *x); /* x·tanh(softplus(x)) */
TN_API tn_tensor *tn_softplus(tn_tensor *x, double beta);
TN_API tn_tensor *tn_glu(tn_tensor *x, int dim); /* first half times sigmoid of the second */
TN_API tn_tensor *tn_neg_(tn_tensor *x);
TN_API tn_tensor *tn_exp_(tn_tensor *x);
TN_API tn_tensor *tn_sqrt_(tn_tensor *x);
TN_API tn_tensor *tn_tanh_(tn_tensor *x);
TN_API tn_tensor *tn_sigmoid_(tn_tensor *x);
TN_API tn_tensor *tn_relu_(tn_tensor *x);
TN_API tn_tensor *tn_clamp_(tn_tensor *x, double low, double high);

/* ---- comparison and choice: results are bool, without gradient --------------------------------------------------- */

TN_API tn_tensor *tn_eq(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_ne(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_lt(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_le(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_gt(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_ge(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_logical_and(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_logical_or(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_logical_xor(tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_logical_not(tn_tensor *x);
TN_API tn_tensor *tn_isfinite(tn_tensor *x);
TN_API tn_tensor *tn_isnan(tn_tensor *x);
/* True if every |a - b| <= atol + rtol·|b|, with a and b broadcast; false if an error is set. */
TN_API bool tn_allclose(tn_tensor *a, tn_tensor *b, double rtol, double atol);

TN_API tn_tensor *tn_where(tn_tensor *condition, tn_tensor *a, tn_tensor *b); /* a where true, else b */
TN_API tn_tensor *tn_masked_fill(tn_tensor *x, tn_tensor *mask, double value);
TN_API tn_tensor *tn_masked_fill_(tn_tensor *x, tn_tensor *mask, double value);
TN_API tn_tensor *tn_masked_select(tn_tensor *x, tn_tensor *mask); /* the elements where true, 1-d */

/* ---- reductions: over all dims, or over those named -------------------------------------------------------------- */

typedef struct tn_reduce_args {
    int        zero_;
    tn_tensor *x;
    tn_dims    dims; /* none: all */
    bool       keepdim;
    bool       biased;   /* var, std: divide by n, not n - 1 */
    double p   TN_IS(2); /* norm: INFINITY is allowed; 0 counts the elements that are not 0 */
    int        end_;
} TN_KEYWORDS_ONLY tn_reduce_args;
#define TN_REDUCE_ARGS_DEFAULTS .p = 2
TN_API tn_tensor *tn_sum_run(tn_reduce_args a); /* integers and bool sum to i64 */
TN_API tn_tensor *tn_mean_run(tn_reduce_args a);
TN_API tn_tensor *tn_prod_run(tn_reduce_args a);
TN_API tn_tensor *tn_var_run(tn_reduce_args a);
TN_API tn_tensor *tn_std_run(tn_reduce_args a);
TN_API tn_tensor *tn_amax_run(tn_reduce_args a); /* equal maxima share the gradient */
TN_API tn_tensor *tn_amin_run(tn_reduce_args a);
TN_API tn_tensor *tn_norm_run(tn_reduce_args a);
TN_API tn_tensor *tn_normalize(tn_tensor *x, int dim); /* x / max(‖x‖, 1e-12) along dim, as F.normalize */
TN_API tn_tensor *tn_logsumexp_run(tn_reduce_args a);
TN_API tn_tensor *tn_any_run(tn_reduce_args a);
TN_API tn_tensor *tn_all_run(tn_reduce_args a);
#if TN_KEYWORDS_
#define tn_sum(...) TN_CALL_(tn_sum_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_mean(...) TN_CALL_(tn_mean_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_prod(...) TN_CALL_(tn_prod_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_var(...) TN_CALL_(tn_var_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_std(...) TN_CALL_(tn_std_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_amax(...) TN_CALL_(tn_amax_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_amin(...) TN_CALL_(tn_amin_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_norm(...) TN_CALL_(tn_norm_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_logsumexp(...) \
    TN_CALL_(tn_logsumexp_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_any(...) TN_CALL_(tn_any_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_all(...) TN_CALL_(tn_all_run(TN_ARGS1_(tn_reduce_args, TN_REDUCE_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#endif

#define TN_ALL 2147483647 /* as a dim of argmax and argmin: over the flattened tensor */
TN_API tn_pair    tn_max(tn_tensor *x, int dim, bool keepdim); /* values and their indices; of equal values the first */
TN_API tn_pair    tn_min(tn_tensor *x, int dim, bool keepdim); /* NaN wins, as in PyTorch */
TN_API tn_tensor *tn_argmax(tn_tensor *x, int dim, bool keepdim);
TN_API tn_tensor *tn_argmin(tn_tensor *x, int dim, bool keepdim);
TN_API tn_tensor *tn_cumsum(tn_tensor *x, int dim);
TN_API tn_tensor *tn_softmax(tn_tensor *x, int dim);
TN_API tn_tensor *tn_log_softmax(tn_tensor *x, int dim);

/* ---- products ---------------------------------------------------------------------------------------------------- */

TN_API tn_tensor *tn_matmul(tn_tensor *a, tn_tensor *b); /* [..., m, k] x [..., k, n]; a 1-d side as in NumPy */
TN_API tn_tensor *tn_linear_run(tn_tensor *x, tn_tensor *weight,
                                tn_tensor *bias);       /* x Wᵀ + b; W [out, in]; b may be NULL */
TN_API tn_tensor *tn_outer(tn_tensor *a, tn_tensor *b); /* [m] x [n] */
TN_API tn_tensor *tn_einsum_list(const char *equation, int n, tn_tensor *const *in);
#ifndef __cplusplus
#define tn_einsum(equation, ...) tn_einsum_list(equation, TN_COUNT_(__VA_ARGS__), (tn_tensor *[]){__VA_ARGS__})
#endif

/* ---- views: the same memory under another layout ----------------------------------------------------------------- */

TN_API tn_tensor *tn_view(tn_tensor *x, tn_shape s);    /* one dim may be -1; an error where strides do not allow it */
TN_API tn_tensor *tn_reshape(tn_tensor *x, tn_shape s); /* a view where possible, otherwise a copy */
TN_API tn_tensor *tn_flatten_run(tn_tensor *x, int first, int last); /* joins dims first … last */
TN_API tn_tensor *tn_permute(tn_tensor *x, tn_dims order);
TN_API tn_tensor *tn_transpose(tn_tensor *x, int dim0, int dim1);
TN_API tn_tensor *tn_slice(tn_tensor *x, int dim, int64_t start, int64_t end, int64_t step); /* as x[start:end:step] */
TN_API tn_tensor *tn_narrow(tn_tensor *x, int dim, int64_t start, int64_t length);
TN_API tn_tensor *tn_select(tn_tensor *x, int dim, int64_t index); /* removes the dim */
TN_API tn_tensor *tn_expand(tn_tensor *x, tn_shape s);             /* -1 keeps a size */
TN_API tn_tensor *tn_squeeze(tn_tensor *x, int dim); /* keeps a dim whose size is not 1; TN_ALL: all dims */
TN_API tn_tensor *tn_unsqueeze(tn_tensor *x, int dim);
TN_API tn_tensor *tn_diagonal(tn_tensor *x, int64_t offset, int dim0, int dim1);
TN_API tn_tensor *tn_unfold(tn_tensor *x, int dim, int64_t size, int64_t step); /* windows; a last dim of `size` */

TN_API tn_tensor *tn_contiguous(tn_tensor *x); /* x itself if it is contiguous */
TN_API tn_tensor *tn_clone(tn_tensor *x);      /* a contiguous copy, on the tape */
TN_API tn_tensor *tn_to(tn_tensor *x, tn_dtype dt);
TN_API tn_tensor *tn_copy_(tn_tensor *x, tn_tensor *src); /* recorded, unlike tn_copy_from */

/* ---- joining, cutting, moving ------------------------------------------------------------------------------------ */

TN_API tn_tensor *tn_cat_list(int dim, int n, tn_tensor *const *in);
TN_API tn_tensor *tn_stack_list(int dim, int n, tn_tensor *const *in);
#ifndef __cplusplus
#define tn_cat(dim, ...) tn_cat_list(dim, TN_COUNT_(__VA_ARGS__), (tn_tensor *[]){__VA_ARGS__})
#define tn_stack(dim, ...) tn_stack_list(dim, TN_COUNT_(__VA_ARGS__), (tn_tensor *[]){__VA_ARGS__})
#endif
/* Store views of x along dim in out[]: of `size` each (the last may be shorter), or `chunks` of nearly equal size.
 * Return the number of views, at most `room` (more is an error); 0 on error. */
TN_API int tn_split(tn_tensor *x, int64_t size, int dim, int room, tn_tensor **out);
TN_API int tn_chunk(tn_tensor *x, int64_t chunks, int dim, int room, tn_tensor **out);
/* Adds before[i] and after[i] elements of `value` at dim i; negative counts remove elements. One entry for each dim. */
TN_API tn_tensor *tn_pad(tn_tensor *x, tn_shape before, tn_shape after, double value);
TN_API tn_tensor *tn_tril(tn_tensor *x, int64_t diagonal); /* zero above the diagonal of the last two dims */
TN_API tn_tensor *tn_triu(tn_tensor *x, int64_t diagonal);
TN_API tn_tensor *tn_roll(tn_tensor *x, int64_t shift, int dim);
TN_API tn_tensor *tn_flip(tn_tensor *x, tn_dims dims);
TN_API tn_tensor *tn_repeat(tn_tensor *x, tn_shape times);                    /* the whole tensor, as tiles */
TN_API tn_tensor *tn_repeat_interleave(tn_tensor *x, int64_t times, int dim); /* each slice of dim */

/* ---- by index: indices are i64 or i32; an index out of range is an error that names it --------------------------- */

TN_API tn_tensor *tn_gather(tn_tensor *x, int dim, tn_tensor *index);
TN_API tn_tensor *tn_scatter_add(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src);
TN_API tn_tensor *tn_index_select(tn_tensor *x, int dim, tn_tensor *index); /* index 1-d */
TN_API tn_tensor *tn_index_add(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src);
/* x with the slices at the index replaced by those of src; no index twice. */
TN_API tn_tensor *tn_index_copy(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src);
TN_API tn_tensor *tn_index_copy_(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src);
TN_API tn_tensor *tn_take_along(tn_tensor *x, tn_tensor *index, int dim); /* gather that broadcasts */
/* weight[index]; the row `padding` (−1: none) gets no gradient. sparse: if weight is a leaf, its gradient is stored as
 * the rows that were used (tn_grad_rows), so that its cost is that of these rows. */
TN_API tn_tensor *tn_embedding_run(tn_tensor *weight, tn_tensor *index, int64_t padding, bool sparse);
TN_API tn_tensor *tn_one_hot(tn_tensor *index, int64_t classes); /* i64; classes -1: largest index + 1 */
TN_API tn_tensor *tn_nonzero(tn_tensor *x);                      /* [count, ndim] */

typedef struct tn_sort_args {
    int        zero_;
    tn_tensor *x;
    int        dim;
    bool       descending;
    int        end_;
} TN_KEYWORDS_ONLY tn_sort_args;
typedef struct tn_topk_args {
    int        zero_;
    tn_tensor *x;
    int64_t    k;
    int        dim;
    bool       smallest;
    int        end_;
} TN_KEYWORDS_ONLY tn_topk_args;
TN_API tn_pair     tn_sort_run(tn_sort_args a); /* stable; NaN is the largest */
TN_API tn_pair     tn_topk_run(tn_topk_args a); /* sorted, the largest first; or the smallest */
#define tn_sort(...) TN_CALL_(tn_sort_run(TN_ARGS2_(tn_sort_args, TN_NO_DEFAULTS_, x, dim, __VA_ARGS__, TN_END_)))
#define tn_topk(...) TN_CALL_(tn_topk_run(TN_ARGS3_(tn_topk_args, TN_NO_DEFAULTS_, x, k, dim, __VA_ARGS__, TN_END_)))

/* ---- normalisation, dropout -------------------------------------------------------------------------------------- */

/* Over the dims of weight and bias, each of which may be NULL; over the last dim if both are. */
TN_API tn_tensor *tn_layer_norm_run(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, double eps);
TN_API tn_tensor *tn_rms_norm_run(tn_tensor *x, tn_tensor *weight, double eps);
/* 0 with probability p, otherwise x/(1-p). Draws from the current generator; stores no mask. The mask of an element of
 * a batch [B, T, ...] does not depend on T: a longer batch with the same generator extends it. */
TN_API tn_tensor *tn_dropout_run(tn_tensor *x, double p);
/* For an unpadded batch: row i of x [..., n] is dropped like row rows[i] of the flattened batch [B, length, n]. rows:
 * i64, one for each row of x. */
TN_API tn_tensor *tn_dropout_rows(tn_tensor *x, double p, tn_tensor *rows, int64_t length);

/* ---- convolution and pooling ------------------------------------------------------------------------------------- */

typedef struct tn_conv1d_args {
    int            zero_;
    tn_tensor     *x, *weight, *bias; /* [N, C, L], [O, C/groups, K], [O] or NULL */
    int64_t stride TN_IS(1), padding, dilation TN_IS(1), groups TN_IS(1);
    int            end_;
} TN_KEYWORDS_ONLY tn_conv1d_args;
#define TN_CONV1D_ARGS_DEFAULTS .stride = 1, .dilation = 1, .groups = 1
typedef struct tn_conv2d_args {
    int            zero_;
    tn_tensor     *x, *weight, *bias; /* [N, C, H, W], [O, C/groups, KH, KW], [O] or NULL */
    int64_t stride TN_IS(1), stride_w
        TN_IS(-1); /* of height and width; a width of -1 means: the value for the height */
    int64_t padding, padding_w TN_IS(-1), dilation TN_IS(1), dilation_w TN_IS(-1), groups TN_IS(1);
    int end_;
} TN_KEYWORDS_ONLY tn_conv2d_args;
#define TN_CONV2D_ARGS_DEFAULTS \
    .stride = 1, .stride_w = -1, .padding_w = -1, .dilation = 1, .dilation_w = -1, .groups = 1
typedef struct tn_pool1d_args {
    int        zero_;
    tn_tensor *x;                                     /* [N, C, L] */
    int64_t size, stride, padding, dilation TN_IS(1); /* stride 0: size */
    bool ignore_padding; /* average pooling: divide by the number of elements that are not padding */
    int  end_;
} TN_KEYWORDS_ONLY tn_pool1d_args;
#define TN_POOL1D_ARGS_DEFAULTS .dilation = 1
typedef struct tn_pool2d_args {
    int        zero_;
    tn_tensor *x; /* [N, C, H, W] */
    int64_t size, size_w TN_IS(-1), stride, stride_w TN_IS(-1), padding, padding_w TN_IS(-1), dilation TN_IS(1),
        dilation_w TN_IS(-1); /* stride 0: size */
    bool ignore_padding;
    int  end_;
} TN_KEYWORDS_ONLY tn_pool2d_args;
#define TN_POOL2D_ARGS_DEFAULTS .size_w = -1, .stride_w = -1, .padding_w = -1, .dilation = 1, .dilation_w = -1
TN_API tn_tensor *tn_conv1d_run(tn_conv1d_args a);
TN_API tn_tensor *tn_conv2d_run(tn_conv2d_args a);
TN_API tn_tensor *tn_max_pool1d_run(tn_pool1d_args a);
TN_API tn_tensor *tn_max_pool2d_run(tn_pool2d_args a);
TN_API tn_tensor *tn_avg_pool1d_run(tn_pool1d_args a);
TN_API tn_tensor *tn_avg_pool2d_run(tn_pool2d_args a);
#if TN_KEYWORDS_
#define tn_conv1d(...) \
    TN_CALL_(tn_conv1d_run(TN_ARGS3_(tn_conv1d_args, TN_CONV1D_ARGS_DEFAULTS, x, weight, bias, __VA_ARGS__, TN_END_)))
#define tn_conv2d(...) \
    TN_CALL_(tn_conv2d_run(TN_ARGS3_(tn_conv2d_args, TN_CONV2D_ARGS_DEFAULTS, x, weight, bias, __VA_ARGS__, TN_END_)))
#define tn_max_pool1d(...) \
    TN_CALL_(tn_max_pool1d_run(TN_ARGS1_(tn_pool1d_args, TN_POOL1D_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_max_pool2d(...) \
    TN_CALL_(tn_max_pool2d_run(TN_ARGS1_(tn_pool2d_args, TN_POOL2D_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_avg_pool1d(...) \
    TN_CALL_(tn_avg_pool1d_run(TN_ARGS1_(tn_pool1d_args, TN_POOL1D_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_avg_pool2d(...) \
    TN_CALL_(tn_avg_pool2d_run(TN_ARGS1_(tn_pool2d_args, TN_POOL2D_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#endif

/* ---- losses ------------------------------------------------------------------------------------------------------ */

typedef enum { TN_MEAN = 0, TN_SUM, TN_NONE } tn_reduction;
typedef struct tn_cross_entropy_args {
    int                  zero_;
    tn_tensor           *logits; /* [..., C]: classes last, or at class_dim as in PyTorch's [N, C, d1, …] */
    tn_tensor           *target; /* i64 [...]: classes; or floating, of logits' shape: class probabilities */
    tn_tensor           *weight; /* [C] or NULL */
    int64_t ignore_index TN_IS(-100);
    double               label_smoothing;
    tn_reduction         reduction;
    int class_dim        TN_IS(-1);
    int64_t             *counted; /* out, may be NULL: number of targets not ignored */
    int                  end_;
} TN_KEYWORDS_ONLY tn_cross_entropy_args;
#define TN_CROSS_ENTROPY_ARGS_DEFAULTS .ignore_index = -100, .class_dim = -1
/* If all targets are ignored: loss 0, gradient 0, *counted 0. */
TN_API tn_tensor *tn_cross_entropy_run(tn_cross_entropy_args a);
TN_API tn_tensor *tn_nll_loss_run(tn_cross_entropy_args a); /* logits are log-probabilities */
typedef struct tn_loss_args {
    int          zero_;
    tn_tensor   *input, *target; /* of the same shape */
    tn_reduction reduction;
    tn_tensor   *weight, *pos_weight; /* bce_with_logits */
    double delta TN_IS(1);            /* huber */
    bool         log_target;          /* kl_div */
    bool         batchmean;           /* kl_div: the sum divided by the first dim's size */
    int          end_;
} TN_KEYWORDS_ONLY tn_loss_args;
#define TN_LOSS_ARGS_DEFAULTS .delta = 1
TN_API tn_tensor *tn_mse_loss_run(tn_loss_args a);
TN_API tn_tensor *tn_l1_loss_run(tn_loss_args a);
TN_API tn_tensor *tn_huber_loss_run(tn_loss_args a);
TN_API tn_tensor *tn_kl_div_run(tn_loss_args a); /* input: log-probabilities */
TN_API tn_tensor *tn_bce_with_logits_run(tn_loss_args a);
TN_API tn_tensor *tn_cosine_similarity(tn_tensor *a, tn_tensor *b, int dim, double eps); /* eps: 1e-8 in PyTorch */
#if TN_KEYWORDS_
#define tn_cross_entropy(...)      \
    TN_CALL_(tn_cross_entropy_run( \
        TN_ARGS2_(tn_cross_entropy_args, TN_CROSS_ENTROPY_ARGS_DEFAULTS, logits, target, __VA_ARGS__, TN_END_)))
#define tn_nll_loss(...)      \
    TN_CALL_(tn_nll_loss_run( \
        TN_ARGS2_(tn_cross_entropy_args, TN_CROSS_ENTROPY_ARGS_DEFAULTS, logits, target, __VA_ARGS__, TN_END_)))
#define tn_mse_loss(...) \
    TN_CALL_(tn_mse_loss_run(TN_ARGS2_(tn_loss_args, TN_LOSS_ARGS_DEFAULTS, input, target, __VA_ARGS__, TN_END_)))
#define tn_l1_loss(...) \
    TN_CALL_(tn_l1_loss_run(TN_ARGS2_(tn_loss_args, TN_LOSS_ARGS_DEFAULTS, input, target, __VA_ARGS__, TN_END_)))
#define tn_huber_loss(...) \
    TN_CALL_(tn_huber_loss_run(TN_ARGS2_(tn_loss_args, TN_LOSS_ARGS_DEFAULTS, input, target, __VA_ARGS__, TN_END_)))
#define tn_kl_div(...) \
    TN_CALL_(tn_kl_div_run(TN_ARGS2_(tn_loss_args, TN_LOSS_ARGS_DEFAULTS, input, target, __VA_ARGS__, TN_END_)))
#define tn_bce_with_logits(...) \
    TN_CALL_(                   \
        tn_bce_with_logits_run(TN_ARGS2_(tn_loss_args, TN_LOSS_ARGS_DEFAULTS, input, target, __VA_ARGS__, TN_END_)))
#endif

/* ---- attention --------------------------------------------------------------------------------------------------- */

typedef struct tn_attention_args {
    int zero_;
    /* [..., T, D], [..., S, D], [..., S, E], whose leading dims broadcast; or q alone, [B, T, 3, H, D]: q, k and v of H
     * heads, the result of one projection. Views are read without a copy. */
    tn_tensor *q, *k, *v;
    bool       int8;             /* k and v are results of tn_int8_rows, constants; q is f32 or bf16 */
    tn_tensor *attn_mask;        /* attention mask, broadcasts to [..., T, S]; bool: true is masked; floating: added */
    tn_tensor *key_padding_mask; /* padding mask, bool [B, S], for [B, H, T, D] heads: true is padding */
    bool       causal;           /* query t attends to keys 0 … past + t */
    int64_t    past;
    int64_t    window; /* only keys less than `window` positions away from the query; 0: all */
    /* An unpadded batch: rows offsets[i] … offsets[i + 1] - 1 are sequence i, and a query attends only to keys of its
     * own sequence, from which causal and window count. i64 [sequences + 1]; key_offsets are those of k and v. */
    tn_tensor   *offsets, *key_offsets; /* key_offsets NULL: offsets */
    double       dropout;
    double scale TN_IS(-1); /* below 0: 1/√D */
    double       cap;       /* scores are cap · tanh(scale · q kᵀ / cap), before masks are added; 0: not capped */
    tn_dims      order;     /* the result is tn_permute(y, order) of y [..., T, E]; none: y itself */
    tn_tensor  **weights;   /* out, may be NULL: the weights [..., T, S] after dropout, on the tape */
    int          end_;
} TN_KEYWORDS_ONLY tn_attention_args;
#define TN_ATTENTION_ARGS_DEFAULTS .scale = -1
/* softmax(scale · q kᵀ) v. A query whose keys are all masked gets 0, and gradient 0. No tensor of shape [T, S] is
 * allocated, except for .weights or for the gradient of an added mask. A row's bits depend only on the keys that it
 * attends to, so padded and unpadded batches give the same. */
TN_API tn_tensor *tn_attention_run(tn_attention_args a);
/* With .past read from a tensor, i64 or i32 [1], when the op runs: a replay may change it. Keys and values after those
 * that the last query attends to are ignored, so that k and v may be a cache that is not full. With .causal; without
 * masks, dropout, .weights and gradients. */
TN_API tn_tensor *tn_attention_at(tn_attention_args a, tn_tensor *past);
#if TN_KEYWORDS_
#define tn_attention(...) \
    TN_CALL_(tn_attention_run(TN_ARGS3_(tn_attention_args, TN_ATTENTION_ARGS_DEFAULTS, q, k, v, __VA_ARGS__, TN_END_)))
#endif

/* These names are also types: tn_linear(x, w, b) calls the op, tn_linear *m is a module (nn/modules.h). */
#define tn_linear(...) tn_linear_run(__VA_ARGS__)
#define tn_embedding(...) tn_embedding_run(__VA_ARGS__)
#define tn_layer_norm(...) tn_layer_norm_run(__VA_ARGS__)
#define tn_rms_norm(...) tn_rms_norm_run(__VA_ARGS__)
#define tn_dropout(...) tn_dropout_run(__VA_ARGS__)
#define tn_flatten(...) tn_flatten_run(__VA_ARGS__)

TN_C_END_
#if defined(__cplusplus) && !TN_KEYWORDS_
inline tn_tensor *tn_sum(tn_tensor *x, tn_dims dims = TN_DIMS(), bool keepdim = false)
{
    tn_reduce_args a{};
    a.x = x, a.dims = dims, a.keepdim = keepdim;
    return tn_sum_run(a);
}
inline tn_tensor *tn_mean(tn_tensor *x, tn_dims dims = TN_DIMS(), bool keepdim = false)
{
    tn_reduce_args a{};
    a.x = x, a.dims = dims, a.keepdim = keepdim;
    return tn_mean_run(a);
}
#endif
#endif
