/* test_json.c — the JSON reader: valid and invalid texts with their messages; values, limits, sizes. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/core.h"
#include "core/files/io.h"
#include <locale.h>

/* The text again, written from the tree; the caller frees it. */
static char *rewritten(const tn_json *v, int indent)
{
    tn_json_writer *w = tn_json_writer_new(indent);
    tn_json_put(w, NULL, v);
    const char *text = tn_json_text(w, NULL);
    char       *copy = text ? strdup(text) : NULL;
    tn_json_writer_free(w);
    return copy;
}

/* ---- valid: the text, and the same value as the writer writes it ------------------------------------------------- */

static const char *const accepted[][2] = {
    {"null", "null"},
    {" true ", "true"},
    {"\r\n\tfalse", "false"},
    {"0", "0"},
    {"-0", "0"},
    {"-0.0", "-0.0"},
    {"7", "7"},
    {"-12", "-12"},
    {"9223372036854775807", "9223372036854775807"},
    {"9223372036854775808", "9223372036854775808"},
    {"18446744073709551615", "18446744073709551615"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"18446744073709551616", "1.8446744073709552e+19"},
    {"-9223372036854775809", "-9.223372036854776e+18"},
    {"1000000000000000019884624838656", "1e+30"}, /* Hugging Face's value for "no limit" */
    {"1.0", "1.0"},
    {"1e3", "1000.0"},
    {"1E+3", "1000.0"},
    {"12e-1", "1.2"},
    {"0.1", "0.1"},
    {"1e-400", "0.0"},
    {"123456789012345678", "123456789012345678"},
    {"\"\"", "\"\""},
    {"\"a\"", "\"a\""},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
    {"\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"", "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {"\"\\u0000\\u001f\\u007f\"", "\"\\u0000\\u001f\x7f\""},
    {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {"[]", "[]"},
    {"[ ]", "[]"},
    {"{}", "{}"},
    {"{ }", "{}"},
    {"[1,2 , 3]", "[1,2,3]"},
    {"[[],[[]],{}]", "[[],[[]],{}]"},
    {"{\"a\":1,\"b\":[{\"c\":null}],\"d\":{\"e\":{}}}", "{\"a\":1,\"b\":[{\"c\":null}],\"d\":{\"e\":{}}}"},
    {"{\"\":0}", "{\"\":0}"},
    {"{\"a\":{\"a\":{\"a\":1}}}", "{\"a\":{\"a\":{\"a\":1}}}"}, /* the same key, in different objects */
};

TEST_ROWS(accepts, accepted)
{
    const char *text = accepted[_i][0];
    tn_json    *v = tn_json_parse(text, strlen(text));
    ck_assert_msg(v != NULL, "%s: %s", text, tn_error_message());
    char *again = rewritten(v, 0);
    ck_assert_str_eq(again, accepted[_i][1]);
    free(again);
    tn_json_free(v);
}

/* ---- invalid ----------------------------------------------------------------------------------------------------- */

static const char *const refused[][2] = {
    {"", "line 1, column 1 (byte 0): the text ends, expected a value"},
    {" \n ", "line 2, column 2 (byte 3): the text ends, expected a value"},
    {"[", "(byte 1): the text ends, expected a value or ']'"},
    {"[1", "the text ends, expected ',' or ']'"},
    {"[1,", "the text ends, expected a value"},
    {"{", "the text ends, expected a key in double quotes or '}'"},
    {"{\"a\"", "the text ends, expected ':' after the key"},
    {"{\"a\":", "the text ends, expected a value"},
    {"{\"a\":1", "the text ends, expected ',' or '}'"},
    {"{\"a\":1,", "the text ends, expected a key in double quotes"},
    {"[1,]", "column 4 (byte 3): found ']', expected a value; a comma must not precede a closing bracket"},
    {"{\"a\":1,}", "found '}', expected a key in double quotes; a comma must not precede a closing bracket"},
    {"{\"a\":}", "found '}', expected a value"},
    {"[,1]", "found ',', expected a value or ']'"},
    {"[1 2]", "found '2', expected ',' or ']'"},
    {"{\"a\":1 \"b\":2}", "found '\"', expected ',' or '}'"},
    {"{\"a\" 1}", "':' must follow the key 'a'"},
    {"{a:1}", "found 'a', expected a key in double quotes or '}'"},
    {"{1:1}", "found '1', expected a key in double quotes"},
    {"{'a':1}", "strings need double quotes"},
    {"['a']", "strings need double quotes"},
    {"[1}", "found '}', expected ',' or ']'"},
    {"{\"a\":1]", "found ']', expected ',' or '}'"},
    {"]", "found ']', expected a value"},
    {"1 2", "(byte 2): found '2', expected nothing after the value"},
    {"{} {}", "expected nothing after the value"},
    {"[1]]", "expected nothing after the value"},
    {"null,", "expected nothing after the value"},
    {"[1] // x", "JSON has no comments"},
    {"# x", "JSON has no comments"},
    {"/* */ 1", "JSON has no comments"},
    {"nul", "found 'n', expected a value"},
    {"nulL", "found 'n', expected a value"},
    {"nulll", "expected nothing after the value"},
    {"True", "true and false are lower case"},
    {"False", "true and false are lower case"},
    {"truefalse", "expected nothing after the value"},
    {"undefined", "found 'u', expected a value"},
    {"NaN", "JSON has no NaN and no Infinity"},
    {"Infinity", "JSON has no NaN and no Infinity"},
    {"-Infinity", "a digit must follow '-'"},
    {"-", "a digit must follow '-'"},
    {"+1", "a number starts with a digit or '-'"},
    {".5", "a number starts with a digit or '-'"},
    {"5.", "a digit must follow the decimal point"},
    {"5.e1", "a digit must follow the decimal point"},
    {"1e", "a digit must follow the exponent's 'e'"},
    {"1e+", "a digit must follow the exponent's 'e'"},
    {"01", "a number must not start with 0"},
    {"-01", "a number must not start with 0"},
    {"0x10", "expected nothing after the value"},
    {"1_000", "expected nothing after the value"},
    {"1e400", "the number '1e400' is too large for a double"},
    {"-1e400", "the number '-1e400' is too large for a double"},
    {"\"", "unterminated string"},
    {"\"a", "unterminated string"},
    {"\"a\\", "unterminated string"},
    {"\"a\nb\"", "control character 0x0a in a string; write it as \\u000a"},
    {"\"\t\"", "control character 0x09"},
    {"\"\\x41\"", "unknown escape: a backslash before 'x'"},
    {"\"\\'\"", "unknown escape: a backslash before '''"},
    {"\"\\u12\"", "\\u needs four hexadecimal digits"},
    {"\"\\u12g4\"", "\\u needs four hexadecimal digits"},
    {"\"\\ud800\"", "half of a surrogate pair"},
    {"\"\\udc00\"", "half of a surrogate pair"},
    {"\"\\ud800\\u0041\"", "half of a surrogate pair"},
    {"\"\\ud800x\"", "half of a surrogate pair"},
    {"\"\\ud800\\ud800\"", "half of a surrogate pair"},
    {"\"\\udc00\\udc00\"", "half of a surrogate pair"},
    {"\"\\ud800\\udc0\"", "\\u needs four hexadecimal digits"},
    {"\"\\ud800\\u\"", "half of a surrogate pair"},
    {"\"\\ud800\\udc0z\"", "\\u needs four hexadecimal digits"},
    {"{\"a\":1,\"a\":2}", "(byte 11): duplicate key 'a' in this object; its first value is at byte 5"},
    {"{\"a\":1,\"\\u0061\":2}", "duplicate key 'a' in this object"},
    {"[{},{\"k\":{\"x\":1,\"y\":2,\"x\":3}}]", "duplicate key 'x' in this object"},
    {"{\"a\\u0000b\":1}", "a key with \\u0000 in it is not supported"},
    {"\xef\xbb\xbf{}", "byte order mark"},
    {"\"\xff\"", "(byte 1): the byte 0xff is not valid UTF-8"},
    {"\"\xc3\"", "not valid UTF-8"},
    {"\"\xc0\x80\"", "not valid UTF-8"},                   /* overlong */
    {"\"\xed\xa0\x80\"", "not valid UTF-8"},               /* a surrogate */
    {"\"\xf4\x90\x80\x80\"", "not valid UTF-8"},           /* above U+10FFFF */
    {"[\"\xc3\xa9\", x]", "column 7 (byte 7): found 'x'"}, /* columns count characters */
    {"[1,\n 2,\n  x]", "line 3, column 3 (byte 10)"},
    {"[\x01]", "found '\\x01', expected a value"},
};

TEST_ROWS(refuses, refused)
{
    const char *text = refused[_i][0];
    ck_assert_ptr_null(tn_json_parse(text, strlen(text)));
    ck_assert_msg(tn_error() == TN_EFORMAT, "%s: %s", text, tn_error_message());
    ck_assert_msg(strstr(tn_error_message(), refused[_i][1]) != NULL, "%s\n  says   %s\n  not    %s", text,
                  tn_error_message(), refused[_i][1]);
    ck_assert_msg(!strncmp(tn_error_message(), "tn_json_parse: line ", 20), "%s", tn_error_message());
    tn_clear_error();
}

TEST(nul_is_no_end)
{
    ck_assert_ptr_null(tn_json_parse("1\0", 2));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "found '\\x00', expected nothing after the value"));
    tn_clear_error();
    ck_refused_code(tn_json_parse(NULL, 3), TN_EINVAL);
}

