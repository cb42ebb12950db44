/* test_transformer.c — the Transformer's layers, stacks and the complete model, and the head of a masked language
 * model: compared with PyTorch, initial values, gradients, empty and smallest sizes, the same bits in different calls,
 * failing allocations, and the errors of wrong calls. Decoding with a cache is in test_kv_cache.c. */
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include "tests/common/golden_case.h"

enum { D = 8, H = 2, FF = 12, B = 2, T = 4, S = 5 };

static tn_tensor *padding(int64_t n) /* the second of two sequences is shorter by two */
{
    tn_tensor *t = tn_zeros_of(TN_BOOL, TN_SHAPE(2, n));
    tn_set_at(t, TN_SHAPE(1, -1), 1), tn_set_at(t, TN_SHAPE(1, -2), 1);
    return t;
}
static tn_tensor *holes(int64_t t, int64_t s)
{
    tn_tensor *m = tn_zeros_of(TN_BOOL, TN_SHAPE(t, s));
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 1; j < s; j++) tn_set_at(m, TN_SHAPE(i, j), (3 * i + 5 * j) % 4 == 0);
    return m;
}

/* ---- compared with PyTorch --------------------------------------------------------------------------------------- */

static tn_safetensors *golden;
static void open_golden(void) { golden = tn_safetensors_open(tn_test_data("golden/transformer.safetensors")); }
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);
static void *filled(tn_golden *k, void *module) { return k->matrices = 0.5, tn_golden_fill(k, module); }

#define SIZES .dim = D, .heads = H, .ff = FF, .dropout = 0
#define X tn_golden_input(k, "x", TN_SHAPE(B, T, D))

