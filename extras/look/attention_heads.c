/* attention_heads.c — importance, masking and pruning of attention heads.
 *
 * A gate ξ_h = 1 on the output of head h has the derivative ∂L/∂ξ_h = Att_h(x)ᵀ ∂L/∂Att_h(x): importance is the
 * sensitivity of the loss to the head. It is computed for each sequence, and the absolute values are averaged. */
#include "extras/look.h"

#include <math.h>

typedef struct {
    tn_heads *all;
    tn_mha   *of;
    int64_t   first;                                        /* index of its first unit */
    char      path[TN_PATH_BYTES], part[TN_PATH_BYTES + 8]; /* part: path of its heads' output */
} attention;

typedef struct {
    int64_t attention, at; /* at: current index of its first query head in the attention */
    double  sum;
    bool    masked;
} unit;

struct tn_heads {
    void      *model;
    tn_look   *gates, *grads;
    attention *attention;
    unit      *unit;
    int64_t    attentions, units, texts;
};

/* ---- create and free --------------------------------------------------------------------------------------------- */

static int64_t query_heads(const tn_mha *m) { return m->kv_heads ? m->heads / m->kv_heads : 1; }

static tn_tensor *mask_output(const char *path, tn_tensor *t, void *user);

/* Counts the attentions and heads of the model; if h is not NULL, also lists them in it. */
static void list_heads(void *model, tn_heads *h, int64_t *attentions, int64_t *units)
{
    *attentions = *units = 0;
    for (tn_each e = tn_module_each(model, TN_EACH_MODULE); tn_error() == TN_OK && tn_next(&e);) {
        tn_mha *m = tn_mha_of(e.module);
        if (!m) continue;
        if (h) {
            attention *a = &h->attention[*attentions];
            a->all = h, a->of = m, a->first = *units;
            snprintf(a->path, sizeof a->path, "%s", e.name);
            snprintf(a->part, sizeof a->part, "%s%sheads", e.name, *e.name ? "." : "");
            for (int64_t k = 0; k < m->kv_heads; k++)
                h->unit[*units + k] = (unit){.attention = *attentions, .at = k * query_heads(m)};
            tn_look_request(h->gates, a->part, .change = mask_output, .user = a);
            tn_look_request(h->grads, a->part, .grad = true);
        }
        ++*attentions, *units += m->kv_heads;
    }
}

tn_heads *tn_heads_new(void *model)
{
    int64_t attentions, units;
    if (!tn_module_ready("tn_heads_new", model)) return NULL;
    list_heads(model, NULL, &attentions, &units);
    if (!attentions) return tn_raise_null(TN_EINVAL, "tn_heads_new: this model has no multi-head attention (tn_mha)");
    tn_heads *h = tn_mem_get(sizeof *h);
    if (!h) return NULL;
    h->model = model, h->attentions = attentions, h->units = units;
    h->gates = tn_look_new(), h->grads = tn_look_new();
    h->attention = tn_mem_get((size_t)attentions * sizeof *h->attention);
    h->unit = tn_mem_get((size_t)(units ? units : 1) * sizeof *h->unit);
    if (tn_error() == TN_OK) list_heads(model, h, &attentions, &units);
    if (tn_error() != TN_OK) tn_heads_free(h), h = NULL;
    return h;
}

void tn_heads_free(tn_heads *h)
{
    if (!h) return;
    tn_look_free(h->gates), tn_look_free(h->grads);
    tn_mem_put(h->attention, (size_t)h->attentions * sizeof *h->attention);
    tn_mem_put(h->unit, (size_t)(h->units ? h->units : 1) * sizeof *h->unit);
    tn_mem_put(h, sizeof *h);
}

int64_t tn_heads_count(const tn_heads *h) { return h ? h->units : 0; }

