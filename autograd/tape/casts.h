/* casts.h — for optimizers: the bf16 copies of weights that autocast has made (autocast.c), gradients that wait for an
 * update, and leaves that an optimizer has (leaves.c). One pass over a weight also writes its copy, so that the next
 * step does not convert it again. */
#ifndef TENON_AUTOGRAD_TAPE_CASTS_H
#define TENON_AUTOGRAD_TAPE_CASTS_H

#include "autograd/autograd.h"

/* The elements of t's copy, in the order of t's. NULL: there is none, or it is out of date, or a tape needs it. To be
 * called before t is opened for writing. */
uint16_t *tn__cast_open(tn_tensor *t);
/* The copy has the values that were written to t: to be called after the writing, only if open gave a copy. */
void tn__cast_close(tn_tensor *t);

/* Marks the leaf's gradient as one that later passes add to before the update (tn_accumulate); and reads the mark. */
void tn__grad_wait(const tn_tensor *leaf);
bool tn__grad_waits(const tn_tensor *leaf);
/* While a step or the end of a backward pass changes a leaf or its gradient; false: another thread does so. */
bool tn__leaf_claim(tn_tensor *leaf);
void tn__leaf_release(tn_tensor *leaf);
bool tn__leaf_trained(const tn_tensor *leaf); /* the mark of tn_mark_trained */

#endif
