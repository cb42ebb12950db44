/* linear_cross_entropy — the cross-entropy of classes with the logits z = x Wᵀ + b, without storing all logits
 *
 *   With a_c = (1-ε) [c = t] + ε/C the shares of a row's loss (ε: label smoothing; C classes; t its target):
 *   loss = s Σ over rows of -Σ_c a_c log_softmax(z)_c         s: 1, or for the mean 1 / the number of rows
 *   gz = s (softmax(z) - a)        gx = gz W        gW = gzᵀ x        gb = Σ gz
 *
 * Rows that are not ignored are processed in blocks: the logits of a block are computed, converted to gz in place, and
 * multiplied into the gradients at once, if a gradient is needed. So memory holds one block of logits and the
 * gradients, which the backward only scales; they are hidden results, empty if not needed. The number of rows in a
 * block depends only on C. For bf16 the loss is f32, as are the sums. If all targets are ignored, the loss and the
 * gradients are 0. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
#include "autograd/rooms/q8.h"
#include "core/kernels/sum_lanes.h"

#include <string.h>
typedef struct {
    int64_t      ignore;
    double       smoothing;
    tn_reduction reduction;
} args_t;
typedef struct {
    double scale, smoothing;
    bool   gradient;
} kernel_args;
enum { X, WEIGHT, BIAS, TARGET };
enum { LOSS, COUNT, GRADIENTS }; /* gradients of x, weight and bias: results 2, 3 and 4 */
enum { BLOCK = 3 << 22, FEWEST = 64, MOST = 1024 };
#define TN__TEMPLATE "autograd/ops/linear_cross_entropy.c"
#include "core/real.h"

static bool linear_cross_entropy_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[X], *w = c->in[WEIGHT], *bias = c->in[BIAS], *t = c->in[TARGET];
    const args_t    *a = c->args;
    char             xs[300], ws[300];
    tn_shape         rows = x->l.shape;
    for (int i = X; i <= BIAS; i++) {
        if (i == BIAS && !bias) continue;
        if (!tn__need_real(c, i)) return false;
        if (c->in[i]->dtype != x->dtype)
            return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: x is %s, %s %s", tn_dtype_name(x->dtype),
                                 i == WEIGHT ? "weight" : "bias", tn_dtype_name(c->in[i]->dtype));
    }
    if (w->l.shape.n != 2)
        return tn_infer_fail(c, TN_ESHAPE, "weight must be [classes, in], got %s", tn__describe(w, ws, sizeof ws));
    if (rows.n == 0 || rows.d[--rows.n] != w->l.shape.d[1])
        return tn_infer_fail(c, TN_ESHAPE, "x %s does not fit weight %s ([classes, in]): its last dim must be %lld",
                             tn__describe(x, xs, sizeof xs), tn__describe(w, ws, sizeof ws),
                             (long long)w->l.shape.d[1]);
    const int64_t classes = w->l.shape.d[0];
    if (bias && (bias->l.shape.n != 1 || bias->l.shape.d[0] != classes))
        return tn_infer_fail(c, TN_ESHAPE, "bias is %s, but must be [%lld]: one value for each class",
                             tn_shape_text(bias->l.shape, xs, sizeof xs), (long long)classes);
    if (a->reduction != TN_MEAN && a->reduction != TN_SUM)
        return tn_infer_fail(c, TN_EINVAL,
                             "reduction %d is neither TN_MEAN nor TN_SUM; for a loss of each row use "
                             "tn_cross_entropy(tn_linear(x, weight, bias), target, .reduction = TN_NONE)",
                             (int)a->reduction);
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return tn_infer_fail(c, TN_EINVAL, "label_smoothing is %g, but must be from 0 to 1", a->smoothing);
    if (t->dtype != TN_I64 && t->dtype != TN_I32)
        return tn_infer_fail(c, TN_EDTYPE, "the target must be i64 or i32 (class indices); got %s",
                             tn_dtype_name(t->dtype));
    if (!tn_shape_equal(t->l.shape, rows))
        return tn_infer_fail(c, TN_ESHAPE, "the target is %s, but for x %s it must be %s: one class for each row",
                             tn_shape_text(t->l.shape, ws, sizeof ws), tn__describe(x, xs, sizeof xs),
                             tn_shape_text(rows, (char[192]){0}, 192));
    c->result[LOSS] = (tn_result){tn__wide(x->dtype), {.n = 0}};
    c->result[COUNT] = (tn_result){TN_I64, {.n = 0}};
    for (int i = X; i <= BIAS; i++) {
        const bool wanted = c->in[i] && tn_needs_grad(c->in[i]) && tn_grad_enabled();
        c->result[GRADIENTS + i] = (tn_result){tn__wide(x->dtype), wanted ? c->in[i]->l.shape : TN_SHAPE(0)};
    }
    return tn__check_targets(c, t, classes, a->ignore);
}

