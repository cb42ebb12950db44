/* schedule.h — how the learning rate goes over the steps. Part of optim.h: include that.
 *
 * A schedule belongs to its optimizer, which frees it, and sets the learning rate of all its groups from their base
 * learning rate: when it is made (step 0) and at each tn_schedule_step. Values are PyTorch's, computed for each step
 * anew, not from the step before: so nothing drifts. An optimizer follows one schedule: several are joined by
 * tn_chained_lr_new or tn_sequential_lr_new, and are parts of that from then on. */
#ifndef TENON_OPTIM_SCHEDULE_H
#define TENON_OPTIM_SCHEDULE_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tn_optimizer;
typedef struct tn_schedule tn_schedule;
enum { TN_MILESTONES = 32, TN_PARTS = 8 };

/* base · factor for the first steps, then base (ConstantLR). */
typedef struct tn_constant_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double factor        TN_IS(1.0 / 3);
    int64_t steps        TN_IS(5);
    int                  end_;
} TN_KEYWORDS_ONLY tn_constant_lr_config;
#define TN_CONSTANT_LR_DEFAULTS .factor = 1.0 / 3, .steps = 5
TN_API tn_schedule *tn_constant_lr_create(tn_constant_lr_config c);

/* From base · start to base · end in a straight line (LinearLR). */
typedef struct tn_linear_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double start         TN_IS(1.0 / 3);
    double end           TN_IS(1);
    int64_t steps        TN_IS(5);
    int                  end_;
} TN_KEYWORDS_ONLY tn_linear_lr_config;
#define TN_LINEAR_LR_DEFAULTS .start = 1.0 / 3, .end = 1, .steps = 5
TN_API tn_schedule *tn_linear_lr_create(tn_linear_lr_config c);

/* base · gamma^(t / size, rounded down) (StepLR). */
typedef struct tn_step_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              size;
    double gamma         TN_IS(0.1);
    int                  end_;
} TN_KEYWORDS_ONLY tn_step_lr_config;
#define TN_STEP_LR_DEFAULTS .gamma = 0.1
TN_API tn_schedule *tn_step_lr_create(tn_step_lr_config c);

/* base · gamma^(how many milestones are reached) (MultiStepLR). */
typedef struct tn_multi_step_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              milestones[TN_MILESTONES]; /* .milestones = {30, 80}; the first 0 ends them */
    double gamma         TN_IS(0.1);
    int                  end_;
} TN_KEYWORDS_ONLY tn_multi_step_lr_config;
#define TN_MULTI_STEP_LR_DEFAULTS .gamma = 0.1
TN_API tn_schedule *tn_multi_step_lr_create(tn_multi_step_lr_config c);

/* base · gamma^t (ExponentialLR). */
typedef struct tn_exponential_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double               gamma;
    int                  end_;
} TN_KEYWORDS_ONLY  tn_exponential_lr_config;
TN_API tn_schedule *tn_exponential_lr_create(tn_exponential_lr_config c);

/* base · (1 - t / steps)^power, then 0 (PolynomialLR). */
typedef struct tn_polynomial_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t steps        TN_IS(5);
    double power         TN_IS(1);
    int                  end_;
} TN_KEYWORDS_ONLY tn_polynomial_lr_config;
#define TN_POLYNOMIAL_LR_DEFAULTS .steps = 5, .power = 1
TN_API tn_schedule *tn_polynomial_lr_create(tn_polynomial_lr_config c);

/* Half a cosine from base to min_lr in `steps` steps; then up again, and so on (CosineAnnealingLR). */
typedef struct tn_cosine_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              steps;
    double               min_lr;
    int                  end_;
} TN_KEYWORDS_ONLY  tn_cosine_lr_config;
TN_API tn_schedule *tn_cosine_lr_create(tn_cosine_lr_config c);

/* The same, but back at base after `steps` steps; each round is `times` as long (CosineAnnealingWarmRestarts). */
typedef struct tn_cosine_restarts_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              steps;
    int64_t times        TN_IS(1);
    double               min_lr;
    int                  end_;
} TN_KEYWORDS_ONLY tn_cosine_restarts_lr_config;
#define TN_COSINE_RESTARTS_LR_DEFAULTS .times = 1
TN_API tn_schedule *tn_cosine_restarts_lr_create(tn_cosine_restarts_lr_config c);

