/* long_texts.h — reversible residual blocks, which save no activations. Part of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_LONG_TEXTS_H
#define TENON_AUTOGRAD_LONG_TEXTS_H

#include "../core/core.h"

TN_C_BEGIN_

/* Reversible residual blocks (Gomez et al. 2017): for block = 0 … blocks - 1
 *     x[0] = x[0] + fn(block, 0, x[1]),   x[1] = x[1] + fn(block, 1, x[0])
 * y is the final x, of x's shape. The tape keeps y alone: from the last block to the first, the backward runs fn again,
 * with the same random numbers from the current generator, differentiates that run and subtracts its result. So fn must
 * do the same each time and not change x; parameters inside get their gradients. `bytes` bytes at user are copied, and
 * fn receives the copy. A decision that rounding could change in the second run, such as which of two values is larger,
 * fn stores in *memo in the first run and finds there in the second (NULL: nothing stored). No second derivatives. */
typedef tn_tensor *(*tn_reversible_fn)(int64_t block, int half, tn_tensor *x, tn_tensor **memo, const void *user);
TN_API tn_status tn_reversible(tn_reversible_fn fn, const void *user, size_t bytes, int64_t blocks,
                               tn_tensor *const x[2], tn_tensor *y[2]);

TN_C_END_
#endif
