/* test_json_write.c — the JSON writer: its output and its errors; files; memory that fails. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/core.h"
#include "tests/common/faults.h"

static uint64_t state = 88172645463325252u;
static uint64_t rnd(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

TEST(writes)
{
    for (int indent = 0; indent <= 2; indent += 2) {
        tn_json_writer *w = tn_json_writer_new(indent);
        for (int round = 0; round < 2; round++) { /* a cleared writer is like a new one */
            tn_json_writer_clear(w);
            tn_json_open_object(w, NULL);
            tn_json_put_string(w, "model_type", "b\"\\\n\x01\x1f\xc3\xa9");
            tn_json_open_array(w, "sizes");
            tn_json_put_i64(w, NULL, INT64_MIN);
            tn_json_put_u64(w, NULL, UINT64_MAX);
            tn_json_put_double(w, NULL, 0.1);
            tn_json_put_float(w, NULL, 0.1f);
            tn_json_put_null(w, NULL);
            tn_json_close(w);
            tn_json_open_object(w, "empty");
            tn_json_close(w);
            tn_json_open_array(w, "none");
            tn_json_close(w);
            tn_json_put_bool(w, "yes", true);
            tn_json_put_bool(w, "no", false);
            tn_json_put_bytes(w, "nul", "a\0b", 3);
            tn_json_close(w);
            size_t      n;
            const char *text = tn_json_text(w, &n);
            ck_assert_msg(text != NULL, "%s", tn_error_message());
            ck_assert_uint_eq(n, strlen(text));
            ck_assert_str_eq(
                text, indent
                          ? "{\n  \"model_type\": \"b\\\"\\\\\\n\\u0001\\u001f\xc3\xa9\",\n  \"sizes\": [\n"
                            "    -9223372036854775808,\n    18446744073709551615,\n    0.1,\n    0.1,\n    null\n  ],\n"
                            "  \"empty\": {},\n  \"none\": [],\n  \"yes\": true,\n  \"no\": false,\n"
                            "  \"nul\": \"a\\u0000b\"\n}"
                          : "{\"model_type\":\"b\\\"\\\\\\n\\u0001\\u001f\xc3\xa9\",\"sizes\":[-9223372036854775808,"
                            "18446744073709551615,0.1,0.1,null],\"empty\":{},\"none\":[],\"yes\":true,\"no\":false,"
                            "\"nul\":\"a\\u0000b\"}");
            tn_json *v = tn_json_parse(text, n);
            ck_assert_msg(v != NULL, "%s", tn_error_message());
            ck_assert_int_eq(tn_json_string_bytes(tn_json_get(v, "nul")), 3);
            ck_assert_mem_eq(tn_json_string(tn_json_get(v, "nul")), "a\0b", 4);
            tn_json_free(v);
        }
        tn_json_writer_free(w);
    }
}

