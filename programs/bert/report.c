/* report.c — figures for bert's reports: filled-in masks and attention weights. */
#include "bert.h"

#include <string.h>

bool report_fill(tn_report *r, const model *m, const char *text, const tn_report_word *word,
                 const tn_report_word *other)
{
    const char *mask = tn_tokenizer_token(m->tokens, tn_tokenizer_special(m->tokens).mask);
    const char *at = strstr(text, mask);
    size_t      before = at ? (size_t)(at - text) : strlen(text);
    const char *after = at ? at + strlen(mask) : "";
    char        start[256];
    while (before && text[before - 1] == ' ') before--; /* the report separates the parts */
    while (*after == ' ') after++;
    snprintf(start, sizeof start, "%.*s", (int)before, text);
    tn_report_filled(r, 3, (tn_report_word[]){{start, -1, false}, *word, {after, -1, false}}, 1, other);
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
