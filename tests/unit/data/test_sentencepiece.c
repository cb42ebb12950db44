/* test_sentencepiece.c — SentencePiece's tokenizers: byte-pair encoding by scores, Unigram, bytes for what has no piece;
 * made of their parts, and decoded number by number. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/errors.h"
#include <stdlib.h>
#include <string.h>

#define S "\xe2\x96\x81"

/* ---- of pieces --------------------------------------------------------------------------------------------------- */

/* llama2.c's layout: <unk>, <s>, </s>, 256 bytes, then pieces of two and more, then letters, by falling scores. */
static const char *const words[] = {S "t",      "he", S "the", "an", S "c", "at", S S, S "cat",
                                    "\xc3\xa9", "t",  "h",     "e",  "a",   "n",  "c", S};
enum { WORDS = sizeof words / sizeof *words, ALL = 259 + WORDS };

static tn_tokenizer *small(tn_pieces_args how)
{
    static char        bytes[256][8];
    static const char *pieces[ALL] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    static float       scores[ALL];
    for (int b = 0; b < 256; b++) snprintf(bytes[b], sizeof *bytes, "<0x%02X>", b), pieces[3 + b] = bytes[b];
    for (int i = 0; i < (int)WORDS; i++) pieces[259 + i] = words[i], scores[259 + i] = -(float)i;
    how.scores = scores;
    return tn_tokenizer_of_pieces_run(ALL, pieces, how);
}

static void gives(const tn_tokenizer *t, const char *text, const char *expected, bool bare)
{
    tn_encoding *e = tn_encoding_new();
    tn_string    said = {0};
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text), .bare = bare), TN_OK);
    for (int64_t i = 0; i < e->n; i++) {
        if (i) ck_assert_int_eq(tn_string_add(&said, tn_text_of(" ")), TN_OK);
        ck_assert_int_eq(tn_string_add(&said, tn_text_of(tn_tokenizer_piece(t, e->id[i]))), TN_OK);
        ck_assert(e->start[i] >= 0 && e->start[i] <= e->end[i] && e->end[i] <= (int32_t)strlen(text));
    }
    ck_assert_str_eq(said.at ? said.at : "", expected);
    tn_string_free(&said);
    tn_encoding_free(e);
}

START_TEST(merges_by_scores)
{
    tn_tokenizer *t = small((tn_pieces_args){TN_PIECES_ARGS_DEFAULTS});
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_special(t).first, 1);
    ck_assert_int_eq(tn_tokenizer_special(t).last, 2);
    gives(t, "the cat", "<s> " S "the " S "cat", false);
    gives(t, "the cat", S "the " S "cat", true);
    gives(t, "caf\xc3\xa9", S "c a <0x66> \xc3\xa9", true);
    gives(t, "\xe7\x8b\x90", S " <0xE7> <0x8B> <0x90>", true);
    gives(t, "", "", true);
    gives(t, "the<s>the", S "the <s> " S "the", true);
    gives(t, "a  b", S " a " S S " <0x62>", true);
    tn_tokenizer_free(t);
    tn_pieces_args plain = {TN_PIECES_ARGS_DEFAULTS};
    plain.no_space = plain.ends = true;
    t = small(plain);
    gives(t, "the cat", "<s> t he " S "cat </s>", false);
    tn_tokenizer_free(t);
}
END_TEST

START_TEST(unigram_of_pieces)
{
    tn_pieces_args how = {TN_PIECES_ARGS_DEFAULTS};
    how.kind = TN_UNIGRAM;
    tn_tokenizer *t = small(how);
    gives(t, "the cat", S "t he " S "cat", true); /* 0 and -1, not -2 */
    gives(t, "ttt caf\xc3\xa9", S "t t t " S "c a <0x66> \xc3\xa9", true);
    tn_tokenizer_free(t);
}
END_TEST

START_TEST(decodes_number_by_number)
{
    tn_tokenizer *t = small((tn_pieces_args){TN_PIECES_ARGS_DEFAULTS});
    tn_encoding  *e = tn_encoding_new();
    const char   *text = " the caf\xc3\xa9 \xe7\x8b\x90\xe7\x8b\xb8 \xf0\x9f\x99\x82";
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text)), TN_OK);
    tn_string      all = {0}, one = {0};
    tn_text_stream d = {{0}, 0, false};
    ck_assert_int_eq(tn_tokenizer_decode(t, e->id, e->n, &all), TN_OK);
    ck_assert_str_eq(all.at, text);
    for (int64_t i = 0; i < e->n; i++) {
        ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, e->id[i], &one), TN_OK);
        ck_assert_msg(tn_utf8_valid(one.at, one.bytes) == one.bytes && !memcmp(one.at, text, one.bytes), "'%s'",
                      one.at);
    }
    ck_assert_int_eq(tn_tokenizer_decode_end(&d, &one), TN_OK);
    ck_assert_str_eq(one.at, text);
    one.bytes = 0; /* half a character, and another */
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 0xe7, &one), TN_OK);
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 0x8b, &one), TN_OK);
    ck_assert_uint_eq(one.bytes, 0);
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 'x', &one), TN_OK);
    ck_assert_str_eq(one.at, "\xef\xbf\xbdx");
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 0xc3, &one), TN_OK);
    ck_assert_int_eq(tn_tokenizer_decode_end(&d, &one), TN_OK);
    ck_assert_str_eq(one.at, "\xef\xbf\xbdx\xef\xbf\xbd");
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, ALL, &one), TN_EINDEX);
    tn_clear_error();
    tn_string_free(&all), tn_string_free(&one);
    tn_encoding_free(e), tn_tokenizer_free(t);
}
END_TEST

START_TEST(pieces_refused)
{
    const char *const twice[] = {"a", "b", "a"}, *const broken[] = {"a", "\xff"};
    const float   infinite[] = {0, (float)(1e300 * 1e300)};
    const int32_t types[] = {1, 7};
    ck_assert_ptr_null(tn_tokenizer_of_pieces(3, twice));
    ck_error(TN_EFORMAT, "tn_tokenizer_of_pieces: the piece 'a' has two numbers, 0 and 2");
    ck_assert_ptr_null(tn_tokenizer_of_pieces(2, broken));
    ck_error(TN_EFORMAT, "tn_tokenizer_of_pieces: piece 1, '\\xff', is not UTF-8");
    ck_assert_ptr_null(tn_tokenizer_of_pieces(2, twice, .scores = infinite));
    ck_error(TN_EFORMAT, "tn_tokenizer_of_pieces: the score of piece 1 is no number");
    ck_assert_ptr_null(tn_tokenizer_of_pieces(2, twice, .types = types));
    ck_error(TN_EFORMAT, "tn_tokenizer_of_pieces: piece 1 has the type 7, expected 1 to 6");
    ck_assert_ptr_null(tn_tokenizer_of_pieces(2, twice, .first = 2));
    ck_error(TN_EINVAL, "tn_tokenizer_of_pieces: the first piece is 2, the last -1, but the pieces are 2");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sentencepiece");
    TCase *c = tn_tcase(s, "of pieces");
    tcase_add_test(c, merges_by_scores);
    tcase_add_test(c, unigram_of_pieces);
    tcase_add_test(c, decodes_number_by_number);
    tcase_add_test(c, pieces_refused);
    return tn_check_main(s);
}
