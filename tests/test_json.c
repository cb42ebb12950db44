/* test_json.c — the JSON reader and writer: what is accepted, what is refused and in which words, values, limits,
 * numbers as text, memory that fails. */
#define _GNU_SOURCE
#include "tests/check_main.h"

#include "core/core.h"
#include "tests/faults.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A sanitizer's run is about memory: it needs no million of random numbers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
enum { SANITIZED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { SANITIZED = 0 };
#endif
static bool small(void) { return SANITIZED || tn_test_slow(); }

static uint64_t state = 88172645463325252u;
static uint64_t rnd(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* The text again, from the tree; to be freed. */
static char *rewritten(const tn_json *v, int indent)
{
    tn_json_writer *w = tn_json_writer_new(indent);
    tn_json_put(w, NULL, v);
    const char *text = tn_json_text(w, NULL);
    char       *copy = text ? strdup(text) : NULL;
    tn_json_writer_free(w);
    return copy;
}

/* ---- what is accepted: the text, and the same value as the writer writes it -------------------------------------- */

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
    {"1000000000000000019884624838656", "1e+30"}, /* what Hugging Face writes for "no limit" */
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

START_TEST(accepts)
{
    const char *text = accepted[_i][0];
    tn_json    *v = tn_json_parse(text, strlen(text));
    ck_assert_msg(v != NULL, "%s: %s", text, tn_error_message());
    char *again = rewritten(v, 0);
    ck_assert_str_eq(again, accepted[_i][1]);
    free(again);
    tn_json_free(v);
}
END_TEST

/* ---- what is refused --------------------------------------------------------------------------------------------- */

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
    {"[1,]", "column 4 (byte 3): found ']', expected a value; no comma stands before a closing bracket"},
    {"{\"a\":1,}", "found '}', expected a key in double quotes; no comma stands before a closing bracket"},
    {"{\"a\":}", "found '}', expected a value"},
    {"[,1]", "found ',', expected a value or ']'"},
    {"[1 2]", "found '2', expected ',' or ']'"},
    {"{\"a\":1 \"b\":2}", "found '\"', expected ',' or '}'"},
    {"{\"a\" 1}", "':' must follow the key 'a'"},
    {"{a:1}", "found 'a', expected a key in double quotes or '}'"},
    {"{1:1}", "found '1', expected a key in double quotes"},
    {"{'a':1}", "strings stand in double quotes"},
    {"['a']", "strings stand in double quotes"},
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
    {"True", "true and false are written small"},
    {"False", "true and false are written small"},
    {"truefalse", "expected nothing after the value"},
    {"undefined", "found 'u', expected a value"},
    {"NaN", "JSON has no NaN and no Infinity"},
    {"Infinity", "JSON has no NaN and no Infinity"},
    {"-Infinity", "a digit must follow '-'"},
    {"-", "a digit must follow '-'"},
    {"+1", "a number begins with a digit or '-'"},
    {".5", "a number begins with a digit or '-'"},
    {"5.", "a digit must follow the decimal point"},
    {"5.e1", "a digit must follow the decimal point"},
    {"1e", "a digit must follow the exponent's 'e'"},
    {"1e+", "a digit must follow the exponent's 'e'"},
    {"01", "a number must not begin with 0"},
    {"-01", "a number must not begin with 0"},
    {"0x10", "expected nothing after the value"},
    {"1_000", "expected nothing after the value"},
    {"1e400", "the number '1e400' is too large for a double"},
    {"-1e400", "the number '-1e400' is too large for a double"},
    {"\"", "this string does not end"},
    {"\"a", "this string does not end"},
    {"\"a\\", "this string does not end"},
    {"\"a\nb\"", "the control character 0x0a stands in a string; write it as \\u000a"},
    {"\"\t\"", "the control character 0x09"},
    {"\"\\x41\"", "a backslash before 'x' means nothing"},
    {"\"\\'\"", "a backslash before ''' means nothing"},
    {"\"\\u12\"", "\\u takes four hexadecimal digits"},
    {"\"\\u12g4\"", "\\u takes four hexadecimal digits"},
    {"\"\\ud800\"", "half of a surrogate pair"},
    {"\"\\udc00\"", "half of a surrogate pair"},
    {"\"\\ud800\\u0041\"", "half of a surrogate pair"},
    {"\"\\ud800x\"", "half of a surrogate pair"},
    {"\"\\ud800\\ud800\"", "half of a surrogate pair"},
    {"\"\\ud800\\udc0\"", "\\u takes four hexadecimal digits"},
    {"\"\\ud800\\u\"", "half of a surrogate pair"},
    {"\"\\ud800\\udc0z\"", "\\u takes four hexadecimal digits"},
    {"{\"a\":1,\"a\":2}", "(byte 11): the key 'a' is in this object twice; its first value is at byte 5"},
    {"{\"a\":1,\"\\u0061\":2}", "the key 'a' is in this object twice"},
    {"[{},{\"k\":{\"x\":1,\"y\":2,\"x\":3}}]", "the key 'x' is in this object twice"},
    {"{\"a\\u0000b\":1}", "a key with \\u0000 in it is not supported"},
    {"\xef\xbb\xbf{}", "byte order mark"},
    {"\"\xff\"", "(byte 1): the byte 0xff is not valid UTF-8"},
    {"\"\xc3\"", "not valid UTF-8"},
    {"\"\xc0\x80\"", "not valid UTF-8"},                   /* overlong */
    {"\"\xed\xa0\x80\"", "not valid UTF-8"},               /* a surrogate */
    {"\"\xf4\x90\x80\x80\"", "not valid UTF-8"},           /* past U+10FFFF */
    {"[\"\xc3\xa9\", x]", "column 7 (byte 7): found 'x'"}, /* columns count characters */
    {"[1,\n 2,\n  x]", "line 3, column 3 (byte 10)"},
    {"[\x01]", "found '\\x01', expected a value"},
};

START_TEST(refuses)
{
    const char *text = refused[_i][0];
    ck_assert_ptr_null(tn_json_parse(text, strlen(text)));
    ck_assert_msg(tn_error() == TN_EFORMAT, "%s: %s", text, tn_error_message());
    ck_assert_msg(strstr(tn_error_message(), refused[_i][1]) != NULL, "%s\n  says   %s\n  not    %s", text,
                  tn_error_message(), refused[_i][1]);
    ck_assert_msg(!strncmp(tn_error_message(), "tn_json_parse: line ", 20), "%s", tn_error_message());
    tn_clear_error();
}
END_TEST

START_TEST(nul_is_no_end)
{
    ck_assert_ptr_null(tn_json_parse("1\0", 2));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "found '\\x00', expected nothing after the value"));
    tn_clear_error();
    ck_assert_ptr_null(tn_json_parse(NULL, 3));
    ck_assert_int_eq(tn_error(), TN_EINVAL);
    tn_clear_error();
}
END_TEST

