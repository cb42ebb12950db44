/* block.h — what the Transformer's files share of its block. Private to nn/. */
#ifndef TENON_NN_ATTENTION_BLOCK_H
#define TENON_NN_ATTENTION_BLOCK_H

#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"
#include "nn/transformer.h"

/* Checks a block's config and puts the defaults in. who: "tn_block_new". */
bool tn__block_config(const char *who, tn_block_config *c);
/* A block, and the last norm of a stack, from a config that has been checked. */
tn_block      *tn__block_of(const tn_block_config *c);
tn_layer_norm *tn__block_norm(const tn_block_config *c);

/* The bias of a block's relative positions for x behind so many positions; NULL if it has none. */
tn_tensor *tn__block_bias(const tn_block *m, const tn_block_args *a, int64_t before);

#endif
