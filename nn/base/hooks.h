/* hooks.h — hooks around tn_call (hooks.c, run_hooks.c). Private to nn/. */
#ifndef TENON_NN_BASE_HOOKS_H
#define TENON_NN_BASE_HOOKS_H

#include "nn/base/nn_private.h"

typedef struct tn__hook {
    struct tn__hook *next;
    tn_before_hook   before; /* one of before and after is set; the other is NULL */
    tn_after_hook    after;
    void            *user;
} tn__hook;

tn_tensor *tn__hooks_before(tn_module *m, tn_tensor *x);
tn_tensor *tn__hooks_after(tn_module *m, tn_tensor *x, tn_tensor *y);
void       tn__hooks_sweep(const tn_module *m); /* frees hooks that were removed while hooks ran */
void       tn__hooks_free(tn__hook *h);         /* frees the list */

#endif
