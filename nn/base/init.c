/* init.c — initial values, as in torch.nn.init. Each function draws into a temporary tensor and copies it to t only
 * after everything has succeeded. */
#include "nn/base/nn_private.h"

#include <math.h>

typedef struct {
    tn_scope     scope; /* without a tape */
    tn_generator before;
    tn_tensor *unchanged; /* the result if nothing is to be drawn: NULL (an error is set) or t (see tn__blank_begin) */
} fill;

/* True if t may be filled; then the caller ends with filled(). */
static bool begin_fill(const char *who, const tn_tensor *t, fill *s)
{
    s->unchanged = NULL;
    if (tn__blocked()) return false;
    if (!t) return tn_raise_false(TN_EINVAL, "%s: the tensor is NULL", who);
    if (!tn_dtype_is_float(tn_dtype_of(t)))
        return tn_raise_false(TN_EDTYPE, "%s: the tensor is %s, but must be floating", who,
                              tn_dtype_name(tn_dtype_of(t)));
    *s = (fill){tn_no_grad_begin(), *tn_current_generator(), NULL};
    return true;
}

/* True if random values are to be drawn for t; else the caller returns s->unchanged. */
static bool begin_draw(const char *who, tn_tensor *t, fill *s)
{
    if (!begin_fill(who, t, s)) return false;
    if (!tn__self.mode.blank) return true;
    tn_scope_end(s->scope);
    s->unchanged = t;
    return false;
}

static tn_tensor *finish(fill s, tn_tensor *t, const tn_tensor *with)
{
    const bool ok = with && tn_error() == TN_OK && tn_copy_from(t, with) == TN_OK;
    tn_scope_end(s.scope);
    if (!ok) *tn_current_generator() = s.before;
    return ok ? t : NULL;
}

tn_tensor *tn_init_uniform(tn_tensor *t, double low, double high)
{
    fill s;
    if (!begin_draw("tn_init_uniform", t, &s)) return s.unchanged;
    return finish(s, t, tn_uniform_of(tn_dtype_of(t), tn_shape_of(t), low, high));
}

tn_tensor *tn_init_normal(tn_tensor *t, double mean, double std)
{
    fill s;
    if (!begin_draw("tn_init_normal", t, &s)) return s.unchanged;
    return finish(s, t, tn_normal_of(tn_dtype_of(t), tn_shape_of(t), mean, std));
}

static tn_tensor *constant(const char *who, tn_tensor *t, double value)
{
    fill s;
    if (!begin_fill(who, t, &s)) return NULL;
    const bool ok = tn_fill(t, value) == TN_OK;
    tn_scope_end(s.scope);
    return ok ? t : NULL;
}

tn_tensor *tn_init_constant(tn_tensor *t, double value) { return constant("tn_init_constant", t, value); }
tn_tensor *tn_init_zeros(tn_tensor *t) { return constant("tn_init_zeros", t, 0); }
tn_tensor *tn_init_ones(tn_tensor *t) { return constant("tn_init_ones", t, 1); }

static bool two_dims(const char *who, const tn_tensor *t)
{
    char text[192];
    if (tn_ndim(t) == 2) return true;
    return tn_raise_false(TN_ESHAPE, "%s: the tensor must have two dims, got %s", who,
                          tn_shape_text(tn_shape_of(t), text, sizeof text));
}

tn_tensor *tn_init_eye(tn_tensor *t)
{
    fill s;
    if (!begin_fill("tn_init_eye", t, &s)) return NULL;
    return finish(s, t, two_dims("tn_init_eye", t) ? tn_eye_of(tn_dtype_of(t), tn_size(t, 0), tn_size(t, 1)) : NULL);
}

/* ---- by fan: fan in = inputs per output, fan out = outputs per input ------------------------------------------- */

