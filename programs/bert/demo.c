/* demo.c — bert demo: trains a model on the small world's text, probes it, and writes a report. */
#include "bert.h"
#include "../common/messages.h"
#include "../common/numbers.h"
#include "../common/stop.h"
#include "../common/world.h"

#include <math.h>
#include <string.h>

static const char *out = "build/demo", *objective = "bert", *dtype;
static int64_t     embedding, seed = 1;
static double      minutes;
static int64_t     steps, documents = 12000, probes = 500;
static bool        again, json;

/* The goals: the accuracy on each kind of probe, and on the next-sentence task. */
enum { NEXT = WORLD_KINDS, MARKS, USUAL_STEPS = 4000, ALBERTS_STEPS = 8200 };
static const double goals[MARKS] = {
    [WORLD_AGREEMENT] = 0.98, [WORLD_PRONOUN] = 0.95, [WORLD_SENSE] = 0.95, [NEXT] = 0.90};

/* The most likely right word [1] and wrong word [0] of a test sentence. */
typedef struct {
    tn_report_word word[2];
} choice;
static bool is_right(const choice *c) { return c->word[1].probability > c->word[0].probability; }

static choice choose_word(const model *m, const world_probe *p)
{
    const tn_scope s = tn_no_grad_begin();
    const char    *text = p->text;
    choice         best = {{{"", 0, false}, {"", 0, true}}};
    tn_token_batch b;
    if (tn_tokenizer_batch(m->tokens, &b, 1, &text) == TN_OK) {
        const int64_t mask = tn_tokenizer_special(m->tokens).mask;
        int64_t       at = 0;
        while (at < tn_numel(b.ids) - 1 && tn_get_i64(b.ids, at) != mask) at++;
        tn_tensor *y = tn_bert_forward(m->bert, b.ids, .types = b.segments,
                                       .targets = tn_from_data(TN_I64, TN_SHAPE(1), &at), .for_words = true);
        tn_tensor *q = tn_softmax(tn_bert_mlm_logits(m->bert, y, NULL), -1);
        for (int i = 0; q && i < p->nright + p->nwrong; i++) {
            const bool    good = i < p->nright;
            const char   *word = good ? p->right[i] : p->wrong[i - p->nright];
            const int64_t id = tn_tokenizer_id(m->tokens, word);
            const double  v = id < 0 ? 0 : tn_get(q, id);
            if (v > best.word[good].probability) best.word[good] = (tn_report_word){word, v, good};
        }
    }
    tn_scope_end(s);
    return best;
}

/* Is a right word more likely than every wrong one? */
static bool passes(const model *m, const world_probe *p)
{
    const choice c = choose_word(m, p);
    return is_right(&c);
}

static void show(tn_report *r, const model *m)
{
    enum { SHOWN = 3 };
    tn_report_heading(r, "Masked words");
    tn_report_paragraph(r,
                        "Sentences of the test, each with the more likely of its right and its wrong word, green if it "
                        "is the right one, red if it is the wrong one. Below it is the other of the two.");
    for (int i = 0; i < SHOWN * WORLD_KINDS && tn_error() == TN_OK; i++) {
        world_probe p;
        world_probe_make(1, (world_kind)(i / SHOWN), (uint64_t)(i % SHOWN), &p);
        const choice c = choose_word(m, &p);
        report_fill(r, m, p.text, &c.word[is_right(&c)], &c.word[!is_right(&c)]);
    }
    tn_report_heading(r, "Attention weights");
    report_attention(r, m, "The keys to the cabinet are in the house.", m->bert->config.layers - 1, 0);
    report_attention(r, m, "The girl carried the basket because it was heavy.", m->bert->config.layers - 1, 0);
}

/* Computes the accuracy on probes first to first + n - 1 of each kind. */
static void ask(const model *m, int64_t first, int64_t n, double part[WORLD_KINDS])
{
    for (int k = 0; k < WORLD_KINDS; k++) {
        world_probe p;
        int64_t     right = 0;
        for (int64_t i = first; i < first + n && tn_error() == TN_OK && !stop_flag; i++) {
            world_probe_make(1, (world_kind)k, (uint64_t)i, &p);
            right += passes(m, &p);
        }
        part[k] = (double)right / (double)n;
    }
}

