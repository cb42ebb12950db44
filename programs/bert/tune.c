/* tune.c — bert tune: fine-tunes a model on labelled texts, and tests it. The training itself is in common/train.c. */
#include "../common/messages.h"
#include "tune.h"

#include "../common/checksum.h"
#include "../common/files.h"
#include "../common/resume.h"
#include "../common/texts.h"
#include "bert.h"

#include <stdlib.h>
#include <string.h>

/* ---- one tuning -------------------------------------------------------------------------------------------------- */

typedef struct {
    training         base;
    const tune_task *task;
    const char      *all; /* the folder of all runs with --seeds */
    const char      *model, *train, *valid, *test, *predictions, *form, *text, *pair, *label, *problem, *lora_layers;
    int64_t          lora, freeze, seeds, batch, parts, length, stride, longest, skip, patience;
    double           decay, layer_rate;
    bool             json, bio, weights, crf, thaw;
    tn_optimizer    *own; /* with --layer-rate; else NULL */
    tn_labels       *labels;
    text_set         train_set, valid_set, test_set;
    tn_tensor       *weight; /* weight of each label in the loss; NULL: 1 */
    tn_bert_config   shape;
    test_settings    how;
} tuning;

static tuning *of(training *t) { return (tuning *)t; }

static tn_problem_type problem_of(const tuning *t)
{
    return !strcmp(t->problem, "several")  ? TN_MULTI_LABEL
           : !strcmp(t->problem, "number") ? TN_REGRESSION
                                           : TN_SINGLE_LABEL;
}

/* True if texts that are too long are read in parts, rather than cut. */
static bool windows(const tuning *t)
{
    return t->task->task == TN_TASK_TOKEN_CLASSIFICATION || t->task->task == TN_TASK_QUESTION_ANSWERING;
}

static const double usual_rate = 5e-5;
enum { USUAL_EPOCHS = 3, USUAL_STRIDE = 128, USUAL_LONGEST = 30 };

/* Checks for options that the task does not have. Returns 0 or program_usage. */
static int check_task_options(const tuning *t)
{
    const tn_task task = t->task->task;
    if (task != TN_TASK_CLASSIFICATION && problem_of(t) != TN_SINGLE_LABEL)
        return program_usage("--labels %s is for classify and pairs", t->problem);
    if (t->weights && (task >= TN_TASK_QUESTION_ANSWERING || problem_of(t) != TN_SINGLE_LABEL))
        return program_usage("--balance is for tasks where each text or word has one of several labels");
    if (task != TN_TASK_TOKEN_CLASSIFICATION && (t->crf || t->bio))
        return program_usage("--%s is for tag", t->crf ? "crf" : "bio");
    static const char *const columns[] = {"text", "pair", NULL};
    int                      code = task == TN_TASK_CLASSIFICATION ? 0 : program_strays(columns, "classify and pairs");
    if (!code && task >= TN_TASK_QUESTION_ANSWERING) code = program_stray("label", "classify, pairs and tag");
    if (code) return code;
    if (!windows(t) && t->stride != USUAL_STRIDE)
        return program_usage("--stride is for tag and answer; %s cuts texts that are too long", t->task->name);
    if (task != TN_TASK_QUESTION_ANSWERING && t->longest != USUAL_LONGEST)
        return program_usage("--longest is for answer");
    return 0;
}

