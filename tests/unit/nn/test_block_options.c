/* test_block_options.c — options of attention and blocks that language models differ in: norms of queries and keys,
 * caps of scores, norms of results, factors 1 + weight, patterns of layers, windows to both sides. Gradients by
 * differences, the same results as compositions of ops, the same bits with a cache, errors. */
#include "nn/nn.h"
#include "tests/common/answers.h"
#include "tests/common/bits.h"
#include "tests/common/check_main.h"
#include "tests/common/errors.h"

#include <math.h>

/* Changes all norms and biases from their initial values. */
static void shaken(void *m)
{
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_next(&p);)
        tn_copy_(p.tensor, tn_add(p.tensor, tn_normal_of(tn_dtype_of(p.tensor), tn_shape_of(p.tensor), 0, 0.3)));
    tn_scope_end(s);
}

#define STACK .layers = 3, .dim = 6, .heads = 2, .ff = 5, .dropout = 0, .norm_first = true, .final_norm = true
#define ROTARY .rotary = true, .head_dim = 4
static tn_blocks *stack(int i, tn_dtype dt)
{
    switch (i) {
    case 0: return tn_blocks_new(STACK, ROTARY, .norm = TN_NORM_RMS, .qk_norm = TN_QK_NORM_HEAD, .dtype = dt);
    case 1:
        return tn_blocks_new(STACK, ROTARY, .norm = TN_NORM_RMS, .qk_norm = TN_QK_NORM_ALL, .norm_first = false,
                             .norm_results = true, .kv_heads = 1, .dtype = dt);
    case 2:
        return tn_blocks_new(STACK, ROTARY, .norm = TN_NORM_RMS, .norm_results = true, .norm_add_one = true,
                             .score_cap = 0.7, .scale = 1.5, .pattern = "lg", .window = 2, .gated = true,
                             .qk_norm = TN_QK_NORM_HEAD, .dtype = dt);
    case 3:
        return tn_blocks_new(STACK, ROTARY, .pattern = "lng", .window = 3, .local_theta = 20, .rope.theta = 50,
                             .rope.scaling = TN_ROPE_LINEAR, .rope.factor = 2, .dtype = dt);
    case 4: return tn_blocks_new(STACK, .score_cap = 1.2, .norm_results = true, .dtype = dt);
    case 5:
        return tn_blocks_new(STACK, ROTARY, .no_first_norm = true, .no_bias = true, .gated = true, .pattern = "gl",
                             .window = 2, .local_theta = 20, .rope.theta = 50, .dtype = dt);
    default: return tn_blocks_new(STACK, ROTARY, .window = 2, .score_cap = 2, .dtype = dt);
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

START_TEST(gradients)
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
END_TEST

/* Gradients of gradients of capped attention with a window to both sides. */
static tn_tensor *attention_of(tn_tensor *const *in, int n, void *user)
{
    (void)user, (void)n;
    return tn_attention(in[0], in[1], in[2], .attn_mask = in[3], .cap = 0.8, .scale = 1.3, .window = 2);
}
START_TEST(second_gradients)
{
    tn_tensor *in[4];
    for (int i = 0; i < 4; i++) in[i] = tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, 3, 3), 0, 1));
    ck_assert_msg(tn_gradcheck(attention_of, .count = 4, .inputs = in, .name = "attention", .second = true) == TN_OK,
                  "%s", tn_error_message());
}
END_TEST

/* ---- the same as ops --------------------------------------------------------------------------------------------- */

/* Longer than a block of keys and of queries. */
START_TEST(windows_to_both_sides_and_caps)
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
END_TEST

START_TEST(norms_of_queries_and_keys)
{
    for (int i = 1; i < 3; i++) {
        tn_mha *m = tn_mha_new(.dim = 6, .heads = 2, .head_dim = 4, .kv_heads = 1, .no_bias = true,
                               .qk_norm = (tn_qk_norm)i, .qk_norm_eps = 1e-3, .qk_norm_add_one = i == 2);
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
END_TEST

/* A stack with a pattern computes what its blocks compute one after another. */
START_TEST(patterns)
{
    tn_blocks           *m = stack(3, TN_F32);
    tn_tensor           *x = tn_normal(TN_SHAPE(2, 9, 6), 0, 1), *y = x;
    static const int64_t windows[] = {3, 0, 0};
    static const double  theta[] = {20, 10000, 50}, factor[] = {1, 1, 2};
    for (int i = 0; i < 3; i++) {
        tn_block *b = tn_at(m->layers, i);
        ck_assert(b->self_attn->window == windows[i] && b->self_attn->rotary == (i != 1));
        ck_assert(b->self_attn->rope.theta == theta[i] && b->self_attn->rope.factor == factor[i]);
        y = tn_block_forward(b, y, .causal = true);
    }
    ck_assert(tn_same_bits(tn_call(m->norm, y), tn_blocks_forward(m, x, .causal = true)));
    tn_blocks_forward(m, x, .causal = true,
                      .angles = tn_mha_angles(((tn_block *)tn_at(m->layers, 0))->self_attn, 0, 9));
    ck_error(TN_EINVAL, "layers: blocks: .angles are given, but the layers have different rotary positions");
    tn_free(m);
}
END_TEST

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

START_TEST(a_cache)
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
    fine();
    tn_replay_free(r), tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m);
}
END_TEST

