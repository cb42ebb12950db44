/* test_autocast.c — bf16 products with f32 weights: the dtypes of results, the error of gradients, that weights stay
 * f32, and that only the rounding differs: gradient checkpointing, no-grad, retries. */
#include "tests/common/check_main.h"

#include "core/tensor/tensor.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "tests/common/faults.h"

static tn_tensor *leaf(tn_shape s) { return tn_requires_grad(tn_normal(s, 0, 1)); }

#define ck_type(t, dt) ck_assert_str_eq(tn_dtype_name(tn_dtype_of(t)), #dt)

/* ---- types ------------------------------------------------------------------------------------------------------- */

TEST(types)
{
    tn_tensor *x = tn_normal(TN_SHAPE(2, 3, 4), 0, 1), *w = leaf(TN_SHAPE(4, 4)), *b = leaf(TN_SHAPE(4));
    tn_tensor *wide = tn_to(x, TN_F64);
    ck_type(tn_linear(x, w, b), f32);
    tn_scope   s = tn_autocast_begin(true);
    tn_tensor *y = tn_linear(x, w, b);
    ck_type(y, bf16);
    ck_type(tn_linear(y, w, b), bf16); /* bf16 with f32 */
    ck_type(tn_linear_gelu(y, w, b), bf16);
    ck_type(tn_linear_gelu_tanh(x, w, b), bf16);
    ck_type(tn_linear_relu(y, w, NULL), bf16);
    ck_type(tn_matmul(x, w), bf16);
    ck_type(tn_matmul(y, w), bf16);
    ck_type(tn_einsum("btd,ed->bte", y, w), bf16);
    ck_type(tn_attention(x, x, y), bf16);
    ck_type(tn_attention(x, x, x, .attn_mask = tn_zeros(TN_SHAPE(3, 3))), bf16);
    ck_type(tn_conv1d(x, tn_normal(TN_SHAPE(5, 3, 2), 0, 1), NULL), bf16);
    ck_type(tn_conv2d(tn_unsqueeze(y, 0), tn_normal(TN_SHAPE(5, 2, 2, 2), 0, 1), NULL), bf16);
    ck_type(tn_gelu(y), bf16);
    ck_type(tn_add(x, y), f32);
    ck_type(tn_layer_norm(y, b, b, 1e-5), bf16); /* with f32 weights */
    ck_type(tn_layer_norm(x, b, b, 1e-5), f32);
    ck_type(tn_rms_norm(y, b, 1e-5), bf16);
    ck_type(tn_add_dropout_norm(x, y, b, b, .p = 0.1), bf16);
    ck_type(tn_softmax(y, -1), f32);
    ck_type(tn_mean(y), f32);
    ck_type(tn_mse_loss(y, y), f32);
    ck_type(tn_cross_entropy(tn_reshape(y, TN_SHAPE(6, 4)), tn_zeros_of(TN_I64, TN_SHAPE(6))), f32);
    ck_type(tn_matmul(wide, tn_transpose(wide, 1, 2)), f64);
    ck_type(tn_matmul(wide, w), f64);
    tn_scope island = tn_autocast_begin(false);
    ck_type(tn_linear(x, w, b), f32);
    tn_scope_end(island);
    ck_type(tn_linear(x, w, b), bf16);
    tn_scope_end(s);
    ck_type(tn_linear(x, w, b), f32);
    ck_assert_int_eq(tn_error(), TN_OK);
}

/* The same values as with explicit conversions. */
TEST(by_hand)
{
    tn_tensor *x = tn_normal(TN_SHAPE(5, 40), 0, 1), *w = leaf(TN_SHAPE(7, 40)), *b = leaf(TN_SHAPE(7));
    tn_tensor *hand = tn_linear(tn_to(x, TN_BF16), tn_to(w, TN_BF16), tn_to(b, TN_BF16));
    tn_backward(tn_sum(tn_to(hand, TN_F32)));
    tn_tensor *gw = tn_clone(tn_grad(w)), *gb = tn_clone(tn_grad(b));
    tn_zero_grad(w), tn_zero_grad(b);
    tn_scope   s = tn_autocast_begin(true);
    tn_tensor *y = tn_linear(x, w, b);
    ck_assert(tn_same_bits(y, hand));
    tn_tensor *loss = tn_sum(y);
    tn_scope_return_list(s, 2, (tn_tensor *[]){loss, y});
    tn_backward(loss);
    ck_type(tn_grad(w), f32);
    ck_assert(tn_same_bits(tn_grad(w), gw) && tn_same_bits(tn_grad(b), gb));
}

