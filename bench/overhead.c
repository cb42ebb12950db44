/* overhead.c — the overhead of an op: 1,000 times y = y·0.999 + 0.001 on a 4x4 tensor, then the backward pass of its
 * sum; and a replay of the ops without the backward. The results are the times of the best runs divided by the number
 * of ops. */
#include "bench/bench.h"

#include <tenon/tenon.h>

enum { STEPS = 1000, OPS = 2 * STEPS };

static tn_tensor *step(void *x)
{
    tn_tensor *y = x;
    for (int i = 0; i < STEPS; i++) y = tn_add_scalar(tn_mul_scalar(y, 0.999), 0.001);
    return y;
}

static int once(tn_tensor *x)
{
    tn_scope  s = tn_scope_begin();
    tn_status status = tn_backward(tn_sum(step(x)));
    tn_scope_end(s);
    return status != TN_OK;
}

int bench_overhead(const bench_options *o, FILE *json)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(4, 4)));
    tn_replay *replay = tn_replay_record(step, x);
    double     best = 1e9, best_replay = 1e9, end = bench_now() + (o->seconds > 0 ? o->seconds : 5);
    int        failed = !replay || once(x), runs = 0;
    for (; !failed && (runs < 50 || bench_now() < end); runs++) {
        double start = bench_now();
        failed = once(x);
        double took = bench_now() - start;
        if (took < best) best = took;
        start = bench_now();
        failed = failed || !tn_replay_run(replay);
        took = bench_now() - start;
        if (took < best_replay) best_replay = took;
    }
    fprintf(json, "\"ns_per_op_fwd_bwd\": %.1f, \"ns_per_op_replay\": %.1f, \"runs\": %d, ", best / OPS * 1e9,
            best_replay / OPS * 1e9, runs);
    tn_replay_free(replay);
    tn_scope_end(s);
    return failed;
}