/* Evaluates on the validation text. */
static bool measure(const bert_training *t, model *m, evaluation *e)
{
    char               cache[1024];
    const texts_config c = {.files = t->valid,
                            .cache = in_folder(out, "held-out.tokens", cache),
                            .kind = m->bert->config.kind,
                            .pairs = m->bert->next != NULL,
                            .fixed = true,
                            .length = t->length,
                            .batch = t->batch,
                            .seed = 5};
    return evaluate(m, &c, e);
}

/* Only BERT has a goal for pairs of sentences. */
static bool pairs_count(void) { return !strcmp(objective, "bert"); }

/* The smallest ratio of an accuracy to its goal. */
static double reached(const double part[WORLD_KINDS], const evaluation *e)
{
    double least = pairs_count() ? e->next / goals[NEXT] : INFINITY;
    for (int k = 0; k < WORLD_KINDS; k++) least = fmin(least, part[k] / goals[k]);
    return least;
}

static const char goal_score_name[] = "% of the goals";

/* The score during training: on other and fewer probes than at the end. */
static double goal_score(void *net, void *user)
{
    const bert_training *t = user;
    model                m = {.bert = net, .tokens = t->base.tokens};
    evaluation           e = {.loss = 0};
    double               part[WORLD_KINDS];
    ask(&m, 1 << 20, probes < 400 ? probes : 400, part);
    measure(t, &m, &e);
    return 100 * reached(part, &e);
}

/* Opens the texts like `bert train`, and lets the training end when all goals are reached. */
static bool open_with_goals(training *t)
{
    if (!bert_kind.open(t)) return false;
    t->fit.score = goal_score, t->fit.user = t, t->fit.rising = true;
    t->fit.enough = 101; /* a margin, because the score uses fewer probes than the test at the end */
    return true;
}

static void page(const model *m, const double part[WORLD_KINDS], const evaluation *e, const char *folder)
{
    char        cells[WORLD_KINDS + 2][32], path[1024];
    const char *rows[2 * (WORLD_KINDS + 2)];
    tn_report  *r = tn_report_new("A small BERT trained on a small world");
    const int   count = m->bert->next ? WORLD_KINDS + 2 : WORLD_KINDS + 1;
    for (int k = 0; k < count; k++) {
        const bool   last = k + 1 == count;
        const double right = k < WORLD_KINDS ? part[k] : last ? e->right : e->next;
        snprintf(cells[k], sizeof cells[k], "%.1f %%", 100 * right);
        rows[2 * k] = k < WORLD_KINDS ? world_kind_name[k] : last ? "masked tokens" : "next sentence";
        rows[2 * k + 1] = cells[k];
    }
    const run_page about = {.folder = folder, .score = goal_score_name, .rising = true};
    char           share[32];
    snprintf(share, sizeof share, "%.1f %%", 100 * (part[0] + part[1] + part[2]) / WORLD_KINDS);
    run_summary(r, &about, share, "of the test sentences, mean of the kinds");
    tn_report_paragraph(r, "The text was generated by a grammar, so the model can be tested on combinations of words "
                           "that never occur in it: in each case, a right word must be more likely than every wrong "
                           "one.");
    tn_report_table(r, 2, (const char *[]){"case", "right"}, count, rows);
    show(r, m);
    tn_report_heading(r, "Training");
    run_curves(r, &about);
    if (record_report(r, in_folder(out, "report.html", path)) && !settings.quiet) tell("report   %s\n", path);
}

static void print_end(const double part[WORLD_KINDS], double next, double took)
{
    if (json) {
        numbers_json("{\"agreement\":", part[WORLD_AGREEMENT], 3),
            numbers_json(",\"pronoun\":", part[WORLD_PRONOUN], 3);
        numbers_json(",\"sense\":", part[WORLD_SENSE], 3), numbers_json(",\"next\":", next, 3);
        numbers_json(",\"minutes\":", took, 2), printf("}\n");
        return;
    }
    printf("After %.2f minutes the model chooses the right word in %.1f %% of the sentences on agreement, %.1f %% on "
           "pronouns and %.1f %% on senses",
           took, 100 * part[WORLD_AGREEMENT], 100 * part[WORLD_PRONOUN], 100 * part[WORLD_SENSE]);
    if (pairs_count()) printf(", and is right about the next sentence in %.1f %%", 100 * next);
    printf(".\n");
}

