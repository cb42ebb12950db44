// program.cpp — a user's program in C++: the gradient of sum(x * x) is 2x; recovery from an error.
#include <cstdio>
#include <cstring>
#include <tenon/tenon.h>

struct scaled {
    tn_module  base;
    tn_linear *inner;
    tn_tensor *scale;
};

static tn_tensor *scaled_forward(scaled *m, tn_tensor *x)
{
    if (!tn_ready(m)) return nullptr;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_mul(tn_call(m->inner, x), m->scale));
}
TN_FORWARD(scaled);

static scaled *scaled_new(int64_t dim)
{
    scaled *m = tn_module_new(scaled);
    if (!m) return nullptr;
    tn_linear_config c{};
    c.in = dim, c.out = dim;
    m->inner = tn_child(m, "inner", tn_linear_create(c));
    m->scale = tn_param(m, "scale", tn_ones(TN_SHAPE(dim)));
    return tn_built(m);
}

int main()
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_arange_of(TN_F32, 0, 6, 1));

    tn_backward_args c{};
    c.root = tn_sum(tn_mul(x, x));
    if (tn_backward_run(c) != TN_OK) return std::fprintf(stderr, "%s\n", tn_error_message()), 1;
    for (int i = 0; i < 6; i++)
        if (tn_get(tn_grad(x), i) != 2 * i) return std::fprintf(stderr, "wrong gradient at %d\n", i), 1;

    if (tn_add(x, tn_ones(TN_SHAPE(4))) || tn_error() != TN_ESHAPE) return std::fprintf(stderr, "no error\n"), 1;
    if (!std::strstr(tn_error_message(), "[6]")) return std::fprintf(stderr, "%s\n", tn_error_message()), 1;
    tn_clear_error();
    scaled *m = scaled_new(6);
    if (!tn_call(m, x) || tn_count(m) != 48) return std::fprintf(stderr, "%s\n", tn_error_message()), 1;
    tn_free(m);
    tn_scope_end(s);
    std::printf("tenon %s\n", tn_version());
    return 0;
}
