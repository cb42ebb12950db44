/* arithmetic.c — part of an exported program: products and norms. */

/* ---- arithmetic ----------------------------------------------------------------------------------------------------
 *
 * Everything is f32, in the order of Tenon's kernels, so that each result has the same bits: products are chains of
 * fused multiply-adds; sums in norms have 16 lanes of f64; functions use neither fused operations nor the C library. */

typedef union {
    float    x;
    uint32_t u;
} float_bits;
static uint32_t bits_of(float x) { return ((float_bits){.x = x}).u; }
static float    float_of(uint32_t u) { return ((float_bits){.u = u}).x; }

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

static int least(int a, int b) { return a < b ? a : b; }

#if ROWS
/* gcc would read an operand from memory for each use, or use more registers than there are. */
#if defined(__GNUC__) && defined(__FMA__)
#define KEEP_IN_REGISTERS(x, y) __asm__("" : "+x"(x), "+x"(y))
#else
#define KEEP_IN_REGISTERS(x, y) ((void)0)
#endif

/* Adds to 16 numbers of each row of y the products of a row of x with a panel, for four rows. If n is less, the last
 * one is computed several times. */
static void add_rows(int n, int in, const float *w, const float *x, int x_row, float *y, int y_row)
{
    const int    r1 = least(1, n - 1), r2 = least(2, n - 1), r3 = least(3, n - 1);
    const float *x1 = x + r1 * x_row, *x2 = x + r2 * x_row, *x3 = x + r3 * x_row;
    eight       *y0 = (eight *)y, *y1 = (eight *)(y + r1 * y_row);
    eight       *y2 = (eight *)(y + r2 * y_row), *y3 = (eight *)(y + r3 * y_row);
    eight        a = y0[0], b = y0[1], c = y1[0], d = y1[1], e = y2[0], f = y2[1], g = y3[0], h = y3[1];
    for (int k = 0; k < in; k++, w += 16) {
        eight u = ((const eight *)w)[0], v = ((const eight *)w)[1];
        KEEP_IN_REGISTERS(u, v);
        add_product(&a, x[k], &u), add_product(&b, x[k], &v);
        add_product(&c, x1[k], &u), add_product(&d, x1[k], &v);
        add_product(&e, x2[k], &u), add_product(&f, x2[k], &v);
        add_product(&g, x3[k], &u), add_product(&h, x3[k], &v);
    }
    y0[0] = a, y0[1] = b, y1[0] = c, y1[1] = d, y2[0] = e, y2[1] = f, y3[0] = g, y3[1] = h;
}

#endif
#if PANELS
/* Adds to y the products of x with four panels, `apart` numbers from each other. If n is less, the last one is computed
 * several times. */
static void add_panels(int n, int in, const float *w, int apart, const float *x, float *y)
{
    const int    p1 = least(1, n - 1), p2 = least(2, n - 1), p3 = least(3, n - 1);
    const eight *w0 = (const eight *)w, *w1 = (const eight *)(w + p1 * apart);
    const eight *w2 = (const eight *)(w + p2 * apart), *w3 = (const eight *)(w + p3 * apart);
    eight       *y0 = (eight *)y, *y1 = y0 + 2 * p1, *y2 = y0 + 2 * p2, *y3 = y0 + 2 * p3;
    eight        a = y0[0], b = y0[1], c = y1[0], d = y1[1], e = y2[0], f = y2[1], g = y3[0], h = y3[1];
    for (int k = 0; k < in; k++) {
        add_product(&a, x[k], &w0[2 * k]), add_product(&b, x[k], &w0[2 * k + 1]);
        add_product(&c, x[k], &w1[2 * k]), add_product(&d, x[k], &w1[2 * k + 1]);
        add_product(&e, x[k], &w2[2 * k]), add_product(&f, x[k], &w2[2 * k + 1]);
        add_product(&g, x[k], &w3[2 * k]), add_product(&h, x[k], &w3[2 * k + 1]);
    }
    y0[0] = a, y0[1] = b, y1[0] = c, y1[1] = d, y2[0] = e, y2[1] = f, y3[0] = g, y3[1] = h;
}

