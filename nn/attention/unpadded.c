/* unpadded.c — batches without their padding: the rows of the sequences, one after another. */
#include "nn/attention/block.h"
#include "nn/base/look_private.h"

tn_unpadded tn_unpad(tn_tensor *padding)
{
    tn_unpadded u = {.batch = 0};
    if (tn__blocked() || !tn__not_null("tn_unpad", "padding", padding)) return u;
    const tn_shape s = tn_shape_of(padding);
    if (s.n != 2 || tn_dtype_of(padding) != TN_BOOL)
        return tn__unexpected("tn_unpad", padding, true, "the padding mask must be bool [B, T] (true: padding)"), u;
    const tn_scope scope = tn_no_grad_begin();
    const uint8_t *is_padding = tn_data(tn_contiguous(padding));
    int64_t        n = 0;
    for (int64_t i = 0; is_padding && i < s.d[0] * s.d[1]; i++) n += !is_padding[i];
    tn_tensor *list[2] = {tn_zeros_of(TN_I64, TN_SHAPE(s.d[0] + 1)), tn_zeros_of(TN_I64, TN_SHAPE(n))};
    int64_t   *offset = tn_data_mut(list[0]), *row = tn_data_mut(list[1]), at = 0;
    u.in_order = true;
    for (int64_t b = 0; is_padding && tn_error() == TN_OK && b < s.d[0]; b++) {
        const uint8_t *p = is_padding + b * s.d[1];
        for (int64_t t = 0; t < s.d[1]; t++) {
            if (p[t]) continue;
            if (t && p[t - 1]) u.in_order = false;
            row[at++] = b * s.d[1] + t;
        }
        if (s.d[1] && p[0] && at > offset[b]) u.in_order = false;
        offset[b + 1] = at;
    }
    tn_scope_return_list(scope, 2, list);
    if (tn_error() != TN_OK) return (tn_unpadded){.batch = 0};
    u.offsets = list[0], u.rows = list[1], u.batch = s.d[0], u.length = s.d[1];
    return u;
}

/* Raises and returns false if x's first dims are not `first` and `second`. */
static bool starts_with(const char *who, const tn_tensor *x, int64_t first, int64_t second)
{
    char text[192];
    if (!tn__not_null(who, "x", x)) return false;
    const tn_shape s = tn_shape_of(x);
    return (s.n >= 2 && s.d[0] == first && s.d[1] == second) ||
           tn_raise_false(TN_ESHAPE, "%s: x is %s, but must be [%lld, %lld, ...]", who,
                          tn_shape_text(s, text, sizeof text), (long long)first, (long long)second);
}

tn_tensor *tn_unpad_rows(tn_unpadded u, tn_tensor *x)
{
    if (tn__blocked() || !tn__not_null("tn_unpad_rows", "u.rows", u.rows)) return NULL;
    if (!starts_with("tn_unpad_rows", x, u.batch, u.length)) return NULL;
    return tn_unsqueeze(tn_index_select(tn_flatten(x, 0, 1), 0, u.rows), 0);
}

tn_tensor *tn_pad_rows(tn_unpadded u, tn_tensor *x)
{
    if (tn__blocked() || !tn__not_null("tn_pad_rows", "u.rows", u.rows)) return NULL;
    if (!starts_with("tn_pad_rows", x, 1, tn_numel(u.rows))) return NULL;
    tn_shape s = tn_shape_of(x), flat = {.n = s.n - 1};
    for (int i = 1; i < s.n; i++) flat.d[i - 1] = s.d[i];
    flat.d[0] = u.batch * u.length, s.d[0] = u.batch, s.d[1] = u.length;
    return tn_reshape(tn_index_add(tn_zeros_of(tn_dtype_of(x), flat), 0, u.rows, tn_select(x, 0, 0)), s);
}

tn_tensor *tn_skip_padding(void *m, tn_tensor *x, tn_tensor *padding, tn_unpadded *u)
{
    if (tn__blocked() || !tn__not_null("tn_skip_padding", "u", u)) return NULL;
    *u = (tn_unpadded){.batch = 0};
    if (!tn_module_ready("tn_skip_padding", m) || !tn__not_null("tn_skip_padding", "x", x)) return NULL;
    const tn_shape s = tn_shape_of(x);
    if (!padding || s.n < 2 || !tn_shape_equal(tn_shape_of(padding), TN_SHAPE(s.d[0], s.d[1])) || tn__look_active() ||
        tn__any_hooks(m))
        return x;
    const tn_unpadded of = tn_unpad(padding);
    if (tn_error() != TN_OK) return NULL;
    if (!of.in_order || tn_numel(of.rows) == s.d[0] * s.d[1]) return x;
    return *u = of, tn_unpad_rows(of, x);
}

tn_tensor *tn__unpadded_positions(const tn_unpadded *u)
{
    const tn_scope s = tn_no_grad_begin();
    const int64_t  n = tn_numel(u->rows), *row = tn_data(u->rows);
    tn_tensor     *at = tn_empty_of(TN_I64, TN_SHAPE(1, n));
    int64_t       *to = tn_data_mut(at);
    for (int64_t i = 0; to && i < n; i++) to[i] = row[i] % u->length;
    return tn_scope_return(s, at);
}

/* The index of the first of n rows that is not before this position; rows are in ascending order. */
static int64_t row_at(const int64_t *row, int64_t n, int64_t position)
{
    int64_t low = 0;
    while (n > 0) {
        const int64_t half = n / 2;
        if (row[low + half] < position) low += half + 1, n -= half + 1;
        else n = half;
    }
    return low;
}

tn_tensor *tn__target_index(const tn_unpadded *u, tn_tensor *positions)
{
    if (!u) return positions;
    const tn_scope s = tn_no_grad_begin();
    const int64_t  rows = tn_numel(u->rows), n = tn_numel(positions), *row = tn_data(u->rows),
                  *position = tn_data(tn_contiguous(positions));
    tn_tensor *at = tn_empty_of(TN_I64, TN_SHAPE(n));
    int64_t   *to = at ? tn_data_mut(at) : NULL;
    for (int64_t i = 0; to && tn_error() == TN_OK && i < n; i++) {
        to[i] = row_at(row, rows, position[i]);
        if (to[i] == rows || row[to[i]] != position[i])
            tn_raise(TN_EINVAL, "block: .targets has position %lld of the flattened batch, which is padding",
                     (long long)position[i]);
    }
    return tn_scope_return(s, tn_error() == TN_OK ? at : NULL);
}

tn_tensor *tn__target_rows(tn_tensor *x, tn_tensor *index)
{
    return tn_unsqueeze(tn_index_select(tn_flatten(x, 0, 1), 0, index), 0);
}
