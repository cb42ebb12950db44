/* test_pointwise.c — functions of one element at every kind of value: zeros of both signs, infinities, NaN, denormals,
 * large and ordinary values, in f64, f32 and bf16, compared with the same function in long double; their slopes where
 * mathematics leaves a choice; and the same bits at any position of an element. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

#include <float.h>

typedef long double real;

static real r_neg(real x) { return -x; }
static real r_abs(real x) { return fabsl(x); }
static real r_sign(real x) { return (real)((x > 0) - (x < 0)); }
static real r_rsqrt(real x) { return 1 / sqrtl(x); }
static real r_square(real x) { return x * x; }
static real r_reciprocal(real x) { return 1 / x; }
static real r_sigmoid(real x) { return 1 / (1 + expl(-x)); }
static real r_logsigmoid(real x) { return x < 0 ? x - log1pl(expl(x)) : -log1pl(expl(-x)); }
static real r_relu(real x) { return x > 0 ? x : x != x ? x : 0; }
static real r_leaky(real x) { return x > 0 ? x : x * 0.125L; }
static real r_elu(real x) { return x > 0 ? x : expm1l(x) * 1.5L; }
static real r_gelu(real x) { return x == -INFINITY ? 0 : x / 2 * erfcl(-x / sqrtl(2)); }
static real gelu_z(real x) { return sqrtl(8 / acosl(-1)) * (x + 0.044715L * x * x * x); }
static real r_gelu_tanh(real x) { return x == -INFINITY ? 0 : x * r_sigmoid(gelu_z(x)); }
static real r_silu(real x) { return x == -INFINITY ? 0 : x * r_sigmoid(x); }
static real r_softplus(real x) { return x > 20 ? x : log1pl(expl(x)); }
static real r_softplus_2(real x) { return 2 * x > 20 ? x : log1pl(expl(2 * x)) / 2; }
static real r_mish(real x) { return x == -INFINITY ? 0 : x * tanhl(log1pl(expl(x))); }
static real r_clamp(real x) { return x < -0.5L ? -0.5L : x > 2 ? 2 : x; }
static real r_cube(real x) { return x * x * x; }

static tn_tensor *f_leaky(tn_tensor *x) { return tn_leaky_relu(x, 0.125); }
static tn_tensor *f_elu(tn_tensor *x) { return tn_elu(x, 1.5); }
static tn_tensor *f_softplus(tn_tensor *x) { return tn_softplus(x, 1); }
static tn_tensor *f_softplus_2(tn_tensor *x) { return tn_softplus(x, 2); }
static tn_tensor *f_clamp(tn_tensor *x) { return tn_clamp(x, -0.5, 2); }
static tn_tensor *f_from(tn_tensor *x) { return tn_clamp(x, -0.5, INFINITY); }
static tn_tensor *f_up_to(tn_tensor *x) { return tn_clamp(x, -INFINITY, 2); }
static tn_tensor *f_crossed(tn_tensor *x) { return tn_clamp(x, 2, -0.5); }
static tn_tensor *f_point(tn_tensor *x) { return tn_clamp(x, 2, 2); }
static tn_tensor *f_cube(tn_tensor *x) { return tn_pow_scalar(x, 3); }
static tn_tensor *f_halves(tn_tensor *x) { return tn_mul_scalar(x, 0.5); }
static real       r_halves(real x) { return x / 2; }

/* The change of the result, in units, by a rounded argument: the function's condition, |x f' / f|, where it is
 * large. */
#define HALF_PI 1.57079632679489661923
static real flat(real x) { return 0 * x; }
static real c_gelu(real x) { return x < 0 ? x * x : 0; }
static real c_gelu_tanh(real x) { return x < 0 ? 4 * fabsl(gelu_z(x)) : 0; }

/* y[]: exact values at 0, -0, infinity and -infinity. ulps: rounding errors in units in the last place; each C function
 * makes one; 0: none. times_x: the last step multiplies a value that may be the smallest possible by x. */
