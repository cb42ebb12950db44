/* test_look_models.c — importance of heads compared with PyTorch's autograd; pruned models and their directories;
 * rollout, flow, integrated gradients compared with NumPy, SciPy, PyTorch (tests/golden/look.py, pruned_heads.py). */
#include "extras.h"
#include "tests/common/check_main.h"
#include "tests/common/golden_case.h"

static tn_safetensors *golden;
static void            open_golden(void) { golden = tn_safetensors_open(tn_test_data("golden/look.safetensors")); }
static void            close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);
static tn_tensor *answer(const char *name) { return tn_safetensors_get(golden, name); }
static double     apart(tn_tensor *a, tn_tensor *b)
{
    fine();
    ck_assert(a && b && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)));
    return tn_item(
        tn_amax(tn_reshape(tn_abs(tn_sub(tn_to(a, TN_F64), tn_to(b, TN_F64))), TN_SHAPE(-1)), .dims = TN_DIMS(0)));
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* A module that calls its part with .weights. */
typedef struct {
    tn_module base;
    tn_bert  *bert;
    tn_vit   *vit;
} outer;
static tn_tensor *outer_forward(outer *m, tn_tensor *x)
{
    tn_tensor     *weights[2];
    const tn_frame f = tn_enter(m);
    return tn_leave(f, m->bert ? tn_bert_forward(m->bert, x, .weights = weights)
                               : tn_vit_forward(m->vit, x, .weights = weights));
}
TN_MODULE(outer);

/* The result of a part is recorded, with .weights too; so is what a change returns. */
static tn_tensor *doubled(const char *path, tn_tensor *t, void *user)
{
    (void)path, (void)user;
    return tn_mul_scalar(t, 2);
}
TEST_EACH(results_with_weights, 2)
{
    outer *m = tn_module_new(outer);
    if (_i) m->vit = tn_child(m, "part", tn_vit_new(.image = 4, .patch = 2, .dim = 8, .layers = 2, .heads = 2));
    else m->bert = tn_child(m, "part", tn_bert_new(.vocab = 9, .dim = 8, .layers = 2, .heads = 2, .positions = 8));
    tn_eval(tn_built(m));
    fine();
    tn_tensor *x = _i ? tn_normal(TN_SHAPE(1, 3, 4, 4), 0, 1) : tn_zeros_of(TN_I64, TN_SHAPE(1, 3));
    tn_tensor *want = outer_forward(m, x);
    tn_look   *look = tn_look_new();
    tn_look_request(look, "part", .change = doubled);
    const tn_scope s = tn_look_begin(look);
    tn_tensor     *y = tn_scope_return(s, outer_forward(m, x));
    ck_assert(apart(y, tn_mul_scalar(want, 2)) == 0 && apart(tn_look_at(look, "part"), y) == 0);
    tn_look_free(look);
    tn_free(m);
}

/* ---- importance -------------------------------------------------------------------------------------------------- */

static tn_tensor *bert_loss(void *m, void *user)
{
    tn_tensor *ids = answer("bert.ids");
    (void)user;
    return tn_bert_loss((tn_bert *)m, .ids = ids, .key_padding_mask = tn_eq(ids, tn_zeros_like(ids)),
                        .masked = answer("bert.where"), .words = answer("bert.what"));
}
static tn_tensor *writer_loss(void *m, void *user) { return tn_lm_loss(m, answer(user), NULL); }

static void *model_of(int i)
{
    static const char *const paths[] = {"golden/bert/pretraining", "golden/gpt/torch", "golden/llama/llama3"};
    void *m = i ? (void *)tn_lm_load(tn_test_data(paths[i])) : (void *)tn_bert_load(tn_test_data(paths[i]));
    fine();
    return m;
}
static tn_status add(tn_heads *h, int i)
{
    return tn_heads_add(h, i ? writer_loss : bert_loss, i == 1 ? "gpt.ids" : "llama.ids");
}

