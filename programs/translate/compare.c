/* compare.c — translate compare: an RNN whose decoder gets one vector, an RNN with Bahdanau attention, and a
 * Transformer, on one task with lines of increasing length. Symbols are bytes; there is no tokenizer. */
#include "../common/messages.h"
#include "tasks.h"
#include "translate.h"

#include <stdlib.h>
#include <string.h>

enum { MODELS = 3, MOST_LENGTHS = 16, BYTES = 4 /* id of byte 0 */, WORDS = 256 + BYTES };
static const tn_seq2seq_kind kinds[MODELS] = {TN_SEQ2SEQ_RNN, TN_SEQ2SEQ_BAHDANAU, TN_SEQ2SEQ_TRANSFORMER};
static const char *const     names[MODELS] = {"rnn", "bahdanau", "transformer"};

static const char *task_name = "copy", *lengths_text, *out = "build/compare";
static int64_t     steps, seed = 1, dim = 64, tokens = 1024, test_lines = 200;
static double      minutes, lr = 3e-3;
static bool        quick;

static task    current_task;
static double  length[MOST_LENGTHS];
static int64_t lengths;

/* The result of one model. */
typedef struct {
    double  correct_symbols[MOST_LENGTHS], correct_lines[MOST_LENGTHS]; /* fractions, by length */
    double  seconds, rate;                                              /* training time; symbols per second */
    int64_t n;                                                          /* points of the loss curve */
    double *step, *loss;
    char    output[TASK_TEXT]; /* the output for the example line */
} result;

/* ---- pairs as batches -------------------------------------------------------------------------------------------- */

static void put_ids(tn_tensor *t, int64_t row, int64_t at, const char *text)
{
    int64_t *to = tn_data_mut(t);
    if (!to) return;
    to += row * tn_size(t, 1) + at;
    while (*text) *to++ = (unsigned char)*text++ + BYTES;
    *to = END;
}

/* n pairs from index `first` as padded tensors: sources end with END, targets start with BEGIN and end with END. */
static bool make_pairs(uint64_t from_seed, uint64_t first, int64_t n, int64_t each_length, bool held_out, tn_tensor **x,
                       tn_tensor **y)
{
    static char text[2][TASK_TEXT];
    int64_t     width[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        task_pair(current_task, from_seed, first + (uint64_t)i, each_length, held_out, text[0], text[1]);
        for (int k = 0; k < 2; k++)
            if ((int64_t)strlen(text[k]) > width[k]) width[k] = (int64_t)strlen(text[k]);
    }
    *x = tn_full_of(TN_I64, TN_SHAPE(n, width[0] + 1), PADDING);
    *y = tn_full_of(TN_I64, TN_SHAPE(n, width[1] + 2), PADDING);
    if (tn_error() != TN_OK) return false;
    for (int64_t i = 0; i < n; i++) {
        task_pair(current_task, from_seed, first + (uint64_t)i, each_length, held_out, text[0], text[1]);
        put_ids(*x, i, 0, text[0]), put_ids(*y, i, 1, text[1]);
        tn_set_i64(*y, i * (width[1] + 2), BEGIN);
    }
    return tn_error() == TN_OK;
}

/* A batch of lines of one length, at random up to the longest; half of the batches prefer short lines, which are
 * learned first. Every pair is new. */
static bool next_batch(void *user, tn_batch *b)
{
    tn_generator *g = tn_current_generator();
    int64_t       each_length = 1 + tn_random_below(g, (int64_t)length[lengths - 1]);
    if (tn_random_below(g, 2)) each_length = 1 + tn_random_below(g, each_length);
    const int64_t each = each_length * (current_task == TASK_DATES ? 20 : 1) + 1,
                  n = tokens / each < 1 ? 1 : tokens / each;
    (void)user;
    b->items = n * each;
    return make_pairs((uint64_t)seed, (uint64_t)tn_random_below(g, (int64_t)1 << 40), n, each_length, false, &b->x,
                      &b->y);
}

