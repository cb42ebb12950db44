/* convolution.h — convolution and pooling. In 2-d options, .size is the height and .size_w the width (stride, padding
 * and dilation alike); a width of -1, the default, equals the height. Part of nn.h: include that. */
#ifndef TENON_NN_CONVOLUTION_H
#define TENON_NN_CONVOLUTION_H

#include "module.h"

TN_C_BEGIN_

typedef struct tn_conv1d_config {
    int     zero_;
    int64_t in, out, size, stride TN_IS(1), padding, dilation TN_IS(1), groups TN_IS(1);
    int64_t  output_padding; /* only of transposed convolutions; less than the stride */
    bool     no_bias;
    bool     weight_norm; /* learn the length and the direction of weight[i], for each i: tn_weight_norm, dim 0 */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_conv1d_config;
#define TN_CONV1D_DEFAULTS .stride = 1, .dilation = 1, .groups = 1
typedef struct {
    tn_module  base;
    int64_t    in, out, size, stride, padding, dilation, groups, output_padding;
    tn_tensor *weight, *bias;       /* [out, in/groups, size], or if transposed [in, out/groups, size]; [out] */
    tn_tensor *weight_g, *weight_v; /* with .weight_norm [out, 1, 1], or if transposed [in, 1, 1], and the shape of
                                       weight, which is NULL */
} tn_conv1d;
TN_API tn_conv1d *tn_conv1d_create(tn_conv1d_config c); /* [N, C, L] */
TN_API tn_conv1d *tn_conv_transpose1d_create(tn_conv1d_config c);

typedef struct tn_conv2d_config {
    int        zero_;
    int64_t    in, out, size,
        size_w TN_IS(-1), stride TN_IS(1), stride_w TN_IS(-1), padding, padding_w TN_IS(-1), dilation TN_IS(1),
        dilation_w TN_IS(-1), groups TN_IS(1), output_padding, output_padding_w TN_IS(-1);
    bool     no_bias, weight_norm;
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_conv2d_config;
#define TN_CONV2D_DEFAULTS                                                                                    \
    .size_w = -1, .stride = 1, .stride_w = -1, .padding_w = -1, .dilation = 1, .dilation_w = -1, .groups = 1, \
    .output_padding_w = -1
typedef struct {
    tn_module  base;
    int64_t    in, out, size[2], stride[2], padding[2], dilation[2], groups, output_padding[2];
    tn_tensor *weight, *bias, *weight_g, *weight_v; /* as in tn_conv1d */
} tn_conv2d;
TN_API tn_conv2d *tn_conv2d_create(tn_conv2d_config c); /* [N, C, H, W] */
TN_API tn_conv2d *tn_conv_transpose2d_create(tn_conv2d_config c);

typedef struct tn_pool1d_config {
    int     zero_;
    int64_t size, stride, padding, dilation TN_IS(1); /* stride 0: size */
    bool ignore_padding;                              /* average pooling: do not count padding */
    int  end_;
} TN_KEYWORDS_ONLY tn_pool1d_config;
#define TN_POOL1D_DEFAULTS .dilation = 1
typedef struct tn_pool2d_config {
    int     zero_;
    int64_t size, size_w TN_IS(-1), stride, stride_w TN_IS(-1), padding, padding_w TN_IS(-1), dilation TN_IS(1),
        dilation_w TN_IS(-1);
    bool ignore_padding;
    int  end_;
} TN_KEYWORDS_ONLY tn_pool2d_config;
#define TN_POOL2D_DEFAULTS .size_w = -1, .stride_w = -1, .padding_w = -1, .dilation = 1, .dilation_w = -1
typedef struct {
    tn_module base;
    int64_t   size[2], stride[2], padding[2], dilation[2]; /* size: of windows; of an adaptive pool, of its result */
    bool      ignore_padding;
} tn_pool;
TN_API tn_pool *tn_max_pool1d_create(tn_pool1d_config c);
TN_API tn_pool *tn_max_pool2d_create(tn_pool2d_config c);
TN_API tn_pool *tn_avg_pool1d_create(tn_pool1d_config c); /* .dilation must be 1 */
TN_API tn_pool *tn_avg_pool2d_create(tn_pool2d_config c);

/* Pools whose windows are chosen so that the result has a given size: see tn_adaptive_avg_pool2d. */
typedef struct tn_adaptive_pool_config {
    int           zero_;
    int64_t       out;
    int64_t out_w TN_IS(-1); /* only of 2-d pools */
    int           end_;
} TN_KEYWORDS_ONLY tn_adaptive_pool_config;
#define TN_ADAPTIVE_POOL_DEFAULTS .out_w = -1
TN_API tn_pool *tn_adaptive_avg_pool1d_create(tn_adaptive_pool_config c);
TN_API tn_pool *tn_adaptive_avg_pool2d_create(tn_adaptive_pool_config c);
TN_API tn_pool *tn_adaptive_max_pool1d_create(tn_adaptive_pool_config c);
TN_API tn_pool *tn_adaptive_max_pool2d_create(tn_adaptive_pool_config c);

typedef struct tn_flatten_config {
    int       zero_;
    int first TN_IS(1), last TN_IS(-1);
    int       end_;
} TN_KEYWORDS_ONLY tn_flatten_config;
#define TN_FLATTEN_DEFAULTS .first = 1, .last = -1
typedef struct {
    tn_module base;
    int       first, last;
} tn_flatten;
TN_API tn_flatten *tn_flatten_create(tn_flatten_config c);

TN_C_END_
#define tn_conv1d_new(...) TN_NEW_(tn_conv1d_create, tn_conv1d_config, TN_CONV1D_DEFAULTS, __VA_ARGS__)
#define tn_conv2d_new(...) TN_NEW_(tn_conv2d_create, tn_conv2d_config, TN_CONV2D_DEFAULTS, __VA_ARGS__)
#define tn_conv_transpose1d_new(...) \
    TN_NEW_(tn_conv_transpose1d_create, tn_conv1d_config, TN_CONV1D_DEFAULTS, __VA_ARGS__)
#define tn_conv_transpose2d_new(...) \
    TN_NEW_(tn_conv_transpose2d_create, tn_conv2d_config, TN_CONV2D_DEFAULTS, __VA_ARGS__)
#define tn_max_pool1d_new(...) TN_NEW_(tn_max_pool1d_create, tn_pool1d_config, TN_POOL1D_DEFAULTS, __VA_ARGS__)
#define tn_max_pool2d_new(...) TN_NEW_(tn_max_pool2d_create, tn_pool2d_config, TN_POOL2D_DEFAULTS, __VA_ARGS__)
#define tn_avg_pool1d_new(...) TN_NEW_(tn_avg_pool1d_create, tn_pool1d_config, TN_POOL1D_DEFAULTS, __VA_ARGS__)
#define tn_avg_pool2d_new(...) TN_NEW_(tn_avg_pool2d_create, tn_pool2d_config, TN_POOL2D_DEFAULTS, __VA_ARGS__)
#define tn_adaptive_avg_pool1d_new(...) \
    TN_NEW_(tn_adaptive_avg_pool1d_create, tn_adaptive_pool_config, TN_ADAPTIVE_POOL_DEFAULTS, __VA_ARGS__)
#define tn_adaptive_avg_pool2d_new(...) \
    TN_NEW_(tn_adaptive_avg_pool2d_create, tn_adaptive_pool_config, TN_ADAPTIVE_POOL_DEFAULTS, __VA_ARGS__)
#define tn_adaptive_max_pool1d_new(...) \
    TN_NEW_(tn_adaptive_max_pool1d_create, tn_adaptive_pool_config, TN_ADAPTIVE_POOL_DEFAULTS, __VA_ARGS__)
#define tn_adaptive_max_pool2d_new(...) \
    TN_NEW_(tn_adaptive_max_pool2d_create, tn_adaptive_pool_config, TN_ADAPTIVE_POOL_DEFAULTS, __VA_ARGS__)
#define tn_flatten_new(...) TN_NEW_(tn_flatten_create, tn_flatten_config, TN_FLATTEN_DEFAULTS, __VA_ARGS__)
#endif
