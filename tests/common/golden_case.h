/* golden_case.h — compares modules with PyTorch: a case fills its inputs and parameters by the formula of
 * tests/golden/case.py and computes; the result, the attention weights, and the gradients of inputs and parameters are
 * compared with values of PyTorch, in f64 and in f32. */
#ifndef TENON_TESTS_COMMON_GOLDEN_CASE_H
#define TENON_TESTS_COMMON_GOLDEN_CASE_H

#include "nn/nn.h"

enum { TN_GOLDEN_INPUTS = 4 };
typedef struct {
    const char *name;
    tn_dtype    dtype;
    int         inputs;
    const char *what[TN_GOLDEN_INPUTS];
    tn_tensor  *input[TN_GOLDEN_INPUTS];
    double      matrices; /* factor of the module's matrices; 0: 1 */
    tn_module  *module;   /* freed at the end of the case */
    tn_tensor  *w;        /* attention weights to compare; may be NULL */
} tn_golden;
typedef struct {
    const char *name;
    tn_tensor *(*run)(tn_golden *k); /* returns the result */
} tn_golden_case;

/* Values by formula, exact in f32: value i = ((7919 i + hash of the name) mod 10007 - 5003) / 8192. */
tn_tensor *tn_golden_values(const char *name, tn_dtype dt, tn_shape s);

/* For a case: an input that requires grad; and fills the parameters of a module of k's dtype. */
tn_tensor *tn_golden_input(tn_golden *k, const char *what, tn_shape s);
void      *tn_golden_fill(tn_golden *k, void *module);

/* Runs the case in f64 (tolerance 1e-10 of the largest element) and f32 (2e-6), and checks that all values of the case
 * in the file were compared. */
void tn_golden_check(tn_safetensors *file, const tn_golden_case *c);

#endif
