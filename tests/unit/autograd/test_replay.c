/* test_replay.c — recorded steps: the same bits as the ops, for values that change; and errors where a replay would not
 * repeat what the step does. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include <pthread.h>

typedef struct {
    tn_tensor *x, *y, *w, *b, *index;
} data;

static data made(void)
{
    tn_seed(3);
    return (data){.x = tn_normal(TN_SHAPE(4, 6), 0, 1),
                  .y = tn_normal(TN_SHAPE(6, 4), 0, 1),
                  .w = tn_normal(TN_SHAPE(5, 6), 0, 1),
                  .b = tn_normal(TN_SHAPE(5), 0, 1),
                  .index = tn_randint(TN_SHAPE(4), 0, 6)};
}

static void change(data *d, int round)
{
    tn_seed((uint64_t)round);
    tn_copy_(d->x, tn_normal(TN_SHAPE(4, 6), 0, 1));
    tn_copy_(d->y, tn_normal(TN_SHAPE(6, 4), 0, 1));
    tn_copy_(d->w, tn_normal(TN_SHAPE(5, 6), 0, 1));
    tn_copy_(d->index, tn_randint(TN_SHAPE(4), 0, 6));
}

static void same(const tn_tensor *a, const tn_tensor *b)
{
    ck_assert(a && b && tn_dtype_of(a) == tn_dtype_of(b) && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)));
    for (int64_t i = 0; i < tn_numel(a); i++) ck_assert_msg(tn_get(a, i) == tn_get(b, i), "element %d", (int)i);
}

/* The step on fresh tensors equals its replays, with 1 and 3 threads. */
static void check(tn_tensor *(*step)(void *user))
{
    for (int threads = 1; threads <= 3; threads += 2) {
        data d = made();
        tn_set_threads(threads);
        tn_replay *r = tn_replay_record(step, &d);
        ck_assert_msg(r != NULL, "%s", tn_error_message());
        for (int round = 0; round < 4; round++) {
            if (round) change(&d, round);
            tn_tensor *got = tn_clone(tn_replay_run(r));
            same(got, step(&d));
        }
        tn_replay_free(r);
        tn_set_threads(0);
    }
    ck_assert(tn_error() == TN_OK);
}

static tn_tensor *small(void *user)
{
    const data *d = user;
    return tn_softmax(tn_linear_gelu(d->x, d->w, d->b), -1);
}

/* Views, a view that must copy, a constant made in the step, a reduction, an in-place op, gathered rows. */
static tn_tensor *many(void *user)
{
    const data *d = user;
    tn_tensor  *t = tn_transpose(d->y, 0, 1), *flat = tn_reshape(t, TN_SHAPE(24)), *own = tn_clone(flat);
    tn_mul_scalar_(own, 0.5);
    tn_copy_(tn_narrow(own, 0, 2, 3), tn_narrow(flat, 0, 5, 3));
    tn_tensor *sum = tn_add(tn_view(own, TN_SHAPE(4, 6)), d->x);
    tn_tensor *rows = tn_index_select(tn_transpose(d->x, 0, 1), 0, d->index);
    tn_tensor *all = tn_cat(1, sum, tn_transpose(rows, 0, 1));
    return tn_add(tn_log_softmax(all, -1), tn_mul(tn_mean(all), tn_ones(TN_SHAPE(4, 1))));
}

TEST(same_bits)
{
    check(small);
    check(many);
}

/* ---- what a replay would not repeat ------------------------------------------------------------------------------ */

