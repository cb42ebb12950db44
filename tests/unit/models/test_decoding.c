/* test_decoding.c — texts longer than a cache, and speculative decoding: a windowed cache drops positions and logits
 * keep their bits; a rolling cache keeps its first positions and rotates the others' keys; a draft changes only the
 * number of forward passes. */
#include "models/models.h"
#include "tests/common/check_main.h"

#define SIZES .vocab = 37, .dim = 32, .layers = 2, .heads = 4, .kv_heads = 2, .init = 0.3
static tn_llama *a_llama(uint64_t seed, int64_t window)
{
    tn_seed(seed);
    tn_llama *m = tn_llama_new(SIZES, .positions = 64, .scores.window = window);
    tn_eval(m);
    fine();
    return m;
}

/* Greedy text of a decoding after a prompt of n tokens. */
static tn_tensor *text_of(tn_decoding *d, int64_t n, int64_t most)
{
    tn_seed(8);
    tn_tensor   *prompt = tn_randint(TN_SHAPE(1, n), 0, 37);
    tn_generated g = tn_generate(d, prompt, .most = most);
    fine();
    tn_decoding_free(d);
    return g.tokens;
}

TEST(a_window_needs_no_more_than_itself)
{
    tn_llama      *m = a_llama(3, 50);
    tn_tensor     *tokens = tn_randint(TN_SHAPE(2, 700), 0, 37);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *all = tn_llama_forward(m, tokens);
    tn_reset_peak();
    const size_t before = tn_memory_now().live;
    tn_decoding *d = tn_llama_decoding(m, 2, 100000);
    ck_assert(tn_memory_now().live - before < 1 << 20); /* 100,000 positions would take 50 MiB */
    for (int64_t t = 0, n; t < 700; t += n) {
        n = t ? 1 : 300; /* a prompt longer than the cache */
        const tn_scope inner = tn_scope_begin();
        tn_tensor     *y = d->kind->scores(d, tn_narrow(tokens, 1, t, n));
        fine();
        ck_assert(tn_same_bits(y, tn_contiguous(tn_select(all, 1, t + n - 1))));
        tn_scope_end(inner);
    }
    tn_decoding_free(d);
    tn_scope_end(s);
    tn_free(m);
}

TEST(rolling_as_without_until_it_is_full)
{
    tn_llama  *m = a_llama(4, 0);
    tn_tensor *plain = text_of(tn_llama_decoding(m, 1, 48), 8, 40),
              *rolled = text_of(tn_lm_rolling(m, 1, 48, 4), 8, 40);
    ck_assert(tn_same_bits(plain, rolled));
    tn_tensor *first = NULL;
    for (int threads = 1; threads < 4; threads++) { /* much longer than the cache, and a prompt longer than it */
        tn_set_threads(threads);
        tn_tensor *y = text_of(tn_lm_rolling(m, 1, 32, 4), 50, 300);
        ck_assert(!first || tn_same_bits(first, y));
        first = y;
    }
    tn_free(m);
}

/* Trimming to a length of the text, not of the cache: the logits are those of the remaining text; an error if they need
 * dropped positions. */
TEST(trimmed_by_words)
{
    enum { WINDOW = 50, LONG = 700 };
    tn_llama      *m = a_llama(3, WINDOW), *full = a_llama(3, 0);
    tn_tensor     *tokens = tn_randint(TN_SHAPE(1, LONG), 0, 37), *again = tn_randint(TN_SHAPE(1, 40), 0, 37);
    const tn_scope s = tn_no_grad_begin();
    tn_decoding   *d = tn_llama_decoding(m, 1, 100000);
    d->kind->scores(d, tokens);
    ck_assert_int_eq(tn_cached_decoding_trim(d, LONG - 30), TN_OK);
    tn_tensor *text = tn_cat(1, tn_narrow(tokens, 1, 0, LONG - 30), again);
    ck_assert(
        tn_same_bits(d->kind->scores(d, again), tn_contiguous(tn_select(tn_llama_forward(m, text), 1, LONG + 9))));
    tn_cached_decoding_trim(d, 40);
    ck_error_has(TN_ESTATE, "tn_cached_decoding_trim: tokens after position 40 need dropped ones: of 710 tokens read");
    tn_cached_decoding_trim(d, LONG + 11);
    ck_error(TN_EINVAL, "tn_cached_decoding_trim: length is 711, but 710 tokens have been read");
    tn_decoding_free(d);

    tn_decoding *four = tn_lm_rolling(full, 4, 32, 4); /* .most is that of the decoding, without a limit */
    ck_refused(tn_generate(four, tn_zeros_of(TN_I64, TN_SHAPE(4, 2)), .end = 0).tokens, TN_ENOMEM,
               "tn_generate: the texts do not fit in memory");
    tn_decoding_free(four);

    tn_decoding *r = tn_lm_rolling(full, 1, 32, 4), *same = tn_lm_rolling(full, 1, 32, 4);
    r->kind->scores(r, tn_narrow(tokens, 1, 0, 60)), same->kind->scores(same, tn_narrow(tokens, 1, 0, 58));
    ck_assert_int_eq(tn_cached_decoding_trim(r, 58), TN_OK);
    ck_assert(tn_same_bits(r->kind->scores(r, tn_narrow(again, 1, 0, 1)),
                           same->kind->scores(same, tn_narrow(again, 1, 0, 1))));
    tn_cached_decoding_trim(r, 20);
    ck_error_has(TN_ESTATE, "tn_cached_decoding_trim: tokens after position 20 need dropped ones");
    tn_decoding_free(r), tn_decoding_free(same);
    tn_scope_end(s);
    tn_free(m), tn_free(full);
}

