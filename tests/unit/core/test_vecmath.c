/* test_vecmath.c — functions of one element as kernels: the error in units of the last place, over all kinds of numbers
 * and on each instruction set; the same bits on all of them, at any position and in arrays of any length; nothing read
 * or written outside the arrays, and neither the floating-point environment nor errno changed.
 *
 * TENON_TEST_EXHAUSTIVE=1 tests all 2^32 numbers instead of a sample: a few minutes a function. Set it to the name of a
 * function to test only that one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "tests/common/check_main.h"
#include "tests/common/exact.h"

#include "core/kernels/kernels.h"
#include "core/kernels/sum_lanes.h"
#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <sys/mman.h>
#include <unistd.h>

/* ck_assert for conditions that are checked a million times: Check writes a line to a file at each ck_assert. */
#define expect(truth, ...) ((truth) ? (void)0 : ck_abort_msg(__VA_ARGS__))

static const char *const isas[] = {"baseline", "avx2", "avx512"};
enum { ISAS = 3 };

/* ---- the functions, in f64 -------------------------------------------------------------------------------------- */
/* Where a slope changes its sign, f64 has hardly more correct digits than f32: there it is computed in long double. */

static double r_silu_slope(double x)
{
    if (fabs(x) > 700) return x > 0;
    if (fabs(x + 1.27846) < 0.01) {
        const long double e = expl(x);
        return (double)(e * (1 + e + (long double)x) / ((1 + e) * (1 + e)));
    }
    const double e = exp(-fabs(x)), d = e * (1 + e - fabs(x)) / ((1 + e) * (1 + e));
    return x < 0 ? d : 1 - d;
}
static double r_gelu_slope(double x)
{
    if (fabs(x) > 40) return x > 0;
    if (fabs(x + 0.75179) < 0.01) {
        const long double w = x;
        return (double)(erfcl(-w * sqrtl(0.5L)) / 2 + w * expl(-w * w / 2) * TN_DENSITY);
    }
    return erfc(-x * 0.70710678118654752440) / 2 + x * exp(-x * x / 2) * (double)TN_DENSITY;
}
static double r_gelu_tanh_slope(double x)
{
    if (fabs(x) > 40) return x > 0;
    if (fabs(x + 0.75246) < 0.01) {
        const long double w = x, e = expl(TN_ROOT * w * (1 + TN_CUBE * w * w));
        return (double)(e * (1 + e + TN_ROOT * w * (1 + 3 * TN_CUBE * w * w)) / ((1 + e) * (1 + e)));
    }
    const double a = fabs(x), e = exp(-(double)TN_ROOT * a * (1 + (double)TN_CUBE * a * a));
    const double d = e * (1 + e - (double)TN_ROOT * a * (1 + 3 * (double)TN_CUBE * a * a)) / ((1 + e) * (1 + e));
    return x < 0 ? d : 1 - d;
}

/* ---- the kernels ------------------------------------------------------------------------------------------------ */

enum { CHUNK = 4096, MOST = 130 };
static float ones[CHUNK];
static void  fill_ones(void)
{
    for (int i = 0; i < CHUNK; i++) ones[i] = 1;
}
AROUND_TESTS(fill_ones, NULL);

/* A slope as a function: its result for gradients of 1. */
#define SLOPE_OF(name)                                                                          \
    static void name##_slope_of(const tn__kernel_table *t, int64_t n, float *y, const float *x) \
    {                                                                                           \
        t->f32->name##_slope(n, y, x, ones);                                                    \
    }
#define FUNCTION_OF(name) \
    static void name##_of(const tn__kernel_table *t, int64_t n, float *y, const float *x) { t->f32->name(n, y, x); }
TN__EACH_FUNCTION(FUNCTION_OF)
TN__EACH_SLOPE(SLOPE_OF)

