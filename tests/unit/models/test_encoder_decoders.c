/* test_encoder_decoders.c — BART, Marian and M2M-100 compared with Hugging Face's (tests/golden/encoder_decoders.py):
 * logits, loss, the gradient of every parameter, generated tokens, the ids of both tokenizers; the same bits with a
 * cache; files written as they were read. */
#include "models/models.h"
#include "tests/common/answers.h"

static const char *const names[] = {"bart", "bart_untied", "marian", "marian_apart", "m2m"};
static const char *const types[] = {"bart", "bart", "marian", "marian", "m2m_100"};
enum { MODELS = sizeof names / sizeof *names };

static void open_answers(void) { tn_answers_open("golden/encoder_decoders/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);
static tn_tensor *answer_of(int model, const char *what)
{
    return tn_safetensors_get(answers, model < 0 ? what : tn_name("%s.%s", names[model], what));
}
static tn_seq2seq *golden(int i, const char *more)
{
    tn_seq2seq *m = tn_seq2seq_load(tn_test_data(tn_name("golden/encoder_decoders/%s%s", names[i], more)));
    fine();
    ck_assert_str_eq(m->config.type, types[i]);
    return m;
}
static tn_tensor *target(const tn_seq2seq *m)
{
    tn_tensor *t = tn_clone(answer_of(-1, "target"));
    for (int64_t b = 0; b < tn_size(t, 0); b++) tn_set_at(t, TN_SHAPE(b, 0), (double)m->config.begin);
    return t;
}
static tn_tensor *read_part(tn_tensor *t) { return tn_narrow(t, 1, 0, tn_size(t, 1) - 1); }

TEST_EACH(numbers_as_hugging_face, MODELS)
{
    tn_seq2seq *m = golden(_i, ""), *want = golden(_i, ".grad");
    tn_tensor  *y = tn_seq2seq_forward(m, answer_of(-1, "source"), read_part(target(m))), *z = answer_of(_i, "scores");
    ck_assert_double_le(furthest(tn_select(y, 0, 0), tn_select(z, 0, 0)), 2e-5);
    ck_assert_double_le(furthest(tn_narrow(tn_select(y, 0, 1), 0, 0, 3), tn_narrow(tn_select(z, 0, 1), 0, 0, 3)), 2e-5);
    tn_tensor *loss = tn_seq2seq_loss(m, answer_of(-1, "source"), target(m));
    ck_assert_double_eq_tol(tn_item(loss), tn_item(answer_of(_i, "loss")), 1e-5);
    tn_backward(loss);
    fine();
    same_gradients(&m->base, &want->base);
    tn_free(m), tn_free(want);
}

/* Padding in front of a text and inside it: M2M-100 does not count it, the others do. Logits of token 3 as printed by
 * transformers 5.24 for these ids. */
TEST_EACH(padding_inside_a_text, MODELS)
{
    static const float want[][10] = {
        {2.813024F, 3.282431F, 2.654924F, 2.950207F, 2.96529F, 2.707245F, 2.737893F, 2.900424F, 2.96429F, 2.712334F},
        {.320661F, .254147F, .110518F, .156456F, .120839F, .817414F, .77897F, .917254F, 1.027796F, .588874F},
        {1.116564F, .991115F, 1.049558F, .961076F, 1.022268F, 1.038214F, .998896F, .744118F, .805861F, .969763F},
        {.515953F, .370574F, .419847F, .414F, .342068F, .578261F, .47351F, .30677F, .544897F, .543813F},
        {-.258704F, .062037F, -.131606F, .0805F, -.446402F, -.12921F, -.401748F, -.136392F, -.511293F, .075034F}};
    static const int64_t source[] = {1, 5, 9, 1, 13, 7, 2, 1, 1, 1, 8, 6, 5, 2};
    static const int64_t read[] = {2, 7, 1, 10, 6, 2, 4, 12, 8, 1};
    tn_seq2seq          *m = golden(_i, "");
    ck_assert_int_eq(m->config.padding, 1);
    tn_tensor *y =
        tn_seq2seq_forward(m, tn_from_data(TN_I64, TN_SHAPE(2, 7), source), tn_from_data(TN_I64, TN_SHAPE(2, 5), read));
    fine();
    for (int64_t i = 0; i < 10; i++) ck_assert_double_eq_tol(tn_get(tn_select(y, 2, 3), i), (double)want[_i][i], 2e-5);
    tn_free(m);
}

TEST_EACH(the_same_bits_with_and_without_a_cache, MODELS)
{
    tn_seq2seq    *m = golden(_i, "");
    tn_tensor     *source = answer_of(-1, "source"), *read = read_part(target(m));
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *y = tn_seq2seq_forward(m, source, read);
    tn_decoding   *d = tn_seq2seq_decoding(m, source, 1, 8);
    for (int64_t t = 0, n; t < tn_size(read, 1); t += n) {
        n = t ? 1 : 2;
        ck_assert(tn_same_bits(d->kind->scores(d, tn_narrow(read, 1, t, n)), tn_select(y, 1, t + n - 1)));
    }
    tn_decoding_free(d);
    tn_scope_end(s);
    tn_free(m);
}

/* The tokens of a row, up to the end token, the maximum, or a padding token after the end. */
static int64_t length_of(const tn_seq2seq *m, tn_tensor *row)
{
    int64_t n = 0;
    while (n < tn_numel(row) && tn_get_i64(row, n) != m->config.end) n++;
    return n;
}

TEST_EACH(generates_as_hugging_face, MODELS)
{
    tn_seq2seq              *m = golden(_i, "");
    const tn_seq2seq_search *s = &m->search;
    ck_assert(s->beams == 3 && s->most == 11);
    for (int64_t beams = 1; beams < 4; beams += 2) {
        tn_tensor   *want = answer_of(_i, beams == 1 ? "beams1" : "beams3");
        tn_generated g = tn_seq2seq_generate(m, answer_of(-1, "source"), .beams = beams, .least = s->least,
                                             .length_penalty = s->length_penalty, .early_stopping = s->early_stopping,
                                             .no_repeat = s->no_repeat, .repetition_penalty = s->repetition_penalty);
        fine();
        for (int64_t b = 0; b < 2; b++) {
            tn_tensor    *row = tn_select(want, 0, b), *got = tn_select(tn_select(g.tokens, 0, b), 0, 0);
            const int64_t n = length_of(m, row);
            ck_assert_int_eq(tn_get_i64(g.lengths, b), n);
            for (int64_t i = 0; i < n; i++)
                ck_assert_msg(tn_get_i64(got, i) == tn_get_i64(row, i), "%s, %d beams, row %d: token %d", names[_i],
                              (int)beams, (int)b, (int)i);
        }
    }
    tn_free(m);
}

/* The written files have the members and tensors of those that were read. */
TEST_EACH(writes_what_it_read, MODELS)
{
    static const char *const files[] = {"config.json", "generation_config.json"};
    static const char *const new_names[] = {"_from_model_config",
                                            "transformers_version",
                                            "dtype",
                                            "torch_dtype",
                                            "use_cache",
                                            "is_decoder",
                                            "id2label",
                                            "label2id",
                                            "num_labels",
                                            "classifier_dropout",
                                            "output_hidden_states",
                                            "output_attentions"};
    char                     path[1200];
    const char              *to = tn_test_folder("written");
    tn_seq2seq              *m = golden(_i, ""), *b;
    tn_tensor               *source = answer_of(-1, "source"), *read = read_part(target(m));
    ck_assert_msg(tn_seq2seq_save(m, to) == TN_OK, "%s", tn_error_message());
    ck_assert_ptr_nonnull(b = tn_seq2seq_load(to));
    ck_assert(tn_same_bits(tn_seq2seq_forward(m, source, read), tn_seq2seq_forward(b, source, read)));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", to, files[i]);
        tn_json *now = tn_json_load(path);
        tn_json *was = tn_json_load(tn_test_data(tn_name("golden/encoder_decoders/%s/%s", names[_i], files[i])));
        fine();
        for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x)) {
            const tn_json *y = tn_json_get(now, tn_json_key(x));
            bool           may = tn_json_type_of(x) == TN_JSON_NULL;
            for (size_t k = 0; k < sizeof new_names / sizeof *new_names; k++)
                may = may || !strcmp(new_names[k], tn_json_key(x));
            ck_assert_msg(y || may, "%s: %s is missing", files[i], tn_json_key(x));
            if (y && (tn_json_type_of(x) == TN_JSON_INTEGER || tn_json_type_of(x) == TN_JSON_REAL))
                ck_assert_msg(tn_json_double(x) == tn_json_double(y), "%s", tn_json_key(x));
            if (y && tn_json_type_of(x) == TN_JSON_BOOL)
                ck_assert_msg(tn_json_bool(x) == tn_json_bool(y), "%s", tn_json_key(x));
        }
        tn_json_free(now), tn_json_free(was);
    }
    same_weights(to, tn_name("golden/encoder_decoders/%s/model.safetensors", names[_i]),
                 m->config.shared ? NULL : "model.shared.weight"); /* of no use there */
    tn_free(m), tn_free(b);
}

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

