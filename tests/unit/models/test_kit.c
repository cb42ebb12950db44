/* test_kit.c — the model kit: a LLaMA written outside the library (examples/custom_decoder.c, compiled in, its lines
 * counted), compared with transformers' modeling_llama.py in plain ops and with tn_llama; the same bits with and
 * without a cache, alone and in a batch; a tn_lm without cache; grouped-query compared with full attention; parallel
 * residuals; errors of its files. */
int custom_decoder_main(void);
#define main custom_decoder_main
#include "../../../examples/custom_decoder.c"
#undef main

#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include <unistd.h>

enum { T = 9 };
static decoder *small(void)
{
    const config c = {23, 24, 2, 4, 2, 40, 64, 1e-6, 10000, 0.3, "silu", false};
    tn_seed(5);
    decoder *m = decoder_new(c);
    tn_eval(m);
    fine();
    return m;
}
static tn_tensor *some_ids(int64_t b, int64_t n) { return tn_randint(TN_SHAPE(b, n), 0, 23); }

TEST(the_example)
{
    char        path[1200], here[1000];
    const char *folder = tn_test_file("counting");
    snprintf(path, sizeof path, "%s/../examples/custom_decoder.c", tn_test_data("."));
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    int lines = 0;
    for (int c; (c = fgetc(f)) != EOF;) lines += c == '\n';
    fclose(f);
    ck_assert_int_le(lines, 140);
    ck_assert(getcwd(here, sizeof here) && !mkdir(folder, 0777) && !chdir(folder));
    const int failed = custom_decoder_main();
    ck_assert(!chdir(here));
    ck_assert_int_eq(failed, 0);
}

/* ---- compared with modeling_llama.py ----------------------------------------------------------------------------- */

static tn_tensor *weight(decoder *m, int64_t layer, const char *name)
{
    return tn_find_tensor(m, tn_name("blocks.layers.%lld.%s.weight", (long long)layer, name));
}
static tn_tensor *rms(tn_tensor *x, tn_tensor *w, double eps)
{
    tn_tensor *square = tn_mean(tn_square(x), .dims = TN_DIMS(-1), .keepdim = true);
    return tn_mul(w, tn_mul(x, tn_rsqrt(tn_add_scalar(square, eps))));
}
/* [1, T, heads · D] to [1, heads, T, D]; the rotation x cos + rotate_half(x) sin. */
static tn_tensor *heads_of(tn_tensor *x, int64_t heads)
{
    const int64_t n = tn_size(x, 1), d = tn_size(x, 2) / heads;
    return tn_permute(tn_reshape(x, TN_SHAPE(1, n, heads, d)), TN_DIMS(0, 2, 1, 3));
}
static tn_tensor *rotated(tn_tensor *x, double theta)
{
    const int64_t n = tn_size(x, 2), d = tn_size(x, 3), half = d / 2;
    tn_tensor    *c = tn_zeros(TN_SHAPE(n, d)), *s = tn_zeros(TN_SHAPE(n, d));
    for (int64_t i = 0; i < n * d; i++) {
        const double phi = (double)(i / d) * pow(theta, -2 * (double)(i % half) / (double)d);
        tn_set(c, i, cos(phi)), tn_set(s, i, sin(phi));
    }
    tn_tensor *other = tn_cat(-1, tn_neg(tn_narrow(x, -1, half, half)), tn_narrow(x, -1, 0, half));
    return tn_add(tn_mul(x, c), tn_mul(other, s));
}
static tn_tensor *by_hand(decoder *m, tn_tensor *ids)
{
    const config *c = &m->c;
    const int64_t n = tn_size(ids, 1), d = c->dim / c->heads, group = c->heads / c->kv_heads;
    tn_tensor    *x = tn_call(m->words, ids), *mask = tn_causal_mask(n);
    for (int64_t i = 0; i < c->layers; i++) {
        tn_tensor *h = rms(x, weight(m, i, "norm1"), c->eps);
        tn_tensor *q = heads_of(tn_linear(h, weight(m, i, "self_attn.q_proj"), NULL), c->heads);
        tn_tensor *k = heads_of(tn_linear(h, weight(m, i, "self_attn.k_proj"), NULL), c->kv_heads);
        tn_tensor *v = heads_of(tn_linear(h, weight(m, i, "self_attn.v_proj"), NULL), c->kv_heads);
        q = rotated(q, c->theta), k = rotated(k, c->theta);
        k = tn_repeat_interleave(k, group, 1), v = tn_repeat_interleave(v, group, 1);
        tn_tensor *s = tn_add(tn_mul_scalar(tn_matmul(q, tn_transpose(k, -1, -2)), 1 / sqrt((double)d)), mask);
        tn_tensor *y = tn_permute(tn_matmul(tn_softmax(s, -1), v), TN_DIMS(0, 2, 1, 3));
        x = tn_add(x, tn_linear(tn_reshape(y, TN_SHAPE(1, n, c->dim)), weight(m, i, "self_attn.out_proj"), NULL));
        h = rms(x, weight(m, i, "norm2"), c->eps);
        tn_tensor *gate = tn_silu(tn_linear(h, weight(m, i, "gate"), NULL));
        h = tn_mul(gate, tn_linear(h, weight(m, i, "linear1"), NULL));
        x = tn_add(x, tn_linear(h, weight(m, i, "linear2"), NULL));
    }
    return tn_linear(rms(x, m->blocks->norm->weight, c->eps), m->out, NULL);
}

