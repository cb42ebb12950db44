/* from_ggml.c — coming from ggml: the same tasks with ggml on the left and with Tenon on the right. ggml builds a graph
 * in a context of fixed size and computes it later; Tenon computes each call at once, in memory that scopes free. Dims
 * are listed in the opposite order: ggml's ne[0] is the last dim of a shape here. */
#include "show.h"

/* Memory: no size is guessed
 *
 *     struct ggml_init_params p = { .mem_size = 16*1024*1024 };
 *     struct ggml_context *ctx = ggml_init(p);
 *     ...
 *     ggml_free(ctx); */
EXAMPLE(memory)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3));
    printf("%d\n", (int)tn_numel(x));
    tn_scope_end(s); /* frees x */
}

/* Make a tensor and fill it
 *
 *     struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 2);
 *     memcpy(a->data, data, ggml_nbytes(a)); */
EXAMPLE(make_a_tensor)
{
    const float data[] = {0, 1, 2, 3, 4, 5};
    tn_tensor  *a = tn_from_data(TN_F32, TN_SHAPE(2, 3), data); /* 2 rows of 3 */
    tn_print(stdout, a);
}

/* Multiply: weights are [out, in] in both
 *
 *     struct ggml_tensor *y = ggml_mul_mat(ctx, w, x);
 *     struct ggml_cgraph *gf = ggml_new_graph(ctx);
 *     ggml_build_forward_expand(gf, y);
 *     ggml_graph_compute_with_ctx(ctx, gf, 4); */
EXAMPLE(multiply)
{
    tn_tensor *w = tn_ones(TN_SHAPE(4, 3)), *x = tn_ones(TN_SHAPE(2, 3));
    tn_set_threads(2);
    tn_print(stdout, tn_linear(x, w, NULL)); /* computed when the call returns */
    tn_set_threads(0);
}

/* Read a value
 *
 *     float v = ggml_get_f32_1d(y, 0); */
EXAMPLE(read_a_value)
{
    tn_tensor *y = tn_full(TN_SHAPE(2, 2), 0.5);
    printf("%g %g\n", tn_get(y, 0), tn_get_at(y, TN_SHAPE(1, 1)));
}

/* Views
 *
 *     ggml_view_2d(ctx, a, 2, 2, a->nb[1], 0);
 *     ggml_cont(ctx, ggml_transpose(ctx, a)); */
EXAMPLE(views)
{
    tn_tensor *a = tn_reshape(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(2, 3));
    tn_print(stdout, tn_narrow(a, 1, 0, 2));
    tn_print(stdout, tn_transpose(a, 0, 1)); /* ops read any strides: no copy is needed */
}

/* Gradients
 *
 *     ggml_set_param(x);
 *     ggml_set_loss(f);
 *     ggml_build_backward_expand(ctx, gb, NULL);
 *     ggml_graph_compute_with_ctx(ctx, gb, 4); */
EXAMPLE(gradients)
{
    tn_tensor *x = tn_requires_grad(tn_full(TN_SHAPE(1), 3));
    tn_backward(tn_sum(tn_square(x)));
    printf("%g\n", tn_item(tn_grad(x)));
}

/* Rotary positions, norm and softmax in attention
 *
 *     q = ggml_rope(ctx, q, pos, n_rot, 0);
 *     kq = ggml_soft_max_ext(ctx, ggml_mul_mat(ctx, k, q), mask, scale, 0);
 *     ggml_mul_mat(ctx, v, kq); */
EXAMPLE(attention)
{
    tn_tensor *q = tn_normal(TN_SHAPE(1, 2, 4, 8), 0, 1); /* [batch, heads, positions, width] */
    tn_tensor *angles = tn_rope_angles(TN_ROPE(.dim = 8), 0, 4);
    tn_tensor *y = tn_attention(tn_rope(q, angles, false), tn_rope(q, angles, false), q, .causal = true);
    char       text[192];
    puts(tn_shape_text(tn_shape_of(y), text, sizeof text));
}

/* Quantised weights
 *
 *     w = ggml_new_tensor_2d(ctx, GGML_TYPE_Q8_0, 64, 4);
 *     ggml_quantize_chunk(GGML_TYPE_Q8_0, src, w->data, 0, 4, 64, NULL); */
EXAMPLE(quantised_weights)
{
    tn_tensor *w = tn_q8_pack(tn_ones(TN_SHAPE(4, 64))); /* the values of Q8_0 */
    tn_print(stdout, tn_linear(tn_ones(TN_SHAPE(1, 64)), w, NULL));
}

/* GGUF files
 *
 *     struct gguf_context *g = gguf_init_from_file("model.gguf", params);
 *     int64_t id = gguf_find_key(g, "llama.block_count"); */
EXAMPLE(gguf_files)
{
    tn_gguf_writer *w = tn_gguf_writer_new();
    tn_gguf_put_u32(w, "llama.block_count", 5);
    if (tn_gguf_save(w, "model.gguf", NULL) != TN_OK) puts(tn_error_message());
    tn_gguf_writer_free(w);
    tn_gguf *g = tn_gguf_open("model.gguf");
    printf("%d\n", (int)tn_gguf_i64_or(g, "llama.block_count", 0));
    tn_gguf_close(g);
}

/* Errors: nothing aborts
 *
 *     GGML_ASSERT(ggml_can_mul_mat(a, b)); // ends the process */
EXAMPLE(errors)
{
    tn_tensor *y = tn_matmul(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2, 3)));
    if (!y) printf("%s\n", tn_error_message());
    tn_clear_error();
}
