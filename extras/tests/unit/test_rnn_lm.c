/* test_rnn_lm.c — the recurrent language model: the same results as its parts by hand; carried states; interrupted
 * training that resumes with the same bits; files, generation, errors. */
#include "extras.h"
#include "tests/common/check_main.h"

static tn_tensor *ints(tn_shape s, const int64_t *v) { return tn_from_data(TN_I64, s, v); }
static void       near(const tn_tensor *a, const tn_tensor *b, double tol)
{
    fine();
    ck_assert_int_eq(tn_numel(a), tn_numel(b));
    for (int64_t i = 0; i < tn_numel(a); i++) ck_assert_double_le(fabs(tn_get(a, i) - tn_get(b, i)), tol);
}

enum { WORDS = 400, VOCAB = 11 };
static int32_t text[WORDS]; /* each token is mostly the one before it plus 3 */
static void    write_text(void)
{
    tn_generator g = {.seed = 5};
    text[0] = 1;
    for (int i = 1; i < WORDS; i++)
        text[i] = tn_random_double(&g) < 0.9 ? (text[i - 1] + 3) % VOCAB : (int32_t)tn_random_below(&g, VOCAB);
}
AROUND_TESTS(write_text, NULL);
static tn_tensor *first_words(int64_t rows, int64_t n)
{
    int64_t v[64];
    for (int64_t i = 0; i < rows * n; i++) v[i] = text[i];
    return ints(TN_SHAPE(rows, n), v);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static const char *const cells[] = {"lstm", "gru", "elman"};

TEST_EACH(as_its_parts, 3)
{
    tn_rnn_lm *m = tn_rnn_lm_new(.vocab = VOCAB, .cell = cells[_i], .dim = 6, .hidden = 9, .layers = 2, .dropout = 0.5,
                                 .dropout_words = 0.3, .weight_drop = 0.3);
    tn_tensor *ids = first_words(3, 5);
    tn_eval(m);
    const uint64_t at = tn_current_generator()->position;
    tn_tensor     *x = tn_call(m->words, ids);
    for (int i = 0; i < 2; i++) x = tn_rnn_forward(m->layer[i], x);
    tn_tensor *want = tn_linear(x, m->words->weight, m->bias), *y = tn_rnn_lm_forward(m, ids);
    near(y, want, 0);
    near(tn_rnn_lm_forward(m, ids, .last = true), tn_narrow(want, 1, 4, 1), 1e-6);
    near(tn_lm_run(m, (tn_decoder_args){.ids = ids, .vectors = true}), x, 0);
    tn_tensor *targets = first_words(3, 5);
    near(tn_rnn_lm_loss(m, ids, targets), tn_cross_entropy(want, targets), 1e-5);
    ck_assert_uint_eq(tn_current_generator()->position, at); /* eval mode uses no random numbers */
    ck_assert_int_eq(m->layer[0]->hidden, 9);
    ck_assert_int_eq(m->layer[1]->hidden, 6); /* tied: as wide as the embeddings */

    /* AR and TAR, in training; without dropout both use the same hidden states */
    tn_rnn_lm *dry = tn_rnn_lm_new(.vocab = VOCAB, .dim = 6, .hidden = 6, .layers = 1, .dropout = 0);
    tn_tensor *h = tn_rnn_lm_forward(dry, ids, .vectors = true);
    tn_tensor *change = tn_sub(tn_narrow(h, 1, 1, 4), tn_narrow(h, 1, 0, 4));
    tn_tensor *more = tn_add(tn_mul_scalar(tn_mean(tn_square(h)), 2), tn_mean(tn_square(change)));
    near(tn_rnn_lm_loss(dry, ids, targets, .alpha = 2, .beta = 1), tn_add(tn_rnn_lm_loss(dry, ids, targets), more),
         1e-6);
    tn_free(m), tn_free(dry);
}

TEST_EACH(states_go_on, 3)
{
    tn_rnn_lm *m = tn_rnn_lm_new(.vocab = VOCAB, .cell = cells[_i], .dim = 6, .hidden = 9, .layers = 2);
    tn_eval(m);
    tn_tensor *ids = first_words(3, 8), *all = tn_rnn_lm_forward(m, ids), *state[TN_RNN_LM_STATES] = {NULL};
    tn_tensor *front = tn_rnn_lm_forward(m, tn_narrow(ids, 1, 0, 3), .states = state);
    fine();
    ck_assert(state[0] && !tn_needs_grad(state[0]) && !state[1] == (_i != 0));
    tn_tensor *back = tn_rnn_lm_forward(m, tn_narrow(ids, 1, 3, 5), .states = state);
    near(tn_cat(1, front, back), all, 1e-6);
    tn_tensor *const kept = state[0];
    ck_assert_ptr_null(tn_rnn_lm_forward(m, tn_zeros(TN_SHAPE(3, 2, 2)), .states = state));
    tn_clear_error();
    ck_assert_ptr_eq(state[0], kept); /* unchanged by a failed call */
    tn_free(m);
}

TEST(adaptive)
{
    tn_rnn_lm *m =
        tn_rnn_lm_new(.vocab = VOCAB, .dim = 16, .hidden = 16, .layers = 1, .untied = true, .cutoffs = {3, 6});
    tn_tensor *ids = first_words(2, 6), *targets = first_words(2, 6);
    tn_eval(m);
    tn_tensor *p = tn_rnn_lm_forward(m, ids);
    near(tn_sum(tn_exp(p), .dims = TN_DIMS(2)), tn_ones(TN_SHAPE(2, 6)), 1e-5);
    near(tn_rnn_lm_loss(m, ids, targets), tn_neg(tn_mean(tn_gather(p, 2, tn_unsqueeze(targets, 2)))), 1e-5);
    tn_free(m);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* A new folder in the test's folder. */
static const char *scratch(void)
{
    static char path[200];
    static int  n;
    snprintf(path, sizeof path, "%s-%d", tn_test_file("rnn_lm"), n++);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    return path;
}

typedef struct {
    tn_carried_lm *m;
    tn_fit_result  r;
} learned;

/* In two calls or in one. */
static learned learn(const char *folder, int64_t steps, bool resume, bool vary)
{
    tn_seed(7);
    learned     l;
    tn_columns *s = tn_columns_new(text, 300, .batch = 4, .length = 6, .vary = vary);
    tn_columns *v = tn_columns_new(text + 300, 100, .batch = 2, .length = 9);
    l.m = tn_carried_lm_new(tn_rnn_lm_new(.vocab = VOCAB, .dim = 12, .hidden = 16, .layers = 2, .dropout = 0.1,
                                          .dropout_words = 0.1, .weight_drop = 0.2),
                            4);
    fine();
    l.m->alpha = 0.1, l.m->beta = 0.1;
    tn_optimizer *o = tn_adam_new(l.m, .lr = 0.02);
    tn_ema       *means = tn_ema_new(l.m, .mean = true);
    if (!resume) tn_ema_start(means);
    l.r = tn_fit(l.m, .train = tn_columns_source(s), .valid = tn_columns_source(v), .loss = tn_carried_lm_loss,
                 .optimizer = o, .ema = means, .steps = steps, .valid_every = 7, .save_every = 10, .folder = folder,
                 .resume = resume);
    fine();
    tn_optimizer_free(o), tn_ema_free(means);
    tn_columns_free(s), tn_columns_free(v);
    return l;
}

TEST_EACH(goes_on_with_the_same_bits, 2)
{
    const learned whole = learn(scratch(), 60, false, _i);
    const char   *folder = scratch();
    learned       part = learn(folder, 25, false, _i);
    tn_free(part.m);
    part = learn(folder, 60, true, _i);
    ck_assert_int_eq(part.r.begin, 25);
    for (tn_each a = tn_parameters(whole.m), b = tn_parameters(part.m); tn_next(&a) && tn_next(&b);)
        ck_assert_msg(tn_same_bits(a.tensor, b.tensor), "%s", a.name);
    ck_assert(tn_same_bits(whole.m->state[0], part.m->state[0]));
    ck_assert_double_eq(whole.r.value, part.r.value);
    ck_assert_double_le(whole.r.value, 1.9); /* log 11 = 2.4 at the start */
    tn_free(whole.m), tn_free(part.m);
}

/* Training and validation have separate states, and a copy of the module starts without validation states. */
TEST(validation_is_apart)
{
    tn_carried_lm *m = tn_carried_lm_new(tn_rnn_lm_new(.vocab = VOCAB, .dim = 4, .hidden = 4, .layers = 1), 2);
    tn_batch       b = {.x = first_words(2, 3), .y = first_words(2, 3)};
    tn_carried_lm_loss(m, &b, NULL);
    tn_tensor *before = tn_clone(m->state[0]);
    tn_eval(m);
    b.x = first_words(5, 3), b.y = first_words(5, 3);
    tn_tensor *one = tn_carried_lm_loss(m, &b, NULL), *two = tn_carried_lm_loss(m, &b, NULL);
    fine();
    ck_assert(tn_same_bits(before, m->state[0]) && tn_item(one) != tn_item(two));
    tn_carried_lm *copy = tn_copy(m);
    ck_assert(tn_item(tn_carried_lm_loss(copy, &b, NULL)) == tn_item(one));
    tn_batch_put(&b, "fresh", tn_ones(TN_SHAPE(1)));
    ck_assert(tn_item(tn_carried_lm_loss(m, &b, NULL)) == tn_item(one));
    tn_free(copy), tn_free(m);
}

/* ---- files and texts --------------------------------------------------------------------------------------------- */

TEST_EACH(files_and_texts, 3)
{
    const char *dir = scratch();
    tn_seed(2);
    tn_rnn_lm *m = tn_rnn_lm_new(.vocab = VOCAB, .cell = cells[_i], .dim = 6, .hidden = 9, .layers = 2, .init = 1);
    ck_assert_int_eq(tn_lm_save(m, dir), TN_OK);
    tn_lm *n = tn_extras_register() == TN_OK ? tn_lm_load(dir) : NULL;
    fine();
    tn_eval(m);
    tn_tensor *ids = first_words(2, 4);
    near(tn_rnn_lm_forward(m, ids), tn_lm_run(n, (tn_decoder_args){.ids = ids}), 0);
    ck_assert_str_eq(tn_lm_info_of(n).type, "tenon_rnn_lm");
    ck_assert_str_eq(((tn_rnn_lm *)n)->config.cell, cells[_i]);

    /* greedy: the most likely token of a whole pass each time */
    tn_decoding *d = tn_lm_decoding(n, 2, 20);
    tn_generated g = tn_generate(d, ids, .most = 6);
    fine();
    for (int64_t k = 0; k < 6; k++) {
        tn_tensor *next = tn_argmax(tn_select(tn_rnn_lm_forward(m, ids, .last = true), 1, 0), 1, true);
        for (int64_t i = 0; i < 2; i++) ck_assert_int_eq(tn_get_i64(g.tokens, i * 6 + k), tn_get_i64(next, i));
        ids = tn_cat(1, ids, next);
    }
    ck_refused(tn_generate(d, ids, .most = 6).tokens, TN_ESTATE,
               "tn_generate: the decoding has read 9 tokens, but .read is 0; make a new decoding for a new "
               "text, or set .read to continue this one");
    tn_decoding_free(d);
    d = tn_lm_decoding(n, 6, 20); /* beams reorder the states */
    g = tn_generate(d, first_words(2, 4), .most = 5, .beams = 3);
    tn_decoding_free(d);
    tn_free(n), tn_free(m);
}

static void put(const char *dir, const char *config)
{
    char path[300];
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *f = fopen(path, "w");
    fputs(config, f);
    fclose(f);
}

TEST(mistakes)
{
    const tn_rnn_lm_config awd = tn_rnn_lm_size("awd"),
                           usual = TN_WITH(tn_rnn_lm_config, TN_RNN_LM_DEFAULTS, .vocab = 9);
    ck_assert(awd.dim == usual.dim && awd.hidden == usual.hidden && awd.layers == usual.layers);
    ck_assert(awd.dropout == usual.dropout && awd.init == usual.init);
    ck_assert_int_eq(tn_rnn_lm_size("").dim, 0);
    ck_error(TN_EINVAL, "tn_rnn_lm_size: unknown size ''; the sizes are tiny, small, medium, large and awd");
    ck_refused(tn_rnn_lm_new(.vocab = 5, .cell = "lstn"), TN_EINVAL,
               "tn_rnn_lm_new: .cell is 'lstn', but must be lstm, gru or elman");
    ck_refused(tn_rnn_lm_new(.vocab = 5, .cutoffs = {2}), TN_EINVAL,
               "tn_rnn_lm_new: .cutoffs need .untied, because an adaptive softmax has its own weights");
    ck_refused_code(tn_rnn_lm_new(.vocab = 5, .layers = 33), TN_EINVAL);
    ck_refused(tn_carried_lm_new(NULL, 3), TN_EINVAL, "tn_carried_lm_new: the model is NULL");
    tn_rnn_lm *m = tn_rnn_lm_new(.vocab = 5, .dim = 4, .hidden = 4, .layers = 1);
    ck_refused(tn_lm_blocks(m), TN_EUNSUPPORTED, "tn_lm_blocks: a RnnLm has no tn_blocks and no key/value cache");
    const char *dir = scratch();
    ck_assert_int_eq(tn_rnn_lm_save(m, dir), TN_OK);
    /* a config that does not match the weights, or is not a model's, is an error and allocates little memory */
    static const char *const wrong[] = {
        "{\"model_type\":\"tenon_rnn_lm\",\"vocab_size\":10000000,\"embedding_size\":65536,\"hidden_size\":65536,"
        "\"num_layers\":32}",
        "{\"model_type\":\"tenon_rnn_lm\",\"vocab_size\":5,\"embedding_size\":4,\"hidden_size\":4,\"num_layers\":0}",
        "{\"model_type\":\"tenon_rnn_lm\",\"vocab_size\":5,\"embedding_size\":4,\"hidden_size\":4,\"num_layers\":1,"
        "\"cell\":\"lstn\"}",
        "{\"model_type\":\"tenon_rnn_lm\",\"vocab_size\":5,\"embedding_size\":4,\"hidden_size\":4,\"num_layers\":1,"
        "\"tie_word_embeddings\":false}",
        "{\"model_type\":\"tenon_rnn_lm\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put(dir, wrong[i]);
        ck_assert_msg(!tn_rnn_lm_load(dir) && tn_error() != TN_OK, "%s", wrong[i]);
        tn_clear_error();
    }
    tn_free(m);
}
