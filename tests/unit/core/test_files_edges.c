/* test_files_edges.c — edge cases of core/files.h: long names in messages, duplicate names, sizes that overflow, and
 * calls skipped while an error is set. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/core.h"
#include "core/tensor/tensor.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* A long name is shortened in its middle, between characters, and keeps more of its end. */
TEST(long_names)
{
    char name[400] = "", text[500];
    for (int i = 0; i < 70; i++) strcat(name, "\xe2\x82\xac"); /* 210 bytes of 3-byte characters */
    for (int shift = 0; shift < 3; shift++) {
        snprintf(text, sizeof text, "%.*s%s.weight", shift, "ab", name);
        ck_assert_ptr_null(tn_safetensors_open(text));
        const char *m = tn_error_message(), *dots = strstr(m, "...");
        ck_assert_int_eq(tn_error(), TN_EIO);
        ck_assert_ptr_nonnull(dots);
        ck_assert_ptr_nonnull(strstr(m, ".weight': cannot open"));
        ck_assert_uint_eq(tn_utf8_valid(m, strlen(m)), strlen(m));
        ck_assert(dots - strchr(m, '\'') < 45 && strlen(m) < 280);
        tn_clear_error();
    }
    memset(name, 1, 160), name[160] = 0; /* each is shown as four: the quotation stops at the end of its buffer */
    ck_assert_ptr_null(tn_json_load(name));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "\\x01\\x01': cannot open"));
    tn_clear_error();
}

TEST(deep_places)
{
    char text[8000], *p = text;
    for (int i = 0; i < 60; i++) p += sprintf(p, "{\"a rather long name of a member\":");
    p += sprintf(p, "false");
    for (int i = 0; i < 60; i++) *p++ = '}';
    tn_json       *v = tn_json_parse(text, (size_t)(p - text));
    const tn_json *x = v;
    while (tn_json_count(x)) x = tn_json_first(x);
    tn_json_i64(x);
    ck_assert_ptr_nonnull(
        strstr(tn_error_message(), "a rather long name of a member... (byte 2040) is false, expected"));
    tn_clear_error();
    ck_refused_has(tn_json_need(v, NULL), TN_EINVAL, "tn_json_need: the key is NULL");
    ck_assert_double_eq(tn_json_double(x), 0);
    ck_error_has(TN_EFORMAT, "is false, expected a number");
    tn_json_free(v);

    v = tn_json_parse("[null,{},\"x\\u0000\"]", 19);
    tn_json_double(tn_json_at(v, 0));
    ck_error_has(TN_EFORMAT, "[0] (byte 1) is null, expected a number");
    ck_refused_has(tn_json_bool(tn_json_at(v, 0)), TN_EFORMAT, "[0] (byte 1) is null, expected true or false");
    ck_assert_str_eq(tn_json_string(tn_json_at(v, 0)), "");
    ck_error_has(TN_EFORMAT, "[0] (byte 1) is null, expected a string");
    ck_refused_has(tn_json_need(tn_json_at(v, 1), "k"), TN_EINDEX, "[1] (byte 6) has no 'k'");
    tn_json_u64(tn_json_at(v, 2));
    ck_error_has(TN_EFORMAT, "[2] (byte 9) is the string 'x\\x00', expected an integer from 0 to 2^64 - 1");
    tn_json_free(v);
}

TEST(long_characters_found)
{
    ck_refused_has(tn_json_parse("[\xe2\x82\xac]", 5), TN_EFORMAT, "found '\xe2\x82\xac', expected a value or ']'");
    ck_refused_has(tn_json_parse("[\"\\\xe2\x82\xac\"]", 7), TN_EFORMAT,
                   "unknown escape: a backslash before '\xe2\x82\xac'");
    ck_refused_has(
        tn_json_parse("[1,\r\n\t ]", 8), TN_EFORMAT,
        "line 2, column 3 (byte 7): found ']', expected a value; a comma must not precede a closing bracket");
}

