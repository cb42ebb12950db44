/* weight_check.c — the check that a weight and its gradient are as they were when the optimizer was created. */
#include "optim/step_private.h"

/* "f32 [2, 3]" */
static const char *type_text(tn_dtype dt, tn_shape s, char to[220])
{
    char shape[192];
    snprintf(to, 220, "%s %s", tn_dtype_name(dt), tn_shape_text(s, shape, sizeof shape));
    return to;
}

bool tn__weight_unchanged(const tn_optimizer *o, const tn__weight *w, const tn_tensor *g)
{
    char now[220], then[220];
    if (tn_dtype_of(w->t) == w->dtype && tn_shape_equal(tn_shape_of(w->t), w->shape) && tn_dtype_of(g) == w->dtype &&
        tn_shape_equal(tn_shape_of(g), w->shape) && tn_is_contiguous(g))
        return true;
    return tn_raise_false(
        TN_ESTATE, "tn_step: '%s' is %s now, but was %s in %s; create the optimizer after tn_module_to", w->name,
        type_text(tn_dtype_of(w->t), tn_shape_of(w->t), now), type_text(w->dtype, w->shape, then), o->kind->call);
}
