/* test_gemm.c — matrix products: every element is, to the bit, its chain of multiply-adds in the order of k, for every
 * instruction set that this CPU has, every layout, size, path and number of threads; and within the error bound of such
 * a sum. */
#include "core/products/cost.h"
#include "core/products/gemm_plan.h"
#include "core/tensor/convert.h"
#include "tests/common/gemm_reference.h"

static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16};

/* Runs the call and compares the whole buffer of c, gaps included, with the expected one. */
static void check(const tn__kernel_table *t, double alpha, const matrix *a, const matrix *b, double beta,
                  const matrix *c)
{
    const size_t bytes = (size_t)c->count * tn__dtype_bytes(c->dtype);
    char        *want = malloc(bytes + 1);
    const matrix w = {c->dtype, c->rows, c->cols, c->row, c->col, c->count, want};
    ck_assert_ptr_nonnull(want);
    memcpy(want, c->data, bytes);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->cols; j++)
            tn__store(element(&w, i, j), c->dtype, expected(fused(t), alpha, a, b, beta, c, i, j));
    const tn__gemm_call g = call_of(t, alpha, a, b, beta, c);
    ck_assert(tn__gemm_run(&g));
    for (int64_t e = 0; e < c->count; e++) {
        const int64_t size = (int64_t)tn__dtype_bytes(c->dtype);
        const double  x = tn__load(c->data + e * size, c->dtype), y = tn__load(want + e * size, c->dtype);
        if (same(x, y)) continue;
        ck_abort_msg("%s %s %lldx%lldx%lld strides %lld,%lld %lld,%lld %lld,%lld alpha %g beta %g: element "
                     "%lld of c's buffer is %.9g, expected %.9g",
                     t->isa, tn_dtype_name(a->dtype), (long long)c->rows, (long long)c->cols, (long long)a->cols,
                     (long long)a->row, (long long)a->col, (long long)b->row, (long long)b->col, (long long)c->row,
                     (long long)c->col, alpha, beta, (long long)e, x, y);
    }
    free(want);
}

static void check_new(const tn__kernel_table *t, tn_dtype dt, tn_dtype ct, int64_t m, int64_t n, int64_t k, int la,
                      int lb, int lc, double alpha, double beta)
{
    matrix a = matrix_new(dt, m, k, la), b = matrix_new(dt, k, n, lb), c = matrix_new(ct, m, n, lc);
    if (beta == 0) /* c may contain anything */
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) tn__store(element(&c, i, j), ct, NAN);
    check(t, alpha, &a, &b, beta, &c);
    free(a.data), free(b.data), free(c.data);
}

TEST_EACH(sizes, ISAS)
{
    static const int64_t side[] = {0, 1, 2, 3, 5, 7, 9, 31, 35, 63, 64, 65, 127, 257};
    static const double  alphas[] = {1, 1, 0, 0.7}, betas[] = {0, 1, 1.3};
    enum { SIDES = sizeof side / sizeof *side };
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    const int64_t most = tn_test_slow() ? 65 * 65 * 65 : 127 * 257 * 257;
    noise_state = (uint64_t)_i;
    for (int x = 0; x < SIDES * SIDES * SIDES; x++) {
        const int64_t m = side[x % SIDES], n = side[x / SIDES % SIDES], k = side[x / SIDES / SIDES];
        if (m * n * k > most || (m * n * k > 100000 && pick(4) > 0)) continue;
        const tn_dtype dt = types[pick(3)], ct = dt == TN_F64 ? TN_F64 : pick(4) ? dt : dt == TN_F32 ? TN_BF16 : TN_F32;
        if (same_below(t, dt)) continue;
        check_new(t, dt, ct, m, n, k, (int)pick(LAYOUTS), (int)pick(LAYOUTS), (int)pick(OWN_LAYOUTS), alphas[pick(4)],
                  betas[pick(3)]);
    }
}

