/* torch.c — reads state dicts written by torch.save as a table of tensors: the zip format of today, and the older
 * format, which is several pickles followed by the elements.
 *
 *     zip:  ROOT/data.pkl, a pickle whose tensors name storages; ROOT/data/KEY, the elements of each, uncompressed
 *     old:  pickles of a magic number, a version, the machine, the state dict, a list of keys;
 *           then for each key u64 count, the elements
 *
 * A tensor is a view of a storage: an offset, and strides. */
#include "extras/torch/pickle.h"
#include "extras/torch.h"
#include "core/files/safetensors.h"
#include "core/base/checked.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

#include <string.h>

enum { PICKLE_MOST = 256 << 20, FOLDER_MOST = 256 << 20, BLOBS_MOST = 1000000, END_MOST = 65557, STEP = 1 << 20 };

/* The elements of a storage. */
typedef struct {
    const char *name;
    uint32_t    name_bytes;
    int64_t     at, bytes; /* zip: position of the local header, until that is read */
    bool        found;
    int         element; /* -1: not referenced yet */
} blob;

typedef struct {
    tn_safetensors *f;
    unsigned char  *folder; /* zip: the central directory, which contains the names */
    size_t          folder_bytes;
    unsigned char  *text; /* the pickles */
    size_t          text_bytes;
    blob           *blobs;
    int64_t         count, room;
    tn__names       names;
    tn__pickle      pickle;
    int64_t         top; /* value of the dict of tensors */
} reader;

static bool fail(const reader *r, const char *what)
{
    if (tn__self.error == TN_OK) tn_raise(TN_EFORMAT, "%s: %s", r->f->label, what);
    return false;
}
static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    while (bytes) v = v << 8 | p[--bytes];
    return v;
}

/* ---- storages by name -------------------------------------------------------------------------------------------- */

static const char *name_of_blob(const void *owner, uint32_t i, size_t *bytes)
{
    const blob *b = ((const reader *)owner)->blobs + i;
    *bytes = b->name_bytes;
    return b->name;
}

static bool blobs_new(reader *r, int64_t most)
{
    const uint32_t slots = tn__names_slots((uint32_t)most);
    r->room = most;
    r->names = (tn__names){.mask = slots - 1, .name = name_of_blob, .owner = r};
    tn__names_seed(&r->names);
    return (r->blobs = tn__mem_get((size_t)most * sizeof *r->blobs)) &&
           (r->names.slot = tn__mem_zeroed(slots * sizeof *r->names.slot));
}
static bool blobs_add(reader *r, const char *name, size_t bytes, int64_t at, int64_t size)
{
    r->blobs[r->count] = (blob){name, (uint32_t)bytes, at, size, false, -1};
    if (tn__names_add(&r->names, (uint32_t)r->count) >= 0) return fail(r, "duplicate storage");
    r->count++;
    return true;
}
static blob *blobs_find(const reader *r, const char *name, size_t bytes)
{
    const int64_t i = tn__names_find(&r->names, name, bytes);
    return i < 0 ? NULL : &r->blobs[i];
}

/* ---- zip --------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t count, bytes, at;
} folder_place;

/* Finds the last record of the file: 22 bytes, and up to 65,535 of comment. Its position in the n bytes; -1: none. */
static int64_t zip_end(const unsigned char *p, size_t n)
{
    for (size_t at = n < 22 ? 0 : n - 21; at-- > 0;)
        if (!memcmp(p + at, "PK\5\6", 4) && little(p + at + 20, 2) == n - at - 22) return (int64_t)at;
    return -1;
}

/* Values too large for the last record are in a larger one, whose position is in a record before it. */
static bool zip_end_large(const reader *r, int64_t end, folder_place *to)
{
    unsigned char     where[20], record[56];
    const tn__source *s = &r->f->source;
    if (end < 20) return true;
    if (!tn__source_read(s, where, end - 20, 20)) return false;
    const uint64_t at = little(where + 8, 8);
    if (memcmp(where, "PK\6\7", 4) != 0 || s->size < 56 || at > (uint64_t)s->size - 56) return true;
    if (!tn__source_read(s, record, (int64_t)at, 56)) return false;
    if (!memcmp(record, "PK\6\6", 4))
        *to = (folder_place){little(record + 32, 8), little(record + 40, 8), little(record + 48, 8)};
    return true;
}

