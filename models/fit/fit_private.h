/* fit_private.h — what the files of the training loop share and users do not see. */
#ifndef TENON_MODELS_FIT_FIT_PRIVATE_H
#define TENON_MODELS_FIT_FIT_PRIVATE_H

#include "core/base/toolbox.h"
#include "models/models.h"

#include <math.h>
#include <string.h>

/* ---- a folder of checkpoints (fit_folder.c) ---------------------------------------------------------------------- */

enum { TN__FILE_ROOM = 1024 };

typedef struct {
    const char *path;
    int         lock; /* a file that is open and locked; -1: none */
} tn__folder;
bool    tn__folder_open(tn__folder *f, const char *path); /* makes it if need be; raises, also if another run has it */
void    tn__folder_close(tn__folder *f);
int64_t tn__folder_newest(const tn__folder *f, int64_t below); /* the largest step below; -1: none, or raised */
/* Keeps the newest up to step; the one of step `between` (-1: none) goes first. */
void        tn__folder_prune(const tn__folder *f, int64_t step, int64_t keep, int64_t between);
const char *tn__folder_file(const tn__folder *f, int64_t step, char to[TN__FILE_ROOM]);
const char *tn__folder_best(const tn__folder *f, char to[TN__FILE_ROOM]);

/* ---- one call of tn_fit ------------------------------------------------------------------------------------------ */

typedef struct {
    tn_fit_args   c;
    tn_fit_result r;
    tn__folder    folder;
    tn_optimizer *own;  /* made here, or NULL */
    void         *best; /* a copy of the module, where there is no folder to keep the best in */
    bool         *modes;
    int64_t       modules;
    tn_batch     *part;                /* [accumulate]: the batches of a step */
    int64_t       parts;               /* what tn_accumulate was told before; 0: it is as it was */
    int64_t       steps;               /* in all; 0: not known */
    int64_t       seen;                /* batches of this epoch */
    int64_t       worse;               /* validations since the best */
    int64_t       valid_at;            /* the step of the last validation */
    int64_t       items, all;          /* in the batches of the last step; of all steps of this call */
    int64_t       between;             /* where a stop left a checkpoint that was not due; -1: nowhere */
    double        began, lr, mean;     /* the time; of the last step, lr and loss */
    double        measured;            /* the mean over .valid, the last time */
    bool          epoch_over, stepped; /* since the last pause */
    bool          owed;                /* a validation is due */
    bool          unsaved;             /* something has changed since the last checkpoint */
    bool          told;                /* that it has started */
    tn_replica   *replica;             /* with .world */
    bool          shared;              /* validation, too, is shared out */
} tn__fit;

/* Does the config make sense? (fit_check.c) Raises. Then what tn_fit itself makes: the optimizer and its schedule. */
bool tn__fit_check(tn__fit *f);
bool tn__fit_optimizer(tn__fit *f);
void tn__fit_no_steps(const tn__fit *f); /* raises: the epochs have fewer batches than one step takes */

/* What a batch counts for, in rates and where losses are added; has it none of the rows of the whole batch? */
static inline bool    tn__fit_is_empty(const tn_batch *b) { return b->whole && !b->rows; }
static inline int64_t tn__fit_items(const tn_batch *b)
{
    return b->items || tn__fit_is_empty(b) ? b->items : b->x && tn_ndim(b->x) ? tn_size(b->x, 0) : 1;
}
static inline double tn__fit_weight(const tn_batch *b) { return b->weight > 0 ? b->weight : (double)tn__fit_items(b); }

/* What the run tells of itself (fit_events.c), the time in seconds, and whether it has been asked to stop. */
void               tn__fit_tell(tn__fit *f, tn_fit_what what, const char *text, bool improved);
bool               tn__fit_stop(const tn__fit *f);
static inline bool tn__fit_validates(const tn_fit_args *c) { return c->valid.next || c->score; }
void               tn__fit_validate(tn__fit *f); /* (fit_validate.c) */

/* The best weights as a file with a checksum (fit_best.c). Raise. */
bool tn__fit_best_save(void *module, const char *path);
bool tn__fit_best_load(void *module, const char *path);

/* The next batch; false: an epoch is over, or raised (fit_draw.c). */
bool tn__fit_draw(tn__fit *f, tn_batch *b);
bool tn__fit_loss_fits(const tn__fit *f, const tn_tensor *loss);

/* What several ranks do differently (fit_ranks.c). Without .world: true, and nothing happens. */
bool tn__fit_ranks_begin(tn__fit *f);             /* the replica, and each source cut into this rank's parts */
void tn__fit_ranks_end(tn__fit *f);               /* and whole again */
bool tn__fit_ranks_parts(tn__fit *f);             /* the gradients of a batch; false: the epoch is over, or raised */
bool tn__fit_ranks_agree(tn__fit *f, double *v);  /* all have rank 0's value from now on */
bool tn__fit_ranks_mean(tn__fit *f, double *sum); /* sum: [2 shards], of each its sum and items; into sum[0], sum[1] */
/* Does this process write: the only one, or rank 0? */
static inline bool tn__fit_writes(const tn__fit *f) { return tn_world_rank(f->c.world) == 0; }

/* Checkpoints (fit_save.c). */
bool tn__fit_save(tn__fit *f);
bool tn__fit_resume(tn__fit *f); /* the folder's newest, if .resume; else it must hold none */

#endif