/* With one layer, keys and values depend on their own token only, so the result is that of the text without the dropped
 * tokens. With two layers it would not be. */
TEST(what_stays_is_turned_to_its_new_place)
{
    tn_seed(5);
    tn_llama *m = tn_llama_new(.vocab = 37, .dim = 32, .layers = 1, .heads = 4, .init = 0.3);
    tn_eval(m);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *tokens = tn_randint(TN_SHAPE(2, 21), 0, 37);
    tn_kv_cache   *cache = tn_blocks_cache(m->blocks, 2, 30, 0);
    tn_llama_forward(m, tn_narrow(tokens, 1, 0, 20), .cache = cache);
    ck_assert_int_eq(tn_blocks_forget(m->blocks, cache, 3, 7), TN_OK);
    ck_assert_int_eq(tn_kv_cache_length(cache), 13);
    tn_tensor *last = tn_narrow(tokens, 1, 20, 1), *y = tn_llama_forward(m, last, .cache = cache);
    tn_tensor *rest = tn_cat(1, tn_narrow(tokens, 1, 0, 3), tn_narrow(tokens, 1, 10, 11));
    tn_tensor *want = tn_llama_forward(m, rest, .last = true);
    fine();
    ck_assert(tn_allclose(y, want, 1e-4, 1e-4));
    ck_assert_int_ne(tn_kv_cache_forget(cache, 10, 9), TN_OK);
    ck_error_has(TN_EINVAL, "tn_kv_cache_forget: 9 positions from 10 on, but the cache holds 14");
    ck_assert_int_ne(tn_blocks_forget(m->blocks, cache, 0, 2), TN_OK);
    ck_error_has(TN_EINVAL, "tn_blocks_forget: positions must be rotary, and from must be above 0");
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_gpt *g = tn_gpt_new(.vocab = 37, .dim = 32, .layers = 1, .heads = 2, .positions = 16);
    ck_refused_has(tn_lm_rolling(g, 1, 16, 4), TN_EUNSUPPORTED, "tn_lm_rolling: this model has position embeddings");
    ck_refused_has(tn_lm_rolling(m, 1, 7, 4), TN_EINVAL, "tn_rolling_decoding: room is 7 and sinks is 4");
    tn_free(g), tn_free(m);
}

/* A random draft, the model itself as the draft, and a copy of the model with noise. */
TEST(a_draft_changes_no_bit)
{
    tn_llama *m = a_llama(6, 0), *other = a_llama(7, 0), *near = tn_copy(m);
    tn_eval(near);
    tn_seed(2);
    for (tn_each p = tn_parameters(near); tn_next(&p);) {
        const tn_scope s = tn_no_grad_begin();
        tn_copy_(p.tensor, tn_add(p.tensor, tn_normal(tn_shape_of(p.tensor), 0, 0.02)));
        tn_scope_end(s);
    }
    void *const drafts[] = {other, m, near};
    tn_tensor  *plain = text_of(tn_llama_decoding(m, 1, 64), 5, 55);
    for (int i = 0; i < 3; i++)
        for (int64_t ahead = 1; ahead < 8; ahead += 3) {
            tn_speculation n;
            ck_assert(tn_same_bits(plain, text_of(tn_speculative_decoding(m, drafts[i], 64, ahead, &n), 5, 55)));
            ck_assert_int_eq(n.accepted + n.readings, 54); /* the prompt's pass gives the first */
            ck_assert(n.proposed >= n.accepted && n.plain > 0);
            if (i == 1) ck_assert_int_ge(n.accepted, 54 - 2 - 54 / (ahead + 1) - 1);
            if (i == 0) ck_assert_int_lt(n.accepted, 40);
        }
    /* also with sampling: the logits are the same */
    tn_tensor *drawn[2];
    for (int i = 0; i < 2; i++) {
        tn_speculation n;
        tn_decoding   *d = i ? tn_speculative_decoding(m, near, 64, 4, &n) : tn_llama_decoding(m, 1, 64);
        tn_seed(9);
        tn_tensor *prompt = tn_zeros_of(TN_I64, TN_SHAPE(1, 3));
        drawn[i] = tn_generate(d, prompt, .most = 50, .sample = true, .temperature = 0.7).tokens;
        fine();
        tn_decoding_free(d);
    }
    ck_assert(tn_same_bits(drawn[0], drawn[1]));
    tn_speculation n;
    tn_gpt        *g = tn_gpt_new(.vocab = 36, .dim = 32, .layers = 1, .heads = 2);
    ck_refused_has(
        tn_speculative_decoding(m, g, 64, 4, &n), TN_EINVAL,
        "tn_speculative_decoding: the model has 37 token ids and its draft 36; they must have the same tokenizer");
    ck_refused_has(tn_speculative_decoding(m, near, 64, 0, &n), TN_EINVAL,
                   "tn_speculative_decoding: length is 64 and ahead 0");
    tn_llama *dynamic = tn_llama_new(SIZES, .positions = 64, .rope = {TN_ROPE_DEFAULTS, .scaling = TN_ROPE_DYNAMIC});
    ck_refused_has(tn_speculative_decoding(m, dynamic, 64, 4, &n), TN_EUNSUPPORTED,
                   "tn_speculative_decoding: the draft has rotary positions with dynamic scaling");
    tn_free(dynamic);
    tn_free(g), tn_free(m), tn_free(other), tn_free(near);
}
