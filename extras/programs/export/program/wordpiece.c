/* wordpiece.c — part of an exported program: BERT's tokenizer. */

/* ---- WordPiece ------------------------------------------------------------------------------------------------------
 *
 * characters[] has ranges of code points in ascending order, with their kind and the characters that they become; other
 * code points are letters that no token has. */

enum { LETTERS_MOST = 100 }; /* of a word; a longer one is unknown */
enum { DROPPED = 0, SPACE, ALONE, LETTER };
static const struct characters {
    int32_t     first, last;
    int         kind, bytes; /* DROPPED, SPACE, ALONE, LETTER; bytes of the text */
    const char *text;        /* NULL: the character itself */
} characters[RANGES];

static const struct characters *find_characters(long c)
{
    int low = 0, high = RANGES;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (characters[middle].last < c) low = middle + 1;
        else high = middle;
    }
    return low < RANGES && characters[low].first <= c ? &characters[low] : NULL;
}

/* Compares `bytes` bytes with a token's text, after "##" if it is inside a word. */
static int compare(const char *text, int bytes, int inner, int token)
{
    const struct piece *p = &piece[token];
    for (int i = 0; i < bytes + 2 * inner; i++) {
        const int a = inner && i < 2 ? '#' : (unsigned char)text[i - 2 * inner];
        const int b = i < p->bytes ? (unsigned char)p->text[i] : -1;
        if (a != b) return a < b ? -1 : 1;
    }
    return p->bytes > bytes + 2 * inner ? -1 : 0;
}

/* The token of a text, or -1: sorted[] has the tokens in the order of their texts. */
static int find_token(const char *text, int bytes, int inner)
{
    int low = 0, high = SORTED;
    while (low < high) {
        const int middle = (low + high) / 2, order = compare(text, bytes, inner, sorted[middle]);
        if (order == 0) return sorted[middle];
        if (order > 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}

static struct {
    char text[4 * LETTERS_MOST];
    int  bytes, letters, unknown; /* unknown: the word has a letter of no token, or is too long */
} word;

/* Ends the word: the longest token that matches, repeatedly. Returns the number of tokens. */
static int end_word(int *id)
{
    int n = 0;
    for (int at = 0; !word.unknown && at < word.bytes;) {
        int found = -1, end = word.bytes;
        for (; end > at; end--)
            if ((end == word.bytes || (word.text[end] & 0xc0) != 0x80) &&
                (found = find_token(word.text + at, end - at, at > 0)) >= 0)
                break;
        if (found < 0) word.unknown = 1;
        else id[n++] = found, at = end;
    }
    if (word.unknown) id[0] = UNKNOWN, n = 1;
    word.bytes = word.letters = word.unknown = 0;
    return n;
}

static void add_letters(const char *text, int bytes)
{
    for (int i = 0; i < bytes; i++) word.letters += (text[i] & 0xc0) != 0x80;
    if (word.letters > LETTERS_MOST) word.unknown = 1;
    else copy(word.text + word.bytes, text, bytes), word.bytes += bytes;
}

static struct {
    int *id, n, most;
} result;

static void finish_word(void)
{
    static int token[LETTERS_MOST];
    const int  n = word.letters || word.unknown ? end_word(token) : 0;
    for (int i = 0; i < n && result.n < result.most; i++) result.id[result.n++] = token[i];
}

/* The longest special token at text[at], or -1. */
static int special_at(const char *text, int at, int bytes)
{
    int found = -1;
    for (int i = 0; i < SPECIALS; i++) {
        const struct piece *p = &piece[special[i]];
        if (p->bytes <= bytes - at && equal(p->text, text + at, p->bytes) &&
            (found < 0 || p->bytes > piece[found].bytes))
            found = special[i];
    }
    return found;
}

static void encode_character(const char *text, int bytes, long c)
{
    const struct characters *kind = find_characters(c);
    if (!kind) {
        word.letters++, word.unknown = 1;
        return;
    }
    if (kind->kind == DROPPED) return;
    if (kind->kind == SPACE || kind->kind == ALONE) finish_word();
    if (kind->kind == SPACE) return;
    if (kind->text) add_letters(kind->text, kind->bytes);
    else add_letters(text, bytes);
    if (kind->kind == ALONE) finish_word();
}

/* Encodes a text of at most TEXT_MOST bytes without the tokens around it, to at most `most` tokens in all, after the n
 * that `id` has. Returns their number. */
static int encode_bare(const char *text, int bytes, int *id, int n, int most)
{
    static char clean[3 * TEXT_MOST];
    bytes = make_valid(text, bytes, 0, clean);
    result.id = id, result.n = n, result.most = most;
    for (int at = 0, from = 0; at < bytes; from = at) {
        const int found = special_at(clean, at, bytes);
        if (found < 0) {
            const long c = next_char(clean, bytes, &at);
            encode_character(clean + from, at - from, c);
            continue;
        }
        finish_word();
        if (result.n < result.most) id[result.n++] = found;
        at += piece[found].bytes;
    }
    finish_word();
    return result.n;
}

/* Encodes a text of at most TEXT_MOST bytes to at most LENGTH tokens; id has room for LENGTH. Returns their number. */
int model_encode(const char *text, int bytes, int *id)
{
    int n = 0;
    for (int i = 0; i < BEFORE; i++) id[n++] = before[i];
    n = encode_bare(text, bytes, id, n, LENGTH - AFTER);
    for (int i = 0; i < AFTER; i++) id[n++] = after[i];
    return n;
}
