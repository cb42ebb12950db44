/* test_q8.c — weights of 8 bits and of f16: their values compared with a scalar reference of llama.cpp's Q8_0, the
 * blocks of files and back, and products compared bit for bit with those of the same weights in f32: every instruction
 * set, odd sizes, any threads, a row alone and among others, next to inaccessible pages. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "core/base/f16.h"
#include "core/products/gemm.h"
#include "core/products/q8.h"
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

#include <sys/mman.h>
#include <unistd.h>

static const char *const isas[] = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};
enum { ISAS = 5, GROUP = 32, BLOCK = 34 };

static void ok(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }

/* A row's blocks as computed by llama.cpp's quantize_row_q8_0_ref. */
static void reference(const float *x, int64_t n, uint8_t *to)
{
    for (int64_t g = 0; g < n / GROUP; g++, x += GROUP, to += BLOCK) {
        float max = 0;
        for (int i = 0; i < GROUP; i++) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
        const float    d = max / 127, id = d != 0 ? 1 / d : 0;
        const uint16_t h = tn__f32_to_f16(d);
        to[0] = (uint8_t)h, to[1] = (uint8_t)(h >> 8);
        for (int i = 0; i < GROUP; i++) to[2 + i] = (uint8_t)(int8_t)roundf(x[i] * id);
    }
}

static tn_tensor *weights(int64_t out, int64_t in) { return tn_normal(TN_SHAPE(out, in), 0, 0.05); }
static size_t     blocks_of(int64_t out, int64_t in) { return (size_t)(out * in / GROUP * BLOCK); }

TEST(numbers)
{
    static uint8_t ours[130 * 96 / GROUP * BLOCK], theirs[sizeof ours];
    const int64_t  sizes[][2] = {{1, 32}, {3, 64}, {63, 32}, {64, 96}, {65, 32}, {130, 96}};
    for (int i = 0; i < 6; i++) {
        const int64_t out = sizes[i][0], in = sizes[i][1];
        tn_scope      s = tn_scope_begin();
        tn_tensor    *w = weights(out, in);
        tn_set(w, 0, -0.25), tn_set(w, 1, 0.25 / 254), tn_set(w, 2, -0.25 / 254); /* halves: away from zero */
        if (out > 1) tn_fill(tn_narrow(w, 0, 1, 1), 0);
        if (out > 2) tn_fill(tn_narrow(w, 0, 2, 1), 3e-9); /* a scale below the range of f16 */
        if (out > 3) tn_fill(tn_narrow(w, 0, 3, 1), 1e-5); /* and one that is denormal in f16 */
        tn_tensor *q = tn_q8_pack(w);
        ok();
        for (int64_t r = 0; r < out; r++) reference((const float *)tn_data(w) + r * in, in, theirs + blocks_of(r, in));
        ck_assert_int_eq(tn_q8_to_blocks(q, ours, blocks_of(out, in)), TN_OK);
        ck_assert_mem_eq(ours, theirs, blocks_of(out, in));
        tn_tensor *again = tn_q8_from_blocks(TN_F32, TN_SHAPE(out, in), theirs, blocks_of(out, in));
        ok();
        ck_assert_int_eq(tn_numel(again), tn_numel(q));
        ck_assert_mem_eq(tn_data(again), tn_data(q), (size_t)tn_numel(q));
        tn_tensor *wide = tn_unpack(q);
        for (int64_t k = 0; k < out * in; k++) {
            const uint8_t *b = theirs + k / GROUP * BLOCK;
            const float    d = tn__f16_to_f32((uint16_t)(b[0] | b[1] << 8));
            ck_assert(tn_get(wide, k) == (double)((float)(int8_t)b[2 + k % GROUP] * d));
        }
        /* strides, and other dtypes of the same values */
        tn_tensor *turned = tn_transpose(tn_contiguous(tn_transpose(w, 0, 1)), 0, 1);
        ck_assert_mem_eq(tn_data(tn_q8_pack(turned)), tn_data(q), (size_t)tn_numel(q));
        tn_tensor *q64 = tn_q8_pack(tn_to(w, TN_F64));
        ck_assert_int_eq(tn_weight_dtype(q64), TN_F64);
        ck_assert_mem_eq((const char *)tn_data(q64) + 64, (const char *)tn_data(q) + 64, (size_t)tn_numel(q) - 64);
        ck_assert(tn_shape_equal(tn_weight_shape(q), TN_SHAPE(out, in)));
        ok();
        tn_scope_end(s);
    }
}

