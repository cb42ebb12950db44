/* main.c — compare: attention with and without positions, an LSTM and causal convolutions of the same size on one task:
 * copying the first symbols of a sequence after a growing distance. Reports the sequential steps, the path length to
 * the copied symbol, the accuracy after the same number of training steps, and the time per step, as a table and as an
 * HTML page with figures. */
#include "programs/common/files.h"
#include "programs/common/options.h"
#include "programs/common/progress.h"
#include "programs/common/record.h"
#include "programs/common/stop.h"

enum { COPIED = 5, SYMBOLS = 8, BLANK = 0, GO = 1, WORDS = 2 + SYMBOLS, BATCH = 32, CONVS = 4, TAPS = 5, MOST = 8 };
/* BAG: attention over a bag of words, whose words have no positions and see each other in both directions. */
typedef enum { ATTENTION, RECURRENCE, CONVOLUTION, BAG, KINDS } kind;
static const char *const kind_name[] = {"attention", "LSTM", "convolutions", "bag of words"};

static int64_t     steps = 300, seed = 1, longest = 64;
static double      lr = 3e-3;
static const char *out = "compare.html";

/* ---- the models -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module     base;
    kind          kind;
    tn_embedding *words;
    tn_positions *positions;
    tn_blocks    *blocks;
    tn_lstm      *lstm;
    tn_conv1d    *conv[CONVS];
    tn_linear    *say;
} reader;

/* The receptive field of dilations 1, 2, 4, 8, in positions before the current one. */
enum { FIELD = (TAPS - 1) * ((1 << CONVS) - 1) };

static tn_tensor *convolved(reader *m, tn_tensor *x)
{
    x = tn_transpose(x, 1, 2); /* [B, dim, T] */
    for (int i = 0; i < CONVS && tn_error() == TN_OK; i++) {
        const int64_t before = (TAPS - 1) << i; /* causal: pad only before */
        tn_tensor    *y = tn_call(m->conv[i], tn_pad(x, TN_SHAPE(0, 0, before), TN_SHAPE(0, 0, 0), 0));
        x = tn_add(x, tn_relu(y));
    }
    return tn_transpose(x, 1, 2);
}

static tn_tensor *reader_forward(reader *m, tn_tensor *ids)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *x = tn_call(m->words, ids);
    if (m->positions) x = tn_positions_forward(m->positions, x, 0);
    x = m->blocks ? tn_blocks_forward(m->blocks, x, .causal = m->positions != NULL)
        : m->lstm ? tn_call(m->lstm, x)
                  : convolved(m, x);
    return tn_leave(f, tn_call(m->say, x));
}
TN_FORWARD(reader);

static reader *reader_new(kind k, int64_t length)
{
    static const int64_t dims[] = {48, 60, 52, 48}; /* about 55,000 parameters each */
    const int64_t        dim = dims[k];
    reader              *m = tn_module_new(reader);
    if (!m) return NULL;
    m->kind = k;
    m->words = tn_child(m, "words", tn_embedding_new(.count = WORDS, .dim = dim));
    if (k == ATTENTION || k == BAG) {
        if (k == ATTENTION)
            m->positions = tn_child(m, "positions", tn_sinusoidal_positions_new(.dim = dim, .length = length));
        m->blocks = tn_child(m, "blocks",
                             tn_blocks_new(.layers = 2, .dim = dim, .heads = 4, .ff = 4 * dim, .dropout = 0,
                                           .order = TN_NORM_FIRST, .final_norm = true));
    } else if (k == RECURRENCE) {
        m->lstm = tn_child(m, "lstm", tn_lstm_new(.in = dim, .hidden = dim, .layers = 2));
    } else {
        for (int i = 0; i < CONVS && tn_error() == TN_OK; i++)
            m->conv[i] = tn_child(m, tn_name("conv%d", i),
                                  tn_conv1d_new(.in = dim, .out = dim, .size = TAPS, .dilation = 1 << i));
    }
    m->say = tn_child(m, "say", tn_linear_new(.in = dim, .out = WORDS));
    return tn_built(m);
}

