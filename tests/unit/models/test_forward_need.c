/* test_forward_need.c — the memory of a forward, before it is run: never too low, at most 15 % too high, for models
 * of several kinds, sizes and numbers of threads. */
#include "models/models.h"
#include "tests/common/check_main.h"
#include "tests/common/errors.h"

typedef struct {
    void   *model;
    bool    encoder;
    int64_t tokens, most; /* of a row; the most rows that were asked for */
} part;

static tn_tensor *forward(int64_t rows, void *user)
{
    part      *p = user;
    tn_tensor *ids = tn_full_of(TN_I64, TN_SHAPE(rows, p->tokens), 3);
    if (rows > p->most) p->most = rows;
    return p->encoder ? tn_bert_forward(p->model, ids) : tn_lm_run(p->model, (tn_decoder_args){.ids = ids});
}

static void *model(int which)
{
    switch (which) {
    case 0: return tn_gpt_new(.vocab = 300, .dim = 64, .layers = 2, .heads = 4, .positions = 1024);
    case 1:
        return tn_llama_new(.vocab = 2000, .dim = 48, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 130,
                            .positions = 1024);
    case 2:
        return tn_llama_new(.vocab = 100, .dim = 32, .layers = 3, .heads = 4, .ff = 88, .positions = 1024,
                            .scores.window = 64);
    case 3:
        return tn_llama_new(.type = "mixtral", .vocab = 100, .dim = 32, .layers = 2, .heads = 4, .ff = 64,
                            .positions = 1024, .experts = 4, .experts_per_token = 2);
    default: return tn_bert_new(.vocab = 300, .dim = 48, .layers = 2, .heads = 4, .ff = 192, .positions = 1024);
    }
}
enum { MODELS = 5 };

/* Loop: model. */
TEST_EACH(need_before_the_run, MODELS)
{
    static const int64_t sizes[][2] = {{1, 16}, {7, 16}, {200, 16}, {33, 32}, {6, 100}, {16, 64}, {4, 256}, {3, 700}};
    part                 p = {.model = model(_i), .encoder = _i == MODELS - 1};
    tn_module_train(p.model, false);
    tn_set_packing_limit(0);
    for (int threads = 1; threads < 8; threads += 3)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int64_t rows = sizes[i][0];
            tn_set_threads(threads);
            p.tokens = sizes[i][1], p.most = 0;
            const size_t need = tn_forward_need(forward, &p, rows, p.tokens);
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            ck_assert_int_lt((p.most - 1) * p.tokens, 512);
            const tn_scope s = tn_no_grad_begin();
            const size_t   before = tn_memory_now().live;
            tn_reset_peak();
            forward(rows, &p);
            const size_t taken = tn_memory_now().peak - before;
            tn_scope_end(s);
            ck_assert_msg(need >= taken && (double)need <= 1.15 * (double)taken + 4096,
                          "model %d, %d threads, [%d, %d]: need %zu, taken %zu", _i, threads, (int)rows, (int)p.tokens,
                          need, taken);
        }
    tn_set_threads(0);
    tn_set_packing_limit(SIZE_MAX);
    tn_module_free(p.model);
}

TEST(mistakes)
{
    part p = {.model = model(0), .tokens = 2000};
    ck_assert_uint_eq(tn_forward_need(NULL, &p, 2, 3), 0);
    ck_error(TN_EINVAL, "tn_forward_need: no function, 2 rows of 3 tokens; expected a function and at least 1 of each");
    ck_assert_uint_eq(tn_forward_need(forward, &p, 1, 2000), 0);
    ck_assert_int_ne(tn_error(), TN_OK); /* of the forward */
    tn_clear_error();
    tn_module_free(p.model);
}
