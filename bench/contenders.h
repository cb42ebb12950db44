/* contenders.h — the programs that `bench kernels` compares: children that answer jobs (bench/peers/peer.h). */
#ifndef TENON_BENCH_CONTENDERS_H
#define TENON_BENCH_CONTENDERS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct {
    pid_t pid; /* 0: not there */
    FILE *to, *from;
    char  name[256]; /* what it calls itself */
} contender;

/* Starts a program; setting: one more environment variable, "NAME=value", or NULL. contender_ready waits until it is;
 * false: it is not there, or cannot run here. */
void contender_start(contender *c, char *const *argv, const char *setting);
bool contender_ready(contender *c);

/* One window: nanoseconds a call, and a number that not all kernels have; false: it cannot do the job, or has ended. */
bool contender_ask(contender *c, const char *job, double *ns, double *extra);
void contender_stop(contender *c);

#endif
