/* parallel_private.h — private declarations shared by the files of parallel/. */
#ifndef TENON_PARALLEL_PARALLEL_PRIVATE_H
#define TENON_PARALLEL_PARALLEL_PRIVATE_H

#include "core/base/toolbox.h"
#include "parallel/parallel.h"

/* ---- collective calls (world.c) ---------------------------------------------------------------------------------- */

/* Exchanged by all ranks at the start of each collective call. */
typedef struct {
    int32_t  status; /* the rank's tn_status */
    int16_t  call;   /* the call's tn__world_call */
    int16_t  flag;   /* the flag of tn_world_set_flag */
    uint64_t hash;   /* FNV-1a hash of the call's arguments, which must be equal on all ranks */
} tn__call_header;

typedef enum {
    TN__BARRIER = 1,
    TN__GATHER,
    TN__SAME,
    TN__BROADCAST,
    TN__REPLICA,
    TN__PART,
    TN__STEP,
    TN__STATE,
    TN__FREE
} tn__world_call;

struct tn_world {
    tn_transport     t;
    tn__call_header *all;            /* [size] */
    bool             broken;         /* the transport has failed, or a rank has ended: nothing is sent any more */
    double           latency, rate;  /* set with tn_world_simulate_network; rate 0: no delay */
    bool             flag, any_flag; /* this rank's flag; OR over all ranks at the last collective call */
};

/* Starts a collective call, also while an error is set: exchanges the ranks' status, call and hash of arguments.
 * Returns true if no rank has an error and all make the same call with the same arguments; else raises on each rank.
 * `differs` completes the message "rank 1 has <differs> than rank 0" for unequal hashes; NULL: "other arguments". */
bool tn__world_begin(tn_world *w, tn__world_call call, uint64_t hash, const char *differs);
/* Takes the status of a transport's function: true if TN_OK; else marks the world as broken (raised). */
bool tn__world_ok(tn_world *w, tn_status status);
/* Sleeps until the time that these bytes, sent since `start`, take on the network of tn_world_simulate_network. */
void tn__world_delay(const tn_world *w, double start, int64_t bytes);
/* Broadcasts any number of bytes. */
bool tn__world_broadcast(tn_world *w, void *data, int64_t bytes, int from);

/* ---- the tree (tree.c) ------------------------------------------------------------------------------------------- *
 *
 * The leaves of the tree are the shards. A node with more than one leaf has two children; the first has half of its
 * leaves, rounded up. Therefore each of two or four ranks has one whole branch; with other numbers of ranks each has a
 * few branches. */

typedef struct {
    int lo, hi; /* its leaves: lo ... hi - 1 */
} tn__branch;
/* The parent of a branch of the tree over `shards` leaves; the root's parent is empty (lo == hi). */
tn__branch tn__branch_parent(int shards, tn__branch b);
/* Writes the largest branches within leaves lo ... hi - 1, from the left; returns their number, at most
 * TN__BRANCHES. */
enum { TN__BRANCHES = 32 };
int                tn__branches(int shards, int lo, int hi, tn__branch to[TN__BRANCHES]);
static bool        tn__siblings(int shards, tn__branch a, tn__branch b);
static inline bool tn__siblings(int shards, tn__branch a, tn__branch b)
{
    const tn__branch p = tn__branch_parent(shards, a);
    return a.hi == b.lo && p.lo == a.lo && p.hi == b.hi;
}

/* The first shard of a rank; its last is the one before the first of the next rank. */
static inline int tn__first_shard(int shards, int rank, int size) { return (int)((int64_t)shards * rank / size); }

/* ---- the replica (replica.c) and the exchange of its gradients (exchange.c) -------------------------------------- */

/* A parameter, and the place of its gradient in the buffer of a branch's gradients. */
typedef struct {
    tn_tensor *t;
    tn_dtype   wide;  /* f32 or f64: the dtype in which its gradients are added */
    int64_t    n, at; /* number of elements; offset in bytes in the gradients of a branch */
    int        owner; /* with .zero: the rank that updates it if parameters are not divided by elements */
} tn__place;

