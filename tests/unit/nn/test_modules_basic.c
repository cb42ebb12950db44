/* test_modules_basic.c — the simple modules: gradients by finite differences, also of empty and smallest sizes;
 * training and evaluation; failing allocations; and the errors of wrong calls. Values are in test_golden_modules.c. */
#include "nn/base/nn_private.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

/* ---- gradients ------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module *m;
    int        inputs;
    tn_tensor *(*run)(void *m, tn_tensor *const *x);
} checked;

/* The module computes with the checker's copies of its parameters. */
static tn_tensor *with_parameters(tn_tensor *const *x, int n, void *user)
{
    const checked *c = user;
    int            k = c->inputs;
    for (tn_each p = tn_module_each(c->m, TN_EACH_PARAMETER); tn_next(&p); k++) tn__rebind(p.module, p.tensor, x[k]);
    ck_assert_int_eq(k, n);
    tn_tensor *y = c->run(c->m, x);
    k = c->inputs;
    for (tn_each p = tn_module_each(c->m, TN_EACH_PARAMETER); tn_next(&p); k++) tn__rebind(p.module, x[k], p.tensor);
    return y;
}

static tn_tensor *call(void *m, tn_tensor *const *x) { return tn_module_call(m, x[0]); }
static tn_tensor *call_bilinear(void *m, tn_tensor *const *x) { return tn_bilinear_forward(m, x[0], x[1]); }
static tn_tensor *ints(tn_shape s, const int64_t *v) { return tn_from_data(TN_I64, s, v); }
static tn_tensor *call_table(void *m, tn_tensor *const *x)
{
    (void)x;
    return tn_module_call(m, ints(TN_SHAPE(2, 3), (int64_t[]){4, 1, 0, 2, 2, 4}));
}
static tn_tensor *call_bags(void *m, tn_tensor *const *x)
{
    return tn_embedding_bag_forward(m, ints(TN_SHAPE(5), (int64_t[]){4, 1, 0, 2, 2}),
                                    ints(TN_SHAPE(3), (int64_t[]){0, 2, 2}), x[0]);
}
static tn_tensor *call_mix(void *m, tn_tensor *const *x) { return tn_scalar_mix_forward(m, 2, x); }
static tn_tensor *call_adaptive(void *m, tn_tensor *const *x)
{
    return tn_adaptive_softmax_forward(m, x[0], ints(TN_SHAPE(5), (int64_t[]){0, 8, 3, 4, 1}), NULL);
}
static tn_tensor *call_sampled(void *m, tn_tensor *const *x)
{
    return tn_sampled_loss_forward((tn_sampled_loss *)m, x[0], x[1], x[2], ints(TN_SHAPE(3), (int64_t[]){0, 3, 3}));
}

static void check_as(const char *name, void *module, tn_tensor *(*run)(void *, tn_tensor *const *), int n,
                     const tn_shape *s)
{
    ck_assert_msg(module != NULL, "%s: %s", name, tn_error_message());
    const tn_scope scope = tn_scope_begin();
    checked        c = {.m = module, .inputs = n, .run = run};
    tn_tensor     *in[8];
    int            k = 0;
    ck_assert_int_eq(tn_module_to(module, TN_F64), TN_OK);
    for (; k < n; k++) in[k] = tn_requires_grad(tn_uniform_of(TN_F64, s[k], 0.1, 1.9));
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p); k++) in[k] = p.tensor;
    ck_assert_msg(tn_gradcheck(with_parameters, .count = k, .inputs = in, .user = &c, .name = name) == TN_OK, "%s",
                  tn_error_message());
    tn_scope_end(scope);
    tn_module_free(module);
}
#define check(name, module, ...) check_as(name, module, call, 1, (tn_shape[]){TN_SHAPE(__VA_ARGS__)})

