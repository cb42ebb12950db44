/* posix.h — what the unit tests use of POSIX beyond core/system, on Windows. CMake includes it before each of their
 * files; it does not build those that `excluded` lists. */
#ifndef TENON_TESTS_COMMON_WINDOWS_POSIX_H
#define TENON_TESTS_COMMON_WINDOWS_POSIX_H

#include "core/system/system.h"

#define _DIRENT_H_ /* core/system has its names */
#define lstat stat
#define pread tn__sys_pread
#define rename tn__win_rename
#define unsetenv(name) _putenv_s(name, "")
#define truncate(path, bytes) tn__test_truncate(path, bytes)
static inline int tn__test_truncate(const char *path, int64_t bytes)
{
    const int fd = tn__sys_open(path, O_WRONLY | O_BINARY, 0);
    const int failed = fd < 0 || _chsize_s(fd, bytes);
    if (fd >= 0) close(fd);
    return failed ? -1 : 0;
}

static inline void *memmem(const void *in, size_t bytes, const void *what, size_t n)
{
    for (const char *at = in; bytes >= n; at++, bytes--)
        if (!memcmp(at, what, n)) return (void *)(uintptr_t)at;
    return NULL;
}

enum { _SC_PAGESIZE };
#define sysconf(what) (4096L + (what))

/* ---- multiply-adds with one rounding, which those of MinGW's library do not have ---- */

#ifdef __x86_64__
#include <math.h>
__attribute__((target("fma"))) static inline double tn__test_fma(double x, double y, double z)
{
    return __builtin_fma(x, y, z);
}
__attribute__((target("fma"))) static inline float tn__test_fmaf(float x, float y, float z)
{
    return __builtin_fmaf(x, y, z);
}
#define fma tn__test_fma
#define fmaf tn__test_fmaf

/* ---- those of MinGW's library are x87 instructions, which know 66 bits of π: for large x no digit is right ---- */

#include <quadmath.h>
static inline long double tn__test_sinl(long double x) { return (long double)sinq(x); }
static inline long double tn__test_cosl(long double x) { return (long double)cosq(x); }
static inline long double tn__test_tanl(long double x) { return (long double)tanq(x); }
#define sinl tn__test_sinl
#define cosl tn__test_cosl
#define tanl tn__test_tanl
#endif

/* ---- streams in memory: a temporary file, which fclose copies to where its text belongs ---- */

static struct {
    FILE  *f;
    char  *to, **all;
    size_t room, *size;
} tn__test_stream; /* one at a time in a file */
static inline FILE *tn__test_memory(char *to, size_t room, char **all, size_t *size)
{
    char path[800];
    snprintf(path, sizeof path, "%s/stream-XXXXXX", tn__sys_temporary());
    const int fd = mkstemp(path);
    FILE     *f = fd < 0 ? NULL : _fdopen(fd, "w+b");
    tn__sys_unlink(path); /* as soon as it is closed */
    tn__test_stream.f = f, tn__test_stream.room = room, tn__test_stream.size = size;
    tn__test_stream.to = to, tn__test_stream.all = all;
    return f;
}
static inline int tn__test_fclose(FILE *f)
{
    if (f && f == tn__test_stream.f) {
        char        *to = tn__test_stream.to;
        const size_t n = (size_t)ftell(f), room = to ? tn__test_stream.room : n + 1;
        tn__test_stream.f = NULL;
        if (!to) to = *tn__test_stream.all = malloc(room), *tn__test_stream.size = n;
        rewind(f);
        const size_t got = to ? fread(to, 1, n < room ? n : room, f) : 0;
        if (to && got < room) to[got] = 0;
    }
    return (fclose)(f);
}
#define fclose(f) tn__test_fclose(f)
#define fmemopen(to, room, mode) tn__test_memory(to, room, NULL, NULL)
#define open_memstream(all, size) tn__test_memory(NULL, 0, all, size)

/* ---- time: Check has a clock_gettime of its own there, which does not advance ---- */

static inline int tn__test_clock(struct timespec *t)
{
    const int64_t n = tn__sys_nanoseconds();
    *t = (struct timespec){(time_t)(n / 1000000000), (long)(n % 1000000000)};
    return 0;
}
#define clock_gettime(which, t) ((void)(which), tn__test_clock(t))

/* ---- signals: there are no masks ---- */

typedef unsigned long long sigset_t;
static inline int          tn__test_no_signals(const sigset_t *set) { return (void)set, 0; }
#define sigemptyset tn__test_no_signals
#define sigismember(set, one) tn__test_no_signals(set)
#undef pthread_sigmask
#define pthread_sigmask(how, set, old) tn__test_no_signals(old)

#endif
