/* sha256sums.c — SHA256SUMS: checksums of the small files of a model's folder at the time of saving, in the format of
 * `sha256sum -c`. (model.safetensors contains a checksum of each tensor: safetensors_checksums.c.)
 *
 * A file is written in three steps, each on disk before the next: its line is removed, the file is written, its new
 * line is added. So a file with a line always matches it, even if the process was killed; and a file without a line is
 * read unchecked, as are all files of a folder without SHA256SUMS. Other programs keep such files, too, in other
 * formats and of any length: a line in another format only matters if it contains the file's name. */
#include "core/base/memory.h"
#include "core/files/io.h"
#include "core/base/checksums.h"
#include "core/tensor/tensor.h"

#include <string.h>

enum { DIGITS = TN__SHA256_DIGITS, MOST = 1 << 20 };
static const char sums_name[] = "SHA256SUMS";

typedef struct {
    char       *path; /* of SHA256SUMS */
    size_t      path_bytes;
    const char *name; /* of the file to check or write */
    char       *text;
    size_t      bytes, room;
    bool        foreign; /* too long to be Tenon's: it is not read, and nothing is written into it */
    char        label[TN__LABEL];
} sums;

static void close_sums(sums *s)
{
    tn__mem_put(s->text, s->room);
    tn__mem_put(s->path, s->path_bytes);
}

static bool read_sums(sums *s, size_t more)
{
    tn__source from;
    if (!tn__source_open(&from, s->label, s->path)) return false;
    s->foreign = from.size > MOST;
    const size_t n = s->foreign ? 0 : (size_t)from.size;
    s->room = n + more, s->text = tn__mem_get(s->room);
    const bool ok = s->text && tn__source_read(&from, s->text, 0, n);
    if (ok) s->bytes = n;
    tn__source_close(&from);
    return ok;
}

/* Reads the SHA256SUMS of path's folder, with room for `more` bytes; there: true if it exists. */
static bool open_sums(sums *s, const char *path, size_t more, bool *there)
{
    const char  *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    *s = (sums){.name = path + folder, .path_bytes = folder + sizeof sums_name};
    if (!(s->path = tn__mem_get(s->path_bytes))) return false;
    memcpy(s->path, path, folder);
    memcpy(s->path + folder, sums_name, sizeof sums_name);
    tn__label(s->label, "SHA256SUMS", s->path);
    const int found = tn__file_probe(s->path);
    *there = found > 0;
    if (found < 0) tn_raise(TN_EIO, "%s: the system cannot determine whether it exists", s->label);
    if (found < 0 || (*there && !read_sums(s, more))) return close_sums(s), false;
    if (!*there && more) {
        s->room = more;
        if (!(s->text = tn__mem_get(more))) return close_sums(s), false;
    }
    return true;
}

/* ---- lines: 64 digits, a space, a space or a star, and the name -------------------------------------------------- */

typedef struct {
    const char *at, *name;
    size_t      bytes, name_bytes; /* with its line end; name_bytes is 0 if it is not such a line */
} line;

static bool next_line(const sums *s, line *l)
{
    if (!s->bytes) return false;
    const char *at = l->at ? l->at + l->bytes : s->text, *end = s->text + s->bytes;
    if (at >= end) return false;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *l = (line){.at = at, .bytes = (size_t)((stop ? stop + 1 : end) - at)};
    bool fits = stop && l->bytes > DIGITS + 3 && at[DIGITS] == ' ' && (at[DIGITS + 1] == ' ' || at[DIGITS + 1] == '*');
    for (int i = 0; fits && i < DIGITS; i++) fits = strchr("0123456789abcdef", at[i]) && at[i];
    if (!fits) return true;
    l->name = at + DIGITS + 2, l->name_bytes = l->bytes - DIGITS - 3;
    if (l->name_bytes > 2 && !memcmp(l->name, "./", 2)) l->name += 2, l->name_bytes -= 2;
    return true;
}

static bool is_of(const line *l, const char *name)
{
    return l->name && l->name_bytes == strlen(name) && !memcmp(l->name, name, l->name_bytes);
}

