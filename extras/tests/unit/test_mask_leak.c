/* test_mask_leak.c — tn_mask_leak finds planted masks that leak, with module, row and position, and none in models that
 * are right; tokens, random numbers and gradients are as before. */
#include "extras.h"
#include "tests/common/check_main.h"

enum { WORDS = 50, DIM = 12, HEADS = 3 };

typedef enum { RIGHT, NO_MASK, NEXT, SHORT, PREFIX, CHUNKS, ONE_ROW, PADDING } fault;

/* A causal language model of two attentions, the second of which has a fault; or, with padding, an encoder. */
typedef struct {
    tn_module     base;
    tn_embedding *words;
    tn_positions *places;
    tn_mha       *attn[2];
    tn_lstm      *lstm; /* NULL: none */
    tn_linear    *out;
    bool          time_first;
} writer;
typedef struct {
    tn_tensor *ids, *padding; /* padding NULL: causal */
    fault      is;
} input;

/* True if query t of a row may not attend to key s. */
static bool hides(fault f, int64_t rows, int64_t row, int64_t t, int64_t s)
{
    switch (f) {
    case NO_MASK: return false;
    case NEXT: return s > t + 1;
    case SHORT: return s > t && t < 5;
    case PREFIX: return s > t && s >= 4;
    case CHUNKS: return s > t && s / 3 != t / 3;
    case ONE_ROW: return s > t && row != rows - 1;
    default: return s > t;
    }
}
static tn_tensor *mask_of(fault f, int64_t rows, int64_t n)
{
    tn_tensor *m = tn_zeros_of(TN_BOOL, TN_SHAPE(rows, 1, n, n));
    for (int64_t i = 0; i < rows * n * n; i++)
        if (hides(f, rows, i / (n * n), i / n % n, i % n)) tn_set_i64(m, i, 1);
    return m;
}

static tn_tensor *writer_forward(writer *m, const input *in)
{
    if (!tn_ready(m)) return NULL;
    tn_frame      f = tn_enter(m);
    const int64_t rows = tn_size(in->ids, 0), n = tn_size(in->ids, 1);
    tn_tensor    *x = tn_dropout(tn_call(m->places, tn_call(m->words, in->ids)), 0.2);
    for (int i = 0; i < 2; i++) {
        const fault is = i ? in->is : RIGHT;
        tn_tensor  *mask = in->padding ? NULL : mask_of(is, rows, n), *padding = is == PADDING ? NULL : in->padding;
        x = tn_add(x, tn_mha_forward(m->attn[i], x, x, x, .attn_mask = mask, .key_padding_mask = padding));
    }
    if (m->lstm && m->time_first) x = tn_transpose(x, 0, 1);
    if (m->lstm) x = tn_call(m->lstm, x);
    if (m->lstm && m->time_first) x = tn_transpose(x, 0, 1);
    return tn_leave(f, tn_call(m->out, x));
}

TN_MODULE(writer);
static writer *writer_new(int lstm, bool time_first) /* lstm: 1, or 2 if bidirectional */
{
    writer *m = tn_module_new(writer);
    m->words = tn_child(m, "words", tn_embedding_new(.count = WORDS, .dim = DIM));
    m->places = tn_child(m, "places", tn_learned_positions_new(.dim = DIM, .length = 64));
    m->attn[0] = tn_child(m, "first", tn_mha_new(.dim = DIM, .heads = HEADS));
    m->attn[1] = tn_child(m, "second", tn_mha_new(.dim = DIM, .heads = HEADS));
    if (lstm)
        m->lstm = tn_child(m, "lstm",
                           tn_lstm_new(.in = DIM, .hidden = DIM, .bidirectional = lstm == 2, .time_first = time_first));
    m->out = tn_child(m, "out", tn_linear_new(.in = lstm == 2 ? 2 * DIM : DIM, .out = WORDS));
    m->time_first = time_first;
    return tn_built(m);
}

static tn_tensor *run(void *model, void *user) { return writer_forward(model, user); }

/* Different tokens in each row. */
static tn_tensor *some_ids(int64_t rows, int64_t n)
{
    tn_tensor *ids = tn_empty_of(TN_I64, TN_SHAPE(rows, n));
    for (int64_t i = 0; i < rows * n; i++) tn_set_i64(ids, i, (i % n + 7 * (i / n)) % WORDS);
    return ids;
}

