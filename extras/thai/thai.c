/* thai.c — prepares Thai text as the training data of WangchanBERTa was prepared: the rules of process_transformers in
 * thai2transformers that need no dictionary, in their order. Each pass over the text is linear. */
#include "extras/thai.h"

#include <utf8proc.h>

typedef struct {
    tn_ids in, out; /* code points */
    bool   ok;
} passes;

static void put(passes *x, int32_t c) { x->ok = x->ok && tn_ids_add(&x->out, c) == TN_OK; }
static void put_text(passes *x, const char *ascii)
{
    while (*ascii) put(x, (unsigned char)*ascii++);
}

/* The result of a pass is the text of the next one. */
static void next_pass(passes *x)
{
    const tn_ids done = x->out;
    x->out = x->in, x->in = done, x->out.n = 0;
}

/* Returns the end of the ASCII text `word` at i; -1: not found there. */
static int64_t after(const tn_ids *p, int64_t i, const char *word)
{
    while (*word && i < p->n && p->at[i] == (unsigned char)*word) i++, word++;
    return *word ? -1 : i;
}

static void replace(passes *x, const char *from, const char *to)
{
    for (int64_t i = 0; i < x->in.n && x->ok;) {
        const int64_t end = after(&x->in, i, from);
        if (end < 0) put(x, x->in.at[i++]);
        else put_text(x, to), i = end;
    }
    next_pass(x);
}

/* ---- HTML -------------------------------------------------------------------------------------------------------- */

/* The code point of a numeric character reference as HTML5 specifies it; 0: nothing. 0x80 to 0x9f are read as
 * windows-1252. */
static int32_t referenced(int32_t c)
{
    static const uint16_t windows[32] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                         0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                         0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                         0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    if (c >= 0x80 && c < 0xa0) return windows[c - 0x80];
    if (!c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff) return TN_REPLACEMENT;
    const bool unused = c < 9 || c == 0xb || (c >= 0xe && c < 0x20) || c == 0x7f || (c >= 0xfdd0 && c < 0xfdf0) ||
                        (c & 0xfffe) == 0xfffe;
    return unused ? 0 : c;
}

static int digit(int32_t c, bool hex)
{
    if (c >= '0' && c <= '9') return (int)c - '0';
    return hex && c >= 'a' && c <= 'f' ? (int)c - 'a' + 10 : -1;
}

/* Decodes the numeric reference at i, "&#…;". Returns its end, or i if it is none. */
static int64_t put_number(passes *x, int64_t i)
{
    const tn_ids *p = &x->in;
    const bool    hex = i + 2 < p->n && p->at[i + 2] == 'x';
    int64_t       at = i + 2 + hex;
    const int64_t first = at;
    int32_t       c = 0;
    for (int d; at < p->n && (d = digit(p->at[at], hex)) >= 0; at++) c = c > 0x110000 ? c : c * (hex ? 16 : 10) + d;
    if (at == first) return i;
    if ((c = referenced(c))) put(x, c);
    return at < p->n && p->at[at] == ';' ? at + 1 : at;
}

static void unescape(passes *x)
{
    static const char *const names[] = {"&lt;", "<", "&gt;", ">", "&apos;", "'"}; /* fix_html replaces others before */
    for (int64_t i = 0; i < x->in.n && x->ok;) {
        int64_t end = after(&x->in, i, "&#") < 0 ? i : put_number(x, i);
        for (int k = 0; k < 6 && end == i; k += 2)
            if (after(&x->in, i, names[k]) > 0) put_text(x, names[k + 1]), end = after(&x->in, i, names[k]);
        if (end == i) put(x, x->in.at[end++]);
        i = end;
    }
    next_pass(x);
}

static void one_space(passes *x)
{
    for (int64_t i = 0; i < x->in.n; i++)
        if (x->in.at[i] != ' ' || !i || x->in.at[i - 1] != ' ') put(x, x->in.at[i]);
    next_pass(x);
}

static void fix_html(passes *x)
{
    static const char *const rules[] = {"#39;",  "'",   "amp;",  "&",     "#146;", "'",      "nbsp;", " ",    "#36;",
                                        "$",     "\\n", "\n",    "quot;", "'",     "<br />", "\n",    "\\\"", "\"",
                                        " @.@ ", ".",   " @-@ ", "-",     " @,@ ", ",",      "\\",    " \\ "};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i += 2) replace(x, rules[i], rules[i + 1]);
    unescape(x);
    one_space(x);
}

/* ---- brackets ---------------------------------------------------------------------------------------------------- */

