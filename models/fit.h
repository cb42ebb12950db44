/* fit.h — the training loop that every program needs: steps, validation, early stopping, checkpoints, going on where a
 * run was broken off. Part of models.h: include that.
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
 * It prints nothing and handles no signals: the program does, by .on and .stop. A run that is broken off and resumed
 * ends with the bits of an unbroken one. A step that fails changes nothing but the statistics of a batch norm. */
#ifndef TENON_MODELS_FIT_H
#define TENON_MODELS_FIT_H

#include "../parallel/parallel.h" /* with data/source.h and optim/optim.h */

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is told ------------------------------------------------------------------------------------------------ */

typedef enum {
    TN_FIT_START, /* once, before the first step: step says where it begins                */
    TN_FIT_STEP,  /* after each step                                                       */
    TN_FIT_VALID, /* after each validation: value, improved                                */
    TN_FIT_SAVED, /* after each checkpoint: text is its path                               */
    TN_FIT_NOTE,  /* something a person should know: text says it                          */
    TN_FIT_END    /* once, also after a failure (then an error stands)                     */
} tn_fit_what;

typedef struct {
    tn_fit_what what;
    int64_t     step, steps; /* done, and to be done in all; 0: not known */
    int64_t     epoch;       /* epochs done */
    int64_t     items;       /* in the batches of this step; at TN_FIT_END: of this call */
    double      loss;        /* of the last step: the mean over its parts */
    double      lr, norm;    /* of the last step; norm: of the gradients before clipping, NaN if not measured */
    double      seconds;     /* since tn_fit was called */
    double      value, best; /* of the last validation, and of the best; NaN before the first */
    double      measured;    /* of the last one in this call: the mean over .valid, which .score may not be */
    int64_t     best_step;
    bool        improved;
    const char *text;
    void       *module;
} tn_fit_event;
typedef void (*tn_fit_listener)(const tn_fit_event *e, void *user); /* an error raised here ends the run */

typedef enum {
    TN_FIT_FAILED = 0, /* an error stands, and says what to do                  */
    TN_FIT_DONE,       /* all steps or epochs are done                          */
    TN_FIT_PATIENCE,   /* validation has not improved for .patience times       */
    TN_FIT_ENOUGH,     /* a validation was as good as .enough                   */
    TN_FIT_STOPPED     /* *.stop was set                                        */
} tn_fit_why;
TN_API const char *tn_fit_why_text(tn_fit_why why); /* "stopped" */

typedef struct {
    tn_fit_why why;
    int64_t    steps, epochs; /* done, those of earlier calls that this one went on from included */
    int64_t    begin;         /* the step that this call began from: 0 for a new run */
    double     loss;          /* of the last step; NaN if there was none */
    double     value, best;   /* of the last and the best validation; NaN if there was none */
    int64_t    best_step;
    double     seconds;
} tn_fit_result;

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

typedef tn_tensor *(*tn_fit_loss)(void *module, const tn_batch *b, void *user); /* one number, to be made smaller */
typedef double (*tn_fit_score)(void *module, void *user); /* of all that there is to validate on: BLEU, say */

/* Sees the gradients of step `step` (from 1) behind the backward pass, before they are clipped and the optimizer steps;
 * may change them, sum them over machines, say. Not TN_OK: an error stands, and the run ends before that step. */
typedef tn_status (*tn_fit_exchange)(void *module, tn_optimizer *o, int64_t step, void *user);

typedef struct tn_fit_args {
    int                zero_;
    void              *module;
    tn_source          train;
    tn_fit_loss        loss;
    void              *user;          /* for loss, measure and score */
    int64_t            steps, epochs; /* one of them, or both: what comes first ends the run */
    int64_t accumulate TN_IS(1);      /* batches to a step, one mean (.weight); what is left after .epochs makes none */
    bool               autocast;      /* loss runs in bf16 where that is safe: see tn_autocast_begin */
    tn_fit_exchange    exchange;
    void              *exchange_user;
    /* Several ranks: all call tn_fit alike. They share out the .shards parts of each batch, rank 0 alone writes, and
     * the same .shards make the same bits for any number of ranks. The loss is then the mean over the batch's items. */
    tn_world  *world;
    int shards TN_IS(12); /* at least one for each rank; instead of .accumulate: larger batches and more shards */
    bool       zero;      /* each rank has the optimizer's state of a share of the parameters: tn_replica_config */
    bool       zero3;     /* and keeps a part of the weights; not with .ema, which reads all of them at each step */
    /* Who steps. Without an optimizer: AdamW with no decay on biases and norms, gradients clipped, and the rate going
     * up to lr in `warmup` steps, then down as `decay` says, to 0 at the last step. */
    tn_optimizer       *optimizer;
    tn_schedule        *schedule;    /* of the optimizer, whose steps it follows from now on */
    tn_schedule        *plateau;     /* of the optimizer, instead or besides: gets each validation's value */
    tn_ema             *ema;         /* goes on with each step; validation computes with the averages */
    double lr           TN_IS(1e-3); /* these only without an optimizer */
    double weight_decay TN_IS(0.01);
    double clip         TN_IS(1);  /* the norm of all gradients; 0: any */
    int64_t warmup      TN_IS(-1); /* -1: 5 % of the steps */
    tn_decay            decay;     /* where the number of steps is not known: TN_DECAY_NONE is what happens */
    /* Validation: in eval mode, off the tape, with draws of its own: training does not notice it. */
    tn_source    valid;        /* which comes to an end; with a .user that is not .train's, or another next */
    tn_fit_loss  measure;      /* what is validated; NULL: the loss */
    tn_fit_score score;        /* what says which is the best, instead of the mean of measure; needs no .valid */
    bool         rising;       /* larger is better */
    int64_t      valid_every;  /* steps; 0: after each epoch. And at the end */
    int64_t      patience;     /* 0: no end */
    double       enough;       /* a value as good as this ends the run; 0: none does */
    double       min_delta;    /* what counts as better is better by more than this */
    bool         restore_best; /* at the end the module has the weights (with .ema: the averages) of the best value */

    /* A folder of checkpoints, step-000000001200.ckpt, and best.safetensors, the state dict of the best validation. One
     * run at a time may use it. The first is written before the first step: so a full disk is found at once. */
    const char  *folder;
    int64_t      save_every; /* steps; 0: after each validation. And at the end */
    int64_t keep TN_IS(2);   /* the newest. One that a stop made goes when the next is written */
    bool         resume;     /* go on from the newest that is whole, if there is one; else a folder in use is refused */
    const char  *config;     /* JSON: what the model is made from. To resume, it must be the same */
    /* To go on with more .steps or another .lr, just say so; an .optimizer, and its .ema, have the checkpoint's. */
    tn_fit_listener              on;
    void                        *on_user;
    const volatile sig_atomic_t *stop; /* looked at after each step and batch of validation; not 0: save and end */
    int                          end_;
} TN_KEYWORDS_ONLY tn_fit_args;
#define TN_FIT_ARGS_DEFAULTS \
    .accumulate = 1, .shards = 12, .lr = 1e-3, .weight_decay = 0.01, .clip = 1, .warmup = -1, .keep = 2
TN_API tn_fit_result tn_fit_run(tn_fit_args c);

#ifdef __cplusplus
}
#else
#define tn_fit(...) TN_CALL_(tn_fit_run(TN_OF_MODULE_(tn_fit_args, TN_FIT_ARGS_DEFAULTS, __VA_ARGS__, .zero_ = 0)))
#endif

#endif
