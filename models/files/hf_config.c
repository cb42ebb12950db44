/* hf_config.c — config.json as one table, read and written from the same rows; the checks that all configs share. */
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

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* "'a', 'b' and 'c'" */
static const char *listed(const char *const *choices, char *to, size_t size)
{
    size_t at = 0;
    for (int i = 0; choices[i] && at < size; i++)
        at += (size_t)snprintf(to + at, size - at, "%s'%s'", i == 0 ? "" : choices[i + 1] ? ", " : " and ", choices[i]);
    return to;
}

/* The string that is meant, as one that stays; NULL: raised. */
static const char *text_of(const tn_hf_row *r, const tn_json *v, const char *path)
{
    const char *const one[] = {r->text, NULL}, *const *choices = r->choices ? r->choices : one;
    const char       *s = v ? tn_json_string(v) : choices[0];
    char              list[400];
    if (tn_error() != TN_OK) return NULL;
    if (r->kind == TN_HF_ACTIVATION) {
        const char *name = tn__activation_name(v ? s : r->text);
        if (!name) tn_raise(TN_EUNSUPPORTED, "'%s': %s is '%s'; known are " TN__ACTIVATIONS, path, r->key, s);
        return name;
    }
    for (int i = 0; choices[i]; i++)
        if (!strcmp(s, choices[i])) return choices[i];
    const char *what = r->kind == TN_HF_TYPE ? "this reads " : "only ",
               *end = r->kind == TN_HF_TYPE ? "" : " is supported";
    tn_raise(TN_EUNSUPPORTED, "'%s': %s is '%s'; %s%s%s", path, r->key, s, r->says ? r->says : what,
             r->says ? "" : listed(choices, list, sizeof list), r->says ? "" : end);
    return NULL;
}

/* A member that must have one value, as nothing else is done here. */
static void must(const tn_hf_row *r, const tn_json *v, const char *path)
{
    const tn_json_type type = tn_json_type_of(v);
    if (r->text) {
        text_of(r, v, path);
        return;
    }
    const bool   flag = type == TN_JSON_BOOL;
    const double is = flag ? tn_json_bool(v) : tn_json_double(v);
    if (tn_error() != TN_OK || is == r->otherwise) return;
    if (r->says) tn_raise(TN_EUNSUPPORTED, "'%s': %s", path, r->says);
    else if (flag)
        tn_raise(TN_EUNSUPPORTED, "'%s': %s is %s, which is not supported", path, r->key, is != 0 ? "true" : "false");
    else tn_raise(TN_EUNSUPPORTED, "'%s': %s is %g; only %g is supported", path, r->key, is, r->otherwise);
}

static double number(const tn_hf_row *r, const tn_json *v, const char *path)
{
    const double x = !v ? r->otherwise : r->kind == TN_HF_I64 ? (double)tn_json_i64(v) : tn_json_double(v);
    if (!v || tn_error() != TN_OK || (x >= r->low && x <= r->high)) return x;
    if (r->kind == TN_HF_I64)
        tn_raise(TN_EFORMAT, "'%s': %s is %lld, but must be from %lld to %lld", path, r->key, (long long)x,
                 (long long)r->low, (long long)r->high);
    else tn_raise(TN_EFORMAT, "'%s': %s is %g, but must be from %g to %g", path, r->key, x, r->low, r->high);
    return x;
}

static void read_row(const tn_hf_row *r, const tn_json *doc, const char *path, char *config)
{
    const tn_json *v = tn_json_get(doc, r->key);
    if (v && tn_json_type_of(v) == TN_JSON_NULL) v = NULL;
    if (!v && r->needed) tn_raise(TN_EFORMAT, "'%s': %s is missing", path, r->key);
    if (tn_error() != TN_OK) return;
    char *to = config + r->at;
    switch (r->kind) {
    case TN_HF_I64: *(int64_t *)(void *)to = (int64_t)number(r, v, path); break;
    case TN_HF_REAL: *(double *)(void *)to = number(r, v, path); break;
    case TN_HF_BOOL: *(bool *)to = (v ? tn_json_bool(v) : r->otherwise != 0) != r->opposite; break;
    case TN_HF_ACTIVATION:
    case TN_HF_CHOICE: *(const char **)(void *)to = text_of(r, v, path); break;
    case TN_HF_TYPE: {
        const char *type = text_of(r, v, path);
        if (r->choices) *(const char **)(void *)to = type;
        break;
    }
    case TN_HF_MUST:
        if (v) must(r, v, path);
        break;
    case TN_HF_EMPTY:
        if (tn_json_count(v) || (v && tn_json_type_of(v) != TN_JSON_OBJECT && tn_json_type_of(v) != TN_JSON_ARRAY))
            tn_raise(TN_EUNSUPPORTED, "'%s': %s holds something, which is not supported", path, r->key);
        break;
    case TN_HF_NAME: break;
    }
}