static bool in_word(int32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c >= 0xe01 && c <= 0xe59);
}

typedef enum { WHOLE, OPENED, CLOSED } bracket_rule;

/* Removes a part of each run of characters outside words. WHOLE: from the first opening bracket to the last closing
 * one. OPENED: all after the first opening bracket, if a word follows. CLOSED: all before the last closing one, if a
 * word precedes. */
static void drop(passes *x, bracket_rule rule, int32_t open, int32_t close)
{
    const tn_ids *p = &x->in;
    for (int64_t i = 0, end; i < p->n && x->ok; i = end) {
        int64_t first = -1, last = -1;
        for (end = i; end < p->n && !in_word(p->at[end]); end++) {
            if (p->at[end] == open && first < 0) first = end;
            if (p->at[end] == close) last = end;
        }
        int64_t from = end, to = end;
        if (rule == WHOLE && first >= 0 && last >= first + 2) from = first, to = last + 1;
        if (rule == OPENED && first >= 0 && end < p->n) from = first + 1;
        if (rule == CLOSED && i && last > i) from = i, to = last;
        for (int64_t k = i; k < end; k++)
            if (k < from || k >= to) put(x, p->at[k]);
        if (end == i) put(x, p->at[end++]);
    }
    next_pass(x);
}

static void drop_brackets(passes *x)
{
    static const char pair[3][3] = {"()", "{}", "[]"};
    for (int i = 0; i < 3; i++) replace(x, pair[i], "");
    for (bracket_rule rule = WHOLE; rule <= CLOSED; rule++)
        for (int i = 0; i < 3; i++) drop(x, rule, (unsigned char)pair[i][0], (unsigned char)pair[i][1]);
}

/* ---- spaces and repetitions -------------------------------------------------------------------------------------- */

/* White space of Python's str.split(). */
static bool is_blank(int32_t c) { return tn_is_space((uint32_t)c) || (c >= 0x1c && c <= 0x1f); }

static void strip(passes *x)
{
    int64_t from = 0, to = x->in.n;
    while (from < to && is_blank(x->in.at[from])) from++;
    while (to > from && is_blank(x->in.at[to - 1])) to--;
    for (int64_t i = from; i < to; i++) put(x, x->in.at[i]);
    next_pass(x);
}

/* Four equal characters or more become one. */
static void drop_repeated(passes *x)
{
    const tn_ids *p = &x->in;
    for (int64_t i = 0, end; i < p->n; i = end) {
        for (end = i + 1; end < p->n && p->at[end] == p->at[i];) end++;
        const int64_t n = end - i >= 4 && !is_blank(p->at[i]) ? 1 : end - i;
        for (int64_t k = 0; k < n; k++) put(x, p->at[i]);
    }
    next_pass(x);
}

static void lower(passes *x)
{
    for (int64_t i = 0; i < x->in.n; i++) {
        const int32_t c = x->in.at[i];
        put(x, c == 0x130 ? 'i' : utf8proc_tolower(c));
        if (c == 0x130) put(x, 0x307); /* the only letter that becomes two */
    }
    next_pass(x);
}

tn_status tn_string_add_thai(tn_string *s, tn_text text)
{
    if (!s || (!text.at && text.bytes))
        return tn_raise(TN_EINVAL, "tn_string_add_thai: the string or the text is NULL");
    const size_t before = s->bytes;
    tn_string    valid = {0};
    passes       x = {.ok = tn_string_add_valid(&valid, text) >= 0};
    for (size_t at = 0; x.ok && at < valid.bytes;)
        x.ok = tn_ids_add(&x.in, (int32_t)tn_utf8_next(valid.at, valid.bytes, &at, NULL)) == TN_OK;
    if (x.ok) {
        lower(&x), fix_html(&x), drop_brackets(&x), strip(&x);
        replace(&x, "\n", " "), one_space(&x), replace(&x, " ", "<_>"), drop_repeated(&x);
    }
    x.ok = x.ok && tn_string_add(s, (tn_text){NULL, 0}) == TN_OK;
    for (int64_t i = 0; i < x.in.n && x.ok; i++) {
        char bytes[4];
        x.ok = tn_string_add(s, (tn_text){bytes, (size_t)tn_utf8_put((uint32_t)x.in.at[i], bytes)}) == TN_OK;
    }
    if (!x.ok && s->at) s->at[s->bytes = before] = 0;
    tn_string_free(&valid), tn_ids_free(&x.in), tn_ids_free(&x.out);
    return x.ok ? TN_OK : tn_error();
}
