/* bert_text.c — BERT with texts: filling in masked tokens, sentence vectors, and scores of sentences. */
#include "models/files/hf_config.h"

#include <math.h>
#include <string.h>

static bool check_tokenizer(const char *who, const tn_bert *m, const tn_tokenizer *t)
{
    if (!t) return tn_raise_false(TN_EINVAL, "%s: the tokenizer is NULL", who);
    if (tn_tokenizer_size(t) <= m->config.vocab) return true;
    return tn_raise_false(TN_EINVAL,
                          "%s: the tokenizer has %lld tokens, but the model only %lld; use the model's own tokenizer",
                          who, (long long)tn_tokenizer_size(t), (long long)m->config.vocab);
}

int64_t tn_bert_fill_in(tn_bert *m, const tn_tokenizer *t, const char *text, int64_t k, int64_t most, tn_bert_fill *to)
{
    static const char *const who = "tn_bert_fill_in";
    if (!tn_ready(m) || !check_tokenizer(who, m, t)) return -1;
    if (!text || !tn__within(who, "k", k, 1, m->config.vocab)) {
        if (!text) tn_raise(TN_EINVAL, "%s: the text is NULL", who);
        return -1;
    }
    const int32_t  mask = tn_tokenizer_special(t).mask;
    const tn_scope s = tn_no_grad_begin();
    tn_token_batch b;
    int64_t        found = 0;
    if (mask < 0) tn_raise(TN_EUNSUPPORTED, "%s: this tokenizer has no [MASK]", who);
    if (tn_error() == TN_OK && tn_tokenizer_batch(t, &b, 1, &text, .max_length = m->config.positions) == TN_OK) {
        const int64_t n = tn_numel(b.ids);
        tn_tensor    *at = tn_zeros_of(TN_I64, TN_SHAPE(n));
        int64_t      *place = at ? tn_data_mut(at) : NULL;
        for (int64_t i = 0; place && i < n; i++)
            if (tn_get_i64(b.ids, i) == mask) place[found++] = i;
        if (place && !found)
            tn_raise(TN_EINVAL, "%s: no %s in the text%s; write it where a token is missing", who,
                     tn_tokenizer_token(t, mask), b.cut ? " after truncation" : "");
        if (place && found > most / k)
            tn_raise(TN_EINVAL, "%s: %lld tokens for each of %lld masks do not fit in the output of %lld", who,
                     (long long)k, (long long)found, (long long)most);
        if (tn_error() == TN_OK) {
            tn_tensor *y = tn_bert_forward(m, b.ids, .types = b.segments, .targets = tn_narrow(at, 0, 0, found),
                                           .for_words = true);
            tn_pair    best = tn_topk(tn_softmax(tn_bert_mlm_logits(m, y, NULL), -1), k, -1);
            for (int64_t i = 0; tn_error() == TN_OK && i < found * k; i++)
                to[i] = (tn_bert_fill){i / k, tn_get_i64(best.indices, i), tn_get(best.values, i)};
        }
    }
    tn_scope_end(s);
    return tn_error() == TN_OK ? found : -1;
}

