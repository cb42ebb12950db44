/* save_file.c — saves one file of a tokenizer's folder, with its line in SHA256SUMS. */
#include "data/tokenizer/files/tokenizer_files.h"

#include <string.h>

static bool path_in(tn_string *path, const char *folder, const char *name)
{
    path->bytes = 0;
    return tn_string_add(path, (tn_text){folder, strlen(folder)}) == TN_OK &&
           tn_string_add(path, (tn_text){"/", 1}) == TN_OK &&
           tn_string_add(path, (tn_text){name, strlen(name)}) == TN_OK;
}

bool tn__tokenizer_save_json(const tn_tokenizer *t, const char *folder, const char *name,
                             void (*write)(const tn_tokenizer *, tn_json_writer *))
{
    tn_string       path = {0};
    tn_json_writer *w = path_in(&path, folder, name) ? tn_json_writer_new(2) : NULL;
    if (w) write(t, w);
    const bool ok = w && tn_error() == TN_OK && tn_json_save_with_sha256(w, path.at) == TN_OK;
    tn_json_writer_free(w);
    tn_string_free(&path);
    return ok;
}

bool tn__tokenizer_save_bytes(const char *folder, const char *name, const char *data, size_t bytes)
{
    char       label[TN__LABEL];
    tn_string  path = {0};
    const bool ok = path_in(&path, folder, name) && tn__sha256sums_write(tn__label(label, "tn_tokenizer_save", path.at),
                                                                         path.at, data, bytes, "", true) == TN_OK;
    tn_string_free(&path);
    return ok;
}
