/* test_prompt_cache.c — files of read prompts: the same texts with and without, for models of several kinds and dtypes;
 * shared starts; and files that are rejected: of another model, truncated, changed, or not prompt caches at all. */
#include "core/files/safetensors.h"
#include "models/models.h"
#include "tests/common/check_main.h"

#include <unistd.h>

enum { WORDS = 37, PROMPT = 20, NEW = 30 };

#define LLAMA .vocab = WORDS, .dim = 32, .layers = 2, .heads = 4, .kv_heads = 2, .positions = 64
/* LLaMA, with a window and in bf16, GPT, and LLaMA in 8 bits and in int8. */
enum { MODELS = 6 };
static void *a_model(int i)
{
    tn_seed(7);
    void *m = i == 3 ? (void *)tn_gpt_new(.vocab = WORDS, .dim = 32, .layers = 2, .heads = 4, .positions = 64)
                     : (void *)tn_llama_new(LLAMA, .init = 0.3, .scores.window = i == 1 ? 9 : 0);
    if (i == 2) tn_module_to(m, TN_BF16);
    if (i == 4) tn_module_quantize(m);
    if (i == 5) tn_quantize_run((tn_quantize_args){.module = m, .activations = true});
    tn_module_train(m, false);
    fine();
    return m;
}

static tn_tensor *a_prompt(void)
{
    tn_seed(9);
    return tn_randint(TN_SHAPE(1, PROMPT), 0, WORDS);
}
static tn_decoding *decoding(void *m) { return tn_lm_decoding(m, 1, PROMPT + NEW); }

/* The text after the prompt, of which d has read `read` tokens. */
static tn_tensor *text_of(tn_decoding *d, tn_tensor *prompt, int64_t read)
{
    tn_seed(3);
    const int64_t n = tn_size(prompt, 1);
    tn_generated  g = tn_generate(d, tn_narrow(prompt, 1, read, n - read), .read = read,
                                  .before = tn_narrow(prompt, 1, 0, read), .most = NEW, .sample = true);
    fine();
    return g.tokens;
}

static const char *saved(void *m, tn_tensor *prompt, const char *name)
{
    const char  *path = tn_test_new_file(name);
    tn_decoding *d = decoding(m);
    text_of(d, prompt, 0);
    ck_assert_int_eq(tn_prompt_cache_save(d, prompt, path), TN_OK);
    tn_decoding_free(d);
    fine();
    return path;
}

TEST_EACH(the_same_text, MODELS)
{
    void        *m = a_model(_i);
    tn_tensor   *prompt = a_prompt();
    const char  *path = saved(m, prompt, "prompt.cache");
    tn_decoding *d = decoding(m);
    tn_tensor   *plain = text_of(d, prompt, 0);
    tn_decoding_free(d);
    for (int k = 0; k < 3; k++) { /* the same prompt, the same in i32, and a shorter one */
        tn_tensor *own = k == 1 ? tn_to(prompt, TN_I32) : k == 2 ? tn_narrow(prompt, 1, 0, 8) : prompt;
        d = decoding(m);
        const int64_t read = tn_prompt_cache_load(d, own, path);
        fine();
        ck_assert_int_eq(read, tn_size(own, 1) - 1);
        if (k < 2) ck_assert(tn_same_bits(plain, text_of(d, own, read)));
        tn_decoding_free(d);
    }
    tn_tensor *longer = tn_cat(1, prompt, tn_ones_of(TN_I64, TN_SHAPE(1, 5))), *other = tn_clone(longer), *two[2];
    tn_set_i64(other, 11, (tn_get_i64(other, 11) + 1) % WORDS);
    for (int k = 0; k < 2; k++) { /* a longer prompt, and one that differs from the 12th token on */
        tn_tensor *own = tn_narrow(k ? other : longer, 1, 0, PROMPT + 3);
        for (int from_file = 0; from_file < 2; from_file++) {
            d = tn_lm_decoding(m, 1, PROMPT + 3 + NEW);
            const int64_t read = from_file ? tn_prompt_cache_load(d, own, path) : 0;
            if (from_file) ck_assert_int_eq(read, k ? 11 : PROMPT);
            two[from_file] = text_of(d, own, read);
            tn_decoding_free(d);
        }
        ck_assert(tn_same_bits(two[0], two[1]));
    }
    tn_set_i64(other, 0, (tn_get_i64(other, 0) + 1) % WORDS);
    d = decoding(m);
    ck_assert_int_eq(tn_prompt_cache_load(d, other, path), 0); /* nothing in common */
    tn_decoding_free(d);
    tn_module_free(m);
}

