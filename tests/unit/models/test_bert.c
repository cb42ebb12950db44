/* test_bert.c — BERT compared with Hugging Face's (tests/golden/bert.py): results, files, losses, errors. */
#include "extras.h"
#include "tests/common/answers.h"
#include "tests/common/faults.h"
#include "tests/common/golden_case.h"

/* ---- compared with Hugging Face ---------------------------------------------------------------------------------- */

static void open_answers(void) { tn_answers_open("golden/bert/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);

/* The largest difference; in tensors [B, T, ...] padding is ignored. */
static double apart(tn_tensor *got, const char *name)
{
    tn_tensor *want = answer(name), *d = tn_abs(tn_sub(got, want));
    ck_assert(tn_shape_equal(tn_shape_of(got), tn_shape_of(want)));
    if (tn_ndim(d) == 3) d = tn_mul(d, tn_unsqueeze(tn_to(answer("real"), TN_F32), 2));
    return tn_item(tn_amax(tn_reshape(d, TN_SHAPE(-1)), .dims = TN_DIMS(0)));
}
static tn_tensor *padding(void) { return tn_eq(answer("ids"), tn_zeros_like(answer("ids"))); }

static tn_bert *opened(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "golden/bert/%s", name);
    tn_bert *m = tn_bert_load(tn_test_data(path));
    fine();
    ck_assert(m && !m->base.training);
    return m;
}
static tn_tensor *read_by(tn_bert *m, tn_tensor **weights)
{
    return tn_bert_forward(m, answer("ids"), .types = answer("types"), .key_padding_mask = padding(),
                           .weights = weights);
}
static tn_tensor *all_words(tn_bert *m, tn_tensor *y)
{
    return tn_reshape(tn_bert_mlm_logits(m, y, NULL), TN_SHAPE(tn_size(y, 0), tn_size(y, 1), m->config.vocab));
}

TEST(pretraining_answers_as_hugging_face)
{
    tn_bert   *m = opened("pretraining");
    tn_tensor *y = read_by(m, NULL);
    ck_assert_double_le(apart(all_words(m, y), "pretraining.words"), 2e-5);
    ck_assert_double_le(apart(tn_bert_nsp_logits(m, y), "pretraining.next"), 2e-5);
    tn_free(m);
}

TEST(masked_answers_as_hugging_face)
{
    tn_bert *m = opened("masked");
    ck_assert(!m->pooler && !m->next && m->config.types == 3 && !strcmp(m->config.activation, "gelu_new"));
    ck_assert_double_eq(m->config.eps, 1e-5);
    ck_assert_double_le(apart(all_words(m, read_by(m, NULL)), "masked.words"), 2e-5);
    tn_free(m);
}

TEST(norms_first_answer_as_hugging_face)
{
    tn_bert *m = opened("first");
    ck_assert(m->config.norm_first && m->config.padding == 1 && m->config.positions == 12 && !m->pooler);
    ck_assert_double_le(apart(all_words(m, read_by(m, NULL)), "first.words"), 2e-5);
    tn_free(m);
}

TEST(encoder_answers_as_hugging_face)
{
    tn_bert   *m = opened("encoder");
    tn_tensor *w[2], *y = read_by(m, w);
    ck_assert(m->pooler && !m->next && !m->head);
    ck_assert_double_le(apart(y, "encoder.y"), 2e-5);
    ck_assert_double_le(apart(tn_bert_pooled(m, y), "encoder.pooled"), 2e-5);
    ck_assert_double_le(apart(w[1], "encoder.attention"), 2e-5);
    ck_refused(tn_bert_mlm_logits(m, y, NULL), TN_ESTATE,
               "bert: this model has no head for masked tokens; load a model trained for that, or create it with one");
    tn_free(m);
}

/* A published model, if one is available: see tests/golden/bert.py. */
TEST(sentences_of_a_published_model)
{
    const char *dir = getenv("TENON_SENTENCE_MODEL");
    if (!dir) {
        printf("skipped: sentences_of_a_published_model (TENON_SENTENCE_MODEL names no directory)\n");
        return;
    }
    char path[1024];
    snprintf(path, sizeof path, "%s/../bert-sentences.safetensors", dir);
    tn_bert        *m = tn_bert_load(dir);
    tn_safetensors *f = tn_safetensors_open(path);
    fine();
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *ids = tn_safetensors_get(f, "ids"), *real = tn_to(tn_safetensors_get(f, "real"), TN_F32);
    tn_tensor     *y = tn_bert_forward(m, ids, .key_padding_mask = tn_eq(real, tn_zeros_like(real)));
    tn_tensor     *mean = tn_sum(tn_mul(y, tn_unsqueeze(real, 2)), .dims = TN_DIMS(1));
    tn_tensor     *cosine = tn_cosine_similarity(mean, tn_safetensors_get(f, "vectors"), -1, 1e-8);
    const double   least = tn_item(tn_amin(cosine, .dims = TN_DIMS(0)));
    tn_scope_end(s);
    printf("%lld sentences: cosine at least %.8f\n", (long long)tn_size(ids, 0), least);
    ck_assert_double_ge(least, 0.99999);
    tn_safetensors_close(f);
    tn_free(m);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static tn_bert *small(bool norm_first)
{
    tn_bert *m = tn_bert_new(.vocab = 37, .dim = 16, .layers = 2, .heads = 2, .ff = 24, .positions = 12,
                             .norm_first = norm_first);
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        const tn_scope s = tn_no_grad_begin();
        tn_copy_(p.tensor, tn_mul_scalar(tn_golden_values(p.name, TN_F32, tn_shape_of(p.tensor)), 0.5));
        tn_scope_end(s);
    }
    tn_eval(m);
    fine();
    return m;
}

static bool same_files(const char *a, const char *b, const char *name)
{
    char from[1200], to[1200];
    snprintf(from, sizeof from, "%s/%s", a, name), snprintf(to, sizeof to, "%s/%s", b, name);
    tn_tensor *x = tn_file_read(from, 1 << 20), *y = tn_file_read(to, 1 << 20);
    fine();
    return tn_same_bits(x, y);
}

/* tests/golden/bert.py opens bert/tenon and bert/tenon-first with Hugging Face's classes: tn_bert_save must write the
 * same files. */
TEST_EACH(writes_what_hugging_face_reads, 2)
{
    char kept[1024], noted[1100];
    snprintf(kept, sizeof kept, "%s", tn_test_data(_i ? "golden/bert/tenon-first" : "golden/bert/tenon"));
    snprintf(noted, sizeof noted, "%s/answers.safetensors", kept);
    const char *now = tn_test_folder("tenon");
    tn_bert    *m = small(_i == 1);
    if (getenv("TENON_GOLDEN")) {
        mkdir(kept, 0777);
        ck_assert_int_eq(tn_bert_save(m, kept), TN_OK);
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        tn_tensor             *y = read_by(m, NULL);
        tn_safetensors_put(w, "words", all_words(m, y));
        tn_safetensors_put(w, "next", tn_bert_nsp_logits(m, y));
        ck_assert_int_eq(tn_safetensors_save(w, noted), TN_OK);
        tn_safetensors_writer_free(w);
    }
    ck_assert_int_eq(tn_bert_save(m, now), TN_OK);
    ck_assert(same_files(now, kept, "model.safetensors"));
    ck_assert(same_files(now, kept, "config.json"));
    tn_free(m);
}

TEST_EACH(what_is_saved_is_loaded, 2)
{
    const char *dir = tn_test_folder(_i ? "first" : "last");
    tn_bert    *a = small(_i == 1), *b;
    ck_assert_int_eq(tn_bert_save(a, dir), TN_OK);
    ck_assert_ptr_nonnull(b = tn_bert_load(dir));
    ck_assert(b->config.norm_first == (_i == 1) && b->config.ff == 24 && b->config.dropout == 0.1);
    tn_tensor *y = read_by(a, NULL), *z = read_by(b, NULL);
    ck_assert(tn_same_bits(y, z));
    ck_assert(tn_same_bits(tn_bert_nsp_logits(a, y), tn_bert_nsp_logits(b, z)));
    ck_assert(tn_same_bits(tn_bert_mlm_logits(a, y, NULL), tn_bert_mlm_logits(b, z, NULL)));
    tn_free(a), tn_free(b);
}

/* A flipped bit in model.safetensors: the file does not load, or gives the same values. Tests every byte of the header
 * and every 5th byte of the data. */
TEST(bits_rot)
{
    const char *dir = tn_test_folder("rot");
    char        path[256];
    tn_bert    *a = tn_bert_new(.vocab = 8, .dim = 4, .heads = 2, .layers = 1, .positions = 6), *b;
    ck_assert_int_eq(tn_bert_save(a, dir), TN_OK);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    FILE         *f = fopen(path, "r+b");
    unsigned char bytes[16384];
    const size_t  n = f ? fread(bytes, 1, sizeof bytes, f) : 0, header = 8 + bytes[0] + 256u * bytes[1];
    long          found = 0, harmless = 0;
    ck_assert(n > header && n < sizeof bytes);
    for (size_t at = 0; at < n; at += (at < header ? 1u : 5u) * (tn_test_slow() ? 5u : 1u)) {
        const int byte = bytes[at] ^ 1 << at % 8;
        fseek(f, (long)at, SEEK_SET), fputc(byte, f), fflush(f);
        const tn_scope s = tn_scope_begin();
        if ((b = tn_bert_load(dir))) {
            tn_each q = tn_parameters(b);
            for (tn_each p = tn_parameters(a); tn_next(&p);)
                ck_assert_msg(tn_next(&q) && tn_same_bits(p.tensor, q.tensor), "byte %zu", at);
            harmless++;
        } else {
            ck_assert_msg(strstr(tn_error_message(), "rot") != NULL, "%s", tn_error_message());
            found++;
        }
        tn_free(b), tn_clear_error(), tn_scope_end(s);
        fseek(f, (long)at, SEEK_SET), fputc(bytes[at], f), fflush(f);
    }
    fclose(f), tn_free(a);
    printf("bit rot: %ld flips in a model's weights: %ld found, %ld harmless\n", found + harmless, found, harmless);
    ck_assert(found > 20 * harmless);
}

/* A model with only the next-sentence head has its own architecture name, and loads again. */
TEST(next_sentence_alone)
{
    const char *dir = tn_test_folder("next");
    tn_bert    *a = tn_bert_new(.vocab = 8, .dim = 4, .heads = 2, .layers = 1, .positions = 6, .no_words = true), *b;
    ck_assert_int_eq(tn_bert_save(a, dir), TN_OK);
    tn_json *c = tn_json_load(tn_test_file("next/config.json"));
    ck_assert_str_eq(tn_json_string(tn_json_at(tn_json_get(c, "architectures"), 0)), "BertForNextSentencePrediction");
    tn_json_free(c);
    ck_assert_ptr_nonnull(b = tn_bert_load(dir));
    ck_assert(b->config.no_words && !b->config.no_next && !b->config.no_pooler);
    ck_assert(tn_same_bits(b->next->weight, a->next->weight) && tn_same_bits(b->next->bias, a->next->bias));
    tn_free(a), tn_free(b);
}

/* Only pytorch_model.bin, with a head for three classes: the encoder is loaded, and .left names the head. */
TEST(tuned_for_something)
{
    tn_bert *m = tn_extras_register() == TN_OK ? tn_bert_load(tn_test_data("golden/bert/tuned")) : NULL,
            *b = tn_bert_load(tn_test_data("golden/bert/pretraining"));
    ck_assert_msg(m && b, "%s", tn_error_message());
    ck_assert_str_eq(m->left, "classifier.weight, classifier.bias");
    ck_assert_str_eq(b->left, "");
    ck_assert(!m->head && !m->next && m->pooler);
    ck_assert(tn_same_bits(read_by(m, NULL), read_by(b, NULL)));
    tn_free(m), tn_free(b);
}

/* Weight names of 2018: gamma and beta, a buffer of positions. */
TEST(old_names)
{
    const char *dir = tn_test_folder("old"), *file = tn_test_file("old/model.safetensors");
    tn_bert    *m = small(false), *b;
    ck_assert_int_eq(tn_bert_save(m, dir), TN_OK);
    tn_safetensors        *f = tn_safetensors_open(file);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        char name[256], *end;
        snprintf(name, sizeof name, "%s", tn_safetensors_at(f, i).name);
        if ((end = strstr(name, "LayerNorm.weight"))) strcpy(end, "LayerNorm.gamma");
        if ((end = strstr(name, "LayerNorm.bias"))) strcpy(end, "LayerNorm.beta");
        tn_safetensors_put(w, name, tn_safetensors_get_at(f, i));
    }
    tn_safetensors_put(w, "bert.embeddings.position_ids", tn_unsqueeze(tn_arange(12), 0));
    tn_safetensors_close(f);
    ck_assert_int_eq(tn_safetensors_save(w, file), TN_OK);
    tn_safetensors_writer_free(w);
    ck_assert_ptr_nonnull(b = tn_bert_load(dir));
    ck_assert(tn_same_bits(read_by(m, NULL), read_by(b, NULL)));
    tn_free(m), tn_free(b);
}

