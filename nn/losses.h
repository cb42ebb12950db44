/* losses.h — losses as modules, whose options are set once: tn_loss_forward(loss, input, target). The losses
 * themselves are ops. Part of nn.h: include that. */
#ifndef TENON_NN_LOSSES_H
#define TENON_NN_LOSSES_H

#include "module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_class_loss_config {
    int                  zero_;
    tn_tensor           *weight; /* [C] or NULL; copied, and part of the state dict as in PyTorch */
    int64_t ignore_index TN_IS(-100);
    double               label_smoothing;
    tn_reduction         reduction;
    int class_dim        TN_IS(-1); /* 1: PyTorch's [N, C, d1, ...] */
    int                  end_;
} TN_KEYWORDS_ONLY tn_class_loss_config; /* tn_cross_entropy_loss_new, tn_nll_loss_new (no label_smoothing) */
#define TN_CLASS_LOSS_DEFAULTS .ignore_index = -100, .class_dim = -1
typedef struct tn_pair_loss_config {
    int          zero_;
    tn_reduction reduction;
    double delta TN_IS(1);   /* huber */
    bool         log_target; /* kl_div */
    bool         batchmean;  /* kl_div */
    int          end_;
} TN_KEYWORDS_ONLY tn_pair_loss_config; /* tn_mse_loss_new, tn_l1_loss_new, tn_huber_loss_new, tn_kl_div_loss_new */
#define TN_PAIR_LOSS_DEFAULTS .delta = 1
typedef struct tn_bce_loss_config {
    int          zero_;
    tn_reduction reduction;
    tn_tensor   *weight, *pos_weight; /* copied */
    int          end_;
} TN_KEYWORDS_ONLY tn_bce_loss_config; /* tn_bce_with_logits_loss_new */
typedef struct tn_cosine_loss_config {
    int          zero_;
    tn_reduction reduction;
    double       margin;
    int          end_;
} TN_KEYWORDS_ONLY tn_cosine_loss_config; /* tn_cosine_embedding_loss_new */
typedef struct {
    tn_module    base;
    tn_reduction reduction;
    tn_tensor   *weight, *pos_weight;
    int64_t      ignore_index;
    double       label_smoothing, delta, margin;
    int          class_dim;
    bool         log_target, batchmean;
} tn_loss;
TN_API tn_loss   *tn_cross_entropy_loss_create(tn_class_loss_config c);
TN_API tn_loss   *tn_nll_loss_create(tn_class_loss_config c);
TN_API tn_loss   *tn_mse_loss_create(tn_pair_loss_config c);
TN_API tn_loss   *tn_l1_loss_create(tn_pair_loss_config c);
TN_API tn_loss   *tn_huber_loss_create(tn_pair_loss_config c);
TN_API tn_loss   *tn_kl_div_loss_create(tn_pair_loss_config c);
TN_API tn_loss   *tn_bce_with_logits_loss_create(tn_bce_loss_config c);
TN_API tn_loss   *tn_cosine_embedding_loss_create(tn_cosine_loss_config c);
TN_API tn_tensor *tn_loss_forward(tn_loss *m, tn_tensor *input, tn_tensor *target);
/* target [N] of 1 and -1: 1 - cos(x1, x2), or max(0, cos(x1, x2) - margin) */
TN_API tn_tensor *tn_cosine_embedding_loss_forward(tn_loss *m, tn_tensor *x1, tn_tensor *x2, tn_tensor *target);

#ifdef __cplusplus
}
#else
#define tn_cross_entropy_loss_new(...) \
    TN_NEW_(tn_cross_entropy_loss_create, tn_class_loss_config, TN_CLASS_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_nll_loss_new(...) TN_NEW_(tn_nll_loss_create, tn_class_loss_config, TN_CLASS_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_mse_loss_new(...) TN_NEW_(tn_mse_loss_create, tn_pair_loss_config, TN_PAIR_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_l1_loss_new(...) TN_NEW_(tn_l1_loss_create, tn_pair_loss_config, TN_PAIR_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_huber_loss_new(...) TN_NEW_(tn_huber_loss_create, tn_pair_loss_config, TN_PAIR_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_kl_div_loss_new(...) TN_NEW_(tn_kl_div_loss_create, tn_pair_loss_config, TN_PAIR_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_bce_with_logits_loss_new(...) \
    TN_NEW_(tn_bce_with_logits_loss_create, tn_bce_loss_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_cosine_embedding_loss_new(...) \
    TN_NEW_(tn_cosine_embedding_loss_create, tn_cosine_loss_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#endif
#endif
