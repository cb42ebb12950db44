/* golden_case.h — modules beside PyTorch: a case fills its inputs and parameters by the formula of
 * tests/golden/case.py, computes, and is compared with what PyTorch computed: result, attention weights, the
 * gradients of inputs and parameters, in f64 and in f32. */
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
    double      matrices; /* what a module's matrices are multiplied by; 0: 1 */
    tn_module  *module;   /* freed at the end of the case */
    tn_tensor  *w;        /* attention weights, to be compared if not NULL */
} tn_golden;
typedef struct {
    const char *name;
    tn_tensor *(*run)(tn_golden *k); /* returns the result */
} tn_golden_case;

/* value i = ((7919 i + hash of the name) mod 10007 - 5003) / 8192: exact in f32 */
tn_tensor *tn_golden_values(const char *name, tn_dtype dt, tn_shape s);

/* For a case: an input that wants a gradient; and a module of k's dtype, filled. */
tn_tensor *tn_golden_input(tn_golden *k, const char *what, tn_shape s);
void      *tn_golden_fill(tn_golden *k, void *module);

/* Runs the case in f64 (to 1e-10 of the largest element) and f32 (to 2e-6). Everything that the file has of the case
 * must have been compared. */
void tn_golden_check(tn_safetensors *file, const tn_golden_case *c);

#endif
