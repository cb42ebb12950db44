/* test_ops.c — the same checks for every op of the registry, from its samples, under many layouts.
 *
 *   rows        a good row under each layout: gradients against differences in f64 with a random cotangent, second
 *               derivatives, the fused backward against the one made of ops, f32 against f64, the bits of every layout
 *               against the dense one, 1, 2 and 7 threads, bf16 within its rounding, gradients that add up
 *   mixed       a good row under autocast, with some inputs in bf16: the op's choice, .autocast, is set and suffices
 *   errors      a bad row: the exact text and code, and nothing leaked
 *   memory      each allocation of forward and backward fails once, and then from then on: no leak, and the retry gives
 *               the same bits */
#include "autograd/tape/tape.h"
#include "core/tensor/tensor.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include "tests/common/samples.h"

/* ---- the inputs of a row ----------------------------------------------------------------------------------------- */

typedef enum { DENSE, TRANSPOSED, SLICED, STEPPED, EXPANDED, LAYOUTS } layout;
static const char *const layout_name[] = {"dense", "transposed", "sliced", "stepped", "expanded"};

typedef struct {
    const tn_op      *op;
    const tn__sample *s;
    int               row;  /* index in the op's samples */
    uint64_t          seed; /* of the inputs; independent of the order of ops and so of other ops' samples */
} case_;

static case_ good[4096], bad[4096];
static int   ngood, nbad;

/* 20 is one of the values with which all rows pass, with every instruction set: a few rows (softmax of numbers near 85,
 * f32 results that cancel) come close to the tolerances, and exceed them with other values. */
static uint64_t seed_of(const char *op, int row)
{
    uint64_t h = 20 + 1000003u * (uint64_t)row;
    for (; *op; op++) h = 31 * h + (unsigned char)*op;
    return h;
}

/* The number of good rows; the first call collects the rows of all ops. */
static int good_rows(void)
{
    for (int i = 0; i < tn_sampled_count() && !(i == 0 && ngood); i++) {
        const tn_op *op = tn_sampled(i);
        for (int j = 0; j < tn_samples_of(i)->n; j++) {
            case_ c = {op, &tn_samples_of(i)->rows[j], j, seed_of(op->name, j)};
            if (c.s->fails) bad[nbad++] = c;
            else good[ngood++] = c;
        }
    }
    return ngood;
}

static int inputs_of(const case_ *c) { return c->op->inputs == TN_ANY || c->s->nin ? c->s->nin : c->op->inputs; }
static int results_of(const case_ *c)
{
    return c->op->outputs == TN_ANY ? c->s->nout : c->op->outputs ? c->op->outputs : 1;
}
static tn_shape shape_of(const case_ *c, int i)
{
    const tn__sample_shape *from = &c->s->in[i];
    tn_shape                s = {.n = from->n};
    for (int k = 0; k < s.n; k++) s.d[k] = from->d[k];
    return s;
}
static bool differentiable(tn__sample_kind k)
{
    return k == TN__ARG_REAL || k == TN__ARG_DISTINCT || k == TN__ARG_ROWSUM1;
}

/* True if this input can have this layout. Expanding makes equal values, which kinds with distinct ones must not
 * have. */
static bool can(const case_ *c, int i, layout l)
{
    tn__sample_kind k = c->s->kind[i];
    int             n = c->s->in[i].n;
    if (l == DENSE) return true;
    if (n == 0 || k == TN__ARG_ABSENT) return false;
    if (l == EXPANDED) return k == TN__ARG_REAL && tn_shape_numel(shape_of(c, i)) > 0;
    return l != TRANSPOSED || n > 1;
}

/* The shape of the base of an input; the view of the base that is the input. */
static tn_shape base_shape(tn_shape s, layout l)
{
    int last = s.n - 1;
    switch (l) {
    case TRANSPOSED:
        for (int i = 0; i < s.n / 2; i++) {
            int64_t t = s.d[i];
            s.d[i] = s.d[last - i], s.d[last - i] = t;
        }
        break;
    case SLICED: s.d[last] += 3, s.d[0] += s.n > 1; break;
    case STEPPED: s.d[last] *= 2; break;
    case EXPANDED: s.d[0] = 1; break;
    default: break;
    }
    return s;
}
static tn_tensor *seen_through(tn_tensor *base, tn_shape s, layout l)
{
    tn_dims reversed = {.n = s.n};
    for (int i = 0; i < s.n; i++) reversed.d[i] = s.n - 1 - i;
    switch (l) {
    case TRANSPOSED: return tn_permute(base, reversed);
    case SLICED:
        if (s.n > 1) base = tn_narrow(base, 0, 1, s.d[0]);
        return tn_narrow(base, -1, 2, s.d[s.n - 1]);
    case STEPPED: return tn_slice(base, -1, 0, 2 * s.d[s.n - 1], 2);
    case EXPANDED: return tn_expand(base, s);
    default: return base;
    }
}

