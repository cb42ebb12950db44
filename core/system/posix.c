/* posix.c — see system.h: Linux, macOS, FreeBSD, and WASI, which has no processes. */
#include "core/system/system.h"
#ifndef _WIN32

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#ifndef __wasi__
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#endif
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <mach-o/dyld.h>
#include <sys/sysctl.h>
#include <xlocale.h>
#endif
#if defined(__APPLE__) || defined(__linux__)
#include <sys/random.h>
#endif

/* ---- files ------------------------------------------------------------------------------------------------------- */

#ifdef __wasi__
static bool beyond_limit(int64_t bytes) { return (void)bytes, false; }
#else
/* Writing past RLIMIT_FSIZE would send SIGXFSZ, which ends the process; so the limit is checked first. */
static bool beyond_limit(int64_t bytes)
{
    struct rlimit most;
    return !getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur != RLIM_INFINITY && (rlim_t)bytes > most.rlim_cur;
}
#endif
int64_t tn__sys_write(int fd, const void *from, size_t n)
{
    return beyond_limit(lseek(fd, 0, SEEK_CUR) + (int64_t)n) ? (errno = EFBIG, -1) : write(fd, from, n);
}

int tn__sys_reserve(int fd, int64_t bytes)
{
    if (beyond_limit(bytes)) return errno = EFBIG, -1;
#ifdef __linux__
    return bytes > 0 ? fallocate(fd, 0, 0, (off_t)bytes) : 0;
#else
    return (void)fd, 0;
#endif
}

void tn__sys_read_ahead(int fd, int64_t at, int64_t bytes)
{
#ifdef POSIX_FADV_WILLNEED
    (void)posix_fadvise(fd, (off_t)at, (off_t)bytes, POSIX_FADV_WILLNEED);
#else
    (void)fd, (void)at, (void)bytes;
#endif
}

const char *tn__sys_last_slash(const char *path) { return strrchr(path, '/'); }

const char *tn__sys_temporary(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

#ifdef __wasi__
bool   tn__sys_lock(int fd) { return (void)fd, true; }
double tn__sys_space(const char *folder) { return (void)folder, -1; }
#else
bool   tn__sys_lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }
double tn__sys_space(const char *folder)
{
    struct statvfs s;
    return statvfs(folder, &s) == 0 ? (double)s.f_bavail * (double)s.f_frsize : -1;
}
#endif

/* ---- memory ------------------------------------------------------------------------------------------------------ */

void *tn__sys_alloc(size_t align, size_t bytes)
{
    void *p;
    if (align <= 64) return aligned_alloc(align, bytes);
    return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}
void tn__sys_free(void *p) { free(p); }

void tn__sys_huge_pages(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(p, bytes, MADV_HUGEPAGE);
#else
    (void)p, (void)bytes;
#endif
}

double tn__sys_memory(void)
{
#ifdef _SC_PHYS_PAGES
    double    least = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    char      text[32] = "", *end;
    FILE     *f = fopen("/sys/fs/cgroup/memory.max", "r");
    const int n = f ? (int)fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    const double most = n > 1 ? (double)strtoull(text, &end, 10) : 0; /* or "max" */
    return most > 0 && most < least ? most : least;
#else
    return 4e9;
#endif
}

/* ---- threads and CPUs -------------------------------------------------------------------------------------------- */

void tn__sys_join(pthread_t thread, const atomic_int *left, int n) { (void)left, (void)n, pthread_join(thread, NULL); }
bool tn__sys_thread(pthread_t *thread, void *(*run)(void *), void *user)
{
#ifdef __wasi__
    return (void)thread, (void)run, (void)user, false;
#else
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before)) return false;
    const bool made = pthread_create(thread, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made;
#endif
}

#ifdef __wasi__
bool tn__sys_after_fork(void (*in_child)(void)) { return (void)in_child, true; }
#else
bool    tn__sys_after_fork(void (*in_child)(void)) { return pthread_atfork(NULL, NULL, in_child) == 0; }
#endif

void tn__sys_nap(int64_t ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)}, NULL);
}

#ifdef __APPLE__
static int64_t ask(const char *name)
{
    int64_t value = 0;
    size_t  size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? value : 0;
}
/* hw.perflevel0 is the fast cores; Intel's have no levels, and macOS no third cache on ARM. */
int64_t tn__sys_cache(int level)
{
    static const char *const names[][2] = {{"hw.perflevel0.l1dcachesize", "hw.l1dcachesize"},
                                           {"hw.perflevel0.l2cachesize", "hw.l2cachesize"},
                                           {"hw.perflevel0.l3cachesize", "hw.l3cachesize"}};
    const int64_t            fast = ask(names[level - 1][0]);
    return fast ? fast : ask(names[level - 1][1]);
}
int tn__sys_cores(void)
{
    const int64_t fast = ask("hw.perflevel0.physicalcpu");
    return (int)(fast ? fast : ask("hw.physicalcpu"));
}
#else
int64_t tn__sys_cache(int level)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE /* glibc */
    static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    return sysconf(names[level - 1]);
