/* test_block_options.c — options of attention and blocks that language models differ in: norms of queries and keys,
 * caps of scores, norms of results, factors 1 + weight, patterns of layers, windows to both sides. Gradients by
 * differences, the same results as compositions of ops, the same bits with a cache, errors. */
#include "nn/nn.h"
#include "tests/common/answers.h"

/* Changes all norms and biases from their initial values. */
static void shaken(void *m)
{
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_next(&p);)
        tn_copy_(p.tensor, tn_add(p.tensor, tn_normal_of(tn_dtype_of(p.tensor), tn_shape_of(p.tensor), 0, 0.3)));
    tn_scope_end(s);
}

#define STACK .layers = 3, .dim = 6, .heads = 2, .ff = 5, .dropout = 0, .order = TN_NORM_FIRST, .final_norm = true
#define ROTARY .attention.positions = tn_rotary_new(), .attention.head_dim = 4

/* The kinds of layers, one letter each: g sees all keys, h too, without a norm before its attention, l has the window
 * and angles of its own if theta is set, n sees all and has no positions. */
typedef struct {
    const char *letters;
    double      theta;
    tn_rotary  *local;
} pattern;
static void set_layer(tn_block_config *c, int64_t i, void *user)
{
    pattern   *p = user;
    const char kind = p->letters[(size_t)i % strlen(p->letters)];
    if (kind != 'l') c->attention.scores.window = 0;
    if (kind == 'h') c->order = TN_NORM_FIRST_HALF;
    if (kind == 'n') c->attention.positions = NULL;
    if (kind != 'l' || !(p->theta > 0)) return;
    if (!p->local) p->local = tn_rotary_new(.theta = p->theta);
    c->attention.positions = p->local;
}
#define PATTERN(...) \
    .each = set_layer, .user = &(pattern) { __VA_ARGS__ }
static tn_blocks *stack(int i, tn_dtype dt)
{
    switch (i) {
    case 0:
        return tn_blocks_new(STACK, ROTARY, .norm.kind = TN_NORM_RMS, .attention.scores.qk_norm = TN_QK_NORM_HEAD,
                             .dtype = dt);
    case 1:
        return tn_blocks_new(STACK, ROTARY, .norm.kind = TN_NORM_RMS, .attention.scores.qk_norm = TN_QK_NORM_ALL,
                             .order = TN_NORM_RESULT, .attention.kv_heads = 1, .dtype = dt);
    case 2:
        return tn_blocks_new(STACK, ROTARY, .norm.kind = TN_NORM_RMS, .order = TN_NORM_SANDWICH, .norm.add_one = true,
                             .attention.scores.cap = 0.7, .attention.scores.scale = 1.5, PATTERN("lg", 0, NULL),
                             .attention.scores.window = 2, .gated = true, .attention.scores.qk_norm = TN_QK_NORM_HEAD,
                             .dtype = dt);
    case 3:
        return tn_blocks_new(STACK, .attention.head_dim = 4, PATTERN("lng", 20, NULL), .attention.scores.window = 3,
                             .dtype = dt,
                             .attention.positions = tn_rotary_new(.theta = 50, .scaling = TN_ROPE_LINEAR, .factor = 2));
    case 4: return tn_blocks_new(STACK, .attention.scores.cap = 1.2, .order = TN_NORM_SANDWICH, .dtype = dt);
    case 5:
        return tn_blocks_new(STACK, .attention.head_dim = 4, .no_bias = true, .gated = true, PATTERN("hl", 20, NULL),
                             .attention.scores.window = 2, .dtype = dt,
                             .attention.positions = tn_rotary_new(.theta = 50));
    default: return tn_blocks_new(STACK, ROTARY, .attention.scores.window = 2, .attention.scores.cap = 2, .dtype = dt);
    }
}
enum { STACKS = 7, LENGTH = 5 };

/* ---- gradients --------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_blocks *m;
    bool       causal;
} run_of;
static tn_tensor *blocks_of(tn_tensor *const *in, int n, void *user)
{
    const run_of *r = user;
    (void)n;
    return tn_blocks_forward(r->m, in[0], .causal = r->causal);
}

TEST_EACH(gradients, tn_test_slow() ? STACKS : 2 * STACKS)
{
    tn_tensor *in[16]; /* the most that tn_gradcheck takes: parameters in groups */
    run_of     r = {stack(_i % STACKS, TN_F64), (_i + _i / STACKS) % 2}; /* each stack causal and not */
    fine();
    shaken(r.m);
    in[0] = tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, LENGTH, 6), 0, 1));
    tn_each p = tn_module_each(r.m, TN_EACH_PARAMETER);
    for (int n = 16; n == 16; n = tn_test_slow() ? 0 : n) { /* slow: only the first ones */
        for (n = 1; n < 16 && tn_next(&p); n++) in[n] = p.tensor;
        ck_assert_msg(tn_gradcheck(blocks_of, .count = n, .inputs = in, .user = &r, .name = "blocks") == TN_OK, "%s",
                      tn_error_message());
    }
    tn_free(r.m);
}

