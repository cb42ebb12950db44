/* 02_autograd.c — lesson 2: gradients. The tape, backward, second derivatives, checking a gradient by finite
 * differences, and fitting a line by hand. Explained line by line in docs/guide/02_autograd.md.
 * Build: cc -O2 02_autograd.c -o 02_autograd $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

static void a_derivative(void)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_scalar_of(TN_F32, 3));
    tn_tensor *y = tn_add(tn_mul(x, x), tn_mul_scalar(x, 2));
    tn_backward(y);
    printf("y = x² + 2x at x = 3: y = %g, dy/dx = %g\n", tn_item(y), tn_item(tn_grad(x)));
    tn_scope_end(s);
}

static void derivatives_of_derivatives(void)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_scalar_of(TN_F64, 2));
    tn_tensor *d = tn_pow_scalar(x, 4);
    printf("x⁴ and its derivatives at x = 2: %g", tn_item(d));
    for (int i = 0; i < 4; i++) {
        d = tn_grad_wrt(d, x, true);
        printf(", %g", tn_item(d));
    }
    printf("\n");
    tn_scope_end(s);
}

static tn_tensor *smooth(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_mul(tn_sin(in[0]), tn_exp(tn_neg(tn_square(in[1]))));
}

static void a_check(void)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *in[2] = {tn_normal_of(TN_F64, TN_SHAPE(3), 0, 1), tn_normal_of(TN_F64, TN_SHAPE(2, 1), 0, 1)};
    for (int i = 0; i < 2; i++) tn_requires_grad(in[i]);
    tn_status right = tn_gradcheck(smooth, .count = 2, .inputs = in, .second = true);
    printf("sin(a) exp(-b²): gradients %s by differences\n\n", right == TN_OK ? "confirmed" : "refuted");
    tn_scope_end(s);
}

static void a_line(void)
{
    tn_scope   all = tn_scope_begin();
    tn_tensor *slope = tn_requires_grad(tn_zeros(TN_SCALAR)), *height = tn_requires_grad(tn_zeros(TN_SCALAR));
    tn_tensor *x = tn_uniform(TN_SHAPE(100), -1, 1);
    tn_tensor *y = tn_add(tn_add_scalar(tn_mul_scalar(x, 3), -1), tn_normal(TN_SHAPE(100), 0, 0.1));
    for (int step = 0; step <= 100; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *loss = tn_mse_loss(tn_add(tn_mul(x, slope), height), y);
        if (step % 25 == 0)
            printf("step %3d  loss %.4f  y = %.3f x %+.3f\n", step, tn_item(loss), tn_item(slope), tn_item(height));
        tn_backward(loss);

        tn_scope update = tn_no_grad_begin();
        tn_sub_(slope, tn_mul_scalar(tn_grad(slope), 0.1));
        tn_sub_(height, tn_mul_scalar(tn_grad(height), 0.1));
        tn_scope_end(update);
        tn_zero_grad(slope), tn_zero_grad(height);
        tn_scope_end(s);
    }
    tn_scope_end(all);
}

int main(void)
{
    tn_seed(1);
    a_derivative();
    derivatives_of_derivatives();
    a_check();
    a_line();
    if (tn_error() != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
    return tn_error() != TN_OK;
}