#else
    return (void)level, 0;
#endif
}
int tn__sys_cores(void)
{
#ifdef _SC_NPROCESSORS_ONLN
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < 1 << 20 ? (int)n : 0;
#else
    return 1;
#endif
}
#endif

bool tn__sys_sdot(void)
{
#if defined(__linux__) && defined(__aarch64__)
    return getauxval(AT_HWCAP) >> 20 & 1; /* HWCAP_ASIMDDP */
#elif defined(__APPLE__)
    return ask("hw.optional.arm.FEAT_DotProd") == 1;
#else
    return false;
#endif
}
bool tn__sys_amx_registers(void)
{
#ifdef SYS_arch_prctl
    enum { ASK_FOR_REGISTERS = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    return syscall(SYS_arch_prctl, ASK_FOR_REGISTERS, TILES) == 0;
#else
    return false;
#endif
}

/* ---- time and locale --------------------------------------------------------------------------------------------- */

int64_t tn__sys_nanoseconds(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
struct timespec tn__sys_clock(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_REALTIME, &t);
    return t;
}

/* The C locale always exists: it takes no memory and is not freed. */
void *tn__sys_c_locale(void)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c ? (void *)uselocale(c) : NULL;
}
void tn__sys_locale(void *before)
{
    if (before) uselocale((locale_t)before);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Otherwise the next file would get the descriptor of a closed stream, and printed text would be written into it. */
bool tn__sys_start(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd) return false;
#ifdef SIGPIPE
    signal(SIGPIPE, SIG_DFL); /* `… | head -1` ends a program quietly, also where its parent ignores the signal */
#endif
    return true;
}

#ifdef __wasi__
void tn__sys_on_interrupt(void (*came)(int)) { (void)came; }
void tn__sys_default_interrupt(void) {}
int  tn__sys_columns(FILE *to) { return (void)to, 0; }
int  tn__sys_input_waits(void) { return 0; }
void tn__sys_on_enough_stack(void *(*run)(void *), void *user) { run(user); }
#else
void tn__sys_on_interrupt(void (*came)(int))
{
    struct sigaction a = {.sa_flags = SA_RESTART};
    a.sa_handler = came;
    sigemptyset(&a.sa_mask);
    sigaddset(&a.sa_mask, SIGINT), sigaddset(&a.sa_mask, SIGTERM);
    sigaction(SIGINT, &a, NULL), sigaction(SIGTERM, &a, NULL);
}
void tn__sys_default_interrupt(void) { signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL); }

int tn__sys_columns(FILE *to)
{
    struct winsize w = {0};
    return ioctl(fileno(to), TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}
int tn__sys_input_waits(void)
{
    int n = 0;
    return isatty(STDIN_FILENO) || ioctl(STDIN_FILENO, FIONREAD, &n) != 0 ? 0 : n;
}

void tn__sys_on_enough_stack(void *(*run)(void *), void *user)
{
    enum { LEAST = 256 << 10, BYTES = 2 << 20 };
    struct rlimit  r;
    pthread_t      thread;
    pthread_attr_t a;
    if (getrlimit(RLIMIT_STACK, &r) != 0 || r.rlim_cur >= LEAST || pthread_attr_init(&a) != 0) {
        run(user);
        return;
    }
    pthread_attr_setstacksize(&a, BYTES);
#ifdef __linux__
    pthread_setattr_default_np(&a);
#endif
    if (pthread_create(&thread, &a, run, user) != 0) run(user);
    else pthread_join(thread, NULL);
    pthread_attr_destroy(&a);
}
#endif

bool tn__sys_utf8(void)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *v = getenv(names[i]);
        if (v && *v) return strstr(v, "UTF-8") || strstr(v, "utf8");
    }
    return false;
}

bool tn__sys_random(void *to, size_t bytes)
{
#ifdef __linux__
    return getrandom(to, bytes, 0) == (ssize_t)bytes;
#else
    return getentropy(to, bytes) == 0;
#endif
}

bool tn__sys_self(char *to, size_t bytes)
{
#ifdef __APPLE__
    uint32_t room = (uint32_t)bytes;
    return _NSGetExecutablePath(to, &room) == 0;
#else
    const ssize_t n = readlink("/proc/self/exe", to, bytes - 1);
    if (n > 0) to[n] = 0;
    return n > 0;
#endif
}

#endif
