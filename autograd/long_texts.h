/* long_texts.h — ops for long sequences: reversible residual blocks, which save no activations, and attention among few
 * keys. Part of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_LONG_TEXTS_H
#define TENON_AUTOGRAD_LONG_TEXTS_H

#include "../core/core.h"

TN_C_BEGIN_

/* Reversible residual blocks (Gomez et al. 2017): for block = 0 … blocks - 1
 *     x[0] = x[0] + fn(block, 0, x[1]),   x[1] = x[1] + fn(block, 1, x[0])
 * y is the final x, of x's shape. The tape keeps y alone: from the last block to the first, the backward runs fn again,
 * with the same random numbers from the current generator, differentiates that run and subtracts its result. So fn must
 * do the same each time and not change x; parameters inside get their gradients. `bytes` bytes at user are copied, and
 * fn receives the copy. A decision that rounding could change in the second run, such as which of two values is larger,
 * fn stores in *memo in the first run and finds there in the second (NULL: nothing stored). No second derivatives. */
typedef tn_tensor *(*tn_reversible_fn)(int64_t block, int half, tn_tensor *x, tn_tensor **memo, const void *user);
TN_API tn_status tn_reversible(tn_reversible_fn fn, const void *user, size_t bytes, int64_t blocks,
                               tn_tensor *const x[2], tn_tensor *y[2]);

typedef struct tn_lsh_attention_args {
    int           zero_;
    tn_tensor    *q, *k, *v;        /* [B, H, T, D], the same, [B, H, T, E] */
    tn_tensor    *buckets;          /* i64 or i32 [B, H, rounds, T]; NULL: one round, in the order of the sequence */
    tn_tensor    *key_padding_mask; /* bool [B, T]: true is padding */
    int64_t chunk TN_IS(64), before TN_IS(1), after; /* chunk divides T, or T is at most chunk */
    bool          causal;                            /* position t attends to 0 … t */
    bool          apart; /* a position attends to itself only if it has no other: for k parallel to q */
    double        dropout;
    double scale  TN_IS(-1); /* below 0: 1/√D */
    int           end_;
} TN_KEYWORDS_ONLY tn_lsh_attention_args;
#define TN_LSH_ATTENTION_ARGS_DEFAULTS .chunk = 64, .before = 1, .scale = -1
/* Attention among few keys: each round sorts the positions by bucket and cuts them into chunks. A position attends to
 * its own chunk, `before` chunks before it and `after` chunks after it; one softmax covers all rounds. [B, H, T, E].
 * As in Hugging Face's Reformer the chunks wrap around, the last one before the first, and a key that is reached twice
 * counts twice: neither happens with .causal and one round. */
TN_API tn_tensor *tn_lsh_attention_run(tn_lsh_attention_args a);
#define tn_lsh_attention(...)      \
    TN_CALL_(tn_lsh_attention_run( \
        TN_ARGS3_(tn_lsh_attention_args, TN_LSH_ATTENTION_ARGS_DEFAULTS, q, k, v, __VA_ARGS__, TN_END_)))

TN_C_END_
#endif