static const struct {
    const char *key, *value; /* replaces the member's value; NULL: removes it */
    tn_status   status;
    const char *says; /* %s: the directory */
} bad_configs[] = {
    {"vocab_size", NULL, TN_EFORMAT, "'%s/config.json': vocab_size is missing"},
    {"hidden_size", "0", TN_EFORMAT, "'%s/config.json': hidden_size is 0, but must be from 1 to 65536"},
    {"num_attention_heads", "3", TN_EFORMAT, "'%s/config.json': num_attention_heads 3 does not divide hidden_size 16"},
    {"pad_token_id", "37", TN_EFORMAT, "'%s/config.json': pad_token_id is 37, but must be less than vocab_size 37"},
    {"hidden_dropout_prob", "1", TN_EFORMAT,
     "'%s/config.json': hidden_dropout_prob is 1, but must be from 0 to less than 1"},
    {"model_type", "\"gpt2\"", TN_EUNSUPPORTED,
     "'%s/config.json': model_type is 'gpt2'; supported: 'bert', 'roberta-prelayernorm', 'tenon-bert', 'roberta', "
     "'xlm-roberta', 'camembert', 'distilbert', 'albert', 'electra', 'modernbert', 'deberta-v2' and 'xlnet'"},
    {"position_embedding_type", "\"relative_key\"", TN_EUNSUPPORTED,
     "'%s/config.json': position_embedding_type is 'relative_key'; only 'absolute' is supported"},
    {"is_decoder", "true", TN_EUNSUPPORTED,
     "'%s/config.json': is_decoder and add_cross_attention are not supported: this is an encoder"},
    {"hidden_act", "\"mish\"", TN_EUNSUPPORTED,
     "'%s/config.json': hidden_act is 'mish'; expected gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, "
     "relu, silu, swish or tanh"},
    {"num_hidden_layers", "1024", TN_EFORMAT,
     "'%s/model.safetensors' has 5415 elements, but the model that config.json describes has at least 1901360"},
    {"num_hidden_layers", "1", TN_EFORMAT, NULL},
    {"vocab_size", "36", TN_EFORMAT, NULL},
    {"hidden_act", "\"relu\"", TN_EUNSUPPORTED,
     "'%s/config.json': hidden_act is 'relu'; only 'gelu' is supported in 'roberta-prelayernorm'"},
    {"hidden_act", "\"gelu_new\"", TN_EUNSUPPORTED,
     "'%s/config.json': hidden_act is 'gelu_new'; only 'gelu' is supported in 'roberta-prelayernorm'"},
};
enum { NORMS_FIRST = sizeof bad_configs / sizeof *bad_configs - 2 }; /* the last rows have norm_first */

