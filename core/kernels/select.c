/* select.c — the choice of the instruction set's kernels: determined by the CPU once, capped by TENON_ISA.
 * TENON_EXACT=1 replaces the baseline, whose multiply-adds round twice, by kernels that emulate those of the others. */
#include "core/system/system.h"

#include "core/kernels/kernels.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef TN__HAVE_AVX2
#include <cpuid.h>
#endif

extern const tn__kernel_table tn__table_baseline;
#ifdef TN__HAVE_EXACT
extern const tn__kernel_table tn__table_exact;
#endif
#ifdef TN__HAVE_AVX2
extern const tn__kernel_table tn__table_avx2;
#endif
#ifdef TN__HAVE_AVX512
extern const tn__kernel_table tn__table_avx512;
#endif
#ifdef TN__HAVE_AVX512BF16
extern const tn__kernel_table tn__table_avx512bf16;
#endif

#ifdef TN__HAVE_AMX
extern const tn__kernel_table tn__table_amx;
extern const tn__int8_kernels tn__int8_amx;
#endif

#ifdef TN__HAVE_AVXVNNI
extern const tn__int8_kernels tn__int8_avxvnni;
#endif
#ifdef TN__HAVE_AVX512VNNI
extern const tn__int8_kernels tn__int8_avx512vnni;
#endif

#ifdef TN__HAVE_SDOT
extern const tn__int8_kernels tn__int8_sdot;
static bool                   has_sdot(void) /* asks the system once */
{
    enum { NO = 1, YES };
    static atomic_int answer;
    int               known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!known) atomic_store_explicit(&answer, known = tn__sys_sdot() ? YES : NO, memory_order_relaxed);
    return known == YES;
}
#endif

enum { BASELINE, AVX2, AVX512, AVX512BF16, AMX, ISAS, EXACT = ISAS, TABLES };
static const char *const names[TABLES] = {"baseline", "avx2", "avx512", "avx512bf16", "amx", "exact"};

#ifdef TN__HAVE_AMX
/* The 8 KB of AMX registers must be requested from the system, once for the process; that is permanent. */
static bool amx_granted(void)
{
    enum { NOT_ASKED, GRANTED, REFUSED };
    static atomic_int answer;
    int               known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == NOT_ASKED) {
        const int      before = errno; /* of the caller: restored */
        unsigned       a, b, c, d = 0;
        const unsigned has = 1u << 22 | 1u << 24; /* bf16 products, tiles */
        known =
            __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & has) == has && tn__sys_amx_registers() ? GRANTED : REFUSED;
        errno = before;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == GRANTED;
}
#endif

#ifdef TN__HAVE_AVX2
/* What the CPU has and, for registers beyond SSE's, the system saves. The compilers' built-ins do not know all of it,
 * and need a library that not every C compiler links. cpuid runs once: on a virtual machine it takes microseconds. */
enum {
    ASKED = 1,
    HAS_AVX2 = 2, /* with FMA and F16C */
    HAS_AVX512 = 4,
    HAS_AVX512BF16 = 8,
    AVX_VNNI = 16,
    AVX512_VNNI = 32,
    AMX_INT8 = 64,
    INTEL = 128
};
#ifndef tn__xcr0               /* tests/emulated/every_cpu.h has another one */
static uint64_t tn__xcr0(void) /* the registers that the system saves; needs OSXSAVE */
{
    uint32_t a, d;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (uint64_t)d << 32 | a;
}
#endif
static int ask(void)
{
    enum { YMM = 6, ZMM = 0xe6 };                                      /* of XCR0 */
    enum { NEEDED_1 = 1 << 12 | 1 << 27 | 1 << 28 | 1 << 29 };         /* FMA, OSXSAVE, AVX, F16C */
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
    unsigned       a = 0, b, c = 0, d, b7, c7, d7, a71;
    int            known = ASKED;
    if (__get_cpuid(0, &a, &b, &c, &d) && !memcmp(&b, "Genu", sizeof b)) known |= INTEL; /* "GenuineIntel" */
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & NEEDED_1) != NEEDED_1) return known;
    const uint64_t saved = tn__xcr0();
    if ((saved & YMM) != YMM || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) || !(b7 >> 5 & 1)) return known;
    if (!a || !__get_cpuid_count(7, 1, &a71, &b, &c, &d)) a71 = 0;
    known |= HAS_AVX2 | (a71 >> 4 & 1 ? AVX_VNNI : 0);
    if ((saved & ZMM) != ZMM || (b7 & avx512) != avx512) return known;
    known |= HAS_AVX512 | (a71 >> 5 & 1 ? HAS_AVX512BF16 : 0) | (c7 >> 11 & 1 ? AVX512_VNNI : 0);
    return known | (d7 >> 25 & 1 ? AMX_INT8 : 0);
}
static bool has(int what)
{
    static atomic_int answer;
    int               known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!known) atomic_store_explicit(&answer, known = ask(), memory_order_relaxed);
    return (known & what) != 0;
}
#endif

