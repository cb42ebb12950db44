/* test_heads.c — tuned encoders compared with Hugging Face's (tests/golden/heads.py): logits, losses, gradients, files;
 * answers found in windows; errors. */
#include "extras.h"
#include "tests/common/answers.h"

static void open_answers(void) { tn_answers_open("golden/heads/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);

static const struct head {
    const char     *name;
    tn_task         task;
    tn_problem_type problem;
    int64_t         n;
} heads[] = {{"classes", TN_TASK_CLASSIFICATION, TN_SINGLE_LABEL, 5},
             {"several", TN_TASK_CLASSIFICATION, TN_MULTI_LABEL, 3},
             {"number", TN_TASK_CLASSIFICATION, TN_REGRESSION, 1},
             {"tags", TN_TASK_TOKEN_CLASSIFICATION, TN_SINGLE_LABEL, 7},
             {"answers", TN_TASK_QUESTION_ANSWERING, TN_SINGLE_LABEL, 2},
             {"choices", TN_TASK_MULTIPLE_CHOICE, TN_SINGLE_LABEL, 1},
             {"roberta", TN_TASK_CLASSIFICATION, TN_SINGLE_LABEL, 4},
             {"albert", TN_TASK_CLASSIFICATION, TN_SINGLE_LABEL, 4},
             {"electra", TN_TASK_CLASSIFICATION, TN_SINGLE_LABEL, 4},
             {"modern", TN_TASK_CLASSIFICATION, TN_SINGLE_LABEL, 4},
             {"modern-answers", TN_TASK_QUESTION_ANSWERING, TN_SINGLE_LABEL, 2},
             {"choices-roberta", TN_TASK_MULTIPLE_CHOICE, TN_SINGLE_LABEL, 1},
             {"choices-distilbert", TN_TASK_MULTIPLE_CHOICE, TN_SINGLE_LABEL, 1},
             {"choices-electra", TN_TASK_MULTIPLE_CHOICE, TN_SINGLE_LABEL, 1}};
enum { HEADS = sizeof heads / sizeof *heads };

static const char *folder_of(const struct head *h) { return tn_test_data(tn_name("golden/heads/%s", h->name)); }
static tn_tuned   *opened(const struct head *h)
{
    tn_tuned *m = tn_tuned_load(folder_of(h));
    fine();
    ck_assert(m->config.task == h->task && m->config.problem == h->problem && m->config.n == h->n);
    return m;
}

/* The largest difference, relative to the largest element, at least 0.01 (for gradients that are exactly zero). */
static double apart(tn_tensor *got, tn_tensor *want)
{
    ck_assert(got && want && tn_shape_equal(tn_shape_of(got), tn_shape_of(want)));
    tn_tensor *d = tn_abs(tn_sub(tn_to(got, TN_F64), want));
    return tn_item(tn_amax(d)) / fmax(tn_item(tn_amax(tn_abs(want))), 1e-2);
}

static tn_batch batch_of(const struct head *h)
{
    const bool choose = h->task == TN_TASK_MULTIPLE_CHOICE;
    tn_batch   b = {.x = answer(choose ? "choices.ids" : "ids"), .y = answer(tn_name("%s.target", h->name))};
    tn_tensor *types = answer("types");
    if (choose) types = tn_contiguous(tn_expand(tn_unsqueeze(types, 1), TN_SHAPE(3, 3, 7)));
    if (h->problem != TN_SINGLE_LABEL) b.y = tn_to(b.y, TN_F32);
    tn_batch_put(&b, "types", types);
    tn_batch_put(&b, "padding", tn_eq(b.x, tn_zeros_like(b.x)));
    return b;
}

static const struct {
    const char *file, *module;
} grads[] = {{"classifier.weight", "classifier.weight"},
             {"classifier.bias", "classifier.bias"},
             {"qa_outputs.weight", "qa_outputs.weight"},
             {"qa_outputs.bias", "qa_outputs.bias"},
             {"classifier.dense.weight", "classifier.dense.weight"},
             {"classifier.out_proj.weight", "classifier.out_proj.weight"},
             {"pre_classifier.weight", "pre_classifier.weight"},
             {"sequence_summary.summary.weight", "sequence_summary.summary.weight"},
             {"roberta.embeddings.word_embeddings.weight", "encoder.bert.embeddings.word_embeddings.weight"},
             {"albert.embeddings.word_embeddings.weight", "encoder.bert.embeddings.word_embeddings.weight"},
             {"electra.embeddings.word_embeddings.weight", "encoder.bert.embeddings.word_embeddings.weight"},
             {"head.dense.weight", "head.dense.weight"},
             {"head.norm.weight", "head.norm.weight"},
             {"model.layers.1.mlp.Wo.weight", "encoder.bert.encoder.layers.1.linear2.weight"},
             {"model.layers.0.attn.Wo.weight", "encoder.bert.encoder.layers.0.self_attn.out_proj.weight"},
             {"model.embeddings.tok_embeddings.weight", "encoder.bert.embeddings.word_embeddings.weight"},
             {"distilbert.embeddings.word_embeddings.weight", "encoder.bert.embeddings.word_embeddings.weight"},
             {"bert.pooler.dense.weight", "encoder.bert.pooler.dense.weight"},
             {"bert.embeddings.word_embeddings.weight", "encoder.bert.embeddings.word_embeddings.weight"},
             {"bert.encoder.layer.1.output.dense.weight", "encoder.bert.encoder.layers.1.linear2.weight"},
             {"bert.encoder.layer.1.output.dense.bias", "encoder.bert.encoder.layers.1.linear2.bias"}};

TEST_EACH(scores_losses_and_gradients_as_hugging_face, HEADS)
{
    const struct head *h = &heads[_i];
    tn_tuned          *m = opened(h);
    const tn_batch     b = batch_of(h);
    tn_tensor         *y = tn_tuned_logits(m, &b), *loss = tn_tuned_loss(m, y, b.y);
    fine();
    ck_assert_double_le(apart(y, answer(tn_name("%s.scores", h->name))), 1e-5);
    ck_assert_double_le(apart(loss, answer(tn_name("%s.loss", h->name))), 1e-5);
    tn_backward(loss);
    int compared = 0;
    for (size_t i = 0; i < sizeof grads / sizeof *grads; i++) {
        const char *name = tn_name("%s.grad.%s", h->name, grads[i].file);
        if (tn_safetensors_find(answers, name) < 0) continue;
        tn_tensor *got = tn_grad(tn_find_tensor(m, grads[i].module));
        fine();
        ck_assert_msg(apart(got, answer(name)) <= 1e-5, "%s: %g apart", name, apart(got, answer(name)));
        compared++;
    }
    ck_assert_int_ge(compared, 3);
    tn_free(m);
}

/* A model that is loaded and saved gives Hugging Face's file: same names, same bits; and it loads again. */
TEST_EACH(files_are_hugging_faces, HEADS)
{
    const struct head *h = &heads[_i];
    const char        *dir = tn_test_folder(h->name);
    char               path[1100];
    tn_tuned          *m = opened(h), *again;
    ck_assert_int_eq(tn_tuned_save(m, dir), TN_OK);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    tn_safetensors *ours = tn_safetensors_open(path);
    snprintf(path, sizeof path, "%s/model.safetensors", folder_of(h));
    tn_safetensors *theirs = tn_safetensors_open(path);
    fine();
    ck_assert_int_eq(tn_safetensors_count(ours), tn_safetensors_count(theirs));
    for (int64_t i = 0; i < tn_safetensors_count(theirs); i++) {
        const char *name = tn_safetensors_at(theirs, i).name;
        ck_assert_msg(tn_safetensors_find(ours, name) >= 0, "%s is missing", name);
        ck_assert(tn_same_bits(tn_safetensors_get(ours, name), tn_safetensors_get(theirs, name)));
    }
    tn_safetensors_close(ours), tn_safetensors_close(theirs);
    ck_assert_ptr_nonnull(again = tn_tuned_load(dir));
    ck_assert(again->config.task == h->task && again->config.problem == h->problem && again->config.n == h->n);
    const tn_batch b = batch_of(h);
    ck_assert(tn_same_bits(tn_tuned_logits(m, &b), tn_tuned_logits(again, &b)));
    for (int64_t i = 0; i < h->n; i++) ck_assert_str_eq(m->labels[i], again->labels[i]);
    if (!_i) ck_assert_str_eq(m->labels[4], "l4");
    tn_tuned *copy = tn_copy(again);
    tn_free(again);
    ck_assert_str_eq(copy->labels[h->n - 1], m->labels[h->n - 1]);
    tn_free(copy), tn_free(m);
}

/* A masked language model loses its heads, keeps its pooler or gets a new one; the other weights are unchanged. */
TEST(an_encoder_is_trimmed)
{
    tn_bert  *b = tn_bert_load(tn_test_data("golden/bert/pretraining"));
    tn_tuned *m = tn_tuned_new(b, .task = TN_TASK_TOKEN_CLASSIFICATION, .n = 3);
    fine();
    ck_assert(!m->encoder->head && !m->encoder->next && !m->encoder->pooler && m->classifier->out == 3);
    ck_assert_str_eq(m->labels[2], "LABEL_2");
    tn_bert *again = tn_bert_load(tn_test_data("golden/bert/pretraining"));
    ck_assert(tn_same_bits(m->encoder->words->weight, again->words->weight));
    tn_free(m);
    const char *const names[] = {"no", "yes"};
    m = tn_tuned_new(tn_bert_load(tn_test_data("golden/bert/masked")), .n = 2, .labels = names, .dropout = 0.3);
    fine();
    ck_assert(m->encoder->pooler && m->config.dropout == 0.3 && !strcmp(m->labels[1], "yes"));
    tn_free(m), tn_free(again);
}

static int64_t heads_in_all(void *m)
{
    int64_t n = 0;
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);)
        if (tn_mha_of(e.module)) n += tn_mha_of(e.module)->heads;
    return n;
}

