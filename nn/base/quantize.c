/* quantize.c — the weights of products and tables in 8 bits or f16, for inference. A weight stays the tensor that it
 * was, so that whoever holds it, ties and members of structs, has them so; it is a buffer from then on, and saved as
 * one. */
#include "nn/base/nn_private.h"

/* Is it a weight that may be turned, and still to be turned? */
static bool turns(const tn_each *e)
{
    if (tn_is_q8(e->tensor)) return false;
    for (int i = 0; i < e->module->base->slots; i++) {
        const tn__slot *s = &e->module->base->slot[i];
        if (s->tensor == e->tensor && s->weight) return true;
    }
    return false;
}

/* The same walk each time: by all names, as one weight may stand under several. */
static tn_each weights_of(tn_module *m) { return tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_NAME); }

/* What has become of them: no parameters any more. */
static void file_as_buffers(tn_module *root)
{
    for (tn_each e = tn_module_each(root, TN_EACH_MODULE | TN_EACH_NAME); tn_next(&e);)
        for (int i = 0; i < e.module->base->slots; i++) {
            tn__slot *s = &e.module->base->slot[i];
            if (s->tensor && s->what == TN__PARAMETER && tn_is_q8(s->tensor)) s->what = TN__BUFFER;
        }
}

/* All are packed before the first is changed; changing allocates nothing. */
static tn_status turn(const char *who, tn_module *m, tn_tensor *(*pack)(const tn_tensor *))
{
    size_t n = 0, at = 0; /* all, and those that turn */
    if (!tn_module_ready(who, m)) return tn_error();
    for (tn_each e = weights_of(m); tn_next(&e);) n++;
    if (!n) return TN_OK;
    const size_t   bytes = 2 * n * sizeof(tn_tensor *);
    tn_tensor    **was = tn_mem_get(bytes), **now = was + n;
    const tn_scope s = tn_no_grad_begin();
    for (tn_each e = weights_of(m); tn_error() == TN_OK && tn_next(&e);) {
        size_t before = 0;
        if (!turns(&e)) continue;
        while (before < at && was[before] != e.tensor) before++;
        if (before < at) continue; /* tied */
        if (!tn__may_write(who, e.tensor)) break;
        tn_path_push(e.name);
        was[at] = e.tensor, now[at++] = pack(e.tensor);
        tn_path_pop();
    }
    if (tn_error() == TN_OK) {
        for (size_t i = 0; i < at; i++) tn_requires_no_grad(was[i]), tn_adopt(was[i], now[i]);
        file_as_buffers(m);
        tn_module_freeze(m, true);
        tn_module_train(m, false);
    }
    tn_scope_end(s);
    tn_mem_put(was, bytes);
    return tn_error();
}

tn_status tn_module_quantize(void *m) { return turn("tn_quantize", m, tn_q8_pack); }
tn_status tn_module_halve(void *m) { return turn("tn_halve", m, tn_f16_pack); }
