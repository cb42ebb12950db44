/* safetensors_read.c — opens one file: reads its header, fills the tables, and checks the conditions on all entries
 * together. safetensors_header.c checks each entry. */
#include "core/files/safetensors.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

#include <string.h>

/* ---- names and offsets ------------------------------------------------------------------------------------------- */

static const char *name_of_entry(const void *owner, uint32_t i, size_t *bytes)
{
    const tn__st_entry *e = ((const tn_safetensors *)owner)->entries + i;
    *bytes = e->name_bytes;
    return e->name;
}

static const char *name_of_pair(const void *owner, uint32_t i, size_t *bytes)
{
    const tn__st_pair *p = ((const tn_safetensors *)owner)->pairs + i;
    *bytes = p->key_bytes;
    return p->key;
}

static bool duplicate(const tn_safetensors *f, const char *what, const char *name, size_t bytes, size_t first,
                      size_t at)
{
    char shown[TN__QUOTED];
    if (f->shards || !first)
        return tn_raise_false(TN_EFORMAT, "%s: duplicate %s %s%s", f->label, what, tn__quote(shown, name, bytes, 100),
                              f->shards ? ", in two of the files" : "");
    return tn_raise_false(TN_EFORMAT, "%s: duplicate %s %s, at byte %lld and at byte %lld", f->label, what,
                          tn__quote(shown, name, bytes, 100), 8 + (long long)first, 8 + (long long)at);
}

uint32_t *tn__st_slots(tn_safetensors *f)
{
    f->names.mask = tn__names_slots(f->count) - 1, f->keys.mask = tn__names_slots(f->pair_count) - 1;
    return f->slots = tn__mem_get(((size_t)f->names.mask + f->keys.mask + 2) * sizeof *f->slots);
}

bool tn__st_index_names(tn_safetensors *f)
{
    f->names.slot = f->slots, f->names.name = name_of_entry, f->names.owner = f;
    f->keys.slot = f->slots + f->names.mask + 1, f->keys.name = name_of_pair, f->keys.owner = f;
    tn__names_seed(&f->names), tn__names_seed(&f->keys);
    memset(f->slots, 0, ((size_t)f->names.mask + f->keys.mask + 2) * sizeof *f->slots);
    for (uint32_t i = 0; i < f->count; i++) {
        const tn__st_entry *e = f->entries + i;
        int64_t             j = tn__names_add(&f->names, i);
        if (j >= 0) return duplicate(f, "tensor", e->name, e->name_bytes, f->entries[j].at, e->at);
    }
    for (uint32_t i = 0; i < f->pair_count; i++) {
        const tn__st_pair *p = f->pairs + i;
        int64_t            j = tn__names_add(&f->keys, i);
        if (j >= 0) return duplicate(f, "metadata", p->key, p->key_bytes, f->pairs[j].at, p->at);
    }
    return true;
}

static bool earlier(const void *owner, uint32_t a, uint32_t b)
{
    const tn__st_entry *x = (const tn__st_entry *)owner + a, *y = (const tn__st_entry *)owner + b;
    return x->begin != y->begin ? x->begin < y->begin : x->end != y->end ? x->end < y->end : a < b;
}

/* Sorted by offset, the first tensor must start at 0, each other at the end of the previous, the last end the file. */
static bool check_offsets(const tn_safetensors *f, uint32_t *order)
{
    int64_t data = f->source.size - 8 - f->header_bytes, at = 0;
    for (uint32_t i = 0; i < f->count; i++) order[i] = i;
    tn__sort(order, f->count, earlier, f->entries);
    for (uint32_t i = 0; i < f->count; i++) {
        const tn__st_entry *e = f->entries + order[i];
        if (e->begin != at)
            return tn__st_fail(f, e->name, e->at, "its data starts at %lld, expected %lld: %s", (long long)e->begin,
                               (long long)at, e->begin < at ? "it overlaps the previous tensor" : "there is a gap");
        at = e->end;
    }
    if (at == data) return true;
    return tn_raise_false(TN_EFORMAT, "%s: its tensors have %lld bytes, but %lld follow the header: %s", f->label,
                          (long long)at, (long long)data,
                          at > data ? "the file is truncated" : "there are unexpected bytes");
}

/* ---- tables of other formats ------------------------------------------------------------------------------------- */

bool tn__st_reserve(tn_safetensors *f, uint32_t count, size_t name_bytes)
{
    f->count = f->room = count, f->string_room = name_bytes + count;
    const bool ok = tn__st_slots(f) && (f->entries = tn__mem_get(f->room * sizeof *f->entries)) &&
                    (f->strings = tn__mem_get(f->string_room));
    f->count = 0;
    return ok;
}

