/* tools.h — tools that inspect the tape: a profiler, a search for the first NaN, a gradient check, a callback for
 * complete gradients. Part of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_TOOLS_H
#define TENON_AUTOGRAD_TOOLS_H

#include "../core/core.h"

TN_C_BEGIN_

/* ---- profiling --------------------------------------------------------------------------------------------------- */

/* While a profile is open, each op of this thread is timed, forward and backward, under the path of its module.
 *
 *     tn_profile *p = tn_profile_begin();
 *     ... some steps ...
 *     tn_profile_end(p);
 *     tn_profile_table(stderr, p);
 *     tn_profile_trace(p, "step.json");                 // for chrome://tracing or ui.perfetto.dev
 *     tn_profile_free(p);
 *
 * The time of an op includes the ops it is made of. Other threads need profiles of their own. Without an open profile
 * an op pays one branch. The functions do nothing if p is NULL, except tn_profile_trace, which raises. */
typedef struct tn_profile tn_profile;
TN_API tn_profile        *tn_profile_begin(void);
TN_API void               tn_profile_end(tn_profile *p); /* only in the thread of _begin */
TN_API void               tn_profile_free(tn_profile *p);
TN_API void               tn_profile_table(FILE *to, const tn_profile *p); /* by op, by module, by both */
TN_API tn_status          tn_profile_trace(const tn_profile *p, const char *path);

/* Lets the user turn profiling on through the environment: opens a profile if TENON_PROFILE is 1, "bytes" for tables in
 * the order of bytes, or a path to which the trace is written as well; otherwise returns NULL. tn_profile_close ends
 * the profile, prints its table, writes the trace and frees it. */
TN_API tn_profile *tn_profile_from_env(void);
TN_API tn_status   tn_profile_close(tn_profile *p, FILE *to);

/* A custom span in this thread's open profile: tn_span_begin("reading"); ... tn_span_end(); Its row excludes the ops
 * and spans inside it. Backward passes and optimizer steps are spans. */
TN_API void tn_span_begin(const char *name);
TN_API void tn_span_end(void);

typedef struct {
    const char *module, *name; /* "encoder.layers.0", "" outside modules; the op or span. Owned by the profile */
    bool        span;
    int64_t     calls, backward_calls;
    int64_t     bytes, backward_bytes; /* the least that it moves: what it reads and writes, each tensor once a call */
    double      seconds, backward_seconds;
} tn_profile_row;
TN_API bool tn_profile_row_at(const tn_profile *p, int64_t i, tn_profile_row *row); /* false: i is past the last row */

/* ---- debugging --------------------------------------------------------------------------------------------------- */

/* Anomaly mode: every result and every gradient is checked, and the first NaN or Inf is an error that names the op,
 * the module path and the step (the number of backwards before it). Costs nothing while off. */
TN_API void tn_detect_anomaly(bool on);

/* Writes the tape of root as a graph for Graphviz. */
TN_API tn_status tn_tape_dot(FILE *to, tn_tensor *root);

/* Compares fn's gradients with fourth-order differences, contracted with a random cotangent, in f64. The message names
 * the input, the element and both values: "swish2: gradient of input 0 at [1, 3]: analytic 0.731, numeric 0.698
 * (relative 4.7e-2)". .second also checks gradients of gradients. */
typedef tn_tensor *(*tn_check_fn)(tn_tensor *const *in, int n, void *user);
typedef struct tn_gradcheck_args {
    int               zero_;
    tn_check_fn       fn;
    tn_tensor        *input; /* the only input; NULL: inputs[]    */
    int               count; /* number of inputs in inputs[]      */
    tn_tensor *const *inputs;
    void             *user;
    const char       *name;        /* for messages; NULL: "function" */
    double step       TN_IS(1e-3); /* times max(1, |x|) */
    double rtol       TN_IS(1e-6), atol TN_IS(1e-8);
    bool              second;
    int               end_;
} TN_KEYWORDS_ONLY tn_gradcheck_args;
#define TN_GRADCHECK_ARGS_DEFAULTS .step = 1e-3, .rtol = 1e-6, .atol = 1e-8
TN_API tn_status tn_gradcheck_run(tn_gradcheck_args c);
#define tn_gradcheck(...) \
    TN_CALL_(tn_gradcheck_run(TN_ARGS1_(tn_gradcheck_args, TN_GRADCHECK_ARGS_DEFAULTS, fn, __VA_ARGS__, TN_END_)))

