/* adapters.c — low-rank adapters of a whole module: which layers get them, merging, and their names in files. */
#include "nn/attention/checks.h"
#include "nn/base/nn_private.h"
#include "nn/base/state_private.h"
#include "nn/layers/fuse.h"
#include "nn/layers/lora.h"
#include "nn/look.h"

/* ---- the layers -------------------------------------------------------------------------------------------------- */

/* Where a layer has its adapters; NULL: it is not a layer that may have some. *weight and *name: the adapted weight. */
static tn_lora_pair **place_of(tn_module *m, tn_tensor **weight, const char **name)
{
    if (tn__is_linear(m)) {
        tn_linear *l = (tn_linear *)(void *)m;
        if (!l->weight) return NULL;
        return *weight = l->weight, *name = "weight", &l->lora;
    }
    tn_mha *a = tn_mha_of(m);
    if (!a || !a->in_proj_weight) return NULL;
    return *weight = a->in_proj_weight, *name = "in_proj_weight", &a->lora;
}

/* The rules are those of the root or, if only one module below has rules, of that module, whose path is then left out
 * of names. */
tn_lora_layer tn_module_lora_layers(void *m)
{
    tn_lora_layer l = {.part = 0};
    int           found = 0;
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) {
        if (!e.module->kind->names) continue;
        if (found++) continue;
        l.renames_ = e.module->kind->names(e.module, l.rules_, TN_LORA_RULES);
        memcpy(l.prefix_, e.name, TN_PATH_BYTES);
        if (!*l.prefix_) break;
    }
    if (found > 1 && *l.prefix_) l.renames_ = 0, l.prefix_[0] = 0;
    l.each_ = tn_module_each(m, TN_EACH_MODULE);
    return l;
}

/* The path within the module that has the rules; NULL: it is not in it. */
static const char *within_rules(const tn_lora_layer *l, const char *path)
{
    const size_t n = strlen(l->prefix_);
    if (!n) return path;
    return !strncmp(path, l->prefix_, n) && path[n] == '.' ? path + n + 1 : NULL;
}

static bool name_of(const tn_lora_layer *l, const char *path, int part, char name[TN_PATH_BYTES], int *parts,
                    bool *transposed, const tn_rename **joined)
{
    const char *within = within_rules(l, path);
    return tn__saved_name(l->rules_, within ? l->renames_ : 0, within ? within : path, part, name, parts, transposed,
                          joined);
}

bool tn_lora_name(const tn_lora_layer *l, const char *path, int part, char name[TN_PATH_BYTES], int *parts,
                  bool *transposed, int *pieces)
{
    const tn_rename *joined;
    if (!l || !path || !name || !parts || !transposed || !pieces)
        return tn_raise_false(TN_EINVAL, "tn_lora_name: a pointer is NULL");
    if (!name_of(l, path, part, name, parts, transposed, &joined)) return false;
    *pieces = joined ? joined->pieces : 0;
    return true;
}

tn_module *tn_lora_piece(const tn_lora_layer *l, int piece)
{
    char path[TN_PATH_BYTES + 32];
    if (!tn__not_null("tn_lora_piece", "the layer", l ? l->layer : NULL)) return NULL;
    snprintf(path, sizeof path, "%s.weight", l->path);
    const char *within = within_rules(l, path);
    tn_module  *root = l->each_.level_[0].m, *m = *l->prefix_ ? tn_module_find(root, l->prefix_) : root;
    if (m && within) m = tn__joined_piece(m, l->rules_, l->renames_, within, piece);
    if (m && within && tn__is_linear(m)) return m;
    return tn_raise_null(TN_EUNSUPPORTED, "tn_lora_piece: '%s' has no linear layer as piece %d of %d in files", l->name,
                         piece, l->pieces);
}

