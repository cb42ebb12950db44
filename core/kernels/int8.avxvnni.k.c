/* int8.avxvnni.k.c — products of 8 bits with VNNI, on top of AVX2. */
#include "core/kernels/int8.k.c"
