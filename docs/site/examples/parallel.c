/* parallel.c — examples of worlds and replicas (data-parallel training; here one rank), and of decodings. */
#include "show.h"

EXAMPLE(world)
{
    tn_world  *w = tn_world_single(); /* tn_world_mpi(NULL) in a program started by mpirun */
    double     all[1];
    tn_linear *m = tn_linear_new(.in = 2, .out = 1);
    tn_world_barrier(w);
    tn_world_gather(w, 3, all);
    tn_world_broadcast(w, m);
    tn_world_check_same(w, "options", "lr 0.1");
    tn_world_set_flag(w, true); /* the next collective call sends it */
    tn_world_barrier(w);
    tn_world_simulate_network(w, 0, 1e9);
    printf("rank %d of %d, %g, flag %d, local %d\n", tn_world_rank(w), tn_world_size(w), all[0], tn_world_flag(w),
           tn_world_is_local(w));
    tn_free(m);
    tn_world_free(w);
}

EXAMPLE(replica)
{
    tn_world     *w = tn_world_single();
    tn_linear    *m = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *o = tn_sgd_new(m, .lr = 0.1);
    tn_replica   *r = tn_replica_new(w, m, .shards = 4);
    tn_tensor    *batch = tn_ones(TN_SHAPE(8, 2));
    for (tn_part p = {.open_ = false}; tn_replica_next(r, &p);) {
        tn_batch b = {.items = 0};
        tn_batch_cut(&b, p.shard, 8); /* rows b.first … of 8 */
        tn_tensor *y = tn_call(m, tn_narrow(batch, 0, b.first, b.rows));
        tn_replica_backward(r, tn_mean(tn_square(y)), (double)b.rows);
    }
    tn_replica_step(r, o);
    printf("%d steps, loss above 0: %d\n", (int)tn_steps(o), tn_replica_loss(r) > 0);
    tn_replica_collect(r, o); /* before saving a training checkpoint */
    tn_replica_forget(r, o);
    printf("%d %d %d\n", tn_replica_seconds(r) >= 0, isnan(tn_replica_norm(r)) != 0, tn_replica_shard(r).of);
    tn_part p = {.open_ = false};
    if (tn_replica_next(r, &p)) tn_replica_cancel(r, &p); /* the data ended */
    tn_replica_free(r);
    tn_optimizer_free(o);
    tn_free(m);
    tn_world_free(w);
}

static tn_tensor *small_step(void *model, tn_tensor *ids, tn_kv_cache *cache)
{
    return tn_gpt_forward((tn_gpt *)model, ids, .cache = cache, .last = true);
}

EXAMPLE(decodings)
{
    tn_gpt      *gpt = tn_gpt_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 2, .positions = 32);
    tn_tensor   *prompt = tn_reshape(tn_arange(3), TN_SHAPE(1, 3));
    tn_decoding *d[] = {tn_cached_decoding(gpt, small_step, tn_blocks_cache(gpt->blocks, 1, 16, 0), 1, 16),
                        tn_windowed_decoding(gpt, small_step, tn_blocks_cache(gpt->blocks, 1, 16, 0), 1, 16, 8)};
    tn_eval(gpt);
    for (int i = 0; i < 2; i++) {
        tn_generated g = tn_generate(d[i], prompt, .most = 4, .sample = true, .top_k = 5, .temperature = 0.8);
        printf("%d tokens\n", (int)tn_size(g.tokens, 2));
    }
    printf("%s\n", tn_status_name(tn_cached_decoding_trim(d[0], 3)));
    for (int i = 0; i < 2; i++) tn_decoding_free(d[i]);
    tn_free(gpt);
}

EXAMPLE(router_loss)
{
    tn_blocks *m = tn_blocks_new(.layers = 1, .dim = 8, .heads = 2, .ff = 16, .experts = 4);
    tn_tensor *router[1], *y = tn_blocks_forward(m, tn_ones(TN_SHAPE(1, 3, 8)), .router = router);
    printf("%d %d\n", y != NULL, tn_item(tn_router_loss(router, 1, .balance = 0.01, .z = 0.001)) > 0);
    tn_free(m);
}
