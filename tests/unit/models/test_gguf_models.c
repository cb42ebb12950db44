/* test_gguf_models.c — GGUF files of other programs: keys have llama.cpp's meaning, or the error names them; models and
 * tokenizers that GGUF cannot represent are not written. Each case was verified with llama.cpp. */
#define _GNU_SOURCE
#include "models/models.h"
#include "tests/common/check_main.h"

/* ---- a file of another program ----------------------------------------------------------------------------------- */

enum { WORDS = 12, DIM = 16, HEADS = 2, FF = 24 };

static void puts_tensor(tn_gguf_writer *w, const char *name, tn_shape shape)
{
    ck_assert_int_eq(tn_safetensors_put(tn_gguf_writer_tensors(w), name, tn_normal(shape, 0, 0.5)), TN_OK);
}

/* experts: 0, or their number: a Mixtral. */
static tn_gguf_writer *begun_with(int experts)
{
    static const char *const keys[] = {"llama.context_length", "llama.embedding_length", "llama.block_count",
                                       "llama.feed_forward_length", "llama.attention.head_count"};
    static const int         values[] = {64, DIM, 1, FF, HEADS};
    tn_gguf_writer          *w = tn_gguf_writer_new();
    tn_seed(3);
    tn_gguf_put_string(w, "general.architecture", "llama");
    for (int i = 0; i < 5; i++) tn_gguf_put_u32(w, keys[i], values[i]);
    tn_gguf_put_float(w, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    ck_fails(tn_gguf_put_float(w, "large", 1e300), TN_EINVAL,
             "tn_gguf_put_float: 'large' is 1e+300, beyond the range of f32");
    puts_tensor(w, "token_embd.weight", TN_SHAPE(WORDS, DIM));
    puts_tensor(w, "output_norm.weight", TN_SHAPE(DIM));
    puts_tensor(w, "blk.0.attn_norm.weight", TN_SHAPE(DIM)), puts_tensor(w, "blk.0.ffn_norm.weight", TN_SHAPE(DIM));
    puts_tensor(w, "blk.0.attn_q.weight", TN_SHAPE(DIM, DIM)),
        puts_tensor(w, "blk.0.attn_k.weight", TN_SHAPE(DIM, DIM));
    puts_tensor(w, "blk.0.attn_v.weight", TN_SHAPE(DIM, DIM));
    puts_tensor(w, "blk.0.attn_output.weight", TN_SHAPE(DIM, DIM));
    if (experts) {
        tn_gguf_put_u32(w, "llama.expert_count", experts), tn_gguf_put_u32(w, "llama.expert_used_count", 1);
        puts_tensor(w, "blk.0.ffn_gate_inp.weight", TN_SHAPE(experts, DIM));
        puts_tensor(w, "blk.0.ffn_gate_exps.weight", TN_SHAPE(experts, FF, DIM));
        puts_tensor(w, "blk.0.ffn_up_exps.weight", TN_SHAPE(experts, FF, DIM));
        puts_tensor(w, "blk.0.ffn_down_exps.weight", TN_SHAPE(experts, DIM, FF));
        return w;
    }
    puts_tensor(w, "blk.0.ffn_gate.weight", TN_SHAPE(FF, DIM)),
        puts_tensor(w, "blk.0.ffn_up.weight", TN_SHAPE(FF, DIM));
    puts_tensor(w, "blk.0.ffn_down.weight", TN_SHAPE(DIM, FF));
    return w;
}
static tn_gguf_writer *begun(void) { return begun_with(0); }

static tn_model opened(tn_gguf_writer *w)
{
    const char *path = tn_test_file("others.gguf");
    ck_assert_msg(tn_gguf_save(w, path, NULL) == TN_OK, "%s", tn_error_message());
    tn_gguf_writer_free(w);
    return tn_model_open(path);
}

/* The logits of a text by a file's model. */
static tn_tensor *scored(tn_gguf_writer *w)
{
    int64_t  numbers[] = {5, 1, 11, 0, 7, 7, 2, 3};
    tn_model d = opened(w);
    fine();
    tn_tensor *y = tn_lm_run(d.lm, (tn_decoder_args){.ids = tn_from_data(TN_I64, TN_SHAPE(1, 8), numbers)});
    fine();
    tn_model_close(&d);
    return y;
}

static void refused(tn_gguf_writer *w, tn_status status, const char *part)
{
    ck_assert(!opened(w).lm);
    ck_error_has(status, part);
}

/* ---- experts ----------------------------------------------------------------------------------------------------- */

/* The matrices of experts are one tensor with 3 dims. */
TEST(stacks_of_experts)
{
    static const struct {
        int         count;
        tn_shape    shape;
        const char *says;
    } rows[] = {
        {3,
         {.n = 2, .d = {3 * FF, DIM}},
         "'blk.0.ffn_up_exps.weight' has 2 dims, the first one is 72; expected 3 dims"},
        {3,
         {.n = 3, .d = {2, FF, DIM}},
         "the first one is 2; expected 3 dims, the first one llama.expert_count, which"},
        {5000, {.n = 3, .d = {5000, 1, 1}}, "num_local_experts is 5000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_gguf_writer *w = begun();
        tn_gguf_put_u32(w, "llama.expert_count", rows[i].count), tn_gguf_put_u32(w, "llama.expert_used_count", 2);
        puts_tensor(w, "blk.0.ffn_up_exps.weight", rows[i].shape);
        refused(w, TN_EFORMAT, rows[i].says);
    }
}

/* ---- rotary positions -------------------------------------------------------------------------------------------- */

#define SCALING "llama.rope.scaling."

static void scale(tn_gguf_writer *w, const char *type, double factor, double older)
{
    if (type) tn_gguf_put_string(w, SCALING "type", type);
    if (factor >= 0) tn_gguf_put_float(w, SCALING "factor", factor);
    if (older >= 0) tn_gguf_put_float(w, "llama.rope.scale_linear", older);
}

/* Without a base the angles have llama.cpp's, not the one of the family's config.json, which is 1e6 for a Mixtral. */
TEST(no_base)
{
    for (int experts = 0; experts <= 2; experts += 2) {
        tn_gguf_writer *given = begun_with(experts), *other = begun_with(experts);
        tn_gguf_put_float(given, "llama.rope.freq_base", 1e4), tn_gguf_put_float(other, "llama.rope.freq_base", 1e6);
        tn_tensor *y = scored(begun_with(experts));
        ck_assert_msg(tn_same_bits(y, scored(given)) && !tn_same_bits(y, scored(other)), "%d experts", experts);
    }
}

/* A factor without a type is linear. */
TEST(scales_without_a_type)
{
    static const struct {
        const char *type;
        double      factor, older;
        int         like; /* a factor of 1, or of 4 */
    } rows[] = {{"linear", 4, -1, 4}, {NULL, 4, -1, 4},     {NULL, -1, 4, 4}, {"linear", -1, 4, 4},
                {NULL, 4, 2, 4},      {"none", 4, -1, 1},   {NULL, 1, -1, 1}, {NULL, 0, -1, 1},
                {NULL, 0, 4, 1},      {"linear", 1, -1, 1}, {NULL, -1, 1, 1}, {"linear", -1, -1, 1}};
    tn_gguf_writer *w = begun();
    scale(w, "linear", 4, -1);
    tn_tensor *four = scored(w), *plain = scored(begun());
    ck_assert(!tn_same_bits(four, plain));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w = begun(), scale(w, rows[i].type, rows[i].factor, rows[i].older);
        ck_assert_msg(tn_same_bits(scored(w), rows[i].like == 4 ? four : plain), "row %zu", i);
    }
    w = begun(), scale(w, "yarn", 4, -1);
    refused(w, TN_EUNSUPPORTED, SCALING "type has a value that is not supported");
}

static tn_gguf_writer *with_factors(double last)
{
    tn_gguf_writer *w = begun();
    tn_tensor      *f = tn_ones(TN_SHAPE(DIM / HEADS / 2));
    ((float *)tn_data_mut(f))[DIM / HEADS / 2 - 1] = (float)last;
    ck_assert_int_eq(tn_safetensors_put(tn_gguf_writer_tensors(w), "rope_freqs.weight", f), TN_OK);
    return w;
}

/* llama.cpp scales by both. */
TEST(scales_once)
{
    tn_gguf_writer *w = begun();
    scale(w, "linear", 4, -1);
    tn_tensor *four = scored(w);
    w = with_factors(1), scale(w, NULL, 4, -1);
    ck_assert(tn_same_bits(scored(w), four));
    w = with_factors(8), scale(w, "linear", 4, -1);
    refused(w, TN_EUNSUPPORTED, "angles are scaled twice, by rope.scaling.factor and by rope_freqs.weight");
    w = with_factors(8), scale(w, NULL, -1, 4);
    refused(w, TN_EUNSUPPORTED, "angles are scaled twice");
}

/* llama.cpp multiplies by it, also by 0. */
TEST(scales_no_attention)
{
    static const double others[] = {0.5, 0};
    tn_gguf_writer     *w = begun();
    tn_gguf_put_float(w, SCALING "attn_factor", 1);
    ck_assert(tn_same_bits(scored(w), scored(begun())));
    for (int i = 0; i < 2; i++) {
        w = begun(), tn_gguf_put_float(w, SCALING "attn_factor", others[i]);
        refused(w, TN_EUNSUPPORTED, SCALING "attn_factor has a value that is not supported");
    }
}

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

#define BYTE_LEVEL "{'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': true, 'use_regex': true}"
#define ADDED(id, text, special)                                                                     \
    "{'id': " id ", 'content': '" text "', 'single_word': false, 'lstrip': false, 'rstrip': false, " \
    "'normalized': false, 'special': " special "}"
/* GPT-2's kind: one token is special, one is added but not special, and id 6 has no token. */
static const char bytes[] = "{'added_tokens': [" ADDED("5", "<|end|>", "true") "," ADDED(
    "7", "<ab>", "false") "],"
                          "'pre_tokenizer': " BYTE_LEVEL ", 'decoder': " BYTE_LEVEL ", 'model': {'type': "
                          "'BPE', 'vocab': {'a': 0, 'b': 1, '<': 2, '>': 3, 'ab': 4, '<|end|>': 5, '<ab>': 7}, "
                          "'merges': ['a b']}}";
/* SentencePiece's kind as written by transformers. */
static const char sentence[] = "{'added_tokens': [" ADDED("0", "<unk>", "true") "," ADDED("1", "<s>", "true") "," ADDED(
    "7", "<ab>",
    "false") "],"
             "'normalizer': {'type': 'Sequence', 'normalizers': [{'type': 'Prepend', 'prepend': '\xe2\x96\x81'}, "
             "{'type': 'Replace', 'pattern': {'String': ' '}, 'content': '\xe2\x96\x81'}]}, "
             "'decoder': {'type': 'Sequence', 'decoders': [{'type': 'Replace', 'pattern': {'String': "
             "'\xe2\x96\x81'}, 'content': ' '}, {'type': 'ByteFallback'}, {'type': 'Fuse'}, {'type': "
             "'Strip', 'content': ' ', 'start': 1, 'stop': 0}]}, "
             "'model': {'type': 'BPE', 'unk_token': '<unk>', 'fuse_unk': true, 'byte_fallback': true, 'vocab': "
             "{'<unk>': 0, '<s>': 1, '\xe2\x96\x81': 2, 'a': 3, 'b': 4, 'ab': 5, '<ab>': 7}, 'merges': ['a b']}}";

static void *small(int64_t vocab)
{
    return tn_llama_new(.vocab = vocab, .dim = 32, .layers = 1, .heads = 2, .ff = 32, .positions = 64);
}

/* A model with a tokenizer, from JSON with single quotes. */
static tn_model with(const char *json, int64_t vocab)
{
    char text[4096] = "";
    for (size_t i = 0; json[i] && i < sizeof text - 1; i++) text[i] = (char)(json[i] == '\'' ? '"' : json[i]);
    tn_model d = {
        .family = TN_MODEL_DECODER, .module = small(vocab), .tokenizer = tn_tokenizer_parse(text, strlen(text))};
    fine();
    return d;
}

static tn_model again(const tn_model *d, const char *path)
{
    ck_assert_msg(tn_model_save(d, path) == TN_OK, "%s", tn_error_message());
    tn_model e = tn_model_open(path);
    ck_assert_msg(e.lm, "%s", tn_error_message());
    return e;
}

static void gives(const tn_tokenizer *t, const char *text, int64_t n, const int32_t *want)
{
    tn_encoding *e = tn_encoding_new();
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text), .bare = true), TN_OK);
    for (int64_t i = 0; i < n && i < e->n; i++)
        ck_assert_msg(e->id[i] == want[i], "'%s': %lld is %d", text, (long long)i, e->id[i]);
    ck_assert_int_eq(e->n, n);
    tn_encoding_free(e);
}
#define GIVES(t, text, ...) gives(t, text, sizeof((const int32_t[]){__VA_ARGS__}) / 4, (const int32_t[]){__VA_ARGS__})

