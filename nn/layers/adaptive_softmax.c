/* adaptive_softmax.c — a softmax over many classes whose rare classes are grouped in clusters (Grave and others 2017).
 *
 *   log p(c) = head(x)[c]                                   for a class before the first cutoff
 *   log p(c) = head(x)[cluster] + tail_cluster(x)[c]        for a class in a cluster
 *
 * where head(x) and tail_cluster(x) are log-softmaxes. */
#include "nn/base/nn_private.h"

static const tn_class tn_adaptive_softmax_class = {
    .size = sizeof(tn_class), .name = "AdaptiveLogSoftmaxWithLoss", .bytes = sizeof(tn_adaptive_softmax)};

/* The number of cutoffs; -1: raised. */
static int64_t cutoffs_fit(const char *who, const tn_adaptive_softmax_config *c)
{
    int64_t n = 0;
    for (int64_t before = 0; n < TN_CUTOFFS && c->cutoffs[n]; before = c->cutoffs[n++])
        if (c->cutoffs[n] <= before || c->cutoffs[n] >= c->classes)
            return tn_raise(TN_EINVAL,
                            "%s: .cutoffs must increase, from above 0 to below .classes, %lld, but [%lld] is %lld", who,
                            (long long)c->classes, (long long)n, (long long)c->cutoffs[n]),
                   -1;
    if (!n)
        return tn_raise(TN_EINVAL, "%s: .cutoffs is empty; set the first class of each cluster, as in {2000, 10000}",
                        who),
               -1;
    return n;
}

