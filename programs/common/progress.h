/* progress.h — a progress bar like tqdm's on standard error; if that is not a terminal, a plain line every ten seconds.
 *
 *     progress bar = progress_begin("train", 1000, "step");
 *     for (int i = 1; i <= 1000; i++) progress_at(&bar, i, "loss=0.412");
 *     progress_end(&bar);
 *
 *     train:  37%|###7      | 370/1000 [00:12<00:21, 29.93step/s, loss=0.412]
 *
 * progress_fit prints all messages of a training run: tn_fit(..., .on = progress_fit, .on_user = &bar). */
#ifndef TENON_PROGRAMS_COMMON_PROGRESS_H
#define TENON_PROGRAMS_COMMON_PROGRESS_H

#include "options.h"

typedef struct {
    const char *title, *unit;
    int64_t     total, done, from; /* in units; total 0: unknown; from: where a resumed run started */
    double      began, drawn;      /* times in seconds: of the start, and of the last drawing */
    double      time, steps, last; /* smoothed seconds and units between drawings; the time of the last one */
    double      before;            /* seconds of earlier parts, of which this one is not the first if it is not 0 */
    int64_t     last_done;         /* units at the last drawing */
    char        note[80];
    const char *score;                           /* name of the validation's value, as progress_score; NULL: a loss */
    bool        silent, live, blocks, on_screen; /* live: on a terminal; blocks: draw with Unicode blocks */
    FILE       *to;
} progress;

progress progress_begin(const char *title, int64_t total, const char *unit); /* silent if --quiet or --no-progress */
void     progress_at(progress *p, int64_t done, const char *note);
void progress_say(progress *p, const char *fmt, ...) TN_PRINTF(2, 3); /* prints a line above the bar, if not --quiet */
void progress_part(const char *what, double part, void *bar);         /* part 0 to 1 of a bar of 100: for tokenizers */
void progress_end(progress *p);

void progress_fit(const tn_fit_event *e, void *bar); /* a tn_fit_listener; bar: a progress */

/* The parts that need neither clock nor terminal, for tests. */
int         progress_line(const progress *p, double seconds, double rate, int columns, char *to, size_t size);
const char *progress_time(double seconds, char to[16]); /* "01:02", "1:02:03" */
/* A value with its name: "BLEU 31.2000", "accuracy 81.20 %", "26 % of the goals". */
const char *progress_score(const char *name, double value, char to[80]);
void        progress_show(progress *p, int64_t done, const char *note, double now, int columns);

#endif