bool tn_lora_next(tn_lora_layer *l)
{
    const char      *name = "";
    const tn_rename *joined;
    tn_lora_pair   **at = NULL;
    if (!l || tn_error() != TN_OK) return false;
    if (l->layer && l->part + 1 < l->parts) {
        l->part++, at = place_of(l->layer, &l->weight, &name);
    } else {
        while (!at && tn_next(&l->each_)) at = place_of(l->each_.module, &l->weight, &name);
        if (!at) return false;
        l->layer = l->each_.module, l->part = 0;
        memcpy(l->path, l->each_.name, TN_PATH_BYTES);
    }
    char full[TN_PATH_BYTES + 32];
    snprintf(full, sizeof full, "%s%s%s", l->path, *l->path ? "." : "", name);
    if (!name_of(l, full, l->part, l->name, &l->parts, &l->transposed, &joined)) return false;
    l->piece = joined ? joined->piece : 0, l->pieces = joined ? joined->pieces : 0;
    l->groups = joined ? joined->groups : 0;
    char *end = strstr(l->name, ".weight");
    if (end && !end[7]) *end = 0;
    const tn_shape s = tn_weight_shape(l->weight);
    l->lora = *at, l->out = s.d[0] / l->parts, l->in = s.d[1];
    return true;
}

bool tn_module_has_lora(void *m)
{
    tn_lora_pair **at;
    tn_tensor     *w;
    const char    *name;
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);)
        if ((at = place_of(e.module, &w, &name)) && *at) return true;
    return false;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The next word of a list, *at; its length, 0: no more. */
static size_t next_word(const char **at)
{
    *at += strspn(*at, " ,");
    return strcspn(*at, " ,");
}

/* True if the word is some whole parts of the path: "layers.1" is in "model.layers.1.gate", not in "layers.10". */
static bool is_in(const char *word, size_t n, const char *path)
{
    for (const char *p = path;; p++) {
        if (!strncmp(p, word, n) && (p[n] == '.' || !p[n])) return true;
        if (!(p = strchr(p, '.'))) return false;
    }
}

static bool listed(const char *list, const char *path)
{
    size_t n;
    for (; list && (n = next_word(&list)); list += n)
        if (is_in(list, n, path)) return true;
    return false;
}

static bool adapted(const tn_lora_args *a, const tn_lora_layer *l)
{
    if (listed(a->trained, l->path) || listed(a->trained, l->name)) return false;
    if (a->wanted) return a->wanted(l->name, a->user);
    return !a->names || listed(a->names, l->path) || listed(a->names, l->name);
}

/* Raises if a word of .names fits no layer, or one of .trained no parameter. */
static bool all_fit(const tn_lora_args *a)
{
    tn_lora_layer first = tn_lora_layers((tn_module *)a->module);
    const bool    any = tn_lora_next(&first);
    size_t        n;
    for (const char *w = a->names; w && (n = next_word(&w)); w += n) {
        bool fits = false;
        for (tn_lora_layer l = tn_lora_layers((tn_module *)a->module); !fits && tn_lora_next(&l);)
            fits = is_in(w, n, l.path) || is_in(w, n, l.name);
        if (!fits && tn_error() == TN_OK)
            return tn_raise_false(
                TN_EINVAL,
                "tn_lora: .names has '%.*s', which is in the name of no linear layer; the first layer "
                "is '%s'",
                (int)n, w, any ? first.name : "missing");
    }
    for (const char *w = a->trained; w && (n = next_word(&w)); w += n) {
        bool fits = false;
        for (tn_each p = tn_module_each(a->module, TN_EACH_PARAMETER); !fits && tn_next(&p);)
            fits = is_in(w, n, p.name);
        if (!fits)
            return tn_raise_false(TN_EINVAL, "tn_lora: .trained has '%.*s', which is in the name of no parameter",
                                  (int)n, w);
    }
    return tn_error() == TN_OK;
}

/* ---- adding and merging ------------------------------------------------------------------------------------------ */

static bool may_adapt(const tn_lora_args *a)
{
    static const char *const who = "tn_lora";
    if (!tn_module_ready(who, a->module) || !tn__within(who, "rank", a->rank, 1, 65536)) return false;
    if (!(a->alpha >= 0 && a->alpha <= 1e6))
        return tn_raise_false(TN_EINVAL, "%s: .alpha is %g, but must be from 0 to 1000000; 0 is 2 · rank", who,
                              a->alpha);
    return TN__NO_MISTAKE(who, TN__IF(a->names && a->wanted, TN_EINVAL, "set .names or .wanted, not both"),
                          TN__IF(tn_module_has_lora(a->module), TN_ESTATE,
                                 "the module already has adapters; tn_lora_merge merges them")) &&
           all_fit(a);
}

static void remove_all(void *m)
{
    tn_lora_pair **at;
    tn_tensor     *w;
    const char    *name;
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);)
        if ((at = place_of(e.module, &w, &name)) && *at) *at = NULL, tn__remove_child(e.module, "lora");
}

