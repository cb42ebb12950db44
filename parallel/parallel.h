/* parallel.h — data-parallel training with several processes (ranks). The results have the same bits for any number of
 * ranks, one included. examples/ranks.c is a complete program; started with `mpirun -n 4 program`, each rank runs:
 *
 *     tn_world     *w = tn_world_mpi(NULL);                    // link tenon::mpi; tn_world_single() needs no MPI
 *     tn_optimizer *o = tn_adamw_new(net, .lr = 3e-4, .clip.norm = 1);
 *     tn_replica   *r = tn_replica_new(w, net, .shards = 12);  // broadcasts weights and generator of rank 0
 *     for (int i = 0; i < 1000 && tn_error() == TN_OK; i++) {
 *         tn_scope s = tn_scope_begin();
 *         for (tn_part p = {0}; tn_replica_next(r, &p);) {     // this rank's of the 12 shards of a batch
 *             tn_batch b = {0};
 *             tn_batch_cut(&b, p.shard, 96);                   // rows b.first ... of 96
 *             tn_tensor *rows = tn_narrow(batch, 0, b.first, b.rows);
 *             tn_replica_backward(r, model_loss(net, rows), (double)b.rows); // the mean over these rows
 *         }                                                    // now the gradients are those of all 96 rows
 *         tn_step(o);
 *         if (tn_world_rank(w) == 0) printf("%d %.4f\n", i, tn_replica_loss(r));
 *         tn_scope_end(s);
 *     }
 *     tn_replica_free(r);
 *     tn_world_free(w);                                        // sends an error that is set to the other ranks
 *
 * Why the bits are the same: a batch is cut into .shards shards for any number of ranks. Each shard has its own
 * gradient and its own random numbers. The gradients are added along a tree that depends on the number of shards only
 * (docs/adr/0030).
 *
 * Errors reach every rank. Functions marked "all ranks" are collective: all ranks call them in the same order, also
 * while an error is set. They start with an exchange of the ranks' status. If one rank has failed, all ranks get an
 * error that starts with its number, and no rank waits for another. */
#ifndef TENON_PARALLEL_PARALLEL_H
#define TENON_PARALLEL_PARALLEL_H

#include "../data/source.h"
#include "../optim/optim.h"

TN_C_BEGIN_

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

typedef struct tn_world tn_world; /* used only by the thread that created it */

TN_API tn_world *tn_world_single(void); /* one rank */
/* The ranks of the MPI_Comm at `communicator`, which is duplicated; NULL: MPI_COMM_WORLD. Initialises MPI if the
 * program has not, and then finalises it with the world. In the library tenon::mpi; all other libraries need no MPI. */
TN_API tn_world *tn_world_mpi(const void *communicator);
/* All ranks. If an error is set, the other ranks get it in their next collective call. w may be NULL. */
TN_API void tn_world_free(tn_world *w);

TN_API int tn_world_rank(const tn_world *w); /* 0 ... size - 1; w NULL: 0 */
TN_API int tn_world_size(const tn_world *w); /* w NULL: 1 */
/* True if all ranks are on one machine. Gradients are then exchanged at the speed of its memory, and a sending thread
 * (.overlap) slows the computation by more than it hides. */
TN_API bool tn_world_is_local(const tn_world *w);

/* All ranks, for each of these. */
TN_API tn_status tn_world_barrier(tn_world *w);                          /* waits for all ranks */
TN_API tn_status tn_world_gather(tn_world *w, double mine, double *all); /* all[rank] = mine; error: NaN */
TN_API tn_status tn_world_check_same(tn_world *w, const char *what,
                                     const char *text); /* an error if a rank's text differs */
/* A flag that any rank may set, so that all ranks do something at the same step, for example stop. The next collective
 * call combines it with OR over all ranks; tn_world_flag returns that result until the following collective call. */
TN_API void tn_world_set_flag(tn_world *w, bool on);
TN_API bool tn_world_flag(const tn_world *w);
/* Sets the parameters and buffers of the module (may be NULL) and this thread's current generator to rank 0's. */
TN_API tn_status tn_world_module_broadcast(tn_world *w, void *module);
#define tn_world_broadcast(w, m) tn_world_module_broadcast(w, TN_ANY_MODULE_(m))

/* ---- a replica: computes the gradients of a batch that is distributed over the ranks ----------------------------- */

enum { TN_SHARDS_MAX = 4096 };
typedef struct tn_replica tn_replica;
typedef struct tn_replica_config {
    int        zero_;
    tn_world  *world; /* borrowed; must outlive the replica */
    void      *module;
    int shards TN_IS(12); /* shards per batch, at least one per rank; the number determines the bits. A rank runs its
                             shards one after the other: many small shards are gradient accumulation */
    bool zero; /* ZeRO-1: each rank stores the optimizer's state of its part of the parameters and updates only that
                   part; use tn_replica_step */
    bool fast; /* let the transport add the gradients (MPI_Allreduce), in an order that depends on the number of ranks:
                  results then differ in the last bits between numbers of ranks */
    bool sparse;  /* do not send blocks that are zero on all ranks (embedding rows the batch does not use). The same
                    bits. Searching for zeros costs time, so use it for large embeddings. Not with .fast */
    bool overlap; /* send gradients in a thread while the backward pass of a rank's last shard runs. The same bits.
                     Allows one tn_replica_backward per shard; no effect with .fast and .sparse */
    tn_clip        clip; /* clipping of whole gradients in tn_replica_step; use it instead of the optimizer's */
    int64_t bucket TN_IS(4 << 20); /* bytes per message round; does not change the bits */
    int            end_;
} TN_KEYWORDS_ONLY tn_replica_config;
#define TN_REPLICA_DEFAULTS .shards = 12, .bucket = 4 << 20
/* All ranks. Broadcasts the module and the generator; an error if the ranks' modules or shards differ. */
TN_API tn_replica *tn_replica_create(tn_replica_config c);
TN_API void        tn_replica_free(tn_replica *r);

