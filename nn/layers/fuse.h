/* fuse.h — modules one after the other, computed by one op of autograd/fused.h where there is one. Private to nn/. */
#ifndef TENON_NN_LAYERS_FUSE_H
#define TENON_NN_LAYERS_FUSE_H

#include "nn/modules.h"

/* activation(tn_call(m, x)) */
tn_tensor *tn__linear_activated(tn_linear *m, tn_tensor *x, tn_tensor *(*activation)(tn_tensor *x));

/* x + dropout(h), and its norm. */
typedef struct {
    tn_tensor *sum, *normed;
} tn__residual;
tn__residual tn__add_and_norm(tn_tensor *x, tn_tensor *h, tn_dropout *dropout, tn_layer_norm *norm);

bool tn__is_linear(const tn_module *m);     /* layers/linear.c; another class may compute something else */
bool tn__is_layer_norm(const tn_module *m); /* layers/norm.c; an RMS norm is none */

#endif