static tn_tensor *reads(void *user)
{
    const data *d = user;
    return tn_add_scalar(d->x, tn_item(tn_sum(d->x)));
}
static tn_tensor *copies_from_the_host(void *user)
{
    const float two[2] = {1, 2};
    (void)user;
    return tn_from_data(TN_F32, TN_SHAPE(2), two);
}
static tn_tensor *fills(void *user)
{
    const data *d = user;
    tn_fill(d->x, 2);
    return tn_mul(d->x, d->x);
}
static tn_tensor *writes(void *user)
{
    const data *d = user;
    float      *x = tn_data_mut(d->x);
    if (x) x[0] = 1;
    return tn_mul(d->x, d->x);
}
static tn_tensor *draws(void *user) { return tn_dropout(((data *)user)->x, 0.5); }
static tn_tensor *overlaps(void *user)
{
    const data *d = user;
    tn_tensor  *own = tn_clone(tn_view(d->x, TN_SHAPE(24)));
    return tn_add_(tn_narrow(own, 0, 1, 8), tn_narrow(own, 0, 0, 8));
}
static tn_tensor *adds_to_a_constant(void *user)
{
    tn_tensor *own = tn_zeros(TN_SHAPE(3, 6));
    tn_add_(tn_select(own, 0, 1), tn_select(((data *)user)->x, 0, 0));
    return own;
}
static tn_tensor *nothing(void *user) { return (void)user, NULL; }
static tn_tensor *nests(void *user)
{
    tn_replay_free(tn_replay_record(small, user));
    return small(user);
}
static void body(int64_t from, int64_t to, void *user)
{
    for (int64_t i = from; i < to; i++) tn_mul(((data *)user)->x, ((data *)user)->x);
}
static tn_tensor *in_parallel(void *user)
{
    tn_parallel_for(8, 1, body, user);
    return tn_mul(((data *)user)->x, ((data *)user)->x);
}
#define NOT ": not while tn_replay_record records a step: a replay repeats ops only, and would not repeat this"

TEST(refused)
{
    data d = made();
    ck_refused(tn_replay_record(reads, &d), TN_EUNSUPPORTED, "tn_item" NOT);
    ck_refused(tn_replay_record(copies_from_the_host, &d), TN_EUNSUPPORTED, "tn_from_data" NOT);
    ck_refused(tn_replay_record(fills, &d), TN_EUNSUPPORTED, "tn_fill" NOT);
    ck_refused(tn_replay_record(writes, &d), TN_EUNSUPPORTED, "tn_data_mut" NOT);
    ck_refused(
        tn_replay_record(adds_to_a_constant, &d), TN_EUNSUPPORTED,
        "tn_replay_record: add_ changes a tensor that the step makes without an op (tn_zeros, tn_full); a replay "
        "would change it again; use add, or an op's result");
    ck_refused(tn_replay_record(nests, &d), TN_EUNSUPPORTED, "tn_replay_record" NOT);
    ck_refused(tn_replay_record(draws, &d), TN_EUNSUPPORTED,
               "tn_replay_record: the step draws random numbers, and a replay would repeat the same ones; draw them "
               "before the step, or call tn_eval if it is dropout");
    ck_refused(tn_replay_record(overlaps, &d), TN_EUNSUPPORTED,
               "tn_replay_record: add_ reads the memory that it overwrites; tn_clone input 1");
    ck_refused(tn_replay_record(nothing, &d), TN_EINVAL, "tn_replay_record: the step returned NULL");
    ck_refused(tn_replay_record(NULL, &d), TN_EINVAL, "tn_replay_record: step is NULL");
    tn_set_threads(3);
    tn_replay *r = tn_replay_record(in_parallel, &d);
    if (r) tn_clear_error(), tn_replay_free(r); /* all blocks ran in this thread */
    else ck_error(TN_EUNSUPPORTED, "mul" NOT);
    tn_set_threads(0);
    tn_add(d.x, d.x); /* recording has ended */
    ck_assert(tn_error() == TN_OK);
    ck_refused(tn_replay_run(NULL), TN_EINVAL, "tn_replay_run: replay is NULL");
    tn_replay_free(NULL);
}

static tn_tensor *of_two(void *user)
{
    tn_tensor *const *t = user;
    return tn_mul(t[0], t[1]);
}

static tn_tensor *selects(void *user)
{
    const data *d = user;
    return tn_index_select(d->y, 0, d->index);
}
static tn_tensor *counts(void *user) { return tn_nonzero(((data *)user)->index); }

