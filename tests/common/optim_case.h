/* optim_case.h — four parameters and their gradients, with which optimizers are compared with PyTorch
 * (tests/golden/optim.py). */
#ifndef TENON_TESTS_COMMON_OPTIM_CASE_H
#define TENON_TESTS_COMMON_OPTIM_CASE_H

#include "optim/optim.h"

/* "w" [3, 4], "b" [4], "e" [5, 2], "c" [2, 3, 2], filled by the formula. */
enum { TN_CASE_PARAMETERS = 4, TN_CASE_ELEMENTS = 38 };
tn_sequential *tn_case_new(tn_dtype dt);

/* The backward pass of step t: the gradient of sum(c p) + sum(p²)/8, where c depends on t and part; e has a gradient
 * only in some steps. */
tn_status tn_case_backward(tn_sequential *net, int t, int part);

/* Backward passes and steps from step `from` to step `to`, each in `parts` parts. */
tn_status tn_case_steps(tn_sequential *net, tn_optimizer *o, int from, int to, int parts);

/* Copies all elements in the order of the parameters. */
void tn_case_elements(tn_sequential *net, double to[TN_CASE_ELEMENTS]);
bool tn_case_same(tn_sequential *a, tn_sequential *b); /* returns true if all bits are equal */

/* The optimizers of tests/golden/optim.py, with the same names. parts: number of tn_step calls per update. */
typedef struct {
    const char *name;
    tn_optimizer *(*make)(tn_sequential *net);
    int parts;
} tn_case_kind;
enum { TN_CASE_KINDS = 36 };
extern const tn_case_kind tn_case_kinds[TN_CASE_KINDS];

#endif
