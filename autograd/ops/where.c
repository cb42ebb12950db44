/* where — y = a where the condition is true, else b
 *
 *   ga = gy where true, else 0;  gb = gy where false, else 0 */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
#define TN__TEMPLATE "autograd/ops/where.c"
#define TN__WITH_I64
#include "core/real.h"

static bool where_infer(tn_ctx *c)
{
    const tn_dtype dt = c->in[0]->dtype, a = c->in[1]->dtype, b = c->in[2]->dtype;
    tn_shape       both;
    if (dt != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE,
                             "the condition must be bool, got %s; a comparison such as tn_gt(x, y) returns one",
                             tn_dtype_name(dt));
    if (a != b) return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: %s and %s", tn_dtype_name(a), tn_dtype_name(b));
    c->result[0].dtype = a;
    return tn__broadcast("where", c->in[1]->l.shape, c->in[2]->l.shape, &both) &&
           tn__broadcast("where", c->in[0]->l.shape, both, &c->result[0].shape);
}
static void where_forward(tn_ctx *c)
{
    tn__map(TN__NUMBERS(where_fwd), TN__LIST(c->out[0]), TN__LIST(c->in[0], c->in[1], c->in[2]), NULL);
}
static void where_backward_ops(tn_back *b)
{
    tn_tensor *condition = b->in[0], *gy = b->gy[0];
    if (b->need[1]) b->gx[1] = tn_where(condition, gy, tn_scalar_of(gy->dtype, 0));
    if (b->need[2]) b->gx[2] = tn_masked_fill(gy, condition, 0);
}

#define KINDS(a) .kind = {TN__ARG_MASK, a, a}
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, KINDS(TN__ARG_REAL)},
    {.in = {{1, {4}}, {3, {2, 3, 4}}, {2, {3, 1}}}, KINDS(TN__ARG_REAL)},
    {.in = {{3, {2, 1, 4}}, {0, {0}}, {1, {4}}}, KINDS(TN__ARG_REAL)},
    {.in = {{0, {0}}, {0, {0}}, {0, {0}}}, KINDS(TN__ARG_REAL)},
    {.in = {{2, {0, 3}}, {1, {3}}, {0, {0}}}, KINDS(TN__ARG_REAL)},
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {1, {4}}}, KINDS(TN__ARG_INT), .low = {0, -9, -9}, .high = {0, 9, 9}},
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {1, {4}}}, KINDS(TN__ARG_MASK)},
    {.in = {{1, {3}}, {1, {3}}, {1, {3}}},
     TN__FAILS(TN_EDTYPE, "where: the condition must be bool, got f32; a comparison such as tn_gt(x, y) returns one")},
    {.in = {{1, {3}}, {1, {3}}, {1, {3}}}, .kind = {TN__ARG_MASK, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "where: dtypes differ: i64 and f32")},
    {.in = {{1, {3}}, {1, {4}}, {1, {4}}}, KINDS(TN__ARG_REAL),
     TN__FAILS(TN_ESHAPE, "where: shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")},
    {.in = {{1, {3}}, {1, {3}}, {1, {5}}}, KINDS(TN__ARG_REAL),
     TN__FAILS(TN_ESHAPE, "where: shapes [3] and [5] do not broadcast: dim -1 is 3 in one and 5 in the other")},
};
/* clang-format on */

const tn_op tn__op_where = {TN__ROOM("where", TN_JOIN), .inputs = 3,
                            .saves = TN_SAVE_IN(0),     .infer = where_infer,
                            .forward = where_forward,   .backward_ops = where_backward_ops};
TN__SAMPLES(where, samples);

tn_tensor *tn_where(tn_tensor *condition, tn_tensor *a, tn_tensor *b)
{
    if (condition && condition->dtype == TN_U8) condition = tn_to(condition, TN_BOOL);
    if (a && b && a->dtype != b->dtype) {
        tn_dtype dt = tn__promote(a, b);
        if (a->dtype != dt) a = tn_to(a, dt);
        if (b->dtype != dt) b = tn_to(b, dt);
    }
    return tn_apply(&tn__op_where, condition, a, b);
}

#else /* ==================================================================== kernels: contiguous, one dtype */

static void TN__(where_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *condition = in[0], *a = in[1], *b = in[2];
    TN__REAL       *y = out[0];
    (void)args;
    for (int64_t i = 0; i < n; i++) {
        const TN__REAL yes = a[i], no = b[i]; /* read unconditionally, so that the loop has no branch */
        y[i] = condition[i] != 0 ? yes : no;
    }
}
#endif
