/* ema.h — what tn_ema holds: for ema.c, and for checkpoints. Private. */
#ifndef TENON_OPTIM_EMA_H
#define TENON_OPTIM_EMA_H

#include "optim/optim_private.h"

typedef struct {
    char      *name;
    tn_tensor *t;       /* kept */
    tn_tensor *average; /* f32 for bf16, else of the weight's type */
    tn_tensor *aside;   /* for a bf16 or strided weight, a dense copy of it; else NULL */
} tn__average;

struct tn_ema {
    double       decay;
    bool         warmup, mean, swapped;
    int64_t      items, updates; /* with mean: 0 until tn_ema_begin, then one more than there were */
    tn__average *item;
    tn__sweep    sweep;
};

#endif
