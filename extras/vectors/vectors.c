/* vectors.c — creates, looks up and returns word vectors; FastText's n-grams. */
#include "extras/vectors/vectors_private.h"
#include "core/base/toolbox.h"

#include <math.h>

void *tn__scope_room(int64_t n, size_t size)
{
    int64_t bytes;
    if (!tn__mul_i64(n, (int64_t)size, &bytes)) bytes = INT64_MAX;
    return tn_data_mut(tn_empty_of(TN_U8, TN_SHAPE(bytes)));
}

tn_vectors *tn__vectors_new(int64_t words, int64_t dim)
{
    int64_t all, bytes;
    if (words < 1 || dim < 1 || !tn__mul_i64(words, dim, &all) || !tn__mul_i64(all, sizeof(float), &bytes))
        return tn_raise_null(TN_EINVAL, "%lld words of %lld numbers: not vectors", (long long)words, (long long)dim);
    tn_vectors *v = tn__mem_zeroed(sizeof *v);
    if (!v) return NULL;
    v->dim = dim, v->room = words;
    v->row = tn__mem_get((size_t)bytes);
    v->count = tn__mem_zeroed((size_t)words * sizeof *v->count);
    v->length = tn__mem_get((size_t)words * sizeof *v->length);
    if (v->row && v->count && v->length) return v;
    tn_vectors_free(v);
    return NULL;
}

void tn_vectors_free(tn_vectors *v)
{
    if (!v) return;
    const int64_t n = v->words.n;
    tn__mem_put(v->grams.in, (size_t)((n + v->grams.buckets) * v->dim) * sizeof(float));
    tn__mem_put(v->grams.out, (size_t)(n * v->dim) * sizeof(float));
    tn__strings_free(&v->words);
    tn__mem_put(v->row, (size_t)(v->room * v->dim) * sizeof *v->row);
    tn__mem_put(v->count, (size_t)v->room * sizeof *v->count);
    tn__mem_put(v->length, (size_t)v->room * sizeof *v->length);
    tn__mem_put(v, sizeof *v);
}

bool tn__vectors_finish(tn_vectors *v)
{
    v->total = 0;
    for (int64_t i = 0; i < v->words.n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < v->dim; k++) sum += (double)v->row[i * v->dim + k] * (double)v->row[i * v->dim + k];
        v->length[i] = (float)sqrt(sum);
        v->total += (double)v->count[i];
    }
    return tn__self.error == TN_OK;
}

int64_t tn_vectors_size(const tn_vectors *v) { return v ? (int64_t)v->words.n : 0; }
int64_t tn_vectors_dim(const tn_vectors *v) { return v ? v->dim : 0; }

tn_text tn_vectors_word(const tn_vectors *v, int64_t i)
{
    return v && i >= 0 && i < (int64_t)v->words.n ? tn__strings_at(&v->words, i) : (tn_text){"", 0};
}

int64_t tn_vectors_find(const tn_vectors *v, tn_text word)
{
    return v && (word.at || !word.bytes) ? tn__strings_find(&v->words, word.at, word.bytes) : -1;
}

tn_tensor *tn_vectors_tensor(const tn_vectors *v)
{
    if (tn__blocked()) return NULL;
    if (!v) return tn_raise_null(TN_EINVAL, "tn_vectors_tensor: v is NULL");
    return tn_from_data(TN_F32, (tn_shape){.n = 2, .d = {v->words.n, v->dim}}, v->row);
}

/* ---- n-grams ----------------------------------------------------------------------------------------------------- */

/* FNV-1a over signed characters, as in FastText. */
static uint32_t ngram_hash(const char *p, int64_t n)
{
    uint32_t h = 2166136261u;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t c = (unsigned char)p[i];
        h = (h ^ (c < 0x80 ? c : c | 0xffffff00u)) * 16777619u;
    }
    return h;
}

static bool is_continuation(char c)
{
    return ((unsigned)(unsigned char)c & 0xc0u) == 0x80;
} /* a continuation byte of UTF-8 */

int64_t tn__ngrams(tn_text word, const tn__subwords *g, int64_t *to, int64_t most)
{
    char          text[4096];
    const int64_t n = (int64_t)word.bytes + 2;
    int64_t       found = 0;
    if (n > (int64_t)sizeof text || !g->max_n || tn__text_is(word, "</s>")) return 0;
    text[0] = '<', text[n - 1] = '>';
    if (word.bytes) memcpy(text + 1, word.at, word.bytes);
    for (int64_t from = 0; from < n; from++) {
        if (is_continuation(text[from])) continue;
        for (int64_t end = from, chars = 1; end < n && chars <= g->max_n; chars++) {
            for (end++; end < n && is_continuation(text[end]);) end++;
            if (chars < g->min_n || (chars == 1 && (from == 0 || end == n))) continue;
            if (found < most) to[found] = (int64_t)(ngram_hash(text + from, end - from) % (uint32_t)g->buckets);
            found++;
        }
    }
    return tn__min_i64(found, most);
}

/* Computes the mean of the word's own row, if any, and of its n-grams; false: no rows. Sums are in f64, so that the
 * mean of finite numbers is finite for any file. */
static bool compose(const tn_vectors *v, int64_t id, tn_text word, float *to)
{
    enum { BLOCK = 64 };
    int64_t       row[4096];
    const int64_t own = id >= 0, all = own + tn__ngrams(word, &v->grams, row + own, 4095 - own);
    for (int64_t i = own; i < all; i++) row[i] += v->words.n;
    if (own) row[0] = id;
    for (int64_t from = 0; from < v->dim; from += BLOCK) {
        const int64_t n = tn__min_i64(BLOCK, v->dim - from);
        double        sum[BLOCK] = {0};
        for (int64_t i = 0; i < all; i++) {
            const float *x = v->grams.in + row[i] * v->dim + from;
            for (int64_t k = 0; k < n; k++) sum[k] += (double)x[k];
        }
        for (int64_t k = 0; k < n; k++) to[from + k] = all ? (float)(sum[k] / (double)all) : 0.0f;
    }
    return all > 0;
}

void tn__vectors_compose(tn_vectors *v)
{
    for (int64_t i = 0; i < v->words.n; i++) compose(v, i, tn__strings_at(&v->words, i), v->row + i * v->dim);
}

bool tn_vectors_of(const tn_vectors *v, tn_text word, float *to)
{
    if (!v || !to) return false;
    const int64_t i = tn_vectors_find(v, word);
    if (i < 0 && v->grams.max_n) return compose(v, -1, word, to);
    if (i >= 0) memcpy(to, v->row + i * v->dim, (size_t)v->dim * sizeof *to);
    else memset(to, 0, (size_t)v->dim * sizeof *to);
    return i >= 0;
}
