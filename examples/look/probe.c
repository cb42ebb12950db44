/* probe.c — look probe: how well a probe predicts parts of speech from each layer, compared with a control task; the
 * similarity of layers; or which heads are syntactic.
 *
 * Control task (Hewitt, Liang 2019): each word has a random class that depends only on its spelling. A probe can solve
 * it only by memorising words. Selectivity: the accuracy on parts of speech minus the accuracy on the control task. */
#include "../common/checksum.h"
#include "trees.h"

#include <stdlib.h>
#include <string.h>

static const char *dir, *text, *test, *other;
static int64_t     max_sentences = 500, hidden, steps = 500, seed = 1;
static bool        heads;

/* ---- vectors of words in context --------------------------------------------------------------------------------- */

enum { MAX_LAYERS = 130 };
typedef struct {
    int64_t    layers, words;
    char       path[MAX_LAYERS][TN_PATH_BYTES];
    tn_tensor *x[MAX_LAYERS]; /* the words' vectors in each layer, [words, D] */
    tn_tensor *y, *control;
} examples;

static uint64_t spelling_hash(tn_text w)
{
    const uint64_t h = checksum(CHECKSUM ^ (uint64_t)seed, w.at, w.bytes);
    return h ^ h >> 29;
}

/* Returns true if the module's output is the input of the first layer. */
static bool is_first(const model *m, const char *path)
{
    const char *words = strstr(path, "bert.embeddings.dropout");
    if (m->encoder) return words && !words[strlen("bert.embeddings.dropout")];
    return !strcmp(path, "transformer.drop") || !strcmp(path, "dropout"); /* GPT-2, LLaMA */
}

/* Collects the paths of the modules whose output is the input of the first layer or the output of a layer. */
static void layers_of(const model *m, examples *to)
{
    to->layers = 0;
    for (tn_each e = tn_modules(m->net); m->kind != TRANSLATOR && tn_next(&e) && to->layers < MAX_LAYERS;) {
        const char *last = strrchr(e.name, '.');
        const bool  layer =
            last && strstr(e.name, ".layers.") == last - strlen(".layers") && last[1] >= '0' && last[1] <= '9';
        if (layer || is_first(m, e.name)) snprintf(to->path[to->layers++], TN_PATH_BYTES, "%s", e.name);
    }
    if (to->layers < 2) tn_raise(TN_EUNSUPPORTED, "probe supports models like BERT, GPT-2 and LLaMA only");
}

static bool vectors_of(const model *m, const trees *t, examples *to)
{
    const tn_scope outer = tn_no_grad_begin();
    tn_look       *look = tn_look_new();
    tn_tensor    **row = calloc((size_t)t->sentences * MAX_LAYERS, sizeof *row);
    int64_t       *y = calloc((size_t)(2 * t->nodes), sizeof *y), *control = y + t->nodes, rows = 0;
    layers_of(m, to);
    for (int64_t l = 0; l < to->layers; l++) tn_look_request(look, to->path[l]);
    for (int64_t i = 0; i < t->sentences && row && y && tn_error() == TN_OK; i++) {
        const sentence  *s = &t->sentence[i];
        encoded_sentence x;
        if (!sentence_encode(m, t, i, &x)) continue; /* does not fit into the model */
        tn_look_clear(look);
        const tn_scope in = tn_look_begin(look);
        run_model(m, x.p.ids, NULL);
        tn_scope_end(in);
        for (int64_t l = 0; l < to->layers && tn_error() == TN_OK && runs_once(look, to->path[l]); l++)
            row[l * t->sentences + rows] =
                tn_matmul(word_means(&x, s->n), tn_select(tn_look_at(look, to->path[l]), 0, 0));
        for (int64_t k = 0; k < s->n; k++) {
            y[to->words] = t->node[s->first + k].upos;
            control[to->words++] = (int64_t)(spelling_hash(t->node[s->first + k].word) % UPOS);
        }
        rows++;
        sentence_free(&x);
    }
    tn_tensor *out[MAX_LAYERS + 2];
    int        n = 0;
    for (int64_t l = 0; l < to->layers && tn_error() == TN_OK; l++)
        out[n++] = to->x[l] = tn_cat_list(0, (int)rows, row + l * t->sentences);
    out[n++] = to->y = tn_from_data(TN_I64, TN_SHAPE(to->words), y);
    out[n++] = to->control = tn_from_data(TN_I64, TN_SHAPE(to->words), control);
    tn_scope_return_list(outer, tn_error() == TN_OK ? n : 0, out);
    for (int64_t l = 0; l < to->layers && tn_error() == TN_OK; l++)
        numbers_finite(tn_item(tn_sum(to->x[l])), "the output of a layer");
    free(row), free(y);
    tn_look_free(look);
    return tn_error() == TN_OK;
}

