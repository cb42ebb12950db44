/* test_int8.c — weights and activations of 8 bits, compared bit for bit with plain loops: every instruction set, odd
 * sizes, any threads, a row alone and among others, next to inaccessible pages, values without a scale. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "autograd/rooms/q8.h"
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

#include <sys/mman.h>
#include <unistd.h>

static const char *const isas[] = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};
enum { ISAS = 5 };

static void ok(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }
static bool same(const tn_tensor *a, const tn_tensor *b)
{
    return tn_dtype_of(a) == tn_dtype_of(b) && tn_numel(a) == tn_numel(b) &&
           !memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a) * tn_dtype_size(tn_dtype_of(a)));
}

/* The columns mixed as products in int8 do: in blocks of 128, and smaller powers of two, by steps from the first bit of
 * the index to the last one. */
static const float *mixed(const float *x, int64_t columns, bool divide)
{
    static float all[1 << 17];
    float       *y = all;
    memcpy(y, x, (size_t)columns * sizeof *x);
    for (int64_t n = 128; columns; columns -= n, y += n) {
        while (n > columns) n /= 2;
        for (int64_t h = n / 2; h; h /= 2)
            for (int64_t i = 0; i < n; i++)
                if (!(i & h)) {
                    const float a = y[i], b = y[i + h];
                    y[i] = a + b, y[i + h] = a - b;
                }
        for (int64_t i = 0; divide && i < n; i++) y[i] /= (float)n;
    }
    return all;
}

/* A row as integers, of which the maximum becomes `to`; returns its scale. */
static float rounded(const float *x, int64_t n, float max, float to, int *q)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite = finite && isfinite(x[i]);
    const float r = finite && max >= 0x1p-100f ? to / max : 0;
    for (int64_t i = 0; i < n; i++) q[i] = finite ? (int)rintf(x[i] * r) : 0;
    return finite ? r > 0 ? max / to : 0 : NAN;
}
static float activations(const float *x, int64_t n, int *q)
{
    float max = 0;
    x = mixed(x, n, false);
    for (int64_t i = 0; i < n; i++) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    return rounded(x, n, max, 63, q);
}
static float weights(const float *x, int64_t n, int *q)
{
    float max = 0, sum[2];
    x = mixed(x, n, true);
    for (int64_t i = 0; i < n; i++) {
        if (i % 8 == 0) sum[0] = sum[1] = 0;
        sum[i / 2 % 2] += fabsf(x[i]);
        max = fmaxf(max, fmaxf(fabsf(x[i]), sum[i / 2 % 2] * 127 / 256));
    }
    return rounded(x, n, max, 127, q);
}

/* x Wᵀ + bias by plain loops: x and w of f32. */
static tn_tensor *product(tn_tensor *x, tn_tensor *w, tn_tensor *bias)
{
    static int    qx[2000], qw[2000];
    const int64_t m = tn_size(x, 0), n = tn_size(w, 0), k = tn_size(w, 1);
    tn_tensor    *y = tn_empty(TN_SHAPE(m, n));
    const float  *fx = tn_data(x), *fw = tn_data(w), *b = bias ? tn_data(bias) : NULL;
    float        *to = tn_data_mut(y);
    for (int64_t j = 0; j < n; j++) {
        const float sw = weights(fw + j * k, k, qw);
        for (int64_t i = 0; i < m; i++) {
            const float    sx = activations(fx + i * k, k, qx);
            int64_t        sum = 0;
            volatile float v; /* never a multiply-add */
            for (int64_t p = 0; p < k; p++) sum += qx[p] * qw[p];
            v = sx * sw;
            v = (float)(int32_t)sum * v;
            to[i * n + j] = b ? v + b[j] : v;
        }
    }
    return y;
}

static tn_tensor *activated(tn__act act, tn_tensor *y)
{
    return act == TN__ACT_NONE   ? y
           : act == TN__ACT_RELU ? tn_relu(y)
           : act == TN__ACT_GELU ? tn_gelu(y)
                                 : tn_gelu_tanh(y);
}

