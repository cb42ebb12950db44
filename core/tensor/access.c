/* access.c — properties of a tensor, and access to single elements. Readers work while an error is set; writers do not,
 * and call tn__writable. */
#include "core/base/checks.h"
#include "core/tensor/convert.h"
#include "core/tensor/tensor.h"

#include <math.h>

tn_dtype tn_dtype_of(const tn_tensor *t) { return tn__alive("tn_dtype_of", t) ? t->dtype : TN_F32; }
tn_shape tn_shape_of(const tn_tensor *t) { return tn__alive("tn_shape_of", t) ? t->l.shape : (tn_shape){.n = 0}; }
int      tn_ndim(const tn_tensor *t) { return tn__alive("tn_ndim", t) ? t->l.shape.n : 0; }
int64_t  tn_numel(const tn_tensor *t) { return tn__alive("tn_numel", t) ? tn_shape_numel(t->l.shape) : 0; }
bool tn_is_contiguous(const tn_tensor *t) { return tn__alive("tn_is_contiguous", t) && tn__layout_contiguous(&t->l); }
bool tn_shares_memory(const tn_tensor *a, const tn_tensor *b)
{
    return tn__alive("tn_shares_memory", a) && tn__alive("tn_shares_memory", b) && a->storage == b->storage;
}

int64_t tn_size(const tn_tensor *t, int dim)
{
    if (!tn__alive("tn_size", t)) return -1;
    if (t->l.shape.n == 0) return tn_raise(TN_EINDEX, "tn_size: dim %d of a 0-d tensor, which has none", dim), -1;
    return tn__wrap_dim("tn_size", &dim, t->l.shape.n) ? t->l.shape.d[dim] : -1;
}

