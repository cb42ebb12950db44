/* posix.h — what the unit tests use of POSIX beyond core/system, on Windows. CMake includes it before each of their
 * files, and leaves out those that need fork, symbolic links, limits of resources or streams in memory. */
#ifndef TENON_TESTS_COMMON_WINDOWS_POSIX_H
#define TENON_TESTS_COMMON_WINDOWS_POSIX_H

#include "core/system/system.h"

#define _DIRENT_H_ /* core/system has its names */
#define lstat stat
#define pread tn__sys_pread
#define unsetenv(name) _putenv_s(name, "")
#define truncate(path, bytes) tn__test_truncate(path, bytes)
static inline int tn__test_truncate(const char *path, int64_t bytes)
{
    const int fd = tn__sys_open(path, O_WRONLY | O_BINARY, 0);
    const int failed = fd < 0 || _chsize_s(fd, bytes);
    if (fd >= 0) close(fd);
    return failed ? -1 : 0;
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
#endif

/* ---- signals: there are no masks ---- */

typedef unsigned long long sigset_t;
#define NO_SIGNALS(set) ((void)(set), 0)
#define sigemptyset NO_SIGNALS
#define sigismember(set, one) NO_SIGNALS(set)
#undef pthread_sigmask
#define pthread_sigmask(how, set, old) NO_SIGNALS(old)

#endif
