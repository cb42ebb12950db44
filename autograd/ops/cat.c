/* cat — joins tensors along a dim; stack: along a new dim; split, chunk: the inverse, as views
 *
 *   each input's gradient is its part of gy, as a view */
#include "autograd/rooms/room.h"

typedef struct {
    int dim;
} args_t;

static bool same_types(const tn_ctx *c)
{
    if (c->nin < 1) return tn_infer_fail(c, TN_EINVAL, "needs at least one tensor");
    for (int i = 1; i < c->nin; i++)
        if (c->in[i]->dtype != c->in[0]->dtype)
            return tn_infer_fail(c, TN_EDTYPE, "input %d is %s, input 0 is %s; convert one of them with tn_to", i,
                                 tn_dtype_name(c->in[i]->dtype), tn_dtype_name(c->in[0]->dtype));
    return true;
}

/* ---- cat ---- */

/* As in PyTorch tensors of shape [0] are ignored, so that a loop can start with an empty one. */
static bool is_empty_1d(tn_shape s) { return s.n == 1 && s.d[0] == 0; }

static bool cat_infer(tn_ctx *c)
{
    char a[192], b[192];
    if (!same_types(c)) return false;
    int like = 0, dim = TN_ARG(c, dim);
    for (int i = c->nin - 1; i >= 0; i--)
        if (!is_empty_1d(c->in[i]->l.shape)) like = i;
    tn_shape y = c->in[like]->l.shape;
    for (int i = 0; i < c->nin; i++)
        if (c->in[i]->l.shape.n == 0)
            return tn_infer_fail(c, TN_ESHAPE, "input %d is 0-d and has no dim to join; use tn_stack", i);
    if (!tn__wrap_dim("cat", &dim, y.n)) return false;
    y.d[dim] = 0;
    for (int i = 0; i < c->nin; i++) {
        tn_shape s = c->in[i]->l.shape;
        if (is_empty_1d(s)) continue;
        bool fits = s.n == y.n;
        for (int k = 0; k < s.n && fits; k++) fits = k == dim || s.d[k] == y.d[k];
        if (!fits)
            return tn_infer_fail(c, TN_ESHAPE, "input %d is %s, input %d is %s; only dim %d may differ", i,
                                 tn_shape_text(s, a, sizeof a), like, tn_shape_text(c->in[like]->l.shape, b, sizeof b),
                                 dim);
        if (!tn__add_i64(y.d[dim], s.d[dim], &y.d[dim])) return tn_infer_fail(c, TN_ESHAPE, "the result is too large");
    }
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape = y;
    return true;
}

static void cat_forward(tn_ctx *c)
{
    const int dim = TN_ARG(c, dim) < 0 ? TN_ARG(c, dim) + c->result[0].shape.n : TN_ARG(c, dim);
    int64_t   at = 0;
    for (int i = 0; i < c->nin; i++) {
        tn__layout l;
        if (is_empty_1d(c->in[i]->l.shape)) continue;
        const int64_t size = c->in[i]->l.shape.d[dim];
        if (!tn__view_narrow("cat", &c->out[0]->l, dim, at, size, &l)) return;
        tn_tensor part = tn__stack_view(c->out[0], &l);
        tn__copy(&part, c->in[i]);
        at += size;
    }
}

static void cat_backward_ops(tn_back *b)
{
    const int n = b->gy[0]->l.shape.n, dim = TN_ARG(b, dim) < 0 ? TN_ARG(b, dim) + n : TN_ARG(b, dim);
    int64_t   at = 0;
    for (int i = 0; i < b->nin; i++) {
        if (is_empty_1d(b->in_shape[i])) continue;
        if (b->need[i]) b->gx[i] = tn_narrow(b->gy[0], dim, at, b->in_shape[i].d[dim]);
        at += b->in_shape[i].d[dim];
    }
}