TEST(as_modeling_llama)
{
    decoder   *m = small();
    tn_tensor *ids = some_ids(1, T), *want = by_hand(m, ids);
    tn_tensor *y = tn_lm_forward(m, ids);
    fine();
    for (int64_t i = 0; i < tn_numel(want); i++) ck_assert_double_eq_tol(tn_get(y, i), tn_get(want, i), 2e-5);
    tn_free(m);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

TEST(with_and_without_a_cache)
{
    decoder       *m = small();
    tn_tensor     *prompt = some_ids(3, 4);
    const tn_scope s = tn_no_grad_begin();
    tn_decoding   *d = tn_lm_decoding(m, 3, 20);
    tn_generated   g = tn_generate(d, prompt, .most = 12);
    fine();
    tn_tensor *text = prompt;
    for (int i = 0; i < 12; i++) { /* rereads everything for each token */
        tn_tensor *next = tn_argmax(tn_select(tn_lm_forward(m, text, .last = true), 1, 0), -1, false);
        ck_assert(tn_same_bits(tn_contiguous(next), tn_contiguous(tn_select(tn_select(g.tokens, 1, 0), 1, i))));
        text = tn_cat(1, text, tn_unsqueeze(next, 1));
    }
    tn_decoding_free(d);

    for (int threads = 1; threads < 4; threads++) { /* all logits, token by token, and each row alone */
        tn_set_threads(threads);
        tn_tensor   *all = tn_lm_forward(m, text);
        tn_kv_cache *cache = tn_blocks_cache(m->blocks, 3, 16, 0), *alone = tn_blocks_cache(m->blocks, 1, 16, 0);
        for (int64_t t = 0; t < 16; t += t ? 1 : 5) {
            const int64_t n = t ? 1 : 5;
            tn_tensor    *ids = tn_narrow(text, 1, t, n), *want = tn_narrow(all, 1, t + n - 1, 1);
            ck_assert(tn_same_bits(tn_lm_forward(m, ids, .cache = cache, .last = true), want));
            ck_assert(tn_same_bits(tn_lm_forward(m, tn_narrow(ids, 0, 1, 1), .cache = alone, .last = true),
                                   tn_narrow(want, 0, 1, 1)));
        }
        tn_kv_cache_free(cache), tn_kv_cache_free(alone);
    }
    tn_scope_end(s);
    tn_free(m);
}

/* Tokens are trimmed from the cache, and read again. */
TEST(trimmed)
{
    decoder       *m = small();
    tn_tensor     *ids = some_ids(1, 6);
    const tn_scope s = tn_no_grad_begin();
    tn_decoding   *d = tn_lm_decoding(m, 1, 10);
    tn_tensor     *first = d->kind->scores(d, ids);
    ck_assert_int_eq(tn_cached_decoding_trim(d, 2), TN_OK);
    ck_assert(tn_same_bits(first, d->kind->scores(d, tn_narrow(ids, 1, 2, 4))));
    tn_cached_decoding_trim(d, 11);
    ck_error(TN_EINVAL, "tn_cached_decoding_trim: length is 11, but 6 tokens have been read");
    tn_decoding_free(d);
    tn_scope_end(s);
    tn_free(m);
}

/* ---- a custom tn_lm ---------------------------------------------------------------------------------------------- */

/* The saved files are a LlamaForCausalLM: the library's own tn_llama returns the same bits. */
TEST(as_the_library_s)
{
    decoder    *m = small();
    const char *dir = tn_test_folder("saved");
    tn_tensor  *ids = some_ids(2, T);
    ck_assert_msg(tn_lm_save(m, dir) == TN_OK, "%s", tn_error_message());
    tn_lm *llama = tn_lm_load(dir);
    fine();
    const tn_lm_info a = tn_lm_info_of(m), b = tn_lm_info_of(llama);
    ck_assert(a.vocab == b.vocab && a.dim == b.dim && a.kv_heads == 2 && tn_lm_blocks(m) == m->blocks);
    ck_assert(tn_same_bits(tn_lm_forward(m, ids), tn_lm_forward(llama, ids)));
    ck_assert(tn_same_bits(tn_lm_loss(m, ids, NULL), tn_lm_loss(llama, ids, NULL)));
    ck_assert(tn_same_bits(tn_lm_loss(m, ids, ids), tn_lm_loss(llama, ids, ids)));
    void          *models[] = {m, llama};
    tn_generated   g[2], drafted[2], rolled[2];
    tn_speculation count[2];
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *prompt = tn_narrow(ids, 0, 0, 1);
    for (int i = 0; i < 2; i++) {
        tn_decoding *d[] = {tn_lm_decoding(models[i], 2, 30),
                            tn_speculative_decoding(models[i], models[1 - i], 30, 3, &count[i]),
                            tn_lm_rolling(models[i], 1, 16, 4)};
        tn_seed(3);
        g[i] = tn_generate(d[0], ids, .most = 20, .sample = true);
        drafted[i] = tn_generate(d[1], prompt, .most = 12);
        rolled[i] = tn_generate(d[2], prompt, .most = 40);
        fine();
        for (int k = 0; k < 3; k++) tn_decoding_free(d[k]);
    }
    ck_assert(tn_same_bits(g[0].tokens, g[1].tokens) && tn_same_bits(rolled[0].tokens, rolled[1].tokens));
    ck_assert(tn_same_bits(drafted[0].tokens, drafted[1].tokens));
    tn_scope_end(s);
    tn_free(m), tn_module_free(llama);
}

/* The smallest tn_lm: an embedding whose table is also the output layer, without cache. */
typedef struct {
    tn_module     base;
    tn_embedding *words;
} bigram;
static tn_lm_info bigram_info(const void *module)
{
    const bigram *m = module;
    return (tn_lm_info){.vocab = 23, .positions = 8, .limited = true, .out = m->words->weight};
}
static tn_tensor *bigram_hidden(void *m, tn_decoder_args a)
{
    ck_assert_ptr_null(a.cache);
    return tn_call(((bigram *)m)->words, a.ids);
}
static const tn_lm_ops bigram_ops = {.info = bigram_info, .hidden = bigram_hidden}, no_ops = {.info = bigram_info};
static const tn_class  bigram_class = {sizeof(tn_class), .name = "Bigram", .bytes = sizeof(bigram), .lm = &bigram_ops},
                      empty_class = {sizeof(tn_class), .name = "Empty", .bytes = sizeof(bigram), .lm = &no_ops};
static bigram *bigram_new(const tn_class *kind)
{
    bigram *m = tn_module_create(kind);
    m->words = tn_child(m, "words", tn_embedding_new(.count = 23, .dim = 6));
    return tn_built(m);
}

TEST(without_a_cache)
{
    bigram        *m = bigram_new(&bigram_class);
    tn_tensor     *ids = some_ids(2, 3), *y = tn_lm_forward(m, ids);
    tn_tensor     *all = tn_matmul(tn_call(m->words, ids), tn_transpose(m->words->weight, 0, 1));
    const tn_scope s = tn_no_grad_begin();
    tn_decoding   *d = tn_lm_decoding(m, 2, 8);
    tn_generated   g = tn_generate(d, ids, .most = 1);
    fine();
    ck_assert_int_eq(tn_allclose(y, all, 1e-5, 1e-5), 1);
    ck_assert_int_eq(tn_get_i64(g.tokens, 0), tn_get_i64(tn_argmax(y, -1, false), 2));
    ck_assert_int_eq(tn_allclose(tn_lm_loss(m, ids, ids), tn_cross_entropy(all, ids), 1e-5, 1e-5), 1);
    tn_decoding_free(d);
    tn_scope_end(s);
    tn_free(m);
}

TEST(not_a_language_model)
{
    bigram *m = bigram_new(&bigram_class), *empty = bigram_new(&empty_class);
    ck_refused(tn_lm_forward(m, some_ids(1, 9)), TN_ESHAPE,
               "Bigram: a sequence of 9 tokens is longer than the model's 8 positions; truncate it");
    ck_refused(tn_lm_loss(m, some_ids(1, 1), NULL), TN_ESHAPE,
               "Bigram: a sequence of length 1 has no next token as target; pass targets");
    ck_refused(tn_lm_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(3))), TN_ESHAPE,
               "Bigram: ids must be [batch, length], got [3]");
    decoder     *cached = small();
    tn_kv_cache *cache = tn_blocks_cache(cached->blocks, 1, 4, 0);
    ck_refused(tn_lm_forward(m, some_ids(1, 2), .cache = cache), TN_EUNSUPPORTED,
               "Bigram: this model has no key/value cache; omit .cache");
    tn_kv_cache_free(cache), tn_free(cached);
    ck_refused(tn_lm_decoding(m, 1, 9), TN_EINVAL, "tn_lm_decoding: length is 9, but the model has only 8 positions");
    ck_refused(tn_lm_decoding(m, 0, 8), TN_EINVAL, "tn_lm_decoding: 0 rows of length 8, but both must be at least 1");
    ck_refused(tn_lm_blocks(m), TN_EUNSUPPORTED, "tn_lm_blocks: a Bigram has no tn_blocks and no key/value cache");
    ck_assert_int_ne(tn_lm_save(m, tn_test_folder("unsaved")), TN_OK);
    ck_error(TN_EUNSUPPORTED, "tn_lm_save: a Bigram cannot be saved, because its class has no .lm->save");
    ck_refused(tn_lm_forward(empty, some_ids(1, 2)), TN_EINVAL,
               "Empty: the tn_lm_ops of its class need .info and .hidden, or .info, .run and .loss");
    tn_free(m), tn_free(empty);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* Two key heads for four query heads, and four key heads that are equal in pairs: the same bits with any mask. */
