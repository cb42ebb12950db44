/* train_private.h — what the two ways of training share: by windows (train.c) and by counts (glove.c). Private. */
#ifndef TENON_DATA_VECTORS_TRAIN_PRIVATE_H
#define TENON_DATA_VECTORS_TRAIN_PRIVATE_H

#include "data/vectors/vectors_private.h"

#define TN__TRAIN "tn_vectors_train" /* for messages */

/* Where a training stands. */
typedef struct {
    int                files;
    const char *const *path;
    int64_t           *start;         /* [files + 1]: where each begins, as if they stood behind each other */
    int64_t            bytes, before; /* of the files together; read before the epoch under way */
    int64_t            words;
    double             began;
} tn__run;

/* Reads the texts in rounds, t->work and t->after each. False: stopped, or raised. */
bool        tn__read_through(tn__trainer *t, tn__run *r, int64_t epoch);
void        tn__tell(const tn__trainer *t, const tn__run *r, double done);
tn_vectors *tn__glove_train(tn__trainer *t, tn__run *r);
void        tn__trainer_free(tn__trainer *t);
tn_vectors *tn__trainer_vectors(const tn__trainer *t);

#endif
