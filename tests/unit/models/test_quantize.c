/* test_quantize.c — models with 8-bit, int8 or f16 weights: accuracy, saving, the same text with and without a cache,
 * and errors that change nothing. */
#include "core/core.h"
#include "models/models.h"
#include "optim/checkpoint.h"
#include "tests/common/check_main.h"

#include <unistd.h>

static tn_gpt *small(int64_t dim, bool untied)
{
    return tn_gpt_new(.vocab = 101, .positions = 40, .dim = dim, .layers = 3, .heads = 4, .untied = untied);
}
static tn_tensor *ids(int64_t rows, int64_t n) { return tn_randint(TN_SHAPE(rows, n), 0, 101); }
static void       ok(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }
static bool       same(const tn_tensor *a, const tn_tensor *b)
{
    return a && b && tn_dtype_of(a) == tn_dtype_of(b) && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)) &&
           !memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a) * tn_dtype_size(tn_dtype_of(a)));
}
static double cosine(tn_tensor *a, tn_tensor *b)
{
    a = tn_to(a, TN_F64), b = tn_to(b, TN_F64);
    return tn_item(tn_sum(tn_mul(a, b))) / sqrt(tn_item(tn_sum(tn_mul(a, a))) * tn_item(tn_sum(tn_mul(b, b))));
}

/* Operations without packed weights: Hugging Face's directories, averages, rebuilding an encoder. */
TEST(packed_where_it_cannot_be)
{
    const char *dir = tn_test_file("there");
    tn_bert    *b = tn_bert_new(.vocab = 40, .dim = 32, .layers = 1, .heads = 2, .positions = 16);
    mkdir(dir, 0700);
    ck_assert_int_eq(tn_bert_save(b, dir), TN_OK);
    ck_assert_int_eq(tn_quantize(b), TN_OK);
    ck_fails_has(tn_bert_save(b, dir), TN_EUNSUPPORTED,
                 "is packed (tn_quantize, tn_halve), which Hugging Face's format does not support");
    tn_bert *again = tn_bert_load(dir); /* the existing directory is intact */
    ok();
    ck_refused_has(tn_tuned_new(b, .n = 2), TN_EUNSUPPORTED,
                   "is packed (tn_quantize, tn_halve); pack the tuned model instead");
    tn_eval(again), tn_freeze(again, true);
    tn_tuned *t = tn_tuned_new(again, .n = 2);
    ok();
    ck_assert(!t->encoder->base.training && tn_count_trainable(t->encoder) == 0);
    ck_assert_int_eq(tn_lora(t, .rank = 2), TN_OK);
    ck_fails_has(tn_tuned_save(t, dir), TN_EUNSUPPORTED, "merge them (tn_lora_merge), or save them (tn_peft_save)");
    ck_assert_int_eq(tn_lora_merge(t), TN_OK);
    ck_assert_int_eq(tn_lora(t, .rank = 2), TN_OK); /* and again */
    ck_assert_int_eq(tn_lora_merge(t), TN_OK);
    ck_assert_int_eq(tn_tuned_save(t, dir), TN_OK);
    tn_free(t);

    tn_gpt *g = small(32, true);
    ck_assert_int_eq(tn_quantize(g), TN_OK);
    ck_assert_int_eq(tn_save(g, tn_test_file("g")), TN_OK);
    const tn_load_args from[] = {{.path = tn_test_file("g")}, {.path = tn_test_file("g")}};
    ck_fails_has(tn_load_mean(g, 2, from), TN_EUNSUPPORTED, "packed weights have no mean");
    tn_free(g);
}