/* Every beginning of a valid text is refused, unless it is a whole value already. */
START_TEST(every_truncation)
{
    static const char text[] =
        "{\"a\": [1, -2.5e3, \"x\\u00e9\\n\", true], \"b\": {\"c\": null, \"d\": {}}, \"e\": \"\xe2\x82\xac\"}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *exact = malloc(n ? n : 1);
        memcpy(exact, text, n);
        ck_assert_ptr_null(tn_json_parse(exact, n));
        ck_assert_int_eq(tn_error(), TN_EFORMAT);
        tn_clear_error();
        free(exact);
    }
    tn_json *v = tn_json_parse(text, sizeof text - 1);
    ck_assert_ptr_nonnull(v);
    tn_json_free(v);
}
END_TEST

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char config[] = "{\n  \"hidden_size\": 768,\n  \"eps\": 1e-12,\n  \"name\": \"bert\",\n  \"tie\": true,\n"
                             "  \"pad\": null,\n  \"big\": 18446744073709551615,\n  \"low\": -9223372036854775808,\n"
                             "  \"layers\": [{\"size\": 1}, {\"size\": \"x\"}, [0, [1, \"deep\"]]]\n}";

START_TEST(values)
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

    /* absent, or null: the fallback */
    ck_assert_int_eq(tn_json_i64_or(tn_json_get(c, "pad"), 7), 7);
    ck_assert_int_eq(tn_json_i64_or(tn_json_get(c, "none"), 8), 8);
    ck_assert_double_eq(tn_json_double_or(NULL, 0.5), 0.5);
    ck_assert(tn_json_bool_or(tn_json_get(c, "none"), true));
    ck_assert_str_eq(tn_json_string_or(tn_json_get(c, "pad"), "f"), "f");

    /* nothing of nothing */
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
END_TEST

