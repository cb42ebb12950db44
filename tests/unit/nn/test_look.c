/* test_look.c — tn_look: the recorded tensors and their paths, no change of bits by observing, gradients, changes, and
 * pruned heads. */
#include "nn/nn.h"
#include "tests/common/check_main.h"

static double apart(tn_tensor *a, tn_tensor *b)
{
    ck_assert(a && b && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)));
    return tn_item(tn_amax(tn_reshape(tn_abs(tn_sub(a, b)), TN_SHAPE(-1)), .dims = TN_DIMS(0)));
}
static void same(tn_tensor *a, tn_tensor *b)
{
    ck_assert(a && b && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)));
    ck_assert(tn_allclose(a, b, 0, 0));
}

static tn_blocks *stack(tn_dtype dt)
{
    tn_blocks *m = tn_transformer_encoder_new(.layers = 2, .dim = 8, .heads = 4, .ff = 12, .dropout = 0, .dtype = dt,
                                              .activation = tn_gelu);
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        if (tn_ndim(p.tensor) == 1) tn_init_normal(p.tensor, 0.5, 0.5);
    return m;
}
static tn_tensor *input(tn_dtype dt) { return tn_normal_of(dt, TN_SHAPE(2, 5, 8), 0, 1); }

/* ---- recorded tensors -------------------------------------------------------------------------------------------- */

TEST(results_and_parts_by_their_paths)
{
    tn_blocks *m = stack(TN_F32);
    tn_look   *l = tn_look_new();
    tn_tensor *x = input(TN_F32), *plain = tn_blocks_forward(m, x), *w[2];
    tn_look_request(l, "**");
    tn_scope   s = tn_look_begin(l);
    tn_tensor *y = tn_scope_return(s, tn_blocks_forward(m, x));
    fine();
    same(y, plain); /* observing does not change the bits */
    ck_assert(!strcmp(tn_look_name(l, 0), "layers.0.self_attn.queries"));
    same(tn_look_at(l, "layers.1"), y); /* the result of the last layer is that of the stack */
    tn_blocks_forward(m, x, .weights = w);
    ck_assert_int_eq(tn_look_times(l, "layers.1"), 1); /* the second run was not observed */
    same(tn_look_at(l, "layers.0.self_attn.weights"), w[0]);
    same(tn_look_at(l, "layers.1.self_attn.weights"), w[1]);
    const tn_shape heads = tn_shape_of(tn_look_at(l, "layers.1.self_attn.heads"));
    ck_assert(tn_shape_equal(heads, TN_SHAPE(2, 5, 4, 2)));
    /* the result of a head is its weights times its values */
    tn_tensor *h = tn_matmul(w[0], tn_look_at(l, "layers.0.self_attn.values"));
    ck_assert_double_le(apart(tn_permute(h, TN_DIMS(0, 2, 1, 3)), tn_look_at(l, "layers.0.self_attn.heads")), 1e-6);
    tn_block  *first = tn_at(m->layers, 0);
    tn_tensor *made =
        tn_call(first->self_attn->out_proj, tn_reshape(tn_look_at(l, "layers.0.self_attn.heads"), TN_SHAPE(2, 5, 8)));
    same(made, tn_look_at(l, "layers.0.self_attn"));
    ck_assert_ptr_nonnull(tn_look_at(l, "layers.0.linear1")); /* a fused op would have skipped this part */
    ck_assert_ptr_nonnull(tn_look_at(l, "layers.0.norm1"));
    const int64_t n = tn_look_count(l);
    tn_blocks_forward(m, input(TN_F32)); /* after the scope: not observed */
    ck_assert_int_eq(tn_look_count(l), n);
    same(tn_look_at(l, "layers.1"), y);
    tn_look_clear(l);
    ck_assert_int_eq(tn_look_count(l), 0);
    tn_look_free(l);
    tn_free(m);
}

TEST(only_what_is_wanted)
{
    tn_blocks *m = stack(TN_F32);
    tn_look   *l = tn_look_new(), *inner = tn_look_new();
    tn_look_request(l, "layers.*.self_attn.heads");
    tn_look_request(inner, "layers.1");
    tn_scope s = tn_look_begin(l), t = tn_look_begin(inner);
    tn_blocks_forward(m, input(TN_F32));
    tn_scope_end(t);
    ck_assert_int_eq(tn_look_count(l), 2);
    ck_assert_int_eq(tn_look_count(inner), 1);
    tn_blocks_forward(m, input(TN_F32), .weights = (tn_tensor *[2]){NULL});
    tn_scope_end(s);
    fine();
    ck_assert_int_eq(tn_look_count(l), 2);
    ck_assert(tn_shape_equal(tn_shape_of(tn_look_at(inner, "layers.1")), TN_SHAPE(2, 5, 8)));
    tn_look_free(l), tn_look_free(inner);
    tn_free(m);
}

