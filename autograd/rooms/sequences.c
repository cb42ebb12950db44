/* sequences.c — unpadded batches: sequences one after another, divided by offsets (sequences.h). */
#include "autograd/rooms/sequences.h"
#include "core/products/attention.h"

int64_t tn__longest_of(const tn_tensor *offsets)
{
    return tn__longest_sequence(tn__ptr(offsets), offsets->l.shape.d[0] - 1);
}

bool tn__infer_offsets(const tn_ctx *c, int which, const char *name, int64_t rows)
{
    const tn_tensor *t = c->in[which];
    char             text[192];
    if (t->dtype != TN_I64 || t->l.shape.n != 1 || t->l.shape.d[0] < 1 || !tn__layout_contiguous(&t->l))
        return tn_infer_fail(c, TN_ESHAPE, "%s must be contiguous i64 [sequences + 1], got %s %s", name,
                             tn_dtype_name(t->dtype), tn_shape_text(t->l.shape, text, sizeof text));
    const int64_t *at = tn__ptr(t), n = t->l.shape.d[0] - 1;
    for (int64_t i = 0; i < n; i++)
        if (at[i + 1] < at[i])
            return tn_infer_fail(c, TN_EINDEX, "%s must not decrease, but element %lld is %lld after %lld", name,
                                 (long long)i + 1, (long long)at[i + 1], (long long)at[i]);
    if (at[0] != 0 || at[n] != rows)
        return tn_infer_fail(c, TN_EINDEX, "%s go from %lld to %lld, but must go from 0 to %lld, the number of rows",
                             name, (long long)at[0], (long long)at[n], (long long)rows);
    return true;
}

bool tn__infer_padded_rows(const tn_ctx *c, int which, int64_t rows, int64_t length)
{
    const tn_tensor *t = c->in[which];
    char             text[192];
    if (!t) return !length || tn_infer_fail(c, TN_EINVAL, "length is %lld, but rows is NULL", (long long)length);
    if (t->dtype != TN_I64 || t->l.shape.n != 1 || t->l.shape.d[0] != rows || !tn__layout_contiguous(&t->l))
        return tn_infer_fail(c, TN_ESHAPE, "rows must be contiguous i64 [%lld], one index for each row; got %s %s",
                             (long long)rows, tn_dtype_name(t->dtype), tn_shape_text(t->l.shape, text, sizeof text));
    const int64_t *at = tn__ptr(t), width = c->in[0]->l.shape.n ? c->in[0]->l.shape.d[c->in[0]->l.shape.n - 1] : 1;
    int64_t        all;
    if (length < 1 || !tn__mul_i64(length, width, &all))
        return tn_infer_fail(c, TN_EINVAL, "length is %lld, which is not the number of rows of a sequence",
                             (long long)length);
    for (int64_t i = 0; i < rows; i++)
        if (at[i] < 0 || !tn__mul_i64(at[i] + 1, width, &all))
            return tn_infer_fail(c, TN_EINDEX, "row %lld is %lld, which is not the index of a row", (long long)i,
                                 (long long)at[i]);
    return true;
}

tn_tensor *tn__sequences_mask(const tn_tensor *offsets, const tn_tensor *key_offsets, bool causal, int64_t window)
{
    const int64_t *q = tn__ptr(offsets), *k = tn__ptr(key_offsets), n = offsets->l.shape.d[0] - 1;
    tn_tensor     *mask = tn_ones_of(TN_BOOL, TN_SHAPE(q[n], k[n]));
    uint8_t       *to = mask ? tn__ptr(mask) : NULL;
    for (int64_t i = 0; to && i < n; i++)
        for (int64_t t = q[i]; t < q[i + 1]; t++)
            for (int64_t s = k[i]; s < k[i + 1]; s++) {
                const int64_t distance = t - q[i] - (s - k[i]); /* from the key to the query, in their sequence */
                to[t * k[n] + s] = (causal && distance < 0) || (window && (distance >= window || -distance >= window));
            }
    return mask;
}
