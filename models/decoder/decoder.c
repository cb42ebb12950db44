/* decoder.c — what a path holds, and who loads it. */
#include "core/base/toolbox.h"
#include "models/models.h"

#include <string.h>
#include <sys/stat.h>

void tn_decoder_close(tn_decoder *d)
{
    if (!d) return;
    if (d->model) tn_module_free(d->model);
    tn_tokenizer_free(d->tokenizer);
    *d = (tn_decoder){.model = NULL};
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

tn_decoder tn_decoder_open_run(const char *path, tn_decoder_config c)
{
    tn_decoder d = {.form = "huggingface"};
    if (tn_error() != TN_OK) return d;
    if (!path) return tn_raise(TN_EINVAL, "tn_decoder_open: the path is NULL"), d;
    if (!is_folder(path))
        return tn_raise(TN_EUNSUPPORTED, "tn_decoder_open: '%s' is no directory as Hugging Face lays it out", path), d;
    d.model = tn_gpt_load(path);
    if (d.model && !c.no_tokenizer) d.tokenizer = tn_tokenizer_load(c.tokenizer ? c.tokenizer : path);
    if (tn_error() != TN_OK) tn_decoder_close(&d);
    return d;
}

tn_status tn_decoder_save_run(const tn_decoder *d, const char *path, tn_decoder_save_args a)
{
    if (tn_error() != TN_OK) return tn_error();
    if (!d || !d->model || !path)
        return tn_raise(TN_EINVAL, "tn_decoder_save: the %s is NULL", path ? "model" : "path");
    if (a.type)
        return tn_raise(TN_EINVAL, "tn_decoder_save: .type is for a path that ends in .gguf, this is '%s'", path);
    if (tn_gpt_save(d->model, path) == TN_OK && d->tokenizer && tn_tokenizer_save(d->tokenizer, path) != TN_OK)
        return tn_error();
    return tn_error();
}
