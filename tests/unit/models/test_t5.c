/* test_t5.c — T5, T5 v1.1 and Flan-T5 compared with Hugging Face's (tests/golden/t5.py): logits, loss, the gradient of
 * every parameter, generated tokens; the same bits with and without a cache, padding and threads; weights written as
 * they were read; members of config.json. */
#include "models/models.h"
#include "tests/common/answers.h"

static const char *const names[] = {"t5", "t5_v1_1", "flan"};
enum { MODELS = sizeof names / sizeof *names };

static void open_answers(void) { tn_answers_open("golden/t5/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);
static tn_tensor *answer_of(int model, const char *what)
{
    return tn_safetensors_get(answers, model < 0 ? what : tn_name("%s.%s", names[model], what));
}
static tn_seq2seq *golden(int i, const char *more)
{
    tn_seq2seq *m = tn_seq2seq_load(tn_test_data(tn_name("golden/t5/%s%s", names[i], more)));
    fine();
    ck_assert_str_eq(m->config.type, "t5");
    return m;
}
/* The decoder's input, without the last token. */
static tn_tensor *read_so_far(void)
{
    tn_tensor *t = answer_of(-1, "target");
    return tn_narrow(t, 1, 0, tn_size(t, 1) - 1);
}

TEST_EACH(numbers_as_hugging_face, MODELS)
{
    tn_seq2seq *m = golden(_i, ""), *want = golden(_i, ".grad");
    ck_assert((m->out == m->source->weight) == !_i && m->source == m->target && !m->out_bias && !m->positions);
    ck_assert_double_le(
        furthest(tn_seq2seq_forward(m, answer_of(-1, "source"), read_so_far()), answer_of(_i, "logits")), 2e-5);
    tn_tensor *loss = tn_seq2seq_loss(m, answer_of(-1, "source"), answer_of(-1, "target"));
    ck_assert_double_eq_tol(tn_item(loss), tn_item(answer_of(_i, "loss")), 1e-5);
    tn_backward(loss);
    fine();
    same_gradients(&m->base, &want->base);
    tn_free(m), tn_free(want);
}

TEST_EACH(tokens_as_hugging_face, MODELS)
{
    tn_seq2seq *m = golden(_i, "");
    tn_tensor  *begin = tn_zeros_of(TN_I64, TN_SHAPE(3, 1));
    for (int64_t beams = 1; beams <= 5; beams += 4) {
        tn_tensor   *want = answer_of(_i, tn_name("beams%d", (int)beams));
        tn_decoding *d = tn_seq2seq_decoding(m, answer_of(-1, "source"), beams, 8);
        tn_generated g = tn_generate(d, begin, .beams = beams, .end = 1, .most = 7);
        fine();
        for (int64_t b = 0; b < 3; b++)
            for (int64_t t = 0; t < 7; t++) {
                const int64_t n = tn_size(g.tokens, 2), got = t < n ? tn_get_i64(g.tokens, b * n + t) : -1;
                const int64_t is = tn_get_i64(want, b * 7 + t);
                ck_assert_msg(got == (is > 1 ? is : -1) || (got < 2 && is < 2), "%d beams, %d: %d is %d, not %d",
                              (int)beams, (int)b, (int)t, (int)got, (int)is);
            }
        tn_decoding_free(d);
    }
    tn_free(m);
}

TEST_EACH(the_same_bits, MODELS)
{
    tn_seq2seq    *m = golden(_i, "");
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = answer_of(-1, "source"), *z = read_so_far(), *y = tn_seq2seq_forward(m, x, z);
    tn_decoding   *d = tn_seq2seq_decoding(m, x, 1, 6);
    for (int64_t t = 0; t < 6; t++) /* with a cache */
        ck_assert(tn_same_bits(d->kind->scores(d, tn_narrow(z, 1, t, 1)), tn_select(y, 1, t)));
    tn_tensor *alone = tn_seq2seq_forward(m, tn_narrow(tn_narrow(x, 0, 1, 1), 1, 0, 6), tn_narrow(z, 0, 1, 1));
    ck_assert(tn_same_bits(alone, tn_narrow(y, 0, 1, 1))); /* without the padding */
    tn_set_threads(3);
    ck_assert(tn_same_bits(tn_seq2seq_forward(m, x, z), y));
    tn_decoding_free(d);
    tn_scope_end(s);
    tn_free(m);
}

/* The written file has the tensors of the one that was read, bit for bit, and gives the same logits. */
TEST_EACH(writes_what_it_read, MODELS)
{
    const char *to = tn_test_folder(names[_i]);
    tn_seq2seq *m = golden(_i, ""), *b;
    ck_assert_msg(tn_seq2seq_save(m, to) == TN_OK, "%s", tn_error_message());
    ck_assert_ptr_nonnull(b = tn_seq2seq_load(to));
    ck_assert(!strcmp(b->config.type, "t5") && b->config.out_scale == m->config.out_scale &&
              b->config.untied == m->config.untied && b->config.gated == m->config.gated && b->config.dropout == 0.1 &&
              b->config.relative == 8 && b->config.relative_distance == 9);
    ck_assert(tn_same_bits(tn_seq2seq_forward(m, answer_of(-1, "source"), read_so_far()),
                           tn_seq2seq_forward(b, answer_of(-1, "source"), read_so_far())));
    same_weights(to, tn_name("golden/t5/%s/model.safetensors", names[_i]), NULL);
    tn_free(m), tn_free(b);
}

/* A model made here with T5's options is a directory of T5. */
TEST(made_here)
{
    tn_seq2seq_config c = tn_seq2seq_t5(
        (tn_seq2seq_config){.source_words = 30, .dim = 8, .layers = 1, .heads = 2, .ff = 12, .begin = 0, .end = 1});
    tn_seed(2);
    tn_seq2seq *m = tn_seq2seq_create(c), *b;
    const char *to = tn_test_folder("made");
    fine();
    ck_assert_msg(tn_seq2seq_save(m, to) == TN_OK, "%s", tn_error_message());
    ck_assert_ptr_nonnull(b = tn_seq2seq_load(to));
    ck_assert_str_eq(b->config.type, "t5");
    ck_assert(b->config.gated && !b->config.untied && b->config.out_scale == m->config.out_scale);
    tn_eval(m);
    static const int64_t ids[] = {5, 6, 7, 1};
    tn_tensor           *x = tn_from_data(TN_I64, TN_SHAPE(1, 4), ids);
    ck_assert(tn_same_bits(tn_seq2seq_forward(m, x, x), tn_seq2seq_forward(b, x, x)));
    tn_free(m), tn_free(b);
}

/* ---- config.json ------------------------------------------------------------------------------------------------- */

/* A folder with the weights of golden/t5/t5, and its config.json with the members of the object `with`, without those
 * that are "absent". */
static const char *changed(const char *with)
{
    char            path[1200];
    const char     *to = tn_test_folder("changed");
    tn_json        *was = tn_json_load(tn_test_data("golden/t5/t5/config.json"));
    tn_json        *more = tn_json_parse(with, strlen(with));
    tn_json_writer *w = tn_json_writer_new(0);
    fine();
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x))
        if (!tn_json_get(more, tn_json_key(x))) tn_json_put(w, tn_json_key(x), x);
    for (const tn_json *x = tn_json_first(more); x; x = tn_json_next(x))
        if (tn_json_type_of(x) != TN_JSON_STRING || strcmp(tn_json_string(x), "absent") != 0)
            tn_json_put(w, tn_json_key(x), x);
    tn_json_close(w);
    snprintf(path, sizeof path, "%s/config.json", to);
    ck_assert_int_eq(tn_json_save(w, path), TN_OK);
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    tn_safetensors        *f = tn_safetensors_open(tn_test_data("golden/t5/t5/model.safetensors"));
    tn_safetensors_writer *weights = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        tn_safetensors_put(weights, tn_safetensors_at(f, i).name, tn_safetensors_get_at(f, i));
    ck_assert_int_eq(tn_safetensors_save(weights, path), TN_OK);
    tn_safetensors_writer_free(weights), tn_safetensors_close(f);
    tn_json_writer_free(w), tn_json_free(was), tn_json_free(more);
    fine();
    return to;
}

