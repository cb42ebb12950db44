/* encoder.c — exports a tn_bert that predicts masked tokens or embeds texts, or a tn_tuned that classifies or tags: see
 * export.h. */
#include "emit.h"
#include "export.h"

/* An encoder with one of the heads. */
typedef struct {
    const tn_bert        *bert;
    const tn_tuned       *tuned;  /* NULL: predicts masked tokens */
    int64_t               length; /* maximum tokens of a text */
    bool                  tags;
    const export_vectors *vectors; /* NULL: no vectors of texts */
} encoder;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static bool encoder_fits(const tn_bert *m, const char *path)
{
    const tn_bert_config *c = &m->config;
    if (c->kind == TN_DEBERTA) return emit_rejected(path, "disentangled attention of DeBERTa");
    if (m->streams) return emit_rejected(path, "two streams of XLNet");
    if (!m->positions || c->kind == TN_MODERNBERT) return emit_rejected(path, "rotary positions of ModernBERT");
    if (m->project) return emit_rejected(path, "embedding_size");
    if (!blocks_function(((tn_block *)tn_at(m->encoder->layers, 0))->activation))
        return emit_rejected(path, "hidden_act");
    return true;
}

static bool masked_fits(const tn_bert *m, const char *path)
{
    if (!m->head) return emit_rejected(path, "no head for masked tokens");
    if (!encoder_fits(m, path)) return false;
    if (!blocks_function(m->head->activation)) return emit_rejected(path, "hidden_act");
    return blocks_fit((void *)(uintptr_t)m, m->encoder, path);
}

static bool tuned_fits(const tn_tuned *m, const char *path)
{
    static const char *const tasks[] = {NULL, NULL, "question answering", "multiple choice"};
    if (tasks[m->config.task]) return emit_rejected(path, tasks[m->config.task]);
    if (m->crf) return emit_rejected(path, "crf");
    return encoder_fits(m->encoder, path) && blocks_fit((void *)(uintptr_t)m, m->encoder->encoder, path);
}

static bool vectors_fit(const tn_bert *m, const export_vectors *how, const char *path)
{
    for (int i = 0; i < how->steps; i++)
        if (how->step[i].then && !blocks_function(how->step[i].then)) return emit_rejected(path, "activation_function");
    return encoder_fits(m, path) && blocks_fit((void *)(uintptr_t)m, m->encoder, path);
}

