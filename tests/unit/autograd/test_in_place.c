/* test_in_place.c — in-place ops and the views of the memory they write to: each gradient equals that of the same
 * program written without in-place ops; if the history is unknown, the call is rejected. */
#include "autograd/autograd.h"
#include "core/tensor/tensor.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

static tn_tensor *vector(int n, double from) { return tn_requires_grad(tn_arange_of(TN_F64, from, from + n, 1)); }
static tn_tensor *ones(int64_t n) { return tn_ones_of(TN_F64, TN_SHAPE(n)); }
static void       is(const tn_tensor *t, int n, const double *should)
{
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(tn_numel(t), n);
    for (int i = 0; i < n; i++) ck_assert_double_eq(tn_get(t, i), should[i]);
}
#define IS(t, ...) is(t, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

/* ---- gradients of tensors that are not leaves ------------------------------------------------------------------ */

/* A retained gradient is that of the tensor's current values, also if another view wrote them, and it is kept when they
 * are overwritten. */
TEST(kept_gradients_follow)
{
    tn_tensor *x = vector(4, 1), *y = tn_mul_scalar(x, 1);
    tn_retain_grad(y);
    tn_mul_scalar_(y, 2), tn_mul_scalar_(tn_narrow(y, 0, 1, 2), 3);
    tn_backward(tn_sum(tn_mul_scalar(y, 5)));
    IS(tn_grad(y), 5, 5, 5, 5);
    IS(tn_grad(x), 10, 30, 30, 10);
    tn_mul_scalar_(y, 7);
    IS(tn_grad(y), 5, 5, 5, 5);
    tn_zero_grad(y);
    ck_assert_ptr_null(tn_grad(y));

    for (int part = 0; part < 2; part++) { /* written through a view, which is not used again */
        y = tn_mul_scalar(x, 1);
        tn_retain_grad(y);
        tn_tensor *v = part ? tn_narrow(y, 0, 0, 2) : tn_view(y, TN_SHAPE(2, 2));
        tn_retain_grad(v);
        tn_mul_scalar_(v, 2);
        tn_backward(tn_sum(v));
        IS(tn_grad(y), 1, 1, part ? 0 : 1, part ? 0 : 1);
        ck_assert_double_eq(tn_get(tn_grad(v), 0), 1);
    }
}

static tn_tensor *thrice(tn_tensor *g, void *calls) { return ++*(int *)calls, tn_mul_scalar(g, 3); }

/* The gradient of a view that was written through is a part of the gradient of its base. */
TEST(a_view_leads_to_the_whole)
{
    for (int part = 0; part < 2; part++) {
        int        calls = 0;
        tn_tensor *x = vector(4, 1), *y = tn_mul_scalar(x, 1), *g;
        tn_tensor *v = part ? tn_narrow(y, 0, 0, 2) : tn_view(y, TN_SHAPE(2, 2));
        tn_mul_scalar_(v, 2);
        tn_grad_of(tn_add(tn_sum(y), tn_sum(v)), 1, &y, &g, .retain = true);
        IS(g, 2, 2, part ? 1 : 2, part ? 1 : 2);
        tn_on_grad(y, thrice, &calls);
        tn_backward(tn_sum(v));
        ck_assert_int_eq(calls, 1);
        IS(tn_grad(x), 6, 6, part ? 0 : 6, part ? 0 : 6);
    }
}

/* ---- roots and targets that were changed through another tensor -------------------------------------------------- */

