/* share.c — an optimizer of which this process steps a share: a step that may have nothing to do, and the state of one
 * parameter as bytes, which goes to another process, or is forgotten here. */
#include "optim/optim_private.h"

tn_clip tn_optimizer_clip(const tn_optimizer *o) { return o ? o->clip : (tn_clip){0}; }

tn_status tn_step_share(tn_optimizer *o)
{
    if (tn__blocked()) return tn_error();
    if (!o) return tn_raise(TN_EINVAL, "tn_step_share: the optimizer is NULL");
    for (int64_t i = 0; i < o->weights; i++)
        if (tn__gradient(o->weight[i].t)) return tn_step(o);
    if (o->follower) tn__schedule_ready(o->follower);
    if (tn_error() != TN_OK) return tn_error();
    o->steps++, o->norm = NAN;
    if (o->follower) tn_schedule_step(o->follower);
    return tn_error();
}

/* ---- one parameter's state --------------------------------------------------------------------------------------- */

typedef struct {
    int64_t steps;
    uint8_t there[TN__STATES]; /* which states follow */
} head;

static tn__weight *weight_of(const tn_optimizer *o, const tn_tensor *t)
{
    const int64_t i = o && t ? tn__weight_find(o, t) : -1;
    return i < 0 ? NULL : o->weight + i;
}

static int64_t bytes_of(const tn_tensor *t) { return tn_numel(t) * (int64_t)tn_dtype_size(tn_dtype_of(t)); }

int64_t tn_optimizer_pack(const tn_optimizer *o, const tn_tensor *t, void *to)
{
    const tn__weight *w = weight_of(o, t);
    int64_t           at = (int64_t)sizeof(head);
    if (!w) return 0;
    head h = {.steps = w->steps};
    for (int k = 0; k < TN__STATES; k++) {
        if (!w->state[k]) continue;
        const int64_t bytes = bytes_of(w->state[k]);
        h.there[k] = 1;
        if (to && bytes) memcpy((char *)to + at, tn_data(w->state[k]), (size_t)bytes);
        at += bytes;
    }
    if (to) memcpy(to, &h, sizeof h);
    return at;
}

void tn_optimizer_forget(tn_optimizer *o, const tn_tensor *t)
{
    tn__weight *w = weight_of(o, t);
    if (!w) return;
    for (int k = 0; k < TN__STATES; k++) tn_drop(w->state[k]), w->state[k] = NULL;
    w->steps = 0;
}

tn_status tn_optimizer_unpack(tn_optimizer *o, const tn_tensor *t, const void *from, int64_t bytes)
{
    tn__weight *w = weight_of(o, t);
    head        h;
    int64_t     at = (int64_t)sizeof h;
    if (tn__blocked()) return tn_error();
    if (!w || !from || bytes < at) return tn_raise(TN_EINVAL, "tn_optimizer_unpack: these bytes are no state of it");
    memcpy(&h, from, sizeof h);
    tn_optimizer_forget(o, t);
    w->steps = h.steps;
    for (int k = 0; k < TN__STATES; k++) {
        tn_shape shape;
        if (!h.there[k] || !o->kind->state[k].name) continue;
        o->kind->state[k].shape(o, w, &shape);
        if (!(w->state[k] = tn__state_make(o, w, shape))) return tn_error();
        const int64_t n = bytes_of(w->state[k]);
        if (n > bytes - at) return tn_raise(TN_EINVAL, "tn_optimizer_unpack: these bytes are no state of it");
        if (n) memcpy(tn_data_mut(w->state[k]), (const char *)from + at, (size_t)n);
        at += n;
    }
    return tn_error();
}
