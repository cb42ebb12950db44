/* tools.h — what looks at the tape: where the time goes, where the first NaN comes from, whether gradients are
 * right, which are complete. Part of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_TOOLS_H
#define TENON_AUTOGRAD_TOOLS_H

#include "../core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

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
typedef struct tn_gradcheck_args {
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
} TN_KEYWORDS_ONLY tn_gradcheck_args;
#define TN_GRADCHECK_ARGS_DEFAULTS .step = 1e-3, .rtol = 1e-6, .atol = 1e-8
TN_API tn_status tn_gradcheck_run(tn_gradcheck_args c);
#ifndef __cplusplus
#define tn_gradcheck(...) \
    TN_CALL_(tn_gradcheck_run(TN_ARGS1_(tn_gradcheck_args, TN_GRADCHECK_ARGS_DEFAULTS, fn, __VA_ARGS__, .zero_ = 0)))
#endif

/* ---- gradients on the way ---------------------------------------------------------------------------------------- */

/* tn_backward(root, .seed = seed) that says, in the order of the tape, which gradients are complete, so that they can
 * travel while the rest is computed (tn_replica does that). grad is the sum of this pass for that leaf, which will be
 * attached to it when the pass ends well; not to be written. An error raised by `ready` ends the pass. Leaves of which
 * the tape cannot know when they are complete (behind a tn_checkpoint), with hooks, with gradients of a few rows or of
 * another number type are not told of. A table that is tied, read by products and looked up in, is told of before it is
 * complete, too: when nothing but lookups is missing, and then with the index of each, to whose rows it has added. */
typedef void (*tn_grad_ready)(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *index, bool complete,
                              void *user);
TN_API tn_status tn_backward_telling(tn_tensor *root, tn_tensor *seed, tn_grad_ready ready, void *user);

#ifdef __cplusplus
}
#endif
#endif
