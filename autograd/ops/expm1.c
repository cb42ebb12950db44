/* expm1 — y = eˣ - 1, accurate near 0
 *
 *   gx = gy · eˣ        (y + 1 would lose its digits where eˣ is small) */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/elementwise.h"
#define TN__TEMPLATE "autograd/ops/expm1.c"
#include "core/real.h"

static void expm1_backward_ops(tn_back *b) { b->gx[0] = tn_mul(b->gy[0], tn_exp(b->in[0])); }

static const tn__sample expm1_samples[] = {
    TN__ROWS(),
    {.in = {{2, {2, 3}}}, .low = {-30}, .high = {-20}},
    {.in = {{2, {2, 3}}}, .low = {-1e-6}, .high = {1e-6}},
    TN__REAL_ONLY(expm1),
};
TN__UNARY(expm1, REALS, TN_WIDE, .saves = TN_SAVE_IN(0))

#else /* ================================================================ kernels: contiguous, one real type */
TN__EACH(expm1_fwd, TN__M(expm1)(x[i]))
#endif
