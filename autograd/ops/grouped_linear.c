/* grouped_linear — y[i] = x[i] Wᵀ + b with the weight W [out, in] and the bias b [out] at index[i]; 0 at index n
 *
 *   gx[i] = gy[i] W (this op with Wᵀ),  gW = gyᵀ x and gb = Σ gy over the rows of W, as in linear.c
 *
 * Inputs: x [rows, in], index [rows], n weights and, with .bias, n biases. A run of equal indices is one product over
 * its rows, so an ascending index gives one product for each weight, without padding. A weight without rows gets a
 * gradient of zeros. */
#include "autograd/rooms/room.h"
#include "autograd/tape/tape.h"

typedef struct {
    bool bias;
} args_t;

static int weights_of(int nin, const args_t *a) { return (nin - 2) / (a->bias ? 2 : 1); }

/* The end of the run of equal indices that starts at row `from`. */
static int64_t run_end(const tn_tensor *index, int64_t from)
{
    const int64_t n = index->l.shape.d[0], at = tn_get_i64(index, from);
    while (++from < n && tn_get_i64(index, from) == at) continue;
    return from;
}

static bool grouped_linear_infer(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1];
    const int        n = weights_of(c->nin, c->args);
    char             a[300], b[300];
    if (!tn__need_real(c, 0) || !tn__need_index(c, 1)) return false;
    if (n < 1) return tn_infer_fail(c, TN_EINVAL, "needs at least one weight");
    const tn_shape w = c->in[2]->l.shape;
    if (x->l.shape.n != 2 || w.n != 2 || x->l.shape.d[1] != w.d[1])
        return tn_infer_fail(c, TN_ESHAPE, "x %s does not fit weight 0 %s: expected [rows, in] and [out, in]",
                             tn__describe(x, a, sizeof a), tn_shape_text(w, b, sizeof b));
    if (index->l.shape.n != 1 || index->l.shape.d[0] != x->l.shape.d[0])
        return tn_infer_fail(c, TN_ESHAPE, "index is %s, but must be [%lld], one for each row of x",
                             tn_shape_text(index->l.shape, a, sizeof a), (long long)x->l.shape.d[0]);
    for (int i = 2; i < c->nin; i++) {
        const tn_tensor *t = c->in[i];
        const tn_shape   want = i < 2 + n ? w : TN_SHAPE(w.d[0]);
        const char      *what = i < 2 + n ? "weight" : "bias";
        if (t->dtype != x->dtype || !tn_shape_equal(t->l.shape, want))
            return tn_infer_fail(c, t->dtype != x->dtype ? TN_EDTYPE : TN_ESHAPE,
                                 "%s %d is %s %s, but must be %s %s like x and the others", what, (i - 2) % n,
                                 tn_dtype_name(t->dtype), tn_shape_text(t->l.shape, a, sizeof a),
                                 tn_dtype_name(x->dtype), tn_shape_text(want, b, sizeof b));
    }
    c->result[0] = (tn_result){x->dtype, TN_SHAPE(x->l.shape.d[0], w.d[0])};
    return tn__index_check("grouped_linear", "index", index, n + 1);
}

static void grouped_linear_forward(tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *index = c->in[1];
    tn_tensor       *y = c->out[0];
    const int64_t    n = weights_of(c->nin, c->args), rows = x->l.shape.d[0];
    int64_t          runs = 0, count = 0;
    tn__layout       part;
    for (int64_t at = 0; at < rows; at = run_end(index, at)) runs++;
    const size_t   bytes = (size_t)runs * sizeof(tn__gemm_part);
    tn__gemm_part *p = runs ? tn__mem_get(bytes) : NULL;
    for (int64_t at = 0, end; p && at < rows; at = end) {
        const int64_t of = tn_get_i64(index, at);
        end = run_end(index, at);
        tn__view_narrow("grouped_linear", &y->l, 0, at, end - at, &part);
        p[count].c = tn__stack_view(y, &part);
        if (of == n) {
            tn__fill(&p[count].c, 0);
            continue;
        }
        tn__view_narrow("grouped_linear", &x->l, 0, at, end - at, &part);
        p[count].a = tn__stack_view(x, &part);
        tn__view_transpose("grouped_linear", &c->in[2 + of]->l, 0, 1, &part);
        p[count].b = tn__stack_view(c->in[2 + of], &part);
        p[count++].bias = TN_ARG(c, bias) ? c->in[2 + n + of] : NULL;
    }
    if (p) tn__gemm_parts(count, p);
    if (p) tn__mem_put(p, bytes);
}

static void grouped_linear_backward_ops(tn_back *b)
{
    const args_t    *a = b->args;
    const tn_tensor *index = b->in[1];
    tn_tensor       *gy = b->gy[0];
    const int        n = weights_of(b->nin, a);
    const int64_t    rows = b->in_shape[0].d[0];
    if (b->need[0]) {
        const size_t bytes = (size_t)n * sizeof(tn_tensor *);
        tn_tensor  **w = tn__mem_get(bytes);
        for (int i = 0; w && i < n; i++) w[i] = tn_transpose(b->in[2 + i], 0, 1);
        if (w) b->gx[0] = tn_grouped_linear(gy, b->in[1], n, w, NULL);
        if (w) tn__mem_put(w, bytes);
    }
    for (int64_t at = 0, end; at < rows && tn_error() == TN_OK; at = end) {
        const int of = 2 + (int)tn_get_i64(index, at), bias = of + n;
        end = run_end(index, at);
        if (of == 2 + n) continue;
        tn_tensor *g = tn_narrow(gy, 0, at, end - at);
        if (b->need[of]) {
            tn_tensor *gw = tn__weight_grad(b, g, tn_narrow(b->in[0], 0, at, end - at));
            b->gx[of] = b->gx[of] ? tn_add(b->gx[of], gw) : gw;
        }
        if (a->bias && b->need[bias]) {
            tn_tensor *gb = tn__sum_wide(g, TN_DIMS(0));
            gb = tn_reshape(gb, b->in_shape[bias]);
            b->gx[bias] = b->gx[bias] ? tn_add(b->gx[bias], gb) : gb;
        }
    }
    for (int i = 2; i < b->nin; i++)
        if (b->need[i] && !b->gx[i]) b->gx[i] = tn_zeros_of(b->in_dtype[i], b->in_shape[i]);
}