TEST(none_of_none)
{
    tn_safetensors *f = tn_safetensors_read("\2\0\0\0\0\0\0\0{}", 10);
    ck_assert_str_eq(tn_safetensors_at(f, 0).name, "");
    ck_error_has(TN_EINDEX, "tn_safetensors_at: 0, but the file has none");
    ck_refused_has(tn_safetensors_get_at(f, 0), TN_EINDEX, "tn_safetensors_get_at: 0, but the file has none");
    ck_assert_str_eq(tn_safetensors_metadata_at(f, 0, NULL), "");
    ck_error_has(TN_EINDEX, "tn_safetensors_metadata_at: 0, but the file has none");
    ck_refused_has(tn_safetensors_get(f, "x"), TN_EINDEX, "no tensor 'x' among its 0");
    ck_assert_ptr_null(tn_safetensors_metadata(f, "x"));
    ck_assert_ptr_null(tn_safetensors_metadata(f, NULL));
    ck_refused_has(tn_safetensors_get_at(NULL, 0), TN_EINVAL, "tn_safetensors_get_at: the file is NULL");
    tn_safetensors_close(f);

    const char            *path = tn_test_file("one.safetensors");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "weight", tn_ones(TN_SHAPE(1)));
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
    f = tn_safetensors_open(path);
    ck_assert_ptr_null(tn_safetensors_get(f, "wight"));
    ck_assert_msg(!strncmp(tn_error_message(), "tn_safetensors_get: '", 21), "%s", tn_error_message());
    ck_error_has(TN_EINDEX, "one.safetensors': no tensor 'wight' among its 1; did you mean 'weight'?");
    tn_safetensors_close(f);
}

/* ---- existing names, writes of nothing --------------------------------------------------------------------------- */

static int  taken;
static char last[600];

static int open_taken(void *user, const char *path, int flags, unsigned mode)
{
    if (flags & O_CREAT) { /* never into a file, or through a link, that another process created */
        if ((flags & (O_EXCL | O_NOFOLLOW)) != (O_EXCL | O_NOFOLLOW)) ck_abort_msg("opened without O_EXCL: %s", path);
        if (!strcmp(last, path)) ck_abort_msg("the same name again: %s", path);
        snprintf(last, sizeof last, "%s", path);
        if (taken-- > 0) return -EEXIST;
    }
    return tn_system_io()->open(user, path, flags, mode);
}
static int64_t write_nothing(void *user, int fd, const void *from, size_t n)
{
    (void)user, (void)fd, (void)from, (void)n;
    return 0;
}

