/* adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_max_pool1d, adaptive_max_pool2d — means or maxima of a number of
 * windows that cover a dim: window i of n on L elements is ⌊i L / n⌋ … ⌈(i + 1) L / n⌉ - 1
 *
 * Made of ops: the elements of the windows are gathered. Shorter windows are filled with 0 for a mean, and with their
 * last element for a maximum, whose gradient goes to the first of equal elements. */
#include "autograd/rooms/windows.h"

typedef struct {
    int64_t out[2];
    int     dims;
    bool    most;
} args_t;

static bool adaptive_pool_infer(tn_ctx *c)
{
    const args_t  *a = c->args;
    const tn_shape x = c->in[0]->l.shape;
    char           text[192];
    if (!tn__need_real(c, 0)) return false;
    if (x.n != a->dims + 2)
        return tn_infer_fail(c, TN_ESHAPE, "x must be %s, got %s", a->dims == 1 ? "[N, C, L]" : "[N, C, H, W]",
                             tn_shape_text(x, text, sizeof text));
    for (int i = 0; i < a->dims; i++) {
        if (a->out[i] < 1 || a->out[i] > INT32_MAX)
            return tn_infer_fail(c, TN_EINVAL, "the size of the result must be 1 to %d, got %lld", INT32_MAX,
                                 (long long)a->out[i]);
        if (x.d[2 + i] < 1 || x.d[2 + i] > INT32_MAX)
            return tn_infer_fail(c, TN_ESHAPE, "dim %d of %s must have 1 to %d elements", 2 + i,
                                 tn_shape_text(x, text, sizeof text), INT32_MAX);
    }
    return true;
}

/* The elements from … end - 1 of window i. */
static int64_t first(int64_t i, int64_t n, int64_t length) { return i * length / n; }
static int64_t end(int64_t i, int64_t n, int64_t length) { return ((i + 1) * length + n - 1) / n; }

/* x with dim replaced by two: the windows and their elements. */
static tn_tensor *windows_of(tn_tensor *x, int dim, int64_t n)
{
    tn_shape      s = tn_shape_of(x);
    const int64_t length = s.d[dim];
    int64_t       most = 1;
    for (int64_t i = 0; i < n; i++) most = tn__max_i64(most, end(i, n, length) - first(i, n, length));
    tn_tensor *index = tn_empty_of(TN_I64, TN_SHAPE(n * most));
    int64_t   *to = index ? tn__ptr(index) : NULL;
    for (int64_t i = 0; to && i < n; i++)
        for (int64_t k = 0; k < most; k++) *to++ = tn__min_i64(first(i, n, length) + k, end(i, n, length) - 1);
    for (int i = s.n++; i > dim; i--) s.d[i] = s.d[i - 1];
    s.d[dim] = n, s.d[dim + 1] = most;
    return tn_reshape(tn_index_select(x, dim, index), s);
}

/* The means of n windows along dim. */
static tn_tensor *means(tn_tensor *x, int dim, int64_t n)
{
    const int64_t length = tn_size(x, dim);
    tn_tensor    *all = windows_of(x, dim, n);
    if (!all) return NULL;
    const int64_t most = tn_size(all, dim + 1);
    tn_shape      s = {.n = tn_ndim(x) - dim + 1, .d = {n, most}}, one = {.n = s.n - 1, .d = {n}};
    for (int i = 2; i < s.n; i++) s.d[i] = one.d[i - 1] = 1;
    tn_tensor *filled = tn_empty_of(TN_BOOL, s), *sizes = tn_empty_of(TN_I64, one);
    if (!filled || !sizes) return NULL;
    for (int64_t i = 0; i < n; i++) {
        const int64_t size = end(i, n, length) - first(i, n, length);
        ((int64_t *)tn__ptr(sizes))[i] = size;
        for (int64_t k = 0; k < most; k++) ((bool *)tn__ptr(filled))[i * most + k] = k >= size;
    }
    return tn_div(tn_sum(tn_masked_fill(all, filled, 0), .dims = TN_DIMS(dim + 1)), sizes);
}

static void adaptive_pool_compose(tn_ctx *c)
{
    const args_t *a = c->args;
    tn_tensor    *x = c->in[0];
    if (a->most) { /* [N, C, H, W] → [N, C, OH, KH, OW, KW] → [N, C, OH, OW, KH · KW] */
        for (int i = 0; i < a->dims; i++) x = windows_of(x, 2 + 2 * i, a->out[i]);
        if (a->dims == 2) x = tn_flatten(tn_permute(x, TN_DIMS(0, 1, 2, 4, 3, 5)), 4, 5);
        c->out[0] = tn_max(x, -1, false).values;
        return;
    }
    x = tn_to(x, tn__wide(x->dtype));
    for (int i = 0; i < a->dims; i++) x = means(x, 2 + i, a->out[i]);
    if (x) c->out[0] = tn_to(x, c->in[0]->dtype);
}

