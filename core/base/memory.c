/* memory.c — all memory of the library: one allocator, and for each thread a cache of freed blocks.
 *
 *   tn__mem_try(bytes)         a block of at least `bytes` bytes, also for 0; aligned to 64; contents undefined. NULL:
 *                              out of memory, over the memory limit, or more than 2^46 bytes; raises nothing
 *   tn__mem_get(bytes)         like tn__mem_try, but frees copies first, and NULL is raised as TN_ENOMEM
 *   tn__mem_zeroed(bytes)      like tn__mem_get, with all bytes 0
 *   tn__mem_put(p, bytes)      frees p, which may be NULL; `bytes` is the size that was requested
 *   tn__mem_grow(&p, old, new) moves p's first `old` bytes to a block of `new` bytes; false: raised, and p is unchanged
 * All of them work while an error is set and leave errno unchanged. Any thread may free any block.
 *
 * A step of a training loop requests the same sizes as the step before, so freed blocks are kept in lists by size class
 * and reused: from the second step on, once 64 tensors have ended (their handles wait in a quarantine, so that use
 * after free can be reported), nothing calls the allocator. Classes are the multiples of 64 up to 1024 bytes, then
 * eight to a doubling, and from 256 KiB on two: the unused end of a large block is untouched pages, and batches of
 * similar length use blocks of the same class. Blocks carry no header, and so stay aligned to a cache line. */
#include "core/system/system.h"

#include "core/base/memory.h"
#include "core/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h> /* a cached block is as inaccessible as a freed one */
#define HIDE(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define SHOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define HIDE(p, n) ((void)0)
#define SHOW(p, n) ((void)0)
#endif

#ifndef TENON_CACHE /* 0: each block is freed at once, so that sanitizers and valgrind find each use after free */
#define TENON_CACHE 1
#endif

enum { LINEAR = 16, FINE = 10, COARSE = 18, CLASSES = LINEAR + 8 * (COARSE - FINE) + 2 * (47 - COARSE) };

typedef struct block {
    struct block *next;
} block;

/* A freed tensor, of which only the head is accessible. Enough entries for the next few ops to detect a use after free,
 * and few enough to stay in the first-level cache. */
enum { QUARANTINE = 64 };
static _Thread_local struct {
    block   *free[CLASSES];
    size_t   bytes; /* of the free lists and the quarantine */
    block   *ended[QUARANTINE];
    unsigned at; /* index of the oldest of these */
    int class;   /* size class of all of these */
    struct {
        block *at;
        int class;
    } kept[QUARANTINE]; /* freed modules, which stay readable (tn__mem_put_later) */
    unsigned next_kept;
    int64_t  live, tensors; /* added by this thread and not yet reported to the process's statistics */
    bool     ends;          /* end_thread is registered: it frees all this and reports the rest */
} cache;

enum { HUGE_PAGE = 2 << 20 };

/* Large blocks use huge pages if the system has them: one page fault instead of 512 at first touch, and fewer later. */
static void *default_alloc(void *user, size_t bytes)
{
    (void)user;
    if (bytes < (size_t)HUGE_PAGE) return tn__sys_alloc(64, bytes); /* class sizes are multiples of 64 */
    void *p = tn__sys_alloc(HUGE_PAGE, bytes);
    /* advice, which may be ignored; not for blank tensors, which loading frees: that writes to their first page */
    if (p && !tn__self.mode.blank) tn__sys_huge_pages(p, bytes / HUGE_PAGE * HUGE_PAGE);
    return p;
}
static void default_free(void *user, void *p, size_t bytes)
{
    (void)user, (void)bytes;
    tn__sys_free(p);
}

/* State of the process: the allocator, set before anything is alive, and the statistics. */
static tn_allocator      allocator = {default_alloc, default_free, NULL};
static _Atomic(int64_t)  live, peak, tensors;      /* reported by the threads; may be below 0 for a moment */
static _Atomic(size_t)   held;                     /* obtained from the allocator and not freed */
static _Atomic(size_t)   memory_limit, held_limit; /* of live, of held; 0: none */
static _Atomic(size_t)   cache_limit = SIZE_MAX;
static _Atomic(size_t)   refused; /* see tn__mem_refused */
static _Atomic(uint64_t) mallocs;
static _Atomic(size_t)   copies, copies_limit = SIZE_MAX; /* bytes of tn__mem_copy */
static _Atomic(bool)     no_copies;                       /* a call needed their memory since a limit was set */
static void (*_Atomic drop_copies)(void);
static bool (*_Atomic free_spare)(void); /* see tn__mem_spare */

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* An op of a few elements allocates and frees four blocks and two tensors; an atomic addition for each was a fifth of
 * its time. So a thread keeps its own sums, and reports them when they have grown to this many bytes or tensors, after
 * a parallel loop on it, and at its end; immediately if there is a memory limit, or if its end would not report them.
 * The statistics are thus exact for the thread itself, and for all threads after a join. */
