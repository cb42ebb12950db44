/* own_family.c — a custom type of language model that the library opens like its own: a neural n-gram model (Bengio et
 * al. 2003), which predicts a token from the embeddings of the last four. It is trained and saved with its tokenizer;
 * tn_model_open then finds it by the model_type in config.json, and it is measured, writes, and serves two texts at
 * once.
 * Build: cc -O2 own_family.c -o own_family $(pkg-config --cflags --libs tenon) */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/tenon.h>

typedef struct {
    int64_t vocab, dim, context; /* context: tokens that are read */
} config;

typedef struct {
    tn_module     base;
    config        c;
    tn_embedding *words;
    tn_linear    *mix; /* [context · dim] to [dim] */
    tn_tensor    *out; /* [vocab, dim] */
} ngram;

/* ---- files ------------------------------------------------------------------------------------------------------- */

static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .text = "NgramForCausalLM"},
    TN_HF("context", config, context, .needed = true, .low = 1, .high = 64),
    TN_HF("hidden_size", config, dim, .needed = true, .low = 1, .high = 65536),
    {"model_type", TN_HF_TYPE, .text = "ngram"},
    TN_HF("vocab_size", config, vocab, .needed = true, .low = 1, .high = 10000000),
};
static const tn_rename   rules[] = {TN_RENAME("mix", "mix")}; /* the names in the file are those of the members */
static const tn_hf_files files = TN_HF_FILES(rows, rules);

/* ---- the model --------------------------------------------------------------------------------------------------- */

static tn_lm_info info(const void *module)
{
    const ngram *m = module;
    return (tn_lm_info){
        .type = "ngram", .vocab = m->c.vocab, .dim = m->c.dim, .layers = 1, .positions = 512, .out = m->out};
}

/* The hidden state of each token of a.ids [B, T], from this token and those before it; missing ones are zeros. */
static tn_tensor *hidden(void *module, tn_decoder_args a)
{
    ngram        *m = module;
    const int64_t batch = tn_size(a.ids, 0), length = tn_size(a.ids, 1), n = m->c.context;
    tn_tensor    *x = tn_call(m->words, a.ids), *last[64];        // [B, T, dim]
    x = tn_cat(1, tn_zeros(TN_SHAPE(batch, n - 1, m->c.dim)), x); // [B, n - 1 + T, dim]
    for (int64_t i = 0; i < n; i++) last[i] = tn_narrow(x, 1, i, length);
    return tn_tanh(tn_call(m->mix, tn_cat_list(2, (int)n, last))); // [B, T, dim]
}

static tn_status save(void *m, const char *dir) { return tn_hf_write(m, dir, &files, &((ngram *)m)->c); }

static const tn_lm_ops ops = {.info = info, .hidden = hidden, .save = save};
static const tn_class  ngram_class = {sizeof(tn_class), .name = "Ngram", .bytes = sizeof(ngram), .lm = &ops};

static ngram *ngram_new(config c)
{
    ngram *m = tn_module_new(ngram);
    if (!m) return NULL;
    m->c = c;
    m->words = tn_child(m, "words", tn_embedding_new(.count = c.vocab, .dim = c.dim));
    m->mix = tn_child(m, "mix", tn_linear_new(.in = c.context * c.dim, .out = c.dim));
    m->out = tn_weight(m, "out.weight", tn_normal(TN_SHAPE(c.vocab, c.dim), 0, 0.1));
    return tn_built(m);
}

static void *load(const tn_hf_source *s)
{
    const char *dir = tn_hf_source_path(s);
    config      c;
    return tn_hf_config_read(dir, &files, &c) ? tn_hf_weights_read(ngram_new(c), dir, &files) : NULL;
}

static const char *const types[] = {"ngram", NULL};
static const tn_family   family = {.family = TN_MODEL_DECODER, .types = types, .load = load};

/* ---- training and use -------------------------------------------------------------------------------------------- */

static const char text[] = "the cat drinks milk and the horse eats grass and the bird sings songs and ";

static void train_and_save(const char *dir)
{
    tn_model     m = {.family = TN_MODEL_DECODER, .type = "ngram"};
    tn_encoding *e = tn_encoding_new();
    tn_seed(1);
    m.tokenizer = tn_tokenizer_train_text(text, strlen(text), .kind = TN_BYTE_BPE, .vocab_size = 270);
    ngram *net = ngram_new((config){.vocab = tn_tokenizer_size(m.tokenizer), .dim = 24, .context = 4});
    m.module = net;
    tn_tokenizer_encode(m.tokenizer, e, text, strlen(text));
    tn_tensor    *ids = tn_view(tn_from_data(TN_I32, TN_SHAPE(e->n), e->id), TN_SHAPE(1, e->n));
    tn_optimizer *opt = tn_adamw_new(net, .lr = 1e-2);
    for (int i = 0; i <= 150 && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_lm_loss(net, ids, NULL);
        if (i % 50 == 0) printf("%3d  %.2f\n", i, tn_item(loss));
        tn_backward(loss);
        tn_step(opt);
        tn_scope_end(s);
    }
    mkdir(dir, 0777);
    if (tn_model_save(&m, dir) == TN_OK) printf("saved\n");
    tn_optimizer_free(opt);
    tn_encoding_free(e);
    tn_model_close(&m);
}

/* Two texts at the same time, as a server writes them. */
static void serve(const tn_model *m)
{
    const char *const begin[] = {"the horse eats", "the bird sings"};
    tn_live          *l = tn_live_new(m->lm);
    tn_token_batch    b;
    for (int i = 0; i < 2 && tn_tokenizer_batch(m->tokenizer, &b, 1, &begin[i]) == TN_OK; i++)
        tn_live_add(l, b.ids, .most = 5);
    while (tn_live_step(l) > 0) {}
    for (int i = 0; i < 2 && !tn_error(); i++) {
        const tn_generated g = tn_live_take(l, i);
        tn_tensor         *ids = tn_to(g.tokens, TN_I32);
        tn_string          more = {0};
        tn_tokenizer_decode(m->tokenizer, tn_data(ids), tn_numel(ids), &more);
        printf("%s |%s\n", begin[i], more.at ? more.at : "");
        tn_string_free(&more);
    }
    tn_live_free(l);
}

int main(void)
{
    const tn_scope s = tn_scope_begin();
    train_and_save("ngram");
    tn_family_register(&family);
    tn_model          m = tn_model_open("ngram", .needs_tokenizer = true);
    const char *const said[] = {"the cat drinks milk", "milk the drinks cat"};
    double            nats[2] = {0};
    if (m.family && tn_lm_scores(m.lm, m.tokenizer, 2, said, nats) == TN_OK)
        printf("log probability: %.0f and, with the words shuffled, %.0f\n", nats[0], nats[1]);
    if (m.family) serve(&m);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_model_close(&m);
    tn_scope_end(s);
    return tn_error() != TN_OK;
}
