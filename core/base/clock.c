/* clock.c — elapsed time. */
#include "core/system/system.h"

#include "core/base/clock.h"

double tn__seconds(void)
{
    const int64_t now = tn__sys_nanoseconds();
    return (double)(now / 1000000000) + 1e-9 * (double)(now % 1000000000);
}