/* A call that fails changes nothing: valid calls after it are written as if it had not happened. */
TEST(writer_refuses)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_text(w, NULL);
    ck_error(TN_ESTATE, "tn_json_text: no value was written");
    tn_json_close(w);
    ck_error(TN_ESTATE, "tn_json_close: no array or object is open");
    tn_json_put_i64(w, "a", 1);
    ck_error(TN_EINVAL, "tn_json_put_i64: the key is 'a', but only values in an object have keys; pass NULL");
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, NULL, 1);
    ck_error(TN_EINVAL, "tn_json_put_i64: a value in an object needs a key, but the key is NULL");
    tn_json_put_double(w, "loss", NAN);
    ck_error(TN_EINVAL, "tn_json_put_double: 'loss' is nan, which JSON cannot represent; omit it or write null");
    tn_json_put_float(w, "loss", -INFINITY);
    ck_error(TN_EINVAL, "tn_json_put_float: 'loss' is -inf, which JSON cannot represent; omit it or write null");
    tn_json_put_string(w, "s", "ab\xff");
    ck_error(TN_EFORMAT, "tn_json_put_string: the string 'ab\\xff' is not valid UTF-8 at its byte 2");
    tn_json_put_string(w, "\xc3", "x");
    ck_error(TN_EFORMAT, "tn_json_put_string: the key '\\xc3' is not valid UTF-8 at its byte 0");
    tn_json_put_string(w, "s", NULL);
    ck_error(TN_EINVAL, "tn_json_put_string: the string is NULL; tn_json_put_null writes null");
    tn_json_put(w, "v", NULL);
    ck_error(TN_EINVAL, "tn_json_put: the value is NULL; tn_json_put_null writes null");
    tn_json_put_null(w, "loss");
    tn_json_text(w, NULL);
    ck_error(TN_ESTATE, "tn_json_text: 1 arrays or objects are still open");
    ck_assert_int_eq(tn_json_save(w, tn_test_file("none.json")), TN_ESTATE);
    tn_clear_error();
    tn_json_close(w);
    ck_assert_str_eq(tn_json_text(w, NULL), "{\"loss\":null}");
    tn_json_put_null(w, NULL);
    ck_error(TN_ESTATE, "tn_json_put_null: the text is already complete");
    ck_assert_str_eq(tn_json_text(w, NULL), "{\"loss\":null}");

    /* calls that are skipped leave a gap */
    tn_json_writer_clear(w);
    tn_json_open_array(w, NULL);
    tn_raise(TN_EINVAL, "something else");
    ck_assert_int_eq(tn_json_put_i64(w, NULL, 1), TN_EINVAL);
    tn_clear_error();
    tn_json_put_i64(w, NULL, 2);
    ck_assert_int_eq(tn_error(), TN_ESTATE);
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "its text has a gap"));
    tn_clear_error();
    ck_assert_ptr_null(tn_json_text(w, NULL));
    tn_clear_error();
    tn_json_writer_clear(w);
    tn_json_put_i64(w, NULL, 2);
    ck_assert_str_eq(tn_json_text(w, NULL), "2");
    tn_raise(TN_EINVAL, "something else");
    ck_assert_ptr_null(tn_json_text(w, NULL)); /* a query does not leave a gap */
    tn_clear_error();
    ck_assert_str_eq(tn_json_text(w, NULL), "2");

    /* the maximum depth */
    tn_json_writer_clear(w);
    for (int i = 0; i < TN_JSON_MAX_DEPTH; i++) tn_json_open_array(w, NULL);
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_assert_int_eq(tn_json_open_array(w, NULL), TN_EINVAL);
    tn_clear_error();
    for (int i = 0; i < TN_JSON_MAX_DEPTH; i++) tn_json_close(w);
    ck_assert_uint_eq(strlen(tn_json_text(w, NULL)), 2 * TN_JSON_MAX_DEPTH);
    tn_json_writer_free(w);

    ck_assert_ptr_null(tn_json_writer_new(17));
    tn_clear_error();
    ck_assert_ptr_null(tn_json_writer_new(-1));
    tn_clear_error();
    tn_json_writer_free(NULL);
    tn_json_writer_clear(NULL);
    ck_fails(tn_json_put_null(NULL, NULL), TN_EINVAL, "tn_json_put_null: the writer is NULL");
    ck_assert_ptr_null(tn_json_text(NULL, NULL));
    tn_clear_error();
}

/* Random trees, written, read and written again. */
static void put_random(tn_json_writer *w, bool member, int depth, int *left)
{
    static const char *const pieces[] = {
        "a", "\"", "\\", "\n", "\x01", "\x7f", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    char key[16], text[64] = "";
    snprintf(key, sizeof key, "k%d", --*left);
    const char *k = member ? key : NULL;
    switch (depth > 12 || *left < 0 ? rnd() % 6 : rnd() % 9) {
    case 0: tn_json_put_null(w, k); return;
    case 1: tn_json_put_bool(w, k, rnd() % 2); return;
    case 2: tn_json_put_i64(w, k, (int64_t)(rnd() >> rnd() % 64)); return;
    case 3: tn_json_put_u64(w, k, rnd()); return;
    case 4: tn_json_put_double(w, k, (double)(int64_t)rnd() * ldexp(1, (int)(rnd() % 1900) - 1000)); return;
    case 5:
        for (uint64_t n = rnd() % 12; n > 0; n--) strcat(text, pieces[rnd() % (sizeof pieces / sizeof *pieces)]);
        tn_json_put_string(w, k, text);
        return;
    default: break;
    }
    bool object = rnd() % 2;
    if (object) tn_json_open_object(w, k);
    else tn_json_open_array(w, k);
    for (int i = (int)(rnd() % 20); i > 0; i--) put_random(w, object, depth + 1, left);
    tn_json_close(w);
}

TEST(random_trees)
{
    tn_json_writer *w = tn_json_writer_new(0), *indented = tn_json_writer_new(3), *again = tn_json_writer_new(0);
    for (int i = 0; i < (tn_test_slow() ? 20 : 500); i++) {
        int left = 400;
        tn_json_writer_clear(w);
        put_random(w, false, 0, &left);
        size_t      n, m;
        const char *text = tn_json_text(w, &n);
        ck_assert_msg(text != NULL, "%s", tn_error_message());
        tn_json *v = tn_json_parse(text, n);
        ck_assert_msg(v != NULL, "%s", tn_error_message());
        tn_json_writer_clear(indented);
        tn_json_put(indented, NULL, v);
        const char *pretty = tn_json_text(indented, &m);
        tn_json    *v2 = tn_json_parse(pretty, m);
        ck_assert_msg(v2 != NULL, "%s", tn_error_message());
        tn_json_writer_clear(again);
        tn_json_put(again, NULL, v2);
        ck_assert_str_eq(tn_json_text(again, NULL), text);
        tn_json_free(v);
        tn_json_free(v2);
    }
    tn_json_writer_free(w);
    tn_json_writer_free(indented);
    tn_json_writer_free(again);
}

TEST(files)
{
    const char     *path = tn_test_file("config.json");
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "a", "x");
    tn_json_close(w);
    ck_assert_int_eq(tn_json_save(w, path), TN_OK);
    tn_json_writer_free(w);
    tn_tensor *bytes = tn_file_read(path, 100);
    ck_assert_int_eq(tn_numel(bytes), 15);
    ck_assert_mem_eq(tn_data(bytes), "{\n  \"a\": \"x\"\n}\n", 15);
    tn_json *v = tn_json_load(path);
    ck_assert_str_eq(tn_json_string(tn_json_get(v, "a")), "x");
    tn_json_i64(tn_json_get(v, "a"));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "config.json': a (byte 9) is the string 'x'"));
    tn_clear_error();
    tn_json_free(v);
    ck_assert_ptr_null(tn_json_load_within(path, (tn_json_limits){.bytes = 14}));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "config.json': the text has 15 bytes, the limit is 14"));
    tn_clear_error();
    ck_assert_int_eq(tn_file_write(path, "[1,\n 2,", 7), TN_OK);
    ck_assert_ptr_null(tn_json_load(path));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "tn_json_load: '"));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "config.json': line 2, column 4 (byte 7): the text ends"));
    tn_clear_error();
}

