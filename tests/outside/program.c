/* program.c — a user's program: the gradient of sum(x²) is 2x; a custom module; recovery from an error. */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

typedef struct {
    tn_module  base;
    tn_linear *inner;
    tn_tensor *scale;
} scaled;

static tn_tensor *scaled_forward(scaled *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_mul(tn_call(m->inner, x), m->scale));
}
TN_FORWARD(scaled);

static scaled *scaled_new(int64_t dim)
{
    scaled *m = tn_module_new(scaled);
    if (!m) return NULL;
    m->inner = tn_child(m, "inner", tn_linear_new(.in = dim, .out = dim));
    m->scale = tn_param(m, "scale", tn_ones(TN_SHAPE(dim)));
    return tn_built(m);
}

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

    scaled *m = scaled_new(6);
    tn_backward(tn_sum(tn_call(m, x)));
    if (tn_count(m) != 48 || !tn_grad(m->scale)) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    tn_print_module(stdout, m);
    tn_free(m);
    tn_scope_end(s);
    printf("tenon %s\n", tn_version());
    return 0;
}
