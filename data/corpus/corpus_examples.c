/* corpus_examples.c — divides documents into examples. Full sentences: as many as fit. Pairs: also as many as fit, but
 * at least two sentences; an example that is then too long is truncated when it is drawn. A single sentence left at the
 * end of a document is skipped. */
#include "data/corpus/corpus_examples.h"
#include "core/base/toolbox.h"
#include "data/corpus/batch_plan.h"

void tn__examples_free(tn__examples *x)
{
    tn__mem_put(x->kinds, x->kinds ? (size_t)x->corpus->footer.vocabulary : 0);
    tn__mem_put(x->example, (size_t)x->room * sizeof *x->example);
    tn__mem_put(x->length, (size_t)x->length_room * sizeof *x->length);
    x->kinds = NULL, x->example = NULL, x->length = NULL, x->room = x->length_room = x->n = 0;
}

static bool check_pairs(const tn_mlm_config *m, const tn_corpus *c)
{
    if (m->permuted && m->pairs) return tn_raise_false(TN_EINVAL, "tn_mlm_new: .permuted excludes .pairs");
    if (m->order && !m->pairs) return tn_raise_false(TN_EINVAL, "tn_mlm_new: .order needs .pairs");
    if (m->pairs && !m->order && c->footer.documents < 2)
        return tn_raise_false(TN_EINVAL,
                              "tn_mlm_new: .pairs takes sentences from other documents and needs at least two, "
                              "separated by empty lines");
    return true;
}

static bool check(const tn_mlm_config *m, const tn_corpus *c)
{
    int64_t       v = (int64_t)c->footer.vocabulary, special = m->pairs ? 3 : 2;
    const int32_t ids[] = {m->pad, m->cls, m->sep, m->mask};
    const char   *names[] = {"pad", "cls", "sep", "mask"};
    for (int i = 0; i < 4; i++)
        if (ids[i] < 0 || ids[i] >= v)
            return tn_raise_false(TN_EINDEX, "tn_mlm_new: .%s is token %d, outside 0 … %lld", names[i], (int)ids[i],
                                  (long long)v - 1);
    if (m->max_tokens < special + 2 || m->max_tokens > 16384)
        return tn_raise_false(TN_EINVAL, "tn_mlm_new: .max_tokens is %lld, expected %lld to 16384",
                              (long long)m->max_tokens, (long long)special + 2);
    if (!(m->rate > 0 && m->rate <= 1))
        return tn_raise_false(TN_EINVAL, "tn_mlm_new: .rate is %g, expected above 0 and at most 1", m->rate);
    if (m->ahead < 0 || m->ahead > 64)
        return tn_raise_false(TN_EINVAL, "tn_mlm_new: .ahead is %d, expected 0 to 64", m->ahead);
    if (m->spans < 0 || m->spans > 64)
        return tn_raise_false(TN_EINVAL, "tn_mlm_new: .spans is %lld, expected 0 to 64", (long long)m->spans);
    const double to = m->to > 0 ? m->to : 1;
    if (!(m->from >= 0 && m->from < to && m->to <= 1))
        return tn_raise_false(TN_EINVAL, "tn_mlm_new: .from is %g and .to %g, expected 0 ≤ from < to ≤ 1", m->from,
                              m->to);
    if (m->pairs && (m->from > 0 || to < 1))
        return tn_raise_false(TN_EINVAL,
                              "tn_mlm_new: .pairs takes sentences from the whole corpus; unset .from and .to");
    if (!check_pairs(m, c)) return false;
    const tn__batching how = tn__mlm_batching(m);
    return tn__batching_check("tn_mlm_new", &how);
}

static bool add(tn__examples *x, tn__example e)
{
    if (!tn__grown((void *)&x->example, &x->room, x->n + 1, sizeof e) ||
        !tn__grown((void *)&x->length, &x->length_room, x->n + 1, sizeof *x->length))
        return false;
    x->example[x->n] = e;
    x->length[x->n++] = (int32_t)tn__min_i64(e.tokens + (x->config.pairs ? 3 : 2), x->config.max_tokens);
    return true;
}

