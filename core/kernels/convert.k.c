/* convert.k.c — f32 to bf16 and back, for dense runs. */
#include "core/kernels/kernels.h"
#include "core/kernels/bf16_rows.h"

extern tn__narrow_kernel TN__FOR_ISA(tn__narrow);
extern tn__widen_kernel  TN__FOR_ISA(tn__widen);

void TN__FOR_ISA(tn__narrow)(int64_t n, uint16_t *restrict y, const float *restrict x) { tn__narrow_row(n, y, x); }
void TN__FOR_ISA(tn__widen)(int64_t n, float *restrict y, const uint16_t *restrict x) { tn__widen_row(n, y, x); }
