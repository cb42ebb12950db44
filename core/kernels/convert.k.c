/* convert.k.c — f32 to bf16, for dense runs: a plain loop of which the compiler makes vectors. (The way back is a
 * shift, as fast as memory in any instruction set.) */
#include "core/kernels/kernels.h"
#include "core/base/bf16.h"

extern tn__narrow_kernel TN__FOR_ISA(tn__narrow);

void TN__FOR_ISA(tn__narrow)(int64_t n, uint16_t *restrict y, const float *restrict x)
{
    for (int64_t i = 0; i < n; i++) y[i] = tn__f32_to_bf16(x[i]);
}
