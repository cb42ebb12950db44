/* test_disentangled.c — disentangled attention: the rows of relative positions compared with Hugging Face's
 * (tests/golden/deberta.py), scores compared with loops, gradients by finite differences, the same bits for any number
 * of threads, pruned heads, recomputation, and errors. The models are compared in test_deberta.c. */
#include "nn/nn.h"
#include "tests/common/answers.h"

TEST_EACH(rows, 6)
{
    static const int64_t tables[][2] = {{256, 512}, {32, 128}, {8, 9}, {20, 50}, {6, 1000}, {3, 7}};
    enum { FAR = 1100 };
    const int64_t   n = tables[_i][0], distance = tables[_i][1];
    tn_safetensors *golden = tn_safetensors_open(tn_test_data("golden/deberta/answers.safetensors"));
    const char     *name = tn_name("rows.%d.%d", (int)n, (int)distance);
    tn_tensor      *want = tn_safetensors_get(golden, name), *at;
    tn_distances   *m = tn_distances_new(.dim = 1, .of = {.distance = distance, .buckets = n, .no_norm = true});
    fine();
    const tn_scope s = tn_no_grad_begin();
    for (int64_t row = 0; row < 2 * n; row++) tn_set(m->weight, row, (double)row);
    tn_tensor *row = tn_distances_forward(m, FAR + 1, &at);
    for (int64_t d = -FAR; d <= FAR; d++) {
        const int64_t i = d < 0 ? 0 : d, j = i - d;
        const double  got = tn_get(row, tn_get_i64(at, i * (FAR + 1) + j));
        ck_assert_msg(got == (double)tn_get_i64(want, d + FAR), "%s: %d is in %g, not %d", name, (int)d, got,
                      (int)tn_get_i64(want, d + FAR));
    }
    tn_scope_end(s);
    tn_safetensors_close(golden);
    tn_free(m);
}

/* Without buckets; only the rows that occur are used. */
TEST(rows_without_buckets)
{
    tn_distances *m = tn_distances_new(.dim = 3, .of = {.distance = 4});
    tn_tensor    *at, *row = tn_distances_forward(m, 3, &at);
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(row), TN_SHAPE(5, 3)) && tn_size(m->weight, 0) == 8 && m->norm);
    for (int64_t i = 0; i < 9; i++) ck_assert_int_eq(tn_get_i64(at, i), i / 3 - i % 3 + 2);
    row = tn_distances_forward(m, 9, &at);
    ck_assert(tn_size(row, 0) == 8 && tn_get_i64(at, 8) == 0 && tn_get_i64(at, 72) == 7);
    ck_assert(tn_size(tn_distances_forward(m, 1, &at), 0) == 1 && tn_get_i64(at, 0) == 0);
    tn_free(m);
}

#define PLACED(r, at)      \
    .placed = &(tn_placed) \
    {                      \
        .made = { r, at }  \
    }
enum { HEADS = 2, D = 3, DIM = HEADS * D, T = 5, B = 2 };
static tn_mha *attention(bool c2p, bool p2c, bool own, tn_dtype dtype)
{
    tn_mha *m =
        tn_mha_new(.dim = DIM, .heads = HEADS, .dtype = dtype,
                   .positions =
                       tn_distances_new(.dim = DIM, .dtype = dtype,
                                        .of = {
                                            .distance = T, .c2p = c2p, .p2c = p2c, .own_projs = own, .no_norm = true}));
    fine();
    for (tn_each p = tn_parameters(m); tn_next(&p);) tn_init_normal(p.tensor, 0, 0.7);
    return m;
}

static tn_disentangled terms_of(const tn_mha *m) { return ((const tn_distances *)(const void *)m->positions)->of; }

/* Head h of row r of x W + b, whose rows begin at `from`. */
static double dot(tn_tensor *w, tn_tensor *b, int64_t from, tn_tensor *x, int64_t row, int64_t of)
{
    double y = tn_get(b, from + of);
    for (int64_t i = 0; i < DIM; i++) y += tn_get_at(w, TN_SHAPE(from + of, i)) * tn_get(x, row * DIM + i);
    return y;
}

