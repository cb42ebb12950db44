/* look.h — what the parts of a model are for: heads by their importance, where attention leads, what each word adds to
 * an answer. Stands on nn/look.h; the loss around the weights, and probes, are in surface.h. Part of models.h: include
 * that.
 *
 *     tn_heads *h = tn_heads_new(bert);                                // all heads of all attentions in it
 *     for (int i = 0; i < 8; i++) tn_heads_add(h, loss_of, &parts[i]);
 *     int64_t n = tn_heads_count(h), *order = malloc((size_t)n * sizeof *order);
 *     tn_heads_order(h, TN_LEAST_FIRST, 0, order);
 *     tn_heads_prune(h, n / 2, order);                                 // tn_bert_save: Hugging Face's pruned_heads
 *     tn_heads_free(h); */
#ifndef TENON_MODELS_LOOK_H
#define TENON_MODELS_LOOK_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef tn_tensor *(*tn_look_loss)(void *model, void *user); /* one number; it runs the model */
/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* I = E |Att(x)ᵀ ∂L/∂Att(x)| (Michel et al. 2019), over the texts that were added: of each text, the sum over its words
 * of what the head gives, times the gradient of the batch's loss times the number of its texts. Heads that share keys
 * are one head here. */
typedef struct tn_heads tn_heads;
typedef struct {
    const char *path;   /* of its attention */
    tn_mha     *of;     /* likewise */
    int64_t     head;   /* its number before any was taken out, and how many go with it */
    int64_t     shared; /* 1, or the heads of queries that share its keys */
    double      importance;
    bool        masked;
} tn_head;
TN_API tn_heads *tn_heads_new(void *model); /* which must live as long; made anew after pruning */
TN_API void      tn_heads_free(tn_heads *h);
TN_API int64_t   tn_heads_count(const tn_heads *h);
TN_API tn_head   tn_heads_at(const tn_heads *h, int64_t i);
TN_API tn_status tn_heads_add(tn_heads *h, tn_look_loss loss, void *user); /* the model's gradients stay as they are */
typedef enum { TN_LEAST_FIRST = 0, TN_MOST_FIRST, TN_RANDOM_ORDER } tn_heads_way;
TN_API void tn_heads_order(const tn_heads *h, tn_heads_way way, uint64_t seed, int64_t *order);
/* A scope in which the masked heads give 0, and the same for good: heads[0 … n - 1] are taken out, and h is spent. */
TN_API void      tn_heads_mask(tn_heads *h, int64_t i, bool masked);
TN_API tn_scope  tn_heads_begin(tn_heads *h);
TN_API tn_status tn_heads_prune(tn_heads *h, int64_t n, const int64_t *heads);
/* ---- where attention leads (Abnar, Zuidema 2020) ----------------------------------------------------------------- */

/* Of weights [B, heads, T, T], a layer each, from the first; A = ½ (mean over heads + 1) of a layer, rows summing to 1.
 * rollout: A_L … A_1, [B, T, T]. flow: the largest flow from each word of the last layer to each of the first, where A
 * are capacities; [B, T, T], rows divided by their sums. */
TN_API tn_tensor *tn_attention_rollout(int64_t layers, tn_tensor *const *weights);
TN_API tn_tensor *tn_attention_flow(int64_t layers, tn_tensor *const *weights);
/* ---- what each word adds ----------------------------------------------------------------------------------------- */

typedef struct tn_attribute_args {
    int           zero_;
    void         *model;
    const char   *path;  /* of the words' vectors: "bert.embeddings.word_embeddings", "transformer.wte" */
    tn_look_loss  score; /* one number, a log-probability, say */
    void         *user;
    tn_tensor    *baseline;     /* vectors that stand for no word, broadcast; NULL: zeros */
    int64_t steps TN_IS(32);    /* integrated gradients; up to 1024 until the sum is right; 1: gradient × input */
    double within TN_IS(0.005); /* ... to this part of the difference */
    double       *difference;   /* out, may be NULL: score(words) - score(baseline) */
    int           end_;
} TN_KEYWORDS_ONLY tn_attribute_args;
#define TN_ATTRIBUTE_ARGS_DEFAULTS .steps = 32, .within = 0.005
/* [B, T]: what each word adds to the score; their sum is the difference (Sundararajan et al. 2017). */
TN_API tn_tensor *tn_attribute_run(tn_attribute_args a);

#ifdef __cplusplus
}
#else
#define tn_attribute(...) \
    TN_CALL_(tn_attribute_run((tn_attribute_args){TN_ATTRIBUTE_ARGS_DEFAULTS, TN_NAMED_, __VA_ARGS__}))
#endif
#endif
