/* test_experts.c — mixture of experts: gradients by differences; one expert is the dense block, all experts are the
 * weighted sum; the router learns through the weights alone; the losses of the router; capacity; the same bits on any
 * number of threads, without padding, with a memory budget, with a cache; bf16, 8-bit weights, adapters; errors. */
#include "nn/nn.h"
#include "tests/common/answers.h"
#include "tests/common/faults.h"

/* Options of a block's experts. */
#define EXPERTS(...) \
    .feed_forward = tn_block_experts, .user = (tn_experts_config[]) { TN_EXPERTS(__VA_ARGS__) }
#define STACK .layers = 2, .dim = 6, .heads = 2, .ff = 5, .order = TN_NORM_FIRST, .final_norm = true
static tn_blocks *stack(int i, tn_dtype dt, double dropout)
{
    switch (i) {
    case 0: return tn_blocks_new(STACK, EXPERTS(.experts = 4), .activation = tn_mish, .dropout = dropout, .dtype = dt);
    case 1:
        return tn_blocks_new(STACK, EXPERTS(.experts = 3, .per_token = 1, .gated = true, .jitter = dropout / 10),
                             .activation = tn_silu, .no_bias = true, .dropout = dropout, .dtype = dt);
    case 2:
        return tn_blocks_new(STACK, EXPERTS(.experts = 4, .per_token = 3, .weights = TN_EXPERT_WEIGHTS_PROBABILITIES),
                             .order = TN_NORM_PARALLEL, .dropout = dropout, .activation = tn_gelu, .dtype = dt);
    default:
        return tn_blocks_new(STACK, EXPERTS(.experts = 3, .per_token = 3), .attention.positions = tn_rotary_new(),
                             .attention.head_dim = 4, .norm.kind = TN_NORM_RMS, .order = TN_NORM_SANDWICH,
                             .activation = tn_silu, .dropout = dropout, .dtype = dt);
    }
}
enum { STACKS = 4, LENGTH = 5 };

static tn_experts *experts_of(const tn_block *m) { return (tn_experts *)(void *)m->feed_forward; }

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static tn_tensor *with_losses(tn_tensor *const *in, int n, void *user)
{
    tn_blocks      *m = user;
    const tn_block *block = tn_at(m->layers, 0);
    tn_tensor      *router[2], *y = tn_blocks_forward(m, in[0], .causal = true, .router = router);
    (void)n;
    return tn_add(y, tn_router_loss(router, 2, .per_token = experts_of(block)->per_token, .balance = 0.7, .z = 0.3));
}

TEST_EACH(gradients, STACKS)
{
    tn_tensor *in[16]; /* the most that tn_gradcheck takes: parameters in groups */
    tn_blocks *m = stack(_i, TN_F64, 0);
    in[0] = tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, LENGTH, 6), 0, 1));
    tn_each p = tn_parameters(m);
    for (int n = 16; n == 16; n = tn_test_slow() ? 0 : n) { /* slow: only the first ones */
        for (n = 1; n < 16 && tn_next(&p); n++) in[n] = p.tensor;
        ck_assert_msg(tn_gradcheck(with_losses, .count = n, .inputs = in, .user = m, .name = "experts") == TN_OK, "%s",
                      tn_error_message());
    }
    tn_free(m);
}

/* Second derivatives of the products. */
static tn_tensor *grouped(tn_tensor *const *in, int n, void *user)
{
    (void)n;
    return tn_grouped_linear(in[0], user, 2, in + 1, in + 3);
}
TEST(second_gradients)
{
    static const int64_t at[] = {0, 0, 1, 2};
    const tn_shape       shape[] = {TN_SHAPE(4, 3), TN_SHAPE(2, 3), TN_SHAPE(2, 3), TN_SHAPE(2), TN_SHAPE(2)};
    tn_tensor           *in[5], *index = tn_from_data(TN_I64, TN_SHAPE(4), at);
    for (int i = 0; i < 5; i++) in[i] = tn_requires_grad(tn_normal_of(TN_F64, shape[i], 0, 1));
    ck_assert_msg(tn_gradcheck(grouped, .count = 5, .inputs = in, .user = index, .name = "grouped", .second = true) ==
                      TN_OK,
                  "%s", tn_error_message());
    ck_refused(tn_grouped_linear(in[0], index, 2, NULL, NULL), TN_EINVAL,
               "grouped_linear: 2 weights at NULL; expected an array of weights");
}

