/* faults.c — an allocator and a file system that fail on demand. See faults.h. */
#include "core/system/system.h"

#include "tests/common/faults.h"

#include "core/core.h"
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct { /* number of injected failures since the program started */
    _Atomic(int64_t) memory, files;
} faults;
int64_t tn_faults_of_memory(void) { return faults.memory; }
int64_t tn_faults_of_files(void) { return faults.files; }

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static struct { /* atomic, because helper threads of the library also allocate */
    _Atomic(int64_t) calls, fail_at, blocks;
    _Atomic(bool)    for_ever;
} memory;

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    int64_t call = memory.calls++, at = memory.fail_at;
    if (at >= 0 && (call == at || (memory.for_ever && call > at))) {
        faults.memory++;
        return NULL;
    }
    void *p = tn__sys_alloc(64, (bytes + 63) / 64 * 64);
    if (p) memset(p, 0xa5, bytes); /* makes reads of uninitialised memory visible */
    memory.blocks += p != NULL;
    errno = ENOMEM; /* malloc may also set errno when it succeeds */
    return p;
}

static void release(void *user, void *p, size_t bytes)
{
    (void)user;
    memset(p, 0x5a, bytes);
    tn__sys_free(p);
    memory.blocks--;
    errno = EINVAL;
}

void tn_faulty_memory_begin(void)
{
    tn_fail_memory(-1, false);
    tn_set_cache_limit(0);
    ck_assert_int_eq(tn_set_allocator(&(tn_allocator){allocate, release, NULL}), TN_OK);
}

void tn_faulty_memory_end(void)
{
    tn_fail_memory(-1, false);
    tn_status s = tn_set_allocator(NULL);
    ck_assert_msg(s == TN_OK, "%s", tn_error_message());
    ck_assert_int_eq(memory.blocks, 0);
    tn_set_cache_limit(SIZE_MAX);
}

void tn_fail_memory(int64_t call, bool for_ever)
{
    memory.calls = 0;
    memory.fail_at = call;
    memory.for_ever = for_ever;
}
int64_t tn_memory_calls(void) { return memory.calls; }
int64_t tn_memory_blocks(void) { return memory.blocks; }

void tn_each_allocation_fails(double (*once)(int i), int i, int64_t stride, int64_t retry, int64_t least)
{
    tn_set_threads(1);
    tn_faulty_memory_begin();
    const double want = once(i);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_fail_memory(-1, false);
    once(i); /* the number of calls with warm caches */
    const int64_t calls = tn_memory_calls();
    int64_t       spared = 0;
    ck_assert_int_gt(calls, least);
    for (int64_t at = 0; at < calls; at += stride)
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            tn_fail_memory(at, for_ever);
            const double got = once(i);
            if (!for_ever && tn_error() == TN_OK) { /* spare memory was freed, and the allocation repeated */
                ck_assert_double_eq(got, want);
                spared++;
                continue;
            }
            ck_assert_msg(tn_error() == TN_ENOMEM, "call %lld: %s", (long long)at, tn_error_message());
            tn_clear_error();
            tn_fail_memory(-1, false);
            if (at % retry == 0) ck_assert_double_eq(once(i), want);
        }
    ck_assert_int_le(8 * spared, calls / stride);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_faulty_memory_end();
    tn_set_threads(0);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

enum { LOGGED = 4096 };
static struct {
    int64_t     calls, fail_at, open;
    int         code;
    bool        for_ever;
    const char *log[LOGGED];
} files;

/* Returns 0: continue; 1: a short transfer (TN_SHORT); a negative errno: fail. */
static int fault(const char *name)
{
    int64_t call = files.calls++;
    if (call < LOGGED) files.log[call] = name;
    if (files.fail_at < 0 || call < files.fail_at || (call > files.fail_at && !files.for_ever)) return 0;
    bool cleanup = !strcmp(name, "close") || !strcmp(name, "unlink");
    if (files.for_ever && cleanup && !(files.code & TN_NO_CLEANUP)) return 0;
    faults.files++;
    return files.code == TN_SHORT ? 1 : -(files.code & ~TN_NO_CLEANUP);
}

static int f_open(void *u, const char *path, int flags, unsigned mode)
{
    int r = fault("open");
    if (r < 0) return r;
    r = tn_system_io()->open(u, path, flags, mode);
    files.open += r >= 0;
    return r;
}
static int f_fstat(void *u, int fd, struct stat *st)
{
    int r = fault("fstat");
    return r < 0 ? r : tn_system_io()->fstat(u, fd, st);
}
static int f_lstat(void *u, const char *path, struct stat *st)
{
    int r = fault("lstat");
    return r < 0 ? r : tn_system_io()->lstat(u, path, st);
}
static int64_t f_pread(void *u, int fd, void *to, size_t n, int64_t at)
{
    int r = fault("pread");
    return r < 0 ? r : tn_system_io()->pread(u, fd, to, r && n ? 1 : n, at);
}
static int64_t f_write(void *u, int fd, const void *from, size_t n)
{
    int r = fault("write");
    return r < 0 ? r : tn_system_io()->write(u, fd, from, r && n ? 1 : n);
}
static int f_reserve(void *u, int fd, int64_t n)
{
    int r = fault("reserve");
    return r < 0 ? r : tn_system_io()->reserve(u, fd, n);
}
static int f_fsync(void *u, int fd)
{
    (void)u, (void)fd;
    int r = fault("fsync");
    return r < 0 ? r : 0; /* no real sync: the disk is not tested */
}
static int f_close(void *u, int fd) /* closes even if it fails, as Linux does */
{
    int r = fault("close"), closed = tn_system_io()->close(u, fd);
    files.open--;
    return r < 0 ? r : closed;
}
static int f_rename(void *u, const char *from, const char *to)
{
    int r = fault("rename");
    return r < 0 ? r : tn_system_io()->rename(u, from, to);
}
static int f_unlink(void *u, const char *path)
{
    int r = fault("unlink");
    return r < 0 ? r : tn_system_io()->unlink(u, path);
}

void tn_faulty_files_begin(void)
{
    static const tn_io io = {f_open,  f_fstat, f_lstat,  f_pread,  f_write, f_reserve,
                             f_fsync, f_close, f_rename, f_unlink, NULL};
    files.open = 0;
    tn_fail_file(-1, 0, false);
    ck_assert_int_eq(tn_set_io(&io), TN_OK);
}

void tn_faulty_files_end(void)
{
    ck_assert_int_eq(tn_set_io(NULL), TN_OK);
    ck_assert_int_eq(files.open, 0);
}

void tn_fail_file(int64_t call, int code, bool for_ever)
{
    files.calls = 0;
    files.fail_at = call;
    files.code = code;
    files.for_ever = for_ever;
}
int64_t     tn_file_calls(void) { return files.calls; }
int64_t     tn_open_files(void) { return files.open; }
const char *tn_file_call(int64_t call) { return call >= 0 && call < LOGGED && files.log[call] ? files.log[call] : "?"; }

int tn_names_beside(const char *path)
{
    char        folder[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    DIR *d = opendir(folder);
    int  n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    if (d) closedir(d);
    return n;
}
