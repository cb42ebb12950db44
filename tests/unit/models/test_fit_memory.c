/* test_fit_memory.c — tn_fit with .memory: the same bits as without for all kinds of models, a peak below the budget,
 * errors before the step that cannot fit. */
#include "tests/common/check_main.h"

#include "models/models.h"

enum { VOCAB = 60, STEPS = 5, KINDS = 6, BATCH = 12 };

/* ---- models and batches ------------------------------------------------------------------------------------------ */

static tn_module *model_of(int kind)
{
    tn_seed(31);
    switch (kind) {
    case 0: return (tn_module *)tn_bert_new(.vocab = VOCAB, .dim = 32, .layers = 5, .heads = 2, .positions = 64);
    case 1: /* all layers are one block */
        return (tn_module *)tn_bert_new(.kind = TN_ALBERT, .vocab = VOCAB, .dim = 32, .embedding = 16, .layers = 5,
                                        .heads = 2, .positions = 64);
    case 2: return (tn_module *)tn_gpt_new(.vocab = VOCAB, .dim = 32, .layers = 5, .heads = 2, .positions = 64);
    case 3:
        return (tn_module *)tn_llama_new(.vocab = VOCAB, .dim = 32, .layers = 5, .heads = 4, .kv_heads = 2,
                                         .dropout = 0.2, .attention_dropout = 0.1);
    case 4: return (tn_module *)tn_seq2seq_new(.source_words = VOCAB, .dim = 32, .layers = 3, .heads = 2);
    default:
        return (tn_module *)tn_seq2seq_new(.source_words = VOCAB, .dim = 32, .layers = 3, .heads = 2,
                                           .norm_first = true);
    }
}

/* Random batches, drawn from the current generator: of `length` tokens at most, from step `grows` of `later`. */
typedef struct {
    int     kind;
    int64_t length, later, grows, step;
    double  losses[64];
    int64_t steps;
    char    notes[1000];
} course;

static bool next_ids(void *user, tn_batch *b)
{
    course       *c = user;
    const int64_t length = ++c->step >= c->grows && c->grows ? c->later : c->length;
    b->x = tn_randint(TN_SHAPE(BATCH, length), 4, VOCAB);
    for (int64_t i = 0; c->kind >= 4 && i < BATCH; i++) /* padding, of which nothing is computed */
        for (int64_t t = length - i % 4; t < length; t++) tn_set_at(b->x, TN_SHAPE(i, t), 0);
    return tn_error() == TN_OK;
}
static tn_source source(course *c) { return (tn_source){.next = next_ids, .user = c, .batches = -1}; }

static tn_tensor *loss(void *module, const tn_batch *b, void *user)
{
    const course *c = user;
    switch (c->kind) {
    case 0:
    case 1: {
        tn_tensor *at = tn_arange_of(TN_I64, 0, (double)tn_numel(b->x), 5);
        tn_tensor *words = tn_index_select(tn_reshape(b->x, TN_SHAPE(-1)), 0, at);
        return tn_bert_loss((tn_bert *)module, .ids = b->x, .masked = at, .words = words);
    }
    case 2: return tn_gpt_loss((tn_gpt *)module, b->x, NULL);
    case 3: return tn_llama_loss((tn_llama *)module, b->x, NULL);
    default: return tn_seq2seq_loss((tn_seq2seq *)module, b->x, b->x, .label_smoothing = 0.1);
    }
}

static void listen(const tn_fit_event *e, void *user)
{
    course *c = user;
    if (e->what == TN_FIT_STEP) c->losses[c->steps++] = e->loss;
    if (e->what != TN_FIT_NOTE) return;
    ck_assert_ptr_nonnull(strstr(e->text, "blocks are recomputed"));
    strncat(c->notes, e->text, sizeof c->notes - strlen(c->notes) - 1);
}

#define RUN(c)                                                                                            \
    .train = source(c), .loss = loss, .user = (c), .on = listen, .on_user = (c), .lr = 0.01, .warmup = 0, \
    .decay = TN_DECAY_NONE

static void ck_same_weights(void *a, void *b)
{
    tn_each x = tn_module_each(a, TN_EACH_PARAMETER), y = tn_module_each(b, TN_EACH_PARAMETER);
    while (tn_next(&x) && tn_next(&y)) ck_assert_msg(tn_same_bits(x.tensor, y.tensor), "%s", x.name);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module   *net;
    course       c;
    tn_generator end;
    size_t       before, peak; /* live bytes before the run, without its scope; the maximum during it */
} outcome;

