/* safetensors_write.c — writes many tensors by name, as the reference does: sorted by type, the largest first, then by
 * name; the header padded with spaces to a multiple of 8. */
#include "core/files/safetensors.h"
#include "core/tensor/tensor.h"

#include <string.h>

typedef struct tn__st_item item;

typedef struct {
    char *key, *value;
} note;

struct tn_safetensors_writer {
    item     *items;
    note     *notes;
    tn__names names;
    uint32_t  count, room, note_count, note_room;
    size_t    note_bytes;
};

tn_safetensors_writer *tn_safetensors_writer_new(void)
{
    return tn__blocked() ? NULL : tn__mem_zeroed(sizeof(tn_safetensors_writer));
}

static size_t slot_bytes(const tn_safetensors_writer *w)
{
    return w->names.slot ? ((size_t)w->names.mask + 1) * sizeof *w->names.slot : 0;
}

void tn_safetensors_writer_free(tn_safetensors_writer *w)
{
    if (!w) return;
    for (uint32_t i = 0; i < w->count; i++) {
        tn__strfree(w->items[i].name);
        tn_drop(w->items[i].tensor);
    }
    for (uint32_t i = 0; i < w->note_count; i++) {
        tn__strfree(w->notes[i].key);
        tn__strfree(w->notes[i].value);
    }
    tn__mem_put(w->items, w->room * sizeof *w->items);
    tn__mem_put(w->notes, w->note_room * sizeof *w->notes);
    tn__mem_put(w->names.slot, slot_bytes(w));
    tn__mem_put(w, sizeof *w);
}

const item *tn__st_items(const tn_safetensors_writer *w, uint32_t *count) { return *count = w->count, w->items; }

/* ---- collecting -------------------------------------------------------------------------------------------------- */

static const char *name_of_item(const void *owner, uint32_t i, size_t *bytes)
{
    const char *name = ((const tn_safetensors_writer *)owner)->items[i].name;
    *bytes = strlen(name);
    return name;
}

/* Reserves one more item, and a table of names that is never full. */
static bool reserve(tn_safetensors_writer *w)
{
    if (w->count < w->room) return true;
    uint32_t  room = w->room ? 2 * w->room : 16, slots = tn__names_slots(room);
    void     *items = w->items;
    uint32_t *slot = tn__mem_zeroed(slots * sizeof *slot);
    if (!slot || !tn__mem_grow(&items, w->count * sizeof(item), room * sizeof(item)))
        return tn__mem_put(slot, slots * sizeof *slot), false;
    tn__mem_put(w->names.slot, slot_bytes(w));
    w->items = items, w->room = room;
    w->names = (tn__names){.slot = slot, .mask = slots - 1, .name = name_of_item, .owner = w};
    tn__names_seed(&w->names);
    for (uint32_t i = 0; i < w->count; i++) tn__names_add(&w->names, i);
    return true;
}

static bool check_name(const char *who, const char *name)
{
    char        shown[TN__QUOTED];
    size_t      n = strlen(name), good = tn_utf8_valid(name, n);
    const char *wrong = NULL;
    if (n < 1 || n > TN__ST_NAME) wrong = "must have 1 to 1024 bytes";
    else if (good < n) wrong = "is not valid UTF-8";
    else if (!strcmp(name, "__metadata__")) wrong = "is reserved by the format; tn_safetensors_note writes metadata";
    for (size_t i = 0; i < n && !wrong; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) wrong = "has a control character";
    if (wrong) tn_raise(TN_EINVAL, "%s: the name %s %s", who, tn__quote(shown, name, n, 100), wrong);
    return !wrong;
}

tn_status tn_safetensors_put(tn_safetensors_writer *w, const char *name, const tn_tensor *t)
{
    static const char who[] = "tn_safetensors_put";
    char              shown[TN__QUOTED];
    if (tn__blocked()) return tn__self.error;
    if (!w || !name) return tn_raise(TN_EINVAL, "%s: the %s is NULL", who, w ? "name" : "writer");
    if (!check_name(who, name)) return tn__self.error;
    tn__quote(shown, name, strlen(name), 100);
    if (!t) return tn_raise(TN_EINVAL, "%s: the tensor for %s is NULL", who, shown);
    if (tn__names_find(&w->names, name, strlen(name)) >= 0)
        return tn_raise(TN_EINVAL, "%s: duplicate name %s", who, shown);
    if (w->count == TN__ST_TENSORS)
        return tn_raise(TN_EUNSUPPORTED, "%s: %s would be one more than the limit of %d tensors", who, shown,
                        TN__ST_TENSORS);
    if (!reserve(w)) return tn__self.error;
    item x = {.name = tn__strdup(name)};
    if (!x.name || !(x.tensor = tn__alias_owned(t, &t->l))) return tn__strfree(x.name), tn__self.error;
    w->items[w->count] = x;
    tn__names_add(&w->names, w->count++);
    return TN_OK;
}

