/* autograd.h — the tape: each op on a tensor that requires grad is recorded as it runs, and tn_backward reads the tape
 * from its end. The ops are in autograd/ops.h, fused ones in autograd/fused.h; autograd/op.h shows how to write one. */
#ifndef TENON_AUTOGRAD_AUTOGRAD_H
#define TENON_AUTOGRAD_AUTOGRAD_H

#include "../core/core.h"
#include "experts.h"
#include "fused.h"
#include "long_texts.h"
#include "more_ops.h"
#include "op.h"
#include "ops.h"
#include "recompute.h"
#include "replay.h"
#include "rope.h"
#include "steps.h"
#include "tools.h"

TN_C_BEGIN_

/* Makes t a leaf, which collects gradients. Returns t. t must be floating and not the result of a recorded op. */
TN_API tn_tensor *tn_requires_grad(tn_tensor *t);
TN_API tn_tensor *tn_freeze_tensor(tn_tensor *t);    /* t is no longer a leaf; drops its gradient */
TN_API bool       tn_needs_grad(const tn_tensor *t); /* t is a leaf, or was computed from one on the tape */
TN_API tn_tensor *tn_grad(const tn_tensor *t);       /* the collected gradient, owned by t; NULL: none yet */
TN_API void       tn_zero_grad(tn_tensor *t);        /* drops the gradient of t */
TN_API void       tn_mark_trained(tn_tensor *leaf);  /* for optimizers: marks a leaf that one has, for good */
TN_API tn_tensor *tn_detach(tn_tensor *t);           /* a tensor with the same memory, off the tape */

/* For a table that was only used by tn_embedding with sparse: returns the rows of its gradient that were used,
 * [m, width], and stores their ascending indices, i64 [m], in *rows (rows may be NULL). t owns both. NULL if the
 * gradient is dense or missing. tn_grad converts such a gradient to a dense one, which it then stays. */
TN_API tn_tensor *tn_grad_rows(const tn_tensor *t, tn_tensor **rows);

/* ---- backward ---------------------------------------------------------------------------------------------------- */

typedef struct tn_backward_args {
    int               zero_;
    tn_tensor        *root;  /* the tensor to differentiate                                  */
    tn_tensor        *seed;  /* factor of root, of its shape; optional if it has one element */
    int               count; /* number of roots, to be passed in roots[] and seeds[] instead */
    tn_tensor *const *roots;
    tn_tensor *const *seeds;
    bool              retain; /* keep the saved tensors, so that the tape can be read again */
    int               end_;
} TN_KEYWORDS_ONLY tn_backward_args;
/* Adds to the gradients of the leaves, all at the end: a backward that fails changes none and restores the generator's
 * state from the start of the tape, so that a second forward pass draws the same random numbers. Consumes the tape.
 * (For gradients that are differentiated again call tn_grad_of: a leaf and such a gradient would own each other.) */
TN_API tn_status tn_backward_run(tn_backward_args c);

/* The gradients of one root (times seed) with respect to chosen tensors, leaves or not; no leaf is changed.
 * grad[i] belongs to the open scope; it is NULL if root does not depend on wrt[i]. */
typedef struct tn_grad_of_args {
    int               zero_;
    tn_tensor        *root;
    int               count;
    tn_tensor *const *wrt;
    tn_tensor       **grad;
    tn_tensor        *seed;
    bool              retain;
    bool              create_graph; /* the gradients are on the tape and can be differentiated; retains */
    int               end_;
} TN_KEYWORDS_ONLY tn_grad_of_args;
TN_API tn_status   tn_grad_of_run(tn_grad_of_args c);
/* One input; NULL on error. */
TN_API tn_tensor *tn_grad_wrt(tn_tensor *root, tn_tensor *wrt, bool create_graph);

#define tn_backward(...) \
    TN_CALL_(tn_backward_run(TN_ARGS1_(tn_backward_args, TN_NO_DEFAULTS_, root, __VA_ARGS__, TN_END_)))
#define tn_grad_of(...) \
    TN_CALL_(tn_grad_of_run(TN_ARGS4_(tn_grad_of_args, TN_NO_DEFAULTS_, root, count, wrt, grad, __VA_ARGS__, TN_END_)))

/* A hook receives each gradient that reaches t before it is passed on; it may return another of the same shape and
 * dtype, or NULL for no change. On a leaf it receives the sum of this backward. It must not write to the gradient,
 * which other code may share, and may read another tape but not the one that is being read. */
typedef tn_tensor *(*tn_grad_hook)(tn_tensor *grad, void *user);
TN_API tn_status tn_on_grad(tn_tensor *t, tn_grad_hook hook, void *user);
TN_API tn_status tn_retain_grad(tn_tensor *t); /* also collect the gradient of a tensor that is not a leaf */

/* ---- mixed precision --------------------------------------------------------------------------------------------- */

/* A scope in which products are computed in bf16: linear, matmul, einsum, attention and convolution round their f32
 * operands to bf16, accumulate in f32 and return a bf16 result; so do recurrent layers, whose cells c stay f32, and
 * tn_add_dropout_norm. Other ops take bf16 unchanged: norms and activations compute in f32 and round their result.
 * Those that need the precision of f32 (softmax, reductions, exp and log, losses) convert their inputs to f32. Where
 * f32 and bf16 are joined (tn_add, tn_cat) the result is f32. So activations and their gradients stay bf16 between the
 * products of a Transformer. Each op, custom ones included, states its choice: .autocast in op.h. Conversions are
 * recorded, so weights stay f32, and the products that give their gradients write f32; optimizers, state dicts and
 * training checkpoints are the same. f64 is not converted. bf16 has f32's range: losses need no scaling. A weight used
 * several times in the scope is converted once; the optimizer's step also writes the converted weight, for the next
 * scope. tn_backward needs no autocast scope. See tn_has_bf16.
 *
 *     tn_scope s = tn_autocast_begin(true);
 *     tn_tensor *loss = tn_scope_return(s, model_loss(net, batch));
 *     tn_backward(loss);
 *
 * tn_autocast_begin(false) inside such a scope switches it off for a part of the computation. */
TN_API tn_scope tn_autocast_begin(bool on);

TN_C_END_
#endif
