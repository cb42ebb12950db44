/* test_unpadded_blocks.c — stacks of blocks skip the padding: the same bits as with it, in training, too, whatever the
 * padded length; a sequence alone and among others; tn_unpad and its inverses. */
#include "nn/nn.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

enum { BATCH = 5, DIM = 24 };
static const int64_t lengths[BATCH] = {7, 1, 11, 0, 4}, memory_lengths[BATCH] = {3, 9, 1, 5, 0};

/* A padding mask [BATCH, longest]. */
static tn_tensor *mask_of(const int64_t *length, int64_t longest)
{
    tn_tensor *m = tn_zeros_of(TN_BOOL, TN_SHAPE(BATCH, longest));
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t t = length[b]; t < longest; t++) tn_set_at(m, TN_SHAPE(b, t), 1);
    return m;
}

/* x with rows of `fill` up to the length `longest`. */
static tn_tensor *longer(tn_tensor *x, int64_t longest, double fill)
{
    tn_shape s = tn_shape_of(x);
    s.d[1] = longest - s.d[1];
    return s.d[1] ? tn_cat(1, x, tn_full_of(tn_dtype_of(x), s, fill)) : x;
}
static tn_tensor *without_padding(tn_tensor *x, tn_tensor *mask) { return tn_masked_fill(x, tn_unsqueeze(mask, 2), 0); }

static tn_experts_config experts = {TN_EXPERTS_DEFAULTS, .experts = 4, .gated = true, .jitter = 0.1};
#define CONFIG(...) TN_WITH(tn_block_config, TN_BLOCK_DEFAULTS, __VA_ARGS__)
struct kind {
    const char     *name;
    tn_block_config c;
    bool            causal, memory;
};
static struct kind kind_of(int i)
{
    switch (i) {
    case 0: return (struct kind){"encoder", CONFIG(.dropout = 0), false, false};
    case 1:
        return (struct kind){"pre-norm", CONFIG(.order = TN_NORM_FIRST, .final_norm = true, .dropout = 0.2), false,
                             false};
    case 2: return (struct kind){"post-norm", CONFIG(.dropout = 0.3), true, false};
    case 3: return (struct kind){"decoder", CONFIG(.dropout = 0.2), true, true};
    case 4:
        return (struct kind){"llama",
                             CONFIG(.norm.kind = TN_NORM_RMS, .order = TN_NORM_FIRST, .gated = true,
                                    .activation = tn_silu, .attention.positions = tn_rotary_new(),
                                    .attention.kv_heads = 1, .attention.scores.window = 4, .dropout = 0.1),
                             true, false};
    case 5:
        return (struct kind){
            "experts",
            CONFIG(.order = TN_NORM_FIRST, .feed_forward = tn_block_experts, .user = &experts, .dropout = 0.1), true,
            false};
    default: return (struct kind){"parallel", CONFIG(.order = TN_NORM_PARALLEL, .dropout = 0.1), false, false};
    }
}
enum { KINDS = 7 };

static tn_blocks *stack(const struct kind *k)
{
    tn_block_config c = k->c;
    c.dim = DIM, c.heads = 2, c.ff = 40, c.layers = 3;
    tn_seed(11);
    return k->memory ? tn_transformer_decoder_create(c) : tn_blocks_create(c);
}

typedef struct {
    tn_tensor *y, *gx, *gmemory, *weights; /* weights: all their gradients as one list */
} outcome;

