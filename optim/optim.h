/* optim.h — what changes the weights: optimizers and their parameter groups, clipping.
 * Further optimizers and averages of the weights (optimizers.h), schedules of the learning rate (schedule.h) and
 * checkpoints (checkpoint.h) come with this header.
 *
 *     tn_optimizer *opt = tn_adamw_new(net, .lr = 3e-4, .clip.norm = 1);
 *     tn_no_decay(opt);                                       // no weight decay on biases and norms
 *     tn_schedule *lr = tn_warmup_lr_new(opt, .warmup = 1000, .steps = 50000);
 *     ...
 *         tn_tensor *loss = model_loss(net, batch);
 *         tn_backward(loss);
 *         tn_step(opt);                                       // changes the weights, forgets the gradients
 *         tn_schedule_step(lr);
 *     ...
 *     tn_optimizer_free(opt);                                 // and its schedules with it
 *
 * Numbers and defaults are PyTorch's; C++ fills the struct and calls the function that ends in _create. The results are
 * the same bits for any number of threads.
 *
 * An optimizer takes all parameters that the module has when it is made, tied ones once, and holds on to them. Those
 * that are frozen or have no gradient when it steps are left alone. State is f32 for f32 and bf16 weights, f64 for f64,
 * and is made when a parameter first has a gradient: from then on steps take no memory. A gradient of a few rows
 * (tn_grad_rows) costs what the rows cost in SGD without momentum and decay, Adagrad without decay, and Adam and AdamW
 * with .lazy; in the others it becomes a dense one. */
#ifndef TENON_OPTIM_OPTIM_H
#define TENON_OPTIM_OPTIM_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_optimizer tn_optimizer;

/* Gradients are clipped inside the step, in the sweep that updates the weights. */
typedef struct {
    double norm;             /* of all gradients together, at most this; 0: any; INFINITY: only measured */
    bool   largest;          /* the norm is the largest element's magnitude, not the root of the sum of squares */
    double value;            /* instead: each element is cut to [-value, value]; 0: it is not */
    bool error_if_nonfinite; /* a NaN or Inf in a gradient, or too much to be squared where it is: an error, no step */
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
    bool    lazy; /* where a gradient is a few rows (tn_grad_rows), only they, their moments and their decay take part;
                     otherwise a row without a gradient goes on moving by its moments */
    tn_clip clip;
    int     end_;
} TN_KEYWORDS_ONLY tn_adam_config;
#define TN_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
typedef struct tn_adamw_config {
    int                 zero_;
    void               *module;
    double lr           TN_IS(1e-3);
    double beta1        TN_IS(0.9), beta2 TN_IS(0.999);
    double eps          TN_IS(1e-8);
    double weight_decay TN_IS(0.01); /* times lr off the weights */
    bool                amsgrad, maximize;
    bool    lazy; /* where a gradient is a few rows (tn_grad_rows), only they, their moments and their decay take part;
                     otherwise a row without a gradient goes on moving by its moments */
    tn_clip clip;
    int     end_;
} TN_KEYWORDS_ONLY tn_adamw_config;
#define TN_ADAMW_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01
TN_API tn_optimizer *tn_adam_create(tn_adam_config c);
TN_API tn_optimizer *tn_adamw_create(tn_adamw_config c);

TN_API void tn_optimizer_free(tn_optimizer *o);

/* One step with the gradients that tn_backward has collected, which are then forgotten. All or nothing: a step that
 * fails changes no weight, no state and no gradient. */
TN_API tn_status tn_step(tn_optimizer *o);

/* Only every nth tn_step takes effect, with the mean of the gradients since then: a batch in n parts. At first 1. */
TN_API tn_status tn_accumulate(tn_optimizer *o, int64_t n);

TN_API int64_t     tn_steps(const tn_optimizer *o);     /* that took effect */
TN_API double      tn_grad_norm(const tn_optimizer *o); /* in the last of them, before clipping; NaN if not measured */
TN_API const char *tn_optimizer_name(const tn_optimizer *o); /* "AdamW" */
TN_API tn_tensor  *tn_optimizer_state(const tn_optimizer *o, const tn_tensor *t,
                                      const char *name); /* its own, or NULL */

/* ---- parameter groups -------------------------------------------------------------------------------------------- */

/* Each parameter is in one group, at first all in group 0; the options of a group are its own. */
typedef enum {
    TN_OPT_LR = 0,
    TN_OPT_BASE_LR, /* what schedules begin from */
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
TN_API double    tn_option(const tn_optimizer *o, int group, tn_opt which); /* NaN and an error for one it lacks */
TN_API tn_status tn_set_option(tn_optimizer *o, int group, tn_opt which, double value); /* group -1: all */
TN_API double    tn_lr(const tn_optimizer *o, int group);
TN_API tn_status tn_set_lr(tn_optimizer *o, int group, double lr); /* lr and base lr; group -1: all */

TN_API int tn_group_count(const tn_optimizer *o);
TN_API int tn_group_of(const tn_optimizer *o, const tn_tensor *t); /* -1: not one of its parameters */

/* Gives those parameters that meet all that is said here options that differ. The other options stay: a group of which
 * some are taken is split in two. Returns the group of the first; before schedules are made. */
typedef bool (*tn_group_match)(const char *name, const tn_tensor *t, void *user);
typedef struct tn_group_config {
    int            zero_;
    tn_optimizer  *optimizer;
    void          *module;  /* within this module, a part of the optimizer's */
    bool           vectors; /* of fewer than 2 dims: biases and the weights of norms */
    tn_group_match match;   /* of which this is true; name is the parameter's full one */
    void          *user;
    double lr      TN_IS(-1), weight_decay TN_IS(-1); /* what differs; -1: does not */
    int            end_;
} TN_KEYWORDS_ONLY tn_group_config;
#define TN_GROUP_DEFAULTS .lr = -1, .weight_decay = -1
TN_API int       tn_group_create(tn_group_config c);
TN_API tn_status tn_no_decay(tn_optimizer *o); /* weight decay 0 for .vectors */

/* ---- clipping on its own ----------------------------------------------------------------------------------------- */

/* The gradients of all parameters of a module, in place; returns their norm before. For tn_step, .clip is faster. */
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
