/* test_decoder.c — opening models that generate text: stories260K from llama2.c's file, a directory and GGUF generates
 * the same text as llama2.c; random models of each architecture keep their bits through GGUF; the error for another
 * file names its format. */
#define _GNU_SOURCE
#include "models/models.h"
#include "tests/common/answers.h"

/* ---- stories260K ------------------------------------------------------------------------------------------------- */

#define SHARED "../../shared/data/stories260K/"

/* The output of llama2.c without a prompt, temperature 0, 200 tokens: 199 tokens, the first without its space. */
static const char *story(const tn_model *d)
{
    int64_t one = tn_tokenizer_special(d->tokenizer).first;
    ck_assert_int_eq(one, 1);
    tn_decoding *x = tn_lm_decoding(d->lm, 1, 256);
    tn_generated g = tn_generate(x, tn_from_data(TN_I64, TN_SHAPE(1, 1), &one), .most = 200, .end = 1);
    fine();
    int32_t        ids[200];
    const int64_t *words = tn_data(tn_contiguous(g.tokens)), n = tn_size(g.tokens, 2);
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)words[i];
    static char text[4096];
    tn_string   s = {0};
    ck_assert_int_eq(tn_tokenizer_decode(d->tokenizer, ids, n, &s), TN_OK);
    snprintf(text, sizeof text, "%s", s.at);
    tn_string_free(&s);
    tn_decoding_free(x);
    fine();
    return text;
}

static void tells(const char *path, const char *tokenizer, const char *form, const char *want)
{
    tn_scope s = tn_scope_begin();
    tn_model d = tn_model_open(path, .tokenizer = tokenizer);
    fine();
    ck_assert_str_eq(d.form, form);
    ck_assert_str_eq(story(&d), want);
    tn_model_close(&d);
    tn_scope_end(s);
}

TEST(the_same_story)
{
    const char *bin = tn_test_data(SHARED "stories260K.bin"), *tokens = tn_test_data(SHARED "tok512.bin");
    struct stat st;
    if (stat(bin, &st)) {
        printf("SKIPPED: the_same_story: no shared/data/stories260K beside the project\n");
        return;
    }
    const tn_tensor *file = tn_file_read(tn_test_data(SHARED "expected_greedy.txt"), 1 << 16);
    fine();
    size_t n = (size_t)tn_numel(file);
    char   want[4096];
    memcpy(want, tn_data(file), n);
    while (n && want[n - 1] == '\n') n--;
    want[n] = 0;
    tells(bin, tokens, "llama2.c", want);
    tn_model    d = tn_model_open(bin, .tokenizer = tokens);
    const char *dir = tn_test_file("hf"), *f32 = tn_test_file("f32.gguf"), *q8 = tn_test_file("q8.gguf");
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    ck_assert_msg(tn_model_save(&d, dir) == TN_OK, "%s", tn_error_message());
    tells(dir, NULL, "huggingface", want);
    ck_assert_msg(tn_model_save(&d, f32) == TN_OK, "%s", tn_error_message());
    tells(f32, NULL, "gguf", want);
    ck_assert_msg(tn_model_save(&d, q8, .type = "q8_0") == TN_OK, "%s", tn_error_message());
    tn_model e = tn_model_open(q8);
    fine();
    ck_assert(!strncmp(story(&e), "Once upon a time, there was a little", 36));
    tn_model_close(&e);
    tn_model_close(&d);
    d = tn_model_open(f32, .no_tokenizer = true);
    ck_assert(d.lm && !d.tokenizer);
    tn_model_close(&d);
    d = tn_model_open(bin);
    ck_assert(d.lm && !d.tokenizer);
    tn_model_close(&d);
    d = tn_model_open(bin, .tokenizer = bin);
    ck_assert(!d.lm);
    ck_error_has(TN_EFORMAT, "");
}

/* ---- to GGUF and back -------------------------------------------------------------------------------------------- */

