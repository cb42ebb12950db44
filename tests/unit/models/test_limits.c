/* test_limits.c — inference under 20 memory limits: a call fails only if it also fails without packed copies of the
 * weights, and has the same bits, however often it is repeated. */
#include "extras.h"
#include "tests/common/check_main.h"

enum { LIMITS = 20, CALLS = 8 }; /* the sixth product with a weight copies it */

static tn_module *model;
static tn_tensor *input;

static tn_tensor *called(void) { return tn_call(model, input); }
static tn_tensor *logits(void) { return tn_gpt_forward((void *)model, input); }
static tn_tensor *words(void)
{
    tn_decoding *d = tn_gpt_decoding((void *)model, 4, 20);
    tn_generated g = tn_generate(d, input, .most = 8, .beams = 2, .best = 1);
    tn_decoding_free(d);
    return g.tokens;
}
static tn_tensor *llama_words(void)
{
    tn_decoding *d = tn_llama_decoding((void *)model, 1, 20);
    tn_generated g = tn_generate(d, input, .most = 12);
    tn_decoding_free(d);
    return g.tokens;
}

static tn_tensor *translation(void) { return tn_seq2seq_generate((void *)model, input, .beams = 2, .most = 8).tokens; }
static tn_tensor *classes(void) { return tn_tuned_forward((void *)model, input); }

static tn_tensor *ids(int64_t rows, int64_t n) { return tn_randint(TN_SHAPE(rows, n), 0, 50); }

/* Sets model and input of case i; returns the call. */
static tn_tensor *(*begin(int i))(void)
{
    switch (i) {
    case 0:
        model = (void *)tn_linear_new(.in = 300, .out = 200), input = tn_normal(TN_SHAPE(1, 300), 0, 1);
        return called;
    case 1:
        model = (void *)tn_linear_new(.in = 96, .out = 160), input = tn_normal(TN_SHAPE(5, 96), 0, 1);
        return called;
    case 2:
        model = (void *)tn_mha_new(.dim = 64, .heads = 4), input = tn_normal(TN_SHAPE(1, 7, 64), 0, 1);
        return called;
    case 3:
        model = (void *)tn_lstm_new(.in = 64, .hidden = 48), input = tn_normal(TN_SHAPE(2, 5, 64), 0, 1);
        return called;
    case 4:
        model = (void *)tn_bert_new(.vocab = 50, .dim = 64, .layers = 2, .heads = 4, .ff = 128, .positions = 16);
        input = ids(2, 9);
        return called;
    case 5:
    case 6:
        model = (void *)tn_gpt_new(.vocab = 50, .dim = 64, .layers = 2, .heads = 4, .positions = 32);
        input = ids(i == 5 ? 1 : 2, 6);
        return i == 5 ? logits : words;
    case 7:
    case 8:
        model = (void *)tn_llama_new(.vocab = 50, .dim = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 96);
        input = ids(1, 4);
        if (i == 8) tn_eval(model), tn_quantize(model, .activations = true);
        return llama_words;
    case 9:
        model = (void *)tn_seq2seq_new(.source_words = 50, .dim = 64, .layers = 2, .heads = 4, .ff = 128,
                                       .positions = 32, .shared = true);
        input = ids(2, 7);
        return translation;
    case 10:
        model = (void *)tn_tuned_new(
            tn_bert_new(.vocab = 50, .dim = 64, .layers = 2, .heads = 4, .ff = 128, .positions = 16), .n = 5);
        input = ids(1, 9);
        return classes;
    case 11:
        model = (void *)tn_gru_new(.in = 64, .hidden = 48), input = tn_normal(TN_SHAPE(2, 5, 64), 0, 1);
        return called;
    case 12:
        model = (void *)tn_llama_new(.vocab = 50, .dim = 64, .layers = 2, .heads = 4, .ff = 96, .experts = 4,
                                     .type = "mixtral");
        input = ids(1, 4);
        return llama_words;
    default:
        model = (void *)tn_vit_new(.image = 16, .patch = 8, .channels = 1, .dim = 64, .layers = 2, .heads = 4,
                                   .ff = 128, .classes = 10);
        input = tn_normal(TN_SHAPE(1, 1, 16, 16), 0, 1);
        return called;
    }
}
enum { CASES = 14 };

