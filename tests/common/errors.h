/* errors.h — assertions about the error that is set. */
#ifndef TENON_TESTS_COMMON_ERRORS_H
#define TENON_TESTS_COMMON_ERRORS_H

#include "core/core.h"
#include <check.h>
#include <stdbool.h>
#include <string.h>

/* The length of a message without the number of skipped calls, "(3 later calls ...)". */
static inline size_t tn_test_first_words(const char *said)
{
    const char *end = strstr(said, " later call");
    while (end && end > said && *end != '(') end--;
    return end && end > said ? (size_t)(end - said) - 1 : strlen(said);
}

static inline void tn_test_error(const char *file, int line, tn_status code, const char *text, bool whole)
{
    const char  *said = tn_error_message();
    const size_t n = tn_test_first_words(said);
    const bool   right = whole ? n == strlen(text) && !memcmp(said, text, n) : strstr(said, text) != NULL;
    ck_assert_msg(tn_error() == code && right, "%s:%d:\n  says %s: %s\n  not  %s: %s", file, line,
                  tn_status_name(tn_error()), said, tn_status_name(code), text);
    tn_clear_error();
}

/* Asserts that no error is set. */
#define fine() ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message())
/* Asserts that an error with this code and exactly this text is set, and clears it. */
#define ck_error(code, text) tn_test_error(__FILE__, __LINE__, code, text, true)
/* Asserts that an error with this code is set and that its text contains `part`, and clears it. */
#define ck_error_has(code, part) tn_test_error(__FILE__, __LINE__, code, part, false)
/* Asserts that an error with this code is set, and clears it. */
#define ck_error_code(code) ck_error_has(code, "")
/* ck_error, ck_error_has and ck_error_code, and asserts that the result is NULL or false. */
#define ck_refused(result, code, text) TN_CK_BOTH(ck_assert(!(result)), ck_error(code, text))
#define ck_refused_has(result, code, part) TN_CK_BOTH(ck_assert(!(result)), ck_error_has(code, part))
#define ck_refused_code(result, code) TN_CK_BOTH(ck_assert(!(result)), ck_error_code(code))
/* The same, and asserts that the function returns the code. */
#define ck_fails(result, code, text) TN_CK_BOTH(ck_assert_int_eq(result, code), ck_error(code, text))
#define ck_fails_has(result, code, part) TN_CK_BOTH(ck_assert_int_eq(result, code), ck_error_has(code, part))
#define TN_CK_BOTH(first, second) \
    do {                          \
        first;                    \
        second;                   \
    } while (0)

#endif
