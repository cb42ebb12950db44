/* test_encoders.c — RoBERTa, DistilBERT, ALBERT, ELECTRA and ModernBERT compared with Hugging Face's
 * (tests/golden/encoders.py), reading and writing their files, and tn_model_open. */
#include "extras.h"
#include "tests/common/answers.h"

static void open_answers(void) { tn_answers_open("golden/encoders/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);

enum { ROBERTA, XLM_ROBERTA, DISTILBERT, ALBERT, GENERATOR, DISCRIMINATOR, MODERNBERT, KINDS };
static const struct {
    const char  *dir, *architecture;
    tn_bert_kind kind;
    bool         words, pooler, next, replaced, project;
    const char  *describes[2]; /* names of the compared tensors */
} kinds[KINDS] = {
    {"roberta", "RobertaForMaskedLM", TN_ROBERTA, true, false, false, false, false, {"words"}},
    {"xlm-roberta", "XLMRobertaModel", TN_XLM_ROBERTA, false, true, false, false, false, {"y", "pooled"}},
    {"distilbert", "DistilBertForMaskedLM", TN_DISTILBERT, true, false, false, false, false, {"words"}},
    {"albert", "AlbertForPreTraining", TN_ALBERT, true, true, true, false, true, {"words", "next"}},
    {"electra-generator", "ElectraForMaskedLM", TN_ELECTRA, true, false, false, false, true, {"words"}},
    {"electra-discriminator", "ElectraForPreTraining", TN_ELECTRA, false, false, false, true, true, {"replaced"}},
    {"modernbert", "ModernBertForMaskedLM", TN_MODERNBERT, true, false, false, false, false, {"words"}},
};

static const char *directory(int i)
{
    static char path[1024];
    char        name[64];
    snprintf(name, sizeof name, "golden/encoders/%s", kinds[i].dir);
    snprintf(path, sizeof path, "%s", tn_test_data(name));
    return path;
}
static tn_bert *opened(int i)
{
    tn_bert *m = tn_bert_load(directory(i));
    fine();
    ck_assert(m && !m->base.training);
    return m;
}

static tn_tensor *padding(void) { return tn_eq(answer("real"), tn_zeros_like(answer("real"))); }
static tn_tensor *read_by(tn_bert *m)
{
    const bool roberta = m->config.kind == TN_ROBERTA || m->config.kind == TN_XLM_ROBERTA;
    return tn_bert_forward(m, answer("ids"), .types = roberta ? NULL : answer("types"), .key_padding_mask = padding());
}
static tn_tensor *told(tn_bert *m, tn_tensor *y, const char *what)
{
    if (!strcmp(what, "y")) return y;
    if (!strcmp(what, "pooled")) return tn_bert_pooled(m, y);
    if (!strcmp(what, "next")) return tn_bert_nsp_logits(m, y);
    if (!strcmp(what, "replaced")) return tn_bert_replaced_logits(m, y);
    return tn_reshape(tn_bert_mlm_logits(m, y, NULL), TN_SHAPE(tn_size(y, 0), tn_size(y, 1), m->config.vocab));
}

/* The largest difference; in tensors per token padding is ignored; in pooled tensors rows that start with padding are
 * ignored. */
static double apart(tn_tensor *got, tn_tensor *want, bool pieces)
{
    ck_assert(got && want && tn_shape_equal(tn_shape_of(got), tn_shape_of(want)));
    tn_tensor *d = tn_abs(tn_sub(got, want)), *real = tn_to(answer("real"), TN_F32);
    if (!pieces) real = tn_select(real, 1, 0);
    while (tn_ndim(real) < tn_ndim(d)) real = tn_unsqueeze(real, -1);
    return tn_item(tn_amax(tn_reshape(tn_mul(d, real), TN_SHAPE(-1)), .dims = TN_DIMS(0)));
}

TEST_EACH(answers_as_hugging_face, KINDS)
{
    tn_bert   *m = opened(_i);
    tn_tensor *y = read_by(m);
    char       name[64];
    ck_assert(m->config.kind == kinds[_i].kind && !m->head == !kinds[_i].words && !m->pooler == !kinds[_i].pooler &&
              !m->next == !kinds[_i].next && !m->replaced == !kinds[_i].replaced && !m->project == !kinds[_i].project);
    for (int k = 0; k < 2 && kinds[_i].describes[k]; k++) {
        const char *what = kinds[_i].describes[k];
        const bool  pieces = strcmp(what, "pooled") != 0 && strcmp(what, "next") != 0;
        snprintf(name, sizeof name, "%s.%s", kinds[_i].dir, what);
        const double d = apart(told(m, y, what), answer(name), pieces);
        ck_assert_msg(d <= 2e-5, "%s: %g", name, d);
    }
    tn_free(m);
}

/* Padding that is not masked has its own position and takes part. */
TEST(padding_that_is_seen)
{
    tn_bert   *m = opened(ROBERTA);
    tn_tensor *ids = answer("ids"), *y = told(m, tn_bert_forward(m, ids), "words");
    ck_assert_double_le(apart(y, answer("roberta.unmasked"), true), 2e-5);
    tn_free(m);
}

/* A row's bits do not depend on how its batch is padded. */
TEST_EACH(same_bits_alone, KINDS)
{
    tn_bert   *m = opened(_i);
    tn_tensor *y = read_by(m), *ids = answer("ids");
    const bool types = m->types && tn_size(m->types->weight, 0) > 1;
    for (int64_t row = 0; row < 2; row++) {
        const int64_t n = row ? 6 : 8;
        tn_tensor    *x = tn_narrow(tn_narrow(ids, 0, row, 1), 1, 0, n);
        tn_tensor    *t = tn_narrow(tn_narrow(answer("types"), 0, row, 1), 1, 0, n);
        tn_tensor    *alone = tn_bert_forward(m, x, .types = types ? t : NULL);
        ck_assert(tn_same_bits(alone, tn_narrow(tn_narrow(y, 0, row, 1), 1, 0, n)));
    }
    tn_free(m);
}

static bool same_string(const tn_json *a, const tn_json *b)
{
    return a && b && tn_json_type_of(a) == TN_JSON_STRING && tn_json_type_of(b) == TN_JSON_STRING &&
           !strcmp(tn_json_string(a), tn_json_string(b));
}

/* Checks that each member of config.json has the same value as in the reference. */
static void same_config(const char *ours, const char *theirs, const char *architecture)
{
    tn_json *a = tn_json_load(ours), *b = tn_json_load(theirs);
    fine();
    ck_assert_str_eq(tn_json_string(tn_json_first(tn_json_get(a, "architectures"))), architecture);
    for (const tn_json *x = tn_json_first(a); x; x = tn_json_next(x)) {
        const char    *key = tn_json_key(x);
        const tn_json *y = tn_json_get(b, key);
        if (!strcmp(key, "torch_dtype") || !strcmp(key, "position_embedding_type")) continue;  /* of older releases */
        if (strstr(key, "rope_theta") || !strcmp(key, "global_attn_every_n_layers")) continue; /* also */
        if (!strcmp(key, "local_attention")) continue;                                         /* 5 is 4 */
        const tn_json_type type = tn_json_type_of(x);
        ck_assert_msg(y != NULL, "%s", key);
        if (type == TN_JSON_INTEGER || type == TN_JSON_REAL)
            ck_assert_msg(tn_json_double(x) == tn_json_double(y), "%s", key);
        if (tn_json_type_of(x) == TN_JSON_STRING) ck_assert_msg(same_string(x, y), "%s", key);
    }
    fine();
    tn_json_free(a), tn_json_free(b);
}

/* The names of the heads; a file without them has only the encoder. */
static const char *with_prefix(const tn_safetensors *f, const char *name)
{
    static char longer[256];
    snprintf(longer, sizeof longer, "roberta.%s", name);
    return tn_safetensors_find(f, name) >= 0 ? name : longer;
}

/* A loaded model is written with the same names and bits, and loads again. */
TEST_EACH(files_there_and_back, KINDS)
{
    char     dir[1024], path[1100], theirs[1100];
    tn_bert *a = opened(_i), *b;
    snprintf(dir, sizeof dir, "%s", tn_test_folder(kinds[_i].dir));
    ck_assert_int_eq(tn_bert_save(a, dir), TN_OK);
    snprintf(path, sizeof path, "%s/config.json", dir);
    snprintf(theirs, sizeof theirs, "%s/config.json", directory(_i));
    same_config(path, theirs, kinds[_i].architecture);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    snprintf(theirs, sizeof theirs, "%s/model.safetensors", directory(_i));
    tn_safetensors *ours = tn_safetensors_open(path), *reference = tn_safetensors_open(theirs);
    fine();
    ck_assert_int_eq(tn_safetensors_count(ours), tn_safetensors_count(reference));
    for (int64_t i = 0; i < tn_safetensors_count(reference); i++) {
        const char *name = with_prefix(ours, tn_safetensors_at(reference, i).name);
        ck_assert_msg(tn_safetensors_find(ours, name) >= 0, "%s", name);
        ck_assert(tn_same_bits(tn_safetensors_get(ours, name), tn_safetensors_get_at(reference, i)));
    }
    tn_safetensors_close(ours), tn_safetensors_close(reference);
    ck_assert_ptr_nonnull(b = tn_bert_load(dir));
    ck_assert(tn_same_bits(read_by(a), read_by(b)));
    tn_free(a), tn_free(b);
}

/* Every used parameter gets a gradient; in ALBERT's blocks the sum over the layers that share them. */
TEST_EACH(gradients_arrive, KINDS)
{
    tn_bert   *m = opened(_i);
    tn_tensor *y = read_by(m), *loss = NULL;
    tn_train(m, true);
    for (int k = 0; k < 2 && kinds[_i].describes[k]; k++) {
        tn_tensor *part = tn_sum(tn_square(told(m, y, kinds[_i].describes[k])));
        loss = loss ? tn_add(loss, part) : part;
    }
    ck_assert(tn_backward(loss) == TN_OK);
    for (tn_each p = tn_parameters(m); tn_next(&p);) ck_assert_msg(tn_grad(p.tensor) != NULL, "%s", p.name);
    tn_free(m);
}

TEST(replaced_words_are_learned)
{
    tn_bert      *m = opened(DISCRIMINATOR);
    tn_tensor    *ids = answer("ids"), *wrong = tn_eq(ids, tn_full_of(TN_I64, TN_SHAPE(3, 8), 3));
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    double        first = 0, last = 0;
    for (int step = 0; step < 60; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_bert_loss(m, .ids = ids, .key_padding_mask = padding(), .replaced = wrong);
        tn_backward(loss);
        tn_step(o);
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(last < 0.1 * first, "from %g to %g", first, last);
    ck_refused(tn_bert_mlm_logits(m, read_by(m), NULL), TN_ESTATE,
               "bert: this model has no head for masked tokens; load a model trained for that, or create it with one");
    tn_optimizer_free(o);
    tn_free(m);
}

/* ---- configs ----------------------------------------------------------------------------------------------------- */

#define SMALL .vocab = 9, .dim = 8, .heads = 2, .layers = 2, .positions = 6
#define WHOLE SMALL, .types = 2, .head_dropout = -1, .init = 0.02, .eps = 1e-12
static const struct {
    tn_bert_config c;
    const char    *says;
} wrong_configs[] = {
    {{WHOLE, .kind = (tn_bert_kind)99}, "tn_bert_new: .kind is 99, which is not a tn_bert_kind"},
    {{WHOLE, .embedding = 4},
     "tn_bert_new: .embedding is 4 and .dim is 8, but in BERT they must be equal; omit .embedding"},
    {{WHOLE, .kind = TN_ROBERTA, .groups = 1},
     "tn_bert_new: .groups is 1, but only ALBERT's layers share weights, not those of RoBERTa; omit .groups"},
    {{WHOLE, .kind = TN_ALBERT, .groups = 3}, "tn_bert_new: .groups is 3, but must be from 1 to .layers, which is 2"},
    {{WHOLE, .kind = TN_ELECTRA, .norm_first = true}, "tn_bert_new: .norm_first needs .kind = TN_BERT, not ELECTRA"},
    {{WHOLE, .kind = TN_XLM_ROBERTA, .replaced = true},
     "tn_bert_new: .replaced needs .kind = TN_ELECTRA or TN_DEBERTA, not XLM-RoBERTa"},
    {{WHOLE, .kind = TN_ROBERTA, .padding = -1},
     "tn_bert_new: RoBERTa counts positions from the padding id; set .padding"},
    {{WHOLE, .window = 4},
     "tn_bert_new: .global_every, .window, .theta, .local_theta and .mean_heads need .kind = TN_MODERNBERT, not BERT"},
    {{WHOLE, .kind = TN_MODERNBERT, .window = -1}, "tn_bert_new: .window is -1, but must be from 0 to 1073741824"},
    {{WHOLE, .kind = TN_MODERNBERT, .global_every = -1},
     "tn_bert_new: .global_every is -1, but must be from 1 to 1024"},
};

TEST_ROWS(wrong_config, wrong_configs)
{
    ck_refused(tn_bert_create(wrong_configs[_i].c), TN_EINVAL, wrong_configs[_i].says);
}

TEST(distilbert_has_one_eps)
{
    ck_refused(tn_bert_new(SMALL, .kind = TN_DISTILBERT, .eps = 1e-5), TN_EINVAL,
               "tn_bert_new: .eps is 1e-05, but must be 1e-12 for DistilBERT");
}

/* A new model has all the weights that files of its kind have. */
TEST(albert_shares)
{
    tn_seed(2);
    tn_bert *a = tn_bert_new(SMALL, .kind = TN_ALBERT, .embedding = 4), *b = tn_bert_new(SMALL);
    ck_assert(tn_length(a->encoder->layers) == 1 && a->encoder->depth == 2 && tn_count(a) < tn_count(b));
    tn_tensor    *w[2];
    const int64_t four[] = {1, 2, 3, 4};
    tn_tensor    *ids = tn_from_data(TN_I64, TN_SHAPE(1, 4), four);
    tn_eval(a);
    ck_assert_ptr_nonnull(tn_bert_forward(a, ids, .weights = w));
    ck_assert(w[0] && w[1] && !tn_same_bits(w[0], w[1]));
    tn_free(a), tn_free(b);
}

TEST_EACH(ids_out_of_range, KINDS)
{
    tn_bert      *m = opened(_i);
    const int64_t bad[] = {2, 37, 3}, below[] = {2, -1, 3};
    ck_refused_code(tn_bert_forward(m, tn_from_data(TN_I64, TN_SHAPE(1, 3), bad)), TN_EINDEX);
    ck_refused_code(tn_bert_forward(m, tn_from_data(TN_I64, TN_SHAPE(1, 3), below)), TN_EINDEX);
    ck_refused_code(tn_bert_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(1, 13))), TN_ESHAPE);
    tn_free(m);
}

/* ---- invalid files ----------------------------------------------------------------------------------------------- */

static const struct {
    int         of;
    const char *key, *value;
    tn_status   status;
    const char *says;
} bad_configs[] = {
    {ALBERT, "inner_group_num", "2", TN_EUNSUPPORTED, "'%s/config.json': inner_group_num is 2; only 1 is supported"},
    {ALBERT, "num_hidden_groups", "6", TN_EFORMAT,
     "'%s/config.json': num_hidden_groups is 6, but must be at most "
     "num_hidden_layers 5"},
    {ALBERT, "embedding_size", "0", TN_EFORMAT, "'%s/config.json': embedding_size is 0, but must be from 1 to 65536"},
    {DISTILBERT, "n_heads", "5", TN_EFORMAT, "'%s/config.json': n_heads 5 does not divide dim 12"},
    {DISTILBERT, "dim", "null", TN_EFORMAT, "'%s/config.json': dim is missing"},
    {ROBERTA, "max_position_embeddings", "2", TN_EFORMAT,
     "'%s/config.json': max_position_embeddings is 2, but positions start after pad_token_id 1"},
    {ROBERTA, "is_decoder", "true", TN_EUNSUPPORTED,
     "'%s/config.json': is_decoder and add_cross_attention are not supported: this is an encoder"},
    {ROBERTA, "tie_word_embeddings", "false", TN_EUNSUPPORTED,
     "'%s/config.json': tie_word_embeddings is false, which is not supported"},
    {GENERATOR, "num_hidden_layers", "1024", TN_EFORMAT, NULL},
    {GENERATOR, "num_hidden_layers", "1", TN_EFORMAT, NULL},
    {GENERATOR, "model_type", "\"bert\"", TN_EFORMAT, NULL},
    {ROBERTA, "model_type", "\"roberta-prelayernorm\"", TN_EFORMAT, NULL},
    {ROBERTA, "model_type", "\"deberta\"", TN_EUNSUPPORTED,
     "'%s/config.json': model_type is 'deberta'; supported: 'bert', 'roberta-prelayernorm', 'tenon-bert', "
     "'roberta', 'xlm-roberta', 'camembert', 'distilbert', 'albert', 'electra', 'modernbert', 'deberta-v2' "
     "and 'xlnet'"},
    {MODERNBERT, "norm_bias", "true", TN_EUNSUPPORTED, "'%s/config.json': norm_bias is true, which is not supported"},
    {MODERNBERT, "mlp_dropout", "0.5", TN_EUNSUPPORTED, "'%s/config.json': mlp_dropout is 0.5; only 0 is supported"},
    {MODERNBERT, "classifier_pooling", "\"max\"", TN_EUNSUPPORTED,
     "'%s/config.json': classifier_pooling is 'max'; only 'cls' and 'mean' is supported"},
    {MODERNBERT, "layer_types", "[\"full_attention\"]", TN_EFORMAT,
     "'%s/config.json': layer_types names 1 layers, but num_hidden_layers is 4"},
    {MODERNBERT, "layer_types", "[\"full_attention\", \"sliding_attention\", \"full_attention\", \"full_attention\"]",
     TN_EUNSUPPORTED,
     "'%s/config.json': layer_types is not supported: layer 3 is 'full_attention', but every 2-th layer, from the "
     "first, must be full_attention and the others sliding_attention"},
};

/* A copy of a directory with one member of its config replaced. */
static const char *copied(int of, const char *key, const char *value)
{
    static char dir[1024];
    char        path[1100];
    tn_bert    *m = opened(of);
    snprintf(dir, sizeof dir, "%s", tn_test_folder("bad"));
    ck_assert_int_eq(tn_bert_save(m, dir), TN_OK);
    tn_free(m);
    snprintf(path, sizeof path, "%s/config.json", dir);
    tn_json        *c = tn_json_load(path), *v = tn_json_parse(value, strlen(value));
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(c); x; x = tn_json_next(x))
        if (strcmp(tn_json_key(x), key)) tn_json_put(w, tn_json_key(x), x);
    tn_json_put(w, key, v);
    tn_json_close(w);
    ck_assert_int_eq(tn_json_save(w, path), TN_OK);
    tn_json_writer_free(w), tn_json_free(c), tn_json_free(v);
    return dir;
}