TEST(a_root_changed_through_a_view)
{
    tn_tensor *y = tn_requires_grad(tn_scalar(2)), *l = tn_square(y);
    tn_mul_scalar_(tn_view(l, TN_SHAPE(1)), 10);
    tn_backward(l);
    IS(tn_grad(y), 40);
    tn_tensor *x = vector(2, 1), *z = tn_mul_scalar(x, 1);
    tn_mul_scalar_(tn_narrow(z, 0, 0, 1), 3);
    IS(tn_grad_wrt(tn_sum(z), x, false), 3, 1);
    z = tn_mul_scalar(x, 1);
    tn_mul_scalar_(tn_narrow(z, 0, 0, 1), 3);
    tn_backward(z, .seed = ones(2), .retain = true);
    IS(tn_grad(x), 3, 1);
    tn_tensor *g;
    tn_grad_of(z, 1, &x, &g, .seed = ones(2), .retain = true);
    IS(g, 3, 1);
    tn_grad_of(z, 1, &z, &g, .seed = ones(2));
    IS(g, 1, 1);
}

static tn_tensor *returned(tn_tensor *x)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *z = tn_mul_scalar(x, 1);
    tn_mul_scalar_(tn_narrow(z, 0, 1, 1), 5);
    return tn_scope_return(s, z);
}

/* An op that returns its input unchanged returns it up to date. */
TEST(handed_on_as_it_is)
{
    for (int how = 0; how < 4; how++) {
        tn_tensor *x = vector(2, 1), *z = how == 3 ? returned(x) : tn_mul_scalar(x, 1);
        if (how < 3) tn_mul_scalar_(tn_narrow(z, 0, 1, 1), 5);
        if (how == 0) z = tn_contiguous(z);
        if (how == 1) z = tn_to(z, TN_F64);
        if (how == 2) z = tn_dropout(z, 0);
        tn_backward(z, .seed = ones(2));
        IS(tn_grad(x), 1, 5);
    }
}

/* ---- all kinds of in-place ops ----------------------------------------------------------------------------------- */

TEST(views_of_views)
{
    tn_tensor *x = vector(12, 0), *z = tn_mul_scalar(x, 1), *m = tn_view(z, TN_SHAPE(3, 4)), *t = tn_transpose(m, 0, 1),
              *row = tn_select(t, 0, 2), *late = tn_narrow(row, 0, 1, 2);
    tn_mul_scalar_(row, 3);                     /* 2, 6, 10 */
    tn_mul_scalar_(late, 5);                    /* 6, 10 */
    tn_copy_(tn_select(m, 0, 0), tn_scalar(7)); /* 0 … 3 */
    tn_backward(tn_sum(t));
    IS(tn_grad(x), 0, 0, 0, 0, 1, 1, 15, 1, 1, 1, 15, 1);
    IS(z, 7, 7, 7, 7, 4, 5, 90, 7, 8, 9, 150, 11);
}

/* One part of a constant becomes dependent on a leaf; the other parts stay constant. */
TEST(a_constant_is_filled)
{
    tn_tensor *w = vector(2, 1), *c = tn_zeros_of(TN_F64, TN_SHAPE(3, 2)), *below = tn_select(c, 0, 2);
    ck_assert(!tn_needs_grad(c));
    for (int64_t i = 0; i < 2; i++) tn_copy_(tn_select(c, 0, i), tn_mul_scalar(w, (double)i + 2));
    ck_assert(tn_needs_grad(c) && tn_needs_grad(below));
    ck_assert_int_eq(tn_fill(below, 1), TN_ESTATE); /* as for any result */
    tn_clear_error();
    tn_backward(tn_sum(tn_mul_scalar(c, 1)), .retain = true);
    IS(tn_grad(w), 5, 5);
    tn_backward(tn_sum(below));
    IS(tn_grad(w), 5, 5);
}

/* Windows and expanded dims made before the change show an element several times, and collect its gradients. */
TEST(repeating_views)
{
    tn_tensor *x = vector(4, 1), *z = tn_mul_scalar(x, 1), *windows = tn_unfold(z, 0, 2, 1),
              *wide = tn_expand(z, TN_SHAPE(3, 4));
    tn_mul_scalar_(tn_narrow(z, 0, 1, 1), 10);
    tn_backward(tn_sum(windows), .retain = true);
    IS(tn_grad(x), 1, 20, 2, 1);
    tn_zero_grad(x);
    tn_backward(tn_sum(wide));
    IS(tn_grad(x), 3, 30, 3, 3);
}

