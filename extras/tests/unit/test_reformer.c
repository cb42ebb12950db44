/* test_reformer.c — Reformer compared with Hugging Face's (tests/golden/reformer.py), with the same rotations: logits,
 * loss, gradients, its directory; reversible blocks compared with a plain tape and with differences in f64; their
 * memory; errors. */
#include "extras.h"
#include "tests/common/answers.h"
#include "tests/common/golden_case.h"

static double largest(tn_tensor *a)
{
    return tn_item(tn_amax(tn_reshape(tn_abs(a), TN_SHAPE(-1)), .dims = TN_DIMS(0)));
}

/* ---- compared with Hugging Face ---------------------------------------------------------------------------------- */

static void open_answers(void) { tn_answers_open("golden/reformer/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);

static tn_reformer *golden(void)
{
    tn_reformer *m = tn_reformer_load(tn_test_data("golden/reformer/model"));
    fine();
    return m;
}

TEST(numbers_as_hugging_face)
{
    tn_reformer *m = golden();
    tn_tensor   *ids = tn_safetensors_get(answers, "ids"), *y = tn_reformer_forward(m, ids);
    fine();
    ck_assert_double_le(furthest(y, tn_safetensors_get(answers, "scores")), 2e-5);
    ck_assert_double_eq_tol(tn_item(tn_reformer_loss(m, ids, NULL)), tn_item(tn_safetensors_get(answers, "loss")),
                            1e-5);
    ck_assert(tn_same_bits(tn_reformer_forward(m, ids, .last = true), tn_narrow(y, 1, 18, 1)));
    ck_assert(tn_same_bits(tn_reformer_forward(m, tn_narrow(ids, 0, 1, 1)), tn_narrow(y, 0, 1, 1))); /* a row alone */
    for (int threads = 1; threads < 4; threads++) {
        tn_set_threads(threads);
        ck_assert(tn_same_bits(tn_reformer_forward(m, ids), y));
    }
    tn_set_threads(0);
    tn_backward(tn_reformer_loss(m, tn_safetensors_get(answers, "long"), NULL));
    fine();
    int compared = 0;
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        if (!strcmp(p.name, "lm_head.bias")) continue;
        tn_tensor *want = tn_safetensors_get(answers, tn_name("grad.%s", p.name));
        fine();
        ck_assert_msg(furthest(tn_grad(p.tensor), want) <= 1e-5 * largest(want), "%s", p.name);
        compared++;
    }
    ck_assert_int_eq(compared, 40);
    tn_free(m);
}

TEST(directory_both_ways)
{
    char         dir[600];
    tn_reformer *m = golden();
    snprintf(dir, sizeof dir, "%s", tn_test_folder("reformer"));
    ck_assert_int_eq(tn_lm_save(m, dir), TN_OK);
    tn_lm     *again = tn_extras_register() == TN_OK ? tn_lm_load(dir) : NULL;
    tn_tensor *ids = tn_safetensors_get(answers, "ids");
    fine();
    ck_assert(tn_same_bits(tn_lm_forward(again, ids), tn_reformer_forward(m, ids)));
    const tn_reformer_config *a = &m->config, *b = &((tn_reformer *)again)->config;
    ck_assert(!strcmp(a->kinds, "lhh") && !strcmp(b->kinds, "lhh") && b->axial[1] == 8 && b->axial_dim[1] == 8);
    ck_assert(b->seed == 5 && b->rounds == 2 && b->buckets[0] == 4 && !b->buckets[1] && b->chunk == 8);
    const tn_lm_info about = tn_lm_info_of(again);
    ck_assert(!strcmp(about.type, "reformer") && about.positions == 32 && about.limited);
    tn_model d = tn_model_open(dir, .no_tokenizer = true);
    ck_assert_ptr_nonnull(d.lm);
    ck_assert_int_ne(tn_model_save(&d, tn_test_file("reformer.gguf")), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "GGUF does not support a Reformer; save to a directory");
    tn_model_close(&d);
    tn_free(m), tn_free(again);
}

/* One head of width two needs 4 random numbers, for which torch.randn uses another method than for 16 or more. The
 * logits are those of transformers 5.24.0 with the same weights: element j of a parameter is 0.5 sin(1.3 j + letters of
 * its name), plus 1 for a norm's weight. */
TEST(few_rotations)
{
    static const double should[] = {-0.9092316913907301, -0.25897131929340866, 1.5284249885405443, -0.3029176534748621,
                                    -1.4256918306148283, 0.7235072968050339,   0.6709036841324072, -0.7015733238485345,
                                    0.3453974511073825,  0.1918921812034341,   -1.119646414369131};
    tn_reformer        *m = tn_reformer_new(.vocab = 11, .dim = 8, .layers = 1, .kinds = "h", .heads = 1, .head_dim = 2,
                                            .ff = 6, .chunk = 4, .buckets = {4}, .seed = 5, .positions = 16);
    const tn_scope      s = tn_no_grad_begin();
    tn_tensor          *ids = tn_empty_of(TN_I64, TN_SHAPE(1, 16));
    fine();
    tn_eval(m);
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        for (int64_t j = 0; j < tn_numel(p.tensor); j++)
            tn_set(p.tensor, j,
                   0.5 * sin(1.3 * (double)j + (double)strlen(p.name)) + (strstr(p.name, "norm.weight") != NULL));
    for (int64_t i = 0; i < 16; i++) tn_set_i64(ids, i, (i * i + 3 * i + 1) % 11);
    tn_tensor *y = tn_reformer_forward(m, ids, .last = true);
    fine();
    for (int w = 0; w < 11; w++) ck_assert_double_eq_tol(tn_get(y, w), should[w], 2e-5);
    ck_assert_double_eq_tol(tn_item(tn_reformer_loss(m, ids, NULL)), 5.415772914886475, 2e-5);
    tn_scope_end(s);
    tn_free(m);
}

/* Files since transformers 5.24 have two biases, of which the decoder's is used; older files, as the golden model's,
 * have only the other one. */
TEST(bias_of_two_names)
{
    const char    *dir = tn_test_folder("biased"), *weights = tn_test_file("biased/model.safetensors");
    tn_reformer   *m = golden();
    const tn_scope s = tn_no_grad_begin();
    tn_copy_(m->bias, tn_normal(tn_shape_of(m->bias), 0, 1));
    ck_assert_int_eq(tn_reformer_save(m, dir), TN_OK);
    tn_test_unsummed(dir);
    for (int both = 0; both < 2; both++) {
        if (both) {
            tn_safetensors        *f = tn_safetensors_open(weights);
            tn_safetensors_writer *w = tn_safetensors_writer_new();
            for (int64_t i = 0; i < tn_safetensors_count(f); i++)
                tn_safetensors_put(w, tn_safetensors_at(f, i).name, tn_safetensors_get_at(f, i));
            ck_assert(tn_same_bits(tn_safetensors_get(f, "lm_head.decoder.bias"), m->bias));
            tn_safetensors_put(w, "lm_head.bias", tn_zeros_like(m->bias));
            tn_safetensors_close(f);
            ck_assert_int_eq(tn_safetensors_save(w, weights), TN_OK);
            tn_safetensors_writer_free(w);
        }
        tn_reformer *again = tn_reformer_load(dir);
        fine();
        ck_assert(tn_same_bits(again->bias, m->bias));
        tn_free(again);
    }
    tn_scope_end(s);
    tn_free(m);
}

/* Each token from all before it, reread. */
TEST(writes)
{
    tn_reformer *m = golden();
    tn_tensor   *ids = tn_narrow(tn_safetensors_get(answers, "ids"), 1, 0, 6), *text = ids;
    for (int i = 0; i < 5; i++) {
        tn_tensor *next = tn_argmax(tn_select(tn_reformer_forward(m, text, .last = true), 1, 0), -1, true);
        text = tn_cat(1, text, next);
    }
    tn_decoding *d = tn_reformer_decoding(m, 2, 11);
    tn_generated g = tn_generate(d, ids, .most = 5);
    fine();
    ck_assert(tn_same_bits(tn_select(g.tokens, 1, 0), tn_narrow(text, 1, 6, 5)));
    tn_decoding_free(d);
    d = tn_reformer_decoding(m, 6, 11); /* beams: rows are reordered */
    tn_generate(d, ids, .most = 5, .beams = 3);
    fine();
    tn_decoding_free(d);
    ck_refused_has(tn_reformer_decoding(m, 1, 33), TN_EINVAL,
                   "tn_reformer_decoding: length is 33, but the model has only 32 positions");
    tn_free(m);
}

/* ---- reversible blocks ------------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *w; /* [blocks · 2, 3, 3] */
    int       *runs;
} net;
static tn_tensor *half(int64_t block, int which, tn_tensor *x, tn_tensor **memo, const void *user)
{
    const net *n = user;
    if (n->runs) ++*n->runs;
    if (!*memo) *memo = tn_full_of(TN_F64, TN_SCALAR, 0.5 + (double)block);
    tn_tensor *w = tn_select(n->w, 0, 2 * block + which);
    return tn_mul(tn_dropout(tn_tanh(tn_matmul(x, w)), 0.4), *memo);
}
static tn_tensor *plain(tn_tensor *const *in, int n, void *user)
{
    tn_tensor *x[2] = {in[0], in[1]}, *memo[2] = {NULL, NULL};
    const net  of = {in[2], NULL};
    (void)n, (void)user;
    for (int i = 0; i < 3; i++) {
        memo[0] = memo[1] = NULL;
        x[0] = tn_add(x[0], half(i, 0, x[1], &memo[0], &of)), x[1] = tn_add(x[1], half(i, 1, x[0], &memo[1], &of));
    }
    return tn_cat(-1, x[0], x[1]);
}
static tn_tensor *reversed(tn_tensor *const *in, int n, void *user)
{
    const net  of = {in[2], user};
    tn_tensor *y[2];
    (void)n;
    tn_reversible(half, &of, sizeof of, 3, in, y);
    return tn_cat(-1, y[0], y[1]);
}

