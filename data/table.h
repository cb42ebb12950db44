/* table.h — files of CSV (RFC 4180), TSV or JSON lines: numbers and texts by the names of their columns, row by row or
 * as batches of tensors. The file is read as a stream: it may have any size, and one batch is in memory. Include
 * data.h.
 *
 *     tn_table *houses = tn_table_open("houses.csv", .batch = 64, .fields = {{.name = "x", .columns = "rooms,area"},
 *                                                                            {.name = "y", .columns = "price"}});
 *     tn_source train = tn_table_source(houses);                    // x [64, 2], y [64, 1], for tn_fit
 *
 *     tn_table *t = tn_table_open("houses.csv");
 *     while (tn_table_next(t)) printf("%g\n", tn_table_number(t, "price")); // row by row
 *     tn_table_free(t);
 *
 * Rows come in the order of the file. To shuffle, read all rows as one batch (.batch = INT32_MAX) into tn_dataset_new.
 * An error names the file and the line; then tn_table_next returns false and numbers are NaN. */
#ifndef TENON_DATA_TABLE_H
#define TENON_DATA_TABLE_H

#include "lines.h"
#include "source.h"

TN_C_BEGIN_

/* A tensor of each batch, made from columns. Its strings and what it points to must stay valid. */
typedef struct {
    const char        *name;    /* "x", "y", or the name of a further tensor: see tn_batch_get */
    const char        *columns; /* their names, separated by commas: [rows, columns] */
    tn_dtype           dtype;   /* of numbers: f32, f64, or i64 for whole numbers: of one column [rows] */
    const char *const *classes; /* of one column: the texts it may contain, ended by NULL: i64 [rows], their index */
    const tn_encoder  *encoder; /* of one column of texts: i64 [rows, longest], token ids, .pad after shorter ones */
    int64_t            pad;
} tn_table_field;

typedef struct tn_table_config {
    int            zero_;
    const char    *form; /* "csv", "tsv" (no quotes) or "jsonl"; NULL: by the file's name, else csv */
    tn_table_field fields[TN_BATCH_FIELDS]; /* for tn_table_source; the first without a name ends the list */
    int64_t batch  TN_IS(32);               /* rows in a batch */
    bool           drop_last;               /* ignore a last batch with fewer rows */
    bool           no_header;               /* the first line is a row; the columns are "1", "2", ... */
    bool           missing_nan; /* an empty number, or a missing member of JSON, is NaN; otherwise an error */
    int            end_;
} TN_KEYWORDS_ONLY      tn_table_config;
typedef struct tn_table tn_table;
TN_API tn_table        *tn_table_open_run(const char *path, tn_table_config c);
TN_API void             tn_table_free(tn_table *t);

/* The next row; false: after the last row, or if an error is set. After the last row the first one follows. Numbers of
 * JSON may be true and false; texts are valid until the next row. Empty lines are skipped. */
TN_API bool    tn_table_next(tn_table *t);
TN_API int64_t tn_table_line(const tn_table *t); /* number of the row's first line, from 1 */
TN_API double  tn_table_number(tn_table *t, const char *column);
TN_API tn_text tn_table_text(tn_table *t, const char *column);

/* Batches of .fields. Reads the stream that tn_table_next reads. A training checkpoint stores the position in the file,
 * which must not change. */
TN_API tn_source tn_table_source(tn_table *t);

TN_C_END_
#define TN_TABLE_DEFAULTS .batch = 32
#define tn_table_open(...) TN_CALL_(tn_table_open_run(TN_TABLE_OPEN_(__VA_ARGS__, TN_END_)))
#define TN_TABLE_OPEN_(path, ...) path, TN_FILLED_(tn_table_config, TN_TABLE_DEFAULTS, __VA_ARGS__)
#endif
