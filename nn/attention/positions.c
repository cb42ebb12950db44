/* positions.c — adds an encoding of the position to each vector: sinusoids (Vaswani et al. 2017) or a learned table. */
#include "nn/attention/checks.h"
#include "nn/base/nn_private.h"

#include <math.h>

tn_tensor *tn_positions_forward(tn_positions *m, tn_tensor *x, int64_t start)
{
    if (!tn_ready(m)) return NULL;
    tn_frame       f = tn_enter(m);
    const tn_shape s = tn_shape_of(x);
    const int      time = s.n == 3 && !m->time_first ? 1 : 0; /* x may also be one sequence, [T, dim] */
    if (!x || s.n < 2 || s.n > 3 || s.d[s.n - 1] != m->dim)
        return tn__unexpected("positions", x, false, "the input must be %s with dim = %lld",
                              m->time_first ? "[T, B, dim]" : "[B, T, dim]", (long long)m->dim),
               tn_leave(f, NULL);
    if (start < 0 || s.d[time] > m->length || start > m->length - s.d[time])
        return tn_raise(TN_ESHAPE,
                        "positions: %lld steps from position %lld exceed the %lld positions of the module (.length)",
                        (long long)s.d[time], (long long)start, (long long)m->length),
               tn_leave(f, NULL);
    tn_tensor *p = tn_narrow(m->weight, 0, start, s.d[time]); /* [T, dim] */
    if (!tn_needs_grad(m->weight) && tn_dtype_of(p) != tn_dtype_of(x)) p = tn_to(p, tn_dtype_of(x));
    tn_tensor *y = tn_add(x, s.n == 3 && m->time_first ? tn_unsqueeze(p, 1) : p);
    return tn_leave(f, m->base.training && m->dropout > 0 ? tn_dropout(y, m->dropout) : y);
}

static tn_tensor *positions_forward(void *m, tn_tensor *x) { return tn_positions_forward(m, x, 0); }

static void positions_describe(const void *self, char *text, size_t size)
{
    const tn_positions *m = self;
    snprintf(text, size, "%lld, %lld, dropout=%s", (long long)m->length, (long long)m->dim,
             tn__format_python(m->dropout));
}

static const tn_class sinusoidal = {.size = sizeof(tn_class),
                                    .name = "SinusoidalPositions",
                                    .bytes = sizeof(tn_positions),
                                    .forward = positions_forward,
                                    .describe = positions_describe};
static const tn_class learned = {.size = sizeof(tn_class),
                                 .name = "LearnedPositions",
                                 .bytes = sizeof(tn_positions),
                                 .forward = positions_forward,
                                 .describe = positions_describe};

static tn_positions *positions_create(const char *who, const tn_class *kind, tn_positions_config c)
{
    if (!tn__at_least(who, "dim", c.dim, 1) || !tn__at_least(who, "length", c.length, 1) ||
        !tn__probability(who, "dropout", c.dropout) || !tn__floating(who, c.dtype))
        return NULL;
    tn_positions *m = tn_module_create(kind);
    if (!m) return NULL;
    m->dim = c.dim, m->length = c.length, m->dropout = c.dropout, m->time_first = c.time_first;
    return m;
}

/* Fills element i of all positions. */
static void put_sinusoid(tn_tensor *pe, const tn_positions_config *c, int64_t i)
{
    const bool    narrow = c->order == TN_SINUSOIDS_TENSOR2TENSOR, halves = c->order != TN_SINUSOIDS_IN_TURN;
    const int64_t half = (narrow ? c->dim : c->dim + 1) / 2; /* of an odd width one more sine, or a zero */
    const bool    cosine = halves ? i >= half : i % 2;
    const int64_t k = halves ? i - (cosine ? half : 0) : i / 2;
    if (k >= half && narrow) return;
    const double step = half > 1 ? tn__libm_log(10000) / (double)(half - 1) : 0;
    const double turn = narrow ? (double)(float)tn__libm_exp((double)((float)k * (float)-step))
                               : tn__libm_pow(10000, -(double)(2 * k) / (double)c->dim);
    for (int64_t t = 0; t < c->length; t++) {
        const double at = (double)(c->first + t), angle = narrow ? (double)((float)at * (float)turn) : at * turn;
        tn_set(pe, t * c->dim + i, cosine ? cos(angle) : sin(angle));
    }
}

tn_positions *tn_sinusoidal_positions_create(tn_positions_config c)
{
    static const char *const who = "tn_sinusoidal_positions_new";
    if (c.length == 0) c.length = 5000;
    if ((unsigned)c.order > TN_SINUSOIDS_TENSOR2TENSOR || c.first < 0 || c.first > INT32_MAX)
        return tn_raise_null(TN_EINVAL, "%s: .order is %d, .first %lld; expected a tn_sinusoids, and 0 to %d", who,
                             (int)c.order, (long long)c.first, INT32_MAX);
    tn_positions *m = positions_create(who, &sinusoidal, c);
    if (!m) return NULL;
    tn_tensor *pe = tn_zeros_of(c.dtype, TN_SHAPE(c.length, c.dim));
    for (int64_t i = 0; pe && i < c.dim; i++) put_sinusoid(pe, &c, i);
    m->weight = tn_buffer_unsaved(m, "pe", pe);
    return tn_built(m);
}

tn_positions *tn_learned_positions_create(tn_positions_config c)
{
    if (c.order || c.first)
        return tn_raise_null(TN_EINVAL, "tn_learned_positions_new: .order and .first are for sinusoidal positions");
    tn_positions *m = positions_create("tn_learned_positions_new", &learned, c);
    if (!m) return NULL;
    m->weight = tn_param(m, "weight", tn_normal_of(c.dtype, TN_SHAPE(c.length, c.dim), 0, 1));
    return tn_built(m);
}
