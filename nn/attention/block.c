/* block.c — what the Transformer's encoder and decoder share: configs, parts, and leaving with many results. */
#include "nn/attention/block.h"

bool tn__layer_config(const char *who, tn_transformer_layer_config *c)
{
    if (!c->activation) c->activation = tn_relu;
    return tn__at_least(who, "dim", c->dim, 1) && tn__at_least(who, "heads", c->heads, 1) &&
           tn__at_least(who, "ff", c->ff, 1) && tn__probability(who, "dropout", c->dropout) &&
           tn__floating(who, c->dtype);
}

tn_transformer_layer_config tn__layer_of_stack(const tn_transformer_stack_config *c)
{
    return (tn_transformer_layer_config){.dim = c->dim,
                                         .heads = c->heads,
                                         .ff = c->ff,
                                         .dropout = c->dropout,
                                         .activation = c->activation,
                                         .eps = c->eps,
                                         .norm_first = c->norm_first,
                                         .no_bias = c->no_bias,
                                         .time_first = c->time_first,
                                         .dtype = c->dtype};
}

tn_mha *tn__layer_mha(const tn_transformer_layer_config *c)
{
    return tn_mha_new(.dim = c->dim, .heads = c->heads, .dropout = c->dropout, .no_bias = c->no_bias,
                      .time_first = c->time_first, .dtype = c->dtype);
}
tn_linear *tn__layer_linear(const tn_transformer_layer_config *c, int64_t in, int64_t out)
{
    return tn_linear_new(.in = in, .out = out, .no_bias = c->no_bias, .dtype = c->dtype);
}
tn_layer_norm *tn__layer_norm(const tn_transformer_layer_config *c)
{
    return tn_layer_norm_new(.dim = c->dim, .eps = c->eps, .no_bias = c->no_bias, .dtype = c->dtype);
}
tn_dropout *tn__layer_dropout(const tn_transformer_layer_config *c) { return tn_dropout_new(.p = c->dropout); }

tn_tensor *tn__leave_all(tn_frame f, tn_tensor *y, int64_t n, tn_tensor **a, tn_tensor **b)
{
    if (!a && !b) return tn_leave(f, y);
    const size_t bytes = (size_t)(2 * n + 1) * sizeof(tn_tensor *);
    tn_tensor  **all = tn_error() == TN_OK ? tn_mem_get(bytes) : NULL;
    int          count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!all && a) a[i] = NULL;
        if (!all && b) b[i] = NULL;
        if (all && a) all[count++] = a[i];
        if (all && b) all[count++] = b[i];
    }
    if (!all) return tn_leave(f, NULL);
    all[count++] = y;
    tn_scope_return_list(f.scope, count, all);
    tn_mem_put(all, bytes);
    return y;
}

tn_kv_cache *tn__layer_cache(const tn_mha *m, int64_t layers, int64_t batch, int64_t length, int64_t memory_length)
{
    return tn_kv_cache_new(.layers = layers, .batch = batch, .length = length, .memory_length = memory_length,
                           .heads = m->heads, .head_dim = m->dim / m->heads, .dtype = tn_dtype_of(m->out_proj->weight));
}