/* clang-format off */
static const tn__sample cat_samples[] = {
    {.nin = 2, .in = {{2, {3, 2}}, {2, {3, 4}}}, .args = &(args_t){1}},
    {.nin = 3, .in = {{2, {1, 3}}, {2, {2, 3}}, {2, {3, 3}}}, .args = &(args_t){-2}},
    {.nin = 1, .in = {{3, {2, 3, 2}}}, .args = &(args_t){1}},
    {.nin = 2, .in = {{3, {2, 1, 2}}, {3, {2, 3, 2}}}, .args = &(args_t){1}},
    {.nin = 3, .in = {{1, {0}}, {2, {2, 3}}, {2, {0, 3}}}, .args = &(args_t){0}},
    {.nin = 2, .in = {{1, {0}}, {1, {0}}}, .args = &(args_t){0}},
    {.nin = 2, .in = {{2, {3, 2}}, {2, {3, 4}}}, .kind = {TN__ARG_INT, TN__ARG_INT}, .low = {-9, -9}, .high = {9, 9},
     .args = &(args_t){1}},
    {.nin = 2, .in = {{2, {3, 2}}, {2, {2, 2}}}, .args = &(args_t){1},
     TN__FAILS(TN_ESHAPE, "cat: input 1 is [2, 2], input 0 is [3, 2]; only dim 1 may differ")},
    {.nin = 2, .in = {{2, {3, 2}}, {3, {1, 3, 2}}}, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "cat: input 1 is [1, 3, 2], input 0 is [3, 2]; only dim 0 may differ")},
    {.nin = 2, .in = {{1, {3}}, {0, {0}}}, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "cat: input 1 is 0-d and has no dim to join; use tn_stack")},
    {.nin = 2, .in = {{1, {3}}, {1, {3}}}, .args = &(args_t){1},
     TN__FAILS(TN_EINDEX, "cat: dim 1 is out of range for a 1-d tensor")},
    {.nin = 2, .in = {{1, {3}}, {1, {3}}}, .kind = {TN__ARG_MASK, TN__ARG_INDEX}, .high = {0, 5}, .args = &(args_t){0},
     TN__FAILS(TN_EDTYPE, "cat: input 1 is i64, input 0 is bool; convert one of them with tn_to")},
};
/* clang-format on */
const tn_op tn__op_cat = {TN__ROOM("cat", TN_JOIN), .inputs = TN_ANY,       .args_size = sizeof(args_t),
                          .infer = cat_infer,       .forward = cat_forward, .backward_ops = cat_backward_ops};
TN__SAMPLES(cat, cat_samples);

tn_tensor *tn_cat_list(int dim, int n, tn_tensor *const *in) { return tn_op_apply(&tn__op_cat, &(args_t){dim}, n, in); }

/* ---- stack ---- */

static bool stack_infer(tn_ctx *c)
{
    char a[192], b[192];
    if (!same_types(c)) return false;
    const tn_shape s = c->in[0]->l.shape;
    for (int i = 1; i < c->nin; i++)
        if (!tn_shape_equal(c->in[i]->l.shape, s))
            return tn_infer_fail(c, TN_ESHAPE, "input %d is %s, input 0 is %s; all must have one shape", i,
                                 tn_shape_text(c->in[i]->l.shape, a, sizeof a), tn_shape_text(s, b, sizeof b));
    int dim = TN_ARG(c, dim);
    if (!tn__view_unsqueeze("stack", s, dim, &c->result[0].shape)) return false;
    c->result[0].shape.d[dim < 0 ? dim + s.n + 1 : dim] = c->nin;
    c->result[0].dtype = c->in[0]->dtype;
    return true;
}
static void stack_forward(tn_ctx *c)
{
    for (int i = 0; i < c->nin; i++) {
        tn__layout l;
        if (!tn__view_select("stack", &c->out[0]->l, TN_ARG(c, dim), i, &l)) return;
        tn_tensor part = tn__stack_view(c->out[0], &l);
        tn__copy(&part, c->in[i]);
    }
}
static void stack_backward_ops(tn_back *b)
{
    for (int i = 0; i < b->nin; i++)
        if (b->need[i]) b->gx[i] = tn_select(b->gy[0], TN_ARG(b, dim), i);
}

