/* mha_args.c — checks of multi-head attention: its config, the arguments of a call, the places of queries and keys. */
#include "nn/attention/mha.h"

/* ---- the config -------------------------------------------------------------------------------------------------- */

static bool scores_fit(const char *who, const tn_scores *s)
{
    if (s->scale >= 0 && s->scale - s->scale == 0 && s->cap >= 0 && s->cap - s->cap == 0 && s->window >= 0 &&
        (unsigned)s->qk_norm <= TN_QK_NORM_ALL)
        return true;
    return tn_raise_false(TN_EINVAL,
                          "%s: .scores has .scale %s, .cap %s and .window %lld, which must be positive or 0, and "
                          ".qk_norm %d, which must be a tn_qk_norm",
                          who, tn__format_number(s->scale), tn__format_number(s->cap), (long long)s->window,
                          (int)s->qk_norm);
}

bool tn__mha_complete(const char *who, tn_mha_config *c)
{
    if (c->kdim == 0) c->kdim = c->dim;
    if (c->vdim == 0) c->vdim = c->dim;
    if (!tn__at_least(who, "dim", c->dim, 1) || !tn__at_least(who, "heads", c->heads, 1) ||
        !tn__at_least(who, "kdim", c->kdim, 1) || !tn__at_least(who, "vdim", c->vdim, 1) ||
        !tn__at_least(who, "kv_heads", c->kv_heads, 0) || !tn__at_least(who, "head_dim", c->head_dim, 0) ||
        !tn__probability(who, "dropout", c->dropout) || !tn__floating(who, c->dtype))
        return false;
    return TN__NO_MISTAKE(
               who,
               TN__IF_N(!c->head_dim && c->dim % c->heads, TN_EINVAL,
                        "%lld heads do not divide width %lld; .dim must be a multiple of .heads", c->heads, c->dim),
               TN__IF_N(c->kv_heads && c->heads % c->kv_heads, TN_EINVAL,
                        ".kv_heads is %lld, but must divide .heads, which is %lld", c->kv_heads, c->heads)) &&
           scores_fit(who, &c->scores) && tn__part_fits(who, c->positions);
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

/* Checks that x is [B, n, dim]; returns B and n. */
static bool input(const char *name, char letter, const tn_tensor *x, int64_t dim, int64_t *batch, int64_t *n)
{
    if (!tn__not_null("mha", name, x)) return false;
    const tn_shape s = tn_shape_of(x);
    if (s.n != 3 || s.d[2] != dim)
        return tn__wrong_shape("mha", name, x, "[B, %c, %lld]%s", letter, (long long)dim,
                               s.n == 2 && s.d[1] == dim ? "; one sequence is a batch of 1: see tn_unsqueeze" : "");
    *batch = s.d[0], *n = s.d[1];
    return true;
}

static bool differ(const char *a, const tn_tensor *x, const char *b, const tn_tensor *y, const char *what)
{
    char xs[192], ys[192];
    return tn_raise_false(TN_ESHAPE, "mha: %s %s and %s %s differ in %s", a,
                          tn_shape_text(tn_shape_of(x), xs, sizeof xs), b, tn_shape_text(tn_shape_of(y), ys, sizeof ys),
                          what);
}

bool tn__mha_mask_fits(const tn_mha *m, const tn__mha_sizes *z, tn_tensor **attn_mask)
{
    if (!tn__mha_mask(m, z->batch, z->queries, z->keys, attn_mask)) return false;
    if (m->heads != m->made_heads && tn_ndim(*attn_mask) > 2 && tn_size(*attn_mask, 1) == m->made_heads)
        *attn_mask = tn_index_select(*attn_mask, 1, tn_from_data(TN_I64, TN_SHAPE(m->heads), m->left));
    return tn_error() == TN_OK;
}

static bool unpadded_fits(const tn_mha_args *a, const tn__mha_sizes *z)
{
    const tn_unpadded *q = a->unpadded, *k = a->keys_unpadded ? a->keys_unpadded : q;
    if (!q && !k) return true;
    const int64_t nq = q ? tn_numel(q->rows) : 0, nk = tn_numel(k->rows);
    return TN__NO_MISTAKE(
        "mha",
        TN__IF(!q || !q->rows || !k->rows, TN_EINVAL,
               ".unpadded has no rows; make it with tn_unpad, and check the error"),
        TN__IF(a->cache != NULL, TN_EINVAL, ".cache needs padded batches"),
        TN__IF_N(
            z->batch != 1 || z->queries != nq || z->keys != nk, TN_ESHAPE,
            "an unpadded query and key must be [1, N, dim] with %lld and %lld rows, as in .unpadded, but have batch "
            "size %lld and %lld and %lld rows",
            nq, nk, z->batch, z->queries, z->keys));
}

static bool options_fit(const tn_mha *m, const tn_mha_args *a)
{
    return TN__NO_MISTAKE(
        "mha", TN__IF_N(a->layer && !a->cache, TN_EINVAL, ".layer is %lld, but .cache is NULL", a->layer),
        TN__IF(a->placed && !m->positions, TN_EINVAL, ".placed needs a module created with .positions"),
        TN__IF(a->memory && !a->cache, TN_EINVAL, ".memory is set, but .cache is NULL"));
}

bool tn__mha_fits(const tn_mha *m, const tn_mha_args *a, tn__mha_sizes *z)
{
    int64_t                  batch, n;
    const tn__cached_lengths held = tn__cache_lengths(a->cache, a->layer);
    if (!options_fit(m, a) || !input("query", 'T', a->query, m->dim, &z->batch, &z->queries)) return false;
    if (a->memory && held.memory >= 0) {
        z->recall = true, z->before = held.memory;
        if (!tn__cache_memory_is(a->cache, a->layer, a->key)) return false;
    } else {
        z->before = a->memory ? 0 : held.own, z->past = a->causal ? z->before : 0;
        if (!input("key", 'S', a->key, m->kdim, &batch, &z->given)) return false;
        if (batch != z->batch) return differ("query", a->query, "key", a->key, "batch size");
        if (!input("value", 'S', a->value, m->vdim, &batch, &n)) return false;
        if (batch != z->batch || n != z->given) return differ("key", a->key, "value", a->value, "the first two dims");
    }
    z->keys = z->before + z->given;
    if (!unpadded_fits(a, z)) return false;
    if (a->key_padding_mask && !tn_shape_equal(tn_shape_of(a->key_padding_mask), TN_SHAPE(z->batch, z->keys)))
        return tn__wrong_shape("mha", "key_padding_mask", a->key_padding_mask, "[B, S] = [%lld, %lld]; true is padding",
                               (long long)z->batch, (long long)z->keys);
    return TN__NO_MISTAKE("mha",
                          TN__IF_N(m->scores.window && !a->causal && a->cache, TN_EINVAL,
                                   ".scores.window is %lld, which with .cache needs .causal", m->scores.window),
                          TN__IF_N(m->positions && (a->memory || z->given != z->queries), TN_EINVAL,
                                   ".positions need self-attention, but there are %lld queries and %lld keys",
                                   z->queries, z->given));
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

bool tn_mha_place(tn_mha *m, tn_placed *p)
{
    if (!tn_ready(m) || !tn__not_null("tn_mha_place", "p", p)) return false;
    const tn_position_ops *ops = m->positions ? m->positions->kind->positions : NULL;
    if (p->at && ops && !ops->unpadded)
        return tn_raise_false(TN_EUNSUPPORTED, "mha: %s positions need a padded batch, without .unpadded",
                              m->positions->kind->name);
    p->attention = m;
    return !ops || !ops->place || (ops->place(m->positions, p) && tn_error() == TN_OK);
}

bool tn__mha_placed(tn_mha *m, const tn_mha_args *a, const tn__mha_sizes *z, tn_placed *p)
{
    *p = a->placed ? *a->placed : (tn_placed){.at = NULL};
    p->attention = m, p->cache = a->cache;
    p->first = tn__cache_removed(a->cache) + z->before, p->queries = z->given, p->keys = z->keys;
    if (!m->positions || a->placed) return true;
    if (a->unpadded) p->at = tn__unpadded_positions(a->unpadded);
    return tn_mha_place(m, p);
}

bool tn__mha_replayable(const tn_mha *m, const tn_mha_args *a, const tn_placed *p, bool others)
{
    const tn_rotary *rotary = tn_rotary_of(m);
    if (!tn_kv_cache_at(a->cache)) return true;
    const bool plain = a->causal && !a->attn_mask && !a->key_padding_mask && !a->memory && !others &&
                       !(m->base.training && m->dropout > 0) &&
                       (!m->positions || (rotary && p->made[0] == tn__cache_angles(a->cache, tn__mha_rope(m))));
    return TN__NO_MISTAKE(
        "mha",
        TN__IF_N(tn__joined_rows(a->cache) && p->queries != 1, TN_ESHAPE,
                 "joined caches take 1 token of each row, got %lld", p->queries),
        TN__IF(!plain, TN_EUNSUPPORTED,
               "a step with joined caches, or one that is recorded with a cache, must be causal self-attention in "
               "tn_blocks, with rotary or no .positions, without masks, .weights, .placed, dropout and tn_look"));
}