TEST_EACH(importance_as_autograd_has_it, 3)
{
    static const char *const names[] = {"bert.importance", "gpt.importance", "llama.importance"};
    void                    *m = model_of(_i);
    tn_heads                *h = tn_heads_new(m);
    tn_tensor               *want = answer(names[_i]);
    fine();
    ck_assert_int_eq(tn_heads_count(h), tn_numel(want));
    for (int twice = 0; twice < 2; twice++) { /* the mean of equal values is the same value */
        ck_assert(add(h, _i) == TN_OK);
        for (int64_t k = 0; k < tn_heads_count(h); k++) {
            const tn_head x = tn_heads_at(h, k);
            ck_assert_double_gt(x.importance, 0);
            ck_assert_double_eq_tol(x.importance, tn_get(want, k), 1e-5 * (1 + tn_get(want, k)));
            ck_assert_int_eq(x.shared, _i == 2 ? 3 : 1);
        }
    }
    tn_heads_mask(h, 1, true); /* a head whose output is 0 has importance 0 */
    const double before = tn_heads_at(h, 1).importance;
    tn_heads    *anew = tn_heads_new(m);
    tn_heads_mask(anew, 1, true);
    ck_assert(add(anew, _i) == TN_OK);
    ck_assert(before > 0 && tn_heads_at(anew, 1).importance == 0 && tn_heads_at(anew, 0).importance > 0);
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_next(&p);) ck_assert_ptr_null(tn_grad(p.tensor));
    tn_heads_free(h), tn_heads_free(anew);
    tn_module_free(m);
}

/* A translation model: each kind of attention, compared with differences of the loss for a gate slightly off 1. */
typedef struct {
    tn_tensor *source, *target;
} sentences;
static tn_tensor *translator_loss(void *m, void *user)
{
    const sentences *x = user;
    return tn_seq2seq_loss((tn_seq2seq *)m, x->source, x->target);
}
typedef struct {
    int64_t head;
    double  gate;
} turned;
static tn_tensor *turn(const char *path, tn_tensor *t, void *user)
{
    const turned *k = user;
    tn_tensor    *gate = tn_ones_of(TN_F64, TN_SHAPE(tn_size(t, 2), 1));
    (void)path;
    tn_set(gate, k->head, k->gate);
    return tn_mul(t, gate);
}
static tn_seq2seq *translator(void)
{
    tn_seq2seq *m = tn_seq2seq_new(.source_words = 20, .target_words = 20, .dim = 12, .layers = 2, .heads = 3, .ff = 16,
                                   .dropout = 0, .positions = 16);
    tn_module_to(m, TN_F64);
    tn_eval(m);
    return m;
}
TEST(importance_in_a_translator)
{
    tn_seq2seq *m = translator();
    sentences   x = {tn_randint(TN_SHAPE(1, 6), 4, 20), tn_randint(TN_SHAPE(1, 5), 4, 20)};
    tn_heads   *h = tn_heads_new(m);
    ck_assert_int_eq(tn_heads_count(h), 3 * (2 + 2 + 2));
    ck_assert(tn_heads_add(h, translator_loss, &x) == TN_OK);
    int cross = 0;
    for (int64_t i = 0; i < tn_heads_count(h); i++) {
        const tn_head k = tn_heads_at(h, i);
        double        value[2];
        char          path[TN_PATH_BYTES + 8];
        cross += strstr(k.path, "multihead_attn") != NULL;
        snprintf(path, sizeof path, "%s.heads", k.path);
        for (int side = 0; side < 2; side++) {
            turned   t = {k.head, side ? 1 + 1e-4 : 1 - 1e-4};
            tn_look *l = tn_look_new();
            tn_look_request(l, path, .change = turn, .user = &t);
            const tn_scope s = tn_look_begin(l);
            value[side] = tn_item(translator_loss(m, &x));
            tn_scope_end(s);
            tn_look_free(l);
        }
        fine();
        ck_assert_double_eq_tol(k.importance, fabs(value[1] - value[0]) / 2e-4, 1e-6);
    }
    ck_assert_int_eq(cross, 6);
    tn_heads_free(h);
    tn_free(m);
}

static tn_tensor *sum_of_blocks(void *m, void *user)
{
    tn_tensor *y = tn_blocks_forward((tn_blocks *)m, user);
    return tn_sum(tn_square(y));
}
TEST(layers_that_share_one_block)
{
    tn_blocks *m = tn_blocks_new(.layers = 3, .groups = 1, .dim = 8, .heads = 2, .ff = 16, .dropout = 0);
    tn_heads  *h = tn_heads_new(m);
    ck_assert_int_ne(tn_heads_add(h, sum_of_blocks, tn_normal(TN_SHAPE(2, 3, 8), 0, 1)), TN_OK);
    ck_error(TN_EUNSUPPORTED, "tn_heads_add: 'layers.0.self_attn' runs 3 times for one loss, as a shared layer does; "
                              "the importance of its heads is not defined");
    tn_heads_free(h);
    tn_free(m);
}

