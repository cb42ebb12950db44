/* masks.c — the causal mask and the padding mask. */
#include "nn/attention.h"
#include "nn/base/nn_private.h"

#include <math.h>

tn_tensor *tn_causal_mask(int64_t length)
{
    if (tn__blocked()) return NULL;
    if (length < 0)
        return tn_raise_null(TN_EINVAL, "tn_causal_mask: length is %lld, but must not be negative", (long long)length);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *at = tn_arange(length), *late = tn_gt(at, tn_unsqueeze(at, 1)); /* [T, T]: key > query */
    return tn_scope_return(s, tn_masked_fill(tn_zeros(TN_SHAPE(length, length)), late, -HUGE_VAL));
}

tn_tensor *tn_padding_mask(tn_tensor *tokens, int64_t padding)
{
    if (tn__blocked()) return NULL;
    if (!tokens) return tn_raise_null(TN_EINVAL, "tn_padding_mask: tokens is NULL");
    if (tn_dtype_of(tokens) != TN_I64 && tn_dtype_of(tokens) != TN_I32)
        return tn_raise_null(TN_EDTYPE, "tn_padding_mask: tokens must be indices, i64 or i32, got %s",
                             tn_dtype_name(tn_dtype_of(tokens)));
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *index = tn_zeros_of(TN_I64, TN_SCALAR);
    tn_set_i64(index, 0, padding);
    return tn_scope_return(s, tn_eq(tokens, index));
}