TEST(reversible_as_on_a_plain_tape)
{
    tn_seed(5);
    tn_tensor *in[3] = {tn_normal_of(TN_F64, TN_SHAPE(4, 3), 0, 1), tn_normal_of(TN_F64, TN_SHAPE(4, 3), 0, 1),
                        tn_normal_of(TN_F64, TN_SHAPE(6, 3, 3), 0, 1)};
    tn_tensor *y[2], *grad[2][3];
    int        runs = 0;
    for (int k = 0; k < 3; k++) tn_requires_grad(in[k]);
    for (int pass = 0; pass < 2; pass++) {
        tn_seed(9);
        y[pass] = pass ? reversed(in, 3, &runs) : plain(in, 3, NULL);
        tn_tensor *after = tn_uniform_of(TN_F64, tn_shape_of(y[0]), -1, 1); /* the generator has the same position */
        tn_backward(tn_sum(tn_mul(y[pass], after)));
        fine();
        for (int k = 0; k < 3; k++) grad[pass][k] = tn_clone(tn_grad(in[k])), tn_zero_grad(in[k]);
    }
    ck_assert_int_eq(runs, 12);
    ck_assert(tn_same_bits(y[0], y[1]));
    for (int k = 0; k < 3; k++) ck_assert_double_le(furthest(grad[0][k], grad[1][k]), 1e-13);
}