TEST_ROWS(bad_config, bad_configs)
{
    char        says[1400];
    const char *dir = copied(bad_configs[_i].of, bad_configs[_i].key, bad_configs[_i].value);
    ck_assert_ptr_null(tn_bert_load(dir));
    if (bad_configs[_i].says) {
        snprintf(says, sizeof says, bad_configs[_i].says, dir);
        ck_error(bad_configs[_i].status, says);
    } else { /* the state dict's message, which tests/unit/nn/test_state.c tests */
        ck_assert_int_eq(tn_error(), bad_configs[_i].status);
        tn_clear_error();
    }
}

/* ---- tn_model_open ----------------------------------------------------------------------------------------------- */

TEST(every_family)
{
    static const struct {
        const char     *dir, *type;
        tn_model_family family;
    } some[] = {
        {"golden/bert/masked", "bert", TN_MODEL_ENCODER},
        {"golden/bert/first", "roberta-prelayernorm", TN_MODEL_ENCODER},
        {"golden/encoders/albert", "albert", TN_MODEL_ENCODER},
        {"golden/encoders/electra-discriminator", "electra", TN_MODEL_ENCODER},
        {"golden/heads/classes", "bert", TN_MODEL_TUNED},
        {"golden/heads/tags", "bert", TN_MODEL_TUNED},
        {"golden/heads/electra", "electra", TN_MODEL_TUNED},
        {"golden/gpt/torch", "gpt2", TN_MODEL_DECODER},
        {"golden/llama/llama3", "llama", TN_MODEL_DECODER},
        {"golden/vit/classifier", "vit", TN_MODEL_IMAGES},
        {"golden/vit/teacher", "deit", TN_MODEL_IMAGES},
    };
    tn_scalar(0); /* a test's own scope is allocated once and stays */
    ck_assert_int_eq(tn_extras_register(), TN_OK);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const tn_generator before = *tn_current_generator();
        const size_t       live = tn_memory_now().live;
        tn_model           m = tn_model_open(tn_test_data(some[i].dir));
        ck_assert_msg(m.module != NULL, "%s: %s", some[i].dir, tn_error_message());
        ck_assert_str_eq(m.type, some[i].type);
        ck_assert(m.family == some[i].family && !m.tokenizer);
        ck_assert_msg(tn_current_generator()->position == before.position, "%s: weights drawn in vain", some[i].dir);
        tn_model_close(&m);
        ck_assert(!m.module && !m.family);
        ck_assert_msg(tn_memory_now().live == live, "%s: something stays", some[i].dir);
    }
    tn_model_close(NULL);
}

