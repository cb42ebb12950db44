/* read_table.c — reads labelled texts from tables: lines with tabs, CSV, one JSON object per line, the layouts of
 * GLUE's tasks, and SWAG's table of choices. The columns are located once; then each row becomes an example. */
#include "core/system/system.h"

#include "data/labelled/labelled_private.h"

#include <stdlib.h>

enum { CHOICES_MAX = 64, COLUMNS = CHOICES_MAX + 3 };

/* The files of GLUE: names or numbers of the relevant columns. */
static const struct layout {
    const char *name, *text, *pair, *label;
} glue[] = {{"cola", "4", NULL, "2"},
            {"sst-2", "sentence", NULL, "label"},
            {"mrpc", "#1 String", "#2 String", "Quality"},
            {"sts-b", "sentence1", "sentence2", "score"},
            {"qqp", "question1", "question2", "is_duplicate"},
            {"mnli", "sentence1", "sentence2", "gold_label"},
            {"qnli", "question", "sentence", "label"},
            {"rte", "sentence1", "sentence2", "label"},
            {"wnli", "sentence1", "sentence2", "label"}};
enum { GLUE = sizeof glue / sizeof *glue };

/* A table: its columns by name or number, then by index. */
typedef struct {
    tn_labelled *l;
    bool         csv, json, loose; /* loose: the number of columns may vary by row */
    const char  *name[COLUMNS];    /* columns of the texts; name[texts]: of the label */
    int64_t      texts, at[COLUMNS];
    int64_t      width;
    bool         sure; /* at and width are set */
} table;

static bool number_of(const char *name, int64_t *at)
{
    char *end;
    *at = strtol(name, &end, 10) - 1;
    return *end == 0 && end != name && *at >= 0;
}

static bool is(tn_text cell, const char *name)
{
    return cell.bytes == strlen(name) && !memcmp(cell.at, name, cell.bytes);
}

static bool one_of(tn_text cell, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == cell.bytes && !strncasecmp(names[i], cell.at, cell.bytes)) return true;
    return false;
}

/* True if a first line only names its columns: no data set has a label "label". */
static bool is_header(const tn__cells *c)
{
    static const char *const labels[] = {"label",  "labels",    "class", "category", "gold_label",
                                         "target", "sentiment", "score", "tag",      NULL};
    static const char *const texts[] = {"text",     "sentence", "sentence1", "review", "content",
                                        "question", "premise",  "sent1",     NULL};
    for (int64_t i = 0; i < c->n; i++)
        if (one_of(c->cell[i], i + 1 == c->n || c->n > 3 ? labels : texts)) return true;
    return c->n == 1 && one_of(c->cell[0], texts);
}

static int64_t column(const tn__cells *header, const char *name)
{
    for (int64_t i = 0; i < header->n; i++)
        if (is(header->cell[i], name)) return i;
    return -1;
}

/* Locates the columns of a table of choices: sent1, optional sent2 (put before each ending), and the endings. */
static bool choices(table *t, const tn__cells *header)
{
    static const char *const names[] = {"ending0", "ending1", "ending2", "ending3", "ending4",
                                        "ending5", "ending6", "ending7", "ending8", "ending9"};
    t->at[0] = column(header, "sent1"), t->at[1] = column(header, "sent2"), t->texts = 2;
    while (t->texts - 2 < 10 && column(header, names[t->texts - 2]) >= 0) {
        t->at[t->texts] = column(header, names[t->texts - 2]);
        t->texts++;
    }
    t->at[t->texts] = column(header, "label");
    if (t->at[0] >= 0 && t->texts >= 4 && (t->at[t->texts] >= 0 || t->l->config.no_label)) return true;
    return tn_raise_false(TN_EFORMAT,
                          "%s: the first line must name the columns sent1, ending0, ending1, …%s; sent2 is optional",
                          t->l->label, t->l->config.no_label ? "" : " and label");
}

/* Rejects a column used twice: a classifier whose text is also the label would know all answers. */
static bool all_differ(const table *t, int64_t things)
{
    static const char *const message[] = {"text", "second text"};
    for (int64_t i = 0; i < things; i++)
        for (int64_t k = 0; k < i; k++)
            if (t->json ? t->name[i] && t->name[k] && !strcmp(t->name[i], t->name[k]) : t->at[i] == t->at[k]) {
                const char *const role = i == t->texts ? "label" : message[i];
                if (t->json)
                    tn_raise(TN_EINVAL, "%s: the member \"%s\" would be both the %s and the %s; name two members",
                             t->l->label, t->name[i], message[k], role);
                else
                    tn_raise(TN_EINVAL, "%s: column %lld would be both the %s and the %s; name two columns",
                             t->l->label, (long long)t->at[i] + 1, message[k], role);
                return false;
            }
    return true;
}

