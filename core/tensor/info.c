/* info.c — the version of the library, and what it uses on this machine and why. */
#include "core/system/system.h"

#include "core/base/caches.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

const char *tn_version(void)
{
    return TEXT_OF(TN_VERSION_MAJOR) "." TEXT_OF(TN_VERSION_MINOR) "." TEXT_OF(TN_VERSION_PATCH);
}

#if defined(__clang__)
#define COMPILER "clang " TEXT_OF(__clang_major__) "." TEXT_OF(__clang_minor__) "." TEXT_OF(__clang_patchlevel__)
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "an unknown compiler"
#endif

/* "4", or "no limit" */
static const char *limit(int n, char text[16])
{
    if (!n) return "no limit";
    snprintf(text, 16, "%d", n);
    return text;
}

static const char *caches_reason(void)
{
    const char *wish = getenv("TENON_CACHES");
    if (tn__caches_set()) return " (set by TENON_CACHES)";
    return wish && *wish ? " (TENON_CACHES was ignored: expected sizes such as 32K,512K,32M)" : "";
}

const char *tn_build_info(void)
{
    static _Thread_local char text[640];
    const tn__cache_sizes     k = tn__caches();
    const tn__cpu_limits      c = tn__cpus();
    const int                 n = tn_threads();
    const char               *by = tn__int8(tn__kernels())->by;
    char                      allowed[16], cores[16], quota[16], asked[16];
    snprintf(text, sizeof text,
             "Tenon %s; %s; %s kernels: %s; %d thread%s: %s (affinity %s, cores %s, cgroup %s, OMP_NUM_THREADS %s); "
             "caches of %lld KiB, %lld KiB and %lld MiB%s%s%s",
             tn_version(), COMPILER, tn__isa_name(), tn__isa_reason(), n, n == 1 ? "" : "s",
             tn__self.threads ? "set by tn_set_threads" : "the default", limit(c.allowed, allowed),
             limit(c.cores, cores), limit(c.quota, quota), limit(c.asked, asked), (long long)k.l1 >> 10,
             (long long)k.l2 >> 10, (long long)k.l3 >> 20, caches_reason(), by ? "; int8 products by " : "",
             by ? by : "");
    return text;
}

bool tn_has_bf16(void) { return tn__kernels()->gemm_pairs != NULL; }
