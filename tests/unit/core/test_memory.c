/* test_memory.c — complete scenarios in which each allocation fails once, and then all allocations from it on: no
 * crash, no leak, no partial result, an error that describes what happened, and the same bits on retry. And the cache,
 * its statistics and its limits. */
#define _POSIX_C_SOURCE 200809L /* barriers */
#include "autograd/autograd.h"
#include "core/core.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include <errno.h>
#include <pthread.h>

/* ---- scenarios: each returns a number computed from all its results; NaN if it failed ---------------------------- */

static tn_tensor *param(int64_t a, int64_t b) { return tn_requires_grad(tn_uniform(TN_SHAPE(a, b), -0.5, 0.5)); }
static double     digest(tn_tensor *t) { return t ? tn_item(tn_sum(tn_mul(tn_detach(t), tn_detach(t)))) : NAN; }

static double mlp_step(void)
{
    tn_tensor *w1 = param(8, 5), *w2 = param(3, 8), *b = tn_requires_grad(tn_zeros(TN_SHAPE(3)));
    tn_tensor *x = tn_normal(TN_SHAPE(4, 5), 0, 1), *y = tn_randint(TN_SHAPE(4), 0, 3);
    for (int step = 0; step < 2; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *loss = tn_cross_entropy(tn_linear(tn_dropout(tn_gelu(tn_linear(x, w1, NULL)), 0.3), w2, b), y);
        if (tn_backward(loss) == TN_OK) {
            tn_scope n = tn_no_grad_begin();
            tn_sub_(w1, tn_mul_scalar(tn_grad(w1), 0.1)), tn_sub_(w2, tn_mul_scalar(tn_grad(w2), 0.1));
            tn_zero_grad(w1), tn_zero_grad(w2);
            tn_scope_end(n);
        }
        tn_scope_end(s);
    }
    return digest(w1) + digest(w2) + digest(tn_grad(b));
}

static double attention_step(void)
{
    tn_tensor *qkv = param(6, 24), *x = tn_reshape(qkv, TN_SHAPE(2, 3, 3, 2, 4)); /* [B, T, 3, H, D] */
    tn_tensor *part[3];
    for (int i = 0; i < 3; i++) part[i] = tn_transpose(tn_select(x, 2, i), 1, 2);
    tn_tensor *y = tn_attention(part[0], part[1], part[2], .causal = true, .dropout = 0.2);
    tn_backward(tn_sum(tn_layer_norm(y, NULL, NULL, 1e-5), .dims = TN_DIMS(0, 1, 2, 3)));
    return digest(y) + digest(tn_grad(qkv));
}

static double second_order(void)
{
    tn_tensor *x = param(3, 3), *g = tn_grad_wrt(tn_sum(tn_tanh(tn_matmul(x, x))), x, true);
    tn_backward(tn_sum(tn_square(g)));
    return digest(tn_grad(x));
}

static tn_tensor *segment(tn_tensor *const *in, int n, void *w)
{
    (void)n;
    return tn_dropout(tn_relu(tn_matmul(in[0], w)), 0.5);
}
static double recomputed(void)
{
    tn_tensor *w = param(4, 4), *x = param(2, 4), *y = x;
    for (int i = 0; i < 3; i++) y = tn_checkpoint(segment, w, 1, &y);
    tn_backward(tn_sum(y));
    return digest(y) + digest(tn_grad(w)) + digest(tn_grad(x));
}

static tn_tensor *scaled(tn_tensor *g, void *user) { return (void)user, tn_mul_scalar(g, 2); }
static double     hooks_and_names(void)
{
    tn_tensor *x = tn_set_name(param(2, 2), "weight"), *h = tn_exp(x);
    tn_on_grad(x, scaled, NULL);
    tn_on_grad(h, scaled, NULL);
    tn_retain_grad(h);
    tn_backward(tn_sum(tn_mul(h, h)));
    return digest(tn_grad(x)) + digest(tn_grad(h));
}

