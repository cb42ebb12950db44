/* table.amx.k.c — the table of AMX: its own bf16 products, otherwise avx512bf16's kernels. */
#define TABLE tn__table_amx
#define TABLE_ISA amx
#define BF16_PRODUCTS tn__gemm_bf16_amx
#define BF16_PAIRS tn__gemm_bf16_amx
#undef TN__ISA
#define TN__ISA avx512
#include "core/kernels/table.k.c"
