/* test_fit.c — the training loop gives the same bits as a loop by hand; a stopped run resumes with the same bits;
 * events, reasons to end, errors of wrong use. Files, faults and kills are in test_fit_files.c. */
#include "tests/common/bits.h"
#include "tests/common/check_main.h"

#include "models/models.h"
#include "tests/common/faults.h"
#include "tests/common/fit_case.h"

/* ---- compared with a loop by hand -------------------------------------------------------------------------------- */

AROUND_TESTS(tn_faulty_files_begin, tn_faulty_files_end);

TEST(as_by_hand)
{
    fit_case c = fit_case_begin(0), h = fit_case_begin(0);
    tn_seed(5);
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .optimizer = c.o,
                             .schedule = c.lr, .ema = c.ema, .accumulate = 3, .steps = 7);
    ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
    tn_seed(5);
    tn_schedule_follow(h.lr);
    double loss = 0;
    for (int step = 0; step < 7; step++) {
        loss = fit_case_backward(&h);
        tn_step(h.o);
        tn_ema_update(h.ema);
    }
    ck_assert(fit_case_same_bits(&c, &h));
    ck_assert_double_eq(r.loss, loss);
    ck_assert(r.steps == 7 && r.begin == 0 && isnan(r.best));
    fit_case_end(&c), fit_case_end(&h);
}

/* An explicit 0 is 0, not the default: with learning rate 0 nothing changes, with or without decay and schedule. */
TEST(rate_of_0)
{
    fit_case      c = fit_case_begin(0), before = fit_case_begin(0);
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .lr = 0, .steps = 3);
    ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
    for (tn_each e = tn_parameters(c.net), f = tn_parameters(before.net); tn_next(&e) && tn_next(&f);)
        ck_assert(tn_same_bits(e.tensor, f.tensor));
    fit_case_end(&c), fit_case_end(&before);
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

enum { STEPS = 30, STOPS = 20 };

#define EVERYTHING(c)                                                                                                 \
    .train = (c)->train, .loss = fit_case_loss, .user = (c), .optimizer = (c)->o, .schedule = (c)->lr,                \
    .plateau = (c)->plateau, .ema = (c)->ema, .accumulate = 2, .steps = STEPS, .valid = (c)->valid, .valid_every = 4, \
    .on = fit_case_listen, .on_user = (c), .stop = &(c)->stop, .autocast = !(c)->train.begin

/* Stopped at any point, also within a validation, and resumed several times in the same folder. */
TEST_EACH(resumes, 2)
{
    tn_generator chance = {.seed = 7};
    fit_case     whole = fit_case_begin(_i);
    tn_seed(9);
    tn_fit_result all = tn_fit(whole.net, EVERYTHING(&whole));
    ck_assert_msg(all.why == TN_FIT_DONE, "%s", tn_error_message());
    const tn_generator at_the_end = *tn_current_generator();
    for (int i = 0; i < (tn_test_slow() ? 2 : STOPS); i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "resume-%d-%d", _i, i);
        tn_fit_result r = {0};
        for (int calls = 0; r.why != TN_FIT_DONE; calls++) {
            ck_assert_int_lt(calls, 20);
            fit_case c = fit_case_begin(_i);
            c.stop_at = r.steps + 1 + tn_random_below(&chance, 12);
            c.stop_in_valid = tn_random_below(&chance, 2);
            tn_seed(calls ? 1234 : 9);
            r = tn_fit(c.net, EVERYTHING(&c), .folder = tn_test_file(folder), .resume = true, .save_every = 5);
            ck_assert_msg(r.why == TN_FIT_DONE || r.why == TN_FIT_STOPPED, "%s", tn_error_message());
            if (r.why == TN_FIT_DONE) {
                ck_assert_msg(fit_case_same_bits(&whole, &c), "stop %d", i);
                ck_assert(r.steps == all.steps && r.epochs == all.epochs && r.loss == all.loss);
                ck_assert(r.best == all.best && r.best_step == all.best_step && r.value == all.value);
                ck_assert(tn_current_generator()->seed == at_the_end.seed);
                ck_assert(tn_current_generator()->position == at_the_end.position);
            }
            fit_case_end(&c);
        }
    }
    fit_case_end(&whole);
}