/* ---- the same as other computations ------------------------------------------------------------------------------ */

static void copied(tn_module *from, tn_module *to, const char *infix)
{
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_module_each(to, TN_EACH_PARAMETER); tn_next(&p);) {
        char  name[TN_PATH_BYTES] = "";
        char *at = strstr(p.name, infix);
        if (strstr(p.name, "router")) continue;
        if (at) snprintf(name, sizeof name, "%.*s%s", (int)(at - p.name), p.name, at + strlen(infix));
        else snprintf(name, sizeof name, "%s", p.name);
        at = strstr(name, ".0."); /* linear1.0.weight */
        if (at) memmove(at, at + 2, strlen(at + 2) + 1);
        tn_copy_(p.tensor, tn_module_find_tensor(from, name));
    }
    tn_scope_end(s);
    fine();
}

/* The same values, bit for bit but for the sign of 0, also of the gradients and with dropout. */
TEST_EACH(one_expert_is_dense, 3)
{
#define ONE .dim = 6, .heads = 2, .ff = 5, .dropout = 0.3, .order = TN_NORM_FIRST
#define ACT .activation = _i == 0 ? tn_relu : _i == 1 ? tn_silu : tn_gelu
    tn_block *dense = tn_block_new(ONE, ACT, .gated = _i > 0),
             *m = tn_block_new(ONE, ACT, EXPERTS(.experts = 1, .per_token = 1, .gated = _i > 0));
    tn_tensor *x = tn_normal(TN_SHAPE(2, 7, 6), 0, 1), *y[2], *at[2];
    copied(&dense->base, &m->base, "experts.");
    for (int i = 0; i < 2; i++) {
        at[i] = tn_requires_grad(tn_clone(x));
        tn_seed(3);
        y[i] = tn_block_forward(i ? m : dense, at[i]);
        tn_backward(tn_sum(tn_sin(y[i])));
    }
    fine();
    ck_assert_double_le(furthest(y[0], y[1]), 0);
    ck_assert_double_le(furthest(tn_grad(at[0]), tn_grad(at[1])), 0);
    ck_assert_double_le(
        furthest(tn_grad(dense->linear2->weight), tn_grad(((tn_linear *)tn_at(experts_of(m)->linear2, 0))->weight)), 0);
    ck_assert_double_le(
        furthest(tn_grad(dense->linear1->bias), tn_grad(((tn_linear *)tn_at(experts_of(m)->linear1, 0))->bias)), 0);
    ck_assert_double_le(furthest(tn_grad(experts_of(m)->router->weight), tn_zeros(TN_SHAPE(1, 6))), 0);
    tn_free(dense), tn_free(m);
}

static tn_tensor *expert(tn_experts *m, int64_t e, tn_tensor *x)
{
    tn_tensor *h = m->activation(tn_call((tn_linear *)tn_at(m->gate ? m->gate : m->linear1, e), x));
    if (m->gate) h = tn_mul(h, tn_call((tn_linear *)tn_at(m->linear1, e), x));
    return tn_call((tn_linear *)tn_at(m->linear2, e), h);
}

/* The sum over the chosen experts, from plain loops over tokens. */
static tn_tensor *by_tokens(tn_experts *m, tn_tensor *x)
{
    tn_tensor *y[64], *p = tn_softmax(tn_call(m->router, x), -1);
    for (int64_t t = 0; t < tn_size(x, 0); t++) {
        double     sum = 0, chosen[8] = {0};
        tn_tensor *row = tn_narrow(x, 0, t, 1), *all = tn_zeros(TN_SHAPE(1, m->dim));
        for (int64_t k = 0; k < m->per_token; k++) {
            int64_t best = -1;
            for (int64_t e = 0; e < m->experts; e++)
                if (!(chosen[e] > 0) && (best < 0 || tn_get(p, t * m->experts + e) > tn_get(p, t * m->experts + best)))
                    best = e;
            sum += chosen[best] = tn_get(p, t * m->experts + best);
        }
        for (int64_t e = 0; e < m->experts; e++)
            if (chosen[e] > 0)
                all = tn_add(all, tn_mul_scalar(expert(m, e, row), m->shares ? chosen[e] / sum : chosen[e]));
        y[t] = all;
    }
    return tn_cat_list(0, (int)tn_size(x, 0), y);
}