/* Gradients of gradients of capped attention with a window to both sides. */
static tn_tensor *attention_of(tn_tensor *const *in, int n, void *user)
{
    (void)user, (void)n;
    return tn_attention(in[0], in[1], in[2], .attn_mask = in[3], .cap = 0.8, .scale = 1.3, .window = 2);
}
TEST(second_gradients)
{
    tn_tensor *in[4];
    for (int i = 0; i < 4; i++) in[i] = tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, 3, 3), 0, 1));
    ck_assert_msg(tn_gradcheck(attention_of, .count = 4, .inputs = in, .name = "attention", .second = true) == TN_OK,
                  "%s", tn_error_message());
}

/* ---- the same as ops --------------------------------------------------------------------------------------------- */

/* Longer than a block of keys and of queries. */
TEST(windows_to_both_sides_and_caps)
{
    enum { T = 300 };
    static const int64_t windows[] = {1, 2, 70, 129, 1000};
    tn_tensor           *q = tn_normal(TN_SHAPE(2, T, 8), 0, 1), *k = tn_normal(TN_SHAPE(2, T, 8), 0, 1),
              *v = tn_normal(TN_SHAPE(2, T, 5), 0, 1), *at = tn_arange_of(TN_F32, 0, T, 1);
    for (int i = 0; i < 5; i++) {
        tn_tensor *far = tn_ge(tn_abs(tn_sub(tn_unsqueeze(at, 1), at)), tn_full(TN_SCALAR, (double)windows[i]));
        tn_tensor *w, *y = tn_attention(q, k, v, .window = windows[i], .cap = 1.5);
        ck_assert_double_le(furthest(y, tn_attention(q, k, v, .attn_mask = far, .cap = 1.5)), 0);
        tn_tensor *s = tn_mul_scalar(tn_matmul(q, tn_transpose(k, 1, 2)), 1 / sqrt(8));
        s = tn_masked_fill(tn_mul_scalar(tn_tanh(tn_mul_scalar(s, 1 / 1.5)), 1.5), far, -INFINITY);
        ck_assert_double_le(furthest(y, tn_matmul(tn_softmax(s, -1), v)), 2e-6);
        ck_assert(tn_same_bits(tn_attention(q, k, v, .window = windows[i], .cap = 1.5, .weights = &w), y));
        ck_assert_double_le(furthest(w, tn_softmax(s, -1)), 2e-6);
        fine();
    }
}

TEST(norms_of_queries_and_keys)
{
    for (int i = 1; i < 3; i++) {
        tn_mha *m = tn_mha_new(.dim = 6, .heads = 2, .head_dim = 4, .kv_heads = 1, .no_bias = true,
                               .scores.qk_norm = (tn_qk_norm)i, .scores.eps = 1e-3, .scores.add_one = i == 2);
        fine();
        shaken(m);
        tn_tensor *x = tn_normal(TN_SHAPE(2, 3, 6), 0, 1), *p[2];
        for (int k = 0; k < 2; k++) {
            tn_rms_norm *norm = k ? m->k_norm : m->q_norm;
            tn_tensor   *w = i == 2 ? tn_add_scalar(norm->weight, 1) : norm->weight;
            p[k] = tn_call(k ? m->k_proj : m->q_proj, x);
            if (i == 2) p[k] = tn_rms_norm(p[k], w, 1e-3);
            p[k] = tn_permute(tn_reshape(p[k], TN_SHAPE(2, 3, k ? 1 : 2, 4)), TN_DIMS(0, 2, 1, 3));
            if (i == 1) p[k] = tn_rms_norm(p[k], w, 1e-3);
        }
        tn_tensor *v = tn_unsqueeze(tn_call(m->v_proj, x), 1), *y = tn_attention(p[0], p[1], v, .causal = true);
        y = tn_call(m->out_proj, tn_reshape(tn_permute(y, TN_DIMS(0, 2, 1, 3)), TN_SHAPE(2, 3, 8)));
        ck_assert_double_le(furthest(tn_mha_forward(m, x, x, x, .causal = true), y), 1e-6);
        fine();
        tn_free(m);
    }
}

