/* test_runlog.c — run logs: JSON lines, CSV and TensorBoard events; resuming, torn rows, full disks, failing memory. */
#include "tests/common/check_main.h"

#include "extras.h"
#include "extras/runlog/runlog_private.h"
#include "tests/common/faults.h"
#include <dirent.h>
#include <errno.h>

static const char *const names[] = {"loss", "lr"};

static bool file_is(const char *path, const char *text)
{
    tn_tensor *t = tn_file_read(path, 1 << 20);
    bool       same = t && (size_t)tn_numel(t) == strlen(text) && !memcmp(tn_data(t), text, strlen(text));
    if (!same && t) printf("'%.*s'\n", (int)tn_numel(t), (const char *)tn_data(t));
    return same;
}

static tn_runlog_config both(void)
{
    return (tn_runlog_config){.jsonl = tn_test_file("log.jsonl"), .csv = tn_test_file("log.csv")};
}

static void put(tn_runlog *l, int64_t step, double loss, double lr)
{
    ck_assert_msg(tn_runlog_put(l, step, 2, names, (double[]){loss, lr}) == TN_OK, "%s", tn_error_message());
}

TEST(rows)
{
    tn_runlog *l = tn_runlog_open_run(both());
    put(l, 1, 2.5, 1e-3);
    put(l, 2, NAN, 0.1 + 0.2);
    ck_assert_int_eq(tn_runlog_put(l, 3, 1, (const char *[]){"other"}, (double[]){7}), TN_OK);
    ck_assert(file_is(tn_test_file("log.jsonl"), "{\"step\":1,\"loss\":2.5,\"lr\":0.001}\n"
                                                 "{\"step\":2,\"loss\":null,\"lr\":0.30000000000000004}\n"
                                                 "{\"step\":3,\"other\":7.0}\n"));
    ck_assert(file_is(tn_test_file("log.csv"), "step,loss,lr\n1,2.5,0.001\n2,nan,0.30000000000000004\n3,,\n"));
    tn_runlog_put(l, 4, 1, (const char *[]){"a,b"}, (double[]){7});
    ck_error(TN_EINVAL, "tn_runlog_put: name 0 must be in UTF-8, without commas and quotes, and not \"step\"");
    tn_runlog_put(l, -1, 0, NULL, NULL);
    ck_error(TN_EINVAL, "tn_runlog_put: step is negative");
    tn_runlog_close(l);
    l = tn_runlog_open_run(both()); /* a new run */
    put(l, 1, 1, 1);
    tn_runlog_close(l);
    ck_assert(file_is(tn_test_file("log.csv"), "step,loss,lr\n1,1.0,1.0\n"));
    ck_refused(tn_runlog_open(.csv = tn_test_file("log.csv"), .columns = names), TN_EINVAL,
               "tn_runlog_open: .n is 0, but .columns is not NULL");
    ck_refused(tn_runlog_open(.csv = tn_test_file("log.csv"), .n = 2), TN_EINVAL,
               "tn_runlog_open: .n is 2, but .columns is NULL");
    ck_refused(tn_runlog_open(.csv = "log", .n = 2, .columns = (const char *[]){"lr", "lr"}), TN_EINVAL,
               "tn_runlog_open: column 'lr' is given twice");
    ck_refused(tn_runlog_open(.csv = "log", .jsonl = "log"), TN_EINVAL,
               "tn_runlog_open: .csv and .jsonl are the same file, 'log'");
    ck_assert(file_is(tn_test_file("log.csv"), "step,loss,lr\n1,1.0,1.0\n"));
    ck_assert_ptr_null(tn_runlog_open(.csv = tn_test_file(".")));
    ck_assert_int_ne(tn_error(), TN_OK);
    tn_clear_error();
}

