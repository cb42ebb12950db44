/* table.c — files of CSV, TSV or JSON lines as a stream of rows.
 *
 * A row is one line; of CSV also the lines after it, while a quote is open. Each byte is looked at a fixed number of
 * times, also if a quote is never closed. */
#include "data/source/table_private.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool tn__table_bad(const tn_table *t, const char *fmt, ...)
{
    char    text[400];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    return tn_raise_false(TN_EFORMAT, "%s, line %lld: %s", t->reader.label, (long long)t->line, text);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The next row of CSV: a line, or several of them joined. */
static bool record(tn_table *t, tn_text *to)
{
    bool quoted = tn__csv_quoted(*to, false);
    if (!quoted) return true;
    t->record.bytes = 0;
    if (tn_string_add(&t->record, *to) != TN_OK) return false;
    while (quoted && tn__reader_line(&t->reader, to)) {
        if (t->record.bytes > TN__TABLE_ROW)
            return tn__table_bad(t, "a quote is not closed in %d bytes", TN__TABLE_ROW);
        if (tn_string_add(&t->record, tn_text_of("\n")) != TN_OK || tn_string_add(&t->record, *to) != TN_OK)
            return false;
        quoted = tn__csv_quoted(*to, quoted);
    }
    *to = (tn_text){t->record.at, t->record.bytes};
    return tn_error() == TN_OK;
}

static bool parse_json(tn_table *t, tn_text text)
{
    tn_error_state aside;
    char           message[300] = "";
    tn_json_free(t->object);
    tn_error_push(&aside);
    t->object = tn_json_parse(text.at, text.bytes);
    if (!t->object) snprintf(message, sizeof message, "%s", tn_error_message());
    tn_error_pop(&aside);
    if (!t->object) return tn__table_bad(t, "not JSON: %s", message);
    if (tn_json_type_of(t->object) == TN_JSON_OBJECT) return true;
    return tn__table_bad(t, "not a JSON object; expected {\"column\": value, ...}");
}

/* Reads the cells of the next row that is not empty; false: end, or raised. */
static bool next_row(tn_table *t)
{
    tn_text     text;
    const char *bad = NULL;
    size_t      at = 0;
    int64_t     lines = 0;
    while (tn__reader_line(&t->reader, &text)) {
        t->line = t->reader.line;
        if (text.bytes && text.at[text.bytes - 1] == '\r' && !t->csv) text.bytes--;
        if (!text.bytes || (text.bytes == 1 && *text.at == '\r')) continue;
        if (t->json) return parse_json(t, text);
        if (!t->csv) return tn__cells_tabs(&t->cells, text);
        if (!record(t, &text) || !tn__cells_csv(&t->cells, text, &at, &lines, &bad)) return false;
        return !bad || tn__table_bad(t, "%s", bad);
    }
    return false;
}

bool tn__table_row(tn_table *t)
{
    t->ready = false;
    if (!next_row(t)) return false;
    if (!t->json && t->cells.n != t->columns)
        return tn__table_bad(t, "%lld columns, expected %lld, as in the first line%s", (long long)t->cells.n,
                             (long long)t->columns, t->csv ? "; put texts with commas in quotes" : "");
    return t->ready = true;
}

bool tn_table_next(tn_table *t)
{
    if (tn__blocked() || !tn__not_null("tn_table_next", "the table", t)) return false;
    if (tn__table_row(t)) return true;
    if (tn_error() == TN_OK) tn__reader_seek(&t->reader, t->first, t->first_line);
    return false;
}

int64_t tn_table_line(const tn_table *t) { return t && t->ready ? t->line : 0; }

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* The header: the names of the first row, or the numbers of its columns. */
bool tn__table_header(tn_table *t)
{
    char number[24];
    if (!next_row(t)) {
        if (tn_error() == TN_OK) tn_raise(TN_EFORMAT, "%s contains no rows", t->reader.label);
        return false;
    }
    t->columns = t->cells.n;
    for (int64_t i = 0; i < t->columns; i++) {
        tn_text name = t->cells.cell[i];
        snprintf(number, sizeof number, "%lld", (long long)i + 1);
        if (t->config.no_header) name = tn_text_of(number);
        if (name.bytes && memchr(name.at, 0, name.bytes))
            return tn__table_bad(t, "column %s has a NUL in its name", number);
        if (tn_string_add(&t->header, name) != TN_OK || tn_string_add(&t->header, (tn_text){"", 1}) != TN_OK)
            return false;
    }
    if (!t->config.no_header) t->first = tn__reader_at(&t->reader), t->first_line = t->reader.line;
    return true;
}

bool tn__table_column(tn_table *t, const char *name, tn__column *to)
{
    const char *at = t->header.at;
    *to = (tn__column){name, -1};
    if (t->json) return true;
    for (int64_t i = 0; i < t->columns; i++, at += strlen(at) + 1) {
        if (strcmp(at, name) != 0) continue;
        if (to->at >= 0) return tn_raise_false(TN_EFORMAT, "%s has two columns '%.60s'", t->reader.label, name);
        to->at = i;
    }
    if (to->at >= 0) return true;
    return tn_raise_false(TN_EINDEX, "%s has no column '%.60s'; its first one is '%.60s'%s", t->reader.label, name,
                          t->header.at, t->config.no_header ? ", because .no_header is set" : "");
}

static bool missing(const tn_table *t, tn__column c, double *to)
{
    if (t->config.missing_nan) return *to = NAN, true;
    return tn__table_bad(t, "'%.60s' is empty, expected a number; fill it in, or set .missing_nan", c.name);
}

bool tn__table_number(tn_table *t, tn__column c, double *to)
{
    if (t->json) {
        const tn_json *v = tn_json_get(t->object, c.name);
        switch (tn_json_type_of(v)) {
        case TN_JSON_INTEGER:
        case TN_JSON_REAL: return *to = tn_json_double(v), true;
        case TN_JSON_BOOL: return *to = tn_json_bool(v), true;
        case TN_JSON_NULL:
        case TN_JSON_NONE: return missing(t, c, to);
        default: return tn__table_bad(t, "'%.60s' is not a number", c.name);
        }
    }
    tn_text cell = t->cells.cell[c.at];
    while (cell.bytes && cell.at[cell.bytes - 1] == ' ') cell.bytes--;
    while (cell.bytes && cell.at[0] == ' ') cell.at++, cell.bytes--;
    if (!cell.bytes) return missing(t, c, to);
    char text[TN__QUOTED];
    return tn_parse_double(cell.at, cell.bytes, to) ||
           tn__table_bad(t, "'%.60s' is %s, expected a number", c.name, tn__quote(text, cell.at, cell.bytes, 40));
}

bool tn__table_text(tn_table *t, tn__column c, tn_text *to)
{
    if (!t->json) return *to = t->cells.cell[c.at], true;
    const tn_json *v = tn_json_get(t->object, c.name);
    if (tn_json_type_of(v) != TN_JSON_STRING) return tn__table_bad(t, "'%.60s' is not a string", c.name);
    return *to = (tn_text){tn_json_string(v), (size_t)tn_json_string_bytes(v)}, true;
}

/* The column of a row that has been read; false: raised. */
static bool wanted(const char *who, tn_table *t, const char *column, tn__column *to)
{
    if (tn__blocked() || !tn__not_null(who, "the table", t) || !tn__not_null(who, "the column", column)) return false;
    if (!t->ready) return tn_raise_false(TN_ESTATE, "%s: no row was read; call tn_table_next first", who);
    return tn__table_column(t, column, to);
}

double tn_table_number(tn_table *t, const char *column)
{
    tn__column c;
    double     v = NAN;
    return wanted("tn_table_number", t, column, &c) && tn__table_number(t, c, &v) ? v : NAN;
}

tn_text tn_table_text(tn_table *t, const char *column)
{
    tn__column c;
    tn_text    v;
    return wanted("tn_table_text", t, column, &c) && tn__table_text(t, c, &v) ? v : tn_text_of("");
}
