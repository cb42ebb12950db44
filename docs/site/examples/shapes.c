/* shapes.c — examples of views, of joining and cutting, of indices, of normalisation, convolution and attention. */
#include "show.h"

EXAMPLE(reshape)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 6, 1);
    tn_print(stdout, tn_view(x, TN_SHAPE(2, -1)));
    tn_print(stdout, tn_reshape(tn_transpose(tn_view(x, TN_SHAPE(2, 3)), 0, 1), TN_SHAPE(6)));
    tn_print(stdout, tn_flatten(tn_view(x, TN_SHAPE(1, 2, 3)), 0, 1));
}

EXAMPLE(permute)
{
    char       text[192];
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 3, 4));
    puts(tn_shape_text(tn_shape_of(tn_permute(x, TN_DIMS(2, 0, 1))), text, sizeof text));
    puts(tn_shape_text(tn_shape_of(tn_transpose(x, 0, -1)), text, sizeof text));
    puts(tn_shape_text(tn_strides_of(tn_transpose(x, 0, -1)), text, sizeof text));
}

EXAMPLE(slice)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 8, 1);
    tn_print(stdout, tn_slice(x, 0, 1, 7, 2)); /* x[1:7:2] */
    tn_print(stdout, tn_narrow(x, 0, 5, 2));   /* 2 elements from 5 on */
    tn_print(stdout, tn_select(tn_view(x, TN_SHAPE(2, 4)), 1, -1));
}

EXAMPLE(expand)
{
    tn_tensor *x = tn_unsqueeze(tn_arange_of(TN_F32, 0, 2, 1), 1); /* [2, 1] */
    tn_tensor *y = tn_expand(x, TN_SHAPE(-1, 3));                  /* [2, 3], without a copy */
    tn_print(stdout, y);
    printf("%d elements in memory\n", tn_shares_memory(x, y) ? 2 : 6);
    tn_print(stdout, tn_squeeze(x, 1));
}

EXAMPLE(diagonal) { tn_print(stdout, tn_diagonal(tn_view(tn_arange_of(TN_F32, 0, 9, 1), TN_SHAPE(3, 3)), 0, 0, 1)); }

EXAMPLE(unfold) { tn_print(stdout, tn_unfold(tn_arange_of(TN_F32, 0, 5, 1), 0, 3, 1)); /* windows of 3 */ }

EXAMPLE(clone_and_convert)
{
    tn_tensor *x = tn_transpose(tn_view(tn_arange(4), TN_SHAPE(2, 2)), 0, 1);
    printf("%d %d\n", tn_is_contiguous(x), tn_is_contiguous(tn_contiguous(x)));
    tn_print(stdout, tn_clone(x));
    tn_print(stdout, tn_to(x, TN_F32));
    tn_print(stdout, tn_copy_(tn_zeros(TN_SHAPE(2, 2)), tn_to(x, TN_F32)));
}

EXAMPLE(cat)
{
    tn_tensor *a = tn_zeros(TN_SHAPE(1, 2)), *b = tn_ones(TN_SHAPE(1, 2));
    tn_print(stdout, tn_cat(0, a, b));    /* [2, 2] */
    tn_print(stdout, tn_stack(-1, a, b)); /* [1, 2, 2] */
    tn_tensor *list[] = {a, b, a};
    tn_print(stdout, tn_cat_list(1, 3, list));
    tn_print(stdout, tn_stack_list(0, 2, list));
}

EXAMPLE(split)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 5, 1), *part[3];
    int        n = tn_split(x, 2, 0, 3, part);
    for (int i = 0; i < n; i++) tn_print(stdout, part[i]);
    printf("%d chunks\n", tn_chunk(x, 2, 0, 3, part));
}

EXAMPLE(pad) { tn_print(stdout, tn_pad(tn_ones(TN_SHAPE(1, 2)), TN_SHAPE(0, 1), TN_SHAPE(1, 0), 9)); }

EXAMPLE(triangles)
{
    tn_tensor *x = tn_ones(TN_SHAPE(3, 3));
    tn_print(stdout, tn_tril(x, 0));
    tn_print(stdout, tn_triu(x, 1));
}

EXAMPLE(roll_and_flip)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 4, 1);
    tn_print(stdout, tn_roll(x, 1, 0));
    tn_print(stdout, tn_flip(x, TN_DIMS(0)));
}

