/* test_attention_modules.c — multi-head attention and attention to a memory: compared with PyTorch, on the examples of
 * the lectures, gradients, masks, empty and smallest sizes, failing allocations, and the errors of wrong calls. */
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include "tests/common/golden_case.h"

enum { D = 8, H = 2, B = 2, T = 4, S = 5 };

/* Bool [rows, cols] from a text: "..x ..x", x for true. */
static tn_tensor *marks(int64_t rows, int64_t cols, const char *text)
{
    tn_tensor *t = tn_zeros_of(TN_BOOL, TN_SHAPE(rows, cols));
    int64_t    i = 0;
    for (; *text; text++)
        if (*text != ' ') tn_set(t, i++, *text == 'x');
    ck_assert_int_eq(i, rows * cols);
    return t;
}
static tn_tensor *padding(int64_t n) /* the second of two sequences is shorter by two */
{
    tn_tensor *t = tn_zeros_of(TN_BOOL, TN_SHAPE(2, n));
    tn_set_at(t, TN_SHAPE(1, -1), 1), tn_set_at(t, TN_SHAPE(1, -2), 1);
    return t;
}
static tn_tensor *holes(int64_t t, int64_t s)
{
    tn_tensor *m = tn_zeros_of(TN_BOOL, TN_SHAPE(t, s));
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 1; j < s; j++) tn_set_at(m, TN_SHAPE(i, j), (3 * i + 5 * j) % 4 == 0);
    return m;
}

/* ---- compared with PyTorch --------------------------------------------------------------------------------------- */

static tn_safetensors *golden;
static void open_golden(void) { golden = tn_safetensors_open(tn_test_data("golden/transformer.safetensors")); }
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);
static void *filled(tn_golden *k, void *module) { return k->matrices = 0.5, tn_golden_fill(k, module); }