/* GPT-2's matrices are transposed in its files; packed or not, the same model is loaded. */
TEST(packed_to_gguf)
{
    const char *path = tn_test_file("g.gguf");
    for (int f16 = 0; f16 < 2; f16++) {
        tn_gpt        *g = small(64, false);
        tn_tensor     *in = ids(1, 9);
        const tn_scope s = tn_no_grad_begin();
        tn_eval(g);
        ck_assert_int_eq(f16 ? tn_halve(g) : tn_quantize(g), TN_OK);
        tn_tensor *before = tn_gpt_forward(g, in);
        tn_model   d = {.family = TN_MODEL_DECODER, .module = g};
        ck_assert_msg(tn_model_save(&d, path, .type = f16 ? "f32" : "q8_0") == TN_OK, "%s", tn_error_message());
        tn_model again = tn_model_open(path);
        ok();
        ck_assert_double_gt(cosine(before, tn_lm_forward(again.lm, in)), 0.99999);
        tn_model_close(&again);
        tn_scope_end(s);
        tn_free(g);
    }
}

/* Accuracy; the module tree afterwards; copies and files. */
TEST(gpt)
{
    for (int untied = 0; untied < 2; untied++) {
        const char      *path = tn_test_file(untied ? "untied.safetensors" : "tied.safetensors");
        const char      *plain = tn_test_file("plain.safetensors");
        tn_gpt          *m = small(64, untied), *other = small(64, untied);
        const tn_tensor *words = m->words->weight;
        const int64_t    count = tn_count(m);
        tn_tensor       *in = ids(2, 21);
        tn_eval(m);
        tn_scope   n = tn_no_grad_begin();
        tn_tensor *before = tn_gpt_forward(m, in), *loss = tn_gpt_loss(m, in, NULL);
        ck_assert_int_eq(tn_quantize(m), TN_OK);
        tn_tensor *after = tn_gpt_forward(m, in);
        ok();
        ck_assert_msg(cosine(before, after) > 0.9999, "%.6f", cosine(before, after));
        ck_assert_double_lt(fabs(tn_item(tn_gpt_loss(m, in, NULL)) / tn_item(loss) - 1), 1e-3);
        /* every owner of the embedding has the 8-bit weights; the other weights are frozen */
        ck_assert(m->words->weight == words && tn_is_packed(words) && (untied || m->out == words) &&
                  tn_is_packed(m->out));
        ck_assert(tn_is_packed(((tn_block *)tn_at(m->blocks->layers, 1))->linear1->weight));
        ck_assert(tn_weight_dtype(words) == TN_F32 && tn_shape_equal(tn_weight_shape(words), TN_SHAPE(101, 64)));
        ck_assert_int_lt(tn_count(m), count / 20);
        ck_assert_int_eq(tn_count_trainable(m), 0);
        ck_assert(!m->base.training);
        ck_assert_int_eq(tn_quantize(m), TN_OK); /* nothing more to do */
        tn_gpt *copy = tn_copy(m);
        ck_assert(same(tn_gpt_forward(copy, in), after) && (untied || copy->out == copy->words->weight));
        /* a file with 8-bit weights loads into an 8-bit model */
        ck_assert_int_eq(tn_save(m, path), TN_OK);
        ck_assert_int_ne(tn_load(other, path), TN_OK);
        ck_error_has(TN_EFORMAT, "packed weights; call tn_quantize or tn_halve, as for the saved module, before");
        ck_assert_int_eq(tn_save(other, plain), TN_OK);
        ck_assert_int_ne(tn_load(m, plain), TN_OK);
        ck_error_has(TN_EFORMAT, "weights that are not packed; call tn_load before tn_quantize or tn_halve");
        tn_quantize(other);
        ck_assert_int_eq(tn_load(other, path), TN_OK);
        ck_assert(same(tn_gpt_forward(other, in), after));
        ok();
        tn_scope_end(n);
        tn_free(copy), tn_free(m), tn_free(other);
    }
}

