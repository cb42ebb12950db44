/* test_products.c — matmul, linear, outer and einsum against plain loops, for shapes, strides and sizes beyond the
 * registry's samples; and that a row has the same bits alone and among others. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

static tn_tensor *noise(tn_dtype dt, tn_shape s) { return tn_to(tn_uniform_of(TN_F64, s, -1, 1), dt); }

enum { LAYOUTS = 5 };
/* Noise of shape s: dense, transposed, every other column, a part of a larger tensor, the first dim expanded. */
static tn_tensor *laid_out(tn_dtype dt, tn_shape s, int layout)
{
    tn_shape base = s;
    tn_dims  order = {.n = s.n};
    for (int i = 0; i < s.n; i++) order.d[i] = s.n - 1 - i, base.d[i] = s.d[s.n - 1 - i];
    switch (layout) {
    case 1: return tn_permute(noise(dt, base), order);
    case 2: s.d[s.n - 1] *= 2; return tn_slice(noise(dt, s), -1, 0, s.d[s.n - 1], 2);
    case 3:
        base = s;
        for (int i = 0; i < s.n; i++) base.d[i] += 3;
        base.n = s.n;
        tn_tensor *t = noise(dt, base);
        for (int i = 0; i < s.n; i++) t = tn_narrow(t, i, 1 + i % 2, s.d[i]);
        return t;
    case 4: base = s, base.d[0] = 1; return tn_expand(noise(dt, base), s);
    default: return noise(dt, s);
    }
}

/* Element `index` of t, in which dims of size 1 and missing leading dims broadcast. */
static double element(const tn_tensor *t, const int64_t *index, int n)
{
    tn_shape at = tn_shape_of(t);
    for (int i = 0; i < at.n; i++) at.d[i] = at.d[i] == 1 ? 0 : index[n - at.n + i];
    return tn_get_at(t, at);
}

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

/* Checks each element of y = a b, where both are at least 2-d, within the rounding of a sum of k products of values
 * below 1. */
static void is_product(const tn_tensor *y, const tn_tensor *a, const tn_tensor *b, double unit)
{
    const tn_shape s = tn_shape_of(y);
    const int64_t  k = tn_shape_of(a).d[tn_ndim(a) - 1], n = tn_numel(y);
    for (int64_t i = 0; i < n; i++) {
        int64_t at[TN_MAX_DIMS] = {0}, rest = i;
        double  sum = 0, size = 0;
        for (int d = s.n - 1; d >= 0; d--) at[d] = rest % s.d[d], rest /= s.d[d];
        const int64_t row = at[s.n - 2], col = at[s.n - 1];
        for (int64_t p = 0; p < k; p++) {
            at[s.n - 1] = p;
            const double x = element(a, at, s.n);
            at[s.n - 2] = p, at[s.n - 1] = col;
            const double w = element(b, at, s.n);
            at[s.n - 2] = row;
            sum += x * w, size += fabs(x * w);
        }
        const double got = tn_get(y, i), bound = unit * ((double)k + 1) * size;
        ck_assert_msg(fabs(got - sum) <= bound, "element %lld: %.17g, should be %.17g", (long long)i, got, sum);
    }
}

static const tn_shape matrices[][2] = {
    {{.n = 2, .d = {1, 1}}, {.n = 2, .d = {1, 1}}},
    {{.n = 2, .d = {3, 5}}, {.n = 2, .d = {5, 2}}},
    {{.n = 2, .d = {17, 33}}, {.n = 2, .d = {33, 9}}},
    {{.n = 2, .d = {1, 40}}, {.n = 2, .d = {40, 31}}},
    {{.n = 2, .d = {31, 40}}, {.n = 2, .d = {40, 1}}},
    {{.n = 3, .d = {4, 3, 5}}, {.n = 2, .d = {5, 7}}},
    {{.n = 2, .d = {3, 5}}, {.n = 3, .d = {4, 5, 7}}},
    {{.n = 3, .d = {4, 3, 5}}, {.n = 3, .d = {4, 5, 7}}},
    {{.n = 3, .d = {1, 3, 5}}, {.n = 3, .d = {4, 5, 7}}},
    {{.n = 4, .d = {2, 1, 3, 5}}, {.n = 3, .d = {3, 5, 2}}},
    {{.n = 4, .d = {2, 3, 4, 6}}, {.n = 4, .d = {1, 3, 6, 5}}},
    {{.n = 5, .d = {2, 1, 2, 1, 3}}, {.n = 4, .d = {3, 1, 3, 2}}},
    {{.n = 2, .d = {5, 0}}, {.n = 2, .d = {0, 4}}},
    {{.n = 3, .d = {2, 3, 0}}, {.n = 2, .d = {0, 4}}},
};
enum { MATRICES = sizeof matrices / sizeof *matrices };