/* Every prefix of a valid text is an error, unless it is a complete value. */
TEST(every_truncation)
{
    static const char text[] =
        "{\"a\": [1, -2.5e3, \"x\\u00e9\\n\", true], \"b\": {\"c\": null, \"d\": {}}, \"e\": \"\xe2\x82\xac\"}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *exact = malloc(n ? n : 1);
        memcpy(exact, text, n);
        ck_refused_code(tn_json_parse(exact, n), TN_EFORMAT);
        free(exact);
    }
    tn_json *v = tn_json_parse(text, sizeof text - 1);
    ck_assert_ptr_nonnull(v);
    tn_json_free(v);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char config[] = "{\n  \"hidden_size\": 768,\n  \"eps\": 1e-12,\n  \"name\": \"bert\",\n  \"tie\": true,\n"
                             "  \"pad\": null,\n  \"big\": 18446744073709551615,\n  \"low\": -9223372036854775808,\n"
                             "  \"layers\": [{\"size\": 1}, {\"size\": \"x\"}, [0, [1, \"deep\"]]]\n}";

TEST(values)
{
    tn_json *c = tn_json_parse(config, sizeof config - 1);
    ck_assert_int_eq(tn_json_type_of(c), TN_JSON_OBJECT);
    ck_assert_int_eq(tn_json_count(c), 8);
    ck_assert_int_eq(tn_json_i64(tn_json_need(c, "hidden_size")), 768);
    ck_assert_double_eq(tn_json_double(tn_json_get(c, "eps")), 1e-12);
    ck_assert_double_eq(tn_json_double(tn_json_get(c, "hidden_size")), 768);
    ck_assert_str_eq(tn_json_string(tn_json_get(c, "name")), "bert");
    ck_assert_int_eq(tn_json_string_bytes(tn_json_get(c, "name")), 4);
    ck_assert(tn_json_bool(tn_json_get(c, "tie")));
    ck_assert_int_eq(tn_json_type_of(tn_json_get(c, "pad")), TN_JSON_NULL);
    ck_assert(tn_json_u64(tn_json_get(c, "big")) == UINT64_MAX);
    ck_assert_double_eq(tn_json_double(tn_json_get(c, "big")), 18446744073709551615.0);
    ck_assert(tn_json_i64(tn_json_get(c, "low")) == INT64_MIN);
    ck_assert_double_eq(tn_json_double(tn_json_get(c, "low")), -9223372036854775808.0);

    /* missing, or null: the fallback */
    ck_assert_int_eq(tn_json_i64_or(tn_json_get(c, "pad"), 7), 7);
    ck_assert_int_eq(tn_json_i64_or(tn_json_get(c, "none"), 8), 8);
    ck_assert_double_eq(tn_json_double_or(NULL, 0.5), 0.5);
    ck_assert(tn_json_bool_or(tn_json_get(c, "none"), true));
    ck_assert_str_eq(tn_json_string_or(tn_json_get(c, "pad"), "f"), "f");

    /* queries of NULL */
    ck_assert_ptr_null(tn_json_get(NULL, "a"));
    ck_assert_ptr_null(tn_json_get(c, NULL));
    ck_assert_ptr_null(tn_json_get(tn_json_get(c, "name"), "a"));
    ck_assert_ptr_null(tn_json_at(NULL, 0));
    ck_assert_ptr_null(tn_json_at(c, -1));
    ck_assert_ptr_null(tn_json_at(c, 8));
    ck_assert_ptr_null(tn_json_next(NULL));
    ck_assert_ptr_null(tn_json_next(c));
    ck_assert_int_eq(tn_json_count(NULL), 0);
    ck_assert_int_eq(tn_json_type_of(NULL), TN_JSON_NONE);
    ck_assert_int_eq(tn_json_i64(NULL), 0);
    ck_assert(tn_json_u64(NULL) == 0);
    ck_assert_double_eq(tn_json_double(NULL), 0);
    ck_assert(!tn_json_bool(NULL));
    ck_assert_str_eq(tn_json_string(NULL), "");
    ck_assert_int_eq(tn_json_string_bytes(NULL), 0);
    ck_assert_str_eq(tn_json_key(NULL), "");
    ck_assert_str_eq(tn_json_key(c), "");

    static const char *const order[] = {"hidden_size", "eps", "name", "tie", "pad", "big", "low", "layers"};
    int                      i = 0;
    for (const tn_json *x = tn_json_first(c); x; x = tn_json_next(x), i++) {
        ck_assert_str_eq(tn_json_key(x), order[i]);
        ck_assert_ptr_eq(x, tn_json_at(c, i));
    }
    ck_assert_int_eq(i, 8);
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_json_free(c);
    tn_json_free(NULL);
}

