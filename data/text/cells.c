/* cells.c — splits a line into cells: at tabs, or as CSV (RFC 4180): at commas, with quotes around a cell that contains
 * a comma, a quote (doubled) or a line break. */
#include "data/text/cells.h"
#include "core/base/toolbox.h"

void tn__cells_free(tn__cells *c)
{
    tn_string_free(&c->text);
    tn__mem_put(c->cell, (size_t)c->room * sizeof *c->cell);
    *c = (tn__cells){.n = 0};
}

bool tn__cells_add(tn__cells *c, tn_text cell)
{
    if (!tn__grown((void *)&c->cell, &c->room, c->n + 1, sizeof *c->cell)) return false;
    c->cell[c->n++] = cell;
    return true;
}

bool tn__cells_tabs(tn__cells *c, tn_text line)
{
    c->n = 0;
    for (size_t from = 0;;) {
        const char  *tab = line.bytes > from ? memchr(line.at + from, '\t', line.bytes - from) : NULL;
        const size_t to = tab ? (size_t)(tab - line.at) : line.bytes;
        if (!tn__cells_add(c, (tn_text){line.at + from, to - from})) return false;
        if (!tab) return true;
        from = to + 1;
    }
}

/* A cell is quoted if its first byte is a quote; elsewhere a quote is an ordinary byte. */
bool tn__csv_quoted(tn_text part, bool quoted)
{
    bool first = !quoted;
    for (size_t i = 0; i < part.bytes; i++) {
        const bool quote = part.at[i] == '"';
        if (quoted && quote && i + 1 < part.bytes && part.at[i + 1] == '"') i++; /* a doubled quote is one quote */
        else if (quote && (quoted || first)) quoted = !quoted;
        first = !quoted && part.at[i] == ',';
    }
    return quoted;
}

/* Returns the end of the record, without its line end: the first line end outside quotes. */
static size_t record(tn_text all, size_t at, int64_t *line, size_t *next)
{
    size_t      i = at;
    const char *end;
    for (bool quoted = false;; i++, ++*line) {
        const size_t from = i;
        end = i < all.bytes ? memchr(all.at + i, '\n', all.bytes - i) : NULL;
        i = end ? (size_t)(end - all.at) : all.bytes;
        quoted = tn__csv_quoted((tn_text){all.at + from, i - from}, quoted);
        if (!end || !quoted) break;
    }
    *next = i + (end != NULL);
    return i > at && all.at[i - 1] == '\r' ? i - 1 : i;
}

/* Reads the cell at *i into c->text; false: *bad is its error. Leaves *i at the comma after it or at the end. */
static bool cell(tn__cells *c, tn_text all, size_t *i, size_t end, const char **bad)
{
    const size_t from = c->text.bytes;
    const bool   quoted = *i < end && all.at[*i] == '"';
    if (quoted) ++*i;
    for (; *i < end && (quoted || all.at[*i] != ','); ++*i) {
        if (quoted && all.at[*i] == '"') {
            if (*i + 1 >= end || all.at[*i + 1] != '"') break;
            ++*i; /* a doubled quote is one quote */
        }
        c->text.at[c->text.bytes++] = all.at[*i];
    }
    if (quoted && *i >= end) *bad = "an opening quote is never closed";
    else if (quoted && ++*i < end && all.at[*i] != ',')
        *bad = "text between a closing quote and the next comma; double the quotes inside a cell";
    if (*bad) return false;
    return tn__cells_add(c, (tn_text){c->text.at + from, c->text.bytes - from});
}

bool tn__cells_csv(tn__cells *c, tn_text all, size_t *at, int64_t *line, const char **bad)
{
    size_t       next;
    const size_t end = record(all, *at, line, &next);
    c->n = 0, c->text.bytes = 0, *bad = NULL;
    bool fine = tn__string_room(&c->text, end - *at + 1); /* room for the whole record: the text does not move */
    for (size_t i = *at; fine; i++) {
        fine = cell(c, all, &i, end, bad);
        if (i >= end) break;
    }
    *at = next;
    return tn_error() == TN_OK;
}
