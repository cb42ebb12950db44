/* memory.h — memory for the library itself, and texts in it (memory.c). */
#ifndef TENON_CORE_BASE_MEMORY_H
#define TENON_CORE_BASE_MEMORY_H

#include "core/base/object.h"
#include "core/core.h"

/* 64-byte aligned, from the thread's cache or the allocator; the size is told again when it is given back. tn__mem_get
 * raises TN_ENOMEM. tn__mem_try does not (for code that can do without). */
void *tn__mem_get(size_t bytes);
void *tn__mem_zeroed(size_t bytes);
void *tn__mem_try(size_t bytes);
void  tn__mem_put(void *p, size_t bytes);
/* True if operands of `bytes` in all exceed any L3 (64 MiB; the size that the system reports is often a sum over
 * sockets): then use non-temporal stores. */
static inline bool tn__beyond_caches(int64_t bytes) { return bytes > (int64_t)64 << 20; }
/* Grows *p from old to bytes, keeping its contents; false (raised) leaves it as it was. */
bool  tn__mem_grow(void **p, size_t old_bytes, size_t bytes);
char *tn__strdup(const char *s); /* freed by tn__strfree */
void  tn__strfree(char *s);
/* Gives back a tensor's struct, of at most 1024 bytes, and counts one tensor less. It stays in this thread's quarantine
 * for a while, where its count says that it is gone, so that who uses it still can be told. */
void tn__mem_retire(tn__object *o, size_t bytes);
void tn__count_tensor(void); /* one more */
void tn__mem_tell(void);     /* what this thread has not yet added to the process's accounts */

#endif
