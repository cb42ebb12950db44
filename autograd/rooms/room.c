/* room.c — shape rules and conversions shared by many rooms. */
#include "autograd/rooms/elementwise.h"

bool tn__need_real(const tn_ctx *c, int i)
{
    if (tn__is_float(c->in[i]->dtype)) return true;
    return tn_infer_fail(c, TN_EDTYPE, "needs a floating tensor, got %s; convert it with tn_to(x, TN_F32)",
                         tn_dtype_name(c->in[i]->dtype));
}

bool tn__need_weighted(const tn_ctx *c)
{
    const tn_tensor *x = c->in[0];
    if (!x || !c->in[1]) return tn_infer_fail(c, TN_EINVAL, "%s is NULL", x ? "weight" : "x");
    for (int i = 0; i < 3; i++) {
        if (!c->in[i]) continue;
        if (!tn__need_real(c, i)) return false;
        if (c->in[i]->dtype != x->dtype)
            return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: x is %s, %s %s", tn_dtype_name(x->dtype),
                                 i == 1 ? "weight" : "bias", tn_dtype_name(c->in[i]->dtype));
    }
    return true;
}

bool tn__need_index(const tn_ctx *c, int i)
{
    if (c->in[i]->dtype == TN_I64 || c->in[i]->dtype == TN_I32) return true;
    return tn_infer_fail(c, TN_EDTYPE, "indices must be i64 or i32, got %s", tn_dtype_name(c->in[i]->dtype));
}

bool tn__need_whole(const tn_ctx *c, int i, double k)
{
    const tn_dtype dt = c->in[i]->dtype;
    if (tn__is_float(dt)) return true;
    if (k != trunc(k)) /* also true for NaN */
        return tn_infer_fail(c, TN_EDTYPE, "x is %s and %g is not a whole number; convert x with tn_to(x, TN_F32)",
                             tn_dtype_name(dt), k);
    if (k >= -0x1p63 && k < 0x1p63) return true;
    return tn_infer_fail(c, TN_EDTYPE, "x is %s and %g does not fit in it; convert x with tn_to(x, TN_F64)",
                         tn_dtype_name(dt), k);
}

int64_t tn__find_i64(const tn_tensor *t, bool (*bad)(int64_t))
{
    for (int64_t i = 0, n = tn_numel(t); i < n; i++)
        if (bad(tn_get_i64(t, i))) return i;
    return -1;
}

const char *tn__position_text(tn_shape s, int64_t position, char *buf, size_t size)
{
    for (int i = s.n - 1; i >= 0; i--) {
        int64_t dim = s.d[i];
        s.d[i] = position % dim, position /= dim;
    }
    return tn_shape_text(s, buf, size);
}

bool tn__infer_same(tn_ctx *c) { return tn_infer_like(c, 0, 0); }
bool tn__infer_real(tn_ctx *c) { return tn__need_real(c, 0) && tn_infer_like(c, 0, 0); }
bool tn__infer_numbers(tn_ctx *c)
{
    if (c->in[0]->dtype == TN_BOOL)
        return tn_infer_fail(c, TN_EDTYPE, "does not support bool; convert it with tn_to(x, TN_I64)");
    return tn_infer_like(c, 0, 0);
}

bool tn__infer_scalar(tn_ctx *c)
{
    return tn__infer_numbers(c) && tn__need_whole(c, 0, ((const tn__scalar *)c->args)->k);
}
bool tn__infer_bool(tn_ctx *c)
{
    tn_infer_like(c, 0, 0);
    c->result[0].dtype = TN_BOOL;
    return true;
}

bool tn__infer_binary(tn_ctx *c)
{
    c->result[0].dtype = c->in[0]->dtype;
    if (c->in[0]->dtype != c->in[1]->dtype)
        return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: %s and %s", tn_dtype_name(c->in[0]->dtype),
                             tn_dtype_name(c->in[1]->dtype));
    return tn__broadcast(c->op->name, c->in[0]->l.shape, c->in[1]->l.shape, &c->result[0].shape);
}

bool tn__infer_compare(tn_ctx *c)
{
    if (!tn__infer_binary(c)) return false;
    c->result[0].dtype = TN_BOOL;
    return true;
}

