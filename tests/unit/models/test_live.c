/* test_live.c — texts that are generated at the same time: whatever joins and leaves, each has the bits of tn_generate
 * alone; errors of one text do not touch the others. */
#include "models/generate/lm_private.h"
#include "models/models.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

enum { VOCAB = 11, LENGTH = 40 };

static void *gpt(void)
{
    return tn_gpt_new(.vocab = VOCAB, .dim = 16, .layers = 2, .heads = 4, .positions = 64, .init = 0.5);
}
static void *llama(void)
{
    return tn_llama_new(.vocab = VOCAB, .dim = 16, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 24, .positions = 64,
                        .init = 0.5);
}
static void *windowed(void)
{
    return tn_llama_new(.vocab = VOCAB, .dim = 16, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 24, .positions = 64,
                        .scores.window = 5, .init = 0.5);
}
static void *dynamic(void) /* a position's angles depend on the text's length */
{
    return tn_llama_new(.vocab = VOCAB, .dim = 16, .layers = 1, .heads = 2, .ff = 24, .positions = 64, .init = 0.5,
                        .rope = {TN_ROPE_DEFAULTS, .scaling = TN_ROPE_DYNAMIC, .factor = 2, .trained = 8});
}
static void *experts(void)
{
    return tn_llama_new(.type = "mixtral", .vocab = VOCAB, .dim = 16, .layers = 2, .heads = 4, .kv_heads = 2, .ff = 24,
                        .positions = 64, .experts = 4, .experts_per_token = 2, .init = 0.5);
}
static void *quantized(void)
{
    tn_gpt *m = tn_gpt_new(.vocab = VOCAB, .dim = 32, .layers = 2, .heads = 4, .positions = 64, .init = 0.5);
    tn_quantize(m);
    return m;
}
static void *int8_cache(void)
{
    tn_gpt *m = gpt();
    if (m) m->blocks->int8_cache = true;
    return m;
}
static void *(*const models[])(void) = {gpt, llama, windowed, dynamic, experts, quantized, int8_cache};
enum { MODELS = sizeof models / sizeof *models };

static tn_lm *model(int which)
{
    tn_seed(4);
    tn_lm *m = models[which]();
    tn_module_train(m, false);
    ck_assert_msg(m && tn_error() == TN_OK, "%s", tn_error_message());
    return m;
}

/* ---- random schedules -------------------------------------------------------------------------------------------- */

/* A text with its result when it is generated alone. */
typedef struct {
    tn_tensor       *prompt;
    tn_generate_args a;
    tn_generator     g; /* at the start */
    tn_generated     alone;
    int64_t          text; /* its number */
} request;

/* A number from 0 to n - 1; from a generator of its own, so that texts draw the same with other schedules. */
static int64_t pick(tn_generator *g, int64_t n) { return (int64_t)(tn_random_double(g) * (double)n); }

static bool stop_at_5(int64_t row, int64_t word, void *user) { return (void)row, (void)user, word != 5; }

static void make(tn_lm *m, tn_generator *g, request *r)
{
    const int64_t    n = 1 + pick(g, 12);
    tn_generate_args a = {TN_GENERATE_ARGS_DEFAULTS, .most = 1 + pick(g, 20)};
    int64_t          ids[12];
    for (int64_t i = 0; i < n; i++) ids[i] = pick(g, VOCAB);
    r->prompt = a.prompt = tn_from_data(TN_I64, TN_SHAPE(1, n), ids);
    if (pick(g, 2)) a.sample = true, a.temperature = 1.5, a.top_k = pick(g, 2) ? 4 : 0, a.top_p = 0.9;
    if (pick(g, 3) == 0) a.end = 3;
    if (pick(g, 4) == 0) a.repetition_penalty = 1.3;
    if (pick(g, 4) == 0) a.no_repeat = 2;
    if (pick(g, 4) == 0) a.each = stop_at_5;
    r->g = (tn_generator){.seed = 17, .position = (uint64_t)pick(g, 1 << 20)};
    r->a = a;
    *tn_current_generator() = r->g;
    a.from = tn_lm_decoding(m, 1, LENGTH);
    r->alone = tn_generate_run(a);
    tn_decoding_free(a.from);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
}

