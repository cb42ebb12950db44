/* heads.c — look heads and look prune: the importance of attention heads, and pruning of heads. */
#include "programs/common/translator.h"
#include "programs/common/messages.h"
#include "look.h"

#include <stdlib.h>
#include <string.h>

static const char  *dir, *html, *out, *order = "importance", *valid, *valid_target;
static texts_config config = TEXTS_CONFIG;
static double       share = 0.5, lr = 1e-4;
static int64_t      times = 1, tune, measure;

/* Measures importance on the first batches, enough for n lines; 0: on all batches. */
static bool measure_heads(tn_heads *h, const texts *t, int64_t n)
{
    for (int64_t i = 0; i < t->n && (!n || i * config.batch_size < n) && tn_error() == TN_OK; i++)
        tn_heads_add(h, texts_loss, &t->batch[i]);
    for (int64_t i = 0; i < tn_heads_count(h) && tn_error() == TN_OK; i++)
        numbers_finite(tn_heads_at(h, i).importance, "the importance of a head");
    return tn_error() == TN_OK;
}

/* Checks that --seed has an effect: it selects the masked tokens of a READER. Returns false if an error is set. */
static bool check_seed(const model *m)
{
    if (m->kind != READER && program_given("seed"))
        tn_raise(TN_EINVAL, "--seed is for masked language models; omit it for this model");
    return tn_error() == TN_OK;
}

/* ---- look heads -------------------------------------------------------------------------------------------------- */

/* The kind of an attention module, derived from its path. */
static const char *kind_name(const model *m, const char *path)
{
    if (strstr(path, "multihead_attn")) return "decoder to encoder";
    if (m->kind == TRANSLATOR) return strstr(path, "decoder") ? "decoder" : "encoder";
    return "heads";
}

/* The index of an attention module among those of its kind, from 0; modules without heads count, too. */
static int64_t layer_of(const model *m, const char *path, const char *kind)
{
    int64_t n = 0;
    for (tn_each e = tn_modules(m->net); tn_next(&e);) {
        if (!tn_mha_of(e.module) || strcmp(kind_name(m, e.name), kind) != 0) continue;
        if (!strcmp(e.name, path)) return n;
        n++;
    }
    return n;
}

/* A heatmap of the heads of one kind: one row per layer, one column per head, values relative to the maximum of all
 * kinds. */
static void add_heatmap(tn_report *r, const model *m, const tn_heads *h, const char *kind)
{
    enum { MAX_SIDE = 256 };
    static char names[2][MAX_SIDE][16];
    const char *name[2][MAX_SIDE];
    char        title[120];
    int64_t     rows = 0, columns = 0;
    double      largest = 0;
    for (int64_t i = 0; i < tn_heads_count(h); i++) {
        const tn_head x = tn_heads_at(h, i);
        largest = x.importance > largest ? x.importance : largest;
        if (strcmp(kind_name(m, x.path), kind) != 0) continue;
        const int64_t row = layer_of(m, x.path, kind);
        rows = row + 1 > rows ? row + 1 : rows;
        columns = x.head + 1 > columns ? x.head + 1 : columns;
    }
    if (!rows || rows > MAX_SIDE || columns > MAX_SIDE || !(largest > 0)) return;
    tn_tensor *w = tn_zeros(TN_SHAPE(rows, columns));
    for (int64_t i = 0; i < tn_heads_count(h); i++) {
        const tn_head x = tn_heads_at(h, i);
        if (strcmp(kind_name(m, x.path), kind) != 0) continue;
        tn_set(w, layer_of(m, x.path, kind) * columns + x.head, x.importance / largest);
    }
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < (k ? columns : rows); i++) {
            snprintf(names[k][i], sizeof names[k][i], "%s%lld", k ? "" : "layer ", (long long)i + 1);
            name[k][i] = names[k][i];
        }
    snprintf(title, sizeof title, "%s: rows are layers, columns are heads; 100 is %.4g", kind, largest);
    tn_report_heatmap(r, title, rows, name[0], columns, name[1], w);
}

