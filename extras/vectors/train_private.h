/* train_private.h — shared by the two kinds of training: by windows (train.c) and by counts (glove.c). Private. */
#ifndef TENON_EXTRAS_VECTORS_TRAIN_PRIVATE_H
#define TENON_EXTRAS_VECTORS_TRAIN_PRIVATE_H

#include "extras/vectors/vectors_private.h"
#include "optim/optim.h"

#define TN__TRAIN "tn_vectors_train" /* prefix of error messages */

/* The state of a training. */
typedef struct {
    int                 files;
    const char *const  *path;
    int64_t            *start;         /* [files + 1]: offset of each file in their concatenation */
    int64_t             bytes, before; /* total size of the files; bytes read before this epoch */
    int64_t             words;
    double              asked, began;      /* start times of the call and of the training */
    int64_t             epoch;             /* current epoch */
    int64_t             place[TN__SHARDS]; /* bytes read of each shard's part; GloVe: diagonals done */
    double              saved;             /* time of the last checkpoint */
    tn_checkpoint_file *file;              /* the checkpoint to resume from, until its tables are loaded */
} tn__run;

/* Reads the texts in rounds, calling t->work and t->after in each. False: stopped or raised. */
bool tn__read_through(tn__trainer *t, tn__run *r);
bool tn__rounds(tn__trainer *t, tn__run *r); /* trains by windows */
/* The training checkpoint (checkpoint.c), a file with all changing state. open tests, before texts are counted, that
 * the file belongs to a training like this one; load reads it into a trainer that is set up and has its tables. All
 * raise; without .checkpoint or .resume they do nothing. */
typedef struct {
    const char *name;
    tn__table  *table;
} tn__saved;
enum { TN__SAVED = 4 }; /* maximum number of tables */
/* Calls .on. table: at the end of an epoch; else NULL. */
void tn__notify(const tn__trainer *t, const tn__run *r, double done);
bool tn__checkpoint_open(const tn__trainer *t, tn__run *r);
bool tn__checkpoint_load(const tn__trainer *t, tn__run *r, int n, const tn__saved *saved);
bool tn__checkpoint_save(const tn__trainer *t, tn__run *r, int n, const tn__saved *saved);

tn_vectors *tn__glove_train(tn__trainer *t, tn__run *r);
tn_vectors *tn__trainer_vectors(const tn__trainer *t);

#endif
