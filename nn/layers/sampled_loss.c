/* sampled_loss.c — noise-contrastive estimation and negative sampling: losses computed from a few sampled classes.
 *
 *   q(w) = counts(w)^power / Σ,   s(w) = x · W_w + b_w, for NCE minus log(k q(w))
 *   loss = softplus(-s(target)) + Σ over k samples from q of softplus(s(w))
 *
 * If all rows share one set of samples, their logits are one matrix product. A sample may equal the target; it is then
 * counted like any other, as the theory requires. */
#include "nn/base/nn_private.h"

#include <math.h>

static const tn_class nce = {.size = sizeof(tn_class), .name = "NCELoss", .bytes = sizeof(tn_sampled_loss)};
static const tn_class negative = {
    .size = sizeof(tn_class), .name = "NegativeSamplingLoss", .bytes = sizeof(tn_sampled_loss)};

static tn_sampled_loss *create(const char *who, const tn_class *kind, tn_sampled_loss_config c)
{
    char   text[192];
    double sum = 0;
    if (!c.counts || tn_ndim(c.counts) != 1 || tn_numel(c.counts) < 1)
        return tn_raise_null(TN_ESHAPE, "%s: .counts must be [classes], got %s", who,
                             c.counts ? tn_shape_text(tn_shape_of(c.counts), text, sizeof text) : "NULL");
    if (!tn__at_least(who, "samples", c.samples, 1)) return NULL;
    if (!isfinite(c.power)) return tn_raise_null(TN_EINVAL, "%s: .power is %g, but must be finite", who, c.power);
    if ((unsigned)c.reduction > TN_NONE)
        return tn_raise_null(TN_EINVAL, "%s: .reduction is %d, but must be TN_MEAN, TN_SUM or TN_NONE", who,
                             c.reduction);
    tn_sampled_loss *m = tn_module_create(kind);
    if (!m) return NULL;
    m->classes = tn_numel(c.counts), m->samples = c.samples, m->reduction = c.reduction;
    m->cumulative = tn_array(m, m->classes, double), m->probability = tn_array(m, m->classes, double);
    for (int64_t i = 0; m->cumulative && m->probability && i < m->classes; i++) {
        const double n = tn_get(c.counts, i);
        if (!(n >= 0) || n > 1e300)
            return tn_raise(TN_EINVAL, "%s: .counts[%lld] is %g, but must not be negative, nor above 1e300", who,
                            (long long)i, n),
                   tn_built(m);
        sum += m->probability[i] = n > 0 ? tn__libm_pow(n, c.power) : 0;
        m->cumulative[i] = sum;
    }
    if (tn_error() == TN_OK && !isfinite(sum))
        tn_raise(TN_EINVAL, "%s: .counts to the .power %g overflow", who, c.power);
    if (tn_error() == TN_OK && !(sum > 0))
        tn_raise(TN_EINVAL, "%s: .counts are all 0, so no class can be sampled", who);
    for (int64_t i = 0; tn_error() == TN_OK && i < m->classes; i++) m->probability[i] /= sum;
    return tn_built(m);
}

tn_sampled_loss *tn_nce_loss_create(tn_sampled_loss_config c) { return create("tn_nce_loss_new", &nce, c); }
tn_sampled_loss *tn_negative_sampling_loss_create(tn_sampled_loss_config c)
{
    return create("tn_negative_sampling_loss_new", &negative, c);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static tn_tensor *drawn(const tn_sampled_loss *m)
{
    tn_tensor   *t = tn_empty_of(TN_I64, TN_SHAPE(m->samples));
    int64_t     *to = t ? tn_data_mut(t) : NULL;
    const double all = m->cumulative[m->classes - 1];
    for (int64_t i = 0; to && i < m->samples; i++) {
        const double u = tn_random_double(tn_current_generator()) * all;
        int64_t      low = 0, high = m->classes - 1; /* search the first class whose cumulative sum is above u */
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (m->cumulative[middle] > u) high = middle;
            else low = middle + 1;
        }
        to[i] = low;
    }
    return t;
}

/* For these classes b_w, for NCE minus log(k q(w)); NULL if there is nothing to add. */
static tn_tensor *offsets(const tn_sampled_loss *m, tn_tensor *bias, tn_tensor *classes, tn_dtype dt)
{
    tn_tensor *y =
        bias ? tn_reshape(tn_index_select(bias, 0, tn_reshape(classes, TN_SHAPE(-1))), tn_shape_of(classes)) : NULL;
    if (m->base.kind != &nce) return y;
    tn_tensor   *noise = tn_empty_of(TN_F64, tn_shape_of(classes));
    double      *to = noise ? tn_data_mut(noise) : NULL;
    const double k = (double)m->samples;
    for (int64_t i = 0; to && i < tn_numel(classes); i++)
        to[i] = -tn__libm_log(fmax(k * m->probability[tn_get_i64(classes, i)], 1e-30)); /* a class with count 0 */
    noise = tn_to(noise, dt);
    return y ? tn_add(y, noise) : noise;
}

