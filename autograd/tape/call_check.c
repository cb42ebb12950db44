/* call_check.c — checks that an op is filled in correctly and that the lists of a call fit it. */
#include "autograd/tape/call.h"

enum { MOST_RESULTS = 255 };

tn_status tn__check_op(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out)
{
    if (!op || !op->name) return tn_raise(TN_EINVAL, "tn_op_call: the op is NULL or has no name");
    if (nin < 0) return tn_raise(TN_EINVAL, "%s: the number of inputs is %d", op->name, nin);
    if (nin && !in) return tn_raise(TN_EINVAL, "%s: the list of %d inputs is NULL", op->name, nin);
    if (nout < 1 || nout > MOST_RESULTS)
        return tn_raise(TN_EINVAL, "%s: %d results were requested; an op has 1 to %d", op->name, nout, MOST_RESULTS);
    if (!out) return tn_raise(TN_EINVAL, "%s: the list of results, out, is NULL", op->name);
    if (op->size != sizeof(tn_op)) {
        if (!op->size) return tn_raise(TN_EINVAL, "%s: the op's field .size is 0; set .size = sizeof(tn_op)", op->name);
        return tn_raise(TN_EUNSUPPORTED,
                        "%s: its tn_op has %zu bytes, this library's has %zu: it was compiled for another version",
                        op->name, op->size, sizeof(tn_op));
    }
    if (op->inputs != TN_ANY && op->inputs != nin)
        return tn_raise(TN_EINVAL, "%s: takes %d inputs, got %d", op->name, op->inputs, nin);
    if (op->outputs != TN_ANY && nout != (op->outputs ? op->outputs : 1))
        return tn_raise(TN_EINVAL, "%s: has %d results, %d were requested", op->name, op->outputs ? op->outputs : 1,
                        nout);
    if (!op->infer || !(op->forward || op->compose))
        return tn_raise(TN_EINVAL, "%s: the op has no .infer or no .forward", op->name);
    return TN_OK;
}