/* The indices of the rows that are not ignored; *count: their number. */
static tn_tensor *counted_rows(const tn_tensor *t, int64_t ignore, int64_t *count)
{
    const int64_t n = tn_numel(t);
    tn_tensor    *rows = tn_empty_of(TN_I64, TN_SHAPE(n));
    int64_t      *r = rows ? tn__ptr(rows) : NULL;
    *count = 0;
    for (int64_t i = 0; r && i < n; i++)
        if (tn_get_i64(t, i) != ignore) r[(*count)++] = i;
    return rows;
}

/* A block of rows: x, targets, logits (then gz), gz in the dtype of x, and gradients of x. */
typedef struct {
    tn_tensor *x, *target, *z, *gz, *gx;
    tn_tensor *all_x, *all_target, *rows; /* the inputs, and the indices of the rows that are not ignored */
    tn_tensor *ones;
} block;

/* A view of rows [from, from + n) of t. */
static tn_tensor rows_of(const tn_tensor *t, int64_t from, int64_t n)
{
    tn__layout l = t->l;
    l.offset += from * l.stride[0], l.shape.d[0] = n;
    return tn__stack_view(t, &l);
}
static tn_tensor transposed(const tn_tensor *t)
{
    tn__layout l;
    tn__view_transpose("linear_cross_entropy", &t->l, 0, 1, &l);
    return tn__stack_view(t, &l);
}

static void one_block(tn_ctx *c, const block *b, int64_t from, int64_t n, const kernel_args *k, tn_tensor *loss)
{
    tn_tensor rows = rows_of(b->rows, from, n), x = rows_of(b->x, 0, n), target = rows_of(b->target, 0, n);
    tn_tensor z = rows_of(b->z, 0, n), gz = rows_of(b->gz, 0, n), gx, w = transposed(c->in[WEIGHT]);
    tn__take_rows(&x, b->all_x, 0, &rows), tn__take_rows(&target, b->all_target, 0, &rows);
    tn__gemm(1, &x, &w, 0, &z);
    tn__rows_sums(TN__REALS(row), -1, TN__LIST(&z, b->gz != b->z ? &gz : NULL), TN__LIST(loss),
                  TN__LIST(&z, &target, c->in[BIAS]), k);
    if (!k->gradient || tn_error()) return;
    if (b->gx) {
        tn_tensor to = tn__stack_view(c->out[GRADIENTS + X], &c->out[GRADIENTS + X]->l);
        tn_shape  flat = {.n = 2, .d = {tn_numel(b->all_target), c->in[WEIGHT]->l.shape.d[1]}};
        to.l = tn__layout_of_shape(flat);
        to.l.offset = c->out[GRADIENTS + X]->l.offset;
        gx = rows_of(b->gx, 0, n);
        tn__gemm(1, &gz, c->in[WEIGHT], 0, &gx);
        tn__add_rows(&to, 0, &rows, &gx, -1);
    }
    tn_tensor   *gw = c->out[GRADIENTS + WEIGHT], *gb = c->out[GRADIENTS + BIAS], down = transposed(&gz);
    const double before = from ? 1 : 0; /* the first block needs no zeros to add to */
    if (tn_numel(gw)) tn__gemm(1, &down, &x, before, gw);
    if (tn_numel(gb)) {
        const tn__layout l = tn__layout_insert(gb->l, 0);
        tn_tensor        one = tn__stack_view(gb, &l), ones = *b->ones;
        ones.l.shape.d[1] = n;
        tn__gemm(1, &ones, &z, before, &one);
    }
}

