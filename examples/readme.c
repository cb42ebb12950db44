/* readme.c — the program in README.md, word for word (a test compares them): fits sin(x) with a network of one hidden
 * layer, and shows what a training step is made of. */
#include <stdio.h>
#include <tenon/tenon.h>

int main(void)
{
    tn_seed(1);
    tn_scope   all = tn_scope_begin();
    tn_tensor *w1 = tn_requires_grad(tn_normal(TN_SHAPE(32, 1), 0, 1));
    tn_tensor *b1 = tn_requires_grad(tn_normal(TN_SHAPE(32), 0, 1));
    tn_tensor *w2 = tn_requires_grad(tn_normal(TN_SHAPE(1, 32), 0, 0.2));
    tn_tensor *b2 = tn_requires_grad(tn_zeros(TN_SHAPE(1)));
    tn_tensor *params[] = {w1, b1, w2, b2};

    for (int step = 0; step <= 2000 && !tn_error(); step++) {
        tn_scope   s = tn_scope_begin();                                /* owns what this step makes */
        tn_tensor *x = tn_uniform(TN_SHAPE(64, 1), -3, 3);              /* [64, 1] */
        tn_tensor *h = tn_tanh(tn_linear(x, w1, b1));                   /* [64, 32] */
        tn_tensor *loss = tn_mse_loss(tn_linear(h, w2, b2), tn_sin(x)); /* [] */
        if (step % 400 == 0) printf("%4d  %.5f\n", step, tn_item(loss));

        tn_backward(loss);
        tn_scope update = tn_no_grad_begin();
        for (int i = 0; i < 4; i++) {
            tn_sub_(params[i], tn_mul_scalar(tn_grad(params[i]), 0.05));
            tn_zero_grad(params[i]);
        }
        tn_scope_end(update);
        tn_scope_end(s);
    }
    int failed = tn_error() != TN_OK; /* the first mistake of the thread, with its words */
    if (failed) fprintf(stderr, "%s\n", tn_error_message());
    tn_scope_end(all);
    return failed;
}
