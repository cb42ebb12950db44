/* queries.c — nearest words and analogies. The scores of many questions with all words are one matrix product. */
#include "extras/vectors/queries.h"
#include "core/base/toolbox.h"
#include "core/products/gemm.h"

#include <math.h>

static float length_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    return (float)sqrt(sum);
}

/* score [n, words] = cosines of the questions [n, dim] with all words */
static bool cosines(const tn_vectors *v, int64_t n, const float *question, float *score)
{
    const int64_t       words = v->words.n;
    const tn__gemm_call g = {.dtype = TN_F32,
                             .ctype = TN_F32,
                             .m = n,
                             .n = words,
                             .k = v->dim,
                             .a = question,
                             .b = v->row,
                             .c = score,
                             .a_row = v->dim,
                             .a_col = 1,
                             .b_row = 1,
                             .b_col = v->dim,
                             .c_row = words,
                             .c_col = 1,
                             .alpha = 1};
    if (!tn__gemm_run(&g)) return false;
    for (int64_t i = 0; i < n; i++) {
        const float all = length_of(question + i * v->dim, v->dim);
        for (int64_t w = 0; w < words; w++) {
            const float by = all * v->length[w];
            score[i * words + w] = by > 0 ? score[i * words + w] / by : 0.0f;
        }
    }
    return true;
}

/* The best n scores, in order, except words in `skip`; ties in the order of the words. */
static int64_t best(const float *score, int64_t words, const int64_t *skip, int skips, int64_t n, tn_vectors_near *to)
{
    int64_t found = 0;
    for (int64_t w = 0; w < words; w++) {
        if (found == n && score[w] <= to[n - 1].score) continue;
        bool out = false;
        for (int i = 0; i < skips; i++) out = out || skip[i] == w;
        if (out) continue;
        int64_t at = found < n ? found++ : n - 1;
        for (; at > 0 && to[at - 1].score < score[w]; at--) to[at] = to[at - 1];
        to[at] = (tn_vectors_near){w, score[w]};
    }
    return found;
}

int64_t tn_vectors_nearest(const tn_vectors *v, const float *x, const int64_t *skip, int skips, int64_t n,
                           tn_vectors_near *to)
{
    if (tn__blocked()) return 0;
    if (!v || !x || !to || n < 1) return tn_raise(TN_EINVAL, "tn_vectors_nearest: v, x or to is NULL, or n is 0"), 0;
    const size_t bytes = (size_t)v->words.n * sizeof(float);
    float       *score = tn__mem_get(bytes);
    int64_t      found = 0;
    if (score && cosines(v, 1, x, score)) found = best(score, v->words.n, skip, skips, n, to);
    tn__mem_put(score, bytes);
    return found;
}

/* ---- analogies --------------------------------------------------------------------------------------------------- */

static void add_unit(const tn_vectors *v, int64_t word, float by, float *to)
{
    const float scale = v->length[word] > 0 ? by / v->length[word] : 0.0f;
    for (int64_t k = 0; k < v->dim; k++) to[k] += scale * v->row[word * v->dim + k];
}

/* Writes b - a + c of the unit vectors; or a, b and c, one after the other. */
static void put_question(const tn_vectors *v, const int64_t abc[3], bool product, float *to)
{
    static const float sign[3] = {-1, 1, 1};
    memset(to, 0, (size_t)((product ? 3 : 1) * v->dim) * sizeof *to);
    for (int k = 0; k < 3; k++) add_unit(v, abc[k], product ? 1 : sign[k], to + (product ? k * v->dim : 0));
}

/* Shifts cosines to 0 … 1, as Levy and Goldberg do, so that products are meaningful. */
static void multiply(float *score, int64_t words)
{
    for (int64_t w = 0; w < words; w++) {
        const float a = (score[w] + 1) / 2, b = (score[words + w] + 1) / 2, c = (score[2 * words + w] + 1) / 2;
        score[w] = b * c / (a + 0.001f);
    }
}

bool tn__analogies(const tn_vectors *v, int64_t n, const int64_t (*abc)[3], bool product, int64_t most,
                   tn_vectors_near *to, int64_t *found)
{
    const int64_t words = v->words.n, rows = product ? 3 : 1;
    const int64_t batch = tn__max_i64(1, tn__min_i64(n, (16 << 20) / (rows * words)));
    const size_t  question_bytes = (size_t)(batch * rows * v->dim) * sizeof(float);
    const size_t  score_bytes = (size_t)(batch * rows * words) * sizeof(float);
    float        *question = tn__mem_get(question_bytes), *score = tn__mem_get(score_bytes);
    for (int64_t at = 0; question && score && at < n; at += batch) {
        const int64_t some = tn__min_i64(batch, n - at);
        for (int64_t i = 0; i < some; i++) put_question(v, abc[at + i], product, question + i * rows * v->dim);
        if (!cosines(v, some * rows, question, score)) break;
        for (int64_t i = 0; i < some; i++) {
            float *its = score + i * rows * words;
            if (product) multiply(its, words);
            found[at + i] = best(its, words, abc[at + i], 3, most, to + (at + i) * most);
        }
    }
    tn__mem_put(question, question_bytes), tn__mem_put(score, score_bytes);
    return tn__self.error == TN_OK;
}

int64_t tn_vectors_analogous(const tn_vectors *v, const int64_t abc[3], bool product, int64_t n, tn_vectors_near *to)
{
    if (tn__blocked()) return 0;
    if (!v || !abc || !to || n < 1)
        return tn_raise(TN_EINVAL, "tn_vectors_analogous: v, abc or to is NULL, or n is 0"), 0;
    for (int k = 0; k < 3; k++)
        if (abc[k] < 0 || abc[k] >= (int64_t)v->words.n)
            return tn_raise(TN_EINDEX, "tn_vectors_analogous: no word %lld", (long long)abc[k]), 0;
    const int64_t one[1][3] = {{abc[0], abc[1], abc[2]}};
    int64_t       found = 0;
    return tn__analogies(v, 1, one, product, n, to, &found) ? found : 0;
}
