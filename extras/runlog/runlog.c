/* runlog.c — writes rows of numbers at once as lines of JSON and CSV, and resumes the log of an interrupted run. */
#include "extras/runlog/runlog_private.h"
#include "core/base/toolbox.h"

#include <math.h>

enum { MAX_ROW = 1 << 20 }; /* bytes; a longer line was not written by this file */

struct tn_runlog {
    tn__log_file    jsonl, csv, events;
    tn_json_writer *writer;
    tn_string       text;
    tn__strings     columns;
    bool            has_columns;
};

void tn_runlog_close(tn_runlog *l)
{
    if (!l) return;
    tn__log_file *files[] = {&l->jsonl, &l->csv, &l->events};
    for (int i = 0; i < 3; i++)
        if (files[i]->open) tn__sink_end(&files[i]->sink, false);
    tn_json_writer_free(l->writer);
    tn_string_free(&l->text);
    tn__strings_free(&l->columns);
    tn__mem_put(l, sizeof *l);
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

static bool exists(const char *path) /* and is not empty */
{
    tn_error_state aside;
    tn__source     s;
    tn_error_push(&aside);
    bool there = tn__source_open(&s, "", path) && s.size > 0;
    tn__source_close(&s);
    tn_error_pop(&aside);
    return there;
}

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

static bool read_columns(tn_runlog *l, tn_text line)
{
    if (line.bytes && line.at[line.bytes - 1] == '\r') line.bytes--;
    bool step = true;
    for (size_t at = 0, n; at <= line.bytes; at += n + 1, step = false) {
        const char *comma = memchr(line.at + at, ',', line.bytes - at);
        n = comma ? (size_t)(comma - line.at) - at : line.bytes - at;
        if (!step && tn__strings_add(&l->columns, line.at + at, n) < 0) return false;
    }
    l->has_columns = true;
    return true;
}

typedef struct {
    int64_t from, to; /* byte range of the file */
} part;
typedef struct {
    part   *at;
    int64_t n, room, bytes;
} parts;

static bool keep_range(parts *p, int64_t from, int64_t to)
{
    p->bytes += to - from;
    if (p->n && p->at[p->n - 1].to == from) return p->at[p->n - 1].to = to, true;
    if (!tn__grown(&p->at, &p->room, p->n + 1, sizeof *p->at)) return false;
    p->at[p->n++] = (part){from, to};
    return true;
}

static bool foreign(const char *path, int64_t line)
{
    return tn_raise_false(
        TN_EFORMAT, "tn_runlog_open: '%s', line %lld is not a row of a run's log; choose another file or unset .resume",
        path, (long long)line);
}

/* Finds the parts of a log to keep: all but rows of steps after `last` and the end left by a killed run, which may be
 * anything. Raises if the file starts differently or has other lines between its rows: then it is not a log. */
static bool find_parts(tn_runlog *l, tn__reader *r, const char *path, bool csv, int64_t last, parts *p)
{
    tn_text line;
    int64_t torn = 0; /* first line that is not a row */
    for (int64_t at = 0, next; tn__reader_line(r, &line); at = next) {
        next = r->at - (int64_t)(r->have - r->used);
        if (line.at + line.bytes == r->buffer + r->have) break; /* the last line has no line end */
        const bool    head = csv && r->line == 1;
        const int64_t step = head || !line.bytes ? 0 : step_of(line, csv);
        if (tn__self.error != TN_OK) break;
        if (head ? !is_heading(line) : step == FOREIGN || (r->line == 1 && step < 0 && line.at[0] != '{'))
            return foreign(path, r->line);
        if (torn && line.bytes && step >= 0) return foreign(path, torn);
        if (head && !read_columns(l, line)) return false;
        if (step < 0 && !torn) torn = r->line;
        if (!torn && step <= last && !keep_range(p, at, next)) return false;
    }
    return tn__self.error == TN_OK;
}

/* Rewrites the file if rows must be removed. */
static bool truncate_log(tn_runlog *l, const char *path, bool csv, int64_t last)
{
    enum { BLOCK = 1 << 16 };
    tn__reader r;
    tn__sink   to;
    parts      p = {NULL, 0, 0, 0};
    if (!tn__reader_open(&r, "tn_runlog_open", path)) return false;
    r.most = MAX_ROW;
    bool  done = find_parts(l, &r, path, csv, last, &p);
    char *block = NULL;
    if (done && p.bytes < r.source.size && (done = tn__sink_open(&to, r.label, path, p.bytes))) {
        done = (block = tn__mem_get(BLOCK));
        for (int64_t i = 0; i < p.n; i++)
            for (int64_t from = p.at[i].from; done && from < p.at[i].to; from += BLOCK) {
                size_t n = (size_t)tn__min_i64(BLOCK, p.at[i].to - from);
                done = tn__source_read(&r.source, block, from, n) && tn__sink_write(&to, block, n);
            }
        done = tn__sink_end(&to, done) == TN_OK;
        tn__mem_put(block, BLOCK);
    }
    tn__mem_put(p.at, (size_t)p.room * sizeof *p.at);
    tn__reader_close(&r);
    return done;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool write_columns(tn_runlog *l)
{
    l->text.bytes = 0;
    tn_string_add(&l->text, tn_text_of("step"));
    for (int64_t i = 0; i < (int64_t)l->columns.n; i++) {
        tn_string_add(&l->text, tn_text_of(","));
        tn_string_add(&l->text, tn__strings_at(&l->columns, i));
    }
    tn_string_add(&l->text, tn_text_of("\n"));
    return l->has_columns = tn__self.error == TN_OK && tn__sink_write(&l->csv.sink, l->text.at, l->text.bytes);
}

static bool valid_name(const char *name)
{
    if (!name || !*name || tn_utf8_valid(name, strlen(name)) < strlen(name) || !strcmp(name, "step")) return false;
    for (const char *p = name; *p; p++)
        if (*p == ',' || *p == '"' || (unsigned char)*p < ' ') return false;
    return true;
}

static bool open_text(tn_runlog *l, tn__log_file *f, const char *path, const tn_runlog_config *c)
{
    bool there = exists(path);
    if (there && c->resume && !truncate_log(l, path, f == &l->csv, c->step)) return false;
    if (there && !c->resume && tn_file_write(path, NULL, 0) != TN_OK) return false;
    return tn__log_append(f, path);
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
    if (tn__blocked() || !config_fits(&c)) return NULL;
    tn_runlog *l = tn__mem_zeroed(sizeof *l);
    if (!l) return NULL;
    bool done = (l->writer = tn_json_writer_new(0));
    if (done && c.jsonl) done = open_text(l, &l->jsonl, c.jsonl, &c);
    if (done && c.csv) done = open_text(l, &l->csv, c.csv, &c);
    if (done && c.csv && !l->has_columns && c.n > 0) {
        for (int i = 0; done && i < c.n; i++)
            done = tn__strings_add(&l->columns, c.columns[i], strlen(c.columns[i])) >= 0;
        done = done && write_columns(l);
    }
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
    return tn__self.error == TN_OK && tn__sink_write(&l->jsonl.sink, l->text.at, l->text.bytes);
}

static bool put_csv(tn_runlog *l, int64_t step, int n, const char *const *names, const double *v)
{
    char number[32];
    if (!l->has_columns) {
        for (int i = 0; i < n; i++)
            if (tn__strings_add(&l->columns, names[i], strlen(names[i])) < 0) return false;
        if (!write_columns(l)) return false;
    }
    l->text.bytes = 0;
    snprintf(number, sizeof number, "%lld", (long long)step);
    tn_string_add(&l->text, tn_text_of(number));
    for (int64_t c = 0; c < (int64_t)l->columns.n; c++) {
        tn_text column = tn__strings_at(&l->columns, c);
        tn_string_add(&l->text, tn_text_of(","));
        for (int i = 0; i < n; i++) {
            if (strlen(names[i]) != column.bytes || memcmp(names[i], column.at, column.bytes) != 0) continue;
            tn_format_double(v[i], number);
            tn_string_add(&l->text, tn_text_of(number));
            break;
        }
    }
    tn_string_add(&l->text, tn_text_of("\n"));
    return tn__self.error == TN_OK && tn__sink_write(&l->csv.sink, l->text.at, l->text.bytes);
}

tn_status tn_runlog_put(tn_runlog *l, int64_t step, int n, const char *const *names, const double *values)
{
    if (tn__blocked()) return tn__self.error;
    if (!l || step < 0 || n < 0 || n > 1000 || (n && (!names || !values)))
        return tn_raise(TN_EINVAL, "tn_runlog_put: %s",
                        !l         ? "l is NULL"
                        : step < 0 ? "step is negative"
                                   : "n must be 0 to 1000, and names and values not NULL");
    for (int i = 0; i < n; i++)
        if (!valid_name(names[i]))
            return tn_raise(TN_EINVAL,
                            "tn_runlog_put: name %d must be in UTF-8, without commas and quotes, and not \"step\"", i);
    bool done = !l->jsonl.open || put_json(l, step, n, names, values);
    done = done && (!l->csv.open || put_csv(l, step, n, names, values));
    if (done && l->events.open) tn__events_put(&l->events, &l->text, step, n, names, values);
    return tn__self.error;
}
