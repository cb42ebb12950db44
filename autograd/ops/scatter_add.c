/* scatter_add — y = x, then y[.., index[.., i, ..], ..] += src[.., i, ..] along one dim, in the order of i
 *
 *   gx = gy        gsrc = gy at the index (gather)
 *
 * scatter — with =, *=, min or max instead of +=; of several elements that are set at one place, the last one stays
 *
 *   set        gx = gy, 0 where an element was set        gsrc = gy at the index, 0 for elements that did not stay
 *   product    a factor v gets gy · y / v, and for v = 0 the product of the other factors if they have no 0, else 0
 *   min, max   the elements that are equal to y share gy */
#include "autograd/rooms/room.h"

typedef struct {
    int             dim;
    tn_scatter_mode how;
} args_t;

static bool scatter_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1], *src = c->in[2];
    int              dim = TN_ARG(c, dim);
    char             a[192], b[192];
    if (!tn__wrap_dim(c->op->name, &dim, x->l.shape.n) || !tn__infer_along(c, dim, index, x)) return false;
    bool fits = src->l.shape.n == index->l.shape.n;
    for (int i = 0; fits && i < index->l.shape.n; i++) fits = index->l.shape.d[i] <= src->l.shape.d[i];
    if (!fits)
        return tn_infer_fail(c, TN_ESHAPE, "an index of shape %s reaches beyond src %s",
                             tn_shape_text(index->l.shape, a, sizeof a), tn_shape_text(src->l.shape, b, sizeof b));
    if (src->dtype != x->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "x is %s and src %s; convert one with tn_to", tn_dtype_name(x->dtype),
                             tn_dtype_name(src->dtype));
    return tn_infer_like(c, 0, 0) && tn__index_check(c->op->name, "index", index, x->l.shape.n ? x->l.shape.d[dim] : 1);
}
static void scatter_forward(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    tn__wrap_dim(c->op->name, &dim, c->in[0]->l.shape.n);
    tn__copy(c->out[0], c->in[0]);
    tn__scatter(c->out[0], dim, c->in[1], c->in[2], (tn__combine)TN_ARG(c, how));
}
/* g, of the index's shape, as a gradient of src: elements of src beyond the index's size are not used and get none. */
static tn_tensor *gradient_of_src(const tn_back *b, tn_tensor *g)
{
    if (!g || tn_shape_equal(tn_shape_of(g), b->in_shape[2])) return g;
    tn_shape before = {.n = b->in_shape[2].n}, after = before;
    for (int i = 0; i < before.n; i++) after.d[i] = b->in_shape[2].d[i] - tn_shape_of(g).d[i];
    return tn_pad(g, before, after, 0);
}
static void scatter_add_backward_ops(tn_back *b)
{
    if (b->need[0]) b->gx[0] = b->gy[0];
    if (b->need[2]) b->gx[2] = gradient_of_src(b, tn_gather(b->gy[0], TN_ARG(b, dim), b->in[1]));
}

/* clang-format off */
#define INDEX {TN__ARG_REAL, TN__ARG_INDEX, TN__ARG_REAL}
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 5}}, {2, {3, 5}}}, .kind = INDEX, .high = {2, 4, 2}, .low = {-2, 0, -2},
     .args = &(args_t){1, TN_SCATTER_SUM}},
    {.in = {{2, {3, 4}}, {2, {5, 2}}, {2, {6, 3}}}, .kind = INDEX, .high = {2, 3, 2}, .low = {-2, 0, -2},
     .args = &(args_t){0, TN_SCATTER_SUM}},
    {.in = {{3, {2, 3, 4}}, {3, {1, 3, 2}}, {3, {1, 3, 2}}}, .kind = INDEX, .high = {2, 4, 2}, .low = {-2, 0, -2},
     .args = &(args_t){-1, TN_SCATTER_SUM}},
    {.in = {{0, {0}}, {0, {0}}, {0, {0}}}, .kind = INDEX, .high = {2, 1, 2}, .low = {-2, 0, -2},
     .args = &(args_t){0, TN_SCATTER_SUM}},
    {.in = {{2, {3, 4}}, {2, {0, 4}}, {2, {2, 4}}}, .kind = INDEX, .high = {2, 3, 2}, .low = {-2, 0, -2},
     .args = &(args_t){0, TN_SCATTER_SUM}},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}}, .kind = INDEX, .low = {0, 3}, .high = {0, 4},
     .args = &(args_t){0, TN_SCATTER_SUM}, TN__FAILS(TN_EINDEX, "scatter_add: index 3 at [0] is outside 0 … 2")},
    {.in = {{1, {3}}, {1, {2}}, {1, {1}}}, .kind = INDEX, .high = {0, 3}, .args = &(args_t){0, TN_SCATTER_SUM},
     TN__FAILS(TN_ESHAPE, "scatter_add: an index of shape [2] reaches beyond src [1]")},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}}, .kind = {TN__ARG_REAL, TN__ARG_INDEX, TN__ARG_INT}, .high = {0, 3},
     .args = &(args_t){0, TN_SCATTER_SUM},
     TN__FAILS(TN_EDTYPE, "scatter_add: x is f32 and src i64; convert one with tn_to")},
};
/* clang-format on */