TEST_EACH(matmul_loops, MATRICES)
{
    const tn_shape *s = matrices[_i];
    for (int la = 0; la < LAYOUTS; la++)
        for (int lb = 0; lb < LAYOUTS; lb++) {
            tn_scope   scope = tn_scope_begin();
            tn_tensor *a = laid_out(TN_F64, s[0], la), *b = laid_out(TN_F64, s[1], lb), *y = tn_matmul(a, b);
            fine();
            is_product(y, a, b, 0x1p-53);
            tn_tensor *a32 = tn_to(a, TN_F32), *b32 = tn_to(b, TN_F32);
            is_product(tn_matmul(a32, b32), a32, b32, 0x1p-24);
            /* the bits do not depend on the layout */
            ck_assert(tn_same_bits(y, tn_matmul(tn_clone(a), tn_clone(b))));
            tn_scope_end(scope);
        }
}

TEST(matmul_vectors)
{
    tn_tensor *v = noise(TN_F64, TN_SHAPE(6)), *m = noise(TN_F64, TN_SHAPE(2, 6, 3)), *w = noise(TN_F64, TN_SHAPE(3));
    tn_tensor *row = tn_matmul(v, m), *column = tn_matmul(m, w), *dot = tn_matmul(v, v);
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(row), TN_SHAPE(2, 3)) && tn_shape_equal(tn_shape_of(column), TN_SHAPE(2, 6)));
    ck_assert_int_eq(tn_ndim(dot), 0);
    is_product(tn_unsqueeze(row, 1), tn_unsqueeze(v, 0), m, 0x1p-53);
    is_product(tn_unsqueeze(column, 2), m, tn_unsqueeze(w, 1), 0x1p-53);
    is_product(tn_reshape(dot, TN_SHAPE(1, 1)), tn_unsqueeze(v, 0), tn_unsqueeze(v, 1), 0x1p-53);
}

TEST(matmul_types)
{
    tn_tensor *f32 = noise(TN_F32, TN_SHAPE(2, 3)), *f64 = noise(TN_F64, TN_SHAPE(3, 2)),
              *bf16 = noise(TN_BF16, TN_SHAPE(3, 2));
    tn_tensor *i64 = tn_reshape(tn_arange(6), TN_SHAPE(3, 2));
    ck_assert_int_eq(tn_dtype_of(tn_matmul(f32, f64)), TN_F64);
    ck_assert_int_eq(tn_dtype_of(tn_matmul(f32, bf16)), TN_F32);
    ck_assert_int_eq(tn_dtype_of(tn_matmul(f32, i64)), TN_F32);
    ck_assert_int_eq(tn_dtype_of(tn_matmul(tn_transpose(bf16, 0, 1), bf16)), TN_BF16);
    ck_assert_int_eq(tn_dtype_of(tn_linear(f32, tn_transpose(f64, 0, 1), tn_ones(TN_SHAPE(2)))), TN_F64);
    ck_assert_int_eq(tn_dtype_of(tn_linear(f32, tn_transpose(bf16, 0, 1), tn_ones_of(TN_F64, TN_SHAPE(2)))), TN_F64);
    ck_assert_int_eq(tn_dtype_of(tn_outer(tn_arange(2), tn_ones(TN_SHAPE(2)))), TN_F32);
    ck_assert_int_eq(tn_dtype_of(tn_einsum("ij,jk->ik", f32, f64)), TN_F64);
    fine();
    /* each gradient has the dtype of its input */
    tn_requires_grad(f32), tn_requires_grad(f64);
    tn_backward(tn_sum(tn_matmul(f32, f64)));
    fine();
    ck_assert_int_eq(tn_dtype_of(tn_grad(f32)), TN_F32);
    ck_assert_int_eq(tn_dtype_of(tn_grad(f64)), TN_F64);
}