/* clang-format off */
static const tn__sample stack_samples[] = {
    {.nin = 2, .in = {{2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){0}},
    {.nin = 3, .in = {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){1}},
    {.nin = 2, .in = {{2, {3, 4}}, {2, {3, 4}}}, .args = &(args_t){-1}},
    {.nin = 3, .in = {{0, {0}}, {0, {0}}, {0, {0}}}, .args = &(args_t){0}},
    {.nin = 1, .in = {{1, {3}}}, .args = &(args_t){-2}},
    {.nin = 2, .in = {{2, {0, 3}}, {2, {0, 3}}}, .args = &(args_t){0}},
    {.nin = 2, .in = {{2, {3, 4}}, {2, {4, 3}}}, .args = &(args_t){0},
     TN__FAILS(TN_ESHAPE, "stack: input 1 is [4, 3], input 0 is [3, 4]; all must have one shape")},
    {.nin = 1, .in = {{1, {3}}}, .args = &(args_t){2},
     TN__FAILS(TN_EINDEX, "stack: dim 2 is out of range: a new dim of a 1-d tensor must be from -2 to 1")},
    {.nin = 2, .in = {{1, {3}}, {1, {3}}}, .kind = {TN__ARG_INDEX, TN__ARG_MASK}, .high = {5, 0}, .args = &(args_t){0},
     TN__FAILS(TN_EDTYPE, "stack: input 1 is bool, input 0 is i64; convert one of them with tn_to")},
};
/* clang-format on */
const tn_op tn__op_stack = {TN__ROOM("stack", TN_JOIN), .inputs = TN_ANY,         .args_size = sizeof(args_t),
                            .infer = stack_infer,       .forward = stack_forward, .backward_ops = stack_backward_ops};
TN__SAMPLES(stack, stack_samples);

tn_tensor *tn_stack_list(int dim, int n, tn_tensor *const *in)
{
    return tn_op_apply(&tn__op_stack, &(args_t){dim}, n, in);
}

/* ---- split, chunk: several calls of narrow ---- */

static bool begin(const char *op, const tn_tensor *x, int *dim, int room, tn_tensor **out)
{
    for (int i = 0; out && i < room; i++) out[i] = NULL;
    if (tn__blocked()) return false;
    if (!x) return tn_raise_false(TN_EINVAL, "%s: the tensor is NULL", op);
    if (x->l.shape.n == 0) return tn_raise_false(TN_ESHAPE, "%s: a 0-d tensor has no dim to split", op);
    return tn__wrap_dim(op, dim, x->l.shape.n);
}

static int parts(const char *op, tn_tensor *x, int64_t count, int64_t size, int dim, int room, tn_tensor **out)
{
    const int64_t n = x->l.shape.d[dim];
    if (count > room || !out)
        return tn_raise(TN_EINVAL, "%s: dim %d of size %lld gives %lld parts, out has room for %d", op, dim,
                        (long long)n, (long long)count, out ? room : 0),
               0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = tn_narrow(x, dim, i * size, tn__min_i64(size, n - i * size));
        if (out[i]) continue;
        for (int64_t k = 0; k < i; k++) out[k] = NULL;
        return 0;
    }
    return (int)count;
}

int tn_split(tn_tensor *x, int64_t size, int dim, int room, tn_tensor **out)
{
    if (!begin("split", x, &dim, room, out)) return 0;
    const int64_t n = x->l.shape.d[dim];
    if (size < 0 || (size == 0 && n != 0))
        return tn_raise(TN_EINVAL, "split: the size of a part must be at least 1, got %lld", (long long)size), 0;
    return parts("split", x, n ? (n - 1) / size + 1 : 1, size, dim, room, out);
}

int tn_chunk(tn_tensor *x, int64_t chunks, int dim, int room, tn_tensor **out)
{
    if (!begin("chunk", x, &dim, room, out)) return 0;
    const int64_t n = x->l.shape.d[dim];
    if (chunks < 1)
        return tn_raise(TN_EINVAL, "chunk: the number of chunks must be at least 1, got %lld", (long long)chunks), 0;
    if (n == 0) return parts("chunk", x, chunks, 0, dim, room, out);
    const int64_t size = (n - 1) / chunks + 1;
    return parts("chunk", x, (n - 1) / size + 1, size, dim, room, out);
}
