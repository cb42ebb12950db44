/* test_gemm_fused.c — a product's epilogue on sums in the cache: bias, pre-activation, activation and residual have the
 * bits of the same steps one after the other, for every instruction set, layout, path and number of threads. */
#include "tests/common/gemm_reference.h"
#include "core/core.h"
#include "core/base/bf16.h"

#include "core/kernels/vecmath.h"

static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16};

enum { BIAS_ROW = 1, BIAS_COLUMN = 2, BIAS_ALL = 3, PRE = 4, OLD = 8, BETA = 16, ALPHA = 32, SIDES = 64 };

static double activated(tn__act act, tn_dtype dt, double v)
{
    if (act == TN__ACT_NONE) return v;
    if (act == TN__ACT_RELU) return v <= 0 ? 0 : v;
    if (dt == TN_F64) {
        if (act == TN__ACT_GELU) tn__gelu_f64(1, &v, &v);
        else tn__gelu_tanh_f64(1, &v, &v);
        return v;
    }
    float f = (float)v;
    if (act == TN__ACT_GELU) tn__gelu_f32(1, &f, &f);
    else tn__gelu_tanh_f32(1, &f, &f);
    return (double)f;
}

static double rounded(tn_dtype dt, double v)
{
    return dt == TN_BF16 ? (double)tn__bf16_to_f32(tn__f32_to_bf16((float)v)) : v;
}

static tn__gemm_side side_of(const matrix *m) { return (tn__gemm_side){.at = m->data, .row = m->row, .col = m->col}; }

typedef struct {
    const tn__kernel_table *t;
    tn_dtype                dt;
    int                     sides;
    tn__act                 act;
    matrix                  a, b, bias, old, pre, c;
} fused_case;

static fused_case case_new(const tn__kernel_table *t, tn_dtype dt, int sides, tn__act act, int64_t m, int64_t n,
                           int64_t k, const int layout[6])
{
    static const int bias_layout[] = {ROWS, SAME_ROWS, SAME_COLUMNS, ROWS};
    fused_case       f = {.t = t, .dt = dt, .sides = sides, .act = act};
    f.a = matrix_new(dt, m, k, layout[0]), f.b = matrix_new(dt, k, n, layout[1]);
    f.bias = matrix_new(dt, m, n, (sides & 3) == BIAS_ALL ? layout[2] : bias_layout[sides & 3]);
    f.old = matrix_new(dt, m, n, layout[3]), f.pre = matrix_new(dt, m, n, layout[4]);
    f.c = matrix_new(dt, m, n, layout[5]);
    return f;
}
static void case_free(fused_case *f)
{
    free(f->a.data), free(f->b.data), free(f->bias.data), free(f->old.data), free(f->pre.data), free(f->c.data);
}

static tn__gemm_call fused_call(const fused_case *f)
{
    tn__gemm_call g = call_of(f->t, f->sides & ALPHA ? 0.7 : 1, &f->a, &f->b, f->sides & BETA ? 1.3 : 0, &f->c);
    if (f->sides & 3) g.bias = side_of(&f->bias);
    if (f->sides & PRE) g.pre = side_of(&f->pre);
    if (f->sides & OLD) g.old = side_of(&f->old);
    g.act = f->act;
    return g;
}

/* Element (i, j) of c, computed from its old value; *pre: the expected value of pre. */
static double wanted(const fused_case *f, const matrix *was, int64_t i, int64_t j, double *pre)
{
    const matrix sums = {f->dt == TN_F64 ? TN_F64 : TN_F32, f->c.rows, f->c.cols, 0, 0, 1, NULL};
    const bool   f64 = f->dt == TN_F64;
    double       v = expected(fused(f->t), 1, &f->a, &f->b, 0, &sums, i, j);
    if (f->sides & ALPHA && f->a.cols) v = f64 ? 0.7 * v : 0.7F * (float)v;
    if (f->sides & 3) v = f64 ? v + at(&f->bias, i, j) : (float)v + (float)at(&f->bias, i, j);
    *pre = rounded(f->dt, v);
    v = activated(f->act, f->dt, v);
    if (f->sides & BETA) {
        const double old = f->sides & OLD ? at(&f->old, i, j) : at(was, i, j);
        v = f64 ? v + 1.3 * old : (float)v + 1.3F * (float)old;
    }
    return rounded(f->dt, v);
}

