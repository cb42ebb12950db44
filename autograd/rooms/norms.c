/* norms.c — shared code of norms and dropout: the shape rule, layer norm's gradients made of ops, and the drawing of a
 * dropout mask. */
#include "autograd/rooms/room.h"

static bool fits(const tn_ctx *c, int i, const char *name, int *dims)
{
    const tn_shape x = c->in[0]->l.shape;
    char           a[192], b[192];
    if (!c->in[i]) return true;
    if (!tn__need_real(c, i)) return false;
    const tn_shape w = c->in[i]->l.shape;
    bool           ok = w.n >= 1 && w.n <= x.n && (!*dims || w.n == *dims);
    for (int k = 1; ok && k <= w.n; k++) ok = w.d[w.n - k] == x.d[x.n - k];
    *dims = w.n;
    if (ok) return true;
    return tn_infer_fail(c, TN_ESHAPE, "%s %s must have the shape of the last dims of %s, over which it normalises",
                         name, tn_shape_text(w, a, sizeof a), tn_shape_text(x, b, sizeof b));
}

bool tn__infer_norm(tn_ctx *c, int weight, int bias, double eps, int stat, int numbers)
{
    const tn_shape x = c->in[0]->l.shape;
    int            dims = 0;
    if (!fits(c, weight, "weight", &dims) || (bias >= 0 && !fits(c, bias, "bias", &dims))) return false;
    if (!dims) dims = 1;
    if (x.n == 0) return tn_infer_fail(c, TN_ESHAPE, "a 0-d tensor has no dim to normalise over");
    if (!(eps >= 0)) return tn_infer_fail(c, TN_EINVAL, "eps is %g, but must not be negative", eps);
    c->result[stat] = (tn_result){tn__wide(c->in[0]->dtype), {.n = x.n - dims + 1}};
    for (int i = 0; i < x.n - dims; i++) c->result[stat].shape.d[i] = x.d[i];
    c->result[stat].shape.d[x.n - dims] = numbers;
    return true;
}

void tn__layer_norm_ops(tn_tensor *x, tn_tensor *weight, tn_tensor *gy, int over, double eps, tn_tensor **gx,
                        tn_tensor **gw)
{
    tn_dims dims = {.n = over};
    for (int i = 0; i < dims.n; i++) dims.d[i] = -1 - i;
    tn_tensor *d = tn_sub(x, tn_mean(x, .dims = dims, .keepdim = true));
    tn_tensor *r = tn_rsqrt(tn_add_scalar(tn_mean(tn_square(d), .dims = dims, .keepdim = true), eps));
    tn_tensor *normed = tn_mul(d, r), *g = gx && weight ? tn_mul(gy, weight) : gy;
    if (gw) *gw = tn_mul(gy, normed);
    if (!gx) return;
    tn_tensor *along = tn_mul(normed, tn_mean(tn_mul(g, normed), .dims = dims, .keepdim = true));
    *gx = tn_mul(r, tn_sub(tn_sub(g, tn_mean(g, .dims = dims, .keepdim = true)), along));
}

tn__norm_arguments tn__norm_args(double eps, int tensors, const tn_tensor *x)
{
    const bool stream =
        x && x->dtype != TN_BF16 && tn__beyond_caches(tensors * tn_numel(x) * (int64_t)tn__dtype_bytes(x->dtype));
    return (tn__norm_arguments){eps, stream};
}

tn__dropped tn__drop_of(double p, uint64_t seed, uint64_t position)
{
    /* An element is kept if its 16 random bits are at least this. */
    const double kept_from = p > 0 && p < 1 ? fmin(fmax(rint(p * 0x1p16), 1), 0xffff) : p * 0x1p16;
    uint32_t     word[4];
    tn__philox(seed, position, word);
    return (tn__dropped){tn__word64(word), 0, p == 0, (uint32_t)((uint64_t)kept_from * 0x10000 - 1),
                         p < 1 ? 1 / (1 - p) : 0};
}

tn__drop_rows tn__drop_rows_of(tn__dropped drop, const tn_tensor *x, const tn_tensor *rows, int64_t length)
{
    const tn_shape s = x->l.shape;
    tn__drop_rows  a = {drop, NULL, s.n > 2 && s.d[0] ? tn_numel(x) / s.d[0] : tn_numel(x)};
    if (rows) a.row = tn__ptr(rows), a.per = length * (s.n ? s.d[s.n - 1] : 1);
    return a;
}

tn__drop_part tn__drop_part_of(const tn__drop_rows *a, int64_t first, int64_t n)
{
    tn__drop_part p = {.first = first % a->per};
    p.n = tn__min_i64(n, a->per - p.first);
    p.drop = tn__drop_sequence(a->drop, first / a->per);
    return p;
}

/* Rows of more keys continue in the next row's part. Places are i64: parts are smaller for more than SEQUENCES. */
enum { KEYS_APART = 1 << 18, SEQUENCES = 1 << 22 };

tn__layout tn__drop_layout(tn_shape weights)
{
    tn__layout l = {.shape = weights};
    const int  n = weights.n;
    int64_t    apart = TN__DROP_APART, step = KEYS_APART;
    for (int64_t b = n > 2 ? weights.d[0] : 0; b > SEQUENCES; b /= 2) apart /= 2;
    for (int d = n - 3; d > 0; d--) l.stride[d] = step, step *= weights.d[d];
    if (n > 2) l.stride[0] = apart;
    l.stride[n - 2] = step, l.stride[n - 1] = 1;
    return l;
}

bool tn__need_probability(const tn_ctx *c, double p)
{
    return (p >= 0 && p <= 1) || tn_infer_fail(c, TN_EINVAL, "p is %g, but a probability must be from 0 to 1", p);
}