TEST(gradients)
{
    check("linear", tn_linear_new(.in = 3, .out = 4), 2, 3);
    check("linear of nothing", tn_linear_new(.in = 3, .out = 4), 0, 3);
    check("linear of one row", tn_linear_new(.in = 3, .out = 1), 1, 1, 3);
    check("linear of one vector", tn_linear_new(.in = 3, .out = 2), 3);
    check_as("bilinear", tn_bilinear_new(.in1 = 2, .in2 = 3, .out = 2), call_bilinear, 2,
             (tn_shape[]){TN_SHAPE(4, 2), TN_SHAPE(4, 3)});
    check_as("bilinear of nothing", tn_bilinear_new(.in1 = 2, .in2 = 3, .out = 2), call_bilinear, 2,
             (tn_shape[]){TN_SHAPE(0, 2), TN_SHAPE(0, 3)});
    check_as("bilinear of vectors", tn_bilinear_new(.in1 = 2, .in2 = 3, .out = 2), call_bilinear, 2,
             (tn_shape[]){TN_SHAPE(2), TN_SHAPE(3)});
    check_as("embedding", tn_embedding_new(.count = 5, .dim = 3), call_table, 0, NULL);
    check_as("embedding bag, mean", tn_embedding_bag_new(.count = 5, .dim = 2), call_table, 0, NULL);
    check_as("embedding bag, max", tn_embedding_bag_new(.count = 5, .dim = 2, .mode = TN_BAG_MAX), call_table, 0, NULL);
    check_as("embedding bag, weighted", tn_embedding_bag_new(.count = 5, .dim = 2, .mode = TN_BAG_SUM), call_bags, 1,
             (tn_shape[]){TN_SHAPE(5)});
    check("layer norm", tn_layer_norm_new(.dim = 5), 3, 5);
    check("layer norm of nothing", tn_layer_norm_new(.dim = 5), 0, 5);
    check("layer norm without bias", tn_layer_norm_new(.shape = TN_SHAPE(2, 3), .no_bias = true), 2, 2, 3);
    check("layer norm of one row", tn_layer_norm_new(.shape = TN_SHAPE(2, 3), .no_affine = true), 2, 3);
    check("rms norm", tn_rms_norm_new(.dim = 5), 3, 5);
    check("rms norm, plain", tn_rms_norm_new(.shape = TN_SHAPE(2, 3), .no_affine = true), 2, 2, 3);
    check("batch norm", tn_batch_norm1d_new(.features = 3), 4, 3);
    check("batch norm of sequences", tn_batch_norm1d_new(.features = 3), 1, 3, 4);
    check("batch norm of images", tn_batch_norm2d_new(.features = 2), 2, 2, 2, 3);
    tn_batch_norm *m = tn_batch_norm1d_new(.features = 3);
    tn_eval(m);
    check("batch norm, evaluating", m, 4, 3);
    m = tn_batch_norm1d_new(.features = 3);
    tn_eval(m);
    check("batch norm of nothing", m, 0, 3, 2);
    check("group norm", tn_group_norm_new(.groups = 2, .channels = 4), 2, 4, 3);
    check("group norm of nothing", tn_group_norm_new(.groups = 2, .channels = 4), 0, 4);
    check("instance norm", tn_instance_norm1d_new(.features = 2, .affine = true), 2, 2, 5);
    check("dropout", tn_dropout_new(), 3, 5);
    check("convolution", tn_conv1d_new(.in = 2, .out = 3, .size = 3, .padding = 1), 2, 2, 5);
    check("convolution of length 1", tn_conv1d_new(.in = 2, .out = 3, .size = 3, .padding = 1), 1, 2, 1);
    check("convolution of nothing", tn_conv1d_new(.in = 2, .out = 3, .size = 3), 0, 2, 5);
    check("convolution of images", tn_conv2d_new(.in = 2, .out = 2, .size = 2, .size_w = 3, .stride = 2, .stride_w = 1),
          1, 2, 4, 5);
    check("linear, normed", tn_linear_new(.in = 3, .out = 4, .weight_norm = true), 2, 3);
    check("linear of nothing, normed", tn_linear_new(.in = 3, .out = 4, .weight_norm = true), 0, 3);
    check("convolution, normed", tn_conv1d_new(.in = 2, .out = 3, .size = 3, .weight_norm = true), 2, 2, 5);
    check("convolution of images, normed", tn_conv2d_new(.in = 1, .out = 2, .size = 2, .weight_norm = true), 1, 1, 3,
          3);
    check("transposed convolution",
          tn_conv_transpose1d_new(.in = 2, .out = 3, .size = 3, .stride = 2, .output_padding = 1), 2, 2, 3);
    check("transposed convolution of nothing", tn_conv_transpose1d_new(.in = 2, .out = 3, .size = 3), 0, 2, 3);
    check("transposed convolution of images",
          tn_conv_transpose2d_new(.in = 2, .out = 2, .size = 2, .size_w = 3, .stride_w = 2, .weight_norm = true), 1, 2,
          2, 3);
    check("adaptive max pool", tn_adaptive_max_pool1d_new(.out = 2), 2, 2, 5);
    check("adaptive average pool", tn_adaptive_avg_pool2d_new(.out = 2, .out_w = 3), 1, 2, 3, 5);
    check("max pool", tn_max_pool1d_new(.size = 2), 2, 2, 6);
    check("average pool", tn_avg_pool2d_new(.size = 2), 1, 2, 4, 4);
    check("positions", tn_learned_positions_new(.dim = 3, .length = 5), 2, 4, 3);
    check("positions of length 1", tn_sinusoidal_positions_new(.dim = 3, .dropout = 0.5), 2, 1, 3);
    check("softmax", tn_softmax_new(.dim = 1), 2, 4);
    check("softplus", tn_softplus_new(.beta = 2), 2, 4);
    check("selu", tn_selu_new(), 2, 4);
    check("prelu", tn_prelu_new(.parameters = 3), 2, 3, 4);
    check("mish", tn_mish_new(), 2, 4);
    check("highway", tn_highway_new(.dim = 3, .layers = 2, .activation = tn_tanh), 2, 3);
    check("locked dropout", tn_locked_dropout_new(), 2, 3, 4);
    check_as("scalar mix", tn_scalar_mix_new(.count = 2), call_mix, 2, (tn_shape[]){TN_SHAPE(2, 3), TN_SHAPE(2, 3)});
    check_as("adaptive softmax",
             tn_adaptive_softmax_new(.in = 6, .classes = 9, .cutoffs = {3, 5}, .div_value = 2, .head_bias = true),
             call_adaptive, 1, (tn_shape[]){TN_SHAPE(5, 6)});
    tn_tensor *counts = tn_ones(TN_SHAPE(4));
    check_as("noise-contrastive estimation", tn_nce_loss_new(.counts = counts, .samples = 3), call_sampled, 3,
             (tn_shape[]){TN_SHAPE(3, 2), TN_SHAPE(4, 2), TN_SHAPE(4)});
    check_as("negative sampling", tn_negative_sampling_loss_new(.counts = counts, .samples = 3), call_sampled, 3,
             (tn_shape[]){TN_SHAPE(3, 2), TN_SHAPE(4, 2), TN_SHAPE(4)});
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 3, .out = 4));
    tn_append(net, tn_tanh_new());
    tn_append(net, tn_layer_norm_new(.dim = 4));
    check("a sequence of them", net, 2, 3);
}

