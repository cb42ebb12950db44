/* test_chat.c — chat templates: the texts of transformers' apply_chat_template (golden/chat.json), errors, limits. */
#include "tests/common/check_main.h"

#include "extras.h"

#include <time.h>

enum { MOST = 8 };

static const struct tm november = {.tm_mday = 14, .tm_mon = 10, .tm_year = 123, .tm_wday = 2}; /* 14 Nov 2023 */

/* Templates of the usual families: the texts of jinja2, and errors where the template raises one. */
TEST(equals_golden)
{
    tn_json  *golden = tn_json_load(tn_test_data("golden/chat.json"));
    tn_string text = {0};
    int       cases = 0;
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
    for (const tn_json *t = tn_json_first(tn_json_get(golden, "templates")); t; t = tn_json_next(t)) {
        tn_chat *chat = tn_chat_parse(tn_json_string(t), (size_t)tn_json_string_bytes(t));
        ck_assert_msg(chat != NULL, "%s: %s", tn_json_key(t), tn_error_message());
        for (const tn_json *c = tn_json_first(tn_json_get(golden, "cases")); c; c = tn_json_next(c)) {
            if (strcmp(tn_json_string(tn_json_get(c, "kind")), tn_json_key(t)) != 0) continue;
            const tn_json *expected = tn_json_get(c, "text");
            tn_message     messages[MOST];
            int            n = 0;
            for (const tn_json *m = tn_json_first(tn_json_get(c, "messages")); m && n < MOST; m = tn_json_next(m), n++)
                messages[n] =
                    (tn_message){tn_json_string(tn_json_get(m, "role")), tn_json_string(tn_json_get(m, "content"))};
            text.bytes = 0;
            const tn_status s =
                tn_chat_text(chat, n, messages, &text, .answer = tn_json_bool(tn_json_get(c, "answer")),
                             .begin = tn_json_string(tn_json_get(c, "begin")), .end = "</s>", .now = &november);
            cases++;
            if (tn_json_type_of(expected) == TN_JSON_NULL) {
                ck_assert_msg(s == TN_EINVAL, "%s, case %d: expected an error", tn_json_key(t), cases);
                ck_assert_uint_eq(text.bytes, 0);
                tn_clear_error();
                continue;
            }
            ck_assert_msg(s == TN_OK, "%s: %s", tn_json_key(t), tn_error_message());
            ck_assert_msg(!strcmp(text.at, tn_json_string(expected)), "%s, case %d:\n%s\nexpected\n%s", tn_json_key(t),
                          cases, text.at, tn_json_string(expected));
        }
        tn_chat_free(chat);
    }
    ck_assert_int_gt(cases, 70);
    tn_string_free(&text);
    tn_json_free(golden);
}

static const char *run(const char *template, tn_string *to)
{
    const tn_message said[] = {{"user", "hi"}, {"assistant", "yes"}};
    tn_chat         *c = tn_chat_parse(template, strlen(template));
    to->bytes = 0;
    if (c) tn_chat_text(c, 2, said, to, .begin = "<s>", .now = &november);
    tn_chat_free(c);
    return tn_error() == TN_OK ? to->at : "";
}

