/* gguf_write.c — writes GGUF files, version 3: keys in the order of the put calls, then the tensors at multiples of
 * 32 bytes. */
#include "core/files/gguf_private.h"
#include "core/tensor/tensor.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct tn_gguf_writer {
    tn_safetensors_writer *tensors;
    char                  *at; /* the pairs in the file's format */
    size_t                 bytes, room;
    int64_t                pairs, strings_left; /* strings still missing in the open array */
};

tn_gguf_writer *tn_gguf_writer_new(void)
{
    if (tn__blocked()) return NULL;
    tn_gguf_writer *w = tn__mem_zeroed(sizeof *w);
    if (w && !(w->tensors = tn_safetensors_writer_new())) tn_gguf_writer_free(w), w = NULL;
    return w;
}

void tn_gguf_writer_free(tn_gguf_writer *w)
{
    if (!w) return;
    tn_safetensors_writer_free(w->tensors);
    tn__mem_put(w->at, w->room);
    tn__mem_put(w, sizeof *w);
}

tn_safetensors_writer *tn_gguf_writer_tensors(tn_gguf_writer *w) { return w ? w->tensors : NULL; }

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static void little(char *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (char)(v >> 8 * i);
}

static bool grow(tn_gguf_writer *w, size_t bytes)
{
    if (bytes > TN__GGUF_HEADER || bytes > TN__GGUF_HEADER - w->bytes)
        return tn_raise_false(TN_EUNSUPPORTED, "tn_gguf_writer: more than %d bytes of values", TN__GGUF_HEADER);
    if (bytes <= w->room - w->bytes) return true;
    size_t room = w->room ? w->room : 1024;
    while (room - w->bytes < bytes) room *= 2;
    void *at = w->at;
    if (!tn__mem_grow(&at, w->room, room)) return false;
    w->at = at, w->room = room;
    return true;
}

static void put(tn_gguf_writer *w, uint64_t v, int bytes)
{
    little(w->at + w->bytes, v, bytes), w->bytes += (size_t)bytes;
}

static void put_text(tn_gguf_writer *w, const char *text, size_t bytes)
{
    put(w, bytes, 8);
    if (bytes) memcpy(w->at + w->bytes, text, bytes);
    w->bytes += bytes;
}

/* Reserves memory for a pair with a value of `bytes` bytes, and writes its key and type. */
static bool open_pair(tn_gguf_writer *w, const char *who, const char *key, tn_gguf_type type, size_t bytes)
{
    if (tn__blocked()) return false;
    if (!w || !key) return tn_raise_false(TN_EINVAL, "%s: the %s is NULL", who, w ? "key" : "writer");
    const size_t n = strlen(key);
    char         shown[TN__QUOTED];
    if (n < 1 || n > TN__GGUF_KEY || tn_utf8_valid(key, n) < n)
        return tn_raise_false(TN_EINVAL, "%s: a key must have 1 to 65535 bytes of UTF-8, got %s", who,
                              tn__quote(shown, key, n, 100));
    if (w->strings_left)
        return tn_raise_false(TN_ESTATE, "%s: %lld strings of the open array are missing", who,
                              (long long)w->strings_left);
    if (w->pairs == TN__GGUF_KEYS) return tn_raise_false(TN_EUNSUPPORTED, "%s: at most 100000 keys", who);
    if (!grow(w, 8 + n + 4 + bytes)) return false;
    put_text(w, key, n);
    put(w, type, 4);
    w->pairs++;
    return true;
}

tn_status tn_gguf_put_u32(tn_gguf_writer *w, const char *key, int64_t v)
{
    static const char who[] = "tn_gguf_put_u32";
    if (v < 0 || v > UINT32_MAX)
        return tn__blocked() ? tn__self.error
                             : tn_raise(TN_EINVAL, "%s: %s is %lld, but must be a u32, 0 to 2^32 - 1", who,
                                        key ? key : "", (long long)v);
    if (open_pair(w, who, key, TN_GGUF_U32, 4)) put(w, (uint64_t)v, 4);
    return tn__self.error;
}

tn_status tn_gguf_put_float(tn_gguf_writer *w, const char *key, double v)
{
    const float f = (float)v;
    uint32_t    bits;
    memcpy(&bits, &f, sizeof bits);
    if (v - v == 0 && !(fabs(v) <= FLT_MAX))
        return tn_raise(TN_EINVAL, "tn_gguf_put_float: '%s' is %g, beyond the range of f32", key ? key : "NULL", v);
    if (open_pair(w, "tn_gguf_put_float", key, TN_GGUF_F32, 4)) put(w, bits, 4);
    return tn__self.error;
}

tn_status tn_gguf_put_bool(tn_gguf_writer *w, const char *key, bool v)
{
    if (open_pair(w, "tn_gguf_put_bool", key, TN_GGUF_BOOL, 1)) put(w, v, 1);
    return tn__self.error;
}

