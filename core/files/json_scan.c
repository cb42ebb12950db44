/* json_scan.c — a strict JSON text (RFC 8259), token by token: one loop over a state and a stack of bits, without
 * recursion or memory. All reading of JSON uses it. */
#include "core/files/io.h"

#include <stdarg.h>
#include <string.h>

enum { VALUE, VALUE_OR_CLOSE, KEY, KEY_OR_CLOSE, COMMA_OR_CLOSE, NOTHING };

bool tn__json_begin(tn__json_scan *s, const char *label, const char *text, size_t bytes, int64_t base, int max_depth)
{
    *s = (tn__json_scan){.label = label, .text = text, .bytes = bytes, .base = base, .max_depth = max_depth};
    size_t good = tn_utf8_valid(text, bytes);
    if (good < bytes)
        return tn__json_fail(s, good, "the byte 0x%02x is not valid UTF-8 here", (unsigned char)text[good]);
    if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        return tn__json_fail(s, 0, "the text starts with a byte order mark; save it as UTF-8 without one");
    return true;
}

bool tn__json_fail(const tn__json_scan *s, size_t at, const char *fmt, ...)
{
    char    what[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    size_t line = 1, start = 0, column = 1;
    for (size_t i = 0; i < at; i++)
        if (s->text[i] == '\n') line++, start = i + 1;
    for (size_t i = start; i < at; i++) column += ((unsigned char)s->text[i] & 0xc0) != 0x80; /* characters */
    return tn_raise_false(TN_EFORMAT, "%s: line %zu, column %zu (byte %lld): %s", s->label, line, column,
                          (long long)s->base + (long long)at, what);
}

static const char *expected(const tn__json_scan *s)
{
    bool object = s->depth && (s->object[(s->depth - 1) / 64] >> (s->depth - 1) % 64 & 1);
    switch (s->expect) {
    case VALUE: return "a value";
    case VALUE_OR_CLOSE: return "a value or ']'";
    case KEY: return "a key in double quotes";
    case KEY_OR_CLOSE: return "a key in double quotes or '}'";
    case COMMA_OR_CLOSE: return object ? "',' or '}'" : "',' or ']'";
    default: return "nothing after the value";
    }
}

static bool after_comma(const tn__json_scan *s, size_t at)
{
    while (at && strchr(" \n\r\t", s->text[at - 1])) at--;
    return at && s->text[at - 1] == ',';
}

static bool unexpected(const tn__json_scan *s, size_t at)
{
    const char *hint = "", *p = s->text + at;
    size_t      n = s->bytes - at;
    if (!n) return tn__json_fail(s, at, "the text ends, expected %s", expected(s));
    if (*p == '\'') hint = "; strings need double quotes";
    else if (*p == '/' || *p == '#') hint = "; JSON has no comments";
    else if (*p == '+' || *p == '.') hint = "; a number starts with a digit or '-'";
    else if (*p == 'N' || *p == 'I') hint = "; JSON has no NaN and no Infinity";
    else if (*p == 'T' || *p == 'F') hint = "; true and false are lower case";
    else if ((*p == '}' || *p == ']') && after_comma(s, at)) hint = "; a comma must not precede a closing bracket";
    char   shown[TN__QUOTED];
    size_t len = 1;
    while (len < n && ((unsigned char)p[len] & 0xc0) == 0x80) len++;
    return tn__json_fail(s, at, "found %s, expected %s%s", tn__quote(shown, p, len, 8), expected(s), hint);
}

static int hex4(const char *p, const char *end)
{
    if (end - p < 4) return -1;
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9') v = 16 * v + (c - '0');
        else if (c >= 'a' && c <= 'f') v = 16 * v + (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') v = 16 * v + (c - 'A' + 10);
        else return -1;
    }
    return v;
}

/* The code point of the \u escape at p (after the 'u'), of two escapes above U+FFFF; taken: bytes of text. -1: bad
 * digits; -2: half of a pair. */
static int unicode_escape(const char *p, const char *end, int *taken)
{
    int v = hex4(p, end);
    *taken = 4;
    if (v < 0xd800 || v > 0xdfff) return v;
    if (v > 0xdbff || end - p < 10 || p[4] != '\\' || p[5] != 'u') return -2;
    int low = hex4(p + 6, end);
    if (low < 0) return -1;
    if (low < 0xdc00 || low > 0xdfff) return -2;
    *taken = 10;
    return 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
}

/* s->at is after the opening quote. */
static bool string(tn__json_scan *s, tn__json_token *t)
{
    const char *p = s->text + s->at, *end = s->text + s->bytes;
    t->raw = p, t->bytes = 0, t->has_nul = false;
    for (;;) {
        const char *run = p;
        while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20) p++;
        t->bytes += (size_t)(p - run);
        if (p == end) return tn__json_fail(s, t->at, "unterminated string");
        size_t at = (size_t)(p - s->text);
        if (*p == '"') break;
        if (*p != '\\')
            return tn__json_fail(s, at, "control character 0x%02x in a string; write it as \\u%04x", *p, *p);
        if (++p == end) return tn__json_fail(s, t->at, "unterminated string");
        if (*p == 'u') {
            int taken, v = unicode_escape(++p, end, &taken);
            if (v == -1) return tn__json_fail(s, at, "\\u needs four hexadecimal digits");
            if (v == -2)
                return tn__json_fail(s, at,
                                     "half of a surrogate pair; a pair is \\ud800 to \\udbff, then \\udc00 to \\udfff");
            t->has_nul |= v == 0;
            t->bytes += v < 0x80 ? 1 : v < 0x800 ? 2 : v < 0x10000 ? 3 : 4;
            p += taken;
        } else {
            if (!*p || !strchr("\"\\/bfnrt", *p)) {
                char   shown[TN__QUOTED];
                size_t len = 1;
                while (p + len < end && ((unsigned char)p[len] & 0xc0) == 0x80) len++;
                return tn__json_fail(s, at, "unknown escape: a backslash before %s; a backslash is written \\\\",
                                     tn__quote(shown, p, len, 8));
            }
            t->bytes++, p++;
        }
    }
    t->raw_bytes = (size_t)(p - t->raw);
    s->at = (size_t)(p + 1 - s->text);
    return true;
}

