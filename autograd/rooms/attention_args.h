/* attention_args.h — the arguments that attention (ops/attention.c) passes to the ops its weights and its second
 * derivatives are made of. */
#ifndef TENON_AUTOGRAD_ROOMS_ATTENTION_ARGS_H
#define TENON_AUTOGRAD_ROOMS_ATTENTION_ARGS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double scale;
} tn__attention_scores_args;

typedef struct {
    bool    causal;
    int64_t past;   /* causal: query t sees keys 0 … past + t */
    int64_t window; /* ... and of these the last so many; 0: all */
} tn__attention_weights_args;

#endif
