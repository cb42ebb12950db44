/* fit_memory.c — .memory: a budget for the whole run, which chooses in each forward pass what to recompute. */
#include "models/fit/fit_private.h"

bool tn__fit_memory_begin(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    if (!c->memory) return true;
    size_t gradients = 0;
    for (tn_each p = tn_module_each(c->module, TN_EACH_PARAMETER); tn_next(&p);)
        if (tn_needs_grad(p.tensor)) gradients += (size_t)tn_numel(p.tensor) * tn_dtype_size(tn_dtype_of(p.tensor));
    const size_t live = tn_memory_now().live, state = tn_optimizer_missing(c->optimizer);
    if (live + gradients + state > c->memory)
        return tn_raise_false(TN_ENOMEM,
                              "tn_fit: .memory is %zu bytes, but a step needs more than %zu even without activations: "
                              "%zu are in use, gradients need %zu and the optimizer's state %zu; increase .memory, or "
                              "use a smaller model or an optimizer with less state",
                              c->memory, live + gradients + state, live, gradients, state);
    f->recomputed = -1;
    return (f->budget = tn_budget_new(c->memory)) != NULL;
}

void tn__fit_memory_raise(const tn__fit *f)
{
    char text[800];
    if (!f->budget || tn_error() != TN_ENOMEM) return;
    snprintf(text, sizeof text, "%s", tn_error_message());
    tn_clear_error();
    tn_raise(TN_ENOMEM, "tn_fit: .memory, step %lld: %s", (long long)f->r.steps + 1, text);
}

void tn__fit_memory_note(tn__fit *f)
{
    char                   text[160];
    const tn_budget_report r = tn_budget_last(f->budget);
    if (!f->budget || r.measured || !r.segments || r.recomputed <= f->recomputed) return;
    f->recomputed = r.recomputed;
    snprintf(text, sizeof text, "memory: about %.0f of %.0f MiB; %lld of %lld blocks are recomputed",
             (double)r.need / 1048576, (double)r.bytes / 1048576, (long long)r.recomputed, (long long)r.segments);
    tn__fit_report(f, TN_FIT_NOTE, text, false);
}
