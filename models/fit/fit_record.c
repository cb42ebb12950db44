/* fit_record.c — record.jsonl, in the folder of a run: the arguments of tn_fit, what each step computed, and sums of
 * the state at each training checkpoint. A run that is repeated from one has the same lines. One JSON object per line:
 *
 *     {"run":0,"version":"0.9.0","steps":100,…,"config":{…},"chain":"…"}
 *     {"step":1,"batch":"…","loss":6.25,"lr":0.001,"chain":"…"}
 *     {"valid":10,"value":5.5,"chain":"…"}
 *     {"best":10,"weights":"…","chain":"…"}
 *     {"point":10,"weights":"…","optimizer":"…","generators":"…","chain":"…"}
 *
 * Sums are FNV-1a of 64 bits; those of a state are over the names and CRC-32s of its tensors. "chain" is the sum of all
 * lines up to this one, without this member: a changed line is found without a replay. Lines are appended before each
 * training checkpoint. A resumed run removes those after its checkpoint, so that interruptions leave no trace. */
#include "core/files/io.h"
#include "models/fit/fit_private.h"

#include <stddef.h>

enum { TAIL = sizeof ",\"chain\":\"0123456789abcdef\"}" - 1, MOST_BUFFERED = 1 << 20 };
static const int64_t     most_bytes = INT64_C(1) << 33;
static const char *const kinds[] = {"run", "step", "valid", "best", "point"};
static const char *const sum_names[] = {"weights", "optimizer", "generators"};

/* ---- the arguments of a run -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t      at;
    enum { WHOLE, REAL, INT, FLAG } type;
} members[] = {{"steps", offsetof(tn_fit_args, steps), WHOLE},
               {"epochs", offsetof(tn_fit_args, epochs), WHOLE},
               {"accumulate", offsetof(tn_fit_args, accumulate), WHOLE},
               {"autocast", offsetof(tn_fit_args, autocast), FLAG},
               {"shards", offsetof(tn_fit_args, shards), INT},
               {"lr", offsetof(tn_fit_args, lr), REAL},
               {"weight_decay", offsetof(tn_fit_args, weight_decay), REAL},
               {"clip", offsetof(tn_fit_args, clip), REAL},
               {"warmup", offsetof(tn_fit_args, warmup), WHOLE},
               {"decay", offsetof(tn_fit_args, decay), INT},
               {"rising", offsetof(tn_fit_args, rising), FLAG},
               {"valid_every", offsetof(tn_fit_args, valid_every), WHOLE},
               {"min_delta", offsetof(tn_fit_args, min_delta), REAL},
               {"restore_best", offsetof(tn_fit_args, restore_best), FLAG},
               {"save_every", offsetof(tn_fit_args, save_every), WHOLE}};
enum { MEMBERS = sizeof members / sizeof *members };

static double member(const tn_fit_args *c, int i)
{
    const char *at = (const char *)c + members[i].at;
    switch (members[i].type) {
    case WHOLE: return (double)*(const int64_t *)(const void *)at;
    case REAL: return *(const double *)(const void *)at;
    case INT: return !c->world && !strcmp(members[i].name, "shards") ? 0 : *(const int *)(const void *)at;
    default: return *(const bool *)(const void *)at;
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void put_sum(tn_json_writer *w, const char *name, uint64_t sum)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    if (sum) tn_json_put_string(w, name, text);
}

static void put_run(tn_json_writer *w, const tn_fit_args *c)
{
    tn_json_put_string(w, "version", tn_version());
    for (int i = 0; i < MEMBERS; i++) {
        const double v = member(c, i);
        if (members[i].type == REAL) tn_json_put_double(w, members[i].name, v);
        else tn_json_put_i64(w, members[i].name, (int64_t)v);
    }
    tn_json *config = c->config ? tn_json_parse(c->config, strlen(c->config)) : NULL;
    if (config) tn_json_put(w, "config", config);
    tn_json_free(config);
}

/* The line of an entry without "chain" and the closing brace, in f->line; NULL: raised. */
static const char *line_of(tn__fit *f, const tn__run_entry *e, size_t *bytes)
{
    tn_json_writer *w = f->line;
    tn_json_writer_clear(w);
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, kinds[e->kind], e->step);
    if (e->kind == TN__RUN) put_run(w, &f->c);
    if (e->kind == TN__ENTRY_STEP) {
        put_sum(w, "batch", e->sums[0]);
        tn__json_put_number(w, "loss", e->value);
        tn__json_put_number(w, "lr", e->lr);
    }
    if (e->kind == TN__VALID) tn__json_put_number(w, "value", e->value);
    for (int i = 0; i < 3 && e->kind >= TN__BEST; i++) put_sum(w, sum_names[i], e->sums[i]);
    if (e->end) tn_json_put_bool(w, "end", true);
    tn_json_close(w);
    const char *text = tn_json_text(w, bytes);
    if (text) --*bytes;
    return text;
}

