/* test_npy_errors.c — violations of the npy format are errors that name the position. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/file_bytes.h"

#include "core/core.h"
#include "tests/common/layouts.h"

/* ---- invalid files ----------------------------------------------------------------------------------------------- */

#define D(descr, fortran, shape) "{'descr': " descr ", 'fortran_order': " fortran ", 'shape': " shape ", }\n"
static const struct {
    int         major;
    const char *dict;
    int         data;
    tn_status   status;
    const char *says;
} malformed[] = {
    {0, D("'<f4'", "False", "(2,)"), 8, TN_EFORMAT, "byte 6: version 0.0, expected 1.0, 2.0 or 3.0"},
    {4, D("'<f4'", "False", "(2,)"), 8, TN_EFORMAT, "byte 6: version 4.0, expected 1.0, 2.0 or 3.0"},
    {255, D("'<f4'", "False", "(2,)"), 8, TN_EFORMAT, "byte 6: version 255.0"},
    {1, "", 0, TN_EFORMAT, "too few for an npy file|header, byte 10: the header must be a dict, '{', found its end"},
    {1, " \n", 0, TN_EFORMAT, "byte 12: the header must be a dict, '{', found its end"},
    {1, "[]", 0, TN_EFORMAT, "byte 10: the header must be a dict, '{', found '[]'"},
    {1, "{}", 0, TN_EFORMAT, "header: the key 'descr' is missing"},
    {1, "{,}", 0, TN_EFORMAT, "the key 'descr', 'fortran_order' or 'shape' is expected, found ',}'"},
    {1, "{", 0, TN_EFORMAT, "byte 11: the key 'descr', 'fortran_order' or 'shape' is expected, found its end"},
    {1, "{'descr': '<f4', 'fortran_order': False}", 0, TN_EFORMAT, "the key 'shape' is missing"},
    {1, "{'descr': '<f4', 'shape': (2,)}", 8, TN_EFORMAT, "the key 'fortran_order' is missing"},
    {1, "{'shape': (2,), 'fortran_order': False}", 8, TN_EFORMAT, "the key 'descr' is missing"},
    {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8, TN_EFORMAT,
     "this key is a duplicate, found ''descr': '<f4'"},
    {1, "{'shape': (2,), 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8, TN_EFORMAT,
     "this key is a duplicate"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'extra': 1}", 8, TN_EFORMAT,
     "'fortran_order' or 'shape' is expected, found ''extra': 1"},
    {1, "{'DESCR': '<f4', 'fortran_order': False, 'shape': (2,)}", 8, TN_EFORMAT,
     "'fortran_order' or 'shape' is expected, found ''DESCR'"},
    {1, "{descr: '<f4', 'fortran_order': False, 'shape': (2,)}", 8, TN_EFORMAT,
     "'fortran_order' or 'shape' is expected, found 'descr: "},
    {1, "{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}", 8, TN_EFORMAT,
     "':' is expected after a key, found ''<f4'"},
    {1, "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", 8, TN_EFORMAT,
     "',' or '}' is expected, found ''fortran_order'"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", 8, TN_EFORMAT,
     "',' or '}' is expected, found its end"},
    {1, "{'descr': '<f4',, 'fortran_order': False, 'shape': (2,)}", 8, TN_EFORMAT,
     "'fortran_order' or 'shape' is expected, found ',"},
    {1, D("'<f4'", "False", "(2,)") "x", 8, TN_EFORMAT, "only spaces may follow the dict, found 'x'"},
    {1, D("'<f4'", "False", "(2,)") "{}", 8, TN_EFORMAT, "only spaces may follow the dict, found '{}'"},
    {1, D("'<f4", "False", "(2,)"), 8, TN_EFORMAT, "this descr is not a numeric type of NumPy, found ''<f4, "},
    {1, D("<f4", "False", "(2,)"), 8, TN_EFORMAT, "descr must be a short string such as '<f4', found '<f4"},
    {1, D("4", "False", "(2,)"), 8, TN_EFORMAT, "descr must be a short string"},
    {1, D("'<f4\"", "False", "(2,)"), 8, TN_EFORMAT, "this descr is not a numeric type of NumPy, found ''<f4\""},
    {1, D("''", "False", "(2,)"), 8, TN_EFORMAT, "descr must start with '<', '>', '=' or '|'"},
    {1, D("'f4'", "False", "(2,)"), 8, TN_EFORMAT, "descr must start with '<', '>', '=' or '|', found ''f4'"},
    {1, D("'?f4'", "False", "(2,)"), 8, TN_EFORMAT, "descr must start with"},
    {1, D("'<'", "False", "(2,)"), 8, TN_EFORMAT, "this descr is not a numeric type of NumPy"},
    {1, D("'<x4'", "False", "(2,)"), 8, TN_EFORMAT, "this descr is not a numeric type of NumPy, found ''<x4'"},
    {1, D("'<\\x664'", "False", "(2,)"), 8, TN_EFORMAT, "descr must be a short string"},
    {1, D("'<f4<f4<f4<f4<f4<f4'", "False", "(2,)"), 8, TN_EFORMAT, "descr must be a short string"},
    {1, D("'|f4'", "False", "(2,)"), 8, TN_EFORMAT, "must specify its byte order, '<' or '>', found ''|f4'"},
    {1, D("'|i8'", "False", "(1,)"), 8, TN_EFORMAT, "must specify its byte order"},
    {1, D("'|O'", "False", "(2,)"), 8, TN_EUNSUPPORTED, "this descr is not supported"},
    {1, D("'|V4'", "False", "(2,)"), 8, TN_EUNSUPPORTED, "this descr is not supported"},
    {1, D("'<U3'", "False", "(2,)"), 24, TN_EUNSUPPORTED,
     "this descr is not supported (b1, i1 to i8, u1 to u8, f2 to f8 are)"},
    {1, D("'|S3'", "False", "(2,)"), 6, TN_EUNSUPPORTED, "convert with astype, found ''|S3'"},
    {1, D("'<M8[ns]'", "False", "(1,)"), 8, TN_EUNSUPPORTED, "this descr is not supported"},
    {1, D("'<m8[s]'", "False", "(1,)"), 8, TN_EUNSUPPORTED, "this descr is not supported"},
    {1, D("'<c8'", "False", "(1,)"), 8, TN_EUNSUPPORTED, "this descr is not supported, found|not supported (b1"},
    {1, D("'<c16'", "False", "(1,)"), 16, TN_EUNSUPPORTED, "this descr is not supported"},
    {1, D("'<f16'", "False", "(1,)"), 16, TN_EUNSUPPORTED, "this descr is not supported"},
    {1, D("'<f3'", "False", "(1,)"), 3, TN_EUNSUPPORTED, "this descr is not supported"},
    {1, D("[('a', '<f4'), ('b', '<i4')]", "False", "(1,)"), 8, TN_EUNSUPPORTED,
     "descr is a list: structured arrays are not supported"},
    {1, D("'<f4'", "false", "(2,)"), 8, TN_EFORMAT, "fortran_order must be True or False, found 'false"},
    {1, D("'<f4'", "0", "(2,)"), 8, TN_EFORMAT, "fortran_order must be True or False, found '0"},
    {1, D("'<f4'", "'False'", "(2,)"), 8, TN_EFORMAT, "fortran_order must be True or False"},
    {1, D("'<f4'", "Falsely", "(2,)"), 8, TN_EFORMAT, "fortran_order must be True or False, found 'Falsely"},
    {1, D("'<f4'", "False", "2"), 8, TN_EFORMAT, "shape must be a tuple such as (2, 3), found '2"},
    {1, D("'<f4'", "False", "[2]"), 8, TN_EFORMAT, "shape must be a tuple such as (2, 3), found '[2]"},
    {1, D("'<f4'", "False", "(2)"), 8, TN_EFORMAT, "a tuple of one item needs a comma: (3,), found '(2)"},
    {1, D("'<f4'", "False", "(2"), 8, TN_EFORMAT, "a size must be a non-negative integer, found '}|shape needs"},
    {1, D("'<f4'", "False", "(,)"), 0, TN_EFORMAT, "a size must be a non-negative integer, found ',)"},
    {1, D("'<f4'", "False", "(2,,1)"), 8, TN_EFORMAT, "a size must be a non-negative integer, found ',1)"},
    {1, D("'<f4'", "False", "(2 1)"), 8, TN_EFORMAT, "shape needs ',' or ')' here, found '1)"},
    {1, D("'<f4'", "False", "(-2,)"), 8, TN_EFORMAT, "a size must be a non-negative integer, found '-2,)"},
    {1, D("'<f4'", "False", "(+2,)"), 8, TN_EFORMAT, "a size must be a non-negative integer"},
    {1, D("'<f4'", "False", "(2.0,)"), 8, TN_EFORMAT, "shape needs ',' or ')' here, found '.0,)"},
    {1, D("'<f4'", "False", "(1+1,)"), 8, TN_EFORMAT, "shape needs ',' or ')' here, found '+1,)"},
    {1, D("'<f4'", "False", "(02,)"), 8, TN_EFORMAT, "a size must not start with 0, found '02,)"},
    {1, D("'<f4'", "False", "(2LL,)"), 8, TN_EFORMAT, "shape needs ',' or ')' here, found 'L,)"},
    {1, D("'<f4'", "False", "(0x2,)"), 8, TN_EFORMAT, "shape needs ',' or ')' here, found 'x2,)"},
    {1, D("'<f4'", "False", "('2',)"), 8, TN_EFORMAT, "a size must be a non-negative integer"},
    {1, D("'<f4'", "False", "((2,),)"), 8, TN_EFORMAT, "a size must be a non-negative integer"},
    {1, D("'<f4'", "False", "(True,)"), 4, TN_EFORMAT, "a size must be a non-negative integer"},
    {1, D("'<f4'", "False", "(9223372036854775808,)"), 8, TN_EFORMAT, "a size must fit in 63 bits"},
    {1, D("'<f4'", "False", "(99999999999999999999999999,)"), 8, TN_EFORMAT, "a size must fit in 63 bits"},
    {1, D("'<f4'", "False", "(9223372036854775807,)"), 8, TN_EFORMAT,
     "shape [9223372036854775807] is too large: its bytes do not fit in 63 bits"},
    {1, D("'<f4'", "False", "(4294967296, 4294967296)"), 8, TN_EFORMAT, "is too large"},
    {1, D("'|u1'", "False", "(4294967296, 2147483648, 0)"), 0, TN_EFORMAT, "is too large"},
    {1, D("'<f8'", "False", "(2305843009213693952,)"), 0, TN_EFORMAT, "is too large"},
    {1, D("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, TN_EUNSUPPORTED,
     "shape has more than 8 dims, which is Tenon's limit"},
    {1, D("'<f4'", "False", "(2,)"), 7, TN_EFORMAT, "f4 [2] needs 8 bytes after the header, found 7"},
    {1, D("'<f4'", "False", "(2,)"), 9, TN_EFORMAT, "f4 [2] needs 8 bytes after the header, found 9"},
    {1, D("'<f4'", "False", "()"), 0, TN_EFORMAT, "f4 [] needs 4 bytes after the header, found 0"},
    {1, D("'<f4'", "False", "(0,)"), 4, TN_EFORMAT, "f4 [0] needs 0 bytes after the header, found 4"},
    {2, D("'<f4'", "False", "(3, 5)"), 59, TN_EFORMAT, "f4 [3, 5] needs 60 bytes after the header, found 59"},
    {1, D("'<f4'", "False", "(1000000000000,)"), 8, TN_EFORMAT,
     "f4 [1000000000000] needs 4000000000000 bytes after the header, found 8"},
    {1, D("'|b1'", "False", "(3,)"), 3, TN_EFORMAT,
     "the array: the bool at byte 71 is 2, expected 0 or 1|is 2, expected 0 or 1"},
};
#undef D