/* A model with pruned heads (tests/golden/pruned_heads.py) can be tuned, and its files contain the pruning. */
TEST(heads_may_have_been_pruned)
{
    const char *dir = tn_test_folder("pruned");
    tn_bert    *b = tn_bert_load(tn_test_data("golden/look/bert")), *whole;
    tn_tensor  *ids = tn_full_of(TN_I64, TN_SHAPE(2, 5), 7);
    fine();
    whole = tn_bert_load(tn_test_data("golden/bert/pretraining"));
    ck_assert_int_lt(heads_in_all(b), heads_in_all(whole));
    ck_assert_ptr_nonnull(b->head); /* so that it must be removed */
    const int64_t left = heads_in_all(b);
    tn_eval(b);
    tn_tensor *before = tn_bert_forward(b, ids);
    tn_tuned  *m = tn_tuned_new(b, .task = TN_TASK_TOKEN_CLASSIFICATION, .n = 3);
    fine();
    tn_eval(m);
    ck_assert_int_eq(heads_in_all(m), left);
    ck_assert(tn_same_bits(tn_bert_forward(m->encoder, ids), before));
    ck_assert_int_eq(tn_tuned_save(m, dir), TN_OK);
    tn_tuned *again = tn_tuned_load(dir);
    fine();
    ck_assert(tn_same_bits(tn_tuned_forward(again, ids), tn_tuned_forward(m, ids)));
    tn_free(again), tn_free(m), tn_free(whole);
}