TEST_EACH(the_weighted_sum, 4)
{
    static const int64_t k[] = {1, 2, 5, 3};
    const tn_scope       s = tn_no_grad_begin();
    tn_experts          *m = tn_experts_new(.dim = 6, .ff = 7, .experts = 5, .per_token = k[_i], .gated = _i > 1,
                                            .weights = (tn_expert_weights)(_i == 3 ? 2 : 0));
    tn_tensor           *x = tn_normal(TN_SHAPE(33, 6), 0, 2), *y = tn_call(m, x);
    ck_assert(m->shares == (_i == 1 || _i == 2));
    ck_assert_double_le(furthest(y, by_tokens(m, x)), 3e-6);
    /* a token has the same bits alone */
    for (int64_t t = 0; t < 33; t += 4)
        ck_assert(tn_same_bits(tn_call(m, tn_narrow(x, 0, t, 1)), tn_clone(tn_narrow(y, 0, t, 1))));
    ck_assert(tn_same_bits(tn_call(m, tn_reshape(x, TN_SHAPE(3, 1, 11, 6))), tn_reshape(y, TN_SHAPE(3, 1, 11, 6))));
    ck_assert(tn_shape_equal(tn_shape_of(tn_call(m, tn_zeros(TN_SHAPE(2, 0, 6)))), TN_SHAPE(2, 0, 6)));
    tn_scope_end(s);
    tn_free(m);
}

