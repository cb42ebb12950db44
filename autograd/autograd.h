/* autograd.h — the tape: every op on a tensor that wants a gradient is written down as it runs; tn_backward reads the
 * tape from its end. The ops themselves are in autograd/ops.h, those that are several in one in autograd/fused.h; how
 * to write one in autograd/op.h. */
#ifndef TENON_AUTOGRAD_AUTOGRAD_H
#define TENON_AUTOGRAD_AUTOGRAD_H

#include "../core/core.h"
#include "fused.h"
#include "op.h"
#include "ops.h"

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

typedef struct tn_backward_config {
    int               zero_;
    tn_tensor        *root;  /* what to differentiate ...                                    */
    tn_tensor        *seed;  /* ... times this; may be left out for a root of one element    */
    int               count; /* several roots: with roots[] and seeds[] instead of root     */
    tn_tensor *const *roots;
    tn_tensor *const *seeds;
    bool              retain; /* keep what was saved: the tape can be read again      */
    int               end_;
} TN_KEYWORDS_ONLY tn_backward_config;
/* Adds to the gradients of the leaves, all at the end: a failed backward has attached none. The tape is consumed. For
 * gradients that are on the tape themselves, see tn_grad_of: they must not hang on the leaves they depend on. */
TN_API tn_status tn_backward_run(tn_backward_config c);

/* The gradients of one root (times seed) with respect to chosen tensors, leaves or not; no leaf is touched.
 * grad[i] belongs to the open scope, and is NULL where root does not depend on wrt[i]. */
typedef struct tn_grad_of_config {
    int               zero_;
    tn_tensor        *root;
    int               count;
    tn_tensor *const *wrt;
    tn_tensor       **grad;
    tn_tensor        *seed;
    bool              retain;
    bool              create_graph; /* the gradients are on the tape and can be differentiated; retains */
    int               end_;
} TN_KEYWORDS_ONLY tn_grad_of_config;
TN_API tn_status   tn_grad_of_run(tn_grad_of_config c);
/* One input; NULL on error. */
TN_API tn_tensor *tn_grad_wrt(tn_tensor *root, tn_tensor *wrt, bool create_graph);

#ifndef __cplusplus
#define tn_backward(...) \
    TN_CALL_(tn_backward_run(TN_ARGS1_(tn_backward_config, TN_NO_DEFAULTS_, root, __VA_ARGS__, .zero_ = 0)))
#define tn_grad_of(...)      \
    TN_CALL_(tn_grad_of_run( \
        TN_ARGS4_(tn_grad_of_config, TN_NO_DEFAULTS_, root, count, wrt, grad, __VA_ARGS__, .zero_ = 0)))
#endif

/* A hook sees each gradient that reaches t, before it goes on; it may return another of the same shape, or NULL to
 * leave it as it is. On a leaf it sees the sum of this backward. It does not write over what it sees, which others may
 * see too, and may read another tape but not the one that is being read. */
typedef tn_tensor *(*tn_grad_hook)(tn_tensor *grad, void *user);
TN_API tn_status tn_on_grad(tn_tensor *t, tn_grad_hook hook, void *user);
TN_API tn_status tn_retain_grad(tn_tensor *t); /* collect the gradient of a tensor that is not a leaf, too */

/* ---- recomputation ----------------------------------------------------------------------------------------------- */

/* fn runs without a tape, so that nothing inside it is saved; the backward runs it again, with the same draws from the
 * generator in use here, and differentiates that. So fn does the same each time, leaves its inputs as they are, and
 * what user points to lives until then. fn may use parameters: they get their gradients. */
typedef tn_tensor *(*tn_segment)(tn_tensor *const *in, int n, void *user);
TN_API tn_tensor *tn_checkpoint(tn_segment fn, void *user, int n, tn_tensor *const *in);

/* ---- mixed precision --------------------------------------------------------------------------------------------- */

/* A scope in which products are computed in bf16: linear, matmul, einsum, attention and convolution round their f32
 * operands to bf16, add up in f32 and give a bf16 result; all that follows takes bf16 as it is, but for what stays f32:
 * norms, softmax, reductions, exp and log, losses, the states of recurrent layers widen theirs, and f32 beside bf16 is
 * joined as f32 (tn_cat). Each op says which it is, an op of yours, too: .autocast in op.h. Conversions are on the
 * tape, so weights stay f32 and get f32 gradients; optimizers, state dicts and checkpoints do not notice. f64 is left
 * alone. bf16 has f32's range: losses need no scaling. A weight that is used several times in the scope is converted
 * once. tn_backward needs no scope of its own.
 *
 *     tn_scope s = tn_autocast_begin(true);
 *     tn_tensor *loss = tn_scope_return(s, model_loss(net, batch));
 *     tn_backward(loss);
 *
 * With false: an island in such a scope, where nothing is rounded. */
