/* speculative.c — speculative decoding: a small model proposes tokens, and the large one reads them all in one pass, so
 * that a chosen token that was proposed needs no pass of its own. A row of logits has the same bits whether its token
 * is read alone or with others, so the text is the same as without a draft. */
#include "core/base/toolbox.h"
#include "models/generate/lm_private.h"

typedef struct {
    void        *m;
    tn_kv_cache *cache;
} reader;
typedef struct {
    tn_decoding     base;
    reader          large, small;
    int64_t         ahead;
    tn_speculation *count;
    tn_tensor      *rows;  /* [1, ahead + 1, vocab], owned: logits after the last token and after each proposed one */
    int64_t         left;  /* proposed tokens not yet requested */
    int64_t         n;     /* tokens of the text */
    int64_t        *words; /* [length]: the text, then the proposed tokens */
} drafted;

static size_t words_bytes(const drafted *d) { return (size_t)d->base.length * sizeof *d->words; }

/* Runs a model on tokens from … to - 1: logits [1, to - from, vocab], or with last [1, 1, vocab]. */
static tn_tensor *run_tokens(const drafted *d, const reader *r, int64_t from, int64_t to, bool last)
{
    tn_tensor *ids = tn_empty_of(TN_I64, TN_SHAPE(1, to - from));
    int64_t   *x = ids ? tn_data_mut(ids) : NULL;
    for (int64_t i = from; x && i < to; i++) x[i - from] = d->words[i];
    return tn_lm_run(r->m, (tn_decoder_args){.ids = ids, .cache = r->cache, .last = last});
}

/* Appends k tokens after the text, the small model's most likely ones; returns k. The small model's cache is valid for
 * the first `same` tokens. */
static int64_t propose(drafted *d, int64_t k, int64_t same)
{
    int64_t from = tn_kv_cache_length(d->small.cache);
    if (from > same) tn_kv_cache_trim(d->small.cache, from = same);
    for (int64_t i = 0; i < k && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *best = tn_argmax(run_tokens(d, &d->small, from, d->n + i, true), -1, false);
        if (best) d->words[d->n + i] = tn_get_i64(best, 0);
        from = d->n + i;
        tn_scope_end(s);
    }
    return k;
}

static tn_tensor *row(const drafted *d, int64_t i) { return tn_select(d->rows, 1, i); }

/* Appends tokens to the text. A single token that was proposed has already been read. */
static tn_tensor *drafted_scores(tn_decoding *base, tn_tensor *tokens)
{
    drafted      *d = (drafted *)base;
    const int64_t news = tn_size(tokens, 1), old = d->n;
    const bool    hit = news == 1 && d->left && tn_get_i64(tokens, 0) == d->words[d->n];
    if (hit) {
        d->count->accepted++, d->n++, d->left--;
        return row(d, tn_size(d->rows, 1) - 1 - d->left);
    }
    if (news > base->length - d->n)
        return tn_raise_null(TN_EINVAL,
                             "tn_speculative_decoding: the text is longer than the decoding's length of %lld tokens",
                             (long long)base->length);
    if (tn_kv_cache_length(d->large.cache) > old) tn_kv_cache_trim(d->large.cache, old);
    for (int64_t i = 0; i < news; i++) d->words[d->n++] = tn_get_i64(tokens, i);
    d->left = 0;
    const int64_t  room = base->length - d->n, k = d->ahead < room ? d->ahead : room;
    const bool     plain = news == 1 && d->count->plain == 0;
    const double   began = tn__seconds();
    const int64_t  proposed = news > 1 || plain ? 0 : propose(d, k, old);
    const tn_scope s = tn_scope_begin();
    tn_tensor     *y = tn_error() == TN_OK ? run_tokens(d, &d->large, old, d->n + proposed, news > 1) : NULL;
    tn_drop(d->rows);
    d->rows = y ? tn_keep(y) : NULL;
    tn_scope_end(s);
    if (!y) return NULL;
    if (plain) d->count->plain = tn__seconds() - began;
    d->left = proposed, d->count->proposed += proposed, d->count->readings += news == 1;
    return row(d, 0);
}

static tn_status drafted_reorder(tn_decoding *base, tn_tensor *index)
{
    (void)base;
    return tn_numel(index) == 1 ? TN_OK : tn_raise(TN_EINVAL, "tn_speculative_decoding: only one row is supported");
}
static void drafted_end(tn_decoding *base)
{
    drafted *d = (drafted *)base;
    tn_kv_cache_free(d->large.cache), tn_kv_cache_free(d->small.cache);
    tn_drop(d->rows);
    tn_mem_put(d->words, d->words ? words_bytes(d) : 0);
    tn_mem_put(d, sizeof *d);
}
static int64_t                 drafted_read(const tn_decoding *base) { return ((const drafted *)base)->n; }
static const tn__counting_kind drafted_kind = {
    {sizeof(tn__counting_kind), drafted_scores, drafted_reorder, drafted_end}, drafted_read};

static bool check_arguments(void *m, void *draft, int64_t length, int64_t ahead, const tn_speculation *count)
{
    static const char *const who = "tn_speculative_decoding";
    if (!tn_module_ready(who, m) || !tn_module_ready(who, draft)) return false;
    const tn_lm_info a = tn_lm_info_of(m), b = tn_lm_info_of(draft);
    if (tn_error() != TN_OK) return false;
    if (a.vocab != b.vocab)
        return tn_raise_false(
            TN_EINVAL,
            "tn_speculative_decoding: the model has %lld token ids and its draft %lld; they must have the "
            "same tokenizer",
            (long long)a.vocab, (long long)b.vocab);
    for (int k = 0; k < 2; k++) {
        const tn_blocks *of = tn_lm_blocks(k ? draft : m);
        const tn_block  *block = of ? tn_at(of->layers, 0) : NULL;
        if (block && block->self_attn->rotary && block->self_attn->rope.scaling == TN_ROPE_DYNAMIC)
            return tn_raise_false(TN_EUNSUPPORTED,
                                  "tn_speculative_decoding: %s has rotary positions with dynamic scaling, which is not "
                                  "supported: its logits depend on the number of tokens read at once",
                                  k ? "the draft" : "the model");
    }
    if (length < 1 || length > INT64_MAX / 16 || ahead < 1 || ahead > 64 || !count)
        return tn_raise_false(
            TN_EINVAL,
            "tn_speculative_decoding: length is %lld and ahead %lld; length must be at least 1, ahead from 1 "
            "to 64, and count not NULL",
            (long long)length, (long long)ahead);
    if ((a.limited && length > a.positions) || (b.limited && length > b.positions))
        return tn_raise_false(TN_EINVAL,
                              "tn_speculative_decoding: length is %lld, more than the positions of one of the models",
                              (long long)length);
    return true;
}

tn_decoding *tn_speculative_decoding(void *m, void *draft, int64_t length, int64_t ahead, tn_speculation *count)
{
    if (!check_arguments(m, draft, length, ahead, count)) return NULL;
    drafted *d = tn_mem_get(sizeof *d);
    if (!d) return NULL;
    *count = (tn_speculation){0};
    *d = (drafted){.base = {&drafted_kind.base, 1, length},
                   .large = {m, NULL},
                   .small = {draft, NULL},
                   .ahead = ahead,
                   .count = count};
    d->words = tn_mem_get(words_bytes(d));
    d->large.cache = tn_blocks_cache(tn_lm_blocks(m), 1, length, 0);
    d->small.cache = tn_blocks_cache(tn_lm_blocks(draft), 1, length, 0);
    if (tn_error() == TN_OK) return &d->base;
    return drafted_end(&d->base), NULL;
}
