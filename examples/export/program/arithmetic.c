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

#if FLOAT_PRODUCTS
/* ---- products ----------------------------------------------------------------------------------------------------
 *
 * A matrix consists of panels of 16 outputs; a panel has a row of 16 numbers for each input. */

/* Eight numbers at any address of floats. Where the CPU has fused multiply-adds, gcc and clang keep them in one
 * register, and add_product is one instruction. */
#if defined(__GNUC__) && (defined(__FMA__) || defined(__ARM_FEATURE_FMA))
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

static inline void add_product(eight *sum, float x, const eight *w)
{
    const eight s = *sum, u = *w;
    *sum = (eight){fmaf(x, u[0], s[0]), fmaf(x, u[1], s[1]), fmaf(x, u[2], s[2]), fmaf(x, u[3], s[3]),
                   fmaf(x, u[4], s[4]), fmaf(x, u[5], s[5]), fmaf(x, u[6], s[6]), fmaf(x, u[7], s[7])};
}
#else
typedef struct {
    float at[8];
} eight;

static void add_product(eight *sum, float x, const eight *w)
{
    for (int i = 0; i < 8; i++) sum->at[i] = fmaf(x, w->at[i], sum->at[i]);
}
#endif

/* gcc would read an operand from memory for each use, or use more registers than there are. */
#if defined(__GNUC__) && defined(__FMA__)
#define KEEP_IN_REGISTERS(x, y) __asm__("" : "+x"(x), "+x"(y))
#else
#define KEEP_IN_REGISTERS(x, y) ((void)0)
#endif

/* Adds to 16 numbers at each of four places y the products of `in` elements at x with a panel. */
static void add_rows(int in, const float *w, const float *const x[4], float *const y[4])
{
    const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    eight       *y0 = (eight *)y[0], *y1 = (eight *)y[1], *y2 = (eight *)y[2], *y3 = (eight *)y[3];
    eight        a = y0[0], b = y0[1], c = y1[0], d = y1[1], e = y2[0], f = y2[1], g = y3[0], h = y3[1];
    for (int k = 0; k < in; k++, w += 16) {
        eight u = ((const eight *)w)[0], v = ((const eight *)w)[1];
        KEEP_IN_REGISTERS(u, v);
        add_product(&a, x0[k], &u), add_product(&b, x0[k], &v);
        add_product(&c, x1[k], &u), add_product(&d, x1[k], &v);
        add_product(&e, x2[k], &u), add_product(&f, x2[k], &v);
        add_product(&g, x3[k], &u), add_product(&h, x3[k], &v);
    }
    y0[0] = a, y0[1] = b, y1[0] = c, y1[1] = d, y2[0] = e, y2[1] = f, y3[0] = g, y3[1] = h;
}

/* Adds to 16 numbers at each of four places y the products of `in` elements at x with the panel of that place. */
static void add_panels(int in, const float *const w[4], const float *x, float *const y[4])
{
    const eight *w0 = (const eight *)w[0], *w1 = (const eight *)w[1];
    const eight *w2 = (const eight *)w[2], *w3 = (const eight *)w[3];
    eight       *y0 = (eight *)y[0], *y1 = (eight *)y[1], *y2 = (eight *)y[2], *y3 = (eight *)y[3];
    eight        a = y0[0], b = y0[1], c = y1[0], d = y1[1], e = y2[0], f = y2[1], g = y3[0], h = y3[1];
    for (int k = 0; k < in; k++) {
        add_product(&a, x[k], &w0[2 * k]), add_product(&b, x[k], &w0[2 * k + 1]);
        add_product(&c, x[k], &w1[2 * k]), add_product(&d, x[k], &w1[2 * k + 1]);
        add_product(&e, x[k], &w2[2 * k]), add_product(&f, x[k], &w2[2 * k + 1]);
        add_product(&g, x[k], &w3[2 * k]), add_product(&h, x[k], &w3[2 * k + 1]);
    }
    y0[0] = a, y0[1] = b, y1[0] = c, y1[1] = d, y2[0] = e, y2[1] = f, y3[0] = g, y3[1] = h;
}

