/* attention — y = w v with w = softmax over the keys of (scale · q kᵀ + mask), and dropout on w
 *
 * q [..., T, D], k [..., S, D], v [..., S, E], leading dims broadcast. It is made of four ops: attention_scores,
 * attention_weights (which holds the rules of masking), dropout and select_matmul. Whatever is blocked takes no part,
 * even if it is NaN; a query that may attend to nothing gets 0, and gradient 0. */
#include "autograd/room.h"
typedef struct {
    bool   causal;
    double dropout, scale;
} args_t;

static bool fail(const tn_ctx *c, const char *a, const tn_tensor *x, const char *b, const tn_tensor *y,
                 const char *what)
{
    char xs[192], ys[192];
    return tn_infer_fail(c, TN_ESHAPE, "%s %s and %s %s %s", a, tn_shape_text(x->l.shape, xs, sizeof xs), b,
                         tn_shape_text(y->l.shape, ys, sizeof ys), what);
}

/* The leading dims of a and b's, broadcast. */
static bool lead(tn_shape a, tn_shape b, tn_shape *to)
{
    *to = (tn_shape){.n = a.n > b.n ? a.n : b.n};
    for (int i = 1; i <= to->n; i++) {
        const int64_t x = i <= a.n ? a.d[a.n - i] : 1, y = i <= b.n ? b.d[b.n - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        to->d[to->n - i] = x == 1 ? y : x;
    }
    return true;
}
static tn_shape lead_of(const tn_tensor *x)
{
    tn_shape s = x->l.shape;
    s.n -= 2;
    return s;
}

static bool infer(tn_ctx *c)
{
    static const char *const name[] = {"q", "k", "v"}, *const dims[] = {"[..., T, D]", "[..., S, D]", "[..., S, E]"};
    char text[192], scores[192];
    for (int i = 0; i < 3; i++) {
        const tn_tensor *x = c->in[i];
        if (!x) return tn_infer_fail(c, TN_EINVAL, "%s is NULL", name[i]);
        if (!tn__is_float(x->dtype))
            return tn_infer_fail(c, TN_EDTYPE, "%s must be floating, got %s; convert it with tn_to(%s, TN_F32)",
                                 name[i], tn_dtype_name(x->dtype), name[i]);
        if (x->l.shape.n < 2)
            return tn_infer_fail(c, TN_ESHAPE, "%s must be %s, got %s", name[i], dims[i],
                                 tn_shape_text(x->l.shape, text, sizeof text));
    }
    const tn_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2], *blocked = c->in[3], *keys = c->in[4];
    const int        nq = q->l.shape.n, nk = k->l.shape.n, nv = v->l.shape.n;
    const int64_t    queries = q->l.shape.d[nq - 2], count = k->l.shape.d[nk - 2];
    tn_shape         s, y;
    if (k->dtype != q->dtype || v->dtype != q->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "number types differ: q is %s, k %s, v %s", tn_dtype_name(q->dtype),
                             tn_dtype_name(k->dtype), tn_dtype_name(v->dtype));
    if (q->l.shape.d[nq - 1] != k->l.shape.d[nk - 1]) return fail(c, "q", q, "k", k, "differ in their last dim");
    if (count != v->l.shape.d[nv - 2])
        return fail(c, "k", k, "v", v, "differ in the number of keys, their last dim but one");
    if (!lead(lead_of(q), lead_of(k), &s)) return fail(c, "q", q, "k", k, "have leading dims that do not broadcast");
    if (!lead(s, lead_of(v), &y)) return fail(c, "k", k, "v", v, "have leading dims that do not broadcast");
    s.d[s.n++] = queries, s.d[s.n++] = count;
    y.d[y.n++] = queries, y.d[y.n++] = v->l.shape.d[nv - 1];
    tn_shape_text(s, scores, sizeof scores);
    if (blocked && blocked->dtype != TN_BOOL && !tn__is_float(blocked->dtype))
        return tn_infer_fail(
            c, TN_EDTYPE, "blocked must be bool (true: may not be attended) or floating (added to the scores), got %s",
            tn_dtype_name(blocked->dtype));
    if (blocked && !tn__broadcastable(blocked->l.shape, s))
        return tn_infer_fail(c, TN_ESHAPE, "blocked %s does not broadcast to the scores' %s",
                             tn_shape_text(blocked->l.shape, text, sizeof text), scores);
    if (keys && keys->dtype != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "blocked_keys must be bool (true: padding), got %s",
                             tn_dtype_name(keys->dtype));
    if (keys && (s.n < 3 || keys->l.shape.n != 2 || keys->l.shape.d[0] != s.d[0] || keys->l.shape.d[1] != count))
        return tn_infer_fail(c, TN_ESHAPE,
                             "blocked_keys %s does not fit the scores' %s: it must be [first dim, last dim]",
                             tn_shape_text(keys->l.shape, text, sizeof text), scores);
    const double p = TN_ARG(c, dropout), scale = TN_ARG(c, scale);
    if (!(p >= 0 && p <= 1)) return tn_infer_fail(c, TN_EINVAL, "dropout is %g, but a probability is from 0 to 1", p);
    if (!(scale - scale == 0)) return tn_infer_fail(c, TN_EINVAL, "scale is %g", scale);
    if (c->nout < 1 || c->nout > 2)
        return tn_infer_fail(c, TN_EINVAL, "gives a result and perhaps the weights, %d results were asked for",
                             c->nout);
    c->result[0] = (tn_result){q->dtype, y};
    if (c->nout == 2) c->result[1] = (tn_result){q->dtype, s};
    return true;
}

