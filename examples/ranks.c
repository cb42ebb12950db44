/* ranks.c — several processes train one network, with MPI: mpirun -n 4 build/bin/ranks. The last line is the same for
 * any number of processes, to the last digit. Built without MPI, or started without mpirun, the program is one rank.
 * Build: cc -O2 ranks.c -o ranks $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

enum { ROWS = 96, STEPS = 200 };

/* The mean over rows first ... first + rows - 1 of the batch. */
static tn_tensor *loss_of(tn_sequential *net, tn_tensor *x, int64_t first, int64_t rows)
{
    tn_tensor *part = tn_narrow(x, 0, first, rows);
    return tn_mse_loss(tn_call(net, part), tn_sin(part));
}

static void train(tn_world *w, tn_sequential *net)
{
    tn_optimizer *opt = tn_adamw_new(net, .lr = 1e-2, .clip.norm = 1);
    tn_replica   *r = tn_replica_new(w, net, .shards = 12); /* copies rank 0's weights and generator */
    for (int step = 1; step <= STEPS && tn_error() == TN_OK; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = tn_uniform(TN_SHAPE(ROWS, 1), -3, 3); /* [96, 1], the same on all ranks */
        for (tn_part p = {0}; tn_replica_next(r, &p);) {     /* this rank's shards, of 12 */
            tn_batch b = {0};
            tn_batch_cut(&b, p.shard, ROWS);
            tn_replica_backward(r, loss_of(net, x, b.first, b.rows), (double)b.rows);
        }
        tn_step(opt); /* with the gradients of all rows, the same on every rank */
        if (tn_world_rank(w) == 0 && step % 50 == 0) printf("%4d  %.17g\n", step, tn_replica_loss(r));
        tn_scope_end(s);
    }
    tn_replica_free(r);
    tn_optimizer_free(opt);
}

int main(void)
{
#ifdef RANKS_MPI
    tn_world *w = tn_world_mpi(NULL);
#else
    tn_world *w = tn_world_single();
#endif
    const int rank = tn_world_rank(w);
    tn_seed(1);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 1, .out = 32));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_dropout_new(.p = 0.05));
    tn_append(net, tn_linear_new(.in = 32, .out = 1));
    train(w, net);
    tn_free(net);
    tn_world_free(w); /* also sends an error to the other ranks */
    if (tn_error()) fprintf(stderr, "rank %d: %s\n", rank, tn_error_message());
    return tn_error() != TN_OK;
}
