/* scores.c — tn_lm_scores: the log probabilities of texts under a language model that reads from left to right. */
#include "models/generate/lm_private.h"

#include <math.h>
#include <string.h>

/* Texts that are computed together: their token ids one after the other, and where each ends. */
typedef struct {
    tn_ids  ids, ends;
    int64_t width; /* tokens of the longest text */
} text_batch;

enum { MOST_LOGITS = 1 << 24 /* per batch */ };

/* Appends a text with the token before it: what the template puts there or, without one, a line break. Of a tokenizer
 * that has neither, the first token of the text is not predicted. */
static bool add_text(const tn_tokenizer *t, tn_encoding *e, const char *text, text_batch *to)
{
    const int64_t from = to->ids.n;
    const bool    templated = tn_tokenizer_traits_of(t).first;
    if (!text) return tn_raise_false(TN_EINVAL, "tn_lm_scores: text %lld is NULL", (long long)to->ends.n);
    if (tn_tokenizer_encode(t, e, templated ? "" : "\n", !templated, .bare = !templated) != TN_OK) return false;
    for (int64_t i = 0; i < e->n && i < 1; i++)
        if (e->id[i] != tn_tokenizer_special(t).unknown && tn_ids_add(&to->ids, e->id[i]) != TN_OK) return false;
    if (tn_tokenizer_encode(t, e, text, strlen(text), .bare = true) != TN_OK) return false;
    for (int64_t i = 0; i < e->n; i++)
        if (tn_ids_add(&to->ids, e->id[i]) != TN_OK) return false;
    const int64_t n = to->ids.n - from;
    if (n > to->width) to->width = n;
    return tn_ids_add(&to->ends, (int32_t)to->ids.n) == TN_OK;
}

/* Adds the log probabilities of the texts in b to to[0 … texts). */
static void score(void *m, const text_batch *b, double *to)
{
    const tn_scope s = tn_no_grad_begin();
    const int64_t  rows = b->ends.n, width = b->width - 1;
    tn_tensor     *x = tn_zeros_of(TN_I64, TN_SHAPE(rows, width)), *y = tn_full_of(TN_I64, TN_SHAPE(rows, width), -100);
    int64_t       *in = tn_data_mut(x), *next = tn_data_mut(y);
    for (int64_t r = 0; in && next && r < rows; r++)
        for (int64_t k = 0, at = r ? b->ends.at[r - 1] : 0; at + 1 < b->ends.at[r]; at++, k++)
            in[r * width + k] = b->ids.at[at], next[r * width + k] = b->ids.at[at + 1];
    tn_tensor *loss = tn_cross_entropy(tn_lm_run(m, (tn_decoder_args){.ids = x}), y, .reduction = TN_NONE);
    for (int64_t r = 0; tn_error() == TN_OK && r < rows; r++) {
        to[r] = 0;
        for (int64_t k = 0; k < width; k++) to[r] -= tn_get(loss, r * width + k);
    }
    tn_scope_end(s);
}

tn_status tn_lm_scores(void *m, const tn_tokenizer *t, int64_t n, const char *const *texts, double *to)
{
    const tn_lm_info i = tn_lm_info_of(m);
    for (int64_t k = 0; to && k < n; k++) to[k] = NAN;
    if (tn_error() == TN_OK && (!t || n < 0 || (n && (!texts || !to))))
        return tn_raise(TN_EINVAL, "tn_lm_scores: the tokenizer, texts and to must not be NULL, n not negative");
    if (tn_error() == TN_OK && tn_tokenizer_size(t) > i.vocab)
        tn_raise(TN_EINVAL, "tn_lm_scores: the tokenizer has %lld tokens, but the model only %lld; use the model's own",
                 (long long)tn_tokenizer_size(t), (long long)i.vocab);
    if (tn_error() != TN_OK) return tn_error();
    const bool   was = ((tn_module *)m)->training;
    tn_encoding *e = tn_encoding_new();
    text_batch   b = {.width = 0};
    tn_module_train(m, false);
    for (int64_t k = 0; tn_error() == TN_OK && k < n;) {
        const int64_t first = k;
        b.ids.n = b.ends.n = b.width = 0;
        while (k < n && (k == first || (b.ends.n + 1) * b.width <= MOST_LOGITS / i.vocab) &&
               add_text(t, e, texts[k], &b))
            k++;
        if (tn_error() == TN_OK && b.width > 1) score(m, &b, to + first);
        else
            for (int64_t r = first; tn_error() == TN_OK && r < k; r++) to[r] = 0;
    }
    tn_module_train(m, was);
    tn_ids_free(&b.ids), tn_ids_free(&b.ends), tn_encoding_free(e);
    for (int64_t k = 0; tn_error() != TN_OK && k < n; k++) to[k] = NAN;
    return tn_error();
}
