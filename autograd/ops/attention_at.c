/* attention_at — attention whose number of earlier keys, .past, is the value of a tensor: for replays of a step that
 * reads a cache. It computes attention over the first past + T keys and values, and has no gradient. */
#include "autograd/rooms/attention_shapes.h"

enum { Q, K, V, PAST, INPUTS };
typedef tn__attention_args args_t;

static int64_t rows_of(const tn_tensor *x) { return x->l.shape.d[x->l.shape.n - 2]; }

/* The call of attention, with its inputs. */
static tn_ctx inner(const tn_ctx *c, tn_tensor *const *in, const args_t *a)
{
    tn_ctx own = *c;
    own.op = &tn__op_attention, own.in = in, own.nin = TN__ATTENTION_INPUTS, own.args = a;
    return own;
}

static bool attention_at_infer(tn_ctx *c)
{
    char             text[192];
    tn_tensor *const in[TN__ATTENTION_INPUTS] = {c->in[Q], c->in[K], c->in[V]}, *past = c->in[PAST];
    tn_ctx           own = inner(c, in, c->args);
    if (!tn__op_attention.infer(&own) || !tn__need_index(c, PAST)) return false;
    if (past->l.shape.n != 1 || past->l.shape.d[0] != 1)
        return tn_infer_fail(c, TN_ESHAPE, "past must be [1], got %s", tn_shape_text(past->l.shape, text, sizeof text));
    if (!TN_ARG(c, causal) || TN_ARG(c, past) || TN_ARG(c, dropout) > 0)
        return tn_infer_fail(c, TN_EINVAL, ".causal must be set, .past and .dropout must not");
    const int64_t at = tn_get_i64(past, 0), most = rows_of(in[K]) - rows_of(in[Q]);
    if (at >= 0 && at <= most) return true;
    return tn_infer_fail(c, TN_EINDEX, "past is %lld, but must be from 0 to %lld: %lld keys, %lld queries",
                         (long long)at, (long long)most, (long long)rows_of(in[K]), (long long)rows_of(in[Q]));
}

/* The first n keys or values, as a view on the stack. */
static tn_tensor first_of(const tn_tensor *x, int64_t n)
{
    tn__layout l = x->l;
    l.shape.d[l.shape.n - 2] = n;
    return tn__stack_view(x, &l);
}
static void attention_at_forward(tn_ctx *c)
{
    args_t a = *(const args_t *)c->args;
    a.past = tn_get_i64(c->in[PAST], 0);
    const int64_t    keys = a.past + rows_of(c->in[Q]);
    tn_tensor        k = first_of(c->in[K], keys), v = first_of(c->in[V], keys);
    tn_tensor *const in[TN__ATTENTION_INPUTS] = {c->in[Q], &k, &v};
    tn_ctx           own = inner(c, in, &a);
    tn__op_attention.forward(&own);
}

#define CONSTANTS .kind = {TN__ARG_CONST, TN__ARG_CONST, TN__ARG_CONST, TN__ARG_INDEX}
#define ARGS(...) \
    .args = &(args_t) { .scale = 0.6, __VA_ARGS__ }
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{4, {2, 2, 1, 3}}, {4, {2, 2, 6, 3}}, {4, {2, 2, 6, 2}}, {1, {1}}}, CONSTANTS, .low = {-2, -2, -2, 0},
     .high = {2, 2, 2, 6}, ARGS(.causal = true, .order = {.n = 4, .d = {0, 2, 1, 3}})},
    {.in = {{5, {1, 2, 2, 2, 3}}, {5, {1, 2, 1, 5, 3}}, {5, {1, 2, 1, 5, 3}}, {1, {1}}}, CONSTANTS,
     .low = {-2, -2, -2, 3}, .high = {2, 2, 2, 4}, ARGS(.causal = true, .window = 2, .cap = 3)},
    {.in = {{2, {1, 2}}, {2, {4, 2}}, {2, {4, 3}}, {1, {1}}}, CONSTANTS, .low = {-2, -2, -2, 4}, .high = {2, 2, 2, 5},
     ARGS(.causal = true), TN__FAILS(TN_EINDEX, "attention_at: past is 4, but must be from 0 to 3: 4 keys, 1 queries")},
    {.in = {{2, {1, 2}}, {2, {4, 2}}, {2, {4, 3}}, {1, {2}}}, CONSTANTS, ARGS(.causal = true),
     TN__FAILS(TN_ESHAPE, "attention_at: past must be [1], got [2]")},
    {.in = {{2, {1, 2}}, {2, {4, 2}}, {2, {4, 3}}, {1, {1}}}, CONSTANTS, ARGS(.causal = false),
     TN__FAILS(TN_EINVAL, "attention_at: .causal must be set, .past and .dropout must not")},
};
/* clang-format on */

const tn_op tn__op_attention_at = {TN__ROOM("attention_at", TN_NARROW(3)),
                                   .inputs = INPUTS,
                                   .outputs = 2,
                                   .args_size = sizeof(args_t),
                                   .infer = attention_at_infer,
                                   .forward = attention_at_forward};
TN__SAMPLES(attention_at, samples);

tn_tensor *tn_attention_at(tn_attention_args a, tn_tensor *past)
{
    tn_tensor *in[INPUTS] = {a.q, a.k, a.v, past}, *out[2];
    args_t     args = {.causal = a.causal, .int8 = a.int8, .past = a.past, .window = a.window, .dropout = a.dropout};
    if (tn__blocked()) return NULL;
    if (a.attn_mask || a.key_padding_mask || a.offsets || a.key_offsets || a.weights)
        return tn_raise_null(TN_EINVAL, "attention_at: masks, offsets and .weights are not supported; call "
                                        "tn_attention");
    tn__attention_join(a.int8, in);
    args.scale = tn__attention_scale(in[Q], a.scale), args.cap = a.cap, args.order = a.order;
    tn_op_call(&tn__op_attention_at, INPUTS, in, 2, out, &args);
    return out[0];
}
