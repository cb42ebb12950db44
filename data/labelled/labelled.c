/* labelled.c — labelled texts in memory: all strings in one buffer, and the errors of bad lines. */
#include "data/labelled/labelled_private.h"

#include <stdarg.h>
#include <stdlib.h>

/* ---- filling ----------------------------------------------------------------------------------------------------- */

static bool add(tn_labelled *l, tn_text s, int64_t start)
{
    if (!tn__grown((void *)&l->text, &l->text_room, l->bytes + (int64_t)s.bytes + 1, 1) ||
        !tn__grown((void *)&l->at, &l->at_room, 2 * l->strings + 2, sizeof *l->at))
        return false;
    if (s.bytes) memcpy(l->text + l->bytes, s.at, s.bytes);
    l->text[l->bytes + (int64_t)s.bytes] = 0;
    l->at[2 * l->strings] = l->bytes, l->at[2 * l->strings + 1] = start;
    l->bytes += (int64_t)s.bytes + 1, l->strings++;
    return true;
}

bool tn__labelled_begin(tn_labelled *l, int64_t line, const char *id)
{
    l->mark_bytes = l->bytes, l->mark_strings = l->strings;
    l->now = (tn__labelled_row){.line = line, .first = l->strings};
    return add(l, tn_text_of(id), 0);
}
bool tn__labelled_text(tn_labelled *l, tn_text text) { return l->now.texts++, add(l, text, 0); }
bool tn__labelled_label(tn_labelled *l, tn_text text, int64_t start) { return l->now.labels++, add(l, text, start); }

bool tn__labelled_end(tn_labelled *l)
{
    if (!tn__grown((void *)&l->row, &l->row_room, l->n + 1, sizeof *l->row)) return false;
    l->row[l->n++] = l->now;
    l->mark_bytes = l->bytes, l->mark_strings = l->strings;
    return true;
}

bool tn__labelled_point(tn_labelled *l)
{
    if (!tn__grown((void *)&l->string, &l->string_room, l->strings + 1, sizeof *l->string) ||
        !tn__grown((void *)&l->start, &l->start_room, l->strings + 1, sizeof *l->start))
        return false;
    for (int64_t i = l->pointed == l->text ? l->now.first : 0; i < l->strings; i++)
        l->string[i] = l->text + l->at[2 * i], l->start[i] = l->at[2 * i + 1];
    l->pointed = l->text;
    return true;
}

void tn__labelled_cancel(tn_labelled *l)
{
    l->bytes = l->mark_bytes, l->strings = l->mark_strings;
    for (int64_t i = 0; l->string && l->pointed != l->text && i < l->strings; i++)
        l->string[i] = l->text + l->at[2 * i];
    if (l->string) l->pointed = l->text;
}

const char *tn__labelled_place(const tn_labelled *l, int64_t line, char to[TN__PLACE])
{
    snprintf(to, TN__PLACE, "%s%sline %lld", l->label, *l->label ? ", " : "", (long long)line);
    return to;
}

const char *tn__labelled_label_error(const tn_labelled *l, tn_text label)
{
    double v;
    if (tn_utf8_valid(label.at, label.bytes) < label.bytes) return TN__LABEL_UTF8;
    if (!label.bytes) return "the label is empty";
    if (l->config.problem == TN_REGRESSION && (!tn_parse_double(label.at, label.bytes, &v) || v - v != 0))
        return "the label is not a number, which a regression needs";
    return NULL;
}

bool tn__labelled_bad(tn_labelled *l, int64_t line, const char *fmt, ...)
{
    char    error[600], place[48] = "";
    va_list args;
    if (tn_error() != TN_OK) return false;
    va_start(args, fmt);
    vsnprintf(error, sizeof error, fmt, args);
    va_end(args);
    if (line) snprintf(place, sizeof place, "line %lld: ", (long long)line);
    tn__labelled_cancel(l);
    if (l->skipped >= l->config.skip)
        return tn_raise_false(TN_EFORMAT, "%s%s%s%s", l->label, *l->label ? ", " : "", place, error);
    if (!l->skipped++) {
        char first[700];
        snprintf(first, sizeof first, "%s%s", place, error);
        l->first_bad = tn__strdup(first);
    }
    return tn_error() == TN_OK;
}