/* Adds W x to y, for n rows of x and of y. w has panels `apart` numbers from each other, and y room for all of the last
 * one. Each sum is one chain of multiply-adds in the order of x's elements. Four rows, or the outputs of four panels,
 * are computed at once; where there are fewer, the last one is computed several times. */
static void add_products(int n, int in, int wide, const float *w, int apart, const float *x, int x_row, float *y,
                         int y_row)
{
    const int last = (wide - 1) / 16;
    for (int p = 0; n == 1 && p <= last; p += 4) {
        const int a = p + 1 < last ? p + 1 : last, b = p + 2 < last ? p + 2 : last, c = p + 3 < last ? p + 3 : last;
        const float *const from[4] = {w + p * apart, w + a * apart, w + b * apart, w + c * apart};
        float *const       to[4] = {y + 16 * p, y + 16 * a, y + 16 * b, y + 16 * c};
        add_panels(in, from, x, to);
    }
    for (int p = 0; n > 1 && p <= last; p++)
        for (int r = 0; r < n; r += 4) {
            const int          a = r + 1 < n ? r + 1 : r, b = r + 2 < n ? r + 2 : a, c = r + 3 < n ? r + 3 : b;
            const float *const from[4] = {x + r * x_row, x + a * x_row, x + b * x_row, x + c * x_row};
            float *const at = y + 16 * p, *const to[4] = {at + r * y_row, at + a * y_row, at + b * y_row,
                                                          at + c * y_row};
            add_rows(in, w + p * apart, from, to);
        }
}

#endif
static void add_bias(int n, int wide, const float *restrict bias, float *restrict y)
{
    for (int r = 0; bias && r < n; r++)
        for (int j = r * wide; j < (r + 1) * wide; j += 16)
            for (int i = j; i < j + 16; i++) y[i] = y[i] + bias[i - r * wide];
}

#if FLOATS
/* y = W x + b for n rows of x, which are padded to a multiple of 16. */
static void linear_float(int n, int in, int wide, const float *w, const float *bias, const float *x, float *y)
{
    for (int i = 0; i < n * wide; i++) y[i] = 0;
    add_products(n, in, wide, w, 16 * in, x, (in + 15) / 16 * 16, y, wide);
    add_bias(n, wide, bias, y);
}

#endif
#if INT
/* Eight sums of products of integers: add_pairs adds the products of two elements with two rows of a panel. */
#ifdef __AVX2__
typedef __m256i eight_sums;

static inline void add_pairs(eight_sums *sum, const int16_t *x, const signed char *w)
{
    const __m256i both = _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)x[1] << 16 | (uint16_t)x[0]));
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w));
    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(both, wide));
    __asm__("" : "+x"(*sum)); /* else gcc computes all products before the sums, and has too few registers */
}
static inline void store_sums(int32_t *to, eight_sums sum) { _mm256_storeu_si256((__m256i *)to, sum); }
#else
typedef struct {
    int32_t at[8];
} eight_sums;

static void add_pairs(eight_sums *sum, const int16_t *x, const signed char *w)
{
    for (int i = 0; i < 8; i++) sum->at[i] += x[0] * w[2 * i] + x[1] * w[2 * i + 1];
}
static void store_sums(int32_t *to, eight_sums sum) { *(eight_sums *)to = sum; }
#endif

/* Up to four rows of x, rounded to 8 bits. */
static int16_t rounded[4][WIDEST];

/* Rounds a row of x, whose padding is 0. Returns its scale. */
static float round_row(int in, const float *restrict x, int16_t *restrict to)
{
    int32_t top[16] = {0}, most = 0; /* bits of numbers without a sign are in the order of the numbers */
    for (int j = 0; j < in; j += 16)
        for (int i = 0; i < 16; i++) {
            const int32_t bits = (int32_t)(bits_of(x[j + i]) & 0x7fffffff);
            top[i] = bits > top[i] ? bits : top[i];
        }
    for (int i = 0; i < 16; i++) most = top[i] > most ? top[i] : most;
    const float high = float_of((uint32_t)most);
    const float scale = high < 0x1p-100f ? 0 : high / 127, inverse = high < 0x1p-100f ? 0 : 127 / high;
    for (int j = 0; j < in; j += 16)
        for (int i = j; i < j + 16; i++) to[i] = (int16_t)((int)bits_of(x[i] * inverse + 0x1.8p23f) - 0x4b400000);
    return scale;
}

