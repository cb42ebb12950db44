/* batch_plan.h — the order of the examples of one epoch, divided into batches. A batch holds examples of similar
 * lengths, as many as the tokens allow; batches come in a random order, and examples of equal lengths are regrouped in
 * each epoch. The plan depends only on the seed, the epoch and the lengths. Private. */
#ifndef TENON_DATA_CORPUS_BATCH_PLAN_H
#define TENON_DATA_CORPUS_BATCH_PLAN_H

#include "data/source/source_private.h"
#include "data/text/data_private.h"

typedef struct {
    int64_t  tokens;   /* maximum per batch, padding included, of the longer side; a longer example is alone */
    int64_t  examples; /* maximum per batch; 0: no limit */
    int64_t  parts;    /* not 0: draw `examples` of any lengths per step and divide them into this number of batches */
    uint64_t seed;
    bool     in_order;
} tn__batching;

typedef struct {
    uint32_t *order; /* [n] */
    int64_t  *first; /* batch i holds order[first[i] … first[i + 1]) */
    int64_t   n, batches, first_room;
} tn__plan;

bool tn__batching_check(const char *who, const tn__batching *how);
/* a, b: lengths of the examples on each side; b may be NULL. Frees the old content of p. Raises. */
bool tn__plan_make(tn__plan *p, int64_t n, const int32_t *a, const int32_t *b, const tn__batching *how, int64_t epoch);
void tn__plan_free(tn__plan *p);
/* The shard's examples of batch i; sets b's first, rows and whole. */
const uint32_t *tn__plan_batch(const tn__plan *p, int64_t i, tn_shard shard, tn_batch *b);

#endif
