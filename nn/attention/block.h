/* block.h — what the Transformer's files share of its block. Private to nn/. */
#ifndef TENON_NN_ATTENTION_BLOCK_H
#define TENON_NN_ATTENTION_BLOCK_H

#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"
#include "nn/transformer.h"

/* Checks a block's config and puts the defaults in. who: "tn_block_new". */
bool tn__block_config(const char *who, tn_block_config *c, bool memory);
/* A block, and the last norm of a stack, from a config that has been checked. */
tn_block      *tn__block_of(const tn_block_config *c);
tn_layer_norm *tn__block_norm(const tn_block_config *c);

/* Is the mask one that m takes for so many rows, queries and keys: of bool or floating, [T, S], [B·heads, T, S] or
 * [B or 1, heads or 1, T, S]? The one of 3 dims gets 4. If not, raises. (mha.c) */
bool tn__mha_mask(const tn_mha *m, int64_t batch, int64_t queries, int64_t keys, tn_tensor **blocked);

/* The bias of a block's relative positions for x behind so many positions; NULL if it has none. */
tn_tensor *tn__block_bias(const tn_block *m, const tn_block_args *a, int64_t before);

#endif
