/* mha.h — private functions of multi-head attention: mha.c creates and runs it, mha_args.c checks its config and calls,
 * projections.c computes queries, keys and values. Private to nn/. */
#ifndef TENON_NN_ATTENTION_MHA_H
#define TENON_NN_ATTENTION_MHA_H

#include "nn/attention/block.h"

/* The sizes of one call. */
typedef struct {
    int64_t batch, queries, given, before, keys; /* keys = before (in the cache) + given (of this call) */
    int64_t past;                                /* causal call: number of positions in the cache; else 0 */
    bool    recall;                              /* keys and values are a memory stored in the cache */
} tn__mha_sizes;

/* Checks a config and fills in defaults (mha_args.c); false: raised. */
bool tn__mha_complete(const char *who, tn_mha_config *c);

/* Check a call's arguments (mha_args.c); false: raised. fits: all but the mask; sets the sizes. mask: also selects the
 * heads that tn_mha_prune has not removed. placed: completes *p, the positions of the call, with a->placed if given. */
bool tn__mha_fits(const tn_mha *m, const tn_mha_args *a, tn__mha_sizes *z);
bool tn__mha_mask_fits(const tn_mha *m, const tn__mha_sizes *z, tn_tensor **attn_mask);
bool tn__mha_placed(tn_mha *m, const tn_mha_args *a, const tn__mha_sizes *z, tn_placed *p);
/* If a step is recorded with the cache: whether a replay, in which only the position changes, would repeat the call;
 * else raises. */
bool tn__mha_replayable(const tn_mha *m, const tn_mha_args *a, const tn_placed *p, bool others);

/* Projects queries, keys and values of this call (projections.c). Returns them as one tensor if `together` and they are
 * projections of one x; else returns NULL and sets h to the heads. */
tn_tensor *tn__mha_project(const tn_mha *m, const tn_mha_args *a, const tn__mha_sizes *z, bool together,
                           tn_tensor *h[3]);
/* Sets heads[i] to [B, heads, n, D], a view of part i of a projection [B, n, count, heads, D]. */
void tn__mha_split(tn_tensor *y, int count, tn_tensor **heads);

#endif