/* ---- the task ---------------------------------------------------------------------------------------------------- */

/* The length of a sequence: the symbols, the blanks, and a marker for each symbol to copy. */
static int64_t length_of(int64_t blanks) { return 2 * COPIED + blanks; }

static void draw(tn_generator *g, int64_t blanks, tn_tensor **x, tn_tensor **y)
{
    const int64_t n = length_of(blanks);
    *x = tn_zeros_of(TN_I64, TN_SHAPE(BATCH, n)), *y = tn_full_of(TN_I64, TN_SHAPE(BATCH, n), -100);
    int64_t *in = *x ? tn_data_mut(*x) : NULL, *want = *y ? tn_data_mut(*y) : NULL;
    for (int64_t i = 0; in && want && i < BATCH * COPIED; i++) {
        const int64_t at = i / COPIED * n + i % COPIED, end = at + n - COPIED;
        in[at] = want[end] = 2 + tn_random_below(g, SYMBOLS);
        in[end] = GO;
    }
}

typedef struct {
    double  right, seconds; /* accuracy; duration of a step */
    int64_t parameters;
} outcome;

static double judge(reader *m, int64_t blanks)
{
    tn_generator   g = {.seed = 77};
    const tn_scope s = tn_no_grad_begin();
    int64_t        right = 0, all = 0;
    tn_tensor     *x, *y;
    for (int k = 0; k < 8 && tn_error() == TN_OK; k++) {
        draw(&g, blanks, &x, &y);
        tn_tensor *best = tn_argmax(tn_call(m, x), 2, false);
        for (int64_t i = 0; best && i < tn_numel(y); i++) {
            const int64_t want = tn_get_i64(y, i);
            all += want >= 0, right += want >= 0 && tn_get_i64(best, i) == want;
        }
    }
    tn_scope_end(s);
    return all ? (double)right / (double)all : 0;
}

