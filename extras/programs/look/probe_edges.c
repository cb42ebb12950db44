/* probe_edges.c — look probe --edges: edge probing (Tenney et al. 2019) of dependency relations. A probe sees the
 * tokens of a word and of its syntactic head, and predicts the relation between them.
 *
 * The vectors of a token in the layers 0 … l are mixed with learned weights, projected to 256 values, and pooled over
 * the tokens of each of the two words by attention; a network with one hidden layer classifies both. Each relation has
 * its own logistic loss. The gain of layer l is the F1 with layers 0 … l minus the F1 with layers 0 … l - 1; the centre
 * of gravity is Σ l · weight of layer l in the probe of all layers, the expected layer is Σ l · gain / Σ gain.
 *
 * Control task (Hewitt, Liang 2019): the relation of a word is drawn once for its spelling, as frequently as in the
 * training sentences. */
#include "probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 256, SENTENCES = 16, RELATIONS = 128 };

/* ---- the probe --------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module      base;
    tn_scalar_mix *mix;
    tn_linear     *project[2], *attend[2], *hidden, *out; /* [0]: of the word, [1]: of its head */
    tn_layer_norm *norm;
    tn_dropout    *dropout;
} edge_probe;

/* Tokens of one side of E edges: indices [E, L] of rows, and 0 or, at padding, -inf, to add to the attention. */
typedef struct {
    tn_tensor *at, *mask;
} spans;

/* The spans of the tokens y [tokens, WIDTH], pooled by attention: [E, WIDTH]. */
static tn_tensor *pool(edge_probe *m, int side, tn_tensor *x, const spans *s)
{
    const int64_t e = tn_size(s->at, 0), n = tn_size(s->at, 1);
    tn_tensor    *y = tn_call(m->project[side], x), *flat = tn_reshape(s->at, TN_SHAPE(-1));
    tn_tensor    *score = tn_reshape(tn_index_select(tn_call(m->attend[side], y), 0, flat), TN_SHAPE(e, n));
    tn_tensor    *weight = tn_unsqueeze(tn_softmax(tn_add(score, s->mask), -1), 2); /* [E, L, 1] */
    y = tn_reshape(tn_index_select(y, 0, flat), TN_SHAPE(e, n, WIDTH));
    return tn_sum(tn_mul(y, weight), .dims = TN_DIMS(1));
}

/* Logits [E, relations] from the tokens of n layers, [tokens, D] each. */
static tn_tensor *edge_probe_forward(edge_probe *m, int64_t n, tn_tensor *const *x, const spans s[2])
{
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *y = tn_scalar_mix_forward(m->mix, (int)n, x);
    y = tn_cat(-1, pool(m, 0, y, &s[0]), pool(m, 1, y, &s[1]));
    y = tn_call(m->dropout, tn_call(m->norm, tn_tanh(tn_call(m->hidden, y))));
    return tn_leave(f, tn_call(m->out, y));
}

TN_MODULE(edge_probe);

static edge_probe *edge_probe_new(int64_t layers, int64_t d, int64_t relations)
{
    edge_probe *m = tn_module_new(edge_probe);
    if (!m) return NULL;
    m->mix = tn_child(m, "mix", tn_scalar_mix_new(.count = layers));
    for (int k = 0; k < 2; k++) {
        m->project[k] = tn_child(m, k ? "project_head" : "project_word", tn_linear_new(.in = d, .out = WIDTH));
        m->attend[k] = tn_child(m, k ? "attend_head" : "attend_word", tn_linear_new(.in = WIDTH, .out = 1));
    }
    m->hidden = tn_child(m, "hidden", tn_linear_new(.in = 2 * WIDTH, .out = WIDTH));
    m->norm = tn_child(m, "norm", tn_layer_norm_new(.dim = WIDTH));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = 0.3));
    m->out = tn_child(m, "out", tn_linear_new(.in = WIDTH, .out = relations));
    return tn_built(m);
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t     n;
    const char *name[RELATIONS];
    size_t      bytes[RELATIONS]; /* length of the name, without a subtype after a colon */
} relations;
typedef struct {
    const trees  *t;
    layer_vectors v;
    int64_t      *relation, *control; /* for each word; -1: the root, or a word without tokens */
} edge_set;

