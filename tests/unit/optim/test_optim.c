/* test_optim.c — optimizers: 50 steps compared with PyTorch's (tests/golden/optim.py), whole steps or none, the same
 * bits for any number of threads, no allocation after the first step. */
#include "tests/common/check_main.h"

#include "autograd/tape/casts.h"
#include "tests/common/optim_case.h"
#include <float.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

/* ---- compared with PyTorch --------------------------------------------------------------------------------------- */

enum { KINDS = TN_CASE_KINDS, STEPS = 50, SHOWN = 6 };
static const int shown[SHOWN] = {1, 2, 5, 10, 25, 50};

static tn_safetensors *golden;
static void            open_golden(void)
{
    golden = tn_safetensors_open(tn_test_data("golden/optim.safetensors"));
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
}
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);

static void compare(const char *name, tn_dtype dt, int row, const double got[TN_CASE_ELEMENTS])
{
    char key[80];
    snprintf(key, sizeof key, "optimizer/%s/%s", name, tn_dtype_name(dt));
    tn_tensor   *want = tn_safetensors_get(golden, key);
    const double tol = dt == TN_F64 ? 1e-10 : 2e-6;
    double       largest = 0;
    ck_assert_msg(want && tn_numel(want) == SHOWN * TN_CASE_ELEMENTS, "%s: %s", key, tn_error_message());
    for (int i = 0; i < TN_CASE_ELEMENTS; i++) largest = fmax(largest, fabs(tn_get(want, row * TN_CASE_ELEMENTS + i)));
    for (int i = 0; i < TN_CASE_ELEMENTS; i++) {
        const double w = tn_get(want, row * TN_CASE_ELEMENTS + i);
        ck_assert_msg(fabs(w - got[i]) <= tol * largest,
                      "%s, step %d [%d]: PyTorch has %.10g, we have %.10g (relative %.2g)", key, shown[row], i, w,
                      got[i], fabs(w - got[i]) / largest);
    }
}

static void run(tn_sequential *net, tn_optimizer *o, int from, int to, int parts)
{
    ck_assert_msg(tn_case_steps(net, o, from, to, parts) == TN_OK, "%s", tn_error_message());
}

TEST_EACH(trajectories, KINDS)
{
    const tn_case_kind *k = tn_case_kinds + _i;
    for (int f64 = 1; f64 >= 0; f64--) {
        const tn_dtype dt = f64 ? TN_F64 : TN_F32;
        tn_sequential *net = tn_case_new(dt);
        tn_optimizer  *o = k->make(net);
        ck_assert_msg(o != NULL, "%s: %s", k->name, tn_error_message());
        for (int row = 0, t = 0; row < SHOWN; row++) {
            double         got[TN_CASE_ELEMENTS];
            const tn_scope s = tn_scope_begin();
            run(net, o, t + 1, shown[row], k->parts);
            t = shown[row];
            tn_case_elements(net, got);
            compare(k->name, dt, row, got);
            tn_scope_end(s);
        }
        ck_assert_int_eq(tn_steps(o), STEPS);
        tn_optimizer_free(o);
        tn_free(net);
    }
}

TEST(averages)
{
    for (int f64 = 1; f64 >= 0; f64--) {
        tn_sequential *net = tn_case_new(f64 ? TN_F64 : TN_F32), *before;
        tn_optimizer  *o = tn_sgd_new(net, .lr = 0.1);
        tn_ema        *e = tn_ema_new(net, .decay = 0.9);
        for (int row = 0, t = 0; row < SHOWN; row++) {
            double got[TN_CASE_ELEMENTS];
            for (; t < shown[row]; t++) {
                run(net, o, t + 1, t + 1, 1);
                ck_assert_int_eq(tn_ema_update(e), TN_OK);
            }
            before = tn_copy(net);
            ck_assert_int_eq(tn_ema_swap(e), TN_OK);
            ck_assert(tn_ema_swapped(e) && !tn_case_same(net, before));
            tn_case_elements(net, got);
            compare("ema", f64 ? TN_F64 : TN_F32, row, got);
            ck_assert_int_eq(tn_ema_swap(e), TN_OK);
            ck_assert(tn_case_same(net, before));
            tn_free(before);
        }
        tn_ema_free(e);
        tn_optimizer_free(o);
        tn_free(net);
    }
}