#define KINDS                       \
    {                               \
        TN__ARG_REAL, TN__ARG_INDEX \
    }
#define BIAS \
    .args = &(args_t) { true }
#define PLAIN \
    .args = &(args_t) { false }
#define UP_TO(n) .low = {-2, 0, -2, -2, -2, -2}, .high = {2, (n), 2, 2, 2, 2}
/* clang-format off */
static const tn__sample samples[] = {
    {.nin = 4, .in = {{2, {5, 3}}, {1, {5}}, {2, {2, 3}}, {2, {2, 3}}}, .kind = KINDS, UP_TO(2), PLAIN},
    {.nin = 6, .in = {{2, {7, 3}}, {1, {7}}, {2, {2, 3}}, {2, {2, 3}}, {1, {2}}, {1, {2}}}, .kind = KINDS, UP_TO(3),
     /* also rows without a weight */ BIAS},
    {.nin = 5, .in = {{2, {4, 2}}, {1, {4}}, {2, {3, 2}}, {2, {3, 2}}, {2, {3, 2}}}, .kind = KINDS, UP_TO(1), PLAIN},
    {.nin = 4, .in = {{2, {3, 4}}, {1, {3}}, {2, {1, 4}}, {1, {1}}}, .kind = KINDS, UP_TO(1), BIAS},
    {.nin = 4, .in = {{2, {0, 3}}, {1, {0}}, {2, {2, 3}}, {2, {2, 3}}}, .kind = KINDS, UP_TO(2), PLAIN},
    {.nin = 3, .in = {{2, {3, 0}}, {1, {3}}, {2, {2, 0}}}, .kind = KINDS, UP_TO(1), PLAIN},
    {.nin = 2, .in = {{2, {3, 4}}, {1, {3}}}, .kind = KINDS, PLAIN,
     TN__FAILS(TN_EINVAL, "grouped_linear: needs at least one weight")},
    {.nin = 3, .in = {{2, {3, 4}}, {1, {3}}, {2, {2, 3}}}, .kind = KINDS, PLAIN,
     TN__FAILS(TN_ESHAPE, "grouped_linear: x [3, 4] does not fit weight 0 [2, 3]: expected [rows, in] and [out, in]")},
    {.nin = 3, .in = {{2, {3, 4}}, {1, {2}}, {2, {2, 4}}}, .kind = KINDS, PLAIN,
     TN__FAILS(TN_ESHAPE, "grouped_linear: index is [2], but must be [3], one for each row of x")},
    {.nin = 4, .in = {{2, {3, 4}}, {1, {3}}, {2, {2, 4}}, {2, {3, 4}}}, .kind = KINDS, PLAIN,
     TN__FAILS(TN_ESHAPE, "grouped_linear: weight 1 is f32 [3, 4], but must be f32 [2, 4] like x and the others")},
    {.nin = 4, .in = {{2, {3, 4}}, {1, {3}}, {2, {2, 4}}, {1, {3}}}, .kind = KINDS, BIAS,
     TN__FAILS(TN_ESHAPE, "grouped_linear: bias 0 is f32 [3], but must be f32 [2] like x and the others")},
    {.nin = 3, .in = {{2, {3, 4}}, {1, {3}}, {2, {2, 4}}}, .kind = KINDS, .low = {0, 2}, .high = {1, 3}, PLAIN,
     TN__FAILS(TN_EINDEX, "grouped_linear: index 2 at [0] is outside 0 … 1")},
};
/* clang-format on */

const tn_op tn__op_grouped_linear = {TN__ROOM("grouped_linear", TN_NARROW(TN_ANY)),
                                     .inputs = TN_ANY,
                                     .saves = TN__SAVE_ALL_IN,
                                     .args_size = sizeof(args_t),
                                     .infer = grouped_linear_infer,
                                     .forward = grouped_linear_forward,
                                     .backward_ops = grouped_linear_backward_ops};
TN__SAMPLES(grouped_linear, samples);

tn_tensor *tn_grouped_linear(tn_tensor *x, tn_tensor *index, int n, tn_tensor *const *weight, tn_tensor *const *bias)
{
    if (n < 0 || (n && !weight))
        return tn_raise_null(TN_EINVAL, "grouped_linear: %d weights at %s; expected an array of weights", n,
                             weight ? "an array" : "NULL");
    const int    count = 2 + (bias ? 2 : 1) * n;
    const size_t bytes = (size_t)count * sizeof(tn_tensor *);
    tn_tensor  **in = tn__mem_get(bytes), *y = NULL;
    if (!in) return NULL;
    in[1] = x; /* next to the weights, whose dtype it gets */
    for (int i = 0; i < n; i++) in[2 + i] = weight[i];
    for (int i = 0; bias && i < n; i++) in[2 + n + i] = bias[i];
    tn__promote_all(count - 1, in + 1);
    in[0] = in[1], in[1] = index;
    y = tn_op_apply(&tn__op_grouped_linear, &(args_t){bias != NULL}, count, in);
    tn__mem_put(in, bytes);
    return y;
}
