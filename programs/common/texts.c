/* texts.c — see texts.h. */
#include "core/system/system.h"

#include "messages.h"
#include "texts.h"
#include "files.h"
#include "ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16, AT_ONCE = 8 << 20 };

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Checks the text of one file: raises for a NUL, which text in UTF-16 contains; prints a note about invalid UTF-8. */
static bool check_text(const char *path, tn_text text)
{
    const char *nul = text.bytes ? memchr(text.at, 0, text.bytes) : NULL;
    size_t      at = 0, broken = 0, first = 0;
    bool        valid = true;
    if (nul)
        return tn_raise_false(TN_EFORMAT, "'%s': byte %zu is NUL; expected a text in UTF-8", path,
                              (size_t)(nul - text.at));
    while ((at += tn_utf8_valid(text.at + at, text.bytes - at)) < text.bytes) {
        if (!broken++) first = at;
        tn_utf8_next(text.at, text.bytes, &at, &valid);
    }
    if (broken)
        warn("'%s' is not valid UTF-8 in %zu places, the first at byte %zu; they are read as U+FFFD; if the file has "
             "another encoding, " TEXTS_CONVERT "\n",
             path, broken, first);
    return true;
}

static bool read_stream(FILE *f, const char *path, tn_string *to)
{
    static char  block[BLOCK];
    const size_t before = to->bytes;
    for (size_t n = 1; f && n && tn_error() == TN_OK;) {
        n = fread(block, 1, sizeof block, f);
        if (n) tn_string_add(to, (tn_text){block, n});
        if (to->bytes > INT32_MAX)
            tn_raise(TN_EUNSUPPORTED, "'%s': the texts have more than 2 GiB in all; give fewer", path);
    }
    if (!f || ferror(f)) tn_raise(TN_EIO, "'%s': %s", path, strerror(errno));
    return tn_error() == TN_OK && check_text(path, (tn_text){to->at ? to->at + before : "", to->bytes - before});
}

static bool read_path(const char *path, tn_string *to, int depth);

static bool read_folder(const char *path, tn_string *to, int depth)
{
    struct dirent **e;
    char            inner[1024];
    const int       n = scandir(path, &e, NULL, alphasort);
    if (n < 0) return tn_raise_false(TN_EIO, "'%s': %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (e[i]->d_name[0] != '.' && tn_error() == TN_OK)
            read_path(in_folder(path, e[i]->d_name, inner), to, depth + 1);
        free(e[i]);
    }
    free(e);
    return tn_error() == TN_OK;
}

/* Ends the last line, so that the next file starts with a new one. */
static void end_line(tn_string *to)
{
    if (to->bytes && to->at[to->bytes - 1] != '\n') tn_string_add(to, tn_text_of("\n"));
}

static bool is_stdin(const char *path) { return !strcmp(path, "-"); }

static bool read_path(const char *path, tn_string *to, int depth)
{
    struct stat st;
    if (tn_error() != TN_OK) return false;
    end_line(to);
    if (is_stdin(path) && !depth) return read_stream(stdin, "standard input", to);
    if (depth > 32) return tn_raise_false(TN_EIO, "'%s': more than 32 nested folders", path);
    if (!tn__sys_stat(path, &st) && S_ISDIR(st.st_mode)) return read_folder(path, to, depth);
    FILE      *f = fopen(path, "rb");
    const bool fine = read_stream(f, path, to);
    if (f) fclose(f);
    return fine;
}