tn__st_entry *tn__st_add(tn_safetensors *f, const char *name, size_t bytes)
{
    char        shown[TN__QUOTED];
    const char *wrong = NULL;
    if (bytes < 1 || bytes > TN__ST_NAME) wrong = "must have 1 to 1024 bytes";
    else if (tn_utf8_valid(name, bytes) < bytes) wrong = "is not valid UTF-8";
    for (size_t i = 0; i < bytes && !wrong; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) wrong = "has a control character";
    if (!wrong && (f->count == f->room || f->string_room - f->strings_used <= bytes))
        wrong = "exceeds the declared number"; /* cannot happen; but it would corrupt memory */
    if (wrong)
        return tn_raise_null(TN_EFORMAT, "%s: the tensor's name %s %s", f->label, tn__quote(shown, name, bytes, 100),
                             wrong);
    tn__st_entry *e = f->entries + f->count++;
    char         *to = f->strings + f->strings_used;
    memcpy(to, name, bytes), to[bytes] = 0;
    f->strings_used += bytes + 1;
    *e = (tn__st_entry){.name = to, .name_bytes = (uint32_t)bytes};
    return e;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool get_tables(tn_safetensors *f)
{
    f->room = f->count, f->pair_room = f->pair_count;
    return tn__st_slots(f) && (f->entries = tn__mem_get(f->room * sizeof *f->entries)) &&
           (f->pairs = tn__mem_get(f->pair_room * sizeof *f->pairs)) && (f->strings = tn__mem_get(f->string_room));
}

static bool parse(tn_safetensors *f)
{
    if (!tn__st_parse(f) || !get_tables(f)) return false;
    f->filling = true;
    return tn__st_parse(f) && tn__st_index_names(f);
}

static bool read_header(tn_safetensors *f)
{
    unsigned char eight[8];
    uint64_t      n = 0;
    int64_t       size = f->source.size;
    if (size < 8)
        return tn_raise_false(TN_EFORMAT, "%s: it has %lld bytes, too few for a safetensors file", f->label,
                              (long long)size);
    if (!tn__source_read(&f->source, eight, 0, 8)) return false;
    for (int i = 7; i >= 0; i--) n = n << 8 | eight[i];
    if (n > TN__ST_HEADER)
        return tn_raise_false(
            TN_EFORMAT, "%s: byte 0: a header of %llu bytes, the limit is %d: not a safetensors file, or a damaged one",
            f->label, (unsigned long long)n, TN__ST_HEADER);
    if (n > (uint64_t)(size - 8))
        return tn_raise_false(TN_EFORMAT, "%s: byte 0: a header of %llu bytes, but only %lld follow", f->label,
                              (unsigned long long)n, (long long)size - 8);
    f->header_bytes = (int64_t)n, f->base = 8 + f->header_bytes;
    f->header = tn__mem_get((size_t)n);
    bool ok = f->header && tn__source_read(&f->source, f->header, 8, (size_t)n) && parse(f);
    tn__mem_put(f->header, (size_t)n);
    f->header = NULL;
    uint32_t *order = ok ? tn__mem_get(f->count * sizeof *order) : NULL;
    ok = order && check_offsets(f, order) && tn__st_take_checksums(f);
    tn__mem_put(order, f->count * sizeof *order);
    return ok;
}

tn_safetensors *tn__st_begin(const char *who, const char *path)
{
    if (tn__blocked()) return NULL;
    tn_safetensors *f = tn__mem_zeroed(sizeof *f);
    if (!f) return NULL;
    f->source.fd = -1;
    tn__label(f->label, who, path);
    tn__quote(f->path, path ? path : "", path ? strlen(path) : 0, 160);
    return f;
}

tn_safetensors *tn__st_finish(tn_safetensors *f, bool opened)
{
    if (opened && read_header(f)) return f;
    tn_safetensors_close(f);
    return NULL;
}

tn_safetensors *tn__st_open_shard(const char *path)
{
    tn_safetensors *f = tn__st_begin("tn_safetensors_open", path);
    return f ? tn__st_finish(f, tn__source_open_linked(&f->source, f->label, path)) : NULL;
}

void tn_safetensors_close(tn_safetensors *f)
{
    if (!f) return;
    for (uint32_t i = 0; i < f->shard_count; i++) tn_safetensors_close(f->shards[i]);
    tn__mem_put(f->shards, f->shard_room * sizeof *f->shards);
    tn__source_close(&f->source);
    tn__mem_put(f->slots, f->slots ? ((size_t)f->names.mask + f->keys.mask + 2) * sizeof *f->slots : 0);
    tn__mem_put(f->entries, f->room * sizeof *f->entries);
    tn__mem_put(f->pairs, f->pair_room * sizeof *f->pairs);
    tn__mem_put(f->strings, f->string_room);
    tn__mem_put(f, sizeof *f);
}
