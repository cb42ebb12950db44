/* cells.c — a line as cells: between tabs, or as CSV has them (RFC 4180): between commas, in quotes where a cell holds
 * a comma, a quote (which is doubled) or the end of a line. */
#include "data/labelled/labelled_private.h"

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

/* How far the record goes: the end of the line that is in no quotes. Its bytes without that end. A cell is in quotes if
 * one is its first byte; in any other it is a byte like all. */
static size_t record(tn_text all, size_t at, int64_t *line, size_t *next)
{
    bool   quoted = false, first = true;
    size_t i = at;
    for (; i < all.bytes && (quoted || all.at[i] != '\n'); i++) {
        const bool quote = all.at[i] == '"';
        if (quoted && quote && i + 1 < all.bytes && all.at[i + 1] == '"') i++; /* of two, one is meant */
        else if (quote && (quoted || first)) quoted = !quoted;
        first = !quoted && all.at[i] == ',';
        *line += all.at[i] == '\n';
    }
    *next = i + (i < all.bytes);
    return i > at && all.at[i - 1] == '\r' ? i - 1 : i;
}

/* The cell at *i, in c->text; false: something is wrong with it. *i is at the comma behind it, or at the end. */
static bool cell(tn__cells *c, tn_text all, size_t *i, size_t end, const char **bad)
{
    const size_t from = c->text.bytes;
    const bool   quoted = *i < end && all.at[*i] == '"';
    if (quoted) ++*i;
    for (; *i < end && (quoted || all.at[*i] != ','); ++*i) {
        if (quoted && all.at[*i] == '"') {
            if (*i + 1 >= end || all.at[*i + 1] != '"') break;
            ++*i; /* of two, one is meant */
        }
        c->text.at[c->text.bytes++] = all.at[*i];
    }
    if (quoted && *i >= end) *bad = "a quote that is opened is never closed";
    else if (quoted && ++*i < end && all.at[*i] != ',')
        *bad = "something stands between the quote that ends a cell and the next comma; a quote in a cell is doubled";
    if (*bad) return false;
    return tn__cells_add(c, (tn_text){c->text.at + from, c->text.bytes - from});
}

bool tn__cells_csv(tn__cells *c, tn_text all, size_t *at, int64_t *line, const char **bad)
{
    size_t       next;
    const size_t end = record(all, *at, line, &next);
    c->n = 0, c->text.bytes = 0, *bad = NULL;
    bool fine = tn__string_room(&c->text, end - *at + 1); /* all that it can be: the text does not move */
    for (size_t i = *at; fine; i++) {
        fine = cell(c, all, &i, end, bad);
        if (i >= end) break;
    }
    *at = next;
    return tn_error() == TN_OK;
}
