/* fuzz_run.c — any bytes as the files of a training run: run.json and log.csv. They are read, as a number of steps, as
 * facts and as curves, or rejected. Nothing stays allocated. */
#define _GNU_SOURCE
#include "programs/common/page.h"
#include "programs/common/record.h"
#include "tests/fuzz/memory_folder.h"

#define CHECK(x) ((x) ? (void)0 : abort())

/* May the page say "nan"? Only as a part of a name in run.json. */
static bool says_nan(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size, *at = data;
    while (at) {
        const uint8_t *log = memmem(at, (size_t)(end - at), "@log.csv", 8);
        const size_t   n = (size_t)((log ? log : end) - at);
        if (memmem(at, n, "nan", 3) || memchr(at, '\\', n)) return true;
        at = log ? memmem(log, (size_t)(end - log), "@run.json", 9) : NULL;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder_begin();
    folder_cut(data, size);
    const size_t before = tn_memory_now().live;
    record_steps("folder");
    CHECK(tn_error() == TN_OK || tn_error() == TN_EFORMAT || tn_error() == TN_EIO || tn_error() == TN_EINDEX);
    tn_clear_error();
    tn_report     *r = tn_report_new("run");
    const run_page p = {.folder = "folder"};
    const bool     facts = run_summary(r, &p, NULL, NULL);
    CHECK(facts || tn_error() == TN_EFORMAT || tn_error() == TN_EIO || tn_error() == TN_EINDEX);
    tn_clear_error();
    const bool fine = run_curves(r, &p);
    CHECK(fine || tn_error() == TN_EFORMAT || tn_error() == TN_EIO);
    tn_clear_error();
    size_t      n;
    const char *html = tn_report_html(r, &n);
    CHECK(!fine || (html && tn_utf8_valid(html, n) == n && (says_nan(data, size) || !strstr(html, "nan"))));
    tn_clear_error();
    tn_report_free(r);
    folder_end();
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}
