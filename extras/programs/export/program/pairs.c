/* pairs.c — part of an exported program: a tokenizer of byte-pair encoding. */

/* ---- byte-pair encoding ------------------------------------------------------------------------------------------ */

/* The merge of two tokens: an index of merge[], which is sorted by both; -1: none. */
static int find_merge(int left, int right)
{
    int low = 0, high = MERGES;
    while (low < high) {
        const int      middle = (low + high) / 2;
        const int32_t *m = merge[middle];
        if (m[0] < left || (m[0] == left && m[1] < right)) low = middle + 1;
        else high = middle;
    }
    return low < MERGES && merge[low][0] == left && merge[low][1] == right ? low : -1;
}

/* Merges neighbours among n tokens, the first of the merges in the tokenizer's order first, until none is left. Returns
 * the number of tokens. */
static int merge_tokens(int *id, int n)
{
    static int found[MODEL_TOKENS]; /* the merge of each token with the next one */
    for (int i = 0; i + 1 < n; i++) found[i] = find_merge(id[i], id[i + 1]);
    for (;;) {
        int best = -1;
        for (int i = 0; i + 1 < n; i++)
            if (found[i] >= 0 && (best < 0 || merge[found[i]][3] < merge[found[best]][3])) best = i;
        if (best < 0) return n;
        id[best] = merge[found[best]][2];
        n--;
        for (int i = best + 1; i < n; i++) id[i] = id[i + 1], found[i - 1] = found[i];
        if (best > 0) found[best - 1] = find_merge(id[best - 1], id[best]);
        if (best + 1 < n) found[best] = find_merge(id[best], id[best + 1]);
    }
}
#if SENTENCE

/* The token of a character, or -1: letter[] is sorted by code point. */
static int find_letter(long c)
{
    int low = 0, high = LETTERS;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (letter[middle][0] < c) low = middle + 1;
        else high = middle;
    }
    return low < LETTERS && letter[low][0] == c ? letter[low][1] : -1;
}

/* Adds a character as a token, or as tokens of its bytes. */
static int spell(long c, const char *text, int bytes, int *id)
{
    const int found = find_letter(c);
    if (found >= 0) return id[0] = found, 1;
    for (int i = 0; i < bytes; i++) id[i] = byte_token[(unsigned char)text[i]];
    return bytes;
}

/* Encodes a part of a text; first: it starts the text. A space is "▁". */
static int encode_part(const char *text, int bytes, int first, int *id)
{
    int n = 0, at = 0;
    if (bytes == 0) return 0;
    const long c = next_char(text, bytes, &at);
    if (SPACE_BEFORE && (SPACE_ALWAYS || (c != ' ' && c != 0x2581)) && (SPACE_EACH || first))
        n += spell(0x2581, "\342\226\201", 3, id);
    for (int from = at = 0; at < bytes; from = at) {
        const long now = next_char(text, bytes, &at);
        if (now == ' ') n += spell(0x2581, "\342\226\201", 3, id + n);
        else n += spell(now, text + from, at - from, id + n);
    }
    return merge_tokens(id, n);
}
#else

enum { OTHER = 1, LETTER = 2, NUMBER = 4, BLANK = 8, SPACE = 16 };

static int in_ranges(const int32_t (*range)[2], int n, long c)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (range[middle][1] < c) low = middle + 1;
        else high = middle;
    }
    return low < n && range[low][0] <= c;
}

/* The class of the character at text[*at], which moves past it. */
static int next_class(const char *text, int bytes, int *at)
{
    const long c = next_char(text, bytes, at);
    if (c == ' ') return BLANK;
    return in_ranges(letters, LETTER_RANGES, c)   ? LETTER
           : in_ranges(numbers, NUMBER_RANGES, c) ? NUMBER
           : in_ranges(spaces, SPACE_RANGES, c)   ? SPACE
                                                  : OTHER;
}

/* The end of the run of some classes from text[at]; *last: the start of its last character. */
static int run_end(const char *text, int at, int bytes, int classes, int *last)
{
    for (int next = at; at < bytes && next_class(text, bytes, &next) & classes; at = next) *last = at;
    return at;
}

/* The end of the word at text[at], by GPT-2's rules: 's 't 're 've 'm 'll 'd; a space, then letters, numbers or others;
 * white space, without its last character if text follows. */
static int word_end(const char *text, int at, int bytes)
{
    const char a = at + 1 < bytes ? text[at + 1] : 0, b = at + 2 < bytes ? text[at + 2] : 0;
    int        end = at, last = at;
    if (text[at] == '\'') {
        if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
        if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
    }
    int kind = next_class(text, bytes, &end);
    if (kind == BLANK && end < bytes) {
        int       next = end;
        const int after = next_class(text, bytes, &next);
        if (after & (LETTER | NUMBER | OTHER)) kind = after, end = next;
    }
    if (!(kind & (BLANK | SPACE))) return run_end(text, end, bytes, kind, &last);
    end = run_end(text, at, bytes, BLANK | SPACE, &last);
    return end < bytes && last > at ? last : end;
}

/* Encodes a part of a text, word by word. */
static int encode_part(const char *text, int bytes, int first, int *id)
{
    int n = 0;
    (void)first;
    for (int at = 0, end; at < bytes; at = end) {
        end = word_end(text, at, bytes);
        for (int i = at; i < end; i++) id[n + i - at] = byte_token[(unsigned char)text[i]];
        n += merge_tokens(id + n, end - at);
    }
    return n;
}
#endif

/* Encodes a text of at most TEXT_MOST bytes; id has room for MODEL_TOKENS. Returns the number of tokens. */
int model_encode(const char *text, int bytes, int *id)
{
    static char clean[3 * TEXT_MOST];
    int         n = 0, from = 0;
    bytes = make_valid(text, bytes, EACH_BYTE, clean);
    for (int at = 0; at < bytes;) {
        int found = -1; /* the longest special token here */
        for (int i = 0; i < SPECIALS; i++) {
            const struct piece *p = &piece[special[i]];
            if (p->bytes <= bytes - at && equal(p->text, clean + at, p->bytes) &&
                (found < 0 || p->bytes > piece[found].bytes))
                found = special[i];
        }
        if (found < 0) {
            at++;
            continue;
        }
        n += encode_part(clean + from, at - from, from == 0, id + n);
        id[n++] = found;
        from = at += piece[found].bytes;
    }
    return n + encode_part(clean + from, bytes - from, from == 0, id + n);
}

/* Decodes n tokens, at most RECENT; `to` has room for MODEL_TEXT bytes. Returns the number of bytes. */
int model_decode(const int *id, int n, char *to)
{
    static char raw[RECENT * PIECE_MOST];
    int         bytes = 0, begun = 0;
    for (int i = 0; i < n; i++) {
        const struct piece *p = &piece[id[i]];
        if (p->kind == SKIPPED) continue;
        const int drop = !begun && DROPS_SPACE && p->kind == NORMAL && p->bytes > 0 && p->text[0] == ' ';
        copy(raw + bytes, p->text + drop, p->bytes - drop);
        bytes += p->bytes - drop;
        begun = begun || p->bytes > drop;
    }
    return make_valid(raw, bytes, 0, to);
}
