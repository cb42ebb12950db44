/* source.h — where the batches of a training come from: what tn_fit (models/fit.h) reads, and a loop of your own may.
 * Part of data.h: include that.
 *
 * The rows of tensors are a source (below), and so is each corpus: tn_mlm_source, tn_pairs_source. One of your own is a
 * function that fills a batch; with three more it can be resumed and cut into shards:
 *
 *     typedef struct { tn_tensor *all; int64_t batch; tn_shard shard; } table; // batches of 8 rows
 *     static bool table_next(void *user, tn_batch *b)
 *     {
 *         table *t = user;
 *         if (8 * t->batch + 8 > tn_size(t->all, 0)) return t->batch = 0, false; // an epoch is over
 *         tn_batch_cut(b, t->shard, 8);                                          // which of the 8 are ours
 *         b->x = tn_narrow(t->all, 0, 8 * t->batch + b->first, b->rows);
 *         t->batch += tn_shard_next(&t->shard);                                  // is there another part of them?
 *         return tn_batch_put(b, "weight", tn_ones(TN_SHAPE(b->rows))) == TN_OK; // tn_batch_get in the loss
 *     }
 *     static void table_begin(void *user, const tn_json *at)
 *     {
 *         ((table *)user)->batch = at ? tn_json_i64(tn_json_need(at, "batch")) : 0;
 *     }
 *     static void table_save(void *user, tn_json_writer *w) { tn_json_put_i64(w, "batch", ((table *)user)->batch); }
 *     static void table_shard(void *user, tn_shard s) { ((table *)user)->shard = s; }
 *
 *     table     t = {.all = x};
 *     tn_source s = {table_next, table_begin, table_save, table_shard, .user = &t}; */
#ifndef TENON_DATA_SOURCE_H
#define TENON_DATA_SOURCE_H

#include "../core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* What one of `of` ranks sees: of each batch of n rows, the rows from n · rank / of up to n · (rank + 1) / of. So all
 * ranks together see the batches, each row once, that one rank alone would see, in the same order; and a position is
 * the same for any number of them: a run may go on with another. {0}, like {.of = 1}, is all of it. Where a rank has
 * several parts (tn_fit with .world), .count says how many: each batch comes in the parts from `rank` on, one after
 * the other, and the position moves on behind the last of them. */
typedef struct {
    int rank, of, count; /* count 0: 1 */
    int done_;
} tn_shard;
TN_API bool tn_shard_next(tn_shard *s); /* behind each part: is the batch over? */

/* The batch that comes next, for a corpus that can be asked: a value to be saved with a checkpoint and set back. */
typedef struct {
    int64_t epoch, batch; /* from 0 */
} tn_data_position;

/* ---- batches ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name; /* must outlive the batch */
    tn_tensor  *tensor;
} tn_field;

enum { TN_BATCH_FIELDS = 8 };
typedef struct {
    tn_tensor *x, *y;                   /* what goes in, what should come out */
    tn_field   fields[TN_BATCH_FIELDS]; /* whatever else the loss reads, by name */
    int64_t    items;                   /* examples or tokens, for rates and means; 0: the first dim of x, or 1 */
    double     weight;                  /* how many rows or words the loss is the mean of; 0: items */
    /* Of a shard: it has `rows` rows, from row `first` on, of a batch of `whole`. Fewer rows than ranks leave some with
     * none: its tensors are empty then, and tn_fit does not ask for their loss. whole 0: the source does not say. */
    int64_t first, rows, whole;
    void   *user;
} tn_batch;
TN_API tn_tensor *tn_batch_get(const tn_batch *b, const char *name);  /* also "x" and "y"; raises what there is */
TN_API tn_tensor *tn_batch_find(const tn_batch *b, const char *name); /* NULL if it is not there */
TN_API tn_status  tn_batch_put(tn_batch *b, const char *name, tn_tensor *t); /* NULL: nothing is put */
TN_API void       tn_batch_cut(tn_batch *b, tn_shard s, int64_t whole);      /* fills first, rows and whole */

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* One that draws its batches from the current generator needs no more than `next`: checkpoints hold generators. One
 * that goes through its data in order says where it is, or a resumed run would begin with the first batch again. */
typedef struct {
    /* Fills b, which is zeros; its tensors belong to the open scope. False: that was the epoch's last, and the next
     * call begins another one; or an error stands. */
    bool (*next)(void *user, tn_batch *b);
    /* Goes to where `save` was called, or, if at is NULL, to the first batch. Called before training and before each
     * validation. May be NULL, as may save. */
    void (*begin)(void *user, const tn_json *at);
    /* Puts members into the object that is open: tn_json_put_i64(w, "batch", s->batch). */
    void (*save)(void *user, tn_json_writer *w);
    void (*shard)(void *user, tn_shard s); /* from the next batch on, only this part of each; NULL: it cannot be cut */
    void   *user;
    int64_t batches; /* in an epoch, if that is known: the same for each shard */
} tn_source;
TN_API bool      tn_source_next(const tn_source *s, tn_batch *b); /* zeros b first */
TN_API tn_status tn_source_shard(const tn_source *s, tn_shard shard);

/* ---- the rows of tensors ----------------------------------------------------------------------------------------- */

/* In batches: row i is x[i], y[i], fields[..][i]. The last batch may be smaller. Shuffled anew in each epoch, by the
 * seed and the number of the epoch alone. */
typedef struct tn_dataset_config {
    int           zero_;
    tn_tensor    *x, *y;                   /* held on to, or, if not contiguous, copied */
    tn_field      fields[TN_BATCH_FIELDS]; /* .fields = {{"mask", mask}} */
    int64_t batch TN_IS(32);               /* rows in a batch: 32 */
    bool          shuffle, drop_last;
    uint64_t      seed;
    int           end_;
} TN_KEYWORDS_ONLY        tn_dataset_config;
typedef struct tn_dataset tn_dataset;
TN_API tn_dataset        *tn_dataset_create(tn_dataset_config c);
TN_API tn_source          tn_dataset_source(tn_dataset *r);
TN_API void               tn_dataset_free(tn_dataset *r);
#ifndef __cplusplus
#define TN_DATASET_DEFAULTS .batch = 32
#define tn_dataset_new(...) \
    TN_CALL_(tn_dataset_create((tn_dataset_config){TN_DATASET_DEFAULTS, TN_NAMED_, __VA_ARGS__}))
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