static void end(bert_training *t, const tn_fit_result *r, double began)
{
    model      m = {.bert = t->base.net, .tokens = t->base.tokens};
    evaluation e = {.loss = 0};
    double     part[WORLD_KINDS];
    char       folder[1024], more[40] = "";
    ask(&m, 0, probes, part);
    measure(t, &m, &e);
    page(&m, part, &e, in_folder(out, "model", folder));
    if (tn_error() != TN_OK) return;
    if (pairs_count()) snprintf(more, sizeof more, ", next sentence %.0f %%", 100 * goals[NEXT]);
    if (reached(part, &e) < 1 && !settings.quiet)
        tell("%s after %lld steps: agreement %.0f %%, pronoun %.0f %%, sense %.0f %%%s; more --steps may reach them\n",
             r->why == TN_FIT_ENOUGH ? "goals just missed" : "goals not reached", (long long)r->steps,
             100 * goals[WORLD_AGREEMENT], 100 * goals[WORLD_PRONOUN], 100 * goals[WORLD_SENSE], more);
    print_end(part, e.next, (seconds_now() - began) / 60);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    char          text[1024], held[1024], folder[1024];
    const char   *files[1] = {text}, *others[1] = {held};
    const double  began = seconds_now();
    train_kind    kind = bert_kind;
    bert_training t = BERT_TRAINING;
    int           code = program_either("steps", "minutes");
    if (!code && strcmp(objective, "albert") != 0) code = program_stray("embedding", "--objective albert");
    if (code) return code;
    if (!make_folder(out) || !world_save(in_folder(out, "world.txt", text), 0, documents) ||
        !world_save(in_folder(out, "held-out.txt", held), 1u << 30, 250))
        return program_end();
    kind.open = open_with_goals, t.base.kind = &kind, t.base.score = goal_score_name;
    t.text = (option_list){1, files}, t.valid = (option_list){1, others}, t.length = 48, t.batch = 48;
    t.objective = objective, t.embedding = embedding;
    const bool   albert = !strcmp(objective, "albert");
    train_asked *a = &t.base.asked;
    t.word_vectors = albert || !strcmp(objective, "xlnet") ? 0 : 2;
    a->out = in_folder(out, "model", folder), a->size = "tiny", a->vocab_size = 4000, a->layers = 3, a->heads = 4;
    a->dropout = 0, a->lr = 2e-3, a->minutes = minutes;
    a->steps = steps || minutes > 0 ? steps : albert ? ALBERTS_STEPS : USUAL_STEPS;
    a->resume = again, a->seed = seed;
    a->dtype = dtype ? dtype : tn_has_bf16() ? "bf16" : "f32";
    t.base.no_duration = !steps && !(minutes > 0);
    const tn_fit_result r = train_run(&t.base);
    if (r.why == TN_FIT_STOPPED) train_stopped(&r, "bert demo --resume");
    else if (r.why != TN_FIT_FAILED) end(&t, &r, began);
    train_free(&t.base);
    return t.base.usage ? t.base.usage : program_end();
}

static const option options[] = {
    OPTION_TEXT("out", 'o', "DIR", &out, "output folder"),
    OPTION_INT("steps", 'n', "N", &steps,
               "maximum number of training steps (default: 4000; with --objective albert 8200)", .least = 1,
               .most = 1e9),
    OPTION_REAL("minutes", 0, "N", &minutes, "train for about N minutes instead", .least = 0.01, .most = 1e4),
    OPTION_INT("documents", 0, "N", &documents, "number of documents to generate", .least = 10, .most = 1e9),
    OPTION_INT("probes", 0, "N", &probes, "number of test sentences of each kind", .least = 1, .most = 1e6),
    OPTION_TEXT("objective", 0, "NAME", &objective, "training objective, as in bert train",
                .choices = "bert|albert|deberta|xlnet"),
    OPTION_INT("embedding", 0, "N", &embedding, "width of ALBERT's embeddings (default: 128)", .least = 1,
               .most = 65536),
    OPTION_TEXT("dtype", 0, "TYPE", &dtype, "dtype of the computation (default: bf16 if the CPU supports it, else f32)",
                .choices = "f32|bf16"),
    OPTION_SEED(0, &seed, ""),
    OPTION_FLAG("resume", 'r', &again, "resume an interrupted run"),
    OPTION_FLAG("json", 0, &json, "print the last line as JSON"),
    {0},
};
const command demo_command = COMMAND(
    "demo", "train on generated English, and test the model", options,
    .text =
        "Generates text about a small world from a grammar, trains a small model on it until it answers well, tests it "
        "on sentences that it has never seen, and writes a report to DIR/report.html. The expected duration is printed "
        "at the start.");
