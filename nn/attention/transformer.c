/* transformer.c — encoder and decoder together. */
#include "nn/attention/block.h"

static const tn_class tn_transformer_class = {
    .size = sizeof(tn_class), .name = "Transformer", .bytes = sizeof(tn_transformer)};

tn_transformer *tn_transformer_create(tn_transformer_config c)
{
    const char     *who = "tn_transformer_new";
    const int64_t   in = c.encoder_layers, out = c.decoder_layers;
    tn_block_config s = {TN_BLOCK_DEFAULTS};
    s.final_norm = !c.no_final_norm, s.dim = c.dim, s.heads = c.heads, s.attention = c.attention, s.ff = c.ff;
    s.dropout = c.dropout, s.attention_dropout = c.attention_dropout, s.activation_dropout = c.activation_dropout;
    s.activation = c.activation, s.gated = c.gated, s.norm = c.norm, s.order = c.order;
    s.no_bias = c.no_bias, s.dtype = c.dtype;
    tn_block_config layer = s, last = s;
    if (c.decoder_heads) last.heads = c.decoder_heads;
    if (c.decoder_ff) last.ff = c.decoder_ff;
    last.layers = out, last.attention.positions = c.decoder_positions, s.layers = in;
    tn_block_config other = last;
    if (!tn__at_least(who, "encoder_layers", in, 1) || !tn__at_least(who, "decoder_layers", out, 1) ||
        !tn__block_config(who, &layer, false) || !tn__block_config(who, &other, true))
        who = NULL;
    tn_transformer *m = who ? tn_module_new(tn_transformer) : NULL;
    if (!m) return tn__part_drop(c.attention.positions), tn__part_drop(c.decoder_positions), NULL;
    m->encoder = tn_child(m, "encoder", tn_transformer_encoder_create(s));
    m->decoder = tn_child(m, "decoder", tn_transformer_decoder_create(last));
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        if (tn_ndim(p.tensor) > 1) tn_init_xavier_uniform(p.tensor, 1);
    return tn_built(m);
}

tn_tensor *tn_transformer_run(tn_transformer *m, tn_transformer_args a)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    const bool     unread = a.src_key_padding_mask == a.memory_key_padding_mask; /* the memory of padding */
    tn_tensor     *memory = tn_transformer_encoder_forward(m->encoder, a.src, .attn_mask = a.src_mask,
                                                           .key_padding_mask = a.src_key_padding_mask,
                                                           .skip_padding = a.skip_padding && unread);
    return tn_leave(f, tn_transformer_decoder_forward(
                           m->decoder, a.tgt, memory, .attn_mask = a.attn_mask, .key_padding_mask = a.key_padding_mask,
                           .causal = a.causal, .memory_mask = a.memory_mask,
                           .memory_key_padding_mask = a.memory_key_padding_mask, .skip_padding = a.skip_padding));
}
