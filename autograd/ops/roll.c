/* roll — y[i] = x[i - shift] along a dim; elements moved past one end come in at the other
 *
 *   gx = gy rolled back */
#include "autograd/rooms/room.h"

typedef struct {
    int64_t shift;
    int     dim;
} args_t;

static bool roll_infer(tn_ctx *c)
{
    int dim = TN_ARG(c, dim);
    return tn__wrap_dim("roll", &dim, c->in[0]->l.shape.n) && tn_infer_like(c, 0, 0);
}

static void move(tn_ctx *c, int64_t from, int64_t to, int64_t size)
{
    tn__layout lx, ly;
    if (!tn__view_narrow("roll", &c->in[0]->l, TN_ARG(c, dim), from, size, &lx)) return;
    if (!tn__view_narrow("roll", &c->out[0]->l, TN_ARG(c, dim), to, size, &ly)) return;
    tn_tensor x = tn__stack_view(c->in[0], &lx), y = tn__stack_view(c->out[0], &ly);
    tn__copy(&y, &x);
}
static void roll_forward(tn_ctx *c)
{
    const tn_shape s = c->in[0]->l.shape;
    const int      dim = TN_ARG(c, dim) < 0 ? TN_ARG(c, dim) + s.n : TN_ARG(c, dim);
    const int64_t  n = s.n ? s.d[dim] : 1;
    if (n == 0) return;
    const int64_t shift = (TN_ARG(c, shift) % n + n) % n;
    if (shift == 0) {
        tn__copy(c->out[0], c->in[0]);
        return;
    }
    move(c, 0, shift, n - shift);
    move(c, n - shift, 0, shift);
}
static void roll_backward_ops(tn_back *b)
{
    const int64_t shift = TN_ARG(b, shift);
    const int     dim = TN_ARG(b, dim);
    const int64_t n = b->in_shape[0].n ? b->in_shape[0].d[dim < 0 ? dim + b->in_shape[0].n : dim] : 1;
    b->gx[0] = tn_roll(b->gy[0], n ? -(shift % n) : 0, dim);
}

static const tn__sample samples[] = {
    {.in = {{2, {3, 4}}}, .args = &(args_t){1, 1}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){-1, 0}},
    {.in = {{3, {2, 5, 2}}}, .args = &(args_t){12, -2}},
    {.in = {{2, {3, 4}}}, .args = &(args_t){-8, 1}},
    {.in = {{1, {3}}}, .args = &(args_t){INT64_MIN, 0}},
    {.in = {{2, {1, 4}}}, .args = &(args_t){1, 0}},
    {.in = {{0, {0}}}, .args = &(args_t){2, -1}},
    {.in = {{2, {0, 4}}}, .args = &(args_t){1, 0}},
    {.in = {{1, {5}}}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}, .args = &(args_t){2, 0}},
    {.in = {{2, {3, 4}}},
     .args = &(args_t){1, 2},
     TN__FAILS(TN_EINDEX, "roll: dim 2 is out of range for a 2-d tensor")},
};

const tn_op tn__op_roll = {TN__ROOM("roll", TN_AS_IS),  .inputs = 1,
                           .args_size = sizeof(args_t), .infer = roll_infer,
                           .forward = roll_forward,     .backward_ops = roll_backward_ops};
TN__SAMPLES(roll, samples);

tn_tensor *tn_roll(tn_tensor *x, int64_t shift, int dim)
{
    return tn_apply_args(&tn__op_roll, (&(args_t){shift, dim}), x);
}
