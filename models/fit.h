/* fit.h — the training loop: steps, validation, early stopping, checkpoints, resuming an interrupted run. Part of
 * models.h: include that.
 *
 *     static tn_tensor *loss(void *module, const tn_batch *b, void *user)
 *     {
 *         return tn_cross_entropy(tn_call((tn_sequential *)module, b->x), b->y);
 *     }
 *
 *     static void report(const tn_fit_event *e, void *user)
 *     {
 *         if (e->what == TN_FIT_VALID) printf("step %lld: %.4f\n", (long long)e->step, e->value);
 *     }
 *
 *         tn_dataset *train = tn_dataset_new(.x = x, .y = y, .batch = 32, .shuffle = true);
 *         tn_dataset *valid = tn_dataset_new(.x = vx, .y = vy, .batch = 256);
 *         tn_fit_result r = tn_fit(net, .train = tn_dataset_source(train), .loss = loss, .lr = 3e-4, .epochs = 40,
 *                                  .valid = tn_dataset_source(valid), .patience = 3, .restore_best = true,
 *                                  .folder = "run", .resume = true, .on = report);
 *         if (r.why == TN_FIT_FAILED) fprintf(stderr, "%s\n", tn_error_message());
 *
 * It prints nothing and handles no signals: the program does, with .on and .stop. A run that is interrupted and resumed
 * gives the same bits as one that is not. A failed step changes nothing except the statistics of batch norms. */
#ifndef TENON_MODELS_FIT_H
#define TENON_MODELS_FIT_H

#include "../parallel/parallel.h" /* with data/source.h and optim/optim.h */

#include <signal.h>

TN_C_BEGIN_

/* ---- events ------------------------------------------------------------------------------------------------------ */

typedef enum {
    TN_FIT_START, /* once, before the first step: step is the number of steps already done */
    TN_FIT_STEP,  /* after each step                                                       */
    TN_FIT_VALID, /* after each validation: value, improved                                */
    TN_FIT_SAVED, /* after each training checkpoint: text is its path                      */
    TN_FIT_NOTE,  /* a message for the user: text                                          */
    TN_FIT_END    /* once, also after a failure (then an error is set)                     */
} tn_fit_what;

typedef struct {
    tn_fit_what what;
    int64_t     step, steps; /* steps done, steps in all; 0: not known */
    int64_t     epoch;       /* epochs done */
    int64_t     items;       /* items in the batches of this step; at TN_FIT_END: of this call */
    double      loss;        /* loss of the last step: the mean over its parts */
    double      lr, norm;    /* of the last step: learning rate; gradient norm before clipping, NaN if not measured */
    double      seconds;     /* since tn_fit was called */
    double      value, best; /* value of the last validation, best value; NaN before the first */
    double      measured;    /* mean over .valid in this call's last validation; value may be .score's instead */
    int64_t     best_step;
    bool        improved;
    const char *text;
    void       *module;
} tn_fit_event;
typedef void (*tn_fit_listener)(const tn_fit_event *e, void *user); /* an error raised here ends the run */

typedef enum {
    TN_FIT_FAILED = 0, /* an error is set                                       */
    TN_FIT_DONE,       /* all steps or epochs are done                          */
    TN_FIT_PATIENCE,   /* .patience validations without improvement             */
    TN_FIT_ENOUGH,     /* a validation reached .enough                          */
    TN_FIT_STOPPED     /* *.stop was set                                        */
} tn_fit_why;
TN_API const char *tn_fit_why_text(tn_fit_why why); /* "stopped" */

typedef struct {
    tn_fit_why why;
    int64_t    steps, epochs; /* done in all, including the runs that this call resumed */
    int64_t    begin;         /* steps done before this call: 0 for a new run */
    double     loss;          /* of the last step; NaN without a step */
    double     value, best;   /* of the last and the best validation; NaN without a validation */
    int64_t    best_step;
    double     seconds;
} tn_fit_result;

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

typedef tn_tensor *(*tn_fit_loss)(void *module, const tn_batch *b, void *user); /* one element, to be minimised */
typedef double (*tn_fit_score)(void *module, void *user); /* a metric of a whole validation set, as BLEU */

/* Called with the gradients of step `step` (from 1) after the backward pass, before clipping and the optimizer's step;
 * may change them, for example sum them over machines. Not TN_OK: an error is set, and the run ends before the step. */
typedef tn_status (*tn_fit_exchange)(void *module, tn_optimizer *o, int64_t step, void *user);

