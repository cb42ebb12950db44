/* numbers.h — numbers that a model gave, which need not be any. */
#ifndef TENON_EXAMPLES_COMMON_NUMBERS_H
#define TENON_EXAMPLES_COMMON_NUMBERS_H

#include <tenon/tenon.h>

/* Raises TN_ENUMERIC for x, which is NaN or infinite where nothing can be said of it; what: "the loss". */
void numbers_astray(const char *what, double x);
/* Is x finite? Else it raises that; and so of the n numbers of a vector. */
bool numbers_finite(double x, const char *what);
bool numbers_vector(const float *x, int64_t n);
/* On standard output, for JSON, which has no word for what is not finite: `before`, and x with so many digits behind
 * its point, or null. */
void numbers_json(const char *before, double x, int digits);
/* That of a writer, but without zeros at the end. */
void numbers_put(tn_json_writer *w, const char *key, double x, int digits);

#endif
