/* lora.h — the low-rank adapters of one weight. Private to nn/. */
#ifndef TENON_NN_LAYERS_LORA_H
#define TENON_NN_LAYERS_LORA_H

#include "nn/lora.h"

/* Adapters of a weight [rows, in] whose rows are `parts` parts of equal size; only those with a bit in `wanted` get A
 * and B. A is uniform as in PEFT, B is 0. */
tn_lora_pair *tn__lora_new(tn_shape weight, int parts, unsigned wanted, int64_t rank, double scale, tn_dtype dt);

bool tn__is_lora(const tn_module *m);

/* y + scale · (x Aᵀ) Bᵀ, where y are columns [from, from + columns) of x Wᵀ + b, in y's dtype. l NULL: y. */
tn_tensor *tn__lora_added(const tn_lora_pair *l, tn_tensor *x, tn_tensor *y, int64_t from, int64_t columns);

#endif
