/* embedding.c — Embedding and EmbeddingBag: rows of a table by index. Row `padding` is initialised to zero and gets no
 * gradient. */
#include "nn/base/nn_private.h"

#include <math.h>

/* Checks the options that both modules have, and fills in count and dim from `from`. False: raised. */
static bool check(const char *who, const tn_tensor *from, int64_t *count, int64_t *dim, int64_t padding, tn_dtype dt)
{
    char text[192];
    if (from) {
        if (tn_ndim(from) != 2 || !tn_dtype_is_float(tn_dtype_of(from)))
            return tn_raise_false(TN_ESHAPE, "%s: .from must be a floating [count, dim], got %s %s", who,
                                  tn_dtype_name(tn_dtype_of(from)),
                                  tn_shape_text(tn_shape_of(from), text, sizeof text));
        if ((*count && *count != tn_size(from, 0)) || (*dim && *dim != tn_size(from, 1)))
            return tn_raise_false(
                TN_ESHAPE, "%s: .from is %s, but .count is %lld and .dim %lld; omit them, or set them to these sizes",
                who, tn_shape_text(tn_shape_of(from), text, sizeof text), (long long)*count, (long long)*dim);
        *count = tn_size(from, 0), *dim = tn_size(from, 1);
    }
    if (!tn__at_least(who, "count", *count, 1) || !tn__at_least(who, "dim", *dim, 1) || !tn__floating(who, dt))
        return false;
    if (padding < -1 || padding >= *count)
        return tn_raise_false(TN_EINDEX, "%s: .padding is %lld, but must be from 0 to %lld, or -1 for none", who,
                              (long long)padding, (long long)*count - 1);
    return true;
}

/* The initial table: N(0, 1) with row `padding` set to zero, or an exact copy of `from`. */
static tn_tensor *table(const tn_tensor *from, int64_t count, int64_t dim, int64_t padding, tn_dtype dt)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *t = from ? tn_empty_of(dt, TN_SHAPE(count, dim)) : tn_normal_of(dt, TN_SHAPE(count, dim), 0, 1);
    if (from) tn_copy_from(t, from);
    else if (padding >= 0) tn_fill(tn_select(t, 0, padding), 0);
    return tn_scope_return(s, tn_error() == TN_OK ? t : NULL);
}

static void describe_table(int64_t count, int64_t dim, int64_t padding, char *text, size_t size)
{
    const int n = snprintf(text, size, "%lld, %lld", (long long)count, (long long)dim);
    if (padding >= 0 && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", padding_idx=%lld", (long long)padding);
}

/* ---- Embedding: one row per index ------------------------------------------------------------------------------ */

/* Dropout drops whole rows of the table, with one mask for the batch (Gal and Ghahramani 2016). */
static tn_tensor *embedding_forward(void *self, tn_tensor *x)
{
    const tn_embedding *m = self;
    tn_tensor          *y = tn_embedding(m->weight, x, m->padding, m->sparse);
    if (!m->base.training || m->dropout <= 0 || !y) return y;
    tn_tensor *mask = tn_dropout(tn_ones_of(tn_dtype_of(y), TN_SHAPE(m->count, 1)), m->dropout);
    return tn_mul(y, tn_embedding(mask, x, -1, false));
}

tn_tensor *tn_embedding_rows(tn_embedding *m, int64_t from, int64_t n)
{
    if (!tn_ready(m)) return NULL;
    if (!tn_is_packed(m->weight)) return tn_narrow(m->weight, 0, from, n);
    return tn_embedding(m->weight, tn_arange_of(TN_I64, (double)from, (double)(from + n), 1), -1, false);
}

static void embedding_describe(const void *self, char *text, size_t size)
{
    const tn_embedding *m = self;
    describe_table(m->count, m->dim, m->padding, text, size);
    const size_t n = strlen(text);
    if (m->sparse) snprintf(text + n, size - n, ", sparse=True");
}

static const tn_class tn_embedding_class = {.size = sizeof(tn_class),
                                            .name = "Embedding",
                                            .bytes = sizeof(tn_embedding),
                                            .forward = embedding_forward,
                                            .describe = embedding_describe};

tn_embedding *tn_embedding_create(tn_embedding_config c)
{
    if (!check("tn_embedding_new", c.from, &c.count, &c.dim, c.padding, c.dtype) ||
        !tn__probability("tn_embedding_new", "dropout", c.dropout))
        return NULL;
    tn_embedding *m = tn_module_new(tn_embedding);
    if (!m) return NULL;
    m->count = c.count, m->dim = c.dim, m->padding = c.padding, m->sparse = c.sparse, m->dropout = c.dropout;
    m->weight = tn_weight(m, "weight", table(c.from, c.count, c.dim, c.padding, c.dtype));
    if (c.frozen) tn_freeze(m, true);
    return tn_built(m);
}

/* ---- EmbeddingBag: one row per bag of indices ------------------------------------------------------------------ */

