/* contenders.h — the programs that `bench kernels` compares: child processes that answer jobs (bench/peers/peer.h). */
#ifndef TENON_BENCH_CONTENDERS_H
#define TENON_BENCH_CONTENDERS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct {
    pid_t pid; /* 0: not running */
    FILE *to, *from;
    char  name[256]; /* name and version as it reports them */
} contender;

/* Starts a program. setting: an additional environment variable "NAME=value"; may be NULL. contender_ready waits until
 * the program is ready and returns false if it is missing or cannot run on this machine. */
void contender_start(contender *c, char *const *argv, const char *setting);
bool contender_ready(contender *c);

/* Measures one window: nanoseconds per call, and an extra value that some kernels have (-1: none). Returns false if the
 * program does not support the job or has ended. */
bool contender_ask(contender *c, const char *job, double *ns, double *extra);
void contender_stop(contender *c);

#endif
