/* decoding.c — generation with any decoder that has a cache of keys and values: it reads a prompt, then word by word
 * what has been chosen; beams reorder the cache, and what turns out wrong is trimmed away. */
#include "models/generate.h"

typedef struct {
    tn_decoding     base;
    void           *model;
    tn_decoder_step step;
    tn_kv_cache    *cache;
} decoding;

static tn_tensor *scores(tn_decoding *base, tn_tensor *tokens)
{
    decoding *d = (decoding *)base;
    return tn_select(d->step(d->model, tokens, d->cache), 1, 0);
}
static tn_status reorder(tn_decoding *base, tn_tensor *index)
{
    return tn_kv_cache_reorder(((decoding *)base)->cache, index);
}
static void end(tn_decoding *base)
{
    tn_kv_cache_free(((decoding *)base)->cache);
    tn_mem_put(base, sizeof(decoding));
}
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, end};

tn_decoding *tn_cached_decoding(void *model, tn_decoder_step step, tn_kv_cache *cache, int64_t rows, int64_t length)
{
    decoding *d = cache && tn_module_ready("tn_cached_decoding", model) ? tn_mem_get(sizeof *d) : NULL;
    if (!d) return tn_kv_cache_free(cache), NULL;
    *d = (decoding){{&kind, rows, length}, model, step, cache};
    return &d->base;
}

tn_status tn_cached_decoding_trim(tn_decoding *d, int64_t length)
{
    if (d && d->kind == &kind) return tn_kv_cache_trim(((decoding *)d)->cache, length);
    return tn_raise(TN_EINVAL, "tn_cached_decoding_trim: this decoding was not made by tn_cached_decoding");
}
