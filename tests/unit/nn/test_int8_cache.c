/* test_int8_cache.c — decoding with keys and values in 8 bits has the bits of a call without a cache in which a tn_look
 * replaces them by the values of tn_int8_rows: in pieces, with masks, windows, grouped heads and a memory, after
 * rows were reordered and positions removed. The memory of the cache, failing allocations, and the errors. */
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include "nn/nn.h"

enum { D = 24, H = 4, B = 3, LAYERS = 2 };

static tn_tensor *noise(int64_t b, int64_t t) { return tn_normal(TN_SHAPE(b, t, D), 0, 1); }
static tn_tensor *part(tn_tensor *x, int64_t from, int64_t n) { return tn_narrow(x, 1, from, n); } /* x is [B, T, D] */

/* GPT-2's blocks, LLaMA's, LLaMA's with a window. */
static tn_blocks *model(int which)
{
    tn_blocks *m =
        which == 0
            ? tn_blocks_new(.layers = LAYERS, .dim = D, .heads = H, .ff = 32, .activation = tn_gelu,
                            .order = TN_NORM_FIRST, .final_norm = true)
            : tn_blocks_new(.layers = LAYERS, .dim = D, .heads = H, .attention.kv_heads = 2, .ff = 32, .gated = true,
                            .activation = tn_silu, .norm.kind = TN_NORM_RMS, .order = TN_NORM_FIRST, .no_bias = true,
                            .attention.positions = tn_rotary_new(), .attention.scores.window = which == 2 ? 5 : 0);
    tn_eval(m);
    if (m) m->int8_cache = true;
    return m;
}
static tn_transformer_decoder *seq2seq(void)
{
    tn_transformer_decoder *m =
        tn_transformer_decoder_new(.layers = LAYERS, .dim = D, .heads = H, .ff = 24, .final_norm = true);
    tn_eval(m);
    if (m) m->int8_cache = true;
    return m;
}

/* ---- the reference ----------------------------------------------------------------------------------------------- */

static tn_tensor *rounded(const char *path, tn_tensor *t, void *user)
{
    return (void)path, (void)user, tn_int8_rows_unpack(tn_int8_rows(t));
}