/* The texts and types of a file's tokens i. */
static void piece_is(const char *path, int64_t count, int64_t i, const char *text, int32_t type)
{
    tn_gguf         *g = tn_gguf_open(path);
    const tn_tensor *types = tn_gguf_numbers(g, "tokenizer.ggml.token_type");
    ck_assert(types && tn_numel(types) == count);
    ck_assert_int_eq(((const int32_t *)tn_data(types))[i], type);
    for (tn_gguf_strings s = tn_gguf_strings_of(g, "tokenizer.ggml.tokens"); tn_gguf_next(&s);)
        if (s.i == i) ck_assert_msg(s.bytes == strlen(text) && !memcmp(s.text, text, s.bytes), "it is %s", s.text);
    tn_gguf_close(g);
}

/* llama.cpp requires as many tokens as the vocabulary has ids. A folder has no padding tokens. */
TEST_EACH(fills_up_its_pieces, 2)
{
    const char *path = tn_test_file("filled.gguf"), *dir = tn_test_folder("filled");
    tn_model    d = with(_i ? sentence : bytes, 10), e = again(&d, path), f = again(&e, dir), h = again(&f, path);
    piece_is(path, 10, 6, "[PAD6]", TN_TYPE_UNUSED), piece_is(path, 10, 9, "[PAD9]", TN_TYPE_UNUSED);
    const tn_model *const all[] = {&d, &e, &f, &h};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(tn_tokenizer_size(all[i]->tokenizer), 8);
        ck_assert_str_eq(tn_tokenizer_token(all[i]->tokenizer, 6), "");
        if (_i) GIVES(all[i]->tokenizer, "ab", 2, 5);
        else GIVES(all[i]->tokenizer, "ab", 4);
    }
    tn_model_close(&d), tn_model_close(&e), tn_model_close(&f), tn_model_close(&h);
    ck_assert(!tn_file_read(tn_test_in(dir, "tokenizer.model"), 1 << 16)); /* this format allows no gaps */
    ck_error_has(TN_EIO, "tokenizer.model");
    d = with(bytes, 7);
    ck_assert(tn_model_save(&d, path) != TN_OK);
    ck_error_has(TN_EFORMAT, "the tokenizer has 8 tokens, but the model only 7 token ids");
    tn_model_close(&d);
}

