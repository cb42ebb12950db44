/* gguf.c — reads the contents of GGUF files. gguf_header.c checks the header. */
#include "core/base/checks.h"
#include "core/files/gguf_private.h"
#include "core/tensor/tensor.h"

#include <string.h>

static tn_gguf *begin(const char *who, const char *path)
{
    tn_safetensors *f = tn__st_begin(who, path);
    tn_gguf        *g = f ? tn__mem_zeroed(sizeof *g) : NULL;
    if (!g) return tn_safetensors_close(f), NULL;
    g->tensors = f;
    return g;
}

static tn_gguf *finish(tn_gguf *g, bool opened)
{
    if (opened && tn__gguf_header(g)) return g;
    tn_gguf_close(g);
    return NULL;
}

tn_gguf *tn_gguf_open(const char *path)
{
    tn_gguf *g = begin("tn_gguf_open", path);
    return g ? finish(g, tn__source_open(&g->tensors->source, g->tensors->label, path)) : NULL;
}

tn_gguf *tn_gguf_read(const void *data, size_t bytes)
{
    tn_gguf *g = begin("tn_gguf_read", NULL);
    return g ? finish(g, tn__source_memory(&g->tensors->source, g->tensors->label, data, bytes)) : NULL;
}

void tn_gguf_close(tn_gguf *g)
{
    if (!g) return;
    tn_safetensors_close(g->tensors);
    if (g->owned) tn__mem_put(g->header, g->header_bytes);
    tn__mem_put(g->pairs, g->pairs ? (size_t)g->pair_count * sizeof *g->pairs : 0);
    tn__mem_put(g->strings, g->strings ? g->strings_room : 0);
    tn__mem_put(g->keys.slot, g->keys.slot ? ((size_t)g->keys.mask + 1) * sizeof *g->keys.slot : 0);
    tn__mem_put(g, sizeof *g);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

tn_safetensors *tn_gguf_tensors(const tn_gguf *g) { return g ? g->tensors : NULL; }

/* The index of a tensor; -1: raised. */
static int64_t find(const tn_gguf *g, const char *who, const char *name)
{
    if (tn__blocked()) return -1;
    if (!g || !name) return tn_raise(TN_EINVAL, "%s: the %s is NULL", who, g ? "name" : "file"), -1;
    const int64_t i = tn_safetensors_find(g->tensors, name);
    if (i < 0) tn_safetensors_get(g->tensors, name); /* raises that it is missing */
    return i;
}

tn_tensor *tn_gguf_get_as(const tn_gguf *g, const char *name, tn_dtype dtype)
{
    static const char who[] = "tn_gguf_get_as";
    const int64_t     i = find(g, who, name);
    if (i < 0) return NULL;
    if (dtype != TN_F32 && dtype != TN_BF16)
        return tn_raise_null(TN_EDTYPE, "%s: dtype is %s, but must be f32 or bf16", who, tn_dtype_name(dtype));
    tn_tensor *t = tn__st_read(g->tensors, who, i, dtype);
    if (!t || t->dtype == dtype) return t;
    tn_tensor *to = tn__make(who, dtype, t->l.shape);
    if (to) tn__copy(to, t);
    return to;
}

tn_tensor *tn_gguf_get_packed(const tn_gguf *g, const char *name)
{
    static const char who[] = "tn_gguf_get_packed";
    const int64_t     i = find(g, who, name);
    if (i < 0) return NULL;
    const tn__st_entry *e = &g->tensors->entries[i];
    const int64_t       bytes = e->end - e->begin, row = e->shape.n ? e->shape.d[e->shape.n - 1] : 1,
                  rows = row ? tn_shape_numel(e->shape) / row : 0;
    tn__source s = g->tensors->source;
    tn_tensor *t = tn__make(who, TN_U8, TN_SHAPE(rows, rows ? bytes / rows : 0));
    s.label = who;
    return t && tn__source_read(&s, tn__ptr(t), g->tensors->base + e->begin, (size_t)bytes) ? t : NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

int64_t tn_gguf_count(const tn_gguf *g) { return g ? g->pair_count : 0; }

static const tn_gguf_value nothing = {"", TN_GGUF_NONE, TN_GGUF_NONE, 0};

static tn_gguf_value value(const tn__gguf_pair *p)
{
    return p ? (tn_gguf_value){p->key, (tn_gguf_type)p->type, (tn_gguf_type)p->item, p->count} : nothing;
}

tn_gguf_value tn_gguf_at(const tn_gguf *g, int64_t i)
{
    if (g && i >= 0 && i < g->pair_count) return value(&g->pairs[i]);
    if (g)
        tn_raise(TN_EINDEX, "tn_gguf_at: index %lld is out of range for %lld keys", (long long)i,
                 (long long)g->pair_count);
    return nothing;
}

static const tn__gguf_pair *pair(const tn_gguf *g, const char *key)
{
    const int64_t i = g && key ? tn__names_find(&g->keys, key, strlen(key)) : -1;
    return i < 0 ? NULL : &g->pairs[i];
}

tn_gguf_value tn_gguf_find(const tn_gguf *g, const char *key) { return value(pair(g, key)); }

static void not_a(const tn_gguf *g, const char *key, const char *what)
{
    tn_raise(TN_EFORMAT, "%s: %s is not %s", g->tensors->label, key, what);
}

int64_t tn_gguf_i64_or(const tn_gguf *g, const char *key, int64_t fallback)
{
    const tn__gguf_pair *p = pair(g, key);
    if (!p) return fallback;
    const int      bytes = tn__gguf_bytes[p->type];
    const uint64_t v = bytes ? tn__little(g->header + p->at, bytes) : 0;
    switch ((tn_gguf_type)p->type) {
    case TN_GGUF_I8: return (int8_t)v;
    case TN_GGUF_I16: return (int16_t)v;
    case TN_GGUF_I32: return (int32_t)v;
    case TN_GGUF_I64:
    case TN_GGUF_U8:
    case TN_GGUF_U16:
    case TN_GGUF_U32: return (int64_t)v;
    case TN_GGUF_U64:
        if (v <= INT64_MAX) return (int64_t)v;
        break;
    default: break;
    }
    return not_a(g, key, "an integer of at most 63 bits"), fallback;
}

double tn_gguf_double_or(const tn_gguf *g, const char *key, double fallback)
{
    const tn__gguf_pair *p = pair(g, key);
    if (!p) return fallback;
    const uint64_t v = tn__little(g->header + p->at, tn__gguf_bytes[p->type]);
    if (p->type == TN_GGUF_F32) {
        const uint32_t bits = (uint32_t)v;
        float          f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    double f = fallback;
    if (p->type == TN_GGUF_F64) memcpy(&f, &v, sizeof f);
    else not_a(g, key, "an f32 or f64");
    return f;
}

bool tn_gguf_bool_or(const tn_gguf *g, const char *key, bool fallback)
{
    const tn__gguf_pair *p = pair(g, key);
    if (!p) return fallback;
    if (p->type == TN_GGUF_BOOL) return g->header[p->at];
    return not_a(g, key, "a bool"), fallback;
}

const char *tn_gguf_string_or(const tn_gguf *g, const char *key, const char *fallback)
{
    const tn__gguf_pair *p = pair(g, key);
    if (!p) return fallback;
    if (p->text) return p->text;
    return not_a(g, key, p->type == TN_GGUF_STRING ? "UTF-8 without a NUL" : "a string"), fallback;
}

/* An array whose items are numbers, or strings; NULL: raised. */
static const tn__gguf_pair *array(const tn_gguf *g, const char *who, const char *key, bool strings)
{
    if (tn__blocked()) return NULL;
    if (!g || !key) return tn_raise_null(TN_EINVAL, "%s: the %s is NULL", who, g ? "key" : "file");
    const tn__gguf_pair *p = pair(g, key);
    const char          *what = strings ? "an array of strings" : "an array of numbers";
    if (!p) return tn_raise_null(TN_EINDEX, "%s: %s is missing, expected %s", g->tensors->label, key, what);
    const bool fits = p->type == TN_GGUF_ARRAY && (strings ? p->item == TN_GGUF_STRING : tn__gguf_bytes[p->item] > 0);
    if (!fits) not_a(g, key, what);
    return fits ? p : NULL;
}

tn_tensor *tn_gguf_numbers(const tn_gguf *g, const char *key)
{
    static const char *const names[TN_GGUF_NONE] = {"U8",   "I8", "U16", "I16", "U32", "I32", "F32",
                                                    "BOOL", "",   "",    "U64", "I64", "F64"};
    const tn__gguf_pair     *p = array(g, "tn_gguf_numbers", key, false);
    if (!p) return NULL;
    tn__source   s;
    const size_t bytes = (size_t)p->count * tn__gguf_bytes[p->item];
    tn__source_memory(&s, g->tensors->label, g->header + p->at, bytes);
    const int element = tn__element_of_name(names[p->item], strlen(names[p->item]));
    return tn__scoped(tn__element_read(&s, 0, element, false, (tn_shape){.n = 1, .d = {p->count}}, key));
}

tn_gguf_strings tn_gguf_strings_of(const tn_gguf *g, const char *key)
{
    const tn__gguf_pair *p = array(g, "tn_gguf_strings_of", key, true);
    return (tn_gguf_strings){.text = "", .i = -1, .count = p ? p->count : 0, .at_ = p ? g->header + p->at : NULL};
}

bool tn_gguf_next(tn_gguf_strings *s)
{
    if (!tn__not_null("tn_gguf_next", "the list of strings", s) || s->i + 1 >= s->count) return false;
    const unsigned char *at = s->at_;
    s->i++, s->bytes = (size_t)tn__little(at, 8), s->text = (const char *)at + 8, s->at_ = at + 8 + s->bytes;
    return true;
}
