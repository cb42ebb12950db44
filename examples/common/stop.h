/* stop.h — Ctrl-C (and SIGTERM): the first asks the program to save and end, the second ends it at once. */
#ifndef TENON_EXAMPLES_COMMON_STOP_H
#define TENON_EXAMPLES_COMMON_STOP_H

#include <signal.h>

extern volatile sig_atomic_t stop_flag; /* the signal that came, or 0: tn_fit(..., .stop = &stop_flag) */

/* says: what the first one writes to standard error, if not --quiet: "saving, then ending; ..." */
void stop_begin(const char *says);
int  stop_exit_code(void); /* 130 or 143 if one came, else 0 */

#endif
