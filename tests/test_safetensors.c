/* test_safetensors.c — safetensors files: what the reference writes is read, what is written is what it writes, and
 * what breaks the format is refused in words that say where. */
#define _GNU_SOURCE
#include "tests/check_main.h"

#include "core/core.h"
#include "tests/faults.h"
#include "tests/layouts.h"
#include <locale.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    size_t        n;
    unsigned char data[1 << 16];
} bytes;

/* A file with this header, exactly as given, and n bytes 0, 1, 0, 1 … */
static const bytes *file(const char *header, int n)
{
    static bytes f;
    size_t       len = strlen(header);
    for (int i = 0; i < 8; i++) f.data[i] = (unsigned char)(len >> 8 * i);
    memcpy(f.data + 8, header, len);
    f.n = 8 + len;
    for (int i = 0; i < n; i++) f.data[f.n++] = i & 1;
    return &f;
}

static void says(tn_status code, const char *part)
{
    ck_assert_msg(tn_error() == code && strstr(tn_error_message(), part), "\n  says %s: %s\n  not  %s: %s",
                  tn_status_name(tn_error()), tn_error_message(), tn_status_name(code), part);
    tn_clear_error();
}

/* Opens a copy of exactly n bytes, so that a sanitizer sees a byte too many; all tensors are read. */
static tn_safetensors *open_exact(const void *data, size_t n, void **copy)
{
    *copy = malloc(n ? n : 1);
    memcpy(*copy, data, n);
    tn_safetensors *f = tn_safetensors_read(*copy, n);
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) tn_safetensors_get_at(f, i);
    return f;
}
static void refused(const void *data, size_t n, tn_status code, const char *part)
{
    void           *copy;
    tn_safetensors *f = open_exact(data, n, &copy);
    if (f && tn_error() == TN_OK) ck_abort_msg("accepted: %.*s", (int)(n - 8), (const char *)data + 8);
    tn_safetensors_close(f);
    free(copy);
    says(code, part);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

#define S "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define T(dtype, shape, offsets) "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define E(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F TN_EFORMAT
#define U TN_EUNSUPPORTED
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
    {"{'a':1}", 0, F, "strings stand in double quotes"},
    {"{a:1}", 0, F, "found 'a', expected a key in double quotes"},
    {"{,}", 0, F, "found ','"},
    {"{" E("a", "F32", "[2]", "[0,8]") ",}", 8, F, "no comma stands before a closing bracket"},
    {"{" E("a", "F32", "[2,]", "[0,8]") "}", 8, F, "no comma stands before a closing bracket"},
    {"{" E("a", "F32", "[2]", "[0,8,]") "}", 8, F, "no comma stands before a closing bracket"},
    {"{" E("a", "F32", "[2]", "[0 8]") "}", 8, F, "found '8', expected ',' or ']'"},
    {"{" E("a", "F32", "[2", "[0,8]") "}", 8, F, "(byte 39): shape must hold integers alone"},
    {"{" E("a", "F32", "[2]", "[0,8]"), 8, F, "the text ends, expected ',' or '}'"},
    {"{\"a\":NaN}", 0, F, "JSON has no NaN"},
    {"{\"a\":\"\\x\"}", 0, F, "a backslash before 'x' means nothing"},
    {"{\"\\ud800\":{}}", 0, F, "half of a surrogate pair"},
    {"{\"a\nb\":{}}", 0, F, "the control character 0x0a"},
    {"{\"a\":{\"dtype\":\"F32", 0, F, "this string does not end"},
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
    /* keys twice */
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("a", "F32", "[1]", "[4,8]") "}", 8, F,
     "tensor 'a' is there twice, at byte 9 and at byte 62"},
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("a", "F32", "[1]", "[0,4]") "}", 4, F, "tensor 'a' is there twice"},
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("\\u0061", "F32", "[1]", "[4,8]") "}", 8, F, "tensor 'a' is there twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, F, "the key '__metadata__' is there twice"},
    {"{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, F, "the key '__metadata__' is there twice"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, F, "metadata 'k' is there twice, at byte 25 and at byte 33"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F,
     "the field 'dtype' is there twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8, F,
     "the field 'shape' is there twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"data_offsets\":[0,8]}}", 8, F,
     "the field 'data_offsets' is there twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"\\u0064type\":\"F32\"}}", 8, F,
     "the field 'dtype' is there twice"},
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
    {T("\"F32\"", "[\"2\"]", "[0,8]"), 8, F, "shape must hold integers alone"},
    {T("\"F32\"", "[2.0]", "[0,8]"), 8, F, "shape must hold integers alone"},
    {T("\"F32\"", "[2e0]", "[0,8]"), 8, F, "shape must hold integers alone"},
    {T("\"F32\"", "[null]", "[0,8]"), 8, F, "shape must hold integers alone"},
    {T("\"F32\"", "[true]", "[0,8]"), 8, F, "shape must hold integers alone"},
    {T("\"F32\"", "[[2]]", "[0,8]"), 8, F, "nested deeper than the limit of 3"},
    {T("\"F32\"", "[-2]", "[0,8]"), 8, F, "shape has a negative integer"},
    {T("\"F32\"", "[-0]", "[0,0]"), 0, F, "shape has a negative integer"},
    {T("\"F32\"", "[02]", "[0,8]"), 8, F, "a number must not begin with 0"},
    {T("\"F32\"", "[+2]", "[0,8]"), 8, F, "a number begins with a digit or '-'"},
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
    {T("\"F32\"", "[2]", "[]"), 8, F, "data_offsets must hold two integers"},
    {T("\"F32\"", "[2]", "[8]"), 8, F, "data_offsets must hold two integers"},
    {T("\"F32\"", "[2]", "[0,8,8]"), 8, F, "data_offsets must hold two integers"},
    {T("\"F32\"", "[2]", "[0,\"8\"]"), 8, F, "data_offsets must hold integers alone"},
    {T("\"F32\"", "[2]", "[0,8.0]"), 8, F, "data_offsets must hold integers alone"},
    {T("\"F32\"", "[2]", "[0.0,8]"), 8, F, "data_offsets must hold integers alone"},
    {T("\"F32\"", "[2]", "[0,8e0]"), 8, F, "data_offsets must hold integers alone"},
    {T("\"F32\"", "[2]", "[0,1E1]"), 8, F, "data_offsets must hold integers alone"},
    {T("\"F32\"", "[2]", "[-8,0]"), 8, F, "data_offsets has a negative integer"},
    {T("\"F32\"", "[2]", "[0,9223372036854775808]"), 8, F,
     "data_offsets has 9223372036854775808, the limit is 9223372036854775807"},
    {T("\"F32\"", "[2]", "[0,18446744073709551624]"), 8, F, "data_offsets has an integer that does not fit in 64 bits"},
    {T("\"F32\"", "[2]", "[8,0]"), 8, F, "data_offsets [8, 0] end before they begin"},
    {T("\"F32\"", "[2]", "[9223372036854775807,0]"), 8, F, "end before they begin"},
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
    /* how tensors lie in the file */
    {S, 7, F, "its tensors have 8 bytes, but 7 follow the header: the file is cut off"},
    {S, 0, F, "its tensors have 8 bytes, but 0 follow the header: the file is cut off"},
    {S, 9, F, "its tensors have 8 bytes, but 9 follow the header: there are bytes left over"},
    {"{}", 1, F, "its tensors have 0 bytes, but 1 follow the header: there are bytes left over"},
    {T("\"F32\"", "[2]", "[4,12]"), 12, F, "its data begins at 4, expected 0: there is a gap"},
    {"{" E("a", "F32", "[1]", "[0,4]") "," E("b", "F32", "[1]", "[8,12]") "}", 12, F,
     "tensor 'b' (byte 62): its data begins at 8, expected 4: there is a gap"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("b", "F32", "[2]", "[4,12]") "}", 12, F,
     "tensor 'b' (byte 62): its data begins at 4, expected 8: it overlaps the tensor before"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("b", "F32", "[2]", "[0,8]") "}", 8, F, "it overlaps the tensor before"},
    {"{" E("a", "F32", "[3]", "[0,12]") "," E("b", "F32", "[1]", "[4,8]") "}", 12, F, "it overlaps the tensor before"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("z", "F32", "[0]", "[4,4]") "}", 8, F, "it overlaps the tensor before"},
    {"{" E("a", "F32", "[2]", "[0,8]") "," E("z", "F32", "[0]", "[9,9]") "}", 8, F, "there is a gap"},
    {"{" E("b", "F32", "[1]", "[8,12]") "," E("a", "F32", "[1]", "[0,4]") "}", 12, F,
     "tensor 'b' (byte 9): its data begins at 8"},
    {T("\"U8\"", "[281474976710655]", "[0,281474976710655]"), 8, F,
     "its tensors have 281474976710655 bytes, but 8 follow the header: the file is cut off"},
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

