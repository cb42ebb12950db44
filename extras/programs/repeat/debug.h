/* debug.h — shared by the files of the command debug: what a step of a training read and computed. */
#ifndef TENON_EXTRAS_PROGRAMS_REPEAT_DEBUG_H
#define TENON_EXTRAS_PROGRAMS_REPEAT_DEBUG_H

#include "replay.h"

#include <tenon/extras.h>

/* ---- one step (debug_step.c) ------------------------------------------------------------------------------------- */

/* A row of a batch. */
typedef struct {
    int64_t   row, same; /* its index; of the first row with the same content, if that is another one, else -1 */
    double    loss;      /* the row alone, in eval mode; a recurrent model starts with zero states. NaN: not known */
    uint64_t  hash;
    char      place[64]; /* in the data: "line 12"; "": not known */
    tn_string text;
} debug_row;

/* The values of a module's results, or of its own gradients. */
typedef struct {
    char    path[256];
    int64_t n, bad;                      /* finite values; NaN and infinite ones */
    double  sum, squares, most, weights; /* finite elements; most: max |x|; weights: squares of the parameters */
} debug_values;

typedef struct {
    debug_row    *row;
    debug_values *result, *gradient; /* by module path, in the order of the calls, of the modules */
    int64_t       rows, results, gradients;
    double        loss, lr, norm; /* norm: of all gradients before clipping; NaN: not computed */
    bool          masked;         /* the batch has padding, or an order of tokens: */
    tn_leak       leak;           /* whether a result depends on what a mask must hide */
    int64_t       items;
} debug_step;

/* Sets the rows of a batch, with `losses` also their losses. Parts of a batch add up. */
void debug_rows(debug_step *s, training *t, const tn_batch *b, tn_fit_loss loss, bool losses);
/* Sets leak; after debug_rows. */
void debug_leak(debug_step *s, training *t, const tn_batch *b, tn_fit_loss loss);
/* The loss, observed: sets rows, results and leak, too. The bits of the training do not change. */
tn_tensor *debug_loss(debug_step *s, training *t, const tn_batch *b, tn_fit_loss loss);
void       debug_gradients(debug_step *s, void *module); /* sets gradients and norm */
double     debug_norm(void *module);                     /* norm of all gradients */
double     debug_worst(const debug_step *s);             /* the largest loss of a row; NaN: not known */
int64_t    debug_copies(const debug_step *s);            /* the number of rows that are the same as an earlier one */
void       debug_forget(debug_step *s);
/* Prints `most` rows, those with the largest losses first; tables of modules of at most `depth` parts. 0: all. */
void debug_print(const debug_step *s, int64_t most, int64_t depth);

/* ---- repeating steps (debug.c) ----------------------------------------------------------------------------------- */

typedef struct {
    replay      r;
    int64_t     limit, show, from, found; /* steps; show: to observe; from, found: of --when; 0: none */
    tn_fit_loss loss;                     /* the training's loss, without observation */
    debug_step  seen;
    progress    bar;
} debugging;

#endif
