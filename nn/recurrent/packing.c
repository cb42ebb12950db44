/* packing.c — packs sequences of different length by time step, sorted by length, so that no step computes padding (see
 * tn_steps_args in autograd/steps.h). */
#include "nn/recurrent/rnn_private.h"

static bool lengths_fit(const char *who, const tn_tensor *lengths, int64_t batch, int64_t length)
{
    char           text[192];
    const tn_dtype dt = tn_dtype_of(lengths);
    const tn_shape s = tn_shape_of(lengths);
    if (dt != TN_I64 && dt != TN_I32)
        return tn_raise_false(TN_EDTYPE, "%s: lengths must be i64 or i32, got %s", who, tn_dtype_name(dt));
    if (s.n != 1 || s.d[0] != batch)
        return tn_raise_false(TN_ESHAPE, "%s: lengths %s must be [B] = [%lld]: one per sequence", who,
                              tn_shape_text(s, text, sizeof text), (long long)batch);
    for (int64_t i = 0; i < batch; i++) {
        const int64_t n = tn_get_i64(lengths, i);
        if (n < 0 || n > length)
            return tn_raise_false(TN_EINDEX,
                                  "%s: lengths[%lld] is %lld, but x has %lld steps; a length must be from 0 to %lld",
                                  who, (long long)i, (long long)n, (long long)length, (long long)length);
    }
    return true;
}

static tn_tensor *indices(int64_t n, int64_t **to)
{
    tn_tensor *t = tn_empty_of(TN_I64, TN_SHAPE(n));
    *to = tn_data_mut(t);
    return t;
}

/* Sorts the sequences by length, the longest first; equal lengths keep their order. */
static bool sort(tn__by_steps *p, const tn_tensor *lengths, bool time_first)
{
    int64_t *from, *order, *place;
    p->bytes = (size_t)(2 * p->length + 1) * sizeof *p->sizes;
    p->order = indices(p->batch, &order), p->place = indices(p->batch, &place), p->from = indices(p->packed, &from);
    if (!p->from || !p->order || !p->place || !(p->sizes = tn_mem_get(p->bytes))) return false;
    int64_t *const next = p->sizes + p->length; /* counting sort: next free place for each length */
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t t = tn_get_i64(lengths, b); t-- > 0;) p->sizes[t]++;
    for (int64_t n = 0; n <= p->length; n++) next[n] = n < p->length ? p->sizes[n] : 0;
    for (int64_t b = 0; b < p->batch; b++) {
        place[b] = next[tn_get_i64(lengths, b)]++;
        order[place[b]] = b;
    }
    for (int64_t t = 0, at = 0; t < p->steps; at += p->sizes[t++])
        for (int64_t i = 0; i < p->sizes[t]; i++)
            from[at + i] = time_first ? t * p->batch + order[i] : order[i] * p->length + t;
    return true;
}

bool tn__packing_begin(tn__by_steps *p, const char *who, int64_t batch, int64_t length, const tn_tensor *lengths,
                       bool time_first)
{
    *p = (tn__by_steps){.batch = batch, .length = length, .steps = batch ? length : 0, .packed = batch * length};
    if (!lengths) return true;
    if (!lengths_fit(who, lengths, batch, length)) return false;
    p->steps = p->packed = 0;
    for (int64_t b = 0; b < batch; b++) {
        const int64_t n = tn_get_i64(lengths, b);
        p->packed += n, p->steps = n > p->steps ? n : p->steps;
    }
    p->ragged = p->packed < batch * length;
    if (p->ragged) return sort(p, lengths, time_first);
    p->steps = batch ? length : 0;
    return true;
}

void tn__packing_end(tn__by_steps *p)
{
    if (p->sizes) tn_mem_put(p->sizes, p->bytes);
    p->sizes = NULL;
}

tn_tensor *tn__pack(const tn__by_steps *p, tn_tensor *x, bool time_first)
{
    const int64_t n = x ? tn_size(x, 2) : 0;
    if (!p->ragged) return tn_reshape(time_first ? x : tn_transpose(x, 0, 1), TN_SHAPE(p->packed, n));
    return tn_index_select(tn_reshape(x, TN_SHAPE(p->batch * p->length, n)), 0, p->from);
}

tn_tensor *tn__unpack(const tn__by_steps *p, tn_tensor *y, bool time_first)
{
    const int64_t n = y ? tn_size(y, 1) : 0, t = p->length, b = p->batch;
    if (p->ragged) y = tn_index_add(tn_zeros_of(tn_dtype_of(y), TN_SHAPE(b * t, n)), 0, p->from, y);
    if (p->ragged && !time_first) return tn_reshape(y, TN_SHAPE(b, t, n));
    y = tn_reshape(y, TN_SHAPE(t, b, n));
    return time_first ? y : tn_contiguous(tn_transpose(y, 0, 1)); /* sequences are contiguous, as callers read them */
}

tn_tensor *tn__pack_states(const tn__by_steps *p, tn_tensor *h)
{
    return p->ragged ? tn_index_select(h, -2, p->order) : h;
}
tn_tensor *tn__unpack_states(const tn__by_steps *p, tn_tensor *h)
{
    return p->ragged ? tn_index_select(h, -2, p->place) : h;
}

/* Row i of each step belongs to the same sequence, so all steps use row i of the mask. */
tn_tensor *tn__pack_locked(const tn__by_steps *p, tn_tensor *x, double chance)
{
    const int64_t n = x ? tn_size(x, 1) : 0;
    int64_t      *row;
    tn_tensor    *mask = tn_dropout(tn_ones_of(tn_dtype_of(x), TN_SHAPE(p->batch, n)), chance);
    if (!p->ragged)
        return tn_reshape(tn_mul(tn_reshape(x, TN_SHAPE(p->steps, p->batch, n)), mask), TN_SHAPE(p->packed, n));
    tn_tensor *of = indices(p->packed, &row);
    if (!of) return NULL;
    for (int64_t t = 0, at = 0; t < p->steps; at += p->sizes[t++])
        for (int64_t i = 0; i < p->sizes[t]; i++) row[at + i] = i;
    return tn_mul(x, tn_index_select(mask, 0, of));
}
