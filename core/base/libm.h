/* libm.h — functions of the C library that would set errno where a result underflows, overflows or is a pole: here it
 * stays, as after each call of ours. Part of toolbox.h.
 *
 * The compiler is told that mathematics leaves errno alone (-fno-math-errno), and would drop "errno = keep" as a store
 * of what is there already, or call the function behind it. The empty asm needs the result, and says that memory may
 * have changed. */
#ifndef TENON_CORE_BASE_LIBM_H
#define TENON_CORE_BASE_LIBM_H

#include <errno.h>
#include <math.h>

static inline double tn__errno_kept(int keep, double y)
{
    __asm__ volatile("" : "+m"(y) : : "memory");
    errno = keep;
    return y;
}

static inline double tn__libm_exp(double x)
{
    const int keep = errno;
    return tn__errno_kept(keep, exp(x));
}
static inline double tn__libm_log(double x)
{
    const int keep = errno;
    return tn__errno_kept(keep, log(x));
}
static inline double tn__libm_log1p(double x)
{
    const int keep = errno;
    return tn__errno_kept(keep, log1p(x));
}
static inline double tn__libm_pow(double x, double y)
{
    const int keep = errno;
    return tn__errno_kept(keep, pow(x, y));
}
static inline double tn__libm_erfc(double x)
{
    const int keep = errno;
    return tn__errno_kept(keep, erfc(x));
}

#endif