void tn__json_unescape(const tn__json_token *t, char *to)
{
    if (t->bytes == t->raw_bytes) { /* escapes are longer than their characters: no escape */
        if (t->bytes) memcpy(to, t->raw, t->bytes);
        return;
    }
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    for (const char *p = t->raw, *end = p + t->raw_bytes; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (p[1] != 'u') {
            *to++ = into[strchr(from, p[1]) - from];
            p += 2;
        } else {
            int taken, v = unicode_escape(p + 2, end, &taken);
            p += 2 + taken;
            if (v < 0x80) {
                *to++ = (char)v;
                continue;
            }
            int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
            *to++ = (char)((0xff00 >> (more + 1) & 0xff) | v >> 6 * more); /* 110…, 1110…, 11110… */
            while (more--) *to++ = (char)(0x80 | (v >> 6 * more & 0x3f));
        }
    }
}

const char *tn__json_shown(char to[TN__QUOTED], const tn__json_token *t)
{
    return tn__quote(to, t->raw, t->raw_bytes, 80);
}

static bool digit(const tn__json_scan *s, size_t at)
{
    return at < s->bytes && s->text[at] >= '0' && s->text[at] <= '9';
}

static bool number(tn__json_scan *s, tn__json_token *t)
{
    size_t at = s->at;
    bool   fits = true;
    t->kind = TN__JSON_INTEGER, t->magnitude = 0;
    t->negative = s->text[at] == '-';
    at += t->negative;
    if (!digit(s, at)) return tn__json_fail(s, at, "a digit must follow '-'");
    if (s->text[at] == '0' && digit(s, at + 1)) return tn__json_fail(s, at, "a number must not start with 0");
    for (; digit(s, at); at++) {
        uint64_t ten;
        fits = fits && !__builtin_mul_overflow(t->magnitude, (uint64_t)10, &ten) &&
               !__builtin_add_overflow(ten, (uint64_t)(s->text[at] - '0'), &t->magnitude);
    }
    if (t->negative && t->magnitude > (uint64_t)1 << 63) fits = false;
    if (at < s->bytes && s->text[at] == '.') {
        if (!digit(s, ++at)) return tn__json_fail(s, at, "a digit must follow the decimal point");
        while (digit(s, at)) at++;
        fits = false;
    }
    if (at < s->bytes && (s->text[at] == 'e' || s->text[at] == 'E')) {
        at++;
        if (at < s->bytes && (s->text[at] == '-' || s->text[at] == '+')) at++;
        if (!digit(s, at)) return tn__json_fail(s, at, "a digit must follow the exponent's 'e'");
        while (digit(s, at)) at++;
        fits = false;
    }
    t->raw = s->text + s->at, t->raw_bytes = at - s->at;
    if (!fits) {
        t->kind = TN__JSON_REAL;
        if (!tn_parse_double(t->raw, t->raw_bytes, &t->real)) {
            char shown[TN__QUOTED];
            return tn__json_fail(s, s->at, "the number %s is too large for a double",
                                 tn__quote(shown, t->raw, t->raw_bytes, 40));
        }
    }
    s->at = at;
    return true;
}