static outcome run(int kind, size_t memory, int64_t accumulate, bool autocast)
{
    outcome o = {.c = {.kind = kind, .length = 24}};
    o.net = model_of(kind);
    o.before = tn_memory_now().live;
    tn_reset_peak();
    const tn_fit_result r =
        tn_fit(o.net, RUN(&o.c), .steps = STEPS, .accumulate = accumulate, .autocast = autocast, .memory = memory);
    ck_assert_msg(r.why == TN_FIT_DONE, "kind %d, %zu bytes: %s", kind, memory, tn_error_message());
    o.end = *tn_current_generator();
    o.peak = tn_memory_now().peak;
    ck_assert_uint_eq(tn_memory_now().limit, 0);
    return o;
}

/* Runs without a budget and with some, from half of what the unrestricted run needs beyond the weights and the
 * optimizer's state. */
static void ck_budgets(int kind, int64_t accumulate, bool autocast)
{
    const double share[] = {accumulate > 1 || autocast ? 0.72 : 0.5, 0.75, 0.8, 2};
    const size_t shares = tn_test_slow() ? 1 : sizeof share / sizeof *share;
    outcome      free_run = run(kind, 0, accumulate, autocast);
    const size_t held = 3 * 4 * (size_t)tn_module_count(free_run.net, false);
    const double extra = (double)(free_run.peak - free_run.before) - (double)held * 2 / 3;
    int          recomputed = 1000;
    for (size_t i = 0; i < shares; i += tn_test_whole() ? 1 : 3) {
        const size_t before = tn_memory_now().live + held; /* weights, two moments: not yet alive */
        const size_t memory = before + (size_t)(share[i] * extra);
        outcome      o = run(kind, memory, accumulate, autocast);
        int          k = -1, n = 0;
        ck_assert_msg(o.peak <= memory, "kind %d: %zu > %zu", kind, o.peak, memory);
        ck_same_weights(free_run.net, o.net);
        ck_assert_mem_eq(o.c.losses, free_run.c.losses, sizeof o.c.losses);
        ck_assert(o.end.seed == free_run.end.seed && o.end.position == free_run.end.position);
        const char *at = strstr(o.c.notes, "MiB; ");
        ck_assert_ptr_nonnull(at);
        ck_assert_int_eq(sscanf(at, "MiB; %d of %d", &k, &n), 2);
        ck_assert_msg(n >= 5 && k <= recomputed, "kind %d: %d of %d after %d", kind, k, n, recomputed);
        if (share[i] > 1) ck_assert_int_eq(k, 0);
        if (i == 0) ck_assert_int_gt(k, 0);
        recomputed = k;
        tn_module_free(o.net);
    }
    tn_module_free(free_run.net);
}

TEST_EACH(same_bits_below_the_budget, KINDS)
{
    const int most = TN_TEST_SANITIZED ? 1 : 3; /* a sanitizer takes ten times as long */
    for (int threads = 1; threads <= most; threads += tn_test_whole() ? 1 : 2) {
        tn_set_threads(threads);
        ck_budgets(_i, 1, false);
    }
}

TEST_EACH(with_accumulation, TN_TEST_SANITIZED ? 1 : KINDS) { ck_budgets(_i, 3, false); }
TEST_EACH(with_autocast, TN_TEST_SANITIZED ? 1 : KINDS) { ck_budgets(_i, 1, true); }

/* A run that was resumed with another budget ends with the bits of one without. */
TEST(resumes_with_another_budget)
{
    course        c = {.kind = 2, .length = 24}, d = c;
    tn_module    *a = model_of(2), *b = model_of(2);
    const size_t  live = tn_memory_now().live;
    tn_fit_result r = tn_fit(a, RUN(&c), .steps = 6);
    ck_assert_int_eq(r.why, TN_FIT_DONE);
    const char *folder = tn_test_new_file("budget");
    tn_seed(31), tn_module_free(b), b = model_of(2);
    r = tn_fit(b, RUN(&d), .steps = 3, .folder = folder, .memory = live + (8u << 20));
    ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
    r = tn_fit(b, RUN(&d), .steps = 6, .folder = folder, .resume = true, .memory = live + (5u << 20));
    ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message());
    ck_same_weights(a, b);
    tn_module_free(a), tn_module_free(b);
}

