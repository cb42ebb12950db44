/* table.amx.k.c — AMX: its own products of bf16, and the kernels of the instruction sets below it else. */
#define TABLE tn__table_amx
#define TABLE_ISA amx
#define BF16_PRODUCTS tn__gemm_bf16_amx
#define BF16_PAIRS tn__gemm_bf16_avx512bf16
#undef TN__ISA
#define TN__ISA avx512
#include "core/kernels/table.k.c"
