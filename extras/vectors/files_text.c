/* files_text.c — vectors as text: "words dim", then one "word x x x" per line, as in word2vec and FastText's .vec, or
 * without the first line, as in GloVe; and word2vec's binary format, with the machine's floats. */
#include "extras/vectors/files.h"
#include "core/base/toolbox.h"

enum { MAX_WORD = 1 << 12, MAX_LINE = 1 << 24 };

/* ---- text -------------------------------------------------------------------------------------------------------- */

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static tn_text stripped(tn_text t)
{
    while (t.bytes && blank(t.at[t.bytes - 1])) t.bytes--;
    return t;
}

/* Removes the last field from the line; false: the line is empty. */
static bool last_field(tn_text *line, tn_text *field)
{
    *line = stripped(*line);
    size_t from = line->bytes;
    while (from && !blank(line->at[from - 1])) from--;
    *field = (tn_text){line->at + from, line->bytes - from};
    line->bytes = from;
    return field->bytes > 0;
}

static bool fail(const tn__reader *r, const char *error)
{
    return tn_raise_false(TN_EFORMAT, "%s: line %lld %s", r->label, (long long)r->line, error);
}

static bool whole(tn_text t, int64_t *n)
{
    *n = 0;
    for (size_t i = 0; i < t.bytes; i++)
        if (t.at[i] < '0' || t.at[i] > '9' || !tn__mul_i64(*n, 10, n) || !tn__add_i64(*n, t.at[i] - '0', n))
            return false;
    return t.bytes > 0;
}

/* "words dim" */
static bool read_head(tn__reader *r, int64_t *words, int64_t *dim)
{
    tn_text line, a, b, none;
    if (!tn__reader_line(r, &line)) return tn__self.error == TN_OK ? fail(r, "is missing: the file is empty") : false;
    if (last_field(&line, &b) && last_field(&line, &a) && !last_field(&line, &none) && whole(a, words) && whole(b, dim))
        return true;
    return fail(r, "must give the number of words and of numbers per word");
}

/* The word is everything before the numbers, including blanks, which some files have in words. */
static bool read_row(tn__reader *r, tn_vectors *v, tn_text line)
{
    tn_text field;
    float  *row = v->row + (int64_t)v->words.n * v->dim;
    if ((int64_t)v->words.n == v->room) return fail(r, "exceeds the number of words given by the first line");
    for (int64_t k = v->dim; k-- > 0;) {
        double x;
        char   text[200];
        if (!last_field(&line, &field)) {
            snprintf(text, sizeof text, "has %lld numbers, expected %lld", (long long)(v->dim - 1 - k),
                     (long long)v->dim);
            return fail(r, text);
        }
        if (!tn_parse_double(field.at, field.bytes, &x) || x > 3.4e38 || x < -3.4e38) {
            char shown[TN__QUOTED];
            snprintf(text, sizeof text, "has %s, expected a number", tn__quote(shown, field.at, field.bytes, 40));
            return fail(r, text);
        }
        row[k] = (float)x;
    }
    line = stripped(line);
    const uint32_t before = v->words.n;
    if (!line.bytes || line.bytes > MAX_WORD)
        return fail(r, line.bytes ? "has a word of more than 4096 bytes" : "has no word");
    if (memchr(line.at, 0, line.bytes)) return fail(r, "has a NUL in its word");
    if (tn__strings_add(&v->words, line.at, line.bytes) < 0) return false;
    return v->words.n > before || fail(r, "repeats a word");
}

/* True if the word ends in a number. A single word may; if all do, the first line gives too few numbers per word. */
static bool ends_in_number(tn_text word)
{
    tn_text field;
    double  x;
    return last_field(&word, &field) && word.bytes && tn_parse_double(field.at, field.bytes, &x);
}

/* GloVe's text has no sizes: counts the lines, and the fields of one line. */
static bool measure(tn__reader *r, int64_t *words, int64_t *dim)
{
    tn_text line, field;
    *words = *dim = 0;
    while (tn__reader_line(r, &line)) {
        line = stripped(line);
        if (line.bytes) ++*words;
        if (*words == 1 && line.bytes)
            for (*dim = -1; last_field(&line, &field);) ++*dim;
    }
    return tn__self.error == TN_OK && (*words > 0 || fail(r, "is missing: the file is empty"));
}