/* Expressions and statements with the results of jinja2 3.1, in the environment of transformers. */
TEST(expressions)
{
    static const struct {
        const char *template, *text;
    } cases[] = {
        {"{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }}", "7 9 3 -4 2"},
        {"{{ 'a' if false else 'b' if true else 'c' }}|{{ 'x' if false }}", "b|"},
        {"{{ 'a' if true else undefined_name.member }}", "a"},
        {"{{ not 1 == 2 }} {{ 1 in [1, 2] }} {{ 3 not in [1, 2] }} {{ true and 0 or 'z' }}", "True True True z"},
        {"{{ 'a' ~ 1 ~ 'b' + 'c' }}{{ \"\\u00e9\\n\" 'x' }}", "a1bc\xc3\xa9\nx"},
        {"{{ messages[-1].content }}{{ messages[0]['role'] }}{{ messages[1:] | length }}{{ messages[::-1][0].role }}",
         "yesuser1assistant"},
        {"{% for m in messages %}{{ loop.index }}{{ loop.last }}{{ m.role[:2] }};{% endfor %}", "1Falseus;2Trueas;"},
        {"{% for a in [] %}x{% else %}none{% endfor %}{% for a in [1] %}x{% else %}none{% endfor %}", "nonex"},
        {"{% set n = namespace(x=1) %}{% for m in messages %}{% set n.x = n.x + 1 %}{% set y = 1 %}{% endfor %}"
         "{{ n.x }}"
         "{{ y is defined }}",
         "3False"},
        {"{% set t %}a{{ 1 }}{% endset %}{{ t }}{{ t is string }}", "a1True"},
        {"{% if x is defined and x.y %}1{% elif not x %}2{% else %}3{% endif %}", "2"},
        {"{{ ' a b '.strip() }}|{{ 'xaxx'.rstrip('x') }}|{{ 'a,b'.split(',')[1] }}|{{ 'abc'.startswith('ab') }}",
         "a b|xa|b|True"},
        {"{{ ['a', 'b'] | join('-') }} {{ none | default('d', true) }} {{ z | default('e') }} {{ 'aba' | replace('a', "
         "'c') }}",
         "a-b d e cbc"},
        {"{{ {'a': 1, 'b': 'x\"'} | tojson }} {{ [1, none, true] | tojson }} {{ 'a' | upper | lower }}",
         "{\"a\": 1, \"b\": \"x\\\"\"} [1, null, true] a"},
        {"{{ [1,2] == [1,2] }} {{ {'a': 1} != {'a': 1} }} {{ [1] in [[1]] }} {{ [1] == [2] }} "
         "{{ {'a': 1} == {'b': 1} }}",
         "True False True False False"},
        {"{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ [1] == [1, 2] }} {{ messages == messages }}",
         "True False True"},
        {"{{ messages[0] | first }} {{ messages[0] | list | last }} {{ {'k': 1} | last }}", "role content k"},
        {"{{ \"don't stop 1a b\" | title }} {{ \"don't stop 1a b\".title() }} {{ '\xe4\xbd\xa0z' | upper }}",
         "Don't Stop 1a B Don'T Stop 1A B \xe4\xbd\xa0Z"},
        {"{{ ' x '.strip() | trim(chars='x') }}{{ 'a-b'.split(sep='-') | join(d='+') }}", "a+b"},
        {"a\r\n{% if true %}\r\nb\rc{% endif %}\r\n", "a\nb\nc"},
        {"  {%- if true %}  a\n  {% endif %}\n  b {#- c -#}  d\n", "  a\n  b"
                                                                   "d"},
        {"a\n  {% if true %}\nb\n  {%+ endif +%}\nc{{ '' -}}  d", "a\nb\n  \ncd"},
        {"{{ 'a' if true if false else 'd' }}{{ 'a' if true if true else 'd' }}{{ (not 'b' if not 1 if u else 'n') }}",
         "dan"},
        {"{{ 'a' if 0 else 'b' if 1 if 1 else 'c' }}{{ [1 if 0 if 1, 'z' if 1] | length }}", "b2"},
        {"{{ -1 is number }} {{ -2 is even }} {{ -3|string ~ 'x' }} {{ 5 - 2|string|length }}", "True True -3x 4"},
        {"{{ u is iterable }}{{ u is sequence }}{{ u|length }}{{ 'a' in u }}{{ u|trim }}{{ u|upper }}"
         "{{ u|replace('a', 'b') }}{{ u|join(',') }}{{ u|list|length }}{{ u|items|list|length }}",
         "TrueTrue0False00"},
        {"{{ tools.foo is defined }}{{ none.foo }}{{ tools['foo'] }}x", "Falsex"},
        {"{{ '\\101\\60\\12\\U0001F600\\xe9\\8\\q' }}", "A0\n\xf0\x9f\x98\x80\xc3\xa9\\8\\q"},
        {"{% if namespace() %}1{% endif %}{% set n = namespace(a=1) %}{{ n is mapping }}{{ n is iterable }}",
         "1FalseFalse"},
        {"{{ {1: 2, true: none} | tojson }} {{ {none: 'x'} | tojson }}", "{\"1\": null} {\"null\": \"x\"}"},
        {"{% set x %}{% set y = 1 %}a{% endset %}{{ y }}{{ x }}", "a"},
        {"{% set y = 0 %}{% generation %}{% set y = 1 %}{{ y }}{% endgeneration %}{{ y }}", "10"},
        {"{% for a in [1] %}{{ loop.depth }}{% for b in [1] %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{%endfor%}",
         "121"},
        {"{{ strftime_now('%d %b %Y') }}{{ bos_token }}{{ eos_token is defined }}{{ tools is none }}", NULL},
        {"{{ raise_exception('no') }}", NULL},
    };
    tn_string s = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *is = run(cases[i].template, &s);
        if (!cases[i].text) {
            if (tn_error() == TN_OK) ck_assert_msg(strstr(is, "14 Nov 2023<s>FalseTrue") != NULL, "%s", is);
            else ck_error(TN_EINVAL, "chat template, line 1: no");
            continue;
        }
        ck_assert_msg(tn_error() == TN_OK, "%s: %s", cases[i].template, tn_error_message());
        ck_assert_msg(!strcmp(is, cases[i].text), "%s:\n'%s', expected\n'%s'", cases[i].template, is, cases[i].text);
    }
    tn_string_free(&s);
}