/* ---- training and evaluation ----------------------------------------------------------------------------------- */

TEST(dropout_drops_in_training)
{
    tn_dropout *d = tn_dropout_new(.p = 0.25);
    tn_tensor  *x = tn_ones(TN_SHAPE(100, 100)), *y = tn_call(d, x);
    double      kept = 0;
    for (int64_t i = 0; i < 10000; i++) {
        ck_assert(tn_get(y, i) == 0 || fabs(tn_get(y, i) - 1 / 0.75) < 1e-6);
        kept += tn_get(y, i) != 0;
    }
    ck_assert_double_le(fabs(kept / 10000 - 0.75), 5 * sqrt(0.75 * 0.25 / 10000));
    tn_eval(d);
    uint64_t before = tn_current_generator()->position;
    ck_assert(tn_call(d, x) == x);
    ck_assert_uint_eq(tn_current_generator()->position, before);
    tn_free(d);
}

TEST(embeddings_may_be_given)
{
    tn_tensor    *given = tn_uniform_of(TN_F64, TN_SHAPE(4, 3), -1, 1);
    tn_embedding *e = tn_embedding_new(.from = given, .frozen = true, .padding = 1);
    ck_assert_int_eq(e->count, 4);
    ck_assert_int_eq(e->dim, 3);
    ck_assert_int_eq(tn_dtype_of(e->weight), TN_F32);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq(tn_get(e->weight, i), (double)(float)tn_get(given, i)); /* row 1, too */
    ck_assert(!tn_needs_grad(e->weight) && !tn_shares_memory(e->weight, given));
    ck_assert_int_eq(tn_count(e), 12);
    tn_free(e);
    e = tn_embedding_new(.count = 4, .dim = 3, .padding = 2);
    ck_assert_int_eq(e->padding, 2);
    tn_backward(tn_sum(tn_call(e, ints(TN_SHAPE(3), (int64_t[]){2, 1, 1}))));
    ck_assert_double_eq(tn_get_at(tn_grad(e->weight), TN_SHAPE(1, 0)), 2);
    ck_assert_double_eq(tn_get_at(tn_grad(e->weight), TN_SHAPE(2, 0)), 0);
    tn_free(e);
}

/* The statistics of bf16 rows are those of their values in f32. */
TEST(batch_norm_of_bf16)
{
    tn_tensor     *x = tn_to(tn_normal(TN_SHAPE(400, 3), 2, 1), TN_BF16);
    tn_batch_norm *m = tn_batch_norm1d_new(.features = 3), *want = tn_batch_norm1d_new(.features = 3);
    tn_call(m, x), tn_call(want, tn_to(x, TN_F32));
    ck_assert(tn_same_bits(m->running_mean, want->running_mean) && tn_same_bits(m->running_var, want->running_var));
    ck_assert(tn_get(m->running_mean, 0) != 0 && tn_error() == TN_OK);
    tn_free(m), tn_free(want);
}

TEST(a_failed_batch_norm_advances_nothing)
{
    tn_faulty_memory_begin();
    tn_scope       s = tn_scope_begin();
    tn_batch_norm *m = tn_batch_norm1d_new(.features = 3);
    tn_tensor     *x = tn_normal(TN_SHAPE(5, 3), 2, 1);
    bool           reached = true;
    int64_t        n = 0;
    for (; reached; n++) {
        tn_fail_memory(n, false);
        tn_tensor *y = tn_call(m, x);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        ck_assert(reached == !y && tn_error() == (reached ? TN_ENOMEM : TN_OK));
        tn_clear_error();
        ck_assert_int_eq(tn_get_i64(m->num_batches_tracked, 0), !reached);
        ck_assert((tn_get(m->running_mean, 1) == 0) == reached && (tn_get(m->running_var, 1) == 1) == reached);
    }
    ck_assert_int_gt(n, 10);
    tn_free(m);
    tn_scope_end(s);
    tn_faulty_memory_end();
}

