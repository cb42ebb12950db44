/* test_attention.c — attention against plain loops, and its masks: a masked key has no influence, whatever it holds; a
 * query whose keys are all masked gets 0 and gradient 0; all ways to express the same mask agree. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

enum { B = 2, H = 3, T = 5, S = 7, D = 4, E = 6 };

static tn_tensor *noise(tn_shape s) { return tn_uniform_of(TN_F64, s, -1, 1); }
static tn_tensor *bools(tn_shape s, double p) { return tn_bernoulli_of(TN_BOOL, s, p); }
static tn_tensor *leaf(tn_tensor *t) { return tn_requires_grad(tn_detach(t)); }

typedef struct {
    tn_tensor *y, *gq, *gk, *gv;
} outcome;

/* Result and gradients, always with the same cotangent. */
static outcome run_as(tn_attention_args a, bool create_graph)
{
    outcome o;
    a.q = leaf(a.q), a.k = leaf(a.k), a.v = leaf(a.v);
    o.y = tn_attention_run(a);
    fine();
    tn_generator g = {.seed = 77}, *old = tn_use_generator(&g);
    tn_tensor   *seed = tn_to(tn_uniform_of(TN_F64, tn_shape_of(o.y), -1, 1), tn_dtype_of(o.y));
    tn_use_generator(old);
    tn_tensor *grad[3];
    tn_grad_of(o.y, 3, ((tn_tensor *[]){a.q, a.k, a.v}), grad, .seed = seed, .create_graph = create_graph);
    fine();
    o.gq = grad[0], o.gk = grad[1], o.gv = grad[2];
    return o;
}
static outcome run(tn_attention_args a) { return run_as(a, false); }
static void    same(outcome a, outcome b)
{
    ck_assert_msg(tn_same_bits(a.y, b.y), "the results differ");
    ck_assert_msg(tn_same_bits(a.gq, b.gq), "the gradients of q differ");
    ck_assert_msg(tn_same_bits(a.gk, b.gk), "the gradients of k differ");
    ck_assert_msg(tn_same_bits(a.gv, b.gv), "the gradients of v differ");
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

static bool masked(const tn_attention_args *a, int64_t b, int64_t h, int64_t t, int64_t s)
{
    if (a->causal && (s > t || (a->window && s <= t - a->window))) return true;
    if (a->key_padding_mask && tn_get_at(a->key_padding_mask, TN_SHAPE(b, s)) != 0) return true;
    if (!a->attn_mask || tn_dtype_of(a->attn_mask) != TN_BOOL) return false;
    return tn_get_at(tn_expand(a->attn_mask, TN_SHAPE(B, H, T, S)), TN_SHAPE(b, h, t, s)) != 0;
}

static void check(tn_attention_args a, double scale)
{
    tn_tensor *w, *y;
    a.weights = &w;
    y = tn_attention_run(a);
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(B, H, T, E)) &&
              tn_shape_equal(tn_shape_of(w), TN_SHAPE(B, H, T, S)));
    tn_tensor *q = tn_expand(a.q, TN_SHAPE(B, H, T, D)), *k = tn_expand(a.k, TN_SHAPE(B, H, S, D));
    tn_tensor *v = tn_expand(a.v, TN_SHAPE(B, H, S, E)), *added = NULL;
    if (a.attn_mask && tn_dtype_of(a.attn_mask) != TN_BOOL) added = tn_expand(a.attn_mask, TN_SHAPE(B, H, T, S));
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < T; t++) {
                double p[S], sum = 0;
                for (int64_t s = 0; s < S; s++) {
                    double dot = 0;
                    for (int64_t d = 0; d < D; d++)
                        dot += tn_get_at(q, TN_SHAPE(b, h, t, d)) * tn_get_at(k, TN_SHAPE(b, h, s, d));
                    dot = dot * scale + (added ? tn_get_at(added, TN_SHAPE(b, h, t, s)) : 0);
                    sum += p[s] = masked(&a, b, h, t, s) ? 0 : exp(dot);
                }
                for (int64_t s = 0; s < S; s++) {
                    p[s] = sum > 0 ? p[s] / sum : 0;
                    ck_assert_double_eq_tol(tn_get_at(w, TN_SHAPE(b, h, t, s)), p[s], 1e-14);
                }
                for (int64_t e = 0; e < E; e++) {
                    double want = 0;
                    for (int64_t s = 0; s < S; s++) want += p[s] * tn_get_at(v, TN_SHAPE(b, h, s, e));
                    ck_assert_double_eq_tol(tn_get_at(y, TN_SHAPE(b, h, t, e)), want, 1e-14);
                }
            }
}

