/* texts.c — text files as batches of masked tokens, and the loss on them. */
#include "../common/messages.h"
#include "../common/numbers.h"
#include "../common/ranks.h"
#include "../common/texts.h"
#include "bert.h"

#include <math.h>
#include <stdlib.h>

/* An encoder that counts sentences of invalid UTF-8 for a warning: most tokenizers drop the characters that replace
 * them. */
typedef struct {
    tn_encoder inner;
    int64_t    broken;
} counting_encoder;
static tn_status encode(void *user, tn_text line, tn_ids *to)
{
    counting_encoder *t = user;
    t->broken += tn_utf8_valid(line.at, line.bytes) < line.bytes;
    return t->inner.encode(t->inner.user, line, to);
}

static tn_corpus *open_corpus(const texts_config *c, const tn_tokenizer *t, tn_encoding *e)
{
    counting_encoder encoder = {.inner = tn_tokenizer_encoder(t, e)};
    tn_corpus       *corpus = tn_corpus_open(.files = c->files.value, .n = c->files.count, .cache = c->cache,
                                             .encoder = {encode, &encoder}, .tokenizer = t, .by_rule = c->by_rule);
    if (encoder.broken)
        warn("'%s'%s: %lld sentences are not valid UTF-8; if the file has another encoding, " TEXTS_CONVERT "\n",
             c->files.value[0], c->files.count > 1 ? " and others" : "", (long long)encoder.broken);
    return corpus;
}

/* Whether the documents suffice for pairs of sentences. */
static bool can_pair(const texts_config *c, const texts *to)
{
    return !c->pairs || c->kind == TN_ALBERT || tn_corpus_documents(to->corpus) >= 2;
}

/* Examples must have the form in which the tokenizer encodes texts: XLNet's [CLS] is the last token. */
static void check_form(const texts_config *c, const tn_tokenizer *t, tn_encoding *e)
{
    const int32_t cls = tn_tokenizer_special(t).first;
    const bool    last = c->kind == TN_XLNET;
    if (tn_error() != TN_OK || tn_tokenizer_encode(t, e, "", 0) != TN_OK) return;
    if ((e->n > 1 && e->id[e->n - 1] == cls) == last) return;
    tn_raise(TN_EUNSUPPORTED, last ? "XLNet needs a tokenizer that puts [CLS] after the text; omit --vocab for a "
                                     "new one, or give that of an XLNet"
                                   : "this tokenizer puts [CLS] after the text, which only XLNet expects");
}

/* A fraction of the corpus, of at most `most` tokens; 0: no limit. */
static double limit_part(const tn_corpus *c, double part, int64_t most)
{
    return most ? fmin(part, (double)most / (double)tn_corpus_tokens(c)) : part;
}

/* The examples from this part of the corpus on, with the same masks each time; NULL if no sentence starts there. */
static tn_mlm *hold_out(const tn_corpus *c, tn_mlm_config m, double from)
{
    m.from = from, m.fixed = m.in_order = true, m.rate = 0.15;
    tn_mlm *held = tn_mlm_create(c, m);
    if (tn_error() == TN_EINVAL) tn_clear_error();
    return held;
}

bool texts_open(const texts_config *c, const tn_tokenizer *t, texts *to)
{
    *to = (texts){.encoding = tn_encoding_new()};
    const bool albert = c->kind == TN_ALBERT, xlnet = c->kind == TN_XLNET;
    check_form(c, t, to->encoding);
    if (tn_error() == TN_OK) to->corpus = open_corpus(c, t, to->encoding);
    if (to->corpus && !can_pair(c, to))
        tn_raise(TN_EFORMAT,
                 "'%s' is one document, but predicting the next sentence needs several; put an empty line between "
                 "documents%s",
                 c->files.value[0], c->fixed ? "" : ", or train with --objective roberta");
    else if (to->corpus) {
        tn_mlm_config m =
            TN_WITH(tn_mlm_config, TN_MLM_DEFAULTS, .pairs = c->pairs, .order = albert,
                    .spans = albert  ? 3
                             : xlnet ? 5
                                     : 0,
                    .permuted = xlnet,
                    .rate = c->rate > 0 ? c->rate
                            : xlnet     ? 1.0 / 6
                                        : 0.15,
                    .max_tokens = c->length, .tokenizer = t, .whole_words = c->whole_words, .fixed = c->fixed,
                    .tokens = c->batch * c->length, .examples = c->batch, .seed = c->seed, .in_order = c->fixed);
        const double end = 1 - limit_part(to->corpus, c->held, c->most_held);
        if (c->fixed) m.to = limit_part(to->corpus, 1, c->most_held);
        if (end < 1) to->held = hold_out(to->corpus, m, end);
        if (to->held) m.to = end;
        to->batches = tn_mlm_create(to->corpus, m);
    }
    if (to->batches && tn_error() == TN_OK) return true;
    texts_close(to);
    return false;
}

void texts_close(texts *t)
{
    tn_mlm_free(t->batches), tn_mlm_free(t->held);
    tn_corpus_close(t->corpus);
    tn_encoding_free(t->encoding);
    tn_ids_free(&t->ids);
    free(t->start), free(t->line);
    *t = (texts){.encoding = NULL};
}

/* Counts the tokens of a corpus. */
static bool count_tokens(const tn_corpus *c, int64_t vocab, double *count)
{
    tn_ids ids = {0};
    for (int64_t i = 0; tn_error() == TN_OK && i < tn_corpus_sentences(c); i++) {
        ids.n = 0;
        if (tn_corpus_sentence(c, i, &ids) != TN_OK) break;
        for (int64_t k = 0; k < ids.n; k++)
            if (ids.at[k] < vocab) count[ids.at[k]]++;
    }
    tn_ids_free(&ids);
    return tn_error() == TN_OK;
}