/* The borders (see borders()) of bags that are the rows of a matrix [bags, n]. */
static tn_tensor *borders_of_rows(tn_shape shape)
{
    tn_tensor *at = tn_zeros_of(TN_I64, TN_SHAPE(shape.d[0] + 1));
    for (int64_t i = 0; at && i <= shape.d[0]; i++) tn_set_i64(at, i, i * shape.d[1]);
    return at;
}

/* The borders of bags that start at `offsets` in an index of n elements. With last_offset the last offset is n. */
static tn_tensor *borders_of_offsets(const tn_embedding_bag *m, const tn_tensor *offsets, int64_t n)
{
    char text[192];
    if (tn_ndim(offsets) != 1 || (tn_dtype_of(offsets) != TN_I64 && tn_dtype_of(offsets) != TN_I32) ||
        (m->last_offset && !tn_numel(offsets)))
        return tn_raise_null(TN_ESHAPE, "embedding_bag: offsets must be integers [bags%s], got %s %s",
                             m->last_offset ? " + 1" : "", tn_dtype_name(tn_dtype_of(offsets)),
                             tn_shape_text(tn_shape_of(offsets), text, sizeof text));
    const int64_t bags = tn_numel(offsets) - (m->last_offset ? 1 : 0);
    tn_tensor    *at = tn_zeros_of(TN_I64, TN_SHAPE(bags + 1));
    for (int64_t i = 0, before = 0; at && i <= bags; i++) {
        const int64_t here = i < bags || m->last_offset ? tn_get_i64(offsets, i) : n;
        if ((i == 0 && here != 0) || here < before || here > n)
            return tn_raise_null(TN_EINDEX,
                                 "embedding_bag: offset %lld at [%lld] is invalid: offsets must start with 0, not "
                                 "decrease, and be at most %lld, the number of indices",
                                 (long long)here, (long long)i, (long long)n);
        tn_set_i64(at, i, before = here);
    }
    if (at && m->last_offset && tn_get_i64(at, bags) != n)
        return tn_raise_null(
            TN_EINDEX,
            "embedding_bag: with .last_offset the last offset must be the number of indices, %lld, but "
            "is %lld",
            (long long)n, (long long)tn_get_i64(at, bags));
    return at;
}

/* Returns the start of each bag followed by the end of the last, i64 [bags + 1]; makes index and weights 1-d. NULL:
 * raised. */
static tn_tensor *borders(const tn_embedding_bag *m, tn_tensor **index, const tn_tensor *offsets, tn_tensor **weights)
{
    char           text[192];
    const int      dims = tn_ndim(*index);
    const tn_shape shape = tn_shape_of(*index);
    const int64_t  n = tn_numel(*index);
    if (*weights && m->mode != TN_BAG_SUM)
        return tn_raise_null(TN_EINVAL, "embedding_bag: weights need .mode = TN_BAG_SUM");
    if (*weights && !tn_shape_equal(tn_shape_of(*weights), shape))
        return tn_raise_null(TN_ESHAPE, "embedding_bag: weights are %s, but must have the shape of index",
                             tn_shape_text(tn_shape_of(*weights), text, sizeof text));
    if (dims == 2 && !offsets) {
        *index = tn_reshape(*index, TN_SHAPE(n));
        if (*weights) *weights = tn_reshape(*weights, TN_SHAPE(n));
        return borders_of_rows(shape);
    }
    if (dims != 1 || !offsets)
        return tn_raise_null(TN_ESHAPE,
                             "embedding_bag: index must be [bags, n], or [n] with offsets; it is %s %s offsets",
                             tn_shape_text(shape, text, sizeof text), offsets ? "with" : "without");
    return borders_of_offsets(m, offsets, n);
}

/* The bags as rows of equal length: *rows are the indices [bags, longest]; *absent is true for missing indices and
 * for padding. */
static void in_rows(const tn_embedding_bag *m, const tn_tensor *index, const tn_tensor *at, tn_tensor **rows,
                    tn_tensor **absent)
{
    const int64_t bags = tn_numel(at) - 1;
    int64_t       longest = 1;
    for (int64_t b = 0; b < bags; b++)
        if (tn_get_i64(at, b + 1) - tn_get_i64(at, b) > longest) longest = tn_get_i64(at, b + 1) - tn_get_i64(at, b);
    *rows = tn_zeros_of(TN_I64, TN_SHAPE(bags, longest)), *absent = tn_ones_of(TN_BOOL, TN_SHAPE(bags, longest));
    for (int64_t b = 0; b < bags && tn_error() == TN_OK; b++)
        for (int64_t i = tn_get_i64(at, b), k = 0; i < tn_get_i64(at, b + 1); i++, k++) {
            const int64_t row = tn_get_i64(index, i);
            tn_set_i64(*rows, b * longest + k, row);
            if (m->padding < 0 || row != m->padding) tn_set(*absent, b * longest + k, 0);
        }
}

