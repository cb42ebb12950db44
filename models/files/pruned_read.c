/* pruned_read.c — reads pruned heads from config.json and applies them: Hugging Face's pruned_heads, layer index to
 * indices of the original heads, {"0": [1, 3], "2": [0]}. Models that Hugging Face cannot prune have the attention's
 * path instead of the layer index. */
#include "models/files/hf_config.h"

#include <stdio.h>
#include <string.h>

static const tn_json *pruned_heads(const tn_hf_source *s)
{
    const tn_json *heads = tn_json_get(s->config, "pruned_heads");
    return tn_json_type_of(heads) == TN_JSON_NULL ? NULL : heads;
}

bool tn__pruned_check(const tn_hf_source *s)
{
    const tn_json *heads = pruned_heads(s);
    if (heads && tn_json_type_of(heads) != TN_JSON_OBJECT)
        tn_raise(TN_EFORMAT, "'%s': pruned_heads is not an object", s->name);
    for (const tn_json *x = tn_json_first(heads); x && tn_error() == TN_OK; x = tn_json_next(x))
        if (tn_json_type_of(x) != TN_JSON_ARRAY)
            tn_raise(TN_EFORMAT, "'%s': pruned_heads of '%.40s' is not an array", s->name, tn_json_key(x));
    return tn_error() == TN_OK;
}

bool tn__has_elements(const tn_hf_weights *w, int64_t want)
{
    int64_t have = 0, count = 0, gone;
    for (int64_t i = 0; i < tn_safetensors_count(w->file); i++)
        have += tn_shape_numel(tn_safetensors_at(w->file, i).shape);
    for (const tn_json *x = w->head ? tn_json_first(pruned_heads(w->source)) : NULL; x; x = tn_json_next(x))
        count += tn_json_count(x);
    if (__builtin_mul_overflow(count, w->head, &gone) || gone > want) gone = want;
    if (count && want / 8 > have) /* the model is built whole before it is pruned */
        tn_raise(TN_EFORMAT, "'%s' has %lld elements, too few for a model that had %lld before pruning", w->path,
                 (long long)have, (long long)want);
    else if (want - gone > have)
        tn_raise(TN_EFORMAT, "'%s' has %lld elements, but the model that config.json describes has at least %lld",
                 w->path, (long long)have, (long long)(want - gone));
    return tn_error() == TN_OK;
}

/* The attention of a path, or of an index in module order; NULL: raised. */
static tn_mha *attention_of(void *m, const char *key)
{
    int64_t at = 0, number = 0;
    bool    digits = *key != 0 && strlen(key) < 10;
    for (const char *c = key; *c && digits; c++) {
        digits = *c >= '0' && *c <= '9';
        number = 10 * number + (*c - '0');
    }
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) {
        tn_mha *a = tn_mha_of(e.module);
        if (a && (digits ? at++ == number : !strcmp(e.name, key))) return a;
    }
    return tn_raise_null(TN_EFORMAT, "config.json: pruned_heads names '%.80s', which is not a layer of this model",
                         key);
}

void tn__pruned_apply(const tn_hf_source *s, void *m)
{
    for (const tn_json *x = tn_json_first(pruned_heads(s)); x && tn_error() == TN_OK; x = tn_json_next(x)) {
        tn_mha      *a = attention_of(m, tn_json_key(x));
        const size_t n = (size_t)tn_json_count(x), bytes = (n + 1) * sizeof(int64_t);
        int64_t     *heads = a ? tn_mem_get(bytes) : NULL, at = 0;
        if (!heads) return;
        for (const tn_json *h = tn_json_first(x); h; h = tn_json_next(h)) heads[at++] = tn_json_i64(h);
        if (tn_error() == TN_OK) tn_mha_prune(a, at, heads);
        tn_mem_put(heads, bytes);
    }
}