TEST_EACH(shared_keys, 2)
{
    tn_mha *few = tn_mha_new(.dim = 16, .heads = 4, .kv_heads = 2);
    tn_mha *all = tn_mha_new(.dim = 16, .heads = 4, .kv_heads = 4);
    ck_assert_int_eq(tn_size(few->k_proj->weight, 0), 8);
    tn_linear     *from[] = {few->q_proj, few->k_proj, few->v_proj, few->out_proj};
    tn_linear     *to[] = {all->q_proj, all->k_proj, all->v_proj, all->out_proj};
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < 4; i++) {
        const bool twice = i == 1 || i == 2;
        tn_tensor *w = from[i]->weight, *b = from[i]->bias;
        if (twice) w = tn_reshape(tn_repeat_interleave(tn_reshape(w, TN_SHAPE(2, 4, 16)), 2, 0), TN_SHAPE(16, 16));
        if (twice) b = tn_reshape(tn_repeat_interleave(tn_reshape(b, TN_SHAPE(2, 4)), 2, 0), TN_SHAPE(16));
        tn_copy_from(to[i]->weight, w), tn_copy_from(to[i]->bias, b);
    }
    tn_scope_end(s);
    tn_tensor *x = tn_normal(TN_SHAPE(2, T, 16), 0, 1);
    tn_tensor *masks[] = {NULL, tn_bernoulli_of(TN_BOOL, TN_SHAPE(T, T), 0.3),
                          tn_bernoulli_of(TN_BOOL, TN_SHAPE(8, T, T), 0.3), tn_normal(TN_SHAPE(2, 1, T, T), 0, 1)};
    tn_tensor *padding = tn_bernoulli_of(TN_BOOL, TN_SHAPE(2, T), 0.3);
    for (int i = 0; i < 4; i++) {
        tn_tensor *w[2], *y[2], *g[2];
        tn_mha    *m[2] = {few, all};
        for (int k = 0; k < 2; k++) {
            tn_tensor *leaf = tn_requires_grad(tn_detach(x));
            y[k] = tn_mha_forward(m[k], leaf, leaf, leaf, .attn_mask = masks[i], .key_padding_mask = padding,
                                  .causal = i < 2, .weights = &w[k], .weights_per_head = true);
            tn_backward(tn_sum(tn_square(y[k])));
            g[k] = tn_grad(leaf);
        }
        fine();
        ck_assert(tn_same_bits(y[0], y[1]) && tn_same_bits(w[0], w[1]));
        ck_assert_int_eq(tn_allclose(g[0], g[1], 1e-4, 1e-5), 1);
    }
    tn_free(few), tn_free(all);
}

