/* test_sha256sums.c — SHA256SUMS: every flipped bit of a small file is detected, the error for an edited file explains
 * how to accept it, and wherever a save is interrupted, the folder can be read: it has the old file or the new one. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/files/io.h"
#include "core/base/checksums.h"
#include "tests/common/crash_disk.h"
#include "tests/common/faults.h"
#include <errno.h>
#include <unistd.h>

static char folder[400], file[420], sums[420];

static void begin(void)
{
    snprintf(folder, sizeof folder, "%s", tn_test_file("summed"));
    snprintf(file, sizeof file, "%s/config.json", folder);
    snprintf(sums, sizeof sums, "%s/SHA256SUMS", folder);
    mkdir(folder, 0777);
    unlink(file), unlink(sums);
}
static void end(void)
{
    unlink(file), unlink(sums);
    ck_assert_int_eq(rmdir(folder), 0);
}

static tn_status save(int64_t layers)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, "layers", layers);
    tn_json_close(w);
    const tn_status s = tn_json_save_with_sha256(w, file);
    tn_json_writer_free(w);
    return s;
}
/* -1: an error is set. */
static int64_t load(void)
{
    tn_json      *doc = tn_json_load(file);
    const int64_t n = tn_json_i64(tn_json_need(doc, "layers"));
    tn_json_free(doc);
    return tn_error() == TN_OK ? n : -1;
}

static size_t get(const char *path, char to[1000])
{
    FILE        *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, 999, f) : 0;
    if (f) fclose(f);
    to[n] = 0;
    return n;
}
static void put(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(text, 1, n, f) == n);
    fclose(f);
}

