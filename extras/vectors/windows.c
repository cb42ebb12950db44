/* windows.c — learning from windows of words: skip-gram, CBOW, FastText.
 *
 * Skip-gram as in word2vec.c: each word of the window predicts the word in its middle. All of them use the same
 * negatives, so that a window is a small matrix product (Ji et al. 2016). The negatives of a shard come from a
 * pool of draws, so that they stay in the cache. */
#include "extras/vectors/vectors_private.h"

enum { OUTS = TN__WORD_PAIRS_OUT, WINDOW = 2 * 255, GRAMS = 4096 };

/* The targets of a prediction: the word and the negatives, or the nodes of its path in the tree. */
typedef struct {
    float *out[OUTS];
    float  label[OUTS], shift[OUTS];
    int    n;
} targets;

static uint64_t draw(tn__shard *s) { return tn__splitmix(s->random += 0x9e3779b97f4a7c15u); }

static void tree_targets(const tn__shard *s, int32_t id, targets *a)
{
    const tn__tree *tree = &s->t->tree;
    a->n = 0;
    for (int64_t k = tree->start[id]; k < tree->start[id + 1]; k++, a->n++) {
        a->out[a->n] = tn__copy_of(&s->out, tree->node[k], s->t->width);
        a->label[a->n] = 1 - tree->turn[k];
    }
}

static void targets_of(tn__shard *s, int64_t i, targets *a)
{
    const tn__trainer *t = s->t;
    if (t->tree.node) {
        tree_targets(s, s->token[i], a);
        return;
    }
    const int32_t self = s->out_at[i];
    a->out[0] = s->out.x + self * t->width, a->label[0] = 1, a->n = 1;
    if (t->shift) a->shift[0] = t->shift[s->token[i]];
    for (int64_t k = 0; k < t->a.negatives; k++) {
        const int32_t copy = s->pool[draw(s) >> 32 & (uint64_t)(t->pool - 1)];
        if (copy == self) continue;
        if (t->shift) a->shift[a->n] = t->shift[s->out.row[copy]];
        a->out[a->n] = s->out.x + copy * t->width, a->label[a->n++] = 0;
    }
}

static void learn(const tn__shard *s, int ins, float *const *in, const targets *a)
{
    const tn__trainer        *t = s->t;
    const tn__word_pairs_step step = {ins, a->n, t->width, in, a->out, a->label, t->shift ? a->shift : NULL, t->rate};
    if (a->n) t->kernels->learn(&step);
}

/* The gradient of -log softmax is p - 1 for the target word and p for all others. */
void tn__learn_softmax(const tn__shard *s, int32_t word, int ins, float *const *in)
{
    const tn__trainer     *t = s->t;
    const int64_t          outs = t->out.rows, width = t->width;
    const tn__vecmath_f32 *f32 = tn__kernels()->f32;
    const int              wide = ins == 1 ? 1 : TN__WORD_PAIRS_IN; /* padded with the last row, with gradient 0 */
    float *row[TN__WORD_PAIRS_IN], *more[TN__WORD_PAIRS_IN], *out[OUTS], block[TN__WORD_PAIRS_IN * OUTS],
        by[TN__WORD_PAIRS_IN];
    float *p = s->logit, *sums = s->logit + TN__WORD_PAIRS_IN * outs;
    for (int i = 0; i < wide; i++) row[i] = in[i < ins ? i : ins - 1], more[i] = sums + i * width;
    memset(sums, 0, (size_t)(wide * width) * sizeof *sums);
    tn__word_pairs_step step = {.ins = wide, .width = width, .in = row, .out = out};
    for (int64_t from = 0; from < outs; from += OUTS) {
        step.outs = (int)(outs - from < OUTS ? outs - from : OUTS);
        for (int j = 0; j < step.outs; j++) out[j] = s->out.x + (from + j) * width;
        t->kernels->dots(&step, block);
        for (int j = 0; j < step.outs; j++)
            for (int i = 0; i < ins; i++) p[i * outs + from + j] = block[j * wide + i];
    }
    const float *const end = p + ins * outs;
    for (float *x = p, *rate = by; x < end; x += outs)
        *rate++ = (float)((double)t->rate / f32->exp_sum(outs, x, x, f32->highest(outs, x)));
    for (int64_t from = 0; from < outs; from += OUTS) {
        step.outs = (int)(outs - from < OUTS ? outs - from : OUTS);
        for (int j = 0; j < step.outs; j++) {
            out[j] = s->out.x + (from + j) * width;
            for (int i = 0; i < wide; i++)
                block[j * wide + i] =
                    i < ins ? (from + j == word ? t->rate : 0.0f) - by[i] * p[i * outs + from + j] : 0.0f;
        }
        t->kernels->push(&step, block, more);
    }
    for (int i = 0; i < ins; i++) t->kernels->add(width, in[i], more[i]);
}

