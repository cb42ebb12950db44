/* test_kv_cache.c — decoding with cached keys and values gives the bits of one call over the whole text: token by
 * token, in pieces, for every dtype, any number of threads, with padding, with reordered beams. And the cache itself:
 * its errors, removal of positions, and that a call that fails leaves it unchanged. */
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include "nn/nn.h"

enum { D = 16, H = 4, B = 3, LAYERS = 2 };

static tn_tensor *noise(tn_dtype dt, int64_t b, int64_t t, int64_t d)
{
    return tn_to(tn_normal(TN_SHAPE(b, t, d), 0, 1), dt);
}
static tn_tensor *part(tn_tensor *x, int64_t from, int64_t n) { return tn_narrow(x, 1, from, n); } /* x is [B, T, D] */

static tn_transformer_encoder *gpt(tn_dtype dt)
{
    tn_transformer_encoder *m =
        tn_transformer_encoder_new(.layers = LAYERS, .dim = D, .heads = H, .ff = 24, .activation = tn_gelu,
                                   .order = TN_NORM_FIRST, .final_norm = true, .dtype = dt);
    tn_eval(m);
    return m;
}
static tn_transformer_decoder *seq2seq(tn_dtype dt)
{
    tn_transformer_decoder *m =
        tn_transformer_decoder_new(.layers = LAYERS, .dim = D, .heads = H, .ff = 24, .final_norm = true, .dtype = dt);
    tn_eval(m);
    return m;
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16};

/* One token at a time, and in pieces of other sizes. */
TEST_EACH(as_without, 12)
{
    enum { LENGTH = 41, MEMORY = 19 };
    static const int64_t    pieces[][8] = {{1}, {7, 1, 1, 16, 3}, {40, 1}, {17, 17, 7}};
    const tn_dtype          dt = types[_i % 3];
    tn_transformer_encoder *e = gpt(dt);
    tn_transformer_decoder *d = seq2seq(dt);
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor              *x = noise(dt, B, LENGTH, D), *memory = noise(dt, B, MEMORY, D),
              *pad = tn_bernoulli_of(TN_BOOL, TN_SHAPE(B, MEMORY), 0.3);
    tn_set_threads(_i % 2 ? 2 : 1);
    tn_tensor   *want = tn_transformer_encoder_forward(e, x, .causal = true);
    tn_tensor   *also = tn_transformer_decoder_forward(d, x, memory, .causal = true, .memory_key_padding_mask = pad);
    tn_kv_cache *c = tn_transformer_encoder_cache(e, B, LENGTH),
                *k = tn_transformer_decoder_cache(d, B, LENGTH, MEMORY);
    fine();
    const int64_t *piece = pieces[_i / 3];
    for (int64_t at = 0, i = 0, n; at < LENGTH; at += n, i++) {
        n = piece[i] ? piece[i] : piece[0];
        if (at + n > LENGTH) n = LENGTH - at;
        tn_set_threads(i % 3 == 0 ? 7 : (int)(i % 3));
        ck_assert_int_eq(tn_kv_cache_length(c), at);
        tn_tensor *y = tn_transformer_encoder_forward(e, part(x, at, n), .causal = true, .cache = c);
        tn_tensor *z = tn_transformer_decoder_forward(d, part(x, at, n), i % 2 ? NULL : memory, .causal = true,
                                                      .memory_key_padding_mask = pad, .cache = k);
        fine();
        ck_assert_msg(tn_same_bits(y, part(want, at, n)), "encoder: %lld at %lld", (long long)n, (long long)at);
        ck_assert_msg(tn_same_bits(z, part(also, at, n)), "decoder: %lld at %lld", (long long)n, (long long)at);
    }
    ck_assert_int_eq(tn_kv_cache_length(k), LENGTH);
    tn_kv_cache_free(c), tn_kv_cache_free(k);
    tn_scope_end(s);
    tn_free(e), tn_free(d);
}

/* More keys than one block of a matrix product, beyond which the order of sums could change; a single layer. */
TEST_EACH(long_texts, 3)
{
    enum { LENGTH = 1300 };
    static const int64_t pieces[] = {1, 15, 1, 495, 1, 1, 510, 1, 3, 260, 1, 11};
    const tn_dtype       dt = types[_i];
    tn_mha              *m = tn_mha_new(.dim = 8, .heads = 2, .dtype = dt);
    const tn_scope       s = tn_no_grad_begin();
    tn_tensor   *x = noise(dt, 1, LENGTH, 8), *w, *v, *want = tn_mha_forward(m, x, x, x, .causal = true, .weights = &w);
    tn_kv_cache *c = tn_kv_cache_new(.batch = 1, .length = LENGTH, .heads = 2, .head_dim = 4, .dtype = dt);
    int64_t      at = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; at += pieces[i++]) {
        const int64_t n = pieces[i];
        tn_tensor    *p = part(x, at, n), *y = tn_mha_forward(m, p, p, p, .causal = true, .cache = c, .weights = &v);
        fine();
        ck_assert_msg(tn_same_bits(y, part(want, at, n)), "%lld at %lld", (long long)n, (long long)at);
        ck_assert(tn_same_bits(v, tn_narrow(part(w, at, n), 2, 0, at + n)));
    }
    ck_assert_int_eq(at, LENGTH);
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(m);
}

