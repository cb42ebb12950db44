/* model_file.c — detects a model file's format and calls its reader. */
#include "core/system/system.h"

#include "models/files/model_file.h"
#include "core/files/io.h"

#include <errno.h>
#include <string.h>

/* stat, with errno unchanged; false: the path does not exist. */
static bool get_status(const char *path, struct stat *st)
{
    const int  keep = errno;
    const bool there = path && !tn__sys_stat(path, st);
    errno = keep;
    return there;
}
bool tn__path_exists(const char *path) { return get_status(path, &(struct stat){0}); }
bool tn__is_file(const char *path)
{
    struct stat st;
    return get_status(path, &st) && !S_ISDIR(st.st_mode);
}

static const struct {
    const char *name;
    tn_json *(*config)(const char *path);
    tn_safetensors *(*tensors)(const char *path);
} formats[] = {
    {"gguf", tn__gguf_config, tn__gguf_tensors},
    {"llama2.c", tn__llama2c_config, tn__llama2c_tensors},
};

/* Formats that are detected by their first bytes but cannot be opened. */
static const struct {
    const char *bytes, *description;
    size_t      at, n;
} unsupported[] = {
    {"PK\x03\x04", "a zip file, as PyTorch's .bin and .pt; pass its directory instead", 0, 4},
    {"{\"", "a safetensors file; pass its directory instead, which must contain config.json", 8, 2},
    {"tjgg", "an old llama.cpp file, from before GGUF; convert it with an old llama.cpp", 0, 4},
    {"lmgg", "an old llama.cpp file, from before GGUF; convert it with an old llama.cpp", 0, 4},
    {"\x80\x02", "a Python pickle file, as PyTorch's old .bin; pass its directory instead", 0, 2},
    {"24ka", "a file in llama2.c's second format ('ak42'); export with version 0", 0, 4},
};

/* The index in forms; -1: raised. */
static int detect(const char *path)
{
    char       first[16] = {0};
    tn__source s;
    if (!tn__source_open(&s, path, path)) return -1;
    const size_t n = s.size < 16 ? (size_t)s.size : 16;
    const bool   read = tn__source_read(&s, first, 0, n);
    tn__source_close(&s);
    if (!read) return -1;
    if (!memcmp(first, "GGUF", 4)) return 0;
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (unsupported[i].n && !memcmp(first + unsupported[i].at, unsupported[i].bytes, unsupported[i].n))
            return tn_raise(TN_EUNSUPPORTED, "'%s' is %s", path, unsupported[i].description), -1;
    if (tn__is_llama2c(path)) return 1;
    tn_raise(TN_EFORMAT,
             "'%s' is not a supported model; supported are directories in Hugging Face's format, .gguf files, and "
             "llama2.c's .bin (whose size must match its first seven numbers)",
             path);
    return -1;
}

const char *tn__file_format(const char *path)
{
    const int i = detect(path);
    return i < 0 ? NULL : formats[i].name;
}
tn_json *tn__file_config(const char *path)
{
    const int i = detect(path);
    return i < 0 ? NULL : formats[i].config(path);
}
tn_safetensors *tn__file_tensors(const char *path)
{
    const int i = detect(path);
    return i < 0 ? NULL : formats[i].tensors(path);
}
