/* peft.c — see peft.h. In the file, the adapters of layer L are base_model.model.L.lora_A.weight and …lora_B.weight;
 * a parameter P that is trained completely is base_model.model.P.
 *
 * Where files join n weights in one matrix (Phi-3's qkv_proj), PEFT has one adapter for all. If the n adapters have the
 * same A, theirs is A and the joined B; else it has rank n r: the A one below the other, and a B whose columns are 0
 * outside of each weight's own rows and columns. Both are exact, and both are read. */
#include "extras/peft.h"
#include "extras/peft/parameter.h"
#include "extras/peft/peft_config.h"

#include <math.h>
#include <string.h>

#define WEIGHTS "adapter_model.safetensors"

static void name_of(char to[TN__PEFT_NAME], const char *layer, bool b)
{
    snprintf(to, TN__PEFT_NAME, TN__PEFT_PREFIX "%s.lora_%c.weight", layer, b ? 'B' : 'A');
}

/* ---- joined weights ---------------------------------------------------------------------------------------------- */

static tn_linear *piece_of(const tn_lora_layer *l, int k) { return (tn_linear *)(void *)tn_lora_piece(l, k); }
static bool       has_adapter(const tn_linear *x) { return x && x->lora && x->lora->a[0]; }

/* The pieces of l's joined matrix. False: raised. */
static bool pieces_of(const tn_lora_layer *l, tn_linear *to[])
{
    for (int k = 0; k < l->pieces; k++)
        if (!(to[k] = piece_of(l, k))) return false;
    return true;
}

static int64_t rows_of(const tn_linear *x) { return tn_weight_shape(x->weight).d[0]; }

/* True if a file has one A for all pieces: all have adapters, with the bits of the first A. */
static bool is_shared(const tn_lora_layer *l, tn_linear *const *x)
{
    const tn_tensor *first = has_adapter(x[0]) ? x[0]->lora->a[0] : NULL;
    for (int k = 0; k < l->pieces; k++) {
        const tn_tensor *a = has_adapter(x[k]) ? x[k]->lora->a[0] : NULL;
        if (!first || !a || memcmp(tn_data(first), tn_data(a), (size_t)tn_numel(a) * tn_dtype_size(tn_dtype_of(a))))
            return false;
    }
    return true;
}

/* The rank that l's adapters have in the file. */
static int64_t file_rank(const tn_lora_layer *l)
{
    tn_linear *x[TN_LORA_PARTS];
    if (!l->pieces || !pieces_of(l, x) || is_shared(l, x)) return l->lora->rank;
    return l->pieces * l->lora->rank;
}

/* True if l is the first of its joined weights that has adapters, or not joined. */
static bool comes_first(const tn_lora_layer *l)
{
    for (int k = 0; k < l->piece; k++)
        if (has_adapter(piece_of(l, k))) return false;
    return tn_error() == TN_OK;
}

