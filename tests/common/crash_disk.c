/* crash_disk.c — a disk in memory with a journal that is replayed in part. See crash_disk.h. */
#define _GNU_SOURCE
#include "tests/common/crash_disk.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NODES = 64, NAMES = 64, JOURNAL = 4096, FD = 10000, FOLDER_FD = 9999 };

typedef struct {
    char   *bytes;
    int64_t size;
} content;

/* A disk: the contents of files (nodes), and names that refer to nodes. */
typedef struct {
    content node[NODES];
    int     names;
    struct {
        char path[400];
        int  node;
    } name[NAMES];
} disk;

typedef enum { WRITE, SYNC, NAME, SYNC_FOLDER, UNLINK, RENAME } act;
typedef struct {
    act     what;
    int     node;
    int64_t at;
    content data; /* for WRITE */
    char    from[400], to[400];
} entry;

static struct {
    disk    now, base, found; /* the current state; the state of the last settle; the state after a power failure */
    entry  *journal;
    int64_t calls;
    int     nodes;
    bool    failed, lies;
} all;

/* ---- a disk ------------------------------------------------------------------------------------------------------ */

static void node_write(disk *d, int node, int64_t at, const char *from, int64_t n)
{
    content *c = &d->node[node];
    if (at + n > c->size) {
        c->bytes = realloc(c->bytes, (size_t)(at + n) + 1);
        ck_assert_ptr_nonnull(c->bytes);
        memset(c->bytes + c->size, 0, (size_t)(at + n - c->size));
        c->size = at + n;
    }
    if (from && n) memcpy(c->bytes + at, from, (size_t)n);
}
static int find(const disk *d, const char *path)
{
    for (int i = 0; i < d->names; i++)
        if (!strcmp(d->name[i].path, path)) return i;
    return -1;
}
static void name_set(disk *d, const char *path, int node)
{
    int i = find(d, path);
    if (i < 0) {
        i = d->names++;
        ck_assert_int_lt(i, NAMES);
    }
    snprintf(d->name[i].path, sizeof d->name[i].path, "%s", path);
    d->name[i].node = node;
}
static void name_remove(disk *d, const char *path)
{
    const int i = find(d, path);
    if (i >= 0) d->name[i] = d->name[--d->names];
}
static void empty(disk *d)
{
    for (int i = 0; i < NODES; i++) free(d->node[i].bytes);
    memset(d, 0, sizeof *d);
}
static void copy(disk *to, const disk *from)
{
    empty(to);
    *to = *from;
    for (int i = 0; i < NODES; i++) {
        to->node[i] = (content){NULL, 0};
        if (from->node[i].size) node_write(to, i, 0, from->node[i].bytes, from->node[i].size);
    }
}

/* ---- the journal ------------------------------------------------------------------------------------------------- */

static entry *record(act what, int node)
{
    ck_assert_int_lt(all.calls, JOURNAL);
    entry *e = &all.journal[all.calls++];
    free(e->data.bytes);
    *e = (entry){.what = what, .node = node};
    return e;
}

static void change_name(disk *d, const entry *e)
{
    if (e->what == NAME) name_set(d, e->to, e->node);
    if (e->what == UNLINK) name_remove(d, e->from);
    if (e->what == RENAME) {
        const int i = find(d, e->from);
        if (i < 0) return;
        const int node = d->name[i].node;
        name_remove(d, e->from);
        name_set(d, e->to, node);
    }
}

/* The blocks of a write that reached the disk. */
static void tear(disk *d, const entry *e, tn_generator *chance)
{
    const int64_t block = tn_random_below(chance, 2) ? 512 : 4096;
    node_write(d, e->node, e->at, NULL,
               tn_random_below(chance, 2) ? e->data.size : 0); /* the size can change without the data */
    for (int64_t at = 0; at < e->data.size;) {
        int64_t n = block - (e->at + at) % block;
        if (n > e->data.size - at) n = e->data.size - at;
        if (tn_random_below(chance, 2)) node_write(d, e->node, e->at + at, e->data.bytes + at, n);
        at += n;
    }
}

static bool is_synced(int64_t i, int64_t calls, act by)
{
    for (int64_t k = i + 1; k < calls; k++)
        if (all.journal[k].what == by && (by == SYNC_FOLDER || all.journal[k].node == all.journal[i].node)) return true;
    return false;
}

void tn_crash_disk_fail(int64_t calls, tn_crash_kind kind, tn_generator *chance)
{
    bool names = true; /* all earlier changes of names are on the disk */
    copy(&all.found, &all.base);
    for (int64_t i = 0; i < calls; i++) {
        const entry *e = &all.journal[i];
        if (e->what == SYNC || e->what == SYNC_FOLDER) continue;
        const bool some = kind == TN_CRASH_SOME || kind == TN_CRASH_TORN;
        if (e->what == WRITE) {
            const bool synced = is_synced(i, calls, SYNC);
            if (!synced && kind == TN_CRASH_TORN) tear(&all.found, e, chance);
            else if (synced || kind == TN_CRASH_KEPT || (some && tn_random_below(chance, 2)))
                node_write(&all.found, e->node, e->at, e->data.bytes, e->data.size);
        } else {
            const bool synced = is_synced(i, calls, SYNC_FOLDER);
            if (!synced && names && some && tn_random_below(chance, 4) == 0) names = false;
            if (synced || kind == TN_CRASH_KEPT || (some && names)) change_name(&all.found, e);
        }
    }
    all.failed = true;
}
void tn_crash_disk_mend(void) { all.failed = false; }

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static disk *here(void) { return all.failed ? &all.found : &all.now; }