TEST(orders)
{
    void     *m = model_of(1);
    tn_heads *h = tn_heads_new(m);
    int64_t   least[4], most[4], chance[4], again[4], seen = 0;
    add(h, 1);
    tn_heads_order(h, TN_LEAST_FIRST, 0, least), tn_heads_order(h, TN_MOST_FIRST, 0, most);
    tn_heads_order(h, TN_RANDOM_ORDER, 7, chance), tn_heads_order(h, TN_RANDOM_ORDER, 7, again);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(least[i], most[3 - i]);
        ck_assert_int_eq(chance[i], again[i]);
        seen |= 1 << chance[i];
        if (i) ck_assert_double_ge(tn_heads_at(h, least[i]).importance, tn_heads_at(h, least[i - 1]).importance);
    }
    ck_assert_int_eq(seen, 15);
    tn_heads_free(h);
    tn_module_free(m);
}

/* ---- pruned heads, and directories ------------------------------------------------------------------------------- */

static tn_tensor *scores(void *m, int i)
{
    tn_tensor *ids = answer(i ? "gpt.ids" : "bert.ids");
    if (i == 3) return tn_seq2seq_forward((tn_seq2seq *)m, ids, ids);
    return i ? tn_lm_forward(m, ids) : tn_bert_mlm_logits((tn_bert *)m, tn_bert_forward((tn_bert *)m, ids), NULL);
}
static void *loaded(int i, const char *dir)
{
    return i == 0 ? (void *)tn_bert_load(dir) : i == 3 ? (void *)tn_seq2seq_load(dir) : (void *)tn_lm_load(dir);
}
static tn_status saved(int i, void *m, const char *dir)
{
    mkdir(dir, 0777);
    return i == 0 ? tn_bert_save(m, dir) : i == 3 ? tn_seq2seq_save(m, dir) : tn_lm_save(m, dir);
}
/* BERT, GPT-2, LLaMA, and a translation model: masked, pruned, saved and loaded. */
TEST_EACH(pruned_saved_and_loaded, 4)
{
    void *m = _i == 3 ? (void *)tn_seq2seq_new(.source_words = 40, .target_words = 40, .dim = 12, .layers = 2,
                                               .heads = 3, .ff = 16, .dropout = 0, .positions = 16)
                      : model_of(_i);
    tn_module_train(m, false);
    tn_heads      *h = tn_heads_new(m);
    const int64_t  gone[] = {1, 2, tn_heads_count(h) - 1};
    const tn_scope s = tn_no_grad_begin();
    for (int k = 0; k < 3; k++) tn_heads_mask(h, gone[k], true);
    const tn_scope in = tn_heads_begin(h);
    tn_tensor     *masked = tn_scope_return(in, scores(m, _i));
    const int64_t  before = tn_module_count(m, false);
    ck_assert(tn_heads_prune(h, 3, gone) == TN_OK);
    fine();
    ck_assert_int_lt(tn_module_count(m, false), before);
    tn_tensor *now = scores(m, _i);
    ck_assert_double_le(apart(now, masked), 1e-6 * (1 + tn_item(tn_norm(masked))));
    const char *dir = tn_test_file(tn_name("pruned%d", _i));
    ck_assert_msg(saved(_i, m, dir) == TN_OK, "%s", tn_error_message());
    void *back = loaded(_i, dir);
    fine();
    ck_assert_int_eq(tn_module_count(back, false), tn_module_count(m, false));
    ck_assert_double_eq(apart(scores(back, _i), now), 0);
    if (_i == 1 || _i == 2) { /* GGUF cannot represent it */
        tn_model d = {.family = TN_MODEL_DECODER, .module = m};
        ck_assert(tn_model_save(&d, tn_test_file("pruned.gguf")) == TN_EUNSUPPORTED);
        tn_clear_error();
    }
    tn_scope_end(s);
    tn_heads_free(h);
    tn_module_free(m), tn_module_free(back);
}

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fputs(text, f) >= 0 && !fclose(f));
}
/* bert/pretraining with other values of pruned_heads in its config. */
TEST(what_a_config_may_not_say)
{
    static const struct {
        const char *says, *error;
    } cases[] = {
        {"[1]", "pruned_heads is not an object"},
        {"{\"0\": 1}", "pruned_heads of '0' is not an array"},
        {"{\"7\": [0]}", "pruned_heads names '7', which is not a layer of this model"},
        {"{\"bert\": [0]}", "pruned_heads names 'bert', which is not a layer of this model"},
        {"{\"0\": [2]}", "tn_mha_prune: head 2 does not exist; heads are 0 to 1"},
        {"{\"0\": [-1]}", "tn_mha_prune: head -1 does not exist; heads are 0 to 1"},
        {"{\"0\": [\"a\"]}", "is the string 'a'"},
        {"{\"0\": [1]}", "out_proj.weight is [16, 8], the file has [16, 16]"}, /* the weights are not pruned */
    };
    const char *dir = tn_test_folder("said");
    char        text[4096] = "", path[1024], changed[5000];
    tn_bert    *m = tn_bert_load(tn_test_data("golden/bert/pretraining"));
    ck_assert(tn_bert_save(m, dir) == TN_OK);
    tn_free(m), tn_test_unsummed(dir);
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *f = fopen(path, "rb");
    ck_assert(f && fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(changed, sizeof changed, "{\"pruned_heads\": %s,%s", cases[i].says, text + 1);
        put_file(path, changed);
        ck_assert_ptr_null(tn_bert_load(dir));
        ck_assert_msg(strstr(tn_error_message(), cases[i].error) != NULL, "%s", tn_error_message());
        tn_clear_error();
    }
    snprintf(changed, sizeof changed, "{\"pruned_heads\": {\"0\": [], \"1\": null},%s", text + 1);
    put_file(path, changed);
    ck_assert_ptr_null(tn_bert_load(dir));
    tn_clear_error();
    snprintf(changed, sizeof changed, "{\"pruned_heads\": {\"0\": []},%s", text + 1);
    put_file(path, changed);
    m = tn_bert_load(dir);
    tn_free(m);
}