#endif
/* Adds W x to y, for n rows of x and of y. w has panels `apart` numbers from each other, and y room for all of the last
 * one. Each sum is one chain of multiply-adds in the order of x's elements. */
static void add_products(int n, int in, int wide, const float *w, int apart, const float *x, int x_row, float *y,
                         int y_row)
{
#if PANELS
#if ROWS
    for (int r = 0; n == 1 && r < n; r++)
#else
    for (int r = 0; r < n; r++)
#endif
        for (int p = 0; p < wide; p += 64)
            add_panels((wide - p + 15) / 16, in, w + p / 16 * apart, apart, x + r * x_row, y + r * y_row + p);
#endif
#if ROWS
#if PANELS
    for (int p = 0; n > 1 && p < wide; p += 16)
#else
    for (int p = 0; p < wide; p += 16)
#endif
        for (int r = 0; r < n; r += 4)
            add_rows(n - r, in, w + p / 16 * apart, x + r * x_row, x_row, y + r * y_row + p, y_row);
#endif
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

/* Up to four rows of x, rounded to 7 bits; a row with mixed columns. */
static int16_t rounded[4][WIDEST];
static float   mixed[WIDEST];

/* Mixes columns: blocks of 128 and of smaller powers of two become their products with Hadamard's matrix. Those of the
 * weights were mixed and divided by the size of the block, so that a product of both is unchanged. */
static void mix(int columns, float *x)
{
    for (int n = 128; columns; columns -= n, x += n) {
        while (n > columns) n /= 2;
        for (int h = n / 2; h; h /= 2)
            for (int i = 0; i < n; i += 2 * h)
                for (int k = i; k < i + h; k++) {
                    const float a = x[k], b = x[k + h];
                    x[k] = a + b, x[k + h] = a - b;
                }
    }
}

/* Mixes and rounds a row, whose padding is 0. Returns its scale. */
static float round_row(int in, const float *restrict row, int16_t *restrict to)
{
    int32_t      top[16] = {0}, most = 0; /* bits of numbers without a sign are in the order of the numbers */
    float *const x = mixed;
    for (int j = 0; j < in; j += 16)
        for (int i = 0; i < 16; i++) x[j + i] = row[j + i];
    mix(in, x);
    for (int j = 0; j < in; j += 16)
        for (int i = 0; i < 16; i++) {
            const int32_t bits = (int32_t)(bits_of(x[j + i]) & 0x7fffffff);
            top[i] = bits > top[i] ? bits : top[i];
        }
    for (int i = 0; i < 16; i++) most = top[i] > most ? top[i] : most;
    const float high = float_of((uint32_t)most);
    const float scale = high < 0x1p-100f ? 0 : high / 63, inverse = high < 0x1p-100f ? 0 : 63 / high;
    for (int j = 0; j < in; j += 16)
        for (int i = j; i < j + 16; i++) to[i] = (int16_t)((int)bits_of(x[i] * inverse + 0x1.8p23f) - 0x4b400000);
    return scale;
}

/* The sums of 16 outputs for one row, or for four rows. */
static void sum_row(int in, const int16_t *x, const signed char *w, int32_t *y)
{
    eight_sums a = {0}, b = {0};
    for (int k = 0; k < in; k += 2, w += 32) add_pairs(&a, x + k, w), add_pairs(&b, x + k, w + 16);
    store_sums(y, a), store_sums(y + 8, b);
}
#if ROWS
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

#endif
/* y = W x + b with weights in 8 bits: w has `wide` scales, then panels of bytes, with a row for each two elements of x:
 * two bytes for each output. x is rounded to 7 bits, too. The sums are integers. */
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
#if ROWS
            if (rows > 1) sum_rows(in, part + j * even, sum);
            else sum_row(in, rounded[0], part + j * even, sum[0]);
#else
            for (int s = 0; s < rows; s++) sum_row(in, rounded[s], part + j * even, sum[s]);
#endif
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
