/* caches.h — the sizes of the CPU's caches (caches.c). */
#ifndef TENON_CORE_BASE_CACHES_H
#define TENON_CORE_BASE_CACHES_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes: of a core's data cache and of its L2, and of the L3 that cores share. */
typedef struct {
    int64_t l1, l2, l3;
} tn__cache_sizes;

/* TENON_CACHES at the first call; otherwise what the system says, or the sizes of most CPUs. They affect speed only. */
tn__cache_sizes tn__caches(void);
/* True if the sizes are those of TENON_CACHES. */
bool tn__caches_set(void);
/* Reads "32K,512K,32M". False, and *c unchanged, if the text has another form or a size is 0 or above 1 TiB. */
bool tn__caches_parse(const char *text, tn__cache_sizes *c);

#endif