static int64_t relation_of(relations *r, tn_text name)
{
    const char  *colon = memchr(name.at, ':', name.bytes);
    const size_t bytes = colon ? (size_t)(colon - name.at) : name.bytes;
    for (int64_t i = 0; i < r->n; i++)
        if (r->bytes[i] == bytes && !memcmp(r->name[i], name.at, bytes)) return i;
    if (r->n == RELATIONS) return RELATIONS - 1;
    r->name[r->n] = name.at, r->bytes[r->n] = bytes;
    return r->n++;
}

static int64_t tokens_of(const layer_vectors *v, int64_t word) { return v->token[word + 1] - v->token[word]; }

static bool set_open(const study *s, const trees *t, relations *r, edge_set *e)
{
    *e = (edge_set){.t = t};
    if (!layer_vectors_open(s->m, t, true, &e->v)) return false;
    e->relation = calloc(2 * (size_t)e->v.words + 1, sizeof *e->relation);
    if (!e->relation)
        return tn_raise_false(TN_ENOMEM, "no memory for the relations of %lld words", (long long)e->v.words);
    e->control = e->relation + e->v.words;
    for (int64_t i = 0, w = 0; i < e->v.sentences; i++) {
        const sentence *x = &t->sentence[e->v.which[i]];
        for (int64_t k = 0; k < x->n; k++, w++) {
            const node *word = &t->node[x->first + k];
            e->relation[w] = word->head < 0 || !tokens_of(&e->v, w) || !tokens_of(&e->v, e->v.row[i] + word->head)
                                 ? -1
                                 : relation_of(r, word->relation);
        }
    }
    return true;
}

/* The relation that the control task gives to a word: that of an edge of the training sentences. */
static void draw_controls(const edge_set *train, edge_set *e, int64_t seed)
{
    for (int64_t i = 0, w = 0; i < e->v.sentences; i++)
        for (int64_t k = 0; k < e->t->sentence[e->v.which[i]].n; k++, w++) {
            const tn_text word = e->t->node[e->t->sentence[e->v.which[i]].first + k].word;
            int64_t       from = (int64_t)(spelling_hash(word, seed) % (uint64_t)train->v.words);
            while (train->relation[from] < 0) from = (from + 1) % train->v.words;
            e->control[w] = e->relation[w] < 0 ? -1 : train->relation[from];
        }
}

static void set_close(edge_set *e)
{
    free(e->relation);
    layer_vectors_close(&e->v);
}

/* The edges of some sentences. */
typedef struct {
    int64_t    edges;
    tn_tensor *rows; /* rows of the tokens of these sentences in the vectors, i64 [tokens] */
    spans      side[2];
    tn_tensor *target; /* relations, i64 [edges] */
} edge_batch;

static void fill_span(const edge_set *e, int64_t word, int64_t shift, int64_t width, int64_t *at, float *mask)
{
    const int64_t n = tokens_of(&e->v, word);
    for (int64_t k = 0; k < width; k++)
        at[k] = e->v.token[word] - shift + (k < n ? k : 0), mask[k] = k < n ? 0 : -INFINITY;
}

