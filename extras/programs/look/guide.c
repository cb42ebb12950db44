/* guide.c — look guide: trains one head to attend to syntactic heads: by a loss, minus the logarithm of the attention
 * weight from each word to its syntactic head; or by a mask that lets a word see only its head, its dependents and
 * itself.
 *
 * If the model has a masked-LM head, the masked-LM loss is added, so that the model stays a language model. */
#include "programs/common/messages.h"
#include "trees.h"

#include <math.h>
#include <stdlib.h>

static const char *dir, *text, *test, *out;
static int64_t     max_sentences = 1000, steps = 200, layer = 1, head = 1, batch_size = 8, seed = 1;
static double      lr = 5e-4, weight = 1;
static bool        use_mask;

/* A batch of sentences, padded to the longest. */
typedef struct {
    int64_t           n, tokens, words; /* sentences; maximum tokens and words of one of them */
    encoded_sentence *x;
    const sentence  **s;
    tn_tensor        *ids, *padding;
} group;

typedef struct {
    const model  *m;
    tn_look      *look;
    char          path[TN_PATH_BYTES], weights[TN_PATH_BYTES + 16], mask[TN_PATH_BYTES + 16];
    const tn_mha *mha;
    const trees  *t;
    const group  *batch; /* the batch in the model; NULL: none */
} guided;

/* ---- sentences --------------------------------------------------------------------------------------------------- */

static void group_close(group *g)
{
    for (int64_t i = 0; g->x && i < g->n; i++) sentence_free(&g->x[i]);
    free(g->x), free(g->s);
    *g = (group){.n = 0};
}

/* Opens those of n sentences that fit into the model. Returns false if none does or an error is set. */
static bool group_open(const model *m, const trees *t, int64_t n, const int64_t *which, group *g)
{
    *g = (group){.x = calloc((size_t)n + 1, sizeof *g->x), .s = calloc((size_t)n + 1, sizeof *g->s)};
    if (!g->x || !g->s) {
        group_close(g);
        return tn_raise_false(TN_ENOMEM, "no memory for %lld sentences", (long long)n);
    }
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        if (!sentence_encode(m, t, which[i], &g->x[g->n])) {
            sentence_free(&g->x[g->n]);
            continue;
        }
        const sentence *s = g->s[g->n] = &t->sentence[which[i]];
        g->tokens = g->x[g->n].p.n > g->tokens ? g->x[g->n].p.n : g->tokens;
        g->words = s->n > g->words ? s->n : g->words;
        g->n++;
    }
    if (tn_error() == TN_OK && g->n) {
        const int32_t pad = tn_tokenizer_special(m->tokens).pad;
        g->ids = tn_full_of(TN_I64, TN_SHAPE(g->n, g->tokens), pad < 0 ? 0 : (double)pad);
        g->padding = tn_full_of(TN_BOOL, TN_SHAPE(g->n, g->tokens), 1);
        for (int64_t i = 0; i < g->n && tn_error() == TN_OK; i++) {
            const int64_t length = g->x[i].p.n;
            tn_copy_from(tn_narrow(tn_narrow(g->ids, 0, i, 1), 1, 0, length), g->x[i].p.ids);
            tn_fill(tn_narrow(tn_narrow(g->padding, 0, i, 1), 1, 0, length), 0);
        }
    }
    if (tn_error() == TN_OK && g->n) return true;
    group_close(g);
    return false;
}

static int64_t head_of(const guided *g, int64_t i, int64_t word)
{
    return g->t->node[g->batch->s[i]->first + word].head;
}

/* The mask of the head, [B, heads, T, T], which is added to the attention scores: a token sees the tokens of its word,
 * of the word's head and of its dependents, and special tokens. The mask of all other heads is 0. */
