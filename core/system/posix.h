/* posix.h — POSIX as it is, for system.h. */
#ifndef TENON_CORE_SYSTEM_POSIX_H
#define TENON_CORE_SYSTEM_POSIX_H
#ifndef _WIN32

#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#elif !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define tn__sys_open open
#define tn__sys_stat stat
#define tn__sys_lstat lstat
#define tn__sys_fstat fstat
#define tn__sys_pread pread
#define tn__sys_pwrite pwrite
#define tn__sys_fsync fsync
#define tn__sys_close close
#define tn__sys_rename rename
#define tn__sys_unlink unlink
#define tn__sys_sin sin
#define tn__sys_cos cos

#ifdef __wasi__                   /* one process with one thread; what it lacks either fails or does nothing */
#define pthread_key_delete(key) 0 /* wasi-libc's own never returns */
#define getpid() 1
int   mkstemp(char *);
char *mkdtemp(char *);
int   execvp(const char *, char *const *);
int   gethostname(char *, size_t);
#endif

#endif
#endif