bool tn__record_put(tn__fit *f, tn__run_entry e)
{
    char   tail[TAIL + 2];
    size_t bytes = 0;
    e.step = f->r.steps;
    if (tn_error() != TN_OK) return false;
    if (!f->line) return true;
    if (f->pending.bytes && e.kind != TN__RUN) { /* the run continues */
        f->lines.bytes -= f->pending.bytes, f->chain = f->pending.chain;
        f->pending.bytes = 0;
    }
    const char *text = line_of(f, &e, &bytes);
    if (!text) return false;
    const uint64_t chain = tn__fnv1a(f->chain, text, bytes);
    snprintf(tail, sizeof tail, ",\"chain\":\"%016llx\"}\n", (unsigned long long)chain);
    const size_t before = f->lines.bytes;
    if (tn_string_add(&f->lines, (tn_text){text, bytes}) != TN_OK ||
        tn_string_add(&f->lines, tn_text_of(tail)) != TN_OK)
        return f->lines.bytes = before, false;
    f->chain = chain;
    return f->lines.bytes < MOST_BUFFERED || tn__record_flush(f, false);
}

/* A write that failed may have left a part of the lines in the file: a resumed run removes it. */
bool tn__record_flush(tn__fit *f, bool sync)
{
    char     path[TN__FILE_ROOM], label[TN__LABEL];
    tn__sink s;
    if (!f->lines.bytes) return true;
    tn__label(label, "tn_fit", tn__folder_record(&f->folder, path));
    if (!tn__sink_append(&s, label, path)) return false;
    const bool done = tn__sink_write(&s, f->lines.at, f->lines.bytes);
    f->lines.bytes = f->pending.bytes = 0;
    return tn__sink_end(&s, done && sync) == TN_OK;
}

void tn__record_end(tn__fit *f)
{
    tn_error_state aside;
    tn_error_push(&aside); /* steps after the last training checkpoint, which nothing needs */
    if (aside.code == TN_OK) tn__record_flush(f, false);
    tn_error_pop(&aside);
    tn_json_writer_free(f->line);
    tn_string_free(&f->lines);
    f->line = NULL;
}

/* ---- sums of a state --------------------------------------------------------------------------------------------- */

static uint64_t sum_of_json(uint64_t sum, const tn_json *v)
{
    size_t          bytes = 0;
    tn_json_writer *w = v ? tn_json_writer_new(0) : NULL;
    if (w) tn_json_put(w, NULL, v);
    const char *text = w ? tn_json_text(w, &bytes) : NULL;
    if (text) sum = tn__fnv1a(sum, text, bytes);
    tn_json_writer_free(w);
    return sum;
}

static bool is_of_rows(void *module, const char *name)
{
    for (tn_each e = tn_module_each(module, TN_EACH_BUFFER); tn_next(&e);)
        if (e.rows && !strncmp(name, "model.", 6) && !strcmp(e.name, name + 6)) return true;
    return false;
}

void tn__record_sums(const tn_json *state, void *without_rows, uint64_t to[3])
{
    to[0] = to[1] = to[2] = TN__FNV1A;
    for (const tn_json *v = tn_json_first(tn_json_get(state, "crc32")); v; v = tn_json_next(v)) {
        const char *name = tn_json_key(v), *crc = tn_json_string(v);
        uint64_t   *sum = to + (strncmp(name, "model.", 6) != 0);
        if (without_rows && is_of_rows(without_rows, name)) continue;
        *sum = tn__fnv1a(tn__fnv1a(*sum, name, strlen(name) + 1), crc, strlen(crc));
    }
    to[0] = sum_of_json(to[0], tn_json_get(state, "frozen"));
    to[1] = sum_of_json(sum_of_json(to[1], tn_json_get(state, "optimizer")), tn_json_get(state, "ema"));
    to[2] = sum_of_json(to[2], tn_json_get(state, "generators"));
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct {
    tn__run_entry_kind kind;
    bool               end;
    int64_t            step, at; /* at: its byte in the file */
    uint64_t           chain;    /* hash of all lines up to this one */
} line;
typedef struct {
    tn_tensor *text;
    line      *entry; /* [n] */
    int64_t    n, room;
    int64_t    bytes; /* of the intact lines */
} record;

/* Parses an intact line; false: it has no known form, or raised (no memory). */
static bool parse(line *e, const char *text, size_t bytes)
{
    tn_json       *j = tn_json_parse(text, bytes);
    const tn_json *first = tn_json_first(j);
    int            k = 0;
    while (k <= TN__POINT && strcmp(kinds[k], tn_json_key(first)) != 0) k++;
    e->kind = (tn__run_entry_kind)k, e->step = k <= TN__POINT ? tn_json_i64(first) : -1;
    e->end = tn_json_bool_or(tn_json_get(j, "end"), false);
    tn_json_free(j);
    if (tn_error() == TN_ENOMEM) return false;
    const bool good = tn_error() == TN_OK && e->step >= 0;
    if (tn_error() != TN_OK) tn_clear_error();
    return good;
}

/* Reads the line from `text`, of `bytes` bytes with its line end. False: it is not intact, or raised. */
static bool read_line(record *r, const char *text, size_t bytes)
{
    char tail[TAIL + 2];
    line e = {.at = r->bytes};
    if (bytes < TAIL + 2) return false;
    e.chain = tn__fnv1a(r->n ? r->entry[r->n - 1].chain : TN__FNV1A, text, bytes - TAIL - 1);
    snprintf(tail, sizeof tail, ",\"chain\":\"%016llx\"}\n", (unsigned long long)e.chain);
    if (memcmp(text + bytes - TAIL - 1, tail, TAIL + 1) != 0 || !parse(&e, text, bytes - 1)) return false;
    r->entry[r->n++] = e;
    r->bytes += (int64_t)bytes;
    return true;
}

/* Reads the lines up to the first that is not intact. */
static void read_record(record *r, const char *path)
{
    r->text = tn_file_read(path, most_bytes);
    const char *at = r->text ? tn_data(r->text) : "", *end = at + (r->text ? tn_numel(r->text) : 0), *stop;
    for (const char *c = at; c < end; c++) r->room += *c == '\n';
    if (!(r->entry = tn_mem_get((size_t)r->room * sizeof *r->entry))) return;
    while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) && read_line(r, at, (size_t)(stop + 1 - at)))
        at = stop + 1;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

