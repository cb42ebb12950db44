/* sentence_words.c — splits a text into words for SentencePiece's kinds: the normalized text, with "▁" for spaces, is
 * one word; or, with Hugging Face's Metaspace, a word starts at each "▁". If no token can cross the start of a word,
 * words are cut in both cases, so that frequent ones can be cached. */
#include "data/tokenizer/encode/encoding_private.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <string.h>

static bool is_space(const char *p, size_t n) { return n >= 3 && !memcmp(p, TN__SPACE, 3); }

static bool escaped(tn__encoding *s, const char *p, const int32_t *from, size_t n, bool front)
{
    size_t max_bytes;
    if (n > SIZE_MAX / 4) return false;
    max_bytes = 3 * n + 3;
    if (!tn__grown((void *)&s->output, &s->output_room, (int64_t)max_bytes, 1) ||
        !tn__grown((void *)&s->output_from, &s->output_from_room, 2 * (int64_t)max_bytes, sizeof *s->output_from))
        return false;
    size_t at = 0;
    for (size_t i = 0; i < 3 && front; i++, at++)
        s->output[at] = TN__SPACE[i], s->output_from[2 * at] = s->output_from[2 * at + 1] = from[0];
    for (size_t i = 0; i < n; i++) {
        const bool space = p[i] == ' ';
        for (size_t k = 0; k < (space ? 3 : 1); k++, at++) {
            s->output[at] = space ? TN__SPACE[k] : p[i];
            s->output_from[2 * at] = from[2 * i], s->output_from[2 * at + 1] = from[2 * i + 1];
        }
    }
    s->output_bytes = at;
    return true;
}

/* Passes on the words of n bytes at p; s->from[2 * base] has their offsets in the text. */
static bool pass_words(const tn_tokenizer *t, tn__encoding *s, const char *p, size_t base, size_t n, int32_t *number)
{
    const tn__sentence *r = &t->sentence;
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + (is_space(p + i, n - i) ? 3 : 1); k < n && (r->cut || r->cut_at_spaces); k++) {
            if (!is_space(p + k, n - k)) continue;
            if (r->cut || k < 3 || !is_space(p + k - 3, 3)) break;
        }
        if (!r->cut && !r->cut_at_spaces) k = n;
        const tn__word w = {p + i, k - i, 0, TN__MAPPED, s->from[2 * (base + k) - 1], (*number)++};
        s->line_end = k == n;
        if (!tn__encode_word(t, s, &w)) return false;
    }
    return true;
}

static bool metaspace(const tn_tokenizer *t, tn__encoding *s, size_t i, size_t k, int32_t *number)
{
    const tn__sentence *r = &t->sentence;
    const char         *p = s->word + i;
    const bool          has_space = p[0] == ' ' || is_space(p, k - i);
    const bool          front = (r->always_space || !has_space) &&
                       (r->space == TN__SPACE_EACH || (r->space == TN__SPACE_FIRST && s->from[2 * i] == 0));
    if (!front && !memchr(p, ' ', k - i)) return pass_words(t, s, p, i, k - i, number);
    if (!escaped(s, p, s->from + 2 * i, k - i, front)) return false;
    /* the words are in s->other, but the callee reads s->word */
    char *const    word = s->word;
    int32_t *const map = s->from;
    s->word = s->output, s->from = s->output_from;
    const bool ok = pass_words(t, s, s->word, 0, s->output_bytes, number);
    s->word = word, s->from = map;
    return ok;
}

bool tn__sentence_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                        int32_t *number)
{
    const int64_t n = tn__normalize(t, s, text, from, to);
    if (n <= 0) return n == 0;
    const size_t end = (size_t)n;
    if (!t->sentence.escape) return pass_words(t, s, s->word, 0, end, number);
    if (!t->sentence.words) return metaspace(t, s, 0, end, number);
    for (size_t i = 0, k, next; i < end; i = next) {
        k = next = i;
        while (next < end) {
            if (tn__is_space(tn_utf8_next(s->word, end, &next, NULL))) break;
            k = next;
        }
        if (k > i && !metaspace(t, s, i, k, number)) return false;
    }
    return true;
}
