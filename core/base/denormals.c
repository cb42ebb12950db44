/* denormals.c — see denormals.h; sets a CPU register of the calling thread. */
#include "core/base/denormals.h"

#if defined(__SSE2__)
enum { DAZ_AND_FTZ = 0x8040 }; /* of MXCSR */
uint64_t tn__denormals_off(void)
{
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | DAZ_AND_FTZ);
    return before;
}
void     tn__denormals_restore(uint64_t before) { __builtin_ia32_ldmxcsr((unsigned)before); }
uint64_t tn__float_mode(void) { return __builtin_ia32_stmxcsr(); }
#elif defined(__aarch64__)
static void set_fpcr(uint64_t v) { __asm__ volatile("msr fpcr, %0" : : "r"(v) : "memory"); }
uint64_t    tn__float_mode(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode) : : "memory");
    return mode;
}
uint64_t tn__denormals_off(void)
{
    const uint64_t before = tn__float_mode();
    set_fpcr(before | (uint64_t)1 << 24); /* FZ */
    return before;
}
void tn__denormals_restore(uint64_t before) { set_fpcr(before); }
#else
uint64_t tn__denormals_off(void) { return 0; }
void     tn__denormals_restore(uint64_t before) { (void)before; }
uint64_t tn__float_mode(void) { return 0; }
#endif
