/* test_relative.c — T5's relative positions: buckets and an encoder compared with Hugging Face's (tests/golden/t5.py),
 * gradients by finite differences, masks together with the bias, T5's encoder and decoder together, the same bits with
 * and without a cache, and errors. */
#include "nn/nn.h"
#include "tests/common/answers.h"

static tn_safetensors *golden;
static void open_golden(void) { golden = tn_safetensors_open(tn_test_data("golden/t5.safetensors")), fine(); }
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);
static tn_tensor *get(const char *name) { return tn_safetensors_get(golden, name); }

TEST_EACH(buckets, 8)
{
    static const int64_t tables[][2] = {{32, 128}, {8, 9}, {20, 50}, {6, 1000}};
    enum { FAR = 300, KEYS = FAR + 1 };
    const int64_t          n = tables[_i / 2][0], distance = tables[_i / 2][1];
    const bool             causal = _i % 2;
    const char            *name = tn_name("buckets.%d.%d.%s", (int)n, (int)distance, causal ? "causal" : "both");
    tn_tensor             *want = get(name);
    tn_relative_positions *m =
        tn_relative_positions_new(.heads = 2, .buckets = n, .distance = distance, .causal = causal);
    fine();
    const tn_scope s = tn_no_grad_begin();
    for (int64_t b = 0; b < n; b++) tn_set(m->weight, 2 * b, (double)b), tn_set(m->weight, 2 * b + 1, -(double)b);
    tn_tensor *all = tn_relative_positions_forward(m, KEYS, KEYS), *last = tn_relative_positions_forward(m, 1, KEYS);
    for (int64_t far = -FAR; far <= FAR; far++) {
        const int64_t t = far < 0 ? FAR : 0, at = (int64_t)tn_get(want, far + FAR);
        ck_assert_msg(tn_get_at(all, TN_SHAPE(0, 0, t, t + far)) == (double)at, "%s: %d is in %g, not %d", name,
                      (int)far, tn_get_at(all, TN_SHAPE(0, 0, t, t + far)), (int)at);
        ck_assert(tn_get_at(all, TN_SHAPE(0, 1, t, t + far)) == -(double)at);
    }
    ck_assert(tn_same_bits(tn_contiguous(last), tn_contiguous(tn_narrow(all, 2, FAR, 1))));
    tn_scope_end(s);
    tn_free(m);
}

#define THEIRS "encoder.block.*.layer."
static const tn_rename rules[] = {
    TN_RENAME("encoder.final_layer_norm", "norm"),
    TN_RENAME("encoder.block.0.layer.0.SelfAttention.relative_attention_bias", "layers.0.relative"),
    TN_RENAME(THEIRS "0.SelfAttention.q", "layers.*.self_attn.q_proj"),
    TN_RENAME(THEIRS "0.SelfAttention.k", "layers.*.self_attn.k_proj"),
    TN_RENAME(THEIRS "0.SelfAttention.v", "layers.*.self_attn.v_proj"),
    TN_RENAME(THEIRS "0.SelfAttention.o", "layers.*.self_attn.out_proj"),
    TN_RENAME(THEIRS "0.layer_norm", "layers.*.norm1"),
    TN_RENAME(THEIRS "1.DenseReluDense.wi_0", "layers.*.gate"),
    TN_RENAME(THEIRS "1.DenseReluDense.wi_1", "layers.*.linear1"),
    TN_RENAME(THEIRS "1.DenseReluDense.wo", "layers.*.linear2"),
    TN_RENAME(THEIRS "1.layer_norm", "layers.*.norm2"),
    TN_RENAME("x", NULL),
    TN_RENAME("y", NULL),
    TN_RENAME("seed", NULL),
    TN_RENAME("key_padding_mask", NULL),
    TN_RENAME("grad", NULL),
    TN_RENAME("buckets", NULL),
};
static tn_blocks *t5(void)
{
    tn_blocks *m =
        tn_blocks_new(.layers = 2, .dim = 10, .heads = 3, .attention.head_dim = 4, .ff = 14, .norm.kind = TN_NORM_RMS,
                      .norm.eps = 1e-6, .order = TN_NORM_FIRST, .final_norm = true, .gated = true,
                      .activation = tn_silu, .no_bias = true, .attention.scores.scale = 1, .dropout = 0,
                      .attention.positions = tn_relative_positions_new(.heads = 3, .buckets = 8, .distance = 9));
    tn_load(m, tn_test_data("golden/t5.safetensors"), .rename = rules, .renames = sizeof rules / sizeof *rules);
    fine();
    return m;
}
static tn_block              *layer(tn_blocks *m, int64_t i) { return tn_at(m->layers, i); }
static tn_relative_positions *relative_of(tn_block *m)
{
    return (tn_relative_positions *)(void *)m->self_attn->positions;
}

