/* unwind.h — a C++ exception out of a callback. It passes through Tenon's functions without running their last lines;
 * the library is compiled with -fexceptions, so that functions with a TN__UNWINDS variable restore the thread's state.
 * The owner of the open tensors is the scope around the call, as after a return. */
#ifndef TENON_AUTOGRAD_TAPE_UNWIND_H
#define TENON_AUTOGRAD_TAPE_UNWIND_H

#include "autograd/tape/tape.h"

typedef struct {
    tn_mode                mode;
    int                    path, inside;
    tn_generator          *generator;
    struct tn__engine_run *running;
    struct tn__used       *used;
    struct tn_budget      *budget;
} tn__unwind;

static inline tn__unwind tn__unwind_begin(void)
{
    return (tn__unwind){tn__self.mode,    tn__self.path_depth, tn__tape.inside, tn__self.generator,
                        tn__tape.running, tn__tape.used,       tn__tape.budget};
}

/* After a normal return it changes nothing: the function has restored the same values. */
static inline void tn__unwind_end(const tn__unwind *u)
{
    tn__self.mode = u->mode, tn__self.path_depth = u->path, tn__self.generator = u->generator;
    tn__tape.inside = u->inside, tn__tape.running = u->running, tn__tape.used = u->used;
    tn__tape.budget = u->budget;
}
#define TN__UNWINDS __attribute__((cleanup(tn__unwind_end), unused)) const tn__unwind

/* Memory of tn_mem_get that is freed when the function ends, also by an exception. */
typedef struct {
    void  *at;
    size_t bytes;
} tn__held;
static inline void tn__held_end(const tn__held *h) { tn_mem_put(h->at, h->bytes); }
#define TN__HOLDS __attribute__((cleanup(tn__held_end), unused)) const tn__held

#endif
