/* test_muon.c — Muon's directions: their singular values, in f32 and in bf16; matrices of one shape together and alone;
 * embeddings. Its steps are compared with PyTorch's in test_optim.c. */
#include "tests/common/bits.h"
#include "tests/common/check_main.h"
#include "tenon.h"

/* Matrices of two shapes, wide and tall, in turn; with a bias each. */
enum { LAYERS = 6, WIDE = 40, NARROW = 24 };
static tn_linear *layer_new(bool tall)
{
    return tall ? tn_linear_new(.in = NARROW, .out = WIDE) : tn_linear_new(.in = WIDE, .out = NARROW);
}
static tn_sequential *net_new(void)
{
    tn_sequential *net = tn_sequential_new();
    tn_seed(7);
    for (int i = 0; i < LAYERS; i++) tn_append(net, layer_new(i % 2));
    return net;
}

/* Gradients that depend on the layer, and not on the other layers. */
static void gradients(tn_linear *m, int layer)
{
    tn_seed(100 + (uint64_t)layer);
    tn_tensor *w = tn_normal(tn_shape_of(m->weight), 0, 1), *b = tn_normal(tn_shape_of(m->bias), 0, 1);
    tn_backward(tn_add(tn_sum(tn_mul(m->weight, w)), tn_sum(tn_mul(m->bias, b))));
}

/* From weights of 0, without decay and with a rate of 1: the negative direction. */
static void direct(tn_linear *m, int layer, bool bf16)
{
    tn_optimizer  *o = tn_muon_new(m, .lr = 1, .weight_decay = 0, .bf16 = bf16);
    const tn_scope s = tn_no_grad_begin();
    tn_init_zeros(m->weight);
    tn_scope_end(s);
    gradients(m, layer);
    tn_step(o);
    tn_optimizer_free(o);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
}

static double length(tn_tensor *t) { return tn_item(tn_norm(t)); }

/* The iterations bring each singular value between 0.68 and 1.21, if it is not tiny: so |X v| / |v|, for any v.
 * The step of a tall matrix is larger by √(rows / cols). bf16 has 8 bits. */
TEST_EACH(singular_values, 4)
{
    const bool     bf16 = _i % 2, tall = _i / 2;
    tn_linear     *m = layer_new(tall);
    tn_linear     *exact = tn_copy(m);
    const double   scale = tall ? sqrt((double)WIDE / NARROW) : 1;
    const tn_scope s = tn_scope_begin();
    direct(m, 3, bf16), direct(exact, 3, false);
    const tn_scope quiet = tn_no_grad_begin();
    for (int i = 0; i < 20; i++) {
        tn_tensor   *v = tn_normal(TN_SHAPE(NARROW, 1), 0, 1);
        const double ratio = length(tn_matmul(tall ? m->weight : tn_transpose(m->weight, 0, 1), v)) / length(v) / scale;
        ck_assert_msg(ratio > 0.66 && ratio < 1.23, "%g", ratio);
    }
    const double apart = length(tn_sub(m->weight, exact->weight)) / length(exact->weight);
    ck_assert_msg(bf16 ? apart > 1e-5 && apart < 0.03 : apart == 0, "%g", apart);
    tn_scope_end(quiet), tn_scope_end(s);
    tn_free(m), tn_free(exact);
}

/* A step of all layers gives the bits of a step of each layer alone. */
TEST_EACH(together_as_alone, 2)
{
    tn_sequential *all = net_new(), *each = net_new();
    tn_optimizer  *o = tn_muon_new(all, .lr = 0.1, .match_rms = true, .bf16 = _i);
    for (int i = 0; i < LAYERS; i++) gradients(tn_at(all, i), i);
    tn_step(o);
    for (int i = 0; i < LAYERS; i++) {
        tn_linear    *m = tn_at(each, i);
        tn_optimizer *own = tn_muon_new(m, .lr = 0.1, .match_rms = true, .bf16 = _i);
        gradients(m, i);
        tn_step(own);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        ck_assert_msg(tn_same_bits(m->weight, ((tn_linear *)tn_at(all, i))->weight), "layer %d", i);
        ck_assert(tn_same_bits(m->bias, ((tn_linear *)tn_at(all, i))->bias));
        tn_optimizer_free(own);
    }
    tn_optimizer_free(o);
    tn_free(all), tn_free(each);
}

/* Rows of an embedding are looked up: AdamW updates them, and a tied output layer, too. */
TEST(embeddings)
{
    tn_sequential *net = tn_sequential_new();
    tn_embedding  *table = tn_append(net, tn_embedding_new(.count = 9, .dim = 4));
    tn_linear     *m = tn_append(net, tn_linear_new(.in = 4, .out = 3));
    tn_sequential *other = tn_copy(net);
    tn_optimizer  *o = tn_muon_new(net, .lr = 0.1), *adamw = tn_adamw_new(other, .lr = 0.1, .weight_decay = 0.1);
    for (int i = 0; i < 3; i++) {
        tn_tensor *ids = tn_arange_of(TN_I64, 0, 5, 1);
        tn_backward(tn_sum(tn_square(tn_call(table, ids))));
        tn_backward(tn_sum(tn_square(m->weight)));
        tn_backward(tn_sum(tn_square(tn_call((tn_embedding *)tn_at(other, 0), ids))));
        tn_step(o), tn_step(adamw);
    }
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert(tn_same_bits(table->weight, ((tn_embedding *)tn_at(other, 0))->weight));
    ck_assert(tn_optimizer_state(o, table->weight, "exp_avg_sq") &&
              !tn_optimizer_state(o, table->weight, "momentum_buffer"));
    ck_assert(!tn_optimizer_state(o, m->weight, "exp_avg_sq") && tn_optimizer_state(o, m->weight, "momentum_buffer"));
    tn_optimizer_free(o), tn_optimizer_free(adamw);
    tn_free(net), tn_free(other);
}
