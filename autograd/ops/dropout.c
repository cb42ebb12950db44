/* dropout — y = 0 with probability p, otherwise x / (1 - p)
 *
 *   gx = gy under the same mask
 *
 * No mask is stored: the call draws one block of the generator, which is the seed of the mask's own generator, also in
 * the backward. In a batch [B, T, ...] each sequence has its own blocks of that generator, and its elements, counted in
 * the order of the indices, have 16 bits each (core/kernels/rows.h); a tensor of one or two dims is one sequence. So
 * the mask of an element depends on the generator, the sequence and the place in it, not on the length T, dtype, layout
 * or threads, and the backward is this op again. p is rounded to a multiple of 2^-16 between 2^-16 and 1 - 2^-16; the
 * scale is not. With p = 0 the result is x itself, and nothing is drawn.
 *
 * With rows, x has the rows of an unpadded batch: row i is dropped like row rows[i] of a batch of sequences of `length`
 * rows. of_weights: x is attention's weights, whose mask also does not depend on the number of keys (rooms/norms.c). */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/sequences.h"
typedef struct {
    double   p;
    uint64_t seed, position;
    int64_t  length; /* rows of a sequence, with its padding; 0 without rows */
    bool     of_weights;
} args_t;
typedef struct {
    tn__dropped drop;
    tn__layout  at;
} weights_args;
#define TN__TEMPLATE "autograd/ops/dropout.c"
#include "core/real.h"

static bool dropout_infer(tn_ctx *c)
{
    return tn__infer_real(c) && tn__need_probability(c, TN_ARG(c, p)) &&
           tn__infer_padded_rows(c, 1, tn__rows_of(c->in[0]), TN_ARG(c, length));
}
static void dropout_forward(tn_ctx *c)
{
    const args_t       *a = c->args;
    const tn__dropped   drop = tn__drop_of(a->p, a->seed, a->position);
    const tn__drop_rows r = tn__drop_rows_of(drop, c->in[0], c->in[1], a->length);
    const weights_args  w = {drop, a->of_weights ? tn__drop_layout(c->in[0]->l.shape) : (tn__layout){.offset = 0}};
    const tn__list      y = TN__LIST(c->out[0]), x = TN__LIST(c->in[0]), none = {.n = 0};
    if (a->of_weights) tn__rows_columns(TN__REALS_AT(drop_weights), -1, y, none, x, &w);
    else if (c->in[1]) tn__rows_columns(TN__REALS_AT(drop_row), -1, y, none, x, &r);
    else tn__map_at(TN__REALS_AT(drop), y, x, &r);
}
static void dropout_backward_ops(tn_back *b) { b->gx[0] = tn_apply_args(&tn__op_dropout, b->args, b->gy[0], b->in[1]); }

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.5, 1, 0, 0, false}},
    {.in = {{3, {3, 5, 3}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.1, 1, 7, 0, false}},
    {.in = {{1, {9}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0, 1, 0, 0, false}},
    {.in = {{1, {9}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){1, 1, 0, 0, false}},
    {.in = {{0, {0}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.5, 3, UINT64_MAX, 0, false}},
    {.in = {{2, {0, 4}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.5, 1, 0, 0, false}},
    {.in = {{1, {2}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){1.5, 1, 0, 0, false},
     TN__FAILS(TN_EINVAL, "dropout: p is 1.5, but a probability must be from 0 to 1")},
    {.in = {{1, {2}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){(double)NAN, 1, 0, 0, false},
     TN__FAILS(TN_EINVAL, "dropout: p is nan, but a probability must be from 0 to 1")},
    {.in = {{1, {2}}}, .args = &(args_t){0.5, 1, 0, 0, false}, .kind = {TN__ARG_INT, TN__ARG_ABSENT},
     TN__FAILS(TN_EDTYPE, "dropout: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_dropout = {TN__ROOM("dropout", TN_AS_IS), .inputs = 2,
                              .optional = TN__IN(1),         .saves = TN_SAVE_IN(1),
                              .args_size = sizeof(args_t),   .infer = dropout_infer,
                              .forward = dropout_forward,    .backward_ops = dropout_backward_ops};
TN__SAMPLES(dropout, samples);

tn_tensor *tn__drop_at(tn_tensor *x, double p, uint64_t seed, uint64_t position, tn_tensor *rows, int64_t length)
{
    return tn_apply_args(&tn__op_dropout, (&(args_t){p, seed, position, length, false}), x, rows);
}
tn_tensor *tn__drop_weights_at(tn_tensor *w, double p, uint64_t seed, uint64_t position)
{
    return tn_apply_args(&tn__op_dropout, (&(args_t){p, seed, position, 0, true}), w, NULL);
}

tn_tensor *tn_dropout_rows(tn_tensor *x, double p, tn_tensor *rows, int64_t length)
{
    if (p == 0 && x && tn__is_float(x->dtype)) return tn__blocked() ? NULL : x;
    tn_generator *g = tn_current_generator();
    tn_tensor    *y = tn__drop_at(x, p, g->seed, g->position, rows, length);
    if (y) g->position++;
    return y;
}
tn_tensor *tn_dropout_run(tn_tensor *x, double p) { return tn_dropout_rows(x, p, NULL, 0); }

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(drop_from)(int64_t first, int64_t n, TN__REAL *y, const TN__REAL *x, const tn__drop_rows *a)
{
    for (int64_t i = 0; i < n;) {
        const tn__drop_part p = tn__drop_part_of(a, first + i, n - i);
        tn__kernels()->TN__(rows)->dropout(p.n, y + i, x + i, NULL, &p.drop, p.first, NULL, NULL);
        i += p.n;
    }
}
static void TN__(drop)(int64_t at, int64_t n, void *const *out, const void *const *in, const void *args)
{
    TN__(drop_from)(at, n, out[0], in[0], args);
}
static void TN__(drop_row)(int64_t at, int64_t n, void *const *out, const void *const *in, const void *args)
{
    const tn__drop_rows *a = args;
    TN__(drop_from)(a->row[at] * n, n, out[0], in[0], a);
}
static void TN__(drop_weights)(int64_t at, int64_t n, void *const *out, const void *const *in, const void *args)
{
    const weights_args *a = args;
    int64_t             first = 0;
    for (int d = a->at.shape.n - 2; d >= 0; at /= a->at.shape.d[d--]) first += at % a->at.shape.d[d] * a->at.stride[d];
    tn__kernels()->TN__(rows)->dropout(n, out[0], in[0], NULL, &a->drop, first, NULL, NULL);
}
#endif
