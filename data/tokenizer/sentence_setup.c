/* sentence_setup.c — completes a tokenizer of SentencePiece's kinds from its tokens, types and scores: merges, byte
 * tokens, the lowest score, the tries. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LONGEST = 256, LONGEST_OTHER = 4096 }; /* maximum bytes of a token */

/* ---- merges from scores ------------------------------------------------------------------------------------------ */

static bool higher(const void *owner, uint32_t a, uint32_t b)
{
    const tn_tokenizer *t = owner;
    if (t->score[a] != t->score[b]) return t->score[a] > t->score[b];
    return a < b;
}

static bool is_normal(const tn_tokenizer *t, int64_t id) { return id >= 0 && t->type[id] == TN_TYPE_NORMAL; }

/* Adds a merge for every split of this token into two tokens. */
static bool put_splits(tn_tokenizer *t, uint32_t id, uint32_t order)
{
    size_t n;
    for (size_t i = 1; tn__strings_text(&t->vocab, id, &n) && i < n; i++) {
        const char *text = tn__strings_text(&t->vocab, id, &n);
        if (((unsigned char)text[i] & 0xc0) == 0x80) continue;
        const int64_t left = tn__strings_find(&t->vocab, text, i);
        if (!is_normal(t, left)) continue;
        const int64_t right = tn__strings_find(&t->vocab, text + i, n - i);
        if (!is_normal(t, right)) continue;
        tn__merges *m = &t->merges;
        if (!tn__grown((void *)&m->order, &m->order_room, (int64_t)m->n + 1, sizeof *m->order)) return false;
        m->order[m->n] = order;
        tn__merges_put(m, (int32_t)left, (int32_t)right, (int32_t)id);
    }
    return true;
}

/* Adds the merges of all tokens that two others make, the highest score first. */
static bool score_merges(tn_tokenizer *t, const char *caller)
{
    const size_t n = t->vocab.n;
    size_t       letters = 0;
    uint32_t    *order = tn__mem_get((n + 1) * sizeof *order), count = 0;
    if (!order) return false;
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes;
        tn__strings_text(&t->vocab, i, &bytes);
        if (t->type[i] == TN_TYPE_NORMAL) order[count++] = i, letters += bytes;
    }
    bool ok = tn__merges_room(&t->merges, letters < TN__VOCAB_MAX ? letters : TN__VOCAB_MAX);
    if (ok) tn__sort(order, count, higher, t);
    for (uint32_t i = 0, place = 0; ok && i < count; i++) {
        if (i && t->score[order[i]] != t->score[order[i - 1]]) place = i;
        ok = t->merges.n + LONGEST < TN__VOCAB_MAX
                 ? put_splits(t, order[i], place)
                 : (tn_raise(TN_EUNSUPPORTED, "%s: the tokens need more than %d merges", caller, TN__VOCAB_MAX), false);
    }
    tn__mem_put(order, (n + 1) * sizeof *order);
    return ok;
}

/* ---- completing the tokenizer ------------------------------------------------------------------------------------ */

/* True if a token has a "▁" after another character. */
static bool reaches_over(const char *text, size_t n)
{
    for (size_t i = 1; i + 3 <= n; i++)
        if (!memcmp(text + i, TN__SPACE, 3) && !(i >= 3 && !memcmp(text + i - 3, TN__SPACE, 3))) return true;
    return false;
}

static bool has_text(const tn_tokenizer *t, uint32_t id)
{
    size_t n;
    return *tn__strings_text(&t->vocab, id, &n) != 0;
}

static bool check_piece(const tn_tokenizer *t, const char *caller, uint32_t i, size_t n)
{
    const int    type = t->type ? t->type[i] : TN_TYPE_NORMAL;
    const size_t most = t->score && type == TN_TYPE_NORMAL ? LONGEST : LONGEST_OTHER;
    if (n > most)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: token %u has %zu bytes, expected at most %zu", caller, i, n, most);
    if (t->score && !isfinite(t->score[i]))
        return tn_raise_false(TN_EFORMAT, "%s: the score of token %u is not a finite number", caller, i);
    if (type == TN_TYPE_UNUSED && t->kind == TN_SENTENCE_BPE && !t->listed && has_text(t, i))
        return tn_raise_false(TN_EUNSUPPORTED,
                              "%s: token %u has the type UNUSED, which byte-pair encoding does not support", caller, i);
    return true;
}

/* Builds the tries: of the tokens that Unigram combines, and of the user-defined tokens, which are matched first. */
static bool build_tries(tn_tokenizer *t)
{
    const size_t bytes = (t->vocab.n + 1) * sizeof(uint32_t);
    uint32_t    *id = tn__mem_get(bytes), n = 0, users = 0;
    if (!id) return false;
    for (uint32_t i = 0; i < t->vocab.n && t->type; i++)
        if (t->type[i] == TN_TYPE_USER && has_text(t, i)) id[users++] = i;
    bool ok = tn__trie_build(&t->user, &t->vocab, id, users);
    for (uint32_t i = 0; i < t->vocab.n; i++) {
        const int type = t->type ? t->type[i] : TN_TYPE_NORMAL;
        if ((type == TN_TYPE_NORMAL || type == TN_TYPE_USER) && has_text(t, i)) id[n++] = i;
    }
    ok = ok && (t->kind != TN_UNIGRAM || tn__trie_build(&t->trie, &t->vocab, id, n));
    tn__mem_put(id, bytes);
    return ok;
}

bool tn__sentence_setup(tn_tokenizer *t, const char *caller)
{
    t->lowest_score = DBL_MAX;
    bool safe = !t->sentence.cut && t->kind != TN_UNIGRAM && !t->prefix_bytes && !t->suffix_bytes && !t->whole_words;
    for (int b = 0; b < 256; b++) t->byte_token[b] = -1;
    for (uint32_t i = 0; i < t->vocab.n; i++) {
        size_t       n;
        const char  *text = tn__strings_text(&t->vocab, i, &n);
        const int    type = t->type ? t->type[i] : TN_TYPE_NORMAL, byte = tn__byte_of_token(text, n);
        const double score = t->score ? (double)t->score[i] : t->score64 ? t->score64[i] : 0;
        if (!check_piece(t, caller, i, n)) return false;
        if (byte >= 0 && (t->score ? type == TN_TYPE_BYTE : !tn__is_outside(t, i))) t->byte_token[byte] = (int32_t)i;
        if (type == TN_TYPE_UNKNOWN && t->unknown < 0) t->unknown = (int32_t)i;
        if (type == TN_TYPE_NORMAL && score < t->lowest_score) t->lowest_score = score;
        if (reaches_over(text, n)) safe = false;
    }
    if (t->lowest_score == DBL_MAX) t->lowest_score = 0;
    t->sentence.cut_at_spaces = safe;
    if (t->kind == TN_SENTENCE_BPE && t->score && !score_merges(t, caller)) return false;
    return build_tries(t);
}