/* y: at 0, -0, infinity, -infinity. units: the permitted error in units of the last place. */
static const struct {
    const char *name;
    void (*f)(const tn__kernel_table *, int64_t, float *, const float *);
    double (*exact)(double);
    double units;
    float  y[4];
} functions[] = {
    {"exp", exp_of, exp, 1, {1, 1, INFINITY, 0}},
    {"log", log_of, log, 1, {-INFINITY, -INFINITY, INFINITY, NAN}},
    {"log1p", log1p_of, log1p, 1, {0, -0.0f, INFINITY, NAN}},
    {"softplus", softplus_of, r_softplus, 1, {0x1.62e43p-1f, 0x1.62e43p-1f, INFINITY, 0}},
    {"sin", sin_of, r_sin, 1, {0, -0.0f, NAN, NAN}},
    {"cos", cos_of, r_cos, 1, {1, 1, NAN, NAN}},
    {"tanh", tanh_of, tanh, 1, {0, -0.0f, 1, -1}},
    {"sigmoid", sigmoid_of, r_sigmoid, 1, {0.5f, 0.5f, 1, 0}},
    {"silu", silu_of, r_silu, 1, {0, -0.0f, INFINITY, 0}},
    {"erf", erf_of, erf, 1, {0, -0.0f, 1, -1}},
    {"gelu", gelu_of, r_gelu, 1, {0, -0.0f, INFINITY, 0}},
    {"gelu_tanh", gelu_tanh_of, r_gelu_tanh, 1, {0, -0.0f, INFINITY, 0}},
    {"mish", mish_of, r_mish, 1, {0, -0.0f, INFINITY, 0}},
    {"silu_slope", silu_slope_of, r_silu_slope, 4, {0.5f, 0.5f, 1, 0}},
    {"gelu_slope", gelu_slope_of, r_gelu_slope, 4, {0.5f, 0.5f, 1, 0}},
    {"gelu_tanh_slope", gelu_tanh_slope_of, r_gelu_tanh_slope, 4, {0.5f, 0.5f, 1, 0}},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

TEST(units)
{
    ck_assert_double_eq(units_off(1, 1), 0);
    ck_assert_double_eq(units_off(nextafterf(1, 2), 1), 1);
    ck_assert_double_eq(units_off(nextafterf(1, 0), 1), 0.5);
    ck_assert_double_eq(units_off(1, 1 + 0x1p-25), 0.25);
    ck_assert_double_eq(units_off(-0x1p-149f, 0x1p-149), 2);
    ck_assert_double_eq(units_off(0, 0x1p-151), 0.25);
    ck_assert_double_eq(units_off(3 * 0x1p-149f, 0x1p-148), 1);
    ck_assert_double_eq(units_off(FLT_MAX, 0x1p128), 1);
    ck_assert_double_eq(units_off(INFINITY, 1e300), 0);
    ck_assert_double_eq(units_off(INFINITY, FLT_MAX), 1);
    ck_assert(isinf(units_off(NAN, 1)) && isinf(units_off(1, NAN)) && units_off(NAN, NAN) == 0);
    ck_assert(units_off(INFINITY, -INFINITY) > 1e6 && units_off(1, 2) > 1e6);
}

/* ---- precision --------------------------------------------------------------------------------------------------- */

typedef struct {
    double worst;
    float  at;
} verdict;

/* Passes n numbers, at most CHUNK, through each instruction set's kernel. */
static void look(int f, int64_t n, const float *x, verdict *v)
{
    static float y[CHUNK], other[CHUNK];
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        if (!t) continue;
        functions[f].f(t, n, isa ? other : y, x);
        for (int64_t i = 0; isa && i < n; i++)
            expect(same(other[i], y[i]), "%s(%a): %s gives %a, baseline %a", functions[f].name, (double)x[i], isas[isa],
                   (double)other[i], (double)y[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        const double off = units_off(y[i], functions[f].exact((double)x[i]));
        if (off > v->worst) *v = (verdict){off, x[i]};
        expect(off <= functions[f].units, "%s(%a): %a is %.3f units from %a", functions[f].name, (double)x[i],
               (double)y[i], off, functions[f].exact((double)x[i]));
    }
}

/* Numbers where kernels change from one formula to another, where they clamp, and where results become denormal. */
static const float seams[] = {0x1p-149f, 0x1p-126f, 0x1p-25f,  0x1p-24f, 0x1p-12f,  0.34657f, 0.35f,    0.375f,
                              0.5f,      0.625f,    0.693147f, 0.70711f, 0.75f,     0.75179f, 0.75246f, 1,
                              1.25f,     1.27846f,  1.375f,    1.41421f, 1.5708f,   2,        3.14159f, 3.9f,
                              4,         9.0109f,   10,        10.68f,   11,        13.2f,    14.17f,   15,
                              20,        87.3365f,  88.7228f,  89,       103.2789f, 103.972f, 104,      110,
                              112,       0x1p23f,   0x1p28f,   1e10f,    1e37f};

static uint64_t stride(const char *name)
{
    const char *wish = getenv("TENON_TEST_EXHAUSTIVE");
    if (wish && (!strcmp(wish, "1") || !strcmp(wish, name))) return 1;
    return tn_test_slow() ? 200003 : 509;
}

TEST_EACH(accuracy, FUNCTIONS)
{
    static float   x[CHUNK];
    verdict        v = {0, 0};
    const uint64_t step = stride(functions[_i].name);
    for (uint64_t u = 0; u < UINT64_C(1) << 32;) {
        int64_t n = 0;
        for (; n < CHUNK && u < UINT64_C(1) << 32; n++, u += step) x[n] = from_bits((uint32_t)u);
        look(_i, n, x, &v);
    }
    for (size_t s = 0; s < sizeof seams / sizeof *seams; s++) {
        int64_t n = 0;
        for (uint32_t k = 0; k < 600; k++) {
            const uint32_t u = bits_of(seams[s]) + k < 300 ? k : bits_of(seams[s]) + k - 300;
            x[n++] = from_bits(u), x[n++] = from_bits(u | 0x80000000u);
        }
        look(_i, n, x, &v);
    }
    printf("%-15s at most %.3f units of the last place%s, at %.9g\n", functions[_i].name, v.worst,
           step == 1 ? ", of all numbers" : "", (double)v.at);
}

TEST_EACH(specials, FUNCTIONS)
{
    const float x[] = {0, -0.0f, INFINITY, -INFINITY, NAN, -NAN};
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        float                   y[6];
        if (!t) continue;
        functions[_i].f(t, 6, y, x);
        for (int i = 0; i < 6; i++)
            ck_assert_msg(same(y[i], i < 4 ? functions[_i].y[i] : NAN), "%s(%g) on %s: %g", functions[_i].name,
                          (double)x[i], isas[isa], (double)y[i]);
    }
}

/* Denormal numbers, as arguments and as results, are exact like others. */
TEST(below_the_normal_numbers)
{
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        float                   x[] = {0x1p-149f, -0x1p-149f, 0x1.8p-140f, -0x1.fffff8p-127f}, y[4];
        if (!t) continue;
        t->f32->sin(4, y, x);
        ck_assert_mem_eq(x, y, sizeof x);
        t->f32->tanh(4, y, x);
        ck_assert_mem_eq(x, y, sizeof x);
        const float e[] = {-103.9f, -100, -90, -87.4f};
        t->f32->exp(4, y, e);
        for (int i = 0; i < 4; i++) ck_assert(same(y[i], (float)exp((double)e[i])) && y[i] > 0);
        t->f32->sigmoid(4, y, e);
        for (int i = 0; i < 4; i++) ck_assert(same(y[i], (float)exp((double)e[i])));
        t->f32->silu(4, y, e);
        for (int i = 0; i < 4; i++) ck_assert(units_off(y[i], (double)e[i] * exp((double)e[i])) <= 1 && y[i] < 0);
        const float h[] = {0x1p-149f, 0x1p-148f, 0x1p-127f, 0x1.8p-140f}; /* half of each: the first is rounded to 0 */
        t->f32->gelu(4, y, h);
        for (int i = 0; i < 4; i++) ck_assert(same(y[i], h[i] / 2));
    }
}

