/* adafactor.c — as torch.optim.Adafactor (Shazeer and Stern, 2018): of the second moments of a matrix [.., R, C] only
 * the means of its rows and of its columns are kept. At the weight's step t, with c = t^beta2_decay:
 *
 *     row ← (1 - c) · row + c · mean of g² over C      col ← (1 - c) · col + c · mean of g² over R
 *     v = row · col / max(mean of row, eps1)           for vectors v ← (1 - c) · v + c · g²
 *     u = g / √max(v, eps1²)
 *     p ← p · (1 - lr · weight_decay) - max(eps2, RMS(p)) · min(lr, 1/√t) / max(1, RMS(u) / d) · u
 *
 * RMS(p) is that from before. Means of squares first, then a pass for the two RMS, then one that updates. */
#ifndef TN_REAL
#include "optim/optim_private.h"

#include <float.h>

enum { BLOCK = 512, COLUMNS = 64, LANES = 16, GRAIN = 16384 };

/* ---- rows and columns of g² -------------------------------------------------------------------------------------- */

/* The squares of the clipped gradient's elements at … at + n. */
#define SQUARES(type, value)                                      \
    for (int64_t i = 0; i < n; i++) {                             \
        const type  *g = (const type *)s->g + at;                 \
        const double x = TN__CUT(scale * (double)(value), bound); \
        to[i] = x * x;                                            \
    }
static void squares(const tn__segment *s, int64_t at, int64_t n, double *to)
{
    const double scale = s->number.scale, bound = s->number.bound;
    if (s->dtype == TN_F64) SQUARES(double, g[i])
    else if (s->dtype == TN_F32) SQUARES(float, g[i])
    else SQUARES(uint16_t, tn__widen(g[i]))
}
#undef SQUARES

static double load(const tn__segment *s, int k, int64_t i)
{
    return s->dtype == TN_F64 ? ((const double *)s->state[k])[i] : (double)((const float *)s->state[k])[i];
}

/* state ← (1 - c) · state + c · mean */
static void blend(const tn__segment *s, int k, int64_t i, double mean)
{
    const double c = s->number.c2, v = (1 - c) * load(s, k, i) + c * mean;
    if (s->dtype == TN_F64) ((double *)s->state[k])[i] = v;
    else ((float *)s->state[k])[i] = (float)v;
}

static void rows(int64_t from, int64_t to, void *user)
{
    const tn__segment *s = user;
    const int64_t      cols = s->number.cols;
    double             x[BLOCK];
    for (int64_t r = from; r < to; r++) {
        double lane[LANES] = {0}, total = 0;
        for (int64_t c = 0; c < cols; c += BLOCK) {
            const int64_t n = cols - c < BLOCK ? cols - c : BLOCK;
            squares(s, r * cols + c, n, x);
            int64_t i = 0;
            for (; i + LANES <= n; i += LANES)
                for (int k = 0; k < LANES; k++) lane[k] += x[i + k];
            for (int k = 0; i + k < n; k++) lane[k] += x[i + k];
        }
        for (int k = 0; k < LANES; k++) total += lane[k];
        blend(s, 0, r, total / (double)cols);
    }
}

/* Blocks of neighbouring columns, each down all rows; several matrices one after the other. */
static void columns(int64_t from, int64_t to, void *user)
{
    const tn__segment *s = user;
    const int64_t      height = s->number.rows, cols = s->number.cols, blocks = (cols - 1) / COLUMNS + 1;
    double             x[COLUMNS];
    for (int64_t block = from; block < to; block++) {
        const int64_t matrix = block / blocks, c = block % blocks * COLUMNS,
                      n = cols - c < COLUMNS ? cols - c : COLUMNS;
        double total[COLUMNS] = {0};
        for (int64_t r = 0; r < height; r++) {
            squares(s, (matrix * height + r) * cols + c, n, x);
            for (int64_t i = 0; i < n; i++) total[i] += x[i];
        }
        for (int64_t i = 0; i < n; i++) blend(s, 1, matrix * cols + c + i, total[i] / (double)height);
    }
}