/* Adapters of the queries and values. */
static tn_status adapt(tn_tuned *m)
{
    const tn_bert_kind kind = m->encoder->config.kind;
    return tn_lora(m, .rank = 3, .alpha = 6,
                   .names = kind == TN_DISTILBERT   ? "q_lin v_lin"
                            : kind == TN_MODERNBERT ? "Wqkv Wi"
                                                    : "query value",
                   .trained = tn_tuned_head(m));
}

static bool later_than(void *user) { return --*(int *)user < 0; }

/* A deadline ends a tuned model's forward at each call of a module, with a status of its own. */
TEST(stopped)
{
    tn_bert   *e = tn_bert_new(.vocab = 20, .dim = 8, .layers = 2, .heads = 2, .ff = 8, .positions = 8);
    tn_tuned  *m = tn_tuned_new(e, .task = TN_TASK_CLASSIFICATION, .n = 3);
    tn_tensor *ids = tn_full_of(TN_I64, TN_SHAPE(2, 5), 7), *y = NULL;
    int        calls = 0;
    tn_eval(m);
    tn_tensor *want = tn_tuned_forward(m, ids);
    fine();
    for (; !y; calls++) {
        int left = calls;
        tn_stop_when(later_than, &left);
        y = tn_tuned_forward(m, ids);
        tn_stop_when(NULL, NULL);
        ck_assert_int_eq(tn_error(), y ? TN_OK : TN_ESTATE);
        ck_assert(y || strstr(tn_error_message(), ": stopped, as the function of tn_stop_when asked"));
        tn_clear_error();
    }
    ck_assert_int_gt(calls, 10);
    ck_assert(tn_same_bits(y, want));
    tn_free(m);
}

