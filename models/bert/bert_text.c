/* bert_text.c — BERT with texts: filling in masked tokens, and sentence vectors. */
#include "models/files/hf_config.h"

#include <math.h>

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
        y = tn_div(y, tn_clamp(tn_norm(y, .dims = TN_DIMS(-1), .keepdim = true), 1e-12, INFINITY));
    }
    return tn_scope_return(s, tn_error() == TN_OK ? y : NULL);
}