/* Files of transformers 4.46, the last version with pruning; and Tenon's files for it. */
TEST_EACH(pruned_by_hugging_face, 2)
{
    static const char *const names[] = {"bert", "gpt"};
    tn_safetensors          *f = tn_safetensors_open(tn_test_data("golden/look/answers.safetensors"));
    tn_tensor               *ids = tn_safetensors_get(f, "ids"), *want = tn_safetensors_get(f, names[_i]), *y;
    const tn_scope           s = tn_no_grad_begin();
    void                    *m = loaded(_i, tn_test_data(tn_name("golden/look/%s", names[_i])));
    fine();
    y = _i ? tn_lm_forward(m, ids) : tn_bert_mlm_logits((tn_bert *)m, tn_bert_forward((tn_bert *)m, ids), NULL);
    ck_assert_double_le(apart(tn_reshape(y, tn_shape_of(want)), want), 2e-5);
    if (getenv("TENON_GOLDEN")) {
        tn_mha *first = NULL;
        for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);)
            if (!first) first = tn_mha_of(e.module);
        tn_mha_prune(first, 1,
                     (const int64_t[]){0}); /* BERT: all heads of a layer, which transformers' GPT-2 cannot do */
        const char *to = tn_test_data(tn_name("golden/look/tenon-%s", names[_i]));
        ck_assert(saved(_i, m, to) == TN_OK);
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        y = _i ? tn_lm_forward(m, ids) : tn_bert_mlm_logits((tn_bert *)m, tn_bert_forward((tn_bert *)m, ids), NULL);
        tn_safetensors_put(w, "scores", tn_reshape(y, tn_shape_of(want)));
        ck_assert(tn_safetensors_save(w, tn_name("%s/answers.safetensors", to)) == TN_OK);
        tn_safetensors_writer_free(w);
    }
    tn_scope_end(s);
    tn_module_free(m);
    tn_safetensors_close(f);
}

/* ---- attention rollout and flow ---------------------------------------------------------------------------------- */

TEST(rollout_and_flow_as_their_formulas)
{
    tn_bert       *m = model_of(0);
    tn_tensor     *w[2];
    const tn_scope s = tn_no_grad_begin();
    tn_bert_forward(m, tn_narrow(answer("bert.ids"), 0, 0, 1), .weights = w);
    tn_tensor *r = tn_attention_rollout(2, w), *f = tn_attention_flow(2, w);
    ck_assert_double_le(apart(tn_select(r, 0, 0), answer("rollout")), 2e-6);
    ck_assert_double_le(apart(tn_select(f, 0, 0), answer("flow")), 2e-6);
    tn_attention_rollout(0, w);
    ck_error(TN_EINVAL, "tn_attention_rollout: weights is NULL or layers is less than 1");
    w[1] = tn_zeros(TN_SHAPE(1, 2, 8, 7));
    tn_attention_flow(2, w);
    ck_error(TN_ESHAPE, "tn_attention_flow: weights of layer 1 are [1, 2, 8, 7], those of the first [1, 2, 8, 8], but "
                        "must be [B, heads, T, T] of self-attention");
    tn_scope_end(s);
    tn_free(m);
}

