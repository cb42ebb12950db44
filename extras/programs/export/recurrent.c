/* recurrent.c — exports a tn_rnn_lm: see export.h. */
#include "emit.h"
#include "export.h"

#include <string.h>

enum { PROMPT = 4096 }; /* bytes and tokens of the text on standard input */

typedef struct {
    const tn_rnn_lm *m;
    int64_t          widest, sums; /* largest of states and inputs; sums of all gates */
} recurrent;

static bool describe(const tn_rnn_lm *m, const char *path, recurrent *r)
{
    const tn_rnn_lm_config *c = &m->config;
    *r = (recurrent){m, emit_wide(c->dim), 0};
    if (m->adaptive) return emit_rejected(path, "cutoff_0 (an adaptive softmax)");
    for (int64_t i = 0; i < c->layers; i++) {
        const tn_rnn *l = m->layer[i];
        if (emit_wide(l->hidden) > r->widest) r->widest = emit_wide(l->hidden);
        if (emit_wide(l->gates * l->hidden) > r->sums) r->sums = emit_wide(l->gates * l->hidden);
    }
    return emit_plain((void *)(uintptr_t)m, path);
}

static int64_t state_bytes(const recurrent *r)
{
    const int64_t states = !strcmp(r->m->config.cell, "lstm") ? 2 : 1;
    return 4 * (states * r->m->config.layers * r->widest + r->widest + 2 * r->sums + 2 * emit_wide(r->m->config.vocab));
}

static void put_sizes(emitter *e, const recurrent *r)
{
    const tn_rnn_lm_config *c = &r->m->config;
    const emit_size         sizes[] = {
                {"VOCAB", c->vocab, "tokens"},
                {"DIM", c->dim, "width of the embeddings"},
                {"LAYERS", c->layers, NULL},
                {"LENGTH", PROMPT, "maximum tokens of a text on standard input"},
                {"VOCAB_WIDE", emit_wide(c->vocab), "sizes, rounded up"},
                {"WIDE", r->widest, "of all states"},
                {"SUMS", r->sums, "of all gates"},
    };
    emit_sizes(e, sizes, sizeof sizes / sizeof *sizes);
}

static void add_weights(emitter *e, const recurrent *r)
{
    static const char *const names[] = {"input", "input_bias", "before", "before_bias"};
    for (int64_t i = 0; i < r->m->config.layers; i++) {
        const tn_rnn *l = r->m->layer[i];
        const bool    split = l->gates == 3; /* of a GRU, the state's bias is not a part of the sum */
        const int64_t out = l->gates * l->hidden;
        char          text[4][48];
        for (int k = 0; k < 4; k++) snprintf(text[k], sizeof text[k], "layer%lld_%s", (long long)i, names[k]);
        emit_matrix(e, text[0], l->weight_ih[0], 0, out);
        emit_vector(e, text[1], split ? l->bias_ih[0] : tn_add(l->bias_ih[0], l->bias_hh[0]));
        emit_matrix(e, text[2], l->weight_hh[0], 0, out);
        if (split) emit_vector(e, text[3], l->bias_hh[0]);
    }
    emit_matrix(e, "output", r->m->out, 0, r->m->config.vocab);
    emit_vector(e, "output_bias", r->m->bias);
    if (r->m->config.untied) emit_vector(e, "embedding", r->m->words->weight);
}

static void put_layers(emitter *e, const recurrent *r)
{
    static const char *const names[] = {"input", "input_bias", "before", "before_bias"};
    emit(e, "static const struct layer layers[LAYERS] = {\n");
    for (int64_t i = 0; i < r->m->config.layers; i++) {
        const tn_rnn *l = r->m->layer[i];
        emit(e, "    {%lld, %lld, %lld", (long long)l->in, (long long)l->hidden,
             (long long)emit_wide(l->gates * l->hidden));
        for (int k = 0; k < 4; k++) {
            char text[48];
            snprintf(text, sizeof text, "layer%lld_%s", (long long)i, names[k]);
            emit(e, ", "), emit_pointer(e, text);
        }
        emit(e, "},\n");
    }
    emit(e, "};\n");
}

static void put_title(emitter *e, const recurrent *r, const spelling *k, const char *path)
{
    const tn_rnn_lm_config *c = &r->m->config;
    emit_title(e, &(emit_about){.path = path,
                                .program = "lm",
                                .kind = c->cell,
                                .use = "echo \"The old man\" | ./model [TOKENS]",
                                .layers = c->layers,
                                .dim = c->hidden,
                                .state = state_bytes(r),
                                .texts = spelling_bytes(k, PROMPT),
                                .main = emit_writer_bytes(k, PROMPT, PROMPT),
                                .stack = 4096});
}

static void put_file(emitter *e, const tn_model *m, const recurrent *r, const spelling *k, const char *path)
{
    const tn_rnn_lm_config *c = &r->m->config;
    const bool              lstm = !strcmp(c->cell, "lstm"), gru = !strcmp(c->cell, "gru");
    emit_feature(e, "LSTM", lstm), emit_feature(e, "GRU", gru), emit_feature(e, "ELMAN", !lstm && !gru);
    emit_feature(e, "TANH", true), emit_feature(e, "SIGMOID", lstm || gru), emit_feature(e, "TIED", !c->untied);
    emit_feature(e, "PANELS", true), emit_feature(e, "WORDS", k->words);
    add_weights(e, r);
    if (!emit_fits(e, state_bytes(r))) return;
    put_title(e, r, k, path);
    emit_template(e, template_head);
    put_sizes(e, r);
    spelling_emit_sizes(e, k, PROMPT, true);
    emit_weight_names(e);
    emit_interface(e, writer_interface);
    emit_template(e, template_arithmetic);
    emit_template(e, template_functions);
    emit_template(e, template_embedding);
    emit(e, "\n");
    emit_template(e, template_recurrent);
    spelling_emit_code(e, k, true);
    emit_writer(e, m, -1);
    emit_constants(e, "sizeof own", state_bytes(r) + 64);
    spelling_emit_tables(e, k);
    put_layers(e, r);
    emit_weights(e);
}

bool export_recurrent_model(const tn_model *m, const char *path, const char *out)
{
    recurrent      r;
    spelling       k = {.words = false};
    emitter        e = {.f = NULL};
    const tn_scope s = tn_no_grad_begin();
    if (describe(m->module, path, &r) && spelling_read(&k, m->tokenizer, true) && emit_open(&e, out)) {
        put_file(&e, m, &r, &k, path);
        emit_close(&e);
    }
    spelling_free(&k);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