static void compose(tn_ctx *c)
{
    const args_t      *a = c->args;
    tn_generator      *g = tn_current_generator();
    const tn_generator before = *g;
    tn_tensor         *blocked = c->in[3], *keys = c->in[4];
    const bool         mask = blocked && blocked->dtype == TN_BOOL;
    tn_tensor         *w = tn_op_apply(&tn_op_attention_scores, &(double){a->scale}, 2, c->in);
    if (keys && w) { /* [B, S] → [B, 1, …, 1, S] */
        tn_shape s = {.n = w->l.shape.n};
        for (int i = 0; i < s.n; i++) s.d[i] = i == 0 ? keys->l.shape.d[0] : i == s.n - 1 ? keys->l.shape.d[1] : 1;
        keys = tn_reshape(keys, s);
    }
    w = tn_apply_args(&tn_op_attention_weights, &(bool){a->causal}, w, mask ? NULL : blocked, mask ? blocked : NULL,
                      keys);
    if (a->dropout > 0) w = tn_dropout(w, a->dropout);
    c->out[0] = tn_apply(&tn_op_select_matmul, w, c->in[2]);
    if (c->nout == 2) c->out[1] = w;
    if (tn__self.error) *g = before; /* a call that failed has drawn nothing */
}

#define ABSENT TN_ARG_ABSENT
#define NO_MASKS .kind = {0, 0, 0, ABSENT, ABSENT}
#define ARGS(causal, dropout, scale) \
    .args = &(args_t) { causal, dropout, scale }