START_TEST(refuses)
{
    const bytes *f = file(malformed[_i].header, malformed[_i].data);
    refused(f->data, f->n, malformed[_i].status, malformed[_i].says);
}
END_TEST

START_TEST(refuses_lengths)
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
                 "a header of 100000001 bytes, the limit is 100000000; is this a safetensors file?"},
                {"\0\xe1\xf5\x05\0\0\0\0{}", 10, "a header of 100000000 bytes, but only 2 follow"},
                {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551615 bytes, the limit is"},
                {"\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551608 bytes, the limit is"},
                {"\0\0\0\0\0\0\0\x80{}", 10, "a header of 9223372036854775808 bytes, the limit is"},
                {"PK\x03\x04zip file", 12, "is this a safetensors file?"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) refused(rows[i].text, rows[i].n, F, rows[i].says);
    ck_assert_ptr_null(tn_safetensors_read(NULL, 3));
    says(TN_EINVAL, "tn_safetensors_read: data is NULL, but 3 bytes are announced");
}
END_TEST

START_TEST(refuses_values)
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
END_TEST

/* ---- limits ------------------------------------------------------------------------------------------------------ */

START_TEST(names_of_all_lengths)
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
        if (n > 1024) says(F, "a tensor's name of 10");
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        ck_assert_int_eq(tn_safetensors_put(w, name, tn_ones(TN_SHAPE(1))), n <= 1024 ? TN_OK : TN_EINVAL);
        if (n > 1024) says(TN_EINVAL, "must have 1 to 1024 bytes");
        tn_safetensors_writer_free(w);
        free(header), free(name);
    }
}
END_TEST