/* If 1 - decay is 1, the average equals the weight, without the rounding of a difference, and an old Inf does not
 * remain. */
TEST(averages_that_are_the_weights)
{
    static const double began[] = {1, 3e7, INFINITY}, then[] = {1e-9, 0.3, 2};
    for (int kind = 0; kind < 3;
         kind++) { /* a mean before tn_ema_start, its first update, and an average with decay 0 */
        tn_linear *m = tn_linear_new(.in = 3, .out = 1, .no_bias = true);
        tn_scope   s = tn_no_grad_begin();
        for (int i = 0; i < 3; i++) tn_set(m->weight, i, began[i]);
        tn_scope_end(s);
        tn_ema *e = kind == 2 ? tn_ema_new(m, .decay = 0) : tn_ema_new(m, .mean = true);
        if (kind == 1) tn_ema_start(e);
        s = tn_no_grad_begin();
        for (int i = 0; i < 3; i++) tn_set(m->weight, i, then[i]);
        tn_scope_end(s);
        tn_ema_update(e), tn_ema_swap(e);
        for (int i = 0; i < 3; i++)
            ck_assert_msg(tn_get(m->weight, i) == (double)(float)then[i], "%d: [%d] is %g", kind, i,
                          tn_get(m->weight, i));
        tn_ema_swap(e);
        tn_ema_free(e), tn_free(m);
    }
}

/* Every trajectory of the golden file is compared. */
TEST(nothing_is_left_out)
{
    for (int64_t i = 0; i < tn_safetensors_count(golden); i++) {
        const char *name = tn_safetensors_at(golden, i).name;
        bool        found = strncmp(name, "optimizer/", 10) != 0 || !strncmp(name, "optimizer/ema/", 14);
        for (int k = 0; k < KINDS && !found; k++) {
            const size_t n = strlen(tn_case_kinds[k].name);
            found = !strncmp(name + 10, tn_case_kinds[k].name, n) && name[10 + n] == '/';
        }
        ck_assert_msg(found, "nobody compares %s", name);
    }
}

/* ---- threads and memory ------------------------------------------------------------------------------------------ */

/* Several chunks, tensors across their boundaries, tiny tensors in between. */
static tn_sequential *large_new(tn_dtype dt)
{
    static const int64_t size[] = {5, 40000, 1, 16384, 700, 20000};
    tn_sequential       *net = tn_sequential_new();
    const tn_scope       s = tn_scope_begin();
    tn_seed(3);
    for (int i = 0; i < 6; i++) {
        const tn_shape shape = size[i] >= 700 ? TN_SHAPE(size[i] / 100, 100) : TN_SHAPE(size[i]);
        tn_param(net, tn_name("%d", i), tn_normal_of(dt, shape, 0, 1));
    }
    tn_scope_end(s);
    return tn_built(net);
}

static tn_status large_backward(tn_sequential *net, int t)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *loss = NULL;
    tn_seed((uint64_t)t);
    for (tn_each p = tn_parameters(net); tn_next(&p);) {
        tn_tensor *c = tn_normal_of(tn_dtype_of(p.tensor), tn_shape_of(p.tensor), 0, 1);
        tn_tensor *sum = tn_sum(tn_mul(p.tensor, c));
        loss = loss ? tn_add(loss, sum) : sum;
    }
    tn_backward(loss);
    tn_scope_end(s);
    return tn_error();
}

TEST_EACH(any_number_of_threads, KINDS)
{
    static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16};
    for (int d = 0; d < 3; d++) {
        tn_sequential *first = NULL;
        for (int threads = 1; threads <= (tn_test_slow() ? 2 : 7); threads += threads < 3 ? 1 : 4) {
            tn_set_threads(threads);
            tn_sequential *net = large_new(types[d]);
            tn_optimizer  *o = tn_case_kinds[_i].make(net);
            tn_ema        *e = tn_ema_new(net, .decay = 0.5);
            for (int t = 0; t < (tn_test_slow() ? 2 : 4) * tn_case_kinds[_i].parts; t++) {
                large_backward(net, t);
                if (t == 1) tn_clip_grads(net, .clip.norm = 3);
                tn_step(o);
                tn_ema_update(e);
            }
            tn_ema_swap(e);
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            if (first)
                ck_assert_msg(tn_case_same(first, net), "%s, %s, %d threads", tn_case_kinds[_i].name,
                              tn_dtype_name(types[d]), threads);
            tn_ema_free(e);
            tn_optimizer_free(o);
            if (first) tn_free(net);
            else first = net;
        }
        tn_free(first);
    }
}

