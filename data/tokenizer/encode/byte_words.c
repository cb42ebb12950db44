/* byte_words.c — splits a text into words for byte-level tokenizers: GPT-2's regex and those derived from it. All have
 * the same alternatives in this order; a row of the table holds the differences:
 *
 *     an English ending: 's 't 're 've 'm 'll 'd
 *     one optional character of `lead`, then letters:                   ?\p{L}+            [^\r\n\p{L}\p{N}]?\p{L}+
 *     an optional space, then at most `digits` numbers:                 ?\p{N}+            \p{N}{1,3}
 *     an optional space, then neither letters nor numbers:              ?[^\s\p{L}\p{N}]+  ?[^\s\p{L}\p{N}]+[\r\n]*
 *     white space up to its last line end:                                                 \s*[\r\n]+
 *     white space without its last character if text follows:          \s+(?!\S)|\s+       \s+(?!\S)|\s+ */
#include "data/tokenizer/encode/encoding_private.h"
#include "data/text/unicode.h"

#include <string.h>

enum { OTHER = 1, LETTER = 2, NUMBER = 4, BLANK = 8, LINE = 16, SPACE = 32, WHITE = BLANK | LINE | SPACE };

#define ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"
#define REST_GPT2 " ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LETTERS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define REST_GPT4 "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const struct tn__splitter {
    const char *names[4];   /* the first is Tenon's, the others GGUF's */
    const char *regexes[2]; /* as in tokenizer.json files; the first is the one written */
    uint8_t     lead;       /* classes allowed before letters */
    uint8_t     front;      /* classes allowed before numbers */
    int8_t      digits;     /* maximum number of digits of a word; 0: no limit */
    bool        fold;       /* endings also match in capitals */
    bool        lines;      /* line ends belong to the characters before them */
    bool        apart;      /* the text is cut at each number before the other alternatives see it */
} splitters[] = {
    {{"gpt2", "gpt-2", "roberta-bpe"},
     {ENDINGS "|" REST_GPT2, "'(?:[sdmt]|ll|ve|re)|" REST_GPT2},
     .lead = BLANK,
     .front = BLANK},
    {{"gpt4", "llama-bpe", "llama3", "llama-v3"},
     {"(?i:" ENDINGS ")" LETTERS "|\\p{N}{1,3}" REST_GPT4,
      "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|"
      "\\s+(?!\\S)|\\s+"},
     .lead = OTHER | BLANK | SPACE,
     .digits = 3,
     .fold = true,
     .lines = true},
    {{"qwen2", "deepseek-r1-qwen"},
     {"(?i:" ENDINGS ")" LETTERS "|\\p{N}" REST_GPT4},
     .lead = OTHER | BLANK | SPACE,
     .digits = 1,
     .fold = true,
     .lines = true},
    {{"smollm"}, {NULL}, .lead = BLANK, .digits = 1, .apart = true}, /* Digits, then ByteLevel */
};
enum { SPLITTERS = sizeof splitters / sizeof *splitters };

int tn__splitter_named(const char *name)
{
    for (int i = 0; i < SPLITTERS; i++)
        for (int k = 0; k < 4 && splitters[i].names[k]; k++)
            if (!strcmp(splitters[i].names[k], name)) return i;
    return -1;
}

int tn__splitter_of(const char *regex)
{
    for (int i = 0; i < SPLITTERS; i++)
        for (int k = 0; k < 2 && splitters[i].regexes[k]; k++)
            if (!strcmp(splitters[i].regexes[k], regex)) return i;
    return -1;
}

const char *tn__splitter_regex(int i) { return splitters[i].regexes[0]; }

#define O OTHER
#define L LETTER
#define N NUMBER
#define B BLANK
#define E LINE
#define S SPACE
static const uint8_t ascii[128] = {O, O, O, O, O, O, O, O, O, S, E, S, S, E, O, O, O, O, O, O, O, O, O, O, O, O,
                                   O, O, O, O, O, O, B, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, N, N, N, N,
                                   N, N, N, N, N, N, O, O, O, O, O, O, O, L, L, L, L, L, L, L, L, L, L, L, L, L,
                                   L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O, O, L, L, L, L, L, L, L,
                                   L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O};
#undef O
#undef L
#undef N
#undef B
#undef E
#undef S

/* Returns the class of the code point at text[*at] and moves *at past it. */
static inline int next_kind(const char *text, int32_t to, int32_t *at)
{
    const unsigned char b = (unsigned char)text[*at];
    if (b < 0x80) return ++*at, ascii[b];
    size_t         next = (size_t)*at;
    const uint32_t c = tn_utf8_next(text, (size_t)to, &next, NULL);
    const int      category = tn__category(c);
    *at = (int32_t)next;
    return tn__is_letter(category) ? LETTER : tn__is_number(category) ? NUMBER : tn__is_space(c) ? SPACE : OTHER;
}

