/* test_gpt.c — GPT-2 compared with Hugging Face's (tests/golden/gpt.py): logits, files, generated texts. */
#include "models/models.h"
#include "tests/common/answers.h"
#include "tests/common/golden_case.h"

static tn_gpt *gpt;
static void    open_answers(void)
{
    tn_answers_open("golden/gpt/answers.safetensors");
    gpt = tn_gpt_load(tn_test_data("golden/gpt/torch"));
    fine();
}
static void close_all(void) { close_answers(), tn_free(gpt); }
AROUND_TESTS(open_answers, close_all);

TEST(scores_as_hugging_face)
{
    ck_assert(!gpt->base.training);
    tn_tensor *y = tn_gpt_forward(gpt, answer("ids")), *want = answer("scores");
    ck_assert(tn_shape_equal(tn_shape_of(y), tn_shape_of(want)));
    ck_assert_double_le(tn_item(tn_amax(tn_reshape(tn_abs(tn_sub(y, want)), TN_SHAPE(-1)), .dims = TN_DIMS(0))), 2e-5);
    ck_assert(tn_same_bits(tn_gpt_forward(gpt, answer("ids"), .last = true), tn_narrow(y, 1, 5, 1)));
}

/* ---- generation -------------------------------------------------------------------------------------------------- */

/* Compares with Hugging Face's texts, which are padded with the end token, 0. */
static void ck_texts(tn_generated g, const char *name)
{
    fine();
    tn_tensor    *want = answer(name);
    const int64_t rows = tn_numel(g.lengths), width = tn_size(g.tokens, 2), length = tn_size(want, 1);
    ck_assert_int_eq(tn_size(want, 0), rows);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < length; k++) {
            const int64_t word = k < tn_get_i64(g.lengths, i) ? tn_get_i64(g.tokens, i * width + k) : 0;
            ck_assert_msg(word == tn_get_i64(want, i * length + k), "%s: row %d, word %d: %d, expected %d", name,
                          (int)i, (int)k, (int)word, (int)tn_get_i64(want, i * length + k));
        }
}

TEST(texts_as_hugging_face)
{
    tn_decoding *d = tn_gpt_decoding(gpt, 2, 24);
    ck_texts(tn_generate(d, answer("ids"), .most = 12, .end = 0), "greedy");
    ck_assert_ptr_null(tn_generate(d, answer("ids"), .most = 1).tokens); /* used, it would continue the texts */
    ck_assert(tn_error() == TN_ESTATE && strstr(tn_error_message(), "tokens, but .read is 0; make a new decoding"));
    tn_clear_error();
    tn_decoding_free(d);

    d = tn_gpt_decoding(gpt, 8, 24);
    tn_generated g = tn_generate(d, answer("ids"), .most = 12, .end = 0, .beams = 4, .best = 3, .length_penalty = 0,
                                 .early_stopping = true);
    ck_texts(g, "beams");
    for (int64_t i = 0; i < 6; i++)
        ck_assert_double_eq_tol(tn_get(g.scores, i), tn_get(answer("beams.scores"), i), 1e-4);
    tn_decoding_free(d);

    d = tn_gpt_decoding(gpt, 4, 24);
    ck_texts(tn_generate(d, answer("ids"), .most = 12, .least = 8, .end = 0, .beams = 2, .no_repeat = 2,
                         .length_penalty = 0, .early_stopping = true),
             "no_repeat");
    tn_decoding_free(d);
}

/* A decoding that rereads everything for each token: the cache must give the same bits. */
typedef struct {
    tn_decoding base;
    tn_tensor  *text; /* [rows, n] */
} again;
static tn_tensor *again_scores(tn_decoding *base, tn_tensor *tokens)
{
    again     *d = (again *)base;
    tn_tensor *text = d->text ? tn_cat(1, d->text, tokens) : tokens;
    tn_drop(d->text);
    d->text = tn_keep(text);
    return tn_select(tn_gpt_forward(gpt, text, .last = true), 1, 0);
}
static tn_status again_reorder(tn_decoding *base, tn_tensor *index)
{
    again     *d = (again *)base;
    tn_tensor *text = tn_keep(tn_index_select(d->text, 0, index));
    tn_drop(d->text);
    d->text = text;
    return tn_error();
}
static const tn_decoding_kind again_kind = {sizeof(tn_decoding_kind), again_scores, again_reorder, NULL, NULL};

