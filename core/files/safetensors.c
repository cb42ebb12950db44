/* safetensors.c — reads many tensors by name.
 *
 *     u64 n, little-endian | n bytes of JSON | the tensors' bytes, without gaps, to the end of the file
 *     {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
 *
 * Opening reads only the header and checks all of it: everything that the reference rejects is an error, including
 * duplicate keys, gaps, overlaps and trailing bytes. The header is scanned twice, without a tree: once to check and
 * count, once to fill tables of exactly the required size. */
#include "core/files/quant_blocks.h"
#include "core/files/safetensors.h"
#include "core/files/safetensors_rows.h"
#include "core/tensor/tensor.h"

#include <string.h>

static bool is_index(const char *path)
{
    static const char end[] = ".index.json";
    const size_t      n = path ? strlen(path) : 0;
    return n >= sizeof end - 1 && !strcmp(path + n - (sizeof end - 1), end);
}

tn_safetensors *tn_safetensors_open(const char *path)
{
    tn_safetensors *f = tn__st_begin("tn_safetensors_open", path);
    if (!f || !is_index(path)) return f ? tn__st_finish(f, tn__source_open(&f->source, f->label, path)) : NULL;
    if (tn__st_open_index(f, path)) return f;
    tn_safetensors_close(f);
    return NULL;
}