typedef struct tn_fit_args {
    int                zero_;
    void              *module;
    tn_source          train;
    tn_fit_loss        loss;
    void              *user;          /* passed to loss, measure and score */
    int64_t            steps, epochs; /* one of them, or both: the first reached ends the run */
    int64_t accumulate TN_IS(1);      /* batches per step, one mean (.weight); a rest after .epochs makes no step */
    bool               autocast;      /* loss runs in bf16 where that is safe: see tn_autocast_begin */
    /* Maximum live memory in bytes, 0: none. Layers that do not fit are recomputed in the backward (tn_budget): same
     * bits. A TN_FIT_NOTE states the number. If a step cannot fit, the run ends before it. Not with .world. */
    size_t          memory;
    tn_fit_exchange exchange;
    void           *exchange_user;
    /* Several ranks: all call tn_fit with the same arguments. They split each batch into .shards parts; only rank 0
     * writes. The same .shards give the same bits for any number of ranks. The loss is the mean over a batch's rows. */
    tn_world  *world;
    int shards TN_IS(12); /* at least the number of ranks; in place of .accumulate use larger batches and more shards */
    bool       zero;      /* ZeRO-1: each rank holds a part of the optimizer's state: see tn_replica_config */
    /* Optimizer. NULL: that of .make, or AdamW, without decay of biases and norms, with clipped gradients; the learning
     * rate rises to lr in `warmup` steps, then falls as `decay` specifies, to 0 at the last step. */
    tn_optimizer *optimizer;
    tn_optimizer *(*make)(const struct tn_fit_args *a); /* makes one with a's module, lr, weight_decay and clip */
    tn_schedule        *schedule;                       /* for .optimizer; advances at each step from now on */
    tn_schedule        *plateau;     /* for .optimizer, with or without .schedule: receives each validation's value */
    tn_ema             *ema;         /* updated at each step; validation uses the averages */
    double lr           TN_IS(1e-3); /* .lr to .decay: only without .optimizer */
    double weight_decay TN_IS(0.01);
    double clip         TN_IS(1);  /* maximum norm of all gradients; 0: no limit */
    int64_t warmup      TN_IS(-1); /* steps; -1: 5 % of the steps */
    tn_decay            decay;     /* ignored (TN_DECAY_NONE) if the number of steps is not known */
    /* Validation: in eval mode, without a tape, with its own random generator: it does not affect training. */
    tn_source    valid;        /* must be finite; its .user or .next differs from .train's */
    tn_fit_loss  measure;      /* the function to validate; NULL: the loss */
    tn_fit_score score;        /* the value to compare, instead of the mean of measure; works without .valid */
    bool         rising;       /* larger is better */
    int64_t      valid_every;  /* steps; 0: after each epoch. Also at the end */
    int64_t      patience;     /* validations without improvement before the run ends; 0: no limit */
    double       enough;       /* a value at least this good ends the run; 0: none does */
    double       min_delta;    /* minimum improvement over the best value, exclusive; 0 for .enough */
    bool         restore_best; /* at the end load the weights (with .ema: the averages) of the best value */

    /* A folder of training checkpoints, step-000000001200.ckpt, best.safetensors, the best state dict (with adapters
     * what is trained), and record.jsonl, which a repeated run writes with the same lines. One run may use it. A
     * checkpoint at step 0 tests the disk. */
    const char  *folder;
    int64_t      save_every; /* steps; 0: after each validation. Also at the end */
    int64_t keep TN_IS(2);   /* newest checkpoints to keep. One written because of .stop is deleted with the next */
    bool         resume;     /* continue from the newest intact checkpoint, if any; false: a used folder is an error */
    const char  *config;     /* JSON: the model's configuration. A resumed run must have the same one */
    /* A resumed run may have other .steps or .lr; an .optimizer and its .ema get the checkpoint's values. */
    tn_fit_listener              on;
    void                        *on_user;
    const volatile sig_atomic_t *stop; /* read after each step and validation batch; not 0: save and end */
    int                          end_;
} TN_KEYWORDS_ONLY tn_fit_args;
#define TN_FIT_ARGS_DEFAULTS \
    .accumulate = 1, .shards = 12, .lr = 1e-3, .weight_decay = 0.01, .clip = 1, .warmup = -1, .keep = 2
TN_API tn_fit_result tn_fit_run(tn_fit_args c);
TN_API tn_optimizer *tn_fit_adamw(const tn_fit_args *a); /* for .make: the default */
TN_API tn_optimizer *tn_fit_muon(const tn_fit_args *a);  /* Muon; an lr that suits AdamW suits it, too */

TN_C_END_
#define tn_fit(...) TN_CALL_(tn_fit_run(TN_OF_MODULE_(tn_fit_args, TN_FIT_ARGS_DEFAULTS, __VA_ARGS__, TN_END_)))
#define tn_fit(...) TN_CALL_(tn_fit_run(TN_OF_MODULE_(tn_fit_args, TN_FIT_ARGS_DEFAULTS, __VA_ARGS__, TN_END_)))

#endif
