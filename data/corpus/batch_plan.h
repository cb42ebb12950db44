/* batch_plan.h — the order of the examples of one epoch, cut into batches. Examples of near lengths stand together, as
 * many as the tokens allow; the batches come in a random order, and which of equal lengths meet is drawn anew for each
 * epoch. All of it depends on the seed, the epoch and the lengths. Private. */
#ifndef TENON_DATA_CORPUS_BATCH_PLAN_H
#define TENON_DATA_CORPUS_BATCH_PLAN_H

#include "data/source/source_private.h"
#include "data/text/data_private.h"

typedef struct {
    int64_t  tokens;   /* in a batch at most, padding counted, on its longer side. One longer is alone */
    int64_t  examples; /* in a batch at most; 0: no limit */
    int64_t  parts;    /* not 0: instead, `examples` of any lengths are drawn together, and cut into so many batches */
    uint64_t seed;
    bool     in_order;
} tn__batching;

typedef struct {
    uint32_t *order; /* [n] */
    int64_t  *first; /* batch i holds order[first[i] … first[i + 1]) */
    int64_t   n, batches, first_room;
} tn__plan;

bool tn__batching_check(const char *who, const tn__batching *how);
/* a, b: the lengths of the examples on either side, b may be NULL. Frees what p held. Raises. */
bool tn__plan_make(tn__plan *p, int64_t n, const int32_t *a, const int32_t *b, const tn__batching *how, int64_t epoch);
void tn__plan_free(tn__plan *p);
/* A shard's part of batch i: its examples; b gets first, rows and whole. */
const uint32_t *tn__plan_batch(const tn__plan *p, int64_t i, tn_shard shard, tn_batch *b);

#endif