/* With shares of one expert per token the weights are 1, and nothing else depends on the router. */
TEST(the_router_learns_through_the_weights)
{
    for (int i = 0; i < 2; i++) {
        tn_experts *m = tn_experts_new(.dim = 6, .ff = 7, .experts = 4, .per_token = 1,
                                       .weights = i ? TN_EXPERT_WEIGHTS_SHARES : TN_EXPERT_WEIGHTS_USUAL);
        tn_backward(tn_sum(tn_square(tn_call(m, tn_normal(TN_SHAPE(20, 6), 0, 1)))));
        fine();
        const double most = furthest(tn_grad(m->router->weight), tn_zeros(TN_SHAPE(4, 6)));
        ck_assert(i ? most < 1e-12 : most > 1e-4);
        tn_free(m);
    }
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

TEST(losses_of_equal_probabilities)
{
    tn_tensor   *same[] = {tn_full(TN_SHAPE(12, 8), 0.5), NULL, tn_full(TN_SHAPE(12, 8), 0.5)};
    const double z = 0.5 + log(8);
    for (int64_t k = 1; k < 8; k++) {
        ck_assert_double_eq_tol(tn_item(tn_router_loss(same, 3, .per_token = k, .balance = 1)), (double)k, 1e-6);
        ck_assert_double_eq_tol(tn_item(tn_router_loss(same, 3, .per_token = k, .z = 2)), 2 * z * z, 1e-5);
    }
    ck_assert_double_eq(tn_item(tn_router_loss(same + 1, 1, .balance = 1, .z = 1)), 0);
}

TEST(losses_by_loops)
{
    enum { LAYERS = 2, B = 2, T = 5, E = 4, K = 2 };
    tn_tensor *l[LAYERS], *unpadded[LAYERS], *padding = tn_zeros_of(TN_BOOL, TN_SHAPE(B, T)), *kept = tn_arange(8);
    double     f[E] = {0}, p[E] = {0}, z = 0, sum = 0, n = 0;
    tn_set_at(padding, TN_SHAPE(1, 3), 1), tn_set_at(padding, TN_SHAPE(1, 4), 1);
    for (int i = 0; i < LAYERS; i++) {
        l[i] = tn_normal(TN_SHAPE(B * T, E), 0, 1), unpadded[i] = tn_index_select(l[i], 0, kept);
        for (int64_t t = 0; t < 8; t++) {
            double all = 0;
            n++;
            for (int64_t e = 0; e < E; e++) all += exp(tn_get(l[i], t * E + e));
            for (int64_t e = 0; e < E; e++) {
                int larger = 0;
                for (int64_t o = 0; o < E; o++) larger += tn_get(l[i], t * E + o) > tn_get(l[i], t * E + e);
                f[e] += larger < K, p[e] += exp(tn_get(l[i], t * E + e)) / all;
            }
            z += log(all) * log(all);
        }
    }
    for (int e = 0; e < E; e++) sum += f[e] / n * (p[e] / n);
    const double want = 0.5 * E * sum + 0.25 * z / n;
    ck_assert_double_eq_tol(tn_item(tn_router_loss(l, LAYERS, .balance = 0.5, .z = 0.25, .padding = padding)), want,
                            1e-5);
    ck_assert_double_eq_tol(tn_item(tn_router_loss(unpadded, LAYERS, .balance = 0.5, .z = 0.25, .padding = padding)),
                            want, 1e-5);
}

/* ---- capacity and jitter ----------------------------------------------------------------------------------------- */

TEST(an_experts_capacity)
{
    static const int64_t chosen[] = {0, 1, 0, 2, 0, 1, 1, 0, 0, 2}; /* 5 tokens, 2 choices */
    static const int64_t token[] = {0, 1, 3, 0, 1, 4, 2, 4, 2, 3}, expert[] = {0, 0, 1, 1, 2, 2, 3, 3, 3, 3};
    const tn_routes      r = tn_route(tn_from_data(TN_I64, TN_SHAPE(5, 2), chosen), 3, 2);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(tn_get_i64(r.token, i), token[i]);
        ck_assert_int_eq(tn_get_i64(r.expert, i), expert[i]);
        ck_assert_int_eq(tn_get_i64(r.pair, i) / 2, token[i]);
    }
    /* all tokens choose expert 2: ⌈1.25 · 1 · 10 / 4⌉ = 4 of them are computed, in training */
    tn_experts *m = tn_experts_new(.dim = 3, .ff = 4, .experts = 4, .per_token = 1, .capacity = 1.25);
    tn_tensor  *x = tn_uniform(TN_SHAPE(10, 3), 1, 2), *y[2];
    tn_init_constant(tn_narrow(tn_narrow(m->router->weight, 0, 2, 1), 1, 0, 1), 100);
    for (int i = 0; i < 2; i++) tn_train(m, i == 0), y[i] = tn_call(m, x);
    ck_assert(tn_same_bits(tn_clone(tn_narrow(y[0], 0, 0, 4)), tn_clone(tn_narrow(y[1], 0, 0, 4))));
    ck_assert_double_le(furthest(tn_narrow(y[0], 0, 4, 6), tn_zeros(TN_SHAPE(6, 3))), 0);
    ck_assert(furthest(tn_narrow(y[1], 0, 4, 6), tn_zeros(TN_SHAPE(6, 3))) > 0);
    tn_train(m, true);
    tn_backward(tn_sum(tn_square(tn_call(m, tn_requires_grad(x)))));
    ck_assert_double_le(furthest(tn_narrow(tn_grad(x), 0, 4, 6), tn_zeros(TN_SHAPE(6, 3))), 0);
    tn_free(m);
}

