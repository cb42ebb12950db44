/* source_private.h — shared by the sources of data/: the check of a shard and the position in a checkpoint. Private. */
#ifndef TENON_DATA_SOURCE_SOURCE_PRIVATE_H
#define TENON_DATA_SOURCE_SOURCE_PRIVATE_H

#include "core/base/toolbox.h"
#include "data/source.h"

#include <string.h>

bool tn__shard_check(const char *who, tn_shard s); /* raises */

/* The position of the next batch, as a training checkpoint stores it. */
typedef struct {
    int64_t epoch, batch; /* from 0 */
} tn__position;
tn__position tn__position_read(const tn_json *at); /* at NULL: the first batch; raises */
void         tn__position_write(tn__position p, tn_json_writer *w);

#endif
