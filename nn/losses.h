/* losses.h — losses as modules, whose options are set once: tn_loss_forward(loss, input, target). The losses
 * themselves are ops. Part of nn.h: include that. */
#ifndef TENON_NN_LOSSES_H
#define TENON_NN_LOSSES_H

#include "modules.h"

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

/* ---- large vocabularies ------------------------------------------------------------------------------------------ */

/* Frequent classes first (Grave and others 2017; torch.nn.AdaptiveLogSoftmaxWithLoss): the head scores those before the
 * first cutoff, and each cluster behind with one number; a cluster's own classes are scored only where they are meant.
 *
 *     tn_adaptive_softmax *m = tn_adaptive_softmax_new(.in = 256, .classes = 50000, .cutoffs = {2000, 10000});
 *     tn_tensor           *loss = tn_adaptive_softmax_forward(m, x, target, NULL); */
enum { TN_CUTOFFS = 8 };
typedef struct tn_adaptive_softmax_config {
    int              zero_;
    int64_t          in, classes;
    int64_t          cutoffs[TN_CUTOFFS]; /* rising, below classes; the first 0 ends them */
    double div_value TN_IS(4);            /* a cluster's vectors are so many times shorter than those before it */
    bool             head_bias;
    tn_dtype         dtype;
    int              end_;
} TN_KEYWORDS_ONLY tn_adaptive_softmax_config;
#define TN_ADAPTIVE_SOFTMAX_DEFAULTS .div_value = 4
typedef struct {
    tn_module       base;
    int64_t         in, classes, clusters;
    int64_t         cutoffs[TN_CUTOFFS + 1]; /* the last is classes */
    tn_linear      *head;                    /* [cutoffs[0] + clusters, in] */
    tn_module_list *tail;                    /* of each cluster a tn_sequential of two tn_linear */
} tn_adaptive_softmax;
TN_API tn_adaptive_softmax *tn_adaptive_softmax_create(tn_adaptive_softmax_config c);
/* x [..., in], target [...]: the mean of -log p(target); *output: log p of each, [...]; output may be NULL. */
TN_API tn_tensor *tn_adaptive_softmax_forward(tn_adaptive_softmax *m, tn_tensor *x, tn_tensor *target,
                                              tn_tensor **output);
TN_API tn_tensor *tn_adaptive_softmax_log_prob(tn_adaptive_softmax *m, tn_tensor *x); /* [..., classes] */

/* A class against k others drawn from noise q(w) ~ counts(w)^power, with scores s(w) = x · weight[w] + bias[w]:
 * softplus(-s(target)) + sum over the noise of softplus(s(w)), which is
 * negative sampling (Mikolov 2013) with s as it is, noise-contrastive estimation (Gutmann and Hyvarinen 2010) with
 * s(w) - log(k q(w)), whose scores become log-probabilities by themselves. */
typedef struct tn_sampled_loss_config {
    int             zero_;
    tn_tensor      *counts; /* [classes]: how often each was seen */
    double power    TN_IS(0.75);
    int64_t samples TN_IS(25); /* k */
    tn_reduction    reduction;
    int             end_;
} TN_KEYWORDS_ONLY tn_sampled_loss_config; /* tn_nce_loss_new, tn_negative_sampling_loss_new */
#define TN_SAMPLED_LOSS_DEFAULTS .power = 0.75, .samples = 25
typedef struct {
    tn_module    base;
    int64_t      classes, samples;
    tn_reduction reduction;
    double      *cumulative, *probability; /* [classes], of the noise */
} tn_sampled_loss;
TN_API tn_sampled_loss *tn_nce_loss_create(tn_sampled_loss_config c);
TN_API tn_sampled_loss *tn_negative_sampling_loss_create(tn_sampled_loss_config c);
typedef struct tn_sampled_loss_args {
    int        zero_;
    tn_tensor *x, *weight, *bias; /* [N, in], [classes, in], [classes] or NULL */
    tn_tensor *target;            /* i64 [N] */
    tn_tensor *noise;             /* i64 [k] for all rows, or [N, k]; NULL: k are drawn for all rows */
    int        end_;
} TN_KEYWORDS_ONLY tn_sampled_loss_args;
TN_API tn_tensor  *tn_sampled_loss_run(tn_sampled_loss *m, tn_sampled_loss_args a);

#ifdef __cplusplus
}
#else
#define tn_adaptive_softmax_new(...) \
    TN_NEW_(tn_adaptive_softmax_create, tn_adaptive_softmax_config, TN_ADAPTIVE_SOFTMAX_DEFAULTS, __VA_ARGS__)
#define tn_nce_loss_new(...) TN_NEW_(tn_nce_loss_create, tn_sampled_loss_config, TN_SAMPLED_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_negative_sampling_loss_new(...) \
    TN_NEW_(tn_negative_sampling_loss_create, tn_sampled_loss_config, TN_SAMPLED_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_sampled_loss_forward(m, ...) \
    TN_CALL_(tn_sampled_loss_run(       \
        m, TN_ARGS4_(tn_sampled_loss_args, TN_NO_DEFAULTS_, x, weight, bias, target, __VA_ARGS__, .zero_ = 0)))
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
