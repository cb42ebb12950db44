/* labelled_private.h — labelled texts as their readers fill them. Private.
 *
 * A reader begins an example, adds its strings, and ends it; where something is wrong with it, it says so with
 * tn__labelled_bad, which takes it away again: then true means that it is only counted, false that it is raised. */
#ifndef TENON_DATA_LABELLED_LABELLED_PRIVATE_H
#define TENON_DATA_LABELLED_LABELLED_PRIVATE_H

#include "core/base/toolbox.h"
#include "data/labelled.h"
#include "data/text/data_private.h"

#include <string.h>

typedef struct {
    int64_t line, first, texts, labels; /* its strings: id, texts, labels */
} tn__labelled_row;

struct tn_labelled {
    tn_labelled_config config;
    char               label[TN__LABEL]; /* "'train.tsv'", for messages */
    char              *text;             /* of all strings, each ended by a NUL */
    int64_t            bytes, text_room;
    int64_t           *at; /* where each string begins, and of an answer where it stands: 2 numbers each */
    int64_t            strings, at_room;
    tn__labelled_row  *row;
    int64_t            n, row_room, skipped;
    char              *first_bad;
    const char       **string; /* when all is read */
    int64_t           *start;
    /* of the example that is being read */
    tn__labelled_row now;
    int64_t          mark_bytes, mark_strings;
};

/* line: its number, from 1; 0 where there are no lines. False: raised. */
bool tn__labelled_begin(tn_labelled *l, int64_t line, const char *id);
bool tn__labelled_text(tn_labelled *l, tn_text text);
bool tn__labelled_label(tn_labelled *l, tn_text text, int64_t start); /* behind all texts */
bool tn__labelled_end(tn_labelled *l);
/* "'train.tsv', line 7: " and what is said; with line 0: "'train.json', " and what is said. */
bool tn__labelled_bad(tn_labelled *l, int64_t line, const char *fmt, ...) TN_PRINTF(3, 4);

/* Labels are written to config.json, which holds nothing else: a run would end with that, and without its model. */
#define TN__LABEL_UTF8 "the label is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"

/* The readers: of a whole text. False: raised. */
bool tn__labelled_read_table(tn_labelled *l, tn_text all); /* tsv, csv, jsonl, GLUE's, and SWAG's of choices */
bool tn__labelled_read_tags(tn_labelled *l, tn_text all);
bool tn__labelled_read_squad(tn_labelled *l, tn_text all);

/* The next line of all, without its end and without the mark of UTF-8 at the beginning of the text; *at goes on. */
bool tn__labelled_line(tn_text all, size_t *at, tn_text *line);

/* A row's cells, in memory that is the row's own. */
typedef struct {
    tn_string text; /* what quotes are taken off */
    tn_text  *cell;
    int64_t   n, room;
} tn__cells;
void tn__cells_free(tn__cells *c);
bool tn__cells_add(tn__cells *c, tn_text cell);
bool tn__cells_tabs(tn__cells *c, tn_text line);
/* A record of CSV: with quotes, in which lines may end; *line goes on by those. *bad: what is wrong with it. */
bool tn__cells_csv(tn__cells *c, tn_text all, size_t *at, int64_t *line, const char **bad);

#endif
