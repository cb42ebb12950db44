/* test_int8_rows.c — rows in 8 bits have the values of plain loops, and attention that reads keys and values from
 * them the bits, the weights and the gradients of attention over these values. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

/* Each row rounded by plain loops: round(x / s) s with s = max |x| / 127. */
static tn_tensor *rounded(tn_tensor *x)
{
    const int64_t n = tn_size(x, -1);
    tn_tensor    *y = tn_clone(tn_contiguous(x));
    float        *row = tn_data_mut(y);
    for (int64_t i = 0; i < tn_numel(y) / n; i++, row += n) {
        float max = 0;
        bool  finite = true;
        for (int64_t k = 0; k < n; k++) max = fmaxf(max, fabsf(row[k])), finite = finite && isfinite(row[k]);
        const float s = max >= 0x1p-100f ? max / 127 : 0, inverse = s > 0 ? 127 / max : 0;
        for (int64_t k = 0; k < n; k++) row[k] = finite ? rintf(row[k] * inverse) * s : NAN;
    }
    return y;
}

/* A value of -0 becomes 0. */
static bool same_values(tn_tensor *a, tn_tensor *b) { return tn_same_bits(a, tn_add(b, tn_zeros(TN_SCALAR))); }

TEST_EACH(values, 3)
{
    tn_set_threads(1 + _i);
    for (int64_t n = 1; n < 300; n += n < 20 ? 1 : 37) {
        tn_tensor *x = tn_mul(tn_normal(TN_SHAPE(7, 3, n), 0, 1), tn_exp(tn_normal(TN_SHAPE(7, 3, 1), 0, 30)));
        tn_tensor *rows = tn_int8_rows(x), *half = tn_to(x, TN_BF16);
        ck_assert(tn_shape_equal(tn_shape_of(rows), TN_SHAPE(7, 3, n + TN_INT8_ROW_SCALE)));
        ck_assert(same_values(tn_int8_rows_unpack(rows), rounded(x)));
        tn_tensor *turned = tn_transpose(x, 0, 2), *dense = tn_clone(turned); /* views */
        ck_assert(tn_same_bits(tn_int8_rows(turned), tn_int8_rows(dense)));
        ck_assert(same_values(tn_int8_rows_unpack(tn_narrow(rows, 0, 2, 3)), rounded(tn_narrow(x, 0, 2, 3))));
        ck_assert(same_values(tn_int8_rows_unpack(tn_int8_rows(half)), rounded(tn_to(half, TN_F32))));
        fine();
    }
    tn_tensor *none = tn_int8_rows(tn_zeros(TN_SHAPE(0, 5))), *x = tn_ones(TN_SHAPE(4, 3));
    ck_assert(tn_numel(none) == 0 && tn_numel(tn_int8_rows_unpack(none)) == 0);
    tn_set(x, 0, NAN), tn_set(x, 4, INFINITY), tn_set(x, 6, 0x1p-101), tn_set(x, 7, 0), tn_set(x, 8, 0);
    tn_tensor *y = tn_int8_rows_unpack(tn_int8_rows(x));
    for (int64_t i = 0; i < 12; i++) ck_assert(i < 6 ? isnan(tn_get(y, i)) : tn_get(y, i) == (i < 9 ? 0 : 1));
}

/* Both results for the same arguments, whose k and v are floating. */
static void both(tn_attention_args a, tn_tensor **got, tn_tensor **want)
{
    tn_tensor        *k = a.k, *v = a.v, *w[2] = {NULL};
    tn_attention_args b = a;
    if (a.weights) a.weights = &w[0], b.weights = &w[1];
    a.int8 = true, a.k = tn_int8_rows(k), a.v = tn_int8_rows(v);
    b.k = rounded(k), b.v = rounded(v);
    *got = tn_attention_run(a), *want = tn_attention_run(b);
    fine();
    if (a.weights) ck_assert(tn_same_bits(w[0], w[1]));
}

/* Loop: number of threads. Widths, numbers of keys, masks, views and grouped heads. */
TEST_EACH(attention, 3)
{
    static const int64_t keys[] = {1, 3, 127, 128, 129, 300}, dims[] = {1, 5, 8, 16, 33, 64, 80};
    tn_set_threads(1 + _i);
    for (int i = 0; i < 6 * 7 * 4; i += tn_test_slow() ? 23 : 5) {
        const int64_t     s = keys[i % 6], d = dims[i / 6 % 7], t = i / 42 == 0 ? 1 : s;
        const tn_scope    scope = tn_scope_begin();
        tn_tensor        *got, *want, *seen = NULL;
        tn_attention_args a = {TN_ATTENTION_ARGS_DEFAULTS, .q = tn_normal(TN_SHAPE(2, 2, 3, t, d), 0, 1),
                               .k = tn_normal(TN_SHAPE(2, 2, 1, s, d), 0, 1),
                               .v = tn_normal(TN_SHAPE(2, 2, 1, s, d + 2), 0, 1), .causal = i / 42 != 1};
        if (a.causal) a.past = s - t;
        if (i % 5 == 1) a.window = 4;
        if (i % 5 == 2) a.cap = 2;
        if (i / 42 == 2) a.key_padding_mask = tn_bernoulli_of(TN_BOOL, TN_SHAPE(2, s), 0.3);
        if (i / 42 == 3) a.attn_mask = tn_normal(TN_SHAPE(t, s), 0, 1), a.weights = &seen;
        if (i % 2) a.order = TN_DIMS(0, 3, 1, 2, 4);
        both(a, &got, &want);
        ck_assert_msg(tn_same_bits(got, want), "case %d: %d keys of width %d", i, (int)s, (int)d);
        /* keys and values whose last dim is not dense */
        tn_tensor *k = tn_int8_rows(a.k), *v = tn_int8_rows(a.v);
        a.int8 = true, a.weights = NULL;
        a.k = tn_transpose(tn_clone(tn_transpose(k, -1, -2)), -1, -2), a.v = v;
        ck_assert(tn_same_bits(tn_attention_run(a), got));
        tn_scope_end(scope);
    }
}