/* True if b begins with what a has. */
static bool begins(tn_generated a, tn_generated b)
{
    const int64_t n = tn_get_i64(a.lengths, 0);
    if (n > tn_get_i64(b.lengths, 0)) return false;
    for (int64_t i = 0; i < n; i++)
        if (tn_get_i64(a.tokens, i) != tn_get_i64(b.tokens, i)) return false;
    return true;
}

static void compare(const request *r, tn_generated g, int64_t seed)
{
    ck_assert_msg(tn_error() == TN_OK, "schedule %d: %s", (int)seed, tn_error_message());
    ck_assert_msg(tn_same_bits(g.tokens, r->alone.tokens) && tn_same_bits(g.scores, r->alone.scores),
                  "schedule %d: a text differs from the one alone", (int)seed);
}

/* Adds, steps and takes in random order, some of them before they end; *together: texts that stepped with others. */
static void schedule(tn_lm *m, int64_t seed, int64_t *together)
{
    enum { REQUESTS = 6 };
    tn_generator   g = {.seed = (uint64_t)seed, .position = 0};
    const tn_scope s = tn_scope_begin();
    request        r[REQUESTS];
    int64_t        added = 0, taken = 0;
    bool           gone[REQUESTS] = {false};
    tn_live       *l = tn_live_new(m, .rows = 1 + pick(&g, 4), .length = LENGTH, .chunk = 1 + pick(&g, 6));
    for (int i = 0; i < REQUESTS; i++) make(m, &g, &r[i]);
    while (taken < REQUESTS) {
        const int64_t what = pick(&g, 8), which = added ? pick(&g, added) : 0;
        if (what < 3 && added < REQUESTS && tn_live_room(l) > 0) {
            *tn_current_generator() = r[added].g;
            r[added].text = tn_live_add_run(l, r[added].a), added++;
        } else if (what == 3 && added && !gone[which] && pick(&g, 4) == 0) { /* leaves early */
            const bool         ended = tn_live_ended(l, r[which].text);
            const tn_generated got = tn_live_take(l, r[which].text);
            if (ended) compare(&r[which], got, seed);
            gone[which] = true, taken++;
        } else {
            const int64_t n = tn_live_step(l);
            ck_assert_msg(n >= 0, "schedule %d: %s", (int)seed, tn_error_message());
            *together += n > 1 ? n : 0;
            for (int64_t i = 0; i < added; i++)
                if (!gone[i] && tn_live_ended(l, r[i].text))
                    compare(&r[i], tn_live_take(l, r[i].text), seed), gone[i] = true, taken++;
        }
    }
    ck_assert_int_eq(tn_live_step(l), 0);
    tn_live_free(l);
    tn_scope_end(s);
}

/* Loop: model. 500 schedules of all models together. */
TEST_EACH(schedules, MODELS)
{
    tn_lm  *m = model(_i);
    int64_t together = 0, n = tn_test_slow() ? 18 : 72;
    for (int64_t i = 0; i < n; i++) schedule(m, 100 * _i + i, &together);
    ck_assert_int_gt(together, n);
    tn_module_free(m);
}

/* The row that the caller's functions get; adds the tokens of each. */
static bool      add_to_row(int64_t row, int64_t word, void *user) { return ((int64_t *)user)[row] += word + 1, true; }
static tn_status ban_row(const tn_next_token *next, void *user)
{
    (void)user;
    next->scores[next->row] = -INFINITY;
    return TN_OK;
}

enum { ROWS = 5, MOST = 9 };
static const int64_t counts[ROWS] = {3, 1, 7, 12, 1}, mosts[ROWS] = {9, 2, 5, 9, 1};