/* Logits of all positions at once, and one by one with a cache, alone and in a batch: the same bits. */
TEST(cached)
{
    tn_gpt    *m = small(64, false);
    tn_scope   n = tn_no_grad_begin();
    tn_tensor *in = ids(20, 12);
    tn_quantize(m);
    tn_tensor   *all = tn_gpt_forward(m, in);
    tn_kv_cache *cache = tn_blocks_cache(m->blocks, 1, 12, 0);
    for (int64_t i = 0; i < 12; i++) {
        tn_tensor *one = tn_gpt_forward(m, tn_narrow(tn_narrow(in, 0, 3, 1), 1, i, 1), .cache = cache);
        ck_assert(same(one, tn_contiguous(tn_narrow(tn_narrow(all, 0, 3, 1), 1, i, 1))));
    }
    ok();
    tn_kv_cache_free(cache);
    tn_scope_end(n);
    tn_free(m);
}

/* BERT reads rows of its embeddings directly; bf16 weights keep their dtype. */
TEST(others)
{
    tn_bert *b = tn_bert_new(.vocab = 101, .positions = 32, .dim = 64, .layers = 2, .heads = 2, .ff = 96);
    tn_scope n = tn_no_grad_begin();
    tn_eval(b);
    tn_tensor *in = ids(2, 9), *before = tn_bert_forward(b, in);
    tn_quantize(b);
    ck_assert(cosine(before, tn_bert_forward(b, in)) > 0.9999);
    tn_gpt *m = small(64, false);
    tn_eval(m);
    tn_module_to(m, TN_BF16);
    before = tn_gpt_forward(m, in);
    tn_quantize(m);
    tn_tensor *after = tn_gpt_forward(m, in);
    ok();
    ck_assert_int_eq(tn_dtype_of(after), TN_BF16);
    ck_assert(cosine(before, after) > 0.9995);
    tn_decoding *d = tn_gpt_decoding(m, 1, 20);
    ck_assert_ptr_nonnull(tn_generate(d, ids(1, 5), .most = 5).tokens);
    ok();
    tn_decoding_free(d);
    tn_scope_end(n);
    tn_free(m), tn_free(b);
}

/* Weights that f16 represents exactly, as from an F16 file: the same logits, at any width, and the same file. */
TEST(halves)
{
    const char *path = tn_test_file("halves.safetensors");
    tn_gpt     *m = small(36, false), *other = small(36, false);
    tn_scope    n = tn_no_grad_begin();
    tn_tensor  *in = ids(2, 21);
    tn_eval(m);
    for (tn_each e = tn_parameters(m); tn_next(&e);)
        if (tn_ndim(e.tensor) == 2) {
            tn_tensor *exact = tn_unpack(tn_f16_pack(e.tensor));
            memcpy(tn_data_mut(e.tensor), tn_data(exact), (size_t)tn_numel(exact) * sizeof(float));
        }
    tn_tensor *before = tn_gpt_forward(m, in);
    ck_assert_int_eq(tn_halve(m), TN_OK);
    tn_tensor *after = tn_gpt_forward(m, in);
    ck_assert(same(before, after) && tn_is_packed(m->out) && tn_is_packed(m->words->weight));
    ck_assert_int_eq(tn_count_trainable(m), 0);
    ck_assert_int_eq(tn_save(m, path), TN_OK);
    tn_halve(other);
    ck_assert_int_eq(tn_load(other, path), TN_OK);
    ck_assert(same(tn_gpt_forward(other, in), after));
    ok();
    tn_scope_end(n);
    tn_free(m), tn_free(other);
    tn_linear *l = tn_linear_new(.in = 3, .out = 2);
    n = tn_no_grad_begin();
    tn_set(l->weight, 1, 1e5);
    tn_scope_end(n);
    ck_assert_int_eq(tn_halve(l), TN_EINVAL);
    ck_assert_msg(strstr(tn_error_message(), "weight: tn_f16_pack: the weights [2, 3] hold NaN") == tn_error_message(),
                  "%s", tn_error_message());
    tn_clear_error();
    ck_assert(!tn_is_packed(l->weight));
    tn_free(l);
}

