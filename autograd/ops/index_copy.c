/* index_copy — x with the slices at a 1-d index along one dim replaced by those of src; no index may occur twice
 *
 *   gx = gy with zeros at the index (index_copy)        gsrc = the slices of gy at the index (index_select) */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

/* Of one index twice, the last slice would win, and the gradient would be wrong. */
static bool distinct(const tn_ctx *c, int64_t limit)
{
    const int64_t n = tn_shape_numel(c->in[1]->l.shape);
    bool         *had = n > 1 ? tn__mem_zeroed((size_t)limit) : NULL;
    int64_t       i = 0;
    if (n < 2 || !had) return n < 2;
    while (i < n && !had[tn_get_i64(c->in[1], i)]) had[tn_get_i64(c->in[1], i++)] = true;
    tn__mem_put(had, (size_t)limit);
    return i == n || tn_infer_fail(c, TN_EINVAL, "index %lld occurs twice, the second time at [%lld]",
                                   (long long)tn_get_i64(c->in[1], i), (long long)i);
}

static bool index_copy_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1], *src = c->in[2];
    int              dim = TN_ARG(c, dim);
    char             a[192], b[192];
    if (!tn__wrap_dim("index_copy", &dim, x->l.shape.n) || !tn__need_index(c, 1)) return false;
    if (index->l.shape.n != 1 || !x->l.shape.n)
        return tn_infer_fail(c, TN_ESHAPE, "x must have a dim, and the index must be 1-d, got %s and %s",
                             tn_shape_text(x->l.shape, a, sizeof a), tn_shape_text(index->l.shape, b, sizeof b));
    tn_shape want = x->l.shape;
    want.d[dim] = index->l.shape.d[0];
    if (!tn_shape_equal(src->l.shape, want))
        return tn_infer_fail(c, TN_ESHAPE, "src is %s, but for this x and index it must be %s",
                             tn_shape_text(src->l.shape, a, sizeof a), tn_shape_text(want, b, sizeof b));
    return tn_infer_like(c, 0, 0) && tn__index_check("index_copy", "index", index, x->l.shape.d[dim]) &&
           distinct(c, x->l.shape.d[dim]);
}

/* Slice i of t along dim, as a view on the stack. */
static tn_tensor slice(const tn_tensor *t, int dim, int64_t i)
{
    tn__layout l = t->l;
    l.offset += i * l.stride[dim], l.shape.d[dim] = 1;
    return tn__stack_view(t, &l);
}
static void index_copy_forward(tn_ctx *c)
{
    const tn_tensor *in[] = {c->in[1], c->in[2]};
    tn_tensor *apart[2] = {NULL}; /* copies of inputs that share the memory of x: slices are written out of order */
    int        dim = TN_ARG(c, dim);
    tn__wrap_dim("index_copy", &dim, c->in[0]->l.shape.n);
    if (c->out[0] != c->in[0]) tn__copy(c->out[0], c->in[0]); /* otherwise in place */
    for (int k = 0; k < 2; k++)
        if (in[k]->storage == c->out[0]->storage && (in[k] = apart[k] = tn__new_owned(in[k]->dtype, in[k]->l.shape)))
            tn__copy(apart[k], c->in[k + 1]);
    for (int64_t i = 0; in[0] && in[1] && i < in[0]->l.shape.d[0]; i++) {
        tn_tensor       to = slice(c->out[0], dim, tn_get_i64(in[0], i));
        const tn_tensor from = slice(in[1], dim, i);
        tn__copy(&to, &from);
    }
    tn_drop(apart[0]), tn_drop(apart[1]);
}
static void index_copy_backward_ops(tn_back *b)
{
    if (b->need[0])
        b->gx[0] =
            tn_index_copy(b->gy[0], TN_ARG(b, dim), b->in[1], tn_zeros_of(tn_dtype_of(b->gy[0]), b->in_shape[2]));
    if (b->need[2]) b->gx[2] = tn_index_select(b->gy[0], TN_ARG(b, dim), b->in[1]);
}

/* clang-format off */
#define INDEX {TN__ARG_REAL, TN__ARG_INDEX, TN__ARG_REAL}
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {1, {1}}, {2, {1, 4}}}, .kind = INDEX, .high = {2, 3, 2}, .low = {-2, 0, -2},
     .args = &(args_t){0}},
    {.in = {{3, {2, 3, 4}}, {1, {1}}, {3, {2, 3, 1}}}, .kind = INDEX, .high = {2, 4, 2}, .low = {-2, 0, -2},
     .args = &(args_t){-1}},
    {.in = {{2, {3, 4}}, {1, {0}}, {2, {0, 4}}}, .kind = INDEX, .high = {2, 3, 2}, .low = {-2, 0, -2},
     .args = &(args_t){0}},
    {.in = {{2, {3, 4}}, {1, {2}}, {2, {2, 4}}}, .kind = INDEX, .low = {0, 2}, .high = {0, 3}, .args = &(args_t){0},
     TN__FAILS(TN_EINVAL, "index_copy: index 2 occurs twice, the second time at [1]")},
    {.in = {{2, {3, 4}}, {1, {1}}, {2, {1, 4}}}, .kind = INDEX, .low = {0, 3}, .high = {0, 4}, .args = &(args_t){0},
     TN__FAILS(TN_EINDEX, "index_copy: index 3 at [0] is outside 0 … 2")},
    {.in = {{2, {3, 4}}, {1, {1}}, {2, {2, 4}}}, .kind = INDEX, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "index_copy: src is [2, 4], but for this x and index it must be [1, 4]")},
    {.in = {{2, {3, 4}}, {0, {0}}, {2, {1, 4}}}, .kind = INDEX, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "index_copy: x must have a dim, and the index must be 1-d, got [3, 4] and []")},
};
/* clang-format on */

const tn_op tn__op_index_copy = {TN__ROOM("index_copy", TN_AS_IS),
                                 .inputs = 3,
                                 .args_size = sizeof(args_t),
                                 .saves = TN_SAVE_IN(1),
                                 .infer = index_copy_infer,
                                 .forward = index_copy_forward,
                                 .backward_ops = index_copy_backward_ops,
                                 .inplace = true};
TN__SAMPLES(index_copy, samples);

tn_tensor *tn_index_copy(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
{
    return tn_apply_args(&tn__op_index_copy, &(args_t){dim}, x, index, src);
}
tn_tensor *tn_index_copy_(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
{
    return tn_apply_args_(&tn__op_index_copy, &(args_t){dim}, x, index, src);
}