static void check_tokens(const tn_tokenizer *t, const tn_json *line, const char *key)
{
    tn_encoding   *e = tn_encoding_new();
    const char    *text = tn_json_string(tn_json_need(line, "text"));
    const tn_json *want = tn_json_first(tn_json_need(line, key));
    tn_tokenizer_encode(t, e, text, strlen(text));
    fine();
    for (int64_t i = 0; i < e->n; i++, want = tn_json_next(want))
        ck_assert_msg(want && tn_json_i64(want) == e->id[i], "'%s', %s: token %d is %d", text, key, (int)i, e->id[i]);
    ck_assert_msg(!want, "'%s', %s", text, key);
    if (!strcmp(key, "ids")) {
        tn_string s = {0};
        ck_assert_int_eq(tn_tokenizer_decode(t, e->id, e->n, &s), TN_OK);
        const char *at = s.at, *said = tn_json_string(tn_json_need(line, "decoded"));
        while (*at == ' ') at++; /* as transformers strips it */
        size_t n = strlen(at);
        while (n && at[n - 1] == ' ') n--;
        ck_assert_msg(n == strlen(said) && !memcmp(at, said, n), "'%s' is decoded to '%s', not '%s'", text, s.at, said);
        tn_string_free(&s);
    }
    tn_encoding_free(e);
}