/* Loop: model. tn_generate with .lengths: each row has the bits of its prompt alone, greedy and sampled. */
TEST_EACH(prompts_of_several_lengths, MODELS)
{
    tn_lm       *m = model(_i);
    tn_generator g = {.seed = 3, .position = 0};
    tn_tensor   *prompts = tn_randint(TN_SHAPE(ROWS, 12), 0, VOCAB);
    for (int sampled = 0; sampled < 2; sampled++) {
        int64_t          sums[ROWS] = {0};
        tn_generate_args a = {TN_GENERATE_ARGS_DEFAULTS, .most = MOST, .each = add_to_row, .user = sums};
        a.sample = sampled, a.top_k = sampled ? 5 : 0;
        a.from = tn_lm_decoding(m, ROWS, LENGTH), a.prompt = prompts;
        a.lengths = tn_from_data(TN_I64, TN_SHAPE(ROWS), counts);
        a.most_each = tn_from_data(TN_I64, TN_SHAPE(ROWS), mosts);
        *tn_current_generator() = g;
        const tn_generated all = tn_generate_run(a);
        ck_assert_msg(all.tokens != NULL, "%s", tn_error_message());
        ck_assert_uint_eq(tn_current_generator()->position, sampled ? ROWS * MOST : 0);
        tn_decoding_free(a.from);
        for (int64_t b = 0; b < ROWS; b++) {
            int64_t          sum = 0;
            tn_generate_args one = a;
            one.lengths = NULL, one.each = NULL, one.most_each = tn_narrow(a.most_each, 0, b, 1);
            one.prompt = tn_narrow(tn_narrow(prompts, 0, b, 1), 1, 0, counts[b]);
            one.from = tn_lm_decoding(m, 1, LENGTH);
            *tn_current_generator() = (tn_generator){g.seed, (uint64_t)(b * MOST)};
            const tn_generated alone = tn_generate_run(one);
            const int64_t      made = tn_get_i64(alone.lengths, 0);
            tn_decoding_free(one.from);
            for (int64_t i = 0; i < made; i++) sum += tn_get_i64(alone.tokens, i) + 1;
            ck_assert_int_eq(tn_get_i64(all.lengths, b), made);
            ck_assert_int_eq(sums[b], sum);
            ck_assert(tn_same_bits(tn_contiguous(tn_narrow(tn_narrow(all.tokens, 0, b, 1), 2, 0, made)), alone.tokens));
            ck_assert(tn_same_bits(tn_contiguous(tn_narrow(all.scores, 0, b, 1)), alone.scores));
        }
    }
    tn_module_free(m);
}

TEST(adjusted_rows)
{
    tn_lm             *m = model(0);
    tn_decoding       *d = tn_lm_decoding(m, ROWS, LENGTH);
    const tn_generated g = tn_generate(d, tn_randint(TN_SHAPE(ROWS, 12), 0, VOCAB), .most = MOST, .adjust = ban_row,
                                       .lengths = tn_from_data(TN_I64, TN_SHAPE(ROWS), counts));
    ck_assert_msg(g.tokens != NULL, "%s", tn_error_message());
    for (int64_t b = 0; b < ROWS; b++)
        for (int64_t i = 0; i < MOST; i++) ck_assert_int_ne(tn_get_i64(tn_narrow(g.tokens, 0, b, 1), i), b);
    tn_decoding_free(d);
    tn_module_free(m);
}

