/* reduce.c — bench ranks --workload reduce: the replica's exchange, which adds gradients in a fixed order, against an
 * MPI_Allreduce of the same number of bytes, alternately. Times are those of the rank that came last. */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#ifdef BENCH_MPI
#include <mpi.h>
#endif

enum { ROWS = 11250, WIDTH = 1000, MOST_RANKS = 12 }; /* 45 MB; --vocab overrides ROWS */

#ifdef BENCH_MPI
static double least(tn_world *w, double mine)
{
    double all[MOST_RANKS] = {0}, least = INFINITY;
    tn_world_gather(w, mine, all);
    for (int i = 0; i < tn_world_size(w); i++) least = fmin(least, all[i]);
    return least;
}

/* One exchange with gradients equal to the weights: the loss is half the sum of their squares. */
static double ordered(tn_world *w, tn_replica *r, tn_embedding *m)
{
    const tn_scope s = tn_scope_begin();
    for (tn_part p = {0}; tn_replica_next(r, &p);)
        tn_replica_backward(r, tn_mul_scalar(tn_sum(tn_mul(m->weight, m->weight)), 0.5), 1);
    tn_scope_end(s);
    return least(w, tn_replica_seconds(r));
}

static double of_mpi(tn_world *w, float *x, int n)
{
    tn_world_barrier(w);
    const double start = bench_now();
    MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return least(w, bench_now() - start);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
#endif

int bench_reduce(const bench_options *o, FILE *json)
{
#ifdef BENCH_MPI
    enum { MOST = 1000 };
    static double took[2][MOST];
    const int64_t steps = o->steps < MOST ? o->steps : MOST;
    const int64_t n = (o->sizes.vocab ? o->sizes.vocab : ROWS) * WIDTH;
    tn_scope      all = tn_scope_begin();
    tn_embedding *m = tn_embedding_new(.count = n / WIDTH, .dim = WIDTH);
    tn_tensor    *x = tn_zeros(TN_SHAPE(n));
    float        *data = x ? tn_data_mut(x) : NULL;
    tn_world_simulate_network(o->world, o->delay_us * 1e-6, o->delay_mb * 1e6);
    tn_replica *r = tn_replica_new(o->world, m, .shards = tn_world_size(o->world));
    for (int64_t i = -1; i < steps && data && tn_error() == TN_OK; i++) { /* the first is a warm-up */
        const double a = ordered(o->world, r, m), b = of_mpi(o->world, data, (int)n);
        if (i >= 0) took[0][i] = a, took[1][i] = b;
    }
    for (int i = 0; i < 2; i++) qsort(took[i], (size_t)steps, sizeof(double), by_size);
    const double a = took[0][steps / 2], b = took[1][steps / 2];
    if (tn_error() == TN_OK)
        fprintf(json,
                "\"mb\": %.0f, \"ordered_ms\": %.3f, \"mpi_ms\": %.3f, \"ratio\": %.3f, \"best_ordered_ms\": %.3f, "
                "\"best_mpi_ms\": %.3f",
                (double)n * 4e-6, a * 1e3, b * 1e3, a / b, took[0][0] * 1e3, took[1][0] * 1e3);
    tn_replica_free(r);
    tn_free(m);
    tn_scope_end(all);
    return tn_error() != TN_OK;
#else
    (void)o, (void)json;
    return tn_raise(TN_EINVAL, "--workload reduce needs MPI and at least two ranks") != TN_OK;
#endif
}
