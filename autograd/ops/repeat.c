/* repeat — the whole tensor as tiles, times[i] along dim i; repeat_interleave: each slice of a dim, `times` times in
 * succession
 *
 *   gx = gy summed over the repetitions
 *
 * Along a repeated dim, gy is viewed as [before, times, size, after] (interleaved: [before, size, times, after]) and
 * summed over times: never more than four dims, so it works for tensors of eight. */
#include "autograd/rooms/room.h"

typedef struct {
    tn_shape times; /* repeat_interleave: d[0] only */
    int      dim;   /* repeat_interleave */
} args_t;

static tn_tensor *sum_repeats(tn_tensor *g, int dim, int64_t times, int64_t size, bool interleaved)
{
    tn_shape s = tn_shape_of(g);
    int64_t  before = 1, after = 1;
    for (int i = 0; i < s.n; i++) *(i < dim ? &before : &after) *= i == dim ? 1 : s.d[i];
    const int of_times = interleaved ? 2 : 1;
    g = tn_reshape(g, interleaved ? TN_SHAPE(before, size, times, after) : TN_SHAPE(before, times, size, after));
    if (times == 2)
        g = tn_add(tn_select(g, of_times, 0), tn_select(g, of_times, 1)); /* the same bits, ten times as fast */
    else g = tn_sum(g, .dims = TN_DIMS(of_times));
    s.d[dim] = size;
    return tn_reshape(g, s);
}

/* ---- repeat ---- */

static bool repeat_infer(tn_ctx *c)
{
    const tn_shape x = c->in[0]->l.shape, times = TN_ARG(c, times);
    char           text[192];
    const int      lead = times.n - x.n;
    if (times.n > TN_MAX_DIMS || lead < 0)
        return tn_infer_fail(c, TN_ESHAPE, "a tensor of %d dims needs %d to %d counts, got %d", x.n, x.n, TN_MAX_DIMS,
                             times.n);
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape = times;
    for (int i = 0; i < times.n; i++) {
        if (times.d[i] < 0)
            return tn_infer_fail(c, TN_EINVAL, "%s has a negative count", tn_shape_text(times, text, sizeof text));
        if (i >= lead && !tn__mul_i64(times.d[i], x.d[i - lead], &c->result[0].shape.d[i]))
            return tn_infer_fail(c, TN_ESHAPE, "%s times are too many", tn_shape_text(times, text, sizeof text));
    }
    return true;
}

/* Copies x to the first tile; then, for each dim, copies the filled part after itself until the dim is full. */
static void repeat_forward(tn_ctx *c)
{
    const tn_shape times = TN_ARG(c, times);
    const int      lead = times.n - c->in[0]->l.shape.n;
    tn__layout     l = c->out[0]->l, from, to;
    if (tn_shape_numel(l.shape) == 0) return;
    for (int i = 0; i < times.n; i++) l.shape.d[i] /= times.d[i];
    tn_tensor tile = tn__stack_view(c->out[0], &l);
    tn__copy(&tile, c->in[0]);
    for (int i = times.n - 1; i >= 0; i--) {
        const int64_t size = i < lead ? 1 : c->in[0]->l.shape.d[i - lead], full = size * times.d[i];
        for (int64_t have = size; have < full; have = l.shape.d[i]) {
            const int64_t more = tn__min_i64(have, full - have);
            l.shape.d[i] = have + more;
            if (!tn__view_narrow("repeat", &l, i, 0, more, &from) || !tn__view_narrow("repeat", &l, i, have, more, &to))
                return;
            tn_tensor x = tn__stack_view(c->out[0], &from), y = tn__stack_view(c->out[0], &to);
            tn__copy(&y, &x);
        }
    }
}

static void repeat_backward_ops(tn_back *b)
{
    const tn_shape times = TN_ARG(b, times), x = b->in_shape[0];
    tn_tensor     *g = b->gy[0];
    for (int i = 0; i < times.n && g; i++)
        if (times.d[i] != 1) g = sum_repeats(g, i, times.d[i], i < times.n - x.n ? 1 : x.d[i - (times.n - x.n)], false);
    b->gx[0] = g;
}

/* clang-format off */
static const tn__sample repeat_samples[] = {
    {.in = {{2, {3, 2}}}, .args = &(args_t){.times = {.n = 2, .d = {2, 3}}}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){.times = {.n = 3, .d = {2, 1, 3}}}},
    {.in = {{3, {2, 1, 3}}}, .args = &(args_t){.times = {.n = 3, .d = {1, 4, 1}}}},
    {.in = {{0, {0}}}, .args = &(args_t){.times = {.n = 2, .d = {2, 3}}}},
    {.in = {{0, {0}}}, .args = &(args_t){.times = {.n = 0, .d = {0}}}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){.times = {.n = 2, .d = {0, 2}}}},
    {.in = {{2, {0, 3}}}, .args = &(args_t){.times = {.n = 2, .d = {2, 2}}}},
    {.in = {{8, {1, 2, 1, 1, 2, 1, 1, 2}}}, .args = &(args_t){.times = {.n = 8, .d = {2, 1, 1, 1, 1, 1, 1, 3}}}},
    {.in = {{1, {3}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){.times = {.n = 1, .d = {5}}}},
    {.in = {{2, {2, 3}}}, .args = &(args_t){.times = {.n = 1, .d = {2}}},
     TN__FAILS(TN_ESHAPE, "repeat: a tensor of 2 dims needs 2 to 8 counts, got 1")},
    {.in = {{2, {2, 3}}}, .args = &(args_t){.times = {.n = 2, .d = {2, -1}}},
     TN__FAILS(TN_EINVAL, "repeat: [2, -1] has a negative count")},
    {.in = {{2, {2, 3}}}, .args = &(args_t){.times = {.n = 2, .d = {4611686018427387904, 4}}},
     TN__FAILS(TN_ESHAPE, "repeat: [4611686018427387904, 4] times are too many")},
};
/* clang-format on */
const tn_op tn__op_repeat = {TN__ROOM("repeat", TN_AS_IS), .inputs = 1,
                             .args_size = sizeof(args_t),  .infer = repeat_infer,
                             .forward = repeat_forward,    .backward_ops = repeat_backward_ops};
