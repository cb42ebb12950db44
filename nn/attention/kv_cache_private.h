/* kv_cache_private.h — how attention uses a tn_kv_cache. Private to nn/. */
#ifndef TENON_NN_ATTENTION_KV_CACHE_PRIVATE_H
#define TENON_NN_ATTENTION_KV_CACHE_PRIVATE_H

#include "nn/attention.h"

/* The number of positions stored in a layer: its own, and those of a memory (-1: no memory stored). {0, -1} if the
 * cache is NULL or the layer does not exist. */
typedef struct {
    int64_t own, memory;
} tn__cached_lengths;
tn__cached_lengths tn__cache_lengths(const tn_kv_cache *c, int64_t layer);

/* Writes k and v [B, heads, n, head_dim] after the layer's positions or, if `memory`, in place of its memory. The layer
 * was created with `made` heads; k and v have the first of these. The positions count from tn__cache_commit on, which
 * cannot fail; its `of` is the tensor that a memory was computed from, else NULL. */
bool tn__cache_write(tn_kv_cache *c, int64_t layer, bool memory, int64_t made, tn_tensor *k, tn_tensor *v);
void tn__cache_commit(tn_kv_cache *c, int64_t layer, tn_tensor *of, int64_t rows, int64_t n);

/* Sets *k and *v to views of the first n positions of all heads of the cache: [rows, heads, n, head_dim]. */
bool tn__cache_read(tn_kv_cache *c, int64_t layer, bool memory, int64_t rows, int64_t n, tn_tensor **k, tn_tensor **v);

/* True if the layer's memory was computed from this tensor, or if `of` is NULL; else raises an error. */
bool tn__cache_memory_is(const tn_kv_cache *c, int64_t layer, const tn_tensor *of);

/* Number of positions removed from the start, which rotary positions still count. */
int64_t tn__cache_removed(const tn_kv_cache *c);

/* While a step is recorded (tn_kv_cache_record): angles of its position, of all layers of a kind. NULL: raised. */
tn_tensor *tn__cache_angles(tn_kv_cache *c, tn_rope_config rope);

/* After a failure: removes the positions that the layer did not have before. */
void tn__cache_undo(tn_kv_cache *c, int64_t layer, tn__cached_lengths before);

#endif
