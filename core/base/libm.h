/* libm.h — functions of the C library that would set errno where a result underflows, overflows or is a pole; these
 * keep errno, as every call of Tenon does. Part of toolbox.h.
 *
 * The compiler assumes that mathematics does not set errno (-fno-math-errno), and would drop "errno = keep" as a store
 * of the value already in it, or call the function after it. The empty asm needs the result, and declares that memory
 * may have changed. */
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
