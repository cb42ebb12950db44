/* labelled_private.h — labelled texts, as the readers fill them. Private.
 *
 * A reader begins an example, adds its strings and ends it. For a bad example it calls tn__labelled_bad, which removes
 * the example and returns true if it was only counted as skipped, false if an error was raised. */
#ifndef TENON_DATA_LABELLED_LABELLED_PRIVATE_H
#define TENON_DATA_LABELLED_LABELLED_PRIVATE_H

#include "core/base/toolbox.h"
#include "data/labelled.h"
#include "data/text/cells.h"

#include <string.h>

typedef struct {
    int64_t line, first, texts, labels; /* its strings, from `first` on: id, texts, labels */
} tn__labelled_row;

struct tn_labelled {
    tn_labelled_config config;
    char               label[TN__LABEL]; /* "'train.tsv'", for error messages */
    char              *text;             /* all strings, each NUL-terminated */
    int64_t            bytes, text_room;
    int64_t           *at; /* for each string: its offset, and an answer's start in the text */
    int64_t            strings, at_room;
    tn__labelled_row  *row;
    int64_t            n, row_room, skipped;
    char              *first_bad;
    const char       **string; /* pointers into text, of all strings; set by tn__labelled_point */
    int64_t           *start;
    int64_t            string_room, start_room;
    const char        *pointed; /* the value of text that they point into */
    /* of the example being read */
    tn__labelled_row now;
    int64_t          mark_bytes, mark_strings;
};

/* line: its number, from 1; 0: the format has no lines. False: raised. */
bool tn__labelled_begin(tn_labelled *l, int64_t line, const char *id);
bool tn__labelled_text(tn_labelled *l, tn_text text);
bool tn__labelled_label(tn_labelled *l, tn_text text, int64_t start); /* after all texts */
bool tn__labelled_end(tn_labelled *l);
void tn__labelled_cancel(tn_labelled *l); /* removes the example that has begun */
bool tn__labelled_point(tn_labelled *l);  /* sets the pointers to the strings; false: raised */
/* The error of a label of texts or of a tag, or NULL. */
const char *tn__labelled_label_error(const tn_labelled *l, tn_text label);
bool        tn__labelled_config_valid(const char *who, const tn_labelled_config *c); /* raises */
/* "'train.tsv', line 7", or "line 7" of a text. */
enum { TN__PLACE = TN__LABEL + 48 };
const char *tn__labelled_place(const tn_labelled *l, int64_t line, char to[TN__PLACE]);
/* Message: "'train.tsv', line 7: " and fmt; with line 0: "'train.json', " and fmt. */
bool tn__labelled_bad(tn_labelled *l, int64_t line, const char *fmt, ...) TN_PRINTF(3, 4);

/* Labels are written to config.json, which must be UTF-8; saving the model at the end of a run would fail. */
#define TN__LABEL_UTF8 "the label is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"

/* The readers; each reads a whole text. False: raised. */
bool tn__labelled_read_table(tn_labelled *l, tn_text all); /* tsv, csv, jsonl, GLUE tasks, SWAG's choices */
bool tn__labelled_read_tags(tn_labelled *l, tn_text all);
bool tn__labelled_read_squad(tn_labelled *l, tn_text all);

/* Reads the next line, without its end and without a byte order mark at the start of the text; advances *at. */
bool tn__labelled_line(tn_text all, size_t *at, tn_text *line);

#endif