tn_vectors *tn__read_text(const char *path, bool headed)
{
    tn__reader  r;
    tn_vectors *v = NULL;
    tn_text     line;
    int64_t     words = 0, dim = 0, need = 0;
    if (!tn__reader_open(&r, "tn_vectors_load", path)) return NULL;
    r.most = MAX_LINE;
    bool good = headed ? read_head(&r, &words, &dim) : measure(&r, &words, &dim);
    if (good && !headed) {
        tn__reader_close(&r);
        if (!tn__reader_open(&r, "tn_vectors_load", path)) return NULL;
        r.most = MAX_LINE;
    }
    /* a number takes at least a digit and a blank */
    if (good && (words < 1 || dim < 1 || words >= INT32_MAX / 2 || dim > 1 << 20 ||
                 !tn__mul_i64(words, 2 * dim, &need) || need > r.source.size))
        good = fail(&r, "gives sizes that are 0 or larger than the file");
    if (good) v = tn__vectors_new(words, dim);
    int64_t longer = 0;
    while (v && tn__reader_line(&r, &line)) {
        if (!stripped(line).bytes) continue;
        if (!read_row(&r, v, line)) break;
        longer += ends_in_number(tn__strings_at(&v->words, v->words.n - 1));
    }
    if (v && tn__self.error == TN_OK && (int64_t)v->words.n < words)
        fail(&r, "is the last; the first line gives more words");
    if (v && tn__self.error == TN_OK && longer == words) {
        r.line = 1;
        fail(&r, "gives fewer numbers per word than all words have");
    }
    tn__reader_close(&r);
    if (tn__self.error == TN_OK) return v;
    tn_vectors_free(v);
    return NULL;
}

static bool write_rows(tn__vectors_out *o, const tn_vectors *v)
{
    char number[40] = " ";
    for (int64_t i = 0; i < (int64_t)v->words.n; i++) {
        const tn_text word = tn__strings_at(&v->words, i);
        if (!tn__out_put(o, word.at, word.bytes)) return false;
        for (int64_t k = 0; k < v->dim; k++)
            if (!tn__out_put(o, number, 1 + (size_t)tn_format_float(v->row[i * v->dim + k], number + 1))) return false;
        if (!tn__out_put(o, "\n", 1)) return false;
    }
    return true;
}

static bool write_head(tn__vectors_out *o, const tn_vectors *v)
{
    char head[64];
    return tn__out_put(o, head, (size_t)snprintf(head, sizeof head, "%u %lld\n", v->words.n, (long long)v->dim));
}

bool tn__write_text(tn__vectors_out *o, const tn_vectors *v) { return write_head(o, v) && write_rows(o, v); }
bool tn__write_glove(tn__vectors_out *o, const tn_vectors *v) { return write_rows(o, v); }

/* ---- binary ------------------------------------------------------------------------------------------------------ */

tn_vectors *tn__read_binary(tn__vectors_in *f)
{
    char          text[MAX_WORD + 2];
    int64_t       n = tn__in_word(f, text, 64, '\n'), words = 0, dim = 0;
    const tn_text line = {text, n < 0 ? 0 : (size_t)n};
    tn_text       head = line, a, b;
    if (n < 0) return NULL;
    if (!last_field(&head, &b) || !last_field(&head, &a) || !whole(a, &words) || !whole(b, &dim) || dim > 1 << 20) {
        tn__in_fail(f, "the first line must give the number of words and of numbers per word");
        return NULL;
    }
    tn_vectors *v = tn__in_vectors(f, words, dim, 4 * dim + 2);
    for (int64_t i = 0; v && i < words; i++) {
        n = tn__in_word(f, text, MAX_WORD, ' ');
        const char *word = text;
        if (n > 0 && *word == '\n') word++, n--; /* word2vec writes it after each row, gensim does not */
        if (n < 0 || !tn__in_name(f, v, word, n)) break;
        if (!tn__in_take(f, v->row + i * dim, 4 * dim) || !tn__in_finite(f, v->row + i * dim, dim)) break;
    }
    if (tn__self.error == TN_OK && f->source.size - f->at > 1) tn__in_fail(f, "data after the last word");
    if (tn__self.error == TN_OK) return v;
    tn_vectors_free(v);
    return NULL;
}

bool tn__write_binary(tn__vectors_out *o, const tn_vectors *v)
{
    bool done = write_head(o, v);
    for (int64_t i = 0; done && i < (int64_t)v->words.n; i++) {
        const tn_text word = tn__strings_at(&v->words, i);
        done = tn__out_put(o, word.at, word.bytes) && tn__out_put(o, " ", 1) &&
               tn__out_put(o, v->row + i * v->dim, (size_t)v->dim * sizeof *v->row) && tn__out_put(o, "\n", 1);
    }
    return done;
}
