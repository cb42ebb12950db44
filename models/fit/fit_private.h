/* fit_private.h — shared by the files of the training loop. */
#ifndef TENON_MODELS_FIT_FIT_PRIVATE_H
#define TENON_MODELS_FIT_FIT_PRIVATE_H

#include "core/base/toolbox.h"
#include "models/models.h"

#include <math.h>
#include <string.h>

/* ---- record.jsonl, what each step computed (fit_record.c) -------------------------------------------------------- */

typedef enum {
    TN__RUN = 0,    /* the arguments of a call of tn_fit, from this step on */
    TN__ENTRY_STEP, /* value: its loss; lr; sums[0]: of its batch, 0: not known */
    TN__VALID,      /* value */
    TN__BEST,       /* sums[0]: of the best weights */
    TN__POINT       /* a training checkpoint: sums of weights, optimizer and generators */
} tn__run_entry_kind;
typedef struct {
    tn__run_entry_kind kind;
    bool               end; /* a point because of .stop, or at the end of a run */
    int64_t            step;
    double             value, lr;
    uint64_t           sums[3];
} tn__run_entry;

/* ---- the folder of training checkpoints (fit_folder.c) ----------------------------------------------------------- */

enum { TN__FILE_ROOM = 1024 };

typedef struct {
    const char *path;
    int         lock; /* descriptor of the locked file; -1: none */
} tn__folder;
bool    tn__folder_open(tn__folder *f, const char *path); /* creates it if missing; raises, also if it is in use */
void    tn__folder_close(tn__folder *f);
int64_t tn__folder_newest(const tn__folder *f, int64_t below); /* the largest step below; -1: none, or raised */
/* Deletes checkpoint `between` (-1: none), all beyond `step`, and of the others all but the newest `keep`. */
void        tn__folder_prune(const tn__folder *f, int64_t step, int64_t keep, int64_t unscheduled);
const char *tn__folder_file(const tn__folder *f, int64_t step, char to[TN__FILE_ROOM]);
const char *tn__folder_best(const tn__folder *f, char to[TN__FILE_ROOM]);
const char *tn__folder_record(const tn__folder *f, char to[TN__FILE_ROOM]);

/* The last of the lines to write: the point of a resumed run, which is removed as soon as the run continues. */
typedef struct {
    size_t   bytes;
    uint64_t chain; /* before it */
} tn__pending;

typedef struct tn__fit tn__fit;

/* ---- one call of tn_fit ------------------------------------------------------------------------------------------ */

struct tn__fit {
    tn_fit_args     c;
    tn_fit_result   r;
    tn__folder      folder;
    tn_optimizer   *own;      /* the optimizer created here; NULL: the caller's is used */
    tn_schedule    *schedule; /* of own; its optimizer owns it */
    void           *best;     /* a copy of the module with the best weights, without a folder; else NULL */
    bool           *modes;
    int64_t         modules;
    tn_batch       *part;                /* [accumulate]: the batches of a step */
    int64_t         accumulate_before;   /* the optimizer's tn_accumulate count before tn_fit; 0: not changed */
    int64_t         steps;               /* in all; 0: not known */
    int64_t         seen;                /* batches of this epoch */
    int64_t         since_best;          /* validations since the best */
    int64_t         valid_at;            /* step of the last validation */
    int64_t         items, all;          /* items in the batches of the last step, of all steps of this call */
    int64_t         unscheduled;         /* step of a checkpoint written only because of .stop; -1: none */
    double          start, lr, mean;     /* start time in seconds; learning rate and loss of the last step */
    double          measured;            /* mean over .valid in the last validation */
    bool            epoch_over, stepped; /* since the last pause */
    bool            valid_due;           /* a validation is due */
    bool            unsaved;             /* something has changed since the last checkpoint */
    bool            started;             /* TN_FIT_START has been reported */
    tn_replica     *replica;             /* with .world */
    tn_budget      *budget;              /* with .memory */
    int64_t         recomputed;          /* segments recomputed, as last reported; -1: not reported yet */
    bool            shared;              /* validation is also split over the ranks */
    bool            validating, swapped; /* the modules are in eval mode; the EMA's weights are in the module */
    bool            open, returns;       /* begun and not ended; an exception of a callback ends it without a return */
    tn_scope        scope;
    tn_generator   *generator; /* in use when tn_fit began */
    double         *sums;      /* of a validation; NULL: none is running */
    tn_json_writer *line;      /* of record.jsonl; NULL: this process writes none */
    tn_string       lines;     /* that are not in the file yet */
    uint64_t        chain;     /* of the last line */
    tn__pending     pending;
    uint64_t        batch;      /* FNV-1a of the step's batches; 0: not known */
    size_t          sums_bytes; /* their memory */
};

