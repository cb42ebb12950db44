/* agreement.c — agreement of two columns: F1 and Matthews' coefficient of labels, as in scikit-learn; Pearson's and
 * Spearman's correlation of numbers, as in SciPy. */
#include "core/base/toolbox.h"
#include "data/metrics.h"

#include <math.h>
#include <stdlib.h>

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* Counts of a label: correct, in gold, predicted. */
typedef struct {
    int64_t label, right, gold, predicted;
} decision;

static int by_label(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool arguments(const char *who, int64_t n, const void *a, const void *b)
{
    if (tn__blocked()) return false;
    if (n >= 0 && ((a && b) || !n)) return true;
    return tn_raise_false(TN_EINVAL, n < 0 ? "%s: n is %lld" : "%s: one of the arrays is NULL, and n is %lld", who,
                          (long long)n);
}

/* Returns the labels that occur, in order, in an array of 2n; NULL: raised. */
static decision *decisions(const char *who, int64_t n, const int64_t *gold, const int64_t *predicted, int64_t *labels)
{
    int64_t bytes;
    if (!tn__mul_i64(n, 2 * (int64_t)sizeof(decision), &bytes)) bytes = INT64_MAX;
    decision *d = arguments(who, n, gold, predicted) ? tn__mem_get((size_t)bytes) : NULL;
    *labels = 0;
    if (!d) return NULL;
    for (int64_t i = 0; i < n; i++) {
        d[2 * i] = (decision){gold[i], gold[i] == predicted[i], 1, 0};
        d[2 * i + 1] = (decision){predicted[i], 0, 0, 1};
    }
    if (n) qsort(d, (size_t)(2 * n), sizeof *d, by_label);
    for (int64_t i = 0; i < 2 * n; i++) {
        if (!*labels || d[*labels - 1].label != d[i].label) {
            d[(*labels)++] = d[i];
            continue;
        }
        decision *to = &d[*labels - 1];
        to->right += d[i].right, to->gold += d[i].gold, to->predicted += d[i].predicted;
    }
    return d;
}

static void decisions_free(decision *d, int64_t n) { tn__mem_put(d, (size_t)n * 2 * sizeof *d); }

double tn_f1(tn_f1_mean how, int64_t n, const int64_t *gold, const int64_t *predicted)
{
    int64_t labels, right = 0;
    double  binary = 0, sum = 0;
    if ((unsigned)how > TN_F1_MACRO) return tn_raise(TN_EINVAL, "tn_f1: how is not a tn_f1_mean"), NAN;
    decision *d = decisions("tn_f1", n, gold, predicted, &labels);
    if (!d) return NAN;
    for (int64_t i = 0; i < labels; i++) {
        const double f1 = 2 * (double)d[i].right / (double)(d[i].gold + d[i].predicted);
        if (d[i].label == 1) binary = f1;
        sum += f1, right += d[i].right;
    }
    decisions_free(d, n);
    if (how == TN_F1_BINARY || !n) return binary;
    return how == TN_F1_MICRO ? (double)right / (double)n : sum / (double)labels;
}

/* Covariance of the two columns of indicators over the square root of the product of their variances (Gorodkin 2004); 0
 * if one of them is constant. */
double tn_matthews(int64_t n, const int64_t *gold, const int64_t *predicted)
{
    int64_t   labels, right = 0;
    decision *d = decisions("tn_matthews", n, gold, predicted, &labels);
    if (!d) return NAN;
    const double all = (double)n;
    double       both = 0, g2 = 0, p2 = 0;
    for (int64_t i = 0; i < labels; i++) {
        const double g = (double)d[i].gold, p = (double)d[i].predicted;
        both += g * p, g2 += g * g, p2 += p * p, right += d[i].right;
    }
    decisions_free(d, n);
    const double spread = (all * all - g2) * (all * all - p2);
    return spread > 0 ? ((double)right * all - both) / sqrt(spread) : 0;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Computes the mean and the largest distance from it; false: all numbers are equal, or one is not finite. */
static bool centre(int64_t n, const double *x, double *mean, double *most)
{
    bool   equal = true;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i], equal = equal && x[i] == x[0];
    *mean = sum / (double)n, *most = 0;
    for (int64_t i = 0; i < n; i++) *most = fmax(*most, fabs(x[i] - *mean));
    return !equal && isfinite(sum) && *most > 0;
}

/* Scales both columns to at most 1, so that no square overflows or underflows. */
static double correlation(int64_t n, const double *x, const double *y)
{
    double mx, my, sx, sy, xx = 0, yy = 0, xy = 0;
    if (n < 2 || !centre(n, x, &mx, &sx) || !centre(n, y, &my, &sy)) return NAN;
    for (int64_t i = 0; i < n; i++) {
        const double a = (x[i] - mx) / sx, b = (y[i] - my) / sy;
        xx += a * a, yy += b * b, xy += a * b;
    }
    return fmax(-1, fmin(1, xy / (sqrt(xx) * sqrt(yy))));
}

double tn_pearson(int64_t n, const double *x, const double *y)
{
    return arguments("tn_pearson", n, x, y) ? correlation(n, x, y) : NAN;
}

typedef struct {
    double  value;
    int64_t at;
} placed;

static int by_value(const void *a, const void *b)
{
    const double x = ((const placed *)a)->value, y = ((const placed *)b)->value;
    return (x > y) - (x < y);
}

/* Ranks from 1; ties get the mean of their ranks. */
static void rank(int64_t n, const double *x, placed *work, double *ranks)
{
    for (int64_t i = 0; i < n; i++) work[i] = (placed){x[i], i};
    qsort(work, (size_t)n, sizeof *work, by_value);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && work[end].value == work[i].value; end++) {}
        for (int64_t k = i; k < end; k++) ranks[work[k].at] = (double)(i + 1 + end) / 2;
    }
}

double tn_spearman(int64_t n, const double *x, const double *y)
{
    if (!arguments("tn_spearman", n, x, y) || n < 2) return NAN;
    for (int64_t i = 0; i < n; i++)
        if (x[i] != x[i] || y[i] != y[i]) return NAN;
    const int64_t each = (int64_t)(sizeof(placed) + 2 * sizeof(double));
    int64_t       bytes;
    if (!tn__mul_i64(n, each, &bytes)) bytes = INT64_MAX;
    placed *work = tn__mem_get((size_t)bytes);
    if (!work) return NAN;
    double *rx = (double *)(void *)(work + n), *ry = rx + n;
    rank(n, x, work, rx), rank(n, y, work, ry);
    const double r = correlation(n, rx, ry);
    tn__mem_put(work, (size_t)bytes);
    return r;
}
