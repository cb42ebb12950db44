/* file.c — all file access of the library: sources and sinks of bytes, through system calls that can be replaced.
 *
 * Saving is atomic and durable: a new file in the same folder receives all the bytes and is synced and closed; then it
 * is renamed over the old one, and the folder is synced. Until the rename the old file is unchanged; on any failure the
 * new one is removed. A failed fsync is not retried: the kernel may have dropped the pages it could not write. */
#include "core/system/system.h"

#include "core/files/io.h"
#include "core/tensor/tensor.h"

#include <string.h>

/* ---- the system's own calls: they return -errno, and leave errno unchanged --------------------------------------- */

#define CALL(type, expr)         \
    int  keep = errno;           \
    type r = (type)(expr);       \
    if (r < 0) r = (type)-errno; \
    errno = keep;                \
    return r

static int sys_open(void *u, const char *path, int flags, unsigned mode)
{
    (void)u;
    CALL(int, tn__sys_open(path, flags, mode));
}
static int sys_fstat(void *u, int fd, struct stat *st)
{
    (void)u;
    CALL(int, tn__sys_fstat(fd, st));
}
static int sys_lstat(void *u, const char *path, struct stat *st)
{
    (void)u;
    CALL(int, tn__sys_lstat(path, st));
}
static int64_t sys_pread(void *u, int fd, void *to, size_t n, int64_t at)
{
    (void)u;
    CALL(int64_t, tn__sys_pread(fd, to, n, (off_t)at));
}
static int64_t sys_write(void *u, int fd, const void *from, size_t n)
{
    (void)u;
    CALL(int64_t, tn__sys_write(fd, from, n));
}
static int sys_fsync(void *u, int fd)
{
    (void)u;
    CALL(int, tn__sys_fsync(fd));
}
static int sys_close(void *u, int fd)
{
    (void)u;
    CALL(int, tn__sys_close(fd));
}
static int sys_rename(void *u, const char *from, const char *to)
{
    (void)u;
    CALL(int, tn__sys_rename(from, to));
}
static int sys_unlink(void *u, const char *path)
{
    (void)u;
    CALL(int, tn__sys_unlink(path));
}

static int sys_reserve(void *u, int fd, int64_t bytes)
{
    (void)u;
    CALL(int, tn__sys_reserve(fd, bytes));
}

static const tn_io system_io = {sys_open,  sys_fstat, sys_lstat,  sys_pread,  sys_write, sys_reserve,
                                sys_fsync, sys_close, sys_rename, sys_unlink, NULL};
static tn_io       io = {sys_open,  sys_fstat, sys_lstat,  sys_pread,  sys_write, sys_reserve,
                         sys_fsync, sys_close, sys_rename, sys_unlink, NULL};

const tn_io *tn_system_io(void) { return &system_io; }

