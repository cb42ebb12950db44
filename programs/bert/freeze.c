/* freeze.c — freezing and learning rates of fine-tuning: frozen layers, learning rates that decrease from the head to
 * the embeddings (discriminative fine-tuning), and gradual unfreezing (both from Howard and Ruder 2018). */
#include "tune.h"

#include <math.h>

/* The embeddings: the parts of the encoder below its layers. */
static void freeze_embeddings(tn_bert *e, bool frozen)
{
    tn_freeze(e->words, frozen);
    if (e->positions) tn_freeze(e->positions, frozen);
    if (e->norm) tn_freeze(e->norm, frozen);
    if (e->types) tn_freeze(e->types, frozen);
    if (e->project) tn_freeze(e->project, frozen);
    if (e->encoder && e->encoder->positions) tn_freeze(e->encoder->positions, frozen);
}

/* The norm after the last layer, which is frozen with it and has its learning rate; or NULL. */
static void *last_norm(const tn_bert *e) { return e->encoder ? e->encoder->norm : NULL; }

static tn_module_list *layers_of(const tn_bert *e)
{
    return e->streams ? ((tn_two_stream *)e->streams)->layers : e->encoder->layers;
}

/* Freezes or unfreezes layers from to to - 1, as far as they exist. */
static void freeze_layers(tn_bert *e, int64_t from, int64_t to, bool frozen)
{
    for (int64_t i = from; i < to && i < tn_length(layers_of(e)); i++) {
        void *layer = tn_at(layers_of(e), i);
        if (layer) tn_module_freeze(layer, frozen);
        if (i + 1 == tn_length(layers_of(e)) && last_norm(e)) tn_module_freeze(last_norm(e), frozen);
    }
}

void tune_freeze(tn_tuned *m, int64_t n)
{
    freeze_embeddings(m->encoder, true);
    freeze_layers(m->encoder, 0, n, true);
}

void tune_thaw(tn_tuned *m, int64_t epoch, int64_t kept)
{
    const int64_t layers = tn_length(layers_of(m->encoder)), cold = layers > epoch ? layers - epoch : 0;
    freeze_embeddings(m->encoder, kept || epoch <= layers);
    freeze_layers(m->encoder, 0, layers, true);
    freeze_layers(m->encoder, cold > kept ? cold : kept, layers, false);
}

/* Layers that share weights, like ALBERT's, count as one layer. */
tn_optimizer *tune_optimizer(tn_tuned *m, double lr, double rate, double decay)
{
    tn_optimizer *o = tn_adamw_new(m, .lr = lr, .weight_decay = decay, .clip.norm = 1);
    const int64_t layers = tn_length(layers_of(m->encoder));
    tn_group_new(o, .module = m->encoder, .lr = lr * pow(rate, (double)layers + 1));
    for (int64_t i = 0; i < layers && tn_error() == TN_OK; i++) {
        void *layer = tn_at(layers_of(m->encoder), i);
        if (layer) tn_group_new(o, .module = layer, .lr = lr * pow(rate, (double)(layers - i)));
    }
    if (last_norm(m->encoder)) tn_group_new(o, .module = last_norm(m->encoder), .lr = lr * rate);
    tn_no_decay(o);
    return o;
}

/* Initialises the CRF's transitions with log p(b after a) / p(b) of the training texts; the logits already contain
 * p(b). At the small learning rates of fine-tuning, the transitions hardly change. */
void tune_start_crf(tn_crf *crf, const tn_labelled *texts, const tn_labels *labels)
{
    const int64_t  n = crf->labels;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor *pair = tn_full_of(TN_F64, TN_SHAPE(n, n), 0.1), *one = tn_full_of(TN_F64, TN_SHAPE(n), 0.1 * (double)n);
    tn_tensor *ends = tn_full_of(TN_F64, TN_SHAPE(2, n), 0.1);
    for (int64_t i = 0; tn_error() == TN_OK && i < tn_labelled_count(texts); i++) {
        const tn_example x = tn_labelled_at(texts, i);
        int64_t          before = -1;
        for (int64_t k = 0; k < x.labels; k++) {
            const int64_t l = tn_labels_find(labels, x.label[k]), at = before < 0 ? l : before * n + l;
            tn_tensor    *to = before < 0 ? ends : pair;
            tn_set(to, at, tn_get(to, at) + 1), tn_set(one, l, tn_get(one, l) + 1);
            before = l;
        }
        if (before >= 0) tn_set(ends, n + before, tn_get(ends, n + before) + 1);
    }
    tn_tensor *share = tn_log(tn_div(one, tn_sum(one)));
    pair = tn_sub(tn_log(tn_div(pair, tn_sum(pair, .dims = TN_DIMS(1), .keepdim = true))), share);
    ends = tn_sub(tn_log(tn_div(ends, tn_sum(ends, .dims = TN_DIMS(1), .keepdim = true))), share);
    tn_copy_from(crf->transitions, pair);
    tn_copy_from(crf->start, tn_select(ends, 0, 0)), tn_copy_from(crf->end, tn_select(ends, 0, 1));
    tn_scope_end(s);
}