static int d_open(void *u, const char *path, int flags, unsigned mode)
{
    (void)u, (void)mode;
    if (flags & O_DIRECTORY) return FOLDER_FD;
    const int i = find(here(), path);
    if (i >= 0) return flags & O_EXCL ? -EEXIST : FD + here()->name[i].node;
    if (!(flags & O_CREAT)) return -ENOENT;
    if (all.failed) return -EROFS;
    const int node = all.nodes++;
    ck_assert_int_lt(node, NODES);
    entry *e = record(NAME, node);
    snprintf(e->to, sizeof e->to, "%s", path);
    return change_name(&all.now, e), FD + node;
}
static int d_fstat(void *u, int fd, struct stat *st)
{
    (void)u;
    memset(st, 0, sizeof *st);
    st->st_mode = S_IFREG | 0644, st->st_size = (off_t)here()->node[fd - FD].size;
    return 0;
}
static int d_lstat(void *u, const char *path, struct stat *st)
{
    const int i = find(here(), path);
    return i < 0 ? -ENOENT : d_fstat(u, FD + here()->name[i].node, st);
}
static int64_t d_pread(void *u, int fd, void *to, size_t n, int64_t at)
{
    (void)u;
    const content *c = &here()->node[fd - FD];
    if (at >= c->size) return 0;
    if ((int64_t)n > c->size - at) n = (size_t)(c->size - at);
    memcpy(to, c->bytes + at, n);
    return (int64_t)n;
}
/* Files are written sequentially, so that the position of a write is the size of the file. */
static int64_t written[NODES];
static int64_t d_write(void *u, int fd, const void *from, size_t n)
{
    (void)u;
    if (all.failed) return -EROFS;
    const int node = fd - FD;
    entry    *e = record(WRITE, node);
    e->at = written[node], e->data.size = (int64_t)n, e->data.bytes = malloc(n + 1);
    ck_assert_ptr_nonnull(e->data.bytes);
    memcpy(e->data.bytes, from, n);
    node_write(&all.now, node, e->at, from, (int64_t)n);
    written[node] += (int64_t)n;
    return (int64_t)n;
}
static int d_reserve(void *u, int fd, int64_t n) /* reserved space counts as written zeros */
{
    (void)u;
    if (all.failed) return -EROFS;
    entry *e = record(WRITE, fd - FD);
    e->data.size = n, e->data.bytes = calloc((size_t)n + 1, 1);
    ck_assert_ptr_nonnull(e->data.bytes);
    node_write(&all.now, fd - FD, 0, e->data.bytes, n);
    return 0;
}
static int d_fsync(void *u, int fd)
{
    (void)u;
    if (!all.failed && !all.lies) record(fd == FOLDER_FD ? SYNC_FOLDER : SYNC, fd - FD);
    return 0;
}
static int d_close(void *u, int fd)
{
    (void)u, (void)fd;
    return 0;
}
static int d_rename(void *u, const char *from, const char *to)
{
    (void)u;
    if (all.failed || find(&all.now, from) < 0) return all.failed ? -EROFS : -ENOENT;
    entry *e = record(RENAME, 0);
    snprintf(e->from, sizeof e->from, "%s", from), snprintf(e->to, sizeof e->to, "%s", to);
    return change_name(&all.now, e), 0;
}
static int d_unlink(void *u, const char *path)
{
    (void)u;
    if (all.failed || find(&all.now, path) < 0) return all.failed ? -EROFS : -ENOENT;
    entry *e = record(UNLINK, 0);
    snprintf(e->from, sizeof e->from, "%s", path);
    return change_name(&all.now, e), 0;
}

int64_t tn_crash_disk_calls(void) { return all.calls; }
void    tn_crash_disk_settle(void)
{
    copy(&all.base, &all.now);
    for (int64_t i = 0; i < all.calls; i++) free(all.journal[i].data.bytes), all.journal[i].data.bytes = NULL;
    all.calls = 0;
}

void tn_crash_disk_begin(bool lies)
{
    static const tn_io io = {d_open,  d_fstat, d_lstat,  d_pread,  d_write, d_reserve,
                             d_fsync, d_close, d_rename, d_unlink, NULL};
    memset(&all, 0, sizeof all);
    memset(written, 0, sizeof written);
    all.lies = lies, all.journal = calloc(JOURNAL, sizeof *all.journal);
    ck_assert_ptr_nonnull(all.journal);
    ck_assert_int_eq(tn_set_io(&io), TN_OK);
}
void tn_crash_disk_end(void)
{
    tn_crash_disk_settle();
    free(all.journal);
    empty(&all.now), empty(&all.base), empty(&all.found);
    ck_assert_int_eq(tn_set_io(NULL), TN_OK);
}
