/* lm.c — tn_lm: calls the functions of a module's class, tn_lm_ops, or the defaults of those that it does not have. */
#include "models/generate/lm_private.h"

#include <math.h>
#include <string.h>

static const char *name_of(void *m) { return ((tn_module *)m)->kind->name; }

/* NULL: raised. */
static const tn_lm_ops *ops_of(const char *who, void *m)
{
    if (!tn_module_ready(who, m)) return NULL;
    const tn_lm_ops *ops = ((tn_module *)m)->kind->lm;
    if (!ops)
        tn_raise(TN_EINVAL,
                 "a %s is not a language model; expected a tn_gpt, a tn_llama, or a module whose class has .lm",
                 name_of(m));
    else if (!ops->info || (!ops->hidden && (!ops->run || !ops->loss)))
        tn_raise(TN_EINVAL, "%s: the tn_lm_ops of its class need .info and .hidden, or .info, .run and .loss",
                 name_of(m));
    return tn_error() == TN_OK ? ops : NULL;
}

tn_lm_info tn_lm_info_of(void *m)
{
    const tn_lm_ops *ops = ops_of(__func__, m);
    return ops ? ops->info(m) : (tn_lm_info){0};
}

/* ---- logits and loss --------------------------------------------------------------------------------------------- */

bool tn__ids_fit(void *m, const tn_tensor *ids)
{
    char text[192];
    if (ids && tn_ndim(ids) == 2) return true;
    return tn_raise_false(TN_ESHAPE, "%s: ids must be [batch, length], got %s", name_of(m),
                          ids ? tn_shape_text(tn_shape_of(ids), text, sizeof text) : "NULL");
}

/* Checks the arguments and runs .hidden. */
static tn_tensor *hidden_states(const tn_lm_ops *ops, void *m, const tn_lm_info *i, tn_decoder_args a)
{
    if (!tn__ids_fit(m, a.ids)) return NULL;
    const int64_t n = tn_size(a.ids, 1) + (tn_kv_cache_at(a.cache) ? 0 : tn_kv_cache_length(a.cache));
    if (a.cache && !i->blocks)
        return tn_raise_null(TN_EUNSUPPORTED, "%s: this model has no key/value cache; omit .cache", name_of(m));
    if (i->limited && n > i->positions)
        return tn_raise_null(TN_ESHAPE,
                             "%s: a sequence of %lld tokens is longer than the model's %lld positions; truncate it",
                             name_of(m), (long long)n, (long long)i->positions);
    return ops->hidden(m, a);
}

enum { IGNORED = -100 }; /* targets without a loss */

/* Bool [B, T], true where a row has no target any more; NULL if there is no such place. */
static tn_tensor *after_targets(const tn_tensor *ids, const tn_tensor *targets)
{
    bool any = false;
    if (!targets || !tn_shape_equal(tn_shape_of(targets), tn_shape_of(ids))) return NULL; /* or the loss reports it */
    const tn_scope s = tn_no_grad_begin();
    const int64_t  n = tn_size(ids, 1);
    tn_tensor     *mask = tn_zeros_of(TN_BOOL, tn_shape_of(ids));
    uint8_t       *to = tn_data_mut(mask);
    for (int64_t end = to ? tn_numel(ids) : 0; end > 0; end -= n)
        for (int64_t i = end; i > end - n && tn_get_i64(targets, i - 1) == IGNORED; i--) to[i - 1] = 1, any = true;
    return tn_scope_return(s, any ? mask : NULL);
}

/* The router's loss of the layers' logits; loss itself if there are none. */
static tn_tensor *with_router(tn_tensor *loss, const tn_lm_info *i, const tn_decoder_args *a)
{
    return !a->router
               ? loss
               : tn_add(loss, tn_router_loss(a->router, i->layers, .per_token = i->experts_per_token,
                                             .balance = i->balance, .z = i->router_z, .padding = a->key_padding_mask));
}

