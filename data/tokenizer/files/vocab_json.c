/* vocab_json.c — finds the files of a tokenizer's folder; reads a vocab.json, an object of tokens and their ids. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

/* Returns folder/name; NULL: raised. The caller frees it with tn__strfree. */
static char *join(const char *folder, const char *name)
{
    const size_t a = strlen(folder), b = strlen(name), slash = a && folder[a - 1] != '/';
    char        *path = tn__mem_get(a + slash + b + 1);
    if (!path) return NULL;
    memcpy(path, folder, a);
    if (slash) path[a] = '/';
    memcpy(path + a + slash, name, b + 1);
    return path;
}

/* True if path can be read as a file. */
bool tn__tokenizer_is_file(const char *path)
{
    tn_error_state aside;
    tn__source     s;
    tn_error_push(&aside);
    const bool readable = tn__source_open(&s, path, path);
    if (readable) tn__source_close(&s);
    tn_error_pop(&aside);
    return readable;
}

char *tn__find_file(const char *folder, const char *a, const char *b)
{
    char *path = join(folder, a);
    if (!path || tn__tokenizer_is_file(path)) return path;
    tn__strfree(path);
    path = b ? join(folder, b) : NULL;
    if (!path || tn__tokenizer_is_file(path)) return path;
    return tn__strfree(path), NULL;
}

bool tn__vocab_json_read(tn_tokenizer *t, const char *path)
{
    char     label[TN__LABEL], q[TN__QUOTED];
    tn_json *v = tn_json_load(path);
    if (!v) return false;
    const char   *caller = tn__label(label, "tn_tokenizer_load", path);
    const int64_t n = tn_json_type_of(v) == TN_JSON_OBJECT ? tn_json_count(v) : 0;
    const size_t  bytes = (size_t)(n + 1) * sizeof(char *);
    const char  **text = n && n <= TN__VOCAB_MAX ? tn__mem_zeroed(bytes) : NULL;
    if (!text && tn_error() == TN_OK)
        tn_raise(TN_EFORMAT, "%s: expected an object of 1 to %d tokens and their ids", caller, TN__VOCAB_MAX);
    for (const tn_json *m = text ? tn_json_first(v) : NULL; m; m = tn_json_next(m)) {
        const int64_t id = tn_json_i64(m);
        if (tn_error() == TN_OK && id >= 0 && id < n && !text[id] && *tn_json_key(m)) {
            text[id] = tn_json_key(m);
            continue;
        }
        if (tn_error() == TN_OK)
            tn_raise(TN_EFORMAT, "%s: %s has the id %lld, expected each id from 0 to %lld once", caller,
                     tn__quote(q, tn_json_key(m), strlen(tn_json_key(m)), 40), (long long)id, (long long)n - 1);
        break;
    }
    bool ok = text && tn_error() == TN_OK;
    for (int64_t i = 0; ok && i < n; i++) ok = tn__strings_add(&t->vocab, text[i], strlen(text[i])) == i;
    tn__mem_put(text, bytes);
    tn_json_free(v);
    return ok;
}