/* From the second step on nothing is allocated, except by Muon for products of matrices; a step leaves no gradient. */
TEST_EACH(steps_take_no_memory, KINDS)
{
    tn_sequential *net = large_new(TN_F32);
    tn_optimizer  *o = tn_case_kinds[_i].make(net);
    tn_ema        *e = tn_ema_new(net);
    for (int t = 0; t < (tn_test_slow() ? 3 : 6) * tn_case_kinds[_i].parts; t++) {
        large_backward(net, t);
        tn_trim(); /* empties the cache */
        const uint64_t before = tn_memory_now().mallocs;
        tn_step(o);
        tn_ema_update(e);
        tn_ema_swap(e), tn_ema_swap(e);
        if (TN_TEST_CACHE && t >= 2 && strncmp(tn_case_kinds[_i].name, "muon", 4))
            ck_assert_uint_eq(tn_memory_now().mallocs, before);
    }
    ck_assert_int_eq(tn_error(), TN_OK);
    for (tn_each p = tn_parameters(net); tn_next(&p);) ck_assert_ptr_null(tn_grad(p.tensor));
    tn_ema_free(e);
    tn_optimizer_free(o);
    tn_free(net);
}

#if defined(__SSE2__) || defined(__aarch64__)
/* True if the CPU treats denormals as 0 when asked to; valgrind's does not. */
static bool flushes(void)
{
#ifdef __SSE2__
    const unsigned before = _mm_getcsr();
    volatile float least = FLT_MIN;
    _mm_setcsr(before | 0x8040); /* DAZ and FTZ */
    volatile float half = least / 2;
    _mm_setcsr(before);
    return half == 0;
#else
    return true;
#endif
}

/* When gradients stop, their mean shrinks by a tenth each step. It ends at 0, not at a denormal, which would be slow;
 * the program around the step still has denormals. */
TEST_EACH(what_shrinks_ends_at_zero, 2)
{
    static const tn_dtype types[] = {TN_F32, TN_F64};
    const tn_dtype        dt = types[_i];
    tn_sequential        *net = tn_sequential_new();
    tn_tensor            *w = tn_ones_of(dt, TN_SHAPE(40));
    tn_param(net, "w", w);
    tn_optimizer   *o = tn_adam_new(net, .lr = 1e-3);
    volatile double least = DBL_MIN;
    volatile float  least_f32 = FLT_MIN;
    for (int t = 0; t < (dt == TN_F32 ? 1000 : 7000); t++) {
        const tn_scope s = tn_scope_begin();
        tn_backward(tn_sum(tn_mul_scalar(w, t ? 0 : 1)));
        ck_assert_int_eq(tn_step(o), TN_OK);
        tn_scope_end(s);
    }
    const double most = flushes() ? 0 : dt == TN_F32 ? (double)FLT_MIN : DBL_MIN;
    for (int i = 0; i < 40; i++) ck_assert(fabs(tn_get(tn_optimizer_state(o, w, "exp_avg"), i)) <= most);
    ck_assert(least / 2 > 0 && least_f32 / 2 > 0);
    tn_optimizer_free(o);
    tn_free(net);
}
#endif

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void refused(tn_optimizer *saved, tn_optimizer *here, const char *differs)
{
    tn_optimizer *all[] = {saved, here};
    const char   *path = tn_test_file("rule.ckpt");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_checkpoint_save(path, .optimizer = all[i]), TN_OK);
        tn_checkpoint_file *f = tn_checkpoint_open(path);
        ck_assert_int_eq(tn_checkpoint_restore(f, .optimizer = all[i]), TN_OK);
        ck_assert_int_ne(tn_checkpoint_restore(f, .optimizer = all[!i]), TN_OK);
        ck_assert_msg(strstr(tn_error_message(), differs), "%s", tn_error_message());
        tn_clear_error();
        tn_checkpoint_close(f);
    }
    tn_optimizer_free(saved), tn_optimizer_free(here);
}