/* 4 bits: an eighth of the memory, embeddings near those of f32, a file of its own; wrong options. */
TEST(four_bits)
{
    const char *path = tn_test_file("four-bits.safetensors");
    tn_bert    *b = tn_bert_new(.vocab = 101, .positions = 32, .dim = 128, .layers = 3, .heads = 4, .ff = 256);
    tn_bert    *other = tn_bert_new(.vocab = 101, .positions = 32, .dim = 128, .layers = 3, .heads = 4, .ff = 256);
    tn_scope    n = tn_no_grad_begin();
    tn_tensor  *in = ids(20, 13);
    tn_eval(b), tn_eval(other);
    tn_tensor *before = tn_bert_sentences(tn_bert_forward(b, in), NULL, TN_POOL_MEAN);
    ck_fails(tn_quantize(b, .bits = 3), TN_EINVAL, "tn_quantize: .bits is 3, but must be 8 or 4");
    ck_fails(tn_quantize(b, .bits = 4, .activations = true), TN_EINVAL,
             "tn_quantize: .activations is for 8 bits; products with .bits = 4 always round their input");
    ck_assert_int_eq(tn_quantize(b, .bits = 4), TN_OK);
    tn_tensor *hidden = tn_bert_forward(b, in), *after = tn_bert_sentences(hidden, NULL, TN_POOL_MEAN);
    for (int64_t i = 0; i < 20; i++) {
        const double near = cosine(tn_select(before, 0, i), tn_select(after, 0, i));
        ck_assert_msg(near > 0.95 && near < 0.99999, "%.6f", near);
    }
    for (tn_each e = tn_module_each(b, TN_EACH_SAVED); tn_next(&e);)
        if (tn_is_packed(e.tensor)) /* 18 bytes for 32 weights, and the padding of the last panel */
            ck_assert_int_le(tn_numel(e.tensor) - 64, (tn_weight_shape(e.tensor).d[0] + 15) / 16 * 16 *
                                                          tn_weight_shape(e.tensor).d[1] * 18 / 32);
    ck_assert_int_eq(tn_save(b, path), TN_OK);
    ck_assert_int_eq(tn_quantize(other, .bits = 8), TN_OK);
    ck_assert_int_ne(tn_load(other, path), TN_OK); /* another kind */
    tn_clear_error();
    tn_free(other);
    other = tn_bert_new(.vocab = 101, .positions = 32, .dim = 128, .layers = 3, .heads = 4, .ff = 256);
    ck_assert(tn_quantize(other, .bits = 4) == TN_OK && tn_load(other, path) == TN_OK);
    ck_assert(same(tn_bert_forward(other, in), hidden));
    ok();
    tn_scope_end(n);
    tn_free(b), tn_free(other);
}

/* Weights and activations of 8 bits: an encoder of any width, its embeddings close to those of f32, the same bits for a
 * text alone; files, copies and errors as with 8-bit weights. */