const tn_op tn__op_scatter_add = {TN__ROOM("scatter_add", TN_JOIN),
                                  .inputs = 3,
                                  .args_size = sizeof(args_t),
                                  .saves = TN_SAVE_IN(1),
                                  .infer = scatter_infer,
                                  .forward = scatter_forward,
                                  .backward_ops = scatter_add_backward_ops};
TN__SAMPLES(scatter_add, samples);

tn_tensor *tn_scatter_add(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
{
    return tn_apply_args(&tn__op_scatter_add, (&(args_t){dim, TN_SCATTER_SUM}), x, index, src);
}

/* ---- scatter ----------------------------------------------------------------------------------------------------- */

bool tn__scatter_mode_valid(const char *op, tn_scatter_mode how)
{
    if ((unsigned)how <= TN_SCATTER_AMAX) return true;
    return tn_raise_false(TN_EINVAL, "%s: %d is not a tn_scatter_mode", op, (int)how);
}
static tn_tensor *scattered(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src, tn_scatter_mode how)
{
    return tn_apply_args(&tn__op_scatter, (&(args_t){dim, how}), x, index, src);
}

static void set_gradients(tn_back *b, int dim, tn_tensor *index)
{
    /* each place gets the number of the element that was set there last; 0: none */
    tn_tensor *number = tn_add_scalar(tn_arange(tn_shape_numel(tn_shape_of(index))), 1), *last;
    number = tn_reshape(number, tn_shape_of(index));
    last = scattered(tn_zeros_of(TN_I64, b->in_shape[0]), dim, index, number, TN_SCATTER_SET);
    if (b->need[0]) b->gx[0] = tn_masked_fill(b->gy[0], tn_ne(last, tn_scalar_of(TN_I64, 0)), 0);
    if (!b->need[2]) return;
    tn_tensor *stayed = tn_eq(tn_gather(last, dim, index), number);
    b->gx[2] = gradient_of_src(b, tn_masked_fill(tn_gather(b->gy[0], dim, index), tn_logical_not(stayed), 0));
}

/* The gradient of factors v: the product of the others. rest: of all factors that are not 0; zeros: number of those
 * that are. */
static tn_tensor *of_factors(tn_tensor *v, tn_tensor *gy, tn_tensor *rest, tn_tensor *zeros)
{
    tn_tensor *is_zero = tn_eq(v, tn_scalar(0)), *others = tn_div(rest, tn_masked_fill(v, is_zero, 1));
    return tn_mul(gy, tn_masked_fill(others, tn_ne(zeros, tn_to(is_zero, TN_I64)), 0));
}
static void product_gradients(tn_back *b, int dim, tn_tensor *index, tn_tensor *src)
{
    tn_tensor *x = b->in[0], *x0 = tn_eq(x, tn_scalar(0)), *src0 = tn_eq(src, tn_scalar(0));
    tn_tensor *zeros = tn_scatter_add(tn_to(x0, TN_I64), dim, index, tn_to(src0, TN_I64));
    tn_tensor *rest = scattered(tn_masked_fill(x, x0, 1), dim, index, tn_masked_fill(src, src0, 1), TN_SCATTER_PROD);
    if (tn_grad_enabled() && zeros && tn_numel(zeros) && tn_item(tn_any(zeros)) != 0) {
        tn_raise(TN_EUNSUPPORTED, "scatter: a product with a factor 0 has no second derivatives here");
        return;
    }
    if (b->need[0]) b->gx[0] = of_factors(x, b->gy[0], rest, zeros);
    if (b->need[2])
        b->gx[2] = gradient_of_src(b, of_factors(src, tn_gather(b->gy[0], dim, index), tn_gather(rest, dim, index),
                                                 tn_gather(zeros, dim, index)));
}
static void extreme_gradients(tn_back *b, int dim, tn_tensor *index, tn_tensor *src)
{
    tn_tensor *of_x = tn_eq(b->in[0], b->out[0]), *of_src = tn_eq(src, tn_gather(b->out[0], dim, index));
    tn_tensor *share = tn_div(b->gy[0], tn_scatter_add(tn_to(of_x, TN_I64), dim, index, tn_to(of_src, TN_I64)));
    if (b->need[0]) b->gx[0] = tn_masked_fill(share, tn_logical_not(of_x), 0);
    if (b->need[2])
        b->gx[2] = gradient_of_src(b, tn_masked_fill(tn_gather(share, dim, index), tn_logical_not(of_src), 0));
}

static void scatter_backward_ops(tn_back *b)
{
    const int      dim = TN_ARG(b, dim);
    tn_tensor     *index = b->in[1], *src = b->in[2];
    const tn_shape s = tn_shape_of(index);
    if (TN_ARG(b, how) == TN_SCATTER_SET) {
        set_gradients(b, dim, index);
        return;
    }
    for (int i = 0; i < s.n; i++) src = tn_narrow(src, i, 0, s.d[i]);
    if (TN_ARG(b, how) == TN_SCATTER_PROD) product_gradients(b, dim, index, src);
    else extreme_gradients(b, dim, index, src);
}

#define WITH(kind0, low0, high0, top, dim, how)                                                                   \
    .kind = {kind0, TN__ARG_INDEX, kind0}, .low = {low0, 0, low0}, .high = {high0, top, high0}, .args = &(args_t) \
    {                                                                                                             \
        dim, TN_SCATTER_##how                                                                                     \
    }
#define COMMON(how, kind0, low, high)                                                                 \
    {.in = {{2, {3, 4}}, {2, {3, 5}}, {2, {3, 5}}}, WITH(kind0, low, high, 4, 1, how)},               \
        {.in = {{2, {3, 4}}, {2, {5, 2}}, {2, {6, 3}}}, WITH(kind0, low, high, 3, 0, how)},           \
        {.in = {{3, {2, 3, 4}}, {3, {1, 3, 2}}, {3, {1, 3, 2}}}, WITH(kind0, low, high, 4, -1, how)}, \
        {.in = {{0, {0}}, {0, {0}}, {0, {0}}}, WITH(kind0, low, high, 1, 0, how)},                    \
    {                                                                                                 \
        .in = {{2, {3, 4}}, {2, {0, 4}}, {2, {2, 4}}}, WITH(kind0, low, high, 3, 0, how)              \
    }
/* clang-format off */
static const tn__sample scatter_samples[] = {
    COMMON(SET, TN__ARG_REAL, -2, 2),
    COMMON(PROD, TN__ARG_REAL, 0.5, 1.5),
    COMMON(AMIN, TN__ARG_DISTINCT, -2, 2),
    COMMON(AMAX, TN__ARG_DISTINCT, -2, 2),
    {.in = {{2, {3, 4}}, {2, {3, 5}}, {2, {3, 5}}}, WITH(TN__ARG_INT, -3, 3, 4, 1, PROD)},
    {.in = {{2, {3, 4}}, {2, {3, 5}}, {2, {3, 5}}}, WITH(TN__ARG_MASK, 0, 1, 4, 1, AMAX)},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}}, .kind = INDEX, .low = {0, 3}, .high = {0, 4},
     .args = &(args_t){0, TN_SCATTER_SET}, TN__FAILS(TN_EINDEX, "scatter: index 3 at [0] is outside 0 … 2")},
    {.in = {{1, {3}}, {1, {2}}, {1, {1}}}, WITH(TN__ARG_REAL, 0, 1, 3, 0, PROD),
     TN__FAILS(TN_ESHAPE, "scatter: an index of shape [2] reaches beyond src [1]")},
    {.in = {{1, {3}}, {1, {2}}, {1, {2}}}, .kind = {TN__ARG_REAL, TN__ARG_INDEX, TN__ARG_INT}, .high = {0, 3},
     .args = &(args_t){0, TN_SCATTER_AMAX},
     TN__FAILS(TN_EDTYPE, "scatter: x is f32 and src i64; convert one with tn_to")},
};
/* clang-format on */

const tn_op tn__op_scatter = {TN__ROOM("scatter", TN_JOIN),
                              .inputs = 3,
                              .args_size = sizeof(args_t),
                              .saves = TN__FIRST_IN(3) | TN_SAVE_OUT(0),
                              .infer = scatter_infer,
                              .forward = scatter_forward,
                              .backward_ops = scatter_backward_ops};
TN__SAMPLES(scatter, scatter_samples);

tn_tensor *tn_scatter(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src)
{
    return scattered(x, dim, index, src, TN_SCATTER_SET);
}
tn_tensor *tn_scatter_reduce(tn_tensor *x, int dim, tn_tensor *index, tn_tensor *src, tn_scatter_mode how)
{
    if (tn__blocked() || !tn__scatter_mode_valid("scatter_reduce", how)) return NULL;
    return how == TN_SCATTER_SUM ? tn_scatter_add(x, dim, index, src) : scattered(x, dim, index, src, how);
}
