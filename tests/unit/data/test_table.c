/* test_table.c — tables: rows of CSV, TSV and JSON lines, quoting, any cells written and read back, batches of fields,
 * files larger than the buffer, positions, and the error of each malformed file. Ranks: test_source.c. */
#include "autograd/ops.h"
#include "data/data.h"
#include "tests/common/check_main.h"

static const char *file_of(const char *name, const char *text)
{
    const char *path = tn_test_file(name);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    return path;
}

static void is_text(tn_text t, const char *want)
{
    ck_assert_msg(tn_error() == TN_OK && t.bytes == strlen(want) && !memcmp(t.at, want, t.bytes),
                  "'%.*s' is not '%s': %s", (int)t.bytes, t.at, want, tn_error_message());
}

TEST(csv)
{
    tn_table *t = tn_table_open(file_of("a.csv", "\xef\xbb\xbfstreet,area,\"rooms, all\"\r\n"
                                                 "\"Main \"\"St\"\"\", 41.5 ,3\r\n"
                                                 "\r\n"
                                                 "\"two\r\nlines\",-1e3,+0\n"
                                                 "\"\",0,\"7\"\n"
                                                 "5\" wide,1,2"));
    static const struct {
        const char *street;
        double      area, rooms;
        int64_t     line;
    } want[] = {{"Main \"St\"", 41.5, 3, 2}, {"two\r\nlines", -1000, 0, 4}, {"", 0, 7, 6}, {"5\" wide", 1, 2, 7}};
    ck_assert_msg(t, "%s", tn_error_message());
    for (int pass = 0; pass < 2; pass++) { /* after the last row the first one follows */
        for (int i = 0; i < 4; i++) {
            ck_assert_msg(tn_table_next(t), "%s", tn_error_message());
            is_text(tn_table_text(t, "street"), want[i].street);
            ck_assert_double_eq(tn_table_number(t, "area"), want[i].area);
            ck_assert_double_eq(tn_table_number(t, "rooms, all"), want[i].rooms);
            ck_assert_int_eq(tn_table_line(t), want[i].line);
        }
        ck_assert(!tn_table_next(t) && tn_error() == TN_OK && tn_table_line(t) == 0);
    }
    tn_table_free(t);
}

TEST(other_forms)
{
    tn_table *t = tn_table_open(file_of("a.tsv", "a\tb\n1\t\"x\"\n2\t\n"), .missing_nan = true);
    ck_assert(tn_table_next(t) && tn_table_number(t, "a") == 1);
    is_text(tn_table_text(t, "b"), "\"x\"");
    ck_assert(tn_table_next(t) && isnan(tn_table_number(t, "b")) && tn_error() == TN_OK && !tn_table_next(t));
    tn_table_free(t);
    t = tn_table_open(file_of("bare", "1,x\n2,y\n"), .no_header = true);
    ck_assert(tn_table_next(t) && tn_table_number(t, "1") == 1 && tn_table_next(t));
    is_text(tn_table_text(t, "2"), "y");
    tn_table_free(t);
    t = tn_table_open(file_of("a.jsonl", "{\"n\": -2.5e-1, \"s\": \"\\u00e9\\n\", \"more\": [1]}\r\n\n"
                                         "{\"s\": \"\", \"n\": true}\n{\"s\": \"x\"}"),
                      .missing_nan = true);
    ck_assert(tn_table_next(t) && tn_table_number(t, "n") == -0.25);
    is_text(tn_table_text(t, "s"), "\xc3\xa9\n");
    ck_assert(tn_table_next(t) && tn_table_number(t, "n") == 1 && tn_table_line(t) == 3);
    ck_assert(tn_table_next(t) && isnan(tn_table_number(t, "n")) && !tn_table_next(t) && tn_error() == TN_OK);
    tn_table_free(t);
}