#define SIZES .vocab = 40, .dim = 64, .layers = 2, .heads = 4, .ff = 96
static void *made(int i)
{
    switch (i) {
    case 0: return tn_llama_new(SIZES, .kv_heads = 2);
    case 1: return tn_llama_new(SIZES, .tied = true, .qkv_bias = true, .out_bias = true, .ff_bias = true);
    case 2:
        return tn_llama_new(SIZES, .kv_heads = 1, .positions = 16384,
                            .rope = TN_ROPE(.theta = 500000, .scaling = TN_ROPE_LLAMA3, .factor = 8, .trained = 8192));
    case 3: return tn_llama_new(SIZES, .rope = TN_ROPE(.scaling = TN_ROPE_LINEAR, .factor = 2.5));
    case 4: return tn_llama_new(SIZES, .scores.window = 16, .positions = 16, .type = "mistral", .kv_heads = 2);
    case 5: return tn_llama_new(SIZES, .qkv_bias = true, .type = "qwen2", .kv_heads = 2);
    case 6: return tn_llama_new(SIZES, .head_dim = 32, .eps = 1e-5);
    case 7: return tn_gpt_new(SIZES, .positions = 32);
    case 8:
        return tn_llama_new(SIZES, .positions = 4096,
                            .rope =
                                TN_ROPE(.scaling = TN_ROPE_LLAMA3, .factor = 5, .low = 2, .high = 7, .trained = 64));
    case 9: return tn_gpt_new(SIZES, .positions = 32, .untied = true);
    case 10: return tn_llama_new(SIZES, .scores.qk_norm = TN_QK_NORM_HEAD, .kv_heads = 2, .head_dim = 32, .tied = true);
    case 11:
        return tn_llama_new(.vocab = 40, .dim = 64, .layers = 5, .heads = 4, .ff = 96, .type = "smollm3", .kv_heads = 2,
                            .pattern = "gggn", .tied = true);
    case 12: return tn_llama_new(SIZES, .experts = 3, .kv_heads = 2);
    case 13: return tn_llama_new(SIZES, .experts = 4, .scores.qk_norm = TN_QK_NORM_HEAD, .head_dim = 32);
    default:
        return tn_llama_new(SIZES, .scores.qk_norm = TN_QK_NORM_ALL, .order = TN_NORM_RESULT, .kv_heads = 2,
                            .qkv_bias = true, .out_bias = true);
    }
}

TEST_EACH(to_gguf_and_back, 15)
{
    tn_seed(16);
    void *m = made(_i);
    fine();
    for (tn_each p = tn_module_each(m, TN_EACH_SAVED); tn_next(&p);) {
        tn_scope s = tn_no_grad_begin();
        tn_add_(p.tensor, tn_normal(tn_shape_of(p.tensor), 0, 0.1));
        tn_scope_end(s);
    }
    tn_module_train(m, false);
    int64_t             numbers[] = {5, 1, 39, 0, 7, 7, 12, 30};
    tn_tensor          *ids = tn_from_data(TN_I64, TN_SHAPE(1, 8), numbers);
    tn_tensor          *want = tn_lm_run(m, (tn_decoder_args){.ids = ids});
    const char         *path = tn_test_file("a.gguf");
    const tn_model      d = {.family = TN_MODEL_DECODER, .module = m};
    static const char   types[3][8] = {"f32", "bf16", "q8_0"};
    static const char   stored[3][8] = {"F32", "BF16", "Q8_0"};
    static const double far[3] = {1e-6, 0.2, 0.2};
    for (int k = 0; k < 3; k++) {
        ck_assert_msg(tn_model_save(&d, path, .type = types[k]) == TN_OK, "%s", tn_error_message());
        tn_model e = tn_model_open(path);
        fine();
        ck_assert_str_eq(tn_lm_info_of(e.lm).type, tn_lm_info_of(m).type);
        tn_each a = tn_module_each(m, TN_EACH_SAVED), b = tn_module_each(e.lm, TN_EACH_SAVED);
        while (tn_next(&a) && tn_next(&b)) {
            const bool exact = !k || strstr(a.name, "router");
            ck_assert_msg(!strcmp(a.name, b.name) && (!exact || tn_same_bits(a.tensor, b.tensor)), "%s", a.name);
        }
        ck_assert_str_eq(e.stored ? e.stored : "several", stored[k]);
        tn_tensor   *now = tn_lm_run(e.lm, (tn_decoder_args){.ids = ids});
        const double off = furthest(want, now);
        ck_assert_msg(off <= far[k], "%s: off by %g", types[k], off);
        if (k == 2) { /* packing again loses nothing */
            ck_assert_int_eq(tn_module_quantize(e.lm), TN_OK);
            ck_assert(tn_same_bits(tn_lm_run(e.lm, (tn_decoder_args){.ids = ids}), now));
        }
        tn_model_close(&e);
    }
    tn_module_free(m);
}