/* Prompts of different length with padding on the left, and masks of the caller: masks count all positions. */
TEST(with_masks)
{
    enum { LENGTH = 12 };
    tn_transformer_encoder *e = gpt(TN_F32);
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor *x = noise(TN_F32, B, LENGTH, D), *pad = tn_zeros_of(TN_BOOL, TN_SHAPE(B, LENGTH)), *masks[3] = {NULL};
    for (int64_t i = 0; i < 3; i++) tn_set_at(pad, TN_SHAPE(1, i), 1);
    masks[1] = tn_bernoulli_of(TN_BOOL, TN_SHAPE(LENGTH, LENGTH), 0.3),
    masks[2] = tn_normal(TN_SHAPE(B, 1, LENGTH, LENGTH), 0, 1);
    for (int i = 0; i < 3; i++) {
        tn_tensor *mask = masks[i];
        tn_tensor *want =
            tn_transformer_encoder_forward(e, x, .causal = true, .key_padding_mask = pad, .attn_mask = mask);
        tn_kv_cache *c = tn_transformer_encoder_cache(e, B, LENGTH + 3);
        fine();
        for (int64_t at = 0, n; at < LENGTH; at += n) {
            n = at == 0 ? 5 : at == 5 ? 3 : 1;
            tn_tensor *some = mask ? tn_narrow(tn_narrow(mask, -2, at, n), -1, 0, at + n) : NULL;
            tn_tensor *y =
                tn_transformer_encoder_forward(e, part(x, at, n), .causal = true,
                                               .key_padding_mask = part(pad, 0, at + n), .attn_mask = some, .cache = c);
            fine();
            ck_assert_msg(tn_same_bits(y, part(want, at, n)), "mask %d, %lld at %lld", i, (long long)n, (long long)at);
        }
        tn_kv_cache_free(c);
    }
    tn_scope_end(s);
    tn_free(e);
}

/* ---- beams ------------------------------------------------------------------------------------------------------- */

static tn_tensor *rows(tn_tensor *x, int n, const int64_t *index)
{
    return tn_index_select(x, 0, tn_from_data(TN_I64, TN_SHAPE(n), index));
}

/* Rows are duplicated, reordered and removed; the results depend on each row's own past only. */
TEST_EACH(beams, 2)
{
    static const int64_t order[][6] = {
        {0, 0, 1, 1, 2, 2}, {1, 0, 2, 3, 5, 4}, {0, 0, 0, 3, 3, 5}, {5, 4, 1}, {0, 1, 2, 2}};
    static const int        count[] = {6, 6, 6, 3, 4};
    const bool              with_memory = _i;
    tn_transformer_encoder *e = gpt(TN_F32);
    tn_transformer_decoder *d = seq2seq(TN_F32);
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor              *past = noise(TN_F32, B, 4, D), *memory = noise(TN_F32, B, 7, D), *now = memory;
    tn_kv_cache *c = with_memory ? tn_transformer_decoder_cache(d, 6, 20, 9) : tn_transformer_encoder_cache(e, 6, 20);
    if (with_memory) tn_transformer_decoder_forward(d, past, memory, .causal = true, .cache = c);
    else tn_transformer_encoder_forward(e, past, .causal = true, .cache = c);
    ck_assert_int_eq(tn_kv_cache_rows(c), B);
    for (int i = 0; i < 5; i++) {
        tn_tensor *index = tn_from_data(TN_I64, TN_SHAPE(count[i]), order[i]);
        tn_kv_cache_reorder(c, i % 2 ? tn_to(index, TN_I32) : index);
        ck_assert_int_eq(tn_kv_cache_rows(c), count[i]);
        tn_tensor *x = noise(TN_F32, count[i], 1 + i % 2, D), *y, *want;
        past = tn_cat(1, rows(past, count[i], order[i]), x), now = rows(now, count[i], order[i]);
        if (with_memory) {
            y = tn_transformer_decoder_forward(d, x, NULL, .causal = true, .cache = c);
            want = tn_transformer_decoder_forward(d, past, now, .causal = true);
        } else {
            y = tn_transformer_encoder_forward(e, x, .causal = true, .cache = c);
            want = tn_transformer_encoder_forward(e, past, .causal = true);
        }
        fine();
        ck_assert_msg(tn_same_bits(y, part(want, tn_size(want, 1) - tn_size(x, 1), tn_size(x, 1))), "reordering %d", i);
    }
    tn_kv_cache_reorder(c, tn_zeros_of(TN_I64, TN_SHAPE(0))); /* no beam remains */
    ck_assert_int_eq(tn_kv_cache_rows(c), 0);
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(e), tn_free(d);
}

