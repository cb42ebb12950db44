/* recompute.h — memory against time: what the backward computes again instead of reading it. Part of autograd.h:
 * include that. */
#ifndef TENON_AUTOGRAD_RECOMPUTE_H
#define TENON_AUTOGRAD_RECOMPUTE_H

#include "../core/core.h"

TN_C_BEGIN_

/* ---- gradient checkpointing -------------------------------------------------------------------------------------- */

/* Runs fn without a tape, so that nothing inside is saved; the backward runs fn again, with the same random numbers
 * from the current generator, and differentiates that run. So fn must do the same each time and not change its inputs,
 * and user must be valid until then. Parameters inside get gradients; changing one between the runs is an error. */
typedef tn_tensor *(*tn_segment)(tn_tensor *const *in, int n, void *user);
TN_API tn_tensor *tn_checkpoint(tn_segment fn, void *user, int n, tn_tensor *const *in);

/* ---- a memory budget --------------------------------------------------------------------------------------------- */

/* A budget for the memory in use in the process (tn_memory_now().live). It decides for each forward pass which segments
 * run as tn_checkpoint: as few as the budget allows. Losses, gradients and random numbers have the same bits for any
 * budget.
 *
 *     tn_budget *b = tn_budget_new((size_t)2 << 30);
 *     ...
 *         do {
 *             tn_scope s = tn_scope_begin();
 *             tn_budget_begin(b, 0);
 *             tn_backward(model_loss(net, batch));
 *             tn_scope_end(s);
 *         } while (tn_budget_again(b));
 *         tn_step(opt);
 *     ...
 *     tn_budget_free(b);
 *
 * The segments are the layers of tn_blocks, each tn_block and the calls of tn_recomputable. The first pass with a new
 * size of batch recomputes all of them and measures them; the passes after it keep what fits. Until tn_budget_free
 * tn_set_memory_limit is at most the budget; blocks that threads keep for later (tn_memory_now().cached) come in
 * addition, up to a quarter of it. tn_fit has all this as .memory.
 *
 * tn_budget_begin: a forward pass of this thread and its backward follow. `later`: bytes that something else will need,
 * such as the optimizer's state before its first step (tn_optimizer_missing). tn_budget_again ends the pass. It returns
 * true if the pass ran out of memory although a segment was kept: then the error is cleared, the random generator is
 * restored, and the same pass must run again, which recomputes more. If even recomputing all is not enough, the pass
 * runs once more without the budget, within the limit that was set before it, and then the error states the bytes that
 * it needed; gradients are then undefined. With b NULL begin does nothing, and again returns false. */
typedef struct tn_budget tn_budget;
typedef struct {
    size_t  bytes;                /* the budget */
    size_t  need;                 /* estimated maximum of the memory in the last pass; 0: not known */
    int64_t recomputed, segments; /* in the last pass: segments recomputed, and all */
    bool    measured;             /* the last pass recomputed all segments to measure them */
} tn_budget_report;
TN_API tn_budget       *tn_budget_new(size_t bytes);
TN_API void             tn_budget_free(tn_budget *b);
TN_API tn_status        tn_budget_begin(tn_budget *b, size_t later);
TN_API bool             tn_budget_again(tn_budget *b);
TN_API tn_budget_report tn_budget_last(const tn_budget *b);

/* Returns fn(in, n, user): as tn_checkpoint if an open budget of this thread chose this segment, else as a plain call.
 * Segments inside a segment are plain calls. */
TN_API tn_tensor *tn_recomputable(tn_segment fn, void *user, int n, tn_tensor *const *in);
/* True if a budget is open: without one a module need not collect the inputs of a segment. */
TN_API bool tn_budget_is_open(void);

TN_C_END_
#endif