TEST(resumes_where_the_checkpoint_is)
{
    static const char json[] = "{\"step\":1,\"loss\":1.0,\"lr\":1.0}\n{\"step\":2,\"loss\":2.0,\"lr\":1.0}\n",
                      csv[] = "step,loss,lr\n1,1.0,1.0\n2,2.0,1.0\n";
    static const char *const torn[] = {"", "{\"step\":3,\"loss\":9.0,\"lr\":1.0}\n{\"step\":4}\n", "{\"step\":2,\"lo",
                                       "\xff\xfe\0garbage\n"};
    for (int i = 0; i < 4; i++) {
        tn_string a = {0}, b = {0};
        tn_string_add(&a, tn_text_of(json)), tn_string_add(&a, tn_text_of(torn[i]));
        tn_string_add(&b, tn_text_of(csv)), tn_string_add(&b, tn_text_of(i == 1 ? "3,9,9\n4,,\n" : torn[i]));
        ck_assert_int_eq(tn_file_write(tn_test_file("log.jsonl"), a.at, a.bytes), TN_OK);
        ck_assert_int_eq(tn_file_write(tn_test_file("log.csv"), b.at, b.bytes), TN_OK);
        tn_runlog_config c = both();
        c.resume = true, c.step = 2;
        tn_runlog *l = tn_runlog_open_run(c);
        put(l, 3, 3, 1);
        tn_runlog_close(l);
        tn_string_add(&a, tn_text_of("")), a.bytes = strlen(json);
        tn_string_add(&a, tn_text_of("{\"step\":3,\"loss\":3.0,\"lr\":1.0}\n"));
        b.bytes = strlen(csv);
        tn_string_add(&b, tn_text_of("3,3.0,1.0\n"));
        ck_assert(file_is(tn_test_file("log.jsonl"), a.at) && file_is(tn_test_file("log.csv"), b.at));
        tn_string_free(&a);
        tn_string_free(&b);
    }
}

TEST(what_is_no_log_is_refused)
{
    static const struct {
        const char *jsonl, *csv, *said;
    } logs[] = {{"dear diary\n", "", "log.jsonl', line 1"},
                {"", "dear diary\n1,2,3\n", "log.csv', line 1"},
                {"{\"step\":1}\n{\"note\":\"by hand\"}\n{\"step\":2}\n", "", "log.jsonl', line 2"},
                {"{\"step\":1}\n{\"st\n{\"step\":2}\n", "", "log.jsonl', line 2"},
                {"", "step,loss,lr\n1,1,1\nnone,1,1\n2,2,1\n", "log.csv', line 3"}};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        ck_assert_int_eq(tn_file_write(tn_test_file("log.jsonl"), logs[i].jsonl, strlen(logs[i].jsonl)), TN_OK);
        ck_assert_int_eq(tn_file_write(tn_test_file("log.csv"), logs[i].csv, strlen(logs[i].csv)), TN_OK);
        tn_runlog_config c = both();
        c.resume = true, c.step = 3;
        ck_assert_ptr_null(tn_runlog_open_run(c));
        ck_assert_msg(strstr(tn_error_message(), logs[i].said), "row %zu: %s", i, tn_error_message());
        ck_error_code(TN_EFORMAT);
        ck_assert(file_is(tn_test_file("log.jsonl"), logs[i].jsonl) && file_is(tn_test_file("log.csv"), logs[i].csv));
    }
    /* steps out of order, integers written with a point, empty lines */
    static const char json[] = "{\"step\":5}\n{\"step\":2.0}\n\n{\"step\":3}\n", csv[] = "step,loss\n5,1\n\n2,1\n";
    ck_assert_int_eq(tn_file_write(tn_test_file("log.jsonl"), json, strlen(json)), TN_OK);
    ck_assert_int_eq(tn_file_write(tn_test_file("log.csv"), csv, strlen(csv)), TN_OK);
    tn_runlog_config c = both();
    c.resume = true, c.step = 3;
    tn_runlog_close(tn_runlog_open_run(c));
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_assert(file_is(tn_test_file("log.jsonl"), "{\"step\":2.0}\n\n{\"step\":3}\n"));
    ck_assert(file_is(tn_test_file("log.csv"), "step,loss\n\n2,1\n"));
}

/* ---- TensorBoard ------------------------------------------------------------------------------------------------- */

static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static uint64_t varint(const unsigned char **p)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        v |= (uint64_t)(**p & 0x7f) << shift;
        if (!(*(*p)++ & 0x80)) return v;
    }
}