tn_safetensors *tn_safetensors_read(const void *data, size_t bytes)
{
    tn_safetensors *f = tn__st_begin("tn_safetensors_read", NULL);
    return f ? tn__st_finish(f, tn__source_memory(&f->source, f->label, data, bytes)) : NULL;
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

int64_t tn_safetensors_count(const tn_safetensors *f) { return f ? f->count : 0; }
int64_t tn_safetensors_metadata_count(const tn_safetensors *f) { return f ? f->pair_count : 0; }

static bool in_range(const tn_safetensors *f, const char *who, int64_t i, uint32_t count)
{
    if (!f || (i >= 0 && i < count)) return f != NULL;
    if (count) tn_raise(TN_EINDEX, "%s: %lld is outside 0 … %u", who, (long long)i, count - 1);
    else tn_raise(TN_EINDEX, "%s: %lld, but the file has none", who, (long long)i);
    return false;
}

tn_safetensors_entry tn_safetensors_at(const tn_safetensors *f, int64_t i)
{
    if (!in_range(f, "tn_safetensors_at", i, f ? f->count : 0)) return (tn_safetensors_entry){.name = "", .stored = ""};
    const tn__st_entry *e = f->entries + i;
    if (e->element >= TN__ELEMENTS) {
        const tn__quant_block *b = &tn__quant_blocks[e->element - TN__ELEMENTS];
        return (tn_safetensors_entry){e->name, b->name, b->widen != NULL, TN_F32, e->shape, e->end - e->begin};
    }
    const tn__element *x = tn__elements + e->element;
    return (tn_safetensors_entry){.name = e->name,
                                  .stored = x->safetensors,
                                  .loadable = x->dtype >= 0,
                                  .dtype = x->dtype >= 0 ? (tn_dtype)x->dtype : TN_U8,
                                  .shape = e->shape,
                                  .bytes = e->end - e->begin};
}

int64_t tn_safetensors_find(const tn_safetensors *f, const char *name)
{
    return f && name ? tn__names_find(&f->names, name, strlen(name)) : -1;
}

const char *tn_safetensors_metadata(const tn_safetensors *f, const char *key)
{
    int64_t i = f && key ? tn__names_find(&f->keys, key, strlen(key)) : -1;
    return i >= 0 ? f->pairs[i].value : NULL;
}

const char *tn_safetensors_metadata_at(const tn_safetensors *f, int64_t i, const char **value)
{
    bool there = in_range(f, "tn_safetensors_metadata_at", i, f ? f->pair_count : 0);
    if (value) *value = there ? f->pairs[i].value : "";
    return there ? f->pairs[i].key : "";
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* Reorders the rows 0 1 2 3 … of each head to 0 2 4 … 1 3 5 …: for files that rotate neighbours by one angle, while
 * Hugging Face rotates elements half a head apart. */
static tn_tensor *in_halves(tn_tensor *t, int32_t heads)
{
    tn_tensor *to = t ? tn__new_owned(t->dtype, t->l.shape) : NULL;
    if (to && tn_shape_numel(t->l.shape)) {
        const int64_t rows = t->l.shape.d[0], per = rows / heads;
        const size_t  row = (size_t)(tn_shape_numel(t->l.shape) / rows) * tn__dtype_bytes(t->dtype);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t head = i / per * per, k = i % per;
            memcpy((char *)tn__ptr(to) + (size_t)(head + k / 2 + k % 2 * (per / 2)) * row,
                   (char *)tn__ptr(t) + (size_t)i * row, row);
        }
    }
    tn_drop(t);
    return to;
}

static tn_tensor *minus_one(tn_tensor *t)
{
    tn_tensor   *to = t ? tn__new_owned(TN_F32, t->l.shape) : NULL;
    const float *from = to ? tn__ptr(t) : NULL;
    for (int64_t i = 0; to && i < tn_shape_numel(t->l.shape); i++) ((float *)tn__ptr(to))[i] = from[i] - 1;
    tn_drop(t);
    return to;
}

/* A tensor whose elements are not in order: the number of elements from the first to the last; and they, in order. */
static int64_t span(const tn__st_entry *e)
{
    int64_t n = 1;
    for (int d = 0; d < e->shape.n; d++) n += (e->shape.d[d] - 1) * e->stride.d[d];
    return tn_shape_numel(e->shape) ? n : 0;
}
static tn_tensor *gathered(tn_tensor *t, const tn__st_entry *e)
{
    tn_tensor *to = t ? tn__new_owned(t->dtype, e->shape) : NULL, *view = NULL;
    tn__layout l = {.shape = e->shape};
    memcpy(l.stride, e->stride.d, sizeof l.stride);
    if (to && tn_shape_numel(e->shape) && (view = tn__alias_owned(t, &l))) tn__copy(to, view);
    tn_drop(view), tn_drop(t);
    if (tn__self.error != TN_OK) tn_drop(to), to = NULL;
    return to;
}

tn_tensor *tn__st_read(const tn_safetensors *f, const char *who, int64_t i, tn_dtype packed_as)
{
    char                label[TN__LABEL], shown[TN__QUOTED], what[TN__QUOTED + 8];
    const tn__st_entry *e = f->entries + i;
    if (f->shards) f = f->shards[e->shard];
    tn__source s = f->source;
    snprintf(label, sizeof label, "%s: %s", who, f->path);
    snprintf(what, sizeof what, "tensor %s", tn__quote(shown, e->name, e->name_bytes, 100));
    s.label = s.memory ? who : label;
    const int64_t  at = f->base + e->begin;
    const tn_shape shape = e->strided ? (tn_shape){.n = 1, .d = {span(e)}} : e->shape;
    tn_tensor     *t = e->element >= TN__ELEMENTS
                           ? tn__quant_block_read(&s, at, e->element - TN__ELEMENTS, packed_as, shape, what)
                           : tn__element_read(&s, at, e->element, f->big_endian, shape, what);
    if (!tn__st_checksum_ok(s.label, e, t)) tn_drop(t), t = NULL;
    if (e->strided) t = gathered(t, e);
    if (e->plus_one) t = minus_one(t);
    return tn__scoped(e->heads ? in_halves(t, e->heads) : t);
}

/* ---- rows of a matrix, as they are ------------------------------------------------------------------------------- */

bool tn__st_matrix_of(const tn_safetensors *f, int64_t i, tn__st_matrix *m)
{
    const tn__st_entry   *e = f->entries + i;
    const tn_safetensors *of = f->shards ? f->shards[e->shard] : f;
    if (e->shape.n != 2 || e->sum || e->plus_one || of->big_endian || !tn_shape_numel(e->shape)) return false;
    const int64_t a = e->shape.d[0], b = e->shape.d[1];
    if (e->strided && (e->stride.d[0] != 1 || e->stride.d[1] != a)) return false;
    *m = (tn__st_matrix){.type = tn_safetensors_at(f, i).stored,
                         .out = e->strided ? b : a,
                         .in = e->strided ? a : b,
                         .transposed = e->strided};
    m->row = (size_t)((e->end - e->begin) / m->out);
    return (e->end - e->begin) % m->out == 0;
}

bool tn__st_matrix_rows(const tn_safetensors *f, int64_t i, int64_t from, int64_t n, void *to)
{
    const tn__st_entry *e = f->entries + i;
    tn__st_matrix       m;
    if (!tn__st_matrix_of(f, i, &m)) return false;
    if (f->shards) f = f->shards[e->shard];
    const int64_t at = f->base + e->begin, row = (int64_t)m.row, per = e->heads ? m.out / e->heads : 0;
    if (!e->heads) return tn__source_read(&f->source, to, at + from * row, (size_t)(n * row));
    for (int64_t r = from; r < from + n; r++) { /* the inverse of in_halves */
        const int64_t k = r % per, half = per / 2, there = r - k + (k < half ? 2 * k : 2 * (k - half) + 1);
        if (!tn__source_read(&f->source, (char *)to + (r - from) * row, at + there * row, m.row)) return false;
    }
    return true;
}

static tn_tensor *get(const tn_safetensors *f, const char *who, int64_t i) { return tn__st_read(f, who, i, TN_F32); }

tn_tensor *tn_safetensors_get_at(const tn_safetensors *f, int64_t i)
{
    static const char who[] = "tn_safetensors_get_at";
    if (tn__blocked()) return NULL;
    if (!f) return tn_raise_null(TN_EINVAL, "%s: the file is NULL", who);
    return in_range(f, who, i, f->count) ? get(f, who, i) : NULL;
}

tn_tensor *tn_safetensors_get(const tn_safetensors *f, const char *name)
{
    static const char who[] = "tn_safetensors_get";
    if (tn__blocked()) return NULL;
    if (!f || !name) return tn_raise_null(TN_EINVAL, "%s: the %s is NULL", who, f ? "name" : "file");
    int64_t i = tn_safetensors_find(f, name);
    if (i >= 0) return get(f, who, i);
    char asked[TN__QUOTED], meant[TN__QUOTED] = "";
    tn__quote(asked, name, strlen(name), 100);
    i = tn__names_nearest(&f->names, f->count, name);
    if (i >= 0) tn__quote(meant, f->entries[i].name, f->entries[i].name_bytes, 100);
    return tn_raise_null(TN_EINDEX, "%s: %s%sno tensor %s among its %u%s%s%s", who, f->source.memory ? "" : f->path,
                         f->source.memory ? "" : ": ", asked, f->count, i >= 0 ? "; did you mean " : "", meant,
                         i >= 0 ? "?" : "");
}
