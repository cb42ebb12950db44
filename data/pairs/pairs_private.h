/* pairs_private.h — the pairs struct, read by the batches. Private. */
#ifndef TENON_DATA_PAIRS_PAIRS_PRIVATE_H
#define TENON_DATA_PAIRS_PAIRS_PRIVATE_H

#include "data/text/data_private.h"
#include "data/pairs.h"

typedef struct {
    tn_ids   ids;    /* token ids of all lines */
    int64_t *start;  /* first token of each line */
    int32_t *length; /* tokens of each line, with its end */
    int64_t  start_room, length_room;
} tn__side;

struct tn_pairs {
    tn_pairs_config config;
    tn__side        side[2]; /* source, target */
    int64_t        *line;    /* line number in the files, from 0 */
    int64_t         n, line_room, dropped;
};

#endif