/* A or, with b, B of l's joined matrix. */
static tn_tensor *joined(const tn_lora_layer *l, bool b)
{
    tn_linear *x[TN_LORA_PARTS];
    tn_tensor *t[TN_LORA_PARTS];
    if (!pieces_of(l, x)) return NULL;
    const int64_t  groups = l->groups > 1 ? l->groups : 1, r = l->lora->rank, n = is_shared(l, x) ? 1 : l->pieces;
    const tn_dtype dt = tn_dtype_of(l->lora->a[0]);
    if (!b && n == 1) return l->lora->a[0];
    for (int k = 0; k < l->pieces; k++) {
        const bool has = has_adapter(x[k]);
        if (!b) {
            t[k] = has ? x[k]->lora->a[0] : tn_zeros_of(dt, TN_SHAPE(r, l->in));
            continue;
        }
        tn_tensor *all = tn_zeros_of(dt, TN_SHAPE(rows_of(x[k]), n * r));
        if (has) tn_copy_from(tn_narrow(all, 1, n > 1 ? k * r : 0, r), x[k]->lora->b[0]);
        t[k] = tn_reshape(all, TN_SHAPE(groups, rows_of(x[k]) / groups, n * r));
    }
    return b ? tn_reshape(tn_cat_list(1, l->pieces, t), TN_SHAPE(-1, n * r)) : tn_cat_list(0, l->pieces, t);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static bool adapted(const tn_lora_layer *l) { return l->lora && l->lora->a[l->part]; }

/* rank_pattern or alpha_pattern: of the layers whose values in the file are not those of the first. */
static void put_pattern(void *m, tn_json_writer *w, bool rank, double otherwise)
{
    tn_json_open_object(w, rank ? "rank_pattern" : "alpha_pattern");
    for (tn_lora_layer l = tn_module_lora_layers(m); tn_lora_next(&l);) {
        if (!adapted(&l) || !comes_first(&l)) continue;
        const int64_t r = file_rank(&l);
        const double  value = rank ? (double)r : l.lora->scale * (double)r;
        if (value == otherwise) continue;
        if (rank) tn_json_put_i64(w, l.name, r);
        else tn_json_put_double(w, l.name, value);
    }
    tn_json_close(w);
}

/* Raises for a module that is to be saved completely, but has adapters, which PEFT would not load. */
static bool has_none_adapted(void *m, const char *module)
{
    const size_t n = strlen(module);
    for (tn_lora_layer l = tn_module_lora_layers(m); tn_lora_next(&l);)
        if (adapted(&l) && !strncmp(l.name, module, n) && (!l.name[n] || l.name[n] == '.'))
            return tn_raise_false(TN_EUNSUPPORTED,
                                  "tn_peft_save: '%s' has adapters, and '%s' has weights that are trained completely "
                                  "(.trained of tn_lora), which PEFT does not load together; use tn_save",
                                  l.name, module);
    return tn_error() == TN_OK;
}

/* True if the module, as "bert.classifier", is the head that PEFT reads for the task. */
static bool is_head_of(const char *task, const char *module)
{
    const char *last = strrchr(module, '.');
    last = last ? last + 1 : module;
    return strcmp(task, "QUESTION_ANS") ? !strcmp(last, "classifier") || !strcmp(last, "score")
                                        : !strcmp(last, "qa_outputs");
}
static bool has_head(const char *task)
{
    return task && (!strcmp(task, "SEQ_CLS") || !strcmp(task, "TOKEN_CLS") || !strcmp(task, "QUESTION_ANS"));
}

/* Raises if PEFT loads adapters of the task only into a model that generates texts, and m, with layers as in Hugging
 * Face's directories, does not. */
static void check_task(void *m, const tn_lora_layer *l, const char *task)
{
    const tn_class *kind = ((tn_module *)m)->kind;
    if (!task || (strcmp(task, "CAUSAL_LM") != 0 && strcmp(task, "SEQ_2_SEQ_LM") != 0)) return;
    if (kind->lm || !l->renames_ || !strcmp(kind->name, "Seq2Seq")) return;
    tn_raise(TN_EINVAL, "tn_peft_save: .task is '%s', but this model, %s, does not generate texts; omit .task", task,
             kind->name);
}

static void put_config(void *m, tn_json_writer *w, const tn_peft_save_args *a)
{
    const char   *task = a->task ? a->task : ((tn_module *)m)->kind->lm ? "CAUSAL_LM" : NULL;
    tn_lora_layer l = tn_module_lora_layers(m);
    bool          transposed = false, head_missing = has_head(task);
    char          last[TN__PEFT_NAME] = "";
    while (tn_lora_next(&l) && !adapted(&l)) {}
    check_task(m, &l, task);
    if (tn_error() != TN_OK) return;
    const double alpha = l.lora->scale * (double)l.lora->rank;
    tn_json_open_object(w, NULL);
    if (a->base) tn_json_put_string(w, "base_model_name_or_path", a->base);
    else tn_json_put_null(w, "base_model_name_or_path");
    tn_json_put_string(w, "peft_type", "LORA");
    if (task) tn_json_put_string(w, "task_type", task);
    tn_json_put_i64(w, "r", l.lora->rank);
    tn_json_put_double(w, "lora_alpha", alpha);
    put_pattern(m, w, true, (double)l.lora->rank);
    put_pattern(m, w, false, alpha);
    tn_json_put_double(w, "lora_dropout", 0);
    tn_json_put_string(w, "bias", "none");
    tn_json_put_bool(w, "inference_mode", true);
    tn_json_open_array(w, "target_modules");
    do
        if (adapted(&l) && comes_first(&l)) {
            tn_json_put_string(w, NULL, l.name);
            transposed = transposed || l.transposed;
        }
    while (tn_lora_next(&l));
    tn_json_close(w);
    tn_json_put_bool(w, "fan_in_fan_out", transposed); /* the weights of transformers' Conv1D are [in, out] */
    tn_json_open_array(w, "modules_to_save");
    for (tn__peft_parameter p = tn__peft_parameters(m); tn__peft_next(&p);) {
        const bool head = *p.names.prefix_ && strncmp(p.each.name, p.names.prefix_, strlen(p.names.prefix_)) != 0;
        char      *end = head ? strchr(p.name + sizeof TN__PEFT_PREFIX - 1, '.') : strrchr(p.name, '.');
        if (!tn_needs_grad(p.each.tensor) || !end || !tn__peft_trains(m, &p)) continue;
        *end = 0; /* the module, of a head the whole head */
        if (strcmp(p.name, last) != 0 && has_none_adapted(m, p.name + sizeof TN__PEFT_PREFIX - 1))
            tn_json_put_string(w, NULL, p.name + sizeof TN__PEFT_PREFIX - 1);
        if (head_missing && is_head_of(task, p.name + sizeof TN__PEFT_PREFIX - 1)) head_missing = false;
        memcpy(last, p.name, sizeof last);
    }
    if (head_missing)
        tn_raise(TN_EINVAL,
                 "tn_peft_save: .task is '%s', for which PEFT reads a trained head, but the model has none; omit .task",
                 task);
    tn_json_close(w);
    tn_json_close(w);
}

tn_status tn_peft_save_run(void *m, const char *dir, tn_peft_save_args a)
{
    char path[1024], name[TN__PEFT_NAME];
    if (!tn_module_ready("tn_peft_save", m)) return tn_error();
    if (!tn_module_has_lora(m))
        return tn_raise(TN_ESTATE, "tn_peft_save: the module has no adapters; tn_lora adds them");
    const tn_scope         s = tn_no_grad_begin();
    tn_json_writer        *j = tn_json_writer_new(2);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    put_config(m, j, &a);
    for (tn_lora_layer l = tn_module_lora_layers(m); tn_lora_next(&l);)
        for (int b = 0; b < 2 && adapted(&l) && comes_first(&l); b++) {
            name_of(name, l.name, b);
            tn_safetensors_put(w, name, l.pieces ? joined(&l, b) : b ? l.lora->b[l.part] : l.lora->a[l.part]);
        }
    for (tn__peft_parameter p = tn__peft_parameters(m); tn__peft_next(&p);)
        if (tn_needs_grad(p.each.tensor)) tn_safetensors_put(w, p.name, p.tensor);
    if (tn_error() == TN_OK && tn__peft_path(dir, WEIGHTS, path)) (void)!tn_safetensors_save(w, path);
    if (tn_error() == TN_OK && tn__peft_path(dir, TN__PEFT_CONFIG, path)) /* last: without it, it is no adapter */
        (void)!tn_json_save_with_sha256(j, path);
    tn_json_writer_free(j);
    tn_safetensors_writer_free(w);
    tn_scope_end(s);
    return tn_error();
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const char     *path; /* of the tensors */
    tn_safetensors *f;
    tn__peft_config config;
    bool           *used; /* of each tensor of the file */
    bool            bare; /* names lack the first part: the file is of a model without a head */
} adapter;

/* The layer's name in the adapter's model. */
static const char *name_in_file(const adapter *a, const char *layer)
{
    const char *rest = a->bare ? strchr(layer, '.') : NULL;
    return rest ? rest + 1 : layer;
}

/* The index of A or B of a layer in the file; -1: not in it. */
static int64_t find(const adapter *a, const char *layer, bool b)
{
    char name[TN__PEFT_NAME];
    name_of(name, name_in_file(a, layer), b);
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

static bool is_zero(tn_tensor *t)
{
    return tn_error() == TN_OK && tn_item(tn_amax(tn_flatten(tn_abs(t), 0, -1), .dims = TN_DIMS(0))) == 0;
}

/* Makes t, A and B of a joined matrix, those of l's piece, of rank r. False: raised, or it has none. */
static bool take_piece(const adapter *a, const tn_lora_layer *l, int64_t r, tn_tensor *t[2])
{
    tn_linear    *x[TN_LORA_PARTS] = {NULL};
    const int64_t rank = tn_size(t[0], 0), groups = l->groups > 1 ? l->groups : 1, at = l->piece * r;
    int64_t       before = 0;
    if (!pieces_of(l, x)) return false;
    for (int k = 0; k < l->piece; k++) before += x[k] ? rows_of(x[k]) : 0;
    t[1] = tn_narrow(tn_reshape(t[1], TN_SHAPE(groups, -1, rank)), 1, before / groups, l->out / groups);
    t[1] = tn_reshape(t[1], TN_SHAPE(l->out, rank));
    if (rank == r || tn_error() != TN_OK) return tn_error() == TN_OK;
    t[0] = tn_narrow(t[0], 0, at, r);
    if ((at && !is_zero(tn_narrow(t[1], 1, 0, at))) ||
        (at + r < rank && !is_zero(tn_narrow(t[1], 1, at + r, rank - at - r))))
        return tn_raise_false(
            TN_EUNSUPPORTED,
            "'%s': lora_B of '%s' has rank %lld, but is not made of one block of rank %lld for each of "
            "the %d weights that it joins",
            a->path, l->name, (long long)rank, (long long)r, l->pieces);
    t[1] = tn_narrow(t[1], 1, at, r);
    return !is_zero(t[0]) && tn_error() == TN_OK;
}

/* The rank of l's adapters in the file; 0: raised. */
static int64_t rank_in_file(const adapter *a, const tn_lora_layer *l)
{
    const tn__peft_config *c = &a->config;
    const char            *name = name_in_file(a, l->name);
    const double           rank = tn__peft_pattern(c, "rank_pattern", name, (double)c->rank);
    const double           alpha = tn__peft_pattern(c, "alpha_pattern", name, c->alpha);
    const double           usual = c->alpha / (double)c->rank;
    const bool             fits = rank == (double)c->rank || rank == (double)(l->pieces * c->rank);
    if (tn_error() != TN_OK) return 0;
    if (fits && fabs(alpha / rank - usual) <= 1e-12 * usual) return (int64_t)rank;
    tn_raise(
        TN_EUNSUPPORTED,
        "'%s': by rank_pattern and alpha_pattern the adapters of '%s' have rank %g and alpha %g, and the others %lld "
        "and %g; only a multiple of both is supported, for weights that files join",
        c->path, l->name, rank, alpha, (long long)c->rank, c->alpha);
    return 0;
}

/* The rows of the matrix in the file. */
static int64_t rows_in_file(const tn_lora_layer *l)
{
    tn_linear *x[TN_LORA_PARTS];
    int64_t    n = 0;
    if (!l->pieces) return l->out;
    for (int k = 0; k < l->pieces && pieces_of(l, x); k++) n += rows_of(x[k]);
    return n;
}

/* True if PEFT loads the adapters of l, which are in the file; else raises. */
static bool is_loaded(const adapter *a, const tn_lora_layer *l)
{
    const char *by = tn__peft_excluded_by(&a->config, name_in_file(a, l->name));
    if (!by) return tn_error() == TN_OK;
    return tn_raise_false(TN_EFORMAT,
                          "'%s': %s excludes '%s', which has adapters in the file: PEFT would ignore them; correct %s, "
                          "or remove them",
                          a->config.path, by, l->name, by);
}

/* Raises for a layer without adapters in the file that PEFT adapts: with random values, or in place of the weight in
 * the file. */
static void check_unused(const adapter *a, const tn_lora_layer *l)
{
    char        name[TN__PEFT_NAME];
    const char *layer = name_in_file(a, l->name);
    if (tn__peft_excluded_by(&a->config, layer) || tn_error() != TN_OK) return;
    snprintf(name, sizeof name, TN__PEFT_PREFIX "%s.weight", layer);
    if (tn_safetensors_find(a->f, name) >= 0)
        tn_raise(TN_EFORMAT,
                 "'%s': target_modules includes '%s', which has a weight, but no adapters in the file: PEFT would "
                 "ignore the weight; correct target_modules or modules_to_save",
                 a->config.path, l->name);
    else if (a->config.random)
        tn_raise(TN_EUNSUPPORTED,
                 "'%s': '%s' is adapted, but not in the file, and init_lora_weights is false: PEFT then takes "
                 "random values; set it to true for none",
                 a->config.path, l->name);
}

/* Checks or, with copy, copies the adapters of l. */
static void pass_layer(const tn_lora_layer *l, const adapter *a, bool any, bool copy)
{
    const int64_t at[2] = {find(a, l->name, false), find(a, l->name, true)};
    const bool    has = adapted(l);
    if (at[0] < 0 && at[1] < 0 && !has) {
        check_unused(a, l);
        return;
    }
    const int missing = at[0] < 0 ? 0 : 1;
    if (at[missing] < 0 || (!has && any && !l->pieces)) {
        tn_raise(TN_EFORMAT, "'%s': the layer '%s' has lora_%c in %s only", a->path, l->name, "AB"[missing],
                 at[missing] < 0 ? "the model or half of the pair" : "the file");
        return;
    }
    const int64_t rank = is_loaded(a, l) ? rank_in_file(a, l) : 0;
    if (!rank) return;
    tn_tensor *t[2] = {get(a, at[0], TN_SHAPE(rank, l->in)), get(a, at[1], TN_SHAPE(rows_in_file(l), rank))};
    a->used[at[0]] = a->used[at[1]] = true;
    const bool here = t[0] && t[1] && (!l->pieces || take_piece(a, l, a->config.rank, t));
    if (here && any && !has)
        tn_raise(TN_EFORMAT, "'%s': piece %d of '%s' has adapters in the file only", a->path, l->piece, l->name);
    if (tn_error() != TN_OK || !has) return;
    const int64_t had = tn_size(l->lora->a[l->part], 0), found = tn_size(t[0], 0);
    if (had != found) /* a copy of rank 1 would be broadcast */
        tn_raise(TN_ESHAPE,
                 "'%s': the adapters of '%s' have rank %lld, those of the model %lld; load them into a model without "
                 "adapters",
                 a->path, l->name, (long long)found, (long long)had);
    if (!copy || had != found) return;
    for (int b = 0; b < 2; b++) tn_copy_from(b ? l->lora->b[l->part] : l->lora->a[l->part], t[b]);
    l->lora->scale = a->config.alpha / (double)a->config.rank;
}

/* Raises for a weight of a layer that has adapters in the file. */
static bool is_alone(const adapter *a, const tn__peft_parameter *p)
{
    char layer[TN__PEFT_NAME];
    snprintf(layer, sizeof layer, "%s", p->name + sizeof TN__PEFT_PREFIX - 1);
    char *end = strrchr(layer, '.');
    if (end) *end = 0;
    if (!end || find(a, layer, false) < 0) return true;
    return tn_raise_false(TN_EFORMAT, "'%s': '%s' has adapters and other weights; PEFT would ignore these", a->path,
                          layer);
}

/* Checks or, with copy, copies everything in the file. */
static void pass(void *m, const adapter *a, bool copy)
{
    const bool any = tn_module_has_lora(m);
    for (tn_lora_layer l = tn_module_lora_layers(m); tn_lora_next(&l);) {
        const tn_scope s = tn_scope_begin();
        pass_layer(&l, a, any, copy);
        tn_scope_end(s);
    }
    for (tn__peft_parameter p = tn__peft_parameters(m); tn__peft_next(&p);) {
        const int64_t at = tn_safetensors_find(a->f, p.name);
        if (at < 0 || !tn__peft_trains(m, &p) || !is_alone(a, &p)) continue;
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
    if (!tn_module_ready("tn_peft_load", m)) return tn_error();
    if (tn__peft_config_read(dir, &a.config) && tn__peft_path(dir, WEIGHTS, path)) a.f = tn_safetensors_open(path);
    if (!a.f) return tn_json_free(a.config.doc), tn_error();
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
        tn_lora_run(
            (tn_lora_args){.module = m, .rank = a.config.rank, .alpha = a.config.alpha, .wanted = wanted, .user = &a});
    if (tn_error() == TN_OK && a.used) pass(m, &a, true);
    tn_scope_end(s);
    tn_mem_put(a.used, count * sizeof *a.used);
    tn_safetensors_close(a.f);
    tn_json_free(a.config.doc);
    return tn_error();
}