/* Positions after forgotten ones are rotated in rotary layers only, each kind by its own angles. */
START_TEST(forgets)
{
    tn_blocks *m = tn_blocks_new(.layers = 1, .dim = 6, .heads = 2, .ff = 5, .dropout = 0, .norm_first = true, ROTARY,
                                 .pattern = "l", .local_theta = 30, .window = 9);
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
END_TEST

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

#define REFUSED(call, says) ck_refused(call, TN_EINVAL, says)
START_TEST(wrong_use)
{
    REFUSED(tn_mha_new(.dim = 4, .heads = 2, .score_cap = -1),
            "tn_mha_new: .score_cap is -1, but must be positive, or 0 for none");
    REFUSED(tn_mha_new(.dim = 4, .heads = 2, .qk_norm = (tn_qk_norm)3),
            "tn_mha_new: .qk_norm is 3; expected a tn_qk_norm");
    REFUSED(
        tn_mha_new(.dim = 4, .heads = 2, .qk_norm_add_one = true),
        "tn_mha_new: .qk_norm is 0; expected a tn_qk_norm other than TN_QK_NORM_NONE, since .qk_norm_add_one is set");
    REFUSED(tn_rms_norm_new(.dim = 4, .add_one = true, .no_affine = true),
            "tn_rms_norm_new: .add_one needs a weight; unset .no_affine");
    REFUSED(tn_block_new(.dim = 4, .heads = 2, .norm_results = true, .parallel = true, .norm_first = true),
            "tn_block_new: .norm_results excludes .parallel and .memory");
    REFUSED(tn_blocks_new(.dim = 4, .heads = 2, .layers = 2, .no_first_norm = true),
            "tn_blocks_new: .no_first_norm needs .norm_first and excludes .parallel and .norm_results");
    REFUSED(tn_block_new(.dim = 4, .heads = 2, .norm_add_one = true),
            "tn_block_new: .norm_add_one needs .norm = TN_NORM_RMS");
    REFUSED(tn_blocks_new(.dim = 4, .heads = 2, .layers = 2, .pattern = "gx"),
            "tn_blocks_new: .pattern is 'gx', but must consist of the letters g, l and n");
    REFUSED(tn_blocks_new(.dim = 4, .heads = 2, .layers = 2, .pattern = ""),
            "tn_blocks_new: .pattern is '', but must consist of the letters g, l and n");
    REFUSED(tn_blocks_new(.dim = 4, .heads = 2, .layers = 2, .pattern = "gl"),
            "tn_blocks_new: .pattern has local layers; set .window, .local_theta or both");
    REFUSED(tn_blocks_new(.dim = 4, .heads = 2, .layers = 2, .local_theta = 5),
            "tn_blocks_new: .local_theta is 5; it must be positive, with .rotary and a .pattern that has local layers");
    REFUSED(tn_blocks_new(.dim = 4, .heads = 2, .layers = 2, .pattern = "n"),
            "tn_blocks_new: .pattern has layers without rotary positions, but .rotary is not set");
    tn_mha *m = tn_mha_new(.dim = 4, .heads = 2, .qk_norm = TN_QK_NORM_ALL);
    ck_assert_int_eq(tn_mha_prune(m, 1, (int64_t[]){1}), TN_EUNSUPPORTED);
    ck_error(TN_EUNSUPPORTED, "tn_mha_prune: TN_QK_NORM_ALL norms all heads together; heads cannot be removed");
    tn_free(m);
    m = tn_mha_new(.dim = 4, .heads = 2, .window = 2);
    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *cache = tn_kv_cache_new(.batch = 1, .length = 4, .heads = 2, .head_dim = 2);
    tn_tensor     *x = tn_ones(TN_SHAPE(1, 3, 4));
    REFUSED(tn_mha_forward(m, x, x, x, .cache = cache), "mha: .window is 2, which with .cache needs .causal");
    tn_scope_end(s);
    tn_kv_cache_free(cache), tn_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("block_options");
    TCase *c = tn_tcase(s, "block_options");
    tcase_add_loop_test(c, gradients, 0, tn_test_slow() ? STACKS : 2 * STACKS);
    tcase_add_test(c, second_gradients);
    tcase_add_test(c, windows_to_both_sides_and_caps);
    tcase_add_test(c, norms_of_queries_and_keys);
    tcase_add_test(c, patterns);
    tcase_add_loop_test(c, a_cache, 0, STACKS);
    tcase_add_test(c, forgets);
    tcase_add_test(c, wrong_use);
    return tn_check_main(s);
}