/* n entries that are empty tensors, or n metadata pairs; to be freed. */
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

START_TEST(as_many_as_allowed)
{
    size_t n;
    for (int i = 0; i < 2; i++) {
        unsigned char  *f = many(10000 + i, true, 1, &n);
        tn_safetensors *s = tn_safetensors_read(f, n);
        ck_assert_int_eq(s != NULL, i == 0);
        ck_assert_int_eq(tn_safetensors_metadata_count(s), i ? 0 : 10000);
        ck_assert(i || !strcmp(tn_safetensors_metadata(s, "k9999"), " "));
        tn_safetensors_close(s);
        if (i) says(F, "more metadata than the limit of 10000 pairs");
        free(f);
        f = many(15 + 2 * i, true, 1 << 20, &n); /* 16 MiB of values alone is over */
        s = tn_safetensors_read(f, n);
        ck_assert_int_eq(s != NULL, i == 0);
        tn_safetensors_close(s);
        if (i) says(F, "more metadata than the limit of 16777216 bytes");
        free(f);
    }
    for (int i = tn_test_slow() ? 2 : 0; i < 2; i++) {
        unsigned char  *f = many(1000000 + i, false, 0, &n);
        tn_safetensors *s = tn_safetensors_read(f, n);
        ck_assert_int_eq(s != NULL, i == 0);
        ck_assert_int_eq(tn_safetensors_count(s), i ? 0 : 1000000);
        ck_assert_int_eq(tn_safetensors_find(s, "layer.567890"), i ? -1 : 567890);
        if (s) {
            ck_assert_ptr_null(tn_safetensors_get(s, "layer.1x"));
            says(TN_EINDEX, "there is no tensor 'layer.1x' among its 1000000; did you mean 'layer.1'?");
        }
        tn_safetensors_close(s);
        if (i) says(F, "more tensors than the limit of 1000000");
        free(f);
    }
}
END_TEST

/* ---- what is accepted -------------------------------------------------------------------------------------------- */

