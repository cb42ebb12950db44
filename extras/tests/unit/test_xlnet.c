/* test_xlnet.c — XLNet compared with Hugging Face's (tests/golden/xlnet.py): both streams, the memory of two segments,
 * gradients, heads; files there and back; a text read in segments; training; errors. */
#include "extras.h"
#include "models/bert/bert_private.h"
#include "tests/common/answers.h"

static void open_answers(void)
{
    ck_assert_int_eq(tn_extras_register(), TN_OK);
    tn_answers_open("golden/xlnet/answers.safetensors");
}
AROUND_TESTS(open_answers, close_answers);
static tn_tensor *of(const char *name, int i) { return answer(tn_name("%s.%d", name, i)); }
static tn_tensor *padding(tn_tensor *ids) { return tn_eq(ids, tn_full_like(ids, 5)); }

static tn_two_stream *streams(tn_bert *m) { return (tn_two_stream *)m->streams; }
static const char    *folder(const char *name) { return tn_test_data(tn_name("golden/xlnet/%s", name)); }
static tn_bert       *opened(void)
{
    tn_bert *m = tn_bert_load(folder("model"));
    fine();
    ck_assert(m->config.kind == TN_XLNET && m->head && m->streams && !m->encoder && !m->pooler && !*m->left);
    ck_assert(m->config.memory == 9 && m->config.reuse == 5 && !m->config.causal && !m->config.clamp);
    return m;
}

static double apart(tn_tensor *got, tn_tensor *want)
{
    ck_assert(got && want && tn_shape_equal(tn_shape_of(got), tn_shape_of(want)));
    return tn_item(tn_amax(tn_reshape(tn_abs(tn_sub(got, want)), TN_SHAPE(-1)), .dims = TN_DIMS(0)));
}
/* Logits [B, T, words], without those of padding. */
static double apart_but_padding(tn_bert *m, tn_tensor *y, tn_tensor *want, tn_tensor *ids)
{
    tn_tensor *real = tn_to(tn_logical_not(padding(ids)), TN_F32);
    y = tn_reshape(tn_bert_mlm_logits(m, y, NULL), tn_shape_of(want));
    real = tn_unsqueeze(real, 2);
    return apart(tn_mul(y, real), tn_mul(want, real));
}

enum { LAYERS = 2 };
#define TEXT(i) of("ids", i), .types = of("types", i), .key_padding_mask = padding(of("ids", i))

/* ---- as Hugging Face's ------------------------------------------------------------------------------------------- */

TEST(streams_and_memory)
{
    tn_bert   *m = opened();
    tn_tensor *memory[3][LAYERS] = {{NULL}}, *again[LAYERS], *weights[LAYERS];
    for (int i = 0; i < 2; i++) {
        tn_tensor *const *before = i ? memory[i] : NULL;
        tn_tensor        *y = tn_bert_forward(m, TEXT(i), .memory = before, .memory_out = again, .weights = weights);
        fine();
        ck_assert_double_le(apart_but_padding(m, y, of("content", i), of("ids", i)), 2e-5);
        ck_assert(tn_shape_equal(tn_shape_of(weights[1]), TN_SHAPE(3, 3, 8, 8 + 5 * i)));
        y = tn_bert_forward(m, TEXT(i), .targets = of("targets", i), .order = of("order", i), .memory = before,
                            .memory_out = memory[i + 1]);
        ck_assert_double_le(apart(tn_bert_mlm_logits(m, y, NULL), of("query", i)), 2e-5);
        for (int k = 0; k < LAYERS; k++) {
            tn_tensor *want = answer(tn_name("memory.%d.%d", i, k));
            ck_assert(tn_shape_equal(tn_shape_of(memory[i + 1][k]), tn_shape_of(want)));
            ck_assert_double_le(apart(memory[i + 1][k], want), 2e-5);
        }
    }
    tn_free(m);
}

/* The name of a parameter in Hugging Face's file. */
static const char *there(const char *name)
{
    static const char *const pairs[][2] = {{"bert.embeddings.word_embeddings.", "transformer.word_embedding."},
                                           {"bert.mask_emb", "transformer.mask_emb"},
                                           {"bert.encoder.layers.", "transformer.layer."},
                                           {"cls.predictions.", "lm_loss."}};
    for (int i = 0; i < 4; i++)
        if (!strncmp(name, pairs[i][0], strlen(pairs[i][0])))
            return tn_name("grad.%s%s", pairs[i][1], name + strlen(pairs[i][0]));
    return name;
}

