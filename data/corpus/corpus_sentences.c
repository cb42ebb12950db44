/* corpus_sentences.c — finds the end of a sentence: . ! ? or …, optional closing quotes or brackets, then blanks, then
 * a character that is not lower case. Not after an initial ("J. S. Bach") nor after abbreviations that precede names
 * and numbers. A heuristic for European languages; one sentence per line is exact. */
#include "data/corpus/corpus_private.h"

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_closing(uint32_t c)
{
    return c == '"' || c == '\'' || c == ')' || c == ']' || c == 0x201d || c == 0x2019 || c == 0xbb;
}

static bool is_letter(uint32_t c) { return (c | 32) - 'a' < 26u || c >= 0xc0; }

/* True if the word before the full stop at text[stop] is an abbreviation that precedes a name or a number. */
static bool is_abbreviation(const char *text, size_t stop)
{
    static const char known[] = " mr mrs ms dr st prof rev gen col capt lt sgt hon jr sr vs no vol fig e.g i.e cf etc "
                                "mme mlle nr bzw z.b d.h u.a ";
    char              word[8] = " ";
    size_t            n = 0, from = stop;
    while (from > 0 && !is_blank(text[from - 1]) && text[from - 1] != '(' && text[from - 1] != '"') from--;
    n = stop - from;
    if (n == 1 && text[from] >= 'A' && text[from] <= 'Z') return text[from] != 'I'; /* an initial, not the pronoun */
    if (n == 0 || n > sizeof word - 3) return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[from + i];
        word[i + 1] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    word[n + 1] = ' ', word[n + 2] = 0;
    return strstr(known, word);
}

size_t tn__sentence_end(const char *text, size_t bytes, size_t from)
{
    for (size_t i = from, len; i < bytes; i += len) {
        uint32_t c = tn__point(text + i, bytes - i, &len);
        if (c != '.' && c != '!' && c != '?' && c != 0x2026) continue;
        size_t end = i + len, more;
        while (end < bytes && is_closing(tn__point(text + end, bytes - end, &more))) end += more;
        size_t next = end;
        while (next < bytes && is_blank(text[next])) next++;
        if (next == end || next == bytes) continue;
        c = tn__point(text + next, bytes - next, &more);
        bool lower = (c >= 'a' && c <= 'z') || (c >= 0xdf && c <= 0xff && c != 0xf7) || (c >= 0x430 && c <= 0x45f);
        if (lower || (!is_letter(c) && (c == ',' || c == ';' || c == ':' || c == '-'))) continue;
        if (text[i] == '.' && is_abbreviation(text, i)) continue;
        return end;
    }
    return 0;
}