/* Returns the length in bytes of the ending at text[at], which is an apostrophe; 0: no ending. */
static int32_t ending(const char *text, int32_t at, int32_t to, bool fold)
{
    if (at + 1 >= to) return 0;
    const char less = fold ? 32 : 0;                                            /* bit that makes letters lower case */
    if (fold && at + 2 < to && !memcmp(text + at + 1, "\xc5\xbf", 2)) return 3; /* U+017F, a long s */
    const char a = (char)(text[at + 1] | less), b = (char)(at + 2 < to ? text[at + 2] | less : 0);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* Returns the end of the run of these classes that starts at `at`; *last: offset of its last character. */
static inline int32_t run_end(const char *text, int32_t at, int32_t to, int kinds, int32_t *last)
{
    while (at < to) {
        const unsigned char b = (unsigned char)text[at];
        if (b < 0x80) {
            if (!(ascii[b] & kinds)) break;
            *last = at++;
            continue;
        }
        int32_t next = at;
        if (!(next_kind(text, to, &next) & kinds)) break;
        *last = at, at = next;
    }
    return at;
}

static int32_t white_end(const struct tn__splitter *r, const char *text, int32_t at, int32_t to)
{
    int32_t       last = at;
    const int32_t end = run_end(text, at, to, WHITE, &last);
    if (r->lines)
        for (int32_t i = end; i > at; i--)
            if (text[i - 1] == '\n' || text[i - 1] == '\r') return i;
    int32_t next = end;
    if (r->apart && end < to && next_kind(text, to, &next) == NUMBER) return end;
    return end < to && last > at ? last : end;
}

static int32_t word_end(const struct tn__splitter *r, const char *text, int32_t at, int32_t to)
{
    if (text[at] == '\'') {
        const int32_t bytes = ending(text, at, to, r->fold);
        if (bytes) return at + bytes;
    }
    int32_t   end = at, last = at;
    const int first = next_kind(text, to, &end);
    int       kind = first;
    if ((first & (r->lead | r->front | BLANK)) && end < to) { /* one character may precede others */
        int32_t   next = end;
        const int after = next_kind(text, to, &next);
        if (after & (LETTER | NUMBER | OTHER) && first & (after == LETTER   ? r->lead
                                                          : after == NUMBER ? r->front
                                                                            : BLANK))
            kind = after, end = next;
    }
    if (kind & WHITE) return white_end(r, text, at, to);
    if (kind == NUMBER && r->digits) {
        for (int32_t n = 1, next = end; n < r->digits && next < to; n++, end = next)
            if (next_kind(text, to, &next) != NUMBER) break;
        return end;
    }
    end = run_end(text, end, to, kind, &last);
    return kind == OTHER && r->lines ? run_end(text, end, to, LINE, &last) : end;
}

/* ---- words of a text --------------------------------------------------------------------------------------------- */

typedef struct {
    const char *text;              /* the bytes of the words */
    int32_t     begin, end, shift; /* offset in the caller's text = own offset + shift; mapped: see s->from */
    bool        mapped;
} source;

/* Prepares the text that words are cut from: normalized, and with a space prepended. */
static bool prepare(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to, source *x)
{
    *x = (source){text, from, to, 0, t->steps > 0};
    if (x->mapped) {
        const int64_t n = tn__normalize(t, s, text, from, to);
        if (n < 0) return false;
        *x = (source){s->word, 0, (int32_t)n, 0, true};
    }
    if (!t->bytes.prefix_space || x->begin >= x->end || x->text[x->begin] == ' ') return true;
    const size_t n = (size_t)(x->end - x->begin);
    if (!tn__encoding_room(s, n + 1)) return false;
    memmove(s->word + 1, x->mapped ? s->word : x->text + x->begin, n);
    s->word[0] = ' ';
    if (x->mapped) {
        memmove(s->from + 2, s->from, 2 * n * sizeof *s->from);
        s->from[1] = s->from[0];
    }
    *x = (source){s->word, 0, (int32_t)n + 1, from - 1, x->mapped};
    return true;
}

/* Excludes the spaces at a token's ends from its bytes. */
static void trim(tn__token *k, const char *text, bool prefix)
{
    const bool first = k->start == 0 && prefix; /* its space counts as the prepended one */
    while (k->start < k->end && text[k->start] == ' ') k->start++;
    if (first && k->start > 0) k->start--;
    while (k->start < k->end && text[k->end - 1] == ' ') k->end--;
}

bool tn__byte_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to, int32_t *number)
{
    const struct tn__splitter *r = splitters + t->bytes.splitter;
    source                     x;
    if (!prepare(t, s, text, from, to, &x)) return false;
    for (int32_t at = x.begin, next; at < x.end; at = next) {
        next = t->bytes.regex ? word_end(r, x.text, at, x.end) : x.end;
        const tn__word w = {x.text + at, (size_t)(next - at), 0, x.mapped ? TN__MAPPED : at + x.shift, next + x.shift,
                            *number};
        const size_t   before = s->tokens;
        if (!tn__encode_word(t, s, &w)) return false;
        ++*number;
        for (size_t i = before; i < s->tokens; i++) {
            tn__token *k = s->token + i;
            if (k->start < from) k->start = from;
            if (t->bytes.trim) trim(k, text, t->bytes.prefix_space);
        }
    }
    return true;
}
