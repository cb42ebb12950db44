/* optimizers.h — more optimizers, and averages of the weights. Part of optim.h: include that. */
#ifndef TENON_OPTIM_OPTIMIZERS_H
#define TENON_OPTIM_OPTIMIZERS_H

#include "optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_adagrad_config {
    int        zero_;
    void      *module;
    double lr  TN_IS(1e-2);
    double     lr_decay;
    double     weight_decay; /* added to the gradient */
    double     initial;      /* where the sums of squares begin */
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

/* Sublinear memory: of a matrix's second moments the means of rows and columns are kept. As torch.optim.Adafactor: the
 * step is min(lr, 1/√t) times the root mean square of the weights. */
typedef struct tn_adafactor_config {
    int                zero_;
    void              *module;
    double lr          TN_IS(1e-2);
    double beta2_decay TN_IS(-0.8);
    double eps         TN_IS(-1), eps2 TN_IS(1e-3); /* eps below 0: the number type's epsilon */
    double d           TN_IS(1);                    /* updates with a larger root mean square are scaled down to it */
    double             weight_decay;                /* times lr off the weights */
    bool               maximize;
    tn_clip            clip;
    int                end_;
} TN_KEYWORDS_ONLY tn_adafactor_config;
#define TN_ADAFACTOR_DEFAULTS .lr = 1e-2, .beta2_decay = -0.8, .eps = -1, .eps2 = 1e-3, .d = 1
TN_API tn_optimizer *tn_adafactor_create(tn_adafactor_config c);

/* Adam whose step is, for each parameter, as long as lr times the parameter (You and others, 2020). */
typedef struct tn_lamb_config {
    int                 zero_;
    void               *module;
    double lr           TN_IS(1e-3);
    double beta1        TN_IS(0.9), beta2 TN_IS(0.999);
    double eps          TN_IS(1e-6);
    double weight_decay TN_IS(0.01); /* times the weights, added to the step */
    bool                maximize;
    tn_clip             clip;
    int                 end_;
} TN_KEYWORDS_ONLY tn_lamb_config;
#define TN_LAMB_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01
TN_API tn_optimizer *tn_lamb_create(tn_lamb_config c);

/* ---- averages of the weights ------------------------------------------------------------------------------------- */

/* After each step average += (1 - decay) (weight - average); the averages begin as the weights. Buffers are not
 * averaged.
 *
 *     tn_ema *ema = tn_ema_new(net, .decay = 0.999);
 *         tn_step(opt), tn_ema_update(ema);
 *     tn_ema_swap(ema);                                       // net computes with the averages ...
 *     tn_ema_swap(ema);                                       // ... and goes on learning */
typedef struct tn_ema tn_ema;
typedef struct tn_ema_config {
    int          zero_;
    void        *module;
    double decay TN_IS(0.999);
    bool         warmup; /* the decay of update t is at most (1 + t) / (10 + t), t from 0 */
    bool         mean; /* instead: plain means (averaged SGD) from tn_ema_begin on; until then the weights themselves */
    int          end_;
} TN_KEYWORDS_ONLY tn_ema_config;
#define TN_EMA_DEFAULTS .decay = 0.999
TN_API tn_ema   *tn_ema_create(tn_ema_config c);
TN_API void      tn_ema_free(tn_ema *e);
TN_API tn_status tn_ema_update(tn_ema *e);
TN_API tn_status tn_ema_begin(tn_ema *e); /* with .mean: the next update is the first of the mean */
TN_API bool      tn_ema_begun(const tn_ema *e);
TN_API tn_status tn_ema_swap(tn_ema *e); /* weights and averages change places; takes no memory */
TN_API bool      tn_ema_swapped(const tn_ema *e);
TN_API bool      tn_ema_has(const tn_ema *e, const tn_tensor *t); /* is t one of those that it averages? */

/* ---- for who steps another's optimizer: tn_fit, and one process of several (tn_replica) -------------------------- */

TN_API tn_clip   tn_optimizer_clip(const tn_optimizer *o);
TN_API int64_t   tn_optimizer_parts(const tn_optimizer *o); /* of a step, as tn_accumulate was told */
TN_API uint64_t  tn_optimizer_sum(const tn_optimizer *o); /* of its kind, its clip and its groups' options; 0 of NULL */
TN_API tn_status tn_step_share(tn_optimizer *o); /* tn_step; without any gradient counts and schedules go on alone */
/* Steps of t only elements from ... to - 1, and has only their state, from now on; 0 and tn_numel(t): all. Only
 * where each element is stepped for itself (SGD, Adam, RMSprop, Adagrad). What it has of the state goes along. */
TN_API tn_status tn_optimizer_share(tn_optimizer *o, const tn_tensor *t, int64_t from, int64_t to);
TN_API bool      tn_optimizer_by_element(const tn_optimizer *o);
/* What it has of one parameter's state, as bytes for this optimizer in another process: how many; to NULL: no more. */
TN_API int64_t   tn_optimizer_pack(const tn_optimizer *o, const tn_tensor *t, void *to);
TN_API tn_status tn_optimizer_unpack(tn_optimizer *o, const tn_tensor *t, const void *from, int64_t bytes);
TN_API void      tn_optimizer_forget(tn_optimizer *o, const tn_tensor *t); /* as before its first step */

#ifdef __cplusplus
}
#else
#define tn_adagrad_new(...) \
    TN_CALL_(tn_adagrad_create(TN_OF_MODULE_(tn_adagrad_config, TN_ADAGRAD_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#define tn_rmsprop_new(...) \
    TN_CALL_(tn_rmsprop_create(TN_OF_MODULE_(tn_rmsprop_config, TN_RMSPROP_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#define tn_adafactor_new(...) \
    TN_CALL_(tn_adafactor_create(TN_OF_MODULE_(tn_adafactor_config, TN_ADAFACTOR_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#define tn_lamb_new(...) \
    TN_CALL_(tn_lamb_create(TN_OF_MODULE_(tn_lamb_config, TN_LAMB_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#define tn_ema_new(...) TN_CALL_(tn_ema_create(TN_OF_MODULE_(tn_ema_config, TN_EMA_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#endif
#endif