/* Writes random cells as RFC 4180 says, and reads them back: 200 files, some larger than the reader's buffer. */
TEST(any_cells)
{
    static const char parts[][4] = {",", "\"", "\n", "\r\n", "a", " ", "\xc3\xa9", "\t", "9"};
    tn_generator      g = {.seed = 3};
    tn_string         file = {0}, cells = {0};
    for (int round = 0; round < 200; round++) {
        const int64_t rows = round % 50 ? 1 + tn_random_below(&g, 20) : 30000, width = 1 + tn_random_below(&g, 4);
        char          name[8];
        file.bytes = cells.bytes = 0;
        for (int64_t r = -1; r < rows; r++)
            for (int64_t c = 0; c < width; c++) {
                char cell[64] = "";
                snprintf(name, sizeof name, "c%d", (int)c);
                if (r < 0) strcpy(cell, name);
                for (int64_t n = r < 0 ? 0 : tn_random_below(&g, 6); n > 0; n--)
                    strcat(cell, parts[tn_random_below(&g, 9)]);
                if (r >= 0) tn_string_add(&cells, (tn_text){cell, strlen(cell) + 1});
                const bool quoted = strpbrk(cell, ",\"\r\n") || !*cell || tn_random_below(&g, 3) == 0;
                if (quoted) tn_string_add(&file, tn_text_of("\""));
                for (const char *at = cell; *at; at++)
                    tn_string_add(&file, *at == '"' ? tn_text_of("\"\"") : (tn_text){at, 1});
                if (quoted) tn_string_add(&file, tn_text_of("\""));
                tn_string_add(&file, tn_text_of(c + 1 < width ? "," : round % 2 ? "\n" : "\r\n"));
            }
        const char *path = tn_test_file("any.csv"), *want = cells.at;
        ck_assert_int_eq(tn_file_write(path, file.at, file.bytes), TN_OK);
        tn_table *t = tn_table_open(path);
        for (int64_t r = 0; r < rows; r++) {
            ck_assert_msg(tn_table_next(t), "round %d, row %lld: %s", round, (long long)r, tn_error_message());
            for (int64_t c = 0; c < width; c++, want += strlen(want) + 1)
                snprintf(name, sizeof name, "c%d", (int)c), is_text(tn_table_text(t, name), want);
        }
        ck_assert(!tn_table_next(t) && tn_error() == TN_OK);
        tn_table_free(t);
    }
    tn_string_free(&file), tn_string_free(&cells);
}

static tn_status letters_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++) tn_ids_add(to, line.at[i] - 'a');
    return tn_error();
}

TEST(batches)
{
    static const char *const kinds[] = {"no", "yes", NULL};
    const tn_encoder         letters = {letters_of, NULL};
    tn_table                *t =
        tn_table_open(file_of("b.csv", "a,b,kind,word,n\n1,2,yes,abc,7\n3,4,no,,-8\n5,6,yes,b,9\n"), .batch = 2,
                      .fields = {{.name = "x", .columns = "b,a"},
                                 {.name = "y", .columns = "kind", .classes = kinds},
                                 {.name = "ids", .columns = "word", .encoder = &letters, .pad = -1},
                                 {.name = "n", .columns = "n", .dtype = TN_I64},
                                 {.name = "wide", .columns = "n,a", .dtype = TN_F64}});
    ck_assert_msg(t, "%s", tn_error_message());
    tn_source s = tn_table_source(t);
    tn_batch  b;
    for (int pass = 0; pass < 2; pass++) {
        ck_assert_msg(tn_source_next(&s, &b), "%s", tn_error_message());
        ck_assert(b.rows == 2 && b.items == 2 && tn_dtype_of(b.x) == TN_F32 && tn_get(b.x, 0) == 2 &&
                  tn_get(b.x, 3) == 3);
        ck_assert(tn_ndim(b.y) == 1 && tn_dtype_of(b.y) == TN_I64 && tn_get(b.y, 0) == 1 && tn_get(b.y, 1) == 0);
        const tn_tensor *ids = tn_batch_get(&b, "ids"), *n = tn_batch_get(&b, "n"), *wide = tn_batch_get(&b, "wide");
        ck_assert(tn_shape_equal(tn_shape_of(ids), TN_SHAPE(2, 3)) && tn_get(ids, 2) == 2 && tn_get(ids, 3) == -1);
        ck_assert(tn_ndim(n) == 1 && tn_get(n, 1) == -8 && tn_dtype_of(wide) == TN_F64 && tn_get(wide, 2) == -8);
        ck_assert(tn_source_next(&s, &b) && b.rows == 1 && tn_get(b.y, 0) == 1 &&
                  tn_get(tn_batch_get(&b, "ids"), 0) == 1);
        ck_assert(!tn_source_next(&s, &b) && tn_error() == TN_OK);
    }
    tn_table_free(t);
    t = tn_table_open(tn_test_file("b.csv"), .batch = 2, .drop_last = true, .fields = {{.name = "x", .columns = "a"}});
    s = tn_table_source(t);
    ck_assert(tn_source_next(&s, &b) && !tn_source_next(&s, &b) && tn_source_next(&s, &b) && tn_get(b.x, 0) == 1);
    tn_table_free(t);
    t = tn_table_open(tn_test_file("b.csv"), .batch = INT32_MAX,
                      .fields = {{.name = "x", .columns = "a"}, {.name = "y", .columns = "b"}});
    s = tn_table_source(t);
    ck_assert(tn_source_next(&s, &b) && b.rows == 3);
    tn_dataset *all = tn_dataset_new(.x = b.x, .y = b.y, .batch = 2, .shuffle = true, .seed = 1);
    ck_assert_msg(all, "%s", tn_error_message());
    tn_dataset_free(all);
    tn_table_free(t);
}

