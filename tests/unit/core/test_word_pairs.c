/* test_word_pairs.c — the kernels for word vectors, of each instruction set, compared with the formulas in f64. */
#include "tests/common/check_main.h"

#include "core/kernels/kernels.h"

enum { WIDTH = 32, MOST = TN__WORD_PAIRS_OUT };
static const char *const isas[] = {"baseline", "avx2", "avx512"};

static float drawn(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 33) * 0x1p-31 - 0.5);
}

typedef struct {
    float  x[TN__WORD_PAIRS_IN][WIDTH], o[MOST][WIDTH], label[MOST], shift[MOST];
    float *in[TN__WORD_PAIRS_IN], *out[MOST];
} rows;

static void fill(rows *r, uint64_t seed)
{
    for (int i = 0; i < TN__WORD_PAIRS_IN; i++) r->in[i] = r->x[i];
    for (int j = 0; j < MOST; j++) r->out[j] = r->o[j], r->label[j] = j % 3 == 0, r->shift[j] = drawn(&seed);
    for (int k = 0; k < WIDTH; k++) {
        for (int i = 0; i < TN__WORD_PAIRS_IN; i++) r->x[i][k] = 2 * drawn(&seed);
        for (int j = 0; j < MOST; j++) r->o[j][k] = 2 * drawn(&seed);
    }
}

/* Σ of -log p over the pairs, which a step decreases along its gradient. */
static double loss_of(const rows *r, int ins, int outs, bool shifted)
{
    double loss = 0;
    for (int i = 0; i < ins; i++)
        for (int j = 0; j < outs; j++) {
            double f = shifted ? -(double)r->shift[j] : 0;
            for (int k = 0; k < WIDTH; k++) f += (double)r->x[i][k] * (double)r->o[j][k];
            loss += r->label[j] != 0 ? log1p(exp(-f)) : log1p(exp(f));
        }
    return loss;
}

static double slope(const rows *r, int i, int j, bool shifted)
{
    double f = shifted ? -(double)r->shift[j] : 0;
    for (int k = 0; k < WIDTH; k++) f += (double)r->x[i][k] * (double)r->o[j][k];
    return (double)r->label[j] - 1 / (1 + exp(-f));
}

/* One step from `before`: every element changes by rate · Σ slope · the other row. */
static void one_step(const tn__word_pairs_kernels *kernels, int ins, int outs, bool shifted)
{
    static rows before, now;
    const float rate = 0.125f;
    fill(&before, (uint64_t)(ins * 100 + outs));
    fill(&now, (uint64_t)(ins * 100 + outs));
    const tn__word_pairs_step s = {ins, outs, WIDTH, now.in, now.out, now.label, shifted ? now.shift : NULL, rate};
    kernels->learn(&s);
    for (int k = 0; k < WIDTH; k++) {
        for (int i = 0; i < TN__WORD_PAIRS_IN; i++) {
            double want = (double)before.x[i][k];
            for (int j = 0; i < ins && j < outs; j++)
                want += (double)rate * slope(&before, i, j, shifted) * (double)before.o[j][k];
            ck_assert_double_eq_tol((double)now.x[i][k], want, 2e-5);
        }
        for (int j = 0; j < MOST; j++) {
            double want = (double)before.o[j][k];
            for (int i = 0; j < outs && i < ins; i++)
                want += (double)rate * slope(&before, i, j, shifted) * (double)before.x[i][k];
            ck_assert_double_eq_tol((double)now.o[j][k], want, 2e-5);
        }
    }
}

TEST(a_step_is_that_of_the_formula)
{
    static const int outs[] = {1, 2, 3, 6, 7, 13, TN__WORD_PAIRS_OUT};
    for (int isa = 0; isa < 3; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        for (int ins = 1; t && ins <= TN__WORD_PAIRS_IN; ins++)
            for (size_t j = 0; j < sizeof outs / sizeof *outs; j++) one_step(t->word_pairs, ins, outs[j], j % 2);
    }
}

/* The formula is the gradient: compared with differences of the loss, in f64. */
TEST(the_formula_is_the_gradient)
{
    static rows r;
    fill(&r, 7);
    for (int k = 0; k < WIDTH; k += 5) {
        const float  keep = r.x[1][k], step = 0x1p-8f;
        double       want = 0;
        const double here = 2 * (double)step;
        for (int j = 0; j < 6; j++) want -= slope(&r, 1, j, true) * (double)r.o[j][k];
        r.x[1][k] = keep + step;
        const double up = loss_of(&r, 3, 6, true);
        r.x[1][k] = keep - step;
        const double down = loss_of(&r, 3, 6, true);
        r.x[1][k] = keep;
        ck_assert_double_eq_tol((up - down) / here, want, 1e-4);
    }
}

/* A row that occurs twice is updated twice. */
TEST(the_same_row_twice)
{
    for (int isa = 0; isa < 3; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        static rows             once, twice;
        if (!t) continue;
        fill(&once, 3), fill(&twice, 3);
        memcpy(once.x[1], once.x[0], sizeof *once.x);
        twice.in[1] = twice.x[0];
        const tn__word_pairs_step a = {2, 3, WIDTH, once.in, once.out, once.label, NULL, 0.5f};
        const tn__word_pairs_step b = {2, 3, WIDTH, twice.in, twice.out, twice.label, NULL, 0.5f};
        static rows               first;
        fill(&first, 3);
        t->word_pairs->learn(&a), t->word_pairs->learn(&b);
        for (int k = 0; k < WIDTH; k++)
            ck_assert_double_eq_tol((double)twice.x[0][k], 2 * (double)once.x[0][k] - (double)first.x[0][k], 1e-5);
        ck_assert_mem_eq(once.o, twice.o, 3 * sizeof *once.o);
    }
}