TEST_ROWS(bad_config, bad_configs)
{
    char        dir[1024], says[1400];
    const char *base = tn_test_file("bad");
    snprintf(dir, sizeof dir, "%s", base);
    mkdir(dir, 0777);
    tn_bert *m = _i < NORMS_FIRST ? small(false) : opened("first");
    ck_assert_int_eq(tn_bert_save(m, dir), TN_OK);
    tn_free(m);
    const char     *path = tn_test_file("bad/config.json"), *key = bad_configs[_i].key;
    tn_json        *c = tn_json_load(path), *v = NULL;
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(c); x; x = tn_json_next(x))
        if (strcmp(tn_json_key(x), key)) tn_json_put(w, tn_json_key(x), x);
    if (bad_configs[_i].value) {
        v = tn_json_parse(bad_configs[_i].value, strlen(bad_configs[_i].value));
        tn_json_put(w, key, v);
    }
    tn_json_close(w);
    ck_assert_int_eq(tn_json_save(w, path), TN_OK);
    tn_json_writer_free(w), tn_json_free(c), tn_json_free(v);
    ck_assert_ptr_null(tn_bert_load(dir));
    if (bad_configs[_i].says) {
        snprintf(says, sizeof says, bad_configs[_i].says, dir);
        ck_error(bad_configs[_i].status, says);
    } else { /* the state dict's message, which tests/unit/nn/test_state.c tests */
        ck_assert_int_eq(tn_error(), bad_configs[_i].status);
        tn_clear_error();
    }
}

