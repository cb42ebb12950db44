/* program.c — a user's program: the gradient of sum(x²) is 2x; a mistake is reported and forgiven. */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

int main(void)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_arange_of(TN_F32, 0, 6, 1));
    tn_tensor *loss = tn_sum(tn_mul(x, x));
    if (tn_backward(loss) != TN_OK) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    for (int i = 0; i < 6; i++)
        if (tn_get(tn_grad(x), i) != 2 * i) return fprintf(stderr, "wrong gradient at %d\n", i), 1;

    if (tn_add(x, tn_ones(TN_SHAPE(4))) || tn_error() != TN_ESHAPE) return fprintf(stderr, "no error\n"), 1;
    if (!strstr(tn_error_message(), "[6]")) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    tn_clear_error();
    tn_print(stdout, tn_grad(x));
    tn_scope_end(s);
    printf("tenon %s\n", tn_version());
    return 0;
}
