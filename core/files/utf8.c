/* utf8.c — checks that a text is valid UTF-8 (the Unicode standard, table 3-7): no overlong forms, no surrogates, no
 * code point above U+10FFFF. */
#include "core/core.h"

#include <string.h>

/* The length of the valid sequence at p, which has n > 0 bytes; 0 if it is invalid. */
static size_t sequence(const unsigned char *p, size_t n)
{
    unsigned char c = p[0], low = 0x80, high = 0xbf; /* limits of the second byte */
    size_t        len;
    if (c < 0x80) return 1;
    if (c >= 0xc2 && c <= 0xdf) {
        len = 2;
    } else if (c >= 0xe0 && c <= 0xef) {
        len = 3;
        if (c == 0xe0) low = 0xa0;  /* below: overlong   */
        if (c == 0xed) high = 0x9f; /* above: surrogates */
    } else if (c >= 0xf0 && c <= 0xf4) {
        len = 4;
        if (c == 0xf0) low = 0x90;  /* below: overlong      */
        if (c == 0xf4) high = 0x8f; /* above: past U+10FFFF */
    } else {
        return 0;
    }
    if (n < len || p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return len;
}

size_t tn_utf8_valid(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t               at = 0;
    while (at < bytes) {
        uint64_t eight;
        while (bytes - at >= sizeof eight) { /* most text is ASCII */
            memcpy(&eight, p + at, sizeof eight);
            if (eight & 0x8080808080808080u) break;
            at += sizeof eight;
        }
        if (at == bytes) break;
        size_t len = sequence(p + at, bytes - at);
        if (!len) break;
        at += len;
    }
    return at;
}
