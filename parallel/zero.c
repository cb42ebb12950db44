/* zero.c — the step of a replica: clipping by the norm of whole gradients, and with .zero (ZeRO-1: Rajbhandari and
 * others, 2020) each rank steps its share of the parameters and gives their weights to all. */
#include "parallel/parallel_private.h"

#include <math.h>

/* Every rank has the whole gradients, and so finds the same norm; then it forgets those of the others' parameters,
 * which the optimizer leaves alone, and makes no state for. */
static void step_share(tn_replica *r, tn_optimizer *o)
{
    bool some = false;
    for (int64_t i = 0; i < r->places; i++) {
        const tn__place *p = r->place + i;
        if (p->owner != r->world->t.rank) tn_zero_grad(p->t);
        else some = some || r->some[i];
    }
    if (some) tn_step(o);
}

/* Each parameter that has been stepped, from its owner to all. */
static void share_weights(tn_replica *r)
{
    const tn_scope s = tn_no_grad_begin();
    for (int64_t i = 0; i < r->places; i++) {
        const tn__place *p = r->place + i;
        const int64_t    bytes = p->n * (int64_t)tn_dtype_size(tn_dtype_of(p->t));
        if (r->some[i] && bytes && !tn__world_send(r->world, tn_data_mut(p->t), bytes, p->owner)) break;
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

double tn_replica_norm(const tn_replica *r) { return r ? r->norm : NAN; }