static const struct {
    const char *name;
    tn_tensor *(*f)(tn_tensor *);
    real (*reference)(real);
    double y[4];
    double ulps;
    real (*condition)(real);
    bool times_x;
} functions[] = {
    {"neg", tn_neg, r_neg, {-0.0, 0, -INFINITY, INFINITY}, 0, flat, false},
    {"abs", tn_abs, r_abs, {0, 0, INFINITY, INFINITY}, 0, flat, false},
    {"sign", tn_sign, r_sign, {0, 0, 1, -1}, 0, flat, false},
    {"exp", tn_exp, expl, {1, 1, INFINITY, 0}, 1, flat, false},
    {"expm1", tn_expm1, expm1l, {0, -0.0, INFINITY, -1}, 1, flat, false},
    {"log", tn_log, logl, {-INFINITY, -INFINITY, INFINITY, NAN}, 1, flat, false},
    {"log1p", tn_log1p, log1pl, {0, -0.0, INFINITY, NAN}, 1, flat, false},
    {"sqrt", tn_sqrt, sqrtl, {0, -0.0, INFINITY, NAN}, 0.5, flat, false},
    {"rsqrt", tn_rsqrt, r_rsqrt, {INFINITY, -INFINITY, 0, NAN}, 1.5, flat, false},
    {"square", tn_square, r_square, {0, 0, INFINITY, INFINITY}, 0.5, flat, false},
    {"reciprocal", tn_reciprocal, r_reciprocal, {INFINITY, -INFINITY, 0, -0.0}, 0.5, flat, false},
    {"sin", tn_sin, sinl, {0, -0.0, NAN, NAN}, 1, flat, false},
    {"cos", tn_cos, cosl, {1, 1, NAN, NAN}, 1, flat, false},
    {"tan", tn_tan, tanl, {0, -0.0, NAN, NAN}, 1, flat, false},
    {"asin", tn_asin, asinl, {0, -0.0, NAN, NAN}, 1, flat, false},
    {"acos", tn_acos, acosl, {HALF_PI, HALF_PI, NAN, NAN}, 1, flat, false},
    {"atan", tn_atan, atanl, {0, -0.0, HALF_PI, -HALF_PI}, 1, flat, false},
    {"sinh", tn_sinh, sinhl, {0, -0.0, INFINITY, -INFINITY}, 2, flat, false},
    {"cosh", tn_cosh, coshl, {1, 1, INFINITY, INFINITY}, 2, flat, false},
    {"log2", tn_log2, log2l, {-INFINITY, -INFINITY, INFINITY, NAN}, 1, flat, false},
    {"log10", tn_log10, log10l, {-INFINITY, -INFINITY, INFINITY, NAN}, 2, flat, false},
    {"tanh", tn_tanh, tanhl, {0, -0.0, 1, -1}, 2, flat, false},
    {"erf", tn_erf, erfl, {0, -0.0, 1, -1}, 1, flat, false},
    {"floor", tn_floor, floorl, {0, -0.0, INFINITY, -INFINITY}, 0, flat, false},
    {"ceil", tn_ceil, ceill, {0, -0.0, INFINITY, -INFINITY}, 0, flat, false},
    {"round", tn_round, rintl, {0, -0.0, INFINITY, -INFINITY}, 0, flat, false},
    {"sigmoid", tn_sigmoid, r_sigmoid, {0.5, 0.5, 1, 0}, 3, flat, false},
    {"logsigmoid", tn_logsigmoid, r_logsigmoid, {0, 0, 0, -INFINITY}, 3, flat, false}, /* at 0: see special() */
    {"relu", tn_relu, r_relu, {0, 0, INFINITY, 0}, 0, flat, false},
    {"leaky_relu", f_leaky, r_leaky, {0, -0.0, INFINITY, -INFINITY}, 0, flat, false},
    {"elu", f_elu, r_elu, {0, -0.0, INFINITY, -1.5}, 2, flat, false},
    {"gelu", tn_gelu, r_gelu, {0, -0.0, INFINITY, 0}, 3, c_gelu, true},
    {"gelu_tanh", tn_gelu_tanh, r_gelu_tanh, {0, -0.0, INFINITY, 0}, 5, c_gelu_tanh, true},
    {"silu", tn_silu, r_silu, {0, -0.0, INFINITY, 0}, 4, flat, true},
    {"mish", tn_mish, r_mish, {0, -0.0, INFINITY, 0}, 6, flat, true},
    {"softplus", f_softplus, r_softplus, {0, 0, INFINITY, 0}, 2, flat, false},        /* see special() */
    {"softplus(2)", f_softplus_2, r_softplus_2, {0, 0, INFINITY, 0}, 3, flat, false}, /* see special() */
    {"clamp", f_clamp, r_clamp, {0, -0.0, 2, -0.5}, 0, flat, false},
    {"pow_scalar(3)", f_cube, r_cube, {0, -0.0, INFINITY, -INFINITY}, 1, flat, false},
    {"mul_scalar", f_halves, r_halves, {0, -0.0, INFINITY, -INFINITY}, 0.5, flat, false},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const double ordinary[] = {1e-20, 1e-9,  1e-5, 0.001, 0.1, 0.25, 0.5, 0.7, 1,   1.5,  2,    2.5,
                                  3,     3.5,   4.5,  5.5,   7,   8.5,  9.9, 11,  15,  19.9, 21,   30,
                                  50,    87.25, 88.5, 95,    103, 300,  707, 745, 1e4, 1e9,  1e19, 3e38};

/* The extremes of the dtype. */
static double smallest(tn_dtype dt) { return dt == TN_F64 ? 0x1p-1074 : dt == TN_F32 ? 0x1p-149 : 0x1p-133; }
static double normal(tn_dtype dt) { return dt == TN_F64 ? DBL_MIN : FLT_MIN; }
static double largest(tn_dtype dt) { return dt == TN_F64 ? DBL_MAX : dt == TN_F32 ? FLT_MAX : 0x1.fep127; }
static double epsilon(tn_dtype dt) { return dt == TN_F64 ? DBL_EPSILON : dt == TN_F32 ? FLT_EPSILON : 0x1p-7; }

/* Every kind of value of dt, rounded to dt. */
static tn_tensor *numbers(tn_dtype dt)
{
    enum { N = sizeof ordinary / sizeof *ordinary };
    double v[2 * N + 12];
    int    n = 0;
    for (int i = 0; i < N; i++) v[n++] = ordinary[i], v[n++] = -ordinary[i];
    const double own[] = {smallest(dt), 3 * smallest(dt), normal(dt), normal(dt) / 4, largest(dt), 1 + epsilon(dt)};
    for (int i = 0; i < 6; i++) v[n++] = own[i], v[n++] = -own[i];
    tn_tensor *t = tn_empty_of(dt, TN_SHAPE(n));
    for (int i = 0; i < n; i++) tn_set(t, i, v[i]);
    return t;
}

static real rounded(real v, tn_dtype dt) /* to f32 or f64; past the largest: infinity */
{
    return dt == TN_F64 ? (real)(double)v : (real)(float)v;
}

/* Valgrind, and some machines, compute long double as double: then the reference has the same error as the result. */
static bool reference_is_finer(void)
{
    volatile real tiny = 0x1p-60L;
    return 1 + tiny != 1;
}

static const tn_dtype types[] = {TN_F64, TN_F32, TN_BF16};

TEST_EACH(values, FUNCTIONS)
{
    const char *name = functions[_i].name;
    for (int k = 0; k < 2; k++) {
        const tn_dtype dt = types[k];
        tn_tensor     *x = numbers(dt), *y = functions[_i].f(x);
        ck_assert_msg(y && tn_dtype_of(y) == dt, "%s: %s", name, tn_error_message());
        for (int64_t i = 0; i < tn_numel(x); i++) {
            real at = tn_get(x, i), want = functions[_i].reference(at), got = tn_get(y, i);
            real nearest = rounded(want, dt);
            if (got == nearest || (isnan(got) && isnan(nearest))) continue;
            real units = functions[_i].ulps + functions[_i].condition(at);
            if (dt == TN_F64 && functions[_i].ulps > 0 && !reference_is_finer()) units *= 2;
            real tiny = units * smallest(dt) * (functions[_i].times_x ? fmaxl(1, fabsl(at)) : 1);
            real slack = units * epsilon(dt) * fabsl(want) + tiny; /* among denormals a unit is fixed */
            ck_assert_msg(fabsl(got - want) <= slack, "%s(%.17Lg) in %s: %.17Lg, should be %.17Lg", name, at,
                          tn_dtype_name(dt), got, want);
        }
    }
}

static double special(int f, int which, tn_dtype dt)
{
    if (which < 2 && !strncmp(functions[f].name, "logsigmoid", 10)) return dt == TN_F64 ? -log(2) : (double)-logf(2);
    if (which < 2 && !strcmp(functions[f].name, "softplus")) return dt == TN_F64 ? log(2) : (double)logf(2);
    if (which < 2 && !strcmp(functions[f].name, "softplus(2)"))
        return dt == TN_F64 ? log(2) / 2 : (double)(logf(2) / 2);
    return functions[f].y[which];
}

TEST_EACH(zeros_infinities_nan, FUNCTIONS)
{
    const double at[] = {0, -0.0, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++) {
        tn_dtype dt = types[k];
        for (int j = 0; j < 4; j++) {
            double got = tn_item(functions[_i].f(tn_scalar_of(dt, at[j])));
            double want = tn_item(tn_scalar_of(dt, special(_i, j, dt)));
            ck_assert_msg((isnan(got) && isnan(want)) || (got == want && signbit(got) == signbit(want)),
                          "%s(%g) in %s: %.17g, should be %.17g", functions[_i].name, at[j], tn_dtype_name(dt), got,
                          want);
        }
        double of_nan = tn_item(functions[_i].f(tn_scalar_of(dt, NAN)));
        if (!strcmp(functions[_i].name, "sign")) ck_assert_double_eq(of_nan, 0); /* as in PyTorch */
        else ck_assert_msg(isnan(of_nan), "%s(NaN) in %s: %g", functions[_i].name, tn_dtype_name(dt), of_nan);
    }
}

/* bf16 is f32, rounded once: exactly. */
TEST_EACH(bf16_is_rounded_f32, FUNCTIONS)
{
    tn_tensor *x = numbers(TN_BF16), *y = functions[_i].f(x), *wide = tn_to(functions[_i].f(tn_to(x, TN_F32)), TN_BF16);
    ck_assert_int_eq(tn_dtype_of(y), TN_BF16);
    for (int64_t i = 0; i < tn_numel(x); i++) {
        double a = tn_get(y, i), b = tn_get(wide, i);
        ck_assert_msg(a == b || (isnan(a) && isnan(b)), "%s(%g): %g, by f32 %g", functions[_i].name, tn_get(x, i), a,
                      b);
    }
}

/* ---- the position of an element changes nothing ------------------------------------------------------------------ */

static void same_bits(tn_tensor *whole, int64_t from, const tn_tensor *part, const char *name)
{
    int64_t n = tn_numel(part);
    ck_assert_msg(tn_same_bits(tn_narrow(whole, 0, from, n), part),
                  "%s: %lld elements from %lld are not those of the whole", name, (long long)n, (long long)from);
}

TEST_EACH(tails, FUNCTIONS)
{
    for (int k = 0; k < 3; k++) {
        tn_tensor *x = tn_uniform_of(types[k], TN_SHAPE(200), -3, 3), *y = functions[_i].f(x);
        for (int64_t n = 0; n <= 130; n++) {
            tn_scope   s = tn_scope_begin();
            int64_t    from = n * 7 % 64;
            tn_tensor *part = tn_narrow(x, 0, from, n);
            same_bits(y, from, functions[_i].f(part), functions[_i].name);
            same_bits(y, from, functions[_i].f(tn_clone(part)), functions[_i].name);
            tn_scope_end(s);
        }
    }
}

TEST(tails_of_two)
{
    static const struct {
        const char *name;
        tn_tensor *(*f)(tn_tensor *, tn_tensor *);
    } binary[] = {{"add", tn_add},
                  {"sub", tn_sub},
                  {"mul", tn_mul},
                  {"div", tn_div},
                  {"pow", tn_pow},
                  {"maximum", tn_maximum},
                  {"minimum", tn_minimum},
                  {"remainder", tn_remainder},
                  {"atan2", tn_atan2},
                  {"logaddexp", tn_logaddexp},
                  {"floor_divide", tn_floor_divide},
                  {"lt", tn_lt},
                  {"eq", tn_eq}};
    for (size_t f = 0; f < sizeof binary / sizeof *binary; f++)
        for (int k = 0; k < 3; k++) {
            tn_tensor *a = tn_uniform_of(types[k], TN_SHAPE(200), 0.1, 3),
                      *b = tn_uniform_of(types[k], TN_SHAPE(200), 0.1, 3);
            tn_tensor *y = binary[f].f(a, b);
            for (int64_t n = 0; n <= 130; n++) {
                tn_scope s = tn_scope_begin();
                int64_t  from = n * 5 % 64;
                same_bits(y, from, binary[f].f(tn_narrow(a, 0, from, n), tn_clone(tn_narrow(b, 0, from, n))),
                          binary[f].name);
                tn_scope_end(s);
            }
        }
}

/* ---- slopes where mathematics leaves a choice, or a formula would compute inf · 0 -------------------------------- */

static double slope(tn_tensor *(*f)(tn_tensor *), double at, tn_dtype dt, bool ops)
{
    tn_tensor *x = tn_requires_grad(tn_scalar_of(dt, at)), *g = tn_grad_wrt(f(x), x, ops);
    return g ? tn_item(g) : 0; /* NULL: zero */
}

TEST(slopes)
{
    static const struct {
        const char *name;
        tn_tensor *(*f)(tn_tensor *);
        double at, want;
    } at[] = {
        {"relu", tn_relu, 0, 0},
        {"relu", tn_relu, -0.0, 0},
        {"relu", tn_relu, INFINITY, 1},
        {"relu", tn_relu, -INFINITY, 0},
        {"abs", tn_abs, 0, 0},
        {"abs", tn_abs, -2, -1},
        {"leaky_relu", f_leaky, 0, 0.125},
        {"elu", f_elu, 0, 1.5},
        {"elu", f_elu, 1e4, 1},
        {"elu", f_elu, INFINITY, 1},
        {"elu", f_elu, -INFINITY, 0},
        {"clamp", f_clamp, -0.5, 0}, /* at the bounds as in PyTorch 2.15 */
        {"clamp", f_clamp, 2, 0},
        {"clamp", f_clamp, 1, 1},
        {"clamp from -0.5", f_from, -0.5, 0},
        {"clamp from -0.5", f_from, INFINITY, 1},
        {"clamp to 2", f_up_to, 2, 0},
        {"clamp to 2", f_up_to, -INFINITY, 1},
        {"clamp to 2", f_up_to, NAN, 0},
        {"clamp, nothing inside", f_crossed, 1, 0},
        {"clamp to a point", f_point, 2, 0},
        {"clamp", f_clamp, 2.5, 0},
        {"clamp", f_clamp, NAN, 0},
        {"sqrt", tn_sqrt, 0, INFINITY},
        {"rsqrt", tn_rsqrt, 0, -INFINITY},
        {"log", tn_log, 0, INFINITY},
        {"exp", tn_exp, -INFINITY, 0},
        {"tanh", tn_tanh, 1e4, 0},
        {"tanh", tn_tanh, -INFINITY, 0},
        {"erf", tn_erf, 1e4, 0},
        {"sigmoid", tn_sigmoid, 1e4, 0},
        {"sigmoid", tn_sigmoid, -1e4, 0},
        {"logsigmoid", tn_logsigmoid, 1e4, 0},
        {"logsigmoid", tn_logsigmoid, -1e4, 1},
        {"logsigmoid", tn_logsigmoid, -INFINITY, 1},
        {"softplus", f_softplus, 25, 1},
        {"softplus", f_softplus, 1e4, 1},
        {"softplus", f_softplus, -1e4, 0},
        {"softplus", f_softplus, -INFINITY, 0},
        {"gelu", tn_gelu, 1e4, 1},
        {"gelu", tn_gelu, -1e4, 0},
        {"gelu", tn_gelu, INFINITY, 1},
        {"gelu", tn_gelu, -INFINITY, 0},
        {"gelu_tanh", tn_gelu_tanh, 1e4, 1},
        {"gelu_tanh", tn_gelu_tanh, -1e4, 0},
        {"gelu_tanh", tn_gelu_tanh, 1e30, 1},
        {"gelu_tanh", tn_gelu_tanh, INFINITY, 1},
        {"gelu_tanh", tn_gelu_tanh, -INFINITY, 0},
        {"silu", tn_silu, 1e4, 1},
        {"silu", tn_silu, -1e4, 0},
        {"silu", tn_silu, INFINITY, 1},
        {"silu", tn_silu, -INFINITY, 0},
        {"mish", tn_mish, 100, 1},
        {"mish", tn_mish, 3e38, 1},
        {"mish", tn_mish, -3e38, 0},
        {"mish", tn_mish, INFINITY, 1},
        {"mish", tn_mish, -INFINITY, 0},
        {"floor", tn_floor, 1.5, 0},
        {"ceil", tn_ceil, 1.5, 0},
        {"round", tn_round, 1.5, 0},
        {"sign", tn_sign, 1.5, 0},
        {"pow_scalar(3)", f_cube, 0, 0},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (int k = 0; k < 3; k++)
            for (int ops = 0; ops < 2; ops++) {
                double got = slope(at[i].f, at[i].at, types[k], ops), want = at[i].want;
                ck_assert_msg(got == want, "%s'(%g) in %s%s: %g, should be %g", at[i].name, at[i].at,
                              tn_dtype_name(types[k]), ops ? ", made of ops" : "", got, want);
            }
}

/* A bound that f32 cannot represent: the slope there is 0 in f64 and f32, and correct on both sides of it. */
TEST(slopes_at_a_rounded_bound)
{
    static const double bounds[] = {0.1, 0.3, 0.7, 1.1};
    for (int b = 0; b < 4; b++)
        for (int k = 0; k < 2; k++)
            for (int ops = 0; ops < 2; ops++) {
                const double at = k ? (double)(float)bounds[b] : bounds[b];
                const double less = k ? (double)nextafterf((float)at, -9) : nextafter(at, -9);
                const double more = k ? (double)nextafterf((float)at, 9) : nextafter(at, 9);
                tn_tensor   *x = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(3), (double[]){less, at, more}));
                if (k) x = tn_requires_grad(tn_to(tn_detach(x), TN_F32));
                tn_tensor *low = tn_grad_wrt(tn_sum(tn_clamp(x, bounds[b], 9)), x, ops);
                tn_tensor *high = tn_grad_wrt(tn_sum(tn_clamp(x, -9, bounds[b])), x, ops);
                for (int i = 0; i < 3; i++) {
                    ck_assert_double_eq(tn_get(low, i), i == 2);
                    ck_assert_double_eq(tn_get(high, i), i == 0);
                }
            }
}