START_TEST(as_others_write_them)
{
    static const struct {
        const char *header;
        int         data, count;
    } rows[] = {
        {"{}", 0, 0},
        {"\t\n{}\r ", 0, 0}, /* the reference accepts white space on both sides */
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"__metadata__\":{\"\":\"\"}}", 0, 0},
        {S, 8, 1},
        {S "          ", 8, 1},
        {"{ \"a\" : { \"data_offsets\" : [ 0 , 8 ] , \"shape\" : [ 2 ] , \"dtype\" : \"F32\" } }", 8, 1},
        {"{\"\\u0061\":{\"\\u0064type\":\"F\\u0033\\u0032\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, 1},
        {"{" E("b", "F32", "[1]", "[4,8]") "," E("a", "F32", "[1]", "[0,4]") "}", 8, 2}, /* in any order */
        {"{" E("a", "F32", "[1]", "[0,4]") ",\"__metadata__\":{\"format\":\"pt\"}}", 4, 1},
        {"{" E("z", "F32", "[0]", "[4,4]") "," E("a", "F32", "[1]", "[0,4]") "," E("y", "I8", "[0,7]", "[0,0]") "}", 4,
         3},
        {"{" E("\xc3\xa9/\xe2\x82\xac \xf0\x9f\x98\x80", "U8", "[]", "[0,1]") "}", 1, 1},
        {"{" E("a", "F32", "[1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, 1},
        {T("\"U8\"", "[0,281474976710655]", "[0,0]"), 0, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bytes    *f = file(rows[i].header, rows[i].data);
        void           *copy;
        tn_safetensors *s = open_exact(f->data, f->n, &copy);
        ck_assert_msg(s && tn_error() == TN_OK, "%s: %s", rows[i].header, tn_error_message());
        ck_assert_int_eq(tn_safetensors_count(s), rows[i].count);
        tn_safetensors_close(s);
        free(copy);
    }
}
END_TEST

START_TEST(every_type)
{
    static const struct {
        const char *type;
        int         size;
        tn_dtype    dt;
    } rows[] = {{"BOOL", 1, TN_BOOL}, {"U8", 1, TN_U8},     {"I8", 1, TN_I32},  {"I16", 2, TN_I32}, {"U16", 2, TN_I32},
                {"F16", 2, TN_F32},   {"BF16", 2, TN_BF16}, {"I32", 4, TN_I32}, {"U32", 4, TN_I64}, {"F32", 4, TN_F32},
                {"F64", 8, TN_F64},   {"I64", 8, TN_I64},   {"U64", 8, TN_I64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}",
                 rows[i].type, 3 * rows[i].size);
        bytes         *f = (bytes *)(uintptr_t)file(header, 3 * rows[i].size);
        unsigned char *p = f->data + f->n - 3 * rows[i].size;
        for (int k = 0; k < 3 * rows[i].size && i; k++) p[k] = (unsigned char)(0x71 + 5 * k);
        if (*rows[i].type == 'I') p[rows[i].size - 1] = 0xfe; /* a negative one */
        tn_safetensors *s = tn_safetensors_read(f->data, f->n);
        ck_assert_msg(s != NULL, "%s", tn_error_message());
        tn_safetensors_entry e = tn_safetensors_at(s, 0);
        ck_assert_str_eq(e.name, "x");
        ck_assert_str_eq(e.stored, rows[i].type);
        ck_assert(e.loadable);
        ck_assert_int_eq(e.dtype, rows[i].dt);
        ck_assert_int_eq(e.bytes, 3 * rows[i].size);
        ck_assert(tn_shape_equal(e.shape, TN_SHAPE(3)));
        if (i == 12) p[7] = p[15] = p[23] = 0;
        tn_tensor *t = tn_safetensors_get(s, "x");
        ck_assert_msg(t != NULL, "%s", tn_error_message());
        ck_assert_int_eq(tn_dtype_of(t), rows[i].dt);
        for (int k = 0; k < 3; k++) {
            uint64_t v = 0;
            for (int b = 0; b < rows[i].size; b++) v |= (uint64_t)p[k * rows[i].size + b] << 8 * b;
            uint64_t top = (uint64_t)1 << (8 * rows[i].size - 1);
            if (*rows[i].type == 'I' && (v & top)) v |= ~(top | (top - 1));
            if (*rows[i].type == 'F' && rows[i].size == 2) continue; /* test_npy reads every f16 */
            if (strchr("FB", *rows[i].type))
                ck_assert_mem_eq((const char *)tn_data(t) + k * rows[i].size, &v, (size_t)rows[i].size);
            else ck_assert_int_eq(tn_get_i64(t, k), (int64_t)v);
        }
        tn_safetensors_close(s);
    }
}
END_TEST

START_TEST(listing_without_loading)
{
    const bytes    *f = file("{" E("w", "F8_E4M3", "[2,3]", "[0,6]") "," E(
                                 "b", "F16", "[3]", "[6,12]") ",\"__metadata__\":{\"format\":\"pt\",\"step\":\"7\"}}",
                             12);
    tn_safetensors *s = tn_safetensors_read(f->data, f->n);
    ck_assert_int_eq(tn_safetensors_count(s), 2);
    tn_safetensors_entry e = tn_safetensors_at(s, 0);
    ck_assert_str_eq(e.name, "w");
    ck_assert_str_eq(e.stored, "F8_E4M3");
    ck_assert(!e.loadable);
    ck_assert(tn_shape_equal(e.shape, TN_SHAPE(2, 3)));
    e = tn_safetensors_at(s, 1);
    ck_assert_int_eq(e.dtype, TN_F32);
    ck_assert_int_eq(tn_safetensors_find(s, "b"), 1);
    ck_assert_int_eq(tn_safetensors_find(s, "c"), -1);
    ck_assert_int_eq(tn_safetensors_find(s, NULL), -1);
    ck_assert_int_eq(tn_safetensors_find(NULL, "b"), -1);
    ck_assert_ptr_nonnull(tn_safetensors_get_at(s, 1));

    ck_assert_str_eq(tn_safetensors_metadata(s, "step"), "7");
    ck_assert_ptr_null(tn_safetensors_metadata(s, "epoch"));
    ck_assert_ptr_null(tn_safetensors_metadata(NULL, "step"));
    ck_assert_int_eq(tn_safetensors_metadata_count(s), 2);
    const char *value;
    ck_assert_str_eq(tn_safetensors_metadata_at(s, 0, &value), "format");
    ck_assert_str_eq(value, "pt");
    ck_assert_str_eq(tn_safetensors_metadata_at(s, 1, NULL), "step");
    ck_assert_int_eq(tn_error(), TN_OK);

    ck_assert_str_eq(tn_safetensors_at(s, 2).name, "");
    says(TN_EINDEX, "tn_safetensors_at: 2 is outside 0 … 1");
    ck_assert_str_eq(tn_safetensors_at(s, -1).name, "");
    says(TN_EINDEX, "tn_safetensors_at: -1 is outside 0 … 1");
    ck_assert_ptr_null(tn_safetensors_get_at(s, 2));
    says(TN_EINDEX, "tn_safetensors_get_at: 2 is outside 0 … 1");
    ck_assert_str_eq(tn_safetensors_metadata_at(s, 2, &value), "");
    says(TN_EINDEX, "tn_safetensors_metadata_at: 2 is outside 0 … 1");
    ck_assert_str_eq(tn_safetensors_at(NULL, 0).name, "");
    ck_assert_str_eq(tn_safetensors_metadata_at(NULL, 0, &value), "");
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_assert_ptr_null(tn_safetensors_get(NULL, "x"));
    says(TN_EINVAL, "tn_safetensors_get: the file is NULL");
    ck_assert_ptr_null(tn_safetensors_get(s, NULL));
    says(TN_EINVAL, "tn_safetensors_get: the name is NULL");
    tn_safetensors_close(s);
    tn_safetensors_close(NULL);
    ck_assert_int_eq(tn_safetensors_count(NULL), 0);
}
END_TEST

START_TEST(did_you_mean)
{
    static const char *const names[] = {"bert.encoder.layer.0.output.dense.weight",
                                        "bert.encoder.layer.0.output.dense.bias", "bert.pooler.dense.weight",
                                        "cls.predictions.bias", "x"};
    static const char *const asked[][2] = {
        {"bert.encoder.layer.0.output.dense.wieght", "'bert.encoder.layer.0.output.dense.weight'"},
        {"pooler.dense.weight", "'bert.pooler.dense.weight'"},    /* the front is missing */
        {"model.cls.predictions.bias", "'cls.predictions.bias'"}, /* or too long */
        {"cls.prediction.bias", "'cls.predictions.bias'"},
        {"decoder.something.else", NULL},
        {"y", NULL},
        {"", NULL},
    };
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int i = 0; i < 5; i++) tn_safetensors_put(w, names[i], tn_zeros(TN_SHAPE(1)));
    tn_tensor      *f = tn_safetensors_write(w);
    tn_safetensors *s = tn_safetensors_read(tn_data(f), (size_t)tn_numel(f));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char expected[200];
        snprintf(expected, sizeof expected, "tn_safetensors_get: there is no tensor '%s' among its 5%s%s%s",
                 asked[i][0], asked[i][1] ? "; did you mean " : "", asked[i][1] ? asked[i][1] : "",
                 asked[i][1] ? "?" : "");
        ck_assert_ptr_null(tn_safetensors_get(s, asked[i][0]));
        ck_assert_str_eq(tn_error_message(), expected);
        says(TN_EINDEX, "");
    }
    tn_safetensors_close(s);
    tn_safetensors_writer_free(w);
}
END_TEST

