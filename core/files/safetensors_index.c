/* safetensors_index.c — the tensors of a model in several files: an index names the file of each.
 *
 *     {"metadata": {"total_size": 24}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": …}}
 *
 * The index must name each tensor of each file exactly once, and no other. */
#include "core/files/safetensors.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

#include <string.h>

enum { SHARDS = 1000, NAME = 255 /* bytes of a file's name */ };

static bool wrong(const tn_safetensors *f, const char *tensor, const char *file, const char *what)
{
    char shown[2][TN__QUOTED];
    return tn_raise_false(TN_EFORMAT, "%s: tensor %s: %s%s%s", f->label,
                          tn__quote(shown[0], tensor, strlen(tensor), 100), what, file ? " " : "",
                          file ? tn__quote(shown[1], file, strlen(file), 100) : "");
}

/* True if v is a plain file name: no folder, not hidden. */
static bool is_name(const tn_json *v)
{
    static const char end[] = ".safetensors";
    const char       *s = tn_json_string(v);
    const size_t      n = strlen(s);
    if ((int64_t)n != tn_json_string_bytes(v) || n < sizeof end || n > NAME || *s == '.') return false;
    for (const char *p = s; *p; p++)
        if (*p == '/' || *p == '\\' || (unsigned char)*p < 0x20) return false;
    return !strcmp(s + n - (sizeof end - 1), end);
}

/* Opens each file that the map names, once. names: of the files, in the order of opening. */
static bool open_all(tn_safetensors *f, const tn_json *map, const char *path, const char **names)
{
    const char  *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    for (const tn_json *v = tn_json_first(map); v; v = tn_json_next(v)) {
        uint32_t    k = 0;
        const char *name = tn_json_string(v);
        if (tn__self.error != TN_OK) return false;
        if (f->shard_count && !strcmp(names[f->shard_count - 1], name)) continue; /* the usual case */
        while (k < f->shard_count && strcmp(names[k], name) != 0) k++;
        if (k < f->shard_count) continue;
        if (!is_name(v)) return wrong(f, tn_json_key(v), name, "not the name of a .safetensors file in this folder:");
        if (k == SHARDS) return tn_raise_false(TN_EUNSUPPORTED, "%s: more than %d files", f->label, SHARDS);
        char *at = tn__mem_get(folder + NAME + 1);
        if (at) memcpy(at, path, folder), memcpy(at + folder, name, strlen(name) + 1);
        f->shards[k] = at ? tn__st_open_shard(at) : NULL;
        tn__mem_put(at, folder + NAME + 1);
        if (!f->shards[k]) return false;
        names[f->shard_count++] = name;
    }
    return true;
}

static bool get_table(tn_safetensors *f)
{
    for (uint32_t k = 0; k < f->shard_count; k++) f->count += f->shards[k]->count;
    if (f->count > TN__ST_TENSORS)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: more than %d tensors", f->label, TN__ST_TENSORS);
    f->room = f->count;
    if (!(f->entries = tn__mem_get(f->room * sizeof *f->entries)) || !tn__st_slots(f)) return false;
    tn__st_entry *to = f->entries;
    for (uint32_t k = 0; k < f->shard_count; k++)
        for (uint32_t i = 0; i < f->shards[k]->count; i++, to++)
            *to = f->shards[k]->entries[i], to->shard = k, to->at = 0;
    return tn__st_index_names(f);
}

/* True if the map is right about each tensor, and the metadata about the number of bytes. */
static bool agree(tn_safetensors *f, const tn_json *doc, const tn_json *map, const char *const *names)
{
    int64_t bytes = 0;
    for (const tn_json *v = tn_json_first(map); v; v = tn_json_next(v)) {
        const char   *name = tn_json_key(v);
        const int64_t i = tn__names_find(&f->names, name, strlen(name));
        if (i < 0 || strcmp(names[f->entries[i].shard], tn_json_string(v)) != 0)
            return wrong(f, name, tn_json_string(v), "it is not in");
        f->entries[i].at = 1;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        const tn__st_entry *e = f->entries + i;
        if (!e->at) return wrong(f, e->name, names[e->shard], "the index does not name it, but it is in");
        bytes += e->end - e->begin;
    }
    const tn_json *total = tn_json_get(tn_json_get(doc, "metadata"), "total_size");
    if (tn_json_double_or(total, (double)bytes) != (double)bytes && tn__self.error == TN_OK)
        tn_raise(TN_EFORMAT, "%s: total_size is %.0f, but the tensors have %lld bytes", f->label, tn_json_double(total),
                 (long long)bytes);
    return tn__self.error == TN_OK;
}

bool tn__st_open_index(tn_safetensors *f, const char *path)
{
    const tn_json_limits limits = {.depth = 8, .bytes = TN__ST_HEADER, .values = TN__ST_TENSORS + 1000};
    tn_json             *doc = tn_json_load_within(path, limits);
    const tn_json       *map = tn_json_get(doc, "weight_map");
    const char         **names = NULL;
    bool                 ok = doc != NULL;
    if (ok && tn_json_type_of(map) != TN_JSON_OBJECT)
        ok = false, tn_raise(TN_EFORMAT, "%s: weight_map, which names the file of each tensor, is missing", f->label);
    ok = ok && (names = tn__mem_get(SHARDS * sizeof *names));
    if (ok && (f->shards = tn__mem_zeroed(SHARDS * sizeof *f->shards))) f->shard_room = SHARDS;
    ok = ok && f->shards && open_all(f, map, path, names) && get_table(f) && agree(f, doc, map, names);
    tn__mem_put(names, SHARDS * sizeof *names);
    tn_json_free(doc);
    return ok;
}
