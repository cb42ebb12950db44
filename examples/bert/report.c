/* report.c — figures for bert's reports: filled-in masks and attention weights. */
#include "bert.h"

#include <string.h>

static bool is_in(const char *word, int n, const char *const *list)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(word, list[i])) return true;
    return false;
}

bool report_fill(tn_report *r, const model *m, const char *text, bool right, int nwrong, const char *const *wrong)
{
    enum { BEST = 5, MASKS = 4 };
    tn_bert_fill   found[BEST * MASKS];
    const int64_t  n = tn_bert_fill_in(m->bert, m->tokens, text, BEST, BEST * MASKS, found);
    const char    *mask = tn_tokenizer_token(m->tokens, tn_tokenizer_special(m->tokens).mask);
    char           parts[MASKS + 1][256];
    tn_report_word said[2 * MASKS + 1], others[BEST];
    int            count = 0;
    for (int64_t i = 0; n > 0 && i <= n; i++) {
        const char  *end = strstr(text, mask);
        const size_t bytes = end ? (size_t)(end - text) : strlen(text);
        snprintf(parts[i], sizeof parts[i], "%.*s", (int)bytes, text);
        said[count++] = (tn_report_word){parts[i], -1, false};
        if (i == n || !end) break;
        const char *word = tn_tokenizer_token(m->tokens, found[i * BEST].id);
        said[count++] = (tn_report_word){word, found[i * BEST].probability, right && !is_in(word, nwrong, wrong)};
        text = end + strlen(mask);
    }
    int more = 0; /* other words for the first mask with a probability of at least 0.5 % */
    for (int k = 1; k < BEST && n > 0 && found[k].probability >= 0.005; k++)
        others[more++] = (tn_report_word){tn_tokenizer_token(m->tokens, found[k].id), found[k].probability, false};
    if (n > 0) tn_report_filled(r, count, said, more, others);
    return tn_error() == TN_OK;
}

bool report_attention(tn_report *r, const model *m, const char *text, int64_t layer, int64_t head)
{
    const tn_scope s = tn_no_grad_begin();
    const int64_t  layers = m->bert->config.layers;
    tn_tensor    **weights = tn_mem_get((size_t)layers * sizeof *weights);
    words          w;
    if (weights && words_of(m, text, &w)) {
        tn_bert_forward(m->bert, w.ids, .types = w.segments, .weights = weights);
        if (tn_error() == TN_OK) {
            tn_tensor *all = tn_select(tn_stack_list(0, (int)layers, weights), 1, 0); /* [layers, heads, n, n] */
            tn_report_attention(r, text, w.n, w.word, w.n, w.word, all, layer, head);
        }
        words_free(&w);
    }
    if (weights) tn_mem_put(weights, (size_t)layers * sizeof *weights);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