tn_status tn_gguf_put_string(tn_gguf_writer *w, const char *key, const char *v)
{
    static const char who[] = "tn_gguf_put_string";
    if (!tn__blocked() && !v) return tn_raise(TN_EINVAL, "%s: the value of %s is NULL", who, key ? key : "");
    const size_t n = v ? strlen(v) : 0;
    if (open_pair(w, who, key, TN_GGUF_STRING, 8 + n)) put_text(w, v, n);
    return tn__self.error;
}

tn_status tn_gguf_put_numbers(tn_gguf_writer *w, const char *key, const tn_tensor *t)
{
    static const char who[] = "tn_gguf_put_numbers";
    if (tn__blocked() || !tn__given(who, "the tensor", t)) return tn__self.error;
    if ((t->dtype != TN_F32 && t->dtype != TN_I32) || t->l.shape.n != 1 || !tn__layout_contiguous(&t->l))
        return tn_raise(TN_EINVAL, "%s: %s must be contiguous, of one dim, f32 or i32", who, key ? key : "");
    const int64_t n = t->l.shape.d[0];
    if (!open_pair(w, who, key, TN_GGUF_ARRAY, 12 + (size_t)n * 4)) return tn__self.error;
    put(w, t->dtype == TN_F32 ? TN_GGUF_F32 : TN_GGUF_I32, 4);
    put(w, (uint64_t)n, 8);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, (const char *)tn__ptr(t) + 4 * i, 4);
        put(w, bits, 4);
    }
    return TN_OK;
}

tn_status tn_gguf_open_strings(tn_gguf_writer *w, const char *key, int64_t count)
{
    static const char who[] = "tn_gguf_open_strings";
    if (!tn__blocked() && count < 0)
        return tn_raise(TN_EINVAL, "%s: the count is %lld, but must not be negative", who, (long long)count);
    if (!open_pair(w, who, key, TN_GGUF_ARRAY, 12)) return tn__self.error;
    put(w, TN_GGUF_STRING, 4);
    put(w, (uint64_t)count, 8);
    w->strings_left = count;
    return TN_OK;
}

tn_status tn_gguf_add_string(tn_gguf_writer *w, const char *text, size_t bytes)
{
    static const char who[] = "tn_gguf_add_string";
    if (tn__blocked()) return tn__self.error;
    if (!w || (!text && bytes)) return tn_raise(TN_EINVAL, "%s: the %s is NULL", who, w ? "text" : "writer");
    if (!w->strings_left) return tn_raise(TN_ESTATE, "%s: no array of strings is open", who);
    if (!grow(w, 8 + bytes)) return tn__self.error;
    put_text(w, text, bytes);
    w->strings_left--;
    return TN_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const struct tn__st_item *items;
    uint32_t                  count;
    int                       packed; /* index in tn__quant_blocks; -1: as the tensors are */
    int64_t                   data;   /* bytes after the header, padding included */
} plan;

static int64_t rounded(int64_t n) { return (n + TN__GGUF_ALIGN - 1) / TN__GGUF_ALIGN * TN__GGUF_ALIGN; }

/* The type that a tensor is stored as, an index in tn__quant_blocks. A router of experts stays F32, as in llama.cpp's
 * files: rounding would change its choice. */
static int kind_of(const plan *p, uint32_t i)
{
    const tn_tensor *t = p->items[i].tensor;
    const tn_shape   s = t->l.shape;
    const bool       floats = t->dtype == TN_F32 || t->dtype == TN_BF16 || t->dtype == TN_F64;
    if (!floats) return tn__quant_block_of_element(tn__element_of_dtype(t->dtype));
    const int kind = p->packed >= 0 ? p->packed : tn__quant_block_of_element(t->dtype == TN_BF16 ? 14 : 17);
    if (p->packed >= 0 && strstr(p->items[i].name, "ffn_gate_inp")) return 0;
    return s.n < 2 || s.d[s.n - 1] % tn__quant_blocks[kind].values ? 0 : kind;
}

static int64_t bytes_of(int kind, const tn_tensor *t)
{
    return tn_shape_numel(t->l.shape) / tn__quant_blocks[kind].values * tn__quant_blocks[kind].bytes;
}

static bool put_tensors(tn_gguf_writer *w, plan *p, const char *label)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const tn_tensor *t = p->items[i].tensor;
        const tn_shape   s = t->l.shape;
        const int        kind = kind_of(p, i);
        const size_t     n = strlen(p->items[i].name);
        if (kind < 0 || s.n > 4) {
            char shown[TN__QUOTED];
            return tn_raise_false(TN_EUNSUPPORTED, "%s: %s: GGUF has no tensors of %s", label,
                                  tn__quote(shown, p->items[i].name, n, 100),
                                  kind < 0 ? tn_dtype_name(t->dtype) : "more than 4 dims");
        }
        if (!grow(w, 8 + n + 4 + 4 * 8 + 12)) return false;
        put_text(w, p->items[i].name, n);
        put(w, (uint64_t)s.n, 4);
        for (int d = s.n - 1; d >= 0; d--) put(w, (uint64_t)s.d[d], 8);
        put(w, (uint64_t)kind, 4);
        put(w, (uint64_t)p->data, 8);
        if (!tn__add_i64(p->data, bytes_of(kind, t) + TN__GGUF_ALIGN, &p->data))
            return tn_raise_false(TN_EUNSUPPORTED, "%s: the tensors' bytes do not fit in 63 bits", label);
        p->data = rounded(p->data - TN__GGUF_ALIGN);
    }
    return true;
}

