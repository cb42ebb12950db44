/* cost.h — the cost model of threads: rough times, in seconds of one core, from which products decide whether and how
 * finely to distribute their work. Affects only speed, never bits. docs/gemm.md describes the measurements. */
#ifndef TENON_CORE_PRODUCTS_COST_H
#define TENON_CORE_PRODUCTS_COST_H

#include <stdbool.h>
#include <stdint.h>

static const double tn__cost_term = 1e-11;   /* a multiply-add of f32 in a product */
static const double tn__cost_byte = 2.5e-11; /* a byte read from memory */
static const double tn__cost_task = 4e-6;    /* minimum work for a thread: less is not worth waking it */

/* True if a job is worth more than one thread. */
static inline bool tn__worth_sharing(double seconds) { return seconds > 2 * tn__cost_task; }
/* The tasks of the busiest thread, in lots of `grain`. */
static inline int64_t tn__cost_most(int64_t tasks, int64_t grain, int threads)
{
    return ((tasks - 1) / grain / threads + 1) * grain;
}
/* Number of tasks to pass to a thread at a time, of `tasks` that take `seconds` in total: lots of about
 * tn__cost_task or longer, and the same number for each thread unless that makes one busier. */
static inline int64_t tn__cost_grain(double seconds, int64_t tasks, int threads)
{
    const int64_t nearest = (int64_t)(tn__cost_task * (double)tasks / seconds + 0.5), least = nearest ? nearest : 1;
    const int64_t lots = (tasks - 1) / least + 1;
    if (lots <= threads) return least;
    const int64_t equal = (tasks - 1) / (lots / threads * threads) + 1;
    return tn__cost_most(tasks, equal, threads) <= tn__cost_most(tasks, least, threads) ? equal : least;
}

#endif