TEST(as_an_encoder_of_transformers)
{
    tn_blocks *m = t5();
    tn_tensor *x = tn_requires_grad(get("x")),
              *y = tn_blocks_forward(m, x, .key_padding_mask = get("key_padding_mask"));
    tn_tensor *there = tn_unsqueeze(tn_to(tn_logical_not(get("key_padding_mask")), TN_F32), 2);
    ck_assert_double_le(furthest(tn_mul(y, there), tn_mul(get("y"), there)), 1e-5);
    ck_assert(relative_of(layer(m, 0)) == relative_of(layer(m, 1)));
    tn_backward(y, .seed = get("seed"));
    fine();
    ck_assert_double_le(furthest(tn_grad(x), get("grad.x")), 5e-5);
    ck_assert_double_le(furthest(tn_grad(relative_of(layer(m, 0))->weight), get("grad.table")), 5e-5);
    tn_free(m);
}

/* A mask of each kind plus the bias equals both as one mask. */
TEST(masks)
{
    tn_blocks *m = t5();
    tn_tensor *x = get("x"), *bias = tn_relative_positions_forward(relative_of(layer(m, 0)), 13, 13);
    tn_tensor *blocked = tn_bernoulli_of(TN_BOOL, TN_SHAPE(13, 13), 0.4);
    tn_tensor *floating = tn_masked_fill(tn_zeros(TN_SHAPE(13, 13)), blocked, -INFINITY);
    tn_tensor *want = tn_blocks_forward(m, x, .placed = &(tn_placed){.made = {tn_add(bias, floating)}});
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .attn_mask = blocked), want));
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .attn_mask = floating), want));
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .attn_mask = tn_contiguous(tn_expand(blocked, TN_SHAPE(6, 13, 13)))),
                           want));
    tn_free(m);
}

/* A mask that attention rejects alone is also rejected together with a bias. */
TEST(masks_that_do_not_fit)
{
    static const struct {
        tn_dtype    dt;
        tn_shape    s;
        tn_status   code;
        const char *text;
    } wrong[] = {
        {TN_I64,
         {.n = 2, .d = {4, 4}},
         TN_EDTYPE,
         "is i64, but must be bool (true: may not be attended to) or floating (added to the scores)"},
        {TN_BOOL, {.n = 3, .d = {2, 4, 4}}, TN_ESHAPE, "[2, 4, 4]"},
        {TN_BOOL, {.n = 2, .d = {1, 4}}, TN_ESHAPE, "[1, 4]"},
        {TN_F32, {.n = 1, .d = {4}}, TN_ESHAPE, "[4]"},
        {TN_F32, {.n = 4, .d = {1, 3, 4, 4}}, TN_ESHAPE, "[1, 3, 4, 4]"},
    };
    for (size_t i = 0; i < 2 * (sizeof wrong / sizeof *wrong); i++) {
        tn_blocks *m =
            tn_blocks_new(.layers = 2, .dim = 4, .heads = 2, .ff = 5, .dropout = 0,
                          .attention.positions = i % 2 ? tn_relative_positions_new(.heads = 2, .buckets = 8) : NULL);
        tn_tensor *x = tn_normal(TN_SHAPE(3, 4, 4), 0, 1);
        tn_tensor *mask = tn_zeros_of(wrong[i / 2].dt, wrong[i / 2].s);
        char       text[400];
        fine();
        ck_assert_ptr_null(tn_blocks_forward(m, x, .attn_mask = mask));
        snprintf(text, sizeof text,
                 wrong[i / 2].code == TN_EDTYPE ? "layers.0.self_attn: mha: attn_mask %s"
                                                : "layers.0.self_attn: mha: attn_mask %s must be [T, S] = [4, 4], or "
                                                  "[B·heads, T, S] with B·heads = 6, or [B, heads, T, S]",
                 wrong[i / 2].text);
        ck_error(wrong[i / 2].code, text);
        ck_assert_ptr_nonnull(tn_blocks_forward(m, x, .attn_mask = tn_zeros_of(TN_BOOL, TN_SHAPE(6, 4, 4))));
        ck_assert_ptr_nonnull(tn_blocks_forward(m, x, .attn_mask = tn_zeros(TN_SHAPE(3, 1, 4, 4))));
        fine();
        tn_free(m);
    }
}

