/* create.c — new tensors: constant, or counted. Tensors from host memory are in transfer.c and tensor.c, random ones in
 * random.c. */
#include "core/base/bf16.h"
#include "core/tensor/convert.h"
#include "core/tensor/tensor.h"

#include <math.h>
#include <string.h>

tn_tensor *tn__make(const char *who, tn_dtype dt, tn_shape s)
{
    if (tn__blocked() || !tn__shape_check(who, dt, s)) return NULL;
    for (int i = s.n; i < TN_MAX_DIMS; i++) s.d[i] = 0; /* unused entries of the caller's shape */
    return tn__new(dt, s);
}

/* ---- constant ------------------------------------------------------------------------------------------------- */

static tn_tensor *full(const char *who, tn_dtype dt, tn_shape s, double value)
{
    if (tn__blocked() || !tn__shape_check(who, dt, s) || !tn__fits(who, "value", dt, value)) return NULL;
    tn_tensor *t = tn__make(who, dt, s);
    if (!t) return NULL;
    if (value == 0 && !signbit(value)) {
        if (t->storage->bytes) memset(t->storage->data, 0, t->storage->bytes);
    } else {
        tn__fill(t, value);
    }
    return t;
}

tn_tensor *tn_empty_of(tn_dtype dt, tn_shape s) { return tn__make("tn_empty_of", dt, s); }
tn_tensor *tn_zeros_of(tn_dtype dt, tn_shape s) { return full("tn_zeros_of", dt, s, 0); }
tn_tensor *tn_ones_of(tn_dtype dt, tn_shape s) { return full("tn_ones_of", dt, s, 1); }
tn_tensor *tn_full_of(tn_dtype dt, tn_shape s, double value) { return full("tn_full_of", dt, s, value); }
tn_tensor *tn_empty(tn_shape s) { return tn__make("tn_empty", TN_F32, s); }
tn_tensor *tn_zeros(tn_shape s) { return full("tn_zeros", TN_F32, s, 0); }
tn_tensor *tn_ones(tn_shape s) { return full("tn_ones", TN_F32, s, 1); }
tn_tensor *tn_full(tn_shape s, double value) { return full("tn_full", TN_F32, s, value); }
tn_tensor *tn_scalar(double value) { return full("tn_scalar", TN_F64, TN_SCALAR, value); }
tn_tensor *tn_scalar_of(tn_dtype dt, double value) { return full("tn_scalar_of", dt, TN_SCALAR, value); }

static tn_tensor *full_like(const char *who, const tn_tensor *t, double value)
{
    if (tn__blocked() || !tn__given(who, "t", t)) return NULL;
    return full(who, t->dtype, t->l.shape, value);
}

tn_tensor *tn_empty_like(const tn_tensor *t)
{
    if (tn__blocked() || !tn__given("tn_empty_like", "t", t)) return NULL;
    return tn__make("tn_empty_like", t->dtype, t->l.shape);
}
tn_tensor *tn_zeros_like(const tn_tensor *t) { return full_like("tn_zeros_like", t, 0); }
tn_tensor *tn_ones_like(const tn_tensor *t) { return full_like("tn_ones_like", t, 1); }
tn_tensor *tn_full_like(const tn_tensor *t, double value) { return full_like("tn_full_like", t, value); }

/* ---- counted -------------------------------------------------------------------------------------------------- */

enum { GRAIN = 16384 };

/* Element i is first + i · step; in the second half it is last - (n - 1 - i) · step, so that both ends are exact and
 * linspace is symmetric. arange has no last: half = n. */
typedef struct {
    tn_tensor *t;
    double     first, last, step;
    int64_t    half, n;
} series;

static void count(int64_t from, int64_t to, void *user)
{
    const series  *s = user;
    const tn_dtype dt = s->t->dtype;
    char          *y = tn__ptr(s->t);
    double         v[256];
    for (int64_t at = from, n; at < to; at += n) {
        n = tn__min_i64(to - at, 256);
        for (int64_t i = at; i < at + n; i++)
            v[i - at] = i < s->half ? s->first + (double)i * s->step : s->last - (double)(s->n - 1 - i) * s->step;
        tn__convert(n, y + (size_t)at * tn__dtype_bytes(dt), dt, 1, v, TN_F64, 1);
    }
}

static void count_i64(int64_t from, int64_t to, void *user)
{
    int64_t *y = user;
    for (int64_t i = from; i < to; i++) y[i] = i;
}

tn_tensor *tn_arange(int64_t n)
{
    if (tn__blocked()) return NULL;
    if (n < 0) return tn_raise_null(TN_EINVAL, "tn_arange: n is %lld, but must not be negative", (long long)n);
    tn_tensor *t = tn__make("tn_arange", TN_I64, TN_SHAPE(n));
    if (t) tn_parallel_for(n, GRAIN, count_i64, tn__ptr(t));
    return t;
}

