/* test_safetensors_errors.c — violations of the safetensors format are errors that name the position. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/file_bytes.h"

#include "core/core.h"
#include "tests/common/layouts.h"

static void refused(const void *data, size_t n, tn_status code, const char *part)
{
    void           *copy;
    tn_safetensors *f = open_exact(data, n, &copy);
    if (f && tn_error() == TN_OK) ck_abort_msg("accepted: %.*s", (int)(n - 8), (const char *)data + 8);
    tn_safetensors_close(f);
    free(copy);
    ck_error_has(code, part);
}

/* ---- invalid files ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *header;
    int         data;
    tn_status   status;
    const char *says;
} malformed[] = {
    /* not an object */
    {"", 0, F, "header: line 1, column 1 (byte 8): the text ends, expected a value"},
    {"   ", 0, F, "(byte 11): the text ends, expected a value"},
    {"[]", 0, F, "(byte 8): the header must be an object, '{'"},
    {"1", 0, F, "the header must be an object"},
    {"null", 0, F, "the header must be an object"},
    {"\"a\"", 0, F, "the header must be an object"},
    {"{}x", 0, F, "(byte 10): found 'x', expected nothing after the value"},
    {"{}{}", 0, F, "found '{', expected nothing after the value"},
    {"{},", 0, F, "expected nothing after the value"},
    {"{} //", 0, F, "JSON has no comments"},
    /* not JSON */
    {"{", 0, F, "the text ends, expected a key in double quotes or '}'"},
    {"}", 0, F, "found '}', expected a value"},
    {"{\"a\"}", 0, F, "':' must follow the key 'a'"},
    {"{\"a\":}", 0, F, "found '}', expected a value"},
    {"{\"a\":{}", 0, F, "its field 'dtype' is missing"},
    {"{'a':1}", 0, F, "strings need double quotes"},
    {"{a:1}", 0, F, "found 'a', expected a key in double quotes"},
    {"{,}", 0, F, "found ','"},
    {"{" E("a", "F32", "[2]", "[0,8]") ",}", 8, F, "a comma must not precede a closing bracket"},
    {"{" E("a", "F32", "[2,]", "[0,8]") "}", 8, F, "a comma must not precede a closing bracket"},
    {"{" E("a", "F32", "[2]", "[0,8,]") "}", 8, F, "a comma must not precede a closing bracket"},
    {"{" E("a", "F32", "[2]", "[0 8]") "}", 8, F, "found '8', expected ',' or ']'"},
    {"{" E("a", "F32", "[2", "[0,8]") "}", 8, F, "(byte 39): shape must contain only integers"},
    {"{" E("a", "F32", "[2]", "[0,8]"), 8, F, "the text ends, expected ',' or '}'"},
    {"{\"a\":NaN}", 0, F, "JSON has no NaN"},
    {"{\"a\":\"\\x\"}", 0, F, "unknown escape: a backslash before 'x'"},
    {"{\"\\ud800\":{}}", 0, F, "half of a surrogate pair"},
    {"{\"a\nb\":{}}", 0, F, "control character 0x0a"},
    {"{\"a\":{\"dtype\":\"F32", 0, F, "unterminated string"},
    {"{\"\xff\":{}}", 0, F, "(byte 10): the byte 0xff is not valid UTF-8"},
    {"{\"a\xc0\x80\":{}}", 0, F, "not valid UTF-8"},
    {"{\"\xed\xa0\x80\":{}}", 0, F, "not valid UTF-8"},
    {"\xef\xbb\xbf{}", 0, F, "byte order mark"},
    /* names */
    {"{\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F,
     "a tensor's name of 0 bytes, expected 1 to 1024"},
    {"{\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F, "a key with \\u0000 in it"},
    {"{\"a\\n\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F, "has a control character"},
    {"{\"\\u001b[31m\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F, "has a control character"},
    {"{\"a\x7f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F,
     "the tensor's name 'a\\x7f' has a control character"},
    /* duplicate keys */
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("a", "F32", "[1]", "[4,8]") "}", 8, F,
     "tensor 'a', at byte 9 and at byte 62"},
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("a", "F32", "[1]", "[0,4]") "}", 4, F, "duplicate tensor 'a'"},
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("\\u0061", "F32", "[1]", "[4,8]") "}", 8, F, "duplicate tensor 'a'"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, F, "duplicate key '__metadata__'"},
    {"{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, F, "duplicate key '__metadata__'"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, F, "metadata 'k', at byte 25 and at byte 33"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F,
     "duplicate field 'dtype'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F, "duplicate field 'shape'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"data_offsets\":[0,8]}}", 8, F,
     "duplicate field 'data_offsets'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"\\u0064type\":\"F32\"}}", 8, F,
     "duplicate field 'dtype'"},
    /* metadata */
    {"{\"__metadata__\":null}", 0, F, "(byte 24): __metadata__ must be an object of strings"},
    {"{\"__metadata__\":[]}", 0, F, "__metadata__ must be an object of strings"},
    {"{\"__metadata__\":\"pt\"}", 0, F, "__metadata__ must be an object of strings"},
    {"{\"__metadata__\":{\"a\":1}}", 0, F, "(byte 29): __metadata__ must be an object of strings"},
    {"{\"__metadata__\":{\"a\":null}}", 0, F, "__metadata__ must be an object of strings"},
    {"{\"__metadata__\":{\"a\":true}}", 0, F, "__metadata__ must be an object of strings"},
    {"{\"__metadata__\":{\"a\":[]}}", 0, F, "__metadata__ must be an object of strings"},
    {"{\"__metadata__\":{\"a\":{}}}", 0, F, "__metadata__ must be an object of strings"},
    {"{\"__metadata__\":{\"a\":\"x\\u0000y\"}}", 0, F, "metadata with \\u0000 in it is not supported"},
    {"{\"__metadata__\":{\"a\\u0000\":\"x\"}}", 0, F, "a key with \\u0000 in it"},
    {"{\"__metadata__\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F,
     "__metadata__ must be an object of strings"},
    /* entries */
    {"{\"a\":1}", 0, F, "tensor 'a' (byte 13): its entry must be an object"},
    {"{\"a\":null}", 0, F, "its entry must be an object"},
    {"{\"a\":[]}", 0, F, "its entry must be an object"},
    {"{\"a\":\"F32\"}", 0, F, "its entry must be an object"},
    {"{\"a\":{}}", 0, F, "tensor 'a' (byte 9): its field 'dtype' is missing"},
    {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F, "its field 'dtype' is missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, F, "its field 'shape' is missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, F, "its field 'data_offsets' is missing"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":0}}", 8, F,
     "tensor 'a' has the unknown field 'x', expected dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"offsets\":[0,8]}}", 8, F, "has the unknown field 'offsets'"},
    {"{\"a\":{\"Dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F, "has the unknown field 'Dtype'"},
    {"{\"a\":{\"\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F, "has the unknown field ''"},
    {"{\"a\":{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}}", 8, F, "has the unknown field 'b'"},
    /* dtype */
    {T("1", "[2]", "[0,8]"), 8, F, "dtype must be a string such as \"F32\""},
    {T("null", "[2]", "[0,8]"), 8, F, "dtype must be a string"},
    {T("[\"F32\"]", "[2]", "[0,8]"), 8, F, "dtype must be a string"},
    {T("\"\"", "[2]", "[0,8]"), 8, F, "the dtype '' is unknown"},
    {T("\"f32\"", "[2]", "[0,8]"), 8, F, "the dtype 'f32' is unknown"},
    {T("\"F32 \"", "[2]", "[0,8]"), 8, F, "the dtype 'F32 ' is unknown"},
    {T("\"F128\"", "[2]", "[0,8]"), 8, F, "the dtype 'F128' is unknown"},
    {T("\"F32\\u0000\"", "[2]", "[0,8]"), 8, F, "is unknown"},
    {T("\"torch.float32\"", "[2]", "[0,8]"), 8, F, "the dtype 'torch.float32' is unknown"},
    {T("\"A very long name of a type, which is none\"", "[2]", "[0,8]"), 8, F, "is unknown"},
    /* shape */
    {T("\"F32\"", "2", "[0,8]"), 8, F, "shape must be an array of integers"},
    {T("\"F32\"", "null", "[0,8]"), 8, F, "shape must be an array of integers"},
    {T("\"F32\"", "{}", "[0,8]"), 8, F, "shape must be an array of integers"},
    {T("\"F32\"", "\"2\"", "[0,8]"), 8, F, "shape must be an array of integers"},
    {T("\"F32\"", "[\"2\"]", "[0,8]"), 8, F, "shape must contain only integers"},
    {T("\"F32\"", "[2.0]", "[0,8]"), 8, F, "shape must contain only integers"},
    {T("\"F32\"", "[2e0]", "[0,8]"), 8, F, "shape must contain only integers"},
    {T("\"F32\"", "[null]", "[0,8]"), 8, F, "shape must contain only integers"},
    {T("\"F32\"", "[true]", "[0,8]"), 8, F, "shape must contain only integers"},
    {T("\"F32\"", "[[2]]", "[0,8]"), 8, F, "nested deeper than the limit of 3"},
    {T("\"F32\"", "[-2]", "[0,8]"), 8, F, "shape has a negative integer"},
    {T("\"F32\"", "[-0]", "[0,0]"), 0, F, "shape has a negative integer"},
    {T("\"F32\"", "[02]", "[0,8]"), 8, F, "a number must not start with 0"},
    {T("\"F32\"", "[+2]", "[0,8]"), 8, F, "a number starts with a digit or '-'"},
    {T("\"F32\"", "[281474976710656]", "[0,8]"), 8, F, "shape has 281474976710656, the limit is 281474976710655"},
    {T("\"F32\"", "[18446744073709551614,2]", "[0,16]"), 16, F, "shape has 18446744073709551614, the limit is"},
    {T("\"F32\"", "[18446744073709551618]", "[0,8]"), 8, F, "shape has an integer that does not fit in 64 bits"},
    {T("\"F32\"", "[99999999999999999999999999999999]", "[0,8]"), 8, F, "does not fit in 64 bits"},
    {T("\"F32\"", "[65536,281474976710655]", "[0,8]"), 8, F,
     "tensor 'a' (byte 9): shape [65536, 281474976710655] of F32 is too large"},
    {T("\"U8\"", "[281474976710655,281474976710655]", "[0,8]"), 8, F, "is too large: its bits do not fit in 63 bits"},
    {T("\"U8\"", "[281474976710655,281474976710655,0]", "[0,0]"), 0, F, "is too large"},
    {T("\"U8\"", "[0,281474976710655,281474976710655]", "[0,0]"), 0, F, "is too large"},
    {T("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, U, "shape has more than 8 dims, which is Tenon's limit"},
    /* data_offsets */
    {T("\"F32\"", "[2]", "8"), 8, F, "data_offsets must be an array of integers"},
    {T("\"F32\"", "[2]", "null"), 8, F, "data_offsets must be an array of integers"},
    {T("\"F32\"", "[2]", "{\"begin\":0,\"end\":8}"), 8, F, "data_offsets must be an array of integers"},
    {T("\"F32\"", "[2]", "[]"), 8, F, "data_offsets must contain two integers"},
    {T("\"F32\"", "[2]", "[8]"), 8, F, "data_offsets must contain two integers"},
    {T("\"F32\"", "[2]", "[0,8,8]"), 8, F, "data_offsets must contain two integers"},
    {T("\"F32\"", "[2]", "[0,\"8\"]"), 8, F, "data_offsets must contain only integers"},
    {T("\"F32\"", "[2]", "[0,8.0]"), 8, F, "data_offsets must contain only integers"},
    {T("\"F32\"", "[2]", "[0.0,8]"), 8, F, "data_offsets must contain only integers"},
    {T("\"F32\"", "[2]", "[0,8e0]"), 8, F, "data_offsets must contain only integers"},
    {T("\"F32\"", "[2]", "[0,1E1]"), 8, F, "data_offsets must contain only integers"},
    {T("\"F32\"", "[2]", "[-8,0]"), 8, F, "data_offsets has a negative integer"},
    {T("\"F32\"", "[2]", "[0,9223372036854775808]"), 8, F,
     "data_offsets has 9223372036854775808, the limit is 9223372036854775807"},
    {T("\"F32\"", "[2]", "[0,18446744073709551624]"), 8, F, "data_offsets has an integer that does not fit in 64 bits"},
    {T("\"F32\"", "[2]", "[8,0]"), 8, F, "data_offsets [8, 0] end before they start"},
    {T("\"F32\"", "[2]", "[9223372036854775807,0]"), 8, F, "end before they start"},
    {T("\"F32\"", "[2]", "[0,7]"), 7, F, "tensor 'a' (byte 9): data_offsets [0, 7] hold 7 bytes, F32 [2] needs 8"},
    {T("\"F32\"", "[2]", "[0,9]"), 9, F, "data_offsets [0, 9] hold 9 bytes, F32 [2] needs 8"},
    {T("\"F32\"", "[2]", "[0,0]"), 0, F, "hold 0 bytes, F32 [2] needs 8"},
    {T("\"F32\"", "[]", "[0,0]"), 0, F, "hold 0 bytes, F32 [] needs 4"},
    {T("\"F32\"", "[0]", "[0,4]"), 4, F, "hold 4 bytes, F32 [0] needs 0"},
    {T("\"BOOL\"", "[2]", "[0,16]"), 16, F, "BOOL [2] needs 2"},
    {T("\"F4\"", "[3]", "[0,2]"), 2, F, "shape [3] of F4 does not fill whole bytes"},
    {T("\"F6_E2M3\"", "[2]", "[0,2]"), 2, F, "shape [2] of F6_E2M3 does not fill whole bytes"},
    {T("\"F6_E3M2\"", "[4]", "[0,4]"), 4, F, "hold 4 bytes, F6_E3M2 [4] needs 3"},
    {T("\"C64\"", "[2]", "[0,8]"), 8, F, "C64 [2] needs 16"},
    /* offsets of tensors in the file */
    {S, 7, F, "its tensors have 8 bytes, but 7 follow the header: the file is truncated"},
    {S, 0, F, "its tensors have 8 bytes, but 0 follow the header: the file is truncated"},
    {S, 9, F, "its tensors have 8 bytes, but 9 follow the header: there are unexpected bytes"},
    {"{}", 1, F, "its tensors have 0 bytes, but 1 follow the header: there are unexpected bytes"},
    {T("\"F32\"", "[2]", "[4,12]"), 12, F, "its data starts at 4, expected 0: there is a gap"},
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("b", "F32", "[1]", "[8,12]") "}", 12, F,
     "tensor 'b' (byte 62): its data starts at 8, expected 4: there is a gap"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("b", "F32", "[2]", "[4,12]") "}", 12, F,
     "tensor 'b' (byte 62): its data starts at 4, expected 8: it overlaps the previous tensor"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("b", "F32", "[2]", "[0,8]") "}", 8, F, "it overlaps the previous tensor"},
    {"{" E("a", "F32", "[3]", "[0,12]") "," E("b", "F32", "[1]", "[4,8]") "}", 12, F,
     "it overlaps the previous tensor"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("z", "F32", "[0]", "[4,4]") "}", 8, F, "it overlaps the previous tensor"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("z", "F32", "[0]", "[9,9]") "}", 8, F, "there is a gap"},
    {"{" E("b", "F32", "[1]", "[8,12]") "," E("a", "F32", "[1]", "[0,4]") "}", 12, F,
     "tensor 'b' (byte 9): its data starts at 8"},
    {T("\"U8\"", "[281474976710655]", "[0,281474976710655]"), 8, F,
     "its tensors have 281474976710655 bytes, but 8 follow the header: the file is truncated"},
    /* valid, but not loaded */
    {T("\"F8_E5M2\"", "[2]", "[0,2]"), 2, U, "tensor 'a' is of type F8_E5M2, which Tenon does not load"},
    {T("\"F8_E4M3\"", "[2]", "[0,2]"), 2, U, "tensor 'a' is of type F8_E4M3"},
    {T("\"F8_E8M0\"", "[2]", "[0,2]"), 2, U, "tensor 'a' is of type F8_E8M0"},
    {T("\"F8_E4M3FNUZ\"", "[2]", "[0,2]"), 2, U, "tensor 'a' is of type F8_E4M3FNUZ"},
    {T("\"F8_E5M2FNUZ\"", "[2]", "[0,2]"), 2, U, "tensor 'a' is of type F8_E5M2FNUZ"},
    {T("\"F4\"", "[2]", "[0,1]"), 1, U, "tensor 'a' is of type F4"},
    {T("\"F6_E2M3\"", "[4]", "[0,3]"), 3, U, "tensor 'a' is of type F6_E2M3"},
    {T("\"F6_E3M2\"", "[4]", "[0,3]"), 3, U, "tensor 'a' is of type F6_E3M2"},
    {T("\"C64\"", "[1]", "[0,8]"), 8, U, "tensor 'a' is of type C64"},
};

TEST_ROWS(refuses, malformed)
{
    const bytes *f = file(malformed[_i].header, malformed[_i].data);
    refused(f->data, f->n, malformed[_i].status, malformed[_i].says);
}

TEST(refuses_lengths)
{
    static const struct {
        const char *text;
        size_t      n;
        const char *says;
    } rows[] = {{"", 0, "it has 0 bytes, too few for a safetensors file"},
                {"\x02\0\0\0\0\0\0", 7, "it has 7 bytes, too few for a safetensors file"},
                {"\x02\0\0\0\0\0\0\0", 8, "byte 0: a header of 2 bytes, but only 0 follow"},
                {"\x03\0\0\0\0\0\0\0{}", 10, "byte 0: a header of 3 bytes, but only 2 follow"},
                {"\0\0\0\0\0\0\0\0", 8, "the text ends, expected a value"},
                {"\0\0\0\0\0\0\0\0{}", 10, "the text ends, expected a value"},
                {"\x01\xe1\xf5\x05\0\0\0\0{}", 10,
                 "a header of 100000001 bytes, the limit is 100000000: not a safetensors file, or a damaged one"},
                {"\0\xe1\xf5\x05\0\0\0\0{}", 10, "a header of 100000000 bytes, but only 2 follow"},
                {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551615 bytes, the limit is"},
                {"\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551608 bytes, the limit is"},
                {"\0\0\0\0\0\0\0\x80{}", 10, "a header of 9223372036854775808 bytes, the limit is"},
                {"PK\x03\x04zip file", 12, "not a safetensors file"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) refused(rows[i].text, rows[i].n, F, rows[i].says);
    ck_refused_has(tn_safetensors_read(NULL, 3), TN_EINVAL, "tn_safetensors_read: data is NULL, but bytes is 3");
}

TEST(refuses_values)
{
    bytes *f = (bytes *)(uintptr_t)file(T("\"BOOL\"", "[4]", "[0,4]"), 4);
    f->data[f->n - 2] = 2;
    char part[100];
    snprintf(part, sizeof part, "tensor 'a': the bool at byte %zu is 2, expected 0 or 1", f->n - 2);
    refused(f->data, f->n, F, part);
    f = (bytes *)(uintptr_t)file(T("\"U64\"", "[2]", "[0,16]"), 16);
    f->data[f->n - 1] = 0x80;
    snprintf(part, sizeof part, "tensor 'a': the 64-bit integer at byte %zu is beyond 2^63 - 1", f->n - 8);
    refused(f->data, f->n, U, part);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

TEST(names_of_all_lengths)
{
    for (size_t n = 1022; n <= 1026; n++) {
        char *header = malloc(2000), *name = malloc(n + 1);
        memset(name, 'n', n), name[n] = 0;
        snprintf(header, 2000, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", name);
        const bytes    *f = file(header, 1);
        tn_safetensors *s = tn_safetensors_read(f->data, f->n);
        ck_assert_int_eq(s != NULL, n <= 1024);
        if (s) ck_assert_ptr_nonnull(tn_safetensors_get(s, name));
        tn_safetensors_close(s);
        if (n > 1024) ck_error_has(F, "a tensor's name of 10");
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        ck_assert_int_eq(tn_safetensors_put(w, name, tn_ones(TN_SHAPE(1))), n <= 1024 ? TN_OK : TN_EINVAL);
        if (n > 1024) ck_error_has(TN_EINVAL, "must have 1 to 1024 bytes");
        tn_safetensors_writer_free(w);
        free(header), free(name);
    }
}

/* n entries that are empty tensors, or n metadata pairs; the caller frees it. */
static unsigned char *many(int n, bool pairs, int value_bytes, size_t *size)
{
    char *text = malloc(64 + (size_t)n * (size_t)(80 + value_bytes)), *p = text + 8;
    p += sprintf(p, pairs ? "{\"__metadata__\":{" : "{");
    for (int i = 0; i < n; i++) {
        if (pairs) p += sprintf(p, "%s\"k%d\":\"%*s\"", i ? "," : "", i, value_bytes, "");
        else
            p += sprintf(p, "%s\"layer.%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "", i);
    }
    p += sprintf(p, pairs ? "}}" : "}");
    *size = (size_t)(p - text);
    for (int i = 0; i < 8; i++) text[i] = (char)((*size - 8) >> 8 * i);
    return (unsigned char *)text;
}

TEST(as_many_as_allowed)
{
    size_t n;
    for (int i = 0; i < 2; i++) {
        unsigned char  *f = many(10000 + i, true, 1, &n);
        tn_safetensors *s = tn_safetensors_read(f, n);
        ck_assert_int_eq(s != NULL, i == 0);
        ck_assert_int_eq(tn_safetensors_metadata_count(s), i ? 0 : 10000);
        ck_assert(i || !strcmp(tn_safetensors_metadata(s, "k9999"), " "));
        tn_safetensors_close(s);
        if (i) ck_error_has(F, "more metadata than the limit of 10000 pairs");
        free(f);
        f = many(15 + 2 * i, true, 1 << 20, &n); /* 16 MiB of values alone exceed the limit */
        s = tn_safetensors_read(f, n);
        ck_assert_int_eq(s != NULL, i == 0);
        tn_safetensors_close(s);
        if (i) ck_error_has(F, "more metadata than the limit of 16777216 bytes");
        free(f);
    }
    for (int i = tn_test_slow() ? 2 : 0; i < 2; i++) {
        unsigned char  *f = many(1000000 + i, false, 0, &n);
        tn_safetensors *s = tn_safetensors_read(f, n);
        ck_assert_int_eq(s != NULL, i == 0);
        ck_assert_int_eq(tn_safetensors_count(s), i ? 0 : 1000000);
        ck_assert_int_eq(tn_safetensors_find(s, "layer.567890"), i ? -1 : 567890);
        if (s) {
            ck_refused_has(tn_safetensors_get(s, "layer.1x"), TN_EINDEX,
                           "no tensor 'layer.1x' among its 1000000; did you mean 'layer.1'?");
        }
        tn_safetensors_close(s);
        if (i) ck_error_has(F, "more tensors than the limit of 1000000");
        free(f);
    }
}

TEST(every_truncation)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int i = 0; i < TN_DTYPES; i++) tn_safetensors_put(w, tn_dtype_name((tn_dtype)i), tn__sample((tn_dtype)i, 2));
    tn_tensor *f = tn_safetensors_write(w);
    for (int64_t i = 0; i < tn_numel(f); i++) {
        void           *copy;
        tn_safetensors *s = open_exact(tn_data(f), (size_t)i, &copy);
        ck_refused_code(s, TN_EFORMAT);
        free(copy);
    }
    tn_safetensors_writer_free(w);
}

TEST(every_bit_of_the_header)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "a", tn__sample(TN_F32, 1));
    tn_safetensors_put(w, "b", tn__sample(TN_BOOL, 2));
    tn_tensor     *f = tn_safetensors_write(w);
    unsigned char *p = tn_data_mut(f);
    int            refusals = 0, n = 8 * (8 + p[0] + 256 * p[1]);
    for (int i = 0; i < n; i++) {
        void *copy;
        p[i / 8] ^= (unsigned char)(1 << i % 8);
        tn_scope        scope = tn_scope_begin();
        tn_safetensors *s = open_exact(p, (size_t)tn_numel(f), &copy);
        if (!s) ck_assert_int_ne(tn_error(), TN_OK);
        refusals += tn_error() != TN_OK;
        tn_clear_error();
        tn_safetensors_close(s);
        tn_scope_end(scope);
        free(copy);
        p[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    ck_assert_int_gt(refusals, n / 2);
    tn_safetensors_writer_free(w);
}