static tn_tensor *bags_of(tn_embedding_bag *m, tn_tensor *index, tn_tensor *offsets, tn_tensor *weights)
{
    tn_tensor *at = borders(m, &index, offsets, &weights), *rows, *absent;
    if (!at) return NULL;
    const int64_t  bags = tn_numel(at) - 1;
    const tn_dtype dt = tn_dtype_of(m->weight);
    if (m->mode == TN_BAG_MAX) {
        in_rows(m, index, at, &rows, &absent);
        tn_tensor *x = tn_embedding(m->weight, rows, m->padding, m->sparse); /* [bags, longest, dim] */
        x = tn_masked_fill(x, tn_unsqueeze(absent, -1), -HUGE_VAL);
        tn_tensor *empty = tn_all(absent, .dims = TN_DIMS(1), .keepdim = true); /* [bags, 1] */
        return tn_masked_fill(tn_max(x, 1, false).values, empty, 0);
    }
    /* add the row of each index, multiplied by its share, to the row of its bag */
    tn_tensor *bag = tn_zeros_of(TN_I64, TN_SHAPE(tn_numel(index))),
              *share = tn_zeros_of(dt, TN_SHAPE(tn_numel(index), 1));
    for (int64_t b = 0; b < bags && tn_error() == TN_OK; b++) {
        const int64_t from = tn_get_i64(at, b), to = tn_get_i64(at, b + 1);
        int64_t       counted = 0;
        for (int64_t i = from; i < to; i++) counted += m->padding < 0 || tn_get_i64(index, i) != m->padding;
        for (int64_t i = from; i < to; i++) {
            tn_set_i64(bag, i, b);
            tn_set(share, i, m->mode == TN_BAG_SUM ? 1 : 1 / (double)counted);
        }
    }
    if (weights) share = tn_mul(share, tn_unsqueeze(weights, -1));
    tn_tensor *x = tn_embedding(m->weight, index, m->padding, m->sparse); /* [n, dim] */
    if (m->padding >= 0) { /* its row may be infinite, and infinity times 0 is NaN */
        absent = tn_unsqueeze(tn_eq(index, tn_scalar_of(tn_dtype_of(index), (double)m->padding)), -1);
        x = tn_masked_fill(x, absent, 0), share = tn_masked_fill(share, absent, 0);
    }
    x = tn_mul(x, share);
    return tn_index_add(tn_zeros_of(dt, TN_SHAPE(bags, m->dim)), 0, bag, x);
}

tn_tensor *tn_embedding_bag_forward(tn_embedding_bag *m, tn_tensor *index, tn_tensor *offsets, tn_tensor *weights)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    if (!index || (tn_dtype_of(index) != TN_I64 && tn_dtype_of(index) != TN_I32))
        return tn_raise(TN_EDTYPE, "embedding_bag: index is %s, but must be i64 or i32",
                        index ? tn_dtype_name(tn_dtype_of(index)) : "NULL"),
               tn_leave(f, NULL);
    return tn_leave(f, bags_of(m, index, offsets, weights));
}

static tn_tensor *embedding_bag_forward(void *m, tn_tensor *x) { return tn_embedding_bag_forward(m, x, NULL, NULL); }

static void embedding_bag_describe(const void *self, char *text, size_t size)
{
    static const char *const mode[] = {"mean", "sum", "max"};
    const tn_embedding_bag  *m = self;
    describe_table(m->count, m->dim, -1, text, size);
    const size_t n = strlen(text);
    snprintf(text + n, size - n, ", mode='%s'", mode[m->mode]);
    if (m->padding >= 0)
        snprintf(text + strlen(text), size - strlen(text), ", padding_idx=%lld", (long long)m->padding);
}

static const tn_class tn_embedding_bag_class = {.size = sizeof(tn_class),
                                                .name = "EmbeddingBag",
                                                .bytes = sizeof(tn_embedding_bag),
                                                .forward = embedding_bag_forward,
                                                .describe = embedding_bag_describe};

tn_embedding_bag *tn_embedding_bag_create(tn_embedding_bag_config c)
{
    if (!check("tn_embedding_bag_new", c.from, &c.count, &c.dim, c.padding, c.dtype)) return NULL;
    if ((unsigned)c.mode > TN_BAG_MAX)
        return tn_raise_null(TN_EINVAL,
                             "tn_embedding_bag_new: .mode is %d, but must be TN_BAG_MEAN, TN_BAG_SUM or TN_BAG_MAX",
                             (int)c.mode);
    tn_embedding_bag *m = tn_module_new(tn_embedding_bag);
    if (!m) return NULL;
    m->count = c.count, m->dim = c.dim, m->padding = c.padding, m->mode = c.mode;
    m->last_offset = c.last_offset, m->sparse = c.sparse;
    m->weight = tn_param(m, "weight", table(c.from, c.count, c.dim, c.padding, c.dtype));
    if (c.frozen) tn_freeze(m, true);
    return tn_built(m);
}