/* ---- mish: as softplus, tanh and a product its slope was NaN at 3e38, and 8 units wrong in bf16 ------------------ */

static real mish_slope(real x)
{
    if (x > 5000 || x < -5000) return x > 0;
    const real r = r_sigmoid(-x), t = tanhl(log1pl(expl(x)));
    return t + x * r_sigmoid(x) * (4 * r * r / ((1 + r * r) * (1 + r * r)));
}

/* Where the slope changes its sign its two halves are accurate, but not their difference. */
static real mish_halves(real x)
{
    const real t = tanhl(log1pl(expl(x)));
    return x < 0 && x > -5000 ? t + fabsl(mish_slope(x) - t) : mish_slope(x);
}

TEST(slope_of_mish)
{
    for (int k = 0; k < 2; k++) {
        tn_tensor *v = tn_cat(0, numbers(types[k]), tn_uniform_of(types[k], TN_SHAPE(2000), -9, 9));
        tn_tensor *x = tn_requires_grad(v);
        for (int ops = 0; ops < 2; ops++) {
            tn_tensor *g = tn_grad_wrt(tn_sum(tn_mul_scalar(tn_mish(x), 4)), x, ops);
            for (int64_t i = 0; i < tn_numel(x); i++) {
                const real at = tn_get(x, i), want = mish_slope(at), got = tn_get(g, i) / 4;
                const real slack = 4 * (epsilon(types[k]) * mish_halves(at) + smallest(types[k]) * fmaxl(1, fabsl(at)));
                ck_assert_msg(fabsl(got - want) <= slack, "mish'(%.17Lg) in %s: %.17Lg, should be %.17Lg", at,
                              tn_dtype_name(types[k]), got, want);
            }
        }
    }
}

