/* attention_shapes.c — see attention_shapes.h. */
#include "autograd/rooms/attention_shapes.h"
#include "autograd/rooms/sequences.h"

#include <math.h>

static bool fail(const tn_ctx *c, const char *a, const tn_tensor *x, const char *b, const tn_tensor *y,
                 const char *problem)
{
    char xs[192], ys[192];
    return tn_infer_fail(c, TN_ESHAPE, "%s %s and %s %s %s", a, tn_shape_text(x->l.shape, xs, sizeof xs), b,
                         tn_shape_text(y->l.shape, ys, sizeof ys), problem);
}

bool tn__broadcast_lead(tn_shape a, tn_shape b, tn_shape *to)
{
    *to = (tn_shape){.n = a.n > b.n ? a.n : b.n};
    for (int i = 1; i <= to->n; i++) {
        const int64_t x = i <= a.n ? a.d[a.n - i] : 1, y = i <= b.n ? b.d[b.n - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        to->d[to->n - i] = x == 1 ? y : x;
    }
    return true;
}
tn_shape tn__lead_of(const tn_tensor *x)
{
    tn_shape s = x->l.shape;
    s.n -= 2;
    return s;
}
tn_shape tn__with_lead(tn_shape lead, int64_t rows, int64_t cols)
{
    lead.d[lead.n++] = rows, lead.d[lead.n++] = cols;
    return lead;
}

/* True if q, k and v are packed in one tensor. */
static bool packed(int nin, const tn_shape *shape, tn_tensor *const *in)
{
    return nin >= 3 && !in[TN__K] && !in[TN__V] && shape->n == 5 && shape->d[2] == 3;
}
tn_tensor tn__heads_of(const tn_tensor *x, int i)
{
    static const int turn[4] = {0, 3, 1, 4};
    tn__layout       l = {.shape.n = 4, .offset = x->l.offset + i * x->l.stride[2]};
    for (int d = 0; d < 4; d++) l.shape.d[d] = x->l.shape.d[turn[d]], l.stride[d] = x->l.stride[turn[d]];
    return tn__stack_view(x, &l);
}
void tn__attention_join(bool int8, tn_tensor **in)
{
    if (!int8) tn__promote_all(3, in);
    for (int i = TN__K; int8 && i <= TN__V; i++)
        if (in[i] && in[i]->l.shape.n && in[i]->l.stride[in[i]->l.shape.n - 1] != 1) in[i] = tn_contiguous(in[i]);
}
void tn__attention_parts(bool int8, tn_tensor *const *in, tn_tensor *to)
{
    const bool one = packed(3, &in[TN__Q]->l.shape, in);
    for (int i = 0; i < 3; i++) to[i] = one ? tn__heads_of(in[TN__Q], i) : tn__stack_view(in[i], &in[i]->l);
    for (int i = TN__K; int8 && i <= TN__V; i++) to[i].l.shape.d[to[i].l.shape.n - 1] -= TN_INT8_ROW_SCALE;
}

/* For infer: whether q and the rows of k and v have the dtypes that int8 needs. */
static bool infer_int8(const tn_ctx *c)
{
    static const char *const name[] = {"q", "k", "v"};
    char                     text[192];
    for (int i = TN__K; i <= TN__V; i++) {
        const tn_tensor *x = c->in[i];
        if (!x) return tn_infer_fail(c, TN_EINVAL, "%s is NULL", name[i]);
        if (x->dtype != TN_U8 || x->l.shape.n < 2 || x->l.shape.d[x->l.shape.n - 1] <= TN_INT8_ROW_SCALE)
            return tn_infer_fail(
                c, TN_EDTYPE, "with .int8 %s must be u8 [..., S, D + %d], as tn_int8_rows returns it, got %s %s",
                name[i], TN_INT8_ROW_SCALE, tn_dtype_name(x->dtype), tn_shape_text(x->l.shape, text, sizeof text));
    }
    if (!c->in[TN__Q] || c->in[TN__Q]->dtype != TN_F64) return true;
    return tn_infer_fail(c, TN_EDTYPE, "q is f64, but with .int8 it must be f32 or bf16");
}

/* For infer: q, k and v (or the packed tensor) must be floating matrices of one dtype. */
static bool infer_parts(const tn_ctx *c, bool int8)
{
    static const char *const name[] = {"q", "k", "v"}, *const dims[] = {"[..., T, D]", "[..., S, D]", "[..., S, E]"};
    char       text[192];
    const bool one = c->in[TN__Q] && packed(c->nin, &c->in[TN__Q]->l.shape, c->in);
    if (int8 && !infer_int8(c)) return false;
    for (int i = 0; i < (one || int8 ? 1 : 3); i++) {
        const tn_tensor *x = c->in[i];
        if (!x) return tn_infer_fail(c, TN_EINVAL, "%s is NULL", name[i]);
        if (!tn__is_float(x->dtype))
            return tn_infer_fail(c, TN_EDTYPE, "%s must be floating, got %s; convert it with tn_to(%s, TN_F32)",
                                 name[i], tn_dtype_name(x->dtype), name[i]);
        if (x->l.shape.n < 2)
            return tn_infer_fail(c, TN_ESHAPE, "%s must be %s, got %s", name[i], dims[i],
                                 tn_shape_text(x->l.shape, text, sizeof text));
    }
    return true;
}

/* For infer: the shapes of the scores, and of the result before its dims are reordered. */
static bool infer_shapes(const tn_ctx *c, const tn_tensor *part, tn_shape *scores, tn_shape *result)
{
    const tn_tensor *q = &part[0], *k = &part[1], *v = &part[2];
    const int        nq = q->l.shape.n, nk = k->l.shape.n, nv = v->l.shape.n;
    const int64_t    queries = q->l.shape.d[nq - 2], count = k->l.shape.d[nk - 2];
    tn_shape         s = {.n = 0}, y = {.n = 0};
    if (k->dtype != v->dtype || (k->dtype != q->dtype && k->dtype != TN_U8))
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: q is %s, k %s, v %s", tn_dtype_name(q->dtype),
                             tn_dtype_name(k->dtype), tn_dtype_name(v->dtype));
    if (q->l.shape.d[nq - 1] != k->l.shape.d[nk - 1]) return fail(c, "q", q, "k", k, "differ in their last dim");
    if (count != v->l.shape.d[nv - 2])
        return fail(c, "k", k, "v", v, "differ in the number of keys, their second to last dim");
    if (!tn__broadcast_lead(tn__lead_of(q), tn__lead_of(k), &s))
        return fail(c, "q", q, "k", k, "have leading dims that do not broadcast");
    if (!tn__broadcast_lead(s, tn__lead_of(v), &y))
        return fail(c, "k", k, "v", v, "have leading dims that do not broadcast");
    *scores = tn__with_lead(s, queries, count), *result = tn__with_lead(y, queries, v->l.shape.d[nv - 1]);
    return tn__shape_check(c->op->name, q->dtype, *scores);
}

