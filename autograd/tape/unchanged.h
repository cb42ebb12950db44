/* unchanged.h — the parameters used by a function that runs again in the backward, which must not change until then.
 * Private to autograd/. */
#ifndef TENON_AUTOGRAD_TAPE_UNCHANGED_H
#define TENON_AUTOGRAD_TAPE_UNCHANGED_H

#include "autograd/tape/tape.h"

/* The leaves used by a function that will run again. With nested lists, a use is added to all of them. */
typedef struct tn__used {
    struct tn__used *outer;
    tn__saved       *list; /* owns its tensors */
    size_t           count, room;
} tn__used;

void tn__used_begin(tn__used *u); /* u: zeroed, or from an earlier begin */
void tn__used_end(const tn__used *u);
bool tn__used_add(int n, tn_tensor *const *in); /* adds the leaves in an op's inputs to tn__tape.used; false: raised */
/* True if no leaf has changed since it was used; false: raised. caller: the tn_ function that ran the caller's
 * function. */
bool tn__used_unchanged(const tn__used *u, const char *caller);
void tn__used_free(tn__used *u);

#endif
