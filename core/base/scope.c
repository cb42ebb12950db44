/* scope.c — who owns a tensor: a stack of references for each thread, on which a scope is a watermark. */
#include "core/internal.h"

bool tn_grad_enabled(void) { return !tn__self.no_grad; }

tn_scope tn_scope_begin(void)
{
    return (tn_scope){
        .mark = tn__self.top, .path = tn__self.path_depth, .grad = !tn__self.no_grad, .autocast = tn__self.autocast};
}

tn_scope tn_no_grad_begin(void)
{
    tn_scope s = tn_scope_begin();
    tn__self.no_grad = true;
    return s;
}

void tn_scope_end(tn_scope s)
{
    while (tn__self.top > s.mark) tn_drop(tn__self.stack[--tn__self.top]);
    if (tn__self.path_depth > s.path) tn__self.path_depth = s.path;
    tn__self.no_grad = !s.grad, tn__self.autocast = s.autocast;
    if (__builtin_expect(tn__self.casts != NULL, 0) && !s.autocast) {
        tn__object *casts = tn__self.casts;
        tn__self.casts = NULL;
        tn__object_drop(casts);
    }
}

/* Room for one more reference; raises. */
static bool reserve(void)
{
    if (tn__self.top < tn__self.capacity) return true;
    size_t cap = tn__self.capacity ? 2 * tn__self.capacity : 64, size = sizeof *tn__self.stack;
    void  *p = tn__self.stack;
    if (!tn__mem_grow(&p, tn__self.capacity * size, cap * size)) return false;
    tn__self.stack = p;
    tn__self.capacity = cap;
    return true;
}

tn_tensor *tn__scoped(tn_tensor *t)
{
    if (!t) return NULL;
    if (!reserve()) return tn_drop(t), NULL;
    return tn__self.stack[tn__self.top++] = t;
}

/* t takes a place on the stack that the scope gives up, so this needs no memory and cannot fail; but a tensor that the
 * scope does not own (a parameter, a result from outside) must not come to be owned twice. */
static void move_out(tn_scope *s, tn_tensor *t)
{
    for (size_t i = tn__self.top; t && i-- > s->mark;) {
        if (tn__self.stack[i] != t) continue;
        tn__self.stack[i] = tn__self.stack[s->mark];
        tn__self.stack[s->mark++] = t;
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
    for (int i = 0; i < n; i++) move_out(&s, t[i]);
    tn_scope_end(s);
}

tn_tensor *tn_keep(tn_tensor *t)
{
    if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

/* Leaves a hole: scopes are counted in places. */
tn_tensor *tn_take(tn_tensor *t)
{
    for (size_t i = tn__self.top; t && i-- > 0;) {
        if (tn__self.stack[i] != t) continue;
        tn__self.stack[i] = NULL;
        return t;
    }
    return tn_keep(t);
}
