/* optim.h — optimizers, their parameter groups, gradient clipping. Includes further optimizers and averages of the
 * weights (optimizers.h), learning rate schedules (schedule.h) and training checkpoints (checkpoint.h).
 *
 *     tn_optimizer *opt = tn_adamw_new(net, .lr = 3e-4, .clip.norm = 1);
 *     tn_no_decay(opt);                                       // no weight decay on biases and norms
 *     tn_schedule *lr = tn_warmup_lr_new(opt, .warmup = 1000, .steps = 50000);
 *     ...
 *         tn_tensor *loss = model_loss(net, batch);
 *         tn_backward(loss);
 *         tn_step(opt);                                       // updates the weights and zeroes the gradients
 *         tn_schedule_step(lr);
 *     ...
 *     tn_optimizer_free(opt);                                 // frees its schedules, too
 *
 * Results and defaults are PyTorch's; C++ fills the struct and calls the function that ends in _create. The results
 * have the same bits for any number of threads.
 *
 * An optimizer keeps references to all parameters that the module has when it is created, to tied ones once. A step
 * skips parameters that are frozen or have no gradient. State is f32 for f32 and bf16 weights, f64 for f64; it is
 * allocated when a parameter first has a gradient; later steps allocate nothing. A row-sparse gradient (tn_grad_rows)
 * updates only its rows in SGD without momentum and decay, Adagrad without decay, and Adam and AdamW with .lazy; other
 * optimizers convert it to a dense one. */
#ifndef TENON_OPTIM_OPTIM_H
#define TENON_OPTIM_OPTIM_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_optimizer tn_optimizer;

/* Gradient clipping; tn_step does it in the same pass that updates the weights. */
typedef struct {
    double norm;             /* maximum norm of all gradients together; 0: no limit; INFINITY: only compute the norm */
    bool   largest;          /* use the maximum norm (largest magnitude) instead of the 2-norm */
    double value;            /* instead of norm: clip each element to [-value, value]; 0: no clipping */
    bool error_if_nonfinite; /* raise an error, without a step, if a gradient has a NaN, an Inf or too large a square */
} tn_clip;

typedef struct tn_sgd_config {
    int       zero_;
    void     *module;
    double lr TN_IS(1e-3);
    double    momentum;
    double    dampening;
    double    weight_decay; /* added to the gradient */
    bool      nesterov, maximize;
    tn_clip   clip;
    int       end_;
} TN_KEYWORDS_ONLY tn_sgd_config;
#define TN_SGD_DEFAULTS .lr = 1e-3
TN_API tn_optimizer *tn_sgd_create(tn_sgd_config c);

typedef struct tn_adam_config {
    int          zero_;
    void        *module;
    double lr    TN_IS(1e-3);
    double beta1 TN_IS(0.9), beta2 TN_IS(0.999);
    double eps   TN_IS(1e-8);
    double       weight_decay; /* added to the gradient */
    bool         amsgrad, maximize;
    bool         lazy; /* update only the rows of a row-sparse gradient (tn_grad_rows), with their moments and decay; by
                     default, rows without a gradient are updated with their moments, too */
    tn_clip      clip;
    int          end_;
} TN_KEYWORDS_ONLY tn_adam_config;
#define TN_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
typedef struct tn_adamw_config {
    int                 zero_;
    void               *module;
    double lr           TN_IS(1e-3);
    double beta1        TN_IS(0.9), beta2 TN_IS(0.999);
    double eps          TN_IS(1e-8);
    double weight_decay TN_IS(0.01); /* decoupled: weights are multiplied by 1 - lr · weight_decay */
    bool                amsgrad, maximize;
    bool    lazy; /* update only the rows of a row-sparse gradient (tn_grad_rows), with their moments and decay; by
                     default, rows without a gradient are updated with their moments, too */
    tn_clip clip;
    int     end_;
} TN_KEYWORDS_ONLY tn_adamw_config;
#define TN_ADAMW_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01
TN_API tn_optimizer *tn_adam_create(tn_adam_config c);
TN_API tn_optimizer *tn_adamw_create(tn_adamw_config c);

TN_API void tn_optimizer_free(tn_optimizer *o);

/* Updates the weights with the gradients of tn_backward, then zeroes the gradients (PyTorch: a separate zero_grad). All
 * or nothing: a step that fails changes no weight, no state and no gradient. */
TN_API tn_status tn_step(tn_optimizer *o);

/* Gradient accumulation: only every nth tn_step updates, with the mean of n gradients. The default is 1. */
TN_API tn_status tn_accumulate(tn_optimizer *o, int64_t n);