/* tn_leave for y and for the logits of the layers' routers. */
static tn_tensor *leave(tn_frame f, tn_tensor *y, tn_tensor **router, int64_t layers)
{
    const size_t bytes = (size_t)(layers + 1) * sizeof(tn_tensor **);
    tn_tensor ***all = router && tn_error() == TN_OK ? tn_mem_get(bytes) : NULL;
    for (int64_t i = 0; all && i < layers; i++) all[i + 1] = router + i;
    if (all) all[0] = &y, tn_leave_list(f, (int)layers + 1, all), tn_mem_put(all, bytes);
    else y = tn_leave(f, y);
    for (int64_t i = 0; router && !all && i < layers; i++) router[i] = NULL;
    return y;
}

static tn_tensor *logits(tn_tensor *y, const tn_lm_info *i)
{
    y = tn_linear(y, i->out, i->bias);
    return i->logit_cap > 0 ? tn_mul_scalar(tn_tanh(tn_mul_scalar(y, 1 / i->logit_cap)), i->logit_cap) : y;
}

/* The loss of the hidden states y. The op that projects to the vocabulary ignores rows without a target; logits are
 * computed without those of padding, whose place in bf16's pairs of rows would change the weight's gradient. */
static tn_tensor *cross_entropy(void *m, tn_tensor *y, const tn_lm_info *i, tn_tensor *ids, tn_tensor *targets,
                                tn_tensor *padding)
{
    const int64_t n = tn_size(ids, 1);
    if (!targets && n < 2)
        return tn_raise_null(TN_ESHAPE, "%s: a sequence of length %lld has no next token as target; pass targets",
                             name_of(m), (long long)n);
    if (!targets) y = tn_narrow(y, 1, 0, n - 1), targets = tn_narrow(ids, 1, 1, n - 1);
    if (i->logit_cap > 0 && padding) {
        const tn_unpadded u = tn_unpad(padding);
        y = tn_unpad_rows(u, y), targets = tn_unpad_rows(u, targets);
    }
    if (i->logit_cap > 0) return tn_cross_entropy(logits(y, i), targets, .ignore_index = IGNORED);
    return tn_linear_cross_entropy(y, i->out, i->bias, targets, .ignore_index = IGNORED);
}

tn_tensor *tn__lm_run(const char *who, void *m, tn_decoder_args a)
{
    const tn_lm_ops *ops = ops_of(who, m);
    if (!ops || ops->run) return ops ? ops->run(m, a) : NULL;
    const tn_lm_info i = ops->info(m);
    const tn_frame   f = tn_module_enter(m);
    for (int64_t k = 0; a.router && k < i.layers; k++) a.router[k] = NULL;
    tn_tensor *y = hidden_states(ops, m, &i, a);
    if (y && a.last) y = tn_narrow(y, 1, tn_size(y, 1) - 1, 1);
    return leave(f, y && !a.vectors ? logits(y, &i) : y, a.router, i.layers);
}

tn_tensor *tn__lm_loss(const char *who, void *m, tn_tensor *ids, tn_tensor *targets)
{
    const tn_lm_ops *ops = ops_of(who, m);
    if (!ops || ops->loss) return ops ? ops->loss(m, ids, targets) : NULL;
    const tn_lm_info i = ops->info(m);
    const tn_frame   f = tn_module_enter(m);
    tn_decoder_args  a = {.ids = ids, .skip_padding = true};
    const bool       routed = ((tn_module *)m)->training && i.layers > 0 && (i.balance != 0 || i.router_z != 0);
    const size_t     bytes = routed ? (size_t)i.layers * sizeof(tn_tensor *) : 0;
    if (routed && (a.router = tn_mem_get(bytes))) memset(a.router, 0, bytes);
    if (tn__ids_fit(m, ids)) a.key_padding_mask = after_targets(ids, targets);
    tn_tensor *y = tn_error() == TN_OK ? hidden_states(ops, m, &i, a) : NULL;
    y = with_router(y ? cross_entropy(m, y, &i, ids, targets, a.key_padding_mask) : NULL, &i, &a);
    if (a.router) tn_mem_put(a.router, bytes);
    return tn_leave(f, y);
}