/* The sums of 16 outputs for one row, or for four rows. */
static void sum_row(int in, const signed char *w, int32_t *y)
{
    eight_sums a = {0}, b = {0};
    for (int k = 0; k < in; k += 2, w += 32) add_pairs(&a, rounded[0] + k, w), add_pairs(&b, rounded[0] + k, w + 16);
    store_sums(y, a), store_sums(y + 8, b);
}
static void sum_rows(int in, const signed char *w, int32_t (*y)[16])
{
    const int16_t *x0 = rounded[0], *x1 = rounded[1], *x2 = rounded[2], *x3 = rounded[3];
    eight_sums     a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0};
    for (int k = 0; k < in; k += 2, w += 32) {
        add_pairs(&a, x0 + k, w), add_pairs(&b, x0 + k, w + 16);
        add_pairs(&c, x1 + k, w), add_pairs(&d, x1 + k, w + 16);
        add_pairs(&e, x2 + k, w), add_pairs(&f, x2 + k, w + 16);
        add_pairs(&g, x3 + k, w), add_pairs(&h, x3 + k, w + 16);
    }
    store_sums(y[0], a), store_sums(y[0] + 8, b), store_sums(y[1], c), store_sums(y[1] + 8, d);
    store_sums(y[2], e), store_sums(y[2] + 8, f), store_sums(y[3], g), store_sums(y[3] + 8, h);
}

/* y = W x + b with weights in 8 bits: w has `wide` scales, then panels of bytes, with a row for each two elements of x:
 * two bytes for each output. x is rounded to 8 bits, too. The sums are integers. */
