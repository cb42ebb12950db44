/* prune.c — removes attention heads permanently.
 *
 * Head h has the rows h·D … (h+1)·D - 1 of each input projection and the same columns of the output projection:
 * y = Σ_h W_h head_h + b. Therefore a model without a head returns what it returned with that head's result set to 0,
 * and does not compute the head. */
#include "nn/attention/checks.h"
#include "nn/base/nn_private.h"
#include "nn/look.h"

/* The indices of the rows of a projection that remain: those of the heads (of queries or keys) for which `stays` is
 * true, in each of its `parts` parts. `of`: query heads per head of this projection. */
static tn_tensor *rows_left(const bool *keep, int64_t heads, int64_t of, int64_t d, int parts)
{
    int64_t n = 0;
    for (int64_t h = 0; h < heads; h++) n += keep[h * of];
    tn_tensor *index = tn_empty_of(TN_I64, TN_SHAPE(parts * n * d));
    int64_t   *to = tn_data_mut(index), at = 0;
    if (!to) return NULL;
    for (int p = 0; p < parts; p++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; keep[h * of] && i < d; i++) to[at++] = (p * heads + h) * d + i;
    return index;
}

enum { MOST = 9 };
typedef struct {
    tn_tensor *was[MOST], *now[MOST];
    int        n;
} change;

/* Lists the replacement of t by its rows (dim 0) or columns (dim 1) at the index. t may be NULL. */
static void cut(change *c, tn_tensor *t, int dim, tn_tensor *index)
{
    if (t && index) c->was[c->n] = t, c->now[c->n++] = tn_index_select(t, dim, index);
}
static void cut_linear(change *c, const tn_linear *m, tn_tensor *index)
{
    if (m) cut(c, m->weight, 0, index), cut(c, m->bias, 0, index);
}

/* Sets stays[i] to whether head i remains. Returns the number of heads to remove, or -1 (raised). */
static int64_t choose(const tn_mha *m, int64_t n, const int64_t *heads, bool *keep)
{
    const int64_t of = m->kv_heads ? m->heads / m->kv_heads : 1;
    int64_t       removed = 0;
    for (int64_t i = 0; i < m->heads; i++) {
        keep[i] = true;
        for (int64_t k = 0; k < n; k++) keep[i] = keep[i] && heads[k] != m->left[i];
        removed += !keep[i];
    }
    for (int64_t i = 0; i < m->heads; i++) {
        const int64_t first = i / of * of;
        if (keep[i] == keep[first]) continue;
        return tn_raise(TN_EINVAL,
                        "tn_mha_prune: heads %lld to %lld share keys and must be removed together; head %lld is in "
                        "the list, head %lld is not",
                        (long long)m->left[first], (long long)m->left[first + of - 1],
                        (long long)m->left[keep[i] ? first : i], (long long)m->left[keep[i] ? i : first]),
               -1;
    }
    return removed;
}

static bool may_be_pruned(const tn_mha *m, int64_t n, const int64_t *heads)
{
    const tn_tensor *w = m->in_proj_weight ? m->in_proj_weight : m->q_proj ? m->q_proj->weight : m->q_proj_weight;
    if (n && !tn__not_null("tn_mha_prune", "the list of heads", n < 0 ? NULL : heads)) return false;
    for (int64_t i = 0; i < n; i++)
        if (heads[i] < 0 || heads[i] >= m->made_heads)
            return tn_raise_false(TN_EINDEX, "tn_mha_prune: head %lld does not exist; heads are 0 to %lld",
                                  (long long)heads[i], (long long)m->made_heads - 1);
    const bool adapted =
        m->lora || m->out_proj->lora || (m->q_proj && (m->q_proj->lora || m->k_proj->lora || m->v_proj->lora));
    return TN__NO_MISTAKE("tn_mha_prune",
                          TN__IF(tn_is_packed(w) || tn_is_packed(m->out_proj->weight), TN_EUNSUPPORTED,
                                 "the weights are packed (8 bits or f16); prune before packing"),
                          TN__IF(m->q_norm && m->q_norm->shape.d[0] != m->head_dim, TN_EUNSUPPORTED,
                                 "TN_QK_NORM_ALL norms all heads together; heads cannot be removed"),
                          TN__IF(adapted, TN_EUNSUPPORTED, "the weights have adapters; call tn_lora_merge before"));
}

static void cut_all(const tn_mha *m, const bool *keep, change *c)
{
    const int64_t of = m->kv_heads ? m->heads / m->kv_heads : 1, d = m->head_dim;
    tn_tensor    *q = rows_left(keep, m->heads, 1, d, 1), *kv = rows_left(keep, m->kv_heads, of, d, 1);
    tn_tensor    *three = rows_left(keep, m->heads, 1, d, 3);
    cut(c, m->in_proj_weight, 0, three);
    cut(c, m->in_proj_bias, 0, three);
    cut(c, m->q_proj_weight, 0, q), cut(c, m->k_proj_weight, 0, kv), cut(c, m->v_proj_weight, 0, kv);
    if (m->q_proj) cut_linear(c, m->q_proj, q), cut_linear(c, m->k_proj, kv), cut_linear(c, m->v_proj, kv);
    cut_linear(c, m->pos_key_proj, q), cut_linear(c, m->pos_query_proj, q);
    cut(c, m->out_proj->weight, 1, q);
}

/* Applies the changes; cannot fail. */
static void apply(tn_mha *m, const bool *keep, int64_t removed, const change *c)
{
    const int64_t of = m->kv_heads ? m->heads / m->kv_heads : 1;
    int64_t       at = 0;
    for (int i = 0; i < c->n; i++) tn_zero_grad(c->was[i]), tn_adopt(c->was[i], c->now[i]);
    for (int64_t i = 0; i < m->heads; i++)
        if (keep[i]) m->left[at++] = m->left[i];
    m->heads -= removed, m->kv_heads -= removed / of;
    const int64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    m->out_proj->in = q;
    if (m->q_proj) m->q_proj->out = q, m->k_proj->out = kv, m->v_proj->out = kv;
    if (m->pos_key_proj) m->pos_key_proj->out = q;
    if (m->pos_query_proj) m->pos_query_proj->out = q;
}

tn_status tn_mha_prune(tn_mha *m, int64_t n, const int64_t *heads)
{
    if (!tn_ready(m)) return tn_error();
    if (!may_be_pruned(m, n, heads) || !m->heads) return tn_error();
    bool *keep = tn_mem_get((size_t)m->heads);
    if (!keep) return tn_error();
    const size_t   bytes = (size_t)m->heads;
    const int64_t  removed = choose(m, n, heads, keep);
    const tn_scope s = tn_no_grad_begin();
    change         c = {.n = 0};
    if (removed > 0) cut_all(m, keep, &c);
    if (removed > 0 && tn_error() == TN_OK) apply(m, keep, removed, &c);
    tn_scope_end(s);
    tn_mem_put(keep, bytes);
    return tn_error();
}