TN_API int64_t     tn_steps(const tn_optimizer *o);     /* number of updates */
TN_API double      tn_grad_norm(const tn_optimizer *o); /* norm before clipping in the last update; NaN: not computed */
TN_API const char *tn_optimizer_name(const tn_optimizer *o); /* "AdamW" */
TN_API tn_tensor  *tn_optimizer_state(const tn_optimizer *o, const tn_tensor *t,
                                      const char *name); /* "exp_avg", owned by o; NULL if none */

/* ---- parameter groups -------------------------------------------------------------------------------------------- */

/* Each parameter is in one group, initially in group 0. Each group has its own options. */
typedef enum {
    TN_OPT_LR = 0,
    TN_OPT_BASE_LR, /* the learning rate that schedules scale */
    TN_OPT_WEIGHT_DECAY,
    TN_OPT_MOMENTUM,
    TN_OPT_DAMPENING,
    TN_OPT_BETA1,
    TN_OPT_BETA2,
    TN_OPT_EPS,
    TN_OPT_EPS2,
    TN_OPT_ALPHA,
    TN_OPT_LR_DECAY,
    TN_OPT_BETA2_DECAY,
    TN_OPT_D,
    TN_OPTS
} tn_opt;
TN_API double    tn_option(const tn_optimizer *o, int group, tn_opt which); /* NaN (raised) if it has no such option */
TN_API tn_status tn_set_option(tn_optimizer *o, int group, tn_opt which, double value); /* group -1: all */
TN_API double    tn_lr(const tn_optimizer *o, int group);
TN_API tn_status tn_set_lr(tn_optimizer *o, int group, double lr); /* lr and base lr; group -1: all */

TN_API int tn_group_count(const tn_optimizer *o);
TN_API int tn_group_of(const tn_optimizer *o, const tn_tensor *t); /* -1: not one of its parameters */

/* Sets options of the parameters that match all of .module, .vectors and .match; other options stay. A group of which
 * only some match is split in two. Returns the group of the first match. Call it before creating schedules. */
typedef bool (*tn_group_match)(const char *name, const tn_tensor *t, void *user);
typedef struct tn_group_config {
    int            zero_;
    tn_optimizer  *optimizer;
    void          *module;  /* match parameters of this module, a part of the optimizer's module; NULL: all */
    bool           vectors; /* match parameters with fewer than 2 dims: biases and the weights of norms */
    tn_group_match match;   /* match parameters for which this returns true; name: full path; NULL: all */
    void          *user;    /* passed to match */
    double lr      TN_IS(-1), weight_decay TN_IS(-1); /* new value; -1: unchanged */
    int            end_;
} TN_KEYWORDS_ONLY tn_group_config;
#define TN_GROUP_DEFAULTS .lr = -1, .weight_decay = -1
TN_API int       tn_group_create(tn_group_config c);
TN_API tn_status tn_no_decay(tn_optimizer *o); /* sets weight decay 0 for parameters with fewer than 2 dims */

/* ---- clipping without an optimizer ------------------------------------------------------------------------------- */

/* Clips the gradients of a module's parameters in place; returns their norm before. With tn_step, .clip is faster. */
typedef struct tn_clip_grads_args {
    int     zero_;
    void   *module;
    tn_clip clip;
    int     end_;
} TN_KEYWORDS_ONLY tn_clip_grads_args;
TN_API double      tn_clip_grads_run(tn_clip_grads_args c);

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
#define tn_sgd_new(...)     \
    TN_CALL_(tn_sgd_create( \
        TN_OF_MODULE_(tn_sgd_config, TN_SGD_DEFAULTS, __VA_ARGS__, .zero_ = 0))) /* tn_sgd_new(net, .lr = 0.1) */
#define tn_adam_new(...) \
    TN_CALL_(tn_adam_create(TN_OF_MODULE_(tn_adam_config, TN_ADAM_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#define tn_adamw_new(...) \
    TN_CALL_(tn_adamw_create(TN_OF_MODULE_(tn_adamw_config, TN_ADAMW_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#define tn_clip_grads(...)      \
    TN_CALL_(tn_clip_grads_run( \
        TN_OF_MODULE_(tn_clip_grads_args, TN_NO_DEFAULTS_, __VA_ARGS__, .zero_ = 0))) /* (net, .clip.norm = 1) */
/* tn_group_new(opt, .module = net->encoder, .lr = 1e-5) */
#define tn_group_new(...) \
    TN_CALL_(tn_group_create(TN_ARGS1_(tn_group_config, TN_GROUP_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#endif

#include "optimizers.h"
#include "schedule.h"
#include "checkpoint.h"

#endif