/* ---- what is written --------------------------------------------------------------------------------------------- */

/* The reference's own serialisation of the same tensors (its test_serialization and the rule of its order), with the
 * metadata that Hugging Face's readers ask for. */
START_TEST(written_as_the_reference_writes)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    const float            six[] = {0, 1, 2, 3, 4, 5};
    tn_safetensors_put(w, "b", tn_from_data(TN_F32, TN_SHAPE(1, 2, 3), six));
    tn_safetensors_put(w, "u", tn_zeros_of(TN_U8, TN_SHAPE(3)));
    tn_safetensors_put(w, "k", tn_ones_of(TN_BOOL, TN_SHAPE(1)));
    tn_safetensors_put(w, "i", tn_zeros_of(TN_I64, TN_SHAPE(0, 2)));
    tn_safetensors_put(w, "a", tn_from_data(TN_F32, TN_SCALAR, six + 1));
    tn_safetensors_put(w, "d", tn_zeros_of(TN_F64, TN_SHAPE(1)));
    tn_safetensors_put(w, "h", tn_zeros_of(TN_BF16, TN_SHAPE(1)));
    tn_safetensors_put(w, "j", tn_zeros_of(TN_I32, TN_SHAPE(1)));
    tn_safetensors_put(w, "a.b", tn_zeros_of(TN_F32, TN_SHAPE(0)));
    tn_safetensors_put(w, "B", tn_zeros_of(TN_F32, TN_SHAPE(0)));
    tn_tensor  *f = tn_safetensors_write(w);
    const char *header =
        "{\"__metadata__\":{\"format\":\"pt\"}," E("i", "I64", "[0,2]", "[0,0]") "," E("d", "F64", "[1]", "[0,8]") "," E(
            "B", "F32", "[0]",
            "[8,8]") "," E("a", "F32", "[]",
                           "[8,12]") "," E("a.b", "F32", "[0]",
                                           "[12,12]") "," E("b", "F32", "[1,2,3]",
                                                            "[12,36]") "," E("j", "I32", "[1]",
                                                                             "[36,40]") "," E("h", "BF16", "[1]",
                                                                                              "[40,42]") "," E("u",
                                                                                                               "U8",
                                                                                                               "[3]",
                                                                                                               "[42,45]") "," E("k",
                                                                                                                                "BOOL",
                                                                                                                                "[1]",
                                                                                                                                "[45,46]") "}";
    ck_assert_msg(f != NULL, "%s", tn_error_message());
    const unsigned char *p = tn_data(f);
    size_t               n = strlen(header), padded = (n + 7) / 8 * 8;
    ck_assert_int_eq(tn_numel(f), 8 + (int64_t)padded + 46);
    for (int i = 0; i < 8; i++) ck_assert_int_eq(p[i], (int)(padded >> 8 * i & 255));
    ck_assert_msg(!memcmp(p + 8, header, n), "%.*s\n%s", (int)n, (const char *)p + 8, header);
    for (size_t i = n; i < padded; i++) ck_assert_int_eq(p[8 + i], ' ');
    ck_assert_mem_eq(p + 8 + padded + 12, six, 24);
    ck_assert_int_eq(p[8 + padded + 45], 1);
    tn_safetensors_writer_free(w);

    w = tn_safetensors_writer_new();
    tn_safetensors_note(w, "format", "np");
    tn_safetensors_note(w, "step", "1");
    tn_safetensors_note(w, "step", "2 \"\n\xc3\xa9"); /* the later note counts */
    f = tn_safetensors_write(w);
    header = "{\"__metadata__\":{\"format\":\"np\",\"step\":\"2 \\\"\\n\xc3\xa9\"}}";
    ck_assert_mem_eq((const char *)tn_data(f) + 8, header, strlen(header));
    ck_assert_int_eq(tn_numel(f), 8 + 56);
    tn_safetensors_writer_free(w);
}
END_TEST

