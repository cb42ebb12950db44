/* zero1_step.c — an optimizer that updates a part of the parameters or elements in this process (ZeRO-1), and
 * the state of a parameter as bytes for another process. */
#include "optim/optim_private.h"

tn_clip tn_optimizer_clip(const tn_optimizer *o) { return o ? o->clip : (tn_clip){0}; }

/* ---- one parameter's state --------------------------------------------------------------------------------------- */

typedef struct {
    int64_t steps, from, to; /* number of updates; the states are those of elements from … to - 1 */
    uint8_t has[TN__STATES]; /* 1 for each state that follows */
} head;

static tn__weight *weight_of(const tn_optimizer *o, const tn_tensor *t)
{
    const int64_t i = o && t ? tn__weight_find(o, t) : -1;
    return i < 0 ? NULL : o->weight + i;
}

static int64_t bytes_of(const tn_tensor *t) { return tn_numel(t) * (int64_t)tn_dtype_size(tn_dtype_of(t)); }

/* A state k for elements from … to - 1, with the values of those that w has already. NULL: raised. */
static tn_tensor *state_for(const tn_optimizer *o, const tn__weight *w, int k, int64_t from, int64_t to)
{
    tn__weight    other = *w;
    const int64_t size = w->dtype == TN_F64 ? 8 : 4, lo = tn__max_i64(from, w->from), hi = tn__min_i64(to, w->to);
    other.from = from, other.to = to;
    tn_tensor *t = tn__state_make(o, &other, w->shape);
    if (t && hi > lo)
        memcpy((char *)tn_data_mut(t) + (lo - from) * size, (const char *)tn_data(w->state[k]) + (lo - w->from) * size,
               (size_t)((hi - lo) * size));
    return t;
}

bool tn_optimizer_by_element(const tn_optimizer *o) { return o && o->kind->by_element; }

tn_status tn_optimizer_shard(tn_optimizer *o, const tn_tensor *t, int64_t from, int64_t to)
{
    tn__weight *w = weight_of(o, t);
    tn_tensor  *state[TN__STATES] = {NULL};
    if (tn__blocked()) return tn_error();
    if (!o || !t) return tn_raise(TN_EINVAL, "tn_optimizer_shard: %s is NULL", o ? "the parameter" : "the optimizer");
    if (!w || (from == w->from && to == w->to)) return TN_OK;
    if (from < 0 || to < from || to > w->n)
        return tn_raise(TN_EINDEX, "tn_optimizer_shard: elements %lld to %lld are not within the %lld elements",
                        (long long)from, (long long)to, (long long)w->n);
    if (!o->kind->by_element)
        return tn_raise(TN_EUNSUPPORTED, "tn_optimizer_shard: %s updates whole parameters, which cannot be divided",
                        o->kind->name);
    for (int k = 0; k < TN__STATES; k++)
        if (w->state[k] && !(state[k] = state_for(o, w, k, from, to))) break;
    for (int k = 0; k < TN__STATES; k++) {
        tn_drop(tn_error() == TN_OK ? w->state[k] : state[k]);
        if (tn_error() == TN_OK) w->state[k] = state[k];
    }
    if (tn_error() == TN_OK) w->from = from, w->to = to;
    return tn_error();
}

int64_t tn_optimizer_pack(const tn_optimizer *o, const tn_tensor *t, void *to)
{
    const tn__weight *w = weight_of(o, t);
    int64_t           at = (int64_t)sizeof(head);
    if (!w) return 0;
    head h = {.steps = w->steps, .from = w->from, .to = w->to};
    for (int k = 0; k < TN__STATES; k++) {
        if (!w->state[k]) continue;
        const int64_t bytes = bytes_of(w->state[k]);
        h.has[k] = 1;
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

/* Size in bytes of state k for the elements of h; the whole state if the optimizer is not by_element. */
static int64_t share_bytes(const tn_optimizer *o, const tn__weight *w, int k, const head *h)
{
    return o->kind->by_element ? (h->to - h->from) * (w->dtype == TN_F64 ? 8 : 4) : bytes_of(w->state[k]);
}

tn_status tn_optimizer_unpack(tn_optimizer *o, const tn_tensor *t, const void *from, int64_t bytes)
{
    tn__weight *w = weight_of(o, t);
    head        h;
    int64_t     at = (int64_t)sizeof h;
    if (tn__blocked()) return tn_error();
    if (w && from && bytes >= at) memcpy(&h, from, sizeof h);
    if (!w || !from || bytes < at || h.from < w->from || h.to > w->to || h.from > h.to)
        return tn_raise(TN_EINVAL, "tn_optimizer_unpack: the bytes are not a state of this parameter");
    w->steps = h.steps;
    for (int k = 0; k < TN__STATES; k++) {
        tn_shape shape;
        if (!h.has[k] || !o->kind->state[k].name) continue;
        o->kind->state[k].shape(o, w, &shape);
        if (!w->state[k] && !(w->state[k] = tn__state_make(o, w, shape))) return tn_error();
        const int64_t n = share_bytes(o, w, k, &h), skip = (h.from - w->from) * (w->dtype == TN_F64 ? 8 : 4);
        if (n > bytes - at)
            return tn_raise(TN_EINVAL, "tn_optimizer_unpack: the bytes are not a state of this parameter");
        if (n) memcpy((char *)tn_data_mut(w->state[k]) + skip, (const char *)from + at, (size_t)n);
        at += n;
    }
    return tn_error();
}