static void linear_cross_entropy_forward(tn_ctx *c)
{
    const tn_scope   s = tn_no_grad_begin();
    const args_t    *a = c->args;
    const tn_tensor *w = c->in[WEIGHT], *t = c->in[TARGET];
    const int64_t    n = tn_numel(t), classes = w->l.shape.d[0], in = w->l.shape.d[1];
    const tn_dtype   dt = c->in[X]->dtype, wide = tn__wide(dt);
    double           sum = 0;
    int64_t          count, most = BLOCK / tn__max_i64(1, classes);
    block            b = {.rows = counted_rows(t, a->ignore, &count)};
    kernel_args      k = {a->reduction == TN_MEAN && count ? 1 / (double)count : 1, a->smoothing, false};
    for (int i = 0; i < 3; i++) {
        tn_tensor *g = c->out[GRADIENTS + i];
        k.gradient = k.gradient || c->result[GRADIENTS + i].shape.n != 1 || tn_numel(g);
        if (i == X || !count) tn__fill(g, 0);
    }
    tn__store_i64(tn__ptr(c->out[COUNT]), TN_I64, count);
    most = tn__min_i64(count, most < FEWEST ? FEWEST : most > MOST ? MOST : most);
    const int64_t blocks = (count + most - 1) / tn__max_i64(most, 1); /* all of one size, or nearly */
    most = tn__min_i64(count, ((count + blocks - 1) / tn__max_i64(blocks, 1) + 15) / 16 * 16);
    b.all_x = tn_reshape(c->in[X], TN_SHAPE(n, in)), b.all_target = tn_reshape((tn_tensor *)t, TN_SHAPE(n, 1));
    b.x = tn_empty_of(dt, TN_SHAPE(most, in)), b.target = tn_empty_of(t->dtype, TN_SHAPE(most, 1));
    b.z = tn_empty_of(wide, TN_SHAPE(most, classes));
    b.gz = wide == dt ? b.z : tn_empty_of(dt, TN_SHAPE(most, classes));
    if (tn_numel(c->out[GRADIENTS + X])) b.gx = tn_empty_of(wide, TN_SHAPE(most, in));
    b.ones = tn_ones_of(wide, TN_SHAPE(1, most));
    tn_tensor *loss = tn_empty_of(TN_F64, TN_SHAPE(1));
    for (int64_t from = 0; from < count && !tn_error(); from += most) {
        one_block(c, &b, from, tn__min_i64(most, count - from), &k, loss);
        if (!tn_error()) sum += tn_get(loss, 0);
    }
    if (!tn_error()) tn__store(tn__ptr(c->out[LOSS]), wide, sum * k.scale);
    tn_scope_end(s);
}

static void linear_cross_entropy_backward(tn_back *b)
{
    const bool as_they_are = tn_get(b->gy[LOSS], 0) == 1; /* the usual case: the loss is the root */
    for (int i = X; i <= BIAS; i++)
        if (b->need[i]) b->gx[i] = as_they_are ? b->out[GRADIENTS + i] : tn_mul(b->out[GRADIENTS + i], b->gy[LOSS]);
}
static void linear_cross_entropy_backward_ops(tn_back *b)
{
    const args_t *a = b->args;
    const int64_t classes = b->in_shape[WEIGHT].d[0], n = tn_numel(b->in[TARGET]);
    tn_shape      rows = {.n = 2, .d = {n, b->in_shape[WEIGHT].d[1]}}, column = {.n = 2, .d = {n, 1}};
    tn_tensor    *t = tn_reshape(b->in[TARGET], TN_SHAPE(n)), *out = tn_eq(t, tn_scalar_of(TN_I64, (double)a->ignore));
    /* ignored rows may be NaN, and their targets are not classes */
    tn_tensor *aside = tn_reshape(out, column), *w = b->in[WEIGHT];
    tn_tensor *x = tn_masked_fill(tn_reshape(b->in[X], rows), aside, 0);
    tn_tensor *p = tn_softmax(tn_linear(x, w, b->in[BIAS]), -1);
    tn_tensor *hit = tn_to(tn_one_hot(tn_masked_fill(t, out, 0), classes), b->in_dtype[X]);
    tn_tensor *share = tn_add_scalar(tn_mul_scalar(hit, 1 - a->smoothing), a->smoothing / (double)classes),
              *gy = b->gy[0];
    const int64_t count = tn_get_i64(b->out[COUNT], 0);
    if (a->reduction == TN_MEAN && count) gy = tn_div_scalar(gy, (double)count);
    tn_tensor *gz = tn_masked_fill(tn_mul(tn_sub(p, share), gy), aside, 0);
    if (b->need[X]) b->gx[X] = tn_reshape(tn_matmul(gz, w), b->in_shape[X]);
    if (b->need[WEIGHT]) b->gx[WEIGHT] = tn_matmul(tn_transpose(gz, 0, 1), x);
    if (b->need[BIAS]) b->gx[BIAS] = gz;
}

