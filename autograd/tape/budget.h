/* budget.h — a segment and the memory budget that chooses whether it is recomputed (budget.c). Private to
 * autograd/tape/. */
#ifndef TENON_AUTOGRAD_TAPE_BUDGET_H
#define TENON_AUTOGRAD_TAPE_BUDGET_H

#include "autograd/tape/tape.h"

/* The next segment of b's pass, with first input x: its index, and whether it runs as a checkpoint. False: raised. */
bool tn__budget_segment(tn_budget *b, const tn_tensor *x, int64_t *at, bool *recomputed);

/* Before and after the second run of segment `at`, whose result is out (may be NULL). Nothing is measured unless b is
 * the thread's open budget and measures this pass. */
void tn__budget_before(tn_budget *b, int64_t at);
void tn__budget_after(tn_budget *b, int64_t at, const tn_tensor *out);

#endif