TEST(matmul_nan_stays_in_its_row)
{
    tn_tensor *a = tn_ones(TN_SHAPE(3, 4)), *b = tn_ones(TN_SHAPE(4, 5));
    tn_set_at(a, TN_SHAPE(1, 2), NAN);
    tn_set_at(b, TN_SHAPE(0, 3), INFINITY);
    tn_tensor *y = tn_matmul(a, b);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 5; j++) {
            const double v = tn_get_at(y, TN_SHAPE(i, j));
            ck_assert(i == 1 ? isnan(v) : j == 3 ? v == (double)INFINITY : v == 4);
        }
}

static const tn_dtype reals[] = {TN_F32, TN_F64, TN_BF16};

/* Row i of y = f(x) is f(row i of x), to the bit, for f a product with a matrix or with a batch of them. */
TEST_EACH(rows_alone, 3)
{
    const tn_dtype dt = reals[_i];
    const int64_t  ks[] = {1, 7, 64, 300, 1100}, ms[] = {2, 5, 37, 100}, ns[] = {1, 9, 65, 130};
    for (int t = 0; t < 20; t++) {
        tn_scope      s = tn_scope_begin();
        const int64_t m = ms[t % 4], k = ks[t % 5], n = ns[(t / 4 + t) % 4];
        tn_tensor    *x = noise(dt, TN_SHAPE(m, k)), *w = noise(dt, TN_SHAPE(n, k)), *bias = noise(dt, TN_SHAPE(n));
        tn_tensor    *y = tn_linear(x, w, bias), *p = tn_matmul(x, tn_transpose(w, 0, 1));
        tn_tensor    *b3 = noise(dt, TN_SHAPE(2, k, n)), *q = tn_matmul(x, b3);
        for (int64_t i = 0; i<m; i += m> 10 ? 9 : 1) {
            tn_tensor *row = tn_narrow(x, 0, i, 1);
            ck_assert(tn_same_bits(tn_narrow(y, 0, i, 1), tn_linear(row, w, bias)));
            ck_assert(tn_same_bits(tn_select(y, 0, i), tn_linear(tn_select(x, 0, i), w, bias)));
            ck_assert(tn_same_bits(tn_narrow(p, 0, i, 1), tn_matmul(row, tn_transpose(w, 0, 1))));
            ck_assert(tn_same_bits(tn_narrow(q, 1, i, 1), tn_matmul(row, b3)));
            ck_assert(tn_same_bits(tn_narrow(tn_select(q, 0, 1), 0, i, 1), tn_matmul(row, tn_select(b3, 0, 1))));
        }
        fine();
        tn_scope_end(s);
    }
}

TEST_EACH(threads, 3)
{
    const tn_dtype dt = reals[_i];
    tn_tensor     *x = tn_requires_grad(noise(dt, TN_SHAPE(3, 90, 150))),
              *w = tn_requires_grad(noise(dt, TN_SHAPE(110, 150)));
    tn_tensor *b = tn_requires_grad(noise(dt, TN_SHAPE(110))), *m = tn_requires_grad(noise(dt, TN_SHAPE(3, 110, 40)));
    tn_tensor *in[4] = {x, w, b, m}, *first[5] = {NULL};
    for (int n = 1; n <= 7; n += n == 1 ? 1 : 5) {
        tn_set_threads(n);
        tn_tensor *out[5] = {tn_matmul(tn_linear(x, w, b), m)};
        tn_grad_of(out[0], 4, in, out + 1, .seed = tn_full_like(out[0], 0.5));
        fine();
        for (int i = 0; i < 5; i++) {
            if (n > 1) ck_assert_msg(tn_same_bits(first[i], out[i]), "result %d with %d threads", i, n);
            else first[i] = out[i];
        }
    }
}

/* ---- linear ------------------------------------------------------------------------------------------------------ */

