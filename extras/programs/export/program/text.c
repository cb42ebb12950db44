/* text.c — part of an exported program: UTF-8. */

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Returns the code point at text[*at] and moves *at past it; -1: an invalid sequence. */
static long next_char(const char *text, int bytes, int *at)
{
    const unsigned char *p = (const unsigned char *)text + *at;
    const int            left = bytes - *at;
    long                 c = p[0], low = 0x80, high = 0xbf; /* bounds of the second byte */
    int                  size = 1, got = 1;
    if (c < 0x80) return ++*at, c;
    if (c >= 0xc2 && c <= 0xf4) {
        size = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        c &= 0x7f >> size;
        for (; got < size && got < left && p[got] >= low && p[got] <= high; low = 0x80, high = 0xbf)
            c = c << 6 | (p[got++] & 0x3f);
    }
    *at += got;
    return size > 1 && got == size ? c : -1;
}

static void copy(char *to, const char *from, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = from[i];
}
static int equal(const char *a, const char *b, int bytes)
{
    int i = 0;
    while (i < bytes && a[i] == b[i]) i++;
    return i == bytes;
}

/* Copies a text with U+FFFD for each invalid sequence, or for each of its bytes; `to` has room for three times as many
 * bytes. Returns its size. */
static int make_valid(const char *text, int bytes, int each_byte, char *to)
{
    int n = 0;
    for (int at = 0, from = 0; at < bytes; from = at) {
        const int valid = next_char(text, bytes, &at) >= 0;
        if (!valid && each_byte) at = from + 1;
        copy(to + n, valid ? text + from : "\357\277\275", valid ? at - from : 3);
        n += valid ? at - from : 3;
    }
    return n;
}
