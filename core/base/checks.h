/* checks.h — argument checks of constructors and calls, and numbers formatted for messages. Part of toolbox.h. */
#ifndef TENON_CORE_BASE_CHECKS_H
#define TENON_CORE_BASE_CHECKS_H

#include "core/core.h"

bool tn__not_null(const char *who, const char *what, const void *p); /* raises "who: what is NULL" and returns false */
/* Each raises "who: .what is 0, but must be …" and returns false if its condition does not hold. */
bool tn__at_least(const char *who, const char *what, int64_t v, int64_t least);
bool tn__within(const char *who, const char *what, int64_t v, int64_t low, int64_t high);
bool tn__probability(const char *who, const char *what, double p);         /* 0 ≤ p ≤ 1 */
bool tn__probability_below_1(const char *who, const char *what, double p); /* 0 ≤ p < 1 */
bool tn__epsilon(const char *who, double eps);                             /* .eps: at least 0, and finite */
bool tn__floating(const char *who, tn_dtype dt);                           /* .dtype of parameters */

/* Called by what a replay (autograd/replay.h) would not repeat: raises and returns true while a step is recorded.
 * Within an op's infer it only notes that values are read. */
bool tn__unreplayable(const char *who);

/* The shortest text that reads back as v: "3.0" as Python prints it, or "3", without the ".0". The thread owns the
 * buffer; it is valid until the eighth next call. */
const char *tn__format_python(double v);
const char *tn__format_number(double v);

#endif
