/* probe.c — look probe: how well a probe predicts parts of speech from each layer, compared with a control task; the
 * similarity of layers; or which heads are syntactic.
 *
 * Control task (Hewitt, Liang 2019): each word has a random class that depends only on its spelling. A probe can solve
 * it only by memorising words. Selectivity: the accuracy on parts of speech minus the accuracy on the control task. */
#include "probe.h"

#include <stdlib.h>
#include <string.h>

static const char *dir, *text, *test, *other, *facts, *html;
static int64_t     max_sentences = 500, hidden, rank = 128, steps = 500, seed = 1;
static bool        heads, with_trees, with_edges;

/* ---- parts of speech --------------------------------------------------------------------------------------------- */

typedef struct {
    layer_vectors v;
    tn_tensor    *y, *control; /* classes, i64 [words] */
} examples;

static bool examples_open(const model *m, const trees *t, examples *e)
{
    if (!layer_vectors_open(m, t, false, &e->v)) return false;
    e->y = tn_empty_of(TN_I64, TN_SHAPE(e->v.words)), e->control = tn_empty_like(e->y);
    int64_t *y = e->y ? tn_data_mut(e->y) : NULL, *control = e->control ? tn_data_mut(e->control) : NULL, n = 0;
    for (int64_t i = 0; y && control && i < e->v.sentences; i++)
        for (int64_t k = 0; k < t->sentence[e->v.which[i]].n; k++) {
            const node *w = &t->node[t->sentence[e->v.which[i]].first + k];
            y[n] = w->upos, control[n++] = (int64_t)(spelling_hash(w->word, seed) % UPOS);
        }
    return tn_error() == TN_OK;
}

/* ---- look probe -------------------------------------------------------------------------------------------------- */

static void probe_layers(const examples *a, const examples *b)
{
    printf("layer\taccuracy\tcontrol\tselectivity\tsimilarity\n");
    for (int64_t l = 0; l < a->v.layers && tn_error() == TN_OK; l++) {
        const double accuracy = tn_probe(.x = a->v.x[l], .y = a->y, .test_x = b->v.x[l], .test_y = b->y,
                                         .hidden = hidden, .steps = steps, .seed = (uint64_t)seed);
        const double control = tn_probe(.x = a->v.x[l], .y = a->control, .test_x = b->v.x[l], .test_y = b->control,
                                        .hidden = hidden, .steps = steps, .seed = (uint64_t)seed);
        printf("%lld\t%.2f\t%.2f\t%.2f\t%.3f\n", (long long)l, 100 * accuracy, 100 * control,
               100 * (accuracy - control), tn_cka(b->v.x[l], b->v.x[l ? l - 1 : 0]));
        fflush(stdout);
    }
}

/* Prints the similarity (CKA) of layers on the same words: one row per layer of the model, one column per layer of the
 * other model. */
static void compare_layers(const model *m, const trees *t, layer_vectors *a, layer_vectors *b)
{
    model to;
    if (!model_open(other, &to)) return;
    if (layer_vectors_open(m, t, false, a) && layer_vectors_open(&to, t, false, b) && a->words != b->words)
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

/* ---- look probe -------------------------------------------------------------------------------------------------- */

/* Rejects options that the chosen study does not use. Returns 0, or the exit code. */
static int check_options(void)
{
    static const struct {
        const char *option, *studies, *what;
    } uses[] = {{"text", "", "sentences, which --facts does not use"},
                {"test", "pte", "probes, which --facts, --heads and --to do not use"},
                {"sentences", "pteho", "sentences, which --facts does not use"},
                {"hidden", "p", "probes of parts of speech"},
                {"rank", "t", "--trees"},
                {"html", "te", "--trees and --edges"},
                {"steps", "pe", "probes, which --facts, --heads, --to and --trees do not use"},
                {"seed", "pte", "probes, which --facts, --heads and --to do not use"}};
    const char kind = facts ? 'f' : heads ? 'h' : other ? 'o' : with_trees ? 't' : with_edges ? 'e' : 'p';
    if ((facts != NULL) + heads + (other != NULL) + with_trees + with_edges > 1)
        return program_usage("--facts, --heads, --to, --trees and --edges exclude each other; give one of them");
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        const bool used = i ? strchr(uses[i].studies, kind) != NULL : kind != 'f';
        const int  code = used ? 0 : program_stray(uses[i].option, uses[i].what);
        if (code) return code;
    }
    if (!facts && !text) return program_usage("--text is missing; only --facts needs no sentences");
    if (strchr("pte", kind) && !test)
        return program_usage("--test is missing; only --facts, --heads and --to need no test sentences");
    return reject_png(html);
}

