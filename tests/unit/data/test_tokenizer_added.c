/* test_tokenizer_added.c — added tokens: first those of the original text, then in the rest those of the normalized
 * text; and which of the latter are rejected. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/errors.h"
#include <string.h>
#include <sys/stat.h>

static void gives(const tn_tokenizer *t, const char *text, const char *expected)
{
    tn_encoding *e = tn_encoding_new();
    char         said[200] = "";
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text), .bare = true), TN_OK);
    for (int64_t i = 0; i < e->n; i++) {
        if (i) strcat(said, " ");
        strcat(said, tn_tokenizer_token(t, e->id[i]));
    }
    ck_assert_str_eq(said, expected);
    tn_encoding_free(e);
}

/* Tokens of the original text precede those of the normalized text, wherever these start; then the longest. */
START_TEST(added_tokens_in_two_passes)
{
#define ADDED(content, normalized, id) \
    "{\"id\":" id ",\"content\":\"" content "\",\"normalized\":" normalized ",\"special\":false}"
#define TWO(form, added)                                                                               \
    "{\"added_tokens\":[" added "],\"normalizer\":" form ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"," \
    "\"add_prefix_space\":false},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2},\"merges\":[]}}"
#define NFC "{\"type\":\"NFC\"}"
    static const char *const refused[] = {TWO(NFC, ADDED("cafe", "true", "3")), TWO(NFC, ADDED("K1", "true", "3")),
                                          TWO(NFC, ADDED("\xc3\xa9", "true", "3")),
                                          TWO("{\"type\":\"NFKC\"}", ADDED("<x>", "true", "3")),
                                          TWO("{\"type\":\"Lowercase\"}", ADDED("<x>", "true", "3"))};
    const char *json = TWO("null", ADDED("ab", "true", "3") "," ADDED("bc", "false", "4") "," ADDED("ca", "true", "5"));
    tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    gives(t, "abc", "a bc");
    gives(t, "abcab", "a bc ab");
    gives(t, "aabca", "a a bc a");
    gives(t, "cab", "ca b");
    const char *dir = tn_test_file("passes");
    mkdir(dir, 0700);
    ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
    tn_tokenizer_free(t);
    t = tn_tokenizer_load(dir);
    gives(t, "abcab", "a bc ab");
    tn_tokenizer_free(t);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_ptr_null(tn_tokenizer_parse(refused[i], strlen(refused[i])));
        ck_assert_msg(strstr(tn_error_message(), "an added token to match in normalized text is"), "%s",
                      tn_error_message());
        tn_clear_error();
    }
    json = TWO(NFC, ADDED("<x>", "true", "3") "," ADDED("cafe", "false", "4"));
    t = tn_tokenizer_parse(json, strlen(json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    gives(t, "a<x>cafe", "a <x> cafe");
    tn_tokenizer_free(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tokenizer_added");
    TCase *c = tn_tcase(s, "added");
    tcase_add_test(c, added_tokens_in_two_passes);
    return tn_check_main(s);
}