/* _i: 0: as read; 1: after writing and reading. */
TEST_EACH(tokens_as_hugging_face, 2)
{
    static const char *const kinds[] = {"marian_tokens", "m2m_tokens"};
    tn_json                 *lines = tn_json_load(tn_test_data("golden/encoder_decoders/tokens.json"));
    fine();
    for (int k = 0; k < 2; k++) {
        const char   *dir = tn_test_data(tn_name("golden/encoder_decoders/%s", kinds[k]));
        tn_tokenizer *t = tn_tokenizer_load(dir), *other = k ? NULL : tn_tokenizer_load(dir, .target = true);
        fine();
        if (_i) {
            const char *to = tn_test_folder(kinds[k]);
            ck_assert_int_eq(tn_tokenizer_save(t, to), TN_OK);
            if (other) ck_assert_int_eq(tn_tokenizer_save(other, to), TN_OK);
            tn_tokenizer_free(t), tn_tokenizer_free(other);
            t = tn_tokenizer_load(to), other = k ? NULL : tn_tokenizer_load(to, .target = true);
            fine();
        }
        ck_assert_str_eq(tn_tokenizer_languages(t, false), k ? "fr" : "eng");
        ck_assert_str_eq(tn_tokenizer_languages(t, true), k ? "de" : "fra");
        for (const tn_json *line = tn_json_first(lines); line; line = tn_json_next(line)) {
            if (strcmp(tn_json_string(tn_json_need(line, "tokenizer")), kinds[k]) != 0) continue;
            check_tokens(t, line, "ids");
            if (other) check_tokens(other, line, "target");
        }
        tn_tokenizer_free(t), tn_tokenizer_free(other);
    }
    tn_json_free(lines);
}

