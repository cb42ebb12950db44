/* call.h — the state of one call of an op, shared by call.c and the files of its features. Private to them. */
#ifndef TENON_AUTOGRAD_TAPE_CALL_H
#define TENON_AUTOGRAD_TAPE_CALL_H

#include "autograd/tape/tape.h"

#include <errno.h>

enum { TN__FEW = 8 }; /* lists of up to TN__FEW inputs and results are inside tn__call: a usual call allocates none */

typedef struct {
    tn_ctx     c;
    bool       inplace; /* result 0 is written over input 0 */
    bool       record;  /* an input requires grad */
    bool      *need;    /* [nin]: inputs that require grad */
    bool       need_few[TN__FEW];
    tn_result  result_few[TN__FEW];
    tn_tensor *cast_few[TN__FEW], **cast; /* the inputs as converted by autocast; cast: on the heap, or NULL */
} tn__call;

/* call_inplace.c: raises if result 0 cannot be written over input 0; allocates copies, records, computes, links. */
tn_status tn__check_target(const tn_ctx *c);
void      tn__run_inplace(const tn__call *o);
/* autocast.c: converts the inputs as the op's .autocast states; the conversions are recorded. */
tn_status tn__autocast(tn__call *o);

/* Runs the forward on c. It is not recorded when it calls ops or writes elements, and may write to a tensor on the
 * tape. */
static inline tn_status tn__compute(tn_ctx c)
{
    const bool     no_grad = tn__self.mode.no_grad;
    const uint16_t replay = tn__self.mode.replay;
    const int      keep = errno; /* the C library's f64 functions set errno */
    tn__self.mode.no_grad = true, tn__self.mode.replay = 0;
    c.op->forward(&c);
    tn__self.mode.no_grad = no_grad, tn__self.mode.replay = replay;
    errno = keep;
    return tn__self.error;
}

#endif
