/* system.h — what a program may set and ask of the library as a whole: memory and threads. Part of core.h: include
 * that. */
#ifndef TENON_CORE_SYSTEM_H
#define TENON_CORE_SYSTEM_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* All memory of the library comes through here. alloc returns memory aligned to 64 bytes or NULL. To be set while
 * nothing of the library is alive; NULL brings back the default. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *p, size_t bytes);
    void *user;
} tn_allocator;
TN_API tn_status tn_set_allocator(const tn_allocator *a);

typedef struct {
    size_t   live;    /* bytes in use, of the process                      */
    size_t   peak;    /* the most that live has been since tn_reset_peak() */
    size_t   cached;  /* bytes kept for the next step by this thread       */
    size_t   limit;   /* 0: none                                           */
    uint64_t mallocs; /* calls of the allocator, ever                      */
    int64_t  tensors; /* tensor handles alive                              */
} tn_memory;
TN_API tn_memory tn_memory_now(void); /* of other threads that run, all but the last 64 KiB */
TN_API void      tn_reset_peak(void);
TN_API void      tn_set_memory_limit(size_t bytes); /* for live memory; 0: none. Beyond it: TN_ENOMEM */
TN_API void      tn_set_cache_limit(size_t bytes);  /* for each thread's cache; SIZE_MAX: none, 0: keep nothing */
TN_API void      tn_trim(void);                     /* gives this thread's cache back */

/* The same memory for structs of your own: zeroed, aligned to 64 bytes; NULL and TN_ENOMEM if there is none. The size
 * is told again when it is given back. Works while an error stands. */
TN_API void *tn_mem_get(size_t bytes) TN_CHECKED;
TN_API void  tn_mem_put(void *p, size_t bytes);

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* How many threads a call of this thread may use. The default: the least of the affinity mask, the cgroup's quota, the
 * physical cores and OMP_NUM_THREADS. The results are the same bits for any number. 0 brings back the default. */
TN_API void tn_set_threads(int n);
TN_API int  tn_threads(void);

/* body(from, to, user) for the blocks [0, grain), [grain, 2·grain) … of [0, n); blocks may run at the same time. A body
 * may use the library, in the modes of the caller: what it makes goes with its block unless it is kept, and its error
 * comes back to the caller. One that draws random numbers uses a generator of its own for each block: that of the
 * thread which happens to run it would make the numbers depend on how many there are. */
TN_API void tn_parallel_for(int64_t n, int64_t grain, void (*body)(int64_t from, int64_t to, void *user), void *user);

#ifdef __cplusplus
}
#endif
#endif
