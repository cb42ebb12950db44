/* runlog_private.h — TensorBoard's event files (runlog_events.c). Private. */
#ifndef TENON_EXTRAS_RUNLOG_RUNLOG_PRIVATE_H
#define TENON_EXTRAS_RUNLOG_RUNLOG_PRIVATE_H

#include "extras/runlog.h"

/* Begins a new file in the folder and writes its path. first: first step of a resumed run, -1: a new run. */
bool tn__events_open(tn_string *path, const char *folder, int64_t first);
bool tn__events_put(const char *path, tn_string *spare, int64_t step, int n, const char *const *names, const double *v);
uint32_t tn__events_checksum(const void *data, size_t bytes); /* CRC-32C */

#endif
