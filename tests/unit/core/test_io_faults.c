/* test_io_faults.c — files that fail: at every call, once and permanently, the old file survives, no temporary file
 * remains, and the retry gives the same bytes. And files that are not regular are neither read nor replaced. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/core.h"
#include "tests/common/faults.h"
#include "tests/common/layouts.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- saving and loading ------------------------------------------------------------------------------------------ */

static tn_status save_npy(const char *path) { return tn_npy_save(path, tn__sample(TN_F32, 1)); }

static tn_status save_safetensors(const char *path)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "a", tn__sample(TN_F64, 0));
    tn_safetensors_put(w, "b", tn__sample(TN_BF16, 2));
    tn_safetensors_note(w, "step", "1");
    tn_status s = tn_safetensors_save(w, path);
    tn_safetensors_writer_free(w);
    return s;
}

static tn_status save_json(const char *path)
{
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_array(w, NULL);
    tn_json_put_double(w, NULL, 0.1);
    tn_json_close(w);
    tn_status s = tn_json_save(w, path);
    tn_json_writer_free(w);
    return s;
}

static tn_status save_bytes(const char *path) { return tn_file_write(path, "some bytes", 10); }
static tn_status save_nothing(const char *path) { return tn_file_write(path, NULL, 0); }

static bool load_npy(const char *path) { return tn_same_bits(tn_npy_load(path), tn__sample(TN_F32, 1)); }

static bool load_safetensors(const char *path)
{
    tn_safetensors *f = tn_safetensors_open(path);
    tn_tensor      *a = f ? tn_safetensors_get(f, "a") : NULL, *b = f ? tn_safetensors_get(f, "b") : NULL;
    tn_safetensors_close(f);
    return tn_error() == TN_OK && tn_same_bits(a, tn__sample(TN_F64, 0)) && tn_same_bits(b, tn__sample(TN_BF16, 2));
}

static bool load_json(const char *path)
{
    tn_json *v = tn_json_load(path);
    bool     same = tn_json_double(tn_json_at(v, 0)) == 0.1;
    tn_json_free(v);
    return same;
}

static bool load_bytes(const char *path)
{
    tn_tensor *t = tn_file_read(path, 10);
    return t && tn_numel(t) == 10 && !memcmp(tn_data(t), "some bytes", 10);
}
static bool load_nothing(const char *path) { return tn_numel(tn_file_read(path, 0)) == 0 && tn_error() == TN_OK; }

static const struct {
    const char *name;
    tn_status (*save)(const char *path);
    bool (*load)(const char *path);
} formats[] = {{"a.npy", save_npy, load_npy},
               {"a.safetensors", save_safetensors, load_safetensors},
               {"a.json", save_json, load_json},
               {"a.bin", save_bytes, load_bytes},
               {"empty.bin", save_nothing, load_nothing}};
enum { FORMATS = sizeof formats / sizeof *formats };

static const int codes[] = {EIO, ENOSPC, EINTR, EAGAIN, TN_SHORT};
enum { CODES = sizeof codes / sizeof *codes };

static void write_plain(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}
static bool holds_plain(const char *path, const char *text)
{
    char   buf[100];
    FILE  *f = fopen(path, "rb");
    size_t n = f ? fread(buf, 1, sizeof buf, f) : 0;
    if (f) fclose(f);
    return f && n == strlen(text) && !memcmp(buf, text, n);
}

/* ---- a fault at every call --------------------------------------------------------------------------------------- */

