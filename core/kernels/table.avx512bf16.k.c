/* table.avx512bf16.k.c — the table of AVX-512 with bf16 dot products: its own bf16 products, otherwise avx512's. */
#define TABLE tn__table_avx512bf16
#define TABLE_ISA avx512bf16
#define BF16_PRODUCTS tn__gemm_bf16_avx512bf16
#define BF16_PAIRS tn__gemm_bf16_avx512bf16
#undef TN__ISA
#define TN__ISA avx512
#include "core/kernels/table.k.c"
