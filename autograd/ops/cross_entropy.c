/* cross_entropy — the loss of logits x against a target class, or against probabilities of all classes
 *
 *   With l = log_softmax(x) over the classes and shares a_c of the loss, a row's loss is -Σ_c a_c l_c:
 *     a class t:           a_c = (1-ε) w_t [c = t] + ε/C w_c        (ε: label smoothing; w: weights, else 1; C classes)
 *     probabilities t_c:   a_c = w_c ((1-ε) t_c + ε/C)
 *   mean: the sum of the losses divided by the sum of the w_t, or by the number of rows for probabilities
 *   gx_c = s (Σ a · softmax(x)_c - a_c)        gt_c = -s (1-ε) w_c l_c        s: gy, for the mean gy / that divisor
 *
 * Softmax is not stored: hidden results keep, for the backward, each row's largest x and log Σ exp(x - largest), and
 * the divisor and the count. If all targets are ignored or of weight 0, the mean and its gradient are 0. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/losses.h"
#include "core/kernels/vecmath.h"
typedef tn__class_args args_t;
typedef struct {
    const args_t *a;
    bool          classes; /* the target holds classes, not probabilities */
} kernel_args;
#define TN__TEMPLATE "autograd/ops/cross_entropy.c"
#include "core/real.h"

static bool cross_entropy_infer(tn_ctx *c)
{
    if (!tn__infer_classes(c, true)) return false;
    const tn_tensor *x = c->in[TN__CLASS_X];
    int              dim = TN_ARG(c, dim);
    if (TN_ARG(c, ignore) >= 0 && tn__is_float(c->in[TN__CLASS_TARGET]->dtype))
        return tn_infer_fail(
            c, TN_EINVAL, "ignore_index is %lld, but a target of probabilities has no index; remove such rows instead",
            (long long)TN_ARG(c, ignore));
    tn__wrap_dim("cross_entropy", &dim, x->l.shape.n);
    c->result[1] = (tn_result){tn__wide(x->dtype), x->l.shape};
    c->result[1].shape.d[dim] = 2;
    return true;
}
static void cross_entropy_forward(tn_ctx *c)
{
    tn_tensor      *x = c->in[TN__CLASS_X];
    const args_t   *a = c->args;
    kernel_args     k = {a, !tn__is_float(c->in[TN__CLASS_TARGET]->dtype)};
    tn__class_views v;
    tn__class_sum   sums;
    tn__class_view(&v, c->in, x->l.shape, a->dim, a->reduction == TN_NONE ? c->out[0] : NULL);
    tn__rows_sums(TN__REALS(cross_entropy_fwd), a->dim, TN__LIST(c->out[1], v.column), TN__LIST(tn__class_sums(&sums)),
                  TN__LIST(x, v.target, v.weight), &k);
    if (!tn_error()) tn__class_results(&sums, a->reduction, c->out[0], c->out[2], c->out[3]);
}

static void cross_entropy_backward(tn_back *b)
{
    const args_t   *a = b->args;
    const tn_shape  x = b->in_shape[0];
    kernel_args     k = {a, !tn__is_float(b->in[TN__CLASS_TARGET]->dtype)};
    tn__class_views v;
    if (!b->gy[0]) return;
    tn__class_view(&v, b->in, x, a->dim, b->gy[0]);
    for (int i = 0; i < 2; i++)
        if (b->need[i]) b->gx[i] = tn_empty_of(b->in_dtype[i], x);
    if (!tn_error())
        tn__rows(TN__REALS(cross_entropy_bwd), a->dim, TN__LIST(b->gx[0], b->gx[1]),
                 TN__LIST(b->in[0], b->out[1], v.target, v.weight, v.column, b->out[2]), &k);
}