/* A text taken early is the beginning of the text alone. */
TEST(beginnings)
{
    tn_lm       *m = model(0);
    tn_generator g = {.seed = 5, .position = 0};
    request      r;
    do make(m, &g, &r);
    while (tn_get_i64(r.alone.lengths, 0) < 6);
    tn_live *l = tn_live_new(m);
    *tn_current_generator() = r.g;
    const int64_t text = tn_live_add_run(l, r.a);
    for (int i = 0; i < 4; i++) tn_live_step(l);
    ck_assert(!tn_live_ended(l, text));
    const tn_generated got = tn_live_take(l, text);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert_int_eq(tn_get_i64(got.lengths, 0), 4);
    ck_assert(begins(got, r.alone));
    tn_live_free(l);
    tn_module_free(m);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Beside a text that is written, a long prompt gets a part of the time only, so that it takes more steps than it has
 * parts; a short one is read before it; alone it is read in as many steps as it has parts. */
TEST(long_prompt_beside_a_text)
{
    enum { CHUNK = 64, PARTS = 24, POSITIONS = 4096 };
    tn_seed(4);
    tn_lm *m = (tn_lm *)tn_llama_new(.vocab = VOCAB, .dim = 32, .layers = 2, .heads = 4, .ff = 64,
                                     .positions = POSITIONS, .init = 0.5);
    tn_module_train(m, false);
    tn_live      *l = tn_live_new(m, .rows = 4, .chunk = CHUNK);
    tn_tensor    *prompt = tn_randint(TN_SHAPE(1, PARTS * CHUNK), 0, VOCAB), *word = tn_narrow(prompt, 1, 0, 1);
    const int64_t text = tn_live_add(l, word, .most = 2000);
    tn_live_step(l);
    const int64_t other = tn_live_add(l, prompt, .most = 1);
    int           steps = 0;
    for (; !tn_live_ended(l, other); steps++) {
        ck_assert_int_ge(tn_live_step(l), 1);
        if (steps != 4) continue;
        const int64_t quick = tn_live_add(l, word, .most = 1);
        for (int k = 0; k < 2; k++) ck_assert_int_ge(tn_live_step(l), 1); /* it is read next, or after a part */
        ck_assert(tn_live_ended(l, quick));
        tn_live_take(l, quick);
    }
    ck_assert_msg(steps >= PARTS * 3 / 2, "%d parts of a prompt are read in %d steps beside a text", PARTS, steps);
    tn_live_take(l, text), tn_live_take(l, other);
    const int64_t alone = tn_live_add(l, prompt, .most = 1);
    for (steps = 0; !tn_live_ended(l, alone); steps++) tn_live_step(l);
    ck_assert_int_eq(steps, PARTS);
    tn_live_free(l);
    tn_module_free(m);
}

TEST(joined_logits_in_threads)
{
    tn_lm         *m = model(1);
    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *each[3], *alone[3];
    tn_tensor     *ids = tn_randint(TN_SHAPE(3, 1), 0, VOCAB), *want[3];
    for (int i = 0; i < 3; i++) {
        tn_tensor *text = tn_randint(TN_SHAPE(1, 1 + 5 * i), 0, VOCAB);
        each[i] = tn_blocks_cache(tn_lm_blocks(m), 1, 20, 0), alone[i] = tn_blocks_cache(tn_lm_blocks(m), 1, 20, 0);
        tn_lm_forward(m, text, .cache = each[i]), tn_lm_forward(m, text, .cache = alone[i]);
        want[i] = tn_lm_forward(m, tn_narrow(ids, 0, i, 1), .cache = alone[i]);
    }
    for (int threads = 1; threads <= 7; threads += 3) {
        tn_set_threads(threads);
        tn_kv_cache *all = tn_kv_cache_join(3, each);
        tn_tensor   *y = tn_lm_forward(m, ids, .cache = all);
        tn_kv_cache_free(all);
        ck_assert_msg(y != NULL, "%s", tn_error_message());
        for (int i = 0; i < 3; i++) ck_assert(tn_same_bits(tn_contiguous(tn_narrow(y, 0, i, 1)), want[i]));
        for (int i = 0; i < 3; i++) tn_kv_cache_trim(each[i], tn_kv_cache_length(each[i]) - 1);
    }
    tn_set_threads(0);
    for (int i = 0; i < 3; i++) tn_kv_cache_free(each[i]), tn_kv_cache_free(alone[i]);
    tn_scope_end(s);
    tn_module_free(m);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static tn_status refuse_third(const tn_next_token *next, void *user)
{
    (void)user;
    return next->made == 2 ? tn_raise(TN_EFORMAT, "the third token does not suit me") : TN_OK;
}

TEST(error_of_one_text)
{
    tn_lm       *m = model(0);
    tn_generator g = {.seed = 8, .position = 0};
    request      r;
    make(m, &g, &r);
    tn_live *l = tn_live_new(m);
    *tn_current_generator() = r.g;
    const int64_t good = tn_live_add_run(l, r.a), bad = tn_live_add(l, r.prompt, .most = 9, .adjust = refuse_third);
    int64_t       n;
    while ((n = tn_live_step(l)) > 0) {}
    ck_assert_int_eq(n, 0);
    compare(&r, tn_live_take(l, good), 0);
    ck_assert(tn_live_ended(l, bad));
    ck_assert(!tn_live_take(l, bad).tokens);
    ck_error(TN_EFORMAT, "the third token does not suit me");
    ck_assert(!tn_live_take(l, bad).tokens);
    ck_error(TN_EINDEX, "tn_live_take: text 1 does not exist, or was taken");
    tn_live_free(l);
    tn_module_free(m);
}

TEST(mistakes)
{
    tn_lm     *m = model(0);
    tn_tensor *one = tn_zeros_of(TN_I64, TN_SHAPE(1, 3)), *two = tn_zeros_of(TN_I64, TN_SHAPE(2, 3));
    tn_live   *l = tn_live_new(m, .rows = 1, .length = 10);
    ck_assert_int_eq(tn_live_add(l, two), -1);
    ck_error(TN_ESHAPE, "tn_live_add: the prompt must be [1, n], n at least 1, got [2, 3]");
    ck_assert_int_eq(tn_live_add(l, one, .most = 8), -1);
    ck_error(TN_EINVAL, "tn_live_add: a prompt of 3 tokens and 8 new ones do not fit .length, 10");
    ck_assert_int_eq(tn_live_add(l, one, .beams = 2), -1);
    ck_error(TN_EINVAL, "tn_live_add: .from, .read, .before, .lengths and .beams are not for tn_live");
    ck_assert_int_eq(tn_live_add(l, one, .most = 7), 0);
    ck_assert_int_eq(tn_live_room(l), 0);
    ck_assert_int_eq(tn_live_add(l, one, .most = 7), -1);
    ck_error(TN_ESTATE, "tn_live_add: 1 texts have not ended, as many as .rows; add it later");
    tn_live_free(l);
    tn_decoding *d = tn_lm_decoding(m, 2, 10);
    ck_assert(!tn_generate(d, two, .most = 2, .lengths = tn_full_of(TN_I64, TN_SHAPE(2), 4)).tokens);
    ck_error(TN_EINVAL, "tn_generate: .lengths is 4 for prompt 0, but must be from 1 to 3");
    ck_assert(!tn_generate(d, two, .most = 2, .lengths = tn_full_of(TN_I64, TN_SHAPE(3), 1)).tokens);
    ck_error(TN_ESHAPE, "tn_generate: .lengths must be i64 [2], one number per prompt, got i64 [3]");
    ck_assert(!tn_generate(d, two, .most = 2, .lengths = tn_full_of(TN_I64, TN_SHAPE(2), 1), .beams = 2).tokens);
    ck_error(TN_EUNSUPPORTED, "tn_generate: .lengths needs a new decoding of tn_lm_decoding for a model with a "
                              "key/value cache, one beam, and neither .read nor .before");
    ck_assert(
        !tn_generate(d, tn_zeros_of(TN_I64, TN_SHAPE(3, 3)), .lengths = tn_full_of(TN_I64, TN_SHAPE(3), 1)).tokens);
    ck_error(TN_ESHAPE, "tn_generate: the prompt must be [batch, length] with at most 2 rows, got [3, 3]");
    tn_decoding_free(d);
    ck_refused(tn_live_new(m, .length = 65), TN_EINVAL,
               "tn_live_new: .length is 65, but the model has only 64 positions");
    ck_refused(tn_live_new(m, .rows = 0), TN_EINVAL,
               "tn_live_new: .rows is 0, .length 64, .chunk 128; each must be at least 1, .rows at most "
               "1048576");
    tn_module_free(m);
}

TEST(mistakes_of_joining)
{
    tn_lm         *m = model(1);
    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *a = tn_blocks_cache(tn_lm_blocks(m), 1, 20, 0), *b = tn_blocks_cache(tn_lm_blocks(m), 1, 20, 0);
    tn_tensor     *text = tn_zeros_of(TN_I64, TN_SHAPE(1, 4));
    tn_lm_forward(m, text, .cache = a);
    ck_refused(tn_kv_cache_join(2, NULL), TN_EINVAL, "tn_kv_cache_join: each is NULL");
    ck_refused(tn_kv_cache_join(2, (tn_kv_cache *[]){a, b}), TN_ESTATE,
               "tn_kv_cache_join: cache 1 has 0 rows; it must have one that has read its first tokens");
    ck_refused(tn_kv_cache_join(2, (tn_kv_cache *[]){a, a}), TN_EINVAL,
               "tn_kv_cache_join: caches 0 and 1 are the same");
    tn_lm_forward(m, text, .cache = b);
    tn_kv_cache *all = tn_kv_cache_join(2, (tn_kv_cache *[]){a, b});
    ck_assert_int_eq(tn_kv_cache_length(all), 0);
    ck_error(TN_EUNSUPPORTED, "tn_kv_cache_length: these are joined caches, whose rows have different lengths; a "
                              "step reads its positions from tn_kv_cache_at");
    ck_assert(!tn_lm_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(2, 2)), .cache = all));
    ck_assert(strstr(tn_error_message(), "mha: joined caches take 1 token of each row, got 2"));
    tn_clear_error();
    ck_assert_int_eq(tn_kv_cache_length(a), 4);
    tn_kv_cache_free(all), tn_kv_cache_free(a), tn_kv_cache_free(b);
    tn_scope_end(s);
    tn_module_free(m);
}