/* Added tokens that are not special keep their type. */
TEST_EACH(finds_what_is_added, 2)
{
    const char *path = tn_test_file("added.gguf"), *dir = tn_test_folder("added");
    tn_model    d = with(_i ? sentence : bytes, 8), e = again(&d, path), f = again(&e, dir);
    piece_is(path, 8, 7, "<ab>", TN_TYPE_USER), piece_is(path, 8, _i ? 1 : 5, _i ? "<s>" : "<|end|>", TN_TYPE_CONTROL);
    const tn_model *const all[] = {&d, &e, &f};
    for (int i = 0; i < 3; i++) {
        const tn_tokenizer *t = all[i]->tokenizer;
        if (_i) GIVES(t, "ab<ab>ab<s>ab", 2, 5, 7, 2, 5, 1, 2, 5);
        else GIVES(t, "ab<ab><ab", 4, 7, 2, 4);
        ck_assert(!tn_tokenizer_is_special(t, 7) && tn_tokenizer_is_special(t, _i ? 1 : 5));
    }
    tn_model_close(&d), tn_model_close(&e), tn_model_close(&f);
}

/* Added tokens are searched first in the raw text, as in llama.cpp for all kinds: "<|a|>b" is a space, the token, and a
 * b without its space; spaces in such a token are not replaced. */
