/* fuzz_table.c — any bytes as a table, in all formats: they are rejected, with the line, or read row by row and in
 * batches, which agree. */
#define _GNU_SOURCE
#include "data/data.h"
#include "memory_file.h"
#include <math.h>

#define CHECK(x) ((x) ? (void)0 : abort())

static tn_status bytes_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++)
        if (tn_ids_add(to, (unsigned char)line.at[i]) != TN_OK) return tn_error();
    return TN_OK;
}

/* Returns the number of rows. */
static int64_t rows_of(tn_table *t)
{
    int64_t n = 0, line = 0;
    while (tn_table_next(t)) {
        const double  v = tn_table_number(t, "a");
        const tn_text s = tn_error() == TN_OK ? tn_table_text(t, "b") : tn_text_of("");
        CHECK(tn_table_line(t) > line && (s.at || !s.bytes));
        line = tn_table_line(t), n++;
        if (tn_error() == TN_OK) continue;
        CHECK(isnan(v) || tn_error() == TN_EFORMAT || tn_error() == TN_EINDEX);
        tn_clear_error();
    }
    return n;
}

static void batches_of(tn_table *t, int64_t rows)
{
    const tn_source s = tn_table_source(t);
    tn_batch        b;
    int64_t         n = 0;
    for (bool more = true; more;) {
        const tn_scope scope = tn_scope_begin();
        more = tn_source_next(&s, &b);
        if (more) {
            CHECK(tn_size(b.x, 0) == b.rows && tn_size(b.y, 0) == b.rows && b.rows > 0 && b.rows <= 3);
            n += b.rows;
        }
        tn_scope_end(scope);
    }
    CHECK(tn_error() != TN_OK ? tn_error() == TN_EFORMAT : n == rows);
    tn_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const forms[] = {"csv", "tsv", "jsonl"};
    const tn_encoder         bytes = {bytes_of, NULL};
    if (!size) return 0;
    memory_files(data + 1, size - 1);
    const size_t before = tn_memory_now().live;
    for (int i = 0; i < 3; i++) {
        const bool bare = data[0] & 1 && i < 2;
        tn_table  *t = tn_table_open("in", .form = forms[i], .no_header = bare, .missing_nan = data[0] & 2);
        const bool failed = !t || tn_error() != TN_OK;
        CHECK(failed == !t);
        const int64_t rows = t ? rows_of(t) : 0;
        const bool    whole = tn_error() == TN_OK;
        if (!whole) CHECK(tn_error() == TN_EFORMAT);
        tn_clear_error();
        tn_table_free(t);
        t = tn_table_open("in", .form = forms[i], .no_header = bare, .missing_nan = data[0] & 2, .batch = 3,
                          .fields = {{.name = "x", .columns = bare ? "1" : "a"},
                                     {.name = "y", .columns = bare ? "1" : "b", .encoder = &bytes}});
        CHECK(t || tn_error() == TN_EFORMAT || tn_error() == TN_EINDEX);
        tn_clear_error();
        if (t && whole) batches_of(t, rows);
        tn_table_free(t);
    }
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}
