/* language.h — parts of language models older than the Transformer, in addition to recurrent layers (rnn.h):
 * variational dropout, highway layers, and the weighted sum of a model's layers. Part of nn.h: include that.
 *
 *     tn_highway    *h = tn_highway_new(.dim = 512, .layers = 2);
 *     tn_scalar_mix *mix = tn_scalar_mix_new(.count = 3);
 *     tn_tensor     *layer[] = {tn_call(h, words), first, second};   // tensors of the same shape
 *     tn_tensor     *x = tn_scalar_mix_forward(mix, 3, layer); */
#ifndef TENON_NN_LANGUAGE_H
#define TENON_NN_LANGUAGE_H

#include "modules.h"

TN_C_BEGIN_

typedef struct tn_locked_dropout_config {
    int      zero_;
    double p TN_IS(0.5);
    bool     time_first; /* x is [T, B, n]; else [B, T, n] */
    int      end_;
} TN_KEYWORDS_ONLY tn_locked_dropout_config;
#define TN_LOCKED_DROPOUT_DEFAULTS .p = 0.5
typedef struct {
    tn_module base;
    double    p;
    bool      time_first;
} tn_locked_dropout; /* variational dropout: all steps of a sequence share one mask */
TN_API tn_locked_dropout *tn_locked_dropout_create(tn_locked_dropout_config c);

/* A highway layer (Srivastava and others 2015): y = g x + (1 - g) f(a) with g = σ(b), where a and b are the two halves
 * of a linear layer's result. The bias of b is initialised to 1, so that initially g is near 1 and y near x. */
typedef struct tn_highway_config {
    int            zero_;
    int64_t        dim;
    int64_t layers TN_IS(1);
    tn_tensor *(*activation)(tn_tensor *x); /* NULL: tn_relu */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_highway_config;
#define TN_HIGHWAY_DEFAULTS .layers = 1
typedef struct {
    tn_module base;
    int64_t   dim, layers;
    tn_tensor *(*activation)(tn_tensor *x);
    tn_linear **layer; /* "layers.0", …: [2 dim, dim], a first */
} tn_highway;
TN_API tn_highway *tn_highway_create(tn_highway_config c); /* [..., dim] -> [..., dim] */

/* gamma Σ softmax(weight)ᵢ xᵢ: a learned weighted sum of a model's layers (Peters and others 2018). */
typedef struct tn_scalar_mix_config {
    int      zero_;
    int64_t  count;
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_scalar_mix_config;
typedef struct {
    tn_module  base;
    int64_t    count;
    tn_tensor *weight, *gamma; /* [count], initially 0; [], initially 1 */
} tn_scalar_mix;
TN_API tn_scalar_mix *tn_scalar_mix_create(tn_scalar_mix_config c);
TN_API tn_tensor     *tn_scalar_mix_forward(tn_scalar_mix *m, int n, tn_tensor *const *x); /* n must be count */

TN_C_END_
#define tn_locked_dropout_new(...) \
    TN_NEW_(tn_locked_dropout_create, tn_locked_dropout_config, TN_LOCKED_DROPOUT_DEFAULTS, __VA_ARGS__)
#define tn_highway_new(...) TN_NEW_(tn_highway_create, tn_highway_config, TN_HIGHWAY_DEFAULTS, __VA_ARGS__)
#define tn_scalar_mix_new(...) TN_NEW_(tn_scalar_mix_create, tn_scalar_mix_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#endif