TEST(losses_and_gradients)
{
    tn_bert   *m = opened();
    tn_tensor *memory[LAYERS], *loss = NULL;
    for (int i = 0; i < 2; i++) {
        tn_tensor *y = tn_bert_forward(m, TEXT(i), .targets = of("targets", i), .order = of("order", i),
                                       .memory = i ? memory : NULL, .memory_out = i ? NULL : memory);
        tn_tensor *words = tn_index_select(tn_reshape(of("ids", i), TN_SHAPE(-1)), 0, of("targets", i));
        tn_tensor *part = tn_cross_entropy(tn_bert_mlm_logits(m, y, NULL), words), *whole;
        if (!i) {
            whole =
                tn_bert_loss(m, .ids = TEXT(0), .masked = of("targets", 0), .words = words, .order = of("order", 0));
            ck_assert_double_le(apart(whole, part), 1e-6);
        }
        loss = loss ? tn_add(loss, part) : part;
    }
    fine();
    ck_assert_double_le(apart(loss, answer("loss")), 1e-5);
    tn_backward(loss);
    int compared = 0;
    for (tn_each p = tn_parameters(m); tn_next(&p); compared++) {
        tn_tensor   *want = answer(there(p.name));
        const double most = tn_item(tn_amax(tn_reshape(tn_abs(want), TN_SHAPE(-1)), .dims = TN_DIMS(0)));
        ck_assert_msg(apart(tn_grad(p.tensor), want) <= 1e-5 * fmax(most, 1e-2), "%s: %g of %g", p.name,
                      apart(tn_grad(p.tensor), want), most);
    }
    ck_assert_int_eq(compared, 3 + 17 * LAYERS);
    tn_free(m);
}

/* attn_type "uni", and clamp_len: the same weights give Hugging Face's logits of the second segment. */
TEST_EACH(other_configs, 2)
{
    tn_bert *m = opened();
    streams(m)->causal = _i == 0, streams(m)->clamp = _i == 0 ? 0 : 3;
    tn_tensor *y = tn_bert_forward(m, of("ids", 1), .types = of("types", 1)); /* padding is seen */
    ck_assert_double_le(apart_but_padding(m, y, answer(_i == 0 ? "uni" : "clamped"), of("ids", 1)), 2e-5);
    tn_free(m);
}

static const struct {
    const char *name;
    tn_task     task;
} heads[] = {{"classes", TN_TASK_CLASSIFICATION},
             {"tags", TN_TASK_TOKEN_CLASSIFICATION},
             {"answers", TN_TASK_QUESTION_ANSWERING},
             {"choices", TN_TASK_MULTIPLE_CHOICE}};

/* Columns are given as they are in the golden data; rolled and flipped rows are the choices. */
static tn_tensor *choices_of(tn_tensor *x) { return tn_stack(1, x, tn_flip(x, TN_DIMS(0)), tn_roll(x, 1, 0)); }

static void same_files(const char *ours, const char *theirs)
{
    tn_safetensors *a = tn_safetensors_open(tn_test_in(ours, "model.safetensors"));
    tn_safetensors *b = tn_safetensors_open(tn_test_in(theirs, "model.safetensors"));
    fine();
    ck_assert_int_eq(tn_safetensors_count(a), tn_safetensors_count(b));
    for (int64_t i = 0; i < tn_safetensors_count(b); i++) {
        const char *name = tn_safetensors_at(b, i).name;
        ck_assert_msg(tn_safetensors_find(a, name) >= 0, "%s is missing", name);
        ck_assert(tn_same_bits(tn_safetensors_get(a, name), tn_safetensors_get_at(b, i)));
    }
    tn_safetensors_close(a), tn_safetensors_close(b);
    tn_json *x = tn_json_load(tn_test_in(ours, "config.json")), *y = tn_json_load(tn_test_in(theirs, "config.json"));
    fine();
    for (const tn_json *v = tn_json_first(x); v; v = tn_json_next(v)) { /* members that transformers writes, too */
        const tn_json *w = tn_json_get(y, tn_json_key(v));
        if (tn_json_type_of(v) == TN_JSON_STRING && w)
            ck_assert_msg(!strcmp(tn_json_string(v), tn_json_string(w)), "%s", tn_json_key(v));
        else if (w && (tn_json_type_of(v) == TN_JSON_INTEGER || tn_json_type_of(v) == TN_JSON_REAL))
            ck_assert_msg(tn_json_double(v) == tn_json_double(w), "%s", tn_json_key(v));
    }
    const char *is = tn_json_string(tn_json_first(tn_json_get(x, "architectures")));
    ck_assert_str_eq(is, tn_json_string(tn_json_first(tn_json_get(y, "architectures"))));
    tn_json_free(x), tn_json_free(y);
}

