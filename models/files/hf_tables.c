/* hf_tables.c — the tables of a model whose files differ from those of its relatives in a few members and names. */
#include "models/files/hf_config.h"

#include <string.h>

/* True if the row is for this member; one that is not written may be for several. */
static bool is_for(const tn_hf_row *r, const char *key)
{
    const size_t n = strlen(key);
    for (const char *s = r->key; (s = strstr(s, key)) != NULL; s += n)
        if ((s == r->key || s[-1] == ' ') && (!s[n] || s[n] == ' ')) return true;
    return false;
}

void tn__hf_add_rows(tn__hf_tables *to, const tn_hf_row *rows, int n)
{
    for (int i = 0; i < n; i++) {
        int at = to->files.count;
        for (int k = 0; k < to->files.count && at >= 0; k++)
            if (is_for(&to->rows[k], rows[i].key)) at = -1;
        if (at < 0 || at == TN_HF_COUNT_(to->rows)) continue;
        for (; at > 0 && strcmp(to->rows[at - 1].key, rows[i].key) > 0; at--) to->rows[at] = to->rows[at - 1];
        to->rows[at] = rows[i], to->files.count++;
    }
}

void tn__hf_add_rules(tn__hf_tables *to, const tn_rename *rules, int n)
{
    for (int i = 0; i < n && to->files.renames < TN_HF_COUNT_(to->rules); i++)
        to->rules[to->files.renames++] = rules[i];
}