TEST(names_that_are_taken)
{
    const char *path = tn_test_file("taken.bin");
    tn_io       io = *tn_system_io();
    io.open = open_taken;
    tn_set_io(&io);
    taken = 7;
    tn_status s = tn_file_write(path, "x", 1);
    taken = 1000;
    tn_status never = tn_file_write(path, "y", 1);
    tn_set_io(NULL);
    ck_assert_int_eq(s, TN_OK);
    ck_fails_has(never, TN_EIO, "taken.bin': cannot create a file in its folder: it already exists");

    io = *tn_system_io();
    io.write = write_nothing;
    tn_set_io(&io);
    s = tn_file_write(path, "z", 1);
    tn_set_io(NULL);
    ck_fails_has(s, TN_EIO, "taken.bin': cannot write: no space left on the device");
    ck_assert_mem_eq(tn_data(tn_file_read(path, 1)), "x", 1);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static tn_tensor *repeated(tn_dtype dt, int64_t n) /* one element, n times */
{
    tn__layout l = {.shape = {.n = 1, .d = {n}}, .stride = {0}};
    return tn__alias(tn_zeros_of(dt, TN_SHAPE(1)), &l);
}

TEST(more_than_any_disk)
{
    const char *path = tn_test_file("huge.npy");
    tn_tensor  *t = repeated(TN_U8, INT64_MAX);
    ck_fails_has(tn_npy_save(path, t), TN_EUNSUPPORTED, "the file would have more than 2^63 - 1 bytes");
    ck_refused_has(tn_npy_write(t), TN_EUNSUPPORTED, "the file would have more than 2^63 - 1 bytes");
    t = repeated(TN_F64, (int64_t)1 << 59);
    ck_assert_int_eq(tn_npy_save(path, t), TN_EIO);
    tn_clear_error();
    ck_refused_has(tn_npy_write(t), TN_ENOMEM, "");
    ck_assert_int_ne(access(path, F_OK), 0);

    tn_safetensors_writer *w = tn_safetensors_writer_new();
    ck_assert_int_eq(tn_safetensors_put(w, "a", t), TN_OK);
    ck_refused_has(tn_safetensors_write(w), TN_ENOMEM, "");
    ck_assert_int_eq(tn_safetensors_put(w, "b", t), TN_OK);
    ck_refused_has(tn_safetensors_write(w), TN_EUNSUPPORTED,
                   "tn_safetensors_write: the tensors' bytes do not fit in 63 bits");
    ck_assert_int_eq(tn_safetensors_save(w, tn_test_file("huge.safetensors")), TN_EUNSUPPORTED);
    tn_clear_error();
    tn_safetensors_writer_free(w);
}

/* Each control character takes six bytes of JSON: 16 MiB of them exceed the limit of the header. */
TEST(a_header_too_large)
{
    size_t n = (16 << 20) - 100;
    char  *value = malloc(n + 1);
    memset(value, 1, n), value[n] = 0;
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    ck_assert_int_eq(tn_safetensors_note(w, "k", value), TN_OK);
    ck_refused_has(tn_safetensors_write(w), TN_EUNSUPPORTED, "tn_safetensors_write: a header of 1006");
    tn_safetensors_writer_free(w);
    free(value);
}

TEST(no_dims_at_all)
{
    const unsigned char f[] =
        "\x93NUMPY\x01\x00\x41\x00{'descr': '|i1', 'fortran_order': False, 'shape': (0, 2305843009213693952)}";
    ck_assert_ptr_null(tn_npy_read(f, 0)); /* and a type that is wider here: its size must also fit */
    tn_clear_error();
    unsigned char copy[sizeof f];
    memcpy(copy, f, sizeof f);
    copy[8] = (unsigned char)(sizeof f - 1 - 10);
    ck_refused_has(tn_npy_read(copy, sizeof f - 1), TN_ESHAPE, "tn_npy_read: [0, 2305843009213693952] is too large");
}

/* ---- while an error is set --------------------------------------------------------------------------------------- */

TEST(nothing_happens)
{
    const char            *path = tn_test_file("nothing.bin");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "x", tn_ones(TN_SHAPE(2)));
    tn_tensor      *bytes = tn_safetensors_write(w), *t = tn_ones(TN_SHAPE(2));
    tn_safetensors *f = tn_safetensors_read(tn_data(bytes), (size_t)tn_numel(bytes));
    tn_json        *v = tn_json_parse("{\"a\":[1]}", 9);
    tn_json_writer *j = tn_json_writer_new(0);
    tn_json_put_i64(j, NULL, 1);

    tn_raise(TN_ENUMERIC, "the first");
    ck_assert_int_eq(tn_file_write(path, "x", 1), TN_ENUMERIC);
    ck_assert_int_eq(tn_json_save(j, path), TN_ENUMERIC);
    ck_assert_int_eq(tn_npy_save(path, t), TN_ENUMERIC);
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_ENUMERIC);
    ck_assert_int_eq(tn_safetensors_put(w, "y", t), TN_ENUMERIC);
    ck_assert_int_eq(tn_safetensors_note(w, "y", "z"), TN_ENUMERIC);
    ck_assert_ptr_null(tn_file_read(path, 10));
    ck_assert_ptr_null(tn_json_load(path));
    ck_assert_ptr_null(tn_json_parse("1", 1));
    ck_assert_ptr_null(tn_json_writer_new(0));
    ck_assert_ptr_null(tn_safetensors_open(path));
    ck_assert_ptr_null(tn_safetensors_read("", 0));
    ck_assert_ptr_null(tn_safetensors_get(f, "x"));
    ck_assert_ptr_null(tn_safetensors_get_at(f, 0));
    ck_assert_ptr_null(tn_safetensors_write(w));
    ck_assert_int_eq(tn_json_put_double(NULL, NULL, 0.0 / 1), TN_ENUMERIC);
    ck_assert_str_eq(tn_error_message(), "the first (16 later calls skipped)");
    /* readers still work */
    ck_assert_int_eq(tn_json_i64(tn_json_first(tn_json_get(v, "a"))), 1);
    ck_assert_int_eq(tn_safetensors_count(f), 1);
    ck_assert_str_eq(tn_safetensors_at(f, 0).name, "x");
    /* and so does freeing */
    tn_json_free(v);
    tn_json_writer_free(j);
    tn_safetensors_close(f);
    tn_safetensors_writer_free(w);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_error_has(TN_ENUMERIC, "the first (16 later calls skipped)");
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *read_all(void *file)
{
    const tn_safetensors *f = file;
    intptr_t              wrong = 0;
    tn_scope              s = tn_scope_begin();
    for (int round = 0; round < 20; round++)
        for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
            tn_scope inner = tn_scope_begin();
            wrong += tn_get(tn_safetensors_get(f, tn_safetensors_at(f, i).name), 0) != (double)i;
            tn_scope_end(inner);
        }
    tn_safetensors_get(f, "none"); /* an error of this thread only */
    wrong += tn_error() != TN_EINDEX;
    tn_scope_end(s);
    return (void *)wrong;
}

TEST(threads_read_one_file)
{
    const char            *path = tn_test_file("shared.safetensors");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    char                   name[16];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "t%d", i);
        tn_safetensors_put(w, name, tn_full(TN_SHAPE(3000), i));
    }
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
    tn_safetensors *f = tn_safetensors_open(path);
    pthread_t       thread[4];
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, read_all, f), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(thread[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    tn_safetensors_close(f);
    ck_assert_int_eq(tn_error(), TN_OK);
}