/* ---- one model --------------------------------------------------------------------------------------------------- */

typedef struct {
    progress bar;
    result  *o;
    int64_t  every, items;
} fit_watcher;
static void on_event(const tn_fit_event *e, void *user)
{
    fit_watcher *w = user;
    if (e->what == TN_FIT_END) progress_end(&w->bar);
    else progress_fit(e, &w->bar);
    if (e->what != TN_FIT_STEP) return;
    w->items += e->items;
    if (e->step % w->every) return;
    w->o->step[w->o->n] = (double)e->step, w->o->loss[w->o->n++] = e->loss;
}

static tn_seq2seq *new_model(int k)
{
    tn_seed((uint64_t)seed);
    const bool transformer = kinds[k] == TN_SEQ2SEQ_TRANSFORMER;
    return tn_seq2seq_new(.kind = kinds[k], .source_words = WORDS, .shared = true, .dim = dim, .heads = 4,
                          .ff = 2 * dim, .layers = transformer ? 2 : 1, .dropout = 0, .norm_first = true,
                          .positions = TASK_TEXT, .padding = PADDING, .begin = BEGIN, .end = END);
}

/* Decodes lines that are not in the training set greedily, and counts correct symbols and lines. */
static void test_model(tn_seq2seq *net, int64_t i, result *o)
{
    const int64_t  n = test_lines, each_length = (int64_t)length[i];
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x, *y;
    int64_t        correct = 0, all = 0, correct_line_count = 0;
    if (make_pairs((uint64_t)seed + 1, 0, n, each_length, true, &x, &y)) {
        const int64_t most = tn_size(y, 1) + 2;
        tn_decoding  *d = tn_seq2seq_decoding(net, x, 1, most);
        tn_generated  g = tn_generate(d, tn_full_of(TN_I64, TN_SHAPE(n, 1), BEGIN), .end = END);
        for (int64_t r = 0; g.tokens && r < n; r++) {
            const int64_t *expected = (const int64_t *)tn_data(y) + r * tn_size(y, 1) + 1;
            const int64_t  wide = tn_size(g.tokens, 2), got = tn_get_i64(g.lengths, r);
            int64_t        same = 0, k = 0;
            for (; expected[k] != END; k++) same += k < got && tn_get_i64(g.tokens, r * wide + k) == expected[k];
            correct += same, all += k, correct_line_count += same == k && got == k;
            if (r || i + 1 < lengths) continue;
            for (k = 0; k < got && k + 1 < TASK_TEXT; k++) {
                const int64_t c = tn_get_i64(g.tokens, k) - BYTES;
                o->output[k] = (char)(c >= ' ' && c < 256 ? c : '?');
            }
            o->output[k] = 0;
        }
        tn_decoding_free(d);
    }
    tn_scope_end(s);
    o->correct_symbols[i] = all ? (double)correct / (double)all : 0,
    o->correct_lines[i] = (double)correct_line_count / (double)n;
}

