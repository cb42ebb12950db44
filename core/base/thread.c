/* thread.c — the state of each thread: its location, and what is freed at the thread's end. */
#include "core/system/system.h"

#include "core/base/thread.h"

_Thread_local tn__thread tn__self;

static pthread_key_t     key;
static pthread_once_t    once = PTHREAD_ONCE_INIT;
static _Atomic(bool)     have_key;
static _Atomic(uint64_t) last_id;

static void thread_end(void *self)
{
    (void)self;
    tn__self.id = 0; /* if anything is created after this, thread_end is called again */
    for (int i = 0; i < TN__ENDS; i++) {
        void (*end)(void) = tn__self.at_end[i];
        tn__self.at_end[i] = NULL;
        if (end) end();
    }
}
static void make_key(void) { have_key = pthread_key_create(&key, thread_end) == 0; }

uint64_t tn__thread_id(void)
{
    if (tn__self.id) return tn__self.id;
    pthread_once(&once, make_key);
    if (have_key) pthread_setspecific(key, &tn__self);
    return tn__self.id = atomic_fetch_add(&last_id, 1) + 1;
}

void tn__at_thread_end(tn__end which, void (*end)(void))
{
    tn__thread_id();
    tn__self.at_end[which] = end;
}

/* The key is made before the first use of a thread's variable: MinGW frees these variables by a key of its own, and a
 * thread calls the destructors in the order of the keys. */
__attribute__((constructor)) static void library_start(void)
{
    pthread_once(&once, make_key);
    tn__self.loader = tn__self.seeded = true;
}

/* The main thread has no exit callback, and an unloaded library must not be called back. Other threads may still run
 * here: main has returned without freeing their resources. */
__attribute__((destructor)) static void library_end(void)
{
    if (tn__self.id) thread_end(NULL);
    if (atomic_exchange(&have_key, false)) pthread_key_delete(key);
}