START_TEST(round_trips)
{
    const char            *path = tn_test_file("round.safetensors");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_tensor             *sample[TN_DTYPES][TN_LAYOUTS];
    char                   name[64];
    for (int dt = 0; dt < TN_DTYPES; dt++)
        for (int layout = 0; layout < TN_LAYOUTS; layout++) {
            snprintf(name, sizeof name, "t.%d.%d \xe2\x82\xac", layout, dt);
            sample[dt][layout] = tn_sample((tn_dtype)dt, layout);
            ck_assert_int_eq(tn_safetensors_put(w, name, sample[dt][layout]), TN_OK);
        }
    ck_assert_msg(tn_safetensors_save(w, path) == TN_OK, "%s", tn_error_message());
    tn_tensor *memory = tn_safetensors_write(w);
    ck_assert(tn_same_bits(memory, tn_file_read(path, 1 << 20)));
    tn_safetensors *files[] = {tn_safetensors_open(path),
                               tn_safetensors_read(tn_data(memory), (size_t)tn_numel(memory))};
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(files[i] != NULL, "%s", tn_error_message());
        ck_assert_int_eq(tn_safetensors_count(files[i]), TN_DTYPES * TN_LAYOUTS);
        for (int dt = 0; dt < TN_DTYPES; dt++)
            for (int layout = 0; layout < TN_LAYOUTS; layout++) {
                snprintf(name, sizeof name, "t.%d.%d \xe2\x82\xac", layout, dt);
                ck_assert_msg(tn_same_bits(tn_safetensors_get(files[i], name), sample[dt][layout]), "%s: %s", name,
                              tn_error_message());
            }
        tn_safetensors_close(files[i]);
    }
    tn_safetensors_writer_free(w);
}
END_TEST

/* The writer outlives the scopes of what it was given, and reads it when it saves. */
START_TEST(writer_holds_its_tensors)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_scope               s = tn_scope_begin();
    tn_tensor             *t = tn_keep(tn_zeros(TN_SHAPE(2)));
    tn_safetensors_put(w, "t", t);
    tn_safetensors_put(w, "tied", t); /* both are written in full */
    tn_scope_end(s);
    tn_fill(t, 3);
    tn_drop(t);
    tn_tensor      *f = tn_safetensors_write(w);
    tn_safetensors *r = tn_safetensors_read(tn_data(f), (size_t)tn_numel(f));
    ck_assert_double_eq(tn_get(tn_safetensors_get(r, "t"), 1), 3);
    ck_assert_double_eq(tn_get(tn_safetensors_get(r, "tied"), 0), 3);
    ck_assert(!tn_shares_memory(tn_safetensors_get(r, "t"), tn_safetensors_get(r, "tied")));
    tn_safetensors_close(r);
    tn_safetensors_writer_free(w);
}
END_TEST

