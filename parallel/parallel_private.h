/* parallel_private.h — what the files of parallel/ share and users do not see. */
#ifndef TENON_PARALLEL_PARALLEL_PRIVATE_H
#define TENON_PARALLEL_PARALLEL_PRIVATE_H

#include "core/base/toolbox.h"
#include "parallel/parallel.h"

/* ---- the meeting of all ranks (world.c) -------------------------------------------------------------------------- */

typedef struct {
    int32_t  status; /* a tn_status */
    int16_t  call;   /* which call this is */
    int16_t  wish;   /* tn_world_wish */
    uint64_t mark;   /* of its arguments: must be the same on all ranks */
} tn__greeting;

typedef enum {
    TN__BARRIER = 1,
    TN__GATHER,
    TN__SAME,
    TN__BROADCAST,
    TN__REPLICA,
    TN__PART,
    TN__STEP,
    TN__STATE,
    TN__SPREAD,
    TN__WHOLE_AGAIN,
    TN__FREE
} tn__world_call;

/* Addresses for weights that other ranks may read (arena.c). */
typedef struct {
    atomic_int refs; /* of weights, and of the world that shows it to others */
    char      *at;
    int64_t    bytes;
} tn__arena;

struct tn_world {
    tn_transport  t;
    tn__arena    *exposed;       /* until the world ends, or all ranks take it back; NULL: none */
    tn__greeting *all;           /* [size] */
    bool          broken;        /* the transport has failed: nobody is asked any more */
    double        latency, rate; /* tn_world_slow; rate 0: as it is */
    bool          wish, wished;  /* this rank's; that of any, when they met */
};

/* All ranks tell each other how they are and what they are about to do; also while an error stands. True: no rank has
 * an error, and all do the same. Else raised, on each rank. `differs`: what is wrong where the marks are not equal. */
bool tn__world_meet(tn_world *w, tn__world_call call, uint64_t mark, const char *differs);
/* True if the transport's call went well; else the world is broken, and an error stands. */
bool tn__world_went(tn_world *w, tn_status said);
/* What was sent since `start` takes as long as on the network of tn_world_slow. */
void tn__world_nap(const tn_world *w, double start, int64_t bytes);
/* Bytes of any number from a rank to all. */
bool     tn__world_send(tn_world *w, void *data, int64_t bytes, int from);
uint64_t tn__world_hash_module(void *module); /* of names, number types and shapes */

/* ---- the tree (tree.c) ------------------------------------------------------------------------------------------- *
 *
 * Its leaves are the shards. A node over more than one leaf has two children, the first with half of its leaves,
 * rounded up. So two ranks, and four, hold whole branches; others hold a few branches each. */

typedef struct {
    int lo, hi; /* the leaves below it: lo ... hi - 1 */
} tn__branch;
/* The parent of a branch of the tree over `shards` leaves; that of the root is empty. */
tn__branch tn__branch_parent(int shards, tn__branch b);
/* The largest branches that lie in leaves lo ... hi - 1, from the left: how many. At most TN__BRANCHES. */
enum { TN__BRANCHES = 32 };
int                tn__branches(int shards, int lo, int hi, tn__branch to[TN__BRANCHES]);
static bool        tn__siblings(int shards, tn__branch a, tn__branch b);
static inline bool tn__siblings(int shards, tn__branch a, tn__branch b)
{
    const tn__branch p = tn__branch_parent(shards, a);
    return a.hi == b.lo && p.lo == a.lo && p.hi == b.hi;
}

/* The first shard of a rank: it has those up to the first of the next. */
static inline int tn__first_shard(int shards, int rank, int size) { return (int)((int64_t)shards * rank / size); }

/* ---- the replica (replica.c), and how its gradients travel (exchange.c) ------------------------------------------ */

typedef struct {
    tn_tensor *t;
    tn_dtype   wide;   /* f32 or f64: what its gradients are added in */
    int64_t    n, at;  /* elements; bytes into the gradients of a branch */
    int        owner;  /* the rank that steps it, with .zero */
    bool       spread; /* with .zero3: each rank keeps a part of it */
} tn__place;

typedef struct tn__flight tn__flight;
typedef struct {
    int64_t  place, next;       /* the table's in this batch, and in the next; -1: none */
    char    *sum[TN__BRANCHES]; /* of its gradients, as far as they have set out; then sum[0] is that of all ranks */
    uint8_t *changed;           /* [blocks] of TN__BLOCK bytes: since then, on any rank */
    int64_t  blocks;
    int      top, left;
    char    *memory; /* of all of these */
    int64_t  memory_bytes, memory_place;
} tn__early;