#define POOL(kind0, h, w, dims, most) \
    .kind = {kind0}, .args = &(args_t) { {h, w}, dims, most }
#define GOOD1(kind0, most)                                                                                      \
    {.in = {{3, {2, 3, 7}}}, POOL(kind0, 3, 0, 1, most)}, {.in = {{3, {1, 2, 3}}}, POOL(kind0, 5, 0, 1, most)}, \
        {.in = {{3, {2, 1, 4}}}, POOL(kind0, 4, 0, 1, most)},                                                   \
    {                                                                                                           \
        .in = {{3, {0, 2, 4}}}, POOL(kind0, 2, 0, 1, most)                                                      \
    }
#define GOOD2(kind0, most)                                                                                            \
    {.in = {{4, {2, 2, 5, 4}}}, POOL(kind0, 3, 2, 2, most)}, {.in = {{4, {1, 2, 3, 2}}}, POOL(kind0, 1, 5, 2, most)}, \
    {                                                                                                                 \
        .in = {{4, {0, 2, 3, 2}}}, POOL(kind0, 1, 2, 2, most)                                                         \
    }
static const tn__sample avg1d[] = {GOOD1(TN__ARG_REAL, false),
                                   {.in = {{2, {3, 4}}},
                                    POOL(0, 2, 0, 1, false),
                                    TN__FAILS(TN_ESHAPE, "adaptive_avg_pool1d: x must be [N, C, L], got [3, 4]")}};
static const tn__sample avg2d[] = {
    GOOD2(TN__ARG_REAL, false),
    {.in = {{4, {1, 1, 3, 4}}},
     POOL(0, 0, 2, 2, false),
     TN__FAILS(TN_EINVAL, "adaptive_avg_pool2d: the size of the result must be 1 to 2147483647, got 0")}};
static const tn__sample max1d[] = {
    GOOD1(TN__ARG_DISTINCT, true),
    {.in = {{3, {1, 1, 0}}},
     POOL(0, 2, 0, 1, true),
     TN__FAILS(TN_ESHAPE, "adaptive_max_pool1d: dim 2 of [1, 1, 0] must have 1 to 2147483647 elements")}};
static const tn__sample max2d[] = {
    GOOD2(TN__ARG_DISTINCT, true),
    {.in = {{4, {1, 1, 3, 4}}},
     POOL(TN__ARG_INT, 2, 2, 2, true),
     TN__FAILS(TN_EDTYPE, "adaptive_max_pool2d: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")}};

#define ROOM .inputs = 1, .args_size = sizeof(args_t), .infer = adaptive_pool_infer, .compose = adaptive_pool_compose
const tn_op tn__op_adaptive_avg_pool1d = {TN__ROOM("adaptive_avg_pool1d", TN_WIDE), ROOM};
TN__SAMPLES(adaptive_avg_pool1d, avg1d);
const tn_op tn__op_adaptive_avg_pool2d = {TN__ROOM("adaptive_avg_pool2d", TN_WIDE), ROOM};
TN__SAMPLES(adaptive_avg_pool2d, avg2d);
const tn_op tn__op_adaptive_max_pool1d = {TN__ROOM("adaptive_max_pool1d", TN_AS_IS), ROOM};
TN__SAMPLES(adaptive_max_pool1d, max1d);
const tn_op tn__op_adaptive_max_pool2d = {TN__ROOM("adaptive_max_pool2d", TN_AS_IS), ROOM};
TN__SAMPLES(adaptive_max_pool2d, max2d);

tn_tensor *tn_adaptive_avg_pool1d(tn_tensor *x, int64_t out)
{
    return tn_apply_args(&tn__op_adaptive_avg_pool1d, (&(args_t){{out, 0}, 1, false}), x);
}
tn_tensor *tn_adaptive_avg_pool2d(tn_tensor *x, int64_t out_h, int64_t out_w)
{
    return tn_apply_args(&tn__op_adaptive_avg_pool2d, (&(args_t){{out_h, out_w}, 2, false}), x);
}
tn_tensor *tn_adaptive_max_pool1d(tn_tensor *x, int64_t out)
{
    return tn_apply_args(&tn__op_adaptive_max_pool1d, (&(args_t){{out, 0}, 1, true}), x);
}
tn_tensor *tn_adaptive_max_pool2d(tn_tensor *x, int64_t out_h, int64_t out_w)
{
    return tn_apply_args(&tn__op_adaptive_max_pool2d, (&(args_t){{out_h, out_w}, 2, true}), x);
}