TEST(refuses)
{
    static const struct {
        const char *template, *error;
        tn_status code;
    } cases[] = {
        {"a\n{% macro f(x) %}{% endmacro %}", "chat template, line 2: the tag 'macro' is not supported",
         TN_EUNSUPPORTED},
        {"{% if x %}", "chat template, line 1: a tag is not closed", TN_EUNSUPPORTED},
        {"{{ (1 }}", "chat template, line 1: a bracket is not closed", TN_EUNSUPPORTED},
        {"{{ 1 + }}", "chat template, line 1: expected a value", TN_EUNSUPPORTED},
        {"{{ 1 2 }}", "chat template, line 1: '2' is not expected here", TN_EUNSUPPORTED},
        {"{{ 1.5 }}", "chat template, line 1: numbers with a point are not supported", TN_EUNSUPPORTED},
        {"{% endfor %}", "chat template, line 1: 'endfor' has no beginning", TN_EUNSUPPORTED},
        {"{{ 'a", "chat template, line 1: a string has no end", TN_EUNSUPPORTED},
        {"{% for x in y if x %}{% endfor %}", "chat template, line 1: 'if' and 'recursive' of 'for' are not supported",
         TN_EUNSUPPORTED},
        {"{{ 1 < 2 < 3 }}", "chat template, line 1: chained comparisons are not supported; join them with 'and'",
         TN_EUNSUPPORTED},
        {"{{ '\\ud83d' }}", "chat template, line 1: a surrogate in a string is not supported", TN_EUNSUPPORTED},
        {"{{ 'a</t>b'.split('</t>', 1) }}",
         "chat template, line 1: the method 'split' with 2 arguments is not supported", TN_EINVAL},
        {"{{ 'aa'.replace('a', 'b', 1) }}",
         "chat template, line 1: the method 'replace' with 3 arguments is not supported", TN_EINVAL},
        {"{{ 'a'.startswith(('a', 'b')) }}", "chat template, line 1: 'startswith' needs a text", TN_EINVAL},
        {"{{ 1 | tojson(indent=2) }}",
         "chat template, line 1: the argument 'indent' of the filter 'tojson' is not supported", TN_EINVAL},
        {"{{ dict(messages[0]) }}", "chat template, line 1: the function 'dict' with 1 arguments is not supported",
         TN_EINVAL},
        {"{{ x | tojson }}", "chat template, line 1: 'tojson' of a value that is not defined", TN_EINVAL},
        {"{{ [[1]] == [[1]] }}", "chat template, line 1: comparing nested lists or dicts is not supported", TN_EINVAL},
        {"{{ '\xc3\xa9' | upper }}",
         "chat template, line 1: changing the case of letters outside ASCII is not supported", TN_EINVAL},
        {"\n{{ 1 | foo }}", "chat template, line 2: the filter 'foo' is not supported", TN_EINVAL},
        {"{{ x.y }}", "chat template, line 1: 'y' of a value that is not defined", TN_EINVAL},
        {"{{ 'a' + 1 }}", "chat template, line 1: '+' joins two texts, but one operand is not a text", TN_EINVAL},
        {"{{ - messages|length }}", "chat template, line 1: '-' needs two numbers", TN_EINVAL},
        {"{{ pad_token }}", "chat template, line 1: 'pad_token' is not supported", TN_EINVAL},
        {"{% for i in range(17000000) %}x{% endfor %}", "chat template, line 1: the values need more than 16 MiB",
         TN_EINVAL},
        {"{{ '\\x4' }}", "chat template, line 1: '\\x' in a string needs 2 hexadecimal digits", TN_EUNSUPPORTED},
        {"{{ '\\U00110000' }}", "chat template, line 1: '\\U' in a string is beyond 10ffff", TN_EUNSUPPORTED},
        {"{{ '\\N{DASH}' }}", "chat template, line 1: names of characters in a string, '\\N', are not supported",
         TN_EUNSUPPORTED},
        {"{% for m in messages %}{% set m.content = 'x' %}{% endfor %}",
         "chat template, line 1: only a namespace has members to set", TN_EINVAL},
        {"{% set n = namespace() %}{% for i in [1] %}{% set n.l = loop %}{% endfor %}",
         "chat template, line 1: 'loop' in a namespace is not supported", TN_EINVAL},
        {"{{ 'abc' is odd }}", "chat template, line 1: 'odd' and 'even' need a number", TN_EINVAL},
        {"{{ namespace(a=1)|length }}", "chat template, line 1: the value has no length", TN_EINVAL},
        {"{% generation %}", "chat template, line 1: a tag is not closed", TN_EUNSUPPORTED},
        {"{% endgeneration %}", "chat template, line 1: 'endgeneration' has no beginning", TN_EUNSUPPORTED},
        {"{% set n = namespace(s='a') %}{% for i in range(20) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
         "{% for i in range(99999) %}{{ 'b' in n.s }}{% endfor %}",
         "chat template, line 1: more than 1000000 steps: does the template loop?", TN_EINVAL},
        {"{% set n = namespace(s='ab') %}{% for i in range(18) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
         "{% for i in range(9999) %}{{ n.s in n.s }}{% endfor %}",
         "chat template, line 1: more than 1000000 steps: does the template loop?", TN_EINVAL},
        {"{% set n = namespace(s='ab', t='ab') %}{% for i in range(18) %}{% set n.s = n.s ~ n.s %}"
         "{% set n.t = n.t ~ n.t %}{% endfor %}{% for i in range(9999) %}{{ n.s == n.t }}{% endfor %}",
         "chat template, line 1: more than 1000000 steps: does the template loop?", TN_EINVAL},
        {"{% set n = namespace(s='ab', t='ab') %}{% for i in range(20) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
         "{% set n.t = n.s ~ 'a' %}{% set n.s = n.s ~ 'b' %}{% set n.l = [n.t] %}{% for i in range(9) %}"
         "{% set n.l = n.l + n.l %}{% endfor %}{{ n.s in n.l }}",
         "chat template, line 1: more than 1000000 steps: does the template loop?", TN_EINVAL},
        {"{% set n = namespace(s='ab') %}{% for i in range(18) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
         "{% for i in range(9999) %}{{ n.s|length }}{% endfor %}",
         "chat template, line 1: more than 1000000 steps: does the template loop?", TN_EINVAL},
        {"{{ messages }}", "chat template, line 1: writing a list or a dict without tojson is not supported",
         TN_EINVAL},
        {"{% set r = range(9999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
         "chat template, line 1: more than 1000000 steps: does the template loop?", TN_EINVAL},
        {"{% set n = namespace(x='aaaaaaaaaaaaaaaa') %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
         "chat template, line 1: the values need more than 16 MiB", TN_EINVAL},
    };
    tn_string s = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run(cases[i].template, &s);
        ck_error(cases[i].code, cases[i].error);
    }
    char deep[400];
    memset(deep, '(', sizeof deep), memcpy(deep, "{{", 2), deep[sizeof deep - 1] = 0;
    run(deep, &s);
    ck_error(TN_EUNSUPPORTED, "chat template, line 1: an expression is nested more than 64 deep");
    const tn_message none = {"user", NULL};
    tn_chat         *c = tn_chat_parse("x", 1);
    tn_chat_text(c, 1, &none, &s);
    ck_error(TN_EINVAL, "tn_chat_text: message 0 has no content");
    tn_chat_free(c);
    tn_string_free(&s);
}

