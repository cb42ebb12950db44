/* test_schedule.c — learning rate schedules: 50 steps compared with PyTorch's (tests/golden/optim.py), alone and
 * joined. */
#include "tests/common/check_main.h"

#include "tests/common/faults.h"
#include "tests/common/optim_case.h"

static tn_safetensors *golden;

static void open_golden(void) { golden = tn_safetensors_open(tn_test_data("golden/optim.safetensors")); }
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);

/* Two groups, as in the golden data. */
static tn_optimizer *optimizer(tn_sequential *net)
{
    tn_optimizer *o = tn_sgd_new(net, .lr = 0.5, .momentum = 0.9);
    tn_group_new(o, .vectors = true, .lr = 0.05);
    return o;
}

/* ---- compared with PyTorch --------------------------------------------------------------------------------------- */

static double by_group(int64_t t, int group, void *user)
{
    (void)user;
    return group ? 1 / (1 + (double)t) : pow(0.95, (double)t);
}

static tn_schedule *constant(tn_optimizer *o) { return tn_constant_lr_new(o); }
static tn_schedule *constant_options(tn_optimizer *o) { return tn_constant_lr_new(o, .factor = 0.25, .steps = 12); }
static tn_schedule *linear(tn_optimizer *o) { return tn_linear_lr_new(o); }
static tn_schedule *linear_options(tn_optimizer *o)
{
    return tn_linear_lr_new(o, .start = 0.1, .end = 0.6, .steps = 20);
}
static tn_schedule *step(tn_optimizer *o) { return tn_step_lr_new(o, .size = 7); }
static tn_schedule *step_gamma(tn_optimizer *o) { return tn_step_lr_new(o, .size = 10, .gamma = 0.5); }
static tn_schedule *multi_step(tn_optimizer *o)
{
    return tn_multi_step_lr_new(o, .milestones = {5, 17, 17, 40}, .gamma = 0.3);
}
static tn_schedule *exponential(tn_optimizer *o) { return tn_exponential_lr_new(o, .gamma = 0.93); }
static tn_schedule *polynomial(tn_optimizer *o) { return tn_polynomial_lr_new(o, .steps = 30, .power = 2); }
static tn_schedule *cosine(tn_optimizer *o) { return tn_cosine_lr_new(o, .steps = 12, .min_lr = 0.01); }
static tn_schedule *cosine_restarts(tn_optimizer *o)
{
    return tn_cosine_restarts_lr_new(o, .steps = 5, .times = 2, .min_lr = 0.01);
}
static tn_schedule *cosine_restarts_same(tn_optimizer *o) { return tn_cosine_restarts_lr_new(o, .steps = 9); }
static tn_schedule *one_cycle(tn_optimizer *o) { return tn_one_cycle_lr_new(o, .steps = 50); }
static tn_schedule *one_cycle_options(tn_optimizer *o)
{
    return tn_one_cycle_lr_new(o, .max_lr = 0.4, .steps = 50, .warmup = 0.4, .straight = true, .min_momentum = 0.7,
                               .max_momentum = 0.9, .div = 10, .final_div = 100);
}
static tn_schedule *one_cycle_three(tn_optimizer *o)
{
    return tn_one_cycle_lr_new(o, .max_lr = 0.4, .steps = 50, .warmup = 0.35, .three_phase = true);
}
static tn_schedule *lambda(tn_optimizer *o) { return tn_lambda_lr_new(o, .factor = by_group); }
static tn_schedule *warmup(tn_optimizer *o) { return tn_warmup_lr_new(o, .warmup = 10, .steps = 40); }
static tn_schedule *warmup_cosine(tn_optimizer *o)
{
    return tn_warmup_lr_new(o, .warmup = 10, .steps = 45, .decay = TN_DECAY_COSINE);
}
static tn_schedule *warmup_none(tn_optimizer *o) { return tn_warmup_lr_new(o, .warmup = 8, .decay = TN_DECAY_NONE); }
static tn_schedule *noam(tn_optimizer *o) { return tn_noam_lr_new(o, .dim = 512, .warmup = 16, .factor = 2); }
static tn_schedule *inverse_sqrt(tn_optimizer *o) { return tn_inverse_sqrt_lr_new(o, .warmup = 12); }
static tn_schedule *chained(tn_optimizer *o)
{
    tn_schedule *a = tn_linear_lr_new(o, .start = 0.1, .steps = 8), *b = tn_exponential_lr_new(o, .gamma = 0.95);
    return tn_chained_lr_new(o, .parts = {a, b, tn_step_lr_new(o, .size = 20, .gamma = 0.5)});
}
static tn_schedule *chained_cosine(tn_optimizer *o)
{
    tn_schedule *a = tn_constant_lr_new(o, .factor = 0.5, .steps = 6), *b = tn_cosine_lr_new(o, .steps = 60);
    return tn_chained_lr_new(o, .parts = {a, b});
}
static tn_schedule *sequential(tn_optimizer *o)
{
    tn_schedule *a = tn_linear_lr_new(o, .start = 0.1, .steps = 10),
                *b = tn_cosine_lr_new(o, .steps = 25, .min_lr = 0.01);
    return tn_sequential_lr_new(o, .parts = {a, b, tn_exponential_lr_new(o, .gamma = 0.9)}, .milestones = {10, 35});
}
static tn_schedule *plateau(tn_optimizer *o) { return tn_plateau_lr_new(o); }
static tn_schedule *plateau_options(tn_optimizer *o)
{
    return tn_plateau_lr_new(o, .factor = 0.5, .patience = 2, .threshold = 0.05, .cooldown = 3, .min_lr = 0.02);
}
static tn_schedule *plateau_rising(tn_optimizer *o)
{
    return tn_plateau_lr_new(o, .rising = true, .factor = 0.5, .patience = 3, .threshold = 0.1, .absolute = true,
                             .eps = 0.02);
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const struct {
    const char *name;
    tn_schedule *(*make)(tn_optimizer *o);
} cases[] = {
    CASE(constant),
    CASE(constant_options),
    CASE(linear),
    CASE(linear_options),
    CASE(step),
    CASE(step_gamma),
    CASE(multi_step),
    CASE(exponential),
    CASE(polynomial),
    CASE(cosine),
    CASE(cosine_restarts),
    CASE(cosine_restarts_same),
    CASE(one_cycle),
    CASE(one_cycle_options),
    CASE(one_cycle_three),
    CASE(lambda),
    CASE(warmup),
    CASE(warmup_cosine),
    CASE(warmup_none),
    CASE(noam),
    CASE(inverse_sqrt),
    CASE(chained),
    CASE(chained_cosine),
    CASE(sequential),
    CASE(plateau),
    CASE(plateau_options),
    CASE(plateau_rising),
};
enum { CASES = sizeof cases / sizeof *cases, STEPS = 50 };

/* Values of a validation metric: falling, flat, better, worse. */
static double value_at(int t)
{
    return t < 8 ? 10.0 / (1 + t) : t < 20 ? 1.25 : t < 26 ? 1.0 - 0.01 * t : 0.9 + 0.02 * (t % 3);
}

TEST_EACH(beside_pytorch, CASES)
{
    tn_sequential *net = tn_case_new(TN_F32);
    tn_optimizer  *o = optimizer(net);
    tn_schedule   *s = cases[_i].make(o);
    char           key[80];
    const bool     by_value = !strncmp(cases[_i].name, "plateau", 7);
    snprintf(key, sizeof key, "schedule/%s", cases[_i].name);
    const tn_tensor *want = tn_safetensors_get(golden, key);
    ck_assert_msg(s && want, "%s", tn_error_message());
    double most[2] = {0};
    for (int t = 0; t <= STEPS; t++)
        for (int g = 0; g < 2; g++) most[g] = fmax(most[g], tn_get(want, 3 * t + g));
    const bool cycle = !strncmp(cases[_i].name, "one_cycle", 9); /* step 50 is after its end */
    for (int t = 0; t <= STEPS; t++) {
        for (int g = 0; cycle && t == STEPS && g < 2; g++)
            ck_assert_double_eq(tn_lr(o, g), tn_schedule_lr(s, STEPS - 1, g));
        if (cycle && t == STEPS) break;
        for (int g = 0; g < 2; g++) {
            const double w = tn_get(want, 3 * t + g);
            ck_assert_msg(fabs(tn_lr(o, g) - w) <= 1e-13 * most[g] + 1e-12 * w,
                          "%s, step %d, group %d: PyTorch has %.17g, we have %.17g", key, t, g, w, tn_lr(o, g));
            if (!by_value) ck_assert_double_eq(tn_schedule_lr(s, t, g), tn_lr(o, g));
        }
        ck_assert_double_eq_tol(tn_option(o, 0, TN_OPT_MOMENTUM), tn_get(want, 3 * t + 2), 1e-14);
        ck_assert_double_eq_tol(tn_option(o, 1, TN_OPT_MOMENTUM), tn_get(want, 3 * t + 2), 1e-14);
        if (!by_value) ck_assert_int_eq(tn_schedule_now(s), t);
        if (t < STEPS)
            ck_assert_msg((by_value ? tn_plateau_step(s, value_at(t)) : tn_schedule_step(s)) == TN_OK, "%s",
                          tn_error_message());
    }
    if (!by_value) { /* go to another step and back */
        ck_assert_int_eq(tn_schedule_goto(s, 13), TN_OK);
        ck_assert(fabs(tn_lr(o, 1) - tn_get(want, 3 * 13 + 1)) <= 1e-12);
    }
    tn_optimizer_free(o);
    tn_free(net);
}

TEST(nothing_is_left_out)
{
    for (int64_t i = 0; i < tn_safetensors_count(golden); i++) {
        const char *name = tn_safetensors_at(golden, i).name;
        bool        found = strncmp(name, "schedule/", 9) != 0;
        for (int k = 0; k < CASES && !found; k++) found = !strcmp(name + 9, cases[k].name);
        ck_assert_msg(found, "nobody compares %s", name);
    }
}
AROUND_TESTS(NULL, NULL);

/* ---- not in PyTorch ---------------------------------------------------------------------------------------------- */

/* No drift: the millionth step is as exact as the first. */
TEST(long_runs)
{
    tn_sequential *net = tn_case_new(TN_F32);
    tn_optimizer  *o = tn_sgd_new(net, .lr = 1);
    tn_schedule   *s = tn_linear_lr_new(o, .start = 0, .steps = 1000000);
    ck_assert_double_eq(tn_lr(o, 0), 0);
    for (int i = 0; i < 1000000; i++) tn_schedule_step(s);
    ck_assert_double_eq(tn_lr(o, 0), 1);
    tn_schedule_free(s);
    s = tn_cosine_lr_new(o, .steps = 1000);
    tn_schedule_goto(s, (int64_t)1000 * 2001);
    ck_assert_double_eq(tn_lr(o, 0), 0);
    tn_schedule_goto(s, (int64_t)2000 * 1000000);
    ck_assert_double_eq(tn_lr(o, 0), 1);
    tn_schedule_free(s);
    s = tn_cosine_restarts_lr_new(o, .steps = 1, .times = 2);
    tn_schedule_goto(s, ((int64_t)1 << 40) - 1);
    ck_assert_double_eq(tn_lr(o, 0), 1);
    tn_schedule_free(s);
    s = tn_linear_lr_new(o, .start = 0, .steps = 4);
    tn_schedule_goto(s, INT64_MAX);
    tn_schedule_step(s); /* stays at the end, does not restart */
    ck_assert(tn_schedule_now(s) == INT64_MAX && tn_lr(o, 0) == 1);
    tn_optimizer_free(o);
    tn_free(net);
}

/* A linear schedule ends exactly at its end, whatever its steps round to: a rate below 0 would be rejected. */
TEST(lines_end)
{
    static const double starts[] = {0.1, 0.9, 1.0 / 3};
    tn_sequential      *net = tn_case_new(TN_F32);
    tn_optimizer       *o = tn_sgd_new(net, .lr = 1);
    for (int i = 0; i < 3; i++)
        for (int steps = 1; steps < 40; steps++) {
            tn_schedule *s = tn_linear_lr_new(o, .start = starts[i], .end = 0, .steps = steps);
            for (int t = 0; t < steps; t++) tn_schedule_step(s);
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            ck_assert_msg(tn_lr(o, 0) == 0, "%.17g in %d steps: %g", starts[i], steps, tn_lr(o, 0));
            tn_schedule_free(s);
            tn_set_lr(o, 0, 1);
        }
    tn_optimizer_free(o);
    tn_free(net);
}

/* A plateau whose best value is infinite, as a PSNR may be, keeps it after a restart: no value is better. */
TEST(an_endless_best)
{
    const char    *path = tn_test_file("endless.ckpt");
    tn_sequential *net = tn_case_new(TN_F32);
    for (int resumed = 0; resumed < 2; resumed++)
        for (int rising = 0; rising < 2; rising++) {
            tn_optimizer *o = tn_sgd_new(net, .lr = 1);
            tn_schedule  *s = tn_plateau_lr_new(o, .factor = 0.5, .patience = 0, .rising = rising);
            tn_plateau_step(s, rising ? INFINITY : -INFINITY);
            if (resumed) {
                ck_assert_int_eq(tn_checkpoint_save(path, .optimizer = o), TN_OK);
                tn_optimizer_free(o);
                o = tn_sgd_new(net, .lr = 1);
                s = tn_plateau_lr_new(o, .factor = 0.5, .patience = 0, .rising = rising);
                tn_checkpoint_file *f = tn_checkpoint_open(path);
                ck_assert_int_eq(tn_checkpoint_restore(f, .optimizer = o), TN_OK);
                tn_checkpoint_close(f);
            }
            tn_plateau_step(s, 1);
            ck_assert_msg(tn_lr(o, 0) == 0.5, "%d %d: %g", resumed, rising, tn_lr(o, 0));
            tn_optimizer_free(o);
        }
    tn_free(net);
}

/* A plateau as a factor together with a warmup; a cycle inside a sequence; nested schedules. */
TEST(joined)
{
    tn_sequential *net = tn_case_new(TN_F32);
    tn_optimizer  *o = tn_adam_new(net, .lr = 0.8);
    tn_schedule   *up = tn_linear_lr_new(o, .start = 0.5, .steps = 2),
                *flat = tn_plateau_lr_new(o, .factor = 0.25, .patience = 0);
    tn_schedule *both = tn_chained_lr_new(o, .parts = {up, flat});
    ck_assert_double_eq(tn_lr(o, 0), 0.4);
    tn_plateau_step(flat, 1);
    tn_schedule_step(both), tn_schedule_step(both), tn_schedule_step(both);
    ck_assert_double_eq(tn_lr(o, 0), 0.8);
    tn_plateau_step(flat, 1); /* no improvement: reduces at once */
    ck_assert_double_eq(tn_lr(o, 0), 0.2);
    tn_schedule_step(both);
    ck_assert_double_eq(tn_lr(o, 0), 0.2);
    tn_schedule_free(both);

    tn_schedule *wait = tn_constant_lr_new(o, .factor = 0.5, .steps = 3), *cycle = tn_one_cycle_lr_new(o, .steps = 4);
    tn_schedule *half = tn_constant_lr_new(o, .factor = 0.5, .steps = 100);
    tn_set_option(o, 0, TN_OPT_BETA1, 0.5);
    tn_schedule *turns = tn_sequential_lr_new(o, .parts = {wait, cycle}, .milestones = {3});
    tn_schedule *all = tn_chained_lr_new(o, .parts = {turns, half});
    ck_assert(tn_lr(o, 0) == 0.2 && tn_option(o, 0, TN_OPT_BETA1) == 0.5);
    tn_schedule_goto(all, 3);
    ck_assert_double_eq_tol(tn_lr(o, 0), 0.5 * 0.8 / 25, 1e-15);
    ck_assert_double_eq(tn_option(o, 0, TN_OPT_BETA1), 0.95);
    ck_assert_int_eq(tn_schedule_goto(all, 7), TN_OK);
    ck_fails(tn_schedule_step(all), TN_ESTATE,
             "tn_one_cycle_lr_new: the cycle ended after 4 steps; step 5 is not possible");
    ck_assert_int_eq(tn_schedule_now(all), 7);
    tn_optimizer_free(o);
    tn_free(net);
}

/* The schedule advances with each update, and an update after the end of the schedule is an error. */
TEST(followed)
{
    tn_sequential *net = tn_case_new(TN_F32);
    tn_optimizer  *o = tn_sgd_new(net, .lr = 1);
    tn_schedule   *s = tn_one_cycle_lr_new(o, .steps = 2, .no_momentum = true);
    tn_accumulate(o, 2);
    ck_assert_int_eq(tn_schedule_follow(s), TN_OK);
    ck_assert_int_eq(tn_schedule_step(s), TN_ESTATE); /* else it would advance twice per update */
    ck_error(TN_ESTATE, "tn_schedule_step: this schedule follows its optimizer (tn_schedule_follow, or tn_fit), "
                        "whose tn_step already steps it; remove this call");
    ck_assert_int_eq(tn_case_steps(net, o, 1, 2, 2), TN_OK);
    ck_assert(tn_schedule_now(s) == 2 && tn_steps(o) == 2);
    tn_sequential *before = tn_copy(net);
    tn_case_steps(net, o, 3, 3, 2);
    ck_error(TN_ESTATE, "tn_one_cycle_lr_new: the cycle ended after 2 steps; step 3 is not possible");
    ck_assert(tn_case_same(net, before) && tn_steps(o) == 2);
    tn_schedule_free(s);
    ck_assert_int_eq(tn_step(o), TN_OK); /* no schedule follows */
    tn_optimizer_free(o);
    tn_free(net), tn_free(before);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

static double strange(int64_t t, int group, void *user)
{
    (void)group;
    if (user && t == 2) tn_raise(TN_EIO, "the user's own error");
    return t == 1 ? NAN : t == 3 ? -1 : 1;
}

/* The rate after the update is checked before it. */
TEST(a_next_rate_that_is_invalid)
{
    tn_sequential *net = tn_case_new(TN_F32), *before = tn_copy(net);
    tn_optimizer  *o = tn_sgd_new(net, .lr = 1);
    tn_schedule_follow(tn_lambda_lr_new(o, .factor = strange));
    ck_assert_int_ne(tn_case_steps(net, o, 1, 1, 2), TN_OK);
    ck_error(TN_EINVAL, "tn_lambda_lr_new: at step 1 the learning rate of group 0 would be nan");
    ck_assert(tn_case_same(net, before) && tn_steps(o) == 0);
    tn_optimizer_free(o);
    tn_free(net), tn_free(before);
}

#define REFUSED(code, call, text)            \
    do {                                     \
        ck_assert_ptr_null(call);            \
        ck_assert_double_eq(tn_lr(o, 0), 1); \
        ck_error(code, text);                \
    } while (0)

TEST(wrong_use)
{
    tn_sequential *net = tn_case_new(TN_F32);
    tn_optimizer  *o = tn_sgd_new(net, .lr = 1), *other = tn_adagrad_new(net);
    REFUSED(TN_EINVAL, tn_cosine_lr_new(o), "tn_cosine_lr_new: .steps is 0, but must be at least 1");
    REFUSED(TN_EINVAL, tn_cosine_lr_new(NULL, .steps = 3), "tn_cosine_lr_new: the optimizer is NULL");
    REFUSED(TN_EINVAL, tn_cosine_lr_new(o, .steps = 3, .min_lr = -1),
            "tn_cosine_lr_new: .min_lr is -1, but must not be negative, nor infinite");
    REFUSED(TN_EINVAL, tn_one_cycle_lr_new(o, .max_lr = 1, .steps = 10, .three_phase = true, .warmup = 0.7),
            "tn_one_cycle_lr_new: .warmup is 0.7, but must be at most 0.5 with .three_phase, whose first two phases "
            "have equal length");
    REFUSED(TN_EINVAL, tn_step_lr_new(o), "tn_step_lr_new: .size is 0, but must be at least 1");
    REFUSED(TN_EINVAL, tn_step_lr_new(o, .size = 3, .gamma = NAN),
            "tn_step_lr_new: .gamma is nan, but must not be negative, nor infinite");
    REFUSED(TN_EINVAL, tn_multi_step_lr_new(o), "tn_multi_step_lr_new: .milestones is 0, but must be at least 1");
    REFUSED(TN_EINVAL, tn_multi_step_lr_new(o, .milestones = {3, -3}),
            "tn_multi_step_lr_new: .milestones is -3, but must be at least 1");
    REFUSED(TN_EINVAL, tn_exponential_lr_new(o), "tn_exponential_lr_new: .gamma is 0, but must be positive");
    REFUSED(TN_EINVAL, tn_linear_lr_new(o, .start = -0.5),
            "tn_linear_lr_new: .start is -0.5, but must not be negative, nor infinite");
    REFUSED(TN_EINVAL, tn_constant_lr_new(o, .steps = -1), "tn_constant_lr_new: .steps is -1, but must be at least 1");
    REFUSED(TN_EINVAL, tn_polynomial_lr_new(o, .power = -1),
            "tn_polynomial_lr_new: .power is -1, but must not be negative, nor infinite");
    REFUSED(TN_EINVAL, tn_cosine_restarts_lr_new(o, .steps = 2, .times = -1),
            "tn_cosine_restarts_lr_new: .times is -1, but must be at least 1");
    REFUSED(TN_EINVAL, tn_one_cycle_lr_new(o, .steps = 5, .warmup = 2),
            "tn_one_cycle_lr_new: .warmup is 2, but must be from 0 to 1");
    REFUSED(TN_EINVAL, tn_one_cycle_lr_new(o, .steps = 5, .div = -2),
            "tn_one_cycle_lr_new: .div is -2, but must be positive");
    REFUSED(TN_EINVAL, tn_one_cycle_lr_new(o, .steps = 5, .max_momentum = 1),
            "tn_one_cycle_lr_new: .max_momentum is 1, but must be at least 0 and less than 1");
    REFUSED(TN_EUNSUPPORTED, tn_one_cycle_lr_new(other, .steps = 5),
            "tn_one_cycle_lr_new: Adagrad has no momentum to cycle; set .no_momentum = true");
    REFUSED(TN_EINVAL, tn_warmup_lr_new(o, .warmup = 5), "tn_warmup_lr_new: .steps is 0, but must be at least 1");
    REFUSED(TN_EINVAL, tn_warmup_lr_new(o, .warmup = 5, .steps = 4),
            "tn_warmup_lr_new: .steps is 4, but must be at least .warmup");
    REFUSED(TN_EINVAL, tn_warmup_lr_new(o, .steps = 4, .decay = (tn_decay)7),
            "tn_warmup_lr_new: .decay is 7, but must be one of TN_DECAY_...");
    REFUSED(TN_EINVAL, tn_noam_lr_new(o), "tn_noam_lr_new: .dim is 0, but must be at least 1");
    REFUSED(TN_EINVAL, tn_inverse_sqrt_lr_new(o, .warmup = -4),
            "tn_inverse_sqrt_lr_new: .warmup is -4, but must be at least 1");
    REFUSED(TN_EINVAL, tn_plateau_lr_new(o, .factor = 1),
            "tn_plateau_lr_new: .factor is 1, but must be at least 0 and less than 1");
    REFUSED(TN_EINVAL, tn_plateau_lr_new(o, .cooldown = -1),
            "tn_plateau_lr_new: .cooldown is -1, but must not be negative, nor infinite");
    REFUSED(TN_EINVAL, tn_lambda_lr_new(o), "tn_lambda_lr_new: .factor is NULL");
    REFUSED(TN_EINVAL, tn_chained_lr_new(o),
            "tn_chained_lr_new: it has no parts, or the first is NULL: .parts = {a, b}");

    tn_schedule *s = tn_lambda_lr_new(o, .factor = strange, .user = o);
    tn_schedule_step(s);
    ck_error(TN_EINVAL, "tn_lambda_lr_new: at step 1 the learning rate of group 0 would be nan");
    tn_schedule_goto(s, 3);
    ck_error(TN_EINVAL, "tn_lambda_lr_new: at step 3 the learning rate of group 0 would be -1");
    tn_schedule_goto(s, 2);
    ck_error(TN_EIO, "the user's own error");
    ck_assert(tn_schedule_now(s) == 0 && tn_lr(o, 0) == 1);
    tn_schedule_goto(s, -1);
    ck_error(TN_EINVAL, "tn_schedule_goto: t is -1, but must not be negative");
    tn_schedule_step(NULL);
    ck_error(TN_EINVAL, "tn_schedule_step: the schedule is NULL");
    tn_plateau_step(s, 1);
    ck_error(TN_EINVAL, "tn_plateau_step: this is a lambda schedule; call tn_schedule_step");
    tn_schedule_lr(s, 0, 1);
    ck_error(TN_EINDEX, "tn_schedule_lr: group 1 does not exist; the optimizer has 1");

    tn_schedule *p = tn_plateau_lr_new(o), *far = tn_constant_lr_new(other);
    tn_schedule_step(p);
    ck_error(TN_ESTATE, "tn_schedule_step: a plateau schedule depends on values, not on steps; call tn_plateau_step");
    tn_schedule_goto(s, 4);
    ck_error(TN_ESTATE,
             "tn_schedule_goto: the optimizer has a lambda and a plateau schedule, which would overwrite each other; "
             "join them "
             "with tn_chained_lr_new or tn_sequential_lr_new");
    REFUSED(TN_EINVAL, tn_chained_lr_new(o, .parts = {s, NULL, p}), "tn_chained_lr_new: part 1 is NULL");
    REFUSED(TN_EINVAL, tn_chained_lr_new(o, .parts = {s, s}), "tn_chained_lr_new: part 1 (lambda) is listed twice");
    REFUSED(TN_EINVAL, tn_chained_lr_new(o, .parts = {s, far}),
            "tn_chained_lr_new: part 1 (constant) belongs to another optimizer");
    REFUSED(TN_EINVAL, tn_sequential_lr_new(o, .parts = {s, p}),
            "tn_sequential_lr_new: 2 parts need 1 milestones, got 0");
    REFUSED(TN_EINVAL, tn_sequential_lr_new(o, .parts = {s, p}, .milestones = {-1}),
            "tn_sequential_lr_new: milestone 0 is -1, but milestones must be positive and increase");
    tn_schedule *both = tn_sequential_lr_new(o, .parts = {p, s}, .milestones = {4});
    ck_assert_ptr_nonnull(both);
    tn_schedule_step(s);
    ck_error(TN_ESTATE, "tn_schedule_step: this lambda schedule is a part of a sequential one; step that one");
    tn_schedule_free(s);
    ck_error(TN_ESTATE, "tn_schedule_free: this lambda schedule is a part of a sequential one, which frees it");
    REFUSED(TN_EINVAL, tn_chained_lr_new(o, .parts = {s}),
            "tn_chained_lr_new: part 0 (lambda) is already a part of another schedule");
    tn_schedule_step(both);
    REFUSED(TN_EINVAL, tn_chained_lr_new(o, .parts = {both}),
            "tn_chained_lr_new: part 0 (sequential) has already taken steps");
    tn_schedule_goto(both, 0);
    for (int i = 0; i < 3; i++) ck_assert_ptr_nonnull(both = tn_chained_lr_new(o, .parts = {both}));
    REFUSED(TN_EINVAL, tn_chained_lr_new(o, .parts = {both}),
            "tn_chained_lr_new: part 0 (chained) is nested too deep: at most 4 levels of schedules are supported");
    tn_schedule_free(both);
    ck_assert_int_eq(tn_no_decay(o), TN_OK); /* no schedule any more */
    tn_optimizer_free(o), tn_optimizer_free(other);
    tn_free(net);
}

TEST_EACH(memory_fails, 2)
{
    tn_faulty_memory_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int64_t at = 0, calls = 0; at <= calls; at++) {
            const tn_scope scope = tn_scope_begin();
            tn_sequential *net = tn_case_new(TN_F32);
            tn_optimizer  *o = optimizer(net);
            tn_fail_memory(at, for_ever);
            tn_schedule *s = _i ? sequential(o) : chained(o);
            tn_schedule_step(s);
            calls = tn_memory_calls();
            tn_fail_memory(-1, false);
            ck_assert_int_eq(tn_error(), at < calls ? TN_ENOMEM : TN_OK);
            tn_clear_error();
            tn_optimizer_free(o);
            tn_free(net);
            tn_scope_end(scope);
        }
    tn_faulty_memory_end();
}