/* .family selects what to load; other families are errors. */
TEST(one_family)
{
    const char *tags = tn_test_data("golden/heads/tags"), *gpt = tn_test_data("golden/gpt/torch");
    tn_model    m = tn_model_open(tags, .family = TN_MODEL_ENCODER), n = tn_model_open(tags, .family = TN_MODEL_TUNED),
             d = tn_model_open(gpt, .family = TN_MODEL_DECODER);
    ck_assert_msg(m.family == TN_MODEL_ENCODER && n.family == TN_MODEL_TUNED, "%s", tn_error_message());
    ck_assert(!m.bert->head && tn_count(m.bert) < tn_count(n.tuned));
    ck_assert(d.family == TN_MODEL_DECODER && !strcmp(d.form, "huggingface") && !strcmp(d.stored, "F32"));
    tn_model_close(&m), tn_model_close(&n), tn_model_close(&d);
    ck_assert(!tn_model_open(gpt, .family = TN_MODEL_ENCODER).module);
    ck_error_has(TN_EUNSUPPORTED, "model_type is 'gpt2'; supported: 'bert', 'roberta-prelayernorm', ");
    ck_assert(!tn_model_open(gpt, .family = TN_MODEL_SEQ2SEQ).module);
    ck_error_has(TN_EUNSUPPORTED, "model_type is 'gpt2'; supported: 'tenon-seq2seq'");
    ck_assert(!tn_model_open(tn_test_data("golden/bert/masked"), .family = TN_MODEL_TUNED).module);
    ck_assert_int_ne(tn_error(), TN_OK);
    tn_clear_error();
    ck_assert(!tn_model_open(gpt, .needs_tokenizer = true).module);
    ck_error_has(TN_EFORMAT, "contains no tokenizer; name its file or folder, or copy it to the model's folder");
}

