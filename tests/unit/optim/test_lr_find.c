/* test_lr_find.c — the learning rate finder: its curve, its choice, the state that it restores, and mistakes. */
#include "tests/common/check_main.h"
#include "tests/common/optim_case.h"

/* loss Σ w²: with gradient descent of rate r, w ← (1 - 2 r) w, so the loss grows for r > 1. Draws random numbers. */
typedef struct {
    tn_sequential *net;
    int            calls, fails;
    double         sign, shift;
} problem;
static tn_tensor *loss_of(void *user)
{
    problem   *p = user;
    tn_tensor *loss = NULL;
    if (++p->calls == p->fails) return tn_raise(TN_EIO, "no data"), NULL;
    tn_uniform(TN_SHAPE(3), 0, 1);
    for (tn_each w = tn_parameters(p->net); tn_next(&w);) {
        tn_tensor *sum = tn_mul_scalar(tn_sum(tn_square(w.tensor)), p->sign);
        loss = loss ? tn_add(loss, sum) : sum;
    }
    return tn_add_scalar(loss, p->shift);
}

TEST_EACH(curve_and_choice, 2)
{
    enum { STEPS = 60 };
    problem            p = {tn_case_new(TN_F64), .sign = 1};
    tn_sequential     *before = tn_copy(p.net);
    tn_optimizer      *o = _i ? tn_adamw_new(p.net, .lr = 0.25) : tn_sgd_new(p.net, .lr = 0.25, .momentum = 0.5);
    const tn_generator g = *tn_current_generator();
    double             lrs[STEPS], losses[STEPS], again[STEPS];
    const double       lr = tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .user = &p, .from = 1e-4, .to = 100,
                                       .steps = STEPS, .lrs = lrs, .losses = losses);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert(lr > 1e-4 && lr < (_i ? 10 : 1));
    for (int i = 0; i < p.calls; i++)
        ck_assert_double_le(fabs(lrs[i] / (1e-4 * pow(1e6, i / (STEPS - 1.0))) - 1), 1e-12);
    if (!_i) ck_assert(p.calls < STEPS && isnan(lrs[STEPS - 1]) && isnan(losses[STEPS - 1])); /* it diverged */
    /* everything is as before: weights, optimizer, generator; and a second run gives the same curve */
    ck_assert(tn_case_same(before, p.net) && tn_steps(o) == 0 && tn_lr(o, 0) == 0.25);
    ck_assert(!memcmp(&g, tn_current_generator(), sizeof g));
    for (tn_each w = tn_parameters(p.net); tn_next(&w);)
        ck_assert(!tn_grad(w.tensor) && !tn_optimizer_state(o, w.tensor, _i ? "exp_avg" : "momentum_buffer"));
    ck_assert_double_eq(tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .user = &p, .from = 1e-4, .to = 100,
                                   .steps = STEPS, .losses = again),
                        lr);
    ck_assert(!memcmp(losses, again, sizeof losses) || isnan(losses[STEPS - 1]));
    tn_optimizer_free(o), tn_free(p.net), tn_free(before);
}

/* A loss below 0, as of likelihoods: the curve has as many points, and the choice is that of the loss + 1000. */
TEST(negative_losses)
{
    double lr[2];
    int    calls[2];
    for (int shifted = 0; shifted < 2; shifted++) {
        problem       p = {tn_case_new(TN_F64), .sign = 1, .shift = shifted ? -1000 : 0};
        tn_optimizer *o = tn_sgd_new(p.net, .lr = 0.25);
        lr[shifted] = tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .user = &p, .from = 1e-4, .to = 0.5);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        calls[shifted] = p.calls;
        tn_optimizer_free(o), tn_free(p.net);
    }
    ck_assert_msg(calls[1] == 100 && calls[0] == 100, "%d and %d", calls[0], calls[1]);
    ck_assert_double_eq_tol(lr[0], lr[1], 1e-9);
    problem       p = {tn_case_new(TN_F64), .sign = 1, .shift = -10};
    tn_optimizer *o = tn_sgd_new(p.net, .lr = 0.25);
    tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .user = &p, .from = 1e-4, .to = 100);
    ck_assert(tn_error() == TN_OK && p.calls < 100); /* it diverges */
    tn_optimizer_free(o), tn_free(p.net);
}

TEST(mistakes)
{
    problem        p = {tn_case_new(TN_F32), .sign = 1, .fails = 7};
    tn_sequential *before = tn_copy(p.net);
    tn_optimizer  *o = tn_sgd_new(p.net, .lr = 0.25);
    ck_assert(isnan(tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .user = &p)));
    ck_error_has(TN_EIO, "no data"); /* in step 7 */
    ck_assert(tn_case_same(before, p.net) && tn_steps(o) == 0 && tn_lr(o, 0) == 0.25);
    p.sign = 0, p.fails = 0;
    ck_assert(isnan(tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .user = &p)));
    ck_error(TN_ESTATE, "tn_lr_find: the loss never fell; check that the closure computes the loss of this module");
    ck_assert(isnan(tn_lr_find(p.net, .optimizer = o)));
    ck_error(TN_EINVAL, "tn_lr_find: .closure is NULL");
    ck_assert(isnan(tn_lr_find(p.net, .closure = loss_of)));
    ck_error(TN_EINVAL, "tn_lr_find: .optimizer is NULL");
    ck_assert(isnan(tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .from = 0)));
    ck_error(TN_EINVAL, "tn_lr_find: rates from 0 to 1, expected 0 < .from < .to");
    ck_assert(isnan(tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .steps = 3)));
    ck_error(TN_EINVAL, "tn_lr_find: .steps is 3, but must be from 10 to 2147483647");
    ck_assert(isnan(tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .stop = 1)));
    ck_error(TN_EINVAL, "tn_lr_find: .stop is 1, expected more than 1");
    p.sign = 1;
    ck_assert_int_eq(tn_case_steps(p.net, o, 1, 1, 1), TN_OK);
    ck_assert(isnan(tn_lr_find(p.net, .optimizer = o, .closure = loss_of, .user = &p)));
    ck_error(TN_ESTATE, "tn_lr_find: the optimizer has made 1 steps and has 1 groups, expected none and 1");
    tn_optimizer_free(o), tn_free(p.net), tn_free(before);
}