/* The gradients of weights and biases are sums of products of bf16, in f32: not rounded to bf16, which would cost up to
 * 2^-9 of each. */
TEST(gradients_are_not_rounded)
{
    tn_tensor *x = tn_to(tn_normal(TN_SHAPE(3, 50, 40), 0, 1), TN_BF16), *w = leaf(TN_SHAPE(7, 40)),
              *b = leaf(TN_SHAPE(7)), *g = tn_to(tn_normal(TN_SHAPE(3, 50, 7), 0, 1), TN_BF16);
    for (int part = 0; part < 3; part++) {
        tn_tensor *y, *exact, *rows = tn_to(tn_reshape(x, TN_SHAPE(150, 40)), TN_F32);
        tn_tensor *gy = tn_to(tn_reshape(g, TN_SHAPE(150, 7)), TN_F32);
        tn_scope   s = tn_autocast_begin(true);
        if (part == 0) y = tn_linear(x, w, b);
        else if (part == 1) y = tn_linear_relu(x, w, b);
        else y = tn_add(tn_linear(x, w, b), tn_linear(x, w, b));
        y = tn_scope_return(s, y);
        tn_backward(y, .seed = g);
        if (part == 1) gy = tn_mul(gy, tn_to(tn_gt(tn_reshape(y, TN_SHAPE(150, 7)), tn_scalar(0)), TN_F32));
        exact = tn_mul_scalar(tn_matmul(tn_transpose(gy, 0, 1), rows), part == 2 ? 2 : 1);
        ck_type(tn_grad(w), f32);
        ck_assert(tn_allclose(tn_grad(w), exact, 1e-5, 1e-4));
        exact = tn_mul_scalar(tn_sum(gy, .dims = TN_DIMS(0)), part == 2 ? 2 : 1);
        ck_assert(tn_allclose(tn_grad(b), exact, 1e-6, 1e-5));
        tn_zero_grad(w), tn_zero_grad(b);
    }
    ck_assert_int_eq(tn_error(), TN_OK);
}

/* ---- a weight and its copy --------------------------------------------------------------------------------------- */

TEST(weights)
{
    tn_tensor *x = tn_ones(TN_SHAPE(1, 1)), *w = tn_requires_grad(tn_full(TN_SHAPE(1, 1), 3));
    tn_scope   s = tn_autocast_begin(true);
    tn_tensor *sum = tn_zeros(TN_SHAPE(1, 1));
    for (int i = 0; i < 1000; i++) sum = tn_add(sum, tn_linear(x, w, NULL));
    ck_assert_double_eq(tn_item(sum), 3000);
    const int64_t before = tn_memory_now().tensors;
    tn_linear(x, w, NULL);
    ck_assert_int_le(tn_memory_now().tensors - before, 8); /* those of the scope and of the tape */
    tn_backward(sum);                                      /* may be called inside the scope      */
    ck_assert_double_eq(tn_item(tn_grad(w)), 1000);        /* a sum in bf16 would stop at 256 */
    tn_scope off = tn_no_grad_begin();
    tn_fill(w, 5);
    ck_assert_double_eq(tn_item(tn_linear(x, w, NULL)), 5);
    tn_scope_end(off);
    ck_assert_double_eq(tn_item(tn_linear(x, w, NULL)), 5);
    tn_scope_end(s);
}

/* An optimizer also writes the copies that the tape needed. A copy that a kept tape reads is not changed. */
static tn_optimizer *adamw(tn_linear *m) { return tn_adamw_new(m, .lr = 0.1, .amsgrad = true); }
static tn_optimizer *lamb(tn_linear *m) { return tn_lamb_new(m, .lr = 0.1); }
static tn_optimizer *adafactor(tn_linear *m) { return tn_adafactor_new(m, .lr = 0.1); }
static tn_optimizer *sgd(tn_linear *m) { return tn_sgd_new(m, .lr = 0.1, .momentum = 0.9); }