/* The error of the first row, or of opening, of a file; b: of the first batch. */
static void error_of(const char *name, const char *text, tn_status code, const char *error)
{
    char      whole[400];
    tn_table *t = tn_table_open(file_of(name, text));
    if (t && tn_table_next(t)) tn_table_number(t, "a"), tn_table_text(t, "b");
    snprintf(whole, sizeof whole, "tn_table_open: '%s'%s", tn_test_file(name), error);
    ck_error(code, whole);
    tn_table_free(t);
}

TEST(malformed_files)
{
    error_of("m.csv", "", TN_EFORMAT, " contains no rows");
    error_of("m.csv", "a,b\n1,2,3\n", TN_EFORMAT,
             ", line 2: 3 columns, expected 2, as in the first line; put texts with commas in quotes");
    error_of("m.tsv", "a\tb\n\n1\n", TN_EFORMAT, ", line 3: 1 columns, expected 2, as in the first line");
    error_of("m.csv", "a,b\n1,\"x\n\n\n", TN_EFORMAT, ", line 2: an opening quote is never closed");
    error_of("m.csv", "a,b\n1,\"x\"y\n", TN_EFORMAT,
             ", line 2: text between a closing quote and the next comma; double the quotes inside a cell");
    error_of("m.csv", "a,b\n1x,2\n", TN_EFORMAT, ", line 2: 'a' is '1x', expected a number");
    error_of("m.csv", "a,b\n ,2\n", TN_EFORMAT,
             ", line 2: 'a' is empty, expected a number; fill it in, or set .missing_nan");
    error_of("m.csv", "a,c\n1,2\n", TN_EINDEX, " has no column 'b'; its first one is 'a'");
    error_of("m.csv", "a,a,b\n1,2,3\n", TN_EFORMAT, " has two columns 'a'");
    error_of("m.jsonl", "{\"a\": 1, \"b\": \"\"", TN_EFORMAT,
             ", line 1: not JSON: tn_json_parse: line 1, column 17 (byte 16): the text ends, expected ',' or '}'");
    error_of("m.jsonl", "\n[1]\n", TN_EFORMAT, ", line 2: not a JSON object; expected {\"column\": value, ...}");
    error_of("m.jsonl", "{\"a\": \"1\"}", TN_EFORMAT, ", line 1: 'a' is not a number");
    error_of("m.jsonl", "{\"a\": 1, \"b\": 2}", TN_EFORMAT, ", line 1: 'b' is not a string");
    error_of("m.jsonl", "{\"b\": \"\"}", TN_EFORMAT,
             ", line 1: 'a' is empty, expected a number; fill it in, or set .missing_nan");
}

