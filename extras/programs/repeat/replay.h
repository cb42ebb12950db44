/* replay.h — a run that is made again from its run.json, in a temporary folder: for the commands verify and debug. */
#ifndef TENON_EXTRAS_PROGRAMS_REPEAT_REPLAY_H
#define TENON_EXTRAS_PROGRAMS_REPEAT_REPLAY_H

#include "programs/common/train.h"

/* Makes the run in the folder the one of t: sets the options that run.json contains, and checks that the files exist.
 * Returns 0, also if an error is set; after a message, an exit code. replay_close frees what t has. */
int  replay_open(const command *train, training *t, const char *run);
void replay_close(training *t);

/* Creates a temporary folder; false: raised. replay_delete deletes it with all files; "" has no effect. */
bool replay_folder(char to[1024]);
void replay_delete(const char *folder);

/* Reads the texts, and makes the tokenizer, which is saved in the folder, --out from now on. False: raised. */
bool replay_texts(training *t, const char *folder);
/* After replay_texts: the batches and the initial model. False: raised. */
bool replay_model(training *t);

/* The number of steps that the options ask for, or, of --minutes, that run.json has. */
int64_t replay_steps(const training *t, const char *run);

/* ---- what a run computed: its record.jsonl (history.c) ----------------------------------------------------------- */

typedef struct {
    int64_t from, steps; /* a call of tn_fit that continued after step `from`, and its number of steps */
} history_part;
typedef struct {
    history_part *part;
    int64_t       parts;
    int64_t       first, last; /* the first recorded step (1 more than the last one if there is none), the last one */
    bool          ended;       /* the run ended or was stopped after the last step; false: it failed or was killed */
    /* [last + 1], by step; NaN and 0: not recorded */
    double   *loss, *lr, *valid;
    uint64_t *batch; /* hash of the batch */
} history;
bool history_read(history *h, const char *run); /* false: raised */
void history_free(history *h);

#endif
