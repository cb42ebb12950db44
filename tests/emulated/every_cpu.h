/* every_cpu.h — cpuid of a CPU that has everything, and a system that permits it: `gcc -include` puts it before
 * core/kernels/select.c. */
#ifndef TENON_TESTS_EMULATED_EVERY_CPU_H
#define TENON_TESTS_EMULATED_EVERY_CPU_H

#include "core/system/system.h"

#include <cpuid.h>

static inline int emulated_cpuid(unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    *a = *b = *c = *d = ~0u;
    return 1;
}
#define __get_cpuid(leaf, a, b, c, d) emulated_cpuid(a, b, c, d)
#define __get_cpuid_count(leaf, part, a, b, c, d) emulated_cpuid(a, b, c, d)
#define tn__xcr0() UINT64_MAX
#define tn__sys_amx_registers() true

#endif
