/* tokens.c — the tables of a tokenizer for an exported model. The rules that are not in the tokenizer's public parts
 * are found by encoding and decoding probes; the tables are checked against the tokenizer, token by token. */
#include "emit.h"

#include <stdlib.h>
#include <string.h>

enum { NORMAL = 0, SKIPPED, RAW }; /* kinds of a token in decoding; RAW: its first space is kept */
enum { LETTERS = 0, NUMBERS, SPACES };
#define SPACE "\xe2\x96\x81" /* "▁" */

static void *room(int64_t n, size_t size)
{
    void *p = calloc((size_t)(n > 0 ? n : 1), size);
    if (!p) tn_raise(TN_ENOMEM, "no memory for the tables of the tokenizer");
    return p;
}

static bool unsupported(const char *rule)
{
    return tn_raise_false(TN_EUNSUPPORTED, "a tokenizer with %s cannot be exported", rule);
}

/* ---- probes ------------------------------------------------------------------------------------------------------ */

static const tn_encoding *encoded(const token_tables *k, const char *text, size_t bytes)
{
    tn_tokenizer_encode(k->t, k->scratch, text, bytes, .bare = true);
    return k->scratch;
}
static bool encodes_as(const token_tables *k, const char *text, int64_t n, const int32_t *id)
{
    const tn_encoding *e = encoded(k, text, strlen(text));
    return e->n == n && !memcmp(e->id, id, (size_t)n * sizeof *id);
}

/* Is the text of these tokens what the library decodes them to? */
static bool decodes_as(const token_tables *k, const int32_t *id, int64_t n, const char *text, size_t bytes)
{
    tn_string want = {0}, got = {0};
    tn_string_add_valid(&want, (tn_text){text, bytes});
    tn_tokenizer_decode(k->t, id, n, &got, .keep_spaces = true);
    const bool same = tn_error() == TN_OK && want.bytes == got.bytes && !memcmp(want.at, got.at, got.bytes);
    tn_string_free(&want), tn_string_free(&got);
    return same;
}

/* ---- the text of each token -------------------------------------------------------------------------------------- */

/* The byte of a character of GPT-2's alphabet; -1: it is not in the alphabet. */
static int byte_of(uint32_t c)
{
    int next = 256;
    for (int b = 0; b < 256; b++) {
        const bool own = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if ((uint32_t)(own ? b : next) == c) return b;
        next += !own;
    }
    return -1;
}

static void add_of_bytes(const char *piece, tn_string *to)
{
    const size_t n = strlen(piece), before = to->bytes;
    for (size_t at = 0; at < n;) {
        const int  byte = byte_of(tn_utf8_next(piece, n, &at, NULL));
        const char c = (char)byte;
        if (byte < 0) { /* as it is */
            to->bytes = before;
            tn_string_add(to, (tn_text){piece, n});
            return;
        }
        tn_string_add(to, (tn_text){&c, 1});
    }
}

static void add_of_spaces(const char *piece, tn_string *to)
{
    while (*piece) {
        const bool space = !strncmp(piece, SPACE, 3);
        tn_string_add(to, (tn_text){space ? " " : piece, 1});
        piece += space ? 3 : 1;
    }
}

/* Adds the text of token i, and sets its kind. */
static void add_token(token_tables *k, int64_t i)
{
    const char  *piece = tn_tokenizer_token(k->t, i);
    const size_t before = k->text.bytes;
    int          kind = NORMAL;
    if (tn_tokenizer_is_special(k->t, i)) kind = SKIPPED, tn_string_add(&k->text, tn_text_of(piece));
    else if (tn_tokenizer_kind_of(k->t) == TN_BYTE_BPE) add_of_bytes(piece, &k->text);
    else if (k->types[i] == TN_TYPE_BYTE) {
        const char c = (char)strtol(piece + 3, NULL, 16); /* <0x0A> */
        kind = RAW, tn_string_add(&k->text, (tn_text){&c, 1});
    } else if (k->types[i] == TN_TYPE_UNKNOWN) kind = RAW, tn_string_add(&k->text, tn_text_of(" \xe2\x81\x87 "));
    else add_of_spaces(piece, &k->text);
    const int64_t bytes = (int64_t)(k->text.bytes - before);
    k->piece[3 * i] = (int64_t)before, k->piece[3 * i + 1] = bytes, k->piece[3 * i + 2] = kind;
    if (bytes > k->longest) k->longest = bytes;
}