static tn_leak leak_of(writer *m, input in)
{
    tn_tensor         *before = tn_clone(in.ids);
    const tn_generator g = *tn_current_generator();
    const tn_leak      l = tn_mask_leak(.model = m, .run = run, .user = &in, .tokens = in.ids, .padding = in.padding);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert(!memcmp(tn_data(before), tn_data(in.ids), (size_t)tn_numel(before) * sizeof(int64_t)));
    ck_assert(!memcmp(&g, tn_current_generator(), sizeof g));
    return l;
}

/* Sizes at which the number of rows, positions, heads or the width are equal, too; in training mode with dropout. */
TEST(right_models_do_not_leak)
{
    const int64_t sizes[][2] = {{1, 2},   {2, 1},  {2, 2},  {3, 3},  {4, 3},  {3, 4},
                                {12, 12}, {2, 12}, {2, 13}, {2, 40}, {13, 12}};
    for (int way = 0; way < 4; way++) {
        writer *m = writer_new(way > 1, way == 3);
        tn_module_train(m, way != 1);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const tn_leak l = leak_of(m, (input){some_ids(sizes[i][0], sizes[i][1]), NULL, RIGHT});
            ck_assert_msg(l.size == 0, "%lld x %lld: %s", (long long)sizes[i][0], (long long)sizes[i][1], l.path);
        }
        for (tn_each p = tn_parameters(m); tn_next(&p);) ck_assert_ptr_null(tn_grad(p.tensor));
        tn_free(m);
    }
}

TEST(planted_faults_are_found)
{
    const int64_t sizes[][2] = {{3, 8}, {3, 3}, {12, 12}, {4, 31}};
    writer       *m = writer_new(0, false);
    tn_eval(m);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (fault f = NO_MASK; f < PADDING; f++) {
            const int64_t rows = sizes[i][0], n = sizes[i][1];
            const tn_leak l = leak_of(m, (input){some_ids(rows, n), NULL, f});
            if (f == SHORT && n < 7) {
                ck_assert(l.size == 0);
                continue;
            }
            ck_assert_msg(l.size > 0 && isfinite(l.size) && !strncmp(l.path, "second.", 7), "fault %d, %lld tokens: %s",
                          (int)f, (long long)n, l.path);
            if (n == HEADS) continue; /* the weights of a head can be read as a position */
            ck_assert_int_eq(l.row, f == ONE_ROW ? rows - 1 : 0);
            ck_assert(l.position < l.from && l.from < n && !hides(f, rows, l.row, l.position, l.from));
        }
    tn_free(m);
}

TEST(layers_that_read_backwards_are_found)
{
    for (int way = 0; way < 4; way++) {
        const int64_t rows = 4 + 3 * (way / 2); /* 7 rows of 7 tokens, too */
        writer       *m = writer_new(2, way % 2);
        const tn_leak l = leak_of(m, (input){some_ids(rows, 7), NULL, RIGHT});
        ck_assert_msg(l.size > 0 && !strcmp(l.path, "lstm"), "way %d: '%s'", way, l.path);
        tn_free(m);
    }
}

TEST(padding_is_not_read)
{
    writer *m = writer_new(0, false);
    for (int64_t n = 2; n < 14; n++) {
        tn_tensor *padding = tn_zeros_of(TN_BOOL, TN_SHAPE(3, n));
        tn_set_i64(padding, 2 * n - 1, 1);
        for (fault f = RIGHT; f <= PADDING; f += PADDING) {
            const tn_leak l = leak_of(m, (input){some_ids(3, n), padding, f});
            ck_assert_msg((l.size > 0) == (f == PADDING), "%lld: %s", (long long)n, l.path);
            if (f == PADDING) ck_assert(l.row == 1 && l.from == -1 && !strncmp(l.path, "second.", 7));
        }
        /* on the left, where the first token is padding, too */
        tn_tensor *left = tn_zeros_of(TN_BOOL, TN_SHAPE(3, n)), *ids = tn_zeros_of(TN_I64, TN_SHAPE(3, n));
        tn_set_i64(left, n, 1), tn_set_i64(ids, 2 * n - 1, 5);
        for (fault f = RIGHT; f <= PADDING; f += PADDING)
            ck_assert((leak_of(m, (input){ids, left, f}).size > 0) == (f == PADDING));
        tn_set_i64(ids, 2 * n - 1, 0);
        ck_assert(
            tn_mask_leak(.model = m, .run = run, .user = &(input){ids, left, PADDING}, .tokens = ids, .padding = left)
                .size == 0);
        ck_error(TN_EINVAL, "tn_mask_leak: no token where .padding is true can be another one of its row");
        /* rows without padding: nothing is hidden */
        ck_assert(leak_of(m, (input){ids, tn_zeros_of(TN_BOOL, TN_SHAPE(3, n)), PADDING}).size == 0);
    }
    tn_free(m);
}

