/* pad — adds elements of one value around x, or removes elements where the counts are negative
 *
 *   gx = gy padded by the negated counts, with 0 */
#include "autograd/rooms/room.h"

typedef struct {
    tn_shape before, after;
    double   value;
} args_t;

static bool pad_infer(tn_ctx *c)
{
    const tn_shape x = c->in[0]->l.shape, before = TN_ARG(c, before), after = TN_ARG(c, after);
    if (before.n != x.n || after.n != x.n)
        return tn_infer_fail(c, TN_EINVAL,
                             "needs one entry for each dim: the tensor has %d dims, before has %d entries, after %d",
                             x.n, before.n, after.n);
    if (!tn__fits("pad", "value", c->in[0]->dtype, TN_ARG(c, value))) return false;
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape = x;
    for (int i = 0; i < x.n; i++) {
        int64_t size;
        if (before.d[i] < -x.d[i] || after.d[i] < -x.d[i] ||
            !tn__add_i64(x.d[i] + tn__min_i64(before.d[i], 0), after.d[i], &size) ||
            !tn__add_i64(size, tn__max_i64(before.d[i], 0), &size) || size < 0)
            return tn_infer_fail(c, TN_ESHAPE, "%lld before and %lld after do not fit dim %d of size %lld",
                                 (long long)before.d[i], (long long)after.d[i], i, (long long)x.d[i]);
        c->result[0].shape.d[i] = size;
    }
    return true;
}

static void fill(tn_tensor *y, tn__layout part, int dim, int64_t start, int64_t size, double value)
{
    tn__layout l;
    if (!tn__view_narrow("pad", &part, dim, start, size, &l)) return;
    tn_tensor border = tn__stack_view(y, &l);
    tn__fill(&border, value);
}

/* For each dim: fills the border along this dim, then continues with the inner part along the next dim. The last inner
 * part is x. */
static void pad_forward(tn_ctx *c)
{
    const tn_shape before = TN_ARG(c, before), after = TN_ARG(c, after);
    tn__layout     to = c->out[0]->l, from = c->in[0]->l, l;
    for (int i = 0; i < before.n; i++) {
        const int64_t b = tn__max_i64(before.d[i], 0), a = tn__max_i64(after.d[i], 0), size = to.shape.d[i],
                      kept = size - b - a;
        fill(c->out[0], to, i, 0, b, TN_ARG(c, value));
        fill(c->out[0], to, i, size - a, a, TN_ARG(c, value));
        if (!tn__view_narrow("pad", &to, i, b, kept, &l)) return;
        to = l;
        if (!tn__view_narrow("pad", &from, i, tn__max_i64(-before.d[i], 0), kept, &l)) return;
        from = l;
    }
    tn_tensor middle = tn__stack_view(c->out[0], &to), x = tn__stack_view(c->in[0], &from);
    tn__copy(&middle, &x);
}

static void pad_backward_ops(tn_back *b)
{
    tn_shape before = TN_ARG(b, before), after = TN_ARG(b, after);
    for (int i = 0; i < before.n; i++) before.d[i] = -before.d[i], after.d[i] = -after.d[i];
    b->gx[0] = tn_pad(b->gy[0], before, after, 0);
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {1, 0}}, {.n = 2, .d = {2, 3}}, 0.5}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, 2}}, {.n = 2, .d = {1, -3}}, -1}},
    {.in = {{3, {2, 3, 2}}}, .args = &(args_t){{.n = 3, .d = {0, 1, 1}}, {.n = 3, .d = {0, 1, 0}}, 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, -1}}, {.n = 2, .d = {-1, -2}}, 0}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {-3, 0}}, {.n = 2, .d = {2, 0}}, 7}}, /* removes all of x */
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}, {.n = 0, .d = {0}}, 1}},
    {.in = {{2, {0, 2}}}, .args = &(args_t){{.n = 2, .d = {1, 1}}, {.n = 2, .d = {1, 0}}, 2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {-2, 0}}, {.n = 2, .d = {-1, 0}}, 0}}, /* empty */
    {.in = {{1, {4}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9},
     .args = &(args_t){{.n = 1, .d = {2}}, {.n = 1, .d = {1}}, 3}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {-2, 0}}, {.n = 2, .d = {-2, 0}}, 0},
     TN__FAILS(TN_ESHAPE, "pad: -2 before and -2 after do not fit dim 0 of size 3")},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {0, -5}}, {.n = 2, .d = {0, 9}}, 0},
     TN__FAILS(TN_ESHAPE, "pad: -5 before and 9 after do not fit dim 1 of size 4")},
    {.in = {{1, {4}}}, .args = &(args_t){{.n = 1, .d = {INT64_MAX}}, {.n = 1, .d = {0}}, 0},
     TN__FAILS(TN_ESHAPE, "pad: 9223372036854775807 before and 0 after do not fit dim 0 of size 4")},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {1}}, {.n = 2, .d = {1, 1}}, 0},
     TN__FAILS(TN_EINVAL, "pad: needs one entry for each dim: the tensor has 2 dims, before has 1 entries, after 2")},
};
/* clang-format on */

const tn_op tn__op_pad = {TN__ROOM("pad", TN_AS_IS),   .inputs = 1,
                          .args_size = sizeof(args_t), .infer = pad_infer,
                          .forward = pad_forward,      .backward_ops = pad_backward_ops};
TN__SAMPLES(pad, samples);

tn_tensor *tn_pad(tn_tensor *x, tn_shape before, tn_shape after, double value)
{
    return tn_apply_args(&tn__op_pad, (&(args_t){before, after, value}), x);
}