/* A stack with a pattern computes what its blocks compute one after another. */
TEST(patterns)
{
    tn_blocks           *m = stack(3, TN_F32);
    tn_tensor           *x = tn_normal(TN_SHAPE(2, 9, 6), 0, 1), *y = x;
    static const int64_t windows[] = {3, 0, 0};
    static const double  theta[] = {20, 0, 50}, factor[] = {1, 0, 2};
    for (int i = 0; i < 3; i++) {
        tn_block *b = tn_at(m->layers, i);
        ck_assert(b->self_attn->scores.window == windows[i] && (tn_rotary_of(b->self_attn) != NULL) == (i != 1));
        const tn_rotary *r = tn_rotary_of(b->self_attn);
        if (r) ck_assert(r->rope.theta == theta[i] && r->rope.factor == factor[i]);
        y = tn_block_forward(b, y, .causal = true);
    }
    ck_assert(tn_same_bits(tn_call(m->norm, y), tn_blocks_forward(m, x, .causal = true)));
    tn_blocks_forward(m, x, .causal = true,
                      .placed =
                          &(tn_placed){.made = {tn_mha_angles(((tn_block *)tn_at(m->layers, 0))->self_attn, 0, 9)}});
    ck_error(TN_EINVAL, "layers: blocks: .placed is given, but the layers have different positions");
    tn_free(m);
}

/* ---- the same bits with a cache ---------------------------------------------------------------------------------- */

typedef struct {
    tn_blocks   *m;
    tn_kv_cache *cache;
    tn_tensor   *x;
} stepping;
static tn_tensor *step_of(void *user)
{
    const stepping *s = user;
    return tn_blocks_forward(s->m, s->x, .causal = true, .cache = s->cache);
}

TEST_EACH(a_cache, STACKS)
{
    enum { T = 140 };
    tn_blocks     *m = stack(_i, TN_F32);
    const tn_scope s = tn_no_grad_begin();
    shaken(m), tn_eval(m);
    tn_tensor   *x = tn_normal(TN_SHAPE(2, T, 6), 0, 1), *all = tn_blocks_forward(m, x, .causal = true);
    tn_kv_cache *cache = tn_blocks_cache(m, 2, T, 0);
    stepping     steps = {m, cache, tn_clone(tn_narrow(x, 1, 0, 1))};
    ck_assert(tn_same_bits(tn_blocks_forward(m, tn_narrow(x, 1, 0, 4), .causal = true, .cache = cache),
                           tn_narrow(all, 1, 0, 4)));
    tn_replay *r = tn_kv_cache_record(cache, step_of, &steps);
    fine();
    for (int64_t t = 4; t < T; t++) {
        tn_copy_(steps.x, tn_narrow(x, 1, t, 1));
        ck_assert(tn_same_bits(t % 2 ? step_of(&steps) : tn_kv_cache_replay(cache, r), tn_narrow(all, 1, t, 1)));
    }
    tn_replay_free(r), tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m);
}

/* Positions after forgotten ones are rotated in rotary layers only, each kind by its own angles. */
TEST(forgets)
{
    tn_blocks     *m = tn_blocks_new(.layers = 1, .dim = 6, .heads = 2, .ff = 5, .dropout = 0, .order = TN_NORM_FIRST,
                                     ROTARY, PATTERN("l", 30, NULL), .attention.scores.window = 9);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = tn_normal(TN_SHAPE(1, 6, 6), 0, 1),
              *short_x = tn_cat(1, tn_narrow(x, 1, 0, 1), tn_narrow(x, 1, 3, 3));
    tn_kv_cache *cache = tn_blocks_cache(m, 1, 8, 0);
    tn_blocks_forward(m, tn_narrow(x, 1, 0, 5), .causal = true, .cache = cache);
    ck_assert_int_eq(tn_blocks_forget(m, cache, 1, 2), TN_OK);
    tn_tensor *y = tn_blocks_forward(m, tn_narrow(x, 1, 5, 1), .causal = true, .cache = cache);
    ck_assert_double_le(furthest(y, tn_narrow(tn_blocks_forward(m, short_x, .causal = true), 1, 3, 1)), 1e-5);
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m);
}

#define REFUSED(call, says) ck_refused(call, TN_EINVAL, says)

/* ---- who frees a part -------------------------------------------------------------------------------------------- */

