/* xlnet.c — XLNet (Yang et al. 2019) as a kind of tn_bert: two streams instead of an encoder.
 *
 * Content stream: h = dropout(words); query stream: g = dropout(mask_emb) for each token to predict; the result is
 * dropout(g), without tokens to predict dropout(h). */
#include "extras/xlnet/xlnet_private.h"

/* ---- building ---------------------------------------------------------------------------------------------------- */

static void add(tn_bert *m, const tn_bert_config *c)
{
    m->mask = tn_param(m, "bert.mask_emb", tn_normal(TN_SHAPE(1, 1, c->dim), 0, c->init));
    tn_two_stream *s = tn_two_stream_new(.layers = c->layers, .dim = c->dim, .heads = c->heads, .ff = c->ff,
                                         .dropout = c->dropout, .eps = c->eps, .causal = c->causal, .clamp = c->clamp,
                                         .activation = tn_hf_activation(c->activation));
    m->streams = (tn_module *)tn_child(m, "bert.encoder", s);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static tn_tensor *run(tn_bert *m, tn_tensor *words, const tn_bert_args *a)
{
    tn_tensor *h = tn_call(m->dropout, words), *g = NULL, *blocked = NULL;
    if (a->order && !a->targets) return tn_raise_null(TN_EINVAL, "bert: .order needs .targets");
    if (a->targets && h) {
        g = tn_call(m->dropout, tn_expand(tn_reshape(m->mask, TN_SHAPE(1, -1)), TN_SHAPE(tn_numel(a->targets), -1)));
        blocked = tn_permutation_mask(a->order, a->targets, tn_size(h, 0), tn_size(h, 1));
    }
    return tn_call(m->dropout, tn_two_stream_forward((tn_two_stream *)m->streams, h, .blocked = blocked,
                                                     .key_padding_mask = a->key_padding_mask, .segments = a->types,
                                                     .query = g, .targets = a->targets, .memory = a->memory,
                                                     .memory_out = a->memory_out, .memory_length = m->config.memory,
                                                     .reuse = m->config.reuse, .weights = a->weights));
}

void tn__xlnet_register(void)
{
    static const tn__bert_encoder xlnet = {.format = &tn__xlnet_format,
                                           .add = add,
                                           .run = run,
                                           .states = tn__xlnet_states,
                                           .check = tn__xlnet_check,
                                           .read = tn__xlnet_read,
                                           .store = tn__xlnet_store};
    tn__bert_register(&xlnet);
}
