/* text.h — iterates over the code points of a text: bytes that should be UTF-8. Part of data.h: include that. */
#ifndef TENON_DATA_TEXT_H
#define TENON_DATA_TEXT_H

#include "lines.h"

TN_C_BEGIN_

enum { TN_REPLACEMENT = 0xfffd }; /* U+FFFD, which replaces invalid UTF-8 */

/* Returns the code point at text[*at], where *at < bytes, and moves *at past it. Each maximal part of a truncated or
 * impossible sequence (overlong, a surrogate, past U+10FFFF) is one TN_REPLACEMENT, as the Unicode standard recommends,
 * and sets *valid to false (valid may be NULL). */
TN_API uint32_t tn_utf8_next(const char *text, size_t bytes, size_t *at, bool *valid);
/* Writes a Unicode scalar value as 1 to 4 bytes of UTF-8 and returns their number; any other code as TN_REPLACEMENT. */
TN_API int tn_utf8_put(uint32_t code, char to[4]);
/* True if code has Unicode's property White_Space. White space separates words (tn_vocab). */
TN_API bool tn_is_space(uint32_t code);

/* Appends text, with TN_REPLACEMENT for invalid UTF-8; returns the number of replacements, -1 if an error was
 * raised. */
TN_API int64_t tn_string_add_valid(tn_string *s, tn_text text);

TN_C_END_
#endif
