/* test_own_parts.c — parts of a user's own in the library's block: examples/own_parts.c, compiled in, its lines
 * counted. Its positions against a mask, with a cache and under a memory budget; the names of its feed-forward; a
 * position scheme that reads queries and keys; what such parts cannot do. */
int own_parts_main(void);
#define main own_parts_main
#include "../../../examples/own_parts.c"
#undef main

#include "tests/common/answers.h"

TEST(the_example)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/../examples/own_parts.c", tn_test_data("."));
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    int lines = 0;
    for (int c; (c = fgetc(f)) != EOF;) lines += c == '\n';
    fclose(f);
    ck_assert_int_le(lines, 80);
    ck_assert_int_eq(own_parts_main(), 0);
}

#define STACK .layers = 2, .dim = 8, .heads = 4, .ff = 6, .order = TN_NORM_FIRST, .dropout = 0
static tn_blocks *stack(void)
{
    tn_seed(7);
    tn_blocks *m =
        tn_blocks_new(STACK, .attention.positions = tn_built(tn_module_new(alibi)), .feed_forward = squared_new);
    fine();
    return m;
}
static tn_tensor *bias_of(const tn_blocks *m, int64_t n)
{
    const tn_placed p = {.attention = ((tn_block *)tn_at(m->layers, 0))->self_attn, .queries = n, .keys = n};
    return alibi_scores(NULL, &p, NULL, NULL);
}

/* The scheme's term is added to the scores, with a mask and with a cache; a budget recomputes it. */
TEST(positions_of_my_own)
{
    tn_blocks *m = stack(), *plain = tn_blocks_new(STACK, .feed_forward = squared_new);
    tn_tensor *x = tn_normal(TN_SHAPE(2, 6, 8), 0, 1), *blocked = tn_bernoulli_of(TN_BOOL, TN_SHAPE(6, 6), 0.3);
    tn_assign(plain, m);
    tn_tensor *want = tn_blocks_forward(plain, x, .causal = true, .attn_mask = bias_of(m, 6));
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .causal = true), want));
    want = tn_blocks_forward(plain, x, .attn_mask = tn_masked_fill(bias_of(m, 6), blocked, -INFINITY));
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .attn_mask = blocked), want));
    fine();

    tn_tensor *grad[2];
    for (int i = 0; i < 2; i++) {
        tn_budget *b = i ? tn_budget_new(tn_memory_now().live + (1u << 20)) : NULL;
        do {
            if (b) tn_budget_begin(b, 0);
            tn_zero_grads(m);
            ck_assert(tn_backward(tn_sum(tn_square(tn_blocks_forward(m, x, .causal = true)))) == TN_OK);
            grad[i] = tn_clone(tn_grad(tn_find_tensor(m, "layers.0.self_attn.in_proj_weight")));
        } while (b && tn_budget_again(b));
        tn_budget_free(b);
    }
    ck_assert(tn_same_bits(grad[0], grad[1]));

    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *cache = tn_blocks_cache(m, 2, 6, 0);
    tn_tensor     *all = tn_blocks_forward(m, x, .causal = true);
    for (int64_t t = 0; t < 6; t++)
        ck_assert(tn_same_bits(tn_blocks_forward(m, tn_narrow(x, 1, t, 1), .causal = true, .cache = cache),
                               tn_narrow(all, 1, t, 1)));
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m), tn_free(plain);
}

TEST(a_feed_forward_of_my_own)
{
    tn_blocks *m = stack();
    tn_tensor *x = tn_normal(TN_SHAPE(1, 3, 8), 0, 1);
    tn_block  *b = tn_at(m->layers, 1);
    ck_assert_ptr_nonnull(tn_find_tensor(m, "layers.1.feed_forward.up.weight"));
    ck_assert(!b->linear1 && b->feed_forward == tn_find(m, "layers.1.feed_forward"));
    tn_tensor *h = tn_call(b->norm1, x), *sum = tn_add(x, tn_mha_forward(b->self_attn, h, h, h));
    ck_assert(tn_same_bits(tn_block_forward(b, x), tn_add(sum, tn_call(b->feed_forward, tn_call(b->norm2, sum)))));
    tn_free(m);
}