/* The shares a_c for a target of classes; constants. */
static tn_tensor *shares(const tn_back *b)
{
    const args_t   *a = b->args;
    tn_tensor      *y = tn_empty_of(b->in_dtype[0], b->in_shape[0]);
    tn__class_views v;
    tn__class_view(&v, b->in, b->in_shape[0], a->dim, NULL);
    if (y) tn__rows(TN__REALS(share), a->dim, TN__LIST(y), TN__LIST(b->in[0], v.target, v.weight), a);
    return y;
}
static void cross_entropy_backward_ops(tn_back *b)
{
    const args_t *a = b->args;
    const int     dim = a->dim < 0 ? a->dim + b->in_shape[0].n : a->dim;
    tn_tensor    *x = b->in[TN__CLASS_X], *t = b->in[TN__CLASS_TARGET], *w = b->in[TN__CLASS_WEIGHT], *gy = b->gy[0],
              *share;
    if (!gy) return;
    if (a->reduction == TN_NONE) gy = tn_unsqueeze(gy, dim);
    if (a->reduction == TN_MEAN && tn_item(b->out[2]) != 0) gy = tn_div(gy, tn_detach(b->out[2]));
    if (w) { /* [C] along the classes' dim */
        tn_shape s = {.n = b->in_shape[0].n - dim, .d = {b->in_shape[0].d[dim]}};
        for (int i = 1; i < s.n; i++) s.d[i] = 1;
        w = tn_reshape(w, s);
    }
    if (tn__is_float(t->dtype)) {
        share = tn_add_scalar(tn_mul_scalar(t, 1 - a->smoothing), a->smoothing / (double)b->in_shape[0].d[dim]);
        if (w) share = tn_mul(share, w);
    } else {
        share = shares(b);
        /* ignored rows may be NaN */
        x = tn_masked_fill(x, tn_eq(tn_unsqueeze(t, dim), tn_scalar_of(TN_I64, (double)a->ignore)), 0);
    }
    if (b->need[0]) {
        tn_tensor *p = tn_mul(tn_sum(share, .dims = TN_DIMS(dim), .keepdim = true), tn_softmax(x, dim));
        b->gx[0] = tn_mul(gy, tn_sub(p, share));
    }
    if (b->need[1]) {
        tn_tensor *l = tn_mul_scalar(tn_log_softmax(x, dim), a->smoothing - 1);
        b->gx[1] = tn_mul(gy, w ? tn_mul(l, w) : l);
    }
}

#define CLASSES .kind = {0, TN__ARG_INDEX, TN__ARG_ABSENT}
#define WEIGHTED .kind = {0, TN__ARG_INDEX, TN__ARG_CONST}
#define ARGS(...) \
    .args = &(args_t) { __VA_ARGS__ }
