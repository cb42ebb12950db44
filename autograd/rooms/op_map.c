/* op_map.c — tn_op_map: the skeleton for custom ops that compute element by element. */
#include "autograd/op.h"
#include "core/skeletons/skeletons.h"

/* True if operand i, t, has or broadcasts to the shape of result 0. An absent input fits; the kernel
 * receives NULL for it. */
static bool fits(const tn_tensor *t, const tn_tensor *y0, int i, int ny)
{
    char a[192], b[192];
    if (i < ny ? t && tn_shape_equal(t->l.shape, y0->l.shape) : !t || tn__broadcastable(t->l.shape, y0->l.shape))
        return true;
    return tn_raise_false(t ? TN_ESHAPE : TN_EINVAL, "tn_op_map: %s %d is %s and does not fit result 0, %s",
                          i < ny ? "result" : "input", i < ny ? i : i - ny,
                          t ? tn_shape_text(t->l.shape, a, sizeof a) : "NULL",
                          y0 ? tn_shape_text(y0->l.shape, b, sizeof b) : "NULL");
}

void tn_op_map(tn_map_kernel f32, tn_map_kernel f64, int ny, tn_tensor *const *y, int nx, tn_tensor *const *x,
               const void *args)
{
    tn_dtype kt = TN_I64;
    if (tn__blocked()) return;
    if (ny < 1 || nx < 0 || ny > TN__MAX_OPERANDS || nx > TN__MAX_OPERANDS - ny || !y || (nx && !x)) {
        tn_raise(TN_EINVAL, "tn_op_map: takes 1 or more results and %d operands in all, got %d results and %d inputs%s",
                 TN__MAX_OPERANDS, ny, nx, y && (x || !nx) ? "" : ", and a list is NULL");
        return;
    }
    for (int i = 0; i < ny + nx; i++) {
        tn_tensor *t = i < ny ? y[i] : x[i - ny];
        if (!fits(t, y[0], i, ny)) return;
        if (t && tn__is_float(t->dtype) && kt != TN_F64) kt = t->dtype == TN_F64 ? TN_F64 : TN_F32;
    }
    if (kt == TN_F32 ? !f32 : kt == TN_F64 ? !f64 : true)
        tn_raise(TN_EDTYPE, "tn_op_map: no kernel for %s; reject it in the op's infer",
                 kt == TN_I64 ? "integers alone" : tn_dtype_name(kt));
    else tn__map((tn__kernel_set){f32, f64, NULL}, (tn__list){ny, y}, (tn__list){nx, x}, args);
}
