/* tril — the lower triangle of the last two dims, up to and including a diagonal; triu: the upper, from a diagonal on;
 * 0 elsewhere
 *
 *   gx = the same triangle of gy */
#include "autograd/rooms/room.h"

typedef struct {
    int64_t diagonal;
} args_t;

static bool tril_infer(tn_ctx *c)
{
    if (c->in[0]->l.shape.n < 2)
        return tn_infer_fail(c, TN_ESHAPE, "needs at least 2 dims, the tensor has %d", c->in[0]->l.shape.n);
    return tn_infer_like(c, 0, 0);
}

/* Row by row, for all matrices at once: columns [from, to) are kept. */
static void tril_forward(tn_ctx *c)
{
    const tn_tensor *x = c->in[0];
    const int64_t    rows = x->l.shape.d[x->l.shape.n - 2], cols = x->l.shape.d[x->l.shape.n - 1];
    const int64_t    diagonal = tn__max_i64(-rows, tn__min_i64(TN_ARG(c, diagonal), cols));
    tn__fill(c->out[0], 0);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t middle = tn__max_i64(0, tn__min_i64(i + diagonal + (c->op == &tn__op_tril), cols));
        const int64_t from = c->op == &tn__op_tril ? 0 : middle, to = c->op == &tn__op_tril ? middle : cols;
        tn__layout    row, part;
        if (from == to) continue;
        if (!tn__view_select("tril", &x->l, -2, i, &row) || !tn__view_narrow("tril", &row, -1, from, to - from, &part))
            return;
        const tn_tensor kept = tn__stack_view(x, &part);
        if (!tn__view_select("tril", &c->out[0]->l, -2, i, &row) ||
            !tn__view_narrow("tril", &row, -1, from, to - from, &part))
            return;
        tn_tensor place = tn__stack_view(c->out[0], &part);
        tn__copy(&place, &kept);
    }
}
static void tril_backward_ops(tn_back *b) { b->gx[0] = tn_apply_args(b->op, b->args, b->gy[0]); }

#define SAMPLES(title)                                                                                        \
    {.in = {{2, {3, 4}}}, .args = &(args_t){0}}, {.in = {{2, {4, 3}}}, .args = &(args_t){1}},                 \
        {.in = {{3, {2, 3, 3}}}, .args = &(args_t){-1}}, {.in = {{2, {3, 4}}}, .args = &(args_t){INT64_MAX}}, \
        {.in = {{2, {3, 4}}}, .args = &(args_t){INT64_MIN}}, {.in = {{2, {1, 1}}}, .args = &(args_t){0}},     \
        {.in = {{3, {2, 0, 3}}}, .args = &(args_t){0}},                                                       \
        {.in = {{2, {3, 3}}}, .kind = {TN__ARG_INT}, .low = {1}, .high = {9}, .args = &(args_t){0}},          \
    {                                                                                                         \
        .in = {{1, {3}}}, .args = &(args_t){0}, .status = TN_ESHAPE,                                          \
        .fails = title ": needs at least 2 dims, the tensor has 1"                                            \
    }
#define ROOM(title)                                                                                                    \
    TN__ROOM(title, TN_AS_IS), .inputs = 1, .args_size = sizeof(args_t), .infer = tril_infer, .forward = tril_forward, \
                               .backward_ops = tril_backward_ops

static const tn__sample tril_samples[] = {SAMPLES("tril")};
const tn_op             tn__op_tril = {ROOM("tril")};
TN__SAMPLES(tril, tril_samples);
static const tn__sample triu_samples[] = {SAMPLES("triu")};
const tn_op             tn__op_triu = {ROOM("triu")};
TN__SAMPLES(triu, triu_samples);

tn_tensor *tn_tril(tn_tensor *x, int64_t diagonal) { return tn_apply_args(&tn__op_tril, &(args_t){diagonal}, x); }
tn_tensor *tn_triu(tn_tensor *x, int64_t diagonal) { return tn_apply_args(&tn__op_triu, &(args_t){diagonal}, x); }
