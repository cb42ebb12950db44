/* attention_args.h — the arguments that attention (ops/attention.c) passes to the ops that compute its weights and its
 * second derivatives. */
#ifndef TENON_AUTOGRAD_ROOMS_ATTENTION_ARGS_H
#define TENON_AUTOGRAD_ROOMS_ATTENTION_ARGS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double scale, cap; /* cap: cap · tanh(score / cap); 0: not capped */
} tn__attention_scores_args;

typedef struct {
    bool    causal;
    int64_t past;   /* causal: query t attends to keys 0 … past + t */
    int64_t window; /* only to keys less than `window` positions away; 0: to all */
} tn__attention_weights_args;

#endif