TEST(known_answers) /* of FIPS 180-4 */
{
    static const struct {
        const char *text;
        int         times;
        const char *sum;
    } v[] = {{"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
             {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
             {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
             {"aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
    for (int i = 0; i < 4; i++)
        for (size_t step = 1; step < 100; step += 37) { /* in parts of any size */
            char       hex[65];
            tn__sha256 s = tn__sha256_begin();
            for (int k = 0; k < v[i].times; k++)
                for (size_t at = 0, n = strlen(v[i].text); at < n; at += step)
                    tn__sha256_put(&s, v[i].text + at, n - at < step ? n - at : step);
            tn__sha256_end(&s, hex);
            ck_assert_str_eq(hex, v[i].sum);
        }
}

TEST(no_bit_flips_unseen)
{
    char text[1000], line[1000];
    begin();
    ck_assert_int_eq(save(12), TN_OK);
    const size_t n = get(file, text), m = get(sums, line);
    ck_assert(n == 14 && m == 64 + 2 + 11 + 1);
    ck_assert_int_eq(load(), 12);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        put(file, text, n);
        ck_assert_int_eq(load(), -1);
        ck_error_has(TN_EFORMAT,
                     "summed/config.json' was changed after it was saved: its SHA-256 differs from SHA256SUMS in "
                     "its folder; if the change is intended, delete its line there");
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    put(file, text, n);
    for (size_t bit = 0; bit < 8 * m; bit++) { /* of the checksums: an error, or another name is protected */
        line[bit / 8] = (char)(line[bit / 8] ^ 1 << bit % 8);
        put(sums, line, m);
        const int64_t got = load();
        ck_assert_msg(got == -1 || (got == 12 && bit / 8 > 65), "bit %zu", bit);
        ck_assert((got == 12) == (tn_error() == TN_OK));
        tn_clear_error();
        line[bit / 8] = (char)(line[bit / 8] ^ 1 << bit % 8);
    }
    end();
}

TEST(the_way_out)
{
    static const char edited[] = "{\"layers\": 3}\n";
    char              line[1000], more[1200];
    begin();
    ck_assert_int_eq(save(12), TN_OK);
    put(file, edited, sizeof edited - 1);
    ck_assert_int_eq(load(), -1);
    ck_error_has(TN_EFORMAT, "delete its line there");
    const size_t m = get(sums, line);
    put(sums, "", 0);
    ck_assert_int_eq(load(), 3);
    unlink(sums);
    ck_assert_int_eq(load(), 3);
    /* Saving adds its line again, and keeps the others. */
    snprintf(more, sizeof more, "%.64s  other.txt\n%.64s *./config.json\nwhat\n# config.json?\n", line, line);
    put(sums, more, strlen(more));
    ck_assert_int_eq(save(12), TN_OK);
    snprintf(more, sizeof more, "%.64s  other.txt\nwhat\n# config.json?\n%.*s", line, (int)m, line);
    get(sums, line);
    ck_assert_str_eq(line, more);
    ck_assert_int_eq(load(), -1);
    ck_error_has(TN_EFORMAT,
                 "summed/SHA256SUMS': line 3 is not a checksum, two spaces and a name, as written by sha256sum; "
                 "delete this line or the file");
    end();
}

TEST(lines_that_are_none)
{
    static const char *const bad[] = {"  config.json\n", "x\n{config.json}\n", "e3b0c442  config.json\n",
                                      "SHA256 (config.json) = e3b0c442\n"};
    static const char *const others[] = {"\n", "x\n", "{}\n", "e3b0c442  data.json\n", "SHA1 (a) = 7\n\n"};
    char                     line[1000];
    begin();
    ck_assert_int_eq(save(12), TN_OK);
    const size_t m = get(sums, line);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put(sums, bad[i], strlen(bad[i]));
        ck_assert_int_eq(load(), -1);
        ck_error_has(TN_EFORMAT,
                     i == 1 ? "SHA256SUMS': line 2 is not a checksum" : "SHA256SUMS': line 1 is not a checksum");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) { /* other programs' files */
        put(sums, others[i], strlen(others[i]));
        ck_assert_int_eq(load(), 12);
    }
    for (size_t n = 1; n < m; n++) { /* truncated: a damaged line if it has the whole name, otherwise ignored */
        put(sums, line, n);
        ck_assert_int_eq(load(), n < m - 1 ? 12 : -1);
        if (n == m - 1) ck_error_has(TN_EFORMAT, "SHA256SUMS': line 1 is not a checksum");
    }
    put(sums, line, m);
    ck_assert_int_eq(truncate(sums, 2 << 20), 0); /* too long to be Tenon's: not read, and nothing is written into it */
    ck_assert_int_eq(load(), 12);
    ck_assert_int_eq(save(13), TN_OK);
    struct stat st;
    ck_assert(load() == 13 && !stat(sums, &st) && st.st_size == 2 << 20);
    unlink(sums);
#ifndef _WIN32 /* its pipes have no place in a folder */
    ck_assert_int_eq(mkfifo(sums, 0600), 0);
    ck_assert_int_eq(load(), -1);
    ck_error_has(TN_EINVAL, "SHA256SUMS': this is a pipe; only regular files are read");
#endif
    end();
}

/* Saves a file again, with one call failing, or all calls from there on. */
TEST(a_save_that_fails)
{
    begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int first = 0; first < 2; first++)
            for (int64_t at = 0;; at++) {
                unlink(file), unlink(sums);
                if (!first) ck_assert_int_eq(save(1), TN_OK);
                tn_faulty_files_begin();
                tn_fail_file(at, EIO, for_ever);
                const tn_status s = save(2);
                const int64_t   calls = tn_file_calls();
                tn_fail_file(-1, 0, false);
                tn_clear_error();
                if (s == TN_OK || !first || access(file, F_OK) == 0) {
                    const int64_t got = load();
                    ck_assert_msg(got == 2 || (got == 1 && s != TN_OK && !first), "call %lld: %lld, %s", (long long)at,
                                  (long long)got, tn_error_message());
                }
                ck_assert_int_eq(save(3), TN_OK);
                tn_faulty_files_end();
                ck_assert_int_eq(load(), 3);
                if (at >= calls) break;
            }
    end();
}

TEST(the_power_fails)
{
    tn_generator chance = {.seed = 5};
    int64_t      tried = 0;
    snprintf(file, sizeof file, "disk/config.json");
    tn_crash_disk_begin(false);
    ck_assert_int_eq(save(1), TN_OK);
    tn_crash_disk_settle();
    ck_assert_int_eq(save(2), TN_OK);
    const int64_t calls = tn_crash_disk_calls();
    for (int round = 0; round < 20; round++)
        for (int64_t n = 0; n <= calls; n++)
            for (int kind = 0; kind < TN_CRASH_KINDS; kind++, tried++) {
                tn_crash_disk_fail(n, (tn_crash_kind)kind, &chance);
                const int64_t got = load();
                ck_assert_msg(got == 1 || got == 2, "call %lld: %s", (long long)n, tn_error_message());
                ck_assert(n < calls || got == 2);
                tn_crash_disk_mend();
            }
    tn_crash_disk_end();
    ck_assert_int_gt(calls, 15);
    printf("power failures: %lld states of a small file and its sum, each can be read\n", (long long)tried);
}