static tn_tensor *encoder_layer(tn_golden *k)
{
    tn_transformer_encoder_layer *m = filled(k, tn_transformer_encoder_layer_new(SIZES, .dtype = k->dtype));
    return tn_transformer_encoder_layer_forward(m, X, .attn_mask = holes(T, T), .key_padding_mask = padding(T));
}
static tn_tensor *encoder_layer_first(tn_golden *k)
{
    tn_transformer_encoder_layer *m = tn_transformer_encoder_layer_new(
        SIZES, .activation = tn_gelu, .order = TN_NORM_FIRST, .norm.eps = 1e-3, .dtype = k->dtype);
    filled(k, m);
    return tn_transformer_encoder_layer_forward(m, X, .causal = true);
}
static tn_tensor *decoder_layer(tn_golden *k)
{
    tn_transformer_decoder_layer *m = filled(k, tn_transformer_decoder_layer_new(SIZES, .dtype = k->dtype));
    tn_tensor                    *x = X, *memory = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_transformer_decoder_layer_forward(m, x, memory, .causal = true, .memory_mask = holes(T, S),
                                                .key_padding_mask = padding(T), .memory_key_padding_mask = padding(S));
}
static tn_tensor *decoder_layer_first(tn_golden *k)
{
    tn_transformer_decoder_layer *m = filled(
        k, tn_transformer_decoder_layer_new(SIZES, .activation = tn_gelu, .order = TN_NORM_FIRST, .dtype = k->dtype));
    tn_tensor *x = X, *memory = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_transformer_decoder_layer_forward(m, x, memory, .attn_mask = tn_causal_mask(T));
}
static tn_tensor *encoder(tn_golden *k)
{
    tn_transformer_encoder *m =
        tn_transformer_encoder_new(SIZES, .layers = 2, .activation = tn_gelu, .dtype = k->dtype);
    filled(k, m);
    return tn_transformer_encoder_forward(m, X, .key_padding_mask = padding(T));
}
static tn_tensor *encoder_first(tn_golden *k)
{
    tn_transformer_encoder *m = tn_transformer_encoder_new(
        SIZES, .layers = 3, .activation = tn_gelu, .order = TN_NORM_FIRST, .final_norm = true, .dtype = k->dtype);
    filled(k, m);
    return tn_transformer_encoder_forward(m, X, .causal = true);
}
static tn_tensor *decoder(tn_golden *k)
{
    tn_transformer_decoder *m = tn_transformer_decoder_new(SIZES, .layers = 2, .final_norm = true, .dtype = k->dtype);
    filled(k, m);
    tn_tensor *x = X, *memory = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_transformer_decoder_forward(m, x, memory, .causal = true, .memory_key_padding_mask = padding(S));
}
static tn_tensor *transformer(tn_golden *k)
{
    tn_transformer *m =
        filled(k, tn_transformer_new(SIZES, .encoder_layers = 2, .decoder_layers = 2, .dtype = k->dtype));
    tn_tensor *src = tn_golden_input(k, "src", TN_SHAPE(B, S, D)), *tgt = tn_golden_input(k, "tgt", TN_SHAPE(B, T, D));
    return tn_transformer_forward(m, src, tgt, .causal = true, .src_key_padding_mask = padding(S),
                                  .key_padding_mask = padding(T), .memory_key_padding_mask = padding(S));
}
static tn_tensor *transformer_first(tn_golden *k)
{
    tn_transformer *m = tn_transformer_new(SIZES, .encoder_layers = 1, .decoder_layers = 2, .activation = tn_gelu,
                                           .order = TN_NORM_FIRST, .dtype = k->dtype);
    filled(k, m);
    tn_tensor *src = tn_golden_input(k, "src", TN_SHAPE(S, B, D)), *tgt = tn_golden_input(k, "tgt", TN_SHAPE(T, B, D));
    src = tn_transpose(src, 0, 1), tgt = tn_transpose(tgt, 0, 1); /* the reference has the time first */
    tn_tensor *y = tn_transformer_forward(m, src, tgt, .attn_mask = tn_causal_mask(T), .src_mask = holes(S, S),
                                          .memory_mask = holes(T, S));
    return tn_transpose(y, 0, 1);
}
static tn_tensor *mlm_head(tn_golden *k)
{
    tn_tensor *table = tn_requires_grad(tn_zeros_of(k->dtype, TN_SHAPE(11, D)));
    return tn_call((tn_mlm_head *)filled(k, tn_mlm_head_new(.embedding = table, .eps = 1e-12)), X);
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const tn_golden_case cases[] = {CASE(encoder_layer),     CASE(encoder_layer_first),
                                       CASE(decoder_layer),     CASE(decoder_layer_first),
                                       CASE(encoder),           CASE(encoder_first),
                                       CASE(decoder),           CASE(transformer),
                                       CASE(transformer_first), CASE(mlm_head)};
enum { CASES = sizeof cases / sizeof *cases };

TEST_EACH(as_pytorch, CASES) { tn_golden_check(golden, &cases[_i]); }

/* Every case of the golden file runs here or in test_attention_modules.c. */
TEST(nothing_is_left_out)
{
    fine();
    for (int64_t i = 0; i < tn_safetensors_count(golden); i++) {
        const char *name = tn_safetensors_at(golden, i).name;
        if (!strncmp(name, "mha_", 4) || strstr(name, "_attention")) continue;
        int found = 0;
        for (int k = 0; k < CASES; k++)
            found += !strncmp(name, cases[k].name, strlen(cases[k].name)) && name[strlen(cases[k].name)] == '/';
        ck_assert_msg(found == 1, "%s is not compared", name);
    }
}
AROUND_TESTS(NULL, NULL);

/* ---- initial values ---------------------------------------------------------------------------------------------- */

static void spread(const char *name, const tn_tensor *t, double bound) /* uniform in ±bound */
{
    double       sum = 0, square = 0, largest = 0;
    const double n = (double)tn_numel(t);
    for (int64_t i = 0; i < tn_numel(t); i++) {
        const double v = tn_get(t, i);
        sum += v, square += v * v, largest = fmax(largest, fabs(v));
    }
    ck_assert_msg(largest <= bound * (1 + 1e-6) && largest > bound * (1 - 12 / n), "%s: the largest is %g, not %g",
                  name, largest, bound);
    ck_assert_msg(fabs(sum / n) <= 4.5 * bound / sqrt(3 * n), "%s: the mean is %g", name, sum / n);
    ck_assert_msg(fabs(square / n - bound * bound / 3) <= 4.5 * bound * bound * sqrt(4.0 / 45 / n),
                  "%s: the variance is %g", name, square / n);
}
static void all(const char *name, const tn_tensor *t, double v)
{
    for (int64_t i = 0; i < tn_numel(t); i++)
        ck_assert_msg(tn_get(t, i) == v, "%s [%lld] is %g", name, (long long)i, tn_get(t, i));
}
static bool ends(const char *name, const char *with) { return strstr(name, with) && !strcmp(strstr(name, with), with); }

/* All matrices of a Transformer are Xavier-uniform; those of a stack alone have their modules' initial values; no two
 * layers are equal. */
TEST(initial_weights)
{
    tn_transformer *m = tn_transformer_new(.dim = 32, .heads = 4, .ff = 48, .encoder_layers = 2, .decoder_layers = 2);
    tn_transformer_encoder *e =
        tn_transformer_encoder_new(.dim = 32, .heads = 4, .ff = 48, .layers = 2, .final_norm = true);
    fine();
    int seen[5] = {0};
    for (int alone = 0; alone < 2; alone++)
        for (tn_each p = alone ? tn_parameters(e) : tn_parameters(m); tn_next(&p);) {
            const tn_shape s = tn_shape_of(p.tensor);
            const bool     packed = ends(p.name, "in_proj_weight");
            if (s.n == 2 && (!alone || packed))
                spread(p.name, p.tensor, sqrt(6.0 / (double)(s.d[0] + s.d[1]))), seen[0]++;
            else if (s.n == 2) spread(p.name, p.tensor, 1 / sqrt((double)s.d[1])), seen[1]++;
            else if (strstr(p.name, "norm")) all(p.name, p.tensor, ends(p.name, "weight")), seen[2]++;
            else if (strstr(p.name, "_proj")) all(p.name, p.tensor, 0), seen[3]++;
            else spread(p.name, p.tensor, 1 / sqrt(strstr(p.name, "linear1") ? 32 : 48)), seen[4]++;
        }
    const int want[5] = {2 * 4 + 2 * 6 + 2, 2 * 3, (2 * 2 + 2 * 3 + 2 + 2 * 2 + 1) * 2, 2 * 2 + 2 * 4 + 2 * 2,
                         2 * 2 + 2 * 2 + 2 * 2};
    for (int i = 0; i < 5; i++) ck_assert_int_eq(seen[i], want[i]);
    static const char *const parts[] = {"self_attn.in_proj_weight", "linear1.weight", "linear2.weight",
                                        "self_attn.out_proj.weight"};
    for (int i = 0; i < 4; i++)
        ck_assert(!tn_same_bits(tn_find_tensor(e, tn_name("layers.0.%s", parts[i])),
                                tn_find_tensor(e, tn_name("layers.1.%s", parts[i]))));
    tn_free(m), tn_free(e);
}

TEST(defaults)
{
    tn_transformer *m = tn_transformer_new(.encoder_layers = 1, .decoder_layers = 1);
    ck_assert_int_eq(tn_count(m), 7358464); /* PyTorch's count */
    tn_free(m);
    m = tn_transformer_new(.dim = 8, .ff = 4);
    ck_assert_int_eq(tn_length(m->encoder->layers), 6);
    ck_assert_int_eq(tn_length(m->decoder->layers), 6);
    const tn_transformer_encoder_layer *layer = tn_at(m->encoder->layers, 0);
    ck_assert_int_eq(layer->self_attn->heads, 8);
    ck_assert_double_eq(layer->self_attn->dropout, 0.1);
    ck_assert_double_eq(layer->dropout->p, 0.1);
    ck_assert_double_eq(layer->norm1->eps, 1e-5);
    fine();
    tn_free(m);
    tn_transformer_decoder_layer *bare = tn_transformer_decoder_layer_new(SIZES, .no_bias = true);
    for (tn_each p = tn_parameters(bare); tn_next(&p);) ck_assert(ends(p.name, "weight"));
    tn_free(bare);
}

static const char *printed(void *m)
{
    static char text[4000];
    FILE       *f = tmpfile();
    tn_module_print(f, m);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

TEST(printed_as_pytorch)
{
    tn_transformer_encoder *e =
        tn_transformer_encoder_new(.dim = 8, .heads = 2, .ff = 12, .layers = 1, .final_norm = true);
    ck_assert_str_eq(printed(e), "TransformerEncoder(\n"
                                 "  (layers): ModuleList(\n"
                                 "    (0): TransformerEncoderLayer(\n"
                                 "      (self_attn): MultiheadAttention(\n"
                                 "        (out_proj): Linear(in_features=8, out_features=8, bias=True)\n"
                                 "      )\n"
                                 "      (linear1): Linear(in_features=8, out_features=12, bias=True)\n"
                                 "      (dropout): Dropout(p=0.1, inplace=False)\n"
                                 "      (linear2): Linear(in_features=12, out_features=8, bias=True)\n"
                                 "      (norm1): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                                 "      (norm2): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                                 "      (dropout1): Dropout(p=0.1, inplace=False)\n"
                                 "      (dropout2): Dropout(p=0.1, inplace=False)\n"
                                 "    )\n"
                                 "  )\n"
                                 "  (norm): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                                 ")\n");
    tn_transformer_decoder_layer *d = tn_transformer_decoder_layer_new(SIZES);
    ck_assert_str_eq(printed(d), "TransformerDecoderLayer(\n"
                                 "  (self_attn): MultiheadAttention(\n"
                                 "    (out_proj): Linear(in_features=8, out_features=8, bias=True)\n"
                                 "  )\n"
                                 "  (multihead_attn): MultiheadAttention(\n"
                                 "    (out_proj): Linear(in_features=8, out_features=8, bias=True)\n"
                                 "  )\n"
                                 "  (linear1): Linear(in_features=8, out_features=12, bias=True)\n"
                                 "  (dropout): Dropout(p=0.0, inplace=False)\n"
                                 "  (linear2): Linear(in_features=12, out_features=8, bias=True)\n"
                                 "  (norm1): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                                 "  (norm2): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                                 "  (norm3): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                                 "  (dropout1): Dropout(p=0.0, inplace=False)\n"
                                 "  (dropout2): Dropout(p=0.0, inplace=False)\n"
                                 "  (dropout3): Dropout(p=0.0, inplace=False)\n"
                                 ")\n");
    tn_free(e), tn_free(d);
}

/* ---- gradients, f64, by finite differences; with dropout, always with the same random draws ---------------------- */

static tn_tensor *encoder_of(tn_tensor *const *in, int n, void *m)
{
    tn_tensor *pad = tn_size(in[0], 0) == 2 && tn_size(in[0], 1) == 3 ? padding(3) : NULL;
    (void)n;
    return tn_transformer_encoder_forward((tn_transformer_encoder *)m, in[0], .key_padding_mask = pad, .causal = true);
}
static tn_tensor *decoder_of(tn_tensor *const *in, int n, void *m)
{
    tn_tensor *pad = tn_size(in[1], 0) == 2 && tn_size(in[1], 1) == 3 ? padding(3) : NULL;
    (void)n;
    return tn_transformer_decoder_forward((tn_transformer_decoder *)m, in[0], in[1], .memory_key_padding_mask = pad,
                                          .causal = true);
}
static tn_tensor *head_of(tn_tensor *const *in, int n, void *user)
{
    tn_mlm_head *m = user;
    tn_tensor   *weight = m->weight, *bias = m->bias;
    (void)n;
    m->weight = in[1], m->bias = in[2];
    tn_tensor *y = tn_call(m, in[0]);
    m->weight = weight, m->bias = bias;
    return y;
}

TEST_EACH(gradients, 10)
{
    static const int64_t    sizes[][3] = {{2, 2, 3}, {1, 1, 1}, {0, 2, 3}, {2, 0, 3}, {2, 3, 0}}; /* B, T, S */
    const bool              first = _i & 1;
    const int64_t          *n = sizes[_i / 2];
    tn_tensor              *in[3] = {tn_normal_of(TN_F64, TN_SHAPE(n[0], n[1], 4), 0, 1),
                                     tn_normal_of(TN_F64, TN_SHAPE(n[0], n[2], 4), 0, 1)};
    tn_transformer_encoder *e =
        tn_transformer_encoder_new(.dim = 4, .heads = 2, .ff = 5, .layers = 1 + first, .activation = tn_gelu,
                                   .dropout = 0.2, .order = first ? TN_NORM_FIRST : TN_NORM_LAST, .dtype = TN_F64);
    tn_transformer_decoder *d =
        tn_transformer_decoder_new(.dim = 4, .heads = 2, .ff = 5, .layers = 1, .activation = tn_gelu, .dropout = 0.2,
                                   .order = first ? TN_NORM_FIRST : TN_NORM_LAST, .final_norm = first, .dtype = TN_F64);
    tn_gradcheck(decoder_of, .count = 2, .inputs = in, .user = d, .name = "decoder");
    fine();
    tn_gradcheck(encoder_of, .count = 1, .inputs = &in[1], .user = e, .name = "encoder", .second = _i == 0);
    fine();
    tn_tensor   *table = tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(5, 4), 0, 1));
    tn_mlm_head *m = tn_mlm_head_new(.embedding = table);
    in[1] = table, in[2] = tn_normal_of(TN_F64, TN_SHAPE(5), 0, 1);
    tn_gradcheck(head_of, .count = 3, .inputs = in, .user = m, .name = "head");
    tn_free(e), tn_free(d), tn_free(m);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

TEST(any_threads_any_batch)
{
    const int       threads[] = {1, 2, 3, 7};
    tn_transformer *m = tn_transformer_new(.dim = 32, .heads = 4, .ff = 64, .encoder_layers = 2, .decoder_layers = 2);
    tn_tensor      *src = tn_normal(TN_SHAPE(3, 20, 32), 0, 1), *tgt = tn_normal(TN_SHAPE(3, 17, 32), 0, 1), *y[3],
              *eval = NULL;
    tn_tensor *pad = tn_zeros_of(TN_BOOL, TN_SHAPE(3, 20)), *w[3] = {NULL};
    for (int64_t i = 12; i < 20; i++) tn_set_at(pad, TN_SHAPE(1, i), 1);
    for (int i = 0; i < 3; i++) {
        tn_set_threads(threads[i]);
        tn_seed(5);
        y[i] = tn_transformer_forward(m, src, tgt, .causal = true, .src_key_padding_mask = pad,
                                      .memory_key_padding_mask = pad);
        tn_backward(tn_sum(tn_square(y[i])));
        fine();
        w[i] = tn_clone(tn_grad(tn_find_tensor(m, "encoder.layers.0.linear1.weight")));
        ck_assert(tn_same_bits(y[i], y[0]) && tn_same_bits(w[i], w[0]));
        tn_zero_grads(m);
    }
    tn_eval(m);
    eval = tn_transformer_forward(m, src, tgt, .causal = true, .src_key_padding_mask = pad,
                                  .memory_key_padding_mask = pad);
    ck_assert(!tn_same_bits(eval, y[0])); /* dropout is active in training only */
    for (int64_t b = 0; b < 3; b++) {     /* alone, and without its padding */
        tn_tensor *one = tn_narrow(tn_narrow(src, 0, b, 1), 1, 0, b == 1 ? 12 : 20);
        ck_assert(tn_same_bits(tn_transformer_forward(m, one, tn_narrow(tgt, 0, b, 1), .causal = true),
                               tn_narrow(eval, 0, b, 1)));
    }
    tn_free(m);
}

/* Each dropout of a layer is applied. */
TEST(dropouts)
{
    tn_transformer_encoder_layer *e = tn_transformer_encoder_layer_new(SIZES, .activation = tn_gelu);
    tn_transformer_decoder_layer *d = tn_transformer_decoder_layer_new(SIZES, .activation = tn_gelu);
    tn_dropout *const all[] = {e->dropout, e->dropout1, e->dropout2, d->dropout, d->dropout1, d->dropout2, d->dropout3};
    tn_tensor        *x = tn_normal(TN_SHAPE(B, T, D), 0, 1),
              *y[2] = {tn_call(e, x), tn_transformer_decoder_layer_forward(d, x, x)};
    for (int i = 0; i < 7; i++) {
        const tn_generator before = *tn_current_generator();
        all[i]->p = 0.5;
        ck_assert(!tn_same_bits(y[i > 2], i > 2 ? tn_transformer_decoder_layer_forward(d, x, x) : tn_call(e, x)));
        ck_assert(tn_current_generator()->position > before.position);
        all[i]->p = 0;
    }
    tn_free(e), tn_free(d);
}

/* The weights of every layer, and of a single layer. */
TEST(weights)
{
    tn_transformer_decoder *d = tn_transformer_decoder_new(SIZES, .layers = 3);
    tn_transformer_encoder *e = tn_transformer_encoder_new(SIZES, .layers = 3, .final_norm = true);
    tn_tensor *x = tn_normal(TN_SHAPE(B, T, D), 0, 1), *memory = tn_normal(TN_SHAPE(B, S, D), 0, 1), *own[3], *cross[3],
              *one;
    tn_tensor *y =
        tn_transformer_decoder_forward(d, x, memory, .causal = true, .weights = own, .memory_weights = cross);
    ck_assert(tn_same_bits(y, tn_transformer_decoder_forward(d, x, memory, .causal = true)));
    ck_assert(tn_same_bits(y, tn_transformer_decoder_forward(d, x, memory, .causal = true, .memory_weights = cross)));
    for (int i = 0; i < 3; i++) {
        ck_assert(tn_shape_equal(tn_shape_of(own[i]), TN_SHAPE(B, H, T, T)));
        ck_assert(tn_shape_equal(tn_shape_of(cross[i]), TN_SHAPE(B, H, T, S)));
        ck_assert(tn_allclose(tn_sum(cross[i], .dims = TN_DIMS(3)), tn_ones(TN_SHAPE(B, H, T)), 0, 1e-6));
        ck_assert_double_eq(tn_get_at(own[i], TN_SHAPE(0, 0, 0, 1)), 0);
    }
    tn_transformer_decoder_layer *layer = tn_at(d->layers, 0);
    tn_transformer_decoder_layer_forward(layer, x, memory, .causal = true, .memory_weights = &one);
    ck_assert(tn_same_bits(one, cross[0]));
    y = tn_transformer_encoder_forward(e, x, .weights = own);
    ck_assert(tn_same_bits(y, tn_call(e, x)));
    tn_transformer_encoder_layer_forward((tn_transformer_encoder_layer *)tn_at(e->layers, 0), x, .weights = &one);
    ck_assert(tn_same_bits(one, own[0]) && !tn_same_bits(own[0], own[1]));
    tn_backward(tn_sum(tn_square(own[1]))); /* the weights are on the tape */
    ck_assert(tn_grad(tn_find_tensor(e, "layers.1.self_attn.in_proj_weight")) != NULL);
    fine();
    tn_transformer_encoder_forward(e, memory, .attn_mask = holes(T, T), .weights = own);
    for (int i = 0; i < 3; i++) ck_assert(!own[i]);
    tn_clear_error();
    tn_free(d), tn_free(e);
}

/* Without recording, a stack stores the temporaries of one layer at a time. */
TEST(stacks_are_lean)
{
    size_t need[2];
    for (int i = 0; i < 2; i++) {
        tn_transformer_encoder *m = tn_transformer_encoder_new(.dim = 16, .heads = 2, .ff = 16, .layers = i ? 12 : 3);
        const tn_scope          s = tn_no_grad_begin();
        tn_tensor              *x = tn_normal(TN_SHAPE(8, 64, 16), 0, 1);
        tn_eval(m);
        tn_reset_peak();
        const size_t before = tn_memory_now().live;
        tn_call(m, x);
        need[i] = tn_memory_now().peak - before;
        tn_scope_end(s);
        tn_free(m);
    }
    fine();
    ck_assert_uint_eq(need[0], need[1]);
}

static tn_tensor *own_gelu(tn_tensor *x) { return tn_gelu(x); }
static tn_tensor *count(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    (void)m, (void)x, (void)y;
    ++*(int *)user;
    return NULL;
}

/* Layers that share a block run it several times. */
TEST(shared_blocks)
{
    tn_blocks *m = tn_blocks_new(.layers = 3, .groups = 2, .dim = 8, .heads = 2, .ff = 12);
    tn_tensor *x = tn_golden_values("x", TN_F32, TN_SHAPE(2, 5, 8)), *w[3], *y = x;
    ck_assert(m && m->depth == 3 && tn_length(m->layers) == 2);
    tn_eval(m);
    for (int i = 0; i < 3; i++) y = tn_call((tn_block *)tn_at(m->layers, i == 2), y); /* ⌊i / 1.5⌋ */
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .weights = w), y) && w[0] && w[2]);
    tn_kv_cache   *cache = tn_blocks_cache(m, 2, 5, 0);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *all = tn_blocks_forward(m, x, .causal = true);
    tn_blocks_forward(m, tn_narrow(x, 1, 0, 4), .causal = true, .cache = cache);
    tn_tensor *last = tn_blocks_forward(m, tn_narrow(x, 1, 4, 1), .causal = true, .cache = cache);
    ck_assert(tn_same_bits(last, tn_narrow(all, 1, 4, 1)));
    tn_scope_end(s);
    tn_kv_cache_free(cache);
    tn_free(m);
    ck_refused(tn_blocks_new(.layers = 3, .groups = 4, .dim = 8, .heads = 2), TN_EINVAL,
               "tn_blocks_new: .groups is 4, but must be from 1 to .layers, 3, or 0 for one block per layer");
}

