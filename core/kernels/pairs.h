/* pairs.h — kernels for words as vectors: every row of one table meets every row of another, and both learn.
 *
 * With x the rows of `in` and o those of `out`, f = x·o - shift and g = rate · (label - sigmoid(f)):
 *
 *   x[i] += Σ_j g[i][j] o[j],   o[j] += Σ_i g[i][j] x[i]
 *
 * which is a step of logistic regression for all pairs at once: small products of matrices, where word2vec takes one
 * pair after the other. All gradients are those of the rows as they came in. */
#ifndef TENON_CORE_KERNELS_PAIRS_H
#define TENON_CORE_KERNELS_PAIRS_H

#include <stdint.h>

enum { TN__PAIRS_IN = 8, TN__PAIRS_OUT = 64, TN__PAIRS_WIDTH = 16 }; /* the most rows; rows are whole multiples of it */

typedef struct {
    int           ins, outs;
    int64_t       width; /* elements in a row, a multiple of TN__PAIRS_WIDTH: what is beyond the dimension is 0 */
    float *const *in, *const *out;
    const float *label, *shift; /* of each row of out; shift may be NULL: 0 */
    float        rate;
} tn__pairs_step;

/* A pair of words that GloVe has counted: with d = w·c + b_w + b_c - log x, every element learns by AdaGrad at a rate
 * of 1, which divides by the root of the sum of squares so far. The biases stand behind the width elements of a row. */
typedef struct {
    int64_t width;
    float  *word, *context, *word_squares, *context_squares;
    float   log_count, weight;
} tn__glove_step;

typedef struct {
    void (*learn)(const tn__pairs_step *s);
    /* to = by · Σ rows */
    void (*mean)(int64_t n, const float *const *row, int64_t width, float by, float *to);
    /* every row += by · (now - before) */
    void (*spread)(int64_t n, float *const *row, int64_t width, float by, const float *now, const float *before);
    /* x -= from;   to += x */
    void (*subtract)(int64_t n, float *x, const float *from);
    void (*add)(int64_t n, float *to, const float *x);
    float (*glove)(const tn__glove_step *s); /* returns weight · d² / 2 */
    /* What softmax over many rows is made of, for one row of in or TN__PAIRS_IN of them: dot[j · ins + i] = x[i]·o[j];
     * and, with slopes g of the same layout, o[j] += Σ_i g x[i] and more[i] += Σ_j g o[j], of the rows as they came. */
    void (*dots)(const tn__pairs_step *s, float *dot);
    void (*push)(const tn__pairs_step *s, const float *slope, float *const *more);
} tn__pairs_kernels;

#endif
