/* anomaly.c — anomaly mode: the first NaN or Inf in a result or a gradient is an error that names its place. */
#include "autograd/tape/tape.h"

void tn_detect_anomaly(bool on)
{
    tn__tape.anomaly = on;
    tn__tape.steps = 0;
}

bool tn__check_finite(const tn_tensor *t, const char *caller, const char *role)
{
    if (!t || !tn__is_float(t->dtype)) return true;
    const int64_t n = tn_shape_numel(t->l.shape);
    for (int64_t i = 0; i < n; i++) {
        double v = tn_get(t, i);
        if (v - v == 0) continue; /* false for NaN and Inf alone */
        tn_shape at = {.n = t->l.shape.n};
        int64_t  rest = i;
        for (int d = at.n - 1; d >= 0; d--) at.d[d] = rest % t->l.shape.d[d], rest /= t->l.shape.d[d];
        char text[192];
        return tn_raise_false(TN_ENUMERIC, "%s: %s has the first %s, at %s (step %llu)", caller, role,
                              v != v ? "NaN" : "Inf", tn_shape_text(at, text, sizeof text),
                              (unsigned long long)tn__tape.steps);
    }
    return true;
}

bool tn__finite_gradient(const tn__node *n, int i, const tn_tensor *g)
{
    char       role[64], prefix[600];
    const bool path = n->path && *n->path;
    snprintf(role, sizeof role, "the gradient of input %d", i);
    snprintf(prefix, sizeof prefix, "%s%sbackward of %s", path ? n->path : "", path ? ": " : "", n->op->name);
    return tn__check_finite(g, prefix, role);
}

bool tn__results_finite(const tn_ctx *c)
{
    for (int i = 0; i < c->nout; i++)
        if (!tn__check_finite(c->out[i], c->op->name, "the result")) return false;
    return true;
}
