/* hooks.c — adding and removing hooks around tn_call. A hook may add or remove hooks while hooks of the module run:
 * removed ones lose their functions at once and are freed after the last running call. */
#include "nn/base/hooks.h"

static tn_status hook(const char *who, tn_module *m, tn_before_hook before, tn_after_hook after, void *user)
{
    if (!tn_module_ready(who, m)) return tn_error();
    if (!before && !after) return tn_raise(TN_EINVAL, "%s: the hook is NULL", who);
    tn__hook **last = &m->base->hooks, *h = tn_mem_get(sizeof *h);
    if (!h) return tn_error();
    *h = (tn__hook){NULL, before, after, user};
    while (*last) last = &(*last)->next;
    *last = h;
    return TN_OK;
}

tn_status tn_module_before(void *m, tn_before_hook h, void *user) { return hook("tn_before", m, h, NULL, user); }
tn_status tn_module_after(void *m, tn_after_hook h, void *user) { return hook("tn_after", m, NULL, h, user); }

/* A hook may remove itself or others while hooks run; they are freed after the last one has run. */
void tn_module_unhook(void *module, void *user)
{
    const tn_module *m = module;
    if (m && tn__module_freed("tn_unhook", m)) return;
    for (tn__hook *h = m ? m->base->hooks : NULL; h; h = h->next)
        if (h->user == user) h->before = NULL, h->after = NULL;
    if (m && !m->base->hooks_run) tn__hooks_sweep(m);
}

bool tn__any_hooks(const void *module)
{
    for (tn_each e = tn_module_each((void *)(uintptr_t)module, TN_EACH_MODULE); tn_next(&e);)
        if (e.module->base->hooks) return true;
    return false;
}
