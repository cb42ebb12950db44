/* kv_cache_joined.c — caches of one row each that a step extends together: texts of different lengths in one batch. The
 * step's products read the weights once for all rows; attention reads each row's own cache, as it does alone, so that a
 * row has the same bits with any others. */
#include "nn/attention/checks.h"
#include "nn/attention/kv_cache_private.h"
#include "nn/base/nn_private.h"

/* Whether cache i can be joined with the first; else raises. */
static bool fits(tn_kv_cache *const *each, int64_t i)
{
    static const char *const who = "tn_kv_cache_join";
    const tn_kv_cache       *c = each[i], *first = each[0];
    if (!c) return tn_raise_false(TN_EINVAL, "%s: cache %lld is NULL", who, (long long)i);
    if (!tn__not_joined(who, c)) return false;
    const tn_kv_cache_config *a = &c->c, *b = &first->c;
    const int64_t             rows = tn_kv_cache_rows(c);
    const bool                memory = c->layer[0].memory >= 0;
    const bool                same = a->layers == b->layers && a->heads == b->heads && a->head_dim == b->head_dim &&
                      a->dtype == b->dtype && a->int8 == b->int8;
    if (!TN__NO_MISTAKE(
            who,
            TN__IF_N(rows != 1 || memory, TN_ESTATE,
                     memory ? "cache %lld has %lld rows and a memory; it must have one that has read its first "
                              "tokens"
                            : "cache %lld has %lld rows; it must have one that has read its first tokens",
                     i, rows),
            TN__IF_N(!same, TN_ESHAPE, "caches 0 and %lld are of different models", i)))
        return false;
    for (int64_t k = 0; k < i; k++)
        if (each[k] == c)
            return tn_raise_false(TN_EINVAL, "%s: caches %lld and %lld are the same", who, (long long)k, (long long)i);
    return true;
}

tn_kv_cache *tn_kv_cache_join(int64_t n, tn_kv_cache *const *each)
{
    size_t of_rows, of_slots;
    if (tn__blocked() || !tn__at_least("tn_kv_cache_join", "n", n, 1) ||
        !tn__not_null("tn_kv_cache_join", "each", each))
        return NULL;
    for (int64_t i = 0; i < n; i++)
        if (!fits(each, i)) return NULL;
    if (__builtin_mul_overflow((uint64_t)n, sizeof(tn_kv_cache *) + sizeof(int64_t), &of_rows) ||
        __builtin_add_overflow(of_rows, sizeof(tn__joint), &of_rows))
        return tn_raise_null(TN_EINVAL, "tn_kv_cache_join: %lld caches, too many for any memory", (long long)n);
    of_slots = sizeof(tn_kv_cache) + (size_t)each[0]->c.layers * sizeof(tn__cache_slot); /* fits: each[0] exists */
    tn_kv_cache *c = tn_mem_get(of_slots);
    if (!c) return NULL;
    c->c = each[0]->c, c->rows = n, c->bytes = of_slots;
    for (int64_t i = 0; i < c->c.layers; i++) c->layer[i].memory = -1;
    c->joined = tn_mem_get(of_rows);
    c->replay.at = tn_take(tn_empty_of(TN_I64, TN_SHAPE(n, 1)));
    int64_t *at = c->replay.at ? tn_data_mut(c->replay.at) : NULL;
    if (c->joined) *c->joined = (tn__joint){.n = n, .bytes = of_rows};
    if (!c->joined || !at) return tn_kv_cache_free(c), NULL;
    for (int64_t i = 0; i < n; i++) {
        c->joined->each[i] = each[i];
        tn__joined_positions(c->joined)[i] = tn_kv_cache_length(each[i]);
        at[i] = each[i]->removed + tn__joined_positions(c->joined)[i];
    }
    if (tn_error() != TN_OK) tn_kv_cache_free(c), c = NULL;
    return c;
}
