/* test_isa.c — the choice of an instruction set: the best there is, or what TENON_ISA allows. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* environ */
#endif
#include "tests/check_main.h"

#include "core/kernels/kernels.h"
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const isas[] = {"baseline", "avx2", "avx512"};

START_TEST(tables)
{
    ck_assert_ptr_nonnull(tn__kernels_of("baseline"));
    ck_assert_ptr_null(tn__kernels_of("avx"));
    ck_assert_ptr_null(tn__kernels_of(""));
    for (int i = 0; i < 3; i++) {
        const tn_kernel_table *t = tn__kernels_of(isas[i]);
        if (t) ck_assert_str_eq(t->isa, isas[i]);
    }
    ck_assert_ptr_eq(tn__kernels(), tn__kernels_of(tn__isa_name()));
    ck_assert_ptr_nonnull(strstr(tn_build_info(), tn__isa_name()));
}
END_TEST

/* Run by itself, as a child of the next test: the choice is made once in a process. */
START_TEST(as_told)
{
    const char *name = getenv("TENON_TEST_ISA"), *reason = getenv("TENON_TEST_REASON");
    if (!name || !reason) return;
    ck_assert_str_eq(tn__isa_name(), name);
    ck_assert_msg(strstr(tn__isa_reason(), reason) != NULL, "the reason is \"%s\"", tn__isa_reason());
}
END_TEST

#ifdef __x86_64__
static void child(const char *wish, const char *name, const char *reason)
{
    static char path[4096];
    extern char **environ;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    ck_assert_int_gt(n, 0);
    path[n] = 0;
    char *const  argv[] = {path, "as_told", NULL};
    const char  *old = getenv("TENON_ISA");
    char        *kept = old ? strdup(old) : NULL;
    pid_t        pid;
    int          status = -1;
    if (wish) setenv("TENON_ISA", wish, 1);
    else unsetenv("TENON_ISA");
    setenv("TENON_TEST_ISA", name, 1), setenv("TENON_TEST_REASON", reason, 1);
    const int spawned = posix_spawn(&pid, path, NULL, NULL, argv, environ);
    if (kept) setenv("TENON_ISA", kept, 1);
    else unsetenv("TENON_ISA");
    unsetenv("TENON_TEST_ISA"), unsetenv("TENON_TEST_REASON");
    free(kept);
    ck_assert_int_eq(spawned, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "TENON_ISA=%s did not give %s", wish ? wish : "", name);
}

START_TEST(wishes)
{
    const char *best = "baseline";
    for (int i = 0; i < 3; i++)
        if (tn__kernels_of(isas[i])) best = isas[i];
    for (int i = 0; i < 3; i++) {
        if (tn__kernels_of(isas[i])) child(isas[i], isas[i], "set by TENON_ISA");
        else child(isas[i], best, "more than this CPU has");
    }
    child(NULL, best, "the best");
    child("", best, "the best");
    child("AVX2", best, "ignored");
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("isa");
    TCase *c = tn_tcase(s, "choice");
    tcase_add_test(c, tables);
    tcase_add_test(c, as_told);
#ifdef __x86_64__
    tcase_add_test(c, wishes);
#endif
    return tn_check_main(s);
}
