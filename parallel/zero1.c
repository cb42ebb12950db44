/* zero1.c — the step of a replica: clips by the norm of whole gradients. With .zero (ZeRO-1: Rajbhandari and others,
 * 2020) each rank updates its part of the parameters and broadcasts their weights. */
#include "optim/norm.h"
#include "parallel/parallel_private.h"

#include <math.h>
#include <string.h>

/* The elements of a parameter that a rank updates. The gradients of all parameters, as one sequence, are divided into
 * equal numbers of bytes. An optimizer that needs whole parameters (LAMB, Adafactor) updates those whose middle is in
 * the rank's part. */
static void part_of(const tn_replica *r, const tn_optimizer *o, const tn__place *p, int rank, int64_t *from,
                    int64_t *to)
{
    enum { LINE = 64 };
    const int64_t size = (int64_t)tn_dtype_size(p->wide), lines = r->bytes / LINE, ranks = r->world->t.size;
    *from = 0, *to = p->owner == rank ? p->n : 0;
    if (!tn_optimizer_by_element(o)) return;
    *from = tn__min_i64(tn__max_i64((lines * rank / ranks * LINE - p->at) / size, 0), p->n);
    *to = tn__min_i64(tn__max_i64((lines * (rank + 1) / ranks * LINE - p->at) / size, 0), p->n);
}

/* Makes the optimizer store and update this rank's part of each parameter or, if `whole`, all of it. */
static void set_parts(const tn_replica *r, tn_optimizer *o, bool whole)
{
    for (int64_t i = 0; i < r->places; i++) {
        const tn__place *p = r->place + i;
        int64_t          from, to;
        part_of(r, o, p, r->world->t.rank, &from, &to);
        if (whole) from = 0, to = p->n;
        if (tn_optimizer_by_element(o)) tn_optimizer_shard(o, p->t, from, to);
        if (from == to) tn_optimizer_forget(o, p->t);
    }
}

/* Begins the step of this rank's part. Deletes the gradients of parameters that other ranks update, so that the
 * optimizer skips them and creates no state for them. Every rank has all gradients, so all compute the same norm
 * before. */
static bool begin_part(const tn_replica *r, tn_optimizer *o)
{
    const tn_clip own = tn_optimizer_clip(o);
    if (own.norm > 0 || own.error_if_nonfinite)
        return tn_raise_false(TN_EINVAL,
                              "tn_replica_step: with .zero the optimizer's own .clip would see only a part of the "
                              "gradients; set .clip of the replica instead (tn_fit: omit .optimizer)");
    bool any = false;
    for (int64_t i = 0; i < r->places; i++) any = any || r->has_grad[i];
    if (!any) return tn__step_begin(o, false); /* raises */
    set_parts(r, o, false);
    for (int64_t i = 0; i < r->places; i++) {
        int64_t from, to;
        part_of(r, o, r->place + i, r->world->t.rank, &from, &to);
        if (from == to) tn_zero_grad(r->place[i].t);
    }
    return tn_error() == TN_OK && tn__step_begin(o, true);
}

/* Broadcasts the updated elements of each parameter from the ranks that updated them. */
static void broadcast_weights(tn_replica *r, const tn_optimizer *o)
{
    const tn_scope s = tn_no_grad_begin();
    bool           ok = true;
    for (int64_t i = 0; i < r->places && ok; i++) {
        const tn__place *p = r->place + i;
        const int64_t    size = (int64_t)tn_dtype_size(tn_dtype_of(p->t));
        int64_t          from, to;
        for (int rank = 0; rank < r->world->t.size && ok && r->has_grad[i]; rank++) {
            part_of(r, o, p, rank, &from, &to);
            if (to > from)
                ok = tn__world_broadcast(r->world, (char *)tn_data_mut(p->t) + from * size, (to - from) * size, rank);
        }
    }
    tn_scope_end(s);
}

