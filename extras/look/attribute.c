/* attribute.c — each token's contribution to a score: integrated gradients (Sundararajan et al. 2017).
 *
 *   a_i = (x_i - b_i) · ∫₀¹ ∂s/∂x_i (b + α (x - b)) dα,   Σ a_i = s(x) - s(b)
 *
 * The integral is computed with Gauss-Legendre quadrature, three points in each interval of [0, 1]. The exact integral
 * over an interval is known, the difference of the scores at its ends: if the sum differs from it, the interval is
 * halved. Halving is needed: after a layer norm, a path that starts at 0 may have its whole integral before α = 1e-5.
 * The token embeddings are replaced at their module, through nn/look.h. With one step the result is gradient ×
 * (input - baseline) at the input. */
#include "extras/look.h"

#include <math.h>
#include <string.h>

typedef struct {
    const tn_attribute_args *a;
    tn_look                 *look;
    tn_tensor               *x, *b; /* token embeddings, baseline of the same shape; owned; NULL: not known yet */
    tn_tensor               *here;  /* their replacement in this run, a leaf; owned */
    double                   alpha;
} path_state;

static tn_tensor *replace_embeddings(const char *path, tn_tensor *t, void *user)
{
    path_state *c = user;
    (void)path;
    if (c->here) return NULL; /* a shared embedding: replace only its first result */
    if (!c->x) {
        tn_tensor *b =
            c->a->baseline ? tn_expand(tn_to(c->a->baseline, tn_dtype_of(t)), tn_shape_of(t)) : tn_zeros_like(t);
        if (b) c->x = tn_keep(tn_detach(t)), c->b = tn_keep(tn_detach(b));
        if (!c->x) return NULL;
    }
    tn_tensor *here = tn_add(c->b, tn_mul_scalar(tn_sub(c->x, c->b), c->alpha));
    if (here) c->here = tn_keep(tn_requires_grad(tn_detach(here)));
    return c->here;
}

/* The score at alpha. If gradient is not NULL, adds weight times the gradient of the embeddings to *gradient. */
static double score_at(path_state *c, double alpha, double weight, tn_tensor **gradient)
{
    const tn_scope s = gradient ? tn_scope_begin() : tn_no_grad_begin();
    c->alpha = alpha;
    const tn_scope inner = tn_look_begin(c->look);
    tn_tensor     *y = tn_scope_return(inner, c->a->score(c->a->model, c->a->user));
    double         value = NAN;
    if (!y && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_attribute: the score is NULL");
    if (y && !c->x && tn_error() == TN_OK)
        tn_raise(TN_EINDEX,
                 "tn_attribute: no module '%s' ran while the score was computed; set .path to the path of the token "
                 "embedding",
                 c->a->path);
    if (y && tn_error() == TN_OK) value = tn_item(y);
    tn_tensor *g = gradient && tn_error() == TN_OK ? tn_grad_wrt(y, c->here, false) : NULL;
    if (g) {
        g = tn_to(g, TN_F64);
        g = *gradient ? tn_add(*gradient, tn_mul_scalar(g, weight)) : tn_mul_scalar(g, weight);
        if (g) tn_keep(g);
        tn_drop(*gradient);
        *gradient = g;
    }
    tn_drop(c->here);
    c->here = NULL;
    tn_look_clear(c->look);
    tn_scope_end(s);
    return value;
}

/* The contributions [B, T]: (x - b) · gradient, summed over the embedding. */
static tn_tensor *contributions(const path_state *c, tn_tensor *g)
{
    return tn_sum(tn_mul(tn_to(tn_sub(c->x, c->b), TN_F64), g), .dims = TN_DIMS(-1));
}

/* An interval of α, and the scores at its ends. */
typedef struct {
    double from, to, at_from, at_to;
} piece;

/* The integral of the gradient over the interval, owned by the caller; NULL: raised. */
static tn_tensor *integral(path_state *c, const piece *p)
{
    static const double place[] = {-0.7745966692414834, 0, 0.7745966692414834}; /* ±√(3/5) */
    static const double part[] = {5. / 18, 8. / 18, 5. / 18};
    tn_tensor          *g = NULL;
    for (int k = 0; k < 3 && tn_error() == TN_OK; k++)
        score_at(c, p->from + (0.5 + place[k] / 2) * (p->to - p->from), part[k] * (p->to - p->from), &g);
    if (tn_error() == TN_OK) return g;
    tn_drop(g);
    return NULL;
}

static void add_to(tn_tensor **sum, tn_tensor *g)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *both = *sum ? tn_add(*sum, g) : NULL;
    if (both) tn_keep(both);
    tn_scope_end(s);
    if (*sum) tn_drop(*sum), tn_drop(g);
    *sum = *sum ? both : g;
}

/* Adds the integral over p to *sum, halving intervals until each one's error is at most `close`; *left: remaining
 * number of gradients. False: not enough, or raised. */
