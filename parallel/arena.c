/* arena.c — a range of addresses larger than its memory: a page has memory from its first write until madvise
 * frees it. Uses mmap instead of the allocator, which has no such operation. */
#define _GNU_SOURCE /* madvise, MAP_ANONYMOUS */
#include "parallel/parallel_private.h"

#include <sys/mman.h>
#include <unistd.h>

int64_t tn__arena_page(void) { return sysconf(_SC_PAGESIZE); }

tn__arena *tn__arena_new(int64_t bytes)
{
    tn__arena *a = tn_mem_get(sizeof *a);
    if (!a) return NULL;
    a->bytes = tn__max_i64(bytes, tn__arena_page());
    void *at = mmap(NULL, (size_t)a->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        tn_raise(TN_ENOMEM, "tn_replica_next: cannot reserve %lld bytes of addresses for the weights of .zero3",
                 (long long)a->bytes);
        tn_mem_put(a, sizeof *a);
        return NULL;
    }
    a->at = at;
    atomic_init(&a->refs, 1);
    return a;
}

tn__arena *tn__arena_keep(tn__arena *a)
{
    atomic_fetch_add(&a->refs, 1);
    return a;
}

void tn__arena_drop(tn__arena *a)
{
    if (!a || atomic_fetch_sub(&a->refs, 1) > 1) return;
    munmap(a->at, (size_t)a->bytes);
    tn_mem_put(a, sizeof *a);
}

void tn__arena_release(tn__arena *a, int64_t from, int64_t to)
{
    const int64_t page = tn__arena_page();
    from = (from + page - 1) / page * page, to = to / page * page;
    if (to > from) (void)madvise(a->at + from, (size_t)(to - from), MADV_DONTNEED);
}
