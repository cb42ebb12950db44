/* test_fit_exchange.c — between the backward pass and the step: accumulated batches, .exchange with access to the
 * gradients, a failing .exchange, and two ranks with one shard each, which learn the same as one rank from all data. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "models/models.h"
#include "tests/common/faults.h"
#include "tests/common/fit_case.h"
#include <pthread.h>

/* ---- gradients before the step ----------------------------------------------------------------------------------- */

typedef struct {
    double    by;
    int64_t   calls, fails_at;
    tn_status with;
    bool      raises;
} scaling;
static tn_status scale(void *module, tn_optimizer *o, int64_t step, void *user)
{
    scaling *s = user;
    ck_assert(o && step == ++s->calls);
    for (tn_each p = tn_parameters((tn_sequential *)module); tn_next(&p);) tn_mul_scalar_(tn_grad(p.tensor), s->by);
    if (step != s->fails_at) return TN_OK;
    return s->raises ? tn_raise(s->with, "the other machine is gone") : s->with;
}

/* Eight rows, in consecutive batches of these sizes. */
typedef struct {
    tn_tensor *x, *y;
    int64_t    size[3], at, batch;
    bool       weighs;
} uneven;
static bool uneven_next(void *user, tn_batch *b)
{
    uneven *u = user;
    if (u->at == 8) return u->at = u->batch = 0, false;
    const int64_t n = u->size[u->batch++];
    b->x = tn_narrow(u->x, 0, u->at, n), b->y = tn_narrow(u->y, 0, u->at, n), u->at += n;
    if (u->weighs) b->items = 1, b->weight = (double)n; /* a source whose loss is not a mean over its items */
    return true;
}
static tn_tensor *uneven_loss(void *net, const tn_batch *b, void *user)
{
    return (void)user, tn_mse_loss(tn_module_call(net, b->x), b->y);
}

AROUND_TESTS(tn_faulty_files_begin, tn_faulty_files_end);

/* The batches of a step count as one batch: each row has the same weight, whatever the size of its batch. */
TEST(batches_of_a_step_count_by_what_they_hold)
{
    static const struct {
        int64_t size[3];
        int     parts;
        bool    weighs;
    } cut[] = {{{8}, 1, false}, {{1, 5, 2}, 3, false}, {{4, 1, 3}, 3, true}};
    double     loss[3];
    tn_linear *net[3];
    tn_seed(2);
    tn_tensor *x = tn_normal(TN_SHAPE(8, 3), 0, 1), *y = tn_normal(TN_SHAPE(8, 1), 0, 1);
    for (int i = 0; i < 3; i++) {
        uneven u = {.x = x, .y = y, .weighs = cut[i].weighs};
        memcpy(u.size, cut[i].size, sizeof u.size);
        tn_seed(3);
        net[i] = tn_linear_new(.in = 3, .out = 1);
        const tn_fit_result r = tn_fit(net[i], .train = {.next = uneven_next, .user = &u}, .loss = uneven_loss,
                                       .lr = 0.1, .warmup = 0, .accumulate = cut[i].parts, .steps = 5);
        ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
        loss[i] = r.loss;
        ck_assert(fabs(loss[i] - loss[0]) < 1e-6 && tn_allclose(net[i]->weight, net[0]->weight, 1e-5, 1e-6));
    }
    for (int i = 0; i < 3; i++) tn_module_free(net[i]);
}

/* The hook gets the sum over all batches of a step, and its changes are clipped and used by the step. */
TEST(exchange_sees_whole_gradients)
{
    fit_case c = fit_case_begin(0), h = fit_case_begin(0), before = fit_case_begin(0);
    scaling  half = {.by = 0.01}, by_hand = {.by = 0.01};
    tn_seed(5);
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .optimizer = c.o,
                             .accumulate = 3, .steps = 7, .exchange = scale, .exchange_user = &half);
    ck_assert_msg(r.why == TN_FIT_DONE && half.calls == 7, "%s", tn_error_message());
    tn_seed(5);
    for (int step = 0; step < 7; step++) { /* by hand: between tn_backward and tn_step */
        fit_case_backward(&h);
        scale(h.net, h.o, step + 1, &by_hand);
        tn_step(h.o);
    }
    tn_each from = tn_parameters(before.net);
    for (tn_each p = tn_parameters(c.net), q = tn_parameters(h.net); tn_next(&p) && tn_next(&q) && tn_next(&from);)
        ck_assert(tn_same_bits(p.tensor, q.tensor) && !tn_same_bits(p.tensor, from.tensor));
    fit_case_end(&c), fit_case_end(&h), fit_case_end(&before);
}