static outcome run(tn_blocks *m, const struct kind *k, tn_tensor *x, tn_tensor *memory, tn_tensor *mask,
                   tn_tensor *memory_mask)
{
    tn_tensor *list[128];
    int        n = 0;
    outcome    o = {.y = NULL};
    x = tn_requires_grad(tn_detach(x)), memory = memory ? tn_requires_grad(tn_detach(memory)) : NULL;
    tn_seed(12);
    o.y = tn_blocks_forward(m, x, .memory = memory, .key_padding_mask = mask, .causal = k->causal, .skip_padding = true,
                            .memory_key_padding_mask = memory ? memory_mask : NULL);
    fine();
    o.y = without_padding(o.y, mask);
    tn_tensor *factor = tn_cos(tn_reshape(tn_to(tn_arange(BATCH * 11 * DIM), TN_F32), TN_SHAPE(BATCH, 11, DIM)));
    tn_backward(o.y, .seed = longer(factor, tn_size(x, 1), 3));
    fine();
    for (tn_each p = tn_parameters(m); tn_next(&p);) list[n++] = tn_clone(tn_reshape(tn_grad(p.tensor), TN_SHAPE(-1)));
    o.weights = tn_cat_list(0, n, list);
    o.gx = tn_clone(tn_grad(x)), o.gmemory = memory ? tn_clone(tn_grad(memory)) : NULL;
    tn_zero_grads(m);
    fine();
    return o;
}

static tn_tensor *first_rows(tn_tensor *x, int64_t n) { return tn_clone(tn_narrow(x, 1, 0, n)); }

/* The padded batch is computed as such if a layer has a hook. Sums over the rows, for the gradients of norms and
 * biases, are then added in another order. */
static tn_tensor *nothing(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    return (void)m, (void)x, (void)y, (void)user, NULL;
}

TEST_EACH(as_padded, KINDS)
{
    const struct kind kind = kind_of(_i), *k = &kind;
    tn_blocks        *m = stack(k);
    tn_tensor        *x = tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1), *mask = mask_of(lengths, 11);
    tn_tensor        *memory = k->memory ? tn_normal(TN_SHAPE(BATCH, 9, DIM), 0, 1) : NULL,
              *of_memory = mask_of(memory_lengths, 9);
    const outcome o = run(m, k, x, memory, mask, of_memory);
    tn_module_after(tn_at(m->layers, 1), nothing, m);
    const outcome padded = run(m, k, x, memory, mask, of_memory);
    ck_assert_msg(tn_same_bits(o.y, padded.y), "%s: y", k->name);
    ck_assert_msg(tn_same_bits(o.gx, without_padding(padded.gx, mask)), "%s: the gradient of x", k->name);
    if (memory) ck_assert(tn_same_bits(o.gmemory, without_padding(padded.gmemory, of_memory)));
    ck_assert_msg(tn_allclose(o.weights, padded.weights, 1e-5, 1e-5), "%s: the gradients of weights", k->name);
    tn_free(m);
}

/* Whatever the padded length and the values there, on any number of threads: the same bits, also of all weights'
 * gradients. Dropout draws by the padded length. */
TEST_EACH(any_padding, KINDS)
{
    struct kind k = kind_of(_i);
    k.c.dropout = 0, k.c.attention_dropout = -1, k.c.activation_dropout = -1, experts.jitter = 0;
    tn_blocks *m = stack(&k);
    tn_tensor *x = tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1);
    tn_tensor *memory = k.memory ? tn_normal(TN_SHAPE(BATCH, 9, DIM), 0, 1) : NULL;
    outcome    first = {.y = NULL};
    for (int more = 0; more < 6; more++) {
        tn_set_threads(1 + more % 3);
        const outcome o = run(m, &k, longer(x, 11 + more, more), memory ? longer(memory, 9 + 2 * more, NAN) : NULL,
                              mask_of(lengths, 11 + more), mask_of(memory_lengths, 9 + 2 * more));
        if (!more) first = o;
        ck_assert_msg(tn_same_bits(first_rows(o.y, 11), first.y), "%s: y", k.name);
        ck_assert_msg(tn_same_bits(first_rows(o.gx, 11), first.gx), "%s: the gradient of x", k.name);
        ck_assert_msg(tn_same_bits(o.weights, first.weights), "%s: the gradients of weights", k.name);
    }
    tn_free(m);
}