static bool try_model(int k, result *o)
{
    tn_seq2seq     *net = new_model(k);
    const tn_source source = {.next = next_batch};
    int64_t         todo = steps;
    tn_fit_result   r = {.why = TN_FIT_FAILED};
    if (net && minutes > 0) {
        const double seconds = step_seconds(
            tn_copy(net), TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .train = source, .loss = tn_seq2seq_fit_loss));
        todo = (int64_t)(60 * minutes / MODELS / seconds) + 1;
    }
    o->step = calloc((size_t)todo + 1, sizeof *o->step), o->loss = calloc((size_t)todo + 1, sizeof *o->loss);
    if (!o->step || !o->loss) tn_raise(TN_ENOMEM, "no memory for the loss curves of %lld steps", (long long)todo);
    fit_watcher w = {.bar = progress_begin(names[k], todo, "step"), .o = o, .every = todo / 200 + 1};
    if (tn_error() == TN_OK)
        r = tn_fit(net, .train = source, .loss = tn_seq2seq_fit_loss, .steps = todo, .lr = lr, .on = on_event,
                   .on_user = &w, .stop = &stop_flag);
    o->seconds = r.seconds, o->rate = (double)w.items / r.seconds;
    if (r.why == TN_FIT_DONE) tn_eval(net);
    for (int64_t i = 0; i < lengths && r.why == TN_FIT_DONE && tn_error() == TN_OK; i++) test_model(net, i, o);
    tn_free(net);
    return r.why == TN_FIT_DONE && tn_error() == TN_OK;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_table(const result *o)
{
    const char *unit = current_task == TASK_DATES ? "dates" : "letters";
    printf("%s: fraction of correct symbols (of correct lines) by line length in %s\n%-12s", task_name, unit, "model");
    for (int64_t i = 0; i < lengths; i++) printf(" %14d", (int)length[i]);
    printf(" %9s %9s\n", "seconds", "symbols/s");
    for (int k = 0; k < MODELS; k++) {
        printf("%-12s", names[k]);
        for (int64_t i = 0; i < lengths; i++) printf("  %.3f (%.3f)", o[k].correct_symbols[i], o[k].correct_lines[i]);
        printf(" %9.1f %9.0f\n", o[k].seconds, o[k].rate);
    }
}

static void add_curve(tn_report *r, const char *title, const result *o, const double *guessed)
{
    tn_series s[MODELS + 1];
    for (int k = 0; k < MODELS; k++)
        s[k] = (tn_series){
            .name = names[k], .n = lengths, .x = length, .y = guessed ? o[k].correct_symbols : o[k].correct_lines};
    s[MODELS] = (tn_series){.name = "random guess", .n = lengths, .x = length, .y = guessed};
    tn_report_curves(r, title, current_task == TASK_DATES ? "dates per line" : "letters per line", "correct",
                     guessed ? MODELS + 1 : MODELS, s);
}

static void add_bars(tn_report *r, const result *o)
{
    double seconds[MODELS], rate[MODELS];
    for (int k = 0; k < MODELS; k++)
        seconds[k] = (double)(int64_t)(10 * o[k].seconds + 0.5) / 10, rate[k] = (double)(int64_t)(o[k].rate + 0.5);
    tn_report_bars(r, "Training time in seconds", MODELS, names, seconds);
    tn_report_bars(r, "Training speed in symbols per second", MODELS, names, rate);
}

static void add_example(tn_report *r, const result *o)
{
    static char       text[2][TASK_TEXT];
    const char *const columns[] = {"", "a line of maximum length"};
    task_pair(current_task, (uint64_t)seed + 1, 0, (int64_t)length[lengths - 1], true, text[0], text[1]);
    const char *const cells[] = {"source",    text[0],  "expected",  text[1],  names[0],
                                 o[0].output, names[1], o[1].output, names[2], o[2].output};
    tn_report_table(r, 2, columns, MODELS + 2, cells);
}

