/* quantize.c — converts the weights of linear layers and embeddings to 8 bits or f16, for inference. The tensor object
 * of a weight stays the same, so ties and struct members that point to it remain valid. It becomes a buffer and is
 * saved as one. */
#include "nn/base/nn_private.h"

/* True for a weight that tn_weight registered and that is not packed yet. */
static bool is_convertible(const tn_each *e)
{
    if (tn_is_packed(e->tensor)) return false;
    for (int i = 0; i < e->module->base->slots; i++) {
        const tn__slot *s = &e->module->base->slot[i];
        if (s->tensor == e->tensor && s->weight) return true;
    }
    return false;
}

/* The walk that all passes use: by all names, since one weight may have several. */
static tn_each weights_of(tn_module *m) { return tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_NAME); }

/* Turns the slots of packed parameters into buffers. */
static void make_buffers(tn_module *root)
{
    for (tn_each e = tn_module_each(root, TN_EACH_MODULE | TN_EACH_NAME); tn_next(&e);)
        for (int i = 0; i < e.module->base->slots; i++) {
            tn__slot *s = &e.module->base->slot[i];
            if (s->tensor && s->what == TN__PARAMETER && tn_is_packed(s->tensor)) s->what = TN__BUFFER;
        }
}

void tn__packed_done(tn_module *m)
{
    make_buffers(m);
    tn_module_freeze(m, true);
    tn_module_train(m, false);
    tn_trim(); /* returns the memory of the weights that were packed: later blocks have other sizes */
}

/* Rejects f64: the packed weight would keep f64 as its dtype, which no product supports. */
tn_tensor *tn__pack_weight(const char *who, tn_tensor *t, tn_tensor *(*pack)(const tn_tensor *))
{
    if (tn_dtype_of(t) != TN_F64) return pack(t);
    return tn_raise_null(
        TN_EDTYPE,
        "%s: the weight is f64, but products with packed weights are f32 or bf16; call tn_module_to(m, "
        "TN_F32) before",
        who);
}

/* Packs all weights before it changes the first one; the change allocates nothing. */
tn_status tn__pack_weights(const char *who, tn_module *m, tn_tensor *(*pack)(const tn_tensor *))
{
    size_t n = 0, at = 0; /* number of parameters; number of weights to convert */
    if (!tn_module_ready(who, m)) return tn_error();
    for (tn_each e = weights_of(m); tn_next(&e);) n++;
    if (!n) return TN_OK;
    const size_t   bytes = 2 * n * sizeof(tn_tensor *);
    tn_tensor    **was = tn_mem_get(bytes), **now = was ? was + n : NULL;
    const tn_scope s = tn_no_grad_begin();
    for (tn_each e = weights_of(m); tn_error() == TN_OK && tn_next(&e);) {
        size_t before = 0;
        if (!is_convertible(&e)) continue;
        while (before < at && was[before] != e.tensor) before++;
        if (before < at) continue; /* tied */
        tn_path_push(e.name);
        was[at] = e.tensor, now[at++] = tn__pack_weight(who, e.tensor, pack);
        tn_path_pop();
    }
    if (tn_error() == TN_OK) {
        for (size_t i = 0; i < at; i++) tn_freeze_tensor(was[i]), tn_adopt(was[i], now[i]);
        tn__packed_done(m);
    }
    tn_scope_end(s);
    tn_mem_put(was, bytes);
    return tn_error();
}

tn_status tn_quantize_run(tn_quantize_args c)
{
    static const char *const who = "tn_quantize";
    if (c.bits != 0 && c.bits != 4 && c.bits != 8)
        return tn_raise(TN_EINVAL, "%s: .bits is %d, but must be 8 or 4", who, c.bits);
    if (c.bits == 4 && c.activations)
        return tn_raise(TN_EINVAL, "%s: .activations is for 8 bits; products with .bits = 4 always round their input",
                        who);
    return tn__pack_weights(who, c.module, c.bits == 4 ? tn_q4_pack : c.activations ? tn_int8_pack : tn_q8_pack);
}
tn_status tn_module_quantize(void *m) { return tn__pack_weights("tn_quantize", m, tn_q8_pack); }
tn_status tn_module_halve(void *m) { return tn__pack_weights("tn_halve", m, tn_f16_pack); }