static void linear(int n, int in, int wide, const float *restrict w, const float *restrict bias,
                   const float *restrict x, float *restrict y)
{
    const signed char *part = (const signed char *)(w + wide);
    const int          row = (in + 15) / 16 * 16, even = (in + 1) / 2 * 2;
    for (int r = 0; r < n; r += 4) {
        const int rows = n - r < 4 ? n - r : 4;
        float     scale[4];
        for (int s = 0; s < rows; s++) scale[s] = round_row(in, x + (r + s) * row, rounded[s]);
        for (int j = 0; j < wide; j += 16) {
            int32_t sum[4][16];
            if (rows == 1) sum_row(in, part + j * even, sum[0]);
            else sum_rows(in, part + j * even, sum);
            for (int s = 0; s < rows; s++) {
                float *to = y + (r + s) * wide + j;
                for (int i = 0; i < 16; i++) to[i] = (float)sum[s][i] * (scale[s] * w[j + i]);
            }
        }
    }
    add_bias(n, wide, bias, y);
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
static double square(double x) { return x * x; }

/* y = (x - mean) / sqrt(variance + EPS) · weight + bias. */
static void norm(const float *x, const float *weight, const float *bias, float *y)
{
    double squares[16] = {0};
#if LAYER_NORM
    double sums[16] = {0};
    for (int j = 0; j + 16 <= DIM; j += 16)
        for (int i = 0; i < 16; i++) sums[i] += (double)x[j + i];
    for (int i = DIM / 16 * 16; i < DIM; i++) sums[i % 16] += (double)x[i];
    const double exact = total(sums) / DIM;
    const float  mean = (float)exact, rest = (float)(exact - (double)mean); /* the mean, and its rounding error */
#else
    const float mean = 0, rest = 0; /* of an RMS norm */
#endif
    for (int j = 0; j + 16 <= DIM; j += 16)
        for (int i = 0; i < 16; i++) squares[i] += square((double)(x[j + i] - mean - rest));
    for (int i = DIM / 16 * 16; i < DIM; i++) squares[i % 16] += square((double)(x[i] - mean - rest));
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
static inline float exp_fused(float x)
{
    const float y = x < -88 ? -88 : x, sum = fmaf(y, 0x1.715476p+0f, 0x1.8p23f), n = sum - 0x1.8p23f;
    const float r = fmaf(n, -0x1.7f7d1cp-20f, fmaf(n, -0x1.62e4p-1f, y));
    const float p = fmaf(fmaf(fmaf(fmaf(exp_q[4], r, exp_q[3]), r, exp_q[2]), r, exp_q[1]), r, exp_q[0]);
    return x < -87 ? 0 : float_of(bits_of(1.0f + fmaf(r * r, p, r)) + (bits_of(sum) << 23));
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
static inline float column(const float table[32][8], float a, float scale, float *at, float *more)
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
static inline float without_tail(const float table[32][8], float x, float scale)
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

/* Keys and values of 128 tokens for a head, as matrices: an output for each key, and for each element of a value. */
enum { KEYS = 128, HEAD_WIDE = (HEAD + 15) / 16 * 16 };
typedef float key_block[KEYS / 16][HEAD][16];
typedef float value_block[HEAD_WIDE / 16][KEYS][16];

/* Stores the key and the value of token t. */
static void store(int t, const float *key, const float *value, key_block *k, value_block *v)
{
    for (int d = 0; d < HEAD; d++) {
        k[t / KEYS][t % KEYS / 16][d][t % 16] = key[d];
        v[t / KEYS][d / 16][t % KEYS][d % 16] = value[d];
    }
}

/* Converts the scores of n keys to weights. *most: the maximum of all scores so far; *sum, out: the sums for it. */
static void weigh(int n, float *restrict s, float *most, float *sum, float *restrict out)
{
    const int wide = (n + 15) / 16 * 16;
    float     top[16], lane[16] = {0}, high = *most;
    for (int i = n; i < wide; i++) s[i] = -INFINITY;
    for (int i = 0; i < 16; i++) top[i] = high;
    for (int j = 0; j < wide; j += 16)
        for (int i = 0; i < 16; i++) s[j + i] = s[j + i] * SCALE, top[i] = s[j + i] > top[i] ? s[j + i] : top[i];
    for (int i = 0; i < 16; i++) high = top[i] > high ? top[i] : high;
    for (int j = 0; j < wide; j += 16)
        for (int i = 0; i < 16; i++) s[j + i] = exp_fused(s[j + i] - high), lane[i] += s[j + i];
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) lane[i] = lane[i] + lane[i + half];
    const float factor = exp_fused(*most - high);
    *most = high, *sum = *sum * factor + lane[0];
    for (int e = 0; e < HEAD_WIDE; e++) out[e] = out[e] * factor;
}

/* y = softmax(SCALE · q kᵀ) v over some keys, for n queries of one head; a row of q and one of y have `row` numbers. A
 * running maximum and sum are kept. */
static void attend(int n, const float *q, int row, int keys, key_block *k, value_block *v, float *y)
{
    for (int r = 0; r < n; r += 4) {
        const int rows = n - r < 4 ? n - r : 4;
        float     most[4], sum[4] = {0}, out[4][HEAD_WIDE] = {{0}};
        for (int i = 0; i < rows; i++) most[i] = -INFINITY;
        for (int j = 0; j < keys; j += KEYS) {
            const int some = keys - j < KEYS ? keys - j : KEYS, b = j / KEYS;
            float     s[4][KEYS] = {{0}};
            add_products(rows, HEAD, some, k[b][0][0], 16 * HEAD, q + r * row, row, s[0], KEYS);
            for (int i = 0; i < rows; i++) weigh(some, s[i], &most[i], &sum[i], out[i]);
            add_products(rows, some, HEAD_WIDE, v[b][0][0], 16 * KEYS, s[0], KEYS, out[0], HEAD_WIDE);
        }
        for (int i = 0; i < rows; i++)
            for (int e = 0; e < HEAD; e++) y[(r + i) * row + e] = out[i][e] * (1 / sum[i]) + 0.0f;
    }
}

#endif
