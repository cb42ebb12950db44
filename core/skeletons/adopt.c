/* adopt.c — tn_adopt, which replaces a tensor in place; and conversion of a gradient kept as rows of a table to a dense
 * one. They are here, above tensor/, because the conversion is a sum by index. */
#include "core/skeletons/skeletons.h"

bool tn__rows_fit(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *rows)
{
    const int64_t   n = rows->l.shape.d[0];
    const tn_shape *s = &leaf->l.shape;
    if (leaf->dtype == grad->dtype && s->n == 2 && s->d[1] == grad->l.shape.d[1] &&
        (!n || ((const int64_t *)tn__ptr(rows))[n - 1] < s->d[0]))
        return true;
    return tn_raise_false(TN_ESTATE,
                          "backward: tn_adopt replaced a table while its gradient was collected; call it before the "
                          "forward pass or after the backward");
}

bool tn__rows_to_dense(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows)
{
    if (!*rows) return true;
    if (!tn__rows_fit(leaf, *grad, *rows)) return false;
    tn_tensor *all = tn__new_owned((*grad)->dtype, leaf->l.shape);
    if (!all) return false;
    tn__fill(all, 0);
    tn__add_rows(all, 0, *rows, *grad, -1);
    tn_drop(*grad), tn_drop(*rows);
    *grad = all, *rows = NULL;
    return true;
}

/* The tape records leaves by their storage's version: the new storage gets a version that the tape has not seen. */
tn_status tn_adopt(tn_tensor *t, const tn_tensor *src)
{
    if (tn__blocked()) return tn__self.error;
    if (!tn__given("tn_adopt", "t", t) || !tn__given("tn_adopt", "src", src)) return tn__self.error;
    const bool made = t->node || tn__newer(t);
    if (made || src->node || tn__newer(src))
        return tn_raise(TN_ESTATE, "tn_adopt: %s is the result of a recorded op; tn_detach it first",
                        made ? "t" : "src");
    if (t->leaf && !tn__is_float(src->dtype))
        return tn_raise(TN_EDTYPE, "tn_adopt: t requires grad and cannot become a tensor of dtype %s",
                        tn_dtype_name(src->dtype));
    if (t->rows && (t->dtype != src->dtype || !tn_shape_equal(t->l.shape, src->l.shape)) &&
        !tn__rows_to_dense(t, &t->grad, &t->rows)) /* rows of the tensor that t was before */
        return tn__self.error;
    const uint32_t was = atomic_load_explicit(&t->storage->version, memory_order_relaxed);
    const uint32_t is = atomic_load_explicit(&src->storage->version, memory_order_relaxed);
    if (t->storage != src->storage) {
        tn__move(t, src);
        atomic_store_explicit(&t->storage->version, was > is ? was : is, memory_order_relaxed);
    }
    t->family = src->family, t->unrecorded = src->unrecorded, t->version = is;
    t->dtype = src->dtype, t->l = src->l;
    tn__written(t, "tn_adopt");
    return TN_OK;
}