static bool write_q8_0(tn__sink *s, const tn_tensor *t)
{
    unsigned char part[34 * 64];
    const float  *from = tn__ptr(t);
    bool          ok = true;
    for (int64_t left = tn_shape_numel(t->l.shape); ok && left;) {
        const int64_t n = tn__min_i64(left, 32 * 64);
        tn__quant_block_q8_0(from, n, part);
        ok = tn__sink_write(s, part, (size_t)(n / 32 * 34));
        from += n, left -= n;
    }
    return ok;
}

static bool write_tensor(tn__sink *s, const tn_tensor *t, int kind)
{
    static const char zeros[TN__GGUF_ALIGN] = {0};
    const int         element = tn__quant_blocks[kind].element;
    const tn_dtype    as = element >= 0 ? (tn_dtype)tn__elements[element].dtype : TN_F32;
    tn_tensor        *now = NULL;
    if (t->dtype != as || (element < 0 && !tn__layout_contiguous(&t->l))) {
        if (!(now = tn__new_owned(as, t->l.shape))) return false;
        tn__copy(now, t), t = now;
    }
    const int64_t bytes = bytes_of(kind, t);
    const bool    ok = tn__self.error == TN_OK && (element >= 0 ? tn__element_write(s, t) : write_q8_0(s, t)) &&
                    tn__sink_write(s, zeros, (size_t)(rounded(bytes) - bytes));
    tn_drop(now);
    return ok;
}

/* Writes to a file, or (path NULL) to a new tensor of bytes. */
static tn_tensor *write_all(tn_gguf_writer *w, const char *label, const char *path, plan *p)
{
    static const char zeros[TN__GGUF_ALIGN] = {0};
    const size_t      pairs = w->bytes; /* the tensors' entries follow, temporarily */
    const bool        fits = put_tensors(w, p, label);
    const size_t      header = w->bytes;
    const int64_t     first = rounded((int64_t)header + 24);
    char              start[24] = "GGUF";
    tn__sink          s;
    tn_tensor        *t = NULL;
    w->bytes = pairs;
    if (!fits) return NULL;
    little(start + 4, 3, 4), little(start + 8, p->count, 8), little(start + 16, (uint64_t)w->pairs, 8);
    if (path) {
        if (!tn__sink_open(&s, label, path, first + p->data)) return NULL;
    } else {
        if (!(t = tn__new_owned(TN_U8, (tn_shape){.n = 1, .d = {first + p->data}}))) return NULL;
        tn__sink_memory(&s, label, tn__ptr(t), first + p->data);
    }
    bool ok = tn__sink_write(&s, start, 24) && tn__sink_write(&s, w->at, header) &&
              tn__sink_write(&s, zeros, (size_t)first - header - 24);
    for (uint32_t i = 0; ok && i < p->count; i++) ok = write_tensor(&s, p->items[i].tensor, kind_of(p, i));
    if (tn__sink_end(&s, ok) != TN_OK) tn_drop(t), t = NULL;
    return t;
}

static tn_tensor *checked(tn_gguf_writer *w, const char *label, const char *path, const char *packed)
{
    plan p = {.packed = -1};
    if (!w) return tn_raise_null(TN_EINVAL, "%s: the writer is NULL", label);
    if (w->strings_left)
        return tn_raise_null(TN_ESTATE, "%s: %lld strings of the open array are missing", label,
                             (long long)w->strings_left);
    if (packed) p.packed = !strcmp(packed, "F32") ? 0 : !strcmp(packed, "BF16") ? 30 : TN__GGUF_Q8_0;
    if (packed && strcmp(packed, tn__quant_blocks[p.packed].name) != 0)
        return tn_raise_null(TN_EINVAL, "%s: packed is '%.20s', but must be F32, BF16 or Q8_0", label, packed);
    p.items = tn__st_items(w->tensors, &p.count);
    if (p.count > TN__GGUF_TENSORS) return tn_raise_null(TN_EUNSUPPORTED, "%s: at most 100000 tensors", label);
    return write_all(w, label, path, &p);
}

tn_status tn_gguf_save(tn_gguf_writer *w, const char *path, const char *packed)
{
    if (tn__blocked()) return tn__self.error;
    char label[TN__LABEL];
    tn__label(label, "tn_gguf_save", path);
    if (!path) return tn_raise(TN_EINVAL, "%s: the path is NULL", label);
    checked(w, label, path, packed);
    return tn__self.error;
}

tn_tensor *tn_gguf_write(tn_gguf_writer *w, const char *packed)
{
    return tn__blocked() ? NULL : tn__scoped(checked(w, "tn_gguf_write", NULL, packed));
}