/* Resuming a finished run does no step. */
TEST(resumes_at_the_end)
{
    const char   *folder = tn_test_file("ended");
    tn_fit_result r[2];
    for (int i = 0; i < 2; i++) {
        fit_case c = fit_case_begin(0);
        r[i] = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .epochs = 2, .valid = c.valid,
                      .folder = folder, .resume = true, .on = fit_case_listen, .on_user = &c);
        ck_assert_msg(r[i].why == TN_FIT_DONE, "%s", tn_error_message());
        ck_assert_int_eq(c.told[TN_FIT_STEP], i ? 0 : r[0].steps);
        fit_case_end(&c);
    }
    ck_assert(r[1].begin == r[0].steps && r[1].steps == r[0].steps && r[1].epochs == 2 && r[1].best == r[0].best);
}

/* ---- validation -------------------------------------------------------------------------------------------------- */

/* Validation changes no weights, random numbers or module modes of the training. */
TEST(validation_leaves_no_trace)
{
    fit_case a = fit_case_begin(0), b = fit_case_begin(0), before = fit_case_begin(0);
    for (int i = 0; i < 2; i++) {
        fit_case *c = i ? &b : &a;
        tn_seed(3);
        tn_eval((tn_sequential *)tn_at(c->net, 1)); /* set to eval mode by the user */
        tn_fit_result r =
            tn_fit(c->net, .train = c->train, .loss = fit_case_loss, .user = c, .optimizer = c->o, .ema = c->ema,
                   .steps = 9, .valid = i ? c->valid : (tn_source){.next = NULL}, .valid_every = i);
        ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
        ck_assert(!((tn_module *)tn_at(c->net, 1))->training && c->net->base.training);
        ck_assert(!tn_ema_swapped(c->ema));
    }
    ck_assert(fit_case_same_bits(&a, &b) && !fit_case_same_bits(&a, &before));
    fit_case_end(&a), fit_case_end(&b), fit_case_end(&before);
}

/* A measure that improves twice, then gets worse. */
static tn_tensor *scripted(void *module, const tn_batch *b, void *user)
{
    static const double value[] = {5, 4, 4.5, 3, 3.5, 3, 2.995, 9, 9, 9};
    fit_case           *c = user;
    (void)module, (void)b;
    return tn_scalar((c->rising ? -1 : 1) * value[c->told[TN_FIT_VALID]]);
}

TEST(patience)
{
    for (int i = 0; i < 2; i++)
        for (int folder = 0; folder < 2; folder++) {
            fit_case c = fit_case_begin(0);
            c.rising = i, c.remember_at = 4;
            tn_fit_result r =
                tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .steps = 100, .valid = c.valid,
                       .valid_every = 1, .measure = scripted, .rising = i, .patience = 3, .min_delta = 0.01,
                       .restore_best = true, .folder = folder ? tn_test_file(i ? "patience1" : "patience0") : NULL,
                       .on = fit_case_listen, .on_user = &c);
            ck_assert_msg(r.why == TN_FIT_PATIENCE, "%s", tn_error_message());
            ck_assert(r.steps == 7 && r.best_step == 4 && fabs(r.best) == 3 && fabs(r.value) == 2.995);
            ck_assert_int_eq(c.improved, 3);
            for (tn_each p = tn_parameters(c.net), q = tn_parameters(c.remembered); tn_next(&p) && tn_next(&q);)
                ck_assert(tn_same_bits(p.tensor, q.tensor));
            fit_case_end(&c);
        }
}