static void check_case(fused_case *f, int samples)
{
    const size_t bytes = (size_t)f->c.count * tn__dtype_bytes(f->dt);
    matrix       was = f->c;
    was.data = malloc(bytes + 1);
    ck_assert_ptr_nonnull(was.data);
    memcpy(was.data, f->c.data, bytes);
    const tn__gemm_call g = fused_call(f);
    ck_assert(tn__gemm_run(&g));
    const int64_t all = f->c.rows * f->c.cols;
    for (int64_t x = 0; x < (samples && samples < all ? samples : all); x++) {
        const int64_t e = samples && samples < all ? pick(all) : x, i = e / f->c.cols, j = e % f->c.cols;
        double        pre;
        const double  want = wanted(f, &was, i, j, &pre);
        if (!same(at(&f->c, i, j), want))
            ck_abort_msg("%s %s %lldx%lldx%lld sides %d act %d: c[%lld, %lld] is %.9g, expected %.9g", f->t->isa,
                         tn_dtype_name(f->dt), (long long)f->c.rows, (long long)f->c.cols, (long long)f->a.cols,
                         f->sides, (int)f->act, (long long)i, (long long)j, at(&f->c, i, j), want);
        if (f->sides & PRE) expect(same(at(&f->pre, i, j), pre));
    }
    free(was.data);
}

TEST_EACH(every_combination, ISAS)
{
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int sides = 0; sides < SIDES; sides++) {
        for (int x = 0; x < 12; x++) {
            const int     layout[] = {(int)pick(LAYOUTS),     (int)pick(LAYOUTS),     (int)pick(LAYOUTS),
                                      (int)pick(OWN_LAYOUTS), (int)pick(OWN_LAYOUTS), (int)pick(OWN_LAYOUTS)};
            const int64_t m = pick(3) ? 1 + pick(20) : 1, n = pick(5) ? 1 + pick(70) : 1, k = pick(8) ? pick(40) : 0;
            fused_case    f = case_new(t, types[x % 3], sides, (tn__act)(x / 3), m, n, k, layout);
            check_case(&f, 0);
            case_free(&f);
        }
    }
}

/* Several blocks of k, shared and packed operands, matrix times vector, many tasks; and a row alone. */
TEST_EACH(paths, ISAS)
{
    static const struct {
        int64_t m, n, k;
    } size[] = {{1, 1100, 700}, {700, 1, 300}, {300, 200, 700}, {257, 129, 64}, {70, 1300, 130}, {9, 300, 1030}};
    static const int        counts[] = {1, 2, 3, 7}, plain[] = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS};
    static const int        turned[] = {ROWS, COLUMNS, ROWS, ROWS, WIDE_ROWS, ROWS};
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int x = 0; x < 6 * 3; x++) {
        const int  sides = (x % 2 ? BIAS_ROW : BIAS_COLUMN) | PRE | (x % 4 < 2 ? OLD | BETA : 0);
        fused_case f = case_new(t, types[x / 6], sides, x % 3 ? TN__ACT_GELU : TN__ACT_RELU, size[x % 6].m,
                                size[x % 6].n, size[x % 6].k, x % 3 == 1 ? turned : plain);
        if (tn_test_slow() && f.a.count * f.b.cols > 1000000) {
            case_free(&f);
            continue;
        }
        const size_t bytes = (size_t)f.c.count * tn__dtype_bytes(f.dt);
        char        *first = malloc(bytes);
        ck_assert_ptr_nonnull(first);
        check_case(&f, 200);
        memcpy(first, f.c.data, bytes);
        for (int i = 0; i < 4; i++) {
            tn_set_threads(counts[i]);
            memset(f.c.data, 0, bytes);
            const tn__gemm_call g = fused_call(&f);
            ck_assert(tn__gemm_run(&g));
            ck_assert_mem_eq(f.c.data, first, bytes);
        }
        const int64_t row = pick(f.c.rows);
        tn__gemm_call g = fused_call(&f);
        g.m = 1, g.a = element(&f.a, row, 0), g.c = element(&f.c, row, 0);
        g.bias.at = element(&f.bias, row, 0), g.pre.at = element(&f.pre, row, 0);
        if (g.old.at) g.old.at = element(&f.old, row, 0);
        memset(g.c, 0, (size_t)f.c.cols * tn__dtype_bytes(f.dt));
        ck_assert(tn__gemm_run(&g));
        ck_assert_mem_eq(f.c.data, first, bytes);
        free(first);
        case_free(&f);
    }
}

/* A bias added to an a of distant columns that is too large to be packed once for all tasks. */
TEST_EACH(groups, ISAS)
{
    static const int        columns[] = {COLUMNS, ROWS, ROWS, ROWS, ROWS, ROWS};
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t || tn_test_slow()) return;
    for (int x = 0; x < 8; x++) {
        tn_set_threads(x < 4 ? 1 : 3);
        fused_case f = case_new(t, x % 2 ? TN_F64 : TN_F32, x / 2 % 2 ? BIAS_ROW : BIAS_COLUMN, TN__ACT_NONE, 2100, 70,
                                1100, columns);
        check_case(&f, 300);
        case_free(&f);
    }
}

