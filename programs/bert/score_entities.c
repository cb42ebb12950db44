/* score_entities.c — bert score entities: scores the tags on standard input; prints conlleval's table or JSON. */
#include "../common/files.h"
#include "../common/numbers.h"
#include "../common/texts.h"
#include "tune.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 16 << 20 }; /* bytes */

/* Finds the first and the last two columns of a line. Returns the number of columns. */
static int64_t columns(tn_text line, tn_text *first, tn_text *gold, tn_text *predicted)
{
    int64_t n = 0;
    tn_text word;
    *first = *gold = *predicted = (tn_text){"", 0};
    for (size_t at = 0; texts_column(line, &at, &word);) {
        *gold = *predicted, *predicted = word;
        if (!n++) *first = word;
    }
    return n;
}

static bool is(tn_text a, const char *b) { return a.bytes == strlen(b) && !memcmp(a.at, b, a.bytes); }

/* Reads a line of conlleval's input: one token, with the same number of columns in every line. An empty line or one
 * that starts with -X- ends a sentence. -DOCSTART- with more columns is a token, as in the script; alone it ends a
 * sentence. */
static void add_line(tn_entities *e, tn_text line, int64_t *width)
{
    tn_text       first, gold, predicted;
    const int64_t n = columns(line, &first, &gold, &predicted);
    if (!n || is(first, "-X-") || (n == 1 && is(first, "-DOCSTART-"))) {
        tn_entities_end_sentence(e);
    } else if (n < 2) {
        tn_raise(TN_EFORMAT, "one column, expected at least two: the last are the right tag and the predicted tag");
    } else if (*width && n != *width) {
        tn_raise(TN_EFORMAT, "%lld columns, but %lld in the lines before; check for a missing tag or a blank in a word",
                 (long long)n, (long long)*width);
    } else {
        *width = n;
        tn_entities_add(e, gold, predicted);
    }
}

static void read_lines(tn_entities *e)
{
    char   *line = NULL, where[32];
    size_t  room = 0, bytes = 0;
    int64_t number = 0, width = 0;
    for (bool more = true; more && tn_error() == TN_OK;) {
        snprintf(where, sizeof where, "line %lld", (long long)++number);
        tn_path_push(where);
        more = next_line(&line, &room, &bytes, LINE_MOST);
        if (more) {
            const size_t mark = number == 1 && bytes >= 3 && !memcmp(line, "\xef\xbb\xbf", 3) ? 3 : 0;
            add_line(e, (tn_text){line + mark, bytes - mark}, &width);
        }
        tn_path_pop();
    }
    free(line);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_table(const tn_entities *e)
{
    tn_string table = {0};
    if (tn_entities_text(e, &table) == TN_OK &&
        (fwrite(table.at, 1, table.bytes, stdout) < table.bytes || fflush(stdout)))
        tn_raise(TN_EIO, "cannot write to standard output");
    tn_string_free(&table);
}

static void put_score(tn_json_writer *w, tn_entities_score s)
{
    tn_json_put_i64(w, "gold", s.gold), tn_json_put_i64(w, "found", s.found);
    tn_json_put_i64(w, "correct", s.correct);
    numbers_put(w, "precision", 100 * s.precision, 4), numbers_put(w, "recall", 100 * s.recall, 4);
    numbers_put(w, "f1", 100 * s.f1, 4);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The types that occur, sorted as in the table. */
static void put_types(tn_json_writer *w, const tn_entities *e)
{
    int64_t n = 0;
    while (tn_entities_type(e, n)) n++;
    const char **type = calloc((size_t)n + 1, sizeof *type);
    if (!type) tn_raise(TN_ENOMEM, "no memory for %lld types", (long long)n);
    for (int64_t i = 0; type && i < n; i++) type[i] = tn_entities_type(e, i);
    if (type) qsort(type, (size_t)n, sizeof *type, by_name);
    for (int64_t i = 0; type && i < n; i++) {
        const tn_entities_score s = tn_entities_of(e, type[i]);
        if (!s.gold && !s.found) continue;
        tn_json_open_object(w, NULL);
        texts_put(w, "type", type[i]);
        put_score(w, s);
        tn_json_close(w);
    }
    free(type);
}

static void print_json(const tn_entities *e)
{
    tn_json_writer   *w = tn_json_writer_new(0);
    const tn_accuracy tokens = tn_entities_tokens(e);
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, "tokens", tokens.counted);
    numbers_put(w, "accuracy", 100 * tn_accuracy_value(&tokens), 4);
    put_score(w, tn_entities_of(e, NULL));
    tn_json_open_array(w, "types");
    put_types(w, e);
    tn_json_close(w), tn_json_close(w);
    const char *text = tn_json_text(w, NULL);
    if (text) puts(text);
    tn_json_writer_free(w);
}

void score_entities(bool strict, bool json)
{
    tn_entities *e = tn_entities_new(strict ? TN_ENTITIES_STRICT : TN_ENTITIES_CONLL);
    if (e) read_lines(e);
    if (e && tn_error() == TN_OK && json) print_json(e);
    else if (e && tn_error() == TN_OK) print_table(e);
    tn_entities_free(e);
}
