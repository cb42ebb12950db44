/* test_golden_modules.c — the simple modules compared with PyTorch: results, gradients of inputs and parameters,
 * running statistics, and printed text. tests/golden/modules.py writes the data. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/golden_case.h"

#define X(...) tn_golden_input(k, "x", TN_SHAPE(__VA_ARGS__))
#define DT .dtype = k->dtype

static tn_tensor *ints(tn_shape s, const int64_t *v) { return tn_from_data(TN_I64, s, v); }
static tn_tensor *index_rows(void) { return ints(TN_SHAPE(3, 4), (int64_t[]){1, 4, 2, 2, 0, 5, 4, 0, 2, 2, 2, 2}); }
static tn_tensor *index_flat(void) { return ints(TN_SHAPE(8), (int64_t[]){1, 4, 2, 2, 0, 5, 4, 2}); }
static tn_tensor *offsets(int n) { return ints(TN_SHAPE(n), (int64_t[]){0, 3, 3, 5, 8}); }

static tn_tensor *bilinear(tn_golden *k, void *m, tn_shape a, tn_shape b)
{
    m = tn_golden_fill(k, m);
    tn_tensor *x = tn_golden_input(k, "a", a);
    return tn_bilinear_forward(m, x, tn_golden_input(k, "b", b));
}
static tn_tensor *bag(tn_golden *k, tn_bag_mode mode, int64_t padding, bool flat)
{
    tn_embedding_bag *m =
        tn_golden_fill(k, tn_embedding_bag_new(.count = 6, .dim = 3, .mode = mode, .padding = padding, DT));
    return flat ? tn_embedding_bag_forward(m, index_flat(), offsets(4), NULL) : tn_call(m, index_rows());
}
static tn_tensor *named(tn_golden *k, const char *what, tn_shape s)
{
    return tn_golden_values(tn_name("%s/%s", k->name, what), k->dtype, s);
}
static tn_tensor *near_one(tn_golden *k, const char *what, tn_shape s)
{
    return tn_add_scalar(tn_mul_scalar(named(k, what, s), 0.5), 1);
}
static tn_tensor *batch(tn_golden *k, tn_batch_norm *m, tn_tensor *x, bool eval)
{
    if (m->running_mean) {
        tn_copy_from(m->running_mean, named(k, "mean", TN_SHAPE(3)));
        tn_copy_from(m->running_var, near_one(k, "var", TN_SHAPE(3)));
    }
    tn_train(m, !eval);
    tn_tensor *y = tn_call(m, x);
    if (m->running_mean)
        k->w = tn_stack(0, tn_clone(m->running_mean), tn_clone(m->running_var),
                        tn_expand(tn_to(m->num_batches_tracked, k->dtype), TN_SHAPE(3)));
    return y;
}
#define BATCH(make, eval, ...) batch(k, tn_golden_fill(k, make), X(__VA_ARGS__), eval)
#define CALL(make, ...) tn_call((tn_module *)tn_golden_fill(k, make), X(__VA_ARGS__))
static tn_tensor *cosine(tn_golden *k)
{
    tn_tensor *x = X(5, 4), *y = tn_golden_input(k, "y", TN_SHAPE(5, 4));
    return tn_cosine_embedding_loss(x, y, ints(TN_SHAPE(5), (int64_t[]){1, -1, 1, -1, -1}), 0.25, TN_MEAN);
}
static tn_tensor *from(tn_golden *k, void *m, tn_shape s, int64_t start)
{
    m = tn_golden_fill(k, m);
    return tn_positions_forward(m, tn_golden_input(k, "x", s), start);
}

static tn_tensor *mixed(tn_golden *k)
{
    tn_scalar_mix *m = tn_golden_fill(k, tn_scalar_mix_new(.count = 3, DT));
    tn_tensor     *x[3] = {tn_golden_input(k, "a", TN_SHAPE(2, 4))};
    x[1] = tn_golden_input(k, "b", TN_SHAPE(2, 4)), x[2] = tn_golden_input(k, "c", TN_SHAPE(2, 4));
    return tn_scalar_mix_forward(m, 3, x);
}
static tn_tensor *adaptive(tn_golden *k, bool all)
{
    tn_adaptive_softmax *m = tn_golden_fill(
        k, tn_adaptive_softmax_new(.in = 8, .classes = 12, .cutoffs = {4, 9}, .div_value = 2, .head_bias = !all, DT));
    if (all) return tn_adaptive_softmax_log_prob(m, X(3, 8));
    tn_tensor *each,
        *loss = tn_adaptive_softmax_forward(m, X(7, 8), ints(TN_SHAPE(7), (int64_t[]){0, 3, 5, 9, 11, 4, 2}), &each);
    return tn_cat(0, each, tn_reshape(loss, TN_SHAPE(1)));
}
static tn_tensor *sampled(tn_golden *k, tn_sampled_loss *m, tn_tensor *noise)
{
    m = tn_golden_fill(k, m);
    tn_sampled_loss_args a = {.x = X(4, 3), .noise = noise, .target = ints(TN_SHAPE(4), (int64_t[]){2, 0, 4, 2})};
    a.weight = tn_golden_input(k, "weight", TN_SHAPE(5, 3)), a.bias = tn_golden_input(k, "bias", TN_SHAPE(5));
    return tn_sampled_loss_run(m, a);
}
static tn_tensor *seen(void) { return tn_from_data(TN_F64, TN_SHAPE(5), (double[]){5, 1, 9, 2, 3}); }
static tn_tensor *noise(void) { return ints(TN_SHAPE(3), (int64_t[]){0, 2, 1}); }
static tn_tensor *noise_rows(void) { return ints(TN_SHAPE(4, 3), (int64_t[]){0, 2, 1, 3, 3, 0, 4, 1, 2, 0, 0, 2}); }
#define DRAWS .counts = seen(), .samples = 3, .reduction = TN_NONE

#define CASES(C)                                                                                                       \
    C(linear, CALL(tn_linear_new(.in = 5, .out = 3, DT), 2, 4, 5))                                                     \
    C(linear_no_bias, CALL(tn_linear_new(.in = 5, .out = 3, .no_bias = true, DT), 4, 5))                               \
    C(identity, CALL(tn_identity_new(), 2, 3))                                                                         \
    C(bilinear, bilinear(k, tn_bilinear_new(.in1 = 3, .in2 = 4, .out = 2, DT), TN_SHAPE(5, 2, 3), TN_SHAPE(5, 2, 4)))  \
    C(bilinear_no_bias,                                                                                                \
      bilinear(k, tn_bilinear_new(.in1 = 3, .in2 = 4, .out = 2, .no_bias = true, DT), TN_SHAPE(5, 3), TN_SHAPE(5, 4))) \
    C(embedding, tn_call((tn_embedding *)tn_golden_fill(k, tn_embedding_new(.count = 6, .dim = 3, DT)), index_rows())) \
    C(embedding_padding,                                                                                               \
      tn_call((tn_embedding *)tn_golden_fill(k, tn_embedding_new(.count = 6, .dim = 3, .padding = 2, DT)),             \
              index_rows()))                                                                                           \
    C(bag_mean, bag(k, TN_BAG_MEAN, -1, false))                                                                        \
    C(bag_mean_offsets, bag(k, TN_BAG_MEAN, -1, true))                                                                 \
    C(bag_mean_padding, bag(k, TN_BAG_MEAN, 2, false))                                                                 \
    C(bag_mean_padding_offsets, bag(k, TN_BAG_MEAN, 2, true))                                                          \
    C(bag_sum, bag(k, TN_BAG_SUM, -1, false))                                                                          \
    C(bag_sum_offsets, bag(k, TN_BAG_SUM, -1, true))                                                                   \
    C(bag_sum_padding, bag(k, TN_BAG_SUM, 2, false))                                                                   \
    C(bag_sum_padding_offsets, bag(k, TN_BAG_SUM, 2, true))                                                            \
    C(bag_max, bag(k, TN_BAG_MAX, -1, false))                                                                          \
    C(bag_max_offsets, bag(k, TN_BAG_MAX, -1, true))                                                                   \
    C(bag_max_padding, bag(k, TN_BAG_MAX, 2, false))                                                                   \
    C(bag_max_padding_offsets, bag(k, TN_BAG_MAX, 2, true))                                                            \
    C(bag_last_offset,                                                                                                 \
      tn_embedding_bag_forward(                                                                                        \
          tn_golden_fill(k, tn_embedding_bag_new(.count = 6, .dim = 3, .mode = TN_BAG_SUM, .last_offset = true, DT)),  \
          index_flat(), offsets(5), NULL))                                                                             \
    C(bag_weights,                                                                                                     \
      tn_embedding_bag_forward(tn_golden_fill(k, tn_embedding_bag_new(.count = 6, .dim = 3, .mode = TN_BAG_SUM, DT)),  \
                               index_flat(), offsets(4), tn_golden_input(k, "w", TN_SHAPE(8))))                        \
    C(layer_norm, CALL(tn_layer_norm_new(.dim = 6, DT), 2, 3, 6))                                                      \
    C(layer_norm_plain, CALL(tn_layer_norm_new(.dim = 6, .no_affine = true, .eps = 1e-3, DT), 2, 3, 6))                \
    C(layer_norm_two, CALL(tn_layer_norm_new(.shape = TN_SHAPE(3, 4), DT), 2, 3, 4))                                   \
    C(layer_norm_two_plain, CALL(tn_layer_norm_new(.shape = TN_SHAPE(3, 4), .no_affine = true, DT), 2, 3, 4))          \
    C(rms_norm, CALL(tn_rms_norm_new(.dim = 6, .eps = 1e-6, DT), 2, 3, 6))                                             \
    C(batch_norm1d, BATCH(tn_batch_norm1d_new(.features = 3, DT), false, 5, 3))                                        \
    C(batch_norm1d_3, BATCH(tn_batch_norm1d_new(.features = 3, .momentum = 0.3, .eps = 1e-3, DT), false, 2, 3, 4))     \
    C(batch_norm1d_cumulative, BATCH(tn_batch_norm1d_new(.features = 3, .cumulative = true, DT), false, 5, 3))         \
    C(batch_norm1d_eval, BATCH(tn_batch_norm1d_new(.features = 3, DT), true, 5, 3, 2))                                 \
    C(batch_norm1d_plain,                                                                                              \
      BATCH(tn_batch_norm1d_new(.features = 3, .no_affine = true, .no_running = true), false, 5, 3))                   \
    C(batch_norm1d_plain_eval, BATCH(tn_batch_norm1d_new(.features = 3, .no_running = true, DT), true, 5, 3))          \
    C(batch_norm2d, BATCH(tn_batch_norm2d_new(.features = 3, DT), false, 2, 3, 4, 2))                                  \
    C(batch_norm2d_eval, BATCH(tn_batch_norm2d_new(.features = 3, DT), true, 2, 3, 4, 2))                              \
    C(group_norm, CALL(tn_group_norm_new(.groups = 2, .channels = 6, DT), 2, 6, 3))                                    \
    C(group_norm_plain, CALL(tn_group_norm_new(.groups = 2, .channels = 6, .no_affine = true), 2, 6))                  \
    C(group_norm_images, CALL(tn_group_norm_new(.groups = 6, .channels = 6, .eps = 1e-3, DT), 2, 6, 2, 3))             \
    C(instance_norm1d, CALL(tn_instance_norm1d_new(.features = 3, .affine = true, DT), 2, 3, 4))                       \
    C(instance_norm2d, CALL(tn_instance_norm2d_new(.features = 3), 2, 3, 4, 2))                                        \
    C(dropout_none, CALL(tn_dropout_new(.p = 0), 2, 3))                                                                \
    C(conv1d, CALL(tn_conv1d_new(.in = 3, .out = 4, .size = 3, DT), 2, 3, 9))                                          \
    C(conv1d_options, CALL(tn_conv1d_new(.in = 4, .out = 6, .size = 3, .stride = 2, .padding = 2, .dilation = 2,       \
                                         .groups = 2, .no_bias = true, DT),                                            \
                           2, 4, 9))                                                                                   \
    C(conv2d, CALL(tn_conv2d_new(.in = 3, .out = 4, .size = 3, DT), 2, 3, 5, 6))                                       \
    C(conv2d_options,                                                                                                  \
      CALL(tn_conv2d_new(.in = 2, .out = 4, .size = 3, .size_w = 2, .stride = 2, .stride_w = 1, .padding = 1,          \
                         .padding_w = 0, .dilation = 1, .dilation_w = 2, .groups = 2, DT),                             \
           1, 2, 6, 7))                                                                                                \
    C(conv2d_square,                                                                                                   \
      CALL(tn_conv2d_new(.in = 2, .out = 3, .size = 3, .stride = 2, .padding = 1, .dilation = 2, DT), 1, 2, 7, 7))     \
    C(linear_normed, CALL(tn_linear_new(.in = 5, .out = 3, .weight_norm = true, DT), 2, 4, 5))                         \
    C(conv1d_normed,                                                                                                   \
      CALL(tn_conv1d_new(.in = 4, .out = 6, .size = 3, .padding = 1, .groups = 2, .weight_norm = true, DT), 2, 4, 5))  \
    C(conv2d_normed,                                                                                                   \
      CALL(tn_conv2d_new(.in = 2, .out = 3, .size = 3, .size_w = 1, .weight_norm = true, DT), 1, 2, 5, 4))             \
    C(conv_transpose1d, CALL(tn_conv_transpose1d_new(.in = 3, .out = 4, .size = 3, DT), 2, 3, 5))                      \
    C(conv_transpose1d_options,                                                                                        \
      CALL(tn_conv_transpose1d_new(.in = 4, .out = 6, .size = 3, .stride = 2, .padding = 1, .output_padding = 1,       \
                                   .dilation = 2, .groups = 2, .no_bias = true, DT),                                   \
           2, 4, 5))                                                                                                   \
    C(conv_transpose1d_normed,                                                                                         \
      CALL(tn_conv_transpose1d_new(.in = 3, .out = 2, .size = 4, .stride = 2, .padding = 1, .weight_norm = true, DT),  \
           2, 3, 5))                                                                                                   \
    C(conv_transpose2d, CALL(tn_conv_transpose2d_new(.in = 3, .out = 4, .size = 3, DT), 2, 3, 4, 3))                   \
    C(conv_transpose2d_options,                                                                                        \
      CALL(tn_conv_transpose2d_new(.in = 2, .out = 4, .size = 3, .size_w = 2, .stride = 2, .stride_w = 3,              \
                                   .padding = 1, .padding_w = 0, .output_padding = 1, .output_padding_w = 2,           \
                                   .dilation = 1, .dilation_w = 2, .groups = 2, DT),                                   \
           1, 2, 3, 4))                                                                                                \
    C(adaptive_avg_pool1d, CALL(tn_adaptive_avg_pool1d_new(.out = 4), 2, 3, 9))                                        \
    C(adaptive_avg_pool2d, CALL(tn_adaptive_avg_pool2d_new(.out = 2, .out_w = 3), 1, 2, 5, 8))                         \
    C(adaptive_max_pool1d, CALL(tn_adaptive_max_pool1d_new(.out = 4), 2, 3, 9))                                        \
    C(adaptive_max_pool2d, CALL(tn_adaptive_max_pool2d_new(.out = 1), 1, 2, 5, 8))                                     \
    C(max_pool1d, CALL(tn_max_pool1d_new(.size = 3, .stride = 2, .padding = 1), 2, 3, 9))                              \
    C(max_pool1d_dilated, CALL(tn_max_pool1d_new(.size = 2, .dilation = 3), 2, 3, 9))                                  \
    C(max_pool2d, CALL(tn_max_pool2d_new(.size = 2), 1, 2, 6, 8))                                                      \
    C(max_pool2d_options, CALL(tn_max_pool2d_new(.size = 2, .size_w = 3, .stride = 2, .stride_w = 1, .padding = 1,     \
                                                 .padding_w = 0, .dilation = 1, .dilation_w = 2),                      \
                               1, 2, 6, 8))                                                                            \
    C(avg_pool1d, CALL(tn_avg_pool1d_new(.size = 3, .stride = 2, .padding = 1), 2, 3, 9))                              \
    C(avg_pool2d, CALL(tn_avg_pool2d_new(.size = 2), 1, 2, 6, 8))                                                      \
    C(avg_pool2d_options, CALL(tn_avg_pool2d_new(.size = 2, .size_w = 3, .stride = 2, .stride_w = 1, .padding = 1,     \
                                                 .padding_w = 0, .ignore_padding = true),                              \
                               1, 2, 6, 8))                                                                            \
    C(flatten, CALL(tn_flatten_new(), 2, 3, 4))                                                                        \
    C(flatten_first, CALL(tn_flatten_new(.first = 0, .last = 1), 2, 3, 4))                                             \
    C(highway, CALL(tn_highway_new(.dim = 4, .layers = 2, DT), 2, 3, 4))                                               \
    C(scalar_mix, mixed(k))                                                                                            \
    C(adaptive_softmax, adaptive(k, false))                                                                            \
    C(adaptive_log_prob, adaptive(k, true))                                                                            \
    C(nce, sampled(k, tn_nce_loss_new(DRAWS), noise()))                                                                \
    C(nce_rows, sampled(k, tn_nce_loss_new(DRAWS), noise_rows()))                                                      \
    C(negative_sampling, sampled(k, tn_negative_sampling_loss_new(DRAWS), noise()))                                    \
    C(relu, CALL(tn_relu_new(), 3, 4))                                                                                 \
    C(selu, CALL(tn_selu_new(), 3, 4))                                                                                 \
    C(silu, CALL(tn_silu_new(), 3, 4))                                                                                 \
    C(mish, CALL(tn_mish_new(), 3, 4))                                                                                 \
    C(tanh, CALL(tn_tanh_new(), 3, 4))                                                                                 \
    C(sigmoid, CALL(tn_sigmoid_new(), 3, 4))                                                                           \
    C(logsigmoid, CALL(tn_logsigmoid_new(), 3, 4))                                                                     \
    C(leaky_relu, CALL(tn_leaky_relu_new(), 3, 4))                                                                     \
    C(leaky_relu_02, CALL(tn_leaky_relu_new(.slope = 0.2), 3, 4))                                                      \
    C(elu, CALL(tn_elu_new(), 3, 4))                                                                                   \
    C(elu_2, CALL(tn_elu_new(.alpha = 2), 3, 4))                                                                       \
    C(prelu, CALL(tn_prelu_new(DT), 3, 4))                                                                             \
    C(prelu_channels, CALL(tn_prelu_new(.parameters = 4, DT), 3, 4))                                                   \
    C(gelu, CALL(tn_gelu_new(), 3, 4))                                                                                 \
    C(gelu_tanh, CALL(tn_gelu_new(.tanh = true), 3, 4))                                                                \
    C(softplus, CALL(tn_softplus_new(), 3, 4))                                                                         \
    C(softplus_3, CALL(tn_softplus_new(.beta = 3), 3, 4))                                                              \
    C(softmax, CALL(tn_softmax_new(), 3, 4))                                                                           \
    C(softmax_0, CALL(tn_softmax_new(.dim = 0), 3, 4))                                                                 \
    C(log_softmax_1, CALL(tn_log_softmax_new(.dim = 1), 3, 4))                                                         \
    C(glu, CALL(tn_glu_new(), 3, 4))                                                                                   \
    C(sinusoidal, CALL(tn_sinusoidal_positions_new(.dim = 6, .length = 20, DT), 2, 5, 6))                              \
    C(sinusoidal_odd, CALL(tn_sinusoidal_positions_new(.dim = 5, .length = 4, .time_first = true, DT), 4, 2, 5))       \
    C(sinusoidal_from_9, from(k, tn_sinusoidal_positions_new(.dim = 6, .length = 12, DT), TN_SHAPE(2, 3, 6), 9))       \
    C(learned, CALL(tn_learned_positions_new(.dim = 3, .length = 7, DT), 2, 5, 3))                                     \
    C(learned_from_2, from(k, tn_learned_positions_new(.dim = 3, .length = 7, DT), TN_SHAPE(2, 5, 3), 2))              \
    C(cosine_loss, cosine(k))

#define C(name, ...) \
    static tn_tensor *run_##name(tn_golden *k) { return __VA_ARGS__; }
CASES(C)
#undef C
#define C(name, ...) {#name, run_##name},
static const tn_golden_case cases[] = {CASES(C)};
enum { COUNT = sizeof cases / sizeof *cases };

static tn_safetensors *golden;
static void            open_golden(void)
{
    golden = tn_safetensors_open(tn_test_data("golden/modules.safetensors"));
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
}
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);

TEST_EACH(modules, COUNT) { tn_golden_check(golden, &cases[_i]); }

/* Text that PyTorch 1.13 prints differently from PyTorch 2, apart from quotation marks; and modules that it lacks. */
static const char *const newer[][2] = {{"softplus", "Softplus(beta=1.0, threshold=20.0)"},
                                       {"softplus_3", "Softplus(beta=3.0, threshold=20.0)"},
                                       {"sinusoidal", "SinusoidalPositions(20, 6, dropout=0.0)"},
                                       {"sinusoidal_odd", "SinusoidalPositions(4, 5, dropout=0.0)"},
                                       {"sinusoidal_from_9", "SinusoidalPositions(12, 6, dropout=0.0)"},
                                       {"learned", "LearnedPositions(7, 3, dropout=0.0)"},
                                       {"learned_from_2", "LearnedPositions(7, 3, dropout=0.0)"}};