TEST(int8)
{
    const char *path = tn_test_file("int8.safetensors"), *check = tn_test_file("int8.ckpt");
    tn_bert    *b = tn_bert_new(.vocab = 101, .positions = 32, .dim = 132, .layers = 4, .heads = 4, .ff = 270);
    tn_bert    *other = tn_bert_new(.vocab = 101, .positions = 32, .dim = 132, .layers = 4, .heads = 4, .ff = 270);
    tn_scope    n = tn_no_grad_begin();
    tn_tensor  *in = ids(20, 13);
    tn_eval(b), tn_eval(other);
    tn_tensor *before = tn_bert_sentences(tn_bert_forward(b, in), NULL, TN_POOL_MEAN);
    ck_assert_int_eq(tn_quantize(other), TN_ESHAPE); /* this width has no 8-bit weights */
    tn_clear_error();
    ck_assert_int_eq(tn_quantize(b, .activations = true), TN_OK);
    tn_tensor *hidden = tn_bert_forward(b, in), *after = tn_bert_sentences(hidden, NULL, TN_POOL_MEAN);
    for (int64_t i = 0; i < 20; i++) {
        const double near = cosine(tn_select(before, 0, i), tn_select(after, 0, i));
        ck_assert_msg(near > 0.995, "%.6f", near);
    }
    ck_assert(same(tn_bert_forward(b, tn_narrow(in, 0, 7, 1)), tn_contiguous(tn_narrow(hidden, 0, 7, 1))));
    tn_bert *copy = tn_copy(b);
    ck_assert(same(tn_bert_forward(copy, in), hidden) && tn_count_trainable(copy) == 0);
    ck_assert(tn_save(b, path) == TN_OK && tn_checkpoint_save(check, .module = b) == TN_OK);
    ck_assert_int_ne(tn_load(other, path), TN_OK);
    tn_clear_error();
    ck_assert_int_eq(tn_quantize(other, .activations = true), TN_OK);
    ck_assert_int_eq(tn_load(other, path), TN_OK);
    ck_assert(same(tn_bert_forward(other, in), hidden));
    tn_checkpoint_file *f = tn_checkpoint_open(check);
    ck_assert_int_eq(tn_checkpoint_restore(f, .module = copy), TN_OK);
    tn_checkpoint_close(f);
    ck_assert(same(tn_bert_forward(copy, in), hidden));
    ok();
    tn_scope_end(n);
    tn_free(b), tn_free(other), tn_free(copy);
    tn_linear *l = tn_linear_new(.in = 33, .out = 8, .dtype = TN_F64);
    ck_fails_has(tn_quantize(l, .activations = true), TN_EDTYPE, "weight: tn_quantize: the weight is f64");
    tn_module_to(l, TN_F32);
    n = tn_no_grad_begin();
    tn_set(l->weight, 40, NAN);
    tn_scope_end(n);
    ck_fails(tn_quantize(l, .activations = true), TN_EINVAL,
             "weight: tn_int8_pack: the weights [8, 33] hold NaN or an infinity");
    ck_assert(!tn_is_packed(l->weight));
    tn_free(l);
}

/* Weights that are packed while they are read have the bits of those that tn_quantize packs: whole, transposed and
 * joined ones, those that the file has in parts, tied ones. */
static tn_tensor *(*const packers[])(const tn_tensor *) = {tn_q8_pack, tn_int8_pack, tn_q4_pack, tn_f16_pack};
static tn_status pack_with(void *m, int i)
{
    return i == 3 ? tn_module_halve(m)
                  : tn_quantize_run((tn_quantize_args){.module = m, .activations = i == 1, .bits = i == 2 ? 4 : 8});
}
TEST_EACH(packed_when_read, 3)
{
    const char *dir = tn_test_folder("packed-when-read");
    void       *made;
    if (_i == 0) made = small(64, false);
    else if (_i == 1)
        made = tn_llama_new(.vocab = 101, .positions = 40, .dim = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 96,
                            .type = "phi3");
    else made = tn_bert_new(.vocab = 101, .positions = 40, .dim = 64, .layers = 2, .heads = 2);
    const tn_model to = {_i == 2 ? TN_MODEL_ENCODER : TN_MODEL_DECODER, .module = made};
    ck_assert_int_eq(tn_model_save(&to, dir), TN_OK);
    tn_module_free(made);
    for (int k = 0; k < 4; k++) {
        const tn_scope s = tn_no_grad_begin();
        tn_model       a = tn_model_open(dir, .pack = packers[k]), b = tn_model_open(dir);
        ok();
        ck_assert_int_eq(pack_with(b.module, k), TN_OK);
        tn_each x = tn_module_each(a.module, TN_EACH_SAVED), y = tn_module_each(b.module, TN_EACH_SAVED);
        while (tn_next(&x) && tn_next(&y)) ck_assert_msg(same(x.tensor, y.tensor), "%s", x.name);
        ck_assert(!tn_next(&y) && !tn_module_count(a.module, true));
        tn_tensor *in = ids(2, 9);
        ck_assert(_i == 2 ? same(tn_bert_forward(a.bert, in), tn_bert_forward(b.bert, in))
                          : same(tn_lm_forward(a.lm, in), tn_lm_forward(b.lm, in)));
        ok();
        tn_model_close(&a), tn_model_close(&b);
        tn_scope_end(s);
    }
    /* a module that exists: an error leaves its weights as they were */
    tn_linear *l = tn_linear_new(.in = 33, .out = 8, .no_bias = true),
              *m = tn_linear_new(.in = 33, .out = 8, .no_bias = true);
    const char *path = tn_test_file("packed-when-read.safetensors");
    ck_assert_int_eq(tn_save(l, path), TN_OK);
    ck_fails_has(tn_load(m, path, .pack = tn_q8_pack), TN_ESHAPE,
                 "weight: tn_q8_pack: the width of the weights [8, 33] must be a multiple of 32");
    ck_assert(!tn_is_packed(m->weight) && tn_needs_grad(m->weight));
    ck_assert_int_eq(tn_load(m, path, .pack = tn_int8_pack), TN_OK);
    ck_assert(tn_is_packed(m->weight) && !tn_is_packed(l->weight));
    tn_free(l), tn_free(m);
}

