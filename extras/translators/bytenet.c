/* bytenet.c — ByteNet (Kalchbrenner et al. 2016): an encoder and a decoder of dilated convolutions, without
 * attention and recurrence. Layer i of both is a residual block with dilation 2^(i mod 5):
 *
 *   x += W₃ relu(norm(conv(dropout(relu(norm(W₁ relu(norm(x))))))))      from width dim to dim / 2 and back
 *
 *   encoder:  x = √dim · word of ⌈1.2 S⌉ tokens: the source and zeros (dynamic unfolding); result: norm(x)
 *   decoder:  x = √dim · word + the encoder's result at the same position, or 0 after its end; windows end with the
 *             token (masked convolutions); result: W relu(norm(x)) */
#include "extras/translators/translators_private.h"

enum { DILATIONS = 5 };
typedef struct {
    tn_layer_norm *norm[3];
    tn_linear     *narrow, *conv, *wide;
} bytenet_layer;
typedef struct { /* [0]: the encoder's, [1]: the decoder's */
    bytenet_layer *layer[2];
    tn_layer_norm *norm[2];
    tn_linear     *leave;
} bytenet;

static bool build(tn_seq2seq *m)
{
    static const char *const side_name[2] = {"encoder", "decoder"};
    const tn_seq2seq_config *c = &m->config;
    const int64_t            layers[2] = {c->layers, c->decoder_layers}, sizes[2] = {c->kernel, c->decoder_kernel};
    const int64_t            inner = c->dim / 2;
    bytenet *const           p = m->own = tn_array(m, 1, bytenet);
    for (int side = 0; p && side < 2; side++) {
        const char *const name = side_name[side];
        bytenet_layer    *l = p->layer[side] = tn_array(m, layers[side], bytenet_layer);
        for (int i = 0; l && i < layers[side]; i++, l++) {
            for (int k = 0; k < 3; k++)
                l->norm[k] = tn_child(m, tn_name("%s.%d.norm%d", name, i, k + 1),
                                      tn_layer_norm_new(.dim = k ? inner : c->dim, .eps = c->eps));
            l->narrow = tn_child(m, tn_name("%s.%d.narrow", name, i), tn_linear_new(.in = c->dim, .out = inner));
            l->conv =
                tn_child(m, tn_name("%s.%d.conv", name, i), tn_linear_new(.in = sizes[side] * inner, .out = inner));
            l->wide = tn_child(m, tn_name("%s.%d.wide", name, i), tn_linear_new(.in = inner, .out = c->dim));
        }
        p->norm[side] = tn_child(m, tn_name("%s.norm", name), tn_layer_norm_new(.dim = c->dim, .eps = c->eps));
    }
    if (p) p->leave = tn_child(m, "decoder.leave", tn_linear_new(.in = c->dim, .out = c->dim));
    return tn_error() == TN_OK;
}

/* padding: bool [B, T, 1], of the encoder; past: of the decoder. One of them is NULL. */
static tn_tensor *bytenet_block(tn_seq2seq *m, const bytenet_layer *l, tn_tensor *x, int64_t size, int64_t dilation,
                                tn_tensor *padding, tn__conv_past *past)
{
    tn_tensor *y = tn_call(l->narrow, tn_relu(tn_call(l->norm[0], x)));
    y = tn_call(m->dropout, tn_relu(tn_call(l->norm[1], y)));
    if (padding) y = tn_masked_fill(y, padding, 0);
    y = tn_call(l->conv, tn__conv_windows(past, y, size, dilation));
    return tn_add(x, tn_call(l->wide, tn_relu(tn_call(l->norm[2], y))));
}

static void encode(tn_seq2seq *m, tn_tensor *source, tn_seq2seq_state *r)
{
    const bytenet           *p = m->own;
    const tn_seq2seq_config *c = &m->config;
    const int64_t            batch = tn_size(source, 0), length = tn_size(source, 1), n = (6 * length + 4) / 5;
    tn_tensor               *more = tn_full_of(tn_dtype_of(source), TN_SHAPE(batch, n - length), (double)c->padding);
    tn_tensor *tokens = tn_sum(tn_to(tn_logical_not(r->padding), TN_I64), .dims = TN_DIMS(1), .keepdim = true);
    tn_tensor *x = tn_seq2seq_embedded(m, false, tn_cat(1, source, more), 0, NULL);
    /* position t is padding if t ≥ 1.2 S */
    r->padding = tn_ge(tn_mul_scalar(tn_reshape(tn_arange(n), TN_SHAPE(1, n)), 5), tn_mul_scalar(tokens, 6));
    tn_tensor *padding = tn_unsqueeze(r->padding, 2);
    for (int64_t i = 0; x && i < c->layers; i++)
        x = bytenet_block(m, &p->layer[0][i], x, c->kernel, 1 << i % DILATIONS, padding, NULL);
    r->memory = x ? tn_masked_fill(tn_call(p->norm[0], x), padding, 0) : NULL;
}

static tn_tensor *decode(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *target, tn_tensor **alignment)
{
    const bytenet           *p = m->own;
    const tn_seq2seq_config *c = &m->config;
    tn__conv_past            past;
    tn_tensor               *x = tn_seq2seq_embedded(m, true, target, r->at, NULL), *column = r->memory;
    (void)alignment; /* no attention */
    if (!x || !tn__conv_past_open(&past, r, c->decoder_layers)) return NULL;
    const int64_t n = tn_size(x, 1), all = tn_size(column, 1), from = r->at < all ? r->at : all;
    const int64_t some = n < all - from ? n : all - from;
    x = tn_add(x, tn_pad(tn_narrow(column, 1, from, some), TN_SHAPE(0, 0, 0), TN_SHAPE(0, n - some, 0), 0));
    for (int64_t i = 0; x && i < c->decoder_layers; i++)
        x = bytenet_block(m, &p->layer[1][i], x, c->decoder_kernel, 1 << i % DILATIONS, NULL, &past);
    tn__conv_past_close(&past, r);
    return x ? tn_call(m->dropout, tn_call(p->leave, tn_relu(tn_call(p->norm[1], x)))) : NULL;
}

const tn_seq2seq_functions tn__bytenet = {build, encode, decode, .blind = true};
