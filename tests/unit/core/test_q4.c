/* test_q4.c — weights of 4 to 6 bits: their values compared with those of gguf's package, products compared bit for bit
 * with plain loops over the blocks of the file: every instruction set, odd sizes, any threads, a row alone and among
 * others, next to inaccessible pages; the loss of rounding the activations; values without a scale; errors. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "core/base/blocks.h"
#include "core/base/f16.h"
#include "core/products/q8.h"
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

#include <sys/mman.h>
#include <unistd.h>

static const char *const isas[] = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};
enum { ISAS = 5, KINDS = TN__Q4_KINDS, MOST = 210 * 210 };

static void ok(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }
static bool same(const tn_tensor *a, const tn_tensor *b)
{
    return tn_dtype_of(a) == tn_dtype_of(b) && tn_numel(a) == tn_numel(b) &&
           !memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a) * tn_dtype_size(tn_dtype_of(a)));
}

/* ---- blocks of a file -------------------------------------------------------------------------------------------- */

static size_t bytes_of(int kind, int64_t out, int64_t in)
{
    const tn__block_form *f = &tn__block_forms[kind];
    return (size_t)(out * in / f->width * f->bytes);
}

/* Random blocks, or with `most` the largest values: all bits are valid, scales are finite. */
static void fill(int kind, uint8_t *at, size_t bytes, bool most)
{
    const tn__block_form *f = &tn__block_forms[kind];
    const tn_scope        s = tn_scope_begin();
    const int64_t        *r = tn_data(tn_randint(TN_SHAPE((int64_t)bytes), 0, 256));
    for (size_t i = 0; i < bytes; i++) at[i] = most ? 255 : (uint8_t)r[i];
    for (size_t b = 0; b < bytes; b += (size_t)f->bytes) {
        uint8_t *d = at + b + (kind == TN__Q6_K ? 208 : 0);
        if (most && kind == TN__Q6_K) memset(at + b + 192, 127, 16);
        for (int i = 0; i < (kind == TN__Q4_K || kind == TN__Q5_K ? 4 : 2); i += 2) {
            const uint16_t h = tn__f32_to_f16((float)(r[b] - 100) * (i ? 2e-3F : 1e-4F));
            d[i] = (uint8_t)h, d[i + 1] = (uint8_t)(h >> 8);
        }
    }
    tn_scope_end(s);
}

