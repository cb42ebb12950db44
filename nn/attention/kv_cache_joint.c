/* kv_cache_joint.c — what a cache does with the caches that tn_kv_cache_join has joined in it. */
#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"

void tn__joined_free(tn__joint *j)
{
    if (j) tn_mem_put(j, j->bytes);
}

bool tn__not_joined(const char *who, const tn_kv_cache *c)
{
    if (!c->joined) return true;
    return tn_raise_false(TN_EUNSUPPORTED,
                          "%s: these are joined caches, whose rows have different lengths; a step reads its positions "
                          "from tn_kv_cache_at",
                          who);
}

tn_kv_cache *tn__joined_row(const tn_kv_cache *c, int64_t i) { return c->joined->each[i]; }

/* Row by row, as tn_rope_angles makes them for a text alone: some depend on the text's length. */
tn_tensor *tn__joined_angles(const tn_kv_cache *c, tn_rope_config rope)
{
    const tn__joint *j = c->joined;
    const int64_t   *at = tn_data(c->replay.at);
    const tn_scope   s = tn_no_grad_begin();
    tn_tensor       *all = NULL;
    for (int64_t i = 0; at && i < j->n && tn_error() == TN_OK; i++) {
        tn_tensor *one = tn_rope_angles(rope, at[i], 1); /* [1, dim] */
        if (one && !all) all = tn_empty_of(tn_dtype_of(one), TN_SHAPE(j->n, 1, tn_size(one, -1)));
        tn_copy_from(tn_select(all, 0, i), one);
    }
    return tn_scope_return(s, tn_error() == TN_OK ? all : NULL);
}

void tn__joined_undo(tn_kv_cache *c, int64_t layer)
{
    tn__joint *j = c->joined;
    for (int64_t i = 0; i < j->n; i++) {
        int64_t *own = &j->each[i]->layer[layer].own;
        if (*own > tn__joined_positions(j)[i]) *own = tn__joined_positions(j)[i];
    }
}