static bool integrate(path_state *c, piece p, double close, int64_t *left, tn_tensor **sum)
{
    enum { DEPTH = 48 };
    piece   stack[DEPTH];
    int64_t n = 0;
    for (stack[n++] = p; n && tn_error() == TN_OK;) {
        p = stack[--n];
        if ((*left -= 3) < 0) return false;
        tn_tensor     *g = integral(c, &p);
        const tn_scope s = tn_no_grad_begin();
        const double   found = g ? tn_item(tn_sum(contributions(c, g))) : NAN, middle = (p.from + p.to) / 2;
        tn_scope_end(s);
        if (fabs(found - (p.at_to - p.at_from)) <= close || n + 2 > DEPTH) {
            if (g) add_to(sum, g);
            continue;
        }
        tn_drop(g);
        const double at = score_at(c, middle, 0, NULL);
        stack[n++] = (piece){middle, p.to, at, p.at_to};
        stack[n++] = (piece){p.from, middle, p.at_from, at};
    }
    return tn_error() == TN_OK;
}

/* The shortest text that reads back as v, 3 rather than 3.0. */
static const char *number(double v, char to[32])
{
    const int n = tn_format_double(v, to);
    if (n > 2 && !strcmp(to + n - 2, ".0")) to[n - 2] = 0;
    return to;
}

/* The mean gradient on the path, owned by the caller; NULL: raised. Errors of the size of rounding are accepted. */
static tn_tensor *mean_gradient(path_state *c, double at_words, double at_baseline)
{
    enum { MOST = 1024 };
    const double  difference = at_words - at_baseline, rounding = 1e-6 * (1 + fabs(at_words) + fabs(at_baseline));
    const double  within = fmax(c->a->within * fabs(difference), 10 * rounding);
    const int64_t pieces = c->a->steps > 3 ? c->a->steps / 3 : 1;
    int64_t       left = MOST + c->a->steps;
    double        sum = NAN;
    char          text[32];
    for (double close = within / 8; tn_error() == TN_OK; close /= 4) {
        tn_tensor *g = NULL;
        piece      p = {.at_to = at_baseline};
        bool       more = true;
        for (int64_t i = 0; i < pieces && more; i++) {
            p = (piece){p.to, (double)(i + 1) / (double)pieces, p.at_to, at_words};
            if (i + 1 < pieces) p.at_to = score_at(c, p.to, 0, NULL);
            more = integrate(c, p, fmax(close, rounding), &left, &g);
        }
        const tn_scope s = tn_no_grad_begin();
        if (more) sum = tn_item(tn_sum(contributions(c, g)));
        tn_scope_end(s);
        if (more && tn_error() == TN_OK && (fabs(sum - difference) <= within || close <= rounding)) return g;
        tn_drop(g);
        if (!more && tn_error() == TN_OK)
            tn_raise(
                TN_ENUMERIC,
                "tn_attribute: after %d steps the sum still differs from the difference %s by more than .within; put "
                "a model with dropout in eval mode (tn_eval), use another .baseline, or increase .within",
                MOST, number(difference, text));
    }
    return NULL;
}

static tn_tensor *attribute(path_state *c, double at_words, double at_baseline)
{
    tn_tensor *g = NULL;
    char       text[2][32];
    if (tn_error() == TN_OK && !isfinite(at_words - at_baseline))
        return tn_raise_null(
            TN_ENUMERIC,
            "tn_attribute: the score is %s at the input and %s at the baseline; look for NaN and Inf in the "
            "model's weights",
            number(at_words, text[0]), number(at_baseline, text[1]));
    if (c->a->steps > 1) g = mean_gradient(c, at_words, at_baseline);
    else score_at(c, 1, 1, &g);
    tn_tensor *y = g && tn_error() == TN_OK ? tn_to(contributions(c, g), TN_F32) : NULL;
    tn_drop(g);
    return y;
}

tn_tensor *tn_attribute_run(tn_attribute_args a)
{
    if (tn_blocked() || !tn_module_ready("tn_attribute", a.model)) return NULL;
    if (!a.path || !a.score) return tn_raise_null(TN_EINVAL, "tn_attribute: .%s is missing", a.path ? "score" : "path");
    if (a.steps < 1 || a.steps > 1024)
        return tn_raise_null(TN_EINVAL, "tn_attribute: .steps is %lld, but must be from 1 to 1024", (long long)a.steps);
    path_state     c = {.a = &a, .look = tn_look_new()};
    const tn_scope s = tn_scope_begin();
    tn_look_request(c.look, a.path, .change = replace_embeddings, .user = &c);
    const double at_words = score_at(&c, 1, 0, NULL), at_baseline = score_at(&c, 0, 0, NULL);
    tn_tensor   *y = tn_error() == TN_OK ? attribute(&c, at_words, at_baseline) : NULL;
    if (a.difference) *a.difference = at_words - at_baseline;
    y = tn_scope_return(s, tn_error() == TN_OK ? y : NULL);
    tn_look_free(c.look);
    tn_drop(c.x), tn_drop(c.b);
    return y;
}