static void save_with_faults(int format, int code, bool for_ever, bool old)
{
    static const char before[] = "the old file";
    const char       *path = tn_test_file(formats[format].name);
    unlink(path);
    ck_assert_int_eq(formats[format].save(path), TN_OK);
    tn_tensor *expected = tn_file_read(path, 1 << 20);
    unlink(path);
    int beside = tn_names_beside(path), failures = 0;
    for (int64_t at = 0;; at++) {
        if (old) write_plain(path, before);
        else unlink(path);
        tn_faulty_files_begin();
        tn_fail_file(at, code, for_ever);
        tn_status s = formats[format].save(path);
        int64_t   calls = tn_file_calls();
        ck_assert_int_eq(s, tn_error());
        tn_fail_file(-1, 0, false);
        char what[1400];
        snprintf(what, sizeof what, "%s, %s, call %lld (%s), %s: %s", path, code == TN_SHORT ? "short" : strerror(code),
                 (long long)at, tn_file_call(at), for_ever ? "for ever" : "once", tn_error_message());
        ck_assert_msg(s == TN_OK || s == TN_EIO, "%s", what);
        tn_clear_error();
        failures += s != TN_OK;
        /* the file is the complete old or new one; success means the new one */
        bool is_new = access(path, F_OK) == 0 && tn_same_bits(tn_file_read(path, 1 << 20), expected);
        bool is_old = old ? holds_plain(path, before) : access(path, F_OK) != 0;
        tn_clear_error();
        ck_assert_msg(s == TN_OK ? is_new : is_old || is_new, "%s", what);
        /* after the rename only the folder is synced and closed; before it, the old file must exist */
        if (s != TN_OK && is_new) ck_assert_msg(strstr(what, "the new file is in place, but its folder"), "%s", what);
        ck_assert_msg(tn_names_beside(path) == beside + (is_new || old), "something is left behind: %s", what);
        ck_assert_msg(tn_open_files() == 0, "%s", what);
        if (code == TN_SHORT) ck_assert_msg(s == TN_OK, "%s", what);
        ck_assert_msg(formats[format].save(path) == TN_OK, "the retry: %s: %s", what, tn_error_message());
        tn_faulty_files_end();
        ck_assert_msg(tn_same_bits(tn_file_read(path, 1 << 20), expected), "the retry: %s", what);
        if (at >= calls) break;
    }
    if (code == EIO) ck_assert_int_ge(failures, 7); /* lstat, open, open, reserve, write, fsync, close, rename, fsync */
    unlink(path);
}

TEST_EACH(saving, FORMATS)
{
    for (int c = 0; c < CODES; c++)
        for (int i = 0; i < 4; i++) save_with_faults(_i, codes[c], i & 1, i >> 1);
}

TEST_EACH(loading, FORMATS)
{
    const char *path = tn_test_file(formats[_i].name);
    ck_assert_int_eq(formats[_i].save(path), TN_OK);
    for (int c = 0; c < CODES; c++)
        for (int for_ever = 0; for_ever < 2; for_ever++)
            for (int64_t at = 0;; at++) {
                tn_faulty_files_begin();
                tn_fail_file(at, codes[c], for_ever);
                bool      good = formats[_i].load(path);
                tn_status s = tn_error();
                bool      reached = tn_file_calls() > at;
                ck_assert_msg((s == TN_OK) == good, "call %lld (%s): %s", (long long)at, tn_file_call(at),
                              tn_error_message());
                if (codes[c] == TN_SHORT || (codes[c] == EINTR && !for_ever && !strstr(tn_file_call(at), "stat")))
                    ck_assert_msg(good, "call %lld (%s): %s", (long long)at, tn_file_call(at), tn_error_message());
                const bool named = strstr(tn_error_message(), path) || strstr(tn_error_message(), "/SHA256SUMS'");
                if (!good) ck_assert_msg(s == TN_EIO && named, "%s", tn_error_message());
                tn_clear_error();
                ck_assert_int_eq(tn_open_files(), 0);
                tn_fail_file(-1, 0, false);
                ck_assert_msg(formats[_i].load(path), "%s", tn_error_message());
                tn_faulty_files_end();
                if (!reached) break;
            }
    unlink(path);
}

/* Even the clean-up fails: at worst a temporary name remains. */
TEST(nothing_can_be_removed)
{
    for (int format = 0; format < FORMATS; format++) {
        char folder[300];
        snprintf(folder, sizeof folder, "%s.d", tn_test_file(formats[format].name));
        ck_assert_int_eq(mkdir(folder, 0777), 0);
        char path[400];
        snprintf(path, sizeof path, "%s/x", folder);
        for (int64_t at = 0; at < 14; at++) {
            write_plain(path, "old");
            tn_faulty_files_begin();
            tn_fail_file(at, EIO | TN_NO_CLEANUP, true);
            tn_status s = formats[format].save(path);
            ck_assert_int_eq(s, tn_error());
            bool in_place = strstr(tn_error_message(), "is in place") != NULL;
            tn_clear_error();
            tn_faulty_files_end();
            ck_assert(s == TN_OK || in_place || holds_plain(path, "old"));
        }
    }
}

