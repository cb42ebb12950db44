/* thread.h — the state of a thread: its standing error, its scope stack, its modes, its generator (thread.c). Every
 * call reads the first two cache lines of it. */
#ifndef TENON_CORE_BASE_THREAD_H
#define TENON_CORE_BASE_THREAD_H

#include "core/base/object.h"
#include "core/core.h"

/* One reference to a tensor that a scope owns; object NULL: it was taken out. */
typedef struct {
    tn__object *object;
    uint32_t    serial;
} tn__owned;

enum { TN__PATH_MAX = 64 };

/* What a thread leaves behind when it ends, in the order in which it goes: each may give memory to the next. */
typedef enum { TN__END_SCOPES, TN__END_CASTS, TN__END_MEMORY, TN__ENDS } tn__end;

typedef struct {
    tn_status     error;   /* first, as every call reads it */
    tn_mode       mode;    /* what scopes put back and parallel loops pass on */
    uint64_t      skipped; /* calls refused since the error */
    tn__owned    *stack;   /* the scope stack */
    size_t        top, capacity;
    const char   *path[TN__PATH_MAX];
    int           path_depth; /* may exceed TN__PATH_MAX: the rest is counted, not named */
    int           threads;    /* tn_set_threads, 0: default */
    int64_t       shrink;    /* for tests: grains are divided by it, so that small tensors are shared out too; 0: off */
    tn_generator *generator; /* in use; NULL: own */
    tn_generator  own;
    uint32_t      made;  /* serial numbers given out */
    uint64_t      id;    /* of this thread; 0: none was needed yet */
    tn__object   *casts; /* autocast's copies of weights: they go with its scope */
    void (*at_end[TN__ENDS])(void);
} tn__thread;
extern _Thread_local tn__thread tn__self;

uint64_t tn__thread_id(void);
/* Has a function called once when this thread ends, by the file that leaves something behind: thread.c, which all stand
 * on, calls none of them by name. */
void tn__at_thread_end(tn__end which, void (*end)(void));

/* At the head of every call that the standing error must stop: counts the call as skipped. */
static inline bool tn__blocked(void)
{
    if (__builtin_expect(tn__self.error == TN_OK, 1)) return false;
    tn__self.skipped++;
    return true;
}

/* Ends what tn_error_push began, as tn_error_pop does; but where no error was put aside, one raised since stays. */
static inline void tn__error_first(const tn_error_state *aside)
{
    if (aside->code != TN_OK) tn_error_pop(aside);
}

void tn__drop_owned(size_t mark); /* ends what the stack holds from there on */

/* A scope in which uniform and normal draws leave the contents undefined and move no generator: around the making of a
 * module all of whose numbers are read from a file next, and around that: tn_load then takes over what it has read,
 * rather than copy it. It ends with tn_scope_end. */
tn_scope tn__blank_begin(void);

/* Gives an owned reference to the open scope (scope.c); on failure drops it and returns NULL. */
tn_tensor *tn__scoped(tn_tensor *t);

#endif
