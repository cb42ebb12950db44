/* losses.h — a loss that is made of ops, and losses with parameters or a noise distribution, which are modules. All
 * others are ops (ops.h, more_ops.h). Part of nn.h: include that. */
#ifndef TENON_NN_LOSSES_H
#define TENON_NN_LOSSES_H

#include "modules.h"

TN_C_BEGIN_

/* torch.nn.functional.cosine_embedding_loss: for a target of 1, 1 - cos(x1, x2), for -1, max(0, cos(x1, x2) - margin).
 * x1, x2 [..., D], target [...]. */
TN_API tn_tensor *tn_cosine_embedding_loss(tn_tensor *x1, tn_tensor *x2, tn_tensor *target, double margin,
                                           tn_reduction reduction);

/* ---- large vocabularies ------------------------------------------------------------------------------------------ */

/* Adaptive softmax (Grave and others 2017; torch.nn.AdaptiveLogSoftmaxWithLoss). Classes are sorted by frequency, the
 * most frequent first. The head computes a logit for each class before the first cutoff and one for each cluster of
 * later classes; the logits of a cluster's classes are computed only for rows whose target is in it.
 *
 *     tn_adaptive_softmax *m = tn_adaptive_softmax_new(.in = 256, .classes = 50000, .cutoffs = {2000, 10000});
 *     tn_tensor           *loss = tn_adaptive_softmax_forward(m, x, target, NULL); */
enum { TN_CUTOFFS = 8 };
typedef struct tn_adaptive_softmax_config {
    int              zero_;
    int64_t          in, classes;
    int64_t          cutoffs[TN_CUTOFFS]; /* increasing, below classes; ends at the first 0 */
    double div_value TN_IS(4);            /* cluster i has hidden width in / div_value^(i + 1) */
    bool             head_bias;
    tn_dtype         dtype;
    int              end_;
} TN_KEYWORDS_ONLY tn_adaptive_softmax_config;
#define TN_ADAPTIVE_SOFTMAX_DEFAULTS .div_value = 4
typedef struct {
    tn_module       base;
    int64_t         in, classes, clusters;
    int64_t         cutoffs[TN_CUTOFFS + 1]; /* the last one equals classes */
    tn_linear      *head;                    /* [cutoffs[0] + clusters, in] */
    tn_module_list *tail;                    /* for each cluster a tn_sequential of two tn_linear */
} tn_adaptive_softmax;
TN_API tn_adaptive_softmax *tn_adaptive_softmax_create(tn_adaptive_softmax_config c);
/* x [..., in], target [...]. Returns the mean of -log p(target); *output: log p of each target, [...]; may be NULL. */
TN_API tn_tensor *tn_adaptive_softmax_forward(tn_adaptive_softmax *m, tn_tensor *x, tn_tensor *target,
                                              tn_tensor **output);
TN_API tn_tensor *tn_adaptive_softmax_log_prob(tn_adaptive_softmax *m, tn_tensor *x); /* [..., classes] */

/* A loss of the target class against k classes sampled from the noise distribution q(w) ~ counts(w)^power. With the
 * logits s(w) = x · weight[w] + bias[w] it is softplus(-s(target)) + sum over the samples of softplus(s(w)).
 * Negative sampling (Mikolov 2013) uses s unchanged. Noise-contrastive estimation (Gutmann and Hyvarinen 2010) uses
 * s(w) - log(k q(w)), so that the logits converge to log-probabilities. */
typedef struct tn_sampled_loss_config {
    int             zero_;
    tn_tensor      *counts; /* [classes]: number of occurrences of each class */
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
    double      *cumulative, *probability; /* [classes]: the noise distribution; cumulative sums are not normalised */
} tn_sampled_loss;
TN_API tn_sampled_loss *tn_nce_loss_create(tn_sampled_loss_config c);
TN_API tn_sampled_loss *tn_negative_sampling_loss_create(tn_sampled_loss_config c);
typedef struct tn_sampled_loss_args {
    int        zero_;
    tn_tensor *x, *weight, *bias; /* [N, in], [classes, in], [classes] or NULL */
    tn_tensor *target;            /* i64 [N] */
    tn_tensor *noise;             /* sampled classes, i64 [k] for all rows or [N, k]; NULL: sample [k] */
    int        end_;
} TN_KEYWORDS_ONLY tn_sampled_loss_args;
TN_API tn_tensor  *tn_sampled_loss_run(tn_sampled_loss *m, tn_sampled_loss_args a);

TN_C_END_
#define tn_adaptive_softmax_new(...) \
    TN_NEW_(tn_adaptive_softmax_create, tn_adaptive_softmax_config, TN_ADAPTIVE_SOFTMAX_DEFAULTS, __VA_ARGS__)
#define tn_nce_loss_new(...) TN_NEW_(tn_nce_loss_create, tn_sampled_loss_config, TN_SAMPLED_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_negative_sampling_loss_new(...) \
    TN_NEW_(tn_negative_sampling_loss_create, tn_sampled_loss_config, TN_SAMPLED_LOSS_DEFAULTS, __VA_ARGS__)
#define tn_sampled_loss_forward(m, ...) \
    TN_CALL_(tn_sampled_loss_run(       \
        m, TN_ARGS4_(tn_sampled_loss_args, TN_NO_DEFAULTS_, x, weight, bias, target, __VA_ARGS__, TN_END_)))
#endif
