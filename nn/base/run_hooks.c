/* run_hooks.c — calls the hooks around tn_call and frees removed ones (adding and removing: hooks.c). */
#include "nn/base/hooks.h"

tn_tensor *tn__hooks_before(tn_module *m, tn_tensor *x)
{
    tn_tensor *other;
    for (const tn__hook *h = m->base->hooks; h; h = h->next)
        if (h->before && (other = h->before(m, x, h->user))) x = other;
    return x;
}

tn_tensor *tn__hooks_after(tn_module *m, tn_tensor *x, tn_tensor *y)
{
    tn_tensor *other;
    for (const tn__hook *h = m->base->hooks; h && tn_error() == TN_OK; h = h->next)
        if (h->after && (other = h->after(m, x, y, h->user))) y = other;
    return y;
}

void tn__hooks_sweep(const tn_module *m)
{
    for (tn__hook **h = &m->base->hooks; *h;) {
        tn__hook *old = *h;
        if (old->before || old->after) {
            h = &old->next;
            continue;
        }
        *h = old->next;
        tn_mem_put(old, sizeof *old);
    }
}

void tn__hooks_free(tn__hook *h)
{
    for (tn__hook *next; h; h = next) next = h->next, tn_mem_put(h, sizeof *h);
}