/* ---- derivatives of a function ----------------------------------------------------------------------------------- */

/* The Jacobian of fn at x: [dims of fn(x), dims of x], with one backward for each element of fn(x). fn receives a leaf
 * with x's values as its only input. The result is not on the tape. */
TN_API tn_tensor *tn_jacobian(tn_check_fn fn, tn_tensor *x, void *user);
/* The Hessian of fn at x times v, of x's shape, where fn(x) has one element: the gradient of <gradient of fn, v>, which
 * costs as much as two backwards. Not on the tape. */
TN_API tn_tensor *tn_hvp(tn_check_fn fn, tn_tensor *x, tn_tensor *v, void *user);

/* Until tn_scope_end(s), the ops of this thread use by[i], of the same dtype and shape, in place of of[i], a parameter
 * or a buffer: modules run with other weights, and the gradients reach what by[i] was computed from. tn_checkpoint's
 * second run uses the same tensors. Functions that are not ops, such as tn_get and tn_size, use of[i] itself. In a
 * nested call the inner replacement applies, and by[i] is what an op would use there. The scope does not own the
 * tensors.
 *
 *     tn_scope s = tn_functional_begin(1, &weight, &others);
 *     y = tn_scope_return(s, tn_call(net, x)); // as tn_functional_call(net, x, 1, &weight, &others) */
TN_API tn_scope tn_functional_begin(int n, tn_tensor *const *of, tn_tensor *const *by);

/* Replaces the gradient of a leaf by a copy of grad, in the leaf's dtype, for example after changing it, or to apply
 * gradients from elsewhere. Calls no hooks (tn_on_grad).
 *
 *     tn_set_grad(weight, tn_mul_scalar(tn_grad(weight), 0.5)); */
TN_API tn_status tn_set_grad(tn_tensor *leaf, tn_tensor *grad);

/* ---- a callback for complete gradients --------------------------------------------------------------------------- */

/* tn_backward(root, .seed = seed) that calls `ready`, in the order of the tape, for each gradient that is complete, so
 * that it can be sent while the rest is computed (tn_replica does that). grad is the leaf's sum of this pass, attached
 * to the leaf when the pass succeeds; do not write to it. An error raised by `ready` ends the pass. Not reported are
 * leaves inside a tn_checkpoint (the tape does not know when they are complete), leaves with hooks, and gradients of a
 * few rows or of another dtype than the leaf's. */
typedef void (*tn_grad_ready)(const tn_tensor *leaf, const tn_tensor *grad, void *user);
TN_API tn_status tn_backward_notify(tn_tensor *root, tn_tensor *seed, tn_grad_ready ready, void *user);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Estimates the peak memory of a forward, in bytes, without what is already in use, before the batch is run: for a
 * server that chooses its batch, or rejects one.
 *
 *     static tn_tensor *forward(int64_t rows, void *w) { return tn_matmul(tn_zeros(TN_SHAPE(rows, 128)), w); }
 *
 *     if (tn_forward_need(forward, weight, 64, 128) > 1 << 30) puts("a batch [64, 128] needs more than 1 GiB");
 *
 * forward(n, user) is the forward of n rows of `tokens` tokens; it is called twice without a tape, with as few of the
 * rows as have 512 tokens, and the result is their peak times rows / n. It is within 15 % above the true peak with the
 * same number of threads. Other threads must not allocate meanwhile; tn_memory.peak is reset. The packed copies of
 * weights are not included, see tn_set_packing_limit. 0: raised. */
TN_API size_t tn_forward_need(tn_tensor *(*forward)(int64_t rows, void *user), void *user, int64_t rows,
                              int64_t tokens);

TN_C_END_
#endif