/* Locates the columns by the first line. *data: the first line is an example itself. False: raised. */
static bool arrange(table *t, const tn__cells *first, bool *data)
{
    const bool choose = t->l->config.kind == TN_LABELLED_CHOICES, bare = t->l->config.no_label;
    bool       header = choose || (!t->l->config.no_header && is_header(first));
    int64_t    at;
    t->sure = true, t->width = first->n;
    if (choose) return *data = false, choices(t, first);
    for (int64_t i = 0; i <= t->texts; i++)
        if (t->name[i] && !number_of(t->name[i], &at)) header = true;
    *data = !header;
    for (int64_t i = 0; i <= t->texts; i++) {
        const char *name = t->name[i];
        if (i == t->texts && bare) break;
        if (!name) t->at[i] = i == t->texts ? first->n - 1 : i;
        else if (!number_of(name, &t->at[i])) t->at[i] = column(first, name);
        if (name && (t->at[i] < 0 || t->at[i] >= first->n))
            return tn_raise_false(TN_EINVAL, "%s has no column '%s'; its first line has %lld", t->l->label, name,
                                  (long long)first->n);
    }
    return all_differ(t, t->texts + !bare);
}

/* ---- rows as examples -------------------------------------------------------------------------------------------- */

static bool blank(tn_text s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (s.at[i] != ' ' && s.at[i] != '\t' && s.at[i] != '\r') return false;
    return true;
}
static tn_text stripped(tn_text s)
{
    while (s.bytes && (s.at[s.bytes - 1] == ' ' || s.at[s.bytes - 1] == '\r')) s.bytes--;
    while (s.bytes && s.at[0] == ' ') s.at++, s.bytes--;
    return s;
}

/* Adds a label if it is valid for this problem; returns its error, or NULL. */
static const char *add_label(tn_labelled *l, tn_text cell)
{
    cell = stripped(cell);
    const char *bad = l->config.problem == TN_MULTI_LABEL && !cell.bytes ? NULL : tn__labelled_label_error(l, cell);
    if (bad) return bad;
    for (size_t from = 0; l->config.problem == TN_MULTI_LABEL && from < cell.bytes;) {
        const char   *comma = memchr(cell.at + from, ',', cell.bytes - from);
        const size_t  to = comma ? (size_t)(comma - cell.at) : cell.bytes;
        const tn_text part = stripped((tn_text){cell.at + from, to - from});
        if (part.bytes) tn__labelled_label(l, part, 0);
        from = to + 1;
    }
    if (l->config.problem != TN_MULTI_LABEL) tn__labelled_label(l, cell, 0);
    return NULL;
}

/* The error of a row with a wrong number of cells; NULL: correct. */
static const char *column_error(const table *t, const tn__cells *c, char *to, size_t size)
{
    int64_t least = 0;
    for (int64_t i = 0; i <= t->texts; i++)
        if ((i < t->texts || !t->l->config.no_label) && t->at[i] >= least) least = t->at[i] + 1;
    if (c->n >= least && (t->loose || c->n == t->width)) return NULL;
    if (c->n == 1 && !t->csv) snprintf(to, size, "no tab found, expected %lld columns", (long long)t->width);
    else
        snprintf(to, size, "%lld columns, but the first line has %lld%s", (long long)c->n, (long long)t->width,
                 c->n > t->width ? t->csv ? "; put texts with commas in quotes" : "; remove tabs inside texts" : "");
    return to;
}

/* True if the cell is the number of an ending. */
static bool is_ending(const table *t, tn_text cell)
{
    double v;
    return tn_parse_double(cell.at, cell.bytes, &v) && v >= 0 && v < (double)(t->texts - 2) && v == (double)(int64_t)v;
}