bool tn__cpu_is_intel(void)
{
#ifdef TN__HAVE_AVX2
    return has(INTEL);
#else
    return false;
#endif
}

/* NULL if this build, this CPU or the system lacks it. */
static const tn__kernel_table *table(int isa)
{
    switch (isa) {
    case BASELINE: return &tn__table_baseline;
#ifdef TN__HAVE_EXACT
    case EXACT: return &tn__table_exact;
#endif
#ifdef TN__HAVE_AVX2
    case AVX2: return has(HAS_AVX2) ? &tn__table_avx2 : NULL;
#endif
#ifdef TN__HAVE_AVX512
    case AVX512: return has(HAS_AVX512) ? &tn__table_avx512 : NULL;
#endif
#ifdef TN__HAVE_AVX512BF16
    case AVX512BF16: return has(HAS_AVX512BF16) ? &tn__table_avx512bf16 : NULL;
#endif
#ifdef TN__HAVE_AMX
    case AMX: return table(AVX512BF16) && amx_granted() ? &tn__table_amx : NULL;
#endif
    default: return NULL;
    }
}

/* A table guarantees that the system saves the registers. */
const tn__int8_kernels *tn__int8(const tn__kernel_table *t)
{
#if defined(TN__HAVE_AVX2) && defined(TN__HAVE_AVXVNNI)
    if (t == &tn__table_avx2 && has(AVX_VNNI)) return &tn__int8_avxvnni;
#endif
#if defined(TN__HAVE_AMX) && defined(TN__HAVE_AVX512VNNI)
    if (t == &tn__table_amx && has(AMX_INT8) && has(AVX512_VNNI)) return &tn__int8_amx;
#endif
#if defined(TN__HAVE_AVX2) && defined(TN__HAVE_AVX512VNNI)
    if (t != &tn__table_avx2 && t->int8 != tn__table_baseline.int8 && has(AVX512_VNNI)) return &tn__int8_avx512vnni;
#endif
#ifdef TN__HAVE_SDOT
    if (has_sdot()) return &tn__int8_sdot;
#endif
    return t->int8;
}

static int find(const char *name, int tables)
{
    for (int i = 0; i < tables; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

enum { BEST, CAPPED, LACKING, UNKNOWN, EMULATED };
static const char *const reasons[] = {
    [BEST] = "the best that this CPU supports",
    [CAPPED] = "set by TENON_ISA",
    [LACKING] = "TENON_ISA names more than this CPU supports",
    [UNKNOWN] =
        "the best that this CPU supports; TENON_ISA was ignored: expected baseline, avx2, avx512, avx512bf16 or amx",
    [EMULATED] = "set by TENON_EXACT; multiply-adds are emulated",
};

/* The process's choice, made at the first call: isa and reason; 0: not made yet. */
static atomic_int chosen;
enum { MADE = 0x100, REASON = 16 };

static int choice(void)
{
    int c = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (c) return c;
    const char *wish = getenv("TENON_ISA"), *exact = getenv("TENON_EXACT");
    int         cap = wish && *wish ? find(wish, ISAS) : ISAS, reason = cap == ISAS ? BEST : cap < 0 ? UNKNOWN : CAPPED;
    int         isa = BASELINE;
    for (int i = BASELINE; i < ISAS; i++)
        if (table(i) && (reason != CAPPED || i <= cap)) isa = i;
    if (reason == CAPPED && isa < cap) reason = LACKING;
    if (isa == BASELINE && table(EXACT) && exact && !strcmp(exact, "1")) isa = EXACT, reason = EMULATED;
    int made = MADE | reason * REASON | isa;
    return atomic_compare_exchange_strong(&chosen, &c, made) ? made : c;
}

const tn__kernel_table *tn__kernels(void) { return table(choice() % REASON); }
const char             *tn__isa_name(void) { return names[choice() % REASON]; }
const char             *tn__isa_reason(void) { return reasons[choice() % MADE / REASON]; }

const tn__kernel_table *tn__kernels_of(const char *isa)
{
    int i = find(isa, TABLES);
    return i < 0 ? NULL : table(i);
}
