/* freeze.c — freezing and learning rates of fine-tuning: frozen layers, learning rates that decrease from the head to
 * the embeddings (discriminative fine-tuning), and gradual unfreezing (both from Howard and Ruder 2018). */
#include "tune.h"

#include <math.h>

/* The embeddings: the parts of the encoder outside of its layers. */
static void freeze_embeddings(tn_bert *e, bool frozen)
{
    tn_freeze(e->words, frozen), tn_freeze(e->positions, frozen), tn_freeze(e->norm, frozen);
    if (e->types) tn_freeze(e->types, frozen);
    if (e->project) tn_freeze(e->project, frozen);
}

/* Freezes or unfreezes layers from to to - 1, as far as they exist. */
static void freeze_layers(tn_bert *e, int64_t from, int64_t to, bool frozen)
{
    for (int64_t i = from; i < to && i < tn_length(e->encoder->layers); i++) {
        tn_transformer_encoder_layer *layer = tn_at(e->encoder->layers, i);
        if (layer) tn_freeze(layer, frozen);
    }
}

void tune_freeze(tn_tuned *m, int64_t n)
{
    freeze_embeddings(m->encoder, true);
    freeze_layers(m->encoder, 0, n, true);
}

void tune_thaw(tn_tuned *m, int64_t epoch, int64_t kept)
{
    const int64_t layers = tn_length(m->encoder->encoder->layers), cold = layers > epoch ? layers - epoch : 0;
    freeze_embeddings(m->encoder, kept || epoch <= layers);
    freeze_layers(m->encoder, 0, layers, true);
    freeze_layers(m->encoder, cold > kept ? cold : kept, layers, false);
}

/* Layers that share weights, like ALBERT's, count as one layer. */
tn_optimizer *tune_optimizer(tn_tuned *m, double lr, double rate, double decay)
{
    tn_optimizer *o = tn_adamw_new(m, .lr = lr, .weight_decay = decay, .clip.norm = 1);
    const int64_t layers = tn_length(m->encoder->encoder->layers);
    tn_group_new(o, .module = m->encoder, .lr = lr * pow(rate, (double)layers + 1));
    for (int64_t i = 0; i < layers && tn_error() == TN_OK; i++) {
        tn_transformer_encoder_layer *layer = tn_at(m->encoder->encoder->layers, i);
        if (layer) tn_group_new(o, .module = layer, .lr = lr * pow(rate, (double)(layers - i)));
    }
    tn_no_decay(o);
    return o;
}