/* Finds the central directory. */
static bool zip_folder(const reader *r, folder_place *to)
{
    const tn__source *s = &r->f->source;
    const size_t      n = s->size < END_MOST ? (size_t)s->size : END_MOST;
    unsigned char    *p = tn__mem_get(n);
    const bool        read = p && tn__source_read(s, p, s->size - (int64_t)n, n);
    const int64_t     at = read ? zip_end(p, n) : -1;
    if (at >= 0) *to = (folder_place){little(p + at + 10, 2), little(p + at + 12, 4), little(p + at + 16, 4)};
    tn__mem_put(p, n);
    if (at < 0)
        return read ? fail(r, "it starts like a zip file, but has no directory at its end: the file is truncated")
                    : false;
    const bool large = to->count == 0xffff || to->bytes == 0xffffffff || to->at == 0xffffffff;
    if (large && !zip_end_large(r, s->size - (int64_t)n + at, to)) return false;
    if (to->at > (uint64_t)s->size || to->bytes > (uint64_t)s->size - to->at || to->bytes > FOLDER_MOST)
        return fail(r, "the zip's directory is not within the file, or larger than 256 MiB");
    if (to->count > BLOBS_MOST || to->count > to->bytes / 46)
        return fail(r, "the zip's directory names too many files");
    return true;
}

/* Sizes that do not fit in 32 bits are in a separate field. */
static void zip_large(const unsigned char *extra, size_t n, uint64_t *size, uint64_t *packed, uint64_t *at)
{
    for (size_t i = 0; i + 4 <= n;) {
        const size_t id = (size_t)little(extra + i, 2), bytes = (size_t)little(extra + i + 2, 2);
        size_t       k = i + 4;
        if (bytes > n - k) return;
        uint64_t *const want[] = {size, packed, at};
        for (int j = 0; id == 1 && j < 3; j++)
            if (*want[j] == 0xffffffff && k + 8 <= i + 4 + bytes) *want[j] = little(extra + k, 8), k += 8;
        i += 4 + bytes;
    }
}

static bool zip_read_folder(reader *r)
{
    folder_place place = {0, 0, 0};
    if (!zip_folder(r, &place)) return false;
    r->folder_bytes = (size_t)place.bytes;
    if (!(r->folder = tn__mem_get(r->folder_bytes)) || !blobs_new(r, (int64_t)place.count) ||
        !tn__source_read(&r->f->source, r->folder, (int64_t)place.at, r->folder_bytes))
        return false;
    size_t at = 0, root = 0;
    for (uint64_t i = 0; i < place.count; i++) {
        const unsigned char *e = r->folder + at;
        if (r->folder_bytes - at < 46 || memcmp(e, "PK\1\2", 4) != 0) return fail(r, "the zip's directory is damaged");
        const size_t n = (size_t)little(e + 28, 2), extra = (size_t)little(e + 30, 2), more = (size_t)little(e + 32, 2);
        if (r->folder_bytes - at - 46 < n + extra + more) return fail(r, "the zip's directory is damaged");
        uint64_t size = little(e + 24, 4), packed = little(e + 20, 4), from = little(e + 42, 4);
        zip_large(e + 46 + n, extra, &size, &packed, &from);
        if (little(e + 8, 2) & 1 || little(e + 10, 2) != 0 || size != packed)
            return fail(r, "a file in the zip is compressed or encrypted; torch.save does neither");
        if (from > (uint64_t)r->f->source.size || size > (uint64_t)r->f->source.size - from)
            return fail(r, "a file in the zip extends beyond the end");
        const char *name = (const char *)e + 46, *slash = memchr(name, '/', n);
        if (!i) root = slash ? (size_t)(slash - name) + 1 : 0;
        if (n < root || memcmp(name, (const char *)r->folder + 46, root) != 0)
            return fail(r, "the files in the zip are not all in one folder");
        if (n > root && !blobs_add(r, name + root, n - root, (int64_t)from, (int64_t)size)) return false;
        at += 46 + n + extra + more;
    }
    return true;
}

