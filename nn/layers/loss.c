/* loss.c — the cosine embedding loss, which is made of ops. */
#include "nn/base/nn_private.h"

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

tn_tensor *tn_cosine_embedding_loss(tn_tensor *x1, tn_tensor *x2, tn_tensor *target, double margin,
                                    tn_reduction reduction)
{
    char text[192], other[192];
    if ((unsigned)reduction > TN_NONE)
        return tn_raise_null(TN_EINVAL,
                             "cosine_embedding_loss: reduction is %d, but must be TN_MEAN, TN_SUM or TN_NONE",
                             (int)reduction);
    if (x1 && x2 && !tn_shape_equal(tn_shape_of(x1), tn_shape_of(x2)))
        return tn_raise_null(TN_ESHAPE, "cosine_embedding_loss: x1 %s and x2 %s must have the same shape",
                             tn_shape_text(tn_shape_of(x1), text, sizeof text),
                             tn_shape_text(tn_shape_of(x2), other, sizeof other));
    tn_tensor *c = cosine_of(x1, x2);
    if (!c) return NULL;
    if (!target || !tn_shape_equal(tn_shape_of(target), tn_shape_of(c)))
        return tn_raise_null(TN_ESHAPE, "cosine_embedding_loss: target must be %s, 1 or -1 for each pair of rows",
                             tn_shape_text(tn_shape_of(c), text, sizeof text));
    if (tn_item(tn_any(tn_ne(tn_square(tn_to(target, TN_F64)), tn_scalar_of(TN_F64, 1)))) != 0)
        return tn_raise_null(TN_EINVAL, "cosine_embedding_loss: targets must be 1 (similar rows) or -1");
    tn_tensor *apart = tn_relu(tn_add_scalar(c, -margin));
    tn_tensor *y = tn_where(tn_gt(target, tn_scalar_of(TN_I64, 0)), tn_rsub_scalar(c, 1), apart);
    return reduction == TN_MEAN ? tn_mean(y) : reduction == TN_SUM ? tn_sum(y) : y;
}
