/* matmul — y = a b, matrix by matrix: [..., m, k] x [..., k, n] → [..., m, n], leading dims broadcast
 *
 *   ga = gy bᵀ,  gb = aᵀ gy
 *
 * A 1-d a is one row and a 1-d b one column; the dim of size 1 that this adds is removed from the result. If one matrix
 * b is multiplied by a batch of a, all rows of the batch form one tall matrix, so that gb is one product instead of a
 * sum over the batch. */
#include "autograd/rooms/room.h"
#include "autograd/tape/tape.h"

bool tn__infer_matmul(tn_ctx *c)
{
    const tn_tensor *ta = c->in[0], *tb = c->in[1];
    const tn_shape   a = ta->l.shape, b = tb->l.shape;
    char             as[300], bs[300];
    if (!tn__need_real(c, 0) || !tn__need_real(c, 1)) return false;
    if (ta->dtype != tb->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: %s and %s", tn_dtype_name(ta->dtype),
                             tn_dtype_name(tb->dtype));
    if (!a.n || !b.n)
        return tn_infer_fail(c, TN_ESHAPE,
                             "needs at least one dim on each side, got %s by %s; tn_mul multiplies by a number",
                             tn__describe(ta, as, sizeof as), tn__describe(tb, bs, sizeof bs));
    const int     la = a.n > 2 ? a.n - 2 : 0, lb = b.n > 2 ? b.n - 2 : 0; /* leading dims */
    const int64_t ka = a.d[a.n - 1], kb = b.d[b.n > 1 ? b.n - 2 : 0];
    if (ka != kb)
        return tn_infer_fail(c, TN_ESHAPE, "inner sizes differ: %s by %s: %lld and %lld",
                             tn__describe(ta, as, sizeof as), tn__describe(tb, bs, sizeof bs), (long long)ka,
                             (long long)kb);
    tn_shape y = {.n = la > lb ? la : lb};
    for (int i = 1; i <= y.n; i++) {
        const int64_t da = i <= la ? a.d[la - i] : 1, db = i <= lb ? b.d[lb - i] : 1;
        if (da != db && da != 1 && db != 1)
            return tn_infer_fail(c, TN_ESHAPE, "leading dims do not broadcast: %s by %s: %lld and %lld",
                                 tn__describe(ta, as, sizeof as), tn__describe(tb, bs, sizeof bs), (long long)da,
                                 (long long)db);
        y.d[y.n - i] = da == 1 ? db : da;
    }
    if (a.n > 1) y.d[y.n++] = a.d[a.n - 2];
    if (b.n > 1) y.d[y.n++] = b.d[b.n - 1];
    c->result[0] = (tn_result){ta->dtype, y};
    return true;
}

static void matmul_forward(tn_ctx *c)
{
    tn__layout a = c->in[0]->l, b = c->in[1]->l, y = c->out[0]->l;
    const bool row = a.shape.n == 1, column = b.shape.n == 1;
    if (column) b = tn__layout_insert(b, 1), y = tn__layout_insert(y, y.shape.n);
    if (row) a = tn__layout_insert(a, 0), y = tn__layout_insert(y, y.shape.n - 1);
    const tn_tensor ga = tn__stack_view(c->in[0], &a), gb = tn__stack_view(c->in[1], &b);
    tn_tensor       gy = tn__stack_view(c->out[0], &y);
    tn__gemm_with(&ga, &gb, &gy, &(tn__epilogue){.act = TN__ACT_NONE});
}