static bool finite_number(const char *who, const char *what, double v)
{
    if (isfinite(v)) return true;
    return tn_raise_false(TN_EINVAL, "%s: %s is %g, but must be finite", who, what, v);
}

static bool whole_number(const char *who, const char *what, tn_dtype dt, double v)
{
    if (tn__is_float(dt) || v == trunc(v)) return true;
    return tn_raise_false(TN_EINVAL, "%s: %s is %g, but must be an integer for %s", who, what, v, tn_dtype_name(dt));
}

tn_tensor *tn_arange_of(tn_dtype dt, double start, double end, double step)
{
    const char *who = "tn_arange_of";
    if (tn__blocked() || !tn__shape_check(who, dt, TN_SCALAR)) return NULL;
    if (dt == TN_BOOL) return tn_raise_null(TN_EDTYPE, "%s: dtype bool cannot count", who);
    if (!finite_number(who, "start", start) || !finite_number(who, "end", end) || !finite_number(who, "step", step))
        return NULL;
    if (!whole_number(who, "start", dt, start) || !whole_number(who, "step", dt, step)) return NULL;
    if (step == 0) return tn_raise_null(TN_EINVAL, "%s: step is 0", who);
    if (step > 0 ? start > end : start < end)
        return tn_raise_null(TN_EINVAL, "%s: from %g to %g by steps of %g never reaches the end", who, start, end,
                             step);
    const double length = ceil((end - start) / step);
    if (!(length < 0x1p62))
        return tn_raise_null(TN_EINVAL, "%s: from %g to %g by steps of %g is too long", who, start, end, step);
    int64_t n = (int64_t)length; /* 4 for 1, 1.1 … 1.3, because the division is rounded; but end itself is excluded */
    const double last = start + (double)(n - 1) * step;
    if (n && (step > 0 ? last >= end : last <= end)) n--;
    if (n &&
        (!tn__fits(who, "start", dt, start) || !tn__fits(who, "the last element", dt, start + (double)(n - 1) * step)))
        return NULL;
    series s = {.t = tn__make(who, dt, TN_SHAPE(n)), .first = start, .step = step, .half = n, .n = n};
    if (s.t) tn_parallel_for(n, GRAIN, count, &s);
    return s.t;
}

static tn_tensor *linspace(const char *who, tn_dtype dt, double start, double end, int64_t steps)
{
    if (tn__blocked() || !tn__shape_check(who, dt, TN_SCALAR)) return NULL;
    if (dt == TN_BOOL) return tn_raise_null(TN_EDTYPE, "%s: dtype bool cannot count", who);
    if (steps < 0)
        return tn_raise_null(TN_EINVAL, "%s: steps is %lld, but must not be negative", who, (long long)steps);
    if (!finite_number(who, "start", start) || !finite_number(who, "end", end)) return NULL;
    if (!tn__fits(who, "start", dt, start) || !tn__fits(who, "end", dt, end)) return NULL;
    series s = {.t = tn__make(who, dt, TN_SHAPE(steps)), .first = start, .last = end, .n = steps};
    if (!s.t) return NULL;
    const double gaps = (double)tn__max_i64(steps - 1, 1), width = end - start;
    s.step = isfinite(width) ? width / gaps : end / gaps - start / gaps;
    s.half = steps == 1 ? 1 : steps / 2;
    tn_parallel_for(steps, GRAIN, count, &s);
    return s.t;
}

tn_tensor *tn_linspace(double start, double end, int64_t steps)
{
    return linspace("tn_linspace", TN_F32, start, end, steps);
}
tn_tensor *tn_linspace_of(tn_dtype dt, double start, double end, int64_t steps)
{
    return linspace("tn_linspace_of", dt, start, end, steps);
}

static tn_tensor *eye(const char *who, tn_dtype dt, int64_t rows, int64_t cols)
{
    tn_tensor *t = full(who, dt, TN_SHAPE(rows, cols), 0);
    if (!t) return NULL;
    const size_t size = tn__dtype_bytes(dt);
    char        *y = tn__ptr(t);
    for (int64_t i = 0; i < tn__min_i64(rows, cols); i++) tn__store(y + (size_t)(i * cols + i) * size, dt, 1);
    return t;
}

tn_tensor *tn_eye(int64_t rows, int64_t cols) { return eye("tn_eye", TN_F32, rows, cols); }
tn_tensor *tn_eye_of(tn_dtype dt, int64_t rows, int64_t cols) { return eye("tn_eye_of", dt, rows, cols); }
