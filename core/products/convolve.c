/* convolve.c — convolutions as matrix products. For each output position the inputs under its window are laid out as
 * one column [C/groups · KH · KW]; with these columns as a matrix
 *
 *   y = w · columns,   gradient of x = wᵀ · y, added at the columns' places,   gradient of w = y · columnsᵀ
 *
 * for each group. The columns are made for a block of images (or of output rows, if one image is large) at a time. The
 * cuts depend on the shapes alone. The positions that a tap of the window reads are rows of x, or one piece of its
 * plane, which are copied, or added back, at once; no tap reads the padding. */
#include "core/products/convolve.h"
#include "core/base/parallel.h"
#include "core/products/gemm.h"
#include "core/skeletons/skeletons.h"

#include <string.h>

enum { /* elements of columns in a block: of the forward pass, which leaves them in L2, and of the gradients */
       NEAR = 1 << 16,
       BACK = 1 << 18,
       FAR = 1 << 20,
       PLANES = 1 << 14, /* of a gathered plane: those that a thread takes at a time */
       FEW = 2           /* blocks for each thread */
};

typedef struct {
    tn__windows g;
    int64_t     n, c, in[2], o, out[2];
    int64_t     taps, group_in, group_out; /* taps a window; channels a group */
    int64_t     images, rows;              /* of a block, maximum */
    bool        padded;
} job;

