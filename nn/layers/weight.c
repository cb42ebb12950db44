/* weight.c — registers the weight of a layer, or the lengths and directions of its slices (Salimans and Kingma 2016).
 * Their names are those of torch.nn.utils.weight_norm. PyTorch's parametrizations have other names, which
 * nn/base/state.c reads, and they read ours. */
#include "nn/layers/weight.h"

tn_tensor *tn__weight_new(void *m, bool normed, tn_tensor *w, tn_tensor **g, tn_tensor **v)
{
    if (!normed) return tn_ndim(w) == 2 ? tn_module_weight(m, "weight", w) : tn_module_param(m, "weight", w);
    const tn_scope s = tn_scope_begin();
    tn_dims        others = {.n = w ? tn_ndim(w) - 1 : 0};
    for (int i = 0; i < others.n; i++) others.d[i] = i + 1;
    *g = tn_module_param(m, "weight_g", tn_sqrt(tn_sum(tn_square(w), .dims = others, .keepdim = true)));
    *v = tn_module_param(m, "weight_v", w);
    tn_scope_end(s);
    return NULL;
}