TEST(linear_is_matmul_and_add)
{
    const tn_shape shapes[] = {
        {.n = 1, .d = {9}},       {.n = 2, .d = {5, 9}}, {.n = 3, .d = {2, 5, 9}}, {.n = 5, .d = {2, 1, 3, 2, 9}},
        {.n = 3, .d = {2, 0, 9}},
    };
    for (int i = 0; i < 5; i++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            tn_tensor *x = laid_out(TN_F64, shapes[i], layout), *w = laid_out(TN_F64, TN_SHAPE(4, 9), layout);
            tn_tensor *b = noise(TN_F64, TN_SHAPE(4)), *seen = tn_detach(x);
            tn_requires_grad(w), tn_requires_grad(b), tn_requires_grad(seen);
            tn_tensor *y = tn_linear(seen, w, b), *z = tn_add(tn_matmul(seen, tn_transpose(w, 0, 1)), b);
            tn_tensor *in[3] = {seen, w, b}, *g[3], *h[3], *seed = noise(TN_F64, tn_shape_of(y));
            fine();
            ck_assert(tn_same_bits(y, z));
            tn_grad_of(y, 3, in, g, .seed = seed);
            tn_grad_of(z, 3, in, h, .seed = seed);
            fine();
            for (int k = 0; k < 3; k++) ck_assert(tn_allclose(g[k], h[k], 1e-13, 1e-13));
        }
}

/* One op or two: the same bits forward, the same gradients up to rounding; without a tape nothing is saved. */
TEST(linear_with_a_function)
{
    tn_tensor *(*const one[])(tn_tensor *, tn_tensor *, tn_tensor *) = {tn_linear_gelu, tn_linear_gelu_tanh,
                                                                        tn_linear_relu};
    tn_tensor *(*const two[])(tn_tensor *) = {tn_gelu, tn_gelu_tanh, tn_relu};
    for (int i = 0; i < 3 * 2 * 2; i++) {
        const tn_dtype dt = i % 2 ? TN_F64 : TN_F32;
        tn_tensor *x = laid_out(dt, TN_SHAPE(2, 19, 33), i / 2 % LAYOUTS), *w = laid_out(dt, TN_SHAPE(50, 33), i % 3);
        tn_tensor *b = i < 6 ? noise(dt, TN_SHAPE(50)) : NULL, *seen = tn_detach(x);
        tn_tensor *in[3] = {tn_requires_grad(seen), tn_requires_grad(w), b}, *g[3], *h[3];
        const int  n = b ? 3 : 2;
        if (b) tn_requires_grad(b);
        tn_tensor *y = one[i % 3](seen, w, b), *z = two[i % 3](tn_linear(seen, w, b));
        fine();
        ck_assert(tn_same_bits(y, z));
        tn_tensor *seed = noise(dt, tn_shape_of(y));
        tn_grad_of(y, n, in, g, .seed = seed);
        tn_grad_of(z, n, in, h, .seed = seed);
        fine();
        for (int k = 0; k < n; k++) ck_assert(tn_same_bits(g[k], h[k]));
        const tn_scope free_of_tape = tn_no_grad_begin();
        const size_t   before = tn_memory_now().live;
        tn_tensor     *again = one[i % 3](seen, w, b);
        const size_t   bytes = (size_t)tn_numel(again) * (dt == TN_F64 ? 8 : 4);
        ck_assert(tn_same_bits(again, y));
        ck_assert_uint_lt(tn_memory_now().live - before, 2 * bytes);
        tn_scope_end(free_of_tape);
    }
}

/* ---- einsum ------------------------------------------------------------------------------------------------------ */

/* The reference: a sum over all values of all letters, for any equation. '...' is spelled out as the letters W-Z, whose
 * dims of size 1 broadcast. */
typedef struct {
    const char *equation, *spelled; /* spelled NULL: the same */
    tn_shape    in[4];
} sum_;

static double summed(const char *spelled, const tn_shape *shapes, tn_tensor *const *in, const char *out,
                     const int64_t *at)
{
    int64_t size[128] = {0}, value[128] = {0};
    char    letters[64];
    int     n = 0, operand = 0, dim = 0;
    for (const char *p = spelled; *p && *p != '-'; p++) {
        if (*p == ',') operand++, dim = 0;
        else if (*p != ' ') {
            const int64_t s = shapes[operand].d[dim++];
            if (!size[(int)*p] && !strchr(out, *p)) letters[n++] = *p;
            if (s != 1 || !size[(int)*p]) size[(int)*p] = s + (s == 0) * 1000; /* none: no terms */
        }
    }
    for (int i = 0; out[i]; i++) value[(int)out[i]] = at[i];
    int64_t terms = 1;
    for (int i = 0; i < n; i++) terms *= size[(int)letters[i]] % 1000;
    double sum = 0;
    for (int64_t t = 0; t < terms; t++) {
        int64_t rest = t;
        double  product = 1;
        for (int i = 0; i < n; i++)
            value[(int)letters[i]] = rest % size[(int)letters[i]], rest /= size[(int)letters[i]];
        const char *p = spelled;
        for (int i = 0; i <= operand; i++, p++) {
            tn_shape index = {.n = 0};
            for (; *p && *p != ',' && *p != '-'; p++)
                if (*p != ' ') index.d[index.n] = shapes[i].d[index.n] == 1 ? 0 : value[(int)*p], index.n++;
            product *= tn_get_at(in[i], index);
        }
        sum += product;
    }
    return sum;
}

