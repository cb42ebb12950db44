/* test_packed.c — a matrix multiplied by few rows is kept packed: the same bits as without, for every thread and
 * method; and never those of an earlier version. */
#include "autograd/autograd.h"
#include "core/core.h"
#include "core/products/gemm_plan.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include <pthread.h>

static const tn_dtype floats[] = {TN_F32, TN_F64, TN_BF16};
static const int64_t  sizes[][2] = {{256, 320}, {33, 129}, {1, 5000}, {1000, 7},
                                    {401, 97},  {64, 1},   {2, 4099}, {700, 500}}; /* k, n */
enum { SIZES = sizeof sizes / sizeof *sizes, USES = 6 /* as in packed.c */ };

static tn_tensor *random_of(tn_dtype dt, tn_shape s) { return tn_to(tn_normal(s, 0, 1), dt); }

/* x Wᵀ with a W that was not used before. */
static tn_tensor *first_use(tn_tensor *x, tn_tensor *w) { return tn_linear(x, tn_clone(w), NULL); }

TEST_EACH(same_bits, 3)
{
    for (int threads = 1; threads <= 3; threads += 2)
        for (int s = 0; s < SIZES; s += tn_test_slow() ? 3 : 1) {
            const int64_t k = sizes[s][0], n = sizes[s][1];
            tn_set_threads(threads);
            tn_tensor *w = random_of(floats[_i], TN_SHAPE(n, k)), *all = random_of(floats[_i], TN_SHAPE(70, k));
            tn_tensor *bias = random_of(floats[_i], TN_SHAPE(n));
            for (int64_t m = 1; m <= 70; m += m < (tn_test_slow() ? 2 : 10) ? 1 : tn_test_slow() ? 34 : 15) {
                tn_tensor *x = tn_narrow(all, 0, 70 - m, m), *y = first_use(x, w), *z = tn_linear(x, tn_clone(w), bias);
                for (int time = 0; time < 3; time++) {
                    ck_assert_msg(tn_same_bits(tn_linear(x, w, NULL), y), "%lldx%lldx%lld, time %d", (long long)m,
                                  (long long)n, (long long)k, time);
                    ck_assert(tn_same_bits(tn_linear(x, w, bias), z));
                    ck_assert(tn_same_bits(tn_matmul(x, tn_transpose(w, 0, 1)), y));
                }
            }
        }
}

static tn_tensor *w;
static void       seen(tn_tensor *x, int64_t m, const char *what)
{
    for (int time = 0; time <= USES; time++)
        ck_assert_msg(tn_same_bits(tn_linear(tn_narrow(x, 0, 0, m), w, NULL), first_use(tn_narrow(x, 0, 0, m), w)),
                      "after %s, %lld rows, time %d", what, (long long)m, time);
}

TEST_EACH(every_change_is_seen, 2)
{
    const int64_t m = _i ? 5 : 1;
    tn_tensor    *x = random_of(TN_F32, TN_SHAPE(5, 100));
    w = random_of(TN_F32, TN_SHAPE(90, 100));
    seen(x, m, "nothing");
    tn_add_(w, tn_scalar(1));
    seen(x, m, "add_");
    tn_set(w, 77, 3);
    seen(x, m, "tn_set");
    float *p = tn_data_mut(w);
    for (int i = 0; i < 9000; i++) p[i] = (float)(i % 13);
    seen(x, m, "tn_data_mut");
    tn_copy_from(tn_narrow(w, 0, 10, 5), tn_zeros(TN_SHAPE(5, 100)));
    seen(x, m, "a write through a view");
    tn_adopt(w, random_of(TN_F32, TN_SHAPE(90, 100)));
    seen(x, m, "tn_adopt");
    /* borrowed memory may change without a new version */
    static float own[9000];
    w = tn_borrow(TN_F32, TN_SHAPE(90, 100), own, NULL, NULL);
    seen(x, m, "nothing");
    for (int i = 0; i < 9000; i++) own[i] = (float)(i % 7);
    seen(x, m, "a write behind the library's back");
}

/* Parts of one matrix count as separate matrices, more of them than are kept. */
TEST(parts)
{
    tn_tensor *all = random_of(TN_F32, TN_SHAPE(600, 64)), *x = random_of(TN_F32, TN_SHAPE(3, 64)), *y[6];
    for (int i = 0; i < 6; i++) y[i] = first_use(x, tn_narrow(all, 0, 100 * i, 100));
    for (int time = 0; time < 12; time++) {
        const int i = time / 2;
        for (int again = 0; again < USES; again++)
            ck_assert(tn_same_bits(tn_linear(x, tn_narrow(all, 0, 100 * i, 100), NULL), y[i]));
        ck_assert(tn_same_bits(tn_linear(x, tn_narrow(all, 0, 0, 100), NULL), y[0]));
    }
}

/* The memory is freed with the matrix, and allocated only after some uses. */
TEST(memory)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *x = random_of(TN_F32, TN_SHAPE(1, 512)), *m = random_of(TN_F32, TN_SHAPE(512, 512));
    const size_t   before = tn_memory_now().live;
    size_t         used[USES + 2];
    for (int i = 0; i < USES + 2; i++) {
        const tn_scope one = tn_scope_begin();
        tn_linear(x, m, NULL);
        tn_scope_end(one);
        used[i] = tn_memory_now().live - before;
        if (i == USES) tn_add_(m, tn_scalar(1));
    }
    for (int i = 0; i < USES - 1; i++) ck_assert_uint_lt(used[i], 4096);
    const size_t kept = used[USES - 1];
    ck_assert(kept > 1000000 && used[USES] == kept && used[USES + 1] <= kept + 4096);
    tn_scope_end(s);
    ck_assert_uint_lt(tn_memory_now().live, before);
}