static bool fans(const char *who, const tn_tensor *t, double *in, double *out)
{
    char           text[192];
    const tn_shape s = tn_shape_of(t);
    double         kernel = 1;
    if (s.n < 2)
        return tn_raise_false(
            TN_ESHAPE,
            "%s: a fan needs a weight [out, in, ...], got %s; use tn_init_uniform or tn_init_zeros for "
            "biases",
            who, tn_shape_text(s, text, sizeof text));
    for (int i = 2; i < s.n; i++) kernel *= (double)s.d[i];
    *in = (double)s.d[1] * kernel, *out = (double)s.d[0] * kernel;
    return true;
}

static tn_tensor *xavier(const char *who, tn_tensor *t, double gain, bool normal)
{
    fill       s;
    double     in, out;
    tn_tensor *v = NULL;
    if (!begin_draw(who, t, &s)) return s.unchanged;
    if (fans(who, t, &in, &out)) {
        const double std = in + out > 0 ? gain * sqrt(2 / (in + out)) : 0, bound = sqrt(3) * fabs(std);
        if (normal) v = tn_normal_of(tn_dtype_of(t), tn_shape_of(t), 0, std);
        else v = tn_uniform_of(tn_dtype_of(t), tn_shape_of(t), -bound, bound);
    }
    return finish(s, t, v);
}

tn_tensor *tn_init_xavier_uniform(tn_tensor *t, double gain)
{
    return xavier("tn_init_xavier_uniform", t, gain, false);
}
tn_tensor *tn_init_xavier_normal(tn_tensor *t, double gain) { return xavier("tn_init_xavier_normal", t, gain, true); }

double tn_gain(tn_nonlinearity f, double param)
{
    switch (f) {
    case TN_LEAKY_RELU: return sqrt(2 / (1 + param * param));
    case TN_RELU: return sqrt(2);
    case TN_TANH: return 5.0 / 3;
    case TN_SELU: return 0.75;
    case TN_SIGMOID:
    case TN_NO_NONLINEARITY: return 1;
    }
    tn_raise(TN_EINVAL, "tn_gain: %d is not a tn_nonlinearity", (int)f);
    return 1;
}

static tn_tensor *kaiming(const char *who, tn_kaiming_args a, bool normal)
{
    fill       s;
    double     in, out;
    tn_tensor *v = NULL;
    if (a.a != 0 && a.nonlinearity != TN_LEAKY_RELU)
        return tn_raise_null(
            TN_EINVAL, "%s: .a is set but has no effect because .nonlinearity is not TN_LEAKY_RELU; remove .a", who);
    if (!begin_draw(who, a.t, &s)) return s.unchanged;
    if (fans(who, a.t, &in, &out)) {
        const double fan = a.fan_out ? out : in, std = fan > 0 ? tn_gain(a.nonlinearity, a.a) / sqrt(fan) : 0;
        if (normal) v = tn_normal_of(tn_dtype_of(a.t), tn_shape_of(a.t), 0, std);
        else v = tn_uniform_of(tn_dtype_of(a.t), tn_shape_of(a.t), -sqrt(3) * std, sqrt(3) * std);
    }
    return finish(s, a.t, v);
}

tn_tensor *tn_init_kaiming_uniform_run(tn_kaiming_args a) { return kaiming("tn_init_kaiming_uniform", a, false); }
tn_tensor *tn_init_kaiming_normal_run(tn_kaiming_args a) { return kaiming("tn_init_kaiming_normal", a, true); }

/* ---- truncated normal ------------------------------------------------------------------------------------------ */

/* c[0] xⁿ⁻¹ + … + c[n-1] */
static double horner(double x, int n, const double *c)
{
    double y = c[0];
    for (int i = 1; i < n; i++) y = y * x + c[i];
    return y;
}

/* Quantile of the normal distribution at p: algorithm AS 241 (Wichura 1988), relative error about 1e-16. Rational
 * functions of degree 7: one for p near 1/2, one for the middle, one for the tails. */