TEST(refused)
{
    char       all[BLOCK] = {0};
    tn_scope   s = tn_scope_begin();
    tn_tensor *w = weights(4, 32), *q = tn_q8_pack(w), *t;
    ck_refused_has(tn_q8_pack(weights(4, 40)), TN_ESHAPE, "the width of the weights [4, 40] must be a multiple of 32");
    ck_refused_has(tn_q8_pack(tn_zeros(TN_SHAPE(32))), TN_ESHAPE, "must be [out, in], got [32]");
    ck_refused_has(tn_q8_pack(tn_zeros_of(TN_I64, TN_SHAPE(1, 32))), TN_EDTYPE, "not i64");
    tn_set(w, 40, NAN);
    ck_refused_has(tn_q8_pack(w), TN_EINVAL, "hold NaN");
    tn_set(w, 40, 9e6);
    ck_refused_has(tn_q8_pack(w), TN_EINVAL, "8.3e6");
    ck_refused_has(tn_q8_from_blocks(TN_F32, TN_SHAPE(2, 32), all, BLOCK), TN_EINVAL,
                   "bytes is 34, but weights [2, 32] need 68");
    ck_refused_has(tn_q8_from_blocks(TN_F32, TN_SHAPE(INT64_MAX / 2, 64), all, BLOCK), TN_ESHAPE, "are too large");
    ck_fails_has(tn_q8_to_blocks(q, all, BLOCK), TN_EINVAL, "expected 136 bytes");
    ck_refused_has(tn_unpack(w), TN_EINVAL, "not a packed weight");
    /* a header that does not match the tensor */
    ck_assert(tn_is_packed(q) && !tn_is_packed(w) && !tn_is_packed(NULL));
    for (int byte = 0; byte < 25; byte++)
        for (int bit = 0; bit < 8; bit++) {
            t = tn_clone(q);
            tn_set(t, byte, (double)((int)tn_get(t, byte) ^ 1 << bit));
            /* other rows within the last panel, and another dtype, are also valid weights */
            if (tn_is_packed(t)) ck_assert_msg(byte == 8 || byte == 24, "byte %d, bit %d", byte, bit);
        }
    ck_assert(!tn_is_packed(tn_narrow(q, 0, 0, tn_numel(q) - 1)));
    ok();
    tn_scope_end(s);
}