static double no_time(void) { return 0; }

static double three_texts(int i)
{
    double         sum = 0;
    const tn_scope s = tn_no_grad_begin();
    tn_seed(4);
    tn_lm *m = models[i]();
    tn_module_train(m, false);
    tn_live *l = tn_live_new(m, .rows = 3, .length = 12, .chunk = 2);
    if (l) tn__live_clock(l, no_time);
    for (int64_t k = 0; k < 3; k++)
        tn_live_add(l, tn_full_of(TN_I64, TN_SHAPE(1, 1 + k), (double)k), .most = 5, .sample = k == 1);
    while (tn_live_step(l) > 0) {}
    for (int64_t k = 0; k < 3; k++) {
        const tn_generated g = tn_live_take(l, k);
        for (int64_t t = 0; g.tokens && t < tn_numel(g.tokens); t++) sum = 11 * sum + tn_get(g.tokens, t);
    }
    tn_live_free(l);
    tn_module_free(m);
    tn_scope_end(s);
    return sum;
}
BARE_TEST_EACH(memory, 2) { tn_each_allocation_fails(three_texts, _i, 7, 31, 500); }

/* Loop: model. A step that fails for memory is called again: then each text has its bits, or has raised the error. */
BARE_TEST_EACH(repeated_step, MODELS)
{
    enum { TEXTS = 3 };
    const int64_t next = tn_test_slow() ? 7 : 1;
    int64_t       failed = 0, lost = 0;
    tn_set_threads(1);
    tn_faulty_memory_begin();
    const tn_scope outer = tn_no_grad_begin();
    tn_lm         *m = model(_i);
    tn_generated   alone[TEXTS], got;
    for (int64_t before = 1; before < 9; before += tn_test_slow() ? 4 : 2) {
        bool fails = true;
        for (int64_t call = -1; fails; call += call < 40 ? next : 7) {
            const tn_scope s = tn_scope_begin();
            tn_live       *l = tn_live_new(m, .rows = TEXTS, .length = 24, .chunk = 2);
            tn__live_clock(l, no_time);
            tn_seed(9);
            for (int64_t k = 0; k < TEXTS; k++)
                tn_live_add(l, tn_full_of(TN_I64, TN_SHAPE(1, 1 + 2 * k), (double)k), .most = 9, .sample = k == 1);
            for (int64_t i = 0; i < before; i++) ck_assert_int_gt(tn_live_step(l), 0);
            tn_fail_memory(call, false);
            const int64_t n = tn_live_step(l);
            fails = call < 0 || tn_memory_calls() > call;
            tn_fail_memory(-1, false);
            ck_assert(n >= 0 ? tn_error() == TN_OK : tn_error() == TN_ENOMEM);
            failed += n < 0;
            tn_clear_error();
            while (tn_live_step(l) > 0) {}
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            for (int64_t k = 0; k < TEXTS; k++) {
                got = tn_live_take(l, k);
                if (call < 0 && before == 1) alone[k] = got, tn_keep(got.tokens), tn_keep(got.scores);
                else if (tn_error() == TN_ENOMEM) lost++, tn_clear_error();
                else
                    ck_assert_msg(
                        tn_same_bits(got.tokens, alone[k].tokens) && tn_same_bits(got.scores, alone[k].scores),
                        "text %d after a failure of allocation %d in step %d", (int)k, (int)call, (int)before);
            }
            tn_live_free(l);
            tn_scope_end(s);
        }
    }
    ck_assert_int_gt(failed, 0);
    ck_assert_int_gt(lost, 0);
    for (int k = 0; k < TEXTS; k++) tn_drop(alone[k].tokens), tn_drop(alone[k].scores);
    tn_module_free(m);
    tn_scope_end(outer);
    tn_faulty_memory_end();
    tn_set_threads(0);
}