TEST_EACH(layouts, ISAS)
{
    static const double     alphas[] = {0, 1, 0.7}, betas[] = {0, 1, 1.3};
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int x = 0; x < LAYOUTS * LAYOUTS * OWN_LAYOUTS * 9 * 3; x++) {
        const int la = x % LAYOUTS, lb = x / LAYOUTS % LAYOUTS, lc = x / LAYOUTS / LAYOUTS % OWN_LAYOUTS;
        const int ab = x / LAYOUTS / LAYOUTS / OWN_LAYOUTS % 9, dt = x / LAYOUTS / LAYOUTS / OWN_LAYOUTS / 9;
        if (!same_below(t, types[dt]))
            check_new(t, types[dt], types[dt], 11, 37, 6, la, lb, lc, alphas[ab % 3], betas[ab / 3]);
    }
}

/* Sizes that reach every path of the code: one and several blocks of k; b in place, packed, shared; a in place and
 * packed by rows and columns; strip by strip and panel by panel; a row alone, a column alone; few and many tasks. Each
 * for several numbers of threads. */
static const struct {
    int64_t m, n, k;
} paths[] = {{1, 1100, 700},   {1, 2500, 70},   {1, 5, 1200},     {700, 1, 300},  {1, 1, 3000},   {300, 200, 700},
             {40, 40, 2100},   {9, 300, 520},   {130, 97, 530},   {257, 129, 64}, {512, 512, 40}, {70, 1300, 130},
             {260, 1024, 600}, {1200, 20, 150}, {2100, 70, 1100}, {600, 300, 390}};
enum { PATHS = sizeof paths / sizeof *paths };

TEST_EACH(threads, ISAS)
{
    static const int        counts[] = {1, 2, 3, 7};
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int x = 0; x < PATHS * 3 * 3; x++) {
        const tn_dtype dt = types[x / PATHS % 3];
        const int      layout = x / PATHS / 3;
        const int64_t  m = paths[x % PATHS].m, n = paths[x % PATHS].n, k = paths[x % PATHS].k;
        if (same_below(t, dt) || (tn_test_slow() && m * n * k > 1000000)) continue;
        matrix a = matrix_new(dt, m, k, layout == 2 ? COLUMNS : ROWS),
               b = matrix_new(dt, k, n, layout == 1 ? COLUMNS : ROWS);
        matrix       c = matrix_new(dt, m, n, ROWS);
        const size_t bytes = (size_t)c.count * tn__dtype_bytes(dt);
        char        *first = malloc(bytes), *old = malloc(bytes);
        ck_assert(first && old);
        const double beta = x % 2 ? 1.3 : 0, alpha = x % 2 ? 0.7 : 1;
        memcpy(old, c.data, bytes);
        for (int i = 0; i < 4; i++) {
            tn_set_threads(counts[i]);
            memcpy(c.data, old, bytes);
            const tn__gemm_call g = call_of(t, alpha, &a, &b, beta, &c);
            ck_assert(tn__gemm_run(&g));
            if (i == 0) memcpy(first, c.data, bytes);
            ck_assert_mem_eq(c.data, first, bytes);
        }
        memcpy(c.data, old, bytes);
        const matrix was = c;
        for (int i = 0; i < 300; i++) { /* and they are the bits of the chain */
            const int64_t r = pick(m), s = pick(n);
            const double  want = expected(fused(t), alpha, &a, &b, beta, &was, r, s);
            const matrix  got = {dt, m, n, c.row, c.col, c.count, first};
            expect(same(at(&got, r, s), want));
        }
        free(a.data), free(b.data), free(c.data), free(first), free(old);
    }
}

