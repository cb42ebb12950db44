/* random.c — tensors of random numbers.
 *
 * Element i of a draw of n uses fixed words of a fixed block, counted from the generator's position at the call:
 *   uniform, normal of f32 and bf16     block i / 4, word i mod 4                       ⌈n/4⌉ blocks
 *   uniform, normal of f64              block i / 2, words 2 (i mod 2) and the next     ⌈n/2⌉ blocks
 *   randint; bernoulli of any dtype     block i / 2, words 2 (i mod 2) and the next     ⌈n/2⌉ blocks
 *   permutation (i: a step of its loop) block i / 2, words 2 (i mod 2) and the next     ⌈n/2⌉ blocks
 * so the number of threads has no effect. (Normal numbers come in pairs 2j, 2j + 1 that share their words.) The
 * position advances only when the draw has succeeded.
 *
 * The arithmetic is in double, with only + - · / and sqrt, which IEEE 754 defines to the last bit (and which the build
 * keeps from being contracted): the same seed gives the same numbers on every machine and with every C library. */
#include "core/base/bf16.h"
#include "core/tensor/convert.h"
#include "core/tensor/random.h"
#include "core/tensor/tensor.h"

#include <math.h>

enum { WORDS = 1024, GRAIN = 4096 }; /* a chunk is 1024 or 512 elements; blocks of work start at a Philox block */

typedef struct draw {
    /* n numbers from the words w of the blocks at `position` and later; y: double, for randint int64_t */
    void (*make)(const struct draw *d, int64_t n, const uint32_t *w, uint64_t position, void *y);
    int          per_block;   /* elements */
    double       a, b;        /* low and range; mean and std; p */
    double       least, most; /* limits of a uniform number */
    int64_t      low;         /* randint: low, and high - low */
    uint64_t     range;
    tn_generator from;
    tn_tensor   *y;
} draw;

static void fill(int64_t from, int64_t to, void *user)
{
    const draw  *d = user;
    const size_t size = tn__dtype_bytes(d->y->dtype);
    char        *y = tn__ptr(d->y);
    uint32_t     w[WORDS];
    union {
        double  f[WORDS];
        int64_t i[WORDS];
    } made;
    for (int64_t at = from, n; at < to; at += n) {
        n = tn__min_i64(to - at, WORDS / 4 * d->per_block);
        const uint64_t position = d->from.position + (uint64_t)(at / d->per_block);
        tn__philox_blocks(d->from.seed, position, (n + d->per_block - 1) / d->per_block, w);
        d->make(d, n, w, position, &made);
        tn__convert(n, y + (size_t)at * size, d->y->dtype, 1, &made, d->range ? TN_I64 : TN_F64, 1);
    }
}

/* The caller has checked all arguments. */
static tn_tensor *drawn(const char *who, tn_dtype dt, tn_shape s, draw d)
{
    if (!(d.y = tn__make(who, dt, s))) return NULL;
    if (tn__self.mode.blank && tn__is_float(dt)) return d.y;
    tn_generator *g = tn_current_generator();
    const int64_t n = tn_shape_numel(s);
    d.from = *g;
    tn_parallel_for(n, GRAIN, fill, &d);
    g->position += ((uint64_t)n + (uint64_t)d.per_block - 1) / (uint64_t)d.per_block;
    return d.y;
}

static bool check_float(const char *who, tn_dtype dt)
{
    if (tn__is_float(dt)) return true;
    return tn_raise_false(TN_EDTYPE, "%s: the result must be f32, f64 or bf16, not %s; for integers use tn_randint",
                          who, tn_dtype_name(dt));
}

static bool check_finite(const char *who, const char *what, tn_dtype dt, double v)
{
    if (!isfinite(v)) return tn_raise_false(TN_EINVAL, "%s: %s is %g, but must be finite", who, what, v);
    return tn__fits(who, what, dt, v);
}

/* ---- uniform -------------------------------------------------------------------------------------------------- */

static double rounded(tn_dtype dt, double v)
{
    union {
        double   d;
        float    f;
        uint16_t h;
    } u;
    tn__store(&u, dt, v);
    return tn__load(&u, dt);
}

/* The next smaller value of the dtype. */
static double below(tn_dtype dt, double v)
{
    if (dt == TN_F64) return nextafter(v, -INFINITY);
    if (dt == TN_F32) return (double)nextafterf((float)v, -INFINITY);
    const uint16_t h = tn__f32_to_bf16((float)v);
    if (!(h & 0x7fff)) return (double)tn__bf16_to_f32(0x8001);
    return (double)tn__bf16_to_f32((uint16_t)(h & 0x8000 ? h + 1 : h - 1));
}