TN_API tn_scope tn_autocast_begin(bool on);

/* ---- where the time goes ----------------------------------------------------------------------------------------- */

/* While a profile is open, every op of this thread is timed, forward and backward, under the path of its module.
 *
 *     tn_profile *p = tn_profile_begin();
 *     ... some steps ...
 *     tn_profile_end(p);
 *     tn_profile_table(stderr, p);
 *     tn_profile_trace(p, "step.json");                 // for chrome://tracing or ui.perfetto.dev
 *     tn_profile_free(p);
 *
 * An op counts with all that it is made of. Threads other than this one are timed by profiles of their own. Without an
 * open profile an op pays one branch. Where NULL is given, nothing happens. */
typedef struct tn_profile tn_profile;
TN_API tn_profile        *tn_profile_begin(void);
TN_API void               tn_profile_end(tn_profile *p); /* by the thread that began it */
TN_API void               tn_profile_free(tn_profile *p);
TN_API void               tn_profile_table(FILE *to, const tn_profile *p); /* by op, by module, and by both */
TN_API tn_status          tn_profile_trace(const tn_profile *p, const char *path);

/* For a program that leaves it to who runs it: begins if the environment has TENON_PROFILE=1, or TENON_PROFILE=PATH for
 * a trace there, too; else NULL. tn_profile_close ends it, prints the table, writes the trace and frees it. */
TN_API tn_profile *tn_profile_from_env(void);
TN_API tn_status   tn_profile_close(tn_profile *p, FILE *to);

/* A stretch of your own in this thread's open profile: tn_span_begin("reading"); ... tn_span_end(); In the rows it
 * counts without the ops and spans inside it. Backward passes and optimizer steps are spans. */
TN_API void tn_span_begin(const char *name);
TN_API void tn_span_end(void);

typedef struct {
    const char *module, *name; /* "encoder.layers.0", "" outside of modules; the op or the span. The profile's own */
    bool        span;
    int64_t     calls, backward_calls;
    double      seconds, backward_seconds;
} tn_profile_row;
TN_API bool tn_profile_row_at(const tn_profile *p, int64_t i, tn_profile_row *row); /* false: there are only i */

/* ---- looking for trouble ----------------------------------------------------------------------------------------- */

/* Anomaly mode: every result and every gradient is checked, and the first NaN or Inf is an error that names the op,
 * the module path and the step (how many backwards came before). Off: costs nothing. */
TN_API void tn_detect_anomaly(bool on);

/* The tape above root as a graph for Graphviz. */
TN_API tn_status tn_tape_dot(FILE *to, tn_tensor *root);

/* Compares fn's gradients with fourth-order differences, contracted with a random cotangent, in f64. The message names
 * the input, the element and both values: "swish2: gradient of input 0 at [1, 3]: analytic 0.731, numeric 0.698
 * (relative 4.7e-2)". With .second, gradients of gradients too. */
typedef tn_tensor *(*tn_check_fn)(tn_tensor *const *in, int n, void *user);
typedef struct tn_gradcheck_config {
    int               zero_;
    tn_check_fn       fn;
    tn_tensor        *input; /* one input, or ...                 */
    int               count; /* ... several, as inputs[]          */
    tn_tensor *const *inputs;
    void             *user;
    const char       *name;        /* for the message; "function"  */
    double step       TN_IS(1e-3); /* scaled by the value */
    double rtol       TN_IS(1e-6), atol TN_IS(1e-8);
    bool              second;
    int               end_;
} TN_KEYWORDS_ONLY tn_gradcheck_config;
#define TN_GRADCHECK_DEFAULTS .step = 1e-3, .rtol = 1e-6, .atol = 1e-8
TN_API tn_status tn_gradcheck_run(tn_gradcheck_config c);
#ifndef __cplusplus
#define tn_gradcheck(...) \
    TN_CALL_(tn_gradcheck_run(TN_ARGS1_(tn_gradcheck_config, TN_GRADCHECK_DEFAULTS, fn, __VA_ARGS__, .zero_ = 0)))
#endif

#ifdef __cplusplus
}
#endif
#endif