typedef struct tn__spread tn__spread;
struct tn_replica {
    tn_world  *world;
    void      *module;
    int        shards, lo, hi; /* lo ... hi - 1 are this rank's */
    int64_t    bucket;
    bool       zero, zero3, fast, sparse;
    tn_clip    clip;
    double     norm;
    tn__place *place;
    int64_t    places, bytes, f64_at; /* bytes: of all gradients; the doubles begin at f64_at */
    char      *memory;                /* one block, cut into: */
    int64_t    memory_bytes;
    /* Branches that wait for their siblings, as a stack. */
    tn__branch   branch[TN__BRANCHES];
    char        *sum[TN__BRANCHES];
    int          waiting;
    int          next;              /* the shard that comes next; -1: no batch has begun */
    double      *part;              /* [2 shards]: of each the loss times its weight, and the weight */
    uint8_t     *some;              /* [places]: has any shard a gradient of it? */
    double       loss, seconds, by; /* by: what the sums are multiplied with */
    uint64_t     key;               /* of this batch's generators */
    tn_generator before, after;     /* where the generator stood, and will stand */
    void        *room;              /* for what travels */
    int64_t      room_bytes;
    tn__flight  *flight;   /* with .overlap: what travels while the backward pass runs; else NULL */
    tn__early    early;    /* and what of it sets out first */
    int64_t      resident; /* of .zero3 */
    tn__spread  *spread;   /* NULL: each rank has all weights */
    uint8_t     *touched;  /* with .sparse, of each block of TN__BLOCK bytes: is it not zero, on any rank? */
    int64_t      blocks;
};

enum { TN__BLOCK = 512 }; /* bytes: 128 floats, half a row of 256 */

/* a[from ... to) += b[from ... to), in bytes from the beginning of the gradients; and a *= by. */
void tn__gradients_add(const tn_replica *r, char *a, const char *b, int64_t from, int64_t to);
void tn__gradients_scale(const tn_replica *r, char *a, double by, int64_t from, int64_t to);
/* Adds the newest branch, number `top`, to those before it until `left` are left: [from, to) of each. */
void tn__gradients_merge(const tn_replica *r, int top, int left, int64_t from, int64_t to);
/* A bucket of the sums, which a rank may give to all while it makes the next: before the first tn__replica_weigh, as
 * all shards' losses are known, and behind them tn__replica_finish. sum[k]: byte `origin` of branch k; the sum over all
 * ranks, over their weight, goes to sum[0]. */
bool tn__replica_weigh(tn_replica *r);
bool tn__replica_travel(tn_replica *r, char *const *sum, int64_t origin, int64_t from, int64_t to);
bool tn__replica_finish(tn_replica *r);

/* ---- a tied table that sets out before its lookups (early.c) ----------------------------------------------------- */

enum { TN__WHOLE = 1, TN__EARLY = 2 };   /* in tn_replica.some: has a gradient; and had most of it early in the pass */
void    tn__early_choose(tn_replica *r); /* for the next batch: all ranks know of all, and choose alike */
bool    tn__early_begin(tn_replica *r);  /* false: raised, no memory */
void    tn__early_free(tn_replica *r);
int64_t tn__early_end(const tn_replica *r); /* where the next place begins */
/* On the pass's thread: the gradient so far (NULL: none), as branch `top`, of which `left` are left when all are added,
 * a bucket at a time, the last first; then how it has changed, in the rows at index (NULL: somewhere). */
void    tn__early_open(tn_replica *r, int top, int left);
void    tn__early_add(tn_replica *r, const tn_tensor *grad, int64_t from, int64_t to);
int64_t tn__early_next(const tn_replica *r, int64_t to); /* where the bucket that ends at `to` begins */
void    tn__early_change(tn_replica *r, const tn_tensor *grad, const tn_tensor *index);
/* On the thread that sends, behind everything else, when nothing changes any more: what has changed. */
bool  tn__early_follow(tn_replica *r);
char *tn__sum_of(const tn_replica *r, int64_t place); /* where the sum over all ranks of a place's gradients is */

/* ---- gradients that travel while others are made (overlap.c) ----------------------------------------------------- */

tn__flight *tn__flight_new(const tn_replica *r); /* NULL: raised */
void        tn__flight_free(tn_replica *r);
bool        tn__flight_begun(const tn_replica *r);
/* Before the last shard's backward pass: the ranks have met, and the thread sets out. */
void tn__flight_begin(tn_replica *r);
void tn__flight_ready(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *index, bool complete,
                      void *replica);  /* a tn_grad_ready */
void tn__flight_rest(tn_replica *r);   /* behind it: what has not been told of is complete, too */
void tn__flight_behind(tn_replica *r); /* instead, where all shards are done: no thread */
bool tn__flight_end(tn_replica *r);    /* all of it is there; false: raised */

/* ---- weights of which each rank keeps a part (spread.c) ---------------------------------------------------------- */

tn__arena *tn__arena_new(int64_t bytes); /* raises */
tn__arena *tn__arena_keep(tn__arena *a);
void       tn__arena_drop(tn__arena *a);
void       tn__arena_give_back(tn__arena *a, int64_t from, int64_t to); /* whole pages in it; they read as zeros then */
int64_t    tn__arena_page(void);
void       tn__spread_begin(tn_replica *r); /* all ranks, at the beginning of a batch; raises */
void tn__spread_end(tn_replica *r); /* all ranks have all weights again; raises, and then those are lost that were not
                                         here */
void tn__spread_let_go(tn_replica *r); /* what was brought to stay need stay no longer */
/* The elements of p that the rank keeps. */
void tn__spread_part(const tn_replica *r, const tn__place *p, int rank, int64_t *from, int64_t *to);
bool tn__spread_is_worth(const tn_tensor *t);
void tn__spread_open(tn_replica *r, bool open); /* for the step; behind it what is other ranks' is out of date */
void tn__spread_bring_all(tn_replica *r);       /* to stay */

/* All ranks: the sum of the branches of all, over the weight of all, in the gradients of the first branch. */
bool tn__replica_exchange(tn_replica *r);

#endif
