/* byte_alphabet.c — byte tokens. GPT-2's alphabet gives each byte a printable character: printable bytes are
 * themselves, the others follow from U+0100. SentencePiece writes "<0x0A>". */
#include "data/tokenizer/tokenizer_private.h"

#include <string.h>

uint32_t tn__byte_to_char(int b)
{
    if ((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174) return (uint32_t)b;
    if (b <= 32) return 256 + (uint32_t)b;
    return b == 173 ? 256 + 67 : 256 + (uint32_t)b - 127 + 33; /* 127 … 160 */
}

int tn__char_to_byte(uint32_t c)
{
    if (c < 256) return tn__byte_to_char((int)c) == c ? (int)c : -1;
    if (c < 256 + 33) return (int)c - 256;
    return c < 256 + 67 ? (int)c - 256 - 33 + 127 : c == 256 + 67 ? 173 : -1;
}

int tn__byte_of_token(const char *text, size_t n)
{
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        const char c = text[i];
        const int  digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = 16 * value + digit;
    }
    return value;
}
