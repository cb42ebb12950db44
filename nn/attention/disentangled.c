/* disentangled.c — the position terms of disentangled attention (He et al. 2021), which are added to the scores.
 *
 *   c2p(i, j) = scale · q_i · pos_key[at(i, j)],   p2c(i, j) = scale · k_j · pos_query[at(i, j)]
 *
 * at(i, j) is the row of relative position i - j. Each term is a product with all rows, [B, heads, T, R] or
 * [B, heads, R, T], from which the scores are gathered. */
#include "nn/attention/block.h"

#include <math.h>

bool tn__disentangled_fits(const char *who, tn_mha_config *c)
{
    const tn_disentangled *t = &c->disentangled;
    const int              terms = t->c2p + t->p2c;
    const int64_t          d = c->head_dim ? c->head_dim : c->dim / c->heads;
    if (t->own_projs && !terms)
        return tn_raise_false(TN_EINVAL, "%s: .disentangled.own_projs needs .c2p, .p2c or both", who);
    if (terms && (c->rotary || c->qk_norm || c->kdim != c->dim || (c->kv_heads && c->kv_heads != c->heads)))
        return tn_raise_false(
            TN_EINVAL, "%s: .disentangled excludes .rotary, .qk_norm, .kdim, and fewer .kv_heads than .heads", who);
    if (terms && c->scale == 0) c->scale = 1 / sqrt((double)d * (1 + terms));
    return true;
}

void tn__disentangled_build(tn_mha *m, const tn_mha_config *c)
{
    const tn_linear_config every = {
        .in = c->dim, .out = m->heads * m->head_dim, .no_bias = c->no_bias, .dtype = c->dtype};
    m->c2p = c->disentangled.c2p, m->p2c = c->disentangled.p2c;
    if (!c->disentangled.own_projs) return;
    if (m->c2p) m->pos_key_proj = tn_child(m, "pos_key_proj", tn_linear_create(every));
    if (m->p2c) m->pos_query_proj = tn_child(m, "pos_query_proj", tn_linear_create(every));
}

bool tn__disentangled_args(const tn_mha *m, const tn_mha_args *a)
{
    char text[192];
    if (!m->c2p && !m->p2c)
        return (!a->distances && !a->distance_at) ||
               tn_raise_false(TN_EINVAL, "mha: .distances and .distance_at need a module created with .disentangled");
    if (!a->distances || !a->distance_at)
        return tn_raise_false(TN_EINVAL, "mha: .disentangled needs .distances and .distance_at; pass the results of "
                                         "tn_distances_forward");
    if (a->cache || a->unpadded || a->keys_unpadded)
        return tn_raise_false(TN_EUNSUPPORTED, "mha: .disentangled excludes .cache and .unpadded");
    if (tn_ndim(a->distances) != 2 || tn_size(a->distances, 1) != m->dim)
        return tn_raise_false(TN_ESHAPE, "mha: .distances must be [R, %lld], got %s", (long long)m->dim,
                              tn_shape_text(tn_shape_of(a->distances), text, sizeof text));
    return true;
}

/* The scores of a term: dim 3 or 2 of the products of heads with all rows, gathered. */
static tn_tensor *position_term(const tn_mha *m, tn_tensor *heads, tn_tensor *rows, tn_tensor *at, int dim)
{
    rows = tn_mul_scalar(rows, m->scale);
    return tn_take_along(
        dim == 3 ? tn_matmul(heads, tn_transpose(rows, 2, 3)) : tn_matmul(rows, tn_transpose(heads, 2, 3)), at, dim);
}

tn_tensor *tn__disentangled_mask(const tn_mha *m, tn_tensor *const h[2], tn_tensor *const of[2], tn_tensor *at,
                                 tn_tensor *attn_mask)
{
    char text[192];
    if (tn_error() != TN_OK) return NULL;
    const int64_t n = tn_size(h[0], 2), keys = tn_size(h[1], 2);
    if (!tn_shape_equal(tn_shape_of(at), TN_SHAPE(n, keys)))
        return tn_raise_null(TN_ESHAPE, "mha: .distance_at must be [T, S] = [%lld, %lld], got %s", (long long)n,
                             (long long)keys, tn_shape_text(tn_shape_of(at), text, sizeof text));
    at = tn_reshape(at, TN_SHAPE(1, 1, n, keys));
    tn_tensor *p2c = m->p2c ? position_term(m, h[1], of[0], at, 2) : NULL;
    tn_tensor *sum = m->c2p ? position_term(m, h[0], of[1], at, 3) : p2c;
    if (m->c2p && m->p2c) sum = tn_add(sum, p2c);
    if (!attn_mask) return sum;
    return tn_dtype_of(attn_mask) == TN_BOOL ? tn_masked_fill(sum, attn_mask, -INFINITY) : tn_add(sum, attn_mask);
}