/* ---- position of an element -------------------------------------------------------------------------------------- */

enum { PLACES = 3 };
static struct {
    char  *begin;
    size_t bytes;
} place[PLACES];

static void map_places(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    fill_ones();
    for (int p = 0; p < PLACES; p++) {
        char *all = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(all != MAP_FAILED);
        ck_assert_int_eq(mprotect(all + page, page, PROT_READ | PROT_WRITE), 0);
        place[p].begin = all + page, place[p].bytes = page;
    }
}

static void unmap_places(void)
{
    for (int p = 0; p < PLACES; p++) munmap(place[p].begin - place[p].bytes, 3 * place[p].bytes);
}
AROUND_TESTS(map_places, unmap_places);

/* Memory for n elements: adjacent to the page after it, or `offset` elements from the page before; all else is 0x55. */
static void *room(int p, int64_t n, size_t size, int64_t offset)
{
    memset(place[p].begin, 0x55, place[p].bytes);
    return place[p].begin + (offset < 0 ? place[p].bytes - (size_t)n * size : (size_t)offset * size);
}
static bool untouched(int p, const void *from, size_t bytes)
{
    const size_t at = (size_t)((const char *)from - place[p].begin);
    for (size_t i = 0; i < place[p].bytes; i++)
        if ((i < at || i >= at + bytes) && place[p].begin[i] != 0x55) return false;
    return true;
}