/* Activations that are fused with the product before them, or not: because they are custom, or because of a hook. */
TEST(activations)
{
    tn_tensor *x = tn_normal(TN_SHAPE(B, T, D), 0, 1), *y[7];
    tn_tensor *(*const f[7])(tn_tensor *) = {NULL, tn_relu, tn_gelu_tanh, tn_gelu, own_gelu, tn_gelu, tn_relu};
    int seen = 0;
    for (int i = 0; i < 7; i++) {
        tn_seed(2);
        tn_transformer_encoder_layer *m = tn_transformer_encoder_layer_new(SIZES, .activation = f[i]);
        if (i > 4) tn_after(m->linear1, count, &seen);
        y[i] = tn_call(m, x);
        fine();
        tn_free(m);
    }
    ck_assert(tn_same_bits(y[0], y[1]) && !tn_same_bits(y[0], y[2]) && !tn_same_bits(y[2], y[3]));
    ck_assert(tn_same_bits(y[3], y[4]) && tn_same_bits(y[3], y[5]) && tn_same_bits(y[1], y[6]));
    ck_assert_int_eq(seen, 2);
}

/* The head's output projection is the embedding: one tensor, one gradient; names are Hugging Face's. */
TEST(tied_head)
{
    tn_embedding  *table = tn_embedding_new(.count = 11, .dim = D);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, table);
    tn_mlm_head *m = tn_append(net, tn_mlm_head_new(.embedding = table->weight));
    ck_assert(m->weight == table->weight);
    const char *const names[] = {"0.weight",
                                 "1.bias",
                                 "1.transform.dense.weight",
                                 "1.transform.dense.bias",
                                 "1.transform.LayerNorm.weight",
                                 "1.transform.LayerNorm.bias"};
    int               n = 0;
    for (tn_each p = tn_parameters(net); tn_next(&p); n++) {
        ck_assert_int_lt(n, 6);
        ck_assert(tn_find_tensor(net, names[n]) != NULL);
    }
    ck_assert_int_eq(n, 6);
    ck_assert(tn_find_tensor(net, "1.decoder.weight") == table->weight &&
              tn_find_tensor(net, "1.decoder.bias") == m->bias);
    const int64_t words[] = {3, 0, 7};
    tn_tensor    *index = tn_from_data(TN_I64, TN_SHAPE(3), words), *x = tn_call(table, index), *y = tn_call(m, x);
    ck_assert(tn_same_bits(y, tn_call(net, index)));
    ck_assert(tn_same_bits(y, tn_linear(tn_mlm_head_transform(m, x), table->weight, m->bias)));
    tn_backward(tn_sum(tn_square(y)));
    fine();
    for (int64_t i = 0; i < 11; i++)
        ck_assert(tn_get_at(tn_grad(table->weight), TN_SHAPE(i, 0)) != 0); /* every word has a logit */
    tn_sequential *copy = tn_copy(net);
    tn_mlm_head   *other = tn_at(copy, 1);
    ck_assert(other->weight == ((tn_embedding *)tn_at(copy, 0))->weight && other->weight != m->weight);
    ck_assert(tn_same_bits(tn_call(copy, index), y));
    ck_assert_str_eq(printed(m), "MLMHead(\n  dim=8, words=11\n"
                                 "  (transform.dense): Linear(in_features=8, out_features=8, bias=True)\n"
                                 "  (transform.LayerNorm): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n)\n");
    tn_free(net), tn_free(copy);
}

