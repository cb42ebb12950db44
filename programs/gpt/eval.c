/* eval.c — gpt eval: cross-entropy and perplexity of a model on text files. */
#include "gpt.h"

#include "../common/numbers.h"
#include "../common/sentence_pairs.h"

#include <math.h>
#include <stdlib.h>

/* A batch of windows of n tokens, starting at from[row]. The first known[row] targets of a window are not counted. */
typedef struct {
    int64_t rows, n, from[8], known[8];
} window_batch;
enum { MOST_ROWS = 8 };

/* A cache that rounds keys and values takes part in the measurement. */
static bool is_cached(const model *m) { return m->about.blocks && m->about.blocks->int8_cache; }

/* The summed loss of all counted targets, in nats. */
static double loss_of(const model *m, const tn_ids *ids, const window_batch *s)
{
    const tn_scope scope = tn_no_grad_begin();
    tn_kv_cache   *cache = is_cached(m) ? tn_blocks_cache(m->about.blocks, s->rows, s->n, 0) : NULL;
    const tn_shape shape = TN_SHAPE(s->rows, s->n);
    tn_tensor     *x = tn_empty_of(TN_I64, shape), *y = tn_empty_of(TN_I64, shape);
    int64_t       *in = x ? tn_data_mut(x) : NULL, *next = y ? tn_data_mut(y) : NULL, counted = 0;
    for (int64_t i = 0; in && next && i < s->rows * s->n; i++) {
        const int64_t row = i / s->n, k = i % s->n;
        in[i] = ids->at[s->from[row] + k], next[i] = k < s->known[row] ? -100 : ids->at[s->from[row] + k + 1];
        counted += k >= s->known[row];
    }
    tn_tensor *loss = NULL;
    if (cache)
        loss =
            tn_cross_entropy(tn_lm_run(m->net, (tn_decoder_args){.ids = x, .cache = cache}), y, .ignore_index = -100);
    else if (tn_error() == TN_OK) loss = tn_lm_loss(m->net, x, y);
    const double sum = loss ? tn_item(loss) * (double)counted : 0;
    tn_kv_cache_free(cache);
    tn_scope_end(scope);
    return sum;
}

/* The loss of a guess by the tokens' frequencies in this text, as their entropy; 0: no memory, without an error. */
static double entropy(const tn_ids *ids, int64_t vocab)
{
    double   sum = 0;
    int64_t *count = calloc((size_t)vocab, sizeof *count);
    for (int64_t i = 1; count && i < ids->n; i++) count[ids->at[i]]++;
    for (int64_t i = 0; count && i < vocab; i++)
        if (count[i]) sum -= (double)count[i] * log((double)count[i] / (double)(ids->n - 1));
    free(count);
    return sum / (double)(ids->n - 1);
}

bool measure(const model *m, tn_text text, int64_t length, int64_t stride, measured *to)
{
    tn_ids        ids = {0};
    double        sum = 0;
    int64_t       done = 0; /* position of the last counted token */
    const int32_t first = model_first(m);
    const int64_t most = is_cached(m) ? 1 : MOST_ROWS; /* one: all of its logits are in memory */
    *to = (measured){.bytes = (int64_t)text.bytes};
    if (length <= 0 || length > m->about.positions) length = m->about.positions;
    if (stride > length)
        return tn_raise_false(
            TN_EINVAL, "--stride %lld would skip the tokens between two windows of %lld tokens; give at most that",
            (long long)stride, (long long)length);
    if (stride <= 0) stride = length > 1 ? length / 2 : 1;
    if (first >= 0) tn_ids_add(&ids, first);
    texts_encode(m->tokens, text, true, &ids);
    if (tn_error() == TN_OK && ids.n < 2)
        tn_raise(TN_EFORMAT, "the text has fewer than 2 tokens, so there is no next token to predict");
    progress bar = progress_begin("eval", ids.n - 1, "token");
    for (int64_t from = 0; done < ids.n - 1 && tn_error() == TN_OK && !stop_flag;) {
        window_batch w = {.n = from + length < ids.n ? length : ids.n - 1 - from};
        for (; w.rows < most && done < ids.n - 1 && from + w.n < ids.n; from += stride) {
            w.from[w.rows] = from, w.known[w.rows++] = done - from;
            done = from + w.n;
        }
        sum += loss_of(m, &ids, &w);
        progress_at(&bar, done, NULL);
    }
    progress_end(&bar);
    tn_perplexity p = {0};
    to->tokens = done, to->loss = done ? sum / (double)done : 0,
    to->bits = sum / 0.69314718055994531 / (double)text.bytes;
    tn_perplexity_add(&p, to->loss, to->tokens);
    to->perplexity = tn_perplexity_value(&p);
    if (tn_error() == TN_OK) to->unigram = entropy(&ids, tn_tokenizer_size(m->tokens));
    if (isnan(to->loss)) numbers_not_finite("the loss", to->loss);
    tn_ids_free(&ids);
    return tn_error() == TN_OK;
}

