/* projection.c — projects rows to points in the plane for figures: along the two directions of
 * largest variance (PCA), or preserving neighbours (t-SNE, van der Maaten and Hinton 2008).
 *
 * t-SNE: rows i and j are neighbours with p_ij, a normal distribution around each row, as wide as gives `perplexity`
 * neighbours; points are neighbours with q_ij ∝ 1 / (1 + |y_i - y_j|²). The points descend along the
 * gradient of Σ p log(p / q), 4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|²), over all pairs in each step. */
#include "core/base/toolbox.h"
#include "extras/vectors/vectors_private.h"

#include <math.h>

enum { MAX_ROWS = 5000 /* for t-SNE: all pairs are stored */, STEPS = 500, EARLY = 100, POWER_STEPS = 300 };

/* Rows in f64 minus their mean. */
static double *centred(const tn_tensor *rows, int64_t n, int64_t dim)
{
    double *x = tn__mem_get((size_t)(n * dim) * sizeof *x);
    if (!x || tn_copy_out(rows, TN_F64, x, (size_t)(n * dim) * sizeof *x) != TN_OK) {
        tn__mem_put(x, (size_t)(n * dim) * sizeof *x);
        return NULL;
    }
    for (int64_t k = 0; k < dim; k++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i * dim + k];
        for (int64_t i = 0; i < n; i++) x[i * dim + k] -= mean / (double)n;
    }
    return x;
}

static bool points_of(const char *who, const tn_tensor *rows)
{
    if (tn__blocked()) return false;
    if (rows && tn_ndim(rows) == 2 && tn_dtype_is_float(tn_dtype_of(rows)) && tn_size(rows, 0) > 1 &&
        tn_size(rows, 1) > 0)
        return true;
    return tn_raise_false(TN_EINVAL, "%s: rows must be [n, dim] of a floating dtype, with at least two rows", who);
}

static double scaled(double *v, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += v[k] * v[k];
    sum = sqrt(sum);
    for (int64_t k = 0; k < n && sum > 0; k++) v[k] /= sum;
    return sum;
}

/* The direction of largest variance orthogonal to `other` (NULL: any), by power iteration of Xᵀ X. */
static void direction(const double *x, int64_t n, int64_t dim, const double *other, double *v, double *next)
{
    for (int64_t k = 0; k < dim; k++)
        v[k] = (double)(tn__splitmix((uint64_t)k + (other != NULL)) >> 40) * 0x1p-24 - 0.5;
    for (int step = 0; step < POWER_STEPS; step++) {
        double along = 0;
        for (int64_t k = 0; other && k < dim; k++) along += v[k] * other[k];
        for (int64_t k = 0; other && k < dim; k++) v[k] -= along * other[k];
        scaled(v, dim);
        memset(next, 0, (size_t)dim * sizeof *next);
        for (int64_t i = 0; i < n; i++) {
            double dot = 0;
            for (int64_t k = 0; k < dim; k++) dot += x[i * dim + k] * v[k];
            for (int64_t k = 0; k < dim; k++) next[k] += dot * x[i * dim + k];
        }
        memcpy(v, next, (size_t)dim * sizeof *v);
        if (scaled(v, dim) == 0) return;
    }
}

tn_tensor *tn_plane_pca(const tn_tensor *rows)
{
    if (!points_of("tn_plane_pca", rows)) return NULL;
    const int64_t n = tn_size(rows, 0), dim = tn_size(rows, 1);
    const size_t  bytes = (size_t)(3 * dim) * sizeof(double);
    double       *x = centred(rows, n, dim), *v = tn__mem_get(bytes);
    tn_tensor    *y = x && v ? tn_empty((tn_shape){.n = 2, .d = {n, 2}}) : NULL;
    float        *to = y ? tn_data_mut(y) : NULL;
    for (int axis = 0; to && axis < 2; axis++) {
        direction(x, n, dim, axis ? v : NULL, v + axis * dim, v + 2 * dim);
        for (int64_t i = 0; i < n; i++) {
            double dot = 0;
            for (int64_t k = 0; k < dim; k++) dot += x[i * dim + k] * v[axis * dim + k];
            to[2 * i + axis] = (float)dot;
        }
    }
    tn__mem_put(v, bytes), tn__mem_put(x, (size_t)(n * dim) * sizeof *x);
    return y;
}

/* ---- t-SNE ------------------------------------------------------------------------------------------------------- */

/* Computes one row of p from squared distances: halves or doubles the width of the normal distribution until the
 * entropy is log(perplexity). */
static void neighbours(double *p, int64_t n, int64_t self, double perplexity)
{
    const double want = tn__libm_log(perplexity);
    double       beta = 1, low = 0, high = INFINITY, nearest = INFINITY;
    for (int64_t j = 0; j < n; j++)
        if (j != self) nearest = fmin(nearest, p[j]);
    for (int tries = 0; tries < 60; tries++) {
        double sum = 0, mean = 0;
        for (int64_t j = 0; j < n; j++) {
            const double e = j == self ? 0 : tn__libm_exp(-beta * (p[j] - nearest));
            sum += e, mean += e * (p[j] - nearest);
        }
        const double entropy = tn__libm_log(sum) + beta * mean / sum;
        if (fabs(entropy - want) < 1e-5) break;
        if (entropy > want) low = beta, beta = isinf(high) ? 2 * beta : (beta + high) / 2;
        else high = beta, beta = (beta + low) / 2;
    }
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += p[j] = j == self ? 0 : tn__libm_exp(-beta * (p[j] - nearest));
    for (int64_t j = 0; j < n; j++) p[j] /= sum;
}