/* Compares each token's text with the library's, at the start of a text and after another token. */
static bool check_texts(const token_tables *k)
{
    int32_t reference = -1;
    for (int64_t i = 0; i < k->n && reference < 0; i++)
        if (k->piece[3 * i + 2] == NORMAL && k->piece[3 * i + 1] == 1 && k->text.at[k->piece[3 * i]] == 'a')
            reference = (int32_t)i;
    if (reference < 0) return unsupported("no token of the letter a");
    for (int64_t i = 0; i < k->n && tn_error() == TN_OK; i++) {
        const int64_t *p = k->piece + 3 * i;
        const int32_t  two[2] = {reference, (int32_t)i};
        const bool     drop = k->drops && p[2] == NORMAL && p[1] && k->text.at[p[0]] == ' ';
        const size_t   bytes = p[2] == SKIPPED ? 0 : (size_t)p[1];
        tn_string      both = {0};
        tn_string_add(&both, tn_text_of("a")), tn_string_add(&both, (tn_text){k->text.at + p[0], bytes});
        const bool same = decodes_as(k, two, 2, both.at, both.bytes) &&
                          decodes_as(k, two + 1, 1, k->text.at + p[0] + drop, bytes - drop);
        tn_string_free(&both);
        if (!same && tn_error() == TN_OK)
            tn_raise(TN_EUNSUPPORTED, "a tokenizer that decodes token %lld, '%s', by other rules cannot be exported",
                     (long long)i, tn_tokenizer_token(k->t, i));
    }
    return tn_error() == TN_OK;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

static int by_pair(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

static bool read_merges(token_tables *k)
{
    float *score = room(k->n, sizeof *score);
    k->types = room(k->n, sizeof *k->types);
    k->merges = tn_error() == TN_OK ? tn_tokenizer_parts(k->t, NULL, NULL, NULL) : 0;
    int32_t  *pair = room(2 * k->merges, sizeof *pair);
    tn_string both = {0};
    k->merge = room(4 * k->merges, sizeof *k->merge);
    if (tn_error() == TN_OK) tn_tokenizer_parts(k->t, score, k->types, pair);
    const bool scored = tn_tokenizer_kind_of(k->t) == TN_SENTENCE_BPE; /* equal scores: the leftmost is first */
    for (int64_t i = 0; i < k->merges && tn_error() == TN_OK; i++) {
        int64_t *m = k->merge + 4 * i;
        both.bytes = 0;
        for (int s = 0; s < 2; s++) tn_string_add(&both, tn_text_of(tn_tokenizer_token(k->t, pair[2 * i + s])));
        m[0] = pair[2 * i], m[1] = pair[2 * i + 1], m[2] = tn_tokenizer_id(k->t, both.at), m[3] = i;
        if (m[2] < 0) unsupported("merges to tokens that it lacks");
        else if (scored && i && score[m[2]] == score[m[2 - 4]]) m[3] = m[3 - 4];
    }
    if (tn_error() == TN_OK) qsort(k->merge, (size_t)k->merges, 4 * sizeof *k->merge, by_pair);
    free(score), free(pair), tn_string_free(&both);
    return tn_error() == TN_OK;
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

static bool read_letters(token_tables *k)
{
    int bytes = 0;
    k->letter = room(2 * k->n, sizeof *k->letter);
    for (int64_t i = 0; i < k->n && tn_error() == TN_OK; i++) {
        const char  *piece = tn_tokenizer_token(k->t, i);
        const size_t n = strlen(piece);
        size_t       at = 0;
        if (k->types[i] == TN_TYPE_USER) return unsupported("user-defined tokens");
        if (k->types[i] == TN_TYPE_BYTE) bytes++, k->byte_token[strtol(piece + 3, NULL, 16) & 255] = i;
        if (k->types[i] != TN_TYPE_NORMAL || !n) continue;
        const uint32_t c = tn_utf8_next(piece, n, &at, NULL);
        if (at == n) k->letter[2 * k->letters] = c, k->letter[2 * k->letters++ + 1] = i;
    }
    if (bytes != 256) return unsupported("no tokens for bytes (byte_fallback)");
    qsort(k->letter, (size_t)k->letters, 2 * sizeof *k->letter, by_pair);
    return tn_error() == TN_OK;
}

static void add_to_range(token_ranges *r, int64_t c)
{
    if (r->n && r->at[r->n - 1][1] == c - 1) {
        r->at[r->n - 1][1] = c;
        return;
    }
    if (r->n == r->room) {
        int64_t(*more)[2] = realloc(r->at, (size_t)(2 * r->room + 64) * sizeof *more);
        if (!more) {
            tn_raise(TN_ENOMEM, "no memory for the tables of the tokenizer");
            return;
        }
        r->at = more, r->room = 2 * r->room + 64;
    }
    r->at[r->n][0] = r->at[r->n][1] = c, r->n++;
}

/* The class of a character in GPT-2's rules is that of the characters that it shares words with; -1: another. */
static int class_of(const token_tables *k, uint32_t c)
{
    char      text[16] = "a", letter[4];
    const int n = tn_utf8_put(c, letter);
    for (int i = 0; i < 3; i++) text[i * (n + 1)] = "a1!"[i], memcpy(text + i * (n + 1) + 1, letter, (size_t)n);
    const tn_encoding *e = encoded(k, text, (size_t)(3 * n + 3));
    int32_t            word[15] = {0}; /* a token for each byte */
    for (int64_t i = 0; i < e->n; i++)
        for (int32_t b = e->start[i]; b < e->end[i] && b < 15; b++) word[b] = e->word[i];
    if (word[0] == word[1]) return LETTERS;
    if (word[n + 1] == word[n + 2]) return NUMBERS;
    return word[2 * n + 2] != word[2 * n + 3] ? SPACES : -1;
}

static bool read_classes(token_tables *k)
{
    for (uint32_t c = 1, kind = 0; c < 0x110000 && tn_error() == TN_OK; c++) {
        if (c >= 0xd800 && c < 0xe000) continue;
        if (emit_probed(c)) kind = (uint32_t)(class_of(k, c) + 1);
        if (kind) add_to_range(&k->range[kind - 1], c);
    }
    return tn_error() == TN_OK;
}

static bool read_byte_rules(token_tables *k)
{
    const char *splitter = tn_tokenizer_traits_of(k->t).splitter;
    if (!splitter || strcmp(splitter, "gpt-2") != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "a tokenizer with the splitter '%s' cannot be exported; expected gpt-2",
                              splitter ? splitter : "");
    for (int b = 0; b < 256; b++) k->byte_token[b] = -1;
    for (int64_t i = 0; i < k->n; i++)
        if (k->piece[3 * i + 1] == 1 && k->piece[3 * i + 2] == NORMAL)
            k->byte_token[(unsigned char)k->text.at[k->piece[3 * i]]] = i;
    for (int b = 0; b < 256; b++)
        if (k->byte_token[b] < 0) return unsupported("no token for some byte");
    return read_classes(k);
}

/* ---- SentencePiece's spaces -------------------------------------------------------------------------------------- */

static bool read_sentence_rules(token_tables *k)
{
    const int32_t letter = (int32_t)tn_tokenizer_id(k->t, "a"), space = (int32_t)tn_tokenizer_id(k->t, SPACE);
    if (letter < 0 || space < 0) return unsupported("no token of a space or of the letter a");
    const int32_t half[2] = {(int32_t)tn_tokenizer_id(k->t, "<0xE2>"), (int32_t)tn_tokenizer_id(k->t, "<0x96>")};
    if (!read_letters(k)) return false;
    if (!decodes_as(k, half, 2, "\xe2\x96", 2)) return unsupported("the decoder ByteFallback of a tokenizer.json");
    encoded(k, "\xe2\x96", 2);
    k->each_byte = k->scratch->invalid == 2;
    k->space = tn_tokenizer_traits_of(k->t).space;
    int32_t one[64];
    int64_t n = encoded(k, "a", 1)->n;
    if (n > 30) return unsupported("a letter of many tokens");
    memcpy(one, k->scratch->id, (size_t)n * sizeof *one);
    k->always = k->space && !encodes_as(k, " a", n, one);
    for (int64_t i = 0; i < k->specials && i < 1; i++) { /* a part after a special token */
        char text[256];
        memmove(one + 1, one, (size_t)n * sizeof *one), one[0] = (int32_t)k->special[i];
        snprintf(text, sizeof text, "%.250sa", tn_tokenizer_token(k->t, k->special[i]));
        k->each = encodes_as(k, text, n + 1, one);
    }
    return tn_error() == TN_OK;
}

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

static void read_specials(token_tables *k)
{
    k->special = room(k->n, sizeof *k->special);
    for (int64_t i = 0; i < k->n && tn_error() == TN_OK; i++) {
        const int32_t id = (int32_t)i;
        const bool    added = tn_tokenizer_is_special(k->t, i) || k->types[i] == TN_TYPE_USER;
        if (added && *tn_tokenizer_token(k->t, i) && encodes_as(k, tn_tokenizer_token(k->t, i), 1, &id))
            k->special[k->specials++] = i;
    }
}

bool tokens_read(token_tables *k, const tn_tokenizer *t)
{
    const tn_tokenizer_kind kind = tn_tokenizer_kind_of(t);
    *k = (token_tables){.t = t, .n = tn_tokenizer_size(t), .together = TOKENS_TOGETHER};
    if (kind != TN_BYTE_BPE && kind != TN_SENTENCE_BPE)
        return unsupported("another kind than byte-level BPE and SentencePiece's BPE");
    const char *rule = tn_tokenizer_traits_of(t).unsupported;
    if (rule) return unsupported(rule);
    k->scratch = tn_encoding_new();
    k->piece = room(3 * k->n, sizeof *k->piece);
    if (tn_error() != TN_OK || !read_merges(k)) return false;
    for (int64_t i = 0; i < k->n && tn_error() == TN_OK; i++) add_token(k, i);
    if (tn_error() == TN_OK) read_specials(k);
    if (tn_error() != TN_OK || !(kind == TN_BYTE_BPE ? read_byte_rules(k) : read_sentence_rules(k))) return false;
    for (int64_t i = 0; i < k->n && !k->drops; i++) { /* a token of a space and a letter */
        const int32_t id = (int32_t)i;
        const char   *text = k->text.at + k->piece[3 * i];
        if (k->piece[3 * i + 2] == NORMAL && k->piece[3 * i + 1] == 2 && text[0] == ' ' && text[1] > ' ')
            k->drops = decodes_as(k, &id, 1, text + 1, 1);
    }
    return check_texts(k);
}

void tokens_free(token_tables *k)
{
    tn_encoding_free(k->scratch);
    tn_string_free(&k->text);
    free(k->types), free(k->piece), free(k->merge), free(k->letter), free(k->special);
    for (int i = 0; i < 3; i++) free(k->range[i].at);
}

void tokens_emit_sizes(emitter *e, const token_tables *k, int64_t text_most)
{
    const int64_t piece = k->longest > 0 ? k->longest : 1;
    emit_constant(e, "TEXT_MOST", text_most), emit_constant(e, "TOKENS", 6 * text_most + 8);
    emit_constant(e, "RECENT", k->together), emit_constant(e, "TEXT", 3 * k->together * piece);
    emit_feature(e, "SENTENCE", tn_tokenizer_kind_of(k->t) == TN_SENTENCE_BPE);
    emit(e, "enum {\n    TOKENS = %lld, /* of the tokenizer */\n    MERGES = %lld,\n    SPECIALS = %lld,\n",
         (long long)k->n, (long long)k->merges, (long long)k->specials);
    if (tn_tokenizer_kind_of(k->t) == TN_SENTENCE_BPE)
        emit(e,
             "    LETTERS = %lld,\n    SPACE_BEFORE = %d, /* a space is added before a text: */\n"
             "    SPACE_ALWAYS = %d, /* also before one that starts with a space */\n"
             "    SPACE_EACH = %d, /* also after a special token */\n",
             (long long)k->letters, k->space, k->always, k->each);
    else
        emit(e, "    LETTER_RANGES = %lld,\n    NUMBER_RANGES = %lld,\n    SPACE_RANGES = %lld,\n",
             (long long)k->range[LETTERS].n, (long long)k->range[NUMBERS].n, (long long)k->range[SPACES].n);
    emit(e,
         "    DROPS_SPACE = %d, /* decoding drops the first space of a text */\n"
         "    EACH_BYTE = %d,   /* each byte of an invalid sequence is a U+FFFD */\n"
         "    PIECE_MOST = %lld, /* bytes of a token */\n"
         "    RECENT = %lld,     /* tokens that are decoded together */\n"
         "    TEXT_MOST = %lld, /* bytes of a text */\n"
         "    MODEL_TOKENS = 6 * TEXT_MOST + 8,\n    MODEL_TEXT = 3 * RECENT * PIECE_MOST\n};\n",
         k->drops, k->each_byte, (long long)piece, (long long)k->together, (long long)text_most);
    emit(e,
         "enum { NORMAL = 0, SKIPPED, RAW }; /* kinds of tokens in decoding */\n"
         "struct piece {\n    int         bytes, kind;\n    const char *text;\n};\n"
         "static const struct piece piece[TOKENS];\n"
         "static const int32_t merge[%lld][4]; /* left, right, result, order; sorted by left and right */\n"
         "static const int32_t byte_token[256], special[%lld];\n",
         (long long)(k->merges > 0 ? k->merges : 1), (long long)(k->specials > 0 ? k->specials : 1));
    if (tn_tokenizer_kind_of(k->t) == TN_SENTENCE_BPE)
        emit(e, "static const int32_t letter[%lld][2]; /* code point, token */\n", (long long)k->letters);
    else
        for (int i = 0; i < 3; i++)
            emit(e, "static const int32_t %s[%lld][2];\n",
                 i == LETTERS   ? "letters"
                 : i == NUMBERS ? "numbers"
                                : "spaces",
                 (long long)k->range[i].n);
}

void tokens_emit_tables(emitter *e, const token_tables *k)
{
    emit(e, "static const struct piece piece[TOKENS] = {\n");
    for (int64_t i = 0; i < k->n; i++) {
        const int64_t *p = k->piece + 3 * i;
        emit(e, "    {%lld, %s, ", (long long)p[1], p[2] == NORMAL ? "NORMAL" : p[2] == RAW ? "RAW" : "SKIPPED");
        emit_string(e, k->text.at + p[0], (size_t)p[1]);
        emit(e, "}, /* %lld */\n", (long long)i);
    }
    emit(e, "};\n");
    emit_numbers(e, "merge", k->merges, 4, k->merge);
    emit_numbers(e, "byte_token", 256, 1, k->byte_token);
    emit_numbers(e, "special", k->specials, 1, k->special);
    if (tn_tokenizer_kind_of(k->t) == TN_SENTENCE_BPE) {
        emit_numbers(e, "letter", k->letters, 2, k->letter);
        return;
    }
    emit_numbers(e, "letters", k->range[LETTERS].n, 2, &k->range[LETTERS].at[0][0]);
    emit_numbers(e, "numbers", k->range[NUMBERS].n, 2, &k->range[NUMBERS].at[0][0]);
    emit_numbers(e, "spaces", k->range[SPACES].n, 2, &k->range[SPACES].at[0][0]);
}
