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

bool replay_same_file(const char *a, const char *b); /* of a SHA256SUMS: the same lines but that of run.json */
bool replay_same_json(const tn_json *a, const tn_json *b, char text[2][100]); /* sets both as texts, shortened */

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
    char    kind; /* the first letter of run, step, valid, best or point, a training checkpoint */
    bool    end;  /* a training checkpoint because of a stop, or at the end of a run */
    int64_t step;
    tn_text text; /* all of the line */
} history_line;
typedef struct {
    tn_lines     *text;
    history_line *line;
    history_part *part;
    int64_t       lines, parts;
    int64_t       damaged;     /* the first line that was changed or is not complete, from 1; those from it on are not
                                  read; 0: none */
    int64_t       first, last; /* the first recorded step (1 more than the last one if there is none), the last one */
    bool          ended;       /* the run ended or was stopped after the last step; false: it failed or was killed */
    /* [last + 1], by step; NaN and 0: not recorded */
    double   *loss, *lr;
    uint64_t *batch; /* hash of the batch */
} history;
bool history_read(history *h, const char *checkpoints); /* the folder of record.jsonl; false: raised */
/* True if this part validated at this step. If the part was stopped there, the next one did so. */
bool history_validated(const history *h, int64_t part, int64_t step);
void history_free(history *h);

/* ---- steps, made again by tn_fit --------------------------------------------------------------------------------- */

typedef struct {
    training   *t;
    const char *run; /* its folder */
    const char *config;
    history     h;
    char        scratch[1024]; /* temporary folder; "": none */
    char        again[1024];   /* the folder in it from which tn_fit resumes */
    bool        whole;         /* start from the first step; false: from the run's training checkpoints */
    bool        used;          /* t->net is not the initial model any more */
    int64_t     done;          /* steps */
} replay;

/* The step of the newest training checkpoint before `below`; -1: none. Deletes those from `from` on. */
int64_t replay_newest(const char *checkpoints, int64_t below, int64_t from);
bool    replay_link(const char *from, const char *to); /* a second name for a file, or a copy; false: raised */
/* Prepares `again`, from where tn_fit resumes, with the newest training checkpoint before the step, of the run or of
 * steps repeated before; and the initial model. Sets done. False: raised. */
bool        replay_before(replay *r, int64_t step);
tn_fit_args replay_arguments(const replay *r, int64_t part); /* of tn_fit, for a part of the run */
/* The part of the run after step `done`, -1: none; *end: its last step, at most `until`. */
int64_t replay_part(const replay *r, int64_t until, int64_t *end);

#endif