TEST(an_empty_bag_is_zero)
{
    for (int mode = TN_BAG_MEAN; mode <= TN_BAG_MAX; mode++) {
        tn_embedding_bag *m = tn_embedding_bag_new(.count = 4, .dim = 2, .mode = (tn_bag_mode)mode, .padding = 3);
        const tn_scope    s = tn_no_grad_begin();
        tn_fill(tn_select(m->weight, 0, 3), INFINITY); /* the padding row may have any values */
        tn_scope_end(s);
        tn_tensor *y = tn_embedding_bag_forward(m, ints(TN_SHAPE(3), (int64_t[]){1, 3, 3}),
                                                ints(TN_SHAPE(3), (int64_t[]){0, 0, 1}), NULL);
        for (int i = 0; i < 2; i++) {
            ck_assert_double_eq(tn_get_at(y, TN_SHAPE(0, i)), 0);                                    /* an empty bag */
            ck_assert_double_eq(tn_get_at(y, TN_SHAPE(1, i)), tn_get_at(m->weight, TN_SHAPE(1, i))); /* row 1 */
            ck_assert_double_eq(tn_get_at(y, TN_SHAPE(2, i)), 0);                                    /* padding alone */
        }
        ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
        ck_assert_double_eq(tn_get_at(tn_grad(m->weight), TN_SHAPE(3, 0)), 0);
        ck_assert_double_eq(tn_get_at(tn_grad(m->weight), TN_SHAPE(1, 0)), 1);
        ck_assert_int_eq(tn_size(tn_embedding_bag_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(0)),
                                                          tn_zeros_of(TN_I64, TN_SHAPE(2)), NULL),
                                 0),
                         2);
        tn_free(m);
    }
}

/* ---- failing allocations: build, forward, backward, convert and copy a net ------------------------------------- */

static double digest(tn_tensor *t) { return t ? tn_item(tn_sum(tn_square(tn_to(tn_detach(t), TN_F64)))) : NAN; }

static tn_sequential *net_new(void)
{
    tn_sequential *net = tn_sequential_new();
    if (!net) return NULL;
    tn_append(net, tn_embedding_new(.count = 7, .dim = 4, .padding = 0));
    tn_append(net, tn_sinusoidal_positions_new(.dim = 4, .length = 3, .dropout = 0.25));
    tn_append(net, tn_layer_norm_new(.dim = 4));
    tn_sequential *head = tn_append(net, tn_sequential_new());
    tn_append(head, tn_linear_new(.in = 4, .out = 6));
    tn_append(head, tn_gelu_new());
    tn_append(head, tn_dropout_new());
    tn_append(net, tn_flatten_new());
    tn_append(net, tn_batch_norm1d_new(.features = 18));
    return tn_built(net);
}

static double scenario(int i)
{
    tn_sequential *net = net_new(), *copy = NULL;
    double         d = 0;
    if (net) {
        tn_tensor *x = ints(TN_SHAPE(2, 3), (int64_t[]){1, 2, 6, 3, 0, 0}), *y = NULL;
        if (i == 0) {
            tn_tensor *loss = tn_cross_entropy(y = tn_call(net, x), ints(TN_SHAPE(2), (int64_t[]){3, 17}));
            tn_backward(loss);
            for (tn_each p = tn_parameters(net); tn_next(&p);) d += digest(tn_grad(p.tensor));
        } else if (i == 1) {
            copy = tn_copy(net);
            if (copy) d = digest(y = tn_call(copy, x)); /* the copy draws the same random values as the net */
        } else {
            tn_module_to(net, TN_F64);
            d = digest(y = tn_call(net, x));
        }
        d += digest(y);
    }
    tn_free(copy);
    tn_free(net);
    return d;
}

static double from_the_start(int i)
{
    const tn_scope s = tn_scope_begin();
    tn_seed(4);
    const double d = scenario(i);
    tn_scope_end(s);
    return d;
}

TEST_EACH(every_allocation, 3)
{
    tn_faulty_memory_begin();
    const double want = from_the_start(_i);
    ck_assert_msg(tn_error() == TN_OK && isfinite(want), "%s", tn_error_message());
    const int64_t held = tn_memory_blocks();
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        bool    reached = true;
        int64_t n = 0;
        for (; reached; n++) {
            tn_fail_memory(n, for_ever);
            double got = from_the_start(_i);
            reached = tn_memory_calls() > n;
            tn_fail_memory(-1, false);
            if (reached) {
                ck_assert_msg(tn_error() == TN_ENOMEM, "allocation %lld: %s", (long long)n, tn_error_message());
                tn_clear_error();
                got = from_the_start(_i);
            }
            ck_assert_msg(tn_error() == TN_OK, "the retry: %s", tn_error_message());
            ck_assert_msg(!memcmp(&got, &want, sizeof got), "allocation %lld: the retry gives %.17g, not %.17g",
                          (long long)n, got, want);
            ck_assert_int_le(tn_memory_blocks(), held);
        }
        ck_assert_int_gt(n, 100);
    }
    tn_faulty_memory_end();
}

