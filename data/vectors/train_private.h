/* train_private.h — what the two ways of training share: by windows (train.c) and by counts (glove.c). Private. */
#ifndef TENON_DATA_VECTORS_TRAIN_PRIVATE_H
#define TENON_DATA_VECTORS_TRAIN_PRIVATE_H

#include "data/vectors/vectors_private.h"

#define TN__TRAIN "tn_vectors_train"                                      /* for messages */
enum { TN__ROUND_BYTES = TN__SHARDS * TN__SHARD_BYTES + 2 * TN__AROUND }; /* and what is seen around them */

/* Where a training stands. */
typedef struct {
    char   *buffer;
    int64_t bytes, before; /* of the files together; read before the file under way, all epochs */
    int64_t words;
    double  began;
} tn__run;

/* Reads a file in rounds, t->work and t->after each. False: stopped, or raised. */
bool        tn__read_through(tn__trainer *t, tn__run *r, const char *path);
void        tn__tell(const tn__trainer *t, const tn__run *r, double done);
tn_vectors *tn__glove_train(tn__trainer *t, tn__run *r, int n, const char *const *paths);
void        tn__trainer_free(tn__trainer *t);
tn_vectors *tn__trainer_vectors(const tn__trainer *t);

#endif