START_TEST(writer_refuses)
{
    tn_safetensors_writer   *w = tn_safetensors_writer_new();
    tn_tensor               *t = tn_ones(TN_SHAPE(2));
    static const char *const wrong[][2] = {
        {"", "the name '' must have 1 to 1024 bytes"},
        {"a\nb", "the name 'a\\x0ab' has a control character"},
        {"a\x7f", "has a control character"},
        {"\xff", "the name '\\xff' is not valid UTF-8"},
        {"__metadata__", "is the format's own; tn_safetensors_note writes metadata"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(tn_safetensors_put(w, wrong[i][0], t), TN_EINVAL);
        says(TN_EINVAL, wrong[i][1]);
    }
    tn_safetensors_put(w, "a", NULL);
    says(TN_EINVAL, "tn_safetensors_put: the tensor for 'a' is NULL");
    tn_safetensors_put(w, NULL, t);
    says(TN_EINVAL, "tn_safetensors_put: the name is NULL");
    tn_safetensors_put(NULL, "a", t);
    says(TN_EINVAL, "tn_safetensors_put: the writer is NULL");
    ck_assert_int_eq(tn_safetensors_put(w, "a", t), TN_OK);
    tn_safetensors_put(w, "a", t);
    says(TN_EINVAL, "tn_safetensors_put: the name 'a' has a tensor already");
    tn_safetensors_note(w, NULL, "x");
    says(TN_EINVAL, "tn_safetensors_note: the key is NULL");
    tn_safetensors_note(w, "x", NULL);
    says(TN_EINVAL, "tn_safetensors_note: the value is NULL");
    tn_safetensors_note(NULL, "x", "y");
    says(TN_EINVAL, "tn_safetensors_note: the writer is NULL");
    tn_safetensors_note(w, "\xfe", "y");
    says(TN_EINVAL, "the key '\\xfe' is not valid UTF-8");
    tn_safetensors_note(w, "x", "\xfe");
    says(TN_EINVAL, "the value of 'x' is not valid UTF-8");
    ck_assert_int_eq(tn_safetensors_save(w, NULL), TN_EINVAL);
    tn_clear_error();
    ck_assert_int_eq(tn_safetensors_save(NULL, "x"), TN_EINVAL);
    tn_clear_error();
    ck_assert_ptr_null(tn_safetensors_write(NULL));
    tn_clear_error();

    char *huge = malloc((16 << 20) + 1);
    memset(huge, 'v', 16 << 20), huge[16 << 20] = 0;
    tn_safetensors_note(w, "huge", huge);
    says(TN_EUNSUPPORTED, "with 'huge' the metadata passes the limit of 16777216 bytes");
    free(huge);
    char key[16];
    for (int i = 0; i < 9999; i++) {
        snprintf(key, sizeof key, "%d", i);
        ck_assert_int_eq(tn_safetensors_note(w, key, ""), TN_OK);
    }
    tn_safetensors_note(w, "one more", "");
    says(TN_EUNSUPPORTED, "'one more' would be one more than the limit of 9999 notes");
    ck_assert_int_eq(tn_safetensors_note(w, "17", "again"), TN_OK);
    tn_tensor      *f = tn_safetensors_write(w); /* and the reader takes all that the writer took */
    tn_safetensors *r = tn_safetensors_read(tn_data(f), (size_t)tn_numel(f));
    ck_assert_int_eq(tn_safetensors_metadata_count(r), 10000);
    ck_assert_str_eq(tn_safetensors_metadata(r, "17"), "again");
    tn_safetensors_close(r);
    tn_safetensors_writer_free(w);
    tn_safetensors_writer_free(NULL);

    tn_raise(TN_ESHAPE, "before");
    ck_assert_ptr_null(tn_safetensors_writer_new());
    ck_assert_ptr_null(tn_safetensors_open("x"));
    tn_clear_error();
}
END_TEST

START_TEST(every_truncation)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int i = 0; i < TN_DTYPES; i++) tn_safetensors_put(w, tn_dtype_name((tn_dtype)i), tn_sample((tn_dtype)i, 2));
    tn_tensor *f = tn_safetensors_write(w);
    for (int64_t i = 0; i < tn_numel(f); i++) {
        void           *copy;
        tn_safetensors *s = open_exact(tn_data(f), (size_t)i, &copy);
        ck_assert_ptr_null(s);
        ck_assert_int_eq(tn_error(), TN_EFORMAT);
        tn_clear_error();
        free(copy);
    }
    tn_safetensors_writer_free(w);
}
END_TEST