enum { UNREPORTED_BYTES = 64 << 10, UNREPORTED_TENSORS = 256 };

static inline int64_t own_live(void) { return atomic_load_explicit(&live, memory_order_relaxed) + cache.live; }
static inline size_t  at_least_0(int64_t n) { return n > 0 ? (size_t)n : 0; }

/* Returns the live bytes after it. */
static __attribute__((noinline, cold)) int64_t report(void)
{
    const int64_t bytes = cache.live, handles = cache.tensors;
    cache.live = cache.tensors = 0;
    if (handles) atomic_fetch_add_explicit(&tensors, handles, memory_order_relaxed);
    return bytes + (bytes ? atomic_fetch_add_explicit(&live, bytes, memory_order_relaxed)
                          : atomic_load_explicit(&live, memory_order_relaxed));
}
void tn__mem_report(void) { report(); }

/* True if the report of a sum that has reached n may be delayed. */
static inline bool may_wait(int64_t n, int64_t most)
{
    return __builtin_expect(n < most && n > -most && cache.ends, 1) &&
           __builtin_expect(!atomic_load_explicit(&memory_limit, memory_order_relaxed), 1);
}

/* Returns the live bytes known to this thread. */
static inline int64_t add_live(int64_t bytes)
{
    cache.live += bytes;
    return may_wait(cache.live, UNREPORTED_BYTES) ? own_live() : report();
}
static inline void subtract_live(int64_t bytes)
{
    cache.live -= bytes;
    if (!may_wait(cache.live, UNREPORTED_BYTES)) report();
}

