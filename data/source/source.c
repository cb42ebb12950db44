/* source.c — fields of a batch by name, and the rows of a batch that belong to a shard. */
#include "data/source/source_private.h"

#include <stdio.h>

/* ---- fields ------------------------------------------------------------------------------------------------------ */

tn_tensor *tn_batch_find(const tn_batch *b, const char *name)
{
    if (!b || !name) return NULL;
    if (!strcmp(name, "x")) return b->x;
    if (!strcmp(name, "y")) return b->y;
    for (int i = 0; i < TN_BATCH_FIELDS; i++)
        if (b->fields[i].name && !strcmp(b->fields[i].name, name)) return b->fields[i].tensor;
    return NULL;
}

tn_tensor *tn_batch_get(const tn_batch *b, const char *name)
{
    if (tn__blocked()) return NULL;
    tn_tensor *t = tn_batch_find(b, name);
    char       text[400] = "";
    size_t     used = 0;
    if (t) return t;
    if (!b || !name) return tn_raise_null(TN_EINVAL, "tn_batch_get: %s is NULL", b ? "name" : "b");
    for (int i = -2; i < TN_BATCH_FIELDS; i++) {
        const char *have = i == -2 ? b->x ? "x" : NULL : i == -1 ? b->y ? "y" : NULL : b->fields[i].name;
        const int   n = have ? snprintf(text + used, sizeof text - used, "%s%.40s", used ? ", " : "", have) : 0;
        if (n > 0) used += (size_t)n;
    }
    return tn_raise_null(TN_EINDEX, "tn_batch_get: the batch has no '%.60s'; it has %s", name, used ? text : "nothing");
}

tn_status tn_batch_put(tn_batch *b, const char *name, tn_tensor *t)
{
    if (tn__blocked()) return tn_error();
    if (!b || !name) return tn_raise(TN_EINVAL, "tn_batch_put: %s is NULL", b ? "name" : "b");
    if (!t) return TN_OK;
    if (!strcmp(name, "x")) return b->x = t, TN_OK;
    if (!strcmp(name, "y")) return b->y = t, TN_OK;
    for (int i = 0; i < TN_BATCH_FIELDS; i++)
        if (!b->fields[i].name || !strcmp(b->fields[i].name, name)) return b->fields[i] = (tn_field){name, t}, TN_OK;
    return tn_raise(TN_EUNSUPPORTED, "tn_batch_put: no room for '%.60s'; a batch has at most %d fields", name,
                    (int)TN_BATCH_FIELDS);
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* n · k / of, without overflow of the product. */
static int64_t part_start(int64_t n, int64_t k, int64_t of) { return n / of * k + n % of * k / of; }

void tn_batch_cut(tn_batch *b, tn_shard s, int64_t whole)
{
    if (!tn__not_null("tn_batch_cut", "the batch", b)) return;
    const int64_t of = s.of > 1 ? s.of : 1, rank = of > 1 ? s.rank + s.done_ : 0;
    b->first = part_start(whole, rank, of), b->rows = part_start(whole, rank + 1, of) - b->first, b->whole = whole;
}

bool tn_shard_next(tn_shard *s)
{
    if (!tn__not_null("tn_shard_next", "the shard", s)) return false;
    if (++s->done_ < s->count) return false;
    s->done_ = 0;
    return true;
}

void tn_shard_rewind(tn_shard *s)
{
    if (tn__not_null("tn_shard_rewind", "the shard", s)) s->done_ = 0;
}

bool tn__shard_check(const char *who, tn_shard s)
{
    const bool whole = s.of == 0 && s.rank == 0 && s.count <= 1;
    if (s.count >= 0 && (whole || (s.of > 0 && s.rank >= 0 && s.rank < s.of && s.count <= s.of - s.rank))) return true;
    if (s.count > 1)
        tn_raise(TN_EINVAL, "%s: .count is %d and .rank %d, of %d shards; ranks start at 0", who, s.count, s.rank,
                 s.of);
    else tn_raise(TN_EINVAL, "%s: .rank is %d of %d shards; ranks start at 0", who, s.rank, s.of);
    return false;
}

tn_status tn_source_shard(const tn_source *s, tn_shard shard)
{
    if (tn__blocked()) return tn_error();
    if (!s || !s->next) return tn_raise(TN_EINVAL, "tn_source_shard: the source is NULL");
    if (!tn__shard_check("tn_source_shard", shard)) return tn_error();
    shard.done_ = 0;
    if (s->shard) s->shard(s->user, shard);
    else if (shard.of > 1) return tn_raise(TN_EUNSUPPORTED, "tn_source_shard: the source has no .shard function");
    return tn_error();
}

bool tn_source_next(const tn_source *s, tn_batch *b)
{
    if (!tn__not_null("tn_source_next", "the batch", b)) return false;
    *b = (tn_batch){0};
    if (tn__blocked()) return false;
    if (!s || !s->next) return tn_raise_false(TN_EINVAL, "tn_source_next: the source is NULL");
    return s->next(s->user, b) && tn_error() == TN_OK;
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

tn__position tn__position_read(const tn_json *at)
{
    tn__position p = {0, 0};
    if (at) p.epoch = tn_json_i64(tn_json_need(at, "epoch")), p.batch = tn_json_i64(tn_json_need(at, "batch"));
    return p;
}

void tn__position_write(tn__position p, tn_json_writer *w)
{
    tn_json_put_i64(w, "epoch", p.epoch);
    tn_json_put_i64(w, "batch", p.batch);
}
