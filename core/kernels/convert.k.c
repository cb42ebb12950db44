/* convert.k.c — f32 to bf16, for dense runs. (The way back is a shift, as fast as memory in any instruction set.) */
#include "core/kernels/kernels.h"
#include "core/kernels/bf16_rows.h"

extern tn__narrow_kernel TN__FOR_ISA(tn__narrow);

void TN__FOR_ISA(tn__narrow)(int64_t n, uint16_t *restrict y, const float *restrict x) { tn__narrow_row(n, y, x); }
