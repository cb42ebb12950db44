/* adafactor.c — Adafactor, as in torch.optim (Shazeer and Stern, 2018): stores only the row and column means of the
 * second moments of a matrix [.., R, C]. At update t of a weight, with c = t^beta2_decay:
 *
 *     row ← (1 - c) · row + c · mean of g² over C      col ← (1 - c) · col + c · mean of g² over R
 *     v = row · col / max(mean of row, eps1)           for vectors v ← (1 - c) · v + c · g²
 *     u = g / √max(v, eps1²)
 *     p ← p · (1 - lr · weight_decay) - max(eps2, RMS(p)) · min(lr, 1/√t) / max(1, RMS(u) / d) · u
 *
 * RMS(p) is that before the update. First the means of squares are computed, then both RMS in one pass, then a pass
 * updates p. */
#ifndef TN__REAL
#include "optim/optim_private.h"

enum { BLOCK = 512, COLUMNS = 64, LANES = TN__SUM_LANES, GRAIN = 16384 };

/* ---- rows and columns of g² -------------------------------------------------------------------------------------- */

/* The squares of the clipped gradient's elements at … at + n. */
static void squares(const tn__segment *s, int64_t at, int64_t n, double *to)
{
    const double scale = s->number.scale, bound = s->number.bound;
    if (s->dtype == TN_F64)
        for (int64_t i = 0; i < n; i++) to[i] = scale * ((const double *)s->g)[at + i];
    else if (s->dtype == TN_F32)
        for (int64_t i = 0; i < n; i++) to[i] = scale * (double)((const float *)s->g)[at + i];
    else
        for (int64_t i = 0; i < n; i++) to[i] = scale * (double)tn__bf16_to_f32(((const uint16_t *)s->g)[at + i]);
    for (int64_t i = 0; i < n; i++) {
        const double x = TN__CUT(to[i], bound);
        to[i] = x * x;
    }
}

static double load(const tn__segment *s, int k, int64_t i)
{
    return s->dtype == TN_F64 ? ((const double *)s->state[k])[i] : (double)((const float *)s->state[k])[i];
}

/* state ← (1 - c) · state + c · mean */
static void blend(const tn__segment *s, int k, int64_t i, double mean)
{
    const tn__adafactor_numbers *c = &s->number.adafactor;
    const double                 v = c->beta2 * load(s, k, i) + c->rest2 * mean;
    if (s->dtype == TN_F64) ((double *)s->state[k])[i] = v;
    else ((float *)s->state[k])[i] = (float)v;
}

static void rows(int64_t from, int64_t to, void *user)
{
    const tn__segment *s = user;
    const int64_t      cols = s->number.adafactor.cols;
    double             x[BLOCK];
    for (int64_t r = from; r < to; r++) {
        double lane[LANES] = {0};
        for (int64_t c = 0; c < cols; c += BLOCK) {
            const int64_t n = cols - c < BLOCK ? cols - c : BLOCK;
            squares(s, r * cols + c, n, x);
            int64_t i = 0;
            for (; i + LANES <= n; i += LANES)
                for (int k = 0; k < LANES; k++) lane[k] += x[i + k];
            for (int k = 0; i + k < n; k++) lane[k] += x[i + k];
        }
        blend(s, 0, r, tn__lanes_in_order(lane) / (double)cols);
    }
}

/* Processes blocks of COLUMNS adjacent columns, each over all rows; block indices continue from matrix to matrix. */
static void columns(int64_t from, int64_t to, void *user)
{
    const tn__segment *s = user;
    const int64_t height = s->number.adafactor.rows, cols = s->number.adafactor.cols, blocks = (cols - 1) / COLUMNS + 1;
    double        x[COLUMNS];
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
    const int64_t height = s->number.adafactor.rows;
    double        sum = 0;
    for (int64_t r = 0; r < height; r++) sum += load(s, 0, matrix * height + r);
    const double mean = sum / (double)height, least = s->number.eps;
    return 1 / (mean < least ? least : mean); /* NaN stays NaN, as in torch.clamp */
}

static int64_t grain(int64_t each) { return each < GRAIN ? GRAIN / each : 1; }