static tn_tensor *of_block(tn_tensor *const *in, int n, void *m)
{
    (void)n;
    return tn_blocks_forward((tn_blocks *)m, in[0], .causal = true);
}
TEST_EACH(gradients, 4)
{
    static const tn_norm_order order[] = {TN_NORM_FIRST, TN_NORM_LAST, TN_NORM_PARALLEL, TN_NORM_PARALLEL_ONE};
    tn_block_config            c = {TN_BLOCK_DEFAULTS, .layers = 2, .dim = 8, .heads = 4, .attention.kv_heads = 2};
    c.ff = 6;
    c.dtype = TN_F64, c.norm.kind = _i < 2 ? TN_NORM_RMS : TN_NORM_LAYER, c.order = order[_i];
    c.gated = _i != 2, c.activation = tn_silu, c.dropout = 0.2;
    c.attention.positions = tn_rotary_new(.interleaved = _i == 2), c.no_bias = _i == 0, c.no_ff_bias = _i == 1;
    tn_blocks *m = tn_blocks_create(c);
    tn_tensor *x = tn_normal_of(TN_F64, TN_SHAPE(2, 3, 8), 0, 1);
    tn_gradcheck(of_block, .count = 1, .inputs = &x, .user = m, .name = "block");
    tn_free(m);
}

