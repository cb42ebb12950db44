/* hf_config.c — reading config.json, and the checks that all configs share. */
#include "models/files/hf_config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool tn__path_in(const char *dir, const char *name, char *path, size_t size)
{
    const size_t d = strlen(dir), n = strlen(name);
    if (d + n + 2 > size) return tn_raise(TN_EINVAL, "the path of '%s' is too long", name), false;
    memcpy(path, dir, d);
    path[d] = '/';
    memcpy(path + d + 1, name, n + 1);
    return true;
}

bool tn__settings_open(tn__settings *s, const char *dir)
{
    s->doc = NULL;
    if (!tn__path_in(dir, "config.json", s->path, sizeof s->path)) return false;
    s->doc = tn_json_load_within(s->path, (tn_json_limits){.depth = 32, .bytes = 1 << 20, .values = 10000});
    if (!s->doc || tn_json_type_of(s->doc) == TN_JSON_OBJECT) return s->doc != NULL;
    tn_raise(TN_EFORMAT, "'%s' holds no object", s->path);
    tn__settings_close(s);
    return false;
}
void tn__settings_close(tn__settings *s)
{
    tn_json_free(s->doc);
    s->doc = NULL;
}

/* The member, or NULL: then *missing says whether that is an error, which has been raised. */
static const tn_json *member(const tn__settings *s, const char *key, bool needed)
{
    const tn_json *v = tn_json_get(s->doc, key);
    if (v && tn_json_type_of(v) != TN_JSON_NULL) return v;
    if (needed) tn_raise(TN_EFORMAT, "'%s': %s is missing", s->path, key);
    return NULL;
}

int64_t tn__setting_i64(const tn__settings *s, const char *key, double otherwise, int64_t low, int64_t high)
{
    const tn_json *v = member(s, key, otherwise == TN__NEEDED);
    const int64_t  n = v ? tn_json_i64(v) : (int64_t)otherwise;
    if (v && tn_error() == TN_OK && (n < low || n > high))
        tn_raise(TN_EFORMAT, "'%s': %s is %lld, but must be from %lld to %lld", s->path, key, (long long)n,
                 (long long)low, (long long)high);
    return n;
}
double tn__setting_double(const tn__settings *s, const char *key, double otherwise, double low, double high)
{
    const tn_json *v = member(s, key, otherwise == TN__NEEDED);
    const double   x = v ? tn_json_double(v) : otherwise;
    if (v && tn_error() == TN_OK && !(x >= low && x <= high))
        tn_raise(TN_EFORMAT, "'%s': %s is %g, but must be from %g to %g", s->path, key, x, low, high);
    return x;
}
bool tn__setting_bool(const tn__settings *s, const char *key, bool otherwise)
{
    const tn_json *v = member(s, key, false);
    return v ? tn_json_bool(v) : otherwise;
}
const char *tn__setting_text(const tn__settings *s, const char *key, const char *otherwise)
{
    const tn_json *v = member(s, key, false);
    return v ? tn_json_string(v) : otherwise;
}

tn_safetensors *tn__weights_open(const char *dir, char path[1024])
{
    struct stat st;
    if (!tn__path_in(dir, "model.safetensors.index.json", path, 1024)) return NULL;
    const bool index = !stat(path, &st);
    path[strlen(path) - strlen(".index.json")] = 0;
    if (index && stat(path, &st)) path[strlen(path)] = '.';
    return tn_safetensors_open(path);
}

bool tn__enough(const tn_safetensors *f, const char *path, int64_t want)
{
    int64_t have = 0;
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) have += tn_shape_numel(tn_safetensors_at(f, i).shape);
    if (want <= have) return true;
    tn_raise(TN_EFORMAT, "'%s' holds %lld numbers; the model that config.json describes has at least %lld", path,
             (long long)have, (long long)want);
    return false;
}

void *tn__model_read(void *m, tn_safetensors *f, const char *path, const tn_rename *rules, int n)
{
    if (m) tn_load_run(m, (tn_load_config){.path = path, .file = f, .rename = rules, .renames = n});
    tn_safetensors_close(f);
    if (tn_error() != TN_OK) return tn_module_free(m), NULL;
    tn_module_train(m, false);
    return m;
}

tn_status tn__model_write(void *m, tn_json_writer *w, const char *dir, const tn_rename *rules, int n)
{
    char path[1024];
    if (tn_error() == TN_OK && tn__path_in(dir, "config.json", path, sizeof path) && tn_json_save(w, path) == TN_OK &&
        tn__path_in(dir, "model.safetensors", path, sizeof path))
        tn_save_run(m, (tn_save_config){.path = path, .rename = rules, .renames = n});
    tn_json_writer_free(w);
    return tn_error();
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

static const struct {
    const char    *name;
    tn__activation run;
} activations[] = {
    {"gelu", tn_gelu},           {"gelu_python", tn_gelu},
    {"gelu_new", tn_gelu_tanh},  {"gelu_pytorch_tanh", tn_gelu_tanh},
    {"gelu_fast", tn_gelu_tanh}, {"relu", tn_relu},
    {"silu", tn_silu},           {"swish", tn_silu},
    {"tanh", tn_tanh},
};
static int activation(const char *name)
{
    const int n = (int)(sizeof activations / sizeof *activations);
    for (int i = 0; name && i < n; i++)
        if (!strcmp(name, activations[i].name)) return i;
    return -1;
}
tn__activation tn__activation_of(const char *name)
{
    const int i = activation(name);
    return i < 0 ? NULL : activations[i].run;
}
const char *tn__activation_name(const char *name)
{
    const int i = activation(name);
    return i < 0 ? NULL : activations[i].name;
}

/* ---- configs in the program -------------------------------------------------------------------------------------- */

bool tn__within(const char *who, const char *what, int64_t v, int64_t low, int64_t high)
{
    if (v >= low && v <= high) return true;
    tn_raise(TN_EINVAL, "%s: .%s is %lld, but must be from %lld to %lld", who, what, (long long)v, (long long)low,
             (long long)high);
    return false;
}
bool tn__chance(const char *who, const char *what, double p)
{
    if (p >= 0 && p < 1) return true;
    tn_raise(TN_EINVAL, "%s: .%s is %g, but must be from 0 to less than 1", who, what, p);
    return false;
}
