/* lines.c — text files read line by line in blocks, or whole; and a checksum of bytes that arrive in blocks. */
#include "data/text/data_private.h"
#include "core/base/toolbox.h"

/* ---- the checksum: FNV-1a over 64 bits --------------------------------------------------------------------------- */

uint64_t tn__sum(uint64_t sum, const void *data, size_t bytes)
{
    return tn__fnv1a(sum ^ TN__FNV1A, data, bytes) ^ TN__FNV1A; /* 0 is the checksum of no bytes */
}

/* ---- line by line ------------------------------------------------------------------------------------------------ */

enum { BLOCK = 1 << 18 };

bool tn__reader_open(tn__reader *r, const char *caller, const char *path)
{
    memset(r, 0, sizeof *r);
    tn__label(r->label, caller, path);
    return tn__source_open(&r->source, r->label, path);
}

/* Reads the next block after the `left` bytes at the start of the buffer. */
static bool read_block(tn__reader *r, size_t left)
{
    int64_t room = (int64_t)r->room;
    if (!tn__grown((void *)&r->buffer, &room, (int64_t)left + BLOCK, 1)) return false;
    r->room = (size_t)room;
    size_t n = (size_t)tn__min_i64(r->source.size - r->at, (int64_t)(r->room - left));
    if (!tn__source_read(&r->source, r->buffer + left, r->at, n)) return false;
    r->sum = tn__sum(r->sum, r->buffer + left, n);
    r->at += (int64_t)n, r->have = left + n, r->used = 0;
    return true;
}

static bool too_long(const tn__reader *r, size_t bytes)
{
    if (!r->most || (int64_t)bytes <= r->most) return false;
    tn_raise(TN_EFORMAT, "%s: line %lld has more than %lld bytes; expected a text with line ends", r->label,
             (long long)r->line + 1, (long long)r->most);
    return true;
}

bool tn__reader_line(tn__reader *r, tn_text *line)
{
    size_t looked = r->used;
    for (;;) {
        char *end = r->have > looked ? memchr(r->buffer + looked, '\n', r->have - looked) : NULL;
        if (end || (r->at == r->source.size && r->have > r->used)) {
            size_t stop = end ? (size_t)(end - r->buffer) : r->have;
            if (too_long(r, stop - r->used)) return false;
            *line = (tn_text){r->buffer + r->used, stop - r->used};
            r->used = end ? stop + 1 : stop;
            if (!r->line++) {
                const size_t mark = tn__mark(*line);
                line->at += mark, line->bytes -= mark;
            }
            return true;
        }
        if (r->at == r->source.size) return false;
        size_t left = r->have - r->used;
        if (too_long(r, left)) return false;
        if (left && r->used) memmove(r->buffer, r->buffer + r->used, left);
        looked = left;
        r->have = left, r->used = 0;
        if (!read_block(r, left)) return false;
    }
}

int64_t tn__reader_at(const tn__reader *r) { return r->at - (int64_t)(r->have - r->used); }

void tn__reader_seek(tn__reader *r, int64_t byte, int64_t line) { r->at = byte, r->line = line, r->have = r->used = 0; }

bool tn__reader_rest(tn__reader *r)
{
    while (r->at < r->source.size)
        if (!read_block(r, 0)) return false;
    return true;
}

void tn__reader_close(tn__reader *r)
{
    tn__source_close(&r->source);
    tn__mem_put(r->buffer, r->room);
    r->buffer = NULL, r->room = 0;
}

/* ---- all lines in memory ----------------------------------------------------------------------------------------- */

struct tn_lines {
    char    *text;
    int64_t  bytes, n, room;
    int64_t *start; /* offset of line i; start[i + 1] is one past its "\n" */
};

static bool index_lines(tn_lines *l)
{
    for (int64_t at = (int64_t)tn__mark((tn_text){l->text, (size_t)l->bytes}); at < l->bytes;) {
        if (!tn__grown((void *)&l->start, &l->room, l->n + 2, sizeof *l->start)) return false;
        const char *end = memchr(l->text + at, '\n', (size_t)(l->bytes - at));
        l->start[l->n++] = at;
        at = end ? end - l->text + 1 : l->bytes + 1;
        l->start[l->n] = at;
    }
    return true;
}

tn_lines *tn_lines_load(const char *path)
{
    if (tn__blocked()) return NULL;
    char       label[TN__LABEL];
    tn__source s;
    if (!tn__source_open(&s, tn__label(label, "tn_lines_load", path), path)) return NULL;
    tn_lines *l = tn__mem_zeroed(sizeof *l);
    if (l) l->bytes = s.size, l->text = tn__mem_get((size_t)s.size + 1);
    bool done = l && l->text && tn__source_read(&s, l->text, 0, (size_t)s.size) && index_lines(l);
    tn__source_close(&s);
    if (!done) tn_lines_free(l), l = NULL;
    return l;
}

int64_t tn_lines_count(const tn_lines *l) { return l ? l->n : 0; }

tn_text tn_lines_at(const tn_lines *l, int64_t i)
{
    if (!l || i < 0 || i >= l->n) return (tn_text){"", 0};
    tn_text t = {l->text + l->start[i], (size_t)(l->start[i + 1] - l->start[i] - 1)};
    if (t.bytes && t.at[t.bytes - 1] == '\r') t.bytes--;
    return t;
}

void tn_lines_free(tn_lines *l)
{
    if (!l) return;
    tn__mem_put(l->text, l->text ? (size_t)l->bytes + 1 : 0);
    tn__mem_put(l->start, (size_t)l->room * sizeof *l->start);
    tn__mem_put(l, sizeof *l);
}