static const char *dir, *tokenizer, *type, *cache, *pairs;
static int64_t     length, stride;
static bool        json;

static int run_pairs(void)
{
    model m;
    if (model_open_to_infer(dir, tokenizer, false, type, &m)) {
        sentence_pairs_eval(pairs, tn_lm_scores, m.net, m.tokens, json);
        model_close(&m);
    }
    return program_end();
}

static int run(int count, char **operands)
{
    const int code = sentence_pairs_check(pairs, count, operands);
    if (code) return code;
    if (pairs) return run_pairs();
    model             m;
    measured          e;
    tn_string         text = {0};
    const option_list files = {count, (const char **)(uintptr_t)operands};
    if (!texts_read(&files, &text) || !model_open_to_infer(dir, tokenizer, false, type, &m))
        return tn_string_free(&text), program_end();
    stop_begin("ending");
    if (model_set_cache(&m, cache) && measure(&m, (tn_text){text.at, text.bytes}, length, stride, &e) && !stop_flag) {
        if (json) {
            numbers_json("{\"loss\":", e.loss, 6), numbers_json(",\"perplexity\":", e.perplexity, 4);
            numbers_json(",\"bits_per_byte\":", e.bits, 6);
            printf(",\"tokens\":%lld,\"bytes\":%lld}\n", (long long)e.tokens, (long long)e.bytes);
        } else
            printf("tokens         %lld in %lld bytes\nloss           %.4f nats per token\nperplexity     %.2f\n"
                   "bits per byte  %.4f\n",
                   (long long)e.tokens, (long long)e.bytes, e.loss, e.perplexity, e.bits);
        texts_explain_loss(e.loss, e.unigram, e.tokens);
    }
    tn_string_free(&text);
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    OPTION_TEXT("type", 0, "TYPE", &type, MODEL_TYPE_HELP, .choices = MODEL_TYPES),
    OPTION_CACHE(&cache),
    OPTION_INT("length", 'l', "N", &length, "tokens per window (default: the model's maximum)", .least = 2,
               .most = 1e6),
    OPTION_INT("stride", 0, "N", &stride, "distance between windows in tokens (default: half a window)", .least = 1,
               .most = 1e6),
    OPTION_PAIRS(&pairs),
    OPTION_FLAG("json", 0, &json, "print one line of JSON"),
    {0},
};
const command eval_command = COMMAND(
    "eval", "measure a model on text files", options, .operands = "[FILE...]", .most = -1,
    .text = "Prints the mean cross-entropy of a token given the tokens before it, its exponential (the "
            "perplexity), and the bits per byte of text, which do not depend on the tokenizer. Windows "
            "overlap, so that every token but the first ones has at least half a window before it. With --pairs, "
            "prints the percentage of pairs in which the acceptable sentence has the higher log probability. "
            "Equal scores count as wrong.");