static job plan(const tn__windows *g, const tn_tensor *x, const tn_tensor *y, int64_t most)
{
    const int64_t *xs = x->l.shape.d, *ys = y->l.shape.d;
    job            j = {.g = *g, .n = xs[0], .c = xs[1], .in = {xs[2], xs[3]}, .o = ys[1], .out = {ys[2], ys[3]}};
    j.taps = g->size[0] * g->size[1], j.group_in = j.c / g->groups, j.group_out = j.o / g->groups;
    j.padded = g->padding[0] || g->padding[1];
    /* a block reads all weights: if those do not fit beside it, in L2, it is large */
    if (tn__max_i64(1, j.group_in) * j.taps > NEAR / tn__max_i64(1, j.o)) most = FAR;
    const int64_t rows = most / tn__max_i64(1, j.c) / j.taps / j.out[1];
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

/* ---- columns: a row of positions for each image, channel and tap ------------------------------------------------- */

/* Columns in memory; strides in elements. A row takes an odd number of cache lines, so that the rows which a product
 * reads together do not map to the same cache sets. */
typedef struct {
    char   *at;
    int64_t image, channel, tap;
} columns;

static int64_t row_of(int64_t positions, int64_t bytes)
{
    const int64_t line = 64 / bytes;
    return (tn__ceil_div(positions, line) | 1) * line;
}

/* The positions whose tap t reads x, [first, end) in each dim: output o, from r0 on, reads x at o · step + shift. */
typedef struct {
    int64_t first[2], end[2], shift[2];
    bool    none;
} reads;

static reads reads_of(const job *j, int64_t t, int64_t r0, int64_t rows)
{
    const int64_t k[2] = {t / j->g.size[1], t % j->g.size[1]}, start[2] = {r0, 0}, size[2] = {rows, j->out[1]};
    reads         at = {.none = false};
    for (int i = 0; i < 2; i++) {
        const int64_t step = j->g.stride[i], shift = k[i] * j->g.dilation[i] - j->g.padding[i] + start[i] * step;
        const int64_t room = j->in[i] - shift;
        at.shift[i] = shift, at.first[i] = shift < 0 ? tn__ceil_div(-shift, step) : 0;
        at.end[i] = tn__min_i64(room > 0 ? (room - 1) / step + 1 : 0, size[i]);
        at.none = at.none || at.first[i] >= at.end[i];
    }
    return at;
}

/* A block of images or output rows, as a loop over its planes: an image's channel each. */
typedef struct {
    const job       *j;
    const tn_tensor *x;
    columns          c;
    int64_t          n0, n, r0, rows;
    bool             whole; /* a tap of all positions is one piece of x, apart from the padding */
} pass;

static pass pass_of(const job *j, const tn_tensor *x, int64_t n0, int64_t n, int64_t r0, int64_t rows, columns c)
{
    pass p = {.j = j, .x = x, .c = c, .n0 = n0, .n = n, .r0 = r0, .rows = rows};
    p.whole = j->g.stride[0] == 1 && j->g.stride[1] == 1 && j->in[1] == j->out[1] && x->l.stride[3] == 1 &&
              x->l.stride[2] == j->in[1];
    return p;
}

/* With `whole`: the elements of x from `from` on that are the columns from `to` on, wherever the padding is not. */
typedef struct {
    int64_t from, to, n;
} piece;

static piece piece_of(const job *j, const reads *at)
{
    const int64_t width = j->out[1], from = (at->first[0] + at->shift[0]) * width + at->shift[1];
    const int64_t skip = from < 0 ? -from : 0, all = (at->end[0] - at->first[0]) * width;
    return (piece){from + skip, at->first[0] * width + skip, tn__min_i64(all, j->in[0] * width - from) - skip};
}

/* For elements of type T: fills rows by cols elements with zeros; copies n elements; one tap of a plane. With p->whole
 * the piece that is copied includes neighbouring elements where the padding is, which are then overwritten. */
#define TAPS(T, name)                                                                                        \
    static void zero_##name(T *to, int64_t rows, int64_t row, int64_t cols)                                  \
    {                                                                                                        \
        for (int64_t i = 0; i < cols; i++)                                                                   \
            for (int64_t r = 0; r < rows; r++) to[r * row + i] = 0;                                          \
    }                                                                                                        \
    static void margins_##name(const reads *at, int64_t rows, int64_t width, T *to)                          \
    {                                                                                                        \
        const int64_t inner = at->end[0] - at->first[0];                                                     \
        memset(to, 0, (size_t)(at->first[0] * width) * sizeof(T));                                           \
        memset(to + at->end[0] * width, 0, (size_t)((rows - at->end[0]) * width) * sizeof(T));               \
        to += at->first[0] * width;                                                                          \
        zero_##name(to, inner, width, at->first[1]);                                                         \
        zero_##name(to + at->end[1], inner, width, width - at->end[1]);                                      \
    }                                                                                                        \
    static void gather_##name(const pass *p, const reads *at, const T *x, T *to)                             \
    {                                                                                                        \
        const job    *j = p->j;                                                                              \
        const int64_t width = j->out[1], row = p->x->l.stride[2], step = p->x->l.stride[3] * j->g.stride[1]; \
        const int64_t cols = at->end[1] - at->first[1];                                                      \
        if (at->none) {                                                                                      \
            memset(to, 0, (size_t)(p->rows * width) * sizeof(T));                                            \
            return;                                                                                          \
        }                                                                                                    \
        if (p->whole) {                                                                                      \
            const piece all = piece_of(j, at);                                                               \
            memcpy(to + all.to, x + all.from, (size_t)all.n * sizeof(T));                                    \
        } else {                                                                                             \
            x += (at->first[1] * j->g.stride[1] + at->shift[1]) * p->x->l.stride[3];                         \
            for (int64_t r = at->first[0]; r < at->end[0]; r++) {                                            \
                const T *from = x + (r * j->g.stride[0] + at->shift[0]) * row;                               \
                T       *line = to + r * width + at->first[1];                                               \
                if (step == 1) memcpy(line, from, (size_t)cols * sizeof(T));                                 \
                else                                                                                         \
                    for (int64_t i = 0; i < cols; i++) line[i] = from[i * step];                             \
            }                                                                                                \
        }                                                                                                    \
        margins_##name(at, p->rows, width, to);                                                              \
    }
TAPS(float, f32)
TAPS(double, f64)
TAPS(uint16_t, bf16)

/* Adds columns at the places in x that they were read from. */
#define PUT_BACK(T, name)                                                                                    \
    static void add_##name(int64_t n, T *restrict to, const T *restrict from)                                \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++) to[i] += from[i];                                                    \
    }                                                                                                        \
    static void put_back_##name(const pass *p, const reads *at, T *x, T *line)                               \
    {                                                                                                        \
        const job    *j = p->j;                                                                              \
        const int64_t width = j->out[1], row = p->x->l.stride[2], step = p->x->l.stride[3] * j->g.stride[1]; \
        const int64_t cols = at->end[1] - at->first[1];                                                      \
        if (at->none) return;                                                                                \
        if (p->whole) {                                                                                      \
            const piece all = piece_of(j, at);                                                               \
            margins_##name(at, p->rows, width, line);                                                        \
            add_##name(all.n, x + all.from, line + all.to);                                                  \
            return;                                                                                          \
        }                                                                                                    \
        x += (at->first[1] * j->g.stride[1] + at->shift[1]) * p->x->l.stride[3];                             \
        for (int64_t r = at->first[0]; r < at->end[0]; r++) {                                                \
            T       *to = x + (r * j->g.stride[0] + at->shift[0]) * row;                                     \
            const T *from = line + r * width + at->first[1];                                                 \
            if (step == 1) add_##name(cols, to, from);                                                       \
            else                                                                                             \
                for (int64_t i = 0; i < cols; i++) to[i * step] += from[i];                                  \
        }                                                                                                    \
    }
