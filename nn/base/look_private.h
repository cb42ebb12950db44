/* look_private.h — how modules pass their tensors to active tn_looks (look.c). Private to nn/. */
#ifndef TENON_NN_BASE_LOOK_PRIVATE_H
#define TENON_NN_BASE_LOOK_PRIVATE_H

#include "core/base/toolbox.h"
#include "nn/module.h"

/* True if this thread has active tn_looks. The functions below are called only then. */
static inline bool tn__look_active(void) { return __builtin_expect(tn__self.mode.look != 0, 0); }
/* Passes t to the looks that want it, which record it; returns t or the tensor by which a look replaces it. Its path is
 * the current module path, with `.part` appended unless part is NULL (a module's result). */
tn_tensor *tn__look(const char *part, tn_tensor *t);
tn_tensor *tn__look_result(const tn_frame *f, tn_tensor *y); /* the same for the result of a frame (forward.c) */
/* Whether a look wants that part of the current module: not at all, to record it, or to change it or get its
 * gradient. */
typedef enum { TN__NOT_WANTED = 0, TN__WANTED, TN__WANTED_TO_ACT } tn__wanted;
tn__wanted tn__look_wants(const char *part);

#endif
