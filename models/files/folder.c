/* folder.c — what a model's folder holds besides its weights. */
#include "core/files/io.h"
#include "models/files/hf_config.h"

bool tn__holds_tokenizer(const char *dir)
{
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "encoder.json", "vocab.txt", NULL};
    char path[1024];
    for (int i = 0; names[i] && tn__path_in(dir, names[i], path, sizeof path); i++)
        if (tn__is_there(path)) return true;
    return false;
}
