/* losses.c — shared code of the losses' rooms: options, reductions, and the rules for targets that are classes. */
#include "autograd/rooms/losses.h"

/* ---- losses of pairs of elements ---- */

static bool check_reduction(const char *op, tn_reduction r)
{
    if (r == TN_MEAN || r == TN_SUM || r == TN_NONE) return true;
    return tn_raise_false(TN_EINVAL, "%s: reduction %d is not TN_MEAN, TN_SUM or TN_NONE", op, (int)r);
}

bool tn__loss_options(const char *op, const tn_loss_args *a, unsigned has)
{
    const char *missing = NULL;
    if (tn__blocked() || !check_reduction(op, a->reduction)) return false;
    if ((a->weight || a->pos_weight) && !(has & TN__LOSS_WEIGHTS)) missing = "weights";
    if (a->delta != (tn_loss_args){TN_LOSS_ARGS_DEFAULTS}.delta && !(has & TN__LOSS_DELTA)) missing = ".delta";
    if (a->log_target && !(has & TN__LOSS_LOG_TARGET)) missing = ".log_target";
    if (a->batchmean && !(has & TN__LOSS_BATCHMEAN)) missing = ".batchmean";
    if (missing) return tn_raise_false(TN_EINVAL, "%s: has no %s", op, missing);
    if (a->batchmean && a->reduction != TN_MEAN)
        return tn_raise_false(TN_EINVAL, "%s: .batchmean is a mean; do not set .reduction", op);
    return true;
}

tn_tensor *tn__loss_reduced(tn_tensor *y, tn_reduction reduction)
{
    return !y || reduction == TN_NONE ? y : reduction == TN_SUM ? tn_sum(y) : tn_mean(y);
}

bool tn__loss_types(tn_tensor **a, tn_tensor **b)
{
    if (!*a || !*b) return true; /* the op raises the error */
    tn_dtype dt = tn__promote(*a, *b);
    if (!tn__is_float(dt)) dt = TN_F32;
    if ((*a)->dtype != dt) *a = tn_to(*a, dt);
    if ((*b)->dtype != dt) *b = tn_to(*b, dt);
    return *a && *b;
}

bool tn__infer_pairs(tn_ctx *c)
{
    const tn_shape x = c->in[0]->l.shape, t = c->in[1]->l.shape;
    char           a[192], b[192];
    if (!tn__need_real(c, 0) || !tn__need_real(c, 1)) return false;
    if (tn_shape_equal(x, t)) return tn__infer_binary(c);
    return tn_infer_fail(c, TN_ESHAPE,
                         "input %s and target %s must have the same shape; tn_reshape or tn_expand one of them",
                         tn_shape_text(x, a, sizeof a), tn_shape_text(t, b, sizeof b));
}

/* ---- losses over classes ---- */

static bool check_weight(const tn_ctx *c, int64_t classes)
{
    const tn_tensor *w = c->in[TN__CLASS_WEIGHT];
    char             text[192];
    if (!w) return true;
    if (!tn__need_real(c, TN__CLASS_WEIGHT)) return false;
    if (w->l.shape.n != 1 || w->l.shape.d[0] != classes)
        return tn_infer_fail(c, TN_ESHAPE, "weight is %s, but must be [%lld]: one value for each class",
                             tn_shape_text(w->l.shape, text, sizeof text), (long long)classes);
    if (tn_needs_grad(w) && tn_grad_enabled())
        return tn_infer_fail(c, TN_EUNSUPPORTED,
                             "weight requires grad, but has no gradient here; pass tn_detach(weight)");
    return true;
}

bool tn__check_targets(const tn_ctx *c, const tn_tensor *t, int64_t classes, int64_t ignore)
{
    const int64_t n = tn_numel(t);
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = tn_get_i64(t, i);
        if ((v >= 0 && v < classes) || v == ignore) continue;
        tn_shape at = {.n = t->l.shape.n};
        int64_t  rest = i;
        for (int d = at.n - 1; d >= 0; d--) at.d[d] = rest % t->l.shape.d[d], rest /= t->l.shape.d[d];
        char where[192] = "", range[48];
        if (at.n) tn_shape_text(at, where, sizeof where);
        snprintf(range, sizeof range, "0…%lld", (long long)classes - 1);
        return tn_infer_fail(c, TN_EINDEX, "target %lld%s%s is outside %s and is not ignore_index %lld", (long long)v,
                             at.n ? " at " : "", where, range, (long long)ignore);
    }
    return true;
}

/* The dim of the classes with which a target of shape t, one class per element, fits logits of shape x; -1: none. */
static int fitting_dim(tn_shape x, tn_shape t)
{
    if (t.n != x.n - 1) return -1;
    for (int dim = 1; dim < x.n; dim++) {
        bool fits = true;
        for (int i = 0; i < t.n; i++) fits &= t.d[i] == x.d[i < dim ? i : i + 1];
        if (fits) return dim;
    }
    return -1;
}

static bool fail_target(tn_ctx *c, const tn_tensor *t, tn_shape x, tn_shape expected, int dim)
{
    char       tx[192], tt[192], tr[192], hint[96] = "";
    const bool floating = tn__is_float(t->dtype);
    const int  fits = floating ? -1 : fitting_dim(x, t->l.shape);
    if (fits >= 0) snprintf(hint, sizeof hint, "; if the classes are in dim %d, set .class_dim = %d", fits, fits);
    return tn_infer_fail(c, TN_ESHAPE, "the target is %s %s, but for %lld classes in dim %d of %s it must be %s%s%s",
                         tn_dtype_name(t->dtype), tn_shape_text(t->l.shape, tt, sizeof tt), (long long)x.d[dim], dim,
                         tn_shape_text(x, tx, sizeof tx), tn_shape_text(expected, tr, sizeof tr),
                         floating ? ", one probability for each class" : "", hint);
}