/* x, y and slope in bf16 as computed by PyTorch 2.15, to the last bit. */
TEST(mish_in_bf16)
{
    static const double rows[][3] = {{-50, -9.63499978e-21, -9.4761811e-21},
                                     {-20, -4.12110239e-08, -3.91155481e-08},
                                     {-10, -0.000453948975, -0.000408172607},
                                     {-6, -0.014831543, -0.0123901367},
                                     {-4, -0.0727539062, -0.0537109375},
                                     {-2, -0.251953125, -0.108398438},
                                     {-1.5, -0.298828125, -0.0639648438},
                                     {-1.1875, -0.30859375, 0.00131988525},
                                     {-1, -0.302734375, 0.0593261719},
                                     {-0.5, -0.220703125, 0.2890625},
                                     {-0.25, -0.129882812, 0.439453125},
                                     {-0.0625, -0.0361328125, 0.55859375},
                                     {0, 0, 0.6015625},
                                     {0.0625, 0.0388183594, 0.640625},
                                     {0.25, 0.169921875, 0.75390625},
                                     {0.5, 0.375, 0.88671875},
                                     {1, 0.86328125, 1.046875},
                                     {1.5, 1.40625, 1.0859375},
                                     {2, 1.9453125, 1.0703125},
                                     {3, 2.984375, 1.0234375},
                                     {4, 4, 1.0078125},
                                     {5, 5, 1},
                                     {20, 20, 1},
                                     {100, 100, 1},
                                     {3.00405527e+38, 3.00405527e+38, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_tensor   *x = tn_requires_grad(tn_scalar_of(TN_BF16, rows[i][0])), *y = tn_mish(x);
        const double value = tn_item(tn_scalar_of(TN_BF16, rows[i][1])), g = tn_item(tn_scalar_of(TN_BF16, rows[i][2]));
        ck_assert_msg(tn_item(y) == value, "mish(%g): %.9g, PyTorch %.9g", rows[i][0], tn_item(y), value);
        const double got = tn_item(tn_grad_wrt(y, x, false));
        ck_assert_msg(got == g, "mish'(%g): %.9g, PyTorch %.9g", rows[i][0], got, g);
    }
}

/* The ops that backwards are made of must not turn a finite second or third derivative into NaN. */
TEST(third_derivatives)
{
    static const struct {
        tn_tensor *(*f)(tn_tensor *);
        double at, want[3];
    } at[] = {
        {f_cube, 0, {0, 0, 6}},          {f_cube, 2, {12, 12, 6}},        {f_elu, 1e4, {1, 0, 0}},
        {f_elu, -1e4, {0, 0, 0}},        {tn_gelu, -1e4, {0, 0, 0}},      {tn_gelu, 1e4, {1, 0, 0}},
        {tn_gelu, -INFINITY, {0, 0, 0}}, {tn_silu, -INFINITY, {0, 0, 0}}, {tn_silu, 1e4, {1, 0, 0}},
        {tn_gelu_tanh, 1e30, {1, 0, 0}}, {tn_relu, 3, {1, 0, 0}},         {tn_relu, 0, {0, 0, 0}},
        {tn_mish, 3e38, {1, 0, 0}},      {tn_mish, -INFINITY, {0, 0, 0}}, {f_softplus, 1e4, {1, 0, 0}},
        {tn_sigmoid, -1e4, {0, 0, 0}},   {tn_square, 0, {0, 2, 0}},       {tn_reciprocal, 2, {-0.25, 0.25, -0.375}},
        {tn_log, 2, {0.5, -0.25, 0.25}}, {tn_exp, 0, {1, 1, 1}},          {tn_sin, 0, {1, 0, -1}},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        tn_tensor *x = tn_requires_grad(tn_scalar_of(TN_F64, at[i].at)), *y = at[i].f(x);
        for (int order = 0; order < 3; order++) {
            y = y && tn_needs_grad(y) ? tn_grad_wrt(y, x, true) : NULL;
            double got = y ? tn_item(y) : 0;
            ck_assert_msg(fabs(got - at[i].want[order]) < 1e-12, "row %zu, derivative %d at %g: %g, should be %g: %s",
                          i, order + 1, at[i].at, got, at[i].want[order], tn_error_message());
        }
    }
}
