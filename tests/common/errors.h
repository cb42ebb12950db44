/* errors.h — what the standing error says, word for word. */
#ifndef TENON_TESTS_COMMON_ERRORS_H
#define TENON_TESTS_COMMON_ERRORS_H

#include "core/core.h"
#include <check.h>
#include <string.h>

/* The standing error has this code and this text (how many calls were skipped later does not count), and is cleared. */
#define ck_error(code, text)                                                     \
    do {                                                                         \
        tn_status   standing_ = tn_error();                                      \
        char        message_[1100] = "";                                         \
        const char *said_ = tn_error_message(), *end_;                           \
        end_ = strstr(said_, " later call");                                     \
        while (end_ && end_ > said_ && *end_ != '(') end_--;                     \
        if (end_ && end_ > said_) end_--;                                        \
        strncat(message_, said_, end_ ? (size_t)(end_ - said_) : strlen(said_)); \
        tn_clear_error();                                                        \
        ck_assert_str_eq(message_, text);                                        \
        ck_assert_int_eq(standing_, code);                                       \
    } while (0)

#endif