static void says(tn_status code, const char *text)
{
    ck_assert_msg(tn_error() == code, "%s, expected %s", tn_error_message(), tn_status_name(code));
    ck_assert_msg(!strcmp(tn_error_message(), text), "\n  says      %s\n  expected  %s", tn_error_message(), text);
    tn_clear_error();
}

START_TEST(wrong_types)
{
    tn_json *c = tn_json_parse(config, sizeof config - 1);
    ck_assert_int_eq(tn_json_i64(tn_json_get(c, "name")), 0);
    says(TN_EFORMAT, "'json': name (byte 50) is the string 'bert', expected an integer from -2^63 to 2^63 - 1");
    ck_assert_int_eq(tn_json_i64_or(tn_json_get(c, "eps"), 3), 3);
    says(TN_EFORMAT, "'json': eps (byte 33) is the number 1e-12, expected an integer from -2^63 to 2^63 - 1");
    tn_json_i64(tn_json_get(c, "big"));
    says(TN_EFORMAT,
         "'json': big (byte 97) is the integer 18446744073709551615, expected an integer from -2^63 to 2^63 - 1");
    tn_json_u64(tn_json_get(c, "low"));
    says(TN_EFORMAT,
         "'json': low (byte 128) is the integer -9223372036854775808, expected an integer from 0 to 2^64 - 1");
    tn_json_i64(tn_json_get(c, "pad"));
    says(TN_EFORMAT, "'json': pad (byte 82) is null, expected an integer");
    tn_json_double(tn_json_get(c, "tie"));
    says(TN_EFORMAT, "'json': tie (byte 67) is true, expected a number");
    tn_json_bool(tn_json_get(c, "layers"));
    says(TN_EFORMAT, "'json': layers (byte 162) is an array, expected true or false");
    tn_json_string(c);
    says(TN_EFORMAT, "'json': the document (byte 0) is an object, expected a string");
    tn_json_string_bytes(tn_json_get(c, "hidden_size"));
    says(TN_EFORMAT, "'json': hidden_size (byte 19) is the integer 768, expected a string");
    const tn_json *layers = tn_json_get(c, "layers");
    tn_json_i64(tn_json_get(tn_json_at(layers, 1), "size"));
    says(TN_EFORMAT, "'json': layers[1].size (byte 185) is the string 'x', expected an integer from -2^63 to 2^63 - 1");
    tn_json_i64(tn_json_at(tn_json_at(tn_json_at(layers, 2), 1), 1));
    says(TN_EFORMAT,
         "'json': layers[2][1][1] (byte 199) is the string 'deep', expected an integer from -2^63 to 2^63 - 1");
    tn_json_need(c, "hiden_size");
    says(TN_EINDEX, "'json': the document (byte 0) has no 'hiden_size'; did you mean 'hidden_size'?");
    tn_json_need(tn_json_at(layers, 0), "quite_another");
    says(TN_EINDEX, "'json': layers[0] (byte 163) has no 'quite_another'");
    tn_json_need(layers, "size");
    says(TN_EFORMAT, "'json': layers (byte 162) is an array, expected an object");
    tn_json_need(NULL, "size");
    says(TN_EINDEX, "tn_json_need: there is no object to look for 'size' in");
    tn_json_free((tn_json *)(uintptr_t)layers);
    says(TN_EINVAL, "tn_json_free: this is a value inside a document; free the document");
    tn_json_free(c);
}
END_TEST

/* ---- limits and size --------------------------------------------------------------------------------------------- */