/* Columns of an a that is too large to be packed before the tasks. */
TEST_EACH(columns_of_a_large_a, ISAS)
{
    enum { M = 2056, N = 66, K = 4200 };
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    for (int x = 0; x < 3 && t && !tn_test_slow(); x++) {
        const tn_dtype dt = types[x];
        if (same_below(t, dt)) continue;
        matrix a = matrix_new(dt, M, K, COLUMNS), b = matrix_new(dt, K, N, ROWS), c = matrix_new(dt, M, N, ROWS);
        const tn__gemm_call g = call_of(t, 1, &a, &b, 0, &c);
        ck_assert(tn__gemm_run(&g));
        for (int i = 0; i < 300; i++) {
            const int64_t r = pick(M), s = pick(N);
            expect(same(at(&c, r, s), expected(fused(t), 1, &a, &b, 0, &c, r, s)));
        }
        free(a.data), free(b.data), free(c.data);
    }
}

/* Rows of b anywhere, also several times, in one and in several blocks of k, in place: the chains are the same. */
TEST_EACH(rows_anywhere, ISAS)
{
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t || !t->gemm_f32->tile_of_rows) return;
    static const int64_t sizes_of_k[] = {1, 7, 460, 900}, sizes_of_m[] = {2, 5, 13, 40};
    for (int x = 0; x < 4 * 4 * 3; x++) {
        const int64_t m = sizes_of_m[x % 4], k = sizes_of_k[x / 4 % 4];
        const int64_t n = (1 + 2 * (x % 3)) * t->gemm_f32->nv * t->gemm_f32->lanes, far = 500;
        matrix        a = matrix_new(TN_F32, m, k, ROWS), b = matrix_new(TN_F32, k, n, ROWS);
        matrix        pool = matrix_new(TN_F32, 1, far + n, ROWS), c = matrix_new(TN_F32, m, n, ROWS);
        matrix        bias = matrix_new(TN_F32, m, 1, ROWS);
        int64_t      *b_at = malloc((size_t)k * sizeof *b_at);
        ck_assert_ptr_nonnull(b_at);
        for (int64_t p = 0; p < k; p++) {
            b_at[p] = pick(far + 1);
            memcpy(element(&b, p, 0), element(&pool, 0, b_at[p]), (size_t)n * sizeof(float));
        }
        tn__gemm_call g = call_of(t, 1, &a, &b, 0, &c);
        g.b = pool.data, g.b_row = 0, g.b_at = b_at;
        if (x % 2) g.bias = (tn__gemm_side){.at = bias.data, .row = 1};
        tn_set_threads(1 + x / 16);
        ck_assert(tn__gemm_run(&g));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const float sum = (float)expected(fused(t), 1, &a, &b, 0, &c, i, j);
                expect(same(at(&c, i, j), x % 2 ? sum + (float)at(&bias, i, 0) : sum));
            }
        free(a.data), free(b.data), free(pool.data), free(c.data), free(bias.data), free(b_at);
    }
}

/* A row, a column or a corner of the result computed alone has the bits that it has among others. */
TEST_EACH(parts, ISAS)
{
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int x = 0; x < 3 * 3 * 4; x++) {
        const tn_dtype dt = types[x % 3];
        const int64_t  m = 77, n = 131, k = 600;
        if (same_below(t, dt)) continue;
        matrix        a = matrix_new(dt, m, k, x / 3 % 3 == 2 ? COLUMNS : ROWS);
        matrix        b = matrix_new(dt, k, n, x / 3 % 3 == 1 ? COLUMNS : ROWS);
        matrix        all = matrix_new(dt, m, n, ROWS), part = matrix_new(dt, m, n, ROWS);
        tn__gemm_call g = call_of(t, 1, &a, &b, 0, &all);
        ck_assert(tn__gemm_run(&g));
        const int64_t size = (int64_t)tn__dtype_bytes(dt);
        for (int y = 0; y < (tn_test_slow() ? 10 : 40); y++) {
            const int64_t r0 = pick(m), c0 = pick(n), rows = x / 9 == 1 ? 1 : 1 + pick(m - r0),
                          cols = x / 9 == 2 ? 1 : 1 + pick(n - c0);
            g = call_of(t, 1, &a, &b, 0, &part);
            g.m = rows, g.n = cols;
            g.a = element(&a, r0, 0), g.b = element(&b, 0, c0);
            if (x / 9 == 3) g.c_row = 1, g.c_col = rows; /* written by columns */
            else g.c_row = cols;
            ck_assert(tn__gemm_run(&g));
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < cols; j++)
                    expect(!memcmp(part.data + (i * g.c_row + j * g.c_col) * size, element(&all, r0 + i, c0 + j),
                                   (size_t)size));
        }
        free(a.data), free(b.data), free(all.data), free(part.data);
    }
}

