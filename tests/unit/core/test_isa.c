/* test_isa.c — the choice of an instruction set: the best available, or the one that TENON_ISA permits; TENON_EXACT.
 * And the multiply-adds of those that round once. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* readlink */
#endif
#include "tests/common/check_main.h"
#include "core/base/bf16.h"

#include "core/kernels/kernels.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const isas[] = {"baseline", "avx2", "avx512", "avx512bf16", "amx", "exact"};
enum { ISAS = 5, TABLES = 6 };

TEST(tables)
{
    ck_assert_ptr_nonnull(tn__kernels_of("baseline"));
    ck_assert_ptr_null(tn__kernels_of("avx"));
    ck_assert_ptr_null(tn__kernels_of(""));
    for (int i = 0; i < TABLES; i++) {
        const tn__kernel_table *t = tn__kernels_of(isas[i]);
        if (t) ck_assert_str_eq(t->isa, isas[i]);
    }
    ck_assert_ptr_eq(tn__kernels(), tn__kernels_of(tn__isa_name()));
    ck_assert_ptr_nonnull(strstr(tn_build_info(), tn__isa_name()));
}

/* The result of both settings on this CPU. A process chooses once, so the next test starts other processes. */
TEST(as_told)
{
    const char *setting = getenv("TENON_ISA"), *exact = getenv("TENON_EXACT"), *name = isas[0], *reason = "the best";
    bool        known = false;
    for (int i = 0; i < ISAS; i++) known = known || (setting && !strcmp(setting, isas[i]));
    for (int i = 0; i < ISAS; i++) {
        if (tn__kernels_of(isas[i])) name = isas[i];
        if (known && !strcmp(setting, isas[i])) break;
    }
    if (known) reason = strcmp(setting, name) ? "more than this CPU supports" : "set by TENON_ISA";
    else if (setting && *setting) reason = "TENON_ISA was ignored";
    if (exact && !strcmp(exact, "1") && name == isas[0] && tn__kernels_of("exact"))
        name = "exact", reason = "set by TENON_EXACT";
    ck_assert_str_eq(tn__isa_name(), name);
    ck_assert_int_eq(tn_has_bf16(), !strcmp(name, "avx512bf16") || !strcmp(name, "amx"));
    ck_assert_msg(strstr(tn__isa_reason(), reason) != NULL, "the reason is \"%s\"", tn__isa_reason());
}

/* f32 to bf16 by each table: every way to round (each upper half of a number, with lower halves on both sides of the
 * middle and on it), and every length. Elements after the end are unchanged. */
TEST(narrows)
{
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    static float          x[6 * 256];
    static uint16_t       y[6 * 256 + 1];
    for (int i = 0; i < ISAS; i++) {
        const tn__kernel_table *t = tn__kernels_of(isas[i]);
        for (uint32_t high = 0; t && high < 0x10000; high += 256) {
            const int64_t n = 6 * 256 - high / 256; /* 1281 … 1536 */
            for (uint32_t k = 0; k < 6 * 256; k++) {
                const uint32_t bits = (high + k / 6) << 16 | low[k % 6];
                memcpy(x + k, &bits, sizeof bits);
            }
            y[n] = 0x1234;
            t->to_bf16(n, y, x);
            for (int64_t k = 0; k < n; k++) {
                const uint16_t want = tn__f32_to_bf16(x[k]);
                ck_assert_msg(y[k] == want, "%s: %a becomes %04x, not %04x", isas[i], (double)x[k], y[k], want);
            }
            ck_assert_int_eq(y[n], 0x1234);
        }
    }
}

/* ---- multiply-adds ----------------------------------------------------------------------------------------------- */

