/* wordpiece.c — the tables of BERT's tokenizer for an exported model. What a character becomes is found by encoding
 * it with the same rules and a vocabulary that has just the characters of the model's tokens. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/system/system.h"

#include "emit.h"

#include <stdlib.h>
#include <string.h>

enum { DROPPED = 0, BLANK, ALONE, LETTER };
static const char *const kinds[] = {"DROPPED", "SPACE", "ALONE", "LETTER"};

/* ---- a tokenizer of single characters ---------------------------------------------------------------------------- */

/* Adds "x" and "##x" for each character x of the tokens. */
static void put_characters(tn_json_writer *w, const tn_tokenizer *t)
{
    int64_t  next = 1;
    uint8_t *seen = calloc(0x110000, 1);
    if (!seen) tn_raise(TN_ENOMEM, "no memory for the tables of the tokenizer");
    for (int64_t i = 0; seen && i < tn_tokenizer_size(t); i++) {
        const char  *piece = tn_tokenizer_token(t, i);
        const size_t n = strlen(piece);
        for (size_t at = !strncmp(piece, "##", 2) && n > 2 ? 2 : 0; at < n && !tn_tokenizer_is_special(t, i);) {
            char           text[8] = "##";
            const uint32_t c = tn_utf8_next(piece, n, &at, NULL);
            if (seen[c]) continue;
            seen[c] = 1, text[2 + tn_utf8_put(c, text + 2)] = 0;
            tn_json_put_i64(w, text + 2, next++), tn_json_put_i64(w, text, next++);
        }
    }
    free(seen);
}

/* The text of a tokenizer.json with the rules of `from`, that of the model. */
static tn_tokenizer *of_characters(const tn_tokenizer *t, const tn_json *from)
{
    tn_json_writer *w = tn_json_writer_new(0);
    const tn_json  *model = tn_json_need(from, "model");
    size_t          bytes = 0;
    tn_json_open_object(w, NULL);
    tn_json_open_array(w, "added_tokens"), tn_json_close(w);
    tn_json_put(w, "normalizer", tn_json_need(from, "normalizer"));
    tn_json_put(w, "pre_tokenizer", tn_json_need(from, "pre_tokenizer"));
    tn_json_open_object(w, "model");
    tn_json_put_string(w, "type", "WordPiece"), tn_json_put_string(w, "unk_token", "[UNK]");
    tn_json_put_string(w, "continuing_subword_prefix", "##");
    if (model) tn_json_put(w, "max_input_chars_per_word", tn_json_need(model, "max_input_chars_per_word"));
    tn_json_open_object(w, "vocab");
    tn_json_put_i64(w, "[UNK]", 0);
    put_characters(w, t);
    for (int i = 0; i < 3; i++) tn_json_close(w);
    const char   *text = tn_json_text(w, &bytes);
    tn_tokenizer *made = text ? tn_tokenizer_parse(text, bytes) : NULL;
    tn_json_writer_free(w);
    return made;
}

/* The rules of a tokenizer, as tn_tokenizer_save writes them. */
static tn_json *rules_of(const tn_tokenizer *t)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                        "vocab.txt"};
    char                     folder[1024], path[1100];
    tn_json                 *rules = NULL;
    snprintf(folder, sizeof folder, "%.900s/tenon.XXXXXX", tn__sys_temporary());
    if (!mkdtemp(folder)) return tn_raise_null(TN_EIO, "cannot make a folder in '%.900s'", folder);
    if (tn_tokenizer_save(t, folder) == TN_OK) {
        snprintf(path, sizeof path, "%s/tokenizer.json", folder);
        rules = tn_json_load(path);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        snprintf(path, sizeof path, "%s/%s", folder, files[i]), remove(path);
    rmdir(folder);
    return rules;
}

/* ---- what each character becomes --------------------------------------------------------------------------------- */

typedef struct {
    const tn_tokenizer *t;
    tn_encoding        *e;
    char                letter; /* a letter of the alphabet */
    tn_string           text;   /* all characters */
} prober;

static bool find_letter(prober *p)
{
    for (p->letter = 'a'; p->letter < 'z'; p->letter++) {
        const char text[2] = {p->letter, 0};
        if (tn_tokenizer_id(p->t, text) > 0) return true;
    }
    return tn_raise_false(TN_EUNSUPPORTED, "a tokenizer without small latin letters cannot be exported");
}

/* Encodes c between two letters: the tokens are the first letter, what c becomes, and the last one. Adds a row of
 * first, last, kind, offset and bytes of the text; nothing if a letter that no token has is in it. */