typedef struct {
    const double *x;
    double       *p, *y, *speed, *gain, *gradient, *sums;
    int64_t       n, dim;
    double        perplexity, all, by; /* all: Σ 1 / (1 + |y_i - y_j|²); by: factor of p */
} embedding;

static void distances(int64_t from, int64_t to, void *user)
{
    embedding *e = user;
    for (int64_t i = from; i < to; i++) {
        double *p = e->p + i * e->n;
        for (int64_t j = 0; j < e->n; j++) {
            p[j] = 0;
            for (int64_t k = 0; k < e->dim; k++) {
                const double d = e->x[i * e->dim + k] - e->x[j * e->dim + k];
                p[j] += d * d;
            }
        }
        neighbours(p, e->n, i, e->perplexity);
    }
}

static double similarity(const embedding *e, int64_t i, int64_t j)
{
    const double a = e->y[2 * i] - e->y[2 * j], b = e->y[2 * i + 1] - e->y[2 * j + 1];
    return 1 / (1 + a * a + b * b);
}

static void row_sums(int64_t from, int64_t to, void *user)
{
    embedding *e = user;
    for (int64_t i = from; i < to; i++) {
        e->sums[i] = -1; /* minus the term of itself */
        for (int64_t j = 0; j < e->n; j++) e->sums[i] += similarity(e, i, j);
    }
}

static void gradients(int64_t from, int64_t to, void *user)
{
    embedding *e = user;
    for (int64_t i = from; i < to; i++) {
        double a = 0, b = 0;
        for (int64_t j = 0; j < e->n; j++) {
            const double q = similarity(e, i, j), p = (e->p[i * e->n + j] + e->p[j * e->n + i]) / (2 * (double)e->n);
            const double by = 4 * (e->by * p - q / e->all) * q;
            a += by * (e->y[2 * i] - e->y[2 * j]), b += by * (e->y[2 * i + 1] - e->y[2 * j + 1]);
        }
        e->gradient[2 * i] = a, e->gradient[2 * i + 1] = b;
    }
}

static void descend(embedding *e, int step)
{
    const double keep = step < 250 ? 0.5 : 0.8, rate = fmax(10, (double)e->n / 12);
    e->by = step < EARLY ? 12 : 1; /* early exaggeration */
    tn_parallel_for(e->n, 16, row_sums, e);
    e->all = 0;
    for (int64_t i = 0; i < e->n; i++) e->all += e->sums[i];
    tn_parallel_for(e->n, 16, gradients, e);
    for (int64_t k = 0; k < 2 * e->n; k++) {
        e->gain[k] = (e->gradient[k] > 0) == (e->speed[k] > 0) ? fmax(0.01, e->gain[k] * 0.8) : e->gain[k] + 0.2;
        e->speed[k] = keep * e->speed[k] - rate * e->gain[k] * e->gradient[k];
        e->y[k] += e->speed[k];
    }
}

tn_tensor *tn_plane_tsne(const tn_tensor *rows, double perplexity, uint64_t seed)
{
    if (!points_of("tn_plane_tsne", rows)) return NULL;
    const int64_t n = tn_size(rows, 0), dim = tn_size(rows, 1);
    if (n > MAX_ROWS || !(perplexity >= 1) || perplexity > (double)(n - 1))
        return tn_raise_null(
            TN_EINVAL,
            "tn_plane_tsne: %lld rows with perplexity %g; expected at most %d rows, and perplexity 1 to "
            "rows - 1",
            (long long)n, perplexity, MAX_ROWS);
    const size_t bytes = (size_t)(n * n + 9 * n) * sizeof(double);
    double      *x = centred(rows, n, dim), *all = tn__mem_zeroed(bytes);
    tn_tensor   *y = NULL;
    if (x && all) {
        embedding e = {.x = x, .p = all, .y = all + n * n, .n = n, .dim = dim, .perplexity = perplexity};
        e.speed = e.y + 2 * n, e.gain = e.speed + 2 * n, e.gradient = e.gain + 2 * n, e.sums = e.gradient + 2 * n;
        for (int64_t k = 0; k < 2 * n; k++) {
            e.y[k] = ((double)(tn__splitmix(tn__splitmix(seed) + (uint64_t)k) >> 40) * 0x1p-24 - 0.5) * 1e-3;
            e.gain[k] = 1;
        }
        tn_parallel_for(n, 16, distances, &e);
        for (int step = 0; step < STEPS; step++) descend(&e, step);
        y = tn_empty((tn_shape){.n = 2, .d = {n, 2}});
        float *to = y ? tn_data_mut(y) : NULL;
        for (int64_t k = 0; to && k < 2 * n; k++) to[k] = (float)e.y[k];
    }
    tn__mem_put(all, bytes), tn__mem_put(x, (size_t)(n * dim) * sizeof *x);
    return y;
}
