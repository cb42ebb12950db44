/* optimizers.h — more optimizers, gradient clipping without an optimizer, averages of the weights. Part of optim.h:
 * include that. */
#ifndef TENON_OPTIM_OPTIMIZERS_H
#define TENON_OPTIM_OPTIMIZERS_H

#include "optim.h"

TN_C_BEGIN_

typedef struct tn_adagrad_config {
    int        zero_;
    void      *module;
    double lr  TN_IS(1e-2);
    double     lr_decay;
    double     weight_decay; /* added to the gradient */
    double     initial;      /* initial value of the sums of squares */
    double eps TN_IS(1e-10);
    bool       maximize;
    tn_clip    clip;
    int        end_;
} TN_KEYWORDS_ONLY tn_adagrad_config;
#define TN_ADAGRAD_DEFAULTS .lr = 1e-2, .eps = 1e-10
TN_API tn_optimizer *tn_adagrad_create(tn_adagrad_config c);

typedef struct tn_rmsprop_config {
    int          zero_;
    void        *module;
    double lr    TN_IS(1e-2);
    double alpha TN_IS(0.99);
    double eps   TN_IS(1e-8);
    double       weight_decay; /* added to the gradient */
    double       momentum;
    bool         centered, maximize;
    tn_clip      clip;
    int          end_;
} TN_KEYWORDS_ONLY tn_rmsprop_config;
#define TN_RMSPROP_DEFAULTS .lr = 1e-2, .alpha = 0.99, .eps = 1e-8
TN_API tn_optimizer *tn_rmsprop_create(tn_rmsprop_config c);

/* Sublinear memory: stores only the row and column means of a matrix's second moments. As in torch.optim.Adafactor, the
 * step size is min(lr, 1/√t) times the root mean square of the weights. */
typedef struct tn_adafactor_config {
    int                zero_;
    void              *module;
    double lr          TN_IS(1e-2);
    double beta2_decay TN_IS(-0.8);
    double eps         TN_IS(-1), eps2 TN_IS(1e-3); /* eps below 0: the machine epsilon of the weight's dtype */
    double d           TN_IS(1);                    /* maximum root mean square of an update; larger ones are scaled */
    double             weight_decay;                /* decoupled: weights are multiplied by 1 - lr · weight_decay */
    bool               maximize;
    tn_clip            clip;
    int                end_;
} TN_KEYWORDS_ONLY tn_adafactor_config;
#define TN_ADAFACTOR_DEFAULTS .lr = 1e-2, .beta2_decay = -0.8, .eps = -1, .eps2 = 1e-3, .d = 1
TN_API tn_optimizer *tn_adafactor_create(tn_adafactor_config c);

/* Adam with the norm of each parameter's step scaled to lr times the parameter's norm (You and others, 2020). */
typedef struct tn_lamb_config {
    int                 zero_;
    void               *module;
    double lr           TN_IS(1e-3);
    double beta1        TN_IS(0.9), beta2 TN_IS(0.999);
    double eps          TN_IS(1e-6);
    double weight_decay TN_IS(0.01); /* weight_decay · weight is added to the step */
    bool                maximize;
    tn_clip             clip;
    int                 end_;
} TN_KEYWORDS_ONLY tn_lamb_config;
#define TN_LAMB_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01
TN_API tn_optimizer *tn_lamb_create(tn_lamb_config c);

/* Adam with Nesterov's momentum (Dozat, 2016), which grows from beta1 / 2 to beta1. */
typedef struct tn_nadam_config {
    int                   zero_;
    void                 *module;
    double lr             TN_IS(2e-3);
    double beta1          TN_IS(0.9), beta2 TN_IS(0.999);
    double eps            TN_IS(1e-8);
    double                weight_decay; /* added to the gradient, or decoupled */
    double momentum_decay TN_IS(4e-3);
    bool                  decoupled, maximize; /* decoupled: weights are multiplied by 1 - lr · weight_decay */
    tn_clip               clip;
    int                   end_;
} TN_KEYWORDS_ONLY tn_nadam_config;
#define TN_NADAM_DEFAULTS .lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum_decay = 4e-3
TN_API tn_optimizer *tn_nadam_create(tn_nadam_config c);

/* Adam with a warmup that follows from the variance of its steps (Liu and others, 2019). */
typedef struct tn_radam_config {
    int          zero_;
    void        *module;
    double lr    TN_IS(1e-3);
    double beta1 TN_IS(0.9), beta2 TN_IS(0.999);
    double eps   TN_IS(1e-8);
    double       weight_decay; /* added to the gradient, or decoupled */
    bool         decoupled, maximize;
    tn_clip      clip;
    int          end_;
} TN_KEYWORDS_ONLY tn_radam_config;
#define TN_RADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
TN_API tn_optimizer *tn_radam_create(tn_radam_config c);

