/* convolve.c — convolutions as matrix products. For each output position the inputs under its window are laid out as
 * one column [C/groups · KH · KW]; with these columns as a matrix
 *
 *   y = w · columns,   gradient of x = wᵀ · y, added at the columns' places,   gradient of w = y · columnsᵀ
 *
 * for each group. The columns are made for a block of images (or of output rows, if one image is large) at a time. The
 * cuts depend on the shapes alone. One tap of the window is a view of x with steps, so that columns are made, and added
 * back, by one strided copy a tap; no tap reads the padding. */
#include "core/products/convolve.h"
#include "core/products/gemm.h"
#include "core/skeletons/skeletons.h"

enum { BLOCK = 1 << 20 }; /* elements of columns */

typedef struct {
    tn__windows g;
    int64_t     n, c, in[2], o, out[2];
    int64_t     taps, group_in, group_out; /* taps a window; channels a group */
    int64_t     images, rows;              /* of a block, maximum */
    bool        padded;
} job;

static job plan(const tn__windows *g, const tn_tensor *x, const tn_tensor *y)
{
    const int64_t *xs = x->l.shape.d, *ys = y->l.shape.d;
    job            j = {.g = *g, .n = xs[0], .c = xs[1], .in = {xs[2], xs[3]}, .o = ys[1], .out = {ys[2], ys[3]}};
    j.taps = g->size[0] * g->size[1], j.group_in = j.c / g->groups, j.group_out = j.o / g->groups;
    j.padded = g->padding[0] || g->padding[1];
    const int64_t rows = BLOCK / tn__max_i64(1, j.c) / j.taps / j.out[1];
    j.rows = tn__min_i64(tn__max_i64(rows, 1), j.out[0]);
    j.images = tn__min_i64(tn__max_i64(rows / j.out[0], 1), j.n);
    return j;
}

static bool too_large(tn_dtype dt, tn_shape s) { return !tn__shape_check("convolution", dt, s); }

/* Views t as a tensor of shape `to`: a glance if its strides allow, otherwise a copy, which the caller drops. */
static bool folded(const tn_tensor *t, tn_shape to, tn_tensor *as, tn_tensor **copy)
{
    tn__layout l;
    *copy = NULL;
    if (!tn__layout_reshape(&t->l, to, &l)) {
        if (!(*copy = tn__new_owned(t->dtype, t->l.shape))) return false;
        tn__copy(*copy, t);
        t = *copy, l = tn__layout_of_shape(to);
    }
    *as = tn__stack_view(t, &l);
    return true;
}

/* The part of t in a block: [n, groups, channels, positions]. */
static tn_tensor part(const tn_tensor *t, int64_t n0, int64_t n, int64_t p0, int64_t p)
{
    tn__layout l = t->l;
    l.offset += n0 * l.stride[0] + p0 * l.stride[3];
    l.shape.d[0] = n, l.shape.d[3] = p;
    return tn__stack_view(t, &l);
}

/* ---- columns, as [images, channels, taps, rows, columns] in any order of memory --------------------------------- */

/* Tap t of the windows from output row r0 on: the part of x it reads, and its place among the columns; false: none. */
static bool tap(const job *j, int64_t r0, int64_t t, const tn__layout *x, const tn__layout *columns, tn__layout *in,
                tn__layout *at)
{
    const int64_t k[2] = {t / j->g.size[1], t % j->g.size[1]}, start[2] = {r0, 0};
    *in = *x;
    *at = (tn__layout){.offset = columns->offset + t * columns->stride[2], .shape.n = 4};
    for (int i = 0; i < 4; i++)
        at->shape.d[i] = columns->shape.d[i + (i > 1)], at->stride[i] = columns->stride[i + (i > 1)];
    for (int i = 0; i < 2; i++) {
        const int64_t step = j->g.stride[i], shift = k[i] * j->g.dilation[i] - j->g.padding[i] + start[i] * step;
        const int64_t room = j->in[i] - shift; /* output o reads x at o · step + shift */
        const int64_t first = shift < 0 ? (-shift + step - 1) / step : 0;
        const int64_t end = tn__min_i64(room > 0 ? (room - 1) / step + 1 : 0, at->shape.d[i + 2]);
        if (first >= end) return false;
        in->offset += (shift + first * step) * in->stride[i + 2];
        in->stride[i + 2] *= step;
        at->offset += first * at->stride[i + 2];
        in->shape.d[i + 2] = at->shape.d[i + 2] = end - first;
    }
    return true;
}