TN__SAMPLES(repeat, repeat_samples);

tn_tensor *tn_repeat(tn_tensor *x, tn_shape times)
{
    return tn_apply_args(&tn__op_repeat, (&(args_t){.times = times}), x);
}

/* ---- repeat_interleave ---- */

static bool repeat_interleave_infer(tn_ctx *c)
{
    int           dim = TN_ARG(c, dim);
    const int64_t times = TN_ARG(c, times).d[0];
    if (times < 0) return tn_infer_fail(c, TN_EINVAL, "the number of times is negative: %lld", (long long)times);
    if (!tn__wrap_dim(c->op->name, &dim, c->in[0]->l.shape.n) || !tn_infer_like(c, 0, 0)) return false;
    tn_shape *y = &c->result[0].shape;
    if (y->n == 0) *y = (tn_shape){.n = 1, .d = {1}};
    if (!tn__mul_i64(y->d[dim], times, &y->d[dim]))
        return tn_infer_fail(c, TN_ESHAPE, "%lld times are too many", (long long)times);
    return true;
}

/* Repetition r of every slice at once. */
static void repeat_interleave_forward(tn_ctx *c)
{
    const tn__layout l = c->out[0]->l;
    if (tn_shape_numel(l.shape) == 0) return;
    for (int64_t r = 0, times = TN_ARG(c, times).d[0]; r < times; r++) {
        tn__layout part;
        if (!tn__view_slice("repeat_interleave", &l, TN_ARG(c, dim), r, INT64_MAX, times, &part)) return;
        tn_tensor y = tn__stack_view(c->out[0], &part);
        tn__copy(&y, c->in[0]);
    }
}

static void repeat_interleave_backward_ops(tn_back *b)
{
    const tn_shape x = b->in_shape[0];
    const int      dim = TN_ARG(b, dim) < 0 ? TN_ARG(b, dim) + (x.n ? x.n : 1) : TN_ARG(b, dim);
    b->gx[0] = sum_repeats(b->gy[0], dim, TN_ARG(b, times).d[0], x.n ? x.d[dim] : 1, true);
}

/* clang-format off */
static const tn__sample interleave_samples[] = {
    {.in = {{2, {3, 2}}}, .args = &(args_t){{.n = 1, .d = {2}}, 0}},
    {.in = {{2, {3, 2}}}, .args = &(args_t){{.n = 1, .d = {3}}, -1}},
    {.in = {{3, {2, 3, 2}}}, .args = &(args_t){{.n = 1, .d = {2}}, 1}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){{.n = 1, .d = {1}}, 1}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 1, .d = {3}}, 0}},
    {.in = {{2, {3, 2}}}, .args = &(args_t){{.n = 1, .d = {0}}, 0}},
    {.in = {{2, {0, 2}}}, .args = &(args_t){{.n = 1, .d = {3}}, 0}},
    {.in = {{8, {1, 2, 1, 1, 2, 1, 1, 2}}}, .args = &(args_t){{.n = 1, .d = {3}}, 4}},
    {.in = {{1, {4}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){{.n = 1, .d = {2}}, 0}},
    {.in = {{1, {4}}}, .args = &(args_t){{.n = 1, .d = {-1}}, 0},
     TN__FAILS(TN_EINVAL, "repeat_interleave: the number of times is negative: -1")},
    {.in = {{1, {4}}}, .args = &(args_t){{.n = 1, .d = {INT64_MAX}}, 0},
     TN__FAILS(TN_ESHAPE, "repeat_interleave: 9223372036854775807 times are too many")},
    {.in = {{1, {4}}}, .args = &(args_t){{.n = 1, .d = {2}}, 1},
     TN__FAILS(TN_EINDEX, "repeat_interleave: dim 1 is out of range for a 1-d tensor")},
};
/* clang-format on */
const tn_op tn__op_repeat_interleave = {TN__ROOM("repeat_interleave", TN_AS_IS),
                                        .inputs = 1,
                                        .args_size = sizeof(args_t),
                                        .infer = repeat_interleave_infer,
                                        .forward = repeat_interleave_forward,
                                        .backward_ops = repeat_interleave_backward_ops};
TN__SAMPLES(repeat_interleave, interleave_samples);

tn_tensor *tn_repeat_interleave(tn_tensor *x, int64_t times, int dim)
{
    return tn_apply_args(&tn__op_repeat_interleave, (&(args_t){{.n = 1, .d = {times}}, dim}), x);
}
