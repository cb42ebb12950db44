/* process.h — the state of a process that a library must not change: the rounding mode and denormals, the locale, the
 * signal mask, the working directory, the environment. */
#ifndef TENON_TESTS_COMMON_PROCESS_H
#define TENON_TESTS_COMMON_PROCESS_H

#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int      rounding;
    unsigned denormals; /* MXCSR without its flags */
    char     locale[200], folder[PATH_MAX];
    sigset_t blocked;
    uint64_t environment;
} tn_process;

/* Records only the floating-point environment, which is fast. */
static inline void tn_process_numbers(tn_process *p)
{
    p->rounding = fegetround();
#if defined(__x86_64__)
    p->denormals = __builtin_ia32_stmxcsr() & ~0x3fu;
#else
    p->denormals = 0;
#endif
}

static inline void tn_process_now(tn_process *p)
{
    extern char **environ;
    memset(p, 0, sizeof *p);
    tn_process_numbers(p);
    snprintf(p->locale, sizeof p->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(p->folder, sizeof p->folder)) *p->folder = 0;
    sigemptyset(&p->blocked);
    pthread_sigmask(SIG_BLOCK, NULL, &p->blocked);
    for (char **e = environ; e && *e; e++)
        for (const char *c = *e; *c; c++) p->environment = (p->environment ^ (unsigned char)*c) * 0x100000001b3u;
}

/* Names a difference between two states; NULL: none. */
static inline const char *tn_process_differs(const tn_process *a, const tn_process *b)
{
    if (a->rounding != b->rounding) return "the rounding of numbers";
    if (a->denormals != b->denormals) return "MXCSR";
    if (strcmp(a->locale, b->locale) != 0) return "the locale";
    if (strcmp(a->folder, b->folder) != 0) return "the folder of the process";
    if (a->environment != b->environment) return "the environment";
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&a->blocked, i) != sigismember(&b->blocked, i)) return "the mask of signals";
    return NULL;
}

#endif