static unsigned matmul_saves_for(const bool *need)
{
    return (need[0] ? TN_SAVE_IN(1) : 0) | (need[1] ? TN_SAVE_IN(0) : 0);
}
/* [..., m, k] → [all rows, k] */
static tn_tensor *rows(tn_tensor *x)
{
    if (!x || x->l.shape.n < 3) return x;
    const int64_t k = x->l.shape.d[x->l.shape.n - 1], m = x->l.shape.d[x->l.shape.n - 2];
    tn_shape      lead = x->l.shape;
    lead.n -= 2;
    return tn_reshape(x, TN_SHAPE(tn_shape_numel(lead) * m, k));
}
static void matmul_backward_ops(tn_back *b)
{
    tn_tensor *gy = b->gy[0], *x = b->in[0], *w = b->in[1];
    const bool row = b->in_shape[0].n == 1, column = b->in_shape[1].n == 1;
    if (column) gy = tn_unsqueeze(gy, -1);
    if (row) gy = tn_unsqueeze(gy, -2);                                                              /* [..., m, n] */
    if (b->need[0]) b->gx[0] = tn_matmul(gy, tn_transpose(column ? tn_unsqueeze(w, 1) : w, -1, -2)); /* [..., m, k] */
    if (b->need[1]) {
        if (row) x = tn_unsqueeze(x, 0);
        if (b->in_shape[1].n <= 2 && b->in_shape[0].n > 2) x = rows(x), gy = rows(gy);
        b->gx[1] = tn_matmul(tn_transpose(x, -1, -2), gy); /* [..., k, n] */
        if (column) b->gx[1] = tn_squeeze(b->gx[1], -1);
    }
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {4, 2}}}},
    {.in = {{3, {2, 3, 4}}, {2, {4, 3}}}},
    {.in = {{2, {3, 4}}, {3, {2, 4, 2}}}},
    {.in = {{4, {2, 1, 3, 2}}, {3, {3, 2, 2}}}},
    {.in = {{1, {4}}, {1, {4}}}},
    {.in = {{1, {4}}, {3, {2, 4, 3}}}},
    {.in = {{3, {2, 3, 4}}, {1, {4}}}},
    {.in = {{2, {2, 4}}, {1, {4}}}},
    {.in = {{2, {1, 1}}, {2, {1, 5}}}},
    {.in = {{2, {2, 0}}, {2, {0, 3}}}}, /* no terms: zeros */
    {.in = {{3, {0, 2, 3}}, {2, {3, 2}}}},
    {.in = {{3, {2, 0, 3}}, {3, {2, 3, 2}}}},
    {.in = {{2, {2, 3}}, {2, {4, 5}}}, TN__FAILS(TN_ESHAPE, "matmul: inner sizes differ: [2, 3] by [4, 5]: 3 and 4")},
    {.in = {{2, {2, 3}}, {1, {2}}}, TN__FAILS(TN_ESHAPE, "matmul: inner sizes differ: [2, 3] by [2]: 3 and 2")},
    {.in = {{3, {2, 3, 4}}, {3, {3, 4, 2}}},
     TN__FAILS(TN_ESHAPE, "matmul: leading dims do not broadcast: [2, 3, 4] by [3, 4, 2]: 2 and 3")},
    {.in = {{0, {0}}, {2, {2, 3}}}, TN__FAILS(TN_ESHAPE,
     "matmul: needs at least one dim on each side, got [] by [2, 3]; tn_mul multiplies by a number")},
    {.in = {{2, {2, 3}}, {2, {3, 2}}}, .kind = {TN__ARG_INT, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "matmul: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
    {.in = {{2, {2, 3}}, {2, {3, 2}}}, .kind = {TN__ARG_REAL, TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "matmul: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_matmul = {TN__ROOM("matmul", TN_NARROW(2)),
                             .inputs = 2,
                             .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                             .saves_for = matmul_saves_for,
                             .infer = tn__infer_matmul,
                             .forward = matmul_forward,
                             .backward_ops = matmul_backward_ops};
TN__SAMPLES(matmul, samples);

tn_tensor *tn_matmul(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *in[2] = {a, b};
    tn__promote_all(2, in);
    return tn_op_apply(&tn__op_matmul, NULL, 2, in);
}

tn_tensor *tn__weight_grad(const tn_back *b, tn_tensor *g, tn_tensor *x)
{
    tn_tensor *gt = tn_transpose(g, 0, 1), *gw;
    if (!gt || !x || x->dtype != TN_BF16 || g->dtype != TN_BF16 || tn__creates_graph(b)) return tn_matmul(gt, x);
    if ((gw = tn_empty_of(TN_F32, TN_SHAPE(gt->l.shape.d[0], x->l.shape.d[1])))) tn__gemm(1, gt, x, 0, gw);
    return gw;
}