/* With adapters in many layers, .trained still names the head: its text does not change meanwhile. */
TEST(adapted_deep)
{
    tn_bert  *e = tn_bert_new(.vocab = 20, .dim = 8, .layers = 4, .heads = 2, .ff = 8, .positions = 8);
    tn_tuned *m = tn_tuned_new(e, .task = TN_TASK_CLASSIFICATION, .n = 3);
    fine();
    ck_assert_int_eq(tn_lora(m, .rank = 1, .names = "query value", .trained = tn_tuned_head(m)), TN_OK);
    ck_assert(tn_needs_grad(((tn_linear *)tn_find(m, "classifier"))->weight));
    tn_free(m);
}

/* New adapters change nothing; trained ones are saved separately, loaded into another copy, and merged. */
TEST_EACH(adapters, HEADS)
{
    const char        *dir = tn_test_folder("adapter");
    const struct head *h = &heads[_i];
    tn_tuned          *m = opened(h), *again = opened(h);
    const tn_batch     b = batch_of(h);
    ck_assert_int_eq(adapt(m), TN_OK);
    ck_assert(tn_same_bits(tn_tuned_logits(m, &b), tn_tuned_logits(again, &b)));
    tn_tensor    *before = tn_clone(tn_tuned_logits(m, &b));
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    for (int i = 0; i < 3; i++) {
        const tn_scope s = tn_scope_begin();
        tn_backward(tn_tuned_loss(m, tn_tuned_logits(m, &b), b.y));
        tn_step(o);
        tn_scope_end(s);
    }
    tn_optimizer_free(o);
    fine();
    ck_assert(tn_same_bits(m->encoder->words->weight, again->encoder->words->weight)); /* frozen */
    tn_tensor *after = tn_tuned_logits(m, &b);
    ck_assert(!tn_allclose(before, after, 1e-4, 1e-4));
    ck_assert_int_eq(tn_peft_save(m, dir), TN_OK);
    ck_assert_int_eq(tn_peft_load(again, dir), TN_OK);
    ck_assert(tn_same_bits(tn_tuned_logits(again, &b), after));
    ck_assert_int_eq(tn_lora_merge(m), TN_OK);
    ck_assert(!tn_has_lora(m) && tn_allclose(tn_tuned_logits(m, &b), after, 1e-4, 1e-5));
    ck_fails(adapt(again), TN_ESTATE, "tn_lora: the module already has adapters; tn_lora_merge merges them");
    tn_free(m), tn_free(again);
}

/* Encoders of other dtypes, and autocast: new adapters change nothing, training gives nearly the same as in f32, and a
 * merged model gives the same logits. */
TEST(adapters_of_other_types)
{
    static const struct {
        tn_dtype is, cast;
        double   near;
    } types[] = {{TN_F64, TN_F64, 1e-3}, {TN_BF16, TN_BF16, 0.2}, {TN_F32, TN_BF16, 0.2}};
    const struct head *h = &heads[0];
    tn_batch           b = batch_of(h);
    tn_tensor         *want = NULL;
    const char *const  dir = tn_test_folder("types");
    for (int i = -1; i < 3; i++) {
        const tn_dtype is = i < 0 ? TN_F32 : types[i].is, cast = i < 0 ? TN_F32 : types[i].cast;
        tn_tuned      *m = opened(h), *again = opened(h);
        tn_module_to(m, is), tn_module_to(again, is);
        const tn_scope s = is == cast ? tn_scope_begin() : tn_autocast_begin(true);
        tn_tensor     *plain = tn_clone(tn_tuned_logits(m, &b));
        tn_seed(3);
        ck_assert_int_eq(adapt(m), TN_OK);
        ck_assert_msg(tn_same_bits(tn_tuned_logits(m, &b), plain), "%d: %s", i, tn_error_message());
        tn_optimizer *o = tn_sgd_new(m, .lr = 0.1);
        for (int t = 0; t < 5; t++) tn_backward(tn_tuned_loss(m, tn_tuned_logits(m, &b), b.y)), tn_step(o);
        tn_optimizer_free(o);
        fine();
        tn_tensor *y = tn_to(tn_tuned_logits(m, &b), TN_F64);
        if (i < 0) want = tn_take(y);
        else ck_assert_msg(apart(y, want) < types[i].near, "%d: %g", i, apart(y, want));
        ck_assert_int_eq(tn_peft_save(m, dir), TN_OK);
        ck_assert_int_eq(tn_peft_load(again, dir), TN_OK);
        ck_assert(tn_same_bits(tn_to(tn_tuned_logits(again, &b), TN_F64), y));
        ck_assert_int_eq(tn_lora_merge(m), TN_OK);
        ck_assert(apart(tn_to(tn_tuned_logits(m, &b), TN_F64), y) < (i < 1 ? 1e-4 : 0.1));
        tn_scope_end(s);
        tn_free(m), tn_free(again);
    }
    tn_drop(want);
}

