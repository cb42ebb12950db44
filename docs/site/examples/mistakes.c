/* mistakes.c — mistakes and the messages you get: each message on this page is printed by a test. The first error of
 * a thread stays set until tn_clear_error; a program prints it once, where it acts on a result. */
#include "show.h"

/* Shapes that do not fit. The message has both shapes and the rule. */
EXAMPLE(matrices_that_do_not_fit)
{
    tn_matmul(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2, 3)));
    puts(tn_error_message());
    tn_clear_error();
}

/* Shapes that do not broadcast: insert a dim with tn_unsqueeze, or make the sizes equal. */
EXAMPLE(shapes_that_do_not_broadcast)
{
    tn_add(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2)));
    puts(tn_error_message());
    tn_clear_error();
}

/* A linear layer of another width. The message starts with the path of the module. */
EXAMPLE(layer_of_another_width)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 4, .out = 8));
    tn_append(net, tn_linear_new(.in = 4, .out = 2)); /* should be .in = 8 */
    tn_call(net, tn_ones(TN_SHAPE(1, 4)));
    puts(tn_error_message());
    tn_clear_error();
    tn_free(net);
}

/* A dim that the tensor does not have. Negative dims count from the end. */
EXAMPLE(dim_out_of_range)
{
    tn_softmax(tn_ones(TN_SHAPE(2, 3)), 2);
    puts(tn_error_message());
    tn_clear_error();
}

/* An index, a token id or a class outside the table. */
EXAMPLE(index_out_of_range)
{
    tn_embedding_run(tn_ones(TN_SHAPE(10, 4)), tn_full_of(TN_I64, TN_SHAPE(1), 10), -1, false);
    puts(tn_error_message());
    tn_clear_error();
    tn_cross_entropy(tn_zeros(TN_SHAPE(2, 3)), tn_full_of(TN_I64, TN_SHAPE(2), 3));
    puts(tn_error_message());
    tn_clear_error();
}

/* Integers in a function of real numbers: convert them. */
EXAMPLE(integers_in_a_real_function)
{
    tn_gelu(tn_arange(3));
    puts(tn_error_message());
    tn_clear_error();
}

/* Targets of cross-entropy in f32: classes are i64, probabilities have the shape of the logits. */
EXAMPLE(classes_as_reals)
{
    tn_cross_entropy(tn_zeros(TN_SHAPE(2, 3)), tn_zeros(TN_SHAPE(2)));
    puts(tn_error_message());
    tn_clear_error();
}

/* A loss with several elements: reduce it first. */
EXAMPLE(backward_of_many_elements)
{
    tn_backward(tn_square(tn_requires_grad(tn_ones(TN_SHAPE(3)))));
    puts(tn_error_message());
    tn_clear_error();
}

/* Nothing requires grad: a leaf was forgotten, or the forward pass ran under tn_no_grad_begin. */
EXAMPLE(backward_without_a_leaf)
{
    tn_backward(tn_sum(tn_ones(TN_SHAPE(3))));
    puts(tn_error_message());
    tn_clear_error();
}

/* The second backward of one tape. Pass .retain = true to the first. */
EXAMPLE(backward_twice)
{
    tn_tensor *loss = tn_sum(tn_exp(tn_requires_grad(tn_ones(TN_SHAPE(2)))));
    tn_backward(loss);
    tn_backward(loss);
    puts(tn_error_message());
    tn_clear_error();
}

/* A tensor that the tape saved was changed in place before the backward pass. */
EXAMPLE(saved_tensor_changed)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2))), *y = tn_exp(x), *loss = tn_sum(y);
    tn_add_scalar_(y, 1);
    tn_backward(loss);
    puts(tn_error_message());
    tn_clear_error();
}

/* A weight changed in place outside of tn_no_grad_begin. */
EXAMPLE(leaf_changed)
{
    tn_add_scalar_(tn_requires_grad(tn_ones(TN_SHAPE(2))), 1);
    puts(tn_error_message());
    tn_clear_error();
}

/* Writing to an expanded tensor, several elements of which share memory. */
EXAMPLE(writing_to_an_expanded_tensor)
{
    tn_add_scalar_(tn_expand(tn_ones(TN_SHAPE(1, 3)), TN_SHAPE(2, 3)), 1);
    puts(tn_error_message());
    tn_clear_error();
}

/* A view that the strides do not allow: tn_reshape copies if necessary. */
EXAMPLE(view_of_a_transpose)
{
    tn_view(tn_transpose(tn_ones(TN_SHAPE(2, 3)), 0, 1), TN_SHAPE(6));
    puts(tn_error_message());
    tn_clear_error();
}

/* A tensor used after its scope has ended: return it with tn_scope_return, or keep it with tn_keep. */
EXAMPLE(tensor_after_its_scope)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_ones(TN_SHAPE(2));
    tn_scope_end(s);
    tn_exp(x);
    puts(tn_error_message());
    tn_clear_error();
}

/* Two dtypes in one list. */
EXAMPLE(joining_two_dtypes)
{
    tn_cat(0, tn_ones(TN_SHAPE(2)), tn_arange(2));
    puts(tn_error_message());
    tn_clear_error();
}

/* Options that do not fit: heads that do not divide the width. */
EXAMPLE(heads_that_do_not_divide)
{
    tn_mha_new(.dim = 10, .heads = 4);
    puts(tn_error_message());
    tn_clear_error();
}

/* A state dict of another model. The message lists the differences, which .allow_missing and .allow_unexpected
 * accept. */
EXAMPLE(weights_of_another_model)
{
    tn_linear *small = tn_linear_new(.in = 2, .out = 1), *large = tn_linear_new(.in = 3, .out = 1, .no_bias = true);
    tn_save(small, "example.safetensors");
    tn_load(large, "example.safetensors");
    puts(tn_error_message());
    tn_clear_error();
    tn_free(small);
    tn_free(large);
}

/* A file that does not exist, and one that is not what its name says. */
EXAMPLE(files_that_cannot_be_read)
{
    tn_npy_load("missing.npy");
    puts(tn_error_message());
    tn_clear_error();
    tn_json_parse("{\"dim\": 12,}", 12);
    puts(tn_error_message());
    tn_clear_error();
}

/* More memory than there is, or than tn_set_memory_limit allows, is an ordinary error. */
EXAMPLE(too_much_memory)
{
    tn_zeros(TN_SHAPE(1 << 30, 1 << 30, 1 << 10));
    puts(tn_error_message());
    tn_clear_error();
}

/* Calls after the first error are skipped and counted: look for the first message. */
EXAMPLE(calls_after_an_error)
{
    tn_tensor *x = tn_reshape(tn_ones(TN_SHAPE(6)), TN_SHAPE(4, 2));
    tn_tensor *y = tn_exp(x);
    tn_sum(y);
    puts(tn_error_message());
    tn_clear_error();
}

/* NULL in place of a tensor: the call that should have made it failed, or the pointer was never set. */
EXAMPLE(null_as_a_tensor)
{
    tn_exp(NULL);
    puts(tn_error_message());
    tn_clear_error();
}

/* The loss is NaN or infinite. tn_fit ends with an error; without it, tn_detect_anomaly(true) finds the op whose result
 * is NaN first. Causes: a learning rate that is too large, log or sqrt of 0, a row that is masked completely. */
EXAMPLE(loss_is_nan)
{
    tn_detect_anomaly(true);
    tn_tensor *x = tn_requires_grad(tn_full(TN_SHAPE(3), -1));
    tn_mean(tn_log(x));
    puts(tn_error_message());
    tn_detect_anomaly(false);
    tn_clear_error();
}