static double slices(void)
{
    tn_tensor *x = param(6, 4), *parts[3], *rows[4];
    int        n = tn_split(x, 2, 0, 3, parts);
    for (int i = 0; i < 4; i++) rows[i] = tn_select(x, 0, i);
    tn_tensor *y = n == 3 ? tn_cat(0, parts[2], parts[0], tn_stack_list(0, 4, rows)) : NULL;
    tn_backward(tn_sum(tn_square(y)));
    return digest(y) + digest(tn_grad(x));
}

static double in_place(void)
{
    tn_tensor *x = param(3, 4), *y = tn_mul_scalar(x, 2);
    tn_mul_(y, x), tn_add_(y, tn_ones(TN_SHAPE(4))), tn_relu_(y);
    tn_backward(tn_sum(y));
    return digest(y) + digest(tn_grad(x));
}

static tn_tensor *poly(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user, tn_mul(tn_square(in[0]), in[1]);
}
static double checked(void)
{
    tn_tensor *in[2] = {tn_uniform(TN_SHAPE(2, 2), 0.5, 1), tn_uniform(TN_SHAPE(2), 0.5, 1)};
    tn_gradcheck(poly, .count = 2, .inputs = in, .name = "poly", .second = true);
    return digest(in[0]);
}

static double made(void)
{
    const double v[3] = {1, 2, 3};
    double sum = digest(tn_from_data(TN_F64, TN_SHAPE(3), v)) + digest(tn_eye(3, 2)) + digest(tn_linspace(0, 1, 5));
    sum += digest(tn_to(tn_permutation(9), TN_F64)) + digest(tn_normal_of(TN_BF16, TN_SHAPE(7), 0, 1)) +
           digest(tn_bernoulli(TN_SHAPE(5), 0.5));
    return sum + digest(tn_contiguous(tn_transpose(tn_uniform(TN_SHAPE(40, 30), 0, 1), 0, 1)));
}

static double saved_and_loaded(void)
{
    const char *path = tn_test_file("faults.npy");
    tn_tensor  *x = tn_uniform(TN_SHAPE(3, 5), 0, 1);
    if (tn_npy_save(path, tn_transpose(x, 0, 1)) != TN_OK) return NAN;
    return digest(tn_npy_load(path));
}

static const struct {
    const char *name;
    double (*run)(void);
} scenarios[] = {{"an MLP's two steps", mlp_step},
                 {"attention", attention_step},
                 {"second order", second_order},
                 {"recomputation", recomputed},
                 {"hooks", hooks_and_names},
                 {"slices", slices},
                 {"in place", in_place},
                 {"gradcheck", checked},
                 {"creation", made},
                 {"saving and loading", saved_and_loaded}};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static double from_the_start(int i)
{
    tn_scope s = tn_scope_begin();
    tn_seed(3);
    double d = scenarios[i].run();
    tn_scope_end(s);
    return d;
}

static int64_t points;

BARE_TEST_EACH(every_allocation, SCENARIOS)
{
    tn_faulty_memory_begin();
    const double want = from_the_start(_i);
    ck_assert_msg(tn_error() == TN_OK && isfinite(want), "%s: %s", scenarios[_i].name, tn_error_message());
    const int64_t held = tn_memory_blocks();
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        bool reached = true;
        for (int64_t n = 0; reached; n += tn_test_slow() ? 7 : 1) {
            tn_fail_memory(n, for_ever);
            double got = from_the_start(_i);
            reached = tn_memory_calls() > n;
            tn_fail_memory(-1, false);
            if (reached) {
                ck_assert_msg(tn_error() == TN_ENOMEM, "%s: allocation %lld failed: %s (%s)", scenarios[_i].name,
                              (long long)n, tn_status_name(tn_error()), tn_error_message());
                ck_assert_msg(strstr(tn_error_message(), "out of memory"), "%s: '%s'", scenarios[_i].name,
                              tn_error_message());
                points++;
                tn_clear_error();
                got = from_the_start(_i);
            }
            ck_assert_msg(tn_error() == TN_OK, "%s: the retry: %s", scenarios[_i].name, tn_error_message());
            ck_assert_msg(!memcmp(&got, &want, sizeof got), "%s, allocation %lld: the retry gives %.17g, not %.17g",
                          scenarios[_i].name, (long long)n, got, want);
            ck_assert_msg(tn_memory_blocks() <= held, "%s, allocation %lld: blocks stayed behind", scenarios[_i].name,
                          (long long)n);
        }
    }
    tn_faulty_memory_end();
}

