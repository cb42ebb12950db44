/* test_deberta.c — DeBERTa v2 and v3 compared with Hugging Face's (tests/golden/deberta.py): outputs, gradients and
 * files, also of the enhanced mask decoder and the head for replaced tokens; gradient-disentangled embedding sharing;
 * configs that are rejected. */
#include "models/models.h"
#include "tests/common/answers.h"

static void open_answers(void) { tn_answers_open("golden/deberta/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);

enum { TASKS = 7, CASES = 11 };
static const char *const cases[CASES] = {"v3",       "decoder", "replaced", "own",     "p2c",    "c2p",
                                         "absolute", "classes", "tags",     "answers", "choices"};
static const char       *folder(int i, const char *more)
{
    return tn_test_data(tn_name("golden/deberta/%s%s", cases[i], more));
}

static tn_module *opened(int i, const char *more)
{
    tn_module *m = i < TASKS ? &tn_bert_load(folder(i, more))->base : &tn_tuned_load(folder(i, more))->base;
    fine();
    ck_assert_ptr_nonnull(m);
    return m;
}

static tn_tensor *padding_of(tn_tensor *ids) { return tn_padding_mask(ids, 0); }

static tn_tensor *scores(int i, tn_module *net)
{
    tn_tensor *ids = answer("ids");
    if (i >= TASKS) {
        if (!strcmp(cases[i], "choices")) ids = answer("choices");
        return tn_tuned_forward((tn_tuned *)(void *)net, ids, .key_padding_mask = padding_of(ids));
    }
    tn_bert   *m = (tn_bert *)(void *)net;
    tn_tensor *y = tn_bert_forward(m, ids, .types = m->types ? answer("types") : NULL,
                                   .key_padding_mask = padding_of(ids), .for_words = true);
    if (!strcmp(cases[i], "replaced")) return tn_unsqueeze(tn_bert_replaced_logits(m, y), -1);
    return tn_reshape(tn_bert_mlm_logits(m, y, NULL), TN_SHAPE(2, 11, -1));
}

/* The largest difference relative to the largest element, at least `least`. */
static double apart_at_least(tn_tensor *got, tn_tensor *want, double least)
{
    ck_assert(got && want && tn_shape_equal(tn_shape_of(got), tn_shape_of(want)));
    return tn_item(tn_amax(tn_abs(tn_sub(tn_to(got, TN_F64), want)))) / fmax(tn_item(tn_amax(tn_abs(want))), least);
}
static double apart(tn_tensor *got, tn_tensor *want) { return apart_at_least(got, want, 1e-2); }

/* Outputs of tokens that are not padding, and the gradients of all parameters, in f32 and f64. Some gradients are 0 in
 * theory, because softmax ignores a sum that is the same for all keys; in f32 these are rounding errors. */
TEST_EACH(outputs_and_gradients_as_hugging_face, 2 * CASES)
{
    const int      i = _i / 2;
    const tn_dtype dtype = _i % 2 ? TN_F64 : TN_F32;
    tn_module     *m = opened(i, ""), *grads = opened(i, ".grad");
    ck_assert(tn_module_to(m, dtype) == TN_OK);
    tn_tensor *seed = tn_to(answer(tn_name("%s.seed", cases[i])), dtype), *y = scores(i, m);
    fine();
    tn_tensor   *shown = tn_to(tn_ne(seed, tn_zeros_of(dtype, TN_SCALAR)), dtype);
    const double d = apart(tn_mul(y, shown), tn_mul(answer(tn_name("%s.scores", cases[i])), shown));
    ck_assert_msg(d <= (_i % 2 ? 1e-6 : 2e-5), "%s: %g", cases[i], d);
    tn_train(m, true);
    ck_assert(tn_backward(tn_sum(tn_mul(scores(i, m), seed))) == TN_OK);
    int n = 0;
    for (tn_each p = tn_parameters(m); tn_next(&p); n++) {
        tn_tensor *want = tn_find_tensor(grads, p.name), *got = tn_grad(p.tensor);
        fine();
        if (!got) ck_assert_msg(tn_item(tn_amax(tn_abs(want))) == 0, "%s: %s has no gradient", cases[i], p.name);
        const double g = got ? apart_at_least(got, want, _i % 2 ? 1e-2 : 1) : 0;
        ck_assert_msg(g <= 1e-5, "%s: %s: %g", cases[i], p.name, g);
    }
    ck_assert_int_ge(n, 28);
    tn_free(m), tn_free(grads);
}

TEST(hidden_states)
{
    tn_bert   *m = (tn_bert *)(void *)opened(0, "");
    tn_tensor *ids = answer("ids"), *padding = padding_of(ids),
              *y = tn_bert_forward(m, ids, .key_padding_mask = padding);
    tn_tensor *real = tn_unsqueeze(tn_to(tn_logical_not(padding), TN_F32), 2);
    ck_assert_double_le(apart(tn_mul(y, real), tn_mul(answer("v3.y"), real)), 2e-5);
    /* a row alone, without padding */
    tn_tensor *alone = tn_bert_forward(m, tn_narrow(tn_narrow(ids, 0, 1, 1), 1, 0, 8));
    ck_assert_double_le(apart(alone, tn_narrow(tn_narrow(y, 0, 1, 1), 1, 0, 8)), 1e-6);
    tn_free(m);
}

/* A loaded model is written with the same names and bits, and the same members of config.json. */
TEST_EACH(files_there_and_back, CASES)
{
    char       dir[1024], theirs[1024];
    tn_module *m = opened(_i, "");
    snprintf(dir, sizeof dir, "%s", tn_test_folder(cases[_i]));
    ck_assert_int_eq(_i < TASKS ? tn_bert_save((tn_bert *)(void *)m, dir) : tn_tuned_save((tn_tuned *)(void *)m, dir),
                     TN_OK);
    snprintf(theirs, sizeof theirs, "%s", folder(_i, ""));
    tn_safetensors *ours = tn_safetensors_open(tn_name("%s/model.safetensors", dir));
    tn_safetensors *reference = tn_safetensors_open(tn_name("%s/model.safetensors", theirs));
    fine();
    const bool wide_legacy = !strcmp(cases[_i], "p2c"); /* is written as legacy: false, with other names of the head */
    ck_assert_int_eq(tn_safetensors_count(ours), tn_safetensors_count(reference));
    for (int64_t i = 0; i < tn_safetensors_count(reference); i++) {
        const char *name = tn_safetensors_at(reference, i).name;
        if (wide_legacy && strstr(name, "cls.")) continue;
        ck_assert_msg(tn_safetensors_find(ours, name) >= 0, "%s", name);
        ck_assert(tn_same_bits(tn_safetensors_get(ours, name), tn_safetensors_get_at(reference, i)));
    }
    tn_safetensors_close(ours), tn_safetensors_close(reference);
    static const char *const members[] = {"max_relative_positions", "position_buckets", "relative_attention",
                                          "position_biased_input",  "share_att_key",    "type_vocab_size",
                                          "embedding_size",         "norm_rel_ebd",     "legacy"};
    tn_json *a = tn_json_load(tn_name("%s/config.json", dir)), *b = tn_json_load(tn_name("%s/config.json", theirs));
    for (size_t i = 0; i + wide_legacy < sizeof members / sizeof *members; i++) {
        const tn_json *x = tn_json_get(a, members[i]), *y = tn_json_get(b, members[i]);
        const bool     text = y && tn_json_type_of(y) == TN_JSON_STRING;
        if (!y) continue; /* not a field of the config class */
        ck_assert_msg(x && (text                                 ? !strcmp(tn_json_string(x), tn_json_string(y))
                            : tn_json_type_of(y) == TN_JSON_BOOL ? tn_json_bool(x) == tn_json_bool(y)
                                                                 : tn_json_double(x) == tn_json_double(y)),
                      "%s: %s", cases[_i], members[i]);
    }
    fine();
    tn_json_free(a), tn_json_free(b);
    tn_module *again = _i < TASKS ? &tn_bert_load(dir)->base : &tn_tuned_load(dir)->base;
    fine();
    ck_assert(tn_same_bits(scores(_i, m), scores(_i, again)));
    tn_free(m), tn_free(again);
}

/* ---- gradient-disentangled embedding sharing --------------------------------------------------------------------- */

static tn_bert *deberta(bool discriminator)
{
    tn_bert *m = tn_bert_new(.kind = TN_DEBERTA, .vocab = 29, .dim = 8, .heads = 2, .layers = 2, .positions = 16,
                             .types = 0, .dropout = 0, .attention_dropout = 0, .eps = 1e-7, .replaced = discriminator,
                             .no_words = discriminator, .mask_decoder = !discriminator);
    fine();
    return m;
}

/* The discriminator with the generator's embeddings and differences equals one with their sum; the gradient reaches the
 * differences, and not the generator. */
TEST(shared_embeddings)
{
    tn_seed(2);
    tn_bert   *g = deberta(false), *d = deberta(true), *sum = tn_copy(d);
    tn_tensor *ids = answer("ids"), *padding = padding_of(ids), *wrong = tn_eq(ids, tn_full_of(TN_I64, TN_SCALAR, 3));
    const tn_scope s = tn_no_grad_begin();
    tn_add_(sum->words->weight, g->words->weight);
    tn_scope_end(s);
    tn_tensor *loss = tn_bert_loss(d, .ids = ids, .key_padding_mask = padding, .replaced = wrong, .shared = g);
    tn_tensor *want = tn_bert_loss(sum, .ids = ids, .key_padding_mask = padding, .replaced = wrong);
    fine();
    ck_assert_double_le(fabs(tn_item(loss) - tn_item(want)), 1e-6);
    ck_assert(tn_backward(loss) == TN_OK && tn_backward(want) == TN_OK);
    for (tn_each p = tn_parameters(g); tn_next(&p);)
        ck_assert_msg(!tn_grad(p.tensor), "the generator's %s has a gradient", p.name);
    ck_assert_double_le(apart(tn_grad(d->words->weight), tn_grad(sum->words->weight)), 1e-5);
    ck_assert(tn_item(tn_amax(tn_abs(tn_grad(d->words->weight)))) > 0);
    tn_bert *other = tn_bert_new(.vocab = 30, .dim = 8, .heads = 2, .layers = 1);
    ck_refused(tn_bert_forward(d, ids, .shared = other), TN_EINVAL,
               "bert: .shared has 30 tokens of width 8, but the model has 29 of 8");
    tn_free(g), tn_free(d), tn_free(sum), tn_free(other);
}

/* The hidden states of chosen tokens are those of all, with and without the mask decoder. */
TEST(states_of_chosen_tokens)
{
    tn_seed(3);
    tn_bert      *m = deberta(false);
    const int64_t places[] = {1, 12, 3};
    tn_tensor    *ids = answer("ids"), *padding = padding_of(ids), *at = tn_from_data(TN_I64, TN_SHAPE(3), places);
    tn_tensor    *all[2], *some[2];
    for (int i = 0; i < 2; i++) {
        all[i] = tn_bert_forward(m, ids, .key_padding_mask = padding, .for_words = i);
        some[i] = tn_bert_forward(m, ids, .key_padding_mask = padding, .for_words = i, .targets = at);
        fine();
        ck_assert(tn_same_bits(some[i], tn_index_select(tn_reshape(all[i], TN_SHAPE(-1, 8)), 0, at)));
    }
    ck_assert(apart(some[0], some[1]) > 1e-3);
    tn_free(m);
}

/* Both losses decrease. */
TEST_EACH(learns, 2)
{
    tn_seed(5);
    tn_bert      *m = deberta(_i);
    tn_tensor    *ids = answer("ids"), *padding = padding_of(ids), *at = tn_arange(6);
    tn_tensor    *words = tn_index_select(tn_flatten(ids, 0, -1), 0, at);
    tn_tensor    *wrong = tn_eq(ids, tn_full_of(TN_I64, TN_SCALAR, 3));
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    double        first = 0, last = 0;
    for (int step = 0; step < 60; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_bert_loss(m, .ids = ids, .key_padding_mask = padding, .replaced = _i ? wrong : NULL,
                                           .masked = _i ? NULL : at, .words = _i ? NULL : words);
        tn_backward(loss);
        tn_step(o);
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(last < 0.3 * first, "from %g to %g", first, last);
    tn_optimizer_free(o);
    tn_free(m);
}

/* ---- configs ----------------------------------------------------------------------------------------------------- */

TEST(configs)
{
    tn_bert *m = tn_bert_new(.kind = TN_DEBERTA, .vocab = 9, .dim = 4, .heads = 2, .layers = 1);
    fine();
    const tn_disentangled *t = &m->config.disentangled;
    ck_assert(t->distance == 512 && t->buckets == 256 && t->c2p && t->p2c && !t->own_projs && !t->no_norm);
    ck_assert(!m->positions && !m->pooler && !m->next && m->encoder->positions &&
              tn_size(tn_find_tensor(m, "bert.encoder.distances.weight"), 0) == 512);
    tn_free(m);
    m = tn_bert_new(.kind = TN_DEBERTA, .vocab = 9, .dim = 4, .heads = 2, .layers = 1,
                    .disentangled = {.distance = -1});
    ck_assert(m && !m->encoder->positions);
    tn_free(m);
#define SMALL .vocab = 9, .dim = 4, .heads = 2, .layers = 1
    ck_refused(tn_bert_new(SMALL, .mask_decoder = true), TN_EINVAL,
               "tn_bert_new: .disentangled, .input_positions and .mask_decoder need .kind = TN_DEBERTA, not BERT");
    ck_refused(tn_bert_new(SMALL, .kind = TN_DEBERTA, .mask_decoder = true, .input_positions = true), TN_EINVAL,
               "tn_bert_new: .mask_decoder excludes .input_positions and .embedding");
    ck_refused(tn_bert_new(SMALL, .kind = TN_DEBERTA, .norm_first = true), TN_EINVAL,
               "tn_bert_new: .norm_first needs .kind = TN_BERT, not DeBERTa");
    ck_refused(tn_bert_new(SMALL, .kind = TN_DEBERTA, .disentangled = {.c2p = true, .distance = 1 << 25}), TN_EINVAL,
               "tn_bert_new: .disentangled.distance is 33554432, but must be from -1 to 16777216");
}

static const struct {
    const char *member, *value;
    tn_status   code;
    const char *says;
} wrong_members[] = {
    {"conv_kernel_size", "3", TN_EUNSUPPORTED, "conv_kernel_size is 3; only 0 is supported"},
    {"pos_att_type", "\"p2c|c2c\"", TN_EUNSUPPORTED, "pos_att_type[1] is 'c2c'; only 'c2p' and 'p2c' are supported"},
    {"pos_att_type", "[\"p2p\"]", TN_EUNSUPPORTED, "pos_att_type[0] is 'p2p'; only 'c2p' and 'p2c' are supported"},
    {"pos_att_type", "[]", TN_EUNSUPPORTED,
     "relative_attention is true and pos_att_type is empty; only both or neither are supported"},
    {"relative_attention", "false", TN_EUNSUPPORTED,
     "relative_attention is false and pos_att_type is set; only both or neither are supported"},
    {"norm_rel_ebd", "\"batch_norm\"", TN_EUNSUPPORTED,
     "norm_rel_ebd is 'batch_norm'; only 'none' and 'layer_norm' is supported"},
    {"pooler_hidden_size", "7", TN_EUNSUPPORTED, "pooler_hidden_size is 7; only 15 is supported with hidden_size 15"},
    {"attention_head_size", "7", TN_EUNSUPPORTED, "attention_head_size is 7; only 5 is supported with hidden_size 15"},
    {"pooler_hidden_act", "\"tanh\"", TN_EUNSUPPORTED, "pooler_hidden_act is 'tanh'; only 'gelu' is supported"},
    {"pooler_dropout", "0.1", TN_EUNSUPPORTED, "pooler_dropout is 0.1; only 0 is supported"},
    {"position_buckets", "1", TN_EFORMAT,
     "position_buckets is 1, but must be -1 for none, or at least 2 and at most twice the largest distance, less 3: "
     "max_relative_positions or max_position_embeddings is 14"},
    {"position_buckets", "26", TN_EFORMAT,
     "position_buckets is 26, but must be -1 for none, or at least 2 and at most twice the largest distance, less 3: "
     "max_relative_positions or max_position_embeddings is 14"},
    {"position_buckets", "-2", TN_EFORMAT, "position_buckets is -2, but must be from -1 to 16777216"},
};
TEST_ROWS(rejected_members, wrong_members)
{
    char     dir[1024], text[4096];
    tn_json *old = tn_json_load(tn_name("%s/config.json", folder(0, "")));
    FILE    *f = NULL;
    snprintf(dir, sizeof dir, "%s", tn_test_folder("rejected"));
    ck_assert((f = fopen(tn_name("%s/config.json", dir), "w")) != NULL);
    fprintf(f, "{\"%s\": %s", wrong_members[_i].member, wrong_members[_i].value);
    for (const tn_json *x = tn_json_first(old); x; x = tn_json_next(x)) {
        const tn_json_type type = tn_json_type_of(x);
        if (!strcmp(tn_json_key(x), wrong_members[_i].member)) continue;
        if (type == TN_JSON_STRING) fprintf(f, ", \"%s\": \"%s\"", tn_json_key(x), tn_json_string(x));
        if (type == TN_JSON_BOOL) fprintf(f, ", \"%s\": %s", tn_json_key(x), tn_json_bool(x) ? "true" : "false");
        if (type == TN_JSON_INTEGER || type == TN_JSON_REAL)
            fprintf(f, ", \"%s\": %g", tn_json_key(x), tn_json_double(x));
        if (!strcmp(tn_json_key(x), "pos_att_type")) fprintf(f, ", \"pos_att_type\": [\"p2c\", \"c2p\"]");
    }
    fprintf(f, "}");
    fclose(f);
    tn_json_free(old);
    snprintf(text, sizeof text, "'%s/config.json': %s", dir, wrong_members[_i].says);
    const tn_bert_config c = tn_bert_config_load(dir);
    ck_assert_int_eq(c.vocab, 0);
    ck_error(wrong_members[_i].code, text);
}
