/* add_dropout_norm — s = x + dropout(h) and y = layer_norm(s): the step between the parts of a Transformer's layer,
 * with one sweep through memory forward and one backward
 *
 *   With gs the gradient of s, the sum of its direct gradient and of layer norm's gradient from gy (layer_norm.c):
 *   gx = gs        gh = gs under the mask of h        gweight, gbias as in layer_norm
 *
 * Each element has the same bits as in tn_layer_norm(tn_add(x, tn_dropout(h, p)), …), with the same random numbers: no
 * mask is stored, it is computed again from the generator's position (dropout.c). s is a result because the backward
 * reads it and layers with norm_first use it; the statistics of the rows are a hidden result for the backward. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/sequences.h"
typedef struct {
    double   p, eps;
    uint64_t seed, position;
    int64_t  length; /* as in dropout.c */
} args_t;
enum { X, H, WEIGHT, BIAS, ROWS, INPUTS };
enum { Y, SUM, STAT };
enum { NEAR = 2048, PAGE = 4096 }; /* maximum elements of a row buffered in L1; bytes */
typedef struct {
    tn__drop_rows      drop;
    tn__norm_arguments norm;
} kernel_args;
#define TN__TEMPLATE "autograd/ops/add_dropout_norm.c"
#include "core/real.h"

static bool add_dropout_norm_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[X], *h = c->in[H];
    char             a[192], b[192];
    if (!tn__infer_real(c) || !tn__need_real(c, H) || !tn_infer_like(c, SUM, X)) return false;
    if (!tn_shape_equal(x->l.shape, h->l.shape) || x->dtype != h->dtype)
        return tn_infer_fail(c, TN_ESHAPE, "x is %s %s and h %s %s, but must have equal dtype and shape",
                             tn_dtype_name(x->dtype), tn_shape_text(x->l.shape, a, sizeof a), tn_dtype_name(h->dtype),
                             tn_shape_text(h->l.shape, b, sizeof b));
    return tn__need_probability(c, TN_ARG(c, p)) && tn__infer_padded_rows(c, ROWS, tn__rows_of(x), TN_ARG(c, length)) &&
           tn__infer_norm(c, WEIGHT, BIAS, TN_ARG(c, eps), STAT, 3);
}

static kernel_args kernel_args_of(const args_t *a, const tn_tensor *sum, const tn_tensor *rows)
{
    return (kernel_args){tn__drop_rows_of(tn__drop_of(a->p, a->seed, a->position), sum, rows, a->length),
                         tn__norm_args(a->eps, 4, sum)};
}
static void add_dropout_norm_forward(tn_ctx *c)
{
    const tn_scope    s = tn_no_grad_begin();
    const int         k = c->in[X]->l.shape.n - c->out[STAT]->l.shape.n + 1;
    const kernel_args a = kernel_args_of(c->args, c->out[SUM], c->in[ROWS]);
    tn_tensor        *x = tn__joined(c->in[X], k), *h = tn__joined(c->in[H], k), *w = tn__joined(c->in[WEIGHT], k);
    tn_tensor *bias = tn__joined(c->in[BIAS], k), *y = tn__joined(c->out[Y], k), *sum = tn__joined(c->out[SUM], k);
    if (!tn_error())
        tn__rows_columns(TN__REALS_AT(add_dropout_norm_fwd), -1, TN__LIST(y, sum, c->out[STAT]), (tn__list){.n = 0},
                         TN__LIST(x, h, w, bias), &a);
    tn_scope_end(s);
}

static void add_dropout_norm_backward_ops(tn_back *b)
{
    const args_t *a = b->args;
    tn_tensor    *gy = b->gy[Y], *gs = b->gy[SUM], *g = NULL;
    const int     dims = b->in_shape[X].n - b->out[STAT]->l.shape.n + 1;
    const bool    need = b->need[X] || b->need[H];
    if (gy && b->need[BIAS]) b->gx[BIAS] = gy;
    if (gy && (need || b->need[WEIGHT]))
        tn__layer_norm_ops(b->out[SUM], b->in[WEIGHT], gy, dims, a->eps, need ? &g : NULL,
                           b->need[WEIGHT] ? &b->gx[WEIGHT] : NULL);
    if (!need) return;
    gs = g && gs ? tn_add(g, gs) : g ? g : gs;
    if (b->need[X]) b->gx[X] = gs;
    if (b->need[H]) b->gx[H] = a->p == 0 ? gs : tn__drop_at(gs, a->p, a->seed, a->position, b->in[ROWS], a->length);
}
static void add_dropout_norm_backward(tn_back *b)
{
    const int         k = b->in_shape[X].n - b->out[STAT]->l.shape.n + 1;
    const args_t     *args = b->args;
    const kernel_args a = kernel_args_of(args, b->out[SUM], b->in[ROWS]);
    if (!b->gy[Y]) {
        add_dropout_norm_backward_ops(b);
        return;
    }
    const bool drops = b->need[H] && args->p > 0;
    for (int i = WEIGHT; i <= BIAS; i++)
        if (b->need[i]) b->gx[i] = tn_empty_of(b->in_dtype[i], b->in_shape[i]);
    tn_tensor *gs = b->need[X] || b->need[H] ? tn_empty_of(b->in_dtype[X], b->in_shape[X]) : NULL;
    tn_tensor *gh = drops ? tn_empty_of(b->in_dtype[H], b->in_shape[H]) : NULL;
    tn_tensor *gy = tn__joined(b->gy[Y], k), *more = tn__joined(b->gy[SUM], k), *s = tn__joined(b->out[SUM], k);
    tn_tensor *w = tn__joined(b->in[WEIGHT], k), *to = tn__joined(gs, k), *to_h = tn__joined(gh, k);
    if (tn_error()) return;
    tn__rows_columns(TN__REALS_AT(add_dropout_norm_bwd), -1, TN__LIST(to, to_h), TN__LIST(b->gx[WEIGHT], b->gx[BIAS]),
                     TN__LIST(gy, s, b->out[STAT], w, more), &a);
    if (b->need[X]) b->gx[X] = gs;
    if (b->need[H]) b->gx[H] = drops ? gh : gs;
}

