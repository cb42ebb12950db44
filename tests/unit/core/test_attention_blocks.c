/* test_attention_blocks.c — attention in blocks: every size from 0 to 130 on every instruction set, compared with plain
 * loops, with each operand adjacent to an inaccessible page; the borders of blocks; the same bits however the work is
 * cut; three in one tensor; memory. test_attention.c tests the rules of masking. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "autograd/autograd.h"
#include "core/products/attention.h"
#include "core/products/gemm.h"
#include "core/tensor/convert.h"
#include "core/kernels/kernels.h"
#include "tests/common/check_main.h"

#include <sys/mman.h>
#include <unistd.h>

static tn_tensor *noise(tn_shape s) { return tn_uniform_of(TN_F64, s, -1, 1); }

/* ---- guard pages ------------------------------------------------------------------------------------------------- */

enum { MOST = 130, FEW = 20, Q = 0, K, V, Y, STAT, GY, GQ, GK, GV, OPERANDS };

static struct operand {
    char       *begin;
    size_t      bytes;
    tn__storage storage;
    tn_tensor   t;
    double      value[MOST * (FEW + 2)];
} operand[OPERANDS];

static void map_regions(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int r = 0; r < OPERANDS; r++) {
        const size_t bytes = (MOST * (FEW + 2) * sizeof(double) + page - 1) / page * page;
        char        *all = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(all != MAP_FAILED);
        ck_assert_int_eq(mprotect(all + page, bytes, PROT_READ | PROT_WRITE), 0);
        operand[r].begin = all + page, operand[r].bytes = bytes;
    }
}
static void unmap_regions(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int r = 0; r < OPERANDS; r++) munmap(operand[r].begin - page, operand[r].bytes + 2 * page);
}
AROUND_TESTS(map_regions, unmap_regions);

/* [rows, cols] of noise, by rows or by columns, at one end of its region. */
static tn_tensor *placed(int r, bool at_end, bool columns, tn_dtype dt, int64_t rows, int64_t cols)
{
    struct operand *o = &operand[r];
    const size_t    size = tn__dtype_bytes(dt), bytes = (size_t)(rows * cols) * size;
    ck_assert_uint_le((size_t)(rows * cols), sizeof o->value / sizeof *o->value);
    o->storage.data = o->begin + (at_end ? o->bytes - bytes : 0);
    o->t = (tn_tensor){.dtype = dt, .storage = &o->storage, .l = {.shape = TN_SHAPE(rows, cols)}};
    o->t.l.stride[0] = columns ? 1 : cols, o->t.l.stride[1] = columns ? rows : 1;
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t at = columns ? i % cols * rows + i / cols : i;
        char         *p = (char *)o->storage.data + (size_t)at * size;
        tn__store(p, dt, 2 * tn_random_double(NULL) - 1);
        o->value[i] = tn__load(p, dt);
    }
    return &o->t;
}

/* Compares operand r with its expected values. */
static void expect(int r, const double *want, double tolerance, const char *what)
{
    const tn_tensor *t = &operand[r].t;
    const int64_t    cols = t->l.shape.d[1], n = t->l.shape.d[0] * cols;
    double           largest = 1;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i / cols * t->l.stride[0] + i % cols * t->l.stride[1];
        const double  got = tn__load((char *)tn__ptr(t) + at * (int64_t)tn__dtype_bytes(t->dtype), t->dtype);
        if (!(fabs(got - want[i]) <= tolerance * largest))
            ck_abort_msg("%s [%lld]: %.9g, should be %.9g", what, (long long)i, got, want[i]);
    }
}