/* Rounded from f32, at any width; unchanged if they were f16 in f32. */
TEST(halves)
{
    char           text[64];
    const tn_scope s = tn_scope_begin();
    for (int i = 0; i < 12; i++) {
        const int64_t out = 1 + i * 13, in = 1 + i * i * 5;
        tn_tensor    *w = weights(out, in);
        tn_set(w, 0, 65504);
        if (in > 3) tn_set(w, 1, 3e-8), tn_set(w, 2, -1e-9), tn_set(w, 3, -65519); /* denormal, 0, the largest */
        tn_tensor *h = tn_f16_pack(i % 2 ? tn_transpose(tn_contiguous(tn_transpose(w, 0, 1)), 0, 1) : w);
        tn_tensor *wide = tn_unpack(h), *again = tn_f16_pack(wide);
        ok();
        ck_assert(tn_is_packed(h) && tn_shape_equal(tn_weight_shape(h), TN_SHAPE(out, in)));
        ck_assert_int_eq(tn_weight_dtype(h), TN_F32);
        const float *is = tn_data(wide), *was = tn_data(w);
        for (int64_t k = 0; k < out * in; k++) ck_assert(is[k] == tn__f16_to_f32(tn__f32_to_f16(was[k])));
        ck_assert_mem_eq(tn_data(again), tn_data(h), (size_t)tn_numel(h));
        ck_assert_int_eq(tn_weight_dtype(tn_f16_pack(tn_to(w, TN_F64))), TN_F64);
    }
    tn_tensor *w = weights(2, 40), *h = tn_f16_pack(w);
    ck_fails_has(tn_q8_to_blocks(h, text, sizeof text), TN_EINVAL, "tn_q8_to_blocks: the weight is in f16");
    for (int i = 0; i < 3; i++) {
        tn_set(w, 40, i == 0 ? NAN : i == 1 ? -INFINITY : 65520);
        ck_refused_has(tn_f16_pack(w), TN_EINVAL,
                       "tn_f16_pack: the weights [2, 40] hold NaN, an infinity, or more than 65504");
    }
    for (int byte = 0; byte < 25; byte++) /* a header that does not match the tensor */
        for (int bit = 0; bit < 8; bit++) {
            tn_tensor *t = tn_clone(h);
            tn_set(t, byte, (double)((int)tn_get(t, byte) ^ 1 << bit));
            if (tn_is_packed(t)) ck_assert_msg(byte == 8 || byte == 24, "byte %d, bit %d", byte, bit);
        }
    ok();
    tn_scope_end(s);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static void same(const tn_tensor *a, const tn_tensor *b, const char *isa, int64_t m, int64_t n, int64_t k)
{
    const size_t bytes = (size_t)tn_numel(a) * tn_dtype_size(tn_dtype_of(a));
    ck_assert_int_eq(tn_dtype_of(a), tn_dtype_of(b));
    ck_assert_msg(!memcmp(tn_data(a), tn_data(b), bytes), "%s: [%lld, %lld] times [%lld, %lld]", isa, (long long)m,
                  (long long)k, (long long)n, (long long)k);
}

/* x Wᵀ + b by the tiles of f32 of the same instruction set. */
static tn_tensor *plain(const tn__kernel_table *t, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias,
                        tn__act act, tn_dtype dt)
{
    const int64_t m = tn_size(x, 0), n = tn_size(w, 0), k = tn_size(w, 1);
    tn_tensor    *y = tn_empty_of(dt, TN_SHAPE(m, n));
    tn__gemm_call g = {.dtype = TN_F32, .ctype = dt, .m = m, .n = n, .k = k, .alpha = 1, .act = act, .kernels = t};
    g.a = tn_data(x), g.a_row = k, g.a_col = 1, g.b = tn_data(w), g.b_row = 1, g.b_col = k;
    g.c = tn_data_mut(y), g.c_row = n, g.c_col = 1;
    if (bias) g.bias.at = (void *)(uintptr_t)tn_data(bias), g.bias.col = 1;
    ck_assert(tn__gemm_run(&g));
    return y;
}

TEST_EACH(products, 2 * ISAS)
{
    static const int64_t ms[] = {1, 2, 3, 5, 6, 7, 12, 13, 16, 17, 40}, ns[] = {1, 15, 63, 64, 65, 200},
                         ks[] = {32, 96, 1280};
    const bool              f16 = _i >= ISAS;
    const char             *isa = isas[_i % ISAS];
    const tn__kernel_table *t = tn__kernels_of(isa);
    if (!t) return;
    for (int i = 0; i < 11 * 6 * 3; i += tn_test_slow() ? 5 : 1) {
        const int64_t  m = ms[i % 11], n = ns[i / 11 % 6], k = ks[i / 66] + (f16 ? i % 4 : 0);
        const tn__act  act = (tn__act)(i % 4);
        const tn_scope s = tn_scope_begin();
        tn_tensor     *w = (f16 ? tn_f16_pack : tn_q8_pack)(weights(n, k)), *wide = tn_unpack(w);
        tn_tensor     *x = tn_normal(TN_SHAPE(m, k), 0, 1), *bias = i % 3 ? tn_normal(TN_SHAPE(n), 0, 1) : NULL,
                  *y = tn_empty(TN_SHAPE(m, n)), *want = plain(t, x, wide, bias, act, TN_F32);
        tn__q8 q;
        ck_assert(tn__q8_of(w, &q));
        tn__self.shrink = 1024;
        for (int threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4) {
            tn_set_threads(threads);
            tn_fill(y, 7);
            ck_assert(tn__q8_linear(x, &q, bias, act, y, t));
            same(want, y, isa, m, n, k);
        }
        tn__self.shrink = 0;
        tn_set_threads(0);
        /* the last row alone; a view with strides; and bf16 */
        tn_tensor *one = tn_empty(TN_SHAPE(1, n)), *last = tn_narrow(x, 0, m - 1, 1);
        ck_assert(tn__q8_linear(last, &q, bias, act, one, t));
        same(one, tn_narrow(y, 0, m - 1, 1), isa, 1, n, k);
        tn_tensor *turned = tn_transpose(tn_contiguous(tn_transpose(x, 0, 1)), 0, 1), *z = tn_empty(TN_SHAPE(m, n));
        ck_assert(tn__q8_linear(turned, &q, bias, act, z, t));
        same(z, y, isa, m, n, k);
        tn_tensor *x16 = tn_to(x, TN_BF16), *b16 = bias ? tn_to(bias, TN_BF16) : NULL;
        tn_tensor *y16 = tn_empty_of(TN_BF16, TN_SHAPE(m, n));
        ck_assert(tn__q8_linear(x16, &q, b16, act, y16, t));
        same(plain(t, tn_to(x16, TN_F32), wide, b16, act, TN_BF16), y16, isa, m, n, k);
        ok();
        tn_scope_end(s);
    }
}

/* The kernels read and write nothing outside their operands. */
TEST_EACH(tails, ISAS)
{
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    const size_t            page = (size_t)sysconf(_SC_PAGESIZE), room = 16 * page;
    char                   *at[3];
    if (!t) return;
    for (int r = 0; r < 3; r++) {
        at[r] = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(at[r] != MAP_FAILED && !mprotect(at[r] + page, room, PROT_READ | PROT_WRITE));
    }
    for (int64_t rows = 1; rows <= 16; rows++)
        for (int i = 0; i < 6; i++) {
            const int64_t groups = 1 + i % 3;
            const bool    end = i / 3;
            const size_t  bytes[] = {(size_t)(rows * groups * GROUP) * 4, (size_t)groups * TN__Q8_BLOCK,
                                     (size_t)rows * TN__Q8_PANEL * 4};
            char         *p[3];
            for (int r = 0; r < 3; r++) p[r] = at[r] + page + (end ? room - bytes[r] : 0);
            for (int64_t k = 0; k < rows * groups * GROUP; k++) ((float *)(void *)p[0])[k] = (float)(k % 7) - 3;
            for (size_t k = 0; k < bytes[1]; k++)
                p[1][k] = (char)(k % TN__Q8_BLOCK < TN__Q8_SCALES ? 0x3c * (k % 4 == 3) : k % 251);
            tn__q8_step s = {.rows = rows, .groups = groups, .x = (float *)(void *)p[0], .x_row = groups * GROUP};
            s.blocks = (uint8_t *)p[1], s.y = (float *)(void *)p[2], s.y_row = TN__Q8_PANEL;
            t->q8->product(&s);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < TN__Q8_PANEL; j++) {
                    double sum = 0; /* small integers: exact */
                    for (int64_t k = 0; k < groups * GROUP; k++) {
                        const char *w = p[1] + k / GROUP * TN__Q8_BLOCK + TN__Q8_SCALES + k % GROUP * TN__Q8_PANEL;
                        sum += (double)s.x[r * s.x_row + k] * ((uint8_t)w[TN__Q8_BYTE(j)] - 128) * (j % 2 ? 1 : 0);
                    }
                    ck_assert(s.y[r * s.y_row + j] == (float)sum);
                }
            if (rows * TN__Q8_PANEL * 4 < groups * GROUP * TN__Q8_PANEL * 4) continue;
            const size_t wide = (size_t)(groups * GROUP) * TN__Q8_PANEL * 4;
            float       *to = (float *)(void *)(at[2] + page + (end ? room - wide : 0));
            t->q8->widen(groups, s.blocks, to, TN__Q8_PANEL);
            ck_assert(to[TN__Q8_PANEL + 1] == (float)(p[1][TN__Q8_SCALES + TN__Q8_PANEL + TN__Q8_BYTE(1)] & 255) - 128);
        }
    for (int r = 0; r < 3; r++) munmap(at[r], room + 2 * page);
}

