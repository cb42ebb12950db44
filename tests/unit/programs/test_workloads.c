/* test_workloads.c — the training jobs of bench/ at odd sizes and without dropout, compared with PyTorch: loss and
 * gradient norm of each step, and the same bits for any number of threads. This shows that no code works only for the
 * benchmark's sizes. tests/golden/workloads.py computes the expected values. */
#include "bench/bench.h"
#include "core/files.h"
#include "tests/common/check_main.h"
#include "tests/common/golden_case.h"

enum { STEPS = 8 };
static int steps(void) { return tn_test_slow() ? 2 : STEPS; }

static const char *name;           /* of the current workload */
static int         calls;          /* number of calls of bench_words */
static double      seen[2][STEPS]; /* losses and norms */

double bench_now(void) { return 0; }

tn_tensor *bench_words(tn_shape s, int64_t vocab)
{
    uint32_t h = 2166136261u;
    for (const char *c = tn_name("%s/%d", name, calls++); *c; c++) h = (h ^ (uint8_t)*c) * 16777619u;
    tn_tensor *t = tn_zeros_of(TN_I64, s);
    for (int64_t i = 0; i < tn_numel(t); i++) tn_set_i64(t, i, (i * 7919 + (int64_t)h) % 10007 % vocab);
    return t;
}

tn_tensor *bench_some(int64_t of, int64_t n)
{
    tn_tensor *t = tn_zeros_of(TN_I64, TN_SHAPE(n));
    for (int64_t i = 0; i < n; i++) tn_set_i64(t, i, i * 37 % of);
    return t;
}

/* Replaces the function that measures. */
int bench_train(const bench_options *o, FILE *json, const bench_job *j)
{
    (void)o, (void)json;
    tn_golden k = {.name = name, .dtype = TN_F32, .matrices = 0.1};
    tn_golden_fill(&k, j->module);
    tn_eval((tn_module *)j->module); /* no dropout */
    tn_optimizer *opt = tn_adamw_new((tn_module *)j->module, .lr = 1e-3, .clip.norm = 1);
    for (int i = 0; i < steps(); i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *l = j->loss(j->job);
        tn_backward(l);
        tn_step(opt);
        seen[0][i] = tn_item(l), seen[1][i] = tn_grad_norm(opt);
        tn_scope_end(s);
    }
    tn_optimizer_free(opt);
    return tn_error() != TN_OK;
}

static const struct {
    const char     *name;
    bench_workload *run;
} jobs[] = {{"bert", bench_bert}, {"gpt", bench_gpt}, {"seq2seq", bench_seq2seq}, {"lstm", bench_lstm}};

TEST_ROWS(losses_are_pytorchs, jobs)
{
    static const char *const what[] = {"loss", "norm"};
    const bench_options odd = {.sizes = {.layers = 3, .d_model = 96, .heads = 6, .vocab = 1003, .batch = 5, .seq = 33}};
    double              first[2][STEPS];
    tn_json            *file = tn_json_load(tn_test_data("golden/workloads.json"));
    for (int threads = 1; threads <= (tn_test_slow() ? 2 : 3); threads++) {
        tn_set_threads(threads);
        name = jobs[_i].name, calls = 0;
        jobs[_i].run(&odd, NULL);
        ck_assert_msg(tn_error() == TN_OK, "%s: %s", name, tn_error_message());
        for (int i = 0; i < 2 * steps(); i++) {
            double *one = &first[i % 2][i / 2], now = seen[i % 2][i / 2];
            if (threads == 1) *one = now;
            ck_assert_msg(*one == now, "%s: %d threads give other bits", name, threads);
        }
    }
    tn_set_threads(0);
    for (int w = 0; w < 2; w++) {
        const tn_json *want = tn_json_get(tn_json_get(file, name), what[w]);
        ck_assert_int_eq(tn_json_count(want), STEPS);
        for (int i = 0; i < steps(); i++) {
            const double p = tn_json_double(tn_json_at(want, i));
            ck_assert_msg(fabs(seen[w][i] - p) <= 1e-5 * p, "%s: %s of step %d: PyTorch has %.9g, we have %.9g", name,
                          what[w], i, p, seen[w][i]);
        }
    }
    tn_json_free(file);
}
