/* arithmetic.c — part of an exported program: products, norms, functions and attention. */

/* ---- arithmetic ----------------------------------------------------------------------------------------------------
 *
 * Everything is f32, in the order of Tenon's kernels, so that each result has the same bits: products are chains of
 * fused multiply-adds; sums in norms have 16 lanes of f64; functions use neither fused operations nor the C library. */

static uint32_t bits_of(float x)
{
    union {
        float    x;
        uint32_t u;
    } both;
    both.x = x;
    return both.u;
}
static float float_of(uint32_t u)
{
    union {
        uint32_t u;
        float    x;
    } both;
    both.u = u;
    return both.x;
}

#if FLOATS
enum { PANEL = 128 }; /* outputs */

/* Adds the products of four elements of x, a row, with four rows of w, of `wide` numbers, to y. */
static void add_row(int wide, const float *restrict w, const float *restrict x, float *restrict y)
{
    const float *w1 = w + wide, *w2 = w1 + wide, *w3 = w2 + wide, x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    for (int j = 0; j < wide; j += 16)
        for (int i = j; i < j + 16; i++) y[i] = fmaf(x3, w3[i], fmaf(x2, w2[i], fmaf(x1, w1[i], fmaf(x0, w[i], y[i]))));
}

/* The same also with z and v: both rows use what is read of w. */
static void add_rows(int wide, const float *restrict w, const float *restrict x, float *restrict y,
                     const float *restrict z, float *restrict v)
{
    const float *w1 = w + wide, *w2 = w1 + wide, *w3 = w2 + wide, x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const float  z0 = z[0], z1 = z[1], z2 = z[2], z3 = z[3];
    for (int j = 0; j < wide; j += 16)
        for (int i = j; i < j + 16; i++) {
            y[i] = fmaf(x3, w3[i], fmaf(x2, w2[i], fmaf(x1, w1[i], fmaf(x0, w[i], y[i]))));
            v[i] = fmaf(z3, w3[i], fmaf(z2, w2[i], fmaf(z1, w1[i], fmaf(z0, w[i], v[i]))));
        }
}

/* y = W x + b for n rows of x, which are padded to a multiple of 16. w consists of panels of 128 outputs, the last one
 * may have fewer; a panel has a row of numbers for each of the `in` elements of x. All rows of x use 128 rows of a
 * panel, which stay in the cache, before the next ones. Each y is one chain of multiply-adds in the order of x's
 * elements. */
static void linear_float(int n, int in, int wide, const float *restrict w, const float *restrict bias,
                         const float *restrict x, float *restrict y)
{
    const int row = (in + 15) / 16 * 16, fours = in / 4 * 4;
    for (int i = 0; i < n * wide; i++) y[i] = 0;
    for (int j = 0; j < wide; j += PANEL) {
        const int    width = wide - j < PANEL ? wide - j : PANEL;
        const float *panel = w + j * in;
        for (int from = 0; from < in; from += 128)
            for (int r = 0; r < n; r += 2) {
                const float *of = x + r * row;
                float       *to = y + r * wide + j;
                int          k = from;
                for (; k < fours && k < from + 128 && r + 1 == n; k += 4) add_row(width, panel + k * width, of + k, to);
                for (; k < fours && k < from + 128 && r + 1 < n; k += 4)
                    add_rows(width, panel + k * width, of + k, to, of + row + k, to + wide);
                for (; k < in && k < from + 128; k++)
                    for (int s = 0; s < 2 && r + s < n; s++)
                        for (int i = 0; i < width; i++)
                            to[s * wide + i] = fmaf(of[s * row + k], panel[k * width + i], to[s * wide + i]);
            }
    }
    for (int r = 0; bias && r < n; r++)
        for (int i = 0; i < wide; i++) y[r * wide + i] = y[r * wide + i] + bias[i];
}

#endif
#if INT
/* y = W x + b with weights in 8 bits: w has `wide` scales, then for each 16 outputs a row of 16 bytes for each of the
 * `in` elements of x, which are rounded to 8 bits, too. The sums are integers. */
