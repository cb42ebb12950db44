/* text.c — iterates over the code points of any bytes, valid UTF-8 or not. */
#include "data/text.h"

#include "core/base/toolbox.h"
#include "data/text/unicode.h"

uint32_t tn_utf8_next(const char *text, size_t bytes, size_t *at, bool *valid)
{
    if (!text || !at || *at >= bytes)
        return tn_raise(TN_EINVAL, "tn_utf8_next: text or at is NULL, or *at is not before the end"), TN_REPLACEMENT;
    const unsigned char *p = (const unsigned char *)text + *at;
    const size_t         n = bytes - *at;
    uint32_t             c = p[0], low = 0x80, high = 0xbf; /* bounds of the second byte */
    size_t               len = 1, got = 1;
    bool                 fits = c < 0x80;
    if (c >= 0xc2 && c <= 0xf4) {
        len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;  /* below: overlong */
        high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf; /* above: surrogates; past U+10FFFF */
        c &= 0x7fu >> len;
        while (got < len && got < n && p[got] >= low && p[got] <= high) {
            c = c << 6 | (p[got++] & 0x3fu);
            low = 0x80, high = 0xbf;
        }
        fits = got == len;
    }
    *at += got;
    if (valid) *valid = fits;
    return fits ? c : TN_REPLACEMENT;
}

int tn_utf8_put(uint32_t c, char to[4])
{
    if (!tn__not_null("tn_utf8_put", "to", to)) return 0;
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) c = TN_REPLACEMENT;
    if (c < 0x80) return to[0] = (char)c, 1;
    const int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00u >> n & 0xffu) | c);
    return n;
}

bool tn_is_space(uint32_t c) { return tn__is_space(c); }

int64_t tn_string_add_valid(tn_string *s, tn_text text)
{
    const size_t before = s ? s->bytes : 0;
    int64_t      replaced = 0;
    size_t       at = 0;
    do {
        const size_t good = text.at ? tn_utf8_valid(text.at + at, text.bytes - at) : text.bytes;
        bool         added = tn_string_add(s, (tn_text){text.at ? text.at + at : NULL, good}) == TN_OK;
        at += good;
        if (added && at < text.bytes) {
            tn_utf8_next(text.at, text.bytes, &at, NULL);
            added = tn_string_add(s, tn_text_of("\xef\xbf\xbd")) == TN_OK;
            replaced++;
        }
        if (!added) {
            if (s && s->at) s->at[s->bytes = before] = 0;
            return -1;
        }
    } while (at < text.bytes);
    return replaced;
}