bool tn__infer_classes(tn_ctx *c, bool probabilities)
{
    const tn__class_args *a = c->args;
    const tn_tensor      *x = c->in[TN__CLASS_X], *t = c->in[TN__CLASS_TARGET];
    tn_shape              rows = x->l.shape;
    int                   dim = a->dim;
    if (!tn__need_real(c, TN__CLASS_X) || !check_reduction(c->op->name, a->reduction)) return false;
    if (rows.n == 0) return tn_infer_fail(c, TN_ESHAPE, "a 0-d tensor has no dim of classes");
    if (!tn__wrap_dim(c->op->name, &dim, rows.n)) return false;
    const int64_t classes = rows.d[dim];
    for (int i = dim; i < rows.n - 1; i++) rows.d[i] = rows.d[i + 1];
    rows.n--;
    c->result[0].dtype = x->dtype;
    c->result[0].shape = a->reduction == TN_NONE ? rows : (tn_shape){.n = 0};
    c->result[c->nout - 2] = (tn_result){tn__wide(x->dtype), {.n = 0}};
    c->result[c->nout - 1] = (tn_result){TN_I64, {.n = 0}};
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return tn_infer_fail(c, TN_EINVAL, "label_smoothing is %g, but must be from 0 to 1", a->smoothing);
    if (!check_weight(c, classes)) return false;

    const bool floating = tn__is_float(t->dtype);
    if (floating && !probabilities)
        return tn_infer_fail(c, TN_EDTYPE, "the target must be i64 or i32 (class indices); got %s",
                             tn_dtype_name(t->dtype));
    if (!floating && t->dtype != TN_I64 && t->dtype != TN_I32)
        return tn_infer_fail(c, TN_EDTYPE, "the target must be i64 or i32 (class indices)%s; got %s",
                             probabilities ? " or floating (class probabilities)" : "", tn_dtype_name(t->dtype));
    const tn_shape expected = floating ? x->l.shape : rows;
    if (!tn_shape_equal(t->l.shape, expected)) return fail_target(c, t, x->l.shape, expected, dim);
    return floating || tn__check_targets(c, t, classes, a->ignore);
}

tn_tensor *tn__class_loss(const tn_op *op, tn__class_args k, tn_cross_entropy_args a, int results)
{
    tn_tensor *out[4] = {NULL};
    k.ignore = a.ignore_index;
    k.reduction = a.reduction;
    k.dim = a.class_dim;
    tn_op_call(op, TN__CLASS_INPUTS, (tn_tensor *[]){a.logits, a.target, a.weight}, results, out, &k);
    if (a.counted && out[0]) *a.counted = tn_get_i64(out[results - 1], 0);
    return out[0];
}

/* The target or a tensor of its shape, with a dim of size 1 in place of the classes. */
static tn_tensor column_of(const tn_tensor *t, tn_shape x, int dim)
{
    tn__layout l = t->l;
    if (dim < 0) dim += x.n;
    if (t->l.shape.n == x.n - 1 && x.n) {
        tn_shape s = t->l.shape;
        for (int i = s.n++; i > dim; i--) s.d[i] = s.d[i - 1];
        s.d[dim] = 1;
        tn__layout_reshape(&t->l, s, &l);
    }
    return tn__stack_view(t, &l);
}

/* The weights along the dim of the classes. */
static tn_tensor weights_of(const tn_tensor *w, tn_shape x, int dim)
{
    tn__layout l;
    if (dim < 0) dim += x.n;
    tn_shape s = {.n = x.n - dim, .d = {w->l.shape.d[0]}};
    for (int i = 1; i < s.n; i++) s.d[i] = 1;
    tn__layout_reshape(&w->l, s, &l);
    return tn__stack_view(w, &l);
}

void tn__class_view(tn__class_views *v, tn_tensor *const *in, tn_shape x, int dim, const tn_tensor *column)
{
    const tn_tensor *w = in[TN__CLASS_WEIGHT];
    v->view[0] = column_of(in[TN__CLASS_TARGET], x, dim), v->target = &v->view[0];
    if (w) v->view[1] = weights_of(w, x, dim);
    if (column) v->view[2] = column_of(column, x, dim);
    v->weight = w ? &v->view[1] : NULL, v->column = column ? &v->view[2] : NULL;
}

tn_tensor *tn__class_sums(tn__class_sum *s)
{
    s->storage = (tn__storage){.data = &s->sum};
    s->tensor = (tn_tensor){.dtype = TN_F64, .storage = &s->storage, .l = {.shape = {.n = 1, .d = {3}}, .stride = {1}}};
    return &s->tensor;
}

void tn__class_results(const tn__class_sum *s, tn_reduction r, tn_tensor *loss, tn_tensor *weight, tn_tensor *count)
{
    /* If all targets are ignored or of weight 0, the mean is 0. */
    const double mean = s->weight != 0 ? s->sum / s->weight : 0;
    if (r != TN_NONE) tn__store(tn__ptr(loss), loss->dtype, r == TN_MEAN ? mean : s->sum);
    tn__store(tn__ptr(weight), weight->dtype, s->weight);
    tn__store(tn__ptr(count), count->dtype, s->count);
}