static uint32_t masked(const void *p, size_t n)
{
    uint32_t crc = tn__events_checksum(p, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

TEST(events)
{
    ck_assert_uint_eq(tn__events_checksum("123456789", 9), 0xe3069283u); /* the catalogue's check value */
    const char *folder = tn_test_file("tb");
    mkdir(folder, 0700);
    for (int run = 0; run < 2; run++) {
        tn_runlog *l = tn_runlog_open(.tensorboard = folder, .resume = run, .step = 300);
        ck_assert_msg(l, "%s", tn_error_message());
        put(l, 301, 2.5, 0.125);
        tn_runlog_close(l);
    }
    DIR *d = opendir(folder);
    int  files = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        ck_assert(!strncmp(e->d_name, "events.out.tfevents.", 20));
        files++;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        tn_tensor           *t = tn_file_read(path, 1 << 20);
        const unsigned char *p = tn_data(t), *end = p + tn_numel(t);
        int                  records = 0, restarts = 0;
        while (p < end) {
            uint64_t n = little(p, 8);
            ck_assert(n < 200 && little(p + 8, 4) == masked(p, 8) && little(p + 12 + n, 4) == masked(p + 12, n));
            const unsigned char *x = p + 12, *stop = x + n;
            double               seconds;
            ck_assert_int_eq(*x++, 9);
            memcpy(&seconds, x, 8), x += 8;
            ck_assert(seconds > 1.6e9);
            ck_assert_int_eq(*x++, 0x10);
            uint64_t step = varint(&x);
            if (!records) {
                ck_assert(step == 0 && stop - x == 15 &&
                          !memcmp(x,
                                  "\x1a\x0d"
                                  "brain.Event:2",
                                  15));
            } else if (*x == 0x3a) {
                ck_assert(step == 301 && stop - x == 4 && !memcmp(x, "\x3a\x02\x08\x01", 4));
                restarts++;
            } else {
                static const unsigned char expected[] =
                    "\x2a\x18\x0a\x0b\x0a\x04loss\x15\0\0\x20\x40\x0a\x09\x0a\x02lr\x15\0\0\0\x3e";
                ck_assert(step == 301 && stop - x == sizeof expected - 1 && !memcmp(x, expected, sizeof expected - 1));
            }
            records++;
            p = stop + 4;
        }
        ck_assert(records == 2 + restarts && restarts <= 1);
    }
    closedir(d);
    ck_assert_int_eq(files, 2);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static bool everything(void)
{
    tn_runlog_config c = both();
    c.tensorboard = tn_test_file("tb");
    c.resume = true, c.step = 1;
    tn_runlog *l = tn_runlog_open_run(c);
    bool       done = l && tn_runlog_put(l, 2, 2, names, (double[]){1, 2}) == TN_OK;
    tn_runlog_close(l);
    return done;
}

TEST(faults)
{
    mkdir(tn_test_file("tb"), 0700);
    static const char csv[] = "step,loss,lr\n1,1.0,1.0\n2,2.0,1.0\n";
    for (int kind = 0; kind < 2; kind++) {
        int failures = 0;
        tn_trim();
        if (!kind) tn_faulty_memory_begin();
        else tn_faulty_files_begin();
        for (int64_t at = 0;; at++, failures++) {
            FILE *f = fopen(tn_test_file("log.csv"), "wb");
            ck_assert(f && fputs(csv, f) >= 0 && !fclose(f));
            if (!kind) tn_fail_memory(at, false);
            else tn_fail_file(at, ENOSPC, false);
            bool done = everything();
            bool through = kind ? tn_file_calls() <= at : tn_memory_calls() <= at;
            tn_fail_memory(-1, false);
            tn_fail_file(-1, 0, false);
            if (!done)
                ck_assert_msg(tn_error() == (kind ? TN_EIO : TN_ENOMEM), "%d %d: %s", (int)kind, (int)at,
                              tn_error_message());
            tn_clear_error();
            if (through) break;
        }
        if (!kind) tn_faulty_memory_end();
        else tn_faulty_files_end();
        ck_assert_int_ge(failures, 10);
    }
    ck_assert(file_is(tn_test_file("log.csv"), "step,loss,lr\n1,1.0,1.0\n2,1.0,2.0\n"));
}
