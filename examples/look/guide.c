/* guide.c — look guide: one head is taught syntax: by a loss, minus the logarithm of what it gives the word that a word
 * belongs to; or by a mask, through which a word sees that word, its own ones and itself.
 *
 * With a head for hidden words their loss is kept, too, so that the model stays a model of language. */
#include "trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *dir, *text, *test, *out;
static int64_t     most = 1000, steps = 200, layer = 1, head = 1, together = 8, seed = 1;
static double      lr = 5e-4, weight = 1;
static bool        masks;

typedef struct {
    const model         *m;
    tn_look             *look;
    char                 path[TN_PATH_BYTES], weights[TN_PATH_BYTES + 16], blocked[TN_PATH_BYTES + 16];
    const tn_mha        *of;
    const read_sentence *x; /* the sentence that is read now */
    const trees         *t;
    const sentence      *s;
} guided;

/* ---- a sentence -------------------------------------------------------------------------------------------------- */

static int64_t head_of(const guided *g, int64_t word) { return g->t->node[g->s->first + word].head; }

/* What the head may not see of the sentence, [1, heads, T, T], added to the scores: pieces see those of their word's
 * head and own ones, and what the template adds; the other heads see all. */
static tn_tensor *mask(const char *path, tn_tensor *t, void *user)
{
    const guided *g = user;
    const int64_t n = g->x->p.n;
    (void)path;
    tn_tensor *a = tn_zeros(TN_SHAPE(1, g->of->made_heads, n, n));
    float     *to = a ? tn_data_mut(a) : NULL;
    for (int64_t p = 0; to && p < n; p++)
        for (int64_t q = 0; q < n; q++) {
            const int64_t i = g->x->word_of[p], j = g->x->word_of[q];
            const bool    seen = i < 0 || j < 0 || i == j || head_of(g, i) == j || head_of(g, j) == i;
            to[((head - 1) * n + p) * n + q] = seen ? 0 : -INFINITY;
        }
    return t && a ? tn_add(a, t) : a;
}

/* Minus the mean logarithm of what each word gives to its head. */
static tn_tensor *syntax_loss(const guided *g)
{
    const int64_t n = g->s->n;
    tn_tensor    *mean = word_means(g->x, n), *w = tn_look_at(g->look, g->weights);
    tn_tensor    *sum = tn_to(tn_gt(mean, tn_zeros_like(mean)), TN_F32), *parent = tn_zeros(TN_SHAPE(n, n));
    int64_t       asked = 0, at = 0;
    for (int64_t i = 0; i < n; i++)
        if (head_of(g, i) >= 0) tn_set(parent, i * n + head_of(g, i), 1), asked++;
    while (w && at < g->of->heads && g->of->left[at] != head - 1) at++;
    if (w && at == g->of->heads) return tn_raise(TN_EINVAL, "head %lld was taken out", (long long)head), NULL;
    if (!w || !asked) return NULL;
    w = tn_select(tn_select(w, 0, 0), 0, at);
    w = tn_matmul(tn_matmul(mean, w), tn_transpose(sum, 0, 1)); /* [n, n] of words */
    tn_tensor *given = tn_sum(tn_mul(w, parent), .dims = TN_DIMS(1)), *is = tn_sum(parent, .dims = TN_DIMS(1));
    return tn_mul_scalar(tn_sum(tn_mul(tn_log(tn_add_scalar(given, 1e-6)), is)), -1 / (double)asked);
}

/* One piece in seven is hidden; NULL: the model has no head for that, or nothing was hidden. */
static tn_tensor *hidden_loss(const guided *g, tn_tensor **y_of)
{
    tn_bert      *bert = (tn_bert *)(void *)g->m->net;
    const int32_t hides = tn_tokenizer_special(g->m->tokens).mask;
    int64_t       n = 0, at[512], what[512];
    tn_tensor    *ids = tn_clone(g->x->p.ids);
    int64_t      *id = tn_data_mut(ids);
    for (int64_t p = 0; id && bert->head && hides >= 0 && p < g->x->p.n && n < 512; p++)
        if (g->x->word_of[p] >= 0 && tn_random_below(tn_current_generator(), 7) == 0)
            at[n] = p, what[n++] = id[p], id[p] = hides;
    *y_of = tn_bert_forward(bert, ids);
    if (!n) return NULL;
    tn_tensor *scores = tn_bert_word_scores(bert, *y_of, tn_from_data(TN_I64, TN_SHAPE(n), at));
    return tn_cross_entropy(scores, tn_from_data(TN_I64, TN_SHAPE(n), what));
}

