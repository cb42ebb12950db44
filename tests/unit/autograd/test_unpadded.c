/* test_unpadded.c — unpadded batches, sequences one after another: the same bits as padded, for results, gradients and
 * dropout; a sequence alone and among others; gradients against differences; what is rejected. */
#include "autograd/autograd.h"
#include "autograd/tools.h"
#include "tests/common/check_main.h"

static int64_t below(int64_t n) { return (int64_t)(tn_random_double(NULL) * (double)n); }

/* ---- padded and unpadded ----------------------------------------------------------------------------------------- */

enum { MOST = 9 };
typedef struct {
    int64_t    n, longest, length[MOST];
    tn_tensor *offsets, *padding; /* [n + 1]; bool [n, longest] */
} batch;

static batch random_batch(int64_t n, int64_t longest)
{
    batch b = {.n = n, .longest = longest, .offsets = tn_zeros_of(TN_I64, TN_SHAPE(n + 1))};
    b.padding = tn_zeros_of(TN_BOOL, TN_SHAPE(n, longest));
    for (int64_t i = 0, at = 0; i < n; i++) {
        b.length[i] = below(5) ? below(longest + 1) : below(2) * longest;
        tn_set(b.offsets, i + 1, (double)(at += b.length[i]));
        for (int64_t t = b.length[i]; t < longest; t++) tn_set_at(b.padding, TN_SHAPE(i, t), 1);
    }
    return b;
}

/* The rows of x [n, heads, longest, width] that are not padding: [heads, rows, width]. */
static tn_tensor *unpadded(const batch *b, tn_tensor *x)
{
    tn_tensor *part[MOST];
    for (int64_t i = 0; i < b->n; i++) part[i] = tn_narrow(tn_select(x, 0, (int)i), 1, 0, b->length[i]);
    return tn_clone(tn_cat_list(1, (int)b->n, part));
}

/* Noise, with `fill` in the rows of padding. */
static tn_tensor *noise(const batch *b, tn_dtype dt, int64_t heads, int64_t width, double fill)
{
    tn_tensor *x = tn_to(tn_uniform_of(TN_F64, TN_SHAPE(b->n, heads, b->longest, width), -1, 1), dt);
    return tn_masked_fill(x, tn_reshape(b->padding, TN_SHAPE(b->n, 1, b->longest, 1)), fill);
}

typedef struct {
    tn_tensor *y, *g[3];
} outcome;

static outcome run(tn_attention_args a, tn_tensor *seed, const tn_generator *at)
{
    outcome    o;
    tn_tensor *in[3] = {a.q, a.k, a.v};
    *tn_current_generator() = *at;
    for (int i = 0; i < 3; i++) in[i] = tn_requires_grad(tn_detach(in[i]));
    a.q = in[0], a.k = in[1], a.v = in[2];
    o.y = tn_attention_run(a);
    fine();
    tn_grad_of(o.y, 3, in, o.g, .seed = seed);
    fine();
    return o;
}

static void compare(const batch *q, const batch *k, outcome padded, outcome o, const char *what)
{
    ck_assert_msg(tn_same_bits(unpadded(q, padded.y), o.y), "%s: y", what);
    ck_assert_msg(tn_same_bits(unpadded(q, padded.g[0]), o.g[0]), "%s: the gradient of q", what);
    ck_assert_msg(tn_same_bits(unpadded(k, padded.g[1]), o.g[1]), "%s: the gradient of k", what);
    ck_assert_msg(tn_same_bits(unpadded(k, padded.g[2]), o.g[2]), "%s: the gradient of v", what);
}

