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
    double             asked, began;      /* when: the call, the training */
    int64_t            epoch;             /* under way */
    int64_t            place[TN__SHARDS]; /* where it goes on: how far each shard is in its part; GloVe: diagonals */
    double             saved;             /* when */
} tn__run;

/* Reads the texts in rounds, t->work and t->after each. False: stopped, or raised. */
bool tn__read_through(tn__trainer *t, tn__run *r);
bool tn__rounds(tn__trainer *t, tn__run *r); /* the training by windows */
void tn__tell(const tn__trainer *t, const tn__run *r, double done);
/* A file with all that changes in a training (checkpoint.c). Looking asks whether it is one of a training like this,
 * before texts are counted; then it is read into a trainer that is ready, but for what it has learned, and has its
 * tables. All raise; without .checkpoint, or .resume, nothing is done. */
typedef struct {
    float  *x;
    int64_t n;
} tn__saved;
enum { TN__SAVED = 4 }; /* tables at most; the others are zeros */
bool tn__checkpoint_look(const tn__trainer *t);
bool tn__checkpoint_load(const tn__trainer *t, tn__run *r, const tn__saved table[TN__SAVED]);
bool tn__checkpoint_save(const tn__trainer *t, tn__run *r, const tn__saved table[TN__SAVED]);

tn_vectors *tn__glove_train(tn__trainer *t, tn__run *r);
void        tn__trainer_free(tn__trainer *t);
tn_vectors *tn__trainer_vectors(const tn__trainer *t);

#endif