TEST_EACH(loops, 20)
{
    tn_seed((uint64_t)_i);
    for (int t = 0; t < 6; t++) {
        tn_tensor *q = noise(TN_SHAPE(B, H, T, D)), *k = noise(TN_SHAPE(B, H, S, D)), *v = noise(TN_SHAPE(B, H, S, E));
        if (t == 1)
            q = tn_transpose(noise(TN_SHAPE(B, T, H, D)), 1, 2), v = tn_transpose(noise(TN_SHAPE(B, S, H, E)), 1, 2);
        if (t == 2) k = noise(TN_SHAPE(1, S, D)), v = noise(TN_SHAPE(B, 1, S, E));
        tn_attention_args a = {TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .causal = _i & 1};
        if (_i & 2) a.key_padding_mask = bools(TN_SHAPE(B, S), 0.4);
        switch (_i / 4) {
        case 1: a.attn_mask = bools(TN_SHAPE(T, S), 0.5); break;
        case 2: a.attn_mask = bools(TN_SHAPE(B, 1, T, S), 0.5); break;
        case 3: a.attn_mask = noise(TN_SHAPE(H, T, S)); break;
        case 4: a.attn_mask = tn_uniform(TN_SHAPE(B, 1, 1, S), -3, 3); break; /* an f32 mask with f64 inputs */
        default: break;
        }
        if (t == 3) a.scale = 1.3;
        if (t == 4) a.scale = 0;
        if (t == 5 && a.causal) a.window = 1 + _i / 4 % 3;
        check(a, t == 3 ? 1.3 : t == 4 ? 0 : 0.5);
    }
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

static tn_tensor *zero_rows(tn_tensor  *t,
                            const bool *none) /* t [B, H, T, X]: checks that exactly the rows with none[T] are zero */
{
    for (int64_t r = 0; r < tn_numel(t); r++) {
        const int64_t x = tn_shape_of(t).d[3];
        if (none[r / x % T]) ck_assert_double_eq(tn_get(t, r), 0);
        else ck_assert(tn_get(t, r) != 0);
    }
    return t;
}

/* All keys of queries 1 and 3 are masked, in each possible way. */
TEST(nothing_to_attend)
{
    const bool none[T] = {false, true, false, true, false};
    tn_tensor *q = noise(TN_SHAPE(B, H, T, D)), *k = noise(TN_SHAPE(B, H, S, D)), *v = noise(TN_SHAPE(B, H, S, E));
    tn_tensor *mask = tn_zeros_of(TN_BOOL, TN_SHAPE(T, S)), *w;
    for (int64_t t = 0; t < T; t++)
        for (int64_t s = 0; s < S; s++) tn_set_at(mask, TN_SHAPE(t, s), none[t]);
    tn_tensor *added = tn_masked_fill(tn_zeros_of(TN_F64, TN_SHAPE(T, S)), mask, -INFINITY);
    outcome by_bool = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .attn_mask = mask});
    outcome by_number =
        run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .attn_mask = added});
    zero_rows(by_bool.y, none), zero_rows(by_bool.gq, none);
    same(by_bool, by_number);
    tn_attention(q, k, v, .attn_mask = mask, .weights = &w);
    zero_rows(w, none);
    tn_tensor *bad = tn_clone(q); /* such a query may be NaN */
    for (int64_t i = 0; i < tn_numel(bad); i++)
        if (none[i / D % T]) tn_set(bad, i, NAN);
    same(by_bool, run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = bad, .k = k, .v = v, .attn_mask = mask}));

    /* causal with padding on the left: the first queries attend to padding only */
    const bool first[T] = {true, true, false, false, false};
    tn_tensor *keys = tn_zeros_of(TN_BOOL, TN_SHAPE(B, S));
    for (int64_t b = 0; b < B; b++) tn_set_at(keys, TN_SHAPE(b, 0), 1), tn_set_at(keys, TN_SHAPE(b, 1), 1);
    outcome left = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .key_padding_mask = keys,
                                           .causal = true});
    zero_rows(left.y, first);
    for (int64_t i = 0; i < tn_numel(left.gq); i++) /* query 2 has one key: its weight is 1, its gradient 0 as well */
        ck_assert((tn_get(left.gq, i) == 0) == (i / D % T <= 2) || fabs(tn_get(left.gq, i)) < 1e-15);
    for (int64_t i = 0; i < tn_numel(left.gv); i++)
        ck_assert((tn_get(left.gv, i) == 0) == (i / E % S < 2 || i / E % S > 4));

    /* every key blocked, and no key at all */
    outcome    all = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v,
                                             .key_padding_mask = tn_ones_of(TN_BOOL, TN_SHAPE(B, S))});
    tn_tensor *parts[4] = {all.y, all.gq, all.gk, all.gv};
    for (int i = 0; i < 4; i++) ck_assert_double_eq(tn_item(tn_sum(tn_abs(parts[i]))), 0);
    tn_tensor *y =
        tn_attention(q, tn_zeros_of(TN_F64, TN_SHAPE(B, H, 0, D)), tn_zeros_of(TN_F64, TN_SHAPE(B, H, 0, E)));
    ck_assert_double_eq(tn_item(tn_sum(tn_abs(y))), 0);

    /* gradients of gradients of such rows are 0 too, not NaN */
    tn_tensor *lq = leaf(q);
    y = tn_attention(lq, k, v, .attn_mask = mask);
    tn_tensor *g = tn_grad_wrt(tn_sum(tn_mul(y, y)), lq, true), *gg = tn_grad_wrt(tn_sum(tn_mul(g, g)), lq, false);
    fine();
    zero_rows(gg, none);
}