/* The first value that reaches .enough ends the run, and resuming it does no step. */
TEST(good_enough)
{
    for (int i = 0; i < 2; i++) {
        fit_case    c = fit_case_begin(0), d = fit_case_begin(0);
        fit_case   *both[] = {&c, &d};
        const char *folder = tn_test_file(i ? "enough1" : "enough0");
        for (int k = 0; k < 2; k++) {
            both[k]->rising = i;
            const tn_fit_result r =
                tn_fit(both[k]->net, .train = both[k]->train, .loss = fit_case_loss, .user = both[k], .steps = 100,
                       .valid = both[k]->valid, .valid_every = 1, .measure = scripted, .rising = i, .folder = folder,
                       .enough = i ? -3 : 3, .resume = k, .on = fit_case_listen, .on_user = both[k]);
            ck_assert_msg(r.why == TN_FIT_ENOUGH, "%s", tn_error_message());
            ck_assert_str_eq(tn_fit_why_text(r.why), "good enough");
            ck_assert(r.steps == 4 && r.begin == 4 * k && r.best_step == 4 && fabs(r.best) == 3);
        }
        fit_case e = fit_case_begin(0); /* also if it is not better by .min_delta; then it is the best, too */
        e.rising = i;
        const tn_fit_result r = tn_fit(e.net, .train = e.train, .loss = fit_case_loss, .user = &e, .steps = 6,
                                       .valid = e.valid, .valid_every = 1, .measure = scripted, .rising = i,
                                       .enough = i ? -4 : 4, .min_delta = 3, .on = fit_case_listen, .on_user = &e);
        ck_assert(r.why == TN_FIT_ENOUGH && r.steps == 2 && r.best_step == 2 && fabs(r.best) == 4);
        fit_case_end(&e);
        tn_fit(d.net, .train = d.train, .loss = fit_case_loss, .user = &d, .steps = 100, .valid = d.valid, .rising = !i,
               .folder = folder, .resume = true);
        ck_error_has(TN_EINVAL, i ? "from a run whose best value is the largest (.rising), but this run's is the "
                                    "smallest; use the same .rising or another folder"
                                  : "is the smallest (.rising), but this run's is the largest");
        fit_case_end(&c), fit_case_end(&d);
    }
}

/* A .score instead of a mean over batches. It runs in eval mode, without a tape. */
static double scored(void *module, void *user)
{
    static const double value[] = {1, 2, 1.5, 7, 6.5, NAN, 7};
    fit_case           *c = user;
    ck_assert(!((tn_module *)module)->training && !tn_grad_enabled());
    tn_normal(TN_SHAPE(3), 0, 1); /* random numbers that must not affect training */
    if (c->stop_in_valid && c->last.step == c->stop_at) c->stop = 1;
    return value[c->last.step / 2 - 1];
}

TEST(scores)
{
    for (int i = 0; i < 2; i++) { /* 1: without batches, in a folder, interrupted by a score and resumed */
        fit_case c = fit_case_begin(0), d = fit_case_begin(0);
        c.remember_at = d.remember_at = 8;
        c.stop_in_valid = i, c.stop_at = i ? 6 : -1;
#define SCORED(x)                                                                                                      \
    x.net, .train = x.train, .loss = fit_case_loss, .user = &x, .steps = 100, .score = scored, .rising = true,         \
           .valid_every = 2, .patience = 3, .restore_best = true, .on = fit_case_listen, .on_user = &x,                \
           .valid = i ? (tn_source){.next = NULL} : x.valid, .folder = i ? tn_test_file("scored") : NULL, .resume = i, \
           .stop = &x.stop
        tn_fit_result r = tn_fit(SCORED(c));
        if (i) {
            ck_assert_msg(r.why == TN_FIT_STOPPED && r.steps == 6 && r.best == 2, "%s", tn_error_message());
            ck_assert_int_eq(c.told[TN_FIT_VALID], 2); /* the third was interrupted, and is still due */
            r = tn_fit(SCORED(d));
        }
        ck_assert_msg(r.why == TN_FIT_PATIENCE, "%s", tn_error_message());
        ck_assert(r.steps == 14 && r.best == 7 && r.best_step == 8 && r.value == 7);
        fit_case *last = i ? &d : &c;
        ck_assert_int_eq(last->told[TN_FIT_VALID], i ? 5 : 7);
        ck_assert((isnan(last->last.measured) != 0) == i); /* the mean over the batches is reported, too */
        for (tn_each p = tn_parameters(last->net), q = tn_parameters(last->remembered); tn_next(&p) && tn_next(&q);)
            ck_assert(tn_same_bits(p.tensor, q.tensor));
        fit_case_end(&c), fit_case_end(&d);
    }
}

