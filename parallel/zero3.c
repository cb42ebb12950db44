/* zero3.c — weights that are sharded over the ranks (ZeRO-3: Rajbhandari and others, 2020). All weights are in one
 * range of addresses (arena.c), in which a rank has memory only for its own parts. Before an op or other code reads a
 * weight, its other parts are read from the memory of the other ranks by one-sided communication, in which those ranks
 * do not take part. Therefore ranks need not run the same ops at the same time, and no rank waits for one with an empty
 * shard. The pages are freed when others need the memory, those that were read longest ago first. */
#include "parallel/parallel_private.h"

#include <string.h>

/* Weights of fewer than SMALL bytes stay whole on each rank, since a message for each would cost more than the memory.
 * Weights read by the last LAST_CALLS op calls are never freed, as an op may consist of ops. */
enum { SMALL = 16384, LAST_CALLS = 16, LINE = 64 };

typedef struct {
    tn__remote_weight remote; /* owned by the tensor's storage and by the spread */
    tn__zero3        *owner;  /* NULL: it was freed, and parts that were not here are lost */
    tn__arena        *arena;
    int64_t           place, at, bytes; /* index of its tn__place; offset and size in the arena */
    bool              complete, pinned; /* all parts are here; and must not be freed */
    uint64_t          last_read;        /* number of the last op call that read it */
} weight;

struct tn__zero3 {
    tn_replica *r;
    const void *thread; /* the thread of the world */
    tn__arena  *arena;
    weight    **weight;   /* [places]; NULL: not sharded */
    int64_t     resident; /* bytes of weights whose parts are all here */
    uint64_t    call;     /* number of the last op call that read a weight */
};

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* Each weight has one part per rank, so that all ranks send when a layer is read. */
void tn__zero3_part(const tn_replica *r, const tn__place *p, int rank, int64_t *from, int64_t *to)
{
    const int64_t lines = (p->n + LINE - 1) / LINE, ranks = r->world->t.size;
    *from = tn__min_i64(lines * rank / ranks * LINE, p->n);
    *to = tn__min_i64(lines * (rank + 1) / ranks * LINE, p->n);
}

bool tn__zero3_is_large(const tn_tensor *t)
{
    return tn_numel(t) * (int64_t)tn_dtype_size(tn_dtype_of(t)) >= SMALL && tn_is_contiguous(t);
}

/* The size of a weight in the arena: whole pages. */
static int64_t room_of(int64_t bytes)
{
    const int64_t page = tn__arena_page();
    return (bytes + page - 1) / page * page;
}

static int64_t size_of(const tn_replica *r, int64_t place)
{
    return (int64_t)tn_dtype_size(tn_dtype_of(r->place[place].t));
}

static void release(weight *w)
{
    int64_t       from, to;
    tn_replica   *r = w->owner->r;
    const int64_t size = size_of(r, w->place);
    tn__zero3_part(r, r->place + w->place, r->world->t.rank, &from, &to);
    if (w->complete) w->owner->resident -= w->bytes;
    w->complete = w->pinned = false;
    tn__arena_release(w->arena, w->at, w->at + from * size);
    tn__arena_release(w->arena, w->at + to * size, w->at + room_of(w->bytes));
}

/* Frees other ranks' parts, least recently read first, until `bytes` more fit into .resident. */
static void evict(const tn__zero3 *s, int64_t bytes)
{
    while (s->resident && s->resident + bytes > s->r->resident) {
        weight *oldest = NULL;
        for (int64_t i = 0; i < s->r->places; i++) {
            weight *w = s->weight[i];
            if (!w || !w->complete || w->pinned || w->last_read + LAST_CALLS > s->call) continue;
            if (!oldest || w->last_read < oldest->last_read) oldest = w;
        }
        if (!oldest) return;
        release(oldest);
    }
}

static bool fetch_parts(const weight *w)
{
    enum { PIECE = 1 << 30 };
    const tn_replica *r = w->owner->r;
    tn_world         *world = r->world;
    const int64_t     size = size_of(r, w->place);
    for (int k = 1; k < world->t.size; k++) { /* start with the next rank, so that not all read from rank 0 first */
        const int rank = (world->t.rank + k) % world->t.size;
        int64_t   from, to;
        tn__zero3_part(r, r->place + w->place, rank, &from, &to);
        for (int64_t at = from * size; at < to * size; at += PIECE) {
            const int64_t bytes = tn__min_i64(to * size - at, PIECE);
            const double  start = tn__seconds();
            if (!tn__world_ok(world,
                              world->t.get(world->t.user, w->arena->at + w->at + at, (int)bytes, rank, w->at + at)))
                return false;
            tn__world_delay(world, start, bytes);
        }
    }
    return true;
}