TEST(the_same_bits_with_and_without_a_cache)
{
    tn_seed(2);
    tn_blocks     *m = tn_blocks_new(.layers = 2, .dim = 12, .heads = 6, .attention.kv_heads = 2, .ff = 16,
                                     .order = TN_NORM_FIRST, .dropout = 0,
                                     .attention.positions = tn_relative_positions_new(.heads = 6, .buckets = 4,
                                                                                      .distance = 5, .causal = true));
    const tn_scope s = tn_no_grad_begin();
    tn_init_normal(relative_of(layer(m, 0))->weight, 0, 1);
    tn_tensor   *x = tn_normal(TN_SHAPE(2, 9, 12), 0, 1), *y = tn_blocks_forward(m, x, .causal = true);
    tn_kv_cache *cache = tn_blocks_cache(m, 2, 9, 0);
    for (int64_t t = 0, n; t < 9; t += n) {
        n = t ? 1 : 3;
        tn_tensor *some = tn_blocks_forward(m, tn_narrow(x, 1, t, n), .causal = true, .cache = cache);
        ck_assert(tn_same_bits(some, tn_narrow(y, 1, t, n)));
    }
    ck_assert(tn_same_bits(tn_blocks_forward(m, tn_narrow(x, 0, 1, 1), .causal = true), tn_narrow(y, 0, 1, 1)));
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m);
}

static tn_tensor *run(tn_tensor *const *x, int n, void *user)
{
    (void)n;
    return tn_block_forward((tn_block *)user, x[0], .causal = true);
}
TEST(gradients)
{
    tn_block *m =
        tn_block_new(.dim = 4, .heads = 2, .attention.kv_heads = 1, .ff = 6, .activation = tn_gelu,
                     .attention.scores.scale = 0.8, .attention.scores.window = 3, .dropout = 0, .dtype = TN_F64,
                     .attention.positions =
                         tn_relative_positions_new(.heads = 2, .buckets = 4, .distance = 3, .dtype = TN_F64));
    tn_init_normal(relative_of(m)->weight, 0, 1);
    tn_tensor *in[] = {tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, 5, 4), 0, 1)), relative_of(m)->weight};
    ck_assert_msg(tn_gradcheck(run, .count = 2, .inputs = in, .user = m, .name = "relative") == TN_OK, "%s",
                  tn_error_message());
    tn_free(m);
}

/* ---- encoder and decoder of T5 ----------------------------------------------------------------------------------- */

/* Heads · head_dim is not dim, and the scores are not divided by √head_dim. */
#define T5_LAYERS                                                                                                    \
    .dim = 6, .heads = 3, .attention.head_dim = 4, .ff = 5, .gated = true, .activation = tn_gelu_tanh, .dropout = 0, \
    .norm = {TN_NORM_RMS, 1e-6, false}, .order = TN_NORM_FIRST, .no_bias = true, .attention.scores.scale = 0.7