/* ---- tensors ---- */

static matrix matrix_in(const tn_tensor *t, const int64_t *index) /* the matrix under an index of t's leading dims */
{
    const int nd = t->l.shape.n;
    matrix    m = {.dtype = t->dtype,
                   .rows = t->l.shape.d[nd - 2],
                   .cols = t->l.shape.d[nd - 1],
                   .row = t->l.stride[nd - 2],
                   .col = t->l.stride[nd - 1],
                   .data = tn__ptr(t)};
    for (int d = 0; d < nd - 2; d++) m.data += index[d] * t->l.stride[d] * (int64_t)tn__dtype_bytes(t->dtype);
    return m;
}

static tn_tensor *noisy(tn_dtype dt, tn_shape s)
{
    tn_tensor *t = tn_empty_of(dt, s);
    ck_assert_ptr_nonnull(t);
    for (int64_t i = 0; i < tn_numel(t); i++)
        tn__store((char *)tn__ptr(t) + i * (int64_t)tn__dtype_bytes(dt), dt, noise());
    return t;
}

static tn_tensor *swapped(tn_tensor *t, int d, int e)
{
    tn__layout l = t->l;
    l.shape.d[d] = t->l.shape.d[e], l.shape.d[e] = t->l.shape.d[d];
    l.stride[d] = t->l.stride[e], l.stride[e] = t->l.stride[d];
    return tn__alias(t, &l);
}

/* tn__gemm against its chains, matrix by matrix. */
static void check_batch(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, tn_tensor *c)
{
    const int  nd = c->l.shape.n;
    tn_tensor *was = tn_empty_of(c->dtype, c->l.shape);
    tn__copy(was, c);
    tn__gemm(alpha, a, b, beta, c);
    ck_assert_int_eq(tn_error(), TN_OK);
    int64_t count = 1, index[3][TN_MAX_DIMS] = {{0}};
    for (int d = 0; d < nd - 2; d++) count *= c->l.shape.d[d];
    for (int64_t i = 0; i < count; i++) {
        const tn_tensor *ts[3] = {a, b, c};
        int64_t          rest = i;
        for (int d = nd - 3; d >= 0; d--) {
            for (int o = 0; o < 3; o++) {
                const int od = d - nd + ts[o]->l.shape.n;
                if (od >= 0) index[o][od] = ts[o]->l.shape.d[od] == 1 ? 0 : rest % c->l.shape.d[d];
            }
            rest /= c->l.shape.d[d];
        }
        const matrix ma = matrix_in(a, index[0]), mb = matrix_in(b, index[1]), mc = matrix_in(c, index[2]);
        const matrix mw = matrix_in(was, index[2]);
        for (int64_t r = 0; r < mc.rows; r++)
            for (int64_t s = 0; s < mc.cols; s++)
                expect(same(at(&mc, r, s), expected(fused(tn__kernels()), alpha, &ma, &mb, beta, &mw, r, s)));
    }
}