/* 1 / max(mean of the rows' means, eps1), of one matrix. */
static double over_mean(const tn__segment *s, int64_t matrix)
{
    const int64_t height = s->number.rows;
    double        sum = 0;
    for (int64_t r = 0; r < height; r++) sum += load(s, 0, matrix * height + r);
    const double mean = sum / (double)height, least = s->number.eps;
    return 1 / (mean > least ? mean : least);
}

static int64_t grain(int64_t each) { return each < GRAIN ? GRAIN / each : 1; }

static void factors(tn__segment *s)
{
    const int64_t height = s->number.rows, cols = s->number.cols, matrices = s->n / (height * cols);
    const int64_t wide = cols < COLUMNS ? cols : COLUMNS;
    tn_parallel_for(matrices * height, grain(cols), rows, s);
    tn_parallel_for(matrices * ((cols - 1) / COLUMNS + 1), grain(wide * height), columns, s);
    if (matrices == 1) s->number.first = over_mean(s, 0);
}

#define TN_TEMPLATE "optim/adafactor.c"
#include "core/real.h"

/* ---- the optimizer ----------------------------------------------------------------------------------------------- */

static bool row_shape(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    (void)o;
    *s = w->shape;
    if (s->n > 1) s->d[s->n - 1] = 1;
    return s->n > 1;
}
static bool col_shape(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    (void)o;
    *s = w->shape;
    if (s->n > 1) s->d[s->n - 2] = 1;
    return s->n > 1;
}
static bool vector_shape(const tn_optimizer *o, const tn__weight *w, tn_shape *s)
{
    (void)o;
    *s = w->shape;
    return s->n < 2;
}

static void numbers(const tn_optimizer *o, const tn__weight *w, const double *option, double t, tn__numbers *to)
{
    (void)o;
    const double lr = option[TN_OPT_LR], root = 1 / sqrt(t);
    to->c2 = pow(t, option[TN_OPT_BETA2_DECAY]);
    to->lr = lr < root ? lr : root;
    to->keep = 1 - lr * option[TN_OPT_WEIGHT_DECAY];
    to->eps = option[TN_OPT_EPS];
    to->b1 = option[TN_OPT_EPS2];
    to->b2 = option[TN_OPT_D];
    if (w->shape.n > 1) to->rows = w->shape.d[w->shape.n - 2], to->cols = w->shape.d[w->shape.n - 1];
}

static void run(tn_optimizer *o)
{
    for (int64_t i = 0; i < o->sweep.count; i++)
        if (o->sweep.segment[i].number.cols) factors(o->sweep.segment + i);
    tn__sweep_run(&o->sweep, TN__PASS(measure, TN__READS));
    for (int64_t i = 0; i < o->sweep.count; i++) {
        tn__segment *s = o->sweep.segment + i;
        const double size = sqrt((double)s->n), p = sqrt(s->sum[0]) / size, u = sqrt(s->sum[1]) / size / s->number.b2;
        s->number.lr *= (p > s->number.b1 ? p : s->number.b1) / (u > 1 ? u : 1);
    }
    tn__sweep_run(&o->sweep, TN__PASS(update, TN__WRITES_P));
}

static const tn__kind adafactor = {
    .name = "Adafactor",
    .call = "tn_adafactor_new",
    .options = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_BETA2_DECAY |
               1u << TN_OPT_EPS | 1u << TN_OPT_EPS2 | 1u << TN_OPT_D,
    .squares = true,
    .state = {{"row_var", row_shape}, {"col_var", col_shape}, {"variance", vector_shape}},
    .numbers = numbers,
    .run = run,
};