/* A masked key may hold anything: results and gradients have the same bits as with ordinary values there. */
static void poison(tn_tensor *t, const tn_tensor *keys, int kind) /* t [B, H, S, X] */
{
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int64_t i = 0; i < tn_numel(t); i++) {
        const int64_t x = tn_shape_of(t).d[3], s = i / x % S, b = i / x / S / H;
        if (tn_get_at(keys, TN_SHAPE(b, s)) != 0) tn_set(t, i, bad[(kind + i * (kind == 3)) % 3]);
    }
}

TEST_EACH(nan_behind_a_mask, 12)
{
    const tn_dtype    types[] = {TN_F64, TN_F32, TN_BF16}, dt = types[_i % 3];
    const int         way = _i / 3;
    tn_tensor        *q = tn_to(noise(TN_SHAPE(B, H, T, D)), dt), *k = tn_to(noise(TN_SHAPE(B, H, S, D)), dt);
    tn_tensor        *v = tn_to(noise(TN_SHAPE(B, H, S, E)), dt), *keys = bools(TN_SHAPE(B, S), 0.4);
    tn_attention_args a = {TN_ATTENTION_ARGS_DEFAULTS, .q = q};
    if (way == 0) a.key_padding_mask = keys;
    if (way == 1) a.attn_mask = tn_reshape(keys, TN_SHAPE(B, 1, 1, S));
    if (way == 2)
        a.attn_mask =
            tn_masked_fill(tn_zeros_of(dt, TN_SHAPE(B, 1, 1, S)), tn_reshape(keys, TN_SHAPE(B, 1, 1, S)), -INFINITY);
    if (way == 3) { /* the future: keys 5 and 6 come after every query */
        a.causal = true;
        tn_fill(keys, 0);
        for (int64_t b = 0; b < B; b++) tn_set_at(keys, TN_SHAPE(b, 5), 1), tn_set_at(keys, TN_SHAPE(b, 6), 1);
    }
    a.k = tn_clone(k), a.v = tn_clone(v);
    outcome clean = run(a), graph = run_as(a, true);
    for (int kind = 0; kind < 4; kind++) {
        a.k = tn_clone(k), a.v = tn_clone(v);
        poison(a.k, keys, kind), poison(a.v, keys, kind + 1);
        same(clean, run(a));
        same(graph, run_as(a, true));
    }
    ck_assert(tn_item(tn_all(tn_isfinite(clean.gk))) == 1);
}