TEST_EACH(cache_threads_and_neighbours_change_nothing, 3)
{
    static const int64_t beams[] = {1, 3, 5};
    const int64_t        k = beams[_i];
    tn_decoding         *d = tn_gpt_decoding(gpt, 2 * k, 24);
    tn_generated         g = tn_generate(d, answer("ids"), .most = 12, .end = 19, .beams = k, .best = k);
    fine();
    tn_decoding_free(d);
    again        e = {{&again_kind, 2 * k, 24}, NULL};
    tn_generated h = tn_generate(&e.base, answer("ids"), .most = 12, .end = 19, .beams = k, .best = k);
    ck_assert(tn_same_bits(g.tokens, h.tokens) && tn_same_bits(g.scores, h.scores));
    tn_drop(e.text);
    for (int threads = 2; threads < 8; threads += 5) {
        tn_set_threads(threads);
        d = tn_gpt_decoding(gpt, 2 * k, 24);
        h = tn_generate(d, answer("ids"), .most = 12, .end = 19, .beams = k, .best = k);
        ck_assert(tn_same_bits(g.tokens, h.tokens) && tn_same_bits(g.scores, h.scores));
        tn_decoding_free(d);
    }
    tn_set_threads(0);
    for (int64_t b = 0; b < 2; b++) {
        d = tn_gpt_decoding(gpt, k, 24);
        h = tn_generate(d, tn_narrow(answer("ids"), 0, b, 1), .most = 12, .end = 19, .beams = k, .best = k);
        const int64_t n = tn_size(h.tokens, 2);
        ck_assert(tn_same_bits(tn_narrow(tn_narrow(g.tokens, 0, b, 1), 2, 0, n), h.tokens));
        ck_assert(tn_same_bits(tn_narrow(g.scores, 0, b, 1), h.scores));
        tn_decoding_free(d);
    }
}

/* Under autocast the cache gives the same bits, too, whether it was created inside or outside. */
TEST_EACH(autocast, 3)
{
    static const int64_t beams[] = {1, 3, 5};
    const int64_t        k = beams[_i];
    again                e = {{&again_kind, 2 * k, 24}, NULL};
    tn_decoding         *d = tn_gpt_decoding(gpt, 2 * k, 24);
    const tn_scope       s = tn_autocast_begin(true);
    tn_generated         g = tn_generate(d, answer("ids"), .most = 12, .end = 19, .beams = k, .best = k);
    fine();
    tn_generated h = tn_generate(&e.base, answer("ids"), .most = 12, .end = 19, .beams = k, .best = k);
    fine();
    ck_assert(tn_same_bits(g.tokens, h.tokens) && tn_same_bits(g.scores, h.scores));
    tn_decoding_free(d);
    tn_drop(e.text);
    tn_scope_end(s);
}

/* ---- files and training ------------------------------------------------------------------------------------------ */

static tn_gpt *small(void)
{
    tn_gpt *m = tn_gpt_new(.vocab = 23, .dim = 16, .layers = 2, .heads = 2, .positions = 24);
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        const tn_scope s = tn_no_grad_begin();
        tn_copy_(p.tensor, tn_mul_scalar(tn_golden_values(p.name, TN_F32, tn_shape_of(p.tensor)), 0.5));
        tn_scope_end(s);
    }
    tn_eval(m);
    fine();
    return m;
}

TEST(writes_what_hugging_face_reads)
{
    const char *kept = tn_test_data("golden/gpt/tenon"), *now = tn_test_folder("gpt");
    tn_gpt     *m = small(), *b;
    if (getenv("TENON_GOLDEN")) {
        mkdir(kept, 0777);
        ck_assert_int_eq(tn_gpt_save(m, kept), TN_OK);
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        tn_safetensors_put(w, "scores", tn_gpt_forward(m, answer("ids")));
        ck_assert_int_eq(tn_safetensors_save(w, tn_test_data("golden/gpt/tenon/answers.safetensors")), TN_OK);
        tn_safetensors_writer_free(w);
    }
    ck_assert_int_eq(tn_gpt_save(m, now), TN_OK);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "config.json" : "model.safetensors";
        char        a[1200], c[1200];
        snprintf(a, sizeof a, "%s/%s", kept, name), snprintf(c, sizeof c, "%s/%s", now, name);
        ck_assert_msg(tn_same_bits(tn_file_read(a, 1 << 20), tn_file_read(c, 1 << 20)), "%s", name);
    }
    ck_assert_ptr_nonnull(b = tn_gpt_load(now));
    ck_assert(tn_same_bits(tn_gpt_forward(m, answer("ids")), tn_gpt_forward(b, answer("ids"))));
    tn_free(m), tn_free(b);
}

/* With an untied output layer, which is loaded and saved, and not confused with the embedding. */
TEST(untied)
{
    const char *now = tn_test_folder("untied"), *weights = tn_test_file("untied/model.safetensors");
    tn_gpt     *m = tn_gpt_new(.vocab = 23, .dim = 16, .layers = 1, .heads = 2, .positions = 24, .untied = true), *b;
    tn_eval(m);
    ck_assert_int_eq(tn_gpt_save(m, now), TN_OK);
    tn_json *config = tn_json_load(tn_test_file("untied/config.json"));
    ck_assert(!tn_json_bool(tn_json_get(config, "tie_word_embeddings")));
    tn_safetensors *f = tn_safetensors_open(weights);
    ck_assert(tn_same_bits(tn_safetensors_get(f, "lm_head.weight"), m->out) && m->out != m->words->weight);
    tn_json_free(config), tn_safetensors_close(f);
    ck_assert_ptr_nonnull(b = tn_gpt_load(now));
    ck_assert(tn_same_bits(tn_gpt_forward(m, answer("ids")), tn_gpt_forward(b, answer("ids"))));
    tn_free(m), tn_free(b);
}