/* Two batches of one row, whose losses, 1 and 2, are means over 1 and 3 tokens; a .measure is a mean over rows. */
static bool two_batches(void *user, tn_batch *b)
{
    int *at = user;
    if (*at == 2) return *at = 0, false;
    const double loss = 1.0 + *at;
    *b = (tn_batch){.x = tn_full(TN_SHAPE(1), loss), .items = 1, .weight = 2 * loss - 1};
    return ++*at, tn_error() == TN_OK;
}
static tn_tensor *what_it_holds(void *module, const tn_batch *b, void *user)
{
    (void)module, (void)user;
    return tn_mean(b->x);
}
static tn_tensor *and_learns(void *module, const tn_batch *b, void *user)
{
    tn_tensor *w = tn_find_tensor(((fit_case *)user)->net, "0.weight");
    return tn_add(what_it_holds(module, b, user), tn_mul_scalar(tn_sum(w), 0));
}
TEST(what_a_validation_is_the_mean_of)
{
    fit_case        c = fit_case_begin(0);
    int             train = 0, valid = 0;
    const tn_source from = {.next = two_batches, .user = &train}, held = {.next = two_batches, .user = &valid};
    for (int i = 0; i < 2; i++) {
        const tn_fit_result r = tn_fit(c.net, .train = from, .loss = and_learns, .user = &c, .optimizer = c.o,
                                       .steps = 1, .valid = held, .measure = i ? what_it_holds : NULL);
        ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
        ck_assert_double_eq(r.value, i ? 1.5 : 1.75);
        train = valid = 0;
    }
    fit_case_end(&c);
}

/* With .ema, the averages are validated, and the best averages are restored. */
TEST(averages)
{
    fit_case c = fit_case_begin(0);
    c.remember_at = 4, c.remember_averages = true;
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .optimizer = c.o, .ema = c.ema,
                             .steps = 100, .valid = c.valid, .valid_every = 1, .measure = scripted, .patience = 3,
                             .min_delta = 0.01, .restore_best = true, .on = fit_case_listen, .on_user = &c);
    ck_assert_msg(r.why == TN_FIT_PATIENCE, "%s", tn_error_message());
    fit_case before = fit_case_begin(0);
    tn_each  from = tn_parameters(before.net);
    for (tn_each p = tn_parameters(c.net), q = tn_parameters(c.remembered); tn_next(&p) && tn_next(&q);) {
        ck_assert(tn_same_bits(p.tensor, q.tensor)); /* recorded while the averages were swapped in */
        ck_assert(tn_next(&from) && !tn_same_bits(p.tensor, from.tensor));
    }
    fit_case_end(&c), fit_case_end(&before);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

TEST(events)
{
    fit_case      c = fit_case_begin(0);
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .epochs = 3, .valid = c.valid,
                             .folder = tn_test_file("events"), .on = fit_case_listen, .on_user = &c);
    ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
    ck_assert_int_eq(r.steps, 15); /* 5 batches of at most 5 of 21 rows */
    ck_assert_str_eq(c.story, "start saved|step step step step step valid saved|step step step step step valid saved|"
                              "step step step step step valid saved|end");
    ck_assert_int_eq(c.items, 3 * 21);
    ck_assert_int_eq(c.last.step, 15);
    ck_assert_int_eq(c.last.steps, 15);
    ck_assert_str_eq(c.last_text, "done");
    fit_case_end(&c);
}

