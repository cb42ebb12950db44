/* table.k.c — the kernels of one instruction set, gathered. */
#include "core/kernels/kernels.h"

extern const tn_gemm_kernels  TN_FOR_ISA(tn__gemm_f32), TN_FOR_ISA(tn__gemm_f64);
extern const tn_functions_f32 TN_FOR_ISA(tn__functions_f32);
extern const tn_functions_f64 TN_FOR_ISA(tn__functions_f64);
extern const tn_kernel_table  TN_FOR_ISA(tn__table);

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
const tn_kernel_table TN_FOR_ISA(tn__table) = {
    .isa = TEXT(TN_ISA),
    .gemm_f32 = &TN_FOR_ISA(tn__gemm_f32),
    .gemm_f64 = &TN_FOR_ISA(tn__gemm_f64),
    .f32 = &TN_FOR_ISA(tn__functions_f32),
    .f64 = &TN_FOR_ISA(tn__functions_f64),
};
