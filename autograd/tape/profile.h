/* profile.h — the data of a profile, and the calls by which the tape times ops. Private to autograd/.
 *
 * The time of an op includes all that it calls. An op inside an op, forward or backward, is an event of the trace but
 * not a row of the table, so that no time is counted twice. The time of a span excludes what is inside it. */
#ifndef TENON_AUTOGRAD_TAPE_PROFILE_H
#define TENON_AUTOGRAD_TAPE_PROFILE_H

#include "autograd/tape/tape.h"

typedef enum { TN__TIMED_OP, TN__TIMED_SPAN, TN__TIMED_INNER } tn__timed_kind;

typedef struct {
    char          *module, *name; /* owned */
    uint64_t       hash;
    tn__timed_kind kind;
    int64_t        calls[2], ns[2], bytes[2]; /* forward, backward */
} tn__timing;

typedef struct {
    int32_t entry; /* index in tn_profile.entry; -1: out of memory */
    bool    backward;
    int64_t start, ns;
} tn__timed_event;

enum { TN__PROFILE_DEPTH = 64, TN__PROFILE_EVENTS = 1 << 20 };

struct tn_profile {
    uint64_t thread;
    bool     open;
    int64_t  began, ns; /* time of the begin; duration */
    char    *trace;     /* path from TENON_PROFILE for the trace, owned; or NULL */
    bool     by_bytes;  /* the tables are in the order of bytes, not of time */

    tn__timing *entry;
    int32_t    *table; /* open addressing, 2 · capacity places: 1 + the entry's index, 0 empty */
    int64_t     entries, capacity;

    tn__timed_event *event;
    int64_t          events, event_capacity, lost; /* lost: out of memory, or beyond TN__PROFILE_EVENTS */

    struct {
        tn__timed_event e;
        int64_t         inside; /* ns of the ops and spans inside it */
    } open_calls[TN__PROFILE_DEPTH];
    int depth; /* may exceed TN__PROFILE_DEPTH; deeper levels are not timed */
};

/* Called before and after an op or span, if tn__tape.profile is set. module: NULL for the current path. */
void tn__timed_begin(const char *module, const char *name, tn__timed_kind kind, bool backward);
void tn__timed_end(void);
/* Counts n tensors as read or written by the innermost op; NULLs are omitted. Without a profile it does nothing. */
void tn__timed_bytes(int n, tn_tensor *const *t);

#endif