/* Both, of sentence i; hidden: out, the part of hidden words, 0 if there is none. */
static tn_tensor *loss_of(guided *g, int64_t i, double *hidden, int64_t *counted)
{
    read_sentence x;
    tn_tensor    *y, *sum = NULL;
    if (!sentence_read(g->m, g->t, i, &x)) return NULL; /* longer than the model reads */
    g->x = &x, g->s = &g->t->sentence[i];
    const tn_scope s = tn_look_begin(g->look);
    tn_tensor     *words = hidden_loss(g, &y);
    tn_tensor     *syntax = tn_error() == TN_OK && !masks ? syntax_loss(g) : NULL;
    if (words && hidden) *hidden += tn_item(words), ++*counted;
    if (syntax) sum = tn_mul_scalar(syntax, weight);
    if (words) sum = sum ? tn_add(sum, words) : words;
    sum = tn_scope_return(s, sum);
    sentence_free(&x);
    return sum;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void learn(guided *g)
{
    tn_generator  draws = {(uint64_t)seed, 0};
    tn_optimizer *opt = tn_adamw_new(g->m->net, .lr = lr, .clip.norm = 1);
    tn_schedule  *rate = tn_warmup_lr_new(opt, .warmup = steps / 10 + 1, .steps = steps + 1);
    progress      bar = progress_begin("guide", steps, "step");
    for (int64_t i = 0; i < steps && tn_error() == TN_OK; i++) {
        char   note[64];
        double whole = 0;
        for (int64_t k = 0; k < together && tn_error() == TN_OK; k++) {
            const tn_scope s = tn_scope_begin();
            tn_tensor     *l = loss_of(g, tn_random_below(&draws, g->t->sentences), NULL, NULL);
            if (l) whole += tn_item(l) / (double)together, tn_backward(tn_mul_scalar(l, 1 / (double)together));
            tn_scope_end(s);
        }
        tn_step(opt);
        tn_schedule_step(rate);
        snprintf(note, sizeof note, "loss=%.3f", whole);
        progress_at(&bar, i + 1, note);
    }
    progress_end(&bar);
    tn_schedule_free(rate);
    tn_optimizer_free(opt);
}

/* A line of how it stands on the test's sentences. The head is judged without a mask. */
static bool stands(guided *g, const trees *t, const char *when)
{
    double         directed, undirected, hidden = 0;
    int64_t        n = 0;
    const trees   *before = g->t;
    tn_generator   draws = {1, 0}, *own = tn_use_generator(&draws); /* the same words are hidden each time */
    const tn_scope s = tn_no_grad_begin();
    g->t = t;
    for (int64_t i = 0; i < t->sentences && tn_error() == TN_OK; i++) {
        const tn_scope one = tn_scope_begin();
        loss_of(g, i, &hidden, &n);
        tn_scope_end(one);
    }
    g->t = before;
    tn_scope_end(s);
    tn_use_generator(own);
    if (tn_error() != TN_OK || !head_judged(g->m, t, g->path, head - 1, &directed, &undirected)) return false;
    printf("%s\t%.2f\t%.2f\t%.4f\n", when, 100 * directed, 100 * undirected, n ? hidden / (double)n : NAN);
    fflush(stdout);
    return true;
}

static bool found(guided *g, const model *m)
{
    int64_t at = 0;
    if (m->kind != READER) return tn_raise(TN_EUNSUPPORTED, "only a model that reads both ways is guided"), false;
    for (tn_each e = tn_modules(m->net); tn_next(&e);) {
        const tn_mha *a = tn_mha_of(e.module);
        if (!a || ++at != layer) continue;
        g->of = a;
        snprintf(g->path, sizeof g->path, "%s", e.name);
        snprintf(g->weights, sizeof g->weights, "%s.weights", g->path);
        snprintf(g->blocked, sizeof g->blocked, "%s.blocked", g->path);
    }
    if (!g->of || head > g->of->made_heads)
        return tn_raise(TN_EINVAL, "this model has %lld layers; there is no --layer %lld --head %lld", (long long)at,
                        (long long)layer, (long long)head),
               false;
    tn_look_want(g->look, g->weights);
    if (masks) tn_look_want(g->look, g->blocked, .change = mask, .user = g);
    return tn_error() == TN_OK;
}

static int run(int count, char **operands)
{
    model  m;
    trees  t = {.lines = NULL}, u = {.lines = NULL};
    guided g = {.look = tn_look_new()};
    (void)count, (void)operands;
    const tn_scope s = tn_scope_begin();
    tn_seed((uint64_t)seed);
    if (model_open(dir, &m)) {
        g.m = &m, g.t = &t;
        if (trees_open(text, most, 100, &t) && trees_open(test, most, 100, &u) && found(&g, &m)) {
            printf("when\tdirected\tundirected\thidden words\n");
            if (stands(&g, &u, "before")) {
                tn_train(m.net, true);
                learn(&g);
                tn_eval(m.net);
                if (tn_error() == TN_OK) stands(&g, &u, "after");
            }
            if (out && tn_error() == TN_OK && model_save(&m, out) != TN_OK) fprintf(stderr, "nothing was saved\n");
        }
        trees_close(&t), trees_close(&u);
        model_close(&m);
    }
    tn_look_free(g.look);
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model", .required = true),
    OPTION_TEXT("text", 't', "FILE", &text, "sentences in CoNLL-U, to learn from", .required = true),
    OPTION_TEXT("test", 0, "FILE", &test, "others, to test with", .required = true),
    OPTION_TEXT("out", 'o', "DIR", &out, "where the guided model goes"),
    OPTION_INT("layer", 'l', "N", &layer, "of the head", .least = 1, .most = 1024),
    OPTION_INT("head", 0, "N", &head, "which of its heads", .least = 1, .most = 64),
    OPTION_FLAG("mask", 0, &masks, "by a mask, not by a loss"),
    OPTION_REAL("weight", 0, "X", &weight, "of the loss beside that of hidden words", .least = 0, .most = 1000),
    OPTION_INT("steps", 0, "N", &steps, "training steps", .least = 1, .most = 1e8),
    OPTION_INT("batch", 'b', "N", &together, "sentences in a step", .least = 1, .most = 4096),
    OPTION_REAL("lr", 0, "RATE", &lr, "the highest learning rate", .least = 0, .most = 1),
    OPTION_INT("sentences", 'n', "N", &most, "so many at most, of each file", .least = 1, .most = 1e7),
    OPTION_INT("seed", 's', "N", &seed, "of what is drawn", .least = 0),
    {0}};
const command guide_command = COMMAND(
    "guide", "teach a head syntax", options,
    .text = "Trains the model so that one head looks from each word at the word that it belongs to, by a loss, or "
            "through a mask. Prints, before and after, how often the head does so on the test's sentences "
            "(directed; or at that word or one of its own), and the loss of hidden words, if the model says any.");