/* A constructor that fails restores the generator, so that a retry without a new seed gives the same bits. */
static void *built(int i)
{
    switch (i) {
    case 0: return tn_linear_new(.in = 3, .out = 4);
    case 1: return tn_bilinear_new(.in1 = 3, .in2 = 4, .out = 2);
    case 2: return tn_embedding_new(.count = 5, .dim = 3, .padding = 1);
    case 3: return tn_conv2d_new(.in = 2, .out = 3, .size = 3);
    case 4: return tn_learned_positions_new(.dim = 4, .length = 4);
    case 5: return tn_conv_transpose1d_new(.in = 3, .out = 2, .size = 2, .weight_norm = true);
    default: return tn_batch_norm2d_new(.features = 3);
    }
}

TEST_EACH(a_failed_constructor_leaves_no_trace, 8)
{
    tn_faulty_memory_begin();
    tn_scope   s = tn_scope_begin();
    bool       reached = true;
    tn_module *m = NULL;
    int64_t    n = 0;
    for (; reached; n++) {
        const int64_t tensors = tn_memory_now().tensors;
        tn_fail_memory(n, false);
        const tn_scope inner = tn_scope_begin();
        m = built(_i);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        tn_scope_end(inner);
        if (!reached) break;
        ck_refused_code(m, TN_ENOMEM);
        ck_assert_int_eq(tn_memory_now().tensors, tensors);
        ck_assert_uint_eq(tn_current_generator()->position, 0);
    }
    ck_assert_int_gt(n, 4);
    ck_assert_ptr_nonnull(m);
    tn_module_free(m);
    tn_scope_end(s);
    tn_faulty_memory_end();
}

/* ---- errors of wrong calls ------------------------------------------------------------------------------------- */

#define refuses(code, text, ...)         \
    do {                                 \
        ck_assert_ptr_null(__VA_ARGS__); \
        ck_error(code, text);            \
    } while (0)

