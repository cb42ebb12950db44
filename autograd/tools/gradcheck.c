/* gradcheck.c — checks gradients by comparing them with differences.
 *
 *   f(x) = Σ wᵢ yᵢ(x) with random weights w, so that no symmetry of the result can hide an error
 *   f'(x) ≈ (-f(x + 2h) + 8 f(x + h) - 8 f(x - h) + f(x - 2h)) / 12h        error O(h⁴)
 *
 * Second derivatives: g(x, w) = Σ vᵢⱼ ∂f/∂xᵢⱼ, itself computed by the tape, is checked the same way. */
#include "autograd/tape/unwind.h"

#include <math.h>

enum { MOST = 16 };

typedef struct {
    tn_gradcheck_args c;
    int               n;           /* number of inputs */
    tn_tensor        *x[MOST + 1]; /* copies of the inputs */
    tn_tensor        *weight;      /* a weight for each element of the result */
    tn_generator      draws;       /* the generator's state for each call of fn */
} check;

/* Calls fn, with the same random numbers each time. */
static tn_tensor *evaluate(check *k)
{
    TN__UNWINDS  u = tn__unwind_begin();
    tn_generator g = k->draws, *now = tn_use_generator(&g);
    tn_tensor   *y = k->c.fn(k->x, k->n, k->c.user);
    tn_use_generator(now);
    if (!y && tn__self.error == TN_OK) tn_raise(TN_EINVAL, "tn_gradcheck: %s returned NULL", k->c.name);
    return y;
}

static double contracted(check *k)
{
    tn_scope   s = tn_no_grad_begin();
    tn_tensor *y = evaluate(k);
    double     sum = 0;
    if (y && tn_numel(y) != tn_numel(k->weight))
        tn_raise(TN_ESHAPE, "tn_gradcheck: %s returned results of different shapes", k->c.name);
    else
        for (int64_t i = 0, n = tn_numel(y); i < n; i++) {
            double w = tn_get(k->weight, i);
            if (w != 0) sum += w * tn_get(y, i);
        }
    tn_scope_end(s);
    return sum;
}

static double difference(check *k, int i, int64_t j)
{
    static const double at[4] = {2, 1, -1, -2}, factor[4] = {-1, 8, -8, 1};
    tn_tensor          *x = k->x[i];
    double             *p = (double *)tn__ptr(x) + j, x0 = *p, h = k->c.step * fmax(1, fabs(x0)), sum = 0;
    for (int s = 0; s < 4; s++) {
        *p = x0 + at[s] * h; /* off the tape: nothing recorded is alive */
        tn__written(x, "tn_gradcheck");
        sum += factor[s] * contracted(k);
    }
    *p = x0;
    tn__written(x, "tn_gradcheck");
    return sum / (12 * h);
}

static tn_status compare(check *k, int i, tn_tensor *grad)
{
    for (int64_t j = 0, n = tn_numel(k->x[i]); j < n && tn__self.error == TN_OK; j++) {
        double analytic = grad ? tn_get(grad, j) : 0, numeric = difference(k, i, j);
        double off = fabs(analytic - numeric), size = fmax(fabs(analytic), fabs(numeric));
        if (off <= k->c.atol + k->c.rtol * size) continue; /* false for NaN too */
        if (tn__self.error != TN_OK) break;
        tn_shape shape = tn_shape_of(k->x[i]), index = {.n = shape.n};
        int64_t  rest = j;
        for (int d = shape.n - 1; d >= 0; d--) index.d[d] = rest % shape.d[d], rest /= shape.d[d];
        char text[192];
        return tn_raise(TN_ENUMERIC, "%s: gradient of input %d at %s: analytic %.10g, numeric %.10g (relative %.2g)",
                        k->c.name, i, tn_shape_text(index, text, sizeof text), analytic, numeric,
                        size > 0 ? off / size : off);
    }
    return tn__self.error;
}

static tn_tensor *random_like(const tn_tensor *y) { return tn_uniform_of(TN_F64, tn_shape_of(y), -1, 1); }

/* First derivatives of k->c.fn at k->x, all leaves being f64 and dense. */
static tn_status first(check *k)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *y = evaluate(k), *grad[MOST + 1] = {NULL}, *leaf[MOST + 1];
    int        leaves = 0, of[MOST + 1];
    if (!y) goto done;
    if (!tn__is_float(y->dtype)) {
        tn_raise(TN_EDTYPE, "tn_gradcheck: %s returned %s, which has no gradient", k->c.name, tn_dtype_name(y->dtype));
        goto done;
    }
    if (!(k->weight = random_like(y))) goto done;
    for (int i = 0; i < k->n; i++)
        if (k->x[i]->leaf) leaf[leaves] = k->x[i], of[leaves++] = i;
    if (tn_needs_grad(y)) {
        tn_tensor *seed = tn_to(k->weight, y->dtype);
        tn_grad_of_run((tn_grad_of_args){.root = y, .seed = seed, .count = leaves, .wrt = leaf, .grad = grad});
    }
    for (int i = 0; i < leaves && tn__self.error == TN_OK; i++) {
        if (grad[i] && !tn_shape_equal(tn_shape_of(grad[i]), tn_shape_of(leaf[i])))
            tn_raise(TN_ESHAPE, "%s: gradient of input %d has another shape than the input", k->c.name, of[i]);
        else compare(k, of[i], grad[i]);
    }