TEST_EACH(products, ISAS)
{
    static const int64_t ms[] = {1, 2, 3, 5, 6, 7, 13, 48, 49, 100}, ns[] = {1, 15, 16, 17, 63, 65, 200},
                         ks[] = {1, 2, 3, 4, 5, 31, 32, 77, 1280};
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int i = 0; i < 10 * 7 * 9; i += tn_test_slow() ? 11 : 1) {
        const int64_t  m = ms[i % 10], n = ns[i / 10 % 7], k = ks[i / 70];
        const tn__act  act = (tn__act)(i % 4);
        const tn_scope s = tn_scope_begin();
        tn_tensor     *w = tn_normal(TN_SHAPE(n, k), 0, 0.05), *x = tn_normal(TN_SHAPE(m, k), 0, 1), *y;
        tn_tensor     *bias = i % 3 ? tn_normal(TN_SHAPE(n), 0, 1) : NULL;
        if (i % 5 == 0) tn_fill(tn_narrow(x, 0, m / 2, 1), 0), tn_fill(tn_narrow(w, 0, n / 2, 1), 0);
        if (i % 5 == 1) tn_fill(x, -1), tn_fill(w, 3); /* the largest sums */
        tn_tensor *q = tn_int8_pack(w), *want = activated(act, product(x, w, bias));
        tn__q8     of;
        ck_assert(tn__q8_of(q, &of) && tn_shape_equal(tn_weight_shape(q), TN_SHAPE(n, k)));
        y = tn_empty(TN_SHAPE(m, n));
        tn__self.shrink = 1024;
        for (int threads = 1; threads <= 3; threads++) {
            tn_set_threads(threads);
            tn_fill(y, 7);
            ck_assert(tn__q8_linear(x, &of, bias, act, y, t));
            ck_assert_msg(same(want, y), "%s, %d threads: [%d, %d] by [%d, %d]", isas[_i], threads, (int)m, (int)k,
                          (int)n, (int)k);
        }
        tn__self.shrink = 0;
        tn_set_threads(0);
        /* the last row alone; a view with strides; bf16 */
        tn_tensor *one = tn_empty(TN_SHAPE(1, n)), *last = tn_narrow(x, 0, m - 1, 1);
        ck_assert(tn__q8_linear(last, &of, bias, act, one, t) && same(one, tn_narrow(y, 0, m - 1, 1)));
        tn_tensor *turned = tn_transpose(tn_contiguous(tn_transpose(x, 0, 1)), 0, 1);
        ck_assert(tn__q8_linear(turned, &of, bias, act, y, t) && same(want, y));
        tn_tensor *x16 = tn_to(x, TN_BF16), *b16 = bias ? tn_to(bias, TN_BF16) : NULL;
        tn_tensor *y16 = tn_empty_of(TN_BF16, TN_SHAPE(m, n));
        want = product(tn_to(x16, TN_F32), w, b16 ? tn_to(b16, TN_F32) : NULL);
        ck_assert(tn__q8_linear(x16, &of, b16, act, y16, t) && same(tn_to(activated(act, want), TN_BF16), y16));
        ok();
        tn_scope_end(s);
    }
}

/* Values that have no scale: the row is NaN, all others are unchanged. Tiny rows count as zeros. */
TEST_EACH(without_scale, ISAS)
{
    const float             values[] = {NAN, -NAN, INFINITY, -INFINITY};
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *w = tn_normal(TN_SHAPE(20, 13), 0, 1), *x = tn_normal(TN_SHAPE(9, 13), 0, 1);
    tn_tensor     *q = tn_int8_pack(w), *want = product(x, w, NULL), *y = tn_empty(TN_SHAPE(9, 20));
    tn__q8         of;
    ck_assert(tn__q8_of(q, &of));
    for (int i = 0; i < 4; i++)
        for (int64_t at = 0; at < 13; at++) {
            tn_tensor *bad = tn_clone(x);
            tn_set(bad, 4 * 13 + at, values[i]);
            ck_assert(tn__q8_linear(bad, &of, NULL, TN__ACT_NONE, y, t));
            for (int64_t j = 0; j < 9 * 20; j++)
                ck_assert(j / 20 == 4 ? isnan(tn_get(y, j)) : tn_get(y, j) == tn_get(want, j));
        }
    tn_tensor *tiny = tn_full(TN_SHAPE(1, 13), 1e-38), *large = tn_full(TN_SHAPE(1, 13), 1e37);
    tn_tensor *b = tn_ones(TN_SHAPE(20));
    y = tn_empty(TN_SHAPE(1, 20));
    ck_assert(tn__q8_linear(tiny, &of, b, TN__ACT_NONE, y, t) && same(y, b));
    ck_assert(tn__q8_linear(large, &of, NULL, TN__ACT_NONE, y, t) && same(y, product(large, w, NULL)));
    ok();
    tn_scope_end(s);
}

/* The panels of case i: the largest sums in 16 bits, and others; whatever is stored as the sum of a row. */
static void fill_panels(const tn__int8_step *s, int i)
{
    for (int64_t j = 0; j < 16 * s->panels; j++) {
        uint8_t *const at = (uint8_t *)(uintptr_t)s->panel + j / 16 * s->panel_bytes;
        ((float *)(void *)at)[j % 16] = (float)(j + 1), ((int32_t *)(void *)at)[16 + j % 16] = (int32_t)j - 5;
        for (int64_t c = 0; c < 8 * s->groups; c++) {
            int w = i % 3 == 0 ? -32 : i % 3 == 1 ? 32 : (int)((c * 37 + j * 11 + i) % 65) - 32;
            if (i % 5 == 0) w = c % 8 < 2 || c % 8 == 3 || c % 8 == 7 ? j % 2 ? -128 : 127 : 0;
            at[128 + c / 4 * 64 + j % 16 * 4 + c % 4] = (uint8_t)w;
        }
    }
}