static void numbers(float *x) /* MOST of many kinds */
{
    for (int i = 0; i < MOST; i++) x[i] = from_bits(0x3c000000u + (uint32_t)i * 0x00123457u) * (i % 3 ? 1.0f : -1.0f);
    x[7] = NAN, x[20] = INFINITY, x[33] = -INFINITY, x[47] = 0x1p-140f, x[48] = -100, x[77] = 1e30f, x[128] = -1e30f;
}

TEST_EACH(tails, FUNCTIONS)
{
    float x[MOST], y[MOST];
    numbers(x);
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        if (!t) continue;
        functions[_i].f(t, MOST, y, x);
        for (int64_t n = 0; n <= MOST; n++) {
            for (int64_t offset = -1; offset < 4; offset++) {
                const int64_t from = (n * 7 + offset + 1) % (MOST - n + 1);
                float        *in = room(0, n, sizeof *in, offset), *out = room(1, n, sizeof *out, offset);
                memcpy(in, x + from, (size_t)n * sizeof *in);
                functions[_i].f(t, n, out, in);
                for (int64_t i = 0; i < n; i++)
                    expect(same(out[i], y[from + i]), "%s on %s: element %d of %d", functions[_i].name, isas[isa],
                           (int)i, (int)n);
                ck_assert(untouched(1, out, (size_t)n * sizeof *out));
                functions[_i].f(t, n, in, in);
                ck_assert(n == 0 || !memcmp(in, out, (size_t)n * sizeof *in));
                ck_assert(untouched(0, in, (size_t)n * sizeof *in));
            }
        }
    }
}

/* gx = gy · slope, where gx may be gy; gy is not read beyond its end either. */
TEST(slopes)
{
    float x[MOST], gy[MOST], slope[MOST];
    numbers(x);
    for (int i = 0; i < MOST; i++) gy[i] = (float)(i - 50) / 8;
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        if (!t) continue;
        void (*const kernels[])(int64_t, float *, const float *,
                                const float *) = {t->f32->silu_slope, t->f32->gelu_slope, t->f32->gelu_tanh_slope};
        for (int k = 0; k < 3; k++) {
            kernels[k](MOST, slope, x, ones);
            for (int64_t n = 0; n <= MOST; n++) {
                float *in = room(0, n, sizeof *in, -1), *g = room(1, n, sizeof *g, -1);
                memcpy(in, x, (size_t)n * sizeof *in), memcpy(g, gy, (size_t)n * sizeof *g);
                kernels[k](n, g, in, g);
                for (int64_t i = 0; i < n; i++) expect(same(g[i], gy[i] * slope[i]), "slope %d, element %d", k, (int)i);
                ck_assert(untouched(1, g, (size_t)n * sizeof *g));
            }
        }
    }
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

TEST(rows)
{
    float x[700], y[700];
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        if (!t) continue;
        for (int64_t n = 0; n < 700; n += n < MOST ? 1 : 57) {
            for (int64_t i = 0; i < n; i++) x[i] = (float)((i * 37 + n) % 101) / 10 - 20 + (float)(i == n / 3) * 15;
            float *in = n > MOST ? x : room(0, n, sizeof *in, -1), *out = n > MOST ? y : room(1, n, sizeof *out, -1);
            const double sign = n % 2 ? -1 : 1;
            for (int64_t i = 0; i < n; i++) in[i] = (float)sign * x[i];
            const float most = t->f32->highest(n, in);
            ck_assert(same(most, tn__highest_f32(n, in)));

            float e[700];
            tn__kernels_of("baseline")->f32->exp_sum(n, e, in, most);
            for (int64_t i = 0; i < n; i++) {
                const float down = in[i] - most;
                expect(down < -87 ? e[i] == 0 : units_off(e[i], exp((double)down)) <= 1.5, "exp(%a)", (double)down);
            }
            const double sum = tn__sum_f32(n, e);
            ck_assert(t->f32->exp_sum(n, NULL, in, most) == sum);
            ck_assert(t->f32->exp_sum(n, out, in, most) == sum);
            ck_assert(n == 0 || !memcmp(out, e, (size_t)n * sizeof *e));
            ck_assert(n > MOST || untouched(1, out, (size_t)n * sizeof *out));

            for (int64_t i = 0; i < n; i += 1 + n / 5) { /* NaN, at any position */
                const float was = in[i];
                in[i] = NAN;
                ck_assert(isnan(t->f32->highest(n, in)) && isnan(t->f32->exp_sum(n, NULL, in, 0)));
                in[i] = was;
            }
        }
        for (int i = 0; i < 40; i++) x[i] = -INFINITY;
        ck_assert(t->f32->highest(40, x) == -INFINITY && t->f32->exp_sum(40, y, x, 0) == 0);
        x[39] = 3;
        ck_assert(t->f32->highest(40, x) == 3 && t->f32->exp_sum(40, y, x, 3) == 1 && y[39] == 1 && y[0] == 0);
    }
}

