/* kv_cache_private.h — how attention uses a tn_kv_cache. Private to nn/. */
#ifndef TENON_NN_ATTENTION_KV_CACHE_PRIVATE_H
#define TENON_NN_ATTENTION_KV_CACHE_PRIVATE_H

#include "nn/attention.h"

typedef struct tn__joint tn__joint;

typedef struct {
    int64_t    own, memory; /* number of positions of each kind; memory -1: no memory stored */
    tn_tensor *of;          /* the tensor that the memory was computed from */
} tn__cache_slot;

/* The last step that was recorded with the cache. It reads the position and its angles from tensors, which the cache
 * owns and sets before each replay. */
typedef struct {
    const tn_replay *of; /* borrowed, only compared; NULL: none, or it is being recorded */
    bool             recording;
    int64_t          rows;
    tn_tensor       *at;        /* i64 [1]: the position; -1 outside of a replay; owned */
    int64_t         *position;  /* its element */
    tn_tensor       *angles[2]; /* of the position, for each kind of layers, owned; NULL: none */
    tn_rope_config   rope[2];   /* of angles */
} tn__cache_replay;

struct tn_kv_cache {
    tn_kv_cache_config c;
    int64_t            rows;    /* rows of the stored batch; -1: empty, accepts any number up to .batch */
    int64_t            removed; /* number of positions removed from the start; later positions keep their numbers */
    size_t             bytes;
    tn_tensor         *keys[2], *values[2]; /* [layers, batch, heads, length, width_of]: own, memory */
    tn_tensor         *origin;    /* [batch + 1, length]: see tn__plan_copies; the last row: the spare row's */
    int64_t            marked;    /* number of positions that have origins */
    int64_t           *memory_of; /* [batch]: row i attends to row memory_of[i] of the memories */
    tn__cache_replay   replay;
    tn__joint         *joined; /* NULL: a cache of its own */
    tn__cache_slot     layer[];
};

/* The number of positions stored in a layer: its own, and those of a memory (-1: no memory stored). {0, -1} if the
 * cache is NULL or the layer does not exist. */
typedef struct {
    int64_t own, memory;
} tn__cached_lengths;
tn__cached_lengths tn__cache_lengths(const tn_kv_cache *c, int64_t layer);

/* Writes k and v [B, heads, n, head_dim] after the layer's positions or, if `memory`, in place of its memory. The layer
 * was created with `made` heads; k and v have the first of these. The positions count from tn__cache_commit on, which
 * cannot fail; its `of` is the tensor that a memory was computed from, else NULL. */
bool tn__cache_write(tn_kv_cache *c, int64_t layer, bool memory, int64_t made, tn_tensor *k, tn_tensor *v);
void tn__cache_commit(tn_kv_cache *c, int64_t layer, tn_tensor *of, int64_t rows, int64_t n);

/* Sets *k and *v to views of the first n positions of all heads of the cache: [rows, heads, n, head_dim], or of an int8
 * cache [rows, heads, n, head_dim + 4], results of tn_int8_rows. Of a memory, rows are those of all memories. */
bool tn__cache_read(tn_kv_cache *c, int64_t layer, bool memory, int64_t rows, int64_t n, tn_tensor **k, tn_tensor **v);

/* True if the layer's memory was computed from this tensor, or if `of` is NULL; else raises an error. */
bool tn__cache_memory_is(const tn_kv_cache *c, int64_t layer, const tn_tensor *of);

bool tn__cache_is_int8(const tn_kv_cache *c); /* false for NULL */

/* Number of positions removed from the start, which rotary positions still count. */
int64_t tn__cache_removed(const tn_kv_cache *c);

/* Keys (0) or values (1) of the layers' own positions: [layers, batch, heads, length, head_dim]. */
tn_tensor *tn__cache_tensor(const tn_kv_cache *c, int i);

/* The first n positions of one row were written to all layers of an empty cache; they count from now on. */
void tn__cache_fill(tn_kv_cache *c, int64_t n);

/* True if both give the same angles. */
static inline bool tn__rope_same(const tn_rope_config *a, const tn_rope_config *b)
{
    return a->dim == b->dim && a->theta == b->theta && a->interleaved == b->interleaved && a->scaling == b->scaling &&
           a->factor == b->factor && a->low == b->low && a->high == b->high && a->trained == b->trained;
}

/* While a step is recorded (tn_kv_cache_record): angles of its position, of all layers of a kind. NULL: raised. */
tn_tensor *tn__cache_angles(tn_kv_cache *c, tn_rope_config rope);

/* Copies of rows, in order; -1: the spare row (kv_cache_rows.c). */
typedef struct {
    int64_t to, from, first; /* first: the position from which the rows differ */
} tn__cache_move;
/* The copies that make row i of n rows a copy of row from[i]; returns their number, at most n + n / 2. Destroys from;
 * readers: 0 for each row that exists. */
int64_t tn__plan_moves(int64_t *from, int64_t n, int64_t *readers, tn__cache_move *to);
/* Sets .first, and the origins of rows that become copies. origin: [batch + 1, length], the last row is the spare
 * one. */
void tn__plan_copies(int64_t *origin, int64_t batch, int64_t length, int64_t filled, tn__cache_move *move,
                     int64_t moves);
/* Makes the copies in one layer's keys or values, of `filled` positions of each head. spare: as large as a row. */
bool tn__move_rows(tn_tensor *t, int64_t layer, int64_t filled, const tn__cache_move *move, int64_t moves, char *spare);

/* Moves n positions of each head of one layer from index `from` to the smaller index `to`. */
void tn__move_up(tn_tensor *t, int64_t layer, int64_t rows, int64_t to, int64_t from, int64_t n);

/* The memories that rows from[i] attend to, numbered in the order of their first use, which becomes from[i]; returns
 * their number. source: the memory that memory i was before; room for 2 · batch. */
int64_t tn__memories_of(const int64_t *memory_of, int64_t *from, int64_t n, int64_t batch, int64_t *source);

/* The number of rows in sequence that share each memory; 0: not the same number, or not in sequence. */
int64_t tn__sharing(const int64_t *memory_of, int64_t rows);
int64_t tn__cache_sharing(const tn_kv_cache *c);
/* Gives each row a memory of its own. False: raised. */
bool tn__cache_copy_memories(tn_kv_cache *c);

/* Caches of one row each that a step extends together (kv_cache_joined.c). */
struct tn__joint {
    int64_t      n;
    size_t       bytes;
    tn_kv_cache *each[]; /* [n], followed by int64_t [n]: number of positions of each when they were joined */
};
tn_kv_cache *tn__joined_row(const tn_kv_cache *c, int64_t i);
tn_tensor   *tn__joined_angles(const tn_kv_cache *c, tn_rope_config rope); /* [n, 1, rope.dim] */
void         tn__joined_undo(tn_kv_cache *c, int64_t layer); /* removes what the step has added to a layer */
void         tn__joined_free(tn__joint *j);                  /* NULL: none; the caches stay */
/* True if c is not joined, so that its rows have one length; else raises. */
bool                   tn__not_joined(const char *who, const tn_kv_cache *c);
static inline int64_t *tn__joined_positions(tn__joint *j) { return (int64_t *)(void *)(j->each + j->n); }
static inline int64_t  tn__joined_rows(const tn_kv_cache *c) { return c && c->joined ? c->joined->n : 0; }

/* After a failure: removes the positions that the layer did not have before. */
void tn__cache_undo(tn_kv_cache *c, int64_t layer, tn__cached_lengths before);

#endif