TEST(finds_before_anything_else)
{
    static const char *const piece[] = {"<unk>",
                                        "<s>",
                                        "</s>",
                                        "\xe2\x96\x81",
                                        "a",
                                        "b",
                                        ("\xe2\x96\x81"
                                         "b"),
                                        "<|a|>",
                                        "  ",
                                        "a b",
                                        "\xe2\x96\x81\xe2\x96\x81"};
    static const int32_t     type[] = {2, 3, 3, 1, 1, 1, 1, 4, 4, 1, 1};
    enum { N = sizeof type / sizeof *type };
    const char *path = tn_test_file("found.gguf"), *dir = tn_test_folder("found");
    tn_model    d = {.family = TN_MODEL_DECODER, .module = small(N)};
    d.tokenizer = tn_tokenizer_from_vocab(N, piece, .types = type);
    fine();
    tn_model e = again(&d, path), f = again(&e, dir);
    piece_is(path, N, 8, "  ", TN_TYPE_USER), piece_is(path, N, 9,
                                                       "a\xe2\x96\x81"
                                                       "b",
                                                       TN_TYPE_NORMAL);
    const tn_model *const all[] = {&d, &e, &f};
    for (int i = 0; i < 3; i++) {
        GIVES(all[i]->tokenizer, "<|a|>b", 7, 6);
        GIVES(all[i]->tokenizer, "b<|a|>a<unk>b", 6, 7, 3, 4, 0, 6);
        GIVES(all[i]->tokenizer, "b  b", 6, 8, 6);
    }
    tn_model_close(&d), tn_model_close(&e), tn_model_close(&f);
}

