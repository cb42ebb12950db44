/* test_lbfgs.c — L-BFGS: weights and losses of PyTorch (tests/golden/optim.py), closures and memory that fail, errors.
 */
#include "extras/lbfgs.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include "tests/common/optim_case.h"

/* The loss of the golden script; *user: the number of evaluations after which it fails. */
typedef struct {
    tn_sequential *net;
    int            left;
} problem;
static tn_tensor *loss_of(void *user)
{
    problem   *p = user;
    tn_tensor *all = NULL, *loss = NULL;
    int        k = 0;
    if (p->left-- == 0) return tn_raise(TN_EIO, "no data"), NULL;
    for (tn_each w = tn_parameters(p->net); tn_next(&w); k++) {
        tn_tensor *sum = tn_sum(w.tensor), *cosines = tn_mul_scalar(tn_sum(tn_cos(tn_mul_scalar(w.tensor, 3))), 0.3);
        tn_tensor *own = tn_add(cosines, tn_mul_scalar(tn_sum(tn_square(w.tensor)), (1 + k) / 2.0));
        all = all ? tn_add(all, sum) : sum, loss = loss ? tn_add(loss, own) : own;
    }
    return tn_add(loss, tn_mul_scalar(tn_square(all), 0.1));
}

static tn_lbfgs *fixed(tn_sequential *m) { return tn_lbfgs_new(m, .max_iter = 10, .history = 4, .lr = 0.3); }
static tn_lbfgs *wolfe(tn_sequential *m) { return tn_lbfgs_new(m, .max_iter = 10, .history = 4, .strong_wolfe = true); }
static tn_lbfgs *wolfe_far(tn_sequential *m)
{
    return tn_lbfgs_new(m, .max_iter = 10, .history = 4, .lr = 3, .strong_wolfe = true, .max_eval = 7);
}
static const struct {
    const char *name;
    tn_lbfgs *(*make)(tn_sequential *m);
} kinds[] = {{"lbfgs/fixed", fixed}, {"lbfgs/wolfe", wolfe}, {"lbfgs/wolfe_far", wolfe_far}};
enum { KINDS = sizeof kinds / sizeof *kinds, STEPS = 5 };

TEST_EACH(as_pytorch, KINDS)
{
    tn_safetensors *golden = tn_safetensors_open(tn_test_data("golden/optim.safetensors"));
    tn_tensor      *want = tn_safetensors_get(golden, kinds[_i].name);
    problem         p = {tn_case_new(TN_F64), -1};
    tn_lbfgs       *o = kinds[_i].make(p.net);
    ck_assert_msg(o && want, "%s", tn_error_message());
    for (int t = 0; t < STEPS - (_i == 2); t++) { /* PyTorch's last step of wolfe_far exceeds max_eval */
        double got[1 + TN_CASE_ELEMENTS];
        ck_assert_int_eq(tn_lbfgs_step(o, loss_of, &p, got), TN_OK);
        tn_case_elements(p.net, got + 1);
        for (int i = 0; i <= TN_CASE_ELEMENTS; i++) {
            const double w = tn_get_at(want, TN_SHAPE(t, i));
            ck_assert_msg(fabs(got[i] - w) <= 1e-10 * fmax(1, fabs(w)),
                          "%s, step %d [%d]: PyTorch has %.12g, we have %.12g", kinds[_i].name, t, i, w, got[i]);
        }
    }
    tn_lbfgs_free(o), tn_free(p.net);
    tn_safetensors_close(golden);
}

/* A step never evaluates the closure more often than .max_eval, and never ends worse than it started. */
TEST_EACH(number_of_evaluations, 2)
{
    for (int most = 1; most < 12; most++) {
        problem   p = {tn_case_new(TN_F64), -1};
        tn_lbfgs *o = tn_lbfgs_new(p.net, .max_eval = most, .lr = 3, .strong_wolfe = _i);
        double    before = INFINITY, loss;
        for (int step = 0; step < 4; step++) {
            p.left = most;
            ck_assert_msg(tn_lbfgs_step(o, loss_of, &p, &loss) == TN_OK, "%d: %s", most, tn_error_message());
            if (_i) ck_assert(loss <= before);
            before = loss;
        }
        tn_lbfgs_free(o), tn_free(p.net);
    }
}

static void start_at(tn_linear *m, double first)
{
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < 3; i++) tn_set(m->weight, i, first + i);
    tn_scope_end(s);
}

static tn_tensor *sum_minus_log(void *user)
{
    tn_tensor *w = ((tn_linear *)user)->weight;
    return tn_sum(tn_sub(w, tn_log(w)));
}