/* Adapters of l's layer, if a part of it is wanted: *wanted has a bit for each. */
static void adapt(const tn_lora_args *a, const tn_lora_layer *l, unsigned wanted)
{
    const char    *name;
    tn_tensor     *w = NULL;
    tn_lora_pair **at = place_of(l->layer, &w, &name);
    const double   alpha = a->alpha > 0 ? a->alpha : 2 * (double)a->rank;
    const tn_dtype dt = tn_weight_dtype(w) == TN_F64 ? TN_F64 : TN_F32;
    if (wanted)
        *at = tn_child(l->layer, "lora",
                       tn__lora_new(tn_weight_shape(w), l->parts, wanted, a->rank, alpha / (double)a->rank, dt));
}

tn_status tn_lora_run(tn_lora_args a)
{
    unsigned wanted = 0;
    int64_t  n = 0;
    if (!may_adapt(&a)) return tn_error();
    for (tn_lora_layer l = tn_lora_layers((tn_module *)a.module); tn_lora_next(&l);) {
        if (l.parts > TN_LORA_PARTS)
            tn_raise(TN_EUNSUPPORTED, "tn_lora: '%s' is one of %d parts, more than %d", l.name, l.parts, TN_LORA_PARTS);
        wanted = (l.part ? wanted : 0) | (unsigned)adapted(&a, &l) << l.part % TN_LORA_PARTS;
        n += adapted(&a, &l);
        if (l.part == l.parts - 1) adapt(&a, &l, wanted);
    }
    if (!n && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_lora: the module has no linear layer to adapt");
    if (tn_error() != TN_OK) return remove_all(a.module), tn_error();
    tn_module_freeze(a.module, true);
    for (tn_each p = tn_module_each(a.module, TN_EACH_PARAMETER); tn_next(&p);)
        if (tn__is_lora(p.module) || listed(a.trained, p.name)) tn_requires_grad(p.tensor);
    return tn_error();
}

/* Adds one weight's adapters to it, and removes them. */
static void merge(tn_module *layer, tn_lora_pair **at, tn_tensor *w)
{
    const tn_lora_pair *l = *at;
    const tn_scope      s = tn_no_grad_begin(), wide = tn_autocast_begin(false);
    tn_tensor          *sum = tn_clone(w);
    for (int i = 0; i < l->parts && tn_error() == TN_OK; i++) {
        if (!l->a[i]) continue;
        tn_tensor *product = tn_mul_scalar(tn_matmul(l->b[i], l->a[i]), l->scale);
        tn_add_(tn_narrow(sum, 0, i * l->rows, l->rows), tn_to(product, tn_dtype_of(w)));
    }
    if (tn_error() == TN_OK && tn_copy_from(w, sum) == TN_OK) *at = NULL, tn__remove_child(layer, "lora");
    tn_scope_end(wide);
    tn_scope_end(s);
}

/* Raises if the layer at e shares its weight with another module: merging would change that one, too. */
static void check_tied(void *m, const tn_each *e, const tn_tensor *w)
{
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_NAME); tn_next(&p);)
        if (p.tensor == w && p.module != e->module) {
            tn_raise(TN_EUNSUPPORTED,
                     "tn_lora_merge: the weight of '%s' is tied: it is also '%s', which merging would change; keep the "
                     "adapters, or give the layer its own weight",
                     e->name, p.name);
            return;
        }
}

tn_status tn_module_lora_merge(void *m)
{
    tn_lora_pair **at;
    tn_tensor     *w;
    const char    *name;
    if (!tn_module_ready("tn_lora_merge", m)) return tn_error();
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);)
        if ((at = place_of(e.module, &w, &name)) && *at && tn_is_packed(w))
            return tn_raise(TN_EUNSUPPORTED,
                            "tn_lora_merge: '%s' is packed (8 bits or f16), which would round the adapters away; save "
                            "them (tn_peft_save), and load and merge them in the model before it is packed",
                            e.name);
        else if (at && *at) check_tied(m, &e, w);
    if (tn_error() != TN_OK) return tn_error();
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_error() == TN_OK && tn_next(&e);)
        if ((at = place_of(e.module, &w, &name)) && *at) merge(e.module, at, w);
    if (tn_error() == TN_OK) tn_module_freeze(m, false);
    return tn_error();
}
