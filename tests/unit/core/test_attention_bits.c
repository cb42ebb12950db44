/* test_attention_bits.c — attention of bf16 to the bit, on every instruction set: results and gradients are the chains
 * of gemm_reference.h with the kernels' softmax of a single row between them; alone, padded and unpadded, with any
 * threads. With AMX a group of 32 terms is counted from the start of each sequence. */
#include "autograd/autograd.h"
#include "tests/common/gemm_reference.h"
#include "core/products/attention.h"

enum { KEYS = 128, ROOM = KEYS + 16, MOST = 200, WIDE = 70, RAGGED = 45 }; /* RAGGED: rows of the other sequence */

/* One sequence; the values of q, k, v and gy are those of bf16. Results and other gradients are f32: rounding to bf16
 * would hide another order of terms. */
static struct {
    int64_t t, s, d, e;
    bool    causal;
    int64_t past, window;
    float   q[MOST][WIDE], k[MOST][WIDE], v[MOST][WIDE], y[MOST][WIDE], gy[MOST][WIDE];
    float   gq[MOST][WIDE], gk[MOST][WIDE], gv[MOST][WIDE];
    float   stat[MOST][2], weight[MOST][MOST], slope[MOST][MOST];
} one;
static const float scale = 0.3f;

static float bf16(float x) { return tn__bf16_to_f32(tn__f32_to_bf16(x)); }

/* sum + Σ a · b, n terms. */
static float chain(adding how, int64_t n, const float *a, int64_t a_step, const float *b, int64_t b_step, float sum)
{
    float part[2] = {0, 0}; /* sums of a group: terms at even positions, and at odd positions */
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = how == PAIRS && (i ^ 1) < n ? i ^ 1 : i;
        const float   x = a[p * a_step], y = b[p * b_step];
        if (how == GROUPS) {
            part[p % 2] = fmaf(x, y, part[p % 2]);
            if (p % 32 == 31 || p == n - 1) sum += part[0] + part[1], part[0] = part[1] = 0;
        } else sum = how == ROUNDS_TWICE ? sum + x * y : fmaf(x, y, sum);
    }
    return sum;
}

static int64_t end_of_sight(int64_t i)
{
    const int64_t n = one.causal ? one.past + i + 1 : one.window ? one.window + i : one.s;
    return n < one.s ? n : one.s;
}
static bool blocked(int64_t i, int64_t j) { return one.window && j <= one.past + i - one.window; }

/* The scores of row i for a block of keys, and the rest of the kernels' arguments. */
typedef struct {
    float              s[ROOM], g[ROOM], add[ROOM], max[16], sum[16], part[16], factor[16];
    tn__attention_step step;
} work;
static void scores(adding how, work *w, int64_t i, int64_t j)
{
    const int64_t n = one.s - j < KEYS ? one.s - j : KEYS, seen = end_of_sight(i) - j;
    memset(w->s, 0, sizeof w->s), memset(w->g, 0, sizeof w->g), memset(w->add, 0, sizeof w->add);
    for (int64_t k = 0; k < n; k++) {
        w->s[k] = chain(how, one.d, one.q[i], 1, one.k[j + k], 1, 0);
        w->g[k] = chain(how, one.e, one.gy[i], 1, one.v[j + k], 1, 0);
        if (blocked(i, j + k)) w->add[k] = -INFINITY;
    }
    w->step = (tn__attention_step){.rows = 1,
                                   .keys = n,
                                   .first = seen < n ? seen : n,
                                   .scale = (double)scale,
                                   .s = w->s,
                                   .s_row = ROOM,
                                   .add = w->add,
                                   .max = w->max,
                                   .sum = w->sum,
                                   .part = w->part,
                                   .factor = w->factor,
                                   .g = w->g};
}