TEST(languages)
{
    const char   *dir = tn_test_data("golden/encoder_decoders/m2m_tokens");
    tn_tokenizer *t = tn_tokenizer_load(dir, .language = "ru");
    tn_encoding  *e = tn_encoding_new();
    fine();
    ck_assert_int_eq(tn_tokenizer_encode(t, e, "", 0), TN_OK);
    ck_assert_int_eq(e->n, 2);
    ck_assert_str_eq(tn_tokenizer_token(t, e->id[0]), "__ru__");
    ck_assert_int_eq(e->id[0], tn_tokenizer_language(t, "ru"));
    ck_assert_int_eq(tn_tokenizer_language(t, "xx"), -1);
    ck_assert_int_eq(tn_tokenizer_language(t, "</s"), -1);
    ck_assert_int_eq(tn_tokenizer_size(t) - tn_tokenizer_language(t, "zu"), 9); /* 8 made-up words */
    ck_refused_has(tn_tokenizer_load(dir, .language = "klingon"), TN_EINVAL,
                   "the tokenizer has no language 'klingon'; its own have names like en");
    tn_encoding_free(e), tn_tokenizer_free(t);
}

/* ---- files that are refused -------------------------------------------------------------------------------------- */

/* A folder with the weights of a golden model, and its file `file` with the members of the object `with`. */
static const char *changed(const char *name, const char *file, const char *with)
{
    static const char *const files[] = {"config.json", "generation_config.json"};
    char                     path[1200];
    const char              *to = tn_test_folder("changed");
    tn_json                 *more = tn_json_parse(with, strlen(with));
    fine();
    for (int i = 0; i < 2; i++) {
        tn_json        *was = tn_json_load(tn_test_data(tn_name("golden/encoder_decoders/%s/%s", name, files[i])));
        tn_json_writer *w = tn_json_writer_new(0);
        const bool      here = !strcmp(files[i], file);
        tn_json_open_object(w, NULL);
        for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x))
            if (!here || !tn_json_get(more, tn_json_key(x))) tn_json_put(w, tn_json_key(x), x);
        for (const tn_json *x = here ? tn_json_first(more) : NULL; x; x = tn_json_next(x))
            tn_json_put(w, tn_json_key(x), x);
        tn_json_close(w);
        snprintf(path, sizeof path, "%s/%s", to, files[i]);
        ck_assert_int_eq(tn_json_save(w, path), TN_OK);
        tn_json_writer_free(w), tn_json_free(was);
    }
    tn_safetensors *f =
        tn_safetensors_open(tn_test_data(tn_name("golden/encoder_decoders/%s/model.safetensors", name)));
    tn_safetensors_writer *weights = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        tn_safetensors_put(weights, tn_safetensors_at(f, i).name, tn_safetensors_get_at(f, i));
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    ck_assert_int_eq(tn_safetensors_save(weights, path), TN_OK);
    tn_safetensors_writer_free(weights), tn_safetensors_close(f), tn_json_free(more);
    return to;
}