static uint64_t drawn(void)
{
    static uint64_t state;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 24;
}
/* Any float; often one with few bits, so that results are often in the middle of two floats, or almost. */
static float any_float(void)
{
    const uint64_t r = drawn();
    uint32_t       bits = (uint32_t)r;
    if (r >> 32 & 3) bits &= 0xff800000u | 1u << (r >> 34) % 23 | 1u << drawn() % 23 | 1;
    if (r >> 37 & 3) bits = (bits & 0x807fffffu) | (uint32_t)(100 + drawn() % 56) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a · b + c of the products' kernels: rounded once, for any exponents and many sums just beside or on the middle of two
 * floats; infinities, NaN, zeros with their signs and denormals included. */
TEST(rounds_once)
{
    enum { N = 16, TIMES = 40000 };
    float a, b[N], c[N], y[N];
    int   halves = 0;
    for (int i = 0; i < TABLES; i++) {
        const tn__kernel_table *t = tn__kernels_of(isas[i]);
#ifndef __aarch64__
        if (i == 0) continue; /* rounds twice */
#endif
        for (int k = 0; t && k < TIMES; k++) {
            a = any_float();
            for (int j = 0; j < N; j++) {
                b[j] = any_float(), c[j] = any_float();
                if (drawn() % 4 == 0) c[j] = -(a * b[j]); /* only the product's lost part remains */
                if (drawn() % 4 == 0) c[j] = ldexpf(a * b[j], (int)(drawn() % 60) - 30);
            }
            t->gemm_f32->tile(&(tn__gemm_step){.mr = 1, .nv = 1, .k = 1, .a = &a, .b = b, .from = c, .to = y});
            for (int j = 0; j < t->gemm_f32->lanes; j++) {
                const float want = fmaf(a, b[j], c[j]);
                halves += want - want == 0 && want != a * b[j] + c[j];
                ck_assert_msg(want != want ? y[j] != y[j] : !memcmp(&want, y + j, sizeof want),
                              "%s: %a · %a + %a is %a, expected %a", isas[i], (double)a, (double)b[j], (double)c[j],
                              (double)y[j], (double)want);
            }
        }
        ck_assert_msg(!t || halves > TIMES / 10, "rounding twice gives the same: %d differ", halves);
    }
}

#ifdef __x86_64__ /* elsewhere there is no choice */
/* One test in a separate process, with or without a setting. */
static void child(char *test, const char *name, const char *value, char *other)
{
    static char path[4096], no_fork[] = "CK_FORK=no";
    char       *environment[] = {no_fork, other, NULL, NULL}, setting[64];
    char *const argv[] = {path, test, NULL};
    pid_t       pid;
    int         status = -1;
    ck_assert_int_gt(readlink("/proc/self/exe", path, sizeof path - 1), 0);
    if (value) snprintf(setting, sizeof setting, "%s=%s", name, value), environment[2] = setting;
    ck_assert_int_eq(posix_spawn(&pid, path, NULL, NULL, argv, environment), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "with %s %s fails", value ? setting : "no setting",
                  test);
}

TEST(settings)
{
    static const char *const all[] = {NULL,         "",    "baseline", "avx2",  "avx512",
                                      "avx512bf16", "amx", "AVX2",     "avx51", "avx5122"};
    static char              exact[][16] = {"TENON_EXACT=1", "TENON_EXACT=0", "TENON_EXACT="};
    for (size_t i = 0; i < 3 * (sizeof all / sizeof *all); i++) child("as_told", "TENON_ISA", all[i / 3], exact[i % 3]);
}

/* A program whose signal stack is too small for AMX's registers does not get them: it runs without AMX, and errno is
 * unchanged. */
TEST(small_stack)
{
    static char stack[8192], no_exact[] = "TENON_EXACT=";
    if (getenv("SMALL_STACK")) {
        ck_assert_int_eq(sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL), 0);
        errno = EDOM;
        ck_assert_ptr_null(tn__kernels_of("amx"));
        ck_assert_str_ne(tn__isa_name(), "amx");
        ck_assert_int_eq(errno, EDOM);
    } else child("small_stack", "SMALL_STACK", "1", no_exact);
}
#endif