/* A model of each family, saved and opened again. */
TEST(saved)
{
    static const char *const from[] = {"golden/encoders/albert", "golden/heads/tags", "golden/llama/llama3",
                                       "golden/vit/classifier"};
    const char              *dir = tn_test_folder("saved");
    for (int i = 0; i < (int)(sizeof from / sizeof *from); i++) {
        tn_model m = tn_model_open(tn_test_data(from[i])), n = {.family = TN_MODEL_NONE};
        if (m.module && tn_model_save(&m, dir) == TN_OK) n = tn_model_open(dir);
        ck_assert_msg(n.module != NULL, "%s: %s", from[i], tn_error_message());
        ck_assert(n.family == m.family && !strcmp(n.type, m.type));
        for (tn_each a = tn_parameters((tn_module *)m.module), b = tn_parameters((tn_module *)n.module);
             tn_next(&a) && tn_next(&b);)
            ck_assert_msg(!strcmp(a.name, b.name) && tn_same_bits(a.tensor, b.tensor), "%s: %s", from[i], a.name);
        tn_model_close(&m), tn_model_close(&n);
    }
    tn_model m = tn_model_open(tn_test_data(from[0]));
    ck_assert_int_ne(tn_model_save(&m, tn_test_file("albert.gguf")), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "of encoders GGUF has BERT only, not albert; save to a directory");
    ck_assert_int_ne(tn_model_save(&m, dir, .type = "f32"), TN_OK);
    ck_error_has(TN_EINVAL, "tn_model_save: .type needs a path that ends in .gguf, got '");
    ck_assert_int_ne(tn_model_save(&m, NULL), TN_OK);
    ck_error(TN_EINVAL, "tn_model_save: the path is NULL");
    ck_assert_int_ne(tn_model_save(NULL, dir), TN_OK);
    ck_error(TN_EINVAL, "tn_model_save: the model is NULL");
    tn_model_close(&m);
    ck_assert_int_ne(tn_model_save(&m, dir), TN_OK);
    ck_error(TN_EINVAL, "tn_model_save: the model is NULL");
}

