/* loss.c — losses as modules that store their options; each calls an op. */
#include "nn/base/nn_private.h"

#define CLASS(variable, Name) \
    static const tn_class variable = {.size = sizeof(tn_class), .name = Name, .bytes = sizeof(tn_loss)}
CLASS(cross_entropy, "CrossEntropyLoss");
CLASS(nll, "NLLLoss");
CLASS(mse, "MSELoss");
CLASS(l1, "L1Loss");
CLASS(huber, "HuberLoss");
CLASS(kl_div, "KLDivLoss");
CLASS(bce, "BCEWithLogitsLoss");
CLASS(cosine, "CosineEmbeddingLoss");

static tn_tensor *compute(const tn_loss *m, tn_tensor *x, tn_tensor *y)
{
    const tn_class             *k = m->base.kind;
    const tn_cross_entropy_args classes = {.logits = x,
                                           .target = y,
                                           .weight = m->weight,
                                           .ignore_index = m->ignore_index,
                                           .label_smoothing = m->label_smoothing,
                                           .reduction = m->reduction,
                                           .class_dim = m->class_dim};
    tn_loss_args                pair = {TN_LOSS_ARGS_DEFAULTS, .input = x, .target = y, .reduction = m->reduction};
    if (k == &cross_entropy) return tn_cross_entropy_run(classes);
    if (k == &nll) return tn_nll_loss_run(classes);
    if (k == &mse) return tn_mse_loss_run(pair);
    if (k == &l1) return tn_l1_loss_run(pair);
    if (k == &huber) return pair.delta = m->delta, tn_huber_loss_run(pair);
    if (k == &kl_div) return pair.log_target = m->log_target, pair.batchmean = m->batchmean, tn_kl_div_run(pair);
    if (k == &bce) return pair.weight = m->weight, pair.pos_weight = m->pos_weight, tn_bce_with_logits_run(pair);
    return tn_raise_null(TN_EUNSUPPORTED,
                         "tn_loss_forward: %s takes two inputs and a target; call tn_cosine_embedding_loss_forward",
                         k->name);
}

tn_tensor *tn_loss_forward(tn_loss *m, tn_tensor *input, tn_tensor *target)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, compute(m, input, target));
}

/* The cosine that PyTorch uses in this loss. It differs from cosine_similarity: 1e-12 is added to each squared
 * length. */
static tn_tensor *cosine_of(tn_tensor *x1, tn_tensor *x2)
{
    const tn_dims rows = TN_DIMS(-1);
    tn_tensor    *of = tn_sum(tn_mul(x1, x2), .dims = rows);
    tn_tensor    *n1 = tn_add_scalar(tn_sum(tn_square(x1), .dims = rows), 1e-12);
    tn_tensor    *n2 = tn_add_scalar(tn_sum(tn_square(x2), .dims = rows), 1e-12);
    return tn_div(of, tn_sqrt(tn_mul(n1, n2)));
}

/* 1 - cos(x1, x2) for a target of 1, max(0, cos(x1, x2) - margin) for -1. */
tn_tensor *tn_cosine_embedding_loss_forward(tn_loss *m, tn_tensor *x1, tn_tensor *x2, tn_tensor *target)
{
    char text[192], other[192];
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    if (x1 && x2 && !tn_shape_equal(tn_shape_of(x1), tn_shape_of(x2)))
        return tn_raise(TN_ESHAPE, "cosine_embedding_loss: x1 %s and x2 %s must have the same shape",
                        tn_shape_text(tn_shape_of(x1), text, sizeof text),
                        tn_shape_text(tn_shape_of(x2), other, sizeof other)),
               tn_leave(f, NULL);
    tn_tensor *c = cosine_of(x1, x2);
    if (c && (!target || !tn_shape_equal(tn_shape_of(target), tn_shape_of(c))))
        return tn_raise(TN_ESHAPE, "cosine_embedding_loss: target must be %s, 1 or -1 for each pair of rows",
                        tn_shape_text(tn_shape_of(c), text, sizeof text)),
               tn_leave(f, NULL);
    if (c && tn_item(tn_any(tn_ne(tn_square(tn_to(target, TN_F64)), tn_scalar_of(TN_F64, 1)))) != 0)
        return tn_raise(TN_EINVAL, "cosine_embedding_loss: targets must be 1 (similar rows) or -1"), tn_leave(f, NULL);
    tn_tensor *apart = tn_relu(tn_add_scalar(c, -m->margin));
    tn_tensor *y = tn_where(tn_gt(target, tn_scalar_of(TN_I64, 0)), tn_rsub_scalar(c, 1), apart);
    return tn_leave(f, m->reduction == TN_MEAN ? tn_mean(y) : m->reduction == TN_SUM ? tn_sum(y) : y);
}