TEST(optimizers_write_copies)
{
    tn_optimizer *(*const kind[])(tn_linear *) = {adamw, lamb, adafactor, sgd};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        tn_linear    *m = tn_linear_new(.in = 40, .out = 7);
        tn_optimizer *o = kind[i](m);
        tn_tensor    *x = tn_requires_grad(tn_to(tn_normal(TN_SHAPE(5, 40), 0, 1), TN_BF16));
        for (int step = 0; step < 4; step++) {
            const bool keep = step == 2; /* the tape */
            tn_scope   s = tn_autocast_begin(true);
            tn_tensor *y = tn_call(m, x), *hand = tn_linear(x, tn_to(m->weight, TN_BF16), tn_to(m->bias, TN_BF16));
            ck_assert(tn_same_bits(y, hand));
            tn_tensor *loss = tn_scope_return(s, tn_sum(tn_square(y)));
            tn_backward(loss, .retain = keep);
            tn_tensor *g = tn_clone(tn_grad(m->weight));
            ck_assert_ptr_nonnull(m->weight->narrow);
            tn_step(o);
            ck_assert(!m->weight->narrow == keep);
            if (!keep) ck_assert_int_eq(m->weight->narrow_version, m->weight->storage->version);
            if (keep) tn_backward(loss);
            if (keep) ck_assert(tn_same_bits(tn_grad(m->weight), g));
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            tn_zero_grads(m);
        }
        tn_scope s = tn_autocast_begin(true), off = tn_no_grad_begin();
        tn_fill(m->weight, 2); /* and any other change makes the copy invalid */
        tn_scope_end(off);
        ck_assert(tn_same_bits(tn_call(m, x), tn_linear(x, tn_to(m->weight, TN_BF16), tn_to(m->bias, TN_BF16))));
        tn_scope_end(s);
        tn_optimizer_free(o), tn_free(m);
    }
}

