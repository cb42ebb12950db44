/* test_replica_step.c — steps of a replica, with threads as ranks: an error of one rank changes no weight, options of
 * the optimizer that a replica cannot follow are rejected, and gradients are dropped when a batch is cancelled. */
#include "tests/common/check_main.h"

#include "models/models.h"
#include "parallel/parallel.h"
#include "tests/common/thread_ranks.h"

/* A batch of which each shard's gradient is `slope` for each element of m's weight. */
static void batch(tn_replica *r, tn_linear *m, double slope)
{
    for (tn_part p = {0}; tn_replica_next(r, &p);)
        tn_replica_backward(r, tn_mul_scalar(tn_add(tn_sum(m->weight), tn_sum(m->bias)), slope), 1);
}

static void check(int ranks, tn_rank_body *body, void *user, const char *expected)
{
    char text[TN_THREAD_RANKS][1100];
    tn_thread_ranks(ranks, body, user, 0, text);
    for (int i = 0; i < ranks; i++) {
        const char *at = strstr(text[i], expected);
        ck_assert_msg(*expected ? at != NULL : !*text[i], "rank %d of %d: '%s', expected '%s'", i, ranks, text[i],
                      expected);
    }
}

/* ---- accumulation ------------------------------------------------------------------------------------------------ */

