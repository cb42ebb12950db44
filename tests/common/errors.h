/* errors.h — what the standing error says. */
#ifndef TENON_TESTS_COMMON_ERRORS_H
#define TENON_TESTS_COMMON_ERRORS_H

#include "core/core.h"
#include <check.h>
#include <stdbool.h>
#include <string.h>

/* Without how many calls were skipped later, "(3 later calls ...)". */
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

/* The standing error has this code and, word for word, this text; it is cleared. */
#define ck_error(code, text) tn_test_error(__FILE__, __LINE__, code, text, true)
/* ... this code, and this text somewhere in what it says. */
#define ck_error_has(code, part) tn_test_error(__FILE__, __LINE__, code, part, false)
/* ... and there is no result. */
#define ck_refused(result, code, text) \
    do {                               \
        ck_assert_ptr_null(result);    \
        ck_error(code, text);          \
    } while (0)

#endif