/* A decoder with cross-attention, whose key and value projections are rows of one weight. */
TEST(memory)
{
    tn_blocks *m = tn_transformer_decoder_new(.layers = 2, .dim = 64, .heads = 4, .ff = 64, .dropout = 0);
    tn_scope   n = tn_no_grad_begin();
    tn_tensor *x = tn_normal(TN_SHAPE(2, 5, 64), 0, 1), *other = tn_normal(TN_SHAPE(2, 7, 64), 0, 1);
    tn_tensor *before = tn_transformer_decoder_forward(m, x, other);
    tn_quantize(m);
    ck_assert(cosine(before, tn_transformer_decoder_forward(m, x, other)) > 0.9999);
    ok();
    tn_scope_end(n);
    tn_free(m);
}

typedef enum { Q8_0, F16, INT8 } packing;
static tn_linear *packed(packing to, tn_dtype dt, int64_t out, int64_t in)
{
    tn_linear *m = tn_linear_new(.in = in, .out = out, .no_bias = true, .dtype = dt);
    if (to == F16) tn_halve(m);
    else tn_quantize(m, .activations = to == INT8);
    return m;
}

/* Packed matrices of different shapes and dtypes may be u8 tensors of one length: loading compares their content. */
TEST(of_another_matrix)
{
    static const struct {
        packing     as, to_as;
        tn_dtype    from_type;
        int64_t     from[2], to[2];
        const char *text;
    } rows[] = {
        {Q8_0, Q8_0, TN_F32, {40, 32}, {60, 32}, "[60, 32] of f32 in 8 bits"},
        {Q8_0, Q8_0, TN_F32, {64, 64}, {128, 32}, "[128, 32] of f32 in 8 bits"},
        {F16, F16, TN_F32, {40, 5}, {60, 5}, "[60, 5] of f32 in f16"},
        {F16, Q8_0, TN_F32, {64, 17}, {64, 32}, "[64, 32] of f32 in 8 bits"},
        {INT8, INT8, TN_F32, {40, 31}, {48, 32}, "[48, 32] of f32 in int8"},
        {INT8, INT8, TN_BF16, {48, 32}, {48, 32}, "[48, 32] of f32 in int8"},
        {F16, INT8, TN_F32, {64, 16}, {64, 24}, "[64, 24] of f32 in int8"},
        {Q8_0, Q8_0, TN_BF16, {60, 32}, {60, 32}, "[60, 32] of f32 in 8 bits"},
    };
    const char *path = tn_test_file("packed.safetensors"), *check = tn_test_file("packed.ckpt");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_linear     *a = packed(rows[i].as, rows[i].from_type, rows[i].from[0], rows[i].from[1]);
        tn_linear     *b = packed(rows[i].to_as, TN_F32, rows[i].to[0], rows[i].to[1]);
        tn_load_report report;
        const tn_scope n = tn_no_grad_begin();
        tn_tensor     *was = tn_clone(b->weight);
        ck_assert(tn_save(a, path) == TN_OK && tn_checkpoint_save(check, .module = a) == TN_OK);
        ck_assert(tn_numel(a->weight) == tn_numel(b->weight));
        ck_fails_has(tn_load(b, path, .report = &report), TN_EFORMAT, rows[i].text);
        ck_assert(report.mismatched == 1 && report.loaded == 0);
        ck_fails_has(tn_assign(b, a), TN_ESHAPE, rows[i].text);
        tn_checkpoint_file *f = tn_checkpoint_open(check);
        ck_fails_has(tn_checkpoint_restore(f, .module = b), TN_EFORMAT, rows[i].text);
        ck_assert(same(was, b->weight));
        ck_assert(tn_load(a, path) == TN_OK && tn_assign(a, a) == TN_OK);
        ck_assert_int_eq(tn_checkpoint_restore(f, .module = a), TN_OK);
        tn_checkpoint_close(f);
        tn_scope_end(n);
        tn_free(a), tn_free(b);
    }
}

