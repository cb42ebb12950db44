/* cpus.c — number of threads that this process can use efficiently: the minimum of the CPUs it may run on, the physical
 * cores among them, the cgroup's quota and OMP_NUM_THREADS; and the CPU of a thread.
 *
 * A source that cannot be read or parsed sets no limit. Paths start with `root`, which is "" outside the tests. Nothing
 * is allocated: the files are a few lines long, and anything that exceeds a buffer is ignored. */
#include "core/system/system.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sched.h>
#endif

enum { MAX_ANSWER = 1 << 20 };

bool tn__sys_wait(pthread_cond_t *c, pthread_mutex_t *lock, int64_t ns)
{
    struct timespec until = tn__sys_clock();
    until.tv_nsec += (long)ns;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    return pthread_cond_timedwait(c, lock, &until) != ETIMEDOUT;
}

/* Reads the decimal number at *s and moves *s past it; -1 if there is no number. Caps the result at 10^15. */
static int64_t number(const char **s)
{
    while (**s == ' ' || **s == '\t') ++*s;
    if (**s < '0' || **s > '9') return -1;
    int64_t v = 0;
    for (; **s >= '0' && **s <= '9'; ++*s)
        if (v < 1000000000000000) v = 10 * v + (**s - '0');
    return v;
}

static int least(int a, int b) /* 0 means no limit */
{
    if (!a || !b) return a + b;
    return a < b ? a : b;
}

/* "4", or "4,2" for nested regions, of which the first counts. 0 if the text has another form. */
int tn__env_threads(const char *text)
{
    if (!text) return 0;
    const char *s = text;
    int64_t     n = number(&s);
    while (*s == ' ' || *s == '\t') s++;
    if (n <= 0 || (*s && *s != ',')) return 0;
    return n < MAX_ANSWER ? (int)n : MAX_ANSWER;
}

#ifdef __linux__

enum { PATH_SIZE = 4096, MAX_CPUS = 8192 };

/* The start of the file as a string; false if there is nothing to read. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t at = 0;
    while (at < size - 1) {
        ssize_t n = read(fd, text + at, size - 1 - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        at += (size_t)n;
    }
    close(fd);
    text[at] = 0;
    return at > 0;
}

/* The number of CPUs that a quota of microseconds in every period amounts to, rounded up. 0: no limit. */
static int whole_cpus(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0) return 0;
    int64_t n = (quota - 1) / period + 1;
    return n < MAX_ANSWER ? (int)n : MAX_ANSWER;
}

/* ---- the cgroup's quota --------------------------------------------------------------------------------------- */

static int quota_v2(const char *folder)
{
    char path[PATH_SIZE], text[128];
    snprintf(path, sizeof path, "%s/cpu.max", folder); /* "max 100000" or "150000 100000" */
    if (!read_text(path, text, sizeof text)) return 0;
    const char *s = text;
    int64_t     quota = number(&s);
    return whole_cpus(quota, number(&s));
}

static int quota_v1(const char *folder)
{
    char path[PATH_SIZE], quota[64], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder); /* -1: no quota */
    if (!read_text(path, quota, sizeof quota)) return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_text(path, period, sizeof period)) return 0;
    const char *q = quota, *p = period;
    return whole_cpus(number(&q), number(&p));
}

/* The minimum quota of the group and of all its ancestors. In a container the path is often the host's and does not
 * exist: then only the root counts, which is the container's own group. */
static int quota_upwards(const char *root, const char *mount, const char *group, int (*quota)(const char *folder))
{
    char   folder[PATH_SIZE - 32];
    size_t base = strlen(root) + strlen(mount);
    if (strstr(group, "/..")) group = "";
    if (base + strlen(group) >= sizeof folder) return 0;
    snprintf(folder, sizeof folder, "%s%s%s", root, mount, group);
    int n = 0;
    for (;;) {
        n = least(n, quota(folder));
        char *slash = strrchr(folder + base, '/');
        if (!slash) return n;
        *slash = 0;
    }
}

/* True if "cpu" is an item of a list such as "cpu,cpuacct". */
static bool names_cpu(const char *list)
{
    for (const char *s = list; s; s = strchr(s, ',')) {
        s += *s == ',';
        if (!strncmp(s, "cpu", 3) && (s[3] == ',' || s[3] == 0)) return true;
    }
    return false;
}

int tn__cgroup_cpus(const char *root)
{
    char path[PATH_SIZE], text[8192];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_text(path, text, sizeof text)) return 0;
    int n = 0;
    for (char *line = text, *next; line; line = next) { /* "4:cpu,cpuacct:/group", or "0::/group" in version 2 */
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group) continue;
        *list++ = 0, *group++ = 0;
        if (!*list) {
            n = least(n, quota_upwards(root, "/sys/fs/cgroup", group, quota_v2));
            n = least(n, quota_upwards(root, "/sys/fs/cgroup/unified", group, quota_v2));
        } else if (names_cpu(list)) {
            n = least(n, quota_upwards(root, "/sys/fs/cgroup/cpu", group, quota_v1));
            n = least(n, quota_upwards(root, "/sys/fs/cgroup/cpu,cpuacct", group, quota_v1));
        }
    }
    return n;
}

