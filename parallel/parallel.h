/* parallel.h — several processes that learn as one: ranks, and gradients of a batch that they share out. The results
 * are the same bits for any number of ranks, one included. examples/ranks.c is a whole program; what it does, started
 * with `mpirun -n 4 program`, on each rank:
 *
 *     tn_world     *w = tn_world_mpi(NULL);                    // link tenon::mpi; tn_world_alone() needs no MPI
 *     tn_optimizer *o = tn_adamw_new(net, .lr = 3e-4, .clip.norm = 1);
 *     tn_replica   *r = tn_replica_new(w, net, .shards = 12);  // the weights and the generator are rank 0's now
 *     for (int i = 0; i < 1000 && tn_error() == TN_OK; i++) {
 *         tn_scope s = tn_scope_begin();
 *         for (tn_part p = {0}; tn_replica_next(r, &p);) {     // of the 12 shards of a batch, this rank's
 *             tn_batch b = {0};
 *             tn_batch_cut(&b, p.shard, 96);                   // rows b.first ... of 96
 *             tn_tensor *rows = tn_narrow(batch, 0, b.first, b.rows);
 *             tn_replica_backward(r, model_loss(net, rows), (double)b.rows); // the mean over these rows
 *         }                                                    // now the gradients are those of all 96
 *         tn_step(o);
 *         if (tn_world_rank(w) == 0) printf("%d %.4f\n", i, tn_replica_loss(r));
 *         tn_scope_end(s);
 *     }
 *     tn_replica_free(r);
 *     tn_world_free(w);                                        // an error that stands reaches the others, too
 *
 * Why the bits are the same: a batch is cut into .shards parts whatever the number of ranks, each part has its gradient
 * and its random numbers for itself, and the gradients are added along one tree that the number of shards alone fixes.
 * docs/adr/0030 says more.
 *
 * Errors reach every rank. Calls that say "all ranks" are made by all of them in the same order, also while an error
 * stands; there the ranks first tell each other how they are. If one has failed, all have an error that begins with its
 * number, and none waits for another. */
#ifndef TENON_PARALLEL_PARALLEL_H
#define TENON_PARALLEL_PARALLEL_H

#include "../data/source.h"
#include "../optim/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

typedef struct tn_world tn_world; /* used by the thread that made it */

TN_API tn_world *tn_world_alone(void); /* one rank */
/* The ranks of an MPI_Comm that the pointer points to, which is duplicated; NULL: MPI_COMM_WORLD. MPI is started if
 * nobody has, and then also ended, with the world. In the library tenon::mpi; the others do without MPI. */
TN_API tn_world *tn_world_mpi(const void *communicator);
/* All ranks. An error that stands here ends the others' next call with it. NULL is harmless. */
TN_API void tn_world_free(tn_world *w);

TN_API int tn_world_rank(const tn_world *w); /* 0 ... size - 1; 0 of NULL */
TN_API int tn_world_size(const tn_world *w); /* 1 of NULL */
/* Are all ranks on one machine? There gradients travel at the speed of its memory, and a thread that sends them
 * meanwhile (.overlap) takes more from the computation than it hides. */
TN_API bool tn_world_near(const tn_world *w);

/* All ranks, each of these. */
TN_API tn_status tn_world_barrier(tn_world *w);                                  /* waits for all */
TN_API tn_status tn_world_gather(tn_world *w, double mine, double *all);         /* all[rank], on each rank */
TN_API tn_status tn_world_same(tn_world *w, const char *what, const char *text); /* an error where a text differs */
/* Something that all ranks are to do at the same time once one of them wants it: to end, say. What a rank wishes
 * travels with the next call that all make; behind that call it is wished on all ranks, until the call behind it. */
TN_API void tn_world_wish(tn_world *w, bool on);
TN_API bool tn_world_wished(const tn_world *w);
/* Parameters and buffers of the module, where it is not NULL, and this thread's current generator become rank 0's. */
TN_API tn_status tn_world_module_broadcast(tn_world *w, void *module);
#define tn_world_broadcast(w, m) tn_world_module_broadcast(w, TN_ANY_MODULE_(m))

/* ---- a replica: the gradients of a batch that ranks share out ---------------------------------------------------- */

enum { TN_SHARDS_MAX = 4096 };
typedef struct tn_replica tn_replica;
typedef struct tn_replica_config {
    int        zero_;
    tn_world  *world; /* outlives the replica */
    void      *module;
    int shards TN_IS(12); /* of a batch: at least one for each rank; the same number, the same bits. A rank works on
                             its own one after the other: many small ones are gradient accumulation */
    bool zero;  /* ZeRO-1: each rank has the optimizer's state of its share of the parameters only, and steps these; see
                  tn_replica_step */
    bool zero3; /* ZeRO-3: and a part of the weights; an op that reads one gets the others' parts first. The same bits;
                   implies .zero; see tn_replica_whole */
    int64_t resident TN_IS(256 << 20); /* with it: bytes of others' parts that stay for the next op that reads them */
    bool fast; /* gradients of ranks are added as the transport does it: MPI_Allreduce, say, in an order that depends on
                  their number. Then another number of ranks ends with other bits */
    bool sparse; /* what is zero on all ranks stays at home: rows of a table that the batch has not looked up. The same
                    bits; for tables that are only looked up, since a search for zeros takes its time. Not with .fast */
    bool
        overlap; /* gradients travel, on a thread of their own, while the backward pass of a rank's last shard runs: the
                     same bits. One tn_replica_backward a shard, then; without effect for .fast and .sparse */
    tn_clip        clip;           /* of whole gradients, by tn_replica_step: where .zero, instead of the optimizer's */
    int64_t bucket TN_IS(4 << 20); /* bytes that travel at once; changes no bits */
    int            end_;
} TN_KEYWORDS_ONLY tn_replica_config;
#define TN_REPLICA_DEFAULTS .shards = 12, .resident = 256 << 20, .bucket = 4 << 20
/* All ranks. Broadcasts the module and the generator; an error if the ranks' modules or shards differ. */
TN_API tn_replica *tn_replica_create(tn_replica_config c);
TN_API void        tn_replica_free(tn_replica *r);