static void factors(tn__segment *s)
{
    const int64_t height = s->number.adafactor.rows, cols = s->number.adafactor.cols, matrices = s->n / (height * cols);
    const int64_t wide = cols < COLUMNS ? cols : COLUMNS;
    tn_parallel_for(matrices * height, grain(cols), rows, s);
    tn_parallel_for(matrices * ((cols - 1) / COLUMNS + 1), grain(wide * height), columns, s);
    if (matrices == 1) s->number.adafactor.over_mean = over_mean(s, 0);
}

#define TN__TEMPLATE "optim/adafactor.c"
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
    to->lr = lr < root ? lr : root;
    to->keep = 1 - lr * option[TN_OPT_WEIGHT_DECAY];
    to->eps = option[TN_OPT_EPS] >= 0 ? option[TN_OPT_EPS] : tn__dtype_epsilon(w->dtype);
    to->adafactor.rest2 = tn__libm_pow(t, option[TN_OPT_BETA2_DECAY]), to->adafactor.beta2 = 1 - to->adafactor.rest2;
    to->adafactor.min_size = option[TN_OPT_EPS2], to->adafactor.max_change = option[TN_OPT_D];
    if (w->shape.n > 1)
        to->adafactor.rows = w->shape.d[w->shape.n - 2], to->adafactor.cols = w->shape.d[w->shape.n - 1];
}

static void run(tn_optimizer *o)
{
    for (int64_t i = 0; i < o->sweep.count; i++)
        if (o->sweep.segment[i].number.adafactor.cols) factors(o->sweep.segment + i);
    tn__sweep_run(&o->sweep, TN__PASS(measure, TN__READS));
    for (int64_t i = 0; i < o->sweep.count; i++) {
        tn__segment                 *s = o->sweep.segment + i;
        const tn__adafactor_numbers *c = &s->number.adafactor;
        const double root = sqrt((double)s->n), p = sqrt(s->sum[0]) / root, u = sqrt(s->sum[1]) / root / c->max_change;
        s->number.lr *= (p > c->min_size ? p : c->min_size) / (u > 1 ? u : 1);
    }
    tn__sweep_run(&o->sweep, TN__PASS(update, TN__WRITES_P));
}

static const tn__kind adafactor = {
    .name = "Adafactor",
    .call = "tn_adafactor_new",
    .options = 1u << TN_OPT_LR | 1u << TN_OPT_BASE_LR | 1u << TN_OPT_WEIGHT_DECAY | 1u << TN_OPT_BETA2_DECAY |
               1u << TN_OPT_EPS | 1u << TN_OPT_EPS2 | 1u << TN_OPT_D,
    .squares = true,
    .eps_of_type = true,
    .state = {{"row_var", row_shape}, {"col_var", col_shape}, {"variance", vector_shape}},
    .numbers = numbers,
    .run = run,
};