/* ---- failing allocations ----------------------------------------------------------------------------------------- */

static double digest(tn_tensor *t) { return t ? tn_item(tn_sum(tn_mul(tn_detach(t), tn_detach(t)))) : NAN; }

static double transformer_step(void)
{
    tn_transformer *m = tn_transformer_new(.dim = 4, .heads = 2, .ff = 4, .encoder_layers = 1, .decoder_layers = 1,
                                           .activation = tn_gelu);
    tn_tensor *src = tn_requires_grad(tn_normal(TN_SHAPE(2, 3, 4), 0, 1)), *tgt = tn_normal(TN_SHAPE(2, 2, 4), 0, 1);
    double     sum = NAN;
    if (m) {
        tn_tensor *y = tn_transformer_forward(m, src, tgt, .causal = true,
                                              .memory_key_padding_mask = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 3)));
        tn_backward(tn_sum(tn_square(y)));
        sum = digest(y) + digest(tn_grad(src)) + digest(tn_grad(tn_find_tensor(m, "decoder.layers.0.linear1.weight")));
    }
    tn_free(m);
    return sum;
}
static double encoder_step(void)
{
    tn_transformer_encoder *m =
        tn_transformer_encoder_new(.dim = 4, .heads = 2, .ff = 4, .layers = 2, .order = TN_NORM_FIRST);
    tn_tensor *table = tn_requires_grad(tn_normal(TN_SHAPE(5, 4), 0, 1)), *x = tn_normal(TN_SHAPE(1, 3, 4), 0, 1),
              *w[2];
    tn_mlm_head *head = table ? tn_mlm_head_new(.embedding = table) : NULL;
    double       sum = NAN;
    if (m && head) {
        tn_tensor *h = tn_transformer_encoder_forward(m, x, .causal = true, .weights = w),
                  *y = h ? tn_call(head, h) : NULL;
        ck_assert(!h == !w[0] && !h == !w[1]);
        tn_backward(tn_sum(tn_square(y)));
        sum = digest(y) + digest(w[0]) + digest(w[1]) + digest(tn_grad(table));
    }
    tn_free(m), tn_free(head);
    return sum;
}

