/* dropout — y = 0 with probability p, otherwise x / (1 - p)
 *
 *   gx = gy under the same mask
 *
 * No mask is stored: element i, counted in the order of the indices, is decided by 16 bits of the generator's blocks
 * (core/kernels/rows.h), also in the backward. So the mask depends only on seed and position, not on dtype, layout or
 * threads, and the backward is this op again. p is rounded to a multiple of 2^-16 between 2^-16 and 1 - 2^-16; the
 * scale is not. The generator advances by 2 ⌈n/16⌉ blocks after a successful call. With p = 0 the result is x itself,
 * and nothing is drawn. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/room.h"
typedef struct {
    double   p;
    uint64_t seed, position;
} args_t;
#define TN__TEMPLATE "autograd/ops/dropout.c"
#include "core/real.h"

static bool dropout_infer(tn_ctx *c) { return tn__infer_real(c) && tn__need_probability(c, TN_ARG(c, p)); }
static void dropout_forward(tn_ctx *c)
{
    tn__map_at(TN__REALS_AT(drop), TN__LIST(c->out[0]), TN__LIST(c->in[0]), c->args);
}
static void dropout_backward_ops(tn_back *b) { b->gx[0] = tn_apply_args(&tn__op_dropout, b->args, b->gy[0]); }

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.5, 1, 0}},
    {.in = {{3, {3, 5, 3}}}, .args = &(args_t){0.1, 1, 7}},
    {.in = {{1, {9}}}, .args = &(args_t){0, 1, 0}},
    {.in = {{1, {9}}}, .args = &(args_t){1, 1, 0}},
    {.in = {{0, {0}}}, .args = &(args_t){0.5, 3, UINT64_MAX}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){0.5, 1, 0}},
    {.in = {{1, {2}}},
     .args = &(args_t){1.5, 1, 0},
     TN__FAILS(TN_EINVAL, "dropout: p is 1.5, but a probability must be from 0 to 1")},
    {.in = {{1, {2}}},
     .args = &(args_t){(double)NAN, 1, 0},
     TN__FAILS(TN_EINVAL, "dropout: p is nan, but a probability must be from 0 to 1")},
    {.in = {{1, {2}}},
     .args = &(args_t){0.5, 1, 0},
     .kind = {TN__ARG_INT},
     TN__FAILS(TN_EDTYPE, "dropout: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};

const tn_op tn__op_dropout = {TN__ROOM("dropout", TN_AS_IS), .inputs = 1,
                              .args_size = sizeof(args_t),   .infer = dropout_infer,
                              .forward = dropout_forward,    .backward_ops = dropout_backward_ops};
TN__SAMPLES(dropout, samples);

tn_tensor *tn__drop_at(tn_tensor *x, double p, uint64_t seed, uint64_t position)
{
    return tn_apply_args(&tn__op_dropout, (&(args_t){p, seed, position}), x);
}

tn_tensor *tn_dropout_run(tn_tensor *x, double p)
{
    if (p == 0 && x && tn__is_float(x->dtype)) return tn__blocked() ? NULL : x;
    tn_generator *g = tn_current_generator();
    tn_tensor    *y = tn__drop_at(x, p, g->seed, g->position);
    if (y) g->position += tn__drop_blocks(tn_numel(y));
    return y;
}

#else /* ================================================================ kernels: contiguous, one real type */

static void TN__(drop)(int64_t at, int64_t n, void *const *out, const void *const *in, const void *args)
{
    const args_t     *a = args;
    const tn__dropped d = tn__drop_of(a->p, a->seed, a->position);
    tn__kernels()->TN__(rows)->dropout(n, out[0], in[0], NULL, &d, at, NULL, NULL);
}
#endif
