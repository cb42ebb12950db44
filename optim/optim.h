/* optim.h — optimizers and gradient clipping. Includes parameter groups (groups.h), further optimizers and averages of
 * the weights (optimizers.h), learning rate schedules (schedule.h) and training checkpoints (checkpoint.h).
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
 * allocated when a parameter first has a gradient; later steps allocate nothing (except Muon's products of matrices).
 * A row-sparse gradient (tn_grad_rows) updates only its rows in SGD without momentum and decay, Adagrad without decay,
 * and Adam and AdamW with .lazy; other optimizers convert it to a dense one. */
#ifndef TENON_OPTIM_OPTIM_H
#define TENON_OPTIM_OPTIM_H

#include "../nn/nn.h"

TN_C_BEGIN_

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

/* Only every nth tn_step updates, with the mean of n gradients. The default is 1. Not with a tn_replica: .shards. */
TN_API tn_status tn_accumulate(tn_optimizer *o, int64_t n);

TN_API int64_t     tn_steps(const tn_optimizer *o);     /* number of updates */
TN_API double      tn_grad_norm(const tn_optimizer *o); /* norm before clipping in the last update; NaN: not computed */
TN_API const char *tn_optimizer_name(const tn_optimizer *o); /* "AdamW" */
TN_API tn_tensor  *tn_optimizer_state(const tn_optimizer *o, const tn_tensor *t,
                                      const char *name); /* "exp_avg", owned by o; NULL if none */

TN_C_END_

#define tn_sgd_new(...)     \
    TN_CALL_(tn_sgd_create( \
        TN_OF_MODULE_(tn_sgd_config, TN_SGD_DEFAULTS, __VA_ARGS__, TN_END_))) /* tn_sgd_new(net, .lr = 0.1) */
#define tn_adam_new(...) TN_CALL_(tn_adam_create(TN_OF_MODULE_(tn_adam_config, TN_ADAM_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_adamw_new(...) \
    TN_CALL_(tn_adamw_create(TN_OF_MODULE_(tn_adamw_config, TN_ADAMW_DEFAULTS, __VA_ARGS__, TN_END_)))

#include "groups.h"
#include "optimizers.h"
#include "schedule.h"
#include "checkpoint.h"

#endif
