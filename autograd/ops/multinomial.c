/* multinomial — indices sampled with probabilities in proportion to the elements of each row; without gradient
 *
 * With replacement, sample i of a row is the first index whose cumulative sum exceeds u_i times the row's sum. Without,
 * the samples are the n largest p / e, with e drawn from the exponential distribution for each element: the order in
 * which clocks of rates p ring. Both compute in f64 from one tn_uniform_of, so that the result depends on the generator
 * alone, not on the number of threads. */
#include "autograd/rooms/room.h"

/* Raises if an element is not a weight, or a row has too few that are not 0. */
static bool weights_valid(const tn_tensor *p, int64_t n, bool replacement)
{
    const int64_t classes = p->l.shape.d[p->l.shape.n - 1], count = tn_numel(p);
    char          text[192];
    int64_t       choices = 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = tn_get(p, i);
        if (!(v >= 0 && v < INFINITY))
            return tn_raise_false(TN_EINVAL, "multinomial: %g at %s; a weight must be finite and not negative", v,
                                  tn__position_text(p->l.shape, i, text, sizeof text));
        choices += v > 0;
        if (i % classes < classes - 1) continue;
        if (n && choices < (replacement ? 1 : n))
            return tn_raise_false(
                TN_EINVAL, "multinomial: row %lld has %lld weights above 0, too few for %lld samples%s",
                (long long)(i / classes), (long long)choices, (long long)n, replacement ? "" : " without replacement");
        choices = 0;
    }
    return true;
}

/* cumulative [rows, classes], u [rows, n], both contiguous f64. */
static tn_tensor *with_replacement(const tn_tensor *cumulative, const tn_tensor *u, int64_t rows, int64_t classes,
                                   int64_t n)
{
    tn_tensor    *y = cumulative && u ? tn_empty_of(TN_I64, TN_SHAPE(rows, n)) : NULL;
    const double *sums = y ? tn_data(cumulative) : NULL, *draws = y ? tn_data(u) : NULL;
    int64_t      *to = y ? tn__ptr(y) : NULL;
    for (int64_t r = 0; y && r < rows; r++, sums += classes)
        for (int64_t i = 0; i < n; i++) {
            const double at = *draws++ * sums[classes - 1];
            int64_t      low = 0, high = classes - 1; /* the first index whose sum exceeds at */
            while (low < high) {
                const int64_t middle = low + (high - low) / 2;
                if (sums[middle] > at) high = middle;
                else low = middle + 1;
            }
            while (low && sums[low - 1] == sums[low]) low--; /* at was rounded up to the row's sum */
            *to++ = low;
        }
    return y;
}

tn_tensor *tn_multinomial(tn_tensor *p, int64_t n, bool replacement)
{
    char text[192];
    if (tn__blocked()) return NULL;
    if (!p) return tn_raise_null(TN_EINVAL, "multinomial: p is NULL");
    tn_shape shape = tn_shape_of(p);
    if (!tn__is_float(p->dtype) || shape.n < 1 || shape.n > 2 || shape.d[shape.n - 1] < 1)
        return tn_raise_null(TN_ESHAPE, "multinomial: p must be floating, [C] or [N, C] with C at least 1, got %s %s",
                             tn_dtype_name(p->dtype), tn_shape_text(shape, text, sizeof text));
    if (n < 0) return tn_raise_null(TN_EINVAL, "multinomial: n is %lld, but must not be negative", (long long)n);
    if (!weights_valid(p, n, replacement)) return NULL;
    const int64_t  classes = shape.d[shape.n - 1], rows = shape.n == 2 ? shape.d[0] : 1;
    const tn_scope s = tn_no_grad_begin();
    tn_generator  *g = tn_current_generator(), before = *g;
    tn_tensor     *w = tn_reshape(tn_to(p, TN_F64), TN_SHAPE(rows, classes)), *y;
    if (replacement) {
        y = with_replacement(tn_cumsum(w, -1), tn_uniform_of(TN_F64, TN_SHAPE(rows, n), 0, 1), rows, classes, n);
    } else { /* the sum keeps a weight of 0 at 0 where e is 0 */
        tn_tensor *e = tn_neg(tn_log1p(tn_neg(tn_uniform_of(TN_F64, TN_SHAPE(rows, classes), 0, 1))));
        y = tn_topk(tn_div(w, tn_add_scalar(e, 1e-300)), n, -1).indices;
    }
    shape.d[shape.n - 1] = n;
    y = tn_scope_return(s, tn_reshape(y, shape));
    if (!y) *g = before;
    return y;
}
