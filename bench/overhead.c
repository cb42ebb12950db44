/* overhead.c — the overhead of an op: 1,000 times y = y·0.999 + 0.001 on a 4x4 tensor, then the backward pass of its
 * sum. The result is the time of the best run divided by its 2,000 ops. */
#include "bench/bench.h"

#include <tenon/tenon.h>

enum { STEPS = 1000, OPS = 2 * STEPS };

static int once(tn_tensor *x)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *y = x;
    for (int i = 0; i < STEPS; i++) y = tn_add_scalar(tn_mul_scalar(y, 0.999), 0.001);
    tn_status status = tn_backward(tn_sum(y));
    tn_scope_end(s);
    return status != TN_OK;
}

int bench_overhead(const bench_options *o, FILE *json)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(4, 4)));
    double     best = 1e9, end = bench_now() + (o->seconds > 0 ? o->seconds : 5);
    int        failed = once(x), runs = 0;
    for (; !failed && (runs < 50 || bench_now() < end); runs++) {
        double start = bench_now();
        failed = once(x);
        double took = bench_now() - start;
        if (took < best) best = took;
    }
    fprintf(json, "\"ns_per_op_fwd_bwd\": %.1f, \"runs\": %d, ", best / OPS * 1e9, runs);
    tn_scope_end(s);
    return failed;
}
