/* block.h — private functions of the Transformer block. Private to nn/. */
#ifndef TENON_NN_ATTENTION_BLOCK_H
#define TENON_NN_ATTENTION_BLOCK_H

#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"
#include "nn/layers/experts.h"
#include "nn/layers/fuse.h"
#include "nn/transformer.h"

/* Checks a block's config and fills in derived defaults; false: raised. who: "tn_block_new". */
bool tn__block_config(const char *who, tn_block_config *c, bool memory);
/* Create a block, and the final norm of a stack, from a checked config. */
tn_block      *tn__block_of(const tn_block_config *c);
tn_layer_norm *tn__block_norm(const tn_block_config *c);

/* The config of m's rotary angles. */
tn_rope_config tn__mha_rope(const tn_mha *m);
/* True if both give the same angles. (positions.c) */
bool tn__rope_same(const tn_rope_config *a, const tn_rope_config *b);

/* True if the mask is valid for m and these numbers of rows, queries and keys: bool or floating, [T, S], [B·heads, T,
 * S] or [B or 1, heads or 1, T, S]. Reshapes a mask of 3 dims to 4. False: raised. (masks.c) */
bool tn__mha_mask(const tn_mha *m, int64_t batch, int64_t queries, int64_t keys, tn_tensor **attn_mask);

/* True if in a padding mask, [B, S] or NULL, each `each` rows in sequence are the same. *first: one of each, [B / each,
 * S]. (masks.c) */
bool tn__first_masks(tn_tensor *mask, int64_t each, tn_tensor **first);

/* Disentangled attention (disentangled.c). fits: checks .disentangled and sets the default scale; build: adds its
 * projections; args: checks a call's distances; mask: the position terms, from the heads of queries and keys and those
 * of relative positions, plus a checked mask or NULL. */
bool       tn__disentangled_fits(const char *who, tn_mha_config *c);
void       tn__disentangled_build(tn_mha *m, const tn_mha_config *c);
bool       tn__disentangled_args(const tn_mha *m, const tn_mha_args *a);
tn_tensor *tn__disentangled_mask(const tn_mha *m, tn_tensor *const h[2], tn_tensor *const of[2], tn_tensor *at,
                                 tn_tensor *attn_mask);

/* The positions [1, N] of an unpadded batch's rows in their sequences. */
tn_tensor *tn__unpadded_positions(const tn_unpadded *u);

/* The bias of a block's relative positions for x after `before` cached positions; NULL if the block has none. */
tn_tensor *tn__block_bias(const tn_block *m, const tn_block_args *a, int64_t before);

#endif
