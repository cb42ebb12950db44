/* sort, topk — the k first elements of a row in order, and their indices; sort has k = n
 *
 *   gx = zeros, with gy at those indices (scatter_add)
 *
 * A heap holds the k best elements found, the worst on top; at the end it is emptied, the worst first, into the row
 * from its end. Equal elements keep their order, and NaN counts as the largest number. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    int64_t k; /* -1: all */
    int     dim;
    bool    descending;
} args_t;
typedef struct {
    int64_t k;
    bool    descending;
} order;
#define TN__TEMPLATE "autograd/ops/sort.c"
#define TN__WITH_I64
#include "core/real.h"

static int64_t length(const tn_ctx *c, int *dim)
{
    *dim = TN_ARG(c, dim);
    if (!tn__wrap_dim(c->op->name, dim, c->in[0]->l.shape.n)) return -1;
    return c->in[0]->l.shape.n ? c->in[0]->l.shape.d[*dim] : 1;
}

static bool sort_infer(tn_ctx *c)
{
    int     dim;
    int64_t n = length(c, &dim), k = TN_ARG(c, k);
    if (n < 0) return false;
    if (k < -1 || k > n)
        return tn_infer_fail(c, TN_EINVAL, "k is %lld, but dim %d has %lld elements", (long long)k, dim, (long long)n);
    tn_infer_like(c, 0, 0);
    if (c->result[0].shape.n && k >= 0) c->result[0].shape.d[dim] = k;
    else if (k == 0) return tn_infer_fail(c, TN_EINVAL, "k is 0, but a 0-d tensor has no dim to shorten");
    c->result[1] = (tn_result){TN_I64, c->result[0].shape};
    return true;
}
static void sort_forward(tn_ctx *c)
{
    int     dim;
    int64_t n = length(c, &dim), k = TN_ARG(c, k);
    order   o = {k < 0 ? n : k, TN_ARG(c, descending)};
    tn__rows(TN__NUMBERS(first), dim, TN__LIST(c->out[0], c->out[1]), TN__LIST(c->in[0]), &o);
}
static void sort_backward(tn_back *b)
{
    tn_tensor *buffer = tn__grad_buffer(b, 0);
    int        dim = TN_ARG(b, dim);
    tn__wrap_dim(b->op->name, &dim, b->in_shape[0].n);
    if (buffer && b->gy[0]) tn__scatter(buffer, dim, b->out[1], b->gy[0], TN__ADD);
}
static void sort_backward_ops(tn_back *b)
{
    if (b->gy[0])
        b->gx[0] = tn_scatter_add(tn_zeros_of(b->in_dtype[0], b->in_shape[0]), TN_ARG(b, dim), b->out[1], b->gy[0]);
}

static const tn__sample sort_samples[] = {
    {.in = {{1, {7}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){-1, 0, false}},
    {.in = {{2, {3, 5}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){-1, -1, true}},
    {.in = {{3, {2, 4, 3}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){-1, 1, false}},
    {.in = {{0, {0}}}, .args = &(args_t){-1, 0, false}},
    {.in = {{2, {3, 0}}}, .args = &(args_t){-1, 1, true}},
    {.in = {{2, {2, 6}}}, .kind = {TN__ARG_INT}, .high = {4}, .args = &(args_t){-1, 1, true}},
    {.in = {{2, {2, 3}}},
     .args = &(args_t){-1, 2, false},
     TN__FAILS(TN_EINDEX, "sort: dim 2 is out of range for a 2-d tensor")},
};
static const tn__sample topk_samples[] = {
    {.in = {{1, {7}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){3, 0, true}},
    {.in = {{2, {3, 5}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){2, -1, false}},
    {.in = {{3, {2, 4, 3}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){1, 1, true}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_DISTINCT}, .args = &(args_t){4, 1, true}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){0, 1, true}},
    {.in = {{0, {0}}}, .args = &(args_t){1, 0, true}},
    {.in = {{2, {2, 3}}},
     .args = &(args_t){4, 1, true},
     TN__FAILS(TN_EINVAL, "topk: k is 4, but dim 1 has 3 elements")},
    {.in = {{0, {0}}},
     .args = &(args_t){0, 0, true},
     TN__FAILS(TN_EINVAL, "topk: k is 0, but a 0-d tensor has no dim to shorten")},
};

#define ROOM                                                                                              \
    .inputs = 1, .outputs = 2, .args_size = sizeof(args_t), .saves = TN_SAVE_OUT(1), .infer = sort_infer, \
    .forward = sort_forward, .backward = sort_backward, .backward_ops = sort_backward_ops
const tn_op tn__op_sort = {TN__ROOM("sort", TN_AS_IS), ROOM};
TN__SAMPLES(sort, sort_samples);
const tn_op tn__op_topk = {TN__ROOM("topk", TN_AS_IS), ROOM};
TN__SAMPLES(topk, topk_samples);

static tn_pair pair(const tn_op *op, tn_tensor *x, args_t a)
{
    tn_tensor *y[2];
    tn_op_call(op, 1, &x, 2, y, &a);
    return (tn_pair){y[0], y[1]};
}
tn_pair    tn_sort_run(tn_sort_args a) { return pair(&tn__op_sort, a.x, (args_t){-1, a.dim, a.descending}); }
tn_tensor *tn_argsort_run(tn_sort_args a) { return tn_sort_run(a).indices; }
tn_pair    tn_topk_run(tn_topk_args a)
{
    if (a.k < 0 && !tn_error())
        return tn_raise(TN_EINVAL, "topk: k is %lld, but must be at least 0", (long long)a.k), (tn_pair){NULL, NULL};
    return pair(&tn__op_topk, a.x, (args_t){a.k, a.dim, !a.smallest});
}

#else /* ================================================================= kernels: contiguous rows, one dtype */

/* True if element a comes before element b. */
static inline bool TN__(before)(const TN__REAL *x, int64_t a, int64_t b, bool descending)
{
    const TN__REAL u = x[a], v = x[b];
#if TN__IS_REAL
    const bool     nu = u != u, nv = v != v;
    if (nu || nv) return nu && nv ? a < b : descending ? nu : nv;
#endif
    if (u == v) return a < b;
    return descending ? u > v : u < v;
}

/* Restores the heap below i: the element that comes last in the order is on top. */
static void TN__(sift)(const TN__REAL *x, int64_t *heap, int64_t i, int64_t n, bool descending)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && TN__(before)(x, heap[child], heap[child + 1], descending)) child++;
        if (!TN__(before)(x, heap[i], heap[child], descending)) return;
        int64_t t = heap[i];
        heap[i] = heap[child], heap[child] = t;
    }
}

static void TN__(first)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const order    *o = args;
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    int64_t        *heap = out[1];
    if (o->k == 0) return;
    for (int64_t i = 0; i < o->k; i++) heap[i] = i;
    for (int64_t i = o->k / 2; i-- > 0;) TN__(sift)(x, heap, i, o->k, o->descending);
    for (int64_t i = o->k; i < n; i++)
        if (TN__(before)(x, i, heap[0], o->descending)) heap[0] = i, TN__(sift)(x, heap, 0, o->k, o->descending);
    for (int64_t left = o->k - 1; left > 0; left--) {
        int64_t t = heap[0];
        heap[0] = heap[left], heap[left] = t;
        TN__(sift)(x, heap, 0, left, o->descending);
    }
    for (int64_t i = 0; i < o->k; i++) y[i] = x[heap[i]];
}
#endif
