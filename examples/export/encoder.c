/* encoder.c — exports a tn_bert that predicts masked tokens: see export.h. */
#include "emit.h"
#include "export.h"

#include <math.h>
#include <string.h>

enum { KEYS = 128 }; /* of a block in program/arithmetic.c */

static bool fits(const tn_bert *m, const char *path)
{
    const tn_bert_config *c = &m->config;
    if (!m->head) return emit_rejected(path, "no head for masked tokens");
    if (c->kind == TN_DEBERTA) return emit_rejected(path, "disentangled attention of DeBERTa");
    if (m->streams) return emit_rejected(path, "two streams of XLNet");
    if (!m->positions || c->kind == TN_MODERNBERT) return emit_rejected(path, "rotary positions of ModernBERT");
    if (m->project) return emit_rejected(path, "embedding_size");
    if (!blocks_function(m->head->activation) ||
        !blocks_function(((tn_block *)tn_at(m->encoder->layers, 0))->activation))
        return emit_rejected(path, "hidden_act");
    return blocks_fit((void *)(uintptr_t)m, m->encoder, path);
}

static int64_t state_bytes(const tn_bert *m)
{
    const tn_mha *a = ((tn_block *)tn_at(m->encoder->layers, 0))->self_attn;
    const int64_t n = m->config.positions, keys = (n + KEYS - 1) / KEYS * KEYS;
    const int64_t each = 3 * emit_wide(m->config.dim) + 4 * emit_wide(a->heads * a->head_dim) + emit_wide(m->config.ff);
    return 4 * (n * each + 2 * keys * a->head_dim + emit_wide(m->config.vocab));
}
static int64_t text_most(const tn_bert *m) { return 8 * m->config.positions; }

static void put_title(emitter *e, const tn_bert *m, const char *path)
{
    const char   *name = strrchr(path, '/') && strrchr(path, '/')[1] ? strrchr(path, '/') + 1 : path;
    const int64_t text = text_most(m);
    emit(e, "/* %s as C99, written by Tenon's bert export: a %s with %lld layers of width %lld.\n *\n", name,
         tn_bert_kind_name(m->config.kind), (long long)m->config.layers, (long long)m->config.dim);
    emit(e,
         " *     cc -std=c99 -O2 -mfma -DMODEL_MAIN model.c -lm -o model      (-mfma: x86-64; without it, it is slow)\n"
         " *     echo \"The old [MASK] went to the sea.\" | ./model\n *\n"
         " * Without MODEL_MAIN it is a part of a program: the functions model_... below are its interface. It calls\n"
         " * fmaf, sqrt and fabsf of the C library, allocates nothing, and is not for several threads at once. The\n"
         " * results have the bits of Tenon's.\n *\n"
         " * Memory: the model's state %lld bytes, the tokenizer's texts %lld, of main %lld;\n"
         " * on the stack at most %lld;"
         " constants: the weights %lld bytes, and the tokenizer's tables. */\n\n",
         (long long)state_bytes(m), (long long)(3 * text + 1024), (long long)(text + 4 * m->config.positions + 64),
         (long long)(4096 + 8 * m->config.dim / m->config.heads), (long long)(4 * e->weights));
}