/* A call without a cache, all of whose keys and values are rounded. */
static tn_tensor *reference(tn_blocks *m, tn_block_args a)
{
    tn_look *look = tn_look_new();
    tn_look_request(look, "**.keys", .change = rounded), tn_look_request(look, "**.values", .change = rounded);
    const tn_scope s = tn_look_begin(look);
    tn_tensor     *y = tn_scope_return(s, tn_blocks_run(m, a));
    ck_assert_int_gt(tn_look_count(look), 0);
    tn_look_free(look);
    fine();
    return y;
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

/* Loop: model, number of threads. One token at a time, in pieces, with padding and another mask. */
TEST_EACH(as_rounded, 9)
{
    enum { LENGTH = 141 };
    static const int64_t pieces[][8] = {{1}, {7, 1, 1, 16, 3}, {140, 1}};
    tn_blocks           *m = model(_i % 3);
    const tn_scope       s = tn_no_grad_begin();
    tn_tensor           *x = noise(B, LENGTH), *pad = tn_zeros_of(TN_BOOL, TN_SHAPE(B, LENGTH));
    tn_tensor           *mask = tn_normal(TN_SHAPE(LENGTH, LENGTH), 0, 1);
    for (int64_t i = 0; i < 3; i++) tn_set_at(pad, TN_SHAPE(1, i), 1);
    tn_set_threads(1 + _i / 3);
    for (int masked = 0; masked < 2; masked++) {
        const tn_block_args a = {
            .x = x, .causal = true, .key_padding_mask = masked ? pad : NULL, .attn_mask = masked ? mask : NULL};
        tn_tensor *want = reference(m, a), *plain = tn_blocks_run(m, a);
        ck_assert(!tn_same_bits(want, plain) && tn_allclose(want, plain, 0, 0.1));
        for (int i = 0; i < 3; i++) {
            const int64_t *piece = pieces[i];
            tn_kv_cache   *c = tn_blocks_cache(m, B, LENGTH, 0);
            for (int64_t at = 0, n; at < LENGTH; at += n) {
                const tn_scope inner = tn_scope_begin();
                n = *piece ? *piece++ : 1;
                n = n < LENGTH - at ? n : LENGTH - at;
                tn_block_args b = a;
                b.x = part(x, at, n), b.cache = c;
                if (masked) b.key_padding_mask = part(pad, 0, at + n);
                if (masked) b.attn_mask = tn_narrow(tn_narrow(mask, 0, at, n), 1, 0, at + n);
                tn_tensor *y = tn_blocks_run(m, b);
                ck_assert_msg(tn_same_bits(y, part(want, at, n)), "%d at %d: %s", (int)n, (int)at, tn_error_message());
                tn_scope_end(inner);
            }
            tn_kv_cache_free(c);
        }
    }
    tn_scope_end(s);
    tn_free(m);
}

static tn_tensor *rows(tn_tensor *x, int n, const int64_t *index)
{
    return tn_index_select(x, 0, tn_from_data(TN_I64, TN_SHAPE(n), index));
}

/* Beams with a memory, which is rounded, too: rows are duplicated, reordered and removed. */
TEST(beams)
{
    static const int64_t    order[][6] = {{0, 0, 1, 1, 2, 2}, {1, 0, 2, 3, 5, 4}, {0, 0, 0, 3, 3, 5}, {5, 4, 1}};
    static const int        count[] = {6, 6, 6, 3};
    tn_transformer_decoder *d = seq2seq();
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor              *past = noise(B, 4), *memory = noise(B, 7);
    tn_kv_cache            *c = tn_blocks_cache(d, 6, 20, 9);
    tn_transformer_decoder_forward(d, past, memory, .causal = true, .cache = c);
    for (int i = 0; i < 4; i++) {
        tn_kv_cache_reorder(c, tn_from_data(TN_I64, TN_SHAPE(count[i]), order[i]));
        tn_tensor *x = noise(count[i], 1 + i % 2);
        past = tn_cat(1, rows(past, count[i], order[i]), x), memory = rows(memory, count[i], order[i]);
        tn_tensor *y = tn_blocks_forward(d, x, .causal = true, .cache = c);
        tn_tensor *want = reference(d, (tn_block_args){.x = past, .memory = memory, .causal = true});
        fine();
        ck_assert_msg(tn_same_bits(y, part(want, tn_size(want, 1) - tn_size(x, 1), tn_size(x, 1))), "reordering %d", i);
    }
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(d);
}

/* Trimming, and removing positions from the middle: later keys are rotated and rounded again. */
TEST(removed)
{
    tn_blocks     *m = model(1);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = noise(1, 12), *want, *y[2];
    tn_kv_cache   *c = tn_blocks_cache(m, 1, 12, 0);
    want = tn_blocks_forward(m, x, .causal = true, .cache = c);
    ck_assert_int_eq(tn_kv_cache_trim(c, 5), TN_OK);
    ck_assert(tn_same_bits(tn_blocks_forward(m, part(x, 5, 7), .causal = true, .cache = c), part(want, 5, 7)));
    for (int int8 = 0; int8 < 2; int8++) {
        m->int8_cache = int8;
        tn_kv_cache *k = tn_blocks_cache(m, 1, 12, 0);
        tn_blocks_forward(m, part(x, 0, 11), .causal = true, .cache = k);
        ck_assert_int_eq(tn_blocks_forget(m, k, 2, 4), TN_OK);
        y[int8] = tn_blocks_forward(m, part(x, 11, 1), .causal = true, .cache = k);
        fine();
        tn_kv_cache_free(k);
    }
    ck_assert(!tn_same_bits(y[0], y[1]) && tn_allclose(y[0], y[1], 0, 0.05));
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(m);
}

/* A look sees the values that attention computes with, and changes nothing; so do .weights. */
TEST(observed)
{
    tn_transformer_encoder *m = model(0);
    const tn_scope          s = tn_no_grad_begin();
    tn_tensor              *x = noise(2, 9), *weights[LAYERS];
    tn_kv_cache            *c = tn_blocks_cache(m, 2, 9, 0);
    tn_tensor              *want = tn_blocks_forward(m, x, .causal = true, .cache = c, .weights = weights);
    tn_look                *look = tn_look_new();
    tn_kv_cache_clear(c);
    tn_look_request(look, "**.keys"), tn_look_request(look, "**.weights");
    const tn_scope in = tn_look_begin(look);
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .causal = true, .cache = c), want));
    tn_tensor *keys = tn_look_at(look, "layers.1.self_attn.keys");
    ck_assert(tn_dtype_of(keys) == TN_F32 && tn_allclose(keys, rounded(NULL, keys, NULL), 1e-6, 0));
    ck_assert(tn_same_bits(tn_look_at(look, "layers.1.self_attn.weights"), weights[1]));
    tn_scope_end(in);
    tn_look_free(look);
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(m);
}