static void forward(const tn__kernel_table *t, adding how, int64_t i)
{
    static work w;
    float       o[WIDE] = {0};
    for (int l = 0; l < 16; l++) w.max[l] = -INFINITY, w.sum[l] = 0;
    for (int64_t j = 0; j < end_of_sight(i); j += KEYS) {
        scores(how, &w, i, j);
        t->attention_f32->softmax(&w.step);
        for (int64_t k = 0; how >= PAIRS && k < w.step.keys; k++) w.s[k] = bf16(w.s[k]);
        for (int64_t e = 0; e < one.e; e++)
            o[e] = chain(how, w.step.keys, w.s, 1, &one.v[j][e], WIDE, j ? o[e] * w.factor[0] : 0);
    }
    one.stat[i][0] = w.sum[0] == 0 ? 0 : w.max[0], one.stat[i][1] = w.sum[0] == 0 ? 0 : 1 / w.sum[0];
    for (int64_t e = 0; e < one.e; e++) one.y[i][e] = o[e] * one.stat[i][1] + 0;
}

static void backward(const tn__kernel_table *t, adding how)
{
    static work w;
    memset(one.weight, 0, sizeof one.weight), memset(one.slope, 0, sizeof one.slope);
    for (int64_t i = 0; i < one.t; i++)
        for (int64_t j = 0; j < end_of_sight(i); j += KEYS) {
            scores(how, &w, i, j);
            w.max[0] = one.stat[i][0], w.sum[0] = one.stat[i][1];
            w.part[0] = chain(how == ROUNDS_TWICE ? how : FUSES, one.e, one.y[i], 1, one.gy[i], 1, 0);
            t->attention_f32->softmax_back(&w.step);
            for (int64_t k = 0; k < w.step.keys; k++) {
                one.weight[i][j + k] = how >= PAIRS ? bf16(w.s[k]) : w.s[k];
                one.slope[i][j + k] = how >= PAIRS ? bf16(w.g[k]) : w.g[k];
            }
        }
    for (int64_t i = 0; i < one.t; i++)
        for (int64_t d = 0; d < one.d; d++)
            one.gq[i][d] = chain(how, one.s, one.slope[i], 1, &one.k[0][d], WIDE, 0) * scale + 0;
    for (int64_t j = 0; j < one.s; j++) {
        for (int64_t d = 0; d < one.d; d++)
            one.gk[j][d] = chain(how, one.t, &one.slope[0][j], MOST, &one.q[0][d], WIDE, 0) * scale + 0;
        for (int64_t e = 0; e < one.e; e++)
            one.gv[j][e] = chain(how, one.t, &one.weight[0][j], MOST, &one.gy[0][e], WIDE, 0) + 0;
    }
}

/* ---- the functions under test ------------------------------------------------------------------------------------ */

/* `before` rows of noise, the sequence's, and rows of `fill`. */
static tn_tensor *with_rows(float (*x)[WIDE], int64_t before, int64_t n, int64_t after, float fill, int64_t width)
{
    tn_tensor *t = tn_empty_of(TN_BF16, TN_SHAPE(before + n + after, width));
    uint16_t  *to = tn_data_mut(t);
    for (int64_t r = 0; r < before + n + after; r++)
        for (int64_t i = 0; i < width; i++)
            *to++ = tn__f32_to_bf16(r < before ? (float)noise() : r < before + n ? x[r - before][i] : fill);
    return t;
}

static void compare(const tn_tensor *t, int64_t before, int64_t n, float (*want)[WIDE], const char *what,
                    const char *how)
{
    const int64_t width = tn_size(t, 1);
    const float  *got = (const float *)tn_data(t) + before * width;
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < width; i++)
            if (memcmp(got + r * width + i, want[r] + i, sizeof *got) != 0)
                ck_abort_msg("%s, %s [%d, %d]: %a, expected %a", how, what, (int)r, (int)i, (double)got[r * width + i],
                             (double)want[r][i]);
}

