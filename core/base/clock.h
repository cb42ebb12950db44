/* clock.h — elapsed time. Part of toolbox.h. */
#ifndef TENON_CORE_BASE_CLOCK_H
#define TENON_CORE_BASE_CLOCK_H

double tn__seconds(void); /* seconds since a fixed moment; unaffected by changes of the system time */

#endif
