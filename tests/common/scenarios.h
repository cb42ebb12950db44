/* scenarios.h — a test program of scenarios that run with every allocation failing, and repeatedly for a second or for
 * TENON_SOAK_SECONDS. Each scenario returns a number computed from all of its results. Scenarios are written like user
 * code that checks for an error only at the end: calls continue with the results of failed calls. The including file
 * ends with SCENARIOS. */
#ifndef TENON_TESTS_COMMON_SCENARIOS_H
#define TENON_TESTS_COMMON_SCENARIOS_H

#include "models/models.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include "tests/common/soak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef double (*scenario)(void);

static double     digest(tn_tensor *t) { return t ? tn_item(tn_sum(tn_mul(tn_detach(t), tn_detach(t)))) : NAN; }
static tn_tensor *ids(int64_t rows, int64_t n, int64_t below) { return tn_randint(TN_SHAPE(rows, n), 0, below); }

static const scenario *scenarios_run;

static double once(int i)
{
    const tn_scope s = tn_scope_begin();
    tn_seed(3);
    const double sum = scenarios_run[i]();
    tn_scope_end(s);
    return sum;
}

/* A model that trains during the whole soak, large enough for several threads. */
static tn_gpt       *stays;
static tn_optimizer *teacher;
static void          learns_on(void)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *loss = tn_gpt_loss(stays, ids(8, 32, 101), NULL);
    tn_zero_grads(stays);
    if (tn_backward(loss) == TN_OK) tn_step(teacher);
    ck_assert_msg(isfinite(tn_item(loss)), "%s", tn_error_message());
    tn_scope_end(s);
}

static void stays_level(const char *name, int n)
{
    const char *seconds = getenv("TENON_SOAK_SECONDS");
    stays = tn_gpt_new(.vocab = 101, .dim = 64, .layers = 2, .heads = 4, .positions = 32);
    teacher = stays ? tn_adamw_new((tn_module *)stays, .lr = 1e-3) : NULL;
    tn_soak(name, seconds ? atof(seconds) : tn_test_slow() ? 0 : 1, n, once, learns_on);
    tn_optimizer_free(teacher), tn_free(stays);
}

/* The tests of an array of scenarios. Every stride-th allocation fails; slow: the stride if tn_test_slow. */
#define SCENARIOS(name, scenarios, stride, slow)                                                        \
    BARE_TEST_EACH(every_allocation, (int)(sizeof scenarios / sizeof *scenarios))                       \
    {                                                                                                   \
        scenarios_run = scenarios;                                                                      \
        tn_each_allocation_fails(once, _i, tn_test_slow() ? slow : tn_test_whole() ? 1 : stride, 5, 2); \
    }                                                                                                   \
    BARE_TEST(soak)                                                                                     \
    {                                                                                                   \
        scenarios_run = scenarios;                                                                      \
        stays_level(name, (int)(sizeof scenarios / sizeof *scenarios));                                 \
    }                                                                                                   \
    struct tn_test_nothing

#endif
