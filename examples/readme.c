/* readme.c — the program in README.md (a test compares the two): fits sin(x) with a network that has one hidden
 * layer.
 * Build: cc -O2 readme.c -o readme $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

int main(void)
{
    tn_seed(1);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 1, .out = 32));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_linear_new(.in = 32, .out = 1));
    tn_optimizer *opt = tn_adamw_new(net, .lr = 1e-2);

    for (int step = 0; step <= 1000 && !tn_error(); step++) {
        tn_scope   s = tn_scope_begin();                   /* owns the tensors of this step */
        tn_tensor *x = tn_uniform(TN_SHAPE(64, 1), -3, 3); /* [64, 1] */
        tn_tensor *loss = tn_mse_loss(tn_call(net, x), tn_sin(x));
        if (step % 200 == 0) printf("%4d  %.5f\n", step, tn_item(loss));
        tn_backward(loss);
        tn_step(opt); /* also zeroes the gradients */
        tn_scope_end(s);
    }
    int failed = tn_error() != TN_OK; /* this thread's first error */
    if (failed) fprintf(stderr, "%s\n", tn_error_message());
    tn_optimizer_free(opt);
    tn_free(net);
    return failed;
}