/* All f16 values, by each table, and nothing read after the last. */
TEST_EACH(tails_f16, ISAS)
{
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    const size_t            page = (size_t)sysconf(_SC_PAGESIZE), bytes = 2 << 16;
    enum { COLUMNS = (1 << 16) / TN__Q8_PANEL };
    static float to[COLUMNS * TN__Q8_PANEL], x[COLUMNS], y[TN__Q8_PANEL];
    if (!t) return;
    char *at = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(at != MAP_FAILED && !mprotect(at + bytes, page, PROT_NONE));
    for (uint32_t h = 0; h < 1 << 16; h++) at[2 * h] = (char)h, at[2 * h + 1] = (char)(h >> 8);
    t->f16->widen(COLUMNS, (uint8_t *)at, to, TN__Q8_PANEL);
    for (uint32_t h = 0; h < 1 << 16; h++) {
        const float f = tn__f16_to_f32((uint16_t)h);
        ck_assert_msg(to[h] == f || (f != f && to[h] != to[h]), "%04x", h);
    }
    for (int one = 0; one < COLUMNS; one += 97) { /* a row that selects a column: up to the infinities */
        const tn__q8_step s = {.rows = 1, .groups = COLUMNS, .x = x, .blocks = (uint8_t *)at, .y = y, .y_row = 0};
        for (int h = 0; h < 1 << 16; h++)
            if ((h & 0x7c00) == 0x7c00) at[2 * h] = at[2 * h + 1] = 0;
        x[one] = 1;
        t->f16->product(&s);
        x[one] = 0;
        for (int j = 0; j < TN__Q8_PANEL; j++) {
            const int h = one * TN__Q8_PANEL + j;
            ck_assert(y[j] == ((h & 0x7c00) == 0x7c00 ? 0 : tn__f16_to_f32((uint16_t)h)));
        }
    }
    munmap(at, bytes + page);
}

