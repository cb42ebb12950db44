/* pruned_read.c — reads pruned heads from config.json and applies them: Hugging Face's pruned_heads, layer index to
 * indices of the original heads, {"0": [1, 3], "2": [0]}. Models that Hugging Face cannot prune have the attention's
 * path instead of the layer index. */
#include "models/files/hf_config.h"

#include <stdio.h>
#include <string.h>

bool tn__pruned_open(const char *dir, tn__pruned *p)
{
    char path[1024];
    *p = (tn__pruned){NULL, NULL, 0};
    if (tn_error() != TN_OK) return false;
    if (!(p->doc = tn__config_open(dir, path))) return false;
    p->heads = tn_json_get(p->doc, "pruned_heads");
    if (p->heads && tn_json_type_of(p->heads) == TN_JSON_NULL) p->heads = NULL;
    if (p->heads && tn_json_type_of(p->heads) != TN_JSON_OBJECT)
        tn_raise(TN_EFORMAT, "'%s': pruned_heads is not an object", path);
    for (const tn_json *x = tn_json_first(p->heads); x && tn_error() == TN_OK; x = tn_json_next(x)) {
        if (tn_json_type_of(x) != TN_JSON_ARRAY)
            tn_raise(TN_EFORMAT, "'%s': pruned_heads of '%.40s' is not an array", path, tn_json_key(x));
        p->count += tn_json_count(x);
    }
    if (tn_error() != TN_OK) tn__pruned_close(p);
    return tn_error() == TN_OK;
}

void tn__pruned_close(tn__pruned *p)
{
    tn_json_free(p->doc);
    *p = (tn__pruned){NULL, NULL, 0};
}

bool tn__has_elements(const tn_safetensors *f, const char *path, int64_t want)
{
    int64_t have = 0;
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) have += tn_shape_numel(tn_safetensors_at(f, i).shape);
    if (want <= have) return true;
    tn_raise(TN_EFORMAT, "'%s' has %lld elements, but the model that config.json describes has at least %lld", path,
             (long long)have, (long long)want);
    return false;
}

bool tn__has_elements_pruned(const tn_safetensors *f, const char *path, int64_t want, const tn__pruned *p, int64_t head)
{
    int64_t gone, have = 0;
    if (__builtin_mul_overflow(p->count, head, &gone) || gone > want) gone = want;
    for (int64_t i = 0; p->count && i < tn_safetensors_count(f); i++)
        have += tn_shape_numel(tn_safetensors_at(f, i).shape);
    if (p->count && want / 8 > have) /* the model is built whole before it is pruned */
        return tn_raise(TN_EFORMAT, "'%s' has %lld elements, too few for a model that had %lld before pruning", path,
                        (long long)have, (long long)want),
               false;
    return tn__has_elements(f, path, want - gone);
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
    return tn_raise(TN_EFORMAT,
                    "config.json: pruned_heads names '%.80s', which is not a layer of this "
                    "model",
                    key),
           NULL;
}

void tn__pruned_apply(const tn__pruned *p, void *m)
{
    for (const tn_json *x = tn_json_first(p->heads); x && m && tn_error() == TN_OK; x = tn_json_next(x)) {
        tn_mha      *a = attention_of(m, tn_json_key(x));
        const size_t n = (size_t)tn_json_count(x), bytes = (n + 1) * sizeof(int64_t);
        int64_t     *heads = a ? tn_mem_get(bytes) : NULL, at = 0;
        if (!heads) return;
        for (const tn_json *h = tn_json_first(x); h; h = tn_json_next(h)) heads[at++] = tn_json_i64(h);
        if (tn_error() == TN_OK) tn_mha_prune(a, at, heads);
        tn_mem_put(heads, bytes);
    }
}
