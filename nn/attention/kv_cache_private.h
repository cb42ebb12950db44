/* kv_cache_private.h — what attention does with a tn_kv_cache. Private to nn/. */
#ifndef TENON_NN_ATTENTION_KV_CACHE_PRIVATE_H
#define TENON_NN_ATTENTION_KV_CACHE_PRIVATE_H

#include "nn/attention.h"

/* What a layer holds: its own positions, and those of a memory, or -1 before there is one. A cache that is NULL and
 * a layer that is not there hold nothing. */
typedef struct {
    int64_t own, memory;
} tn__cached_lengths;
tn__cached_lengths tn__cache_of(const tn_kv_cache *c, int64_t layer);

/* k and v [B, heads, n, head_dim], the first of those that the layer was `made` with, are written behind what the layer
 * holds, or in place of its memory (of != NULL: the tensor that it was made from). They belong to the layer once
 * tn__cache_commit is called, which cannot fail. */
bool tn__cache_write(tn_kv_cache *c, int64_t layer, bool memory, int64_t made, tn_tensor *k, tn_tensor *v);
void tn__cache_commit(tn_kv_cache *c, int64_t layer, tn_tensor *of, int64_t rows, int64_t n);

/* The first n positions, of all heads that there is room for: views [rows, heads, n, head_dim]. */
bool tn__cache_read(tn_kv_cache *c, int64_t layer, bool memory, int64_t rows, int64_t n, tn_tensor **k, tn_tensor **v);

/* Was the layer's memory made from this tensor? If not, raises. NULL is not checked. */
bool tn__cache_is_of(const tn_kv_cache *c, int64_t layer, const tn_tensor *of);

/* Positions before the first that is there: rotary positions count them. */
int64_t tn__cache_gone(const tn_kv_cache *c);

/* After a failure: layer holds no more than it did. */
void tn__cache_back(tn_kv_cache *c, int64_t layer, tn__cached_lengths before);

#endif
