/* fit_events.c — reports events to the listener, and checks the stop flag. */
#include "models/fit/fit_private.h"

/* Each rank contributes its own flag; all ranks stop after the next collective. */
bool tn__fit_is_stopped(const tn__fit *f)
{
    const bool asked = f->c.stop && __atomic_load_n(f->c.stop, __ATOMIC_RELAXED);
    if (!f->c.world) return asked;
    tn_world_set_flag(f->c.world, asked);
    return tn_world_flag(f->c.world);
}

const char *tn_fit_why_text(tn_fit_why why)
{
    static const char *const text[] = {"failed", "done", "no longer improving", "good enough", "stopped"};
    return (unsigned)why <= TN_FIT_STOPPED ? text[why] : "";
}

void tn__fit_report(tn__fit *f, tn_fit_what what, const char *text, bool improved)
{
    f->r.seconds = tn__seconds() - f->start;
    if (!f->c.on) return;
    const tn_fit_event e = {.what = what,
                            .step = f->r.steps,
                            .steps = f->steps,
                            .epoch = f->r.epochs,
                            .items = what == TN_FIT_END ? f->all : f->items,
                            .loss = f->r.loss,
                            .lr = f->lr,
                            .norm = f->own && f->replica ? tn_replica_norm(f->replica) : tn_grad_norm(f->c.optimizer),
                            .seconds = f->r.seconds,
                            .value = f->r.value,
                            .best = f->r.best,
                            .measured = f->measured,
                            .best_step = f->r.best_step,
                            .improved = improved,
                            .text = text ? text : "",
                            .module = f->c.module};
    f->c.on(&e, f->c.on_user);
}
