/* masks.c — the causal mask, the padding mask, and the check of attention masks. */
#include "nn/attention/block.h"

#include <math.h>
#include <string.h>

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
    if (!tn__not_null("tn_padding_mask", "tokens", tokens)) return NULL;
    if (tn_dtype_of(tokens) != TN_I64 && tn_dtype_of(tokens) != TN_I32)
        return tn_raise_null(TN_EDTYPE, "tn_padding_mask: tokens must be indices, i64 or i32, got %s",
                             tn_dtype_name(tn_dtype_of(tokens)));
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *index = tn_zeros_of(TN_I64, TN_SCALAR);
    tn_set_i64(index, 0, padding);
    return tn_scope_return(s, tn_eq(tokens, index));
}

/* A mask with heads has the heads that m was created with. */
bool tn__mha_mask(const tn_mha *m, int64_t batch, int64_t queries, int64_t keys, tn_tensor **attn_mask)
{
    const tn_shape s = tn_shape_of(*attn_mask);
    const int      n = s.n;
    const tn_dtype dt = tn_dtype_of(*attn_mask);
    if (dt != TN_BOOL && !tn_dtype_is_float(dt))
        return tn_raise_false(
            TN_EDTYPE,
            "mha: attn_mask is %s, but must be bool (true: may not be attended to) or floating (added to the "
            "scores)",
            tn_dtype_name(dt));
    const int64_t heads = m->made_heads;
    bool          ok = n >= 2 && n <= 4 && s.d[n - 2] == queries && s.d[n - 1] == keys;
    if (ok && n == 3) ok = s.d[0] == batch * heads;
    if (ok && n == 4) ok = (s.d[0] == 1 || s.d[0] == batch) && (s.d[1] == 1 || s.d[1] == heads);
    if (!ok)
        return tn__wrong_shape("mha", "attn_mask", *attn_mask,
                               "[T, S] = [%lld, %lld], or [B·heads, T, S] with B·heads = %lld, or [B, heads, T, S]",
                               (long long)queries, (long long)keys, (long long)(batch * heads));
    if (n == 3) *attn_mask = tn_reshape(*attn_mask, TN_SHAPE(batch, heads, queries, keys));
    return tn_error() == TN_OK;
}

bool tn__first_masks(tn_tensor *mask, int64_t each, tn_tensor **first)
{
    const tn_shape s = tn_shape_of(mask);
    *first = mask;
    if (!mask || s.n != 2 || s.d[0] % each || tn_dtype_of(mask) != TN_BOOL || !tn_is_contiguous(mask)) return !mask;
    const uint8_t *p = tn_data(mask);
    const size_t   row = (size_t)s.d[1];
    for (int64_t i = 1; p && i < s.d[0]; i++)
        if (i % each && memcmp(p + (size_t)i * row, p + (size_t)(i - i % each) * row, row)) return false;
    *first = tn_select(tn_reshape(mask, TN_SHAPE(s.d[0] / each, each, s.d[1])), 1, 0);
    return p != NULL;
}