/* ---- constructors ---------------------------------------------------------------------------------------------- */

static tn_loss *loss_create(const tn_class *kind, tn_reduction reduction)
{
    if ((unsigned)reduction > TN_NONE)
        return tn_raise_null(TN_EINVAL, "%s: .reduction is %d, but must be TN_MEAN, TN_SUM or TN_NONE", kind->name,
                             (int)reduction);
    tn_loss *m = tn_module_create(kind);
    if (m) m->reduction = reduction;
    return m;
}

/* Registers a copy, so that the caller keeps its tensor. */
static tn_tensor *copy_of(tn_loss *m, const char *name, const tn_tensor *given)
{
    tn_tensor *t = tn_empty_of(tn_dtype_of(given), tn_shape_of(given));
    if (t) tn_copy_from(t, given);
    return tn_buffer(m, name, t);
}

static tn_loss *over_classes(const tn_class *kind, tn_class_loss_config c)
{
    tn_loss *m = loss_create(kind, c.reduction);
    if (!m) return NULL;
    if (c.weight) m->weight = copy_of(m, "weight", c.weight);
    m->ignore_index = c.ignore_index, m->label_smoothing = c.label_smoothing, m->class_dim = c.class_dim;
    return tn_built(m);
}

tn_loss *tn_cross_entropy_loss_create(tn_class_loss_config c)
{
    if (!tn__probability("tn_cross_entropy_loss_new", "label_smoothing", c.label_smoothing)) return NULL;
    return over_classes(&cross_entropy, c);
}
tn_loss *tn_nll_loss_create(tn_class_loss_config c)
{
    if (c.label_smoothing != 0)
        return tn_raise_null(TN_EINVAL, "tn_nll_loss_new: .label_smoothing is only for tn_cross_entropy_loss_new");
    return over_classes(&nll, c);
}

static tn_loss *of_pairs(const char *who, const tn_class *kind, tn_pair_loss_config c)
{
    if ((c.delta != (tn_pair_loss_config){TN_PAIR_LOSS_DEFAULTS}.delta && kind != &huber) ||
        ((c.log_target || c.batchmean) && kind != &kl_div))
        return tn_raise_null(
            TN_EINVAL, "%s: .delta is only for the Huber loss, .log_target and .batchmean only for the KL divergence",
            who);
    if (c.batchmean && c.reduction != TN_MEAN)
        return tn_raise_null(TN_EINVAL, "%s: .batchmean needs .reduction = TN_MEAN, the default", who);
    tn_loss *m = loss_create(kind, c.reduction);
    if (!m) return NULL;
    m->delta = c.delta, m->log_target = c.log_target, m->batchmean = c.batchmean;
    return tn_built(m);
}

tn_loss *tn_mse_loss_create(tn_pair_loss_config c) { return of_pairs("tn_mse_loss_new", &mse, c); }
tn_loss *tn_l1_loss_create(tn_pair_loss_config c) { return of_pairs("tn_l1_loss_new", &l1, c); }
tn_loss *tn_huber_loss_create(tn_pair_loss_config c) { return of_pairs("tn_huber_loss_new", &huber, c); }
tn_loss *tn_kl_div_loss_create(tn_pair_loss_config c) { return of_pairs("tn_kl_div_loss_new", &kl_div, c); }

tn_loss *tn_bce_with_logits_loss_create(tn_bce_loss_config c)
{
    tn_loss *m = loss_create(&bce, c.reduction);
    if (!m) return NULL;
    if (c.weight) m->weight = copy_of(m, "weight", c.weight);
    if (c.pos_weight) m->pos_weight = copy_of(m, "pos_weight", c.pos_weight);
    return tn_built(m);
}

tn_loss *tn_cosine_embedding_loss_create(tn_cosine_loss_config c)
{
    tn_loss *m = loss_create(&cosine, c.reduction);
    if (!m) return NULL;
    m->margin = c.margin;
    return tn_built(m);
}