TEST(numbers)
{
    const tn_scope s = tn_scope_begin();
    tn_gguf       *g = tn_gguf_open(tn_test_data("golden/packed.gguf"));
    char           name[16];
    ok();
    for (int kind = 0; kind < KINDS; kind++) {
        const char *type = tn__block_forms[kind].name;
        snprintf(name, sizeof name, "%s.f32", type);
        const tn_tensor *want = tn_safetensors_get(tn_gguf_tensors(g), name), *blocks = tn_gguf_get_packed(g, type);
        ok();
        tn_tensor *w = tn_blocks_pack(type, TN_F32, tn_shape_of(want), tn_data(blocks), (size_t)tn_numel(blocks));
        ok();
        ck_assert_msg(same(tn_unpack(w), want), "%s", type);
        ck_assert(tn_is_packed(w) && tn_shape_equal(tn_weight_shape(w), tn_shape_of(want)));
    }
    tn_gguf_close(g);
    tn_scope_end(s);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A block of activations as integers; returns the scale. */
static float rounded(const float *x, int n, int *q)
{
    float max = 0;
    bool  finite = true;
    for (int i = 0; i < n; i++) finite = finite && isfinite(x[i]), max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    const float r = finite && max >= 0x1p-100f ? 127 / max : 0;
    for (int i = 0; i < n; i++) q[i] = finite ? (int)rintf(x[i] * r) : 0;
    return finite ? r > 0 ? max / 127 : 0 : NAN;
}

/* One element of x Wᵀ: a row of activations times a row of blocks. */
static float element(int kind, const float *x, const uint8_t *row, int64_t in)
{
    const tn__block_form *f = &tn__block_forms[kind];
    static tn__block      b;
    static int            q[TN__BLOCK_MOST];
    volatile float        sum = 0, part, less, scale; /* never a multiply-add */
    for (int64_t g = 0; g < in / f->width; g++) {
        int64_t     total = 0, least = 0;
        const float d = rounded(x + g * f->width, f->width, q);
        tn__block_read((tn__packing)kind, row + g * f->bytes, &b);
        for (int i = 0; i < f->width; i++)
            total += b.s[i / f->sub] * (b.q[i] - f->less) * q[i], least += b.m[i / f->sub] * q[i];
        scale = tn__f16_to_f32(b.d) * d, part = (float)total * scale;
        scale = tn__f16_to_f32(b.e) * d, less = (float)least * scale;
        if (kind == TN__Q4_K || kind == TN__Q5_K) part = part - less;
        sum = sum + part;
    }
    return sum;
}

static tn_tensor *product(int kind, tn_tensor *x, const uint8_t *blocks, int64_t out, tn_tensor *bias)
{
    const int64_t m = tn_size(x, 0), in = tn_size(x, 1);
    tn_tensor    *y = tn_empty(TN_SHAPE(m, out));
    for (int64_t i = 0; i < m * out; i++) {
        const float *row = (const float *)tn_data(x) + i / out * in;
        float        v = element(kind, row, blocks + bytes_of(kind, i % out, in), in);
        if (bias) v += (float)tn_get(bias, i % out);
        ((float *)tn_data_mut(y))[i] = v;
    }
    return y;
}

TEST_EACH(products, ISAS *KINDS)
{
    static const int64_t    ms[] = {1, 2, 3, 4, 5, 8, 9, 50}, ns[] = {1, 15, 16, 17, 65, 130};
    static uint8_t          blocks[MOST * 8];
    const tn__kernel_table *t = tn__kernels_of(isas[_i / KINDS]);
    const int               kind = _i % KINDS, width = tn__block_forms[kind].width;
    if (!t) return;
    for (int i = 0; i < 8 * 6 * 3; i += tn_test_slow() ? 7 : 1) {
        const int64_t  m = ms[i % 8], n = ns[i / 8 % 6], k = width * (1 + i / 48 * 2);
        const size_t   bytes = bytes_of(kind, n, k);
        const tn_scope s = tn_scope_begin();
        tn_tensor     *x = tn_normal(TN_SHAPE(m, k), 0, 1), *bias = i % 3 ? tn_normal(TN_SHAPE(n), 0, 1) : NULL;
        ck_assert(bytes <= sizeof blocks);
        fill(kind, blocks, bytes, i % 5 == 1);
        if (i % 5 == 0) tn_fill(tn_narrow(x, 0, m / 2, 1), 0);
        if (i % 5 == 1) tn_fill(x, i % 2 ? 1 : -1); /* the largest sums */
        tn_tensor *w = tn_blocks_pack(tn__block_forms[kind].name, TN_F32, TN_SHAPE(n, k), blocks, bytes);
        tn_tensor *want = product(kind, x, blocks, n, bias), *y = tn_empty(TN_SHAPE(m, n));
        tn__q8     of;
        ck_assert(tn__q8_of(w, &of));
        tn__self.shrink = 1024;
        for (int threads = 1; threads <= 3; threads++) {
            tn_set_threads(threads);
            tn_fill(y, 7);
            ck_assert(tn__q8_linear(x, &of, bias, TN__ACT_NONE, y, t));
            ck_assert_msg(same(want, y), "%s, %s, %d threads: [%d, %d] by [%d, %d]", isas[_i / KINDS],
                          tn__block_forms[kind].name, threads, (int)m, (int)k, (int)n, (int)k);
        }
        tn__self.shrink = 0;
        tn_set_threads(0);
        tn_tensor *one = tn_empty(TN_SHAPE(1, n)), *last = tn_narrow(x, 0, m - 1, 1);
        ck_assert(tn__q8_linear(last, &of, bias, TN__ACT_NONE, one, t) && same(one, tn_narrow(y, 0, m - 1, 1)));
        ok();
        tn_scope_end(s);
    }
}

/* Rounding the activations changes a product by less than 1 % of its size. */
TEST(loss)
{
    static uint8_t blocks[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        const tn_scope s = tn_no_grad_begin();
        const size_t   bytes = bytes_of(kind, 40, 512);
        fill(kind, blocks, bytes, false);
        tn_tensor   *w = tn_blocks_pack(tn__block_forms[kind].name, TN_F32, TN_SHAPE(40, 512), blocks, bytes);
        tn_tensor   *x = tn_normal(TN_SHAPE(30, 512), 0, 1), *want = tn_linear(x, tn_unpack(w), NULL);
        tn_tensor   *off = tn_sub(tn_linear(x, w, NULL), want);
        const double error = sqrt(tn_item(tn_sum(tn_mul(off, off))) / tn_item(tn_sum(tn_mul(want, want))));
        ck_assert_msg(error > 0 && error < 0.01, "%s: %g", tn__block_forms[kind].name, error);
        int64_t    rows[] = {39, 0, 17};
        tn_tensor *index = tn_from_data(TN_I64, TN_SHAPE(3), rows);
        ck_assert(same(tn_embedding(w, index, -1, false), tn_embedding(tn_unpack(w), index, -1, false)));
        ok();
        tn_scope_end(s);
    }
}

/* The gradient of x is that of the weight unpacked. */
TEST(gradient)
{
    static uint8_t blocks[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        const tn_scope s = tn_scope_begin();
        const size_t   bytes = bytes_of(kind, 40, 256);
        fill(kind, blocks, bytes, false);
        tn_tensor *w = tn_blocks_pack(tn__block_forms[kind].name, TN_F32, TN_SHAPE(40, 256), blocks, bytes);
        tn_tensor *x = tn_normal(TN_SHAPE(5, 256), 0, 1), *g = tn_normal(TN_SHAPE(5, 40), 0, 1), *gx[2];
        for (int i = 0; i < 2; i++) {
            tn_tensor *leaf = tn_requires_grad(tn_clone(x));
            ck_assert_int_eq(tn_backward(tn_sum(tn_mul(tn_linear(leaf, i ? tn_unpack(w) : w, NULL), g))), TN_OK);
            gx[i] = tn_grad(leaf);
        }
        ck_assert_msg(gx[0] && gx[1] && same(gx[0], gx[1]), "%s", tn__block_forms[kind].name);
        ok();
        tn_scope_end(s);
    }
}

TEST(without_scale)
{
    static uint8_t blocks[MOST];
    for (int kind = 0; kind < KINDS; kind++) {
        const tn_scope s = tn_no_grad_begin();
        fill(kind, blocks, bytes_of(kind, 20, 256), false);
        tn_tensor *w =
            tn_blocks_pack(tn__block_forms[kind].name, TN_F32, TN_SHAPE(20, 256), blocks, bytes_of(kind, 20, 256));
        tn_tensor *x = tn_normal(TN_SHAPE(9, 256), 0, 1), *want = tn_linear(x, w, NULL);
        for (int i = 0; i < 3; i++) {
            tn_tensor *bad = tn_clone(x);
            tn_set(bad, 4 * 256 + 100, i == 0 ? NAN : i == 1 ? INFINITY : -INFINITY);
            tn_tensor *y = tn_linear(bad, w, NULL);
            for (int64_t j = 0; j < 9 * 20; j++)
                ck_assert(j / 20 == 4 ? isnan(tn_get(y, j)) : tn_get(y, j) == tn_get(want, j));
        }
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
    float                   x[512];
    if (!t) return;
    for (int r = 0; r < 3; r++) {
        at[r] = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(at[r] != MAP_FAILED && !mprotect(at[r] + page, room, PROT_READ | PROT_WRITE));
    }
    for (int i = 0; i < 512; i++) x[i] = (float)(i % 17 - 8);
    for (int i = 0; i < KINDS * 4 * 2 * 2; i++) {
        const int               kind = i % KINDS, width = tn__block_forms[kind].width;
        const tn__int8_kernels *kn = &t->q4[kind];
        const int64_t           rows = 1 + i / KINDS % 4, groups = 1 + i / (KINDS * 4) % 2;
        const tn__packing       packing = (tn__packing)kind;
        if (rows > kn->rows) continue;
        const size_t bytes[] = {(size_t)(rows * groups * kn->bytes), (size_t)(groups * TN__Q4_BLOCK(packing)),
                                (size_t)rows * 64};
        char        *p[3];
        for (int r = 0; r < 3; r++)
            p[r] = at[r] + page + (i / (KINDS * 8) ? room - bytes[r] : 0), memset(p[r], 1, bytes[r]);
        tn__int8_step s = {.rows = rows, .groups = groups, .x_row = groups * kn->bytes, .y_row = 16};
        s.x = (uint8_t *)p[0], s.panel = (uint8_t *)p[1], s.y = (float *)(void *)p[2];
        for (int64_t r = 0; r < rows; r++) kn->quantize(groups * width, x, (uint8_t *)p[0] + r * s.x_row);
        kn->product(&s);
        for (int64_t j = 0; j < rows * 16; j++) ck_assert(s.y[j] == s.y[0]);
    }
    for (int r = 0; r < 3; r++) ck_assert(!munmap(at[r], room + 2 * page));
}

/* tn_q4_pack: the blocks of ggml's quantize_row_q4_0_ref, of views and dtypes, in any number of threads. */
TEST(from_floats)
{
    static uint8_t blocks[MOST];
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < 12; i++) {
        const int64_t n = 1 + 13 * (i % 4), k = 32 * (1 + 3 * (i / 4));
        tn_tensor    *w = tn_normal(TN_SHAPE(n, k), 0, i % 2 ? 1e-3 : 3);
        if (i % 3 == 1) w = tn_transpose(tn_clone(tn_transpose(w, 0, 1)), 0, 1);
        if (i % 3 == 2) w = tn_to(w, TN_BF16);
        if (i == 5) tn_fill(tn_narrow(w, 0, 0, 1), 0);
        for (int64_t b = 0; b < n * k / 32; b++) {
            float x[32], max = 0;
            for (int j = 0; j < 32; j++) {
                x[j] = (float)tn_get(w, 32 * b + j);
                if (fabsf(x[j]) > fabsf(max)) max = x[j];
            }
            const float    d = max / -8, id = d != 0 ? 1 / d : 0;
            const uint16_t h = tn__f32_to_f16(d);
            uint8_t       *to = blocks + 18 * b;
            to[0] = (uint8_t)h, to[1] = (uint8_t)(h >> 8);
            for (int j = 0; j < 16; j++) {
                const int a = (int8_t)(x[j] * id + 8.5f), c = (int8_t)(x[j + 16] * id + 8.5f);
                to[2 + j] = (uint8_t)((a < 15 ? a : 15) | (c < 15 ? c : 15) << 4);
            }
        }
        tn_set_threads(1 + i % 3);
        tn_tensor *want = tn_blocks_pack("Q4_0", tn_dtype_of(w), TN_SHAPE(n, k), blocks, (size_t)(n * k / 32 * 18));
        ck_assert_msg(same(tn_q4_pack(w), want), "case %d", i);
        ok();
    }
    tn_set_threads(0);
    tn_tensor *bad = tn_ones(TN_SHAPE(2, 32));
    tn_set(bad, 40, 6e5);
    ck_refused(tn_q4_pack(bad), TN_EINVAL,
               "tn_q4_pack: the weights [2, 32] hold NaN, an infinity, or more than 5.2e5, which has no scale "
               "in f16");
    tn_set(bad, 40, -NAN);
    ck_refused_has(tn_q4_pack(bad), TN_EINVAL, "hold NaN");
    tn_scope_end(s);
}

TEST(refused)
{
    const tn_scope s = tn_scope_begin();
    uint8_t        all[288] = {0};
    ck_refused_has(tn_blocks_pack("Q4_1", TN_F32, TN_SHAPE(1, 32), all, 20), TN_EINVAL,
                   "the type is Q4_1, but must be Q4_0, Q4_K, Q5_K, Q6_K, Q8_0 or F16");
    ck_refused_has(tn_blocks_pack("Q4_K", TN_F32, TN_SHAPE(2, 128), all, 144), TN_ESHAPE,
                   "the width of the weights [2, 128] must be a multiple of 256, which share a scale");
    ck_refused_has(tn_blocks_pack("Q4_K", TN_F32, TN_SHAPE(1, 256), all, 143), TN_EINVAL,
                   "bytes is 143, but weights [1, 256] need 144");
    ck_refused_has(tn_blocks_pack("Q4_0", TN_F32, TN_SHAPE(1, 32), NULL, 18), TN_EINVAL, "blocks is NULL");
    all[1] = 0x7c; /* an infinity in f16 */
    ck_refused_has(tn_blocks_pack("F16", TN_F32, TN_SHAPE(1, 2), all, 4), TN_EINVAL, "of F16 hold NaN or an infinity");
    tn_tensor *w = tn_blocks_pack("Q4_K", TN_F32, TN_SHAPE(2, 256), all, 288);
    ok();
    ck_fails_has(tn_q8_to_blocks(w, all, 288), TN_EINVAL, "the weight is in Q4_K");
    for (int byte = 0; byte < 25; byte++) /* a header that does not match the tensor */
        for (int bit = 0; bit < 8; bit++) {
            tn_tensor *t = tn_clone(w);
            tn_set(t, byte, (double)((int)tn_get(t, byte) ^ 1 << bit));
            if (tn_is_packed(t)) ck_assert_msg(byte == 8 || byte == 24, "byte %d, bit %d", byte, bit);
        }
    tn_scope_end(s);
}
