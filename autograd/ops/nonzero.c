/* nonzero — the indices of the elements that are not 0 (also NaN), in order: [count, ndim], i64, without gradient */
#include "autograd/rooms/room.h"

static bool nonzero_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0];
    int64_t          count = 0;
    for (int64_t i = 0, n = tn_numel(x); i < n; i++) count += tn_get(x, i) != 0;
    c->result[0] = (tn_result){TN_I64, {.n = 2, .d = {count, x->l.shape.n}}};
    return true;
}
static void nonzero_forward(tn_ctx *c)
{
    const tn_tensor *x = c->in[0];
    int64_t         *y = tn__ptr(c->out[0]);
    for (int64_t i = 0, n = tn_numel(x); i < n; i++) {
        if (tn_get(x, i) == 0) continue;
        int64_t rest = i;
        for (int d = x->l.shape.n - 1; d >= 0; d--) y[d] = rest % x->l.shape.d[d], rest /= x->l.shape.d[d];
        y += x->l.shape.n;
    }
}

static const tn__sample samples[] = {
    {.in = {{1, {6}}}, .kind = {TN__ARG_INDEX}, .high = {2}},
    {.in = {{3, {2, 3, 4}}}, .kind = {TN__ARG_INDEX}, .high = {2}},
    {.in = {{2, {3, 4}}}, .kind = {TN__ARG_MASK}},
    {.in = {{2, {3, 4}}}},
    {.in = {{0, {0}}}, .kind = {TN__ARG_INDEX}, .low = {1}, .high = {2}},
    {.in = {{2, {0, 4}}}},
};

const tn_op tn__op_nonzero = {TN__ROOM("nonzero", TN_AS_IS), .inputs = 1, .infer = nonzero_infer,
                              .forward = nonzero_forward};
TN__SAMPLES(nonzero, samples);

tn_tensor *tn_nonzero(tn_tensor *x) { return tn_apply(&tn__op_nonzero, x); }
