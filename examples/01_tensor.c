/* 01_tensor.c — lesson 1: tensors. Creation, views, arithmetic, ownership by scopes, errors; at the end, attention
 * computed by hand. Explained line by line in docs/guide/01_tensor.md.
 * Build: cc -O2 01_tensor.c -o 01_tensor $(pkg-config --cflags --libs tenon) -lm */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

static void show(const char *what, const tn_tensor *t)
{
    char text[192];
    printf("%s, %s %s:\n", what, tn_dtype_name(tn_dtype_of(t)), tn_shape_text(tn_shape_of(t), text, sizeof text));
    tn_print(stdout, t);
    printf("\n");
}

static void shapes_and_views(void)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *a = tn_reshape(tn_arange_of(TN_F32, 0, 12, 1), TN_SHAPE(3, 4)); /* [3, 4] */
    show("a", a);

    tn_tensor *column = tn_select(a, 1, 2);    /* [3] */
    tn_tensor *turned = tn_transpose(a, 0, 1); /* [4, 3] */
    tn_set_at(a, TN_SHAPE(0, 2), 100);
    show("column 2 of a, after a[0, 2] became 100", column);
    printf("a and its transpose share their memory: %s\n\n", tn_shares_memory(a, turned) ? "yes" : "no");

    tn_tensor *mean = tn_mean(a, .dims = TN_DIMS(1), .keepdim = true); /* [3, 1] */
    show("each row of a less its mean", tn_sub(a, mean));
    tn_scope_end(s);
}

static void mistakes(void)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *a = tn_ones(TN_SHAPE(3, 4)), *b = tn_ones(TN_SHAPE(3, 5));
    tn_tensor *y = tn_exp(tn_matmul(a, b)); /* 4 is not 3 */
    printf("y is %s, because of this:\n  %s\n\n", y ? "there" : "NULL", tn_error_message());
    tn_clear_error();
    tn_scope_end(s);
}

static tn_tensor *matrix(const float *numbers, int64_t rows, int64_t cols)
{
    return tn_from_data(TN_F32, TN_SHAPE(rows, cols), numbers);
}

static void attention(void)
{
    static const float words[] = {1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1};
    static const float q_weights[] = {2, 0, 2, 2, 0, 0, 2, 1, 2}, k_weights[] = {2, 2, 2, 0, 2, 1, 0, 1, 1},
                       v_weights[] = {1, 1, 0, 0, 1, 1, 0, 0, 0};
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = matrix(words, 4, 3);
    tn_tensor *q = tn_matmul(x, matrix(q_weights, 3, 3));                            /* [4, 3] */
    tn_tensor *k = tn_matmul(x, matrix(k_weights, 3, 3));                            /* [4, 3] */
    tn_tensor *v = tn_matmul(x, matrix(v_weights, 3, 3));                            /* [4, 3] */
    tn_tensor *scores = tn_div_scalar(tn_matmul(q, tn_transpose(k, 0, 1)), sqrt(3)); /* [4, 4] */
    tn_tensor *weights = tn_softmax(scores, -1);
    show("who attends to whom", weights);
    show("attention", tn_matmul(weights, v));
    tn_scope_end(s);
}

int main(void)
{
    shapes_and_views();
    mistakes();
    attention();
    printf("tensors still alive: %lld\n", (long long)tn_memory_now().tensors);
    return tn_error() != TN_OK;
}