TEST(exchange_fails)
{
    for (int raises = 0; raises < 2; raises++) {
        fit_case c = fit_case_begin(0), whole = fit_case_begin(0);
        scaling  s = {.by = 1, .fails_at = 5, .with = TN_EIO, .raises = raises}, fine = {.by = 1};
        char     folder[20];
        snprintf(folder, sizeof folder, "exchange%d", raises);
#define RUN(c, s)                                                                                     \
    tn_fit((c)->net, .train = (c)->train, .loss = fit_case_loss, .user = (c), .optimizer = (c)->o,    \
           .schedule = (c)->lr, .ema = (c)->ema, .steps = 8, .exchange = scale, .exchange_user = (s), \
           .folder = tn_test_file(folder), .save_every = 2, .resume = true)
        tn_seed(5);
        tn_fit_result r = RUN(&c, &s);
        ck_assert(r.why == TN_FIT_FAILED && r.steps == 4 && s.calls == 5);
        for (tn_each p = tn_parameters(c.net); tn_next(&p);) ck_assert(!tn_grad(p.tensor));
        if (raises) ck_error(TN_EIO, "the other machine is gone");
        else ck_error(TN_EIO, "tn_fit: .exchange returned TN_EIO at step 5, but raised no error");
        fit_case_end(&c);
        c = fit_case_begin(0);
        s = (scaling){.by = 1, .calls = 4};
        r = RUN(&c, &s);
        ck_assert_msg(r.why == TN_FIT_DONE && r.begin == 4 && r.steps == 8, "%s", tn_error_message());
        folder[0] = 'w';
        tn_seed(5);
        RUN(&whole, &fine);
#undef RUN
        ck_assert(fit_case_same_bits(&c, &whole));
        fit_case_end(&c), fit_case_end(&whole);
    }
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* Two ranks, here two threads: each has its shard, and .exchange adds both gradients. 21 rows in batches of 5: rank 0
 * has no row of the last batch. */
enum { RANKS = 2, WEIGHTS = 3 * 4 + 4 + 4 + 1 };
typedef struct {
    pthread_barrier_t all;
    float             found[RANKS][WEIGHTS], weights[RANKS + 1][WEIGHTS];
    tn_fit_result     result[RANKS + 1];
} team;
typedef struct {
    team *team;
    int   rank; /* RANKS: alone */
} member;

static tn_tensor *share_of_mean(void *module, const tn_batch *b, void *user)
{
    const member *m = user;
    ck_assert(b->rows > 0 && tn_size(b->x, 0) == b->rows);
    ck_assert_int_eq(tn_numel(tn_batch_get(b, "weight")), b->rows);
    tn_tensor *d = tn_square(tn_sub(tn_call((tn_sequential *)module, b->x), b->y));
    return (void)m, tn_div_scalar(tn_sum(tn_mul(d, tn_batch_get(b, "weight"))), (double)b->whole);
}
static tn_status add_up(void *module, tn_optimizer *o, int64_t step, void *user)
{
    const member *m = user;
    float         sum[WEIGHTS], *mine = m->team->found[m->rank];
    int64_t       at = 0;
    (void)o, (void)step;
    memset(mine, 0, sizeof m->team->found[0]);
    for (tn_each p = tn_parameters((tn_sequential *)module); tn_next(&p); at += tn_numel(p.tensor))
        for (int64_t i = 0; tn_grad(p.tensor) && i < tn_numel(p.tensor); i++)
            mine[at + i] = (float)tn_get(tn_grad(p.tensor), i);
    pthread_barrier_wait(&m->team->all);
    for (int i = 0; i < WEIGHTS; i++) sum[i] = m->team->found[0][i] + m->team->found[1][i];
    at = 0;
    for (tn_each p = tn_parameters((tn_sequential *)module); tn_next(&p); at += tn_numel(p.tensor)) {
        tn_tensor *g = tn_from_data(TN_F32, tn_shape_of(p.tensor), sum + at);
        if (tn_grad(p.tensor)) tn_copy_from(tn_grad(p.tensor), g);
        else tn_backward(tn_sum(tn_mul(p.tensor, g))); /* a rank without rows has no gradient yet */
    }
    pthread_barrier_wait(&m->team->all);
    return tn_error();
}

static void *run_rank(void *user)
{
    const member  *m = user;
    team          *t = m->team;
    const tn_scope s = tn_scope_begin();
    tn_seed(3);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 3, .out = 4));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_linear_new(.in = 4, .out = 1));
    tn_tensor  *x = tn_normal(TN_SHAPE(21, 3), 0, 1), *y = tn_normal(TN_SHAPE(21, 1), 0, 1);
    tn_dataset *rows = tn_dataset_new(.x = x, .y = y, .fields = {{"weight", tn_uniform(TN_SHAPE(21, 1), 0, 2)}},
                                      .batch = 5, .shuffle = true);
    tn_source   train = tn_dataset_source(rows);
    const bool  alone = m->rank == RANKS;
    tn_source_shard(&train, alone ? (tn_shard){.rank = 0, .of = 1} : (tn_shard){.rank = m->rank, .of = RANKS});
    t->result[m->rank] = tn_fit(net, .train = train, .loss = share_of_mean, .user = user, .epochs = 3,
                                .exchange = alone ? NULL : add_up, .exchange_user = user);
    int64_t at = 0;
    for (tn_each p = tn_parameters(net); tn_next(&p); at += tn_numel(p.tensor))
        memcpy(t->weights[m->rank] + at, tn_data(p.tensor), (size_t)tn_numel(p.tensor) * sizeof(float));
    tn_dataset_free(rows), tn_free(net);
    tn_scope_end(s);
    return NULL;
}

TEST(two_ranks_are_one)
{
    static team t;
    member      members[RANKS + 1];
    pthread_t   threads[RANKS];
    pthread_barrier_init(&t.all, NULL, RANKS);
    for (int i = 0; i <= RANKS; i++) members[i] = (member){&t, i};
    for (int i = 0; i < RANKS; i++) ck_assert(!pthread_create(&threads[i], NULL, run_rank, &members[i]));
    run_rank(&members[RANKS]);
    for (int i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&t.all);
    for (int i = 0; i <= RANKS; i++) ck_assert(t.result[i].why == TN_FIT_DONE && t.result[i].steps == 15);
    ck_assert(!memcmp(t.weights[0], t.weights[1], sizeof t.weights[0]));
    for (int i = 0; i < WEIGHTS; i++)
        ck_assert_msg(fabs(t.weights[0][i] - t.weights[RANKS][i]) < 1e-5, "weight %d: %.9g beside %.9g", i,
                      (double)t.weights[0][i], (double)t.weights[RANKS][i]);
    tn_trim();
}
