/* test_machine.c — the limits on the number of threads, with a folder that simulates the machine; and tn_build_info. */
#include "tests/common/check_main.h"

#include "core/base/caches.h"
#include "core/base/parallel.h"
#include "core/system/system.h"

static const char *machine(const char *name, const char *path, const char *content)
{
    const char *root = tn_test_file(name);
    char        full[1000];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    ck_assert_ptr_nonnull(f);
    fputs(content, f);
    fclose(f);
    return root;
}

TEST(cgroup_2)
{
    static const struct {
        const char *text;
        int         cpus;
    } rows[] = {{"max 100000\n", 0},
                {"100000 100000\n", 1},
                {"150000 100000\n", 2},
                {"1 100000\n", 1},
                {"800000 100000\n", 8},
                {"0 100000", 0},
                {"", 0},
                {"nonsense", 0},
                {"100000", 0},
                {"-5 100000", 0},
                {"100000 0", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        machine("v2", "/proc/self/cgroup", "0::/\n");
        ck_assert_int_eq(tn__cgroup_cpus(machine("v2", "/sys/fs/cgroup/cpu.max", rows[i].text)), rows[i].cpus);
    }
    /* the minimum of the group and of its ancestors */
    machine("v2-deep", "/proc/self/cgroup", "0::/a.slice/b/c.scope\n");
    machine("v2-deep", "/sys/fs/cgroup/a.slice/b/c.scope/cpu.max", "max 100000\n");
    ck_assert_int_eq(tn__cgroup_cpus(machine("v2-deep", "/sys/fs/cgroup/a.slice/cpu.max", "300000 100000\n")), 3);
    ck_assert_int_eq(tn__cgroup_cpus(machine("v2-deep", "/sys/fs/cgroup/a.slice/b/cpu.max", "250000 50000\n")), 3);
    ck_assert_int_eq(tn__cgroup_cpus(machine("v2-deep", "/sys/fs/cgroup/a.slice/b/c.scope/cpu.max", "7 5\n")), 2);
    /* in a container: the host's path, of which only the root exists */
    machine("v2-box", "/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
    ck_assert_int_eq(tn__cgroup_cpus(machine("v2-box", "/sys/fs/cgroup/cpu.max", "400000 100000\n")), 4);
    machine("v2-up", "/proc/self/cgroup", "0::/../../other\n");
    ck_assert_int_eq(tn__cgroup_cpus(machine("v2-up", "/sys/fs/cgroup/cpu.max", "400000 100000\n")), 4);
}

TEST(cgroup_1)
{
    const char *lines = "9:name=systemd:/\n7:cpuset:/x\n4:cpu,cpuacct:/box/one\n3:memory:/x\n0::/\n";
    machine("v1", "/proc/self/cgroup", lines);
    ck_assert_int_eq(tn__cgroup_cpus(machine("v1", "/sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us", "1")), 0);
    machine("v1", "/sys/fs/cgroup/cpu,cpuacct/box/one/cpu.cfs_quota_us", "-1\n");
    ck_assert_int_eq(tn__cgroup_cpus(machine("v1", "/sys/fs/cgroup/cpu,cpuacct/box/one/cpu.cfs_period_us", "100000\n")),
                     0);
    machine("v1", "/sys/fs/cgroup/cpu,cpuacct/box/one/cpu.cfs_quota_us", "210000\n");
    ck_assert_int_eq(tn__cgroup_cpus(machine("v1", "/unused", "")), 3);
    machine("v1", "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(tn__cgroup_cpus(machine("v1", "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "200000\n")), 2);

    machine("v1-box", "/proc/self/cgroup", "1:cpu:/host/path");
    machine("v1-box", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000\n");
    ck_assert_int_eq(tn__cgroup_cpus(machine("v1-box", "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")), 5);
    ck_assert_int_eq(tn__cgroup_cpus(machine("v1-box", "/proc/self/cgroup", "no colons\n\n:\n1:cpu\n")), 0);
    ck_assert_int_eq(tn__cgroup_cpus(tn_test_file("no such machine")), 0);
}

TEST(cores)
{
    const unsigned char all[2] = {0xff, 0x00}, odd[2] = {0xaa, 0}, half[2] = {0x0f, 0}, none[2] = {0, 0};
    const char         *root = tn_test_file("cores");
    ck_assert_int_eq(tn__cores(root, all, 16), 8); /* without any information */
    for (int cpu = 0; cpu < 8; cpu++) {            /* four cores of two threads: 0 and 4, 1 and 5 … */
        char path[100], list[20];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", cpu);
        snprintf(list, sizeof list, "%d,%d\n", cpu % 4, cpu % 4 + 4);
        machine("cores", path, list);
    }
    ck_assert_int_eq(tn__cores(root, all, 16), 4);
    ck_assert_int_eq(tn__cores(root, odd, 16), 2);
    ck_assert_int_eq(tn__cores(root, half, 16), 4);
    ck_assert_int_eq(tn__cores(root, none, 16), 0);
    for (int cpu = 0; cpu < 4; cpu++) { /* an older kernel; a range; and an invalid list */
        char path[100];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        machine("old cores", path, cpu < 2 ? "0-1\n" : cpu == 2 ? "99999999\n" : "\n");
    }
    ck_assert_int_eq(tn__cores(tn_test_file("old cores"), half, 16), 3);
}

TEST(omp_num_threads)
{
    static const struct {
        const char *text;
        int         n;
    } rows[] = {
        {"4", 4}, {" 4 ", 4}, {"4,2", 4}, {"4, 2", 4}, {"", 0},   {"0", 0},   {"-1", 0},
        {"x", 0}, {"4x", 0},  {NULL, 0},  {"007", 7},  {",2", 0}, {"4 2", 0}, {"99999999999999999999", 1 << 20}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) ck_assert_int_eq(tn__env_threads(rows[i].text), rows[i].n);
}

TEST(the_default_is_the_least)
{
    const tn__cpu_limits c = tn__cpus();
    ck_assert_int_ge(c.use, 1);
    const int limits[] = {c.allowed, c.cores, c.quota, c.asked};
    int       least = 1 << 30;
    for (int i = 0; i < 4; i++)
        if (limits[i] && limits[i] < least) least = limits[i];
    ck_assert_int_eq(c.use, least);
    ck_assert_int_ge(c.allowed, c.cores);
    ck_assert_int_eq(tn_threads(), c.use < 512 ? c.use : 512);
}

TEST(caches)
{
    static const char *const wrong[] = {
        "",           "32K",         "32K,512K",          "32K,512K,32M,",           "32K;512K;32M",
        "0,512K,32M", "32K,-1K,32M", "32K,512K,32G",      "32 K,512K,32M",           "32K,512K,32MB",
        "1,2,a",      "32K,,32M",    "32K,512K,2097152M", "99999999999999999999,1,1"};
    tn__cache_sizes c = {1, 2, 3};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!tn__caches_parse(wrong[i], &c) && c.l1 == 1 && c.l2 == 2 && c.l3 == 3, "%s", wrong[i]);
    ck_assert(!tn__caches_parse(NULL, &c));
    ck_assert(tn__caches_parse("32K,512k,32M", &c));
    ck_assert(c.l1 == 32 << 10 && c.l2 == 512 << 10 && c.l3 == 32 << 20);
    ck_assert(tn__caches_parse("1,2,1048576M", &c) && c.l1 == 1 && c.l2 == 2 && c.l3 == (int64_t)1 << 40);
    const char           *wish = getenv("TENON_CACHES");
    const tn__cache_sizes here = tn__caches();
    ck_assert(here.l1 > 0 && here.l2 > 0 && here.l3 > 0);
    ck_assert(tn__caches_set() == (wish && tn__caches_parse(wish, &c)));
    ck_assert(!tn__caches_set() || !memcmp(&here, &c, sizeof c));
    ck_assert(!strstr(tn_build_info(), "(set by TENON_CACHES)") == !tn__caches_set());
    ck_assert(!strstr(tn_build_info(), "TENON_CACHES was ignored") == (!wish || !*wish || tn__caches_set()));
}

TEST(build_info)
{
    char start[32];
    snprintf(start, sizeof start, "%d.%d.%d", TN_VERSION_MAJOR, TN_VERSION_MINOR, TN_VERSION_PATCH);
    ck_assert_str_eq(tn_version(), start);
    const char *text = tn_build_info();
    ck_assert_msg(!strncmp(text, "Tenon ", 6) && !strncmp(text + 6, start, strlen(start)), "%s", text);
    ck_assert_msg(strstr(text, " kernels: ") && strchr(text, '\n') == NULL && strlen(text) < 600, "%s", text);
    tn_set_threads(1);
    ck_assert_ptr_nonnull(strstr(tn_build_info(), "1 thread: set by tn_set_threads (affinity "));
    tn_set_threads(0);
    ck_assert_ptr_nonnull(strstr(tn_build_info(), ": the default (affinity "));
}