/* ---- look probe -------------------------------------------------------------------------------------------------- */

static void probe_layers(const examples *a, const examples *b)
{
    printf("layer\taccuracy\tcontrol\tselectivity\tsimilarity\n");
    for (int64_t l = 0; l < a->layers && tn_error() == TN_OK; l++) {
        const double accuracy = tn_probe(.x = a->x[l], .y = a->y, .test_x = b->x[l], .test_y = b->y, .hidden = hidden,
                                         .steps = steps, .seed = (uint64_t)seed);
        const double control = tn_probe(.x = a->x[l], .y = a->control, .test_x = b->x[l], .test_y = b->control,
                                        .hidden = hidden, .steps = steps, .seed = (uint64_t)seed);
        printf("%lld\t%.2f\t%.2f\t%.2f\t%.3f\n", (long long)l, 100 * accuracy, 100 * control,
               100 * (accuracy - control), tn_cka(b->x[l], b->x[l ? l - 1 : 0]));
        fflush(stdout);
    }
}

/* Prints the similarity (CKA) of layers on the same words: one row per layer of the model, one column per layer of the
 * other model. */
static void compare_layers(const model *m, const trees *t, examples *a, examples *b)
{
    model to;
    if (!model_open(other, &to)) return;
    if (vectors_of(m, t, a) && vectors_of(&to, t, b) && a->words != b->words)
        tn_raise(TN_EINVAL, "some sentences are too long for one of the models; remove them from --text");
    for (int64_t k = -1; k < a->layers && tn_error() == TN_OK; k++) {
        if (k < 0) printf("layer");
        else printf("%lld", (long long)k);
        for (int64_t l = 0; l < b->layers; l++)
            if (k < 0) printf("\t%lld", (long long)l);
            else printf("\t%.3f", tn_cka(a->x[k], b->x[l]));
        printf("\n");
    }
    model_close(&to);
}

static int run(int count, char **operands)
{
    static examples          a, b;
    model                    m;
    trees                    t = {.nodes = 0}, u = {.nodes = 0};
    static const char *const probe_options[] = {"test", "hidden", "steps", "seed", NULL};
    (void)count, (void)operands;
    if (!heads && !test && !other) return program_usage("none of --test, --heads and --to is given; give one of them");
    if (other && (heads || test)) return program_usage("--to compares two models; omit --test and --heads");
    const int code = heads || other ? program_strays(probe_options, "probes, which --heads and --to do not use") : 0;
    if (code) return code;
    const tn_scope s = tn_scope_begin();
    if (model_open(dir, &m)) {
        if (trees_open(text, max_sentences, 100, &t)) {
            if (heads) syntactic_heads(&m, &t);
            else if (other) compare_layers(&m, &t, &a, &b);
            else if (trees_open(test, max_sentences, 100, &u) && vectors_of(&m, &t, &a) && vectors_of(&m, &u, &b))
                probe_layers(&a, &b);
        }
        trees_close(&t), trees_close(&u);
        model_close(&m);
    }
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model", .required = true),
    OPTION_TEXT("text", 't', "FILE", &text, "training sentences in CoNLL-U", .required = true),
    OPTION_TEXT("test", 0, "FILE", &test, "test sentences in CoNLL-U"),
    OPTION_FLAG("heads", 0, &heads, "test which heads follow syntax, instead of probing"),
    OPTION_TEXT("to", 0, "DIR", &other, "compare the layers with those of the model in DIR, instead of probing"),
    OPTION_INT("sentences", 'n', "N", &max_sentences, "read at most N sentences of each file", .least = 1, .most = 1e7),
    OPTION_INT("hidden", 0, "N", &hidden, "width of the hidden layer of the probe; 0: linear probe", .least = 0,
               .most = 65536),
    OPTION_INT("steps", 0, "N", &steps, "training steps of each probe", .least = 1, .most = 1e7),
    OPTION_SEED('s', &seed, " of the probe and of the control task", .least = 0),
    {0}};
const command probe_command = COMMAND(
    "probe", "test what each layer or head encodes about parts of speech or syntax", options,
    .text = "Prints for the embeddings (0) and each layer: the accuracy of a probe on parts of speech in percent; its "
            "accuracy on a control task, random classes that depend on the spelling of a word; the difference "
            "(selectivity); and the similarity to the layer before (centred kernel alignment).\n"
            "With --to, prints the similarity of each layer (row) to each layer of another model (column).\n"
            "With --heads, prints for each head: the fraction of words whose largest attention weight goes to their "
            "syntactic head (directed), or to the head or a dependent (undirected), and the dependency relation that "
            "the head follows best, of those with at least 100 words.");