TEST(stops)
{
    fit_case c = fit_case_begin(0);
    c.stop_at = 4;
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .steps = 9, .valid = c.valid,
                             .on = fit_case_listen, .on_user = &c, .stop = &c.stop);
    ck_assert(r.why == TN_FIT_STOPPED && r.steps == 4 && !c.told[TN_FIT_VALID]);
    ck_assert_str_eq(c.last_text, "stopped");
    fit_case_end(&c);
}

/* Too few batches for one step are an error: detected at the start (10 batches in 2 epochs of 5), or at the end. */
TEST(steps_of_many_batches)
{
    fit_case        c = fit_case_begin(0);
    const tn_source unknown = {.next = c.train.next, .begin = c.train.begin, .user = c.train.user};
    for (int64_t i = 0; i < 8; i++) {
        const int64_t       each = i < 4 ? 9 + i / 2 : 11 + 100 * (i % 2); /* batches per step */
        const bool          most = i >= 6;                                 /* also .steps, reached later */
        const tn_fit_result r =
            tn_fit(c.net, .train = i % 2 ? unknown : c.train, .loss = fit_case_loss, .user = &c, .optimizer = c.o,
                   .epochs = 2, .accumulate = each, .steps = most ? 3 : 0, .on = fit_case_listen, .on_user = &c);
        ck_assert_int_eq(r.steps, each <= 10);
        ck_assert_int_eq(r.why, each <= 10 ? TN_FIT_DONE : TN_FIT_FAILED);
        if (each <= 10) continue;
        char text[200];
        snprintf(text, sizeof text,
                 "tn_fit: .accumulate is %lld batches per step, but .epochs = 2 has fewer batches, which makes no "
                 "step; decrease .accumulate or increase .epochs",
                 (long long)each);
        ck_error(TN_EINVAL, text);
    }
    fit_case_end(&c);
}

/* An error raised by the listener at any event ends the run cleanly. */
TEST(listener_raises)
{
    for (int what = 0; what <= TN_FIT_END; what++) {
        if (what == TN_FIT_NOTE) continue;
        char     folder[32];
        fit_case c = fit_case_begin(0);
        c.raise_at = what + 1;
        snprintf(folder, sizeof folder, "listener%d", what);
        tn_fit_result r =
            tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .steps = 3, .valid = c.valid,
                   .folder = tn_test_file(folder), .on = fit_case_listen, .on_user = &c);
        ck_assert_int_eq(r.why, TN_FIT_FAILED);
        ck_assert_int_eq(c.told[TN_FIT_END], 1);
        ck_error(TN_EINVAL, "the listener had enough");
        fit_case_end(&c);
    }
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static tn_tensor *nan_at_4(void *module, const tn_batch *b, void *user)
{
    fit_case *c = user;
    return tn_mul_scalar(fit_case_loss(module, b, user), c->told[TN_FIT_STEP] == 3 ? NAN : 1);
}
static tn_tensor *many(void *module, const tn_batch *b, void *user)
{
    return (void)module, (void)user, tn_mul_scalar(b->x, 2);
}
static tn_tensor *nothing(void *module, const tn_batch *b, void *user)
{
    return (void)module, (void)b, (void)user, NULL;
}
static tn_tensor *constant(void *module, const tn_batch *b, void *user)
{
    return (void)module, (void)b, (void)user, tn_scalar(1);
}
static bool empty(void *user, tn_batch *b) { return (void)user, (void)b, false; }

