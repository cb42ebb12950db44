/* runlog.h — logs numbers by step during a run, as JSON lines, CSV and TensorBoard events. Include extras.h.
 *
 *     tn_runlog *log = tn_runlog_open(.jsonl = "run.jsonl", .csv = "run.csv", .tensorboard = "tb");
 *     tn_runlog_put(log, step, 2, (const char *[]){"train/loss", "lr"}, (double[]){mean_loss, rate});
 *     tn_runlog_close(log);
 *
 * Each row is in the files when the call returns, so that a killed run loses none. */
#ifndef TENON_EXTRAS_RUNLOG_H
#define TENON_EXTRAS_RUNLOG_H

#include "../data/lines.h"

TN_C_BEGIN_

typedef struct tn_runlog_config {
    int                zero_;
    const char        *jsonl;       /* file of objects, one per line: {"step":1,"loss":2.5}; NULL: none */
    const char        *csv;         /* file whose columns are "step" and .columns; NULL: none */
    const char        *tensorboard; /* existing folder for a new event file; NULL: none */
    const char *const *columns;     /* columns of the CSV; NULL: the names of the first row */
    int                n;
    /* true: append to existing files, after removing rows beyond .step and a torn row at the end; a file that is not a
     * log is rejected. false: empty existing files. */
    bool    resume;
    int64_t step; /* last step to keep when resuming */
    int     end_;
} TN_KEYWORDS_ONLY tn_runlog_config;

typedef struct tn_runlog tn_runlog;
TN_API tn_runlog        *tn_runlog_open_run(tn_runlog_config config);
/* Adds a row; its names must differ. NaN and infinities are null in JSON. The CSV ignores names that are not among its
 * columns and leaves columns without a value empty. */
TN_API tn_status tn_runlog_put(tn_runlog *l, int64_t step, int n, const char *const *names, const double *values);
TN_API void      tn_runlog_close(tn_runlog *l);

TN_C_END_
#define tn_runlog_open(...) TN_NEW_(tn_runlog_open_run, tn_runlog_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#endif
