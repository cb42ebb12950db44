/* pieces.c — part of an exported program: decoding of WordPiece tokens. */

static int is_special(int token)
{
    int found = 0;
    for (int i = 0; i < SPECIALS; i++) found = found || special[i] == token;
    return found;
}

/* Decodes n tokens, at most RECENT; `to` has room for MODEL_TEXT bytes. Returns the number of bytes. */
int model_decode(const int *id, int n, char *to)
{
    int bytes = 0;
    for (int i = 0; i < n; i++) {
        const struct piece *p = &piece[id[i]];
        if (p->bytes == 0 || is_special(id[i])) continue;
        const int inner = bytes > 0 && p->bytes >= 2 && equal(p->text, "##", 2);
        if (bytes > 0 && !inner) to[bytes++] = ' ';
        copy(to + bytes, p->text + 2 * inner, p->bytes - 2 * inner);
        bytes += p->bytes - 2 * inner;
    }
    return bytes;
}