static bool word(tn__json_scan *s, tn__json_token *t, const char *text, tn__json_kind kind)
{
    size_t n = strlen(text);
    if (s->bytes - s->at < n || memcmp(s->text + s->at, text, n)) return unexpected(s, s->at);
    s->at += n;
    t->kind = kind;
    return true;
}

static bool open_container(tn__json_scan *s, tn__json_token *t, bool object)
{
    if (s->depth == s->max_depth) return tn__json_fail(s, s->at, "nested deeper than the limit of %d", s->max_depth);
    uint64_t bit = (uint64_t)1 << s->depth % 64, *word64 = &s->object[s->depth / 64];
    *word64 = object ? *word64 | bit : *word64 & ~bit;
    s->depth++, s->at++;
    t->kind = object ? TN__JSON_OPEN_OBJECT : TN__JSON_OPEN_ARRAY;
    s->expect = object ? KEY_OR_CLOSE : VALUE_OR_CLOSE;
    return true;
}

static void skip_space(tn__json_scan *s)
{
    while (s->at < s->bytes) {
        char c = s->text[s->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
        s->at++;
    }
}

static bool scan_key(tn__json_scan *s, tn__json_token *t)
{
    if (s->text[s->at] != '"') return unexpected(s, s->at);
    s->at++;
    if (!string(s, t)) return false;
    t->kind = TN__JSON_KEY;
    if (t->has_nul) return tn__json_fail(s, t->at, "a key with \\u0000 in it is not supported");
    skip_space(s);
    if (s->at == s->bytes) return tn__json_fail(s, s->at, "the text ends, expected ':' after the key");
    if (s->text[s->at] != ':') {
        char shown[TN__QUOTED];
        return tn__json_fail(s, s->at, "':' must follow the key %s", tn__json_shown(shown, t));
    }
    s->at++;
    s->expect = VALUE;
    return true;
}

static bool scan_value(tn__json_scan *s, tn__json_token *t)
{
    const char c = s->text[s->at];
    bool       ok;
    if (c == '{' || c == '[') return open_container(s, t, c == '{');
    if (c == '"') {
        s->at++;
        t->kind = TN__JSON_STRING;
        ok = string(s, t);
    } else if (c == '-' || (c >= '0' && c <= '9')) ok = number(s, t);
    else if (c == 't') ok = word(s, t, "true", TN__JSON_TRUE);
    else if (c == 'f') ok = word(s, t, "false", TN__JSON_FALSE);
    else if (c == 'n') ok = word(s, t, "null", TN__JSON_NULL);
    else ok = unexpected(s, s->at);
    s->expect = s->depth ? COMMA_OR_CLOSE : NOTHING;
    return ok;
}

bool tn__json_next(tn__json_scan *s, tn__json_token *t)
{
    skip_space(s);
    const bool object = s->depth && (s->object[(s->depth - 1) / 64] >> (s->depth - 1) % 64 & 1);
    if (s->expect == COMMA_OR_CLOSE && s->at < s->bytes && s->text[s->at] == ',') {
        s->at++;
        s->expect = object ? KEY : VALUE;
        skip_space(s);
    }
    t->at = s->at;
    if (s->at == s->bytes) {
        t->kind = TN__JSON_END;
        return s->expect == NOTHING ? true : unexpected(s, s->at);
    }
    const bool may_close = s->expect == COMMA_OR_CLOSE || s->expect == VALUE_OR_CLOSE || s->expect == KEY_OR_CLOSE;
    if (may_close && s->text[s->at] == (object ? '}' : ']')) {
        t->kind = object ? TN__JSON_CLOSE_OBJECT : TN__JSON_CLOSE_ARRAY;
        s->at++, s->depth--;
        s->expect = s->depth ? COMMA_OR_CLOSE : NOTHING;
        return true;
    }
    if (s->expect == KEY || s->expect == KEY_OR_CLOSE) return scan_key(s, t);
    if (s->expect == VALUE || s->expect == VALUE_OR_CLOSE) return scan_value(s, t);
    return unexpected(s, s->at);
}
