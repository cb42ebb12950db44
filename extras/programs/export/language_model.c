/* language_model.c — exports a tn_gpt or a tn_llama: see export.h. */
#include "emit.h"
#include "export.h"

#include <string.h>

/* What the two models have in common. */
typedef struct {
    tn_lm_info    about;
    tn_tensor    *words, *positions; /* positions: NULL with rotary ones */
    tn_blocks    *blocks;
    const tn_mha *mha;        /* attention of the first layer */
    int64_t       length, ff; /* maximum tokens of a text; width of the hidden layer of the feed-forward */
    const char   *function;   /* the activation in the C file */
    bool          gated, tied;
} decoder;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* The options of a tn_llama that the templates lack. */
static bool llama_fits(const tn_llama_config *c, const char *path)
{
    const struct {
        bool        set;
        const char *member;
    } rules[] = {
        {c->scores.window != 0, "sliding_window"},
        {c->pattern != NULL, "layer_types"},
        {c->order == TN_NORM_RESULT || c->order == TN_NORM_SANDWICH, "norms after attention and feed-forward"},
        {c->norm_add_one, "factors 1 + weight of norms"},
        {c->scores.qk_norm != TN_QK_NORM_NONE, "norms of queries and keys"},
        {c->experts != 0, "num_experts"},
        {c->order == TN_NORM_PARALLEL || c->order == TN_NORM_PARALLEL_ONE, "parallel attention and feed-forward"},
        {c->scores.cap != 0, "attn_logit_softcapping"},
        {c->logit_cap != 0, "final_logit_softcapping"},
        {c->embedding_scale != 0, "a scale of the embeddings"},
        {c->rope.scaling == TN_ROPE_DYNAMIC, "rope_scaling dynamic"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].set) return emit_rejected(path, rules[i].member);
    return true;
}

