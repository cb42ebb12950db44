/* margin_losses — losses that compare distances or similarities: hinge_embedding_loss, triplet_margin_loss and
 * info_nce_loss; all made of ops. Each computes a loss for an element or row, then the mean or the sum. */
#include "autograd/rooms/losses.h"

typedef struct {
    double       number; /* the margin, or the temperature */
    tn_reduction reduction;
} args_t;

static tn_tensor *checked(const tn_op *op, args_t a, int n, tn_tensor **in)
{
    const tn_loss_args options = {TN_LOSS_ARGS_DEFAULTS, .reduction = a.reduction};
    if (!tn__loss_options(op->name, &options, 0)) return NULL;
    const tn_scope s = tn_scope_begin();
    tn__promote_all(n, in);
    return tn_scope_return(s, tn_op_apply(op, &a, n, in));
}
static tn_tensor *apart(tn_tensor *x, double margin) { return tn_relu(tn_add_scalar(x, margin)); }

/* ---- hinge_embedding_loss: x where the target is 1, max(0, margin - x) where it is -1 ---- */

static bool hinge_embedding_loss_infer(tn_ctx *c)
{
    const tn_tensor *t = c->in[1];
    char             text[192];
    if (!tn__infer_pairs(c)) return false;
    for (int64_t i = 0, n = tn_numel(t); i < n; i++)
        if (fabs(tn_get(t, i)) != 1)
            return tn_infer_fail(c, TN_EINVAL, "target %g at %s must be 1 or -1", tn_get(t, i),
                                 tn__position_text(t->l.shape, i, text, sizeof text));
    return true;
}
static void hinge_embedding_loss_compose(tn_ctx *c)
{
    tn_tensor *x = c->in[0], *similar = tn_gt(c->in[1], tn_scalar(0));
    c->out[0] = tn__loss_reduced(tn_where(similar, x, apart(tn_neg(x), TN_ARG(c, number))), TN_ARG(c, reduction));
}

/* low 1 and high 1: all targets are 1 */
#define HINGE(target, reduction) \
    .kind = {0, TN__ARG_CONST}, .low = {0.1, target}, .high = {0.8, target}, .args = &(args_t) { 1, reduction }
static const tn__sample hinge_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, HINGE(1, TN_MEAN)},
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, HINGE(-1, TN_NONE)},
    {.in = {{3, {2, 1, 4}}, {3, {2, 1, 4}}}, HINGE(-1, TN_SUM)},
    {.in = {{0, {0}}, {0, {0}}}, HINGE(1, TN_NONE)},
    {.in = {{2, {0, 3}}, {2, {0, 3}}}, HINGE(1, TN_SUM)},
    {.in = {{1, {3}}, {1, {3}}},
     HINGE(2, TN_SUM),
     TN__FAILS(TN_EINVAL, "hinge_embedding_loss: target 2 at [0] must be 1 or -1")},
};
const tn_op tn__op_hinge_embedding_loss = {TN__ROOM("hinge_embedding_loss", TN_WIDE), .inputs = 2,
                                           .args_size = sizeof(args_t), .infer = hinge_embedding_loss_infer,
                                           .compose = hinge_embedding_loss_compose};
TN__SAMPLES(hinge_embedding_loss, hinge_samples);

tn_tensor *tn_hinge_embedding_loss(tn_tensor *x, tn_tensor *target, double margin, tn_reduction reduction)
{
    return checked(&tn__op_hinge_embedding_loss, (args_t){margin, reduction}, 2, (tn_tensor *[]){x, target});
}

/* ---- triplet_margin_loss: max(0, margin + ‖a - p + 1e-6‖ - ‖a - n + 1e-6‖) of rows ---- */

static bool triplet_margin_loss_infer(tn_ctx *c)
{
    const tn_shape a = c->in[0]->l.shape;
    char           text[192], other[192];
    for (int i = 0; i < 3; i++) {
        if (!tn__need_real(c, i)) return false;
        if (a.n && tn_shape_equal(a, c->in[i]->l.shape)) continue;
        return tn_infer_fail(c, TN_ESHAPE, "anchor %s, positive and negative must have one shape [..., D]; got %s",
                             tn_shape_text(a, text, sizeof text),
                             tn_shape_text(c->in[i]->l.shape, other, sizeof other));
    }
    return true;
}
static tn_tensor *distance(tn_tensor *a, tn_tensor *b)
{
    return tn_norm(tn_add_scalar(tn_sub(a, b), 1e-6), .dims = TN_DIMS(-1));
}
static void triplet_margin_loss_compose(tn_ctx *c)
{
    tn_tensor *d = tn_sub(distance(c->in[0], c->in[1]), distance(c->in[0], c->in[2]));
    c->out[0] = tn__loss_reduced(apart(d, TN_ARG(c, number)), TN_ARG(c, reduction));
}