/* A NaN stays one whatever its sign and payload, which files and uninitialised memory have. */
TEST_EACH(any_nan, 6)
{
    const uint32_t bits[] = {0x7fc00000, 0xffc00000, 0x7fc00001, 0xffffffff, 0x7fffffff, 0x7f800001};
    tn_tensor     *x[3];
    for (int in = 0; in < 2; in++) {
        for (int i = 0; i < 3; i++) {
            x[i] = tn_to(noise(TN_SHAPE(1, 1, 5, D)), TN_F32);
            if (i == in) memcpy((float *)tn_data_mut(x[i]) + 3, &bits[_i], sizeof bits[_i]);
            x[i] = leaf(x[i]);
        }
        tn_tensor *y = tn_attention(x[0], x[1], x[2]);
        tn_backward(tn_sum(y));
        fine();
        for (int64_t row = 0; row < 5; row++) /* in a query: its row; in a key: all */
            ck_assert((isnan(tn_get(y, row * D)) != 0) == (in == 1 || row == 0));
        ck_assert(isnan(tn_get(tn_grad(x[0]), 0)) && isnan(tn_get(tn_grad(x[1]), D)) &&
                  isnan(tn_get(tn_grad(x[2]), 0)));
    }
}

/* With a mask that lets only some queries attend to the NaN, only those results are NaN. */
TEST_EACH(nan_reaches_who_may_see_it, 2)
{
    const tn_dtype dt = (tn_dtype[]){TN_F64, TN_BF16}[_i];
    tn_tensor     *q = tn_to(noise(TN_SHAPE(1, T, D)), dt), *k = tn_to(noise(TN_SHAPE(1, S, D)), dt);
    tn_tensor     *v = tn_to(noise(TN_SHAPE(1, S, E)), dt);
    tn_set_at(v, TN_SHAPE(0, 2, 1), NAN), tn_set_at(v, TN_SHAPE(0, 2, 3), -INFINITY);
    outcome    o = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .causal = true}), z;
    tn_tensor *w = tn_clone(v);
    tn_set_at(w, TN_SHAPE(0, 2, 1), 0), tn_set_at(w, TN_SHAPE(0, 2, 3), 0);
    z = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = w, .causal = true});
    for (int64_t t = 0; t < T; t++)
        for (int64_t e = 0; e < E; e++) {
            const double got = tn_get_at(o.y, TN_SHAPE(0, t, e));
            if (t < 2 || (e != 1 && e != 3)) ck_assert_double_eq(got, tn_get_at(z.y, TN_SHAPE(0, t, e)));
            else ck_assert(e == 1 ? isnan(got) : got == -(double)INFINITY);
        }
    for (int64_t i = 0; i < 2 * D; i++) ck_assert_double_eq(tn_get(o.gq, i), tn_get(z.gq, i));
    for (int64_t i = 0; i < S * D; i++) /* no query attends to keys 5 and 6 */
        ck_assert(i < T * D ? !isfinite(tn_get(o.gk, i)) : tn_get(o.gk, i) == 0);
    tn_tensor *gk =
        run_as((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .causal = true}, true).gk;
    for (int64_t i = 0; i < S * D; i++) ck_assert(i < T * D ? !isfinite(tn_get(gk, i)) : tn_get(gk, i) == 0);
    tn_tensor *values = leaf(v), *y = tn_attention(q, k, values, .causal = true);
    tn_backward(tn_sum(tn_mul(y, y)));
    fine();
    for (int64_t i = 0; i < S * E; i++) /* a NaN in the cotangent reaches the attended keys */
        ck_assert(i / E < T ? i % E != 1 || isnan(tn_get(tn_grad(values), i)) : tn_get(tn_grad(values), i) == 0);
    k = tn_clone(k);
    tn_set_at(k, TN_SHAPE(0, 2, 0), NAN);
    o = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = w, .causal = true});
    for (int64_t i = 0; i < T * E; i++) ck_assert(i < 2 * E ? tn_get(o.y, i) == tn_get(z.y, i) : isnan(tn_get(o.y, i)));
    for (int64_t i = 0; i < T * D; i++)
        ck_assert(i < 2 * D ? tn_get(o.gq, i) == tn_get(z.gq, i) : isnan(tn_get(o.gq, i)));
}