TEST(mistakes)
{
    static const char *const kinds[] = {"x", NULL};
    const char              *path = file_of("c.csv", "a,b\n1,x\n2.5,y\n");
    tn_batch                 b;
    const tn_encoder         letters = {letters_of, NULL};
    char                     text[400];
    ck_refused(tn_table_open(path, .form = "xml"), TN_EINVAL,
               "tn_table_open: .form is 'xml', expected csv, tsv or jsonl");
    ck_refused(tn_table_open(path, .batch = 0), TN_EINVAL, "tn_table_open: .batch is 0, expected at least 1");
    ck_refused(tn_table_open(path, .form = "jsonl", .no_header = true), TN_EINVAL,
               "tn_table_open: .no_header has no effect on JSON lines; remove it");
    ck_refused(tn_table_open(path, .fields = {{.name = "x"}}), TN_EINVAL,
               "tn_table_open: the field 'x' has no .columns");
    ck_refused(tn_table_open(path, .fields = {{.name = "x", .columns = "a"}, {.name = "x", .columns = "b"}}), TN_EINVAL,
               "tn_table_open: the field 'x' is given twice");
    ck_refused(tn_table_open(path, .fields = {{.name = "x", .columns = "a", .dtype = TN_BOOL}}), TN_EDTYPE,
               "tn_table_open: the field 'x' has .dtype bool, expected f32, f64 or i64");
    ck_refused(tn_table_open(path, .fields = {{.name = "x", .columns = "a,b", .encoder = &letters}}), TN_EINVAL,
               "tn_table_open: the field 'x' must have one column and one of .classes, .encoder and .dtype");
    ck_assert_ptr_null(tn_table_open(path, .fields = {{.name = "x", .columns = "a,z"}}));
    snprintf(text, sizeof text, "tn_table_open: '%s' has no column 'z'; its first one is 'a'", path);
    ck_error(TN_EINDEX, text);
    ck_refused_has(tn_table_open(tn_test_file("nothing.csv")), TN_EIO, "nothing.csv");
    tn_table *t = tn_table_open(path, .fields = {{.name = "x", .columns = "a", .dtype = TN_I64},
                                                 {.name = "y", .columns = "b", .classes = kinds}});
    tn_source s = tn_table_source(t);
    ck_assert(isnan(tn_table_number(t, "a")));
    ck_error(TN_ESTATE, "tn_table_number: no row was read; call tn_table_next first");
    ck_assert(!tn_source_next(&s, &b));
    snprintf(text, sizeof text, "tn_table_open: '%s', line 3: 'a' is 2.5, expected a whole number of at most 2^53",
             path);
    ck_error(TN_EFORMAT, text);
    tn_table_free(t);
    t = tn_table_open(path, .fields = {{.name = "y", .columns = "b", .classes = kinds}});
    s = tn_table_source(t);
    ck_assert(!tn_source_next(&s, &b));
    snprintf(text, sizeof text, "tn_table_open: '%s', line 3: 'b' is 'y', which is not in .classes", path);
    ck_error(TN_EFORMAT, text);
    tn_json *at = tn_json_parse("{\"byte\": 9, \"line\": 2, \"of\": 99}", 32);
    s.begin(s.user, at);
    snprintf(text, sizeof text,
             "tn_table_open: '%s': the checkpoint is at byte 9 of a file of 99, but the file has 14 bytes", path);
    ck_error(TN_EINVAL, text);
    tn_json_free(at);
    tn_table_free(t);
    t = tn_table_open(path);
    s = tn_table_source(t);
    ck_refused(tn_source_next(&s, &b), TN_EINVAL, "tn_table_source: the table was opened without .fields");
    tn_table_free(t);
    ck_refused(tn_table_next(NULL), TN_EINVAL, "tn_table_next: the table is NULL");
}