START_TEST(limits)
{
    tn_json_limits l = {.depth = 2};
    tn_json       *v = tn_json_parse_within("[[1]]", 5, l);
    ck_assert_ptr_nonnull(v);
    tn_json_free(v);
    ck_assert_ptr_null(tn_json_parse_within("[[[1]]]", 7, l));
    says(TN_EFORMAT, "tn_json_parse: line 1, column 3 (byte 2): nested deeper than the limit of 2");
    l = (tn_json_limits){.values = 3};
    v = tn_json_parse_within("[1,2]", 5, l);
    ck_assert_ptr_nonnull(v);
    tn_json_free(v);
    ck_assert_ptr_null(tn_json_parse_within("[1,2,3]", 7, l));
    says(TN_EFORMAT, "tn_json_parse: line 1, column 6 (byte 5): more values than the limit of 3");
    l = (tn_json_limits){.bytes = 5};
    ck_assert_ptr_null(tn_json_parse_within("[1,2] ", 6, l));
    says(TN_EFORMAT, "tn_json_parse: the text has 6 bytes, the limit is 5");
    const tn_json_limits senseless[] = {
        {.depth = -1}, {.depth = TN_JSON_MAX_DEPTH + 1}, {.bytes = -1}, {.bytes = (int64_t)1 << 32}, {.values = -1}};
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        ck_assert_ptr_null(tn_json_parse_within("1", 1, senseless[i]));
        ck_assert_int_eq(tn_error(), TN_EINVAL);
        tn_clear_error();
    }
    /* exactly as deep as allowed, for the default and the most */
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
END_TEST

START_TEST(a_million_deep)
{
    size_t n = 1000000;
    char  *text = malloc(n);
    memset(text, '[', n);
    ck_assert_ptr_null(tn_json_parse(text, n));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "nested deeper than the limit of 64"));
    tn_clear_error();
    for (size_t i = 0; i < n; i++) text[i] = i % 5 == 0 ? '{' : "\"a\":"[(i - 1) % 5 % 4];
    ck_assert_ptr_null(tn_json_parse(text, n));
    ck_assert_int_eq(tn_error(), TN_EFORMAT);
    tn_clear_error();
    free(text);
}
END_TEST

START_TEST(a_million_keys)
{
    int   n = small() ? 20000 : 1000000;
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
    tn_json_string(tn_json_at(v, n - 1)); /* the way to a value is found without walking */
    ck_assert_ptr_nonnull(strstr(tn_error_message(), tn_json_key(tn_json_at(v, n - 1))));
    tn_clear_error();
    tn_json_free(v);
    p = end + sprintf(end, ",\"key%d\":0}", n / 2); /* once more */
    ck_assert_ptr_null(tn_json_parse(text, (size_t)(p - text)));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "is in this object twice"));
    tn_clear_error();
    free(text);
}
END_TEST

/* Sizes around the one where a table of keys takes over. */
START_TEST(keys_of_all_sizes)
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
END_TEST

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

static int encode(uint32_t c, char *to)
{
    if (c < 0x80) return to[0] = (char)c, 1;
    if (c < 0x800) return to[0] = (char)(0xc0 | c >> 6), to[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return to[0] = (char)(0xe0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 63)), to[2] = (char)(0x80 | (c & 63)), 3;
    to[0] = (char)(0xf0 | c >> 18), to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63)), to[3] = (char)(0x80 | (c & 63));
    return 4;
}

