/* fused.h — several ops computed in one sweep through memory, which saves time and memory without changing a result:
 * values and gradients have the same bits as those of the parts in ops.h (only tn_linear_cross_entropy adds in another
 * order). The modules of nn/ use them unless a hook is set on one of the parts (nn/layers/fuse.c); call them in custom
 * layers. */
#ifndef TENON_AUTOGRAD_FUSED_H
#define TENON_AUTOGRAD_FUSED_H

#include "ops.h"

TN_C_BEGIN_

/* tn_gelu, tn_gelu_tanh or tn_relu of tn_linear(x, weight, bias): the first half of a Transformer's feed-forward. */
TN_API tn_tensor *tn_linear_gelu(tn_tensor *x, tn_tensor *weight, tn_tensor *bias);
TN_API tn_tensor *tn_linear_gelu_tanh(tn_tensor *x, tn_tensor *weight, tn_tensor *bias);
TN_API tn_tensor *tn_linear_relu(tn_tensor *x, tn_tensor *weight, tn_tensor *bias);
/* tn_add(c, tn_linear(x, weight, NULL)), c of the shape of the product: the second half of an adapter (nn/lora.h). */
TN_API tn_tensor *tn_linear_add(tn_tensor *x, tn_tensor *weight, tn_tensor *c);

typedef struct tn_add_dropout_norm_args {
    int         zero_;
    tn_tensor  *x, *h;         /* of one shape */
    tn_tensor  *weight, *bias; /* as in tn_layer_norm */
    double      p, eps;
    tn_tensor **sum;  /* out, may be NULL: x + dropout(h); on the tape */
    tn_tensor  *rows; /* as in tn_dropout_rows; NULL: the rows as they are */
    int64_t     length;
    int         end_;
} TN_KEYWORDS_ONLY tn_add_dropout_norm_args;
/* tn_layer_norm(tn_add(x, tn_dropout(h, p)), weight, bias, eps), the same bits in one pass:
 *     y = tn_add_dropout_norm(x, h, weight, bias, .p = 0.1, .eps = 1e-5); */
TN_API tn_tensor *tn_add_dropout_norm_run(tn_add_dropout_norm_args a);

typedef struct tn_linear_cross_entropy_args {
    int                  zero_;
    tn_tensor           *x, *weight, *bias; /* [..., in], [classes, in], [classes] or NULL */
    tn_tensor           *target;            /* i64 [...] */
    int64_t ignore_index TN_IS(-100);
    double               label_smoothing;
    tn_reduction         reduction; /* TN_MEAN or TN_SUM */
    int64_t             *counted;   /* out, may be NULL: number of targets not ignored */
    int                  end_;
} TN_KEYWORDS_ONLY tn_linear_cross_entropy_args;
#define TN_LINEAR_CROSS_ENTROPY_ARGS_DEFAULTS .ignore_index = -100
/* tn_cross_entropy(tn_linear(x, weight, bias), target) for many classes: holds one block of logits at a time, and has
 * computed its gradients when it returns. Ignored rows cost nothing. */
TN_API tn_tensor *tn_linear_cross_entropy_run(tn_linear_cross_entropy_args a);
#define tn_add_dropout_norm(...)      \
    TN_CALL_(tn_add_dropout_norm_run( \
        TN_ARGS4_(tn_add_dropout_norm_args, TN_NO_DEFAULTS_, x, h, weight, bias, __VA_ARGS__, TN_END_)))
#define tn_linear_cross_entropy(...)                                                                                  \
    TN_CALL_(                                                                                                         \
        tn_linear_cross_entropy_run(TN_ARGS4_(tn_linear_cross_entropy_args, TN_LINEAR_CROSS_ENTROPY_ARGS_DEFAULTS, x, \
                                              weight, bias, target, __VA_ARGS__, TN_END_)))

TN_C_END_
#endif