TEST(wrong_types)
{
    tn_json *c = tn_json_parse(config, sizeof config - 1);
    ck_assert_int_eq(tn_json_i64(tn_json_get(c, "name")), 0);
    ck_error(TN_EFORMAT, "'json': name (byte 50) is the string 'bert', expected an integer from -2^63 to 2^63 - 1");
    ck_assert_int_eq(tn_json_i64_or(tn_json_get(c, "eps"), 3), 3);
    ck_error(TN_EFORMAT, "'json': eps (byte 33) is the number 1e-12, expected an integer from -2^63 to 2^63 - 1");
    tn_json_i64(tn_json_get(c, "big"));
    ck_error(TN_EFORMAT,
             "'json': big (byte 97) is the integer 18446744073709551615, expected an integer from -2^63 to 2^63 - 1");
    tn_json_u64(tn_json_get(c, "low"));
    ck_error(TN_EFORMAT,
             "'json': low (byte 128) is the integer -9223372036854775808, expected an integer from 0 to 2^64 - 1");
    tn_json_i64(tn_json_get(c, "pad"));
    ck_error(TN_EFORMAT, "'json': pad (byte 82) is null, expected an integer");
    tn_json_double(tn_json_get(c, "tie"));
    ck_error(TN_EFORMAT, "'json': tie (byte 67) is true, expected a number");
    tn_json_bool(tn_json_get(c, "layers"));
    ck_error(TN_EFORMAT, "'json': layers (byte 162) is an array, expected true or false");
    tn_json_string(c);
    ck_error(TN_EFORMAT, "'json': the document (byte 0) is an object, expected a string");
    tn_json_string_bytes(tn_json_get(c, "hidden_size"));
    ck_error(TN_EFORMAT, "'json': hidden_size (byte 19) is the integer 768, expected a string");
    const tn_json *layers = tn_json_get(c, "layers");
    tn_json_i64(tn_json_get(tn_json_at(layers, 1), "size"));
    ck_error(TN_EFORMAT,
             "'json': layers[1].size (byte 185) is the string 'x', expected an integer from -2^63 to 2^63 - 1");
    tn_json_i64(tn_json_at(tn_json_at(tn_json_at(layers, 2), 1), 1));
    ck_error(TN_EFORMAT,
             "'json': layers[2][1][1] (byte 199) is the string 'deep', expected an integer from -2^63 to 2^63 - 1");
    tn_json_need(c, "hiden_size");
    ck_error(TN_EINDEX, "'json': the document (byte 0) has no 'hiden_size'; did you mean 'hidden_size'?");
    tn_json_need(tn_json_at(layers, 0), "quite_another");
    ck_error(TN_EINDEX, "'json': layers[0] (byte 163) has no 'quite_another'");
    tn_json_need(layers, "size");
    ck_error(TN_EFORMAT, "'json': layers (byte 162) is an array, expected an object");
    tn_json_need(NULL, "size");
    ck_error(TN_EINDEX, "tn_json_need: the object to search for 'size' is NULL");
    tn_json_free((tn_json *)(uintptr_t)layers);
    ck_error(TN_EINVAL, "tn_json_free: this is a value inside a document; free the document");
    tn_json_free(c);
}