/* Up from max / div to max, down to max / div / final_div; momentum (or beta1) the other way (OneCycleLR). A step
 * beyond the end is an error. */
typedef struct tn_one_cycle_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double               max_lr; /* each group's base lr */
    int64_t              steps;
    double warmup        TN_IS(0.3); /* that part of the steps goes up */
    bool                 straight, three_phase, no_momentum;
    double min_momentum  TN_IS(0.85), max_momentum TN_IS(0.95);
    double div           TN_IS(25), final_div TN_IS(1e4);
    int                  end_;
} TN_KEYWORDS_ONLY tn_one_cycle_lr_config;
#define TN_ONE_CYCLE_LR_DEFAULTS .warmup = 0.3, .min_momentum = 0.85, .max_momentum = 0.95, .div = 25, .final_div = 1e4
TN_API tn_schedule *tn_one_cycle_lr_create(tn_one_cycle_lr_config c);

/* Up from 0 to base in `warmup` steps, then to 0 at `steps` in a straight line: what BERT is trained with. */
typedef enum { TN_DECAY_LINEAR = 0, TN_DECAY_COSINE, TN_DECAY_NONE } tn_decay;
typedef struct tn_warmup_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              warmup, steps;
    tn_decay             decay;
    int                  end_;
} TN_KEYWORDS_ONLY  tn_warmup_lr_config;
TN_API tn_schedule *tn_warmup_lr_create(tn_warmup_lr_config c);

/* base · factor · dim^-0.5 · min(t^-0.5, t · warmup^-1.5): "Attention is all you need", for an optimizer with .lr = 1.
 * t counts from 1, and step 0 is as step 1. */
typedef struct tn_noam_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              dim;
    int64_t warmup       TN_IS(4000);
    double factor        TN_IS(1);
    int                  end_;
} TN_KEYWORDS_ONLY tn_noam_lr_config;
#define TN_NOAM_LR_DEFAULTS .warmup = 4000, .factor = 1
TN_API tn_schedule *tn_noam_lr_create(tn_noam_lr_config c);

/* The same shape with its peak at base: base · t / warmup, then base · √(warmup / t). */
typedef struct tn_inverse_sqrt_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t warmup       TN_IS(4000);
    int                  end_;
} TN_KEYWORDS_ONLY tn_inverse_sqrt_lr_config;
#define TN_INVERSE_SQRT_LR_DEFAULTS .warmup = 4000
TN_API tn_schedule *tn_inverse_sqrt_lr_create(tn_inverse_sqrt_lr_config c);

/* Times `factor` whenever a value has stopped improving (ReduceLROnPlateau): tn_plateau_step tells it the value. */
typedef struct tn_plateau_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double factor        TN_IS(0.1);
    int64_t patience     TN_IS(10);   /* so many values without improvement are borne */
    double threshold     TN_IS(1e-4); /* the least improvement, relative to the best ... */
    bool                 absolute;    /* ... or not */
    bool                 rising;      /* larger is better */
    int64_t              cooldown;    /* so many values are not counted after a reduction */
    double               min_lr;
    double eps           TN_IS(1e-8); /* a smaller change is not made */
    int                  end_;
} TN_KEYWORDS_ONLY tn_plateau_lr_config;
#define TN_PLATEAU_LR_DEFAULTS .factor = 0.1, .patience = 10, .threshold = 1e-4, .eps = 1e-8
TN_API tn_schedule *tn_plateau_lr_create(tn_plateau_lr_config c);
TN_API tn_status    tn_plateau_step(tn_schedule *s, double value);

/* base · factor(t, group, user) (LambdaLR). */
typedef double (*tn_lr_factor)(int64_t t, int group, void *user);
typedef struct tn_lambda_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    tn_lr_factor         factor;
    void                *user;
    int                  end_;
} TN_KEYWORDS_ONLY  tn_lambda_lr_config;
TN_API tn_schedule *tn_lambda_lr_create(tn_lambda_lr_config c);

/* All parts at once, each taking the learning rate of the one before for its base: factors multiply. */
typedef struct tn_chained_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    tn_schedule         *parts[TN_PARTS]; /* .parts = {a, b} */
    int                  end_;
} TN_KEYWORDS_ONLY  tn_chained_lr_config;
TN_API tn_schedule *tn_chained_lr_create(tn_chained_lr_config c);

