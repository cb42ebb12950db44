/* fit_ranks.c — tn_fit on several ranks. Each rank does the same steps with its shards of each batch: the common state
 * (weights, generator, counts) is bit-identical on all ranks, and so are decisions that depend on it. State that may
 * differ (the stop flag, which checkpoint is intact) is exchanged. */
#include "models/fit/fit_private.h"

bool tn__fit_ranks_begin(tn__fit *f)
{
    tn_fit_args *c = &f->c;
    if (!c->world) return true;
    f->replica = tn_replica_create(
        (tn_replica_config){.world = c->world,
                            .module = c->module,
                            .shards = c->shards,
                            .zero = c->zero,
                            .clip.norm = f->own ? c->clip : 0,
                            .bucket = 1 << 20, /* small, because the last bucket's transfer cannot be overlapped */
                            .overlap = !tn_world_is_local(c->world)});
    if (c->ema) { /* it was initialised from this rank's weights: broadcast rank 0's averages */
        tn_ema_swap(c->ema);
        tn_world_module_broadcast(c->world, c->module);
        tn_ema_swap(c->ema);
    }
    f->shared = c->valid.next && c->valid.shard;
    tn_source_shard(&c->train, tn_replica_shard(f->replica));
    if (f->shared) tn_source_shard(&c->valid, tn_replica_shard(f->replica));
    if (tn_world_check_same(c->world, ".config", c->config ? c->config : "") != TN_OK) return false;
    return f->replica && tn_error() == TN_OK;
}

void tn__fit_ranks_end(tn__fit *f)
{
    tn_error_state aside;
    tn_error_push(&aside);
    if (f->replica) tn_source_shard(&f->c.train, (tn_shard){0});
    if (f->replica && f->shared) tn_source_shard(&f->c.valid, (tn_shard){0});
    tn_error_pop(&aside);
    tn_replica_free(f->replica);
}

/* True if the batch is the expected shard; a source that ignores .count would return another one. */
static bool is_expected_shard(const tn_batch *b, tn_shard shard)
{
    tn_batch should = {0};
    tn_batch_cut(&should, shard, b->whole);
    if (!b->whole || (b->first == should.first && b->rows == should.rows)) return true;
    return tn_raise_false(
        TN_EINVAL,
        "tn_fit: .train returned rows %lld to %lld of %lld for shard %d of %d; its .next must call tn_shard_next "
        "after each batch",
        (long long)b->first, (long long)(b->first + b->rows), (long long)b->whole, shard.rank, shard.of);
}

/* Runs a shard's loss and backward pass, with its weight. */
static void run_shard(tn__fit *f, const tn_batch *b)
{
    const tn_fit_args *c = &f->c;
    const tn_scope     narrow = tn_autocast_begin(c->autocast);
    tn_tensor         *loss = tn_scope_return(narrow, c->loss(c->module, b, c->user));
    if (!tn__fit_loss_is_valid(f, loss)) return;
    tn_replica_backward(f->replica, loss, tn__fit_weight(b));
}

bool tn__fit_ranks_gradients(tn__fit *f)
{
    const tn_shard mine = tn_replica_shard(f->replica);
    for (tn_part p = {0}; tn_replica_next(f->replica, &p);) {
        tn_batch b;
        if (!tn__fit_next_batch(f, &b)) {
            if (tn_error() == TN_OK && p.shard.rank == mine.rank) { /* as on all other ranks */
                tn_replica_cancel(f->replica, &p);
                return false;
            }
            if (tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_fit: .train ended an epoch in the middle of a batch");
            continue;
        }
        if (is_expected_shard(&b, p.shard) && !tn__fit_is_empty(&b)) run_shard(f, &b);
    }
    f->seen -= mine.count - 1; /* tn__fit_next_batch counted each shard as a batch */
    f->items = (int64_t)((double)f->items * mine.of / mine.count);
    f->mean = tn_replica_loss(f->replica);
    return tn_error() == TN_OK;
}

bool tn__fit_ranks_broadcast(tn__fit *f, double *v)
{
    tn_world    *w = f->c.world;
    const size_t bytes = (size_t)tn_world_size(w) * sizeof *v;
    double      *all = w ? tn_mem_get(bytes) : NULL;
    if (!w) return tn_error() == TN_OK;
    if (tn_world_gather(w, *v, all) == TN_OK) *v = all[0];
    tn_mem_put(all, bytes);
    return tn_error() == TN_OK;
}

/* Gathers the sums of each shard and adds them in shard order, so that rounding does not depend on the ranks. */
bool tn__fit_ranks_mean(tn__fit *f, double *sum)
{
    tn_world      *w = f->c.world;
    const int      size = tn_world_size(w), shards = f->c.shards, most = (shards + size - 1) / size;
    const tn_shard mine = tn_replica_shard(f->replica);
    const size_t   bytes = (size_t)size * sizeof *sum;
    double        *all = tn_mem_get(bytes);
    for (int i = 0; i < 2 * most; i++) {
        const double own = i / 2 < mine.count ? sum[2 * (mine.rank + i / 2) + i % 2] : 0;
        if (tn_world_gather(w, own, all) != TN_OK) break;
        for (int rank = 0; rank < size; rank++) {
            tn_batch of = {0};
            tn_batch_cut(&of, (tn_shard){.rank = rank, .of = size}, shards);
            if (i / 2 < of.rows) sum[2 * (of.first + i / 2) + i % 2] = all[rank];
        }
    }
    tn_mem_put(all, bytes);
    for (int i = 1; i < shards; i++) sum[0] += sum[2 * i], sum[1] += sum[2 * i + 1];
    return tn_error() == TN_OK;
}
