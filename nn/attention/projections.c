/* projections.c — queries, keys and values of multi-head attention. Heads are [B, heads, n, D], views without copies.
 * If query, key and value are one tensor, one product computes all three, and their gradient is one tensor, too. */
#include "autograd/rooms/q8.h"
#include "nn/attention/mha.h"
#include "nn/layers/lora.h"

/* y [B, n, count · heads · D] as [B, n, count, heads, D]. */
static tn_tensor *apart(const tn_mha *m, tn_tensor *y, int64_t batch, int64_t n, int count, int64_t heads)
{
    return tn_view(y, TN_SHAPE(batch, n, count, heads, m->head_dim));
}
void tn__mha_split(tn_tensor *y, int count, tn_tensor **heads)
{
    for (int i = 0; i < count; i++) heads[i] = tn_permute(tn_select(y, 2, i), TN_DIMS(0, 2, 1, 3));
}

/* Queries (of: 0), keys (1) or values (2) of a projection y, after their norm. */
static tn_tensor *projected_apart(const tn_mha *m, tn_tensor *y, int of, int64_t batch, int64_t n)
{
    tn_rms_norm *norm = of == 0 ? m->q_norm : of == 1 ? m->k_norm : NULL;
    const bool   whole = norm && norm->shape.d[0] != m->head_dim;
    if (whole) y = tn_call(norm, y);
    y = apart(m, y, batch, n, 1, of ? m->kv_heads : m->heads);
    return norm && !whole ? tn_call(norm, y) : y;
}

/* Projections `from` … `from + count - 1` (0: query, 1: key, 2: value) of one x. */
static tn_tensor *project(const tn_mha *m, tn_tensor *x, int from, int count, int64_t batch, int64_t n)
{
    const int64_t    e = m->heads * m->head_dim; /* rows of each projection */
    tn_linear *const module[3] = {m->q_proj, m->k_proj, m->v_proj};
    tn_tensor *w, *b = m->in_proj_bias, *const each[3] = {m->q_proj_weight, m->k_proj_weight, m->v_proj_weight};
    if (m->q_proj) return projected_apart(m, tn_call(module[from], x), from, batch, n);
    if (count < 3 && tn_is_packed(m->in_proj_weight)) { /* packed weights have no views */
        tn_tensor *y = tn__linear_rows(x, m->in_proj_weight, b, from * e, count * e);
        return apart(m, tn__lora_added(m->lora, x, y, from * e, count * e), batch, n, count, m->heads);
    }
    if (!m->in_proj_weight) w = each[from];
    else w = count == 3 ? m->in_proj_weight : tn_narrow(m->in_proj_weight, 0, from * e, count * e);
    if (b && count < 3) b = tn_narrow(b, 0, from * e, count * e);
    return apart(m, tn__lora_added(m->lora, x, tn_linear(x, w, b), from * e, count * e), batch, n, count, m->heads);
}

tn_tensor *tn__mha_heads(const tn_mha *m, tn_linear *own, tn_tensor *x, int of)
{
    tn_tensor    *heads = NULL;
    const int64_t n = tn_error() == TN_OK ? tn_size(x, 1) : 0;
    if (tn_error() == TN_OK)
        tn__mha_split(own ? apart(m, tn_call(own, x), 1, n, 1, m->heads) : project(m, x, of, 1, 1, n), 1, &heads);
    return heads;
}

tn_tensor *tn__mha_project(const tn_mha *m, const tn_mha_args *a, const tn__mha_sizes *z, bool together,
                           tn_tensor *h[3])
{
    const bool packed = m->in_proj_weight && !z->recall;
    if (packed && a->query == a->key && a->key == a->value) {
        tn_tensor *all = project(m, a->query, 0, 3, z->batch, z->queries);
        if (together) return all;
        tn__mha_split(all, 3, h);
        return NULL;
    }
    tn__mha_split(project(m, a->query, 0, 1, z->batch, z->queries), 1, h);
    if (packed && a->key == a->value) {
        tn__mha_split(project(m, a->key, 1, 2, z->batch, z->given), 2, h + 1);
    } else if (!z->recall) {
        tn__mha_split(project(m, a->key, 1, 1, z->batch, z->given), 1, h + 1);
        tn__mha_split(project(m, a->value, 2, 1, z->batch, z->given), 1, h + 2);
    }
    return NULL;
}