/* Any order of any number of rows, with cycles, copies and new rows; or as many beams of each of some texts. */
static tn_tensor *random_order(int64_t rows, int64_t most, bool grouped)
{
    tn_generator *const g = tn_current_generator();
    const int64_t       each = grouped ? tn_random_below(g, most) + 1 : 1, texts = tn_random_below(g, most / each) + 1;
    return tn_flatten(tn_expand(tn_randint(TN_SHAPE(texts, 1), 0, rows), TN_SHAPE(texts, each)), 0, 1);
}

/* Also after a new memory was read, with padding, and with weights; with one layer, of which the past does not depend
 * on the padding, that may be of a row alone. */
TEST_EACH(random_beams, 2)
{
    enum { MOST = 6, PAST = 3 };
    tn_transformer_decoder *d =
        _i ? tn_transformer_decoder_new(.layers = 1, .dim = D, .heads = H, .ff = 24) : seq2seq(TN_F32);
    tn_eval(d);
    tn_kv_cache   *c = tn_transformer_decoder_cache(d, MOST, PAST + 1, 5);
    const tn_scope all = tn_no_grad_begin();
    tn_tensor     *past = NULL, *memory = NULL, *pad = NULL, *index = NULL, *w[2][LAYERS];
    for (int i = 0; i < 400; i++) {
        const tn_scope s = tn_scope_begin();
        const bool     first = i % 20 == 0, weights = i % 7 == 6;
        if (first) {
            tn_drop(past), tn_drop(memory), tn_drop(pad);
            const int64_t n = tn_random_below(tn_current_generator(), MOST) + 1;
            past = tn_take(noise(TN_F32, n, PAST, D)), memory = tn_take(noise(TN_F32, n, 5, D));
            pad = tn_take(tn_bernoulli_of(TN_BOOL, TN_SHAPE(n, 5), 0.3));
            tn_kv_cache_clear(c);
            tn_transformer_decoder_forward(d, past, memory, .causal = true, .cache = c, .memory_key_padding_mask = pad);
        } else {
            index = random_order(tn_kv_cache_rows(c), MOST, i / 20 % 2);
            tn_kv_cache_reorder(c, index);
            tn_tensor *p = tn_take(tn_index_select(past, 0, index)), *m = tn_take(tn_index_select(memory, 0, index));
            tn_tensor *q = tn_take(tn_index_select(pad, 0, index));
            tn_drop(past), tn_drop(memory), tn_drop(pad);
            past = p, memory = m, pad = q;
            if (_i && i % 3) tn_copy_from(pad, tn_bernoulli_of(TN_BOOL, tn_shape_of(pad), 0.5));
        }
        tn_tensor *x = noise(TN_F32, tn_kv_cache_rows(c), 1, D);
        tn_tensor *y =
            tn_transformer_decoder_forward(d, x, NULL, .causal = true, .cache = c, .memory_key_padding_mask = pad,
                                           .memory_weights = weights ? w[0] : NULL);
        tn_tensor *want =
            tn_transformer_decoder_forward(d, tn_cat(1, past, x), memory, .causal = true,
                                           .memory_key_padding_mask = pad, .memory_weights = weights ? w[1] : NULL);
        fine();
        ck_assert_msg(tn_same_bits(y, part(want, PAST, 1)), "order %d", i);
        for (int k = 0; weights && k < LAYERS - _i; k++)
            ck_assert_msg(tn_same_bits(w[0][k], tn_narrow(w[1][k], 2, PAST, 1)), "order %d: weights", i);
        tn_kv_cache_trim(c, PAST);
        tn_scope_end(s);
    }
    tn_drop(past), tn_drop(memory), tn_drop(pad);
    tn_scope_end(all);
    tn_kv_cache_free(c), tn_free(d);
}

/* ---- removing positions ------------------------------------------------------------------------------------------ */