static void make_uniform(const draw *d, int64_t n, const uint32_t *w, uint64_t position, void *to)
{
    double *y = to;
    (void)position;
    for (int64_t i = 0; i < n; i++) {
        const double u = d->per_block == 4 ? (double)w[i] * 0x1p-32 : tn__unit(tn__word64(w + 2 * i));
        const double v = d->a + u * d->b;
        y[i] = v < d->least ? d->least : v > d->most ? d->most : v;
    }
}

static tn_tensor *uniform(const char *who, tn_dtype dt, tn_shape s, double low, double high)
{
    if (tn__blocked() || !check_float(who, dt)) return NULL;
    if (!check_finite(who, "low", dt, low) || !check_finite(who, "high", dt, high)) return NULL;
    if (low > high) return tn_raise_null(TN_EINVAL, "%s: low %g is above high %g", who, low, high);
    if (!isfinite(high - low))
        return tn_raise_null(TN_EINVAL, "%s: from low %g to high %g is more than an f64 can hold", who, low, high);
    /* All values are of the dtype and in [low, high): rounding must not leave the interval. If the dtype has no value
     * in it, or low = high, all are low. */
    draw d = {.make = make_uniform, .per_block = dt == TN_F64 ? 2 : 4, .a = low, .b = high - low};
    d.least = rounded(dt, low), d.most = rounded(dt, high);
    if (d.least < low) d.least = -below(dt, -d.least);
    if (d.most >= high) d.most = below(dt, d.most);
    if (d.least > d.most) d.least = d.most = rounded(dt, low);
    return drawn(who, dt, s, d);
}

tn_tensor *tn_uniform(tn_shape s, double low, double high) { return uniform("tn_uniform", TN_F32, s, low, high); }
tn_tensor *tn_uniform_of(tn_dtype dt, tn_shape s, double low, double high)
{
    return uniform("tn_uniform_of", dt, s, low, high);
}

/* ---- normal: Box and Muller ----------------------------------------------------------------------------------- */

/* ln u for u in [2^-53, 1]: u = m 2^e with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)), a series in odd powers of
 * a number of at most 0.172. */
static inline double ln(double u)
{
    union {
        double   d;
        uint64_t b;
    } m = {.d = u};
    double e = (double)((int64_t)(m.b >> 52) - 1023);
    m.b = (m.b & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    const bool   large = m.d > 0x1.6a09e667f3bcdp0; /* √2 */
    const double v = large ? m.d * 0.5 : m.d, s = (v - 1) / (v + 1), z = s * s;
    e = large ? e + 1 : e;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19, p = p * z + 1.0 / 17, p = p * z + 1.0 / 15, p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11, p = p * z + 1.0 / 9, p = p * z + 1.0 / 7, p = p * z + 1.0 / 5, p = p * z + 1.0 / 3;
    p = p * z + 1;
    return e * 0x1.62e42fefa39efp-1 + 2 * s * p; /* ln 2 */
}

/* Two independent normal numbers from u in (0, 1] and a turn in [0, 1): a radius √(-2 ln u) and a direction. The turn
 * is split into quarters, exactly, and an angle of at most π/4, for which Taylor's series are short. */
static inline void gauss(double u, double turn, double *z0, double *z1)
{
    const double  r = sqrt(-2 * ln(u)), quarters = 4 * turn;
    const int32_t q = (int32_t)(quarters + 0.5);
    const double  t = (quarters - q) * 0x1.921fb54442d18p0, x = t * t; /* π/2 */
    double        s = 1.0 / 355687428096000, c = 1.0 / 20922789888000; /* 17!, 16! */
    s = s * x - 1.0 / 1307674368000, s = s * x + 1.0 / 6227020800, s = s * x - 1.0 / 39916800;
    s = s * x + 1.0 / 362880, s = s * x - 1.0 / 5040, s = s * x + 1.0 / 120, s = s * x - 1.0 / 6, s = s * x + 1;
    c = c * x - 1.0 / 87178291200, c = c * x + 1.0 / 479001600, c = c * x - 1.0 / 3628800, c = c * x + 1.0 / 40320;
    c = c * x - 1.0 / 720, c = c * x + 1.0 / 24, c = c * x - 0.5, c = c * x + 1;
    s *= t;
    const double cs = q & 1 ? s : c, sn = q & 1 ? c : s;
    *z0 = (q + 1) & 2 ? -(r * cs) : r * cs; /* cos, -sin, -cos, sin */
    *z1 = q & 2 ? -(r * sn) : r * sn;       /* sin, cos, -sin, -cos */
}

static void make_normal(const draw *d, int64_t n, const uint32_t *w, uint64_t position, void *to)
{
    double *y = to, z[2];
    (void)position;
    for (int64_t i = 0; i < n; i += 2) {
        if (d->per_block == 4) gauss(((double)w[i] + 1) * 0x1p-32, (double)w[i + 1] * 0x1p-32, z, z + 1);
        else gauss(tn__unit(tn__word64(w + 2 * i)) + 0x1p-53, tn__unit(tn__word64(w + 2 * i + 2)), z, z + 1);
        y[i] = d->a + d->b * z[0];
        if (i + 1 < n) y[i + 1] = d->a + d->b * z[1];
    }
}

static tn_tensor *normal(const char *who, tn_dtype dt, tn_shape s, double mean, double std)
{
    if (tn__blocked() || !check_float(who, dt)) return NULL;
    if (!check_finite(who, "mean", dt, mean) || !check_finite(who, "std", dt, std)) return NULL;
    if (std < 0) return tn_raise_null(TN_EINVAL, "%s: std is %g, but must not be negative", who, std);
    return drawn(who, dt, s, (draw){.make = make_normal, .per_block = dt == TN_F64 ? 2 : 4, .a = mean, .b = std});
}

tn_tensor *tn_normal(tn_shape s, double mean, double std) { return normal("tn_normal", TN_F32, s, mean, std); }
tn_tensor *tn_normal_of(tn_dtype dt, tn_shape s, double mean, double std)
{
    return normal("tn_normal_of", dt, s, mean, std);
}

/* ---- integers ------------------------------------------------------------------------------------------------- */

static void make_randint(const draw *d, int64_t n, const uint32_t *w, uint64_t position, void *to)
{
    int64_t *y = to;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t first = tn__word64(w + 2 * i), at = position + (uint64_t)(i / 2);
        const uint64_t v = tn__below(d->from.seed, at, (int)(i % 2) * 2, first, d->range);
        y[i] = (int64_t)((uint64_t)d->low + v); /* unsigned: high - low may exceed an int64_t */
    }
}

