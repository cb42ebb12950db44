/* memory.h — memory for the library itself, and texts in it (memory.c). */
#ifndef TENON_CORE_MEMORY_H
#define TENON_CORE_MEMORY_H

#include "core/core.h"

/* 64-byte aligned, from the thread's cache or the allocator; the size is told again when it is given back. tn__mem_get
 * raises TN_ENOMEM. tn__mem_try does not (for code that can do without). */
void *tn__mem_get(size_t bytes);
void *tn__mem_zeroed(size_t bytes);
void *tn__mem_try(size_t bytes);
void  tn__mem_put(void *p, size_t bytes);
/* Operands of so many bytes in all are not found in a cache by who reads them next. Larger than most third caches; what
 * systems say of theirs is often the sum of all that the machine has. */
static inline bool tn__past_caches(int64_t bytes) { return bytes > (int64_t)64 << 20; }
/* Grows *p from old to bytes, keeping its contents; false (raised) leaves it as it was. */
bool  tn__mem_grow(void **p, size_t old_bytes, size_t bytes);
char *tn__strdup(const char *s); /* freed by tn__strfree */
void  tn__strfree(char *s);
void  tn__count_tensor(int by);
void  tn__cache_free(void); /* at the thread's end */

#endif
