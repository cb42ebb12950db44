/* batch_plan.h — the order of the examples of one epoch, cut into batches. Private. */
#ifndef TENON_DATA_PLAN_H
#define TENON_DATA_PLAN_H

#include "data/batches.h"
#include "data/text/data_private.h"

typedef struct {
    uint32_t *order; /* [n] */
    int64_t  *first; /* batch i holds order[first[i] … first[i + 1]) */
    int64_t   n, batches, first_room;
} tn__plan;

bool tn__batching_check(const char *who, tn_batching *how); /* also puts the defaults in */
/* a, b: the lengths of the examples on either side, b may be NULL. Frees what p held. Raises. */
bool tn__plan_make(tn__plan *p, int64_t n, const int32_t *a, const int32_t *b, const tn_batching *how, int64_t epoch);
void tn__plan_free(tn__plan *p);

#endif
