/* prompt_cache.c — files of the tokens that a decoding has read and of their keys and values: a safetensors file with a
 * checksum of each tensor, "tokens" i64 [n], the tensors of tn_kv_cache_put, and in the metadata a hash of the model,
 * because keys and values of another model would be silently wrong. */
#include "core/base/toolbox.h"
#include "core/files/safetensors.h"
#include "models/generate/lm_private.h"

#include <stdio.h>
#include <string.h>

static const char key[] = "tenon.prompt_cache"; /* of the metadata: the model's hash, 16 digits */
enum { DIGITS = 16, PROBE = 8 };

/* ---- the model --------------------------------------------------------------------------------------------------- */

static uint64_t hash_tensor(uint64_t sum, const char *name, tn_tensor *t)
{
    tn_tensor  *dense = tn_contiguous(t);
    const void *from = dense ? tn_data(dense) : NULL;
    sum = tn__fnv1a_i64(tn__fnv1a(sum, name, strlen(name) + 1), (int64_t)tn_dtype_of(t));
    for (int d = 0; d < tn_ndim(t); d++) sum = tn__fnv1a_i64(sum, tn_size(t, d));
    return from ? tn__fnv1a_words(sum, from, (size_t)tn_numel(t) * tn_dtype_size(tn_dtype_of(t))) : sum;
}

/* What far positions depend on. */
static uint64_t hash_attention(uint64_t sum, const tn_mha *a)
{
    const tn_rope_config  none = {TN_ROPE_DEFAULTS};
    const tn_rotary      *rotary = tn_rotary_of(a);
    const tn_rope_config *r = rotary ? &rotary->rope : &none;
    const double          reals[] = {r->theta, r->factor, r->low, r->high};
    const int64_t         whole[] = {a->scores.window, rotary != NULL, r->dim, r->trained, r->scaling, r->interleaved};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) sum = tn__fnv1a_i64(sum, whole[i]);
    return tn__fnv1a_f64(sum, (int)(sizeof reals / sizeof *reals), reals);
}

/* A hash of everything that keys and values depend on: the weights, the positions, and, for the rest of the config, the
 * hidden states of a few tokens. */
static bool identify(void *m, char to[DIGITS + 1])
{
    const tn_scope   s = tn_no_grad_begin();
    const tn_lm_info i = tn_lm_info_of(m);
    uint64_t         sum = TN__FNV1A;
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);) {
        const tn_scope inner = tn_scope_begin();
        sum = hash_tensor(sum, p.name, p.tensor);
        tn_scope_end(inner);
    }
    for (int64_t k = 0; i.blocks && k < i.blocks->depth; k++) {
        const tn_block *b = tn_at(i.blocks->layers, k % tn_length(i.blocks->layers));
        if (b) sum = hash_attention(sum, b->self_attn);
    }
    const int64_t n = i.positions > 0 && i.positions < PROBE ? i.positions : PROBE;
    tn_tensor    *ids = tn_error() == TN_OK ? tn_empty_of(TN_I64, TN_SHAPE(1, n)) : NULL;
    for (int64_t k = 0; ids && k < n; k++) tn_set_i64(ids, k, k % i.vocab);
    tn_tensor *y = ids ? tn_lm_run(m, (tn_decoder_args){.ids = ids, .vectors = true}) : NULL;
    if (y) sum = hash_tensor(sum, "", y);
    tn_scope_end(s);
    snprintf(to, DIGITS + 1, "%016llx", (unsigned long long)sum);
    return tn_error() == TN_OK;
}

/* ---- saving and loading ------------------------------------------------------------------------------------------ */

/* The decoding, if the arguments are valid; else raises. */
static tn__cached *check(const char *who, tn_decoding *base, const tn_tensor *tokens, const char *path)
{
    char        text[192];
    tn__cached *d = tn__as_cached(base);
    if (tn__blocked() || !tn__not_null(who, "the decoding", base) || !tn__not_null(who, "the path", path)) return NULL;
    if (!d)
        return tn_raise_null(TN_EUNSUPPORTED,
                             "%s: the decoding must have a key/value cache and no draft, as those of "
                             "tn_gpt_decoding and tn_llama_decoding",
                             who);
    if (!tokens || tn_ndim(tokens) != 2 || tn_size(tokens, 0) != 1 || tn_size(tokens, 1) < 1)
        return tn_raise_null(TN_ESHAPE, "%s: the tokens must be [1, length], got %s", who,
                             tokens ? tn_shape_text(tn_shape_of(tokens), text, sizeof text) : "NULL");
    if (tn_dtype_of(tokens) != TN_I64 && tn_dtype_of(tokens) != TN_I32)
        return tn_raise_null(TN_EDTYPE, "%s: the tokens must be integers, i64 or i32, got %s", who,
                             tn_dtype_name(tn_dtype_of(tokens)));
    return d;
}

