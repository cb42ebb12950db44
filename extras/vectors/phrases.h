/* phrases.h — phrases with custom memory limits, for tests. Private. */
#ifndef TENON_EXTRAS_VECTORS_PHRASES_H
#define TENON_EXTRAS_VECTORS_PHRASES_H

#include "extras/vectors/vectors_private.h"

typedef struct {
    int64_t words; /* different words: more is an error */
    int64_t pairs; /* counted in one pass, at least 2; more need more passes */
    int64_t phrases;
} tn__phrases_limits;
tn_vectors_phrased tn__phrases_write(int n, const char *const *paths, const char *to, const tn_vectors_phrases_args *a,
                                     const tn__phrases_limits *limits);

#endif
