/* hf_source.c — opens a model's directory or file: config.json, parsed once, and the weights. */
#include "core/files/io.h"
#include "models/files/hf_config.h"

#include <stdio.h>
#include <string.h>

/* ---- config.json ------------------------------------------------------------------------------------------------- */

/* Raises unless a config that was read is an object. */
static bool is_object(const tn_hf_source *s)
{
    if (s->config && tn_json_type_of(s->config) != TN_JSON_OBJECT)
        tn_raise(TN_EFORMAT, "'%s' does not contain an object", s->name);
    return tn_error() == TN_OK;
}

static tn_json *load_object(const char *name)
{
    const tn_json_limits limits = {.depth = 32, .bytes = 16 << 20, .values = 1 << 21};
    return tn_json_load_within(name, limits);
}

const char    *tn_hf_source_path(const tn_hf_source *s) { return s ? s->path : NULL; }
const tn_json *tn_hf_source_json(const tn_hf_source *s) { return s ? s->config : NULL; }

bool tn__hf_open(tn_hf_source *s, const char *path)
{
    const bool file = tn__is_file(path);
    *s = (tn_hf_source){.path = path};
    if (tn_error() != TN_OK) return false;
    if (file) snprintf(s->name, sizeof s->name, "%s", path);
    else if (path && !tn__path_exists(path)) return tn_raise_false(TN_EIO, "'%s': no such file or directory", path);
    else if (!tn__path_in(path, "config.json", s->name, sizeof s->name)) return false;
    s->config = file ? tn__file_config(path) : load_object(s->name);
    return is_object(s);
}

bool tn__hf_open_beside(const tn_hf_source *s, const char *name, tn_hf_source *to)
{
    *to = *s;
    if (tn__is_file(s->path)) return true;
    if (!tn__path_in(s->path, name, to->name, sizeof to->name)) return false;
    if (!tn__file_exists(to->name)) return *to = *s, true;
    to->config = load_object(to->name);
    return is_object(to);
}

void tn__hf_close(tn_hf_source *s)
{
    tn_json_free(s->config);
    s->config = NULL;
}

void *tn_hf_load(const char *path, void *(*load)(const tn_hf_source *s))
{
    tn_hf_source s;
    if (!load) return tn_raise_null(TN_EINVAL, "tn_hf_load: the function is NULL");
    void *m = tn__hf_open(&s, path) ? load(&s) : NULL;
    tn__hf_close(&s);
    return m;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static _Atomic(tn_safetensors *(*)(const char *)) torch_reader;

void tn_hf_torch_register(tn_safetensors *(*open)(const char *path)) { torch_reader = open; }

static tn_safetensors *by_torch(const char *path)
{
    tn_safetensors *(*open)(const char *) = torch_reader;
    if (open) return open(path);
    return tn_raise_null(TN_EUNSUPPORTED, "'%s' is a PyTorch file, which tn_extras_register() makes readable", path);
}

tn_safetensors *tn__weights_file(const char *dir, char path[1024])
{
    if (tn_error() != TN_OK) return NULL;
    if (tn__is_file(dir)) return snprintf(path, 1024, "%s", dir), tn__file_tensors(dir);
    if (!tn__path_in(dir, "pytorch_model.bin.index.json", path, 1024)) return NULL;
    const bool parts = tn__file_exists(path);
    path[strlen(path) - strlen(".index.json")] = 0;
    const bool torch = tn__file_exists(path);
    if (!tn__path_in(dir, "model.safetensors.index.json", path, 1024)) return NULL;
    const bool index = tn__file_exists(path);
    path[strlen(path) - strlen(".index.json")] = 0;
    const bool whole = tn__file_exists(path);
    if (index && !whole) path[strlen(path)] = '.';
    if (index || whole || !(torch || parts)) return tn_safetensors_open(path);
    if (!tn__path_in(dir, "pytorch_model.bin", path, 1024)) return NULL;
    if (torch) return by_torch(path);
    return tn_raise_null(
        TN_EUNSUPPORTED,
        "'%s' has its weights in several PyTorch files; save it with transformers' save_pretrained, which "
        "writes safetensors",
        dir);
}

void tn__list_weights(const tn_safetensors *f, const char *const *first, char *to, size_t size)
{
    size_t at = 0;
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        const char  *name = tn_safetensors_at(f, i).name;
        const size_t n = strcspn(name, ".");
        for (int k = 0; first[k]; k++)
            if (strlen(first[k]) == n && !memcmp(first[k], name, n) && at < size)
                at += (size_t)snprintf(to + at, size - at, "%s%s", at ? ", " : "", name);
    }
}

/* Loads f, at path, into m (NULL: nothing) and closes it. s: how weights are packed; NULL: not. Returns m; on failure
 * frees it and returns NULL. */
static void *read_weights(void *m, tn_safetensors *f, const char *path, const tn_hf_files *files, const tn_hf_source *s)
{
    const tn_load_args args = {.path = path,
                               .file = f,
                               .rename = files->rules,
                               .renames = files->renames,
                               .packed = s && s->packed,
                               .pack = s ? s->pack : NULL};
    if (m) tn_load_run(m, args);
    tn_safetensors_close(f);
    if (tn_error() != TN_OK) return tn_module_free(m), NULL;
    tn_module_train(m, false);
    return m;
}

bool tn_hf_weights_open(tn_hf_weights *w, const tn_hf_source *s, int64_t want, int64_t head)
{
    const char *const who = "tn_hf_weights_open";
    if (!tn__not_null(who, "the weights", w) || !tn__not_null(who, "the source", s)) return false;
    *w = (tn_hf_weights){.source = s, .head = head};
    if (!head || tn__pruned_check(s)) w->file = tn__weights_file(s->path, w->path);
    w->blank = tn__blank_begin();
    return w->file && tn__has_elements(w, want);
}

void *tn_hf_weights_load(tn_hf_weights *w, void *m, const tn_hf_files *files)
{
    const char *const who = "tn_hf_weights_load";
    if (!tn__not_null(who, "the weights", w)) return tn_module_free(m), NULL;
    tn_scope_end(w->blank);
    if (!tn__not_null(who, "the table", files)) return tn_safetensors_close(w->file), tn_module_free(m), NULL;
    if (m && w->head) tn__pruned_apply(w->source, m);
    const tn_scope blank = tn__blank_begin();
    m = read_weights(m, w->file, w->path, files, w->source);
    tn_scope_end(blank);
    return m;
}

void *tn_hf_weights_read(void *m, const char *dir, const tn_hf_files *files)
{
    char path[1024];
    if (!tn__not_null("tn_hf_weights_read", "the table of files", files)) return tn_module_free(m), NULL;
    return read_weights(m, tn__weights_file(dir, path), path, files, NULL);
}
