/* runlog.h — what a run writes down as it goes: numbers by step, as JSON lines, CSV, TensorBoard. Include data.h.
 *
 *     tn_runlog *log = tn_runlog_open(.jsonl = "run.jsonl", .csv = "run.csv", .tensorboard = "tb");
 *     tn_runlog_put(log, step, 2, (const char *[]){"train/loss", "lr"}, (double[]){mean_loss, rate});
 *     tn_runlog_close(log);
 *
 * Each row is in the files when the call returns, so that a run that is killed loses none. */
#ifndef TENON_DATA_RUNLOG_H
#define TENON_DATA_RUNLOG_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_runlog_config {
    int                zero_;
    const char        *jsonl;       /* a file of objects, one a line: {"step":1,"loss":2.5}; NULL: none */
    const char        *csv;         /* a file whose columns are "step" and the names below; NULL: none */
    const char        *tensorboard; /* a folder that is there, for an event file of its own; NULL: none */
    const char *const *columns;     /* of the CSV; NULL: the names of the first row */
    int                n;
    bool    resume; /* go on with files that are there: rows after the step below are taken out, and what is torn at the
                       end; what is no log is refused */
    int64_t step;   /* false: files that are there begin anew */
    int     end_;
} TN_KEYWORDS_ONLY tn_runlog_config;

typedef struct tn_runlog tn_runlog;
TN_API tn_runlog        *tn_runlog_open_run(tn_runlog_config config);
/* Names are not repeated in a row. NaN and infinities are null in JSON. A name that is no column of the CSV is left out
 * there, a column without a value is empty. */
TN_API tn_status tn_runlog_put(tn_runlog *l, int64_t step, int n, const char *const *names, const double *values);
TN_API void      tn_runlog_close(tn_runlog *l);

#ifdef __cplusplus
} /* extern "C" */
#else
#define tn_runlog_open(...) TN_NEW_(tn_runlog_open_run, tn_runlog_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#endif
#endif