/* ---- what does not fit ------------------------------------------------------------------------------------------- */

TEST(refused_before_the_first_step)
{
    course        c = {.kind = 2, .length = 24};
    tn_module    *net = model_of(2), *same = model_of(2);
    const size_t  weights = 4 * (size_t)tn_module_count(net, false), live = tn_memory_now().live;
    char          text[400];
    tn_fit_result r = tn_fit(net, RUN(&c), .steps = 3, .memory = 1000);
    ck_assert(r.why == TN_FIT_FAILED && !c.steps && !c.step);
    ck_error_has(TN_ENOMEM, "tn_fit: .memory is 1000 bytes, but a step needs more than ");
    for (int i = 1; i < 8; i++) { /* room for weights, gradients and state, and for some of the activations */
        r = tn_fit(net, RUN(&c), .steps = 3, .memory = live + 3 * weights + (size_t)i * 65536);
        ck_assert_msg(r.why == TN_FIT_FAILED && !c.steps, "%d", i);
        snprintf(text, sizeof text, "%s", tn_error_message());
        ck_error_has(TN_ENOMEM, i == 1 ? "use" : "tn_fit: .memory, step 1: out of memory: the pass (");
        if (i == 7) ck_assert_ptr_nonnull(strstr(text, "even if all segments are recomputed"));
        ck_same_weights(net, same);
    }
    for (tn_each p = tn_module_each(net, TN_EACH_PARAMETER); tn_next(&p);) ck_assert_ptr_null(tn_grad(p.tensor));
    tn_module_free(net), tn_module_free(same);
}

/* Longer batches are planned when they come. Those that cannot fit end the run at their step. */
TEST(a_later_batch_is_larger)
{
    for (int i = 0; i < 2; i++) {
        course        c = {.kind = 0, .length = 16, .later = i ? 64 : 24, .grows = 4}, d = c;
        tn_module    *net = model_of(0), *other = model_of(0);
        const size_t  weights = 4 * (size_t)tn_module_count(net, false), live = tn_memory_now().live;
        tn_fit_result r = tn_fit(other, RUN(&d), .steps = i ? 3 : 6);
        ck_assert_int_eq(r.why, TN_FIT_DONE);
        tn_module_free(net), net = model_of(0);
        tn_reset_peak();
        const size_t memory = live + 3 * weights + (3u << 19);
        r = tn_fit(net, RUN(&c), .steps = 6, .memory = memory);
        if (!i) ck_assert_uint_le(tn_memory_now().peak, memory); /* a pass that fails is measured without the budget */
        ck_assert_int_eq(r.why, i ? TN_FIT_FAILED : TN_FIT_DONE);
        ck_assert_int_eq(c.steps, i ? 3 : 6);
        if (i) ck_error_has(TN_ENOMEM, "tn_fit: .memory, step 4: out of memory: the pass ([12, 64, 32] in its first");
        ck_same_weights(net, other);
        tn_module_free(net), tn_module_free(other);
    }
}

static bool few_ids(void *user, tn_batch *b)
{
    course *c = user;
    if (++c->step > 8) c->step = 0;
    b->x = c->step ? tn_randint(TN_SHAPE(BATCH, 2), 4, VOCAB) : NULL;
    return b->x != NULL;
}

/* The budget that the error states is enough, also with validations, whose products copy weights. */
TEST(validates_within_the_stated_budget)
{
    size_t need = 0;
    for (int valid = -1; valid < 2; valid++) {
        course        c = {.kind = 2, .length = 24}, v = {.kind = 2};
        tn_module    *net = model_of(2);
        const size_t  live = tn_memory_now().live, least = live + 12 * (size_t)tn_module_count(net, false) + 400000;
        tn_source     of = {.next = few_ids, .user = &v, .batches = 8};
        tn_fit_result r = tn_fit(net, RUN(&c), .steps = 4, .memory = valid < 0 ? least : live + need,
                                 .valid_every = valid > 0, .valid = valid > 0 ? of : (tn_source){.next = NULL});
        if (valid < 0) {
            const char *text = strstr(tn_error_message(), "needs at least ");
            ck_assert_msg(text && sscanf(text, "needs at least %zu", &need) == 1, "%s", tn_error_message());
            need -= live;
            tn_clear_error();
        } else ck_assert_msg(r.why == TN_FIT_DONE && c.steps == 4, "%d: %s", valid, tn_error_message());
        tn_module_free(net);
    }
}