tn_shape tn_strides_of(const tn_tensor *t)
{
    tn_shape s = {.n = 0};
    if (tn__alive("tn_strides_of", t)) s.n = t->l.shape.n;
    for (int i = 0; i < s.n; i++) s.d[i] = t->l.stride[i];
    return s;
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

const char *tn_name_of(const tn_tensor *t) { return tn__alive("tn_name_of", t) && t->name ? t->name : ""; }

tn_tensor *tn_set_name(tn_tensor *t, const char *name)
{
    if (tn__blocked() || !tn__alive("tn_set_name", t)) return NULL;
    char *copy = NULL;
    if (name && *name && !(copy = tn__strdup(name))) return NULL;
    tn__strfree(t->name);
    t->name = copy;
    return t;
}

/* ---- locating an element ----------------------------------------------------------------------------------------- */

static void *at_offset(const tn_tensor *t, int64_t offset)
{
    return (char *)tn__ptr(t) + offset * (int64_t)tn__dtype_bytes(t->dtype);
}

/* Pointer to the element at a position; NULL and raised if out of range. */
static void *at_position(const char *who, const tn_tensor *t, int64_t position)
{
    const int64_t n = tn_shape_numel(t->l.shape);
    if (position < 0 || position >= n) {
        char text[192];
        return tn_raise_null(TN_EINDEX, "%s: position %lld is out of range for shape %s, which has %lld element%s", who,
                             (long long)position, tn_shape_text(t->l.shape, text, sizeof text), (long long)n,
                             n == 1 ? "" : "s");
    }
    int64_t offset = 0;
    for (int i = t->l.shape.n - 1; i >= 0 && position; i--) {
        offset += position % t->l.shape.d[i] * t->l.stride[i];
        position /= t->l.shape.d[i];
    }
    return at_offset(t, offset);
}

/* Pointer to the element at an index, whose negative entries count from the end; NULL and raised if out of range. */
static void *at_index(const char *who, const tn_tensor *t, tn_shape index)
{
    char    text[192], shape[192];
    int64_t offset = 0;
    if (index.n != t->l.shape.n)
        return tn_raise_null(TN_EINDEX, "%s: an index of %d entries for a %d-d tensor of shape %s", who, index.n,
                             t->l.shape.n, tn_shape_text(t->l.shape, shape, sizeof shape));
    for (int i = 0; i < index.n; i++) {
        const int64_t d = t->l.shape.d[i], k = index.d[i] < 0 ? index.d[i] + d : index.d[i];
        if (k < 0 || k >= d)
            return tn_raise_null(TN_EINDEX, "%s: index %s is out of range for shape %s in dim %d", who,
                                 tn_shape_text(index, text, sizeof text),
                                 tn_shape_text(t->l.shape, shape, sizeof shape), i);
        offset += k * t->l.stride[i];
    }
    return at_offset(t, offset);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static bool readable(const char *who, const tn_tensor *t) { return tn__alive(who, t) && !tn__unreplayable(who); }

const void *tn_data(const tn_tensor *t) { return readable("tn_data", t) ? tn__ptr(t) : NULL; }

double tn_item(const tn_tensor *t)
{
    if (!readable("tn_item", t)) return NAN;
    const int64_t n = tn_shape_numel(t->l.shape);
    if (n == 1) return tn__load(tn__ptr(t), t->dtype);
    char text[192];
    tn_raise(TN_EINVAL, "tn_item: shape %s has %lld elements, but must have exactly one; tn_get reads any element",
             tn_shape_text(t->l.shape, text, sizeof text), (long long)n);
    return NAN;
}

double tn_get(const tn_tensor *t, int64_t position)
{
    const void *p = readable("tn_get", t) ? at_position("tn_get", t, position) : NULL;
    return p ? tn__load(p, t->dtype) : NAN;
}

double tn_get_at(const tn_tensor *t, tn_shape index)
{
    const void *p = readable("tn_get_at", t) ? at_index("tn_get_at", t, index) : NULL;
    return p ? tn__load(p, t->dtype) : NAN;
}

int64_t tn_get_i64(const tn_tensor *t, int64_t position)
{
    const void *p = readable("tn_get_i64", t) ? at_position("tn_get_i64", t, position) : NULL;
    return p ? tn__load_i64(p, t->dtype) : 0;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

bool tn__given(const char *who, const char *what, const tn_tensor *t)
{
    if (t && !tn__object_freed(&t->object)) return true;
    if (t) tn__object_misused(who, what);
    else tn_raise(TN_EINVAL, "%s: %s is NULL", who, what);
    return false;
}

bool tn__writable(const char *who, const tn_tensor *t)
{
    if (!tn__given(who, "t", t)) return false;
    const char *open = t->name ? " (" : "", *name = t->name ? t->name : "", *close = t->name ? ")" : "";
    if (t->leaf && !tn__self.mode.no_grad)
        return tn_raise_false(
            TN_ESTATE, "%s: this tensor%s%s%s requires grad; change it inside tn_no_grad_begin() and tn_scope_end()",
            who, open, name, close);
    if ((t->node || t->unrecorded || tn__newer(t)) && !tn__self.mode.no_grad)
        return tn_raise_false(
            TN_ESTATE,
            "%s: this tensor%s%s%s is the result of a recorded op, and the tape would miss the change; use "
            "tn_copy_, or change it inside tn_no_grad_begin() and tn_scope_end()",
            who, open, name, close);
    if (tn__layout_contiguous(&t->l) || !tn__layout_repeats(&t->l)) return true;
    char shape[192], strides[192];
    return tn_raise_false(
        TN_EINVAL,
        "%s: this tensor%s%s%s has elements at several indices (shape %s, strides %s); write to the tensor "
        "that it is a view of, or to a contiguous copy",
        who, open, name, close, tn_shape_text(t->l.shape, shape, sizeof shape),
        tn_shape_text(tn_strides_of(t), strides, sizeof strides));
}

void *tn_data_mut(tn_tensor *t)
{
    if (tn__blocked() || !tn__writable("tn_data_mut", t)) return NULL;
    tn__written(t, "tn_data_mut");
    return tn__ptr(t);
}

/* place: the element; NULL if not found, which is already raised. */
static tn_status set(const char *who, tn_tensor *t, void *place, double value)
{
    if (!place || !tn__fits(who, "value", t->dtype, value)) return tn__self.error;
    tn__store(place, t->dtype, value);
    tn__written(t, who);
    return TN_OK;
}

tn_status tn_set(tn_tensor *t, int64_t position, double value)
{
    if (tn__blocked() || !tn__writable("tn_set", t)) return tn__self.error;
    return set("tn_set", t, at_position("tn_set", t, position), value);
}

tn_status tn_set_at(tn_tensor *t, tn_shape index, double value)
{
    if (tn__blocked() || !tn__writable("tn_set_at", t)) return tn__self.error;
    return set("tn_set_at", t, at_index("tn_set_at", t, index), value);
}

tn_status tn_set_i64(tn_tensor *t, int64_t position, int64_t value)
{
    if (tn__blocked() || !tn__writable("tn_set_i64", t)) return tn__self.error;
    void *p = at_position("tn_set_i64", t, position);
    if (!p || (t->dtype != TN_I64 && !tn__fits("tn_set_i64", "value", t->dtype, (double)value))) return tn__self.error;
    tn__store_i64(p, t->dtype, value);
    tn__written(t, "tn_set_i64");
    return TN_OK;
}
