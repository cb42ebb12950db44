/* read_tags.c — reads sentences of words with tags: CoNLL's columns, one word per line, word first and tag last; and
 * CoNLL-U, whose comments, multiword tokens and empty nodes are skipped. An empty line ends a sentence. */
#include "data/labelled/labelled_private.h"

#include <stdlib.h>

enum { UPOS = 3, CONLLU = 10 };

typedef struct {
    tn_labelled *l;
    bool         conllu;
    int64_t      column, width; /* column of the tag, -1: the last; columns of the first line */
    tn__cells    cells;
    tn_string    tags; /* tags of the sentence, each NUL-terminated; stored after the words */
    int64_t      words;
    bool         open, bad; /* bad: the sentence has an error, which has been reported */
} reader;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
static bool empty(tn_text s)
{
    while (s.bytes && is_blank(s.at[s.bytes - 1])) s.bytes--;
    return !s.bytes;
}

/* Splits at tabs, if the line has any; otherwise at blanks. */
static bool split(tn__cells *c, tn_text line)
{
    while (line.bytes && is_blank(line.at[line.bytes - 1])) line.bytes--;
    if (memchr(line.at, '\t', line.bytes)) return tn__cells_tabs(c, line);
    c->n = 0;
    for (size_t i = 0, from; i < line.bytes;) {
        for (; i < line.bytes && is_blank(line.at[i]);) i++;
        for (from = i; i < line.bytes && !is_blank(line.at[i]);) i++;
        if (i > from && !tn__cells_add(c, (tn_text){line.at + from, i - from})) return false;
    }
    return true;
}

/* ---- BIO --------------------------------------------------------------------------------------------------------- */

/* Converts the first letter of a tag of IOB1, BIOES or BILOU to BIO, given the tag before it: B where a chunk starts,
 * otherwise I. */
static char first_of(const char *before, const char *tag)
{
    const bool same = before[0] && before[1] == '-' && !strcmp(before + 2, tag + 2);
    switch (tag[0]) {
    case 'B':
    case 'S':
    case 'U': return 'B';
    default: return same && !strchr("ESLU", before[0]) ? 'I' : 'B';
    }
}
static void to_bio(char *tags, int64_t n)
{
    char before[64] = "", was[64];
    for (int64_t i = 0; i < n; i++, tags += strlen(tags) + 1) {
        snprintf(was, sizeof was, "%s", tags);
        if (tags[0] && tags[1] == '-' && strchr("BIESLU", tags[0])) tags[0] = first_of(before, was);
        memcpy(before, was, sizeof was);
    }
}

/* ---- sentences --------------------------------------------------------------------------------------------------- */

static bool end_sentence(reader *r)
{
    if (!r->open) return true;
    tn_labelled *l = r->l;
    const bool   bad = r->bad;
    r->open = r->bad = false;
    if (bad) return true;
    if (l->config.bio) to_bio(r->tags.at, r->words);
    const char *tag = r->tags.at;
    for (int64_t i = 0; i < r->words && !l->config.no_label; i++, tag += strlen(tag) + 1)
        if (!tn__labelled_label(l, tn_text_of(tag), 0)) return false;
    return tn__labelled_end(l);
}

static bool begin_sentence(reader *r, int64_t line)
{
    if (r->open) return true;
    r->open = true, r->words = 0, r->tags.bytes = 0;
    return tn__labelled_begin(r->l, line, NULL);
}

static size_t digits(tn_text s)
{
    size_t n = 0;
    while (n < s.bytes && s.at[n] >= '0' && s.at[n] <= '9') n++;
    return n;
}
static bool is_number(tn_text id) { return id.bytes && digits(id) == id.bytes; }

/* True if the id of a CoNLL-U line is that of a range (3-4) or of an empty node (3.1). */
static bool is_skipped(tn_text id)
{
    const size_t n = digits(id);
    if (!n || n + 1 >= id.bytes || (id.at[n] != '-' && id.at[n] != '.')) return false;
    return is_number((tn_text){id.at + n + 1, id.bytes - n - 1});
}