#define TRIPLET(margin, reduction) \
    .low = {0, 1, 3}, .high = {1, 2, 4}, .args = &(args_t) { margin, reduction }
static const tn__sample triplet_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}}, TRIPLET(9, TN_MEAN)},
    {.in = {{3, {2, 3, 5}}, {3, {2, 3, 5}}, {3, {2, 3, 5}}}, TRIPLET(9, TN_NONE)},
    {.in = {{1, {4}}, {1, {4}}, {1, {4}}}, TRIPLET(0, TN_SUM)}, /* far enough apart: 0 */
    {.in = {{2, {0, 3}}, {2, {0, 3}}, {2, {0, 3}}}, TRIPLET(1, TN_SUM)},
    {.in = {{1, {3}}, {1, {3}}, {1, {4}}},
     TRIPLET(1, TN_SUM),
     TN__FAILS(TN_ESHAPE,
               "triplet_margin_loss: anchor [3], positive and negative must have one shape [..., D]; got [4]")},
};
const tn_op tn__op_triplet_margin_loss = {TN__ROOM("triplet_margin_loss", TN_WIDE), .inputs = 3,
                                          .args_size = sizeof(args_t), .infer = triplet_margin_loss_infer,
                                          .compose = triplet_margin_loss_compose};
TN__SAMPLES(triplet_margin_loss, triplet_samples);

tn_tensor *tn_triplet_margin_loss(tn_tensor *anchor, tn_tensor *positive, tn_tensor *negative, double margin,
                                  tn_reduction reduction)
{
    return checked(&tn__op_triplet_margin_loss, (args_t){margin, reduction}, 3,
                   (tn_tensor *[]){anchor, positive, negative});
}

/* ---- info_nce_loss: the cross-entropy of cosines / temperature, row i's class being i ---- */

static bool info_nce_loss_infer(tn_ctx *c)
{
    const tn_shape q = c->in[0]->l.shape, k = c->in[1]->l.shape;
    char           text[192], other[192];
    if (!tn__need_real(c, 0) || !tn__need_real(c, 1)) return false;
    if (q.n != 2 || k.n != 2 || q.d[1] != k.d[1] || q.d[0] > k.d[0])
        return tn_infer_fail(c, TN_ESHAPE, "query %s and keys %s must be [N, D] and [M, D] with M at least N",
                             tn_shape_text(q, text, sizeof text), tn_shape_text(k, other, sizeof other));
    if (TN_ARG(c, number) > 0) return true;
    return tn_infer_fail(c, TN_EINVAL, "the temperature is %g, but must be positive", TN_ARG(c, number));
}
static void info_nce_loss_compose(tn_ctx *c)
{
    tn_tensor *cosines = tn_matmul(tn_normalize(c->in[0], -1), tn_transpose(tn_normalize(c->in[1], -1), 0, 1));
    c->out[0] = tn_cross_entropy(tn_div_scalar(cosines, TN_ARG(c, number)), tn_arange(tn_size(c->in[0], 0)),
                                 .reduction = TN_ARG(c, reduction));
}

#define NCE(temperature, reduction) \
    .args = &(args_t) { temperature, reduction }
static const tn__sample info_nce_samples[] = {
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, NCE(0.5, TN_MEAN)},
    {.in = {{2, {3, 5}}, {2, {7, 5}}}, NCE(1, TN_NONE)},
    {.in = {{2, {1, 4}}, {2, {2, 4}}}, NCE(2, TN_SUM)},
    {.in = {{2, {0, 3}}, {2, {2, 3}}}, NCE(1, TN_SUM)},
    {.in = {{2, {3, 4}}, {2, {2, 4}}},
     NCE(1, TN_MEAN),
     TN__FAILS(TN_ESHAPE, "info_nce_loss: query [3, 4] and keys [2, 4] must be [N, D] and [M, D] with M at least N")},
    {.in = {{2, {3, 4}}, {2, {3, 4}}},
     NCE(0, TN_MEAN),
     TN__FAILS(TN_EINVAL, "info_nce_loss: the temperature is 0, but must be positive")},
};
const tn_op tn__op_info_nce_loss = {TN__ROOM("info_nce_loss", TN_WIDE), .inputs = 2, .args_size = sizeof(args_t),
                                    .infer = info_nce_loss_infer, .compose = info_nce_loss_compose};
TN__SAMPLES(info_nce_loss, info_nce_samples);

tn_tensor *tn_info_nce_loss(tn_tensor *query, tn_tensor *keys, double temperature, tn_reduction reduction)
{
    return checked(&tn__op_info_nce_loss, (args_t){temperature, reduction}, 2, (tn_tensor *[]){query, keys});
}