static bool describe(const tn_model *m, const char *path, decoder *d)
{
    *d = (decoder){.about = tn_lm_info_of(m->lm)};
    const char *type = d->about.type ? d->about.type : "";
    if (tn_error() != TN_OK) return false;
    if (!d->about.blocks || !strcmp(type, "reformer")) return emit_rejected(path, type), false;
    d->blocks = d->about.blocks;
    if (!strcmp(type, "gpt2")) {
        const tn_gpt *gpt = m->module;
        d->words = gpt->words->weight, d->positions = gpt->positions->weight, d->tied = !gpt->config.untied;
    } else {
        const tn_llama *llama = m->module;
        if (!llama_fits(&llama->config, path)) return false;
        d->words = llama->words->weight, d->tied = llama->config.tied;
    }
    const tn_block *b = tn_at(d->blocks->layers, 0);
    d->mha = b->self_attn, d->gated = b->gate != NULL, d->ff = b->linear1->out,
    d->function = blocks_function(b->activation), d->length = d->about.positions;
    if (!d->function) return emit_rejected(path, "its activation");
    return blocks_fit(m->lm, d->blocks, path);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void set_features(emitter *e, const decoder *d)
{
    blocks_feature(e, d->function);
    emit_feature(e, "NORM", true), emit_feature(e, "ATTENTION", true), emit_feature(e, "WINDOW", true);
    emit_feature(e, "LAYER_NORM", d->blocks->norm->bias != NULL);
    emit_feature(e, "ROTARY", tn_rotary_of(d->mha) != NULL), emit_feature(e, "POSITIONS", d->positions != NULL);
    emit_feature(e, "PANELS", true), emit_feature(e, "GATED", d->gated), emit_feature(e, "TIED", d->tied);
}

/* Bytes of `state` in program/decoder.c. */
static int64_t state_bytes(const decoder *d)
{
    const int64_t head = d->mha->head_dim, cache = d->about.layers * d->mha->kv_heads * emit_cache(d->length, head);
    const int64_t query = emit_wide(d->mha->heads * head), kv = emit_wide(d->mha->kv_heads * head);
    return 4 * (cache + 3 * emit_wide(d->about.dim) + 2 * query + 2 * kv + emit_wide(d->ff) * (d->gated ? 2 : 1) +
                2 * emit_wide(d->about.vocab) + 1);
}

static void put_title(emitter *e, const decoder *d, const spelling *k, const char *path)
{
    const int64_t most = spelling_most(d->length);
    emit_title(e, &(emit_about){.path = path,
                                .program = "gpt",
                                .kind = d->about.type,
                                .use = "echo \"Once upon a time\" | ./model [TOKENS]",
                                .layers = d->about.layers,
                                .dim = d->about.dim,
                                .state = state_bytes(d),
                                .texts = spelling_bytes(k, most),
                                .main = emit_writer_bytes(k, most, d->length),
                                .stack = 8192 + 32 * d->mha->head_dim});
}

static void put_sizes(emitter *e, const decoder *d)
{
    const tn_mha    *a = d->mha;
    const tn_rotary *r = tn_rotary_of(a);
    const int64_t    head = a->head_dim, rotary = r ? r->rope.dim : 0;
    const emit_size  sizes[] = {
         {"VOCAB", d->about.vocab, "tokens"},
         {"DIM", d->about.dim, "width of the residual stream"},
         {"LAYERS", d->about.layers, NULL},
         {"HEADS", a->heads, "of queries"},
         {"KV_HEADS", a->kv_heads, "of keys and values"},
         {"HEAD", head, "width of a head"},
         {"FF", d->ff, "width of the hidden layer of the feed-forward"},
         {"LENGTH", d->length, "maximum tokens of a text"},
         {"VOCAB_WIDE", emit_wide(d->about.vocab), "sizes, rounded up"},
         {"DIM_WIDE", emit_wide(d->about.dim), NULL},
         {"QUERY_WIDE", emit_wide(a->heads * head), NULL},
         {"KV_WIDE", emit_wide(a->kv_heads * head), NULL},
         {"FF_WIDE", emit_wide(d->ff), NULL},
         {"LENGTH_WIDE", (d->length + 127) / 128 * 128, NULL},
    };
    emit_sizes(e, sizes, sizeof sizes / sizeof *sizes);
    if (rotary)
        emit(e,
             "enum {\n    ROTARY_PAIRS = %lld,\n    ROTARY_STEP = %d, /* elements from a pair to the next */\n"
             "    ROTARY_APART = %lld /* elements between the two of a pair */\n};\n",
             (long long)(rotary / 2), r->rope.interleaved ? 2 : 1, r->rope.interleaved ? 1 : (long long)(rotary / 2));
    emit(e, "#define SCALE %af /* of attention scores */\n", blocks_scale(a));
    emit(e, "#define EPS %a   /* of norms */\n", ((tn_block *)tn_at(d->blocks->layers, 0))->norm1->eps);
    emit(e, "#define ACTIVATION %s\n", d->function);
    emit(e, "#define LAST_NORM_BIAS %s\n#define OUTPUT_BIAS %s\n", d->blocks->norm->bias ? "last_norm_bias" : "NULL",
         d->about.bias ? "output_bias" : "NULL");
}

const emit_function writer_interface[] = {
    EMIT_ENCODE,
    EMIT_DECODE,
    {"void model_read(int token);", "Reads a token of the text."},
    {"const float *model_logits(void);", "The logits of the next token, [MODEL_VOCAB]."},
    {"void model_forget(void);", "Starts another text."},
    {"int model_sample(float temperature, int top_k, float top_p, uint32_t *seed);",
     "Draws the next token: among the top_k most likely ones (0: all), and of these among the fewest whose\n"
     " * probabilities reach top_p (1: all). temperature divides the logits; 0: the most likely token. *seed, any\n"
     " * number, is changed."},
    {"size_t model_size(void);", "The bytes of a text for model_use."},
    {"void model_use(void *text);",
     "Several texts: each needs model_size() bytes, which are zeros at its start. The other functions continue the\n"
     " * text that model_use has chosen; NULL: the model's own."},
    {NULL, NULL}};

static void add_weights(emitter *e, const decoder *d)
{
    blocks_add(e, d->blocks, "layer");
    emit_vector(e, "last_norm", d->blocks->norm->weight), emit_vector(e, "last_norm_bias", d->blocks->norm->bias);
    emit_matrix(e, "output", d->about.out, 0, d->about.vocab);
    emit_vector(e, "output_bias", d->about.bias);
    if (!d->tied) emit_vector(e, "embedding", d->words);
    if (d->positions) emit_vector(e, "position", d->positions);
    if (tn_rotary_of(d->mha)) emit_vector(e, "angles", tn_mha_angles(d->mha, 0, d->length));
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

int64_t emit_writer_bytes(const spelling *k, int64_t most, int64_t length)
{
    return 4 * spelling_tokens(k, most) + 3 * spelling_together(k) * spelling_longest(k) + most + 4 * length + 4096;
}

void emit_writer(emitter *e, const tn_model *m, int32_t first)
{
    int64_t end[64] = {0}, n = 0;
    emit(e, "\n");
    emit_template(e, template_sample);
    const int32_t last = tn_tokenizer_special(m->tokenizer).last;
    if (last >= 0) end[n++] = last;
    if (first >= 0) end[n++] = first;
    for (int64_t i = 0; i < m->ends.n && n < 64; i++) end[n++] = m->ends.at[i];
    emit(e, "\n#ifdef MODEL_MAIN\n");
    emit(e, "enum { FIRST = %d, ENDS = %lld }; /* FIRST: the token before each text; -1: none */\n", first,
         (long long)n);
    emit_numbers(e, "end", n, 1, end);
    emit(e, "#endif\n");
    emit_template(e, template_decoder_main);
}

static void put_file(emitter *e, const tn_model *m, const decoder *d, const spelling *k, int32_t first,
                     const char *path)
{
    set_features(e, d);
    add_weights(e, d);
    if (!emit_fits(e, state_bytes(d))) return;
    put_title(e, d, k, path);
    emit_template(e, template_head);
    put_sizes(e, d);
    spelling_emit_sizes(e, k, spelling_most(d->length), true);
    emit_weight_names(e);
    emit_interface(e, writer_interface);
    emit_template(e, template_arithmetic);
    emit_template(e, template_functions);
    emit_template(e, template_embedding);
    emit(e, "\n");
    emit_template(e, template_decoder);
    spelling_emit_code(e, k, true);
    emit_writer(e, m, first);
    emit_constants(e, "sizeof own", state_bytes(d) + 60);
    spelling_emit_tables(e, k);
    blocks_emit(e, d->blocks, "layer");
    emit_weights(e);
}

bool export_language_model(const tn_model *m, int32_t first, const char *path, const char *out)
{
    decoder        d;
    spelling       k = {.words = false};
    emitter        e = {.f = NULL};
    const tn_scope s = tn_no_grad_begin();
    if (describe(m, path, &d) && spelling_read(&k, m->tokenizer, true) && emit_open(&e, out)) {
        put_file(&e, m, &d, &k, first, path);
        emit_close(&e);
    }
    spelling_free(&k);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