static tn_tensor *mask(const char *path, tn_tensor *attn_mask, void *user)
{
    const guided *g = user;
    const group  *batch = g->batch;
    const int64_t n = batch->tokens;
    (void)path;
    tn_tensor *a = tn_zeros(TN_SHAPE(batch->n, g->mha->made_heads, n, n));
    float     *to = a ? tn_data_mut(a) : NULL;
    for (int64_t b = 0; to && b < batch->n; b++)
        for (int64_t p = 0; p < batch->x[b].p.n; p++)
            for (int64_t q = 0; q < batch->x[b].p.n; q++) {
                const int64_t i = batch->x[b].word_of[p], j = batch->x[b].word_of[q];
                const bool    seen = i < 0 || j < 0 || i == j || head_of(g, b, i) == j || head_of(g, b, j) == i;
                to[((b * g->mha->made_heads + head - 1) * n + p) * n + q] = seen ? 0 : -INFINITY;
            }
    return attn_mask && a ? tn_add(a, attn_mask) : a;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Two tensors [B, words, T]: is: 1 where the token belongs to the word, else 0; mean: the same, each row divided by the
 * number of the word's tokens. */
static bool word_matrices(const group *g, tn_tensor **is, tn_tensor **mean)
{
    *is = tn_zeros(TN_SHAPE(g->n, g->words, g->tokens)), *mean = tn_zeros_like(*is);
    float *one = *is ? tn_data_mut(*is) : NULL, *part = *mean ? tn_data_mut(*mean) : NULL;
    for (int64_t b = 0; one && part && b < g->n; b++)
        for (int64_t p = 0, run; p < g->x[b].p.n; p += run) {
            const int64_t *w = g->x[b].word_of;
            for (run = 1; p + run < g->x[b].p.n && w[p + run] == w[p];) run++;
            for (int64_t q = p; w[p] >= 0 && q < p + run; q++) {
                const int64_t at = (b * g->words + w[p]) * g->tokens + q;
                one[at] = 1, part[at] = 1 / (float)run;
            }
        }
    return one && part;
}

/* Minus the mean logarithm of the attention from each word to its syntactic head. */
static tn_tensor *syntax_loss(const guided *g)
{
    const group *batch = g->batch;
    tn_tensor   *is, *mean, *w = tn_look_at(g->look, g->weights);
    int64_t      counted = 0;
    if (!w || !word_matrices(batch, &is, &mean)) return NULL;
    tn_tensor *parent = tn_zeros(TN_SHAPE(batch->n, batch->words, batch->words));
    for (int64_t b = 0; b < batch->n; b++)
        for (int64_t i = 0; i < batch->s[b]->n; i++)
            if (head_of(g, b, i) >= 0)
                tn_set(parent, (b * batch->words + i) * batch->words + head_of(g, b, i), 1), counted++;
    if (!counted) return NULL;
    w = tn_matmul(tn_matmul(mean, tn_select(w, 1, head_index(g->mha, head - 1))),
                  tn_transpose(is, 1, 2)); /* [B, words, words] */
    tn_tensor *received = tn_sum(tn_mul(w, parent), .dims = TN_DIMS(2)), *has = tn_sum(parent, .dims = TN_DIMS(2));
    return tn_mul_scalar(tn_sum(tn_mul(tn_log(tn_add_scalar(received, 1e-6)), has)), -1 / (double)counted);
}

/* The masked-LM loss with one token in seven masked, *counted in all. NULL: no masked-LM head, or no token masked. */
static tn_tensor *mlm_loss(const guided *g, int64_t *counted)
{
    tn_bert      *bert = g->m->encoder;
    const group  *batch = g->batch;
    const int32_t mask_id = tn_tokenizer_special(g->m->tokens).mask;
    const int64_t all = batch->n * batch->tokens;
    int64_t       n = 0, *at = calloc((size_t)(2 * all) + 1, sizeof *at), *targets = at ? at + all : NULL;
    tn_tensor    *ids = tn_clone(batch->ids), *loss = NULL;
    int64_t      *id = ids ? tn_data_mut(ids) : NULL;
    if (!at) return tn_raise_null(TN_ENOMEM, "no memory for the masked tokens");
    for (int64_t p = 0; id && bert->head && mask_id >= 0 && p < all; p++) {
        const encoded_sentence *x = &batch->x[p / batch->tokens];
        const int64_t           q = p % batch->tokens;
        if (q < x->p.n && x->word_of[q] >= 0 && tn_random_below(tn_current_generator(), 7) == 0)
            at[n] = p, targets[n++] = id[p], id[p] = mask_id;
    }
    tn_tensor *y = tn_bert_forward(bert, ids, .key_padding_mask = batch->padding, .for_words = true);
    if (n) {
        tn_tensor *scores = tn_bert_mlm_logits(bert, y, tn_from_data(TN_I64, TN_SHAPE(n), at));
        loss = tn_cross_entropy(scores, tn_from_data(TN_I64, TN_SHAPE(n), targets));
    }
    free(at);
    *counted = n;
    return loss;
}

/* The sum of both losses over n sentences; NULL: no loss. If mlm_sum is not NULL, adds the sum of the masked-LM loss to
 * *mlm_sum and the number of masked tokens to *counted. */
static tn_tensor *loss_of(guided *g, int64_t n, const int64_t *which, double *mlm_sum, int64_t *counted)
{
    group x;
    if (!group_open(g->m, g->t, n, which, &x)) return NULL;
    g->batch = &x;
    const tn_scope s = tn_look_begin(g->look);
    int64_t        n_masked = 0;
    tn_tensor     *mlm = mlm_loss(g, &n_masked), *sum = NULL;
    tn_tensor     *syntax = tn_error() == TN_OK && !use_mask ? syntax_loss(g) : NULL;
    if (mlm && mlm_sum) *mlm_sum += tn_item(mlm) * (double)n_masked, *counted += n_masked;
    if (syntax) sum = tn_mul_scalar(syntax, weight);
    if (mlm) sum = sum ? tn_add(sum, mlm) : mlm;
    sum = tn_scope_return(s, sum);
    g->batch = NULL;
    group_close(&x);
    return sum;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The sentences of STEPS steps are drawn at once, sorted by length and cut into batches, which reduces padding; the
 * order of the batches is random. */
enum { STEPS = 16 };
typedef struct {
    int64_t *which, *order;
} plan;

static const trees *sorted; /* for by_length: qsort passes no argument */
static int          by_length(const void *a, const void *b)
{
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const int64_t x = sorted->sentence[i].n, y = sorted->sentence[j].n;
    return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

static void draw_batches(const trees *t, tn_generator *g, plan *p)
{
    for (int64_t i = 0; i < STEPS * batch_size; i++) p->which[i] = tn_random_below(g, t->sentences);
    sorted = t;
    qsort(p->which, (size_t)(STEPS * batch_size), sizeof *p->which, by_length);
    for (int64_t i = 0; i < STEPS; i++) p->order[i] = i;
    for (int64_t i = STEPS - 1; i > 0; i--) {
        const int64_t k = tn_random_below(g, i + 1), was = p->order[i];
        p->order[i] = p->order[k], p->order[k] = was;
    }
}

static void train(guided *g)
{
    tn_generator  draws = {(uint64_t)seed, 0};
    tn_optimizer *opt = tn_adamw_new(g->m->net, .lr = lr, .clip.norm = 1);
    tn_schedule  *rate = tn_warmup_lr_new(opt, .warmup = steps / 10 + 1, .steps = steps + 1);
    int64_t      *buffer = calloc((size_t)(STEPS * (batch_size + 1)), sizeof *buffer);
    plan          p = {buffer, buffer ? buffer + STEPS * batch_size : NULL};
    progress      bar = progress_begin("guide", steps, "step");
    if (!buffer) tn_raise(TN_ENOMEM, "no memory for the order of the batches");
    int64_t trained = 0;
    for (int64_t i = 0; buffer && i < steps && tn_error() == TN_OK; i++) {
        char   note[64];
        double loss = NAN;
        if (i % STEPS == 0) draw_batches(g->t, &draws, &p);
        const tn_scope s = tn_scope_begin();
        tn_tensor     *l = loss_of(g, batch_size, p.which + p.order[i % STEPS] * batch_size, NULL, NULL);
        if (l) loss = tn_item(l), tn_backward(l);
        if (l && tn_error() == TN_OK && !isfinite(loss))
            tn_raise(TN_ENUMERIC, "the loss is %g at step %lld; try a smaller --lr", loss, (long long)i + 1);
        tn_scope_end(s);
        if (l) tn_step(opt), trained++; /* without a loss, the step is skipped */
        tn_schedule_step(rate);
        snprintf(note, sizeof note, "loss=%.3f", loss);
        progress_at(&bar, i + 1, note);
    }
    progress_end(&bar);
    if (!trained && tn_error() == TN_OK)
        tn_raise(TN_EFORMAT,
                 "no step had a loss: no sentence of a batch has a word with a syntactic head; raise --batch");
    free(buffer);
    tn_schedule_free(rate);
    tn_optimizer_free(opt);
}

/* The mean masked-LM loss, with the same masked tokens each time; NaN: no token was masked. */
static double mean_mlm_loss(guided *g, const trees *t)
{
    double         sum = 0;
    int64_t        n = 0, batched = 0, which[8];
    const trees   *before = g->t;
    tn_generator   draws = {1, 0}, *saved = tn_use_generator(&draws);
    const tn_scope s = tn_no_grad_begin();
    g->t = t;
    for (int64_t i = 0; i < t->sentences && tn_error() == TN_OK; i++) {
        which[batched++] = i;
        if (batched < 8 && i + 1 < t->sentences) continue;
        const tn_scope one = tn_scope_begin();
        loss_of(g, batched, which, &sum, &n);
        tn_scope_end(one);
        batched = 0;
    }
    g->t = before;
    tn_scope_end(s);
    tn_use_generator(saved);
    if (n && tn_error() == TN_OK) numbers_finite(sum, "the loss of masked tokens");
    return n ? sum / (double)n : NAN;
}

/* Prints one line of results on the test sentences; the head is evaluated without the mask. */
static bool print_results(guided *g, const trees *t, const char *when)
{
    double       directed, undirected;
    const double mlm = g->m->encoder->head ? mean_mlm_loss(g, t) : NAN;
    if (tn_error() != TN_OK || !head_evaluate(g->m, t, g->path, head - 1, &directed, &undirected)) return false;
    printf("%s\t%.2f\t%.2f\t%.4f\n", when, 100 * directed, 100 * undirected, mlm);
    fflush(stdout);
    return true;
}

static bool check_model(guided *g, const model *m)
{
    int64_t at = 0;
    if (m->kind == TUNED)
        return tn_raise_false(TN_EUNSUPPORTED, "this model is already tuned for a task; guide the model before tuning");
    if (m->kind != READER) return tn_raise_false(TN_EUNSUPPORTED, "guide needs a bidirectional encoder such as BERT");
    for (tn_each e = tn_modules(m->net); tn_next(&e);) {
        const tn_mha *a = tn_mha_of(e.module);
        if (!a || ++at != layer) continue;
        g->mha = a;
        snprintf(g->path, sizeof g->path, "%s", e.name);
        snprintf(g->weights, sizeof g->weights, "%s.weights", g->path);
        snprintf(g->mask, sizeof g->mask, "%s.attn_mask", g->path);
    }
    const bool has_mlm = g->m->encoder->head && tn_tokenizer_special(m->tokens).mask >= 0;
    if (!has_mlm && (use_mask || program_given("weight")))
        return tn_raise_false(TN_EINVAL, "this model has no masked-LM head, so that %s; omit --%s",
                              use_mask ? "there is no loss to train through the mask"
                                       : "there is no loss to weigh against",
                              use_mask ? "mask" : "weight");
    if (!g->mha || head > g->mha->made_heads)
        return tn_raise_false(TN_EINVAL, "--layer %lld --head %lld does not exist: this model has %lld layers",
                              (long long)layer, (long long)head, (long long)at);
    if (head_index(g->mha, head - 1) < 0)
        return tn_raise_false(TN_EINVAL, "head %lld of layer %lld was pruned from this model; choose another --head",
                              (long long)head, (long long)layer);
    tn_look_request(g->look, g->weights);
    if (use_mask) tn_look_request(g->look, g->mask, .change = mask, .user = g);
    return tn_error() == TN_OK;
}

static int run(int count, char **operands)
{
    model  m;
    trees  t = {.nodes = 0}, u = {.nodes = 0};
    guided g = {.m = &m, .t = &t};
    (void)count, (void)operands;
    if (use_mask && program_given("weight")) return program_stray("weight", "the loss, which --mask does not use");
    g.look = tn_look_new();
    const tn_scope s = tn_scope_begin();
    tn_seed((uint64_t)seed);
    if (model_open(dir, &m)) {
        if (model_may_save(out) && trees_open(text, max_sentences, &t) && trees_open(test, max_sentences, &u) &&
            check_model(&g, &m)) {
            printf("when\tdirected\tundirected\tmasked-LM loss\n");
            if (print_results(&g, &u, "before")) {
                tn_train(m.net, true);
                train(&g);
                tn_eval(m.net);
                if (tn_error() == TN_OK) print_results(&g, &u, "after");
            }
            if (out && tn_error() == TN_OK && model_save(&m, out) != TN_OK) tell("the model was not saved\n");
        }
        trees_close(&t), trees_close(&u);
        model_close(&m);
    }
    tn_look_free(g.look);
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model", .required = true),
    OPTION_TEXT("text", 't', "FILE", &text, "training sentences in CoNLL-U", .required = true),
    OPTION_TEXT("test", 0, "FILE", &test, "test sentences in CoNLL-U", .required = true),
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for the trained model (default: not saved)"),
    OPTION_INT("layer", 0, "N", &layer, "layer of the head", .least = 1, .most = 1024),
    OPTION_INT("head", 0, "N", &head, "head of this layer", .least = 1, .most = 64),
    OPTION_FLAG("mask", 0, &use_mask, "train through an attention mask instead of an attention loss"),
    OPTION_REAL("weight", 0, "X", &weight, "weight of the attention loss relative to the masked-LM loss", .least = 0,
                .most = 1000),
    OPTION_INT("steps", 0, "N", &steps, "training steps", .least = 1, .most = 1e8),
    OPTION_INT("batch", 'b', "N", &batch_size, "sentences per step", .least = 1, .most = 4096),
    OPTION_REAL("lr", 0, "RATE", &lr, "maximum learning rate", .least = 0, .most = 1),
    OPTION_INT("sentences", 'n', "N", &max_sentences, "read at most N sentences of each file", .least = 1, .most = 1e7),
    OPTION_SEED(0, &seed, "", .least = 0),
    {0}};
const command guide_command = COMMAND(
    "guide", "train an attention head to follow syntax", options,
    .text = "Trains the model so that one head attends from each word to its syntactic head, by a loss on its "
            "attention or through a mask. Prints three results on the test sentences, before and after training: the "
            "percentage of words whose largest weight goes to their syntactic head (directed), to the head or a "
            "dependent (undirected), and the masked-LM loss, if the model has such a head.");