typedef struct tn__overlap tn__overlap;
struct tn_replica {
    tn_world  *world;
    void      *module;
    int        shards, lo, hi; /* number of shards; this rank's are lo ... hi - 1 */
    int64_t    bucket;
    bool       zero, fast, sparse;
    tn_clip    clip;
    double     norm;
    tn__place *place;
    int64_t    places, bytes, f64_at; /* bytes of all gradients; f64 gradients start at offset f64_at */
    char      *memory;                /* one block, cut into the buffers of sum[] */
    int64_t    memory_bytes;
    /* A stack of branches whose siblings are not complete yet, with the sums of their gradients. */
    tn__branch   branch[TN__BRANCHES];
    char        *sum[TN__BRANCHES];
    int          waiting;     /* number of branches on the stack */
    int          next;        /* the next shard; -1: no batch has started */
    bool         part_called; /* with .overlap: the last shard's backward pass made the batch's first collective call */
    double      *losses;      /* [shards, 2]: weight times loss, and weight */
    uint8_t     *has_grad;    /* [places]: 1 if any shard has a gradient of it */
    double       loss, seconds, scale; /* scale: factor of the sums, 1 / total weight */
    uint64_t     key;                  /* key of this batch's generators */
    tn_generator before, after;        /* state of the generator before and after the batch */
    void        *buffer;               /* memory for messages */
    int64_t      buffer_bytes;
    tn__overlap *overlap; /* with .overlap: the exchange during the backward pass; else NULL */
    uint8_t     *touched; /* with .sparse, [blocks of TN__BLOCK bytes]: not zero on at least one rank */
    int64_t      blocks;
};

enum { TN__BLOCK = 512 }; /* bytes: 128 floats, half a row of 256 */

/* a += b for the elements at offsets [from, to) of the gradients; a and b point to offset `from`. */
void tn__gradients_add(const tn_replica *r, char *a, const char *b, int64_t from, int64_t to);
/* Adds sum[top] to the sums before it until `left` branches remain; offsets [from, to) only. */
void tn__gradients_merge(const tn_replica *r, int top, int left, int64_t from, int64_t to);
/* The exchange in steps, so that a bucket may be sent while the next is computed. tn__replica_exchange_losses exchanges
 * the losses and weights of all shards; then tn__replica_reduce all-reduces one bucket [from, to) each; at the end
 * tn__replica_exchange_flags exchanges which parameters have gradients. sum[k] points to offset `origin` of branch k;
 * the sum over all ranks divided by the total weight is written to sum[0]. */
bool tn__replica_exchange_losses(tn_replica *r);
bool tn__replica_reduce(tn_replica *r, char *const *sum, int64_t origin, int64_t from, int64_t to);
bool tn__replica_exchange_flags(tn_replica *r);

/* ---- gradients that are sent during the backward pass (overlap.c) ------------------------------------------------ */

tn__overlap *tn__overlap_new(const tn_replica *r); /* NULL: raised */
void         tn__overlap_free(tn_replica *r);
bool         tn__overlap_running(const tn_replica *r);
/* Before the backward pass of the last shard, after a collective call: starts the sending thread. */
void tn__overlap_start(tn_replica *r);
void tn__overlap_ready(const tn_tensor *leaf, const tn_tensor *grad, void *replica); /* a tn_grad_ready */
void tn__overlap_complete(tn_replica *r);   /* after the pass: marks all other gradients as complete, too */
void tn__overlap_start_late(tn_replica *r); /* instead of begin, if all shards are complete: sends without a thread */
bool tn__overlap_finish(tn_replica *r);     /* waits until everything is sent; false: raised */

/* All ranks: sets the gradients of the first branch to the sum over all ranks divided by the total weight. */
bool tn__replica_exchange(tn_replica *r);

#endif
