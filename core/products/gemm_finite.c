/* gemm_finite.c — a matrix product in which zeros of a select: they exclude NaN and infinities of b from the sum, which
 * multiplying by 0 would not. Attention needs this where weights are 0 because a key is blocked.
 *
 * Usually b is finite, and then the plain product is correct. Otherwise the result would contain NaN or infinity, so
 * the result is checked, not b. Only if it does is the product repeated with a b that has zeros in their place, and the
 * omitted terms whose a is not 0 are added. */
#ifndef TN__REAL
#include "core/kernels/sum_lanes.h"
#include "core/products/gemm.h"
#include "core/skeletons/skeletons.h"
#include "core/tensor/strided_walk.h"

typedef tn__lanes finite_state_f32, finite_state_f64;
#define TN__TEMPLATE "core/products/gemm_finite.c"
#include "core/real.h"

static bool finite_all(tn_tensor *t)
{
    static const tn__reducer f32 = TN__REDUCER_PARTS(finite, f32), f64 = TN__REDUCER_PARTS(finite, f64);
    bool                     yes = true;
    tn__storage              s = {.data = &yes};
    tn_tensor                result = {.dtype = TN_BOOL, .storage = &s};
    tn_dims                  all = {.n = t->l.shape.n};
    for (int i = 0; i < all.n; i++) all.d[i] = i;
    if (tn_numel(t)) tn__reduce((tn__reducers){&f32, &f64, NULL}, all, TN__LIST(&result), t, NULL);
    return yes;
}

typedef struct {
    const tn_tensor *a, *b, *odd, *c;
    int64_t          m, n, k;
} job;

/* Offset of row `row` of matrix `matrix` of c's batch in t, which broadcasts to that batch. */
static int64_t at(const tn_tensor *t, const tn_tensor *c, int64_t matrix, int64_t row)
{
    const int nd = c->l.shape.n, last = t->l.shape.n - 1;
    int64_t   offset = row * t->l.stride[last - 1];
    for (int i = nd - 3; i >= 0; i--) {
        offset += matrix % c->l.shape.d[i] * tn__stride_in(t, i, nd);
        matrix /= c->l.shape.d[i];
    }
    return offset;
}
static double value(const tn_tensor *t, int64_t offset)
{
    return tn__load((const char *)tn__ptr(t) + offset * (int64_t)tn__dtype_bytes(t->dtype), t->dtype);
}

/* Adds the terms that are not finite to rows of c. */
static void add_terms(int64_t from, int64_t to, void *user)
{
    const job *j = user;
    for (int64_t r = from; r < to; r++) {
        const int64_t matrix = r / j->m, row = r % j->m;
        const int64_t a0 = at(j->a, j->c, matrix, row), c0 = at(j->c, j->c, matrix, row);
        const int64_t a_step = j->a->l.stride[j->a->l.shape.n - 1], b_step = j->b->l.stride[j->b->l.shape.n - 1];
        for (int64_t p = 0; p < j->k; p++) {
            if (value(j->odd, at(j->odd, j->c, matrix, p)) == 0) continue;
            const double a = value(j->a, a0 + p * a_step);
            if (a == 0) continue;
            const int64_t b0 = at(j->b, j->c, matrix, p);
            for (int64_t i = 0; i < j->n; i++) {
                const double b = value(j->b, b0 + i * b_step);
                if (b - b == 0) continue;
                char *c = (char *)tn__ptr(j->c) + (c0 + i) * (int64_t)tn__dtype_bytes(j->c->dtype);
                tn__store(c, j->c->dtype, tn__load(c, j->c->dtype) + a * b);
            }
        }
    }
}

void tn__gemm_finite(const tn_tensor *a, const tn_tensor *b, tn_tensor *c)
{
    tn__gemm(1, a, b, 0, c);
    if (tn__self.error || finite_all(c) || tn__self.error) return;
    const int nd = b->l.shape.n;
    tn_shape  rows = b->l.shape;
    rows.d[nd - 1] = 1;
    tn_tensor *clean = tn__new_owned(b->dtype, b->l.shape), *odd = tn__new_owned(TN_BOOL, rows);
    tn_tensor  same = tn__stack_view(b, &b->l);
    if (clean && odd) {
        tn__rows(TN__REALS(clean), nd - 1, TN__LIST(clean, odd), TN__LIST(&same), NULL);
        tn__gemm(1, a, clean, 0, c);
    }
    if (!tn__self.error) {
        const int64_t m = c->l.shape.d[c->l.shape.n - 2];
        job           j = {a, b, odd, c, m, c->l.shape.d[c->l.shape.n - 1], b->l.shape.d[nd - 2]};
        tn_parallel_for(m ? tn_numel(c) / j.n : 0, 4, add_terms, &j);
    }
    tn_drop(clean), tn_drop(odd);
}

#else /* ============================================================== kernels: contiguous, one dtype */

/* x · 0 is 0 for a finite x and NaN otherwise; so are sums of such products. */
static void TN__(finite_init)(void *s, const void *args)
{
    (void)args;
    *(tn__lanes *)s = (tn__lanes){{0}};
}
static void TN__(finite_step)(int64_t n, int64_t first, void *s, const void *in, const void *args)
{
    const TN__REAL *x = in;
    double         *lane = ((tn__lanes *)s)->lane;
    int64_t         i = 0;
    (void)first, (void)args;
    for (; i + TN__LANES <= n; i += TN__LANES)
        for (int k = 0; k < TN__LANES; k++) lane[k] += (double)(x[i + k] * 0);
    for (int k = 0; i + k < n; k++) lane[k] += (double)(x[i + k] * 0);
}
static void TN__(finite_merge)(void *s, const void *later, const void *args)
{
    (void)args;
    for (int k = 0; k < TN__LANES; k++) ((tn__lanes *)s)->lane[k] += ((const tn__lanes *)later)->lane[k];
}
static void TN__(finite_finish)(int64_t n, const void *s, void *const *out, const void *args)
{
    double sum = 0;
    (void)n, (void)args;
    for (int k = 0; k < TN__LANES; k++) sum += ((const tn__lanes *)s)->lane[k];
    *(TN__REAL *)out[0] = sum == 0;
}

/* Copies a row with zeros in place of non-finite elements, and reports whether there were any. */
static void TN__(clean)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const TN__REAL *x = in[0];
    TN__REAL       *y = out[0], *odd = out[1];
    (void)args;
    *odd = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool ok = x[i] - x[i] == 0;
        y[i] = ok ? x[i] : 0;
        if (!ok) *odd = 1;
    }
}
#endif
