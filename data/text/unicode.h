/* unicode.h — properties of code points, from utf8proc's tables. Only those calls are used that allocate no memory.
 * Private. */
#ifndef TENON_DATA_TEXT_UNICODE_H
#define TENON_DATA_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>
#include <utf8proc.h>

static inline bool tn__is_space(uint32_t c) /* the property White_Space */
{
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static inline int tn__category(uint32_t c) { return utf8proc_get_property((utf8proc_int32_t)c)->category; }

static inline bool tn__is_letter(int category)
{
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
static inline bool tn__is_number(int category)
{
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}
static inline bool tn__is_punctuation(int category)
{
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}
/* Cc, Cf, Cs or Co; unassigned code points have none of these categories. */
static inline bool tn__is_control(int category) { return category >= UTF8PROC_CATEGORY_CC; }

/* Writes c in lower case by its full mapping; returns the number of code points, 1 or 2. */
static inline int tn__lower(uint32_t c, uint32_t to[2])
{
    if (c == 0x130) return to[0] = 'i', to[1] = 0x307, 2; /* the only letter with two */
    return to[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c), 1;
}

/* True if the capital sigma at c[at] ends a word, as in Python: after a cased character and before none, skipping those
 * that are case-ignorable. */
bool tn__final_sigma(const uint32_t *c, int64_t n, int64_t at);

static inline bool tn__has_case(uint32_t c)
{
    const utf8proc_int32_t u = (utf8proc_int32_t)c;
    return utf8proc_toupper(u) != u || utf8proc_tolower(u) != u;
}

/* Writes the full canonical decomposition of c; returns the number of code points, at most TN__DECOMPOSED. */
enum { TN__DECOMPOSED = 8 };
static inline int tn__decompose(uint32_t c, const utf8proc_property_t *p, uint32_t to[TN__DECOMPOSED])
{
    if (p->decomp_seqindex == UINT16_MAX && (c < 0xac00 || c > 0xd7a3)) return to[0] = c, 1;
    utf8proc_int32_t out[TN__DECOMPOSED];
    int              boundary = 0;
    const long       n = (long)utf8proc_decompose_char((utf8proc_int32_t)c, out, TN__DECOMPOSED,
                                                       UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &boundary);
    if (n < 1 || n > TN__DECOMPOSED) return to[0] = c, 1; /* unreachable: no decomposition has more than 4 */
    for (long i = 0; i < n; i++) to[i] = (uint32_t)out[i];
    return (int)n;
}

#endif