bool texts_read(const option_list *files, tn_string *to)
{
    end_line(to);
    const size_t before = to->bytes;
    for (int i = 0; i < files->count && tn_error() == TN_OK; i++) read_path(files->value[i], to, 0);
    if (tn_error() == TN_OK && to->bytes == before) tn_raise(TN_EFORMAT, "'%s' contains no text", files->value[0]);
    return tn_error() == TN_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static int64_t count_lines(const char *from, const char *to)
{
    int64_t n = 0;
    while ((from = memchr(from, '\n', (size_t)(to - from)))) n++, from++;
    return n;
}

/* Where the part starts in the text; blank: line ends count as blanks, as for SentencePiece. SIZE_MAX: nowhere. */
static size_t find_part(tn_text all, tn_text part, bool blank)
{
    for (size_t at = 0, i; at + part.bytes <= all.bytes; at++) {
        const char *x = all.at + at;
        for (i = 0; i < part.bytes && (x[i] == part.at[i] || (blank && x[i] == '\n' && part.at[i] == ' '));) i++;
        if (i == part.bytes) return at;
    }
    return SIZE_MAX;
}

/* The number of bytes at `at`, of n, that are a blank, or U+FFFD for a character of which bytes are missing. */
static size_t no_text(const char *at, size_t n)
{
    if (n && (*at == '\n' || *at == ' ')) return 1;
    return n >= 3 && !memcmp(at, "\xef\xbf\xbd", 3) ? 3 : 0;
}

void texts_explain_loss(double loss, double unigram, int64_t tokens)
{
    enum { ENOUGH = 200 /* tokens: a short text has few different ones, and a low unigram loss */ };
    if (!settings.quiet && tokens >= ENOUGH && loss > unigram)
        tell("This loss is above %.4f, that of a guess by the frequencies of the tokens in the text: the model has not "
             "learned such text yet, or is for another kind of text or another language. Train it longer, or evaluate "
             "it on text like its training text.\n",
             unigram);
}

void texts_place(tn_text all, tn_text part, char place[64])
{
    size_t n;
    *place = 0;
    while ((n = no_text(part.at, part.bytes))) part.at += n, part.bytes -= n;
    while (part.bytes && ((n = no_text(part.at + part.bytes - 1, 1)) ||
                          (part.bytes >= 3 && (n = no_text(part.at + part.bytes - 3, 3)) == 3)))
        part.bytes -= n;
    if (!part.bytes) return;
    size_t at = find_part(all, part, false);
    if (at == SIZE_MAX) at = find_part(all, part, true);
    if (at == SIZE_MAX) return;
    const int64_t first = 1 + count_lines(all.at, all.at + at),
                  last = first + count_lines(all.at + at, all.at + at + part.bytes);
    if (first == last) snprintf(place, 64, "line %lld", (long long)first);
    else snprintf(place, 64, "lines %lld-%lld", (long long)first, (long long)last);
}

/* ---- strings for JSON -------------------------------------------------------------------------------------------- */

char *texts_valid(const char *text)
{
    size_t bytes = strlen(text), n = 0;
    char  *to = malloc(3 * bytes + 1);
    if (!to) tn_raise(TN_ENOMEM, "no memory for %zu bytes", 3 * bytes);
    while (to && bytes) {
        const size_t good = tn_utf8_valid(text, bytes);
        memcpy(to + n, text, good), n += good;
        text += good, bytes -= good;
        if (bytes) memcpy(to + n, "\xef\xbf\xbd", 3), n += 3, text++, bytes--;
    }
    if (to) to[n] = 0;
    return to;
}

void texts_put(tn_json_writer *w, const char *key, const char *text)
{
    char *valid = texts_valid(text);
    if (valid) tn_json_put_string(w, key, valid);
    free(valid);
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

bool texts_encode(const tn_tokenizer *t, tn_text text, bool literal, tn_ids *to)
{
    tn_encoding *e = tn_encoding_new();
    for (size_t at = 0, n; e && at < text.bytes && tn_error() == TN_OK; at += n) {
        n = text.bytes - at;
        if (n > AT_ONCE) { /* cut at the end of a line */
            for (n = AT_ONCE; n && text.at[at + n - 1] != '\n';) n--;
            if (!n) n = AT_ONCE;
        }
        tn_tokenizer_encode(t, e, text.at + at, n, .bare = true, .literal = literal);
        for (int64_t i = 0; i < e->n && tn_error() == TN_OK; i++) tn_ids_add(to, e->id[i]);
    }
    tn_encoding_free(e);
    return tn_error() == TN_OK;
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

/* GPT-2's character for a byte: printable bytes map to themselves, the others to 256, 257, ... */
static uint32_t letter_of(int byte)
{
    uint32_t next = 256;
    for (int b = 0; b <= byte; b++) {
        const bool self = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == byte) return self ? (uint32_t)b : next;
        next += !self;
    }
    return 0;
}

/* The first n bytes as GPT-2's characters. */
static const char *letters_of(const unsigned char *bytes, int n, char to[16])
{
    int at = 0;
    for (int i = 0; i < n; i++) at += tn_utf8_put(letter_of(bytes[i]), to + at);
    to[at] = 0;
    return to;
}

/* A UTF-8 character of n bytes. */
typedef struct {
    unsigned char at[4];
    int           n;
} character;

/* Puts the tokens that build each character byte by byte: as merges, or with their ids, starting at 257. */
static void put_characters(tn_json_writer *w, const character *c, int count, bool merges)
{
    char    front[16], last[16], both[40];
    int64_t id = 257;
    for (int i = 0; i < count; i++)
        for (int n = 2; n <= c[i].n; n++) {
            bool there = false; /* an earlier character starts with the same bytes */
            for (int k = i - 1; k >= 0 && !there; k--) there = c[k].n >= n && !memcmp(c[k].at, c[i].at, (size_t)n);
            if (there) continue;
            letters_of(c[i].at, n - 1, front), letters_of(c[i].at + n - 1, 1, last);
            snprintf(both, sizeof both, merges ? "%s %s" : "%s%s", front, last);
            if (merges) tn_json_put_string(w, NULL, both);
            else tn_json_put_i64(w, both, id++);
        }
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(character)); }

/* The distinct characters of more than one byte, at most `most`, sorted by their bytes. Returns their number. */
static int characters_of(tn_text text, character *c, int most)
{
    uint8_t *seen = tn_mem_get(0x110000 / 8);
    int      n = 0;
    if (!seen) return 0;
    memset(seen, 0, 0x110000 / 8);
    for (size_t at = 0, from; at < text.bytes;) {
        bool valid = true;
        from = at;
        const uint32_t code = tn_utf8_next(text.at, text.bytes, &at, &valid);
        if (!valid || code < 128 || seen[code / 8] >> code % 8 & 1) continue;
        seen[code / 8] |= (uint8_t)(1u << code % 8);
        if (n < most) c[n] = (character){{0}, (int)(at - from)}, memcpy(c[n++].at, text.at + from, at - from);
    }
    tn_mem_put(seen, 0x110000 / 8);
    qsort(c, (size_t)n, sizeof *c, by_bytes);
    return n;
}

static tn_json *json_of(const char *text) { return tn_json_parse(text, strlen(text)); }

tn_tokenizer *texts_characters(tn_text text)
{
    enum { MOST = 20000 };
    character      *c = tn_mem_get(MOST * sizeof *c);
    tn_json_writer *w = tn_json_writer_new(0);
    char            letter[16];
    size_t          bytes;
    const int       count = c && w ? characters_of(text, c, MOST) : 0;
    tn_json        *frame =
        json_of("{\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true,\"type\":\"ByteLevel\"}");
    tn_json *special =
        json_of("[{\"id\":0,\"content\":\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                "\"normalized\":false,\"special\":true}]");
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "version", "1.0");
    tn_json_put(w, "added_tokens", special);
    tn_json_put_null(w, "normalizer");
    tn_json_put(w, "pre_tokenizer", frame);
    tn_json_put_null(w, "post_processor");
    tn_json_put(w, "decoder", frame);
    tn_json_open_object(w, "model");
    tn_json_put_string(w, "type", "BPE");
    tn_json_open_object(w, "vocab");
    tn_json_put_i64(w, "<|endoftext|>", 0);
    for (int b = 0; b < 256; b++) tn_json_put_i64(w, letters_of((unsigned char[]){(unsigned char)b}, 1, letter), b + 1);
    put_characters(w, c, count, false);
    tn_json_close(w);
    tn_json_open_array(w, "merges");
    put_characters(w, c, count, true);
    tn_json_close(w), tn_json_close(w), tn_json_close(w);
    const char   *json = tn_json_text(w, &bytes);
    tn_tokenizer *t = json ? tn_tokenizer_parse(json, bytes) : NULL;
    tn_json_free(frame), tn_json_free(special);
    tn_json_writer_free(w);
    if (c) tn_mem_put(c, MOST * sizeof *c);
    return t;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const char unknown[] = "<unk>", line_end[] = "<eos>";

bool texts_are_words(const tn_tokenizer *t)
{
    return tn_tokenizer_kind_of(t) == TN_WORDPIECE && tn_tokenizer_id(t, unknown) == 0 &&
           tn_tokenizer_id(t, line_end) == 1;
}

bool texts_word(tn_text line, size_t *at, tn_text *word)
{
    size_t from = *at, end = *at;
    while (*at < line.bytes) {
        const bool blank = tn_is_space(tn_utf8_next(line.at, line.bytes, at, NULL));
        if (blank && end > from) break;
        if (blank) from = *at;
        end = *at;
    }
    *word = (tn_text){line.at ? line.at + from : "", end - from};
    return word->bytes > 0;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool texts_column(tn_text line, size_t *at, tn_text *word)
{
    while (*at < line.bytes && is_blank(line.at[*at])) ++*at;
    const size_t from = *at;
    while (*at < line.bytes && !is_blank(line.at[*at])) ++*at;
    *word = (tn_text){line.at ? line.at + from : "", *at - from};
    return word->bytes > 0;
}

bool texts_lines(tn_text text, tn_string *to)
{
    for (size_t at = 0; at < text.bytes && tn_error() == TN_OK;) {
        const char  *end = memchr(text.at + at, '\n', text.bytes - at);
        const size_t n = end ? (size_t)(end - text.at) - at : text.bytes - at;
        tn_string_add(to, (tn_text){text.at + at, n});
        tn_string_add(to, tn_text_of(" <eos>\n"));
        at += n + 1;
    }
    return tn_error() == TN_OK;
}

static void put_special(tn_json_writer *w, int64_t id, const char *text)
{
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, "id", id);
    tn_json_put_string(w, "content", text);
    const char *const never[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (int i = 0; i < 4; i++) tn_json_put_bool(w, never[i], false);
    tn_json_put_bool(w, "special", true);
    tn_json_close(w);
}

/* Puts a WordPiece model of whole words. No token starts with "##", so a word that is not a token is unknown. */
static void put_words(tn_json_writer *w, const tn_vocab *v)
{
    tn_json_open_object(w, "model");
    tn_json_put_string(w, "type", "WordPiece");
    tn_json_put_string(w, "unk_token", unknown);
    tn_json_put_string(w, "continuing_subword_prefix", "##");
    tn_json_put_i64(w, "max_input_chars_per_word", 100);
    tn_json_open_object(w, "vocab");
    tn_json_put_i64(w, unknown, 0), tn_json_put_i64(w, line_end, 1);
    int64_t id = 2;
    for (int64_t i = TN_VOCAB_FIRST; i < tn_vocab_size(v) && tn_error() == TN_OK; i++) {
        const char  *word = tn_vocab_word(v, i);
        const size_t bytes = strlen(word), good = tn_utf8_valid(word, bytes);
        if (good < bytes)
            tn_raise(TN_EFORMAT, "the word '%.*s...' of the text is not UTF-8: its byte %zu is 0x%02x; " TEXTS_CONVERT,
                     good < 40 ? (int)good : 40, word, good + 1, (unsigned)(unsigned char)word[good]);
        if (strcmp(word, unknown) != 0 && strcmp(word, line_end) != 0 && strncmp(word, "##", 2) != 0)
            tn_json_put_i64(w, word, id++);
    }
    tn_json_close(w), tn_json_close(w);
}

static void put_kind(tn_json_writer *w, const char *what, const char *kind)
{
    tn_json_open_object(w, what);
    tn_json_put_string(w, "type", kind);
    if (!strcmp(kind, "WordPiece")) tn_json_put_string(w, "prefix", "##"), tn_json_put_bool(w, "cleanup", false);
    tn_json_close(w);
}

tn_tokenizer *texts_words(tn_text text, int64_t most)
{
    tn_vocab       *v = tn_vocab_new();
    tn_json_writer *w = tn_json_writer_new(0);
    size_t          bytes;
    tn_vocab_read(v, text.at, text.bytes);
    tn_vocab_trim(v, 1, most);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "version", "1.0");
    tn_json_open_array(w, "added_tokens");
    put_special(w, 0, unknown), put_special(w, 1, line_end);
    tn_json_close(w);
    tn_json_put_null(w, "normalizer");
    put_kind(w, "pre_tokenizer", "WhitespaceSplit");
    tn_json_put_null(w, "post_processor");
    put_kind(w, "decoder", "WordPiece");
    put_words(w, v);
    tn_json_close(w);
    const char   *json = tn_error() == TN_OK ? tn_json_text(w, &bytes) : NULL;
    tn_tokenizer *t = json ? tn_tokenizer_parse(json, bytes) : NULL;
    tn_json_writer_free(w);
    tn_vocab_free(v);
    return t;
}

void texts_line(broken_lines *b, int64_t number, tn_text line)
{
    if (tn_utf8_valid(line.at, line.bytes) < line.bytes && !b->count++) b->first = number;
}

void texts_warn_lines(const broken_lines *b)
{
    if (b->count)
        warn("%lld lines are not UTF-8, the first is line %lld; " TEXTS_CONVERT "\n", (long long)b->count,
             (long long)b->first);
}