/* A value that is not finite, of a key that is masked, changes nothing; a query's own past only counts. */
TEST(special_values)
{
    tn_tensor *q = tn_normal(TN_SHAPE(1, 2, 9, 8), 0, 1), *k = tn_normal(TN_SHAPE(1, 2, 9, 8), 0, 1);
    tn_tensor *v = tn_normal(TN_SHAPE(1, 2, 9, 8), 0, 1), *got, *want;
    tn_set_at(v, TN_SHAPE(0, 1, 5, 3), NAN), tn_set_at(k, TN_SHAPE(0, 0, 7, 1), INFINITY);
    both((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .causal = true}, &got, &want);
    int nan = 0;
    for (int64_t i = 0; i < tn_numel(got); i++) {
        const double x = tn_get(got, i), y = tn_get(want, i);
        ck_assert(x == y || (isnan(x) && isnan(y)));
        nan += isnan(x) != 0;
    }
    ck_assert_int_eq(nan, 8 * (9 - 5) + 8 * (9 - 7));
}

TEST(unpadded_and_bf16)
{
    int64_t    at[] = {0, 3, 3, 140, 151};
    tn_tensor *q = tn_normal(TN_SHAPE(2, 151, 16), 0, 1), *k = tn_normal(TN_SHAPE(2, 151, 16), 0, 1);
    tn_tensor *v = tn_normal(TN_SHAPE(2, 151, 16), 0, 1), *got, *want;
    both((tn_attention_args){TN_ATTENTION_ARGS_DEFAULTS, .q = q, .k = k, .v = v, .causal = true,
                             .offsets = tn_from_data(TN_I64, TN_SHAPE(5), at)},
         &got, &want);
    ck_assert(tn_same_bits(got, want));
    tn_tensor *half = tn_to(q, TN_BF16);
    got = tn_attention(half, tn_int8_rows(k), tn_int8_rows(v), .int8 = true);
    want = tn_attention(tn_to(half, TN_F32), rounded(k), rounded(v));
    ck_assert(tn_dtype_of(got) == TN_BF16 && tn_same_bits(got, tn_to(want, TN_BF16)));
}

/* Of q, by the kernels and by ops, and of that gradient. */
TEST(gradients)
{
    tn_tensor *q = tn_normal(TN_SHAPE(2, 150, 8), 0, 1), *k = tn_normal(TN_SHAPE(2, 140, 8), 0, 1), *g[4], *gg[2];
    tn_tensor *v = tn_normal(TN_SHAPE(2, 140, 6), 0, 1), *gy = tn_normal(TN_SHAPE(2, 150, 6), 0, 1);
    for (int i = 0; i < 4; i++) {
        tn_tensor *leaf = tn_requires_grad(tn_clone(q)), *y;
        if (i % 2) y = tn_attention(leaf, tn_int8_rows(k), tn_int8_rows(v), .int8 = true, .window = 20);
        else y = tn_attention(leaf, rounded(k), rounded(v), .window = 20);
        g[i] = tn_grad_wrt(tn_sum(tn_mul(y, gy)), leaf, i > 1);
        if (i > 1) gg[i - 2] = tn_grad_wrt(tn_sum(tn_mul(g[i], g[i])), leaf, false);
        fine();
    }
    ck_assert(tn_same_bits(g[0], g[1]) && tn_same_bits(g[2], g[3]) && tn_same_bits(gg[0], gg[1]));
    ck_assert(tn_allclose(g[1], g[3], 1e-4, 1e-5) && tn_item(tn_sum(tn_abs(gg[0]))) > 0);
}

TEST(refused)
{
    tn_tensor *x = tn_ones(TN_SHAPE(3, 4)), *rows = tn_int8_rows(x), *wide = tn_to(x, TN_F64);
    ck_refused(tn_int8_rows(wide), TN_EDTYPE,
               "int8_rows: x is f64, but rows of 8 bits are made of f32 or bf16; convert it with tn_to(x, TN_F32)");
    ck_refused(tn_int8_rows_unpack(tn_narrow(rows, 1, 0, 4)), TN_EDTYPE,
               "int8_rows_unpack: the rows must be u8 [..., n + 4], as tn_int8_rows returns them, got u8 [3, 4]");
    ck_refused(tn_attention(x, rows, x, .int8 = true), TN_EDTYPE,
               "attention: with .int8 v must be u8 [..., S, D + 4], as tn_int8_rows returns it, got f32 [3, 4]");
    ck_refused(tn_attention(x, NULL, NULL, .int8 = true), TN_EINVAL, "attention: k is NULL");
    ck_refused(tn_attention(wide, rows, rows, .int8 = true), TN_EDTYPE,
               "attention: q is f64, but with .int8 it must be f32 or bf16");
    ck_refused(tn_attention(tn_ones(TN_SHAPE(3, 8)), rows, rows, .int8 = true), TN_ESHAPE,
               "attention: q [3, 8] and k [3, 4] differ in their last dim");
    ck_refused(tn_attention(rows, rows, rows, .int8 = true), TN_EDTYPE,
               "attention: q must be floating, got u8; convert it with tn_to(q, TN_F32)");
}