TEST(refused_by_name)
{
    static const char config[] = "config.json", generation[] = "generation_config.json";
    static const struct {
        const char *name, *file, *with;
        tn_status   status;
        const char *says;
    } at[] = {
        {"bart", config, "{\"model_type\":\"mbart\"}", TN_EUNSUPPORTED,
         "model_type is 'mbart'; supported: 'tenon-seq2seq', 'bart', 'marian'"},
        {"bart", config, "{\"activation_function\":\"gelu_pytorch\"}", TN_EUNSUPPORTED,
         "activation_function is 'gelu_pytorch'"},
        {"bart", config, "{\"is_decoder\":true}", TN_EUNSUPPORTED, "is_decoder is true, which is not supported"},
        {"bart", config, "{\"encoder_attention_heads\":5}", TN_EFORMAT,
         "encoder_attention_heads 5 does not divide d_model 12"},
        {"bart", config, "{\"decoder_attention_heads\":7}", TN_EFORMAT,
         "decoder_attention_heads 7 does not divide d_model 12"},
        {"m2m", config, "{\"pad_token_id\":19}", TN_EFORMAT,
         "pad_token_id is 19, but must be less than the vocabulary's size, 19"},
        {"marian_apart", generation, "{\"eos_token_id\":17}", TN_EFORMAT,
         "eos_token_id is 17, but must be less than the vocabulary's size, 17"},
        {"m2m", config, "{\"quantization_config\":{\"bits\":4}}", TN_EUNSUPPORTED, "quantization_config is not empty"},
        {"bart", config, "{\"decoder_layers\":2}", TN_EFORMAT, "unexpected"},
        {"bart", generation, "{\"do_sample\":true}", TN_EUNSUPPORTED, "do_sample is true, which is not supported"},
        {"bart", generation, "{\"num_beam_groups\":2}", TN_EUNSUPPORTED, "num_beam_groups is 2; only 1 is supported"},
        {"bart", generation, "{\"suppress_tokens\":[4]}", TN_EUNSUPPORTED, "suppress_tokens is not empty"},
        {"bart", generation, "{\"early_stopping\":\"never\"}", TN_EFORMAT, "early_stopping"},
        {"bart", generation, "{\"eos_token_id\":[2,3]}", TN_EFORMAT, "eos_token_id"},
        {"bart", config, "{\"bos_token_id\":[]}", TN_EUNSUPPORTED,
         "bos_token_id is an empty array; use null for no token"},
        {"bart", generation, "{\"bad_words_ids\":[[1],[2,3]]}", TN_EUNSUPPORTED,
         "bad_words_ids[1] is not one token id; only single tokens are supported"},
        {"bart", generation, "{\"bad_words_ids\":7}", TN_EUNSUPPORTED,
         "bad_words_ids must be an array of at most 16 sequences"},
        {"bart", generation, "{\"num_beams\":65}", TN_EFORMAT, "num_beams is 65, but must be from 0 to 64"},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        ck_assert_ptr_null(tn_seq2seq_load(changed(at[i].name, at[i].file, at[i].with)));
        ck_assert_msg(tn_error() == at[i].status && strstr(tn_error_message(), at[i].says), "%s", tn_error_message());
        tn_clear_error();
    }
    /* without generation_config.json the members of config.json count, as in transformers */
    remove(tn_name("%s/generation_config.json", changed("bart", config, "{\"num_beams\":4,\"max_length\":9}")));
    tn_seq2seq *m = tn_seq2seq_load(tn_test_file("changed"));
    fine();
    ck_assert(m->search.beams == 4 && m->search.most == 8);
    tn_free(m);
}

/* Ids that differ between the files stay in theirs; generation uses those of generation_config.json. */
TEST_EACH(ids_of_both_files, MODELS)
{
    static const char *const        keys[] = {"bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id",
                                              "forced_eos_token_id"},
                             *const files[] = {"config.json", "generation_config.json"};
    char                            path[1200];
    const char                     *to = tn_test_folder("ids");
    static const char *const        ids = "{\"bos_token_id\":6,\"decoder_start_token_id\":7,\"eos_token_id\":8,"
                                          "\"pad_token_id\":9,\"forced_eos_token_id\":5}";
    tn_seq2seq                     *m = tn_seq2seq_load(changed(names[_i], files[1], ids));
    fine();
    ck_assert(m->config.begin == 7 && m->config.end == 8 && m->search.last == 5);
    ck_assert_msg(tn_seq2seq_save(m, to) == TN_OK, "%s", tn_error_message());
    for (int i = 0; i < 2; i++) {
        tn_json *was = tn_json_load(tn_test_in(tn_test_file("changed"), files[i]));
        snprintf(path, sizeof path, "%s/%s", to, files[i]);
        tn_json *now = tn_json_load(path);
        fine();
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const tn_json *a = tn_json_get(was, keys[k]), *b = tn_json_get(now, keys[k]);
            if (a) ck_assert_msg(b && tn_json_i64_or(a, -1) == tn_json_i64_or(b, -1), "%s, %s", files[i], keys[k]);
        }
        tn_json_free(was), tn_json_free(now);
    }
    tn_free(m);
}

/* ---- from C ------------------------------------------------------------------------------------------------------ */

