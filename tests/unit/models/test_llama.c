/* test_llama.c — LLaMA, Mistral, Qwen2 compared with Hugging Face's (tests/golden/llama.py): logits, loss, gradients,
 * reading and writing files, generated texts; the same bits with and without a cache, alone and in a batch; tn_lm. */
#include "models/models.h"
#include "tests/common/answers.h"
#include "tests/common/golden_case.h"

static const char *const names[] = {"llama3", "mistral", "qwen2"};
enum { MODELS = sizeof names / sizeof *names };

static void open_answers(void) { tn_answers_open("golden/llama/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);
static tn_tensor *answer_of(int model, const char *what)
{
    return tn_safetensors_get(answers, model < 0 ? what : tn_name("%s.%s", names[model], what));
}
static const char *folder(const char *name) { return tn_test_data(tn_name("golden/llama/%s", name)); }
static tn_llama   *golden(int i)
{
    tn_llama *m = tn_llama_load(folder(names[i]));
    fine();
    return m;
}

TEST_EACH(numbers_as_hugging_face, MODELS)
{
    tn_llama *m = golden(_i);
    ck_assert(!m->base.training);
    tn_tensor *ids = answer_of(-1, "ids"), *y = tn_llama_forward(m, ids);
    ck_assert_double_le(furthest(y, answer_of(_i, "scores")), 2e-5);
    ck_assert(tn_same_bits(tn_llama_forward(m, ids, .last = true), tn_narrow(y, 1, 10, 1)));
    tn_tensor *v = tn_llama_forward(m, ids, .vectors = true);
    ck_assert(tn_same_bits(tn_linear(v, m->out, NULL), y));
    tn_tensor *loss = tn_llama_loss(m, ids, NULL);
    ck_assert_double_eq_tol(tn_item(loss), tn_item(answer_of(_i, "loss")), 1e-5);
    tn_backward(loss);
    ck_assert_double_le(furthest(tn_grad(m->words->weight), answer_of(_i, "grad")), 1e-5);
    tn_free(m);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

TEST_EACH(the_same_bits_with_and_without_a_cache, MODELS)
{
    tn_llama      *m = golden(_i);
    tn_tensor     *ids = answer_of(-1, "ids"), *want = answer_of(_i, "greedy");
    tn_decoding   *d = tn_llama_decoding(m, 2, 19);
    tn_generated   g = tn_generate(d, ids, .most = 8);
    const tn_scope s = tn_no_grad_begin();
    fine();
    ck_assert(tn_same_bits(tn_contiguous(tn_select(g.tokens, 1, 0)), want));
    tn_decoding_free(d);

    tn_tensor *text = tn_cat(1, ids, want); /* all logits, token by token, and each row alone */
    for (int threads = 1; threads < 4; threads++) {
        tn_set_threads(threads);
        tn_tensor   *all = tn_llama_forward(m, text);
        tn_kv_cache *cache = tn_blocks_cache(m->blocks, 2, 19, 0), *alone = tn_blocks_cache(m->blocks, 1, 19, 0);
        for (int64_t t = 0; t < 19; t += t ? 1 : 7) {
            const int64_t n = t ? 1 : 7;
            tn_tensor    *some = tn_narrow(text, 1, t, n), *scores = tn_narrow(all, 1, t, n);
            ck_assert(tn_same_bits(tn_llama_forward(m, some, .cache = cache), scores));
            ck_assert(tn_same_bits(tn_llama_forward(m, tn_narrow(some, 0, 1, 1), .cache = alone),
                                   tn_narrow(scores, 0, 1, 1)));
        }
        ck_assert(tn_same_bits(tn_llama_forward(m, tn_narrow(text, 0, 1, 1)), tn_narrow(all, 0, 1, 1)));
        tn_kv_cache_free(cache), tn_kv_cache_free(alone);
    }
    tn_scope_end(s);
    tn_free(m);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static tn_llama *filled(tn_llama *m)
{
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        const tn_scope s = tn_no_grad_begin();
        tn_copy_(p.tensor, tn_mul_scalar(tn_golden_values(p.name, TN_F32, tn_shape_of(p.tensor)), 0.5));
        tn_scope_end(s);
    }
    tn_eval(m);
    fine();
    return m;
}
#define SIZES .vocab = 29, .dim = 24, .layers = 2, .heads = 6, .kv_heads = 2, .ff = 20, .positions = 16
static tn_llama *plain(void) { return tn_llama_new(SIZES, .tied = true, .head_dim = 8); }
static tn_llama *linear(void)
{
    return tn_llama_new(SIZES, .rope.theta = 100, .rope.scaling = TN_ROPE_LINEAR, .rope.factor = 3, .qkv_bias = true,
                        .out_bias = true);
}
static tn_llama *dynamic(void)
{
    return tn_llama_new(.vocab = 29, .dim = 24, .layers = 2, .heads = 6, .positions = 8, .ff_bias = true,
                        .rope.scaling = TN_ROPE_DYNAMIC, .rope.factor = 2);
}
static tn_llama *llama3(void)
{
    return tn_llama_new(SIZES, .rope.scaling = TN_ROPE_LLAMA3, .rope.factor = 4, .rope.theta = 40, .rope.high = 3,
                        .rope.trained = 8);
}
static tn_llama *full_mistral(void) { return tn_llama_new(SIZES, .type = "mistral"); }
static tn_llama *qwen2(void) { return tn_llama_new(SIZES, .qkv_bias = true, .tied = true); }
static const struct {
    const char *name, *type;
    tn_llama *(*make)(void);
} written[] = {
    {"plain", "llama", plain},   {"linear", "llama", linear},       {"dynamic", "llama", dynamic},
    {"llama3", "llama", llama3}, {"full", "mistral", full_mistral}, {"qwen2", "qwen2", qwen2},
};
enum { WRITTEN = sizeof written / sizeof *written };

/* The recorded files, which transformers reads, are equal to those written now, and load here. */
TEST_EACH(writes_what_hugging_face_reads, WRITTEN)
{
    char        path[900];
    const char *kept = folder(tn_name("tenon/%s", written[_i].name));
    const char *now = tn_test_folder("written");
    tn_llama   *m = filled(written[_i].make()), *b;
    tn_tensor  *ids = answer_of(-1, "ids");
    ck_assert_str_eq(m->config.type, written[_i].type);
    if (getenv("TENON_GOLDEN")) {
        mkdir(folder("tenon"), 0777), mkdir(kept, 0777);
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        tn_safetensors_put(w, "scores", tn_llama_forward(m, ids));
        snprintf(path, sizeof path, "%s/answers.safetensors", kept);
        ck_assert(tn_llama_save(m, kept) == TN_OK && tn_safetensors_save(w, path) == TN_OK);
        tn_safetensors_writer_free(w);
        snprintf(path, sizeof path, "%s/model.safetensors", kept);
    }
    ck_assert_msg(tn_llama_save(m, now) == TN_OK, "%s", tn_error_message());
    char other[900];
    snprintf(path, sizeof path, "%s/config.json", kept), snprintf(other, sizeof other, "%s/config.json", now);
    ck_assert(tn_same_bits(tn_file_read(path, 1 << 20), tn_file_read(other, 1 << 20)));
    snprintf(path, sizeof path, "%s/answers.safetensors", kept);
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert_double_le(furthest(tn_llama_forward(m, ids), tn_safetensors_get(f, "scores")), 1e-5);
    tn_safetensors_close(f);
    ck_assert_ptr_nonnull(b = tn_llama_load(now));
    ck_assert_str_eq(b->config.type, written[_i].type);
    ck_assert(tn_same_bits(tn_llama_forward(m, ids), tn_llama_forward(b, ids)));
    tn_free(m), tn_free(b);
}

/* ---- as a tn_lm -------------------------------------------------------------------------------------------------- */

TEST(any_model_that_writes)
{
    tn_lm *gpt = tn_lm_load(tn_test_data("golden/gpt/torch")), *llama = tn_lm_load(folder("llama3"));
    fine();
    const tn_lm_info a = tn_lm_info_of(gpt), b = tn_lm_info_of(llama);
    ck_assert_str_eq(a.type, "gpt2");
    ck_assert_str_eq(b.type, "llama");
    ck_assert(a.vocab == 23 && a.limited && a.positions == 24 && b.kv_heads == 2 && !b.limited && b.heads == 6);
    tn_tensor *ids = tn_narrow(answer_of(-1, "ids"), 0, 0, 1);
    ck_assert(
        tn_same_bits(tn_lm_forward(llama, ids, .last = true), tn_llama_forward((tn_llama *)llama, ids, .last = true)));
    ck_assert(tn_same_bits(tn_lm_loss(llama, ids, NULL), tn_llama_loss((tn_llama *)llama, ids, NULL)));
    tn_decoding *d = tn_lm_decoding(llama, 1, 19);
    tn_generated g = tn_generate(d, ids, .most = 8);
    ck_assert(tn_same_bits(tn_select(g.tokens, 1, 0), tn_narrow(answer_of(0, "greedy"), 0, 0, 1)));
    mkdir(tn_test_file("any"), 0777);
    ck_assert_int_eq(tn_lm_save(gpt, tn_test_file("any")), TN_OK);
    fine();
    tn_linear *l = tn_linear_new(.in = 2, .out = 2);
    ck_refused(tn_lm_forward(l, ids), TN_EINVAL,
               "a Linear is not a language model; expected a tn_gpt, a tn_llama, or a module whose class has .lm");
    ck_assert_ptr_null(tn_lm_load(tn_test_data("golden/bert/masked")));
    char says[1200];
    snprintf(
        says, sizeof says,
        "'%s/config.json': model_type is 'bert'; supported: 'gpt2', 'llama', 'mistral', 'qwen2', 'qwen3', 'gemma2', "
        "'gemma3_text', 'olmo2', 'smollm3', 'phi3', 'gpt_neox', 'gptj', 'mixtral' "
        "and 'qwen3_moe'",
        tn_test_data("golden/bert/masked"));
    ck_error(TN_EUNSUPPORTED, says);
    ck_refused(tn_lm_load(NULL), TN_EINVAL, "the directory is NULL; expected the one that contains 'config.json'");
    tn_decoding_free(d), tn_free(gpt), tn_free(llama), tn_free(l);
}

TEST(learns)
{
    tn_seed(4);
    tn_llama     *m = plain();
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    double        first = 0, last = 0;
    for (int step = 0; step < 80; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_llama_loss(m, answer_of(-1, "ids"), NULL);
        tn_backward(loss);
        tn_step(o);
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(first > 2 && last < 0.3, "from %g to %g", first, last);
    tn_optimizer_free(o);
    tn_free(m);
}

TEST(wrong_use)
{
    ck_refused(tn_llama_new(.dim = 16), TN_EINVAL, "tn_llama_new: .vocab is 0, but must be from 1 to 10000000");
    ck_refused(tn_llama_new(SIZES, .type = "gemma"), TN_EINVAL,
               "tn_llama_new: .type is 'gemma', which is not a model_type that tn_llama supports");
    ck_refused(tn_llama_new(.vocab = 9, .heads = 6, .dim = 25), TN_EINVAL,
               "tn_llama_new: .heads is 6, which does not divide .dim 25; set .head_dim");
    ck_refused(tn_llama_new(.vocab = 9, .heads = 6, .dim = 24, .kv_heads = 4), TN_EINVAL,
               "tn_llama_new: .kv_heads is 4, but must divide .heads, which is 6");
}