/* clang-format off */
static const tn__sample samples[] = {
    /* ignore_index -8: all ignored */
    {.in = {{2, {4, 5}}, {1, {4}}}, CLASSES, .high = {2, 5}, .low = {-2}, ARGS(-100, 0, TN_MEAN, -1)},
    {.in = {{2, {4, 5}}, {1, {4}}, {1, {5}}}, WEIGHTED, .high = {2, 5, 2}, .low = {-2, 0, 0.1},
     ARGS(2, 0.1, TN_MEAN, -1)},
    {.in = {{3, {2, 3, 4}}, {2, {2, 4}}, {1, {3}}}, WEIGHTED, .high = {2, 3, 2}, .low = {-2, 0, 0.1},
     ARGS(1, 0.3, TN_NONE, 1)},
    {.in = {{3, {2, 3, 4}}, {2, {2, 3}}}, CLASSES, .high = {2, 4}, .low = {-2}, ARGS(-100, 1, TN_SUM, -1)},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, .kind = {0, TN__ARG_ROWSUM1, TN__ARG_ABSENT}, ARGS(-100, 0, TN_MEAN, -1)},
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {1, {4}}}, .kind = {0, TN__ARG_REAL, TN__ARG_CONST}, .high = {2, 1, 2},
     .low = {-2, 0, 0.1}, ARGS(-100, 0.2, TN_NONE, -1)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {1, {3}}}, .kind = {0, TN__ARG_REAL, TN__ARG_CONST}, .high = {2, 1, 2},
     .low = {-2, 0, 0.1}, ARGS(-100, 0.2, TN_SUM, 1)},
    {.in = {{1, {4}}, {0, {0}}}, CLASSES, .high = {2, 4}, .low = {-2}, ARGS(-100, 0, TN_MEAN, -1)},
    {.in = {{2, {3, 19}}, {1, {3}}}, CLASSES, .high = {3, 19}, .low = {-3}, ARGS(-100, 0, TN_MEAN, -1)},
    {.in = {{2, {3, 1}}, {1, {3}}}, CLASSES, .high = {2, 1}, .low = {-2}, ARGS(-100, 0, TN_SUM, -1)},
    {.in = {{2, {3, 4}}, {1, {3}}}, CLASSES, .high = {2, -7}, .low = {-2, -8}, ARGS(-8, 0, TN_MEAN, -1)},
    {.in = {{2, {0, 4}}, {1, {0}}}, CLASSES, .high = {2, 4}, .low = {-2}, ARGS(-100, 0, TN_NONE, -1)},
    {.in = {{2, {2, 3}}, {1, {2}}}, CLASSES, .high = {2, 8001}, .low = {-2, 8000}, ARGS(-100, 0, TN_MEAN, -1),
     TN__FAILS(TN_EINDEX, "cross_entropy: target 8000 at [0] is outside 0…2 and is not ignore_index -100")},
    {.in = {{1, {3}}, {0, {0}}}, CLASSES, .high = {2, -1}, .low = {-2, -2}, ARGS(-100, 0, TN_MEAN, -1),
     TN__FAILS(TN_EINDEX, "cross_entropy: target -2 is outside 0…2 and is not ignore_index -100")},
    {.in = {{3, {2, 3, 4}}, {2, {2, 3}}}, CLASSES, .high = {2, 3}, .low = {-2}, ARGS(-100, 0, TN_MEAN, 1),
     TN__FAILS(TN_ESHAPE,
     "cross_entropy: the target is i64 [2, 3], but for 3 classes in dim 1 of [2, 3, 4] it must be [2, 4]; if "
     "the classes are in dim 2, set .class_dim = 2")},
    {.in = {{2, {2, 3}}, {1, {2}}}, .kind = {0, TN__ARG_REAL, TN__ARG_ABSENT}, ARGS(-100, 0, TN_MEAN, -1),
     TN__FAILS(TN_ESHAPE,
     "cross_entropy: the target is f32 [2], but for 3 classes in dim 1 of [2, 3] it must be [2, 3], one "
     "probability for each class")},
    {.in = {{2, {2, 3}}, {1, {2}}}, .kind = {0, TN__ARG_MASK, TN__ARG_ABSENT}, ARGS(-100, 0, TN_MEAN, -1),
     TN__FAILS( TN_EDTYPE,
     "cross_entropy: the target must be i64 or i32 (class indices) or floating (class probabilities); got bool")},
    {.in = {{2, {2, 3}}, {1, {2}}, {1, {2}}}, WEIGHTED, .high = {2, 3, 2}, .low = {-2}, ARGS(-100, 0, TN_MEAN, -1),
     TN__FAILS(TN_ESHAPE, "cross_entropy: weight is [2], but must be [3]: one value for each class")},
    {.in = {{2, {2, 3}}, {1, {2}}}, CLASSES, .high = {2, 3}, .low = {-2}, ARGS(-100, 1.5, TN_MEAN, -1),
     TN__FAILS(TN_EINVAL, "cross_entropy: label_smoothing is 1.5, but must be from 0 to 1")},
    {.in = {{2, {2, 3}}, {1, {2}}}, CLASSES, .high = {2, 3}, .low = {-2}, ARGS(-100, 0, (tn_reduction)7, -1),
     TN__FAILS(TN_EINVAL, "cross_entropy: reduction 7 is not TN_MEAN, TN_SUM or TN_NONE")},
    {.in = {{0, {0}}, {0, {0}}}, CLASSES, .high = {2, 3}, .low = {-2}, ARGS(-100, 0, TN_MEAN, -1),
     TN__FAILS(TN_ESHAPE, "cross_entropy: a 0-d tensor has no dim of classes")},
    {.in = {{2, {2, 3}}, {2, {2, 3}}}, .kind = {0, TN__ARG_REAL, TN__ARG_ABSENT}, ARGS(2, 0, TN_MEAN, -1),
     TN__FAILS( TN_EINVAL,
     "cross_entropy: ignore_index is 2, but a target of probabilities has no index; remove such rows instead")},
};
/* clang-format on */

const tn_op tn__op_cross_entropy = {TN__ROOM("cross_entropy", TN_WIDE),
                                    .inputs = TN__CLASS_INPUTS,
                                    .outputs = 4,
                                    .optional = TN__IN(TN__CLASS_WEIGHT),
                                    .saves =
                                        TN_SAVE_IN(0) | TN_SAVE_IN(1) | TN_SAVE_IN(2) | TN_SAVE_OUT(1) | TN_SAVE_OUT(2),
                                    .args_size = sizeof(args_t),
                                    .infer = cross_entropy_infer,
                                    .forward = cross_entropy_forward,
                                    .backward = cross_entropy_backward,
                                    .backward_ops = cross_entropy_backward_ops};
TN__SAMPLES(cross_entropy, samples);

tn_tensor *tn_cross_entropy_run(tn_cross_entropy_args a)
{
    return tn__class_loss(&tn__op_cross_entropy, (tn__class_args){.smoothing = a.label_smoothing}, a, 4);
}

#else /* =========================================================== kernels: contiguous rows, one real type */