static double draw(tn_generator *g, const case_ *c, int i)
{
    double low = c->s->low[i], high = c->s->high[i];
    if (low == 0 && high == 0) low = c->s->kind[i] == TN__ARG_INDEX || c->s->kind[i] == TN__ARG_INT ? 0 : -2, high = 2;
    return low + (high - low) * tn_random_double(g);
}

/* The values of input i, dense, in the order of its indices: the same for every layout but the expanded one. */
static void values_of(const case_ *c, int i, double *v)
{
    tn_shape        s = shape_of(c, i);
    tn__sample_kind k = c->s->kind[i];
    int64_t         n = tn_shape_numel(s);
    tn_generator    g = {.seed = c->seed + 17u * (uint64_t)i, .position = 0};
    for (int64_t j = 0; j < n; j++) {
        if (k == TN__ARG_MASK) v[j] = tn_random_double(&g) < 0.5;
        else if (k == TN__ARG_INDEX || k == TN__ARG_INT) v[j] = floor(draw(&g, c, i));
        else if (k == TN__ARG_DISTINCT) v[j] = 0.25 * (double)j - 0.1 * (double)n + 0.05 * tn_random_double(&g);
        else v[j] = draw(&g, c, i);
    }
    if (k == TN__ARG_DISTINCT)
        for (int64_t j = n - 1; j > 0; j--) {
            int64_t o = tn_random_below(&g, j + 1);
            double  t = v[j];
            v[j] = v[o], v[o] = t;
        }
    if (k == TN__ARG_ROWSUM1 && n) {
        int64_t row = s.n ? s.d[s.n - 1] : 1;
        for (int64_t r = 0; r < n / row; r++) {
            double sum = 0;
            for (int64_t j = 0; j < row; j++) sum += v[r * row + j] = 0.1 + fabs(v[r * row + j]);
            for (int64_t j = 0; j < row; j++) v[r * row + j] /= sum;
        }
    }
}

typedef struct {
    const case_ *c;
    layout       l[TN__SAMPLE_INPUTS];
    tn_dtype     dt;
    int          n;                     /* number of inputs that are not NULL */
    int          of[TN__SAMPLE_INPUTS]; /* their indices */
    tn_tensor   *base[TN__SAMPLE_INPUTS];
} build;

static tn_dtype dtype_of(const build *b, int i)
{
    switch (b->c->s->kind[i]) {
    case TN__ARG_INDEX:
    case TN__ARG_INT: return TN_I64;
    case TN__ARG_MASK: return TN_BOOL;
    default: return b->dt;
    }
}

static void make(build *b, const case_ *c, layout l, tn_dtype dt)
{
    static double v[1 << 16];
    *b = (build){.c = c, .dt = dt};
    for (int i = 0; i < inputs_of(c); i++) {
        b->l[i] = can(c, i, l) ? l : DENSE;
        if (c->s->kind[i] == TN__ARG_ABSENT) continue;
        ck_assert_int_le(tn_shape_numel(shape_of(c, i)), 1 << 16);
        values_of(c, i, v);
        tn_tensor *base = tn_zeros_of(dtype_of(b, i), base_shape(shape_of(c, i), b->l[i]));
        tn_scope   s = tn_scope_begin();
        if (b->l[i] == EXPANDED) {
            for (int64_t j = 0; j < tn_numel(base); j++) tn_set(base, j, v[j]);
        } else {
            tn_tensor *view = seen_through(base, shape_of(c, i), b->l[i]);
            for (int64_t j = 0; j < tn_numel(view); j++) tn_set(view, j, v[j]);
        }
        tn_scope_end(s);
        if (differentiable(c->s->kind[i]) && tn_dtype_is_float(tn_dtype_of(base))) tn_requires_grad(base);
        b->of[b->n] = i;
        b->base[b->n++] = base;
    }
}