static bool contains(const char *text, const char *alternatives) /* "a|b": either */
{
    char part[300];
    for (const char *p = alternatives; *p;) {
        size_t n = strcspn(p, "|");
        snprintf(part, sizeof part, "%.*s", (int)n, p);
        if (strstr(text, part)) return true;
        p += n + (p[n] == '|');
    }
    return false;
}

TEST_ROWS(refuses, malformed)
{
    const bytes *f = npy(malformed[_i].major, malformed[_i].dict, malformed[_i].data);
    ck_assert_ptr_null(read_exact(f->data, f->n));
    ck_assert_msg(tn_error() == malformed[_i].status && contains(tn_error_message(), malformed[_i].says),
                  "\n  %s\n  says %s: %s\n  not  %s", malformed[_i].dict, tn_status_name(tn_error()),
                  tn_error_message(), malformed[_i].says);
    ck_assert(!strncmp(tn_error_message(), "tn_npy_read: ", 13));
    tn_clear_error();
}

TEST(refuses_what_is_no_npy)
{
    const struct {
        const char *text;
        size_t      n;
        const char *says;
    } rows[] = {{"", 0, "it has 0 bytes, too few for an npy file"},
                {"\x93NUMPY\x01\x00\x00", 9, "it has 9 bytes, too few"},
                {"\x93NUMPY\x02\x00\x00\x00", 10, "it has 10 bytes, too few"},
                {"\x93NUMPY\x03\x00\x00\x00\x00", 11, "it has 11 bytes, too few"},
                {"PK\x03\x04 a zip file", 14, "not an npy file: it does not start with \\x93NUMPY"},
                {"\x93NUMPX\x01\x00\x00\x00", 10, "not an npy file"},
                {"\x93NUMPY\x01\x01\x02\x00{}", 12, "byte 6: version 1.1, expected 1.0, 2.0 or 3.0"},
                {"\x93NUMPY\x01\x00\x03\x00{}", 12, "byte 8: a header of 3 bytes, but only 2 follow"},
                {"\x93NUMPY\x01\x00\x11\x27{}", 12, "byte 8: a header of 10001 bytes, the limit is 10000"},
                {"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14, "byte 8: a header of 4294967295 bytes, the limit is 10000"},
                {"\x93NUMPY\x02\x00\x03\x00\x00\x00{}", 14, "byte 8: a header of 3 bytes, but only 2 follow"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_ptr_null(read_exact(rows[i].text, rows[i].n));
        ck_assert_int_eq(tn_error(), TN_EFORMAT);
        ck_assert_msg(strstr(tn_error_message(), rows[i].says) != NULL, "%s\nnot %s", tn_error_message(), rows[i].says);
        tn_clear_error();
    }
    ck_refused_code(tn_npy_read(NULL, 5), TN_EINVAL);
    ck_refused_code(tn_npy_read(NULL, 0), TN_EFORMAT);
}

TEST(every_truncation)
{
    tn_tensor *f = tn_npy_write(tn__sample(TN_F32, 1));
    int64_t    n = tn_numel(f);
    for (int64_t i = 0; i < n; i++) { ck_refused_code(read_exact(tn_data(f), (size_t)i), TN_EFORMAT); }
    ck_assert_ptr_nonnull(read_exact(tn_data(f), (size_t)n));
}

/* Each bit of a header, flipped: the file is read, or rejected with an error; nothing else happens. */
TEST(every_bit_of_the_header)
{
    tn_tensor     *f = tn_npy_write(tn__sample(TN_I64, 2));
    unsigned char *p = tn_data_mut(f);
    int            refusals = 0;
    for (int i = 0; i < 8 * 128; i++) {
        p[i / 8] ^= (unsigned char)(1 << i % 8);
        tn_scope   s = tn_scope_begin();
        tn_tensor *t = read_exact(p, (size_t)tn_numel(f));
        ck_assert_int_eq(t == NULL, tn_error() != TN_OK);
        refusals += t == NULL;
        tn_clear_error();
        tn_scope_end(s);
        p[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    ck_assert_int_gt(refusals, 500);
}