TEST(not_a_number)
{
    fit_case      c = fit_case_begin(0);
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = nan_at_4, .user = &c, .steps = 9, .accumulate = 2,
                             .on = fit_case_listen, .on_user = &c);
    ck_assert(r.why == TN_FIT_FAILED && r.steps == 3);
    for (tn_each p = tn_parameters(c.net); tn_next(&p);) {
        ck_assert(isfinite(tn_get(p.tensor, 0)));
        ck_assert(!tn_grad(p.tensor));
    }
    ck_error(TN_ENUMERIC,
             "tn_fit: the loss is NaN at step 4; the weights are still those of step 3. A smaller learning rate, more "
             "warm-up or clipping may help; tn_detect_anomaly(true) names the op it came from");
    fit_case_end(&c);
}

#define REFUSED(code, text, ...)                                  \
    do {                                                          \
        ck_assert_int_eq(tn_fit(__VA_ARGS__).why, TN_FIT_FAILED); \
        ck_error(code, "tn_fit: " text);                          \
    } while (0)
#define USUAL c.net, .train = c.train, .loss = fit_case_loss, .user = &c

/* A source used for training and validation would be restarted by each validation, and .epochs would never be reached.
 * Two sources of the same rows are allowed, and two functions with the same .user. */
static bool row_of_valid(void *user, tn_batch *b)
{
    fit_case *c = user;
    return tn_source_next(&c->valid, b);
}
static bool row_of_train(void *user, tn_batch *b)
{
    fit_case *c = user;
    return tn_source_next(&c->train, b);
}
TEST(a_source_of_its_own)
{
    fit_case        c = fit_case_begin(0);
    const tn_source train = {.next = row_of_train, .user = &c}, valid = {.next = row_of_valid, .user = &c};
    REFUSED(TN_EINVAL,
            ".valid and .train are the same source, and each validation would restart it; pass a separate source as "
            ".valid",
            USUAL, .epochs = 2, .valid = c.train, .valid_every = 100);
    const tn_source endless = {.next = row_of_valid, .user = &c, .batches = -1};
    REFUSED(TN_EINVAL, ".train has no epochs; set .steps", c.net, .train = endless, .loss = fit_case_loss, .epochs = 2);
    REFUSED(TN_EINVAL, ".valid never ends; it must have epochs", USUAL, .epochs = 2, .valid = endless);
    const tn_fit_result r = tn_fit(c.net, .train = train, .loss = fit_case_loss, .user = &c, .optimizer = c.o,
                                   .epochs = 2, .valid = valid, .valid_every = 1);
    ck_assert_msg(r.why == TN_FIT_DONE && r.steps == 10, "%s", tn_error_message());
    fit_case_end(&c);
}

static bool endless(void *user, tn_batch *b)
{
    b->x = tn_ones(TN_SHAPE(1)), b->y = b->x;
    ++*(int64_t *)user;
    return true;
}
static tn_tensor *half(void *module, const tn_batch *b, void *user)
{
    (void)module, (void)user;
    return tn_sum(b->x);
}

/* A source of validation that never returns false, with a known number of batches, and without. */
TEST(an_endless_validation)
{
    for (int known = 0; known < 2; known++) {
        fit_case        c = fit_case_begin(0);
        int64_t         n = 0;
        const tn_source s = {.next = endless, .user = &n, .batches = known ? 5 : 0};
        tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .steps = 1, .valid = s, .measure = half);
        ck_error_has(TN_EINVAL, "batches without an end; its .next must return false at the end of an epoch");
        ck_assert(known ? n == 11 : n > 1000);
        fit_case_end(&c);
    }
}

/* .make gets the arguments of the run; its optimizer gets the schedule. */
static tn_optimizer *lion(const tn_fit_args *a)
{
    return tn_lion_new((tn_module *)a->module, .lr = a->lr, .weight_decay = a->weight_decay, .clip.norm = a->clip);
}
static tn_optimizer *no_optimizer(const tn_fit_args *a) { return (void)a, NULL; }