TEST(members_of_the_config)
{
    static const struct {
        const char *with, *says;
    } wrong[] = {
        {"{\"feed_forward_proj\": \"gated-sigmoid\"}", "feed_forward_proj is 'gated-sigmoid'"},
        {"{\"dense_act_fn\": \"gelu_new\"}", "dense_act_fn is 'gelu_new', but feed_forward_proj is 'relu'"},
        {"{\"is_encoder_decoder\": false}", "is_encoder_decoder is false, which is not supported"},
        {"{\"d_kv\": 0}", "d_kv is 0, but must be from 1 to 65536"},
        {"{\"num_heads\": 0}", "num_heads is 0, but must be from 1 to 1024"},
        {"{\"d_model\": \"ten\"}", "d_model"},
        {"{\"vocab_size\": null}", "vocab_size is missing"},
        {"{\"relative_attention_num_buckets\": 3}", "relative_attention_num_buckets is 3, but must be from 4 to"},
        {"{\"layer_norm_epsilon\": 1}", "layer_norm_epsilon is 1"},
        {"{\"dropout_rate\": 1.5}", "dropout_rate is 1.5"},
        {"{\"pad_token_id\": 23}", "pad_token_id is 23, but must be less than the vocabulary's size, 23"},
        {"{\"pad_token_id\": null}", "pad_token_id is null or negative, which is not supported"},
        {"{\"decoder_start_token_id\": \"absent\"}", "decoder_start_token_id is null or negative"},
        {"{\"eos_token_id\": null}", "eos_token_id is null or negative"},
        {"{\"quantization_config\": {\"bits\": 8}}", "quantization_config is not empty"},
        {"{\"num_layers\": 900}", "elements"},
        {"{\"d_kv\": 5}", "holds another model"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_ptr_null(tn_seq2seq_load(changed(wrong[i].with)));
        ck_assert_msg(strstr(tn_error_message(), wrong[i].says) != NULL, "%s: %s", wrong[i].with, tn_error_message());
        tn_clear_error();
    }
    /* other values, and members without effect on the results */
    tn_seq2seq *m = tn_seq2seq_load(changed("{\"scale_decoder_outputs\": false, \"n_positions\": 4, "
                                            "\"initializer_factor\": 0.5, \"num_decoder_layers\": 2, "
                                            "\"task_specific_params\": {\"a\": 1}}"));
    fine();
    ck_assert(m->config.out_scale == 0 && !m->config.untied);
    tn_free(m);
    m = tn_seq2seq_load(changed("{\"scale_decoder_outputs\": null}")); /* not true */
    fine();
    ck_assert(m->config.out_scale == 0);
    tn_free(m);
    m = tn_seq2seq_load(changed("{\"bos_token_id\": 3}"));
    fine();
    ck_assert(m->kept.begin.n == 1 && m->kept.begin.id[0] == 3);
    tn_free(m);
}