tn_tensor *tn_randint(tn_shape s, int64_t low, int64_t high)
{
    if (tn__blocked()) return NULL;
    if (low >= high)
        return tn_raise_null(TN_EINVAL, "tn_randint: low %lld must be less than high %lld, which is excluded",
                             (long long)low, (long long)high);
    return drawn("tn_randint", TN_I64, s,
                 (draw){.make = make_randint, .per_block = 2, .low = low, .range = (uint64_t)high - (uint64_t)low});
}

static void make_bernoulli(const draw *d, int64_t n, const uint32_t *w, uint64_t position, void *to)
{
    double *y = to;
    (void)position;
    for (int64_t i = 0; i < n; i++) y[i] = tn__unit(tn__word64(w + 2 * i)) < d->a ? 1 : 0;
}

static tn_tensor *bernoulli(const char *who, tn_dtype dt, tn_shape s, double p)
{
    if (tn__blocked()) return NULL;
    if (!(p >= 0 && p <= 1)) return tn_raise_null(TN_EINVAL, "%s: p is %g, but must be from 0 to 1", who, p);
    return drawn(who, dt, s, (draw){.make = make_bernoulli, .per_block = 2, .a = p});
}

tn_tensor *tn_bernoulli(tn_shape s, double p) { return bernoulli("tn_bernoulli", TN_F32, s, p); }
tn_tensor *tn_bernoulli_of(tn_dtype dt, tn_shape s, double p) { return bernoulli("tn_bernoulli_of", dt, s, p); }

/* Fisher and Yates, inside-out: step i puts i at a random place of 0 … i, and the element from there at i. */
tn_tensor *tn_permutation(int64_t n)
{
    if (tn__blocked()) return NULL;
    if (n < 0) return tn_raise_null(TN_EINVAL, "tn_permutation: n is %lld, but must not be negative", (long long)n);
    tn_tensor *t = tn__make("tn_permutation", TN_I64, TN_SHAPE(n));
    if (!t) return NULL;
    tn_generator *g = tn_current_generator();
    int64_t      *y = tn__ptr(t);
    uint32_t      w[WORDS];
    for (int64_t i = 0; i < n; i++) {
        const uint64_t at = g->position + (uint64_t)(i / 2);
        const int64_t  k = i % (WORDS / 2);
        if (k == 0) tn__philox_blocks(g->seed, at, (tn__min_i64(n - i, WORDS / 2) + 1) / 2, w);
        const int64_t j = (int64_t)tn__below(g->seed, at, (int)(i % 2) * 2, tn__word64(w + 2 * k), (uint64_t)i + 1);
        if (j < i) y[i] = y[j];
        y[j] = i;
    }
    g->position += ((uint64_t)n + 1) / 2;
    return t;
}
