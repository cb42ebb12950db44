/* checks.h — what constructors and calls ask of their arguments, and numbers as messages show them. Part of
 * toolbox.h. */
#ifndef TENON_CORE_BASE_CHECKS_H
#define TENON_CORE_BASE_CHECKS_H

#include "core/core.h"

bool tn__not_null(const char *who, const char *what, const void *p); /* raises "who: what is NULL" and returns false */
/* Each raises "who: .what is 0, but must be …" and returns false where its condition does not hold. */
bool tn__at_least(const char *who, const char *what, int64_t v, int64_t least);
bool tn__within(const char *who, const char *what, int64_t v, int64_t low, int64_t high);
bool tn__probability(const char *who, const char *what, double p); /* from 0 to 1 */
bool tn__chance(const char *who, const char *what, double p);      /* from 0 to less than 1 */
bool tn__epsilon(const char *who, double eps);                     /* .eps, 0 or more, and finite */
bool tn__floating(const char *who, tn_dtype dt);                   /* .dtype, of parameters */

/* The shortest text that is read back as v, as Python prints it, "3.0", and without the ".0", "3"; in a buffer of this
 * thread that is good until the eighth next call. */
const char *tn__python(double v);
const char *tn__number(double v);

#endif
