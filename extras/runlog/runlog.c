/* runlog.c — writes rows of numbers at once as lines of JSON and CSV, and resumes the log of an interrupted run. */
#include "extras/runlog/runlog_private.h"

#include <math.h>

struct tn_runlog {
    tn_string       jsonl, csv, events; /* paths; empty: none */
    tn_json_writer *writer;
    tn_string       text;
    tn_string       heading; /* the first line of the CSV, without its end; empty: not known yet */
};

void tn_runlog_close(tn_runlog *l)
{
    if (!l) return;
    tn_string *texts[] = {&l->jsonl, &l->csv, &l->events, &l->text, &l->heading};
    for (int i = 0; i < 5; i++) tn_string_free(texts[i]);
    tn_json_writer_free(l->writer);
    tn_mem_put(l, sizeof *l);
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

/* The step of a row; TORN: not a complete row; FOREIGN: not the start of a row either. */
enum { TORN = -1, FOREIGN = -2 };
static int64_t whole(double v) { return v >= 0 && v < 0x1p53 && v == floor(v) ? (int64_t)v : FOREIGN; }
static int64_t step_of(tn_text line, bool csv)
{
    int64_t        step = TORN;
    tn_error_state aside;
    tn_error_push(&aside);
    if (csv) {
        double      v;
        const char *comma = memchr(line.at, ',', line.bytes);
        size_t      n = comma ? (size_t)(comma - line.at) : line.bytes;
        if (tn_parse_double(line.at, n, &v)) step = whole(v);
    } else {
        tn_json       *row = tn_json_parse(line.at, line.bytes);
        const tn_json *s = tn_json_get(row, "step");
        if (tn_json_type_of(row) == TN_JSON_OBJECT) step = FOREIGN;
        if (s && tn_json_type_of(s) == TN_JSON_INTEGER && tn_json_i64(s) >= 0) step = tn_json_i64(s);
        else if (s && tn_json_type_of(s) == TN_JSON_REAL) step = whole(tn_json_double(s));
        tn_json_free(row);
    }
    const bool no_memory = tn_error() == TN_ENOMEM;
    tn_error_pop(&aside);
    if (no_memory) tn_raise(TN_ENOMEM, "tn_runlog_open: out of memory for a row of a log");
    return step;
}

static bool is_heading(tn_text line)
{
    return line.bytes >= 4 && !memcmp(line.at, "step", 4) &&
           (line.bytes == 4 || line.at[4] == ',' || line.at[4] == '\r');
}

static bool foreign(const char *path, int64_t line)
{
    return tn_raise_false(
        TN_EFORMAT, "tn_runlog_open: '%s', line %lld is not a row of a run's log; choose another file or unset .resume",
        path, (long long)line);
}

/* Moves the rows to keep to the start of the text, and returns their bytes; -1: raised. These are all but rows of steps
 * after `last` and the end left by a killed run, which may be several lines, as a file system can lose any of the last
 * ones; a complete row after such a line means that the file is not a log. */
static int64_t keep_rows(tn_runlog *l, char *text, int64_t bytes, const char *path, bool csv, int64_t last)
{
    int64_t kept = 0, number = 1, torn = 0; /* torn: first line that is not a row */
    for (char *at = text, *end; (end = memchr(at, '\n', (size_t)(text + bytes - at))); at = end + 1, number++) {
        tn_text       line = {at, (size_t)(end - at)};
        const bool    head = csv && number == 1;
        const int64_t step = head || !line.bytes ? 0 : step_of(line, csv);
        if (tn_error() != TN_OK) return -1;
        if (head ? !is_heading(line) : step == FOREIGN || (number == 1 && step < 0 && *at != '{'))
            return foreign(path, number), -1;
        if (torn && line.bytes && step >= 0) return foreign(path, torn), -1;
        if (head && line.at[line.bytes - 1] == '\r') line.bytes--;
        if (head && tn_string_add(&l->heading, line) != TN_OK) return -1;
        if (step < 0 && !torn) torn = number;
        if (torn || step > last) continue;
        memmove(text + kept, at, (size_t)(end + 1 - at));
        kept += end + 1 - at;
    }
    return kept;
}

/* Rewrites the file if rows must be removed. */
static bool truncate_log(tn_runlog *l, const char *path, bool csv, int64_t last)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *file = tn_file_read(path, INT64_MAX);
    char          *text = file ? tn_data_mut(file) : NULL;
    const int64_t  bytes = text ? tn_numel(file) : 0, kept = bytes ? keep_rows(l, text, bytes, path, csv, last) : 0;
    const bool     done = tn_error() == TN_OK && (kept == bytes || tn_file_write(path, text, (size_t)kept) == TN_OK);
    tn_scope_end(s);
    return done;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Writes the first line of the CSV. */
static bool write_heading(tn_runlog *l, int n, const char *const *names)
{
    l->heading.bytes = 0;
    tn_string_add(&l->heading, tn_text_of("step"));
    for (int i = 0; i < n; i++) {
        tn_string_add(&l->heading, tn_text_of(","));
        tn_string_add(&l->heading, tn_text_of(names[i]));
    }
    tn_string_add(&l->heading, tn_text_of("\n"));
    const bool done = tn_error() == TN_OK && tn_file_append(l->csv.at, l->heading.at, l->heading.bytes) == TN_OK;
    if (l->heading.bytes) l->heading.bytes -= done ? 1 : l->heading.bytes;
    return done;
}

static bool valid_name(const char *name)
{
    if (!name || !*name || tn_utf8_valid(name, strlen(name)) < strlen(name) || !strcmp(name, "step")) return false;
    for (const char *p = name; *p; p++)
        if (*p == ',' || *p == '"' || (unsigned char)*p < ' ') return false;
    return true;
}

static bool open_text(tn_runlog *l, tn_string *f, const char *path, const tn_runlog_config *c)
{
    if (tn_string_add(f, tn_text_of(path)) != TN_OK) return false;
    if (!c->resume) return tn_file_write(path, NULL, 0) == TN_OK;
    return tn_file_append(path, NULL, 0) == TN_OK && truncate_log(l, path, f == &l->csv, c->step);
}

static bool config_fits(const tn_runlog_config *c)
{
    static const char *const who = "tn_runlog_open";
    if (c->n < 0 || !c->n != !c->columns)
        return tn_raise_false(TN_EINVAL, "%s: .n is %d, but .columns is %s", who, c->n,
                              c->columns ? "not NULL" : "NULL");
    if (c->csv && c->jsonl && !strcmp(c->csv, c->jsonl))
        return tn_raise_false(TN_EINVAL, "%s: .csv and .jsonl are the same file, '%s'", who, c->csv);
    for (int i = 0; i < c->n; i++) {
        if (!valid_name(c->columns[i]))
            return tn_raise_false(TN_EINVAL, "%s: column %d must be a name in UTF-8 without commas and quotes", who, i);
        for (int k = 0; k < i; k++)
            if (!strcmp(c->columns[i], c->columns[k]))
                return tn_raise_false(TN_EINVAL, "%s: column '%s' is given twice", who, c->columns[k]);
    }
    return true;
}

tn_runlog *tn_runlog_open_run(tn_runlog_config c)
{
    if (tn_blocked() || !config_fits(&c)) return NULL;
    tn_runlog *l = tn_mem_get(sizeof *l);
    if (!l) return NULL;
    bool done = (l->writer = tn_json_writer_new(0));
    if (done && c.jsonl) done = open_text(l, &l->jsonl, c.jsonl, &c);
    if (done && c.csv) done = open_text(l, &l->csv, c.csv, &c);
    if (done && c.csv && !l->heading.bytes && c.n > 0) done = write_heading(l, c.n, c.columns);
    if (done && c.tensorboard) done = tn__events_open(&l->events, c.tensorboard, c.resume ? c.step + 1 : -1);
    if (!done) tn_runlog_close(l), l = NULL;
    return l;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool put_json(tn_runlog *l, int64_t step, int n, const char *const *names, const double *v)
{
    size_t bytes;
    tn_json_writer_clear(l->writer);
    tn_json_open_object(l->writer, NULL);
    tn_json_put_i64(l->writer, "step", step);
    for (int i = 0; i < n; i++) {
        if (isfinite(v[i])) tn_json_put_double(l->writer, names[i], v[i]);
        else tn_json_put_null(l->writer, names[i]);
    }
    tn_json_close(l->writer);
    const char *text = tn_json_text(l->writer, &bytes);
    if (!text) return false;
    l->text.bytes = 0;
    tn_string_add(&l->text, (tn_text){text, bytes});
    tn_string_add(&l->text, tn_text_of("\n"));
    return tn_error() == TN_OK && tn_file_append(l->jsonl.at, l->text.at, l->text.bytes) == TN_OK;
}

static bool put_csv(tn_runlog *l, int64_t step, int n, const char *const *names, const double *v)
{
    char number[32];
    if (!l->heading.bytes && !write_heading(l, n, names)) return false;
    l->text.bytes = 0;
    snprintf(number, sizeof number, "%lld", (long long)step);
    tn_string_add(&l->text, tn_text_of(number));
    const char *const end = l->heading.at + l->heading.bytes;
    for (const char *at = memchr(l->heading.at, ',', l->heading.bytes), *next; at; at = next) {
        at++;
        next = memchr(at, ',', (size_t)(end - at));
        const size_t bytes = (size_t)((next ? next : end) - at);
        tn_string_add(&l->text, tn_text_of(","));
        for (int i = 0; i < n; i++) {
            if (strlen(names[i]) != bytes || memcmp(names[i], at, bytes) != 0) continue;
            tn_format_double(v[i], number);
            tn_string_add(&l->text, tn_text_of(number));
            break;
        }
    }
    tn_string_add(&l->text, tn_text_of("\n"));
    return tn_error() == TN_OK && tn_file_append(l->csv.at, l->text.at, l->text.bytes) == TN_OK;
}

tn_status tn_runlog_put(tn_runlog *l, int64_t step, int n, const char *const *names, const double *values)
{
    if (tn_blocked()) return tn_error();
    if (!l || step < 0 || n < 0 || n > 1000 || (n && (!names || !values)))
        return tn_raise(TN_EINVAL, "tn_runlog_put: %s",
                        !l         ? "l is NULL"
                        : step < 0 ? "step is negative"
                                   : "n must be 0 to 1000, and names and values not NULL");
    for (int i = 0; i < n; i++)
        if (!valid_name(names[i]))
            return tn_raise(TN_EINVAL,
                            "tn_runlog_put: name %d must be in UTF-8, without commas and quotes, and not \"step\"", i);
    bool done = !l->jsonl.bytes || put_json(l, step, n, names, values);
    done = done && (!l->csv.bytes || put_csv(l, step, n, names, values));
    if (done && l->events.bytes) tn__events_put(l->events.at, &l->text, step, n, names, values);
    return tn_error();
}