/* Check the arguments; create the optimizer and its schedule (fit_check.c). False: raised. */
bool tn__fit_check(tn__fit *f);
bool tn__fit_optimizer(tn__fit *f);
void tn__fit_no_steps(const tn__fit *f); /* raises: the epochs have fewer batches than one step takes */

/* True if the rank has no rows of the batch; the batch's items, for rates; its weight in sums of losses. */
static inline bool    tn__fit_is_empty(const tn_batch *b) { return b->whole && !b->rows; }
static inline int64_t tn__fit_items(const tn_batch *b)
{
    return b->items || tn__fit_is_empty(b) ? b->items : b->x && tn_ndim(b->x) ? tn_size(b->x, 0) : 1;
}
static inline double tn__fit_weight(const tn_batch *b) { return b->weight > 0 ? b->weight : (double)tn__fit_items(b); }

/* Reports an event to .on; true if the run was asked to stop (fit_events.c). */
void               tn__fit_report(tn__fit *f, tn_fit_what what, const char *text, bool improved);
bool               tn__fit_is_stopped(const tn__fit *f);
static inline bool tn__fit_validates(const tn_fit_args *c) { return c->valid.next || c->score; }
void               tn__fit_validate(tn__fit *f); /* (fit_validate.c) */
void               tn__fit_restore_modes(tn__fit *f);
bool               tn__fit_is_enough(const tn_fit_args *c, double v);

/* Write and read the best weights, a file with a checksum (fit_best.c). False: raised. */
bool tn__fit_best_save(void *module, const char *path, int64_t step);
bool tn__fit_best_load(void *module, const char *path, int64_t step); /* also raises if they are of another step */
void tn__fit_best_sums(void *module, tn__run_entry *to);              /* sets sums[0] to the hash of the weights */

/* .memory (fit_memory.c): creates the budget, and checks that weights, gradients and the optimizer's state fit; raises
 * the error of a step that does not fit; reports the choice of the last pass, if new. They do nothing without .memory.
 */
bool tn__fit_memory_begin(tn__fit *f);
void tn__fit_memory_raise(const tn__fit *f);
void tn__fit_memory_note(tn__fit *f);

/* The next batch; false: an epoch is over, or raised (fit_batch.c). */
bool tn__fit_next_batch(tn__fit *f, tn_batch *b);
bool tn__fit_loss_is_valid(const tn__fit *f, const tn_tensor *loss);

/* Several ranks (fit_ranks.c). Without .world they do nothing and return true. */
bool tn__fit_ranks_begin(tn__fit *f);                /* creates the replica, shards the sources */
void tn__fit_ranks_end(tn__fit *f);                  /* undoes that */
bool tn__fit_ranks_gradients(tn__fit *f);            /* the gradients of a batch; false: the epoch is over, or raised */
bool tn__fit_ranks_broadcast(tn__fit *f, double *v); /* broadcasts rank 0's value */
bool tn__fit_ranks_mean(tn__fit *f, double *sum);    /* adds [2 shards], sum and items of each, into sum[0], sum[1] */
/* True if this process writes files: the only one, or rank 0. */
static inline bool tn__fit_is_writer(const tn__fit *f) { return tn_world_rank(f->c.world) == 0; }

void tn__fit_init(tn__fit *f); /* (fit_check.c) */

/* The record of a run (fit_record.c). False: raised. */
bool tn__record_begin(tn__fit *f, const tn_json *resumed); /* resumed: the record of the checkpoint, or NULL */
bool tn__record_put(tn__fit *f, tn__run_entry e);
bool tn__record_flush(tn__fit *f, bool sync);
void tn__record_end(tn__fit *f);
/* Of the record of a checkpoint. without_rows: not of this module's buffers with rows of the batch; NULL: of all. */
void tn__record_sums(const tn_json *state, void *without_rows, uint64_t to[3]);

/* True if training checkpoints hold only what is trained: of a module with adapters. */
static inline bool tn__fit_trained_only(const tn__fit *f) { return !f->replica && tn_module_has_lora(f->c.module); }

/* Training checkpoints (fit_save.c). */
bool tn__fit_save(tn__fit *f, bool end);
bool tn__fit_resume(tn__fit *f); /* restores the folder's newest if .resume; else raises if it has one */

#endif
