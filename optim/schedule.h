/* schedule.h — learning rate schedules. Part of optim.h: include that.
 *
 * The optimizer owns its schedules and frees them. A schedule sets the learning rate of all groups from their base
 * learning rate: when it is created (step 0) and at each tn_schedule_step. Values are PyTorch's. They are computed from
 * the step t alone, not from the previous value, so rounding errors do not accumulate. An optimizer has one active
 * schedule; join several with tn_chained_lr_new or tn_sequential_lr_new, which then own them as parts. */
#ifndef TENON_OPTIM_SCHEDULE_H
#define TENON_OPTIM_SCHEDULE_H

#include "../nn/nn.h"

TN_C_BEGIN_

struct tn_optimizer;
typedef struct tn_schedule tn_schedule;
enum { TN_MILESTONES = 32, TN_PARTS = 8 };

/* base · factor for the first `steps` steps, then base (ConstantLR). */
typedef struct tn_constant_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double factor        TN_IS(1.0 / 3);
    int64_t steps        TN_IS(5);
    int                  end_;
} TN_KEYWORDS_ONLY tn_constant_lr_config;
#define TN_CONSTANT_LR_DEFAULTS .factor = 1.0 / 3, .steps = 5
TN_API tn_schedule *tn_constant_lr_create(tn_constant_lr_config c);

/* Linear from base · start to base · end in `steps` steps (LinearLR). */
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

/* base · gamma^⌊t / size⌋ (StepLR). */
typedef struct tn_step_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              size;
    double gamma         TN_IS(0.1);
    int                  end_;
} TN_KEYWORDS_ONLY tn_step_lr_config;
#define TN_STEP_LR_DEFAULTS .gamma = 0.1
TN_API tn_schedule *tn_step_lr_create(tn_step_lr_config c);

/* base · gamma^(number of milestones ≤ t) (MultiStepLR). */
typedef struct tn_multi_step_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              milestones[TN_MILESTONES]; /* .milestones = {30, 80}; ends at the first 0 */
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

/* Half a cosine from base to min_lr in `steps` steps, then back to base, periodically (CosineAnnealingLR). */
typedef struct tn_cosine_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              steps;
    double               min_lr;
    int                  end_;
} TN_KEYWORDS_ONLY  tn_cosine_lr_config;
TN_API tn_schedule *tn_cosine_lr_create(tn_cosine_lr_config c);

/* Half a cosine from base to min_lr in `steps` steps, then a restart at base (CosineAnnealingWarmRestarts). Each period
 * is `times` as long as the one before. */
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

/* Up from max_lr / div to max_lr, then down to max_lr / div / final_div; momentum (or beta1) moves in the opposite
 * direction (OneCycleLR). A step t > steps is an error. */
typedef struct tn_one_cycle_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double               max_lr; /* 0: each group's base lr */
    int64_t              steps;
    double warmup        TN_IS(0.3); /* fraction of the steps in which the rate increases */
    bool                 straight, three_phase, no_momentum;
    double min_momentum  TN_IS(0.85), max_momentum TN_IS(0.95);
    double div           TN_IS(25), final_div TN_IS(1e4);
    int                  end_;
} TN_KEYWORDS_ONLY tn_one_cycle_lr_config;
#define TN_ONE_CYCLE_LR_DEFAULTS .warmup = 0.3, .min_momentum = 0.85, .max_momentum = 0.95, .div = 25, .final_div = 1e4
TN_API tn_schedule *tn_one_cycle_lr_create(tn_one_cycle_lr_config c);

/* Linear from 0 to base in `warmup` steps, then down to 0 at step `steps`, linear by default (BERT's schedule). */
typedef enum { TN_DECAY_LINEAR = 0, TN_DECAY_COSINE, TN_DECAY_NONE } tn_decay;
typedef struct tn_warmup_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t              warmup, steps;
    tn_decay             decay;
    int                  end_;
} TN_KEYWORDS_ONLY  tn_warmup_lr_config;
TN_API tn_schedule *tn_warmup_lr_create(tn_warmup_lr_config c);

/* base · factor · dim^-0.5 · min(t^-0.5, t · warmup^-1.5), from "Attention is all you need", for an optimizer with
 * .lr = 1. Step 0 has the value of step 1. */
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

/* base · t / warmup for t < warmup, then base · √(warmup / t): the Noam schedule with its maximum at base. */
typedef struct tn_inverse_sqrt_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    int64_t warmup       TN_IS(4000);
    int                  end_;
} TN_KEYWORDS_ONLY tn_inverse_sqrt_lr_config;
#define TN_INVERSE_SQRT_LR_DEFAULTS .warmup = 4000
TN_API tn_schedule *tn_inverse_sqrt_lr_create(tn_inverse_sqrt_lr_config c);

/* Multiplies the rate by `factor` when a metric stops improving (ReduceLROnPlateau); pass it to tn_plateau_step. */
typedef struct tn_plateau_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    double factor        TN_IS(0.1);
    int64_t patience     TN_IS(10);   /* number of values without improvement that are allowed before a reduction */
    double threshold     TN_IS(1e-4); /* minimum improvement, relative to the best value or .absolute */
    bool                 absolute;    /* threshold is absolute, not relative */
    bool                 rising;      /* larger values are better; default: smaller ones */
    int64_t              cooldown;    /* number of values ignored after a reduction */
    double               min_lr;      /* lower limit of the learning rate */
    double eps           TN_IS(1e-8); /* minimum decrease; smaller ones are skipped */
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