enum { SOURCE = 6, TARGET = 5 };
static tn_relative_positions *relative(bool causal, tn_dtype dtype)
{
    return tn_relative_positions_new(.heads = 3, .buckets = 4, .distance = 3, .causal = causal, .dtype = dtype);
}

static tn_transformer *translator(tn_dtype dtype)
{
    tn_transformer *m =
        tn_transformer_new(T5_LAYERS, .encoder_layers = 2, .decoder_layers = 2, .dtype = dtype,
                           .attention.positions = relative(false, dtype), .decoder_positions = relative(true, dtype));
    fine();
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        if (tn_ndim(p.tensor) == 2) tn_init_normal(p.tensor, 0, 0.6);
    return m;
}
static tn_tensor *no_source(void)
{
    tn_tensor *t = tn_zeros_of(TN_BOOL, TN_SHAPE(2, SOURCE));
    return tn_set_at(t, TN_SHAPE(1, -1), 1), t;
}
static tn_tensor *translated(tn_tensor *const *x, int n, void *user)
{
    (void)n;
    tn_tensor *padding = no_source();
    return tn_transformer_forward((tn_transformer *)user, x[0], x[1], .causal = true, .src_key_padding_mask = padding,
                                  .memory_key_padding_mask = padding);
}

TEST(gradients_of_encoder_and_decoder)
{
    static const char *const names[] = {"encoder.layers.0.relative.weight",
                                        "decoder.layers.0.relative.weight",
                                        "encoder.layers.1.self_attn.q_proj.weight",
                                        "decoder.layers.0.multihead_attn.k_proj.weight",
                                        "decoder.layers.1.self_attn.out_proj.weight",
                                        "decoder.layers.1.gate.weight",
                                        "encoder.norm.weight",
                                        "decoder.layers.0.norm2.weight"};
    enum { N = sizeof names / sizeof *names };
    tn_transformer *m = translator(TN_F64);
    tn_tensor      *in[2 + N] = {tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, SOURCE, 6), 0, 1)),
                                 tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, TARGET, 6), 0, 1))};
    for (int i = 0; i < N; i++) ck_assert_msg((in[2 + i] = tn_find_tensor(m, names[i])) != NULL, "%s", names[i]);
    ck_assert_msg(tn_gradcheck(translated, .count = 2 + N, .inputs = in, .user = m, .name = "T5") == TN_OK, "%s",
                  tn_error_message());
    tn_free(m);
}

/* The options of tn_transformer are those of its stacks: relative positions to both sides in the encoder, causal ones
 * in the decoder, none in the attention to the memory. */
TEST(encoder_and_decoder_are_stacks)
{
    tn_seed(5);
    tn_transformer         *m = translator(TN_F32);
    tn_transformer_encoder *in = tn_transformer_encoder_new(T5_LAYERS, .layers = 2, .final_norm = true,
                                                            .attention.positions = relative(false, TN_F32));
    tn_transformer_decoder *out = tn_transformer_decoder_new(T5_LAYERS, .layers = 2, .final_norm = true,
                                                             .attention.positions = relative(true, TN_F32));
    tn_transformer_decoder *plain =
        tn_transformer_decoder_new(.dim = 6, .heads = 3, .attention.head_dim = 4, .ff = 5, .gated = true,
                                   .activation = tn_gelu_tanh, .dropout = 0, .norm.kind = TN_NORM_RMS, .norm.eps = 1e-6,
                                   .order = TN_NORM_FIRST, .no_bias = true, .attention.scores.scale = 0.7, .layers = 2,
                                   .final_norm = true);
    tn_assign(in, m->encoder), tn_assign(out, m->decoder);
    tn_tensor *x[2] = {tn_normal(TN_SHAPE(2, SOURCE, 6), 0, 1), tn_normal(TN_SHAPE(2, TARGET, 6), 0, 1)};
    tn_tensor *padding = no_source(), *memory = tn_transformer_encoder_forward(in, x[0], .key_padding_mask = padding);
    tn_tensor *want =
        tn_transformer_decoder_forward(out, x[1], memory, .causal = true, .memory_key_padding_mask = padding);
    ck_assert(tn_same_bits(translated(x, 2, m), want));
    fine();
    /* without its table the decoder has no bias */
    tn_init_zeros(relative_of(layer(m->decoder, 0))->weight);
    ck_assert_int_eq(tn_save(m->decoder, tn_test_file("decoder.safetensors")), TN_OK);
    tn_load(plain, tn_test_file("decoder.safetensors"), .allow_unexpected = true);
    fine();
    ck_assert_double_le(
        furthest(translated(x, 2, m), tn_transformer_decoder_forward(plain, x[1], memory, .causal = true,
                                                                     .memory_key_padding_mask = padding)),
        1e-6);
    /* .no_final_norm */
    tn_transformer *bare = tn_transformer_new(.dim = 6, .heads = 2, .ff = 4, .encoder_layers = 1, .decoder_layers = 1,
                                              .no_final_norm = true);
    ck_assert(bare && !bare->encoder->norm && !bare->decoder->norm && m->encoder->norm && m->decoder->norm);
    tn_free(m), tn_free(in), tn_free(out), tn_free(plain), tn_free(bare);
}

