/* probe.c — probing: trains a classifier on hidden states; similarity of two sets of hidden states.
 *
 * Linear CKA (Kornblith et al. 2019), of centred X, Y:  ‖Yᵀ X‖² / (‖Xᵀ X‖ · ‖Yᵀ Y‖), norms of Frobenius */
#include "extras/surface.h"
#include "optim/optim.h"

#include <math.h>

static bool check_rows(const char *x_name, const tn_tensor *x, const char *y_name, const tn_tensor *y)
{
    char a[192], b[192];
    if (x && y && tn_ndim(x) == 2 && tn_ndim(y) == 1 && tn_size(x, 0) == tn_numel(y) && tn_numel(y) > 0 &&
        tn_dtype_of(y) == TN_I64)
        return true;
    return tn_raise_false(TN_ESHAPE, "tn_probe: .%s must be [N, D] and .%s i64 [N], got %s and %s", x_name, y_name,
                          x ? tn_shape_text(tn_shape_of(x), a, sizeof a) : "NULL",
                          y ? tn_shape_text(tn_shape_of(y), b, sizeof b) : "NULL");
}

static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t classes_of(const tn_tensor *y)
{
    int64_t most = -1;
    for (int64_t i = 0; i < tn_numel(y); i++) most = most_of(most, tn_get_i64(y, i));
    return most + 1;
}

/* Removes the rows that have no class: ignored ones, such as the later tokens of a word. */
static void keep_labelled(tn_tensor **x, tn_tensor **y)
{
    tn_tensor *at = tn_nonzero(tn_ge(*y, tn_zeros_of(TN_I64, TN_SHAPE(1))));
    *x = tn_detach(*x);
    if (!at || tn_size(at, 0) == tn_numel(*y)) return;
    at = tn_select(at, 1, 0);
    *x = tn_index_select(*x, 0, at), *y = tn_index_select(*y, 0, at);
}

/* Standardises columns to mean 0 and deviation 1, with the statistics of the training set. */
static void standardise(tn_tensor **x, tn_tensor **test)
{
    tn_tensor *mean = tn_mean(*x, .dims = TN_DIMS(0), .keepdim = true);
    tn_tensor *std = tn_std(*x, .dims = TN_DIMS(0), .keepdim = true, .biased = true);
    std = tn_masked_fill(std, tn_le(std, tn_mul_scalar(tn_abs(mean), 1e-6)),
                         1); /* constant columns, except for rounding */
    *x = tn_div(tn_sub(*x, mean), std), *test = tn_div(tn_sub(*test, mean), std);
}

static void train(tn_sequential *net, const tn_probe_args *a, tn_tensor *x)
{
    const int64_t n = tn_size(x, 0), batch = n < 512 ? n : 512;
    tn_optimizer *opt = tn_adamw_new(net, .lr = a->lr, .weight_decay = a->decay);
    tn_schedule  *lr = tn_warmup_lr_new(opt, .warmup = most_of(1, a->steps / 10), .steps = a->steps);
    for (int64_t step = 0; step < a->steps && tn_error() == TN_OK; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *at = n > batch ? tn_randint(TN_SHAPE(batch), 0, n) : tn_arange(n);
        tn_tensor     *loss = tn_cross_entropy(tn_call(net, tn_index_select(x, 0, at)), tn_index_select(a->y, 0, at));
        tn_backward(loss);
        tn_step(opt);
        tn_schedule_step(lr);
        tn_scope_end(s);
    }
    tn_schedule_free(lr);
    tn_optimizer_free(opt);
}

double tn_probe_run(tn_probe_args a)
{
    double right = NAN;
    if (tn_blocked() || !check_rows("x", a.x, "y", a.y) || !check_rows("test_x", a.test_x, "test_y", a.test_y))
        return right;
    if (classes_of(a.y) < 1 || classes_of(a.test_y) < 1)
        return tn_raise(TN_EINVAL, "tn_probe: .%s has no class of at least 0", classes_of(a.y) < 1 ? "y" : "test_y"),
               right;
    if (a.steps < 1 || a.hidden < 0 || !(a.lr > 0))
        return tn_raise(TN_EINVAL, "tn_probe: .steps and .lr must be above 0, .hidden at least 0"), right;
    const tn_scope s = tn_scope_begin();
    tn_generator   g = {a.seed, 0}, *before = tn_use_generator(&g);
    tn_tensor     *x = a.x, *test = a.test_x;
    keep_labelled(&x, &a.y), keep_labelled(&test, &a.test_y);
    const int64_t  classes = most_of(classes_of(a.y), classes_of(a.test_y)), d = tn_size(x, 1);
    tn_sequential *net = tn_sequential_new();
    if (a.hidden) {
        tn_append(net, tn_linear_new(.in = d, .out = a.hidden));
        tn_append(net, tn_gelu_new());
    }
    tn_append(net, tn_linear_new(.in = a.hidden ? a.hidden : d, .out = classes));
    standardise(&x, &test);
    if (tn_error() == TN_OK && !isfinite(tn_item(tn_sum(x)) + tn_item(tn_sum(test))))
        tn_raise(TN_ENUMERIC, "tn_probe: .x or .test_x has values that are not finite");
    if (tn_error() == TN_OK) train(net, &a, x);
    tn_tensor *said = tn_error() == TN_OK ? tn_argmax(tn_call(net, test), -1, false) : NULL;
    if (said) right = tn_item(tn_mean(tn_to(tn_eq(said, a.test_y), TN_F64)));
    tn_free(net);
    tn_use_generator(before);
    tn_scope_end(s);
    return tn_error() == TN_OK ? right : NAN;
}

double tn_cka(tn_tensor *x, tn_tensor *y)
{
    if (tn_blocked()) return NAN;
    if (!x || !y || tn_ndim(x) != 2 || tn_ndim(y) != 2 || tn_size(x, 0) != tn_size(y, 0) || tn_size(x, 0) < 2)
        return tn_raise(TN_ESHAPE, "tn_cka: x and y must be [N, D] and [N, E] with at least 2 rows"), NAN;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *t[2] = {tn_to(x, TN_F64), tn_to(y, TN_F64)};
    for (int i = 0; i < 2; i++) t[i] = tn_sub(t[i], tn_mean(t[i], .dims = TN_DIMS(0), .keepdim = true));
    double p[3]; /* x x, y y, x y */
    for (int i = 0; i < 3; i++)
        p[i] = tn_item(tn_norm(tn_matmul(tn_transpose(t[i == 1], 0, 1), t[i > 0]))); /* Frobenius: over all elements */
    tn_scope_end(s);
    const double alike = tn_error() == TN_OK ? p[2] * p[2] / (p[0] * p[1]) : NAN;
    if (tn_error() == TN_OK && !isfinite(alike))
        tn_raise(TN_ENUMERIC, "tn_cka: the rows of one tensor are all equal, or not finite");
    return tn_error() == TN_OK ? alike : NAN;
}