static bool add_choice(table *t, const tn__cells *c, int64_t line)
{
    tn_labelled  *l = t->l;
    tn_string     ending = {0};
    const tn_text from = t->at[1] >= 0 ? c->cell[t->at[1]] : tn_text_of("");
    tn__labelled_begin(l, line, NULL);
    tn__labelled_text(l, c->cell[t->at[0]]);
    for (int64_t i = 2; i < t->texts && tn_error() == TN_OK; i++) {
        ending.bytes = 0;
        if (tn_string_add(&ending, from) == TN_OK &&
            (!from.bytes || tn_string_add(&ending, tn_text_of(" ")) == TN_OK) &&
            tn_string_add(&ending, c->cell[t->at[i]]) == TN_OK)
            tn__labelled_text(l, (tn_text){ending.at, ending.bytes});
    }
    tn_string_free(&ending);
    if (l->config.no_label || tn_error() != TN_OK) return tn_error() == TN_OK && tn__labelled_end(l);
    const tn_text label = stripped(c->cell[t->at[t->texts]]);
    if (!is_ending(t, label))
        return tn__labelled_bad(l, line, "the label '%.*s' is not the number of an ending, 0 to %lld",
                                (int)(label.bytes < 40 ? label.bytes : 40), label.at, (long long)t->texts - 3);
    return tn__labelled_label(l, label, 0) && tn__labelled_end(l);
}