TEST(trimmed_and_cleared)
{
    tn_transformer_decoder *d = seq2seq(TN_F32);
    tn_mha                 *one = tn_mha_new(.dim = D, .heads = H);
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor *x = noise(TN_F32, B, 8, D), *memory = noise(TN_F32, B, 5, D), *other = noise(TN_F32, B, 8, D),
              *third = noise(TN_F32, 2, 3, D);
    tn_kv_cache *c = tn_transformer_decoder_cache(d, B, 8, 5);
    tn_transformer_decoder_forward(d, x, memory, .causal = true, .cache = c);
    ck_assert_int_eq(tn_kv_cache_trim(c, 3), TN_OK);
    ck_assert_int_eq(tn_kv_cache_length(c), 3);
    tn_tensor *y = tn_transformer_decoder_forward(d, part(other, 3, 5), memory, .causal = true, .cache = c);
    tn_tensor *both = tn_cat(1, part(x, 0, 3), part(other, 3, 5)),
              *want = tn_transformer_decoder_forward(d, both, memory, .causal = true);
    ck_assert(tn_same_bits(y, part(want, 3, 5)));
    tn_kv_cache_trim(c, 0); /* the memory stays */
    ck_assert(tn_same_bits(tn_transformer_decoder_forward(d, both, NULL, .causal = true, .cache = c), want));
    tn_kv_cache_clear(c); /* another batch, another memory */
    ck_assert(tn_kv_cache_length(c) == 0 && tn_kv_cache_rows(c) == 0);
    tn_tensor *few = part(tn_narrow(x, 0, 0, 2), 0, 4);
    ck_assert(tn_same_bits(tn_transformer_decoder_forward(d, few, third, .causal = true, .cache = c),
                           tn_transformer_decoder_forward(d, few, third, .causal = true)));
    tn_kv_cache_forget(c, 0, 4); /* empty except for the memory; after it is removed, any batch is accepted */
    ck_assert(tn_kv_cache_length(c) == 0 && tn_kv_cache_rows(c) == 2);
    for (int64_t n = 0; n < 4; n++) {
        tn_kv_cache *k = tn_kv_cache_new(.batch = B, .length = 8, .heads = H, .head_dim = D / H);
        for (int64_t rows = B; rows >= 0; rows--) {
            tn_tensor *p = tn_narrow(part(x, 0, n), 0, 0, rows);
            ck_assert(tn_mha_forward(one, p, p, p, .causal = true, .cache = k) && tn_kv_cache_length(k) == n);
            ck_assert(tn_kv_cache_forget(k, 0, n) == TN_OK && tn_kv_cache_length(k) == 0 && tn_kv_cache_rows(k) == 0);
        }
        tn_kv_cache_free(k);
    }
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(d), tn_free(one);
}

/* After a complete trim a new text starts at position 0, also if positions were removed before. */
TEST(begins_anew)
{
    tn_mha        *m = tn_mha_new(.dim = D, .heads = H, .positions = tn_rotary_new());
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = noise(TN_F32, B, 6, D), *first = part(x, 0, 4);
    tn_kv_cache   *c = tn_kv_cache_new(.batch = B, .length = 6, .heads = H, .head_dim = D / H);
    tn_tensor     *want = tn_mha_forward(m, first, first, first, .causal = true, .cache = c);
    tn_kv_cache_forget(c, 0, 3), tn_kv_cache_trim(c, 0);
    ck_assert(tn_same_bits(want, tn_mha_forward(m, first, first, first, .causal = true, .cache = c)));
    tn_kv_cache_trim(c, 2); /* not complete: later positions keep their numbers */
    tn_tensor *next = part(x, 4, 2), *both = tn_cat(1, part(x, 0, 2), next);
    ck_assert(tn_same_bits(tn_mha_forward(m, next, next, next, .causal = true, .cache = c),
                           part(tn_mha_forward(m, both, both, both, .causal = true), 2, 2)));
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(m);
}

/* Zero-length batches, texts and memories. */
TEST(nothing)
{
    tn_transformer_decoder *d = seq2seq(TN_F32);
    const tn_scope          s = tn_no_grad_begin();
    tn_kv_cache            *c = tn_transformer_decoder_cache(d, B, 4, 0);
    tn_tensor              *x = noise(TN_F32, B, 2, D), *none = tn_zeros(TN_SHAPE(B, 0, D)),
              *want = tn_transformer_decoder_forward(d, x, none, .causal = true);
    ck_assert_int_eq(tn_numel(tn_transformer_decoder_forward(d, none, none, .causal = true, .cache = c)), 0);
    ck_assert(tn_same_bits(tn_transformer_decoder_forward(d, x, none, .causal = true, .cache = c), want));
    tn_kv_cache_clear(c);
    tn_tensor *nobody = tn_zeros(TN_SHAPE(0, 2, D));
    ck_assert_int_eq(
        tn_numel(tn_transformer_decoder_forward(d, nobody, tn_zeros(TN_SHAPE(0, 0, D)), .causal = true, .cache = c)),
        0);
    fine();
    tn_kv_cache_free(c), tn_kv_cache_free(NULL), tn_kv_cache_clear(NULL);
    ck_assert(tn_kv_cache_length(NULL) == 0 && tn_kv_cache_rows(NULL) == 0);
    tn_scope_end(s);
    tn_free(d);
}

/* ---- memory use -------------------------------------------------------------------------------------------------- */

/* All memory is allocated at creation; modules have none of it. */
TEST(takes_its_memory_once)
{
    tn_transformer_encoder *e = gpt(TN_F32);
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor              *x = noise(TN_F32, B, 30, D);
    const size_t            before = tn_memory_now().live;
    tn_kv_cache            *c = tn_transformer_encoder_cache(e, B, 30);
    const size_t            with = tn_memory_now().live;
    ck_assert_uint_ge(with - before, (size_t)2 * LAYERS * B * 30 * D * sizeof(float));
    for (int64_t at = 0; at < 30; at++) {
        const tn_scope step = tn_scope_begin();
        tn_transformer_encoder_forward(e, part(x, at, 1), .causal = true, .cache = c);
        tn_kv_cache_reorder(c, tn_arange(B));
        tn_scope_end(step);
        ck_assert_uint_eq(tn_memory_now().live, with);
    }
    fine();
    tn_kv_cache_free(c);
    ck_assert_uint_eq(tn_memory_now().live, before);
    tn_scope_end(s);
    tn_free(e);
}