TEST(interrupted_for_ever)
{
    const char *path = tn_test_file("interrupted.bin");
    ck_assert_int_eq(save_bytes(path), TN_OK);
    tn_faulty_files_begin();
    tn_fail_file(0, EINTR, true);
    ck_refused_has(tn_file_read(path, 10), TN_EIO, "interrupted.bin': cannot open: interrupted repeatedly (errno 4)");
    tn_faulty_files_end();
}

TEST(messages)
{
    static const struct {
        const char *call;
        int         code;
        const char *says;
    } rows[] = {{"lstat", EACCES, "cannot check for an old file: permission denied (errno 13)"},
                {"open", EMFILE, "cannot open its folder: this process has too many files open (errno 24)"},
                {"reserve", ENOSPC, "cannot reserve 10 bytes: no space left on the device (errno 28)"},
                {"reserve", EDQUOT, "cannot reserve 10 bytes: the disk quota is used up"},
                {"write", EIO, "cannot write: input/output error (errno 5)"},
                {"fsync", EIO, "cannot sync it to the disk (fsync): input/output error (errno 5)"},
                {"close", EIO, "cannot close it: input/output error"},
                {"rename", EXDEV, "cannot rename the new file over the old one: another file system (errno 18)"},
                {"rename", 4095, "unknown system error (errno 4095)"}};
    const char *path = tn_test_file("message.bin");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_faulty_files_begin();
        ck_assert_int_eq(save_bytes(path), TN_OK);
        int64_t at = 0;
        while (strcmp(tn_file_call(at), rows[i].call) != 0) at++;
        tn_fail_file(at, rows[i].code, false);
        ck_assert_int_eq(save_bytes(path), TN_EIO);
        ck_assert_msg(!strncmp(tn_error_message(), "tn_file_write: '", 16), "%s", tn_error_message());
        ck_error_has(TN_EIO, rows[i].says);
        tn_faulty_files_end();
    }
}

/* Bytes are added to the end of a file, or the error says why not. */
TEST(append)
{
    const char *path = tn_test_file("append.txt");
    unlink(path);
    ck_assert_int_eq(tn_file_append(path, "ab", 2), TN_OK);
    ck_assert_int_eq(tn_file_append(path, NULL, 0), TN_OK);
    ck_assert_int_eq(tn_file_append(path, "c\n", 2), TN_OK);
    const tn_scope s = tn_scope_begin();
    tn_tensor     *t = tn_file_read(path, 100);
    ck_assert(t && tn_numel(t) == 4 && !memcmp(tn_data(t), "abc\n", 4));
    tn_scope_end(s);
    ck_fails_has(tn_file_append(path, NULL, 1), TN_EINVAL, "data is NULL, but bytes is 1");
    ck_fails(tn_file_append(NULL, "a", 1), TN_EINVAL, "tn_file_append: the path is NULL");
    ck_fails_has(tn_file_append(tn_test_folder("append"), "a", 1), TN_EIO, "it is a folder");
    tn_faulty_files_begin();
    ck_assert_int_eq(tn_file_append(path, "d", 1), TN_OK);
    const int64_t calls = tn_file_calls(); /* open, fstat, write, close */
    ck_assert_str_eq(tn_file_call(calls - 1), "close");
    for (int64_t i = 0; i < calls; i++) {
        tn_fail_file(i, EIO, false);
        ck_assert_int_eq(tn_file_append(path, "d", 1), i < calls - 1 ? TN_EIO : TN_OK);
        tn_clear_error();
    }
    tn_faulty_files_end();
}

/* If a file system cannot reserve space or sync a folder, saving still works. */
TEST(what_is_only_a_precaution)
{
    static const struct {
        const char *call;
        int         which, code;
    } rows[] = {{"reserve", 0, EOPNOTSUPP}, {"reserve", 0, EINTR}, {"reserve", 0, ENOSYS},
                {"fsync", 1, EINVAL},       {"open", 0, EACCES},   {"close", 0, EINTR}};
    const char *path = tn_test_file("precaution.bin");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unlink(path);
        tn_faulty_files_begin();
        ck_assert_int_eq(save_bytes(path), TN_OK);
        int64_t at = -1;
        for (int k = 0; k <= rows[i].which; k++)
            for (at++; strcmp(tn_file_call(at), rows[i].call) != 0; at++) continue;
        unlink(path);
        tn_fail_file(at, rows[i].code, false);
        ck_assert_msg(save_bytes(path) == TN_OK, "%s", tn_error_message());
        tn_faulty_files_end();
        ck_assert(load_bytes(path));
    }
}