static const sum_ sums[] = {
    {"ij,jk->ik", NULL, {{.n = 2, .d = {3, 4}}, {.n = 2, .d = {4, 5}}}},
    {"ij,jk", "ij,jk->ik", {{.n = 2, .d = {3, 4}}, {.n = 2, .d = {4, 5}}}},
    {"ij,jk->ki", NULL, {{.n = 2, .d = {3, 4}}, {.n = 2, .d = {4, 5}}}},
    {"ij,kj->ik", NULL, {{.n = 2, .d = {3, 4}}, {.n = 2, .d = {5, 4}}}},
    {"ji,jk->ik", NULL, {{.n = 2, .d = {4, 3}}, {.n = 2, .d = {4, 5}}}},
    {"bij,bjk->bik", NULL, {{.n = 3, .d = {2, 3, 4}}, {.n = 3, .d = {2, 4, 5}}}},
    {"bij,jk->bik", NULL, {{.n = 3, .d = {2, 3, 4}}, {.n = 2, .d = {4, 5}}}},
    {" b i j , b j k -> i b k ", "bij,bjk->ibk", {{.n = 3, .d = {2, 3, 4}}, {.n = 3, .d = {2, 4, 5}}}},
    {"ii->i", NULL, {{.n = 2, .d = {4, 4}}}},
    {"ii->", NULL, {{.n = 2, .d = {4, 4}}}},
    {"ii", "ii->", {{.n = 2, .d = {4, 4}}}},
    {"iij->ji", NULL, {{.n = 3, .d = {3, 3, 2}}}},
    {"iii->i", NULL, {{.n = 3, .d = {3, 3, 3}}}},
    {"ijij->ij", NULL, {{.n = 4, .d = {2, 3, 2, 3}}}},
    {"ijji", "ijji->", {{.n = 4, .d = {2, 3, 3, 2}}}},
    {"ij->ji", NULL, {{.n = 2, .d = {3, 4}}}},
    {"ba", "ba->ab", {{.n = 2, .d = {3, 4}}}},
    {"aB", "aB->Ba", {{.n = 2, .d = {3, 4}}}}, /* capitals come first */
    {"abc->", NULL, {{.n = 3, .d = {2, 3, 4}}}},
    {"abc->b", NULL, {{.n = 3, .d = {2, 3, 4}}}},
    {"i,j->ij", NULL, {{.n = 1, .d = {3}}, {.n = 1, .d = {4}}}},
    {"i,j->ji", NULL, {{.n = 1, .d = {3}}, {.n = 1, .d = {4}}}},
    {"i,i->", NULL, {{.n = 1, .d = {3}}, {.n = 1, .d = {3}}}},
    {"i,i->i", NULL, {{.n = 1, .d = {3}}, {.n = 1, .d = {3}}}},
    {"i,j->", NULL, {{.n = 1, .d = {3}}, {.n = 1, .d = {4}}}},
    {"ij,ij->i", NULL, {{.n = 2, .d = {3, 4}}, {.n = 2, .d = {3, 4}}}},
    {"ij,ji->", NULL, {{.n = 2, .d = {3, 4}}, {.n = 2, .d = {4, 3}}}},
    {"ij,j->ij", NULL, {{.n = 2, .d = {3, 4}}, {.n = 1, .d = {4}}}},
    {",ij->ij", NULL, {{.n = 0, .d = {0}}, {.n = 2, .d = {3, 4}}}},
    {"->", NULL, {{.n = 0, .d = {0}}}},
    {"", "->", {{.n = 0, .d = {0}}}},
    {"bhtd,bhsd->bhts", NULL, {{.n = 4, .d = {2, 2, 3, 4}}, {.n = 4, .d = {2, 2, 5, 4}}}},
    {"bthd,bshd->bhts", NULL, {{.n = 4, .d = {2, 3, 2, 4}}, {.n = 4, .d = {2, 5, 2, 4}}}},
    {"bhts,bshd->bthd", NULL, {{.n = 4, .d = {2, 2, 3, 4}}, {.n = 4, .d = {2, 4, 2, 5}}}},
    {"ijk,jkl->il", NULL, {{.n = 3, .d = {2, 3, 4}}, {.n = 3, .d = {3, 4, 5}}}},
    {"ijk,kjl->il", NULL, {{.n = 3, .d = {2, 3, 4}}, {.n = 3, .d = {4, 3, 5}}}},
    {"ijkl,jm,kn->imnl", NULL, {{.n = 4, .d = {2, 3, 2, 3}}, {.n = 2, .d = {3, 2}}, {.n = 2, .d = {2, 4}}}},
    {"ij,jk,kl,lm->im",
     NULL,
     {{.n = 2, .d = {2, 3}}, {.n = 2, .d = {3, 4}}, {.n = 2, .d = {4, 3}}, {.n = 2, .d = {3, 2}}}},
    {"i,i,i->i", NULL, {{.n = 1, .d = {3}}, {.n = 1, .d = {3}}, {.n = 1, .d = {3}}}},
    {"ij,ik,il->jkl", NULL, {{.n = 2, .d = {3, 2}}, {.n = 2, .d = {3, 4}}, {.n = 2, .d = {3, 3}}}},
    {"ij,jk->i", NULL, {{.n = 2, .d = {3, 4}}, {.n = 2, .d = {4, 5}}}},
    {"iij,jj->i", NULL, {{.n = 3, .d = {3, 3, 4}}, {.n = 2, .d = {4, 4}}}},
    {"...ij,...jk->...ik", "Zij,Zjk->Zik", {{.n = 3, .d = {2, 3, 4}}, {.n = 3, .d = {2, 4, 5}}}},
    {"...ij,...jk->...ik", "YZij,Zjk->YZik", {{.n = 4, .d = {2, 3, 2, 4}}, {.n = 3, .d = {1, 4, 2}}}},
    {"...ij,jk", "YZij,jk->YZik", {{.n = 4, .d = {2, 3, 2, 4}}, {.n = 2, .d = {4, 2}}}},
    {"i...,i...->...", "iYZ,iZ->YZ", {{.n = 3, .d = {2, 3, 4}}, {.n = 2, .d = {2, 4}}}},
    {"i...->...", "iYZ->YZ", {{.n = 3, .d = {2, 3, 4}}}},
    {"...i->i...", "YZi->iYZ", {{.n = 3, .d = {2, 3, 4}}}},
    {"...i->i", "YZi->i", {{.n = 3, .d = {2, 3, 4}}}},
    {"...,...->...", "YZ,YZ->YZ", {{.n = 2, .d = {3, 1}}, {.n = 2, .d = {1, 4}}}},
    {"...ij->...", "ij->", {{.n = 2, .d = {3, 4}}}},
    {"abcdefgk,abcdefgk->abcdefg",
     NULL,
     {{.n = 8, .d = {2, 1, 2, 1, 1, 2, 1, 3}}, {.n = 8, .d = {2, 1, 2, 1, 1, 2, 1, 3}}}},
    {"abcdefgh,h->abcdefgh", NULL, {{.n = 8, .d = {2, 1, 2, 1, 1, 2, 1, 3}}, {.n = 1, .d = {3}}}},
    {"ij,jk->ik", NULL, {{.n = 2, .d = {3, 0}}, {.n = 2, .d = {0, 5}}}},
    {"ij,jk->ik", NULL, {{.n = 2, .d = {0, 4}}, {.n = 2, .d = {4, 5}}}},
    {"ij->i", NULL, {{.n = 2, .d = {3, 0}}}},
};
enum { SUMS = sizeof sums / sizeof *sums };