/* The data is after the local header, whose fields may differ in length from those in the directory. */
static bool zip_find(const reader *r, blob *b)
{
    unsigned char head[30];
    if (b->found) return true;
    if (r->f->source.size - b->at < 30) return fail(r, "a file in the zip extends beyond the end");
    if (!tn__source_read(&r->f->source, head, b->at, 30)) return false;
    const int64_t skip = 30 + (int64_t)little(head + 26, 2) + (int64_t)little(head + 28, 2);
    if (memcmp(head, "PK\3\4", 4) != 0 || r->f->source.size - b->at - skip < b->bytes)
        return fail(r, "a file in the zip is not at the offset in the zip's directory");
    b->at += skip, b->found = true;
    return true;
}

static bool zip_order(reader *r)
{
    char  text[8] = "";
    blob *b = blobs_find(r, "byteorder", 9);
    if (!b) return true;
    if (b->bytes > 7) return fail(r, "byteorder must be little or big");
    if (!zip_find(r, b) || !tn__source_read(&r->f->source, text, b->at, (size_t)b->bytes)) return false;
    r->f->big_endian = !strcmp(text, "big");
    return r->f->big_endian || !strcmp(text, "little") || fail(r, "byteorder must be little or big");
}

static bool zip_open(reader *r)
{
    if (!zip_read_folder(r) || !zip_order(r)) return false;
    blob *b = blobs_find(r, "data.pkl", 8);
    if (!b) return fail(r, "the zip file has no data.pkl: not written by torch.save");
    if (b->bytes > PICKLE_MOST) return fail(r, "data.pkl has more than 256 MiB");
    if (!zip_find(r, b)) return false;
    r->text_bytes = (size_t)b->bytes;
    if (!(r->text = tn__mem_get(r->text_bytes)) || !tn__source_read(&r->f->source, r->text, b->at, r->text_bytes))
        return false;
    r->pickle = (tn__pickle){.label = r->f->label, .p = r->text, .n = r->text_bytes, .size = b->bytes};
    return (r->top = tn__pickle_next(&r->pickle)) >= 0;
}

/* ---- the older format -------------------------------------------------------------------------------------------- */

static bool is_text(const tn__pickle *p, int32_t v, const char *s)
{
    return v >= 0 && p->value[v].kind == TN__PY_STRING && p->value[v].n == (int64_t)strlen(s) &&
           !memcmp(p->value[v].text, s, strlen(s));
}

/* Reads five pickles; the last one's value is the list of keys. -1: raised, or more of the file is needed. */
static int64_t old_pickles(reader *r)
{
    tn__pickle *p = &r->pickle;
    int64_t     v = tn__pickle_next(p);
    if (v < 0) return -1;
    if (!is_text(p, (int32_t)v, "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"))
        return fail(r, "a pickle, but not written by torch.save"), -1;
    if ((v = tn__pickle_next(p)) < 0) return -1;
    if (p->value[v].kind != TN__PY_INT || p->value[v].n != 1001) return fail(r, "its version is not 1001"), -1;
    if ((v = tn__pickle_next(p)) < 0) return -1;
    for (int32_t k = p->value[v].kind == TN__PY_DICT ? p->value[v].first : -1; k >= 0; k = p->node[k].next)
        if (is_text(p, p->node[k].key, "little_endian") && p->value[p->node[k].value].kind == TN__PY_BOOL)
            r->f->big_endian = !p->value[p->node[k].value].n;
    return (r->top = tn__pickle_next(p)) < 0 ? -1 : tn__pickle_next(p);
}

static bool storage_of(const reader *r, int32_t v, const tn__py_value **key, int *element, int64_t *count);