/* ---- real failures ----------------------------------------------------------------------------------------------- */

TEST(a_limit_on_file_sizes)
{
    const char   *path = tn_test_file("limited.npy");
    struct rlimit old, small;
    ck_assert_int_eq(tn_npy_save(path, tn_ones(TN_SHAPE(8))), TN_OK);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old, small.rlim_cur = 200;
    int beside = tn_names_beside(path);
    int set = setrlimit(RLIMIT_FSIZE, &small); /* SIGXFSZ would end this program; no ck_assert in here, it writes */
    tn_status s = tn_npy_save(path, tn_ones(TN_SHAPE(1000)));
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert_int_eq(set, 0);
    ck_fails_has(
        s, TN_EIO,
        "cannot reserve 4128 bytes: the file would be larger than the process or the file system allows (errno 27)");
    ck_assert_int_eq(tn_names_beside(path), beside);
    ck_assert_int_eq(tn_numel(tn_npy_load(path)), 8);
    ck_assert_int_eq(tn_npy_save(path, tn_ones(TN_SHAPE(1000))), TN_OK);
}

static int open_full(void *user, const char *path, int flags, unsigned mode)
{
    return flags & O_CREAT ? open("/dev/full", O_WRONLY) : tn_system_io()->open(user, path, flags, mode);
}

TEST(a_full_device)
{
    if (access("/dev/full", W_OK)) return; /* not available on this system */
    const char *path = tn_test_file("full.npy");
    tn_io       io = *tn_system_io();
    io.open = open_full;
    ck_assert_int_eq(tn_npy_save(path, tn_ones(TN_SHAPE(8))), TN_OK);
    tn_set_io(&io);
    tn_status s = tn_npy_save(path, tn_ones(TN_SHAPE(1000)));
    tn_set_io(NULL);
    ck_fails_has(s, TN_EIO, "full.npy': cannot write: no space left on the device (errno 28)");
    ck_assert_int_eq(tn_numel(tn_npy_load(path)), 8);

    ck_fails_has(tn_npy_save("/dev/full", tn_ones(TN_SHAPE(8))), TN_EINVAL,
                 "tn_npy_save: '/dev/full': there is a device of this name; only a regular file is replaced");
    struct stat st;
    ck_assert(!stat("/dev/full", &st) && S_ISCHR(st.st_mode));
}

TEST(what_is_no_regular_file)
{
    const char *folder = tn_test_file("folder"), *pipe_name = tn_test_file("pipe"), *link_name = tn_test_file("link"),
               *target = tn_test_file("target");
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_int_eq(mkfifo(pipe_name, 0666), 0);
    ck_assert_int_eq(save_npy(target), TN_OK);
    ck_assert_int_eq(symlink("target", link_name), 0);

    ck_refused_has(tn_npy_load(folder), TN_EINVAL, "folder': this is a folder; only regular files are read");
    ck_assert_ptr_null(tn_safetensors_open(pipe_name)); /* and does not wait for a writer */
    ck_error_has(TN_EINVAL, "pipe': this is a pipe; only regular files are read");
    ck_refused_has(tn_json_load("/dev/null"), TN_EINVAL,
                   "tn_json_load: '/dev/null': this is a device; only regular files are read");
    ck_refused_has(tn_file_read(tn_test_file("none"), 10), TN_EIO,
                   "none': cannot open: no such file or folder (errno 2)");
    ck_refused_has(tn_npy_load(tn_test_file("target/x")), TN_EIO, "cannot open: a part of the path is not a folder");
    ck_refused_has(tn_npy_load(""), TN_EINVAL, "tn_npy_load: '': the path is empty");
    ck_refused_has(tn_npy_load(NULL), TN_EINVAL, "tn_npy_load: the path is NULL");
    ck_assert(load_npy(link_name)); /* reading follows links, as everything does */

    ck_fails_has(save_npy(folder), TN_EINVAL, "folder': there is a folder of this name");
    ck_fails_has(save_npy(pipe_name), TN_EINVAL, "pipe': there is a pipe of this name");
    ck_fails_has(save_npy(link_name), TN_EINVAL,
                 "there is a symbolic link of this name; only a regular file is replaced (pass the link's target)");
    ck_fails_has(save_npy(tn_test_file("folder/")), TN_EINVAL, "folder/': this names a folder, not a file");
    ck_fails_has(save_npy(tn_test_file("none/x.npy")), TN_EIO,
                 "none/x.npy': cannot open its folder: no such file or folder");
    ck_fails_has(save_npy(""), TN_EINVAL, "the path is empty");
    ck_fails_has(save_npy(NULL), TN_EINVAL, "tn_npy_save: the path is NULL");
    ck_fails_has(tn_file_write(target, NULL, 3), TN_EINVAL, "data is NULL, but bytes is 3");
    ck_refused_has(tn_file_read(target, 10), TN_EINVAL, "more than the limit of 10");
}