/* A u8 tensor of the right length that is not a packed weight; tests the whole message. */
TEST(of_no_matrix)
{
    const char            *path = tn_test_file("bytes.safetensors");
    tn_linear             *m = packed(Q8_0, TN_F32, 60, 32);
    const tn_scope         n = tn_no_grad_begin();
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_sequential         *plain = tn_sequential_new();
    tn_tensor             *was = tn_clone(m->weight), *bytes = tn_full_of(TN_U8, TN_SHAPE(2240), 255);
    char                   text[600];
    tn_safetensors_put(w, "weight", bytes);
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
    ok();
    tn_load(m, path);
    snprintf(text, sizeof text,
             "tn_load: '%s' holds another model: 1 of another shape: weight is [60, 32] of f32 in 8 bits, the file has "
             "[2240] of u8",
             path);
    ck_error_has(TN_EFORMAT, text);
    tn_buffer(plain, "weight", bytes);
    tn_assign(m, plain);
    ck_error_has(TN_ESHAPE,
                 "tn_assign: 'weight' is [60, 32] of f32 in 8 bits in one module and [2240] of u8 in the other");
    tn_save(m, path);
    ck_assert_int_eq(tn_load(plain, path), TN_OK); /* bytes are bytes */
    ck_assert(same(was, m->weight) && same(was, bytes));
    tn_scope_end(n);
    tn_free(m), tn_free(plain);
}