TEST(batches)
{
    for (int x = 0; x < 6; x++) {
        const tn_dtype dt = types[x % 3];
        const double   alpha = x < 3 ? 1 : 0.7, beta = x < 3 ? 0 : 1.3;
        /* equal numbers of matrices; a weight for all; dims of 1 that repeat, on either side; missing dims */
        check_batch(alpha, noisy(dt, TN_SHAPE(3, 2, 5, 7)), noisy(dt, TN_SHAPE(3, 2, 7, 4)), beta,
                    noisy(dt, TN_SHAPE(3, 2, 5, 4)));
        check_batch(alpha, noisy(dt, TN_SHAPE(3, 2, 5, 7)), noisy(dt, TN_SHAPE(7, 40)), beta,
                    noisy(dt, TN_SHAPE(3, 2, 5, 40)));
        check_batch(alpha, noisy(dt, TN_SHAPE(3, 1, 5, 7)), noisy(dt, TN_SHAPE(2, 7, 4)), beta,
                    noisy(dt, TN_SHAPE(3, 2, 5, 4)));
        check_batch(alpha, noisy(dt, TN_SHAPE(5, 7)), noisy(dt, TN_SHAPE(4, 7, 9)), beta, noisy(dt, TN_SHAPE(4, 5, 9)));
        check_batch(alpha, noisy(dt, TN_SHAPE(1, 6, 3)), noisy(dt, TN_SHAPE(4, 3, 1)), beta,
                    noisy(dt, TN_SHAPE(4, 6, 1)));
        check_batch(alpha, noisy(dt, TN_SHAPE(9, 1, 33)), noisy(dt, TN_SHAPE(33, 20)), beta,
                    noisy(dt, TN_SHAPE(9, 1, 20)));
        check_batch(alpha, noisy(dt, TN_SHAPE(2, 3, 4, 5, 6)), noisy(dt, TN_SHAPE(3, 1, 6, 2)), beta,
                    noisy(dt, TN_SHAPE(2, 3, 4, 5, 2)));
        /* matrices that are one taller or wider matrix in memory, in all operands or only in some */
        tn_tensor *stacked = noisy(dt, TN_SHAPE(3, 5, 7)), *strewn = swapped(noisy(dt, TN_SHAPE(5, 3, 7)), 0, 1);
        tn_tensor *apart = noisy(dt, TN_SHAPE(3, 7, 4)), *abreast = swapped(noisy(dt, TN_SHAPE(7, 3, 4)), 0, 1);
        tn_tensor *one_a = noisy(dt, TN_SHAPE(5, 7)), *one_b = noisy(dt, TN_SHAPE(7, 4));
        for (int y = 0; y < 2; y++) {
            tn_tensor *below = noisy(dt, TN_SHAPE(3, 5, 4)), *beside = swapped(noisy(dt, TN_SHAPE(5, 3, 4)), 0, 1);
            check_batch(alpha, y ? stacked : strewn, one_b, beta, below);
            check_batch(alpha, y ? stacked : strewn, one_b, beta, beside);
            check_batch(alpha, one_a, y ? apart : abreast, beta, below);
            check_batch(alpha, one_a, y ? apart : abreast, beta, beside);
        }
        /* heads as views: [B, T, H, D] viewed as [B, H, T, D], times their transpose [B, H, D, T], and written back */
        tn_tensor *plan = noisy(dt, TN_SHAPE(2, 19, 3, 16)), *k = noisy(dt, TN_SHAPE(2, 19, 3, 16));
        tn_tensor *s = noisy(dt, TN_SHAPE(2, 3, 19, 19)), *y = noisy(dt, TN_SHAPE(2, 19, 3, 16));
        check_batch(alpha, swapped(plan, 1, 2), swapped(swapped(k, 1, 2), 2, 3), beta, s);
        check_batch(alpha, s, swapped(k, 1, 2), beta, swapped(y, 1, 2));
        /* c by columns; empty batches, rows and terms */
        check_batch(alpha, noisy(dt, TN_SHAPE(2, 8, 21)), noisy(dt, TN_SHAPE(2, 21, 18)), beta,
                    swapped(noisy(dt, TN_SHAPE(2, 18, 8)), 1, 2));
        check_batch(alpha, noisy(dt, TN_SHAPE(0, 5, 7)), noisy(dt, TN_SHAPE(7, 4)), beta, noisy(dt, TN_SHAPE(0, 5, 4)));
        check_batch(alpha, noisy(dt, TN_SHAPE(2, 0, 7)), noisy(dt, TN_SHAPE(7, 4)), beta, noisy(dt, TN_SHAPE(2, 0, 4)));
        check_batch(alpha, noisy(dt, TN_SHAPE(2, 3, 0)), noisy(dt, TN_SHAPE(0, 4)), beta, noisy(dt, TN_SHAPE(2, 3, 4)));
    }
}

