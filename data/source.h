/* source.h — sources of batches, read by tn_fit (models/fit.h) and by custom training loops. Part of data.h.
 *
 * The rows of tensors are a source (below), and so is each corpus: tn_mlm_source, tn_pairs_source. A custom source is a
 * function that fills a batch; three more functions make it resumable and shardable:
 *
 *     typedef struct { tn_tensor *all; int64_t batch; tn_shard shard; } table; // batches of 8 rows
 *     static bool table_next(void *user, tn_batch *b)
 *     {
 *         table *t = user;
 *         if (8 * t->batch + 8 > tn_size(t->all, 0)) return t->batch = 0, false; // end of the epoch
 *         tn_batch_cut(b, t->shard, 8);                                          // the shard's rows of the 8
 *         b->x = tn_narrow(t->all, 0, 8 * t->batch + b->first, b->rows);
 *         t->batch += tn_shard_next(&t->shard);                                  // 0 while the batch has further parts
 *         return tn_batch_put(b, "weight", tn_ones(TN_SHAPE(b->rows))) == TN_OK; // tn_batch_get in the loss
 *     }
 *     static void table_begin(void *user, const tn_json *at)
 *     {
 *         table *t = user;
 *         t->batch = at ? tn_json_i64(tn_json_need(at, "batch")) : 0, tn_shard_rewind(&t->shard);
 *     }
 *     static void table_save(void *user, tn_json_writer *w) { tn_json_put_i64(w, "batch", ((table *)user)->batch); }
 *     static void table_shard(void *user, tn_shard s) { ((table *)user)->shard = s; }
 *
 *     table     t = {.all = x};
 *     tn_source s = {table_next, table_begin, table_save, table_shard, .user = &t}; */
#ifndef TENON_DATA_SOURCE_H
#define TENON_DATA_SOURCE_H

#include "../core/core.h"

TN_C_BEGIN_

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* The part of each batch that one of `of` ranks reads: of n rows, the rows from n · rank / of up to n · (rank + 1) /
 * of. All ranks together read the batches of an unsharded run, each row once and in order. A position is valid for any
 * number of ranks. {0}, like {.of = 1}, is the whole batch. A rank may have several parts (tn_fit with .world): .count
 * of them, from part `rank` on. The source returns them one by one, and its position advances after the last. */
typedef struct {
    int rank, of, count; /* count 0: 1 */
    int done_;
} tn_shard;
TN_API bool tn_shard_next(tn_shard *s);   /* call after each part; true: it was the last of the batch */
TN_API void tn_shard_rewind(tn_shard *s); /* call when the source starts again: the next part is a batch's first */

/* ---- batches ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name; /* must outlive the batch */
    tn_tensor  *tensor;
} tn_field;

enum { TN_BATCH_FIELDS = 8 };
typedef struct {
    tn_tensor *x, *y;                   /* inputs and targets */
    tn_field   fields[TN_BATCH_FIELDS]; /* further tensors for the loss, by name */
    int64_t    items;                   /* examples or tokens, for rates and means; 0: first dim of x, or 1 */
    double     weight;                  /* rows or tokens that the loss averages over; 0: items */
    /* The shard's rows: `rows` rows from row `first` of a batch of `whole`. With fewer rows than ranks, some ranks have
     * none: their tensors are empty and tn_fit computes no loss for them. whole 0: unknown. */
    int64_t first, rows, whole;
    void   *user;
} tn_batch;
TN_API tn_tensor *tn_batch_get(const tn_batch *b, const char *name);         /* also "x" and "y"; raises if missing */
TN_API tn_tensor *tn_batch_find(const tn_batch *b, const char *name);        /* NULL if missing */
TN_API tn_status  tn_batch_put(tn_batch *b, const char *name, tn_tensor *t); /* t NULL: no effect */
TN_API void       tn_batch_cut(tn_batch *b, tn_shard s, int64_t whole);      /* sets first, rows and whole */

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* A source that draws its batches from the current generator needs only `next`, because training checkpoints store
 * generators. A source that reads in order also needs `begin` and `save`; without them a resumed run restarts at the
 * first batch. */
typedef struct {
    /* Fills b, which is zeroed; its tensors belong to the open scope. Returns false at the end of an epoch (the next
     * call starts the next epoch) or if an error is set. */
    bool (*next)(void *user, tn_batch *b);
    /* Restores the position written by `save`, or, if at is NULL, starts at the first batch. Called before training and
     * before each validation. May be NULL, as may save. */
    void (*begin)(void *user, const tn_json *at);
    /* Writes members into the open object: tn_json_put_i64(w, "batch", s->batch). */
    void (*save)(void *user, tn_json_writer *w);
    void (*shard)(void *user, tn_shard s); /* from the next batch on: only this part of each; NULL: not shardable */
    void   *user;
    int64_t batches; /* of an epoch, equal for all shards; 0: unknown; -1: the source has no epochs */
} tn_source;
TN_API bool      tn_source_next(const tn_source *s, tn_batch *b); /* zeros b first */
TN_API tn_status tn_source_shard(const tn_source *s, tn_shard shard);

/* ---- the rows of tensors ----------------------------------------------------------------------------------------- */

/* Batches of rows: row i is x[i], y[i], fields[..][i]. The last batch may be smaller. Shuffling is repeated for each
 * epoch and depends only on the seed and the epoch's number. */
typedef struct tn_dataset_config {
    int           zero_;
    tn_tensor    *x, *y;                   /* kept until the dataset is freed; copied if not contiguous */
    tn_field      fields[TN_BATCH_FIELDS]; /* .fields = {{"mask", mask}} */
    int64_t batch TN_IS(32);               /* rows in a batch: 32 */
    bool          shuffle, drop_last;
    uint64_t      seed;
    tn_tensor    *weights; /* [rows]: draw as many rows, with replacement, in proportion to their weights; or NULL */
    int           end_;
} TN_KEYWORDS_ONLY        tn_dataset_config;
typedef struct tn_dataset tn_dataset;
TN_API tn_dataset        *tn_dataset_create(tn_dataset_config c);
TN_API tn_source          tn_dataset_source(tn_dataset *r);
TN_API void               tn_dataset_free(tn_dataset *r);
#define TN_DATASET_DEFAULTS .batch = 32
#define tn_dataset_new(...) TN_CALL_(tn_dataset_create(TN_FILLED_(tn_dataset_config, TN_DATASET_DEFAULTS, __VA_ARGS__)))

TN_C_END_
#endif
