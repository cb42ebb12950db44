/* lsh_attention.h — an op for long sequences: attention among few keys (Kitaev, Kaiser, Levskaya 2020: Reformer). Part
 * of extras.h. */
#ifndef TENON_EXTRAS_LSH_ATTENTION_H
#define TENON_EXTRAS_LSH_ATTENTION_H

#include "../autograd/autograd.h"

TN_C_BEGIN_

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
 * counts twice: neither happens with .causal and one round. `before` and `after` are at most the number of chunks. */
TN_API tn_tensor *tn_lsh_attention_run(tn_lsh_attention_args a);
#define tn_lsh_attention(...)      \
    TN_CALL_(tn_lsh_attention_run( \
        TN_ARGS3_(tn_lsh_attention_args, TN_LSH_ATTENTION_ARGS_DEFAULTS, q, k, v, __VA_ARGS__, TN_END_)))

TN_C_END_
#endif