/* A tied tensor may be in a file twice if both copies are equal; a different output layer, which config.json ties to
 * the embedding, is an error instead of being dropped. Tested for each model with such a head. */
static void with_more(const char *path, const char *name, const char *like, double plus)
{
    tn_safetensors        *f = tn_safetensors_open(path);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        tn_safetensors_put(w, tn_safetensors_at(f, i).name, tn_safetensors_get_at(f, i));
    tn_safetensors_put(w, name, tn_add_scalar(tn_safetensors_get(f, like), plus));
    tn_safetensors_close(f);
    ck_assert_msg(tn_safetensors_save(w, path) == TN_OK, "%s", tn_error_message());
    tn_safetensors_writer_free(w);
}
static tn_status saved_lm(int which, const char *dir)
{
    tn_llama *l = tn_llama_new(.vocab = 11, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .tied = true);
    tn_gpt   *g = small();
    tn_status s = which == 0 ? tn_gpt_save(g, dir) : tn_llama_save(l, dir);
    tn_free(l), tn_free(g);
    tn_test_unsummed(dir);
    return s;
}
TEST(one_tensor_twice)
{
    static const struct {
        const char *more, *like;
    } at[] = {{"lm_head.weight", "transformer.wte.weight"}, {"lm_head.weight", "model.embed_tokens.weight"}};
    const char *dir = tn_test_folder("twice"), *weights = tn_test_file("twice/model.safetensors");
    for (int i = 0; i < 2; i++)
        for (int differ = 0; differ < 2; differ++) {
            ck_assert_int_eq(saved_lm(i, dir), TN_OK);
            with_more(weights, at[i].more, at[i].like, differ);
            tn_lm *m = tn_lm_load(dir);
            ck_assert_msg((m != NULL) == !differ, "%s", tn_error_message());
            tn_free(m);
            if (!differ) continue;
            char says[200];
            snprintf(says, sizeof says, "tn_load: '%s' and '%s' are one tensor here, but differ in the file",
                     at[i].more, at[i].like); /* with the file's shape */
            ck_error(TN_EFORMAT, says);
        }
    ck_assert_int_eq(saved_lm(0, dir), TN_OK);
    with_more(weights, "lm_head.bias", "transformer.ln_f.bias", 0); /* no such weight in these models */
    ck_assert_ptr_null(tn_lm_load(dir));
    ck_assert_msg(strstr(tn_error_message(), "1 unexpected (lm_head.bias)"), "%s", tn_error_message());
    tn_clear_error();
}

TEST(learns)
{
    tn_seed(4);
    tn_gpt       *m = tn_gpt_new(.vocab = 23, .dim = 16, .layers = 2, .heads = 2, .positions = 24);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    double        first = 0, last = 0;
    for (int step = 0; step < 80; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_gpt_loss(m, answer("ids"), NULL);
        tn_backward(loss);
        tn_step(o);
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(first > 2 && last < 0.3, "from %g to %g", first, last);
    ck_refused(tn_gpt_loss(m, tn_zeros_of(TN_I64, TN_SHAPE(2, 1)), NULL), TN_ESHAPE,
               "GPT: a sequence of length 1 has no next token as target; pass targets");
    tn_optimizer_free(o);
    tn_free(m);
}

TEST(wrong_use)
{
    const tn_gpt_config small = tn_gpt_size("small");
    ck_assert(small.dim == 768 && small.layers == 12 && small.heads == 12 && small.positions == 1024);
    ck_assert_int_eq(tn_gpt_size("huge").dim, 0);
    ck_error(TN_EINVAL, "tn_gpt_size: unknown size 'huge'; the sizes are tiny, mini, baby, small, medium and large");
    ck_refused(tn_gpt_new(.dim = 16), TN_EINVAL, "tn_gpt_new: .vocab is 0, but must be from 1 to 10000000");
    ck_refused(tn_gpt_forward(gpt, tn_zeros_of(TN_I64, TN_SHAPE(1, 25))), TN_ESHAPE,
               "GPT: a sequence of 25 tokens is longer than the model's 24 positions; truncate it");
    ck_refused(tn_gpt_decoding(gpt, 1, 25), TN_EINVAL,
               "tn_gpt_decoding: length is 25, but the model has only 24 positions");
    ck_assert_ptr_null(tn_gpt_load(tn_test_data("golden/bert/masked")));
    char says[1200];
    snprintf(says, sizeof says, "'%s/config.json': model_type is 'bert'; supported: 'gpt2'",
             tn_test_data("golden/bert/masked"));
    ck_error(TN_EUNSUPPORTED, says);
}
