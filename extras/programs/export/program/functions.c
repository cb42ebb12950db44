/* functions.c — part of an exported program: functions of one number, and attention. */

/* ---- functions: see core/kernels of Tenon for the mathematics --------------------------------------------------- */

#if EXP
static const float exp_q[5] = {0.49999994f, 0.166665196f, 0.0416683927f, 0.00836874638f, 0.00138145278f};

#endif
#if ATTENTION
/* e to the power x, x at most 0, for attention: 0 below -69. The only function with fused multiply-adds. */
static inline float exp_fused(float x)
{
    const float y = x < -70 ? -70 : x, sum = fmaf(y, 0x1.715476p+0f, 0x1.8p23f), n = sum - 0x1.8p23f;
    const float r = fmaf(n, -0x1.7f7d1cp-20f, fmaf(n, -0x1.62e4p-1f, y));
    const float p = fmaf(fmaf(fmaf(fmaf(exp_q[4], r, exp_q[3]), r, exp_q[2]), r, exp_q[1]), r, exp_q[0]);
    return x < -69 ? 0 : (1.0f + fmaf(r * r, p, r)) * float_of((bits_of(sum) << 23) + (127u << 23));
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
#if TANH
static const float tanh_columns[32][8];
#endif
#if SIGMOID
static const float sigmoid_tail[32][8];
#endif
#if GELU
static const float gelu_tail[32][8];
#endif
#if GELU_TANH
static const float gelu_tanh_tail[32][8];
#endif
#if SILU
static const float silu_tail[32][8];
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
