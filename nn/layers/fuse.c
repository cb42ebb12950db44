/* fuse.c — the only place where modules choose a fused op. The result has the same bits as calling the modules one by
 * one, which is done if one of them has a hook or adapters, or a tn_look is active. */
#include "nn/layers/fuse.h"
#include "nn/base/look_private.h"
#include "nn/base/nn_private.h"

typedef tn_tensor *(*activation_fn)(tn_tensor *x);
typedef tn_tensor *(*linear_fn)(tn_tensor *x, tn_tensor *weight, tn_tensor *bias);

static const struct {
    activation_fn activation;
    linear_fn     fused;
} linears[] = {{tn_gelu, tn_linear_gelu}, {tn_gelu_tanh, tn_linear_gelu_tanh}, {tn_relu, tn_linear_relu}};

static bool watched(const tn_module *m) { return tn__look_active() || (m->base && m->base->hooks); }

tn_tensor *tn__linear_activated(tn_linear *m, tn_tensor *x, tn_tensor *(*activation)(tn_tensor *x))
{
    linear_fn fused = NULL;
    if (m && tn__is_linear(&m->base) && m->weight && !m->lora && !watched(&m->base))
        for (size_t i = 0; i < sizeof linears / sizeof *linears; i++)
            if (linears[i].activation == activation) fused = linears[i].fused;
    if (!fused) return activation(tn_call(m, x));
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, fused(x, m->weight, m->bias));
}

tn_tensor *tn__dropout(tn_dropout *m, tn_tensor *x, tn__kept rows)
{
    if (!rows.index || watched(&m->base)) return tn_call(m, x);
    return m->base.training ? tn_dropout_rows(x, m->p, rows.index, rows.length) : x;
}

tn__residual tn__add_and_norm(tn_tensor *x, tn_tensor *h, tn_dropout *dropout, tn_layer_norm *norm, tn__kept rows)
{
    tn__residual r = {NULL, NULL};
    if (tn_error() != TN_OK) return r;
    if (watched(&dropout->base) || watched(&norm->base) || !tn__is_layer_norm(&norm->base)) {
        r.sum = tn_add(x, tn__dropout(dropout, h, rows));
        r.normed = tn_call(norm, r.sum);
        return r;
    }
    const double p = dropout->base.training ? dropout->p : 0;
    r.normed = tn_add_dropout_norm(x, h, norm->weight, norm->bias, .p = p, .eps = norm->eps, .sum = &r.sum,
                                   .rows = rows.index, .length = rows.length);
    return r;
}