static int run_heads(int count, char **operands)
{
    model     m;
    texts     t = {.n = 0};
    tn_heads *h = NULL;
    (void)count, (void)operands;
    if (reject_png(html)) return EXIT_USAGE;
    if (model_open(dir, &m)) {
        if (check_seed(&m) && texts_open(&config, &m, &t)) h = tn_heads_new(m.net);
        if (h && measure_heads(h, &t, 0)) {
            printf("attention\thead\timportance\n");
            for (int64_t i = 0; i < tn_heads_count(h); i++) {
                const tn_head x = tn_heads_at(h, i);
                printf("%s\t%lld\t%.6g\n", x.path, (long long)x.head + 1, x.importance);
            }
        }
        if (h && html && tn_error() == TN_OK) {
            tn_report *r = report_new("importance of attention heads", dir);
            tn_report_paragraph(r,
                                "The importance of each head for the loss, E |Att(x)ᵀ ∂L/∂Att(x)|, in percent of the "
                                "maximum.");
            add_heatmap(r, &m, h, "heads"), add_heatmap(r, &m, h, "encoder"), add_heatmap(r, &m, h, "decoder");
            add_heatmap(r, &m, h, "decoder to encoder");
            write_report(r, html);
        }
        tn_heads_free(h);
        texts_close(&t);
        model_close(&m);
    }
    return program_end();
}

#define TEXT_OPTIONS                                                                                              \
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model", .required = true),                              \
        OPTION_TEXT("text", 't', "FILE", &config.file,                                                            \
                    "texts, one per line; for a tuned model, labelled texts as for bert tune", .required = true), \
        OPTION_FLAG("pairs", 0, &config.pairs, "each line has two texts and a label (tuned models only)"),        \
        OPTION_TEXT("target", 0, "FILE", &config.target,                                                          \
                    "translations of --text, line by line (translation models only)"),                            \
        OPTION_INT("lines", 'n', "N", &config.max_lines, "read at most N lines", .least = 1, .most = 1e7),        \
        OPTION_INT("batch", 'b', "N", &config.batch_size, "lines per batch", .least = 1, .most = 4096),           \
        OPTION_SEED(0, &config.seed, "", .least = 0)
static const option heads_options[] = {
    TEXT_OPTIONS, OPTION_TEXT("html", 'o', "FILE", &html, "HTML page to write, or .svg file for its last figure"), {0}};
const command heads_command = {
    .name = "heads",
    .summary = "measure the importance of each attention head",
    .options = heads_options,
    .run = run_heads,
    .text = "Prints the importance of each head for the loss: of masked tokens, next tokens, translations, or labels, "
            "depending on the model. The first column is the name of the attention module, the second the head, from "
            "1. Heads that share keys (grouped-query attention) count as one."};

/* ---- look prune -------------------------------------------------------------------------------------------------- */

/* Prunes n of the remaining heads. */
static bool prune(const model *m, const texts *t, int64_t n, tn_prune_order way)
{
    tn_heads *h = tn_heads_new(m->net);
    int64_t  *list = h ? malloc((size_t)(tn_heads_count(h) + 1) * sizeof *list) : NULL;
    if (list && (way == TN_RANDOM_ORDER || measure_heads(h, t, measure))) {
        tn_heads_order(h, way, (uint64_t)config.seed, list);
        tn_heads_prune(h, n < tn_heads_count(h) ? n : tn_heads_count(h), list);
    }
    free(list);
    tn_heads_free(h);
    return tn_error() == TN_OK;
}

/* Trains for `tune` steps; before: number of earlier steps, so that each call continues with the next batches. */
static bool tune_model(const model *m, const texts *t, int64_t before)
{
    if (!tune) return true;
    tn_optimizer *opt = tn_adamw_new(m->net, .lr = lr);
    tn_schedule  *rate = tn_warmup_lr_new(opt, .warmup = tune / 10 + 1, .steps = tune + 1);
    tn_train(m->net, true);
    for (int64_t i = 0; i < tune && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_scope_begin();
        tn_backward(texts_loss(m->net, &t->batch[(before + i) % t->n]));
        tn_step(opt);
        tn_schedule_step(rate);
        tn_scope_end(s);
    }
    tn_eval(m->net);
    tn_schedule_free(rate);
    tn_optimizer_free(opt);
    return tn_error() == TN_OK;
}

static int64_t heads_of(const model *m)
{
    tn_heads     *h = tn_heads_new(m->net);
    const int64_t n = tn_heads_count(h);
    tn_heads_free(h);
    return n;
}

/* The validation set: texts and, for a translator, their lines for BLEU. */
typedef struct {
    texts    texts;
    bleu_set bleu;
    bool     translates;
} held_out;

static bool held_open(const model *m, held_out *h)
{
    texts_config c = config;
    if (valid) c.file = valid, c.target = valid_target, c.target_option = "--valid-target";
    *h = (held_out){.translates = m->kind == TRANSLATOR};
    return texts_open(&c, m, &h->texts) &&
           (!h->translates || bleu_set_open(&h->bleu, m->tokens, c.file, c.target, c.max_lines));
}