TEST(wrong_configs)
{
    tn_tensor *rows = tn_zeros(TN_SHAPE(3, 2));
    refuses(TN_EINVAL, "tn_linear_new: .in is 0, but must be at least 1", tn_linear_new());
    refuses(TN_EINVAL, "tn_linear_new: .out is -3, but must be at least 1", tn_linear_new(.in = 2, .out = -3));
    refuses(TN_EDTYPE, "tn_linear_new: .dtype is i64, but parameters are f32, f64 or bf16",
            tn_linear_new(.in = 2, .out = 3, .dtype = TN_I64));
    refuses(TN_EINVAL, "tn_layer_norm_new: .eps is nan, but must not be negative, nor infinite",
            tn_layer_norm_new(.dim = 2, .eps = NAN));
    refuses(TN_EINVAL, "tn_rms_norm_new: .eps is nan, but must not be negative, nor infinite",
            tn_rms_norm_new(.dim = 2, .eps = NAN));
    refuses(TN_EINVAL, "tn_batch_norm1d_new: .eps is -1, but must not be negative, nor infinite",
            tn_batch_norm1d_new(.features = 2, .eps = -1));
    refuses(TN_EINVAL, "tn_batch_norm2d_new: .momentum is nan, but must be from 0 to 1",
            tn_batch_norm2d_new(.features = 2, .momentum = NAN));
    refuses(TN_EINVAL,
            "tn_batch_norm1d_new: .momentum and .cumulative have no effect with .no_running; remove them or "
            ".no_running",
            tn_batch_norm1d_new(.features = 2, .no_running = true, .cumulative = true));
    refuses(TN_EINVAL, "tn_bilinear_new: .in2 is 0, but must be at least 1", tn_bilinear_new(.in1 = 2, .out = 3));
    refuses(TN_EINVAL, "tn_prelu_new: .parameters is 0, but must be at least 1", tn_prelu_new(.parameters = 0));
    refuses(TN_EINVAL, "tn_embedding_new: .count is 0, but must be at least 1", tn_embedding_new(.dim = 3));
    refuses(TN_EINDEX, "tn_embedding_new: .padding is 10, but must be from 0 to 9, or -1 for none",
            tn_embedding_new(.count = 10, .dim = 3, .padding = 10));
    refuses(TN_EINDEX, "tn_embedding_new: .padding is -2, but must be from 0 to 9, or -1 for none",
            tn_embedding_new(.count = 10, .dim = 3, .padding = -2));
    refuses(TN_ESHAPE,
            "tn_embedding_new: .from is [3, 2], but .count is 4 and .dim 0; omit them, or set them to these sizes",
            tn_embedding_new(.count = 4, .from = rows));
    refuses(TN_ESHAPE, "tn_embedding_bag_new: .from must be a floating [count, dim], got i64 [2]",
            tn_embedding_bag_new(.from = ints(TN_SHAPE(2), (int64_t[]){1, 2})));
    refuses(TN_EINVAL, "tn_embedding_bag_new: .mode is 9, but must be TN_BAG_MEAN, TN_BAG_SUM or TN_BAG_MAX",
            tn_embedding_bag_new(.count = 4, .dim = 2, .mode = (tn_bag_mode)9));
    refuses(TN_EINVAL, "tn_layer_norm_new: .dim is 0, but must be at least 1", tn_layer_norm_new());
    refuses(TN_EINVAL, "tn_layer_norm_new: .shape is 0, but must be at least 1",
            tn_layer_norm_new(.shape = TN_SHAPE(3, 0)));
    refuses(TN_EINVAL,
            "tn_layer_norm_new: .dim and .shape are both set; use .dim for the last dim or .shape for several",
            tn_layer_norm_new(.dim = 3, .shape = TN_SHAPE(3, 2)));
    refuses(TN_EINVAL, "tn_batch_norm2d_new: .features is 0, but must be at least 1", tn_batch_norm2d_new());
    refuses(TN_EINVAL, "tn_group_norm_new: 4 groups do not divide 6 channels",
            tn_group_norm_new(.groups = 4, .channels = 6));
    refuses(TN_EINVAL, "tn_dropout_new: .p is 1.5, but a probability is from 0 to 1", tn_dropout_new(.p = 1.5));
    refuses(TN_EINVAL, "tn_conv1d_new: 2 groups do not divide 3 channels in and 4 out",
            tn_conv1d_new(.in = 3, .out = 4, .size = 3, .groups = 2));
    refuses(TN_EINVAL, "tn_conv2d_new: .size is 0, but must be at least 1", tn_conv2d_new(.in = 3, .out = 4));
    refuses(TN_EINVAL, "tn_conv1d_new: .output_padding is only for transposed convolutions",
            tn_conv1d_new(.in = 3, .out = 4, .size = 3, .stride = 2, .output_padding = 1));
    refuses(TN_EINVAL, "tn_conv_transpose2d_new: .output_padding is 2, but must be less than the stride, 2",
            tn_conv_transpose2d_new(.in = 3, .out = 4, .size = 3, .stride = 3, .stride_w = 2, .output_padding = 2));
    refuses(TN_EINVAL, "tn_adaptive_avg_pool1d_new: .out_w is 2, but the pool has one dim; remove .out_w",
            tn_adaptive_avg_pool1d_new(.out = 2, .out_w = 2));
    refuses(TN_EINVAL, "tn_adaptive_max_pool2d_new: .out_w is 0, but must be at least 1",
            tn_adaptive_max_pool2d_new(.out = 2, .out_w = 0));
    refuses(TN_EINVAL, "tn_max_pool1d_new: .padding is -1, but must be at least 0",
            tn_max_pool1d_new(.size = 2, .padding = -1));
    refuses(TN_EINVAL, "tn_avg_pool1d_new: .dilation is only for max pooling",
            tn_avg_pool1d_new(.size = 2, .dilation = 2));
    refuses(TN_EINVAL,
            "tn_max_pool1d_new: .ignore_padding is only for average pooling; max pooling never uses "
            "padding",
            tn_max_pool1d_new(.size = 2, .padding = 1, .ignore_padding = true));
    refuses(TN_EINVAL,
            "tn_max_pool2d_new: .ignore_padding is only for average pooling; max pooling never uses "
            "padding",
            tn_max_pool2d_new(.size = 2, .padding = 1, .ignore_padding = true));
    refuses(TN_EINVAL, "tn_learned_positions_new: .length is 0, but must be at least 1",
            tn_learned_positions_new(.dim = 4));
    refuses(TN_EINVAL, "tn_sinusoidal_positions_new: .dropout is -0.1, but a probability is from 0 to 1",
            tn_sinusoidal_positions_new(.dim = 4, .dropout = -0.1));
}

/* The norm of a row of one small value: x / √(x² + eps). Without .eps it is PyTorch's default, for bf16 too; 0 is 0. */
TEST(epsilon_of_rms_norm)
{
    static const tn_dtype types[] = {TN_F32, TN_BF16, TN_F64};
    static const double   least[] = {0x1p-23, 0x1p-23, 0x1p-52}, x = 0x1p-11;
    for (int i = 0; i < 3; i++)
        for (int zero = 0; zero < 2; zero++) {
            tn_rms_norm *m = zero ? tn_rms_norm_new(.dim = 1, .eps = 0, .dtype = types[i])
                                  : tn_rms_norm_new(.dim = 1, .dtype = types[i]);
            const double want = x / sqrt(x * x + (zero ? 0 : least[i]));
            const double got = tn_item(tn_call(m, tn_full_of(types[i], TN_SHAPE(1, 1), x)));
            ck_assert_msg(fabs(got - want) <= (types[i] == TN_BF16 ? 0x1p-8 : 1e-6), "%s: %g, not %g",
                          tn_dtype_name(types[i]), got, want);
            tn_free(m);
        }
}

