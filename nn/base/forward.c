/* forward.c — running a module: the frame of a forward (a scope, a level of the module path, the state of the random
 * generator) and tn_call, which calls the class's forward with the hooks around it. */
#include "autograd/tape/casts.h"
#include "nn/base/hooks.h"
#include "nn/base/look_private.h"

/* tn_call opens a frame for the module it calls. The typed forward opens another one, which must not add the module's
 * name to the path again. */
static _Thread_local const tn_module *called;

/* The length of a function's name without "_run", the suffix of functions that a macro calls. */
static int length_of(const char *who)
{
    const int n = (int)strlen(who);
    return n > 4 && !strcmp(who + n - 4, "_run") ? n - 4 : n;
}

static _Thread_local struct {
    bool (*stop)(void *user);
    void *user;
} limit;

void tn_stop_when(bool (*stop)(void *user), void *user) { limit.stop = stop, limit.user = user; }

bool tn_module_ready(const char *who, void *module)
{
    const tn_module *m = module;
    if (tn__blocked()) return false;
    if (!who) who = "tn_module_ready";
    if (m && tn__module_freed(who, m)) return false;
    if (!m)
        return tn_raise_false(
            TN_EINVAL,
            "%.*s: the module is NULL: it is an absent child, or its constructor failed and the error was "
            "cleared",
            length_of(who), who);
    if (m->base->broken)
        return tn_raise_false(
            TN_ESTATE, "%s: the module is incomplete because its constructor failed; free it and create it again",
            tn__kind_name(m));
    if (limit.stop && limit.stop(limit.user))
        return tn_raise_false(TN_ESTATE, "%.*s: stopped, as the function of tn_stop_when asked", length_of(who), who);
    return true;
}

/* True if an optimizer has a parameter of the tree that m is in. */
static bool tree_is_trained(const tn_module *m)
{
    while (m->base->owner) m = m->base->owner;
    for (tn_each p = tn_module_each((void *)(uintptr_t)m, TN_EACH_PARAMETER); tn_next(&p);)
        if (tn__leaf_trained(p.tensor)) return true;
    return false;
}

/* Raises if m, which no module owns, was assigned to a member of the running module without tn_child, and training
 * would give it gradients that no optimizer uses, while one trains the module around it. A frozen m, one with an
 * optimizer of its own, one outside of another module's struct, and evaluation are fine. */
static void check_registered(const tn_module *m)
{
    const tn_module *running = tn__self.mode.module;
    if (!running || running == m || !running->training || tn__self.mode.no_grad || tn_error() != TN_OK) return;
    if (tn__module_freed("tn_enter", running) || !tn__points_to(running, m)) return;
    for (tn_each p = tn_module_each((void *)(uintptr_t)m, TN_EACH_PARAMETER); tn_next(&p);) {
        if (!tn_needs_grad(p.tensor) || tn__leaf_trained(p.tensor)) continue;
        if (tree_is_trained(running))
            tn_raise(TN_ESTATE,
                     "%s: its %s, with the parameter '%s', was assigned without tn_child, so that no optimizer trains "
                     "it, and tn_save and tn_free skip it; register it with tn_child, or freeze it with tn_freeze",
                     tn__kind_name(running), tn__kind_name(m), p.name);
        return;
    }
}

static tn_frame open_frame(const tn_module *m)
{
    tn_generator  *g = tn_current_generator();
    const tn_frame f = {tn_scope_begin(), g, *g};
    if (m && !m->base->owner) check_registered(m);
    if (m) tn__self.mode.module = m; /* until the end of the scope */
    if (m && m != called && m->base->name) tn_path_push(m->base->name);
    called = NULL;
    return f;
}

tn_frame tn_module_enter(void *m)
{
    if (tn_error() == TN_OK) tn_module_ready("tn_enter", m);
    return open_frame(m);
}

tn_tensor *tn_leave(tn_frame f, tn_tensor *y)
{
    if (tn__look_active()) y = tn__look_result(&f, y);
    const bool ok = tn_error() == TN_OK;
    if (!ok) tn__restore_generator(f.generator, f.began);
    return tn_scope_return(f.scope, ok ? y : NULL);
}

tn_tensor *tn_module_call(void *module, tn_tensor *x)
{
    tn_module *m = module;
    if (!tn_module_ready("tn_call", m)) return NULL;
    const tn_frame f = open_frame(m);
    const char    *name = tn__kind_name(m);
    tn_tensor     *y = NULL;
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
    if (m->base->hooks) x = tn__hooks_before(m, x);
    if (tn_error() == TN_OK) {
        called = m;
        y = m->kind->forward(m, x);
        called = NULL;
        if (!y && tn_error() == TN_OK)
            tn_raise(TN_ESTATE, "%s: its forward returned NULL without raising an error (see tn_raise)", name);
    }
    if (m->base->hooks) y = tn__hooks_after(m, x, y);
    if (!--m->base->hooks_run && m->base->hooks) tn__hooks_sweep(m);
    return tn_leave(f, y);
}