/* Different views of one storage are different memories. */
TEST(memories_of_one_batch)
{
    tn_transformer_decoder *d = seq2seq(TN_F32);
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor              *memory = noise(TN_F32, 2, 5, D), *x = noise(TN_F32, 1, 1, D);
    tn_tensor *first = tn_narrow(memory, 0, 0, 1), *others[] = {tn_narrow(memory, 0, 1, 1), part(first, 0, 3)};
    for (int i = 0; i < 2; i++) {
        tn_kv_cache *c = tn_transformer_decoder_cache(d, 1, 8, 5);
        ck_assert_ptr_nonnull(tn_transformer_decoder_forward(d, x, first, .causal = true, .cache = c));
        ck_assert_ptr_nonnull(
            tn_transformer_decoder_forward(d, x, tn_narrow(memory, 0, 0, 1), .causal = true, .cache = c));
        ck_refused_has(tn_transformer_decoder_forward(d, x, others[i], .causal = true, .cache = c), TN_ESTATE,
                       "layer 0 stores another memory");
        tn_kv_cache_free(c);
    }
    tn_scope_end(s);
    tn_free(d);
}

/* Keys that move up are rotated back in all layers, also if layers share a block. */
TEST(forgetting_in_shared_blocks)
{
    tn_blocks *one =
        tn_blocks_new(.layers = 3, .groups = 1, .dim = D, .heads = H, .ff = 24, .attention.positions = tn_rotary_new());
    tn_blocks *all = tn_blocks_new(.layers = 3, .dim = D, .heads = H, .ff = 24, .attention.positions = tn_rotary_new());
    tn_eval(one), tn_eval(all);
    for (int64_t i = 0; i < 3; i++)
        ck_assert_int_eq(tn_module_assign(tn_at(all->layers, i), tn_at(one->layers, 0)), TN_OK);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = noise(TN_F32, 1, 9, D), *y[2];
    for (int k = 0; k < 2; k++) {
        tn_blocks   *m = k ? all : one;
        tn_kv_cache *c = tn_blocks_cache(m, 1, 12, 0);
        tn_blocks_forward(m, part(x, 0, 8), .causal = true, .cache = c);
        ck_assert_int_eq(tn_blocks_forget(m, c, 1, 4), TN_OK);
        y[k] = tn_blocks_forward(m, part(x, 8, 1), .causal = true, .cache = c);
        tn_kv_cache_free(c);
    }
    fine();
    ck_assert(tn_same_bits(y[0], y[1]));
    tn_scope_end(s);
    tn_free(one), tn_free(all);
}

typedef struct {
    tn_transformer_decoder *d;
    tn_tensor              *x, *memory, *index;
} world;

static tn_tensor *step(const world *w, tn_kv_cache *c, int64_t at, int64_t n, tn_tensor **seen)
{
    return tn_transformer_decoder_forward(w->d, part(w->x, at, n), w->memory, .causal = true, .cache = c,
                                          .memory_weights = seen);
}

/* Each allocation fails once, then all from it on fail: in the first step, in a later one, during a reorder. The cache
 * stays unchanged, and repeating the call gives the same bits. */
TEST(memory_fails)
{
    tn_set_threads(1);
    tn_faulty_memory_begin();
    const tn_scope around = tn_no_grad_begin();
    world          w = {.d = seq2seq(TN_F32)};
    w.x = noise(TN_F32, 2, 4, D), w.memory = noise(TN_F32, 2, 3, D),
    w.index = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){1, 1});
    tn_tensor *seen[LAYERS], *want[3];
    for (int failing = 0; failing < 4; failing++)
        for (int64_t at = -1, calls = 1; at < calls; at++)
            for (int for_ever = 0; for_ever < (at < 0 ? 1 : 2); for_ever++) {
                const tn_scope s = tn_scope_begin();
                tn_kv_cache   *c = NULL;
                for (int k = 0; k < 4; k++) { /* create, a first step, a reorder, another step */
                    const int64_t length = tn_kv_cache_length(c), held = tn_kv_cache_rows(c);
                    for (int again = 0; again < 2; again++) {
                        tn_tensor *y = NULL;
                        tn_fail_memory(k == failing && !again ? at : -1, for_ever);
                        if (k == 0) c = tn_transformer_decoder_cache(w.d, 2, 4, 3);
                        if (k == 1) y = step(&w, c, 0, 3, seen);
                        if (k == 2) tn_kv_cache_reorder(c, w.index);
                        if (k == 3) y = step(&w, c, 3, 1, seen);
                        if (k == failing && at < 0) calls = tn_memory_calls();
                        if (k == failing && at >= 0 && !again) {
                            ck_assert_msg(tn_error() == TN_ENOMEM, "part %d, call %lld: %s", k, (long long)at,
                                          tn_error_message());
                            ck_assert(!y &&
                                      (k == 0 ? !c : tn_kv_cache_length(c) == length && tn_kv_cache_rows(c) == held));
                            for (int i = 0; i < LAYERS && (k == 1 || k == 3); i++) ck_assert(!seen[i]);
                            tn_clear_error();
                            continue;
                        }
                        tn_fail_memory(-1, false);
                        fine();
                        if (y && failing == 0 && at < 0) want[k - 1] = tn_keep(y);
                        else if (y)
                            ck_assert_msg(tn_same_bits(y, want[k - 1]), "part %d, call %lld", failing, (long long)at);
                        break;
                    }
                }
                ck_assert_int_eq(tn_kv_cache_length(c), 4);
                tn_kv_cache_free(c);
                tn_scope_end(s);
            }
    tn_drop(want[0]), tn_drop(want[2]);
    tn_free(w.d);
    tn_scope_end(around);
    tn_faulty_memory_end();
}

