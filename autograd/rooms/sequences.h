/* sequences.h — unpadded batches: the rows of several sequences one after another. Sequence i has the rows offsets[i] …
 * offsets[i + 1] - 1; offsets is a contiguous i64 [sequences + 1]. */
#ifndef TENON_AUTOGRAD_ROOMS_SEQUENCES_H
#define TENON_AUTOGRAD_ROOMS_SEQUENCES_H

#include "autograd/rooms/room.h"

/* The length of the longest sequence. */
int64_t tn__longest_of(const tn_tensor *offsets);
/* For infer: input `which` divides `rows` rows into sequences. */
bool tn__infer_offsets(const tn_ctx *c, int which, const char *name, int64_t rows);
/* The number of rows: of all but the last dim. */
static inline int64_t tn__rows_of(const tn_tensor *x)
{
    tn_shape s = x->l.shape;
    if (s.n) s.n--;
    return tn__numel_of(&s);
}
/* For infer: input `which`, if given, holds for each of `rows` rows its index in a batch of sequences of `length`. */
bool tn__infer_padded_rows(const tn_ctx *c, int which, int64_t rows, int64_t length);
/* The mask with which padded attention over all rows [T, S] gives the same result: true where a query and a key are not
 * of one sequence, or the query does not see the key (causal, window). NULL: raised. */
tn_tensor *tn__sequences_mask(const tn_tensor *offsets, const tn_tensor *key_offsets, bool causal, int64_t window);

#endif
