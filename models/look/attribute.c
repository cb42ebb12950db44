/* attribute.c — what each word adds to a score: integrated gradients (Sundararajan et al. 2017).
 *
 *   a_i = (x_i - b_i) · ∫₀¹ ∂s/∂x_i (b + α (x - b)) dα,   Σ a_i = s(x) - s(b)
 *
 * The integral is a sum over points of Gauss and Legendre, three in each of `steps` / 3 pieces of [0, 1]: twice as many
 * until the sum is right. The vectors of the words are changed where they are made, as nn/look.h has it. With one step
 * it is gradient × (input - baseline) at the input. */
#include "core/base/toolbox.h"
#include "models/look.h"

#include <math.h>

typedef struct {
    const tn_attribute_args *a;
    tn_look                 *look;
    tn_tensor *x, *b; /* the words' vectors, and the baseline's in their shape; kept; NULL: not yet known */
    tn_tensor *here;  /* what took their place in this run, a leaf; kept */
    double     alpha;
} course;

static tn_tensor *moved(const char *path, tn_tensor *t, void *user)
{
    course *c = user;
    (void)path;
    if (c->here) return NULL; /* a table that is shared: only the first words that it is asked for */
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

/* The score at alpha; with *gradient, that of the words' vectors there is added to it, times weight. */
static double score_at(course *c, double alpha, double weight, tn_tensor **gradient)
{
    const tn_scope s = gradient ? tn_scope_begin() : tn_no_grad_begin();
    c->alpha = alpha;
    const tn_scope inner = tn_look_begin(c->look);
    tn_tensor     *y = tn_scope_return(inner, c->a->score(c->a->model, c->a->user));
    double         value = NAN;
    if (!y && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_attribute: the score is NULL");
    if (y && !c->x && tn_error() == TN_OK)
        tn_raise(TN_EINDEX,
                 "tn_attribute: no module '%s' gave anything while the score was computed; .path names the "
                 "one that makes the words' vectors",
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

/* The mean gradient on the way, kept; NULL: raised. */
static tn_tensor *mean_gradient(course *c, int64_t steps)
{
    static const double place[] = {-0.7745966692414834, 0, 0.7745966692414834}; /* ±√(3/5) */
    static const double part[] = {5. / 18, 8. / 18, 5. / 18};
    const int64_t       pieces = steps > 3 ? steps / 3 : 1;
    tn_tensor          *g = NULL;
    if (steps == 1) score_at(c, 1, 1, &g);
    for (int64_t i = 0; steps > 1 && i < 3 * pieces && tn_error() == TN_OK; i++) {
        const int64_t piece = i / 3, k = i % 3;
        score_at(c, ((double)piece + 0.5 + place[k] / 2) / (double)pieces, part[k] / (double)pieces, &g);
    }
    if (tn_error() == TN_OK) return g;
    tn_drop(g);
    return NULL;
}

/* [B, T] of the gradient and the way. */
static tn_tensor *by_word(const course *c, tn_tensor *g)
{
    return tn_sum(tn_mul(tn_to(tn_sub(c->x, c->b), TN_F64), g), .dims = TN_DIMS(-1));
}

static tn_tensor *attributed(course *c, double difference)
{
    const double within = c->a->within * fabs(difference);
    tn_tensor   *y = NULL;
    for (int64_t steps = c->a->steps; tn_error() == TN_OK; steps *= 2) {
        tn_tensor *g = mean_gradient(c, steps);
        y = g ? by_word(c, g) : NULL;
        tn_drop(g);
        if (!y || steps == 1 || 2 * steps > 1024 || fabs(tn_item(tn_sum(y)) - difference) <= within) break;
    }
    return y ? tn_to(y, TN_F32) : NULL;
}

tn_tensor *tn_attribute_run(tn_attribute_args a)
{
    if (tn__blocked() || !tn_module_ready("tn_attribute", a.model)) return NULL;
    if (!a.path || !a.score)
        return tn_raise(TN_EINVAL, "tn_attribute: .%s is missing", a.path ? "score" : "path"), NULL;
    if (a.steps < 1 || a.steps > 1024)
        return tn_raise(TN_EINVAL, "tn_attribute: .steps is %lld, but must be from 1 to 1024", (long long)a.steps),
               NULL;
    course         c = {.a = &a, .look = tn_look_new()};
    const tn_scope s = tn_scope_begin();
    tn_look_want(c.look, a.path, .change = moved, .user = &c);
    const double at_words = score_at(&c, 1, 0, NULL), at_baseline = score_at(&c, 0, 0, NULL);
    tn_tensor   *y = tn_error() == TN_OK ? attributed(&c, at_words - at_baseline) : NULL;
    if (a.difference) *a.difference = at_words - at_baseline;
    y = tn_scope_return(s, tn_error() == TN_OK ? y : NULL);
    tn_look_free(c.look);
    tn_drop(c.x), tn_drop(c.b);
    return y;
}
