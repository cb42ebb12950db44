/* probe_trees.c — look probe --trees: the structural probe (Hewitt, Manning 2019) on each layer, with a baseline that
 * joins neighbouring words, and the same probe on a control task, random trees that depend only on the words.
 *
 * As in the paper: L1 loss of squared distances or norms, Adam with learning rate 1e-3, which is divided by 10 when the
 * validation loss does not improve, batches of 20 sentences, at most 40 epochs, the weights of the best epoch. Unlike
 * it: batches hold sentences of similar length, in random order; every tenth sentence is for validation; vectors are
 * divided by their root mean square, so that the rate suits all models. */
#include "probe.h"

#include <math.h>
#include <stdlib.h>

enum { BATCH = 20, EPOCHS = 40, PATIENCE = 5, SHORTEST = 5, LONGEST = 50, FIGURES = 6 };

/* ---- sentences with trees ---------------------------------------------------------------------------------------- */

typedef struct {
    int64_t    n, width, sentence[BATCH]; /* sentences; words of the longest; their indices in the vectors */
    tn_tensor *at;                        /* rows of the words' vectors, i64 [n width]; 0 at padding */
    tn_tensor *distance, *pairs;          /* [n, width, width]: gold distances; weights in the loss */
    tn_tensor *depth, *words;             /* [n, width]: gold depths; weights in the loss */
} tree_batch;
typedef struct {
    const trees         *t;
    const layer_vectors *v;
    int64_t              n; /* batches */
    tree_batch          *batch;
} tree_set;

static const sentence *sentence_at(const tree_set *s, int64_t i) { return &s->t->sentence[s->v->which[i]]; }
static const node     *nodes_at(const tree_set *s, int64_t i) { return &s->t->node[sentence_at(s, i)->first]; }

static void heads_of(const tree_set *set, int64_t i, bool control, int64_t seed, int64_t *head)
{
    uint64_t      key[MAX_WORDS];
    const int64_t n = sentence_at(set, i)->n;
    for (int64_t k = 0; k < n; k++) {
        head[k] = nodes_at(set, i)[k].head;
        key[k] = spelling_hash(nodes_at(set, i)[k].word, seed);
    }
    if (control) control_tree(n, key, head);
}

static bool fill_batch(const tree_set *set, bool control, int64_t seed, tree_batch *b)
{
    const int64_t w = b->width;
    b->at = tn_zeros_of(TN_I64, TN_SHAPE(b->n * w));
    b->distance = tn_zeros(TN_SHAPE(b->n, w, w)), b->pairs = tn_zeros_like(b->distance);
    b->depth = tn_zeros(TN_SHAPE(b->n, w)), b->words = tn_zeros_like(b->depth);
    if (tn_error() != TN_OK) return false;
    int64_t *at = tn_data_mut(b->at);
    float   *distance = tn_data_mut(b->distance), *pairs = tn_data_mut(b->pairs), *depth = tn_data_mut(b->depth),
          *words = tn_data_mut(b->words);
    for (int64_t s = 0; s < b->n; s++) {
        int64_t       head[MAX_WORDS], deep[MAX_WORDS];
        const int64_t n = sentence_at(set, b->sentence[s])->n;
        heads_of(set, b->sentence[s], control, seed, head);
        tree_depths(n, head, deep);
        for (int64_t i = s * w; i < s * w + n; i++) {
            at[i] = set->v->row[b->sentence[s]] + i - s * w;
            depth[i] = (float)deep[i - s * w], words[i] = 1 / (float)(b->n * n);
            for (int64_t j = 0; j < n; j++)
                distance[i * w + j] = (float)tree_distance(head, deep, i - s * w, j),
                                 pairs[i * w + j] = 1 / (float)(b->n * n * n);
        }
    }
    return true;
}

typedef struct {
    int64_t n, i;
} sized;
static int by_size(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->i > y->i) - (x->i < y->i);
}

