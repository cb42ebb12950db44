/* byte_letters.c — GPT-2's alphabet, in which each byte has a printable letter: those that print are their own, the
 * others follow from U+0100 on. */
#include "data/tokenizer/tokenizer_private.h"

uint32_t tn__byte_letter(int b)
{
    if ((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174) return (uint32_t)b;
    if (b <= 32) return 256 + (uint32_t)b;
    return b == 173 ? 256 + 67 : 256 + (uint32_t)b - 127 + 33; /* 127 … 160 */
}

int tn__letter_byte(uint32_t c)
{
    if (c < 256) return tn__byte_letter((int)c) == c ? (int)c : -1;
    if (c < 256 + 33) return (int)c - 256;
    return c < 256 + 67 ? (int)c - 256 - 33 + 127 : c == 256 + 67 ? 173 : -1;
}
