/* translator.c — exports a tn_seq2seq that is a Transformer: see export.h. */
#include "emit.h"
#include "export.h"

#include <math.h>
#include <string.h>

enum { KEYS = 128 }; /* keys per block in program/arithmetic.c */

static const tn_block *first_of(const tn_blocks *m) { return tn_at(m->layers, 0); }

static bool fits(const tn_seq2seq *m, const char *path)
{
    const tn_seq2seq_config *c = &m->config;
    if (c->kind != TN_SEQ2SEQ_TRANSFORMER) return emit_rejected(path, tn_seq2seq_kind_name(c->kind));
    const tn_blocks *in = m->transformer->encoder, *out = m->transformer->decoder;
    const struct {
        bool        set;
        const char *member;
    } rules[] = {
        {c->relative != 0, "relative positions"},
        {c->rms_norm, "rms_norm"},
        {c->gated, "a gated feed-forward"},
        {c->norm_embedding, "normalize_embedding"},
        {m->target_positions != NULL, "learned positions"},
        {!c->shared, "share_encoder_decoder_embeddings"},
        {c->out_scale != 0, "out_scale"},
        {c->type != NULL, c->type},
        {c->decoder_heads && c->decoder_heads != c->heads, "decoder_attention_heads"},
        {c->decoder_ff && c->decoder_ff != c->ff, "decoder_ffn_dim"},
        {!blocks_function(first_of(in)->activation), "activation_function"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].set) return emit_rejected(path, rules[i].member);
    return blocks_fit((void *)(uintptr_t)m, in, path) && blocks_fit((void *)(uintptr_t)m, out, path);
}

static int64_t state_bytes(const tn_seq2seq *m)
{
    const tn_mha *a = first_of(m->transformer->encoder)->self_attn;
    const int64_t cache = 2 * m->config.decoder_layers * a->heads * emit_cache(m->config.positions, a->head_dim);
    return encoder_state(m->transformer->encoder, m->config.positions) +
           4 * (cache + emit_wide(m->config.target_words) + 2);
}

static void put_sizes(emitter *e, const tn_seq2seq *m)
{
    const tn_seq2seq_config *c = &m->config;
    const emit_size          sizes[] = {
                 {"STEPS", c->decoder_layers, "layers of the decoder"},
                 {"VOCAB", c->target_words, "tokens"},
                 {"VOCAB_WIDE", emit_wide(c->target_words), NULL},
                 {"BEGIN", c->begin, "the token before each translation"},
                 {"END", c->end, "the token after each text and translation"},
    };
    encoder_sizes(e, m->transformer->encoder, c->positions, "maximum tokens of a text");
    emit_sizes(e, sizes, sizeof sizes / sizeof *sizes);
    emit(e, "#define EMBEDDING_SCALE %af\n#define OUTPUT_BIAS %s\n",
         c->plain_embedding ? 1.0 : (double)(float)sqrt((double)c->dim), m->out_bias ? "output_bias" : "NULL");
}

static const emit_function functions[] = {
    EMIT_ENCODE,
    EMIT_DECODE,
    {"void model_run(const int *id, int n);",
     "Reads a text of n tokens, at most MODEL_LENGTH, and starts its translation."},
    {"void model_read(int token);", "Reads a token of the translation, the first of which is MODEL_BEGIN."},
    {"const float *model_logits(void);",
     "The logits of the translation's next token, [MODEL_VOCAB]; MODEL_END ends it."},
    {NULL, NULL}};

static void add_weights(emitter *e, const tn_seq2seq *m)
{
    const tn_blocks *out = m->transformer->decoder;
    encoder_add(e, m->transformer->encoder);
    blocks_add(e, out, "layerD");
    if (out->norm) emit_vector(e, "written_norm", out->norm->weight);
    if (out->norm) emit_vector(e, "written_norm_bias", out->norm->bias);
    emit_matrix(e, "output", m->out, 0, m->config.target_words);
    if (m->out_bias) emit_vector(e, "output_bias", tn_reshape(m->out_bias, TN_SHAPE(-1)));
    if (m->config.untied) emit_vector(e, "embedding", m->target->weight);
    emit_vector(e, "position", m->positions->weight);
}

static void put_file(emitter *e, const tn_seq2seq *m, const spelling *k, const char *path)
{
    const tn_mha *a = first_of(m->transformer->encoder)->self_attn;
    const int64_t most = spelling_most(m->config.positions);
    encoder_features(e, m->transformer->encoder);
    emit_feature(e, "PANELS", true), emit_feature(e, "TIED", !m->config.untied);
    add_weights(e, m);
    if (!emit_fits(e, state_bytes(m))) return;
    emit_title(e, &(emit_about){.path = path,
                                .program = "translate",
                                .kind = "Transformer",
                                .use = "./model <lines",
                                .layers = m->config.layers,
                                .dim = m->config.dim,
                                .state = state_bytes(m),
                                .texts = spelling_bytes(k, most),
                                .main = emit_writer_bytes(k, most, m->config.positions),
                                .stack = 8192 + 32 * a->head_dim});
    emit_template(e, template_head);
    put_sizes(e, m);
    spelling_emit_sizes(e, k, most, true);
    emit_weight_names(e);
    emit_interface(e, functions);
    emit_template(e, template_arithmetic);
    emit_template(e, template_functions);
    emit_template(e, template_embedding);
    emit(e, "\n");
    emit_template(e, template_encoder);
    emit(e, "\n");
    emit_template(e, template_translator);
    spelling_emit_code(e, k, true);
    emit(e, "\n");
    emit_template(e, template_lines);
    emit_template(e, template_translator_main);
    emit_constants(e, "sizeof state + sizeof decoder", state_bytes(m) + 64);
    spelling_emit_tables(e, k);
    blocks_emit(e, m->transformer->encoder, "layer");
    blocks_emit(e, m->transformer->decoder, "layerD");
    emit_weights(e);
}

bool export_translator(const tn_seq2seq *m, const tn_tokenizer *t, const char *path, const char *out)
{
    spelling       k = {.words = false};
    emitter        e = {.f = NULL};
    const tn_scope s = tn_no_grad_begin();
    if (fits(m, path) && spelling_read(&k, t, true)) {
        spelling_read_plain(&k, m->config.positions);
        if (emit_open(&e, out)) put_file(&e, m, &k, path), emit_close(&e);
    }
    spelling_free(&k);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