/* Applies all parts at each step: the learning rate of a part is the base of the next, so factors multiply. */
typedef struct tn_chained_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    tn_schedule         *parts[TN_PARTS]; /* .parts = {a, b} */
    int                  end_;
} TN_KEYWORDS_ONLY  tn_chained_lr_config;
TN_API tn_schedule *tn_chained_lr_create(tn_chained_lr_config c);

/* Runs one part after the other: part i + 1 starts at milestone i with its step 0. */
typedef struct tn_sequential_lr_config {
    int                  zero_;
    struct tn_optimizer *optimizer;
    tn_schedule         *parts[TN_PARTS];
    int64_t              milestones[TN_PARTS];
    int                  end_;
} TN_KEYWORDS_ONLY  tn_sequential_lr_config;
TN_API tn_schedule *tn_sequential_lr_create(tn_sequential_lr_config c);

/* ---- running ----------------------------------------------------------------------------------------------------- */

TN_API tn_status tn_schedule_step(tn_schedule *s); /* t += 1; call it after tn_step, or after an epoch */
TN_API tn_status tn_schedule_goto(tn_schedule *s, int64_t t);
/* From now on each update of the optimizer (tn_step) also steps s; tn_schedule_step is then an error. */
TN_API tn_status tn_schedule_follow(tn_schedule *s);
TN_API int64_t   tn_schedule_now(const tn_schedule *s);                      /* the current step t */
TN_API double    tn_schedule_lr(const tn_schedule *s, int64_t t, int group); /* the learning rate at step t */
TN_API void      tn_schedule_free(tn_schedule *s); /* optional, the optimizer frees it; keeps the current rate */
TN_API struct tn_optimizer *tn_schedule_optimizer(const tn_schedule *s);
TN_API bool                 tn_schedule_by_values(const tn_schedule *s); /* true for a plateau (tn_plateau_step) */

TN_C_END_

#define tn_constant_lr_new(...)     \
    TN_CALL_(tn_constant_lr_create( \
        TN_ARGS1_(tn_constant_lr_config, TN_CONSTANT_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_linear_lr_new(...) \
    TN_CALL_(                 \
        tn_linear_lr_create(TN_ARGS1_(tn_linear_lr_config, TN_LINEAR_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_step_lr_new(...) \
    TN_CALL_(tn_step_lr_create(TN_ARGS1_(tn_step_lr_config, TN_STEP_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_multi_step_lr_new(...)     \
    TN_CALL_(tn_multi_step_lr_create( \
        TN_ARGS1_(tn_multi_step_lr_config, TN_MULTI_STEP_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_exponential_lr_new(...)     \
    TN_CALL_(tn_exponential_lr_create( \
        TN_ARGS1_(tn_exponential_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, TN_END_)))
#define tn_polynomial_lr_new(...)     \
    TN_CALL_(tn_polynomial_lr_create( \
        TN_ARGS1_(tn_polynomial_lr_config, TN_POLYNOMIAL_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_cosine_lr_new(...) \
    TN_CALL_(tn_cosine_lr_create(TN_ARGS1_(tn_cosine_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, TN_END_)))
#define tn_cosine_restarts_lr_new(...)     \
    TN_CALL_(tn_cosine_restarts_lr_create( \
        TN_ARGS1_(tn_cosine_restarts_lr_config, TN_COSINE_RESTARTS_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_one_cycle_lr_new(...)     \
    TN_CALL_(tn_one_cycle_lr_create( \
        TN_ARGS1_(tn_one_cycle_lr_config, TN_ONE_CYCLE_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_warmup_lr_new(...) \
    TN_CALL_(tn_warmup_lr_create(TN_ARGS1_(tn_warmup_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, TN_END_)))
#define tn_noam_lr_new(...) \
    TN_CALL_(tn_noam_lr_create(TN_ARGS1_(tn_noam_lr_config, TN_NOAM_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_inverse_sqrt_lr_new(...)     \
    TN_CALL_(tn_inverse_sqrt_lr_create( \
        TN_ARGS1_(tn_inverse_sqrt_lr_config, TN_INVERSE_SQRT_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_plateau_lr_new(...)     \
    TN_CALL_(tn_plateau_lr_create( \
        TN_ARGS1_(tn_plateau_lr_config, TN_PLATEAU_LR_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#define tn_lambda_lr_new(...) \
    TN_CALL_(tn_lambda_lr_create(TN_ARGS1_(tn_lambda_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, TN_END_)))
#define tn_chained_lr_new(...) \
    TN_CALL_(tn_chained_lr_create(TN_ARGS1_(tn_chained_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, TN_END_)))
#define tn_sequential_lr_new(...) \
    TN_CALL_(                     \
        tn_sequential_lr_create(TN_ARGS1_(tn_sequential_lr_config, TN_NO_DEFAULTS_, optimizer, __VA_ARGS__, TN_END_)))

#endif