/* The edges of n sentences; false: there are none, or raised. */
static bool batch_of(const edge_set *e, int64_t n, const int64_t *which, bool control, edge_batch *b)
{
    const layer_vectors *v = &e->v;
    int64_t              width = 1, tokens = 0;
    *b = (edge_batch){.edges = 0};
    for (int64_t s = 0; s < n; s++) {
        tokens += v->token[v->row[which[s] + 1]] - v->token[v->row[which[s]]];
        for (int64_t w = v->row[which[s]]; w < v->row[which[s] + 1]; w++)
            b->edges += e->relation[w] >= 0, width = tokens_of(v, w) > width ? tokens_of(v, w) : width;
    }
    b->rows = tn_empty_of(TN_I64, TN_SHAPE(tokens)), b->target = tn_empty_of(TN_I64, TN_SHAPE(b->edges));
    for (int k = 0; k < 2; k++)
        b->side[k] = (spans){tn_empty_of(TN_I64, TN_SHAPE(b->edges, width)), tn_empty(TN_SHAPE(b->edges, width))};
    if (tn_error() != TN_OK || !b->edges) return false;
    int64_t *rows = tn_data_mut(b->rows), *target = tn_data_mut(b->target), *at[2], row = 0, edge = 0;
    float   *mask[2];
    for (int k = 0; k < 2; k++) at[k] = tn_data_mut(b->side[k].at), mask[k] = tn_data_mut(b->side[k].mask);
    for (int64_t s = 0; s < n; s++) {
        const int64_t first = v->row[which[s]], shift = v->token[first] - row;
        for (int64_t w = first; w < v->row[which[s] + 1]; w++) {
            if (e->relation[w] < 0) continue;
            const int64_t head = first + e->t->node[e->t->sentence[v->which[which[s]]].first + w - first].head;
            fill_span(e, w, shift, width, at[0] + edge * width, mask[0] + edge * width);
            fill_span(e, head, shift, width, at[1] + edge * width, mask[1] + edge * width);
            target[edge++] = control ? e->control[w] : e->relation[w];
        }
        for (int64_t p = v->token[first]; p < v->token[v->row[which[s] + 1]]; p++) rows[row++] = p;
    }
    return true;
}

static tn_tensor *logits_of(edge_probe *m, const edge_set *e, int64_t layers, const edge_batch *b)
{
    tn_tensor *x[MAX_LAYERS];
    for (int64_t l = 0; l < layers; l++) x[l] = tn_index_select(e->v.x[l], 0, b->rows);
    return edge_probe_forward(m, layers, x, b->side);
}

/* ---- training and scores ----------------------------------------------------------------------------------------- */

static void train_probe(edge_probe *m, const edge_set *e, const study *s, int64_t layers, int64_t classes, bool control)
{
    tn_optimizer *opt = tn_adam_new(m, .lr = 2e-3, .clip.norm = 5);
    tn_group_new(opt, .module = m->mix, .lr = 2e-2); /* few steps must move the weights of the layers */
    tn_schedule *rate = tn_warmup_lr_new(opt, .warmup = s->steps / 10 + 1, .steps = s->steps + 1);
    for (int64_t step = 0; step < s->steps && tn_error() == TN_OK; step++) {
        const tn_scope scope = tn_scope_begin();
        int64_t        which[SENTENCES];
        edge_batch     b;
        for (int64_t i = 0; i < SENTENCES; i++) which[i] = tn_random_below(tn_current_generator(), e->v.sentences);
        const bool any = batch_of(e, SENTENCES, which, control, &b);
        if (any)
            tn_backward(tn_bce_with_logits(logits_of(m, e, layers, &b), tn_to(tn_one_hot(b.target, classes), TN_F32)));
        tn_scope_end(scope);
        if (any) tn_step(opt);
        tn_schedule_step(rate);
    }
    tn_schedule_free(rate);
    tn_optimizer_free(opt);
}

/* F1 over all decisions, in percent: a relation is predicted if its probability is above one half. */
static double f1_of(edge_probe *m, const edge_set *e, int64_t layers, int64_t classes, bool control)
{
    double right = 0, found = 0, gold = 0;
    for (int64_t from = 0; from < e->v.sentences && tn_error() == TN_OK; from += SENTENCES) {
        const tn_scope scope = tn_no_grad_begin();
        int64_t        which[SENTENCES], n = 0;
        edge_batch     b;
        while (n < SENTENCES && from + n < e->v.sentences) which[n] = from + n, n++;
        if (batch_of(e, n, which, control, &b)) {
            tn_tensor *y = logits_of(m, e, layers, &b), *yes = tn_to(tn_gt(y, tn_zeros_like(y)), TN_F32);
            right += tn_item(tn_sum(tn_mul(yes, tn_to(tn_one_hot(b.target, classes), TN_F32))));
            found += tn_item(tn_sum(yes)), gold += (double)b.edges;
        }
        tn_scope_end(scope);
    }
    return found + gold > 0 ? 200 * right / (found + gold) : NAN;
}