/* A copy that products of few rows have kept packed is packed again after a step, also if it is used several times. */
TEST(packed_copies_are_not_stale)
{
    for (int64_t rows = 1; rows <= 64; rows *= 4) {
        tn_linear    *m = tn_linear_new(.in = 256, .out = 128);
        tn_optimizer *o = sgd(m);
        tn_tensor    *x = tn_to(tn_normal(TN_SHAPE(rows, 256), 0, 1), TN_BF16);
        for (int step = 0; step < 4; step++) {
            tn_scope s = tn_autocast_begin(true);
            for (int use = 0; use < 3; use++) {
                const tn_scope off = tn_no_grad_begin();
                ck_assert(
                    tn_same_bits(tn_call(m, x), tn_linear(x, tn_to(m->weight, TN_BF16), tn_to(m->bias, TN_BF16))));
                tn_scope_end(off);
            }
            tn_backward(tn_scope_return(s, tn_sum(tn_square(tn_call(m, x)))));
            tn_step(o);
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        }
        tn_optimizer_free(o), tn_free(m);
    }
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static tn_transformer_encoder_layer *model(void)
{
    tn_seed(3);
    return tn_transformer_encoder_layer_new(.dim = 16, .heads = 2, .ff = 32, .dropout = 0.1);
}

static tn_tensor *segment(tn_tensor *const *in, int n, void *user)
{
    tn_transformer_encoder_layer *m = user;
    (void)n;
    return tn_call(m, in[0]);
}

/* The loss, and the gradients of all parameters as one list. */
static tn_tensor *gradients(tn_transformer_encoder_layer *m, bool autocast, bool again)
{
    tn_seed(4);
    tn_tensor *x = tn_normal(TN_SHAPE(4, 10, 16), 0, 1), *to = tn_normal(TN_SHAPE(4, 10, 16), 0, 1);
    tn_scope   s = tn_autocast_begin(autocast);
    tn_tensor *y = again ? tn_checkpoint(segment, m, 1, &x) : tn_call(m, x);
    tn_tensor *loss = tn_scope_return(s, tn_mse_loss(y, to));
    tn_backward(loss);
    tn_tensor *list[32] = {tn_reshape(loss, TN_SHAPE(1))};
    int        n = 1;
    for (tn_each p = tn_parameters(m); tn_next(&p); n++) {
        if (tn_grad(p.tensor)) ck_type(tn_grad(p.tensor), f32);
        if (tn_grad(p.tensor)) list[n] = tn_clone(tn_reshape(tn_grad(p.tensor), TN_SHAPE(-1)));
    }
    tn_zero_grads(m);
    return tn_error() == TN_OK ? tn_detach(tn_cat_list(0, n, list)) : NULL;
}

/* Each rounding on a path from loss to weight and back, at most 16 of them, has an error of at most 2^-9 of a value.
 * Their signs differ, so that the sum is below 16 · 2^-9 of the gradients' norm, but not 0. */
TEST(close_to_f32)
{
    tn_transformer_encoder_layer *m = model();
    tn_tensor                    *exact = gradients(m, false, false), *g = gradients(m, true, false);
    const double                  off = tn_item(tn_norm(tn_sub(g, exact))) / tn_item(tn_norm(exact));
    ck_assert_msg(off > 1e-5 && off < 16.0 / 512, "the gradients are off by %g", off);
    ck_assert(tn_same_bits(gradients(m, true, true), g)); /* recomputed, after the scope has ended */
    tn_free(m);
}

/* Every kind of module runs under autocast: its result equals that in f32 to within 16 roundings of bf16, and each of
 * its parameters gets an f32 gradient. */
static tn_tensor *lstm(void *m, tn_tensor *x)
{
    tn_tensor *lengths = tn_from_data(TN_I64, TN_SHAPE(4), (int64_t[]){10, 3, 0, 7});
    return tn_lstm_forward((tn_lstm *)m, tn_linear(x, tn_ones(TN_SHAPE(16, 16)), NULL), .lengths = lengths);
}
static tn_tensor *cell(void *m, tn_tensor *x)
{
    tn_tensor *h = NULL;
    for (int t = 0; t < 4; t++) h = tn_gru_cell_forward((tn_gru_cell *)m, tn_select(x, 1, t), .h = h);
    return h;
}
static tn_tensor *additive(void *m, tn_tensor *x)
{
    return tn_additive_attention_forward((tn_additive_attention *)m, x, x);
}
static tn_tensor *decoder(void *m, tn_tensor *x)
{
    return tn_transformer_decoder_forward((tn_transformer_decoder *)m, x, x, .causal = true);
}
static tn_tensor *bilinear(void *m, tn_tensor *x) { return tn_bilinear_forward((tn_bilinear *)m, x, x); }
static tn_tensor *convolution(void *m, tn_tensor *x)
{
    return tn_call((tn_conv1d *)m, tn_linear(x, tn_ones(TN_SHAPE(16, 16)), NULL));
}
static tn_tensor *usual(void *m, tn_tensor *x) { return tn_module_call(m, x); }

TEST(modules)
{
    tn_tensor *x = tn_normal(TN_SHAPE(4, 10, 16), 0, 0.5), *y[2];
    const struct {
        void *m;
        tn_tensor *(*run)(void *m, tn_tensor *x);
    } t[] = {{tn_lstm_new(.in = 16, .hidden = 8, .layers = 2, .bidirectional = true), lstm},
             {tn_gru_cell_new(.in = 16, .hidden = 8), cell},
             {tn_additive_attention_new(.query = 16, .memory = 16, .hidden = 8), additive},
             {tn_transformer_decoder_new(.dim = 16, .heads = 2, .ff = 32, .layers = 2, .dropout = 0), decoder},
             {tn_bilinear_new(.in1 = 16, .in2 = 16, .out = 4), bilinear},
             {tn_conv1d_new(.in = 10, .out = 6, .size = 3), convolution},
             {tn_batch_norm1d_new(.features = 10), usual},
             {tn_group_norm_new(.groups = 2, .channels = 10), usual},
             {tn_rms_norm_new(.dim = 16), usual},
             {tn_max_pool1d_new(.size = 2), usual},
             {tn_avg_pool1d_new(.size = 2), usual},
             {tn_sinusoidal_positions_new(.dim = 16), usual},
             {tn_mlm_head_new(.embedding = tn_normal(TN_SHAPE(12, 16), 0, 1)), usual}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        for (int on = 0; on < 2; on++) {
            tn_scope s = tn_autocast_begin(on);
            y[on] = tn_to(t[i].run(t[i].m, x), TN_F32);
            tn_scope_return(s, y[on]);
            ck_assert_msg(tn_error() == TN_OK, "module %zu: %s", i, tn_error_message());
        }
        const double off = tn_item(tn_norm(tn_sub(y[1], y[0]))) / tn_item(tn_norm(y[0]));
        ck_assert_msg(off < 16.0 / 512, "module %zu is off by %g", i, off);
        if (!tn_module_count(t[i].m, true)) continue;
        tn_backward(tn_sum(y[1]));
        for (tn_each p = tn_module_each(t[i].m, TN_EACH_PARAMETER); tn_next(&p);) ck_type(tn_grad(p.tensor), f32);
    }
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) tn_module_free(t[i].m);
}