/* One of a rank's shards. tn_replica_next opens a scope for it and sets a generator that depends on step and shard
 * only, so that random values, for example of dropout, are the same on any rank. */
typedef struct {
    tn_shard shard; /* {5, 12}: for tn_batch_cut, tn_source_shard */
    bool     open_;
    tn_scope scope_;
} tn_part;
/* Moves on to this rank's next shard. Returns false after the last shard, or if an error is set. Then all ranks have
 * exchanged gradients, and each parameter's gradient is that of the whole batch: the sum of the gradients passed to
 * tn_replica_backward divided by the sum of the weights. Earlier gradients are dropped; those that wait for an update
 * (tn_accumulate) are an error. Call it until it returns false, since other ranks wait. */
TN_API bool tn_replica_next(tn_replica *r, tn_part *p);
/* All shards of this rank, for tn_source_shard: the source then returns the rows of these shards of each batch. */
TN_API tn_shard tn_replica_shard(const tn_replica *r);
/* Cancels a batch inside that loop, for example at the end of the data; on all ranks or on none. Drops
 * the gradients and restores the generator. Then leave the loop. */
TN_API void tn_replica_cancel(tn_replica *r, tn_part *p);
/* Computes the gradients of weight times loss. weight: number of rows or tokens that the loss is the mean of. Call it
 * once or more per shard; a shard without rows needs no call. A loss that is not finite is an error. */
TN_API tn_status tn_replica_backward(tn_replica *r, tn_tensor *loss, double weight);

/* All ranks. Use it instead of tn_step. Clips and updates; with .zero each rank updates its part and broadcasts it,
 * with the same bits as without .zero. (An optimizer's own .clip rounds differently and would see only that part.) With
 * .zero each of k ranks stores 1/k of the optimizer's state, or of the parameters for LAMB and Adafactor, which update
 * whole parameters. If a rank has an error, out of memory included, no rank changes its weights. Gradients are dense:
 * rejects optimizers that are .lazy. Rejects optimizers that accumulate (tn_accumulate): use more .shards. */
TN_API tn_status tn_replica_step(tn_replica *r, tn_optimizer *o);
/* All ranks. Call it before saving a checkpoint, from which any number of ranks may resume: with .zero rank 0 gets the
 * state of all parameters, and all ranks get all rows of per-row buffers (tn_buffer_rows). After saving or restoring,
 * tn_replica_forget frees the state of the other ranks' parts. */
TN_API tn_status tn_replica_collect(tn_replica *r, tn_optimizer *o);
TN_API void      tn_replica_forget(tn_replica *r, tn_optimizer *o);
TN_API double    tn_replica_norm(const tn_replica *r); /* norm of all gradients before .clip; NaN: not computed */

/* Of the last batch: the mean loss, the same on each rank (NaN: no batch yet), and the seconds spent in the exchange
 * after the last backward pass, including the wait for other ranks. */
TN_API double tn_replica_loss(const tn_replica *r);
TN_API double tn_replica_seconds(const tn_replica *r);

/* ---- transports -------------------------------------------------------------------------------------------------- */

/* For tests and measurements: delays what this rank sends, as on a network with this latency and rate. */
TN_API void tn_world_simulate_network(tn_world *w, double seconds, double bytes_per_second);

/* The functions by which a world communicates. Each is collective. Each returns TN_OK, or raises; after an
 * error the world cannot be used again. At most 2^30 bytes are sent from one rank to another in one call. */
typedef struct {
    int   rank, size;
    bool  near; /* all ranks are known to be on one machine */
    void *user; /* passed to all functions */
    tn_status (*gather)(void *user, const void *mine, void *all, int bytes); /* all-gather; all: [size] times bytes */
    tn_status (*broadcast)(void *user, void *data, int bytes, int from);
    /* All-to-all: sends out_bytes[i] bytes at out + out_at[i] to rank i, and receives in_bytes[i] bytes from it at
     * in + in_at[i]. in and out do not overlap. */
    tn_status (*swap)(void *user, const void *out, const int *out_bytes, const int *out_at, void *in,
                      const int *in_bytes, const int *in_at);
    void (*free)(void *user);
    /* All-reduce in place: the sum of all ranks' floats or doubles. May be NULL. */
    tn_status (*sum)(void *user, void *data, int count, bool f64);
} tn_transport;
/* A world with a custom transport. Takes ownership of the transport, also if it fails. */
TN_API tn_world *tn_world_from_transport(tn_transport t);

TN_C_END_
/* tn_replica_new(world, net, .shards = 24) */
#define tn_replica_new(...) \
    TN_CALL_(tn_replica_create(TN_ARGS2_(tn_replica_config, TN_REPLICA_DEFAULTS, world, module, __VA_ARGS__, TN_END_)))
#endif
