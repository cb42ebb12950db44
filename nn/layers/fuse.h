/* fuse.h — sequences of modules that are computed by one op of autograd/fused.h if possible. Private to nn/. */
#ifndef TENON_NN_LAYERS_FUSE_H
#define TENON_NN_LAYERS_FUSE_H

#include "nn/modules.h"

/* activation(tn_call(m, x)) */
tn_tensor *tn__linear_activated(tn_linear *m, tn_tensor *x, tn_tensor *(*activation)(tn_tensor *x));

/* The rows of an unpadded batch: their indices in a flattened padded one of sequences of `length` rows; index NULL: the
 * batch is padded. */
typedef struct {
    tn_tensor *index;
    int64_t    length;
} tn__kept;
/* tn_call(m, x), but dropped as in the padded batch. */
tn_tensor *tn__dropout(tn_dropout *m, tn_tensor *x, tn__kept rows);

/* sum: x + dropout(h); normed: norm(sum). */
typedef struct {
    tn_tensor *sum, *normed;
} tn__residual;
tn__residual tn__add_and_norm(tn_tensor *x, tn_tensor *h, tn_dropout *dropout, tn_layer_norm *norm, tn__kept rows);

bool tn__is_linear(const tn_module *m);     /* of class Linear exactly, not of a user's class (layers/linear.c) */
bool tn__is_layer_norm(const tn_module *m); /* of class LayerNorm exactly, not RMSNorm (layers/norm.c) */

#endif