TEST(own_make)
{
    fit_case c = fit_case_begin(0), d = fit_case_begin(0);
    tn_seed(5);
    const tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .steps = 6, .lr = 0.01,
                                   .weight_decay = 0.1, .clip = 0.5, .warmup = 2, .make = lion);
    tn_optimizer       *o = tn_lion_new(d.net, .lr = 0.01, .weight_decay = 0.1, .clip.norm = 0.5);
    tn_no_decay(o);
    tn_schedule *const s = tn_warmup_lr_new(o, .warmup = 2, .steps = 6);
    tn_seed(5);
    const tn_fit_result t =
        tn_fit(d.net, .train = d.train, .loss = fit_case_loss, .user = &d, .steps = 6, .optimizer = o, .schedule = s);
    ck_assert_msg(r.why == TN_FIT_DONE && t.why == TN_FIT_DONE, "%s", tn_error_message());
    for (tn_each a = tn_parameters(c.net), b = tn_parameters(d.net); tn_next(&a) && tn_next(&b);)
        ck_assert(tn_same_bits(a.tensor, b.tensor));
    ck_assert(r.loss == t.loss);
    tn_optimizer_free(o);
    fit_case_end(&c), fit_case_end(&d);
}

TEST(wrong_use)
{
    fit_case c = fit_case_begin(0);
    REFUSED(TN_EINVAL, "the module is NULL: its constructor failed and the error was cleared", (tn_sequential *)NULL,
            .steps = 1);
    REFUSED(TN_EINVAL, ".train has no .next and so gives no batches; tn_dataset_source makes a source from tensors",
            c.net, .loss = fit_case_loss, .steps = 1);
    REFUSED(TN_EINVAL,
            ".loss is NULL, but must be the function that computes the loss of a "
            "batch",
            c.net, .train = c.train);
    REFUSED(TN_EINVAL, ".steps and .epochs are both 0; set one of them", USUAL);
    REFUSED(TN_EINVAL, ".steps is -1, but must be at least 0", USUAL, .steps = -1);
    REFUSED(TN_EINVAL, ".enough is NaN, but must be a number", USUAL, .steps = 1, .enough = (double)NAN);
    REFUSED(TN_EINVAL, ".min_delta must be finite and at least 0", USUAL, .steps = 1, .min_delta = NAN);
    REFUSED(TN_EINVAL,
            ".lr, .weight_decay, .clip, .warmup and .decay have no effect with an .optimizer; set them in the "
            "optimizer and its schedule",
            USUAL, .steps = 1, .optimizer = c.o, .lr = 1);
    REFUSED(TN_EINVAL, ".optimizer and .make exclude each other; give only one of them", USUAL, .steps = 1,
            .optimizer = c.o, .make = lion);
    REFUSED(TN_EINVAL, ".make returned NULL, but raised no error", USUAL, .steps = 1, .make = no_optimizer);
    REFUSED(TN_EINVAL, ".schedule and .plateau need an .optimizer", USUAL, .steps = 1, .schedule = c.lr);
    REFUSED(TN_EINVAL, ".plateau needs .valid or .score, the source of its values", USUAL, .steps = 1, .optimizer = c.o,
            .plateau = c.plateau);
    REFUSED(TN_EINVAL, ".patience, .enough, .restore_best, .valid_every, .rising and .min_delta need .valid or .score",
            USUAL, .steps = 1, .patience = 1);
    REFUSED(TN_EINVAL, ".measure needs .valid, the source of its batches", USUAL, .steps = 1, .measure = fit_case_loss);
    REFUSED(TN_EINVAL, ".resume, .save_every, .keep and .config need a .folder", USUAL, .steps = 1, .resume = true);
    REFUSED(TN_EINVAL, ".train is empty: it ended an epoch without a batch", c.net, .train = {.next = empty},
            .loss = fit_case_loss, .steps = 1);
    REFUSED(TN_EINVAL, ".valid is empty", USUAL, .steps = 1, .valid = {.next = empty});
    REFUSED(TN_EINVAL, ".loss returned NULL, but raised no error", c.net, .train = c.train, .loss = nothing,
            .steps = 1);
    REFUSED(TN_ESHAPE, ".loss returned [5, 3], but must return one element; see tn_mean", c.net, .train = c.train,
            .loss = many, .steps = 1);
    REFUSED(TN_ESHAPE, "in validation, .measure returned several elements, but must return one element", USUAL,
            .steps = 1, .valid = c.valid, .measure = many);
    ck_assert_int_eq(tn_fit(c.net, .train = c.train, .loss = constant, .steps = 1).why, TN_FIT_FAILED);
    ck_error(
        TN_ESTATE,
        "tn_backward: the root depends on no tensor that requires grad; mark one with tn_requires_grad, and compute "
        "the root outside tn_no_grad_begin()");
    fit_case other = fit_case_begin(0);
    REFUSED(TN_EINVAL, ".optimizer has none of the module's parameters; create it for this module", USUAL, .steps = 1,
            .optimizer = other.o);
    const tn_scope s = tn_no_grad_begin();
    REFUSED(TN_EINVAL, "called in a scope of tn_no_grad_begin(), where no gradients are recorded", USUAL, .steps = 1);
    tn_scope_end(s);
    tn_raise(TN_EIO, "from before");
    ck_assert_int_eq(tn_fit(USUAL, .steps = 1).why, TN_FIT_FAILED);
    ck_error(TN_EIO, "from before");
    fit_case_end(&c), fit_case_end(&other);
}