tn_head tn_heads_at(const tn_heads *h, int64_t i)
{
    if (!h || i < 0 || i >= h->units) return (tn_head){.path = NULL};
    const unit      *u = &h->unit[i];
    const attention *a = &h->attention[u->attention];
    return (tn_head){.path = a->path,
                     .of = a->of,
                     .head = a->of->left[u->at],
                     .shared = query_heads(a->of),
                     .importance = h->texts ? u->sum / (double)h->texts : 0,
                     .masked = u->masked};
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* The output of the heads, [B, T, heads, D], with 0 for masked ones; NULL: none is masked. */
static tn_tensor *mask_output(const char *path, tn_tensor *t, void *user)
{
    const attention *a = user;
    const tn_heads  *h = a->all;
    const int64_t    of = query_heads(a->of);
    bool             any = false;
    (void)path;
    tn_tensor *gate = tn_ones_of(tn_dtype_of(t), TN_SHAPE(a->of->heads, 1));
    for (int64_t k = 0; k < a->of->kv_heads; k++) {
        if (!h->unit[a->first + k].masked) continue;
        any = true;
        for (int64_t i = 0; i < of; i++) tn_set(gate, k * of + i, 0);
    }
    return any ? tn_mul(t, gate) : NULL;
}

void tn_heads_mask(tn_heads *h, int64_t i, bool masked)
{
    if (tn_blocked()) return;
    if (!h || i < 0 || i >= h->units)
        tn_raise(TN_EINDEX, "tn_heads_mask: head %lld does not exist; the model has %lld", (long long)i,
                 (long long)tn_heads_count(h));
    else h->unit[i].masked = masked;
}

tn_scope tn_heads_begin(tn_heads *h) { return tn_look_begin(h ? h->gates : NULL); }

/* ---- importance -------------------------------------------------------------------------------------------------- */

/* Adds |Σ_td head · gradient| · factor for each sequence b and head. */
static void add_importance(tn_heads *h, const attention *a, double factor)
{
    tn_tensor *y = tn_look_at(h->grads, a->part), *g = y ? tn_look_grad_at(h->grads, a->part) : NULL;
    if (!g) return;
    const int64_t of = query_heads(a->of);
    tn_tensor    *dot = tn_sum(tn_to(tn_mul(tn_detach(y), g), TN_F64), .dims = TN_DIMS(1, 3)); /* [B, heads] */
    if (!dot) return;
    for (int64_t b = 0; b < tn_size(dot, 0); b++)
        for (int64_t k = 0; k < a->of->kv_heads; k++) {
            double sum = 0;
            for (int64_t i = 0; i < of; i++) sum += tn_get(dot, b * a->of->heads + k * of + i);
            h->unit[a->first + k].sum += fabs(sum) * factor;
        }
}

tn_status tn_heads_add(tn_heads *h, tn_look_loss loss, void *user)
{
    if (tn_blocked()) return tn_error();
    if (!h || !loss) return tn_raise(TN_EINVAL, "tn_heads_add: the %s is NULL", h ? "loss" : "list of heads");
    int64_t texts = 0;
    tn_look_clear(h->grads);
    const tn_scope outer = tn_heads_begin(h), s = tn_look_begin(h->grads);
    tn_tensor     *l = tn_scope_return(s, loss(h->model, user)); /* the backward pass is not observed */
    if (!l && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_heads_add: the loss is NULL");
    for (int64_t i = 0; i < h->attentions && tn_error() == TN_OK; i++) {
        const tn_tensor *y = tn_look_at(h->grads, h->attention[i].part);
        if (y) texts = tn_size(y, 0);
        if (y && tn_look_times(h->grads, h->attention[i].part) > 1)
            tn_raise(
                TN_EUNSUPPORTED,
                "tn_heads_add: '%s' runs %lld times for one loss, as a shared layer does; the importance of its heads "
                "is not defined",
                h->attention[i].path, (long long)tn_look_times(h->grads, h->attention[i].part));
    }
    if (tn_error() == TN_OK && tn_look_backward(h->grads, l, NULL) == TN_OK)
        for (int64_t i = 0; i < h->attentions && tn_error() == TN_OK; i++)
            if (h->attention[i].of->heads) add_importance(h, &h->attention[i], (double)texts);
    tn_scope_end(outer);
    tn_look_clear(h->grads);
    if (tn_error() == TN_OK) h->texts += texts;
    return tn_error();
}

/* ---- order and pruning ------------------------------------------------------------------------------------------- */

void tn_heads_order(const tn_heads *h, tn_prune_order way, uint64_t seed, int64_t *order)
{
    tn_generator g = {seed, 0};
    if (!h || !order) return;
    for (int64_t i = 0; i < h->units; i++) { /* insertion sort, stable */
        int64_t at = i;
        if (way == TN_RANDOM_ORDER) {
            at = tn_random_below(&g, i + 1);
            order[i] = order[at];
        } else {
            const double x = h->unit[i].sum * (way == TN_MOST_FIRST ? -1 : 1);
            for (; at > 0 && h->unit[order[at - 1]].sum * (way == TN_MOST_FIRST ? -1 : 1) > x; at--)
                order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

tn_status tn_heads_prune(tn_heads *h, int64_t n, const int64_t *heads)
{
    if (tn_blocked()) return tn_error();
    if (!h || (n > 0 && !heads)) return tn_raise(TN_EINVAL, "tn_heads_prune: the list of heads is NULL");
    for (int64_t i = 0; i < n; i++)
        if (heads[i] < 0 || heads[i] >= h->units)
            return tn_raise(TN_EINDEX, "tn_heads_prune: head %lld does not exist; the model has %lld",
                            (long long)heads[i], (long long)h->units);
    for (int64_t k = 0; k < h->attentions && tn_error() == TN_OK; k++) {
        const attention *a = &h->attention[k];
        const int64_t    of = query_heads(a->of);
        int64_t          count = 0, *gone = tn_mem_get((size_t)(a->of->heads + 1) * sizeof *gone);
        const size_t     bytes = (size_t)(a->of->heads + 1) * sizeof *gone;
        for (int64_t j = 0; gone && j < a->of->kv_heads; j++) {
            bool named = false;
            for (int64_t i = 0; i < n; i++) named = named || heads[i] == a->first + j;
            for (int64_t i = 0; named && i < of; i++) gone[count++] = a->of->left[j * of + i];
        }
        if (count) tn_mha_prune(a->of, count, gone);
        tn_mem_put(gone, bytes);
    }
    return tn_error();
}
