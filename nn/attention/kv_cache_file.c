/* kv_cache_file.c — the positions of a cache's only row as tensors of a safetensors file. */
#include "nn/attention/checks.h"
#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"

static const char *const names[] = {"keys", "values"}; /* [layers, 1, heads, positions, head_dim] */

tn_status tn_kv_cache_put(const tn_kv_cache *c, int64_t length, tn_safetensors_writer *w)
{
    static const char *const who = "tn_kv_cache_put";
    if (tn__blocked() || !tn__not_null(who, "the cache", c) || !tn__not_null(who, "the writer", w)) return tn_error();
    const int64_t has = tn_kv_cache_length(c);
    if (tn_kv_cache_rows(c) != 1 || tn__cache_removed(c) || length < 1 || length > has)
        return tn_raise(TN_EINVAL,
                        "%s: length is %lld, of a cache with %lld rows of %lld positions, from position %lld on; it "
                        "must have one row and all positions from 0 on",
                        who, (long long)length, (long long)tn_kv_cache_rows(c), (long long)has,
                        (long long)tn__cache_removed(c));
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < 2; i++)
        tn_safetensors_put(w, names[i], tn_narrow(tn_narrow(tn__cache_tensor(c, i), 1, 0, 1), 3, 0, length));
    tn_scope_end(s);
    return tn_error();
}

/* True if the file's tensor fits the cache's; else raises. */
static bool fits(const tn_safetensors *f, const char *name, const tn_tensor *to, int64_t stored)
{
    char          text[192], other[192];
    const int64_t at = tn_safetensors_find(f, name);
    tn_shape      want = tn_shape_of(to);
    want.d[1] = 1, want.d[3] = stored;
    if (at < 0) return tn_raise_false(TN_EFORMAT, "kv_cache: the file has no tensor '%s'", name);
    const tn_safetensors_entry e = tn_safetensors_at(f, at);
    if (!e.loadable || e.dtype != tn_dtype_of(to))
        return tn_raise_false(TN_EFORMAT, "kv_cache: tensor '%s' is %s, but this cache is %s", name, e.stored,
                              tn_dtype_name(tn_dtype_of(to)));
    if (tn_shape_equal(e.shape, want)) return true;
    return tn_raise_false(TN_EFORMAT, "kv_cache: tensor '%s' is %s, expected %s for this cache", name,
                          tn_shape_text(e.shape, text, sizeof text), tn_shape_text(want, other, sizeof other));
}

tn_status tn_kv_cache_take(tn_kv_cache *c, const tn_safetensors *f, int64_t stored, int64_t length)
{
    static const char *const who = "tn_kv_cache_take";
    if (tn__blocked() || !tn__not_null(who, "the cache", c) || !tn__not_null(who, "the file", f)) return tn_error();
    const int64_t room = tn_size(tn__cache_tensor(c, 0), 3);
    if (!TN__NO_MISTAKE(who,
                        TN__IF(tn_kv_cache_rows(c) != 0, TN_ESTATE, "the cache is not empty; call tn_kv_cache_clear"),
                        TN__IF_N(length < 0 || length > stored || length > room, TN_EINVAL,
                                 "length is %lld, of %lld positions in the file; the cache has room for %lld", length,
                                 stored, room)))
        return tn_error();
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < 2 && tn_error() == TN_OK; i++) {
        tn_tensor *to = tn__cache_tensor(c, i);
        tn_tensor *t = fits(f, names[i], to, stored) ? tn_safetensors_get(f, names[i]) : NULL;
        if (t && length) tn_copy_from(tn_narrow(tn_narrow(to, 1, 0, 1), 3, 0, length), tn_narrow(t, 3, 0, length));
    }
    tn_scope_end(s);
    if (tn_error() == TN_OK && length) tn__cache_fill(c, length);
    return tn_error();
}