/* True if the weight may be fetched; else raises. Other threads may not, as one could free what another reads. */
static bool may_fetch(const weight *w)
{
    if (!w->owner)
        tn_raise(TN_ESTATE, "the sharded weights (.zero3) are lost because other ranks had ended before "
                            "tn_replica_whole or tn_replica_free; resume from a checkpoint");
    else if (w->owner->thread != &tn__self)
        tn_raise(TN_ESTATE, "sharded weights (.zero3) may be read only by the thread of the replica");
    else if (!w->complete && w->owner->r->world->broken)
        tn_raise(TN_ESTATE, "a rank with a part of these weights (.zero3) has ended; resume from a checkpoint");
    return tn_error() == TN_OK;
}

static bool fetch(tn__remote_weight *h, uint64_t call)
{
    weight *w = (weight *)(void *)h;
    if (w->complete && !w->owner) return true; /* complete since before the spread was freed */
    if (tn_error() != TN_OK) return w->complete;
    if (!may_fetch(w)) return false;
    if (call) w->owner->call = call;
    if (!w->complete) {
        evict(w->owner, w->bytes);
        if (!fetch_parts(w)) return false;
        w->owner->resident += w->bytes;
    }
    w->complete = true, w->pinned = w->pinned || !call, w->last_read = w->owner->call;
    return true;
}

static void weight_end(tn__object *o)
{
    weight *w = (weight *)(void *)o;
    tn__arena_drop(w->arena);
    tn_mem_put(w, sizeof *w);
}

/* ---- sharding ---------------------------------------------------------------------------------------------------- */

static void zero3_free(tn__zero3 *s)
{
    if (!s) return;
    for (int64_t i = 0; s->weight && i < s->r->places; i++) {
        if (!s->weight[i]) continue;
        s->weight[i]->owner = NULL;
        tn__object_drop(&s->weight[i]->remote.object);
    }
    tn_mem_put(s->weight, (size_t)s->r->places * sizeof *s->weight + 1);
    tn__arena_drop(s->arena);
    tn_mem_put(s, sizeof *s);
}

/* Sets the offset of each weight in the arena, at the start of a page, and allocates the arena. */
static bool lay_out(tn__zero3 *s)
{
    tn_replica *r = s->r;
    int64_t     all = 0;
    for (int64_t i = 0; i < r->places; i++) {
        if (!r->place[i].sharded) continue;
        weight *w = s->weight[i] = tn_mem_get(sizeof *w);
        if (!w) return false;
        *w = (weight){
            .remote = {.object.end = weight_end, .fetch = fetch}, .owner = s, .place = i, .at = all, .complete = true};
        atomic_init(&w->remote.object.refs, 1);
        w->bytes = r->place[i].n * size_of(r, i);
        if (!tn__add_i64(all, room_of(w->bytes), &all))
            return tn_raise_false(TN_ENOMEM, "tn_replica_next: the weights are too large");
    }
    if (!(s->arena = tn__arena_new(all))) return false;
    for (int64_t i = 0; i < r->places; i++)
        if (s->weight[i]) s->weight[i]->arena = s->arena, tn__arena_keep(s->arena);
    return true;
}

/* A tensor in the arena with this rank's part of a weight; its other parts are on the other ranks. */
static tn_tensor *part_of(tn_replica *r, weight *w)
{
    int64_t       from, to;
    const int64_t size = size_of(r, w->place);
    tn_tensor    *t = r->place[w->place].t;
    const char   *old = tn_data(t);
    tn__zero3_part(r, r->place + w->place, r->world->t.rank, &from, &to);
    if (!old) return NULL;
    memcpy(w->arena->at + w->at + from * size, old + from * size, (size_t)((to - from) * size));
    tn__object_keep(&w->remote.object);
    return tn__remote_tensor(tn_dtype_of(t), tn_shape_of(t), w->arena->at + w->at, &w->remote);
}

