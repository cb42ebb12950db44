/* apply.c — operations on all parts of a module: counting, freezing, changing the dtype. */
#include "nn/base/nn_private.h"

int64_t tn_module_count(void *m, bool trainable)
{
    int64_t n = 0;
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_next(&p);)
        if (!trainable || tn_needs_grad(p.tensor)) n += tn_numel(p.tensor);
    return n;
}

void tn_module_train(void *m, bool on)
{
    if (tn__blocked()) return;
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE | TN_EACH_NAME); tn_next(&e);) e.module->training = on;
}

void tn_module_freeze(void *m, bool on)
{
    if (tn__blocked()) return;
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_NAME); tn_next(&p);) {
        if (on) tn_freeze_tensor(p.tensor);
        else tn_requires_grad(p.tensor);
    }
}

void tn_module_zero_grad(void *m)
{
    if (tn__blocked()) return;
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_NAME); tn_next(&p);) tn_zero_grad(p.tensor);
}

enum { EVERY_TENSOR = TN_EACH_PARAMETER | TN_EACH_BUFFER };

static tn_tensor *converted(const tn_tensor *t, tn_dtype dt)
{
    tn_tensor *now = tn_empty_of(dt, tn_shape_of(t));
    if (now) tn_copy_from(now, t);
    return now;
}

/* True unless t is packed (8 bits or f16) and unpacks to another dtype than dt, which the layers around it would
 * get. */
static bool may_convert(const tn_each *e, tn_dtype dt)
{
    if (!tn_is_packed(e->tensor) || tn_weight_dtype(e->tensor) == dt) return true;
    return tn_raise_false(
        TN_EDTYPE,
        "tn_module_to: '%s' is packed (8 bits or f16) and unpacks to %s, not %s; call tn_module_to before "
        "tn_quantize or tn_halve",
        e->name, tn_dtype_name(tn_weight_dtype(e->tensor)), tn_dtype_name(dt));
}

/* Creates all new tensors before it changes the first old one; the change itself allocates nothing. */
tn_status tn_module_to(void *module, tn_dtype dt)
{
    tn_module *m = module;
    size_t     n = 0, at = 0;
    if (!tn_module_ready("tn_module_to", m)) return tn_error();
    if (!tn_dtype_is_float(dt))
        return tn_raise(TN_EDTYPE, "tn_module_to: parameters are f32, f64 or bf16, not %s", tn_dtype_name(dt));
    for (tn_each e = tn_module_each(m, EVERY_TENSOR); tn_next(&e);) n += 2;
    if (!n) return TN_OK;
    tn_tensor **now = tn_mem_get(n * sizeof *now);
    if (!now) return tn_error();
    const tn_scope s = tn_no_grad_begin();
    for (tn_each e = tn_module_each(m, EVERY_TENSOR); tn_next(&e); at += 2) {
        if (!may_convert(&e, dt)) break;
        if (!tn_dtype_is_float(tn_dtype_of(e.tensor)) || tn_dtype_of(e.tensor) == dt) continue;
        now[at] = converted(e.tensor, dt);
        if (tn_grad(e.tensor)) now[at + 1] = converted(tn_grad(e.tensor), dt);
    }
    if (tn_error() == TN_OK) {
        at = 0;
        for (tn_each e = tn_module_each(m, EVERY_TENSOR); tn_next(&e); at += 2) {
            if (now[at]) tn_adopt(e.tensor, now[at]);
            if (now[at + 1]) tn_adopt(tn_grad(e.tensor), now[at + 1]);
        }
    }
    tn_scope_end(s);
    tn_mem_put(now, n * sizeof *now);
    return tn_error();
}