TEST_EACH(task_heads, 4)
{
    const char *name = heads[_i].name, *dir = tn_test_folder(name);
    tn_tuned   *m = tn_tuned_load(folder(name));
    fine();
    ck_assert(m->config.task == heads[_i].task);
    tn_tensor *ids = of("ids", 1), *types = of("types", 1), *pad;
    if (heads[_i].task == TN_TASK_MULTIPLE_CHOICE) ids = choices_of(ids), types = choices_of(types);
    pad = padding(ids);
    tn_tensor *y = tn_tuned_forward(m, ids, .types = types, .key_padding_mask = pad);
    tn_tensor *target = answer(tn_name("%s.target", name)), *loss = tn_tuned_loss(m, y, target);
    tn_tensor *want = answer(tn_name("%s.scores", name));
    fine();
    if (heads[_i].task == TN_TASK_TOKEN_CLASSIFICATION || heads[_i].task == TN_TASK_QUESTION_ANSWERING) {
        tn_tensor *real = tn_unsqueeze(tn_to(tn_logical_not(pad), TN_F32), 2);
        ck_assert_double_le(apart(tn_mul(y, real), tn_mul(want, real)), 2e-5);
    } else ck_assert_double_le(apart(y, want), 2e-5);
    ck_assert_double_le(apart(loss, answer(tn_name("%s.loss", name))), 1e-5);
    tn_backward(loss);
    tn_tensor *grad = tn_grad(tn_find_tensor(m, "encoder.bert.embeddings.word_embeddings.weight"));
    ck_assert_double_le(apart(grad, answer(tn_name("%s.grad", name))), 1e-5);
    ck_assert_int_eq(tn_tuned_save(m, dir), TN_OK);
    same_files(dir, folder(name));
    tn_free(m);
}

TEST(files_there_and_back)
{
    const char *dir = tn_test_folder("model");
    tn_bert    *a = opened(), *b, *c;
    ck_assert_int_eq(tn_bert_save(a, dir), TN_OK);
    same_files(dir, folder("model"));
    ck_assert_ptr_nonnull(b = tn_bert_load(dir));
    ck_assert(tn_same_bits(tn_bert_forward(a, TEXT(0)), tn_bert_forward(b, TEXT(0))));
    b->config.causal = true, b->config.clamp = 7, b->config.memory = b->config.reuse = 0;
    ck_assert_int_eq(tn_bert_save(b, dir), TN_OK);
    ck_assert_ptr_nonnull(c = tn_bert_load(dir));
    ck_assert(c->config.causal && streams(c)->causal && streams(c)->clamp == 7 && !c->config.memory &&
              !c->config.reuse);
    const tn_model d = tn_model_open(dir, .family = TN_MODEL_ENCODER);
    ck_assert_str_eq(d.type, "xlnet");
    tn_free(a), tn_free(b), tn_free(c), tn_free(d.bert);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

#define SMALL .kind = TN_XLNET, .vocab = 31, .dim = 12, .heads = 3, .layers = LAYERS, .padding = 5

/* The loss in segments is that of the segments with their memory. */
TEST(segments_have_a_memory)
{
    tn_bert   *m = opened();
    tn_tensor *ids = of("ids", 0), *at = of("targets", 0), *memory[LAYERS], *y[2];
    tn_tensor *words = tn_index_select(tn_reshape(ids, TN_SHAPE(-1)), 0, at), *pad = padding(ids),
              *types = of("types", 0);
    m->config.reuse = 0;
    tn_tensor *loss = tn_bert_loss(m, .ids = ids, .types = types, .key_padding_mask = pad, .masked = at, .words = words,
                                   .order = of("order", 0), .segment = 5);
    fine();
    int64_t a[2][8], n[2] = {0, 0}, w[2][8];
    for (int64_t i = 0; i < tn_numel(at); i++) {
        const int64_t t = tn_get_i64(at, i), late = t % 8 >= 5, width = late ? 3 : 5;
        w[late][n[late]] = tn_get_i64(words, i), a[late][n[late]++] = t / 8 * width + t % 8 - 5 * late;
    }
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t from = 5 * i, width = i ? 3 : 5;
#define CUT(x) tn_narrow(x, 1, from, width)
        y[i] = tn_bert_forward(m, CUT(ids), .types = CUT(types), .key_padding_mask = CUT(pad),
                               .targets = tn_from_data(TN_I64, TN_SHAPE(n[i]), a[i]), .order = CUT(of("order", 0)),
                               .memory = i ? memory : NULL, .memory_out = i ? NULL : memory);
        sum += tn_item(tn_cross_entropy(tn_bert_mlm_logits(m, y[i], NULL), tn_from_data(TN_I64, TN_SHAPE(n[i]), w[i]),
                                        .reduction = TN_SUM));
    }
    fine();
    ck_assert(n[0] && n[1]);
    ck_assert_double_eq_tol(tn_item(loss), sum / (double)(n[0] + n[1]), 1e-5);
    ck_assert_ptr_nonnull(tn_bert_loss(m, .ids = ids, .masked = at, .words = words, .segment = 8));
    tn_free(m);
}

