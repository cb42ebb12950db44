/* checked.h — arithmetic on sizes that reports overflow. */
#ifndef TENON_CORE_BASE_CHECKED_H
#define TENON_CORE_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* a + b, a * b; false if it would overflow or is negative */
static inline bool    tn__add_i64(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }
static inline bool    tn__mul_i64(int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); }
static inline int64_t tn__min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tn__max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
/* a / b, rounded up; a is at least 0, b above 0 */
static inline int64_t tn__ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

#endif