/* Each of the rows predicts token i. */
static void predict(tn__shard *s, int64_t i, int ins, float *const *in)
{
    targets a;
    if (tn__is_softmax(s->t)) {
        tn__learn_softmax(s, s->token[i], ins, in);
    } else {
        targets_of(s, i, &a);
        learn(s, ins, in, &a);
    }
}

/* Writes the positions of the tokens around i, within its window and its line; returns their number. */
static int around(const tn__shard *s, int64_t i, int64_t *to)
{
    const int64_t reach = s->window[i];
    int64_t       from = i, end = i + 1;
    int           n = 0;
    while (from > 0 && i - from < reach && s->token[from - 1] >= 0) from--;
    while (end < s->tokens && end - i <= reach && s->token[end] >= 0) end++;
    for (int64_t k = from; k < end; k++)
        if (k != i) to[n++] = k;
    return n;
}

void tn__learn_skipgram(tn__shard *s)
{
    int64_t word[WINDOW];
    float  *in[TN__WORD_PAIRS_IN];
    for (int64_t i = s->first; i < s->last; i++) {
        if (s->token[i] < 0) continue;
        const int n = around(s, i, word), blocks = (n + TN__WORD_PAIRS_IN - 1) / TN__WORD_PAIRS_IN;
        for (int b = 0; b < blocks; b++) {
            const int from = n * b / blocks, to = n * (b + 1) / blocks;
            for (int k = from; k < to; k++) in[k - from] = s->in.x + s->in_at[word[k]] * s->t->width;
            predict(s, i, to - from, in);
        }
    }
}

/* The mean of the surrounding words' rows predicts the word; its change is applied to all of them. */
void tn__learn_cbow(tn__shard *s)
{
    const tn__trainer *t = s->t;
    int64_t            word[WINDOW];
    float             *in[WINDOW], *mean = s->scratch, *before = s->scratch + t->width;
    for (int64_t i = s->first; i < s->last; i++) {
        const int n = s->token[i] < 0 ? 0 : around(s, i, word);
        if (!n) continue;
        for (int k = 0; k < n; k++) in[k] = s->in.x + s->in_at[word[k]] * t->width;
        t->kernels->mean(n, (const float *const *)in, t->width, 1.0f / (float)n, mean);
        memcpy(before, mean, (size_t)t->width * sizeof *mean);
        predict(s, i, 1, &mean);
        t->kernels->spread(n, in, t->width, 1, mean, before);
    }
}

/* The mean of the rows of a word and its n-grams predicts each surrounding word in turn. A change of the rows changes
 * their mean equally: so only the mean is updated, and the rows get the total change at the end. */
void tn__learn_fasttext(tn__shard *s)
{
    const tn__trainer *t = s->t;
    int64_t            word[WINDOW];
    float             *in[GRAMS], *mean = s->scratch, *before = s->scratch + t->width;
    for (int64_t i = s->first; i < s->last; i++) {
        const int32_t id = s->token[i];
        const int     n = id < 0 ? 0 : around(s, i, word);
        if (!n) continue;
        const int64_t from = t->gram_start[id];
        const int     rows = (int)(t->gram_start[id + 1] - from);
        for (int k = 0; k < rows; k++) in[k] = tn__copy_of(&s->in, t->gram[from + k], t->width);
        t->kernels->mean(rows, (const float *const *)in, t->width, 1.0f / (float)rows, mean);
        memcpy(before, mean, (size_t)t->width * sizeof *mean);
        for (int k = 0; k < n; k++) predict(s, word[k], 1, &mean);
        t->kernels->spread(rows, in, t->width, 1, mean, before);
    }
}
