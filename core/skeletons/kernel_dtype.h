/* kernel_dtype.h — the dtype in which a kernel receives its operands, by the rule in skeletons.h. */
#ifndef TENON_CORE_SKELETONS_KERNEL_DTYPE_H
#define TENON_CORE_SKELETONS_KERNEL_DTYPE_H

#include "core/skeletons/skeletons.h"

static inline tn_dtype tn__kernel_dtype(tn__list y, tn__list x)
{
    tn_dtype dt = TN_I64;
    for (int i = 0; i < y.n + x.n; i++) {
        const tn_tensor *t = i < y.n ? y.t[i] : x.t[i - y.n];
        if (!t || !tn__is_float(t->dtype)) continue;
        if (t->dtype == TN_F64) return TN_F64;
        dt = TN_F32;
    }
    return dt;
}
static inline tn_dtype tn__operand_dtype(tn_dtype kernel, tn_dtype operand)
{
    if (tn__is_float(operand) || operand == TN_BOOL) return kernel;
    return TN_I64;
}
/* True if a kernel of that dtype can run on t's own memory: dense, and of shape s, which has elements. One loop checks
 * both, because that is much of the time of an op of few elements. */
static inline bool tn__direct_operand(const tn_tensor *t, const tn_shape *s, tn_dtype kernel)
{
    if (t->dtype != kernel || t->l.shape.n != s->n) return false;
    int64_t step = 1;
    for (int i = s->n - 1; i >= 0; i--) {
        const int64_t size = s->d[i];
        if (t->l.shape.d[i] != size || (t->l.stride[i] != step && size != 1)) return false;
        step *= size;
    }
    return true;
}
static inline tn__kernel tn__pick(tn__kernel_set k, tn_dtype kernel)
{
    return kernel == TN_F32 ? k.f32 : kernel == TN_F64 ? k.f64 : k.i64;
}

#endif