/* Rejected, and the decoding still reads the whole prompt itself. */
static void refused(void *m, const char *path, tn_status code, const char *part)
{
    tn_decoding *d = decoding(m);
    ck_assert_int_eq(tn_prompt_cache_load(d, a_prompt(), path), -1);
    ck_error_has(code, part);
    text_of(d, a_prompt(), 0);
    tn_decoding_free(d);
}

TEST(other_models)
{
    tn_llama         *m = a_model(0), *same = a_model(0);
    const char       *path = saved(m, a_prompt(), "model.cache");
    const char *const other = "a prompt cache of another model, or of another type of weights: its model's hash is ";
    tn_decoding      *d = decoding(same);
    ck_assert_int_eq(tn_prompt_cache_load(d, a_prompt(), path), PROMPT - 1);
    tn_decoding_free(d);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *last = ((tn_block *)tn_at(same->blocks->layers, 1))->linear2->weight;
    fine();
    tn_set(last, 5, tn_get(last, 5) + 1e-3);
    tn_scope_end(s);
    refused(same, path, TN_EFORMAT, other);
    for (int i = 1; i < MODELS; i++) { /* a window, bf16, GPT, 8 bits, int8 */
        void *another = a_model(i);
        refused(another, path, TN_EFORMAT, other);
        tn_module_free(another);
    }
    tn_seed(7); /* the same weights with other settings */
    tn_llama *far = tn_llama_new(LLAMA, .init = 0.3, .rope = {TN_ROPE_DEFAULTS, .theta = 20000});
    tn_seed(7);
    tn_llama *eps = tn_llama_new(LLAMA, .init = 0.3, .eps = 1e-3);
    tn_eval(far), tn_eval(eps);
    refused(far, path, TN_EFORMAT, other), refused(eps, path, TN_EFORMAT, other);
    tn_free(far), tn_free(eps), tn_free(m), tn_free(same);
}

/* ---- malformed files --------------------------------------------------------------------------------------------- */

/* Writes the file with one thing changed: 0 nothing. */
enum {
    SAME,
    NO_KEY,
    NO_TOKENS,
    F32_TOKENS,
    SQUARE_TOKENS,
    NO_KEYS,
    BF16_KEYS,
    SHORT_KEYS,
    WIDE_VALUES,
    FLAT_VALUES,
    CHANGES
};
static const char *changed(const char *from, int what)
{
    const char            *path = tn_test_new_file("changed.cache");
    tn_safetensors        *f = tn_safetensors_open(from);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_tensor             *tokens = tn_safetensors_get(f, "tokens"), *keys = tn_safetensors_get(f, "keys"),
              *values = tn_safetensors_get(f, "values");
    if (what != NO_KEY) tn_safetensors_note(w, "tenon.prompt_cache", tn_safetensors_metadata(f, "tenon.prompt_cache"));
    if (what == F32_TOKENS) tokens = tn_to(tokens, TN_F32);
    if (what == SQUARE_TOKENS) tokens = tn_view(tokens, TN_SHAPE(1, -1));
    if (what == BF16_KEYS) keys = tn_to(keys, TN_BF16);
    if (what == SHORT_KEYS) keys = tn_narrow(keys, 3, 0, PROMPT - 1);
    if (what == WIDE_VALUES) values = tn_cat(4, values, values);
    if (what == FLAT_VALUES) values = tn_view(values, TN_SHAPE(-1));
    if (what != NO_TOKENS) tn_safetensors_put(w, "tokens", tokens);
    if (what != NO_KEYS) tn_safetensors_put(w, "keys", keys);
    tn_safetensors_put(w, "values", values);
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w), tn_safetensors_close(f);
    return path;
}

