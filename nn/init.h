/* init.h — initial values, as in torch.nn.init. Each function fills a tensor in place, without recording, and returns
 * it: tn_param(m, "weight", tn_init_xavier_uniform(tn_empty(shape), 1)). Part of nn.h: include that.
 *
 * A weight is [out, in, kernel...]: fan in = in · kernel, fan out = out · kernel. Random values come from the current
 * generator. A call that fails changes neither the generator nor the tensor. */
#ifndef TENON_NN_INIT_H
#define TENON_NN_INIT_H

#include "module.h"

TN_C_BEGIN_

TN_API tn_tensor *tn_init_uniform(tn_tensor *t, double low, double high);
TN_API tn_tensor *tn_init_normal(tn_tensor *t, double mean, double std);
TN_API tn_tensor *tn_init_trunc_normal(tn_tensor *t, double mean, double std, double low,
                                       double high); /* [low, high] */
TN_API tn_tensor *tn_init_constant(tn_tensor *t, double value);
TN_API tn_tensor *tn_init_zeros(tn_tensor *t);
TN_API tn_tensor *tn_init_ones(tn_tensor *t);
TN_API tn_tensor *tn_init_eye(tn_tensor *t);                         /* 2-d */
TN_API tn_tensor *tn_init_xavier_uniform(tn_tensor *t, double gain); /* ±gain √(6 / (fan in + fan out)) */
TN_API tn_tensor *tn_init_xavier_normal(tn_tensor *t, double gain);  /* std gain √(2 / (fan in + fan out)) */
TN_API tn_tensor *tn_init_orthogonal(tn_tensor *t,
                                     double     gain); /* orthogonal rows (or columns, if fewer) of length gain */
TN_API tn_tensor *tn_init_sparse(tn_tensor *t, double sparsity, double std); /* 2-d: fraction of zeros in each column */

typedef enum {
    TN_LEAKY_RELU = 0,
    TN_RELU,
    TN_TANH,
    TN_SIGMOID,
    TN_SELU,
    TN_NO_NONLINEARITY /* PyTorch's 'linear' and 'conv2d' */
} tn_nonlinearity;
/* The gain that keeps the variance through a nonlinearity. param: slope of a leaky relu (PyTorch's default: 0.01). */
TN_API double tn_gain(tn_nonlinearity f, double param);

typedef struct tn_kaiming_args {
    int             zero_;
    tn_tensor      *t;
    double          a;       /* slope of the leaky relu after this layer; 0, the default, is PyTorch's default */
    bool            fan_out; /* use fan out: keeps the variance of the gradients; false: that of the values */
    tn_nonlinearity nonlinearity;
    int             end_;
} TN_KEYWORDS_ONLY tn_kaiming_args;
TN_API tn_tensor  *tn_init_kaiming_uniform_run(tn_kaiming_args a); /* ±gain √(3 / fan) */
TN_API tn_tensor  *tn_init_kaiming_normal_run(tn_kaiming_args a);  /* std gain / √fan */
#define tn_init_kaiming_uniform(...) \
    TN_CALL_(tn_init_kaiming_uniform_run(TN_ARGS1_(tn_kaiming_args, TN_NO_DEFAULTS_, t, __VA_ARGS__, TN_END_)))
#define tn_init_kaiming_normal(...) \
    TN_CALL_(tn_init_kaiming_normal_run(TN_ARGS1_(tn_kaiming_args, TN_NO_DEFAULTS_, t, __VA_ARGS__, TN_END_)))

TN_C_END_
#endif