TEST(masks_agree)
{
    tn_tensor *q = noise(TN_SHAPE(B, H, T, D)), *k = noise(TN_SHAPE(B, H, S, D)), *v = noise(TN_SHAPE(B, H, S, E));
    tn_tensor *mask = bools(TN_SHAPE(B, 1, T, S), 0.5), *keys = bools(TN_SHAPE(B, S), 0.3);
    tn_tensor *future = tn_to(tn_triu(tn_ones(TN_SHAPE(T, S)), 1), TN_BOOL),
              *wide = tn_reshape(keys, TN_SHAPE(B, 1, 1, S));
    outcome    apart = run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .attn_mask = mask,
                                               .key_padding_mask = keys, .causal = true});
    tn_tensor *whole = tn_logical_or(tn_logical_or(mask, wide), future);
    same(apart, run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .attn_mask = whole}));
    tn_tensor *added = tn_masked_fill(tn_zeros_of(TN_F64, tn_shape_of(whole)), whole, -INFINITY);
    same(apart, run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .attn_mask = added}));
    same(apart, run((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v,
                                        .attn_mask = tn_to(added, TN_F32)}));
}

/* The gradient of an added mask is that of the scores, summed over what it was broadcast to. */
TEST(added_mask_has_a_gradient)
{
    tn_tensor *q = noise(TN_SHAPE(B, H, T, D)), *k = noise(TN_SHAPE(B, H, S, D)), *v = noise(TN_SHAPE(B, H, S, E));
    tn_tensor *m = tn_uniform(TN_SHAPE(T, S), -1, 1),
              *wide = tn_clone(tn_expand(tn_to(m, TN_F64), TN_SHAPE(B, H, T, S)));
    tn_requires_grad(m), tn_requires_grad(wide);
    tn_tensor *y = tn_attention(q, k, v, .attn_mask = m), *z = tn_attention(q, k, v, .attn_mask = wide),
              *gy = noise(tn_shape_of(y));
    tn_backward(y, .seed = gy);
    tn_backward(z, .seed = gy);
    fine();
    ck_assert(tn_same_bits(y, z));
    ck_assert_int_eq(tn_dtype_of(tn_grad(m)), TN_F32);
    ck_assert(tn_allclose(tn_grad(m), tn_to(tn_sum(tn_grad(wide), .dims = TN_DIMS(0, 1)), TN_F32), 1e-6, 1e-7));
    ck_assert(tn_item(tn_sum(tn_abs(tn_grad(m)))) > 0.01);
    ck_assert_double_eq_tol(tn_item(tn_sum(tn_grad(wide))), 0, 1e-12); /* a constant does not change a softmax */
}

/* ---- dropout and weights ----------------------------------------------------------------------------------------- */