/* Two batches with gradients 1 and 3 and one update: without an error the weight would fall by their mean, 2. */
static void accumulates(tn_world *w, void *user)
{
    const bool    plain = *(const bool *)user; /* tn_step instead of tn_replica_step */
    tn_linear    *m = tn_linear_new(.in = 1, .out = 1);
    tn_optimizer *o = tn_sgd_new(m, .lr = 1);
    tn_replica   *r = tn_replica_new(w, m, .shards = 2);
    const double  before = tn_get(m->weight, 0);
    tn_accumulate(o, 2);
    for (int i = 0; i < 2; i++) {
        batch(r, m, 1 + 2 * i);
        if (plain) tn_step(o);
        else tn_replica_step(r, o);
    }
    ck_assert(tn_error() == TN_EUNSUPPORTED && tn_get(m->weight, 0) == before);
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

TEST(accumulation_is_rejected)
{
    for (int ranks = 1; ranks < 3; ranks++) {
        check(ranks, accumulates, &(bool){true}, "tn_replica_next: the gradient of the batch before waits for an");
        check(ranks, accumulates, &(bool){false}, "tn_replica_step: the optimizer accumulates 2 batches");
    }
}

/* ---- an error of one rank ---------------------------------------------------------------------------------------- */

typedef struct {
    bool zero;
    int  kind;
} how;
static tn_optimizer *optimizer_of(const how *h, tn_linear *m)
{
    return h->kind == 0   ? tn_adamw_new(m, .lr = 0.1)
           : h->kind == 1 ? tn_muon_new(m, .lr = 0.1)
                          : tn_lamb_new(m, .lr = 0.1);
}

/* On rank 1 the shape of the bias changes before the step, which therefore fails there alone, as without memory. */
static void fails_on_one(tn_world *w, void *user)
{
    const how    *h = user;
    tn_linear    *m = tn_linear_new(.in = 64, .out = 8);
    tn_optimizer *o = optimizer_of(h, m);
    tn_replica   *r = tn_replica_new(w, m, .shards = 3, .zero = h->zero);
    batch(r, m, 1);
    tn_tensor     *before = tn_clone(tn_detach(m->weight)), *bias = tn_take(tn_clone(tn_detach(m->bias)));
    const tn_scope s = tn_no_grad_begin();
    if (tn_world_rank(w) == 2) tn_adopt(m->bias, tn_zeros(TN_SHAPE(9)));
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_replica_step(r, o);
    ck_assert(tn_error() != TN_OK);
    tn_clear_error();
    ck_assert(tn_allclose(before, m->weight, 0, 0) && tn_steps(o) == 0);
    if (tn_world_rank(w) == 2) tn_adopt(m->bias, bias);
    tn_scope_end(s);
    ck_assert(!tn_optimizer_state(o, m->weight, "exp_avg")); /* the step left no state */
    batch(r, m, 1);
    tn_replica_step(r, o);
    ck_assert(tn_error() != TN_OK || (tn_steps(o) == 1 && !tn_allclose(before, m->weight, 0, 0)));
    tn_drop(bias);
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

TEST_EACH(an_error_of_one_rank_changes_no_weight, 6)
{
    how h = {.zero = _i % 2, .kind = _i / 2};
    check(3, fails_on_one, &h, "");
}

/* ---- .zero ------------------------------------------------------------------------------------------------------- */

static void own_clip(tn_world *w, void *user)
{
    const int     what = *(const int *)user;
    tn_linear    *m = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *o = what == 0   ? tn_sgd_new(m, .clip.norm = 1)
                      : what == 1 ? tn_sgd_new(m, .clip.norm = INFINITY)
                      : what == 2 ? tn_sgd_new(m, .clip.error_if_nonfinite = true)
                                  : tn_sgd_new(m, .clip.value = 1); /* of each element: the part is enough */
    tn_replica   *r = tn_replica_new(w, m, .shards = 2, .zero = true);
    batch(r, m, 1);
    tn_replica_step(r, o);
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

TEST(own_clipping_is_rejected)
{
    for (int what = 0; what < 4; what++)
        check(2, own_clip, &what, what < 3 ? "with .zero the optimizer's own .clip would see only a part" : "");
}

/* The optimizer has only one of two layers: of the other one no rank has a state. */
static void part_of_a_module(tn_world *w, void *user)
{
    for (int only = 0; only < 2; only++) {
        tn_sequential *net = tn_sequential_new();
        tn_linear     *layer[2] = {tn_linear_new(.in = 40, .out = 40), tn_linear_new(.in = 40, .out = 40)};
        for (int i = 0; i < 2; i++) tn_append(net, layer[i]);
        tn_optimizer *o = tn_adamw_new(layer[only], .lr = 0.1);
        tn_replica   *r = tn_replica_new(w, net, .shards = 3, .zero = true);
        for (tn_part p = {0}; tn_replica_next(r, &p);)
            tn_replica_backward(r, tn_sum(tn_square(tn_call(net, tn_ones(TN_SHAPE(1, 40))))), 1);
        ck_assert_msg(tn_replica_step(r, o) == TN_OK, "%s", tn_error_message());
        ck_assert_msg(tn_replica_collect(r, o) == TN_OK, "%d: %s", only, tn_error_message());
        if (!tn_world_rank(w)) ck_assert_int_eq(tn_numel(tn_optimizer_state(o, layer[only]->weight, "exp_avg")), 1600);
        tn_replica_forget(r, o);
        if (only && *(const bool *)user) tn_replica_collect(r, NULL);
        tn_replica_free(r), tn_optimizer_free(o), tn_free(net);
    }
}

TEST(collects_the_state_of_a_part)
{
    check(2, part_of_a_module, &(bool){false}, "");
    check(3, part_of_a_module, &(bool){true}, "tn_replica_collect: the optimizer is NULL");
}

/* ---- .overlap and cancelling ------------------------------------------------------------------------------------- */

/* An error before the second batch reaches the other ranks, which are in it. */
static void error_before_a_batch(tn_world *w, void *user)
{
    tn_linear    *m = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *o = tn_sgd_new(m, .lr = 0.1);
    tn_replica   *r = tn_replica_new(w, m, .shards = 4, .overlap = *(const bool *)user);
    batch(r, m, 1);
    tn_replica_step(r, o);
    if (tn_world_rank(w)) tn_raise(TN_EIO, "no data");
    batch(r, m, 1);
    const char *end = tn_error() == TN_EIO ? strstr(tn_error_message(), "no data") : NULL;
    ck_assert_msg(end != NULL, "%s", tn_error_message());
    tn_clear_error();
    tn_world_barrier(w);
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

TEST(an_error_before_a_batch_reaches_all)
{
    for (int overlap = 0; overlap < 2; overlap++) check(2, error_before_a_batch, &(bool){overlap}, "");
}

static void cancels(tn_world *w, void *user)
{
    tn_linear  *m = tn_linear_new(.in = 2, .out = 1);
    tn_replica *r = tn_replica_new(w, m, .shards = 2, .overlap = *(const bool *)user);
    tn_part     p = {0};
    if (tn_replica_next(r, &p)) {
        tn_replica_backward(r, tn_sum(m->weight), 1);
        tn_replica_cancel(r, &p);
    }
    ck_assert(tn_error() == TN_OK && !tn_grad(m->weight));
    tn_replica_free(r), tn_free(m);
}

TEST(cancelling_drops_the_gradients)
{
    for (int overlap = 0; overlap < 2; overlap++) check(2, cancels, &(bool){overlap}, "");
}
