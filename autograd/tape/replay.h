/* replay.h — how a call of an op is added to the replay that is being recorded. Private to autograd/. */
#ifndef TENON_AUTOGRAD_TAPE_REPLAY_H
#define TENON_AUTOGRAD_TAPE_REPLAY_H

#include "autograd/tape/tape.h"

/* Adds a call that has computed its results; in: the inputs that forward read (other ones than c->in if some had to be
 * copied for an in-place call). Raises if the call cannot be repeated. */
void tn__replay_add(const tn_ctx *c, tn_tensor *const *in, bool inplace);

#endif