/* Attention of a sequence to itself and to another, causal or in a window, with dropout, heads that share keys. */
TEST_EACH(same_bits_as_padded, 6)
{
    const tn_dtype dt = (tn_dtype[]){TN_F32, TN_F64, TN_BF16}[_i % 3];
    char           what[100];
    for (int round = 0; round < 30; round++) {
        const int64_t n = 1 + below(MOST - 1), heads = 1 + below(3), d = 1 + below(40), e = 1 + below(40);
        const bool    causal = below(2), cross = !causal && below(2), shared = below(2);
        const int64_t longest = round % 5 ? 1 + below(70) : 120 + below(180);
        const batch   q = random_batch(n, longest), other = random_batch(n, 1 + below(150)), *k = cross ? &other : &q;
        tn_tensor    *x[3] = {noise(&q, dt, heads, d, 0.3), noise(k, dt, shared ? 1 : heads, d, NAN),
                              noise(k, dt, shared ? 1 : heads, e, NAN)};
        tn_tensor    *seed = noise(&q, dt, heads, e, 0);
        tn_attention_args a = {TN_ATTENTION_ARGS_DEFAULTS, .q = x[0], .k = x[1], .v = x[2], .causal = causal};
        a.window = below(2) * (1 + below(40)), a.dropout = below(2) ? 0.3 : 0, a.cap = below(3) ? 0 : 0.5;
        const tn_generator at = *tn_current_generator();
        tn_attention_args  u = a;
        tn_set_threads(1 + round % 3);
        a.key_padding_mask = k->padding;
        const outcome  padded = run(a, seed, &at);
        const uint64_t drawn = tn_current_generator()->position;
        u.q = unpadded(&q, x[0]), u.k = unpadded(k, x[1]), u.v = unpadded(k, x[2]);
        u.offsets = q.offsets, u.key_offsets = cross || below(2) ? k->offsets : NULL;
        snprintf(what, sizeof what, "round %d: %s%s", round, causal ? "causal " : "", a.dropout > 0 ? "dropout" : "");
        compare(&q, k, padded, run(u, unpadded(&q, seed), &at), what);
        ck_assert_uint_eq(tn_current_generator()->position, drawn);
    }
}

/* q, k and v in one tensor [1, rows, 3, heads, width], and its gradient. */
TEST(three_in_one)
{
    const batch b = random_batch(7, 140);
    tn_tensor  *x[3], *turned[3], *seed = noise(&b, TN_F32, 2, 24, 0);
    for (int i = 0; i < 3; i++) x[i] = unpadded(&b, noise(&b, TN_F32, 2, 24, 0));
    for (int i = 0; i < 3; i++) turned[i] = tn_unsqueeze(tn_permute(x[i], TN_DIMS(1, 0, 2)), 0);
    const tn_generator at = *tn_current_generator();
    tn_attention_args  a = {TN_ATTENTION_ARGS_DEFAULTS, .q = x[0], .k = x[1], .v = x[2], .causal = true};
    a.offsets = b.offsets, a.dropout = 0.2;
    const outcome o = run(a, unpadded(&b, seed), &at);
    *tn_current_generator() = at;
    tn_tensor *all = tn_requires_grad(tn_detach(tn_stack_list(2, 3, turned))), *g;
    tn_tensor *y = tn_attention(all, NULL, NULL, .offsets = b.offsets, .causal = true, .dropout = 0.2);
    fine();
    ck_assert(tn_same_bits(tn_clone(tn_select(y, 0, 0)), o.y));
    tn_grad_of(y, 1, &all, &g, .seed = tn_unsqueeze(unpadded(&b, seed), 0));
    fine();
    for (int i = 0; i < 3; i++)
        ck_assert(tn_same_bits(tn_clone(tn_permute(tn_select(tn_select(g, 0, 0), 1, i), TN_DIMS(1, 0, 2))), o.g[i]));
}

/* A sequence alone has the same bits as among others. */
TEST(alone)
{
    const batch b = random_batch(6, 200);
    tn_tensor  *q = unpadded(&b, noise(&b, TN_F32, 2, 16, 0)), *y = tn_attention(q, q, q, .offsets = b.offsets);
    for (int64_t i = 0, at = 0; i < b.n; at += b.length[i++]) {
        tn_tensor *one = tn_narrow(q, 1, at, b.length[i]);
        ck_assert(tn_same_bits(tn_attention(one, one, one), tn_clone(tn_narrow(y, 1, at, b.length[i]))));
    }
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *offsets, *key_offsets;
    bool       causal;
    double     dropout;
} kind;
static tn_tensor *attention_of(tn_tensor *const *in, int n, void *user)
{
    const kind *k = user;
    (void)n;
    tn_seed(3);
    return tn_attention(in[0], in[1], in[2], .offsets = k->offsets, .key_offsets = k->key_offsets, .causal = k->causal,
                        .window = k->causal ? 2 : 0, .dropout = k->dropout);
}