static void without_quotes(char *to, const char *text)
{
    for (; *text && *text != '\n'; text++)
        if (*text != '\'') *to++ = *text;
    *to = 0;
}

TEST_EACH(texts, COUNT - 1) /* the last case is a function */
{
    tn_golden   k = {.name = cases[_i].name};
    char        text[1000], got[1000], said[1000];
    const char *want = tn_safetensors_metadata(golden, k.name);
    ck_assert_msg(want != NULL, "%s is not in modules.safetensors", k.name);
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (!strcmp(newer[i][0], k.name)) want = newer[i][1];
    ck_assert_ptr_nonnull(cases[_i].run(&k));
    FILE *f = fmemopen(text, sizeof text, "w");
    tn_module_print(f, k.module);
    fclose(f);
    tn_module_free(k.module);
    without_quotes(got, text), without_quotes(said, want);
    ck_assert_str_eq(got, said);
}

/* Every case of the golden file runs here. */
TEST(nothing_is_left_out)
{
    for (int64_t i = 0; i < tn_safetensors_count(golden); i++) {
        const char *name = tn_safetensors_at(golden, i).name;
        bool        found = false;
        for (int k = 0; k < COUNT && !found; k++)
            found = !strncmp(name, cases[k].name, strcspn(name, "/")) && !cases[k].name[strcspn(name, "/")];
        ck_assert_msg(found, "no case for %s", name);
    }
}