TEST(in_parallel)
{
    for (int one = 0; one < 2; one++) {
        tn_block *m =
            tn_block_new(.dim = 8, .heads = 2, .ff = 12, .order = one ? TN_NORM_PARALLEL_ONE : TN_NORM_PARALLEL,
                         .attention.positions = tn_rotary_new(.dim = 2));
        tn_tensor *x = tn_normal(TN_SHAPE(2, 3, 8), 0, 1);
        tn_eval(m);
        tn_tensor *h = tn_call(m->norm1, x), *k = one ? h : tn_call(m->norm2, x);
        tn_tensor *want = tn_add(x, tn_mha_forward(m->self_attn, h, h, h, .causal = true));
        want = tn_add(want, tn_call(m->linear2, tn_relu(tn_call(m->linear1, k))));
        ck_assert(tn_same_bits(tn_block_forward(m, x, .causal = true), want));
        ck_assert((m->norm2 == NULL) == one && m->norm3 == NULL && m->gate == NULL);
        fine();
        tn_free(m);
    }
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(wrong_use)
{
    ck_refused(tn_mha_new(.dim = 8, .heads = 4, .kv_heads = 3), TN_EINVAL,
               "tn_mha_new: .kv_heads is 3, but must divide .heads, which is 4");
    ck_refused(tn_mha_new(.dim = 12, .heads = 4, .positions = tn_rotary_new()), TN_EINVAL,
               "rotary: .dim is 3, but must be even and at most a head's 3");
    ck_refused(tn_transformer_decoder_layer_new(.dim = 8, .heads = 2, .order = TN_NORM_PARALLEL), TN_EINVAL,
               "tn_transformer_decoder_layer_new: .norm.kind is 0 and .order 4; expected a tn_norm_kind, and a "
               "tn_norm_order, of which a decoder has TN_NORM_LAST or TN_NORM_FIRST");
    ck_refused(tn_block_new(.dim = 8, .heads = 2, .attention.heads = 2), TN_EINVAL,
               "tn_block_new: .attention has no .dim, .heads, .kdim, .vdim, .dropout and .dtype of its own; set "
               "the block's .dim, .heads, .attention_dropout and .dtype");
    tn_mha    *m = tn_mha_new(.dim = 8, .heads = 2, .positions = tn_rotary_new());
    tn_tensor *x = tn_zeros(TN_SHAPE(1, 3, 8)), *y = tn_zeros(TN_SHAPE(1, 4, 8));
    tn_mha_forward(m, x, y, y);
    ck_error(TN_EINVAL, "mha: .positions need self-attention, but there are 3 queries and 4 keys");
    tn_free(m);
}

static const struct {
    const char *key, *value, *says;
} refused[] = {
    {"model_type", "\"mistral\"", "model_type is 'mistral'; supported: 'llama'"},
    {"attention_bias", "true", "attention_bias is true, which is not supported"},
    {"rope_scaling", "{\"rope_type\": \"yarn\"}", "rope_scaling is not empty, which is not supported"},
    {"hidden_act", "\"mish\"",
     "hidden_act is 'mish'; expected gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, relu, silu, swish or "
     "tanh"},
    {"rope_theta", "0", "rope_theta is 0, but must be from 1 to 1000000000"},
    {"num_hidden_layers", "0", "num_hidden_layers is 0, but must be from 1 to 1024"},
};
TEST(refused_by_name)
{
    const char *dir = tn_test_folder("refused");
    char        says[2000];
    decoder    *m = small();
    ck_assert_int_eq(tn_hf_write(m, dir, &files, &m->c), TN_OK);
    const char *path = tn_test_file("refused/config.json");
    tn_json    *was = tn_json_load(path);
    for (int i = 0; i < (int)(sizeof refused / sizeof *refused); i++) {
        tn_json        *value = tn_json_parse(refused[i].value, strlen(refused[i].value));
        tn_json_writer *w = tn_json_writer_new(0);
        tn_json_open_object(w, NULL);
        for (int64_t k = 0; k < tn_json_count(was); k++) {
            const tn_json *v = tn_json_at(was, k);
            if (strcmp(tn_json_key(v), refused[i].key)) tn_json_put(w, tn_json_key(v), v);
        }
        tn_json_put(w, refused[i].key, value);
        tn_json_close(w);
        ck_assert_int_eq(tn_json_save(w, path), TN_OK);
        tn_json_writer_free(w), tn_json_free(value);
        ck_assert_ptr_null(decoder_load(dir));
        snprintf(says, sizeof says, "'%s': %s", path, refused[i].says);
        ck_error(i < 4 ? TN_EUNSUPPORTED : TN_EFORMAT, says);
    }
    tn_json_free(was);
    tn_free(m);
}

/* A family of a program's own: a linear layer, which tn_model_open and tn_model_save know after it is registered. */
static void *load_scale(const tn_hf_source *s)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/scale.safetensors", tn_hf_source_path(s));
    tn_linear *m = tn_linear_new(.in = 2, .out = 3);
    if (tn_load(m, path) == TN_OK) return m;
    tn_free(m);
    return NULL;
}
static tn_status save_scale(void *m, const char *dir)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/config.json", dir);
    if (tn_file_write(path, "{\"model_type\": \"scale\"}", 23) != TN_OK) return tn_error();
    snprintf(path, sizeof path, "%s/scale.safetensors", dir);
    return tn_save((tn_linear *)m, path);
}
/* A load without its table closes the file and ends the scope in which parameters are not initialised. */
static void *without_table(const tn_hf_source *s)
{
    tn_hf_weights w;
    ck_assert(tn_hf_weights_open(&w, s, 0, 0));
    return tn_hf_weights_load(&w, tn_linear_new(.in = 2, .out = 2), NULL);
}
TEST(weights_without_a_table)
{
    tn_faulty_files_begin();
    ck_refused(tn_hf_load(tn_test_data("golden/llama/llama3"), without_table), TN_EINVAL,
               "tn_hf_weights_load: the table is NULL");
    ck_assert_int_eq(tn_open_files(), 0);
    tn_faulty_files_end();
    tn_linear *m = tn_linear_new(.in = 8, .out = 8);
    ck_assert(tn_item(tn_sum(tn_square(m->weight))) > 0);
    tn_free(m);
}

