/* model.c — opens a model's folder; tokenizes a text for a figure. */
#include "bert.h"

#include "../common/messages.h"

bool model_open(const char *dir, model *m) { return model_open_as(dir, false, m); }
bool model_open_as(const char *dir, bool alone, model *m)
{
    const tn_model d = tn_model_open(dir, .family = TN_MODEL_ENCODER, .needs_tokenizer = !alone);
    *m = (model){.bert = d.bert, .tokens = d.tokenizer};
    const int64_t tokens = m->tokens ? tn_tokenizer_size(m->tokens) : 0, rows = m->bert ? m->bert->config.vocab : 0;
    if (m->tokens && tokens < rows && settings.verbose)
        tell("the tokenizer has %lld tokens, the model's vocabulary %lld\n", (long long)tokens, (long long)rows);
    return m->bert != NULL;
}
void model_close(model *m)
{
    tn_free(m->bert);
    tn_tokenizer_free(m->tokens);
    *m = (model){.bert = NULL};
}

bool words_of(const model *m, const char *text, words *w)
{
    tn_token_batch b;
    *w = (words){.n = 0};
    if (tn_tokenizer_batch(m->tokens, &b, 1, &text, .max_length = m->bert->config.positions) != TN_OK) return false;
    w->n = tn_numel(b.ids), w->ids = b.ids, w->segments = b.segments;
    w->word = tn_mem_get((size_t)w->n * sizeof *w->word);
    for (int64_t i = 0; w->word && i < w->n; i++) w->word[i] = tn_tokenizer_token(m->tokens, tn_get_i64(b.ids, i));
    return w->word != NULL;
}
void words_free(words *w)
{
    if (w->word) tn_mem_put(w->word, (size_t)w->n * sizeof *w->word);
    w->word = NULL;
}

tn_status score_pairs(void *bert, const tn_tokenizer *t, int64_t n, const char *const *text, double *to)
{
    return tn_bert_scores(bert, t, n, text, to);
}
