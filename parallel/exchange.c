/* exchange.c — the all-reduce of gradients: each rank receives a piece of each bucket from the branches of all ranks,
 * adds the branches along the tree, and sends the sum to all. Sums are elementwise, so buckets and pieces do not affect
 * the bits; only the tree does, and it is the same for any number of ranks. */
#include "parallel/parallel_private.h"

#include <string.h>

enum { LINE = 64 };

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

typedef struct {
    char       *a;
    const char *b;
    double      by;
    bool        f64;
} task;

static void add(int64_t from, int64_t to, void *user)
{
    const task *t = user;
    if (t->f64) {
        double *restrict a = (double *)(void *)t->a;
        const double *restrict b = (const double *)(const void *)t->b;
        for (int64_t i = from; i < to; i++) a[i] += b[i];
    } else {
        float *restrict a = (float *)(void *)t->a;
        const float *restrict b = (const float *)(const void *)t->b;
        for (int64_t i = from; i < to; i++) a[i] += b[i];
    }
}

static void scale(int64_t from, int64_t to, void *user)
{
    const task *t = user;
    if (t->f64) {
        double *a = (double *)(void *)t->a;
        for (int64_t i = from; i < to; i++) a[i] *= t->by;
    } else {
        float      *a = (float *)(void *)t->a;
        const float by = (float)t->by;
        for (int64_t i = from; i < to; i++) a[i] *= by;
    }
}

/* Runs the body over the f32 part of [from, to), then over the f64 part. */
static void each(const tn_replica *r, task t, int64_t from, int64_t to, void (*body)(int64_t, int64_t, void *))
{
    enum { GRAIN = 1 << 16 };
    const int64_t middle = from > r->f64_at ? from : to < r->f64_at ? to : r->f64_at;
    task          d = t;
    d.f64 = true, d.a += middle - from, d.b = t.b ? t.b + (middle - from) : NULL;
    if (middle > from) tn_parallel_for((middle - from) / (int64_t)sizeof(float), GRAIN, body, &t);
    if (to > middle) tn_parallel_for((to - middle) / (int64_t)sizeof(double), GRAIN, body, &d);
}

void tn__gradients_add(const tn_replica *r, char *a, const char *b, int64_t from, int64_t to)
{
    each(r, (task){.a = a, .b = b}, from, to, add);
}

/* a *= by, as in tn__gradients_add. */
static void scale_gradients(const tn_replica *r, char *a, double by, int64_t from, int64_t to)
{
    each(r, (task){.a = a, .by = by}, from, to, scale);
}

/* ---- losses, weights and flags ----------------------------------------------------------------------------------- */

static int first_shard(const tn_replica *r, int rank) { return tn__first_shard(r->shards, rank, r->world->t.size); }

/* Exchanges the losses and weights of all shards and adds them in the order of the shards. */
bool tn__replica_exchange_losses(tn_replica *r)
{
    tn_world     *w = r->world;
    const int     most = (r->shards + w->t.size - 1) / w->t.size;
    const int64_t bytes = (int64_t)most * 2 * (int64_t)sizeof(double);
    char         *mine = r->buffer, *all = mine + bytes;
    double        loss = 0, weight = 0;
    if (w->t.size > 1) {
        memset(mine, 0, (size_t)bytes);
        memcpy(mine, r->losses + (ptrdiff_t)2 * r->lo, (size_t)(r->hi - r->lo) * 2 * sizeof(double));
        if (!tn__world_ok(w, w->t.gather(w->t.user, mine, all, (int)bytes))) return false;
    }
    for (int i = 0; i < w->t.size && w->t.size > 1; i++) {
        const int lo = first_shard(r, i), n = first_shard(r, i + 1) - lo;
        memcpy(r->losses + (ptrdiff_t)2 * lo, all + i * bytes, (size_t)n * 2 * sizeof(double));
    }
    for (int i = 0; i < r->shards; i++) loss += r->losses[2 * i], weight += r->losses[2 * i + 1];
    r->loss = weight != 0 ? loss / weight : 0, r->scale = weight != 0 ? 1 / weight : 0;
    return true;
}

/* Combines the flags of the parameters that have gradients over all ranks. */
bool tn__replica_exchange_flags(tn_replica *r)
{
    tn_world *w = r->world;
    uint8_t  *all = r->buffer;
    if (w->t.size == 1) return true;
    if (!tn__world_ok(w, w->t.gather(w->t.user, r->has_grad, all, (int)r->places))) return false;
    for (int64_t i = 0; i < w->t.size; i++)
        for (int64_t k = 0; k < r->places; k++) r->has_grad[k] |= all[i * r->places + k];
    return true;
}