TEST(means_and_sums)
{
    for (int isa = 0; isa < 3; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        static rows             r, old;
        float                   mean[WIDTH];
        if (!t) continue;
        fill(&r, 11), fill(&old, 11);
        t->word_pairs->mean(3, (const float *const *)r.in, WIDTH, 0.5f, mean);
        t->word_pairs->spread(2, r.in, WIDTH, 2, r.x[4], r.x[5]);
        t->word_pairs->subtract(WIDTH, r.o[0], r.o[1]);
        t->word_pairs->add(WIDTH, r.o[2], r.o[3]);
        for (int k = 0; k < WIDTH; k++) {
            ck_assert_float_eq_tol(mean[k], 0.5f * (old.x[0][k] + old.x[1][k] + old.x[2][k]), 1e-6f);
            ck_assert_float_eq_tol(r.x[1][k], old.x[1][k] + 2 * (old.x[4][k] - old.x[5][k]), 1e-6f);
            ck_assert_float_eq(r.o[0][k], old.o[0][k] - old.o[1][k]);
            ck_assert_float_eq(r.o[2][k], old.o[2][k] + old.o[3][k]);
        }
    }
}

/* The parts of softmax: sums of products, and both sides updated by given slopes, more[i] in addition to in[i]. */
TEST(dots_and_slopes)
{
    static const int ins[] = {1, TN__WORD_PAIRS_IN}, outs[] = {1, 5, TN__WORD_PAIRS_OUT};
    for (int c = 0; c < 3 * 2 * 3; c++) {
        const tn__kernel_table *t = tn__kernels_of(isas[c / 6]);
        const int               n = ins[c % 2], m = outs[c % 6 / 2];
        static rows             r, old, more, from;
        static float            g[TN__WORD_PAIRS_IN * MOST], dot[TN__WORD_PAIRS_IN * MOST];
        uint64_t                seed = 1;
        if (!t) continue;
        fill(&r, 4), fill(&old, 4), fill(&from, 4), fill(&more, 5);
        for (int i = 0; i < n * m; i++) g[i] = drawn(&seed);
        const tn__word_pairs_step s = {.ins = n, .outs = m, .width = WIDTH, .in = r.in, .out = r.out};
        t->word_pairs->dots(&s, dot);
        ck_assert_mem_eq(r.o, old.o, sizeof r.o);
        t->word_pairs->push(&s, g, more.in);
        ck_assert_mem_eq(r.x, old.x, sizeof r.x);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++) {
                double want = 0;
                for (int k = 0; k < WIDTH; k++) want += (double)old.x[i][k] * (double)old.o[j][k];
                ck_assert_double_eq_tol((double)dot[j * n + i], want, 1e-5);
            }
        fill(&old, 5);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < WIDTH; k++) {
                double want = (double)old.x[i][k];
                for (int j = 0; j < m; j++) want += (double)g[j * n + i] * (double)from.o[j][k];
                ck_assert_double_eq_tol((double)more.x[i][k], want, 1e-5);
            }
        fill(&old, 4);
        for (int j = 0; j < MOST; j++)
            for (int k = 0; k < WIDTH; k++) {
                double want = (double)old.o[j][k];
                for (int i = 0; j < m && i < n; i++) want += (double)g[j * n + i] * (double)old.x[i][k];
                ck_assert_double_eq_tol((double)r.o[j][k], want, 1e-5);
            }
    }
}

/* GloVe's step: AdaGrad on weight/2 · (w·c + b + b' - log x)². */
TEST(glove)
{
    for (int isa = 0; isa < 3; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        float                   x[4][WIDTH + 1], old[4][WIDTH + 1];
        uint64_t                seed = 5;
        if (!t) continue;
        for (int k = 0; k <= WIDTH; k++)
            for (int i = 0; i < 4; i++) old[i][k] = x[i][k] = i < 2 ? drawn(&seed) : 1.5f + drawn(&seed);
        const tn__glove_step s = {WIDTH, x[0], x[1], x[2], x[3], 1.25f, 0.5f};
        const double         cost = (double)t->word_pairs->glove(&s);
        double               off = (double)old[0][WIDTH] + (double)old[1][WIDTH] - 1.25;
        for (int k = 0; k < WIDTH; k++) off += (double)old[0][k] * (double)old[1][k];
        ck_assert_double_eq_tol(cost, 0.25 * off * off, 1e-5);
        for (int k = 0; k <= WIDTH; k++)
            for (int i = 0; i < 2; i++) {
                const double g = 0.5 * off * (k < WIDTH ? (double)old[1 - i][k] : 1);
                ck_assert_double_eq_tol((double)x[i][k], (double)old[i][k] - g / sqrt((double)old[2 + i][k]), 1e-5);
                ck_assert_double_eq_tol((double)x[2 + i][k], (double)old[2 + i][k] + g * g, 1e-5);
            }
    }
}