static bool classes_fit(const tn_sampled_loss *m, const char *name, const tn_tensor *t)
{
    for (int64_t i = 0; i < tn_numel(t); i++)
        if (tn_get_i64(t, i) < 0 || tn_get_i64(t, i) >= m->classes)
            return tn_raise_false(TN_EINDEX, "sampled_loss: %s [%lld] is %lld, outside 0 to %lld", name, (long long)i,
                                  (long long)tn_get_i64(t, i), (long long)m->classes - 1);
    return true;
}

static bool is_index(const tn_tensor *t) { return t && (tn_dtype_of(t) == TN_I64 || tn_dtype_of(t) == TN_I32); }

static bool fits(const tn_sampled_loss *m, const tn_sampled_loss_args *a)
{
    char a_[192], b_[192];
    if (!a->x || !a->weight || tn_ndim(a->x) != 2 || tn_ndim(a->weight) != 2 || tn_size(a->weight, 0) != m->classes ||
        tn_size(a->weight, 1) != tn_size(a->x, 1))
        return tn_raise_false(TN_ESHAPE, "sampled_loss: x must be [N, in] and weight [%lld, in], got %s and %s",
                              (long long)m->classes, a->x ? tn_shape_text(tn_shape_of(a->x), a_, sizeof a_) : "NULL",
                              a->weight ? tn_shape_text(tn_shape_of(a->weight), b_, sizeof b_) : "NULL");
    const int64_t n = tn_size(a->x, 0);
    if (!is_index(a->target) || tn_ndim(a->target) != 1 || tn_numel(a->target) != n)
        return tn_raise_false(TN_ESHAPE, "sampled_loss: target must be i64 [%lld], a class for each row of x",
                              (long long)n);
    if (a->bias && (tn_ndim(a->bias) != 1 || tn_numel(a->bias) != m->classes))
        return tn_raise_false(TN_ESHAPE, "sampled_loss: bias must be [%lld]", (long long)m->classes);
    if (a->noise && (!is_index(a->noise) || tn_ndim(a->noise) < 1 || tn_ndim(a->noise) > 2 ||
                     (tn_ndim(a->noise) == 2 && tn_size(a->noise, 0) != n) || tn_size(a->noise, -1) != m->samples))
        return tn_raise_false(TN_ESHAPE, "sampled_loss: noise must be i64 [%lld] or [%lld, %lld]: .samples classes",
                              (long long)m->samples, (long long)n, (long long)m->samples);
    return classes_fit(m, "target", a->target) && (!a->noise || classes_fit(m, "noise", a->noise));
}

static tn_tensor *plus(tn_tensor *x, tn_tensor *y) { return y ? tn_add(x, y) : x; }

tn_tensor *tn_sampled_loss_run(tn_sampled_loss *m, tn_sampled_loss_args a)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (!fits(m, &a)) return tn_leave(f, NULL);
    const tn_dtype dt = tn_dtype_of(a.x);
    tn_tensor     *noise = a.noise ? a.noise : drawn(m);
    tn_tensor     *target_logit = tn_sum(tn_mul(a.x, tn_embedding(a.weight, a.target, -1, false)), .dims = TN_DIMS(1)),
              *noise_logits;
    target_logit = plus(target_logit, offsets(m, a.bias, a.target, dt));
    tn_tensor *rows = tn_embedding(a.weight, noise, -1, false); /* [k, in] or [N, k, in] */
    if (rows && tn_ndim(rows) == 2) noise_logits = tn_linear(a.x, rows, NULL);
    else noise_logits = tn_squeeze(tn_matmul(rows, tn_unsqueeze(a.x, -1)), -1);
    noise_logits = plus(noise_logits, offsets(m, a.bias, noise, dt)); /* [N, k] */
    tn_tensor *y =
        tn_add(tn_softplus(tn_neg(target_logit), 1), tn_sum(tn_softplus(noise_logits, 1), .dims = TN_DIMS(1)));
    return tn_leave(f, m->reduction == TN_MEAN ? tn_mean(y) : m->reduction == TN_SUM ? tn_sum(y) : y);
}
