/* lbfgs.h — L-BFGS: quasi-Newton steps for a loss that is computed from all data, without noise. Part of extras.h:
 * include that. A step calls the closure several times; it computes the loss, and the step its gradient. Not a
 * tn_optimizer: no groups, schedules and checkpoints.
 *
 *     tn_lbfgs *opt = tn_lbfgs_new(net, .strong_wolfe = true);
 *     for (int i = 0; i < 10; i++) tn_lbfgs_step(opt, compute_loss, &data, NULL);
 *     tn_lbfgs_free(opt); */
#ifndef TENON_EXTRAS_LBFGS_H
#define TENON_EXTRAS_LBFGS_H

#include "../optim/optim.h"

TN_C_BEGIN_

typedef struct tn_lbfgs tn_lbfgs;
typedef struct tn_lbfgs_config {
    int              zero_;
    void            *module; /* its parameters that require grad now */
    double lr        TN_IS(1);
    int64_t max_iter TN_IS(20); /* iterations of a step */
    int64_t max_eval TN_IS(-1); /* maximum of evaluations of a step, which PyTorch's line search may exceed; -1: as in
                                             PyTorch, no further iteration after max_iter · 5 / 4 evaluations */
    double tolerance_grad   TN_IS(1e-7); /* a step ends at a gradient without larger elements, */
    double tolerance_change TN_IS(1e-9); /* and at a smaller change of the loss or of all weights */
    int64_t history TN_IS(100);   /* pairs of changes that are kept: 2 · history numbers in f64 for each weight */
    bool            strong_wolfe; /* search each step for a point of the strong Wolfe conditions */
    int             end_;
} TN_KEYWORDS_ONLY tn_lbfgs_config;
#define TN_LBFGS_DEFAULTS \
    .lr = 1, .max_iter = 20, .max_eval = -1, .tolerance_grad = 1e-7, .tolerance_change = 1e-9, .history = 100
TN_API tn_lbfgs *tn_lbfgs_create(tn_lbfgs_config c);
TN_API void      tn_lbfgs_free(tn_lbfgs *o);
/* *loss, unless loss is NULL: the loss before the step. If the closure fails, the weights are those of before, and the
 * history is empty. */
TN_API tn_status tn_lbfgs_step(tn_lbfgs *o, tn_closure closure, void *user, double *loss);

TN_C_END_
#if TN_KEYWORDS_
#define tn_lbfgs_new(...) \
    TN_CALL_(tn_lbfgs_create(TN_OF_MODULE_(tn_lbfgs_config, TN_LBFGS_DEFAULTS, __VA_ARGS__, TN_END_)))
#endif
#endif
