/* system.h — memory and thread settings of the whole library, and their statistics. Part of core.h: include that. */
#ifndef TENON_CORE_SYSTEM_H
#define TENON_CORE_SYSTEM_H

#include "core.h"

TN_C_BEGIN_

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* All memory of the library comes from this allocator. alloc returns memory aligned to 64 bytes, or NULL. Set it while
 * no object of the library is alive; NULL restores the default. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *p, size_t bytes);
    void *user;
} tn_allocator;
TN_API tn_status tn_set_allocator(const tn_allocator *a);

typedef struct {
    size_t   live;    /* bytes in use, in the process */
    size_t   peak;    /* maximum of live since tn_reset_peak() */
    size_t   cached;  /* bytes this thread keeps for its next step */
    size_t   limit;   /* in bytes; 0: none */
    size_t   packed;  /* the part of live that is packed copies of weights (tn_set_packing_limit) */
    uint64_t mallocs; /* total calls of the allocator */
    int64_t  tensors; /* tensor handles alive */
} tn_memory;
TN_API tn_memory tn_memory_now(void); /* includes other running threads, except the last 64 KiB of each */
TN_API void      tn_reset_peak(void);
TN_API void      tn_set_memory_limit(size_t bytes); /* for live memory; 0: none. Exceeding it: TN_ENOMEM */
TN_API void      tn_set_cache_limit(size_t bytes);  /* for each thread's cache; SIZE_MAX: none, 0: keep nothing */
TN_API void      tn_trim(void);                     /* frees this thread's cache */

/* Limits the packed copies of weights, in bytes of the process. The sixth product of an unchanged matrix copies it into
 * the order that the kernels read fastest, which needs about the memory of the matrix again; products have the same
 * bits with and without it. SIZE_MAX, the default: no limit. 0: no copies. If there are more bytes, all
 * copies are freed, so that 0 and then SIZE_MAX free them once. A call that would fail for memory frees them first, and
 * then there are no new ones until this or the memory limit is set again. */
TN_API void tn_set_packing_limit(size_t bytes);

/* Memory for custom structs, from the same allocator: zeroed, aligned to 64 bytes; NULL and TN_ENOMEM if it fails. Pass
 * the same size to tn_mem_put. Works while an error is set. */
TN_API void *tn_mem_get(size_t bytes) TN_CHECKED;
TN_API void  tn_mem_put(void *p, size_t bytes);

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Maximum number of threads for calls of this thread. The default: the minimum of the affinity mask, the cgroup's
 * quota, the physical cores and OMP_NUM_THREADS, of which ops read the first three again about once a second. The
 * results have the same bits for any number. 0 restores the default. */
TN_API void tn_set_threads(int n);
TN_API int  tn_threads(void);

/* Calls body(from, to, user) for the blocks [0, grain), [grain, 2·grain) … of [0, n); blocks may run at the same time.
 * A body may use the library, in the modes of the caller: tensors it makes are freed with its block unless kept, and
 * its error is raised again in the caller. A body that draws random numbers needs a generator for each block: with that
 * of the thread which happens to run it, the numbers would depend on the number of threads. */
TN_API void tn_parallel_for(int64_t n, int64_t grain, void (*body)(int64_t from, int64_t to, void *user), void *user);

TN_C_END_
#endif