TEST_EACH(einsum_loops, SUMS)
{
    const sum_ *q = &sums[_i];
    const char *spelled = q->spelled ? q->spelled : q->equation, *out = strstr(spelled, "->") + 2;
    int         n = 1;
    for (const char *p = spelled; *p; p++) n += *p == ',';
    for (int layout = 0; layout < LAYOUTS; layout++) {
        tn_tensor *in[4];
        for (int i = 0; i < n; i++) in[i] = laid_out(TN_F64, q->in[i], q->in[i].n ? layout : 0);
        tn_tensor *y = tn_einsum_list(q->equation, n, in);
        fine();
        const tn_shape s = tn_shape_of(y);
        ck_assert_int_eq(s.n, (int)strlen(out));
        for (int64_t i = 0; i < tn_numel(y); i++) {
            int64_t at[TN_MAX_DIMS] = {0}, rest = i;
            for (int d = s.n - 1; d >= 0; d--) at[d] = rest % s.d[d], rest /= s.d[d];
            const double want = summed(spelled, q->in, in, out, at), got = tn_get(y, i);
            ck_assert_msg(fabs(got - want) <= 1e-14 * 100, "%s, layout %d, element %lld: %.17g, should be %.17g",
                          q->equation, layout, (long long)i, got, want);
        }
    }
}

