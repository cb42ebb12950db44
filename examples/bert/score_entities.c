/* score_entities.c — bert score entities: conlleval's table of the tags on standard input. */
#include "tune.h"
#include "../common/files.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 16 << 20 }; /* bytes */

/* The first of a line's columns and its last two; how many there are. */
static int64_t columns(tn_text line, tn_text *first, tn_text *gold, tn_text *predicted)
{
    static const char blank[] = " \t\r\v\f";
    int64_t           n = 0;
    *first = *gold = *predicted = (tn_text){"", 0};
    for (size_t i = 0, start; i < line.bytes;) {
        if (memchr(blank, line.at[i], sizeof blank - 1)) {
            i++;
            continue;
        }
        for (start = i; i < line.bytes && !memchr(blank, line.at[i], sizeof blank - 1);) i++;
        *gold = *predicted, *predicted = (tn_text){line.at + start, i - start};
        if (!n++) *first = *predicted;
    }
    return n;
}

static bool is(tn_text a, const char *b) { return a.bytes == strlen(b) && !memcmp(a.at, b, a.bytes); }

/* conlleval's lines: a token each, as many columns in all of them; one that is empty or begins with -X- ends a
 * sentence. -DOCSTART- is a token as it is to the script, where it has columns, and else ends a sentence, too. */
static void add_line(tn_entities *e, tn_text line, int64_t *width)
{
    tn_text       first, gold, predicted;
    const int64_t n = columns(line, &first, &gold, &predicted);
    if (!n || is(first, "-X-") || (n == 1 && is(first, "-DOCSTART-"))) {
        tn_entities_end_sentence(e);
    } else if (n < 2) {
        tn_raise(TN_EFORMAT, "one column, and it takes two: the last ones are the right tag and the predicted one");
    } else if (*width && n != *width) {
        tn_raise(TN_EFORMAT, "%lld columns, and %lld in the lines before: is a tag missing, or a blank inside a word?",
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

void score_entities(bool strict)
{
    tn_string    table = {0};
    tn_entities *e = tn_entities_new(strict ? TN_ENTITIES_STRICT : TN_ENTITIES_CONLL);
    if (e) read_lines(e);
    if (e && tn_error() == TN_OK && tn_entities_text(e, &table) == TN_OK &&
        (fwrite(table.at, 1, table.bytes, stdout) < table.bytes || fflush(stdout)))
        tn_raise(TN_EIO, "standard output cannot be written");
    tn_string_free(&table);
    tn_entities_free(e);
}
