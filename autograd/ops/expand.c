/* expand — repeats dims of size 1, and new leading dims, with stride 0
 *
 *   gx = gy, summed over the repetitions         (the engine sums every gradient down to its input's shape) */
#include "autograd/rooms/room.h"

typedef struct {
    tn_shape shape; /* -1 keeps a size */
} args_t;

static bool expand_infer(tn_ctx *c)
{
    tn__layout y;
    return tn__view_expand("expand", &c->in[0]->l, TN_ARG(c, shape), &y) && tn__infer_view(c, &y);
}
static void expand_forward(tn_ctx *c)
{
    const tn__layout y = tn__layout_expand(&c->in[0]->l, c->result[0].shape);
    c->out[0] = tn__alias_owned(c->in[0], &y);
}
static void expand_backward_ops(tn_back *b) { b->gx[0] = b->gy[0]; }

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {3, 1}}}, .args = &(args_t){{.n = 2, .d = {3, 4}}}},
    {.in = {{2, {1, 4}}}, .args = &(args_t){{.n = 3, .d = {2, 3, -1}}}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {-1, -1}}}},
    {.in = {{3, {2, 1, 1}}}, .args = &(args_t){{.n = 4, .d = {2, 2, -1, 3}}}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 2, .d = {2, 3}}}},
    {.in = {{0, {0}}}, .args = &(args_t){{.n = 0, .d = {0}}}},
    {.in = {{2, {3, 1}}}, .args = &(args_t){{.n = 2, .d = {3, 0}}}},
    {.in = {{2, {0, 1}}}, .args = &(args_t){{.n = 2, .d = {0, 3}}}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 2, .d = {6, 4}}},
     TN__FAILS(TN_ESHAPE, "expand: [3, 4] does not expand to [6, 4]: dim 0 would go from 3 to 6")},
    {.in = {{1, {4}}}, .args = &(args_t){{.n = 2, .d = {-1, 4}}},
     TN__FAILS(TN_ESHAPE, "expand: [4] does not expand to [-1, 4]: dim 0 would go from 1 to -1")},
    {.in = {{2, {3, 4}}}, .args = &(args_t){{.n = 1, .d = {4}}},
     TN__FAILS(TN_ESHAPE, "expand: [3, 4] has 2 dims and expands to at least that many, at most 8, not to 1")},
    {.in = {{2, {1, 1}}}, .args = &(args_t){{.n = 2, .d = {4611686018427387904, 4}}},
     TN__FAILS(TN_ESHAPE, "expand: [4611686018427387904, 4] is too large: its bytes do not fit in 63 bits")},
};
/* clang-format on */

const tn_op tn__op_expand = {TN__ROOM("expand", TN_AS_IS),
                             .inputs = 1,
                             .args_size = sizeof(args_t),
                             .infer = expand_infer,
                             .forward = expand_forward,
                             .backward_ops = expand_backward_ops,
                             .view = true};
TN__SAMPLES(expand, samples);

tn_tensor *tn_expand(tn_tensor *x, tn_shape s) { return tn_apply_args(&tn__op_expand, &(args_t){s}, x); }