TEST(jitter)
{
    tn_experts *m = tn_experts_new(.dim = 3, .ff = 4, .experts = 2, .per_token = 2, .jitter = 0.1);
    tn_tensor  *x = tn_ones(TN_SHAPE(500, 3)), *logits[2];
    tn_init_constant(m->router->weight, 1);
    for (int i = 0; i < 2; i++) tn_train(m, i == 0), tn_experts_forward(m, x, .router = &logits[i]);
    fine();
    tn_tensor *l = tn_reshape(logits[0], TN_SHAPE(-1));
    ck_assert_double_le(furthest(logits[1], tn_full(TN_SHAPE(500, 2), 3)), 0);
    ck_assert(tn_item(tn_amax(l)) > 3.1 && tn_item(tn_amax(l)) < 3.3 + 1e-6);
    ck_assert(tn_item(tn_amin(l)) < 2.9 && tn_item(tn_amin(l)) > 2.7 - 1e-6);
    tn_free(m);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *loss, *gradients;
} outcome;

/* One forward and backward with the losses of the router, in training. */
static outcome trained(tn_blocks *m, tn_tensor *x, tn_budget *b)
{
    tn_tensor *list[512], *router[8];
    outcome    o = {NULL, NULL};
    int        n = 0;
    const int  layers = (int)m->depth;
    const bool narrow = tn_dtype_of(x) == TN_BF16;
    do {
        const tn_scope s = tn_scope_begin(), cast = tn_autocast_begin(narrow);
        tn_seed(5);
        tn_budget_begin(b, 0);
        tn_tensor *y = tn_blocks_forward(m, x, .causal = true, .router = router);
        tn_tensor *loss =
            tn_add(tn_mean(tn_square(tn_to(y, TN_F32))), tn_router_loss(router, layers, .balance = 1, .z = 1));
        loss = tn_scope_return(cast, loss);
        tn_backward(loss);
        o.loss = tn_scope_return(s, loss ? tn_detach(loss) : NULL);
    } while (tn_budget_again(b));
    fine();
    for (tn_each p = tn_parameters(m); tn_next(&p);) list[n++] = tn_clone(tn_reshape(tn_grad(p.tensor), TN_SHAPE(-1)));
    o.gradients = tn_cat_list(0, n, list);
    tn_zero_grads(m);
    return o;
}

/* Products that are distributed over the threads, and products that are cut for them. */
TEST_EACH(threads, 3)
{
    static const int64_t rows[] = {3, 40, 900}, experts[] = {4, 16, 3};
    tn_blocks           *m =
        tn_blocks_new(.layers = 2, .dim = 48, .heads = 2, .ff = 64, EXPERTS(.experts = experts[_i], .gated = true));
    tn_tensor *x = tn_normal(TN_SHAPE(1, rows[_i], 48), 0, 1);
    outcome    first = {NULL, NULL};
    for (int n = 1; n < 4; n++) {
        tn_set_threads(n);
        const outcome o = trained(m, x, NULL);
        if (n == 1) first = o;
        ck_assert(tn_same_bits(o.loss, first.loss) && tn_same_bits(o.gradients, first.gradients));
    }
    tn_free(m);
}

TEST_EACH(a_budget, 2 * STACKS)
{
    tn_blocks *m = stack(_i % STACKS, TN_F32, 0.3);
    tn_tensor *x = tn_normal(TN_SHAPE(8, 30, 6), 0, 1);
    if (_i >= STACKS) x = tn_to(x, TN_BF16);
    const outcome want = trained(m, x, NULL);
    tn_budget    *b = tn_budget_new(tn_memory_now().live + ((size_t)64 << 20));
    for (int i = 0; i < 2; i++) { /* all recomputed, then all kept */
        const outcome o = trained(m, x, b);
        ck_assert_int_eq(tn_budget_last(b).recomputed, i ? 0 : 2);
        ck_assert(tn_same_bits(o.loss, want.loss) && tn_same_bits(o.gradients, want.gradients));
    }
    tn_budget_free(b);
    tn_free(m);
}

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
    enum { T = 20 };
    tn_blocks     *m = stack(_i, TN_F32, 0.1);
    const tn_scope s = tn_no_grad_begin();
    tn_eval(m);
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

/* ---- other weights ----------------------------------------------------------------------------------------------- */

