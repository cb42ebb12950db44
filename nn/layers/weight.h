/* weight.h — the weight of a layer, which .weight_norm divides into lengths and directions. Private to nn/. */
#ifndef TENON_NN_LAYERS_WEIGHT_H
#define TENON_NN_LAYERS_WEIGHT_H

#include "nn/base/nn_private.h"

/* Registers w as "weight" of m and returns it. If normed, registers the norms of w's slices along dim 0 as *g,
 * "weight_g", and w itself as *v, "weight_v", and returns NULL. */
tn_tensor *tn__weight_new(void *m, bool normed, tn_tensor *w, tn_tensor **g, tn_tensor **v);

/* The weight to compute with. */
static inline tn_tensor *tn__weight_of(tn_tensor *weight, tn_tensor *g, tn_tensor *v)
{
    return weight ? weight : tn_weight_norm(v, g, 0);
}

#endif
