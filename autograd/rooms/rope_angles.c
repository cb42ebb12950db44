/* rope_angles.c — the angles by which tn_rope rotates: position · ω_i with ω_i = theta^(-2i / dim), and the scalings of
 * ω for sequences longer than those trained on. Computed in f64, each angle from its position alone.
 *
 *   linear    ω / factor
 *   dynamic   theta · (factor · n / trained - (factor - 1))^(dim / (dim - 2)) in place of theta, if n > trained, with n
 *             the number of positions
 *   llama3    ω where the wave is short, ω / factor where it is long, and a weighted mean of both in between:
 *             t ω + (1 - t) ω / factor with t = (trained · ω / 2π - low) / (high - low), clamped to [0, 1] */
#include "autograd/autograd.h"

#include <math.h>

static bool positive(const char *name, double v)
{
    if (v > 0 && v - v == 0) return true;
    return tn_raise_false(TN_EINVAL, "rope: .%s is %g, but must be more than 0", name, v);
}
static bool checked(const tn_rope_config *c)
{
    if (c->dim < 2 || c->dim % 2 || c->dim > 1 << 20)
        return tn_raise_false(TN_EINVAL, "rope: .dim is %lld, but must be even and at least 2", (long long)c->dim);
    if (!positive("theta", c->theta)) return false;
    if (c->scaling == TN_ROPE_PLAIN) {
        if (c->factor == 0 || c->factor == 1) return true;
        return tn_raise_false(TN_EINVAL, "rope: .factor is %g, but no .scaling is set; set .scaling or remove .factor",
                              c->factor);
    }
    if ((unsigned)c->scaling > TN_ROPE_LLAMA3)
        return tn_raise_false(TN_EINVAL, "rope: .scaling is %d, which is not a tn_rope_scaling", (int)c->scaling);
    if (!positive("factor", c->factor)) return false;
    if (c->scaling == TN_ROPE_LINEAR) return true;
    if (c->trained < 1)
        return tn_raise_false(TN_EINVAL,
                              "rope: .trained is %lld, but this scaling needs the number of positions in training",
                              (long long)c->trained);
    if (c->scaling == TN_ROPE_DYNAMIC && c->dim < 4)
        return tn_raise_false(TN_EINVAL, "rope: .dim is 2, but dynamic scaling needs at least 4");
    if (c->scaling == TN_ROPE_LLAMA3 && !(c->low > 0 && c->high > c->low))
        return tn_raise_false(TN_EINVAL, "rope: .low is %g and .high %g, but 0 < .low < .high must hold", c->low,
                              c->high);
    return true;
}

/* ω of pair i for n positions. */
static double frequency(const tn_rope_config *c, int64_t i, int64_t n)
{
    const double dim = (double)c->dim, pi = 3.14159265358979323846;
    double       theta = c->theta;
    if (c->scaling == TN_ROPE_DYNAMIC && n > c->trained)
        theta *= pow(c->factor * (double)n / (double)c->trained - (c->factor - 1), dim / (dim - 2));
    const double w = pow(theta, -2 * (double)i / dim);
    if (c->scaling == TN_ROPE_LINEAR) return w / c->factor;
    if (c->scaling != TN_ROPE_LLAMA3) return w;
    const double t = ((double)c->trained * w / (2 * pi) - c->low) / (c->high - c->low);
    return t >= 1 ? w : t <= 0 ? w / c->factor : t * w + (1 - t) * w / c->factor;
}

static void fill(const tn_rope_config *c, tn_tensor *to, int64_t count, const tn_tensor *positions, int64_t offset)
{
    const int64_t half = c->dim / 2;
    int64_t       n = positions ? 0 : offset + count;
    for (int64_t t = 0; positions && t < count; t++)
        if (tn_get_i64(positions, t) >= n) n = tn_get_i64(positions, t) + 1;
    double *const w = tn_mem_get((size_t)half * sizeof *w);
    float        *f32 = to && tn_dtype_of(to) == TN_F32 ? tn_data_mut(to) : NULL;
    double       *f64 = to && !f32 ? tn_data_mut(to) : NULL;
    for (int64_t i = 0; w && i < half; i++) w[i] = frequency(c, i, n);
    for (int64_t t = 0; w && to && tn_error() == TN_OK && t < count; t++)
        for (int64_t i = 0; i < half; i++) {
            const double  phi = (double)(positions ? tn_get_i64(positions, t) : offset + t) * w[i];
            const int64_t at = t * c->dim + i;
            if (f32) f32[at] = (float)cos(phi), f32[at + half] = (float)sin(phi);
            else f64[at] = cos(phi), f64[at + half] = sin(phi);
        }
    tn_mem_put(w, (size_t)half * sizeof *w);
}

tn_tensor *tn_rope_angles(tn_rope_config c, int64_t offset, int64_t length)
{
    if (tn_error() != TN_OK || !checked(&c)) return NULL;
    if (offset < 0 || length < 0 || length > INT64_MAX - offset)
        return tn_raise_null(
            TN_EINVAL, "rope: %lld positions from %lld on: neither may be negative, and the sum must fit in 64 bits",
            (long long)length, (long long)offset);
    tn_tensor *to = tn_empty_of(c.dtype == TN_F64 ? TN_F64 : TN_F32, TN_SHAPE(length, c.dim));
    if (to) fill(&c, to, length, NULL, offset);
    return tn_error() == TN_OK ? to : NULL;
}

tn_tensor *tn_rope_angles_at(tn_rope_config c, tn_tensor *positions)
{
    if (tn_error() != TN_OK || !checked(&c)) return NULL;
    const tn_dtype dt = tn_dtype_of(positions);
    tn_shape       s = tn_shape_of(positions);
    if (!positions || (dt != TN_I64 && dt != TN_I32) || s.n >= TN_MAX_DIMS)
        return tn_raise_null(TN_EDTYPE, "rope: positions must be i64 or i32, with fewer than %d dims", TN_MAX_DIMS);
    s.d[s.n++] = c.dim;
    tn_tensor *to = tn_empty_of(c.dtype == TN_F64 ? TN_F64 : TN_F32, s);
    if (to) fill(&c, to, tn_numel(positions), positions, 0);
    return tn_error() == TN_OK ? to : NULL;
}