static void check_sizes(const tn__kernel_table *table, int x, int64_t t, int64_t s, int64_t d, int64_t e)
{
    static double      y[MOST * FEW], gq[MOST * FEW], gk[MOST * FEW], gv[MOST * FEW], weight[MOST];
    const tn_dtype     dt = (tn_dtype[]){TN_F32, TN_F64, TN_BF16}[x % 3];
    const bool         end = x / 3 % 2, columns = x / 6 % 2;
    tn__attention_call c = {.causal = x / 12 % 2, .past = 2, .scale = 0.4, .drop.all = true, .kernels = table};
    c.q = placed(Q, end, columns, dt, t, d), c.k = placed(K, end, columns, dt, s, d);
    c.v = placed(V, end, columns, dt, s, e), c.y = placed(Y, end, columns, dt, t, e);
    c.stat = placed(STAT, end, false, dt == TN_F64 ? TN_F64 : TN_F32, t, 2);
    c.gy = placed(GY, end, columns, dt, t, e), c.gq = placed(GQ, end, columns, dt, t, d);
    c.gk = placed(GK, end, columns, dt, s, d), c.gv = placed(GV, end, columns, dt, s, e);
    tn__attend(&c);
    tn__attend_back(&c);
    fine();
    memset(y, 0, sizeof y), memset(gq, 0, sizeof gq), memset(gk, 0, sizeof gk), memset(gv, 0, sizeof gv);
    memset(weight, 0, sizeof weight);
    for (int64_t i = 0; i < t; i++) {
        const int64_t seen = c.causal && i + 3 < s ? i + 3 : s;
        double        w[MOST], gw[MOST], sum = 0, mean = 0;
        for (int64_t j = 0; j < seen; j++) {
            double dot = 0;
            for (int64_t k = 0; k < d; k++) dot += operand[Q].value[i * d + k] * operand[K].value[j * d + k];
            sum += w[j] = exp(0.4 * dot);
        }
        for (int64_t j = 0; j < seen; j++) {
            gw[j] = 0, w[j] /= sum, weight[j] += w[j];
            for (int64_t k = 0; k < e; k++) {
                y[i * e + k] += w[j] * operand[V].value[j * e + k];
                gw[j] += operand[GY].value[i * e + k] * operand[V].value[j * e + k];
                gv[j * e + k] += w[j] * operand[GY].value[i * e + k];
            }
            mean += w[j] * gw[j];
        }
        for (int64_t j = 0; j < seen; j++)
            for (int64_t k = 0; k < d; k++) {
                const double gs = 0.4 * w[j] * (gw[j] - mean);
                gq[i * d + k] += gs * operand[K].value[j * d + k], gk[j * d + k] += gs * operand[Q].value[i * d + k];
            }
    }
    /* Each value is a sum of at most 130 terms of products of such sums; bf16: Σ g·w is computed from a rounded y, and
     * if products take pairs their weights are rounded, too: below 1 they weigh 1 for y, more for gv. */
    const double unit = dt == TN_F64 ? 0x1p-53 : 0x1p-24, near = 500 * unit, far = dt == TN_BF16 ? 0x1p-6 : 4 * near;
    const bool   rounded = table->gemm_bf16->pair == 2;
    double       heaviest = 0;
    for (int64_t j = 0; j < s; j++) heaviest = fmax(heaviest, weight[j]);
    expect(Y, y, dt == TN_BF16 ? 0x1p-8 * (1 + rounded) : near, "y");
    expect(GV, gv, dt == TN_BF16 ? 0x1p-8 * (1 + rounded * heaviest) : near, "gv");
    expect(GQ, gq, far, "gq"), expect(GK, gk, far, "gk");
}

TEST_EACH(tails, 5)
{
    static const char *const isas[] = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};
    const tn__kernel_table  *table = tn__kernels_of(isas[_i]);
    if (!table) return;
    for (int64_t n = 0; n <= MOST; n += tn_test_slow() && n > FEW && n < 120 ? 13 : 1)
        for (int x = (int)(n % 2); x < 24; x += tn_test_slow() ? 6 : 2) {
            const int64_t a = 1 + (n + x) % FEW, b = 1 + (3 * n + x) % 7;
            check_sizes(table, x, n, 1 + n % 7, a, b);
            check_sizes(table, x, 1 + n % 5, n, b, a);
            if (n <= FEW) check_sizes(table, x, b, a, n, 3), check_sizes(table, x, a, b, 2, n);
            if (n % 16 == 0 || n >= 127) check_sizes(table, x, n, n, 5, 4);
        }
}