/* bf16: its keys are rounded from bf16. */
TEST(other_dtypes)
{
    tn_blocks *m = tn_blocks_new(.layers = LAYERS, .dim = D, .heads = H, .ff = 24,
                                 .attention.positions = tn_rotary_new(), .dtype = TN_BF16);
    tn_eval(m);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = tn_to(noise(2, 9), TN_BF16), *want = tn_blocks_forward(m, x, .causal = true);
    m->int8_cache = true;
    tn_kv_cache *c = tn_blocks_cache(m, 2, 9, 0);
    tn_tensor   *y = tn_blocks_forward(m, part(x, 0, 8), .causal = true, .cache = c);
    tn_tensor   *last = tn_blocks_forward(m, part(x, 8, 1), .causal = true, .cache = c);
    fine();
    ck_assert(tn_dtype_of(y) == TN_BF16 && tn_allclose(y, part(want, 0, 8), 0, 0.1));
    ck_assert(tn_allclose(last, part(want, 8, 1), 0, 0.1));
    ck_assert_int_eq(tn_blocks_forget(m, c, 1, 2), TN_OK);
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(m);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

TEST(memory_of_the_cache)
{
    size_t used[2];
    for (int int8 = 0; int8 < 2; int8++) {
        const size_t before = tn_memory_now().live;
        tn_kv_cache *c =
            tn_kv_cache_new(.layers = 3, .batch = 2, .length = 500, .heads = 4, .head_dim = 64, .int8 = int8);
        used[int8] = tn_memory_now().live - before;
        tn_kv_cache_free(c);
        ck_assert_uint_eq(tn_memory_now().live, before);
    }
    ck_assert_msg(used[1] < used[0] * 3 / 10, "%zu bytes, and %zu in f32", used[1], used[0]);
}

static double once(int i)
{
    const tn_scope s = tn_no_grad_begin();
    tn_seed(3);
    tn_blocks   *m = i == 2 ? seq2seq() : model(i);
    tn_tensor   *x = noise(2, 5), *memory = i == 2 ? noise(2, 3) : NULL;
    tn_kv_cache *c = tn_blocks_cache(m, 2, 5, i == 2 ? 3 : 0);
    tn_blocks_forward(m, part(x, 0, 4), .memory = memory, .causal = true, .cache = c);
    tn_kv_cache_reorder(c, tn_zeros_of(TN_I64, TN_SHAPE(2)));
    if (i == 1) tn_blocks_forget(m, c, 1, 2);
    tn_tensor   *y = tn_blocks_forward(m, part(x, 4, 1), .memory = memory, .causal = true, .cache = c);
    const double sum = y ? tn_item(tn_sum(y)) : 0;
    tn_kv_cache_free(c);
    tn_scope_end(s);
    tn_free(m);
    return sum;
}
TEST_EACH(memory_fails, 3) { tn_each_allocation_fails(once, _i, tn_test_slow() ? 29 : 3, 5, 100); }

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(wrong_use)
{
    ck_refused(tn_kv_cache_new(.batch = 1, .length = 4, .heads = 2, .head_dim = 4, .int8 = true, .dtype = TN_F64),
               TN_EDTYPE, "tn_kv_cache_new: .dtype is f64, but .int8 is for f32 and bf16");
    ck_assert(!tn_kv_cache_new(.batch = 1, .length = 4, .heads = 2, .head_dim = INT64_MAX, .int8 = true));
    ck_assert_int_ne(tn_error(), TN_OK);
    tn_clear_error();
    tn_blocks   *m = model(0);
    tn_tensor   *x = noise(1, 2);
    tn_kv_cache *c = tn_blocks_cache(m, 1, 4, 0);
    ck_refused_has(tn_blocks_forward(m, x, .causal = true, .cache = c), TN_ESTATE,
                   "kv_cache: gradients are being recorded");
    tn_kv_cache_free(c);
    tn_free(m);
}