static int check(training *b)
{
    tuning *t = of(b);
    if (!b->asked.epochs) b->asked.epochs = USUAL_EPOCHS;
    if (!t->length) t->length = t->task->length;
    if (!t->batch) t->batch = t->task->batch;
    if (!t->parts) t->parts = t->batch % 4 == 0 ? 4 : t->batch % 2 == 0 ? 2 : 1;
    if (t->batch % t->parts)
        return program_usage("--batch %lld is not divisible by --parts %lld", (long long)t->batch, (long long)t->parts);
    if (t->patience && !t->valid) return program_usage("--patience needs --valid");
    if (t->crf && t->weights) return program_usage("--crf and --balance cannot be combined");
    if (t->lora && (t->freeze || t->thaw || t->layer_rate < 1))
        return program_usage("--lora freezes the whole encoder and cannot be combined with --%s", t->freeze ? "freeze"
                                                                                                  : t->thaw
                                                                                                      ? "thaw"
                                                                                                      : "layer-rate");
    const int code = check_task_options(t);
    if (code) return code;
    t->shape = tn_bert_config_load(t->model);
    if (tn_error() == TN_OK && t->freeze > t->shape.layers)
        return program_usage("the model has %lld layers, fewer than --freeze %lld", (long long)t->shape.layers,
                             (long long)t->freeze);
    if (!t->lora && t->lora_layers) return program_stray("lora-layers", "--lora");
    if (t->lora && !program_given("lr")) b->asked.lr = 10 * usual_rate;
    b->asked.size = t->task->name, b->asked.vocab = t->model;
    b->next = t->task->next, b->tag = t->task->tag;
    return 0;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static bool load(const tuning *t, const char *path, text_set *h)
{
    const char *first;
    h->texts = tn_labelled_load(path, .kind = t->task->kind, .problem = problem_of(t), .form = t->form, .text = t->text,
                                .pair = t->pair, .label = t->label, .pairs = !strcmp(t->task->name, "pairs"),
                                .bio = t->bio, .skip = t->skip);
    if (!h->texts) return false;
    if (h != &t->train_set && t->labels && tn_labels_count(t->labels)) tn_labelled_only(h->texts, t->labels);
    const int64_t n = tn_labelled_skipped(h->texts, &first);
    if (n && tn_error() == TN_OK) tell("%s: %lld lines skipped, the first: %s\n", path, (long long)n, first);
    texts_note_labelled(h->texts, path);
    return tn_error() == TN_OK;
}

static bool features(tuning *t, text_set *h)
{
    return text_set_open(h, t->labels, t->base.tokens,
                         TN_WITH(tn_features_config, TN_FEATURES_DEFAULTS, .problem = problem_of(t),
                                 .batch = t->batch / t->parts, .length = t->length, .stride = t->stride));
}

/* Sets each label's weight to n / (labels · count), so that all labels have the same total weight. */
static bool balance(tuning *t)
{
    const int64_t n = tn_labels_count(t->labels);
    double        all = 0;
    if (!t->weights) return true;
    t->weight = tn_take(tn_zeros(TN_SHAPE(n)));
    for (int64_t i = 0; i < tn_labelled_count(t->train_set.texts); i++) {
        const tn_example x = tn_labelled_at(t->train_set.texts, i);
        for (int64_t k = 0; k < x.labels && t->weight; k++, all++) {
            const int64_t l = tn_labels_find(t->labels, x.label[k]);
            tn_set(t->weight, l, tn_get(t->weight, l) + 1);
        }
    }
    for (int64_t i = 0; t->weight && i < n; i++) tn_set(t->weight, i, all / ((double)n * tn_get(t->weight, i)));
    return tn_error() == TN_OK;
}

/* The metric that selects the best model: Pearson's correlation for regression, else the task's. */
static const char *metric_of(const tuning *t) { return problem_of(t) == TN_REGRESSION ? "pearson" : t->task->metric; }

static double score(void *module, void *user)
{
    tuning *t = user;
    metrics v;
    return test_model(&t->how, &t->valid_set, module, &v) ? metrics_get(&v, metric_of(t)) : 0;
}

static tn_tensor *loss(void *module, const tn_batch *b, void *user)
{
    return tn_tuned_fit_loss(module, b, user ? ((tuning *)user)->weight : NULL);
}

static int64_t shorter(int64_t a, int64_t b) { return a < b ? a : b; }

static bool open_all(training *b)
{
    tuning *t = of(b);
    t->length = shorter(t->length, t->shape.positions);
    if (!load(t, t->train, &t->train_set)) return false;
    t->labels = tn_labels_of(t->train_set.texts);
    if (t->labels && t->task->kind <= TN_LABELLED_WORDS && problem_of(t) == TN_SINGLE_LABEL &&
        tn_labels_count(t->labels) < 2)
        tn_raise(TN_EFORMAT, "'%s' has only one label, expected at least two", t->train);
    const int64_t labels = tn_labels_count(t->labels), n = tn_labelled_count(t->train_set.texts);
    if (tn_error() == TN_OK && t->task->kind == TN_LABELLED_TEXTS && problem_of(t) == TN_SINGLE_LABEL && n > 2 &&
        labels == n)
        tn_raise(
            TN_EFORMAT,
            "'%s': each of the %lld texts has a label of its own, such as '%.40s'; are the columns swapped? --text "
            "and --label name them",
            t->train, (long long)n, tn_labels_names(t->labels)[0]);
    if ((t->valid && !load(t, t->valid, &t->valid_set)) || (t->test && !load(t, t->test, &t->test_set))) return false;
    tn_features_config c = {TN_FEATURES_DEFAULTS};
    c.problem = problem_of(t), c.batch = t->batch, c.parts = t->parts, c.length = t->length, c.stride = t->stride;
    c.seed = (uint64_t)b->asked.seed;
    t->train_set.features =
        tn_error() == TN_OK ? tn_features_create(t->train_set.texts, b->tokens, t->labels, c) : NULL;
    if (!t->train_set.features || !balance(t) || (t->valid && !features(t, &t->valid_set)) ||
        (t->test && !features(t, &t->test_set)))
        return false;
    t->how = (test_settings){t->task, problem_of(t), t->labels, t->longest, b->tokens};
    b->fit.train = tn_features_source(t->train_set.features), b->fit.loss = loss, b->fit.user = t;
    b->fit.weight_decay = t->decay;
    if (t->valid) {
        b->fit.score = score, b->fit.rising = b->fit.restore_best = true, b->fit.patience = t->patience;
        b->score = metric_of(t);
    }
    b->fit.accumulate = shorter(t->parts, b->fit.train.batches);
    b->batches = b->fit.train.batches / b->fit.accumulate;
    b->width = t->batch / t->parts * t->length;
    b->every = t->valid || b->batches > 500 ? b->batches
                                            : 500; /* not often: a checkpoint is three times as large as the model */
    snprintf(b->each, sizeof b->each, "%lld texts (up to %lld tokens)", (long long)t->batch, (long long)t->length);
    return true;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static void *make(training *b)
{
    tuning      *t = of(b);
    train_asked *a = &b->asked;
    tn_bert     *encoder = tn_bert_load(t->model);
    if (encoder) a->layers = encoder->config.layers, a->heads = encoder->config.heads, a->dim = encoder->config.dim;
    const int64_t n = tn_labels_count(t->labels);
    if (!encoder) return NULL;
    tn_tuned *m = tn_tuned_new(encoder, .task = t->task->task, .problem = problem_of(t), .n = n, .crf = t->crf,
                               .labels = n ? tn_labels_names(t->labels) : NULL);
    if (m && m->crf) tune_start_crf(m->crf, t->train_set.texts, t->labels);
    const char *layers = t->lora_layers                          ? t->lora_layers
                         : encoder->config.kind == TN_DISTILBERT ? "q_lin v_lin"
                         : encoder->config.kind == TN_MODERNBERT ? "Wqkv"
                         : encoder->config.kind == TN_XLNET      ? "layer_1 layer_2"
                                                                 : "query value";
    if (m && t->lora)
        tn_lora(m, .rank = t->lora, .names = !strcmp(layers, "all") ? NULL : layers, .trained = tn_tuned_head(m));
    else if (m && t->freeze) tune_freeze(m, t->freeze);
    if (m && t->layer_rate < 1) {
        const int64_t steps = a->resume ? train_resumed_steps(b) : a->steps ? a->steps : a->epochs * b->batches;
        tn_optimizer_free(t->own);
        t->own = tune_optimizer(m, a->lr, t->layer_rate, t->decay);
        b->fit.optimizer = t->own;
        b->fit.schedule = tn_warmup_lr_new(t->own, .warmup = (int64_t)(a->warmup * (double)steps) + 1, .steps = steps);
    }
    return m;
}

/* With --thaw: unfreezes one more layer after each epoch. */
static void on_event(void *user, const tn_fit_event *e)
{
    const tuning *t = user;
    const bool    begins = e->what == TN_FIT_START, over = e->what == TN_FIT_STEP && e->step % t->base.batches == 0;
    if (t->thaw && (begins || over)) tune_thaw(e->module, e->step / t->base.batches, t->freeze);
}

static void say(training *b)
{
    const tuning *t = of(b);
    tell("texts    %lld for training", (long long)tn_labelled_count(t->train_set.texts));
    if (t->test) tell(", %lld for the test", (long long)tn_labelled_count(t->test_set.texts));
    if (tn_labels_count(t->labels)) tell(", %lld labels", (long long)tn_labels_count(t->labels));
    tell("\n");
    const int64_t cut = tn_features_cut(t->train_set.features);
    if (cut)
        tell("length   %lld texts have more than %lld tokens and %s\n", (long long)cut, (long long)t->length,
             windows(t) ? "are read in parts" : "are cut");
}

/* The hash of all strings of the texts, which must be the same to resume. */
static uint64_t sum_of(const tn_labelled *l)
{
    uint64_t h = CHECKSUM;
    for (int64_t i = 0; i < tn_labelled_count(l); i++) {
        const tn_example x = tn_labelled_at(l, i);
        for (int64_t k = 0; k < x.texts + x.labels; k++)
            h = checksum_string(h, k < x.texts ? x.text[k] : x.label[k - x.texts]);
    }
    return h;
}

static void describe(const training *b, tn_json_writer *w)
{
    const tuning *t = (const tuning *)b;
    checksum_put(w, "text", sum_of(t->train_set.texts));
    if (t->valid) checksum_put(w, "valid", sum_of(t->valid_set.texts));
    texts_put(w, "labels", t->problem);
    train_put_path(b, w, "model", t->model);
    tn_json_put_i64(w, "batch", t->batch);
    tn_json_put_i64(w, "parts", t->parts);
    tn_json_put_i64(w, "length", t->length);
    tn_json_put_i64(w, "stride", t->stride);
    tn_json_put_i64(w, "longest", t->longest);
    tn_json_put_i64(w, "patience", t->patience);
    tn_json_put_double(w, "weight_decay", t->decay);
    tn_json_put_bool(w, "balance", t->weights);
    tn_json_put_bool(w, "crf", t->crf);
    tn_json_put_i64(w, "lora", t->lora);
    if (t->lora_layers) tn_json_put_string(w, "lora_layers", t->lora_layers);
    tn_json_put_i64(w, "freeze", t->freeze);
    tn_json_put_bool(w, "thaw", t->thaw);
    tn_json_put_double(w, "layer_rate", t->layer_rate);
}

static bool save(training *b, tn_fit_why why)
{
    (void)why;
    static const char *const peft[] = {"SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS",
                                       "SEQ_CLS"}; /* name of each tn_task in PEFT's files */
    tn_tuned                *m = b->net;
    char                     path[1024];
    if (tn_has_lora(m)) { /* saved separately, then merged into the model */
        in_folder(b->asked.out, "adapter", path);
        if (tn_error() != TN_OK || !make_folder(path) ||
            tn_peft_save(m, path, .task = peft[m->config.task], .base = of(b)->model) != TN_OK ||
            tn_lora_merge(m) != TN_OK)
            return false;
    }
    return tn_tuned_save(m, b->asked.out) == TN_OK;
}

static void close_all(training *b) { (void)b; } /* `tuned` frees everything after the test */

static tn_tokenizer *tokenizer(training *b, progress *bar)
{
    (void)bar;
    return tn_tokenizer_load(of(b)->model);
}

static const train_kind kind = {
    .title = "Fine-tuning",
    .max_interval = 500,
    .check = check,
    .tokenizer = tokenizer,
    .open = open_all,
    .make = make,
    .print_info = say,
    .describe = describe,
    .save = save,
    .close = close_all,
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static tuning asked = {.base = {.kind = &kind,
                                .untimed = true,
                                .on = on_event,
                                .asked = {.dtype = "f32", .lr = 5e-5, .warmup = 0.1, .seed = 1}},
                       .problem = "one",
                       .stride = USUAL_STRIDE,
                       .longest = USUAL_LONGEST,
                       .decay = 0.01,
                       .layer_rate = 1};

/* Runs one tuning. True if it was tested; then *v has the metrics. */
static bool tuned(tuning *t, metrics *v)
{
    const tn_fit_result r = train_run(&t->base);
    bool                judged = false;
    char                again[1200];
    if (r.why == TN_FIT_STOPPED) train_stopped(&r, resume_command(t->seeds > 1 ? t->all : t->base.asked.out, again));
    if (r.why == TN_FIT_DONE || r.why == TN_FIT_PATIENCE) {
        if (!t->json) printf("%s: step %lld, loss %.4f\n", t->base.asked.out, (long long)r.steps, r.loss);
        if (t->test && test_model(&t->how, &t->test_set, t->base.net, v)) {
            v->seconds = r.seconds;
            v->skipped = tn_labelled_skipped(t->train_set.texts, NULL) + tn_labelled_skipped(t->test_set.texts, NULL);
            const tn_task task = t->task->task;
            const bool    listed =
                task == TN_TASK_CLASSIFICATION ? problem_of(t) == TN_SINGLE_LABEL : task != TN_TASK_MULTIPLE_CHOICE;
            if (t->predictions)
                (void)!predictions_save(&t->how, &t->test_set, t->predictions); /* the error stays set */
            if (listed) test_page(&t->how, &t->test_set, v, t->base.asked.out);
            judged = tn_error() == TN_OK;
        }
    }
    text_set_close(&t->train_set), text_set_close(&t->valid_set), text_set_close(&t->test_set);
    tn_labels_free(t->labels), tn_drop(t->weight);
    tn_optimizer_free(t->own);
    train_free(&t->base);
    t->labels = NULL, t->weight = NULL, t->own = NULL;
    return judged;
}

/* --seeds: several tunings in sequence, each in its own folder. */
static void several(tuning *t)
{
    enum { MOST = 100 };
    const train_asked first = t->base.asked;
    metrics           v[MOST];
    char              folder[1024], name[32];
    int64_t           n = 0;
    t->all = first.out;
    if (!make_folder(first.out) || (!first.resume && !record_options(first.out))) return;
    while (n < t->seeds && tn_error() == TN_OK && !t->base.usage && !stop_flag) {
        snprintf(name, sizeof name, "seed-%lld", (long long)(first.seed + n));
        t->base.asked = first;
        t->base.asked.seed = first.seed + n, t->base.asked.out = in_folder(first.out, name, folder);
        t->base.asked.resume = first.resume && file_exists(folder);
        if (!tuned(t, &v[n])) break;
        n++;
        if (n < t->seeds) metrics_print(&v[n - 1], t->json);
    }
    t->base.asked = first;
    if (n == t->seeds && tn_error() == TN_OK) metrics_print(&v[n - 1], t->json), metrics_print_mean(v, n, t->json);
}

static int run(int count, char **operands)
{
    tuning *t = &asked;
    metrics v;
    (void)count;
    if (!(t->task = tune_task_of(operands[0]))) return EXIT_USAGE;
    if (t->json && !t->test) return program_usage("--json prints the results of the test and needs --test");
    if (t->predictions && !t->test) return program_usage("--predictions are those for --test; set --test, too");
    if (t->predictions && t->seeds > 1) return program_usage("--predictions is for one tuning, not for --seeds");
    if (t->predictions && !may_write(t->predictions)) return program_end();
    if (t->seeds > 1 && !t->test) return program_usage("--seeds prints the mean of test results and needs --test");
    if (t->seeds > 1) several(t);
    else if (tuned(t, &v)) metrics_print(&v, t->json);
    return t->base.usage ? t->base.usage : program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &asked.model, "folder of the model to tune", .required = true),
    OPTION_TEXT("train", 0, "FILE", &asked.train, "labelled training texts", .required = true),
    OPTION_TEXT("test", 0, "FILE", &asked.test, "labelled texts for a test at the end", .resume = RESUME_FREE),
    OPTION_TEXT("predictions", 0, "FILE", &asked.predictions,
                "file for the predictions of --test: lines of JSON with text, label, predicted and probability",
                .resume = RESUME_FREE),
    OPTION_TEXT("valid", 0, "FILE", &asked.valid,
                "labelled texts for validation after each epoch; the model of the best epoch is kept"),
    OPTION_TEXT("out", 'o', "DIR", &asked.base.asked.out, "folder of the tuned model", .required = true,
                .resume = RESUME_FOLDER),
    OPTION_INT("epochs", 0, "N", &asked.base.asked.epochs, "train for N epochs (default: 3)", .least = 1, .most = 1e6,
               .resume = RESUME_FREE),
    OPTION_INT("batch", 'b', "N", &asked.batch, "texts per step (default: 32; answer and choose: 16)", .least = 1,
               .most = 65536),
    OPTION_INT("parts", 0, "N", &asked.parts,
               "split the texts of a step into N parts of similar length; more parts need less memory (default: 4)",
               .least = 1, .most = 65536),
    OPTION_INT("length", 'l', "N", &asked.length, "maximum number of tokens of a text (default: 128; answer: 384)",
               .least = 8, .most = 16384),
    OPTION_INT("stride", 0, "N", &asked.stride, "overlap of two windows of a long text, in tokens", .least = 0,
               .most = 16384),
    OPTION_INT("longest", 0, "N", &asked.longest, "maximum number of tokens of an answer", .least = 1, .most = 16384),
    OPTION_TEXT("format", 0, "NAME", &asked.form,
                "format of the files (default: by their names): tsv, csv, jsonl, conll, conllu, squad, or a task of "
                "GLUE, such as sst-2"),
    OPTION_TEXT("text", 0, "COLUMN", &asked.text, "column of the text, by name or number"),
    OPTION_TEXT("pair", 0, "COLUMN", &asked.pair, "column of the second text, by name or number"),
    OPTION_TEXT("label", 0, "COLUMN", &asked.label, "column of the label, by name or number"),
    OPTION_TEXT("labels", 0, "HOW", &asked.problem,
                "a text has one label, several labels (separated by commas), or a number",
                .choices = "one|several|number"),
    OPTION_FLAG("bio", 0, &asked.bio, "convert tags from IOB1 or BIOES to BIO"),
    OPTION_INT("lora", 0, "RANK", &asked.lora,
               "freeze the encoder and train adapters of this rank, saved in DIR/adapter; the default --lr is 10 times "
               "as high",
               .least = 0, .most = 4096),
    OPTION_TEXT("lora-layers", 0, "NAMES", &asked.lora_layers,
                "layers with adapters: parts of their names, separated by commas, or all (default: query,value)"),
    OPTION_INT("freeze", 0, "N", &asked.freeze, "freeze the embeddings and the first N layers", .least = 0,
               .most = 1024),
    OPTION_FLAG("thaw", 0, &asked.thaw,
                "train only the head at first, then one more layer after each epoch, from the last to the first"),
    OPTION_REAL("layer-rate", 0, "X", &asked.layer_rate,
                "learning rate of each layer relative to the layer after it; the head has --lr", .least = 1e-3,
                .most = 1),
    OPTION_FLAG("crf", 0, &asked.crf, "choose the tags of a sentence together, with a CRF"),
    OPTION_FLAG("balance", 0, &asked.weights, "weight the labels so that rare ones count as much as frequent ones"),
    OPTION_INT("skip-bad", 0, "N", &asked.skip, "skip and count up to N bad lines of a file", .least = 0, .most = 1e9),
    OPTION_INT("patience", 0, "N", &asked.patience, "end after N epochs without improvement on --valid", .least = 0,
               .most = 1e6),
    OPTION_REAL("lr", 0, "RATE", &asked.base.asked.lr, "maximum learning rate", .least = 1e-9, .most = 10),
    OPTION_REAL("warmup", 0, "PART", &asked.base.asked.warmup, "fraction of the steps in which the learning rate rises",
                .least = 0, .most = 1),
    OPTION_REAL("weight-decay", 0, "X", &asked.decay, "weight decay, except for biases and norms", .least = 0,
                .most = 1),
    OPTION_TEXT("dtype", 0, "TYPE", &asked.base.asked.dtype,
                "dtype of the computation; bf16 is faster if the CPU supports it", .choices = "f32|bf16"),
    OPTION_SEED(0, &asked.base.asked.seed, ""),
    OPTION_INT(
        "seeds", 0, "N", &asked.seeds,
        "run N tunings with consecutive seeds in DIR/seed-1, ...; prints mean and standard deviation (default: 1)",
        .least = 1, .most = 100),
    OPTION_FLAG("json", 0, &asked.json, "print the result as a line of JSON", .resume = RESUME_NOT),
    TRAIN_RESUME(asked.base.asked),
    {0},
};
const command tune_command = COMMAND(
    "tune", "fine-tune a model for a task", options, .operands = "classify|pairs|tag|answer|choose", .least = 1,
    .most = 1,
    .text =
        "Fine-tunes a model of bert train or of Hugging Face's libraries on labelled texts. classify: lines of "
        "text <tab> label, CSV, or lines of JSON. pairs: the same with two texts. tag: CoNLL's columns, the word "
        "first and the tag last, or CoNLL-U. answer: questions in SQuAD's JSON. choose: SWAG's CSV. Accuracy and F1 "
        "are printed in percent.\n\n"
        "  bert tune classify --model minilm --train train.tsv --test test.tsv --out films --epochs 2\n"
        "  bert classify --model films \"What a bore.\"");