tn_optimizer *tn_adafactor_create(tn_adafactor_config c)
{
    if (tn__blocked()) return NULL;
    const double option[TN_OPTS] = {[TN_OPT_LR] = c.lr,
                                    [TN_OPT_WEIGHT_DECAY] = c.weight_decay,
                                    [TN_OPT_BETA2_DECAY] = c.beta2_decay,
                                    [TN_OPT_EPS] = c.eps,
                                    [TN_OPT_EPS2] = c.eps2,
                                    [TN_OPT_D] = c.d};
    return tn__optimizer_make(&adafactor, c.module, c.maximize ? TN__MAXIMIZE : 0u, option, &c.clip);
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

/* Elements of a piece that are in the same row of a matrix; the second moment of element k is row · col[k]. */
typedef struct {
    int64_t         n;
    TN__REAL        row;
    const TN__REAL *col;
    int64_t         matrix;    /* index of the matrix; -1: not set yet */
    double          over_mean; /* over_mean() of that matrix */
} TN__(stretch);

/* Sets t, the previous stretch, to the stretch that starts at element `at` and has at most `left` elements. */
static inline void TN__(next_stretch)(const tn__segment *s, int64_t at, int64_t left, TN__(stretch) * t)
{
    const tn__adafactor_numbers *c = &s->number.adafactor;
    const int64_t                row = at / c->cols, col = at % c->cols, matrix = row / c->rows;
    if (matrix != t->matrix) t->over_mean = s->n == c->rows * c->cols ? c->over_mean : over_mean(s, matrix);
    t->matrix = matrix;
    t->n = c->cols - col < left ? c->cols - col : left;
    t->row = (TN__REAL)((double)((const TN__REAL *)s->state[0])[row] * t->over_mean);
    t->col = (const TN__REAL *)s->state[1] + matrix * c->cols + col;
}

/* u = g / √max(v, eps1²), with g clipped. */
typedef struct {
    TN__REAL scale, bound, least;
} TN__(gradient_rule);
static inline TN__(gradient_rule) TN__(clip_rule_of)(const tn__numbers *c)
{
    return (TN__(gradient_rule)){(TN__REAL)c->scale, (TN__REAL)c->bound, (TN__REAL)(c->eps * c->eps)};
}
static inline TN__REAL TN__(clipped)(const TN__(gradient_rule) * c, TN__REAL g)
{
    return TN__CUT(c->scale * g, c->bound);
}
static inline TN__REAL TN__(u_of)(const TN__(gradient_rule) * c, TN__REAL g, TN__REAL v)
{
    return TN__(clipped)(c, g) / TN__M(sqrt)(v < c->least ? c->least : v); /* NaN stays NaN */
}
static inline void TN__(add_squares)(double *pp, double *uu, TN__REAL p, TN__REAL u)
{
    *pp += (double)p * (double)p;
    *uu += (double)u * (double)u;
}

static void TN__(measure)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                          double sum[TN__SUMS])
{
    const tn__adafactor_numbers *c = &s->number.adafactor;
    const TN__(gradient_rule) rule = TN__(clip_rule_of)(&s->number);
    const TN__REAL *restrict p = weights, *restrict g = gradients;
    double pp[LANES] = {0}, uu[LANES] = {0};
    TN__(stretch) t = {.matrix = -1};
    for (int64_t i = 0; c->cols && i < n; i += t.n) {
        TN__(next_stretch)(s, at + i, n - i, &t);
        for (int64_t k = 0; k < t.n; k++) {
            const TN__REAL u = TN__(u_of)(&rule, g[i + k], t.row * t.col[k]);
            TN__(add_squares)(pp + (i + k) % LANES, uu + (i + k) % LANES, p[i + k], u);
        }
    }
    if (!c->cols) { /* a vector stores its second moments in full */
        TN__REAL *restrict v = (TN__REAL *)s->state[2] + at;
        const TN__REAL beta2 = (TN__REAL)c->beta2, rest2 = (TN__REAL)c->rest2;
        for (int64_t i = 0; i < n; i++) {
            const TN__REAL x = TN__(clipped)(&rule, g[i]);
            v[i] = beta2 * v[i] + rest2 * x * x;
            TN__(add_squares)(pp + i % LANES, uu + i % LANES, p[i], TN__(u_of)(&rule, g[i], v[i]));
        }
    }
    sum[0] += tn__lanes_in_order(pp), sum[1] += tn__lanes_in_order(uu);
}

static void TN__(update)(const tn__segment *s, int64_t at, int64_t n, void *weights, void *gradients,
                         double sum[TN__SUMS])
{
    (void)sum;
    const tn__adafactor_numbers *c = &s->number.adafactor;
    const TN__(gradient_rule) rule = TN__(clip_rule_of)(&s->number);
    const TN__REAL keep = (TN__REAL)s->number.keep, lr = (TN__REAL)s->number.lr;
    TN__REAL *restrict p = weights;
    const TN__REAL *restrict g = gradients;
    TN__(stretch) t = {.matrix = -1};
    for (int64_t i = 0; c->cols && i < n; i += t.n) {
        TN__(next_stretch)(s, at + i, n - i, &t);
        const TN__REAL *restrict col = t.col;
        for (int64_t k = 0; k < t.n; k++) p[i + k] = keep * p[i + k] - lr * TN__(u_of)(&rule, g[i + k], t.row * col[k]);
    }
    if (!c->cols) {
        const TN__REAL *restrict v = (const TN__REAL *)s->state[2] + at;
        for (int64_t i = 0; i < n; i++) p[i] = keep * p[i] - lr * TN__(u_of)(&rule, g[i], v[i]);
    }
}
#endif
