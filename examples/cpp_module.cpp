// cpp_module.cpp — Tenon in C++: a module class, scopes that end by themselves, errors and callbacks as exceptions.
// C++11 and later; with C++20 calls have keywords as in C. Trains a network on the exclusive or.
// Build: c++ -O2 cpp_module.cpp -o cpp_module $(pkg-config --cflags --libs tenon)
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <tenon/tenon.h>

// The first error of the thread as an exception.
static void check()
{
    if (tn_error() == TN_OK) return;
    const std::runtime_error e(tn_error_message());
    tn_clear_error();
    throw e;
}

// The tensors made while it lives are freed with it, also when an exception passes.
struct Scope {
    tn_scope s = tn_scope_begin();
    Scope() = default;
    Scope(const Scope &) = delete;
    ~Scope() { tn_scope_end(s); }
};
static tn_reduce_args all_of(tn_tensor *x)
{
    tn_reduce_args a{}; // starts with the defaults: over all dims
    a.x = x;
    return a;
}
struct Free {
    void                         operator()(tn_optimizer *o) const { tn_optimizer_free(o); }
    template <class Module> void operator()(Module *m) const { tn_free(m); }
};
template <class T> using Owned = std::unique_ptr<T, Free>;

struct Net {
    tn_module  base;
    tn_linear *in, *out;
};
static tn_tensor *Net_forward(Net *m, tn_tensor *x)
{
    if (!tn_ready(m)) return nullptr;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->out, tn_tanh(tn_call(m->in, x))));
}
TN_FORWARD(Net);

static Owned<Net> make_net(int64_t hidden)
{
    Owned<Net> m(tn_module_new(Net));
    check();
#if __cplusplus >= 202002L
    m->in = tn_child(m.get(), "in", tn_linear_new(.in = 2, .out = hidden));
    m->out = tn_child(m.get(), "out", tn_linear_new(.in = hidden, .out = 1));
#else
    tn_linear_config in{}, out{}; // start with the defaults
    in.in = 2, in.out = hidden;
    out.in = hidden, out.out = 1;
    m->in = tn_child(m.get(), "in", tn_linear_create(in));
    m->out = tn_child(m.get(), "out", tn_linear_create(out));
#endif
    tn_built(m.get());
    check();
    return m;
}

static double step(Net *net, tn_optimizer *o, tn_tensor *x, tn_tensor *y)
{
    const Scope s;
    tn_zero_grads(net);
#if __cplusplus >= 202002L
    tn_tensor *loss = tn_mse_loss(tn_call(net, x), y, .reduction = TN_MEAN);
    tn_backward(loss);
#else
    tn_loss_args l{};
    l.input = tn_call(net, x), l.target = y;
    tn_backward_args b{};
    tn_tensor       *loss = b.root = tn_mse_loss_run(l);
    tn_backward_run(b);
#endif
    tn_step(o);
    check();
    return tn_item(loss);
}

// A gradient hook may throw: tn_backward then frees what it has computed, and changes no gradient.
static tn_tensor *limit(tn_tensor *grad, void *largest)
{
    if (tn_item(tn_amax_run(all_of(tn_abs(grad)))) > *static_cast<double *>(largest))
        throw std::runtime_error("the gradient is too large");
    return nullptr;
}

int main()
try {
    tn_seed(1);
    const Scope    s;
    const float    points[] = {0, 0, 0, 1, 1, 0, 1, 1}, results[] = {0, 1, 1, 0};
    tn_tensor     *x = tn_from_data(TN_F32, TN_SHAPE(4, 2), points);
    tn_tensor     *y = tn_from_data(TN_F32, TN_SHAPE(4, 1), results);
    Owned<Net>     net = make_net(8);
    tn_adam_config c{};
    c.module = &net->base, c.lr = 0.05;
    Owned<tn_optimizer> o(tn_adam_create(c));
    check();

    double loss = 0, largest = 1e-30;
    for (int i = 0; i < 200; i++) loss = step(net.get(), o.get(), x, y);
    std::printf("loss after 200 steps: %s\n", loss < 0.01 ? "below 0.01" : "too large");

    tn_on_grad(net->out->weight, limit, &largest);
    try {
        step(net.get(), o.get(), x, y);
    } catch (const std::runtime_error &e) {
        std::printf("hook: %s\n", e.what());
    }
    largest = INFINITY;
    std::printf("next step: %s\n", step(net.get(), o.get(), x, y) < 0.01 ? "below 0.01" : "too large");
    try {
        tn_add(x, tn_ones(TN_SHAPE(3)));
        check();
    } catch (const std::runtime_error &e) {
        std::printf("error: %s\n", e.what());
    }
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
