/* pruned.c — finds a model's pruned attention heads and writes them to config.json. */
#include "models/files/hf_config.h"
#include "nn/nn.h"

#include <stdio.h>

bool tn__is_pruned(void *m)
{
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) {
        const tn_mha *a = tn_mha_of(e.module);
        if (a && a->heads < a->made_heads) return true;
    }
    return false;
}

void tn__pruned_write(tn_json_writer *w, const char *key, void *m, bool paths)
{
    int64_t layer = 0;
    char    number[24];
    if (!tn__is_pruned(m)) return;
    tn_json_open_object(w, key);
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) {
        const tn_mha *a = tn_mha_of(e.module);
        if (!a) continue;
        snprintf(number, sizeof number, "%lld", (long long)layer++);
        if (a->heads == a->made_heads) continue;
        tn_json_open_array(w, paths ? e.name : number);
        for (int64_t h = 0, at = 0; h < a->made_heads; h++) { /* left is ascending */
            if (at < a->heads && a->left[at] == h) at++;
            else tn_json_put_i64(w, NULL, h);
        }
        tn_json_close(w);
    }
    tn_json_close(w);
}

/* The i-th attention in module order; NULL: i is too large. */
static tn_mha *attention_at(void *m, int64_t i)
{
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) {
        tn_mha *a = tn_mha_of(e.module);
        if (a && !i--) return a;
    }
    return NULL;
}

void tn__prune_like(void *m, void *other)
{
    tn_mha *from, *to;
    for (int64_t i = 0; (from = attention_at(other, i)) && (to = attention_at(m, i)) && tn_error() == TN_OK; i++) {
        const int64_t gone = from->made_heads - from->heads;
        const size_t  bytes = (size_t)(gone + 1) * sizeof(int64_t);
        int64_t      *heads = gone ? tn_mem_get(bytes) : NULL, n = 0;
        for (int64_t h = 0, at = 0; heads && h < from->made_heads; h++) {
            if (at < from->heads && from->left[at] == h) at++;
            else heads[n++] = h;
        }
        if (heads) tn_mha_prune(to, n, heads), tn_mem_put(heads, bytes);
    }
}
