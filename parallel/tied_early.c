/* tied_early.c — starts the all-reduce of a tied embedding before its gradient is complete.
 *
 * An embedding that is also the output projection gets the projection's part of its gradient at the start of a backward
 * pass, and the part of its lookups, a few rows, at the end. It is often the largest parameter. Therefore its gradient
 * is sent as it is at the start. At the end the ranks exchange which blocks have changed since; only these are added
 * again, from the branches of all ranks, along the same tree. So the bits are those of the complete gradient. The table
 * is chosen from the tape of the previous batch, so that all ranks choose the same one. */
#include "parallel/parallel_private.h"

#include <string.h>

enum { LINE = 64, PART = 8 }; /* a table must have at least 1 / PART of the bytes of all gradients */

static int64_t bytes_of(const tn_replica *r, int64_t place)
{
    return (r->place[place].n * (int64_t)tn_dtype_size(r->place[place].wide) + LINE - 1) / LINE * LINE;
}

int64_t tn__early_end(const tn_replica *r)
{
    const int64_t i = r->early.place;
    return i < 0 ? r->bytes : r->place[i].at + bytes_of(r, i);
}

char *tn__sum_of(const tn_replica *r, int64_t place)
{
    return place == r->early.place ? r->early.sum[0] : r->sum[0] + r->place[place].at;
}

/* ---- choosing the table ------------------------------------------------------------------------------------------ */

void tn__early_choose(tn_replica *r)
{
    int64_t best = -1;
    for (int64_t i = 0; i < r->places; i++) {
        const tn__place *p = r->place + i;
        if (!(r->has_grad[i] & TN__HAD_GRAD_EARLY) || tn_dtype_of(p->t) != TN_F32 || bytes_of(r, i) < r->bytes / PART)
            continue;
        if (best < 0 || p->n > r->place[best].n) best = i;
    }
    r->early.next = best;
}

void tn__early_free(tn_replica *r)
{
    if (r->early.memory) tn__mem_put(r->early.memory, (size_t)r->early.memory_bytes);
    r->early.memory = NULL, r->early.memory_place = -1;
}

/* Keeps the memory while the table is the same. */
bool tn__early_begin(tn_replica *r)
{
    tn__early *e = &r->early;
    tn__branch some[TN__BRANCHES];
    e->place = e->next;
    if (e->place < 0 || e->place == e->memory_place) return true;
    tn__early_free(r);
    const int     copies = tn__branches(r->shards, r->lo, r->hi, some);
    const int64_t bytes = bytes_of(r, e->place), blocks = (bytes + TN__BLOCK - 1) / TN__BLOCK;
    e->memory_bytes = copies * bytes + (r->world->t.size + 1) * blocks;
    if (!(e->memory = tn__mem_zeroed((size_t)e->memory_bytes))) return false;
    for (int k = 0; k < copies; k++) e->sum[k] = e->memory + k * bytes;
    e->memory_place = e->place, e->blocks = blocks;
    e->changed = (uint8_t *)e->memory + copies * bytes;
    return true;
}

/* ---- on the thread of the backward pass -------------------------------------------------------------------------- */

void tn__early_open(tn_replica *r, int top, int left)
{
    r->early.top = top, r->early.left = left;
    memset(r->early.changed, 0, (size_t)r->early.blocks);
}

int64_t tn__early_next(const tn_replica *r, int64_t to)
{
    return tn__max_i64(to - r->bucket, r->place[r->early.place].at);
}

/* The elements of a contiguous gradient; NULL: it must be copied as a whole. */
static const char *plain(const tn_tensor *grad) { return tn_is_contiguous(grad) ? tn_data(grad) : NULL; }