static void read_character(prober *p, uint32_t c, wordpiece_tables *k)
{
    char         text[8] = {p->letter};
    const size_t n = 1 + (size_t)tn_utf8_put(c, text + 1), before = p->text.bytes;
    int64_t     *row = k->range + 5 * k->ranges;
    text[n] = p->letter;
    tn_tokenizer_encode(p->t, p->e, text, n + 1, .bare = true);
    const tn_encoding *e = p->e;
    if (tn_error() != TN_OK || (e->n == 1 && e->id[0] == 0)) return;
    const int32_t first = e->word[0], last = e->word[e->n - 1];
    const int     kind = e->n > 2 ? (first == last ? LETTER : ALONE) : first == last ? DROPPED : BLANK;
    for (int64_t i = 1; i + 1 < e->n; i++) {
        const char *piece = tn_tokenizer_token(p->t, e->id[i]);
        const bool  unknown = e->id[i] == 0; /* a punctuation character that no token has */
        tn_string_add(&p->text, unknown ? (tn_text){text + 1, n - 1} : tn_text_of(piece + (kind == LETTER ? 2 : 0)));
        if (kind == ALONE && e->n > 3)
            tn_raise(TN_EUNSUPPORTED, "a tokenizer that makes several words of U+%04X cannot be exported", c);
    }
    const size_t bytes = p->text.bytes - before;
    const bool   same = bytes == 0 || (bytes == n - 1 && !memcmp(p->text.at + before, text + 1, bytes));
    if (same) p->text.bytes = before;
    int64_t *previous = row - 5;
    if (k->ranges && same && previous[4] == 0 && previous[1] == c - 1 && previous[2] == kind) {
        previous[1] = c;
        return;
    }
    row[0] = row[1] = c, row[2] = kind, row[3] = (int64_t)before, row[4] = same ? 0 : (int64_t)bytes;
    k->ranges++;
}

static bool read_characters(wordpiece_tables *k, const tn_tokenizer *of)
{
    prober  p = {.t = of, .e = tn_encoding_new()};
    int64_t room = 0;
    if (p.e && find_letter(&p))
        for (uint32_t c = 1; c < 0x110000 && tn_error() == TN_OK; c++) {
            if (c >= 0xd800 && c < 0xe000) continue;
            if (k->ranges == room) {
                int64_t *more = realloc(k->range, (size_t)(5 * (2 * room + 256)) * sizeof *more);
                if (!more) tn_raise(TN_ENOMEM, "no memory for the tables of the tokenizer");
                else k->range = more, room = 2 * room + 256;
            }
            if (tn_error() == TN_OK && emit_probed(c)) read_character(&p, c, k);
            else if (k->ranges && k->range[5 * k->ranges - 4] == c - 1) k->range[5 * k->ranges - 4] = c;
        }
    k->text = p.text;
    tn_encoding_free(p.e);
    return tn_error() == TN_OK;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

static const tn_tokenizer *sorted_of;
static int                 by_text(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return strcmp(tn_tokenizer_token(sorted_of, x), tn_tokenizer_token(sorted_of, y));
}

/* The template's tokens around a text, and the special tokens that are matched in it. */
static bool read_tokens(wordpiece_tables *k, const tn_tokenizer *t)
{
    tn_encoding *e = tn_encoding_new();
    const char   letter[2] = {'a', 0};
    tn_tokenizer_encode(t, e, letter, 1);
    for (int64_t i = 0, after = 0; tn_error() == TN_OK && i < e->n; i++) {
        if (e->special[i] == TN_TOKEN_FROM_TEXT) after = 1;
        else if (k->around[after] < 4) k->frame[after][k->around[after]++] = e->id[i];
    }
    k->sorted = calloc((size_t)tn_tokenizer_size(t), sizeof *k->sorted);
    k->special = calloc((size_t)tn_tokenizer_size(t), sizeof *k->special);
    if (!k->sorted || !k->special) tn_raise(TN_ENOMEM, "no memory for the tables of the tokenizer");
    for (int64_t i = 0; k->sorted && k->special && tn_error() == TN_OK && i < tn_tokenizer_size(t); i++) {
        const char *piece = tn_tokenizer_token(t, i);
        char        text[128];
        if (!*piece) continue;
        k->sorted[k->n++] = i;
        if (!tn_tokenizer_is_special(t, i)) continue;
        snprintf(text, sizeof text, "a %.100s a", piece); /* a token that takes the spaces around it starts before it */
        tn_tokenizer_encode(t, e, text, strlen(text), .bare = true);
        for (int64_t s = 0; s < e->n; s++) {
            if (e->id[s] != i || e->start[s] > 2 || e->end[s] < 3) continue; /* another unknown word */
            if (e->end[s] - e->start[s] != (int32_t)strlen(piece))
                tn_raise(TN_EUNSUPPORTED, "a tokenizer whose '%s' takes spaces (lstrip, rstrip) cannot be exported",
                         piece);
            else if (k->specials < tn_tokenizer_size(t)) k->special[k->specials++] = i;
            break;
        }
    }
    sorted_of = t;
    if (k->sorted && tn_error() == TN_OK) qsort(k->sorted, (size_t)k->n, sizeof *k->sorted, by_text);
    tn_encoding_free(e);
    return tn_error() == TN_OK;
}

bool wordpiece_read(wordpiece_tables *k, const tn_tokenizer *t)
{
    *k = (wordpiece_tables){.t = t};
    if (tn_tokenizer_kind_of(t) != TN_WORDPIECE)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "the tokenizer of an encoder must be WordPiece; others cannot be exported");
    tn_json      *rules = rules_of(t);
    tn_tokenizer *of = rules ? of_characters(t, rules) : NULL;
    if (of && tn_json_i64_or(tn_json_get(tn_json_get(rules, "model"), "max_input_chars_per_word"), 100) != 100)
        tn_raise(TN_EUNSUPPORTED, "a tokenizer with max_input_chars_per_word other than 100 cannot be exported");
    const bool ok = of && tn_error() == TN_OK && read_characters(k, of) && read_tokens(k, t);
    tn_tokenizer_free(of);
    tn_json_free(rules);
    return ok;
}

