/* profile.h — what is timed while a profile is open, and the marks that the tape sets. Private to autograd/.
 *
 * An op counts with all that it calls; what runs inside an op, forward or backward, is an event of the trace but no row
 * of the table, so that no time is counted twice. A span counts without what is inside it. */
#ifndef TENON_AUTOGRAD_TAPE_PROFILE_H
#define TENON_AUTOGRAD_TAPE_PROFILE_H

#include "autograd/tape/tape.h"

typedef enum { TN__TIMED_OP, TN__TIMED_SPAN, TN__TIMED_INNER } tn__timed;

typedef struct {
    char     *module, *name; /* owned; one string each */
    uint64_t  hash;
    tn__timed what;
    int64_t   calls[2], ns[2]; /* forward, backward */
} tn__timing;

typedef struct {
    int32_t entry; /* -1: there was no memory for it */
    bool    backward;
    int64_t start, ns;
} tn__timed_event;

enum { TN__PROFILE_DEPTH = 64, TN__PROFILE_EVENTS = 1 << 20 };

struct tn_profile {
    uint64_t thread;
    bool     open;
    int64_t  began, ns; /* when; how long it was open */
    char    *trace;     /* where TENON_PROFILE wants it */

    tn__timing *entry;
    int32_t    *table; /* open addressing: 1 + the entry's index, 0 empty; twice as many as entries at most */
    int64_t     entries, capacity;

    tn__timed_event *event;
    int64_t          events, event_capacity, lost; /* lost: for want of memory, or too many */

    struct {
        tn__timed_event e;
        int64_t         inside; /* ns of what ran within */
    } under_way[TN__PROFILE_DEPTH];
    int depth; /* may exceed TN__PROFILE_DEPTH; deeper levels are not timed */
};

/* Around what is timed, if tn__tape.profile is set. module: NULL for the path that is open now. */
void tn__timed_begin(const char *module, const char *name, tn__timed what, bool backward);
void tn__timed_end(void);

#endif
