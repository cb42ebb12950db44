/* gemm_tensors.c — matrix products of tensors: passes their strides and batches to tn__gemm_run. */
#include "core/products/gemm.h"
#include "core/tensor/layout.h"

static tn__gemm_call call_of(const tn_tensor *a, const tn_tensor *b, const tn_tensor *c)
{
    const tn__layout *l = &c->l;
    const int         nd = l->shape.n, an = a->l.shape.n, bn = b->l.shape.n;
    tn__gemm_call     g = {.dtype = a->dtype, .ctype = c->dtype, .alpha = 1, .dims = nd - 2};
    g.m = l->shape.d[nd - 2], g.n = l->shape.d[nd - 1], g.k = a->l.shape.d[an - 1];
    g.a = tn__ptr(a), g.a_row = a->l.stride[an - 2], g.a_col = a->l.stride[an - 1];
    g.b = tn__ptr(b), g.b_row = b->l.stride[bn - 2], g.b_col = b->l.stride[bn - 1];
    g.c = tn__ptr(c), g.c_row = l->stride[nd - 2], g.c_col = l->stride[nd - 1];
    for (int d = 0; d < g.dims; d++) {
        const int da = d - nd + an, db = d - nd + bn; /* the dims of a and b that correspond to c's */
        g.batch[d] = l->shape.d[d], g.c_batch[d] = l->stride[d];
        g.a_batch[d] = da >= 0 && a->l.shape.d[da] != 1 ? a->l.stride[da] : 0;
        g.b_batch[d] = db >= 0 && b->l.shape.d[db] != 1 ? b->l.stride[db] : 0;
    }
    return g;
}

static tn__gemm_side side_of(const tn_tensor *t, const tn_tensor *c)
{
    tn__gemm_side s = {0};
    if (!t) return s;
    const tn__layout l = tn__layout_expand(&t->l, c->l.shape);
    const int        nd = l.shape.n;
    s.at = tn__ptr(t), s.row = l.stride[nd - 2], s.col = l.stride[nd - 1];
    for (int d = 0; d < nd - 2; d++) s.batch[d] = l.stride[d];
    return s;
}

void tn__gemm_onto(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, const tn_tensor *old,
                   tn_tensor *c)
{
    if (tn__blocked()) return;
    tn__gemm_call g = call_of(a, b, c);
    g.alpha = alpha, g.beta = beta, g.old = side_of(old, c);
    tn__gemm_run(&g);
}

void tn__gemm(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, tn_tensor *c)
{
    tn__gemm_onto(alpha, a, b, beta, NULL, c);
}

void tn__gemm_with(const tn_tensor *a, const tn_tensor *b, tn_tensor *c, const tn__epilogue *e)
{
    if (tn__blocked()) return;
    tn__gemm_call g = call_of(a, b, c);
    g.storage =
        b->storage->borrowed || e->passing ? NULL : b->storage; /* borrowed memory may change without a new version */
    g.bias = side_of(e->bias, c), g.pre = side_of(e->pre, c), g.old = side_of(e->more, c);
    g.act = e->act, g.beta = e->more ? 1 : 0;
    tn__gemm_run(&g);
}
