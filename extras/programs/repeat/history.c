/* history.c — reads record.jsonl of a run: see replay.h, and models/fit/fit_record.c for its lines. */
#include "replay.h"

#include "programs/common/checksum.h"

#include <stdlib.h>
#include <string.h>

static void *zeroed(int64_t n, size_t size)
{
    void *p = calloc((size_t)n, size);
    if (!p) tn_raise(TN_ENOMEM, "no memory for %lld elements of %zu bytes", (long long)n, size);
    return p;
}

/* The step of a line, and its kind: the first member. */
static int64_t step_of(const tn_json *line, const char **kind)
{
    const tn_json *first = tn_json_first(line);
    *kind = tn_json_key(first);
    return tn_json_i64(first);
}

static uint64_t hash_of(const tn_json *line) { return strtoull(tn_json_string(tn_json_get(line, "batch")), NULL, 16); }

static double number_of(const tn_json *line, const char *name)
{
    const tn_json *v = tn_json_get(line, name);
    if (tn_json_type_of(v) != TN_JSON_STRING) return tn_json_double_or(v, NAN);
    return *tn_json_string(v) == '-' ? -INFINITY : INFINITY;
}

static void add(history *h, const tn_json *line, tn_text text)
{
    const char   *kind;
    const int64_t step = step_of(line, &kind);
    if (tn_error() != TN_OK || step < 0 || step > h->last) return;
    h->line[h->lines++] = (history_line){*kind, tn_json_bool_or(tn_json_get(line, "end"), false), step, text};
    if (!strcmp(kind, "run")) h->part[h->parts++] = (history_part){step, tn_json_i64(tn_json_need(line, "steps"))};
    else if (!strcmp(kind, "step")) {
        if (step < h->first) h->first = step;
        h->loss[step] = number_of(line, "loss"), h->lr[step] = number_of(line, "lr"), h->batch[step] = hash_of(line);
        h->ended = false;
    } else if (!strcmp(kind, "point")) h->ended = h->line[h->lines - 1].end;
}

/* Each line ends with the hash of all lines up to it. Sets the number of those before the first that was changed. */
static int64_t intact(const tn_lines *lines)
{
    enum { TAIL = sizeof ",\"chain\":\"0123456789abcdef\"}" - 1 };
    uint64_t chain = CHECKSUM;
    int64_t  n = 0;
    for (; n < tn_lines_count(lines); n++) {
        const tn_text line = tn_lines_at(lines, n);
        char          tail[TAIL + 1];
        if (line.bytes < TAIL) break;
        chain = checksum(chain, line.at, line.bytes - TAIL);
        snprintf(tail, sizeof tail, ",\"chain\":\"%016llx\"}", (unsigned long long)chain);
        if (memcmp(line.at + line.bytes - TAIL, tail, TAIL) != 0) break;
    }
    return n;
}

/* Sets the largest step; makes room for all steps, and as many parts as there are lines. */
static bool measure(history *h, int64_t n)
{
    const char *kind;
    if (n) {
        const tn_text line = tn_lines_at(h->text, n - 1);
        tn_json      *j = tn_json_parse(line.at, line.bytes);
        h->last = step_of(j, &kind);
        tn_json_free(j);
    }
    if (tn_error() != TN_OK) return false;
    h->first = h->last + 1;
    h->part = zeroed(n + 1, sizeof *h->part), h->line = zeroed(n + 1, sizeof *h->line);
    h->loss = zeroed(h->last + 1, sizeof *h->loss), h->lr = zeroed(h->last + 1, sizeof *h->lr);
    h->batch = zeroed(h->last + 1, sizeof *h->batch);
    for (int64_t i = 0; i <= h->last && tn_error() == TN_OK; i++) h->loss[i] = h->lr[i] = NAN;
    return tn_error() == TN_OK;
}

bool history_read(history *h, const char *checkpoints)
{
    char path[1024];
    *h = (history){.part = NULL};
    if (!file_exists(in_folder(checkpoints, "record.jsonl", path)))
        return tn_raise_false(TN_EIO,
                              "'%s' does not exist; a run of an earlier version has none, and neither has a run whose "
                              "checkpoints were deleted",
                              path);
    h->text = tn_lines_load(path);
    const int64_t n = intact(h->text);
    h->damaged = n < tn_lines_count(h->text) ? n + 1 : 0;
    if (tn_error() == TN_OK && measure(h, n))
        for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
            const tn_text line = tn_lines_at(h->text, i);
            tn_json      *j = tn_json_parse(line.at, line.bytes);
            add(h, j, line);
            tn_json_free(j);
        }
    if (tn_error() == TN_OK && !h->parts && !h->damaged)
        tn_raise(TN_EFORMAT, "'%s' does not contain the arguments of a run", path);
    if (tn_error() != TN_OK) history_free(h);
    return tn_error() == TN_OK;
}

bool history_validated(const history *h, int64_t part, int64_t step)
{
    int64_t at = -1;
    for (int64_t i = 0; i < h->lines && at <= part; i++) {
        at += h->line[i].kind == 'r';
        if (at == part && h->line[i].kind == 'v' && h->line[i].step == step) return true;
    }
    return false;
}

void history_free(history *h)
{
    tn_lines_free(h->text);
    free(h->line), free(h->part), free(h->loss), free(h->lr), free(h->batch);
    *h = (history){.part = NULL};
}