/* All parts of one to six letters a and b in texts of these letters, which contain many beginnings of them. */
TEST(searches_equal_strstr)
{
    const char *template = "{% for m in messages[1:] %}{{ m.content.replace(messages[0].content, '-') }} {% endfor %}";
    tn_chat   *c = tn_chat_parse(template, strlen(template));
    tn_string  to = {0};
    char       part[7], text[MOST][40], expected[MOST * 41];
    tn_message said[MOST] = {{"user", part}};
    uint32_t   bits = 1;
    int        found = 0;
    for (int i = 1; i < MOST; i++) {
        for (int k = 0; k < 39; k++) text[i][k] = (bits = bits * 1664525 + 1013904223) >> 31 ? 'b' : 'a';
        text[i][39] = 0;
        said[i] = (tn_message){"user", text[i]};
    }
    for (int n = 1; n <= 6; n++)
        for (int letters = 0; letters < 1 << n; letters++) {
            char *end = expected;
            part[n] = 0;
            for (int k = 0; k < n; k++) part[k] = letters >> k & 1 ? 'b' : 'a';
            for (int i = 1; i < MOST; i++, *end++ = ' ') {
                const char *at = text[i], *next;
                for (; (next = strstr(at, part)); at = next + n, *end++ = '-', found++)
                    memcpy(end, at, (size_t)(next - at)), end += next - at;
                memcpy(end, at, strlen(at)), end += strlen(at);
            }
            *end = 0;
            to.bytes = 0;
            ck_assert_int_eq(tn_chat_text(c, MOST, said, &to), TN_OK);
            ck_assert_str_eq(to.at, expected);
        }
    ck_assert_int_gt(found, 1000);
    tn_chat_free(c);
    tn_string_free(&to);
}

/* The limit of a text counts what one call appends, and a search takes linear time. */
TEST(many_in_one_text)
{
    const char *letters = "{% set n = namespace(s='a') %}{% for i in range(19) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
                          "{{ (n.s[:262144] ~ 'b') in n.s }}{{ n.s }}";
    tn_string   to = {0};
    tn_chat    *c = tn_chat_parse(letters, strlen(letters));
    for (int i = 0; i < 40; i++) ck_assert_msg(!tn_chat_text(c, 0, NULL, &to), "%s", tn_error_message());
    ck_assert_uint_eq(to.bytes, 40 * ((1 << 19) + 5));
    tn_chat_free(c);
    tn_string_free(&to);
}