#define INDEX                                                   \
    {                                                           \
        TN__ARG_REAL, TN__ARG_REAL, TN__ARG_REAL, TN__ARG_INDEX \
    }
#define ARGS(...) \
    .args = &(args_t) { __VA_ARGS__ }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {4, 3}}, {2, {5, 3}}, {1, {5}}, {1, {4}}}, .kind = INDEX, .high = {2, 2, 2, 5}, .low = {-2, -2, -2},
     ARGS(-100, 0, TN_MEAN)},
    {.in = {{3, {2, 3, 2}}, {2, {4, 2}}, {1, {4}}, {2, {2, 3}}}, .kind = INDEX, .high = {2, 2, 2, 4},
     .low = {-2, -2, -2}, ARGS(1, 0.2, TN_SUM)},
    {.in = {{2, {5, 3}}, {2, {19, 3}}, {0, {0}}, {1, {5}}}, .kind = {0, 0, TN__ARG_ABSENT, TN__ARG_INDEX},
     .high = {2, 2, 0, 4}, .low = {-2, -2}, ARGS(2, 0.1, TN_MEAN)},
    {.in = {{1, {3}}, {2, {4, 3}}, {1, {4}}, {0, {0}}}, .kind = INDEX, .high = {2, 2, 2, 4}, .low = {-2, -2, -2},
     ARGS(-100, 0, TN_MEAN)},
    {.in = {{2, {3, 2}}, {2, {4, 2}}, {1, {4}}, {1, {3}}}, .kind = INDEX, .high = {2, 2, 2, -7},
     .low = {-2, -2, -2, -8}, ARGS(-8, 0, TN_MEAN)}, /* all ignored */
    {.in = {{2, {0, 2}}, {2, {4, 2}}, {1, {4}}, {1, {0}}}, .kind = INDEX, .high = {2, 2, 2, 4}, .low = {-2, -2, -2},
     ARGS(-100, 0, TN_SUM)},
    {.in = {{2, {3, 0}}, {2, {4, 0}}, {1, {4}}, {1, {3}}}, .kind = INDEX, .high = {2, 2, 2, 4}, .low = {-2, -2, -2},
     ARGS(-100, 0, TN_SUM)},
    {.in = {{2, {2, 3}}, {2, {4, 2}}, {1, {4}}, {1, {2}}}, .kind = INDEX, ARGS(-100, 0, TN_MEAN), TN__FAILS(TN_ESHAPE,
     "linear_cross_entropy: x [2, 3] does not fit weight [4, 2] ([classes, in]): its last dim must be 2")},
    {.in = {{2, {2, 3}}, {1, {3}}, {1, {4}}, {1, {2}}}, .kind = INDEX, ARGS(-100, 0, TN_MEAN),
     TN__FAILS(TN_ESHAPE, "linear_cross_entropy: weight must be [classes, in], got [3]")},
    {.in = {{2, {2, 3}}, {2, {4, 3}}, {1, {3}}, {1, {2}}}, .kind = INDEX, ARGS(-100, 0, TN_MEAN),
     TN__FAILS(TN_ESHAPE, "linear_cross_entropy: bias is [3], but must be [4]: one value for each class")},
    {.in = {{2, {2, 3}}, {2, {4, 3}}, {1, {4}}, {1, {3}}}, .kind = INDEX, ARGS(-100, 0, TN_MEAN), TN__FAILS(TN_ESHAPE,
     "linear_cross_entropy: the target is [3], but for x [2, 3] it must be [2]: one class for each row")},
    {.in = {{2, {2, 3}}, {2, {4, 3}}, {1, {4}}, {1, {2}}}, .kind = {[3] = TN__ARG_REAL}, ARGS(-100, 0, TN_MEAN),
     TN__FAILS(TN_EDTYPE, "linear_cross_entropy: the target must be i64 or i32 (class indices); got f32")},
    {.in = {{2, {2, 3}}, {2, {4, 3}}, {1, {4}}, {1, {2}}}, .kind = INDEX, .high = {2, 2, 2, 8}, .low = {-2, -2, -2, 7},
     ARGS(-100, 0, TN_MEAN),
     TN__FAILS(TN_EINDEX, "linear_cross_entropy: target 7 at [0] is outside 0…3 and is not ignore_index -100")},
    {.in = {{2, {2, 3}}, {2, {4, 3}}, {1, {4}}, {1, {2}}}, .kind = INDEX, ARGS(-100, 0, TN_NONE),
     TN__FAILS(TN_EINVAL, "linear_cross_entropy: reduction 2 is neither TN_MEAN nor TN_SUM; for a loss of each row use "
     "tn_cross_entropy(tn_linear(x, weight, bias), target, .reduction = TN_NONE)")},
    {.in = {{2, {2, 3}}, {2, {4, 3}}, {1, {4}}, {1, {2}}}, .kind = INDEX, ARGS(-100, 2, TN_SUM),
     TN__FAILS(TN_EINVAL, "linear_cross_entropy: label_smoothing is 2, but must be from 0 to 1")},
};
/* clang-format on */

