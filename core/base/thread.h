/* thread.h — the state of a thread: its error, scope stack, modes and generator (thread.c). Every call reads the first
 * two cache lines of it. */
#ifndef TENON_CORE_BASE_THREAD_H
#define TENON_CORE_BASE_THREAD_H

#include "core/base/object.h"
#include "core/core.h"

/* One reference to a tensor that a scope owns; object NULL: it was removed. */
typedef struct {
    tn__object *object;
    uint32_t    serial;
} tn__owned;

enum { TN__PATH_MAX = 64 };

/* The resources freed at a thread's end, in the order of freeing: each may free memory into the next. */
typedef enum { TN__END_TEAM, TN__END_SCOPES, TN__END_CASTS, TN__END_MEMORY, TN__ENDS } tn__end;

typedef struct {
    tn_status     error;   /* first, because every call reads it */
    tn_mode       mode;    /* scopes restore it, and parallel loops pass it on to workers */
    uint64_t      skipped; /* calls skipped since the error */
    tn__owned    *stack;   /* the scope stack */
    size_t        top, capacity;
    const char   *path[TN__PATH_MAX];
    int           path_depth; /* may exceed TN__PATH_MAX: the rest is counted but not named */
    int           threads;    /* tn_set_threads, 0: default */
    int           usual;      /* the default as this thread knows it, 0: not yet */
    bool          value_read; /* while a replay is recorded: the last infer has read values of tensors */
    unsigned      calls;      /* of ops; some calls read the limits of the default again */
    int64_t       shrink;     /* for tests: divides grains, so that small tensors use several threads; 0: off */
    tn_generator *generator;  /* in use; NULL: own */
    tn_generator  own;
    bool          loader; /* this thread loaded the library: its seed is the process's */
    bool          seeded; /* own has its seed */
    uint32_t      made;   /* number of serial numbers assigned */
    uint64_t      id;     /* of this thread; 0: not needed yet */
    tn__object   *casts;  /* autocast's copies of weights, freed with its scope */
    void (*at_end[TN__ENDS])(void);
} tn__thread;
extern _Thread_local tn__thread tn__self;

uint64_t tn__thread_id(void);
/* Registers a function that is called once when this thread ends. Files with per-thread resources register themselves:
 * thread.c, the lowest layer, names none of them. */
void tn__at_thread_end(tn__end which, void (*end)(void));

/* Called first by every call that an error must stop: true, and counts the call as skipped, if an error is set. */
static inline bool tn__blocked(void)
{
    if (__builtin_expect(tn__self.error == TN_OK, 1)) return false;
    tn__self.skipped++;
    return true;
}

/* Ends tn_error_push as tn_error_pop does, except that an error raised since then stays if none was set before. */
static inline void tn__error_first(const tn_error_state *aside)
{
    if (aside->code != TN_OK) tn_error_pop(aside);
}

void tn__drop_owned(size_t mark); /* drops the references on the stack from mark up */

/* Begins a scope in which uniform and normal leave their results undefined and move no generator. Use it around
 * constructing a module all of whose elements are then read from a file, and around that reading: tn_load then takes
 * over the tensors it has read instead of copying them. End it with tn_scope_end. */
tn_scope tn__blank_begin(void);

/* Passes an owned reference to the open scope (scope.c); on failure drops it and returns NULL. */
tn_tensor *tn__scoped(tn_tensor *t);
/* tn_take from the scopes that begin at mark or later. */
tn_tensor *tn__take_above(size_t mark, tn_tensor *t);

#endif
