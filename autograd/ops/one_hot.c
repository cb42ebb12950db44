/* one_hot — 1 at the index, 0 elsewhere, along a new last dim; i64, without gradient */
#include "autograd/rooms/room.h"

typedef struct {
    int64_t classes; /* -1: the largest index + 1 */
} args_t;

static bool one_hot_infer(tn_ctx *c)
{
    const tn_tensor *index = c->in[0];
    int64_t          classes = TN_ARG(c, classes);
    if (!tn__need_index(c, 0)) return false;
    if (index->l.shape.n + 1 > TN_MAX_DIMS)
        return tn_infer_fail(c, TN_ESHAPE, "an index of %d dims leaves no dim for the classes", index->l.shape.n);
    if (classes == -1) {
        for (int64_t i = 0, n = tn_numel(index); i < n; i++) classes = tn__max_i64(classes, tn_get_i64(index, i));
        if (classes == -1 && tn_numel(index) == 0)
            return tn_infer_fail(c, TN_EINVAL, "the number of classes of an empty index is unknown; pass it");
        if (classes == INT64_MAX) return tn_infer_fail(c, TN_EINDEX, "index %lld is too large", (long long)classes);
        classes++;
    }
    if (classes < 0)
        return tn_infer_fail(c, TN_EINVAL, "classes is %lld, but must be at least 0, or -1 for the largest index + 1",
                             (long long)classes);
    c->result[0] = (tn_result){TN_I64, index->l.shape};
    c->result[0].shape.d[c->result[0].shape.n++] = classes;
    return tn__shape_check("one_hot", TN_I64, c->result[0].shape) &&
           tn__index_check("one_hot", "index", index, classes);
}

static void ones(int64_t n, void *const *out, const void *const *in, const void *args)
{
    int64_t *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) y[i] = 0;
    y[*(const int64_t *)in[1]] = 1;
}
static void one_hot_forward(tn_ctx *c)
{
    tn_tensor index = *c->in[0]; /* with a last dim of size 1: one index for each row */
    index.l.stride[index.l.shape.n] = 1;
    index.l.shape.d[index.l.shape.n++] = 1;
    tn__rows((tn__kernel_set){NULL, NULL, ones}, -1, TN__LIST(c->out[0]), TN__LIST(c->out[0], &index), NULL);
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{1, {5}}}, .kind = {TN__ARG_INDEX}, .high = {4}, .args = &(args_t){4}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INDEX}, .high = {4}, .args = &(args_t){6}},
    {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INDEX}, .high = {4}, .args = &(args_t){-1}},
    {.in = {{0, {0}}}, .kind = {TN__ARG_INDEX}, .high = {1}, .args = &(args_t){3}},
    {.in = {{2, {0, 3}}}, .kind = {TN__ARG_INDEX}, .high = {1}, .args = &(args_t){3}},
    {.in = {{1, {2}}}, .kind = {TN__ARG_INDEX}, .low = {4}, .high = {5}, .args = &(args_t){4},
     TN__FAILS(TN_EINDEX, "one_hot: index 4 at [0] is outside 0 … 3")},
    {.in = {{1, {0}}}, .kind = {TN__ARG_INDEX}, .args = &(args_t){-1},
     TN__FAILS(TN_EINVAL, "one_hot: the number of classes of an empty index is unknown; pass it")},
    {.in = {{1, {2}}}, .kind = {TN__ARG_INDEX}, .args = &(args_t){-2},
     TN__FAILS(TN_EINVAL, "one_hot: classes is -2, but must be at least 0, or -1 for the largest index + 1")},
    {.in = {{1, {2}}}, .args = &(args_t){3}, TN__FAILS(TN_EDTYPE, "one_hot: indices must be i64 or i32, got f32")},
};
/* clang-format on */

const tn_op tn__op_one_hot = {TN__ROOM("one_hot", TN_AS_IS), .inputs = 1, .args_size = sizeof(args_t),
                              .infer = one_hot_infer, .forward = one_hot_forward};
TN__SAMPLES(one_hot, samples);

tn_tensor *tn_one_hot(tn_tensor *index, int64_t classes)
{
    return tn_apply_args(&tn__op_one_hot, &(args_t){classes}, index);
}