TEST(dropout)
{
    tn_tensor *q = leaf(noise(TN_SHAPE(B, H, T, D))), *k = leaf(noise(TN_SHAPE(B, H, S, D))),
              *v = leaf(noise(TN_SHAPE(B, H, S, E)));
    tn_tensor     *w, *full, *gv, *gy = noise(TN_SHAPE(B, H, T, E)), *in[1] = {v};
    tn_generator  *g = tn_current_generator();
    const uint64_t before = g->position;
    tn_tensor     *y = tn_attention(q, k, v, .dropout = 0.4, .weights = &w, .causal = true);
    const uint64_t after = g->position;
    tn_attention(q, k, v, .weights = &full, .causal = true);
    fine();
    ck_assert(after > before && g->position == after);
    int dropped = 0, kept = 0;
    for (int64_t i = 0; i < tn_numel(w); i++) {
        if (tn_get(full, i) == 0) continue;
        if (tn_get(w, i) == 0) {
            dropped++;
            continue;
        }
        kept++;
        ck_assert_double_eq_tol(tn_get(w, i), tn_get(full, i) / 0.6, 1e-14);
    }
    ck_assert(dropped > 20 && kept > 20);
    ck_assert(tn_allclose(y, tn_matmul(w, v), 1e-13, 1e-14));
    /* the backward has the same dropout mask: gv is wᵀ gy with the returned weights */
    tn_grad_of(y, 1, in, &gv, .seed = gy);
    ck_assert(tn_allclose(gv, tn_matmul(tn_transpose(tn_detach(w), -1, -2), gy), 1e-13, 1e-14));
    fine();
    g->position = before; /* .weights does not change the result */
    ck_assert(tn_same_bits(y, tn_attention(q, k, v, .dropout = 0.4, .causal = true)) && g->position == after);
    ck_assert_double_eq(tn_item(tn_sum(tn_abs(tn_attention(q, k, v, .dropout = 1)))), 0);
    /* weights are on the tape */
    tn_tensor *gq = tn_grad_wrt(tn_sum(tn_mul(full, full)), q, false);
    fine();
    ck_assert(tn_item(tn_sum(tn_abs(gq))) > 0.01);
}

/* Weights below 2^-100 are 0: products with them would be denormal, which is slow on Intel's CPUs. */
TEST(tiny_weights_are_0)
{
    enum { KEYS = 120 };
    tn_tensor *k = tn_reshape(tn_neg(tn_to(tn_arange(KEYS), TN_F32)), TN_SHAPE(1, 1, KEYS, 1));
    tn_tensor *v = leaf(tn_ones(TN_SHAPE(1, 1, KEYS, 1)));
    tn_tensor *g = tn_grad_wrt(tn_sum(tn_attention(tn_ones(TN_SHAPE(1, 1, 1, 1)), k, v)), v, false);
    fine();
    for (int64_t s = 0; s < KEYS; s++) /* one row: the gradient of v is its weights */
        ck_assert_msg(s < 69 ? tn_get(g, s) > 1e-31 : s == 69 || tn_get(g, s) == 0, "key %d: %a", (int)s, tn_get(g, s));
}

/* A call that fails half-way draws no random numbers, and the retry gives the bits of a first try. */
TEST(a_failed_call_draws_nothing)
{
    tn_tensor         *q = noise(TN_SHAPE(4, 60, 16)), *v = noise(TN_SHAPE(4, 60, 2000)), *first, *weights;
    tn_generator      *g = tn_current_generator();
    const tn_generator before = *g;
    first = tn_attention(q, q, v, .dropout = 0.5, .weights = &weights);
    fine();
    *g = before;
    tn_trim();
    /* memory for several tensors like the weights, but not for the result */
    tn_set_memory_limit(tn_memory_now().live + 1000000);
    ck_assert_ptr_null(tn_attention(q, q, v, .dropout = 0.5, .weights = &weights));
    ck_assert_int_eq(tn_error(), TN_ENOMEM);
    ck_assert_ptr_null(weights);
    ck_assert(g->position == before.position);
    tn_clear_error();
    tn_set_memory_limit(0);
    ck_assert(tn_same_bits(first, tn_attention(q, q, v, .dropout = 0.5)));
    const uint64_t after = g->position;

    /* memory for the result, but not for the blocks */
    *g = before;
    *g = before;
    tn_trim();
    tn_set_memory_limit(tn_memory_now().live + 8 * (size_t)tn_numel(first) + 100000);
    ck_assert_ptr_null(tn_attention(q, q, v, .dropout = 0.5));
    ck_assert_int_eq(tn_error(), TN_ENOMEM);
    ck_assert(g->position == before.position);
    tn_clear_error();
    tn_set_memory_limit(0);
    ck_assert(tn_same_bits(first, tn_attention(q, q, v, .dropout = 0.5)) && g->position == after);
}

