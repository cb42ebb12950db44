/* test_fit_owners.c — the state around tn_fit: gradients from before and of parameters without an optimizer, schedules
 * and averages of other optimizers or modules, the optimizer's accumulation count, and the event at the end. */
#include "tests/common/check_main.h"

#include "models/models.h"
#include "tests/common/faults.h"
#include "tests/common/fit_case.h"
#include "tests/common/thread_ranks.h"

#define USUAL(c) (c)->net, .train = (c)->train, .loss = fit_case_loss, .user = (c)
#define LISTENED(c) .on = fit_case_listen, .on_user = (c)

static void fit_done(tn_fit_result r) { ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message()); }

static void no_gradients(fit_case *c)
{
    for (tn_each p = tn_parameters(c->net); tn_next(&p);) ck_assert_msg(!tn_grad(p.tensor), "%s", p.name);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static tn_optimizer *of_the_last(fit_case *c) { return tn_sgd_new((tn_linear *)tn_at(c->net, 3), .lr = 0.1); }

static void none_at_a_step(const tn_fit_event *e, void *user)
{
    if (e->what == TN_FIT_STEP) no_gradients(user);
}

AROUND_TESTS(tn_faulty_files_begin, tn_faulty_files_end);

/* Gradients of parameters without an optimizer are cleared at each step: they must not accumulate or be saved. */
TEST(an_optimizer_of_a_part)
{
    for (int kept = 0; kept < 2; kept++) {
        fit_case      c = fit_case_begin(0);
        tn_optimizer *o = of_the_last(&c);
        fit_done(tn_fit(USUAL(&c), .optimizer = o, .steps = 3, .folder = kept ? tn_test_file("part") : NULL,
                        .on = none_at_a_step, .on_user = &c));
        no_gradients(&c);
        tn_optimizer_free(o);
        fit_case_end(&c);
    }
}

static void large_gradients(fit_case *c)
{
    for (tn_each p = tn_parameters(c->net); tn_next(&p);) tn_backward(tn_mul_scalar(tn_sum(p.tensor), 1000));
}

static void begun_with_gradients(tn_world *w, void *user)
{
    fit_case           c[2] = {fit_case_begin(0), fit_case_begin(0)};
    const tn_scope     s = tn_scope_begin();
    const char *const *folder = user;
    for (int i = 0; i < 2; i++) {
        tn_optimizer *o = tn_sgd_new(c[i].net, .lr = 0.1);
        if (i) large_gradients(c + i);
        tn_seed(5);
        fit_done(tn_fit(USUAL(c + i), .optimizer = o, .steps = 2, .world = w, .folder = folder[i]));
        tn_optimizer_free(o);
    }
    for (tn_each p = tn_parameters(c[0].net), q = tn_parameters(c[1].net); tn_next(&p) && tn_next(&q);)
        ck_assert_msg(tn_same_bits(p.tensor, q.tensor), "%s", p.name);
    tn_scope_end(s);
    fit_case_end(c), fit_case_end(c + 1);
}

TEST(gradients_of_before)
{
    const char *folder[] = {tn_test_file("alone-0"), tn_test_file("alone-1"), tn_test_file("ranks-0"),
                            tn_test_file("ranks-1")};
    char        text[TN_THREAD_RANKS][1100];
    begun_with_gradients(NULL, folder);
    tn_thread_ranks(2, begun_with_gradients, folder + 2, 0, text);
    for (int i = 0; i < 2; i++) ck_assert_msg(!*text[i], "%s", text[i]);
}

/* ---- objects of others ------------------------------------------------------------------------------------------- */

#define REFUSED(text, ...)                                                               \
    do {                                                                                 \
        ck_assert_int_eq(tn_fit(USUAL(&c), .steps = 2, __VA_ARGS__).why, TN_FIT_FAILED); \
        ck_error(TN_EINVAL, "tn_fit: " text);                                            \
    } while (0)

TEST(of_another)
{
    fit_case      c = fit_case_begin(0), other = fit_case_begin(0), before = fit_case_begin(0);
    tn_optimizer *o = tn_sgd_new(c.net, .lr = 0.1);
    tn_schedule  *cosine = tn_cosine_lr_new(o, .steps = 9);
    REFUSED(".schedule belongs to another optimizer; create it for .optimizer", .optimizer = c.o, .schedule = other.lr);
    REFUSED(".plateau belongs to another optimizer; create it for .optimizer", .optimizer = c.o,
            .plateau = other.plateau, .valid = c.valid);
    REFUSED(".plateau is a schedule by steps, not by values; pass it as .schedule", .optimizer = o, .plateau = cosine,
            .valid = c.valid);
    tn_schedule_free(cosine);
    tn_schedule *plateau = tn_plateau_lr_new(o);
    REFUSED(".schedule is a plateau schedule, which needs values; pass it as .plateau", .optimizer = o,
            .schedule = plateau);
    REFUSED(".ema has none of the module's parameters; create it for this module", .ema = other.ema);
    tn_ema *swapped = tn_ema_new(c.net);
    tn_ema_swap(swapped);
    REFUSED("the averages of .ema are swapped in; call tn_ema_swap before training", .ema = swapped);
    tn_ema_swap(swapped);
    tn_ema_free(swapped);
    ck_assert(fit_case_same_bits(&c, &before) && fit_case_same_bits(&other, &before));
    tn_ema *part = tn_ema_new((tn_linear *)tn_at(c.net, 3)); /* of a part of the module is allowed */
    fit_done(tn_fit(USUAL(&c), .steps = 2, .optimizer = o, .plateau = plateau, .valid = c.valid, .ema = part));
    tn_ema_free(part);
    tn_optimizer_free(o);
    fit_case_end(&c), fit_case_end(&other), fit_case_end(&before);
}

/* ---- tn_accumulate ----------------------------------------------------------------------------------------------- */

static tn_tensor *nan_at_2(void *module, const tn_batch *b, void *user)
{
    fit_case *c = user;
    return tn_mul_scalar(fit_case_loss(module, b, user), c->told[TN_FIT_STEP] ? NAN : 1);
}

/* After tn_fit the program's tn_accumulate count holds again: every third tn_step takes effect. */
static void steps_of_three(fit_case *c, tn_optimizer *o)
{
    const int64_t before = tn_steps(o);
    for (int i = 1; i <= 3; i++) {
        const tn_scope s = tn_scope_begin();
        tn_batch       b;
        while (!tn_source_next(&c->train, &b)) continue;
        tn_backward(fit_case_loss(c->net, &b, c));
        ck_assert_int_eq(tn_step(o), TN_OK);
        ck_assert_int_eq(tn_steps(o), before + i / 3);
        tn_scope_end(s);
    }
}

TEST(parts_are_put_back)
{
    fit_case      c = fit_case_begin(0);
    tn_optimizer *o = tn_sgd_new(c.net, .lr = 0.1);
    tn_accumulate(o, 3);
    fit_done(tn_fit(USUAL(&c), .optimizer = o, .steps = 4, .accumulate = 2));
    ck_assert_int_eq(tn_steps(o), 4);
    steps_of_three(&c, o);
    ck_assert_int_eq(
        tn_fit(c.net, .train = c.train, .loss = nan_at_2, .user = &c, .optimizer = o, .steps = 4, LISTENED(&c)).why,
        TN_FIT_FAILED);
    ck_error_code(TN_ENUMERIC);
    ck_assert_int_eq(tn_steps(o), 6);
    steps_of_three(&c, o);
    /* gradients accumulated for a pending step are not lost */
    tn_backward(tn_sum(((tn_linear *)tn_at(c.net, 3))->weight));
    tn_step(o);
    ck_assert_int_eq(tn_fit(USUAL(&c), .optimizer = o, .steps = 4).why, TN_FIT_FAILED);
    ck_error(TN_ESTATE, "tn_accumulate: 1 of 3 parts wait for the update; change n after it");
    ck_assert(tn_grad(((tn_linear *)tn_at(c.net, 3))->weight));
    tn_optimizer_free(o);
    fit_case_end(&c);
}

/* ---- values and counts ------------------------------------------------------------------------------------------- */

static double not_a_number(void *module, void *user) { return (void)module, (void)user, NAN; }

/* As in PyTorch, NaN is not an improvement: a diverging run gets a smaller learning rate. */
TEST(a_plateau_hears_of_nan)
{
    fit_case      c = fit_case_begin(0);
    tn_optimizer *o = tn_sgd_new(c.net, .lr = 0.1);
    tn_schedule  *plateau = tn_plateau_lr_new(o, .patience = 1, .factor = 0.5);
    fit_done(
        tn_fit(USUAL(&c), .optimizer = o, .plateau = plateau, .score = not_a_number, .steps = 4, .valid_every = 1));
    ck_assert_double_eq_tol(tn_lr(o, 0), 0.1 * 0.25, 1e-12);
    tn_optimizer_free(o);
    fit_case_end(&c);
}

/* The first value is the best: a resumed run knows it, and keeps its weights. */
static double endless(void *module, void *user)
{
    const fit_case *c = user;
    (void)module;
    return c->last.step > 1 ? 1 : c->rising ? INFINITY : -INFINITY;
}
TEST(an_endless_best)
{
    for (int rising = 0; rising < 2; rising++)
        for (int call = 0; call < 2; call++) {
            fit_case c = fit_case_begin(0);
            c.rising = rising;
            const tn_fit_result r = tn_fit(USUAL(&c), .score = endless, .rising = rising, .steps = 1 + call,
                                           .valid_every = 1, .folder = tn_test_file(rising ? "rising" : "falling"),
                                           .resume = true, .on = fit_case_listen, .on_user = &c);
            fit_done(r);
            ck_assert_msg(isinf(r.best) && r.best_step == 1, "%d: %g at %lld", rising, r.best, (long long)r.best_step);
            fit_case_end(&c);
        }
}

/* 21 rows in batches of 5: TN_FIT_END reports all items of this call. */
TEST(items_of_the_call)
{
    const char *folder = tn_test_file("items");
    for (int call = 0; call < 2; call++) {
        fit_case c = fit_case_begin(0);
        fit_done(tn_fit(USUAL(&c), .epochs = 2 + call, .folder = folder, .resume = true, LISTENED(&c)));
        ck_assert_int_eq(c.items, call ? 21 : 42);
        ck_assert_int_eq(c.last.items, c.items);
        fit_case_end(&c);
    }
}

/* Without the source's .batches, the number of steps is known only from .steps, in this call or in the next. */
TEST(steps_that_become_known)
{
    const char     *folder = tn_test_file("known");
    fit_case        c = fit_case_begin(0);
    const tn_source unknown = {
        .next = c.train.next, .begin = c.train.begin, .save = c.train.save, .user = c.train.user};
#define GO_ON(...)                                                                                                   \
    tn_fit(c.net, .train = unknown, .loss = fit_case_loss, .user = &c, .lr = 0.01, .folder = folder, .resume = true, \
           LISTENED(&c), __VA_ARGS__)
    fit_done(GO_ON(.epochs = 2));
    ck_assert_double_eq(c.last.lr, 0.01);
    fit_done(GO_ON(.steps = 15, .warmup = 3, .decay = TN_DECAY_LINEAR));
    ck_assert_double_eq_tol(c.last.lr, 0.01 / 12, 1e-12); /* one of the steps 3 … 15 was left */
    fit_done(GO_ON(.epochs = 4));
    ck_assert_double_eq(c.last.lr, 0.01);
    fit_done(GO_ON(.epochs = 5, .warmup = 40));
    ck_assert_double_eq_tol(c.last.lr, 0.01 * 24 / 40, 1e-12);
#undef GO_ON
    fit_case_end(&c);
}