static void check_product(const tn__int8_step *s)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t j = 0; j < 16 * s->panels; j++) {
            const int8_t *w = (const int8_t *)s->panel + j / 16 * s->panel_bytes + 128 + j % 16 * 4;
            int64_t       sum = -64 * (j - 5);
            for (int64_t c = 0; c < 8 * s->groups; c++) sum += s->x[r * s->x_row + c] * w[c / 4 * 64 + c % 4];
            if (s->y[r * s->y_row + j] != (float)(sum * (j + 1)))
                ck_abort_msg("%d rows, %d groups, %d panels: row %d, column %d", (int)s->rows, (int)s->groups,
                             (int)s->panels, (int)r, (int)j);
        }
}

/* The kernels, those with VNNI and AMX too, read and write nothing outside their operands. */
TEST_EACH(tails, ISAS)
{
    static const int counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 31, 32, 33, 37, 47, 48};
    static const int widths[] = {1, 2, 3, 4, 5, 8, 11, 17};
    enum { CASES = 2 * 2 * 22 * 8 }; /* for each number of panels */
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    const size_t            page = (size_t)sysconf(_SC_PAGESIZE), room = 16 * page;
    char                   *at[3];
    float                   scale[48], x[8 * 17];
    int                     q[8 * 17];
    if (!t) return;
    for (int r = 0; r < 3; r++) {
        at[r] = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(at[r] != MAP_FAILED && !mprotect(at[r] + page, room, PROT_READ | PROT_WRITE));
    }
    for (int i = 0; i < 2 * CASES; i++) {
        const tn__int8_kernels *kn = i % 2 ? tn__int8(t) : t->int8;
        const bool              end = i / 2 % 2;
        const int64_t           rows = counts[i / 4 % 22], groups = widths[i % CASES / 88], k = 8 * groups - i % 8;
        const int64_t           panels = i / CASES + 1, panel = 128 + 128 * groups, cols = 16 * panels;
        if (rows > kn->rows || panels > tn__max_i64(kn->panels, 1)) continue;
        const size_t bytes[] = {(size_t)(rows * groups * 8), (size_t)(panels * panel), (size_t)(rows * cols * 4)};
        char        *p[3];
        for (int r = 0; r < 3; r++) p[r] = at[r] + page + (end ? room - bytes[r] : 0);
        tn__int8_step s = {.rows = rows, .groups = groups, .x_row = groups * 8, .scale = scale, .y_row = cols};
        s.x = (uint8_t *)p[0], s.panel = (uint8_t *)p[1], s.y = (float *)(void *)p[2];
        s.panels = panels, s.panel_bytes = panel;
        fill_panels(&s, i);
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t j = 0; j < k; j++) x[j] = i % 7 ? (float)((r * 7 + j * 3 + i) % 255 - 127) : 127;
            x[0] = 127;
            uint8_t *const to = (uint8_t *)p[0] + r * s.x_row;
            ck_assert(kn->quantize(k, x, to) == activations(x, k, q));
            for (int64_t j = 0; j < 8 * groups; j++)
                if (to[j] != (j < k ? q[j] + 64 : 64)) ck_abort_msg("column %d", (int)j);
            if (i % 7 == 0) memset(to, 127, (size_t)s.x_row); /* the largest sums */
            scale[r] = 1;
        }
        if (kn->begin) kn->begin(rows, groups);
        kn->product(&s);
        if (kn->end) kn->end();
        check_product(&s);
    }
    for (int r = 0; r < 3; r++) munmap(at[r], room + 2 * page);
}