static bool infer_masks(const tn_ctx *c, tn_shape s)
{
    const tn_tensor *attn_mask = c->in[TN__MASK], *keys = c->in[TN__PADDING];
    const int64_t    count = s.d[s.n - 1];
    char             text[192], scores[192];
    if (attn_mask && attn_mask->dtype != TN_BOOL && !tn__is_float(attn_mask->dtype))
        return tn_infer_fail(c, TN_EDTYPE,
                             "attn_mask must be bool (true: masked) or floating (added to the scores), got %s",
                             tn_dtype_name(attn_mask->dtype));
    if (attn_mask && !tn__broadcastable(attn_mask->l.shape, s))
        return tn_infer_fail(c, TN_ESHAPE, "attn_mask %s does not broadcast to the scores' %s",
                             tn_shape_text(attn_mask->l.shape, text, sizeof text),
                             tn_shape_text(s, scores, sizeof scores));
    if (keys && keys->dtype != TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "key_padding_mask must be bool (true: padding), got %s",
                             tn_dtype_name(keys->dtype));
    if (keys && (s.n < 3 || keys->l.shape.n != 2 || keys->l.shape.d[0] != s.d[0] || keys->l.shape.d[1] != count))
        return tn_infer_fail(c, TN_ESHAPE,
                             "key_padding_mask %s does not fit the scores' %s: it must be [first dim, last dim]",
                             tn_shape_text(keys->l.shape, text, sizeof text), tn_shape_text(s, scores, sizeof scores));
    return true;
}

