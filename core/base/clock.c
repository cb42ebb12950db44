/* clock.c — elapsed time. */
#define _GNU_SOURCE /* clock_gettime */
#include "core/base/clock.h"

#include <time.h>

double tn__seconds(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
