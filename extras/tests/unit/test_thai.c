/* test_thai.c — Thai text prepared for WangchanBERTa: compared with its authors' rules (tests/golden/thai.py). */
#include "extras.h"
#include "tests/common/check_main.h"

TEST(as_the_authors_rules)
{
    tn_json       *golden = tn_json_load(tn_test_data("golden/thai.json"));
    const tn_json *texts = tn_json_get(golden, "texts"), *answers = tn_json_get(golden, "answers");
    tn_string      s = {0};
    ck_assert_int_gt(tn_json_count(texts), 600);
    for (int64_t i = 0; i < tn_json_count(texts); i++) {
        const char *text = tn_json_string(tn_json_at(texts, i)), *want = tn_json_string(tn_json_at(answers, i));
        s.bytes = 0;
        ck_assert_int_eq(tn_string_add_thai(&s, tn_text_of(text)), TN_OK);
        ck_assert_msg(!strcmp(s.at, want), "text %lld, '%s': '%s', not '%s'", (long long)i, text, s.at, want);
    }
    tn_string_free(&s), tn_json_free(golden);
}

TEST(appends_and_rejects)
{
    tn_string s = {0};
    ck_assert_int_eq(tn_string_add(&s, tn_text_of("a ")), TN_OK);
    ck_assert_int_eq(tn_string_add_thai(&s, (tn_text){"B\xff", 2}), TN_OK);
    ck_assert_str_eq(s.at, "a b\xef\xbf\xbd");
    ck_fails(tn_string_add_thai(&s, (tn_text){NULL, 1}), TN_EINVAL,
             "tn_string_add_thai: the string or the text is NULL");
    ck_fails(tn_string_add_thai(NULL, tn_text_of("a")), TN_EINVAL,
             "tn_string_add_thai: the string or the text is NULL");
    ck_assert_str_eq(s.at, "a b\xef\xbf\xbd");
    tn_string_free(&s);
}

/* A megabyte of opening brackets takes time that is linear in its length. */
TEST(long_texts_are_linear)
{
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG);
    memset(text, '(', LONG);
    tn_string s = {0};
    ck_assert_int_eq(tn_string_add_thai(&s, (tn_text){text, LONG}), TN_OK);
    ck_assert_str_eq(s.at, "(");
    tn_string_free(&s), free(text);
}