static tn_tensor *seeded(tn_tensor *const *in, int n, void *user)
{
    tn_seed(9);
    return reversed(in, n, user);
}
TEST(reversible_by_differences)
{
    tn_seed(6);
    tn_tensor *in[3] = {tn_normal_of(TN_F64, TN_SHAPE(2, 3), 0, 1), tn_normal_of(TN_F64, TN_SHAPE(2, 3), 0, 1),
                        tn_normal_of(TN_F64, TN_SHAPE(6, 3, 3), 0, 1)};
    for (int k = 0; k < 3; k++) tn_requires_grad(in[k]);
    /* inputs only: a parameter used inside is not an input of the node, its gradient goes to the leaf */
    tn_gradcheck(seeded, .count = 3, .inputs = in, .name = "tn_reversible");
    fine();
    ck_refused_has(tn_grad_wrt(tn_sum(seeded(in, 3, NULL)), in[0], true), TN_EUNSUPPORTED,
                   "reversible: has no backward made of ops");
}

TEST(reversible_of_a_weight_that_changes)
{
    tn_seed(7);
    tn_tensor *in[3] = {tn_normal_of(TN_F64, TN_SHAPE(4, 3), 0, 1), tn_normal_of(TN_F64, TN_SHAPE(4, 3), 0, 1),
                        tn_normal_of(TN_F64, TN_SHAPE(6, 3, 3), 0, 1)};
    for (int k = 0; k < 3; k++) tn_requires_grad(in[k]);
    tn_tensor *y = tn_sum(reversed(in, 3, NULL));
    tn_scope   s = tn_no_grad_begin();
    tn_mul_scalar_(tn_select(in[2], 0, 1), 2); /* a part of it, in place */
    tn_scope_end(s);
    ck_assert_int_ne(tn_backward(y), TN_OK);
    ck_error_has(TN_ESTATE, "backward: mul_scalar_ changed a leaf, which the function of tn_reversible used");
    ck_assert(!tn_grad(in[0]) && !tn_grad(in[2]));
}

