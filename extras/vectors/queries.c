/* queries.c — nearest words and analogies. The scores of many questions with all words are one matrix product. */
#include "extras/vectors/queries.h"
#include "core/base/toolbox.h"
#include "autograd/autograd.h"

#include <math.h>

static float length_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    return (float)sqrt(sum);
}

/* A scope whose products are in f32 and not recorded. */
static tn_scope exact_begin(void)
{
    const tn_scope s = tn_no_grad_begin();
    tn_autocast_begin(false); /* ends with s */
    return s;
}

/* The cosines of the questions [n, dim] with all words, [n, words], owned by the scope; NULL: raised. */
static float *cosines(const tn_vectors *v, tn_tensor *questions)
{
    const int64_t words = v->words.n;
    tn_tensor    *rows = tn_borrow(TN_F32, TN_SHAPE(words, v->dim), v->row, NULL, NULL);
    tn_tensor    *y = tn_matmul(questions, tn_transpose(rows, 0, 1));
    const float  *x = tn_data(questions);
    float        *score = y ? tn_data_mut(y) : NULL;
    for (int64_t i = 0; score && i < tn_size(y, 0); i++) {
        const float all = length_of(x + i * v->dim, v->dim);
        for (int64_t w = 0; w < words; w++) {
            const float by = all * v->length[w];
            score[i * words + w] = by > 0 ? score[i * words + w] / by : 0.0f;
        }
    }
    return score;
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
    const tn_scope s = exact_begin();
    const float   *score = cosines(v, tn_from_data(TN_F32, TN_SHAPE(1, v->dim), x));
    const int64_t  found = score ? best(score, v->words.n, skip, skips, n, to) : 0;
    tn_scope_end(s);
    return found;
}

/* ---- analogies --------------------------------------------------------------------------------------------------- */

static void add_unit(const tn_vectors *v, int64_t word, float by, float *to)
{
    const float scale = v->length[word] > 0 ? by / v->length[word] : 0.0f;
    for (int64_t k = 0; k < v->dim; k++) to[k] += scale * v->row[word * v->dim + k];
}

/* Adds b - a + c of the unit vectors; or a, b and c, one after the other. */
static void put_question(const tn_vectors *v, const int64_t abc[3], bool product, float *to)
{
    static const float sign[3] = {-1, 1, 1};
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
    for (int64_t at = 0; at < n && tn__self.error == TN_OK; at += batch) {
        const int64_t  some = tn__min_i64(batch, n - at);
        const tn_scope s = exact_begin();
        tn_tensor     *questions = tn_zeros(TN_SHAPE(some * rows, v->dim));
        float         *question = questions ? tn_data_mut(questions) : NULL;
        for (int64_t i = 0; question && i < some; i++)
            put_question(v, abc[at + i], product, question + i * rows * v->dim);
        float *score = question ? cosines(v, questions) : NULL;
        for (int64_t i = 0; score && i < some; i++) {
            float *its = score + i * rows * words;
            if (product) multiply(its, words);
            found[at + i] = best(its, words, abc[at + i], 3, most, to + (at + i) * most);
        }
        tn_scope_end(s);
    }
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