START_TEST(every_bit_of_the_header)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "a", tn_sample(TN_F32, 1));
    tn_safetensors_put(w, "b", tn_sample(TN_BOOL, 2));
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
END_TEST

/* ---- memory that fails ------------------------------------------------------------------------------------------- */

static tn_status scenario(const char *path, tn_tensor *a, tn_tensor *b, tn_tensor **read)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    char                   name[16];
    tn_safetensors_put(w, "a", a);
    for (int i = 0; i < 20; i++) { /* enough for the tables to grow */
        snprintf(name, sizeof name, "b%d", i);
        tn_safetensors_put(w, name, b);
        tn_safetensors_note(w, name, "noted");
    }
    if (tn_safetensors_save(w, path) != TN_OK) { /* skipped, if something failed before */
    }
    tn_tensor      *m = tn_safetensors_write(w);
    tn_safetensors *f = tn_safetensors_open(path), *g = m ? tn_safetensors_read(tn_data(m), (size_t)tn_numel(m)) : NULL;
    *read = f ? tn_safetensors_get(f, "a") : NULL;
    if (g) tn_safetensors_get(g, "b7");
    tn_safetensors_close(f);
    tn_safetensors_close(g);
    tn_safetensors_writer_free(w);
    return tn_error();
}

START_TEST(memory_fails)
{
    const char *path = tn_test_file("memory.safetensors");
    tn_tensor  *expected = NULL;
    int         beside = -1;
    tn_faulty_memory_begin();
    tn_scope all = tn_scope_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int64_t at = -1;; at++) {
            tn_scope   s = tn_scope_begin();
            tn_tensor *a = tn_sample(TN_F64, 1), *b = tn_sample(TN_BF16, 2), *read;
            int64_t    before = tn_memory_blocks();
            tn_scope   inner = tn_scope_begin();
            tn_fail_memory(at, for_ever);
            bool failed = scenario(path, a, b, &read) != TN_OK;
            if (failed) ck_assert_msg(tn_error() == TN_ENOMEM, "%s", tn_error_message());
            tn_clear_error();
            tn_fail_memory(-1, false);
            tn_scope_end(inner);
            ck_assert_int_eq(tn_memory_blocks(), before);
            ck_assert_msg(scenario(path, a, b, &read) == TN_OK, "%s", tn_error_message());
            ck_assert(tn_same_bits(read, a));
            tn_tensor *bytes_now = tn_file_read(path, 1 << 20);
            if (!expected) expected = tn_keep(bytes_now), beside = tn_names_beside(path);
            ck_assert(tn_same_bits(expected, bytes_now));
            ck_assert_int_eq(tn_names_beside(path), beside);
            tn_scope_end(s);
            if (at >= 0 && !failed) {
                ck_assert_int_gt(at, 100);
                break;
            }
        }
    tn_drop(expected);
    tn_scope_end(all);
    tn_faulty_memory_end();
}
END_TEST

START_TEST(locale_changes_nothing)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "hi_IN.utf8"};
    tn_safetensors_writer   *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "a", tn_sample(TN_F32, 8));
    tn_tensor *before = tn_safetensors_write(w);
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_ALL, locales[i])) continue;
        tn_tensor *now = tn_safetensors_write(w);
        setlocale(LC_ALL, "C");
        ck_assert(tn_same_bits(before, now));
    }
    tn_safetensors_writer_free(w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("safetensors");
    TCase *c = tn_tcase(s, "refused");
    tcase_add_loop_test(c, refuses, 0, (int)(sizeof malformed / sizeof *malformed));
    tcase_add_test(c, refuses_lengths);
    tcase_add_test(c, refuses_values);
    tcase_add_test(c, names_of_all_lengths);
    tcase_add_test(c, as_many_as_allowed);
    tcase_add_test(c, every_truncation);
    tcase_add_test(c, every_bit_of_the_header);
    c = tn_tcase(s, "read");
    tcase_add_test(c, as_others_write_them);
    tcase_add_test(c, every_type);
    tcase_add_test(c, listing_without_loading);
    tcase_add_test(c, did_you_mean);
    c = tn_tcase(s, "written");
    tcase_add_test(c, written_as_the_reference_writes);
    tcase_add_test(c, round_trips);
    tcase_add_test(c, writer_holds_its_tensors);
    tcase_add_test(c, writer_refuses);
    tcase_add_test(c, memory_fails);
    tcase_add_test(c, locale_changes_nothing);
    return tn_check_main(s);
}