/* The weights of query i of row b and head h by the formula. */
static void by_formula(const tn_mha *m, tn_tensor *x, tn_tensor *r, int64_t b, int64_t h, int64_t i, double w[T])
{
    double sum = 0;
    for (int64_t j = 0; j < T; j++) {
        double        s = 0;
        const int64_t row = i - j + T - 1;
        for (int64_t e = h * D; e < (h + 1) * D; e++) {
            tn_tensor   *W = m->in_proj_weight, *bias = m->in_proj_bias;
            const double q = dot(W, bias, 0, x, b * T + i, e), k = dot(W, bias, DIM, x, b * T + j, e);
            s += q * k;
            if (terms_of(m).c2p)
                s += q * (m->pos_key_proj ? dot(m->pos_key_proj->weight, m->pos_key_proj->bias, 0, r, row, e)
                                          : dot(W, bias, DIM, r, row, e));
            if (terms_of(m).p2c)
                s += k * (m->pos_query_proj ? dot(m->pos_query_proj->weight, m->pos_query_proj->bias, 0, r, row, e)
                                            : dot(W, bias, 0, r, row, e));
        }
        sum += w[j] = exp(s / sqrt(D * (1. + terms_of(m).c2p + terms_of(m).p2c)));
    }
    for (int64_t j = 0; j < T; j++) w[j] /= sum;
}

/* Relative positions 1 - T … T - 1 have one row each. */
static tn_tensor *all_rows(void)
{
    tn_tensor *at = tn_zeros_of(TN_I64, TN_SHAPE(T, T));
    for (int64_t i = 0; i < T * T; i++) tn_set_i64(at, i, i / T - i % T + T - 1);
    return at;
}

TN_TEST(weights_by_the_formula, 1, 6, 0)
{
    tn_mha    *m = attention(_i & 1 || _i > 3, _i & 2 || _i > 3, _i >= 3, TN_F64);
    tn_tensor *x = tn_normal_of(TN_F64, TN_SHAPE(B, T, DIM), 0, 1), *w;
    tn_tensor *r = tn_normal_of(TN_F64, TN_SHAPE(2 * T - 1, DIM), 0, 1);
    tn_mha_forward(m, x, x, x, PLACED(r, all_rows()), .weights = &w, .weights_per_head = true);
    fine();
    for (int64_t row = 0; row < B * HEADS * T; row++) {
        double want[T];
        by_formula(m, x, r, row / T / HEADS, row / T % HEADS, row % T, want);
        for (int64_t j = 0; j < T; j++) ck_assert_double_le(fabs(tn_get(w, row * T + j) - want[j]), 1e-12);
    }
    tn_free(m);
}

/* Masks of each kind block what they block without position terms; heads can be pruned. */
TEST_EACH(masks_and_pruned_heads, 2)
{
    tn_seed(3);
    tn_mha    *m = attention(true, true, _i, TN_F32);
    tn_tensor *x = tn_normal(TN_SHAPE(B, T, DIM), 0, 1), *r = tn_normal(TN_SHAPE(2 * T - 1, DIM), 0, 1), *w;
    tn_tensor *blocked = tn_triu(tn_ones(TN_SHAPE(T, T)), 1), *at = all_rows();
    tn_tensor *bools = tn_gt(blocked, tn_zeros(TN_SCALAR)), *added = tn_mul_scalar(blocked, -1e30);
    tn_tensor *y = tn_mha_forward(m, x, x, x, PLACED(r, at), .causal = true);
    ck_assert_double_le(furthest(y, tn_mha_forward(m, x, x, x, PLACED(r, at), .attn_mask = bools)), 1e-6);
    ck_assert_double_le(furthest(y, tn_mha_forward(m, x, x, x, PLACED(r, at), .attn_mask = added)), 1e-6);
    tn_tensor *padding = tn_zeros_of(TN_BOOL, TN_SHAPE(B, T));
    tn_set_at(padding, TN_SHAPE(1, T - 1), 1);
    tn_mha_forward(m, x, x, x, PLACED(r, at), .key_padding_mask = padding, .weights = &w);
    fine();
    for (int64_t i = 0; i < T; i++) ck_assert(tn_get_at(w, TN_SHAPE(1, i, T - 1)) == 0);
    /* head 1 alone: the projection of the other head's result is 0 */
    const tn_scope s = tn_no_grad_begin();
    tn_init_zeros(tn_narrow(m->out_proj->weight, 1, 0, D));
    tn_scope_end(s);
    y = tn_mha_forward(m, x, x, x, PLACED(r, at));
    ck_assert_int_eq(tn_mha_prune(m, 1, (const int64_t[]){0}), TN_OK);
    ck_assert_double_le(furthest(y, tn_mha_forward(m, x, x, x, PLACED(r, at))), 1e-6);
    tn_free(m);
}

