/* weights.h — the dtype of a model's weights in memory, for commands that only infer. */
#ifndef TENON_PROGRAMS_COMMON_WEIGHTS_H
#define TENON_PROGRAMS_COMMON_WEIGHTS_H

#include "options.h"

#define WEIGHT_TYPES "f32|f16|q8_0|int8"
#define WEIGHT_TYPE_TEXT                                                                                               \
    "dtype of the weights in memory: f16 takes half as much as f32, q8_0 a quarter; int8, a quarter, also rounds the " \
    "activations and is the fastest for many tokens"
#define OPTION_WEIGHTS(type) \
    OPTION_TEXT("dtype", 0, "TYPE", type, WEIGHT_TYPE_TEXT " (default: f32)", .choices = WEIGHT_TYPES)

/* The function that packs a weight in one of WEIGHT_TYPES, or q4_0; NULL, as for f32 and for NULL: none. */
typedef tn_tensor *(*weight_packer)(const tn_tensor *weight);
weight_packer weights_packer(const char *type);
/* Converts the weights of a module. type: one of WEIGHT_TYPES, or q4_0; NULL: unchanged. False: an error is set. */
bool weights_pack(void *module, const char *type);
/* All parameters of a module; packed weights, which are buffers, count by the elements that they represent. */
double weights_count(void *module);

#endif
