/* index_put — x[index_0, …, index_{n-1}] = values, or +=, *=, min, max; made of scatter on x seen as a matrix, whose
 * rows are the indexed dims joined */
#include "autograd/rooms/room.h"

typedef struct {
    tn_scatter_mode how;
} args_t;

enum { FIRST = 2 }; /* inputs: x, values, the indices */

/* Stores the shape of the broadcast indices followed by x's other dims; returns the number of these, or -1 (raised). */
static int target_shape(const char *op, const tn_shape x, int n, tn_tensor *const *index, tn_shape *s)
{
    *s = (tn_shape){.n = 0};
    for (int i = 0; i < n; i++)
        if (!tn__broadcast(op, *s, index[i]->l.shape, s)) return -1;
    if (s->n + x.n - n > TN_MAX_DIMS)
        return tn_raise(TN_ESHAPE, "%s: the values would have %d dims, more than %d", op, s->n + x.n - n, TN_MAX_DIMS),
               -1;
    for (int i = n; i < x.n; i++) s->d[s->n++] = x.d[i];
    return x.n - n;
}

static bool index_put_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *values = c->in[1];
    const int        n = c->nin - FIRST;
    char             a[192], b[192];
    tn_shape         s;
    if (n < 1 || n > x->l.shape.n)
        return tn_infer_fail(c, TN_ESHAPE,
                             "%d indices for a tensor of %d dims; it takes one for each of the first dims", n,
                             x->l.shape.n);
    for (int i = 0; i < n; i++)
        if (!tn__need_index(c, FIRST + i)) return false;
    if (target_shape("index_put", x->l.shape, n, c->in + FIRST, &s) < 0) return false;
    if (!tn__broadcastable(values->l.shape, s))
        return tn_infer_fail(c, TN_ESHAPE, "values %s do not broadcast to %s, the shape of x at these indices",
                             tn_shape_text(values->l.shape, a, sizeof a), tn_shape_text(s, b, sizeof b));
    if (values->dtype != x->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "x is %s and the values %s; convert one with tn_to", tn_dtype_name(x->dtype),
                             tn_dtype_name(values->dtype));
    for (int i = 0; i < n; i++)
        if (!tn__index_check("index_put", "index", c->in[FIRST + i], x->l.shape.d[i])) return false;
    return tn_infer_like(c, 0, 0);
}

static void index_put_compose(tn_ctx *c)
{
    const tn_shape x = c->in[0]->l.shape;
    const int      n = c->nin - FIRST;
    tn_shape       s, rows = {.n = 2, .d = {1, 1}}, moved = rows;
    tn_tensor     *flat = NULL;
    const int      rest = target_shape("index_put", x, n, c->in + FIRST, &s);
    for (int i = 0; i < x.n; i++) rows.d[i >= n] *= x.d[i];
    for (int i = 0; i < s.n; i++) moved.d[i >= s.n - rest] *= s.d[i];
    for (int i = 0; i < n; i++) {
        tn_tensor *index = tn_to(c->in[FIRST + i], TN_I64);
        flat = flat ? tn_add(tn_mul_scalar(flat, (double)x.d[i]), index) : index;
    }
    flat = tn_expand(tn_reshape(flat, TN_SHAPE(moved.d[0], 1)), moved);
    tn_tensor *values = tn_reshape(tn_expand(c->in[1], s), moved), *y = tn_reshape(c->in[0], rows);
    c->out[0] = tn_reshape(tn_scatter_reduce(y, 0, flat, values, TN_ARG(c, how)), x);
}

#define PUT(how, count)                                                                                 \
    .nin = FIRST + (count), .nout = 1, .kind = {0, 0, TN__ARG_INDEX, TN__ARG_INDEX}, .low = {0.5, 0.5}, \
    .high = {1.5, 1.5, 3, 4}, .args = &(args_t)                                                         \
    {                                                                                                   \
        TN_SCATTER_##how                                                                                \
    }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {1, {5}}, {1, {5}}, {1, {5}}}, PUT(SET, 2)},
    {.in = {{3, {3, 4, 2}}, {3, {2, 5, 2}}, {1, {5}}, {2, {2, 1}}}, PUT(SUM, 2)},
    {.in = {{3, {3, 4, 2}}, {1, {2}}, {1, {4}}}, PUT(PROD, 1)},
    {.in = {{2, {3, 4}}, {2, {5, 1}}, {1, {5}}}, PUT(AMAX, 1)},
    {.in = {{1, {3}}, {0, {0}}, {0, {0}}}, PUT(AMIN, 1)},
    {.in = {{2, {3, 4}}, {2, {0, 4}}, {1, {0}}}, PUT(SET, 1)},
    {.in = {{2, {3, 0}}, {0, {0}}, {1, {2}}}, PUT(SUM, 1)},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}, {1, {2}}}, PUT(SET, 2),
     TN__FAILS(TN_ESHAPE, "index_put: 2 indices for a tensor of 1 dims; it takes one for each of the first dims")},
    {.in = {{2, {2, 4}}, {1, {2}}, {1, {3}}}, PUT(SET, 1),
     TN__FAILS(TN_ESHAPE, "index_put: values [2] do not broadcast to [3, 4], the shape of x at these indices")},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}}, .nin = 3, .nout = 1, .kind = {0, 0, TN__ARG_INDEX}, .low = {0, 0, 3},
     .high = {1, 1, 4}, .args = &(args_t){TN_SCATTER_SET},
     TN__FAILS(TN_EINDEX, "index_put: index 3 at [0] is outside 0 … 2")},
};
/* clang-format on */

const tn_op tn__op_index_put = {TN__ROOM("index_put", TN_JOIN), .inputs = TN_ANY, .args_size = sizeof(args_t),
                                .infer = index_put_infer, .compose = index_put_compose};
TN__SAMPLES(index_put, samples);

tn_tensor *tn_index_put(tn_tensor *x, int n, tn_tensor *const *index, tn_tensor *values, tn_scatter_mode how)
{
    tn_tensor *in[FIRST + TN_MAX_DIMS] = {x, values};
    if (tn__blocked() || !tn__scatter_mode_valid("index_put", how)) return NULL;
    if (n < 1 || n > TN_MAX_DIMS || !index)
        return tn_raise_null(TN_EINVAL, "index_put: needs 1 to %d indices, got %d", TN_MAX_DIMS, index ? n : 0);
    for (int i = 0; i < n; i++) in[FIRST + i] = index[i];
    return tn_op_apply(&tn__op_index_put, &(args_t){how}, FIRST + n, in);
}