/* ---- a bucket ---------------------------------------------------------------------------------------------------- */

/* The piece [*lo, *hi) of bucket [from, to) that rank i adds; cut at cache lines. */
static void piece(int64_t from, int64_t to, int i, int size, int64_t *lo, int64_t *hi)
{
    const int64_t lines = (to - from + LINE - 1) / LINE;
    *lo = tn__min_i64(from + lines * i / size * LINE, to);
    *hi = tn__min_i64(from + lines * (i + 1) / size * LINE, to);
}

typedef struct {
    int  *out_bytes, *out_at, *in_bytes, *in_at; /* [size] each, in the replica's room */
    char *out, *in;
} mail;

static mail mail_of(const tn_replica *r)
{
    const int size = r->world->t.size;
    int      *numbers = r->buffer;
    mail      m = {numbers, numbers + size, numbers + (ptrdiff_t)2 * size, numbers + (ptrdiff_t)3 * size, NULL, NULL};
    const int64_t head = ((int64_t)4 * size * (int64_t)sizeof(int) + LINE - 1) / LINE * LINE;
    m.out = (char *)r->buffer + head;
    m.in = m.out + (int64_t)r->waiting * (r->bucket + LINE);
    return m;
}

/* Packs the pieces of this rank's branches by rank. A single branch has them in that order already. */
static const char *pack(const tn_replica *r, mail *m, char *const *sum, int64_t origin, int64_t from, int64_t to)
{
    int64_t at = 0, lo, hi;
    for (int i = 0; i < r->world->t.size; i++) {
        piece(from, to, i, r->world->t.size, &lo, &hi);
        m->out_at[i] = (int)at;
        for (int k = 0; k < r->waiting; k++, at += hi - lo)
            if (r->waiting > 1) memcpy(m->out + at, sum[k] + (lo - origin), (size_t)(hi - lo));
        m->out_bytes[i] = (int)(at - m->out_at[i]);
    }
    return r->waiting > 1 ? m->out : sum[0] + (from - origin);
}

/* Adds the branches of all ranks, [lo, hi) of each, which are in m->in from the left, into the first one. */
static void add_up(const tn_replica *r, const mail *m, int64_t lo, int64_t hi)
{
    tn__branch stack[2 * TN__BRANCHES], some[TN__BRANCHES];
    char      *sum[2 * TN__BRANCHES], *at = m->in;
    int        n = 0;
    for (int i = 0; i < r->world->t.size; i++) {
        const int count = tn__branches(r->shards, first_shard(r, i), first_shard(r, i + 1), some);
        for (int k = 0; k < count; k++, at += hi - lo) {
            stack[n] = some[k], sum[n++] = at;
            for (; n > 1 && tn__siblings(r->shards, stack[n - 2], stack[n - 1]); n--) {
                tn__gradients_add(r, sum[n - 2], sum[n - 1], lo, hi);
                stack[n - 2].hi = stack[n - 1].hi;
            }
        }
    }
}

static bool swap(const tn_replica *r, const mail *m, const char *out, char *in)
{
    tn_world    *w = r->world;
    const double start = tn__seconds();
    int64_t      bytes = 0;
    if (!tn__world_ok(w, w->t.swap(w->t.user, out, m->out_bytes, m->out_at, in, m->in_bytes, m->in_at))) return false;
    for (int i = 0; i < w->t.size; i++) bytes += i == w->t.rank ? 0 : m->out_bytes[i];
    tn__world_delay(w, start, bytes);
    return true;
}

bool tn__replica_reduce(tn_replica *r, char *const *sum, int64_t origin, int64_t from, int64_t to)
{
    tn_world  *w = r->world;
    const int  size = w->t.size;
    mail       m = mail_of(r);
    int64_t    lo, hi, own, end, at = 0;
    tn__branch some[TN__BRANCHES];
    piece(from, to, w->t.rank, size, &own, &end);
    const char *out = pack(r, &m, sum, origin, from, to);
    for (int i = 0; i < size; i++, at += m.in_bytes[i - 1]) {
        m.in_bytes[i] = (int)(end - own) * tn__branches(r->shards, first_shard(r, i), first_shard(r, i + 1), some);
        m.in_at[i] = (int)at;
    }
    if (!swap(r, &m, out, m.in)) return false;
    if (end > own) {
        add_up(r, &m, own, end);
        scale_gradients(r, m.in, r->scale, own, end);
    }
    for (int i = 0; i < size; i++) { /* send the sum to every rank, receive the others' sums */
        piece(from, to, i, size, &lo, &hi);
        m.out_bytes[i] = (int)(end - own), m.out_at[i] = 0;
        m.in_bytes[i] = (int)(hi - lo), m.in_at[i] = (int)(lo - from);
    }
    return swap(r, &m, m.in, sum[0] + (from - origin));
}