/* Returns the error of a line's columns, or NULL and sets word and tag. */
static const char *columns(reader *r, tn_text *word, tn_text *tag, char *to, size_t size)
{
    const tn__cells *c = &r->cells;
    const bool       bare = r->l->config.no_label;
    if (!r->width) r->width = c->n;
    if (c->n != r->width || (r->conllu && c->n != CONLLU)) {
        snprintf(to, size, "%lld columns, expected %lld; add the missing tag or remove blanks inside words",
                 (long long)c->n, (long long)(r->conllu ? CONLLU : r->width));
        return to;
    }
    if (c->n < 2 && !bare) return "one column, expected two: the word first, the tag last";
    const int64_t at = r->column >= 0 ? r->column : c->n - 1;
    if (at >= c->n && !bare) {
        snprintf(to, size, "no column %lld for the tag", (long long)at + 1);
        return to;
    }
    if (r->conllu && !is_number(c->cell[0])) return "the id is not a number, a range or an empty node's";
    *word = c->cell[r->conllu], *tag = bare ? tn_text_of("") : c->cell[at];
    if (empty(*word)) return "the word is empty";
    if (!r->conllu && memchr(word->at, ' ', word->bytes)) /* in CoNLL-U a tab ends a column */
        return "the first column has several words; expected one word per line, with "
               "its tag, and an empty line after each sentence";
    if (!bare && empty(*tag)) return "the tag is empty";
    if (tn_utf8_valid(tag->at, tag->bytes) < tag->bytes) return TN__LABEL_UTF8;
    return tag->bytes > 60 ? "the tag has more than 60 bytes" : NULL;
}

static bool add_word(reader *r, tn_text line, int64_t number)
{
    tn_text word, tag;
    char    message[160];
    if (!split(&r->cells, line)) return false;
    const tn__cells *c = &r->cells;
    if (r->conllu && c->n == CONLLU && is_skipped(c->cell[0])) return true;
    if (!r->conllu && c->n && c->cell[0].bytes == 10 && !memcmp(c->cell[0].at, "-DOCSTART-", 10)) return true;
    if (!begin_sentence(r, number)) return false;
    if (r->bad) return true;
    const char *bad = columns(r, &word, &tag, message, sizeof message);
    if (bad) return r->bad = true, tn__labelled_bad(r->l, number, "%s", bad);
    r->words++;
    if (!tn__labelled_text(r->l, word)) return false;
    return tn_string_add(&r->tags, tag) == TN_OK && tn_string_add(&r->tags, (tn_text){"", 1}) == TN_OK;
}

bool tn__labelled_read_tags(tn_labelled *l, tn_text all)
{
    static const char *const names[CONLLU] = {"id",    "form", "lemma",  "upos", "xpos",
                                              "feats", "head", "deprel", "deps", "misc"};
    reader                   r = {.l = l, .conllu = !strcmp(l->config.form, "conllu"), .column = -1};
    tn_text                  line;
    int64_t                  number = 0;
    bool                     fine = true;
    if (r.conllu) r.column = UPOS;
    const char *column = l->config.label;
    for (int i = 0; column && i < CONLLU; i++)
        if (!strcmp(column, names[i])) r.column = i, column = NULL;
    if (column) {
        char *end;
        r.column = strtol(column, &end, 10) - 1;
        if (*end || end == column || r.column < 0)
            return tn_raise_false(TN_EINVAL, "%s: no column '%s'; columns are numbered from 1%s", l->label, column,
                                  r.conllu ? ", or named, for example upos" : "");
    }
    for (size_t at = 0; fine && tn__labelled_line(all, &at, &line);) {
        number++;
        if (empty(line)) fine = end_sentence(&r);
        else if (!r.conllu || line.at[0] != '#') fine = add_word(&r, line, number);
    }
    fine = fine && end_sentence(&r);
    tn__cells_free(&r.cells);
    tn_string_free(&r.tags);
    return fine && tn_error() == TN_OK;
}
