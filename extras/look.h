/* look.h — analysis of a model's parts: importance and pruning of attention heads, attention flow, attribution of a
 * score to tokens. Built on nn/look.h; loss surfaces and probes are in surface.h. Part of extras.h: include that.
 *
 *     tn_heads *h = tn_heads_new(bert);                                // all heads of all attentions in it
 *     for (int i = 0; i < 8; i++) tn_heads_add(h, loss_of, &parts[i]);
 *     int64_t n = tn_heads_count(h), *order = malloc((size_t)n * sizeof *order);
 *     tn_heads_order(h, TN_LEAST_FIRST, 0, order);
 *     tn_heads_prune(h, n / 2, order);                                 // tn_bert_save writes pruned_heads
 *     tn_heads_free(h); */
#ifndef TENON_EXTRAS_LOOK_H
#define TENON_EXTRAS_LOOK_H

#include "../nn/nn.h"

TN_C_BEGIN_

typedef tn_tensor *(*tn_look_loss)(void *model, void *user); /* runs the model, returns a scalar */
/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* Importance of a head: I = E |Att(x)ᵀ ∂L/∂Att(x)| (Michel et al. 2019), the mean over the added sequences. Per
 * sequence it is the sum over tokens of the head's output times the gradient of the batch's loss, times the sequences
 * in the batch. Query heads that share a key head count as one head. */
typedef struct tn_heads tn_heads;
typedef struct {
    const char *path;   /* module path of its attention */
    tn_mha     *of;     /* its attention */
    int64_t     head;   /* index of its first query head, before any pruning */
    int64_t     shared; /* query heads that share its keys; 1 in plain attention */
    double      importance;
    bool        masked;
} tn_head;
TN_API tn_heads *tn_heads_new(void *model); /* borrows the model; create a new list after pruning */
TN_API void      tn_heads_free(tn_heads *h);
TN_API int64_t   tn_heads_count(const tn_heads *h);
TN_API tn_head   tn_heads_at(const tn_heads *h, int64_t i);
TN_API tn_status tn_heads_add(tn_heads *h, tn_look_loss loss, void *user); /* does not change the model's gradients */
typedef enum { TN_LEAST_FIRST = 0, TN_MOST_FIRST, TN_RANDOM_ORDER } tn_prune_order;
TN_API void tn_heads_order(const tn_heads *h, tn_prune_order way, uint64_t seed, int64_t *order);
/* tn_heads_begin opens a scope in which masked heads output 0. tn_heads_prune removes heads[0 … n - 1] from the model;
 * afterwards h can only be freed. */
TN_API void      tn_heads_mask(tn_heads *h, int64_t i, bool masked);
TN_API tn_scope  tn_heads_begin(tn_heads *h);
TN_API tn_status tn_heads_prune(tn_heads *h, int64_t n, const int64_t *heads);
/* ---- attention rollout and flow (Abnar, Zuidema 2020) ------------------------------------------------------------ */

/* weights: one tensor [B, heads, T, T] per layer, first layer first; A = ½ (mean over heads + 1) of a layer, its rows
 * normalised to sum 1. rollout: the product A_L … A_1, [B, T, T]. flow: the maximum flow from each token of the last
 * layer to each token of the first, with A as capacities; [B, T, T], rows normalised. */
TN_API tn_tensor *tn_attention_rollout(int64_t layers, tn_tensor *const *weights);
TN_API tn_tensor *tn_attention_flow(int64_t layers, tn_tensor *const *weights);
/* ---- attribution ------------------------------------------------------------------------------------------------- */

typedef struct tn_attribute_args {
    int           zero_;
    void         *model;
    const char   *path;  /* path of the token embedding: "bert.embeddings.word_embeddings", "transformer.wte" */
    tn_look_loss  score; /* a scalar, for example a log-probability */
    void         *user;
    tn_tensor    *baseline;     /* embeddings of a neutral input, broadcast; NULL: zeros */
    int64_t steps TN_IS(32);    /* of the integral; more, up to 1024, until .within holds; 1: gradient × input */
    double within TN_IS(0.005); /* maximum error of the sum, relative to the difference */
    double       *difference;   /* out, may be NULL: score(input) - score(baseline) */
    int           end_;
} TN_KEYWORDS_ONLY tn_attribute_args;
#define TN_ATTRIBUTE_ARGS_DEFAULTS .steps = 32, .within = 0.005
/* Integrated gradients (Sundararajan et al. 2017): each token's contribution to the score, [B, T]; their sum is the
 * difference. */
TN_API tn_tensor *tn_attribute_run(tn_attribute_args a);

TN_C_END_
#define tn_attribute(...) \
    TN_CALL_(tn_attribute_run(TN_FILLED_(tn_attribute_args, TN_ATTRIBUTE_ARGS_DEFAULTS, __VA_ARGS__)))
#endif