/* ---- f64 -------------------------------------------------------------------------------------------------------- */

static long double r_sigmoid_l(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

/* Valgrind, and some machines, compute long double as double: then the reference has the same error as the result. */
static bool reference_is_finer(void)
{
    volatile long double tiny = 0x1p-60L;
    return 1 + tiny != 1;
}

TEST_EACH(doubles, 3)
{
    static long double (*const exact[])(long double) = {expl, tanhl, r_sigmoid_l};
    static const double      at_specials[][4] = {{1, 1, INFINITY, 0}, {0, -0.0, 1, -1}, {0.5, 0.5, 1, 0}};
    static const char *const name[] = {"exp", "tanh", "sigmoid"};
    static double            x[CHUNK], y[CHUNK], other[CHUNK];
    double                   worst = 0;
    uint64_t                 seed = 1;
    const int                chunks = tn_test_slow() ? 4 : 100;
    for (int c = 0; c < chunks; c++) {
        for (int i = 0; i < CHUNK; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const double   u = (double)(int64_t)seed * 0x1p-63;
            const uint64_t any = seed ^ seed >> 29;
            x[i] = i % 4 == 0 ? u * 750 : i % 4 == 1 ? u * 2 : u * 20;
            if (i % 4 == 3) memcpy(x + i, &any, sizeof any);
        }
        const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, -745.1, 709.78, 0x1p-1074};
        memcpy(x, special, sizeof special);
        for (int isa = 0; isa < ISAS; isa++) {
            const tn__kernel_table *t = tn__kernels_of(isas[isa]);
            if (!t) continue;
            void (*const f)(int64_t, double *, const double *) = _i == 0   ? t->f64->exp
                                                                 : _i == 1 ? t->f64->tanh
                                                                           : t->f64->sigmoid;
            f(CHUNK, isa ? other : y, x);
            for (int i = 0; isa && i < CHUNK; i++)
                expect(!memcmp(other + i, y + i, sizeof *y) || (isnan(other[i]) && isnan(y[i])), "%s(%a) on %s",
                       name[_i], x[i], isas[isa]);
            const int64_t n = (c * 5 + isa) % 40;
            double       *in = room(0, n, sizeof *in, -1), *out = room(1, n, sizeof *out, -1);
            memcpy(in, x + c, (size_t)n * sizeof *in);
            f(n, out, in);
            for (int64_t i = 0; i < n; i++) ck_assert(out[i] == y[c + i] || isnan(y[c + i]));
            ck_assert(untouched(1, out, (size_t)n * sizeof *out));
        }
        for (int i = 0; i < 4; i++)
            ck_assert(y[i] == at_specials[_i][i] && signbit(y[i]) == signbit(at_specials[_i][i]));
        for (int i = 0; i < CHUNK; i++) {
            const long double want = exact[_i](x[i]);
            if (y[i] == (double)want || (isnan(y[i]) && isnan((double)want))) continue;
            const int    e = fabsl(want) < DBL_MIN ? -1022 : ilogbl(want);
            const double off = (double)(fabsl(y[i] - want) / ldexpl(1, e - 52));
            expect(off <= (reference_is_finer() ? 2 : 4), "%s(%a): %a is %.3f units off", name[_i], x[i], y[i], off);
            worst = off > worst ? off : worst;
        }
    }
    printf("%-15s in f64: %.3f units where it is not the nearest number\n", name[_i], worst);
}

/* ---- nothing else ------------------------------------------------------------------------------------------------ */

TEST_EACH(leaves_the_rest_alone, FUNCTIONS)
{
    float          x[MOST], y[MOST];
    const int      mode = fegetround();
    volatile float small = FLT_MIN;
    numbers(x);
    errno = 77;
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        if (t) functions[_i].f(t, MOST, y, x);
    }
    ck_assert_int_eq(errno, 77);
    ck_assert_int_eq(fegetround(), mode);
    ck_assert(small / 2 > 0); /* denormals are not disabled */
}
