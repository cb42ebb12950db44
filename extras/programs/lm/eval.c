/* eval.c — lm eval: cross-entropy and perplexity of a model on texts. The text is read once, in order; the states are
 * carried from its start to its end. Standard input is measured as it arrives.
 *
 * With a cache (Grave, Joulin and Usunier 2017) the last N hidden states h_i are stored with the tokens w_i that
 * followed them, and p(w) = (1 - λ) p_model(w) + λ Σ softmax_i(θ h · h_i), summed over all i with w_i = w. */
#include "lm.h"

#include "programs/common/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 1 << 24, CHUNK = 256, COLUMNS_MOST = 1024 };

static const char *dir;
static bool        json;
static int64_t     columns = 1, cache;
static double      theta = 0.3, lambda = 0.1;

typedef struct {
    const model *m;
    tn_rnn_lm   *lm;
    tn_ids       ids; /* one token that is measured already, then those to measure */
    tn_tensor   *state[TN_RNN_LM_STATES];
    double       sum;
    int64_t      tokens, bytes, unknown;
    /* the cache: a ring of `cache` hidden states and the tokens that followed them */
    float   *seen;
    int64_t *word, dim, kept, next;
    double  *score;
} evaluation;

static void replace_kept(tn_tensor **place, tn_tensor *t)
{
    if (t) tn_keep(t);
    if (*place) tn_drop(*place);
    *place = t;
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static bool cache_open(evaluation *s)
{
    s->dim = s->lm->config.untied ? s->lm->config.hidden : s->lm->config.dim;
    if (!cache) return true;
    s->seen = malloc((size_t)(cache * s->dim) * sizeof *s->seen);
    s->word = malloc((size_t)cache * sizeof *s->word), s->score = malloc((size_t)cache * sizeof *s->score);
    if (!s->seen || !s->word || !s->score)
        tn_raise(TN_ENOMEM, "no memory for a cache of %lld tokens", (long long)cache);
    return tn_error() == TN_OK;
}

/* The cache's probability of a token after hidden state h; -1 if the cache is empty. Then adds both to the cache. */
static double cache_probability(evaluation *s, const float *h, int64_t word)
{
    double most = -HUGE_VAL, all = 0, right = 0;
    for (int64_t i = 0; i < s->kept; i++) {
        double       dot = 0;
        const float *v = s->seen + i * s->dim;
        for (int64_t k = 0; k < s->dim; k++) dot += (double)v[k] * (double)h[k];
        s->score[i] = theta * dot;
        most = fmax(most, s->score[i]);
    }
    for (int64_t i = 0; i < s->kept; i++) {
        const double e = exp(s->score[i] - most);
        all += e;
        if (s->word[i] == word) right += e;
    }
    memcpy(s->seen + s->next * s->dim, h, (size_t)s->dim * sizeof *h);
    s->word[s->next] = word;
    s->next = (s->next + 1) % cache, s->kept += s->kept < cache;
    return all > 0 ? right / all : -1; /* the cache was empty */
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* -log p of each target, [rows, n], from the hidden states [rows, n, dim]. */
static tn_tensor *losses(const evaluation *s, tn_tensor *vectors, tn_tensor *targets)
{
    tn_tensor *each;
    if (!s->lm->adaptive)
        return tn_cross_entropy(tn_linear(vectors, s->lm->out, s->lm->bias), targets, .reduction = TN_NONE);
    tn_adaptive_softmax_forward(s->lm->adaptive, vectors, targets, &each);
    return tn_neg(each);
}

/* Measures n tokens of each row, from position `at` of the row; row i starts at ids[i * apart]. Targets at index `end`
 * or later are not counted. */
static void measure_chunk(evaluation *s, int64_t rows, int64_t apart, int64_t at, int64_t n, int64_t end)
{
    const tn_scope scope = tn_no_grad_begin();
    const tn_shape shape = TN_SHAPE(rows, n);
    tn_tensor     *x = tn_zeros_of(TN_I64, shape), *y = tn_zeros_of(TN_I64, shape), *now[TN_RNN_LM_STATES];
    int64_t       *in = x ? tn_data_mut(x) : NULL, *next = y ? tn_data_mut(y) : NULL;
    for (int64_t i = 0; in && next && i < rows * n; i++) {
        const int64_t from = i / n * apart + at + i % n;
        if (from + 1 < end) in[i] = s->ids.at[from], next[i] = s->ids.at[from + 1];
    }
    memcpy(now, s->state, sizeof now);
    tn_tensor   *vectors = tn_rnn_lm_forward(s->lm, x, .states = now, .vectors = true);
    tn_tensor   *each = vectors ? tn_contiguous(losses(s, vectors, y)) : NULL;
    const float *loss = each ? tn_data(each) : NULL, *h = cache && each ? tn_data(tn_contiguous(vectors)) : NULL;
    for (int64_t i = 0; loss && next && i < rows * n; i++) {
        if (i / n * apart + at + i % n + 1 >= end) continue;
        double       minus_log = (double)loss[i];
        const double p = h ? cache_probability(s, h + i * s->dim, next[i]) : -1;
        if (p >= 0) minus_log = -log((1 - lambda) * exp(-minus_log) + lambda * p);
        s->sum += minus_log, s->tokens++;
        s->unknown += texts_are_words(s->m->tokens) && next[i] == 0;
    }
    for (int i = 0; loss && i < TN_RNN_LM_STATES; i++) replace_kept(&s->state[i], now[i]);
    tn_scope_end(scope);
}

/* Measures the tokens in s->ids in chunks, and keeps a rest of at most CHUNK. all: measures the rest, too. */
static void measure_ids(evaluation *s, bool all)
{
    int64_t at = 0;
    while (tn_error() == TN_OK && !stop_flag && (s->ids.n - at > CHUNK || (all && s->ids.n - at > 1))) {
        const int64_t n = s->ids.n - at - 1 < CHUNK ? s->ids.n - at - 1 : CHUNK;
        measure_chunk(s, 1, 0, at, n, s->ids.n);
        at += n;
    }
    if (at) memmove(s->ids.at, s->ids.at + at, (size_t)(s->ids.n - at) * sizeof *s->ids.at), s->ids.n -= at;
}

/* Cuts the text into columns that are read in one batch, which is faster; each column starts with a zero state. */
static void measure_columns(evaluation *s)
{
    const int64_t rows = columns, apart = (s->ids.n - 1 + rows - 1) / rows, step = 16 + 2048 / rows;
    progress      bar = progress_begin("eval", apart, "step");
    for (int64_t at = 0; at < apart && tn_error() == TN_OK && !stop_flag; at += step) {
        const int64_t n = apart - at < step ? apart - at : step;
        measure_chunk(s, rows, apart, at, n, s->ids.n);
        progress_at(&bar, at + n, NULL);
    }
    progress_end(&bar);
}

static bool add(evaluation *s, tn_text text)
{
    s->bytes += (int64_t)text.bytes;
    return numbers_of(s->m->tokens, text, &s->ids);
}

/* Standard input, line by line. */
static void read_stream(evaluation *s)
{
    char  *line = NULL;
    size_t room = 0, n = 0;
    while (tn_error() == TN_OK && !stop_flag && next_line(&line, &room, &n, LINE_MOST - 1)) {
        const bool ended = !feof(stdin); /* the last line may have no end */
        line[n] = '\n';                  /* replaces the NUL */
        if (add(s, (tn_text){line, n + ended})) measure_ids(s, false);
    }
    free(line);
    measure_ids(s, true);
}

static void too_short(void)
{
    tn_raise(TN_EFORMAT, "the text has fewer than 2 tokens, so there is no next token to predict");
}

static void read_files(evaluation *s, int count, char **operands)
{
    const option_list files = {count, (const char **)(uintptr_t)operands};
    tn_string         text = {0};
    if (texts_read(&files, &text)) add(s, (tn_text){text.at, text.bytes});
    tn_string_free(&text);
    if (tn_error() == TN_OK && s->ids.n < 2) too_short();
    if (tn_error() != TN_OK) return;
    if (columns > 1) measure_columns(s);
    else {
        const int64_t all = s->ids.n;
        progress      bar = progress_begin("eval", all, "token");
        tn_ids        whole = s->ids;
        s->ids = (tn_ids){0};
        for (int64_t at = 0; at < all && tn_error() == TN_OK && !stop_flag; at++) {
            tn_ids_add(&s->ids, whole.at[at]);
            if (s->ids.n > CHUNK) measure_ids(s, false), progress_at(&bar, at, NULL);
        }
        measure_ids(s, true);
        tn_ids_free(&whole);
        if (!stop_flag) bar.done = all;
        progress_end(&bar);
    }
}

static void show(const evaluation *s)
{
    const double loss = s->tokens ? s->sum / (double)s->tokens : 0,
                 bits = s->sum / 0.69314718055994531 / fmax(1, (double)s->bytes);
    tn_perplexity p = {0};
    tn_perplexity_add(&p, loss, s->tokens);
    if (json) {
        numbers_json("{\"loss\":", loss, 6), numbers_json(",\"bits_per_byte\":", bits, 6);
        printf(",\"tokens\":%lld,\"unknown\":%lld,\"bytes\":%lld", (long long)s->tokens, (long long)s->unknown,
               (long long)s->bytes);
        numbers_json(",\"perplexity\":", tn_perplexity_value(&p), 4), printf("}\n");
    } else {
        printf("%s         %lld in %lld bytes\n", texts_are_words(s->m->tokens) ? "words " : "tokens",
               (long long)s->tokens, (long long)s->bytes);
        if (texts_are_words(s->m->tokens)) printf("unknown        %lld\n", (long long)s->unknown);
        printf("loss           %.4f nats per %s\nperplexity     %.2f\nbits per byte  %.4f\n", loss,
               texts_are_words(s->m->tokens) ? "word" : "token", tn_perplexity_value(&p), bits);
    }
}

static int run(int count, char **operands)
{
    model      m;
    evaluation s = {.sum = 0};
    int        code;
    const bool streamed = count == 1 && !strcmp(operands[0], "-");
    if (columns > 1 && (cache || streamed))
        return program_usage("--columns needs files and no --cache: a cache and standard input are read in order");
    if (!program_given("cache") &&
        ((code = program_stray("cache-theta", "--cache")) || (code = program_stray("cache-lambda", "--cache"))))
        return code;
    if (!recurrent_open(dir, &m, &s.lm)) return program_end();
    s.m = &m;
    stop_begin("ending");
    if (cache_open(&s)) {
        if (streamed) read_stream(&s);
        else read_files(&s, count, operands);
    }
    if (tn_error() == TN_OK && !stop_flag && !s.tokens) too_short();
    if (isnan(s.sum)) numbers_not_finite("the loss", s.sum);
    if (tn_error() == TN_OK && !stop_flag) show(&s);
    for (int i = 0; i < TN_RNN_LM_STATES; i++) replace_kept(&s.state[i], NULL);
    free(s.seen), free(s.word), free(s.score);
    tn_ids_free(&s.ids);
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_INT("columns", 0, "N", &columns,
               "read the text in N columns at once: faster, but each starts with a zero state", .least = 1,
               .most = COLUMNS_MOST),
    OPTION_INT("cache", 0, "N", &cache,
               "store the last N tokens with their contexts, and expect them again in similar ones", .least = 0,
               .most = 1e6),
    OPTION_REAL("cache-theta", 0, "X", &theta, "sharpness of the cache: higher favours the most similar contexts",
                .least = 0, .most = 100),
    OPTION_REAL("cache-lambda", 0, "P", &lambda, "weight of the cache's probabilities; 0 ignores the cache", .least = 0,
                .most = 1),
    OPTION_FLAG("json", 0, &json, "print one line of JSON"),
    {0},
};
const command eval_command =
    COMMAND("eval", "measure a model on text files", options, .operands = "FILE...", .least = 1, .most = -1,
            .text = "Prints the mean cross-entropy of a token given all tokens before it, its exponential (the "
                    "perplexity), and the bits per byte of text. Unknown words count as <unk>, which is easy to "
                    "predict: bits per byte compare models with different vocabularies only if no word is unknown. "
                    "FILE - is standard input, measured as it arrives.\n\n"
                    "  lm eval --model book other.txt --json\n"
                    "  lm eval --model book --cache 500 other.txt");