TEST(decoder_with_a_cache)
{
    tn_seed(4);
    tn_transformer *m = translator(TN_F32);
    const tn_scope  s = tn_no_grad_begin();
    tn_tensor      *memory = tn_normal(TN_SHAPE(2, SOURCE, 6), 0, 1), *x = tn_normal(TN_SHAPE(2, TARGET, 6), 0, 1);
    tn_tensor      *padding = no_source();
    tn_tensor      *y =
        tn_transformer_decoder_forward(m->decoder, x, memory, .causal = true, .memory_key_padding_mask = padding);
    tn_kv_cache *cache = tn_transformer_decoder_cache(m->decoder, 2, TARGET, SOURCE);
    for (int64_t t = 0, n; t < TARGET; t += n) {
        n = t ? 1 : 2;
        tn_tensor *some =
            tn_transformer_decoder_forward(m->decoder, tn_narrow(x, 1, t, n), t ? NULL : memory, .causal = true,
                                           .memory_key_padding_mask = padding, .cache = cache);
        ck_assert(tn_same_bits(some, tn_narrow(y, 1, t, n)));
    }
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m);
}

TEST(wrong_use)
{
    ck_refused(tn_relative_positions_new(.heads = 2, .buckets = 3), TN_EINVAL,
               "tn_relative_positions_new: .buckets is 3, but must be from 4 to 1048576");
    ck_refused(tn_relative_positions_new(.heads = 2, .distance = 8), TN_EINVAL,
               "tn_relative_positions_new: .distance is 8, but must be more than 8, the number of distances "
               "with a bucket of their own");
    ck_refused(tn_block_new(.dim = 4, .heads = 2, .attention.positions = tn_relative_positions_new(.heads = 3)),
               TN_EINVAL, "relative_positions: .heads is 3, but the attention has 2");
    ck_refused(tn_mha_new(.dim = 4, .heads = 2, .scores.scale = -1), TN_EINVAL,
               "tn_mha_new: .scores has .scale -1, .cap 0 and .window 0, which must be positive or 0, and .qk_norm "
               "0, which must be a tn_qk_norm");
    tn_relative_positions *m = tn_relative_positions_new(.heads = 2);
    ck_refused(tn_relative_positions_forward(m, 3, 2), TN_EINVAL,
               "relative_positions: 3 queries, but must be from 0 to the number of keys, 2");
    ck_refused(tn_relative_positions_forward(m, (int64_t)1 << 40, (int64_t)1 << 40), TN_EINVAL,
               "relative_positions: 1099511627776 keys, at most 2147483647 are supported");
    ck_assert_ptr_nonnull(tn_relative_positions_forward(m, 0, 2));
    tn_free(m);
}