/* A sum of a call's result; NAN: out of memory. */
static double once(tn_tensor *(*call)(void))
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *y = call();
    double         sum = NAN;
    ck_assert_msg(tn_error() == TN_OK || tn_error() == TN_ENOMEM, "%s", tn_error_message());
    if (tn_error() == TN_OK) { /* without allocations, of which one could fail */
        sum = 0;
        for (int64_t i = 0; i < tn_numel(y); i++) sum += (double)(i % 7 + 1) * tn_get(y, i);
    }
    tn_clear_error();
    tn_scope_end(s);
    return sum;
}

/* The memory that a call needs, and that of all copies. */
static void measure(tn_tensor *(*call)(void), size_t *need, size_t *copies)
{
    for (int k = 0; k < CALLS; k++) once(call);
    *copies = tn_memory_now().packed;
    tn_set_packing_limit(0);
    tn_reset_peak();
    const size_t before = tn_memory_now().live;
    once(call);
    *need = tn_memory_now().peak - before;
}

TEST_EACH(an_answer_or_memory_that_is_needed, CASES)
{
    const tn_scope s = tn_scope_begin();
    int            answers = 0, copied = 0;
    size_t         need, copies;
    tn_seed(1);
    tn_tensor *(*const call)(void) = begin(_i);
    tn_eval(model);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    measure(call, &need, &copies);
    ck_assert(_i == 8 || copies > 0);
    const size_t start = tn_memory_now().live;
    const double answer = once(call);
    for (size_t i = 1; i <= LIMITS; i++) { /* half of them around what is needed, half with room for some copies */
        const size_t limit = start + (i <= LIMITS / 2 ? need * i / 8 : need + copies * (i - LIMITS / 2) / 8);
        tn_set_packing_limit(0);
        tn_set_memory_limit(limit);
        const double without = once(call);
        ck_assert(isnan(without) || without == answer);
        tn_set_packing_limit(SIZE_MAX);
        for (int k = 0; k < CALLS; k++) {
            const double with = once(call);
            ck_assert_msg(with == answer || (isnan(with) && isnan(without)),
                          "case %d, limit %zu of %zu, call %d: %g, without copies %g", _i, limit - start, need, k, with,
                          without);
        }
        tn_set_memory_limit(0);
        answers += !isnan(without), copied += tn_memory_now().packed > 0;
    }
    ck_assert_msg(answers > LIMITS / 2 && answers < LIMITS, "%d answers", answers);
    ck_assert_msg(_i == 8 || copied > 0, "no limit with copies");
    tn_free(model);
    tn_set_packing_limit(SIZE_MAX);
    tn_scope_end(s);
}

/* The limit of copies: none, those that fit, and freed at once. */
TEST(limited_copies)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor *(*const call)(void) = begin(4);
    tn_eval(model);
    tn_set_packing_limit(0);
    for (int k = 0; k < CALLS; k++) once(call);
    ck_assert_uint_eq(tn_memory_now().packed, 0);
    tn_set_packing_limit(100000);
    for (int k = 0; k < CALLS; k++) once(call);
    const size_t some = tn_memory_now().packed;
    ck_assert(some > 0 && some <= 100000);
    tn_set_packing_limit(SIZE_MAX);
    for (int k = 0; k < CALLS; k++) once(call);
    const size_t all = tn_memory_now().packed, live = tn_memory_now().live;
    ck_assert(all > some);
    tn_set_packing_limit(0);
    ck_assert_uint_eq(tn_memory_now().packed, 0);
    ck_assert(tn_memory_now().live <= live - all);
    tn_set_packing_limit(SIZE_MAX);
    tn_free(model);
    tn_scope_end(s);
}