TEST(families)
{
    static const char *const types[] = {"scale", NULL}, *const known[] = {"new", "gpt2", NULL};
    static const tn_family scale = {TN_MODEL_OTHER, types, load_scale, save_scale},
                           again = {TN_MODEL_OTHER, types, load_scale, NULL},
                           gpt2 = {TN_MODEL_DECODER, known, load_scale, NULL},
                           none = {TN_MODEL_OTHER, types, NULL, NULL},
                           tuned = {TN_MODEL_TUNED, types, load_scale, NULL};
    const char *folder = tn_test_file("scale");
    ck_assert(!mkdir(folder, 0777));
    tn_linear *made = tn_linear_new(.in = 2, .out = 3);
    ck_assert_int_eq(save_scale(made, folder), TN_OK);

    ck_assert(!tn_model_open(folder).module);
    ck_error_has(TN_EUNSUPPORTED, "model_type is 'scale'; supported: ");
    ck_assert_int_eq(tn_family_register(&scale), TN_OK);
    ck_assert_int_eq(tn_family_register(&scale), TN_OK); /* once */
    tn_model m = tn_model_open(folder);
    fine();
    ck_assert(m.family == TN_MODEL_OTHER && !strcmp(m.type, "scale") && !m.tokenizer);
    ck_assert(tn_same_bits(((tn_linear *)m.module)->weight, made->weight));
    ck_assert(!remove(tn_test_file("scale/scale.safetensors")));
    ck_assert_int_eq(tn_model_save(&m, folder), TN_OK);
    tn_model_close(&m);
    m = tn_model_open(folder, .family = TN_MODEL_OTHER);
    fine();
    tn_model_close(&m);
    ck_assert(!tn_model_open(folder, .family = TN_MODEL_DECODER).module);
    ck_error_has(TN_EUNSUPPORTED, "model_type is 'scale'; supported: ");

    ck_fails(tn_family_register(&again), TN_EINVAL, "tn_family_register: another family has the model_type 'scale'");
    ck_fails(tn_family_register(&gpt2), TN_EINVAL, "tn_family_register: another family has the model_type 'gpt2'");
    tn_family_register(&none);
    ck_error(TN_EINVAL, "tn_family_register: a family must have .types and .load");
    tn_family_register(&tuned);
    ck_error_has(TN_EINVAL, "tn_family_register: 'scale': .family is 2, but must be");
    tn_free(made);
}