static void gather(const job *j, const tn_tensor *x, int64_t n0, int64_t r0, tn_tensor *columns)
{
    tn__layout block = x->l, in, at;
    block.offset += n0 * block.stride[0], block.shape.d[0] = columns->l.shape.d[0];
    if (j->padded) tn__fill(columns, 0);
    for (int64_t t = 0; t < j->taps; t++) {
        if (!tap(j, r0, t, &block, &columns->l, &in, &at)) continue;
        const tn_tensor from = tn__stack_view(x, &in);
        tn_tensor       to = tn__stack_view(columns, &at);
        tn__copy(&to, &from);
    }
}

static void add_f32(int64_t n, void *const *y, const void *const *x, const void *args)
{
    float       *to = y[0];
    const float *a = x[0], *b = x[1];
    (void)args;
    for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i];
}
static void add_f64(int64_t n, void *const *y, const void *const *x, const void *args)
{
    double       *to = y[0];
    const double *a = x[0], *b = x[1];
    (void)args;
    for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i];
}

static void put_back(const job *j, const tn_tensor *x, int64_t n0, int64_t r0, const tn_tensor *columns)
{
    tn__layout block = x->l, in, at;
    block.offset += n0 * block.stride[0], block.shape.d[0] = columns->l.shape.d[0];
    for (int64_t t = 0; t < j->taps; t++) {
        if (!tap(j, r0, t, &block, &columns->l, &in, &at)) continue;
        tn_tensor to = tn__stack_view(x, &in), from = tn__stack_view(columns, &at);
        tn__map((tn__kernel_set){add_f32, add_f64, NULL}, TN__LIST(&to), TN__LIST(&to, &from), NULL);
    }
}

/* ---- the three products ------------------------------------------------------------------------------------------ */

/* A window of one tap without steps: x itself is the columns. */
static bool direct(const job *j, const tn_tensor *x, tn_tensor *as)
{
    tn__layout l;
    if (j->taps != 1 || j->padded || j->g.stride[0] != 1 || j->g.stride[1] != 1) return false;
    if (!tn__layout_reshape(&x->l, (tn_shape){.n = 4, .d = {j->n, j->g.groups, j->group_in, j->in[0] * j->in[1]}}, &l))
        return false;
    *as = tn__stack_view(x, &l);
    return true;
}

/* y = w · columns + beta · y, or, with `back`, x from wᵀ · y: writes one of x and y, through glances. */
static void product(const tn__windows *g, const tn_tensor *x, const tn_tensor *w, double beta, const tn_tensor *y,
                    bool back)
{
    const job      j = plan(g, x, y);
    const int64_t  depth = j.group_in * j.taps, width = j.out[1];
    const tn_shape most = {.n = 5, .d = {j.images, j.c, j.taps, j.rows, width}};
    tn_tensor     *columns = NULL, *wcopy = NULL, *ycopy = NULL, wm, ym, xm;
    const bool     straight = direct(&j, x, &xm);
    if (!folded(w, (tn_shape){.n = 3, .d = {g->groups, j.group_out, depth}}, &wm, &wcopy)) return;
    if (!folded(y, (tn_shape){.n = 4, .d = {j.n, g->groups, j.group_out, j.out[0] * width}}, &ym, &ycopy)) goto done;
    if (!straight && (too_large(x->dtype, most) || !(columns = tn__new_owned(x->dtype, most)))) goto done;
    tn__layout wt = wm.l; /* [groups, depth, out] */
    wt.shape.d[1] = wm.l.shape.d[2], wt.shape.d[2] = wm.l.shape.d[1], wt.stride[1] = wm.l.stride[2],
    wt.stride[2] = wm.l.stride[1];
    const tn_tensor wback = tn__stack_view(&wm, &wt);
    for (int64_t n0 = 0; n0 < j.n; n0 += j.images) {
        const int64_t n = tn__min_i64(j.images, j.n - n0);
        for (int64_t r0 = 0; r0 < j.out[0]; r0 += j.rows) {
            const int64_t r = tn__min_i64(j.rows, j.out[0] - r0), positions = r * width;
            tn_tensor     yp = part(&ym, n0, n, r0 * width, positions), cm, block;
            if (straight) {
                cm = part(&xm, n0, n, r0 * width, positions);
            } else {
                const tn__layout l = tn__layout_of_shape((tn_shape){.n = 5, .d = {n, j.c, j.taps, r, width}});
                const tn__layout m = tn__layout_of_shape((tn_shape){.n = 4, .d = {n, g->groups, depth, positions}});
                block = tn__stack_view(columns, &l), cm = tn__stack_view(columns, &m);
            }
            if (back) {
                tn__gemm(1, &wback, &yp, 0, &cm);
                if (!straight) put_back(&j, x, n0, r0, &block);
            } else {
                if (!straight) gather(&j, x, n0, r0, &block);
                tn__gemm(1, &wm, &cm, beta, &yp);
            }
            if (tn__self.error) goto done;
        }
    }
done:
    tn_drop(columns), tn_drop(wcopy), tn_drop(ycopy);
}

