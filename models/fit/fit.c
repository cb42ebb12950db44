/* fit.c — the training loop: a step consists of one or more batches; validation and saving happen between two steps.
 *
 * The state that a resumed run needs is f->r, seen, since_best, valid_at and valid_due; each training checkpoint
 * contains it. A pause first sets `valid_due`, then validates, so that a run stopped in between validates after it is
 * resumed. */
#include "models/fit/fit_private.h"

/* ---- one step ---------------------------------------------------------------------------------------------------- */

/* Adds a batch to a step: `share` is its weight in the step's mean loss. */
static void add_batch(const tn__fit *f, const tn_batch *b, double share, double *mean)
{
    const tn_fit_args *c = &f->c;
    double             value = 0;
    do {
        const tn_scope s = tn_scope_begin();
        tn_budget_begin(f->budget, f->budget ? tn_optimizer_missing(c->optimizer) : 0);
        const tn_scope narrow = tn_autocast_begin(c->autocast);
        tn_tensor     *loss = tn_scope_return(narrow, c->loss(c->module, b, c->user));
        if (tn__fit_loss_is_valid(f, loss)) {
            value = tn_item(loss);
            tn_backward(loss, .seed = share < 1 ? tn_full_like(loss, share) : NULL);
        }
        tn_scope_end(s);
    } while (tn_budget_again(f->budget));
    *mean += share * value;
}

/* Draws all batches of a step, because their shares depend on the sum of weights; false: an epoch ended before the
 * first batch, or raised. */
static bool next_batches(tn__fit *f, tn_batch *b, double *weight)
{
    const tn_fit_args *c = &f->c;
    for (int64_t done = 0; done < c->accumulate;)
        if (tn__fit_next_batch(f, b + done)) *weight += tn__fit_weight(b + done++);
        else if (tn_error() != TN_OK || !done || (c->epochs && f->r.epochs >= c->epochs)) return false;
    return tn_error() == TN_OK;
}

static void discard_gradients(tn__fit *f)
{
    tn_error_state aside;
    tn_error_push(&aside);
    tn_module_zero_grad(f->c.module);
    tn_error_pop(&aside);
}

/* Calls .exchange with the gradients of a whole step. */
static bool exchange(const tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    if (!c->exchange) return true;
    const tn_scope  s = tn_scope_begin();
    const tn_status said = c->exchange(c->module, c->optimizer, f->r.steps + 1, c->exchange_user);
    tn_scope_end(s);
    if (said != TN_OK && tn_error() == TN_OK)
        tn_raise(said, "tn_fit: .exchange returned %s at step %lld, but raised no error", tn_status_name(said),
                 (long long)f->r.steps + 1);
    return tn_error() == TN_OK;
}

static bool accumulate_step(tn__fit *f)
{
    const int64_t  n = f->c.accumulate;
    const tn_scope s = tn_scope_begin();
    double         weight = 0;
    f->mean = 0;
    const bool got = next_batches(f, f->part, &weight);
    for (int64_t i = 0; got && i < n && tn_error() == TN_OK; i++)
        if (!tn__fit_is_empty(f->part + i)) add_batch(f, f->part + i, tn__fit_weight(f->part + i) / weight, &f->mean);
    tn_scope_end(s);
    return got && tn_error() == TN_OK;
}

/* Does one step. On failure discards its gradients and restores the random generator. */
static void step(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    const tn_generator before = *tn_current_generator();
    f->items = 0, f->batch = TN__FNV1A;
    const bool   whole = c->world ? tn__fit_ranks_gradients(f) : accumulate_step(f);
    const double lr = tn_lr(c->optimizer, 0);
    if (!whole || !exchange(f) ||
        (c->world ? tn_replica_step(f->replica, c->optimizer) : tn_step(c->optimizer)) != TN_OK) {
        if (tn_error() == TN_OK) return;
        tn__fit_memory_raise(f), discard_gradients(f);
        *tn_current_generator() = before;
        return;
    }
    tn_module_zero_grad(c->module); /* also of parameters that the optimizer does not have */
    if (c->ema) tn_ema_update(c->ema);
    f->r.steps++, f->all += f->items, f->r.loss = f->mean, f->lr = lr;
    f->stepped = f->unsaved = true;
    const uint64_t batch = c->world ? 0 : f->batch;
    tn__record_put(f, (tn__run_entry){.kind = TN__ENTRY_STEP, .value = f->mean, .lr = lr, .sums = {batch}});
    tn__fit_report(f, TN_FIT_STEP, NULL, false);
    tn__fit_memory_note(f);
}

/* ---- between two steps ------------------------------------------------------------------------------------------- */

static bool is_multiple(int64_t every, int64_t step) { return every && step % every == 0; }

/* Validates and saves if due. A step number counts only directly after that step. */
static void pause_between(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    const int64_t      at = f->r.steps;
    if (tn__fit_validates(c) && (c->valid_every ? f->stepped && is_multiple(c->valid_every, at) : f->epoch_over))
        f->valid_due = true;
    bool save = c->save_every ? f->stepped && is_multiple(c->save_every, at)
                              : f->valid_due || (!tn__fit_validates(c) && f->epoch_over);
    f->stepped = f->epoch_over = false;
    if (f->valid_due && !tn__fit_is_stopped(f)) tn__fit_validate(f);
    if (save && c->folder && f->unsaved && tn_error() == TN_OK) tn__fit_save(f, false);
}