static void linear(int n, int in, int wide, const float *restrict w, const float *restrict bias,
                   const float *restrict x, float *restrict y)
{
    static signed char rounded[WIDEST];
    const signed char *part = (const signed char *)(w + wide);
    const int          row = (in + 15) / 16 * 16;
    for (int r = 0; r < n; r++) {
        float most = 0;
        for (int k = 0; k < in; k++) most = fabsf(x[r * row + k]) > most ? fabsf(x[r * row + k]) : most;
        const float scale = most < 0x1p-100f ? 0 : most / 127, inverse = most < 0x1p-100f ? 0 : 127 / most;
        for (int k = 0; k < in; k++)
            rounded[k] = (signed char)((int)bits_of(x[r * row + k] * inverse + 0x1.8p23f) - 0x4b400000);
        for (int j = 0; j < wide; j += 16) {
            const signed char *of = part + j * in;
            int32_t            sum[16] = {0};
            for (int k = 0; k < in; k++, of += 16)
                for (int i = 0; i < 16; i++) sum[i] += rounded[k] * of[i];
            for (int i = 0; i < 16; i++) {
                const float s = (float)sum[i] * (scale * w[j + i]);
                y[r * wide + j + i] = bias ? s + bias[j + i] : s;
            }
        }
    }
}

#else
#define linear linear_float /* all matrices are f32 */
#endif