/* All work that may fail on a single rank, before the collective call. */
static tn__zero3 *prepare(tn_replica *r, tn_tensor **parts)
{
    tn__zero3 *s = tn_mem_get(sizeof *s);
    if (!s) return NULL;
    *s = (tn__zero3){.r = r, .thread = &tn__self};
    r->sharded = s;
    if ((s->weight = tn_mem_get((size_t)r->places * sizeof *s->weight + 1)) && lay_out(s))
        for (int64_t i = 0; i < r->places && tn_error() == TN_OK; i++)
            if (s->weight[i]) parts[i] = part_of(r, s->weight[i]);
    return s;
}

static void shard_weights(tn_replica *r, tn_tensor **parts)
{
    tn__zero3 *s = prepare(r, parts);
    tn_world  *w = r->world;
    if (w->exposed && tn_error() == TN_OK)
        tn_raise(TN_ESTATE,
                 "tn_replica_next: the weights of another replica of this world are sharded, or could not be "
                 "gathered; use one replica with .zero3 at a time");
    const bool ready = s && s->arena; /* if false, an error is set */
    if (tn__world_begin(w, TN__SHARD_WEIGHTS, 0, NULL) && ready &&
        tn__world_ok(w, w->t.expose(w->t.user, s->arena->at, (int64_t)s->arena->bytes))) {
        w->exposed = s->arena;
        tn__arena_keep(s->arena);
        for (int64_t i = 0; i < r->places && tn_error() == TN_OK; i++) {
            if (!parts[i]) continue;
            tn_adopt(r->place[i].t, parts[i]);
            s->weight[i]->complete = false;
        }
        return;
    }
    r->sharded = NULL;
    zero3_free(s);
}

void tn__zero3_shard(tn_replica *r)
{
    if (r->sharded) {
        tn__zero3_release(r);
        return;
    }
    const size_t   bytes = (size_t)r->places * sizeof(tn_tensor *) + 1;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor    **parts = tn_mem_get(bytes);
    if (parts) shard_weights(r, parts);
    else tn__world_begin(r->world, TN__SHARD_WEIGHTS, 0, NULL);
    tn_mem_put(parts, bytes);
    tn_scope_end(s);
}

void tn__zero3_release(tn_replica *r)
{
    for (int64_t i = 0; r->sharded && i < r->places; i++)
        if (r->sharded->weight[i] && r->sharded->weight[i]->pinned) release(r->sharded->weight[i]);
}

/* While it is open, the optimizer may change this rank's parts. Closing it increments the version of each weight, on
 * which the tape and caches depend, and frees the other ranks' parts, which are out of date. */
void tn__zero3_open(tn_replica *r, bool open)
{
    const tn_scope s = tn_no_grad_begin();
    for (int64_t i = 0; r->sharded && i < r->places; i++) {
        weight *w = r->sharded->weight[i];
        if (!w) continue;
        w->remote.writable = true;
        if (!open) {
            if (tn_error() == TN_OK) tn_data_mut(r->place[i].t);
            release(w);
        }
        w->remote.writable = open;
    }
    tn_scope_end(s);
}

void tn__zero3_fetch_all(tn_replica *r)
{
    for (int64_t i = 0; r->sharded && i < r->places && tn_error() == TN_OK; i++)
        if (r->sharded->weight[i]) tn_data(r->place[i].t);
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

static void gather_weight(tn_replica *r, weight *w)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *t = r->place[w->place].t, *whole = tn_clone(t);
    w->remote.writable = true;
    if (whole) {
        tn_adopt(t, whole);
        release(w); /* keeps this rank's part, which other ranks may still read */
    }
    tn_scope_end(s);
}

void tn__zero3_gather(tn_replica *r)
{
    tn__zero3 *s = r->sharded;
    tn_world  *w = r->world;
    if (!s) return;
    if (tn__world_begin(w, TN__GATHER_WEIGHTS, 0, NULL))
        for (int64_t i = 0; i < r->places && tn_error() == TN_OK; i++)
            if (s->weight[i]) gather_weight(r, s->weight[i]);
    if (tn__world_begin(w, TN__GATHER_WEIGHTS, 0, NULL) && tn__world_ok(w, w->t.expose(w->t.user, NULL, 0))) {
        tn__arena_drop(w->exposed);
        w->exposed = NULL;
    }
    r->sharded = NULL;
    zero3_free(s);
}