TEST(has_no_place_in_gguf)
{
    const tn_model dynamic = {.family = TN_MODEL_DECODER,
                              .module = tn_llama_new(SIZES, .rope = TN_ROPE(.scaling = TN_ROPE_DYNAMIC, .factor = 2))};
    const tn_model relu = {.family = TN_MODEL_DECODER, .module = tn_gpt_new(SIZES, .activation = "relu")};
    const char    *path = tn_test_file("none.gguf");
    ck_assert(tn_model_save(&dynamic, path) != TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "GGUF cannot represent rotary positions with scaling 'dynamic'");
    ck_assert(tn_model_save(&relu, path) != TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "GGUF cannot represent the activation 'relu'");
    ck_assert(tn_model_save(&relu, path, .type = "q4_0") != TN_OK);
    ck_error_has(TN_EINVAL, ".type is 'q4_0', but must be f32, bf16 or q8_0");
    ck_assert(tn_model_save(&relu, tn_test_file("."), .type = "f32") != TN_OK);
    ck_error_has(TN_EINVAL, ".type needs a path that ends in .gguf");
    const tn_model switched = {
        .family = TN_MODEL_DECODER,
        .module = tn_llama_new(SIZES, .experts = 3, .scores.qk_norm = TN_QK_NORM_HEAD, .experts_per_token = 1)};
    ck_assert(tn_model_save(&switched, path) != TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "GGUF cannot represent norm_topk_prob false");
    struct stat st;
    ck_assert(stat(path, &st) != 0);
    tn_module_free(dynamic.lm), tn_module_free(relu.lm), tn_module_free(switched.lm);
}

/* ---- end tokens and chat templates ------------------------------------------------------------------------------- */

static const char talk[] = "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}";

static void puts_in(const char *dir, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
}

static void ends(const tn_model *d, int64_t n, const int32_t *want)
{
    fine();
    ck_assert_int_eq(d->ends.n, n);
    for (int64_t i = 0; i < n; i++) ck_assert_int_eq(d->ends.at[i], want[i]);
}

static tn_model again(const tn_model *d, const char *path)
{
    if (!strstr(path, ".gguf")) ck_assert_int_eq(mkdir(path, 0777), 0);
    ck_assert_msg(tn_model_save(d, path) == TN_OK, "%s", tn_error_message());
    tn_model e = tn_model_open(path);
    ck_assert_msg(e.lm, "%s", tn_error_message());
    return e;
}

/* End tokens and the chat template are kept between all formats. */
TEST(keeps_its_manner)
{
    static const int32_t three[] = {7, 39, 5};
    const char          *dir = tn_test_file("chat");
    const size_t         live = tn_memory_now().live;
    const tn_model       d = {.family = TN_MODEL_DECODER, .module = made(7)};
    tn_model             e = again(&d, dir);
    ends(&e, 0, NULL);
    ck_assert(!e.chat_template.bytes);
    tn_model_close(&e);
    puts_in(dir, "generation_config.json", "{\"eos_token_id\": [7, 40, -1, 7, 39, 39]}");
    puts_in(dir, "tokenizer_config.json",
            "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"x\"},"
            "{\"name\": \"default\", \"template\": \"<|im_start|>\"}]}");
    e = tn_model_open(dir, .no_tokenizer = true);
    ends(&e, 2, three);
    ck_assert_str_eq(e.chat_template.at, "<|im_start|>");
    tn_model_close(&e);
    puts_in(dir, "chat_template.jinja", talk);
    e = tn_model_open(dir, .no_tokenizer = true);
    tn_model other = again(&e, tn_test_file("other")), packed = again(&e, tn_test_file("chat.gguf")),
             back = again(&packed, tn_test_file("back"));
    const tn_model *const all[] = {&e, &other, &packed, &back};
    for (int i = 0; i < 4; i++) {
        ends(all[i], 2, three);
        ck_assert_str_eq(all[i]->chat_template.at, talk);
    }
    tn_ids_add(&e.ends, 5);
    tn_model more = again(&e, tn_test_file("three.gguf")); /* eos, eot and eom */
    ends(&more, 3, three);
    puts_in(tn_test_file("other"), "generation_config.json", "{\"eos_token_id\": 38}"); /* must be overwritten */
    ck_assert(!tn_model_open(tn_test_file("other"), .no_tokenizer = true).lm);
    ck_error_has(TN_EFORMAT, "generation_config.json");
    ck_assert(tn_model_save(&d, tn_test_file("other")) == TN_OK); /* deletes files of the previous model */
    tn_model_close(&other), other = tn_model_open(tn_test_file("other"));
    ends(&other, 0, NULL);
    ck_assert(!other.chat_template.bytes);
    ck_assert_int_eq(tn_file_write(tn_test_in(dir, "chat_template.jinja"), "a\0b", 3), TN_OK);
    ck_assert(!tn_model_open(dir, .no_tokenizer = true).lm);
    ck_error_has(TN_EFORMAT, "the chat template contains a NUL");
    puts_in(dir, "chat_template.jinja", talk);
    puts_in(tn_test_file("back"), "chat_template.jinja", "<|im_start|>");
    ck_assert(!tn_model_open(tn_test_file("back"), .no_tokenizer = true).lm);
    ck_error_has(TN_EFORMAT, "chat_template.jinja");
    puts_in(dir, "generation_config.json", "{\"eos_token_id\": [7");
    ck_assert(!tn_model_open(dir, .no_tokenizer = true).lm);
    ck_error_has(TN_EFORMAT, "generation_config.json");
    tn_model_close(&more), tn_model_close(&e), tn_model_close(&other), tn_model_close(&packed), tn_model_close(&back);
    tn_module_free(d.lm);
    ck_assert_uint_eq(tn_memory_now().live, live);
}