static tn_fit_why train(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    while (tn_error() == TN_OK) {
        pause_between(f);
        if (tn_error() != TN_OK) break;
        if (tn__fit_is_enough(c, f->r.best)) return TN_FIT_ENOUGH;
        if (c->patience && f->since_best >= c->patience) return TN_FIT_PATIENCE;
        if (tn__fit_is_stopped(f)) return TN_FIT_STOPPED;
        if ((c->steps && f->r.steps >= c->steps) || (c->epochs && f->r.epochs >= c->epochs)) {
            if (f->r.steps) return TN_FIT_DONE;
            tn__fit_no_steps(f); /* a source without .batches */
            break;
        }
        step(f);
    }
    return TN_FIT_FAILED;
}

/* ---- from beginning to end --------------------------------------------------------------------------------------- */

static bool begin(tn__fit *f)
{
    tn_fit_args *c = &f->c;
    if (!tn__fit_check(f) || !tn__fit_optimizer(f) || !tn__fit_ranks_begin(f)) return false;
    tn_module *m = c->module;
    tn_module_zero_grad(m); /* gradients from before the run */
    if (!m->training) tn_module_train(m, true);
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) f->modules++;
    if (!(f->modes = tn_mem_get((size_t)f->modules))) return false;
    if (!(f->part = tn_mem_get((size_t)c->accumulate * sizeof *f->part))) return false;
    if (c->restore_best && !c->folder && !(f->best = tn_module_copy(m))) return false;
    if (c->folder) {
        f->folder.path = c->folder;
        if ((tn__fit_is_writer(f) && !tn__folder_open(&f->folder, c->folder)) || !tn__fit_resume(f)) return false;
    } else if (c->train.begin) {
        c->train.begin(c->train.user, NULL);
    }
    f->r.begin = f->r.steps;
    if (tn_error() != TN_OK || !tn__fit_memory_begin(f)) return false;
    f->started = true;
    tn__fit_report(f, TN_FIT_START, NULL, false);
    return tn_error() == TN_OK && (!c->folder || f->r.steps || !f->unsaved || tn__fit_save(f, false));
}

static void finish(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    char               path[TN__FILE_ROOM];
    if (f->r.why == TN_FIT_DONE && tn__fit_validates(c) && f->valid_at != f->r.steps) {
        f->valid_due = true;
        tn__fit_validate(f);
        if (f->valid_due && tn_error() == TN_OK) f->r.why = TN_FIT_STOPPED;
    }
    if (c->folder && f->unsaved && tn_error() == TN_OK) tn__fit_save(f, true);
    if (!c->restore_best || f->r.best != f->r.best || tn_error() != TN_OK) return;
    if (f->best) tn_module_assign(c->module, f->best);
    else if (tn__fit_is_writer(f)) tn__fit_best_load(c->module, tn__folder_best(&f->folder, path), f->r.best_step);
    if (c->world) tn_world_module_broadcast(c->world, c->module);
}

/* Restores the optimizer's own accumulation count, also on failure. */
static void restore_accumulate(const tn__fit *f)
{
    tn_error_state aside;
    tn_error_push(&aside);
    if (f->accumulate_before) tn_accumulate(f->c.optimizer, f->accumulate_before);
    tn_error_pop(&aside);
}

/* After an exception of a callback also discards the step's gradients, and leaves the module as between two steps. */
static void end(tn__fit *f)
{
    if (!f->open) return;
    f->open = false;
    tn__record_end(f);
    tn_mem_put(f->sums, f->sums ? f->sums_bytes : 0);
    tn_budget_free(f->budget);
    if (!f->returns) {
        tn_use_generator(f->generator);
        if (f->swapped) tn_ema_swap(f->c.ema);
        tn__fit_restore_modes(f);
        discard_gradients(f);
    }
    restore_accumulate(f);
    tn__fit_ranks_end(f);
    tn__folder_close(&f->folder);
    tn_module_free(f->best);
    tn_mem_put(f->modes, (size_t)f->modules);
    tn_mem_put(f->part, f->part ? (size_t)f->c.accumulate * sizeof *f->part : 0);
    tn_optimizer_free(f->own);
    tn_scope_end(f->scope);
}

tn_fit_result tn_fit_run(tn_fit_args c)
{
    __attribute__((cleanup(end))) tn__fit f = {.c = c};
    tn__fit_init(&f);
    if (!f.open) return f.r;
    if (begin(&f)) {
        f.r.why = train(&f);
        if (f.r.why != TN_FIT_FAILED) finish(&f);
        if (f.r.why != TN_FIT_FAILED && c.world) tn_world_barrier(c.world); /* so that all ranks see the last error */
        if (tn_error() != TN_OK) f.r.why = TN_FIT_FAILED;
    }
    if (f.started) tn__fit_report(&f, TN_FIT_END, tn_fit_why_text(f.r.why), false);
    if (tn_error() != TN_OK) f.r.why = TN_FIT_FAILED;
    f.returns = true;
    return f.r;
}
