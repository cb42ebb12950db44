/* losses.h — shared code of the losses' rooms. Private to autograd/. */
#ifndef TENON_AUTOGRAD_ROOMS_LOSSES_H
#define TENON_AUTOGRAD_ROOMS_LOSSES_H

#include "autograd/rooms/room.h"

/* ---- losses of pairs of elements: an op computes a loss for each element, then they are reduced ---- */

/* True if the reduction is valid and no option is set that this loss does not have. False: raised with op's name. */
enum { TN__LOSS_WEIGHTS = 1, TN__LOSS_DELTA = 2, TN__LOSS_LOG_TARGET = 4, TN__LOSS_BATCHMEAN = 8 };
bool tn__loss_options(const char *op, const tn_loss_args *a, unsigned has);
/* The mean or the sum of y, or y itself. */
tn_tensor *tn__loss_reduced(tn_tensor *y, tn_reduction reduction);
/* Converts both to one floating dtype, the wider of theirs; recorded. False: raised. */
bool tn__loss_types(tn_tensor **a, tn_tensor **b);

/* The infer: input and target are of one floating dtype and of the same shape; sets the result's dtype and shape. A
 * target [N] for an input [N, 1] is rejected: broadcast, it would make N² pairs. */
bool tn__infer_pairs(tn_ctx *c);

/* ---- losses over classes: cross_entropy and nll_loss ---- */

typedef struct {
    int64_t      ignore;
    double       smoothing;
    tn_reduction reduction;
    int          dim; /* of the classes */
} tn__class_args;
enum { TN__CLASS_X, TN__CLASS_TARGET, TN__CLASS_WEIGHT, TN__CLASS_INPUTS };

/* True if each target is a class or is ignored. False: raised, "target 7 at [0] is outside 0…3 …". */
bool tn__check_targets(const tn_ctx *c, const tn_tensor *t, int64_t classes, int64_t ignore);
/* The infer: checks all inputs, including each target, and sets the dtype and shape of result 0, the loss, and of the
 * last two: the sum of the weights and the number of targets. probabilities: the target may also be floating. */
bool tn__infer_classes(tn_ctx *c, bool probabilities);
/* Calls op, whose last two results are the sum of the weights and the number of the targets that are not ignored. */
tn_tensor *tn__class_loss(const tn_op *op, tn__class_args k, tn_cross_entropy_args a, int results);

/* For gradients: a probability or its ratio to the row's largest, or 0 if products with it might be denormal, for which
 * some CPUs take more than a hundred cycles. NaN stays NaN. */
static inline float  tn__no_tiny_f32(float p) { return p < 0x1p-100f ? 0 : p; }
static inline double tn__no_tiny_f64(double p) { return p; }

/* Views for kernels along the dim of the classes: the target, the weights, and `column`, a tensor of the target's shape
 * (losses or their gradients). Weights and column may be NULL, and are NULL then. */
typedef struct {
    tn_tensor *target, *weight, *column;
    tn_tensor  view[3];
} tn__class_views;
void tn__class_view(tn__class_views *v, tn_tensor *const *in, tn_shape x, int dim, const tn_tensor *column);

/* Three sums of f64 on the stack, for tn__rows_sums. */
typedef struct {
    double      sum, weight, count; /* sum of the losses, sum of the weights, number of targets */
    tn__storage storage;
    tn_tensor   tensor;
} tn__class_sum;
tn_tensor *tn__class_sums(tn__class_sum *s);
/* Stores the reduced loss (unless r is TN_NONE), the sum of the weights and the count. */
void tn__class_results(const tn__class_sum *s, tn_reduction r, tn_tensor *loss, tn_tensor *weight, tn_tensor *count);

#endif