/* 1 + w in f32: 1 + 0.0102 would be 1.0078 or 1.0156 in bf16. */
TEST(add_one_of_bf16)
{
    tn_tensor     *x = tn_to(tn_normal(TN_SHAPE(40, 64), 0, 3), TN_BF16);
    tn_rms_norm   *m = tn_rms_norm_new(.dim = 64, .add_one = true, .eps = 1e-6, .dtype = TN_BF16);
    tn_rms_norm   *want = tn_rms_norm_new(.dim = 64, .add_one = true, .eps = 1e-6);
    const tn_scope s = tn_no_grad_begin();
    tn_copy_(m->weight, tn_uniform(TN_SHAPE(64), -0.02, 0.02)), tn_copy_(want->weight, m->weight);
    tn_tensor *y = tn_call(m, x), *z = tn_call(want, tn_to(x, TN_F32));
    ck_assert_msg(tn_error() == TN_OK && tn_dtype_of(y) == TN_BF16, "%s", tn_error_message());
    for (int64_t i = 0; i < 40 * 64; i++)
        ck_assert_double_le(fabs(tn_get(y, i) - tn_get(z, i)), 0x1.01p-8 * fabs(tn_get(z, i)));
    tn_scope_end(s);
    tn_free(m), tn_free(want);
}

TEST(wrong_inputs)
{
    tn_module *m[11];
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 5));
    int        n = 0;
    refuses(TN_ESHAPE, "linear: x [2, 5] does not fit weight [4, 3] ([out, in]): its last dim must be 3",
            tn_call(m[n++] = &tn_linear_new(.in = 3, .out = 4)->base, x));
    refuses(TN_ESHAPE, "layer_norm: the last dims of the input must be [3], but it is [2, 5]",
            tn_call(m[n++] = &tn_layer_norm_new(.dim = 3)->base, x));
    refuses(TN_ESHAPE, "rms_norm: the last dims of the input must be [3, 5], but it is [2, 5]",
            tn_call(m[n++] = &tn_rms_norm_new(.shape = TN_SHAPE(3, 5))->base, x));
    refuses(TN_ESHAPE, "batch_norm: the input must be [N, C] or [N, C, L] with C = 3, got [2, 5]",
            tn_call(m[n++] = &tn_batch_norm1d_new(.features = 3)->base, x));
    refuses(TN_ESHAPE, "batch_norm: in training each channel needs more than one value, but the input is [1, 3]",
            tn_call(m[n - 1], tn_zeros(TN_SHAPE(1, 3))));
    refuses(TN_ESHAPE, "group_norm: the input must be [N, C, ...] with C = 4, got [2, 5]",
            tn_call(m[n++] = &tn_group_norm_new(.groups = 2, .channels = 4)->base, x));
    refuses(TN_ESHAPE, "instance_norm: the input must be [N, C, L] with C = 5, got [2, 5]",
            tn_call(m[n++] = &tn_instance_norm1d_new(.features = 5)->base, x));
    refuses(TN_ESHAPE, "instance_norm: each channel needs more than one value, but the input is [2, 5, 1]",
            tn_call(m[n++] = &tn_instance_norm1d_new(.features = 5)->base, tn_unsqueeze(x, 2)));
    tn_eval(m[n++] = &tn_batch_norm1d_new(.features = 3, .no_running = true)->base);
    refuses(TN_ESHAPE,
            "batch_norm: without running statistics each channel needs more than one value, but the input is [1, 3]",
            tn_call(m[n - 1], tn_ones(TN_SHAPE(1, 3))));
    tn_positions *p = tn_learned_positions_new(.dim = 5, .length = 4);
    m[n++] = &p->base;
    refuses(TN_ESHAPE, "positions: the input must be [B, T, dim] with dim = 5, got [5]",
            tn_call(p, tn_zeros(TN_SHAPE(5))));
    refuses(TN_ESHAPE, "positions: 6 steps from position 0 exceed the 4 positions of the module (.length)",
            tn_call(p, tn_zeros(TN_SHAPE(1, 6, 5))));
    refuses(TN_ESHAPE, "positions: 2 steps from position 3 exceed the 4 positions of the module (.length)",
            tn_positions_forward(p, x, 3));
    tn_bilinear *b = tn_bilinear_new(.in1 = 5, .in2 = 3, .out = 1);
    m[n++] = &b->base;
    refuses(TN_ESHAPE, "bilinear: x1 must be [..., 5] and x2 [..., 3] with equal leading dims, got [2, 5] and [2, 5]",
            tn_bilinear_forward(b, x, x));
    refuses(TN_EINVAL, "bilinear: x2 is NULL", tn_bilinear_forward(b, x, NULL));
    refuses(TN_EUNSUPPORTED, "tn_call: Bilinear has no forward of one input and one result; call its typed function",
            tn_call(b, x));
    for (int i = 0; i < n; i++) tn_module_free(m[i]);
    tn_embedding *e = tn_embedding_new(.count = 4, .dim = 2);
    refuses(TN_EINDEX, "embedding: index 4 at [0, 1] is outside 0 … 3",
            tn_call(e, ints(TN_SHAPE(1, 2), (int64_t[]){0, 4})));
    tn_free(e);
    refuses(TN_EINVAL, "cosine_embedding_loss: reduction is 5, but must be TN_MEAN, TN_SUM or TN_NONE",
            tn_cosine_embedding_loss(x, x, x, 0, (tn_reduction)5));
    refuses(TN_ESHAPE, "cosine_embedding_loss: target must be [2], 1 or -1 for each pair of rows",
            tn_cosine_embedding_loss(x, x, x, 0, TN_MEAN));
    refuses(TN_ESHAPE, "cosine_embedding_loss: x1 [2, 5] and x2 [5] must have the same shape",
            tn_cosine_embedding_loss(x, tn_select(x, 0, 0), x, 0, TN_MEAN));
    refuses(TN_EINVAL, "cosine_embedding_loss: targets must be 1 (similar rows) or -1",
            tn_cosine_embedding_loss(x, x, ints(TN_SHAPE(2), (int64_t[]){1, 0}), 0, TN_MEAN));
}