/* Equations without arithmetic allocate nothing. */
TEST(einsum_views)
{
    tn_tensor *x = noise(TN_F32, TN_SHAPE(3, 3));
    ck_assert(tn_shares_memory(tn_einsum("ij->ji", x), x));
    ck_assert(tn_shares_memory(tn_einsum("ii->i", x), x));
    tn_tensor *same = tn_einsum("ij->ij", x);
    ck_assert(same != x && tn_shares_memory(same, x));
}

/* Errors in equations and shapes are samples of the room; here are the calls that samples cannot make. */
TEST(einsum_errors)
{
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3)), *many[17];
    char       text[400], want[400];
    ck_refused(tn_einsum_list(NULL, 1, &x), TN_EINVAL, "einsum: the equation is NULL");
    ck_refused(tn_einsum_list("ij", 0, NULL), TN_EINVAL,
               "einsum: 'ij': the equation has 1 operand, 0 tensors were given");
    ck_refused(tn_einsum_list("ij", -1, NULL), TN_EINVAL, "einsum: the number of inputs is -1");
    ck_refused(tn_einsum_list("ij", 1, NULL), TN_EINVAL, "einsum: the list of 1 tensors is NULL");
    ck_refused(tn_einsum("ij", NULL), TN_EINVAL, "einsum: input 0 is NULL");
    ck_refused(tn_einsum("ij,ij->", x), TN_EINVAL,
               "einsum: 'ij,ij->': the equation has 2 operands, 1 tensor was given");
    ck_refused(
        tn_einsum("i\xc3\xa9", x), TN_EINVAL,
        "einsum: 'i\xc3\xa9': byte 0xc3 is not a letter; an equation consists of letters, ',', '...', '->' and spaces");
    ck_refused(tn_einsum("ij->ij->", x), TN_EINVAL, "einsum: 'ij->ij->': '-' in the output, which must be one term");
    ck_refused(tn_einsum("i>j", x), TN_EINVAL,
               "einsum: 'i>j': '>' is not a letter; an equation consists of letters, ',', '...', '->' and spaces");
    ck_refused(tn_einsum("ij-", x), TN_EINVAL, "einsum: 'ij-': operand 0 is followed by '-' without '>'");
    ck_refused(tn_einsum("ij->i-", x), TN_EINVAL, "einsum: 'ij->i-': the output is followed by '-' without '>'");
    for (int i = 0; i < 17; i++) many[i] = x;
    many[3] = tn_to(x, TN_F64);
    ck_refused(tn_einsum_list("ij", 17, many), TN_EDTYPE,
               "einsum: dtypes differ: operand 0 is f32, operand 3 f64; convert with tn_to");
    memset(text, 'i', sizeof text);
    text[399] = 0;
    snprintf(want, sizeof want, "einsum: '%.200s': operand 0 has more than 8 dims", text);
    ck_refused(tn_einsum(text, x), TN_ESHAPE, want);
    many[3] = x;
    tn_tensor *y = tn_einsum_list("ij,ij,ij,ij,ij,ij,ij,ij,ij,ij,ij,ij,ij,ij,ij,ij,ij->ij", 17, many);
    fine();
    for (int64_t i = 0; i < 6; i++) ck_assert_double_eq_tol(tn_get(y, i), pow(tn_get(x, i), 17), 1e-5);
}