/* The bytes that a full text's cache takes more than tn_live_need, which are of its structs. */
static int64_t beyond_need(tn_lm *m, const tn_live *l, int64_t tokens)
{
    const tn_scope s = tn_no_grad_begin();
    const size_t   before = tn_memory_now().live;
    tn_kv_cache   *c = tn_blocks_cache(tn_lm_blocks(m), 1, tokens, 0);
    tn_lm_forward(m, tn_zeros_of(TN_I64, TN_SHAPE(1, tokens)), .cache = c, .last = true);
    tn_scope_end(s);
    const int64_t taken = (int64_t)(tn_memory_now().live - before);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_kv_cache_free(c);
    return taken - (int64_t)tn_live_need(l, tokens);
}

/* Loop: model. tn_live_need is what the keys and values take, and is proportional to the tokens. */
BARE_TEST_EACH(need_of_a_text, MODELS)
{
    enum { ROUNDING = 1024 };
    tn_lm   *m = model(_i);
    tn_live *l = tn_live_new(m);
    beyond_need(m, l, 24); /* the first call makes what the model keeps */
    const int64_t few = beyond_need(m, l, 24), many = beyond_need(m, l, 60);
    ck_assert_msg(few >= 0 && few < 4096 && many >= 0 && many < 4096, "%d and %d bytes more", (int)few, (int)many);
    ck_assert_msg(llabs(many - few) < ROUNDING, "%d and %d bytes more", (int)few, (int)many);
    ck_assert_int_eq((int64_t)tn_live_need(l, 60), 60 * (int64_t)tn_live_need(l, 1));
    ck_assert_int_eq((int64_t)tn_live_need(l, 0), 0);
    tn_live_free(l);
    tn_module_free(m);
}

static bool after_two(void *user) { return ++*(int *)user > 2; }
TEST(stopped_forward)
{
    int            asked = 0;
    const tn_scope s = tn_no_grad_begin();
    void          *m = gpt();
    tn_tensor     *ids = tn_full_of(TN_I64, TN_SHAPE(1, 3), 1);
    tn_stop_when(after_two, &asked);
    ck_assert_ptr_null(tn_lm_run(m, (tn_decoder_args){.ids = ids}));
    ck_assert_int_eq(asked, 3);
    ck_assert_int_eq(tn_error(), TN_ESTATE);
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "stopped, as the function of tn_stop_when asked"));
    tn_clear_error();
    tn_stop_when(NULL, NULL);
    ck_assert_ptr_nonnull(tn_lm_run(m, (tn_decoder_args){.ids = ids}));
    ck_assert_int_eq(asked, 3);
    tn_module_free(m);
    tn_scope_end(s);
}