static tn_tensor *shorter(int64_t block, int which, tn_tensor *x, tn_tensor **memo, const void *user)
{
    (void)block, (void)memo, (void)user;
    return which ? tn_narrow(x, 0, 0, 1) : tn_clone(x);
}
TEST(reversible_mistakes)
{
    tn_tensor *x[2] = {tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2, 3))}, *y[2];
    ck_fails_has(tn_reversible(NULL, NULL, 0, 3, x, y), TN_EINVAL, "tn_reversible: needs a function");
    ck_assert_int_ne(tn_reversible(shorter, NULL, 0, 2, x, y), TN_OK);
    ck_assert(!y[0] && !y[1]);
    ck_error_has(TN_ESHAPE, "tn_reversible: the function of block 0 returned [1, 3], but it is added to [2, 3]");
    x[1] = tn_zeros_of(TN_I64, TN_SHAPE(2, 3));
    ck_assert_int_ne(tn_reversible(shorter, NULL, 0, 2, x, y), TN_OK);
    ck_error_has(TN_EDTYPE, "tn_reversible: x[1] must be floating, got i64");
}

/* ---- memory and errors ------------------------------------------------------------------------------------------- */

static size_t peak_of(int64_t layers, int64_t length)
{
    tn_reformer   *m = tn_reformer_new(.vocab = 20, .dim = 16, .layers = layers, .heads = 1, .head_dim = 16, .ff = 32,
                                       .chunk = 16, .local_chunk = 16, .positions = length, .ff_chunk = 64);
    const tn_scope s = tn_scope_begin();
    tn_tensor     *ids = tn_zeros_of(TN_I64, TN_SHAPE(1, length));
    tn_backward(tn_reformer_loss(m, ids, NULL));
    fine();
    tn_scope_end(s);
    const size_t before = tn_memory_now().live;
    tn_reset_peak();
    const tn_scope t = tn_scope_begin();
    tn_backward(tn_reformer_loss(m, ids = tn_zeros_of(TN_I64, TN_SHAPE(1, length)), NULL));
    fine();
    tn_scope_end(t);
    const size_t peak = tn_memory_now().peak - before;
    tn_free(m);
    return peak;
}

TEST(memory_grows_with_the_text_and_hardly_with_layers)
{
    const size_t one = peak_of(2, 512), twice = peak_of(2, 1024), deep = peak_of(8, 512);
    ck_assert_msg((double)twice < 2.3 * (double)one, "%zu, then %zu bytes", one, twice);
    ck_assert_msg((double)deep < 1.4 * (double)one, "2 layers: %zu, 8: %zu bytes", one, deep);
}

TEST(mistakes)
{
    const struct {
        tn_reformer_config c;
        const char        *says;
    } rows[] = {
        {{TN_REFORMER_DEFAULTS, .vocab = 0}, "tn_reformer_new: .vocab is 0, but must be from 1"},
        {{TN_REFORMER_DEFAULTS, .vocab = 9, .kinds = "lx"}, "tn_reformer_new: .kinds must consist of the letters"},
        {{TN_REFORMER_DEFAULTS, .vocab = 9, .axial = {0, 3}}, "tn_reformer_new: .axial is {0, 3}"},
        {{TN_REFORMER_DEFAULTS, .vocab = 9, .axial = {2, 3}, .axial_dim = {4, 4}},
         "tn_reformer_new: .axial_dim is {4, 4}"},
        {{TN_REFORMER_DEFAULTS, .vocab = 9, .buckets = {3, 0}}, "tn_reformer_new: .buckets is {3, 0}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert(!tn_reformer_create(rows[i].c));
        ck_assert_msg(!strncmp(tn_error_message(), rows[i].says, strlen(rows[i].says)), "%s", tn_error_message());
        tn_clear_error();
    }
    tn_reformer *m = golden();
    tn_tensor   *ids = tn_zeros_of(TN_I64, TN_SHAPE(1, 33));
    ck_refused_has(tn_reformer_forward(m, ids), TN_ESHAPE,
                   "Reformer: a sequence of 33 tokens is longer than the model's 32 positions; truncate it");
    ck_refused_has(tn_lm_blocks(m), TN_EUNSUPPORTED, "a Reformer has no tn_blocks");
    tn_reformer *copy = tn_copy(m);
    ck_assert(copy->config.kinds == copy->kinds && !strcmp(copy->kinds, "lhh"));
    tn_free(copy), tn_free(m);
}
