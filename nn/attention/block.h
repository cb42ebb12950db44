/* block.h — private functions of the Transformer block. Private to nn/. */
#ifndef TENON_NN_ATTENTION_BLOCK_H
#define TENON_NN_ATTENTION_BLOCK_H

#include "nn/attention/checks.h"
#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"
#include "nn/transformer.h"

/* Checks a block's config and fills in derived defaults; false: raised. who: "tn_block_new"; memory: a decoder's. */
bool tn__block_config(const char *who, tn_block_config *c, bool memory);
/* Create a block, and the final norm of a stack, from a checked config. owns: as in tn__mha_create. */
tn_block      *tn__block_of(const tn_block_config *c, bool memory, bool owns);
tn_layer_norm *tn__block_norm(const tn_block_config *c);

/* A tn_mha that owns its positions if they have no owner, and frees them if that fails; or, with owns false, one whose
 * caller does that. */
tn_mha *tn__mha_create(tn_mha_config c, bool owns);

/* A module that an attention or a block was given as a part (parts.c). fits: it is NULL or has the functions of
 * positions; else raises. take: m becomes its owner if it has none; an error frees it. drop: frees it if it has no
 * owner. */
bool tn__part_fits(const char *who, const void *positions);
void tn__part_take(tn_module *m, void *part);
void tn__part_drop(void *part);

/* The config of the angles of m's positions, which are rotary. */
tn_rope_config tn__mha_rope(const tn_mha *m);

/* True if the mask is valid for m and these numbers of rows, queries and keys: bool or floating, [T, S], [B·heads, T,
 * S] or [B or 1, heads or 1, T, S]. Reshapes a mask of 3 dims to 4. False: raised. (masks.c) */
bool tn__mha_mask(const tn_mha *m, int64_t batch, int64_t queries, int64_t keys, tn_tensor **attn_mask);

/* True if in a padding mask, [B, S] or NULL, each `each` rows in sequence are the same. *first: one of each, [B / each,
 * S]. (masks.c) */
bool tn__first_masks(tn_tensor *mask, int64_t each, tn_tensor **first);

/* Heads [1, heads, n, D] of queries (of: 0) or keys (1) of x [1, n, dim] or [n, 1, dim], from projection `own`, or
 * if that is NULL from m's. */
tn_tensor *tn__mha_heads(const tn_mha *m, tn_linear *own, tn_tensor *x, int of);

/* The positions [1, N] of an unpadded batch's rows in their sequences. */
tn_tensor *tn__unpadded_positions(const tn_unpadded *u);
/* The indices, in the batch without padding, of the rows at these positions of the flattened [B · T]; raises if one is
 * of padding. u: NULL for a padded batch, whose indices are the positions. */
tn_tensor *tn__target_index(const tn_unpadded *u, tn_tensor *positions);
tn_tensor *tn__target_rows(tn_tensor *x, tn_tensor *index); /* rows of [B, T, dim] or [1, N, dim]: [1, targets, dim] */

#endif