static outcome learn(kind k, int64_t blanks, progress *bar, int64_t *done)
{
    tn_seed((uint64_t)seed);
    tn_generator  g = {.seed = (uint64_t)seed + 1000};
    reader       *m = reader_new(k, length_of(longest));
    tn_optimizer *o = tn_adam_new(m, .lr = lr, .clip.norm = 1);
    const double  began = seconds_now();
    tn_tensor    *x, *y;
    outcome       r = {.parameters = m ? tn_count(m) : 0};
    for (int64_t i = 0; i < steps && tn_error() == TN_OK && !stop_flag; i++) {
        const tn_scope s = tn_scope_begin();
        draw(&g, blanks, &x, &y);
        tn_backward(tn_cross_entropy(tn_call(m, x), y));
        tn_step(o);
        tn_scope_end(s);
        progress_at(bar, ++*done, NULL);
    }
    r.seconds = (seconds_now() - began) / (double)steps;
    if (tn_error() == TN_OK && !stop_flag) r.right = judge(m, blanks);
    tn_optimizer_free(o);
    tn_module_free(m);
    return r;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* The number of sequential steps; and of steps between a symbol and its copy. */
static int64_t in_order(kind k, int64_t n) { return k == RECURRENCE ? 2 * n : k == CONVOLUTION ? CONVS : 2; }
static void    path(kind k, int64_t blanks, char to[24])
{
    const int64_t far = blanks + COPIED;
    if (k == CONVOLUTION && far > FIELD) snprintf(to, 24, "none");
    else snprintf(to, 24, "%lld", (long long)(k == RECURRENCE ? far + 1 : k == CONVOLUTION ? CONVS : 1));
}

static bool page(int n, const int64_t *blanks, outcome r[KINDS][MOST])
{
    enum { COLUMNS = 6 };
    static const char *const names[] = {"model",       "distance",      "sequential steps",
                                        "path length", "accuracy in %", "ms per step"};
    static char              text[KINDS * MOST][COLUMNS][24];
    const char              *cells[KINDS * MOST * COLUMNS];
    double                   x[MOST], right[KINDS][MOST], ms[KINDS][MOST];
    tn_series                of_right[KINDS], of_ms[KINDS];
    tn_report               *page = tn_report_new("Attention, recurrence, convolution");
    for (int row = 0; row < KINDS * n; row++) {
        const int     i = row / n, k = row % n;
        const outcome o = r[i][k];
        x[k] = (double)blanks[k], right[i][k] = 100 * o.right, ms[i][k] = 1e3 * o.seconds;
        snprintf(text[row][0], 24, "%s", kind_name[i]), snprintf(text[row][1], 24, "%lld", (long long)blanks[k]);
        snprintf(text[row][2], 24, "%lld", (long long)in_order((kind)i, length_of(blanks[k])));
        path((kind)i, blanks[k], text[row][3]);
        snprintf(text[row][4], 24, "%.1f", 100 * o.right), snprintf(text[row][5], 24, "%.2f", 1e3 * o.seconds);
        for (int c = 0; c < COLUMNS; c++) cells[row * COLUMNS + c] = text[row][c];
        printf("%-13s distance %3s  sequential %3s  path %4s  accuracy %s  ms %s\n", text[row][0], text[row][1],
               text[row][2], text[row][3], text[row][4], text[row][5]);
    }
    for (int i = 0; i < KINDS; i++) {
        of_right[i] = (tn_series){.name = kind_name[i], .n = n, .x = x, .y = right[i]};
        of_ms[i] = (tn_series){.name = kind_name[i], .n = n, .x = x, .y = ms[i]};
    }
    char words[600];
    snprintf(
        words, sizeof words,
        "The task is to copy %d symbols after some blanks. The models have %lld, %lld, %lld and %lld parameters; "
        "for each distance, each is trained for %lld steps of %d sequences. Guessing would get 1 of %d symbols right. "
        "The bag of words is attention without positions and mask: it sees which symbols there are, not their "
        "order.",
        COPIED, (long long)r[0][0].parameters, (long long)r[1][0].parameters, (long long)r[2][0].parameters,
        (long long)r[3][0].parameters, (long long)steps, BATCH, SYMBOLS);
    tn_report_paragraph(page, words);
    tn_report_curves(page, "Accuracy by distance", "blanks", "%", KINDS, of_right);
    tn_report_curves(page, "Time by distance", "blanks", "ms per step", KINDS, of_ms);
    tn_report_table(page, COLUMNS, names, KINDS * n, cells);
    return record_report(page, out);
}

static int run(int count, char **operands)
{
    int64_t blanks[MOST], done = 0;
    outcome r[KINDS][MOST] = {{{.parameters = 0}}};
    int     n = 0;
    (void)count, (void)operands;
    for (int64_t b = 4; b <= longest && n < MOST; b *= 2) blanks[n++] = b;
    stop_begin("ending");
    progress bar = progress_begin("compare", KINDS * n * steps, "step");
    for (int i = 0; i < KINDS * n && tn_error() == TN_OK && !stop_flag; i++)
        r[i / n][i % n] = learn((kind)(i / n), blanks[i % n], &bar, &done);
    progress_end(&bar);
    if (tn_error() == TN_OK && !stop_flag) page(n, blanks, r);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("out", 'o', "FILE", &out, "HTML page to write"),
    OPTION_INT("steps", 'n', "N", &steps, "training steps of each model for each distance", .least = 1, .most = 1e6),
    OPTION_INT("longest", 0, "N", &longest, "largest distance; the distances are 4, 8, 16, ... up to it", .least = 4,
               .most = 512),
    OPTION_REAL("lr", 0, "RATE", &lr, "learning rate", .least = 1e-9, .most = 10),
    OPTION_SEED(0, &seed, ""),
    {0},
};

int main(int argc, char **argv)
{
    const command commands[] = {{.options = options, .run = run, .text = "    compare --steps 300 --longest 64\n"},
                                {0}};
    const program compare = {.name = "compare",
                             .summary =
                                 "compare attention, an LSTM and causal convolutions on copying over growing distances",
                             .commands = commands};
    return program_main(&compare, argc, argv);
}