/* Determines the type of each storage, and so the position of the next. */
static bool old_places(reader *r, int64_t keys)
{
    const tn__pickle   *p = &r->pickle;
    const tn__py_value *list = &p->value[keys], *key;
    int64_t             at = (int64_t)p->at, count;
    int                 element;
    if (list->kind != TN__PY_LIST || list->n > BLOBS_MOST) return fail(r, "the keys of its storages are not a list");
    if (!blobs_new(r, list->n)) return false;
    for (int32_t k = list->first; k >= 0; k = p->node[k].next) {
        const tn__py_value *v = &p->value[p->node[k].value];
        if (v->kind != TN__PY_STRING || v->n > TN__ST_NAME) return fail(r, "a key of its storages is not a string");
        if (!blobs_add(r, v->text, (size_t)v->n, 0, 0)) return false;
    }
    for (int64_t i = 0; i < p->values; i++) {
        if (p->value[i].kind != TN__PY_STORAGE) continue;
        if (!storage_of(r, (int32_t)i, &key, &element, &count)) return false;
        blob *b = blobs_find(r, key->text, (size_t)key->n);
        if (b) b->element = element;
    }
    for (int64_t i = 0; i < r->count; i++) {
        blob         *b = &r->blobs[i];
        unsigned char eight[8];
        if (b->element < 0) return fail(r, "no tensor uses one of its storages");
        if (r->f->source.size - at < 8) return fail(r, "the file is truncated");
        if (!tn__source_read(&r->f->source, eight, at, 8)) return false;
        const uint64_t n = little(eight, 8), size = (uint64_t)tn__elements[b->element].bits / 8;
        at += 8;
        if (n > (uint64_t)(r->f->source.size - at) / size)
            return fail(r, "the file is truncated, or a storage's size is wrong");
        b->at = at, b->bytes = (int64_t)(n * size), b->found = true;
        at += b->bytes;
    }
    return at == r->f->source.size || fail(r, "unexpected bytes after its storages");
}