/* A copy of the text with the first `what` replaced by `with`. */
static const char *edited(const char *text, const char *what, const char *with)
{
    static char to[4096];
    const char *at = strstr(text, what);
    ck_assert(at != NULL);
    const int n = snprintf(to, sizeof to, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
    ck_assert(n > 0 && n < (int)sizeof to);
    return to;
}

#define LOOKED_UP "'model': {'ignore_merges': true, "
#define FORM(name) "'normalizer': {'type': '" name "'}, 'model'"
#define PIECE(id) "{'SpecialToken': {'id': '" id "', 'type_id': 0}}"
#define TEXT(id) "{'Sequence': {'id': '" id "', 'type_id': 0}}"
#define TWICE                                                                                                         \
    "'post_processor': {'type': 'TemplateProcessing', 'single': [" PIECE("<|end|>") "," PIECE("<|end|>") "," TEXT(    \
        "A") "], 'pair': [" TEXT("A") "," TEXT("B") "], 'special_tokens': {'<|end|>': {'id': '<|end|>', 'ids': [5], " \
                                                    "'tokens': ['<|end|>']}}}, 'model'"

/* llama.cpp's "default" is no model's splitter. */
TEST(rejects_the_default_splitter)
{
    static const char *const pre[] = {NULL, "default", "gpt-2"};
    for (int i = 0; i < 3; i++) {
        tn_gguf_writer *w = begun();
        tn_gguf_put_string(w, "tokenizer.ggml.model", "gpt2");
        if (pre[i]) tn_gguf_put_string(w, "tokenizer.ggml.pre", pre[i]);
        tn_gguf_open_strings(w, "tokenizer.ggml.tokens", WORDS);
        for (int k = 0; k < WORDS; k++)
            tn_gguf_add_string(w, (const char *[]){"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "ab", "l"}[k],
                               k == 10 ? 2 : 1);
        tn_gguf_open_strings(w, "tokenizer.ggml.merges", 1);
        tn_gguf_add_string(w, "a b", 3);
        if (i < 2) refused(w, TN_EUNSUPPORTED, "tokenizer.ggml.pre is 'default' or missing");
        else scored(w);
    }
}

/* Tokenizer rules without a GGUF key are errors. */
TEST(leaves_out_no_rule)
{
    static const struct {
        const char *json, *what, *with, *named; /* NULL: can be written */
    } rows[] = {
        {bytes, "space': false", "space': true", "add_prefix_space"},
        {bytes, "regex': true", "regex': false", "use_regex"},
        {bytes, "'model'", FORM("NFC"), "NFC"},
        {bytes, "'lstrip': false", "'lstrip': true", "lstrip"},
        {bytes, "'rstrip': false", "'rstrip': true", "rstrip"},
        {bytes, "word': false", "word': true", "single_word"},
        {bytes, "'model'", TWICE, "post_processor"},
        {bytes, "'model': {", LOOKED_UP, NULL}, /* "ab" is also the result of a merge */
        {bytes, "'vocab': {", "'ignore_merges': true, 'vocab': {'ba': 6, ", "ignore_merges"},
        {sentence, "{'type': 'Prepend'", "{'type': 'Strip'}, {'type': 'Prepend'", "Strip"},
        {sentence, "'content': '\xe2\x96\x81'}]", "'content': '_'}]", "Replace"},
        {sentence, "'model': {", LOOKED_UP, "ignore_merges"},
    };
    const char *path = tn_test_new_file("rules.gguf");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_model d = with(edited(rows[i].json, rows[i].what, rows[i].with), 8);
        if (!rows[i].named) ck_assert_msg(tn_model_save(&d, path) == TN_OK, "%zu: %s", i, tn_error_message());
        else {
            char part[128];
            snprintf(part, sizeof part, "GGUF cannot represent the tokenizer's %s", rows[i].named);
            ck_assert_msg(tn_model_save(&d, path) != TN_OK, "%s is written", rows[i].named);
            ck_error_has(TN_EUNSUPPORTED, part);
        }
        tn_model_close(&d);
    }
}

/* A .model with remove_extra_whitespaces in its normalizer_spec. */
TEST(leaves_out_no_rule_of_a_model)
{
    static const char more[] = "\x1a\x02\x20\x01";
    const char       *dir = tn_test_folder("squeezed"), *path = tn_test_in(dir, "tokenizer.model");
    tn_model d = with(edited(sentence, "'ab': 5", "'ab': 5, 'ba': 6"), 8), e = again(&d, tn_test_file("squeezed.gguf"));
    ck_assert_int_eq(tn_tokenizer_save(e.tokenizer, dir), TN_OK);
    const tn_tensor *file = tn_file_read(path, 1 << 16);
    char             all[4096];
    const size_t     n = (size_t)tn_numel(file);
    ck_assert(n + 4 <= sizeof all);
    memcpy(all, tn_data(file), n), memcpy(all + n, more, 4);
    const char *other = tn_test_file("squeezed.model");
    ck_assert_int_eq(tn_file_write(other, all, n + 4), TN_OK);
    tn_tokenizer_free(e.tokenizer), e.tokenizer = tn_tokenizer_load(other);
    fine();
    ck_assert(tn_model_save(&e, tn_test_file("squeezed.gguf")) != TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "GGUF cannot represent the tokenizer's remove_extra_whitespaces");
    tn_model_close(&d), tn_model_close(&e);
}

static int32_t ggml_id(const char *path, const char *key)
{
    char     k[64];
    tn_gguf *g = tn_gguf_open(path);
    snprintf(k, sizeof k, "tokenizer.ggml.%s_token_id", key);
    const int64_t id = tn_gguf_i64_or(g, k, -1);
    tn_gguf_close(g);
    return (int32_t)id;
}

/* llama.cpp requires a key also in a file without a tokenizer. */
TEST(says_that_it_has_none)
{
    const char    *path = tn_test_file("bare.gguf");
    const tn_model d = {.family = TN_MODEL_DECODER, .module = small(8)};
    tn_model       e = again(&d, path);
    tn_gguf       *g = tn_gguf_open(path);
    ck_assert_str_eq(tn_gguf_string_or(g, "tokenizer.ggml.model", ""), "none");
    ck_assert(!e.tokenizer);
    tn_gguf_close(g);
    tn_model_close(&e);
    tn_module_free(d.lm);
}

/* A file of SentencePiece's kind without begin and end ids: they are 1 and 2, if those are CONTROL. */
TEST(begins_and_ends_as_usual)
{
    static const char *const text[] = {"<unk>", "<a>", "<b>",
                                       ("\xe2\x96\x81"
                                        "c"),
                                       "c"};
    static int32_t           type[] = {2, 3, 3, 1, 1};
    for (int usual = 1; usual >= 0; usual--) {
        tn_gguf_writer *w = begun();
        tn_tensor      *types = tn_empty_of(TN_I32, TN_SHAPE(5));
        type[2] = usual ? TN_TYPE_CONTROL : TN_TYPE_NORMAL;
        memcpy(tn_data_mut(types), type, sizeof type);
        tn_gguf_put_string(w, "tokenizer.ggml.model", "llama");
        tn_gguf_open_strings(w, "tokenizer.ggml.tokens", 5);
        for (int i = 0; i < 5; i++) tn_gguf_add_string(w, text[i], strlen(text[i]));
        tn_gguf_put_numbers(w, "tokenizer.ggml.token_type", types);
        tn_gguf_put_numbers(w, "tokenizer.ggml.scores", tn_ones(TN_SHAPE(5)));
        tn_model d = opened(w);
        fine();
        const tn_tokenizer_roles r = tn_tokenizer_special(d.tokenizer);
        ck_assert_msg(r.first == (usual ? 1 : -1) && r.last == (usual ? 2 : -1), "%d and %d", r.first, r.last);
        ck_assert_int_eq(tn_tokenizer_traits_of(d.tokenizer).first, usual);
        tn_model_close(&d);
    }
}

/* llama.cpp has six keys for end tokens, three of which are for fill-in-the-middle models. */
TEST(ends_at_six)
{
    static const char *const keys[] = {"eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"};
    const char              *path = tn_test_file("six.gguf");
    tn_gguf_writer          *w = begun();
    for (int i = 0; i < 6; i++) {
        char k[64];
        snprintf(k, sizeof k, "tokenizer.ggml.%s_token_id", keys[i]);
        tn_gguf_put_u32(w, k, 11 - i);
    }
    tn_model d = opened(w);
    fine();
    ck_assert_int_eq(d.ends.n, 6);
    for (int i = 0; i < 6; i++) ck_assert_int_eq(d.ends.at[i], 11 - i);
    ck_assert_msg(tn_model_save(&d, path) == TN_OK, "%s", tn_error_message());
    for (int i = 0; i < 6; i++) ck_assert_int_eq(ggml_id(path, keys[i]), 11 - i);
    tn_ids_add(&d.ends, 0);
    ck_assert(tn_model_save(&d, path) != TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "7 different end tokens, but GGUF can store at most 6");
    tn_model_close(&d);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* ---- LLaMA's relatives ------------------------------------------------------------------------------------------- */

#define SIZE .vocab = 12, .dim = 32, .heads = 4, .ff = 32, .positions = 64
#define GEMMA                                                                                                         \
    SIZE, .kv_heads = 2, .head_dim = 6, .order = TN_NORM_SANDWICH, .norm_add_one = true, .embedding_scale = sqrt(32), \
          .activation = "gelu_pytorch_tanh", .tied = true, .scores.window = 4
#define NEOX SIZE, .layers = 2, .norm = TN_NORM_LAYER, .plain_ff = true, .ff_bias = true
static tn_llama *relative(int i)
{
    switch (i) {
    case 0: return tn_llama_new(GEMMA, .layers = 3, .type = "gemma2", .scores.cap = 2, .logit_cap = 3, .pattern = "lg");
    case 1:
        return tn_llama_new(GEMMA, .layers = 7, .type = "gemma3_text", .scores.qk_norm = TN_QK_NORM_HEAD,
                            .pattern = "lllllg", .rope.theta = 1e6, .local_theta = 1e4);
    case 2:
        return tn_llama_new(SIZE, .layers = 2, .kv_heads = 2, .type = "phi3", .eps = 1e-5, .rope = TN_ROPE(.dim = 4));
    case 3:
        return tn_llama_new(NEOX, .type = "gpt_neox", .qkv_bias = true, .out_bias = true, .activation = "gelu",
                            .order = TN_NORM_PARALLEL, .rope = TN_ROPE(.dim = 2));
    case 4:
        return tn_llama_new(NEOX, .type = "gpt_neox", .qkv_bias = true, .out_bias = true, .activation = "gelu",
                            .rope = TN_ROPE(.theta = 500));
    default:
        return tn_llama_new(NEOX, .type = "gptj", .activation = "gelu_new", .order = TN_NORM_PARALLEL_ONE,
                            .head_bias = true, .rope = TN_ROPE(.dim = 4, .interleaved = true));
    }
}

/* A model's GGUF file opens with the same logits; the opened model is written to a directory as the first one is. */
TEST_EACH(relatives, 6)
{
    const char *path = tn_test_file("relative.gguf"), *a = tn_test_folder("first"), *b = tn_test_folder("second");
    int64_t     numbers[] = {5, 1, 11, 0, 7, 7, 2, 3};
    tn_tensor  *ids = tn_from_data(TN_I64, TN_SHAPE(1, 8), numbers);
    tn_seed((uint64_t)_i + 1);
    tn_llama *m = relative(_i);
    fine();
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        tn_copy_(p.tensor, tn_add(p.tensor, tn_normal(tn_shape_of(p.tensor), 0, 0.2)));
    tn_scope_end(s);
    const tn_model d = {.family = TN_MODEL_DECODER, .lm = (tn_lm *)m};
    ck_assert_msg(tn_model_save(&d, path) == TN_OK && tn_model_save(&d, a) == TN_OK, "%s", tn_error_message());
    tn_model e = tn_model_open(path, .no_tokenizer = true);
    fine();
    tn_tensor *y = tn_llama_forward(m, ids), *z = tn_lm_run(e.lm, (tn_decoder_args){.ids = ids});
    ck_assert_double_le(tn_item(tn_amax(tn_flatten(tn_abs(tn_sub(y, z)), 0, -1), .dims = TN_DIMS(0))),
                        _i < 2 ? 2e-6 : 0);
    ck_assert_int_eq(tn_model_save(&e, b), TN_OK);
    tn_json *x = tn_json_load(tn_test_in(a, "config.json"));
    tn_json *c = tn_json_load(tn_test_in(b, "config.json"));
    for (const tn_json *v = tn_json_first(x); v; v = tn_json_next(v)) {
        const tn_json *w = tn_json_get(c, tn_json_key(v));
        const bool     real = tn_json_type_of(v) == TN_JSON_REAL || tn_json_type_of(v) == TN_JSON_INTEGER;
        ck_assert_msg(w != NULL, "%s", tn_json_key(v));
        if (real && strcmp(tn_json_key(v), "initializer_range") != 0)
            ck_assert_msg((float)tn_json_double(v) == (float)tn_json_double(w), "%s", tn_json_key(v));
    }
    tn_json_free(x), tn_json_free(c), tn_model_close(&e), tn_free(m);
}

/* ---- BERT -------------------------------------------------------------------------------------------------------- */

/* With ' for ". */
static const char word_pieces[] =
    "{'normalizer': {'type': 'BertNormalizer', 'clean_text': true, 'handle_chinese_chars': true, 'strip_accents': "
    "null, 'lowercase': %s}, 'pre_tokenizer': {'type': 'BertPreTokenizer'}, 'post_processor': {'type': "
    "'BertProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]}, 'model': {'type': 'WordPiece', 'unk_token': "
    "'[UNK]', 'continuing_subword_prefix': '##', 'max_input_chars_per_word': 100, 'vocab': {'[PAD]': 0, '[UNK]': 1, "
    "'[CLS]': 2, '[SEP]': 3, '[MASK]': 4, 'a': 5, '##a': 6, 'b': 7, '##b': 8, 'ab': 9, '##ba': 10, '[unused1]': 11, "
    "'[': 12, ']': 13, '##1': 14}}, 'added_tokens': [{'id': 4, 'content': '[MASK]', 'special': true, 'normalized': "
    "false}]}";
static tn_tokenizer *pieces(const char *lowercase)
{
    char text[sizeof word_pieces + 8];
    snprintf(text, sizeof text, word_pieces, lowercase);
    for (char *p = text; *p; p++)
        if (*p == '\'') *p = '"';
    return tn_tokenizer_parse(text, strlen(text));
}

/* The encoder and the tokenizer of a BERT: the same hidden states and ids; what GGUF lacks is rejected. */
TEST(encoders)
{
    static const char *const texts[] = {"ab \u00c1bab [MASK], aB1 c", "[a] bab\tb[", ""};
    const char              *path = tn_test_file("bert.gguf");
    tn_model                 m = tn_model_open(tn_test_data("golden/bert/pretraining"), .no_tokenizer = true);
    m.tokenizer = pieces("true");
    fine();
    ck_assert_msg(tn_model_save(&m, path) == TN_OK, "%s", tn_error_message());
    tn_model e = tn_model_open(path);
    fine();
    ck_assert(e.family == TN_MODEL_ENCODER && !e.bert->head && !e.bert->pooler);
    tn_token_batch a, b;
    ck_assert_int_eq(tn_tokenizer_batch(m.tokenizer, &a, 3, texts, .max_length = 12), TN_OK);
    ck_assert_int_eq(tn_tokenizer_batch(e.tokenizer, &b, 3, texts, .max_length = 12), TN_OK);
    ck_assert(tn_same_bits(a.ids, b.ids));
    ck_assert(tn_same_bits(tn_bert_forward(m.bert, a.ids, .key_padding_mask = a.key_padding_mask),
                           tn_bert_forward(e.bert, b.ids, .key_padding_mask = b.key_padding_mask)));
    fine();
    tn_model_close(&e), tn_tokenizer_free(m.tokenizer);
    m.tokenizer = pieces("false");
    ck_assert_int_ne(tn_model_save(&m, path), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "GGUF cannot represent a WordPiece tokenizer that keeps capitals or accents");
    tn_model_close(&m);
    m = tn_model_open(tn_test_data("golden/encoders/albert"));
    ck_assert_int_ne(tn_model_save(&m, path), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "of encoders GGUF has BERT only, not albert");
    tn_model_close(&m);
}

/* llama.cpp reads neither a window nor Qwen2's factors. */
TEST(leaves_out_no_window)
{
#define SIZES .vocab = 12, .dim = 32, .layers = 2, .heads = 2, .ff = 32, .positions = 64
    void *const m[] = {
        tn_llama_new(SIZES, .type = "mistral", .scores.window = 63),
        tn_llama_new(SIZES, .type = "qwen2", .qkv_bias = true, .scores.window = 8, .pattern = "gl"),
        tn_llama_new(SIZES, .type = "qwen2", .qkv_bias = true,
                     .rope = TN_ROPE(.scaling = TN_ROPE_LLAMA3, .factor = 8, .trained = 32)),
        tn_llama_new(SIZES, .type = "smollm3", .pattern = "gn"),
        tn_llama_new(SIZES, .type = "gemma2", .order = TN_NORM_SANDWICH, .norm_add_one = true,
                     .embedding_scale = sqrt(32), .activation = "gelu_new"),
        tn_llama_new(SIZES, .type = "mistral", .scores.window = 64),
        tn_llama_new(SIZES, .type = "qwen2", .qkv_bias = true, .scores.window = 64),
    };
    static const char *const what[] = {
        "GGUF cannot represent a sliding window of 63 tokens, less than the 64 positions",
        "GGUF cannot represent a sliding window of 8",
        "GGUF cannot represent rotary positions with scaling 'llama3' of qwen2",
        "GGUF cannot represent rotary positions in other layers than all but every fourth",
        "GGUF's gemma2 has a window in all layers but every 2-th, and this model in others"};
    const char *path = tn_test_file("window.gguf");
    fine();
    for (int i = 0; i < 7; i++) {
        const tn_model d = {.family = TN_MODEL_DECODER, .module = m[i]};
        if (i >= 5) ck_assert_msg(tn_model_save(&d, path) == TN_OK, "%s", tn_error_message());
        else {
            ck_assert(tn_model_save(&d, path) != TN_OK);
            ck_error_has(TN_EUNSUPPORTED, what[i]);
        }
        tn_module_free(m[i]);
    }
}