/* Batches that are one taller or wider matrix, and batches that are not because of their neighbours in memory. */
TEST(batches)
{
    enum { B = 3, M = 5, N = 7, K = 4 };
    for (int x = 0; x < 3 * 2 * 2 * 3; x++) {
        const tn_dtype dt = types[x % 3];
        const int64_t  size = (int64_t)tn__dtype_bytes(dt);
        const bool     one_b = x / 3 % 2, wide = x / 6 % 2;
        matrix         a = matrix_new(dt, B * M, K, ROWS), b = matrix_new(dt, B * K, N, ROWS),
               bias = matrix_new(dt, B, N, ROWS);
        matrix        c = matrix_new(dt, B * M, N, ROWS), pre = matrix_new(dt, B * M, N, ROWS);
        matrix        old = matrix_new(dt, B * M, N, ROWS), want = matrix_new(dt, B * M, N, ROWS);
        tn__gemm_call g = {.dtype = dt, .ctype = dt, .m = M, .n = N, .k = K, .a = a.data, .b = b.data, .c = c.data};
        g.a_row = K, g.a_col = 1, g.b_row = N, g.b_col = 1, g.c_row = N, g.c_col = 1, g.alpha = 1, g.beta = 1;
        g.dims = 1, g.batch[0] = B, g.a_batch[0] = M * K, g.b_batch[0] = one_b ? 0 : K * N, g.c_batch[0] = M * N;
        if (wide) g.c_row = B * N, g.c_batch[0] = N, g.a_batch[0] = 0; /* next to each other */
        g.bias = (tn__gemm_side){.at = bias.data, .col = 1, .batch = {x / 12 == 1 ? N : 0}};
        if (x / 12 == 2) g.bias.row = N, g.bias.batch[0] = 0, g.m = B; /* a bias a row, the same in each matrix */
        g.pre = (tn__gemm_side){.at = pre.data, .row = N, .col = 1, .batch = {M * N}};
        g.old = (tn__gemm_side){.at = old.data, .row = N, .col = 1, .batch = {M * N}};
        g.act = TN__ACT_GELU;
        ck_assert(tn__gemm_run(&g));
        tn__gemm_call one = g;
        one.dims = 0, one.pre.at = NULL;
        for (int64_t i = 0; i < B; i++) {
            one.a = (const char *)g.a + i * g.a_batch[0] * size, one.b = (const char *)g.b + i * g.b_batch[0] * size;
            one.c = want.data, one.c_row = N;
            one.bias.at = (char *)g.bias.at + i * g.bias.batch[0] * size;
            one.old.at = (char *)g.old.at + i * g.old.batch[0] * size;
            ck_assert(tn__gemm_run(&one));
            for (int64_t r = 0; r < g.m; r++)
                ck_assert_mem_eq(c.data + (i * g.c_batch[0] + r * g.c_row) * size, want.data + r * N * size,
                                 (size_t)(N * size));
            one.act = TN__ACT_NONE, one.beta = 0;
            ck_assert(tn__gemm_run(&one));
            ck_assert_mem_eq(pre.data + i * M * N * size, want.data, (size_t)(g.m * N * size));
            one.act = g.act, one.beta = 1;
        }
        free(a.data), free(b.data), free(bias.data), free(c.data), free(pre.data), free(old.data), free(want.data);
    }
}

/* For tensors: a bias that broadcasts, and a tensor to add. */
TEST(tensors)
{
    tn_tensor *a = tn_uniform(TN_SHAPE(2, 3, 5, 7), -1, 1), *b = tn_uniform(TN_SHAPE(7, 9), -1, 1);
    tn_tensor *bias = tn_uniform(TN_SHAPE(9), -1, 1), *more = tn_uniform(TN_SHAPE(3, 1, 9), -1, 1);
    tn_tensor *c = tn_empty(TN_SHAPE(2, 3, 5, 9)), *pre = tn_empty(TN_SHAPE(2, 3, 5, 9)), *sums = tn_empty_like(c);
    tn__gemm_with(a, b, c, &(tn__epilogue){.bias = bias, .more = more, .pre = pre, .act = TN__ACT_RELU});
    tn__gemm(1, a, b, 0, sums);
    for (int64_t i = 0; i < tn_numel(c); i++) {
        const float v = (float)tn_get(sums, i) + (float)tn_get(bias, i % 9);
        expect(same(tn_get(pre, i), (double)v));
        expect(same(tn_get(c, i), (double)((v <= 0 ? 0 : v) + (float)tn_get(more, i / 45 % 3 * 9 + i % 9))));
    }
}