/* Lion (Chen and others, 2023): steps of ±lr by the sign of a momentum; one state. PyTorch has no Lion. */
typedef struct tn_lion_config {
    int          zero_;
    void        *module;
    double lr    TN_IS(1e-4);
    double beta1 TN_IS(0.9), beta2 TN_IS(0.99);
    double       weight_decay; /* decoupled */
    bool         maximize;
    tn_clip      clip;
    int          end_;
} TN_KEYWORDS_ONLY tn_lion_config;
#define TN_LION_DEFAULTS .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99
TN_API tn_optimizer *tn_lion_create(tn_lion_config c);

/* Muon (Jordan and others, 2024): the step of a matrix is its momentum with all singular values brought near 1, by five
 * Newton-Schulz iterations; parameters of other shapes, and weights of tn_embedding, are updated by AdamW.
 * torch.optim.Muon takes only matrices and iterates in bf16. For a learning rate that suits both, set .match_rms, or
 * the rate of a group (tn_group_new). */
typedef struct tn_muon_config {
    int                 zero_;
    void               *module;
    double lr           TN_IS(1e-3);
    double weight_decay TN_IS(0.1); /* decoupled */
    double momentum     TN_IS(0.95);
    double beta1        TN_IS(0.9), beta2 TN_IS(0.999), eps TN_IS(1e-8); /* of AdamW */
    bool                no_nesterov, maximize;
    bool                bf16; /* iterate in bf16: faster on CPUs with bf16 products */
    bool match_rms; /* matrices [r, c]: lr · 0.2 √max(r, c), steps as large as AdamW's; default: lr · √max(1, r / c) */
    tn_clip clip;
    int     end_;
} TN_KEYWORDS_ONLY tn_muon_config;
#define TN_MUON_DEFAULTS .lr = 1e-3, .weight_decay = 0.1, .momentum = 0.95, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
TN_API tn_optimizer *tn_muon_create(tn_muon_config c);

/* ---- learning rate finder ---------------------------------------------------------------------------------------- */

/* A range test (Smith, 2017), before training: steps with rates that grow exponentially from `from` to `to`. Returns
 * the rate at which the smoothed loss falls fastest; NaN (raised) if it never falls. Ends early at a loss above stop
 * times the lowest one; if that is not positive, at a rise by stop - 1 times its magnitude or the fall so far.
 * Parameters, buffers, the optimizer and the generator then are as before. The optimizer has one group.
 *
 *     double lr = tn_lr_find(net, .optimizer = opt, .closure = loss_of_next_batch, .user = &data);
 *     tn_set_lr(opt, -1, lr); */
typedef tn_tensor *(*tn_closure)(void *user);
typedef struct tn_lr_find_args {
    int           zero_;
    void         *module;
    tn_optimizer *optimizer; /* of the module; it has made no step */
    tn_closure    closure;
    void         *user;
    double from   TN_IS(1e-6), to TN_IS(1);
    int64_t steps TN_IS(100); /* at least 10 */
    double stop   TN_IS(4);
    double       *lrs, *losses; /* out, each NULL or of `steps` elements: the curve; NaN after an early end */
    int           end_;
} TN_KEYWORDS_ONLY tn_lr_find_args;
#define TN_LR_FIND_ARGS_DEFAULTS .from = 1e-6, .to = 1, .steps = 100, .stop = 4
TN_API double tn_lr_find_run(tn_lr_find_args a);

/* ---- clipping without an optimizer ------------------------------------------------------------------------------- */

/* Clips the gradients of a module's parameters in place; returns their norm before. With tn_step, .clip is faster. */
typedef struct tn_clip_grads_args {
    int     zero_;
    void   *module;
    tn_clip clip;
    int     end_;
} TN_KEYWORDS_ONLY tn_clip_grads_args;
TN_API double      tn_clip_grads_run(tn_clip_grads_args c);

/* ---- averages of the weights ------------------------------------------------------------------------------------- */

/* Exponential moving averages of the parameters: average += (1 - decay) (weight - average) after each step. The
 * averages are initialised to the weights. Buffers are not averaged.
 *
 *     tn_ema *ema = tn_ema_new(net, .decay = 0.999);
 *         tn_step(opt), tn_ema_update(ema);
 *     tn_ema_swap(ema);                                       // net computes with the averages
 *     tn_ema_swap(ema);                                       // net has its weights again; training continues */
