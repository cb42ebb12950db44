/* files_fasttext.c — FastText's .bin, version 12: arguments, dictionary, input rows (words, then n-gram buckets) and
 * output rows. Not supported: quantized models, and classifiers, whose rows have labels. */
#include "extras/vectors/files.h"
#include "core/base/toolbox.h"

#include <math.h>

enum { MAGIC = 793712314, VERSION = 12, MAX_WORD = 1 << 12 };
/* Positions of the arguments. */
enum { DIM, WINDOW, EPOCHS, MIN_COUNT, NEGATIVES, WORD_GRAMS, LOSS, MODEL, BUCKETS, MIN_N, MAX_N, RATE_EVERY, ARGS };

/* True if each word has one input and one output row, and there are no labels. */
static bool is_plain(const int32_t arg[ARGS], const int32_t size[3], const int64_t count[2])
{
    return arg[DIM] >= 1 && arg[DIM] <= 1 << 16 && size[0] >= 1 && size[1] == size[0] && !size[2] && count[0] >= 0 &&
           count[1] <= 0;
}

/* True for n-grams of at most 255 characters in at least one bucket, or no n-grams (MAX_N 0) with any number of
 * buckets. */
static bool has_sound_grams(const int32_t arg[ARGS])
{
    if (arg[BUCKETS] < 0 || arg[MIN_N] < 0 || arg[MAX_N] < 0 || arg[MAX_N] > 255) return false;
    return !arg[MAX_N] || (arg[BUCKETS] >= 1 && arg[MIN_N] <= arg[MAX_N] && arg[MAX_N] - arg[MIN_N] <= 15);
}

static bool take_head(tn__vectors_in *f, int32_t arg[ARGS], double *sample, int32_t size[3], int64_t count[2])
{
    int32_t head[2];
    if (!tn__in_take(f, head, sizeof head)) return false;
    if (head[0] != MAGIC || head[1] < 11 || head[1] > VERSION)
        return tn__in_fail(f, "version %d of FastText's format; expected 11 or 12", head[1]);
    if (!tn__in_take(f, arg, ARGS * sizeof *arg) || !tn__in_take(f, sample, sizeof *sample) ||
        !tn__in_take(f, size, 3 * sizeof *size) || !tn__in_take(f, count, 2 * sizeof *count))
        return false;
    if (arg[MODEL] != 1 && arg[MODEL] != 2)
        return tn__in_fail(f, "a classifier; expected a model of words (skipgram, cbow)");
    if (!is_plain(arg, size, count))
        return tn__in_fail(f,
                           "%d numbers per row, %d entries, %d words, %d labels, %lld kept n-grams: not a plain model",
                           arg[DIM], size[0], size[1], size[2], (long long)count[1]);
    if (!has_sound_grams(arg) || !isfinite(*sample))
        return tn__in_fail(f, "invalid n-grams of %d to %d characters in %d buckets", arg[MIN_N], arg[MAX_N],
                           arg[BUCKETS]);
    return true;
}

static bool take_words(tn__vectors_in *f, tn_vectors *v, int32_t n)
{
    char word[MAX_WORD + 2];
    for (int32_t i = 0; i < n; i++) {
        int8_t        type;
        const int64_t bytes = tn__in_word(f, word, MAX_WORD, 0);
        if (bytes < 0 || !tn__in_name(f, v, word, bytes) || !tn__in_take(f, &v->count[i], 8) ||
            !tn__in_take(f, &type, 1))
            return false;
        if (v->count[i] < 0 || type)
            return tn__in_fail(f, "word %d has count %lld and type %d; expected at least 0 and 0", i + 1,
                               (long long)v->count[i], type);
    }
    return true;
}