/* The studies that train on the sentences of --text and test on those of --test. */
static void run_study(const model *m, const trees *t)
{
    static examples a, b;
    trees           u = {.nodes = 0};
    const study     s = {m, t, &u, dir, html, seed, rank, steps};
    if (trees_open(test, max_sentences, &u)) {
        if (with_trees || with_edges) {
            if (trees_check(text, t) && trees_check(test, &u)) (with_trees ? probe_trees : probe_edges)(&s);
        } else if (examples_open(m, t, &a) && examples_open(m, &u, &b)) {
            probe_layers(&a, &b);
        }
    }
    layer_vectors_close(&a.v), layer_vectors_close(&b.v);
    trees_close(&u);
}

static int run(int count, char **operands)
{
    static layer_vectors a, b;
    model                m;
    trees                t = {.nodes = 0};
    const int            code = check_options();
    (void)count, (void)operands;
    if (code) return code;
    const tn_scope s = tn_scope_begin();
    if (model_open(dir, &m)) {
        if (facts) probe_facts(&m, facts);
        else if (trees_open(text, max_sentences, &t)) {
            if (heads) syntactic_heads(&m, &t);
            else if (other) compare_layers(&m, &t, &a, &b);
            else run_study(&m, &t);
        }
        layer_vectors_close(&a), layer_vectors_close(&b);
        trees_close(&t);
        model_close(&m);
    }
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model", .required = true),
    OPTION_TEXT("text", 't', "FILE", &text, "training sentences in CoNLL-U, required without --facts"),
    OPTION_TEXT("test", 0, "FILE", &test, "test sentences in CoNLL-U, required by probes"),
    OPTION_FLAG("heads", 0, &heads, "test which heads follow syntax, instead of probing"),
    OPTION_TEXT("to", 0, "DIR", &other, "compare the layers with those of the model in DIR, instead of probing"),
    OPTION_FLAG("trees", 0, &with_trees, "test which layers encode dependency trees, instead of parts of speech"),
    OPTION_FLAG("edges", 0, &with_edges, "test which layers encode dependency relations, instead of parts of speech"),
    OPTION_TEXT("facts", 0, "FILE", &facts,
                "test facts of a masked language model, instead of probing: template, subject and object per line"),
    OPTION_INT("sentences", 'n', "N", &max_sentences, "read at most N sentences of each file", .least = 1, .most = 1e7),
    OPTION_INT("hidden", 0, "N", &hidden, "width of the hidden layer of the probe; 0: linear probe", .least = 0,
               .most = 65536),
    OPTION_INT("rank", 0, "N", &rank, "maximum rank of the linear map of --trees", .least = 1, .most = 65536),
    OPTION_INT("steps", 0, "N", &steps, "training steps of each probe", .least = 1, .most = 1e7),
    OPTION_SEED(0, &seed, " of the probe and of the control task", .least = 0),
    OPTION_TEXT("html", 'o', "FILE", &html, "write a page with figures, of --trees also trees (default: not written)"),
    {0}};
const command probe_command = COMMAND(
    "probe", "test what each layer or head encodes about parts of speech or syntax", options,
    .text =
        "Prints for the embeddings (0) and each layer: the accuracy of a probe on parts of speech in percent; its "
        "accuracy on a control task, random classes that depend on the spelling of a word; the difference "
        "(selectivity); and the similarity to the layer before (centred kernel alignment).\n"
        "With --to, prints the similarity of each layer (row) to each layer of another model (column).\n"
        "With --trees, trains a structural probe on each layer: a linear map under which squared distances of words "
        "are their distances in the tree. Prints the edges found without punctuation in percent (UUAS), the rank "
        "correlation with the distances in percent (DSpr), the roots found, the rank correlation with the depths "
        "(NSpr), the UUAS of a control task, random trees that depend on the words only, and the difference. The "
        "line chain joins neighbouring words.\n"
        "With --edges, trains probes that see the tokens of a word and of its syntactic head in the layers up to "
        "each one, and prints: the F1 of the dependency relation in percent, the gain from the last of these "
        "layers, the F1 of a control task, random relations that depend on the spelling of a word, and the "
        "difference; then the weights of the layers, their centre of gravity, and the expected layer.\n"
        "With --facts, reads lines of three columns, separated by tabs: a template with [X] and [Y], a subject "
        "for [X], and an object for [Y], which must be one token. Prints for each template the share of "
        "objects that the masked language model ranks first (P@1) and among the first ten (P@10), and the mean "
        "reciprocal rank (MRR), in percent; then the same without the subject, and for objects ranked by their "
        "frequency.\n"
        "With --heads, prints for each head: the fraction of words whose largest attention weight goes to their "
        "syntactic head (directed), or to the head or a dependent (undirected), and the dependency relation that "
        "the head follows best, of those with at least 100 words.");