/* PyTorch adds 1e-12 to the squares of both lengths. */
TEST(cosine_of_short_rows)
{
    tn_tensor *ones = tn_ones_of(TN_F64, TN_SHAPE(2, 3)), *target = ints(TN_SHAPE(2), (int64_t[]){1, 1});
    tn_tensor *x = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(2, 3), (double[]){1e-6, 1e-6, 1e-6, 0, 0, 0}));
    tn_tensor *y = tn_cosine_embedding_loss(x, ones, target, 0, TN_NONE);
    ck_assert_double_eq_tol(tn_get(y, 0), 1 - sqrt(0.75), 1e-9);
    ck_assert_double_eq(tn_get(y, 1), 1);
    tn_backward(tn_sum(y));
    ck_assert_double_eq_tol(tn_get(tn_grad(x), 3) * sqrt(3), -1e6, 1e-3);
}

TEST(wrong_bags)
{
    tn_embedding_bag *m = tn_embedding_bag_new(.count = 4, .dim = 2);
    tn_tensor        *flat = ints(TN_SHAPE(3), (int64_t[]){0, 1, 2}), *rows = tn_reshape(flat, TN_SHAPE(1, 3));
    refuses(TN_EDTYPE, "embedding_bag: index is f32, but must be i64 or i32", tn_call(m, tn_zeros(TN_SHAPE(2, 2))));
    refuses(TN_ESHAPE, "embedding_bag: index must be [bags, n], or [n] with offsets; it is [3] without offsets",
            tn_call(m, flat));
    refuses(TN_ESHAPE, "embedding_bag: index must be [bags, n], or [n] with offsets; it is [1, 3] with offsets",
            tn_embedding_bag_forward(m, rows, flat, NULL));
    refuses(TN_EINVAL, "embedding_bag: weights need .mode = TN_BAG_SUM",
            tn_embedding_bag_forward(m, rows, NULL, tn_ones(TN_SHAPE(1, 3))));
    refuses(TN_EINDEX,
            "embedding_bag: offset 1 at [0] is invalid: offsets must start with 0, not decrease, and be at most 3, "
            "the number of indices",
            tn_embedding_bag_forward(m, flat, ints(TN_SHAPE(1), (int64_t[]){1}), NULL));
    refuses(TN_EINDEX,
            "embedding_bag: offset 4 at [1] is invalid: offsets must start with 0, not decrease, and be at most 3, "
            "the number of indices",
            tn_embedding_bag_forward(m, flat, ints(TN_SHAPE(2), (int64_t[]){0, 4}), NULL));
    refuses(TN_ESHAPE, "embedding_bag: offsets must be integers [bags], got f32 [2]",
            tn_embedding_bag_forward(m, flat, tn_zeros(TN_SHAPE(2)), NULL));
    tn_free(m);
    m = tn_embedding_bag_new(.count = 4, .dim = 2, .mode = TN_BAG_SUM, .last_offset = true);
    refuses(TN_ESHAPE, "embedding_bag: weights are [2], but must have the shape of index",
            tn_embedding_bag_forward(m, flat, flat, tn_ones(TN_SHAPE(2))));
    refuses(TN_EINDEX, "embedding_bag: with .last_offset the last offset must be the number of indices, 3, but is 2",
            tn_embedding_bag_forward(m, flat, ints(TN_SHAPE(2), (int64_t[]){0, 2}), NULL));
    refuses(TN_ESHAPE, "embedding_bag: offsets must be integers [bags + 1], got i64 [0]",
            tn_embedding_bag_forward(m, flat, tn_zeros_of(TN_I64, TN_SHAPE(0)), NULL));
    tn_free(m);
}