static double quantile(double p)
{
    static const double near_top[] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                                      45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                                      133.14166789178437745, 3.387132872796366608};
    static const double near_bottom[] = {
        5226.495278852854561,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1};
    static const double rest_top[] = {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                                      1.27045825245236838258,   3.64784832476320460504,   5.7694972214606914055,
                                      4.6303378461565452959,    1.42343711074968357734};
    static const double rest_bottom[] = {
        1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
        0.68976733498510000455,    1.6763848301838038494,   2.05319162663775882187,   1};
    static const double end_top[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                                     0.026532189526576123093,   0.29656057182850489123,    1.7848265399172913358,
                                     5.4637849111641143699,     6.6579046435011037772};
    static const double end_bottom[] = {
        2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
        0.0148753612908506148525,   0.13692988092273580531,   0.59983220655588793769,   1};
    const double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        const double r = 0.180625 - q * q;
        return q * horner(r, 8, near_top) / horner(r, 8, near_bottom);
    }
    const double r = sqrt(-tn__libm_log(q < 0 ? p : 1 - p));
    const double v = r <= 5 ? horner(r - 1.6, 8, rest_top) / horner(r - 1.6, 8, rest_bottom)
                            : horner(r - 5, 8, end_top) / horner(r - 5, 8, end_bottom);
    return q < 0 ? -v : v;
}

static double normal_cdf(double x) { return 0.5 * tn__libm_erfc(-x / sqrt(2)); } /* the normal distribution function */

/* Applies the quantile to uniform values between below(low) and below(high). A range above the mean is mirrored: there
 * the distribution function is near 1 and its f64 values are too coarse. */
tn_tensor *tn_init_trunc_normal(tn_tensor *t, double mean, double std, double low, double high)
{
    const char *who = "tn_init_trunc_normal";
    fill        s;
    if (!begin_draw(who, t, &s)) return s.unchanged;
    double a = (low - mean) / std, b = (high - mean) / std;
    if (!(std > 0) || isinf(std) || !isfinite(mean) || !(low < high)) {
        tn_raise(
            TN_EINVAL,
            "%s: mean is %g, std %g and the range from %g to %g, but mean and std must be finite, std above 0, and "
            "low below high",
            who, mean, std, low, high);
        return finish(s, t, NULL);
    }
    const double sign = a > 0 ? -1 : 1, from = a > 0 ? -b : a, to = a > 0 ? -a : b, p = normal_cdf(from),
                 q = normal_cdf(to);
    tn_tensor *u = tn_uniform_of(TN_F64, TN_SHAPE(tn_numel(t)), 0, 1);
    double    *v = u ? tn_data_mut(u) : NULL;
    for (int64_t i = 0; v && i < tn_numel(t); i++) {
        const double at = p + v[i] * (q - p);
        /* a range of probability 0 in f64, far from the mean: all values are its bound next to the mean */
        double x = at > 0 ? quantile(at) : q > 0 ? from : to;
        x = sign * (x < from ? from : x > to ? to : x) * std + mean;
        v[i] = x < low ? low : x > high ? high : x;
    }
    return finish(s, t, u ? tn_reshape(u, tn_shape_of(t)) : NULL);
}

/* ---- sparse: zeros in each column ------------------------------------------------------------------------------ */

tn_tensor *tn_init_sparse(tn_tensor *t, double sparsity, double std)
{
    const char *who = "tn_init_sparse";
    fill        s;
    tn_tensor  *v = NULL;
    if (!begin_draw(who, t, &s)) return s.unchanged;
    if (two_dims(who, t) && tn__probability(who, "sparsity", sparsity)) {
        const int64_t rows = tn_size(t, 0), cols = tn_size(t, 1), zeros = (int64_t)ceil(sparsity * (double)rows);
        v = tn_normal_of(tn_dtype_of(t), tn_shape_of(t), 0, std);
        for (int64_t c = 0; c < cols && tn_error() == TN_OK; c++) {
            const tn_scope   inner = tn_scope_begin();
            const tn_tensor *which = tn_permutation(rows);
            for (int64_t i = 0; which && i < zeros; i++) tn_set(v, tn_get_i64(which, i) * cols + c, 0);
            tn_scope_end(inner);
        }
    }
    return finish(s, t, v);
}