static void held_close(held_out *h)
{
    texts_close(&h->texts);
    if (h->translates) bleu_set_close(&h->bleu);
}

static bool print_line(const model *m, held_out *held, int64_t all)
{
    quality      q, repeated;
    const texts *t = &held->texts;
    if (!texts_quality(t, m, &q) || !texts_quality(t, m, &repeated)) return false;
    const double ms = 1000 * (repeated.seconds < q.seconds ? repeated.seconds : q.seconds) / (double)t->n;
    printf("%lld\t%.3f\t%.4f\t%.2f\t%lld\t%.2f", (long long)heads_of(m), (double)heads_of(m) / (double)all, q.loss,
           100 * q.accuracy, (long long)tn_count(m->net), ms);
    if (held->translates) printf("\t%.2f", bleu_set_score(m->net, &held->bleu));
    printf("\n");
    fflush(stdout);
    return tn_error() == TN_OK;
}

static void prune_all(const model *m, const texts *t, held_out *held)
{
    const tn_prune_order way = !strcmp(order, "random")  ? TN_RANDOM_ORDER
                               : !strcmp(order, "worst") ? TN_MOST_FIRST
                                                         : TN_LEAST_FIRST;
    const int64_t        all = heads_of(m), goal = (int64_t)(share * (double)all + 0.5);
    int64_t              pruned = 0;
    if (!all) {
        tn_raise(TN_EINVAL, "this model has no heads to prune");
        return;
    }
    printf("heads\tfraction\tloss\taccuracy\tparameters\tms%s\n", held->translates ? "\tBLEU" : "");
    if (!print_line(m, held, all)) return;
    for (int64_t i = 1; i <= times; i++) {
        const int64_t now = goal * i / times - pruned;
        if (!prune(m, t, now, way) || !tune_model(m, t, (i - 1) * tune) || !print_line(m, held, all)) return;
        pruned += now;
    }
}

static int run_prune(int count, char **operands)
{
    model    m;
    texts    t = {.n = 0};
    held_out held = {.translates = false};
    (void)count, (void)operands;
    const bool by_chance = !strcmp(order, "random");
    int        code = valid ? 0 : program_stray("valid-target", "the translations of --valid");
    if (!code && by_chance) code = program_stray("measure", "importance, which --order random does not use");
    if (!code && !tune) code = program_stray("lr", "the training steps of --tune");
    if (code) return code;
    if (model_open(dir, &m)) {
        const bool may = (by_chance || check_seed(&m)) && model_may_save(out);
        if (may && texts_open(&config, &m, &t) && held_open(&m, &held)) prune_all(&m, &t, &held);
        if (out && tn_error() == TN_OK && model_save(&m, out) != TN_OK) tell("the model was not saved\n");
        texts_close(&t), held_close(&held);
        model_close(&m);
    }
    return program_end();
}

static const option prune_options[] = {
    TEXT_OPTIONS,
    OPTION_TEXT("valid", 0, "FILE", &valid, "texts of the validation set (default: those of --text)"),
    OPTION_TEXT("valid-target", 0, "FILE", &valid_target, "translations of --valid, line by line"),
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for the pruned model (default: not saved)"),
    OPTION_REAL("share", 0, "P", &share, "fraction of the heads to prune", .least = 0, .most = 1),
    OPTION_TEXT("order", 0, "ORDER", &order,
                "heads to prune first: the least important, random heads, or the most important",
                .choices = "importance|random|worst"),
    OPTION_INT("times", 0, "N", &times, "prune in N steps and measure importance again before each", .least = 1,
               .most = 1000),
    OPTION_INT("measure", 0, "N", &measure, "lines to measure importance on; 0: all of --text", .least = 0,
               .most = 1e7),
    OPTION_INT("tune", 0, "N", &tune, "training steps on --text after each pruning step; 0: none", .least = 0,
               .most = 1e8),
    OPTION_REAL("lr", 0, "RATE", &lr, "learning rate of --tune", .least = 0, .most = 1),
    {0}};
const command prune_command = {
    .name = "prune",
    .summary = "remove attention heads from a model",
    .options = prune_options,
    .run = run_prune,
    .text = "Prints a line for the unpruned model and one after each step: remaining heads and their fraction, loss, "
            "accuracy in percent, parameters, milliseconds per batch, and for a translation model the BLEU of greedy "
            "translations. The config.json of the saved model lists the removed heads (pruned_heads); the model opens "
            "like the original."};