/* ---- the borders of blocks --------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *y, *g[4];
} outcome;

static outcome run(tn_attention_args a, bool ops)
{
    tn_tensor *wrt[4], *seed;
    outcome    o = {NULL, {NULL, NULL, NULL, NULL}};
    const int  n = a.attn_mask && tn_dtype_of(a.attn_mask) != TN_BOOL ? 4 : 3;
    wrt[0] = a.q = tn_requires_grad(tn_detach(a.q)), wrt[1] = a.k = tn_requires_grad(tn_detach(a.k));
    wrt[2] = a.v = tn_requires_grad(tn_detach(a.v));
    if (n == 4) wrt[3] = a.attn_mask = tn_requires_grad(tn_detach(a.attn_mask));
    tn_generator g = {.seed = 5}, *old = tn_use_generator(&g);
    o.y = tn_attention_run(a);
    seed = tn_to(noise(tn_shape_of(o.y)), tn_dtype_of(o.y));
    tn_grad_of(o.y, n, wrt, o.g, .seed = seed, .create_graph = ops);
    tn_use_generator(old);
    fine();
    return o;
}

/* The gradients of the kernels equal those of the ops, and the result equals that of the weights. */
TEST_EACH(as_ops_make_it, 12)
{
    static const int64_t sizes[][3] = {{64, 128, 16}, {65, 129, 17}, {130, 127, 3}, {3, 300, 33}, {200, 260, 8}};
    for (int n = tn_test_slow() ? 3 : 0; n < 5; n++) {
        const int64_t     t = sizes[n][0], s = sizes[n][1], d = sizes[n][2];
        tn_tensor        *w;
        tn_attention_args a = {TN_ATTENTION_ARGS_DEFAULTS, .q = noise(TN_SHAPE(2, 1, t, d)),
                               .k = noise(TN_SHAPE(2, 2, s, d)), .weights = &w};
        a.v = noise(TN_SHAPE(2, 2, s, d + 1)), a.causal = _i & 1, a.past = _i & 1 ? 70 : 0;
        a.window = (int64_t[]){0, 40, 128, 150, 2}[(n + _i / 2) % 5], a.cap = (n + _i) % 3 ? 0 : 0.4;
        if (_i & 2) a.key_padding_mask = tn_bernoulli_of(TN_BOOL, TN_SHAPE(2, s), 0.3);
        if (_i & 4)
            a.attn_mask =
                tn_masked_fill(noise(TN_SHAPE(2, t, s)), tn_bernoulli_of(TN_BOOL, TN_SHAPE(t, s), 0.2), -INFINITY);
        if (_i & 8) a.attn_mask = tn_bernoulli_of(TN_BOOL, TN_SHAPE(t, s), 0.6);
        outcome made = run(a, true);
        ck_assert(tn_allclose(made.y, tn_matmul(w, a.v), 1e-12, 1e-13));
        a.dropout = _i % 3 * 0.2, a.weights = NULL;
        outcome fast = run(a, false);
        made = run(a, true);
        for (int i = 0; i < 4 && fast.g[i]; i++) {
            const double most = tn_item(tn_amax(tn_abs(tn_flatten(fast.g[i], 0, -1)), .dims = TN_DIMS(0)));
            ck_assert_msg(tn_allclose(fast.g[i], made.g[i], 1e-10, 1e-10 * most), "gradient %d of sizes %d", i, n);
        }
    }
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

static void same(outcome a, outcome b)
{
    ck_assert(tn_same_bits(a.y, b.y));
    for (int i = 0; i < 4; i++) ck_assert_msg(!a.g[i] || tn_same_bits(a.g[i], b.g[i]), "gradient %d", i);
}

/* A matrix alone (cut into queries and keys, for more threads) and among others (one task each), with any threads. */
TEST_EACH(cuts, 3)
{
    const tn_dtype dt = (tn_dtype[]){TN_F32, TN_F64, TN_BF16}[_i];
    enum { N = 9, LONG = 330, WIDE = 24 };
    tn_tensor *q = tn_to(noise(TN_SHAPE(N, LONG, WIDE)), dt), *k = tn_to(noise(TN_SHAPE(N, LONG, WIDE)), dt);
    tn_tensor *v = tn_to(noise(TN_SHAPE(N, LONG, WIDE)), dt), *part[3];
    for (int n = 0; n < (tn_test_slow() ? 1 : 3); n++) {
        const int         kind = (_i + n) % 3;
        const bool        causal = kind > 0;
        const int64_t     window = kind > 1 ? 100 : 0;
        tn_attention_args a = {TN_ATTENTION_ARGS_DEFAULTS, .q = q,           .k = k,        .v = v,
                               .causal = causal,           .window = window, .dropout = 0.2};
        tn_set_threads(1);
        const outcome all = run(a, false);
        a.q = tn_narrow(q, 0, 0, 1), a.k = tn_narrow(k, 0, 0, 1), a.v = tn_narrow(v, 0, 0, 1), a.dropout = 0;
        const outcome first = run(a, false);
        for (int threads = 2; threads <= 7; threads += threads == 2 ? 1 : 4) {
            tn_set_threads(threads);
            same(first, run(a, false));
            same(all, run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .causal = causal,
                                              .window = window, .dropout = 0.2},
                          false));
        }
        tn_set_threads(0);
        /* a batch row's gradients do not depend on its neighbours */
        for (int i = 0; i < 3; i++) part[i] = tn_requires_grad(tn_clone((tn_tensor *[]){q, k, v}[i]));
        tn_tensor *y = tn_attention(part[0], part[1], part[2], .causal = causal, .window = window), *g[3], *one[3],
                  *seed;
        seed = tn_to(noise(tn_shape_of(y)), dt);
        tn_grad_of(y, 3, part, g, .seed = seed);
        for (int i = 0; i < 3; i++) one[i] = tn_requires_grad(tn_clone(tn_narrow(tn_detach(part[i]), 0, 4, 1)));
        y = tn_attention(one[0], one[1], one[2], .causal = causal, .window = window);
        tn_tensor *alone[3];
        tn_grad_of(y, 3, one, alone, .seed = tn_narrow(seed, 0, 4, 1));
        fine();
        for (int i = 0; i < 3; i++) ck_assert(tn_same_bits(alone[i], tn_narrow(g[i], 0, 4, 1)));
    }
}