BARE_TEST(total)
{
    printf("%d scenarios, %lld failed allocations\n", SCENARIOS, (long long)points);
    ck_assert_int_ge(points, tn_test_slow() ? 333 : 1000);
}

/* A step that fails half way is repeated with the same draws: generators are reset to the start of the tape. */
BARE_TEST(a_failed_step_can_be_repeated)
{
    tn_faulty_memory_begin();
    double want = NAN;
    bool   reached = true;
    for (int64_t n = -1; reached; n++) { /* -1: nothing fails */
        tn_scope all = tn_scope_begin();
        tn_seed(5);
        tn_tensor *w = param(6, 6), *x = tn_normal(TN_SHAPE(5, 6), 0, 1);
        for (int attempt = 0; attempt < 2; attempt++) {
            tn_scope   s = tn_scope_begin();
            tn_tensor *y = tn_sum(tn_dropout(tn_matmul(x, w), 0.5)); /* only the backward runs out of memory */
            if (attempt == 0) tn_fail_memory(n, false);
            tn_status status = tn_backward(y);
            if (attempt == 0) reached = n < 0 || tn_memory_calls() > n;
            tn_fail_memory(-1, false);
            tn_scope_end(s);
            if (status == TN_OK) break;
            ck_assert_int_eq(attempt, 0);
            ck_assert_int_eq(status, TN_ENOMEM);
            ck_assert_ptr_null(tn_grad(w));
            tn_clear_error();
        }
        double got = digest(tn_grad(w));
        tn_scope_end(all);
        if (n < 0) want = got;
        ck_assert_double_eq(got, want);
    }
    tn_faulty_memory_end();
}

/* ---- the cache and its statistics -------------------------------------------------------------------------------- */

TEST(accounts)
{
    tn_zeros(TN_SCALAR); /* allocates the scope stack */
    tn_trim();
    for (int i = 0; i < 66; i++) { /* fills the quarantine */
        const tn_scope each = tn_scope_begin();
        tn_zeros(TN_SCALAR);
        tn_scope_end(each);
    }
    tn_memory before = tn_memory_now();
    tn_scope  s = tn_scope_begin();
    tn_reset_peak();
    tn_zeros(TN_SHAPE(1000, 100));
    tn_memory during = tn_memory_now();
    ck_assert_uint_ge(during.live, before.live + 400000);
    ck_assert_uint_le(during.live, before.live + 460000); /* at most an eighth is unused */
    ck_assert_uint_ge(during.peak, during.live);
    ck_assert_int_eq(during.tensors, before.tensors + 1);
    tn_scope_end(s);
    tn_memory after = tn_memory_now();
    ck_assert_uint_eq(after.live, before.live);
    ck_assert_int_eq(after.cached >= 400000, TN_TEST_CACHE);
    ck_assert_uint_ge(after.peak, during.live);
    s = tn_scope_begin();
    tn_zeros(TN_SHAPE(1000, 100));
    ck_assert_int_eq(tn_memory_now().mallocs == after.mallocs, TN_TEST_CACHE);
    tn_scope_end(s);
    tn_trim();
    ck_assert_uint_eq(tn_memory_now().cached, 0);
}

