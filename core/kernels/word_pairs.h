/* word_pairs.h — kernels for word vectors: every row of one table is paired with every row of another, and both learn.
 *
 * With x the rows of `in` and o those of `out`, f = x·o - shift and g = rate · (label - sigmoid(f)):
 *
 *   x[i] += Σ_j g[i][j] o[j],   o[j] += Σ_i g[i][j] x[i]
 *
 * which is a step of logistic regression for all pairs at once: small matrix products, where word2vec processes one
 * pair at a time. All gradients use the rows' values before the step. */
#ifndef TENON_CORE_KERNELS_WORD_PAIRS_H
#define TENON_CORE_KERNELS_WORD_PAIRS_H

#include <stdint.h>

enum {
    TN__WORD_PAIRS_IN = 8,
    TN__WORD_PAIRS_OUT = 64,
    TN__WORD_PAIRS_WIDTH = 16
}; /* maximum rows; unit of row lengths */

typedef struct {
    int           ins, outs;
    int64_t       width; /* elements in a row, a multiple of TN__WORD_PAIRS_WIDTH: those beyond the dimension are 0 */
    float *const *in, *const *out;
    const float *label, *shift; /* of each row of out; shift may be NULL: 0 */
    float        rate;
} tn__word_pairs_step;

/* A pair of words counted by GloVe: with d = w·c + b_w + b_c - log x, every element is updated by AdaGrad with rate 1,
 * which divides by the root of the sum of past squares. The biases follow the width elements of a row. */
typedef struct {
    int64_t width;
    float  *word, *context, *word_squares, *context_squares;
    float   log_count, weight;
} tn__glove_step;

typedef struct {
    void (*learn)(const tn__word_pairs_step *s);
    /* to = by · Σ rows */
    void (*mean)(int64_t n, const float *const *row, int64_t width, float by, float *to);
    /* every row += by · (now - before) */
    void (*spread)(int64_t n, float *const *row, int64_t width, float by, const float *now, const float *before);
    /* x -= from;   to += x */
    void (*subtract)(int64_t n, float *x, const float *from);
    void (*add)(int64_t n, float *to, const float *x);
    float (*glove)(const tn__glove_step *s); /* returns weight · d² / 2 */
    /* Building blocks of softmax over many rows, for one row of in or TN__WORD_PAIRS_IN of them:
     * dot[j·ins + i] = x[i]·o[j]; and, with slopes g of the same layout and the old rows, o[j] += Σ_i g x[i] and
     * more[i] += Σ_j g o[j]. */
    void (*dots)(const tn__word_pairs_step *s, float *dot);
    void (*push)(const tn__word_pairs_step *s, const float *slope, float *const *more);
} tn__word_pairs_kernels;

#endif
