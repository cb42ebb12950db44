/* numbers.c — checks and prints numbers that may be NaN or infinite. */
#include "numbers.h"

#include <math.h>

void numbers_not_finite(const char *what, double x)
{
    tn_raise(TN_ENUMERIC, "%s is %s: look for NaN and Inf in the model's weights", what, x != x ? "NaN" : "infinite");
}

bool numbers_finite(double x, const char *what)
{
    if (isfinite(x)) return true;
    numbers_not_finite(what, x);
    return false;
}

bool numbers_vector(const float *x, int64_t n)
{
    int64_t i = 0;
    while (i < n && numbers_finite((double)x[i], "a value of a vector")) i++;
    return i == n;
}

void numbers_json(const char *before, double x, int digits)
{
    if (isfinite(x)) printf("%s%.*f", before, digits, x);
    else printf("%snull", before);
}

void numbers_put(tn_json_writer *w, const char *key, double x, int digits)
{
    const double scale = pow(10, digits), scaled = round(scale * x);
    if (isfinite(x)) tn_json_put_double(w, key, isfinite(scaled) ? scaled / scale : x);
    else tn_json_put_null(w, key);
}

void numbers_print(const float *x, int64_t n, bool json)
{
    char number[32];
    if (json) putchar('[');
    for (int64_t i = 0; i < n; i++) {
        tn_format_float(x[i], number);
        if (i) putchar(json ? ',' : ' ');
        fputs(number, stdout);
    }
    if (json) putchar(']');
}