/* Gradients of gradients: z = x³, with its first half multiplied by x once more. */
TEST(second_derivatives)
{
    tn_tensor *x = vector(2, 2), *z = tn_mul(tn_square(x), x), *half = tn_narrow(z, 0, 0, 1);
    tn_mul_(half, tn_narrow(x, 0, 0, 1));
    tn_tensor *g = tn_grad_wrt(tn_sum(z), x, true);
    IS(g, 4 * 8, 3 * 9);
    IS(tn_grad_wrt(tn_sum(g), x, false), 12 * 4, 6 * 3);
}

/* A tensor that is overwritten completely, and one whose base was freed. */
TEST(whole_and_orphaned)
{
    tn_tensor *x = vector(4, 1), *z = tn_mul_scalar(x, 2), *v = tn_view(z, TN_SHAPE(2, 2)), *row = tn_select(v, 0, 1);
    tn_mul_scalar_(v, 3);
    tn_backward(tn_sum(row), .retain = true);
    IS(tn_grad(x), 0, 0, 6, 6);
    tn_zero_grad(x);
    tn_scope   s = tn_scope_begin();
    tn_tensor *part = tn_narrow(tn_mul_scalar(x, 1), 0, 1, 3), *first = tn_narrow(part, 0, 0, 1);
    tn_mul_scalar_(part, 2);
    tn_keep(part), tn_keep(first);
    tn_scope_end(s);
    tn_mul_scalar_(first, 5);
    tn_backward(tn_sum(part));
    IS(tn_grad(x), 0, 10, 2, 2);
    tn_drop(part), tn_drop(first);
}

/* A detached tensor shows the new values, and has a separate history. */
TEST(detached)
{
    tn_tensor *x = vector(2, 1), *z = tn_mul_scalar(x, 1), *d = tn_detach(z), *w = vector(2, 5);
    tn_mul_scalar_(tn_narrow(z, 0, 0, 1), 3);
    ck_assert(!tn_needs_grad(d));
    tn_backward(tn_sum(tn_mul(w, d)));
    IS(tn_grad(w), 3, 2);
    tn_add_(tn_narrow(d, 0, 1, 1), tn_narrow(w, 0, 0, 1)); /* overwrites memory of z without a record in z's history */
    tn_backward(tn_sum(tn_mul_scalar(z, 1)));
    IS(tn_grad(x), 3, 1);
    tn_zero_grad(w);
    tn_backward(tn_sum(d));
    IS(tn_grad(w), 1, 0);
}

/* ---- ownership --------------------------------------------------------------------------------------------------- */

/* A history owns nodes; nodes own leaves and saved tensors; none of these may own the history. The case fails if a
 * tensor is not freed. */
TEST(histories_end)
{
    tn_tensor *x = vector(3, 1), *d = tn_detach(x);
    tn_mul_(d, x); /* the node owns x, a leaf in the same memory */
    tn_tensor *z = tn_exp(x), *v = tn_narrow(z, 0, 0, 2);
    tn_sigmoid_(v); /* saves its result, which is in the memory of this history */
    tn_tensor *c = tn_zeros_of(TN_F64, TN_SHAPE(3)), *leaf = tn_requires_grad(tn_view(c, TN_SHAPE(3)));
    tn_mul_(c, tn_mul_scalar(leaf, 2));
    z = tn_exp(x);
    v = tn_narrow(z, 0, 0, 2);
    tn_exp_(z);
    tn_mul_(z, x);
    ck_assert_int_eq(tn_error(), TN_OK);
}

/* ---- changes off the tape, and rejected calls -------------------------------------------------------------------- */