static tn_tensor *stack_run(tn_tensor *const *x, int n, void *user)
{
    tn_tensor *padding = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 4));
    (void)n;
    tn_set_at(padding, TN_SHAPE(1, 3), 1);
    return tn_blocks_forward((tn_blocks *)user, x[0], .key_padding_mask = padding, .mask_decoder = x[1]);
}
static tn_blocks *small_stack(tn_dtype dtype, bool own)
{
    tn_blocks *m =
        tn_blocks_new(.layers = 2, .dim = 4, .heads = 2, .ff = 5, .activation = tn_gelu, .dropout = 0, .dtype = dtype,
                      .attention.positions =
                          tn_distances_new(.dim = 4, .of = {.distance = 5, .buckets = 4, .own_projs = own},
                                           .dtype = dtype));
    fine();
    for (tn_each p = tn_parameters(m); tn_next(&p);) tn_init_normal(p.tensor, 0, 0.6);
    return m;
}
TEST_EACH(gradients, 2)
{
    tn_blocks  *m = small_stack(TN_F64, _i);
    const char *names[] = {"distances.weight", "distances.norm.weight", "distances.norm.bias",
                           _i ? "layers.0.self_attn.pos_key_proj.weight" : "layers.0.self_attn.in_proj_weight",
                           _i ? "layers.1.self_attn.pos_query_proj.bias" : "layers.1.self_attn.in_proj_bias"};
    enum { N = sizeof names / sizeof *names };
    tn_tensor *in[2 + N] = {tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(2, 4, 4), 0, 1)),
                            tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(4, 4), 0, 1))};
    for (int i = 0; i < N; i++) ck_assert_msg((in[2 + i] = tn_find_tensor(m, names[i])) != NULL, "%s", names[i]);
    ck_assert_msg(tn_gradcheck(stack_run, .count = 2 + N, .inputs = in, .user = m, .name = "DeBERTa") == TN_OK, "%s",
                  tn_error_message());
    tn_free(m);
}

/* 1, 2 and 3 threads, and a memory budget that recomputes the layers, give the same bits;
 * dropout is repeated by the seed, and also applies to the embeddings of positions. */
TEST(same_bits)
{
    tn_seed(4);
    const int  threads = tn_threads();
    tn_blocks *m = small_stack(TN_F32, true);
    tn_tensor *x = tn_normal(TN_SHAPE(2, 4, 4), 0, 1), *place = tn_normal(TN_SHAPE(4, 4), 0, 1), *in[] = {x, place};
    tn_tensor *first = NULL, *grad = NULL;
    for (int n = 1; n <= 4; n++) {
        tn_set_threads(n == 4 ? 2 : n);
        tn_budget *b = n == 4 ? tn_budget_new(tn_memory_now().live + (1u << 20)) : NULL;
        tn_tensor *y, *g;
        do {
            if (b) tn_budget_begin(b, 0);
            tn_zero_grads(m);
            y = stack_run(in, 2, m);
            ck_assert(tn_backward(tn_sum(tn_square(y))) == TN_OK);
            g = tn_clone(tn_grad(tn_find_tensor(m, "distances.weight")));
        } while (b && tn_budget_again(b));
        tn_budget_free(b);
        if (n == 1) first = y, grad = g;
        ck_assert(tn_same_bits(first, y) && tn_same_bits(grad, g));
    }
    tn_set_threads(threads);
    tn_tensor *y = tn_blocks_forward(m, x);
    fine();
    for (int64_t i = 0; i < 2; i++) ((tn_block *)tn_at(m->layers, i))->dropout1->p = 0.5;
    ((tn_distances *)(void *)m->positions)->dropout->p = 0.5;
    for (int i = 0; i < 2; i++) {
        tn_seed(9);
        tn_tensor *other = tn_blocks_forward(m, x);
        ck_assert(!tn_same_bits(y, other));
        y = other;
        tn_seed(9);
        ck_assert(tn_same_bits(y, tn_blocks_forward(m, x)));
        tn_eval(m);
        y = tn_blocks_forward(m, x);
        tn_train(m, true);
    }
    tn_free(m);
}

