/* cost.h — the threads' cost model: rough times, in seconds of one core, by which products decide whether to share
 * their work out and how finely. A matter of speed, never of bits. docs/gemm.md says what was measured. */
#ifndef TENON_CORE_PRODUCTS_COST_H
#define TENON_CORE_PRODUCTS_COST_H

#include <stdbool.h>
#include <stdint.h>

static const double tn__cost_term = 1e-11;   /* a multiply-add of f32 in a product */
static const double tn__cost_byte = 2.5e-11; /* a byte read from memory */
static const double tn__cost_task = 4e-6;    /* what a thread should get at least: less is not worth waking it */

/* Is a job worth more than one thread? */
static inline bool tn__worth_sharing(double seconds) { return seconds > 2 * tn__cost_task; }
/* Tasks to hand over at a time, of `tasks` that take so many seconds together: lots of at least tn__cost_task, and as
 * many for each of the threads, where there are that many. */
static inline int64_t tn__cost_grain(double seconds, int64_t tasks, int threads)
{
    const int64_t least = (int64_t)(tn__cost_task * (double)tasks / seconds) + 1, lots = (tasks - 1) / least + 1;
    return lots <= threads ? least : (tasks - 1) / (lots / threads * threads) + 1;
}

#endif
