/* autograd.h — the tape: every op on a tensor that wants a gradient is written down as it runs; tn_backward reads the
 * tape from its end. The ops themselves are in autograd/ops.h, those that are several in one in autograd/fused.h; how
 * to write one in autograd/op.h. */
#ifndef TENON_AUTOGRAD_AUTOGRAD_H
#define TENON_AUTOGRAD_AUTOGRAD_H

#include "../core/core.h"
#include "fused.h"
#include "long_texts.h"
#include "op.h"
#include "ops.h"
#include "rope.h"
#include "steps.h"
#include "tools.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gradients of t will be collected: t becomes a leaf. Returns t. Only floating tensors made without a tape can. */
TN_API tn_tensor *tn_requires_grad(tn_tensor *t);
TN_API tn_tensor *tn_requires_no_grad(tn_tensor *t); /* a leaf no longer; what it has collected is forgotten */
TN_API bool       tn_needs_grad(const tn_tensor *t); /* a leaf, or made from one on the tape */
TN_API tn_tensor *tn_grad(const tn_tensor *t);       /* the collected gradient, t's own; NULL if there is none */
TN_API void       tn_zero_grad(tn_tensor *t);        /* forgets it */
TN_API tn_tensor *tn_detach(tn_tensor *t);           /* the same memory, off the tape */

/* Where t is a table that was only looked up, with tn_embedding's sparse: the rows of its gradient that were used,
 * [m, width], and in *rows their numbers, i64 [m] and rising; both t's own. NULL where the gradient is dense, or none.
 * tn_grad gives such a gradient, too: as a dense one, which it stays. */
TN_API tn_tensor *tn_grad_rows(const tn_tensor *t, tn_tensor **rows);

/* ---- backward ---------------------------------------------------------------------------------------------------- */

typedef struct tn_backward_args {
    int               zero_;
    tn_tensor        *root;  /* what to differentiate ...                                    */
    tn_tensor        *seed;  /* ... times this; may be left out for a root of one element    */
    int               count; /* several roots: with roots[] and seeds[] instead of root     */
    tn_tensor *const *roots;
    tn_tensor *const *seeds;
    bool              retain; /* keep what was saved: the tape can be read again      */
    int               end_;
} TN_KEYWORDS_ONLY tn_backward_args;
/* Adds to the gradients of the leaves, all at the end: one that fails changes none, and sets the generator back to
 * where the tape began, so that a second forward pass draws the same. The tape is consumed. (Gradients that are to be
 * differentiated again come from tn_grad_of: kept in a leaf, they and the leaf would own each other.) */
TN_API tn_status tn_backward_run(tn_backward_args c);

/* The gradients of one root (times seed) with respect to chosen tensors, leaves or not; no leaf is touched.
 * grad[i] belongs to the open scope, and is NULL where root does not depend on wrt[i]. */
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

#ifndef __cplusplus
#define tn_backward(...) \
    TN_CALL_(tn_backward_run(TN_ARGS1_(tn_backward_args, TN_NO_DEFAULTS_, root, __VA_ARGS__, .zero_ = 0)))
#define tn_grad_of(...) \
    TN_CALL_(           \
        tn_grad_of_run(TN_ARGS4_(tn_grad_of_args, TN_NO_DEFAULTS_, root, count, wrt, grad, __VA_ARGS__, .zero_ = 0)))
#endif

/* A hook sees each gradient that reaches t, before it goes on; it may return another of the same shape, or NULL to
 * leave it as it is. On a leaf it sees the sum of this backward. It does not write over what it sees, which others may
 * see too, and may read another tape but not the one that is being read. */
typedef tn_tensor *(*tn_grad_hook)(tn_tensor *grad, void *user);
TN_API tn_status tn_on_grad(tn_tensor *t, tn_grad_hook hook, void *user);
TN_API tn_status tn_retain_grad(tn_tensor *t); /* collect the gradient of a tensor that is not a leaf, too */

/* ---- recomputation ----------------------------------------------------------------------------------------------- */

/* fn runs without a tape, so that nothing inside is saved; the backward runs it again, with the same draws from the
 * generator in use here, and differentiates that. So fn does the same each time, leaves its inputs as they are, and
 * what user points to lives until then. Parameters inside get gradients; one that has changed by then is an error. */
typedef tn_tensor *(*tn_segment)(tn_tensor *const *in, int n, void *user);
TN_API tn_tensor *tn_checkpoint(tn_segment fn, void *user, int n, tn_tensor *const *in);

/* ---- mixed precision --------------------------------------------------------------------------------------------- */

/* A scope in which products are computed in bf16: linear, matmul, einsum, attention and convolution round their f32
 * operands to bf16, add up in f32 and give a bf16 result; other ops take bf16 as it is, except those that need the
 * precision of f32 (norms, softmax, reductions, exp and log, losses, the states of recurrent layers), which convert
 * their inputs to f32; where f32 and bf16 are joined (tn_cat) the result is f32. Each op states its choice, an op of
 * your own, too: .autocast in op.h. Conversions are on the tape, so weights stay f32 and get f32 gradients; optimizers,
 * state dicts and checkpoints do not notice. f64 is left alone. bf16 has f32's range: losses need no scaling. A weight
 * that is used several times in the scope is converted once. tn_backward needs no scope of its own. See tn_has_bf16.
 *
 *     tn_scope s = tn_autocast_begin(true);
 *     tn_tensor *loss = tn_scope_return(s, model_loss(net, batch));
 *     tn_backward(loss);
 *
 * tn_autocast_begin(false) inside such a scope switches it off for a part of the computation. */
TN_API tn_scope tn_autocast_begin(bool on);

#ifdef __cplusplus
}
#endif
#endif
