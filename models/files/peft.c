/* peft.c — see peft.h. In the file, the adapters of layer L are base_model.model.L.lora_A.weight and …lora_B.weight;
 * a parameter P that is trained completely is base_model.model.P. */
#include "models/peft.h"
#include "models/files/hf_config.h"

#include <math.h>
#include <string.h>

#define PREFIX "base_model.model."
#define CONFIG "adapter_config.json"
#define WEIGHTS "adapter_model.safetensors"
enum { NAME = TN_PATH_BYTES + 64 };

static void name_of(char to[NAME], const char *layer, bool b)
{
    snprintf(to, NAME, PREFIX "%s.lora_%c.weight", layer, b ? 'B' : 'A');
}

/* A parameter that is no adapter, in the parts that files have. */
typedef struct {
    tn_lora_layer names;
    tn_each       each;
    tn_tensor    *tensor; /* the part, as in the file; owned by the open scope */
    int           part, parts;
    char          name[NAME];
} parameter;

static parameter parameters_of(void *m)
{
    return (parameter){.names = tn_module_lora_layers(m),
                       .each = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_BUFFER)};
}

static bool next_parameter(parameter *p)
{
    char name[TN_PATH_BYTES];
    bool transposed;
    if (!p->each.tensor || p->part + 1 >= p->parts) {
        do
            if (!tn_next(&p->each)) return false;
        while (!p->each.parameter || strstr(p->each.name, "lora.") || tn_is_packed(p->each.tensor));
        p->part = -1;
    }
    p->part++;
    if (!tn_lora_name(&p->names, p->each.name, p->part, name, &p->parts, &transposed)) return false;
    snprintf(p->name, sizeof p->name, PREFIX "%s", name);
    p->tensor = p->each.tensor;
    if (p->parts > 1) {
        const int64_t rows = tn_size(p->tensor, 0) / p->parts;
        p->tensor = tn_narrow(p->tensor, 0, p->part * rows, rows);
    }
    if (transposed && tn_ndim(p->tensor) == 2) p->tensor = tn_transpose(p->tensor, 0, 1);
    return tn_error() == TN_OK;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static void put_config(void *m, tn_json_writer *w, const tn_peft_save_args *a)
{
    const char   *task = a->task ? a->task : ((tn_module *)m)->kind->lm ? "CAUSAL_LM" : NULL;
    tn_lora_layer l = tn_module_lora_layers(m);
    bool          transposed = false;
    char          last[NAME] = "";
    while (tn_lora_next(&l) && !(l.lora && l.lora->a[l.part])) {}
    if (tn_error() != TN_OK) return;
    tn_json_open_object(w, NULL);
    if (a->base) tn_json_put_string(w, "base_model_name_or_path", a->base);
    else tn_json_put_null(w, "base_model_name_or_path");
    tn_json_put_string(w, "peft_type", "LORA");
    if (task) tn_json_put_string(w, "task_type", task);
    tn_json_put_i64(w, "r", l.lora->rank);
    tn_json_put_double(w, "lora_alpha", l.lora->scale * (double)l.lora->rank);
    tn_json_put_double(w, "lora_dropout", 0);
    tn_json_put_string(w, "bias", "none");
    tn_json_put_bool(w, "inference_mode", true);
    tn_json_open_array(w, "target_modules");
    do
        if (l.lora && l.lora->a[l.part]) {
            tn_json_put_string(w, NULL, l.name);
            transposed = transposed || l.transposed;
        }
    while (tn_lora_next(&l));
    tn_json_close(w);
    tn_json_put_bool(w, "fan_in_fan_out", transposed); /* the weights of transformers' Conv1D are [in, out] */
    tn_json_open_array(w, "modules_to_save");
    for (parameter p = parameters_of(m); next_parameter(&p);) {
        const bool head = *p.names.prefix_ && strncmp(p.each.name, p.names.prefix_, strlen(p.names.prefix_)) != 0;
        char      *end = head ? strchr(p.name + sizeof PREFIX - 1, '.') : strrchr(p.name, '.');
        if (!tn_needs_grad(p.each.tensor) || !end) continue;
        *end = 0; /* the module, of a head the whole head */
        if (strcmp(p.name, last) != 0) tn_json_put_string(w, NULL, p.name + sizeof PREFIX - 1);
        memcpy(last, p.name, sizeof last);
    }
    tn_json_close(w);
    tn_json_close(w);
}

tn_status tn_peft_save_run(void *m, const char *dir, tn_peft_save_args a)
{
    char path[1024], name[NAME];
    if (!tn_module_ready("tn_peft_save", m)) return tn_error();
    if (!tn_module_has_lora(m))
        return tn_raise(TN_ESTATE, "tn_peft_save: the module has no adapters; tn_lora adds them");
    const tn_scope         s = tn_no_grad_begin();
    tn_json_writer        *j = tn_json_writer_new(2);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    put_config(m, j, &a);
    for (tn_lora_layer l = tn_module_lora_layers(m); tn_lora_next(&l);)
        for (int b = 0; b < 2 && l.lora && l.lora->a[l.part]; b++)
            name_of(name, l.name, b), tn_safetensors_put(w, name, b ? l.lora->b[l.part] : l.lora->a[l.part]);
    for (parameter p = parameters_of(m); next_parameter(&p);)
        if (tn_needs_grad(p.each.tensor)) tn_safetensors_put(w, p.name, p.tensor);
    if (tn_error() == TN_OK && tn__path_in(dir, WEIGHTS, path, sizeof path)) (void)!tn_safetensors_save(w, path);
    (void)tn__config_save(j, dir, CONFIG); /* last: a directory without it is not taken for an adapter */
    tn_json_writer_free(j);
    tn_safetensors_writer_free(w);
    tn_scope_end(s);
    return tn_error();
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const char     *path;
    tn_safetensors *f;
    int64_t         rank;
    double          alpha;
    bool           *used; /* of each tensor of the file */
    bool            bare; /* names lack the first part: the file is of a model without a head */
} adapter;

/* Raises for PEFT's options that change results and are not supported. */
static bool check_options(const tn_json *doc, const char *path)
{
    static const char *const flags[] = {"use_dora", "lora_bias"}, *const values[] = {"alpha_pattern", "rank_pattern",
                                                                                     "target_parameters",
                                                                                     "trainable_token_indices",
                                                                                     "layer_replication"};
    if (strcmp(tn_json_string_or(tn_json_get(doc, "peft_type"), "LORA"), "LORA") != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': peft_type must be LORA; other adapters are not supported", path);
    if (strcmp(tn_json_string_or(tn_json_get(doc, "bias"), "none"), "none") != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with a bias are not supported", path);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (tn_json_bool_or(tn_json_get(doc, flags[i]), false))
            return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with %s are not supported", path, flags[i]);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (tn_json_first(tn_json_get(doc, values[i])))
            return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with %s are not supported", path, values[i]);
    return tn_error() == TN_OK;
}

static bool read_config(const char *dir, adapter *a)
{
    char path[1024];
    if (!tn__path_in(dir, CONFIG, path, sizeof path)) return false;
    const tn_json_limits limits = {.depth = 8, .bytes = 1 << 20, .values = 100000};
    tn_json             *doc = tn_json_load_within(path, limits);
    a->rank = tn_json_i64(tn_json_need(doc, "r")), a->alpha = tn_json_double(tn_json_need(doc, "lora_alpha"));
    if (tn_error() == TN_OK && check_options(doc, path) && (a->rank < 1 || a->rank > 65536 || !(a->alpha > 0)))
        tn_raise(TN_EFORMAT, "'%s': r is %lld and lora_alpha %g, but r must be from 1 to 65536 and lora_alpha positive",
                 path, (long long)a->rank, a->alpha);
    if (tn_json_bool_or(tn_json_get(doc, "use_rslora"), false)) a->alpha *= sqrt((double)a->rank);
    tn_json_free(doc);
    return tn_error() == TN_OK;
}

/* The index of A or B of a layer in the file; -1: not in it. */
static int64_t find(const adapter *a, const char *layer, bool b)
{
    char        name[NAME];
    const char *rest = a->bare ? strchr(layer, '.') : NULL;
    name_of(name, rest ? rest + 1 : layer, b);
    return tn_safetensors_find(a->f, name);
}

static bool wanted(const char *layer, void *user) { return find(user, layer, false) >= 0; }

/* Reads tensor i of the file, which must have this shape. NULL: raised. */
static tn_tensor *get(const adapter *a, int64_t i, tn_shape want)
{
    char                       x[192], y[192];
    const tn_safetensors_entry e = tn_safetensors_at(a->f, i);
    if (tn_shape_equal(e.shape, want)) return tn_safetensors_get_at(a->f, i);
    return tn_raise_null(TN_ESHAPE, "'%s': '%s' is %s, expected %s; is it an adapter of another model?", a->path,
                         e.name, tn_shape_text(e.shape, x, sizeof x), tn_shape_text(want, y, sizeof y));
}

/* Checks or, with copy, copies everything in the file. */
static void pass(void *m, const adapter *a, bool copy)
{
    for (tn_lora_layer l = tn_module_lora_layers(m); tn_lora_next(&l);) {
        for (int b = 0; b < 2; b++) {
            const int64_t at = find(a, l.name, b);
            const bool    has = l.lora && l.lora->a[l.part];
            if (at < 0 && find(a, l.name, !b) < 0 && !has) continue;
            if (at < 0 || (!has && tn_module_has_lora(m))) {
                tn_raise(TN_EFORMAT, "'%s': the layer '%s' has lora_%c in %s only", a->path, l.name, b ? 'B' : 'A',
                         at < 0 ? "the model or half of the pair" : "the file");
                return;
            }
            const tn_scope s = tn_scope_begin();
            tn_tensor     *t = get(a, at, b ? TN_SHAPE(l.out, a->rank) : TN_SHAPE(a->rank, l.in));
            a->used[at] = true;
            if (t && copy) tn_copy_from(b ? l.lora->b[l.part] : l.lora->a[l.part], t);
            if (copy) l.lora->scale = a->alpha / (double)a->rank;
            tn_scope_end(s);
        }
    }
    for (parameter p = parameters_of(m); next_parameter(&p);) {
        const int64_t at = tn_safetensors_find(a->f, p.name);
        if (at < 0) continue;
        const tn_scope s = tn_scope_begin();
        tn_tensor     *t = get(a, at, tn_shape_of(p.tensor));
        a->used[at] = true;
        if (t && copy) tn_copy_from(p.tensor, t), tn_requires_grad(p.each.tensor);
        tn_scope_end(s);
    }
}

static void check_all_used(void *m, const adapter *a)
{
    for (int64_t i = 0; tn_error() == TN_OK && i < tn_safetensors_count(a->f); i++)
        if (!a->used[i])
            tn_raise(TN_EFORMAT,
                     "'%s': '%s' fits no layer and no parameter of this %s; is it an adapter of another model?",
                     a->path, tn_safetensors_at(a->f, i).name, ((tn_module *)m)->kind->name);
}

tn_status tn_module_peft_load(void *m, const char *dir)
{
    char    path[1024];
    adapter a = {.path = path};
    if (!tn_module_ready("tn_peft_load", m) || !read_config(dir, &a)) return tn_error();
    if (!tn__path_in(dir, WEIGHTS, path, sizeof path) || !(a.f = tn_safetensors_open(path))) return tn_error();
    const size_t   count = (size_t)tn_safetensors_count(a.f);
    const bool     has = tn_module_has_lora(m);
    const tn_scope s = tn_no_grad_begin();
    bool           found = false;
    for (int bare = 0; bare < 2 && !found; bare++) {
        a.bare = bare;
        for (tn_lora_layer l = tn_module_lora_layers(m); !found && tn_lora_next(&l);)
            found = find(&a, l.name, false) >= 0;
    }
    if (count && (a.used = tn_mem_get(count * sizeof *a.used))) pass(m, &a, false), check_all_used(m, &a);
    if (tn_error() == TN_OK && !has)
        tn_lora_run((tn_lora_args){.module = m, .rank = a.rank, .alpha = a.alpha, .wanted = wanted, .user = &a});
    if (tn_error() == TN_OK && a.used) pass(m, &a, true);
    tn_scope_end(s);
    tn_mem_put(a.used, count * sizeof *a.used);
    tn_safetensors_close(a.f);
    return tn_error();
}