/* Each sequence alone, without a mask. */
TEST_EACH(alone, KINDS)
{
    const struct kind kind = kind_of(_i), *k = &kind;
    tn_blocks        *m = stack(k);
    tn_eval(m);
    tn_tensor *x = tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1),
              *memory = k->memory ? tn_normal(TN_SHAPE(BATCH, 9, DIM), 0, 1) : NULL;
    tn_tensor *y =
        tn_blocks_forward(m, x, .memory = memory, .key_padding_mask = mask_of(lengths, 11), .causal = k->causal,
                          .skip_padding = true, .memory_key_padding_mask = memory ? mask_of(memory_lengths, 9) : NULL);
    for (int64_t b = 0; b < BATCH; b++) {
        tn_tensor *one = tn_narrow(tn_narrow(x, 0, b, 1), 1, 0, lengths[b]);
        tn_tensor *its = memory ? tn_narrow(tn_narrow(memory, 0, b, 1), 1, 0, memory_lengths[b]) : NULL;
        tn_tensor *want = tn_blocks_forward(m, one, .memory = its, .causal = k->causal);
        ck_assert_msg(tn_same_bits(tn_clone(tn_narrow(tn_narrow(y, 0, b, 1), 1, 0, lengths[b])), want), "%s: %lld",
                      k->name, (long long)b);
    }
    tn_free(m);
}

/* Padding before and between the rows is not skipped. */
TEST_EACH(gaps, 2)
{
    tn_blocks *m = tn_blocks_new(.dim = DIM, .heads = 2, .ff = 40, .layers = 2, .attention.positions = tn_rotary_new(),
                                 .dropout = 0.2);
    tn_tensor *x = tn_normal(TN_SHAPE(3, 6, DIM), 0, 1), *mask = tn_zeros_of(TN_BOOL, TN_SHAPE(3, 6)), *y[2];
    tn_set_at(mask, TN_SHAPE(0, 0), 1), tn_set_at(mask, TN_SHAPE(1, 2), 1), tn_set_at(mask, TN_SHAPE(2, 5), 1);
    for (int i = 0; i < 2; i++) {
        if (i) tn_module_after(tn_at(m->layers, 0), nothing, m);
        tn_seed(1);
        y[i] = without_padding(tn_blocks_forward(m, x, .key_padding_mask = mask, .causal = _i, .skip_padding = true),
                               mask);
        fine();
    }
    ck_assert(tn_same_bits(y[0], y[1]));
    tn_free(m);
}

TEST(there_and_back)
{
    tn_tensor        *x = tn_normal(TN_SHAPE(BATCH, 11, 3), 0, 1), *mask = mask_of(lengths, 11);
    const tn_unpadded u = tn_unpad(mask);
    ck_assert(u.batch == BATCH && u.length == 11 && u.in_order && tn_numel(u.rows) == 23);
    ck_assert_int_eq(tn_get_i64(u.offsets, BATCH), 23);
    tn_tensor *rows = tn_unpad_rows(u, x);
    ck_assert(tn_shape_equal(tn_shape_of(rows), TN_SHAPE(1, 23, 3)));
    ck_assert(tn_same_bits(tn_pad_rows(u, rows), without_padding(x, mask)));
    tn_tensor *ids = tn_unpad_rows(u, tn_to(tn_select(x, 2, 0), TN_I64)); /* of any dtype */
    ck_assert(tn_shape_equal(tn_shape_of(ids), TN_SHAPE(1, 23)));
    fine();
    ck_refused(tn_unpad(tn_zeros(TN_SHAPE(2, 2))).rows, TN_ESHAPE,
               "tn_unpad: the padding mask must be bool [B, T] (true: padding), got f32 [2, 2]");
    ck_refused(tn_unpad_rows(u, tn_zeros(TN_SHAPE(BATCH, 10))), TN_ESHAPE,
               "tn_unpad_rows: x is [5, 10], but must be [5, 11, ...]");
    ck_refused(tn_pad_rows(u, tn_zeros(TN_SHAPE(1, 22, 2))), TN_ESHAPE,
               "tn_pad_rows: x is [1, 22, 2], but must be [1, 23, ...]");
    ck_refused(tn_pad_rows((tn_unpadded){.batch = 1}, x), TN_EINVAL, "tn_pad_rows: u.rows is NULL");
}

