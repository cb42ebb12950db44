/* profile_show.c — the output of a profile: rows, a table, and a trace for chrome://tracing and Perfetto. */
#include "autograd/tape/profile.h"
#include "core/base/checks.h"

#include <string.h>

bool tn_profile_row_at(const tn_profile *p, int64_t i, tn_profile_row *row)
{
    if (!tn__not_null("tn_profile_row_at", "the row", row)) return false;
    *row = (tn_profile_row){0};
    for (int64_t k = 0; p && k < p->entries; k++) {
        const tn__timing *e = p->entry + k;
        if (e->kind == TN__TIMED_INNER || i-- > 0) continue;
        *row = (tn_profile_row){.module = e->module,
                                .name = e->name,
                                .span = e->kind == TN__TIMED_SPAN,
                                .calls = e->calls[0],
                                .backward_calls = e->calls[1],
                                .bytes = e->bytes[0],
                                .backward_bytes = e->bytes[1],
                                .seconds = 1e-9 * (double)e->ns[0],
                                .backward_seconds = 1e-9 * (double)e->ns[1]};
        return true;
    }
    return false;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int64_t total_ns(const tn__timing *e) { return e->ns[0] + e->ns[1]; }
static int64_t total_bytes(const tn__timing *e) { return e->bytes[0] + e->bytes[1]; }
/* What the rows are ordered by. */
static int64_t weight(const tn_profile *p, const tn__timing *e) { return p->by_bytes ? total_bytes(e) : total_ns(e); }

static void add(tn__timing *sum, const tn__timing *e)
{
    for (int i = 0; i < 2; i++) sum->calls[i] += e->calls[i], sum->ns[i] += e->ns[i], sum->bytes[i] += e->bytes[i];
}

static void calls_and_ms(FILE *to, int64_t calls, int64_t ns)
{
    const int64_t tenths = (ns + 50000) / 100000; /* of a millisecond */
    if (calls) fprintf(to, "%9lld %8lld.%lld", (long long)calls, (long long)(tenths / 10), (long long)(tenths % 10));
    else fprintf(to, "%9s %10s", "", "");
}

static void line(FILE *to, const tn__timing *e, int64_t whole, const char *first, const char *second)
{
    const int64_t share = whole > 0 ? (1000 * total_ns(e) + whole / 2) / whole : 0; /* per mille */
    fprintf(to, "%4lld.%lld ", (long long)(share / 10), (long long)(share % 10));
    calls_and_ms(to, e->calls[0], e->ns[0]);
    calls_and_ms(to, e->calls[1], e->ns[1]);
    const int64_t rate = total_ns(e) ? 10 * total_bytes(e) / total_ns(e) : 0; /* in 0.1 GB/s */
    if (total_bytes(e))
        fprintf(to, "%9lld %6lld.%lld", (long long)(total_bytes(e) / 1000000), (long long)(rate / 10),
                (long long)(rate % 10));
    else fprintf(to, "%9s %8s", "", "");
    fprintf(to, "  %s%s%s\n", first, *second ? "  " : "", second);
}

static void title(FILE *to, const char *words)
{
    fprintf(to, "\n%6s %20s%20s%18s\n%6s %9s %10s%9s %10s%9s %8s  %s\n", "", "forward", "backward", "both", "%",
            "calls", "ms", "calls", "ms", "MB", "GB/s", words);
}

/* True if `module` is the module path[0 … length), or one inside it. */
static bool within(const char *module, const char *path, size_t length)
{
    return !strncmp(module, path, length) && (!module[length] || module[length] == '.' || !length);
}

/* Tests whether entry e belongs in the same sum as `like`. */
typedef bool match(const tn__timing *e, const tn__timing *like, size_t length);
static bool  same_name(const tn__timing *e, const tn__timing *like, size_t length)
{
    (void)length;
    return e->kind == like->kind && !strcmp(e->name, like->name);
}
static bool same_module(const tn__timing *e, const tn__timing *like, size_t length)
{
    return e->kind == TN__TIMED_OP && within(e->module, like->module, length);
}
static bool same_entry(const tn__timing *e, const tn__timing *like, size_t length) { return (void)length, e == like; }

/* The sum over all rows that match `like`. *first: no earlier entry matches, so this sum was not printed before. */
static tn__timing sum_of(const tn_profile *p, match *m, const tn__timing *like, size_t length, bool *first)
{
    tn__timing sum = {.kind = like->kind};
    *first = true;
    for (const tn__timing *e = p->entry; e < p->entry + p->entries; e++) {
        if (e->kind == TN__TIMED_INNER || !m(e, like, length)) continue;
        *first = *first && e >= like;
        add(&sum, e);
    }
    return sum;
}

/* Prints sums in falling order of weight, by repeated search: tables are short, and this needs no memory. */
static void by_weight(FILE *to, const tn_profile *p, match *m, bool modules, int64_t whole)
{
    int64_t last = INT64_MAX, last_at = -1;
    for (;;) {
        tn__timing best = {.ns = {-1, 0}, .bytes = {-1, 0}};
        int64_t    best_at = -1;
        for (int64_t i = 0; i < p->entries; i++) {
            bool first;
            if (p->entry[i].kind == TN__TIMED_INNER) continue;
            const tn__timing s = sum_of(p, m, p->entry + i, 0, &first);
            const int64_t    w = weight(p, &s);
            if (first && (w < last || (w == last && i > last_at)) && w > weight(p, &best)) best = s, best_at = i;
        }
        if (best_at < 0) return;
        last = weight(p, &best), last_at = best_at;
        const tn__timing *e = p->entry + best_at;
        line(to, &best, whole, modules ? (*e->module ? e->module : "-") : e->name, modules ? e->name : "");
    }
}

static void by_module(FILE *to, const tn_profile *p, int64_t whole)
{
    for (const tn__timing *e = p->entry; e < p->entry + p->entries; e++)
        for (size_t length = strcspn(e->module, "."); e->kind == TN__TIMED_OP && *e->module;) {
            bool             first;
            char             path[512];
            const tn__timing s = sum_of(p, same_module, e, length, &first);
            snprintf(path, sizeof path, "%.*s", (int)length, e->module);
            if (first) line(to, &s, whole, path, "");
            if (!e->module[length]) break;
            length += 1 + strcspn(e->module + length + 1, ".");
        }
}

void tn_profile_table(FILE *to, const tn_profile *p)
{
    if (!to || !p) return;
    int64_t timed = 0, whole = p->ns;
    for (int64_t i = 0; i < p->entries; i++)
        if (p->entry[i].kind != TN__TIMED_INNER) timed += total_ns(p->entry + i);
    if (p->open || whole < timed) whole = timed;
    fprintf(to, "profile: %lld ms, of which %lld in ops and spans\n", (long long)(whole / 1000000),
            (long long)(timed / 1000000));
    title(to, "op, or span without the ops inside it");
    by_weight(to, p, same_name, false, whole);
    title(to, "module, with its submodules");
    by_module(to, p, whole);
    title(to, "module and op");
    by_weight(to, p, same_entry, true, whole);
}

/* ---- the trace --------------------------------------------------------------------------------------------------- */

tn_status tn_profile_trace(const tn_profile *p, const char *path)
{
    static const char *const kinds[] = {"forward", "backward"};
    if (tn__blocked()) return tn__self.error;
    if (!p || !path) return tn_raise(TN_EINVAL, "tn_profile_trace: the profile or the path is NULL");
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "displayTimeUnit", "ms");
    tn_json_put_i64(w, "lostEvents", p->lost);
    tn_json_open_array(w, "traceEvents");
    for (int64_t i = 0; i < p->events && tn__self.error == TN_OK; i++) {
        const tn__timed_event *e = p->event + i;
        const tn__timing      *t = p->entry + e->entry;
        tn_json_open_object(w, NULL);
        tn_json_put_string(w, "name", t->name);
        tn_json_put_string(w, "cat", t->kind == TN__TIMED_SPAN ? "span" : kinds[e->backward]);
        tn_json_put_string(w, "ph", "X"); /* a complete event: start and duration, in microseconds */
        tn_json_put_double(w, "ts", (double)(e->start - p->began) / 1e3);
        tn_json_put_double(w, "dur", (double)e->ns / 1e3);
        tn_json_put_i64(w, "pid", 1);
        tn_json_put_i64(w, "tid", 1);
        tn_json_open_object(w, "args");
        tn_json_put_string(w, "module", t->module);
        tn_json_close(w);
        tn_json_close(w);
    }
    tn_json_close(w);
    tn_json_close(w);
    const tn_status status = tn_json_save(w, path);
    tn_json_writer_free(w);
    return status;
}

tn_status tn_profile_close(tn_profile *p, FILE *to)
{
    tn_status status = TN_OK;
    tn_profile_end(p);
    if (p && to) tn_profile_table(to, p);
    if (p && p->trace) status = tn_profile_trace(p, p->trace);
    tn_profile_free(p);
    return status;
}
