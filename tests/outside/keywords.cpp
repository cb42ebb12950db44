// keywords.cpp — C++20 code calls with keywords as C does. A module with two results ends with tn_leave_n.
#include <cstdio>
#include <tenon/tenon.h>

struct split {
    tn_module  base;
    tn_linear *left, *right;
};
TN_MODULE(split);

static split *split_new(int64_t in, int64_t out)
{
    split *m = tn_module_new(split);
    if (!m) return nullptr;
    m->left = tn_child(m, "left", tn_linear_new(.in = in, .out = out));
    m->right = tn_child(m, "right", tn_linear_new(.in = in, .out = out, .no_bias = true));
    return tn_built(m);
}

static tn_tensor *split_forward(split *m, tn_tensor *x, tn_tensor **right)
{
    if (!tn_ready(m)) return *right = nullptr, nullptr;
    tn_frame   f = tn_enter(m);
    tn_tensor *y = tn_call(m->left, x), *z = tn_call(m->right, x);
    tn_leave_n(f, &y, &z);
    return *right = z, y;
}

static tn_tensor *both(split *m, tn_tensor *x)
{
    if (!tn_ready(m)) return nullptr;
    tn_frame   f = tn_enter(m);
    tn_tensor *z, *y = split_forward(m, x, &z);
    return tn_leave(f, tn_add(y, z));
}

static int failed(const char *what) { return std::fprintf(stderr, "%s: %s\n", what, tn_error_message()), 1; }

int main()
{
    tn_seed(1);
    const tn_scope s = tn_scope_begin();
    split         *m = split_new(3, 4);
    tn_tensor     *y = both(m, tn_ones(TN_SHAPE(2, 3)));
    if (!y || !tn_shape_equal(tn_shape_of(y), TN_SHAPE(2, 4)) || tn_count(m) != 28) return failed("forward");

    tn_tensor *rows = tn_sum(y, .dims = TN_DIMS(1), .keepdim = true);
    if (!tn_shape_equal(tn_shape_of(rows), TN_SHAPE(2, 1))) return failed("sum");
    tn_optimizer *opt = tn_sgd_new(m, .lr = 0.1);
    if (tn_backward(tn_sum(rows)) != TN_OK || tn_step(opt) != TN_OK) return failed("step");

    tn_tensor *z = y;
    if (split_forward(m, tn_ones(TN_SHAPE(2, 5)), &z) || z || tn_error() != TN_ESHAPE) return failed("no error");
    tn_clear_error();
    tn_optimizer_free(opt);
    tn_free(m);
    tn_scope_end(s);
    std::printf("tenon %s\n", tn_version());
    return 0;
}