#define ARGS(...) \
    .args = &(args_t) { __VA_ARGS__, 0 }
#define ALL .kind = {[ROWS] = TN__ARG_ABSENT}
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {1, {4}}, {1, {4}}}, ALL, ARGS(0.5, 1e-5, 1, 0)},
    {.in = {{3, {2, 3, 5}}, {3, {2, 3, 5}}, {1, {5}}, {1, {5}}}, ALL, ARGS(0.1, 1e-5, 7, UINT64_MAX - 2)},
    {.in = {{2, {3, 19}}, {2, {3, 19}}, {1, {19}}}, .kind = {[3] = TN__ARG_ABSENT, TN__ARG_ABSENT},
     ARGS(0.3, 1e-3, 1, 2)},
    {.in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {2, {3, 2}}, {2, {3, 2}}}, ALL, ARGS(0, 1e-5, 1, 0)},
    {.in = {{2, {3, 5}}, {2, {3, 5}}}, .kind = {[2] = TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT},
     ARGS(1, 1e-3, 1, 0)},
    {.in = {{2, {0, 3}}, {2, {0, 3}}, {1, {3}}, {1, {3}}}, ALL, ARGS(0.5, 1e-5, 1, 0)},
    {.in = {{2, {3, 0}}, {2, {3, 0}}, {1, {0}}, {1, {0}}}, ALL, ARGS(0.5, 1e-5, 1, 0)},
    {.in = {{2, {3, 4}}, {1, {4}}, {1, {4}}, {1, {4}}}, ALL, ARGS(0.5, 1e-5, 1, 0),
     TN__FAILS(TN_ESHAPE, "add_dropout_norm: x is f32 [3, 4] and h f32 [4], but must have equal dtype and shape")},
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {1, {5}}, {1, {4}}}, ALL, ARGS(0.5, 1e-5, 1, 0), TN__FAILS( TN_ESHAPE,
     "add_dropout_norm: weight [5] must have the shape of the last dims of [3, 4], over which it normalises")},
    {.in = {{1, {4}}, {1, {4}}}, .kind = {[2] = TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, ARGS(2, 1e-5, 1, 0),
     TN__FAILS(TN_EINVAL, "add_dropout_norm: p is 2, but a probability must be from 0 to 1")},
    {.in = {{1, {4}}, {1, {4}}}, .kind = {[2] = TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT}, ARGS(0, -1, 1, 0),
     TN__FAILS(TN_EINVAL, "add_dropout_norm: eps is -1, but must not be negative")},
    {.in = {{1, {4}}, {1, {4}}}, .kind = {TN__ARG_INT, TN__ARG_INT, TN__ARG_ABSENT, TN__ARG_ABSENT, TN__ARG_ABSENT},
     ARGS(0, 1e-5, 1, 0),
     TN__FAILS(TN_EDTYPE, "add_dropout_norm: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_add_dropout_norm = {TN__ROOM("add_dropout_norm", TN_NARROW(2)),
                                       .inputs = INPUTS,
                                       .outputs = 3,
                                       .optional = TN__IN(WEIGHT) | TN__IN(BIAS) | TN__IN(ROWS),
                                       .saves =
                                           TN_SAVE_IN(WEIGHT) | TN_SAVE_IN(ROWS) | TN_SAVE_OUT(SUM) | TN_SAVE_OUT(STAT),
                                       .args_size = sizeof(args_t),
                                       .infer = add_dropout_norm_infer,
                                       .forward = add_dropout_norm_forward,
                                       .backward = add_dropout_norm_backward,
                                       .backward_ops = add_dropout_norm_backward_ops};
TN__SAMPLES(add_dropout_norm, samples);

tn_tensor *tn_add_dropout_norm_run(tn_add_dropout_norm_args a)
{
    tn_tensor    *in[2] = {a.x, a.h}, *out[3] = {NULL};
    tn_generator *g = tn_current_generator();
    tn__promote_all(2, in);
    const args_t args = {a.p, a.eps, g->seed, g->position, a.length};
    tn_op_call(&tn__op_add_dropout_norm, INPUTS, (tn_tensor *[]){in[0], in[1], a.weight, a.bias, a.rows}, 3, out,
               &args);
    if (out[Y] && a.p > 0) g->position++;
    if (a.sum) *a.sum = out[SUM];
    return out[Y];
}

#else /* =========================================================== kernels: contiguous rows, one real type */

/* The place in a buffer on the stack for a row that stays in L1 while it is written to memory by non-temporal stores. A
 * load waits for earlier stores to addresses with the same lower 12 bits (4K aliasing), for example in rows of a
 * multiple of 4096 bytes: so the buffer's row starts at a different offset in its page. */
static TN__REAL *TN__(row_buffer)(TN__REAL *buffer, const TN__REAL *row)
{
    return buffer + ((uintptr_t)row + PAGE / 4 - (uintptr_t)buffer) % PAGE / sizeof *buffer;
}

/* y = dropout(x) + add for row `row` of n elements; y_stream, x_stream as in core/kernels/rows.h. */
static void TN__(drop_row)(int64_t row, int64_t n, TN__REAL *y, const TN__REAL *x, const TN__REAL *add,
                           const tn__drop_rows *a, TN__REAL *y_stream, TN__REAL *x_stream)
{
    const int64_t first = (a->row ? a->row[row] : row) * n;
    for (int64_t i = 0; i < n;) {
        const tn__drop_part p = tn__drop_part_of(a, first + i, n - i);
        tn__kernels()->TN__(rows)->dropout(p.n, y + i, x + i, add ? add + i : NULL, &p.drop, p.first,
                                           y_stream ? y_stream + i : NULL, x_stream ? x_stream + i : NULL);
        i += p.n;
    }
}

static void TN__(add_dropout_norm_forward)(int64_t row, int64_t n, void *const *out, const void *const *in,
                                           const kernel_args *a, TN__REAL *sum)
{
    TN__(drop_row)(row, n, sum, in[H], in[X], &a->drop, sum == out[SUM] ? NULL : out[SUM], NULL);
    const TN__(tn__norm_row) s = {out[Y], out[STAT], sum, in[WEIGHT], in[BIAS], a->norm.eps, false, a->norm.stream};
    tn__kernels()->TN__(rows)->norm(n, &s);
}
static void TN__(add_dropout_norm_backward)(int64_t row, int64_t n, void *const *out, const void *const *in,
                                            const kernel_args *a, TN__REAL *gs, TN__REAL *gh)
{
    const TN__REAL *more = in[4];
    const bool      near = gh && gh != out[1];
    const bool      stream = !gh && !more && a->norm.stream;
    const TN__(tn__norm_back_row) s = {gs, out[2], out[3], in[0], in[1], in[3], in[2], false, stream};
    tn__kernels()->TN__(rows)->norm_back(n, &s);
    for (int64_t i = 0; gs && more && i < n; i++) gs[i] += more[i];
    if (gh) TN__(drop_row)(row, n, gh, gs, NULL, &a->drop, near ? out[1] : NULL, near ? out[0] : NULL);
}

/* noinline: a frame of several pages costs stack probes (-fstack-clash-protection), which the common path avoids. */
__attribute__((noinline)) static void TN__(fwd_near)(int64_t row, int64_t n, void *const *out, const void *const *in,
                                                     const kernel_args *a)
{
    TN__REAL buffer[NEAR + PAGE / sizeof(TN__REAL)];
    TN__(add_dropout_norm_forward)(row, n, out, in, a, TN__(row_buffer)(buffer, out[SUM]));
}
__attribute__((noinline)) static void TN__(bwd_near)(int64_t row, int64_t n, void *const *out, const void *const *in,
                                                     const kernel_args *a)
{
    TN__REAL buffer[2 * NEAR + PAGE / sizeof(TN__REAL)], *gs = TN__(row_buffer)(buffer, out[0]);
    TN__(add_dropout_norm_backward)(row, n, out, in, a, gs, gs + NEAR);
}

static void TN__(add_dropout_norm_fwd)(int64_t row, int64_t n, void *const *out, const void *const *in,
                                       const void *args)
{
    const kernel_args *a = args;
    if (a->norm.stream && n <= NEAR) TN__(fwd_near)(row, n, out, in, a);
    else TN__(add_dropout_norm_forward)(row, n, out, in, a, out[SUM]);
}
static void TN__(add_dropout_norm_bwd)(int64_t row, int64_t n, void *const *out, const void *const *in,
                                       const void *args)
{
    const kernel_args *a = args;
    if (a->norm.stream && out[1] && n <= NEAR) TN__(bwd_near)(row, n, out, in, a);
    else TN__(add_dropout_norm_backward)(row, n, out, in, a, out[0], out[1]);
}
#endif