TEST(off_the_tape)
{
    tn_tensor *x = vector(2, 1), *z = tn_mul_scalar(x, 1);
    tn_mul_scalar_(tn_narrow(z, 0, 0, 1), 3);
    tn_scope s = tn_no_grad_begin();
    tn_add_(z, ones(2)); /* z is not updated, and stays so */
    tn_scope_end(s);
    tn_backward(tn_sum(z));
    IS(tn_grad(x), 3, 1);

    z = tn_mul_scalar(x, 1);
    s = tn_no_grad_begin();
    tn_tensor *v = tn_take(tn_narrow(z, 0, 0, 1));
    tn_scope_end(s);
    ck_refused(tn_mul_scalar_(v, 3), TN_ESTATE,
               "mul_scalar_: the target is a view that was made after tn_no_grad_begin(), so the change would not be "
               "recorded for its base; make the view again while recording");
    ck_assert_int_eq(tn_fill(v, 3), TN_ESTATE);
    tn_clear_error();
    IS(z, 1, 2);
    tn_mul_scalar_(tn_narrow(z, 0, 0, 1), 3);
    tn_exp(v);
    ck_error(
        TN_ESTATE,
        "exp: input 0 shows memory that mul_scalar_ has since changed on the tape through another tensor, and is a "
        "view that was made after tn_no_grad_begin(); make this view again after the change");
    tn_drop(v);
}

static tn_tensor *first_half(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user, tn_narrow(tn_exp(in[0]), 0, 0, 2);
}

TEST(refused)
{
    tn_tensor *x = vector(4, 0), *y = tn_checkpoint(first_half, NULL, 1, &x);
    ck_refused(tn_mul_scalar_(tn_narrow(y, 0, 0, 1), 2), TN_ESTATE,
               "mul_scalar_: the target is a part of memory whose other elements have an unknown history (a result of "
               "tn_checkpoint, or of a tensor that tn_adopt changed); tn_clone it first");
    ck_assert_double_eq(tn_get(y, 0), 1);
    tn_tensor *c = tn_zeros_of(TN_F64, TN_SHAPE(4)), *leaf = tn_requires_grad(tn_narrow(c, 0, 0, 2));
    tn_add_(c, x);
    tn_exp(leaf);
    ck_error(TN_ESTATE,
             "exp: input 0 shows memory that add_ has since changed on the tape through another tensor, and is "
             "a leaf; make this view again after the change");
    ck_assert_ptr_null(tn_freeze_tensor(tn_narrow(c, 0, 0, 2)));
    tn_clear_error();
}

/* ---- random programs ---------------------------------------------------------------------------------------------- *
 * A tensor of N elements and some views of it are changed in place, used, and viewed again. Each view has the list of
 * the places that it shows. The twin keeps the N elements in a tensor that is never overwritten: a view is read as
 * index_select(all, places), and a write makes a new tensor, by index_select from the old elements followed by the new
 * ones. */

enum { N = 24, VIEWS = 6, STEPS = 12 };
typedef struct {
    tn_tensor *t;
    tn_tensor *places; /* i64, shape of t */
} view;

static int64_t    below(int64_t n) { return tn_random_below(tn_current_generator(), n); }
static tn_tensor *flat(tn_tensor *t) { return tn_reshape(t, (tn_shape){.n = 1, .d = {-1}}); }

static tn_tensor *some_view(tn_tensor *x, const int64_t *r)
{
    const tn_shape s = tn_shape_of(x);
    const int      dim = s.n ? (int)(r[1] % s.n) : 0;
    const int64_t  n = s.n ? s.d[dim] : 0;
    switch (r[0] % 9) {
    case 0: return n > 1 ? tn_narrow(x, dim, r[2] % (n - 1), 1 + r[3] % (n - r[2] % (n - 1))) : x;
    case 1: return n > 1 && s.n > 1 ? tn_select(x, dim, r[2] % n) : x;
    case 2: return n > 1 ? tn_slice(x, dim, r[2] % 2, n, 1 + r[3] % 2) : x;
    case 3: return s.n > 1 ? tn_transpose(x, 0, s.n - 1) : x;
    case 4: return s.n < 4 ? tn_unsqueeze(x, dim) : x;
    case 5: return s.n < 4 && n % 2 == 0 && n ? tn_unfold(x, dim, 2, 1 + r[2] % 2) : x;
    case 6: return s.n > 1 && tn_is_contiguous(x) ? flat(x) : x;
    case 7: return s.n > 1 && s.d[0] > 1 && s.d[s.n - 1] > 1 ? tn_diagonal(x, 0, 0, s.n - 1) : x;
    default: return s.n == 1 && tn_numel(x) % 2 == 0 ? tn_reshape(x, TN_SHAPE(2, -1)) : x;
    }
}

