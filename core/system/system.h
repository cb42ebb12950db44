/* system.h — the operating system. It is the only header that includes the system's own, and this folder's files are
 * the only ones that ask which system they are compiled for; tests/project/system.sh checks that.
 *
 * The interface is the part of POSIX that Tenon uses, in this order: names that a C file uses as they are (pthreads,
 * struct stat, folders, O_ and S_ constants), from posix.h or from windows.h, which implements them; calls that start
 * with tn__sys_, where systems differ or a member of tn_io has POSIX's name. Paths are UTF-8. A file that uses this
 * header includes it first, in place of a #define of _GNU_SOURCE. */
#ifndef TENON_CORE_SYSTEM_SYSTEM_H
#define TENON_CORE_SYSTEM_SYSTEM_H

#include "core/system/posix.h"
#include "core/system/windows.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- files: -1 and errno, as in POSIX ---------------------------------------------------------------------------- */

/* tn__sys_open, _stat, _lstat, _pread, _rename, _unlink: POSIX's. rename replaces an existing file that others read. */
int64_t     tn__sys_write(int fd, const void *from, size_t n); /* EFBIG instead of SIGXFSZ */
int         tn__sys_reserve(int fd, int64_t bytes);            /* space on the disk; a precaution */
void        tn__sys_read_ahead(int fd, int64_t at, int64_t bytes);
bool        tn__sys_lock(int fd);                 /* exclusive until it is closed; EWOULDBLOCK: another has it */
const char *tn__sys_last_slash(const char *path); /* the last separator of folders; NULL: none */
double      tn__sys_space(const char *folder);    /* free bytes on its disk; -1: unknown */
const char *tn__sys_temporary(void);              /* the folder for temporary files */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

void  *tn__sys_alloc(size_t align, size_t bytes); /* NULL: no memory; bytes is a multiple of 64 */
void   tn__sys_free(void *p);
void   tn__sys_huge_pages(void *p, size_t bytes); /* advice */
double tn__sys_memory(void);                      /* bytes of the machine, or of the container if that has less */

/* ---- threads and CPUs -------------------------------------------------------------------------------------------- */

/* A thread that receives no signals: they are left to the threads of the program. False: none was made. */
bool tn__sys_thread(pthread_t *thread, void *(*run)(void *), void *user);
void tn__sys_join(pthread_t thread, const atomic_int *left, int n); /* to its end; on Windows until *left >= n */
bool tn__sys_after_fork(void (*in_child)(void));                    /* false: it cannot be called */
void tn__sys_nap(int64_t nanoseconds);
/* Waits on a condition, for at most ns. False: it was not signalled. */
bool tn__sys_wait(pthread_cond_t *c, pthread_mutex_t *lock, int64_t ns);

/* The limits on the number of threads, 0 if unknown; use is their minimum and at least 1. */
typedef struct {
    int use, allowed, cores, quota, asked; /* affinity mask, physical cores, cgroup rounded up, OMP_NUM_THREADS */
} tn__cpu_limits;
tn__cpu_limits tn__cpus(void);
int            tn__cgroup_cpus(const char *root); /* root: "", or a substitute folder in a test */
int            tn__cores(const char *root, const unsigned char *allowed, int cpus); /* allowed: one bit a CPU */
int            tn__env_threads(const char *text);

int tn__cpu(void); /* index of the CPU that the caller runs on; -1: unknown */
/* Moves the calling thread to a CPU that is not among the n taken ones. Its affinity is the same afterwards. False: its
 * affinity allows no other CPU. */
bool tn__leave_cpus(const int *taken, int n);
/* Moves another thread of this process to the caller's CPU; its affinity is the same afterwards. */
void    tn__fetch_thread(pthread_t thread);
int64_t tn__thread_time(pthread_t thread); /* nanoseconds for which it has run; -1: unknown */

int64_t tn__sys_cache(int level);    /* bytes of the data cache 1, 2 or 3; 0: unknown */
bool    tn__sys_amx_registers(void); /* requests the registers of AMX, once and for all; false: refused */
bool    tn__sys_sdot(void);          /* this ARM CPU has the dot products of bytes */
int     tn__sys_cores(void);         /* without those that save power; 0: unknown, or see tn__cpus for Linux */

/* ---- time and locale --------------------------------------------------------------------------------------------- */

int64_t         tn__sys_nanoseconds(void); /* since an unknown moment; never goes back */
struct timespec tn__sys_clock(void);       /* UTC since 1970 */
void           *tn__sys_c_locale(void);    /* of this thread; returns the one before; NULL: not changed */
void            tn__sys_locale(void *before);

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* The start of main: opens standard streams that are closed, makes the console UTF-8 and the arguments, too. *argv may
 * be replaced by a list that is never freed. False: a stream cannot be opened. */
bool tn__sys_start(int *argc, char ***argv);
void tn__sys_on_interrupt(void (*came)(int signal)); /* Ctrl-C and SIGTERM */
void tn__sys_default_interrupt(void);                /* the next one ends the program */
int  tn__sys_columns(FILE *to);                      /* of a terminal; 0: unknown */
int  tn__sys_input_waits(void);                      /* bytes of standard input that can be read at once */
bool tn__sys_utf8(void);                             /* the terminal shows UTF-8 */
bool tn__sys_random(void *to, size_t bytes);
bool tn__sys_self(char *to, size_t bytes); /* the path of this program */
/* Calls run(user), on a thread with a larger stack if the limit is below 256 KiB; worker threads then have one, too. */
void tn__sys_on_enough_stack(void *(*run)(void *), void *user);

#endif