/* Other options of PEFT would change the results: the error names them, and the model keeps no adapters. */
#define ADAPTER(r) "{\"target_modules\": [\"query\", \"value\"], \"lora_alpha\": 6, \"r\": " r
TEST(adapters_of_other_kinds)
{
    static const char *const members[] = {
        "\"use_dora\": true", "\"target_parameters\": [\"experts\"]", "\"peft_type\": \"IA3\"",
        "\"bias\": \"all\"",  "\"alpha_pattern\": {\"query\": 8}",    "\"rank_pattern\": {\"query\": 8}"};
    const char *const dir = tn_test_folder("kinds"), *const path = tn_test_file("kinds/adapter_config.json");
    char      text[256];
    tn_tuned *m = opened(&heads[0]);
    ck_assert_int_eq(adapt(m), TN_OK);
    ck_assert_int_eq(tn_peft_save(m, dir), TN_OK);
    ck_assert_int_eq(remove(tn_test_file("kinds/SHA256SUMS")), 0);
    tn_free(m);
    m = opened(&heads[0]);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const int n = snprintf(text, sizeof text, ADAPTER("3") ", %s}", members[i]);
        ck_assert_int_eq(tn_file_write(path, text, (size_t)n), TN_OK);
        ck_assert_msg(tn_peft_load(m, dir) == TN_EUNSUPPORTED, "%s", tn_error_message());
        ck_error_has(TN_EUNSUPPORTED, "adapter_config.json': ");
        ck_assert(!tn_has_lora(m));
    }
    ck_assert_int_eq(tn_file_write(path, ADAPTER("2") "}", sizeof ADAPTER("2")), TN_OK); /* the file has 3 */
    ck_assert_int_eq(tn_peft_load(m, dir), TN_ESHAPE);
    tn_clear_error();
    ck_assert_int_eq(tn_file_write(path, ADAPTER("3") "}", sizeof ADAPTER("3")), TN_OK);
    ck_assert_int_eq(tn_peft_load(m, dir), TN_OK); /* the errors changed nothing */
    tn_free(m);
}

/* Writes an adapter of m, with other members of adapter_config.json. */
static const char *saved_with(tn_tuned *m, const char *members)
{
    const char *dir = tn_test_folder("other"), *path = tn_test_file("other/adapter_config.json");
    char        text[300];
    const int   n = snprintf(text, sizeof text, "{\"lora_alpha\":6,\"r\":3,%s}", members);
    ck_assert_int_eq(tn_peft_save(m, dir), TN_OK);
    ck_assert_int_eq(remove(tn_test_file("other/SHA256SUMS")), 0);
    ck_assert_int_eq(tn_file_write(path, text, (size_t)n), TN_OK);
    return dir;
}

/* Parts of a file that PEFT does not load: adapters of a head that the task trains completely, and a weight whose layer
 * it adapts instead. */
TEST(adapters_that_peft_ignores)
{
    tn_tuned *m = opened(&heads[4]), *again = opened(&heads[4]);
    ck_assert_int_eq(tn_lora(m, .rank = 3, .alpha = 6, .names = "qa_outputs"), TN_OK);
    ck_assert_int_eq(tn_peft_load(again, saved_with(m, "\"target_modules\":\"all-linear\"")), TN_OK);
    tn_free(again), again = opened(&heads[4]);
    ck_assert_int_ne(
        tn_peft_load(again, saved_with(m, "\"target_modules\":\"all-linear\",\"task_type\":\"QUESTION_ANS\"")), TN_OK);
    ck_error_has(TN_EFORMAT, "modules_to_save excludes 'qa_outputs', which has adapters in the file");
    tn_free(m), tn_free(again);
    m = opened(&heads[0]), again = opened(&heads[0]);
    ck_assert_int_eq(tn_lora(m, .rank = 3, .alpha = 6, .names = "query", .trained = "pooler"), TN_OK);
    ck_assert_int_eq(tn_peft_load(again, saved_with(m, "\"target_modules\":[\"query\"]")), TN_OK);
    tn_free(again), again = opened(&heads[0]);
    ck_assert_int_ne(tn_peft_load(again, saved_with(m, "\"target_modules\":[\"query\",\"dense\"]")), TN_OK);
    ck_error_has(TN_EFORMAT, "target_modules includes 'bert.pooler.dense', which has a weight, but no adapters in the "
                             "file: PEFT would ignore the weight");
    ck_assert(!tn_has_lora(again));
    ck_assert_int_ne(tn_peft_save(m, tn_test_folder("task"), .task = "SEQ_2_SEQ_LM"), TN_OK);
    ck_error_has(TN_EINVAL, "tn_peft_save: .task is 'SEQ_2_SEQ_LM', but this model, Tuned, does not generate texts");
    tn_free(m), tn_free(again);
}