TEST(seq2seq_with_tokenizer)
{
    static const char text[] = "a b c d a b c d a b";
    char              dir[1024];
    snprintf(dir, sizeof dir, "%s", tn_test_folder("translator"));
    tn_tokenizer *t = tn_tokenizer_train_text(text, sizeof text - 1, .kind = TN_BYTE_BPE, .vocab_size = 260);
    tn_seq2seq   *net = tn_seq2seq_new(.source_words = tn_tokenizer_size(t), .dim = 8, .heads = 2, .layers = 1);
    ck_assert_msg(tn_seq2seq_save(net, dir) == TN_OK && tn_tokenizer_save(t, dir) == TN_OK, "%s", tn_error_message());
    tn_model m = tn_model_open(dir);
    ck_assert_msg(m.family == TN_MODEL_SEQ2SEQ && m.seq2seq && m.tokenizer, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_size(m.tokenizer), tn_tokenizer_size(t));
    tn_model_close(&m);
    tn_free(net);
    net = tn_seq2seq_new(.source_words = 9, .dim = 8, .heads = 2, .layers = 1);
    ck_assert_int_eq(tn_seq2seq_save(net, dir), TN_OK);
    ck_assert(tn_model_open(dir).module == NULL);
    ck_assert(strstr(tn_error_message(), "use the model's own tokenizer") != NULL);
    tn_clear_error();
    tn_free(net);
    tn_tokenizer_free(t);
}

TEST(open_errors)
{
    char        says[1400];
    const char *dir = copied(ROBERTA, "model_type", "\"none\"");
    ck_assert(!tn_model_open(dir).family);
    ck_assert_int_eq(tn_error(), TN_EUNSUPPORTED);
    ck_assert(strstr(tn_error_message(), "model_type is 'none'; supported: 'bert', ") &&
              strstr(tn_error_message(), "'llama'") && strstr(tn_error_message(), "'t5'"));
    tn_clear_error();
    dir = copied(ROBERTA, "model_type", "null");
    ck_assert(!tn_model_open(dir).family);
    snprintf(says, sizeof says, "'%s/config.json': model_type is missing", dir);
    ck_error(TN_EFORMAT, says);
    ck_assert(!tn_model_open(NULL).family);
    ck_error(TN_EINVAL, "tn_model_open: the path is NULL");
    ck_assert(!tn_model_open("").family);
    ck_error(TN_EINVAL, "tn_model_open: the path is empty");
    ck_assert(!tn_model_open(tn_test_file("nowhere")).family);
    ck_error_code(TN_EIO);
}