/* Numbers that JSON lacks, and strings that are not such numbers. */
TEST(endless_numbers)
{
    static const double v[] = {1.5, -0.0, INFINITY, -INFINITY, NAN};
    static const char   other[] = "{\"0\": \"infinity\"}";
    char                key[2] = "0";
    tn_json_writer     *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    for (int i = 0; i < 5; i++) key[0] = (char)('0' + i), tn__json_put_number(w, key, v[i]);
    tn_json_close(w);
    ck_assert_str_eq(tn_json_text(w, NULL), "{\"0\":1.5,\"1\":-0.0,\"2\":\"inf\",\"3\":\"-inf\"}");
    tn_json *back = tn_json_parse(tn_json_text(w, NULL), strlen(tn_json_text(w, NULL)));
    for (int i = 0; i < 5; i++) {
        key[0] = (char)('0' + i);
        const double d = tn__json_number(back, key);
        ck_assert(isnan(v[i]) ? isnan(d) : !memcmp(&d, &v[i], sizeof d));
    }
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_json_free(back), tn_json_writer_free(w);
    back = tn_json_parse(other, sizeof other - 1);
    ck_assert(isnan(tn__json_number(back, "0")));
    ck_error(TN_EFORMAT, "'json': 0 (byte 6) is the string 'infinity', expected a number, \"inf\" or \"-inf\"");
    tn_json_free(back);
}