/* Batches of small matrices, larger than L2 in total, so that each task prefetches the next matrix, with sizes that are
 * no multiples of a vector or a tile. */
TEST(small_matrices)
{
    static const int64_t of[][4] = {{45, 37, 43, 41}, {480, 16, 17, 9}, {25, 50, 50, 64}};
    for (int x = 0; x < 3 * 3 * 3; x++) {
        const int64_t *s = of[x % 3], count = s[0], m = s[1], n = s[2], k = s[3];
        tn_tensor     *a = noisy(TN_F32, x / 3 % 3 == 2 ? TN_SHAPE(count, k, m) : TN_SHAPE(count, m, k));
        tn_tensor     *b = noisy(TN_F32, x / 3 % 3 == 1 ? TN_SHAPE(count, n, k) : TN_SHAPE(count, k, n));
        tn_set_threads(1 + x / 9);
        check_batch(1, x / 3 % 3 == 2 ? swapped(a, 1, 2) : a, x / 3 % 3 == 1 ? swapped(b, 1, 2) : b, 0,
                    noisy(TN_F32, TN_SHAPE(count, m, n)));
    }
}

TEST(not_numbers)
{
    for (int x = 0; x < 3; x++) {
        tn_tensor *a = noisy(types[x], TN_SHAPE(70, 90)), *b = noisy(types[x], TN_SHAPE(90, 50));
        tn_tensor *c = tn_full_of(types[x], TN_SHAPE(70, 50), NAN);
        tn_set_at(a, TN_SHAPE(3, 80), NAN);
        tn_set_at(b, TN_SHAPE(0, 49), INFINITY);
        tn__gemm(1, a, b, 0, c);
        for (int64_t i = 0; i < 70; i++) {
            for (int64_t j = 0; j < 50; j++) {
                const double v = tn_get_at(c, TN_SHAPE(i, j));
                if (i == 3) expect(isnan(v));
                else if (j == 49) expect(isinf(v));
                else expect(isfinite(v));
            }
        }
        tn__gemm(0, a, b, 0, c); /* reads neither */
        for (int64_t i = 0; i < 3500; i++) expect(same(tn_get(c, i), 0));
        tn_fill(c, 3);
        tn__gemm(0, a, b, -0.5, c);
        for (int64_t i = 0; i < 3500; i++) expect(same(tn_get(c, i), -1.5));
        tn__gemm(INFINITY, noisy(types[x], TN_SHAPE(70, 0)), noisy(types[x], TN_SHAPE(0, 50)), 2,
                 c); /* no terms, no NaN */
        for (int64_t i = 0; i < 3500; i++) expect(same(tn_get(c, i), -3));
        tn__gemm(1, a, b, NAN, c);
        for (int64_t i = 0; i < 3500; i++) expect(isnan(tn_get(c, i)));
    }
}

TEST(no_memory)
{
    tn_tensor *a = noisy(TN_F32, TN_SHAPE(300, 600)), *b = noisy(TN_F32, TN_SHAPE(600, 200)),
              *c = tn_ones(TN_SHAPE(300, 200));
    tn_tensor *d = tn_empty_like(c);
    tn__gemm(1, a, b, 0, d);
    tn_set_memory_limit(tn_memory_now().live + 64);
    tn__gemm(1, a, b, 0, c);
    ck_assert_int_eq(tn_error(), TN_ENOMEM);
    for (int64_t i = 0; i < 60000; i++) expect(same(tn_get(c, i), 1));
    tn_set_memory_limit(0);
    tn__gemm(1, a, b, 0, c); /* while the error is set, nothing happens */
    for (int64_t i = 0; i < 60000; i++) expect(same(tn_get(c, i), 1));
    tn_clear_error();
    tn__gemm(1, a, b, 0, c);
    ck_assert_mem_eq(tn_data(c), tn_data(d), 240000);
}

