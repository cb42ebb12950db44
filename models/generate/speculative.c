/* speculative.c — speculative decoding: the next tokens are proposed by a small model, or by an earlier place in the
 * text that ends like the text does; the large model reads them all in one pass, so that a chosen token that was
 * proposed needs no pass of its own. A row of logits has the same bits whether its token is read alone or with others,
 * so the text is the same as without proposals. */
#include "core/base/toolbox.h"
#include "models/generate/lm_private.h"

/* ---- proposals from the text (ADR 0052) -------------------------------------------------------------------------- */

enum { SHORTEST = 2, LONGEST = 8 }; /* tokens of a match; longer ones are not distinguished */

/* How far matches of each length are trusted: the fraction of their tokens that were chosen, the last ones counting
 * most. While they are not trusted, what they would have proposed is still compared with the text. */
typedef struct {
    double  trust[LONGEST + 1];
    double  start, each; /* extra time of a pass with proposals, and of each of them, in passes without */
    int64_t match;       /* length of the last match; 0: none */
    int64_t guess;       /* the token that it expects, if nothing was proposed; -1: none */
} lookup;

/* The number of tokens to propose, at most `most`, if each is chosen with probability p after those before it. */
static int64_t worth(const lookup *l, double p, int64_t most)
{
    double  gain = -l->start, best = 0, part = p;
    int64_t k = 0;
    for (int64_t i = 1; i <= most; i++, part *= p) {
        gain += part - l->each;
        if (gain > best) best = gain, k = i;
    }
    return k;
}

/* Appends up to `most` tokens after the text of n, from the last of the longest matches; returns their number. */
static int64_t look_up(lookup *l, int64_t *words, int64_t n, int64_t most)
{
    int64_t from = 0;
    l->match = 0, l->guess = -1;
    for (int64_t i = n - 1; i > 0 && l->match < LONGEST; i--) {
        int64_t same = 0;
        while (same < LONGEST && same < i && words[i - 1 - same] == words[n - 1 - same]) same++;
        if (same > l->match) l->match = same, from = i;
    }
    if (l->match < SHORTEST) return l->match = 0;
    const int64_t k = worth(l, l->trust[l->match], most);
    for (int64_t i = 0; i < k; i++) words[n + i] = words[from + i]; /* the places may overlap */
    if (!k) l->guess = words[from];
    return k;
}

static void learn(lookup *l, int64_t expected, int64_t word)
{
    if (l->match && expected >= 0) l->trust[l->match] += 0.2 * ((expected == word) - l->trust[l->match]);
    l->guess = -1;
}

/* ---- proposals from a draft -------------------------------------------------------------------------------------- */

typedef struct {
    tn_decoding     base;
    tn__cached     *large;
    void           *draft; /* NULL: proposals from the text */
    tn_kv_cache    *small; /* the draft's */
    lookup          known;
    int64_t         ahead;
    tn_speculation *count;
    tn_tensor      *rows;  /* [1, 1 + proposed, vocab], owned: logits after the last token and each proposed one */
    int64_t         left;  /* proposed tokens not yet requested */
    int64_t         n;     /* tokens of the text */
    int64_t        *words; /* [length]: the text, then the proposed tokens */
} drafted;

static size_t words_bytes(const drafted *d) { return (size_t)d->base.length * sizeof *d->words; }

static tn_tensor *ids_of(const drafted *d, int64_t from, int64_t to)
{
    return tn_from_data(TN_I64, TN_SHAPE(1, to - from), d->words + from);
}

/* Appends k tokens after the text, the draft's most likely ones; returns k. Its cache is valid for the first `same`
 * tokens. */
static int64_t propose(drafted *d, int64_t k, int64_t same)
{
    int64_t from = tn_kv_cache_length(d->small);
    if (from > same) tn_kv_cache_trim(d->small, from = same);
    for (int64_t i = 0; i < k && tn_error() == TN_OK; i++) {
        const tn_scope        s = tn_scope_begin();
        const tn_decoder_args a = {.ids = ids_of(d, from, d->n + i), .cache = d->small, .last = true};
        tn_tensor            *best = tn_argmax(tn_lm_run(d->draft, a), -1, false);
        if (best) d->words[d->n + i] = tn_get_i64(best, 0);
        from = d->n + i;
        tn_scope_end(s);
    }
    return k;
}

/* ---- the decoding ------------------------------------------------------------------------------------------------ */

static tn_tensor *row(const drafted *d, int64_t i) { return tn_select(d->rows, 1, i); }

/* Appends tokens to the large model's: the logits after each of them, [1, n, vocab]. */
static tn_tensor *all_logits(tn__cached *large, tn_tensor *ids)
{
    if (tn__cached_make_room(large, tn_size(ids, 1)) != TN_OK) return NULL;
    tn_tensor *y = tn_lm_run(large->model, (tn_decoder_args){.ids = ids, .cache = large->cache});
    if (y) large->read += tn_size(ids, 1);
    return y;
}

/* Reads the tokens from `from` on, of which the last ones are proposals; sets d->rows. */
static bool read_tokens(drafted *d, int64_t from, int64_t proposed)
{
    const tn_scope s = tn_scope_begin();
    const double   began = tn__seconds();
    tn_tensor     *ids = tn_error() == TN_OK ? ids_of(d, from, d->n + proposed) : NULL, *y = NULL;
    if (ids && proposed) y = all_logits(d->large, ids);
    else if (ids) y = tn_unsqueeze(d->large->base.kind->scores(&d->large->base, ids), 1);
    tn_drop(d->rows);
    d->rows = y ? tn_keep(y) : NULL;
    tn_scope_end(s);
    const double seconds = tn__seconds() - began;
    if (!proposed && d->n - from == 1 && (d->count->plain == 0 || seconds < d->count->plain)) d->count->plain = seconds;
    return y != NULL;
}

