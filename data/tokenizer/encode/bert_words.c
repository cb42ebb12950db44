/* bert_words.c — splits a text into words by the rules of BERT's fast tokenizer (Hugging Face).
 *
 * The rules in order: control characters, U+0000 and U+FFFD are removed, white space becomes a space; a Chinese
 * character is a word; canonical decomposition removes marks (Mn); each character is lower-cased; words end at white
 * space, and each punctuation character is a word. Unassigned code points are not control characters. One loop over the
 * code points does all of it and tracks the bytes that each comes from; ASCII uses a table. */
#include "data/tokenizer/encode/bert_words.h"
#include "core/base/toolbox.h"
#include "data/text/unicode.h"

#include <string.h>

enum { LETTER, SPACE, PUNCTUATION, CONTROL }; /* CONTROL: white space without .clean, if it is space */

static int ascii_class(unsigned c)
{
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return SPACE;
    if (c < 32 || c == 127) return CONTROL;
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || c >= 123 ? PUNCTUATION : LETTER;
}

bool tn__is_chinese(const tn_tokenizer *t, uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) ||
           (c >= (t->bert.slow ? 0x2b820 : 0x2b920) && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
}

/* Hugging Face's tables are of Unicode 8. In these ranges all punctuation, marks and format characters are newer:
 * Hugging Face treats them as letters, so models were trained with that. The other code points of the ranges are
 * letters. */
static const uint32_t younger[][2] = {
    {0x61d, 0x61d},     {0x7fd, 0x7fd},     {0x890, 0x8e2},     {0x9fd, 0x9fe},     {0xa76, 0xa76},
    {0xafa, 0xaff},     {0xb55, 0xb55},     {0xc04, 0xc3c},     {0xc77, 0xc77},     {0xc84, 0xc84},
    {0xd00, 0xd00},     {0xd3b, 0xd3c},     {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},
    {0x180f, 0x1886},   {0x1abf, 0x1ace},   {0x1b7d, 0x1b7e},   {0x1df6, 0x1dfb},   {0x2e43, 0x2e5d},
    {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},   {0xa8ff, 0xa8ff},   {0xa9bd, 0xa9bd},   {0x10d24, 0x10f89},
    {0x11070, 0x11074}, {0x110c2, 0x110cd}, {0x111cf, 0x111cf}, {0x1123e, 0x11241}, {0x1133b, 0x1133b},
    {0x11438, 0x1145e}, {0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1182f, 0x11fff}, {0x12ff1, 0x13455},
    {0x16e97, 0x16f4f}, {0x16fe2, 0x16fe4}, {0x1cf00, 0x1cf46}, {0x1e000, 0x1e4ef}, {0x1e944, 0x1e95f},
};

static bool is_younger(uint32_t c)
{
    size_t low = 0, high = sizeof younger / sizeof *younger;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (younger[middle][1] < c) low = middle + 1;
        else high = middle;
    }
    return low < sizeof younger / sizeof *younger && c >= younger[low][0];
}

/* The category that the rules use for c. */
static int category(const tn_tokenizer *t, uint32_t c, int now)
{
    if (c < 0x61d || t->bert.slow) return now;
    if (c == 0x166d || c == 0x111c9) return UTF8PROC_CATEGORY_PO; /* their category in Unicode 8 */
    if (c == 0x1734) return UTF8PROC_CATEGORY_MN;
    const bool matters = now == UTF8PROC_CATEGORY_MN || tn__is_punctuation(now) || tn__is_control(now);
    return matters && is_younger(c) ? UTF8PROC_CATEGORY_CN : now;
}

bool tn__bert_end(tn__bert *w)
{
    if (!w->letters) return true;
    const tn__word word = {w->s->word, w->bytes, w->letters, TN__MAPPED, w->end, *w->number};
    w->bytes = 0, w->letters = 0;
    ++*w->number;
    return tn__encode_word(w->t, w->s, &word);
}

/* Marks that are kept are put in canonical order: a mark is not placed after one of a higher class. The search goes
 * back at most this many characters; no real word needs more. */
enum { MARKS = 32 };
static size_t place_of_mark(const tn__bert *w, int class)
{
    const char *word = w->s->word;
    size_t      at = w->bytes;
    for (int i = 0; i < MARKS && at; i++) {
        size_t before = at - 1;
        while (before && ((unsigned char)word[before] & 0xc0) == 0x80) before--;
        size_t   next = before;
        uint32_t c = tn_utf8_next(word, w->bytes, &next, NULL);
        if (utf8proc_get_property((utf8proc_int32_t)c)->combining_class <= class) break;
        at = before;
    }
    return at;
}