PUT_BACK(float, f32)
PUT_BACK(double, f64)

/* The body of a loop over planes: `one` for each tap and plane. */
#define EACH_PLANE(T, one, name)                                                                                \
    static void one##_planes_##name(int64_t from, int64_t to, void *arg)                                        \
    {                                                                                                           \
        const pass *p = arg;                                                                                    \
        const job  *j = p->j;                                                                                   \
        for (int64_t t = 0; t < j->taps; t++) {                                                                 \
            const reads at = reads_of(j, t, p->r0, p->rows);                                                    \
            for (int64_t i = from; i < to; i++) {                                                               \
                const int64_t n = i / j->c, c = i % j->c;                                                       \
                T            *x = (T *)tn__ptr(p->x) + (p->n0 + n) * p->x->l.stride[0] + c * p->x->l.stride[1]; \
                T            *line = (T *)p->c.at + n * p->c.image + c * p->c.channel + t * p->c.tap;           \
                one##_##name(p, &at, x, line);                                                                  \
            }                                                                                                   \
        }                                                                                                       \
    }
EACH_PLANE(float, gather, f32)
EACH_PLANE(double, gather, f64)
EACH_PLANE(uint16_t, gather, bf16)
EACH_PLANE(float, put_back, f32)
EACH_PLANE(double, put_back, f64)

static int64_t planes_at_once(const pass *p)
{
    return tn__max_i64(1, PLANES / tn__max_i64(1, p->rows * p->j->out[1] * p->j->taps));
}

static void gather(pass p)
{
    void (*const kernels[])(int64_t, int64_t, void *) = {
        [TN_F32] = gather_planes_f32, [TN_F64] = gather_planes_f64, [TN_BF16] = gather_planes_bf16};
    tn_parallel_for(p.n * p.j->c, planes_at_once(&p), kernels[p.x->dtype], &p);
}