/* The first of sentences [from, to) that starts at this part of the corpus's tokens or after it; `to` if none does. */
static uint32_t sentence_at(const tn_corpus *c, double part, uint32_t from, uint32_t to)
{
    const double token = part * (double)c->footer.tokens;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if ((double)c->start[middle] < token) from = middle + 1;
        else to = middle;
    }
    return from;
}

static bool add_document(tn__examples *x, uint32_t document)
{
    const tn_corpus *c = x->corpus;
    const int64_t    room = x->config.max_tokens - (x->config.pairs ? 3 : 2);
    uint32_t         end = c->document[document + 1];
    uint32_t         i = sentence_at(c, x->config.from, c->document[document], end);
    if (x->config.to > 0) end = sentence_at(c, x->config.to, i, end);
    while (i < end) {
        tn__example e = {.first = i, .document = document};
        while (i < end) {
            int64_t n = c->start[i + 1] - c->start[i];
            if (e.count >= (x->config.pairs ? 2 : 1) && e.tokens + n > room) break;
            e.tokens += (uint32_t)n, e.count++, i++;
        }
        if (x->config.pairs) {
            if (e.count >= 2 && !add(x, e)) return false;
            continue;
        }
        int64_t left = e.tokens; /* exceeds room only for a single sentence */
        for (e.skip = 0; left > 0; left -= room, e.skip += (uint32_t)room) {
            e.tokens = (uint32_t)tn__min_i64(left, room);
            if (!add(x, e)) return false;
        }
    }
    return true;
}

/* Sets the special tokens to those of .tokenizer. */
static bool take_roles(tn_mlm_config *m, const tn_corpus *c)
{
    const tn_tokenizer_roles r = tn_tokenizer_special(m->tokenizer);
    const long long          size = tn_tokenizer_size(m->tokenizer), vocabulary = (long long)c->footer.vocabulary;
    if (size != vocabulary)
        return tn_raise_false(TN_EINVAL, "tn_mlm_new: .tokenizer has %lld tokens, but that of the corpus has %lld",
                              size, vocabulary);
    if (r.first < 0 || r.separator < 0 || r.mask < 0 || r.pad < 0)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "the tokenizer has no [%s]; masked language models need [PAD], [CLS], [SEP] and [MASK] "
                              "in the vocabulary",
                              r.pad < 0     ? "PAD"
                              : r.first < 0 ? "CLS"
                              : r.mask < 0  ? "MASK"
                                            : "SEP");
    m->pad = r.pad, m->cls = r.first, m->sep = r.separator, m->mask = r.mask;
    return true;
}

/* The kinds of the tokens, as .kinds or .tokenizer states. */
static bool take_kinds(tn__examples *x)
{
    const tn_tokenizer *t = x->config.tokenizer;
    const uint64_t      n = x->corpus->footer.vocabulary;
    if (!t && !x->config.kinds) return true;
    if (!(x->kinds = tn__mem_get((size_t)n))) return false;
    for (uint64_t i = 0; i < n; i++)
        x->kinds[i] = !t ? x->config.kinds[i]
                         : (uint8_t)((tn_tokenizer_is_special(t, (int64_t)i) ? TN_TOKEN_SPECIAL : 0) |
                                     (tn_tokenizer_is_inner(t, (int64_t)i) ? TN_TOKEN_INNER : 0));
    return true;
}

bool tn__examples_new(tn__examples *x, const tn_corpus *c, const tn_mlm_config *config)
{
    *x = (tn__examples){.corpus = c, .config = *config};
    if (config->tokenizer && !take_roles(&x->config, c)) return false;
    if (!check(&x->config, c)) return false;
    bool done = take_kinds(x);
    x->config.kinds = NULL, x->config.tokenizer = NULL; /* the caller's */
    for (uint32_t d = 0; done && d < c->footer.documents; d++) done = add_document(x, d);
    if (done && !x->n)
        done = false,
        tn_raise(TN_EINVAL, config->pairs ? "tn_mlm_new: no document has the two sentences that .pairs needs"
                                          : "tn_mlm_new: no sentence starts between .from and .to");
    if (!done) tn__examples_free(x);
    return done;
}