TEST(bf16)
{
    tn_experts *m = tn_experts_new(.dim = 32, .ff = 48, .experts = 4, .gated = true);
    tn_tensor  *x = tn_normal(TN_SHAPE(50, 32), 0, 1), *y[2], *logits[2];
    for (int i = 0; i < 2; i++) {
        const tn_scope s = tn_autocast_begin(i);
        tn_tensor     *h = tn_experts_forward(m, x, .router = &logits[i]);
        ck_assert_int_eq(tn_dtype_of(h), i ? TN_BF16 : TN_F32);
        tn_backward(tn_sum(tn_square(tn_to(h, TN_F32))));
        tn_scope_return_list(s, 2, (tn_tensor *[]){y[i] = tn_to(h, TN_F32), logits[i]});
    }
    fine();
    ck_assert(tn_same_bits(logits[0], logits[1])); /* the choice is made in f32 */
    ck_assert(furthest(y[0], y[1]) < 0.02);
    for (tn_each p = tn_parameters(m); tn_next(&p);) ck_assert_int_eq(tn_dtype_of(tn_grad(p.tensor)), TN_F32);
    ck_assert_int_eq(tn_module_to(m, TN_BF16), TN_OK);
    tn_tensor *h = tn_experts_forward(m, tn_to(x, TN_BF16), .router = &logits[1]);
    ck_assert(tn_dtype_of(h) == TN_BF16 && tn_dtype_of(logits[1]) == TN_F32);
    tn_free(m);
}

/* Weights in 8 bits, adapters and hooks: each expert by itself. */
static tn_tensor *nothing(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    ++*(int *)user;
    return (void)m, (void)x, (void)y, NULL;
}
TEST(one_by_one)
{
    tn_experts *m = tn_experts_new(.dim = 32, .ff = 64, .experts = 4, .gated = true, .per_token = 2, .capacity = 1);
    tn_tensor  *x = tn_normal(TN_SHAPE(40, 32), 0, 1), *want = tn_call(m, x), *y;
    int         calls = 0;
    tn_module_after(tn_at(m->linear1, 3), nothing, &calls);
    ck_assert(tn_same_bits(tn_call(m, x), want));
    ck_assert_int_eq(calls, 1);
    tn_remove_hooks((tn_linear *)tn_at(m->linear1, 3), &calls);
    ck_assert_int_eq(tn_lora(m, .rank = 2, .names = "linear2.1"), TN_OK);
    ck_assert(tn_same_bits(tn_call(m, x), want)); /* B is 0 */
    const tn_linear *l = tn_at(m->linear2, 1);
    tn_init_constant(l->lora->b[0], 0.1);
    y = tn_call(m, x);
    ck_assert(furthest(y, want) > 1e-3);
    tn_backward(tn_sum(tn_square(y)));
    ck_assert(tn_grad(l->lora->a[0]) && !tn_grad(l->weight));
    ck_assert_int_eq(tn_lora_merge(m), TN_OK);
    ck_assert_double_le(furthest(tn_call(m, x), y), 1e-5);
    tn_eval(m);
    want = tn_call(m, x);
    ck_assert_int_eq(tn_quantize(m), TN_OK);
    ck_assert(!tn_is_packed(m->router->weight) && tn_is_packed(l->weight));
    y = tn_call(m, x);
    fine();
    ck_assert(furthest(y, want) > 0 && furthest(y, want) < 0.05);
    ck_assert(tn_shape_equal(tn_shape_of(tn_call(m, tn_zeros(TN_SHAPE(0, 32)))), TN_SHAPE(0, 32)));
    tn_free(m);
}