TEST(malformed_files)
{
    static const char *const says[CHANGES] = {
        [NO_KEY] = "changed.cache': not a prompt cache: it has no \"tenon.prompt_cache\" in its metadata",
        [NO_TOKENS] = "changed.cache': not a prompt cache: it has no tensor 'tokens'",
        [F32_TOKENS] = "changed.cache': tensor 'tokens' must be i64 with one dim",
        [SQUARE_TOKENS] = "changed.cache': tensor 'tokens' must be i64 with one dim",
        [NO_KEYS] = "kv_cache: the file has no tensor 'keys'",
        [BF16_KEYS] = "kv_cache: tensor 'keys' is BF16, but this cache is f32",
        [SHORT_KEYS] = "kv_cache: tensor 'keys' is [2, 1, 2, 19, 8], expected [2, 1, 2, 20, 8] for this cache",
        [WIDE_VALUES] = "kv_cache: tensor 'values' is [2, 1, 2, 20, 16], expected [2, 1, 2, 20, 8] for this cache",
        [FLAT_VALUES] = "kv_cache: tensor 'values' is [640], expected [2, 1, 2, 20, 8] for this cache"};
    tn_llama    *m = a_model(0);
    const char  *path = saved(m, a_prompt(), "whole.cache");
    tn_decoding *d = decoding(m);
    ck_assert_int_eq(tn_prompt_cache_load(d, a_prompt(), changed(path, SAME)), PROMPT - 1);
    tn_decoding_free(d);
    for (int what = SAME + 1; what < CHANGES; what++) refused(m, changed(path, what), TN_EFORMAT, says[what]);

    tn_tensor  *bytes = tn_file_read(path, 1 << 20);
    const char *damaged = tn_test_new_file("damaged.cache");
    fine();
    for (int64_t n = 0; n < tn_numel(bytes); n += 97) { /* truncated, and with a changed byte */
        ck_assert_int_eq(tn_file_write(damaged, tn_data(bytes), (size_t)n), TN_OK);
        refused(m, damaged, TN_EFORMAT, "damaged.cache'");
        tn_tensor *other = tn_clone(bytes);
        tn_set_i64(other, n, tn_get_i64(other, n) ^ 4);
        ck_assert_int_eq(tn_file_write(damaged, tn_data(other), (size_t)tn_numel(other)), TN_OK);
        d = decoding(m);
        const int64_t read = tn_prompt_cache_load(d, a_prompt(), damaged);
        /* another token gives a valid file of another prompt, and an unknown name in the metadata is ignored */
        ck_assert(read == -1 ? tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED : tn_error() == TN_OK);
        tn_clear_error();
        tn_decoding_free(d);
    }
    refused(m, "missing.cache", TN_EIO, "missing.cache'");
    refused(m, tn_test_data("golden/beams.safetensors"), TN_EFORMAT, "not a prompt cache");
    tn_free(m);
}

TEST(wrong_use)
{
    tn_llama    *m = a_model(0);
    const char  *path = saved(m, a_prompt(), "right.cache");
    tn_decoding *d = decoding(m);
    tn_tensor   *prompt = a_prompt();
    ck_assert_int_ne(tn_prompt_cache_save(d, prompt, path), TN_OK);
    ck_error(TN_EINVAL, "tn_prompt_cache_save: there are 20 tokens, but the decoding has read 0");
    text_of(d, prompt, 0);
    ck_assert_int_eq(tn_prompt_cache_load(d, prompt, path), -1);
    ck_error(TN_ESTATE, "tn_prompt_cache_load: the decoding has read 49 tokens, but must be new");
    ck_assert_int_ne(tn_prompt_cache_save(d, prompt, NULL), TN_OK);
    ck_error(TN_EINVAL, "tn_prompt_cache_save: the path is NULL");
    ck_assert_int_ne(tn_prompt_cache_save(NULL, prompt, path), TN_OK);
    ck_error(TN_EINVAL, "tn_prompt_cache_save: the decoding is NULL");
    ck_assert_int_ne(tn_prompt_cache_save(d, tn_ones_of(TN_I64, TN_SHAPE(2, 3)), path), TN_OK);
    ck_error(TN_ESHAPE, "tn_prompt_cache_save: the tokens must be [1, length], got [2, 3]");
    ck_assert_int_ne(tn_prompt_cache_save(d, tn_ones(TN_SHAPE(1, 3)), path), TN_OK);
    ck_error(TN_EDTYPE, "tn_prompt_cache_save: the tokens must be integers, i64 or i32, got f32");
    tn_decoding_free(d);
    tn_speculation n;
    d = tn_speculative_decoding(m, NULL, 64, 4, &n);
    ck_assert_int_eq(tn_prompt_cache_load(d, prompt, path), -1);
    ck_error_has(TN_EUNSUPPORTED, "the decoding must have a key/value cache and no draft");
    tn_decoding_free(d);
    d = tn_lm_rolling(m, 1, 32, 4); /* drops tokens */
    text_of(d, prompt, 0);
    ck_assert_int_ne(tn_prompt_cache_save(d, prompt, path), TN_OK);
    ck_error_has(TN_ESTATE, "tn_prompt_cache_save: the decoding has dropped ");
    tn_decoding_free(d);
    d = tn_lm_rolling(m, 1, PROMPT / 2, 4); /* what it drops depends on the parts that are read */
    ck_assert_int_eq(tn_prompt_cache_load(d, prompt, path), 0);
    tn_decoding_free(d);
    tn_free(m);
}
