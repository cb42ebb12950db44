/* table.k.c — the table of the kernels of one instruction set. */
#include "core/kernels/kernels.h"

/* An instruction set may add bf16 products to another one, and the products of pairs for attention:
 * table.avx512bf16.k.c. */
#ifndef TABLE
#define TABLE TN__FOR_ISA(tn__table)
#define TABLE_ISA TN__ISA
#define BF16_PRODUCTS TN__FOR_ISA(tn__gemm_f32)
#endif

extern const tn__gemm_kernels TN__FOR_ISA(tn__gemm_f32), TN__FOR_PLAIN(tn__gemm_f64), BF16_PRODUCTS;
/* Products with 4-bit weights are sums of bytes in 32 bits on every CPU; AVX2 has them for AVX-512, too. */
#ifdef __AVX512F__
#define Q4 TN__FOR_ISA_(tn__q4, avx2)
#else
#define Q4 TN__FOR_PLAIN(tn__q4)
#endif

#ifdef BF16_PAIRS
extern const tn__gemm_kernels BF16_PAIRS;
#endif
extern const tn__vecmath_f32        TN__FOR_PLAIN(tn__functions_f32);
extern const tn__vecmath_f64        TN__FOR_PLAIN(tn__functions_f64);
extern const tn__row_kernels_f32    TN__FOR_PLAIN(tn__rows_f32);
extern const tn__row_kernels_f64    TN__FOR_PLAIN(tn__rows_f64);
extern tn__philox_kernel            TN__FOR_PLAIN(tn__philox);
extern tn__narrow_kernel            TN__FOR_PLAIN(tn__narrow);
extern tn__widen_kernel             TN__FOR_PLAIN(tn__widen);
extern const tn__attention_kernels  TN__FOR_ISA(tn__attention_f32), TN__FOR_PLAIN(tn__attention_f64);
extern const tn__word_pairs_kernels TN__FOR_PLAIN(tn__word_pairs);
extern const tn__q8_kernels         TN__FOR_ISA(tn__q8), TN__FOR_ISA(tn__f16);
extern const tn__int8_kernels       TN__FOR_PLAIN(tn__int8), Q4[TN__Q4_KINDS];
extern const tn__kernel_table       TABLE;

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
const tn__kernel_table TABLE = {
    .isa = TEXT(TABLE_ISA),
    .gemm_f32 = &TN__FOR_ISA(tn__gemm_f32),
    .gemm_f64 = &TN__FOR_PLAIN(tn__gemm_f64),
    .gemm_bf16 = &BF16_PRODUCTS,
#ifdef BF16_PAIRS
    .gemm_pairs = &BF16_PAIRS,
#endif
    .f32 = &TN__FOR_PLAIN(tn__functions_f32),
    .f64 = &TN__FOR_PLAIN(tn__functions_f64),
    .rows_f32 = &TN__FOR_PLAIN(tn__rows_f32),
    .rows_f64 = &TN__FOR_PLAIN(tn__rows_f64),
    .philox = TN__FOR_PLAIN(tn__philox),
    .to_bf16 = TN__FOR_PLAIN(tn__narrow),
    .from_bf16 = TN__FOR_PLAIN(tn__widen),
    .word_pairs = &TN__FOR_PLAIN(tn__word_pairs),
    .q8 = &TN__FOR_ISA(tn__q8),
    .f16 = &TN__FOR_ISA(tn__f16),
    .int8 = &TN__FOR_PLAIN(tn__int8),
    .q4 = Q4,
    .attention_f32 = &TN__FOR_ISA(tn__attention_f32),
    .attention_f64 = &TN__FOR_PLAIN(tn__attention_f64),
};