/* A module gets an unpadded batch from its caller, or raises. */
TEST(by_hand)
{
    tn_mha           *m = tn_mha_new(.dim = DIM, .heads = 2);
    tn_tensor        *x = tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1), *mask = mask_of(lengths, 11);
    const tn_unpadded u = tn_unpad(mask);
    tn_tensor        *rows = tn_unpad_rows(u, x), *y = tn_mha_forward(m, rows, rows, rows, .unpadded = &u);
    tn_tensor        *padded = tn_mha_forward(m, x, x, x, .key_padding_mask = mask);
    ck_assert(tn_same_bits(tn_pad_rows(u, y), without_padding(padded, mask)));
    fine();
    ck_refused(
        tn_mha_forward(m, x, x, x, .unpadded = &u), TN_ESHAPE,
        "mha: an unpadded query and key must be [1, N, dim] with 23 and 23 rows, as in .unpadded, but have batch "
        "size 5 and 11 and 11 rows");
    ck_refused(tn_mha_forward(m, rows, rows, rows, .unpadded = &(tn_unpadded){.batch = 1}), TN_EINVAL,
               "mha: .unpadded has no rows; make it with tn_unpad, and check the error");
    tn_free(m);
}

/* Both stacks of a Transformer. If the decoder may attend to the memory of padding, the encoder computes it. */
TEST(encoder_and_decoder)
{
    tn_transformer *m = tn_transformer_new(.dim = DIM, .heads = 2, .encoder_layers = 2, .decoder_layers = 2, .ff = 40);
    tn_tensor      *x = tn_normal(TN_SHAPE(BATCH, 9, DIM), 0, 1), *y = tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1);
    tn_tensor      *mask = mask_of(memory_lengths, 9), *unread = mask_of(lengths, 11), *z[2];
    for (int read = 0; read < 2; read++) {
        for (int skip = 0; skip < 2; skip++) {
            tn_seed(4);
            z[skip] = tn_transformer_forward(m, x, y, .src_key_padding_mask = mask, .key_padding_mask = unread,
                                             .memory_key_padding_mask = read ? NULL : mask, .causal = true,
                                             .skip_padding = skip);
            fine();
            z[skip] = without_padding(z[skip], unread);
        }
        ck_assert(tn_same_bits(z[0], z[1]));
    }
    tn_free(m);
}

/* Of .targets alone the same bits as in the whole result, and the gradients of a loss that reads only them; with and
 * without padding, also if a memory budget recomputes the layers, and while a hook needs all rows. */