static double once(int i)
{
    double (*const steps[])(void) = {transformer_step, encoder_step};
    tn_seed(3);
    const tn_scope s = tn_scope_begin();
    const double   sum = steps[i]();
    tn_scope_end(s);
    return sum;
}

TEST_EACH(memory_fails, 2) { tn_each_allocation_fails(once, _i, tn_test_slow() ? 7 : 1, 5, 200); }

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

static tn_tensor *nothing(tn_tensor *x) { return (void)x, NULL; }

TEST(wrong_use)
{
    ck_refused(tn_transformer_encoder_layer_new(.dim = 8, .heads = 3), TN_EINVAL,
               "tn_mha_new: 3 heads do not divide width 8; .dim must be a multiple of .heads");
    ck_refused(tn_transformer_encoder_layer_new(.heads = 2), TN_EINVAL,
               "tn_transformer_encoder_layer_new: .dim is 0, but must be at least 1");
    ck_refused(tn_transformer_decoder_layer_new(.dim = 8), TN_EINVAL,
               "tn_transformer_decoder_layer_new: .heads is 0, but must be at least 1");
    ck_refused(tn_block_new(.dim = 8, .heads = 2, .layers = 6), TN_EINVAL,
               "tn_block_new: .layers, .groups, .each and .final_norm are options of a stack, not of one block; call "
               "tn_blocks_new");
    ck_refused(tn_transformer_encoder_new(.dim = 8, .heads = 2), TN_EINVAL,
               "tn_transformer_encoder_new: .layers is 0, but must be at least 1");
    ck_refused(tn_transformer_decoder_new(.dim = 8, .heads = 2, .layers = 1, .dropout = 2), TN_EINVAL,
               "tn_transformer_decoder_new: .dropout is 2.0, but a probability is from 0 to 1");
    ck_refused(tn_transformer_new(.ff = -1), TN_EINVAL, "tn_transformer_new: .ff is -1, but must be at least 1");
    ck_refused(tn_transformer_new(.decoder_layers = 0), TN_EINVAL,
               "tn_transformer_new: .decoder_layers is 0, but must be at least 1");
    ck_refused(tn_mlm_head_new(.eps = 1e-12), TN_EINVAL,
               "tn_mlm_head_new: .embedding is NULL; pass the embedding's weight [words, dim]");
    ck_refused(tn_mlm_head_new(.embedding = tn_zeros(TN_SHAPE(3))), TN_ESHAPE,
               "tn_mlm_head_new: .embedding must be [words, dim], got [3]");
    ck_refused(tn_mlm_head_new(.embedding = tn_zeros_of(TN_I64, TN_SHAPE(3, 2))), TN_EDTYPE,
               "tn_mlm_head_new: .dtype is i64, but parameters are f32, f64 or bf16");

    tn_transformer *m = tn_transformer_new(SIZES, .encoder_layers = 2, .decoder_layers = 2);
    tn_tensor      *src = tn_zeros(TN_SHAPE(B, S, D)), *tgt = tn_zeros(TN_SHAPE(B, T, D));
    tn_transformer_forward(m, tn_zeros(TN_SHAPE(B, S, 7)), tgt);
    ck_error(TN_ESHAPE, "encoder.layers.0.self_attn: mha: query [2, 5, 7] must be [B, T, 8]");
    tn_transformer_forward(m, src, tn_zeros(TN_SHAPE(3, T, D)));
    ck_error(TN_ESHAPE, "decoder.layers.0.multihead_attn: mha: query [3, 4, 8] and key [2, 5, 8] differ in batch size");
    tn_transformer_forward(m, src, tgt, .attn_mask = holes(T, S));
    ck_error(TN_ESHAPE,
             "decoder.layers.0.self_attn: mha: attn_mask [4, 5] must be [T, S] = [4, 4], or [B·heads, T, S] with "
             "B·heads = 4, or [B, heads, T, S]");
    tn_transformer_forward(m, src, tgt, .memory_key_padding_mask = padding(T));
    ck_error(TN_ESHAPE,
             "decoder.layers.0.multihead_attn: mha: key_padding_mask [2, 4] must be [B, S] = [2, 5]; true is padding");
    tn_transformer_forward(m, NULL, tgt);
    ck_error(TN_EINVAL, "encoder.layers.0.self_attn: mha: query is NULL");
    tn_transformer_decoder_forward(m->decoder, tgt, NULL);
    ck_error(TN_EINVAL,
             "decoder.layers.0: transformer_decoder: memory is NULL; it may be omitted only if the cache contains it");
    tn_call(m, src);
    ck_error(TN_EUNSUPPORTED, "tn_call: Transformer has no forward of one input and one result; call its typed "
                              "function");
    tn_transformer_encoder_layer *layer = tn_at(m->encoder->layers, 1);
    layer->activation = nothing;
    tn_transformer_forward(m, src, tgt);
    ck_error(TN_EINVAL, "encoder.layers.1.dropout: Dropout: the input is NULL");
    tn_free(m);
}