static bool append(tn__bert *w, uint32_t c, int class, int32_t from, int32_t to)
{
    tn__encoding *s = w->s;
    w->end = to;
    if (++w->letters > w->t->longest_word) return true; /* the word is unknown anyway */
    if (!tn__encoding_room(s, w->bytes + 4)) return false;
    char         put[4];
    const size_t n = (size_t)tn_utf8_put(c, put), at = class ? place_of_mark(w, class) : w->bytes;
    memmove(s->word + at + n, s->word + at, w->bytes - at);
    memmove(s->from + 2 * (at + n), s->from + 2 * at, (w->bytes - at) * 2 * sizeof *s->from);
    memcpy(s->word + at, put, n);
    for (size_t i = at; i < at + n; i++) s->from[2 * i] = from, s->from[2 * i + 1] = to;
    w->bytes += n;
    return true;
}

/* Handles a normalized code point: a separator, a word alone, or one more letter. */
static bool put(tn__bert *w, uint32_t c, int class, int32_t from, int32_t to)
{
    if (tn__is_space(c)) return tn__bert_end(w);
    const bool alone =
        w->t->split == TN__SPLIT_BERT &&
        (c < 0x80 ? ascii_class(c) == PUNCTUATION : tn__is_punctuation(category(w->t, c, tn__category(c))));
    if (!alone) return append(w, c, class, from, to);
    return tn__bert_end(w) && append(w, c, 0, from, to) && tn__bert_end(w);
}

static bool put_lower(tn__bert *w, uint32_t c, int32_t from, int32_t to)
{
    const int class = w->t->bert.strip ? utf8proc_get_property((utf8proc_int32_t)c)->combining_class : 0;
    if (!w->t->bert.lower || w->t->bert.slow) return put(w, c, class, from, to);
    uint32_t  small[2];
    const int n = tn__lower(c, small);
    for (int i = 0; i < n; i++)
        if (!put(w, small[i], class, from, to)) return false;
    return true;
}

/* Handles a code point that cleaning kept. */
bool tn__bert_put(tn__bert *w, uint32_t c, int32_t from, int32_t to)
{
    if (!w->t->bert.strip) return put_lower(w, c, from, to);
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);
    uint32_t                   part[TN__DECOMPOSED];
    const bool                 whole = p->decomp_seqindex != UINT16_MAX && !w->t->bert.slow && is_younger(c);
    const int                  n = whole ? (part[0] = c, 1) : tn__decompose(c, p, part);
    for (int i = 0; i < n; i++)
        if (category(w->t, part[i], tn__category(part[i])) != UTF8PROC_CATEGORY_MN && !put_lower(w, part[i], from, to))
            return false;
    return true;
}

/* Handles a code point of the text. */
static bool one(tn__bert *w, uint32_t c, int32_t from, int32_t to)
{
    const tn_tokenizer        *t = w->t;
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);
    if (t->bert.clean) {
        if (c == '\t' || c == '\n' || c == '\r') return tn__bert_end(w);
        if (c == 0 || c == TN_REPLACEMENT || tn__is_control(category(t, c, p->category))) return true;
        if (tn__is_space(c)) return tn__bert_end(w);
    }
    const bool alone = t->bert.chinese && tn__is_chinese(t, c);
    if (alone && !tn__bert_end(w)) return false;
    return tn__bert_put(w, c, from, to) && (!alone || tn__bert_end(w));
}

/* Appends a run of n ASCII letters from text[at]. */
static bool letters(tn__bert *w, const char *text, int32_t at, int32_t n)
{
    tn__encoding *s = w->s;
    const int64_t kept = tn__max_i64(0, tn__min_i64(n, w->t->longest_word - w->letters));
    if (!tn__encoding_room(s, w->bytes + (size_t)kept)) return false;
    char    *word = s->word + w->bytes;
    int32_t *from = s->from + 2 * w->bytes;
    for (int32_t i = 0; i < (int32_t)kept; i++) {
        const char c = text[at + i];
        word[i] = (char)(w->t->bert.lower && c >= 'A' && c <= 'Z' ? c + 32 : c);
        from[2 * i] = at + i, from[2 * i + 1] = at + i + 1;
    }
    w->bytes += (size_t)kept, w->letters += n, w->end = at + n;
    return true;
}

bool tn__bert_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to, int32_t *number)
{
    tn__bert w = {.t = t, .s = s, .number = number};
    for (int32_t at = from; at < to;) {
        int32_t run = at;
        while (run < to && (unsigned char)text[run] < 0x80 && ascii_class((unsigned char)text[run]) == LETTER) run++;
        if (run > at) {
            if (!letters(&w, text, at, run - at)) return false;
            at = run;
            continue;
        }
        size_t         next = (size_t)at;
        const uint32_t c = tn_utf8_next(text, (size_t)to, &next, NULL);
        if (c == ' ' ? !tn__bert_end(&w) : !one(&w, c, at, (int32_t)next)) return false;
        at = (int32_t)next;
    }
    return tn__bert_end(&w);
}