bool tn_hf_config_read(const char *dir, const tn_hf_files *f, void *config)
{
    char path[1024];
    if (tn_error() != TN_OK || !tn__path_in(dir, "config.json", path, sizeof path)) return false;
    tn_json *doc = tn_json_load_within(path, (tn_json_limits){.depth = 32, .bytes = 1 << 20, .values = 10000});
    if (doc && tn_json_type_of(doc) != TN_JSON_OBJECT) tn_raise(TN_EFORMAT, "'%s' holds no object", path);
    for (int type = 1; type >= 0; type--) /* what it is comes first */
        for (int i = 0; i < f->count && tn_error() == TN_OK; i++)
            if ((f->rows[i].kind == TN_HF_TYPE) == type) read_row(&f->rows[i], doc, path, config);
    tn_json_free(doc);
    return tn_error() == TN_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_row(const tn_hf_row *r, tn_json_writer *w, const char *config)
{
    const char *at = config + r->at;
    const bool  own = r->kind == TN_HF_ACTIVATION || r->kind == TN_HF_CHOICE || !r->text;
    switch (r->kind) {
    case TN_HF_I64: {
        const int64_t n = *(const int64_t *)(const void *)at;
        if (!r->omitted || (double)n != r->otherwise) tn_json_put_i64(w, r->key, n);
        break;
    }
    case TN_HF_REAL: tn_json_put_double(w, r->key, *(const double *)(const void *)at); break;
    case TN_HF_BOOL: {
        const bool is = *(const bool *)at != r->opposite;
        if (!r->omitted || is != (r->otherwise != 0)) tn_json_put_bool(w, r->key, is);
        break;
    }
    case TN_HF_ACTIVATION:
    case TN_HF_CHOICE:
    case TN_HF_TYPE:
    case TN_HF_NAME: {
        const char *text = own ? *(const char *const *)(const void *)at : r->text;
        const bool  array = r->kind == TN_HF_NAME && !strcmp(r->key, "architectures");
        if (array) tn_json_open_array(w, r->key);
        tn_json_put_string(w, array ? NULL : r->key, text);
        if (array) tn_json_close(w);
        break;
    }
    case TN_HF_MUST:
        if (r->text) tn_json_put_string(w, r->key, r->text);
        else tn_json_put_bool(w, r->key, r->otherwise != 0);
        break;
    case TN_HF_EMPTY: break;
    }
}

tn_status tn_hf_write(void *m, const char *dir, const tn_hf_files *f, const void *config)
{
    char path[1024];
    if (!tn_module_ready(m)) return tn_error();
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    for (int i = 0; i < f->count; i++)
        if (!f->rows[i].silent) write_row(&f->rows[i], w, config);
    tn_json_close(w);
    if (tn_error() == TN_OK && tn__path_in(dir, "config.json", path, sizeof path) && tn_json_save(w, path) == TN_OK &&
        tn__path_in(dir, "model.safetensors", path, sizeof path))
        tn_save_run(m, (tn_save_args){.path = path, .rename = f->rules, .renames = f->renames});
    tn_json_writer_free(w);
    return tn_error();
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

tn_safetensors *tn__weights_open(const char *dir, char path[1024])
{
    struct stat st;
    if (tn_error() != TN_OK || !tn__path_in(dir, "model.safetensors.index.json", path, 1024)) return NULL;
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

void *tn__model_read(void *m, tn_safetensors *f, const char *path, const tn_hf_files *files)
{
    if (m) tn_load_run(m, (tn_load_args){.path = path, .file = f, .rename = files->rules, .renames = files->renames});
    tn_safetensors_close(f);
    if (tn_error() != TN_OK) return tn_module_free(m), NULL;
    tn_module_train(m, false);
    return m;
}
void *tn_hf_weights_read(void *m, const char *dir, const tn_hf_files *files)
{
    char path[1024];
    return tn__model_read(m, tn__weights_open(dir, path), path, files);
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

static const struct {
    const char    *name;
    tn_hf_function run;
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
tn_hf_function tn_hf_activation(const char *name)
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

bool tn__init_and_activation(const char *who, double init, const char **activation)
{
    if (!(init >= 0 && init <= 1))
        return tn_raise(TN_EINVAL, "%s: .init is %g, but must be from 0 to 1", who, init), false;
    if (!tn_hf_activation(*activation))
        return tn_raise(TN_EINVAL, "%s: there is no activation '%s'; use " TN__ACTIVATIONS, who, *activation), false;
    *activation = tn__activation_name(*activation);
    return true;
}