/* Appends tokens to the text. A single token that was proposed has already been read. */
static tn_tensor *drafted_scores(tn_decoding *base, tn_tensor *tokens)
{
    drafted      *d = (drafted *)base;
    const int64_t news = tn_size(tokens, 1), old = d->n, word = tn_get_i64(tokens, 0);
    const int64_t expected = d->left ? d->words[old] : d->known.guess;
    if (news == 1) learn(&d->known, expected, word);
    if (news == 1 && d->left && word == expected) {
        d->count->accepted++, d->n++, d->left--;
        return row(d, tn_size(d->rows, 1) - 1 - d->left);
    }
    if (news > base->length - d->n)
        return tn_raise_null(TN_EINVAL,
                             "tn_speculative_decoding: the text is longer than the decoding's length of %lld tokens",
                             (long long)base->length);
    if (d->large->read > old) tn_cached_decoding_trim(&d->large->base, old);
    for (int64_t i = 0; i < news; i++) d->words[d->n++] = tn_get_i64(tokens, i);
    d->left = 0;
    const int64_t room = base->length - d->n, k = d->ahead < room ? d->ahead : room;
    int64_t       proposed = 0;
    if (news == 1 && !d->draft) proposed = look_up(&d->known, d->words, d->n, k);
    else if (news == 1 && d->count->plain > 0) proposed = propose(d, k, old);
    if (!read_tokens(d, old, proposed)) return NULL;
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
    if (d->large) tn_decoding_free(&d->large->base);
    tn_kv_cache_free(d->small);
    tn_drop(d->rows);
    tn_mem_put(d->words, d->words ? words_bytes(d) : 0);
    tn_mem_put(d, sizeof *d);
}
static int64_t                drafted_read(const tn_decoding *base) { return ((const drafted *)base)->n; }
static const tn_decoding_kind drafted_kind = {sizeof(tn_decoding_kind), drafted_scores, drafted_reorder, drafted_end,
                                              drafted_read};

/* False: raised, because speculation with this model could change bits, or it is too short. */
static bool check_model(void *m, const char *which, int64_t length)
{
    const tn_blocks *of = tn_lm_blocks(m);
    const tn_lm_info i = tn_lm_info_of(m);
    const tn_block  *block = of ? tn_at(of->layers, 0) : NULL;
    const tn_rotary *rotary = block ? tn_rotary_of(block->self_attn) : NULL;
    if (rotary && rotary->rope.scaling == TN_ROPE_DYNAMIC)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "tn_speculative_decoding: %s has rotary positions with dynamic scaling, which is not "
                              "supported: its logits depend on the number of tokens read at once",
                              which);
    if (i.limited && length > i.positions)
        return tn_raise_false(TN_EINVAL, "tn_speculative_decoding: length is %lld, more than the %lld positions of %s",
                              (long long)length, (long long)i.positions, which);
    return tn_error() == TN_OK;
}

static bool check_arguments(void *m, void *draft, int64_t length, int64_t ahead, const tn_speculation *count)
{
    static const char *const who = "tn_speculative_decoding";
    if (!tn_module_ready(who, m) || (draft && !tn_module_ready(who, draft))) return false;
    const tn_lm_info a = tn_lm_info_of(m), b = draft ? tn_lm_info_of(draft) : a;
    if (tn_error() != TN_OK) return false;
    if (a.vocab != b.vocab)
        return tn_raise_false(
            TN_EINVAL,
            "tn_speculative_decoding: the model has %lld token ids and its draft %lld; they must have the "
            "same tokenizer",
            (long long)a.vocab, (long long)b.vocab);
    if (length < 1 || length > INT64_MAX / 16 || ahead < 1 || ahead > 64 || !count)
        return tn_raise_false(
            TN_EINVAL,
            "tn_speculative_decoding: length is %lld and ahead %lld; length must be at least 1, ahead from 1 "
            "to 64, and count not NULL",
            (long long)length, (long long)ahead);
    return check_model(m, "the model", length) && (!draft || check_model(draft, "the draft", length));
}

tn_decoding *tn_speculative_decoding(void *m, void *draft, int64_t length, int64_t ahead, tn_speculation *count)
{
    if (!check_arguments(m, draft, length, ahead, count)) return NULL;
    drafted *d = tn_mem_get(sizeof *d);
    if (!d) return NULL;
    *count = (tn_speculation){0};
    *d = (drafted){.base = {&drafted_kind, 1, length}, .draft = draft, .ahead = ahead, .count = count};
    const bool small = tn_module_count(m, false) < 5000000; /* a pass is mostly calls, which replays save */
    d->known.guess = -1, d->known.start = small ? 2 : 0.5, d->known.each = small ? 0.7 : 0.25;
    for (int i = 0; i <= LONGEST; i++) d->known.trust[i] = 0.5;
    d->words = tn_mem_get(words_bytes(d));
    tn_decoding *large = tn__lm_decoding("tn_speculative_decoding", m, 1, length);
    d->large = tn__as_cached(large);
    if (large && !d->large) {
        tn_decoding_free(large);
        tn_raise(TN_EUNSUPPORTED, "tn_speculative_decoding: this model's decoding has no key/value cache");
    }
    if (draft) d->small = tn_blocks_cache(tn_lm_blocks(draft), 1, length, 0);
    if (tn_error() == TN_OK) return &d->base;
    return drafted_end(&d->base), NULL;
}