static tn_tensor *broken(tn_tensor *x) { return (void)x, tn_raise(TN_EINVAL, "broken"), NULL; }

/* A single layer or attention that fails after its keys were written leaves the cache unchanged, too. */
TEST(parts_that_fail)
{
    tn_transformer_decoder_layer *d = tn_transformer_decoder_layer_new(.dim = D, .heads = H, .ff = 8);
    tn_transformer_encoder_layer *e =
        tn_transformer_encoder_layer_new(.dim = D, .heads = H, .ff = 8, .activation = broken);
    tn_linear     *whole = d->self_attn->out_proj;
    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *c = tn_kv_cache_new(.batch = B, .length = 4, .memory_length = 3, .heads = H, .head_dim = D / H);
    tn_tensor     *x = noise(TN_F32, B, 3, D), *next = noise(TN_F32, B, 1, D);
    for (int64_t length = 0; length < 4; length += 3) { /* with an empty cache, and with one that has positions */
        tn_tensor *now = length ? next : x;
        tn_eval(d);
        d->activation = broken;
        tn_transformer_decoder_layer_forward(d, now, x, .causal = true, .cache = c);
        ck_error(TN_EINVAL, "broken");
        tn_transformer_encoder_layer_forward(e, now, .causal = true, .cache = c);
        ck_error(TN_EINVAL, "broken");
        d->self_attn->out_proj = NULL;
        tn_mha_forward(d->self_attn, now, now, now, .causal = true, .cache = c);
        ck_error(TN_EINVAL,
                 "self_attn: tn_call: the module is NULL: it is an absent child, or its constructor failed and "
                 "the error was cleared");
        ck_assert(tn_kv_cache_length(c) == length && tn_kv_cache_rows(c) == (length ? B : 0));
        d->self_attn->out_proj = whole, d->activation = tn_relu;
        ck_assert(tn_transformer_decoder_layer_forward(d, now, x, .causal = true, .cache = c) != NULL);
    }
    ck_assert_int_eq(tn_kv_cache_length(c), 4);
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(d), tn_free(e);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(wrong_use)
{
    ck_refused(tn_kv_cache_new(.length = 4, .heads = 2, .head_dim = 4), TN_EINVAL,
               "tn_kv_cache_new: .batch is 0, but must be at least 1");
    ck_refused(tn_kv_cache_new(.batch = 2, .heads = 2, .head_dim = 4), TN_EINVAL,
               "tn_kv_cache_new: .length is 0, but must be at least 1");
    ck_refused(tn_kv_cache_new(.batch = 2, .length = 4, .heads = 2, .head_dim = 4, .dtype = TN_U8), TN_EDTYPE,
               "tn_kv_cache_new: .dtype is u8, but parameters are f32, f64 or bf16");
    ck_refused(tn_kv_cache_new(.layers = 0, .batch = 2, .length = 4, .heads = 2, .head_dim = 4), TN_EINVAL,
               "tn_kv_cache_new: .layers is 0, but must be at least 1");
    ck_refused(tn_kv_cache_new(.layers = INT64_MAX, .batch = 2, .length = 4, .heads = 2, .head_dim = 4), TN_EINVAL,
               "tn_kv_cache_new: .layers is 9223372036854775807, too many for any memory");
    ck_assert(!tn_kv_cache_new(.batch = INT64_MAX, .length = INT64_MAX, .heads = 2, .head_dim = 4));
    ck_assert(tn_error() != TN_OK);
    tn_clear_error();

    tn_transformer_decoder *d = seq2seq(TN_F32);
    tn_mha      *m = tn_mha_new(.dim = 8, .heads = 2), *wide = tn_mha_new(.dim = 8, .heads = 2, .dtype = TN_F64);
    tn_kv_cache *c =
        tn_kv_cache_new(.layers = 2, .batch = 2, .length = 4, .memory_length = 3, .heads = 2, .head_dim = 4);
    tn_tensor *x = noise(TN_F32, 2, 3, 8), *memory = noise(TN_F32, 2, 3, 8);
    tn_mha_forward(m, x, x, x, .cache = c);
    ck_error(TN_ESTATE, "kv_cache: gradients are being recorded; decode between tn_no_grad_begin() and tn_scope_end()");
    const tn_scope s = tn_no_grad_begin();
    tn_mha_forward(m, x, x, x, .cache = c, .layer = 2);
    ck_error(TN_EINDEX, "kv_cache: layer 2 is outside the cache, which has 2 layers");
    tn_mha_forward(m, x, x, x, .layer = 1);
    ck_error(TN_EINVAL, "mha: .layer is 1, but .cache is NULL");
    tn_mha_forward(m, x, x, x, .placed = &(tn_placed){.made = {tn_zeros(TN_SHAPE(3, 4))}});
    ck_error(TN_EINVAL, "mha: .placed needs a module created with .positions");
    tn_mha *rotary = tn_mha_new(.dim = 8, .heads = 2, .positions = tn_rotary_new());
    tn_mha_forward(rotary, x, x, x, .placed = &(tn_placed){.made = {tn_zeros(TN_SHAPE(3, 2))}});
    ck_error(TN_ESHAPE, "rotary: angles must be [.., 4], as returned by tn_mha_angles, got [3, 2]");
    tn_free(rotary);
    tn_transformer_decoder_forward(d, noise(TN_F32, 2, 1, D), noise(TN_F32, 2, 1, D), .cache = c, .layer = 1);
    ck_error(TN_EINVAL, "blocks: .layer is for a single block; a stack runs all layers");
    tn_mha_forward(m, x, x, x, .cache = c, .layer = -1);
    ck_error(TN_EINDEX, "kv_cache: layer -1 is outside the cache, which has 2 layers");
    tn_mha_forward(wide, x, x, x, .cache = c);
    ck_error(TN_EDTYPE, "kv_cache: the cache is f32, these keys are f64; see .dtype of tn_kv_cache_new");
    tn_tensor *many = noise(TN_F32, 3, 3, 8);
    tn_mha_forward(m, many, many, many, .cache = c);
    ck_error(TN_ESHAPE, "kv_cache: the batch has 3 rows, the cache at most 2");
    tn_transformer_decoder_forward(d, noise(TN_F32, 2, 1, D), noise(TN_F32, 2, 1, D), .cache = c);
    ck_error(TN_ESHAPE, "layers.0.self_attn: kv_cache: the cache has 2 heads of width 4, this layer has 4 heads of "
                        "width 4");
    ck_assert(tn_mha_forward(m, x, x, x, .cache = c, .layer = 0) != NULL);
    tn_mha_forward(m, x, x, x, .cache = c, .layer = 0);
    ck_error(TN_ESTATE,
             "kv_cache: layer 0 has 3 positions, others have 0: the layer was called twice, a layer was not called, "
             "or the pass before was interrupted; tn_kv_cache_trim(cache, 0) restores the common length");
    ck_assert_int_eq(tn_kv_cache_trim(c, 0), TN_OK);
    for (int i = 0; i < 2; i++) ck_assert(tn_mha_forward(m, x, x, x, .cache = c, .layer = i) != NULL);
    tn_mha_forward(m, x, x, x, .cache = c);
    ck_error(TN_ESHAPE, "kv_cache: no room for 3 positions after 3; .length is 4");
    tn_tensor *one = part(tn_narrow(x, 0, 0, 1), 0, 1);
    tn_mha_forward(m, one, one, one, .cache = c);
    ck_error(TN_ESHAPE, "kv_cache: the batch has 1 rows, but the cache stores 2; see tn_kv_cache_reorder");
    tn_tensor *next = part(x, 0, 1);
    tn_mha_forward(m, next, next, next, .cache = c, .key_padding_mask = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 1)));
    ck_error(TN_ESHAPE, "mha: key_padding_mask [2, 1] must be [B, S] = [2, 4]; true is padding");

    tn_mha_forward(m, x, NULL, NULL, .cache = c, .memory = true);
    ck_error(TN_EINVAL, "mha: key is NULL");
    tn_tensor *large = noise(TN_F32, 2, 4, 8);
    tn_mha_forward(m, x, large, large, .cache = c, .memory = true);
    ck_error(TN_ESHAPE, "kv_cache: no room for 4 positions after 0; .memory_length is 3");
    ck_assert(tn_mha_forward(m, x, memory, memory, .cache = c, .memory = true) != NULL);
    ck_assert(tn_mha_forward(m, x, tn_narrow(memory, 1, 0, 3), NULL, .cache = c, .memory = true) != NULL);
    tn_mha_forward(m, x, tn_clone(memory), memory, .cache = c, .memory = true);
    ck_error(
        TN_ESTATE,
        "kv_cache: layer 0 stores another memory; pass NULL to use the stored one, or call tn_kv_cache_clear first");

    tn_kv_cache_trim(c, 5);
    ck_error(TN_EINVAL, "tn_kv_cache_trim: length is 5, but the cache holds 3 positions");
    tn_kv_cache_trim(c, -1);
    ck_error(TN_EINVAL, "tn_kv_cache_trim: length is -1, but the cache holds 3 positions");
    tn_kv_cache_trim(NULL, 0);
    ck_error(TN_EINVAL, "tn_kv_cache_trim: the cache is NULL");
    tn_kv_cache_reorder(c, NULL);
    ck_error(TN_EINVAL, "tn_kv_cache_reorder: the index is NULL");
    tn_kv_cache_reorder(c, x);
    ck_error(TN_ESHAPE, "tn_kv_cache_reorder: the index must be integers [rows], got f32 [2, 3, 8]");
    tn_kv_cache_reorder(c, tn_zeros_of(TN_I64, TN_SHAPE(3)));
    ck_error(TN_ESHAPE, "tn_kv_cache_reorder: the index has 3 rows, the cache at most 2");
    tn_kv_cache_reorder(c, tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){0, 2}));
    ck_error(TN_EINDEX, "tn_kv_cache_reorder: row 2 at [1] does not exist; the cache has 2 rows");
    tn_scope_end(s);
    tn_kv_cache_free(c);
    tn_free(d), tn_free(m), tn_free(wide);
}

