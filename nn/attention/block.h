/* block.h — what the Transformer's encoder and decoder share. Private to nn/. */
#ifndef TENON_NN_ATTENTION_BLOCK_H
#define TENON_NN_ATTENTION_BLOCK_H

#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"
#include "nn/transformer.h"

/* Checks a layer's config and puts the defaults in. */
bool                        tn__layer_config(const char *who, tn_transformer_layer_config *c);
tn_transformer_layer_config tn__layer_of_stack(const tn_transformer_stack_config *c);

/* A layer's parts, by a config that has been checked. */
tn_mha        *tn__layer_mha(const tn_transformer_layer_config *c);
tn_linear     *tn__layer_linear(const tn_transformer_layer_config *c, int64_t in, int64_t out);
tn_layer_norm *tn__layer_norm(const tn_transformer_layer_config *c);
tn_dropout    *tn__layer_dropout(const tn_transformer_layer_config *c);

/* tn_leave for y, and the n tensors of each array (NULL: none). All become NULL if an error stands. */
tn_tensor *tn__leave_all(tn_frame f, tn_tensor *y, int64_t n, tn_tensor **a, tn_tensor **b);

/* A cache for stacks whose self-attention is like this one. */
tn_kv_cache *tn__layer_cache(const tn_mha *m, int64_t layers, int64_t batch, int64_t length, int64_t memory_length);

#endif