/* All f16 scales, by each table: a hostile file can cause wrong numbers, nothing worse. */
TEST_EACH(scales, ISAS)
{
    static uint8_t          block[TN__Q8_BLOCK];
    static float            to[GROUP * TN__Q8_PANEL];
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    memset(block + TN__Q8_SCALES, 129, sizeof block - TN__Q8_SCALES);
    for (uint32_t h = 0; h < 0x10000; h += TN__Q8_PANEL) {
        for (uint32_t j = 0; j < TN__Q8_PANEL; j++)
            block[2 * j] = (uint8_t)(h + j), block[2 * j + 1] = (uint8_t)((h + j) >> 8);
        t->q8->widen(1, block, to, TN__Q8_PANEL);
        for (uint32_t j = 0; j < TN__Q8_PANEL; j++) {
            const float d = tn__f16_to_f32((uint16_t)(h + j));
            ck_assert_msg(to[j] == d || (!isfinite(d) && !isfinite(to[j])), "%04x", h + j);
        }
    }
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

TEST(ops)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *w = weights(70, 64), *q = tn_q8_pack(w), *wide = tn_unpack(q), *bias = tn_normal(TN_SHAPE(70), 0, 1);
    tn_tensor     *x = tn_normal(TN_SHAPE(2, 3, 64), 0, 1), *ids = tn_randint(TN_SHAPE(2, 3), 0, 70);
    same(tn_linear(x, wide, bias), tn_linear(x, q, bias), "linear", 6, 70, 64);
    same(tn_linear(x, wide, NULL), tn_linear(x, q, NULL), "linear", 6, 70, 64);
    same(tn_linear_gelu(x, wide, bias), tn_linear_gelu(x, q, bias), "gelu", 6, 70, 64);
    same(tn_linear_gelu_tanh(x, wide, bias), tn_linear_gelu_tanh(x, q, bias), "gelu_tanh", 6, 70, 64);
    same(tn_linear_relu(x, wide, bias), tn_linear_relu(x, q, bias), "relu", 6, 70, 64);
    same(tn_embedding(wide, ids, -1, false), tn_embedding(q, ids, -1, false), "embedding", 6, 70, 64);
    same(tn_linear_cross_entropy(x, wide, bias, ids), tn_linear_cross_entropy(x, q, bias, ids), "loss", 6, 70, 64);
    tn_tensor *h = tn_f16_pack(w), *h_wide = tn_unpack(h);
    same(tn_linear_gelu(x, h_wide, bias), tn_linear_gelu(x, h, bias), "gelu", 6, 70, 64);
    same(tn_embedding(h_wide, ids, -1, false), tn_embedding(h, ids, -1, false), "embedding", 6, 70, 64);
    same(tn_linear_cross_entropy(x, h_wide, bias, ids), tn_linear_cross_entropy(x, h, bias, ids), "loss", 6, 70, 64);
    tn_tensor *half = tn_embedding(tn_q8_pack(tn_to(w, TN_BF16)), ids, -1, false);
    ck_assert_int_eq(tn_dtype_of(half), TN_BF16);
    tn_tensor *none = tn_linear(tn_zeros(TN_SHAPE(0, 64)), q, NULL);
    ck_assert(tn_shape_equal(tn_shape_of(none), TN_SHAPE(0, 70)));
    ok();
    ck_refused_has(tn_linear(tn_zeros(TN_SHAPE(2, 32)), q, NULL), TN_ESHAPE,
                   "linear_q8: x [2, 32] does not fit weight [70, 64] ([out, in]): its last dim must be 64");
    ck_refused_has(tn_linear(x, q, tn_zeros(TN_SHAPE(3))), TN_ESHAPE,
                   "bias [3] does not fit weight [70, 64] ([out, in]): it must be [70]");
    ck_refused_has(tn_linear(tn_to(x, TN_F64), q, NULL), TN_EDTYPE,
                   "x is f64, but weights in 8 bits or f16 need x in f32 or bf16");
    ck_refused_has(tn_embedding(q, tn_full_of(TN_I64, TN_SHAPE(1), 70), -1, false), TN_EINDEX,
                   "embedding_q8: index 70 at [0] is outside 0 … 69");
    ck_refused_has(tn_matmul(x, q), TN_ESHAPE, "matmul");
    tn_scope_end(s);
}