/* ---- attribution ------------------------------------------------------------------------------------------------- */

static tn_tensor *score_of_five(void *m, void *user)
{
    tn_bert   *b = m;
    tn_tensor *y = tn_bert_forward(b, tn_narrow(answer("bert.ids"), 0, 0, 1));
    y = tn_log_softmax(tn_bert_mlm_logits(b, y, tn_full_of(TN_I64, TN_SHAPE(1), 1)), -1);
    (void)user;
    return tn_select(tn_select(y, 0, 0), 0, 5);
}
/* A norm that only scales: the whole integral is at the start of the path, before √eps. */
typedef struct {
    tn_tensor *ids, *of;
} scaled;
static tn_tensor *scaled_score(void *m, void *user)
{
    const scaled  *u = user;
    tn_sequential *both = m;
    return tn_sum(tn_mul(tn_call(both, u->ids), u->of));
}
TEST(a_way_that_is_steep)
{
    tn_seed(5);
    tn_sequential *m = tn_sequential_new();
    tn_append(m, tn_embedding_new(.count = 9, .dim = 6));
    tn_layer_norm *norm = tn_append(m, tn_rms_norm_new(.dim = 6, .eps = 1e-10));
    scaled         u = {.ids = tn_from_data(TN_I64, TN_SHAPE(1, 4), (int64_t[]){3, 1, 8, 5}),
                        .of = tn_normal(TN_SHAPE(1, 4, 6), 0, 1)};
    double         difference = 0;
    tn_tensor *y = tn_attribute(.model = m, .path = "0", .score = scaled_score, .user = &u, .difference = &difference,
                                .within = 1e-3);
    fine();
    tn_tensor *want = tn_sum(tn_mul(tn_call(m, u.ids), u.of), .dims = TN_DIMS(-1)); /* each token's part of the score */
    ck_assert_double_le(apart(y, want), 2e-3);
    ck_assert_double_eq_tol(tn_item(tn_sum(y)), difference, 2e-3 * fabs(difference));
    const tn_scope s = tn_no_grad_begin();
    tn_set(norm->weight, 0, NAN);
    tn_scope_end(s);
    ck_refused_has(tn_attribute(.model = m, .path = "0", .score = scaled_score, .user = &u), TN_ENUMERIC,
                   "the score is nan at the input");
    tn_free(m);
}

TEST(integrated_gradients)
{
    static const char path[] = "bert.embeddings.word_embeddings";
    tn_bert          *m = model_of(0);
    double            difference = 0;
    tn_tensor        *y = tn_attribute(.model = m, .path = path, .score = score_of_five, .difference = &difference);
    fine();
    ck_assert_double_eq_tol(difference, tn_get(answer("difference"), 0), 1e-4);
    ck_assert_double_eq_tol(tn_item(tn_sum(y)), difference, 0.01 * fabs(difference));
    y = tn_attribute(.model = m, .path = path, .score = score_of_five, .steps = 256);
    ck_assert_double_le(apart(y, answer("integrated")), 2e-3);
    y = tn_attribute(.model = m, .path = path, .score = score_of_five, .steps = 1);
    ck_assert_double_le(apart(y, answer("gradient")), 1e-4);
    for (tn_each p = tn_parameters(m); tn_next(&p);) ck_assert_ptr_null(tn_grad(p.tensor));
    tn_attribute(.model = m, .path = "bert.words", .score = score_of_five);
    ck_error(TN_EINDEX, "tn_attribute: no module 'bert.words' ran while the score was computed; set .path to the path "
                        "of the token embedding");
    tn_attribute(.model = m, .path = path);
    ck_error(TN_EINVAL, "tn_attribute: .score is missing");
    tn_attribute(.model = m, .path = path, .score = score_of_five, .steps = 0);
    ck_error(TN_EINVAL, "tn_attribute: .steps is 0, but must be from 1 to 1024");
    tn_free(m);
}