tn_status tn_safetensors_note(tn_safetensors_writer *w, const char *key, const char *value)
{
    static const char who[] = "tn_safetensors_note";
    if (tn__blocked()) return tn__self.error;
    if (!w || !key || !value)
        return tn_raise(TN_EINVAL, "%s: the %s is NULL", who, !w ? "writer" : !key ? "key" : "value");
    char   shown[TN__QUOTED];
    size_t nk = strlen(key), nv = strlen(value), old = 0;
    tn__quote(shown, key, nk, 100);
    if (tn_utf8_valid(key, nk) < nk) return tn_raise(TN_EINVAL, "%s: the key %s is not valid UTF-8", who, shown);
    if (tn_utf8_valid(value, nv) < nv) return tn_raise(TN_EINVAL, "%s: the value of %s is not valid UTF-8", who, shown);
    uint32_t i = 0;
    while (i < w->note_count && strcmp(w->notes[i].key, key)) i++;
    if (i < w->note_count) old = strlen(w->notes[i].value) + nk;
    else if (i == TN__ST_PAIRS - 1) /* one is reserved for "format" */
        return tn_raise(TN_EUNSUPPORTED, "%s: %s would be one more than the limit of %d notes", who, shown,
                        TN__ST_PAIRS - 1);
    if (w->note_bytes - old + nk + nv > TN__ST_METADATA - 16)
        return tn_raise(TN_EUNSUPPORTED, "%s: with %s the metadata exceeds the limit of %d bytes", who, shown,
                        TN__ST_METADATA);
    if (i == w->note_room) {
        void    *notes = w->notes;
        uint32_t room = i ? 2 * i : 8;
        if (!tn__mem_grow(&notes, i * sizeof(note), room * sizeof(note))) return tn__self.error;
        w->notes = notes, w->note_room = room;
    }
    note x = {.key = i < w->note_count ? w->notes[i].key : tn__strdup(key), .value = NULL};
    if (!x.key || !(x.value = tn__strdup(value))) {
        if (i == w->note_count) tn__strfree(x.key);
        return tn__self.error;
    }
    if (i < w->note_count) tn__strfree(w->notes[i].value);
    else w->note_count++;
    w->notes[i] = x;
    w->note_bytes += nk + nv - old;
    return TN_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool before(const void *owner, uint32_t a, uint32_t b)
{
    const item *x = (const item *)owner + a, *y = (const item *)owner + b;
    int         ex = tn__element_of_dtype(x->tensor->dtype), ey = tn__element_of_dtype(y->tensor->dtype);
    return ex != ey ? ex > ey : strcmp(x->name, y->name) < 0;
}

static int64_t bytes_of(const tn_tensor *t) { return tn_shape_numel(t->l.shape) * (int64_t)tn__dtype_bytes(t->dtype); }

static void put_metadata(const tn_safetensors_writer *w, tn_json_writer *j)
{
    bool format = false;
    for (uint32_t i = 0; i < w->note_count; i++) format |= !strcmp(w->notes[i].key, "format");
    tn_json_open_object(j, "__metadata__");
    if (!format) tn_json_put_string(j, "format", "pt");
    for (uint32_t i = 0; i < w->note_count; i++) tn_json_put_string(j, w->notes[i].key, w->notes[i].value);
    tn_json_close(j);
}

/* Writes the whole header, and computes the number of bytes after it; false: raised. */
static bool put_header(const tn_safetensors_writer *w, const char *label, const uint32_t *order, tn_json_writer *j,
                       int64_t *data)
{
    *data = 0;
    tn_json_open_object(j, NULL);
    put_metadata(w, j);
    for (uint32_t i = 0; i < w->count; i++) {
        const item *x = w->items + order[i];
        tn_shape    s = x->tensor->l.shape;
        tn_json_open_object(j, x->name);
        tn_json_put_string(j, "dtype", tn__elements[tn__element_of_dtype(x->tensor->dtype)].safetensors);
        tn_json_open_array(j, "shape");
        for (int d = 0; d < s.n; d++) tn_json_put_i64(j, NULL, s.d[d]);
        tn_json_close(j);
        tn_json_open_array(j, "data_offsets");
        tn_json_put_i64(j, NULL, *data);
        if (!tn__add_i64(*data, bytes_of(x->tensor), data) || *data > INT64_MAX - 2 * (int64_t)TN__ST_HEADER)
            return tn_raise_false(TN_EUNSUPPORTED, "%s: the tensors' bytes do not fit in 63 bits", label);
        tn_json_put_i64(j, NULL, *data);
        tn_json_close(j);
        tn_json_close(j);
    }
    tn_json_close(j);
    return tn__self.error == TN_OK;
}

/* Writes to a file, or (path NULL) to a new tensor of bytes. */
static tn_tensor *write_all(const tn_safetensors_writer *w, const char *label, const char *path, const uint32_t *order,
                            tn_json_writer *j)
{
    int64_t     data;
    size_t      n;
    const char *text = put_header(w, label, order, j, &data) ? tn_json_text(j, &n) : NULL;
    if (!text) return NULL;
    size_t padded = (n + 7) / 8 * 8;
    if (padded > TN__ST_HEADER)
        return tn_raise_null(TN_EUNSUPPORTED, "%s: a header of %zu bytes, the limit is %d", label, padded,
                             TN__ST_HEADER);
    int64_t       all = 8 + (int64_t)padded + data;
    unsigned char eight[8];
    for (int i = 0; i < 8; i++) eight[i] = (unsigned char)((uint64_t)padded >> 8 * i);

    tn__sink   s;
    tn_tensor *t = NULL;
    if (path) {
        if (!tn__sink_open(&s, label, path, all)) return NULL;
    } else {
        if (!(t = tn__new_owned(TN_U8, (tn_shape){.n = 1, .d = {all}}))) return NULL;
        tn__sink_memory(&s, label, tn__ptr(t), all);
    }
    bool ok = tn__sink_write(&s, eight, 8) && tn__sink_write(&s, text, n) && tn__sink_write(&s, "       ", padded - n);
    for (uint32_t i = 0; ok && i < w->count; i++) ok = tn__element_write(&s, w->items[order[i]].tensor);
    if (tn__sink_end(&s, ok) != TN_OK) tn_drop(t), t = NULL;
    return t;
}

static bool note_sums(tn_safetensors_writer *w, const uint32_t *order)
{
    const char *key;
    char       *sums = tn__st_checksums(w->items, w->count, order, &key);
    if (sums && tn__self.error == TN_OK) tn_safetensors_note(w, key, sums);
    tn__mem_put(sums, tn__st_checksums_bytes(w->count));
    return tn__self.error == TN_OK;
}

static tn_tensor *write_sorted(tn_safetensors_writer *w, const char *label, const char *path, bool summed)
{
    if (!w) return tn_raise_null(TN_EINVAL, "%s: the writer is NULL", label);
    uint32_t       *order = tn__mem_get(w->count * sizeof *order);
    tn_json_writer *j = order ? tn_json_writer_new(0) : NULL;
    tn_tensor      *t = NULL;
    if (j) {
        for (uint32_t i = 0; i < w->count; i++) order[i] = i;
        tn__sort(order, w->count, before, w->items);
        if (!summed || note_sums(w, order)) t = write_all(w, label, path, order, j);
    }
    tn_json_writer_free(j);
    tn__mem_put(order, w->count * sizeof *order);
    return t;
}

static tn_status save(tn_safetensors_writer *w, const char *path, bool summed)
{
    if (tn__blocked()) return tn__self.error;
    char label[TN__LABEL];
    tn__label(label, "tn_safetensors_save", path);
    if (!path) return tn_raise(TN_EINVAL, "%s: the path is NULL", label);
    write_sorted(w, label, path, summed);
    return tn__self.error;
}

tn_status tn_safetensors_save(tn_safetensors_writer *w, const char *path) { return save(w, path, false); }
tn_status tn__safetensors_save_with_checksums(tn_safetensors_writer *w, const char *path)
{
    return save(w, path, true);
}

tn_tensor *tn_safetensors_write(tn_safetensors_writer *w)
{
    return tn__blocked() ? NULL : tn__scoped(write_sorted(w, "tn_safetensors_write", NULL, false));
}