TEST(without_a_tape)
{
    tn_transformer_encoder_layer *m = model();
    tn_eval(m);
    tn_tensor *x = tn_normal(TN_SHAPE(4, 10, 16), 0, 1);
    tn_scope   s = tn_autocast_begin(true);
    tn_tensor *y = tn_call(m, x);
    tn_scope   off = tn_no_grad_begin();
    ck_assert(tn_same_bits(tn_call(m, x), y));
    tn_scope_end(off);
    tn_scope_end(s);
    tn_free(m);
}

/* If any allocation fails: an error, no gradient, and the retry gives the same bits. */
TEST(memory_fails)
{
    tn_faulty_memory_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int64_t at = 0, calls = 0; at <= calls; at++) {
            tn_scope                      s = tn_scope_begin();
            tn_transformer_encoder_layer *m = model();
            tn_trim();
            tn_fail_memory(at, for_ever);
            tn_tensor *g = gradients(m, true, false);
            calls = tn_memory_calls();
            tn_fail_memory(-1, false);
            if (!g) {
                ck_error_code(TN_ENOMEM);
                tn_zero_grads(m);
                g = gradients(m, true, false);
            }
            ck_assert(tn_same_bits(g, gradients(m, true, false)));
            tn_free(m);
            tn_scope_end(s);
        }
    tn_faulty_memory_end();
}

/* ---- what an op chooses ------------------------------------------------------------------------------------------ */

/* A custom op that stores the dtypes of its inputs. */
static tn_dtype got[3];
static bool     spy_infer(tn_ctx *c)
{
    for (int i = 0; i < c->nin && i < 3; i++) got[i] = tn_dtype_of(c->in[i]);
    return tn_infer_like(c, 0, 0);
}
static void spy_forward(tn_ctx *c) { tn_copy_from(c->out[0], c->in[0]); }

TEST(users_ops_take_part)
{
    static const struct {
        int      autocast;
        tn_dtype in[3], want[3];
    } t[] = {{TN_UNCHOSEN, {TN_F32, TN_BF16, TN_F32}, {TN_F32, TN_BF16, TN_F32}},
             {TN_AS_IS, {TN_F32, TN_BF16, TN_F32}, {TN_F32, TN_BF16, TN_F32}},
             {TN_JOIN, {TN_BF16, TN_BF16, TN_F32}, {TN_F32, TN_F32, TN_F32}},
             {TN_JOIN, {TN_BF16, TN_BF16, TN_BF16}, {TN_BF16, TN_BF16, TN_BF16}},
             {TN_JOIN, {TN_BF16, TN_F64, TN_I64}, {TN_BF16, TN_F64, TN_I64}},
             {TN_WIDE, {TN_BF16, TN_F32, TN_I64}, {TN_F32, TN_F32, TN_I64}},
             {TN_NARROW(2), {TN_BF16, TN_F32, TN_F32}, {TN_BF16, TN_BF16, TN_F32}},
             {TN_NARROW(2), {TN_F64, TN_F32, TN_F32}, {TN_F64, TN_F32, TN_F32}},
             {TN_NARROW(TN_ANY), {TN_F32, TN_I64, TN_F32}, {TN_BF16, TN_I64, TN_BF16}}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const tn_op spy = {.size = sizeof(tn_op),
                           .name = "spy",
                           .inputs = 3,
                           .infer = spy_infer,
                           .forward = spy_forward,
                           .autocast = t[i].autocast};
        tn_tensor  *in[3];
        for (int k = 0; k < 3; k++) in[k] = tn_ones_of(t[i].in[k], TN_SHAPE(2));
        for (int on = 0; on < 2; on++) {
            const tn_scope s = tn_autocast_begin(on);
            ck_assert(tn_op_apply(&spy, NULL, 3, in));
            tn_scope_end(s);
            for (int k = 0; k < 3; k++)
                ck_assert_msg(got[k] == (on ? t[i].want : t[i].in)[k], "row %zu input %d", i, k);
        }
    }
}

