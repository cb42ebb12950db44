/* fit_validate.c — tn_fit's validation. It must not affect training. */
#include "models/fit/fit_private.h"

/* Validation's own generator: its random numbers, for example masks, are the same each time. */
static const tn_generator own = {.seed = 0x76616c6964617465u, .position = 0};

/* Saves each module's mode, so that modules in eval mode during training stay in it. */
static void save_modes(tn__fit *f)
{
    int64_t i = 0;
    for (tn_each e = tn_module_each(f->c.module, TN_EACH_MODULE); tn_next(&e) && i < f->modules;)
        f->modes[i++] = e.module->training;
    f->validating = true;
    tn_module_train(f->c.module, false);
}
void tn__fit_restore_modes(tn__fit *f)
{
    int64_t i = 0;
    if (!f->validating) return;
    for (tn_each e = tn_module_each(f->c.module, TN_EACH_MODULE); tn_next(&e) && i < f->modules;)
        e.module->training = f->modes[i++];
    f->validating = false;
}

/* Measures one shard of a batch; false: no more batches, or raised. */
static bool measure_part(const tn__fit *f, double sum[2])
{
    const tn_fit_args *c = &f->c;
    const tn_scope     s = tn_no_grad_begin(), narrow = tn_autocast_begin(c->autocast);
    tn_fit_loss        fn = c->measure ? c->measure : c->loss;
    tn_batch           b;
    tn_tensor         *v = NULL;
    const bool         more = tn_source_next(&c->valid, &b);
    if (!more || tn__fit_is_empty(&b)) {
    } else if ((v = fn(c->module, &b, c->user)) && tn_numel(v) == 1) {
        const double n = c->measure ? (double)tn__fit_items(&b) : tn__fit_weight(&b);
        sum[0] += n * tn_item(v), sum[1] += n;
    } else {
        tn_raise(v ? TN_ESHAPE : TN_EINVAL, "tn_fit: in validation, .%s returned %s, but must return one element",
                 c->measure ? "measure" : "loss", v ? "several elements" : "NULL");
    }
    tn_scope_end(narrow), tn_scope_end(s);
    return more && tn_error() == TN_OK;
}

/* False (raised) after n batches without an end. A source whose .batches is 0 does not know their number. */
static bool may_continue(const tn_fit_args *c, int64_t n)
{
    enum { MOST = 100000 };
    if (n <= (c->valid.batches > 0 ? 2 * c->valid.batches : MOST)) return true;
    return tn_raise_false(TN_EINVAL,
                          "tn_fit: .valid has returned %lld batches without an end; its .next must return false at the "
                          "end of an epoch%s",
                          (long long)n, c->valid.batches > 0 ? "" : ", or set its .batches if there are as many");
}

/* The mean of .measure over all items, or of the loss by batch weights; false: stopped, or raised. Several ranks
 * synchronise after each batch, so that they stop at the same one. */
static bool measure(tn__fit *f, double *mean)
{
    const tn_fit_args *c = &f->c;
    const tn_shard     mine = f->shared ? tn_replica_shard(f->replica) : (tn_shard){.count = 1};
    const size_t       bytes = 2 * (size_t)(f->shared ? mine.of : 1) * sizeof(double);
    double            *sum = f->sums = tn_mem_get(bytes);
    bool               more = sum != NULL;
    f->sums_bytes = bytes;
    if (c->valid.begin) c->valid.begin(c->valid.user, NULL);
    for (int64_t n = 0; more && tn_error() == TN_OK && !tn__fit_is_stopped(f) && may_continue(c, n); n++) {
        for (int i = 0; i < mine.count && more; i++) more = measure_part(f, sum + (ptrdiff_t)2 * (mine.rank + i));
        if (c->world) tn_world_barrier(c->world);
    }
    const bool   done = sum && !more && tn_error() == TN_OK && (!f->shared || tn__fit_ranks_mean(f, sum));
    const double all = done ? sum[0] : 0, over = done ? sum[1] : 0;
    tn_mem_put(sum, sum ? bytes : 0);
    f->sums = NULL;
    if (!done) return false;
    if (!(over > 0)) return tn_raise_false(TN_EINVAL, "tn_fit: .valid is empty");
    *mean = all / over;
    return true;
}

/* The value to compare; false: stopped, or raised. A .score that stops early because of *.stop may return any value. */
static bool evaluate(tn__fit *f, double *v)
{
    const tn_fit_args *c = &f->c;
    if (c->valid.next && !measure(f, v)) return false;
    f->measured = *v;
    if (!c->score) return true;
    const tn_scope s = tn_no_grad_begin();
    *v = c->score(c->module, c->user);
    tn_scope_end(s);
    return tn__fit_ranks_broadcast(f, v) && !tn__fit_is_stopped(f);
}

bool tn__fit_is_enough(const tn_fit_args *c, double v)
{
    return c->enough != 0 && (c->rising ? v >= c->enough : v <= c->enough);
}

/* Records the value; returns true if it is better than the best. NaN is never better. One that ends the run needs no
 * minimum improvement. */
static bool record_value(tn__fit *f, double v)
{
    const double best = f->r.best, d = tn__fit_is_enough(&f->c, v) ? 0 : f->c.min_delta;
    const bool   first = best != best, better = v == v && (first || (f->c.rising ? v > best + d : v < best - d));
    f->r.value = v, f->valid_at = f->r.steps;
    f->valid_due = false, f->unsaved = true;
    f->since_best = better ? 0 : f->since_best + 1;
    if (better) f->r.best = v, f->r.best_step = f->r.steps;
    tn__record_put(f, (tn__run_entry){.kind = TN__VALID, .value = v});
    return better;
}

static void keep_best(tn__fit *f)
{
    char          path[TN__FILE_ROOM];
    tn__run_entry e = {.kind = TN__BEST};
    if (f->best) tn_module_assign(f->best, f->c.module);
    if (!f->c.folder || !tn__fit_is_writer(f)) return;
    tn__fit_best_sums(f->c.module, &e);
    if (tn__record_put(f, e)) tn__fit_best_save(f->c.module, tn__folder_best(&f->folder, path), f->r.best_step);
}

void tn__fit_validate(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    tn_generator       draws = own, *before = tn_use_generator(&draws);
    const bool         swap = f->swapped = c->ema && !tn_ema_swapped(c->ema);
    double             v = NAN;
    bool               done = false, better = false;
    tn_error_state     aside;
    save_modes(f);
    if (!swap || tn_ema_swap(c->ema) == TN_OK) {
        if ((done = evaluate(f, &v)) && (better = record_value(f, v))) keep_best(f);
        tn_error_push(&aside);
        if (swap) tn_ema_swap(c->ema);
        f->swapped = false;
        tn__error_first(&aside);
    }
    tn__fit_restore_modes(f);
    tn_use_generator(before);
    if (!done || tn_error() != TN_OK) return;
    if (c->plateau) tn_plateau_step(c->plateau, v);
    tn__fit_report(f, TN_FIT_VALID, NULL, better);
}
