/* gpt2_words.c — GPT-2's text to words. Its pattern, alternatives tried in order,
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * reads: an English ending; a run of letters, of numbers or of neither, with one space before it; white space, which
 * leaves its last character to what follows. */
#include "data/tokenizer/tokenizer_private.h"
#include "data/text/unicode.h"

#include <string.h>

typedef enum { OTHER, LETTER, NUMBER, SPACE } kind;

/* The kind of the code point at text[*at], which is passed. */
static kind next_kind(const char *text, int32_t to, int32_t *at)
{
    const unsigned char b = (unsigned char)text[*at];
    if (b < 0x80) {
        ++*at;
        if ((b | 32) >= 'a' && (b | 32) <= 'z') return LETTER;
        if (b >= '0' && b <= '9') return NUMBER;
        return b == ' ' || (b >= 9 && b <= 13) ? SPACE : OTHER;
    }
    size_t         next = (size_t)*at;
    const uint32_t c = tn_utf8_next(text, (size_t)to, &next, NULL);
    const int      category = tn__category(c);
    *at = (int32_t)next;
    return tn__is_letter(category) ? LETTER : tn__is_number(category) ? NUMBER : tn__is_space(c) ? SPACE : OTHER;
}

/* How many bytes at text[at] are one of the endings, 0: none. */
static int32_t ending(const char *text, int32_t at, int32_t to)
{
    if (text[at] != '\'' || at + 1 >= to) return 0;
    const char a = text[at + 1], b = at + 2 < to ? text[at + 2] : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

static int32_t word_end(const char *text, int32_t at, int32_t to)
{
    const int32_t short_end = ending(text, at, to);
    if (short_end) return at + short_end;
    int32_t end = at, next, last = at;
    kind    k = next_kind(text, to, &end);
    if (text[at] == ' ' && end < to) {
        next = end;
        const kind after = next_kind(text, to, &next);
        if (after != SPACE) k = after, end = next;
    }
    for (next = end; next < to; end = next) {
        const int32_t before = next;
        if (next_kind(text, to, &next) != k) break;
        last = before;
    }
    return k == SPACE && end < to && last > at ? last : end;
}

bool tn__byte_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to, int32_t *number)
{
    const char   *p = text;
    const int32_t back = t->prefix_space && from < to && text[from] != ' '; /* the bytes stand one behind the text's */
    int32_t       begin = from, end = to;
    if (back) {
        begin = 0, end = to - from + 1;
        if (!tn__encoding_room(s, (size_t)end)) return false;
        s->word[0] = ' ';
        memcpy(s->word + 1, text + from, (size_t)end - 1);
        p = s->word;
    }
    for (int32_t at = begin, next; at < end; at = next) {
        next = t->regex ? word_end(p, at, end) : end;
        const int32_t    shift = back ? from - 1 : 0;
        const tn__a_word w = {p + at, (size_t)(next - at), 0, at + shift, next + shift, *number};
        const size_t     before = s->tokens;
        if (!tn__word(t, s, &w)) return false;
        ++*number;
        for (size_t i = before; i < s->tokens; i++) {
            tn__token *k = s->token + i;
            if (k->start < from) k->start = from;
            if (!t->trim) continue;
            const bool first = k->start == 0 && t->prefix_space; /* its space counts as the one that was put there */
            while (k->start < k->end && text[k->start] == ' ') k->start++;
            if (first && k->start > 0) k->start--;
            while (k->start < k->end && text[k->end - 1] == ' ') k->end--;
        }
    }
    return true;
}