/* A feed-forward with a router: the sum of x times each of its probabilities, of which the first is used. */
typedef struct {
    tn_module  base;
    tn_linear *router;
    int64_t    tokens, length; /* of the last call; tokens: the number of rows given, or -1 */
} halves;
enum { WAYS = 3 };
static tn_tensor *halves_run(void *self, tn_tensor *x, tn_tensor *rows, int64_t length, tn_tensor **router)
{
    halves *m = self;
    if (router) *router = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *logits = tn_call(m->router, tn_reshape(x, TN_SHAPE(-1, 8)));
    tn_tensor     *y =
        tn_mul(x, tn_reshape(tn_narrow(tn_softmax(logits, -1), 1, 0, 1), TN_SHAPE(tn_size(x, 0), tn_size(x, 1), 1)));
    m->tokens = rows ? tn_numel(rows) : -1, m->length = length;
    tn_leave_n(f, &y, &logits);
    if (router) *router = logits;
    return y;
}
static int64_t             halves_width(const void *m) { return ((void)m, WAYS); }
static const tn_router_ops halves_ops = {.run = halves_run, .width = halves_width, .name = "halves"};
static const tn_class      halves_class = {sizeof(tn_class), .name = "Halves", .bytes = sizeof(halves),
                                           .router = &halves_ops};
static void               *halves_new(const tn_block_config *c)
{
    halves *m = tn_module_new(halves);
    if (!m) return NULL;
    m->router = tn_child(m, "router", tn_linear_new(.in = c->dim, .out = WAYS));
    return tn_built(m);
}

/* Its name, its logits with and without a budget, and the rows that are not padding. */
TEST(a_router_of_my_own)
{
    tn_blocks    *m = tn_blocks_new(STACK, .feed_forward = halves_new);
    tn_tensor    *x = tn_normal(TN_SHAPE(2, 5, 8), 0, 1), *router[2][2], *grad[2];
    const halves *last = (const void *)tn_find(m, "layers.1.halves");
    fine();
    ck_assert_ptr_nonnull(last);
    for (int i = 0; i < 2; i++) {
        tn_budget *b = i ? tn_budget_new(tn_memory_now().live + (1u << 20)) : NULL;
        do {
            if (b) tn_budget_begin(b, 0);
            tn_zero_grads(m);
            tn_tensor *y = tn_blocks_forward(m, x, .causal = true, .router = router[i]);
            tn_tensor *loss = tn_router_loss(router[i], 2, .per_token = 1, .z = 0.5, .balance = 1);
            ck_assert(tn_backward(tn_add(tn_sum(tn_square(y)), loss)) == TN_OK);
            grad[i] = tn_clone(tn_grad(tn_find_tensor(m, "layers.0.halves.router.weight")));
        } while (b && tn_budget_again(b));
        tn_budget_free(b);
        ck_assert(tn_shape_equal(tn_shape_of(router[i][1]), TN_SHAPE(10, WAYS)));
        ck_assert(last->tokens == -1);
    }
    ck_assert(tn_same_bits(router[0][0], router[1][0]) && tn_same_bits(grad[0], grad[1]));

    tn_tensor *padding = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 5));
    tn_fill(tn_narrow(tn_select(padding, 0, 1), 0, 3, 2), 1);
    tn_tensor *want = tn_blocks_forward(m, x, .key_padding_mask = padding);
    tn_tensor *y = tn_blocks_forward(m, x, .key_padding_mask = padding, .skip_padding = true, .router = router[0]);
    ck_assert(last->tokens == 8 && last->length == 5);
    ck_assert(tn_size(router[0][1], 0) == 8);
    ck_assert(tn_same_bits(tn_select(y, 0, 0), tn_select(want, 0, 0)));
    ck_assert(tn_same_bits(tn_narrow(tn_select(y, 0, 1), 0, 0, 3), tn_narrow(tn_select(want, 0, 1), 0, 0, 3)));
    fine();
    tn_free(m);
}

static const tn_router_ops no_width = {.run = halves_run};
static const tn_class narrow_class = {sizeof(tn_class), .name = "Narrow", .bytes = sizeof(halves), .router = &no_width};
static void          *narrow_new(const tn_block_config *c)
{
    return ((void)c, tn_built((halves *)tn_module_create(&narrow_class)));
}