/* One part after the other: the next begins, at its step 0, with each milestone. */
typedef struct tn_sequential_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    tn_schedule         *parts[TN_PARTS];
    int64_t              milestones[TN_PARTS];
    int                  end_;
} TN_KEYWORDS_ONLY  tn_sequential_lr_config;
TN_API tn_schedule *tn_sequential_lr_create(tn_sequential_lr_config c);

/* ---- running ----------------------------------------------------------------------------------------------------- */

TN_API tn_status tn_schedule_step(tn_schedule *s); /* after tn_step, or after an epoch */
TN_API tn_status tn_schedule_goto(tn_schedule *s, int64_t t);
/* Each tn_step of the optimizer that takes effect is followed by a step of s: do not step it yourself then. */
TN_API tn_status tn_schedule_follow(tn_schedule *s);
TN_API int64_t   tn_schedule_now(const tn_schedule *s);                      /* t */
TN_API double    tn_schedule_lr(const tn_schedule *s, int64_t t, int group); /* what it will be at step t */
TN_API void      tn_schedule_free(tn_schedule *s); /* before its optimizer: only if it must; the rate stays as it is */
/* Whose rate it sets; and does it go by values, with tn_plateau_step, not by steps? */
TN_API struct tn_optimizer *tn_schedule_optimizer(const tn_schedule *s);
TN_API bool                 tn_schedule_by_values(const tn_schedule *s);

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
#define tn_constant_lr_new(...)     \
    TN_CALL_(tn_constant_lr_create( \
        TN_ARGS1_(tn_constant_lr_config, TN_CONSTANT_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_linear_lr_new(...)     \
    TN_CALL_(tn_linear_lr_create( \
        TN_ARGS1_(tn_linear_lr_config, TN_LINEAR_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_step_lr_new(...) \
    TN_CALL_(tn_step_lr_create(TN_ARGS1_(tn_step_lr_config, TN_STEP_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_multi_step_lr_new(...)     \
    TN_CALL_(tn_multi_step_lr_create( \
        TN_ARGS1_(tn_multi_step_lr_config, TN_MULTI_STEP_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_exponential_lr_new(...)     \
    TN_CALL_(tn_exponential_lr_create( \
        TN_ARGS1_(tn_exponential_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_polynomial_lr_new(...)     \
    TN_CALL_(tn_polynomial_lr_create( \
        TN_ARGS1_(tn_polynomial_lr_config, TN_POLYNOMIAL_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_cosine_lr_new(...) \
    TN_CALL_(tn_cosine_lr_create(TN_ARGS1_(tn_cosine_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_cosine_restarts_lr_new(...)     \
    TN_CALL_(tn_cosine_restarts_lr_create( \
        TN_ARGS1_(tn_cosine_restarts_lr_config, TN_COSINE_RESTARTS_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_one_cycle_lr_new(...)     \
    TN_CALL_(tn_one_cycle_lr_create( \
        TN_ARGS1_(tn_one_cycle_lr_config, TN_ONE_CYCLE_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_warmup_lr_new(...) \
    TN_CALL_(tn_warmup_lr_create(TN_ARGS1_(tn_warmup_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_noam_lr_new(...) \
    TN_CALL_(tn_noam_lr_create(TN_ARGS1_(tn_noam_lr_config, TN_NOAM_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_inverse_sqrt_lr_new(...)     \
    TN_CALL_(tn_inverse_sqrt_lr_create( \
        TN_ARGS1_(tn_inverse_sqrt_lr_config, TN_INVERSE_SQRT_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_plateau_lr_new(...)     \
    TN_CALL_(tn_plateau_lr_create( \
        TN_ARGS1_(tn_plateau_lr_config, TN_PLATEAU_LR_DEFAULTS, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_lambda_lr_new(...) \
    TN_CALL_(tn_lambda_lr_create(TN_ARGS1_(tn_lambda_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_chained_lr_new(...) \
    TN_CALL_(tn_chained_lr_create(TN_ARGS1_(tn_chained_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, .zero_ = 0)))
#define tn_sequential_lr_new(...)     \
    TN_CALL_(tn_sequential_lr_create( \
        TN_ARGS1_(tn_sequential_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, .zero_ = 0)))
#endif

#endif
