/* denormals.h — the CPU's treatment of denormals, numbers too small for a normal exponent, in the calling thread
 * (denormals.c). */
#ifndef TENON_CORE_BASE_DENORMALS_H
#define TENON_CORE_BASE_DENORMALS_H

#include <stdint.h>

/* Operands and results that are denormal count as 0 from here on (FTZ and DAZ), where the CPU can do so; elsewhere
 * nothing happens. The mode is the thread's, and so that of the host program: give it back what this returns. */
uint64_t tn__denormals_off(void);
void     tn__denormals_restore(uint64_t before);
/* The thread's mode as it is, with the direction of rounding: what another thread is given that works for it. */
uint64_t tn__float_mode(void);

#endif
