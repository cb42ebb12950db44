// exceptions.cpp — callbacks that throw: afterwards the thread computes as before, and nothing stays allocated.
#include <cstdio>
#include <cstdlib>
#include <tenon/tenon.h>

struct Thrown {
};
static bool throws = false;
static int  calls = 0;
static void maybe()
{
    calls++;
    if (throws) throw Thrown();
}

static tn_tensor *hook(tn_tensor *, void *) { return maybe(), nullptr; }
static tn_tensor *segment(tn_tensor *const *in, int, void *)
{
    tn_tensor *y = tn_tanh(tn_mul(in[0], in[0]));
    maybe();
    return y;
}
struct net {
    tn_module  base;
    tn_linear *layer;
};
static tn_tensor *net_forward(net *m, tn_tensor *x)
{
    if (!tn_ready(m)) return nullptr;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = tn_call(m->layer, x);
    if (++calls > 2) maybe();
    return tn_leave(f, y);
}
TN_FORWARD(net);

static void backward(tn_tensor *root)
{
    tn_backward_args a{};
    a.root = root;
    tn_backward_run(a);
}
static tn_tensor *total(tn_tensor *x)
{
    tn_reduce_args a{};
    a.x = x;
    return tn_sum_run(a);
}
static tn_tensor *leaf() { return tn_requires_grad(tn_ones(TN_SHAPE(3))); }

static void leaf_hook()
{
    tn_tensor *x = leaf();
    tn_on_grad(x, hook, nullptr);
    backward(total(tn_exp(x)));
}
static void node_hook() // inside a graph that has more to do, and from a backward inside a hook's scope
{
    tn_tensor *x = leaf(), *y = tn_mul(tn_exp(x), x);
    tn_on_grad(y, hook, nullptr);
    backward(total(tn_add(tn_sin(y), x)));
}
static void checkpoint()
{
    tn_tensor *x = leaf();
    backward(total(tn_checkpoint(segment, nullptr, 1, &x)));
}
static void second_run() // throws only in the backward
{
    const bool later = throws;
    throws = false;
    tn_tensor *x = leaf(), *y = tn_checkpoint(segment, nullptr, 1, &x);
    throws = later;
    backward(total(y));
}
static tn_tensor *loss(void *module, const tn_batch *b, void *) { return total(tn_call((net *)module, b->x)); }
static double     score(void *, void *) { return maybe(), 0; }
static void       listener(const tn_fit_event *, void *) { maybe(); }
static void       fit(bool with_score, bool with_listener)
{
    net             *m = tn_module_new(net);
    tn_linear_config c{};
    c.in = c.out = 2;
    m->layer = tn_child(m, "layer", tn_linear_create(c));
    tn_built(m);
    tn_dataset_config d{};
    d.x = tn_ones(TN_SHAPE(8, 2)), d.batch = 2;
    tn_dataset *rows = tn_dataset_create(d);
    tn_fit_args a{};
    a.module = &m->base, a.train = tn_dataset_source(rows), a.loss = loss, a.lr = 0.1, a.epochs = 3;
    if (with_score) a.score = score, calls = -1000;
    if (with_listener) a.on = listener, calls = -1000;
    const auto clean = [&] {
        if (!m->base.training || !m->layer->base.training) std::puts("the module is left in eval mode"), std::exit(1);
        tn_dataset_free(rows);
        tn_free(m);
    };
    try {
        tn_fit_run(a);
    } catch (Thrown) {
        clean();
        throw;
    }
    clean();
}
static void fit_loss() { fit(false, false); }
static void fit_score() { fit(true, false); }
static void fit_listener() { fit(false, true); }

int main()
{
    void (*const tests[])() = {leaf_hook, node_hook, checkpoint, second_run, fit_loss, fit_score, fit_listener};
    for (auto test : tests) {
        const tn_scope  outer = tn_scope_begin();
        const tn_memory before = tn_memory_now();
        size_t          live = 0;
        for (int i = 0; i < 6; i++) {
            const tn_scope s = tn_scope_begin();
            bool           caught = false;
            throws = i % 2 == 0, calls = 0;
            try {
                test();
            } catch (Thrown) {
                caught = true;
            }
            if (!tn_grad_enabled()) return std::puts("gradients stay disabled"), 1;
            tn_add(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(3))); // no module's path in its message
            if (tn_error_message()[0] != 'a') return std::puts(tn_error_message()), 1;
            tn_clear_error();
            tn_scope_end(s);
            if (caught != throws || tn_error() != TN_OK) return std::printf("test %d: %s\n", i, tn_error_message()), 1;
            if (i == 1) live = tn_memory_now().live; // the first round also allocates what the thread keeps
            if (tn_memory_now().tensors != before.tensors)
                return std::printf("%d tensors are left\n", (int)(tn_memory_now().tensors - before.tensors)), 1;
        }
        if (tn_memory_now().live > live) return std::printf("%zu bytes are left\n", tn_memory_now().live - live), 1;
        tn_scope_end(outer);
    }
    std::puts("exceptions pass");
    return 0;
}
