/* queries.h — answers many analogies at once (queries.c), for evaluate.c. Private. */
#ifndef TENON_EXTRAS_VECTORS_QUERIES_H
#define TENON_EXTRAS_VECTORS_QUERIES_H

#include "extras/vectors/vectors_private.h"

/* Writes the best `most` answers to each of n questions to `to` [n, most]; found [n]: their numbers. */
bool tn__analogies(const tn_vectors *v, int64_t n, const int64_t (*abc)[3], bool product, int64_t most,
                   tn_vectors_near *to, int64_t *found);

#endif
