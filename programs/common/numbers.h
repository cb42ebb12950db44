/* numbers.h — checks and prints results of a model, which may be NaN or infinite. */
#ifndef TENON_PROGRAMS_COMMON_NUMBERS_H
#define TENON_PROGRAMS_COMMON_NUMBERS_H

#include <tenon/extras.h>

/* Raises TN_ENUMERIC for x, which is NaN or infinite. what: its name in the message, as "the loss". */
void numbers_not_finite(const char *what, double x);
/* True if x, or each of n values, is finite; else raises as above. */
bool numbers_finite(double x, const char *what);
bool numbers_vector(const float *x, int64_t n);
/* Prints `before` and x with `digits` decimals to standard output; null if x is not finite, because JSON has no other
 * value for it. */
void numbers_json(const char *before, double x, int digits);
/* Puts the same value into a JSON writer, without trailing zeros. */
void numbers_put(tn_json_writer *w, const char *key, double x, int digits);

/* Prints a vector without a line end: numbers separated by blanks, or a JSON array. */
void numbers_print(const float *x, int64_t n, bool json);

#endif