EXAMPLE(repeat)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 2, 1);
    tn_print(stdout, tn_repeat(x, TN_SHAPE(2)));
    tn_print(stdout, tn_repeat_interleave(x, 2, 0));
}

EXAMPLE(gather)
{
    tn_tensor *x = tn_view(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(2, 3));
    tn_tensor *index = tn_from_data(TN_I64, TN_SHAPE(2, 1), (int64_t[]){2, 0});
    tn_print(stdout, tn_gather(x, 1, index));
    tn_print(stdout, tn_take_along(x, index, 1));
    tn_print(stdout, tn_scatter_add(tn_zeros(TN_SHAPE(2, 3)), 1, index, tn_ones(TN_SHAPE(2, 1))));
}

EXAMPLE(index_select)
{
    tn_tensor *x = tn_view(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(3, 2));
    tn_tensor *index = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){2, 0}), *rows = tn_ones(TN_SHAPE(2, 2));
    tn_print(stdout, tn_index_select(x, 0, index));
    tn_print(stdout, tn_index_add(x, 0, index, rows));
    tn_print(stdout, tn_index_copy(x, 0, index, rows));
    tn_print(stdout, tn_index_copy_(x, 0, index, rows));
}

EXAMPLE(embedding)
{
    tn_tensor *table = tn_view(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(3, 2));
    tn_print(stdout, tn_embedding(table, tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){2, 0}), -1, false));
}

EXAMPLE(one_hot)
{
    tn_tensor *x = tn_one_hot(tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){2, 0}), 3);
    tn_print(stdout, x);
    tn_print(stdout, tn_nonzero(x));
}

EXAMPLE(sort)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(4), (float[]){3, 1, 4, 2});
    tn_pair    s = tn_sort(x, 0), top = tn_topk(x, 2, 0);
    tn_print(stdout, s.values);
    tn_print(stdout, s.indices);
    tn_print(stdout, top.values);
    tn_print(stdout, tn_sort(x, 0, .descending = true).values);
}

EXAMPLE(layer_norm)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(1, 3), (float[]){1, 2, 6});
    tn_print(stdout, tn_layer_norm(x, NULL, NULL, 1e-5));
    tn_print(stdout, tn_rms_norm(x, NULL, 1e-6));
}

EXAMPLE(dropout)
{
    tn_print(stdout, tn_dropout(tn_ones(TN_SHAPE(2, 4)), 0.5));
    tn_tensor *rows = tn_from_data(TN_I64, TN_SHAPE(1), (int64_t[]){1}); /* row 1 of a batch [B, 2, 4] */
    tn_seed(1);
    tn_print(stdout, tn_dropout_rows(tn_ones(TN_SHAPE(1, 4)), 0.5, rows, 2));
}

EXAMPLE(add_dropout_norm)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(1, 3), (float[]){1, 2, 6}), *h = tn_ones(TN_SHAPE(1, 3));
    tn_print(stdout, tn_add_dropout_norm(x, h, NULL, NULL, .p = 0, .eps = 1e-5));
}

EXAMPLE(linear_cross_entropy)
{
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3)), *weight = tn_zeros(TN_SHAPE(10, 3));       /* 10 classes */
    printf("%.4f\n", tn_item(tn_linear_cross_entropy(x, weight, NULL, tn_arange(2)))); /* ln 10 */
}

EXAMPLE(convolution)
{
    tn_tensor *x = tn_view(tn_arange_of(TN_F32, 0, 5, 1), TN_SHAPE(1, 1, 5)); /* [N, C, L] */
    tn_print(stdout, tn_conv1d(x, tn_ones(TN_SHAPE(1, 1, 3)), NULL, .padding = 1));
    tn_tensor *image = tn_ones(TN_SHAPE(1, 1, 3, 3)), *kernel = tn_ones(TN_SHAPE(1, 1, 2, 2));
    tn_print(stdout, tn_conv2d(image, kernel, NULL, .stride = 1));
}

