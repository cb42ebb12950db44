/* runlog_private.h — the three files of a run log. Private. */
#ifndef TENON_EXTRAS_RUNLOG_RUNLOG_PRIVATE_H
#define TENON_EXTRAS_RUNLOG_RUNLOG_PRIVATE_H

#include "data/text/data_private.h"
#include "extras/runlog.h"

typedef struct {
    tn__sink sink;
    char     label[TN__LABEL];
    bool     open;
} tn__log_file;
static inline bool tn__log_append(tn__log_file *f, const char *path)
{
    tn__label(f->label, "tn_runlog_open", path);
    return f->open = tn__sink_append(&f->sink, f->label, path);
}

/* TensorBoard's event files (runlog_events.c). first: first step of a resumed run, -1: a new run. */
bool tn__events_open(tn__log_file *f, const char *folder, int64_t first);
bool tn__events_put(tn__log_file *f, tn_string *spare, int64_t step, int n, const char *const *names, const double *v);

#endif