tn_status tn_replica_step(tn_replica *r, tn_optimizer *o)
{
    if (!r) return tn_error() == TN_OK ? tn_raise(TN_EINVAL, "tn_replica_step: r is NULL") : tn_error();
    if (tn_error() == TN_OK && !o) tn_raise(TN_EINVAL, "tn_replica_step: the optimizer is NULL");
    const uint64_t sum = tn_optimizer_sum(o); /* before its schedule advances */
    tn_clip        clip = r->clip;
    if (clip.error_if_nonfinite && !(clip.norm > 0)) clip.value = clip.value > 0 ? clip.value : INFINITY;
    if (tn_error() == TN_OK && (clip.norm > 0 || clip.value > 0))
        r->norm = tn_clip_grads_run((tn_clip_grads_args){.module = r->module, .clip = clip});
    if (tn_error() == TN_OK && o->flags & TN__LAZY)
        tn_raise(TN_EUNSUPPORTED,
                 "tn_replica_step: the optimizer is .lazy, but the gradients of a replica are dense, so "
                 "that it would update all rows; omit .lazy");
    if (tn_error() == TN_OK && tn_optimizer_parts(o) > 1)
        tn_raise(TN_EUNSUPPORTED,
                 "tn_replica_step: the optimizer accumulates %lld batches (tn_accumulate), which a replica does not "
                 "support; use larger batches and multiply .shards instead",
                 (long long)tn_optimizer_parts(o));
    if (!tn__world_begin(r->world, TN__STEP, sum,
                         "an optimizer of another kind, with another learning rate or other options"))
        return tn_error();
    tn_span_begin("tn_step");
    const bool ready = r->zero ? begin_part(r, o) : tn__step_begin(o, false);
    const bool all = tn__world_begin(r->world, TN__STEP, sum, NULL); /* all ranks can update, or none does */
    if (ready) tn__step_end(o, !all);
    tn_span_end();
    if (all && r->zero && r->world->t.size > 1) broadcast_weights(r, o);
    return tn_error();
}

/* ---- complete state for checkpoints ------------------------------------------------------------------------------ */

/* An upper bound of the packed state of any rank's part of a parameter: at most four doubles per element. */
static int64_t largest_state(const tn_replica *r, const tn_optimizer *o)
{
    int64_t most = 1, from, to;
    for (int64_t i = 0; i < r->places; i++)
        for (int rank = 1; rank < r->world->t.size; rank++) {
            part_of(r, o, r->place + i, rank, &from, &to);
            most = tn__max_i64(most, 128 + (to - from) * 4 * (int64_t)sizeof(double));
        }
    return most;
}

/* Sends the owner's part of one parameter's state to rank 0, in pieces. */
static bool send_state(const tn_replica *r, tn_optimizer *o, const tn__place *p, int owner, char *room, int *numbers)
{
    enum { PIECE = 1 << 28 };
    tn_world *w = r->world;
    int       size = w->t.size, *out = numbers, *in = numbers + size, *none = numbers + (ptrdiff_t)2 * size;
    int64_t   bytes = owner == w->t.rank ? tn_optimizer_pack(o, p->t, room) : 0;
    if (!tn__world_broadcast(w, &bytes, sizeof bytes, owner)) return false;
    memset(numbers, 0, (size_t)size * 3 * sizeof *numbers);
    for (int64_t at = 0; at < bytes; at += PIECE) {
        const int n = (int)tn__min_i64(bytes - at, PIECE);
        if (w->t.rank == owner) out[0] = n;
        if (w->t.rank == 0) in[owner] = n;
        char nothing[2]; /* MPI requires distinct send and receive buffers, even if they are empty */
        if (!tn__world_ok(w, w->t.swap(w->t.user, out[0] ? room + at : nothing, out, none,
                                       in[owner] ? room + at : nothing + 1, in, none)))
            return false;
    }
    if (w->t.rank == 0 && bytes)                   /* none: a parameter that the optimizer does not have */
        tn_optimizer_unpack(o, p->t, room, bytes); /* an error reaches the other ranks in the next call */
    return true;
}