tn_adaptive_softmax *tn_adaptive_softmax_create(tn_adaptive_softmax_config c)
{
    const char *who = "tn_adaptive_softmax_new";
    if (!tn__at_least(who, "in", c.in, 1) || !tn__at_least(who, "classes", c.classes, 2) || !tn__floating(who, c.dtype))
        return NULL;
    if (!(c.div_value >= 1))
        return tn_raise_null(TN_EINVAL, "%s: .div_value is %g, but must be at least 1", who, c.div_value);
    const int64_t n = cutoffs_fit(who, &c);
    if (n < 0) return NULL;
    tn_adaptive_softmax *m = tn_module_new(tn_adaptive_softmax);
    if (!m) return NULL;
    m->in = c.in, m->classes = c.classes, m->clusters = n;
    for (int64_t i = 0; i < n; i++) m->cutoffs[i] = c.cutoffs[i];
    m->cutoffs[n] = c.classes;
    m->head = tn_child(m, "head",
                       tn_linear_new(.in = c.in, .out = c.cutoffs[0] + n, .no_bias = !c.head_bias, .dtype = c.dtype));
    m->tail = tn_child(m, "tail", tn_module_list_new());
    for (int64_t i = 0; i < n && m->tail && tn_error() == TN_OK; i++) {
        const int64_t  inner = (int64_t)((double)c.in / tn__libm_pow(c.div_value, (double)(i + 1)));
        tn_sequential *both = tn_append(m->tail, tn_sequential_new());
        if (!both) break;
        if (inner < 1) {
            tn_raise(TN_EINVAL, "%s: cluster %lld would have width 0: .in is %lld; use a smaller .div_value", who,
                     (long long)i, (long long)c.in);
            break;
        }
        tn_append(both, tn_linear_new(.in = c.in, .out = inner, .no_bias = true, .dtype = c.dtype));
        tn_append(both, tn_linear_new(.in = inner, .out = m->cutoffs[i + 1] - m->cutoffs[i], .no_bias = true,
                                      .dtype = c.dtype));
    }
    return tn_built(m);
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

static bool input_fits(const tn_adaptive_softmax *m, const tn_tensor *x)
{
    char           text[192];
    const tn_shape s = x ? tn_shape_of(x) : TN_SCALAR;
    if (s.n && s.d[s.n - 1] == m->in) return true;
    return tn_raise_false(TN_ESHAPE, "adaptive_softmax: x %s must be [..., %lld]",
                          x ? tn_shape_text(s, text, sizeof text) : "NULL", (long long)m->in);
}

static bool target_fits(const tn_adaptive_softmax *m, const tn_tensor *x, const tn_tensor *target)
{
    char     a[192], b[192];
    tn_shape s = tn_shape_of(x);
    s.n--;
    if (!target || (tn_dtype_of(target) != TN_I64 && tn_dtype_of(target) != TN_I32) ||
        !tn_shape_equal(tn_shape_of(target), s))
        return tn_raise_false(TN_ESHAPE, "adaptive_softmax: target is %s, but must be i64 %s: one class per vector",
                              target ? tn_shape_text(tn_shape_of(target), a, sizeof a) : "NULL",
                              tn_shape_text(s, b, sizeof b));
    for (int64_t i = 0; i < tn_numel(target); i++) {
        const int64_t c = tn_get_i64(target, i);
        if (c < 0 || c >= m->classes)
            return tn_raise_false(TN_EINDEX, "adaptive_softmax: target %lld at [%lld] is outside 0 to %lld",
                                  (long long)c, (long long)i, (long long)m->classes - 1);
    }
    return true;
}

/* The head's targets: the class itself, or the index of its cluster after the head's classes. */
static tn_tensor *head_target(const tn_adaptive_softmax *m, const tn_tensor *target)
{
    const int64_t n = tn_numel(target);
    tn_tensor    *t = tn_empty_of(TN_I64, TN_SHAPE(n));
    int64_t      *to = t ? tn_data_mut(t) : NULL;
    for (int64_t i = 0; to && i < n; i++) {
        int64_t c = tn_get_i64(target, i), k = m->clusters;
        while (k > 0 && c < m->cutoffs[k - 1]) k--;
        to[i] = k ? m->cutoffs[0] + k - 1 : c;
    }
    return t;
}

/* Sets *rows to the rows whose target is in cluster k and *classes to their class within it. False: none, or raised. */
static bool of_cluster(const tn_adaptive_softmax *m, const tn_tensor *target, int64_t k, tn_tensor **rows,
                       tn_tensor **classes)
{
    const int64_t low = m->cutoffs[k], high = m->cutoffs[k + 1], n = tn_numel(target);
    int64_t       count = 0, at = 0;
    for (int64_t i = 0; i < n; i++) count += tn_get_i64(target, i) >= low && tn_get_i64(target, i) < high;
    if (!count) return false;
    *rows = tn_empty_of(TN_I64, TN_SHAPE(count)), *classes = tn_empty_of(TN_I64, TN_SHAPE(count));
    int64_t *row = *rows ? tn_data_mut(*rows) : NULL, *class = *classes ? tn_data_mut(*classes) : NULL;
    for (int64_t i = 0; row && class && i < n; i++) {
        const int64_t c = tn_get_i64(target, i);
        if (c >= low && c < high) row[at] = i, class[at++] = c - low;
    }
    return tn_error() == TN_OK;
}

/* -log p of each target, [N]. */
static tn_tensor *losses(tn_adaptive_softmax *m, tn_tensor *x, const tn_tensor *target)
{
    tn_tensor *y = tn_cross_entropy(tn_call(m->head, x), head_target(m, target), .reduction = TN_NONE);
    tn_tensor *rows, *classes;
    for (int64_t k = 0; k < m->clusters && tn_error() == TN_OK; k++) {
        if (!of_cluster(m, target, k, &rows, &classes)) continue;
        tn_tensor *scores = tn_module_call(tn_at(m->tail, k), tn_index_select(x, 0, rows));
        y = tn_index_add(y, 0, rows, tn_cross_entropy(scores, classes, .reduction = TN_NONE));
    }
    return y;
}

tn_tensor *tn_adaptive_softmax_forward(tn_adaptive_softmax *m, tn_tensor *x, tn_tensor *target, tn_tensor **output)
{
    tn_tensor *loss = NULL, *each = NULL;
    if (output) *output = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (input_fits(m, x) && target_fits(m, x, target)) {
        each = losses(m, tn_reshape(x, TN_SHAPE(-1, m->in)), target);
        loss = tn_mean(each);
        if (output) each = tn_reshape(tn_neg(each), tn_shape_of(target));
    }
    if (!output) return tn_leave(f, loss);
    tn_leave_n(f, &loss, &each);
    *output = each;
    return loss;
}

tn_tensor *tn_adaptive_softmax_log_prob(tn_adaptive_softmax *m, tn_tensor *x)
{
    tn_tensor *part[TN_CUTOFFS + 1];
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (!input_fits(m, x)) return tn_leave(f, NULL);
    tn_tensor *head = tn_log_softmax(tn_call(m->head, x), -1);
    part[0] = tn_narrow(head, -1, 0, m->cutoffs[0]);
    for (int64_t k = 0; k < m->clusters && tn_error() == TN_OK; k++)
        part[k + 1] =
            tn_add(tn_log_softmax(tn_module_call(tn_at(m->tail, k), x), -1), tn_narrow(head, -1, m->cutoffs[0] + k, 1));
    return tn_leave(f, tn_error() == TN_OK ? tn_cat_list(-1, (int)m->clusters + 1, part) : NULL);
}