/* The balance loss spreads tokens that all chose one expert. */
TEST(balancing)
{
    tn_experts *m = tn_experts_new(.dim = 8, .ff = 8, .experts = 4, .per_token = 1);
    tn_tensor  *x = tn_add_scalar(tn_normal(TN_SHAPE(64, 8), 0, 1), 1), *logits, *w = m->router->weight;
    double      first = 0, last = 0;
    tn_init_constant(w, 0);
    tn_init_constant(tn_narrow(w, 0, 1, 1), 0.3);
    for (int i = 0; i < 300; i++) {
        const tn_scope s = tn_scope_begin();
        tn_experts_forward(m, x, .router = &logits);
        tn_tensor *l = tn_router_loss(&logits, 1, .per_token = 1, .balance = 1);
        last = tn_item(l), first = i ? first : last;
        tn_backward(l);
        const tn_scope no_grad = tn_no_grad_begin();
        tn_sub_(w, tn_mul_scalar(tn_grad(w), 0.3));
        tn_scope_end(no_grad);
        tn_zero_grads(m);
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(first > 1.5 && last < 1.1, "%g to %g", first, last);
    tn_free(m);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(wrong_use)
{
#define REFUSED(call, says) ck_refused(call, TN_EINVAL, says)
    REFUSED(tn_experts_new(.dim = 4, .experts = 0), "tn_experts_new: .experts is 0, but must be from 1 to 65536");
    REFUSED(tn_experts_new(.dim = 4, .experts = 2, .per_token = 3),
            "tn_experts_new: .per_token is 3, but must be from 1 to 2");
    REFUSED(tn_experts_new(.dim = 4, .experts = 2, .weights = (tn_expert_weights)3),
            "tn_experts_new: .weights is 3; expected a tn_expert_weights");
    REFUSED(tn_experts_new(.dim = 4, .experts = 2, .capacity = -1),
            "tn_experts_new: .capacity is -1, but must be positive and at most 1e6, or 0 for no limit");
    REFUSED(tn_experts_new(.dim = 4, .experts = 2, .jitter = 2),
            "tn_experts_new: .jitter is 2.0, but a probability is from 0 to 1");
    REFUSED(tn_block_new(.dim = 4, .heads = 2, EXPERTS(.experts = 2, .per_token = 3)),
            "tn_experts_new: .per_token is 3, but must be from 1 to 2");
    REFUSED(tn_block_new(.dim = 4, .heads = 2, .feed_forward = tn_block_experts),
            "tn_block_experts: .user must be the address of a tn_experts_config");
    tn_experts *m = tn_experts_new(.dim = 4, .ff = 4, .experts = 2);
    tn_tensor  *l = tn_zeros(TN_SHAPE(6, 2)), *padding = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 4));
    ck_refused(tn_call(m, tn_zeros(TN_SHAPE(2, 3))), TN_ESHAPE, "experts: x must be [..., 4], got [2, 3]");
    REFUSED(tn_router_loss(NULL, 2),
            "tn_router_loss: 2 layers at NULL and .per_token 2; expected an array of logits and at "
            "least 1 expert per token");
    ck_refused(tn_router_loss(&l, 1, .padding = padding), TN_ESHAPE,
               "tn_router_loss: logits of 6 tokens; expected 8, as .padding has, or 8");
    REFUSED(tn_router_loss(&padding, 1, .padding = l),
            "tn_router_loss: expected logits [tokens, experts] and .padding of bool");
    ck_refused(tn_router_loss(&l, 1, .per_token = 3, .balance = 1), TN_EINVAL,
               "topk: k is 3, but dim 1 has 2 elements");
    tn_tensor *unequal[] = {tn_zeros(TN_SHAPE(6, 1)), l};
    ck_refused(tn_router_loss(unequal, 2, .per_token = 1, .balance = 1), TN_ESHAPE,
               "tn_router_loss: layer 1 has 2 experts, the one before it 1");
    tn_free(m);
}

static double once(int i)
{
    const tn_scope s = tn_scope_begin();
    (void)i;
    tn_seed(1);
    tn_experts *m = tn_experts_new(.dim = 4, .ff = 4, .experts = 3, .gated = true);
    tn_tensor  *logits, *y = tn_experts_forward(m, tn_ones(TN_SHAPE(5, 4)), .router = &logits);
    double      v = 0;
    tn_backward(tn_add(tn_sum(y), tn_router_loss(&logits, 1, .balance = 1, .z = 1)));
    if (tn_error() == TN_OK) v = tn_item(tn_sum(tn_grad(m->router->weight))) + tn_item(tn_sum(y));
    tn_free(m);
    tn_scope_end(s);
    return v;
}
FIRST_TEST(memory_fails) { tn_each_allocation_fails(once, 0, tn_test_slow() ? 7 : 1, 5, 50); }