/* Adds a row as an example or reports it as bad. False: raised. */
static bool add_row(table *t, const tn__cells *c, int64_t line)
{
    tn_labelled *l = t->l;
    char         message[160];
    const char  *bad = column_error(t, c, message, sizeof message);
    if (!bad && l->config.kind == TN_LABELLED_CHOICES) return add_choice(t, c, line);
    if (!tn__labelled_begin(l, line, NULL)) return false;
    for (int64_t i = 0; !bad && i < t->texts; i++) {
        const tn_text text = c->cell[t->at[i]];
        if (blank(text)) bad = t->texts > 1 && i ? "the second text is empty" : "the text is empty";
        else if (!tn__labelled_text(l, text)) return false;
    }
    if (!bad && !l->config.no_label) bad = add_label(l, c->cell[t->at[t->texts]]);
    return bad ? tn__labelled_bad(l, line, "%s", bad) : tn__labelled_end(l);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const tn_json *member(const tn_json *o, const char *name, const char *const *names)
{
    const tn_json *v = name ? tn_json_get(o, name) : NULL;
    for (int i = 0; !name && !v && names[i]; i++) v = tn_json_get(o, names[i]);
    return v;
}

static const char *json_name(tn_labelled *l, tn_text label)
{
    if (memchr(label.at, 0, label.bytes)) return "the label holds a NUL";
    if (l->config.problem != TN_MULTI_LABEL) return add_label(l, label);
    if (blank(label)) return "a label is empty; use [] for no labels";
    return tn__labelled_label(l, label, 0), NULL;
}

/* Adds a label: a string, a number or a bool; for several labels, an array of them. */
static const char *json_label(tn_labelled *l, const tn_json *v)
{
    char number[32];
    switch (tn_json_type_of(v)) {
    case TN_JSON_STRING: return json_name(l, (tn_text){tn_json_string(v), (size_t)tn_json_string_bytes(v)});
    case TN_JSON_INTEGER: snprintf(number, sizeof number, "%lld", (long long)tn_json_i64(v)); break;
    case TN_JSON_REAL: tn_format_double(tn_json_double(v), number); break;
    case TN_JSON_BOOL: snprintf(number, sizeof number, "%d", tn_json_bool(v)); break;
    case TN_JSON_ARRAY: return l->config.problem == TN_MULTI_LABEL ? NULL : "the label is an array";
    default: return "no label found: add a member \"label\", or name another one with --label";
    }
    return add_label(l, tn_text_of(number));
}

static const char *json_example(table *t, const tn_json *o)
{
    static const char *const texts[] = {"text", "sentence", "sentence1", "premise", "question", "question1", NULL},
                             *const pairs[] = {"pair",      "text_pair", "sentence2", "hypothesis",
                                               "question2", "sentence",  NULL},
                             *const labels[] = {"label", "labels", "gold_label", "class", "score", NULL};
    tn_labelled                    *l = t->l;
    if (tn_json_type_of(o) != TN_JSON_OBJECT) return "not a JSON object";
    for (int i = 0; i < t->texts; i++) {
        const tn_json *v = member(o, t->name[i], i ? pairs : texts);
        if (tn_json_type_of(v) != TN_JSON_STRING)
            return i ? "no second text found: add a member \"pair\", or name another one with --pair"
                     : "no text found: add a member \"text\", or name another one with --text";
        const tn_text s = {tn_json_string(v), (size_t)tn_json_string_bytes(v)};
        if (blank(s)) return "the text is empty";
        if (memchr(s.at, 0, s.bytes)) return "the text holds a NUL";
        tn__labelled_text(l, s);
    }
    if (l->config.no_label) return NULL;
    const tn_json *v = member(o, t->name[t->texts], labels);
    const char    *bad = json_label(l, v);
    for (const tn_json *x = tn_json_type_of(v) == TN_JSON_ARRAY && !bad ? tn_json_first(v) : NULL; x && !bad;
         x = tn_json_next(x))
        bad = tn_json_type_of(x) == TN_JSON_ARRAY ? "the labels are arrays of arrays" : json_label(l, x);
    return bad;
}

static bool read_json(table *t, tn_text all)
{
    tn_text line;
    int64_t number = 0;
    for (size_t at = 0; tn_error() == TN_OK && tn__labelled_line(all, &at, &line);) {
        number++;
        if (blank(line)) continue;
        tn_error_state aside;
        char           message[300] = "";
        tn_error_push(&aside); /* a line that is not JSON may be skipped */
        tn_json *o = tn_json_parse(line.at, line.bytes);
        if (!o) snprintf(message, sizeof message, "not JSON: %.200s", tn_error_message());
        tn_error_pop(&aside);
        if (!o && !tn__labelled_bad(t->l, number, "%s", message)) return false;
        if (!o) continue;
        tn__labelled_begin(t->l, number, NULL);
        const char *bad = json_example(t, o);
        tn_json_free(o);
        if (bad ? !tn__labelled_bad(t->l, number, "%s", bad) : !tn__labelled_end(t->l)) return false;
    }
    return tn_error() == TN_OK;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Reads the next row's cells; false: end of the text, or raised. */
static bool next_row(const table *t, tn_text all, size_t *at, int64_t *line, int64_t *first, tn__cells *c,
                     const char **bad)
{
    tn_text text;
    *bad = NULL, *first = *line + 1;
    if (t->csv) {
        if (*at == 0) *at = tn__mark(all);
        if (*at >= all.bytes) return false;
        ++*line;
        return tn__cells_csv(c, all, at, line, bad);
    }
    if (!tn__labelled_line(all, at, &text)) return false;
    ++*line;
    return tn__cells_tabs(c, text);
}

static bool read_rows(table *t, tn_text all)
{
    tn__cells   c = {.n = 0};
    int64_t     line = 0, first;
    const char *bad;
    bool        fine = true, data;
    for (size_t at = 0; fine && next_row(t, all, &at, &line, &first, &c, &bad);) {
        if (!bad && c.n == 1 && blank(c.cell[0])) continue; /* an empty line */
        data = true;
        if (!bad && !t->sure) fine = arrange(t, &c, &data);
        if (bad) fine = tn__labelled_begin(t->l, first, NULL) && tn__labelled_bad(t->l, first, "%s", bad);
        else if (fine && data) fine = add_row(t, &c, first);
    }
    tn__cells_free(&c);
    return fine && tn_error() == TN_OK;
}

bool tn__labelled_read_table(tn_labelled *l, tn_text all)
{
    const tn_labelled_config c = l->config;
    table                    t = {.l = l, .csv = !strcmp(c.form, "csv"), .json = !strcmp(c.form, "jsonl")};
    const struct layout     *g = NULL;
    for (int i = 0; i < GLUE; i++)
        if (!strcasecmp(c.form, glue[i].name)) g = &glue[i];
    if (!g && !t.csv && !t.json && strcmp(c.form, "tsv") != 0)
        return tn_raise_false(
            TN_EINVAL,
            "%s: the format '%s' does not exist; expected tsv, csv, jsonl, or GLUE's cola, sst-2, mrpc, "
            "sts-b, qqp, mnli, qnli, rte or wnli",
            l->label, c.form);
    if (g && !strcmp(g->name, "sts-b")) l->config.problem = TN_REGRESSION;
    t.loose = g != NULL;
    t.name[t.texts++] = c.text ? c.text : g ? g->text : NULL;
    if (c.pair || c.pairs || (g && g->pair)) t.name[t.texts++] = c.pair ? c.pair : g ? g->pair : NULL;
    t.name[t.texts] = c.label ? c.label : g ? g->label : NULL;
    if (t.json && !all_differ(&t, t.texts + !c.no_label)) return false;
    return t.json ? read_json(&t, all) : read_rows(&t, all);
}
