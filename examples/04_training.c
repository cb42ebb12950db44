/* 04_training.c — lesson 4: the training loop. tn_fit with batches, validation, early stopping, checkpoints, and a
 * listener that reports progress; the network separates two spirals. Explained line by line in
 * docs/guide/04_training.md.
 * Build: cc -O2 04_training.c -o 04_training $(pkg-config --cflags --libs tenon) -lm */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

static void spirals(int64_t n, tn_tensor **x, tn_tensor **y) /* [n, 2], [n] */
{
    *x = tn_zeros(TN_SHAPE(n, 2)), *y = tn_zeros_of(TN_I64, TN_SHAPE(n));
    for (int64_t i = 0; i < n; i++) {
        const double r = 0.1 + 0.9 * tn_random_double(tn_current_generator()), turn = 7 * r + 3.1416 * (double)(i % 2);
        tn_set_at(*x, TN_SHAPE(i, 0), r * cos(turn)), tn_set_at(*x, TN_SHAPE(i, 1), r * sin(turn));
        tn_set_i64(*y, i, i % 2);
    }
}

static tn_sequential *network(void)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 2, .out = 48));
    tn_append(net, tn_silu_new());
    tn_append(net, tn_linear_new(.in = 48, .out = 48));
    tn_append(net, tn_silu_new());
    tn_append(net, tn_dropout_new(.p = 0.05));
    tn_append(net, tn_linear_new(.in = 48, .out = 2));
    return net;
}

static tn_tensor *loss(void *module, const tn_batch *b, void *user)
{
    tn_sequential *net = module;
    (void)user;
    return tn_cross_entropy(tn_call(net, b->x), b->y);
}

static tn_tensor *accuracy(void *module, const tn_batch *b, void *user)
{
    tn_sequential *net = module;
    (void)user;
    return tn_mean(tn_to(tn_eq(tn_argmax(tn_call(net, b->x), 1, false), b->y), TN_F32));
}

static void report(const tn_fit_event *e, void *user)
{
    (void)user;
    if (e->what == TN_FIT_START) printf("from step %lld of %lld\n", (long long)e->step, (long long)e->steps);
    if (e->what == TN_FIT_VALID)
        printf("step %4lld  loss %.3f  lr %.5f  right %5.1f %%%s\n", (long long)e->step, e->loss, e->lr, 100 * e->value,
               e->improved ? "  best so far" : "");
    if (e->what == TN_FIT_END) printf("%s: the best was %.1f %%\n", e->text, 100 * e->best);
}

int main(void)
{
    tn_seed(4);
    tn_scope   s = tn_scope_begin();
    tn_tensor *x, *y, *valid_x, *valid_y;
    spirals(1000, &x, &y), spirals(500, &valid_x, &valid_y);
    tn_dataset *train = tn_dataset_new(.x = x, .y = y, .batch = 50, .shuffle = true);
    tn_dataset *valid = tn_dataset_new(.x = valid_x, .y = valid_y, .batch = 250);

    tn_sequential *net = network();
    tn_fit_result  r =
        tn_fit(net, .train = tn_dataset_source(train), .loss = loss, .epochs = 60, .lr = 1e-2,
               .valid = tn_dataset_source(valid), .measure = accuracy, .rising = true, .patience = 4,
               .valid_every = 100, .restore_best = true, .folder = "spirals", .resume = true, .on = report);
    if (r.why == TN_FIT_FAILED) fprintf(stderr, "%s\n", tn_error_message());

    tn_free(net);
    tn_dataset_free(train), tn_dataset_free(valid);
    tn_scope_end(s);
    return r.why == TN_FIT_FAILED;
}