TEST(limits)
{
    tn_memory now = tn_memory_now();
    tn_set_memory_limit(now.live + 100000);
    ck_assert_ptr_nonnull(tn_zeros(TN_SHAPE(1000)));
    ck_assert_ptr_null(tn_zeros(TN_SHAPE(1000, 1000)));
    ck_assert_int_eq(tn_error(), TN_ENOMEM);
    ck_assert_msg(strstr(tn_error_message(), "would exceed the limit of"), "%s", tn_error_message());
    tn_clear_error();
    tn_set_memory_limit(0);
    ck_assert_ptr_nonnull(tn_zeros(TN_SHAPE(1000, 1000)));
    tn_set_cache_limit(0);
    ck_assert_uint_eq(tn_memory_now().cached, 0);
    tn_scope s = tn_scope_begin();
    tn_zeros(TN_SHAPE(1000));
    tn_scope_end(s);
    ck_assert_uint_eq(tn_memory_now().cached, 0);
    tn_set_cache_limit(SIZE_MAX);
    tn_empty(TN_SHAPE(1LL << 40, 8)); /* 2^45 bytes: more than any machine has */
    ck_error_code(TN_ENOMEM);
}

TEST(allocator_only_when_empty)
{
    tn_tensor *t = tn_keep(tn_zeros(TN_SHAPE(3)));
    ck_assert_int_eq(tn_set_allocator(NULL), TN_ESTATE);
    ck_assert_msg(strstr(tn_error_message(), "bytes of the old allocator are still in use"), "%s", tn_error_message());
    tn_clear_error();
    tn_drop(t);
}

TEST(an_allocator_that_changes_errno)
{
    tn_faulty_memory_begin();
    const tn_scope s = tn_scope_begin();
    errno = 77;
    tn_zeros(TN_SHAPE(300, 300));
    ck_assert_int_eq(errno, 77);
    tn_fail_memory(0, true);
    ck_assert(!tn_zeros(TN_SHAPE(300, 300)));
    ck_assert_int_eq(errno, 77);
    tn_clear_error();
    errno = 77;
    tn_scope_end(s);
    ck_assert_int_eq(errno, 77);
    errno = 0;
    tn_faulty_memory_end();
}

static void *another(void *unused)
{
    (void)unused;
    tn_scope   s = tn_scope_begin();
    tn_tensor *t = tn_zeros(TN_SHAPE(500, 500));
    tn_keep(t);
    tn_scope_end(s);
    return t; /* its scope stack and its cache are freed with it, the tensor stays */
}

TEST(threads_leave_nothing)
{
    tn_memory before = tn_memory_now();
    for (int i = 0; i < 10; i++) {
        pthread_t t;
        void     *made;
        pthread_create(&t, NULL, another, NULL);
        pthread_join(t, &made);
        ck_assert_int_eq(tn_memory_now().tensors, before.tensors + 1);
        tn_drop(made);
    }
    ck_assert_uint_eq(tn_memory_now().live, before.live);
}

static void  look_at(int64_t from, int64_t to, void *user) { (void)from, (void)to, (void)user; }
static void *with_workers(void *unused)
{
    tn_set_threads(3);
    tn_parallel_for(3, 1, look_at, NULL);
    return unused;
}

/* A thread ends its workers, while another thread makes its own. */
TEST(threads_with_workers_end)
{
    for (int i = 0; i < 10; i++) {
        pthread_t t[2];
        for (int k = 0; k < 2; k++) ck_assert_int_eq(pthread_create(&t[k], NULL, with_workers, NULL), 0);
        for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
    }
}

typedef struct {
    pthread_barrier_t made, seen;
    tn_tensor        *t[200];
} handover;

static void *makes_and_waits(void *user)
{
    handover *h = user;
    tn_scope  s = tn_scope_begin();
    for (int i = 0; i < 200; i++) h->t[i] = tn_keep(tn_zeros(TN_SHAPE(250)));
    tn_scope_end(s);
    pthread_barrier_wait(&h->made);
    pthread_barrier_wait(&h->seen);
    return NULL;
}

