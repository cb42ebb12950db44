/* kill_at.c — a preloaded library that kills the process before the $KILL_AT-th rename of a file, or before the
 * $KILL_CALL-th call that opens, writes or changes a file, as a power failure would. At the end of the process, the
 * number of such calls is written to the file $KILL_COUNT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static _Atomic(long) calls, names;

static void count(_Atomic(long) *n, const char *variable)
{
    const char *at = getenv(variable);
    if (++*n == (at ? atol(at) : -1)) raise(SIGKILL);
}

/* The functions of the C library. */
static void *real(const char *name)
{
    count(&calls, "KILL_CALL");
    return dlsym(RTLD_NEXT, name);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("KILL_COUNT");
    const long  n = calls;
    FILE       *f = path ? fopen(path, "w") : NULL;
    if (f) fprintf(f, "%ld\n", n), fclose(f);
}

int     rename(const char *from, const char *to);
int     open(const char *path, int flags, ...);
ssize_t write(int fd, const void *from, size_t n);
ssize_t pwrite(int fd, const void *from, size_t n, off_t at);
int     fallocate(int fd, int mode, off_t at, off_t n);
int     ftruncate(int fd, off_t n);
int     fsync(int fd);
int     unlink(const char *path);
int     mkdir(const char *path, mode_t mode);

int rename(const char *from, const char *to)
{
    int (*f)(const char *, const char *);
    *(void **)&f = real("rename");
    count(&names, "KILL_AT");
    return f(from, to);
}
int open(const char *path, int flags, ...)
{
    int (*f)(const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    *(void **)&f = real("open");
    return f(path, flags, mode);
}
ssize_t write(int fd, const void *from, size_t n)
{
    ssize_t (*f)(int, const void *, size_t);
    *(void **)&f = real("write");
    return f(fd, from, n);
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    ssize_t (*f)(int, const void *, size_t, off_t);
    *(void **)&f = real("pwrite");
    return f(fd, from, n, at);
}
int fallocate(int fd, int mode, off_t at, off_t n)
{
    int (*f)(int, int, off_t, off_t);
    *(void **)&f = real("fallocate");
    return f(fd, mode, at, n);
}
int ftruncate(int fd, off_t n)
{
    int (*f)(int, off_t);
    *(void **)&f = real("ftruncate");
    return f(fd, n);
}
int fsync(int fd)
{
    int (*f)(int);
    *(void **)&f = real("fsync");
    return f(fd);
}
int unlink(const char *path)
{
    int (*f)(const char *);
    *(void **)&f = real("unlink");
    return f(path);
}
int mkdir(const char *path, mode_t mode)
{
    int (*f)(const char *, mode_t);
    *(void **)&f = real("mkdir");
    return f(path, mode);
}
