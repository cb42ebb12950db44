/* denormals.h — the CPU's treatment of denormals, numbers too small for a normal exponent, in the calling thread
 * (denormals.c). */
#ifndef TENON_CORE_BASE_DENORMALS_H
#define TENON_CORE_BASE_DENORMALS_H

#include <stdint.h>

/* Treats denormal operands and results as 0 from now on (FTZ and DAZ), if the CPU supports it; otherwise does nothing.
 * The mode belongs to the thread, and so to the host program: restore it with the value returned. */
uint64_t tn__denormals_off(void);
void     tn__denormals_restore(uint64_t before);
/* The thread's current mode and rounding direction, for another thread that works for it. */
uint64_t tn__float_mode(void);

#endif