/* Without rows or without tokens the result is empty, and the gradients of the parameters are 0. */
TEST(empty)
{
    tn_blocks *m =
        tn_blocks_new(.layers = 2, .dim = DIM, .heads = HEADS, .ff = 4,
                      .attention.positions = tn_distances_new(.dim = DIM, .of = {.distance = 8, .buckets = 4}));
    for (int64_t n = 0; n < 2; n++) {
        tn_tensor *x = tn_zeros(TN_SHAPE(n ? 0 : B, n ? T : 0, DIM)), *y;
        tn_requires_grad(x);
        y = tn_blocks_forward(m, x, .mask_decoder = n ? NULL : x, .key_padding_mask = NULL);
        ck_assert_msg(y && tn_shape_equal(tn_shape_of(y), tn_shape_of(x)), "%s", tn_error_message());
        tn_backward(tn_sum(y));
        for (tn_each p = tn_parameters(m); tn_next(&p);)
            if (tn_grad(p.tensor)) ck_assert(tn_item(tn_sum(tn_abs(tn_grad(p.tensor)))) == 0);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    }
    tn_free(m);
}

TEST(wrong_use)
{
    tn_tensor *x = tn_normal(TN_SHAPE(B, T, DIM), 0, 1), *r = tn_normal(TN_SHAPE(2 * T - 1, DIM), 0, 1), *index;
    ck_refused(
        tn_distances_new(.dim = 2, .of = {.distance = 8, .buckets = 14}), TN_EINVAL,
        "tn_distances_new: .of.buckets is 14 and .of.distance is 8; expected at least 2 buckets and a distance of "
        "at least buckets / 2 + 2, or .of.buckets = 0 for none");
    ck_refused(tn_distances_new(.dim = 2), TN_EINVAL,
               "tn_distances_new: .of.distance is 0, but must be from 1 to 16777216");
    ck_refused(tn_mha_new(.dim = 4, .heads = 2, .scores.qk_norm = TN_QK_NORM_HEAD,
                          .positions = tn_distances_new(.dim = 4, .of = {.distance = 3})),
               TN_EINVAL,
               "distances: they need .dim = 4, and exclude .qk_norm, .kdim, and fewer .kv_heads than .heads");
    tn_mha *m = attention(true, false, false, TN_F32), *plain = tn_mha_new(.dim = DIM, .heads = HEADS);
    ck_refused(tn_mha_forward(plain, x, x, x, PLACED(r, NULL)), TN_EINVAL,
               "mha: .placed needs a module created with .positions");
    ck_refused(tn_mha_forward(m, x, x, x, PLACED(x, all_rows())), TN_ESHAPE,
               "distances: the rows must be [R, 6], as returned by tn_distances_forward, got [2, 5, 6]");
    ck_refused(tn_mha_forward(m, x, x, x, PLACED(r, tn_narrow(all_rows(), 0, 0, 4))), TN_ESHAPE,
               "distances: the index must be [T, S] = [5, 5], got [4, 5]");
    ck_refused(tn_mha_forward(m, x, x, x, PLACED(tn_narrow(r, 0, 0, 3), all_rows())), TN_EINDEX,
               "take_along: index 4 at [0, 0, 0, 0] is outside 0 … 2");
    tn_kv_cache *cache = tn_kv_cache_new(.batch = B, .length = T, .heads = HEADS, .head_dim = D);
    ck_refused(tn_mha_forward(m, x, x, x, .cache = cache), TN_EUNSUPPORTED, "distances: .cache is not supported");
    tn_block *first = tn_block_new(.dim = DIM, .heads = HEADS, .ff = 4, .order = TN_NORM_FIRST);
    ck_refused(tn_block_forward(first, x, .query = x), TN_EINVAL,
               "block: .query needs an encoder's block with .order = TN_NORM_LAST");
    ck_refused(tn_block_forward(first, x, .mask_decoder = x), TN_EINVAL, "block: .mask_decoder is for a stack");
    tn_blocks *stack = tn_blocks_new(.layers = 1, .dim = DIM, .heads = HEADS, .ff = 4);
    ck_refused(tn_blocks_forward(stack, x, .query = x), TN_EINVAL, "blocks: .query is for a single block");
    tn_distances *distances = tn_distances_new(.dim = 2, .of = {.distance = 3});
    ck_refused(tn_distances_forward(distances, -1, &index), TN_EINVAL,
               "distances: .length is -1, but must be from 0 to 2147483647");
    ck_refused(tn_distances_forward(distances, 2, NULL), TN_EINVAL,
               "distances: at is NULL; pass the address of a tensor");
    tn_kv_cache_free(cache);
    tn_free(m), tn_free(plain), tn_free(first), tn_free(stack), tn_free(distances);
}