/* ---- limits and size --------------------------------------------------------------------------------------------- */

TEST(limits)
{
    tn_json_limits l = {.depth = 2};
    tn_json       *v = tn_json_parse_within("[[1]]", 5, l);
    ck_assert_ptr_nonnull(v);
    tn_json_free(v);
    ck_refused(tn_json_parse_within("[[[1]]]", 7, l), TN_EFORMAT,
               "tn_json_parse: line 1, column 3 (byte 2): nested deeper than the limit of 2");
    l = (tn_json_limits){.values = 3};
    v = tn_json_parse_within("[1,2]", 5, l);
    ck_assert_ptr_nonnull(v);
    tn_json_free(v);
    ck_refused(tn_json_parse_within("[1,2,3]", 7, l), TN_EFORMAT,
               "tn_json_parse: line 1, column 6 (byte 5): more values than the limit of 3");
    l = (tn_json_limits){.bytes = 5};
    ck_refused(tn_json_parse_within("[1,2] ", 6, l), TN_EFORMAT, "tn_json_parse: the text has 6 bytes, the limit is 5");
    const tn_json_limits senseless[] = {
        {.depth = -1}, {.depth = TN_JSON_MAX_DEPTH + 1}, {.bytes = -1}, {.bytes = (int64_t)1 << 32}, {.values = -1}};
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        ck_refused_code(tn_json_parse_within("1", 1, senseless[i]), TN_EINVAL);
    }
    /* the maximum depth, for the default and the highest limit */
    for (int most = 64; most <= TN_JSON_MAX_DEPTH; most += TN_JSON_MAX_DEPTH - 64)
        for (int depth = most; depth <= most + 1; depth++) {
            char *text = malloc(2 * (size_t)depth);
            memset(text, '[', (size_t)depth), memset(text + depth, ']', (size_t)depth);
            v = tn_json_parse_within(text, 2 * (size_t)depth, (tn_json_limits){.depth = most});
            ck_assert_msg((v != NULL) == (depth == most), "%d in %d: %s", depth, most, tn_error_message());
            if (v) {
                char *again = rewritten(v, 0);
                ck_assert_uint_eq(strlen(again), 2 * (size_t)depth);
                free(again);
            }
            tn_clear_error();
            tn_json_free(v);
            free(text);
        }
}