/* The gradient of f(x Wᵀ + b) with a random cotangent; *bias: of b. */
static tn_tensor *gradient(int f, tn_tensor *x, tn_tensor *w, tn_tensor *b, tn_tensor *cotangent, tn_tensor **bias)
{
    x = tn_requires_grad(tn_clone(x)), b = tn_requires_grad(tn_clone(b));
    tn_tensor *y = f == 0 ? tn_linear(x, w, b) : f == 1 ? tn_linear_gelu(x, w, b) : tn_linear_relu(x, w, b);
    tn_backward(tn_sum(tn_mul(y, cotangent)));
    *bias = tn_grad(b);
    return tn_grad(x);
}

/* Backward through packed weights: the gradients of x and bias equal those with the unpacked weights. */
TEST(gradients)
{
    tn_seed(7);
    tn_tensor *x = tn_normal(TN_SHAPE(3, 5, 64), 0, 1), *w = tn_normal(TN_SHAPE(70, 64), 0, 1),
              *b = tn_normal(TN_SHAPE(70), 0, 1);
    tn_tensor       *by = tn_normal(TN_SHAPE(3, 5, 70), 0, 1), *gb[2];
    tn_tensor *const packed[] = {tn_q8_pack(w), tn_f16_pack(w), tn_int8_pack(w)};
    for (int k = 0; k < 3; k++)
        for (int f = 0; f < 3; f++) {
            tn_tensor *is = gradient(f, x, packed[k], b, by, &gb[0]);
            tn_tensor *want = gradient(f, x, tn_unpack(packed[k]), b, by, &gb[1]);
            ok();
            if (k < 2 || !f) ck_assert_msg(tn_allclose(is, want, 1e-5, 1e-5), "%d %d", k, f);
            else /* int8 also rounds x to 63 steps: y moves by about 1.3 % of its deviation, which changes the sign of
                    0.4 % of relu's inputs, and the gradient by the root of 0.4 in 50: 9 % */
                ck_assert_msg(tn_item(tn_norm(tn_sub(is, want))) < 0.14 * tn_item(tn_norm(want)), "%d %d", k, f);
            if (k < 2 || !f) ck_assert(tn_allclose(gb[0], gb[1], 1e-5, 1e-5));
        }
    tn_tensor *one = tn_requires_grad(tn_normal(TN_SHAPE(64), 0, 1));
    tn_tensor *g = tn_linear(one, packed[0], NULL);
    tn_backward(tn_sum(g));
    ck_assert(tn_allclose(tn_grad(one), tn_sum(tn_unpack(packed[0]), .dims = TN_DIMS(0)), 1e-4, 1e-4));
    ok();
}