/* Options that change the rule of an update must be those of the checkpoint. */
TEST(options_of_the_rule)
{
    tn_sequential *net = tn_case_new(TN_F32);
    refused(tn_nadam_new(net), tn_nadam_new(net, .decoupled = true), "decoupled is ");
    refused(tn_radam_new(net), tn_radam_new(net, .decoupled = true), "decoupled is ");
    refused(tn_muon_new(net), tn_muon_new(net, .match_rms = true), "match_rms is ");
    refused(tn_muon_new(net), tn_muon_new(net, .no_nesterov = true), "nesterov is ");
    refused(tn_muon_new(net), tn_muon_new(net, .bf16 = true), "bf16 is ");
    tn_free(net);
}

/* A step that starts while one runs: from a schedule's function here, from another thread in a program. */
static double steps_again(int64_t step, int group, void *user)
{
    (void)step, (void)group;
    if (*(tn_optimizer **)user) tn_step(*(tn_optimizer **)user);
    return 1;
}
TEST(a_step_within_a_step)
{
    tn_sequential *net = tn_case_new(TN_F32);
    tn_optimizer  *o = tn_sgd_new(net), *again = NULL;
    tn_schedule_follow(tn_lambda_lr_new(o, .factor = steps_again, .user = &again));
    for (int t = 0; t < 3; t++) {
        again = t == 1 ? o : NULL;
        tn_case_backward(net, t, 0);
        tn_step(o);
        if (t == 1) ck_error_has(TN_ESTATE, "tn_step: another thread is in tn_step or tn_backward of");
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    }
    ck_assert_int_eq(tn_steps(o), 2);
    tn_optimizer_free(o), tn_free(net);
}

/* A backward pass whose leaf another thread changes: the pass fails, and the next one does not. */
TEST(a_backward_within_a_step)
{
    tn_sequential *net = tn_case_new(TN_F32);
    tn_each        p = tn_parameters(net);
    ck_assert(tn_next(&p) && tn__leaf_claim(p.tensor));
    tn_case_backward(net, 1, 0);
    ck_error_has(TN_ESTATE, "backward: another thread is in tn_step or tn_backward of");
    tn__leaf_release(p.tensor);
    ck_assert_int_eq(tn_case_backward(net, 1, 0), TN_OK);
    tn_free(net);
}

/* A step under autocast has the bits of one without: Muon's products, too. */
TEST_EACH(steps_under_autocast, KINDS)
{
    tn_sequential *net[2] = {tn_case_new(TN_F32), tn_case_new(TN_F32)};
    for (int narrow = 0; narrow < 2; narrow++) {
        tn_optimizer *o = tn_case_kinds[_i].make(net[narrow]);
        for (int t = 0; t < 3 * tn_case_kinds[_i].parts; t++) {
            tn_case_backward(net[narrow], t, 0);
            const tn_scope s = tn_autocast_begin(narrow);
            ck_assert_int_eq(tn_step(o), TN_OK);
            tn_scope_end(s);
        }
        tn_optimizer_free(o);
    }
    ck_assert_msg(tn_case_same(net[0], net[1]), "%s", tn_case_kinds[_i].name);
    tn_free(net[0]), tn_free(net[1]);
}

/* In PyTorch a NaN in the gradient of a matrix makes all of Adafactor's update NaN, in that of a vector one element. */
TEST(a_nan_in_a_gradient)
{
    tn_linear    *m = tn_linear_new(.in = 3, .out = 2);
    tn_optimizer *o = tn_adafactor_new(m, .lr = 0.1);
    for (int step = 0; step < 2; step++) {
        tn_tensor *g = tn_ones(TN_SHAPE(2, 3)), *b = tn_ones(TN_SHAPE(2));
        if (!step) tn_set(g, 1, (double)NAN), tn_set(b, 1, (double)NAN);
        tn_set_grad(m->weight, g), tn_set_grad(m->bias, b);
        ck_assert_int_eq(tn_step(o), TN_OK);
        for (int i = 0; i < 6; i++) ck_assert_msg(isnan(tn_get(m->weight, i)), "%g", tn_get(m->weight, i));
        ck_assert(fabs(tn_get(m->bias, 0)) < 1 && isnan(tn_get(m->bias, 1)));
    }
    tn_optimizer_free(o), tn_free(m);
}
