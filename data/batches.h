/* batches.h — which examples stand together in a batch, and where in them a program is. Part of data.h: include
 * that. */
#ifndef TENON_DATA_BATCHES_H
#define TENON_DATA_BATCHES_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Examples of near lengths stand together, as many as the tokens allow; the batches come in a random order, and which
 * of equal lengths meet is drawn anew for each epoch. All of it depends on the seed, the epoch and the lengths. */
typedef struct {
    int64_t  tokens;   /* in a batch at most, padding counted, on its longer side; 0: 4096. One longer is alone. */
    int64_t  examples; /* in a batch at most; 0: no limit */
    uint64_t seed;
    bool     in_order; /* as they are in the files, for validation */
} tn_batching;

/* The batch that comes next: a value to be saved with a checkpoint and set back. */
typedef struct {
    int64_t epoch, batch; /* from 0 */
} tn_data_position;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