void tn__convolve(const tn__windows *g, const tn_tensor *x, const tn_tensor *w, double beta, tn_tensor *y)
{
    if (tn_numel(x) && tn_numel(y)) product(g, x, w, beta, y, false);
    else if (beta == 0) tn__fill(y, 0); /* no channels: nothing to sum */
}

/* A copy in f32: bf16 sums are kept in f32 until the end. */
static tn_tensor *wide(const tn_tensor *t)
{
    tn_tensor *y = tn__new_owned(TN_F32, t->l.shape);
    if (y) tn__copy(y, t);
    return y;
}

void tn__convolve_input(const tn__windows *g, tn_tensor *x, const tn_tensor *w, const tn_tensor *y)
{
    if (x->dtype == TN_BF16) {
        tn_tensor *wx = tn__new_owned(TN_F32, x->l.shape), *ww = wide(w), *wy = wide(y);
        if (wx && ww && wy) tn__convolve_input(g, wx, ww, wy);
        if (!tn__self.error) tn__copy(x, wx);
        tn_drop(wx), tn_drop(ww), tn_drop(wy);
        return;
    }
    tn__fill(x, 0);
    if (tn_numel(x) && tn_numel(y)) product(g, x, w, 0, y, true);
}

void tn__convolve_weight(const tn__windows *g, const tn_tensor *x, tn_tensor *w, const tn_tensor *y)
{
    if (x->dtype == TN_BF16) {
        tn_tensor *wx = wide(x), *ww = tn__new_owned(TN_F32, w->l.shape), *wy = wide(y);
        if (wx && ww && wy) tn__convolve_weight(g, wx, ww, wy);
        if (!tn__self.error) tn__copy(w, ww);
        tn_drop(wx), tn_drop(ww), tn_drop(wy);
        return;
    }
    tn__fill(w, 0);
    if (!tn_numel(x) || !tn_numel(w) || !tn_numel(y)) return;
    /* One product a block: all its positions are one long sum. So here the images are inside the taps. */
    const job      j = plan(g, x, y);
    const int64_t  depth = j.group_in * j.taps, width = j.out[1];
    const tn_shape most = {.n = 5, .d = {j.c, j.taps, j.images, j.rows, width}},
                   ymost = {.n = 4, .d = {j.o, j.images, j.rows, width}};
    const tn__layout wl = tn__layout_of_shape((tn_shape){.n = 3, .d = {g->groups, j.group_out, depth}});
    tn_tensor        wm = tn__stack_view(w, &wl), *columns = NULL, *ys = NULL;
    if (too_large(x->dtype, most) || !(columns = tn__new_owned(x->dtype, most))) goto done;
    if (!(ys = tn__new_owned(x->dtype, ymost))) goto done;
    for (int64_t n0 = 0; n0 < j.n; n0 += j.images) {
        const int64_t n = tn__min_i64(j.images, j.n - n0);
        for (int64_t r0 = 0; r0 < j.out[0]; r0 += j.rows) {
            const int64_t    r = tn__min_i64(j.rows, j.out[0] - r0), line = n * r * width;
            const tn__layout l = {.shape = {.n = 5, .d = {n, j.c, j.taps, r, width}},
                                  .stride = {r * width, j.taps * line, line, width, 1}};
            tn_tensor        block = tn__stack_view(columns, &l);
            gather(&j, x, n0, r0, &block);

            const tn__layout to = {.shape = {.n = 4, .d = {n, j.o, r, width}}, .stride = {r * width, line, width, 1}};
            tn__layout       from = y->l;
            from.offset += n0 * from.stride[0] + r0 * from.stride[2], from.shape.d[0] = n, from.shape.d[2] = r;
            tn_tensor       yto = tn__stack_view(ys, &to);
            const tn_tensor yfrom = tn__stack_view(y, &from);
            tn__copy(&yto, &yfrom);

            const tn__layout a = tn__layout_of_shape((tn_shape){.n = 3, .d = {g->groups, j.group_out, line}});
            const tn__layout b = {.shape = {.n = 3, .d = {g->groups, line, depth}}, .stride = {depth * line, 1, line}};
            const tn_tensor  am = tn__stack_view(ys, &a), bm = tn__stack_view(columns, &b);
            tn__gemm(1, &am, &bm, 1, &wm);
            if (tn__self.error) goto done;
        }
    }
done:
    tn_drop(columns), tn_drop(ys);
}