static bool mentions(const line *l, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i + n <= l->bytes; i++)
        if (!memcmp(l->at + i, name, n)) return true;
    return false;
}

static void sum_of(const void *data, size_t bytes, const char *end, char hex[DIGITS + 1])
{
    tn__sha256 s = tn__sha256_begin();
    tn__sha256_put(&s, data, bytes);
    tn__sha256_put(&s, end, strlen(end));
    tn__sha256_end(&s, hex);
}

bool tn__sha256sums_check(const char *path, const void *data, size_t bytes)
{
    sums s;
    bool there;
    char hex[DIGITS + 1], q[TN__QUOTED];
    line l = {.at = NULL};
    if (!open_sums(&s, path, 0, &there)) return false;
    *hex = 0;
    for (int64_t i = 1; tn__self.error == TN_OK && next_line(&s, &l); i++) {
        if (!l.name_bytes && mentions(&l, s.name))
            tn_raise(
                TN_EFORMAT,
                "%s: line %lld is not a checksum, two spaces and a name, as written by sha256sum; delete this line or "
                "the file: files without a line are not checked",
                s.label + sizeof sums_name + 1, (long long)i);
        if (!is_of(&l, s.name)) continue;
        if (!*hex) sum_of(data, bytes, "", hex);
        if (memcmp(hex, l.at, DIGITS) != 0)
            tn_raise(TN_EFORMAT,
                     "%s was changed after it was saved: its SHA-256 differs from SHA256SUMS in its folder; if the "
                     "change is intended, delete its line there",
                     tn__quote(q, path, strlen(path), 160));
    }
    close_sums(&s);
    return tn__self.error == TN_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool write_file(const char *label, const char *path, const void *data, size_t bytes, const char *end)
{
    tn__sink s;
    if (!tn__sink_open(&s, label, path, (int64_t)(bytes + strlen(end)))) return false;
    return tn__sink_end(&s, tn__sink_write(&s, data, bytes) && tn__sink_write(&s, end, strlen(end))) == TN_OK;
}

/* Removes the lines of the file; other lines stay unchanged in any case. */
static bool remove_lines(sums *s)
{
    size_t kept = 0;
    for (line l = {.at = NULL}; next_line(s, &l);)
        if (!is_of(&l, s->name)) memmove(s->text + kept, l.at, l.bytes), kept += l.bytes;
    const bool had = kept != s->bytes;
    s->bytes = kept;
    return had;
}

tn_status tn__sha256sums_write(const char *label, const char *path, const void *data, size_t bytes, const char *end,
                               bool begin)
{
    sums   s;
    bool   there;
    size_t n = (path ? strlen(path) : 0) + DIGITS + 4;
    if (!path || !*path) return write_file(label, path, data, bytes, end), tn__self.error; /* which raises */
    if (!open_sums(&s, path, n, &there)) return tn__self.error;
    bool ok = !remove_lines(&s) || write_file(s.label, s.path, s.text, s.bytes, "");
    ok = ok && write_file(label, path, data, bytes, end);
    if (ok && !s.foreign && (there || begin)) {
        char *to = s.text + s.bytes;
        if (s.bytes && to[-1] != '\n') *to++ = '\n';
        sum_of(data, bytes, end, to);
        memcpy(to + DIGITS, "  ", 2);
        n = strlen(s.name);
        memcpy(to + DIGITS + 2, s.name, n);
        to[DIGITS + 2 + n] = '\n';
        write_file(s.label, s.path, s.text, (size_t)(to - s.text) + DIGITS + 3 + n, "");
    }
    close_sums(&s);
    return tn__self.error;
}

tn_status tn__sha256sums_remove(const char *path)
{
    sums s;
    bool there;
    char label[TN__LABEL];
    if (tn__self.error != TN_OK || !tn__file_exists(path) || !open_sums(&s, path, 0, &there)) return tn__self.error;
    if (!remove_lines(&s) || write_file(s.label, s.path, s.text, s.bytes, ""))
        tn__file_remove(tn__label(label, "removal of an old file", path), path);
    close_sums(&s);
    return tn__self.error;
}