double texts_unigram(const texts *t, const texts *of, int64_t vocab)
{
    const size_t bytes = 2 * (size_t)vocab * sizeof(double);
    double      *count = tn_mem_get(bytes), *there = count ? count + vocab : NULL, all = (double)vocab, n = 0, loss = 0;
    for (int64_t i = 0; count && i < 2 * vocab; i++) count[i] = i < vocab; /* each token of the text once more */
    if (count && count_tokens(t->corpus, vocab, count) && count_tokens(of->corpus, vocab, there)) {
        all += (double)tn_corpus_tokens(t->corpus);
        for (int64_t i = 0; i < vocab; i++) n += there[i], loss -= there[i] * log(count[i] / all);
    }
    if (count) tn_mem_put(count, bytes);
    return tn_error() == TN_OK && n > 0 ? loss / n : NAN;
}

/* Prints a note about texts of invalid UTF-8. They are used, but their accents are lost. */
void texts_note_labelled(const tn_labelled *l, const char *path)
{
    int64_t n = 0, line = 0;
    for (int64_t i = 0; i < tn_labelled_count(l); i++) {
        const tn_example x = tn_labelled_at(l, i);
        bool             all = true;
        for (int64_t k = 0; k < x.texts; k++)
            all = all && tn_utf8_valid(x.text[k], strlen(x.text[k])) == strlen(x.text[k]);
        if (!all && !n++) line = x.line;
    }
    if (n)
        warn("'%s' is not valid UTF-8 in %lld of its texts, the first in line %lld; if the file has another "
             "encoding, " TEXTS_CONVERT "\n",
             path, (long long)n, (long long)line);
}

tn_tensor *texts_loss(void *bert, const tn_batch *b, void *user)
{
    bert_training *t = user;
    return tn_bert_fit_loss(bert, b, t ? &t->segment : NULL);
}

/* Counts the occurrences of each token, and of these the masked ones: [2, pieces]. */
static void count(const tn_tokenizer *tokens, const tn_mlm_batch *b, int64_t *counts)
{
    const int64_t pieces = tn_tokenizer_size(tokens), *id = tn_data(b->ids), *word = tn_data(b->masked_ids),
                  *at = tn_data(b->masked_at);
    for (int64_t i = 0; id && i < tn_numel(b->ids); i++) counts[id[i]] += !tn_tokenizer_is_special(tokens, id[i]);
    for (int64_t i = 0; id && word && at && i < tn_numel(b->masked_ids); i++) {
        counts[id[at[i]]] -= !tn_tokenizer_is_special(tokens, id[at[i]]); /* the token that replaces the masked one */
        counts[word[i]]++, counts[pieces + word[i]]++;
    }
}

/* The loss of a unigram baseline, in nats: it predicts by the tokens' frequencies in these texts. */
static double unigram(int64_t pieces, const int64_t *counts, int64_t hidden)
{
    double all = 0, loss = 0;
    for (int64_t i = 0; i < pieces; i++) all += (double)counts[i];
    for (int64_t i = 0; i < pieces; i++)
        if (counts[pieces + i]) loss -= (double)counts[pieces + i] * log((double)counts[i] / all);
    return hidden ? loss / (double)hidden : 0;
}

bool evaluate(model *m, const texts_config *c, evaluation *e)
{
    texts         t;
    const int64_t pieces = tn_tokenizer_size(m->tokens);
    *e = (evaluation){.loss = 0};
    if (!texts_open(c, m->tokens, &t)) return false;
    int64_t   *counts = tn_mem_get((size_t)(2 * pieces) * sizeof *counts);
    const bool was = m->bert->base.training;
    tn_eval(m->bert);
    double       right = 0, followed = 0;
    tn_mlm_batch b;
    for (bool more = true; more && tn_error() == TN_OK && !stop_flag;) {
        const tn_scope s = tn_no_grad_begin();
        if ((more = tn_mlm_next(t.batches, &b))) {
            count(m->tokens, &b, counts);
            const bool streams = m->bert->streams != NULL;
            tn_tensor *y =
                tn_bert_forward(m->bert, b.ids, .types = b.segments, .key_padding_mask = b.padding,
                                .targets = streams ? b.masked_at : NULL, .order = b.order, .for_words = true);
            if (tn_numel(b.masked_ids)) {
                tn_tensor *scores = tn_bert_mlm_logits(m->bert, y, streams ? NULL : b.masked_at);
                e->loss += tn_item(tn_cross_entropy(scores, b.masked_ids, .reduction = TN_SUM));
                right += tn_item(tn_sum(tn_to(tn_eq(tn_argmax(scores, -1, false), b.masked_ids), TN_F64)));
                e->words += tn_numel(b.masked_ids);
            }
            if (b.next && m->bert->next) {
                tn_tensor *guess = tn_argmax(tn_bert_nsp_logits(m->bert, y), -1, false);
                followed += tn_item(tn_sum(tn_to(tn_eq(guess, b.next), TN_F64)));
                e->pairs += tn_numel(b.next);
            }
        }
        tn_scope_end(s);
    }
    texts_close(&t);
    tn_train(m->bert, was);
    if (counts) {
        e->unigram = unigram(pieces, counts, e->words);
        tn_mem_put(counts, (size_t)(2 * pieces) * sizeof *counts);
    }
    if (e->words) e->loss /= (double)e->words, e->right = right / (double)e->words;
    if (e->pairs) e->next = followed / (double)e->pairs;
    tn_perplexity p = {0};
    tn_perplexity_add(&p, e->loss, e->words);
    e->perplexity = tn_perplexity_value(&p);
    if (isnan(e->loss)) numbers_not_finite("the loss", e->loss);
    return tn_error() == TN_OK;
}