/* Reads a matrix, which must have this size. */
static float *take_rows(tn__vectors_in *f, int64_t rows, int64_t dim)
{
    uint8_t quantized;
    int64_t size[2], all, bytes;
    if (!tn__in_take(f, &quantized, 1)) return NULL;
    if (quantized) return tn__in_fail(f, "the rows are quantized, which is not supported"), NULL;
    if (!tn__in_take(f, size, sizeof size)) return NULL;
    if (size[0] != rows || size[1] != dim)
        return tn__in_fail(f, "a matrix of %lld by %lld, expected %lld by %lld", (long long)size[0], (long long)size[1],
                           (long long)rows, (long long)dim),
               NULL;
    if (!tn__mul_i64(rows, dim, &all) || !tn__mul_i64(all, 4, &bytes) || bytes > f->source.size - f->at)
        return tn__in_fail(f, "the file ends within a matrix"), NULL;
    float *x = tn__mem_get((size_t)bytes);
    if (x && tn__in_take(f, x, bytes) && tn__in_finite(f, x, all)) return x;
    tn__mem_put(x, (size_t)bytes);
    return NULL;
}

tn_vectors *tn__read_fasttext(tn__vectors_in *f)
{
    int32_t arg[ARGS] = {0}, size[3] = {0};
    int64_t count[2] = {0};
    double  sample = 0;
    if (!take_head(f, arg, &sample, size, count)) return NULL;
    tn_vectors *v = tn__in_vectors(f, size[0], arg[DIM], 11 + 8 * (int64_t)arg[DIM]);
    if (v && take_words(f, v, size[0])) {
        const int64_t buckets = arg[MAX_N] ? arg[BUCKETS] : 0;
        tn__subwords  g = {.min_n = arg[MIN_N],
                           .max_n = arg[MAX_N],
                           .window = arg[WINDOW],
                           .epochs = arg[EPOCHS],
                           .min_count = arg[MIN_COUNT],
                           .negatives = arg[NEGATIVES],
                           .loss = arg[LOSS],
                           .model = arg[MODEL],
                           .rate_every = arg[RATE_EVERY],
                           .sample = sample,
                           .tokens = count[0]};
        /* a file without n-grams may have unused buckets */
        float *in = take_rows(f, size[0] + (buckets ? buckets : arg[BUCKETS]), arg[DIM]);
        v->grams = g, v->grams.in = in;
        v->grams.buckets = buckets ? buckets : arg[BUCKETS];
        if (in) v->grams.out = take_rows(f, size[0], arg[DIM]);
        if (in && v->grams.out && f->at != f->source.size) tn__in_fail(f, "data after the end of the model");
        if (tn__self.error == TN_OK) tn__vectors_compose(v);
    }
    if (v && tn__self.error == TN_OK) return v;
    tn_vectors_free(v);
    return NULL;
}

static bool put_rows(tn__vectors_out *o, const float *x, int64_t rows, int64_t dim)
{
    const int64_t size[2] = {rows, dim};
    const uint8_t plain = 0;
    if (!tn__out_put(o, &plain, 1) || !tn__out_put(o, size, sizeof size)) return false;
    return tn__out_put(o, x, (size_t)(rows * dim) * sizeof *x);
}

bool tn__write_fasttext(tn__vectors_out *o, const tn_vectors *v)
{
    const tn__subwords *g = &v->grams;
    const int32_t       n = (int32_t)v->words.n, head[2] = {MAGIC, VERSION}, size[3] = {n, n, 0};
    const int32_t       arg[ARGS] = {
              [DIM] = (int32_t)v->dim,         [WINDOW] = g->window, [EPOCHS] = g->epochs, [MIN_COUNT] = g->min_count,
              [NEGATIVES] = g->negatives,      [WORD_GRAMS] = 1,     [LOSS] = g->loss,     [MODEL] = g->model,
              [BUCKETS] = (int32_t)g->buckets, [MIN_N] = g->min_n,   [MAX_N] = g->max_n,   [RATE_EVERY] = g->rate_every,
    };
    const int64_t count[2] = {g->tokens, -1};
    bool          done = tn__out_put(o, head, sizeof head) && tn__out_put(o, arg, sizeof arg) &&
                tn__out_put(o, &g->sample, sizeof g->sample) && tn__out_put(o, size, sizeof size) &&
                tn__out_put(o, count, sizeof count);
    for (int64_t i = 0; done && i < n; i++) {
        const tn_text word = tn__strings_at(&v->words, i);
        done = tn__out_put(o, word.at, word.bytes + 1) && tn__out_put(o, &v->count[i], 8) && tn__out_put(o, "", 1);
    }
    return done && put_rows(o, g->in, n + g->buckets, v->dim) && put_rows(o, g->out, n, v->dim);
}
