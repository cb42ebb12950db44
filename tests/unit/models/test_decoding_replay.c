/* test_decoding_replay.c — tokens that are read by replays of the step: the same bits as by the step itself, with any
 * number of rows and threads, also after the cache has been changed; the step itself where a replay cannot be; and the
 * errors of tn_kv_cache_record and tn_kv_cache_replay. */
#include "core/base/thread.h"
#include "models/models.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

static void *gpt(void)
{
    return tn_gpt_new(.vocab = 11, .dim = 16, .layers = 2, .heads = 4, .positions = 64, .init = 0.5);
}
static void *llama(void)
{
    return tn_llama_new(.vocab = 11, .dim = 16, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 24, .positions = 64,
                        .init = 0.5);
}
static void *windowed(void)
{
    return tn_llama_new(.vocab = 11, .dim = 16, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 24, .positions = 640,
                        .scores.window = 7, .init = 0.5);
}
static void *dynamic(void) /* a position's angles depend on the length */
{
    return tn_llama_new(.vocab = 11, .dim = 16, .layers = 1, .heads = 2, .ff = 24, .positions = 64, .init = 0.5,
                        .rope = {TN_ROPE_DEFAULTS, .scaling = TN_ROPE_DYNAMIC, .factor = 2, .trained = 16});
}
static void *quantized(void)
{
    tn_gpt *m = tn_gpt_new(.vocab = 11, .dim = 32, .layers = 2, .heads = 4, .positions = 64, .init = 0.5);
    tn_quantize(m);
    return m;
}
static void *int8_gpt(void)
{
    tn_gpt *m = gpt();
    if (m) m->blocks->int8_cache = true;
    return m;
}
static void *int8_windowed(void)
{
    tn_llama *m = windowed();
    if (m) m->blocks->int8_cache = true;
    return m;
}
static void *(*const models[])(void) = {gpt, llama, windowed, dynamic, quantized, int8_gpt, int8_windowed};
enum { MODELS = sizeof models / sizeof *models };

static tn_lm *model(int which)
{
    tn_seed(4);
    tn_lm *m = models[which]();
    tn_module_train(m, false);
    ck_assert_msg(m && tn_error() == TN_OK, "%s", tn_error_message());
    return m;
}

static tn_tensor *step(void *m, tn_tensor *ids, tn_kv_cache *cache)
{
    return tn_lm_run(m, (tn_decoder_args){.ids = ids, .cache = cache, .last = true});
}

/* The same decoding, which never replays: tn_cached_decoding does not know that the step may be. */
static tn_decoding *plain(tn_lm *m, int64_t rows, int64_t length)
{
    return tn_cached_decoding(m, step, tn_blocks_cache(tn_lm_blocks(m), rows, length, 0), rows, length);
}

static tn_tensor *read_tokens(tn_decoding *d, tn_tensor *tokens) { return d->kind->scores(d, tokens); }

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

/* Loop: model, number of threads. Logits of 60 tokens; of more if the cache has a window, until it drops positions. */
TEST_EACH(logits, 3 * MODELS)
{
    const int     which = _i % MODELS, threads = _i / MODELS + 1;
    const int64_t tokens = models[which] == windowed || models[which] == int8_windowed ? 500 : 60;
    tn_lm        *m = model(which);
    tn_scope      s = tn_no_grad_begin();
    tn_set_threads(threads);
    for (int64_t rows = tn_test_slow() && _i % 2 ? 3 : 1; rows <= 3; rows += tn_test_slow() ? 4 : 2) {
        tn_decoding *one = tn_lm_decoding(m, rows, tokens + 3), *other = plain(m, rows, tokens + 3);
        tn_tensor   *prompt = tn_randint(TN_SHAPE(rows, 3), 0, 11);
        ck_assert(tn_same_bits(read_tokens(one, prompt), read_tokens(other, prompt)));
        uint64_t calls[2] = {0, 0};
        for (int64_t t = 0; t < tokens; t++) {
            tn_scope       inner = tn_scope_begin();
            tn_tensor     *next = tn_randint(TN_SHAPE(rows, 1), 0, 11);
            const uint64_t at = tn__self.calls;
            tn_tensor     *a = read_tokens(one, next);
            const uint64_t then = tn__self.calls;
            tn_tensor     *b = read_tokens(other, next);
            if (t > 5) calls[0] += then - at, calls[1] += tn__self.calls - then;
            ck_assert_msg(tn_same_bits(a, b), "token %d: %s", (int)t, tn_error_message());
            tn_scope_end(inner);
        }
        ck_assert_uint_lt(4 * calls[0], calls[1]); /* replays were used */
        tn_decoding_free(one), tn_decoding_free(other);
    }
    tn_scope_end(s);
    tn_module_free(m);
}