/* The models of the library. */
typedef struct {
    tn_tensor *x, *y, *padding;
    int        kind;
} batch;
static tn_tensor *library_loss(void *m, void *user)
{
    const batch *b = user;
    if (b->kind == 2) return tn_seq2seq_loss((tn_seq2seq *)m, b->x, b->y);
    if (b->kind == 3)
        return tn_bert_loss((tn_bert *)m, .ids = b->x, .key_padding_mask = b->padding,
                            .masked = tn_zeros_of(TN_I64, TN_SHAPE(1)), .words = tn_zeros_of(TN_I64, TN_SHAPE(1)));
    return tn_lm_loss(m, b->x, NULL);
}
TEST(the_librarys_models_do_not_leak)
{
    void *m[] = {tn_gpt_new(.vocab = WORDS, .dim = DIM, .layers = 2, .heads = HEADS, .positions = 16),
                 tn_llama_new(.vocab = WORDS, .dim = DIM, .layers = 2, .heads = HEADS, .positions = 16, .experts = 4,
                              .experts_per_token = 2),
                 tn_seq2seq_new(.source_words = WORDS, .shared = true, .dim = DIM, .layers = 2, .heads = HEADS,
                                .ff = 16, .positions = 16, .end = 3, .begin = 2),
                 tn_bert_new(.vocab = WORDS, .dim = DIM, .layers = 2, .heads = HEADS, .ff = 16, .positions = 16)};
    batch b = {.x = some_ids(4, 10), .y = some_ids(4, 10), .padding = tn_zeros_of(TN_BOOL, TN_SHAPE(4, 10))};
    for (int64_t i = 0; i < 4; i++)
        for (int64_t k = 10 - i; k < 10; k++) tn_set_i64(b.padding, i * 10 + k, 1);
    for (b.kind = 0; b.kind < 4; b.kind++) {
        const tn_leak l =
            tn_mask_leak(.model = m[b.kind], .run = library_loss, .user = &b, .tokens = b.kind == 2 ? b.y : b.x,
                         .padding = b.kind == 3 ? b.padding : NULL, .padding_id = 0);
        ck_assert_msg(tn_error() == TN_OK && l.size == 0, "%d: %s, row %lld, position %lld, from %lld: %g %s", b.kind,
                      l.path, (long long)l.row, (long long)l.position, (long long)l.from, l.size, tn_error_message());
        tn_module_free(m[b.kind]);
    }
}

static tn_tensor *run_nothing(void *model, void *user)
{
    (void)model, (void)user;
    return NULL;
}
TEST(mistakes_are_named)
{
    writer    *m = writer_new(0, false);
    tn_tensor *ids = some_ids(2, 6), *wide = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 7));
    const char needs[] = "tn_mask_leak: needs .run, .tokens, i64 [B, T], and .padding NULL or bool [B, T], both "
                         "contiguous";
    for (int i = 0; i < 6; i++) {
        tn_tensor    *tokens = i == 1   ? NULL
                               : i == 2 ? tn_reshape(ids, TN_SHAPE(-1))
                               : i == 3 ? tn_transpose(ids, 0, 1)
                               : i == 4 ? tn_zeros(TN_SHAPE(2, 6))
                                        : ids;
        const tn_leak l =
            tn_mask_leak(.model = m, .run = i ? run : NULL, .tokens = tokens, .padding = i == 5 ? wide : NULL);
        ck_assert(l.size == 0);
        ck_error(TN_EINVAL, needs);
    }
    ck_assert(tn_mask_leak(.model = m, .run = run_nothing, .tokens = ids).size == 0);
    ck_error(TN_EINVAL, "tn_mask_leak: no module of .model has a result [2, 6, …] in .run");
    ck_assert(tn_mask_leak(.model = m, .run = run, .user = &(input){tn_empty_of(TN_I64, TN_SHAPE(0, 6)), NULL, RIGHT},
                           .tokens = tn_empty_of(TN_I64, TN_SHAPE(0, 6)))
                  .size == 0);
    ck_assert(tn_error() == TN_OK);
    tn_free(m);
}