/* part 0: all sentences; 1: those for training; 2: every tenth, for validation. */
static bool set_open(const trees *t, const layer_vectors *v, int part, bool control, int64_t seed, tree_set *set)
{
    sized  *order = calloc((size_t)v->sentences + 1, sizeof *order);
    int64_t n = 0;
    *set = (tree_set){.t = t, .v = v, .batch = calloc((size_t)(v->sentences / BATCH) + 1, sizeof *set->batch)};
    if (!order || !set->batch)
        tn_raise(TN_ENOMEM, "no memory for the trees of %lld sentences", (long long)v->sentences);
    for (int64_t i = 0; order && i < v->sentences; i++)
        if (!part || (i % 10 == 9) == (part == 2)) order[n++] = (sized){sentence_at(set, i)->n, i};
    if (order) qsort(order, (size_t)n, sizeof *order, by_size);
    for (int64_t i = 0; i < n && set->batch && tn_error() == TN_OK; set->n++) {
        tree_batch *b = &set->batch[set->n];
        for (; i < n && b->n < BATCH; i++) b->sentence[b->n++] = order[i].i, b->width = order[i].n;
        fill_batch(set, control, seed, b);
    }
    free(order);
    return tn_error() == TN_OK;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static tn_tensor *vectors_at(const tree_batch *b, tn_tensor *x)
{
    return tn_reshape(tn_index_select(x, 0, b->at), TN_SHAPE(b->n, b->width, -1));
}

static tn_tensor *loss_of(const tree_batch *b, tn_linear *probe, tn_tensor *x, bool depth)
{
    x = vectors_at(b, x);
    return depth ? probe_loss(probe_depths(probe, x), b->depth, b->words)
                 : probe_loss(probe_distances(probe, x), b->distance, b->pairs);
}

static double mean_loss(const tree_set *set, tn_linear *probe, tn_tensor *x, bool depth)
{
    double sum = 0, n = 0;
    for (int64_t i = 0; i < set->n && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_no_grad_begin();
        sum += tn_item(loss_of(&set->batch[i], probe, x, depth)) * (double)set->batch[i].n,
            n += (double)set->batch[i].n;
        tn_scope_end(s);
    }
    return sum / n;
}

static void train_epoch(const tree_set *set, tn_linear *probe, tn_optimizer *opt, tn_tensor *x, bool depth)
{
    for (int64_t i = set->n; i-- > 0 && tn_error() == TN_OK;) { /* in random order: the others are before i */
        const int64_t    k = tn_random_below(tn_current_generator(), i + 1);
        const tree_batch b = set->batch[k];
        const tn_scope   s = tn_scope_begin();
        set->batch[k] = set->batch[i], set->batch[i] = b;
        tn_backward(loss_of(&b, probe, x, depth));
        tn_step(opt);
        tn_scope_end(s);
    }
}

/* The caller frees the probe with tn_free. */
static tn_linear *train_probe(const tree_set *train, const tree_set *valid, tn_tensor *x, int64_t rank, bool depth)
{
    const int64_t  d = tn_size(x, 1);
    tn_linear     *probe = tn_linear_new(.in = d, .out = rank < d ? rank : d, .no_bias = true);
    tn_optimizer  *opt = tn_adam_new(probe, .lr = 1e-3);
    tn_schedule   *rate = tn_plateau_lr_new(opt, .patience = 0);
    const tn_scope s = tn_scope_begin();
    double         least = INFINITY;
    if (probe) tn_init_uniform(probe->weight, -0.05, 0.05);
    tn_tensor *best = probe ? tn_clone(tn_detach(probe->weight)) : NULL;
    for (int64_t epoch = 0, at = 0; epoch < EPOCHS && epoch < at + PATIENCE && tn_error() == TN_OK; epoch++) {
        const tn_scope one = tn_scope_begin();
        train_epoch(train, probe, opt, x, depth);
        const double loss = mean_loss(valid, probe, x, depth);
        tn_plateau_step(rate, loss);
        if (loss < least - 1e-4) least = loss, at = epoch, tn_copy_from(best, probe->weight);
        tn_scope_end(one);
    }
    tn_no_grad_begin(); /* ends with s */
    if (probe && tn_error() == TN_OK) tn_copy_from(probe->weight, best);
    tn_scope_end(s);
    tn_optimizer_free(opt);
    return probe;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

typedef struct {
    double  sum[LONGEST + 1]; /* sums of correlations, by sentence length */
    int64_t n[LONGEST + 1];
} spearman;
typedef struct {
    int64_t  edges, right, roots, right_roots;
    spearman distance, depth;
    int64_t  edge[FIGURES][MAX_WORDS]; /* predicted trees of the sentences of figures */
} scores;

static void add_correlation(spearman *s, int64_t n, const float *predicted, const float *gold)
{
    double x[MAX_WORDS], y[MAX_WORDS];
    if (n < SHORTEST || n > LONGEST) return;
    for (int64_t i = 0; i < n; i++) x[i] = (double)predicted[i], y[i] = (double)gold[i];
    const double r = tn_spearman(n, x, y);
    s->sum[n] += isnan(r) ? 0 : r, s->n[n]++;
}

/* The mean over the lengths of the mean of each length, in percent. */
static double mean_correlation(const spearman *s)
{
    double  sum = 0;
    int64_t lengths = 0;
    for (int64_t n = SHORTEST; n <= LONGEST; n++)
        if (s->n[n]) sum += s->sum[n] / (double)s->n[n], lengths++;
    return lengths ? 100 * sum / (double)lengths : NAN;
}

static int64_t smallest(int64_t n, const float *depth, const bool *ignored)
{
    int64_t least = -1;
    for (int64_t i = 0; i < n; i++)
        if (!ignored[i] && (least < 0 || depth[i] < depth[least])) least = i;
    return least;
}

static bool is_shown(const tree_set *set, int64_t i, int64_t *figure)
{
    *figure = 0;
    for (int64_t k = 0; k < i && *figure < FIGURES; k++)
        *figure += sentence_at(set, k)->n >= 5 && sentence_at(set, k)->n <= 16;
    return *figure < FIGURES && sentence_at(set, i)->n >= 5 && sentence_at(set, i)->n <= 16;
}

/* Words that the tree ignores: punctuation. Returns the number of words left. */
static int64_t ignore(const tree_set *set, int64_t i, bool *ignored)
{
    int64_t left = 0;
    for (int64_t k = 0; k < sentence_at(set, i)->n; k++) left += !(ignored[k] = nodes_at(set, i)[k].punctuation);
    return left;
}

static void score_batch(const tree_set *set, const tree_batch *b, tn_tensor *distance, tn_tensor *depth, scores *to)
{
    const float *far = tn_data(tn_contiguous(distance)), *deep = tn_data(tn_contiguous(depth)),
                *gold_far = tn_data(b->distance), *gold_deep = tn_data(b->depth);
    for (int64_t s = 0; far && deep && s < b->n; s++) {
        bool          ignored[MAX_WORDS] = {false};
        int64_t       a[MAX_WORDS], c[MAX_WORDS], figure;
        const int64_t n = sentence_at(set, b->sentence[s])->n, at = s * b->width, square = at * b->width;
        if (ignore(set, b->sentence[s], ignored)) {
            to->edges += spanning_tree(n, gold_far + square, b->width, ignored, a);
            spanning_tree(n, far + square, b->width, ignored, c);
            to->right += common_edges(n, a, c);
            to->roots++, to->right_roots += smallest(n, deep + at, ignored) == smallest(n, gold_deep + at, ignored);
            if (is_shown(set, b->sentence[s], &figure))
                for (int64_t i = 0; i < n; i++) to->edge[figure][i] = c[i];
        }
        for (int64_t i = 0; i < n; i++)
            add_correlation(&to->distance, n, far + square + i * b->width, gold_far + square + i * b->width);
        add_correlation(&to->depth, n, deep + at, gold_deep + at);
    }
}

/* Scores two probes; NULL: the baseline, in which each word follows the word before it. */
static bool score(const tree_set *set, tn_linear *distances, tn_linear *depths, tn_tensor *x, scores *to)
{
    *to = (scores){.edges = 0};
    for (int64_t i = 0; i < set->n && tn_error() == TN_OK; i++) {
        const tn_scope    s = tn_no_grad_begin();
        const tree_batch *b = &set->batch[i];
        tn_tensor *place = tn_to(tn_arange(b->width), TN_F32), *far = tn_abs(tn_sub(tn_unsqueeze(place, 1), place));
        score_batch(set, b,
                    distances ? probe_distances(distances, vectors_at(b, x)) : tn_add(far, tn_zeros_like(b->distance)),
                    depths ? probe_depths(depths, vectors_at(b, x)) : tn_add(place, tn_zeros_like(b->depth)), to);
        tn_scope_end(s);
    }
    return tn_error() == TN_OK;
}

static double uuas(const scores *s) { return s->edges ? 100 * (double)s->right / (double)s->edges : NAN; }

/* ---- figures ----------------------------------------------------------------------------------------------------- */

typedef struct {
    double  x[MAX_LAYERS], uuas[MAX_LAYERS], control[MAX_LAYERS], chain[MAX_LAYERS];
    int64_t layers, best; /* the layer with the largest UUAS */
    scores  of_best;
} results;

static void add_tree(tn_report *r, const tree_set *set, int64_t i, const int64_t *predicted)
{
    const char   *word[MAX_WORDS];
    float         far[MAX_WORDS * MAX_WORDS];
    bool          ignored[MAX_WORDS];
    int64_t       head[MAX_WORDS], deep[MAX_WORDS], gold[MAX_WORDS];
    char          title[96];
    const int64_t n = sentence_at(set, i)->n;
    heads_of(set, i, false, 0, head);
    tree_depths(n, head, deep);
    for (int64_t k = 0; k < n; k++) word[k] = nodes_at(set, i)[k].word.at;
    for (int64_t k = 0; k < n * n; k++) far[k] = (float)tree_distance(head, deep, k / n, k % n);
    ignore(set, i, ignored);
    const int64_t edges = spanning_tree(n, far, n, ignored, gold);
    snprintf(title, sizeof title, "%lld of %lld edges", (long long)common_edges(n, gold, predicted), (long long)edges);
    tn_report_trees(r, title, n, word, gold, predicted);
}

static void write_page(const study *s, const tree_set *set, const results *to)
{
    tn_report      *r = report_new("trees in the layers", s->dir);
    const tn_series series[] = {{.name = "probe", .n = to->layers, .x = to->x, .y = to->uuas},
                                {.name = "probe of the control task", .n = to->layers, .x = to->x, .y = to->control},
                                {.name = "neighbouring words", .n = to->layers, .x = to->x, .y = to->chain}};
    char            text[160];
    tn_report_curves(r, "Edges found (UUAS)", "layer", "percent", 3, series);
    snprintf(text, sizeof text, "Trees of layer %lld", (long long)to->best);
    tn_report_heading(r, text);
    tn_report_paragraph(r, "Above the words is the tree of the treebank, below them the tree that the probe predicts, "
                           "without punctuation. Edges that only one of the two has are dashed.");
    for (int64_t i = 0; i < set->v->sentences; i++) {
        int64_t figure;
        if (is_shown(set, i, &figure)) add_tree(r, set, i, to->of_best.edge[figure]);
    }
    write_report(r, s->html);
}

/* ---- all layers -------------------------------------------------------------------------------------------------- */

typedef struct {
    layer_vectors text, test;
    tree_set      train[2], valid[2], all[2]; /* 0: the trees; 1: the control task */
} tree_data;

static bool data_open(const study *s, tree_data *d)
{
    bool good =
        layer_vectors_open(s->m, s->text, false, &d->text) && layer_vectors_open(s->m, s->test, false, &d->test);
    if (good && d->text.sentences < 10)
        good = tn_raise_false(TN_EINVAL, "%lld sentences of --text fit into the model; --trees needs at least 10",
                              (long long)d->text.sentences);
    for (int k = 0; k < 2 && good; k++)
        good = set_open(s->text, &d->text, 1, k, s->seed, &d->train[k]) &&
               set_open(s->text, &d->text, 2, k, s->seed, &d->valid[k]) &&
               set_open(s->test, &d->test, 0, k, s->seed, &d->all[k]);
    return good;
}

static void data_close(tree_data *d)
{
    for (int k = 0; k < 2; k++) free(d->train[k].batch), free(d->valid[k].batch), free(d->all[k].batch);
    layer_vectors_close(&d->text), layer_vectors_close(&d->test);
}

static void print_line(const char *name, const scores *s, const scores *control)
{
    printf("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", name, uuas(s), mean_correlation(&s->distance),
           s->roots ? 100 * (double)s->right_roots / (double)s->roots : NAN, mean_correlation(&s->depth), uuas(control),
           uuas(s) - uuas(control));
    fflush(stdout);
}

static bool probe_layer(const study *s, const tree_data *d, int64_t l, scores to[2])
{
    const tn_scope scope = tn_scope_begin();
    tn_generator   g = {(uint64_t)s->seed, 0}, *before = tn_use_generator(&g);
    const double   rms = sqrt(tn_item(tn_mean(tn_square(d->text.x[l]))));
    tn_tensor     *x = tn_div_scalar(d->text.x[l], rms > 0 ? rms : 1),
              *test = tn_div_scalar(d->test.x[l], rms > 0 ? rms : 1);
    for (int k = 0; k < 2 && tn_error() == TN_OK; k++) {
        tn_linear *far = train_probe(&d->train[k], &d->valid[k], x, s->rank, false);
        tn_linear *deep = k || tn_error() != TN_OK ? NULL : train_probe(&d->train[k], &d->valid[k], x, s->rank, true);
        if (tn_error() == TN_OK) score(&d->all[k], far, deep, test, &to[k]);
        tn_free(far), tn_free(deep);
    }
    tn_use_generator(before);
    tn_scope_end(scope);
    return tn_error() == TN_OK;
}

void probe_trees(const study *s)
{
    static tree_data d;
    static results   all;
    static scores    to[2];
    d = (tree_data){.text = {.layers = 0}}, all = (results){.layers = 0};
    if (data_open(s, &d) && score(&d.all[0], NULL, NULL, NULL, &to[0]) && score(&d.all[1], NULL, NULL, NULL, &to[1])) {
        const double chain = uuas(&to[0]);
        printf("layer\tUUAS\tDSpr\troot\tNSpr\tcontrol\tselectivity\n");
        print_line("chain", &to[0], &to[1]);
        for (int64_t l = 0; l < d.text.layers && probe_layer(s, &d, l, to); l++) {
            char name[24];
            snprintf(name, sizeof name, "%lld", (long long)l);
            print_line(name, &to[0], &to[1]);
            all.x[l] = (double)l, all.uuas[l] = uuas(&to[0]), all.control[l] = uuas(&to[1]), all.chain[l] = chain;
            if (!l || all.uuas[l] > all.uuas[all.best]) all.best = l, all.of_best = to[0];
            all.layers = l + 1;
        }
        if (tn_error() == TN_OK && s->html) write_page(s, &d.all[0], &all);
    }
    data_close(&d);
}