/* ---- .sparse: blocks of zeros are not sent ----------------------------------------------------------------------- */

static bool is_zero(const char *block)
{
    uint64_t any = 0, word;
    for (int i = 0; i < TN__BLOCK; i += (int)sizeof word) {
        memcpy(&word, block + i, sizeof word);
        any |= word;
    }
    return !any;
}

/* Sets touched[i] for blocks that are not zero on at least one rank. */
static bool find_touched(tn_replica *r)
{
    tn_world *w = r->world;
    uint8_t  *all = r->buffer;
    for (int64_t i = 0; i < r->blocks; i++) {
        r->touched[i] = 0;
        for (int k = 0; k < r->waiting && !r->touched[i]; k++) r->touched[i] = !is_zero(r->sum[k] + i * TN__BLOCK);
    }
    if (!tn__world_ok(w, w->t.gather(w->t.user, r->touched, all, (int)r->blocks))) return false;
    for (int rank = 0; rank < w->t.size; rank++)
        for (int64_t i = 0; i < r->blocks; i++) r->touched[i] |= all[rank * r->blocks + i];
    return true;
}

/* Pack the touched blocks of a branch, and unpack them again with zeros in between. move_together returns the number of
 * bytes of touched blocks before `to`; with a NULL it only counts. */
static int64_t pack_blocks(const tn_replica *r, char *a, int64_t to)
{
    int64_t at = 0;
    for (int64_t i = 0; i * TN__BLOCK < to; i++) {
        if (!r->touched[i]) continue;
        if (a) memmove(a + at, a + i * TN__BLOCK, TN__BLOCK);
        at += TN__BLOCK;
    }
    return at;
}
static void unpack_blocks(const tn_replica *r, char *a, int64_t bytes)
{
    for (int64_t i = r->blocks - 1; i >= 0; i--) {
        char *to = a + i * TN__BLOCK;
        if (!r->touched[i]) memset(to, 0, TN__BLOCK);
        else bytes -= TN__BLOCK, memmove(to, a + bytes, TN__BLOCK);
    }
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

static bool reduce_all(tn_replica *r)
{
    for (int64_t from = 0; from < r->bytes; from += r->bucket)
        if (!tn__replica_reduce(r, r->sum, 0, from, tn__min_i64(from + r->bucket, r->bytes))) return false;
    return true;
}

/* Exchanges only the touched blocks: packs them and shrinks the replica's sizes meanwhile. */
static bool reduce_touched(tn_replica *r)
{
    const int64_t bytes = r->bytes, f64_at = r->f64_at;
    if (!find_touched(r)) return false;
    r->f64_at = pack_blocks(r, NULL, f64_at);
    for (int k = 0; k < r->waiting; k++) r->bytes = pack_blocks(r, r->sum[k], bytes);
    const int64_t packed = r->bytes;
    const bool    ok = reduce_all(r);
    r->bytes = bytes, r->f64_at = f64_at;
    for (int k = 0; k < r->waiting; k++) unpack_blocks(r, r->sum[k], packed);
    return ok;
}

/* .fast: adds this rank's branches, then uses the transport's all-reduce. The bits depend on the number of ranks. */
static bool add_fast(tn_replica *r)
{
    tn_world *w = r->world;
    for (int k = 1; k < r->waiting; k++) tn__gradients_add(r, r->sum[0], r->sum[k], 0, r->bytes);
    for (int64_t from = 0, to; from < r->bytes; from = to) {
        const bool f64 = from >= r->f64_at;
        to = tn__min_i64(from + r->bucket, f64 ? r->bytes : r->f64_at);
        const int count = (int)((to - from) / (f64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float)));
        if (!tn__world_ok(w, w->t.sum(w->t.user, r->sum[0] + from, count, f64))) return false;
    }
    scale_gradients(r, r->sum[0], r->scale, 0, r->bytes);
    return true;
}

void tn__gradients_merge(const tn_replica *r, int top, int left, int64_t from, int64_t to)
{
    for (int i = top; i >= left; i--) tn__gradients_add(r, r->sum[i - 1] + from, r->sum[i] + from, from, to);
}

bool tn__replica_exchange(tn_replica *r)
{
    if (!tn__replica_exchange_losses(r) || !tn__replica_exchange_flags(r)) return false;
    if (r->world->t.size == 1) {
        scale_gradients(r, r->sum[0], r->scale, 0, r->bytes);
        return true;
    }
    return r->fast ? add_fast(r) : r->sparse ? reduce_touched(r) : reduce_all(r);
}