/* ---- memory that fails ------------------------------------------------------------------------------------------- */

TEST(memory_fails)
{
    char text[4000], *p = text;
    p += sprintf(p, "{\"a\":[1,{\"b\":\"c\"}]");
    for (int i = 0; i < 100; i++) p += sprintf(p, ",\"key number %d\":%d.5", i, i);
    p += sprintf(p, "}");
    char *expected = NULL;
    tn_faulty_memory_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int64_t at = -1;; at++) {
            int64_t before = tn_memory_blocks();
            tn_fail_memory(at, for_ever);
            tn_json        *v = tn_json_parse(text, (size_t)(p - text));
            tn_json_writer *w = tn_json_writer_new(1);
            if (w) {
                tn_json_open_array(w, NULL);
                tn_json_put_string(w, NULL, "first");
                tn_json_put(w, NULL, v);
                tn_json_close(w);
            }
            const char *again = tn_json_text(w, NULL);
            bool        failed = tn_error() != TN_OK;
            ck_assert_int_eq(failed, again == NULL);
            if (failed) ck_assert_msg(tn_error() == TN_ENOMEM, "%s", tn_error_message());
            tn_clear_error();
            tn_fail_memory(-1, false);
            if (failed && v && w) { /* the same writer continues */
                tn_json_writer_clear(w);
                tn_json_open_array(w, NULL);
                tn_json_put_string(w, NULL, "first");
                tn_json_put(w, NULL, v);
                tn_json_close(w);
                again = tn_json_text(w, NULL);
                ck_assert_str_eq(again, expected);
            }
            if (at < 0) {
                free(expected);
                expected = strdup(again);
            }
            tn_json_writer_free(w);
            tn_json_free(v);
            ck_assert_int_eq(tn_memory_blocks(), before);
            if (at >= 0 && !failed) {
                ck_assert_int_gt(at, 5); /* it took more allocations than this */
                break;
            }
        }
    tn_faulty_memory_end();
    free(expected);
}

/* A tree that cannot be copied completely is not copied at all. */
TEST(a_copy_is_whole)
{
    char *text = malloc(200000), *p = text;
    p += sprintf(p, "[0");
    for (int i = 1; i < 20000; i++) p += sprintf(p, ",%d", i);
    p += sprintf(p, "]");
    tn_faulty_memory_begin();
    tn_json        *v = tn_json_parse(text, (size_t)(p - text));
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_array(w, NULL);
    tn_fail_memory(2, false);
    ck_assert_int_eq(tn_json_put(w, NULL, v), TN_ENOMEM);
    tn_clear_error();
    tn_json_put_string(w, NULL, "instead");
    tn_json_close(w);
    ck_assert_str_eq(tn_json_text(w, NULL), "[\"instead\"]");
    tn_json_writer_free(w);
    tn_json_free(v);
    tn_faulty_memory_end();
    free(text);
}
