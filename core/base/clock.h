/* clock.h — how much time goes by. Part of toolbox.h. */
#ifndef TENON_CORE_BASE_CLOCK_H
#define TENON_CORE_BASE_CLOCK_H

double tn__seconds(void); /* since some moment in the past, whatever is done to the time of day */

#endif