/* Trains and tests a probe of the layers 0 … layers - 1; writes the weights of the layers to `weight`. */
static double probe_to(const study *s, const edge_set *train, const edge_set *test, int64_t layers, int64_t classes,
                       bool control, double *weight)
{
    const tn_scope scope = tn_scope_begin();
    tn_generator   g = {(uint64_t)s->seed, 0}, *before = tn_use_generator(&g);
    edge_probe    *m = edge_probe_new(layers, tn_size(train->v.x[0], 1), classes);
    double         f1 = NAN;
    if (m) train_probe(m, train, s, layers, classes, control);
    if (m && tn_error() == TN_OK) {
        tn_eval(m);
        f1 = f1_of(m, test, layers, classes, control);
        tn_tensor *w = tn_softmax(tn_detach(m->mix->weight), -1);
        for (int64_t l = 0; weight && l < layers; l++) weight[l] = tn_get(w, l);
    }
    tn_free(m);
    tn_use_generator(before);
    tn_scope_end(scope);
    return f1;
}

typedef struct {
    double x[MAX_LAYERS], f1[MAX_LAYERS], control[MAX_LAYERS], weight[MAX_LAYERS];
} results;

static void print_layers(const study *s, const edge_set *train, const edge_set *test, int64_t classes, results *to)
{
    double        gravity = 0, moment = 0, gain = 0;
    const int64_t n = train->v.layers;
    printf("layers\tF1\tgain\tcontrol\tselectivity\n");
    for (int64_t l = 0; l < n && tn_error() == TN_OK; l++) {
        to->x[l] = (double)l;
        to->f1[l] = probe_to(s, train, test, l + 1, classes, false, l + 1 == n ? to->weight : NULL);
        to->control[l] = probe_to(s, train, test, l + 1, classes, true, NULL);
        const double more = l ? to->f1[l] - to->f1[l - 1] : 0;
        if (tn_error() == TN_OK)
            printf("0-%lld\t%.2f\t%.2f\t%.2f\t%.2f\n", (long long)l, to->f1[l], more, to->control[l],
                   to->f1[l] - to->control[l]);
        gain += more, moment += (double)l * more;
        fflush(stdout);
    }
    if (tn_error() != TN_OK) return;
    printf("layer\tweight\n");
    for (int64_t l = 0; l < n; l++)
        printf("%lld\t%.3f\n", (long long)l, to->weight[l]), gravity += (double)l * to->weight[l];
    printf("centre of gravity\t%.2f\nexpected layer\t", gravity);
    if (fabs(gain) > 0) printf("%.2f\n", moment / gain);
    else printf("-\n"); /* the embeddings are as good as all layers */
}

void probe_edges(const study *s)
{
    static edge_set  train, test;
    static results   to;
    static relations r;
    r = (relations){.n = 0}, train = test = (edge_set){.t = NULL};
    if (set_open(s, s->text, &r, &train) && set_open(s, s->test, &r, &test)) {
        int64_t edges = 0;
        for (int64_t w = 0; w < train.v.words; w++) edges += train.relation[w] >= 0;
        if (!edges)
            tn_raise(TN_EFORMAT, "no word of --text has a syntactic head; give sentences with dependency trees");
        if (edges) {
            draw_controls(&train, &train, s->seed), draw_controls(&train, &test, s->seed);
            print_layers(s, &train, &test, r.n, &to);
        }
    }
    if (tn_error() == TN_OK && s->html) {
        tn_report      *page = report_new("relations in the layers", s->dir);
        const int       n = (int)train.v.layers;
        const tn_series f1[] = {{.name = "relations", .n = n, .x = to.x, .y = to.f1},
                                {.name = "control task", .n = n, .x = to.x, .y = to.control}};
        const tn_series weight = {.name = "weight", .n = n, .x = to.x, .y = to.weight};
        tn_report_curves(page, "F1 of a probe of the layers up to this one", "layer", "percent", 2, f1);
        tn_report_curves(page, "Weights of the layers in the probe of all layers", "layer", "weight", 1, &weight);
        write_report(page, s->html);
    }
    set_close(&train), set_close(&test);
}
