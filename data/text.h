/* text.h — text as it comes: bytes that should be UTF-8. A walk over its code points. Part of data.h: include that. */
#ifndef TENON_DATA_TEXT_H
#define TENON_DATA_TEXT_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_REPLACEMENT = 0xfffd }; /* U+FFFD, which stands for what is not well-formed */

/* The code point at text[*at], where *at < bytes, and *at moves past it. Each maximal part of a sequence that breaks
 * off or cannot be (overlong, a surrogate, past U+10FFFF) is one TN_REPLACEMENT, as the Unicode standard recommends,
 * and *valid is false then (valid may be NULL). */
TN_API uint32_t tn_utf8_next(const char *text, size_t bytes, size_t *at, bool *valid);
/* A Unicode scalar value as 1 to 4 bytes of UTF-8, whose number is returned; anything else as TN_REPLACEMENT. */
TN_API int tn_utf8_put(uint32_t code, char to[4]);
/* Is it white space: has it Unicode's property White_Space? It stands between words (tn_vocab). */
TN_API bool tn_is_space(uint32_t code);

/* Adds text with TN_REPLACEMENT for what is not UTF-8; returns how many there were, -1 if it failed. */
TN_API int64_t tn_string_add_valid(tn_string *s, tn_text text);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