/* A step too far gives NaN: it is worse than any other point, and the line search goes back. */
TEST(a_loss_of_nan)
{
    tn_linear *m = tn_linear_new(.in = 3, .out = 1, .no_bias = true);
    start_at(m, 5);
    tn_lbfgs *o = tn_lbfgs_new(m, .lr = 1000, .strong_wolfe = true, .max_iter = 30);
    double    loss = NAN;
    for (int i = 0; i < 4; i++)
        ck_assert_msg(tn_lbfgs_step(o, sum_minus_log, m, &loss) == TN_OK, "%s", tn_error_message());
    for (int i = 0; i < 3; i++) ck_assert_double_lt(fabs(tn_get(m->weight, i) - 1), 1e-3);
    ck_assert_double_lt(fabs(loss - 3), 1e-5);
    start_at(m, -1); /* NaN already at the start: the weights stay */
    const double before[2] = {tn_get(m->weight, 1), tn_get(m->weight, 2)};
    ck_assert_int_eq(tn_lbfgs_step(o, sum_minus_log, m, &loss), TN_OK);
    ck_assert(isnan(loss) && tn_get(m->weight, 1) == before[0] && tn_get(m->weight, 2) == before[1]);
    tn_lbfgs_free(o), tn_free(m);
}

/* A closure that fails at any evaluation: the weights are those of before, and the optimizer can be used. */
TEST_EACH(closures_that_fail, KINDS)
{
    for (int left = 0; left < 6; left++) {
        problem        p = {tn_case_new(TN_F32), -1};
        tn_sequential *before;
        tn_lbfgs      *o = kinds[_i].make(p.net);
        ck_assert_int_eq(tn_lbfgs_step(o, loss_of, &p, NULL), TN_OK);
        before = tn_copy(p.net);
        p.left = left;
        const tn_status status = tn_lbfgs_step(o, loss_of, &p, NULL);
        if (p.left < 0) { /* it may have converged before */
            ck_fails_has(status, TN_EIO, "no data");
            ck_assert(tn_case_same(p.net, before));
        }
        p.left = -1;
        ck_assert_int_eq(tn_lbfgs_step(o, loss_of, &p, NULL), TN_OK);
        for (tn_each w = tn_parameters(p.net); tn_next(&w);) ck_assert_ptr_null(tn_grad(w.tensor));
        tn_free(before), tn_lbfgs_free(o), tn_free(p.net);
    }
}

BARE_TEST(memory_that_fails)
{
    tn_faulty_memory_begin();
    bool reached = true;
    for (int64_t n = 0; reached; n++) {
        const tn_scope s = tn_scope_begin();
        problem        p = {tn_case_new(TN_F64), -1};
        tn_fail_memory(n, true);
        tn_lbfgs *o = wolfe(p.net);
        tn_lbfgs_step(o, loss_of, &p, NULL);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        if (reached) ck_error_code(TN_ENOMEM);
        tn_lbfgs_free(o), tn_free(p.net);
        tn_scope_end(s);
    }
    tn_faulty_memory_end();
}

static tn_tensor *nothing(void *user) { return (void)user, NULL; }

TEST(mistakes)
{
    tn_sequential *net = tn_case_new(TN_F32), *empty = tn_sequential_new();
    tn_lbfgs      *o = tn_lbfgs_new(net);
    ck_refused(tn_lbfgs_new(empty), TN_EINVAL, "tn_lbfgs_new: the module has no parameters that require grad");
    ck_refused(tn_lbfgs_new(net, .max_iter = 0), TN_EINVAL,
               "tn_lbfgs_new: .max_iter must be finite and not negative, .max_iter and .history at least 1");
    ck_refused(tn_lbfgs_new(net, .lr = -1), TN_EINVAL,
               "tn_lbfgs_new: .lr must be finite and not negative, .max_iter and .history at least 1");
    ck_fails(tn_lbfgs_step(o, NULL, NULL, NULL), TN_EINVAL, "tn_lbfgs_step: the closure is NULL");
    ck_fails(tn_lbfgs_step(NULL, nothing, NULL, NULL), TN_EINVAL, "tn_lbfgs_step: the optimizer is NULL");
    ck_fails(tn_lbfgs_step(o, nothing, NULL, NULL), TN_EINVAL, "tn_lbfgs_step: the closure returned NULL");
    tn_lbfgs_free(o), tn_lbfgs_free(NULL);
    tn_free(net), tn_free(empty);
}