static void put_sizes(emitter *e, const tn_bert *m)
{
    const tn_bert_config *c = &m->config;
    const tn_block       *b = tn_at(m->encoder->layers, 0);
    const tn_mha         *a = b->self_attn;
    const emit_size       sizes[] = {
              {"VOCAB", c->vocab, "tokens"},
              {"DIM", c->dim, "width of the hidden states"},
              {"LAYERS", c->layers, NULL},
              {"HEADS", a->heads, NULL},
              {"HEAD", a->head_dim, "width of a head"},
              {"FF", c->ff, "width of the hidden layer of the feed-forward"},
              {"LENGTH", c->positions, "maximum tokens of a text"},
              {"FIRST_POSITION", m->positions->count - c->positions, "0; RoBERTa: the padding token, plus 1"},
              {"VOCAB_WIDE", emit_wide(c->vocab), "sizes, rounded up"},
              {"DIM_WIDE", emit_wide(c->dim), NULL},
              {"QUERY_WIDE", emit_wide(a->heads * a->head_dim), NULL},
              {"KV_WIDE", emit_wide(a->heads * a->head_dim), NULL},
              {"FF_WIDE", emit_wide(c->ff), NULL},
              {"LENGTH_WIDE", (c->positions + KEYS - 1) / KEYS * KEYS, NULL},
    };
    emit_sizes(e, sizes, sizeof sizes / sizeof *sizes);
    emit(e, "#define SCALE %af /* of attention scores */\n",
         (double)(float)(a->scale > 0 ? a->scale : 1 / sqrt((double)a->head_dim)));
    emit(e, "#define EPS %a /* of norms */\n#define ACTIVATION %s\n#define HEAD_ACTIVATION %s\n", m->norm->eps,
         blocks_function(b->activation), blocks_function(m->head->activation));
}

static const char interface[] = "\n/* See the functions' comments. */\n"
                                "int          model_encode(const char *text, int bytes, int *id);\n"
                                "const float *model_run(const int *id, int n);\n"
                                "const float *model_fill(int t);\n\n";

static void add_weights(emitter *e, const tn_bert *m)
{
    blocks_add(e, m->encoder);
    emit_matrix(e, "output", m->words->weight, 0, m->config.vocab);
    emit_vector(e, "output_bias", m->head->bias);
    emit_vector(e, "position", m->positions->weight);
    if (m->types) emit_vector(e, "segment", tn_select(m->types->weight, 0, 0));
    emit_vector(e, "first_norm", m->norm->weight), emit_vector(e, "first_norm_bias", m->norm->bias);
    emit_matrix(e, "head", m->head->dense->weight, 0, m->config.dim);
    emit_vector(e, "head_bias", m->head->dense->bias);
    emit_vector(e, "head_norm", m->head->norm->weight), emit_vector(e, "head_norm_bias", m->head->norm->bias);
    if (!m->encoder->norm) return;
    emit_vector(e, "last_norm", m->encoder->norm->weight), emit_vector(e, "last_norm_bias", m->encoder->norm->bias);
}

static void put_file(emitter *e, const tn_bert *m, const wordpiece_tables *k, const char *path)
{
    const tn_block *b = tn_at(m->encoder->layers, 0);
    blocks_feature(e, blocks_function(b->activation)), blocks_feature(e, blocks_function(m->head->activation));
    emit_feature(e, "LAYER_NORM", true), emit_feature(e, "SOFTMAX", true);
    emit_feature(e, "NORM_FIRST", b->norm_first), emit_feature(e, "SEGMENTS", m->types != NULL);
    add_weights(e, m);
    if (!emit_fits(e, state_bytes(m))) return;
    put_title(e, m, path);
    emit_template(e, template_head);
    put_sizes(e, m);
    wordpiece_emit_sizes(e, k, text_most(m));
    emit_weight_names(e);
    emit(e, "%s", interface);
    emit_template(e, template_columns);
    emit_template(e, template_arithmetic);
    emit_template(e, template_encoder);
    emit_template(e, template_text);
    emit_template(e, template_wordpiece);
    emit(e, "\n");
    emit_template(e, template_encoder_main);
    emit(e,
         "\n/* ---- constants: the memory of the state, checked; the tokenizer; the weights ---- */\n\n"
         "typedef char model_state_fits[sizeof state <= %lld ? 1 : -1];\n",
         (long long)(state_bytes(m) + 64));
    wordpiece_emit_tables(e, k);
    blocks_emit(e, m->encoder);
    emit_weights(e);
}

bool export_masked_model(const tn_bert *m, const tn_tokenizer *t, const char *path, const char *out)
{
    wordpiece_tables k = {.t = NULL};
    emitter          e = {.f = NULL};
    const tn_scope   s = tn_no_grad_begin();
    if (fits(m, path) && wordpiece_read(&k, t) && emit_open(&e, out)) {
        put_file(&e, m, &k, path);
        emit_close(&e);
    }
    wordpiece_free(&k);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