done:
    tn_scope_end(s);
    return tn__self.error;
}

/* ---- gradients of gradients: g(x, w) is a function like any other ------------------------------------------------ */

typedef struct {
    check     *inner;
    tn_tensor *v[MOST];
} second_user;

static tn_tensor *second_fn(tn_tensor *const *in, int n, void *user)
{
    second_user *u = user;
    check       *k = u->inner;
    tn_tensor   *grad[MOST], *leaf[MOST], *sum = NULL;
    int          leaves = 0, of[MOST];
    tn_scope     s = tn_scope_begin();
    tn__self.mode.no_grad = false;
    tn_tensor *y = k->c.fn(in, n - 1, k->c.user);
    for (int i = 0; i < n - 1; i++)
        if (in[i]->leaf) leaf[leaves] = in[i], of[leaves++] = i;
    if (y && tn_needs_grad(y)) {
        tn_grad_of_run((tn_grad_of_args){
            .root = y, .seed = in[n - 1], .count = leaves, .wrt = leaf, .grad = grad, .create_graph = true});
        for (int i = 0; i < leaves && tn__self.error == TN_OK; i++) {
            if (!grad[i]) continue;
            tn_tensor *part = tn_sum(tn_mul(grad[i], u->v[of[i]]));
            sum = sum ? tn_add(sum, part) : part;
        }
    }
    if (tn__self.error == TN_OK && !sum)
        sum = tn_scalar(0); /* the function is linear: its gradient does not depend on x */
    return tn_scope_return(s, sum);
}

static tn_status second(check *k)
{
    tn_scope    s = tn_scope_begin();
    second_user u = {.inner = k};
    char        name[200];
    snprintf(name, sizeof name, "second derivative of %s", k->c.name);
    check d = {.c = k->c, .n = k->n + 1, .draws = k->draws};
    d.c.fn = second_fn, d.c.user = &u, d.c.name = name;
    tn_tensor *y = evaluate(k);
    for (int i = 0; i < k->n; i++) {
        d.x[i] = k->x[i];
        if (k->x[i]->leaf) u.v[i] = random_like(k->x[i]);
    }
    if (y) d.x[k->n] = tn_requires_grad(random_like(y));
    if (tn__self.error == TN_OK) first(&d);
    tn_scope_end(s);
    return tn__self.error;
}

static bool can_be_checked(const tn_gradcheck_args *c)
{
    if (!(c->step > 0 && c->step < 1) || !(c->atol >= 0) || !(c->rtol >= 0))
        return tn_raise_false(TN_EINVAL, "tn_gradcheck: .step must be between 0 and 1, .atol and .rtol not negative");
    if (c->input && (c->inputs || c->count))
        return tn_raise_false(TN_EINVAL, "tn_gradcheck: give its inputs as .input or as .count and .inputs, not both");
    if (!c->fn || (!c->input && (c->count < 1 || !c->inputs)))
        return tn_raise_false(TN_EINVAL,
                              "tn_gradcheck: give a function and its inputs, as .input or as .count and .inputs");
    if (c->count <= MOST) return true;
    return tn_raise_false(TN_EINVAL, "tn_gradcheck: %d inputs are more than the %d it can take", c->count, MOST);
}

tn_status tn_gradcheck_run(tn_gradcheck_args c)
{
    if (tn__blocked() || !can_be_checked(&c)) return tn__self.error;
    if (!c.name) c.name = "function";
    tn_tensor *const *in = c.input ? &c.input : c.inputs;
    int               n = c.input ? 1 : c.count;
    bool              marked = false;
    for (int i = 0; i < n; i++) {
        if (!in[i]) return tn_raise(TN_EINVAL, "tn_gradcheck: input %d is NULL", i);
        marked = marked || tn__needs_grad(in[i]);
    }
    /* Copies in f64 that share no memory. Checked are those that require grad, or all floating ones if none does. */
    tn_generator before = *tn_current_generator();
    tn_scope     s = tn_scope_begin();
    const bool   no_grad = tn__self.mode.no_grad;
    tn__self.mode.no_grad = false;
    check k = {.c = c, .n = n, .draws = before};
    for (int i = 0; i < n; i++) {
        bool real = tn__is_float(in[i]->dtype);
        k.x[i] = tn__new(real ? TN_F64 : in[i]->dtype, in[i]->l.shape);
        if (!k.x[i]) break;
        tn__copy(k.x[i], in[i]);
        if (real && (!marked || tn__needs_grad(in[i]))) tn_requires_grad(k.x[i]);
    }
    if (tn__self.error == TN_OK) first(&k);
    if (tn__self.error == TN_OK && c.second) second(&k);
    tn__self.mode.no_grad = no_grad;
    tn_scope_end(s);
    *tn_current_generator() = before;
    return tn__self.error;
}
