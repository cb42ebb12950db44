/* replaced.c — tn_functional_begin: ops use other tensors in place of parameters.
 *
 * The list of replacements is a mode of the thread: a scope restores it, threads have their own, and a backward pass
 * runs without it. A call replaces its inputs once: the ops that it is made of get the replacements. The list is in the
 * memory of a tensor that the scope owns, so that nothing else must free it. */
#include "autograd/tape/replaced.h"
#include "autograd/tape/call.h"

#include <string.h>

tn_tensor *tn__replacement(tn_tensor *t)
{
    for (const tn__replaced *r = tn__self.mode.replaced; r; r = r->outer)
        for (int i = 0; i < r->n; i++)
            if (r->of[i] == t) return r->by[i];
    return t;
}

int tn__replaced_list(tn_tensor **of, tn_tensor **by)
{
    int n = 0;
    for (const tn__replaced *r = tn__self.mode.replaced; r; r = r->outer) {
        if (of) memcpy(of + n, r->of, (size_t)r->n * sizeof *of), memcpy(by + n, r->by, (size_t)r->n * sizeof *by);
        n += r->n;
    }
    return n;
}

static bool fits(int i, const tn_tensor *of, const tn_tensor *by)
{
    static const char who[] = "tn_functional_begin";
    char              a[192], b[192];
    if (!of || !by) return tn_raise_false(TN_EINVAL, "%s: %s[%d] is NULL", who, of ? "by" : "of", i);
    if (!tn__alive(who, of) || !tn__alive(who, by)) return false;
    if (of->node)
        return tn_raise_false(TN_EINVAL, "%s: of[%d] is the result of an op; expected a parameter or a buffer", who, i);
    if (of->dtype == by->dtype && tn_shape_equal(of->l.shape, by->l.shape)) return true;
    return tn_raise_false(TN_ESHAPE, "%s: by[%d] is %s %s, but must be %s %s like the tensor that it replaces", who, i,
                          tn_dtype_name(by->dtype), tn_shape_text(by->l.shape, a, sizeof a), tn_dtype_name(of->dtype),
                          tn_shape_text(of->l.shape, b, sizeof b));
}

tn_scope tn_functional_begin(int n, tn_tensor *const *of, tn_tensor *const *by)
{
    const tn_scope s = tn_scope_begin();
    if (tn__blocked()) return s;
    if (n < 0 || (n && (!of || !by)))
        return tn_raise(TN_EINVAL, "tn_functional_begin: needs two arrays of n tensors, of and by; n is %d", n), s;
    for (int i = 0; i < n; i++)
        if (!fits(i, of[i], by[i])) return s;
    const size_t  list = (size_t)n * sizeof *of;
    tn_tensor    *memory = tn_empty_of(TN_U8, TN_SHAPE((int64_t)(sizeof(tn__replaced) + 2 * list)));
    tn__replaced *r = memory ? tn_data_mut(memory) : NULL;
    if (!r) return s;
    tn_tensor **own = (tn_tensor **)(void *)(r + 1);
    for (int i = 0; i < n; i++) own[i] = of[i], own[n + i] = tn__replacement(by[i]);
    *r = (tn__replaced){tn__self.mode.replaced, n, own, own + n};
    tn__self.mode.replaced = r;
    for (const tn__replaced *q = r; q; q = q->outer)
        for (int k = 0; k < q->n; k++)
            for (int i = 0; i < n; i++)
                if (q->by[k] == own[i] && q->of[k] != own[i])
                    return tn_raise(TN_EINVAL, "tn_functional_begin: of[%d] itself replaces a tensor; pass a tn_clone",
                                    i),
                           s;
    return s;
}

tn_status tn__call_replaced(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out, const void *args,
                            bool inplace)
{
    const tn__replaced *r = tn__self.mode.replaced;
    tn_tensor          *few[TN__FEW], **now = few;
    const size_t        bytes = (size_t)nin * sizeof *now;
    if (nin > TN__FEW && !(now = tn__mem_get(bytes))) return tn__self.error;
    for (int i = 0; i < nin; i++) now[i] = tn__replacement(in[i]);
    tn__self.mode.replaced = NULL;
    if (inplace) out[0] = tn_op_apply_(op, args, nin, now);
    else tn_op_call(op, nin, now, nout, out, args);
    tn__self.mode.replaced = r;
    if (now != few) tn__mem_put(now, bytes);
    return tn__self.error;
}