TEST(a_million_deep)
{
    size_t n = 1000000;
    char  *text = malloc(n);
    memset(text, '[', n);
    ck_assert_ptr_null(tn_json_parse(text, n));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "nested deeper than the limit of 64"));
    tn_clear_error();
    for (size_t i = 0; i < n; i++) text[i] = i % 5 == 0 ? '{' : "\"a\":"[(i - 1) % 5 % 4];
    ck_refused_code(tn_json_parse(text, n), TN_EFORMAT);
    free(text);
}

TEST(a_million_keys)
{
    int   n = tn_test_slow() ? 20000 : 1000000;
    char *text = malloc((size_t)n * 24 + 64), *p = text;
    *p++ = '{';
    for (int i = 0; i < n; i++) p += sprintf(p, "%s\"key%d\":%d", i ? "," : "", i, i);
    char *end = p;
    p += sprintf(p, "}");
    tn_json *v = tn_json_parse(text, (size_t)(p - text));
    ck_assert_msg(v != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_json_count(v), n);
    char key[32];
    for (int i = 0; i < n; i += 7) {
        snprintf(key, sizeof key, "key%d", i);
        ck_assert_int_eq(tn_json_i64(tn_json_get(v, key)), i);
    }
    ck_assert_ptr_null(tn_json_get(v, "key"));
    ck_assert_ptr_null(tn_json_get(v, "key-1"));
    tn_json_string(tn_json_at(v, n - 1)); /* the path of a value is found without visiting all values */
    ck_assert_ptr_nonnull(strstr(tn_error_message(), tn_json_key(tn_json_at(v, n - 1))));
    tn_clear_error();
    tn_json_free(v);
    p = end + sprintf(end, ",\"key%d\":0}", n / 2); /* the same key again */
    ck_assert_ptr_null(tn_json_parse(text, (size_t)(p - text)));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "in this object"));
    tn_clear_error();
    free(text);
}

/* Sizes around the threshold of key tables. */
TEST(keys_of_all_sizes)
{
    for (int n = 0; n < 40; n++)
        for (int twin = -1; twin < n; twin++) {
            char text[1024], *p = text;
            *p++ = '{';
            for (int i = 0; i < n; i++)
                p += sprintf(p, "%s\"k%d\":%d", i ? "," : "", i == n - 1 && twin >= 0 && twin < i ? twin : i, i);
            p += sprintf(p, "}");
            tn_json *v = tn_json_parse(text, (size_t)(p - text));
            bool     good = twin < 0 || twin == n - 1;
            ck_assert_msg((v != NULL) == good, "%s: %s", text, tn_error_message());
            tn_clear_error();
            for (int i = 0; v && i < n; i++) {
                char key[16];
                snprintf(key, sizeof key, "k%d", i);
                ck_assert_int_eq(tn_json_i64(tn_json_get(v, key)), i);
            }
            tn_json_free(v);
        }
}

/* In a locale with a decimal comma nothing changes here. */
TEST(locale_changes_nothing)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8", "fr_FR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i])) break;
    tn_json *v = tn_json_parse("[1.5,1e-3,-2.25]", 16);
    char    *again = rewritten(v, 0);
    tn_test_locale();
    ck_assert_str_eq(again, "[1.5,0.001,-2.25]");
    free(again);
    tn_json_free(v);
}