TEST_EACH(targets, 2 * KINDS)
{
    const struct kind kind = kind_of(_i / 2), *k = &kind;
    const int64_t     at[] = {0, 3, 11, 25, 24, 25, 45}; /* of no padding; unordered; one twice */
    tn_blocks        *m = stack(k);
    tn_tensor        *x = tn_requires_grad(tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1)), *of = NULL;
    tn_tensor        *mask = _i % 2 ? mask_of(lengths, 11) : NULL, *where = tn_from_data(TN_I64, TN_SHAPE(7), at);
    tn_tensor        *memory = k->memory ? tn_normal(TN_SHAPE(BATCH, 9, DIM), 0, 1) : NULL;
    tn_tensor        *y[4], *grad[4][2];
    for (int way = 0; way < 4; way++) { /* all rows, then a selection; .targets; with a budget; with a hook */
        tn_tensor *list[128];
        int        n = 0;
        tn_zero_grads(m);
        tn_zero_grad(x);
        if (way == 3) tn_module_after(tn_at(m->layers, 2), nothing, m);
        tn_budget *b = way == 2 ? tn_budget_new(tn_memory_now().live + (1u << 22)) : NULL;
        if (b) tn_budget_begin(b, 0);
        tn_seed(12);
        y[way] = tn_blocks_forward(m, x, .memory = memory, .key_padding_mask = mask, .causal = k->causal,
                                   .skip_padding = true, .targets = way ? where : NULL);
        if (!way) y[0] = tn_unsqueeze(tn_index_select(tn_flatten(y[0], 0, 1), 0, where), 0);
        fine();
        ck_assert(tn_shape_equal(tn_shape_of(y[way]), TN_SHAPE(1, 7, DIM)));
        if (!way) of = tn_normal(TN_SHAPE(1, 7, DIM), 0, 1);
        tn_backward(tn_sum(tn_mul(y[way], of)));
        if (b) tn_budget_again(b);
        tn_budget_free(b);
        for (tn_each p = tn_parameters(m); tn_next(&p);)
            list[n++] = tn_clone(tn_reshape(tn_grad(p.tensor), TN_SHAPE(-1)));
        grad[way][0] = tn_cat_list(0, n, list), grad[way][1] = tn_clone(tn_grad(x));
        fine();
    }
    for (int way = 1; way < 4; way++) {
        ck_assert_msg(tn_same_bits(y[way], y[0]), "%s, %d", k->name, way);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(tn_allclose(grad[way][i], grad[0][i], 1e-5, 1e-5), "%s, %d: gradients", k->name, way);
    }
    tn_free(m);
}

TEST(wrong_targets)
{
    const struct kind k = kind_of(1);
    tn_blocks        *m = stack(&k);
    tn_tensor        *x = tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1), *mask = mask_of(lengths, 11);
    tn_blocks_forward(m, x, .key_padding_mask = mask, .skip_padding = true,
                      .targets = tn_full_of(TN_I64, TN_SHAPE(1), 12));
    ck_error_has(TN_EINVAL, "position 12 of the flattened batch, which is padding");
    tn_blocks_forward(m, x, .targets = tn_full_of(TN_I64, TN_SHAPE(1), BATCH * 11));
    ck_error_has(TN_EINDEX, "index 55");
    tn_blocks_forward(m, x, .targets = tn_ones(TN_SHAPE(1)));
    ck_error_has(TN_ESHAPE, ".targets must be i64 [N]");
    tn_blocks_forward(m, x, .targets = tn_full_of(TN_I64, TN_SHAPE(1), 0), .mask_decoder = tn_ones(TN_SHAPE(11, DIM)));
    ck_error_has(TN_EINVAL, ".targets cannot be used with .mask_decoder");
    tn_free(m);
}

TEST(memory_fails)
{
    const struct kind decoder = kind_of(3);
    tn_faulty_memory_begin();
    const tn_scope all = tn_scope_begin();
    tn_blocks     *m = stack(&decoder);
    tn_tensor     *x = tn_normal(TN_SHAPE(BATCH, 11, DIM), 0, 1), *memory = tn_normal(TN_SHAPE(BATCH, 9, DIM), 0, 1);
    tn_tensor     *mask = mask_of(lengths, 11), *of_memory = mask_of(memory_lengths, 9);
    tn_eval(m);
    for (int64_t at = 0, calls = 0; at <= calls; at++) {
        tn_scope s = tn_scope_begin();
        tn_trim();
        tn_fail_memory(at, true);
        tn_tensor *y = tn_blocks_forward(m, x, .memory = memory, .key_padding_mask = mask,
                                         .memory_key_padding_mask = of_memory, .skip_padding = true);
        calls = tn_memory_calls();
        tn_fail_memory(-1, false);
        if (!y) ck_error_code(TN_ENOMEM);
        tn_scope_end(s);
    }
    tn_free(m);
    tn_scope_end(all);
    tn_faulty_memory_end();
}