TEST_EACH(training_reduces_the_loss, 2)
{
    tn_seed(4);
    tn_bert      *m = tn_bert_new(SMALL);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    tn_tensor    *ids = of("ids", 1), *at = of("targets", 1);
    double        first = 0, last = 0;
    fine();
    for (int step = 0; step < 150; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *words = tn_index_select(tn_reshape(ids, TN_SHAPE(-1)), 0, at);
        tn_tensor     *loss = tn_bert_loss(m, .ids = ids, .types = of("types", 1), .key_padding_mask = padding(ids),
                                           .masked = at, .words = words, .order = of("order", 1), .segment = 3 * _i);
        tn_backward(loss);
        tn_step(o);
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(first > 2.5 && last < 0.3 * first, "from %g to %g", first, last);
    tn_optimizer_free(o);
    tn_free(m);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

TEST(wrong_use)
{
    tn_bert   *m = opened(), *other = tn_bert_new(.vocab = 31, .dim = 12, .heads = 3, .layers = LAYERS);
    tn_tensor *ids = of("ids", 0), *at = of("targets", 0), *memory[LAYERS];
    ck_refused(tn_bert_new(SMALL, .attention_dropout = 0.2), TN_EINVAL,
               "tn_bert_new: .attention_dropout is 0.2 and .dropout 0.1, but XLNet has one probability; set both");
    ck_refused(tn_bert_new(.kind = TN_XLNET, .vocab = 31, .dim = 9, .heads = 3), TN_EINVAL,
               "tn_bert_new: .dim is 9, but must be even for XLNet");
    ck_refused(tn_bert_new(SMALL, .memory = -1), TN_EINVAL,
               "tn_bert_new: .memory is -1, but must be from 0 to 1000000000");
    ck_refused(tn_bert_new(.vocab = 31, .memory = 4), TN_EINVAL,
               "tn_bert_new: .memory, .reuse, .clamp and .causal need .kind = TN_XLNET, not BERT");
    ck_refused(tn_bert_forward(other, ids, .memory_out = memory), TN_EINVAL,
               "bert: .order, .memory and .memory_out need an XLNet, not a BERT");
    ck_refused(tn_bert_loss(m, .ids = ids, .masked = at, .words = at, .next = at), TN_EINVAL,
               "bert: .order and .segment, at least 0, are for XLNet, .next and .replaced for others; this is XLNet");
    ck_refused(tn_bert_loss(other, .ids = ids, .masked = at, .words = at, .segment = 4), TN_EINVAL,
               "bert: .order and .segment, at least 0, are for XLNet, .next and .replaced for others; this is BERT");
    ck_refused(tn_bert_forward(m, ids, .order = of("order", 0)), TN_EINVAL, "bert: .order needs .targets");
    ck_refused(tn_bert_forward(m, ids, .memory = memory, .memory_out = memory), TN_EINVAL,
               "bert.encoder: two_stream: .memory_out must be another array than .memory");
    ck_refused(tn_bert_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(2, 0))), TN_ESHAPE,
               "bert.encoder: two_stream: x has no tokens, got [2, 0, 12]");
    m->config.reuse = 3;
    ck_refused(tn_bert_loss(m, .ids = ids, .masked = at, .words = at, .segment = 4), TN_EINVAL,
               "bert: .segment is 4, but the model's .reuse keeps only the first 3 tokens of each; set .reuse to 0");
    m->config.reuse = 0;
    tn_tensor *three = tn_from_data(TN_I64, TN_SHAPE(3), ((int64_t[]){0, -3, 2}));
    ck_refused(tn_bert_loss(m, .ids = ids, .masked = three, .words = three, .segment = 4), TN_EINDEX,
               "bert: .masked[1] is position -3, outside 0 … 23");
    ck_refused(tn_bert_loss(m, .ids = ids, .masked = tn_narrow(three, 0, 0, 1), .words = three, .segment = 4),
               TN_ESHAPE, "bert: .masked has 1 positions, but .words 3 token ids");
    tn_free(m), tn_free(other);
}