TEST(refused)
{
    tn_gpt    *m = small(72, false);
    tn_linear *l = tn_linear_new(.in = 32, .out = 8);
    ck_assert_int_eq(tn_quantize(m), TN_ESHAPE);
    ck_assert_str_eq(tn_error_message(),
                     "transformer.wte.weight: tn_q8_pack: the width of the weights [101, 72] must be a "
                     "multiple of 32, which share a scale");
    tn_clear_error();
    ck_assert(!tn_is_packed(m->out) && tn_needs_grad(m->out) && m->base.training);
    tn_scope n = tn_no_grad_begin();
    tn_set(l->weight, 33, INFINITY);
    tn_scope_end(n);
    ck_assert_int_eq(tn_quantize(l), TN_EINVAL);
    ck_assert_msg(strstr(tn_error_message(), "weight: tn_q8_pack: the weights [8, 32] hold NaN") == tn_error_message(),
                  "%s", tn_error_message());
    tn_clear_error();
    ck_assert(!tn_is_packed(l->weight));
    tn_free(l), tn_free(m);
    /* no matrix product with f64 rows */
    for (int half = 0; half < 2; half++) {
        l = tn_linear_new(.in = 32, .out = 8, .dtype = TN_F64);
        ck_fails_has(half ? tn_halve(l) : tn_quantize(l), TN_EDTYPE,
                     half ? "weight: tn_halve: the weight is f64" : "weight: tn_quantize: the weight is f64");
        ck_assert(!tn_is_packed(l->weight) && tn_needs_grad(l->weight));
        tn_module_to(l, TN_F32);
        ck_assert_int_eq(half ? tn_halve(l) : tn_quantize(l), TN_OK);
        n = tn_no_grad_begin();
        ck_assert_ptr_nonnull(tn_call(l, tn_ones(TN_SHAPE(1, 32))));
        tn_scope_end(n);
        /* packed weights keep their dtype: biases of another dtype would not match */
        for (int i = 0; i < 2; i++) {
            ck_fails_has(tn_module_to(l, i ? TN_BF16 : TN_F64), TN_EDTYPE,
                         i ? "tn_module_to: 'weight' is packed (8 bits or f16) and unpacks to f32, not bf16"
                           : "tn_module_to: 'weight' is packed (8 bits or f16) and unpacks to f32, not f64");
            ck_assert_int_eq(tn_dtype_of(l->bias), TN_F32);
        }
        ck_assert_int_eq(tn_module_to(l, TN_F32), TN_OK);
        tn_free(l);
    }
}

/* A published sentence encoder in int8: the vectors of about 1,000 sentences are near those of f32. */
TEST(int8_of_a_published_model)
{
    static const char *const texts[] = {"reviews", "novels", "speeches", "wiki"};
    enum { EACH = 250, MOST = 300 };
    const char *dir = getenv("TENON_SENTENCE_MODEL"), *first = tn_test_data("../../shared/data/prose/reviews.txt");
    if (!dir || access(first, R_OK) != 0) {
        printf("SKIPPED: int8_of_a_published_model: TENON_SENTENCE_MODEL names no directory, or there is no "
               "shared/data/prose beside the project\n");
        return;
    }
    tn_model m = tn_model_open(dir, .family = TN_MODEL_ENCODER, .needs_tokenizer = true);
    ok();
    tn_bert *exact = tn_copy(m.bert);
    tn_eval(exact);
    tn_quantize(m.bert, .activations = true);
    ok();
    double         sum = 0, least = 1;
    int            n = 0;
    const tn_scope s = tn_no_grad_begin();
    for (int f = 0; f < 4; f++) {
        tn_lines     *l = tn_lines_load(tn_test_data(tn_name("../../shared/data/prose/%s.txt", texts[f])));
        const int64_t lines = tn_lines_count(l), every = 1 + lines / (4 * EACH);
        int           taken = 0;
        for (int64_t i = 0; taken < EACH && i < lines; i += every) {
            char          sentence[MOST + 1];
            const tn_text t = tn_lines_at(l, i);
            if (t.bytes < 20 || t.bytes > MOST) continue;
            memcpy(sentence, t.at, t.bytes), sentence[t.bytes] = 0;
            const char    *one = sentence;
            const tn_scope step = tn_scope_begin();
            const double   near = cosine(tn_bert_embed(m.bert, m.tokenizer, 1, &one, TN_POOL_MEAN),
                                         tn_bert_embed(exact, m.tokenizer, 1, &one, TN_POOL_MEAN));
            tn_scope_end(step);
            ok();
            sum += near, least = near < least ? near : least, n++, taken++;
        }
        tn_lines_free(l);
    }
    tn_scope_end(s);
    printf("int8: %d sentences: cosine %.6f on average, %.6f at least\n", n, sum / n, least);
    ck_assert_int_ge(n, 900);
    ck_assert_double_ge(sum / n, 0.999);
    ck_assert_double_ge(least, 0.995);
    tn_free(exact), tn_model_close(&m);
}