TEST(rows)
{
    tn_tensor  *x = tn_arange(7), *y = tn_reshape(tn_arange(14), TN_SHAPE(7, 2)), *z = tn_ones(TN_SHAPE(6));
    tn_dataset *r = tn_dataset_new(.x = x, .y = y, .batch = 3, .shuffle = true, .seed = 1);
    tn_source   s = tn_dataset_source(r);
    tn_batch    b = {0};
    int64_t     orders[2] = {0, 0}, sizes[3] = {3, 3, 1};
    ck_assert_int_eq(s.batches, 3);
    for (int epoch = 0; epoch < 2; epoch++) {
        int seen = 0;
        for (int i = 0; i < 3; i++) {
            ck_assert(s.next(s.user, &b));
            ck_assert_int_eq(b.items, sizes[i]);
            for (int64_t k = 0; k < b.items; k++) {
                const int64_t row = tn_get_i64(b.x, k);
                ck_assert_int_eq(tn_get_i64(b.y, 2 * k), 2 * row);
                seen |= 1 << row;
                orders[epoch] = 7 * orders[epoch] + row;
            }
        }
        ck_assert_int_eq(seen, 127);
        ck_assert(!s.next(s.user, &b));
    }
    ck_assert_int_ne(orders[0], orders[1]);
    tn_dataset_free(r);
    r = tn_dataset_new(.x = x, .batch = 3, .drop_last = true);
    s = tn_dataset_source(r);
    ck_assert_int_eq(s.batches, 2);
    ck_assert(s.next(s.user, &b) && s.next(s.user, &b) && !s.next(s.user, &b) && s.next(s.user, &b));
    ck_assert_int_eq(tn_get_i64(b.x, 2), 2);
    tn_dataset_free(r);
    ck_refused(tn_dataset_new(.x = NULL), TN_EINVAL, "tn_dataset_new: .x is NULL");
    ck_refused(tn_dataset_new(.x = x, .y = z), TN_ESHAPE, "tn_dataset_new: .x has 7 rows, but .y [6] has 6");
    ck_refused(tn_dataset_new(.x = tn_scalar(1)), TN_ESHAPE, "tn_dataset_new: a 0-d tensor has no rows");
    ck_refused(tn_dataset_new(.x = x, .batch = -2), TN_EINVAL, "tn_dataset_new: .batch is -2, expected at least 1");
    ck_assert(!tn_dataset_source(NULL).next);
}