/* A part has one owner, the first that may own it, and is freed with it; if creating that fails, at once. */
TEST(parts_are_owned)
{
    tn_blocks *m = tn_blocks_new(.layers = 3, .dim = 8, .heads = 2, .ff = 4, .attention.scores.window = 2,
                                 .attention.positions = tn_rotary_new(.theta = 50), PATTERN("lg", 20, NULL));
    fine();
    const tn_mha *a[3];
    for (int i = 0; i < 3; i++) a[i] = ((tn_block *)tn_at(m->layers, i))->self_attn;
    ck_assert(a[0]->positions == a[2]->positions && a[1]->positions == m->positions && a[0]->positions != m->positions);
    ck_assert_ptr_eq(tn_find(m, "positions"), m->positions);
    ck_assert_ptr_eq(tn_find(m, "layers.0.self_attn.positions"), a[0]->positions);
    tn_blocks *copy = tn_copy(m);
    tn_tensor *x = tn_normal(TN_SHAPE(1, 5, 8), 0, 1), *y;
    tn_eval(m), tn_eval(copy);
    y = tn_blocks_forward(m, x);
    tn_free(m);
    ck_assert(tn_same_bits(tn_blocks_forward(copy, x), y));
    tn_free(copy);
    const size_t live = tn_memory_now().live;
    REFUSED(tn_mha_new(.dim = 4, .heads = 3, .positions = tn_rotary_new()),
            "tn_mha_new: 3 heads do not divide width 4; .dim must be a multiple of .heads");
    REFUSED(tn_mha_new(.dim = 6, .heads = 2, .positions = tn_rotary_new()),
            "rotary: .dim is 3, but must be even and at most a head's 3");
    REFUSED(
        tn_block_new(.dim = 4, .heads = 2, .layers = 1, .attention.positions = tn_relative_positions_new(.heads = 2)),
        "tn_block_new: .layers, .groups, .each and .final_norm are options of a stack, not of one block; call "
        "tn_blocks_new");
    REFUSED(
        tn_blocks_new(.layers = 2, .dim = 4, .heads = 2, .attention.positions = tn_relative_positions_new(.heads = 1)),
        "relative_positions: .heads is 1, but the attention has 2");
    REFUSED(
        tn_blocks_new(.layers = 2, .dim = 6, .heads = 2, .attention.positions = tn_rotary_new(), PATTERN("l", 9, NULL)),
        "rotary: .dim is 3, but must be even and at most a head's 3");
    REFUSED(tn_transformer_new(.dim = 4, .heads = 2, .encoder_layers = 0, .attention.positions = tn_rotary_new(),
                               .decoder_positions = tn_rotary_new()),
            "tn_transformer_new: .encoder_layers is 0, but must be at least 1");
    ck_assert_uint_eq(tn_memory_now().live, live);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(wrong_use)
{
    REFUSED(
        tn_mha_new(.dim = 4, .heads = 2, .scores.cap = -1),
        "tn_mha_new: .scores has .scale 0, .cap -1 and .window 0, which must be positive or 0, and .qk_norm 0, which "
        "must be a tn_qk_norm");
    REFUSED(
        tn_mha_new(.dim = 4, .heads = 2, .scores.qk_norm = (tn_qk_norm)3),
        "tn_mha_new: .scores has .scale 0, .cap 0 and .window 0, which must be positive or 0, and .qk_norm 3, which "
        "must be a tn_qk_norm");
    REFUSED(tn_rms_norm_new(.dim = 4, .add_one = true, .no_affine = true),
            "tn_rms_norm_new: .add_one needs a weight; unset .no_affine");
    REFUSED(tn_blocks_new(.dim = 4, .heads = 2, .layers = 2, .norm.kind = (tn_norm_kind)2),
            "tn_blocks_new: .norm.kind is 2 and .order 0; expected a tn_norm_kind, and a tn_norm_order, of which a "
            "decoder has TN_NORM_LAST or TN_NORM_FIRST");
    REFUSED(tn_block_new(.dim = 4, .heads = 2, .attention.positions = tn_linear_new(.in = 1, .out = 1)),
            "tn_block_new: .positions is a Linear, but must be a module whose class has .positions");
    tn_mha *m = tn_mha_new(.dim = 4, .heads = 2, .scores.qk_norm = TN_QK_NORM_ALL);
    ck_fails(tn_mha_prune(m, 1, (int64_t[]){1}), TN_EUNSUPPORTED,
             "tn_mha_prune: TN_QK_NORM_ALL norms all heads together; heads cannot be removed");
    tn_free(m);
    m = tn_mha_new(.dim = 4, .heads = 2, .scores.window = 2);
    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *cache = tn_kv_cache_new(.batch = 1, .length = 4, .heads = 2, .head_dim = 2);
    tn_tensor     *x = tn_ones(TN_SHAPE(1, 3, 4));
    REFUSED(tn_mha_forward(m, x, x, x, .cache = cache), "mha: .scores.window is 2, which with .cache needs .causal");
    tn_scope_end(s);
    tn_kv_cache_free(cache), tn_free(m);
}