static tn_tensor *read_twin(tn_tensor *all, const view *v)
{
    return tn_reshape(tn_index_select(all, 0, flat(v->places)), tn_shape_of(v->t));
}

/* A copy of `all` with `value` at v's places. */
static tn_tensor *write_twin(tn_tensor *all, const view *v, tn_tensor *value)
{
    tn_tensor *from = tn_arange(N);
    tn_tensor *at = flat(v->places);
    for (int64_t i = 0; i < tn_numel(at); i++) tn_set_i64(from, tn_get_i64(at, i), N + i);
    return tn_index_select(tn_cat(0, all, flat(value)), 0, from);
}

/* One in-place op on x (or, with in_place false, its result), which also reads another view and the leaf w. */
static tn_tensor *change(int kind, tn_tensor *x, tn_tensor *other, tn_tensor *w, bool in_place)
{
    switch (kind) {
    case 0: return in_place ? tn_mul_scalar_(x, 1.25) : tn_mul_scalar(x, 1.25);
    case 1: return in_place ? tn_add_(x, w) : tn_add(x, w);
    case 2: return in_place ? tn_mul_(x, w) : tn_mul(x, w);
    case 3: return in_place ? tn_copy_(x, w) : tn_add(tn_mul_scalar(x, 0), w);
    case 4: return in_place ? tn_tanh_(x) : tn_tanh(x);
    case 5: return in_place ? tn_add_(x, tn_mean(other)) : tn_add(x, tn_mean(other));
    case 6: return in_place ? tn_copy_(x, tn_mean(other)) : tn_add(tn_mul_scalar(x, 0), tn_mean(other));
    case 7: return in_place ? tn_sub_(x, tn_mul(w, w)) : tn_sub(x, tn_mul(w, w));
    default: return in_place ? tn_neg_(x) : tn_neg(x);
    }
}

/* Compares two gradients of x; NULL means zeros. */
static void same(const tn_tensor *a, const tn_tensor *b, const tn_tensor *x)
{
    for (int64_t k = 0; k < tn_numel(x); k++) {
        const double is = a ? tn_get(a, k) : 0, should = b ? tn_get(b, k) : 0;
        ck_assert_double_eq_tol(is, should, 1e-12 * (1 + fabs(should)));
    }
}

static int compared, refusals;

