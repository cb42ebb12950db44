/* forward.c — running a module: the frame of a forward (a scope, a level of the module path, the state of the random
 * generator) and tn_call, which calls the class's forward with the hooks around it. */
#include "nn/base/nn_private.h"

/* tn_call opens a frame for the module it calls. The typed forward opens another one, which must not add the module's
 * name to the path again. */
static _Thread_local const tn_module *called;

/* The length of a function's name without "_run", the suffix of functions that a macro calls. */
static int length_of(const char *who)
{
    const int n = (int)strlen(who);
    return n > 4 && !strcmp(who + n - 4, "_run") ? n - 4 : n;
}

bool tn_module_ready(const char *who, void *module)
{
    const tn_module *m = module;
    if (tn__blocked()) return false;
    if (!who) who = "tn_module_ready";
    if (m && tn__module_freed(who, m)) return false;
    if (!m)
        return tn_raise(TN_EINVAL,
                        "%.*s: the module is NULL: it is an absent child, or its constructor failed and the error was "
                        "cleared",
                        length_of(who), who),
               false;
    if (m->base->broken)
        return tn_raise(TN_ESTATE,
                        "%s: the module is incomplete because its constructor failed; free it and create it again",
                        tn__kind_name(m)),
               false;
    return true;
}

static tn_frame open_frame(const tn_module *m)
{
    tn_generator  *g = tn_current_generator();
    const tn_frame f = {tn_scope_begin(), g, *g};
    if (m && m != called && m->base->name) tn_path_push(m->base->name);
    called = NULL;
    return f;
}

tn_frame tn_module_enter(void *m)
{
    if (tn_error() == TN_OK) tn_module_ready("tn_enter", m);
    return open_frame(m);
}

/* Passes a module's result to the looks once: in the frame that added the module's name to the path. */
tn_tensor *tn__look_result(const tn_frame *f, tn_tensor *y)
{
    return y && tn__self.path_depth > f->scope.path ? tn__look(NULL, y) : y;
}

tn_tensor *tn_leave(tn_frame f, tn_tensor *y)
{
    if (tn__look_active()) y = tn__look_result(&f, y);
    const bool ok = tn_error() == TN_OK;
    if (!ok) tn__restore_generator(f.generator, f.began);
    return tn_scope_return(f.scope, ok ? y : NULL);
}

void tn_leave_list(tn_frame f, int n, tn_tensor **const *y)
{
    enum { MOST = 16 };
    tn_tensor *t[MOST];
    if (n > 0 && !tn__not_null("tn_leave_list", "the list of results", y)) n = 0;
    if (n > MOST) tn_raise(TN_EINVAL, "tn_leave_n: %d results, at most %d are supported", n, MOST);
    if (tn__look_active() && n > 0 && tn_error() == TN_OK) *y[0] = tn__look_result(&f, *y[0]);
    const bool ok = tn_error() == TN_OK;
    if (!ok) tn__restore_generator(f.generator, f.began);
    for (int i = 0; i < n; i++) {
        if (!ok) *y[i] = NULL;
        else t[i] = *y[i];
    }
    if (ok) tn_scope_return_list(f.scope, n, t);
    else tn_scope_end(f.scope);
}

/* Frees the hooks that were removed (their functions set to NULL) while hooks of the module ran. */
static void sweep(const tn_module *m)
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

tn_tensor *tn_module_call(void *module, tn_tensor *x)
{
    tn_module *m = module;
    if (!tn_module_ready("tn_call", m)) return NULL;
    const tn_frame f = open_frame(m);
    const char    *name = tn__kind_name(m);
    tn_tensor     *y = NULL, *other;
    if (!m->kind->forward) {
        tn_raise(TN_EUNSUPPORTED, "tn_call: %s has no forward of one input and one result; call its typed function",
                 name);
        return tn_leave(f, NULL);
    }
    if (!x) {
        tn_raise(TN_EINVAL, "%s: the input is NULL", name);
        return tn_leave(f, NULL);
    }
    m->base->hooks_run++;
    for (const tn__hook *h = m->base->hooks; h; h = h->next)
        if (h->before && (other = h->before(m, x, h->user))) x = other;
    if (tn_error() == TN_OK) {
        called = m;
        y = m->kind->forward(m, x);
        called = NULL;
        if (!y && tn_error() == TN_OK)
            tn_raise(TN_ESTATE, "%s: its forward returned NULL without raising an error (see tn_raise)", name);
    }
    for (const tn__hook *h = m->base->hooks; h && tn_error() == TN_OK; h = h->next)
        if (h->after && (other = h->after(m, x, y, h->user))) y = other;
    if (!--m->base->hooks_run) sweep(m);
    return tn_leave(f, y);
}

/* ---- hooks ----------------------------------------------------------------------------------------------------- */

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
    for (tn__hook *h = m ? m->base->hooks : NULL; h; h = h->next)
        if (h->user == user) h->before = NULL, h->after = NULL;
    if (m && !m->base->hooks_run) sweep(m);
}
