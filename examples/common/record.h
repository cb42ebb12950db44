/* record.h — what a training leaves behind: run.json says what it is, log.jsonl and log.csv how it went; and the curves
 * of them. */
#ifndef TENON_EXAMPLES_COMMON_RECORD_H
#define TENON_EXAMPLES_COMMON_RECORD_H

#include "files.h"
#include "progress.h"

typedef struct {
    progress    bar;
    const char *folder;
    bool        resume;
    tn_runlog  *log;          /* opened when the run says where it begins */
    int64_t     every, items; /* steps between two rows; items since the last */
    double      seconds;      /* of the last row */
} record;
/* folder must outlive it. If validation has a score (.score of tn_fit), bar.score is to say what it is called. */
record record_begin(const char *folder, int64_t steps, bool resume);
void   record_fit(const tn_fit_event *e, void *record); /* a tn_fit_listener */
void   record_end(record *r);

/* May a run have this folder? To begin, it is made, and nothing of a model may be in it; to resume, a run must be: one
 * that was broken off before there was anything to go on with is begun again. No other process has the folder from now
 * on. False: raised. */
bool record_may_begin(const char *folder, bool *resume);
/* The same for a model that is saved once, at the end: asked before the work. The folder is made. False: raised. */
bool record_may_save(const char *folder);
/* The point from which a run can be resumed: its tokenizer, if it has one, and folder/run.json with what made it
 * (version, instruction set, threads) and what was asked for, an object of JSON; a run that is resumed leaves both as
 * they are. */
bool record_run(const char *folder, bool resume, const tn_tokenizer *t, const char *asked);
void record_forget(const char *folder); /* a run that has begun there, and failed before that point */
/* The steps that folder/run.json names; and another number that was asked for, or 0. */
int64_t record_steps(const char *folder);
double  record_number(const char *folder, const char *name);
int64_t record_count(const char *folder, const char *name); /* ... which counts something */

/* Is there memory, or space on the folder's disk, for so many bytes? If not, raises; a run that is forced is told and
 * goes on. */
bool record_memory(double bytes, bool force);
bool record_space(const char *folder, double bytes, bool force);

/* Seconds that a step takes: a few with this module, which is freed, and this source, which tn_fit will begin
 * anew. */
double step_seconds(void *module, tn_source s, tn_fit_loss loss, void *user, bool autocast);

/* Is nothing at path, or what begins so (at most 31 bytes)? what: as the message that it raises calls it. */
bool record_may_replace(const char *path, const char *begins, const char *what);
/* Writes a page and frees it; what stands at path and is no page is not written over. False: raised. */
bool record_report(tn_report *r, const char *path);
bool record_curves(tn_report *r, const char *folder);    /* loss, BLEU, learning rate */
bool record_page(const char *folder, const char *title); /* them alone, as folder/report.html */

#endif
