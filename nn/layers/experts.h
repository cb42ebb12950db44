/* experts.h — a mixture of experts within a block. Private to nn/. */
#ifndef TENON_NN_LAYERS_EXPERTS_H
#define TENON_NN_LAYERS_EXPERTS_H

#include "nn/experts.h"
#include "nn/layers/fuse.h"

/* m if it is a mixture of experts; else NULL. */
tn_experts *tn__experts_of(tn_module *m);
/* tn_experts_run, with dropout and jitter as in the padded batch of these rows. router may be NULL. */
tn_tensor *tn__experts(tn_experts *m, tn_tensor *x, tn__kept rows, tn_tensor **router);

#endif