#if TOTAL
/* The sum of 16 lanes: the upper half is added to the lower one until one is left. */
static double total(const double lane[16])
{
    double s[8];
    for (int i = 0; i < 8; i++) s[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++) s[i] = s[i] + s[i + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

#endif
#if NORM
/* y = (x - mean) / sqrt(variance + EPS) · weight + bias. */
static void norm(const float *x, const float *weight, const float *bias, float *y)
{
    double squares[16] = {0};
#if LAYER_NORM
    double sums[16] = {0};
    for (int i = 0; i < DIM; i++) sums[i % 16] += (double)x[i];
    const double exact = total(sums) / DIM;
    const float  mean = (float)exact, rest = (float)(exact - (double)mean); /* the mean, and its rounding error */
#else
    const float mean = 0, rest = 0; /* of an RMS norm */
#endif
    for (int i = 0; i < DIM; i++) {
        const float d = x[i] - mean - rest;
        squares[i % 16] += (double)d * (double)d;
    }
    const float r = (float)(1 / sqrt(total(squares) / DIM + EPS));
    for (int i = 0; i < DIM; i++) {
        y[i] = (x[i] - mean - rest) * r * weight[i];
        if (bias) y[i] = y[i] + bias[i];
    }
}

#endif
/* ---- functions: see core/kernels of Tenon for the mathematics --------------------------------------------------- */

#if EXP
static const float exp_q[5] = {0.49999994f, 0.166665196f, 0.0416683927f, 0.00836874638f, 0.00138145278f};

#endif
#if ATTENTION
/* e to the power x, x at most 0, for attention: 0 below -87. The only function with fused multiply-adds. */
static float exp_fused(float x)
{
    const float y = x < -88 ? -88 : x, sum = fmaf(y, 0x1.715476p+0f, 0x1.8p23f), n = sum - 0x1.8p23f;
    const float r = fmaf(n, -0x1.7f7d1cp-20f, fmaf(n, -0x1.62e4p-1f, y));
    float       p = exp_q[4];
    for (int i = 3; i >= 0; i--) p = fmaf(p, r, exp_q[i]);
    p = 1.0f + fmaf(r * r, p, r);
    return x < -87 ? 0 : float_of(bits_of(p) + (bits_of(sum) << 23));
}

#endif
#if SOFTMAX
/* e to the power x, x at most 0, for softmax. */
static float exp_soft(float x)
{
    const float y = x < -87 ? -87 : x, sum = y * 0x1.715476p+0f + 0x1.8p23f, n = sum - 0x1.8p23f;
    const float r = (y - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float       p = r * exp_q[4] + exp_q[3];
    for (int i = 2; i >= 0; i--) p = p * r + exp_q[i];
    return (1.0f + (r + r * r * p)) * (x < -87 ? 0 : float_of((bits_of(sum) << 23) + (127u << 23)));
}

static void softmax(int n, float *x)
{
    double lane[16] = {0};
    float  most = x[0];
    for (int i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int i = 0; i < n; i++) x[i] = exp_soft(x[i] - most), lane[i % 16] += (double)x[i];
    const float scale = (float)(1 / total(lane));
    for (int i = 0; i < n; i++) x[i] = x[i] * scale;
}

#endif
#if TABLES
/* Functions from tables of 32 columns, each a point t, a constant c and a polynomial of r = a - t. Returns c; *more:
 * the polynomial. */
static float column(const float table[32][8], float a, float scale, float *at, float *more)
{
    const float *v;
    *at = a * scale + 0x1.8p23f;
    v = table[bits_of(*at) & 31];
    const float r = a - v[0], rr = r * r;
    *more = r * (v[2] + (r * v[3] + rr * ((v[4] + r * v[5]) + rr * (v[6] + r * v[7]))));
    return v[1];
}

#endif
#if TANH
static float tanh_of(float x)
{
    const float a = fabsf(x) > 9.03f ? 9.03f : fabsf(x);
    float       at, more, constant = column(tanh_columns, a, 3.484375f, &at, &more);
    const float y = (at < 0x1.8p23f + 2 ? a : constant) + more;
    return float_of(bits_of(y) | (bits_of(x) & 0x80000000u));
}

#endif
#if TAIL
/* max(x, 0) - f(|x|): gelu, its approximation by tanh, and silu. */
static float without_tail(const float table[32][8], float x, float scale)
{
    float       at, more;
    const float constant = column(table, fabsf(x), scale, &at, &more);
    return (at < 0x1.8p23f + 2 ? 0.5f * x : x > 0 ? x : 0) - (constant + more);
}

#endif
#if GELU
/* e to the power x, x at most 0, in f64. */
static double exp_double(double x)
{
    static const double q[10] = {0.5000000000000011,     0.1666666666666641,     0.04166666666652967,
                                 0.008333333333494992,   0.0013888888943774916,  0.0001984126950581809,
                                 2.4801492935181716e-05, 2.7557586717599923e-06, 2.7630311056437033e-07,
                                 2.5000056786849596e-08};
    union {
        double   x;
        uint64_t u;
    } sum, power;
    sum.x = x * 0x1.71547652b82fep+0 + 0x1.8p52;
    const double n = sum.x - 0x1.8p52, a = x - n * 0x1.62e42fefa3000p-1, b = n * 0x1.3de6af278ece6p-42, r = a - b;
    double       p = q[9];
    for (int i = 8; i >= 0; i--) p = p * r + q[i];
    const double one = 1.0 + r, small = (r * r * p + ((a - r) - b)) + (r - (one - 1.0));
    power.u = (sum.u << 52) + ((uint64_t)(1023 + 64) << 52);
    return (one + small) * power.x * 0x1p-64;
}

static float gelu(float x)
{
    static const double t[10] = {0.360179424,    0.120670222,   -0.145280749,   0.0841380581,    -0.0181013066,
                                 -0.00611621235, 0.00307744532, 0.000943068648, -0.000421360601, -0.000162096549};
    if (fabsf(x) < 4.9f) return without_tail(gelu_tail, x, 6.4f);
    const double a = fabsf(x) > 15 ? 15 : (double)fabsf(x), q = (a - 2.78125) / (a + 2.78125);
    double       y = t[9];
    for (int i = 8; i >= 0; i--) y = y * q + t[i];
    return (x > 0 ? x : 0) - (float)(y * exp_double(-0.5 * (a * a)));
}

#endif
#if SIGMOID_PARTS
static float top_of(float x) { return float_of(bits_of(x) & 0xfffff000u); }

/* The sigmoid of z + more, z at most 0, or 1 minus it, in two parts, where the tables end. below: times 2 to the 64. */
static float sigmoid_parts(int below, float z, float more, float *rest)
{
    /* e to the power z + more in two parts, without its power of 2 */
    const float sum = z * 0x1.715476p+0f + 0x1.8p23f, n = sum - 0x1.8p23f;
    const float a = z - n * 0x1.62e4p-1f, b = n * 0x1.7f7d1cp-20f - more, r = a - b, one = 1.0f + r;
    float       p = exp_q[4];
    for (int i = 3; i >= 0; i--) p = p * r + exp_q[i];
    const float small = (r * r * p + ((a - r) - b)) + (r - (one - 1.0f)), y = one + small;
    const float power = float_of((bits_of(sum) << 23) + ((uint32_t)(127 + 64) << 23));
    const float e = y * power, lost = (small - (y - one)) * power;
    /* the quotient in two parts */
    const float over = below ? e : 1, over_rest = below ? lost : 0, low = e * 0x1p-64f;
    const float whole = 1.0f + low, whole_top = top_of(whole), quotient = over / whole, top = top_of(quotient);
    const float whole_rest = (whole - whole_top) + ((low - (whole - 1.0f)) + lost * 0x1p-64f);
    const float left = ((over - top * whole_top) - top * whole_rest) + over_rest;
    *rest = left * (below ? 1.0f - quotient * 0x1p-64f : quotient);
    return top;
}

#endif
#if TIMES_SIGMOID
/* x sigmoid(z + more), z at most 0. */
static float times_sigmoid(float x, float z, float more)
{
    float       rest;
    const float top = sigmoid_parts(x < 0, z, more, &rest);
    const float product = top_of(x) * top + ((x - top_of(x)) * top + x * rest);
    return x < 0 ? 0.0f + product * 0x1p-64f : x < 100 ? product : x;
}

#endif
#if SIGMOID
static float sigmoid(float x)
{
    const float a = fabsf(x);
    float       at, more, constant = column(sigmoid_tail, a, 3.2f, &at, &more), rest;
    if (a < 9.8f) return x < 0 ? constant + more : 1.0f - (constant + more);
    const float top = sigmoid_parts(x<0, a> 110 ? -110 : -a, 0, &rest);
    return (top + rest) * (x < 0 ? 0x1p-64f : 1);
}

#endif
#if SILU
static float silu(float x)
{
    if (fabsf(x) < 9.8f) return without_tail(silu_tail, x, 3.2f);
    return times_sigmoid(x < -110 ? -110 : x, fabsf(x) > 110 ? -110 : -fabsf(x), 0);
}

#endif
#if GELU_TANH
static float gelu_tanh(float x)
{
    if (fabsf(x) < 3.9375f) return without_tail(gelu_tanh_tail, x, 8);
    const double a = fabsf(x) > 11 ? 11 : (double)fabsf(x);
    const double exact = a * (a * a * 0x1.2444f2a4d8b4bp-4 + 0x1.9884533d43651p+0);
    const float  z = (float)exact;
    return times_sigmoid(x < -11 ? -11 : x, -z, (float)((double)z - exact));
}

#endif
#if RELU
static float relu(float x) { return x > 0 ? x : 0; }

#endif
#if ATTENTION
/* ---- attention --------------------------------------------------------------------------------------------------- */

/* The keys of a block: transposed, so that the scores of all of them are computed at once. */
enum { KEYS = 128 };
typedef float key_block[HEAD][KEYS];

/* y = softmax(SCALE · q kᵀ) v over n keys, for one head of one query. A running maximum and sum are kept; blocks of
 * KEYS keys are counted from key 0. */
static void attend(const float *q, key_block *k, float (*v)[HEAD], int n, float *y)
{
    float most = -INFINITY, sum = 0, out[HEAD] = {0};
    for (int j = 0; j < n; j += KEYS, k++) {
        const int some = n - j < KEYS ? n - j : KEYS;
        float     s[KEYS] = {0}, lane[16] = {0}, high = most;
        for (int d = 0; d < HEAD; d++)
            for (int i = 0; i < KEYS; i++) s[i] = fmaf(q[d], (*k)[d][i], s[i]);
        for (int i = 0; i < some; i++) s[i] = s[i] * SCALE, high = s[i] > high ? s[i] : high;
        const float factor = exp_fused(most - high); /* of the sums so far */
        for (int i = 0; i < some; i++) s[i] = exp_fused(s[i] - high);
        for (int i = 0; i < some; i++) lane[i % 16] += s[i];
        for (int half = 8; half; half /= 2)
            for (int i = 0; i < half; i++) lane[i] = lane[i] + lane[i + half];
        most = high, sum = sum * factor + lane[0];
        for (int e = 0; e < HEAD; e++) out[e] = out[e] * factor;
        for (int i = 0; i < some; i++)
            for (int e = 0; e < HEAD; e++) out[e] = fmaf(s[i], v[j + i][e], out[e]);
    }
    for (int e = 0; e < HEAD; e++) y[e] = out[e] * (1 / sum) + 0.0f;
}

#endif