EXAMPLE(pooling)
{
    tn_tensor *x = tn_view(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(1, 1, 6));
    tn_print(stdout, tn_max_pool1d(x, .size = 2));
    tn_print(stdout, tn_avg_pool1d(x, .size = 3));
    tn_tensor *image = tn_view(tn_arange_of(TN_F32, 0, 16, 1), TN_SHAPE(1, 1, 4, 4));
    tn_print(stdout, tn_max_pool2d(image, .size = 2));
    tn_print(stdout, tn_avg_pool2d(image, .size = 2));
}

EXAMPLE(attention)
{
    tn_tensor *q = tn_view(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(1, 3, 2)); /* [B, T, D] */
    tn_tensor *weights;
    tn_print(stdout, tn_attention(q, q, q, .causal = true, .weights = &weights));
    tn_print(stdout, weights);
}

EXAMPLE(attention_at)
{
    tn_tensor *k = tn_view(tn_arange_of(TN_F32, 0, 8, 1), TN_SHAPE(1, 4, 2));
    tn_tensor *past = tn_from_data(TN_I64, TN_SHAPE(1), (int64_t[]){2}); /* 2 positions come before the query */
    tn_scope   s = tn_no_grad_begin();
    tn_print(
        stdout,
        tn_attention_at(
            (tn_attention_args){.q = tn_ones(TN_SHAPE(1, 1, 2)), .k = k, .v = k, .causal = true, .scale = -1}, past));
    tn_scope_end(s);
}

EXAMPLE(lsh_attention)
{
    tn_tensor *x = tn_normal(TN_SHAPE(1, 1, 8, 4), 0, 1);
    char       text[192];
    tn_tensor *y = tn_lsh_attention(x, x, x, .chunk = 4);
    puts(tn_shape_text(tn_shape_of(y), text, sizeof text));
}

EXAMPLE(rope)
{
    tn_tensor *angles = tn_rope_angles(TN_ROPE(.dim = 2), 0, 3); /* cosines and sines of positions 0, 1, 2 */
    tn_print(stdout, tn_rope(tn_ones(TN_SHAPE(3, 2)), angles, false));
    tn_rope_config longer = TN_ROPE(.dim = 2, .scaling = TN_ROPE_LINEAR, .factor = 4);
    tn_print(stdout, tn_rope_angles_at(longer, tn_arange(2)));
}

EXAMPLE(recurrent_steps)
{
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3)), *h = tn_zeros(TN_SHAPE(1, 3)), *last; /* 2 steps of 1 sequence */
    tn_tensor *weight = tn_zeros(TN_SHAPE(3, 3));
    tn_print(stdout, tn_rnn_steps(x, weight, h, .steps = 2, .last_h = &last));
    tn_print(stdout, last);
    tn_tensor *four = tn_ones(TN_SHAPE(2, 12)), *three = tn_ones(TN_SHAPE(2, 9));
    tn_print(stdout, tn_lstm_steps(four, tn_zeros(TN_SHAPE(12, 3)), h, .c = h, .steps = 2));
    tn_print(stdout, tn_gru_steps(three, tn_zeros(TN_SHAPE(9, 3)), h, .steps = 2));
}

EXAMPLE(experts)
{
    tn_tensor *chosen = tn_from_data(TN_I64, TN_SHAPE(3, 1), (int64_t[]){1, 0, 1}); /* the expert of each token */
    tn_routes  r = tn_route(chosen, 2, 0);
    tn_print(stdout, r.expert);
    tn_print(stdout, r.token);
    tn_tensor *weight[] = {tn_ones(TN_SHAPE(1, 2)), tn_full(TN_SHAPE(1, 2), 10)};
    tn_tensor *rows = tn_index_select(tn_view(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(3, 2)), 0, r.token);
    tn_print(stdout, tn_grouped_linear(rows, r.expert, 2, weight, NULL));
}

EXAMPLE(conv_transpose)
{
    tn_tensor *x = tn_view(tn_arange_of(TN_F32, 1, 4, 1), TN_SHAPE(1, 1, 3));
    tn_print(stdout, tn_conv_transpose1d(x, tn_ones(TN_SHAPE(1, 1, 2)), NULL, .stride = 2)); /* [1, 1, 6] */
    tn_tensor *image = tn_ones(TN_SHAPE(1, 1, 2, 2));
    tn_print(stdout, tn_conv_transpose2d(image, tn_ones(TN_SHAPE(1, 1, 2, 2)), NULL, .stride = 1)); /* [1, 1, 3, 3] */
}
