/* q8.c — checks for ops whose weights are stored in 8 bits or f16. */
#include "autograd/rooms/q8.h"

bool tn__need_q8(const tn_ctx *c, int i, tn__q8 *w)
{
    const tn_tensor *t = c->in[i];
    char             text[300];
    if (tn__q8_of(t, w)) return true;
    return tn_infer_fail(c, TN_EDTYPE,
                         "weight is %s %s, but must be stored in 8 bits or f16; pack it with tn_q8_pack or tn_f16_pack",
                         tn_dtype_name(t->dtype), tn__describe(t, text, sizeof text));
}