/* With a window, too, a query has the same bits alone and among others, whatever precedes and follows the keys that it
 * sees, even NaN. */
TEST_EACH(windows, 3)
{
    static const int64_t sizes[] = {1, 7, 64, 128, 129, 300};
    enum { LONG = 420, WIDE = 8 };
    const tn_dtype dt = (tn_dtype[]){TN_F32, TN_F64, TN_BF16}[_i];
    tn_tensor     *q = tn_to(noise(TN_SHAPE(2, LONG, WIDE)), dt), *k = tn_to(noise(TN_SHAPE(2, LONG, WIDE)), dt);
    tn_tensor     *v = tn_to(noise(TN_SHAPE(2, LONG, WIDE)), dt), *nothing = tn_full_of(dt, TN_SHAPE(2, 1, WIDE), NAN);
    for (int n = 0; n < 6; n++) {
        const int64_t w = sizes[n];
        tn_tensor    *y = tn_attention(q, k, v, .causal = true, .window = w);
        for (int64_t t = 3; t < LONG; t += 83) {
            const int64_t from = t - w + 1;
            tn_tensor    *some = v;
            if (from > 0) some = tn_cat(1, tn_narrow(v, 1, 0, from - 1), nothing, tn_narrow(v, 1, from, LONG - from));
            tn_tensor *one = tn_attention(tn_narrow(q, 1, t, 1), tn_narrow(k, 1, 0, t + 1),
                                          tn_narrow(some, 1, 0, t + 1), .causal = true, .past = t, .window = w);
            ck_assert_msg(tn_same_bits(one, tn_narrow(y, 1, t, 1)), "window %d, query %d", (int)w, (int)t);
        }
    }
    ck_assert(tn_same_bits(tn_attention(q, k, v, .causal = true),
                           tn_attention(q, k, v, .causal = true, .window = INT64_MAX)));
    tn_tensor *y = tn_attention(q, k, v, .causal = true, .past = INT64_MAX, .window = 5);
    ck_assert(tn_item(tn_sum(tn_abs(y))) == 0); /* the window is after all keys */
    fine();
    ck_refused(tn_attention(q, k, v, .past = 2), TN_EINVAL,
               "attention: past is 2, but must be 0, or at least 1 together with causal");
}