TEST(no_directory)
{
    ck_refused_code(tn_bert_load(tn_test_file("nowhere")), TN_EIO);
    tn_bert *m = small(false);
    ck_assert_int_eq(tn_bert_save(m, tn_test_file("nowhere")), TN_EIO);
    tn_clear_error();
    tn_free(m);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static tn_tensor *ints(int64_t n, const int64_t *v) { return tn_from_data(TN_I64, TN_SHAPE(n), v); }
static tn_tensor *masked(void) { return ints(3, (const int64_t[]){1, 10, 18}); }
static tn_tensor *hidden(void) { return ints(3, (const int64_t[]){7, 31, 36}); }
static tn_tensor *follows(void) { return ints(3, (const int64_t[]){0, 1, 0}); }

static tn_tensor *loss_of(tn_bert *m, tn_tensor **word, tn_tensor **next)
{
    static const int64_t ids[] = {2, 4, 8, 9, 3, 20, 21, 3, 2, 30, 4, 3, 11, 3, 0, 0, 2, 5, 4, 3, 0, 0, 0, 0};
    tn_tensor           *x = tn_from_data(TN_I64, TN_SHAPE(3, 8), ids);
    return tn_bert_loss(m, .ids = x, .key_padding_mask = tn_eq(x, tn_zeros_like(x)), .masked = masked(),
                        .words = hidden(), .next = follows(), .word_loss = word, .next_loss = next);
}

TEST(losses)
{
    tn_bert   *m = small(false);
    tn_tensor *word, *next, *loss = loss_of(m, &word, &next);
    fine();
    ck_assert_double_eq_tol(tn_item(loss), tn_item(word) + tn_item(next), 1e-6);
    ck_assert(tn_backward(loss) == TN_OK);
    for (tn_each p = tn_parameters(m); tn_next(&p);) ck_assert_msg(tn_grad(p.tensor) != NULL, "%s", p.name);
    tn_tensor *ids = answer("ids"), *none = tn_zeros_of(TN_I64, TN_SHAPE(0));
    loss = tn_bert_loss(m, .ids = ids, .masked = none, .words = none);
    ck_assert_double_eq(tn_item(loss), 0);
    ck_refused(tn_bert_loss(m, .ids = ids), TN_EINVAL, "bert: no targets; set .masked and .words, .next or .replaced");
    ck_refused(tn_bert_loss(m, .ids = ids, .masked = none), TN_EINVAL,
               "bert: .masked and .words must be set together: the positions of the masked tokens and their "
               "token ids");
    tn_free(m);
}

TEST_EACH(learns, 2)
{
    tn_bert *m = small(_i == 1);
    tn_train(m, true);
    tn_optimizer *o = tn_adamw_new(m, .lr = 4e-3);
    double        first = 0, last = 0;
    for (int step = 0; step < 250; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = loss_of(m, NULL, NULL);
        tn_backward(loss);
        tn_step(o);
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(last < 0.2 * first, "from %g to %g", first, last);
    tn_optimizer_free(o);
    tn_free(m);
}

TEST(same_bits_alone_and_on_any_threads)
{
    tn_bert   *m = small(false);
    tn_tensor *ids = answer("ids"), *y = read_by(m, NULL);
    for (int64_t i = 0; i < 3; i++) {
        int64_t length = 0;
        while (length < 8 && tn_get_i64(ids, 8 * i + length)) length++;
        tn_tensor *x = tn_narrow(tn_narrow(ids, 0, i, 1), 1, 0, length);
        tn_tensor *t = tn_narrow(tn_narrow(answer("types"), 0, i, 1), 1, 0, length);
        tn_tensor *alone = tn_bert_forward(m, x, .types = t);
        ck_assert(tn_same_bits(alone, tn_narrow(tn_narrow(y, 0, i, 1), 1, 0, length)));
    }
    for (int threads = 1; threads < 8; threads += 2) {
        tn_set_threads(threads);
        ck_assert(tn_same_bits(read_by(m, NULL), y));
    }
    tn_free(m);
}

static double once(int i)
{
    (void)i;
    const tn_scope s = tn_scope_begin();
    tn_seed(3);
    tn_bert *m = tn_bert_new(.vocab = 37, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .positions = 8);
    double   v = NAN;
    if (m) {
        tn_tensor *word, *loss = loss_of(m, &word, NULL);
        if (tn_backward(loss) == TN_OK) v = tn_item(loss) + tn_item(tn_sum(tn_grad(m->words->weight)));
    }
    tn_free(m);
    tn_scope_end(s);
    return v;
}

BARE_TEST(memory) { tn_each_allocation_fails(once, 0, tn_test_slow() ? 7 : 1, 5, 100); }

/* ---- with texts -------------------------------------------------------------------------------------------------- */

static tn_tokenizer *tokenizer(void)
{
    static const char text[] = "the keys to the cabinet are on the table. the key to the cabinets is on the table.";
    tn_tokenizer     *t = tn_tokenizer_train_text(text, sizeof text - 1, .vocab_size = 60);
    fine();
    return t;
}
static tn_bert *reader(const tn_tokenizer *t)
{
    tn_seed(5);
    tn_bert *m = tn_bert_new(.vocab = tn_tokenizer_size(t), .dim = 16, .layers = 2, .heads = 2, .positions = 24);
    tn_eval(m);
    fine();
    return m;
}

TEST(blanks_are_filled_in)
{
    tn_tokenizer *t = tokenizer();
    tn_bert      *m = reader(t);
    tn_bert_fill  f[6];
    const char   *text = "The [MASK] to the cabinet [MASK] on the table.";
    ck_assert_int_eq(tn_bert_fill_in(m, t, text, 3, 6, f), 2);
    tn_token_batch b;
    tn_tokenizer_batch(t, &b, 1, &text);
    for (int64_t mask = 0, at = -1; mask < 2; mask++) {
        do at++;
        while (tn_get_i64(b.ids, at) != tn_tokenizer_special(t).mask);
        tn_tensor *p = tn_softmax(tn_bert_mlm_logits(m, tn_bert_forward(m, b.ids), ints(1, &at)), -1);
        for (int k = 0; k < 3; k++) {
            const tn_bert_fill *x = &f[3 * mask + k];
            ck_assert_int_eq(x->mask, mask);
            ck_assert_double_eq_tol(x->probability, tn_get(p, x->id), 1e-6);
            ck_assert(k == 0 || x->probability <= x[-1].probability);
        }
        ck_assert_double_eq_tol(f[3 * mask].probability, tn_item(tn_amax(p, .dims = TN_DIMS(0, 1))), 1e-6);
    }
    ck_assert_int_eq(tn_bert_fill_in(m, t, "No blank.", 3, 6, f), -1);
    ck_error(TN_EINVAL, "tn_bert_fill_in: no [MASK] in the text; write it where a token is missing");
    ck_assert_int_eq(tn_bert_fill_in(m, t, text, 4, 6, f), -1);
    ck_error(TN_EINVAL, "tn_bert_fill_in: 4 tokens for each of 2 masks do not fit in the output of 6");
    ck_assert_int_eq(tn_bert_fill_in(m, NULL, text, 1, 6, f), -1);
    ck_error(TN_EINVAL, "tn_bert_fill_in: the tokenizer is NULL");
    ck_assert_int_eq(tn_bert_fill_in(m, t, NULL, 1, 6, f), -1);
    ck_error(TN_EINVAL, "tn_bert_fill_in: the text is NULL");
    tn_free(m);
    m = tn_bert_new(.vocab = 9, .dim = 16, .layers = 1, .heads = 2);
    char says[160];
    snprintf(says, sizeof says,
             "tn_bert_fill_in: the tokenizer has %d tokens, but the model only 9; use the model's own tokenizer",
             (int)tn_tokenizer_size(t));
    ck_assert_int_eq(tn_bert_fill_in(m, t, text, 1, 6, f), -1);
    ck_error(TN_EINVAL, says);
    tn_free(m);
    tn_tokenizer_free(t);
}

/* Two tokens and padding; without a padding mask all tokens count. */
TEST(pieces_make_a_sentence)
{
    tn_tensor          *y = tn_from_data(TN_F32, TN_SHAPE(1, 3, 2), ((const float[]){1, -4, 3, -2, 50, 60}));
    tn_tensor          *padding = tn_from_data(TN_BOOL, TN_SHAPE(1, 3), ((const bool[]){false, false, true}));
    static const double some[][2] = {{2, -3}, {1, -4}, {3, -2}}, all[][2] = {{18, 18}, {1, -4}, {50, 60}};
    for (int how = TN_POOL_MEAN; how <= TN_POOL_MAX; how++)
        for (int i = 0; i < 2; i++) {
            ck_assert_double_eq(tn_get(tn_bert_sentences(y, padding, (tn_bert_pooling)how), i), some[how][i]);
            ck_assert_double_eq(tn_get(tn_bert_sentences(y, NULL, (tn_bert_pooling)how), i), all[how][i]);
        }
    fine();
    ck_refused(tn_bert_sentences(NULL, padding, TN_POOL_MEAN), TN_EINVAL,
               "tn_bert_sentences: the hidden states are NULL");
}

static bool later_than(void *user) { return --*(int *)user < 0; }

/* A deadline ends vectors of texts at each of the calls of modules that they make, with a status of its own; without it
 * they have the same bits as before. */
TEST(texts_have_a_deadline)
{
    static const char *const texts[] = {"the keys", "the key to the cabinets"};
    tn_tokenizer            *t = tokenizer();
    tn_bert                 *m = reader(t);
    tn_tensor               *want = tn_bert_embed(m, t, 2, texts, TN_POOL_MEAN);
    int                      calls = 0;
    fine();
    for (bool ended = false; !ended; calls++) {
        int        left = calls;
        tn_tensor *y;
        tn_stop_when(later_than, &left);
        y = tn_bert_embed(m, t, 2, texts, TN_POOL_MEAN);
        tn_stop_when(NULL, NULL);
        ended = y != NULL;
        if (ended) ck_assert(tn_same_bits(y, want));
        else {
            ck_assert_int_eq(tn_error(), TN_ESTATE);
            ck_assert_ptr_nonnull(strstr(tn_error_message(), ": stopped, as the function of tn_stop_when asked"));
            tn_clear_error();
        }
    }
    fine();
    ck_assert_int_gt(calls, 10);
    tn_free(m);
    tn_tokenizer_free(t);
}

/* A text's vector is the same alone and in a batch with longer texts. */
TEST(texts_have_vectors)
{
    static const char *const texts[] = {"the keys", "the key to the cabinets is on the table.", ""};
    tn_tokenizer            *t = tokenizer();
    tn_bert                 *m = reader(t);
    for (int how = TN_POOL_MEAN; how <= TN_POOL_MAX; how++) {
        tn_tensor *all = tn_bert_embed(m, t, 3, texts, (tn_bert_pooling)how);
        fine();
        ck_assert(tn_shape_equal(tn_shape_of(all), TN_SHAPE(3, 16)) && !tn_needs_grad(all));
        for (int i = 0; i < 3; i++) {
            tn_tensor *row = tn_select(all, 0, i), *alone = tn_bert_embed(m, t, 1, texts + i, (tn_bert_pooling)how);
            ck_assert_double_eq_tol(tn_item(tn_sum(tn_square(row))), 1, 1e-5);
            ck_assert_double_le(tn_item(tn_amax(tn_abs(tn_sub(row, tn_select(alone, 0, 0))), .dims = TN_DIMS(0))),
                                1e-6);
        }
    }
    tn_free(m);
    tn_tokenizer_free(t);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(sizes)
{
    tn_bert_config c = tn_bert_size("base");
    c.vocab = 30522;
    ck_assert(c.dim == 768 && c.layers == 12 && c.heads == 12);
    c = tn_bert_size("huge");
    ck_error(TN_EINVAL, "tn_bert_size: unknown size 'huge'; the sizes are tiny, mini, small, medium, base and large");
    c = tn_bert_size("tiny");
    c.vocab = 100;
    tn_bert *m = tn_bert_create(c);
    /* (vocab + positions + types + 1 norm of two) dim + layers (4 (d + 1) d + (2 d + 1) ff + d + 4 d) + heads */
    const int64_t d = 128, layer = 4 * (d + 1) * d + 2 * d * 4 * d + 4 * d + d + 4 * d;
    ck_assert_int_eq(tn_count(m),
                     (100 + 512 + 2 + 2) * d + 2 * layer + (d + 1) * d + (d + 1) * d + 2 * d + 100 + 2 * (d + 1));
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += fabs(tn_get(m->words->weight, i));
    ck_assert_double_eq(sum, 0); /* the padding row */
    tn_free(m);
}

TEST(wrong_use)
{
    ck_refused(tn_bert_new(.dim = 16), TN_EINVAL, "tn_bert_new: .vocab is 0, but must be from 1 to 10000000");
    ck_refused_code(tn_bert_new(.vocab = 9, .dim = 16, .heads = 3), TN_EINVAL);
    ck_refused(tn_bert_new(.vocab = 9, .activation = "mish"), TN_EINVAL,
               "tn_bert_new: unknown activation 'mish'; use gelu, gelu_new, gelu_fast, gelu_python, "
               "gelu_pytorch_tanh, relu, silu, swish or tanh");
    ck_refused(tn_bert_new(.vocab = 9, .padding = 9), TN_EINVAL,
               "tn_bert_new: .padding is 9, but must be less than .vocab, which is 9");
    tn_bert *m = small(false);
    ck_refused(tn_bert_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(1, 13))), TN_ESHAPE,
               "bert: a sequence of 13 tokens is longer than the model's 12 positions; truncate it");
    ck_refused(tn_bert_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(8))), TN_ESHAPE,
               "bert: ids must be [batch, length], got [8]");
    ck_refused(tn_bert_forward(m, tn_full_of(TN_I64, TN_SHAPE(1, 2), 37)), TN_EINDEX,
               "bert.embeddings.word_embeddings: embedding: index 37 at [0, 0] is outside 0 … 36");
    ck_refused(tn_bert_forward(m, NULL), TN_ESHAPE, "bert: ids must be [batch, length], got NULL");
    tn_free(m);
}