/* A tokenizer.json like LLaMA 3's: the template has the begin token, only tokenizer_config.json has the end token. */
static const char llama3[] =
    "{\"added_tokens\": [{\"id\": 3, \"content\": \"<|begin|>\", \"special\": true},"
    "{\"id\": 4, \"content\": \"<|eot|>\", \"special\": true}],"
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, "
    "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
    "\"trim_offsets\": true, \"use_regex\": false}]},"
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<|begin|>\", "
    "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [{\"Sequence\": {\"id\": \"A\", "
    "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}], \"special_tokens\": {\"<|begin|>\": {\"id\": "
    "\"<|begin|>\", \"ids\": [3], \"tokens\": [\"<|begin|>\"]}}},"
    "\"decoder\": {\"type\": \"ByteLevel\"},"
    "\"model\": {\"type\": \"BPE\", \"ignore_merges\": true, \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
    "\"merges\": []}}";

/* Begin and end tokens are kept through GGUF; there the splitter's name implies that texts start with the begin token,
 * and that "ab", which no merge makes, is encoded as one token. */
TEST(begins_as_llama3)
{
    const char          *dir = tn_test_folder("llama3");
    tn_model             d = {.family = TN_MODEL_DECODER, .module = made(6)};
    static const char    config[] = "{\"bos_token\": \"<|begin|>\", \"eos_token\": {\"content\": \"<|eot|>\"}}";
    static const int32_t want[] = {3, 2};
    puts_in(dir, "tokenizer.json", llama3);
    puts_in(dir, "tokenizer_config.json", config);
    d.tokenizer = tn_tokenizer_load(dir);
    fine();
    tn_model gguf = again(&d, tn_test_file("llama3.gguf")), back = again(&gguf, tn_test_file("llama3-back"));
    const tn_model *const all[] = {&d, &gguf, &back};
    for (int i = 0; i < 3; i++) {
        const tn_tokenizer_roles r = tn_tokenizer_special(all[i]->tokenizer);
        ck_assert_msg(r.first == 3 && r.last == 4, "%d: %d and %d", i, r.first, r.last);
        tn_encoding *e = tn_encoding_new();
        ck_assert_int_eq(tn_tokenizer_encode(all[i]->tokenizer, e, "ab", 2), TN_OK);
        ck_assert_msg(e->n == 2 && !memcmp(e->id, want, sizeof want), "%d: %lld pieces", i, (long long)e->n);
        tn_encoding_free(e);
        if (i) ends(all[i], 1, (const int32_t[]){4});
    }
    tn_model_close(&d), tn_model_close(&gguf), tn_model_close(&back);
    puts_in(dir, "tokenizer_config.json", "{}"); /* then only the template counts */
    tn_tokenizer *t = tn_tokenizer_load(dir);
    ck_assert(t && tn_tokenizer_special(t).first == 3 && tn_tokenizer_special(t).last == -1);
    tn_tokenizer_free(t);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void refused(const char *bytes, size_t n, tn_status status, const char *part)
{
    const char *path = tn_test_file("wrong");
    ck_assert_int_eq(tn_file_write(path, bytes, n), TN_OK);
    tn_model d = tn_model_open(path);
    ck_assert_msg(!d.lm && !d.tokenizer && tn_error() != TN_OK, "accepted");
    ck_error_has(status, part);
}

TEST(says_what_it_is)
{
    refused("", 0, TN_EFORMAT, "is not a supported model; supported are directories in Hugging Face's format");
    refused("hello, world, this is a text", 28, TN_EFORMAT, "is not a supported model");
    refused("PK\3\4xxxxxxxxxxxx", 16, TN_EUNSUPPORTED, "is a zip file, as PyTorch's .bin and .pt");
    refused("\x40\0\0\0\0\0\0\0{\"a\":", 13, TN_EUNSUPPORTED, "is a safetensors file; pass its directory instead");
    refused("tjggxxxxxxxx", 12, TN_EUNSUPPORTED, "is an old llama.cpp file, from before GGUF");
    refused("24kaxxxxxxxx", 12, TN_EUNSUPPORTED, "is a file in llama2.c's second format ('ak42')");
    refused("\x80\2}q", 4, TN_EUNSUPPORTED, "is a Python pickle file");
    refused("GGUF\1\0\0\0", 8, TN_EUNSUPPORTED, "of version 1");
    tn_model d = tn_model_open(tn_test_file("absent"));
    ck_assert(!d.lm);
    ck_error_has(TN_EIO, "no such file or directory");
    d = tn_model_open(NULL);
    ck_assert(!d.lm);
    ck_error_has(TN_EINVAL, "the path is NULL");
    const char *empty = tn_test_file("empty");
    ck_assert_int_eq(mkdir(empty, 0777), 0);
    d = tn_model_open(empty);
    ck_assert(!d.lm);
    ck_error_has(TN_EIO, "config.json");
}

/* A GGUF file of an architecture, with a row's value. */
TEST_EACH(says_what_of_gguf, 6)
{
    static const struct {
        const char *arch, *key;
        double      value;
        tn_status   status;
        const char *says;
    } rows[] = {
        {"mamba", NULL, 0, TN_EUNSUPPORTED,
         "general.architecture is 'mamba'; supported are 'llama', 'qwen2', 'qwen3', "
         "'qwen3moe', 'olmo2', 'smollm3', 'phi3', 'gemma2', 'gemma3', 'gptneox', 'gptj', 'bert' and 'gpt2'"},
        {"llama", NULL, 0, TN_EFORMAT, "llama.context_length is missing"},
        {"qwen2", "qwen2.expert_count", 8, TN_EUNSUPPORTED, "qwen2.expert_count has a value that is not supported"},
        {"llama", "llama.expert_count", 8, TN_EFORMAT, "llama.context_length is missing"},
        {"qwen2", "qwen2.rope.dimension_count", 8, TN_EUNSUPPORTED, "qwen2.rope.dimension_count has a value"},
        {"gpt2", "split.count", 2, TN_EUNSUPPORTED, "is one of several files"},
    };
    tn_gguf_writer *w = tn_gguf_writer_new();
    tn_gguf_put_string(w, "general.architecture", rows[_i].arch);
    if (rows[_i].key) tn_gguf_put_u32(w, rows[_i].key, (int64_t)rows[_i].value);
    const char *path = tn_test_file("arch.gguf");
    ck_assert_int_eq(tn_gguf_save(w, path, NULL), TN_OK);
    tn_gguf_writer_free(w);
    tn_model d = tn_model_open(path);
    ck_assert(!d.lm);
    ck_error_has(rows[_i].status, rows[_i].says);
}

/* llama2.c's file must have the size of the model in its header; tested truncated, and one byte longer. */
TEST(llama2c_sizes)
{
    enum { N = 28 + 4 * (4 * 8 + 8 + 8 * 8 + 4 * 8 + 4 * 8 + 8 * 8 + 8 + 3 * 8 * 8 + 8 + 2 * 16 * 2) };
    static int32_t file[N / 4 + 1] = {8, 8, 1, 2, 1, 4, 16};
    const char    *path = tn_test_file("tiny.bin");
    for (int n = N - 1; n <= N + 1; n++) {
        ck_assert_int_eq(tn_file_write(path, file, (size_t)n), TN_OK);
        tn_model d = tn_model_open(path);
        ck_assert_int_eq(d.lm != NULL, n == N);
        if (d.lm) fine();
        else ck_error_has(TN_EFORMAT, "is not a supported model");
        tn_model_close(&d);
    }
    static const int32_t bad[][2] = {{0, 0}, {0, -8}, {0, 1 << 30}, {1, 0},  {2, 0},  {2, 1025}, {3, 0},       {3, 3},
                                     {3, 8}, {4, 0},  {4, 3},       {5, 0},  {6, 0},  {6, -1},   {5, 1 << 30}, {5, -5},
                                     {2, 2}, {1, 9},  {6, 17},      {4, -1}, {3, -2}, {0, 16}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int32_t keep = file[bad[i][0]];
        file[bad[i][0]] = bad[i][1];
        refused((const char *)file, N, TN_EFORMAT, "is not a supported model");
        file[bad[i][0]] = keep;
    }
}