tn_tensor *tn_bert_sentences(tn_tensor *y, tn_tensor *key_padding_mask, tn_bert_pooling pooling)
{
    if (!y && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_bert_sentences: the hidden states are NULL");
    tn_tensor *padding = key_padding_mask ? tn_unsqueeze(key_padding_mask, 2) : NULL;
    if (tn_error() != TN_OK) return NULL;
    if (pooling == TN_POOL_FIRST) return tn_select(y, 1, 0);
    if (pooling == TN_POOL_MAX) return tn_amax(padding ? tn_masked_fill(y, padding, -INFINITY) : y, .dims = TN_DIMS(1));
    if (!padding) return tn_mean(y, .dims = TN_DIMS(1));
    tn_tensor *real = tn_to(tn_logical_not(padding), tn_dtype_of(y));
    tn_tensor *count = tn_clamp(tn_sum(real, .dims = TN_DIMS(1)), 1e-9, INFINITY);
    return tn_div(tn_sum(tn_masked_fill(y, padding, 0), .dims = TN_DIMS(1)), count);
}

tn_tensor *tn_bert_embed(tn_bert *m, const tn_tokenizer *t, int64_t n, const char *const *texts,
                         tn_bert_pooling pooling)
{
    if (!tn_ready(m) || !check_tokenizer("tn_bert_embed", m, t)) return NULL;
    const tn_scope s = tn_no_grad_begin();
    tn_token_batch b;
    tn_tensor     *y = NULL;
    if (tn_tokenizer_batch(t, &b, n, texts, .max_length = m->config.positions) == TN_OK) {
        y = tn_bert_forward(m, b.ids, .types = b.segments, .key_padding_mask = b.key_padding_mask,
                            .skip_padding = true);
        y = tn_bert_sentences(y, b.key_padding_mask, pooling);
        y = tn_normalize(y, -1);
    }
    return tn_scope_return(s, tn_error() == TN_OK ? y : NULL);
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

/* Rows that are computed together, each an encoded text with one masked token: the ids and segments of all rows one
 * after the other; of each row the end, the masked column, the token there and the index of the text. */
typedef struct {
    tn_ids  ids, segments, ends, masked, tokens, texts;
    int64_t width;
} masked_rows;

enum { MOST_TOKENS = 8192 /* in a batch of rows, padding included */ };

/* Adds the log probabilities of the masked tokens to to[text], and removes the rows. */
static void score_rows(tn_bert *m, masked_rows *b, double *to)
{
    const tn_scope s = tn_no_grad_begin();
    const int64_t  rows = b->ends.n, width = b->width;
    tn_tensor     *ids = tn_zeros_of(TN_I64, TN_SHAPE(rows, width)), *at = tn_zeros_of(TN_I64, TN_SHAPE(rows));
    tn_tensor     *types = tn_zeros_of(TN_I64, TN_SHAPE(rows, width)), *token = tn_zeros_of(TN_I64, TN_SHAPE(rows));
    tn_tensor     *padding = tn_full_of(TN_BOOL, TN_SHAPE(rows, width), 1);
    int64_t       *id = tn_data_mut(ids), *type = tn_data_mut(types), *place = tn_data_mut(at);
    int64_t       *wanted = tn_data_mut(token);
    uint8_t       *pad = tn_data_mut(padding);
    for (int64_t r = 0; tn_error() == TN_OK && r < rows; r++) {
        const int64_t from = r ? b->ends.at[r - 1] : 0, n = b->ends.at[r] - from;
        for (int64_t i = 0; i < n; i++) {
            id[r * width + i] = b->ids.at[from + i], type[r * width + i] = b->segments.at[from + i];
            pad[r * width + i] = 0;
        }
        place[r] = r * width + b->masked.at[r], wanted[r] = b->tokens.at[r];
    }
    tn_tensor *y = tn_bert_forward(m, ids, .types = types, .key_padding_mask = padding, .skip_padding = true,
                                   .targets = at, .for_words = true);
    y = tn_cross_entropy(tn_bert_mlm_logits(m, y, NULL), token, .reduction = TN_NONE);
    for (int64_t r = 0; tn_error() == TN_OK && r < rows; r++) to[b->texts.at[r]] -= tn_get(y, r);
    tn_scope_end(s);
    b->ids.n = b->segments.n = b->ends.n = b->masked.n = b->tokens.n = b->texts.n = b->width = 0;
}

/* Adds a row for each token of the encoded text; computes the rows when there are enough. */
static void add_rows(tn_bert *m, const tn_encoding *e, int64_t text, int32_t mask, masked_rows *b, double *to)
{
    to[text] = 0;
    for (int64_t k = 0; tn_error() == TN_OK && k < e->n; k++) {
        if (e->special[k] != TN_TOKEN_FROM_TEXT) continue;
        const int64_t width = e->n > b->width ? e->n : b->width;
        if (b->ends.n && (b->ends.n + 1) * width > MOST_TOKENS) score_rows(m, b, to);
        if (e->n > b->width) b->width = e->n;
        for (int64_t i = 0; i < e->n; i++)
            if (tn_ids_add(&b->ids, i == k ? mask : e->id[i]) != TN_OK ||
                tn_ids_add(&b->segments, e->segment[i]) != TN_OK)
                return;
        (void)(tn_ids_add(&b->ends, (int32_t)b->ids.n) == TN_OK && tn_ids_add(&b->masked, (int32_t)k) == TN_OK &&
               tn_ids_add(&b->tokens, e->id[k]) == TN_OK && tn_ids_add(&b->texts, (int32_t)text) == TN_OK);
    }
}

static bool can_score(const tn_bert *m, const tn_tokenizer *t, int64_t n, const char *const *texts, const double *to)
{
    static const char *const who = "tn_bert_scores";
    if (!check_tokenizer(who, m, t)) return false;
    if (n < 0 || n > INT32_MAX || (n && (!texts || !to)))
        return tn_raise_false(TN_EINVAL, "%s: texts and to must not be NULL, n is %lld", who, (long long)n);
    if (!m->head || m->streams)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: this %s has no head that predicts masked tokens", who,
                              tn_bert_kind_name(m->config.kind));
    if (tn_tokenizer_special(t).mask < 0)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: this tokenizer has no [MASK]", who);
    return true;
}

tn_status tn_bert_scores(tn_bert *m, const tn_tokenizer *t, int64_t n, const char *const *texts, double *to)
{
    for (int64_t i = 0; to && i < n; i++) to[i] = NAN;
    if (!tn_ready(m) || !can_score(m, t, n, texts, to)) return tn_error();
    const bool   was = m->base.training;
    tn_encoding *e = tn_encoding_new();
    masked_rows  b = {.width = 0};
    tn_eval(m);
    for (int64_t i = 0; tn_error() == TN_OK && i < n; i++)
        if (!texts[i]) tn_raise(TN_EINVAL, "tn_bert_scores: text %lld is NULL", (long long)i);
        else if (tn_tokenizer_encode(t, e, texts[i], strlen(texts[i])) == TN_OK)
            add_rows(m, e, i, tn_tokenizer_special(t).mask, &b, to);
    if (tn_error() == TN_OK && b.ends.n) score_rows(m, &b, to);
    tn_train(m, was);
    tn_ids *all[] = {&b.ids, &b.segments, &b.ends, &b.masked, &b.tokens, &b.texts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tn_ids_free(all[i]);
    tn_encoding_free(e);
    for (int64_t i = 0; tn_error() != TN_OK && i < n; i++) to[i] = NAN;
    return tn_error();
}