/* Loop: model; greedy, sampled, beams. */
TEST_EACH(generated, 3 * MODELS)
{
    const int        which = _i % MODELS, way = _i / MODELS;
    tn_lm           *m = model(which);
    tn_generated     g[2];
    tn_generate_args a = {TN_GENERATE_ARGS_DEFAULTS, .prompt = tn_randint(TN_SHAPE(2, 3), 0, 11), .most = 50};
    if (way == 1) a.sample = true, a.temperature = 2;
    if (way == 2) a.beams = 3, a.end = 0;
    for (int i = 0; i < 2; i++) {
        tn_seed(9);
        a.from = i ? plain(m, 6, 60) : tn_lm_decoding(m, 6, 60);
        g[i] = tn_generate_run(a);
        tn_decoding_free(a.from);
    }
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert(tn_same_bits(g[0].tokens, g[1].tokens) && tn_same_bits(g[0].scores, g[1].scores));
    tn_module_free(m);
}

/* ---- what happens between two tokens ----------------------------------------------------------------------------- */

static tn_decoding *one, *other;
static tn_lm       *lm;

static void read_both(int n)
{
    for (int i = 0; i < n; i++) {
        tn_tensor *next = tn_randint(TN_SHAPE(1, 1), 0, 11);
        ck_assert_msg(tn_same_bits(read_tokens(one, next), read_tokens(other, next)), "%s", tn_error_message());
    }
}

/* Loop: model. */
TEST_EACH(changes_in_between, MODELS)
{
    lm = model(_i);
    tn_scope s = tn_no_grad_begin();
    one = tn_lm_decoding(lm, 1, 64), other = plain(lm, 1, 64);
    read_both(8);
    ck_assert(tn_cached_decoding_trim(one, 5) == TN_OK && tn_cached_decoding_trim(other, 5) == TN_OK);
    read_both(3);
    tn_tensor *more = tn_randint(TN_SHAPE(1, 4), 0, 11); /* several tokens */
    ck_assert(tn_same_bits(read_tokens(one, more), read_tokens(other, more)));
    read_both(3);
    tn_set_threads(2); /* other threads */
    read_both(3);
    tn_set_threads(0);
    if (!tn_is_packed(tn_lm_info_of(lm).out)) tn_mul_scalar_(tn_lm_info_of(lm).out, 0.5); /* other values */
    read_both(3);
    tn_module_train(lm, true), tn_module_train(lm, false);
    read_both(3);
    tn_look *look = tn_look_new(); /* a look observes each token */
    tn_look_request(look, "**.self_attn.weights");
    tn_scope seen = tn_look_begin(look);
    read_both(3);
    ck_assert_int_gt(tn_look_count(look), 0);
    tn_scope_end(seen);
    tn_look_free(look);
    read_both(5);
    tn_scope in = tn_autocast_begin(TN_BF16); /* autocast */
    read_both(5);
    tn_scope_end(in);
    read_both(5);
    tn_decoding_free(one), tn_decoding_free(other);
    tn_scope_end(s);
    tn_module_free(lm);
}

/* An error is the step's own, and the decoding can be used after it. */
TEST(errors_are_those_of_the_step)
{
    lm = model(0);
    tn_scope s = tn_no_grad_begin();
    one = tn_lm_decoding(lm, 1, 12), other = plain(lm, 1, 12);
    read_both(8);
    char texts[2][512];
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_null(read_tokens(i ? other : one, tn_full_of(TN_I64, TN_SHAPE(1, 1), 11)));
        ck_assert_int_eq(tn_error(), TN_EINDEX);
        snprintf(texts[i], sizeof texts[i], "%s", tn_error_message());
        tn_clear_error();
    }
    ck_assert_str_eq(texts[0], texts[1]);
    read_both(4);
    ck_refused_has(read_tokens(one, tn_zeros_of(TN_I64, TN_SHAPE(1, 1))), TN_ESHAPE,
                   "no room for 1 positions after 12");
    tn_decoding_free(one), tn_decoding_free(other);
    tn_scope_end(s);
    tn_module_free(lm);
}

/* ---- tn_kv_cache_record and tn_kv_cache_replay ------------------------------------------------------------------- */

typedef struct {
    tn_lm       *m;
    tn_tensor   *ids;
    tn_kv_cache *cache;
    int          how;
} question;

static tn_tensor *ask(void *user)
{
    question  *q = user;
    tn_tensor *ids = q->how == 1 ? tn_cat(1, q->ids, q->ids) : q->ids;
    if (q->how == 2) tn_kv_cache_length(q->cache);
    if (q->how == 3) return tn_mul_scalar(q->ids, 2);
    if (q->how == 4) step(q->m, ids, q->cache);
    if (q->how == 5)
        return tn_blocks_forward(tn_lm_blocks(q->m), tn_ones(TN_SHAPE(1, 1, 16)), .causal = true, .cache = q->cache,
                                 .attn_mask = tn_zeros(TN_SHAPE(1, 4)));
    return step(q->m, ids, q->cache);
}