static tn_tensor *mha_self(tn_golden *k)
{
    tn_mha    *m = filled(k, tn_mha_new(.dim = D, .heads = H, .dtype = k->dtype));
    tn_tensor *x = tn_golden_input(k, "x", TN_SHAPE(B, T, D));
    return tn_mha_forward(m, x, x, x, .weights = &k->w);
}
static tn_tensor *mha_masked(tn_golden *k)
{
    tn_mha    *m = filled(k, tn_mha_new(.dim = D, .heads = H, .dtype = k->dtype));
    tn_tensor *x = tn_golden_input(k, "x", TN_SHAPE(B, T, D));
    return tn_mha_forward(m, x, x, x, .key_padding_mask = padding(T), .attn_mask = holes(T, T), .weights = &k->w,
                          .weights_per_head = true);
}
static tn_tensor *mha_causal(tn_golden *k)
{
    tn_mha    *m = filled(k, tn_mha_new(.dim = D, .heads = 4, .dtype = k->dtype));
    tn_tensor *x = tn_golden_input(k, "x", TN_SHAPE(B, T, D));
    return tn_mha_forward(m, x, x, x, .causal = true);
}
static tn_tensor *mha_cross(tn_golden *k)
{
    tn_mha    *m = filled(k, tn_mha_new(.dim = D, .heads = H, .dtype = k->dtype));
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(B, T, D)), *h = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_mha_forward(m, q, h, h, .key_padding_mask = padding(S), .weights = &k->w);
}
static tn_tensor *mha_added(tn_golden *k)
{
    tn_mha    *m = filled(k, tn_mha_new(.dim = D, .heads = H, .dtype = k->dtype));
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(B, T, D)), *key = tn_golden_input(k, "key", TN_SHAPE(B, S, D));
    tn_tensor *v = tn_golden_input(k, "value", TN_SHAPE(B, S, D));
    return tn_mha_forward(m, q, key, v, .attn_mask = tn_golden_input(k, "mask", TN_SHAPE(B * H, T, S)));
}
static tn_tensor *mha_sizes(tn_golden *k)
{
    tn_mha    *m = filled(k, tn_mha_new(.dim = D, .heads = H, .kdim = 6, .vdim = 10, .dtype = k->dtype));
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(B, T, D)), *key = tn_golden_input(k, "key", TN_SHAPE(B, S, 6));
    tn_tensor *v = tn_golden_input(k, "value", TN_SHAPE(B, S, 10));
    return tn_mha_forward(m, q, key, v, .weights = &k->w, .weights_per_head = true);
}
static tn_tensor *mha_time_first(tn_golden *k)
{
    tn_mha    *m = filled(k, tn_mha_new(.dim = D, .heads = H, .no_bias = true, .dtype = k->dtype));
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(T, B, D)), *h = tn_golden_input(k, "memory", TN_SHAPE(S, B, D));
    h = tn_transpose(h, 0, 1);
    tn_tensor *y = tn_mha_forward(m, tn_transpose(q, 0, 1), h, h, .key_padding_mask = padding(S), .weights = &k->w);
    return tn_transpose(y, 0, 1);
}
static tn_tensor *mha_time_first_self(tn_golden *k)
{
    tn_mha *m = filled(k, tn_mha_new(.dim = D, .heads = H, .dtype = k->dtype));
    return tn_transpose(tn_call(m, tn_transpose(tn_golden_input(k, "x", TN_SHAPE(T, B, D)), 0, 1)), 0, 1);
}
static tn_tensor *dot_attention(tn_golden *k)
{
    tn_dot_attention *m = filled(k, tn_dot_attention_new(.memory = D, .dtype = k->dtype));
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(B, T, D)), *h = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_dot_attention_forward(m, q, h, .key_padding_mask = padding(S), .weights = &k->w);
}
static tn_tensor *dot_attention_general(tn_golden *k)
{
    tn_dot_attention *m =
        tn_dot_attention_new(.query = 6, .memory = D, .general = true, .scaled = true, .dtype = k->dtype);
    filled(k, m);
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(B, T, 6)), *h = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_dot_attention_forward(m, q, h, .key_padding_mask = padding(S), .weights = &k->w);
}
static tn_tensor *additive_attention(tn_golden *k)
{
    tn_additive_attention *m = tn_additive_attention_new(.query = 6, .memory = D, .hidden = 7, .dtype = k->dtype);
    filled(k, m);
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(B, T, 6)), *h = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_additive_attention_forward(m, q, h, .key_padding_mask = padding(S), .weights = &k->w);
}
static tn_tensor *additive_attention_one(tn_golden *k)
{
    tn_additive_attention *m = tn_additive_attention_new(.query = 6, .memory = D, .hidden = 7, .dtype = k->dtype);
    filled(k, m);
    tn_tensor *q = tn_golden_input(k, "query", TN_SHAPE(B, 6)), *h = tn_golden_input(k, "memory", TN_SHAPE(B, S, D));
    return tn_additive_attention_forward(m, q, h, .keys = tn_additive_attention_keys(m, h), .weights = &k->w);
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const tn_golden_case cases[] = {CASE(mha_self),           CASE(mha_masked),
                                       CASE(mha_causal),         CASE(mha_cross),
                                       CASE(mha_added),          CASE(mha_sizes),
                                       CASE(mha_time_first),     CASE(mha_time_first_self),
                                       CASE(dot_attention),      CASE(dot_attention_general),
                                       CASE(additive_attention), CASE(additive_attention_one)};
enum { CASES = sizeof cases / sizeof *cases };

TEST_EACH(as_pytorch, CASES) { tn_golden_check(golden, &cases[_i]); }

/* Every case of the golden file runs here or in test_transformer.c, whose cases have another prefix. */
TEST(nothing_is_left_out)
{
    fine();
    for (int64_t i = 0; i < tn_safetensors_count(golden); i++) {
        const char *name = tn_safetensors_at(golden, i).name;
        if (strncmp(name, "mha_", 4) != 0 && !strstr(name, "_attention")) continue;
        int found = 0;
        for (int k = 0; k < CASES; k++)
            found += !strncmp(name, cases[k].name, strlen(cases[k].name)) && name[strlen(cases[k].name)] == '/';
        ck_assert_msg(found == 1, "%s is not compared", name);
    }
}
AROUND_TESTS(NULL, NULL);

/* ---- examples of the lectures ------------------------------------------------------------------------------------ */

/* Four words with the matrices of numpy.random.seed(42), randint(3, size=(3, 3)): Q = x W_Q, so in_proj_weight contains
 * W_Qᵀ. */
static const double words[] = {1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1};
static const double w_q[] = {2, 0, 2, 2, 0, 0, 2, 1, 2}, w_k[] = {2, 2, 2, 0, 2, 1, 0, 1, 1},
                    w_v[] = {1, 1, 0, 0, 1, 1, 0, 0, 0};
static const double attended[] = {0.98522025, 1.74174051, 0.75652026, 0.90965265, 1.40965265, 0.5,
                                  0.99851226, 1.75849334, 0.75998108, 0.99560386, 1.90407309, 0.90846923};

static void as_in_the_lecture(const tn_tensor *y)
{
    fine();
    ck_assert_int_eq(tn_numel(y), 12);
    for (int i = 0; i < 12; i++) ck_assert_double_eq_tol(tn_get(y, i), attended[i], 5e-9);
}

TEST(four_words)
{
    tn_tensor *x = tn_from_data(TN_F64, TN_SHAPE(1, 4, 3), words);
    tn_tensor *w[3] = {tn_from_data(TN_F64, TN_SHAPE(3, 3), w_q), tn_from_data(TN_F64, TN_SHAPE(3, 3), w_k),
                       tn_from_data(TN_F64, TN_SHAPE(3, 3), w_v)};
    as_in_the_lecture(tn_attention(tn_matmul(x, w[0]), tn_matmul(x, w[1]), tn_matmul(x, w[2])));

    tn_mha *m = tn_mha_new(.dim = 3, .heads = 1, .no_bias = true, .dtype = TN_F64);
    for (int i = 0; i < 3; i++) w[i] = tn_transpose(w[i], 0, 1);
    tn_scope off = tn_no_grad_begin();
    tn_copy_from(m->in_proj_weight, tn_cat_list(0, 3, w));
    tn_scope_end(off);
    tn_init_eye(m->out_proj->weight);
    as_in_the_lecture(tn_call(m, x));
    tn_free(m);

    tn_dot_attention *d = tn_dot_attention_new(.memory = 3, .general = true, .scaled = true, .dtype = TN_F64);
    off = tn_no_grad_begin();
    tn_copy_from(d->query_proj->weight, w[0]);
    tn_scope_end(off);
    as_in_the_lecture(tn_dot_attention_forward(d, x, tn_linear(x, w[2], NULL), .keys = tn_linear(x, w[1], NULL)));
    tn_free(d);
}

/* "<start> I am no man <end>": 0 on and below the diagonal, -inf above; the result at a word does not depend on later
 * words. */
TEST(causal_mask)
{
    enum { WORDS = 6 };
    tn_tensor *mask = tn_causal_mask(WORDS), *w;
    fine();
    ck_assert_int_eq(tn_dtype_of(mask), TN_F32);
    for (int64_t i = 0; i < WORDS; i++)
        for (int64_t j = 0; j < WORDS; j++) ck_assert(tn_get_at(mask, TN_SHAPE(i, j)) == (j <= i ? 0 : -HUGE_VAL));
    tn_mha    *m = tn_mha_new(.dim = D, .heads = H);
    tn_tensor *x = tn_normal(TN_SHAPE(1, WORDS, D), 0, 1),
              *y = tn_mha_forward(m, x, x, x, .attn_mask = mask, .weights = &w);
    ck_assert(tn_same_bits(y, tn_mha_forward(m, x, x, x, .causal = true)));
    for (int64_t i = 0; i < WORDS; i++)
        for (int64_t j = 0; j < WORDS; j++) ck_assert((tn_get_at(w, TN_SHAPE(0, i, j)) > 0) == (j <= i));
    tn_set_at(x, TN_SHAPE(0, 4, 0), 9); /* replace "man" with another word: no result before it changes */
    tn_tensor *other = tn_mha_forward(m, x, x, x, .causal = true);
    ck_assert(tn_same_bits(tn_narrow(y, 1, 0, 4), tn_narrow(other, 1, 0, 4)));
    ck_assert(!tn_same_bits(tn_narrow(y, 1, 4, 1), tn_narrow(other, 1, 4, 1)));
    ck_assert_int_eq(tn_numel(tn_causal_mask(0)), 0);
    tn_causal_mask(-1);
    ck_error(TN_EINVAL, "tn_causal_mask: length is -1, but must not be negative");
    tn_free(m);

    m = tn_mha_new(.dim = D, .heads = H, .scores.window = 2); /* the word itself and the one before it */
    tn_mha_forward(m, x, x, x, .causal = true, .weights = &w);
    for (int64_t i = 0; i < WORDS; i++)
        for (int64_t j = 0; j < WORDS; j++) ck_assert((tn_get_at(w, TN_SHAPE(0, i, j)) > 0) == (j <= i && j + 2 > i));
    tn_mha_forward(m, x, x, x, .weights = &w); /* and the one after it */
    for (int64_t i = 0; i < WORDS; i++)
        for (int64_t j = 0; j < WORDS; j++)
            ck_assert((tn_get_at(w, TN_SHAPE(0, i, j)) > 0) == (j < i + 2 && j + 2 > i));
    tn_free(m);
}

/* Index 0 pads two sequences of different length: the shorter one has the result it has alone, for any values of
 * padding. */
TEST(padding_mask)
{
    const int64_t index[] = {5, 3, 9, 2, 7, 4, 8, 6, 0, 0};
    tn_tensor    *tokens = tn_from_data(TN_I64, TN_SHAPE(2, 5), index), *pad = tn_padding_mask(tokens, 0), *w;
    ck_assert(tn_same_bits(pad, marks(2, 5, "..... ...xx")));
    ck_assert(tn_same_bits(pad, tn_padding_mask(tn_to(tokens, TN_I32), 0)));
    tn_embedding *table = tn_embedding_new(.count = 10, .dim = D);
    tn_mha       *m = tn_mha_new(.dim = D, .heads = H);
    tn_tensor    *x = tn_call(table, tokens), *y = tn_mha_forward(m, x, x, x, .key_padding_mask = pad, .weights = &w);
    tn_tensor    *alone = tn_narrow(tn_narrow(x, 0, 1, 1), 1, 0, 3);
    ck_assert(tn_same_bits(tn_mha_forward(m, alone, alone, alone), tn_narrow(tn_narrow(y, 0, 1, 1), 1, 0, 3)));
    for (int64_t t = 0; t < 5; t++)
        for (int64_t s = 3; s < 5; s++) ck_assert_double_eq(tn_get_at(w, TN_SHAPE(1, t, s)), 0);
    fine();
    tn_padding_mask(x, 0);
    ck_error(TN_EDTYPE, "tn_padding_mask: tokens must be indices, i64 or i32, got f32");
    tn_padding_mask(NULL, 0);
    ck_error(TN_EINVAL, "tn_padding_mask: tokens is NULL");
    tn_free(m), tn_free(table);
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

static void spread(const tn_tensor *t, double bound)
{
    double       sum = 0, square = 0, largest = 0;
    const double n = (double)tn_numel(t);
    for (int64_t i = 0; i < tn_numel(t); i++) {
        const double v = tn_get(t, i);
        sum += v, square += v * v, largest = fmax(largest, fabs(v));
    }
    ck_assert(largest <= bound && largest > 0.99 * bound);
    ck_assert_double_eq_tol(sum / n, 0, 4 * bound / sqrt(3 * n)); /* four standard deviations of the mean */
    ck_assert_double_eq_tol(square / n, bound * bound / 3, 4 * bound * bound * sqrt(4.0 / 45 / n));
}
static void zeros(const tn_tensor *t)
{
    for (int64_t i = 0; i < tn_numel(t); i++) ck_assert_double_eq(tn_get(t, i), 0);
}

TEST(initial_weights)
{
    tn_mha *m = tn_mha_new(.dim = 64, .heads = 4);
    spread(m->in_proj_weight, sqrt(6.0 / (64 + 3 * 64))); /* Xavier over all three matrices: the fan out is 3 · 64 */
    spread(m->out_proj->weight, 1.0 / 8);
    zeros(m->in_proj_bias), zeros(m->out_proj->bias);
    tn_free(m);
    m = tn_mha_new(.dim = 64, .heads = 4, .kdim = 32, .vdim = 96);
    spread(m->q_proj_weight, sqrt(6.0 / 128)), spread(m->k_proj_weight, sqrt(6.0 / 96)),
        spread(m->v_proj_weight, sqrt(6.0 / 160));
    tn_free(m);
}

TEST(printed)
{
    char    text[400];
    FILE   *f = tmpfile();
    tn_mha *m = tn_mha_new(.dim = D, .heads = H);
    tn_print_module(f, m);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    ck_assert_str_eq(text, "MultiheadAttention(\n  (out_proj): Linear(in_features=8, out_features=8, bias=True)\n)\n");
    tn_mha    *copy = tn_copy(m);
    tn_tensor *x = tn_normal(TN_SHAPE(B, T, D), 0, 1);
    ck_assert(tn_same_bits(tn_call(m, x), tn_call(copy, x)));
    ck_assert(copy->out_proj != m->out_proj && copy->in_proj_weight != m->in_proj_weight);
    tn_free(m), tn_free(copy);
}

/* ---- gradients of inputs and parameters, f64, by finite differences ---------------------------------------------- */

typedef struct {
    tn_mha    *m;
    tn_tensor *attn_mask, *key_padding_mask;
    bool       causal, cross;
} mha_call;

/* in: query, key, value, in_proj_weight, in_proj_bias, out_proj.weight. Returns output and weights as one tensor. */
static tn_tensor *mha_of(tn_tensor *const *in, int n, void *user)
{
    const mha_call *k = user;
    tn_mha         *m = k->m;
    tn_tensor *w, *const kept[3] = {m->in_proj_weight, m->in_proj_bias, m->out_proj->weight};
    (void)n;
    m->in_proj_weight = in[3], m->in_proj_bias = in[4], m->out_proj->weight = in[5];
    tn_tensor *y =
        tn_mha_forward(m, in[0], k->cross ? in[1] : in[0], k->cross ? in[2] : in[0], .attn_mask = k->attn_mask,
                       .key_padding_mask = k->key_padding_mask, .causal = k->causal, .weights = &w);
    m->in_proj_weight = kept[0], m->in_proj_bias = kept[1], m->out_proj->weight = kept[2];
    return y ? tn_cat(0, tn_reshape(y, TN_SHAPE(tn_numel(y))), tn_reshape(w, TN_SHAPE(tn_numel(w)))) : NULL;
}

TEST(mha_gradients)
{
    static const struct {
        int64_t     b, t, s;
        bool        causal, cross, second;
        const char *keys;
        double      dropout;
    } rows[] = {
        {2, 3, 3, false, false, true, NULL, 0},      {2, 3, 3, true, false, false, "..x xx.", 0}, /* no keys */
        {2, 2, 3, false, true, false, ".x. xxx", 0}, {2, 1, 1, false, false, false, NULL, 0},
        {0, 3, 3, true, false, false, NULL, 0},      {2, 0, 3, false, true, false, NULL, 0},
        {2, 3, 0, false, true, false, NULL, 0},      {1, 3, 3, true, false, false, NULL, 0.4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_mha    *m = tn_mha_new(.dim = 4, .heads = 2, .dropout = rows[i].dropout, .dtype = TN_F64);
        mha_call   k = {.m = m, .causal = rows[i].causal, .cross = rows[i].cross};
        tn_tensor *in[6] = {tn_normal_of(TN_F64, TN_SHAPE(rows[i].b, rows[i].t, 4), 0, 1),
                            tn_normal_of(TN_F64, TN_SHAPE(rows[i].b, rows[i].s, 4), 0, 1),
                            tn_normal_of(TN_F64, TN_SHAPE(rows[i].b, rows[i].s, 4), 0, 1),
                            m->in_proj_weight,
                            tn_normal_of(TN_F64, TN_SHAPE(12), 0, 1),
                            m->out_proj->weight};
        if (rows[i].keys) k.key_padding_mask = marks(rows[i].b, rows[i].s, rows[i].keys);
        if (i == 2) k.attn_mask = tn_normal_of(TN_F64, TN_SHAPE(1, 2, 2, 3), 0, 1);
        tn_status s =
            tn_gradcheck(mha_of, .count = 6, .inputs = in, .user = &k, .name = "mha", .second = rows[i].second);
        ck_assert_msg(s == TN_OK, "row %zu: %s", i, tn_error_message());
        tn_free(m);
    }
}

/* in: query, memory, then the parameters. */
static tn_tensor *additive_of(tn_tensor *const *in, int n, void *user)
{
    tn_additive_attention *m = user;
    tn_tensor *w, *const kept[4] = {m->query_proj->weight, m->memory_proj->weight, m->memory_proj->bias,
                                    m->score->weight};
    m->query_proj->weight = in[2], m->memory_proj->weight = in[3], m->memory_proj->bias = in[4],
    m->score->weight = in[5];
    tn_tensor *pad = n > 6 ? in[6] : NULL;
    tn_tensor *y = tn_additive_attention_forward(
        m, in[0], in[1], .key_padding_mask = pad ? tn_gt(tn_detach(pad), tn_scalar(0)) : NULL, .weights = &w);
    m->query_proj->weight = kept[0], m->memory_proj->weight = kept[1], m->memory_proj->bias = kept[2],
    m->score->weight = kept[3];
    return y ? tn_cat(0, tn_reshape(y, TN_SHAPE(tn_numel(y))), tn_reshape(w, TN_SHAPE(tn_numel(w)))) : NULL;
}
static tn_tensor *dot_of(tn_tensor *const *in, int n, void *user)
{
    tn_dot_attention *m = user;
    tn_tensor *const  kept = m->query_proj->weight;
    (void)n;
    m->query_proj->weight = in[2];
    tn_tensor *y = tn_dot_attention_forward(m, in[0], in[1],
                                            .key_padding_mask = tn_size(in[1], 1) == 3 ? marks(2, 3, "..x xxx") : NULL);
    m->query_proj->weight = kept;
    return y;
}

TEST(memory_gradients)
{
    static const int64_t sizes[][2] = {{2, 3}, {1, 1}, {0, 3}, {2, 0}}; /* T, S */
    for (int i = 0; i < 4; i++) {
        const int64_t          t = sizes[i][0], s = sizes[i][1];
        tn_additive_attention *m = tn_additive_attention_new(.query = 3, .memory = 2, .dtype = TN_F64);
        tn_dot_attention      *d = tn_dot_attention_new(.query = 3, .memory = 2, .general = true, .dtype = TN_F64);
        tn_tensor             *q = tn_normal_of(TN_F64, TN_SHAPE(2, t, 3), 0, 1),
                  *h = tn_normal_of(TN_F64, TN_SHAPE(2, s, 2), 0, 1);
        tn_tensor *in[6] = {
            q, h, m->query_proj->weight, m->memory_proj->weight, m->memory_proj->bias, m->score->weight};
        tn_gradcheck(additive_of, .count = 6, .inputs = in, .user = m, .name = "additive", .second = i == 0);
        fine();
        in[2] = d->query_proj->weight;
        tn_gradcheck(dot_of, .count = 3, .inputs = in, .user = d, .name = "dot", .second = i == 0);
        fine();
        tn_free(m), tn_free(d);
    }
}

/* A sequence that is all padding, and padding with any finite values: its weight is 0 and it has no effect. */
TEST(padding_changes_nothing)
{
    tn_additive_attention *m = tn_additive_attention_new(.query = 3, .memory = D);
    tn_tensor             *q = tn_normal(TN_SHAPE(2, 3), 0, 1), *h = tn_normal(TN_SHAPE(2, S, D), 0, 1), *w;
    tn_tensor             *pad = marks(2, S, "...xx xxxxx"),
              *y = tn_additive_attention_forward(m, q, h, .key_padding_mask = pad, .weights = &w);
    ck_assert(tn_shape_equal(tn_shape_of(w), TN_SHAPE(2, S)) && tn_shape_equal(tn_shape_of(y), TN_SHAPE(2, D)));
    zeros(tn_select(y, 0, 1)), zeros(tn_select(w, 0, 1));
    tn_tensor *one = tn_narrow(q, 0, 0, 1), *alone = tn_narrow(tn_narrow(h, 0, 0, 1), 1, 0, 3);
    ck_assert(tn_same_bits(tn_narrow(y, 0, 0, 1), tn_additive_attention_forward(m, one, alone)));
    tn_tensor *other = tn_masked_fill(h, tn_unsqueeze(pad, 2), 1e30);
    ck_assert(tn_same_bits(y, tn_additive_attention_forward(m, q, other, .key_padding_mask = pad)));
    tn_free(m);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

TEST(any_threads_any_batch)
{
    const int  threads[] = {1, 2, 3, 7};
    tn_mha    *m = tn_mha_new(.dim = 48, .heads = 4);
    tn_tensor *x = tn_normal(TN_SHAPE(5, 70, 48), 0, 1), *y[3], *gx[3], *gw[3];
    for (int i = 0; i < 3; i++) {
        tn_set_threads(threads[i]);
        tn_tensor *leaf = tn_requires_grad(tn_clone(x));
        y[i] = tn_mha_forward(m, leaf, leaf, leaf, .causal = true);
        tn_backward(tn_sum(tn_square(y[i])));
        fine();
        gx[i] = tn_grad(leaf), gw[i] = tn_clone(tn_grad(m->in_proj_weight));
        tn_zero_grads(m);
        ck_assert(tn_same_bits(y[i], y[0]) && tn_same_bits(gx[i], gx[0]) && tn_same_bits(gw[i], gw[0]));
    }
    for (int64_t b = 0; b < 5; b++) {
        tn_tensor *alone = tn_narrow(x, 0, b, 1);
        ck_assert(tn_same_bits(tn_mha_forward(m, alone, alone, alone, .causal = true), tn_narrow(y[0], 0, b, 1)));
    }
    /* one tensor three times or three tensors: one product or three */
    tn_tensor *c[3] = {x, tn_clone(x), tn_clone(x)};
    ck_assert(tn_same_bits(y[0], tn_mha_forward(m, c[0], c[1], c[2], .causal = true)));
    ck_assert(tn_same_bits(y[0], tn_mha_forward(m, c[0], c[1], c[1], .causal = true)));
    tn_tensor *other = tn_neg(x), *apart = tn_mha_forward(m, c[0], c[1], other);
    ck_assert(tn_same_bits(apart, tn_mha_forward(m, x, x, other)));
    tn_free(m);
}

/* All forms of a mask give the same result. */
TEST(masks_agree)
{
    tn_mha    *m = tn_mha_new(.dim = D, .heads = H);
    tn_tensor *q = tn_normal(TN_SHAPE(B, T, D), 0, 1), *h = tn_normal(TN_SHAPE(B, S, D), 0, 1), *two = holes(T, S);
    tn_tensor *four = tn_expand(two, TN_SHAPE(B, H, T, S)), *y = tn_mha_forward(m, q, h, h, .attn_mask = two);
    ck_assert(tn_same_bits(y, tn_mha_forward(m, q, h, h, .attn_mask = four)));
    ck_assert(tn_same_bits(y, tn_mha_forward(m, q, h, h, .attn_mask = tn_narrow(four, 1, 0, 1))));
    ck_assert(tn_same_bits(y, tn_mha_forward(m, q, h, h, .attn_mask = tn_reshape(four, TN_SHAPE(B * H, T, S)))));
    ck_assert(tn_same_bits(
        y, tn_mha_forward(m, q, h, h, .attn_mask = tn_masked_fill(tn_zeros(TN_SHAPE(T, S)), two, -HUGE_VAL))));
    tn_tensor *pad = padding(S), *as_mask = tn_expand(tn_reshape(pad, TN_SHAPE(B, 1, 1, S)), TN_SHAPE(B, 1, T, S));
    ck_assert(tn_same_bits(tn_mha_forward(m, q, h, h, .key_padding_mask = pad),
                           tn_mha_forward(m, q, h, h, .attn_mask = as_mask)));
    tn_free(m);
}

/* Dropout affects the weights in training only; the weights returned are those that were used. */
TEST(dropout)
{
    tn_mha    *m = tn_mha_new(.dim = D, .heads = H, .dropout = 0.5);
    tn_tensor *x = tn_normal(TN_SHAPE(B, 20, D), 0, 1), *w;
    tn_mha_forward(m, x, x, x, .weights = &w, .weights_per_head = true);
    int64_t gone = 0;
    for (int64_t i = 0; i < tn_numel(w); i++) gone += tn_get(w, i) == 0;
    ck_assert(gone > tn_numel(w) * 4 / 10 && gone < tn_numel(w) * 6 / 10);
    tn_eval(m);
    tn_mha_forward(m, x, x, x, .weights = &w, .weights_per_head = true);
    for (int64_t i = 0; i < tn_numel(w); i++) ck_assert(tn_get(w, i) > 0);
    tn_free(m);
}

/* ---- failing allocations ----------------------------------------------------------------------------------------- */

static double digest(tn_tensor *t) { return t ? tn_item(tn_sum(tn_mul(tn_detach(t), tn_detach(t)))) : NAN; }

static double mha_step(void)
{
    tn_mha    *m = tn_mha_new(.dim = 4, .heads = 2, .dropout = 0.2);
    tn_tensor *x = tn_requires_grad(tn_normal(TN_SHAPE(2, 3, 4), 0, 1)), *w;
    double     sum = NAN;
    if (m) {
        tn_tensor *y = tn_mha_forward(m, x, x, x, .causal = true,
                                      .key_padding_mask = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 3)), .weights = &w);
        ck_assert(!y == !w);
        tn_backward(tn_sum(tn_square(y)));
        sum = digest(y) + digest(w) + digest(tn_grad(x)) + digest(tn_grad(m->in_proj_weight));
    }
    tn_free(m);
    return sum;
}
static double memory_step(void)
{
    tn_additive_attention *m = tn_additive_attention_new(.query = 3, .memory = 2);
    tn_dot_attention      *d = tn_dot_attention_new(.query = 3, .memory = 2, .general = true);
    tn_tensor *q = tn_normal(TN_SHAPE(2, 3), 0, 1), *h = tn_requires_grad(tn_normal(TN_SHAPE(2, 4, 2), 0, 1)), *w;
    double     sum = NAN;
    if (m && d) {
        tn_tensor *y = tn_additive_attention_forward(m, q, h, .weights = &w), *z = tn_dot_attention_forward(d, q, h);
        ck_assert(tn_error() == TN_OK || !z);
        tn_backward(tn_sum(tn_square(tn_add(y, z))));
        sum = digest(y) + digest(z) + digest(tn_grad(h)) + digest(tn_grad(m->memory_proj->weight));
    }
    tn_free(m), tn_free(d);
    return sum;
}

static double once(double (*step)(void))
{
    tn_seed(3);
    const tn_scope s = tn_scope_begin();
    const double   sum = step();
    tn_scope_end(s);
    return sum;
}

TEST_EACH(memory_fails, 2)
{
    double (*const steps[])(void) = {mha_step, memory_step};
    tn_set_threads(1);
    tn_faulty_memory_begin();
    const double want = once(steps[_i]);
    fine();
    tn_fail_memory(-1, false);
    once(steps[_i]);
    const int64_t calls = tn_memory_calls();
    ck_assert_int_gt(calls, 50);
    for (int64_t at = 0; at < calls; at++)
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            tn_fail_memory(at, for_ever);
            once(steps[_i]);
            ck_assert_msg(tn_error() == TN_ENOMEM, "call %lld: %s", (long long)at, tn_error_message());
            tn_clear_error();
            tn_fail_memory(-1, false);
            ck_assert_double_eq(once(steps[_i]), want);
        }
    fine();
    tn_faulty_memory_end();
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(wrong_configs)
{
    ck_refused(tn_mha_new(.dim = 256, .heads = 10), TN_EINVAL,
               "tn_mha_new: 10 heads do not divide width 256; .dim must be a multiple of .heads");
    ck_refused_has(tn_mha_new(.dim = 8, .heads = 2, .positions = tn_rotary_new(.theta = NAN)), TN_EINVAL,
                   "rope: .theta is ");
    ck_refused(tn_mha_new(.dim = 8, .heads = 2, .positions = tn_rotary_new(.scaling = TN_ROPE_LLAMA3)), TN_EINVAL,
               "rope: .trained is 0, but this scaling needs the number of positions in training");
    ck_refused(tn_mha_new(.dim = 8), TN_EINVAL, "tn_mha_new: .heads is 0, but must be at least 1");
    ck_refused(tn_mha_new(.heads = 8), TN_EINVAL, "tn_mha_new: .dim is 0, but must be at least 1");
    ck_refused(tn_mha_new(.dim = 8, .heads = 2, .kdim = -1), TN_EINVAL,
               "tn_mha_new: .kdim is -1, but must be at least 1");
    ck_refused(tn_mha_new(.dim = 8, .heads = 2, .dropout = 1.5), TN_EINVAL,
               "tn_mha_new: .dropout is 1.5, but a probability is from 0 to 1");
    ck_refused(tn_mha_new(.dim = 8, .heads = 2, .dtype = TN_I64), TN_EDTYPE,
               "tn_mha_new: .dtype is i64, but parameters are f32, f64 or bf16");
    ck_refused(tn_dot_attention_new(.query = 4, .memory = 8), TN_EINVAL,
               "tn_dot_attention_new: a query of width 4 does not fit a memory of width 8; set .general = true to "
               "multiply by a matrix");
    ck_refused(tn_dot_attention_new(.query = 4), TN_EINVAL,
               "tn_dot_attention_new: .memory is 0, but must be at least 1");
    ck_refused(tn_additive_attention_new(.query = 4), TN_EINVAL,
               "tn_additive_attention_new: .memory is 0, but must be at least 1");
}

typedef struct {
    tn_module base;
    tn_mha   *attn;
} model;
TN_MODULE(model);

TEST(wrong_calls)
{
    model     *root = tn_module_new(model);
    tn_mha    *m = root->attn = tn_child(root, "attn", tn_mha_new(.dim = D, .heads = H, .kdim = 6));
    tn_tensor *q = tn_zeros(TN_SHAPE(B, T, D)), *k = tn_zeros(TN_SHAPE(B, S, 6)), *v = tn_zeros(TN_SHAPE(B, S, D));
    ck_assert(tn_built(root) == root);
    tn_mha_forward(m, NULL, k, v);
    ck_error(TN_EINVAL, "attn: mha: query is NULL");
    tn_mha_forward(m, q, NULL, v);
    ck_error(TN_EINVAL, "attn: mha: key is NULL");
    tn_mha_forward(m, q, k, NULL);
    ck_error(TN_EINVAL, "attn: mha: value is NULL");
    tn_mha_forward(m, tn_zeros(TN_SHAPE(T, D)), k, v);
    ck_error(TN_ESHAPE, "attn: mha: query [4, 8] must be [B, T, 8]; one sequence is a batch of 1: see tn_unsqueeze");
    tn_mha_forward(m, q, q, v);
    ck_error(TN_ESHAPE, "attn: mha: key [2, 4, 8] must be [B, S, 6]");
    tn_mha_forward(m, q, tn_zeros(TN_SHAPE(3, S, 6)), v);
    ck_error(TN_ESHAPE, "attn: mha: query [2, 4, 8] and key [3, 5, 6] differ in batch size");
    tn_mha_forward(m, q, k, q);
    ck_error(TN_ESHAPE, "attn: mha: key [2, 5, 6] and value [2, 4, 8] differ in the first two dims");
    tn_mha_forward(m, q, k, v, .attn_mask = holes(T, T));
    ck_error(TN_ESHAPE, "attn: mha: attn_mask [4, 4] must be [T, S] = [4, 5], or [B·heads, T, S] with B·heads = 4, or "
                        "[B, heads, T, S]");
    tn_mha_forward(m, q, k, v, .attn_mask = tn_zeros(TN_SHAPE(B, T, S)));
    ck_error(TN_ESHAPE,
             "attn: mha: attn_mask [2, 4, 5] must be [T, S] = [4, 5], or [B·heads, T, S] with B·heads = 4, or "
             "[B, heads, T, S]");
    tn_mha_forward(m, q, k, v, .attn_mask = tn_zeros(TN_SHAPE(B, 3, T, S)));
    ck_error(TN_ESHAPE,
             "attn: mha: attn_mask [2, 3, 4, 5] must be [T, S] = [4, 5], or [B·heads, T, S] with B·heads = 4, or "
             "[B, heads, T, S]");
    tn_mha_forward(m, q, k, v, .attn_mask = tn_zeros_of(TN_I64, TN_SHAPE(T, S)));
    ck_error(TN_EDTYPE, "attn: mha: attn_mask is i64, but must be bool (true: may not be attended to) or floating "
                        "(added to the scores)");
    tn_mha_forward(m, q, k, v, .key_padding_mask = padding(T));
    ck_error(TN_ESHAPE, "attn: mha: key_padding_mask [2, 4] must be [B, S] = [2, 5]; true is padding");
    tn_mha_forward(m, q, k, v, .key_padding_mask = tn_zeros(TN_SHAPE(B, S)));
    ck_error(TN_EDTYPE, "attn: attention: key_padding_mask must be bool (true: padding), got f32");
    tn_mha_forward(m, q, k, v, .memory = true);
    ck_error(TN_EINVAL, "attn: mha: .memory is set, but .cache is NULL");
    tn_call(m, q);
    ck_error(TN_ESHAPE, "attn: mha: key [2, 4, 8] must be [B, S, 6]");
    tn_mha_forward((tn_mha *)NULL, q, k, v);
    ck_error(TN_EINVAL,
             "tn_mha: the module is NULL: it is an absent child, or its constructor failed and the error was cleared");
    tn_mha_forward(m, tn_zeros(TN_SHAPE(B, T, 4)), k, v);
    ck_error(TN_ESHAPE, "attn: mha: query [2, 4, 4] must be [B, T, 8]");

    tn_dot_attention      *d = tn_dot_attention_new(.memory = D);
    tn_additive_attention *a = tn_additive_attention_new(.query = 3, .memory = D, .hidden = 7);
    tn_dot_attention_forward(d, NULL, v);
    ck_error(TN_EINVAL, "dot_attention: query is NULL");
    tn_additive_attention_forward(a, q, NULL);
    ck_error(TN_EINVAL, "additive_attention: memory is NULL");
    tn_additive_attention_forward(a, q, v);
    ck_error(TN_ESHAPE, "additive_attention: query [2, 4, 8] must be [B, T, 3] or [B, 3]");
    tn_dot_attention_forward(d, q, k);
    ck_error(TN_ESHAPE, "dot_attention: memory [2, 5, 6] must be [B, S, 8]");
    tn_dot_attention_forward(d, tn_zeros(TN_SHAPE(3, D)), v);
    ck_error(TN_ESHAPE, "dot_attention: query [3, 8] and memory [2, 5, 8] differ in batch size");
    tn_additive_attention_forward(a, tn_zeros(TN_SHAPE(B, 3)), v, .keys = k);
    ck_error(TN_ESHAPE, "additive_attention: keys [2, 5, 6] must be [B, S, 7], one per vector of memory [2, 5, 8]");
    tn_dot_attention_forward(d, q, v, .key_padding_mask = padding(T));
    ck_error(TN_ESHAPE, "dot_attention: key_padding_mask [2, 4] must be [B, S] = [2, 5]; true is padding");
    tn_free(d), tn_free(a), tn_free(root);
}