/* The sequence with `before` rows of another one before it (queries and keys), and `after` rows of padding. */
static void check(const tn__kernel_table *t, int64_t before, int64_t after, const char *how)
{
    const int64_t      offsets[] = {0, before, before + one.t}, key_offsets[] = {0, before, before + one.s};
    tn__attention_call c = {.causal = one.causal,
                            .past = one.past,
                            .window = one.window,
                            .scale = (double)scale,
                            .drop.all = true,
                            .kernels = t};
    c.q = with_rows(one.q, before, one.t, after, 3, one.d), c.k = with_rows(one.k, before, one.s, after, NAN, one.d);
    c.v = with_rows(one.v, before, one.s, after, NAN, one.e), c.gy = with_rows(one.gy, before, one.t, after, 0, one.e);
    c.y = tn_empty(tn_shape_of(c.gy)), c.gq = tn_empty(tn_shape_of(c.q));
    c.gk = tn_empty(tn_shape_of(c.k)), c.gv = tn_empty(tn_shape_of(c.v));
    c.stat = tn_empty(TN_SHAPE(before + one.t + after, 2));
    if (before) c.offsets = offsets, c.key_offsets = key_offsets, c.sequences = 2;
    if (after) {
        tn_tensor *mask = tn_zeros_of(TN_BOOL, TN_SHAPE(1, one.s + after));
        tn_fill(tn_narrow(mask, 1, one.s, after), 1);
        c.mask[0] = tn_expand(mask, TN_SHAPE(one.t + after, one.s + after));
    }
    tn__attend(&c);
    tn__attend_back(&c);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    compare(c.y, before, one.t, one.y, "y", how), compare(c.gq, before, one.t, one.gq, "gq", how);
    compare(c.gk, before, one.s, one.gk, "gk", how), compare(c.gv, before, one.s, one.gv, "gv", how);
}

/* The exact result, in f64: with pairs or groups the weights, which sum to 1, are rounded. */
static void check_exact(void)
{
    for (int64_t i = 0; i < one.t; i++) {
        double y[WIDE] = {0}, sum = 0;
        for (int64_t j = 0; j < end_of_sight(i); j++) {
            double dot = 0;
            for (int64_t d = 0; d < one.d; d++) dot += (double)one.q[i][d] * (double)one.k[j][d];
            if (blocked(i, j)) continue;
            sum += dot = exp((double)scale * dot);
            for (int64_t e = 0; e < one.e; e++) y[e] += dot * (double)one.v[j][e];
        }
        for (int64_t e = 0; e < one.e; e++) expect(fabs((double)one.y[i][e] - (sum > 0 ? y[e] / sum : 0)) <= 0x1p-8);
    }
}

static void randomise(float (*x)[WIDE])
{
    for (int64_t r = 0; r < MOST; r++)
        for (int64_t i = 0; i < WIDE; i++) x[r][i] = bf16((float)noise());
}

TEST_EACH(chains, ISAS)
{
    static const int64_t     sizes[][4] = {{1, 1, 1, 1},      {3, 33, 5, 17},   {33, 65, 33, 40}, {70, 70, 16, 64},
                                           {65, 129, 40, 31}, {97, 197, 33, 7}, {1, 150, 64, 32}, {129, 2, 48, 16}};
    static const char *const kinds[] = {"bidirectional", "causal", "causal in a window", "in a window"};
    const tn__kernel_table  *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int i = 0; i < 8 * 4; i += tn_test_slow() ? 5 : 1) {
        const tn_scope s = tn_scope_begin();
        const adding   how = fused(t);
        char           what[100];
        noise_state = (uint64_t)i;
        one.t = sizes[i / 4][0], one.s = sizes[i / 4][1], one.d = sizes[i / 4][2], one.e = sizes[i / 4][3];
        one.causal = i % 4 == 1 || i % 4 == 2, one.past = one.causal && i % 3 == 0 ? 21 : 0;
        one.window = i % 4 > 1 ? 1 + i * 7 % 90 : 0;
        randomise(one.q), randomise(one.k), randomise(one.v), randomise(one.gy);
        for (int64_t r = 0; r < one.t; r++) forward(t, how, r);
        check_exact();
        backward(t, how);
        for (int threads = 1; threads <= 3; threads += 2) {
            tn_set_threads(threads), tn__self.shrink = threads > 1 ? 1024 : 0;
            snprintf(what, sizeof what, "%s, %s, [%d, %d] by [%d, %d], %d threads", isas[_i], kinds[i % 4], (int)one.t,
                     (int)one.d, (int)one.s, (int)one.e, threads);
            check(t, 0, 0, what);
            if (one.past == 0) check(t, RAGGED, 0, what); /* unpadded, after another sequence */
            check(t, 0, RAGGED, what);                    /* padded */
        }
        tn_set_threads(0), tn__self.shrink = 0;
        tn_scope_end(s);
    }
}