void tn__count_tensor(void)
{
    if (!may_wait(++cache.tensors, UNREPORTED_TENSORS)) report();
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The class of a size, and the size of a class: 16 classes of 64 bytes, then 2^10·2^e·(1 + m/8), then
 * 2^18·2^e·(1 + m/2), up to 2^47 bytes. */
static int class_of(size_t bytes)
{
    if (bytes <= 1024) return bytes ? (int)((bytes - 1) / 64) : 0;
    int top = 63 - __builtin_clzll(bytes - 1); /* 2^top < bytes <= 2^(top+1) */
    if (top >= COARSE) return LINEAR + 8 * (COARSE - FINE) + 2 * (top - COARSE) + (int)((bytes - 1) >> (top - 1) & 1);
    return LINEAR + 8 * (top - FINE) + (int)((bytes - 1) >> (top - 3) & 7);
}
static size_t class_bytes(int c)
{
    if (c < LINEAR) return (size_t)(c + 1) * 64;
    int fine = c - LINEAR, coarse = fine - 8 * (COARSE - FINE);
    if (coarse >= 0) return ((size_t)1 << (COARSE - 1) << coarse / 2) * (size_t)(2 + coarse % 2 + 1);
    return ((size_t)1 << (FINE - 3) << fine / 8) * (size_t)(8 + fine % 8 + 1);
}
/* The bytes that the statistics count for a block of `bytes`. */
static int64_t counted(size_t bytes) { return (int64_t)((bytes + 63) & ~(size_t)63); }

/* errno is unchanged: malloc sets it even if it then finds memory elsewhere. */
static void *obtain(size_t bytes)
{
    const int keep = errno;
    void     *b = allocator.alloc(allocator.user, bytes);
    atomic_fetch_add_explicit(&mallocs, 1, memory_order_relaxed);
    errno = keep;
    return b;
}

static void give_back(block *b, size_t bytes)
{
    const int keep = errno;
    SHOW(b, bytes);
    atomic_fetch_sub_explicit(&held, bytes, memory_order_relaxed);
    allocator.free(allocator.user, b, bytes);
    errno = keep;
}

/* True if `more` bytes and those held, live and cached, exceed their limit. */
static inline bool above_limit(size_t more)
{
    const size_t limit = atomic_load_explicit(&held_limit, memory_order_relaxed);
    return __builtin_expect(limit != 0, 0) && atomic_load_explicit(&held, memory_order_relaxed) + more > limit;
}

/* Returns a free block to the cache or the allocator. */
static inline void put_away(block *b, int c)
{
    const size_t n = class_bytes(c), keep = atomic_load_explicit(&cache_limit, memory_order_relaxed);
    if (!TENON_CACHE || cache.bytes + n > keep || !cache.ends || above_limit(0)) { /* no code would free it later */
        give_back(b, n);
        return;
    }
    b->next = cache.free[c];
    cache.free[c] = b;
    cache.bytes += n;
    HIDE(b + 1, n - sizeof *b); /* except the link: leak checkers follow it */
}

static void end_quarantine(void)
{
    for (int i = 0; i < QUARANTINE; i++) {
        block *b = cache.ended[i];
        cache.ended[i] = NULL;
        if (!b) continue;
        cache.bytes -= class_bytes(cache.class);
        put_away(b, cache.class);
    }
    for (int i = 0; i < QUARANTINE; i++) tn__mem_put_later(NULL, 0);
}

void tn_trim(void)
{
    end_quarantine();
    for (int c = 0; c < CLASSES; c++) {
        while (cache.free[c]) {
            block *b = cache.free[c];
            cache.free[c] = b->next;
            give_back(b, class_bytes(c));
        }
    }
    cache.bytes = 0;
}

static void end_thread(void)
{
    cache.ends = false; /* blocks freed after this are not cached */
    tn_trim();
    report();
}

size_t tn__mem_refused(bool reset) { return reset ? atomic_exchange(&refused, 0) : atomic_load(&refused); }

void tn__mem_raise_peak(size_t bytes)
{
    int64_t top = atomic_load(&peak);
    while ((int64_t)bytes > top && !atomic_compare_exchange_weak(&peak, &top, (int64_t)bytes)) continue;
}

void *tn__mem_try(size_t bytes)
{
    if (bytes > (size_t)PTRDIFF_MAX / 2 || (uint64_t)bytes > (uint64_t)1 << 46) return NULL; /* also on 32 bits */
    int    c = class_of(bytes);
    size_t n = class_bytes(c);

    const int64_t used = counted(bytes), now = add_live(used);
    const size_t  limit = atomic_load_explicit(&memory_limit, memory_order_relaxed);
    if (limit && at_least_0(now) > limit) {
        subtract_live(used);
        return NULL;
    }
    int64_t top = atomic_load_explicit(&peak, memory_order_relaxed);
    while (now > top && !atomic_compare_exchange_weak(&peak, &top, now)) continue;

    block *b = cache.free[c];
    if (b) {
        SHOW(b, n);
        cache.free[c] = b->next;
        __builtin_prefetch(b->next); /* the next call reads its link: it may have left the caches since it was freed */
        cache.bytes -= n;
        return b;
    }
    if (!cache.ends) tn__at_thread_end(TN__END_MEMORY, end_thread), cache.ends = true;
    if (cache.bytes && above_limit(n)) tn_trim();
    b = obtain(n);
    if (!b && cache.bytes) { /* perhaps this thread's cache holds the missing memory */
        tn_trim();
        b = obtain(n);
    }
    if (b) atomic_fetch_add_explicit(&held, n, memory_order_relaxed);
    else subtract_live(used);
    return b;
}

static bool frees_copies(void)
{
    if (!atomic_load(&copies)) return false;
    void (*const drop)(void) = atomic_load(&drop_copies);
    atomic_store(&no_copies, true);
    drop();
    return true;
}

void *tn__mem_copy(size_t bytes, void (*drop)(void))
{
    const size_t limit = atomic_load(&copies_limit);
    void        *p = NULL;
    if (atomic_load(&no_copies) || bytes > limit) return NULL;
    atomic_store(&drop_copies, drop);
    if (atomic_fetch_add(&copies, bytes) <= limit - bytes) p = tn__mem_try(bytes);
    if (!p) atomic_fetch_sub(&copies, bytes);
    return p;
}

void tn__mem_copy_put(void *p, size_t bytes)
{
    if (p) atomic_fetch_sub(&copies, bytes);
    tn__mem_put(p, bytes);
}

void tn_set_packing_limit(size_t bytes)
{
    void (*const drop)(void) = atomic_load(&drop_copies);
    atomic_store(&copies_limit, bytes), atomic_store(&no_copies, false);
    if (drop && atomic_load(&copies) > bytes) drop();
}

void tn__mem_spare(bool (*free_some)(void)) { atomic_store(&free_spare, free_some); }

void *tn__mem_get(size_t bytes)
{
    void *p = tn__mem_try(bytes);
    if (p || (frees_copies() && (p = tn__mem_try(bytes)))) return p;
    bool (*const free_some)(void) = atomic_load(&free_spare);
    if (free_some && free_some() && (p = tn__mem_try(bytes))) return p;
    size_t limit = atomic_load_explicit(&memory_limit, memory_order_relaxed);
    size_t now = at_least_0(own_live()), most = atomic_load(&refused);
    if (limit && (now > limit || bytes > limit - now)) {
        while (now + bytes > most && !atomic_compare_exchange_weak(&refused, &most, now + bytes)) continue;
        tn_raise(
            TN_ENOMEM,
            "out of memory: %zu more bytes would exceed the limit of %zu that tn_set_memory_limit set, %zu are in use",
            bytes, limit, now);
    } else tn_raise(TN_ENOMEM, "out of memory: the system could not provide %zu bytes (%zu are in use)", bytes, now);
    return NULL;
}

void *tn__mem_zeroed(size_t bytes)
{
    void *p = tn__mem_get(bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void tn__mem_put(void *p, size_t bytes)
{
    if (!p) return;
    subtract_live(counted(bytes));
    put_away(p, class_of(bytes));
}

/* A struct in the quarantine stays readable: a call may read the dtype of a freed tensor before it raises. */
void tn__mem_retire(tn__object *o, size_t bytes)
{
    const int    c = (int)((bytes - 1) / 64); /* as class_of does for small structs */
    const size_t n = (size_t)(c + 1) * 64;
    block       *b = (block *)(void *)o, **place = &cache.ended[cache.at++ % QUARANTINE], *old = *place;
    cache.live -= counted(bytes);
    if (!may_wait(--cache.tensors, UNREPORTED_TENSORS) || cache.live <= -UNREPORTED_BYTES) report();
    if (__builtin_expect(cache.bytes + n > atomic_load_explicit(&cache_limit, memory_order_relaxed) || !cache.ends,
                         0)) {
        give_back(b, n);
        return;
    }
    atomic_store_explicit(&o->refs, TN__FREED, memory_order_relaxed);
    o->serial = 0;
    *place = b, cache.class = c, cache.bytes += n;
    if (!TENON_CACHE && old) give_back(old, n), cache.bytes -= n;
    if (!TENON_CACHE || !old) return;
    old->next = cache.free[c];
    cache.free[c] = old;
    HIDE(old + 1, n - sizeof *old);
}

void tn__mem_put_later(void *p, size_t bytes)
{
    const int c = class_of(bytes), i = (int)(cache.next_kept++ % QUARANTINE), old = cache.kept[i].class;
    block    *b = cache.kept[i].at;
    cache.kept[i].at = NULL;
    if (b) cache.bytes -= class_bytes(old), put_away(b, old);
    if (!p) return;
    subtract_live(counted(bytes));
    if (cache.bytes + class_bytes(c) > atomic_load_explicit(&cache_limit, memory_order_relaxed) || !cache.ends) {
        give_back(p, class_bytes(c));
        return;
    }
    cache.kept[i].at = p, cache.kept[i].class = c;
    cache.bytes += class_bytes(c);
}

void *tn_mem_get(size_t bytes) { return tn__mem_zeroed(bytes); }
void  tn_mem_put(void *p, size_t bytes) { tn__mem_put(p, bytes); }

bool tn__mem_grow(void **p, size_t old_bytes, size_t bytes)
{
    void *q = tn__mem_get(bytes);
    if (!q) return false;
    if (*p) memcpy(q, *p, old_bytes);
    tn__mem_put(*p, old_bytes);
    *p = q;
    return true;
}

char *tn__strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char  *p = tn__mem_get(n);
    if (p) memcpy(p, s, n);
    return p;
}
void tn__strfree(char *s)
{
    if (s) tn__mem_put(s, strlen(s) + 1);
}

tn_memory tn_memory_now(void)
{
    return (tn_memory){.live = at_least_0(report()),
                       .peak = at_least_0(peak),
                       .cached = cache.bytes,
                       .limit = memory_limit,
                       .packed = copies,
                       .mallocs = mallocs,
                       .tensors = tensors};
}
void tn_reset_peak(void) { atomic_store(&peak, report()); }
void tn_set_memory_limit(size_t bytes) { tn__mem_limit(bytes, bytes); }
void tn__mem_limit(size_t live_bytes, size_t held_bytes)
{
    atomic_store(&memory_limit, live_bytes), atomic_store(&held_limit, held_bytes), atomic_store(&no_copies, false);
    report();
    if (above_limit(0)) tn_trim();
}
void tn_set_cache_limit(size_t bytes)
{
    atomic_store(&cache_limit, bytes);
    if (cache.bytes > bytes) tn_trim();
}

tn_status tn_set_allocator(const tn_allocator *a)
{
    if (tn__blocked()) return tn__self.error;
    if (a && (!a->alloc || !a->free)) return tn_raise(TN_EINVAL, "tn_set_allocator: alloc and free must both be set");
    if (tn__self.stack && !tn__self.top) { /* the empty scope stack is not in use */
        tn__mem_put(tn__self.stack, tn__self.capacity * sizeof *tn__self.stack);
        tn__self.stack = NULL, tn__self.capacity = 0;
    }
    tn_trim();
    if (atomic_load(&held))
        return tn_raise(TN_ESTATE,
                        "tn_set_allocator: %zu bytes of the old allocator are still in use; set the allocator before "
                        "the library allocates, or after everything is freed (and other threads' caches trimmed)",
                        atomic_load(&held));
    allocator = a ? *a : (tn_allocator){default_alloc, default_free, NULL};
    return TN_OK;
}