/* Values that the rule for shapes checks are checked in each replay. */
TEST(values_that_no_longer_fit)
{
    data d = made();
    tn_fill(d.index, 1);
    tn_replay *r = tn_replay_record(selects, &d), *n = tn_replay_record(counts, &d);
    ck_assert(tn_replay_run(r) && tn_replay_run(n));
    tn_fill(d.index, 6);
    ck_refused(tn_replay_run(r), TN_EINDEX, "index_select: index 6 at [0] is outside 0 … 5");
    tn_fill(d.index, 0);
    ck_refused(tn_replay_run(n), TN_ESTATE,
               "tn_replay_run: the result of nonzero is now i64 [0, 1], and was i64 [4, 1] when the step was recorded; "
               "record it again");
    ck_assert(tn_replay_run(r) != NULL);
    tn_replay_free(r), tn_replay_free(n);
}

static void *run_elsewhere(void *r)
{
    ck_refused(tn_replay_run(r), TN_ESTATE,
               "tn_replay_run: the step was recorded by another thread; record it in this one");
    return NULL;
}

TEST(changed)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *t[2] = {tn_keep(tn_ones(TN_SHAPE(2, 3))), tn_keep(tn_ones(TN_SHAPE(2, 3)))};
    tn_scope_end(s);
    tn_replay *r = tn_replay_record(of_two, t);
    /* a result that the tape has saved, and a replay then overwrites, is an error in the backward */
    tn_tensor *leaf = tn_requires_grad(tn_ones(TN_SHAPE(2, 3)));
    tn_tensor *loss = tn_sum(tn_mul(leaf, tn_replay_run(r)));
    ck_assert_ptr_nonnull(tn_replay_run(r));
    ck_assert(tn_backward(loss) != TN_OK);
    ck_error(TN_ESTATE,
             "backward: tn_replay_run changed in place the tensor saved by mul (input 1); change it before the "
             "mul, or after the backward");
    pthread_t other;
    ck_assert_int_eq(pthread_create(&other, NULL, run_elsewhere, r), 0);
    pthread_join(other, NULL);
    /* other memory */
    ck_assert(tn_adopt(t[1], tn_full(TN_SHAPE(2, 3), 2)) == TN_OK);
    tn_tensor *y = tn_replay_run(r);
    if (y) ck_assert_double_eq(tn_get(y, 0), 2);
    else ck_error_has(TN_ESTATE, "given other memory");
    tn_replay_free(r);
    /* freed by the owner: the step used a weight that is no longer there */
    r = tn_replay_record(of_two, t);
    tn_drop(t[1]);
    ck_refused(tn_replay_run(r), TN_ESTATE,
               "tn_replay_run: f32 [2, 3], which the step used, has been freed by its owner since; record the "
               "step again");
    tn_replay_free(r);
    tn_drop(t[0]);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static double short_of_memory(int i)
{
    const tn_scope s = tn_scope_begin();
    data           d = made();
    tn_replay     *r = tn_replay_record(i ? many : small, &d);
    tn_tensor     *y = r ? tn_replay_run(r) : NULL;
    const double   sum = y ? tn_get(tn_sum(y), 0) : 0;
    tn_replay_free(r);
    tn_scope_end(s);
    return sum;
}

BARE_TEST(memory) { tn_each_allocation_fails(short_of_memory, 1, 1, 8, 20); }

/* A profile times each op of a replay, and anomaly detection finds the op that made NaN. */
TEST(tools_observe_replays)
{
    data       d = made();
    tn_replay *r = tn_replay_record(small, &d);
    ck_assert_msg(r != NULL, "%s", tn_error_message());
    int64_t count[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        tn_profile *p = tn_profile_begin();
        if (i) tn_replay_run(r);
        else small(&d);
        tn_profile_end(p);
        for (tn_profile_row row; tn_profile_row_at(p, count[i], &row);) count[i]++;
        tn_profile_free(p);
    }
    ck_assert_int_gt(count[1], 0);
    ck_assert_int_le(count[1], count[0]);
    tn_set(d.x, 0, NAN);
    tn_detect_anomaly(true);
    ck_refused_has(tn_replay_run(r), TN_ENUMERIC, "NaN");
    tn_detect_anomaly(false);
    ck_assert(tn_replay_run(r) != NULL);
    tn_replay_free(r);
}
