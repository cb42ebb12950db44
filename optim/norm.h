/* norm.h — the norm of gradients, and their clipping (norm.c). Private. */
#ifndef TENON_OPTIM_NORM_H
#define TENON_OPTIM_NORM_H

#include "optim/optim_private.h"

/* Returns the norm of all g times scale. If bad is not NULL, sets *bad to the first segment with a NaN or an Inf or, if
 * `squared`, with a norm whose square overflows its state's dtype, f32 or f64; -1: none. */
double      tn__sweep_norm(tn__sweep *w, double scale, bool largest, bool squared, int64_t *bad);
const char *tn__sweep_problem(const tn__segment *bad);         /* "has a NaN or Inf" */
bool        tn__clip_check(const char *who, const tn_clip *c); /* false: raised */
/* Computes the gradient norm of a step (NaN: not needed) and the factor of the gradients, which includes clipping.
 * False: raised because a gradient is not finite. */
bool tn__step_scale(tn_optimizer *o, double *scale, double *norm);

/* tn_step in two parts. tn__step_begin does all that can fail; if it does, nothing has changed (false: raised). With
 * `share`, a step without gradients only advances the step count and the schedule. Then tn__step_end updates, or if
 * `cancel` restores the state before tn__step_begin; it cannot fail. Nothing may use the optimizer in between. */
bool tn__step_begin(tn_optimizer *o, bool share);
void tn__step_end(tn_optimizer *o, bool cancel);

#endif