START_TEST(every_code_point)
{
    uint32_t step = small() ? 97 : 1;
    for (uint32_t c = 0; c < 0x120000; c += step) {
        char text[40], utf8[8];
        int  n = encode(c, utf8);
        bool scalar = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        ck_assert_int_eq(tn_utf8_valid(utf8, (size_t)n) == (size_t)n, scalar);
        for (int cut = 1; cut < n; cut++) ck_assert_uint_eq(tn_utf8_valid(utf8, (size_t)cut), 0);
        if (!scalar || c % 5) continue;
        if (c < 0x10000) snprintf(text, sizeof text, "\"\\u%04x\"", c);
        else snprintf(text, sizeof text, "\"\\u%04X\\u%04x\"", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
        tn_json *v = tn_json_parse(text, strlen(text));
        ck_assert_msg(v != NULL, "%s", tn_error_message());
        ck_assert_int_eq(tn_json_string_bytes(v), n);
        ck_assert_mem_eq(tn_json_string(v), utf8, (size_t)n);
        tn_json_free(v);
    }
}
END_TEST

/* All sequences of up to three bytes, against the definition by decoding; and where a fault stands in a long text. */
START_TEST(every_short_sequence)
{
    uint32_t step = small() ? 251 : 1;
    for (uint32_t s = 0; s < 1u << 24; s += step) {
        unsigned char p[3] = {(unsigned char)(s >> 16), (unsigned char)(s >> 8), (unsigned char)s};
        size_t        good = 0;
        while (good < 3) {
            int      len = p[good] < 0x80 ? 1 : p[good] < 0xc0 ? 0 : p[good] < 0xe0 ? 2 : p[good] < 0xf0 ? 3 : 4;
            uint32_t c = len == 1 ? p[good] : len == 2 ? p[good] & 31u : p[good] & 15u;
            bool     ok = len && good + (size_t)len <= 3;
            for (int i = 1; ok && i < len; i++) {
                ok = (p[good + (size_t)i] & 0xc0) == 0x80;
                c = c << 6 | (p[good + (size_t)i] & 63u);
            }
            if (!ok || (len == 2 && c < 0x80) || (len == 3 && (c < 0x800 || (c >= 0xd800 && c <= 0xdfff)))) break;
            good += (size_t)len;
        }
        if (tn_utf8_valid((const char *)p, 3) != good) ck_abort_msg("%02x %02x %02x", p[0], p[1], p[2]);
    }
    char text[64];
    for (size_t n = 0; n <= sizeof text; n++)
        for (size_t bad = 0; bad < n; bad++) {
            memset(text, 'a', sizeof text);
            text[bad] = (char)0x80;
            ck_assert_uint_eq(tn_utf8_valid(text, n), bad);
        }
}
END_TEST

/* ---- numbers as text --------------------------------------------------------------------------------------------- */

static void check_read(const char *text)
{
    double mine = -1, theirs = strtod(text, NULL);
    bool   ok = tn_parse_double(text, strlen(text), &mine);
    if (isinf(theirs) ? ok : !ok || memcmp(&mine, &theirs, sizeof mine))
        ck_abort_msg("%s: %a, expected %a (%d)", text, mine, theirs, ok);
}

static int significant(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (!n && *text == '0')) continue;
        n++, zeros = *text == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

START_TEST(doubles_read_and_written)
{
    int  n = small() ? 3000 : 1000000;
    char text[64], other[64];
    for (int i = 0; i < n; i++) {
        uint64_t bits = rnd();
        double   d, back;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d)) continue;
        if (i % 4 == 0) d = (double)(int64_t)rnd() / 1e6; /* numbers as people write them, too */
        snprintf(text, sizeof text, "%.*g", i % 20 + 1, d);
        check_read(text);
        int len = tn_format_double(d, text);
        ck_assert_int_eq(len, (int)strlen(text));
        back = strtod(text, NULL);
        if (memcmp(&back, &d, sizeof d)) ck_abort_msg("%s for %.17g", text, d);
        if (!tn_parse_double(text, (size_t)len, &back) || memcmp(&back, &d, sizeof d)) ck_abort_msg("%s", text);
        int shown = significant(text);
        if (shown > 1 && i % 16 == 1) { /* one digit less does not read back */
            snprintf(other, sizeof other, "%.*e", shown - 2, d);
            if (strtod(other, NULL) == d) ck_abort_msg("%s is longer than %s", text, other);
        }
        if (shown == 17) continue; /* with all digits there is nothing to choose */
        snprintf(other, sizeof other, "%.*e", shown ? shown - 1 : 0, d);
        if (strtod(other, NULL) == d && strtod(text, NULL) == d && i % 16 == 2) {
            long double a = fabsl(strtold(text, NULL) - (long double)d),
                        b = fabsl(strtold(other, NULL) - (long double)d);
            if (a > b) ck_abort_msg("%s is farther than %s", text, other);
        }
    }
}
END_TEST

