/* verify.h — repeats parts of a run that tn_fit made in a folder, and compares their bits. Part of models.h: include
 * that.
 *
 *     tn_fit_args run = TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .module = net, .steps = 1000, .save_every = 50,
 *                               .keep = 20, .folder = "run"); // and .train, .loss
 *     // tn_fit_run(run) made the run, from the same initial weights and the same current generator as here
 *     tn_verify_result v = tn_verify(&run, .segments = 4);
 *     if (v.why == TN_VERIFY_DIFFERS) printf("differs at step %lld: %s: %s\n", (long long)v.step, v.input, v.text);
 *
 * A run of tn_fit with a .folder writes record.jsonl there: its arguments, and for each step a sum of the batch, the
 * loss and the learning rate, for each validation its value, for each training checkpoint sums of the weights, the
 * optimizer's state and the generators (models/fit/fit_record.c has the format). A segment is the part of a run from
 * one training checkpoint to the next. It is repeated from the newest checkpoint before it that is still in the folder,
 * or from the beginning, so that a run with a larger .keep can be verified in parts. The result does not depend on the
 * number of threads, nor on the number of ranks that made the run. Nothing in the folder is changed. */
#ifndef TENON_MODELS_VERIFY_H
#define TENON_MODELS_VERIFY_H

#include "fit.h"

TN_C_BEGIN_

/* What will be repeated. Training took about as long for a step as verifying it will. */
typedef struct {
    int64_t segments, segments_in_all; /* chosen; of the run */
    int64_t steps, steps_in_all;       /* to repeat, with those that lead to a segment; of the run */
    int64_t last;                      /* the last step of the run */
    const int64_t (*segment)[2];       /* first and last step of each chosen segment; valid during the call */
} tn_verify_plan;
typedef void (*tn_verify_listener)(const tn_verify_plan *p, void *user); /* an error raised here ends the call */

typedef struct tn_verify_args {
    int zero_;
    /* The arguments of tn_fit that made the run, with the module as it was before the first step. The listener .on gets
     * the events of the repeated steps. .resume, .keep and .memory have no effect; .world may have one rank. */
    const tn_fit_args *run;
    int64_t            segments; /* number of segments, chosen at random; 0: all */
    uint64_t           seed;     /* of the choice; 0: from the clock */
    bool               whole;    /* repeat from the first step, not from training checkpoints */
    tn_verify_listener plan;     /* called once, before the first step; may be NULL */
    void              *plan_user;
    int                end_;
} TN_KEYWORDS_ONLY tn_verify_args;

typedef enum {
    TN_VERIFY_FAILED = 0, /* an error is set: for example a file is missing, or was made by another version */
    TN_VERIFY_IDENTICAL,  /* the module now has the weights that tn_fit ended with */
    TN_VERIFY_DIFFERS,
    TN_VERIFY_STOPPED /* *.stop of the run's arguments was set */
} tn_verify_why;
typedef struct {
    tn_verify_why why;
    int64_t       segments, steps; /* repeated */
    int64_t       step;            /* DIFFERS: the first step that differs; 0: the state before the first one */
    /* DIFFERS: "data", "configuration", "learning rate", "weights", "optimizer", "random generator", or "record" (a
     * line of record.jsonl was changed or removed); and a description. Else "". */
    const char *input;
    char        text[400];
} tn_verify_result;
TN_API tn_verify_result tn_verify_run(tn_verify_args a);

TN_C_END_
#define tn_verify(...) TN_CALL_(tn_verify_run(TN_ARGS1_(tn_verify_args, TN_NO_DEFAULTS_, run, __VA_ARGS__, TN_END_)))

#endif