static void put_back(pass p)
{
    tn_parallel_for(p.n * p.j->c, planes_at_once(&p), p.x->dtype == TN_F32 ? put_back_planes_f32 : put_back_planes_f64,
                    &p);
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

/* Views of the operands of y = w · columns; copies of w and y if they cannot be viewed so; columns of each worker. */
typedef struct {
    job              j;
    const tn_tensor *x;
    tn_tensor        w, y, columns, bias; /* [groups, out, depth], [n, groups, out, positions] */
    tn_tensor       *wcopy, *ycopy, *memory;
    int64_t          row, each; /* elements: of a row of columns, of a block */
    bool             straight, biased;
} products;

static bool prepare(products *p, const tn__windows *g, const tn_tensor *x, const tn_tensor *w, const tn_tensor *y,
                    int64_t most, int64_t workers)
{
    *p = (products){.j = plan(g, x, y, most), .x = x};
    const job    *j = &p->j;
    const int64_t depth = j->group_in * j->taps, bytes = (int64_t)tn__dtype_bytes(x->dtype);
    if (!folded(w, (tn_shape){.n = 3, .d = {g->groups, j->group_out, depth}}, &p->w, &p->wcopy)) return false;
    if (!folded(y, (tn_shape){.n = 4, .d = {j->n, g->groups, j->group_out, j->out[0] * j->out[1]}}, &p->y, &p->ycopy))
        return false;
    if ((p->straight = direct(j, x, &p->columns))) return true;
    p->row = row_of(j->rows * j->out[1], bytes);
    const tn_shape all = {.n = 4, .d = {workers, j->images, j->c * j->taps, p->row}};
    p->each = j->images * j->c * j->taps * p->row;
    return !too_large(x->dtype, all) && (p->memory = tn__new_owned(x->dtype, all));
}

/* The columns of a block, for a worker: as the product reads them, and as they are gathered. */
static tn_tensor block_of(const products *p, int64_t worker, int64_t n, int64_t positions, columns *c)
{
    const job    *j = &p->j;
    const int64_t depth = j->group_in * j->taps, image = j->c * j->taps * p->row;
    tn__layout    l = {.shape = {.n = 4, .d = {n, j->g.groups, depth, positions}},
                       .stride = {image, depth * p->row, p->row, 1}};
    l.offset = worker * p->each;
    const tn_tensor m = tn__stack_view(p->memory, &l);
    *c = (columns){tn__ptr(&m), image, j->taps * p->row, p->row};
    return m;
}

/* Blocks [from, to) of y = w · columns + bias. */
static void forward_blocks(int64_t from, int64_t to, void *arg)
{
    const products *p = arg;
    const job      *j = &p->j;
    const int64_t   down = tn__ceil_div(j->out[0], j->rows);
    for (int64_t b = from; b < to && !tn__self.error; b++) {
        const int64_t n0 = b / down * j->images, r0 = b % down * j->rows, n = tn__min_i64(j->images, j->n - n0);
        const int64_t r = tn__min_i64(j->rows, j->out[0] - r0), positions = r * j->out[1];
        tn_tensor     y = part(&p->y, n0, n, r0 * j->out[1], positions), m;
        if (p->straight) m = part(&p->columns, n0, n, r0 * j->out[1], positions);
        else {
            columns c;
            m = block_of(p, tn__worker(), n, positions, &c);
            gather(pass_of(j, p->x, n0, n, r0, r, c));
        }
        tn__gemm_with(&p->w, &m, &y, &(tn__epilogue){.bias = p->biased ? &p->bias : NULL, .passing = true});
    }
}

void tn__convolve(const tn__windows *g, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias, tn_tensor *y)
{
    tn_tensor column;
    if (bias) {
        const tn__layout l = tn__layout_insert(tn__layout_insert(bias->l, 1), 1); /* [O, 1, 1] */
        column = tn__stack_view(bias, &l);
    }
    if (!tn_numel(x) || !tn_numel(y)) { /* no channels: nothing to sum */
        if (bias) tn__copy(y, &column);
        else tn__fill(y, 0);
        return;
    }
    products p;
    if (tn__convolve_rows(g, x, w, bias, y)) return;
    if (prepare(&p, g, x, w, y, NEAR, tn_threads())) {
        if (bias) {
            const int64_t    step = bias->l.stride[0];
            const tn__layout l = {.offset = bias->l.offset,
                                  .shape = {.n = 3, .d = {g->groups, p.j.group_out, 1}},
                                  .stride = {p.j.group_out * step, step, 1}};
            p.bias = tn__stack_view(bias, &l), p.biased = true;
        }
        const int64_t down = tn__ceil_div(p.j.out[0], p.j.rows), across = tn__ceil_div(p.j.n, p.j.images);
        /* few blocks: the threads share the product of each, which has the same bits */
        if (down * across < FEW * tn_threads()) forward_blocks(0, down * across, &p);
        else tn_parallel_for(down * across, 1, forward_blocks, &p);
    }
    tn_drop(p.memory), tn_drop(p.wcopy), tn_drop(p.ycopy);
}

/* x += the columns wᵀ · y, put back: x is zeros, and is written through glances. */
static void backward(const tn__windows *g, tn_tensor *x, const tn_tensor *w, const tn_tensor *y)
{
    products p;
    if (!prepare(&p, g, x, w, y, BACK, 1)) goto done;
    const job *j = &p.j;
    tn__layout wt = p.w.l; /* [groups, depth, out] */
    wt.shape.d[1] = p.w.l.shape.d[2], wt.shape.d[2] = p.w.l.shape.d[1], wt.stride[1] = p.w.l.stride[2],
    wt.stride[2] = p.w.l.stride[1];
    const tn_tensor back = tn__stack_view(&p.w, &wt);
    for (int64_t n0 = 0; n0 < j->n; n0 += j->images) {
        const int64_t n = tn__min_i64(j->images, j->n - n0);
        for (int64_t r0 = 0; r0 < j->out[0] && !tn__self.error; r0 += j->rows) {
            const int64_t   r = tn__min_i64(j->rows, j->out[0] - r0), positions = r * j->out[1];
            const tn_tensor yp = part(&p.y, n0, n, r0 * j->out[1], positions);
            columns         c;
            tn_tensor       m =
                p.straight ? part(&p.columns, n0, n, r0 * j->out[1], positions) : block_of(&p, 0, n, positions, &c);
            tn__gemm(1, &back, &yp, 0, &m);
            if (!p.straight && !tn__self.error) put_back(pass_of(j, x, n0, n, r0, r, c));
        }
    }
done:
    tn_drop(p.memory), tn_drop(p.wcopy), tn_drop(p.ycopy);
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
    if (tn_numel(x) && tn_numel(y)) backward(g, x, w, y);
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
    /* One product a block: all its positions are one long sum. So here the images are inside the taps. The product is
     * columns · yᵀ, whose rows it reads in place: the transpose of the gradient. */
    const job      j = plan(g, x, y, FAR);
    const int64_t  depth = j.group_in * j.taps, width = j.out[1];
    const int64_t  row = row_of(j.images * j.rows * width, (int64_t)tn__dtype_bytes(x->dtype));
    const tn_shape most = {.n = 3, .d = {j.c, j.taps, row}}, ymost = {.n = 2, .d = {j.o, row}};
    const tn_shape wshape = {.n = 3, .d = {g->groups, depth, j.group_out}};
    tn_tensor     *memory = NULL, *ys = NULL, *sums = NULL;
    if (too_large(x->dtype, most) || !(memory = tn__new_owned(x->dtype, most))) goto done;
    if (!(ys = tn__new_owned(x->dtype, ymost)) || !(sums = tn__new_owned(x->dtype, wshape))) goto done;
    tn__fill(sums, 0);
    for (int64_t n0 = 0; n0 < j.n; n0 += j.images) {
        const int64_t n = tn__min_i64(j.images, j.n - n0);
        for (int64_t r0 = 0; r0 < j.out[0]; r0 += j.rows) {
            const int64_t r = tn__min_i64(j.rows, j.out[0] - r0), line = n * r * width;
            gather(pass_of(&j, x, n0, n, r0, r, (columns){tn__ptr(memory), r * width, j.taps * row, row}));

            const tn__layout to = {.shape = {.n = 4, .d = {n, j.o, r, width}}, .stride = {r * width, row, width, 1}};
            tn__layout       from = y->l;
            from.offset += n0 * from.stride[0] + r0 * from.stride[2], from.shape.d[0] = n, from.shape.d[2] = r;
            tn_tensor       yto = tn__stack_view(ys, &to);
            const tn_tensor yfrom = tn__stack_view(y, &from);
            tn__copy(&yto, &yfrom);

            const tn__layout a = {.shape = {.n = 3, .d = {g->groups, depth, line}}, .stride = {depth * row, row, 1}};
            const tn__layout b = {.shape = {.n = 3, .d = {g->groups, line, j.group_out}},
                                  .stride = {j.group_out * row, 1, row}};
            const tn_tensor  am = tn__stack_view(memory, &a), bm = tn__stack_view(ys, &b);
            tn__gemm(1, &am, &bm, 1, sums);
            if (tn__self.error) goto done;
        }
    }
    tn__layout turned = sums->l; /* [groups, out, depth] */
    turned.shape.d[1] = j.group_out, turned.shape.d[2] = depth, turned.stride[1] = 1, turned.stride[2] = j.group_out;
    const tn__layout wl = tn__layout_of_shape(turned.shape);
    const tn_tensor  from = tn__stack_view(sums, &turned);
    tn_tensor        to = tn__stack_view(w, &wl);
    tn__copy(&to, &from);
done:
    tn_drop(memory), tn_drop(ys), tn_drop(sums);
}