static const struct {
    const char *key, *value;
    tn_status   status;
    const char *says;
} bad_configs[] = {
    {"attn_type", "\"both\"", TN_EUNSUPPORTED, "attn_type is 'both'; only 'bi' and 'uni' is supported"},
    {"bi_data", "true", TN_EUNSUPPORTED, "bi_data is true, which is not supported"},
    {"same_length", "true", TN_EUNSUPPORTED, "same_length is true, which is not supported"},
    {"untie_r", "false", TN_EUNSUPPORTED, "untie_r is false, which is not supported"},
    {"clamp_len", "-2", TN_EFORMAT, "clamp_len is -2, but must be from -1 to 1000000000"},
    {"mem_len", "-1", TN_EFORMAT, "mem_len is -1, but must be from 0 to 1000000000"},
    {"d_head", "5", TN_EFORMAT, "d_head is 5, but must be d_model / n_head, 12 / 3"},
    {"n_head", "5", TN_EFORMAT, "n_head 5 does not divide d_model 12"},
    {"summary_type", "\"mean\"", TN_EUNSUPPORTED, "summary_type is 'mean'; only 'last' is supported"},
};

TEST_ROWS(wrong_configs, bad_configs)
{
    const char     *dir = tn_test_folder("wrong"), *key = bad_configs[_i].key;
    tn_json        *was = tn_json_load(tn_test_in(folder("model"), "config.json")), *v;
    tn_json_writer *w = tn_json_writer_new(0);
    v = tn_json_parse(bad_configs[_i].value, strlen(bad_configs[_i].value));
    fine();
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x))
        if (strcmp(tn_json_key(x), key) != 0) tn_json_put(w, tn_json_key(x), x);
    tn_json_put(w, key, v);
    tn_json_close(w);
    ck_assert_int_eq(tn_json_save(w, tn_test_in(dir, "config.json")), TN_OK);
    ck_refused(tn_bert_load(dir), bad_configs[_i].status,
               tn_name("'%s': %s", tn_test_in(dir, "config.json"), bad_configs[_i].says));
    tn_json_free(was), tn_json_free(v), tn_json_writer_free(w);
}

/* The embeddings of another model are added, at once and in segments. */
TEST(shared_embeddings)
{
    tn_seed(3);
    tn_bert       *m = tn_bert_new(.kind = TN_XLNET, .vocab = 29, .dim = 8, .heads = 2, .layers = 2, .dropout = 0,
                                   .attention_dropout = 0);
    tn_bert       *g = tn_bert_new(.kind = TN_DEBERTA, .vocab = 29, .dim = 8, .heads = 2, .layers = 1, .types = 0);
    tn_bert       *sum = tn_copy(m);
    tn_bert       *other = tn_bert_new(.vocab = 30, .dim = 8, .heads = 2);
    const int64_t  places[] = {1, 12, 3};
    tn_tensor     *ids = tn_reshape(tn_arange(26), TN_SHAPE(2, 13)), *at = tn_from_data(TN_I64, TN_SHAPE(3), places);
    const tn_scope s = tn_no_grad_begin();
    tn_add_(sum->words->weight, g->words->weight);
    tn_scope_end(s);
    ck_assert_double_le(apart(tn_bert_forward(m, ids, .shared = g), tn_bert_forward(sum, ids)), 1e-5);
    fine();
    for (int64_t segment = 0; segment <= 4; segment += 4)
        ck_refused(tn_bert_loss(m, .ids = ids, .masked = at, .words = at, .segment = segment, .shared = other),
                   TN_EINVAL, "bert: .shared has 30 tokens of width 8, but the model has 29 of 8");
    tn_free(m), tn_free(g), tn_free(sum), tn_free(other);
}

/* Without the extras, the kind and its files are rejected. */
TEST(unregistered)
{
    const tn__bert_encoder *was = tn__bert_other();
    tn__bert_register(NULL);
    ck_refused(tn_bert_new(.kind = TN_XLNET, .vocab = 29), TN_EUNSUPPORTED,
               "tn_bert_new: 'xlnet' is one of the extras; call tn_extras_register() before");
    ck_assert(!tn_bert_load(folder("model")) && strstr(tn_error_message(), "'xlnet' is one of the extras; call "));
    tn_clear_error();
    tn__bert_register(was);
}
