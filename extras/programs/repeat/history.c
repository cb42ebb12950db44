/* history.c — reads record.jsonl of a run: see replay.h, and models/fit/fit_record.c for its lines. */
#include "replay.h"

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

static void add(history *h, const tn_json *line)
{
    const char   *kind;
    const int64_t step = step_of(line, &kind);
    if (tn_error() != TN_OK || step < 0 || step > h->last) return;
    if (!strcmp(kind, "run")) h->part[h->parts++] = (history_part){step, tn_json_i64(tn_json_need(line, "steps"))};
    else if (!strcmp(kind, "step")) {
        if (step < h->first) h->first = step;
        h->loss[step] = number_of(line, "loss"), h->lr[step] = number_of(line, "lr"), h->batch[step] = hash_of(line);
        h->ended = false;
    } else if (!strcmp(kind, "valid")) h->valid[step] = number_of(line, "value");
    else if (!strcmp(kind, "point")) h->ended = tn_json_bool_or(tn_json_get(line, "end"), false);
}

/* Sets the largest step; makes room for all steps and as many parts as there are lines. */
static bool measure(history *h, const tn_lines *lines)
{
    const char *kind;
    for (int64_t i = tn_lines_count(lines); i-- > 0 && !h->last && tn_error() == TN_OK;) {
        const tn_text line = tn_lines_at(lines, i);
        tn_json      *j = tn_json_parse(line.at, line.bytes);
        h->last = step_of(j, &kind);
        tn_json_free(j);
    }
    if (tn_error() != TN_OK) return false;
    h->first = h->last + 1;
    h->part = zeroed(tn_lines_count(lines) + 1, sizeof *h->part);
    h->loss = zeroed(h->last + 1, sizeof *h->loss), h->lr = zeroed(h->last + 1, sizeof *h->lr);
    h->valid = zeroed(h->last + 1, sizeof *h->valid), h->batch = zeroed(h->last + 1, sizeof *h->batch);
    for (int64_t i = 0; i <= h->last && tn_error() == TN_OK; i++) h->loss[i] = h->lr[i] = h->valid[i] = NAN;
    return tn_error() == TN_OK;
}

bool history_read(history *h, const char *run)
{
    char folder[1024], path[1024];
    *h = (history){.part = NULL};
    in_folder(in_folder(run, "checkpoints", folder), "record.jsonl", path);
    if (!file_exists(path))
        return tn_raise_false(TN_EIO,
                              "'%s' does not exist; a run of an earlier version has none, and neither has a run whose "
                              "checkpoints were deleted",
                              path);
    tn_lines *lines = tn_lines_load(path);
    if (lines && measure(h, lines))
        for (int64_t i = 0; i < tn_lines_count(lines) && tn_error() == TN_OK; i++) {
            const tn_text line = tn_lines_at(lines, i);
            tn_json      *j = tn_json_parse(line.at, line.bytes);
            add(h, j);
            tn_json_free(j);
        }
    if (tn_error() == TN_OK && !h->parts) tn_raise(TN_EFORMAT, "'%s' does not contain the arguments of a run", path);
    tn_lines_free(lines);
    if (tn_error() != TN_OK) history_free(h);
    return tn_error() == TN_OK;
}

void history_free(history *h)
{
    free(h->part), free(h->loss), free(h->lr), free(h->valid), free(h->batch);
    *h = (history){.part = NULL};
}