void wordpiece_free(wordpiece_tables *k)
{
    free(k->range), free(k->sorted), free(k->special);
    tn_string_free(&k->text);
}

void wordpiece_emit_sizes(emitter *e, const wordpiece_tables *k, int64_t text_most)
{
    const tn_tokenizer_roles r = tn_tokenizer_special(k->t);
    emit_constant(e, "TEXT_MOST", text_most);
    emit(e,
         "enum {\n    TOKENS = %lld, /* of the tokenizer */\n    SORTED = %lld,\n    SPECIALS = %lld,\n"
         "    RANGES = %lld,\n    BEFORE = %d, /* tokens before and after each text */\n    AFTER = %d,\n"
         "    UNKNOWN = %d,\n    MASK = %d,\n    TEXT_MOST = %lld /* bytes of a text */\n};\n",
         (long long)tn_tokenizer_size(k->t), (long long)k->n, (long long)k->specials, (long long)k->ranges,
         k->around[0], k->around[1], r.unknown, r.mask, (long long)text_most);
    emit(e,
         "static const struct piece {\n    int         bytes;\n    const char *text;\n} piece[TOKENS];\n"
         "static const int32_t sorted[SORTED], special[%lld], before[%d], after[%d];\n",
         (long long)(k->specials > 0 ? k->specials : 1), k->around[0] > 0 ? k->around[0] : 1,
         k->around[1] > 0 ? k->around[1] : 1);
}

void wordpiece_emit_tables(emitter *e, const wordpiece_tables *k)
{
    emit(e, "static const struct piece piece[TOKENS] = {\n");
    for (int64_t i = 0; i < tn_tokenizer_size(k->t); i++) {
        const char *piece = tn_tokenizer_token(k->t, i);
        emit(e, "    {%d, ", (int)strlen(piece));
        emit_string(e, piece, strlen(piece));
        emit(e, "}, /* %lld */\n", (long long)i);
    }
    emit(e, "};\n");
    emit_numbers(e, "sorted", k->n, 1, k->sorted);
    emit_numbers(e, "special", k->specials, 1, k->special);
    emit_numbers(e, "before", k->around[0], 1, k->frame[0]);
    emit_numbers(e, "after", k->around[1], 1, k->frame[1]);
    emit(e, "static const struct characters characters[RANGES] = {\n");
    for (int64_t i = 0; i < k->ranges; i++) {
        const int64_t *r = k->range + 5 * i;
        emit(e, "    {0x%llx, 0x%llx, %s, %lld, ", (long long)r[0], (long long)r[1], kinds[r[2]], (long long)r[4]);
        if (r[4]) emit_string(e, k->text.at + r[3], (size_t)r[4]);
        else emit(e, "NULL");
        emit(e, "},\n");
    }
    emit(e, "};\n");
}
