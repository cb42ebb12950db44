/* int8.avx512vnni.k.c — products of 8 bits with VNNI, on top of AVX-512. */
#include "core/kernels/int8.k.c"