static void write_report(const result *o)
{
    char       path[1024], text[600];
    tn_series  s[MODELS];
    double     guessed[MOST_LENGTHS];
    tn_report *r = tn_report_new("Models with and without attention");
    for (int64_t i = 0; i < lengths; i++) guessed[i] = current_task == TASK_DATES ? 0.1 : 1.0 / 26;
    for (int k = 0; k < MODELS; k++)
        s[k] = (tn_series){.name = names[k], .n = o[k].n, .x = o[k].step, .y = o[k].loss, .smooth = 0.8};
    snprintf(
        text, sizeof text,
        "Three networks of width %lld learn to %s. They train on the same lines, of every length up to the maximum. "
        "The decoder of rnn receives only the encoder's last state: one vector must hold the whole line. bahdanau and "
        "transformer attend to every position of the source before each output symbol.",
        (long long)dim,
        current_task == TASK_COPY      ? "copy a line of letters"
        : current_task == TASK_REVERSE ? "reverse a line of letters"
                                       : "convert a list of dates to ISO 8601");
    tn_report_paragraph(r, text);
    add_curve(r, "Correct symbols by line length", o, guessed);
    add_curve(r, "Lines without an error by line length", o, NULL);
    add_bars(r, o);
    tn_report_curves(r, "Training loss", "step", "nats", MODELS, s);
    tn_report_heading(r, "Example");
    add_example(r, o);
    make_folder(out);
    if (record_report(r, in_folder(out, "report.html", path)) && !settings.quiet) tell("report: %s\n", path);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Parses a list of increasing integers such as "5,10,20". */
static bool read_lengths(const char *text)
{
    for (lengths = 0; lengths < MOST_LENGTHS; text++) {
        char      *end;
        const long n = strtol(text, &end, 10);
        if (end == text || n < 1 || n > TASK_LONGEST || (lengths && (double)n <= length[lengths - 1])) return false;
        length[lengths++] = (double)n;
        if (!*end) return true;
        if (*end != ',') return false;
        text = end;
    }
    return false;
}

static int run(int count, char **operands)
{
    static result o[MODELS];
    bool          fine = true;
    (void)count, (void)operands;
    current_task = task_of(task_name);
    const int code = program_either("steps", "minutes");
    if (code) return code;
    if (dim % 4) return program_usage("--dim needs a multiple of 4, got '%lld'", (long long)dim);
    if (!lengths_text)
        lengths_text = quick                        ? (current_task == TASK_DATES ? "1,2" : "2,4,6")
                       : current_task == TASK_DATES ? "1,2,3,4"
                                                    : "5,10,20,30,40";
    if (!read_lengths(lengths_text))
        return program_usage(
            "--lengths needs at most %d increasing integers from 1 to %d, such as 5,10,20,40, got '%s'", MOST_LENGTHS,
            TASK_LONGEST, lengths_text);
    if (quick && !program_given("dim")) dim = 32;
    if (quick && !program_given("tokens")) tokens = 256;
    if (quick && !program_given("asked")) test_lines = 20;
    if (!steps && !(minutes > 0)) steps = quick ? 400 : 2500;
    stop_begin("ending");
    for (int k = 0; k < MODELS && fine; k++) fine = try_model(k, &o[k]);
    if (fine) write_report(o), print_table(o);
    for (int k = 0; k < MODELS; k++) free(o[k].step), free(o[k].loss);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("task", 0, "NAME", &task_name, "task to learn", .choices = TASKS),
    OPTION_TEXT("lengths", 0, "N,N...", &lengths_text,
                "test lengths in letters or dates per line (default: 5,10,20,30,40 letters or 1,2,3,4 dates)"),
    OPTION_INT("steps", 'n', "N", &steps, "training steps of each model (default: 2500)", .least = 1, .most = 1e7),
    OPTION_REAL("minutes", 0, "N", &minutes, "minutes of training for all three models, instead of --steps",
                .least = 0.01, .most = 1e4),
    OPTION_INT("dim", 0, "N", &dim, "network width, a multiple of 4", .least = 4, .most = 4096),
    OPTION_INT("tokens", 0, "N", &tokens, "symbols per batch", .least = 16, .most = 1e6),
    OPTION_REAL("lr", 0, "RATE", &lr, "maximum learning rate", .least = 1e-9, .most = 10),
    OPTION_INT("asked", 0, "N", &test_lines, "test lines per length", .least = 1, .most = 1e5),
    OPTION_SEED(0, &seed, ""),
    OPTION_FLAG("quick", 0, &quick, "run in seconds: small networks, short lines, few steps"),
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for report.html"),
    {0},
};
const command compare_command =
    COMMAND("compare", "compare models with and without attention", options,
            .text = "Trains three networks on lines of letters to copy or to reverse, or on dates: a recurrent network "
                    "whose decoder receives one vector, a recurrent network with Bahdanau attention, and a "
                    "Transformer. Prints the accuracy of each for increasing line lengths and writes report.html. "
                    "With --steps, every run prints the same results except the times.");
