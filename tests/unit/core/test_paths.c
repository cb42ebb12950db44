/* test_paths.c — names of files that a system may handle differently: umlauts and spaces, more characters than the 260
 * of Windows's older calls; files of more than 4 GB; a file that is replaced while it is read. */
#include "core/system/system.h"

#include "tests/common/check_main.h"

#include "core/core.h"
#include <stdlib.h>
#include <string.h>

/* A folder below the test's whose path has at least `length` characters. */
static const char *deep_folder(size_t length)
{
    const char *at = tn_test_folder("d \xc3\xbc \xe6\xbc\xa2"); /* "d ü 漢" */
    while (strlen(at) < length) {
        at = tn_test_in(at, "Gr\xc3\xb6\xc3\x9f"
                            "e in Gramm, gerundet"); /* "Größe" */
        ck_assert(mkdir(at, 0777) == 0 || errno == EEXIST);
    }
    return at;
}

/* Its last element, an f32; -1: there is no tensor. */
static float last(const tn_tensor *t) { return t ? ((const float *)tn_data(t))[tn_numel(t) - 1] : -1; }

static float saved_at(const char *path)
{
    ck_assert_int_eq(tn_npy_save(path, tn_full(TN_SHAPE(5), 3)), TN_OK);
    return last(tn_npy_load(path));
}

TEST(long_paths)
{
    const char *folder = deep_folder(300), *path = tn_test_in(folder, "x y.npy");
    ck_assert(saved_at(path) == 3);
    ck_assert(saved_at(path) == 3); /* replaced */
    DIR           *d = opendir(folder);
    struct dirent *e = NULL;
    ck_assert(d);
    while ((e = readdir(d)) && strcmp(e->d_name, "x y.npy") != 0) continue;
    ck_assert(e);
    closedir(d);
    ck_assert_int_eq(tn__sys_unlink(path), 0);
}

/* A safetensors file with one tensor before and one after 5 GB of zeros, which are a hole in the file. */
TEST(five_gigabytes)
{
    const int64_t gap = 5000000000, x = 0x3f8000003f800000; /* two ones of f32 */
    const char   *path = tn_test_file("large.safetensors");
    char          header[300] = "";
    const int     n = snprintf(header + 8, sizeof header - 8,
                               "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                   "\"gap\":{\"dtype\":\"U8\",\"shape\":[%lld],\"data_offsets\":[8,%lld]},"
                                   "\"z\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%lld,%lld]}}",
                               (long long)gap, (long long)(gap + 8), (long long)(gap + 8), (long long)(gap + 16));
    header[0] = (char)(n & 0xff), header[1] = (char)(n >> 8);
    const int fd = tn__sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(tn__sys_write(fd, header, 8 + (size_t)n), 8 + n);
    ck_assert_int_eq(tn__sys_pwrite(fd, &x, sizeof x, 8 + n), sizeof x);
    ck_assert_int_eq(tn__sys_pwrite(fd, &x, sizeof x, 16 + n + gap), sizeof x);
    ck_assert_int_eq(tn__sys_close(fd), 0);
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert_msg(f, "%s", tn_error_message());
    ck_assert(last(tn_safetensors_get(f, "a")) == 1);
    ck_assert(last(tn_safetensors_get(f, "z")) == 1);
    tn_safetensors_close(f);
    ck_assert_int_eq(tn__sys_unlink(path), 0);
}

TEST(replaced_while_read)
{
    const char *path = tn_test_file("read.npy");
    ck_assert(saved_at(path) == 3);
    FILE *reader = fopen(path, "rb");
    ck_assert(reader && getc(reader) == 0x93);
    ck_assert_int_eq(tn_npy_save(path, tn_full(TN_SHAPE(5), 4)), TN_OK);
    ck_assert_int_eq(getc(reader), 'N'); /* of the old file */
    fclose(reader);
    ck_assert(last(tn_npy_load(path)) == 4);
}