/* The number of entries up to a run's step, without a point that was written because of a stop or the end: if the run
 * continues, the next checkpoint replaces it. *point: a scheduled point of the step is the last of them. 0: steps are
 * missing. */
static int64_t entries_until(const record *r, int64_t step, bool *point)
{
    int64_t n = 0, scheduled = 0, last = -1;
    *point = false;
    for (; n < r->n && r->entry[n].step <= step; n++) {
        const line *e = r->entry + n;
        if (e->kind == TN__RUN || e->kind == TN__ENTRY_STEP) last = e->step;
        if (e->kind != TN__POINT || e->step != step) continue;
        if (e->end) break;
        scheduled = n + 1;
    }
    if (last != step) return 0;
    const bool ended = n < r->n && r->entry[n].step == step;
    *point = scheduled && (!ended || scheduled == n);
    return scheduled && !ended ? scheduled : n;
}

/* True if the newest TN__RUN line of the n entries has the arguments of this call. */
static bool same_run(tn__fit *f, const record *r, int64_t n)
{
    size_t bytes = 0;
    while (n > 0 && r->entry[n - 1].kind != TN__RUN) n--;
    if (!n) return false;
    const line         *e = r->entry + n - 1;
    const tn__run_entry same = {.kind = TN__RUN, .step = e->step};
    const char         *was = (const char *)tn_data(r->text) + e->at, *text = line_of(f, &same, &bytes);
    return text && e->at + (int64_t)bytes < tn_numel(r->text) && !memcmp(was, text, bytes) &&
           !strncmp(was + bytes, ",\"chain\"", 8);
}

/* Keeps the entries up to the resumed step. False: raised. */
static bool continue_file(tn__fit *f, const tn_json *resumed, const char *path)
{
    static const char note[] =
        "record.jsonl does not contain all steps before this one: only the next ones can be verified";
    const tn_scope s = tn_scope_begin();
    record         r = {.n = 0};
    bool           point = false, same = false;
    tn__run_entry  e = {.kind = TN__POINT};
    if (tn__file_exists(path)) read_record(&r, path);
    const int64_t n = tn_error() == TN_OK ? entries_until(&r, f->r.steps, &point) : 0;
    const int64_t bytes = n == r.n ? r.bytes : r.entry[n].at;
    if (n) f->chain = r.entry[n - 1].chain, same = same_run(f, &r, n);
    if (n)
        e.end = f->valid_due || f->unscheduled == f->r.steps ||
                (n < r.n && r.entry[n].end && r.entry[n].step == f->r.steps);
    if (tn_error() == TN_OK && (!r.text || bytes < tn_numel(r.text)))
        (void)!tn_file_write(path, n ? tn_data(r.text) : "", n ? (size_t)bytes : 0); /* the caller sees the error */
    tn_mem_put(r.entry, (size_t)r.room * sizeof *r.entry);
    tn_scope_end(s);
    if (!n) tn__fit_report(f, TN_FIT_NOTE, note, false);
    if (!same) tn__record_put(f, (tn__run_entry){.kind = TN__RUN});
    if (n && point && !e.end) return true;
    tn__record_sums(resumed, NULL, e.sums);
    const tn__pending before = {.bytes = f->lines.bytes, .chain = f->chain};
    const bool        done = tn__record_put(f, e);
    if (e.end) f->pending = (tn__pending){.bytes = f->lines.bytes - before.bytes, .chain = before.chain};
    return done;
}

bool tn__record_begin(tn__fit *f, const tn_json *resumed)
{
    char path[TN__FILE_ROOM];
    if (tn_error() != TN_OK || !tn__fit_is_writer(f)) return tn_error() == TN_OK;
    f->chain = TN__FNV1A;
    tn__folder_record(&f->folder, path);
    if (!(f->line = tn_json_writer_new(0))) return false;
    if (resumed) return continue_file(f, resumed, path) && tn_error() == TN_OK;
    if (tn__file_exists(path) && tn_file_write(path, "", 0) != TN_OK) return false;
    return tn__record_put(f, (tn__run_entry){.kind = TN__RUN});
}