static bool infer_sequences(const tn_ctx *c, tn_shape scores, bool weights)
{
    const tn_tensor          *offsets = c->in[TN__OFFSETS], *keys = c->in[TN__KEY_OFFSETS];
    const tn__attention_args *a = c->args;
    const int64_t             queries = scores.d[scores.n - 2], count = scores.d[scores.n - 1];
    if (!offsets) return !keys || tn_infer_fail(c, TN_EINVAL, "key_offsets need offsets");
    if (scores.n == TN_MAX_DIMS)
        return tn_infer_fail(c, TN_ESHAPE, "q has %d dims; with offsets at most %d", scores.n, TN_MAX_DIMS - 1);
    if (c->in[TN__MASK] || c->in[TN__PADDING] || a->past)
        return tn_infer_fail(c, TN_EINVAL,
                             "masks and past are for padded batches; with offsets a query attends to its own sequence");
    if (weights) return tn_infer_fail(c, TN_EUNSUPPORTED, "the weights of an unpadded batch are not available; pad it");
    if (!tn__infer_offsets(c, TN__OFFSETS, "offsets", queries)) return false;
    if (!tn__infer_offsets(c, TN__KEY_OFFSETS, "key_offsets", count)) return false;
    if (offsets->l.shape.d[0] != keys->l.shape.d[0])
        return tn_infer_fail(c, TN_ESHAPE, "there are %lld sequences of queries and %lld of keys",
                             (long long)offsets->l.shape.d[0] - 1, (long long)keys->l.shape.d[0] - 1);
    return true;
}

double tn__attention_scale(const tn_tensor *q, double scale)
{
    const int64_t d = q && q->l.shape.n ? q->l.shape.d[q->l.shape.n - 1] : 1;
    return scale < 0 ? 1 / sqrt(d > 0 ? (double)d : 1) : scale;
}

bool tn__attention_infer(tn_ctx *c, bool weights)
{
    const tn__attention_args *a = c->args;
    const double              p = a->dropout, scale = a->scale;
    const tn_dims             order = a->order;
    tn_tensor                 part[3];
    tn_shape                  s = {.n = 0}, y = {.n = 0}, rows;
    if (!infer_parts(c, a->int8)) return false;
    tn__attention_parts(a->int8, c->in, part);
    if (!infer_shapes(c, part, &s, &y) || !infer_masks(c, s) || !infer_sequences(c, s, weights)) return false;
    if (!(p >= 0 && p <= 1))
        return tn_infer_fail(c, TN_EINVAL, "dropout is %g, but a probability must be from 0 to 1", p);
    if (!(scale - scale == 0)) return tn_infer_fail(c, TN_EINVAL, "scale is %g", scale);
    if (a->past < 0 || (a->past && !a->causal))
        return tn_infer_fail(c, TN_EINVAL, "past is %lld, but must be 0, or at least 1 together with causal",
                             (long long)a->past);
    if (a->window < 0)
        return tn_infer_fail(c, TN_EINVAL, "window is %lld, but must be at least 0", (long long)a->window);
    if (!(a->cap >= 0 && a->cap - a->cap == 0))
        return tn_infer_fail(c, TN_EINVAL, "cap is %g, but must be at least 0", a->cap);
    const tn_dtype dt = part[0].dtype;
    c->result[0] = (tn_result){dt, y};
    if (order.n) {
        const tn__layout l = {.shape = y};
        tn__layout       permuted;
        if (!tn__view_permute(c->op->name, &l, order, &permuted)) return false;
        c->result[0].shape = permuted.shape;
    }
    rows = y, rows.d[rows.n - 1] = 2;
    if (!weights) c->result[1] = (tn_result){tn__wide(dt), rows};
    else c->result[1] = (tn_result){dt, s};
    return true;
}