/* One row and a few in turn: one form serves both. Rows of which there are more read another. */
TEST_EACH(one_form, 3)
{
    tn_tensor   *x = random_of(TN_F32, TN_SHAPE(9, 512)), *m = random_of(TN_F32, TN_SHAPE(512, 512));
    const size_t before = tn_memory_now().live, bytes = 512 * 512 * 4;
    for (int i = 0; i < 4 * USES; i++) {
        const tn_scope   s = tn_scope_begin();
        const int64_t    rows = i < 3 * USES ? 1 + (i + _i) % 3 * 3 : 9;
        tn_tensor *const part = tn_narrow(x, 0, 0, rows);
        ck_assert(tn_same_bits(tn_linear(part, m, NULL), first_use(part, m)));
        tn_scope_end(s);
        const size_t used = tn_memory_now().live - before;
        if (i == USES - 2) ck_assert_uint_lt(used, 4096);
        if (i >= USES - 1 && i < 4 * USES - 1) ck_assert(used > bytes && used < bytes + 4096);
        if (i == 4 * USES - 1) ck_assert(used > 2 * bytes && used < 2 * bytes + 8192);
    }
}

static tn_tensor *shared_x, *shared_y;
static void      *many(void *fails)
{
    for (int i = 0; i < 50; i++) {
        const tn_scope s = tn_scope_begin();
        *(int *)fails += !tn_same_bits(tn_linear(shared_x, w, NULL), shared_y);
        tn_scope_end(s);
    }
    return NULL;
}

TEST(threads_meet)
{
    pthread_t thread[3];
    int       fails[3] = {0};
    w = random_of(TN_F32, TN_SHAPE(200, 150)), shared_x = random_of(TN_F32, TN_SHAPE(2, 150));
    shared_y = first_use(shared_x, w);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, many, &fails[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(fails[i], 0);
}

static double often(int m)
{
    const tn_scope s = tn_scope_begin();
    tn_seed(4);
    tn_tensor *x = tn_normal(TN_SHAPE(m, 90), 0, 1), *v = tn_normal(TN_SHAPE(80, 90), 0, 1);
    double     sum = 0;
    for (int i = 0; i <= USES && !tn_error(); i++) sum += tn_item(tn_sum(tn_square(tn_linear(x, v, NULL))));
    tn_scope_end(s);
    return sum;
}
/* Memory for a copy is optional: without it the products are computed as before. */
TN_TEST(each_allocation_fails, 1, 3, TN_TEST_BARE)
{
    int answers = 0;
    tn_set_threads(1);
    tn_faulty_memory_begin();
    const double want = often(_i);
    tn_fail_memory(-1, false);
    ck_assert_double_eq(often(_i), want);
    const int64_t calls = tn_memory_calls();
    for (int64_t at = 0; at < calls; at++) {
        tn_fail_memory(at, true);
        often(_i);
        tn_clear_error();
        tn_fail_memory(at, false);
        const double sum = often(_i);
        ck_assert(tn_error() == TN_ENOMEM || sum == want);
        answers += tn_error() == TN_OK;
        tn_clear_error();
    }
    ck_assert_int_ge(answers, 2); /* the list of copies, the copy, and a call that freed it */
    tn_faulty_memory_end();
}

/* Plans for the kernels of every instruction set of this build, also those that this CPU lacks. */
extern const tn__kernel_table tn__table_baseline, tn__table_avx2, tn__table_avx512, tn__table_avx512bf16, tn__table_amx;
static const struct {
    const tn__kernel_table *kernels;
    bool                    pairs; /* products of pairs of bf16 have no kernel of one row */
} tables[] = {
    {&tn__table_baseline, false},
#ifdef TN__HAVE_AVX2
    {&tn__table_avx2, false},
#endif
#ifdef TN__HAVE_AVX512
    {&tn__table_avx512, false},
#endif
#ifdef TN__HAVE_AVX512BF16
    {&tn__table_avx512bf16, true},
#endif
#ifdef TN__HAVE_AMX
    {&tn__table_amx, true},
#endif
};
TEST_EACH(every_table, 3)
{
    static float ground;
    for (int t = 0; t < (int)(sizeof tables / sizeof *tables); t++)
        for (int64_t m = 1; m < 5; m += 3) {
            tn__gemm_call call = {.dtype = floats[_i], .ctype = floats[_i], .m = m, .n = 70, .k = 90, .alpha = 1};
            call.a = call.b = call.c = &ground, call.kernels = tables[t].kernels;
            call.a_row = call.b_col = 90, call.a_col = call.b_row = call.c_col = 1, call.c_row = 70;
            tn__gemm_plan plan = {0};
            tn__gemm_make_plan(&plan, &call);
            const bool one = floats[_i] != TN_BF16 || !tables[t].pairs;
            ck_assert_int_eq(tn__gemm_kept_bytes(&plan, true) > 0, one);
            ck_assert(!one || tn__gemm_kept_bytes(&plan, true) >= 70 * 90 * (size_t)plan.unit_bytes);
            ck_assert(tn__gemm_kept_bytes(&plan, false) >= 70 * 90 * tn__dtype_bytes(floats[_i]));
        }
}
