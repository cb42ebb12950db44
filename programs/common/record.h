/* record.h — the record of a training in its folder: run.json with the options, log.jsonl and log.csv with the values
 * of each step. Also the checks before a run: folder, memory, disk space. */
#ifndef TENON_PROGRAMS_COMMON_RECORD_H
#define TENON_PROGRAMS_COMMON_RECORD_H

#include "files.h"
#include "progress.h"

typedef struct {
    progress    bar;
    const char *folder;
    bool        resume;
    tn_runlog  *log;          /* opened at TN_FIT_START, which reports the first step */
    int64_t     every, items; /* steps between two rows; items since the last row */
    double      seconds;      /* time of the last row */
} record;
/* folder must outlive the record. If validation has a score (.score of tn_fit), set bar.score to its name. */
record record_begin(const char *folder, int64_t steps, bool resume);
void   record_fit(const tn_fit_event *e, void *record); /* a tn_fit_listener */
void   record_end(record *r);

/* True if a run may use the folder, which is then locked until the process ends. A new run creates it; it must not
 * contain a model. A resumed run must find a run there; *resume becomes false if that was interrupted before its first
 * checkpoint, and has to start again. False: raised. */
bool record_lock_folder(const char *folder, bool *resume);
/* True if a model may be saved in the folder, which is created and must not contain one. For programs that save once,
 * at the end; call it before the work. False: raised. */
bool record_check_folder(const char *folder);
/* Makes a run resumable: saves its tokenizer, if t is not NULL, and folder/run.json with the library's build (version,
 * instruction set, threads) and the options `asked`, a JSON object. A resumed run changes neither. */
bool record_run(const char *folder, bool resume, const tn_tokenizer *t, const char *asked);
void record_forget(const char *folder); /* deletes run.json of a new run that failed before record_run */
/* Saves the options of the command that runs in a folder of several runs. False: raised. */
bool record_options(const char *folder);
/* Sets the number of steps of a run that is lengthened or planned again. "asked" keeps the number of the start. False:
 * raised. */
bool     record_set_steps(const char *folder, int64_t steps);
tn_json *record_asked(const char *folder);   /* folder/run.json; the caller frees it; NULL: raised */
bool     record_only_begun(const char *run); /* was killed before it recorded its options ("asked" is null)? */
/* From folder/run.json: the number of steps, also of a lengthened run; a number of "asked"; a count of "asked". The
 * last two return 0 if it is missing. */
int64_t record_steps(const char *folder);
double  record_number(const char *folder, const char *name);
int64_t record_count(const char *folder, const char *name);

/* Checks that the machine's memory, or the folder's disk, has room for `bytes`. If not, raises; with force, prints a
 * warning and returns true. */
bool record_memory(double bytes, bool force);
bool record_space(const char *folder, double bytes, bool force);

/* Seconds per training step, from a few steps with this module, which is freed, and these arguments, of which it uses
 * .train, which tn_fit restarts later, .loss, .user, .autocast, .memory, .make and .clip. */
double step_seconds(void *module, tn_fit_args how);

/* True if there is no file at path, or one that starts with `begins` (at most 31 bytes, case ignored). Else raises a
 * message that calls the expected file `what`. */
bool record_check_file(const char *path, const char *begins, const char *what);
/* Saves a report as an HTML page and frees it. A file at path that is not an HTML page is kept: raises. */
bool record_report(tn_report *r, const char *path);

#endif
