/* replaced.h — tensors that ops use in place of others. Private to autograd/. */
#ifndef TENON_AUTOGRAD_TAPE_REPLACED_H
#define TENON_AUTOGRAD_TAPE_REPLACED_H

#include "autograd/tape/tape.h"

/* The replacements of one tn_functional_begin: mode.replaced is the innermost. None is itself replaced by `outer`. */
typedef struct tn__replaced {
    const struct tn__replaced *outer;
    int                        n;
    tn_tensor *const *of, *const *by;
} tn__replaced;

tn_tensor *tn__replacement(tn_tensor *t); /* what ops use in place of t, or t */
/* Appends all active replacements to of and by, if they are not NULL; returns their number. */
int tn__replaced_list(tn_tensor **of, tn_tensor **by);
/* call.c's call with the replacements of its inputs. */
tn_status tn__call_replaced(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out, const void *args,
                            bool inplace);

#endif
