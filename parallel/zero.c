/* zero.c — the step of a replica: clipping by the norm of whole gradients, and with .zero (ZeRO-1: Rajbhandari and
 * others, 2020) each rank steps its share of the parameters and gives their weights to all. */
#include "parallel/parallel_private.h"

#include <math.h>
#include <string.h>

/* Every rank has the whole gradients, and so finds the same norm; then it forgets those of the others' parameters,
 * which the optimizer leaves alone, and makes no state for. */
static void step_share(const tn_replica *r, tn_optimizer *o)
{
    const tn_clip own = tn_optimizer_clip(o);
    if (own.norm > 0 && own.norm < INFINITY) {
        tn_raise(TN_EINVAL, "tn_replica_step: with .zero an optimizer's own .clip would see a share of the gradients; "
                            "clip in the replica (tn_fit: leave .optimizer away)");
        return;
    }
    for (int64_t i = 0; i < r->places; i++)
        if (r->place[i].owner != r->world->t.rank) tn_zero_grad(r->place[i].t);
    tn_step_share(o);
}

/* Each parameter that has been stepped, from its owner to all. */
static void share_weights(tn_replica *r)
{
    const tn_scope s = tn_no_grad_begin();
    for (int64_t i = 0; i < r->places; i++) {
        const tn__place *p = r->place + i;
        const int64_t    bytes = p->n * (int64_t)tn_dtype_size(tn_dtype_of(p->t));
        if ((r->some[i] & TN__WHOLE) && bytes && !tn__world_send(r->world, tn_data_mut(p->t), bytes, p->owner)) break;
    }
    tn_scope_end(s);
}

tn_status tn_replica_step(tn_replica *r, tn_optimizer *o)
{
    if (!r) return tn_error() == TN_OK ? tn_raise(TN_EINVAL, "tn_replica_step: r is NULL") : tn_error();
    if (tn_error() == TN_OK && !o) tn_raise(TN_EINVAL, "tn_replica_step: the optimizer is NULL");
    if (tn_error() == TN_OK && (r->clip.norm > 0 || r->clip.value > 0))
        r->norm = tn_clip_grads_run((tn_clip_grads_args){.module = r->module, .clip = r->clip});
    if (tn_error() == TN_OK) {
        if (r->zero) step_share(r, o);
        else tn_step(o);
    }
    if (!tn__world_meet(r->world, TN__STEP, 0, NULL)) return tn_error();
    if (r->zero && r->world->t.size > 1) share_weights(r);
    return tn_error();
}

/* ---- whole checkpoints ------------------------------------------------------------------------------------------- */

/* The largest state that any rank has of a parameter of its own; 0: an error stands. */
static int64_t largest_state(const tn_replica *r, const tn_optimizer *o)
{
    int64_t most = 1;
    for (int64_t i = 0; i < r->places; i++) {
        const int64_t bound = 64 + r->place[i].n * 4 * (int64_t)sizeof(double); /* of what another rank may have */
        most = tn__max_i64(most, tn_world_rank(r->world) ? tn_optimizer_pack(o, r->place[i].t, NULL) : bound);
    }
    return most;
}

/* One parameter's state from its owner to rank 0, in pieces. */
static bool send_state(const tn_replica *r, tn_optimizer *o, const tn__place *p, char *room, int *numbers)
{
    enum { PIECE = 1 << 28 };
    tn_world *w = r->world;
    int       size = w->t.size, *out = numbers, *in = numbers + size, *none = numbers + (ptrdiff_t)2 * size;
    int64_t   bytes = p->owner == w->t.rank ? tn_optimizer_pack(o, p->t, room) : 0;
    if (p->owner == 0) return true;
    if (!tn__world_send(w, &bytes, sizeof bytes, p->owner)) return false;
    memset(numbers, 0, (size_t)size * 3 * sizeof *numbers);
    for (int64_t at = 0; at < bytes; at += PIECE) {
        const int n = (int)tn__min_i64(bytes - at, PIECE);
        if (w->t.rank == p->owner) out[0] = n;
        if (w->t.rank == 0) in[p->owner] = n;
        char nothing[2]; /* what goes out and what comes in must lie apart, also where it is none: MPI */
        if (!tn__world_went(w, w->t.swap(w->t.user, out[0] ? room + at : nothing, out, none,
                                         in[p->owner] ? room + at : nothing + 1, in, none)))
            return false;
    }
    if (w->t.rank == 0) tn_optimizer_unpack(o, p->t, room, bytes); /* raised: the others hear of it when they meet */
    return true;
}

tn_status tn_replica_collect(tn_replica *r, tn_optimizer *o)
{
    if (!r) return tn_error() == TN_OK ? tn_raise(TN_EINVAL, "tn_replica_collect: r is NULL") : tn_error();
    if (!r->zero || r->world->t.size == 1) return tn_error();
    tn_error_state aside;
    const int64_t  room_bytes = largest_state(r, o);
    const size_t   numbers_bytes = (size_t)r->world->t.size * 3 * sizeof(int);
    char          *room = tn_mem_get((size_t)room_bytes);
    int           *numbers = tn_mem_get(numbers_bytes);
    bool           going = tn__world_meet(r->world, TN__STATE, 0, NULL);
    for (int64_t i = 0; i < r->places && going; i++) {
        tn_error_push(&aside); /* rank 0 receives the rest, too, when it has failed: the others send it */
        going = send_state(r, o, r->place + i, room, numbers);
        tn_status said = tn_error();
        char      text[1000];
        snprintf(text, sizeof text, "%s", tn_error_message());
        tn_error_pop(&aside);
        if (said != TN_OK && tn_error() == TN_OK) tn_raise(said, "%s", text);
    }
    tn_mem_put(room, (size_t)room_bytes);
    tn_mem_put(numbers, numbers_bytes);
    return tn_error();
}

void tn_replica_forget(tn_replica *r, tn_optimizer *o)
{
    for (int64_t i = 0; r && r->zero && i < r->places; i++)
        if (r->place[i].owner != r->world->t.rank) tn_optimizer_forget(o, r->place[i].t);
}

double tn_replica_norm(const tn_replica *r) { return r ? r->norm : NAN; }
