/* final_sigma.c — the lower case of a capital sigma, which depends on its word. */
#include "data/text/unicode.h"

#include <stddef.h>

/* Unicode's properties Case_Ignorable and Cased: by category, and exceptions by code point. */
static bool ignorable(uint32_t c)
{
    static const uint16_t also[] = {0x27,   0x2e,   0x3a,   0xb7,   0x387,  0x55f,  0x5f4,  0x2018, 0x2019,
                                    0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    const int             k = tn__category(c);
    for (size_t i = 0; i < sizeof also / sizeof *also; i++)
        if (also[i] == c) return true;
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK;
}

static bool cased(uint32_t c)
{
    const int k = tn__category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LT) || c == 0xaa || c == 0xba ||
           (c >= 0x2160 && c <= 0x217f) || (c >= 0x24b6 && c <= 0x24e9) ||
           (c >= 0x1f130 && c <= 0x1f189 && (c - 0x1f130) % 32 < 26); /* A to Z in squares, three times */
}

bool tn__final_sigma(const uint32_t *c, int64_t n, int64_t at)
{
    int64_t before = at - 1, after = at + 1;
    while (before >= 0 && ignorable(c[before])) before--;
    while (after < n && ignorable(c[after])) after++;
    return before >= 0 && cased(c[before]) && !(after < n && cased(c[after]));
}
