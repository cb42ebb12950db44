/* scope.c — ownership of tensors: a stack of references for each thread, on which a scope is a watermark. Here a tensor
 * is only an object with a count, which ends when the count falls to 0. */
#include "core/base/checks.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

static tn__object *object_of(tn_tensor *t) { return (tn__object *)(void *)t; } /* tn_tensor's first member */

void tn__object_misused(const char *who, const char *what)
{
    tn_raise(
        TN_ESTATE,
        "%s: %s was freed: its scope ended, or it was dropped more often than it was kept; a scope frees what it owns, "
        "call tn_drop only after tn_keep or tn_take",
        who, what);
}

/* True if the object of this stack entry is still alive. */
static inline bool alive(const tn__owned *w) { return w->serial == w->object->serial; }

void tn__drop_owned(size_t mark)
{
    enum { AHEAD = 4 }; /* objects whose memory is fetched ahead: most have left the caches */
    while (tn__self.top > mark) {
        const tn__owned *w = &tn__self.stack[--tn__self.top];
        if (tn__self.top >= mark + AHEAD) __builtin_prefetch((w - AHEAD)->object);
        if (!w->object) continue;
        if (__builtin_expect(alive(w), 1)) tn__object_drop(w->object);
        else tn__object_misused("tn_scope_end", "a tensor that this scope owns");
    }
}

bool tn_grad_enabled(void) { return !tn__self.mode.no_grad; }

tn_scope tn_scope_begin(void)
{
    return (tn_scope){.mark = tn__self.top, .path = tn__self.path_depth, .mode = tn__self.mode};
}

tn_scope tn_no_grad_begin(void)
{
    tn_scope s = tn_scope_begin();
    tn__self.mode.no_grad = true;
    return s;
}

tn_scope tn__blank_begin(void)
{
    const tn_scope s = tn_scope_begin();
    tn__self.mode.blank = true;
    return s;
}

void tn_scope_end(tn_scope s)
{
    tn__drop_owned(s.mark);
    if (tn__self.path_depth > s.path) tn__self.path_depth = s.path;
    tn__self.mode = s.mode;
    if (__builtin_expect(tn__self.casts != NULL, 0) && !s.mode.autocast) {
        tn__object *casts = tn__self.casts;
        tn__self.casts = NULL;
        tn__object_drop(casts);
    }
}

/* Called at the thread's end. */
static void end_all(void)
{
    tn__drop_owned(0);
    tn__mem_put(tn__self.stack, tn__self.capacity * sizeof *tn__self.stack);
    tn__self.stack = NULL, tn__self.capacity = 0;
}

/* Reserves one more reference; raises. */
static bool reserve(void)
{
    if (tn__self.top < tn__self.capacity) return true;
    size_t cap = tn__self.capacity ? 2 * tn__self.capacity : 64, size = sizeof *tn__self.stack;
    void  *p = tn__self.stack;
    if (!tn__mem_grow(&p, tn__self.capacity * size, cap * size)) return false;
    if (!tn__self.stack) tn__at_thread_end(TN__END_SCOPES, end_all);
    tn__self.stack = p;
    tn__self.capacity = cap;
    return true;
}

tn_tensor *tn__scoped(tn_tensor *t)
{
    if (!t) return NULL;
    if (!reserve()) return tn__object_drop(object_of(t)), NULL;
    tn__self.stack[tn__self.top++] = (tn__owned){object_of(t), object_of(t)->serial};
    return t;
}

/* Moves t to an entry of the stack that the scope frees, so this needs no memory and cannot fail; but a tensor that the
 * scope does not own (a parameter, a result from outside) must not become owned twice. */
static void move_out(tn_scope *s, tn_tensor *t)
{
    for (size_t i = tn__self.top; t && i-- > s->mark;) {
        const tn__owned w = tn__self.stack[i];
        if (w.object != object_of(t) || !alive(&w)) continue;
        tn__self.stack[i] = tn__self.stack[s->mark];
        tn__self.stack[s->mark++] = w;
        break;
    }
}

tn_tensor *tn_scope_return(tn_scope s, tn_tensor *t)
{
    move_out(&s, t);
    tn_scope_end(s);
    return t;
}

void tn_scope_return_list(tn_scope s, int n, tn_tensor *const *t)
{
    if (n > 0 && tn__not_null("tn_scope_return_list", "the list of tensors", t))
        for (int i = 0; i < n; i++) move_out(&s, t[i]);
    tn_scope_end(s);
}

void tn_drop(tn_tensor *t) { tn__object_drop(object_of(t)); }

tn_tensor *tn_keep(tn_tensor *t)
{
    if (t && tn__object_freed(object_of(t))) return tn__object_misused("tn_keep", "this tensor"), NULL;
    tn__object_keep(object_of(t));
    return t;
}

/* Leaves an empty entry: scopes count entries. */
tn_tensor *tn__take_above(size_t mark, tn_tensor *t)
{
    for (size_t i = tn__self.top; t && i-- > mark;) {
        if (tn__self.stack[i].object != object_of(t) || !alive(&tn__self.stack[i])) continue;
        tn__self.stack[i].object = NULL;
        return t;
    }
    return tn_keep(t);
}
tn_tensor *tn_take(tn_tensor *t) { return tn__take_above(0, t); }