static bool old_open(reader *r)
{
    const tn__source *s = &r->f->source;
    int64_t           keys = -1;
    for (size_t n = STEP; keys < 0; n *= 2) {
        if (n > 2 * (size_t)PICKLE_MOST) return fail(r, "its pickles have more than 256 MiB");
        tn__pickle_free(&r->pickle);
        tn__mem_put(r->text, r->text_bytes);
        r->text_bytes = (int64_t)n < s->size ? n : (size_t)s->size;
        if (!(r->text = tn__mem_get(r->text_bytes)) || !tn__source_read(s, r->text, 0, r->text_bytes)) return false;
        r->pickle = (tn__pickle){.label = r->f->label, .p = r->text, .n = r->text_bytes, .size = s->size};
        if ((keys = old_pickles(r)) < 0 && !r->pickle.short_) return false;
    }
    return old_places(r, keys);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* A persistent id: ('storage', type, key, device, count[, None]). */
static bool storage_of(const reader *r, int32_t v, const tn__py_value **key, int *element, int64_t *count)
{
    const tn__pickle *p = &r->pickle;
    const int32_t     id = p->value[v].first;
    int32_t           item[6];
    for (int i = 0; i < 6; i++) item[i] = tn__pickle_item(p, id, i);
    const bool fits = is_text(p, item[0], "storage") && item[4] >= 0 && p->value[item[1]].kind == TN__PY_GLOBAL &&
                      p->value[item[1]].n >= TN__PY_TYPE && p->value[item[2]].kind == TN__PY_STRING &&
                      p->value[item[4]].kind == TN__PY_INT && p->value[item[4]].n >= 0 &&
                      (item[5] < 0 || p->value[item[5]].kind == TN__PY_NONE);
    if (!fits) return fail(r, "a storage's id is not ('storage', type, key, device, count)");
    *key = &p->value[item[2]], *element = (int)(p->value[item[1]].n - TN__PY_TYPE), *count = p->value[item[4]].n;
    return true;
}

static bool sizes(const tn__pickle *p, int32_t v, tn_shape *to)
{
    *to = (tn_shape){.n = 0};
    if (v < 0 || p->value[v].kind != TN__PY_TUPLE || p->value[v].n > TN_MAX_DIMS) return false;
    for (int32_t k = p->value[v].first; k >= 0; k = p->node[k].next) {
        const tn__py_value *x = &p->value[p->node[k].value];
        if (x->kind != TN__PY_INT || x->n < 0 || x->n > INT64_MAX / 64) return false;
        to->d[to->n++] = x->n;
    }
    return true;
}

/* True if the view is within a storage of `count` elements. */
static bool within(const tn__st_entry *e, int64_t first, int64_t count)
{
    int64_t n = 1, last = first, step;
    for (int d = 0; d < e->shape.n; d++)
        if (!tn__mul_i64(n, e->shape.d[d], &n)) return false;
    if (!n) return true;
    for (int d = 0; d < e->shape.n; d++)
        if (!tn__mul_i64(e->shape.d[d] - 1, e->stride.d[d], &step) || !tn__add_i64(last, step, &last)) return false;
    return last < count;
}

static bool contiguous(const tn__st_entry *e)
{
    int64_t want = 1;
    for (int d = e->shape.n - 1; d >= 0; d--) {
        if (e->shape.d[d] != 1 && e->stride.d[d] != want) return false;
        want *= e->shape.d[d];
    }
    return true;
}

static bool bad_tensor(const reader *r, const tn__st_entry *e, tn_status status, const char *why)
{
    char shown[TN__QUOTED];
    return tn_raise_false(status, "%s: tensor %s %s", r->f->label, tn__quote(shown, e->name, e->name_bytes, 100), why);
}

/* torch.save marks a tensor that represents the negated or conjugated elements of its storage with {"neg": True}. */
static bool as_stored(const reader *r, int32_t flags, const tn__st_entry *e)
{
    const tn__pickle *p = &r->pickle;
    int32_t           k = flags >= 0 && p->value[flags].kind == TN__PY_DICT ? p->value[flags].first : -1;
    while (k >= 0 && p->value[p->node[k].value].kind == TN__PY_BOOL && !p->value[p->node[k].value].n)
        k = p->node[k].next;
    return k < 0 || bad_tensor(r, e, TN_EUNSUPPORTED,
                               "is saved as a view that negates or conjugates its elements: save its .resolve_neg() or "
                               ".resolve_conj()");
}

/* The arguments of _rebuild_tensor_v2: storage, first element, sizes, strides, requires_grad, hooks; in newer files
 * flags. */
static bool tensor_of(const reader *r, const tn__py_value *v, tn__st_entry *e)
{
    const tn__pickle   *p = &r->pickle;
    const int32_t       storage = tn__pickle_item(p, v->first, 0), first = tn__pickle_item(p, v->first, 1);
    const tn__py_value *key;
    int64_t             count;
    char                name[TN__ST_NAME + 8], shown[TN__QUOTED];
    if (storage < 0 || first < 0 || p->value[storage].kind != TN__PY_STORAGE || p->value[first].kind != TN__PY_INT ||
        p->value[first].n < 0 || !sizes(p, tn__pickle_item(p, v->first, 2), &e->shape) ||
        !sizes(p, tn__pickle_item(p, v->first, 3), &e->stride) || e->shape.n != e->stride.n)
        return fail(r, "a tensor's storage, sizes or strides are invalid");
    if (!as_stored(r, tn__pickle_item(p, v->first, 6), e) || !storage_of(r, storage, &key, &e->element, &count))
        return false;
    if (key->n > TN__ST_NAME) return fail(r, "a storage's key has more than 1024 bytes");
    const int n = r->folder ? snprintf(name, sizeof name, "data/%.*s", (int)key->n, key->text)
                            : snprintf(name, sizeof name, "%.*s", (int)key->n, key->text);
    blob     *b = blobs_find(r, name, (size_t)n);
    if (!b)
        return tn_raise_false(TN_EFORMAT, "%s: the storage %s is missing", r->f->label,
                              tn__quote(shown, key->text, (size_t)key->n, 100));
    const int64_t size = tn__elements[e->element].bits / 8;
    if (r->folder && !zip_find(r, b)) return false;
    if (count > b->bytes / size) count = b->bytes / size;
    if (!within(e, p->value[first].n, count)) return bad_tensor(r, e, TN_EFORMAT, "extends beyond its storage");
    if (tn_shape_numel(e->shape) > count) /* else a few bytes could request any amount of memory */
        return bad_tensor(r, e, TN_EUNSUPPORTED, "has overlapping elements, as expand() makes: save its .clone()");
    e->strided = !contiguous(e);
    e->begin = b->at + p->value[first].n * size, e->end = e->begin + tn_shape_numel(e->shape) * size;
    if (!tn_shape_numel(e->shape)) e->begin = e->end = b->at, e->strided = false;
    return true;
}

/* The number of tensors in a dict, and the bytes of their names. */
static int64_t tensors_in(const tn__pickle *p, int64_t dict, size_t *bytes)
{
    int64_t n = 0;
    *bytes = 0;
    if (p->value[dict].kind != TN__PY_DICT) return -1;
    for (int32_t k = p->value[dict].first; k >= 0; k = p->node[k].next) {
        if (p->value[p->node[k].value].kind != TN__PY_TENSOR || p->value[p->node[k].key].kind != TN__PY_STRING)
            continue;
        n++, *bytes += (size_t)p->value[p->node[k].key].n;
    }
    return n;
}

static bool table(reader *r)
{
    const tn__pickle *p = &r->pickle;
    size_t            bytes;
    int64_t           n = tensors_in(p, r->top, &bytes);
    if (n < 0) return fail(r, "the saved value is not a dict of tensors, as state_dict() returns");
    for (int32_t k = p->value[r->top].first; !n && k >= 0; k = p->node[k].next) /* a whole checkpoint */
        if (is_text(p, p->node[k].key, "state_dict") || is_text(p, p->node[k].key, "model_state_dict") ||
            is_text(p, p->node[k].key, "model")) {
            r->top = p->node[k].value;
            if ((n = tensors_in(p, r->top, &bytes)) < 0) return fail(r, "its state dict is not a dict of tensors");
            break;
        }
    if (n > TN__ST_TENSORS) return fail(r, "more tensors than the limit of 1,000,000");
    if (!tn__st_reserve(r->f, (uint32_t)n, bytes)) return false;
    for (int32_t k = p->value[r->top].first; k >= 0; k = p->node[k].next) {
        const tn__py_value *key = &p->value[p->node[k].key], *v = &p->value[p->node[k].value];
        if (v->kind != TN__PY_TENSOR || key->kind != TN__PY_STRING) continue;
        tn__st_entry *e = tn__st_add(r->f, key->text, (size_t)key->n);
        if (!e || !tensor_of(r, v, e)) return false;
    }
    return tn__st_index_names(r->f);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool read_all(reader *r)
{
    unsigned char first[4] = {0};
    const size_t  n = r->f->source.size < 4 ? (size_t)r->f->source.size : 4;
    if (!tn__source_read(&r->f->source, first, 0, n)) return false;
    if (!memcmp(first, "PK\3\4", 4)) return zip_open(r) && table(r);
    if (first[0] == 0x80 && first[1] >= 2 && first[1] <= 5) return old_open(r) && table(r);
    return fail(r, "not written by torch.save: it starts neither as a zip file nor as a pickle");
}

static tn_safetensors *finish(tn_safetensors *f, bool opened)
{
    reader     r = {.f = f, .top = -1};
    const bool ok = opened && read_all(&r);
    tn__pickle_free(&r.pickle);
    tn__mem_put(r.folder, r.folder ? r.folder_bytes : 0);
    tn__mem_put(r.text, r.text ? r.text_bytes : 0);
    tn__mem_put(r.blobs, r.blobs ? (size_t)r.room * sizeof *r.blobs : 0);
    tn__mem_put(r.names.slot, r.names.slot ? ((size_t)r.names.mask + 1) * sizeof *r.names.slot : 0);
    if (ok) return f;
    tn_safetensors_close(f);
    return NULL;
}

tn_safetensors *tn_torch_open(const char *path)
{
    tn_safetensors *f = tn__st_begin("tn_torch_open", path);
    return f ? finish(f, tn__source_open(&f->source, f->label, path)) : NULL;
}

tn_safetensors *tn_torch_read(const void *data, size_t bytes)
{
    tn_safetensors *f = tn__st_begin("tn_torch_read", NULL);
    return f ? finish(f, tn__source_memory(&f->source, f->label, data, bytes)) : NULL;
}
