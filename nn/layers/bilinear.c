/* bilinear.c — Bilinear: y[..., o] = Σ x1[..., i] W[o, i, j] x2[..., j] + b[o]. */
#include "nn/base/nn_private.h"

#include <math.h>

tn_tensor *tn_bilinear_forward(tn_bilinear *m, tn_tensor *x1, tn_tensor *x2)
{
    char a[192], b[192];
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    if (!x1 || !x2) return tn_raise(TN_EINVAL, "bilinear: x%d is NULL", x1 ? 2 : 1), tn_leave(f, NULL);
    tn_shape s = tn_shape_of(x1), t = tn_shape_of(x2);
    bool     fits = s.n == t.n && s.n > 0 && s.d[s.n - 1] == m->in1 && t.d[t.n - 1] == m->in2;
    for (int i = 0; fits && i < s.n - 1; i++) fits = s.d[i] == t.d[i];
    if (!fits)
        return tn_raise(TN_ESHAPE,
                        "bilinear: x1 must be [..., %lld] and x2 [..., %lld] with equal leading dims, got %s and %s",
                        (long long)m->in1, (long long)m->in2, tn_shape_text(s, a, sizeof a),
                        tn_shape_text(t, b, sizeof b)),
               tn_leave(f, NULL);
    s.n--, t.n = s.n;
    const int64_t rows = tn_shape_numel(s);
    tn_tensor    *u = tn_reshape(x1, TN_SHAPE(rows, m->in1)), *v = tn_reshape(x2, TN_SHAPE(rows, m->in2));
    tn_tensor    *w = tn_reshape(tn_transpose(m->weight, 0, 1), TN_SHAPE(m->in1, m->out * m->in2));
    u = tn_reshape(tn_matmul(u, w), TN_SHAPE(rows, m->out, m->in2));
    tn_tensor *y = tn_matmul(u, tn_unsqueeze(v, -1)); /* [rows, out, 1] */
    s.d[s.n++] = m->out;
    y = tn_reshape(y, s);
    return tn_leave(f, m->bias ? tn_add(y, m->bias) : y);
}

static void bilinear_describe(const void *self, char *text, size_t size)
{
    const tn_bilinear *m = self;
    snprintf(text, size, "in1_features=%lld, in2_features=%lld, out_features=%lld, bias=%s", (long long)m->in1,
             (long long)m->in2, (long long)m->out, tn__python_bool(m->bias));
}

static const tn_class tn_bilinear_class = {
    .size = sizeof(tn_class), .name = "Bilinear", .bytes = sizeof(tn_bilinear), .describe = bilinear_describe};

tn_bilinear *tn_bilinear_create(tn_bilinear_config c)
{
    const char *who = "tn_bilinear_new";
    if (!tn__at_least(who, "in1", c.in1, 1) || !tn__at_least(who, "in2", c.in2, 1) ||
        !tn__at_least(who, "out", c.out, 1) || !tn__floating(who, c.dtype))
        return NULL;
    tn_bilinear *m = tn_module_new(tn_bilinear);
    if (!m) return NULL;
    const double k = 1 / sqrt((double)c.in1); /* in1 alone, as in PyTorch */
    m->in1 = c.in1, m->in2 = c.in2, m->out = c.out;
    m->weight = tn_param(m, "weight", tn_uniform_of(c.dtype, TN_SHAPE(c.out, c.in1, c.in2), -k, k));
    if (!c.no_bias) m->bias = tn_param(m, "bias", tn_uniform_of(c.dtype, TN_SHAPE(c.out), -k, k));
    return tn_built(m);
}