TEST(a_router_without_a_width)
{
    const int64_t tensors = tn_memory_now().tensors;
    ck_refused(tn_blocks_new(STACK, .feed_forward = narrow_new), TN_EINVAL,
               "block: .router of class Narrow needs .run and .width");
    ck_assert_int_eq(tn_memory_now().tensors, tensors);
}

/* Queries and keys are doubled, and the products of the doubled ones are added to the scores. */
static bool turn(void *m, const tn_placed *p, tn_tensor **q, tn_tensor **k)
{
    (void)m, (void)p;
    *q = tn_mul_scalar(*q, 2), *k = tn_mul_scalar(*k, 2);
    return tn_error() == TN_OK;
}
static tn_tensor *scores(void *m, const tn_placed *p, tn_tensor *q, tn_tensor *k)
{
    (void)m;
    ck_assert(tn_size(q, 2) == p->queries && tn_size(k, 2) == p->keys);
    return tn_matmul(q, tn_transpose(k, 2, 3));
}
static const tn_position_ops both = {.turn = turn, .scores = scores};
static const tn_class both_class = {sizeof(tn_class), .name = "Both", .bytes = sizeof(alibi), .positions = &both};

TEST(turns_and_scores)
{
    tn_mha    *m = tn_mha_new(.dim = 8, .heads = 2, .positions = tn_built((alibi *)tn_module_create(&both_class)));
    tn_mha    *scaled = tn_mha_new(.dim = 8, .heads = 2, .scores.scale = 4 * (0.5 + 1));
    tn_tensor *x = tn_normal(TN_SHAPE(2, 5, 8), 0, 1);
    tn_assign(scaled, m);
    ck_assert_double_le(
        furthest(tn_mha_forward(m, x, x, x, .causal = true), tn_mha_forward(scaled, x, x, x, .causal = true)), 1e-5);
    ck_assert_double_le(furthest(tn_mha_forward(m, x, x, x), tn_mha_forward(scaled, x, x, x)), 1e-5);
    fine();
    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *cache = tn_kv_cache_new(.batch = 2, .length = 5, .heads = 2, .head_dim = 4);
    tn_tensor     *all = tn_mha_forward(m, x, x, x, .causal = true);
    for (int64_t t = 0; t < 5; t++) {
        tn_tensor *one = tn_narrow(x, 1, t, 1);
        ck_assert_double_le(
            furthest(tn_mha_forward(m, one, one, one, .causal = true, .cache = cache), tn_narrow(all, 1, t, 1)), 1e-5);
    }
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m), tn_free(scaled);
}

/* .skip_padding is ignored; unpadded batches and int8 caches are refused where they could be wrong. */
TEST(limits)
{
    tn_blocks *m = stack();
    tn_tensor *x = tn_normal(TN_SHAPE(2, 4, 8), 0, 1), *padding = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 4));
    tn_set_at(padding, TN_SHAPE(1, 3), 1);
    ck_assert(tn_same_bits(tn_blocks_forward(m, x, .key_padding_mask = padding, .skip_padding = true),
                           tn_blocks_forward(m, x, .key_padding_mask = padding)));
    const tn_unpadded u = tn_unpad(padding);
    ck_refused(tn_blocks_forward(m, tn_unpad_rows(u, x), .unpadded = &u), TN_EUNSUPPORTED,
               "layers: mha: ALiBi positions need a padded batch, without .unpadded");
    tn_mha *turned = tn_mha_new(.dim = 8, .heads = 2, .positions = tn_built((alibi *)tn_module_create(&both_class)));
    const tn_scope s = tn_no_grad_begin();
    tn_kv_cache   *cache = tn_kv_cache_new(.batch = 2, .length = 5, .heads = 2, .head_dim = 4, .int8 = true);
    ck_refused(tn_mha_forward(turned, x, x, x, .causal = true, .cache = cache), TN_EUNSUPPORTED,
               "mha: Both positions read the keys, which an int8 cache has rounded");
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    tn_free(m), tn_free(turned);
}