typedef struct tn_ema tn_ema;
typedef struct tn_ema_config {
    int          zero_;
    void        *module;
    double decay TN_IS(0.999);
    bool         warmup; /* limit the decay of update t to (1 + t) / (10 + t), t from 0 */
    bool mean; /* instead of decay: plain means (averaged SGD) after tn_ema_start; before it, copy the weights */
    int  end_;
} TN_KEYWORDS_ONLY tn_ema_config;
#define TN_EMA_DEFAULTS .decay = 0.999
TN_API tn_ema   *tn_ema_create(tn_ema_config c);
TN_API void      tn_ema_free(tn_ema *e);
TN_API tn_status tn_ema_update(tn_ema *e);
TN_API tn_status tn_ema_start(tn_ema *e); /* with .mean: the next update is the first of the mean */
TN_API bool      tn_ema_started(const tn_ema *e);
TN_API tn_status tn_ema_swap(tn_ema *e); /* exchanges weights and averages; allocates nothing */
TN_API bool      tn_ema_swapped(const tn_ema *e);
TN_API bool      tn_ema_has(const tn_ema *e, const tn_tensor *t); /* true if e averages t */

/* ---- for code that drives an optimizer it does not own: tn_fit, tn_replica --------------------------------------- */

TN_API tn_clip tn_optimizer_clip(const tn_optimizer *o);
TN_API int64_t tn_optimizer_parts(const tn_optimizer *o); /* tn_steps per update, set with tn_accumulate */
/* The bytes of state that tn_step will allocate for parameters that require grad and have had no gradient yet. */
TN_API size_t   tn_optimizer_missing(const tn_optimizer *o);
TN_API uint64_t tn_optimizer_sum(const tn_optimizer *o); /* FNV-1a of its kind, clip and groups' options; NULL: 0 */
/* From now on updates only elements from … to - 1 of t and stores only their state (0 and tn_numel(t): all). Only for
 * optimizers that update elements independently (SGD, Adam, RMSprop, Adagrad). Existing state of these is kept. */
TN_API tn_status tn_optimizer_shard(tn_optimizer *o, const tn_tensor *t, int64_t from, int64_t to);
TN_API bool      tn_optimizer_by_element(const tn_optimizer *o); /* true if it updates elements independently */
/* Write one parameter's state to `to` as bytes for the same optimizer in another process, and read it. Pack returns the
 * number of bytes; with to = NULL it only counts them. */
TN_API int64_t   tn_optimizer_pack(const tn_optimizer *o, const tn_tensor *t, void *to);
TN_API tn_status tn_optimizer_unpack(tn_optimizer *o, const tn_tensor *t, const void *from, int64_t bytes);
TN_API void      tn_optimizer_forget(tn_optimizer *o, const tn_tensor *t); /* deletes t's state and step count */

TN_C_END_
#define tn_adagrad_new(...) \
    TN_CALL_(tn_adagrad_create(TN_OF_MODULE_(tn_adagrad_config, TN_ADAGRAD_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_rmsprop_new(...) \
    TN_CALL_(tn_rmsprop_create(TN_OF_MODULE_(tn_rmsprop_config, TN_RMSPROP_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_adafactor_new(...) \
    TN_CALL_(tn_adafactor_create(TN_OF_MODULE_(tn_adafactor_config, TN_ADAFACTOR_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_lamb_new(...) TN_CALL_(tn_lamb_create(TN_OF_MODULE_(tn_lamb_config, TN_LAMB_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_nadam_new(...) \
    TN_CALL_(tn_nadam_create(TN_OF_MODULE_(tn_nadam_config, TN_NADAM_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_radam_new(...) \
    TN_CALL_(tn_radam_create(TN_OF_MODULE_(tn_radam_config, TN_RADAM_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_lion_new(...) TN_CALL_(tn_lion_create(TN_OF_MODULE_(tn_lion_config, TN_LION_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_muon_new(...) TN_CALL_(tn_muon_create(TN_OF_MODULE_(tn_muon_config, TN_MUON_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_lr_find(...) \
    TN_CALL_(tn_lr_find_run(TN_OF_MODULE_(tn_lr_find_args, TN_LR_FIND_ARGS_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_clip_grads(...)      \
    TN_CALL_(tn_clip_grads_run( \
        TN_OF_MODULE_(tn_clip_grads_args, TN_NO_DEFAULTS_, __VA_ARGS__, TN_END_))) /* (net, .clip.norm = 1) */
#define tn_ema_new(...) TN_CALL_(tn_ema_create(TN_OF_MODULE_(tn_ema_config, TN_EMA_DEFAULTS, __VA_ARGS__, TN_END_)))
#endif