START_TEST(hard_numbers)
{
    static const char *const hard[] = {
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "1",
        "10",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0000000000000000000000000001",
        "5e-324",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272088284396434110686182e-324",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "2.2250738585072014e-308",
        "2.225073858507201136057409796709131975934819546351645648023426109724822222021076945516529523908135087914149158913039621106870086438694594645527657207407820621743379988141063267329253552286881372149012981122451451889849057222307285255133155755015914397476397983411801999323962548289017107081850690630666655994938275772572015763062690663332647565300009245888316433037779791869612049497390377829704905051080609940730262937128958950003583799967207254304360284078895771796150945516748243471030702609144621572289880258182545180325707018860872113128079512233426288368622321503775666622503982534335974568884423900265498198385487948292206894721689831099698365846814022854243330660339850886445804001034933970427567186443383770486037861622771738545623065874679014086723327636718749999999999999999999999999999999999999e-308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1.797693134862315807e308",
        "1.797693134862315808e308",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880",
        "1e308",
        "1e309",
        "1e-323",
        "1e-324",
        "1e-400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "123456789012345678901234567890",
        "0.000000000000000000000000000000000000000000000000000000000001",
        "8.5e-23",
        "7.2057594037927933e16",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126"};
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) check_read(hard[i]);

    static const char *const none[] = {"",   " ",  "-",    "+",   ".",   "e5",  "1e",  "1e+",   "1 ",
                                       " 1", "1x", "0x10", "inf", "nan", "1,5", "--1", "1.2.3", "1e5.0"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        double v = 42;
        ck_assert_msg(!tn_parse_double(none[i], strlen(none[i]), &v), "%s", none[i]);
        ck_assert_double_eq(v, 42);
    }
    double v;
    ck_assert(tn_parse_double("+.5", 3, &v) && v == 0.5);
    ck_assert(tn_parse_double("5.", 2, &v) && v == 5);
    ck_assert(tn_parse_double("0012", 4, &v) && v == 12);
    ck_assert(!tn_parse_double(NULL, 1, &v));

    /* exactly half-way between two doubles, and a little off it in the 800th digit and far beyond */
    char text[2200];
    int  n = small() ? 100 : 20000;
    for (int i = 0; i < n; i++) {
        uint64_t bits = rnd() >> 1, up = bits + 1;
        double   a, b;
        memcpy(&a, &bits, sizeof a), memcpy(&b, &up, sizeof b);
        if (!isfinite(b)) continue;
        snprintf(text, sizeof text, "%.780Le", ((long double)a + (long double)b) / 2);
        check_read(text);
        char exponent[16], *e = strchr(text, 'e');
        snprintf(exponent, sizeof exponent, "%s", e);
        for (int zeros = 0; zeros < 1200; zeros += 400) {
            memset(e, '0', (size_t)zeros);
            snprintf(e + zeros, sizeof text - (size_t)(e + zeros - text), "1%s", exponent);
            check_read(text);
        }
    }
    /* every power of two, where the gap below is the smaller one; every power of ten */
    for (int e = -1074; e < 1024; e++) {
        double d = ldexp(1, e), back;
        tn_format_double(d, text);
        ck_assert(tn_parse_double(text, strlen(text), &back) && back == d && strtod(text, NULL) == d);
    }
    for (int e = -330; e < 312; e++) {
        snprintf(text, sizeof text, "1e%d", e);
        check_read(text);
        snprintf(text, sizeof text, "9.999999999999999e%d", e);
        check_read(text);
    }
}
END_TEST

START_TEST(written_as_expected)
{
    static const struct {
        double      v;
        const char *text;
    } rows[] = {{0, "0.0"},
                {-0.0, "-0.0"},
                {1, "1.0"},
                {-1.5, "-1.5"},
                {0.1, "0.1"},
                {1e15, "1000000000000000.0"},
                {1e16, "1e+16"},
                {123456789012345680, "1.2345678901234568e+17"},
                {0.0001, "0.0001"},
                {0.00001, "1e-05"},
                {1.5e-7, "1.5e-07"},
                {5e-324, "5e-324"},
                {DBL_MAX, "1.7976931348623157e+308"},
                {DBL_MIN, "2.2250738585072014e-308"},
                {9007199254740992, "9007199254740992.0"},
                {5.684341886080802e-14, "5.684341886080802e-14"},
                {1e23, "1e+23"},
                {2.0 / 3, "0.6666666666666666"},
                {INFINITY, "inf"},
                {-INFINITY, "-inf"},
                {NAN, "nan"},
                {100, "100.0"},
                {1e100, "1e+100"}};
    char text[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_int_eq(tn_format_double(rows[i].v, text), (int)strlen(rows[i].text));
        ck_assert_str_eq(text, rows[i].text);
    }
    static const struct {
        float       v;
        const char *text;
    } floats[] = {{0.1f, "0.1"},
                  {16777216, "16777216.0"},
                  {FLT_MAX, "3.4028235e+38"},
                  {1e-45f, "1e-45"},
                  {1.0f / 3, "0.33333334"},
                  {-0.0f, "-0.0"},
                  {INFINITY, "inf"},
                  {NAN, "nan"},
                  {-INFINITY, "-inf"}};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        tn_format_float(floats[i].v, text);
        ck_assert_str_eq(text, floats[i].text);
    }
    int n = small() ? 2000 : 200000;
    for (int i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)rnd();
        float    f, back;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f)) continue;
        tn_format_float(f, text);
        back = strtof(text, NULL);
        if (memcmp(&f, &back, sizeof f)) ck_abort_msg("%s for %a", text, (double)f);
        if (significant(text) > 9) ck_abort_msg("%s is too long", text);
    }
}
END_TEST