/* One of a rank's shards. tn_replica_next opens a scope for it, and a generator that depends on the step and the shard
 * alone: what is drawn, for dropout, say, is the same whatever rank does it. */
typedef struct {
    tn_shard shard; /* {5, 12}: for tn_batch_cut, tn_source_shard */
    bool     open_;
    tn_scope scope_;
} tn_part;
/* False: there is no further shard, or an error stands. Then all ranks have met, and each parameter's gradient is that
 * of the whole batch: the sum of what tn_replica_backward was given, over the sum of the weights. Go on until it is
 * false: the others wait for it. */
TN_API bool tn_replica_next(tn_replica *r, tn_part *p);
/* All of this rank's shards, as tn_source_shard takes them: each batch of the source comes in these parts. */
TN_API tn_shard tn_replica_shard(const tn_replica *r);
/* In that loop, on all ranks or on none: there is no such batch after all. Then the loop is left. */
TN_API void tn_replica_cancel(tn_replica *r, tn_part *p);
/* The gradients of weight times loss; weight: how many rows or tokens the loss is the mean of. Once or more a shard; a
 * shard without rows needs none. A loss that is not finite is an error. */
TN_API tn_status tn_replica_backward(tn_replica *r, tn_tensor *loss, double weight);

/* Instead of tn_step; all ranks. Clips, then steps; with .zero each rank its share, whose weights go to all: the same
 * bits as without (an optimizer's own clip rounds otherwise, and sees only its share). Of the optimizer's state each
 * of k ranks has a k-th then, by elements; of an optimizer that steps whole parameters (LAMB, Adafactor) whole ones. */
TN_API tn_status tn_replica_step(tn_replica *r, tn_optimizer *o);
/* All ranks. Before a checkpoint, which any number of ranks may go on from: with .zero rank 0 gets the state of all
 * parameters, and all get all rows of buffers that have one for each of the batch (tn_buffer_rows). Behind saving and
 * restoring each forgets what is not its share. */
TN_API tn_status tn_replica_collect(tn_replica *r, tn_optimizer *o);
TN_API void      tn_replica_forget(tn_replica *r, tn_optimizer *o);
TN_API double    tn_replica_norm(const tn_replica *r); /* of all gradients, before .clip; NaN: not measured */

/* With .zero3 weights are shared out from the first batch on. Until tn_replica_whole or tn_replica_free, which all
 * ranks call then, nothing but tn_replica_step changes them, and between the end of tn_replica_next's loop and the
 * step nothing reads them; at any other time they may be read as always, by any rank for itself, on the thread of
 * the replica. Behind tn_replica_whole each rank has all of them, as it had before; the next batch shares them out
 * again. Where ranks have ended before, or there is no memory for it, weights that were not here are lost, and using
 * one is an error. Behind tn_replica_collect rank 0 has all of them, until tn_replica_forget. What it saves, and
 * what it costs, is in docs/guide/cluster.md. */
TN_API tn_status tn_replica_whole(tn_replica *r);

/* Of the last batch: the mean of the loss, on each rank (NaN: there was none), and how long it took to be exchanged. */
TN_API double tn_replica_loss(const tn_replica *r);
TN_API double tn_replica_seconds(const tn_replica *r); /* behind the last backward pass; waiting for others included */

/* ---- how bytes travel -------------------------------------------------------------------------------------------- */

/* For tests and measurements: what this rank sends takes so long, as on a network with that latency and rate. */
TN_API void tn_world_slow(tn_world *w, double seconds, double bytes_per_second);

/* What a world stands on. Each call is made by all ranks; returns TN_OK, or raises, after which the world is of no more
 * use. At most 2^30 bytes go from one rank to another at once. */
typedef struct {
    int   rank, size;
    bool  near; /* all ranks are on one machine, and know it */
    void *user;
    tn_status (*gather)(void *user, const void *mine, void *all, int bytes); /* all: size times bytes */
    tn_status (*broadcast)(void *user, void *data, int bytes, int from);
    /* To rank i go out_bytes[i] from out + out_at[i]; from it come in_bytes[i] to in + in_at[i],
     * which lies apart from out. */
    tn_status (*swap)(void *user, const void *out, const int *out_bytes, const int *out_at, void *in,
                      const int *in_bytes, const int *in_at);
    void (*free)(void *user);
    /* The sum of all ranks' floats or doubles, in their place; or NULL. */
    tn_status (*sum)(void *user, void *data, int count, bool f64);
    /* For .zero3, both or none. All ranks: from here on the others may read that memory, of as many bytes on each rank;
     * NULL: no longer. And not by all ranks: bytes of that rank's memory, from byte `at` on; what it has written there
     * before the last call that all ranks made. */
    tn_status (*expose)(void *user, void *memory, int64_t bytes);
    tn_status (*get)(void *user, void *to, int bytes, int from, int64_t at);
} tn_transport;
/* A world of your own transport, which is the world's to free, also if this fails. */
TN_API tn_world *tn_world_over(tn_transport t);

#ifdef __cplusplus
}
#else
/* tn_replica_new(world, net, .shards = 24) */
#define tn_replica_new(...) \
    TN_CALL_(               \
        tn_replica_create(TN_ARGS2_(tn_replica_config, TN_REPLICA_DEFAULTS, world, module, __VA_ARGS__, .zero_ = 0)))
#endif
#endif