/* The op on the bases: what tn_gradcheck differentiates. */
static tn_tensor *apply(tn_tensor *const *in, int n, void *user)
{
    const build *b = user;
    tn_tensor   *x[TN__SAMPLE_INPUTS] = {NULL}, *y[16];
    for (int i = 0; i < n; i++) x[b->of[i]] = seen_through(in[i], shape_of(b->c, b->of[i]), b->l[b->of[i]]);
    tn_op_call(b->c->op, inputs_of(b->c), x, results_of(b->c), y, b->c->s->args);
    return y[0];
}

static const char *label(const case_ *c, layout l)
{
    static char text[200];
    snprintf(text, sizeof text, "%s row %d (%s)", c->op->name, c->row, layout_name[l]);
    return text;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int gradchecks, seconds, fused;

typedef struct {
    tn_tensor *y, *grad[TN__SAMPLE_INPUTS];
} outcome;

/* Forward, and gradients by a cotangent that is the same for every dtype. */
static outcome run(build *b, bool ops)
{
    outcome    o = {.y = apply(b->base, b->n, b)};
    tn_tensor *wrt[TN__SAMPLE_INPUTS], *grad[TN__SAMPLE_INPUTS];
    int        k = 0, of[TN__SAMPLE_INPUTS];
    if (!o.y || !tn_needs_grad(o.y)) return o;
    for (int i = 0; i < b->n; i++)
        if (differentiable(b->c->s->kind[b->of[i]])) wrt[k] = b->base[i], of[k++] = i;
    tn_generator g = {.seed = 99}, *old = tn_use_generator(&g);
    tn_tensor   *seed = tn_to(tn_uniform_of(TN_F64, tn_shape_of(o.y), -1, 1), tn_dtype_of(o.y));
    tn_use_generator(old);
    tn_grad_of_run(
        (tn_grad_of_args){.root = o.y, .seed = seed, .count = k, .wrt = wrt, .grad = grad, .create_graph = ops});
    for (int i = 0; i < k; i++) o.grad[of[i]] = grad[i];
    return o;
}

/* |a - b| <= tol · the largest |a|, or scale if that is more, element by element; NaN and infinities must agree. */
static void close_to(const tn_tensor *a, const tn_tensor *b, double tol, double scale, const char *who,
                     const char *what)
{
    ck_assert_msg(!a == !b, "%s: %s is NULL once and not NULL once", who, what);
    if (!a) return;
    ck_assert_msg(tn_shape_equal(tn_shape_of(a), tn_shape_of(b)), "%s: %s has two shapes", who, what);
    double largest = scale;
    for (int64_t i = 0; i < tn_numel(a); i++) {
        double v = fabs(tn_get(a, i));
        if (isfinite(v) && v > largest) largest = v;
    }
    for (int64_t i = 0; i < tn_numel(a); i++) {
        double x = tn_get(a, i), y = tn_get(b, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        ck_assert_msg(fabs(x - y) <= tol * largest + 1e-30, "%s: %s [%lld]: %.9g and %.9g", who, what, (long long)i, x,
                      y);
    }
}
static void same_bits(const tn_tensor *a, const tn_tensor *b, const char *who, const char *what)
{
    ck_assert_msg(!a == !b, "%s: %s is NULL once and not NULL once", who, what);
    if (!a) return;
    ck_assert_msg(tn_shape_equal(tn_shape_of(a), tn_shape_of(b)), "%s: %s has two shapes", who, what);
    for (int64_t i = 0; i < tn_numel(a); i++) {
        double x = tn_get(a, i), y = tn_get(b, i);
        ck_assert_msg(!memcmp(&x, &y, sizeof x) || (isnan(x) && isnan(y)), "%s: %s [%lld]: %.17g and %.17g", who, what,
                      (long long)i, x, y);
    }
}

/* The gradient of a slice is added to zeros, which changes -0 to 0: the only allowed difference. */
static void same_but_for_zero(const tn_tensor *a, const tn_tensor *b, const char *who, const char *what)
{
    if (a && b)
        a = tn_add_scalar(tn_detach((tn_tensor *)(uintptr_t)a), 0),
        b = tn_add_scalar(tn_detach((tn_tensor *)(uintptr_t)b), 0);
    same_bits(a, b, who, what);
}

static void ok(const char *who) { ck_assert_msg(tn_error() == TN_OK, "%s: %s", who, tn_error_message()); }

/* In slow runs (tn_test_slow) the other layouts are checked without differences: the arithmetic is the same. */
static void differences(const case_ *c, layout l, build *b, const char *who)
{
    if (l != DENSE && tn_test_slow()) return;
    tn_gradcheck(apply, .count = b->n, .inputs = b->base, .user = b, .name = who, .rtol = 1e-6, .atol = 1e-7);
    ok(who);
    gradchecks++;
    if (c->s->flat_kink) return;
    tn_gradcheck(apply, .count = b->n, .inputs = b->base, .user = b, .name = who, .rtol = 1e-5, .atol = 1e-6,
                 .second = true);
    ok(who);
    seconds++;
}

TEST_EACH(rows, good_rows())
{
    const case_ *c = &good[_i];
    bool         random_draws = false;
    const int    share = tn_test_slow() ? 3 : tn_test_whole() ? 1 : 2; /* of the layouts, another one for each op */
    for (layout l = DENSE; l < LAYOUTS; l++) {
        bool any = l == DENSE;
        for (int i = 0; i < inputs_of(c); i++) any = any || can(c, i, l);
        if (!any || (l != DENSE && ((int)l + _i) % share)) continue;
        const char *who = label(c, l);
        tn_scope    s = tn_scope_begin();
        build       b64, b32;
        make(&b64, c, l, TN_F64);
        tn_tensor *y = apply(b64.base, b64.n, &b64);
        ok(who);
        bool marked = false;
        for (int i = 0; i < b64.n; i++) marked = marked || tn_needs_grad(b64.base[i]);
        if (marked && tn_dtype_is_float(tn_dtype_of(y))) {
            differences(c, l, &b64, who);
            if (c->op->backward && c->op->backward_ops) {
                tn_generator g = {.seed = 5}, *old = tn_use_generator(&g);
                outcome      fast = run(&b64, false);
                g.position = 0;
                outcome slow = run(&b64, true);
                tn_use_generator(old);
                ok(who);
                for (int i = 0; i < b64.n; i++) /* the terms may cancel: then 1e-15 of the inputs */
                    close_to(fast.grad[i], slow.grad[i], 1e-10, 1e-5, who,
                             "the fused gradient against the one made of ops");
                fused++;
            }
        }
        /* f32 is close to f64; each layout and each number of threads gives the bits of the dense one */
        tn_generator g = {.seed = 6}, *old = tn_use_generator(&g);
        make(&b32, c, l, TN_F32);
        outcome o64, o32;
        g.position = 0, o64 = run(&b64, false);
        random_draws = random_draws || g.position;
        g.position = 0, o32 = run(&b32, false);
        ok(who);
        double tol = c->s->f32_tol != 0 ? c->s->f32_tol : 2e-6;
        if (tn_dtype_is_float(tn_dtype_of(o64.y))) close_to(o64.y, o32.y, tol, 0, who, "the f64 result against f32's");
        /* the gradient of an expanded input is a sum that may cancel: the error is relative to its terms */
        for (int i = 0; i < b64.n; i++)
            close_to(o64.grad[i], o32.grad[i], 4 * tol, l == EXPANDED ? 1 : 0, who, "the f64 gradient against f32's");
        if (l != EXPANDED) {
            build dense;
            make(&dense, c, DENSE, TN_F32);
            g.position = 0;
            outcome d = run(&dense, false);
            same_bits(d.y, o32.y, who, "the result against the dense one's");
            for (int i = 0; i < b32.n; i++) {
                if (!o32.grad[i]) continue;
                tn_tensor *through = seen_through(o32.grad[i], shape_of(c, b32.of[i]), b32.l[b32.of[i]]);
                same_but_for_zero(d.grad[i], through, who, "the gradient against the dense one's");
            }
        }
        tn__self.shrink = 1024; /* small blocks, so that even these few elements are divided among threads */
        for (int threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4) {
            tn_set_threads(threads);
            g.position = 0;
            outcome t = run(&b32, false);
            same_bits(o32.y, t.y, who, "the result with other threads");
            for (int i = 0; i < b32.n; i++) same_bits(o32.grad[i], t.grad[i], who, "the gradient with other threads");
        }
        tn__self.shrink = 0;
        tn_set_threads(0);
        tn_use_generator(old);
        tn_scope_end(s);
    }
}

/* bf16 is computed in f32 and rounded once at the end: for inputs exact in bf16, results agree within that rounding. */
TEST_EACH(bf16, good_rows())
{
    const case_ *c = &good[_i];
    for (int i = 0; i < inputs_of(c); i++)
        if (c->s->kind[i] == TN__ARG_DISTINCT || c->s->kind[i] == TN__ARG_ROWSUM1)
            return; /* rounding would make values equal */
    tn_scope s = tn_scope_begin();
    build    b16, b32;
    make(&b16, c, DENSE, TN_BF16);
    make(&b32, c, DENSE, TN_F32);
    for (int i = 0; i < b16.n; i++) {
        tn_scope n = tn_no_grad_begin();
        tn_copy_from(b32.base[i], b16.base[i]);
        tn_scope_end(n);
    }
    tn_generator g = {.seed = 7}, *old = tn_use_generator(&g);
    tn_tensor   *y16 = apply(b16.base, b16.n, &b16);
    g.position = 0;
    tn_tensor *y32 = apply(b32.base, b32.n, &b32);
    tn_use_generator(old);
    ok(label(c, DENSE));
    if (tn_dtype_is_float(tn_dtype_of(y32)))
        close_to(y32, y16, 0.02, 0, label(c, DENSE), "the f32 result against bf16's");
    tn_scope_end(s);
}

/* ---- autocast ---------------------------------------------------------------------------------------------------- */

/* Every op has chosen its .autocast. */
TEST_EACH(chooses, tn_sampled_count())
{
    const tn_op *op = tn_sampled(_i);
    const int    n = op->autocast - TN_NARROW(0);
    ck_assert_msg(op->autocast == TN_AS_IS || op->autocast == TN_JOIN || op->autocast == TN_WIDE ||
                      op->autocast == TN_NARROW(TN_ANY) || (n > 0 && n <= op->inputs),
                  "%s: .autocast is %d, but must be TN_AS_IS, TN_JOIN, TN_WIDE or TN_NARROW(n)", op->name,
                  op->autocast);
}

/* In an autocast scope every op accepts some inputs in f32 and some in bf16: ops that need one dtype have chosen
 * TN_JOIN or more. TN_WIDE ops have no bf16 results. */
TEST_EACH(mixed, good_rows())
{
    const case_ *c = &good[_i];
    for (int odd = 0; odd < 2; odd++) {
        tn_scope   s = tn_scope_begin(), narrow;
        tn_tensor *in[TN__SAMPLE_INPUTS];
        build      b;
        make(&b, c, DENSE, TN_F32);
        for (int i = 0; i < b.n; i++) {
            const bool narrow_it = i % 2 == odd && tn_dtype_of(b.base[i]) == TN_F32;
            in[i] = narrow_it ? tn_to(b.base[i], TN_BF16) : b.base[i];
        }
        narrow = tn_autocast_begin(true);
        tn_tensor *y = apply(in, b.n, &b);
        tn_scope_return(narrow, y);
        ok(label(c, DENSE));
        if (c->op->autocast == TN_WIDE) ck_assert_msg(tn_dtype_of(y) != TN_BF16, "%s", label(c, DENSE));
        tn_scope_end(s);
    }
}

/* The gradients of two backwards are added, and the second on a retained tape gives the same as the first. */
TEST_EACH(accumulates, good_rows())
{
    const case_ *c = &good[_i];
    const char  *who = label(c, DENSE);
    tn_scope     s = tn_scope_begin();
    build        b;
    make(&b, c, DENSE, TN_F64);
    tn_tensor *y = apply(b.base, b.n, &b), *once[TN__SAMPLE_INPUTS];
    if (y && tn_needs_grad(y)) {
        tn_tensor *seed = tn_uniform_of(TN_F64, tn_shape_of(y), -1, 1);
        tn_backward(y, .seed = seed, .retain = true);
        ok(who);
        for (int i = 0; i < b.n; i++) {
            tn_tensor *g = tn_grad(b.base[i]);
            once[i] = g ? tn_clone(g) : NULL;
            if (g)
                ck_assert_msg(tn_is_contiguous(g) && tn_shape_equal(tn_shape_of(g), tn_shape_of(b.base[i])),
                              "%s: a leaf's gradient is not dense", who);
        }
        tn_backward(y, .seed = seed);
        ok(who);
        for (int i = 0; i < b.n; i++)
            if (once[i]) same_bits(tn_mul_scalar(once[i], 2), tn_grad(b.base[i]), who, "twice the gradient");
    }
    tn_scope_end(s);
}

TEST_EACH(errors, nbad)
{
    const case_ *c = &bad[_i];
    const char  *who = label(c, DENSE);
    tn_scope     s = tn_scope_begin();
    build        b;
    make(&b, c, DENSE, TN_F32);
    tn_memory    before = tn_memory_now();
    tn_generator g = *tn_current_generator();
    tn_tensor   *y = apply(b.base, b.n, &b);
    ck_assert_msg(!y, "%s: should raise '%s'", who, c->s->fails);
    ck_assert_msg(!strcmp(tn_error_message(), c->s->fails), "%s: raised '%s', expected '%s'", who, tn_error_message(),
                  c->s->fails);
    ck_assert_msg(tn_error() == c->s->status, "%s: raised %s, expected %s", who, tn_status_name(tn_error()),
                  tn_status_name(c->s->status));
    ck_assert_msg(tn_memory_now().tensors == before.tensors && tn_memory_now().live == before.live, "%s: leaked memory",
                  who);
    ck_assert_msg(tn_current_generator()->position == g.position, "%s: advanced the generator", who);
    tn_clear_error();
    tn_scope_end(s);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void scenario(const case_ *c, outcome *keep)
{
    build b;
    make(&b, c, DENSE, TN_F32);
    tn_generator g = {.seed = 8}, *old = tn_use_generator(&g);
    *keep = (outcome){.y = apply(b.base, b.n, &b)};
    if (keep->y && tn_needs_grad(keep->y)) tn_backward(keep->y, .seed = tn_ones_like(keep->y));
    for (int i = 0; i < b.n; i++) keep->grad[i] = tn_keep(tn_grad(b.base[i]));
    tn_keep(keep->y);
    tn_use_generator(old);
}
static void forget(outcome *o)
{
    tn_drop(o->y);
    for (int i = 0; i < TN__SAMPLE_INPUTS; i++) tn_drop(o->grad[i]);
}

static int64_t faults;

BARE_TEST_EACH(memory, good_rows())
{
    const case_ *c = &good[_i];
    const char  *who = label(c, DENSE);
    tn_faulty_memory_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        bool reached = true;
        for (int64_t n = 0; reached; n += tn_test_slow() ? 3 : 1) {
            tn_scope s = tn_scope_begin();
            outcome  first, again;
            tn_fail_memory(n, for_ever);
            scenario(c, &first);
            reached = tn_memory_calls() > n;
            tn_fail_memory(-1, false);
            if (reached) {
                ck_assert_msg(tn_error() == TN_ENOMEM, "%s: allocation %lld failed, but the status is %s (%s)", who,
                              (long long)n, tn_status_name(tn_error()), tn_error_message());
                for (int i = 0; i < TN__SAMPLE_INPUTS; i++)
                    ck_assert_msg(!first.grad[i], "%s: a failed backward attached a gradient", who);
                faults++;
                tn_clear_error();
                forget(&first);
                scenario(c, &first);
            }
            ok(who);
            scenario(c, &again);
            same_bits(first.y, again.y, who, "the result of a retry");
            for (int i = 0; i < TN__SAMPLE_INPUTS; i++)
                same_bits(first.grad[i], again.grad[i], who, "the gradient of a retry");
            forget(&first), forget(&again);
            tn_scope_end(s);
        }
    }
    tn_faulty_memory_end();
}

/* ---- the totals, to detect a filter that drops rows -------------------------------------------------------------- */

BARE_TEST(totals)
{
    if (!tn_test_wanted("rows")) return;
    printf("%d ops, %d rows, %d bad rows: %d gradchecks, %d second-order, %d fused, %lld failed allocations\n",
           tn_sampled_count(), ngood, nbad, gradchecks, seconds, fused, (long long)faults);
    ck_assert_int_ge(gradchecks, tn_test_slow() ? 700 : 2000);
    ck_assert_int_ge(seconds, tn_test_slow() ? 500 : 1500);
}