/* Also more inputs than usual are converted: parts of any dtypes are joined, and each gradient has its part's dtype. */
TEST(many_inputs)
{
    enum { MANY = 21 };
    tn_tensor *in[MANY], *g[MANY];
    for (int i = 0; i < MANY; i++)
        in[i] = tn_requires_grad(tn_to(tn_normal(TN_SHAPE(2, 3), 0, 1), i % 3 ? TN_BF16 : TN_F32));
    tn_scope   s = tn_autocast_begin(true);
    tn_tensor *y = tn_cat_list(1, MANY, in), *z = tn_stack_list(0, MANY, in);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_type(y, f32);
    ck_type(z, f32);
    ck_type(tn_cat(0, in[1], in[2]), bf16);
    tn_scope_return_list(s, 2, (tn_tensor *[]){y, z});
    for (int i = 0; i < MANY; i++) {
        ck_assert(tn_same_bits(tn_clone(tn_narrow(y, 1, 3 * i, 3)), tn_to(in[i], TN_F32)));
        ck_assert(tn_same_bits(tn_clone(tn_select(z, 0, i)), tn_to(in[i], TN_F32)));
    }
    tn_grad_of(tn_sum(y), MANY, in, g);
    for (int i = 0; i < MANY; i++) ck_assert(tn_dtype_of(g[i]) == tn_dtype_of(in[i]));
    ck_assert_int_eq(tn_error(), TN_OK);
}

/* A step with recomputed segments must not hold the copies of all weights. */
TEST(limited_memory)
{
    tn_tensor *x = tn_normal(TN_SHAPE(3, 8), 0, 1), *w = leaf(TN_SHAPE(8, 8));
    for (int limited = 1; limited >= 0; limited--) {
        const int64_t before = tn_memory_now().tensors;
        tn_set_memory_limit(limited ? tn_memory_now().live + (64 << 20) : 0);
        const tn_scope s = tn_autocast_begin(true);
        ck_assert(tn_needs_grad(tn_matmul(x, w)));
        tn_scope_end(s);
        tn_set_memory_limit(0);
        ck_assert_int_eq(tn_memory_now().tensors, before + !limited); /* the copy */
    }
}

/* Nor must inference in one scope: a call that would fail for memory frees the copies that no tensor reads. */
TEST(copies_that_memory_lacks)
{
    enum { LAYERS = 12, WIDTH = 128, COPY = WIDTH * WIDTH * 2 };
    tn_tensor *x = tn_normal(TN_SHAPE(2, WIDTH), 0, 1), *w[LAYERS], *y[2];
    for (int i = 0; i < LAYERS; i++) w[i] = leaf(TN_SHAPE(WIDTH, WIDTH));
    tn_set_packing_limit(0);
    for (int limited = 0; limited < 2; limited++) {
        if (limited) tn_set_memory_limit(tn_memory_now().live + 4 * COPY);
        const tn_scope s = tn_no_grad_begin();
        tn_autocast_begin(true);
        y[limited] = x;
        for (int i = 0; i < LAYERS; i++) {
            const tn_scope layer = tn_scope_begin();
            tn_tensor     *next = tn_tanh(tn_linear(y[limited], w[i], NULL));
            y[limited] = tn_scope_return(layer, next);
        }
        y[limited] = tn_take(tn_clone(y[limited]));
        tn_scope_end(s);
        tn_set_memory_limit(0);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    }
    tn_set_packing_limit(SIZE_MAX);
    ck_assert(tn_same_bits(y[0], y[1]));
    tn_drop(y[0]), tn_drop(y[1]);
}

/* ---- in a parallel loop ------------------------------------------------------------------------------------------ */

