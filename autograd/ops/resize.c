/* resize — one dim, from `before` to `after` elements, by linear interpolation
 *
 *   y_i = (1 - w) x[k] + w x[k + 1]    with s = (i + ½) before / after - ½, at least 0, k = ⌊s⌋ and w = s - k;
 *                                      with align_corners s = i (before - 1) / (after - 1)
 *   transposed: y[k] += (1 - w) x_i and y[k + 1] += w x_i, in the order of i
 *
 * Each is the derivative of the other. An element with w = 0 is x[k] itself: x[k + 1] does not reach it, even if it is
 * NaN or infinite. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/resize.h"
typedef struct {
    int64_t        before, after, inner; /* inner: elements after dim */
    bool           transposed;
    const int64_t *low;   /* k */
    const double  *share; /* w */
} taps;
#define TN__TEMPLATE "autograd/ops/resize.c"
#include "core/real.h"

static bool resize_infer(tn_ctx *c)
{
    const tn__resize *a = c->args;
    tn_infer_like(c, 0, 0);
    c->result[0].shape.d[a->dim] = a->transposed ? a->before : a->after;
    return tn__need_real(c, 0);
}

/* Where each element of the resized dim comes from. */
static void find_taps(const tn__resize *a, bool narrow, int64_t *low, double *share)
{
    const double step = !a->align_corners ? (double)a->before / (double)a->after
                        : a->after > 1    ? (double)(a->before - 1) / (double)(a->after - 1)
                                          : 0;
    for (int64_t i = 0; i < a->after; i++) {
        const double at = a->align_corners ? (double)i * step : fmax(0, ((double)i + 0.5) * step - 0.5);
        int64_t      k = tn__min_i64((int64_t)at, a->before - 1);
        k += narrow && k + 1 < a->before && (float)(at - (double)k) == 1; /* w would round to 1 */
        low[i] = k;
        share[i] = k + 1 < a->before ? fmax(0, at - (double)k) : 0;
    }
}

static void resize_forward(tn_ctx *c)
{
    const tn__resize *a = c->args;
    const tn_shape    shape = c->in[0]->l.shape;
    taps              t = {.before = a->before, .after = a->after, .inner = 1, .transposed = a->transposed};
    const tn_scope    s = tn_scope_begin();
    tn_tensor        *low = tn_empty_of(TN_I64, TN_SHAPE(a->after)), *share = tn_empty_of(TN_F64, TN_SHAPE(a->after));
    for (int i = a->dim + 1; i < shape.n; i++) t.inner *= shape.d[i];
    const int64_t of_x = t.inner * (a->transposed ? a->after : a->before),
                  outer = of_x ? tn_shape_numel(shape) / of_x : 0;
    tn_tensor *x = tn_reshape(c->in[0], TN_SHAPE(outer, of_x));
    tn_tensor *y = tn_reshape(c->out[0], TN_SHAPE(outer, t.inner * (a->transposed ? a->before : a->after)));
    if (low && share && x && y && outer) {
        find_taps(a, tn_dtype_of(x) != TN_F64, tn__ptr(low), tn__ptr(share));
        t.low = tn__ptr(low), t.share = tn__ptr(share);
        tn__rows(TN__REALS(resize_fwd), 1, TN__LIST(y), TN__LIST(x), &t);
    }
    tn_scope_end(s);
}

static void resize_backward_ops(tn_back *b)
{
    tn__resize a = *(const tn__resize *)b->args;
    a.transposed = !a.transposed;
    b->gx[0] = tn_apply_args(&tn__op_resize, &a, b->gy[0]);
}

#define TO(dim, before, after, align, transposed) \
    .args = &(tn__resize) { dim, before, after, align, transposed }
static const tn__sample samples[] = {
    {.in = {{3, {2, 3, 4}}}, TO(2, 4, 7, false, false)}, {.in = {{3, {2, 3, 4}}}, TO(1, 3, 2, false, false)},
    {.in = {{3, {2, 3, 4}}}, TO(1, 3, 5, true, false)},  {.in = {{3, {2, 5, 4}}}, TO(1, 3, 5, true, true)},
    {.in = {{2, {2, 7}}}, TO(1, 4, 7, false, true)},     {.in = {{2, {0, 7}}}, TO(1, 4, 7, false, true)},
    {.in = {{2, {3, 4}}}, TO(1, 4, 1, true, false)},     {.in = {{2, {3, 1}}}, TO(1, 1, 6, false, false)},
};

const tn_op tn__op_resize = {TN__ROOM("resize", TN_WIDE),     .inputs = 1,
                             .args_size = sizeof(tn__resize), .infer = resize_infer,
                             .forward = resize_forward,       .backward_ops = resize_backward_ops};
TN__SAMPLES(resize, samples);

#else /* ================================================ kernels: the elements from dim on as one row, one real type */

static void TN__(spread)(const taps *t, TN__REAL *y, const TN__REAL *x)
{
    const int64_t n = t->inner;
    for (int64_t j = 0; j < t->before * n; j++) y[j] = 0;
    for (int64_t i = 0; i < t->after; i++, x += n) {
        const TN__REAL w = (TN__REAL)t->share[i], v = 1 - w;
        TN__REAL      *low = y + t->low[i] * n;
        for (int64_t j = 0; j < n; j++) low[j] += v * x[j];
        for (int64_t j = 0; w != 0 && j < n; j++) low[n + j] += w * x[j];
    }
}

static void TN__(resize_fwd)(int64_t elements, void *const *out, const void *const *in, const void *args)
{
    const taps     *t = args;
    const int64_t   n = t->inner;
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0];
    (void)elements;
    if (t->transposed) {
        TN__(spread)(t, y, x);
        return;
    }
    for (int64_t i = 0; i < t->after; i++, y += n) {
        const TN__REAL  w = (TN__REAL)t->share[i], v = 1 - w;
        const TN__REAL *low = x + t->low[i] * n;
        if (w == 0)
            for (int64_t j = 0; j < n; j++) y[j] = low[j];
        else
            for (int64_t j = 0; j < n; j++) y[j] = low[j] * v + low[n + j] * w;
    }
}
#endif