bool tn__infer_view(tn_ctx *c, const tn__layout *y)
{
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape = y->shape;
    return true;
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

static int width(tn_dtype dt)
{
    static const int w[] = {
        [TN_BOOL] = 0, [TN_U8] = 1, [TN_I32] = 2, [TN_I64] = 3, [TN_BF16] = 4, [TN_F32] = 5, [TN_F64] = 6};
    return w[dt];
}
static int kind(tn_dtype dt) { return dt == TN_BOOL ? 0 : tn__is_float(dt) ? 2 : 1; }

tn_dtype tn__promote(const tn_tensor *a, const tn_tensor *b)
{
    if (a->dtype == b->dtype) return a->dtype;
    const bool a0 = a->l.shape.n == 0, b0 = b->l.shape.n == 0;
    if (a0 != b0) { /* the tensor with dims decides, unless the 0-d one has a higher kind (floating above integer) */
        const tn_tensor *dims = a0 ? b : a, *single = a0 ? a : b;
        if (kind(single->dtype) <= kind(dims->dtype)) return dims->dtype;
        if (single->dtype == TN_F64) return TN_F32; /* tn_scalar with integers */
        return single->dtype;
    }
    return width(a->dtype) > width(b->dtype) ? a->dtype : b->dtype;
}

static tn_tensor *converted(tn_tensor *x, tn_dtype dt) { return x->dtype == dt ? x : tn_to(x, dt); }

tn_tensor *tn__binary(const tn_op *op, tn_tensor *a, tn_tensor *b, bool real)
{
    if (a && b && (a->dtype != b->dtype || (real && !tn__is_float(a->dtype)))) {
        tn_dtype dt = tn__promote(a, b);
        if (real && !tn__is_float(dt)) dt = TN_F32;
        a = converted(a, dt), b = converted(b, dt);
    }
    return tn_apply(op, a, b);
}

tn_tensor *tn__binary_(const tn_op *op, tn_tensor *a, tn_tensor *b, bool real)
{
    if (a && b && !tn__self.error) {
        tn_dtype dt = tn__promote(a, b);
        if (real && !tn__is_float(dt)) dt = TN_F32;
        if (dt != a->dtype)
            return tn_raise_null(TN_EDTYPE, "%s_: the result is %s and cannot overwrite a tensor of %s", op->name,
                                 tn_dtype_name(dt), tn_dtype_name(a->dtype));
        b = converted(b, dt);
    }
    return tn_op_apply_(op, NULL, 2, (tn_tensor *[]){a, b});
}

void tn__promote_all(int n, tn_tensor **t)
{
    tn_tensor all = {.dtype = TN_F32};
    bool      same = true, any = false;
    for (int i = 0; i < n; i++) {
        if (!t[i]) continue;
        if (!any) all.dtype = t[i]->dtype, all.l.shape = t[i]->l.shape;
        same = same && t[i]->dtype == all.dtype;
        all.dtype = any ? tn__promote(&all, t[i]) : all.dtype;
        if (t[i]->l.shape.n) all.l.shape = t[i]->l.shape; /* 0-d only if all are 0-d */
        any = true;
    }
    if (tn__self.mode.autocast && (all.dtype == TN_F32 || all.dtype == TN_BF16)) same = tn__autocast_covers(n, t);
    for (int i = 0; i < n && !same; i++)
        if (t[i]) t[i] = converted(t[i], all.dtype);
}

const char *tn__describe(const tn_tensor *t, char *buf, size_t size)
{
    char shape[192];
    tn_shape_text(t->l.shape, shape, sizeof shape);
    if (t->name) snprintf(buf, size, "%.100s %s", t->name, shape);
    else snprintf(buf, size, "%s", shape);
    return buf;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

bool tn__reduce_options(const char *caller, const tn_reduce_args *a, bool var, bool norm)
{
    if (a->biased && !var) return tn_raise_false(TN_EINVAL, "%s: .biased is only for tn_var and tn_std", caller);
    if (a->p != 2 && a->p != 0 && !norm) return tn_raise_false(TN_EINVAL, "%s: .p is only for tn_norm", caller);
    return true;
}

bool tn__reduced_shape(const char *op, tn_shape x, tn_dims *dims, bool keepdim, tn_shape *to)
{
    if (!tn__wrap_dims(op, dims, x.n)) return false;
    *to = (tn_shape){.n = 0, .d = {0}};
    for (int i = 0, k = 0; i < x.n; i++) {
        bool gone = k < dims->n && dims->d[k] == i;
        if (gone) k++;
        if (gone && !keepdim) continue;
        to->d[to->n++] = gone ? 1 : x.d[i];
    }
    return true;
}

tn_tensor *tn__unreduced(tn_tensor *y, tn_shape x, tn_dims dims, bool keepdim)
{
    if (keepdim || x.n == 0 || !y) return y;
    tn_shape kept;
    if (!tn__reduced_shape("unreduced", x, &dims, true, &kept)) return NULL;
    return tn_reshape(y, kept);
}
