/* test_weight_norm.c — layers with .weight_norm: names in files, PyTorch's other names, copies, and calls that pack or
 * adapt weights. Values and gradients: test_golden_modules.c, test_modules_basic.c. */
#include "nn/nn.h"
#include "tests/common/check_main.h"

typedef struct {
    tn_module  base;
    tn_linear *up;
    tn_conv1d *conv;
} normed;
TN_MODULE(normed);

static normed *normed_new(void)
{
    normed *m = tn_module_new(normed);
    if (!m) return NULL;
    m->up = tn_child(m, "up", tn_linear_new(.in = 3, .out = 2, .weight_norm = true));
    m->conv = tn_child(m, "conv", tn_conv_transpose1d_new(.in = 2, .out = 4, .size = 3, .weight_norm = true));
    return tn_built(m);
}
static tn_tensor *result_of(normed *m)
{
    tn_tensor *x = tn_reshape(tn_arange_of(TN_F32, 0, 12, 1), TN_SHAPE(2, 2, 3));
    return tn_call(m->conv, tn_transpose(tn_call(m->up, x), 1, 2));
}

/* Writes m with the names that torch.nn.utils.parametrizations.weight_norm gives to its tensors. */
static void write_as_parametrizations(normed *m, const char *path)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "up.parametrizations.weight.original0", m->up->weight_g);
    tn_safetensors_put(w, "up.parametrizations.weight.original1", m->up->weight_v);
    tn_safetensors_put(w, "up.bias", m->up->bias);
    tn_safetensors_put(w, "conv.parametrizations.weight.original0", m->conv->weight_g);
    tn_safetensors_put(w, "conv.parametrizations.weight.original1", m->conv->weight_v);
    tn_safetensors_put(w, "conv.bias", m->conv->bias);
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
}

TEST(files_have_pytorchs_names)
{
    const char *path = tn_test_file("normed.safetensors");
    normed     *a = normed_new(), *b = normed_new();
    tn_tensor  *want = result_of(a);
    ck_assert(!tn_allclose(result_of(b), want, 1e-3, 1e-3));
    ck_assert_int_eq(tn_save(a, path), TN_OK);
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert_int_ge(tn_safetensors_find(f, "up.weight_g"), 0);
    ck_assert_int_ge(tn_safetensors_find(f, "conv.weight_v"), 0);
    ck_assert_int_eq(tn_safetensors_count(f), 6);
    tn_safetensors_close(f);
    ck_assert_int_eq(tn_load(b, path), TN_OK);
    ck_assert(tn_allclose(result_of(b), want, 0, 0));
    tn_free(b), b = normed_new();
    write_as_parametrizations(a, path);
    ck_assert_int_eq(tn_load(b, path), TN_OK);
    ck_assert(tn_allclose(result_of(b), want, 0, 0));
    tn_free(a), tn_free(b);

    tn_linear *plain = tn_linear_new(.in = 3, .out = 2), *other = tn_linear_new(.in = 3, .out = 2, .weight_norm = true);
    ck_assert_int_eq(tn_save(plain, path), TN_OK);
    ck_fails_has(tn_load(other, path), TN_EFORMAT, "2 names missing (weight_g, …), 1 unexpected (weight)");
    tn_free(plain), tn_free(other);
}

TEST(copies_are_independent)
{
    normed    *a = normed_new(), *b = tn_copy(a);
    tn_tensor *want = result_of(a);
    ck_assert(tn_allclose(result_of(b), want, 0, 0));
    tn_init_constant(b->up->weight_g, 3);
    ck_assert(!tn_allclose(result_of(b), want, 1e-3, 1e-3));
    ck_assert(tn_allclose(result_of(a), want, 0, 0));
    tn_free(a), tn_free(b);
}

/* Adapters and packed weights need a weight: they skip normalised layers, which compute as before. */
TEST(adapters_and_packing_skip_normed_layers)
{
    tn_sequential *net = tn_sequential_new();
    tn_linear     *up = tn_append(net, tn_linear_new(.in = 32, .out = 32, .weight_norm = true));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_linear_new(.in = 32, .out = 32));
    tn_tensor *x = tn_normal(TN_SHAPE(4, 32), 0, 1), *w = tn_weight_norm(up->weight_v, up->weight_g, 0);
    tn_tensor *want = tn_linear(x, w, up->bias);
    ck_assert(tn_allclose(tn_call(up, x), want, 0, 0));
    ck_assert_int_eq(tn_lora(net, .rank = 2), TN_OK);
    tn_lora_layer l = tn_lora_layers(net);
    ck_assert(tn_lora_next(&l));
    ck_assert_str_eq(l.path, "2");
    ck_assert(!tn_lora_next(&l));
    ck_assert_int_eq(tn_lora_merge(net), TN_OK);
    ck_assert_int_eq(tn_quantize(net), TN_OK);
    ck_assert(!tn_is_packed(up->weight_v) && tn_is_packed(tn_find_tensor(net, "2.weight")));
    ck_assert(tn_allclose(tn_call(up, x), want, 0, 0));
    ck_fails_has(tn_lora(net, .rank = 2, .names = "0"), TN_EINVAL,
                 "tn_lora: .names has '0', which is in the name of no linear layer");
    tn_free(net);
}