/* Positions go to a file and into another cache; a wrong call changes nothing. */
TEST(as_a_file)
{
    const tn_scope s = tn_no_grad_begin();
    tn_mha        *m = tn_mha_new(.dim = 8, .heads = 2);
    tn_tensor     *x = tn_normal(TN_SHAPE(1, 5, 8), 0, 1), *next = tn_normal(TN_SHAPE(1, 1, 8), 0, 1);
    tn_kv_cache   *from = tn_kv_cache_new(.batch = 2, .length = 6, .heads = 2, .head_dim = 4),
                *to = tn_kv_cache_new(.batch = 1, .length = 4, .heads = 2, .head_dim = 4);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    ck_assert_int_ne(tn_kv_cache_put(from, 1, w), TN_OK);
    ck_error(TN_EINVAL,
             "tn_kv_cache_put: length is 1, of a cache with 0 rows of 0 positions, from position 0 on; it must "
             "have one row and all positions from 0 on");
    tn_mha_forward(m, x, x, x, .causal = true, .cache = from);
    ck_assert_int_ne(tn_kv_cache_put(from, 6, w), TN_OK);
    ck_error_has(TN_EINVAL, "tn_kv_cache_put: length is 6, of a cache with 1 rows of 5 positions");
    ck_assert_int_eq(tn_kv_cache_put(from, 5, w), TN_OK);
    tn_tensor      *bytes = tn_safetensors_write(w);
    tn_safetensors *f = tn_safetensors_read(tn_data(bytes), (size_t)tn_numel(bytes));
    fine();
    ck_assert_int_ne(tn_kv_cache_take(to, f, 5, 5), TN_OK);
    ck_error(TN_EINVAL, "tn_kv_cache_take: length is 5, of 5 positions in the file; the cache has room for 4");
    ck_assert_int_ne(tn_kv_cache_take(to, f, 4, 3), TN_OK);
    ck_error(TN_EFORMAT, "kv_cache: tensor 'keys' is [1, 1, 2, 5, 4], expected [1, 1, 2, 4, 4] for this cache");
    ck_assert_int_eq(tn_kv_cache_take(to, f, 5, 0), TN_OK);
    ck_assert_int_eq(tn_kv_cache_length(to), 0);
    ck_assert_int_eq(tn_kv_cache_take(to, f, 5, 3), TN_OK);
    ck_assert_int_eq(tn_kv_cache_length(to), 3);
    ck_assert_int_ne(tn_kv_cache_take(to, f, 5, 3), TN_OK);
    ck_error(TN_ESTATE, "tn_kv_cache_take: the cache is not empty; call tn_kv_cache_clear");
    tn_kv_cache_trim(from, 3);
    ck_assert(tn_same_bits(tn_mha_forward(m, next, next, next, .causal = true, .cache = from),
                           tn_mha_forward(m, next, next, next, .causal = true, .cache = to)));
    tn_scope_end(s);
    tn_safetensors_close(f);
    tn_safetensors_writer_free(w);
    tn_kv_cache_free(from), tn_kv_cache_free(to);
    tn_free(m);
}

/* A memory that no attention reads is an error. */
TEST(memory_of_no_use)
{
    tn_blocks        *plain = tn_blocks_new(.dim = 8, .heads = 2, .layers = 2);
    tn_tensor        *eight = tn_ones(TN_SHAPE(1, 3, 8)), *seen[2];
    const char *const none = "layers.0: block: .memory and .memory_... need the block of a decoder";
    ck_refused(tn_blocks_forward(plain, eight, .memory = eight), TN_EINVAL, none);
    ck_refused(tn_blocks_forward(plain, eight, .memory_weights = seen), TN_EINVAL, none);
    ck_refused(tn_blocks_forward(plain, eight, .memory_key_padding_mask = tn_zeros_of(TN_BOOL, TN_SHAPE(1, 3))),
               TN_EINVAL, none);
    tn_free(plain);
}
