/* casts.h — the bf16 copies of weights that autocast has made (autocast.c), for optimizers: one pass over a weight also
 * writes its copy, so that the next step does not convert the weight again. */
#ifndef TENON_AUTOGRAD_TAPE_CASTS_H
#define TENON_AUTOGRAD_TAPE_CASTS_H

#include "autograd/autograd.h"

/* The elements of t's copy, in the order of t's. NULL: there is none, or it is out of date, or a tape needs it. To be
 * called before t is opened for writing. */
uint16_t *tn__cast_open(tn_tensor *t);
/* The copy has the values that were written to t: to be called after the writing, only if open gave a copy. */
void tn__cast_close(tn_tensor *t);

#endif
