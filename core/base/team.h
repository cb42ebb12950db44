/* team.h — the worker threads of a thread (team.c). */
#ifndef TENON_CORE_BASE_TEAM_H
#define TENON_CORE_BASE_TEAM_H

#include <stdbool.h>

/* Calls work(user, 0) here, and work(user, 1 … n-1) on those of this thread's workers that arrive before it returns;
 * returns when all these calls have. A worker that is late is not waited for, so the calls divide the work among
 * themselves. crowded: there are fewer CPUs than threads, so those that wait do not spin. False: this thread has no
 * worker; nothing was called. work must not call tn__team_run. */
bool tn__team_run(int n, bool crowded, void (*work)(void *user, int worker), void *user);
void tn__team_retry(void); /* tries to make threads again after one could not be made */
int  tn__team_moves(void); /* number of times that workers of this thread were moved to another CPU; for tests */

#endif
