/* ema.h — the struct of tn_ema, for ema.c and checkpoints. Private. */
#ifndef TENON_OPTIM_EMA_H
#define TENON_OPTIM_EMA_H

#include "optim/optim_private.h"

typedef struct {
    char      *name;
    tn_tensor *t;       /* the parameter, with a reference (tn_keep) */
    tn_tensor *average; /* f32 for bf16 weights, else of the weight's dtype */
    tn_tensor *dense;   /* contiguous copy of a bf16 or strided weight; else NULL */
} tn__average;

struct tn_ema {
    double       decay;
    bool         warmup, mean, swapped;
    int64_t      items, updates; /* updates with mean: 0 before tn_ema_start, then 1 + number of updates */
    tn__average *item;
    tn__sweep    sweep;
};

#endif
