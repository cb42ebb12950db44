/* directory.c — paths in a model's directory, and checks of its content. */
#include "core/files/io.h"
#include "models/files/hf_config.h"

#include <string.h>

bool tn__path_in(const char *dir, const char *name, char *path, size_t size)
{
    if (!dir) return tn_raise_false(TN_EINVAL, "the directory is NULL; expected the one that contains '%s'", name);
    const size_t d = strlen(dir), n = strlen(name);
    if (d + n + 2 > size) return tn_raise_false(TN_EINVAL, "the path of '%s' is too long", name);
    memcpy(path, dir, d);
    path[d] = '/';
    memcpy(path + d + 1, name, n + 1);
    return true;
}

int tn__hf_names(const tn_hf_files *f, tn_rename *to, int room)
{
    const int n = f->renames < room ? f->renames : room;
    if (n > 0) memcpy(to, f->rules, (size_t)n * sizeof *to);
    return n;
}

bool tn__has_tokenizer(const char *dir)
{
    static const char *const names[] = {"tokenizer.json",
                                        "source.spm",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "vocab.json",
                                        "encoder.json",
                                        "vocab.txt",
                                        "spm.model",
                                        "sentencepiece.bpe.model",
                                        NULL};
    char                     path[1024];
    for (int i = 0; names[i] && tn__path_in(dir, names[i], path, sizeof path); i++)
        if (tn__file_exists(path)) return true;
    return false;
}

bool tn__has_no_adapters(void *m, const char *dir)
{
    if (!tn_module_has_lora(m)) return true;
    return tn_raise_false(
        TN_EUNSUPPORTED,
        "'%s': the model has adapters, which its own files cannot contain; merge them (tn_lora_merge), "
        "or save them (tn_peft_save)",
        dir);
}

bool tn__has_no_packed(void *m, const char *dir)
{
    for (tn_each t = tn_module_each(m, TN_EACH_SAVED); tn_next(&t);)
        if (tn_is_packed(t.tensor))
            return tn_raise_false(
                TN_EUNSUPPORTED,
                "'%s': the weight '%s' is packed (tn_quantize, tn_halve), which Hugging Face's format does not "
                "support; save the model before packing it, or use tn_save",
                dir, t.name);
    return true;
}