enum { PRODUCTS = 4 };
typedef struct {
    tn_tensor *x, *w;
    bool       scope, island; /* the body opens a scope; it opens an island and does not end it */
    tn_dtype   type[PRODUCTS];
    tn_tensor *y[PRODUCTS]; /* owned */
} products;

static void multiply(int64_t from, int64_t to, void *user)
{
    products *p = user;
    tn_scope  s = {0};
    if (p->scope) s = tn_scope_begin();
    for (int64_t i = from; i < to; i++) {
        p->y[i] = tn_keep(tn_matmul(p->x, p->w));
        p->type[i] = tn_dtype_of(p->y[i]);
    }
    if (p->island) tn_autocast_begin(false);
    if (p->scope) tn_scope_end(s);
}

/* Every worker has the modes of the caller, and changes by a body end with its block. */
TEST(parallel_loops)
{
    static const int threads[] = {1, 2, 3, 7};
    tn_tensor       *x = tn_normal(TN_SHAPE(3, 8), 0, 1), *w = leaf(TN_SHAPE(8, 8));
    tn_scope         first = tn_autocast_begin(true);
    tn_matmul(x, w);
    tn_scope_end(first); /* a copy stays with w, because its use was recorded */
    const int64_t before = tn_memory_now().tensors;
    for (int k = 0; k < 16; k++) {
        products p = {.x = x, .w = w, .scope = k / 4 % 2, .island = k / 8};
        tn_set_threads(threads[k % 4]);
        tn_scope s = tn_autocast_begin(true), off = tn_no_grad_begin();
        tn_parallel_for(PRODUCTS, 1, multiply, &p);
        for (int i = 0; i < PRODUCTS; i++) {
            ck_assert_msg(p.type[i] == TN_BF16, "%d threads, own scope %d: product %d is %s", threads[k % 4], p.scope,
                          i, tn_dtype_name(p.type[i]));
            ck_assert(tn_same_bits(p.y[i], p.y[0]) && !tn_needs_grad(p.y[i]));
        }
        ck_type(tn_matmul(x, w), bf16); /* the caller's mode is unchanged */
        tn_scope_end(off);
        ck_type(tn_matmul(x, w), bf16);
        ck_assert(tn_needs_grad(tn_matmul(x, w)));
        tn_scope_end(s);
        for (int i = 0; i < PRODUCTS; i++) tn_drop(p.y[i]);
        ck_assert_int_eq(tn_memory_now().tensors, before); /* no worker keeps a weight's copy */

        /* and the worker's modes are reset */
        p = (products){.x = x, .w = w, .scope = k / 4 % 2};
        tn_parallel_for(PRODUCTS, 1, multiply, &p);
        for (int i = 0; i < PRODUCTS; i++) ck_assert(p.type[i] == TN_F32 && tn_needs_grad(p.y[i]));
        for (int i = 0; i < PRODUCTS; i++) tn_drop(p.y[i]);
    }
    tn_set_threads(0);
    ck_assert_int_eq(tn_error(), TN_OK);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static double train(bool autocast)
{
    tn_seed(1);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 1, .out = 32));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_linear_new(.in = 32, .out = 1));
    tn_optimizer *o = tn_adamw_new(net, .lr = 1e-2);
    double        last = 0;
    for (int step = 0; step < 400; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = tn_uniform(TN_SHAPE(64, 1), -3, 3);
        tn_scope   narrow = tn_autocast_begin(autocast);
        tn_tensor *loss = tn_scope_return(narrow, tn_mse_loss(tn_call(net, x), tn_sin(x)));
        tn_backward(loss);
        tn_step(o);
        if (step >= 380) last += tn_item(loss) / 20;
        tn_scope_end(s);
    }
    for (tn_each p = tn_parameters(net); tn_next(&p);) ck_type(p.tensor, f32);
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_optimizer_free(o);
    tn_free(net);
    return last;
}

/* The final loss: small in f32; in bf16 at least the rounding of the result, up to 2^-9 of 1, and at most three times
 * the f32 loss in addition. */
TEST(training)
{
    const double exact = train(false), loss = train(true);
    ck_assert_msg(exact < 2e-3 && loss < 3 * exact + 1e-4, "%g in bf16, %g in f32", loss, exact);
}
