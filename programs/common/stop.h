/* stop.h — Ctrl-C and SIGTERM: the first signal asks the program to save and end, the second ends it at once. */
#ifndef TENON_PROGRAMS_COMMON_STOP_H
#define TENON_PROGRAMS_COMMON_STOP_H

#include <signal.h>

extern volatile sig_atomic_t stop_flag; /* the signal received, or 0: tn_fit(..., .stop = &stop_flag) */

enum { STOP_PLAN = -1 }; /* stop_flag of a program that wants tn_fit to stop, not of a signal */

/* Installs the handler. says: printed to standard error at the first signal, if not --quiet; may be NULL. */
void stop_begin(const char *says);
int  stop_exit_code(void); /* 130 or 143 after a signal, else 0 */

#endif