/* A running thread may withhold its last 64 KiB; one that has ended may not, whichever thread frees its tensors. */
TEST(accounts_of_another_thread)
{
    static handover h;
    const size_t    each = 1000; /* minimum */
    pthread_t       t;
    tn_memory       before = tn_memory_now();
    pthread_barrier_init(&h.made, NULL, 2), pthread_barrier_init(&h.seen, NULL, 2);
    ck_assert_int_eq(pthread_create(&t, NULL, makes_and_waits, &h), 0);
    pthread_barrier_wait(&h.made);
    const tn_memory during = tn_memory_now();
    ck_assert_uint_ge(during.live, before.live + 200 * each - 65536);
    for (int i = 0; i < 100; i++) tn_drop(h.t[i]);
    ck_assert_int_le(tn_memory_now().tensors, before.tensors + 100);
    pthread_barrier_wait(&h.seen);
    pthread_join(t, NULL);
    const tn_memory after = tn_memory_now();
    ck_assert_int_eq(after.tensors, before.tensors + 100);
    ck_assert_uint_ge(after.live, before.live + 100 * each);
    ck_assert_uint_ge(after.peak, before.live + 200 * each - 65536);
    for (int i = 100; i < 200; i++) tn_drop(h.t[i]);
    ck_assert_int_eq(tn_memory_now().tensors, before.tensors);
    ck_assert_uint_eq(tn_memory_now().live, before.live);
}

static void *makes_until_it_may_not(void *made)
{
    tn_scope s = tn_scope_begin();
    int     *n = made;
    while (*n < 200 && tn_zeros(TN_SHAPE(250))) (*n)++;
    tn_clear_error();
    tn_scope_end(s);
    return NULL;
}

/* Sizes of which no cached block fits the next: without the limit all would stay cached. */
TEST(a_limit_counts_the_cache)
{
    const int64_t sizes[] = {1 << 20, 3 << 19, 1 << 19, 3 << 18, 1 << 18, 3 << 17};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < SIZES; i++) {
        const tn_scope s = tn_scope_begin();
        ck_assert_ptr_nonnull(tn_empty(TN_SHAPE(sizes[i] / 2)));
        tn_scope_end(s);
    }
    const size_t before = tn_memory_now().cached, limit = tn_memory_now().live + (5 << 20);
    if (TN_TEST_CACHE) ck_assert_uint_gt(before, limit);
    tn_set_memory_limit(limit);
    for (int i = 0; i < 3 * SIZES; i++) {
        const tn_memory m = tn_memory_now();
        ck_assert_uint_le(m.live + m.cached, limit);
        const tn_scope s = tn_scope_begin();
        ck_assert_ptr_nonnull(tn_empty(TN_SHAPE(sizes[i % SIZES] / 2)));
        const tn_memory inside = tn_memory_now();
        ck_assert_uint_le(inside.live + inside.cached, limit);
        tn_scope_end(s);
    }
    tn_set_memory_limit(0);
}

/* With a limit every byte is reported immediately, so several threads cannot exceed it together. */
TEST(a_limit_is_for_all_threads)
{
    pthread_t t;
    int       here = 0, there = 0;
    tn_scope  s = tn_scope_begin();
    tn_set_memory_limit(tn_memory_now().live + 60000);
    for (; here < 25; here++) ck_assert_ptr_nonnull(tn_zeros(TN_SHAPE(250)));
    ck_assert_int_eq(pthread_create(&t, NULL, makes_until_it_may_not, &there), 0);
    pthread_join(t, NULL);
    tn_set_memory_limit(0);
    ck_assert_int_ge(there, 5);
    ck_assert_int_lt(1000 * (here + there), 60000);
    tn_scope_end(s);
}
