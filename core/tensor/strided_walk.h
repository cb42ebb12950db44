/* strided_walk.h — iteration over several strided operands at once: their common dims, coalesced. For the skeletons. */
#ifndef TENON_CORE_TENSOR_STRIDED_WALK_H
#define TENON_CORE_TENSOR_STRIDED_WALK_H

#include "core/tensor/convert.h"
#include "core/tensor/tensor.h"

enum { TN__MAX_OPERANDS = 12 };

typedef struct {
    int     nd; /* at least 1 */
    int64_t size[TN_MAX_DIMS];
    int     nops;
    int64_t stride[TN__MAX_OPERANDS][TN_MAX_DIMS]; /* in elements */
} tn__walk;

/* Adds a dim after the others, merging it with the last where every operand's strides allow. */
static inline void tn__walk_dim(tn__walk *w, int64_t size, const int64_t *stride)
{
    if (size == 1) return;
    if (w->nd) {
        int  last = w->nd - 1;
        bool merge = true;
        for (int o = 0; o < w->nops && merge; o++) merge = w->stride[o][last] == stride[o] * size;
        if (merge) {
            w->size[last] *= size;
            for (int o = 0; o < w->nops; o++) w->stride[o][last] = stride[o];
            return;
        }
    }
    w->size[w->nd] = size;
    for (int o = 0; o < w->nops; o++) w->stride[o][w->nd] = stride[o];
    w->nd++;
}

/* A walk over no dims is a walk over one element. */
static inline void tn__walk_done(tn__walk *w)
{
    if (w->nd) return;
    w->nd = 1, w->size[0] = 1;
    for (int o = 0; o < w->nops; o++) w->stride[o][0] = 0;
}

/* The stride of t in dim i of a space of n dims that t broadcasts to. */
static inline int64_t tn__stride_in(const tn_tensor *t, int i, int n)
{
    int k = i - (n - t->l.shape.n);
    return k < 0 || t->l.shape.d[k] == 1 ? 0 : t->l.stride[k];
}

/* Offset of element `at` of the walk in operand o; sets index to its indices. */
static inline int64_t tn__walk_at(const tn__walk *w, int o, int64_t at, int64_t *index)
{
    int64_t offset = 0;
    for (int i = w->nd - 1; i >= 0; i--) {
        index[i] = i ? at % w->size[i] : at;
        at /= w->size[i];
        offset += index[i] * w->stride[o][i];
    }
    return offset;
}

/* Copies elements [at, at + n) of operand o from memory into a dense buffer of type ddt (out = false), or back. */
static inline void tn__walk_copy(const tn__walk *w, int o, int64_t at, int64_t n, char *base, tn_dtype dt, void *dense,
                                 tn_dtype ddt, bool out)
{
    int64_t index[TN_MAX_DIMS], last = w->nd - 1, step = w->stride[o][last], done = 0;
    int64_t offset = tn__walk_at(w, o, at, index), size = (int64_t)tn__dtype_bytes(dt),
            dsize = (int64_t)tn__dtype_bytes(ddt);
    while (done < n) {
        int64_t run = tn__min_i64(n - done, w->size[last] - index[last]);
        void   *strided = base + offset * size, *flat = (char *)dense + done * dsize;
        if (out) tn__convert(run, strided, dt, step, flat, ddt, 1);
        else tn__convert(run, flat, ddt, 1, strided, dt, step);
        done += run;
        index[last] += run, offset += run * step;
        for (int64_t i = last; i > 0 && index[i] == w->size[i]; i--) { /* carry */
            offset += w->stride[o][i - 1] - index[i] * w->stride[o][i];
            index[i] = 0, index[i - 1]++;
        }
    }
}

#endif
