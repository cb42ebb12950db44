/* convs2s.c — ConvS2S (Gehring et al. 2017): gated convolutions with residual connections, and attention in
 * each layer of the decoder. With e = dropout(word + position), learned positions, and c = √½:
 *
 *   encoder:  x = E e;  per layer x = c (x + GLU(conv(dropout(x))));  z = F x;  keys z, values c (z + e) √S
 *   decoder:  x = E e;  per layer y = GLU(conv(dropout(x))), of this token and those before it;
 *             a = attention of c (Q y + e) to keys and values;  x = c (x + c (y + A a));  result: F x
 *
 * S is the number of the source's tokens: a sum with uniform weights keeps its variance. All matrices are normalised by
 * rows, g · v / ‖v‖ (Salimans and Kingma 2016). In training mode the gradient of z is divided by twice the number of
 * attentions. */
#include "extras/translators/translators_private.h"

#include <math.h>

/* ---- a linear layer with normalised weights ---------------------------------------------------------------------- */

/* gain: the variance of the result for inputs of variance 1. */
static tn_linear *normed_linear_new(int64_t in, int64_t out, double gain)
{
    tn_linear *m = tn_linear_new(.in = in, .out = out, .weight_norm = true);
    if (!m) return NULL;
    const tn_scope s = tn_no_grad_begin();
    tn_init_zeros(m->bias);
    tn_tensor *v = tn_init_normal(m->weight_v, 0, sqrt(gain / (double)in));
    tn_copy_from(m->weight_g, tn_sqrt(tn_sum(tn_square(v), .dims = TN_DIMS(1), .keepdim = true)));
    tn_scope_end(s);
    return m;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_linear *conv, *query, *context; /* query, context: of the attention; NULL in the encoder */
} convs2s_layer;
typedef struct { /* [0]: the encoder's, [1]: the decoder's */
    tn_linear     *enter[2], *leave[2];
    convs2s_layer *layer[2];
} convs2s;

static bool build(tn_seq2seq *m)
{
    static const char *const side_name[2] = {"encoder", "decoder"};
    const tn_seq2seq_config *c = &m->config;
    const int64_t            layers[2] = {c->layers, c->decoder_layers}, sizes[2] = {c->kernel, c->decoder_kernel};
    const double             kept = 1 - c->dropout; /* as in the paper: dropout of the input is compensated */
    convs2s *const           p = m->own = tn_array(m, 1, convs2s);
    for (int side = 0; p && side < 2; side++) {
        const char *const name = side_name[side];
        convs2s_layer    *l = p->layer[side] = tn_array(m, layers[side], convs2s_layer);
        p->enter[side] = tn_child(m, tn_name("%s.enter", name), normed_linear_new(c->dim, c->dim, kept));
        for (int i = 0; l && i < layers[side]; i++, l++) {
            l->conv = tn_child(m, tn_name("%s.%d.conv", name, i),
                               normed_linear_new(sizes[side] * c->dim, 2 * c->dim, 4 * kept));
            if (!side) continue;
            l->query = tn_child(m, tn_name("%s.%d.query", name, i), normed_linear_new(c->dim, c->dim, 1));
            l->context = tn_child(m, tn_name("%s.%d.context", name, i), normed_linear_new(c->dim, c->dim, 1));
        }
        p->leave[side] = tn_child(m, tn_name("%s.leave", name), normed_linear_new(c->dim, c->dim, 1));
    }
    return tn_error() == TN_OK;
}

static tn_tensor *convs2s_mean(tn_tensor *a, tn_tensor *b) { return tn_mul_scalar(tn_add(a, b), sqrt(0.5)); }

/* x with a gradient that is multiplied by k. The value has x's bits: x - x is 0. */
static tn_tensor *convs2s_slowed(tn_tensor *x, double k)
{
    tn_tensor *constant = x ? tn_detach(x) : NULL;
    return tn_add(constant, tn_mul_scalar(tn_sub(x, constant), k));
}

static void encode(tn_seq2seq *m, tn_tensor *source, tn_seq2seq_state *r)
{
    const convs2s           *p = m->own;
    const tn_seq2seq_config *c = &m->config;
    tn_tensor *e = tn_seq2seq_embedded(m, false, source, 0, NULL), *x = e ? tn_call(p->enter[0], e) : NULL;
    tn_tensor *padding = tn_unsqueeze(r->padding, 2);
    for (int64_t i = 0; x && i < c->layers; i++) {
        tn_tensor *y = tn_call(m->dropout, tn_masked_fill(x, padding, 0));
        x = convs2s_mean(tn_glu(tn_call(p->layer[0][i].conv, tn__conv_windows(NULL, y, c->kernel, 1)), -1), x);
    }
    if (!x) return;
    r->keys = tn_masked_fill(tn_call(p->leave[0], x), padding, 0);
    if (m->base.training) r->keys = convs2s_slowed(r->keys, 0.5 / (double)c->decoder_layers);
    tn_tensor *length = tn_sum(tn_to(tn_logical_not(padding), tn_dtype_of(x)), .dims = TN_DIMS(1), .keepdim = true);
    r->memory = tn_mul(convs2s_mean(r->keys, e), tn_sqrt(length));
}

static tn_tensor *decode(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *target, tn_tensor **alignment)
{
    const convs2s           *p = m->own;
    const tn_seq2seq_config *c = &m->config;
    tn__conv_past            past;
    tn_tensor               *e = tn_seq2seq_embedded(m, true, target, r->at, NULL), *all = NULL;
    if (!e || !tn__conv_past_open(&past, r, c->decoder_layers)) return NULL;
    tn_tensor *x = tn_call(p->enter[1], e);
    for (int64_t i = 0; x && i < c->decoder_layers; i++) {
        const convs2s_layer *l = &p->layer[1][i];
        tn_tensor           *weights = NULL;
        tn_tensor           *y = tn__conv_windows(&past, tn_call(m->dropout, x), c->decoder_kernel, 1);
        y = tn_glu(tn_call(l->conv, y), -1);
        tn_tensor *a = tn_attention(convs2s_mean(tn_call(l->query, y), e), r->keys, r->memory,
                                    .key_padding_mask = r->padding, .scale = 1, .weights = alignment ? &weights : NULL);
        x = convs2s_mean(convs2s_mean(tn_call(l->context, a), y), x);
        all = all ? tn_add(all, weights) : weights;
    }
    tn__conv_past_close(&past, r);
    if (!x) return NULL;
    if (alignment) *alignment = tn_mul_scalar(all, 1 / (double)c->decoder_layers);
    return tn_call(m->dropout, tn_call(p->leave[1], x));
}

const tn_seq2seq_functions tn__convs2s = {build, encode, decode, .positions = true};
