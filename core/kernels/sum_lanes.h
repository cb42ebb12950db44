/* sum_lanes.h — sums and extremes over contiguous elements, for kernels. Element i goes to lane i mod 16, so that the
 * compiler can use vectors without changing the order of the additions; the lanes are added in pairs at the end. Sums
 * of f32 and f64 are kept in f64, those of int64 wrap.
 *
 *     tn__sum_f32(n, x)            Σ x_i
 *     tn__dot_f32(n, x, y)         Σ x_i y_i
 *     tn__add_lanes_f32(&s, n, x), tn__dot_lanes_f32(&s, n, x, y), then tn__lanes_total(s): in parts,
 *                                  all but the last of a multiple of 16 elements
 *     tn__highest_f32(n, x)        NaN if there is one, -inf if n is 0; for tn__lowest_f32, inf
 *     tn__isnan_f32(v)             false for integers */
#ifndef TN__REAL
#ifndef TENON_CORE_KERNELS_SUM_LANES_H
#define TENON_CORE_KERNELS_SUM_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { TN__LANES = 16 };

typedef struct {
    double lane[TN__LANES];
} tn__lanes;
typedef struct {
    uint64_t lane[TN__LANES];
} tn__ilanes;

/* Adds the upper half of 2 · half lanes to the lower one. Repeated until one lane is left: all sums of lanes are added
 * in this order, also those in vectors (v_lanes_total). If `half` is a constant these are vector additions. */
static inline __attribute__((always_inline)) void tn__halve_lanes(tn__lanes *s, const int half)
{
    for (int k = 0; k < half; k++) s->lane[k] += s->lane[k + half];
}
static inline double tn__lanes_total(tn__lanes s)
{
    tn__halve_lanes(&s, 8), tn__halve_lanes(&s, 4), tn__halve_lanes(&s, 2);
    return s.lane[0] + s.lane[1];
}
static inline int64_t tn__ilanes_total(const tn__ilanes *s)
{
    uint64_t t = 0;
    for (int k = 0; k < TN__LANES; k++) t += s->lane[k];
    return (int64_t)t;
}

#define TN__TEMPLATE "core/kernels/sum_lanes.h"
#define TN__WITH_I64
#include "core/real.h"
#undef TN__WITH_I64
#endif

#else /* ===================================================================================== one dtype */

#if TN__IS_REAL
static inline void TN__(tn__add_lanes)(tn__lanes *s, int64_t n, const TN__REAL *x)
{
    int64_t i = 0;
    for (; i + TN__LANES <= n; i += TN__LANES)
        for (int k = 0; k < TN__LANES; k++) s->lane[k] += (double)x[i + k];
    for (int k = 0; i + k < n; k++) s->lane[k] += (double)x[i + k];
}

static inline double TN__(tn__sum)(int64_t n, const TN__REAL *x)
{
    tn__lanes s = {{0}};
    TN__(tn__add_lanes)(&s, n, x);
    return tn__lanes_total(s);
}

static inline void TN__(tn__dot_lanes)(tn__lanes *s, int64_t n, const TN__REAL *x, const TN__REAL *y)
{
    int64_t i = 0;
    for (; i + TN__LANES <= n; i += TN__LANES)
        for (int k = 0; k < TN__LANES; k++) s->lane[k] += (double)x[i + k] * (double)y[i + k];
    for (int k = 0; i + k < n; k++) s->lane[k] += (double)x[i + k] * (double)y[i + k];
}

static inline double TN__(tn__dot)(int64_t n, const TN__REAL *x, const TN__REAL *y)
{
    tn__lanes s = {{0}};
    TN__(tn__dot_lanes)(&s, n, x, y);
    return tn__lanes_total(s);
}

static inline bool TN__(tn__isnan)(TN__REAL v) { return v != v; }
#define LOWEST (-(TN__REAL)INFINITY)
#define HIGHEST ((TN__REAL)INFINITY)
#else
static inline void TN__(tn__add_lanes)(tn__ilanes *s, int64_t n, const int64_t *x)
{
    int64_t i = 0;
    for (; i + TN__LANES <= n; i += TN__LANES)
        for (int k = 0; k < TN__LANES; k++) s->lane[k] += (uint64_t)x[i + k];
    for (int k = 0; i + k < n; k++) s->lane[k] += (uint64_t)x[i + k];
}
static inline bool TN__(tn__isnan)(int64_t v) { return (void)v, false; }
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#endif

/* The maximum, or the minimum, in lanes. Comparisons with NaN are false, so NaN is detected separately. Inlined where
 * `largest` is known. */
static inline TN__REAL TN__(tn__better)(bool largest, TN__REAL v, TN__REAL best)
{
    return largest ? (v > best ? v : best) : (v < best ? v : best);
}
static inline __attribute__((always_inline)) TN__REAL TN__(tn__extreme)(const bool largest, int64_t n,
                                                                        const TN__REAL *x)
{
    TN__REAL best[TN__LANES], strange[TN__LANES];
    int64_t  i = 0;
    for (int k = 0; k < TN__LANES; k++) best[k] = largest ? LOWEST : HIGHEST;
    for (int k = 0; k < TN__LANES; k++) strange[k] = 0;
    for (; i + TN__LANES <= n; i += TN__LANES)
        for (int k = 0; k < TN__LANES; k++) {
            const TN__REAL v = x[i + k];
            best[k] = TN__(tn__better)(largest, v, best[k]);
            strange[k] = TN__(tn__isnan)(v) ? v : strange[k];
        }
    for (int k = 0; i + k < n; k++) {
        const TN__REAL v = x[i + k];
        best[k] = TN__(tn__better)(largest, v, best[k]);
        strange[k] = TN__(tn__isnan)(v) ? v : strange[k];
    }
    for (int k = 1; k < TN__LANES; k++) best[0] = TN__(tn__better)(largest, best[k], best[0]);
    for (int k = 0; k < TN__LANES; k++)
        if (strange[k] != 0) return strange[k];
    return best[0];
}
static inline TN__REAL TN__(tn__highest)(int64_t n, const TN__REAL *x) { return TN__(tn__extreme)(true, n, x); }
static inline TN__REAL TN__(tn__lowest)(int64_t n, const TN__REAL *x) { return TN__(tn__extreme)(false, n, x); }
#undef LOWEST
#undef HIGHEST
#endif
