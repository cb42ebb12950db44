/* memory.h — the library's own memory, and strings in it (memory.c). */
#ifndef TENON_CORE_BASE_MEMORY_H
#define TENON_CORE_BASE_MEMORY_H

#include "core/base/object.h"
#include "core/core.h"

/* Blocks of memory: see memory.c. tn__mem_get and tn__mem_zeroed raise TN_ENOMEM, tn__mem_try raises nothing: it is for
 * memory whose lack only makes a program slower. */
void *tn__mem_get(size_t bytes);
void *tn__mem_zeroed(size_t bytes);
void *tn__mem_try(size_t bytes);
void  tn__mem_put(void *p, size_t bytes);
void  tn__mem_put_later(void *p, size_t bytes); /* the block keeps its contents until 64 more are freed so */
/* Blocks for copies that tn_set_packing_limit limits. `drop` frees all that are not in use; tn__mem_get calls it before
 * it fails, and then there are no new copies until a limit is set again. NULL: no room; raises nothing. */
void *tn__mem_copy(size_t bytes, void (*drop)(void));
void  tn__mem_copy_put(void *p, size_t bytes);
/* free_some frees memory that the calling thread can make again, and is false if there is none; tn__mem_get calls it
 * before it fails. */
void tn__mem_spare(bool (*free_some)(void));
/* True if operands of `bytes` in total exceed any L3 (64 MiB; the size that the system reports is often a sum over
 * sockets): then use non-temporal stores. */
static inline bool tn__beyond_caches(int64_t bytes) { return bytes > (int64_t)64 << 20; }
/* Grows *p from old_bytes to bytes, keeping its contents; false (raised) leaves *p unchanged. */
bool  tn__mem_grow(void **p, size_t old_bytes, size_t bytes);
char *tn__strdup(const char *s); /* freed with tn__strfree */
void  tn__strfree(char *s);
/* Frees a tensor's struct, of at most 1024 bytes, and counts one tensor less. The struct stays in this thread's
 * quarantine for a while; its count marks it as freed, so that a later use is reported. */
void tn__mem_retire(tn__object *o, size_t bytes);
void tn__count_tensor(void); /* counts one tensor more */
/* tn_set_memory_limit with another limit for the sum of live and cached memory. */
void tn__mem_limit(size_t live_bytes, size_t held_bytes);
/* The bytes that would be in use, at most, after the allocations that the memory limit refused since the last reset; 0:
 * none. */
size_t tn__mem_refused(bool reset);
void   tn__mem_raise_peak(size_t bytes); /* the peak is at least `bytes` */

void tn__mem_report(void); /* adds this thread's pending counts to the process's statistics */

#endif