TEST_EACH(differences, 4)
{
    tn_tensor *offsets = tn_from_data(TN_I64, TN_SHAPE(4), (int64_t[]){0, 3, 3, 7});
    tn_tensor *others = tn_from_data(TN_I64, TN_SHAPE(4), (int64_t[]){0, 2, 3, 5});
    kind       k = {.offsets = offsets, .causal = _i == 2, .dropout = _i == 3 ? 0.4 : 0};
    if (_i == 1) k.key_offsets = others;
    const int64_t keys = _i == 1 ? 5 : 7;
    tn_tensor    *in[3] = {tn_uniform_of(TN_F64, TN_SHAPE(2, 7, 3), -1, 1),
                           tn_uniform_of(TN_F64, TN_SHAPE(2, keys, 3), -1, 1),
                           tn_uniform_of(TN_F64, TN_SHAPE(2, keys, 4), -1, 1)};
    ck_assert_msg(tn_gradcheck(attention_of, .user = &k, .count = 3, .inputs = in) == TN_OK, "%s", tn_error_message());
    if (_i == 3) return;
    ck_assert_msg(tn_gradcheck(attention_of, .user = &k, .count = 3, .inputs = in, .second = true) == TN_OK, "%s",
                  tn_error_message());
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

#define ck_refused_by(code, text, call) \
    do {                                \
        (void)(call);                   \
        ck_error(code, text);           \
    } while (0)

TEST(rejected)
{
    tn_tensor *q = tn_ones(TN_SHAPE(2, 5, 3)), *mask = tn_zeros_of(TN_BOOL, TN_SHAPE(5, 5)), *w;
#define OFFSETS(...)                                                                              \
    tn_from_data(TN_I64, TN_SHAPE((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), \
                 (int64_t[]){__VA_ARGS__})
    tn_tensor *good = OFFSETS(0, 2, 5);
    ck_assert(tn_attention(q, q, q, .offsets = good));
    fine();
    ck_refused_by(TN_EINDEX, "attention: offsets go from 0 to 4, but must go from 0 to 5, the number of rows",
                  tn_attention(q, q, q, .offsets = OFFSETS(0, 4)));
    ck_refused_by(TN_EINDEX, "attention: offsets go from 1 to 5, but must go from 0 to 5, the number of rows",
                  tn_attention(q, q, q, .offsets = OFFSETS(1, 5)));
    ck_refused_by(TN_EINDEX, "attention: offsets must not decrease, but element 2 is 2 after 3",
                  tn_attention(q, q, q, .offsets = OFFSETS(0, 3, 2, 5)));
    ck_refused_by(TN_ESHAPE, "attention: offsets must be contiguous i64 [sequences + 1], got f32 [2]",
                  tn_attention(q, q, q, .offsets = tn_zeros(TN_SHAPE(2))));
    ck_refused_by(TN_ESHAPE, "attention: offsets must be contiguous i64 [sequences + 1], got i64 [0]",
                  tn_attention(q, q, q, .offsets = tn_zeros_of(TN_I64, TN_SHAPE(0))));
    ck_refused_by(TN_ESHAPE, "attention: there are 2 sequences of queries and 1 of keys",
                  tn_attention(q, q, q, .offsets = good, .key_offsets = OFFSETS(0, 5)));
    ck_refused_by(TN_EINVAL, "attention: key_offsets need offsets", tn_attention(q, q, q, .key_offsets = good));
    ck_refused_by(TN_EINVAL,
                  "attention: masks and past are for padded batches; with offsets a query attends to its own sequence",
                  tn_attention(q, q, q, .offsets = good, .attn_mask = mask));
    ck_refused_by(TN_EUNSUPPORTED, "attention: the weights of an unpadded batch are not available; pad it",
                  tn_attention(q, q, q, .offsets = good, .weights = &w));
    q = tn_requires_grad(q);
    tn_tensor *y = tn_sum(tn_attention(q, q, q, .offsets = good, .dropout = 0.5)), *g;
    ck_refused_by(TN_EUNSUPPORTED, "attention: gradients of gradients of an unpadded batch with dropout; pad it",
                  tn_grad_of(y, 1, &q, &g, .create_graph = true));
}
