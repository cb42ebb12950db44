/* thoughts.c — vectors sentence --model: sentence vectors from a skip-thought model. If word vectors are given, words
 * unknown to the model are mapped from them (Kiros and others 2015) by the matrix M that minimises |M v - e|² over the
 * words that both know; a Cholesky decomposition solves (Σ v vᵀ + λ) Mᵀ = Σ v eᵀ. */
#include "programs/common/numbers.h"
#include "programs/common/texts.h"
#include "vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool sum_common_words(const thoughts *t, int64_t p, int64_t d, double *a, double *b)
{
    float  *v = malloc((size_t)p * sizeof *v);
    int64_t both = 0;
    for (int64_t i = 2; v && i < tn_tokenizer_size(t->tokens); i++) {
        if (!tn_vectors_of(t->vectors, tn_text_of(tn_tokenizer_token(t->tokens, i)), v)) continue;
        both++;
        for (int64_t k = 0; k < p; k++) {
            for (int64_t j = 0; j <= k; j++) a[k * p + j] += (double)v[k] * (double)v[j];
            for (int64_t j = 0; j < d; j++) b[k * d + j] += (double)v[k] * tn_get(t->net->words->weight, i * d + j);
        }
    }
    free(v);
    if (both < 2)
        tn_raise(TN_EFORMAT, "the model and --vectors have %lld words in common; at least 2 are needed",
                 (long long)both);
    return tn_error() == TN_OK;
}

/* Overwrites the lower half of a [p, p] with L, where L Lᵀ = a, and then b [p, d] with the solution x of a x = b. */
static void solve(int64_t p, int64_t d, double *a, double *b)
{
    for (int64_t k = 0; k < p; k++)
        for (int64_t j = 0; j <= k; j++) {
            double sum = a[k * p + j];
            for (int64_t i = 0; i < j; i++) sum -= a[k * p + i] * a[j * p + i];
            a[k * p + j] = j < k ? sum / a[j * p + j] : sqrt(fmax(sum, 1e-12));
        }
    for (int64_t j = 0; j < d; j++) {
        for (int64_t k = 0; k < p; k++) {
            for (int64_t i = 0; i < k; i++) b[k * d + j] -= a[k * p + i] * b[i * d + j];
            b[k * d + j] /= a[k * p + k];
        }
        for (int64_t k = p; k-- > 0;) {
            for (int64_t i = k + 1; i < p; i++) b[k * d + j] -= a[i * p + k] * b[i * d + j];
            b[k * d + j] /= a[k * p + k];
        }
    }
}

static bool find_map(thoughts *t)
{
    const int64_t p = tn_vectors_dim(t->vectors), d = t->net->config.dim;
    double       *a = calloc((size_t)(p * p), sizeof *a), trace = 0;
    t->map = calloc((size_t)(p * d), sizeof *t->map);
    if (!a || !t->map)
        tn_raise(TN_ENOMEM, "no memory for a map from dimension %lld to %lld", (long long)p, (long long)d);
    if (a && t->map && sum_common_words(t, p, d, a, t->map)) {
        for (int64_t k = 0; k < p; k++) trace += a[k * p + k];
        for (int64_t k = 0; k < p; k++) a[k * p + k] += 1e-3 * trace / (double)p + 1e-9;
        solve(p, d, a, t->map);
    }
    free(a);
    return tn_error() == TN_OK;
}

bool thoughts_open(thoughts *t, const char *dir, tn_vectors *vectors)
{
    *t = (thoughts){.net = tn_skip_thought_load(dir), .vectors = vectors};
    if (t->net) t->tokens = tn_tokenizer_load(dir);
    if (t->tokens && tn_tokenizer_size(t->tokens) > t->net->config.vocab)
        tn_raise(TN_EFORMAT,
                 "'%s': the tokenizer has %lld tokens, more than the model's %lld; it belongs to another model", dir,
                 (long long)tn_tokenizer_size(t->tokens), (long long)t->net->config.vocab);
    return tn_error() == TN_OK && (!vectors || find_map(t));
}

void thoughts_close(thoughts *t)
{
    tn_module_free(t->net);
    tn_tokenizer_free(t->tokens);
    free(t->map);
}

/* Writes a word's vector: its embedding in the model, its mapped word vector, or the embedding of <unk>. */
static void word_vector(const thoughts *t, tn_text word, float *v, float *to)
{
    char          name[256];
    const int64_t d = t->net->config.dim, p = t->vectors ? tn_vectors_dim(t->vectors) : 0;
    snprintf(name, sizeof name, "%.*s", word.bytes < sizeof name ? (int)word.bytes : 0, word.at);
    int64_t id = *name ? tn_tokenizer_id(t->tokens, name) : -1;
    if (id < 0 && p && tn_vectors_of(t->vectors, word, v)) {
        for (int64_t j = 0; j < d; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p; k++) sum += (double)v[k] * t->map[k * d + j];
            to[j] = (float)sum;
        }
        return;
    }
    for (int64_t j = 0; j < d; j++) to[j] = (float)tn_get(t->net->words->weight, (id < 0 ? 0 : id) * d + j);
}

bool thoughts_sentence(const thoughts *t, tn_text line, float *to)
{
    enum { LONGEST = 60 };
    const int64_t  d = t->net->config.dim;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = tn_zeros(TN_SHAPE(1, LONGEST, d)), *length = tn_zeros_of(TN_I64, TN_SHAPE(1));
    float         *row = x ? tn_data_mut(x) : NULL,
          *v = malloc((size_t)(t->vectors ? tn_vectors_dim(t->vectors) : 1) * sizeof *v);
    int64_t n = 0;
    tn_text word;
    for (size_t at = 0; row && v && n < LONGEST && texts_word(line, &at, &word);)
        word_vector(t, word, v, row + n++ * d);
    if (length) tn_set_i64(length, 0, n);
    tn_tensor *y = tn_skip_thought_encode(t->net, x, length);
    if (y) memcpy(to, tn_data(tn_contiguous(y)), (size_t)t->net->config.hidden * sizeof *to);
    if (y) numbers_vector(to, t->net->config.hidden);
    free(v);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