/* Loop: model. A failure leaves the cache as it was. */
TEST_EACH(own_steps, 2)
{
    static const char *const faults[] = {[1] = "a recorded step must add one position",
                                         [2] = "tn_kv_cache_length: not while",
                                         [3] = "the step added 0 positions to layer 0",
                                         [4] = "the step added 2 positions to layer 0",
                                         [5] = "without masks"};
    tn_lm                   *m = model(_i);
    tn_scope                 s = tn_no_grad_begin();
    question q = {m, tn_full_of(TN_I64, TN_SHAPE(1, 1), 3), tn_blocks_cache(tn_lm_blocks(m), 2, 7, 0), 0};
    ck_refused(tn_kv_cache_record(q.cache, ask, &q), TN_ESTATE,
               "tn_kv_cache_record: the cache is empty; read the first tokens without a replay");
    ck_refused_has(tn_replay_record(ask, &q), TN_EUNSUPPORTED, "kv_cache");
    tn_tensor *prompt = tn_randint(TN_SHAPE(1, 3), 0, 11);
    step(m, prompt, q.cache);
    tn_tensor *right = step(m, q.ids, q.cache);
    tn_kv_cache_trim(q.cache, 3);
    for (q.how = 1; q.how <= 5; q.how++) {
        ck_assert_ptr_null(tn_kv_cache_record(q.cache, ask, &q));
        ck_assert_msg(strstr(tn_error_message(), faults[q.how]), "%d: %s", q.how, tn_error_message());
        tn_clear_error();
        ck_assert_int_eq(tn_kv_cache_length(q.cache), 3);
    }
    q.how = 0;
    tn_replay *r = tn_kv_cache_record(q.cache, ask, &q);
    ck_assert_msg(r != NULL, "%s", tn_error_message());
    ck_assert(tn_kv_cache_length(q.cache) == 3 && !tn_kv_cache_at(q.cache));
    ck_assert_ptr_null(tn_replay_run(r)); /* without a position */
    ck_error_has(TN_EINDEX, ": index -1 at [0] is outside 0");
    ck_assert(tn_same_bits(tn_kv_cache_replay(q.cache, r), right));
    ck_assert_int_eq(tn_kv_cache_length(q.cache), 4);
    for (int i = 0; i < 3; i++) ck_assert(tn_kv_cache_replay(q.cache, r));
    ck_refused(tn_kv_cache_replay(q.cache, r), TN_ESHAPE,
               "tn_kv_cache_replay: no room for a position after 7; .length is 7");
    tn_kv_cache_trim(q.cache, 3);
    tn_kv_cache_reorder(q.cache, tn_zeros_of(TN_I64, TN_SHAPE(2)));
    ck_refused(tn_kv_cache_replay(q.cache, r), TN_ESTATE,
               "tn_kv_cache_replay: the cache has 2 rows, and had 1 when the step was recorded");
    tn_kv_cache_reorder(q.cache, tn_zeros_of(TN_I64, TN_SHAPE(1)));
    ck_assert(tn_same_bits(tn_kv_cache_replay(q.cache, r), right));
    tn_replay *newer = tn_kv_cache_record(q.cache, ask, &q);
    ck_refused(tn_kv_cache_replay(q.cache, r), TN_ESTATE,
               "tn_kv_cache_replay: this is not the last replay that was recorded with this cache");
    tn_kv_cache_trim(q.cache, 3);
    ck_assert(tn_same_bits(tn_kv_cache_replay(q.cache, newer), right));
    tn_kv_cache_free(q.cache);
    ck_refused_has(tn_replay_run(newer), TN_ESTATE, "has been freed by its owner");
    tn_replay_free(r), tn_replay_free(newer);
    tn_scope_end(s);
    tn_module_free(m);
}

/* Each allocation of a generation with replays fails once. */
static double generate_once(int i)
{
    double   sum = 0;
    tn_scope s = tn_no_grad_begin();
    tn_seed(4);
    tn_lm       *m = models[i]();
    tn_decoding *d = m ? tn_lm_decoding(m, 1, 12) : NULL;
    tn_module_train(m, false);
    tn_generated g = tn_generate(d, tn_full_of(TN_I64, TN_SHAPE(1, 2), 1), .most = 9);
    for (int64_t t = 0; g.tokens && t < tn_numel(g.tokens); t++) sum = 11 * sum + tn_get(g.tokens, t);
    tn_decoding_free(d);
    tn_module_free(m);
    tn_scope_end(s);
    return sum;
}
BARE_TEST_EACH(memory, 2) { tn_each_allocation_fails(generate_once, _i, 3, 31, 500); }