tn_status tn_prompt_cache_save(tn_decoding *base, tn_tensor *tokens, const char *path)
{
    static const char *const who = "tn_prompt_cache_save";
    char                     model[DIGITS + 1];
    tn__cached              *d = check(who, base, tokens, path);
    if (!d) return tn_error();
    const int64_t n = tn_size(tokens, 1), has = tn_kv_cache_length(d->cache);
    if (n > d->read)
        return tn_raise(TN_EINVAL, "%s: there are %lld tokens, but the decoding has read %lld", who, (long long)n,
                        (long long)d->read);
    if (has != d->read)
        return tn_raise(TN_ESTATE,
                        "%s: the decoding has dropped %lld of its %lld tokens; save before that, or make its cache "
                        "longer",
                        who, (long long)(d->read - has), (long long)d->read);
    if (!identify(d->model, model)) return tn_error();
    const tn_scope         s = tn_no_grad_begin();
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_note(w, key, model);
    tn_safetensors_put(w, "tokens", tn_view(tn_contiguous(tn_to(tokens, TN_I64)), TN_SHAPE(n)));
    if (tn_kv_cache_put(d->cache, n, w) == TN_OK) (void)!tn__safetensors_save_with_checksums(w, path);
    tn_safetensors_writer_free(w);
    tn_scope_end(s);
    return tn_error();
}

/* The tokens in the file, i64 [n]. NULL: raised. */
static tn_tensor *tokens_in(const tn_safetensors *f, void *model, const char *path)
{
    char        own[DIGITS + 1];
    const char *its = tn_safetensors_metadata(f, key);
    if (!its || tn_safetensors_find(f, "tokens") < 0)
        return tn_raise_null(TN_EFORMAT, "'%s': not a prompt cache: it has no %s", path,
                             its ? "tensor 'tokens'" : "\"tenon.prompt_cache\" in its metadata");
    if (!identify(model, own)) return NULL;
    if (strcmp(its, own) != 0)
        return tn_raise_null(
            TN_EFORMAT,
            "'%s': a prompt cache of another model, or of another type of weights: its model's hash is "
            "%.16s, expected %s; delete the file, or choose another",
            path, its, own);
    tn_tensor *t = tn_safetensors_get(f, "tokens");
    if (t && (tn_dtype_of(t) != TN_I64 || tn_ndim(t) != 1 || tn_numel(t) < 1))
        return tn_raise_null(TN_EFORMAT, "'%s': tensor 'tokens' must be i64 with one dim", path);
    return t;
}

int64_t tn_prompt_cache_load(tn_decoding *base, tn_tensor *tokens, const char *path)
{
    static const char *const who = "tn_prompt_cache_load";
    tn__cached              *d = check(who, base, tokens, path);
    int64_t                  n = 0;
    if (d && d->read)
        tn_raise(TN_ESTATE, "%s: the decoding has read %lld tokens, but must be new", who, (long long)d->read);
    tn_safetensors *f = tn_error() == TN_OK ? tn_safetensors_open(path) : NULL;
    if (!f) return -1;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *had = tokens_in(f, d->model, path);
    if (had) {
        int64_t most = tn_size(tokens, 1) - 1; /* the logits come from reading at least one token */
        if (d->room && most > d->room) most = d->room;
        if (d->sinks && tn_size(tokens, 1) > d->room) most = 0; /* what is dropped depends on the parts that are read */
        while (n < most && n < tn_numel(had) && tn_get_i64(had, n) == tn_get_i64(tokens, n)) n++;
        tn_path_push(path);
        if (tn_kv_cache_take(d->cache, f, tn_numel(had), n) == TN_OK) d->read = n;
        tn_path_pop();
    }
    tn_scope_end(s);
    tn_safetensors_close(f);
    return tn_error() == TN_OK ? n : -1;
}