/* Where a locale writes a comma, nothing changes here. */
START_TEST(locale_changes_nothing)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8", "fr_FR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i])) break;
    tn_json *v = tn_json_parse("[1.5,1e-3,-2.25]", 16);
    char    *again = rewritten(v, 0);
    setlocale(LC_ALL, "C");
    ck_assert_str_eq(again, "[1.5,0.001,-2.25]");
    free(again);
    tn_json_free(v);
}
END_TEST

/* ---- writing ----------------------------------------------------------------------------------------------------- */

START_TEST(writes)
{
    for (int indent = 0; indent <= 2; indent += 2) {
        tn_json_writer *w = tn_json_writer_new(indent);
        for (int round = 0; round < 2; round++) { /* a cleared writer is as new */
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
                text,
                indent
                    ? "{\n  \"model_type\": \"b\\\"\\\\\\n\\u0001\\u001f\xc3\xa9\",\n  \"sizes\": [\n"
                      "    -9223372036854775808,\n    18446744073709551615,\n    0.1,\n    0.1,\n    null\n  ],\n"
                      "  \"empty\": {},\n  \"none\": [],\n  \"yes\": true,\n  \"no\": false,\n  \"nul\": \"a\\u0000b\"\n}"
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
END_TEST

/* A refused call changes nothing: what is right afterwards is written as if it had not been. */
START_TEST(writer_refuses)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_text(w, NULL);
    says(TN_ESTATE, "tn_json_text: nothing was written");
    tn_json_close(w);
    says(TN_ESTATE, "tn_json_close: no array or object is open");
    tn_json_put_i64(w, "a", 1);
    says(TN_EINVAL, "tn_json_put_i64: the key 'a' is given, but only values in an object have keys; give NULL");
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, NULL, 1);
    says(TN_EINVAL, "tn_json_put_i64: a value in an object needs a key, this one has NULL");
    tn_json_put_double(w, "loss", NAN);
    says(TN_EINVAL, "tn_json_put_double: 'loss' is nan, for which JSON has no word; leave it out or write null");
    tn_json_put_float(w, "loss", -INFINITY);
    says(TN_EINVAL, "tn_json_put_float: 'loss' is -inf, for which JSON has no word; leave it out or write null");
    tn_json_put_string(w, "s", "ab\xff");
    says(TN_EFORMAT, "tn_json_put_string: the string 'ab\\xff' is not valid UTF-8 at its byte 2");
    tn_json_put_string(w, "\xc3", "x");
    says(TN_EFORMAT, "tn_json_put_string: the key '\\xc3' is not valid UTF-8 at its byte 0");
    tn_json_put_string(w, "s", NULL);
    says(TN_EINVAL, "tn_json_put_string: the string is NULL; tn_json_put_null writes null");
    tn_json_put(w, "v", NULL);
    says(TN_EINVAL, "tn_json_put: the value is NULL; tn_json_put_null writes null");
    tn_json_put_null(w, "loss");
    tn_json_text(w, NULL);
    says(TN_ESTATE, "tn_json_text: 1 arrays or objects are still open");
    ck_assert_int_eq(tn_json_save(w, tn_test_file("none.json")), TN_ESTATE);
    tn_clear_error();
    tn_json_close(w);
    ck_assert_str_eq(tn_json_text(w, NULL), "{\"loss\":null}");
    tn_json_put_null(w, NULL);
    says(TN_ESTATE, "tn_json_put_null: the text is complete already");
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
    ck_assert_ptr_null(tn_json_text(w, NULL)); /* asking is not writing: no gap */
    tn_clear_error();
    ck_assert_str_eq(tn_json_text(w, NULL), "2");

    /* as deep as it gets */
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
    ck_assert_int_eq(tn_json_put_null(NULL, NULL), TN_EINVAL);
    says(TN_EINVAL, "tn_json_put_null: the writer is NULL");
    ck_assert_ptr_null(tn_json_text(NULL, NULL));
    tn_clear_error();
}
END_TEST

/* Random trees, written, read and written again. */
static void put_random(tn_json_writer *w, bool member, int depth, int *left)
{
    char key[16];
    snprintf(key, sizeof key, "k%d", --*left);
    const char *k = member ? key : NULL;
    switch (depth > 12 || *left < 0 ? rnd() % 6 : rnd() % 9) {
    case 0: tn_json_put_null(w, k); return;
    case 1: tn_json_put_bool(w, k, rnd() % 2); return;
    case 2: tn_json_put_i64(w, k, (int64_t)(rnd() >> rnd() % 64)); return;
    case 3: tn_json_put_u64(w, k, rnd()); return;
    case 4: tn_json_put_double(w, k, (double)(int64_t)rnd() * ldexp(1, (int)(rnd() % 1900) - 1000)); return;
    case 5: {
        char     s[64];
        int      n = 0;
        uint32_t c;
        while (n < 50 && rnd() % 8) {
            do c = (uint32_t)(rnd() >> rnd() % 40) % 0x110000;
            while (c >= 0xd800 && c <= 0xdfff);
            n += encode(c, s + n);
        }
        tn_json_put_bytes(w, k, s, (size_t)n);
        return;
    }
    default: break;
    }
    bool object = rnd() % 2;
    if (object) tn_json_open_object(w, k);
    else tn_json_open_array(w, k);
    for (int i = (int)(rnd() % 20); i > 0; i--) put_random(w, object, depth + 1, left);
    tn_json_close(w);
}

START_TEST(random_trees)
{
    tn_json_writer *w = tn_json_writer_new(0), *indented = tn_json_writer_new(3);
    for (int i = 0; i < (small() ? 20 : 500); i++) {
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
        char *again = rewritten(v2, 0);
        ck_assert_str_eq(again, text);
        free(again);
        tn_json_free(v);
        tn_json_free(v2);
    }
    tn_json_writer_free(w);
    tn_json_writer_free(indented);
}
END_TEST

START_TEST(files)
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
END_TEST

/* ---- memory that fails ------------------------------------------------------------------------------------------- */

START_TEST(memory_fails)
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
            if (failed && v && w) { /* the same writer goes on */
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
                ck_assert_int_gt(at, 5); /* it took more than this */
                break;
            }
        }
    tn_faulty_memory_end();
    free(expected);
}
END_TEST

