/* test_vocab.c — iterating over UTF-8, word ids, and sequences padded to one length. */
#include "tests/common/check_main.h"

#include "data/data.h"

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

TEST(every_scalar_value)
{
    int wrong = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char      to[4];
        const int n = tn_utf8_put(c, to);
        size_t    at = 0;
        bool      valid = false;
        if (c >= 0xd800 && c <= 0xdfff) { /* a surrogate is not a scalar value */
            wrong += n != 3 || memcmp(to, "\xef\xbf\xbd", 3);
            continue;
        }
        wrong += tn_utf8_next(to, (size_t)n, &at, &valid) != c || !valid || at != (size_t)n;
        wrong += tn_utf8_valid(to, (size_t)n) != (size_t)n;
    }
    ck_assert_int_eq(wrong, 0);
}

/* The 25 code points that have the property White_Space. */
TEST(white_space)
{
    static const uint32_t ranges[][2] = {{9, 13},          {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                                         {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                         {0x205f, 0x205f}, {0x3000, 0x3000}};
    int                   wrong = 0, n = 0;
    for (uint32_t c = 0, r = 0; c <= 0x110000; c++) {
        if (r < 10 && c > ranges[r][1]) r++;
        const bool space = r < 10 && c >= ranges[r][0];
        n += space, wrong += tn_is_space(c) != space;
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(n, 25);
}

/* The Unicode standard's examples of maximal parts (tables 3-8 to 3-11): the number of U+FFFD. */
TEST(maximal_parts)
{
    static const struct {
        const char *text;
        int         invalid, points;
    } rows[] = {{"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", 8, 9},
                {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", 8, 9},
                {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", 7, 9},
                {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 4, 5},
                {"\xe2\x82", 1, 1},
                {"\xf0\x9f\x98", 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t n = strlen(rows[i].text);
        int          invalid = 0, points = 0;
        bool         valid;
        for (size_t at = 0; at < n; points++) tn_utf8_next(rows[i].text, n, &at, &valid), invalid += !valid;
        ck_assert_msg(invalid == rows[i].invalid && points == rows[i].points, "row %zu: %d of %d", i, invalid, points);
        tn_string s = {0};
        ck_assert_int_eq(tn_string_add_valid(&s, (tn_text){rows[i].text, n}), invalid);
        ck_assert_uint_eq(tn_utf8_valid(s.at, s.bytes), s.bytes);
        tn_string_free(&s);
    }
}

/* ---- vocabularies ------------------------------------------------------------------------------------------------ */

static const char text[] = "the cat sat on the mat \xe2\x80\xa8 the\tend\n";

TEST(words_have_numbers)
{
    tn_vocab *v = tn_vocab_new();
    ck_assert_int_eq(tn_vocab_size(v), 2);
    ck_assert_int_eq(tn_vocab_read(v, text, sizeof text - 1), TN_OK);
    ck_assert_int_eq(tn_vocab_size(v), 8);
    ck_assert_int_eq(tn_vocab_id(v, "the", 3), TN_VOCAB_FIRST);
    ck_assert_int_eq(tn_vocab_id(v, "then", 4), TN_VOCAB_UNKNOWN);
    ck_assert_int_eq(tn_vocab_id(v, "", 0), TN_VOCAB_UNKNOWN);
    ck_assert_str_eq(tn_vocab_word(v, 7), "end");
    ck_assert_str_eq(tn_vocab_word(v, 0), "<pad>");
    ck_assert_int_eq(tn_vocab_count(v, 2), 3);
    tn_tensor    *x = tn_vocab_encode(v, "the dog sat  ", 13);
    const int64_t ids[] = {2, 1, 4};
    ck_assert_int_eq(tn_numel(x), 3);
    for (int64_t i = 0; i < 3; i++) ck_assert_int_eq(tn_get_i64(x, i), ids[i]);
    ck_assert_int_eq(tn_numel(tn_vocab_encode(v, "", 0)), 0);
    ck_assert_str_eq(tn_vocab_word(v, 8), "");
    ck_error(TN_EINDEX, "tn_vocab_word: the word id is 8, expected 0 to 7");
    ck_assert_int_eq(tn_vocab_add(v, "", 0), -1);
    ck_error(TN_EINVAL, "tn_vocab_add: the word is empty");
    tn_vocab_free(v);
}

TEST(trims)
{
    tn_vocab *v = tn_vocab_new();
    tn_vocab_read(v, "c b a a c a b d", 15);
    ck_assert_int_eq(tn_vocab_trim(v, 2, 0), TN_OK);
    ck_assert_int_eq(tn_vocab_size(v), 5);
    ck_assert_str_eq(tn_vocab_word(v, 2), "a");
    ck_assert_str_eq(tn_vocab_word(v, 3), "b"); /* as often as c, and before it */
    ck_assert_int_eq(tn_vocab_count(v, 2), 3);
    ck_assert_int_eq(tn_vocab_id(v, "d", 1), TN_VOCAB_UNKNOWN);
    ck_assert_int_eq(tn_vocab_trim(v, 0, 1), TN_OK);
    ck_assert_int_eq(tn_vocab_size(v), 3);
    ck_assert_int_eq(tn_vocab_add(v, "new", 3), 3);
    ck_fails(tn_vocab_trim(v, 0, -1), TN_EINVAL, "tn_vocab_trim: most is -1, expected 0 (all) or more");
    tn_vocab_free(v);
}

/* ---- padding ----------------------------------------------------------------------------------------------------- */

static void equals(tn_tensor *x, int64_t rows, int64_t columns, const int64_t *values)
{
    ck_assert_msg(x != NULL, "%s", tn_error_message());
    ck_assert(tn_dtype_of(x) == TN_I64 && tn_size(x, 0) == rows && tn_size(x, 1) == columns);
    for (int64_t i = 0; i < rows * columns; i++) ck_assert_int_eq(tn_get_i64(x, i), values[i]);
}

TEST(pads)
{
    const int64_t        a[] = {2, 3, 4}, b[] = {5}, lengths[] = {3, 1, 0}, wrong[] = {3, -1, 0};
    const int64_t *const rows[] = {a, b, NULL};
    equals(tn_pad_sequences(3, rows, lengths), 3, 3, (int64_t[]){2, 3, 4, 5, 0, 0, 0, 0, 0});
    equals(tn_pad_sequences(3, rows, lengths, .left = true), 3, 3, (int64_t[]){2, 3, 4, 0, 0, 5, 0, 0, 0});
    equals(tn_pad_sequences(2, rows, lengths, .time_first = true), 3, 2, (int64_t[]){2, 5, 3, 0, 4, 0});
    equals(tn_pad_sequences(2, rows, lengths, .length = 2), 2, 2, (int64_t[]){2, 3, 5, 0});
    equals(tn_pad_sequences(2, rows, lengths, .length = 2, .left = true, .padding = -1), 2, 2,
           (int64_t[]){3, 4, -1, 5});
    equals(tn_pad_sequences(0, NULL, NULL), 0, 0, NULL);
    ck_refused(tn_pad_sequences(2, rows, wrong), TN_EINVAL, "tn_pad_sequences: sequence 1 has a negative length");
    ck_refused(tn_pad_sequences(1, rows, NULL), TN_EINVAL, "tn_pad_sequences: lengths is NULL");
    ck_refused(tn_pad_sequences(-1, rows, lengths), TN_EINVAL, "tn_pad_sequences: n is -1, expected 0 or more");
}
