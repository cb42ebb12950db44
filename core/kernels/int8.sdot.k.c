/* int8.sdot.k.c — products of 8 bits with SDOT, which 64-bit ARM CPUs have since about 2018, on top of NEON. */
#include "core/kernels/int8.k.c"
