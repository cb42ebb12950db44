/* progress.h — a progress bar on standard error, as tqdm's users know it; where that is no terminal, a plain line every
 * ten seconds.
 *
 *     progress bar = progress_begin("train", 1000, "step");
 *     for (int i = 1; i <= 1000; i++) progress_at(&bar, i, "loss=0.412");
 *     progress_end(&bar);
 *
 *     train:  37%|###7      | 370/1000 [00:12<00:21, 29.93step/s, loss=0.412]
 *
 * And the whole of what a program has to say about a training run: tn_fit(..., .on = progress_fit, .on_user = &bar). */
#ifndef TENON_EXAMPLES_COMMON_PROGRESS_H
#define TENON_EXAMPLES_COMMON_PROGRESS_H

#include "options.h"

typedef struct {
    const char *title, *unit;
    int64_t     total, done, from; /* total 0: not known; from: where this run began */
    double      began, drawn;      /* seconds: when it began, and was last shown */
    double      time, steps, last; /* since the last showing: smoothed seconds and units; when and where that was */
    int64_t     last_done;
    char        note[80];
    const char *score; /* what the value of a validation is called: "BLEU"; NULL: it is the loss */
    bool        silent, live, blocks, on_screen; /* live: on a terminal; blocks: of Unicode */
    FILE       *to;
} progress;

progress progress_begin(const char *title, int64_t total, const char *unit); /* silent if --quiet or --no-progress */
void     progress_at(progress *p, int64_t done, const char *note);
void     progress_say(progress *p, const char *fmt, ...) TN_PRINTF(2, 3); /* a line above the bar; not if --quiet */
void     progress_part(const char *what, double part, void *bar); /* of a bar of 100: for the training of a tokenizer */
void     progress_end(progress *p);

void progress_fit(const tn_fit_event *e, void *bar); /* a tn_fit_listener; bar: a progress, made by progress_begin */

/* The parts that need no clock and no terminal, for tests. */
int         progress_line(const progress *p, double seconds, double rate, int columns, char *to, size_t size);
const char *progress_time(double seconds, char to[16]); /* "01:02", "1:02:03" */
void        progress_show(progress *p, int64_t done, const char *note, double now, int columns);

#endif