TEST(paths_of_all_kinds)
{
    char        name[300], path[600], here[4096];
    const char *folder = tn_test_file("in");
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(folder), 0);
    bool plain = save_npy("plain.npy") == TN_OK && load_npy("plain.npy"); /* no folder in the path */
    ck_assert_int_eq(chdir(here), 0);
    ck_assert(plain);
    memset(name, 'n', sizeof name);
    for (int n = 190; n <= 256; n += 11) { /* the temporary name must fit, too; 256 is one too many */
        snprintf(path, sizeof path, "%s/%.*s", folder, n, name);
        ck_assert_msg(save_npy(path) == (n > 255 ? TN_EIO : TN_OK), "%d: %s", n, tn_error_message());
        if (n > 255) ck_error_has(TN_EIO, "the name is too long");
        else ck_assert(load_npy(path));
    }
    snprintf(path, sizeof path, "%s/a 'b'\n\xff\xc3\xa9", folder); /* any bytes, shown as far as possible */
    ck_assert_int_eq(save_npy(path), TN_OK);
    ck_assert_ptr_null(tn_json_load(path));
    ck_assert_ptr_nonnull(
        strstr(tn_error_message(), "in/a 'b'\\x0a\\xff\xc3\xa9': line 1, column 1 (byte 0): the byte 0x93"));
    tn_clear_error();
}

TEST(permissions_stay)
{
    const char *path = tn_test_file("private.npy");
    struct stat st;
    mode_t      mask = umask(022);
    ck_assert_int_eq(save_npy(path), TN_OK);
    ck_assert(!stat(path, &st) && (st.st_mode & 0777) == 0644);
    chmod(path, 0600);
    ck_assert_int_eq(save_npy(path), TN_OK);
    ck_assert(!stat(path, &st) && (st.st_mode & 0777) == 0600);
    umask(mask);
}

TEST(a_file_that_shrinks)
{
    const char *path = tn_test_file("shrinks.safetensors");
    ck_assert_int_eq(save_safetensors(path), TN_OK);
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert_int_eq(truncate(path, 210), 0);
    ck_refused_has(tn_safetensors_get(f, "a"), TN_EIO, "it ends at byte 210, but had");
    ck_assert_int_eq(save_safetensors(path), TN_OK); /* a new file of this name: the open one stays the old one */
    ck_assert_ptr_null(tn_safetensors_get(f, "a"));
    tn_clear_error();
    tn_safetensors_close(f);
    ck_assert(load_safetensors(path));
}

TEST(no_more_files)
{
    const char   *path = tn_test_file("many.npy");
    struct rlimit old, none;
    ck_assert_int_eq(save_npy(path), TN_OK);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old, none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    tn_tensor *t = tn_npy_load(path);
    setrlimit(RLIMIT_NOFILE, &old);
    ck_refused_has(t, TN_EIO, "cannot open: this process has too many files open");
    ck_assert(load_npy(path));
}

TEST(errno_stays)
{
    errno = 4321;
    tn_npy_load(tn_test_file("not there"));
    ck_assert_int_eq(errno, 4321);
    tn_clear_error();
    ck_assert_int_eq(save_safetensors(tn_test_file("errno.safetensors")), TN_OK);
    ck_assert(load_safetensors(tn_test_file("errno.safetensors")));
    ck_assert_int_eq(errno, 4321);
}

TEST(an_incomplete_io)
{
    tn_io io = *tn_system_io();
    io.fsync = NULL;
    ck_fails_has(tn_set_io(&io), TN_EINVAL,
                 "tn_set_io: every member must be set; copy *tn_system_io() and change what you need");
    ck_assert_int_eq(save_npy(tn_test_file("still.npy")), TN_OK);
}