/* The ratio of the busiest of `team` threads' work to the mean, if tasks are distributed in equal runs. */
static double busiest(int team, int64_t m, int64_t n, int64_t k, bool turned)
{
    static float  ground;
    tn__gemm_call g = {.dtype = TN_F32, .ctype = TN_F32, .m = m, .n = n, .k = k, .alpha = 1};
    tn__gemm_plan plan = {0};
    g.a = g.b = g.c = &ground, g.a_row = k, g.a_col = 1, g.c_row = n, g.c_col = 1;
    g.b_row = turned ? 1 : n, g.b_col = turned ? k : 1;
    tn_set_threads(team);
    if (tn_threads() < team) return 1; /* a build without threads */
    tn__gemm_make_plan(&plan, &g);
    const int64_t blocks = tn__ceil_div(plan.tasks, plan.grain);
    int64_t       most = 0, next = 0;
    for (int t = 0; t < team; t++) {
        int64_t end = next + blocks / team + (t < blocks % team), work = 0;
        for (int64_t i = next * plan.grain; i < tn__min_i64(end * plan.grain, plan.tasks); i++) {
            const int64_t down = i / plan.panel_tasks.parts, across = i % plan.panel_tasks.parts;
            const int64_t rows = tn__strip_at(&plan, tn__cut_at(&plan.strip_tasks, down + 1)) -
                                 tn__strip_at(&plan, tn__cut_at(&plan.strip_tasks, down));
            work += rows * (tn__panel_at(&plan, tn__cut_at(&plan.panel_tasks, across + 1)) -
                            tn__panel_at(&plan, tn__cut_at(&plan.panel_tasks, across)));
        }
        most = tn__max_i64(most, work), next = end;
    }
    return (double)most * team / ((double)m * (double)n);
}

/* Lots of several tasks make no thread busier than lots of the least size: 22 tasks on 8 threads are not 11 lots. */
TEST(lots)
{
    for (int team = 1; team <= 16; team++)
        for (int64_t tasks = 1; tasks <= 200; tasks++)
            for (int64_t least = 1; least <= 4; least++) {
                const int64_t grain = tn__cost_grain(tn__cost_task * (double)tasks / (double)least, tasks, team);
                const int64_t all = (tasks - 1) / grain + 1, fewest = (tasks - 1) / least + 1;
                ck_assert_msg((all + team - 1) / team * grain <= (fewest + team - 1) / team * least,
                              "%lld tasks on %d: %lld at a time", (long long)tasks, team, (long long)grain);
            }
    ck_assert_int_eq(tn__cost_grain(1, 22, 8), 1);
    ck_assert_int_eq(tn__cost_grain(1, 3, 2), 2);
}

TEST(even) /* on two threads; with more, each may get a panel or a strip more than another */
{
    const int64_t of[][3] = {{2048, 1024, 256}, {2048, 256, 1024}, {2048, 768, 256},  {2048, 256, 256},
                             {256, 1024, 2048}, {768, 256, 2048},  {256, 256, 2048},  {307, 30522, 256},
                             {307, 256, 30522}, {30522, 256, 307}, {512, 1000, 1000}, {100, 512, 512}};
    for (int i = 0; i < (int)(sizeof of / sizeof *of); i++)
        for (int turned = 0; turned < 2; turned++)
            for (int team = 2; team <= 8; team++) {
                const double more = busiest(team, of[i][0], of[i][1], of[i][2], turned);
                const double two = of[i][0] == 100 ? 1.08 : 1.06; /* 13 strips: 54 rows and 46 */
                ck_assert_msg(more <= (team == 2 ? two : 1.35), "%lld x %lld x %lld on %d: %.2f", (long long)of[i][0],
                              (long long)of[i][1], (long long)of[i][2], team, more);
            }
    tn_set_threads(0);
}
