/* kernel_numbers.h — the parameters of the optimizers' kernels. Private. */
#ifndef TENON_OPTIM_KERNEL_NUMBERS_H
#define TENON_OPTIM_KERNEL_NUMBERS_H

#include "core/core.h"

/* The parameters of a kernel for one tensor. rest1 = 1 - beta1, rest2 = 1 - beta2. */
typedef struct {
    double  beta2, rest2;         /* decay of the second moments */
    double  min_size, max_change; /* eps2, the minimum of RMS(p); d, the maximum of RMS(u) */
    double  over_mean;            /* 1 / max(mean of the rows' means, eps1), if the tensor is one matrix */
    int64_t rows, cols;           /* of a matrix; cols 0: a vector */
} tn__adafactor_numbers;
typedef struct {
    double beta1, rest1, beta2, rest2; /* decay of the first and second moments */
    double first, root; /* bias corrections: factor of the first moment (LAMB; for Adam it is part of lr) and of the
                           square root of the second */
} tn__adam_numbers;
typedef struct {
    double momentum, fresh; /* factor of the buffer; factor of the gradient, 1 - dampening */
    bool   nesterov;
} tn__sgd_numbers;
typedef struct {
    double alpha, rest, momentum;
} tn__rmsprop_numbers;
typedef struct {
    double scale, bound; /* the gradient is multiplied by scale, then clipped to [-bound, bound] */
    double add_weight;   /* add_weight · weight is added to the gradient */
    double keep;         /* the weight is multiplied by keep before the step */
    double lr, eps;
    union {
        tn__adafactor_numbers adafactor;
        tn__adam_numbers      adam; /* also for LAMB */
        tn__sgd_numbers       sgd;
        tn__rmsprop_numbers   rmsprop;
        double                ema_rest; /* 1 - decay */
    };
} tn__numbers;

#endif
