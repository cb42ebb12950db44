/* cells.h — a line of a table as cells: at tabs, or as CSV. Private to data/. */
#ifndef TENON_DATA_TEXT_CELLS_H
#define TENON_DATA_TEXT_CELLS_H

#include "data/text/data_private.h"

/* A row's cells; the row owns their memory. */
typedef struct {
    tn_string text; /* cells without their quotes */
    tn_text  *cell;
    int64_t   n, room;
} tn__cells;
void tn__cells_free(tn__cells *c);
bool tn__cells_add(tn__cells *c, tn_text cell);
bool tn__cells_tabs(tn__cells *c, tn_text line);
/* True if the text ends inside quotes; quoted: it starts inside them, else at the start of a record. */
bool tn__csv_quoted(tn_text part, bool quoted);
/* Reads a CSV record, whose quotes may contain line ends; *line advances over them. *bad: the record's error. */
bool tn__cells_csv(tn__cells *c, tn_text all, size_t *at, int64_t *line, const char **bad);

#endif