#define SIZES .source_words = 11, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .positions = 9
TEST(options)
{
    tn_seq2seq *own = tn_seq2seq_new(SIZES, .position_kind = TN_SEQ2SEQ_LEARNED, .norm_embedding = true,
                                     .decoder_heads = 4, .decoder_ff = 3, .attention_dropout = 0.25,
                                     .no_out_bias = true, .no_final_norm = true, .untied = true);
    fine();
    ck_assert(own->target_positions && own->source_norm && own->target_norm && !own->out_bias);
    ck_assert(!own->transformer->encoder->norm && !own->transformer->decoder->norm);
    mkdir(tn_test_file("own"), 0777);
    ck_assert_int_eq(tn_seq2seq_save(own, tn_test_file("own")), TN_OK);
    tn_seq2seq *back = tn_seq2seq_load(tn_test_file("own"));
    fine();
    ck_assert(!back->config.type && back->config.decoder_heads == 4 && back->config.decoder_ff == 3);
    ck_assert(back->config.attention_dropout == 0.25 && back->config.activation_dropout == 0.1);
    tn_free(own), tn_free(back);
    tn_seq2seq *marian = tn_seq2seq_new(SIZES, .type = "marian", .position_kind = TN_SEQ2SEQ_HALVES, .shared = true,
                                        .no_final_norm = true, .fixed_out_bias = true);
    fine();
    ck_assert_int_eq(tn_ndim(marian->out_bias), 2);
    for (tn_each p = tn_parameters(marian); tn_next(&p);) ck_assert(p.tensor != marian->out_bias);
    tn_free(marian);
    ck_refused(tn_seq2seq_new(SIZES, .type = "bart", .shared = true), TN_EINVAL,
               "tn_seq2seq_new: .type is 'bart', whose models do not have these options; unset .type");
    ck_refused(tn_seq2seq_new(SIZES, .type = "mbart"), TN_EINVAL,
               "tn_seq2seq_new: .type is 'mbart', which is not a model_type that tn_seq2seq supports");
    ck_refused(tn_seq2seq_new(SIZES, .no_out_bias = true, .fixed_out_bias = true), TN_EINVAL,
               "tn_seq2seq_new: .fixed_out_bias excludes .no_bias and .no_out_bias");
    ck_refused(tn_seq2seq_new(SIZES, .position_kind = (tn_seq2seq_positions)4), TN_EINVAL,
               "tn_seq2seq_new: .position_kind is 4, but must be a tn_seq2seq_positions, 0 with .relative");
    ck_refused(tn_seq2seq_new(SIZES, .norm_embedding = true, .kind = TN_SEQ2SEQ_RNN), TN_EINVAL,
               "tn_seq2seq_new: .position_kind, .norm_embedding, .no_final_norm, .no_out_bias and .fixed_out_bias are "
               "for the Transformer, but .kind is 'rnn'");
}

/* The sinusoids of both kinds, and their errors. */
TEST(positions)
{
    tn_positions *a = tn_sinusoidal_positions_new(.dim = 6, .length = 4),
                 *h = tn_sinusoidal_positions_new(.dim = 6, .length = 4, .order = TN_SINUSOIDS_HALVES),
                 *t = tn_sinusoidal_positions_new(.dim = 7, .length = 4, .order = TN_SINUSOIDS_TENSOR2TENSOR,
                                                  .first = 2);
    fine();
    for (int64_t row = 0; row < 4; row++) {
        for (int64_t i = 0; i < 3; i++) {
            ck_assert(tn_get(h->weight, row * 6 + i) == tn_get(a->weight, row * 6 + 2 * i));
            ck_assert(tn_get(h->weight, row * 6 + 3 + i) == tn_get(a->weight, row * 6 + 2 * i + 1));
        }
        ck_assert(tn_get(t->weight, row * 7 + 6) == 0);
        ck_assert_double_eq_tol(tn_get(t->weight, row * 7), row == 1 ? 0.14112000806 : tn_get(t->weight, row * 7),
                                1e-7);
        ck_assert_double_eq_tol(tn_get(t->weight, row * 7 + 2), (double)(row + 2) * 1e-4, 1e-10);
    }
    tn_free(a), tn_free(h), tn_free(t);
    ck_refused(tn_sinusoidal_positions_new(.dim = 4, .first = -1), TN_EINVAL,
               "tn_sinusoidal_positions_new: .order is 0, .first -1; expected a tn_sinusoids, and 0 to 2147483647");
    ck_refused(tn_learned_positions_new(.dim = 4, .length = 3, .first = 1), TN_EINVAL,
               "tn_learned_positions_new: .order and .first are for sinusoidal positions");
}