void tn__early_add(tn_replica *r, const tn_tensor *grad, int64_t from, int64_t to)
{
    tn__early       *e = &r->early;
    const tn__place *p = r->place + e->place;
    const int64_t    at = p->at, end = at + p->n * (int64_t)sizeof(float), n = tn__min_i64(to, end) - from;
    const char      *now = grad ? plain(grad) : NULL;
    char            *top = r->sum[e->top];
    const int        last = e->left <= e->top ? e->left - 1 : e->top;
    if (e->left > e->top + 1) { /* all shards are in the branches already */
    } else if (now) {
        memcpy(top + from, now + (from - at), (size_t)n);
    } else if (to >= end && (!grad || tn_copy_out(grad, TN_F32, top + at, (size_t)(end - at)) != TN_OK)) {
        memset(top + at, 0, (size_t)(end - at));
    }
    for (int k = 0; k < last; k++) memcpy(e->sum[k] + (from - at), r->sum[k] + from, (size_t)n);
    memcpy(e->sum[last] + (from - at), top + from, (size_t)n);
    for (int i = e->top - 1; i >= last; i--)
        tn__gradients_add(r, e->sum[last] + (from - at), r->sum[i] + from, from, to);
}

static void change(tn_replica *r, const char *now, int64_t from, int64_t to)
{
    tn__early    *e = &r->early;
    const int64_t bytes = r->place[e->place].n * (int64_t)sizeof(float);
    char         *have = r->sum[e->top] + r->place[e->place].at;
    for (int64_t i = from / TN__BLOCK; i * TN__BLOCK < to; i++) {
        const int64_t at = i * TN__BLOCK;
        const size_t  n = (size_t)tn__min_i64(TN__BLOCK, bytes - at);
        if (!memcmp(have + at, now + at, n)) continue;
        e->changed[i] = 1;
        memcpy(have + at, now + at, n);
    }
}

void tn__early_change(tn_replica *r, const tn_tensor *grad, const tn_tensor *index)
{
    const tn__place *p = r->place + r->early.place;
    const int64_t    bytes = p->n * (int64_t)sizeof(float), row = bytes / tn_size(p->t, 0);
    const char      *now = plain(grad);
    if (!now) {
        memset(r->early.changed, 1, (size_t)r->early.blocks);
        char *have = r->sum[r->early.top] + p->at;
        if (tn_copy_out(grad, TN_F32, have, (size_t)bytes) != TN_OK) memset(have, 0, (size_t)bytes);
    } else if (!index) {
        change(r, now, 0, bytes);
    } else {
        for (int64_t i = 0; i < tn_numel(index); i++) {
            const int64_t at = tn_get_i64(index, i) * row;
            change(r, now, at, at + row);
        }
    }
}

/* ---- on the sending thread --------------------------------------------------------------------------------------- */

/* Packs the changed blocks of this rank's branches at the start of the table's gradients, all-reduces them, and copies
 * each block of the result to its place in sum[0]. */
bool tn__early_follow(tn_replica *r)
{
    tn__early    *e = &r->early;
    tn_world     *w = r->world;
    const int64_t at = r->place[e->place].at, bytes = bytes_of(r, e->place);
    uint8_t      *all = e->changed + e->blocks;
    char         *sum[TN__BRANCHES] = {r->sum[0] + at};
    int64_t       few = 0;
    if (!tn__world_ok(w, w->t.gather(w->t.user, e->changed, all, (int)e->blocks))) return false;
    for (int k = 0; k < r->waiting; k++) sum[k] = r->sum[k] + at;
    for (int64_t i = 0; i < e->blocks; i++) {
        const int64_t lo = i * TN__BLOCK, n = tn__min_i64(TN__BLOCK, bytes - lo);
        for (int k = 0; k < w->t.size; k++) e->changed[i] |= all[k * e->blocks + i];
        if (!e->changed[i]) continue;
        tn__gradients_merge(r, e->top, e->left, at + lo, at + lo + n);
        for (int k = 0; k < r->waiting; k++) memmove(sum[k] + few, sum[k] + lo, (size_t)n);
        few += n;
    }
    for (int64_t to = at + few, from; to > at; to = from) {
        from = tn__early_next(r, to);
        if (!tn__replica_reduce(r, sum, at, from, to)) return false;
    }
    few = 0;
    for (int64_t i = 0; i < e->blocks; i++) {
        const int64_t lo = i * TN__BLOCK, n = tn__min_i64(TN__BLOCK, bytes - lo);
        if (!e->changed[i]) continue;
        memcpy(e->sum[0] + lo, sum[0] + few, (size_t)n);
        few += n;
    }
    return true;
}