tn_tensor *tn_lm_run(void *m, tn_decoder_args a) { return tn__lm_run(__func__, m, a); }
tn_tensor *tn_lm_loss(void *m, tn_tensor *ids, tn_tensor *targets) { return tn__lm_loss(__func__, m, ids, targets); }

void tn__lm_init(void *m, double init, int64_t layers)
{
    const double last = init / sqrt(2 * (double)layers);
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);) {
        const bool residual = strstr(p.name, "out_proj.") || strstr(p.name, "linear2.");
        if (tn_ndim(p.tensor) > 1) tn_init_normal(p.tensor, 0, residual ? last : init);
        else if (strstr(p.name, "bias")) tn_init_zeros(p.tensor);
    }
}

/* ---- generation -------------------------------------------------------------------------------------------------- */

tn_tensor *tn__lm_step(void *m, tn_tensor *ids, tn_kv_cache *cache)
{
    return tn_lm_run(m, (tn_decoder_args){.ids = ids, .cache = cache, .last = true});
}

tn_decoding *tn__lm_decoding(const char *who, void *m, int64_t rows, int64_t length)
{
    const tn_lm_ops *ops = ops_of(who, m);
    if (!ops || ops->decoding) return ops ? ops->decoding(m, rows, length) : NULL;
    return tn__lm_plain_decoding(who, m, rows, length);
}
tn_decoding *tn__lm_plain_decoding(const char *who, void *m, int64_t rows, int64_t length)
{
    const tn_lm_ops *ops = ops_of(who, m);
    if (!ops) return NULL;
    const tn_lm_info i = ops->info(m);
    if (i.limited && length > i.positions)
        return tn_raise_null(TN_EINVAL, "%s: length is %lld, but the model has only %lld positions", who,
                             (long long)length, (long long)i.positions);
    if (i.blocks) return tn_cached_decoding(m, tn__lm_step, tn_blocks_cache(i.blocks, rows, length, 0), rows, length);
    if (rows >= 1 && length >= 1) return tn__uncached_decoding(m, tn__lm_step, rows, length);
    return tn_raise_null(TN_EINVAL, "%s: %lld rows of length %lld, but both must be at least 1", who, (long long)rows,
                         (long long)length);
}
tn_decoding *tn_lm_decoding(void *m, int64_t rows, int64_t length)
{
    return tn__lm_decoding(__func__, m, rows, length);
}

static tn_blocks *blocks_of(const char *who, void *m)
{
    const tn_lm_ops *ops = ops_of(who, m);
    tn_blocks       *blocks = ops ? ops->info(m).blocks : NULL;
    if (ops && !blocks) tn_raise(TN_EUNSUPPORTED, "%s: a %s has no tn_blocks and no key/value cache", who, name_of(m));
    return blocks;
}
tn_blocks *tn_lm_blocks(void *m) { return blocks_of(__func__, m); }

static tn_status rotate_keys(void *m, tn_kv_cache *cache, int64_t from, int64_t count)
{
    return tn_blocks_forget(tn_lm_blocks(m), cache, from, count);
}
tn_decoding *tn_lm_rolling(void *m, int64_t rows, int64_t room, int64_t sinks)
{
    tn_blocks *blocks = blocks_of(__func__, m);
    if (!blocks) return NULL;
    if (!tn_rotary_of(((tn_block *)tn_at(blocks->layers, 0))->self_attn))
        return tn_raise_null(TN_EUNSUPPORTED,
                             "tn_lm_rolling: this model has position embeddings; only rotary positions are supported");
    return tn_rolling_decoding(m, tn__lm_step, rotate_keys, tn_blocks_cache(blocks, rows, room, 0), rows, room, sinks);
}

tn_status tn_lm_save(void *m, const char *dir)
{
    const tn_lm_ops *ops = ops_of(__func__, m);
    if (!ops || ops->save) return ops ? ops->save(m, dir) : tn_error();
    return tn_raise(TN_EUNSUPPORTED, "tn_lm_save: a %s cannot be saved, because its class has no .lm->save",
                    name_of(m));
}