/* Padding after the last key, of any length, changes no bit of any gradient, and its own is 0. */
TEST(padding)
{
    enum { REAL = 140, MORE = 200, T = 70, WIDE = 16 };
    tn_tensor *q = noise(TN_SHAPE(1, 2, T, WIDE)), *k = noise(TN_SHAPE(1, 2, REAL, WIDE)),
              *v = noise(TN_SHAPE(1, 2, REAL, WIDE));
    tn_tensor *padded = tn_full_of(TN_F64, TN_SHAPE(1, 2, MORE, WIDE), NAN), *keys = tn_zeros(TN_SHAPE(1, REAL + MORE));
    tn_fill(tn_narrow(keys, 1, REAL, MORE), 1);
    const outcome a = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v}, false);
    const outcome b = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = tn_cat(2, k, padded),
                                              .v = tn_cat(2, v, padded), .key_padding_mask = tn_to(keys, TN_BOOL)},
                          false);
    ck_assert(tn_same_bits(a.y, b.y) && tn_same_bits(a.g[0], b.g[0]));
    for (int i = 1; i < 3; i++) {
        ck_assert(tn_same_bits(a.g[i], tn_narrow(b.g[i], 2, 0, REAL)));
        ck_assert_double_eq(tn_item(tn_sum(tn_abs(tn_narrow(b.g[i], 2, REAL, MORE)))), 0);
    }
}

/* ---- three in one ------------------------------------------------------------------------------------------------ */

TEST_EACH(three_in_one, 3)
{
    const tn_dtype dt = (tn_dtype[]){TN_F32, TN_F64, TN_BF16}[_i];
    const int64_t  b = 2, t = 70, h = 3, d = 20;
    tn_tensor     *x = tn_requires_grad(tn_to(noise(TN_SHAPE(b, t, 3, h, d)), dt)), *g[2], *part[3];
    tn_tensor     *keys = tn_bernoulli_of(TN_BOOL, TN_SHAPE(b, t), 0.2);
    for (int i = 0; i < 3; i++) part[i] = tn_permute(tn_select(x, 2, i), TN_DIMS(0, 2, 1, 3));
    tn_tensor *y = tn_attention(x, NULL, NULL, .causal = true, .key_padding_mask = keys, .order = TN_DIMS(0, 2, 1, 3));
    tn_tensor *z = tn_attention(part[0], part[1], part[2], .causal = true, .key_padding_mask = keys);
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(b, t, h, d)) && tn_is_contiguous(y));
    ck_assert(tn_same_bits(y, tn_permute(z, TN_DIMS(0, 2, 1, 3))));
    tn_tensor *seed = tn_to(noise(tn_shape_of(y)), dt);
    tn_grad_of(y, 1, &x, &g[0], .seed = seed);
    tn_grad_of(z, 1, &x, &g[1], .seed = tn_clone(tn_permute(seed, TN_DIMS(0, 2, 1, 3))));
    fine();
    ck_assert(tn_is_contiguous(g[0]) && tn_same_bits(g[0], g[1]));
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Forward and backward of 8 heads of 512 queries and keys: bytes beyond inputs, result and gradients. */
static double extra(bool weights)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *q = tn_normal(TN_SHAPE(8, 512, 64), 0, 1), *g[3], *w, *in[3];
    for (int i = 0; i < 3; i++) in[i] = tn_requires_grad(tn_clone(q));
    tn_trim();
    const size_t before = tn_memory_now().live;
    tn_reset_peak();
    tn_tensor *y = tn_attention(in[0], in[1], in[2]);
    if (weights) { /* as without the op */
        w = tn_mul_scalar(tn_matmul(in[0], tn_transpose(in[1], -1, -2)), 0.125);
        y = tn_matmul(tn_softmax(w, -1), in[2]);
    }
    tn_grad_of(y, 3, in, g, .seed = q);
    fine();
    const double bytes = (double)(tn_memory_now().peak - before) - 4.0 * 4 * (double)tn_numel(q);
    tn_scope_end(s);
    return bytes;
}

TEST(memory)
{
    tn_set_threads(2);
    const double streamed = extra(false), matrices = extra(true);
    ck_assert_msg(streamed < matrices / 10, "%g bytes, and with matrices %g", streamed, matrices);
}
