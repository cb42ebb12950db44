/* train.c — the training step of all workloads: forward, backward, clipping of the gradient norm to 1, AdamW. The best
 * step counts; mallocs are counted after the first three steps. */
#include "bench/bench.h"

#include <math.h>

tn_tensor *bench_words(tn_shape s, int64_t vocab) { return tn_randint(s, 0, vocab); }
tn_tensor *bench_some(int64_t of, int64_t n) { return tn_narrow(tn_permutation(of), 0, 0, n); }

static int step(const bench_job *j, tn_optimizer *opt, tn_budget *budget, bool bf16, double *loss)
{
    do {
        tn_scope s = tn_scope_begin();
        tn_budget_begin(budget, tn_optimizer_missing(opt));
        tn_scope   narrow = tn_autocast_begin(bf16);
        tn_tensor *l = tn_scope_return(narrow, j->loss(j->job));
        tn_backward(l);
        *loss = tn_item(l);
        tn_scope_end(s);
    } while (tn_budget_again(budget));
    tn_step(opt);
    return tn_error() != TN_OK;
}

int bench_train(const bench_options *o, FILE *json, const bench_job *j)
{
    if (o->world) return bench_train_ranks(o, json, j);
    tn_optimizer *opt = tn_adamw_new((tn_module *)j->module, .lr = 1e-4, .clip.norm = 1);
    tn_budget    *budget = o->memory > 0 ? tn_budget_new((size_t)(o->memory * 1048576)) : NULL;
    double        best = INFINITY, first = 0, last = 0;
    int           steps = 0, failed = opt == NULL;
    for (int i = 0; i < 3 && !failed; i++) {
        failed = step(j, opt, budget, o->dtype == TN_BF16, &last);
        if (!i) first = last;
    }
    const uint64_t mallocs = tn_memory_now().mallocs;
    const double   end = bench_now() + (o->seconds > 0 ? o->seconds : 15);
    for (; !failed && (steps < 3 || bench_now() < end); steps++) {
        const double start = bench_now();
        failed = step(j, opt, budget, o->dtype == TN_BF16, &last);
        const double took = bench_now() - start;
        if (took < best) best = took;
    }
    if (!failed)
        fprintf(json,
                "\"step_ms\": %.3f, \"tok_s\": %.0f, \"steps\": %d, \"params\": %lld, \"gflop\": %.2f, "
                "\"gflop_s\": %.1f, \"peak_mib\": %.1f, \"held_mib\": %.1f, "
                "\"mallocs_per_step\": %.2f, \"first_loss\": %.6f, "
                "\"last_loss\": %.6f, ",
                best * 1e3, (double)j->tokens / best, steps, (long long)tn_module_count(j->module, false), j->gflop,
                j->gflop / best, (double)tn_memory_now().peak / 1048576, (double)tn_memory_now().live / 1048576,
                (double)(tn_memory_now().mallocs - mallocs) / steps, first, last);
    const tn_budget_report r = tn_budget_last(budget);
    if (!failed && budget)
        fprintf(json, "\"recomputed\": %lld, \"segments\": %lld, \"need_mib\": %.1f, ", (long long)r.recomputed,
                (long long)r.segments, (double)r.need / 1048576);
    tn_budget_free(budget);
    tn_optimizer_free(opt);
    return failed;
}
