/* all_floats.c — compares the ops of one element over f32 values with the same functions in f64: the maximum error in
 * units of the last place of the exact value, and the results for 0, infinity, NaN and subnormal values. Prints a table
 * with one line per function; fails if an error exceeds its bound.
 *
 *     all_floats [STEP [NAME...]]     every STEP-th value (default: 1021; 1: all). NAME: only these functions */
#include "tenon.h"
#include "tests/common/exact.h"
#include <stdio.h>
#include <stdlib.h>

static double     r_sqrt(double x) { return sqrt(x); }
static double     r_rsqrt(double x) { return 1 / sqrt(x); }
static double     r_reciprocal(double x) { return 1 / x; }
static double     r_square(double x) { return x * x; }
static double     r_logsigmoid(double x) { return -r_softplus(-x); }
static tn_tensor *softplus(tn_tensor *x) { return tn_softplus(x, 1); }

static const struct {
    const char *name;
    tn_tensor *(*op)(tn_tensor *x);
    double (*exact)(double x);
    double bound; /* in units of the last place */
} functions[] = {
    {"exp", tn_exp, exp, 1},
    {"expm1", tn_expm1, expm1, 1},
    {"log", tn_log, log, 1},
    {"log1p", tn_log1p, log1p, 1},
    {"sqrt", tn_sqrt, r_sqrt, 0.5001},
    {"rsqrt", tn_rsqrt, r_rsqrt, 1},
    {"reciprocal", tn_reciprocal, r_reciprocal, 0.5001},
    {"square", tn_square, r_square, 0.5001},
    {"sin", tn_sin, r_sin, 1},
    {"cos", tn_cos, r_cos, 1},
    {"tan", tn_tan, tan, 0.5001},
    {"asin", tn_asin, asin, 0.5001},
    {"acos", tn_acos, acos, 0.5001},
    {"atan", tn_atan, atan, 0.5001},
    {"sinh", tn_sinh, sinh, 0.5001},
    {"cosh", tn_cosh, cosh, 0.5001},
    {"log2", tn_log2, log2, 0.5001},
    {"log10", tn_log10, log10, 0.5001},
    {"tanh", tn_tanh, tanh, 1},
    {"erf", tn_erf, erf, 1},
    {"sigmoid", tn_sigmoid, r_sigmoid, 1},
    {"logsigmoid", tn_logsigmoid, r_logsigmoid, 1},
    {"softplus", softplus, r_softplus, 1},
    {"gelu", tn_gelu, r_gelu, 1},
    {"gelu_tanh", tn_gelu_tanh, r_gelu_tanh, 1},
    {"silu", tn_silu, r_silu, 1},
    {"mish", tn_mish, r_mish, 1},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, BLOCK = 1 << 16, GRAIN = 1 };

/* The result for a block of values or for all: the maximum error, its position, and the number of results that are the
 * correctly rounded exact value. */
typedef struct {
    double  worst;
    float   at;
    int64_t rounded;
} verdict;

typedef struct {
    int      f;
    uint64_t step, numbers;
    verdict *of; /* results of the blocks */
    bool     failed;
} job;

static void look(int64_t from, int64_t to, void *user)
{
    job *j = user;
    for (int64_t b = from; b < to; b++) {
        const tn_scope s = tn_no_grad_begin();
        const uint64_t first = (uint64_t)b * BLOCK, left = j->numbers - first, n = left < BLOCK ? left : BLOCK;
        tn_tensor     *x = tn_empty(TN_SHAPE((int64_t)n));
        float         *in = x ? tn_data_mut(x) : NULL;
        verdict        v = {0, 0, 0};
        for (uint64_t i = 0; in && i < n; i++) in[i] = from_bits((uint32_t)((first + i) * j->step));
        const tn_tensor *y = functions[j->f].op(x);
        const float     *out = y ? tn_data(y) : NULL;
        for (uint64_t i = 0; out && i < n; i++) {
            const double want = functions[j->f].exact((double)in[i]), off = units_off(out[i], want);
            if (off > v.worst) v.worst = off, v.at = in[i];
            v.rounded += same(out[i], (float)want);
        }
        j->of[b] = v;
        tn_scope_end(s);
    }
}

/* Writes the results for special values as text. Returns true if all are within the bound of the exact function. */
static bool specials(int f, char to[96])
{
    static const float numbers[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f};
    const tn_scope     s = tn_no_grad_begin();
    const float       *y = tn_data(functions[f].op(tn_from_data(TN_F32, TN_SHAPE(7), numbers)));
    bool               fine = y != NULL;
    int                at = 0;
    for (int i = 0; y && i < 7; i++) {
        const double want = functions[f].exact((double)numbers[i]);
        fine = fine && units_off(y[i], want) <= functions[f].bound;
        if (i < 4)
            at += snprintf(to + at, (size_t)(96 - at), "%s%.6g", i ? " | " : "",
                           isnan(y[i]) ? (double)NAN : (double)y[i]);
    }
    tn_scope_end(s);
    return fine;
}

static bool asked_for(const char *name, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    const uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 1021;
    bool           wrong = false;
    if (step < 1) return fputs("all_floats [STEP [NAME...]]: STEP is 1 or more\n", stderr), 2;
    const uint64_t numbers = ((UINT64_C(1) << 32) + step - 1) / step;
    const int64_t  blocks = (int64_t)((numbers + BLOCK - 1) / BLOCK);
    job            j = {.step = step, .numbers = numbers, .of = calloc((size_t)blocks, sizeof *j.of)};
    if (!j.of) return 1;
    printf("| f32, %llu values each | maximum error | at | correctly rounded | f(0) | f(-0) | f(inf) | f(-inf) |\n"
           "|---|---|---|---|---|---|---|---|\n",
           (unsigned long long)numbers);
    for (j.f = 0; j.f < FUNCTIONS; j.f++) {
        if (!asked_for(functions[j.f].name, argc > 2 ? argc - 2 : 0, argv + 2)) continue;
        tn_parallel_for(blocks, GRAIN, look, &j);
        verdict all = {0, 0, 0};
        char    text[96];
        for (int64_t b = 0; b < blocks; b++) {
            if (j.of[b].worst > all.worst) all.worst = j.of[b].worst, all.at = j.of[b].at;
            all.rounded += j.of[b].rounded;
        }
        const bool fine = specials(j.f, text) && all.worst <= functions[j.f].bound && tn_error() == TN_OK;
        printf("| %s | %.3f | %.9g | %.2f %% | %s |%s\n", functions[j.f].name, all.worst, (double)all.at,
               100 * (double)all.rounded / (double)numbers, text, fine ? "" : " WRONG");
        fflush(stdout);
        wrong = wrong || !fine;
    }
    free(j.of);
    if (tn_error() != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
    return wrong;
}
