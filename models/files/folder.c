/* folder.c — paths in a model's folder, and what it holds besides its weights. */
#include "core/files/io.h"
#include "models/files/hf_config.h"

#include <string.h>

bool tn__path_in(const char *dir, const char *name, char *path, size_t size)
{
    if (!dir) return tn_raise(TN_EINVAL, "the directory is NULL; it is where '%s' lies", name), false;
    const size_t d = strlen(dir), n = strlen(name);
    if (d + n + 2 > size) return tn_raise(TN_EINVAL, "the path of '%s' is too long", name), false;
    memcpy(path, dir, d);
    path[d] = '/';
    memcpy(path + d + 1, name, n + 1);
    return true;
}

bool tn__holds_tokenizer(const char *dir)
{
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "encoder.json", "vocab.txt", NULL};
    char path[1024];
    for (int i = 0; names[i] && tn__path_in(dir, names[i], path, sizeof path); i++)
        if (tn__is_there(path)) return true;
    return false;
}
