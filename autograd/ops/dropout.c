/* dropout — y = 0 with probability p, otherwise x / (1 - p)
 *
 *   gx = gy under the same mask
 *
 * No mask is stored: element i, counted in the order of the indices, is decided by 16 bits of the generator's blocks
 * (core/kernels/rows.h), also in the backward. So the mask depends only on seed and position, not on dtype, layout or
 * threads, and the backward is this op again. p is rounded to a multiple of 2^-16 between 2^-16 and 1 - 2^-16; the
 * scale is not. The generator advances by 2 ⌈n/16⌉ blocks after a successful call. With p = 0 the result is x itself,
 * and nothing is drawn.
 *
 * With rows, the rows of an unpadded batch are counted by their indices in the padded one, of which n is the size. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/sequences.h"
typedef struct {
    double   p;
    uint64_t seed, position;
    int64_t  padded; /* number of rows of the padded batch; 0 without rows */
} args_t;
typedef struct {
    tn__dropped    drop;
    const int64_t *row;
} rows_args;
#define TN__TEMPLATE "autograd/ops/dropout.c"
#include "core/real.h"

static bool dropout_infer(tn_ctx *c)
{
    return tn__infer_real(c) && tn__need_probability(c, TN_ARG(c, p)) &&
           tn__infer_padded_rows(c, 1, tn__rows_of(c->in[0]), TN_ARG(c, padded));
}
static void dropout_forward(tn_ctx *c)
{
    const args_t *a = c->args;
    if (c->in[1]) {
        const rows_args r = {tn__drop_of(a->p, a->seed, a->position), tn__ptr(c->in[1])};
        tn__rows_columns(TN__REALS_AT(drop_row), -1, TN__LIST(c->out[0]), (tn__list){.n = 0}, TN__LIST(c->in[0]), &r);
        return;
    }
    tn__map_at(TN__REALS_AT(drop), TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}
static void dropout_backward_ops(tn_back *b) { b->gx[0] = tn_apply_args(&tn__op_dropout, b->args, b->gy[0], b->in[1]); }

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.5, 1, 0, 0}},
    {.in = {{3, {3, 5, 3}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.1, 1, 7, 0}},
    {.in = {{1, {9}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0, 1, 0, 0}},
    {.in = {{1, {9}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){1, 1, 0, 0}},
    {.in = {{0, {0}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.5, 3, UINT64_MAX, 0}},
    {.in = {{2, {0, 4}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){0.5, 1, 0, 0}},
    {.in = {{1, {2}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){1.5, 1, 0, 0},
     TN__FAILS(TN_EINVAL, "dropout: p is 1.5, but a probability must be from 0 to 1")},
    {.in = {{1, {2}}}, .kind = {0, TN__ARG_ABSENT}, .args = &(args_t){(double)NAN, 1, 0, 0},
     TN__FAILS(TN_EINVAL, "dropout: p is nan, but a probability must be from 0 to 1")},
    {.in = {{1, {2}}}, .args = &(args_t){0.5, 1, 0, 0}, .kind = {TN__ARG_INT, TN__ARG_ABSENT},
     TN__FAILS(TN_EDTYPE, "dropout: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_dropout = {TN__ROOM("dropout", TN_AS_IS), .inputs = 2,
                              .optional = TN__IN(1),         .saves = TN_SAVE_IN(1),
                              .args_size = sizeof(args_t),   .infer = dropout_infer,
                              .forward = dropout_forward,    .backward_ops = dropout_backward_ops};
TN__SAMPLES(dropout, samples);

tn_tensor *tn__drop_rows_at(tn_tensor *x, double p, uint64_t seed, uint64_t position, tn_tensor *rows, int64_t padded)
{
    return tn_apply_args(&tn__op_dropout, (&(args_t){p, seed, position, padded}), x, rows);
}
tn_tensor *tn__drop_at(tn_tensor *x, double p, uint64_t seed, uint64_t position)
{
    return tn__drop_rows_at(x, p, seed, position, NULL, 0);
}

tn_tensor *tn_dropout_run(tn_tensor *x, double p)
{
    if (p == 0 && x && tn__is_float(x->dtype)) return tn__blocked() ? NULL : x;
    tn_generator *g = tn_current_generator();
    tn_tensor    *y = tn__drop_at(x, p, g->seed, g->position);
    if (y) g->position += tn__drop_blocks(tn_numel(y));
    return y;
}

tn_tensor *tn_dropout_rows(tn_tensor *x, double p, tn_tensor *rows, int64_t padded)
{
    if (p == 0 && x && tn__is_float(x->dtype)) return tn__blocked() ? NULL : x;
    tn_generator *g = tn_current_generator();
    tn_tensor    *y = tn__drop_rows_at(x, p, g->seed, g->position, rows, padded);
    if (y) g->position += tn__drop_blocks(padded * y->l.shape.d[y->l.shape.n - 1]);
    return y;
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(drop)(int64_t at, int64_t n, void *const *out, const void *const *in, const void *args)
{
    const args_t     *a = args;
    const tn__dropped d = tn__drop_of(a->p, a->seed, a->position);
    tn__kernels()->TN__(rows)->dropout(n, out[0], in[0], NULL, &d, at, NULL, NULL);
}
static void TN__(drop_row)(int64_t at, int64_t n, void *const *out, const void *const *in, const void *args)
{
    const rows_args *a = args;
    tn__kernels()->TN__(rows)->dropout(n, out[0], in[0], NULL, &a->drop, a->row[at] * n, NULL, NULL);
}
#endif
