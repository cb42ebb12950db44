/* table_private.h — a table that is read: its stream, its columns, the row, and the fields of a batch. Private. */
#ifndef TENON_DATA_SOURCE_TABLE_PRIVATE_H
#define TENON_DATA_SOURCE_TABLE_PRIVATE_H

#include "core/base/toolbox.h"
#include "data/source/source_private.h"
#include "data/table.h"
#include "data/text/cells.h"

enum { TN__TABLE_ROW = 1 << 26 }; /* maximum bytes of a row */

typedef struct {
    const char *name;
    int64_t     at; /* its index; of JSON: -1 */
} tn__column;

/* A field of the batch. value: [rows, width], the numbers, the indices of classes, or the ends of each row's ids. */
typedef struct {
    char       *names; /* .columns with NULs in place of commas */
    tn__column *column;
    double     *value;
    tn_ids      ids;
    int64_t     width, column_room, value_room;
} tn__table_part;

struct tn_table {
    tn_table_config config;
    bool            csv, json, ready; /* ready: a row has been read */
    tn__reader      reader;
    tn_string       header; /* names of the columns, each ended by a NUL */
    int64_t         columns;
    int64_t         first, first_line; /* where the rows start: byte, lines before it */
    tn_string       record;            /* a row of CSV that has several lines */
    tn__cells       cells;
    tn_json        *object;
    int64_t         line;
    int             parts;
    tn__table_part  part[TN_BATCH_FIELDS];
    tn_shard        shard;
    int64_t         rows, from, from_line; /* rows of the batch; where it starts, while parts of it are missing */
};

bool tn__table_row(tn_table *t);    /* reads the next row; false: no further one, or raised */
bool tn__table_header(tn_table *t); /* reads the names of the columns; false: raised */
/* Finds a column; false: raised. */
bool tn__table_column(tn_table *t, const char *name, tn__column *to);
/* Of the row: false: raised, with its line. */
bool tn__table_number(tn_table *t, tn__column c, double *to);
bool tn__table_text(tn_table *t, tn__column c, tn_text *to);
/* Raises "tn_table_open: 'a.csv', line 7: " and fmt; returns false. */
bool tn__table_bad(const tn_table *t, const char *fmt, ...) TN_PRINTF(2, 3);
/* table_batches.c: prepares the fields; false: raised. */
bool tn__table_fields(tn_table *t);
void tn__table_fields_free(tn_table *t);

#endif