/* A plan for a length: the forward pass recorded once, for all texts of that length; also in int8. */
static tn_bert   *small_one;
static tn_tensor *read_once(void *user)
{
    const tn_bert_args *a = user;
    return tn_bert_run(small_one, *a);
}
TEST_EACH(lengths_are_replayed, 3)
{
    small_one = tn_bert_new(.vocab = 37, .dim = 32, .layers = 2, .heads = 2, .ff = 64, .positions = 12);
    if (_i) ck_assert_int_eq(tn_quantize(small_one, .activations = _i == 2), TN_OK);
    tn_eval(small_one);
    for (int64_t n = 1; n <= 12; n += 4) {
        const tn_scope     s = tn_no_grad_begin();
        tn_tensor         *ids = tn_randint(TN_SHAPE(3, n), 0, 37), *hidden = tn_zeros_of(TN_BOOL, TN_SHAPE(3, n));
        const tn_bert_args a = {.ids = ids, .key_padding_mask = n > 1 ? hidden : NULL};
        tn_replay         *r = tn_replay_record(read_once, (void *)&a);
        ck_assert_msg(r, "%s", tn_error_message());
        for (int text = 0; text < 3; text++) {
            tn_copy_from(ids, tn_randint(TN_SHAPE(3, n), 0, 37));
            if (n > 1) tn_fill(tn_narrow(hidden, 1, n - text, text), 1);
            ck_assert(tn_same_bits(tn_replay_run(r), tn_bert_run(small_one, a)));
        }
        tn_replay_free(r);
        tn_scope_end(s);
    }
    tn_free(small_one);
    small_one = small(true); /* its positions depend on values: those of RoBERTa */
    tn_bert_args a = {.ids = tn_ones_of(TN_I64, TN_SHAPE(1, 3))};
    ck_refused_code(tn_replay_record(read_once, &a), TN_EUNSUPPORTED);
    tn_free(small_one);
}
