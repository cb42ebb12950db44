/* optim_case.h — the four parameters on which optimizers are compared with PyTorch (tests/golden/optim.py), and their
 * gradients. */
#ifndef TENON_TESTS_COMMON_OPTIM_CASE_H
#define TENON_TESTS_COMMON_OPTIM_CASE_H

#include "optim/optim.h"

/* "w" [3, 4], "b" [4], "e" [5, 2], "c" [2, 3, 2], filled by the formula. */
enum { TN_CASE_PARAMETERS = 4, TN_CASE_ELEMENTS = 38 };
tn_sequential *tn_case_new(tn_dtype dt);

/* Backward of step t: the gradient of sum(c p) + sum(p²)/8, whose c depends on t and part; e has one in some steps
 * only. */
tn_status tn_case_backward(tn_sequential *net, int t, int part);

/* Backward and step, from step `from` to step `to`; each in so many parts. */
tn_status tn_case_steps(tn_sequential *net, tn_optimizer *o, int from, int to, int parts);

/* All elements, in the order of the parameters. */
void tn_case_elements(tn_sequential *net, double to[TN_CASE_ELEMENTS]);
bool tn_case_same(tn_sequential *a, tn_sequential *b); /* the same bits */

/* The optimizers of tests/golden/optim.py, by the same names. parts: tn_steps until one takes effect. */
typedef struct {
    const char *name;
    tn_optimizer *(*make)(tn_sequential *net);
    int parts;
} tn_case_kind;
enum { TN_CASE_KINDS = 27 };
extern const tn_case_kind tn_case_kinds[TN_CASE_KINDS];

#endif