static void one_program(bool constant, bool graph)
{
    tn_tensor *w = tn_requires_grad(tn_scalar(0.7)), *x = tn_requires_grad(tn_uniform_of(TN_F64, TN_SHAPE(N), -1, 1));
    tn_tensor *start = constant ? tn_detach(tn_clone(x)) : tn_mul_scalar(x, 1), *base = tn_clone(start);
    view       v[VIEWS] = {{base, tn_arange(N)}};
    tn_tensor *all = start, *loss = tn_scalar(0), *twin_loss = tn_scalar(0);
    int        views = 1;
    if (constant) base = v[0].t = tn_detach(base);
    for (int step = 0; step < STEPS; step++) {
        view         *a = &v[below(views)], *b = &v[below(views)];
        const int64_t r[4] = {below(9), below(5), below(7), below(7)};
        const int     what = (int)below(3), kind = (int)below(9);
        if (what == 0 || views == 1) {
            const int at = views < VIEWS ? views++ : 1 + (int)below(VIEWS - 1);
            v[at] = (view){some_view(a->t, r), some_view(a->places, r)};
            if (!tn_shares_memory(v[at].t, base)) v[at] = v[0];
        } else if (what == 1 && !tn__layout_repeats(&a->t->l)) {
            tn_tensor *value = change(kind, read_twin(all, a), read_twin(all, b), w, false);
            all = write_twin(all, a, value);
            change(kind, a->t, b->t, w, true);
        } else {
            loss = tn_add(loss, tn_mean(tn_mul_scalar(a->t, (double)step)));
            twin_loss = tn_add(twin_loss, tn_mean(tn_mul_scalar(read_twin(all, a), (double)step)));
        }
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    }
    for (int i = 0; i < views; i++) {
        loss = tn_add(loss, tn_mean(tn_square(v[i].t)));
        twin_loss = tn_add(twin_loss, tn_mean(tn_square(read_twin(all, &v[i]))));
        for (int64_t k = 0; k < tn_numel(v[i].t); k++)
            ck_assert_double_eq(tn_get(v[i].t, k), tn_get(all, tn_get_i64(v[i].places, k)));
    }
    if (!tn_needs_grad(loss)) return;
    tn_tensor *wrt[] = {x, w}, *g[2], *should[2];
    tn_grad_of(twin_loss, 2, wrt, should, .create_graph = graph, .retain = true);
    tn_grad_of(loss, 2, wrt, g, .create_graph = graph);
    if (tn_error() == TN_ESTATE && strstr(tn_error_message(), "changed in place the tensor")) { /* as in PyTorch */
        tn_clear_error();
        refusals++;
        return;
    }
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    for (int i = 0; i < 2; i++) {
        same(g[i], should[i], wrt[i]);
        if (!graph || !g[i] || !tn_needs_grad(g[i]) || !tn_needs_grad(should[i])) continue;
        tn_tensor *again[2], *twice[2];
        tn_grad_of(tn_sum(tn_square(should[i])), 2, wrt, twice, .retain = true);
        tn_grad_of(tn_sum(tn_square(g[i])), 2, wrt, again, .retain = true);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        for (int j = 0; j < 2; j++) same(again[j], twice[j], wrt[j]);
    }
    compared++;
}

TEST(random_programs)
{
    const int programs = tn_test_slow() ? 300 : 3000;
    compared = refusals = 0;
    for (int i = 0; i < programs; i++) {
        tn_scope s = tn_scope_begin();
        tn_seed((uint64_t)i);
        one_program(i % 5 == 4, i % 3 == 0);
        tn_scope_end(s);
    }
    ck_assert_msg(compared > programs * 2 / 3, "of %d programs %d were compared, %d rejected", programs, compared,
                  refusals);
}

/* ---- failing allocations ----------------------------------------------------------------------------------------- */

static double sum_of(const tn_tensor *t)
{
    double sum = 0;
    for (int64_t i = 0; t && i < tn_numel(t); i++) sum += tn_get(t, i) * (double)(i + 1);
    return sum;
}

static double once(int i)
{
    (void)i;
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = vector(6, 1), *z = tn_mul_scalar(x, 2), *m = tn_view(z, TN_SHAPE(2, 3)), *row = tn_select(m, 0, 1);
    double     before = sum_of(z);
    if (!tn_mul_scalar_(row, 3)) ck_assert_double_eq(sum_of(z), before); /* a failed call changes nothing */
    before = sum_of(z);
    if (!tn_exp_(m)) ck_assert_double_eq(sum_of(z), before);
    tn_backward(tn_sum(tn_add(row, tn_narrow(z, 0, 1, 3))));
    const double sum = sum_of(z) + sum_of(tn_grad(x));
    tn_scope_end(s);
    return sum;
}

BARE_TEST(memory_fails) { tn_each_allocation_fails(once, 0, 1, 3, 20); }