bool tn__labelled_line(tn_text all, size_t *at, tn_text *line)
{
    if (*at == 0) *at = tn__mark(all);
    if (*at >= all.bytes) return false;
    const char  *from = all.at + *at, *end = memchr(from, '\n', all.bytes - *at);
    const size_t n = end ? (size_t)(end - from) : all.bytes - *at;
    *at += n + (end != NULL);
    *line = (tn_text){from, n && from[n - 1] == '\r' ? n - 1 : n};
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

void tn_labelled_free(tn_labelled *l)
{
    if (!l) return;
    tn__mem_put(l->string, (size_t)l->string_room * sizeof *l->string);
    tn__mem_put(l->start, (size_t)l->start_room * sizeof *l->start);
    tn__mem_put(l->text, (size_t)l->text_room);
    tn__mem_put(l->at, (size_t)l->at_room * sizeof *l->at);
    tn__mem_put(l->row, (size_t)l->row_room * sizeof *l->row);
    if (l->first_bad) tn__strfree(l->first_bad);
    tn__mem_put(l, sizeof *l);
}

int64_t tn_labelled_count(const tn_labelled *l) { return l ? l->n : 0; }
int64_t tn_labelled_skipped(const tn_labelled *l, const char **first)
{
    if (first) *first = l && l->first_bad ? l->first_bad : "";
    return l ? l->skipped : 0;
}

tn_example tn_labelled_at(const tn_labelled *l, int64_t i)
{
    if (!l || i < 0 || i >= l->n) return (tn_example){.id = ""};
    const tn__labelled_row *r = &l->row[i];
    const int64_t           labels = r->first + 1 + r->texts;
    return (tn_example){.id = l->string[r->first],
                        .line = r->line,
                        .texts = r->texts,
                        .labels = r->labels,
                        .text = l->string + r->first + 1,
                        .label = l->string + labels,
                        .start = l->start + labels};
}

/* ---- the names of labels ----------------------------------------------------------------------------------------- */

struct tn_labels {
    tn__strings  names;
    const char **name;
};

/* Orders numbers by value, before names; names by their bytes. */
static int by_name(const void *a, const void *b)
{
    const char *const x = *(const char *const *)a, *const y = *(const char *const *)b;
    double     u, v;
    const bool p = tn_parse_double(x, strlen(x), &u), q = tn_parse_double(y, strlen(y), &v);
    if (p != q) return p ? -1 : 1;
    if (p && u != v) return u < v ? -1 : 1;
    return strcmp(x, y);
}

static bool pointed(tn_labels *s)
{
    const uint32_t n = s->names.n;
    if (!(s->name = tn__mem_get((n + 1) * sizeof *s->name))) return false;
    for (uint32_t i = 0; i < n; i++) s->name[i] = tn__strings_at(&s->names, i).at;
    return true;
}

tn_labels *tn_labels_new(int64_t n, const char *const *names)
{
    if (tn__blocked()) return NULL;
    if (n < 0 || (n && !names)) return tn_raise_null(TN_EINVAL, "tn_labels_new: names is NULL, or n is negative");
    tn_labels *s = tn__mem_zeroed(sizeof *s);
    bool       fine = s != NULL;
    for (int64_t i = 0; fine && i < n; i++)
        if (tn__strings_find(&s->names, names[i], strlen(names[i])) >= 0)
            tn_raise(TN_EINVAL, "tn_labels_new: '%s' is given twice", names[i]), fine = false;
        else fine = tn__strings_add(&s->names, names[i], strlen(names[i])) >= 0;
    if (fine && pointed(s)) return s;
    tn_labels_free(s);
    return NULL;
}

tn_labels *tn_labels_of(const tn_labelled *l)
{
    if (tn__blocked()) return NULL;
    if (!l) return tn_raise_null(TN_EINVAL, "tn_labels_of: the labelled texts are NULL");
    tn_labels  found = {.name = NULL}, *s = NULL;
    bool       fine = true;
    const bool words = l->config.problem != TN_REGRESSION && l->config.kind <= TN_LABELLED_WORDS;
    for (int64_t i = 0; fine && words && i < l->n; i++) {
        const tn_example e = tn_labelled_at(l, i);
        for (int64_t k = 0; fine && k < e.labels; k++)
            fine = tn__strings_add(&found.names, e.label[k], strlen(e.label[k])) >= 0;
    }
    if (fine && pointed(&found)) {
        qsort(found.name, found.names.n, sizeof *found.name, by_name);
        s = tn_labels_new(found.names.n, found.name);
    }
    tn__mem_put(found.name, found.name ? (found.names.n + 1) * sizeof *found.name : 0);
    tn__strings_free(&found.names);
    return s;
}

int64_t            tn_labels_count(const tn_labels *l) { return l ? l->names.n : 0; }
const char *const *tn_labels_names(const tn_labels *l) { return l ? l->name : NULL; }
int64_t            tn_labels_find(const tn_labels *l, const char *name)
{
    return l && name ? tn__strings_find(&l->names, name, strlen(name)) : -1;
}
void tn_labels_free(tn_labels *l)
{
    if (!l) return;
    tn__mem_put(l->name, l->name ? (l->names.n + 1) * sizeof *l->name : 0);
    tn__strings_free(&l->names);
    tn__mem_put(l, sizeof *l);
}

tn_status tn_labelled_only(tn_labelled *l, const tn_labels *known)
{
    if (tn__blocked()) return tn_error();
    if (!l || !known) return tn_raise(TN_EINVAL, "tn_labelled_only: the texts or the labels are NULL");
    int64_t kept = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const tn_example e = tn_labelled_at(l, i);
        const char      *strange = NULL;
        for (int64_t k = 0; k < e.labels && !strange; k++)
            if (tn_labels_find(known, e.label[k]) < 0) strange = e.label[k];
        if (!strange) l->row[kept++] = l->row[i];
        else if (!tn__labelled_bad(l, e.line, "the label '%.60s' is not among the %lld of the training set%s", strange,
                                   (long long)tn_labels_count(known),
                                   l->config.kind == TN_LABELLED_WORDS ? " (in the sentence that starts here)" : ""))
            while (i < l->n) l->row[kept++] = l->row[i++]; /* raised: the rest stays as it is */
    }
    l->n = kept;
    return tn_error();
}

tn_status tn_labelled_first(tn_labelled *l, int64_t most)
{
    if (tn__blocked()) return tn_error();
    if (!l || most < 0)
        return tn_raise(TN_EINVAL, "tn_labelled_first: %s", l ? "most is negative" : "the texts are NULL");
    if (l->n > most) l->n = most;
    return TN_OK;
}