TEST(packing)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *w = tn_normal(TN_SHAPE(37, 45), 0, 0.05), *q = tn_int8_pack(w), *wide = tn_unpack(q), *t;
    int            to[45];
    for (int64_t r = 0; r < 37; r++) {
        const float scale = weights((const float *)tn_data(w) + r * 45, 45, to);
        float       values[45];
        for (int64_t i = 0; i < 45; i++) values[i] = (float)to[i] * scale;
        for (int64_t i = 0; i < 45; i++) ck_assert(tn_get(wide, r * 45 + i) == (double)mixed(values, 45, false)[i]);
    }
    ck_assert_int_eq(tn_numel(q), 64 + 3 * (128 + 6 * 128));
    ck_assert(same(tn_int8_pack(tn_transpose(tn_contiguous(tn_transpose(w, 0, 1)), 0, 1)), q));
    ck_assert_int_eq(tn_weight_dtype(tn_int8_pack(tn_to(w, TN_BF16))), TN_BF16);
    tn_tensor *ids = tn_randint(TN_SHAPE(2, 3), 0, 37), *x = tn_normal(TN_SHAPE(6, 45), 0, 1);
    ck_assert(same(tn_embedding(wide, ids, -1, false), tn_embedding(q, ids, -1, false)));
    ck_assert(same(tn_linear_gelu(x, q, NULL), tn_gelu(product(x, w, NULL))));
    tn_tensor *none = tn_linear(tn_zeros(TN_SHAPE(0, 45)), q, NULL);
    ck_assert(tn_shape_equal(tn_shape_of(none), TN_SHAPE(0, 37)));
    ok();
    for (int i = 0; i < 3; i++) {
        t = tn_clone(w);
        tn_set(t, 99, i == 0 ? NAN : i == 1 ? INFINITY : -INFINITY);
        ck_refused(tn_int8_pack(t), TN_EINVAL, "tn_int8_pack: the weights [37, 45] hold NaN or an infinity");
    }
    ck_refused(
        tn_int8_pack(tn_zeros_of(TN_BF16, TN_SHAPE(1, 131073))), TN_ESHAPE,
        "tn_int8_pack: the width of the weights [1, 131073] must be at most 131072, so that sums fit in 32 bits");
    ck_assert_ptr_nonnull(tn_int8_pack(tn_zeros_of(TN_BF16, TN_SHAPE(1, 131072))));
    char text[64];
    ck_fails(tn_q8_to_blocks(q, text, sizeof text), TN_EINVAL,
             "tn_q8_to_blocks: the weight is in int8; tn_q8_pack creates one in 8 bits");
    t = tn_int8_pack(tn_full(TN_SHAPE(1, 131072), -1)); /* the widest */
    const float *y = tn_data(tn_linear(tn_ones(TN_SHAPE(1, 131072)), t, NULL)), one = 128.0f / 63 * (1.0f / 127);
    ck_assert(y[0] == -(float)(131072 / 128 * 63 * 127) * one); /* of each block one mixed column is not 0 */
    for (int byte = 0; byte < 25; byte++)                       /* a header that does not match the tensor */
        for (int bit = 0; bit < 8; bit++) {
            t = tn_clone(q);
            tn_set(t, byte, (double)((int)tn_get(t, byte) ^ 1 << bit));
            /* other rows within the last panel, columns within the last group, and dtypes are valid, too */
            if (tn_is_packed(t)) ck_assert_msg(byte == 8 || byte == 16 || byte == 24, "byte %d, bit %d", byte, bit);
        }
    ck_assert(!tn_is_packed(tn_narrow(q, 0, 0, tn_numel(q) - 1)));
    ok();
    tn_scope_end(s);
}

/* Some columns of a product, whole panels from the first: those of all, with the same gradient. */
TEST_EACH(some_columns, 4)
{
    tn_tensor *(*const pack[])(const tn_tensor *) = {tn_int8_pack, tn_q8_pack, tn_f16_pack, tn_q4_pack};
    static const int64_t at[][2] = {{0, 64}, {64, 128}, {128, 70}, {16, 32}, {5, 9}, {64, 0}};
    const tn_scope       s = tn_scope_begin();
    tn_tensor           *w = pack[_i](tn_normal(TN_SHAPE(200, 64), 0, 0.05)), *b = tn_normal(TN_SHAPE(200), 0, 1);
    for (int i = 0; i < 6; i++) {
        tn_tensor *x[2], *y[2], *g = tn_normal(TN_SHAPE(3, 7, at[i][1]), 0, 1);
        x[0] = tn_normal(TN_SHAPE(3, 7, 64), 0, 1), x[1] = tn_clone(x[0]);
        for (int k = 0; k < 2; k++) tn_requires_grad(x[k]);
        y[0] = tn__linear_rows(x[0], w, i % 2 ? b : NULL, at[i][0], at[i][1]);
        y[1] = tn_contiguous(tn_narrow(tn_linear(x[1], w, i % 2 ? b : NULL), -1, at[i][0], at[i][1]));
        ok();
        ck_assert_msg(tn_is_contiguous(y[0]) && same(y[0], y[1]), "columns %d", i);
        for (int k = 0; k < 2; k++) tn_backward(y[k], .seed = g);
        ok();
        ck_assert(tn_allclose(tn_grad(x[0]), tn_grad(x[1]), 1e-5, 1e-5) == 1);
    }
    tn_scope_end(s);
}