/* ---- the same bits in any surroundings --------------------------------------------------------------------------- */

TEST_EACH(alone_and_among_others, 2)
{
    const tn_dtype dt = _i ? TN_F64 : TN_F32;
    enum { LONG = 150, WIDE = 40, MORE = 31 };
    tn_tensor *q = tn_to(noise(TN_SHAPE(3, 2, LONG, WIDE)), dt), *k = tn_to(noise(TN_SHAPE(3, 2, LONG, WIDE)), dt);
    tn_tensor *v = tn_to(noise(TN_SHAPE(3, 2, LONG, WIDE)), dt), *keys = bools(TN_SHAPE(3, LONG), 0.2);
    tn_tensor *y = tn_attention(q, k, v, .key_padding_mask = keys, .causal = true);
    for (int64_t b = 0; b < 3; b++) /* a sequence */
        ck_assert(tn_same_bits(tn_narrow(y, 0, b, 1),
                               tn_attention(tn_narrow(q, 0, b, 1), tn_narrow(k, 0, b, 1), tn_narrow(v, 0, b, 1),
                                            .key_padding_mask = tn_narrow(keys, 0, b, 1), .causal = true)));
    for (int64_t t = 0; t < LONG; t += 37) /* a query, with the keys up to itself, as in decoding with a cache */
        ck_assert(tn_same_bits(tn_narrow(y, 2, t, 1),
                               tn_attention(tn_narrow(q, 2, t, 1), tn_narrow(k, 2, 0, t + 1), tn_narrow(v, 2, 0, t + 1),
                                            .key_padding_mask = tn_narrow(keys, 1, 0, t + 1))));
    /* after more padding */
    tn_tensor *more = tn_full_of(dt, TN_SHAPE(3, 2, MORE, WIDE), NAN), *true_ = tn_ones_of(TN_BOOL, TN_SHAPE(3, MORE));
    tn_tensor *plain = tn_attention(q, k, v, .key_padding_mask = keys);
    ck_assert(tn_same_bits(
        plain, tn_attention(q, tn_cat(2, k, more), tn_cat(2, v, more), .key_padding_mask = tn_cat(1, keys, true_))));
}

TEST_EACH(threads, 2)
{
    const tn_dtype dt = _i ? TN_F64 : TN_F32;
    tn_tensor     *q = tn_to(noise(TN_SHAPE(2, 2, 90, 33)), dt), *k = tn_to(noise(TN_SHAPE(2, 2, 110, 33)), dt);
    tn_tensor     *v = tn_to(noise(TN_SHAPE(2, 2, 110, 21)), dt), *mask = bools(TN_SHAPE(90, 110), 0.3);
    tn_generator  *g = tn_current_generator();
    const uint64_t at = g->position;
    outcome        first = {NULL, NULL, NULL, NULL};
    tn_set_at(v, TN_SHAPE(1, 1, 100, 7), NAN); /* also takes the slow path */
    for (int n = 1; n <= 7; n += n == 1 ? 1 : 5) {
        tn_set_threads(n);
        g->position = at;
        outcome o = run(
            (tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .attn_mask = mask, .dropout = 0.1});
        if (n == 1) first = o;
        same(first, o);
    }
}