/* After an error rank 0 still receives the rest, since the other ranks send it. The first error stays set. */
static bool send_states(const tn_replica *r, tn_optimizer *o, const tn__place *p, char *room, int *numbers)
{
    bool    ok = true;
    int64_t from, to;
    for (int owner = 1; owner < r->world->t.size && ok; owner++) {
        tn_error_state aside;
        part_of(r, o, p, owner, &from, &to);
        if (to <= from) continue;
        tn_error_push(&aside);
        ok = send_state(r, o, p, owner, room, numbers);
        tn__error_first(&aside);
    }
    return ok;
}

/* Broadcasts the rows of per-row buffers (tn_buffer_rows) from the ranks that changed them. Call it right after a
 * collective call in which no rank had an error: a rank with an error would not send, and the others would wait. */
static bool collect_rows(const tn_replica *r)
{
    tn_world      *w = r->world;
    const int      size = w->t.size;
    const tn_scope s = tn_no_grad_begin();
    bool           ok = true;
    for (tn_each e = tn_module_each(r->module, TN_EACH_BUFFER); ok && tn_next(&e);) {
        const int64_t row = e.rows && tn_size(e.tensor, 0) ? tn_numel(e.tensor) / tn_size(e.tensor, 0) : 0;
        const int64_t bytes = row * (int64_t)tn_dtype_size(tn_dtype_of(e.tensor));
        char         *at = bytes ? tn_data_mut(e.tensor) : NULL;
        for (int rank = 0; at && ok && rank < size; rank++) {
            tn_batch  first = {0}, last = {0};
            const int lo = tn__first_shard(r->shards, rank, size), hi = tn__first_shard(r->shards, rank + 1, size);
            tn_batch_cut(&first, (tn_shard){.rank = lo, .of = r->shards}, tn_size(e.tensor, 0));
            tn_batch_cut(&last, (tn_shard){.rank = hi - 1, .of = r->shards}, tn_size(e.tensor, 0));
            const int64_t rows = last.first + last.rows - first.first;
            if (rows) ok = tn__world_broadcast(w, at + first.first * bytes, rows * bytes, rank);
        }
    }
    tn_scope_end(s);
    return ok;
}

tn_status tn_replica_collect(tn_replica *r, tn_optimizer *o)
{
    if (!r) return tn_error() == TN_OK ? tn_raise(TN_EINVAL, "tn_replica_collect: r is NULL") : tn_error();
    if (tn_error() == TN_OK && !o) tn_raise(TN_EINVAL, "tn_replica_collect: the optimizer is NULL");
    if (r->world->t.size == 1) return tn_error();
    if (!r->zero) {
        if (tn__world_begin(r->world, TN__STATE, 0, NULL)) (void)collect_rows(r);
        return tn_error();
    }
    const int64_t room_bytes = largest_state(r, o);
    const size_t  numbers_bytes = (size_t)r->world->t.size * 3 * sizeof(int);
    char         *room = tn_mem_get((size_t)room_bytes);
    int          *numbers = tn_mem_get(numbers_bytes);
    set_parts(r, o, !r->world->t.rank);
    bool ok = tn__world_begin(r->world, TN__STATE, 0, NULL) && collect_rows(r);
    for (int64_t i = 0; i < r->places && ok; i++) ok = send_states(r, o, r->place + i, room, numbers);
    tn_mem_put(room, (size_t)room_bytes);
    tn_mem_put(numbers, numbers_bytes);
    return tn_error();
}

void tn_replica_forget(tn_replica *r, tn_optimizer *o)
{
    if (!r || !r->zero || r->world->t.size == 1) return;
    set_parts(r, o, false);
}

double tn_replica_norm(const tn_replica *r) { return r ? r->norm : NAN; }
