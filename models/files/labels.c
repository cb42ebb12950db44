/* labels.c — the names of a model's classes in config.json: id2label and label2id. */
#include "models/files/hf_config.h"

#include <stdlib.h>
#include <string.h>

bool tn_hf_labels_read(const tn_hf_source *s, int64_t n, const char **names)
{
    const char *const who = "tn_hf_labels_read";
    if (!tn__not_null(who, "the source", s) || (n > 0 && !tn__not_null(who, "the names", names))) return false;
    for (const tn_json *v = tn_json_first(tn_json_get(s->config, "id2label")); v && tn_error() == TN_OK;
         v = tn_json_next(v)) {
        const char   *key = tn_json_key(v);
        char         *end;
        const int64_t i = strtoll(key, &end, 10);
        if (*end || end == key || i < 0 || i >= n || names[i])
            tn_raise(TN_EFORMAT,
                     "'%s': id2label has the key '%.40s', but must have the numbers from 0 to %lld, each once", s->name,
                     key, (long long)n - 1);
        else names[i] = tn_json_string(v);
    }
    return tn_error() == TN_OK;
}

/* True if a later class has the same name: label2id has each name once, with its last number, as in Python. */
static bool comes_again(int64_t i, int64_t n, const char *const *names)
{
    for (int64_t k = i + 1; k < n; k++)
        if (!strcmp(names[k], names[i])) return true;
    return false;
}

void tn_hf_labels_put(tn_json_writer *w, int64_t n, const char *const *names)
{
    char number[24];
    if (n > 0 && !tn__not_null("tn_hf_labels_put", "the names", names)) return;
    tn_json_open_object(w, "id2label");
    for (int64_t i = 0; i < n; i++) {
        snprintf(number, sizeof number, "%lld", (long long)i);
        tn_json_put_string(w, number, names[i]);
    }
    tn_json_close(w);
    tn_json_open_object(w, "label2id");
    for (int64_t i = 0; i < n; i++)
        if (!comes_again(i, n, names)) tn_json_put_i64(w, names[i], i);
    tn_json_close(w);
}
