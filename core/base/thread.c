/* thread.c — the state of each thread: where it lives, and what ends with it. */
#include "core/base/memory.h"
#include "core/base/thread.h"

#include <pthread.h>

_Thread_local tn__thread tn__self;

static pthread_key_t     key;
static pthread_once_t    once = PTHREAD_ONCE_INIT;
static bool              have_key;
static _Atomic(uint64_t) last_id;

static void thread_end(void *self)
{
    (void)self;
    while (tn__self.top) tn__object_drop(tn__self.stack[--tn__self.top]);
    tn__object_drop(tn__self.casts);
    tn__self.casts = NULL;
    tn__mem_put(tn__self.stack, tn__self.capacity * sizeof *tn__self.stack);
    tn__self.stack = NULL, tn__self.capacity = 0;
    tn__cache_free();
    tn__self.id = 0; /* what is dropped from here on is not kept; and if more is made, this is called again */
}
static void make_key(void) { have_key = pthread_key_create(&key, thread_end) == 0; }

uint64_t tn__thread_id(void)
{
    if (!tn__self.id) tn__thread_touch();
    return tn__self.id;
}

void tn__thread_touch(void)
{
    if (tn__self.id) return;
    tn__self.id = atomic_fetch_add(&last_id, 1) + 1;
    pthread_once(&once, make_key);
    if (have_key) pthread_setspecific(key, &tn__self);
}

/* The main thread has no end of its own, and an unloaded library must not be called back. */
__attribute__((destructor)) static void library_end(void)
{
    if (tn__self.id) thread_end(NULL);
    if (have_key) pthread_key_delete(key), have_key = false;
}