TEST(what_is_refused)
{
    ck_refused(tn_tuned_new(NULL, .n = 2), TN_EINVAL, "tn_tuned_new: the encoder is NULL");
    ck_refused(tn_tuned_new(tn_bert_load(tn_test_data("golden/bert/encoder"))), TN_EINVAL,
               "tn_tuned_new: .n is 0, but must be from 1 to 1048576");
    ck_assert_ptr_null(tn_tuned_load(tn_test_data("golden/bert/encoder")));
    const char *said = tn_error_message();
    ck_assert_msg(strstr(said, "architectures is 'BertModel'; supported are") != NULL, "%s", said);
    tn_clear_error();
    tn_tuned *m = opened(&heads[5]);
    ck_refused(tn_tuned_forward(m, answer("ids")), TN_ESHAPE,
               "tuned: ids of choices must be [batch, choices, length], got [3, 7]");
    ck_refused(tn_tuned_loss(m, NULL, answer("ids")), TN_EINVAL, "tuned: the scores are NULL");
    tn_free(m);
}

/* Writes text, with its first `from` replaced by `to`, to dir/config.json. */
static void put_config(const char *dir, const char *text, const char *from, const char *to)
{
    char        path[1100], now[4200];
    const char *at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    snprintf(now, sizeof now, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    snprintf(path, sizeof path, "%s/config.json", dir);
    ck_assert_int_eq(tn_file_write(path, now, strlen(now)), TN_OK);
}
static void read_config(const char *dir, char text[4096])
{
    char path[1100];
    snprintf(path, sizeof path, "%s/config.json", dir);
    tn_tensor *config = tn_file_read(path, 4095);
    ck_assert_ptr_nonnull(config);
    memcpy(text, tn_data(config), (size_t)tn_numel(config)), text[tn_numel(config)] = 0;
}

/* A tagging model has no pooler; reading it as a classifier would need a random one. */
TEST(a_pooler_that_is_missing)
{
    const char *dir = tn_test_folder("unpooled");
    char        text[4096], path[1100];
    tn_tuned   *m =
        tn_tuned_new(tn_bert_load(tn_test_data("golden/bert/encoder")), .task = TN_TASK_TOKEN_CLASSIFICATION, .n = 2);
    ck_assert_msg(tn_tuned_save(m, dir) == TN_OK, "%s", tn_error_message());
    tn_free(m);
    read_config(dir, text);
    put_config(dir, text, "ForTokenClassification", "ForSequenceClassification");
    snprintf(path, sizeof path, "%s/SHA256SUMS", dir);
    remove(path);
    ck_assert_ptr_null(tn_tuned_load(dir));
    ck_assert_msg(strstr(tn_error_message(), "the weights of the pooler are "
                                             "missing") != NULL,
                  "%s", tn_error_message());
    tn_clear_error();
}

/* A config with gaps in its labels, or with an unknown problem type. */
TEST(bad_configs)
{
    static const struct {
        const char *from, *to, *says;
    } bad[] = {{"\"0\": \"l0\"", "\"7\": \"l0\"",
                "id2label has the key '7', but must have the numbers from 0 to 4, each "
                "once"},
               {"\"0\": \"l0\"", "\"x\": \"l0\"", "id2label has the key 'x'"},
               {"\"0\": \"l0\"", "\"0\": 3", "is the integer 3, expected a string"},
               {"\"single_label_classification\"", "\"other\"", "problem_type is 'other'"},
               {"BertForSequenceClassification", "BertForNothing", "architectures is 'BertForNothing'"},
               {"\"5\": 5", "", NULL}};
    const char *dir = tn_test_folder("bad");
    char        text[4096];
    read_config(folder_of(&heads[0]), text);
    for (int i = 0; bad[i].says; i++) {
        put_config(dir, text, bad[i].from, bad[i].to);
        ck_assert_ptr_null(tn_tuned_load(dir));
        ck_assert_msg(strstr(tn_error_message(), bad[i].says) != NULL, "%s", tn_error_message());
        tn_clear_error();
    }
}