tn_status tn_set_io(const tn_io *x)
{
    if (!x) x = &system_io;
    if (!x->open || !x->fstat || !x->lstat || !x->pread || !x->write || !x->reserve || !x->fsync || !x->close ||
        !x->rename || !x->unlink)
        return tn_raise(TN_EINVAL,
                        "tn_set_io: every member must be set; copy *tn_system_io() and change what you need");
    io = *x;
    return TN_OK;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* A table, because strerror's text depends on the locale. */
static const char *reason(int64_t r)
{
    static const struct {
        int         code;
        const char *text;
    } known[] = {{ENOENT, "no such file or folder"},
                 {EACCES, "permission denied"},
                 {EPERM, "not permitted"},
                 {EISDIR, "it is a folder"},
                 {ENOTDIR, "a part of the path is not a folder"},
                 {EEXIST, "it already exists"},
                 {ENOSPC, "no space left on the device"},
                 {EDQUOT, "the disk quota is used up"},
                 {EFBIG, "the file would be larger than the process or the file system allows"},
                 {EIO, "input/output error"},
                 {EROFS, "the file system is read-only"},
                 {EMFILE, "this process has too many files open"},
                 {ENFILE, "the system has too many files open"},
                 {ENAMETOOLONG, "the name is too long"},
                 {ELOOP, "too many symbolic links"},
                 {ENXIO, "no such device, or the pipe has no reader"},
                 {ENODEV, "no such device"},
                 {EINTR, "interrupted repeatedly"},
                 {EAGAIN, "temporarily unavailable"},
                 {EBUSY, "it is busy"},
                 {ENOMEM, "the system is out of memory"},
                 {EXDEV, "another file system"},
                 {ETXTBSY, "it is a running program"},
                 {EINVAL, "invalid argument for the system"},
                 {EBADF, "the file is not open"},
                 {EPIPE, "the pipe has no reader"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == (int)-r) return known[i].text;
    return "unknown system error";
}

static void fail(const char *label, const char *what, int64_t r)
{
    tn_raise(TN_EIO, "%s: %s: %s (errno %d)", label, what, reason(r), (int)-r);
}

/* The length of the character at p if it can be printed as it is, otherwise 0. */
static size_t printable(const char *p, size_t n)
{
    if ((unsigned char)*p < 0x20 || *p == 0x7f) return 0;
    for (size_t len = 1; len <= 4 && len <= n; len++)
        if (tn_utf8_valid(p, len) == len) return len;
    return 0;
}

/* Appends n bytes of p to to[at…size), each as \xNN if needed; stops at the end of the buffer. */
static size_t append(char *to, size_t size, size_t at, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = printable(p + i, n - i);
        if (at + (len ? len : 4) > size) break;
        if (len) memcpy(to + at, p + i, len);
        else snprintf(to + at, 5, "\\x%02x", (unsigned char)p[i]);
        at += len ? len : 4;
        i += len ? len : 1;
    }
    return at;
}

static size_t quote(char *to, size_t size, const char *text, size_t n, size_t keep)
{
    size_t at = 0, room = size - 6; /* "...", "'", NUL and one spare for snprintf's */
    to[at++] = '\'';
    if (n <= keep) {
        at = append(to, room, at, text, n);
    } else { /* the end of a name or a path is more informative than its beginning */
        size_t head = keep / 4, tail = n - (keep - head);
        while (head && ((unsigned char)text[head] & 0xc0) == 0x80) head--;
        while (tail < n && ((unsigned char)text[tail] & 0xc0) == 0x80) tail++;
        at = append(to, room, at, text, head);
        memcpy(to + at, "...", 3);
        at = append(to, room + 3, at + 3, text + tail, n - tail);
    }
    to[at++] = '\'';
    to[at] = 0;
    return at;
}

const char *tn__quote(char to[TN__QUOTED], const char *text, size_t bytes, size_t keep)
{
    quote(to, TN__QUOTED, text, bytes, keep);
    return to;
}

const char *tn__label(char to[TN__LABEL], const char *who, const char *path)
{
    size_t at = strlen(who);
    memcpy(to, who, at + 1);
    if (path) {
        memcpy(to + at, ": ", 2);
        quote(to + at + 2, TN__LABEL - at - 2, path, strlen(path), 160);
    }
    return to;
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

enum { TRIES = 1000, MOST = 1 << 30 }; /* maximum retries of an interrupted call; maximum bytes in one call */

static int open_file(const char *path, int flags, unsigned mode)
{
    int r = -EINTR;
    for (int i = 0; i < TRIES && r == -EINTR; i++) r = io.open(io.user, path, flags | O_CLOEXEC | O_NOCTTY, mode);
    return r;
}

static bool check_path(const char *label, const char *path)
{
    if (path && *path) return true;
    return tn_raise_false(TN_EINVAL, "%s: the path is %s", label, path ? "empty" : "NULL");
}

int tn__file_probe(const char *path)
{
    struct stat st;
    const int   r = io.lstat(io.user, path, &st);
    return r >= 0 ? 1 : r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ENAMETOOLONG ? 0 : -1;
}

bool tn__file_exists(const char *path) { return tn__file_probe(path) > 0; }

tn_status tn__file_remove(const char *label, const char *path)
{
    const int r = io.unlink(io.user, path);
    if (r < 0 && r != -ENOENT) fail(label, "cannot remove it", r);
    return tn__self.error;
}

static const char *kind(unsigned mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISLNK(mode)  ? "a symbolic link"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static bool open_source(tn__source *s, const char *label, const char *path, int flags)
{
    *s = (tn__source){.label = label, .fd = -1};
    if (!check_path(label, path)) return false;
    s->fd = open_file(path, O_RDONLY | O_NONBLOCK | flags, 0); /* do not block on a pipe without a writer */
    if (s->fd < 0) return fail(label, "cannot open", s->fd), false;
    struct stat st;
    int         r = io.fstat(io.user, s->fd, &st);
    if (r < 0) fail(label, "cannot get its size", r);
    else if (!S_ISREG(st.st_mode))
        tn_raise(TN_EINVAL, "%s: this is %s; only regular files are read", label, kind(st.st_mode)), r = -1;
    if (r < 0) return tn__source_close(s), false;
    s->size = (int64_t)st.st_size;
    return true;
}

bool tn__source_open(tn__source *s, const char *label, const char *path) { return open_source(s, label, path, 0); }

bool tn__source_open_linked(tn__source *s, const char *label, const char *path)
{
    static const char blobs[] = "../../blobs/";
    char              to[512], at[1536];
    struct stat       st;
    *s = (tn__source){.label = label, .fd = -1};
    const int r = io.lstat(io.user, path, &st), keep = errno;
    if (r < 0) return fail(label, "cannot open", r), false;
    if (!S_ISLNK(st.st_mode)) return open_source(s, label, path, O_NOFOLLOW);
    const ssize_t n = readlink(path, to, sizeof to - 1); /* an unreadable link counts as leading nowhere */
    to[n < 0 ? 0 : n] = 0, errno = keep;
    const char *name = to + sizeof blobs - 1, *slash = tn__sys_last_slash(path);
    const int   folder = slash ? (int)(slash - path) + 1 : 0;
    if (strncmp(to, blobs, sizeof blobs - 1) != 0 || !*name || *name == '.' || strchr(name, '/') || folder > 1000)
        return tn_raise_false(
            TN_EUNSUPPORTED,
            "%s: this is a symbolic link; only links to ../../blobs are followed, as in Hugging Face's cache", label);
    snprintf(at, sizeof at, "%.*s%s", folder, path, to);
    return open_source(s, label, at, O_NOFOLLOW);
}

bool tn__source_memory(tn__source *s, const char *label, const void *data, size_t bytes)
{
    *s = (tn__source){.label = label, .memory = data ? data : (const void *)"", .fd = -1, .size = (int64_t)bytes};
    if (data || !bytes) return true;
    return tn_raise_false(TN_EINVAL, "%s: data is NULL, but bytes is %zu", label, bytes);
}

bool tn__source_read(const tn__source *s, void *to, int64_t at, size_t bytes)
{
    if (s->memory) {
        if (bytes) memcpy(to, s->memory + at, bytes);
        return true;
    }
    char *p = to;
    for (int tries = 0; bytes;) {
        int64_t r = io.pread(io.user, s->fd, p, bytes < MOST ? bytes : MOST, at);
        if (r == -EINTR && ++tries < TRIES) continue;
        if (r < 0) return fail(s->label, "cannot read", r), false;
        if (r == 0)
            return tn_raise_false(
                TN_EIO, "%s: it ends at byte %lld, but had %lld bytes when it was opened: it was truncated since",
                s->label, (long long)at, (long long)s->size);
        p += r, at += r, bytes -= (size_t)r, tries = 0;
    }
    return true;
}

void tn__source_prefetch(const tn__source *s, int64_t at, int64_t bytes)
{
    if (s->memory || io.pread != sys_pread) return; /* replaced calls have their own descriptors */
    tn__sys_read_ahead(s->fd, at, bytes);
}

void tn__source_close(tn__source *s)
{
    if (!s->memory && s->fd >= 0) io.close(io.user, s->fd); /* nothing was written: nothing can be lost */
    s->fd = -1;
}

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

void tn__sink_memory(tn__sink *s, const char *label, void *to, int64_t size)
{
    *s = (tn__sink){.label = label, .memory = to, .fd = -1, .dir = -1, .size = size};
}

static void put_hex(char *to, uint64_t v)
{
    for (int i = 0; i < 12; i++, v >>= 4) to[i] = "0123456789abcdef"[v & 15];
}

/* Opens a new file in path's folder: ".name.tmp.<12 hex digits>". Its permissions are at most those of the old file. */
static bool open_temporary(tn__sink *s, unsigned mode)
{
    const char *slash = tn__sys_last_slash(s->path), *base = slash ? slash + 1 : s->path;
    size_t      folder = slash ? (size_t)(slash - s->path) + 1 : 0, name = strlen(base);
    if (name > 200) name = 200; /* names have at most 255 bytes */
    size_t dir = folder ? folder : 1;
    s->names_bytes = dir + 1 + folder + 1 + name + 5 + 12 + 1;
    s->names = tn__mem_get(s->names_bytes);
    if (!s->names) return false;
    if (folder) memcpy(s->names, s->path, folder); /* with its slash, which matters if it is "/" */
    else s->names[0] = '.';
    s->names[dir] = 0;
    char *p = s->names + dir + 1;
    if (folder) memcpy(p, s->path, folder);
    p += folder;
    *p++ = '.';
    memcpy(p, base, name), p += name;
    memcpy(p, ".tmp.", 5), p += 5;
    p[12] = 0;

    /* opened before the rename, so that this cannot fail after it */
    s->dir = open_file(s->names, O_RDONLY | O_DIRECTORY, 0);
    if (s->dir < 0 && s->dir != -EACCES) return fail(s->label, "cannot open its folder", s->dir), false;

    const struct timespec now = tn__sys_clock();
    uint64_t random = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 24 ^ (uint64_t)(uintptr_t)s;
    const char *temporary = s->names + dir + 1;
    for (int i = 0; i < 100; i++) {
        random = (random + 1) * 0xd1342543de82ef95u;
        put_hex(p, random >> 16);
        s->fd = open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (s->fd != -EEXIST) break;
    }
    if (s->fd < 0) return fail(s->label, "cannot create a file in its folder", s->fd), false;
    s->temporary = temporary;
    return true;
}

bool tn__sink_open(tn__sink *s, const char *label, const char *path, int64_t size)
{
    *s = (tn__sink){.label = label, .path = path, .fd = -1, .dir = -1, .size = size};
    if (!check_path(label, path)) return false;
    if (path[strlen(path) - 1] == '/') return tn_raise_false(TN_EINVAL, "%s: this names a folder, not a file", label);
    struct stat old;
    unsigned    mode = 0666;
    int         r = io.lstat(io.user, path, &old);
    if (r < 0 && r != -ENOENT) return fail(label, "cannot check for an old file", r), false;
    if (r >= 0) {
        if (!S_ISREG(old.st_mode))
            return tn_raise_false(TN_EINVAL, "%s: there is %s of this name; only a regular file is replaced%s", label,
                                  kind(old.st_mode), S_ISLNK(old.st_mode) ? " (pass the link's target)" : "");
        mode = old.st_mode & 0777;
    }
    if (!open_temporary(s, mode)) return tn__sink_end(s, false), false;
    r = -EINTR;
    for (int i = 0; i < TRIES && r == -EINTR; i++) r = io.reserve(io.user, s->fd, size);
    if (r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL || r == -ENODEV) return true; /* it was only a precaution */
    if (r < 0) {
        char what[80];
        snprintf(what, sizeof what, "cannot reserve %lld bytes", (long long)size);
        return fail(label, what, r), tn__sink_end(s, false), false;
    }
    return true;
}

bool tn__sink_append(tn__sink *s, const char *label, const char *path)
{
    *s = (tn__sink){.label = label, .fd = -1, .dir = -1, .size = INT64_MAX};
    if (!check_path(label, path)) return false;
    s->fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0666);
    if (s->fd < 0) return fail(label, "cannot open it for writing", s->fd), false;
    struct stat st;
    int         r = io.fstat(io.user, s->fd, &st);
    if (r < 0) fail(label, "cannot get its size", r);
    else if (!S_ISREG(st.st_mode)) tn_raise(TN_EINVAL, "%s: this is %s, not a file", label, kind(st.st_mode)), r = -1;
    if (r < 0) tn__sink_end(s, false);
    return r >= 0;
}

bool tn__sink_write(tn__sink *s, const void *from, size_t bytes)
{
    if ((uint64_t)bytes > (uint64_t)(s->size - s->at)) /* cannot happen; but it would corrupt memory */
        return tn_raise_false(TN_ESTATE, "%s: more bytes are written than declared", s->label);
    if (s->memory) {
        if (bytes) memcpy(s->memory + s->at, from, bytes);
        s->at += (int64_t)bytes;
        return true;
    }
    const char *p = from;
    for (int tries = 0; bytes;) {
        int64_t r = io.write(io.user, s->fd, p, bytes < MOST ? bytes : MOST);
        if (r == -EINTR && ++tries < TRIES) continue;
        if (r == 0) r = -ENOSPC; /* POSIX does not define this; no byte was written */
        if (r < 0) return fail(s->label, "cannot write", r), false;
        p += r, s->at += r, bytes -= (size_t)r, tries = 0;
    }
    return true;
}

static bool commit_file(tn__sink *s)
{
    if (s->temporary && s->at != s->size)
        return tn_raise_false(TN_ESTATE, "%s: fewer bytes were written than declared", s->label);
    int r = -EINTR;
    for (int i = 0; i < TRIES && r == -EINTR; i++) r = io.fsync(io.user, s->fd);
    if (r < 0) return fail(s->label, "cannot sync it to the disk (fsync)", r), false;
    r = io.close(io.user, s->fd);
    s->fd = -1;
    if (r < 0 && r != -EINTR) return fail(s->label, "cannot close it", r), false; /* interrupted: closed, and synced */
    if (!s->temporary) return true;                                               /* bytes were appended */
    r = io.rename(io.user, s->temporary, s->path);
    if (r < 0) return fail(s->label, "cannot rename the new file over the old one", r), false;
    s->temporary = NULL;
    r = s->dir < 0 ? 0 : -EINTR; /* a folder without read permission cannot be synced */
    for (int i = 0; i < TRIES && r == -EINTR; i++) r = io.fsync(io.user, s->dir);
    if (r < 0 && r != -EINVAL && r != -EOPNOTSUPP) /* some file systems cannot sync folders */
        return fail(s->label, "the new file is in place, but its folder was not synced to the disk", r), false;
    return true;
}

tn_status tn__sink_end(tn__sink *s, bool commit)
{
    if (commit && !s->memory) commit_file(s);
    if (s->fd >= 0) io.close(io.user, s->fd);
    if (s->temporary) io.unlink(io.user, s->temporary);
    if (s->dir >= 0) io.close(io.user, s->dir);
    tn__mem_put(s->names, s->names_bytes);
    s->fd = s->dir = -1, s->temporary = s->names = NULL;
    return tn__self.error;
}
