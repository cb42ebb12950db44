/* mlm_head.c — the head of a masked language model: from the hidden state of a token to logits over the vocabulary.
 *
 *   y = norm(gelu(x W + b)) Eᵀ + bias          E: the weight of the embedding, tied
 *
 * Only masked positions need logits: pass these rows, [masked, dim]. tn_mlm_head_loss computes the cross-entropy
 * without storing all logits. */
#include "nn/attention/checks.h"
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"
#include "nn/transformer.h"

/* norm(gelu(x W + b)); the caller has opened the frame. */
static tn_tensor *transformed(tn_mlm_head *m, tn_tensor *x)
{
    return m->dense ? tn_call(m->norm, tn__linear_activated(m->dense, x, m->activation)) : x;
}

static tn_tensor *mlm_head_forward(void *self, tn_tensor *x)
{
    tn_mlm_head *m = self;
    return tn_linear(transformed(m, x), m->weight, m->bias);
}

static void mlm_head_describe(const void *self, char *text, size_t size)
{
    const tn_mlm_head *m = self;
    snprintf(text, size, "dim=%lld, words=%lld", (long long)tn_size(m->weight, 1), (long long)tn_size(m->weight, 0));
}

static const tn_class tn_mlm_head_class = {.size = sizeof(tn_class),
                                           .name = "MLMHead",
                                           .bytes = sizeof(tn_mlm_head),
                                           .forward = mlm_head_forward,
                                           .describe = mlm_head_describe};

tn_mlm_head *tn_mlm_head_create(tn_mlm_head_config c)
{
    if (tn__blocked()) return NULL;
    if (!c.embedding)
        return tn_raise_null(TN_EINVAL,
                             "tn_mlm_head_new: .embedding is NULL; pass the embedding's weight [words, dim]");
    if (tn_ndim(c.embedding) != 2)
        return tn__unexpected("tn_mlm_head_new", c.embedding, false, ".embedding must be [words, dim]"), NULL;
    const int64_t  words = tn_size(c.embedding, 0), dim = tn_size(c.embedding, 1);
    const tn_dtype dt = tn_dtype_of(c.embedding);
    if (!tn__floating("tn_mlm_head_new", dt) || !tn__at_least("tn_mlm_head_new", "in", c.in, 0)) return NULL;
    if (c.no_transform && c.in && c.in != dim)
        return tn_raise_null(TN_EINVAL,
                             "tn_mlm_head_new: .in is %lld, but without a transform it must be %lld, as in "
                             ".embedding",
                             (long long)c.in, (long long)dim);
    tn_mlm_head *m = tn_module_new(tn_mlm_head);
    if (!m) return NULL;
    m->activation = c.activation ? c.activation : tn_gelu;
    m->bias = tn_param(m, "bias", tn_zeros_of(dt, TN_SHAPE(words)));
    if (!c.no_transform) {
        m->dense = tn_child(m, "transform.dense",
                            tn_linear_new(.in = c.in ? c.in : dim, .out = dim, .no_bias = c.no_bias, .dtype = dt));
        m->norm = tn_child(m, "transform.LayerNorm",
                           tn_layer_norm_new(.dim = dim, .eps = c.eps, .no_bias = c.no_bias, .dtype = dt));
    }
    m->weight = tn_tie(m, "decoder.weight", c.embedding);
    tn_tie(m, "decoder.bias", m->bias);
    return tn_built(m);
}

tn_tensor *tn_mlm_head_transform(tn_mlm_head *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, transformed(m, x));
}

tn_tensor *tn_mlm_head_loss_run(tn_mlm_head *m, tn_linear_cross_entropy_args a)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (a.weight || a.bias)
        return tn_raise(TN_EINVAL, "tn_mlm_head_loss: .weight or .bias is set, but the head uses its own; remove them"),
               tn_leave(f, NULL);
    a.x = transformed(m, a.x), a.weight = m->weight, a.bias = m->bias;
    return tn_leave(f, tn_linear_cross_entropy_run(a));
}