tn_optimizer *tn_adafactor_create(tn_adafactor_config c)
{
    if (tn__refused()) return NULL;
    tn_dtype dt = TN_F32;
    if (c.module) {
        tn_each p = tn_module_each(c.module, TN_EACH_PARAMETER);
        if (tn_next(&p)) dt = tn_dtype_of(p.tensor);
    }
    const double option[TN_OPTS] = {[TN_OPT_LR] = c.lr,
                                    [TN_OPT_WEIGHT_DECAY] = c.weight_decay,
                                    [TN_OPT_BETA2_DECAY] = c.beta2_decay,
                                    [TN_OPT_EPS] = c.eps >= 0     ? c.eps
                                                   : dt == TN_F64 ? DBL_EPSILON
                                                                  : (double)FLT_EPSILON,
                                    [TN_OPT_EPS2] = c.eps2,
                                    [TN_OPT_D] = c.d};
    return tn__optimizer_make(&adafactor, c.module, c.maximize ? TN__MAXIMIZE : 0u, option, &c.clip);
}

/* clang-format off */
#else /* ============================================================================== one number type */
/* clang-format on */

/* Walks n elements row by row: in each turn `m` elements from i on share the factor `row`, and `col` is the first
 * one's. For a vector, there is one turn, and v is its own. */
#define EACH_ROW(body)                                                                                           \
    for (int64_t i = 0; i < n;) {                                                                                \
        const int64_t r = (at + i) / c->cols, first_col = (at + i) % c->cols, matrix = r / c->rows;              \
        const int64_t m = c->cols - first_col < n - i ? c->cols - first_col : n - i;                             \
        if (matrix != known) over = s->n == c->rows * c->cols ? c->first : over_mean(s, matrix), known = matrix; \
        const TN_REAL row = (TN_REAL)((double)((const TN_REAL *)s->state[0])[r] * over);                         \
        const TN_REAL *restrict col = (const TN_REAL *)s->state[1] + matrix * c->cols + first_col;               \
        for (int64_t k = 0; k < m; k++) body(i + k, row * col[k]);                                               \
        i += m;                                                                                                  \
    }
#define U_OF(i, v) (TN__CUT(scale * g[i], bound) / TN_M(sqrt)((v) > least ? (v) : least))

static void TN_(measure)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                         double sum[TN__SUMS])
{
    const tn__numbers *c = &s->number;
    const TN_REAL      scale = (TN_REAL)c->scale, bound = (TN_REAL)c->bound, least = (TN_REAL)(c->eps * c->eps);
    const TN_REAL *restrict p = weights, *restrict g = gradients;
    double  over = 0, pp[LANES] = {0}, uu[LANES] = {0};
    int64_t known = -1;
#define MEASURE(i, v)                                   \
    do {                                                \
        const TN_REAL u = U_OF(i, v);                   \
        pp[(i) % LANES] += (double)p[i] * (double)p[i]; \
        uu[(i) % LANES] += (double)u * (double)u;       \
    } while (0)
    if (c->cols) {
        EACH_ROW(MEASURE)
    } else {
        TN_REAL *restrict v = (TN_REAL *)s->state[2] + at;
        const TN_REAL c1 = (TN_REAL)(1 - c->c2), c2 = (TN_REAL)c->c2;
        for (int64_t i = 0; i < n; i++) {
            const TN_REAL x = TN__CUT(scale * g[i], bound);
            v[i] = c1 * v[i] + c2 * x * x;
            MEASURE(i, v[i]);
        }
    }
#undef MEASURE
    for (int k = 0; k < LANES; k++) sum[0] += pp[k], sum[1] += uu[k];
}

static void TN_(update)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                        double sum[TN__SUMS])
{
    (void)sum;
    const tn__numbers *c = &s->number;
    const TN_REAL      scale = (TN_REAL)c->scale, bound = (TN_REAL)c->bound, least = (TN_REAL)(c->eps * c->eps);
    const TN_REAL      keep = (TN_REAL)c->keep, lr = (TN_REAL)c->lr;
    TN_REAL *restrict p = weights;
    const TN_REAL *restrict g = gradients;
    double  over = 0;
    int64_t known = -1;
#define UPDATE(i, v) p[i] = keep * p[i] - lr * U_OF(i, v)
    if (c->cols) {
        EACH_ROW(UPDATE)
    } else {
        const TN_REAL *restrict v = (const TN_REAL *)s->state[2] + at;
        for (int64_t i = 0; i < n; i++) UPDATE(i, v[i]);
    }
#undef UPDATE
}
#undef EACH_ROW
#undef U_OF
#endif