static const tn_sample samples[] = {
    {.nout = 1, .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}}, NO_MASKS, ARGS(false, 0, 0.7)},
    {.nout = 2, .in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}, {4, {2, 2, 3, 2}}}, NO_MASKS, ARGS(true, 0, 0.7)},
    {.nout = 1,
     .in = {{3, {2, 2, 3}}, {3, {2, 4, 3}}, {3, {2, 4, 2}}, {2, {2, 4}}},
     .kind = {0, 0, 0, TN_ARG_MASK, ABSENT},
     ARGS(false, 0, 0.5)},
    {.nout = 1,
     .in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {2, {3, 3}}},
     .kind = {0, 0, 0, 0, ABSENT},
     ARGS(true, 0, 1)}, /* an added mask has a gradient */
    {.nout = 1,
     .in = {{4, {2, 2, 2, 2}}, {4, {2, 1, 3, 2}}, {3, {1, 3, 2}}, {1, {3}}, {2, {2, 3}}},
     .kind = {0, 0, 0, TN_ARG_MASK, TN_ARG_MASK},
     ARGS(false, 0, 0.5)},
    {.nout = 2,
     .in = {{3, {2, 3, 2}}, {3, {2, 3, 2}}, {3, {2, 3, 2}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN_ARG_MASK},
     ARGS(true, 0.3, 0.5)},
    {.nout = 1, .in = {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}}, NO_MASKS, ARGS(false, 0, 1)},
    {.nout = 1, .in = {{2, {2, 3}}, {2, {0, 3}}, {2, {0, 2}}}, NO_MASKS, ARGS(false, 0, 1)}, /* nothing to attend */
    {.nout = 1, .in = {{3, {0, 2, 3}}, {3, {0, 2, 3}}, {3, {0, 2, 3}}}, NO_MASKS, ARGS(true, 0, 1)},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 3}}, {2, {4, 3}}},
     NO_MASKS,
     ARGS(false, 0, 1),
     .status = TN_ESHAPE,
     .fails = "attention: q [3, 2] and k [4, 3] differ in their last dim"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {3, 2}}},
     NO_MASKS,
     ARGS(false, 0, 1),
     .status = TN_ESHAPE,
     .fails = "attention: k [4, 2] and v [3, 2] differ in the number of keys, their last dim but one"},
    {.nout = 1,
     .in = {{3, {2, 3, 2}}, {3, {3, 4, 2}}, {2, {4, 2}}},
     NO_MASKS,
     ARGS(false, 0, 1),
     .status = TN_ESHAPE,
     .fails = "attention: q [2, 3, 2] and k [3, 4, 2] have leading dims that do not broadcast"},
    {.nout = 1,
     .in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {3, 4, 2}}},
     NO_MASKS,
     ARGS(false, 0, 1),
     .status = TN_ESHAPE,
     .fails = "attention: k [2, 4, 2] and v [3, 4, 2] have leading dims that do not broadcast"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {1, {2}}, {2, {3, 2}}},
     NO_MASKS,
     ARGS(false, 0, 1),
     .status = TN_ESHAPE,
     .fails = "attention: k must be [..., S, D], got [2]"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}, {2, {3, 3}}},
     .kind = {0, 0, 0, TN_ARG_MASK, ABSENT},
     ARGS(false, 0, 1),
     .status = TN_ESHAPE,
     .fails = "attention: blocked [3, 3] does not broadcast to the scores' [3, 4]"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}, {2, {3, 4}}},
     .kind = {0, 0, 0, TN_ARG_INT, ABSENT},
     ARGS(false, 0, 1),
     .status = TN_EDTYPE,
     .fails = "attention: blocked must be bool (true: may not be attended) or floating (added to the scores), got i64"},
    {.nout = 1,
     .in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 3}}, {0}, {2, {2, 3}}},
     .kind = {0, 0, 0, ABSENT, TN_ARG_MASK},
     ARGS(false, 0, 1),
     .status = TN_ESHAPE,
     .fails = "attention: blocked_keys [2, 3] does not fit the scores' [2, 3, 4]: it must be [first dim, last dim]"},
    {.nout = 1,
     .in = {{3, {2, 3, 2}}, {3, {2, 4, 2}}, {3, {2, 4, 3}}, {0}, {2, {2, 4}}},
     .kind = {0, 0, 0, ABSENT, 0},
     ARGS(false, 0, 1),
     .status = TN_EDTYPE,
     .fails = "attention: blocked_keys must be bool (true: padding), got f32"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}},
     NO_MASKS,
     ARGS(false, 1.5, 1),
     .status = TN_EINVAL,
     .fails = "attention: dropout is 1.5, but a probability is from 0 to 1"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}},
     NO_MASKS,
     ARGS(false, 0, INFINITY),
     .status = TN_EINVAL,
     .fails = "attention: scale is inf"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 2}}},
     .kind = {0, 0, ABSENT, ABSENT, ABSENT},
     ARGS(false, 0, 1),
     .status = TN_EINVAL,
     .fails = "attention: v is NULL"},
    {.nout = 1,
     .in = {{2, {3, 2}}, {2, {4, 2}}, {2, {4, 3}}},
     .kind = {TN_ARG_INT, 0, 0, ABSENT, ABSENT},
     ARGS(false, 0, 1),
     .status = TN_EDTYPE,
     .fails = "attention: q must be floating, got i64; convert it with tn_to(q, TN_F32)"},
};

const tn_op tn_op_attention = {TN_ROOM("attention"),        .inputs = 5,    .outputs = TN_ANY, .optional = 31,
                               .args_size = sizeof(args_t), .infer = infer, .compose = compose};
TN_SAMPLES(attention, samples);

tn_tensor *tn_attention_run(tn_attention_args a)
{
    tn_tensor *in[5] = {a.q, a.k, a.v, a.blocked, a.blocked_keys}, *out[2];
    args_t     args = {a.causal, a.dropout, a.scale};
    tn__meet(3, in);
    if (a.scale == 0) {
        const int64_t d = in[0] && in[0]->l.shape.n ? in[0]->l.shape.d[in[0]->l.shape.n - 1] : 1;
        args.scale = 1 / sqrt(d > 0 ? (double)d : 1);
    } else if (a.scale == TN_ZERO) {
        args.scale = 0;
    }
    tn_op_call(&tn_op_attention, 5, in, a.weights ? 2 : 1, out, &args);
    if (a.weights) *a.weights = out[1];
    return out[0];
}