const tn_op tn__op_linear_cross_entropy = {TN__ROOM("linear_cross_entropy", TN_NARROW(3)),
                                           .inputs = 4,
                                           .outputs = 5,
                                           .optional = TN__IN(BIAS),
                                           .saves = TN_SAVE_IN(X) | TN_SAVE_IN(WEIGHT) | TN_SAVE_IN(BIAS) |
                                                    TN_SAVE_IN(TARGET) | TN_SAVE_OUT(COUNT) | TN_SAVE_OUT(2) |
                                                    TN_SAVE_OUT(3) | TN_SAVE_OUT(4),
                                           .args_size = sizeof(args_t),
                                           .infer = linear_cross_entropy_infer,
                                           .forward = linear_cross_entropy_forward,
                                           .backward = linear_cross_entropy_backward,
                                           .backward_ops = linear_cross_entropy_backward_ops};
TN__SAMPLES(linear_cross_entropy, samples);

tn_tensor *tn_linear_cross_entropy_run(tn_linear_cross_entropy_args a)
{
    tn_tensor   *in[4] = {a.x, a.weight, a.bias, a.target}, *out[5] = {NULL};
    const args_t args = {a.ignore_index, a.label_smoothing, a.reduction};
    if (tn_is_packed(a.weight)) in[WEIGHT] = tn__q8_unpacked(a.weight, TN_F32); /* it is used for every block of rows */
    tn__promote_all(3, in);
    tn_op_call(&tn__op_linear_cross_entropy, 4, in, 5, out, &args);
    if (a.counted && out[LOSS]) *a.counted = tn_get_i64(out[COUNT], 0);
    return out[LOSS];
}

#else /* =========================================================== kernels: contiguous rows, one real type */

/* Converts a row of logits to gz, and also writes it in the other dtype if that is requested. */
static void TN__(row)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const kernel_args *k = args;
    const TN__REAL    *bias = in[2];
    TN__REAL          *z = out[0];
    double            *loss = out[2], sum = 0;
    const int64_t      t = *(const int64_t *)in[1];
    if (bias)
        for (int64_t c = 0; c < n; c++) z[c] += bias[c];
    const TN__REAL max = TN__(tn__row_max)(n, z), at = z[t];
    if (k->smoothing != 0) sum = TN__(tn__sum)(n, z) - (double)n * (double)max;
    const double all = TN__(tn__exp_sum)(n, k->gradient ? z : NULL, z, max);
    const double own = k->smoothing != 1 ? (1 - k->smoothing) * (double)(at - max) : 0; /* 0 times infinity is 0 */
    *loss += log(all) - own - k->smoothing / (double)n * sum;
    if (!k->gradient) return;
    const TN__REAL by = (TN__REAL)(k->scale / all), even = (TN__REAL)(k->scale * k->smoothing / (double)n);
    for (int64_t c = 0; c < n; c++) z[c] = TN__(tn__no_tiny)(z[c]);
    if (even == 0) tn__kernels()->TN__(rows)->scale(n, z, z, by);
    else
        for (int64_t c = 0; c < n; c++) z[c] = z[c] * by - even;
    z[t] -= (TN__REAL)(k->scale * (1 - k->smoothing));
    if (out[1]) memcpy(out[1], z, (size_t)n * sizeof *z);
}
#endif