/* The data of a row's loss: its target's class, or -1 (ignored); or its target's row of probabilities. */
typedef struct {
    const TN__REAL *w, *p;
    int64_t         t;
    double          rest, even; /* 1 - ε; ε / C */
} TN__(row);

static bool TN__(row_of)(TN__(row) * r, int64_t n, const void *target, const TN__REAL *w, const kernel_args *k)
{
    r->w = w, r->p = k->classes ? NULL : target, r->t = k->classes ? *(const int64_t *)target : -1;
    r->rest = 1 - k->a->smoothing, r->even = k->a->smoothing / (double)n;
    return !k->classes || r->t != k->a->ignore;
}
static inline double TN__(share_of)(const TN__(row) * r, int64_t c) /* a_c */
{
    const double w = r->w ? (double)r->w[c] : 1;
    return w * (r->p ? r->rest * (double)r->p[c] + r->even : (c == r->t ? r->rest : 0) + r->even);
}
static double TN__(shares_of)(const TN__(row) * r, int64_t n) /* Σ a */
{
    double sum = 0;
    if (!r->p && r->even == 0) return TN__(share_of)(r, r->t);
    if (!r->p && !r->w) return 1;
    for (int64_t c = 0; c < n; c++) sum += TN__(share_of)(r, c);
    return sum;
}

static void TN__(cross_entropy_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *stat = out[0], *loss = out[1];
    double         *sums = out[2], sum = 0;
    TN__(row) r;
    stat[0] = stat[1] = 0;
    if (loss) *loss = 0;
    if (!TN__(row_of)(&r, n, in[1], in[2], args)) return;

    const TN__REAL max = TN__(tn__row_max)(n, x);
    const double   log_sum = log(TN__(tn__exp_sum)(n, NULL, x, max));
    stat[0] = max, stat[1] = (TN__REAL)log_sum;

    if (!r.p && r.even == 0) {
        sum = TN__(share_of)(&r, r.t) * (log_sum + ((double)max - (double)x[r.t]));
    } else {
        for (int64_t c = 0; c < n; c++) { /* 0 times an infinite loss counts as 0 */
            const double share = TN__(share_of)(&r, c);
            if (share != 0) sum += share * (log_sum + ((double)max - (double)x[c]));
        }
    }
    if (loss) *loss = (TN__REAL)sum;
    sums[0] += sum;
    sums[1] += r.p || !r.w ? 1 : (double)r.w[r.t];
    sums[2] += 1;
}

static void TN__(cross_entropy_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL    *x = in[0], *stat = in[1], *gy = in[4], *divisor = in[5], max = stat[0], log_sum = stat[1];
    TN__REAL          *gx = out[0], *gt = out[1];
    const kernel_args *k = args;
    const TN__REAL     s = k->a->reduction != TN_MEAN ? *gy : *divisor != 0 ? *gy / *divisor : 0;
    TN__(row) r;
    if (!TN__(row_of)(&r, n, in[2], in[3], k)) {
        for (int64_t c = 0; gx && c < n; c++) gx[c] = 0;
        return;
    }
    if (gx) {
        const TN__REAL all = (TN__REAL)TN__(shares_of)(&r, n) * s;
        for (int64_t c = 0; c < n; c++) gx[c] = x[c] - max - log_sum;
        TN__(tn__exp)(n, gx, gx);
        for (int64_t c = 0; c < n; c++) gx[c] = TN__(tn__no_tiny)(gx[c]) * all;
        if (!r.p && (!r.w || r.even == 0)) { /* all classes but the target have the same share */
            const TN__REAL hit = gx[r.t] - s * (TN__REAL)TN__(share_of)(&r, r.t), even = s * (TN__REAL)r.even;
            for (int64_t c = 0; c < n && even != 0; c++) gx[c] -= even;
            gx[r.t] = hit;
        } else {
            for (int64_t c = 0; c < n; c++) gx[c] -= s * (TN__REAL)TN__(share_of)(&r, c);
        }
    }
    if (gt)
        for (int64_t c = 0; c < n; c++) gt[c] = s * (TN__REAL)r.rest * (r.w ? r.w[c] : 1) * (log_sum + (max - x[c]));
}

static void TN__(share)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    TN__REAL         *y = out[0];
    const kernel_args k = {args, true};
    TN__(row) r;
    const bool counts = TN__(row_of)(&r, n, in[1], in[2], &k);
    for (int64_t c = 0; c < n; c++) y[c] = counts ? (TN__REAL)TN__(share_of)(&r, c) : 0;
}
#endif
