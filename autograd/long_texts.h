/* long_texts.h — what models of long texts stand on: residual blocks that keep nothing, and attention among few. Part
 * of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_LONG_TEXTS_H
#define TENON_AUTOGRAD_LONG_TEXTS_H

#include "../core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reversible residual blocks (Gomez et al. 2017): for block = 0 … blocks - 1
 *     x[0] = x[0] + fn(block, 0, x[1]),   x[1] = x[1] + fn(block, 1, x[0])
 * and y is what x became, of x's shape. The tape keeps y alone: the backward subtracts block by block, from the last,
 * what was added, runs fn again, with the same draws from the generator in use here, and differentiates that. So fn
 * does the same each time and leaves x as it is; parameters inside get their gradients. user points to so many bytes,
 * of which fn sees a copy. What rounding could decide otherwise the second time, as which of two numbers is larger, fn
 * leaves in *memo the first time, and finds it the second time (NULL: nothing yet). No second derivatives. */
typedef tn_tensor *(*tn_reversible_fn)(int64_t block, int half, tn_tensor *x, tn_tensor **memo, const void *user);
TN_API tn_status tn_reversible(tn_reversible_fn fn, const void *user, size_t bytes, int64_t blocks,
                               tn_tensor *const x[2], tn_tensor *y[2]);

typedef struct tn_lsh_attention_args {
    int           zero_;
    tn_tensor    *q, *k, *v;    /* [B, H, T, D], the same, [B, H, T, E] */
    tn_tensor    *buckets;      /* i64 or i32 [B, H, rounds, T]; NULL: one round, in the order of the text */
    tn_tensor    *blocked_keys; /* bool [B, T]: true is padding */
    int64_t chunk TN_IS(64), before TN_IS(1), after; /* chunk divides T, unless T is no longer */
    bool          causal;                            /* position t sees positions 0 … t */
    bool          apart; /* a position sees itself only where it sees no other: for q and k of one direction */
    double        dropout;
    double scale  TN_IS(-1); /* below 0: 1/√D */
    int           end_;
} TN_KEYWORDS_ONLY tn_lsh_attention_args;
#define TN_LSH_ATTENTION_ARGS_DEFAULTS .chunk = 64, .before = 1, .scale = -1
/* Attention among few: in each round positions are sorted by bucket, and each sees those of its own chunk of the sorted
 * ones, of `before` chunks before it and `after` behind it; of all rounds together the softmax is made. [B, H, T, E].
 * As in Hugging Face's Reformer the chunks go round, the last one before the first, and a key that is met several times
 * counts so often: with .causal a text in one round has none of either. */
TN_API tn_tensor *tn_lsh_attention_run(tn_lsh_attention_args a);
#ifndef __cplusplus
#define tn_lsh_attention(...)      \
    TN_CALL_(tn_lsh_attention_run( \
        TN_ARGS3_(tn_lsh_attention_args, TN_LSH_ATTENTION_ARGS_DEFAULTS, q, k, v, __VA_ARGS__, .zero_ = 0)))
#endif

#ifdef __cplusplus
}
#endif
#endif
