/* test_chat.c — conversations as text, compared with transformers' apply_chat_template (golden/chat.json). */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/errors.h"
#include <string.h>

enum { MOST = 8 };

START_TEST(equals_golden)
{
    tn_json  *golden = tn_json_load(tn_test_data("golden/chat.json"));
    tn_string text = {0};
    int       cases = 0;
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
    for (const tn_json *c = tn_json_first(tn_json_get(golden, "cases")); c; c = tn_json_next(c), cases++) {
        const char    *kind = tn_json_string(tn_json_get(c, "kind"));
        const tn_json *expected = tn_json_get(c, "text");
        tn_message     messages[MOST];
        int            n = 0;
        for (const tn_json *m = tn_json_first(tn_json_get(c, "messages")); m && n < MOST; m = tn_json_next(m), n++)
            messages[n] =
                (tn_message){tn_json_string(tn_json_get(m, "role")), tn_json_string(tn_json_get(m, "content"))};
        text.bytes = 0;
        const tn_status s = tn_chat_text(kind, n, messages, tn_json_bool(tn_json_get(c, "answer")), &text);
        if (tn_json_type_of(expected) == TN_JSON_NULL) {
            ck_assert_msg(s == TN_EINVAL, "%s, case %d: expected an error", kind, cases);
            ck_assert_uint_eq(text.bytes, 0);
            tn_clear_error();
            continue;
        }
        ck_assert_msg(s == TN_OK, "%s", tn_error_message());
        ck_assert_str_eq(text.at, tn_json_string(expected));
    }
    ck_assert_int_gt(cases, 70);
    for (const tn_json *t = tn_json_first(tn_json_get(golden, "templates")); t; t = tn_json_next(t))
        ck_assert_str_eq(tn_chat_kind(tn_json_string(t)), tn_json_key(t));
    /* similar but different: another system message, a date, thoughts, blanks, user messages that end with a line */
    static const char *const others[] = {
        "{{ messages }}",
        "{{- '<|im_start|>system\\nYou are Qwen. You are a helpful assistant.<|im_end|>\\n' }}",
        "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM<|im_end|>\n' }}",
        "{{ '<|im_start|>' + role + '\\n' }}{{ '<think>' }}",
        "{{ '<|start_header_id|>' }}{{ 'Cutting Knowledge Date: December 2023\\n' }}",
        "{{ '[INST]' + message['content'] + '[/INST]' }}",
        "{{ '[INST] ' + message['content'] + '[/INST]' }}",
        "{{ '<|user|>\\n' + content + '\\n' }}{{ '<|assistant|>\\n' + content + eos_token + '\\n' }}",
        "{{ '<start_of_turn>' + role }}",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!tn_chat_kind(others[i]), "%s is taken for %s", others[i], tn_chat_kind(others[i]));
    ck_assert_str_eq(tn_chat_kind("'<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n'"), "qwen2");
    ck_assert_str_eq(tn_chat_kind("'<|im_start|>system\\n' + messages[0] + '<|im_end|>'"), "chatml");
    ck_assert_ptr_null(tn_chat_kind(NULL));
    tn_string_free(&text);
    tn_json_free(golden);
}
END_TEST

START_TEST(refuses)
{
    const tn_message tool = {"tool", "x"}, none = {"user", NULL}, late[] = {{"user", "a"}, {"system", "b"}};
    tn_string        to = {0};
    tn_chat_text("alpaca", 1, &tool, true, &to);
    ck_error(TN_EINVAL, "tn_chat_text: unknown kind of conversation 'alpaca', expected llama2, llama3, chatml, qwen2, "
                        "mistral or zephyr");
    tn_chat_text("chatml", 1, &tool, true, &to);
    ck_error(TN_EINVAL,
             "tn_chat_text: message 0 has an unknown role, expected the role system, user or assistant, and a text");
    tn_chat_text("chatml", 1, &none, true, &to);
    ck_error(
        TN_EINVAL,
        "tn_chat_text: message 0 has no role or no content, expected the role system, user or assistant, and a text");
    tn_chat_text("llama2", 2, late, true, &to);
    ck_error(TN_EINVAL, "tn_chat_text: llama2 allows no system message but the first");
    tn_chat_text("mistral", 1, late + 1, true, &to);
    ck_error(TN_EINVAL, "tn_chat_text: mistral allows no system message");
    tn_string_free(&to);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chat");
    TCase *c = tn_tcase(s, "chat");
    tcase_add_test(c, equals_golden);
    tcase_add_test(c, refuses);
    return tn_check_main(s);
}