/* ---- cores ---------------------------------------------------------------------------------------------------- */

/* The kernel describes a core by the list of its hardware threads, so a core is counted at its first thread. A CPU
 * without such a list counts as a core. */
int tn__cores(const char *root, const unsigned char *allowed, int cpus)
{
    static const char *const file[] = {"core_cpus_list", "thread_siblings_list"}; /* since 5.3, and before */
    unsigned char            seen[MAX_CPUS / 8] = {0};
    char                     path[PATH_SIZE], text[256];
    int                      n = 0;
    for (int cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++) {
        if (!(allowed[cpu / 8] >> cpu % 8 & 1)) continue;
        int64_t first = -1;
        for (int i = 0; i < 2 && first < 0; i++) {
            snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu, file[i]);
            const char *s = text;
            if (read_text(path, text, sizeof text)) first = number(&s);
        }
        if (first < 0 || first >= MAX_CPUS) first = cpu;
        n += !(seen[first / 8] >> first % 8 & 1);
        seen[first / 8] |= (unsigned char)(1 << first % 8);
    }
    return n;
}

/* The affinity mask, one bit a CPU. Returns the number of bits set, 0 if unknown. */
static int allowed_cpus(unsigned char *bits)
{
    cpu_set_t set[MAX_CPUS / CPU_SETSIZE];
    memset(set, 0, sizeof set);
    if (sched_getaffinity(0, sizeof set, set)) return 0;
    int n = 0;
    for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, sizeof set, set)) continue;
        bits[cpu / 8] |= (unsigned char)(1 << cpu % 8);
        n++;
    }
    return n;
}

/* ---- the CPU of a thread --------------------------------------------------------------------------------------- */

int tn__cpu(void) { return sched_getcpu(); }

int64_t tn__thread_time(pthread_t thread)
{
    clockid_t       clock;
    struct timespec t;
    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t)) return -1;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A CPU set of any size, as the system's calls take it. */
typedef struct {
    cpu_set_t part[MAX_CPUS / CPU_SETSIZE];
} cpus;

/* Moves `thread` to one of the CPUs `to`; its affinity is `allowed` again afterwards. */
static bool move_thread(pthread_t thread, const cpus *to, const cpus *allowed)
{
    if (pthread_setaffinity_np(thread, sizeof *to, to->part)) return false;
    pthread_setaffinity_np(thread, sizeof *allowed, allowed->part);
    return true;
}

void tn__fetch_thread(pthread_t thread)
{
    const int cpu = sched_getcpu();
    cpus      allowed = {0}, here = {0}; /* if it is bound to one CPU, it may just be moving itself */
    if (cpu < 0 || pthread_getaffinity_np(thread, sizeof allowed, allowed.part)) return;
    if (!CPU_ISSET_S((size_t)cpu, sizeof allowed, allowed.part) || CPU_COUNT_S(sizeof allowed, allowed.part) < 2)
        return;
    CPU_SET_S((size_t)cpu, sizeof here, here.part);
    move_thread(thread, &here, &allowed);
}

bool tn__leave_cpus(const int *taken, int n)
{
    cpus allowed = {0};
    if (pthread_getaffinity_np(pthread_self(), sizeof allowed, allowed.part)) return false;
    cpus left = allowed;
    for (int i = 0; i < n; i++) CPU_CLR_S((size_t)taken[i], sizeof left, left.part);
    return move_thread(pthread_self(), &left, &allowed); /* false if no CPU is left */
}

/* ---- the result ----------------------------------------------------------------------------------------------- */

tn__cpu_limits tn__cpus(void)
{
    int            error = errno;
    unsigned char  bits[MAX_CPUS / 8] = {0};
    tn__cpu_limits c = {0};
    c.allowed = allowed_cpus(bits);
    c.cores = tn__cores("", bits, MAX_CPUS);
    c.quota = tn__cgroup_cpus("");
    c.asked = tn__env_threads(getenv("OMP_NUM_THREADS"));
    c.use = least(least(c.allowed, c.cores), least(c.quota, c.asked));
    if (!c.use) c.use = 1;
    errno = error;
    return c;
}

#else /* other systems: their files are unknown */

int     tn__cpu(void) { return -1; }
int64_t tn__thread_time(pthread_t thread) { return (void)thread, -1; }
void    tn__fetch_thread(pthread_t thread) { (void)thread; }
bool    tn__leave_cpus(const int *taken, int n) { return (void)taken, (void)n, false; }

tn__cpu_limits tn__cpus(void)
{
    tn__cpu_limits c = {.allowed = tn__sys_cores(), .asked = tn__env_threads(getenv("OMP_NUM_THREADS"))};
    c.use = least(c.allowed, c.asked);
    if (!c.use) c.use = 1;
    return c;
}
#endif