/* The layer before the classifier of texts, and its function. */
static const tn_linear *dense_of(const encoder *x) { return x->tuned->dense ? x->tuned->dense : x->bert->pooler; }
static const char      *function_of(const encoder *x)
{
    if (!x->tuned) return blocks_function(x->bert->head->activation);
    return x->bert->config.kind == TN_DISTILBERT ? "relu" : x->bert->config.kind == TN_ELECTRA ? "gelu" : "tanh_of";
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The widest of the vectors of a text. */
static int64_t widest(const encoder *x)
{
    int64_t most = x->bert->config.dim;
    for (int i = 0; i < x->vectors->steps; i++) {
        const tn_linear *dense = x->vectors->step[i].dense;
        if (dense && dense->out > most) most = dense->out;
    }
    return emit_wide(most);
}

static int64_t scores(const encoder *x)
{
    if (x->vectors) return 2 * widest(x);
    if (!x->tuned) return emit_wide(x->bert->config.vocab);
    return emit_wide(x->tuned->config.n) * (x->tags ? x->length : 1);
}
static int64_t state_bytes(const encoder *x) { return encoder_state(x->bert->encoder, x->length) + 4 * scores(x); }

static void put_title(emitter *e, const encoder *x, const spelling *k, const char *path)
{
    const tn_mha *a = ((tn_block *)tn_at(x->bert->encoder->layers, 0))->self_attn;
    const int64_t most = spelling_most(x->length);
    emit_title(e, &(emit_about){.path = path,
                                .program = "bert",
                                .kind = tn_bert_kind_name(x->bert->config.kind),
                                .use = x->tuned || x->vectors ? "echo \"The old man went to the sea .\" | ./model"
                                                              : "echo \"The old [MASK] went to the sea.\" | ./model",
                                .layers = x->bert->config.layers,
                                .dim = x->bert->config.dim,
                                .state = state_bytes(x),
                                .texts = spelling_bytes(k, most),
                                .main = most + 4 * (x->tags ? 4 * x->length : x->length) + 64,
                                .stack = 8192 + 32 * a->head_dim});
}

static void put_sizes(emitter *e, const encoder *x)
{
    const tn_bert_config *c = &x->bert->config;
    const emit_size       masked[] = {
              {"VOCAB", c->vocab, "tokens"}, {"VOCAB_WIDE", emit_wide(c->vocab), NULL}, {"SCORES", scores(x), NULL}};
    const emit_size tuned[] = {{"CLASSES", x->tuned ? x->tuned->config.n : 0, NULL},
                               {"CLASSES_WIDE", x->tuned ? emit_wide(x->tuned->config.n) : 0, NULL},
                               {"SCORES", scores(x), NULL}};
    encoder_sizes(e, x->bert->encoder, x->length, "maximum tokens of a text");
    if (!x->vectors) emit_sizes(e, x->tuned ? tuned : masked, 3);
    else {
        emit(e, "enum { VECTOR = %lld, VECTOR_WIDE = %lld };\n", (long long)x->vectors->dim, (long long)widest(x));
        emit_constant(e, "VECTOR", x->vectors->dim);
    }
    emit(e, "enum { FIRST_POSITION = %lld }; /* 0; RoBERTa: the padding token, plus 1 */\n",
         (long long)(x->bert->positions->count - c->positions));
    if (!x->tags && !x->vectors) emit(e, "#define HEAD_ACTIVATION %s\n", function_of(x));
}

/* The steps after the pooling, as a macro. */
static void put_steps(emitter *e, const encoder *x)
{
    int64_t width = x->bert->config.dim;
    emit(e, "#define FINISH_VECTOR(v, next) /* what follows the pooling */");
    for (int i = 0; i < x->vectors->steps; i++) {
        const tn_linear *dense = x->vectors->step[i].dense;
        if (!dense) {
            emit(e, " \\\n    scale_to_one(%lld, v);", (long long)width);
            continue;
        }
        emit(e, " \\\n    linear_float(1, %lld, %lld, dense%d, ", (long long)width, (long long)emit_wide(dense->out),
             i);
        emit(e, dense->bias ? "dense%d_bias, v, next);" : "NULL, v, next);", i);
        width = dense->out;
        emit(e, " \\\n    for (int i = 0; i < %lld; i++) v[i] = %s(next[i]);", (long long)emit_wide(width),
             x->vectors->step[i].then ? blocks_function(x->vectors->step[i].then) : "");
    }
    emit(e, "\n");
}

static void put_interface(emitter *e, const encoder *x)
{
    static const emit_function embed = {"const float *model_embed(int n);",
                                        "The vector of the n tokens that model_run has read, [MODEL_VECTOR]."},
                               fill = {"const float *model_fill(int t);",
                                       "The probabilities at token t of those that model_run has read, [MODEL_VOCAB]."},
                               tag = {"const float *model_tag(int n);",
                                      "The scores of the n tokens that model_run has read: rows of MODEL_CLASSES_WIDE "
                                      "numbers,\n * of which MODEL_CLASSES count."},
                               classify = {"const float *model_classify(void);",
                                           "The scores of the text that model_run has read, [MODEL_CLASSES]."};
    const emit_function functions[] = {EMIT_ENCODE,
                                       {"const float *model_run(const int *id, int n);",
                                        "Reads n tokens, at most MODEL_LENGTH. Returns their hidden states."},
                                       x->vectors  ? embed
                                       : !x->tuned ? fill
                                       : x->tags   ? tag
                                                   : classify,
                                       {NULL, NULL}};
    emit_interface(e, functions);
}

static void set_features(emitter *e, const encoder *x)
{
    const tn_problem_type problem = x->tuned ? x->tuned->config.problem : TN_SINGLE_LABEL;
    encoder_features(e, x->bert->encoder);
    emit_feature(e, "SEGMENTS", x->bert->types != NULL), emit_feature(e, "SCORED", !x->vectors);
    if (x->vectors) {
        emit_feature(e, "EMBEDS", true), emit_feature(e, "MEAN", x->vectors->pooling == TN_POOL_MEAN);
        emit_feature(e, "MAXIMUM", x->vectors->pooling == TN_POOL_MAX);
        for (int i = 0; i < x->vectors->steps; i++)
            if (x->vectors->step[i].then) blocks_feature(e, blocks_function(x->vectors->step[i].then));
        return;
    }
    if (!x->tags) blocks_feature(e, function_of(x));
    emit_feature(e, "FILLS", !x->tuned), emit_feature(e, "SOFTMAX", !x->tuned), emit_feature(e, "TIED", !x->tuned);
    emit_feature(e, "CLASSIFIES", x->tuned && !x->tags), emit_feature(e, "TAGS", x->tags);
    emit_feature(e, "SINGLE", x->tuned && !x->tags && problem == TN_SINGLE_LABEL);
    emit_feature(e, "PICKS", x->tags || (x->tuned && problem == TN_SINGLE_LABEL));
    emit_feature(e, "MULTIPLE", problem == TN_MULTI_LABEL), emit_feature(e, "REGRESSION", problem == TN_REGRESSION);
}

static void add_weights(emitter *e, const encoder *x)
{
    const tn_bert *m = x->bert;
    encoder_add(e, m->encoder);
    emit_vector(e, "position", m->positions->weight);
    tn_tensor *types = m->types ? m->types->weight : NULL;
    if (types) emit_vector(e, "segment", tn_select(tn_is_packed(types) ? tn_unpack(types) : types, 0, 0));
    emit_vector(e, "first_norm", m->norm->weight), emit_vector(e, "first_norm_bias", m->norm->bias);
    if (x->vectors) {
        emit_vector(e, "embedding", m->words->weight);
        for (int i = 0; i < x->vectors->steps; i++) {
            const tn_linear *step = x->vectors->step[i].dense;
            char             name[32];
            if (!step) continue;
            snprintf(name, sizeof name, "dense%d", i), emit_matrix(e, name, step->weight, 0, step->out);
            snprintf(name, sizeof name, "dense%d_bias", i), emit_vector(e, name, step->bias);
        }
        return;
    }
    const tn_linear *dense = x->tags ? NULL : x->tuned ? dense_of(x) : m->head->dense;
    if (dense) emit_matrix(e, "head", dense->weight, 0, dense->out), emit_vector(e, "head_bias", dense->bias);
    if (x->tuned) {
        emit_vector(e, "embedding", m->words->weight);
        emit_matrix(e, "classifier", x->tuned->classifier->weight, 0, x->tuned->config.n);
        emit_vector(e, "classifier_bias", x->tuned->classifier->bias);
        return;
    }
    emit_matrix(e, "output", m->words->weight, 0, m->config.vocab), emit_vector(e, "output_bias", m->head->bias);
    emit_vector(e, "head_norm", m->head->norm->weight), emit_vector(e, "head_norm_bias", m->head->norm->bias);
}

static void put_file(emitter *e, const encoder *x, const spelling *k, const char *path)
{
    set_features(e, x);
    add_weights(e, x);
    if (!emit_fits(e, state_bytes(x))) return;
    put_title(e, x, k, path);
    emit_template(e, template_head);
    put_sizes(e, x);
    spelling_emit_sizes(e, k, spelling_most(x->length), false);
    emit_weight_names(e);
    put_interface(e, x);
    emit_template(e, template_arithmetic);
    emit_template(e, template_functions);
    emit_template(e, template_embedding);
    emit(e, "\n");
    emit_template(e, template_encoder);
    emit(e, "\n");
    if (x->vectors) put_steps(e, x), emit(e, "\n");
    emit_template(e, template_words);
    spelling_emit_code(e, k, false);
    emit(e, "\n");
    const bool labelled = x->tuned && x->tuned->config.problem != TN_REGRESSION;
    if (labelled) emit(e, "#ifdef MODEL_MAIN\nstatic const char *const label[CLASSES];\n#endif\n");
    emit_template(e, template_lines);
    emit_template(e, x->tuned || x->vectors ? template_task_main : template_encoder_main);
    emit_constants(e, "sizeof state", state_bytes(x) + 64);
    if (labelled) {
        emit(e, "#ifdef MODEL_MAIN\n");
        emit_strings(e, "label", x->tuned->config.n, x->tuned->labels);
        emit(e, "#endif\n");
    }
    spelling_emit_tables(e, k);
    blocks_emit(e, x->bert->encoder, "layer");
    emit_weights(e);
}

/* Of an encoder, whose weights are f32 and whose options the templates have. */
static bool export_encoder(const encoder *x, const tn_tokenizer *t, const char *path, const char *out)
{
    spelling k = {.words = false};
    emitter  e = {.f = NULL};
    if (tn_tokenizer_kind_of(t) != TN_WORDPIECE)
        tn_raise(TN_EUNSUPPORTED, "the tokenizer of an encoder must be WordPiece; others cannot be exported");
    else if (spelling_read(&k, t, false) && emit_open(&e, out)) {
        put_file(&e, x, &k, path);
        emit_close(&e);
    }
    spelling_free(&k);
    return tn_error() == TN_OK;
}

bool export_masked_model(const tn_bert *m, const tn_tokenizer *t, const char *path, const char *out)
{
    const tn_scope s = tn_no_grad_begin();
    const encoder  x = {m, NULL, m->config.positions, false, NULL};
    if (masked_fits(m, path)) export_encoder(&x, t, path, out);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

bool export_tuned_model(const tn_tuned *m, const tn_tokenizer *t, int64_t length, const char *path, const char *out)
{
    const tn_scope s = tn_no_grad_begin();
    const int64_t  most = m->encoder->config.positions;
    const encoder  x = {m->encoder, m, length < most ? length : most, m->config.task == TN_TASK_TOKEN_CLASSIFICATION,
                        NULL};
    if (tuned_fits(m, path)) export_encoder(&x, t, path, out);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

bool export_embedder(const tn_bert *m, const tn_tokenizer *t, const export_vectors *how, const char *path,
                     const char *out)
{
    const tn_scope s = tn_no_grad_begin();
    const encoder  x = {m, NULL, how->length, false, how};
    if (vectors_fit(m, how, path)) export_encoder(&x, t, path, out);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
