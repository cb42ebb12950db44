/* sweep.h — one pass over the elements of many tensors (sweep.c). Private.
 *
 * All tensors form one list of elements, which is cut into chunks of a fixed size. A thread works on one chunk at a
 * time, which may contain several tensors. Each piece (the part of one tensor in one chunk) has its own sums, which are
 * added in the order of the list; so the results do not depend on the number of threads. */
#ifndef TENON_OPTIM_SWEEP_H
#define TENON_OPTIM_SWEEP_H

#include "core/base/toolbox.h"
#include "optim/kernel_numbers.h"
#include "optim/optim.h"

#include <math.h>
#include <string.h>

enum { TN__STATES = 3, TN__SUMS = 2 };

typedef struct {
    int64_t     n;
    tn_dtype    dtype; /* of p and g: f32, f64 or bf16; state is f64 for f64, else f32 */
    void       *p;     /* weights, contiguous */
    void       *g;     /* gradient, contiguous; may be NULL */
    void       *state[TN__STATES];
    uint16_t   *copy; /* of p in bf16, which a pass that writes p writes, too; NULL: none */
    tn__numbers number;
    int64_t     index; /* index of the tensor in the owner's list */
    int64_t     first; /* index of the first element in that tensor */
    double      sum[TN__SUMS];
} tn__segment;

/* Processes n elements of s from element `at`. p and g point to these elements, as float for f32 and bf16, as double
 * for f64. Adds to sum, the sums of this piece, initially 0. */
typedef void (*tn__sweep_kernel)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS]);
enum { TN__READS = 0, TN__WRITES_P = 1, TN__WRITES_G = 2, TN__LARGEST = 4 /* combine sums with the maximum */ };
typedef struct {
    tn__sweep_kernel f32, f64;
    unsigned         flags;
} tn__sweep_pass;
#define TN__PASS(k, flags) ((tn__sweep_pass){k##_f32, k##_f64, flags})

typedef struct {
    int64_t      most, room;   /* capacity: number of segments and of pieces */
    int64_t      count, total; /* number of segments and of their elements */
    tn__segment *segment;
    int64_t     *from;  /* index in the list of each segment's first element */
    double      *piece; /* the sums of each piece */
} tn__sweep;
bool         tn__sweep_init(tn__sweep *w, int64_t segments, int64_t elements);    /* allocates; false: raised */
bool         tn__sweep_reserve(tn__sweep *w, int64_t segments, int64_t elements); /* grows if needed; false: raised */
void         tn__sweep_free(tn__sweep *w);
void         tn__sweep_clear(tn__sweep *w);
tn__segment *tn__sweep_add(tn__sweep *w, tn_dtype dt, int64_t n, void *p, void *g); /* within the capacity */
void         tn__sweep_run(tn__sweep *w, tn__sweep_pass k); /* sets segment[i].sum; cannot fail */
/* Runs the f32 kernel on a piece of bf16 elements (sweep_bf16.c). */
void tn__sweep_bf16(const tn__segment *s, const tn__sweep_pass *k, int64_t at, int64_t n, double sum[TN__SUMS]);

/* The sum of a piece's lanes, from the first to the last. This order determines the bits of resumed runs
 * (core/kernels/sum_lanes.h uses a different one). */
enum { TN__SUM_LANES = 16 };
static inline double tn__lanes_in_order(const double lane[TN__SUM_LANES])
{
    double total = 0;
    for (int k = 0; k < TN__SUM_LANES; k++) total += lane[k];
    return total;
}

/* For kernels: clips x to [-bound, bound]; NaN stays NaN. */
#define TN__CUT(x, bound) (-(bound) > TN__UP_TO(x, bound) ? -(bound) : TN__UP_TO(x, bound))
#define TN__UP_TO(x, bound) ((bound) < (x) ? (bound) : (x)) /* an instruction, NaN included */

static inline double tn__larger(double a, double b) { return a >= b || a != a ? a : b; } /* NaN if either is NaN */

#endif