static void watched_body(int64_t from, int64_t to, void *user)
{
    (void)from, (void)to;
    tn_call((tn_linear *)user, tn_ones(TN_SHAPE(1, 2)));
}
TEST(loops_are_not_watched)
{
    tn_sequential *net = tn_sequential_new();
    tn_linear     *in = tn_append(net, tn_linear_new(.in = 2, .out = 2));
    tn_look       *l = tn_look_new();
    tn_look_request(l, "**");
    tn_scope s = tn_look_begin(l);
    for (int threads = 1; threads <= 2; threads++) {
        tn_set_threads(threads);
        tn_parallel_for(4, 1, watched_body, in);
        ck_assert_int_eq(tn_look_count(l), 0);
    }
    tn_set_threads(0);
    tn_call(net, tn_ones(TN_SHAPE(1, 2)));
    ck_assert_int_eq(tn_look_count(l), 1);
    tn_scope_end(s);
    tn_look_free(l);
    tn_free(net);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static tn_tensor *shifted(const char *path, tn_tensor *t, void *user)
{
    (void)path;
    return tn_add(t, *(tn_tensor **)user);
}

/* ∂loss/∂(part) by finite differences: a small value is added to each element of the part. */
static void check_gradient(const char *path)
{
    tn_blocks *m = stack(TN_F64);
    tn_tensor *x = input(TN_F64), *more = NULL, *c = tn_normal_of(TN_F64, TN_SHAPE(2, 5, 8), 0, 1);
    tn_look   *l = tn_look_new(), *change = tn_look_new();
    tn_look_request(l, path, .grad = true);
    tn_scope   s = tn_look_begin(l);
    tn_tensor *loss = tn_scope_return(s, tn_sum(tn_mul(tn_blocks_forward(m, x), c)));
    ck_assert(tn_look_backward(l, loss, NULL) == TN_OK);
    fine();
    tn_tensor *g = tn_look_grad_at(l, path);
    tn_look_request(change, path, .change = shifted, .user = &more);
    for (int64_t i = 0; i < tn_numel(g); i += 7) {
        double value[2];
        for (int k = 0; k < 2; k++) {
            more = tn_zeros_like(g);
            tn_set(more, i, k ? 1e-5 : -1e-5);
            s = tn_look_begin(change);
            value[k] = tn_item(tn_sum(tn_mul(tn_blocks_forward(m, x), c)));
            tn_scope_end(s);
        }
        ck_assert_double_eq_tol((value[1] - value[0]) / 2e-5, tn_get(g, i), 1e-6 * (1 + fabs(tn_get(g, i))));
    }
    fine();
    tn_look_free(l), tn_look_free(change);
    tn_free(m);
}
TEST_EACH(gradients_of_parts, 8)
{
    static const char *const paths[] = {"layers.0",
                                        "layers.1.linear1",
                                        "layers.0.self_attn",
                                        "layers.0.self_attn.heads",
                                        "layers.1.self_attn.weights",
                                        "layers.1.self_attn.values",
                                        "layers.0.self_attn.queries",
                                        "layers.0.self_attn.keys"};
    check_gradient(paths[_i]);
}

TEST(gradients_where_nothing_is_trained)
{
    tn_blocks *m = stack(TN_F32);
    tn_look   *l = tn_look_new();
    tn_freeze(m, true);
    tn_look_request(l, "layers.0.self_attn.heads", .grad = true);
    tn_scope   s = tn_look_begin(l);
    tn_tensor *y = tn_scope_return(s, tn_blocks_forward(m, input(TN_F32)));
    ck_assert(tn_look_backward(l, y, tn_ones_like(y)) == TN_OK);
    ck_assert(tn_shape_equal(tn_shape_of(tn_look_grad_at(l, "layers.0.self_attn.heads")), TN_SHAPE(2, 5, 4, 2)));
    tn_look_free(l);
    tn_free(m);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static tn_tensor *diagonal(const char *path, tn_tensor *t, void *user)
{
    (void)path, (void)user;
    ck_assert_ptr_null(t);
    return tn_logical_not(tn_to(tn_eye(5, 5), TN_BOOL));
}
TEST(a_mask_of_ones_own)
{
    tn_blocks *m = stack(TN_F32);
    tn_look   *l = tn_look_new();
    tn_look_request(l, "layers.1.self_attn.attn_mask", .change = diagonal);
    tn_look_request(l, "**.weights");
    tn_scope s = tn_look_begin(l);
    tn_blocks_forward(m, input(TN_F32));
    tn_scope_end(s);
    fine();
    same(tn_look_at(l, "layers.1.self_attn.weights"), tn_expand(tn_eye(5, 5), TN_SHAPE(2, 4, 5, 5)));
    ck_assert(
        !tn_allclose(tn_look_at(l, "layers.0.self_attn.weights"), tn_look_at(l, "layers.1.self_attn.weights"), 0, 0.1));
    tn_look_free(l);
    tn_free(m);
}

static tn_tensor *refuses(const char *path, tn_tensor *t, void *user)
{
    (void)t, (void)user;
    tn_raise(TN_EINVAL, "not %s", path);
    return NULL;
}
TEST(what_is_said_of_mistakes)
{
    tn_blocks *m = stack(TN_F32);
    tn_look   *l = tn_look_new();
    ck_refused(tn_look_at(l, "a"), TN_EINDEX,
               "tn_look_at: nothing was recorded; run the model inside the scope of tn_look_begin, and pass "
               "paths that it has to tn_look_request");
    tn_look_request(l, NULL);
    ck_error(TN_EINVAL, "tn_look_request: the path is NULL");
    tn_look_request(l, "**.a.**");
    ck_error(TN_EINVAL, "tn_look_request: '**.a.**' has more than one **");
    tn_look_request(l, "*.*.*.*.*.*.*.*.*");
    ck_error(TN_EINVAL, "tn_look_request: '*.*.*.*.*.*.*.*.*' has more than 8 stars");
    tn_look_begin(NULL);
    ck_error(TN_EINVAL, "tn_look_begin: the look is NULL");
    tn_look_request(l, "layers.0");
    tn_scope   s = tn_look_begin(l);
    tn_tensor *y = tn_blocks_forward(m, input(TN_F32));
    tn_look_backward(l, y, NULL);
    ck_error(TN_ESTATE, "tn_look_backward: no tensor wanted with .grad was recorded");
    tn_look_grad_at(l, "layers.0");
    ck_error(TN_ESTATE, "tn_look_grad_at: 'layers.0' has no gradient: pass .grad = true to tn_look_request");
    tn_look_at(l, "layers.2");
    ck_error(TN_EINDEX, "tn_look_at: 'layers.2' was not recorded; recorded are 1 paths, from 'layers.0' to 'layers.0'");
    tn_look_request(l, "layers.1.norm1", .change = refuses);
    ck_refused(tn_blocks_forward(m, input(TN_F32)), TN_EINVAL, "layers.1.norm1: not layers.1.norm1");
    for (int i = 1; i < 8; i++) tn_look_begin(l);
    fine();
    tn_look_begin(l);
    ck_error(TN_ESTATE, "tn_look_begin: 8 looks are already active, the maximum; end their scopes");
    tn_scope_end(s);
    tn_blocks_forward(m, input(TN_F32));
    fine();
    s = tn_look_begin(l);
    tn_look_free(l); /* freed within its scope: then no look is active */
    tn_blocks_forward(m, input(TN_F32));
    tn_scope_end(s);
    tn_free(m);
}

/* ---- pruned heads ------------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t        n;
    const int64_t *heads;
} masked;
/* Sets the results of these heads to 0. */
static tn_tensor *without(const char *path, tn_tensor *t, void *user)
{
    (void)path;
    const masked *k = user;
    tn_tensor    *gate = tn_ones_of(tn_dtype_of(t), TN_SHAPE(tn_size(t, 2), 1));
    for (int64_t i = 0; i < k->n; i++) tn_set(gate, k->heads[i], 0);
    return tn_mul(t, gate);
}
static tn_tensor *run_masked(tn_mha *m, tn_tensor *x, tn_tensor *memory, masked *k)
{
    tn_look *l = tn_look_new();
    tn_look_request(l, "**.heads", .change = without, .user = k);
    tn_scope   s = tn_look_begin(l);
    tn_tensor *y = tn_scope_return(s, tn_mha_forward(m, x, memory, memory));
    tn_look_free(l);
    return y;
}
static tn_mha *of_kind(int kind)
{
    tn_mha *m = kind == 0   ? tn_mha_new(.dim = 12, .heads = 4)
                : kind == 1 ? tn_mha_new(.dim = 12, .heads = 4, .kdim = 7, .vdim = 7)
                : kind == 2 ? tn_mha_new(.dim = 12, .heads = 4, .kv_heads = 4)
                : kind == 3 ? tn_mha_new(.dim = 12, .heads = 4, .kv_heads = 2)
                            : tn_mha_new(.dim = 12, .heads = 4, .no_bias = true);
    for (tn_each p = tn_parameters(m); tn_next(&p);) tn_init_normal(p.tensor, 0, 0.5);
    return m;
}
TEST_EACH(pruned_is_as_masked, 5)
{
    static const int64_t heads[] = {2, 3, 0, 1}; /* in case 3, pairs of heads share keys */
    tn_mha              *m = of_kind(_i);
    tn_tensor           *x = tn_normal(TN_SHAPE(2, 5, 12), 0, 1);
    tn_tensor           *memory = _i == 1 ? tn_normal(TN_SHAPE(2, 3, 7), 0, 1) : x;
    for (int64_t n = 2; n <= 4; n += _i == 3 ? 2 : 1) {
        masked     k = {n, heads};
        tn_mha    *p = tn_copy(m);
        tn_tensor *want = run_masked(m, x, memory, &k);
        ck_assert(tn_mha_prune(p, 2, heads) == TN_OK); /* in one call or in two */
        ck_assert(tn_mha_prune(p, n, heads) == TN_OK);
        fine();
        ck_assert_int_eq(p->heads, 4 - n);
        ck_assert_double_le(apart(tn_mha_forward(p, x, memory, memory), want), 1e-6);
        ck_assert_int_eq(tn_count(p) < tn_count(m), 1);
        ck_assert(tn_shape_equal(tn_shape_of(p->out_proj->weight), TN_SHAPE(12, 3 * (4 - n))));
        if (n == 3) ck_assert_int_eq(p->left[0], 1);
        tn_tensor *loss = tn_sum(tn_square(tn_mha_forward(p, x, memory, memory)));
        ck_assert(tn_backward(loss) == TN_OK);
        fine();
        tn_mha *again = tn_copy(p);
        same(tn_mha_forward(again, x, memory, memory), tn_mha_forward(p, x, memory, memory));
        tn_free(again), tn_free(p);
    }
    tn_free(m);
}

/* Layers with different numbers of heads, a mask per head, a cache, and relative positions. */
TEST(pruned_in_a_stack)
{
    tn_blocks *m = tn_blocks_new(.layers = 2, .dim = 8, .heads = 4, .ff = 12, .dropout = 0, .order = TN_NORM_FIRST,
                                 .attention.positions = tn_relative_positions_new(.heads = 4, .buckets = 8,
                                                                                  .distance = 16, .causal = true));
    tn_block  *first = tn_at(m->layers, 0);
    tn_init_normal(tn_find_tensor(first, "relative.weight"), 0, 1);
    tn_look *l = tn_look_new();
    masked   k = {2, (const int64_t[]){0, 3}};
    tn_look_request(l, "layers.0.self_attn.heads", .change = without, .user = &k);
    tn_tensor *x = tn_normal(TN_SHAPE(1, 6, 8), 0, 1), *blocked = tn_bernoulli(TN_SHAPE(1, 4, 6, 6), 0.2);
    blocked = tn_to(blocked, TN_BOOL);
    tn_scope   s = tn_look_begin(l);
    tn_tensor *want = tn_scope_return(s, tn_blocks_forward(m, x, .causal = true, .attn_mask = blocked));
    ck_assert(tn_mha_prune(first->self_attn, 2, k.heads) == TN_OK);
    ck_assert_double_le(apart(tn_blocks_forward(m, x, .causal = true, .attn_mask = blocked), want), 1e-6);
    tn_tensor   *all = tn_blocks_forward(m, x, .causal = true);
    tn_kv_cache *c = tn_blocks_cache(m, 1, 6, 0);
    s = tn_no_grad_begin();
    for (int64_t i = 0; i < 6; i++)
        same(tn_blocks_forward(m, tn_narrow(x, 1, i, 1), .causal = true, .cache = c), tn_narrow(all, 1, i, 1));
    tn_scope_end(s);
    tn_kv_cache_free(c);
    tn_look_free(l);
    tn_free(m);
}

TEST(what_cannot_be_pruned)
{
    tn_mha *m = of_kind(3);
    ck_assert(tn_mha_prune(m, 1, (const int64_t[]){4}) != TN_OK);
    ck_error(TN_EINDEX, "tn_mha_prune: head 4 does not exist; heads are 0 to 3");
    tn_mha_prune(m, 1, (const int64_t[]){1});
    ck_error(TN_EINVAL, "tn_mha_prune: heads 0 to 1 share keys and must be removed together; head 1 is in the list, "
                        "head 0 is not");
    tn_mha_prune(m, 1, NULL);
    ck_error(TN_EINVAL, "tn_mha_prune: the list of heads is NULL");
    ck_assert_int_eq(m->heads, 4);
    tn_mha_prune(NULL, 0, NULL);
    ck_error(TN_EINVAL, "tn_mha_prune: the module is NULL: it is an absent child, or its constructor failed and the "
                        "error was cleared");
    ck_assert_ptr_null(tn_mha_of(&m->out_proj->base));
    ck_assert_ptr_eq(tn_mha_of(&m->base), m);
    tn_free(m);
}