/* A tree that cannot be copied whole is not copied at all. */
START_TEST(a_copy_is_whole)
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
END_TEST

#define ROWS(x) ((int)(sizeof(x) / sizeof *(x)))

int main(void)
{
    Suite *s = suite_create("json");
    TCase *c = tn_tcase(s, "reader");
    tcase_add_loop_test(c, accepts, 0, ROWS(accepted));
    tcase_add_loop_test(c, refuses, 0, ROWS(refused));
    tcase_add_test(c, nul_is_no_end);
    tcase_add_test(c, every_truncation);
    tcase_add_test(c, values);
    tcase_add_test(c, wrong_types);
    tcase_add_test(c, limits);
    tcase_add_test(c, a_million_deep);
    tcase_add_test(c, a_million_keys);
    tcase_add_test(c, keys_of_all_sizes);
    c = tn_tcase(s, "text");
    tcase_add_test(c, every_code_point);
    tcase_add_test(c, every_short_sequence);
    tcase_add_test(c, doubles_read_and_written);
    tcase_add_test(c, hard_numbers);
    tcase_add_test(c, written_as_expected);
    tcase_add_test(c, locale_changes_nothing);
    c = tn_tcase(s, "writer");
    tcase_add_test(c, writes);
    tcase_add_test(c, writer_refuses);
    tcase_add_test(c, random_trees);
    tcase_add_test(c, files);
    c = tn_tcase(s, "memory");
    tcase_add_test(c, memory_fails);
    tcase_add_test(c, a_copy_is_whole);
    return tn_check_main(s);
}
